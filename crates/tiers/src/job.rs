//! The job segment: one shared memory segment per `nearfar run`, mapped by the command and by every process under it.
//!
//! It holds the settings, the ledger of the near budget (in pages) and a slot of counters per process. Everything is an
//! atomic of fixed size, so that a process killed at any moment leaves a readable segment; what it had charged is given back
//! by whoever next finds it dead. The segment is reached by path (`/proc/PID/fd/N` of the command), so that programs that
//! close all descriptors keep it. Nothing here allocates.

use nearfar_core::stats::{COUNTER_COUNT, COUNTERS, Combine, Counter, Snapshot};
use nearfar_sys::errno::Errno;
use nearfar_sys::process;
use nearfar_sys::shared::Shared;
use std::ffi::CStr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const MAGIC: u64 = u64::from_le_bytes(*b"nearfar2");
/// Processes that can be under one job at a time.
pub const SLOT_COUNT: usize = 1024;
const PATH_BYTES: usize = 1024;

/// Environment variable with the path of the job segment.
pub const ENV_JOB: &str = "NEARFAR_JOB";

/// What `nearfar run` was told, as plain numbers, the same for every process of the job.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Settings {
    /// Near memory for all processes together, in bytes.
    pub near_bytes: u64,
    /// Smallest allocation that comes straight from the arena, in bytes.
    pub min_size: u64,
    /// Small allocations too come from paged memory (`--heap=all`); otherwise from the C library.
    pub heap_all: bool,
    /// Far is emulated: `emu_bytes_per_s` and `emu_latency_ns` hold; otherwise a file in `far_dir`.
    pub emulated: bool,
    /// Bandwidth of emulated far memory in bytes per second, reads and writes together.
    pub emu_bytes_per_s: u64,
    /// Added latency of each operation of emulated far memory in ns.
    pub emu_latency_ns: u64,
    /// Bits of `sys::kernel::Denied`.
    pub denied: u32,
    /// There is no userfaultfd: the kernel pages a mapped spill file.
    pub kernel_paging: bool,
    /// Bytes of `far_dir` in use.
    far_dir_len: u32,
    far_dir: [u8; PATH_BYTES],
}

impl Settings {
    /// Settings with `near_bytes` and a far directory; everything else at its default.
    pub fn new(near_bytes: u64, far_dir: &str) -> Result<Self, Errno> {
        let mut settings = Self {
            near_bytes,
            min_size: 1 << 20,
            heap_all: true,
            emulated: false,
            emu_bytes_per_s: 0,
            emu_latency_ns: 0,
            denied: 0,
            kernel_paging: false,
            far_dir_len: far_dir.len() as u32,
            far_dir: [0; PATH_BYTES],
        };
        settings.far_dir.get_mut(..far_dir.len()).ok_or(Errno(libc::ENAMETOOLONG))?.copy_from_slice(far_dir.as_bytes());
        Ok(settings)
    }

    /// Directory of the spill files.
    pub fn far_dir(&self) -> &str {
        let bytes = self.far_dir.get(..self.far_dir_len as usize).unwrap_or_default();
        std::str::from_utf8(bytes).unwrap_or_default()
    }
}

#[repr(C)]
struct Header {
    magic: AtomicU64,
    charged_pages: AtomicU64,
    starving: AtomicU32,
    active: AtomicU32,
    settings: Settings,
    past: [AtomicU64; COUNTER_COUNT],
    past_processes: AtomicU64,
    lost: AtomicU64,
}

const FREE: u32 = 0;
const CLAIMED: u32 = 1;
const ALIVE: u32 = 2;

/// One process's place in the segment.
#[repr(C)]
pub struct Slot {
    state: AtomicU32,
    pid: AtomicU32,
    start: AtomicU64,
    charged_pages: AtomicU64,
    paging: AtomicU32,
    counters: [AtomicU64; COUNTER_COUNT],
}

impl Slot {
    /// Adds `n` to a counter of this process.
    pub fn add(&self, counter: Counter, n: u64) {
        self.counters[counter as usize].fetch_add(n, Ordering::Relaxed);
    }

    /// Sets a gauge or maximum of this process.
    pub fn set(&self, counter: Counter, value: u64) {
        self.counters[counter as usize].store(value, Ordering::Relaxed);
    }

    /// Raises a maximum of this process.
    pub fn raise(&self, counter: Counter, value: u64) {
        self.counters[counter as usize].fetch_max(value, Ordering::Relaxed);
    }

    /// Pages of near that this process has charged.
    pub fn charged_pages(&self) -> u64 {
        self.charged_pages.load(Ordering::Relaxed)
    }

