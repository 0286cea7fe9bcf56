//! The mmap family: private anonymous memory is asked of the arena, everything else of the kernel.
//!
//! Calls on existing ranges go to `Memory` whatever the range, which passes on what it does not manage. Return values and
//! `errno` are those of the C functions. Calls from inside nearfar go straight to the kernel.

use crate::errno;
use crate::lifecycle::managed;
use crate::placing::{self, Mapping, Remap};
use nearfar_core::addr::{Extent, PAGE};
use nearfar_profile::recorder;
use nearfar_sys::errno::{Errno, call};
use nearfar_sys::{map, process};
use std::ffi::{c_int, c_long, c_uint, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

/// Anonymous memory that stays the kernel's: huge pages from its own pool, stacks (the kernel writes signal frames there),
/// and memory that must lie in the low 2 GiB, where the arena is not.
const NOT_OURS: c_int = libc::MAP_HUGETLB | libc::MAP_GROWSDOWN | libc::MAP_STACK | LOW;
#[cfg(target_arch = "x86_64")]
const LOW: c_int = libc::MAP_32BIT;
#[cfg(not(target_arch = "x86_64"))]
const LOW: c_int = 0;

fn is_ours(flags: c_int) -> bool {
    let kind = flags & libc::MAP_TYPE;
    kind == libc::MAP_PRIVATE && flags & libc::MAP_ANONYMOUS != 0 && flags & NOT_OURS == 0
}

/// True when the call may replace what lies at its address, which `Memory` must know of.
fn is_fixed(flags: c_int) -> bool {
    flags & (libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE) != 0
}

fn addr_or_failed(result: Result<usize, Errno>) -> *mut c_void {
    match result {
        Ok(addr) => addr as *mut c_void,
        Err(errno) => {
            errno::set(errno);
            libc::MAP_FAILED
        }
    }
}

fn status(result: Result<(), Errno>) -> c_int {
    match result {
        Ok(()) => 0,
        Err(errno) => {
            errno::set(errno);
            -1
        }
    }
}

/// A range as the kernel is given it; ends beyond the address space are the kernel's to refuse.
fn range(addr: *mut c_void, len: usize) -> Extent {
    Extent { start: addr.addr(), end: addr.addr().wrapping_add(len) }
}

/// The pages of a range; empty when it makes no sense.
fn whole(addr: *mut c_void, len: usize) -> Extent {
    let start = addr.addr();
    let end = len.checked_next_multiple_of(PAGE).and_then(|len| start.checked_add(len)).unwrap_or(start);
    Extent { start, end }
}

/// # Safety
/// The arguments must satisfy the contract of that system call.
unsafe fn kernel(number: c_long, addr: *mut c_void, len: usize, third: usize) -> Result<(), Errno> {
    // SAFETY: passed on to the caller.
    unsafe { call(number, [addr.addr(), len, third, 0, 0, 0]) }.map(|_| ())
}

/// mmap(2).
///
/// # Safety
/// As for the system call.
pub unsafe fn mmap(addr: *mut c_void, len: usize, prot: c_int, flags: c_int, fd: c_int, offset: i64) -> *mut c_void {
    // SAFETY: passed on to the caller.
    let raw = || unsafe { map::mmap(addr.addr(), len, prot, flags, fd, offset) };
    // With MAP_FIXED, what it takes the place of would have to be left out.
    if flags & libc::MAP_FIXED == 0
        && let Some(managed) = managed()
        && let Err(errno) = managed.with(|memory| memory.may_map(len))
    {
        return addr_or_failed(Err(errno));
    }
    if is_fixed(flags) && placing::has_maps() {
        placing::forget_map(range(addr, len));
    }
    if placing::wants_map(len) {
        match placing::place_map(len, prot, flags) {
            Mapping::Ordinary => {}
            Mapping::Refused => return addr_or_failed(Err(Errno::ENOMEM)),
            Mapping::Near(placed) => {
                let result = raw();
                match result {
                    Ok(start) => placed.keep(start),
                    Err(_) => placed.give_up(),
                }
                return addr_or_failed(result);
            }
        }
    }
    let Some(managed) = managed().filter(|_| is_ours(flags) || is_fixed(flags)) else {
        let is_object = recorder::wants(len) && is_ours(flags);
        if recorder::is_on() && flags & libc::MAP_FIXED != 0 && !is_object {
            recorder::unmapped(addr.addr(), len);
        }
        let result = raw();
        if let Ok(start) = result
            && is_object
        {
            recorder::mapped(start, len);
        }
        return addr_or_failed(result);
    };
    // SAFETY: passed on to the caller.
    let result = unsafe { managed.with(|memory| memory.mmap(addr.addr(), len, prot, flags, fd, offset)) };
    if result.is_ok_and(|addr| managed.half(addr).is_none()) {
        managed.overflowed.store(true, Ordering::Relaxed);
    }
    addr_or_failed(result)
}

/// munmap(2).
///
/// # Safety
/// As for the system call.
pub unsafe fn munmap(addr: *mut c_void, len: usize) -> c_int {
    if placing::has_maps() && addr.addr().is_multiple_of(PAGE) {
        placing::forget_map(whole(addr, len));
    }
    status(match managed() {
        // SAFETY: passed on to the caller.
        Some(managed) => unsafe { managed.with(|memory| memory.munmap(addr.addr(), len)) },
        None => {
            if recorder::is_on() {
                recorder::unmapped(addr.addr(), len);
            }
            // SAFETY: passed on to the caller.
            unsafe { map::munmap(range(addr, len)) }
        }
    })
}

/// mremap(2); `to` counts only with `MREMAP_FIXED` or `MREMAP_DONTUNMAP`.
///
/// # Safety
/// As for the system call.
pub unsafe fn mremap(addr: *mut c_void, old: usize, new: usize, flags: c_int, to: *mut c_void) -> *mut c_void {
    let go = || match managed() {
        // SAFETY: passed on to the caller.
        Some(managed) => unsafe { managed.with(|memory| memory.mremap(addr.addr(), old, new, flags, to.addr())) },
        // SAFETY: passed on to the caller.
        None if recorder::is_on() => unsafe {
            if flags & libc::MREMAP_FIXED != 0 {
                recorder::unmapped(to.addr(), new);
            }
            let go = || map::mremap(range(addr, old), new, flags, to.addr());
            if flags & libc::MREMAP_DONTUNMAP != 0 {
                recorder::emptied(addr.addr(), old, go)
            } else {
                recorder::remapped(addr.addr(), old, new, go)
            }
        },
        // SAFETY: passed on to the caller.
        None => unsafe { map::mremap(range(addr, old), new, flags, to.addr()) },
    };
    if flags & libc::MREMAP_FIXED != 0 && placing::has_maps() {
        placing::forget_map(whole(to, new));
    }
    if !(placing::wants_map(new) || placing::has_maps()) {
        return addr_or_failed(go());
    }
    addr_or_failed(match placing::remap(whole(addr, old), new) {
        Remap::Ordinary => go(),
        Remap::Refused => Err(Errno::ENOMEM),
        Remap::Kernel(remapped) => {
            let result = go();
            remapped.done(result.ok());
            result
        }
        // SAFETY: passed on to the caller.
        Remap::Copy => unsafe { copy_map(addr, old, new, flags) },
    })
}

/// mremap(2) of a near mapping into paged memory: by copying.
///
/// # Safety
/// As for the system call.
unsafe fn copy_map(addr: *mut c_void, old: usize, new: usize, flags: c_int) -> Result<usize, Errno> {
    if flags != libc::MREMAP_MAYMOVE {
        return Err(Errno::ENOMEM);
    }
    let Some(managed) = managed() else { return Err(Errno::ENOMEM) };
    // SAFETY: a fresh mapping; the program gives up the old one, which is as long as it says and readable as any that grows.
    unsafe {
        let start = managed.with(|memory| memory.mmap(0, new, map::RW, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0))?;
        std::ptr::copy_nonoverlapping(addr.cast::<u8>(), start as *mut u8, old.min(new));
        munmap(addr, old);
        Ok(start)
    }
}

/// mprotect(2).
///
/// # Safety
/// As for the system call.
pub unsafe fn mprotect(addr: *mut c_void, len: usize, prot: c_int) -> c_int {
    status(match managed() {
        // SAFETY: passed on to the caller.
        Some(managed) => unsafe { managed.with(|memory| memory.mprotect(addr.addr(), len, prot)) },
        // SAFETY: passed on to the caller.
        None => unsafe { map::mprotect(range(addr, len), prot) },
    })
}

/// pkey_mprotect(2): with key -1 it is mprotect; protection keys on paged memory are refused, since the pager could not
/// carry them along.
///
/// # Safety
/// As for the system call.
pub unsafe fn pkey_mprotect(addr: *mut c_void, len: usize, prot: c_int, key: c_int) -> c_int {
    if key == -1 {
        // SAFETY: passed on to the caller.
        return unsafe { mprotect(addr, len, prot) };
    }
    let args = [addr.addr(), len, prot as usize, key as usize, 0, 0];
    let ours = managed().is_some_and(|managed| managed.is_paged(addr.addr()));
    // SAFETY: passed on to the caller.
    status(if ours { Err(Errno::EINVAL) } else { unsafe { call(libc::SYS_pkey_mprotect, args) }.map(|_| ()) })
}

/// # Safety
/// As for madvise(2).
unsafe fn advise(addr: *mut c_void, len: usize, advice: c_int) -> Result<(), Errno> {
    match managed() {
        // SAFETY: passed on to the caller.
        Some(managed) => unsafe { managed.with(|memory| memory.madvise(addr.addr(), len, advice)) },
        // SAFETY: passed on to the caller.
        None => unsafe { map::madvise(range(addr, len), advice) },
    }
}

/// madvise(2).
///
/// # Safety
/// As for the system call.
pub unsafe fn madvise(addr: *mut c_void, len: usize, advice: c_int) -> c_int {
    // SAFETY: passed on to the caller.
    status(unsafe { advise(addr, len, advice) })
}

/// process_madvise(2): of this process it is madvise, one range after the other.
///
/// # Safety
/// As for the system call.
pub unsafe fn process_madvise(fd: c_int, vectors: *const libc::iovec, count: usize, advice: c_int, flags: c_uint) -> isize {
    if managed().is_none() || vectors.is_null() || count > libc::UIO_MAXIOV as usize || flags != 0 || !process::is_own_pidfd(fd) {
        let args = [fd as usize, vectors.addr(), count, advice as usize, flags as usize, 0];
        // SAFETY: passed on to the caller.
        return match unsafe { call(libc::SYS_process_madvise, args) } {
            Ok(bytes) => bytes as isize,
            Err(errno) => status(Err(errno)) as isize,
        };
    }
    let mut done = 0;
    // SAFETY: the program's list, which the kernel would read as well.
    for one in unsafe { std::slice::from_raw_parts(vectors, count) } {
        // SAFETY: passed on to the caller.
        match unsafe { advise(one.iov_base, one.iov_len, advice) } {
            Ok(()) => done += one.iov_len,
            Err(errno) if done == 0 => return status(Err(errno)) as isize,
            Err(_) => break,
        }
    }
    done as isize
}

/// msync(2).
///
/// # Safety
/// As for the system call.
pub unsafe fn msync(addr: *mut c_void, len: usize, flags: c_int) -> c_int {
    status(match managed() {
        // SAFETY: passed on to the caller.
        Some(managed) => unsafe { managed.with(|memory| memory.msync(addr.addr(), len, flags)) },
        // SAFETY: passed on to the caller.
        None => unsafe { kernel(libc::SYS_msync, addr, len, flags as usize) },
    })
}

/// mincore(2).
///
/// # Safety
/// As for the system call.
pub unsafe fn mincore(addr: *mut c_void, len: usize, out: *mut u8) -> c_int {
    status(match managed() {
        // SAFETY: passed on to the caller.
        Some(managed) => unsafe { managed.with(|memory| memory.mincore(addr.addr(), len, out)) },
        // SAFETY: passed on to the caller.
        None => unsafe { call(libc::SYS_mincore, [addr.addr(), len, out.addr(), 0, 0, 0]) }.map(|_| ()),
    })
}

/// posix_madvise(3): returns the error and never discards anything.
///
/// # Safety
/// As for the function.
pub unsafe fn posix_madvise(addr: *mut c_void, len: usize, advice: c_int) -> c_int {
    if advice == libc::POSIX_MADV_DONTNEED {
        return 0;
    }
    // SAFETY: passed on to the caller; the other values are those of madvise.
    unsafe { advise(addr, len, advice) }.map_or_else(|errno| errno.0, |()| 0)
}

/// mlock(2).
///
/// # Safety
/// As for the system call.
pub unsafe fn mlock(addr: *mut c_void, len: usize) -> c_int {
    status(match managed() {
        Some(managed) => managed.with(|memory| memory.mlock(addr.addr(), len)),
        // SAFETY: passed on to the caller.
        None => unsafe { kernel(libc::SYS_mlock, addr, len, 0) },
    })
}

/// mlock2(2). `MLOCK_ONFAULT` allows what mlock does, only later.
///
/// # Safety
/// As for the system call.
pub unsafe fn mlock2(addr: *mut c_void, len: usize, flags: c_uint) -> c_int {
    status(match managed().filter(|_| flags & !libc::MLOCK_ONFAULT == 0) {
        Some(managed) => managed.with(|memory| memory.mlock(addr.addr(), len)),
        // SAFETY: passed on to the caller.
        None => unsafe { kernel(libc::SYS_mlock2, addr, len, flags as usize) },
    })
}

/// munlock(2).
///
/// # Safety
/// As for the system call.
pub unsafe fn munlock(addr: *mut c_void, len: usize) -> c_int {
    status(match managed() {
        Some(managed) => managed.with(|memory| memory.munlock(addr.addr(), len)),
        // SAFETY: passed on to the caller.
        None => unsafe { kernel(libc::SYS_munlock, addr, len, 0) },
    })
}

/// mlockall(2): a program whose memory exceeds near cannot have all of it there, and the kernel must not try. Said once.
pub fn mlockall(flags: c_int) -> c_int {
    static SAID: AtomicBool = AtomicBool::new(false);
    if managed().is_none() {
        // SAFETY: integers only; locking pages changes no content.
        return status(unsafe { call(libc::SYS_mlockall, [flags as usize, 0, 0, 0, 0, 0]) }.map(|_| ()));
    }
    if !SAID.swap(true, Ordering::Relaxed) {
        process::write_stderr(b"nearfar: mlockall has no effect: the program's memory is paged by nearfar\n");
    }
    0
}

/// munlockall(2).
pub fn munlockall() -> c_int {
    if managed().is_some() {
        return 0;
    }
    // SAFETY: no arguments.
    status(unsafe { call(libc::SYS_munlockall, [0; 6]) }.map(|_| ()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_mappings_are_ours() {
        let anonymous = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        assert!(is_ours(anonymous) && is_ours(anonymous | libc::MAP_NORESERVE | libc::MAP_FIXED));
        assert!(!is_ours(libc::MAP_PRIVATE) && !is_ours(libc::MAP_SHARED | libc::MAP_ANONYMOUS));
        assert!(!is_ours(anonymous | libc::MAP_STACK) && !is_ours(anonymous | libc::MAP_HUGETLB));
    }

    #[test]
    fn unmanaged_calls_reach_the_kernel() {
        // SAFETY: a mapping of our own.
        unsafe {
            let page = mmap(std::ptr::null_mut(), 4096, map::RW, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0);
            assert_ne!(page, libc::MAP_FAILED);
            page.cast::<u8>().write(7);
            assert_eq!((madvise(page, 4096, libc::MADV_DONTNEED), page.cast::<u8>().read()), (0, 0));
            assert_eq!((mprotect(page, 4096, 0), munmap(page, 4096)), (0, 0));
            assert_eq!((munmap(page.byte_add(1), 4096), errno::get()), (-1, libc::EINVAL));
        }
    }
}
