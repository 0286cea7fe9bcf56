//! A kind of memory in use by a library that takes the place of malloc: blocks of chosen nodes, and how much room there is.
//!
//! Other than `memory`, which programs call by kind, this knows what is left: a block that would end the process at its first touch is
//! not given out, and one that may lie elsewhere is told apart.

use crate::environment::Environment;
use crate::kind::{self, Kind};
use crate::lock;
use crate::memory::{self, Owner};
use crate::static_kind::StaticKind;
use crate::{choice, code, create, place};
use nearfar_core::placement::NodeSet;
use nearfar_sys::numa::{self, MemoryPolicy, PolicyMode};
use nearfar_tiers::pool::{Pool, PoolSpec};
use std::ffi::{CString, c_void};
use std::fmt;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Instant;

type Void = *mut c_void;

/// Blocks from this size are looked at one by one, smaller ones together when they have come to as much.
const STEP: usize = 64 << 10;
/// How long nodes that were full are taken to be full.
const ASK_AGAIN_MS: u64 = 100;

/// True while this thread forks: blocks of files are not given out, and freed ones are lost.
#[inline]
pub fn this_thread_forks() -> bool {
    lock::forks()
}

/// Bytes that were promised and do not lie in memory yet, when `given` were promised by then, the nodes had `before` and have `now`,
/// and blocks of `live` bytes are in use: what they lost was touched, as far as one can tell.
fn untouched(given: i64, before: i64, now: i64, live: i64) -> i64 {
    given.saturating_sub(before.saturating_sub(now).max(0)).min(live).max(0)
}

/// Whether there is room for a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// As far as one can tell.
    Fits,
    /// No; the rest comes from other nodes.
    Spills,
    /// No, and no other node may be used: to touch the block would end the process.
    Refused,
}

/// Where blocks come from.
#[derive(Clone, Copy)]
enum Source {
    /// A kind that is there from the start.
    Static(StaticKind),
    /// A file.
    File(*mut Kind),
    /// Nodes that were named.
    Nodes(&'static Pool),
}

/// A kind in use.
pub struct Placed {
    source: Source,
    name: String,
    /// None where the kernel has no say.
    nodes: NodeSet,
    /// No other node may be used.
    is_strict: bool,
    /// Bytes of the nodes as last read.
    read: AtomicI64,
    /// Bytes promised that did not lie in memory when that was read, and those promised since.
    given: AtomicI64,
    /// What may still be promised.
    left: AtomicI64,
    /// There was no room when it was last looked at.
    is_full: AtomicBool,
    /// When that was, in ms since `epoch`.
    read_at: AtomicU64,
    epoch: Instant,
}

// SAFETY: the pointer is to a kind of a file, which is never changed or destroyed, and whose heap has a lock.
unsafe impl Send for Placed {}
// SAFETY: as above.
unsafe impl Sync for Placed {}

impl Placed {
    /// A kind of memkind.
    ///
    /// # Errors
    /// Why it is not to be had, for people.
    pub fn of_kind(kind: StaticKind) -> Result<Self, String> {
        if let problem @ ..=-1 = place::check(kind) {
            let why = choice::choose(place::topology(), Environment::this(), kind).err().map(|unavailable| unavailable.why);
            return Err(why.unwrap_or_else(|| code::message(problem).trim_start_matches("<memkind> ").to_owned()));
        }
        let nodes = place::nodes(kind).unwrap_or_default();
        let is_strict = place::mode(kind) == Some(PolicyMode::Bind);
        let placed = Self::new(Source::Static(kind), kind.name().to_owned(), nodes, is_strict);
        // The heap is made at the first block.
        let probe = placed.malloc(1);
        if probe.is_null() {
            return Err(format!("no heap can be made on {}", text_of(&nodes)));
        }
        // In a job of ours that pages, it is not a block of a kind, and stays.
        if Self::owns(probe.addr()) {
            // SAFETY: the block from above.
            unsafe { Self::free(probe) };
        }
        Ok(placed)
    }

    /// Nodes by number, and no other.
    ///
    /// # Errors
    /// Why they cannot be used, for people.
    pub fn of_nodes(nodes: NodeSet) -> Result<Self, String> {
        let policy = Some(MemoryPolicy::new(PolicyMode::Bind, nodes));
        let pool = Pool::create(&PoolSpec { policy, ..PoolSpec::default() }).map_err(|errno| match errno.0 {
            libc::EINVAL => format!("{} cannot be used by this process", text_of(&nodes)),
            libc::EPERM | libc::ENOSYS => format!("the system allows no memory policies ({errno})"),
            _ => format!("no heap can be made on {} ({errno})", text_of(&nodes)),
        })?;
        Ok(Self::new(Source::Nodes(pool), "memory".to_owned(), nodes, true))
    }

