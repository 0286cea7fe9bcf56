//! The beginning: opens what paging needs, registers all managed memory, and takes stock of what is in near already.

use super::{NoSpace, Pager};
use crate::backend;
use crate::bits::Bits;
use crate::far::Far;
use crate::far_account::FarAccount;
use crate::frame::FramePool;
use crate::hash_map::Map;
use crate::job::{Job, Slot};
use crate::loans::Loans;
use crate::region::Regions;
use nearfar_core::addr::{CHUNK_PAGES, Extent, block_extent};
use nearfar_core::policy;
use nearfar_core::policy::Prefetch;
use nearfar_core::policy::fetch_grain::GrainFetch;
use nearfar_core::policy::stream::StreamFetch;
use nearfar_sys::errno::Errno;
use nearfar_sys::high_descriptors;
use nearfar_sys::kernel::Denied;
use nearfar_sys::map;
use nearfar_sys::uffd::Uffd;
use std::collections::VecDeque;
use std::os::fd::AsRawFd;

/// Far space that a process must be able to get to begin with.
const FIRST_BYTES: u64 = 8 << 20;

/// Why paging cannot start.
#[derive(Debug)]
pub enum Start {
    /// The kernel or a policy refuses userfaultfd.
    Uffd(Errno),
    /// The far tier cannot be opened.
    Far(Errno),
    /// Far has no space for what there is, or not even to begin with.
    Full(NoSpace),
    /// Address space or memory for tables is wanting.
    Space(Errno),
    /// System calls on paged memory would have to be caught, and cannot be.
    Seccomp(Errno),
    /// There is no thread to serve faults.
    Thread(Errno),
    /// Some range cannot be paged.
    Register(Extent, Errno),
}

impl std::fmt::Display for Start {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Start::Uffd(errno) => write!(f, "userfaultfd is refused ({errno}); `nearfar doctor` says how to get it"),
            Start::Seccomp(errno) => write!(
                f,
                "system calls on paged memory cannot be caught (seccomp: {errno}), but this user's userfaultfd requires that"
            ),
            Start::Thread(errno) => write!(f, "no thread could be started to serve faults ({errno}); is `ulimit -u` reached?"),
            Start::Far(errno) => write!(f, "the far tier cannot be opened ({errno})"),
            Start::Full(why) => write!(f, "the far tier has no space ({})", why.errno),
            Start::Space(errno) => write!(f, "no address space for frames ({errno}); is `ulimit -v` or `ulimit -d` set?"),
            Start::Register(range, errno) => {
                write!(f, "memory at {:#x}..{:#x} cannot be paged ({errno})", range.start, range.end)
            }
        }
    }
}

impl Pager {
    /// Starts paging for the ranges of `regions`, which stay as they are; `scan` limits where present pages are looked for, for
    /// which `charged` pages are charged. Far space for `need` bytes, at least for a beginning, must be had.
    pub fn start(
        job: Job,
        slot: &'static Slot,
        regions: Regions,
        scan: &[Extent],
        charged: u64,
        need: u64,
    ) -> Result<Pager, (Regions, Start)> {
        let settings = job.settings();
        let denied = Denied(settings.denied);
        super::CORE_ON_STOP.store(settings.core_on_stop, std::sync::atomic::Ordering::Relaxed);
        let parts = high_descriptors::with_room(|| Self::open_parts(job, slot, denied, need));
        let (uffd, far, frames) = match parts {
            Ok(parts) => parts,
            Err(why) => return Err((regions, why)),
        };
        let capacity = job.near_pages();
        let recorder = Self::open_recorder(job);
        let recording = recorder.is_some();
        let Some(evict) = policy::evict_by_name(if recording { "fifo" } else { "adaptive" }, capacity) else {
            return Err((regions, Start::Space(Errno::EINVAL)));
        };
        let fetch: Box<dyn Prefetch> = match job.settings().grain_pages {
            // Each visit to a piece is to be seen.
            pages if recording => Box::new(GrainFetch::exact(if pages == 0 { CHUNK_PAGES as u32 } else { pages })),
            0 => Box::new(StreamFetch::default()),
            pages => Box::new(GrainFetch::new(pages)),
        };
        let mut pager = Pager {
            job,
            slot,
            regions,
            loans: Loans::default(),
            uffd,
            far,
            log: crate::log::Log::default(),
            transfers: super::transfer::Transfers::default(),
            frames,
            blocks: Map::default(),
            holds: Vec::new(),
            free_holds: Vec::new(),
            serial: 0,
            evict,
            fetch,
            capacity,
            aside: Default::default(),
            kept: 0,
            placed: 0,
            yielding: super::yielding::Yielding::default(),
            merging: Default::default(),
            limbo_huge: VecDeque::new(),
            limbo_small: VecDeque::new(),
            staged: VecDeque::new(),
            limbo_pages: 0,
            writing_pages: 0,
            staged_pages: 0,
            staged_holds: 0,
            reading_ahead: 0,
            arriving: 0,
            asked_for: 0,
            wishes: VecDeque::new(),
            waits: Vec::new(),
            starved: VecDeque::new(),
            starved_since_ns: 0,
            told_starving: false,
            waits_for_far: false,
            told_trouble: false,
            ops: 0,
            write_ops: 0,
            evicting: false,
            postponed: false,
            hollow: 0,
            copied_lately: 0,
            awake: super::stats::WakeupControl::new(denied),
            meter: super::stats::Meter::default(),
            watch: super::check::Watch::default(),
            resting: false,
            recorder,
            clean_after_ns: 0,
            metadata_pages: 0,
            tables_pages: 0,
            table_bytes: 0,
            over_since_ns: 0,
            pipe: None,
            spare: Default::default(),
        };
        if let Err(why) = pager.register_all() {
            // Ordinary memory again, for forks too.
            pager.all_ranges(|pager, range| pager.hide_from_raw_forks(range, false));
            return Err((pager.regions, why));
        }
        let present: u64 = scan.iter().map(|&range| pager.take_in_present(range)).sum();
        // From here on what is present counts, not what may be written. At no moment is less charged: others would take it.
        match present.checked_sub(charged) {
            Some(more) => _ = job.force_charge(slot, more),
            None => job.uncharge(slot, charged - present),
        }
        pager.keep_open();
        high_descriptors::with_room(|| pager.spare.hold(super::fork::DESCRIPTORS));
        Ok(pager)
    }

