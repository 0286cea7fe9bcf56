//! Pools: heaps whose memory obeys a memory policy, for data that are placed rather than paged.
//!
//! A pool is one range of reserved addresses with one policy (mbind(2)), set once: no system call per allocation, and whose a block is
//! can be told from its address. mimalloc keeps the heap, in an arena of its own that nothing else comes from; larger blocks pass
//! small caches of the thread (`medium`, `large`). What is freed goes back to the kernel, apart from those caches.
//!
//! A pool does not judge whether its nodes have room: a block is addresses, pages come at first touch. Callers who must know ask
//! `sys::numa::free_bytes` first. Pools live as long as the process. Rejected: binding every large block by itself, which is a
//! system call and a kernel mapping per block, as memkind has it.

mod ffi;
mod large;
mod medium;
mod threads;

use nearfar_core::addr::{Extent, PAGE, round_down, round_up};
use nearfar_sys::errno::Errno;
use nearfar_sys::map;
use nearfar_sys::numa::{self, MemoryPolicy};
use nearfar_sys::rlimit::{self, Limit};
use nearfar_sys::{process, thread};
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI64, AtomicPtr, AtomicU32, AtomicUsize, Ordering};

/// What realloc(3) does where a block cannot stay: the first `size` of `old` bytes of `block` go to `new`, and `block` is freed. Returns
/// `new`; null leaves all as it was.
///
/// # Safety
/// `block` is a live block of `old` bytes, which `free` takes, and unless `new` is null it is not used afterwards. `new` is null or
/// another block, of `size` bytes.
#[inline(always)]
pub unsafe fn moved(
    block: *mut c_void,
    old: usize,
    new: *mut c_void,
    size: usize,
    free: impl FnOnce(*mut c_void),
) -> *mut c_void {
    if !new.is_null() {
        // SAFETY: two blocks of at least so many bytes, as the caller says.
        unsafe { new.cast::<u8>().copy_from_nonoverlapping(block.cast(), old.min(size)) };
        free(block);
    }
    new
}

/// Most pools of a process.
pub const MOST_POOLS: usize = 64;
/// Pools begin and end at multiples of this, mimalloc's segment.
const UNIT: usize = 32 << 20;
/// Address space of a pool where nothing limits it; blocks of all sizes together cannot be more.
const ROOM: usize = 1 << 40;
/// mimalloc aligns blocks below this to 8 bytes, and programs rely on 16 (they tag pointers).
const LEAST: usize = 16;
/// Bytes of large blocks that a thread counts by itself.
const MOST_PENDING: u64 = 2 << 20;
/// Blocks of zeros from this size on are discarded rather than written: larger than what threads keep.
const ZEROED_BY_KERNEL: usize = 8 << 20;
/// Largest request that makes sense: differences of pointers into the block must fit.
const LARGEST: usize = isize::MAX as usize;

/// Largest alignment that a pool gives: mimalloc cannot go beyond half of its segment in a given arena.
pub const MOST_ALIGN: usize = UNIT / 2;

/// Which pages a pool is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PoolPages {
    /// As the system's setting of transparent huge pages has it.
    #[default]
    Default,
    /// Small ones only: interleaving goes by page.
    NoHuge,
    /// From the kernel's reserve of 2 MiB pages; all of them are taken from the reserve when the pool is made.
    HugeTlb,
}

/// What a pool is to be.
#[derive(Clone, Debug, Default)]
pub struct PoolSpec {
    /// Where its pages come from; `None`: as the thread that touches them first has it.
    pub policy: Option<MemoryPolicy>,
    /// Their size.
    pub pages: PoolPages,
    /// Bytes of address space; `None`: plenty.
    pub most: Option<usize>,
}

/// A heap with a policy.
pub struct Pool {
    id: usize,
    range: Extent,
    arena: ffi::ArenaId,
    spec: PoolSpec,
    /// Bytes of blocks above [`large::LEAST`] that are given out.
    live: AtomicI64,
}

static POOLS: [AtomicPtr<Pool>; MOST_POOLS] = [const { AtomicPtr::new(null_mut()) }; MOST_POOLS];
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// The process one of whose threads makes a pool, or 0.
static MAKER: AtomicU32 = AtomicU32::new(0);

/// The turn of one thread to make a pool. No mutex: the child of a fork in that moment must be able to go on.
struct Making;

