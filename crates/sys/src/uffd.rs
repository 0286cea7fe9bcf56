//! userfaultfd: faults as messages, and the ioctls that resolve them. Kernel error numbers become meanings here.
//!
//! Numbers and structures are ours because system headers are often older than the kernel (MOVE came with 6.8).
//! Events other than faults (fork, remap, remove, unmap) are never enabled: they block the program inside munmap and
//! friends until the pager reads them (libfabric#5554), and every such call is interposed instead.

use crate::errno::{Errno, call};
use crate::{high_descriptors, pagemap};
use nearfar_core::addr::{Extent, PAGE};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

pub(crate) const API: u64 = 0xAA;
pub(crate) const FEATURE_PAGEFAULT_FLAG_WP: u64 = 1 << 0;
pub(crate) const FEATURE_THREAD_ID: u64 = 1 << 8;
pub(crate) const FEATURE_MOVE: u64 = 1 << 16;
const USER_MODE_ONLY: i32 = 1;
pub(crate) const REGISTER_MODE_MISSING: u64 = 1;
pub(crate) const REGISTER_MODE_WP: u64 = 2;
pub(crate) const EVENT_PAGEFAULT: u8 = 0x12;
pub(crate) const FAULT_FLAG_WRITE: u64 = 1;
pub(crate) const FAULT_FLAG_WP: u64 = 2;
const MOVE_MODE_ALLOW_SRC_HOLES: u64 = 2;

pub(crate) const fn request(number: u64, size: usize, dir: u64) -> u64 {
    dir << 30 | (size as u64) << 16 | API << 8 | number
}
pub(crate) const IOC_WR: u64 = 3;
pub(crate) const IOC_R: u64 = 2;

#[repr(C)]
#[derive(Default)]
struct ApiArg {
    api: u64,
    features: u64,
    ioctls: u64,
}
#[repr(C)]
#[derive(Default)]
pub(crate) struct RangeArg {
    pub start: u64,
    pub len: u64,
}
#[repr(C)]
#[derive(Default)]
pub(crate) struct RegisterArg {
    pub range: RangeArg,
    pub mode: u64,
    pub ioctls: u64,
}
#[repr(C)]
#[derive(Default)]
pub(crate) struct MoveArg {
    pub dst: u64,
    pub src: u64,
    pub len: u64,
    pub mode: u64,
    pub moved: i64,
}
#[repr(C)]
#[derive(Default)]
pub(crate) struct ProtectArg {
    pub range: RangeArg,
    pub mode: u64,
}

/// A fault that a thread waits on.
#[derive(Clone, Copy, Debug)]
pub struct PageFault {
    /// Address asked for, rounded down to a page.
    pub addr: usize,
    /// Kernel thread id, 0 when the kernel does not say.
    pub thread: u32,
    /// The access was a write.
    pub write: bool,
    /// The page is present but write-protected by us.
    pub protected: bool,
}

/// What a move or copy came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// A page exists already at the destination.
    Exists,
    /// The source has no page where one was needed.
    Hole,
    /// The kernel or a device holds the page, or it is shared with a forked process.
    Busy,
    /// The mappings differ in protection, locking or registration, or the kernel has no MOVE.
    Unfit,
    /// No memory for the copy.
    NoMemory,
    /// Something else.
    Other(Errno),
}

impl From<Errno> for Refused {
    fn from(errno: Errno) -> Self {
        match errno.0 {
            libc::EEXIST => Refused::Exists,
            libc::ENOENT => Refused::Hole,
            libc::EBUSY => Refused::Busy,
            libc::EINVAL => Refused::Unfit,
            libc::ENOMEM => Refused::NoMemory,
            _ => Refused::Other(errno),
        }
    }
}

/// How the descriptor was got, which decides what may fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultScope {
    /// Faults of the program and of the kernel on its behalf are served.
    UserAndKernel,
    /// Only faults in user mode; system calls on absent pages fail with EFAULT.
    UserOnly,
}

/// One userfaultfd of this process.
pub struct Uffd {
    fd: OwnedFd,
    features: u64,
    scope: FaultScope,
}