    /// The program may close our descriptors by raw system calls. Where that cannot be helped, it is as before.
    pub(super) fn keep_open(&self) {
        let _ = nearfar_sys::keeper::keep(self.uffd.as_raw_fd());
        // Not to be had without /proc; who needs it then says so.
        let _ = nearfar_sys::pagemap::keep();
    }

    fn open_parts(job: Job, slot: &'static Slot, denied: Denied, need: u64) -> Result<(Uffd, Far, FramePool), Start> {
        if denied.has("uffd") {
            return Err(Start::Uffd(Errno(libc::EPERM)));
        }
        let mut uffd = Uffd::open(job.settings().user_only).map_err(Start::Uffd)?;
        if denied.has("move") {
            uffd.deny_move();
        }
        let backend = backend::open(job.settings()).map_err(Start::Far)?;
        let mut far = Far::new(backend, FarAccount::new(job, slot));
        if let Err(errno) = far.hold(need.max(FIRST_BYTES)) {
            return Err(Start::Full(NoSpace { errno, free: far.free_bytes() }));
        }
        let frames = FramePool::new(job.near_pages(), !denied.has("thp")).map_err(Start::Space)?;
        Ok((uffd, far, frames))
    }

    /// Registers the pool and every region.
    pub(super) fn register_all(&mut self) -> Result<(), Start> {
        let pool = self.frames.pool();
        // SAFETY: only the pager touches the pool, and only where it knows pages to be (`absent_pages`, masks).
        unsafe { self.uffd.register(pool, false) }.map_err(|errno| Start::Register(pool, errno))?;
        self.hide_from_raw_forks(pool, true);
        self.hide_from_raw_forks(self.frames.nursery(), true);
        for (range, _) in self.regions.all() {
            self.register(range).map_err(|errno| Start::Register(range, errno))?;
        }
        Ok(())
    }

    /// Registers a range that has become managed.
    pub fn register(&mut self, range: Extent) -> Result<(), Errno> {
        let protect = !self.uffd.can_move();
        // SAFETY: the pager thread serves faults until the process ends, from the states of the page table, which starts
        // from what is present.
        unsafe { self.uffd.register(range, protect)? };
        self.hide_from_raw_forks(range, true);
        Ok(())
    }

    /// Managed memory is inherited only through our own fork handlers: a child of a raw clone would find zeros where pages
    /// are in far. Without the range it is stopped by a fault instead.
    pub(super) fn hide_from_raw_forks(&self, range: Extent, hidden: bool) {
        let advice = if hidden { libc::MADV_DONTFORK } else { libc::MADV_DOFORK };
        // SAFETY: the advice changes only what a later fork inherits.
        let _ = unsafe { map::madvise(range, advice) };
    }

    /// Takes stock of the pages of `range` that are present already, and says how many, which are to be charged. No new ones
    /// appear, since the range is registered.
    fn take_in_present(&mut self, range: Extent) -> u64 {
        let mut total = 0;
        for number in range.blocks() {
            let Some(part) = block_extent(number).intersect(&range) else { continue };
            let first = super::page_index(part.start);
            let mut present = Bits::of(first..super::page_index(part.end - 1) + 1);
            super::absent_pages(part, |index| present.clear(first + index));
            if !present.is_empty() {
                total += present.count();
                self.note_present(number, &present);
            }
        }
        total as u64
    }

    /// As `start` does, for a range that has become managed since.
    pub fn take_in(&mut self, range: Extent) {
        let present = self.take_in_present(range);
        self.job.force_charge(self.slot, present);
    }
}
