//! How fast a far tier is, by access, request size and depth, measured through the backend that the pager uses (io_uring or threads,
//! direct I/O where the file system has it), or by reading a block device.
//!
//! Every page that is written carries its offset and a number that changes with each pass; what is read is compared with it, so that
//! a tier that gives other bytes back is an error and no speed. A device is only ever read. Does not interpret.

use crate::backend::Backend;
use nearfar_core::addr::{BLOCK, Extent, PAGE, round_up};
use nearfar_core::node::FarAccess;
use nearfar_core::random_numbers::xorshift;
use nearfar_sys::errno::Errno;
use nearfar_sys::event::{now_ns, wait_readable};
use nearfar_sys::io::{Done, Engine, Op, Piece};
use nearfar_sys::io_threads::Threads;
use nearfar_sys::io_uring::Ring;
use nearfar_sys::map::{self, OwnedMap};
use std::fs::File;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

/// Requests under way at the most.
pub const DEEPEST: usize = 64;
/// Bytes of a request at the most.
pub const LARGEST: usize = BLOCK;
/// Without any completion for so long the tier hangs.
const PATIENCE_NS: u64 = 30_000_000_000;

/// What is measured.
enum Target {
    Backend(Box<dyn Backend>),
    Device(File, Box<dyn Engine>),
}

impl Target {
    fn submit(&mut self, token: u64, write: bool, offset: u64, piece: Piece) {
        match self {
            Self::Backend(backend) => {
                let own = backend.own();
                backend.submit(token, write, own, offset, vec![piece]);
            }
            Self::Device(file, engine) => {
                engine.submit(Op { token, write: false, fd: file.as_raw_fd(), offset, pieces: vec![piece] });
            }
        }
    }

    fn flush(&mut self) {
        match self {
            Self::Backend(backend) => backend.flush(),
            Self::Device(_, engine) => engine.flush(),
        }
    }

    fn completions(&mut self, out: &mut Vec<Done>) {
        match self {
            Self::Backend(backend) => backend.completions(out),
            Self::Device(_, engine) => engine.completions(out),
        }
    }

    fn wait_fd(&self) -> RawFd {
        match self {
            Self::Backend(backend) => backend.wait_fd(),
            Self::Device(_, engine) => engine.wait_fd(),
        }
    }
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Run {
    /// Bytes moved.
    pub bytes: u64,
    /// Requests.
    pub requests: u64,
    /// Wall seconds.
    pub seconds: f64,
    /// Mean nanoseconds from submission to completion.
    pub mean_ns: f64,
}

/// Why a far tier could not be measured.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// The kernel or the device refused.
    #[error("{0}")]
    Refused(Errno),
    /// It moved less than was asked for.
    #[error("a request for {asked} bytes at offset {offset} moved {moved}")]
    Short {
        /// Bytes asked for.
        asked: usize,
        /// Bytes moved.
        moved: usize,
        /// Where.
        offset: u64,
    },
    /// It gave other bytes back than were written.
    #[error("wrong data at offset {0}: the tier does not return what was written to it")]
    Wrong(u64),
    /// Nothing happened for half a minute.
    #[error("no request was completed within 30 s")]
    Hangs,
}

/// A far tier under measurement.
pub struct Speed {
    target: Target,
    bytes: u64,
    // What the pages carry is known (all have been written by us).
    stamped: bool,
    memory: ManuallyDrop<OwnedMap>,
    // Requests that the kernel or a thread may still serve: the memory must not go before them.
    under_way: usize,
    pass: Vec<u32>,
    state: u64,
}

impl Speed {
    /// A backend, of which `bytes` (rounded up to 2 MiB) are secured and written.
    pub fn new(mut backend: Box<dyn Backend>, bytes: u64) -> Result<Self, Trouble> {
        let bytes = round_up(bytes.max(BLOCK as u64) as usize, BLOCK).ok_or(Trouble::Refused(Errno::ENOMEM))? as u64;
        backend.secure(0, bytes).map_err(Trouble::Refused)?;
        let mut speed = Self::with(Target::Backend(backend), bytes, true)?;
        // So that no measurement allocates space or reads holes.
        speed.whole(FarAccess::SequentialWrite)?;
        Ok(speed)
    }

    /// A block device of `bytes` bytes, or a file: read only, at its beginning (`bytes` at the most).
    pub fn device(path: &Path, bytes: u64) -> Result<(Self, bool), Trouble> {
        let refused = |error: std::io::Error| Trouble::Refused(Errno(error.raw_os_error().unwrap_or(libc::EIO)));
        let direct = File::options().read(true).custom_flags(libc::O_DIRECT | libc::O_CLOEXEC).open(path);
        let (file, is_direct) = match direct {
            Ok(file) => (file, true),
            Err(_) => (File::open(path).map_err(refused)?, false),
        };
        let engine: Box<dyn Engine> = match Ring::new() {
            Ok(ring) => Box::new(ring),
            Err(_) => Box::new(Threads::new(DEEPEST.min(16)).map_err(Trouble::Refused)?),
        };
        let bytes = bytes / BLOCK as u64 * BLOCK as u64;
        Ok((Self::with(Target::Device(file, engine), bytes, false)?, is_direct))
    }

