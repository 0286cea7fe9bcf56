//! The kernel's page cache of a file: what of it is in memory, and advice to read ahead, write back and let go.
//!
//! None of this changes what the file or a mapping of it holds.

use crate::errno::{Errno, call};
use crate::root::Root;
use std::os::fd::{AsRawFd, RawFd};

/// cachestat(2), since Linux 6.5; the number is the same on every architecture.
const SYS_CACHESTAT: libc::c_long = 451;

/// Pages of a part of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Cached {
    /// In memory.
    pub pages: u64,
    /// Of these, changed and not being written yet.
    pub dirty: u64,
    /// Of these, being written.
    pub writing: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// What of bytes `offset..offset + len` is in memory. Fails before Linux 6.5, and where a filter does not know the call. Of a
/// file of an overlay it sees nothing.
pub fn cached(file: &impl AsRawFd, offset: u64, len: u64) -> Result<Cached, Errno> {
    let range = [offset, len];
    let mut out = Cached::default();
    let args = [raw(file), range.as_ptr() as usize, &raw mut out as usize, 0, 0, 0];
    // SAFETY: reads a local of two words, writes a local of five.
    unsafe { call(SYS_CACHESTAT, args) }.map(|_| out)
}

/// Starts to write what is changed of the bytes, without waiting for the end.
pub fn write_back(file: &impl AsRawFd, offset: u64, len: u64) -> Result<(), Errno> {
    sync_range(file, offset, len, libc::SYNC_FILE_RANGE_WRITE)
}

/// Writes what is changed of the bytes and waits for it. An error may also be of an earlier write, started by whomever.
pub fn write_out(file: &impl AsRawFd, offset: u64, len: u64) -> Result<(), Errno> {
    let all = libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    sync_range(file, offset, len, all)
}

/// Whether any write of the file has failed that was not told of before.
pub fn write_failed(file: &impl AsRawFd) -> Result<(), Errno> {
    sync_range(file, 0, 1, libc::SYNC_FILE_RANGE_WAIT_BEFORE)
}

fn sync_range(file: &impl AsRawFd, offset: u64, len: u64, flags: u32) -> Result<(), Errno> {
    loop {
        // SAFETY: integers only.
        match unsafe { call(libc::SYS_sync_file_range, [raw(file), offset as usize, len as usize, flags as usize, 0, 0]) } {
            Err(Errno::EINTR) => {}
            result => return result.map(|_| ()),
        }
    }
}

/// Writes all of the file and waits for it: for file systems that hand on to another, whose pages `write_out` does not see.
pub fn write_all_out(file: &impl AsRawFd) -> Result<(), Errno> {
    loop {
        // SAFETY: an integer only.
        match unsafe { call(libc::SYS_fdatasync, [raw(file), 0, 0, 0, 0, 0]) } {
            Err(Errno::EINTR) => {}
            result => return result.map(|_| ()),
        }
    }
}

/// Lets go of pages that nobody has in view and that are not changed, and starts to write those that are. Only advice.
pub fn let_go(file: &impl AsRawFd, offset: u64, len: u64) {
    advise(file, offset, len, libc::POSIX_FADV_DONTNEED);
}

/// Reads the bytes into memory ahead of need. Only advice.
pub fn read_ahead(file: &impl AsRawFd, offset: u64, len: u64) {
    advise(file, offset, len, libc::POSIX_FADV_WILLNEED);
}

/// What the kernel reads around a page of a mapping of a file that is missing: a setting of the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadAround {
    /// Bytes.
    pub bytes: u64,
    /// The file of sysfs that holds it, in KiB.
    pub setting: String,
}

/// That of the disk that `file` is on. `None` where sysfs does not say: an overlay, no sysfs.
pub fn read_around(file: &impl AsRawFd) -> Option<ReadAround> {
    // SAFETY: all zeros is a valid value of this structure of integers.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: writes into the local.
    if unsafe { libc::fstat(file.as_raw_fd(), &raw mut stat) } != 0 {
        return None;
    }
    let device = format!("{}:{}", libc::major(stat.st_dev), libc::minor(stat.st_dev));
    let root = Root::this();
    // A partition has the queue of its disk.
    let paths =
        ["/sys/class/bdi/@/read_ahead_kb", "/sys/dev/block/@/queue/read_ahead_kb", "/sys/dev/block/@/../queue/read_ahead_kb"];
    paths.iter().map(|path| path.replace('@', &device)).find_map(|setting| {
        let kib = root.number(&setting)?;
        Some(ReadAround { bytes: kib << 10, setting })
    })
}

fn advise(file: &impl AsRawFd, offset: u64, len: u64, advice: i32) {
    // SAFETY: integers only.
    let _ = unsafe { call(libc::SYS_fadvise64, [raw(file), offset as usize, len as usize, advice as usize, 0, 0]) };
}

fn raw(file: &impl AsRawFd) -> usize {
    let fd: RawFd = file.as_raw_fd();
    fd as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::SpillFile;
    use crate::io::{Op, Piece};

    #[test]
    fn written_pages_are_seen_and_let_go() {
        let file = SpillFile::create(&crate::spill_dir::SpillDir::named("/var/tmp".as_ref()), false).expect("a file");
        let text = vec![7u8; 1 << 20];
        let pieces = vec![Piece { addr: text.as_ptr() as usize, len: text.len() }];
        Op { token: 0, write: true, fd: file.as_raw_fd(), offset: 0, pieces }.finish().expect("written");
        let Ok(before) = cached(&file, 0, 1 << 20) else {
            println!("skipped: no cachestat here");
            return;
        };
        if before.pages == 0 {
            println!("skipped: /var/tmp is on an overlay");
            return;
        }
        write_out(&file, 0, 1 << 20).expect("written out");
        let_go(&file, 0, 1 << 20);
        let after = cached(&file, 0, 1 << 20).expect("known");
        assert_eq!((after.dirty, after.writing), (0, 0));
        assert!(after.pages < before.pages, "{before:?} {after:?}");
        assert_eq!(file.data_from(0), Ok(Some((0, 1 << 20))));
        file.make_hole(0, 1 << 20).expect("a hole");
        assert_eq!(file.data_from(0), Ok(None));
    }
}
