//! `errno` of the calling thread: set on failure as C expects, kept where the manual pages promise it.

use nearfar_sys::errno::Errno;

/// Sets `errno`.
pub fn set(errno: Errno) {
    // SAFETY: the C library gives every thread a valid location of its own.
    unsafe { *libc::__errno_location() = errno.0 };
}

/// Sets `errno` to `why`; returns what C functions return then.
pub fn failed(why: i32) -> i32 {
    set(Errno(why));
    -1
}

/// The value of `errno`.
pub fn get() -> i32 {
    // SAFETY: as in `set`.
    unsafe { *libc::__errno_location() }
}

/// Puts `errno` back to what it was when the guard is dropped: free(3) must not change it.
#[must_use]
pub struct Kept(i32);

impl Kept {
    /// Remembers `errno`.
    #[inline]
    pub fn now() -> Self {
        Self(get())
    }
}

impl Drop for Kept {
    #[inline]
    fn drop(&mut self) {
        set(Errno(self.0));
    }
}
