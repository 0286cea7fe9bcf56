//! The file that processes append their records to, and its limit.

use nearfar_core::profile::file;
use nearfar_core::profile::record::Record;
use nearfar_sys::append::AppendFile;
use nearfar_sys::errno::{Errno, call};
use nearfar_sys::process;
use nearfar_sys::rlimit::{self, Limit};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// Records in one piece.
const PIECE: usize = 500;
/// The file exceeds its limit by at most this: what tells of the end still goes in.
const BEYOND: u64 = 512 << 10;

/// How much is left out to stay within the limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Thin {
    /// Nothing.
    #[default]
    No,
    /// Objects of small groups are told of together, and each second watch is left out.
    Small,
    /// All but very large objects; seven of eight watches.
    Most,
    /// Everything but totals.
    Full,
}

/// The open file.
pub struct Output {
    path: PathBuf,
    file: Option<AppendFile>,
    /// Device and number: a program that closes all descriptors must not have ours become a file of its own.
    identity: (u64, u64),
    limit: u64,
    size: u64,
    /// Writing has failed: nothing more is written but what tells of it at the end.
    broken: bool,
    /// The file ends within a batch: nobody reads what follows.
    torn: bool,
    /// Something did not fit.
    full: bool,
    /// Records that were left out because of the limit.
    pub left_out: u64,
    /// And since the file could not be written: the disk is full, or the file has gone.
    pub unwritten: u64,
}

fn facts(fd: i32) -> Option<((u64, u64), u64)> {
    // SAFETY: plain integers.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: writes into the local.
    (unsafe { libc::fstat(fd, &mut stat) } == 0).then_some(((stat.st_dev, stat.st_ino), stat.st_size as u64))
}

impl Output {
    /// The file at `path`, which exists.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(path: &Path, limit: u64) -> Result<Self, Errno> {
        let file = AppendFile::open(path.as_os_str())?;
        let (identity, size) = facts(file.as_raw_fd()).ok_or(Errno(libc::EBADF))?;
        Ok(Self {
            path: path.to_owned(),
            file: Some(file),
            identity,
            limit,
            size,
            broken: false,
            torn: false,
            full: false,
            left_out: 0,
            unwritten: 0,
        })
    }

    /// Its descriptor.
    pub fn fd(&self) -> Option<i32> {
        self.file.as_ref().map(AsRawFd::as_raw_fd)
    }

    /// What is left out now, if so many bytes more are to be written.
    pub fn thin(&self, more: u64) -> Thin {
        match self.size.saturating_add(more) {
            _ if self.broken || self.full || self.size >= self.limit => Thin::Full,
            size if size >= self.limit / 4 * 3 => Thin::Most,
            size if size >= self.limit / 2 => Thin::Small,
            _ => Thin::No,
        }
    }

    /// The descriptor is still that of our file, or is again: closed behind our back it is opened anew.
    fn check(&mut self) -> bool {
        for _ in 0..2 {
            match self.fd().and_then(facts) {
                Some((identity, size)) if identity == self.identity => {
                    self.size = size;
                    return true;
                }
                _ => {
                    // Not ours any more: whoever has the number now keeps it.
                    self.file = None;
                    self.file = AppendFile::open(self.path.as_os_str()).ok();
                }
            }
        }
        false
    }

    /// Appends `records` of process `pid`, as many as there is room for; `last` may exceed the limit a little.
    pub fn write(&mut self, pid: u32, records: &[Record], last: bool) {
        if records.is_empty() {
            return;
        }
        // At the end the disk may have room again.
        if self.torn || (self.broken && !last) || !self.check() {
            self.unwritten += records.len() as u64;
            return;
        }
        let most = if last { self.limit + BEYOND } else { self.limit };
        let most = most.min(rlimit::limit(Limit::FileSize).unwrap_or(u64::MAX));
        let mut left = records.len() as u64;
        for piece in records.chunks(PIECE) {
            let bytes = file::batch(pid, piece);
            if (self.full && !last) || self.size.saturating_add(bytes.len() as u64) > most {
                self.left_out += piece.len() as u64;
                self.full = true;
                left -= piece.len() as u64;
                continue;
            }
            let Some(file) = &self.file else { return };
            if let Err((errno, torn)) = append(file.as_raw_fd(), &bytes) {
                if !self.broken {
                    let text = format!("nearfar: the profile cannot be written ({errno}): it ends here\n");
                    process::write_stderr(text.as_bytes());
                }
                (self.broken, self.torn) = (true, torn);
                self.unwritten += left;
                return;
            }
            left -= piece.len() as u64;
            self.size += bytes.len() as u64;
        }
    }
}

/// In one write. The error, and whether a part of the bytes was written: what is cut off by a full disk ends the file for good.
fn append(fd: i32, bytes: &[u8]) -> Result<(), (Errno, bool)> {
    loop {
        // SAFETY: the slice is valid for its length.
        match unsafe { call(libc::SYS_write, [fd as usize, bytes.as_ptr() as usize, bytes.len(), 0, 0, 0]) } {
            Ok(count) if count == bytes.len() => return Ok(()),
            Ok(count) => return Err((Errno(libc::ENOSPC), count > 0)),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err((errno, false)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(len: usize) -> Record {
        Record::Note { text: "x".repeat(len) }
    }

    #[test]
    fn a_full_disk_is_not_the_limit() {
        let mut output = Output::open(Path::new("/dev/full"), 100_000).unwrap();
        output.write(7, &[note(10), note(10)], false);
        output.write(7, &[note(10)], false);
        assert_eq!((output.thin(0), output.left_out, output.unwritten), (Thin::Full, 0, 3));
    }

    #[test]
    fn pieces_limit_and_closed_descriptors() {
        let path = std::env::temp_dir().join(format!("nearfar-output-{}", std::process::id()));
        std::fs::write(&path, file::head()).unwrap();
        let mut output = Output::open(&path, 100_000).unwrap();
        assert_eq!(output.thin(0), Thin::No);
        output.write(7, &[note(60_000)], false);
        assert_eq!(output.thin(0), Thin::Small);
        // SAFETY: the number of the file under test, which checks that it is still its own.
        unsafe { libc::close(output.fd().unwrap()) };
        output.write(7, &[note(50_000)], false);
        assert_eq!((output.thin(0), output.left_out), (Thin::Full, 1));
        output.write(7, &[note(100)], false);
        output.write(7, &[note(200)], true);
        let content = file::read(&std::fs::read(&path).unwrap()).unwrap();
        assert_eq!((content.batches.len(), content.lost_bytes), (2, 0));
        assert_eq!(content.batches[1].records, [note(200)]);
        std::fs::remove_file(&path).unwrap();
    }
}
