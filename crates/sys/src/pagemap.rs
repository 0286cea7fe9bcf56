//! /proc/self/pagemap: whether a page exists, be it in memory or swapped out by the kernel, and what the program has in view.
//! mincore(2) does not know the one nor the other.

use crate::errno::{Errno, call};
use crate::high_descriptors::Kept;
use crate::{map, process};
use nearfar_core::addr::{Extent, PAGE};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

const PRESENT_OR_SWAPPED: u64 = 0b11 << 62;
const PRESENT: u64 = 1 << 63;
const OF_FILE: u64 = 1 << 61;

/// PAGEMAP_SCAN of ioctl(2), since Linux 6.7: the C library's headers lack it.
const PAGEMAP_SCAN: usize = 0xC060_6610;
const SCAN_FILE: u64 = 1 << 2;
const SCAN_PRESENT: u64 = 1 << 3;
const SCAN_SWAPPED: u64 = 1 << 4;
const SCAN_ZERO: u64 = 1 << 5;
const SCAN_HUGE: u64 = 1 << 6;

#[repr(C)]
#[derive(Default)]
struct ScanArgs {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct ScanRegion {
    start: u64,
    end: u64,
    categories: u64,
}

/// What there is at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageState {
    /// Nothing was ever written there, or nothing is mapped.
    Absent,
    /// The kernel has swapped it out.
    Swapped,
    /// A page of a file, or shared memory.
    File,
    /// Memory of its own, a small page.
    Small,
    /// Memory of its own, part of a huge page.
    Huge,
}

/// The page tables of this process, kept open. After a fork a copy still tells of the parent.
pub struct Pagemap {
    fd: Kept,
    can_scan: bool,
}

impl Pagemap {
    /// Opens it. Fails where /proc is not mounted, and for programs that hide themselves (prctl PR_SET_DUMPABLE).
    pub fn open() -> Result<Self, Errno> {
        // The thread's: the process's is empty once its first thread has ended.
        let path = c"/proc/thread-self/pagemap".as_ptr() as usize;
        let flags = (libc::O_RDONLY | libc::O_CLOEXEC) as usize;
        // SAFETY: a C string constant.
        let fd = unsafe { call(libc::SYS_openat, [libc::AT_FDCWD as usize, path, flags, 0, 0, 0])? };
        // SAFETY: a fresh descriptor, ours alone.
        Ok(Self { fd: Kept::new(unsafe { OwnedFd::from_raw_fd(fd as i32) }), can_scan: true })
    }

    /// That of another process: needs its owner's rights.
    pub fn of_process(pid: u32) -> Result<Self, Errno> {
        let fd = std::fs::File::open(format!("/proc/{pid}/pagemap"))
            .map_err(|error| Errno(error.raw_os_error().unwrap_or(libc::EIO)))?;
        Ok(Self { fd: Kept::in_place(fd.into()), can_scan: true })
    }

    /// False when the program has closed the descriptor, or has another file there: then nothing can be asked. What is opened in its
    /// place does not close the program's.
    pub fn is_ours(&self) -> bool {
        self.fd.is_ours()
    }

    /// The first address in `range` that has a page in memory. Where the kernel cannot search (before Linux 6.7) it is the first address of
    /// `range`, page or not.
    pub fn next_present(&mut self, range: Extent) -> Result<Option<usize>, Errno> {
        let mut region = ScanRegion::default();
        let mut from = range.start;
        while self.can_scan && from < range.end {
            let mut args = ScanArgs {
                size: size_of::<ScanArgs>() as u64,
                start: from as u64,
                end: range.end as u64,
                vec: (&raw mut region).addr() as u64,
                vec_len: 1,
                max_pages: 1,
                category_mask: SCAN_PRESENT,
                return_mask: SCAN_PRESENT,
                ..Default::default()
            };
            // SAFETY: reads and writes a local, and writes at most one entry to a local.
            match unsafe { call(libc::SYS_ioctl, [self.raw(), PAGEMAP_SCAN, &raw mut args as usize, 0, 0, 0]) } {
                Ok(0) if args.walk_end as usize > from => from = args.walk_end as usize,
                Err(Errno::EINTR) => {}
                Ok(0) => return Ok(None),
                Ok(_) => return Ok(Some(region.start as usize)),
                Err(Errno(libc::ENOTTY)) => self.can_scan = false,
                Err(errno) => return Err(errno),
            }
        }
        Ok(Some(range.start).filter(|_| !self.can_scan && range.start < range.end))
    }

