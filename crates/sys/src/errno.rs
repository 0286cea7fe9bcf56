//! A kernel error number as a value, and the one place where results of system calls are decoded.

use crate::arch::syscall6;
use crate::errno_text::text;
use std::fmt;

/// A kernel error number, such as `ENOMEM`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Errno(pub i32);

impl Errno {
    /// Out of memory, or out of promised memory.
    pub const ENOMEM: Errno = Errno(libc::ENOMEM);
    /// The request makes no sense to the kernel.
    pub const EINVAL: Errno = Errno(libc::EINVAL);
    /// Try again.
    pub const EAGAIN: Errno = Errno(libc::EAGAIN);
    /// Something is there already.
    pub const EEXIST: Errno = Errno(libc::EEXIST);
    /// The kernel or somebody else holds it.
    pub const EBUSY: Errno = Errno(libc::EBUSY);
    /// Interrupted by a signal.
    pub const EINTR: Errno = Errno(libc::EINTR);

    /// The last error of libc in this thread.
    pub fn last() -> Errno {
        Errno(std::io::Error::last_os_error().raw_os_error().unwrap_or(0))
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (os error {})", text(self.0), self.0)
    }
}

impl std::error::Error for Errno {}

/// Issues a raw system call and decodes its result.
///
/// # Safety
/// As for `arch::syscall6`: the arguments must satisfy the contract of that system call.
pub unsafe fn call(number: libc::c_long, args: [usize; 6]) -> Result<usize, Errno> {
    // SAFETY: passed on to the caller.
    decoded(unsafe { syscall6(number as usize, args) })
}

/// What the kernel answered, `-4095..0` meaning `-errno`.
pub fn decoded(result: isize) -> Result<usize, Errno> {
    if (-4095..0).contains(&result) { Err(Errno(-result as i32)) } else { Ok(result as usize) }
}
