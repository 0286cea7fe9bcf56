//! The heap behind ours: the malloc family that comes next in the order of loading, the C library's as a rule. For a library that
//! takes the place of malloc and wants most calls to go on as if it were not there, and for its own Rust code (`NextHeap`), which must
//! not come back through its own malloc.
//!
//! Looking the names up may itself allocate, and the loader may before there is anything behind us: a few blocks come from a small
//! area here. All names are looked up at the first call, which is the loader's or a constructor's as a rule, before there are threads.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::UnsafeCell;
use std::ffi::{CStr, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

type Void = *mut c_void;

/// The names, in the order of their numbers.
const NAMES: [&CStr; 6] = [c"malloc", c"calloc", c"realloc", c"memalign", c"free", c"malloc_usable_size"];
static FOUND: [AtomicPtr<c_void>; NAMES.len()] = [const { AtomicPtr::new(null_mut()) }; NAMES.len()];

/// Makes one function out of a name's number, its type, and what is called while this thread looks the names up.
macro_rules! next {
    ($(#[$doc:meta])* $vis:vis fn $function:ident($($arg:ident: $kind:ty),*) $(-> $result:ty)?, $number:literal, $fallback:path) => {
        $(#[$doc])*
        #[inline(always)]
        $vis unsafe fn $function($($arg: $kind),*) $(-> $result)? {
            let mut found = FOUND[$number].load(Ordering::Acquire);
            if found.is_null() {
                found = look_up($number);
            }
            if found.is_null() {
                // SAFETY: passed on to the caller.
                return unsafe { $fallback($($arg),*) };
            }
            // SAFETY: a function of this name, whose type is that of C. The caller keeps its contract.
            unsafe {
                let next: unsafe extern "C" fn($($kind),*) $(-> $result)? = std::mem::transmute(found);
                next($($arg),*)
            }
        }
    };
}

/// The next function of this number; null for the thread that is looking names up.
#[cold]
#[inline(never)]
fn look_up(number: usize) -> Void {
    /// Process and thread that look; 0 for nobody.
    static LOOKING: AtomicU64 = AtomicU64::new(0);
    // SAFETY: no pointers are involved.
    let (pid, tid) = unsafe { (libc::getpid() as u64, libc::syscall(libc::SYS_gettid) as u64) };
    let me = pid << 32 | tid;
    loop {
        let looking = LOOKING.load(Ordering::Acquire);
        if looking == me {
            return null_mut();
        }
        // A thread that looked when its process forked is not in the child.
        let is_free = looking == 0 || looking >> 32 != pid;
        if is_free && LOOKING.compare_exchange(looking, me, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            break;
        }
        // SAFETY: no pointers are involved.
        unsafe { libc::sched_yield() };
    }
    for (name, found) in NAMES.iter().zip(&FOUND) {
        if found.load(Ordering::Relaxed).is_null() {
            // SAFETY: a C string.
            found.store(unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }, Ordering::Release);
        }
    }
    LOOKING.store(0, Ordering::Release);
    FOUND[number].load(Ordering::Relaxed)
}

/// Looks all names up; before there are threads, best.
pub fn prepare() {
    if FOUND.iter().any(|found| found.load(Ordering::Acquire).is_null()) {
        look_up(0);
    }
}

/// Blocks for a thread that is looking names up. They are never used again.
mod early {
    use super::{AtomicUsize, Ordering, UnsafeCell, Void, null_mut};

    const BYTES: usize = 64 << 10;
    /// What lies before a block: its size.
    const HEAD: usize = 16;

    #[repr(align(4096))]
    struct Area(UnsafeCell<[u8; BYTES]>);
    // SAFETY: each byte is given out once, and not used by us but for the heads.
    unsafe impl Sync for Area {}
    static AREA: Area = Area(UnsafeCell::new([0; BYTES]));
    static END: AtomicUsize = AtomicUsize::new(0);

    /// True for a block from here.
    #[inline(always)]
    pub fn holds(block: Void) -> bool {
        block.addr().wrapping_sub(AREA.0.get().addr()) < BYTES
    }

    pub unsafe fn memalign(align: usize, size: usize) -> Void {
        let align = align.max(HEAD);
        let place = |end: usize| {
            let start = end.checked_add(HEAD)?.checked_next_multiple_of(align)?;
            start.checked_add(size)?.checked_next_multiple_of(HEAD).filter(|&end| end <= BYTES).map(|end| (start, end))
        };
        let taken = END.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |end| place(end).map(|(_, end)| end));
        let Some((start, _)) = taken.ok().and_then(place) else { return null_mut() };
        let block = AREA.0.get().cast::<u8>().wrapping_add(start);
        // SAFETY: the bytes before the block are of this piece of the area, and aligned.
        unsafe { block.cast::<usize>().sub(2).write(size) };
        block.cast()
    }

    pub unsafe fn malloc(size: usize) -> Void {
        // SAFETY: takes any size.
        unsafe { memalign(HEAD, size) }
    }

    /// The area is of zeros, and nothing is given out twice.
    pub unsafe fn calloc(count: usize, size: usize) -> Void {
        // SAFETY: takes any size.
        count.checked_mul(size).map_or(null_mut(), |bytes| unsafe { malloc(bytes) })
    }

    /// Of what is not from here nothing is known while names are looked up: it stays as it is.
    pub unsafe fn realloc(block: Void, size: usize) -> Void {
        // SAFETY: takes any size.
        if block.is_null() { unsafe { malloc(size) } } else { null_mut() }
    }

    pub unsafe fn free(_: Void) {}

    /// The size of a block from here, 0 for others.
    pub unsafe fn usable_size(block: Void) -> usize {
        // SAFETY: a block from here has its size before it.
        if holds(block) { unsafe { block.cast::<usize>().sub(2).read() } } else { 0 }
    }
}

next! {
    /// malloc(3).
    ///
    /// # Safety
    /// None; the function is the program's.
    pub fn malloc(size: usize) -> Void, 0, early::malloc
}
next! {
    /// calloc(3).
    ///
    /// # Safety
    /// As for `malloc`.
    pub fn calloc(count: usize, size: usize) -> Void, 1, early::calloc
}
next! {
    /// # Safety
    /// As for `realloc`, with a block that is not an early one.
    fn next_realloc(block: Void, size: usize) -> Void, 2, early::realloc
}
next! {
    /// memalign(3).
    ///
    /// # Safety
    /// As for `malloc`.
    pub fn memalign(align: usize, size: usize) -> Void, 3, early::memalign
}
next! {
    /// # Safety
    /// As for `free`, with a block that is not an early one.
    fn next_free(block: Void), 4, early::free
}
next! {
    /// # Safety
    /// As for `usable_size`, with a block that is not an early one.
    fn next_usable_size(block: Void) -> usize, 5, early::usable_size
}

/// realloc(3).
///
/// # Safety
/// `block` is null or a block of this heap; unless the result is null it is not used afterwards.
#[inline(always)]
pub unsafe fn realloc(block: Void, size: usize) -> Void {
    // SAFETY: passed on to the caller.
    unsafe { if early::holds(block) { moved(block, size) } else { next_realloc(block, size) } }
}

/// # Safety
/// As for `realloc`, with an early block.
#[cold]
unsafe fn moved(block: Void, size: usize) -> Void {
    // SAFETY: takes any size.
    let new = unsafe { malloc(size) };
    if !new.is_null() {
        // SAFETY: two blocks of at least so many bytes, one of them new.
        unsafe { new.cast::<u8>().copy_from_nonoverlapping(block.cast(), early::usable_size(block).min(size)) };
    }
    new
}

/// free(3).
///
/// # Safety
/// `block` is null or a block of this heap, not used afterwards.
#[inline(always)]
pub unsafe fn free(block: Void) {
    if !early::holds(block) {
        // SAFETY: passed on to the caller.
        unsafe { next_free(block) }
    }
}

/// malloc_usable_size(3).
///
/// # Safety
/// `block` is null or a block of this heap.
#[inline(always)]
pub unsafe fn usable_size(block: Void) -> usize {
    // SAFETY: passed on to the caller.
    unsafe { if early::holds(block) { early::usable_size(block) } else { next_usable_size(block) } }
}

/// The heap of Rust code in a library that exports malloc.
pub struct NextHeap;

// SAFETY: malloc and memalign give blocks of the size and alignment asked for, which free and realloc take.
unsafe impl GlobalAlloc for NextHeap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: takes any size; alignments of layouts are powers of two.
        unsafe { if layout.align() <= 16 { malloc(layout.size()) } else { memalign(layout.align(), layout.size()) } }.cast()
    }

    unsafe fn dealloc(&self, block: *mut u8, _: Layout) {
        // SAFETY: the caller guarantees a live block of `alloc`.
        unsafe { free(block.cast()) }
    }
}