    /// Says that this process has begun to page (its memory can be taken back).
    pub fn set_paging(&self, paging: bool) {
        self.paging.store(u32::from(paging), Ordering::Relaxed);
    }

    fn snapshot(&self) -> Snapshot {
        snapshot_of(&self.counters)
    }
}

fn snapshot_of(counters: &[AtomicU64; COUNTER_COUNT]) -> Snapshot {
    let mut snapshot = Snapshot::default();
    for &counter in COUNTERS {
        snapshot.set(counter, counters[counter as usize].load(Ordering::Relaxed));
    }
    snapshot
}

/// The job as one process sees it; copies share the segment.
#[derive(Clone, Copy)]
pub struct Job {
    shared: Shared,
}

const fn segment_len() -> usize {
    size_of::<Header>() + SLOT_COUNT * size_of::<Slot>()
}

impl Job {
    /// Creates the segment. Children find it at `/proc/<own pid>/fd/<fd>` while the descriptor stays open.
    pub fn create(settings: Settings) -> Result<(Self, OwnedFd), Errno> {
        let (shared, fd) = Shared::create(c"nearfar-job", segment_len())?;
        let header = shared.range().start as *mut Header;
        // SAFETY: the segment is at least a header long, page aligned, and nobody else knows of it yet.
        unsafe { (*header).settings = settings };
        let job = Self { shared };
        job.header().magic.store(MAGIC, Ordering::Release);
        Ok((job, fd))
    }

    /// Maps the segment behind `path`; fails when it is not one of this version.
    pub fn attach(path: &CStr) -> Result<Self, Errno> {
        let job = Self { shared: Shared::open(path, segment_len())? };
        if job.header().magic.load(Ordering::Acquire) == MAGIC { Ok(job) } else { Err(Errno::EINVAL) }
    }