impl Uffd {
    /// Opens a userfaultfd: the system call, then /dev/userfaultfd. With `user_only`, the kind that ordinary users may have.
    pub fn open(user_only: bool) -> Result<Self, Errno> {
        let fd = if user_only { Self::syscall(USER_MODE_ONLY)? } else { Self::syscall(0).or_else(|_| Self::device())? };
        // Which features exist is learnt on a descriptor of its own: the handshake can be made only once.
        let probe = if user_only { Self::syscall(USER_MODE_ONLY)? } else { Self::syscall(0).or_else(|_| Self::device())? };
        let offered = Self::handshake(&probe, 0)?;
        let features = offered & (FEATURE_PAGEFAULT_FLAG_WP | FEATURE_THREAD_ID | FEATURE_MOVE);
        // MOVE needs no enabling and older handshakes refuse unknown bits, so it is asked for only where offered.
        Self::handshake(&fd, features)?;
        let scope = if user_only { FaultScope::UserOnly } else { FaultScope::UserAndKernel };
        Ok(Self { fd, features, scope })
    }

    pub(crate) fn syscall(flags: i32) -> Result<OwnedFd, Errno> {
        let flags = libc::O_CLOEXEC | libc::O_NONBLOCK | flags;
        // SAFETY: integers only.
        let fd = unsafe { call(libc::SYS_userfaultfd, [flags as usize, 0, 0, 0, 0, 0])? };
        // SAFETY: a fresh descriptor, ours alone.
        Ok(high_descriptors::put(unsafe { OwnedFd::from_raw_fd(fd as RawFd) }))
    }

    pub(crate) fn device() -> Result<OwnedFd, Errno> {
        let flags = libc::O_RDWR | libc::O_CLOEXEC;
        let path = c"/dev/userfaultfd".as_ptr() as usize;
        // SAFETY: a C string constant.
        let device = unsafe { call(libc::SYS_openat, [libc::AT_FDCWD as usize, path, flags as usize, 0, 0, 0])? };
        // SAFETY: a fresh descriptor, ours alone.
        let device = unsafe { OwnedFd::from_raw_fd(device as RawFd) };
        // USERFAULTFD_IOC_NEW = _IO(0xAA, 0x00).
        let new = API << 8;
        let args = [device.as_raw_fd() as usize, new as usize, (libc::O_CLOEXEC | libc::O_NONBLOCK) as usize, 0, 0, 0];
        // SAFETY: integers only.
        let fd = unsafe { call(libc::SYS_ioctl, args)? };
        // SAFETY: a fresh descriptor, ours alone.
        Ok(high_descriptors::put(unsafe { OwnedFd::from_raw_fd(fd as RawFd) }))
    }

    pub(crate) fn handshake(fd: &OwnedFd, features: u64) -> Result<u64, Errno> {
        let mut arg = ApiArg { api: API, features, ioctls: 0 };
        Self::ioctl_on(fd.as_raw_fd(), request(0x3F, size_of::<ApiArg>(), IOC_WR), &mut arg)?;
        Ok(arg.features)
    }

    pub(crate) fn ioctl_on<T>(fd: RawFd, number: u64, arg: &mut T) -> Result<usize, Errno> {
        // SAFETY: every caller in this file passes the structure that belongs to the number. What the ioctl does to the
        // program's memory is answered for at `register`, the one unsafe act of this interface.
        unsafe { call(libc::SYS_ioctl, [fd as usize, number as usize, arg as *mut T as usize, 0, 0, 0]) }
    }

    fn ioctl<T>(&self, number: u64, arg: &mut T) -> Result<usize, Errno> {
        Self::ioctl_on(self.fd.as_raw_fd(), number, arg)
    }

    /// True when the kernel can move pages (6.8 and later).
    pub fn can_move(&self) -> bool {
        self.features & FEATURE_MOVE != 0
    }

    /// Behaves as on a kernel without MOVE from now on.
    pub fn deny_move(&mut self) {
        self.features &= !FEATURE_MOVE;
    }

    /// Whose faults are served.
    pub fn scope(&self) -> FaultScope {
        self.scope
    }

    /// From now on a missing page in `range` waits for us. Present pages stay as they are.
    ///
    /// # Safety
    /// Somebody must serve the faults of `range` for as long as the process lives: threads that touch it wait for ever
    /// otherwise. The content that is given to them must be what the program stored there.
    pub unsafe fn register(&self, range: Extent, with_protect: bool) -> Result<(), Errno> {
        let mode = if with_protect { REGISTER_MODE_MISSING | REGISTER_MODE_WP } else { REGISTER_MODE_MISSING };
        let range = RangeArg { start: range.start as u64, len: range.len() as u64 };
        let mut arg = RegisterArg { range, mode, ioctls: 0 };
        self.ioctl(request(0x00, size_of::<RegisterArg>(), IOC_WR), &mut arg).map(|_| ())
    }

    /// Ends `register` for `range`.
    pub fn unregister(&self, range: Extent) -> Result<(), Errno> {
        let mut arg = RangeArg { start: range.start as u64, len: range.len() as u64 };
        self.ioctl(request(0x01, size_of::<RangeArg>(), IOC_R), &mut arg).map(|_| ())
    }

