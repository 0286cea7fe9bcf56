//! The job segment: one shared memory segment per `nearfar run`, mapped by the command and by every process under it.
//!
//! It holds the settings, the ledger of the near budget (in pages) and a slot of counters per process. Everything is an
//! atomic of fixed size, so that a process killed at any moment leaves a readable segment; what it had charged is given back
//! by whoever next finds it dead. The segment is reached by path (`/proc/PID/fd/N` of the command), so that programs that
//! close all descriptors keep it. Nothing here allocates.

mod far;
pub mod objects;
pub mod view;

use crate::health::{Health, Stalled};
use crate::job::objects::Objects;
use crate::ledger::{ACCOUNTS, Account, Accounts, Ledger};
use nearfar_core::faults::Faults;
use nearfar_core::placement::Placement;
use nearfar_core::stats::{COUNTER_COUNT, COUNTERS, Combine, Counter, FINGERPRINT, Snapshot};
use nearfar_sys::errno::Errno;
use nearfar_sys::event::now_ns;
use nearfar_sys::process;
use nearfar_sys::shared::Shared;
use std::ffi::CStr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};

/// A command and a library with other counters or other sizes do not understand each other.
const MAGIC: u64 = u64::from_le_bytes(*b"nearfar6") ^ FINGERPRINT ^ (size_of::<Header>() << 16 ^ size_of::<Slot>()) as u64;
/// Processes that can be under one job at a time.
pub const SLOT_COUNT: usize = ACCOUNTS;
const PATH_BYTES: usize = 1024;
/// A pager that waits for frames looks every 20 ms.
const SILENT_NS: u64 = 2_000_000_000;

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
    /// Far space for all processes together, in bytes (`--far-max`); 0: what the device has.
    pub far_max: u64,
    /// Far space is secured for all that may be written, when it is allocated (`--commit=strict`).
    pub strict: bool,
    /// Far is emulated: `emu_bytes_per_s` and `emu_latency_ns` hold; otherwise a file in `far_dir`.
    pub emulated: bool,
    /// Bandwidth of emulated far memory in bytes per second, reads and writes together.
    pub emu_bytes_per_s: u64,
    /// Added latency of each operation of emulated far memory in ns.
    pub emu_latency_ns: u64,
    /// Bits of `sys::kernel::Denied`.
    pub denied: u32,
    /// Chunks that a process that records its visits keeps in view; 0 when nothing is recorded.
    pub trace_window: u32,
    /// Pages that are brought around one that is asked for; 0: learned (`--grain`).
    pub grain_pages: u32,
    /// The page table is checked in every so many rounds of a pager; 0: never (NEARFAR_CHECK).
    pub check_rounds: u32,
    /// A program that must be stopped ends by SIGABRT and leaves a core file (NEARFAR_CORE).
    pub core_on_stop: bool,
    /// All that comes back from far is compared with its checksum (`--check`).
    pub compare_all: bool,
    /// Far data are encrypted.
    pub encrypt: bool,
    /// What goes wrong on purpose.
    pub faults: Faults,
    /// userfaultfd misses the kernel's own accesses: system calls on paged memory are caught instead.
    pub user_only: bool,
    /// There is no userfaultfd: the kernel pages a mapped spill file.
    pub kernel_paging: bool,
    /// Which objects go where, in flat and hybrid mode.
    pub placement: Placement,
    /// Bytes of `far_dir` in use.
    far_dir_len: u32,
    far_dir: [u8; PATH_BYTES],
    /// Bytes of `trace` in use.
    trace_len: u32,
    trace: [u8; PATH_BYTES],
    /// Bytes of `plan` in use.
    plan_len: u32,
    plan: [u8; PATH_BYTES],
}

impl Settings {
    /// Settings with `near_bytes` and a far directory; everything else at its default.
    pub fn new(near_bytes: u64, far_dir: &str) -> Result<Self, Errno> {
        let mut settings = Self {
            near_bytes,
            min_size: 1 << 20,
            heap_all: true,
            far_max: 0,
            strict: false,
            emulated: false,
            emu_bytes_per_s: 0,
            emu_latency_ns: 0,
            denied: 0,
            trace_window: 0,
            grain_pages: 0,
            check_rounds: 0,
            core_on_stop: false,
            compare_all: false,
            encrypt: false,
            faults: Faults::default(),
            user_only: false,
            kernel_paging: false,
            placement: Placement::default(),
            far_dir_len: far_dir.len() as u32,
            far_dir: [0; PATH_BYTES],
            trace_len: 0,
            trace: [0; PATH_BYTES],
            plan_len: 0,
            plan: [0; PATH_BYTES],
        };
        settings.far_dir.get_mut(..far_dir.len()).ok_or(Errno(libc::ENAMETOOLONG))?.copy_from_slice(far_dir.as_bytes());
        Ok(settings)
    }