/// What a library that takes the place of malloc begins and ends with: its own Rust code allocates behind its malloc, so that it never
/// comes back to it; `$start` runs when the library is loaded, `$finish` when the program ends. Not under test, where nothing is exported.
#[macro_export]
macro_rules! library_over_next_heap {
    ($start:path, $finish:path) => {
        #[global_allocator]
        #[cfg(not(test))]
        static OWN: $crate::next_heap::NextHeap = $crate::next_heap::NextHeap;

        #[cfg(not(test))]
        extern "C" fn constructor() {
            $crate::next_heap::prepare();
            $start();
        }

        #[cfg(not(test))]
        extern "C" fn destructor() {
            $finish();
        }

        #[cfg(not(test))]
        #[used]
        #[unsafe(link_section = ".init_array")]
        static CONSTRUCTOR: extern "C" fn() = constructor;

        #[cfg(not(test))]
        #[used]
        #[unsafe(link_section = ".fini_array")]
        static DESTRUCTOR: extern "C" fn() = destructor;
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn early_blocks_are_told_apart_and_keep_their_content() {
        // SAFETY: blocks of the area, which may be freed.
        unsafe {
            let block = early::calloc(10, 10);
            let other = early::memalign(256, 100);
            assert!(early::holds(block) && other.addr().is_multiple_of(256) && usable_size(block) == 100);
            block.cast::<u8>().write_bytes(7, 100);
            assert_eq!(other.cast::<u8>().read(), 0);
            let moved = realloc(block, 200);
            assert!(!early::holds(moved) && (0..100).all(|at| moved.cast::<u8>().add(at).read() == 7));
            free(moved);
            free(other);
            assert!(early::malloc(65 << 10).is_null() && early::malloc(usize::MAX).is_null());
        }
    }

    #[test]
    fn the_heap_behind_is_a_heap() {
        // SAFETY: blocks of this heap, each freed once.
        unsafe {
            let block = malloc(100);
            assert!(usable_size(block) >= 100);
            let block = realloc(block, 10_000);
            assert!(usable_size(block) >= 10_000);
            free(block);
            let block = memalign(4096, 1);
            assert!(block.addr().is_multiple_of(4096));
            free(block);
            let layout = Layout::from_size_align(1000, 64).expect("a layout");
            let block = NextHeap.alloc_zeroed(layout);
            assert!(block.addr().is_multiple_of(64) && *block == 0 && *block.add(999) == 0);
            NextHeap.dealloc(block, layout);
        }
    }
}
