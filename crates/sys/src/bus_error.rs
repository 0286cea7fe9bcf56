//! SIGBUS in memory that is a file's: the disk is full or cannot be read. Without a handler the program would end by a signal
//! that tells nobody why.

use nearfar_core::addr::Extent;
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

struct Watched {
    range: Extent,
    message: String,
    status: i32,
}

static WATCHED: OnceLock<Watched> = OnceLock::new();

/// From now on, an access to `range` that the kernel cannot back ends the process with `message` and `status`. A program that
/// has a handler of its own for SIGBUS, now or later, keeps it, and learns of it that way. Only the first call counts.
pub fn end_with(range: Extent, message: String, status: i32) {
    let _ = WATCHED.set(Watched { range, message, status });
    // SAFETY: all zeros is a valid value of this structure.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: asks only, into a local.
    let known = unsafe { libc::sigaction(libc::SIGBUS, std::ptr::null(), &mut action) } == 0;
    if !known || action.sa_sigaction != libc::SIG_DFL {
        return;
    }
    let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = on_bus_error;
    action.sa_sigaction = handler as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: the handler makes only system calls, and lives as long as the process.
    unsafe { libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut()) };
}

extern "C" fn on_bus_error(signal: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    // SAFETY: the kernel passes a valid description; the address is one of its words for this signal.
    let (code, addr) = unsafe { ((*info).si_code, (*info).si_addr().addr()) };
    if let Some(watched) = WATCHED.get()
        && code == libc::BUS_ADRERR
        && watched.range.contains(addr)
    {
        crate::process::write_stderr(watched.message.as_bytes());
        crate::process::exit_now(watched.status);
    }
    // Not ours: as if there were no handler. A faulting access is repeated when this returns, a sent signal must be sent again.
    // SAFETY: plain calls with integers; both may be made in a handler.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        if code <= 0 {
            libc::raise(signal);
        }
    }
}