    /// Tells `each` of the pages of `range` that the program has in view, in ascending runs, and whether they are a file's.
    pub fn mapped(&mut self, range: Extent, each: &mut dyn FnMut(Extent, bool)) -> Result<(), Errno> {
        if self.can_scan {
            match self.scan(range, each) {
                Err(Errno(libc::ENOTTY)) => self.can_scan = false,
                result => return result,
            }
        }
        self.look(range, each)
    }

    /// What there is at `page`. Needs Linux 6.7.
    pub fn state(&self, page: usize) -> Result<PageState, Errno> {
        let mut region = ScanRegion::default();
        let mut args = ScanArgs {
            size: size_of::<ScanArgs>() as u64,
            start: page as u64,
            end: (page + PAGE) as u64,
            vec: (&raw mut region).addr() as u64,
            vec_len: 1,
            category_anyof_mask: SCAN_PRESENT | SCAN_SWAPPED,
            return_mask: SCAN_FILE | SCAN_PRESENT | SCAN_SWAPPED | SCAN_ZERO | SCAN_HUGE,
            ..Default::default()
        };
        // SAFETY: reads and writes locals, of which it knows the size.
        let found = unsafe { call(libc::SYS_ioctl, [self.raw(), PAGEMAP_SCAN, &raw mut args as usize, 0, 0, 0])? };
        let is = |category: u64| region.categories & category != 0;
        Ok(match found {
            0 => PageState::Absent,
            _ if is(SCAN_ZERO) => PageState::Absent,
            _ if is(SCAN_FILE) => PageState::File,
            _ if is(SCAN_SWAPPED) => PageState::Swapped,
            _ if is(SCAN_HUGE) => PageState::Huge,
            _ => PageState::Small,
        })
    }

    fn scan(&self, range: Extent, each: &mut dyn FnMut(Extent, bool)) -> Result<(), Errno> {
        let mut regions = [ScanRegion::default(); 128];
        let mut from = range.start;
        while from < range.end {
            let mut args = ScanArgs {
                size: size_of::<ScanArgs>() as u64,
                start: from as u64,
                end: range.end as u64,
                vec: regions.as_mut_ptr() as u64,
                vec_len: regions.len() as u64,
                category_mask: SCAN_PRESENT,
                return_mask: SCAN_PRESENT | SCAN_FILE,
                ..Default::default()
            };
            // SAFETY: reads and writes a local, and writes at most `vec_len` entries of a local array.
            let found = unsafe { call(libc::SYS_ioctl, [self.raw(), PAGEMAP_SCAN, &raw mut args as usize, 0, 0, 0]) };
            let found = match found {
                Err(Errno::EINTR) => continue,
                result => result?,
            };
            for region in regions.iter().take(found) {
                let run = Extent { start: region.start as usize, end: region.end as usize };
                each(run, region.categories & SCAN_FILE != 0);
            }
            if args.walk_end as usize <= from {
                return Err(Errno(libc::EIO));
            }
            from = args.walk_end as usize;
        }
        Ok(())
    }

    fn look(&self, range: Extent, each: &mut dyn FnMut(Extent, bool)) -> Result<(), Errno> {
        let mut entries = [0u64; 4096];
        let mut page = range.start / PAGE;
        let end = range.end.div_ceil(PAGE);
        while page < end {
            let count = entries.len().min(end - page);
            let args = [self.raw(), entries.as_mut_ptr() as usize, count * 8, page * 8, 0, 0];
            // SAFETY: writes at most `count` entries of a local array.
            let got = unsafe { call(libc::SYS_pread64, args)? } / 8;
            if got == 0 {
                return Err(Errno(libc::EIO));
            }
            let mut at = 0;
            while at < got {
                let kind = |entry: u64| entry & (PRESENT | OF_FILE);
                let len = entries[at..got].iter().take_while(|&&entry| kind(entry) == kind(entries[at])).count();
                if entries[at] & PRESENT != 0 {
                    each(Extent::new((page + at) * PAGE, len * PAGE), entries[at] & OF_FILE != 0);
                }
                at += len;
            }
            page += got;
        }
        Ok(())
    }

