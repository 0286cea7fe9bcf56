//! Pages out of view and back: where they are meanwhile, and what the kernel may answer.
//!
//! Whatever happens, the content of a page is either where the program expects it, or aside with its bit set in the slot. It is
//! given up only when the kernel has said that the program gave it up.

use super::holds::sleep;
use super::slots::{HUGE, SMALL, Slot};
use nearfar_core::addr::{BLOCK, Extent, PAGE};
use nearfar_sys::errno::Errno;
use nearfar_sys::map;
use nearfar_sys::pagemap::{PageState, Pagemap};
use nearfar_sys::process;
use nearfar_sys::root::Root;
use nearfar_sys::thread;
use nearfar_sys::uffd_watch::{Waiters, WatchFd};
use std::time::Duration;

/// madvise(2) that discards locked pages too (Linux 5.18).
const DONTNEED_LOCKED: i32 = 24;

/// What one try came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// All of it is done.
    Done,
    /// Messages must be read, then it is to be tried again.
    Again,
    /// It cannot be.
    Refused,
}

/// Moves pages between the program's view and the memory aside.
pub struct Mover {
    pub fd: &'static WatchFd,
    pagemap: Pagemap,
    /// First small page aside; huge ones come before, aligned.
    small: usize,
    huge: usize,
    /// A page that is waited for is copied: that needs no other processor to forget an address, in virtual machines most of the cost.
    /// Not where there are several memory nodes: the copy may get another one's memory. Nor where the kernel may be reading into a page
    /// that it holds without pinning it: what arrives after the copy would be lost.
    copies: bool,
}

impl Mover {
    /// Reserves the memory aside. A forked child does not have it.
    pub fn new(fd: &'static WatchFd) -> Result<Self, Errno> {
        let pagemap = Pagemap::open()?;
        let len = HUGE * BLOCK + SMALL * PAGE;
        let huge = map::reserve(len)?.start;
        let range = Extent::new(huge, len);
        // SAFETY: just mapped, and nobody else knows of it.
        unsafe {
            map::mprotect(range, map::RW)?;
            map::madvise(range, libc::MADV_DONTFORK)?;
        }
        fd.register_aside(range)?;
        let root = Root::this();
        let one_node = root.text("/sys/devices/system/node/has_memory").is_none_or(|nodes| nodes.trim().parse::<u32>().is_ok());
        let copies = one_node && root.text("/proc/self/mounts").is_some_and(|mounts| all_pin(&mounts));
        Ok(Self { fd, pagemap, huge, small: huge + HUGE * BLOCK, copies })
    }

    /// The memory aside.
    pub fn memory(&self) -> Extent {
        Extent { start: self.huge, end: self.small + SMALL * PAGE }
    }

    /// Where the pages of a slot are while they are out of view.
    pub fn place(&self, slot: usize) -> usize {
        if slot < SMALL { self.small + slot * PAGE } else { self.huge + (slot - SMALL) * BLOCK }
    }

    /// What there is at `page`, also when the program has closed all descriptors behind our back.
    pub fn state(&mut self, page: usize) -> Result<PageState, Errno> {
        match self.pagemap.state(page) {
            Err(Errno(libc::EBADF | libc::ENOTTY | libc::EINVAL)) if !self.pagemap.is_ours() => {
                self.pagemap = Pagemap::open()?;
                self.pagemap.state(page)
            }
            state => state,
        }
    }

    fn is_there(&self, page: usize) -> bool {
        // Not known: taken to be there, so that nothing is thought to be gone.
        !matches!(self.pagemap.state(page), Ok(PageState::Absent))
    }

