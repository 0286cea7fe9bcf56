//! How fast the device under a directory is, measured as a pager could use it at best: direct I/O, many requests at once.
//!
//! Owns an unlinked private file. Invariant: every block of it has been written, with data that does not compress, before anything is
//! timed, so that no measurement allocates space or reads holes. Does not interpret: bounds are made of these figures elsewhere.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::histogram::Histogram;
use crate::thread_team;
use nearfar_core::random_numbers::{Random, below};

/// Bytes per request of the sequential measurements.
pub const BLOCK: usize = 1 << 20;
/// Bytes per request of the random measurements.
pub const PAGE: usize = 4096;
/// Requests at once when the file is filled.
const FILL_DEPTH: usize = 16;
/// Bytes of a huge page, the alignment of buffers.
const HUGE_PAGE: usize = 2 << 20;

/// Work done in a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Bytes moved.
    pub bytes: u64,
    /// Requests.
    pub operations: u64,
    /// Wall seconds.
    pub seconds: f64,
}

impl Rate {
    /// Bytes per second.
    pub fn bytes_per_s(&self) -> f64 {
        self.bytes as f64 / self.seconds
    }

    /// Requests per second.
    pub fn operations_per_s(&self) -> f64 {
        self.operations as f64 / self.seconds
    }
}

/// A file to measure with.
#[derive(Debug)]
pub struct DeviceFile {
    file: File,
    blocks: usize,
    direct: bool,
}

impl DeviceFile {
    /// Creates an unlinked file of `bytes` (at least 1 MiB, whole MiB) in `directory` and fills it.
    pub fn create(directory: &Path, bytes: usize) -> io::Result<Self> {
        let path = directory.join(format!(".nearfar-device-{}", std::process::id()));
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600);
        let (file, direct) = match options.clone().custom_flags(libc::O_DIRECT).open(&path) {
            Ok(file) => (file, true),
            // tmpfs and some network file systems; open may have made the file before it refused the flag.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                let _ = std::fs::remove_file(&path);
                (options.open(&path)?, false)
            }
            Err(error) => return Err(error),
        };
        std::fs::remove_file(&path)?;
        let device = Self { file, blocks: (bytes / BLOCK).max(1), direct };
        device.write(FILL_DEPTH)?;
        Ok(device)
    }

    /// Whether the file system takes direct I/O; without it the figures are those of the page cache.
    pub fn is_direct(&self) -> bool {
        self.direct
    }

    /// Overwrites the whole file once, `depth` blocks at a time.
    pub fn write(&self, depth: usize) -> io::Result<Rate> {
        self.each_block(depth, |_| Access::Write)
    }

    /// Reads the whole file once, `depth` blocks at a time.
    pub fn read(&self, depth: usize) -> io::Result<Rate> {
        self.each_block(depth, |_| Access::Read)
    }

    /// Goes once over the whole file, `depth` blocks at a time, reading `reads` blocks for each that it writes.
    pub fn read_and_write(&self, depth: usize, reads: usize) -> io::Result<Rate> {
        self.each_block(depth, |block| if block % (reads + 1) == reads { Access::Write } else { Access::Read })
    }

    /// Reads single pages at random from `threads` threads for `time`.
    pub fn read_random(&self, threads: usize, time: Duration) -> io::Result<Rate> {
        let start = Instant::now();
        let counts = thread_team::map((0..threads.max(1)).collect(), |thread| -> io::Result<u64> {
            let mut rng = Random::new(thread as u64);
            let mut memory = Aligned::new(PAGE);
            let mut count = 0;
            while start.elapsed() < time {
                let page = below(rng.next(), self.blocks * (BLOCK / PAGE));
                self.file.read_exact_at(memory.bytes(), (page * PAGE) as u64)?;
                count += 1;
            }
            Ok(count)
        });
        let operations = counts.into_iter().sum::<io::Result<u64>>()?;
        Ok(Rate { bytes: operations * PAGE as u64, operations, seconds: start.elapsed().as_secs_f64() })
    }

    /// Reads single pages at random, one at a time, for `time`: how long each took.
    pub fn time_reads(&self, time: Duration) -> io::Result<Histogram> {
        let mut rng = Random::new(77);
        let mut memory = Aligned::new(PAGE);
        let mut times = Histogram::default();
        let begin = Instant::now();
        while begin.elapsed() < time {
            let page = below(rng.next(), self.blocks * (BLOCK / PAGE));
            let start = Instant::now();
            self.file.read_exact_at(memory.bytes(), (page * PAGE) as u64)?;
            times.add(start.elapsed().as_nanos() as u64);
        }
        Ok(times)
    }

    fn each_block(&self, depth: usize, access: impl Fn(usize) -> Access + Sync) -> io::Result<Rate> {
        let next = AtomicUsize::new(0);
        let failed = AtomicBool::new(false);
        let mut memory = Aligned::new(depth.max(1) * BLOCK);
        let buffers = memory.bytes().chunks_exact_mut(BLOCK).collect();
        let start = Instant::now();
        let results = thread_team::map(buffers, |buffer: &mut [u8]| -> io::Result<()> {
            while !failed.load(Ordering::Relaxed) {
                let block = next.fetch_add(1, Ordering::Relaxed);
                if block >= self.blocks {
                    break;
                }
                let offset = (block * BLOCK) as u64;
                let result = match access(block) {
                    Access::Read => self.file.read_exact_at(buffer, offset),
                    Access::Write => self.file.write_all_at(buffer, offset),
                };
                if result.is_err() {
                    failed.store(true, Ordering::Relaxed);
                }
                result?;
            }
            Ok(())
        });
        results.into_iter().collect::<io::Result<()>>()?;
        let seconds = start.elapsed().as_secs_f64();
        Ok(Rate { bytes: (self.blocks * BLOCK) as u64, operations: self.blocks as u64, seconds })
    }
}

enum Access {
    Read,
    Write,
}

/// Memory for direct I/O, in huge pages where the kernel gives them, and filled with noise. Huge pages matter: from scattered small
/// pages each request falls apart in up to 256 pieces, and a virtio disk read half as fast (1.1 against 2.1 GB/s).
struct Aligned {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl Aligned {
    fn new(len: usize) -> Self {
        let mut memory = vec![0u8; len + HUGE_PAGE];
        let start = memory.as_ptr().align_offset(HUGE_PAGE);
        let own = &mut memory[start..start + len];
        // SAFETY: the range lies inside `memory` and is page-aligned; the advice changes how it is backed, never what it holds. A
        // refusal only costs speed.
        unsafe { libc::madvise(own.as_mut_ptr().cast(), own.len(), libc::MADV_HUGEPAGE) };
        let mut rng = Random::new(len as u64);
        for word in own.chunks_exact_mut(8) {
            word.copy_from_slice(&rng.next().to_le_bytes());
        }
        Self { memory, start, len }
    }

    fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_measurement_moves_what_it_says() {
        let device = DeviceFile::create(&std::env::temp_dir(), 8 << 20).expect("a file in the temporary directory");
        assert_eq!(device.write(4).expect("write").bytes, 8 << 20);
        assert_eq!(device.read(4).expect("read").operations, 8);
        assert_eq!(device.read_and_write(4, 2).expect("mixed").operations, 8);
        let random = device.read_random(2, Duration::from_millis(20)).expect("random");
        assert!(random.operations > 0 && random.operations_per_s() > 0.0);
        let times = device.time_reads(Duration::from_millis(20)).expect("timed").bins();
        assert!(times.iter().map(|(ns, count)| ns * count).sum::<u64>() <= 1_000_000_000 && !times.is_empty());
    }
}