    fn header(&self) -> &'static Header {
        // SAFETY: the segment is mapped for the life of the process and long enough; all fields that change are atomics,
        // and `settings` is written before the magic number that attach checks.
        unsafe { &*(self.shared.range().start as *const Header) }
    }

    fn slots(&self) -> &'static [Slot] {
        let first = (self.shared.range().start + size_of::<Header>()) as *const Slot;
        // SAFETY: the segment holds SLOT_COUNT slots behind the header, for the life of the process; zeros are valid slots.
        unsafe { std::slice::from_raw_parts(first, SLOT_COUNT) }
    }

    /// What the job was told.
    pub fn settings(&self) -> &'static Settings {
        &self.header().settings
    }

    /// The near budget in pages.
    pub fn near_pages(&self) -> u64 {
        self.settings().near_bytes / nearfar_core::addr::PAGE as u64
    }

    /// Takes a slot for the calling process; `None` when all are taken by living processes.
    pub fn join(&self) -> Option<&'static Slot> {
        let find = || {
            self.slots()
                .iter()
                .find(|slot| slot.state.compare_exchange(FREE, CLAIMED, Ordering::AcqRel, Ordering::Relaxed).is_ok())
        };
        let slot = find().or_else(|| {
            self.bury_dead();
            find()
        })?;
        let pid = process::pid();
        slot.pid.store(pid, Ordering::Relaxed);
        slot.start.store(process::state_and_start(pid).map_or(0, |(_, start)| start), Ordering::Relaxed);
        slot.charged_pages.store(0, Ordering::Relaxed);
        slot.set_paging(false);
        slot.state.store(ALIVE, Ordering::Release);
        self.header().active.fetch_add(1, Ordering::Relaxed);
        Some(slot)
    }

    /// Ends the slots of processes that are gone: their charge returns to the budget, their counters to the job's past.
    pub fn bury_dead(&self) {
        for slot in self.slots() {
            if slot.state.load(Ordering::Acquire) == ALIVE
                && !process::is_alive(slot.pid.load(Ordering::Relaxed), slot.start.load(Ordering::Relaxed))
            {
                self.bury(slot);
            }
        }
    }

    /// Ends `slot` (exec keeps the process but replaces its memory: the new image joins afresh).
    pub fn bury(&self, slot: &Slot) {
        if slot.state.compare_exchange(ALIVE, CLAIMED, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            return;
        }
        let header = self.header();
        let charged = slot.charged_pages.swap(0, Ordering::Relaxed);
        header.charged_pages.fetch_sub(charged, Ordering::Relaxed);
        for &counter in COUNTERS {
            let value = slot.counters[counter as usize].swap(0, Ordering::Relaxed);
            match counter.combine() {
                Combine::Sum => header.past[counter as usize].fetch_add(value, Ordering::Relaxed),
                Combine::Max => header.past[counter as usize].fetch_max(value, Ordering::Relaxed),
                Combine::Gauge => 0,
            };
        }
        header.past_processes.fetch_add(1, Ordering::Relaxed);
        header.active.fetch_sub(1, Ordering::Relaxed);
        slot.state.store(FREE, Ordering::Release);
    }

    /// The slot of a process with the caller's pid from before an exec, if any: it must be buried before joining.
    pub fn slot_of_own_past(&self) -> Option<&'static Slot> {
        let pid = process::pid();
        self.slots().iter().find(|slot| slot.state.load(Ordering::Acquire) == ALIVE && slot.pid.load(Ordering::Relaxed) == pid)
    }

    /// Charges `pages` to `slot` if the budget allows.
    pub fn try_charge(&self, slot: &Slot, pages: u64) -> bool {
        let total = &self.header().charged_pages;
        let limit = self.near_pages();
        let fits =
            total.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| now.checked_add(pages).filter(|&sum| sum <= limit));
        if fits.is_ok() {
            slot.charged_pages.fetch_add(pages, Ordering::Relaxed);
        }
        fits.is_ok()
    }

    /// Charges `pages` to `slot` even beyond the budget; returns by how many pages the budget is exceeded now.
    pub fn force_charge(&self, slot: &Slot, pages: u64) -> u64 {
        slot.charged_pages.fetch_add(pages, Ordering::Relaxed);
        let now = self.header().charged_pages.fetch_add(pages, Ordering::Relaxed) + pages;
        now.saturating_sub(self.near_pages())
    }

    /// Gives `pages` of `slot` back.
    pub fn uncharge(&self, slot: &Slot, pages: u64) {
        // Saturating: a slot that was buried by mistake (a process that only seemed dead) must not wrap the ledger round.
        for count in [&slot.charged_pages, &self.header().charged_pages] {
            let _ = count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| Some(now.saturating_sub(pages)));
        }
    }

    /// Pages charged by all processes together.
    pub fn charged_pages(&self) -> u64 {
        self.header().charged_pages.load(Ordering::Relaxed)
    }

    /// Processes under the job now.
    pub fn processes(&self) -> u32 {
        self.header().active.load(Ordering::Relaxed)
    }

    /// Says that a process cannot get its share (`true`) or no longer starves.
    pub fn set_starving(&self, starving: bool) {
        if starving {
            self.header().starving.fetch_add(1, Ordering::Relaxed);
        } else {
            let _ = self.header().starving.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
        }
    }

    /// True when some process cannot get its share: those above theirs shrink.
    pub fn is_starving(&self) -> bool {
        self.header().starving.load(Ordering::Relaxed) > 0
    }

    /// Pages that are each living process's due: the budget divided evenly.
    pub fn fair_share_pages(&self) -> u64 {
        self.near_pages() / u64::from(self.processes().max(1))
    }

    /// Counts a process that could not be managed (no slot, no segment).
    pub fn note_unmanaged(&self) {
        self.header().lost.fetch_add(1, Ordering::Relaxed);
    }

    /// Processes that could not be managed.
    pub fn unmanaged(&self) -> u64 {
        self.header().lost.load(Ordering::Relaxed)
    }

    /// Counters of the whole job, past processes included, and the number of processes that ever joined.
    pub fn snapshot(&self) -> (Snapshot, u64) {
        let mut sum = snapshot_of(&self.header().past);
        let mut processes = self.header().past_processes.load(Ordering::Relaxed);
        for slot in self.slots().iter().filter(|slot| slot.state.load(Ordering::Acquire) == ALIVE) {
            let alive = process::is_alive(slot.pid.load(Ordering::Relaxed), slot.start.load(Ordering::Relaxed));
            sum.combine(&slot.snapshot(), alive);
            processes += 1;
        }
        (sum, processes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn ledger_and_slots() {
        let settings = Settings::new(100 * 4096, "/var/tmp").expect("short path");
        let (job, fd) = Job::create(settings).expect("memfd");
        let path = std::ffi::CString::new(format!("/proc/self/fd/{}", fd.as_raw_fd())).expect("no NUL");
        let other = Job::attach(&path).expect("attach");
        assert_eq!(other.settings().far_dir(), "/var/tmp");
        let slot = other.join().expect("slot");
        assert!(other.try_charge(slot, 90));
        assert!(!job.try_charge(slot, 11));
        assert_eq!(job.force_charge(slot, 15), 5);
        slot.add(Counter::Faults, 3);
        assert_eq!(job.snapshot().0.get(Counter::Faults), 3);
        job.bury(slot);
        assert_eq!((job.charged_pages(), job.snapshot().1), (0, 1));
        assert_eq!(job.snapshot().0.get(Counter::Faults), 3);
    }
}