    /// Directory of the spill files.
    pub fn far_dir(&self) -> &str {
        let bytes = self.far_dir.get(..self.far_dir_len as usize).unwrap_or_default();
        std::str::from_utf8(bytes).unwrap_or_default()
    }

    /// Has visits recorded to the file at `path`, with `window` chunks in view.
    pub fn set_trace(&mut self, path: &[u8], window: u32) -> Result<(), Errno> {
        self.trace.get_mut(..path.len()).ok_or(Errno(libc::ENAMETOOLONG))?.copy_from_slice(path);
        (self.trace_len, self.trace_window) = (path.len() as u32, window);
        Ok(())
    }

    /// The file that visits are recorded to.
    pub fn trace(&self) -> &[u8] {
        self.trace.get(..self.trace_len as usize).unwrap_or_default()
    }

    /// Has objects placed by the compiled plan at `path`.
    pub fn set_plan(&mut self, path: &[u8]) -> Result<(), Errno> {
        self.plan.get_mut(..path.len()).ok_or(Errno(libc::ENAMETOOLONG))?.copy_from_slice(path);
        self.plan_len = path.len() as u32;
        Ok(())
    }

    /// The compiled plan (`core::placement::plan`); empty without one.
    pub fn plan(&self) -> &[u8] {
        self.plan.get(..self.plan_len as usize).unwrap_or_default()
    }
}

#[repr(C)]
struct Header {
    magic: AtomicU64,
    ledger: Ledger,
    settings: Settings,
    past: [AtomicU64; COUNTER_COUNT],
    past_processes: AtomicU64,
    lost: AtomicU64,
}

/// One process's place in the segment.
#[repr(C)]
pub struct Slot {
    account: Account,
    // Bytes of far space that are its own, or of processes that are gone and whose files it has open.
    far: AtomicU64,
    // The slot of the process that forked it, and one; 0: none.
    far_parent: AtomicU64,
    health: Health,
    counters: [AtomicU64; COUNTER_COUNT],
    objects: Objects,
}

impl Accounts for [Slot] {
    fn account(&self, index: usize) -> &Account {
        &self[index].account
    }
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

    /// The value of a counter of this process.
    pub fn get(&self, counter: Counter) -> u64 {
        self.counters[counter as usize].load(Ordering::Relaxed)
    }

    /// What this process tells of its pager.
    pub fn health(&self) -> &Health {
        &self.health
    }

    /// The large objects of this process.
    pub fn objects(&self) -> &Objects {
        &self.objects
    }