    fn with(target: Target, bytes: u64, stamped: bool) -> Result<Self, Trouble> {
        let memory = OwnedMap::new(DEEPEST * LARGEST + BLOCK).map_err(Trouble::Refused)?;
        // SAFETY: our own fresh mapping; the advice changes only the size of pages. Scattered small ones make requests fall apart.
        let _ = unsafe { map::madvise(memory.range(), libc::MADV_HUGEPAGE) };
        let pages = if stamped { bytes as usize / PAGE } else { 0 };
        let memory = ManuallyDrop::new(memory);
        let mut speed = Self { target, bytes, stamped, memory, under_way: 0, pass: vec![0; pages], state: 0x9E37_79B9_7F4A_7C15 };
        for slot in 0..DEEPEST {
            speed.fill(slot, LARGEST);
        }
        Ok(speed)
    }

    /// Bytes of the part that is measured.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn random(&mut self) -> u64 {
        xorshift(&mut self.state)
    }

    fn slot(&self, slot: usize, len: usize) -> Extent {
        let start = round_up(self.memory.range().start, BLOCK).unwrap_or(self.memory.range().start);
        Extent::new(start + slot * LARGEST, len)
    }

    fn words(&mut self, slot: usize, len: usize) -> &mut [u64] {
        let range = self.slot(slot, len);
        // SAFETY: the slot lies inside `memory`, which is ours alone; nothing is under way for it when this is called, and the borrow
        // of `self` ends before the next submission.
        unsafe { std::slice::from_raw_parts_mut(range.start as *mut u64, len / 8) }
    }

    /// Noise: a device may compress or drop zeros.
    fn fill(&mut self, slot: usize, len: usize) {
        let mut state = 0x1234_5678_9ABC_DEF1u64.wrapping_mul(slot as u64 | 1);
        for word in self.words(slot, len) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            *word = state;
        }
    }

    fn stamp(&mut self, slot: usize, offset: u64, len: usize) {
        let first = offset as usize / PAGE;
        for page in 0..len / PAGE {
            let number = first + page;
            self.pass[number] = self.pass[number].wrapping_add(1);
            let mark = mark(number, self.pass[number]);
            self.words(slot, len)[page * (PAGE / 8)] = mark;
        }
    }

    fn check(&mut self, slot: usize, offset: u64, len: usize) -> Result<(), Trouble> {
        if !self.stamped {
            return Ok(());
        }
        let first = offset as usize / PAGE;
        for page in 0..len / PAGE {
            let number = first + page;
            let expected = mark(number, self.pass[number]);
            if self.words(slot, len)[page * (PAGE / 8)] != expected {
                return Err(Trouble::Wrong((number * PAGE) as u64));
            }
        }
        Ok(())
    }

    /// Goes once over the whole.
    fn whole(&mut self, access: FarAccess) -> Result<Run, Trouble> {
        let blocks = self.bytes / LARGEST as u64;
        self.go(access, LARGEST, 8.min(DEEPEST), u64::MAX, blocks)
    }

    /// Requests of `request` bytes (a multiple of 4096 up to 2 MiB), `depth` at a time, for about `time`. What writes is refused for
    /// devices.
    pub fn run(&mut self, access: FarAccess, request: usize, depth: usize, time: Duration) -> Result<Run, Trouble> {
        self.go(access, request, depth, time.as_nanos() as u64, u64::MAX)
    }

    fn go(&mut self, access: FarAccess, request: usize, depth: usize, time_ns: u64, most: u64) -> Result<Run, Trouble> {
        let write = matches!(access, FarAccess::SequentialWrite | FarAccess::RandomWrite);
        let random = matches!(access, FarAccess::RandomRead | FarAccess::RandomWrite);
        let places = self.bytes / request as u64;
        if places == 0 || request > LARGEST || !request.is_multiple_of(PAGE) || (write && !self.stamped) {
            return Err(Trouble::Refused(Errno::EINVAL));
        }
        // Two requests for one place at a time would make what is read depend on their order.
        let depth = depth.clamp(1, DEEPEST).min(places as usize);
        let mut live: Vec<Option<(u64, u64)>> = vec![None; depth];
        let mut next = if random { 0 } else { self.random() % places };
        let (mut sent, mut ended, mut waited_ns) = (0u64, 0u64, 0u64);
        let mut done = Vec::new();
        let start = now_ns();
        let mut last = start;
        loop {
            let now = now_ns();
            for slot in 0..depth {
                if live[slot].is_some() || sent == most || (now - start >= time_ns && sent > 0) {
                    continue;
                }
                let offset = loop {
                    let place = if random { self.random() % places } else { next };
                    next = (next + 1) % places;
                    let offset = place * request as u64;
                    if !live.iter().flatten().any(|&(other, _)| other == offset) {
                        break offset;
                    }
                };
                if write {
                    self.stamp(slot, offset, request);
                }
                let range = self.slot(slot, request);
                live[slot] = Some((offset, now_ns()));
                self.under_way += 1;
                self.target.submit(slot as u64, write, offset, Piece { addr: range.start, len: request });
                sent += 1;
            }
            self.target.flush();
            if ended == sent {
                break;
            }
            done.clear();
            self.target.completions(&mut done);
            if done.is_empty() {
                wait_readable(&[self.target.wait_fd()], 1000, &mut [false]);
                if now_ns() - last > PATIENCE_NS {
                    return Err(Trouble::Hangs);
                }
                continue;
            }
            last = now_ns();
            self.under_way -= done.len();
            for one in &done {
                let slot = one.token as usize;
                let Some((offset, since)) = live.get_mut(slot).and_then(Option::take) else { continue };
                waited_ns += last - since;
                ended += 1;
                let moved = one.result.map_err(Trouble::Refused)?;
                if moved != request {
                    return Err(Trouble::Short { asked: request, moved, offset });
                }
                if !write {
                    self.check(slot, offset, request)?;
                }
            }
        }
        let seconds = (last - start) as f64 / 1e9;
        Ok(Run { bytes: ended * request as u64, requests: ended, seconds, mean_ns: waited_ns as f64 / ended as f64 })
    }
}

