//! What the lock protects: the arena, the ledger of what is writable, and the pager once there is one.

use super::Memory;
use crate::arena::{Arena, Shape};
use crate::job::objects::Object;
use crate::job::{Job, Slot};
use crate::loans::Loans;
use crate::mapped::{Chores, Keeper, Mapped};
use crate::pager::{NoSpace, Pager, Start};
use crate::region::{Attr, Regions};
use nearfar_core::addr::{BLOCK, Extent, PAGE};
use nearfar_core::stats::Counter;
use nearfar_sys::errno::Errno;
use nearfar_sys::event::now_ns;
use nearfar_sys::kernel::Denied;
use nearfar_sys::{map, process};
use std::path::Path;

/// State of the process's memory.
pub struct Inner {
    pub(super) job: Job,
    pub(super) slot: &'static Slot,
    pub(super) arena: Arena,
    // Managed ranges while passive; they move into the pager.
    regions: Regions,
    pub(super) pager: Option<Pager>,
    // In place of the pager where there is no userfaultfd, from the start.
    pub(super) mapped: Option<Mapped>,
    pub(super) has_thread: bool,
    // The thread that secures far space was started.
    pub(super) has_helper: bool,
    committed: usize,
    charged: usize,
    // Pages charged for objects that are never paged; the pager has a copy.
    pub(super) placed: u64,
    // Until when near is known to be full of what cannot go, unless fewer pages are charged than then.
    pub(super) hopeless: Option<(u64, u64)>,
    pub(super) refused: bool,
    // Allocations have failed, which is said once.
    pub(super) has_refused: bool,
    // Until when, and for what need, far is known to have no space to begin with.
    pub(super) no_space: Option<(u64, u64, NoSpace)>,
    pub(super) pins: Vec<Extent>,
    // Ranges that a forked child is to find zeroed, or not at all (madvise).
    pub(super) wiped: Vec<Extent>,
    pub(super) kept_back: Vec<Extent>,
    // Loans while passive; they move into the pager.
    pub(super) loans: Loans,
    // Where calls with structures are caught, once the handler is in place.
    pub(super) caught_code: Option<Vec<Extent>>,
    pub(super) forking_thread: u32,
    // The large objects, from before a fork until the next: the parent's slot changes while the child begins.
    pub(super) forked_objects: Vec<Object>,
    // Whose this is, once it is anybody's.
    pub(super) memory: Option<Memory>,
    // The process that has descriptors and threads for this memory. Others may share it (CLONE_VM).
    pub(super) owner: u32,
    pub(super) released: Vec<Released>,
}

impl Inner {
    pub(super) fn new(job: Job) -> Result<Self, Errno> {
        let slot = Self::join(job)?;
        let settings = job.settings();
        let cache = (settings.near_bytes / 16).min(64 << 20) as usize;
        let mut mapped = match settings.kernel_paging {
            true => Some(Mapped::new(Path::new(settings.far_dir()))?),
            false => None,
        };
        let arena = Arena::new(&Shape {
            cache_limit: cache,
            // Huge pages of a file would be read and written whole.
            huge_pages: mapped.is_none() && !Denied(settings.denied).has("thp"),
            watched: settings.user_only,
            reserved: mapped.as_ref().map(Mapped::most),
        })?;
        if let Some(mapped) = &mut mapped {
            mapped.take_arena(arena.whole())?;
        }
        Ok(Self {
            job,
            slot,
            arena,
            regions: Regions::default(),
            pager: None,
            mapped,
            has_thread: false,
            has_helper: false,
            committed: 0,
            charged: 0,
            placed: 0,
            hopeless: None,
            refused: false,
            has_refused: false,
            no_space: None,
            pins: Vec::new(),
            wiped: Vec::new(),
            kept_back: Vec::new(),
            loans: Loans::default(),
            caught_code: None,
            forking_thread: 0,
            forked_objects: Vec::new(),
            memory: None,
            owner: process::pid(),
            released: Vec::new(),
        })
    }

