//! A kind of memory in use by a library that takes the place of malloc: blocks of chosen nodes, and how much room there is.
//!
//! Unlike libmemkind's kinds these have no ABI: no numbers, no partitions, and a block that cannot be had is a null pointer.

use crate::choice::{self, Choice};
use crate::environment::Environment;
use crate::static_kind::StaticKind;
use nearfar_core::placement::NodeSet;
use nearfar_sys::machine;
use nearfar_sys::numa::{self, MemoryPolicy, PolicyMode};
use nearfar_tiers::pool::{Pool, PoolPages, PoolSpec};
use std::ffi::c_void;
use std::fmt;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Instant;

type Void = *mut c_void;

/// Blocks from this size are looked at one by one, smaller ones together when they have come to as much.
const STEP: usize = 64 << 10;
/// How long nodes that were full are taken to be full.
const ASK_AGAIN_MS: u64 = 100;

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

/// A kind in use.
pub struct Placed {
    name: String,
    nodes: NodeSet,
    /// No other node may be used.
    is_strict: bool,
    /// By node of the CPU; the first one for nodes beyond.
    pools: Box<[Option<&'static Pool>]>,
    /// Free bytes of the nodes as last read, less what was asked for since.
    left: AtomicI64,
    /// There was no room when it was last looked at.
    is_full: AtomicBool,
    /// When that was, in ms since `epoch`.
    read_at: AtomicU64,
    epoch: Instant,
}

impl Placed {
    /// A kind of memkind.
    ///
    /// # Errors
    /// Why it is not to be had, for people.
    pub fn of_kind(kind: StaticKind) -> Result<Self, String> {
        let topology = machine::nodes(&nearfar_sys::root::Root::this());
        let choice = choice::choose(&topology, Environment::this(), kind).map_err(|unavailable| unavailable.why)?;
        let pages = match (kind.is_huge(), choice.mode) {
            (true, _) => PoolPages::HugeTlb,
            (false, PolicyMode::Interleave) => PoolPages::NoHuge,
            _ => PoolPages::Default,
        };
        Self::of_choice(kind.name().to_owned(), &choice, pages)
    }

    /// Nodes by number, and no other.
    ///
    /// # Errors
    /// Why they cannot be used, for people.
    pub fn of_nodes(nodes: NodeSet) -> Result<Self, String> {
        let choice = Choice { mode: PolicyMode::Bind, nodes, by_cpu_node: vec![nodes], bytes: 0 };
        Self::of_choice("nodes".to_owned(), &choice, PoolPages::Default)
    }

    /// A file in the directory `path`, of at most `limit` bytes.
    ///
    /// # Errors
    /// Why it cannot be used, for people.
    pub fn of_file(path: &str, limit: Option<usize>) -> Result<Self, String> {
        let _ = (path, limit);
        Err("files are not supported yet".to_owned())
    }

    fn of_choice(name: String, choice: &Choice, pages: PoolPages) -> Result<Self, String> {
        let mut made: Vec<(NodeSet, &'static Pool)> = Vec::new();
        let mut pool_of = |nodes: &NodeSet| -> Result<Option<&'static Pool>, String> {
            if nodes.is_empty() && choice.mode != PolicyMode::Default {
                return Ok(None);
            }
            if let Some((_, pool)) = made.iter().find(|(others, _)| others == nodes) {
                return Ok(Some(pool));
            }
            let policy = (choice.mode != PolicyMode::Default).then(|| MemoryPolicy::new(choice.mode, *nodes));
            let pool = Pool::create(&PoolSpec { policy, pages, most: None }).map_err(|errno| match (errno.0, pages) {
                (libc::ENOMEM, PoolPages::HugeTlb) => "no huge pages of 2 MiB are reserved (/proc/sys/vm/nr_hugepages)".to_owned(),
                (libc::EINVAL, _) => format!("{} cannot be used by this process", text_of(nodes)),
                (libc::EPERM | libc::ENOSYS, _) => format!("the system allows no memory policies ({errno})"),
                _ => format!("no heap on {}: {errno}", text_of(nodes)),
            })?;
            made.push((*nodes, pool));
            Ok(Some(pool))
        };
        let pools = choice.by_cpu_node.iter().map(&mut pool_of).collect::<Result<Box<[_]>, _>>()?;
        let is_strict = choice.mode == PolicyMode::Bind;
        let (left, is_full, read_at) = (AtomicI64::new(0), AtomicBool::new(false), AtomicU64::new(0));
        Ok(Self { name, nodes: choice.nodes, is_strict, pools, left, is_full, read_at, epoch: Instant::now() })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// "node 1", "nodes 0,2".
    pub fn nodes_text(&self) -> String {
        text_of(&self.nodes)
    }

    /// The heap for the CPU that runs now.
    #[inline]
    fn pool(&self) -> Option<&'static Pool> {
        match &*self.pools {
            [only] => *only,
            pools => *pools.get(numa::here().1 as usize).unwrap_or(&pools[0]),
        }
    }