    /// Wakes the threads that wait for pages in `range`; they look again.
    pub fn wake(&self, range: Extent) {
        let mut arg = RangeArg { start: range.start as u64, len: range.len() as u64 };
        let _ = self.ioctl(request(0x02, size_of::<RangeArg>(), IOC_R), &mut arg);
    }

    /// Moves the pages at `src` to `dst` without copying and wakes waiters at `dst`. Holes in the source are skipped when
    /// `holes` is set. On refusal the first value is the number of bytes done before it, all of which are at `dst` then, and
    /// the rest at `src`.
    pub fn move_pages(&self, dst: usize, src: usize, len: usize, holes: bool) -> Result<(), (usize, Refused)> {
        let mut done = 0;
        let mut idle = 0;
        while done < len {
            let mode = if holes { MOVE_MODE_ALLOW_SRC_HOLES } else { 0 };
            let mut arg =
                MoveArg { dst: (dst + done) as u64, src: (src + done) as u64, len: (len - done) as u64, mode, moved: 0 };
            let result = self.ioctl(request(0x05, size_of::<MoveArg>(), IOC_WR), &mut arg);
            // `moved` counts bytes, or holds -errno; an interrupted call reports the part that it did.
            if arg.moved > 0 {
                done += arg.moved as usize;
                idle = 0;
            }
            match result {
                Ok(_) => return Ok(()),
                Err(Errno::EAGAIN) | Err(Errno::EINTR) => {
                    idle += 1;
                    // A single stubborn page: the rest of the world (mmap in progress, a racing unmap) needs a moment.
                    if idle > 1000 {
                        return Err((done, Refused::Busy));
                    }
                    if idle > 10 {
                        std::thread::yield_now();
                    }
                }
                Err(Errno(libc::EEXIST)) => match Self::moved_untold(dst + done, src + done, len - done) {
                    0 => return Err((done, Refused::Exists)),
                    bytes => {
                        // The kernel woke nobody there.
                        self.wake(Extent::new(dst + done, bytes));
                        done += bytes;
                        idle = 0;
                    }
                },
                Err(errno) => return Err((done, errno.into())),
            }
        }
        Ok(())
    }

    /// How many bytes of a move that met a page at `dst` are there because this very move brought them, and did not say so.
    ///
    /// Linux 6.18 moves small pages in batches. When it had to try again (a page was just then migrated by compaction, or a
    /// huge page could not be split at once), it keeps that error beside the success that follows, tries the batch that it has
    /// moved once more, finds its own pages at the destination, and reports EEXIST and nothing moved. Newer kernels reset the
    /// error. What has gone is told from what has not by looking: gone from `src` and present at `dst`.
    fn moved_untold(dst: usize, src: usize, len: usize) -> usize {
        let (mut gone, mut come) = (0, len / PAGE);
        let known = pagemap::absent_pages(Extent::new(src, len), |page| gone += usize::from(page == gone))
            .and_then(|()| pagemap::absent_pages(Extent::new(dst, len), |page| come = come.min(page)));
        if known.is_ok() { gone.min(come) * PAGE } else { 0 }
    }

    /// Copies `len` bytes from `src` into fresh pages at `dst` and wakes waiters.
    pub fn copy(&self, dst: usize, src: usize, len: usize) -> Result<(), (usize, Refused)> {
        let mut done = 0;
        while done < len {
            let mut arg =
                MoveArg { dst: (dst + done) as u64, src: (src + done) as u64, len: (len - done) as u64, mode: 0, moved: 0 };
            let result = self.ioctl(request(0x03, size_of::<MoveArg>(), IOC_WR), &mut arg);
            if arg.moved > 0 {
                done += arg.moved as usize;
            }
            match result {
                Ok(_) => return Ok(()),
                Err(Errno::EAGAIN) | Err(Errno::EINTR) => std::thread::yield_now(),
                Err(errno) => return Err((done, errno.into())),
            }
        }
        Ok(())
    }

    /// Protects `range` against writes (`on`), or lifts that and wakes the writers that wait.
    pub fn write_protect(&self, range: Extent, on: bool) -> Result<(), Errno> {
        loop {
            let range = RangeArg { start: range.start as u64, len: range.len() as u64 };
            let mut arg = ProtectArg { range, mode: u64::from(on) };
            match self.ioctl(request(0x06, size_of::<ProtectArg>(), IOC_WR), &mut arg) {
                Err(Errno::EAGAIN) | Err(Errno::EINTR) => std::thread::yield_now(),
                other => return other.map(|_| ()),
            }
        }
    }