    /// Takes the rest of a slot's pages out of view, from `done` bytes on.
    pub fn take(&self, slot: usize, page: &mut Slot, done: &mut usize) -> Step {
        let (place, from) = (self.place(slot), page.range.start);
        let rest = page.range.len() - *done;
        // SAFETY: registered, or the kernel refuses: what is not in view any more is waited for until it is back.
        let result = unsafe { self.fd.move_pages(place + *done, from + *done, rest, Waiters::Leave) };
        let (bytes, errno) = match result {
            Ok(()) => (rest, None),
            Err((bytes, errno)) => (bytes, Some(errno)),
        };
        page.set_away(Extent::new(from + *done, bytes), true);
        *done += bytes;
        match errno {
            None => Step::Done,
            Some(Errno::EAGAIN) => Step::Again,
            // Linux 6.18 may find what it has just moved, see `uffd::move_pages`; or mlockall(2) has filled the memory aside.
            Some(Errno::EEXIST) if self.is_there(from + *done) => {
                if self.clear(Extent::new(place + *done, rest)) {
                    return Step::Again;
                }
                page.spoilt = true;
                Step::Refused
            }
            Some(Errno::EEXIST) => {
                page.set_away(Extent::new(from + *done, PAGE), true);
                *done += PAGE;
                if *done == page.range.len() { Step::Done } else { Step::Again }
            }
            Some(_) => Step::Refused,
        }
    }

    /// Puts one run of a slot's pages back; `Done` when it was the last. It must come back: `times` counts the tries.
    pub fn put_back(&self, slot: usize, page: &mut Slot, waiters: Waiters, times: &mut Tries) -> Step {
        let Some((first, count)) = page.run() else { return Step::Done };
        let (to, from) = (page.range.start + first * PAGE, self.place(slot) + first * PAGE);
        let (to_now, len) = if times.copy { (to, PAGE) } else { (to, count * PAGE) };
        let result = if times.copy && times.protect {
            self.fd.copy_protected(to_now, from, len, waiters)
        } else if times.copy {
            self.fd.copy(to_now, from, len, waiters)
        } else {
            // SAFETY: content that is aside belongs where it comes from.
            unsafe { self.fd.move_pages(to_now, from, len, waiters) }
        };
        let (bytes, errno) = match result {
            Ok(()) => (len, None),
            Err((bytes, errno)) => (bytes, Some(errno)),
        };
        page.set_away(Extent::new(to, bytes), false);
        times.copied |= times.copy && bytes > 0;
        times.protected |= times.copy && times.protect && bytes > 0;
        let Some(errno) = errno else { return if page.run().is_none() { Step::Done } else { Step::Again } };
        let at = Extent::new(to + bytes, PAGE);
        match errno {
            Errno::EAGAIN => {}
            Errno::EEXIST => {
                // It has come by this very call, or the program has something else there now.
                times.copied |= self.is_there(from + bytes);
                page.set_away(at, false);
                self.fd.wake(at);
            }
            Errno(libc::ESRCH) => page.set_away(page.range, false),
            Errno(libc::ENOENT) if !self.is_there(from + bytes) => {
                page.set_away(at, false);
                self.fd.wake(at);
            }
            _ if times.by_choice => (times.copy, times.by_choice, times.protect) = (false, false, false),
            Errno::ENOMEM if times.copy => {}
            _ if times.copy => times.refused += 1,
            // Other protection, mlock, no memory for page tables: copying asks for less.
            _ => times.copy = true,
        }
        if times.refused > 2000 {
            if map::mincore(at, &mut [0]) == Err(Errno::ENOMEM) {
                // Not mapped any more, whatever became of the message.
                page.set_away(at, false);
            } else {
                let text = b"nearfar: a page that was looked at cannot be put back: the program is stopped\n";
                process::write_stderr(text);
                process::abort_now();
            }
        }
        if page.run().is_none() { Step::Done } else { Step::Again }
    }

    /// How a page that a thread waits for is put back; `protect`: write-protected, if that costs nothing.
    pub fn tries(&self, page: &Slot, protect: bool) -> Tries {
        let copy = self.copies && page.range.len() == PAGE;
        Tries { copy, by_choice: copy, protect: copy && protect, ..Tries::default() }
    }

    /// Empties memory aside. False: it can be used no more.
    pub fn clear(&self, range: Extent) -> bool {
        // Unregistered first: the discarding of registered pages is told to the one who reads the messages, who is the caller.
        self.fd.unregister(range).is_ok() && discard(range) && self.fd.register_aside(range).is_ok()
    }