    /// A block; null when there is none.
    #[inline]
    pub fn malloc(&self, size: usize) -> Void {
        self.pool().map_or(null_mut(), |pool| pool.malloc(size))
    }

    /// A block of zeros.
    #[inline]
    pub fn zalloc(&self, size: usize) -> Void {
        self.pool().map_or(null_mut(), |pool| pool.zalloc(size))
    }

    /// A block at a multiple of `align`, a power of two.
    pub fn memalign(&self, align: usize, size: usize) -> Void {
        self.pool().map_or(null_mut(), |pool| pool.memalign(align, size))
    }

    /// True for a block of this kind.
    #[inline]
    pub fn has(&self, addr: usize) -> bool {
        let holds = |pool: &Pool| addr.wrapping_sub(pool.range().start) < pool.range().len();
        self.pools.iter().flatten().any(|pool| holds(pool))
    }

    /// True for a block of any kind.
    #[inline(always)]
    pub fn owns(addr: usize) -> bool {
        Pool::of(addr).is_some()
    }

    /// Gives a block of any kind back.
    ///
    /// # Safety
    /// `block` is a live block of a kind, not used afterwards.
    #[inline]
    pub unsafe fn free(block: Void) {
        // SAFETY: passed on to the caller.
        unsafe { Pool::free(block) }
    }

    /// Bytes that a block of any kind has room for.
    ///
    /// # Safety
    /// `block` is a live block of a kind.
    #[inline]
    pub unsafe fn usable_size(block: Void) -> usize {
        // SAFETY: passed on to the caller.
        unsafe { Pool::usable_size(block) }
    }

    /// Free bytes of its nodes; `None` when the kernel does not say. What was given out and not touched yet counts as free.
    pub fn free_bytes(&self) -> Option<u64> {
        self.nodes.iter().map(numa::free_bytes).try_fold(0u64, |sum, free| Some(sum.saturating_add(free?)))
    }

    /// Whether there is room for `size` bytes. Asks the kernel when what it said last is used up, at most every 100 ms; for small
    /// blocks only when they were full before, or when `grew` tells of many of them.
    #[inline(always)]
    pub fn room(&self, size: usize) -> Room {
        if size < STEP && !self.is_full.load(Ordering::Relaxed) { Room::Fits } else { self.look(size) }
    }

    /// Small blocks of about 64 KiB together were given out.
    pub fn grew(&self) {
        self.look(STEP);
    }

    #[inline(never)]
    fn look(&self, size: usize) -> Room {
        if self.left.fetch_sub(size as i64, Ordering::Relaxed) >= size as i64 {
            return Room::Fits;
        }
        // Milliseconds from 1: 0 is "never".
        let now = self.epoch.elapsed().as_millis() as u64 + 1;
        let read_at = self.read_at.load(Ordering::Relaxed);
        if read_at == 0 || now - read_at.min(now) >= ASK_AGAIN_MS {
            let free = self.free_bytes().map_or(i64::MAX, |free| i64::try_from(free).unwrap_or(i64::MAX));
            self.read_at.store(now, Ordering::Relaxed);
            self.left.store(free.saturating_sub(size as i64), Ordering::Relaxed);
            let fits = free >= size as i64;
            self.is_full.store(!fits, Ordering::Relaxed);
            if fits {
                return Room::Fits;
            }
        }
        if self.is_strict { Room::Refused } else { Room::Spills }
    }
}

/// "memkind_hbw (node 1)".
impl fmt::Display for Placed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.nodes_text())
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
        assert_eq!(placed.to_string(), "nodes (node 0)");
        let block = placed.zalloc(1 << 20);
        assert!(!block.is_null() && Placed::owns(block.addr()) && placed.has(block.addr()));
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
    fn more_than_there_is_does_not_fit() {
        let Ok(placed) = Placed::of_nodes([0].into_iter().collect()) else { return println!("skipped: node 0 is not for us") };
        if placed.free_bytes().is_none() {
            return println!("skipped: the kernel does not say what is free");
        }
        assert_eq!(placed.room(1 << 20), Room::Fits);
        assert_eq!(placed.room(1 << 50), Room::Refused);
    }
}