    /// Reads the faults that wait, at most `out.len()`; returns how many. Never blocks. Fails when the descriptor is gone.
    pub fn read_faults(&self, out: &mut [PageFault]) -> Result<usize, Errno> {
        read_faults(self.fd.as_raw_fd(), out)
    }
}

impl AsRawFd for Uffd {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

fn read_faults(fd: RawFd, out: &mut [PageFault]) -> Result<usize, Errno> {
    const MESSAGE: usize = 32;
    let mut buffer = [0u8; MESSAGE * 64];
    let want = out.len().min(64) * MESSAGE;
    let args = [fd as usize, buffer.as_mut_ptr() as usize, want, 0, 0, 0];
    // SAFETY: writes at most `want` bytes into a local buffer of at least that size.
    let got = match unsafe { call(libc::SYS_read, args) } {
        Err(Errno::EAGAIN) | Err(Errno::EINTR) => 0,
        other => other?,
    };
    let mut count = 0;
    for message in buffer[..got].chunks_exact(MESSAGE) {
        if message[0] != EVENT_PAGEFAULT {
            continue;
        }
        let word = |at: usize| {
            let mut bytes = [0u8; 8];
            bytes.copy_from_slice(&message[at..at + 8]);
            u64::from_ne_bytes(bytes)
        };
        out[count] = PageFault {
            addr: word(16) as usize & !(PAGE - 1),
            thread: word(24) as u32,
            write: word(8) & FAULT_FLAG_WRITE != 0,
            protected: word(8) & FAULT_FLAG_WP != 0,
        };
        count += 1;
    }
    Ok(count)
}

/// A fault that waits on the userfaultfd `fd`, if there is one. Takes it and has the thread ask again, so that nobody misses it: for
/// whoever looks from beside.
pub fn waiting(fd: RawFd) -> Option<PageFault> {
    let mut fault = [PageFault { addr: 0, thread: 0, write: false, protected: false }];
    if read_faults(fd, &mut fault) != Ok(1) {
        return None;
    }
    let mut arg = RangeArg { start: fault[0].addr as u64, len: PAGE as u64 };
    let number = request(0x02, size_of::<RangeArg>(), IOC_R) as usize;
    // SAFETY: the kernel reads the range from a local; threads that are woken look again.
    let _ = unsafe { call(libc::SYS_ioctl, [fd as usize, number, (&raw mut arg).addr(), 0, 0, 0]) };
    Some(fault[0])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::OwnedMap;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    /// The kernel's compaction takes pages up while they are moved. Without `moved_untold` this fails within a second on 6.18.
    #[test]
    fn moves_lose_nothing_while_the_kernel_migrates_pages() {
        const PAGES: usize = 2048;
        let Ok(uffd) = Uffd::open(false) else { return println!("skipped: no userfaultfd of the unrestricted kind") };
        let compact = || std::fs::write("/proc/sys/vm/compact_memory", "1");
        if !uffd.can_move() || compact().is_err() {
            return println!("skipped: needs UFFDIO_MOVE and root, to have the kernel compact memory");
        }
        let maps = [0, 1].map(|_| OwnedMap::new(PAGES * PAGE).expect("memory"));
        let word = |map: usize, page: usize| (maps[map].range().start + page * PAGE) as *mut usize;
        // SAFETY: pages of our own mapping, written before anyone else knows of them.
        (0..PAGES).for_each(|page| unsafe { word(0, page).write(page + 1) });
        // SAFETY: nobody touches an absent page: only what has been moved to a place is looked at there.
        maps.iter().for_each(|map| unsafe { uffd.register(map.range(), false).expect("registered") });
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let _ = compact();
                }
            });
            let end = Instant::now() + Duration::from_secs(2);
            let mut here = 0;
            while Instant::now() < end {
                let (from, to) = (maps[here].range().start, maps[1 - here].range().start);
                let moved = uffd.move_pages(to, from, PAGES * PAGE, false);
                here = 1 - here;
                let mut absent = 0;
                pagemap::absent_pages(maps[here].range(), |_| absent += 1).expect("root can tell");
                if moved.is_err() || absent > 0 {
                    over.store(true, Ordering::Relaxed);
                    panic!("{moved:?}, and {absent} of {PAGES} pages are not where they were moved to");
                }
                // SAFETY: present, as has just been seen.
                (0..PAGES).for_each(|page| assert_eq!(unsafe { word(here, page).read() }, page + 1));
            }
            over.store(true, Ordering::Relaxed);
        });
    }
}