    /// Pages of near that this process has charged.
    pub fn charged_pages(&self) -> u64 {
        self.account.charged()
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

/// Bytes of the shared memory of a job.
pub const fn segment_len() -> usize {
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
        let pid = process::pid();
        let start = process::start_of(pid);
        let find = || self.header().ledger.join(self.slots(), pid, start);
        let index = find().or_else(|| {
            self.bury_dead();
            find()
        })?;
        let slot = self.slots().get(index)?;
        slot.health.rest();
        Some(slot)
    }

    /// Living processes whose pager has taken no turn for `limit_ns` while a thread waits for it.
    pub fn stalled(&self, now_ns: u64, limit_ns: u64) -> Vec<Stalled> {
        let of = |slot: &Slot| slot.health.stalled(slot.account.owner()?.0, now_ns, limit_ns);
        self.slots().iter().filter_map(of).collect()
    }

    /// The process of the command, which the path of the segment names.
    pub fn command_of(path: &CStr) -> Option<u32> {
        path.to_str().ok()?.strip_prefix("/proc/")?.split('/').next()?.parse().ok()
    }

    /// Ends the slots of processes that are gone: their charge returns to the budget, their counters to the job's past.
    pub fn bury_dead(&self) {
        self.bury(|pid, start| match start {
            Some(start) => !process::is_alive(pid, start),
            None => pid == 0 || !process::exists(pid),
        });
    }

    /// Ends slots of the caller's own from before an exec, which keeps the process but replaces its memory.
    pub fn bury_own_past(&self) {
        let own = process::pid();
        self.bury(|pid, _| pid == own);
    }

    fn bury(&self, is_dead: impl Fn(u32, Option<u64>) -> bool) {
        let header = self.header();
        header.ledger.bury(self.slots(), process::pid(), is_dead, |index| {
            for &counter in COUNTERS {
                let value = self.slots()[index].counters[counter as usize].swap(0, Ordering::Relaxed);
                match counter.combine() {
                    Combine::Sum => header.past[counter as usize].fetch_add(value, Ordering::Relaxed),
                    Combine::Max => header.past[counter as usize].fetch_max(value, Ordering::Relaxed),
                    Combine::Gauge => 0,
                };
            }
            self.slots()[index].objects.clear();
            self.bequeath_far(index);
            header.past_processes.fetch_add(1, Ordering::Relaxed);
        });
    }

    /// Charges `pages` to `slot` if the budget allows.
    pub fn try_charge(&self, slot: &Slot, pages: u64) -> bool {
        self.header().ledger.charge(&slot.account, pages, self.near_pages()).is_some()
    }

    /// Charges `pages` to `slot` if the job then has charged no more than `most`.
    pub fn try_charge_within(&self, slot: &Slot, pages: u64, most: u64) -> bool {
        self.header().ledger.charge(&slot.account, pages, most).is_some()
    }

    /// Sum of a gauge over all living processes.
    pub fn sum_of(&self, gauge: Counter) -> u64 {
        self.slots().iter().filter(|slot| slot.account.owner().is_some()).map(|slot| slot.get(gauge)).sum()
    }

    /// Every living process with its slot.
    pub fn members(&self) -> impl Iterator<Item = (u32, &'static Slot)> {
        self.slots().iter().filter_map(|slot| Some((slot.account.owner()?.0, slot)))
    }

    /// Charges `pages` to `slot` even beyond the budget; returns by how many pages the budget is exceeded now.
    pub fn force_charge(&self, slot: &Slot, pages: u64) -> u64 {
        let total = self.header().ledger.charge(&slot.account, pages, u64::MAX).unwrap_or(0);
        total.saturating_sub(self.near_pages())
    }

    /// Gives `pages` of `slot` back.
    pub fn uncharge(&self, slot: &Slot, pages: u64) {
        self.header().ledger.uncharge(&slot.account, pages);
    }

    /// Pages charged by all processes together.
    pub fn charged_pages(&self) -> u64 {
        self.header().ledger.total()
    }

    /// Processes under the job now.
    pub fn processes(&self) -> u32 {
        self.header().ledger.alive()
    }

    /// Says that the process of `slot` cannot get its share, or goes round in less (`true`), or no longer starves.
    pub fn set_starving(&self, slot: &Slot, starving: bool) {
        if let Some(index) = self.slots().iter().position(|other| std::ptr::eq(other, slot)) {
            self.header().ledger.set_starving(index, starving);
        }
    }

    /// True when some process cannot get its share: those above theirs shrink. Not for one that is stopped, or executes a program
    /// without us: it can neither take what it is given nor take its word back.
    pub fn is_starving(&self) -> bool {
        let ledger = &self.header().ledger;
        // Nearly always nobody does: that costs no look at the clock.
        if !ledger.is_starving() {
            return false;
        }
        let now = now_ns();
        let counts = |(index, slot): (usize, &Slot)| ledger.starves(index) && slot.health().still_ns(now) < SILENT_NS;
        self.slots().iter().enumerate().any(counts)
    }

    /// Pages that are each living process's due: the budget divided evenly.
    pub fn fair_share_pages(&self) -> u64 {
        self.near_pages() / u64::from(self.processes().max(1))
    }

    /// True when another process than that of `slot` has far space, or `pages` of near or more.
    pub fn others_hold(&self, slot: &Slot, pages: u64) -> bool {
        let holds = |other: &Slot| other.far.load(Ordering::SeqCst) > 0 || other.charged_pages() >= pages;
        self.slots().iter().any(|other| !std::ptr::eq(other, slot) && other.account.owner().is_some() && holds(other))
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
        for (slot, (pid, start)) in self.slots().iter().filter_map(|slot| Some((slot, slot.account.owner()?))) {
            sum.combine(&slot.snapshot(), process::is_alive(pid, start));
            processes += 1;
        }
        (sum, processes)
    }
}

#[cfg(all(test, not(loom)))]
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
        job.set_starving(slot, true);
        job.bury_own_past();
        assert!(!job.is_starving(), "nobody is left who could starve");
        assert_eq!((job.charged_pages(), job.snapshot().1), (0, 1));
        assert_eq!(job.snapshot().0.get(Counter::Faults), 3);
        job.header().magic.store(MAGIC + 1, Ordering::Release);
        assert_eq!(Job::attach(&path).err(), Some(Errno::EINVAL), "that of another version");
    }
}
