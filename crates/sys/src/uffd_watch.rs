//! userfaultfd for looking at single pages of memory that others manage: faults and, other than in `uffd`, events. A change of the
//! mappings that concerns a registered page waits until its event has been read, and from its beginning until then no page can be
//! moved (EAGAIN): so a page that has been moved out of view belongs to the mapping that was registered, whatever else goes on.
//!
//! Whoever reads the events must never do such a change to a registered page itself: it would wait for itself.

use crate::errno::{Errno, call};
use crate::high_descriptors::Kept;
use crate::uffd::{self, MoveArg, ProtectArg, RangeArg, RegisterArg, Uffd, request};
use nearfar_core::addr::Extent;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

const FEATURE_EVENT_FORK: u64 = 1 << 1;
const FEATURE_EVENT_REMAP: u64 = 1 << 2;
const FEATURE_EVENT_REMOVE: u64 = 1 << 3;
const FEATURE_EVENT_UNMAP: u64 = 1 << 6;
const FEATURE_EXACT_ADDRESS: u64 = 1 << 11;
const NEEDED: u64 = uffd::FEATURE_PAGEFAULT_FLAG_WP
    | uffd::FEATURE_THREAD_ID
    | uffd::FEATURE_MOVE
    | FEATURE_EVENT_REMAP
    | FEATURE_EVENT_REMOVE
    | FEATURE_EVENT_UNMAP;
const EVENT_FORK: u8 = 0x13;
const EVENT_REMAP: u8 = 0x14;
const EVENT_REMOVE: u8 = 0x15;
const EVENT_UNMAP: u8 = 0x16;
const DONT_WAKE: u64 = 1;
const COPY_PROTECTED: u64 = 2;

/// Whether threads that wait for a page are woken when it comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiters {
    /// They go on.
    Wake,
    /// They wait until `wake`.
    Leave,
}

/// What the kernel tells.
#[derive(Debug)]
pub enum Message {
    /// A thread waits.
    Fault {
        /// The exact address.
        addr: usize,
        /// Kernel thread id.
        thread: u32,
        /// The access is a write.
        write: bool,
        /// The page is there but write-protected.
        protected: bool,
    },
    /// The process forked: registered pages are registered in the child too, with this descriptor.
    Forked(WatchFd),
    /// Pages were moved by mremap(2) and are registered where they are now.
    Moved {
        /// Old address.
        from: usize,
        /// New address.
        to: usize,
        /// Bytes.
        len: usize,
    },
    /// The content is about to be given up (madvise), the mapping stays.
    Discarded(Extent),
    /// The mapping is gone.
    Unmapped(Extent),
}

/// One userfaultfd.
#[derive(Debug)]
pub struct WatchFd {
    fd: Kept,
    sees_forks: bool,
}

impl WatchFd {
    /// Opens one that serves the program and the kernel on its behalf: the system call, then /dev/userfaultfd. ENOSYS when the kernel
    /// cannot move pages.
    pub fn open() -> Result<Self, Errno> {
        let fresh = || Uffd::syscall(0).or_else(|_| Uffd::device());
        let offered = Uffd::handshake(&fresh()?, 0)?;
        if offered & NEEDED != NEEDED {
            return Err(Errno(libc::ENOSYS));
        }
        let features = NEEDED | offered & FEATURE_EXACT_ADDRESS;
        // Only for those who may trace: asked for first, since the handshake can be made only once.
        let with_forks = fresh()?;
        if Uffd::handshake(&with_forks, features | FEATURE_EVENT_FORK).is_ok() {
            return Ok(Self { fd: Kept::in_place(with_forks), sees_forks: true });
        }
        let fd = fresh()?;
        Uffd::handshake(&fd, features)?;
        Ok(Self { fd: Kept::in_place(fd), sees_forks: false })
    }

    /// Whether forks are told. If not, the child of a fork finds nothing where a page is out of view.
    pub fn sees_forks(&self) -> bool {
        self.sees_forks
    }

    fn ioctl<T>(&self, number: u64, arg: &mut T) -> Result<(), Errno> {
        loop {
            match Uffd::ioctl_on(self.fd.as_raw_fd(), number, arg) {
                Err(Errno::EINTR) => {}
                other => return other.map(|_| ()),
            }
        }
    }

    fn range(range: Extent) -> RangeArg {
        RangeArg { start: range.start as u64, len: range.len() as u64 }
    }

    /// From now on an access to a missing page of `range` waits for us, and, `with_protect`, a write to a protected one.
    ///
    /// # Safety
    /// Somebody must read the messages until `unregister`, and bring back what is moved away.
    pub unsafe fn register(&self, range: Extent, with_protect: bool) -> Result<(), Errno> {
        let mode = uffd::REGISTER_MODE_MISSING | if with_protect { uffd::REGISTER_MODE_WP } else { 0 };
        let mut arg = RegisterArg { range: Self::range(range), mode, ioctls: 0 };
        self.ioctl(request(0x00, size_of::<RegisterArg>(), uffd::IOC_WR), &mut arg)
    }

