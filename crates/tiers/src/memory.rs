//! Memory: all that a front end may call. One per process.
//!
//! Every method may be called from any thread, at any time, also before `main`, and never touches the memory it manages
//! while it holds the lock. Methods of the mmap family take and return what the system calls of that name do (a raw
//! address, or an errno); ranges that nearfar does not manage go to the kernel unchanged.

use crate::job::Job;
use nearfar_sys::errno::Errno;

/// The managed memory of this process.
pub struct Memory {}

impl Memory {
    /// Starts managing memory for the calling process under `job`. Nothing is paged yet.
    pub fn start(_job: Job) -> Result<Memory, Errno> {
        todo_stub()
    }

    /// True while the calling thread is inside nearfar itself (holds the lock, or is the pager): hooks must then go straight
    /// to the kernel or to the C library, and touch nothing of ours.
    pub fn inside() -> bool {
        false
    }

    /// A block of at least `size` bytes aligned to `align` (a power of two), and whether it reads as zeros. `None`: no memory.
    pub fn alloc(&self, _size: usize, _align: usize) -> Option<(usize, bool)> {
        None
    }

    /// Usable bytes of the block that starts at `addr`; `None` when `alloc` did not return that address.
    pub fn block_size(&self, _addr: usize) -> Option<usize> {
        None
    }

    /// Resizes the block at `addr` in place or by moving its pages (no copying); `None`: no memory, the block is unchanged.
    pub fn resize(&self, _addr: usize, _size: usize) -> Option<usize> {
        None
    }

    /// Frees the block at `addr`; false when `alloc` did not return that address.
    pub fn free(&self, _addr: usize) -> bool {
        false
    }

    /// True when `addr` lies in the part of the arena that `alloc` hands out (no lock; the test of `free` and `realloc`).
    pub fn is_block(&self, _addr: usize) -> bool {
        false
    }

    /// True when `addr` lies in the part of the arena that `mmap` hands out (no lock). The small allocator's memory is there.
    pub fn is_mapped(&self, _addr: usize) -> bool {
        false
    }

    /// mmap(2).
    ///
    /// # Safety
    /// As for the system call.
    pub unsafe fn mmap(&self, _addr: usize, _len: usize, _prot: i32, _flags: i32, _fd: i32, _off: i64) -> Result<usize, Errno> {
        Err(Errno::ENOMEM)
    }

    /// munmap(2).
    ///
    /// # Safety
    /// As for the system call.
    pub unsafe fn munmap(&self, _addr: usize, _len: usize) -> Result<(), Errno> {
        Err(Errno::EINVAL)
    }

    /// mremap(2).
    ///
    /// # Safety
    /// As for the system call.
    pub unsafe fn mremap(&self, _addr: usize, _old: usize, _new: usize, _flags: i32, _to: usize) -> Result<usize, Errno> {
        Err(Errno::EINVAL)
    }

    /// mprotect(2).
    ///
    /// # Safety
    /// As for the system call.
    pub unsafe fn mprotect(&self, _addr: usize, _len: usize, _prot: i32) -> Result<(), Errno> {
        Err(Errno::EINVAL)
    }

    /// madvise(2).
    ///
    /// # Safety
    /// As for the system call.
    pub unsafe fn madvise(&self, _addr: usize, _len: usize, _advice: i32) -> Result<(), Errno> {
        Err(Errno::EINVAL)
    }

    /// mlock(2) and mlock2(2): brings the range to near and keeps it there.
    pub fn mlock(&self, _addr: usize, _len: usize) -> Result<(), Errno> {
        Ok(())
    }

    /// munlock(2).
    pub fn munlock(&self, _addr: usize, _len: usize) -> Result<(), Errno> {
        Ok(())
    }

    /// Takes a static array (.bss) of the program under management: anonymous private memory mapped by others.
    pub fn adopt(&self, _addr: usize, _len: usize) {}

    /// Before fork(2), in the forking thread: brings everything to rest and holds the lock until one of the next two.
    pub fn fork_prepare(&self) {}

    /// After fork(2), in the parent (also when fork failed).
    pub fn fork_parent(&self) {}

    /// After fork(2), in the child.
    pub fn fork_child(&self) {}

    /// At exit: writes gauges a last time. Memory stays served until the process is gone.
    pub fn finish(&self) {}
}

fn todo_stub() -> Result<Memory, Errno> {
    Ok(Memory {})
}