impl Drop for Speed {
    fn drop(&mut self) {
        let (start, mut done) = (now_ns(), Vec::new());
        while self.under_way > 0 && now_ns() - start < PATIENCE_NS {
            done.clear();
            self.target.flush();
            wait_readable(&[self.target.wait_fd()], 100, &mut [false]);
            self.target.completions(&mut done);
            self.under_way -= done.len();
        }
        if self.under_way == 0 {
            // SAFETY: dropped once, here; nothing uses it afterwards, since nothing is under way any more. After a hang it stays.
            unsafe { ManuallyDrop::drop(&mut self.memory) };
        }
    }
}

fn mark(page: usize, pass: u32) -> u64 {
    ((page as u64) << 32 | u64::from(pass)).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend;
    use crate::job::Settings;

    const ALL: [FarAccess; 4] =
        [FarAccess::SequentialRead, FarAccess::SequentialWrite, FarAccess::RandomRead, FarAccess::RandomWrite];

    fn speed() -> Speed {
        let mut settings = Settings::new(64 << 20, "").expect("settings");
        (settings.emulated, settings.emu_bytes_per_s, settings.emu_latency_ns) = (true, 1 << 30, 50_000);
        Speed::new(backend::open(&settings).expect("emulated"), 16 << 20).expect("filled")
    }

    #[test]
    fn an_emulated_tier_is_as_slow_as_it_says() {
        let mut speed = speed();
        for access in ALL {
            let one = speed.run(access, PAGE, 1, Duration::from_millis(20)).expect("a run");
            assert!(one.mean_ns >= 50_000.0, "{one:?}");
            assert_eq!(one.bytes, one.requests * PAGE as u64);
            let deep = speed.run(access, LARGEST, 4, Duration::from_millis(20)).expect("a run");
            assert!(deep.bytes as f64 / deep.seconds <= 1.3 * f64::from(1 << 30), "{deep:?}");
        }
        assert_eq!(speed.run(FarAccess::RandomRead, 1000, 1, Duration::ZERO), Err(Trouble::Refused(Errno::EINVAL)));
    }

    #[test]
    fn what_comes_back_wrong_is_no_speed() {
        let mut speed = speed();
        speed.pass[7] += 1;
        assert_eq!(speed.whole(FarAccess::SequentialRead), Err(Trouble::Wrong(7 * PAGE as u64)));
    }

    #[test]
    fn a_file_is_read_and_never_written() {
        let path = std::env::temp_dir().join(format!("nearfar-speed-{}", std::process::id()));
        std::fs::write(&path, vec![7u8; 4 << 20]).expect("written");
        let (mut speed, _) = Speed::device(&path, 4 << 20).expect("opened");
        let run = speed.run(FarAccess::RandomRead, PAGE, 4, Duration::from_millis(5)).expect("a run");
        assert!(run.requests > 0);
        assert_eq!(speed.run(FarAccess::RandomWrite, PAGE, 1, Duration::ZERO), Err(Trouble::Refused(Errno::EINVAL)));
        assert_eq!(std::fs::read(&path).expect("read"), vec![7u8; 4 << 20]);
        std::fs::remove_file(&path).expect("removed");
    }
}
