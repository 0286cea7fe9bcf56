//! Pipes that tell whether other processes are still there: nobody writes, the kernel hangs up at the last one's end.

use crate::errno::Errno;
use crate::high_descriptors;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// The reading and the writing end, both close-on-exec.
pub fn pipe() -> Result<(OwnedFd, OwnedFd), Errno> {
    let mut fds = [0; 2];
    // SAFETY: writes two descriptors into a local array.
    if unsafe { libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(Errno::last());
    }
    // SAFETY: fresh descriptors, ours alone.
    let (reader, writer) = unsafe { (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])) };
    Ok((high_descriptors::put(reader), high_descriptors::put(writer)))
}

/// True when every writing end of `reader`'s pipe is closed.
pub fn is_hung_up(reader: &OwnedFd) -> bool {
    let mut poll = libc::pollfd { fd: reader.as_raw_fd(), events: 0, revents: 0 };
    // SAFETY: one local entry, no waiting.
    unsafe { libc::poll(&mut poll, 1, 0) == 1 && poll.revents & libc::POLLHUP != 0 }
}