    /// As `clear`, for many small slots in ascending order; others stay as they are.
    pub fn clear_slots(&self, slots: &[u16]) -> bool {
        let all = Extent::new(self.small, SMALL * PAGE);
        let cleared = self.fd.unregister(all).is_ok()
            && slots
                .chunk_by(|&slot, &next| slot + 1 == next)
                .all(|run| discard(Extent::new(self.place(usize::from(run[0])), run.len() * PAGE)));
        // In any case, since the others need it.
        self.fd.register_aside(all).is_ok() && cleared
    }

    /// Gives the child of a fork the pages that are out of view.
    pub fn give_child(&self, child: &WatchFd, slot: usize, page: &Slot) {
        for number in (0..page.range.len() / PAGE).filter(|&number| page.is_away(number)) {
            let (to, from) = (page.range.start + number * PAGE, self.place(slot) + number * PAGE);
            while let Err((_, errno)) = child.copy(to, from, PAGE, Waiters::Wake) {
                match errno {
                    Errno::EAGAIN => thread::give_way(),
                    Errno::ENOMEM => sleep(Duration::from_millis(1)),
                    // The child is gone, or has something else there.
                    _ => break,
                }
            }
        }
    }
}

/// File systems whose direct reads pin the pages that they go to (which are then never taken out of view), or that have no direct
/// reads. Others (NFS, Lustre, FUSE, ...) may hold pages by reference only.
const PINNING: &[&str] = &[
    "ext2",
    "ext3",
    "ext4",
    "xfs",
    "btrfs",
    "f2fs",
    "tmpfs",
    "ramfs",
    "devtmpfs",
    "overlay",
    "squashfs",
    "iso9660",
    "vfat",
    "proc",
    "sysfs",
    "cgroup",
    "cgroup2",
    "devpts",
    "mqueue",
    "hugetlbfs",
    "debugfs",
    "tracefs",
    "securityfs",
    "pstore",
    "bpf",
    "configfs",
    "binfmt_misc",
    "efivarfs",
    "fusectl",
    "autofs",
    "rpc_pipefs",
    "nsfs",
    "selinuxfs",
    "rootfs",
];

/// True when every mounted file system is one of those; `mounts` as in /proc/self/mounts.
fn all_pin(mounts: &str) -> bool {
    mounts.lines().filter_map(|line| line.split(' ').nth(2)).all(|kind| PINNING.contains(&kind))
}

fn discard(range: Extent) -> bool {
    // SAFETY: memory of ours, whose content is of no more worth.
    let discard = |advice| unsafe { map::madvise(range, advice) };
    discard(DONTNEED_LOCKED).or_else(|_| discard(libc::MADV_DONTNEED)).is_ok()
}

/// How putting back goes.
#[derive(Default)]
pub struct Tries {
    /// Copied, since moving was refused or for speed.
    copy: bool,
    /// For speed: when it is refused, pages are moved.
    by_choice: bool,
    /// Write-protected as it comes, when copied.
    protect: bool,
    /// It was.
    pub protected: bool,
    /// Content is still aside although it is back.
    pub copied: bool,
    refused: u32,
    times: u32,
}

impl Tries {
    /// Lets others go on before the next try, the longer the more there were.
    pub fn wait(&mut self) {
        self.times += 1;
        match self.times {
            0..5 => {}
            5..30 => thread::give_way(),
            _ => sleep(Duration::from_micros(100)),
        }
    }

    /// What comes back comes write-protected, as things stand.
    pub fn protects(&self) -> bool {
        self.protect
    }

    /// How many there were.
    pub fn times(&self) -> u32 {
        self.times
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_systems_that_hold_pages_by_reference() {
        let local = "/dev/vda / ext4 rw 0 0\nproc /proc proc rw 0 0\n";
        assert!(all_pin(local) && all_pin(""));
        assert!(!all_pin(&format!("{local}server:/home /home nfs4 rw 0 0\n")));
        assert!(!all_pin("x /mnt fuse.sshfs rw 0 0") && !all_pin("x /scratch lustre rw 0 0"));
    }
}