    /// A file in the directory `path`, of at most `limit` bytes.
    ///
    /// # Errors
    /// Why it cannot be used, for people.
    pub fn of_file(path: &str, limit: Option<usize>) -> Result<Self, String> {
        let dir = CString::new(path).map_err(|_| "a path cannot contain a NUL character".to_owned())?;
        let mut kind = null_mut();
        // SAFETY: a C string, and a local to write to.
        match unsafe { create::pmem(dir.as_ptr(), limit.unwrap_or(0), 0, &raw mut kind) } {
            code::SUCCESS => Ok(Self::new(Source::File(kind), format!("a file in {path}"), NodeSet::EMPTY, false)),
            _ => Err("no file can be created there: it must be a writable directory".to_owned()),
        }
    }

    fn new(source: Source, name: String, nodes: NodeSet, is_strict: bool) -> Self {
        let (read, given, left) = (AtomicI64::new(0), AtomicI64::new(0), AtomicI64::new(0));
        let (is_full, read_at) = (AtomicBool::new(false), AtomicU64::new(0));
        Self { source, name, nodes, is_strict, read, given, left, is_full, read_at, epoch: Instant::now() }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A block; null when there is none. `size` 0 gives one too.
    #[inline]
    pub fn malloc(&self, size: usize) -> Void {
        // SAFETY: kinds that exist.
        unsafe {
            match self.source {
                Source::Static(kind) => memory::malloc(kind::pointer(kind), size.max(1)),
                Source::Nodes(pool) => pool.malloc(size),
                Source::File(kind) => memory::malloc(kind, size.max(1)),
            }
        }
    }

    /// A block of zeros.
    #[inline]
    pub fn zalloc(&self, size: usize) -> Void {
        // SAFETY: kinds that exist.
        unsafe {
            match self.source {
                Source::Static(kind) => memory::calloc(kind::pointer(kind), 1, size.max(1)),
                Source::Nodes(pool) => pool.zalloc(size),
                Source::File(kind) => memory::calloc(kind, 1, size.max(1)),
            }
        }
    }

    /// A block at a multiple of `align`, a power of two.
    pub fn memalign(&self, align: usize, size: usize) -> Void {
        let kind = match self.source {
            Source::Nodes(pool) => return pool.memalign(align, size),
            Source::Static(kind) => kind::pointer(kind),
            Source::File(kind) => kind,
        };
        let mut block = null_mut();
        // SAFETY: a kind that exists, and a local to write to; on failure it stays null.
        unsafe { memory::posix_memalign(kind, &raw mut block, align.max(size_of::<Void>()), size.max(1)) };
        block
    }

    /// True for a block of this kind; `owner` is `Self::owner` of it.
    #[inline]
    pub fn has(&self, owner: &Owner) -> bool {
        match (owner, self.source) {
            (Owner::Pool(pool), Source::Static(kind)) => place::owner(pool) == Some(kind),
            (Owner::Pool(pool), Source::Nodes(own)) => pool.id() == own.id(),
            (Owner::Range(_, kind), Source::Static(own)) => *kind == kind::pointer(own),
            (Owner::Range(_, kind), Source::File(own)) => *kind == own,
            _ => false,
        }
    }

    /// Whose block it is.
    #[inline(always)]
    pub fn owner(block: Void) -> Owner {
        memory::owner(block)
    }

    /// True for a block of any kind.
    #[inline(always)]
    pub fn owns(addr: usize) -> bool {
        !matches!(memory::owner(addr as Void), Owner::Other)
    }

    /// Gives a block of any kind back.
    ///
    /// # Safety
    /// `block` is a live block of a kind, not used afterwards.
    #[inline]
    pub unsafe fn free(block: Void) {
        // SAFETY: passed on to the caller.
        unsafe { memory::free(block) }
    }

    /// Bytes that a block of any kind has room for.
    ///
    /// # Safety
    /// `block` is a live block of a kind.
    #[inline]
    pub unsafe fn usable_size(block: Void) -> usize {
        // SAFETY: passed on to the caller.
        unsafe { memory::usable_size(block) }
    }

    /// Bytes that can be had of its nodes, clean page cache included; `None` when the kernel does not say. What was given out and not
    /// touched yet counts.
    pub fn free_bytes(&self) -> Option<u64> {
        let is_huge = matches!(self.source, Source::Static(kind) if kind.is_huge());
        // Huge pages come from a reserve, and are refused when it is empty.
        if self.nodes.is_empty() || is_huge {
            return None;
        }
        self.nodes.iter().map(numa::available_bytes).try_fold(0u64, |sum, free| Some(sum.saturating_add(free?)))
    }

    /// Bytes of its large blocks in use.
    fn live_bytes(&self) -> u64 {
        match self.source {
            Source::Static(kind) => place::pools(kind).map(Pool::live_bytes).sum(),
            Source::Nodes(pool) => pool.live_bytes(),
            Source::File(_) => 0,
        }
    }

    /// Whether there is room for `size` bytes. Asks the kernel when what it said last is used up, and every 100 ms while there is none;
    /// for small blocks only while there is none, or when `grew` tells of many of them.
    #[inline(always)]
    pub fn room(&self, size: usize) -> Room {
        if size < STEP && !self.is_full.load(Ordering::Relaxed) { Room::Fits } else { self.look(size) }
    }

    /// Blocks of about 64 KiB together were given out, the last one of `size` bytes.
    pub fn grew(&self, size: usize) {
        if size < STEP {
            self.look(STEP);
        }
    }

    #[inline(never)]
    fn look(&self, size: usize) -> Room {
        let size = i64::try_from(size).unwrap_or(i64::MAX);
        // Threads that pass at once promise a few blocks too many, until the next reading.
        if self.left.load(Ordering::Relaxed) >= size {
            self.left.fetch_sub(size, Ordering::Relaxed);
            self.given.fetch_add(size, Ordering::Relaxed);
            return Room::Fits;
        }
        let now = self.epoch.elapsed().as_millis() as u64;
        let read_at = self.read_at.load(Ordering::Relaxed);
        if !self.is_full.load(Ordering::Relaxed) || now - read_at.min(now) >= ASK_AGAIN_MS {
            let clamped = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
            let free = self.free_bytes().map_or(i64::MAX, clamped);
            let before = self.read.swap(free, Ordering::Relaxed);
            let given = untouched(self.given.load(Ordering::Relaxed), before, free, clamped(self.live_bytes()));
            let left = free - given;
            let fits = left >= size;
            let taken = if fits { size } else { 0 };
            self.read_at.store(now, Ordering::Relaxed);
            self.given.store(given + taken, Ordering::Relaxed);
            self.left.store(left - taken, Ordering::Relaxed);
            self.is_full.store(!fits, Ordering::Relaxed);
            if fits {
                return Room::Fits;
            }
        }
        if self.is_strict { Room::Refused } else { Room::Spills }
    }
}

/// "memkind_hbw (node 1)", "a file in /mnt/pmem0".
impl fmt::Display for Placed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.nodes.is_empty() {
            true => f.write_str(&self.name),
            false => write!(f, "{} ({})", self.name, text_of(&self.nodes)),
        }
    }
}

