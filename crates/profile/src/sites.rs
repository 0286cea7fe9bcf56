//! Call sites: who allocates, by the return addresses on the stack.
//!
//! Unwinding costs microseconds. So for each stack that was unwound it is remembered where on the stack each return address lies. When
//! the same caller comes again with the stack pointer at the same place and all these slots hold the same addresses, it is the same
//! stack. Slots are read only between the stack pointer and the end of the thread's stack: a shorter one may lie now where a longer
//! one lay, and on stacks that the program has made itself each call is unwound. The memory is one table for all threads (their stacks lie apart), without locks: an entry that changes while it is read, or
//! is being written by whoever was interrupted, counts as not there.

use crate::python::{DEPTH as SCRIPT_DEPTH, Python, Raw};
use nearfar_core::addr::Extent;
use nearfar_core::profile::record::{ScriptFrame, Site, SiteId};
use nearfar_sys::errno::Errno;
use nearfar_sys::futex::Lock;
use nearfar_sys::signal::Blocked;
use nearfar_sys::{map, thread};
use std::cell::{Cell, UnsafeCell};
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};

/// Frames looked at.
pub const DEPTH: usize = 32;
/// Stacks remembered; a power of two.
const ENTRIES: usize = 4096;
/// Pairs of a stack and a script remembered; a power of two.
const PAIRS: usize = 8192;
/// Sites told apart; more share number 0. A program that builds its code as it runs may have any number.
const MOST_SITES: usize = 200_000;

/// A remembered stack. `version` is odd while it is written.
#[repr(C, align(64))]
struct Entry {
    version: AtomicU64,
    caller: AtomicUsize,
    here: AtomicUsize,
    site: AtomicU32,
    len: AtomicU32,
    slots: [(AtomicUsize, AtomicUsize); DEPTH],
}

#[derive(Default)]
struct Table {
    by_stack: HashMap<Box<[u64]>, SiteId>,
    sites: Vec<Site>,
}

/// All call sites of the process.
pub struct Sites {
    cache: Extent,
    pairs: Extent,
    lock: Lock,
    table: UnsafeCell<Table>,
    /// Code of this library, whose frames are left out.
    own: Extent,
    /// The script's interpreter.
    pub python: Python,
}

// SAFETY: the table is reached under the lock; the rest is atomic.
unsafe impl Sync for Sites {}
// SAFETY: as above.
unsafe impl Send for Sites {}