    fn raw(&self) -> usize {
        self.fd.as_raw_fd() as usize
    }
}

impl AsRawFd for Pagemap {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

/// /proc/self/pagemap as `existing` keeps it open, and the process whose it is.
static KEPT: AtomicI32 = AtomicI32::new(-1);
static KEPT_BY: AtomicU32 = AtomicU32::new(0);

/// The descriptor that `existing` keeps open, which the program must not close.
pub fn kept_fd() -> Option<RawFd> {
    Some(KEPT.load(Ordering::Relaxed)).filter(|&fd| fd >= 0)
}

/// Opens /proc/self/pagemap for `existing`, and again after a fork. It stays open: later there may be no descriptor left, and
/// no right to it.
pub fn keep() -> Result<(), Errno> {
    let pid = process::pid();
    if KEPT_BY.load(Ordering::Relaxed) == pid && KEPT.load(Ordering::Relaxed) >= 0 {
        return Ok(());
    }
    let before = KEPT.swap(-1, Ordering::Relaxed);
    if before >= 0 {
        // The parent's. First of all, since a process without free descriptors gets one by that.
        // SAFETY: ours, and used nowhere else: those who ask hold the pager's lock.
        drop(unsafe { OwnedFd::from_raw_fd(before) });
    }
    KEPT.store(Pagemap::open()?.fd.into_raw(), Ordering::Relaxed);
    KEPT_BY.store(pid, Ordering::Relaxed);
    Ok(())
}

/// Sets `out[i]` to whether page `i` of `range` exists. Fails where /proc is not mounted.
pub fn existing(range: Extent, out: &mut [bool]) -> Result<(), Errno> {
    keep()?;
    let fd = KEPT.load(Ordering::Relaxed);
    let mut entries = [0u64; 512];
    let mut page = range.start / PAGE;
    for chunk in out.chunks_mut(entries.len()) {
        let want = chunk.len() * 8;
        let args = [fd as usize, entries.as_mut_ptr() as usize, want, page * 8, 0, 0];
        // SAFETY: writes at most `want` bytes into a local array of that size.
        if unsafe { call(libc::SYS_pread64, args)? } != want {
            return Err(Errno(libc::EIO));
        }
        for (exists, entry) in chunk.iter_mut().zip(&entries) {
            *exists = entry & PRESENT_OR_SWAPPED != 0;
        }
        page += chunk.len();
    }
    Ok(())
}

/// True when the kernel has nowhere to swap to.
fn has_no_swap() -> bool {
    // SAFETY: zeros are a valid value of this structure of numbers.
    let mut info: libc::sysinfo = unsafe { std::mem::zeroed() };
    // SAFETY: fills a local.
    unsafe { call(libc::SYS_sysinfo, [&raw mut info as usize, 0, 0, 0, 0, 0]) }.is_ok() && info.totalswap == 0
}

/// Calls `each` with the index of every page of `range` that is absent. Costs about 2 us for 64 KiB, 7 us for 2 MiB. Fails when
/// one cannot tell: mincore(2) is refused, or calls a page absent that may be swapped out, and /proc cannot be read.
pub fn absent_pages(range: Extent, mut each: impl FnMut(usize)) -> Result<(), Errno> {
    const STEP: usize = 512;
    for first in (0..range.len() / PAGE).step_by(STEP) {
        let count = STEP.min(range.len() / PAGE - first);
        let part = Extent::new(range.start + first * PAGE, count * PAGE);
        let mut present = [0u8; STEP];
        let refused = match map::mincore(part, &mut present) {
            Ok(()) => None,
            Err(errno) => {
                present.fill(0);
                // Unmapped: all of it is absent.
                Some(errno).filter(|&errno| errno != Errno::ENOMEM)
            }
        };
        if present[..count].iter().all(|byte| byte & 1 == 1) {
            continue;
        }
        // To mincore a page that the kernel has swapped out is absent too.
        let mut exists = [false; STEP];
        if let Err(errno) = existing(part, &mut exists[..count]) {
            match refused {
                Some(refused) => return Err(refused),
                None if has_no_swap() => {}
                None => return Err(errno),
            }
        }
        (0..count).filter(|&page| present[page] & 1 == 0 && !exists[page]).for_each(|page| each(first + page));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::OwnedMap;

    #[test]
    fn both_ways_of_looking_see_the_same() {
        let map = OwnedMap::new(64 * PAGE).expect("memory");
        for page in [0, 1, 2, 7, 63] {
            // SAFETY: a page of our own mapping.
            unsafe { ((map.range().start + page * PAGE) as *mut u8).write_volatile(1) };
        }
        let mut pagemap = Pagemap::open().expect("pagemap");
        let seen = |pagemap: &mut Pagemap| {
            let mut pages = Vec::new();
            let mut each = |run: Extent, file: bool| {
                assert!(!file);
                pages.extend((run.start..run.end).step_by(PAGE).map(|addr| (addr - map.range().start) / PAGE));
            };
            pagemap.mapped(map.range(), &mut each).expect("looked");
            pages
        };
        assert_eq!(seen(&mut pagemap), [0, 1, 2, 7, 63]);
        pagemap.can_scan = false;
        assert_eq!(seen(&mut pagemap), [0, 1, 2, 7, 63]);
    }

    #[test]
    fn what_there_is() {
        let map = OwnedMap::new(4 * PAGE).expect("memory");
        let start = map.range().start;
        // SAFETY: pages of our own mapping.
        unsafe {
            (start as *mut u8).write_volatile(1);
            ((start + PAGE) as *const u8).read_volatile();
        }
        let pagemap = Pagemap::open().expect("pagemap");
        let state = |page: usize| pagemap.state(start + page * PAGE);
        if state(0) == Err(Errno(libc::ENOTTY)) {
            return println!("skipped: this kernel cannot search");
        }
        assert_eq!((state(0), state(1), state(2)), (Ok(PageState::Small), Ok(PageState::Absent), Ok(PageState::Absent)));
        let code = what_there_is as fn() as usize / PAGE * PAGE;
        assert_eq!(pagemap.state(code), Ok(PageState::File));
    }

    #[test]
    fn closed_behind_our_back() {
        let mut pagemap = Pagemap::open().expect("pagemap");
        let theirs = std::fs::File::open("/proc/self/statm").expect("open");
        let number = pagemap.as_raw_fd();
        assert!(pagemap.is_ours());
        // SAFETY: the number under test.
        assert_eq!(unsafe { libc::dup2(theirs.as_raw_fd(), number) }, number);
        let page = theirs_page();
        assert!(!pagemap.is_ours() && pagemap.state(page).is_err());
        pagemap = Pagemap::open().expect("again");
        assert!(pagemap.is_ours() && pagemap.as_raw_fd() != number);
        // SAFETY: the duplicate of above: still open, and nobody else's.
        assert_eq!(unsafe { libc::close(number) }, 0);
    }

    fn theirs_page() -> usize {
        closed_behind_our_back as fn() as usize / PAGE * PAGE
    }

    #[test]
    fn the_next_page_of_a_process() {
        let map = OwnedMap::new(64 * PAGE).expect("memory");
        let start = map.range().start;
        // SAFETY: a page of our own mapping.
        unsafe { ((start + 9 * PAGE) as *mut u8).write_volatile(1) };
        let mut pagemap = Pagemap::of_process(process::pid()).expect("own");
        let mut next = |from: usize| pagemap.next_present(Extent { start: start + from * PAGE, end: start + 64 * PAGE });
        let first = next(0).expect("looked");
        if first == Some(start) {
            return println!("skipped: this kernel cannot search");
        }
        assert_eq!((first, next(9), next(10)), (Some(start + 9 * PAGE), Ok(Some(start + 9 * PAGE)), Ok(None)));
        assert!(Pagemap::of_process(u32::MAX).is_err());
    }
}