impl fmt::Debug for Placed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn text_of(nodes: &NodeSet) -> String {
    format!("node{} {nodes}", if nodes.len() == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_node_0_lie_there() {
        let placed = match Placed::of_nodes([0].into_iter().collect()) {
            Ok(placed) => placed,
            Err(why) => return println!("skipped: {why}"),
        };
        assert_eq!(placed.to_string(), "memory (node 0)");
        let block = placed.zalloc(1 << 20);
        assert!(!block.is_null() && Placed::owns(block.addr()) && placed.has(&Placed::owner(block)));
        // SAFETY: a live block of 1 MiB, freed once.
        unsafe {
            block.cast::<u8>().write_volatile(1);
            match numa::nodes_of(&[block.addr()]) {
                Ok(nodes) => assert_eq!(nodes, [Some(0)]),
                Err(error) => assert!(error.is_unsupported(), "{error}"),
            }
            assert!(Placed::usable_size(block) >= 1 << 20);
            Placed::free(block);
        }
        assert!(!Placed::owns(&raw const placed as usize));
        assert!(Placed::of_nodes([900].into_iter().collect()).expect_err("no such node").contains("900"));
    }

    #[test]
    fn what_was_promised_and_not_touched_is_not_promised_again() {
        assert_eq!(untouched(100, 1000, 1000, 100), 100, "nothing was touched");
        assert_eq!(untouched(100, 1000, 940, 100), 40, "60 were");
        assert_eq!(untouched(100, 1000, 1000, 30), 30, "70 were freed");
        assert_eq!(untouched(100, 1000, 500, 100), 0, "another process took the rest");
        assert_eq!(untouched(100, 1000, 2000, 100), 100, "another process gave");
        let Ok(placed) = Placed::of_nodes([0].into_iter().collect()) else { return println!("skipped: node 0 is not for us") };
        let Some(free) = placed.free_bytes() else { return println!("skipped: the kernel does not say what is free") };
        let size = (free / 4) as usize;
        let mut blocks = Vec::new();
        while blocks.len() < 10 && placed.room(size) == Room::Fits {
            blocks.push(placed.malloc(size));
        }
        assert!((2..=5).contains(&blocks.len()), "{} quarters of what is free", blocks.len());
        // SAFETY: live blocks or null, once.
        blocks.into_iter().filter(|block| !block.is_null()).for_each(|block| unsafe { Placed::free(block) });
    }

    #[test]
    fn more_than_there_is_does_not_fit() {
        let Ok(placed) = Placed::of_nodes([0].into_iter().collect()) else { return println!("skipped: node 0 is not for us") };
        if placed.free_bytes().is_none() {
            return println!("skipped: the kernel does not say what is free");
        }
        assert_eq!(placed.room(1 << 20), Room::Fits);
        assert_eq!(placed.room(1 << 50), Room::Refused);
    }
}