impl Making {
    fn begin() -> Self {
        let own = process::pid();
        loop {
            let maker = MAKER.load(Ordering::Relaxed);
            // Another number: a thread of the parent, which is not here.
            if maker != own && MAKER.compare_exchange(maker, own, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                return Self;
            }
            thread::give_way();
        }
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        MAKER.store(0, Ordering::Release);
    }
}

impl Pool {
    /// Makes a pool, for the life of the process.
    ///
    /// # Errors
    /// ENOMEM without address space (or huge pages), EAGAIN when there are [`MOST_POOLS`], and what mbind(2) says: EINVAL for a node
    /// that is not there, EPERM and ENOSYS where NUMA calls are not to be had.
    pub fn create(spec: &PoolSpec) -> Result<&'static Self, Errno> {
        let _making = Making::begin();
        let id = COUNT.load(Ordering::Relaxed);
        if id >= MOST_POOLS {
            return Err(Errno::EAGAIN);
        }
        ffi::configure();
        let range = reserve(spec)?;
        let pool = prepare(range, spec).and_then(|()| {
            let arena = ffi::new_arena(range, spec.pages == PoolPages::HugeTlb).ok_or(Errno::ENOMEM)?;
            Ok(Box::leak(Box::new(Self { id, range, arena, spec: spec.clone(), live: AtomicI64::new(0) })))
        });
        let pool: &'static Self = pool.inspect_err(|_| {
            // SAFETY: reserved just now, and nobody has it.
            let _ = unsafe { map::munmap(range) };
        })?;
        POOLS[id].store(std::ptr::from_ref(pool).cast_mut(), Ordering::Release);
        COUNT.store(id + 1, Ordering::Release);
        Ok(pool)
    }

    /// The pool that `addr` lies in. Some ns: one comparison per pool.
    #[inline]
    pub fn of(addr: usize) -> Option<&'static Self> {
        Self::all().find(|pool| addr.wrapping_sub(pool.range.start) < pool.range.len())
    }

    /// All pools of the process.
    #[inline]
    pub fn all() -> impl Iterator<Item = &'static Self> {
        let count = COUNT.load(Ordering::Acquire);
        POOLS[..count].iter().filter_map(|slot| {
            // SAFETY: published after it was built, never changed or freed.
            unsafe { slot.load(Ordering::Acquire).as_ref() }
        })
    }

    /// Number of this pool in the process.
    pub fn id(&self) -> usize {
        self.id
    }

    /// Where its blocks lie.
    pub fn range(&self) -> Extent {
        self.range
    }

    /// What it was made of.
    pub fn spec(&self) -> &PoolSpec {
        &self.spec
    }

    /// Bytes that are given out in blocks above 64 KiB; what other threads have just done may be missing, up to 2 MiB for each. Small blocks are not counted: it would cost as much as allocating them.
    pub fn live_bytes(&self) -> u64 {
        self.settle();
        u64::try_from(self.live.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// A block, aligned to 16 bytes; null when there is no more room. `errno` is not set.
    #[inline]
    pub fn malloc(&self, size: usize) -> *mut c_void {
        if size > large::LEAST {
            return self.large(size, false);
        }
        let Some(local) = threads::local(self) else { return null_mut() };
        if size > medium::LEAST
            && let Some(block) = local.medium.take(size)
        {
            return block;
        }
        // SAFETY: the heap is this thread's, and lives until the thread ends.
        unsafe { ffi::mi_heap_malloc(local.heap, size.max(LEAST)) }
    }

    /// A block of zeros.
    #[inline]
    pub fn zalloc(&self, size: usize) -> *mut c_void {
        if size > large::LEAST {
            return self.large(size, true);
        }
        let Some(local) = threads::local(self) else { return null_mut() };
        // SAFETY: as for `malloc`. Kept blocks are not asked: a fresh one need not be written.
        unsafe { ffi::mi_heap_zalloc(local.heap, size.max(LEAST)) }
    }

    #[cold]
    #[inline(never)]
    fn large(&self, size: usize, zeroed: bool) -> *mut c_void {
        if size > LARGEST {
            return null_mut();
        }
        if let Some((block, bytes)) = large::take(self.id, size) {
            if zeroed {
                // SAFETY: a block of at least `size` bytes that nobody else has.
                unsafe { block.cast::<u8>().write_bytes(0, size) };
            }
            self.note_live(bytes as i64);
            return block;
        }
        let Some(local) = threads::local(self) else { return null_mut() };
        // mimalloc writes zeros over what was used before, which takes memory that the program may never touch.
        let by_kernel = zeroed && size >= ZEROED_BY_KERNEL;
        // SAFETY: as for `malloc`.
        let block = unsafe {
            if zeroed && !by_kernel { ffi::mi_heap_zalloc(local.heap, size) } else { ffi::mi_heap_malloc(local.heap, size) }
        };
        if by_kernel && !block.is_null() {
            zero(Extent::new(block.addr(), size));
        }
        self.count(block);
        block
    }

    /// A block aligned to `align`, a power of two; null for more than [`MOST_ALIGN`].
    pub fn memalign(&self, align: usize, size: usize) -> *mut c_void {
        if align <= LEAST {
            return self.malloc(size);
        }
        if size > LARGEST || align > MOST_ALIGN {
            return null_mut();
        }
        let Some(local) = threads::local(self) else { return null_mut() };
        // SAFETY: as for `malloc`.
        let block = unsafe { ffi::mi_heap_malloc_aligned(local.heap, size.max(LEAST), align) };
        self.count(block);
        block
    }

    /// Counts a block that is given out, if it is large.
    fn count(&self, block: *const c_void) {
        if block.is_null() {
            return;
        }
        // SAFETY: a live block.
        let bytes = unsafe { ffi::mi_usable_size(block) };
        if bytes > large::LEAST {
            self.note_live(bytes as i64);
        }
    }

    /// Counts large blocks, in steps: threads that allocate and free in a loop do not meet in the counter.
    fn note_live(&self, bytes: i64) {
        let Some(local) = threads::present(self) else {
            self.live.fetch_add(bytes, Ordering::Relaxed);
            return;
        };
        local.pending.set(local.pending.get() + bytes);
        if local.pending.get().unsigned_abs() > MOST_PENDING {
            self.settle();
        }
    }

    /// Counts what this thread has not counted yet.
    fn settle(&self) {
        if let Some(local) = threads::present(self) {
            self.live.fetch_add(local.pending.replace(0), Ordering::Relaxed);
        }
    }

    /// `block` with room for `size` bytes, in this pool; null when there is no room, and `block` is then as it was.
    ///
    /// # Safety
    /// `block` is null or a live block of any pool; unless the result is null it is not used afterwards.
    pub unsafe fn realloc(&self, block: *mut c_void, size: usize) -> *mut c_void {
        if block.is_null() {
            return self.malloc(size);
        }
        // SAFETY: passed on to the caller.
        let old = unsafe { Self::usable_size(block) };
        let here = block.addr().wrapping_sub(self.range.start) < self.range.len();
        // In place while more than half of it is used; what there is no smaller block for stays as well.
        if here && size <= old && size.max(LEAST) > old / 2 {
            return block;
        }
        // SAFETY: a live block, which the caller gives up, and a new one.
        unsafe { moved(block, old, self.malloc(size), size, |block| Self::free(block)) }
    }

    /// Gives a block back.
    ///
    /// # Safety
    /// `block` is a live block of any pool, not used afterwards.
    #[inline]
    pub unsafe fn free(block: *mut c_void) {
        // SAFETY: passed on to the caller.
        let bytes = unsafe { ffi::mi_usable_size(block) };
        if bytes > medium::LEAST {
            // SAFETY: passed on to the caller.
            return unsafe { Self::free_larger(block, bytes) };
        }
        // SAFETY: passed on to the caller.
        unsafe { ffi::mi_free(block) }
    }

    /// # Safety
    /// As for `free`; `bytes` is the block's usable size.
    #[inline]
    unsafe fn free_larger(block: *mut c_void, bytes: usize) {
        let Some(pool) = Self::of(block.addr()) else { return };
        let kept = if bytes > large::LEAST {
            pool.note_live(-(bytes as i64));
            large::keep(pool.id, block, bytes, threads::watch)
        } else {
            // SAFETY: passed on to the caller.
            threads::present(pool).is_some_and(|local| unsafe { local.medium.keep(block, bytes) })
        };
        if !kept {
            // SAFETY: passed on to the caller.
            unsafe { ffi::mi_free(block) }
        }
    }

    /// Bytes that the block has room for.
    ///
    /// # Safety
    /// `block` is a live block of any pool.
    #[inline]
    pub unsafe fn usable_size(block: *const c_void) -> usize {
        // SAFETY: passed on to the caller.
        unsafe { ffi::mi_usable_size(block) }
    }

    /// Says that the process uses mimalloc for a heap of its own and has set it up: pools then leave its settings alone.
    pub fn keep_settings() {
        ffi::IS_SET_UP.store(true, Ordering::Relaxed);
    }

    /// Gives back to the kernel what this thread and the pools hold without using it.
    pub fn trim() {
        large::give_up();
        threads::give_up();
        // SAFETY: takes no pointer; works on the heaps of this thread and on what belongs to none.
        unsafe { ffi::mi_collect(true) };
    }
}

/// Makes `range`, a block that nobody has yet, read as zeros without taking memory for it.
fn zero(range: Extent) {
    let (start, end) = (range.start.next_multiple_of(PAGE), round_down(range.end, PAGE));
    let pages = Extent { start, end: end.max(start) };
    // SAFETY: the inside of a block that is being handed out.
    let rest = match unsafe { map::madvise(pages, libc::MADV_DONTNEED) } {
        Ok(()) => [Extent { start: range.start, end: start }, Extent { start: pages.end, end: range.end }],
        // Pages of the reserve cannot be discarded before Linux 5.18.
        Err(_) => [range, Extent { start: range.end, end: range.end }],
    };
    for part in rest {
        // SAFETY: as above.
        unsafe { (part.start as *mut u8).write_bytes(0, part.len()) };
    }
}

/// Address space for a pool: less where it is limited.
fn reserve(spec: &PoolSpec) -> Result<Extent, Errno> {
    // Four times the limit would be refused for one pool, and several must fit beside the program.
    let limited = rlimit::limit(Limit::AddressSpace).map(|bytes| round_down(bytes as usize / 4, UNIT).max(2 * UNIT));
    let mut bytes = spec.most.or(limited).unwrap_or(ROOM);
    loop {
        let len = round_up(bytes, UNIT).ok_or(Errno::ENOMEM)?;
        match reserve_exactly(len, spec.pages) {
            Err(errno) if errno == Errno::ENOMEM && spec.most.is_none() && bytes > 4 * UNIT => bytes /= 4,
            result => return result,
        }
    }
}

fn reserve_exactly(len: usize, pages: PoolPages) -> Result<Extent, Errno> {
    let huge = if pages == PoolPages::HugeTlb { libc::MAP_HUGETLB } else { libc::MAP_NORESERVE };
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | huge;
    // One unit more, to begin at a multiple of it; huge pages are not wasted on that.
    // Writable only as far as it is used: all that is counts against limits (ulimit -d, overcommit_memory=2) and is filled by mlockall(2).
    let (ask, prot) = if pages == PoolPages::HugeTlb { (len, map::RW) } else { (len + UNIT, libc::PROT_NONE) };
    // SAFETY: at no fixed address.
    let start = unsafe { map::mmap(0, ask, prot, flags, -1, 0)? };
    if pages == PoolPages::HugeTlb {
        return Ok(Extent::new(start, len));
    }
    let whole = Extent::new(start, ask);
    let first = round_up(start, UNIT).ok_or(Errno::ENOMEM)?;
    for rest in [Extent { start: whole.start, end: first }, Extent { start: first + len, end: whole.end }] {
        if !rest.is_empty() {
            // SAFETY: reserved just now, and nobody has it.
            unsafe { map::munmap(rest)? };
        }
    }
    Ok(Extent::new(first, len))
}

fn prepare(range: Extent, spec: &PoolSpec) -> Result<(), Errno> {
    if spec.pages == PoolPages::NoHuge {
        // SAFETY: ours; the advice concerns the size of pages to come. Kernels without huge pages refuse it, and need it not.
        let _ = unsafe { map::madvise(range, libc::MADV_NOHUGEPAGE) };
    }
    let Some(policy) = &spec.policy else { return Ok(()) };
    numa::set_range(range, policy, false).map_err(|error| match error {
        numa::NumaError::Unsupported => Errno(libc::ENOSYS),
        numa::NumaError::Denied => Errno(libc::EPERM),
        numa::NumaError::NoSuchNode(_) => Errno::EINVAL,
        numa::NumaError::Other(errno) => errno,
    })
}

#[cfg(test)]
mod tests;