    fn join(job: Job) -> Result<&'static Slot, Errno> {
        // After an exec this is the same process with new memory: what the old image had is gone.
        job.bury_own_past();
        job.join().ok_or(Errno(libc::EAGAIN))
    }

    /// True when part of `range` is reserved address space that the program has not mapped. To the kernel all of it is.
    pub(super) fn has_gap(&self, range: Extent) -> bool {
        if !self.arena.is_reserved() {
            return false;
        }
        // What the program mapped there itself (files, shared memory) is in no region, but taken.
        let inside = self.arena.maps().intersect(&range).filter(|_| range.start.is_multiple_of(PAGE));
        inside.is_some_and(|inside| self.arena.has_gap(&inside))
    }

    /// True when `range` can be paged: where system calls are caught, or the kernel pages, that is the arena only.
    pub(super) fn may_manage(&self, range: Extent) -> bool {
        let anywhere = !self.job.settings().user_only && self.mapped.is_none();
        anywhere || self.arena.maps().contains_extent(range) || self.arena.blocks().contains_extent(range)
    }

    pub(super) fn regions(&mut self) -> &mut Regions {
        match &mut self.pager {
            Some(pager) => &mut pager.regions,
            None => &mut self.regions,
        }
    }

    /// Forgets `len` bytes of writable memory.
    pub(super) fn decommit(&mut self, len: usize) {
        self.committed = self.committed.saturating_sub(len);
        self.slot.set(Counter::Committed, self.committed as u64);
        if !self.is_active() {
            let pages = len / PAGE;
            let back = pages.min(self.charged);
            self.charged -= back;
            self.job.uncharge(self.slot, back as u64);
        }
    }

    /// What is present counts, not what may be written.
    pub(super) fn is_active(&self) -> bool {
        self.pager.is_some() || self.mapped.as_ref().is_some_and(|mapped| mapped.keeper.is_some())
    }

    /// Sets the attributes of a managed range, and has it paged if paging is on.
    pub(super) fn manage(&mut self, range: Extent, attr: Attr) {
        if let Some(pager) = &mut self.pager
            && let Err(errno) = pager.register(range)
        {
            // It stays ordinary memory, which is right but not counted.
            self.notice(&format!(
                "memory at {:#x}..{:#x} cannot be paged ({errno}); it stays ordinary memory, not counted as near",
                range.start, range.end
            ));
            return;
        }
        self.regions().insert(range, attr);
    }

    /// Drops the content of `range`, which must be managed throughout.
    pub(super) fn discard(&mut self, range: Extent) {
        match (&mut self.pager, &mut self.mapped) {
            (Some(pager), _) => pager.discard(range),
            (None, Some(mapped)) => mapped.discard(range),
            (None, None) => {
                // SAFETY: the program has given the content up; that is what callers are for.
                let _ = unsafe { map::madvise(range, libc::MADV_DONTNEED) };
            }
        }
    }

    /// Ends an allocation of the blocks half: address space that nobody uses.
    pub(super) fn close_block(&mut self, range: Extent) {
        self.forget_wishes(range);
        let parts = self.regions().parts(range);
        self.decommit(committed_bytes(&parts));
        for (part, _) in &parts {
            self.discard(*part);
        }
        let whole = parts.iter().map(|(part, _)| part.len()).sum::<usize>() == range.len();
        if self.arena.is_reserved() {
            if !whole || parts.iter().any(|(_, attr)| attr.prot != map::RW) {
                let _ = self.reserve_again(range);
            }
            return self.arena.give_block(range);
        }
        // SAFETY: the program has freed it.
        if unsafe { map::munmap(range) }.is_ok() {
            self.regions().remove(range);
            self.arena.give_block(range);
        }
        // Else there are too many mappings to make a hole in one. It stays as it is, without content, and is not given out again.
    }

    /// Makes a range of the reserved arena address space without access again, whatever is mapped there.
    pub(super) fn reserve_again(&mut self, range: Extent) -> Result<(), Errno> {
        self.regions().remove(range);
        if let Some(mapped) = &self.mapped {
            return mapped.put(range, libc::PROT_NONE);
        }
        let flags = map::ANON | libc::MAP_FIXED;
        // SAFETY: unmapped by the program; the address space is ours.
        unsafe { map::mmap(range.start, range.len(), libc::PROT_NONE, flags, -1, 0) }.map(|_| ())
    }

    /// What the program asked for with regard to `range` was about what is gone: what a fork inherits, and its own userfaultfd.
    pub(super) fn forget_wishes(&mut self, range: Extent) {
        for list in [&mut self.wiped, &mut self.kept_back] {
            let outside = |wish: &Extent| {
                let (before, after) = (Extent { end: range.start, ..*wish }, Extent { start: range.end, ..*wish });
                if wish.overlaps(&range) { [before, after] } else { [*wish, Extent { start: 0, end: 0 }] }
            };
            *list = list.iter().flat_map(outside).filter(|wish| wish.start < wish.end).collect();
        }
        self.end_released(range);
    }

    /// The program has unmapped `range`, of which `parts` were managed.
    pub(super) fn gone(&mut self, range: Extent, parts: &[(Extent, Attr)]) {
        self.forget_wishes(range);
        self.decommit(committed_bytes(parts));
        for (part, _) in parts {
            self.unpin(*part);
            self.discard(*part);
        }
        self.regions().remove(range);
        self.arena.give_at(range);
    }

    /// Ends what mlock did for `range`: the memory is about to be unmapped.
    pub(super) fn unpin(&mut self, range: Extent) {
        self.pins.retain(|pin| !pin.overlaps(&range));
        self.loans().forget(range);
        if let Some(pager) = &mut self.pager {
            let _ = pager.pin(range, false);
        }
    }

    /// Notes what mlock asks for where there is no pager.
    pub(super) fn pin(&mut self, range: Extent) -> Result<(), Errno> {
        let pinned: usize = self.pins.iter().map(|pin| pin.len().max(BLOCK)).sum();
        if self.mapped.is_some() && (pinned + range.len()) as u64 > self.job.settings().near_bytes / 2 {
            return Err(Errno::ENOMEM);
        }
        self.pins.push(range);
        Ok(())
    }

    pub(super) fn notice(&self, what: &str) {
        process::write_stderr(format!("nearfar: process {}: {what}\n", process::pid()).as_bytes());
    }

    /// Charges `pages` while passive; false when the budget does not allow it.
    pub(super) fn charge_passive(&mut self, pages: usize) -> bool {
        let fits = self.job.try_charge(self.slot, pages as u64);
        if fits {
            self.charged += pages;
        }
        fits
    }

    /// Bytes that are or were writable.
    pub(super) fn committed(&self) -> usize {
        self.committed
    }

    pub(super) fn add_committed(&mut self, len: usize) {
        self.committed += len;
        self.slot.set(Counter::Committed, self.committed as u64);
    }

    /// Starts the pager, with far space for `need` bytes.
    pub(super) fn start_pager(&mut self, need: u64) -> Result<(), Start> {
        // The thread first, which waits for the lock: from the first registration on somebody serves.
        self.have_thread().map_err(Start::Thread)?;
        self.slot.health().turn(now_ns(), process::tid());
        self.drain_cache();
        let scan: Vec<Extent> = self.regions.all().into_iter().map(|(range, _)| range).collect();
        let caught = if self.job.settings().user_only { self.catch_calls() } else { Ok(()) };
        let regions = std::mem::take(&mut self.regions);
        let started = match caught {
            Ok(()) => Pager::start(self.job, self.slot, regions, &scan, self.charged as u64, need),
            Err(errno) => Err((regions, Start::Seccomp(errno))),
        };
        match started {
            Ok(mut pager) => {
                self.charged = 0;
                pager.set_placed(self.placed);
                pager.loans = std::mem::take(&mut self.loans);
                for range in std::mem::take(&mut self.pins) {
                    let _ = pager.pin(range, true);
                }
                self.pager = Some(pager);
                self.arena.limit_cache((self.job.settings().near_bytes / 64).min(16 << 20) as usize);
                Ok(())
            }
            Err((regions, why)) => {
                self.regions = regions;
                self.slot.health().rest();
                Err(why)
            }
        }
    }

    /// Begins to keep what the kernel pages within near.
    pub(super) fn keep(&mut self) -> bool {
        match Keeper::new(self.job, self.charged as u64) {
            Ok(keeper) => {
                self.charged = 0;
                if let Some(mapped) = &mut self.mapped {
                    mapped.keeper = Some(keeper);
                }
                self.arena.limit_cache((self.job.settings().near_bytes / 64).min(16 << 20) as usize);
                true
            }
            Err(errno) => {
                self.refused = true;
                self.notice(&format!("/proc cannot be read ({errno}): the kernel alone decides what stays in memory"));
                false
            }
        }
    }

    /// In the child of a fork.
    pub(super) fn after_fork(&mut self) {
        let slot = match self.job.join() {
            Some(slot) => slot,
            None => crate::pager::stop("too many processes under one nearfar run (1024); start fewer, or several runs"),
        };
        self.slot = slot;
        // What the kernel has left out of the child is not among them.
        let is_here = |range: &Extent| !self.kept_back.iter().any(|gone| gone.overlaps(range));
        for object in std::mem::take(&mut self.forked_objects).iter().filter(|object| is_here(&object.range())) {
            slot.objects().begin(object.range(), object.site as usize);
        }
        self.charge_inherited();
        let before = self.forking_thread;
        self.loans().after_fork(before);
        slot.set(Counter::Committed, self.committed as u64);
        if self.mapped.is_some() {
            return self.after_fork_mapped(slot);
        }
        match &mut self.pager {
            Some(pager) => {
                pager.fork_child(slot);
                let (wiped, kept_back) = (self.wiped.clone(), std::mem::take(&mut self.kept_back));
                for (part, _) in wiped.iter().chain(&kept_back).flat_map(|&range| pager.regions.parts(range)).collect::<Vec<_>>()
                {
                    pager.discard(part);
                }
                self.give_up(kept_back);
            }
            None => {
                self.job.force_charge(slot, self.charged as u64);
                // The kernel has left it out of the child.
                let kept_back = std::mem::take(&mut self.kept_back);
                self.give_up(kept_back);
            }
        }
    }

    /// In the child of a fork: ranges that the program asked it not to have.
    fn give_up(&mut self, ranges: Vec<Extent>) {
        for range in ranges {
            let committed = committed_bytes(&self.regions().parts(range));
            self.decommit(committed);
            if self.arena.is_reserved() && self.arena.whole().contains_extent(range) {
                let _ = self.reserve_again(range);
            } else {
                self.regions().remove(range);
                // SAFETY: the program asked that a child does not have it.
                let _ = unsafe { map::munmap(range) };
            }
            self.arena.give_at(range);
        }
    }

    /// Where the kernel pages: what is to be done to stay within near.
    pub(super) fn keep_round(&mut self) -> Option<Chores> {
        self.mapped.as_mut()?.round(self.job, self.slot, &self.regions, &self.pins)
    }

    fn after_fork_mapped(&mut self, slot: &'static Slot) {
        let Some(mapped) = &mut self.mapped else { return };
        let result = mapped.fork_child(&self.arena, &self.regions);
        let kept = mapped.keeper.take().is_some();
        if let Err(errno) = result {
            self.mapped = None;
            self.refused = true;
            self.charged = self.committed / PAGE;
            let dir = self.job.settings().far_dir();
            self.notice(&format!(
                "a forked child has no spill file of its own in {dir} ({errno}); it goes on with ordinary memory"
            ));
        }
        let (wiped, kept_back) = (self.wiped.clone(), std::mem::take(&mut self.kept_back));
        let parts: Vec<Extent> =
            wiped.iter().chain(&kept_back).flat_map(|&range| self.regions.parts(range)).map(|(part, _)| part).collect();
        parts.into_iter().for_each(|part| self.discard(part));
        self.give_up(kept_back);
        if self.mapped.is_none() || !kept || !self.keep() {
            self.job.force_charge(slot, self.charged as u64);
        }
    }

    pub(super) fn publish(&mut self) {
        if self.mapped.is_some() && self.is_active() {
            // The keeper's rounds do it; between them nothing is known.
            return;
        }
        match &mut self.pager {
            Some(pager) => pager.publish(),
            None => {
                let used = self.slot.charged_pages() * PAGE as u64;
                self.slot.set(Counter::NearUsed, used);
                self.slot.raise(Counter::NearPeak, used);
            }
        }
    }
}

/// What was released: where, the pages that stay charged for it, and the bytes of it that are or were writable.
pub(super) struct Released {
    pub(super) range: Extent,
    pub(super) left: usize,
    pub(super) pages: u64,
    pub(super) committed: usize,
}

/// Bytes of `parts` that count.
pub(super) fn committed_bytes(parts: &[(Extent, Attr)]) -> usize {
    parts.iter().filter(|(_, attr)| attr.committed).map(|(range, _)| range.len()).sum()
}

impl Memory {
    pub(super) fn manage(&self, inner: &mut Inner, range: Extent, attr: Attr) {
        inner.manage(range, attr);
    }
}

impl Inner {
    /// Charges `pages` while passive, beyond the budget.
    pub(super) fn force_charge_passive(&mut self, pages: usize) {
        self.job.force_charge(self.slot, pages as u64);
        self.charged += pages;
    }

    pub(super) fn publish_passive(&mut self) {
        if !self.is_active() {
            self.publish();
        }
    }
}