fn mix(one: usize, other: usize) -> u64 {
    let mixed = (one as u64 ^ (other as u64).rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 29
}

/// Return addresses and where they lie.
struct Walk {
    own: Extent,
    /// In the frame of `find`: what lies further in is ours.
    here: usize,
    frames: [usize; DEPTH],
    slots: [usize; DEPTH],
    len: usize,
    /// All slots hold what they should.
    whole: bool,
}

unsafe extern "C" {
    fn _Unwind_Backtrace(each: extern "C" fn(*mut c_void, *mut c_void) -> c_int, data: *mut c_void) -> c_int;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
    fn _Unwind_GetCFA(context: *mut c_void) -> usize;
}

extern "C" fn step(context: *mut c_void, walk: *mut c_void) -> c_int {
    const GO_ON: c_int = 0;
    const STOP: c_int = 5;
    // SAFETY: the local of `unwind`, which nobody else uses meanwhile, and the context that the unwinder passes.
    let (walk, addr, frame) = unsafe { (&mut *walk.cast::<Walk>(), _Unwind_GetIP(context), _Unwind_GetCFA(context)) };
    if addr == 0 || walk.len >= DEPTH {
        return STOP;
    }
    // What the unwinder tells as the frame is where the stack pointer is when the call returns: just behind the return address.
    let slot = frame.wrapping_sub(size_of::<usize>());
    if walk.own.contains(addr) || slot < walk.here {
        return GO_ON;
    }
    walk.frames[walk.len] = addr;
    walk.slots[walk.len] = slot;
    // SAFETY: a word of the stack that the unwinder has just read, or one beside it.
    walk.whole &= cfg!(target_arch = "x86_64") && slot.is_multiple_of(8) && unsafe { (slot as *const usize).read() } == addr;
    walk.len += 1;
    GO_ON
}

impl Sites {
    /// None yet; `own` is the code of this library.
    ///
    /// # Errors
    /// There is no memory.
    pub fn new(own: Extent) -> Result<Self, Errno> {
        // SAFETY: not fixed: the kernel picks free space. Never unmapped.
        let map = |len: usize| unsafe { map::mmap(0, len, map::RW, map::ANON, -1, 0) }.map(|start| Extent::new(start, len));
        let (cache, pairs) = (map(ENTRIES * size_of::<Entry>())?, map(PAIRS * 8)?);
        let (lock, table) = (Lock::new(), UnsafeCell::new(Table::default()));
        Ok(Self { cache, pairs, lock, table, own, python: Python::new() })
    }

    fn entry(&self, caller: usize, here: usize) -> &Entry {
        let index = mix(caller, here) as usize % ENTRIES;
        // SAFETY: within the mapping, which is zeroed (a valid value), aligned to pages, and stays.
        unsafe { &*(self.cache.start as *const Entry).add(index) }
    }

    /// The site of a call that returns to `caller` (0: not known); one for the same stack, and with Python for the same lines.
    #[inline(never)]
    pub fn find(&self, caller: usize) -> SiteId {
        let local = 0u8;
        let here = std::hint::black_box(&raw const local).addr();
        let entry = self.entry(caller, here);
        let native = match remembered(entry, caller, here, stack_end(caller, here)) {
            Some(site) => site,
            None => self.unwind(entry, caller, here),
        };
        match self.python.frames() {
            Some(raw) => self.with_script(native, &raw),
            None => native,
        }
    }

    #[cold]
    #[inline(never)]
    fn unwind(&self, entry: &Entry, caller: usize, here: usize) -> SiteId {
        let mut walk = Walk { own: self.own, here, frames: [0; DEPTH], slots: [0; DEPTH], len: 0, whole: true };
        // SAFETY: `step` gets back the pointer to the local. Reads the stack and unwind tables only.
        unsafe { _Unwind_Backtrace(step, (&raw mut walk).cast()) };
        let frames: [u64; DEPTH] = walk.frames.map(|addr| addr as u64);
        let frames = &frames[..walk.len];
        let site = self.intern(frames, || Site { frames: frames.to_vec(), ..Site::default() });
        if walk.whole && walk.len > 0 {
            remember(entry, caller, here, site, &walk);
        }
        site
    }

    /// The site for a stack and a script.
    fn with_script(&self, native: SiteId, raw: &Raw) -> SiteId {
        let hash = raw.iter().fold(u64::from(native), |hash, &(code, at, text)| mix(hash as usize ^ code ^ text, at));
        // Upper 40 bits of the hash, and the number of the site in the lower 24, which never is 0 here.
        // SAFETY: within the mapping, zeroed, aligned.
        let pair = unsafe { &*(self.pairs.start as *const AtomicU64).add(hash as usize % PAIRS) };
        let word = pair.load(Ordering::Relaxed);
        if word >> 24 == hash >> 24 && word & 0xff_ffff != 0 {
            return (word & 0xff_ffff) as SiteId;
        }
        let mut key = [0u64; 3 * SCRIPT_DEPTH + 2];
        key[1] = u64::from(native);
        for (key, &(code, instruction, text)) in key[2..].chunks_exact_mut(3).zip(raw) {
            key.copy_from_slice(&[code as u64, instruction as u64, text as u64]);
        }
        let site = self.intern_script(native, raw, &key);
        if site != 0 {
            pair.store(hash >> 24 << 24 | u64::from(site), Ordering::Relaxed);
        }
        site
    }

    #[cold]
    #[inline(never)]
    fn intern_script(&self, native: SiteId, raw: &Raw, key: &[u64]) -> SiteId {
        let script: Vec<ScriptFrame> = {
            let _signals = Blocked::all();
            self.python.names(raw)
        };
        let frames = self.site(native).map(|site| site.frames).unwrap_or_default();
        self.intern(key, || Site { frames, script, ..Site::default() })
    }

    /// The number of `key`, which begins with an address, or with 0 if it is of a script.
    fn intern(&self, key: &[u64], make: impl FnOnce() -> Site) -> SiteId {
        self.with(|table| {
            if let Some(&site) = table.by_stack.get(key) {
                return site;
            }
            if table.sites.len() >= MOST_SITES {
                return 0;
            }
            let id = table.sites.len() as SiteId + 1;
            table.sites.push(Site { id, ..make() });
            table.by_stack.insert(key.into(), id);
            id
        })
    }

    /// What a number stands for.
    pub fn site(&self, id: SiteId) -> Option<Site> {
        self.with(|table| table.sites.get((id as usize).checked_sub(1)?).cloned())
    }

    /// No handler runs while the lock is held: it might allocate, and wait for itself.
    fn with<R>(&self, act: impl FnOnce(&mut Table) -> R) -> R {
        let _signals = Blocked::all();
        self.lock.acquire();
        // SAFETY: the lock is held, so this is the only reference; `act` does not come back here.
        let result = act(unsafe { &mut *self.table.get() });
        self.lock.release();
        result
    }

    /// Before fork.
    pub fn hold(&self) {
        self.lock.acquire();
    }

    /// After fork, in the parent, and in the child.
    pub fn release(&self) {
        self.lock.release();
    }
}

thread_local! {
    /// The stack of this thread: first address, and the one behind the last; (0, 0): not asked for yet, an empty one: not known.
    static STACK: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

/// Where the stack ends that `here` is on; `here` itself when that is not known.
#[inline]
fn stack_end(caller: usize, here: usize) -> usize {
    let (mut start, mut end) = STACK.get();
    // The C library allocates to tell: not while a handler, which may call mmap, has interrupted an allocation.
    if end == 0 && caller != 0 {
        (start, end) = own_stack();
    }
    if (start..end).contains(&here) { end } else { here }
}

#[cold]
fn own_stack() -> (usize, usize) {
    // SAFETY: the C library gives every thread a valid location of its own.
    let errno = unsafe { &mut *libc::__errno_location() };
    let kept = *errno;
    let stack = thread::stack().map_or((1, 1), |stack| (stack.start, stack.end));
    *errno = kept;
    STACK.set(stack);
    stack
}

#[inline]
fn remembered(entry: &Entry, caller: usize, here: usize, end: usize) -> Option<SiteId> {
    let version = entry.version.load(Ordering::Acquire);
    if version & 1 == 1 || entry.caller.load(Ordering::Relaxed) != caller || entry.here.load(Ordering::Relaxed) != here {
        return None;
    }
    let (site, len) = (entry.site.load(Ordering::Relaxed), entry.len.load(Ordering::Relaxed) as usize);
    // What was read so far belongs together, so that the slots are those of this place.
    let mut copy = [(0usize, 0usize); DEPTH];
    for (copy, slot) in copy.iter_mut().zip(&entry.slots[..len.min(DEPTH)]) {
        *copy = (slot.0.load(Ordering::Relaxed), slot.1.load(Ordering::Relaxed));
    }
    fence(Ordering::Acquire);
    if entry.version.load(Ordering::Relaxed) != version || version == 0 {
        return None;
    }
    for &(slot, addr) in &copy[..len.min(DEPTH)] {
        // What is remembered may be of another thread, whose stack was longer.
        if slot < here || slot >= end || end - slot < size_of::<usize>() {
            return None;
        }
        // SAFETY: between `here`, which is on this thread's stack, and its end.
        if unsafe { (slot as *const usize).read_volatile() } != addr {
            return None;
        }
    }
    Some(site)
}

fn remember(entry: &Entry, caller: usize, here: usize, site: SiteId, walk: &Walk) {
    let version = entry.version.load(Ordering::Relaxed);
    if version & 1 == 1 || entry.version.compare_exchange(version, version + 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
        return;
    }
    fence(Ordering::Release);
    entry.caller.store(caller, Ordering::Relaxed);
    entry.here.store(here, Ordering::Relaxed);
    entry.site.store(site, Ordering::Relaxed);
    entry.len.store(walk.len as u32, Ordering::Relaxed);
    for (at, slot) in entry.slots[..walk.len].iter().enumerate() {
        slot.0.store(walk.slots[at], Ordering::Relaxed);
        slot.1.store(walk.frames[at], Ordering::Relaxed);
    }
    entry.version.store(version + 2, Ordering::Release);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sites() -> Sites {
        Sites::new(Extent { start: 0, end: 0 }).unwrap()
    }

    #[inline(never)]
    fn one(sites: &Sites) -> SiteId {
        std::hint::black_box(sites.find(1))
    }

    #[inline(never)]
    fn other(sites: &Sites) -> SiteId {
        std::hint::black_box(sites.find(1))
    }

    #[inline(never)]
    fn through(sites: &Sites, depth: usize) -> SiteId {
        if depth == 0 { one(sites) } else { std::hint::black_box(through(sites, depth - 1)) }
    }

    #[test]
    fn places_are_told_apart() {
        let sites = sites();
        let mut found = Vec::new();
        // As often as cannot be known to the compiler, which would write the calls out.
        for _ in 0..std::hint::black_box(3) {
            found.push([one(&sites), other(&sites), through(&sites, 0), through(&sites, 1), through(&sites, 40)]);
        }
        assert!(found.iter().all(|ids| *ids == found[0]), "{found:?}");
        let mut ids = found[0].to_vec();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 5, "{found:?}");
        let site = sites.site(found[0][0]).unwrap();
        assert!(site.frames.len() > 3 && site.frames.len() <= DEPTH && site.script.is_empty());
        assert_eq!(sites.site(found[0][4]).unwrap().frames.len(), DEPTH);
    }

    #[test]
    fn the_same_in_other_threads() {
        let sites = sites();
        std::thread::scope(|scope| {
            let crew: Vec<_> = (0..4).map(|_| scope.spawn(|| (0..2000).map(|n| through(&sites, n % 7)).max())).collect();
            let ids: Vec<_> = crew.into_iter().map(|one| one.join().unwrap()).collect();
            assert!(ids.iter().all(|id| *id <= Some(28)), "{ids:?}");
        });
    }

    #[test]
    fn slots_beyond_the_stack_are_not_read() {
        let sites = sites();
        let local = 0u8;
        let here = (&raw const local).addr();
        let end = stack_end(1, here);
        assert!(end > here && stack_end(0, here) == end && stack_end(0, 4096) == 4096);
        // As a stack left it that reached further: nothing is mapped there, or something else.
        let mut walk = Walk { own: sites.own, here, frames: [7; DEPTH], slots: [end; DEPTH], len: 1, whole: true };
        let entry = sites.entry(1, here);
        remember(entry, 1, here, 5, &walk);
        assert_eq!(remembered(entry, 1, here, end), None);
        let gone = map::reserve(1 << 16).unwrap();
        walk.slots[0] = gone.start;
        remember(entry, 1, here, 5, &walk);
        assert_eq!(remembered(entry, 1, here, end), None);
        // On a stack of the program's own making nothing is known.
        assert_eq!(remembered(entry, 1, here, here), None);
        let word = 7usize;
        walk.slots[0] = (&raw const word).addr();
        if walk.slots[0] > here {
            remember(entry, 1, here, 5, &walk);
            assert_eq!(remembered(entry, 1, here, end), Some(5));
        }
    }

    #[test]
    fn again_is_cheap() {
        let sites = sites();
        let start = std::time::Instant::now();
        let rounds = 200_000;
        let same = (0..rounds).map(|_| one(&sites)).all(|id| id == 1);
        let each = start.elapsed().as_nanos() / rounds;
        println!("{each} ns");
        assert!(same && each < 1000, "{each} ns, unwinding each time?");
    }
}
