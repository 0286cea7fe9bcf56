//! Limits of address space and data that the program sets and asks for (`sys::own_limits`); all others are the kernel's.

use crate::errno;
use crate::function::Function;
use crate::lifecycle::{is_this_process, managed_even_inside};
use nearfar_sys::errno::Errno;
use nearfar_sys::own_limits::{self, Kind};
use nearfar_sys::process;
use nearfar_tiers::memory::Memory;
use std::ffi::{c_int, c_uint};

type Call = unsafe extern "C" fn(libc::pid_t, c_uint, *const libc::rlimit64, *mut libc::rlimit64) -> c_int;
/// The C library's, where calls are caught for ordinary users (`user_mode`).
static NEXT: Function<Call> = Function::next(c"prlimit64");

/// The limit that is kept by us, of a process that is this one.
fn kept(pid: libc::pid_t, resource: c_uint) -> Option<(Kind, u64)> {
    // A child of vfork shares what is kept here, and has limits of its own.
    let managed = managed_even_inside().filter(|_| is_this_process())?;
    let kind = Kind::of(resource).filter(|_| pid == 0 || pid as u32 == process::pid())?;
    Some((kind, managed.with(Memory::own_most_bytes)))
}

/// prlimit(2), of which getrlimit and setrlimit are parts.
///
/// # Safety
/// `new` and `old` are null or point to a pair of limits.
pub unsafe fn prlimit(pid: libc::pid_t, resource: c_uint, new: *const libc::rlimit64, old: *mut libc::rlimit64) -> c_int {
    let Some((kind, own)) = kept(pid, resource) else {
        // SAFETY: passed on to the caller.
        return NEXT.get().map_or_else(|| errno::failed(libc::ENOSYS), |next| unsafe { next(pid, resource, new, old) });
    };
    let (soft, hard) = own_limits::get(kind);
    // SAFETY: null, or the program's pair.
    if let Some(&libc::rlimit64 { rlim_cur, rlim_max }) = unsafe { new.as_ref() }
        && let Err(errno) = own_limits::set(kind, rlim_cur, rlim_max, own)
    {
        return status(Err(errno));
    }
    // SAFETY: as above.
    if let Some(old) = unsafe { old.as_mut() } {
        *old = libc::rlimit64 { rlim_cur: soft, rlim_max: hard };
    }
    0
}

fn status(result: Result<(), Errno>) -> c_int {
    result.map_or_else(|errno| errno::failed(errno.0), |()| 0)
}