    /// As `register`, but missing pages come as zeros as ever: for memory that pages are moved to.
    pub fn register_aside(&self, range: Extent) -> Result<(), Errno> {
        let mut arg = RegisterArg { range: Self::range(range), mode: uffd::REGISTER_MODE_WP, ioctls: 0 };
        self.ioctl(request(0x00, size_of::<RegisterArg>(), uffd::IOC_WR), &mut arg)
    }

    /// Ends `register`, lifts the write protection, wakes who waits.
    pub fn unregister(&self, range: Extent) -> Result<(), Errno> {
        self.ioctl(request(0x01, size_of::<RangeArg>(), uffd::IOC_R), &mut Self::range(range))
    }

    /// Wakes those who wait for pages in `range`, mapped or not.
    pub fn wake(&self, range: Extent) {
        let _ = self.ioctl(request(0x02, size_of::<RangeArg>(), uffd::IOC_R), &mut Self::range(range));
    }

    /// Moves pages to `dst`, which is registered. `Err` has the bytes done before it; EAGAIN: read the messages and try the rest again.
    ///
    /// # Safety
    /// What is at `src` vanishes from there: nobody may rely on it unless `src` is registered too.
    pub unsafe fn move_pages(&self, dst: usize, src: usize, len: usize, waiters: Waiters) -> Result<(), (usize, Errno)> {
        self.fill(0x05, dst, src, len, waiters, 0)
    }

    /// Copies to fresh pages at `dst`, of this process or, for the descriptor of a child, of the child.
    pub fn copy(&self, dst: usize, src: usize, len: usize, waiters: Waiters) -> Result<(), (usize, Errno)> {
        self.fill(0x03, dst, src, len, waiters, 0)
    }

    /// As `copy`; the next write into the pages waits for us. They are registered with protection.
    pub fn copy_protected(&self, dst: usize, src: usize, len: usize, waiters: Waiters) -> Result<(), (usize, Errno)> {
        self.fill(0x03, dst, src, len, waiters, COPY_PROTECTED)
    }

    fn fill(
        &self,
        number: u64,
        dst: usize,
        src: usize,
        len: usize,
        waiters: Waiters,
        protected: u64,
    ) -> Result<(), (usize, Errno)> {
        let mode = protected | if waiters == Waiters::Leave { DONT_WAKE } else { 0 };
        let mut arg = MoveArg { dst: dst as u64, src: src as u64, len: len as u64, mode, moved: 0 };
        let result = self.ioctl(request(number, size_of::<MoveArg>(), uffd::IOC_WR), &mut arg);
        result.map_err(|errno| (arg.moved.max(0) as usize, errno))
    }

    /// The next write into `range` waits for us. EAGAIN as for `move_pages`.
    pub fn protect(&self, range: Extent) -> Result<(), Errno> {
        let mut arg = ProtectArg { range: Self::range(range), mode: 1 };
        self.ioctl(request(0x06, size_of::<ProtectArg>(), uffd::IOC_WR), &mut arg)
    }

    /// Messages of one `read` at most.
    pub const AT_ONCE: usize = 16;

    /// Hands the messages that wait to `each`, at most `AT_ONCE` of them; never blocks. EMFILE: there is no free descriptor for the child of
    /// a fork, which waits.
    pub fn read(&self, mut each: impl FnMut(Message)) -> Result<usize, Errno> {
        const SIZE: usize = 32;
        let mut buffer = [0u8; SIZE * Self::AT_ONCE];
        let args = [self.fd.as_raw_fd() as usize, buffer.as_mut_ptr() as usize, buffer.len(), 0, 0, 0];
        // SAFETY: writes at most its length into a local buffer.
        let got = match unsafe { call(libc::SYS_read, args) } {
            Err(Errno::EAGAIN) | Err(Errno::EINTR) => 0,
            other => other?,
        };
        for message in buffer[..got].chunks_exact(SIZE) {
            let word = |at: usize| {
                let mut bytes = [0u8; 8];
                bytes.copy_from_slice(&message[at..at + 8]);
                u64::from_ne_bytes(bytes)
            };
            let (first, second, third) = (word(8), word(16) as usize, word(24));
            let range = Extent { start: first as usize, end: second };
            each(match message[0] {
                uffd::EVENT_PAGEFAULT => Message::Fault {
                    addr: second,
                    thread: third as u32,
                    write: first & uffd::FAULT_FLAG_WRITE != 0,
                    protected: first & uffd::FAULT_FLAG_WP != 0,
                },
                EVENT_FORK => {
                    // SAFETY: a fresh descriptor, ours alone.
                    let fd = unsafe { OwnedFd::from_raw_fd(first as u32 as RawFd) };
                    Message::Forked(Self { fd: Kept::in_place(fd), sees_forks: true })
                }
                EVENT_REMAP => Message::Moved { from: first as usize, to: second, len: third as usize },
                EVENT_REMOVE => Message::Discarded(range),
                EVENT_UNMAP => Message::Unmapped(range),
                _ => continue,
            });
        }
        Ok(got / SIZE)
    }
}

impl AsRawFd for WatchFd {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}
