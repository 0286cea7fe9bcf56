//! Fork: one page table becomes two, which share near pages (by the kernel, until one writes) and far places (by our
//! freezing them) for as long as both live.
//!
//! Before: reads and writes of far come to an end, so that no device writes into memory that is about to be shared. After:
//! the child opens its own userfaultfd, store and engine, and gives the frames that hold nothing of worth to the kernel.

use super::Pager;
use crate::block::Phase;
use crate::far::Far;
use crate::job::Slot;
use nearfar_core::stats::Counter;
use nearfar_sys::event::wait_readable;
use nearfar_sys::high_descriptors;
use nearfar_sys::uffd::Uffd;
use std::os::fd::OwnedFd;

/// What a child opens before it can close what it has inherited, and the pipe.
pub(super) const DESCRIPTORS: usize = 10;
const OF_PIPE: usize = 2;
/// Without so many a child is not tried: a userfaultfd, a spill file, an engine, one of these twice for a moment, and the pipe.
const LEAST: usize = 6;

impl Pager {
    /// Whether a child would find descriptors free for what it has to open.
    pub fn may_fork(&mut self) -> bool {
        high_descriptors::with_room(|| self.spare.hold(DESCRIPTORS)) >= LEAST
    }

    /// Before fork, under the lock, which is held until one of the next two.
    pub fn fork_prepare(&mut self) {
        self.resting = true;
        // The child inherits the open file, and must not keep the request in force.
        self.awake.lift();
        self.far.reap_forks();
        while self.ops > 0 {
            self.far.backend().flush();
            if !self.take_completions() {
                let fd = self.far.backend().wait_fd();
                wait_readable(&[fd], 1, &mut [false]);
            }
        }
        self.far.rest();
        self.spare.release(OF_PIPE);
        self.pipe = high_descriptors::with_room(Far::fork_pipe).ok();
        self.all_ranges(|pager, range| pager.hide_from_raw_forks(range, false));
    }

    pub(super) fn all_ranges(&mut self, mut each: impl FnMut(&mut Self, nearfar_core::addr::Extent)) {
        let (pool, nursery) = (self.frames.pool(), self.frames.nursery());
        each(self, pool);
        each(self, nursery);
        for (range, _) in self.regions.all() {
            each(self, range);
        }
    }

    /// After fork, in the parent.
    pub fn fork_parent(&mut self) {
        self.far.forget_child();
        self.all_ranges(|pager, range| pager.hide_from_raw_forks(range, true));
        match self.pipe.take() {
            Some((reader, writer)) => {
                drop(writer);
                self.far.froze(reader);
            }
            // No descriptors left: what the child may read stays frozen for ever.
            None => self.far.froze_for_ever(),
        }
        self.blocks.values_mut().for_each(|block| block.shared = true);
        self.count(Counter::Forks, 1);
        high_descriptors::with_room(|| self.spare.hold(DESCRIPTORS));
        self.resting = false;
    }

    /// After fork, in the child, which has `slot` in the job. Faults are served from here on, by a thread yet to start.
    pub fn fork_child(&mut self, slot: &'static Slot) {
        self.spare.release(DESCRIPTORS);
        high_descriptors::with_room(|| self.begin_child(slot));
        high_descriptors::with_room(|| self.spare.hold(DESCRIPTORS));
    }

    fn begin_child(&mut self, slot: &'static Slot) {
        self.slot = slot;
        self.waits.clear();
        self.starved.clear();
        self.wishes.clear();
        self.told_starving = false;
        self.forget_all_room();
        let can_move = self.uffd.can_move();
        match Uffd::open(self.job.settings().user_only) {
            Ok(uffd) => self.uffd = uffd,
            Err(errno) => super::stop(&format!("a forked child cannot page: userfaultfd is refused ({errno})")),
        }
        if !can_move {
            self.uffd.deny_move();
        }
        self.log.after_fork();
        self.renew_recorder();
        self.hollow = 0;
        self.awake = super::stats::WakeupControl::new(nearfar_sys::kernel::Denied(self.job.settings().denied));
        let alive: Option<OwnedFd> = self.pipe.take().map(|(_reader, writer)| writer);
        if let Err(errno) = self.far.after_fork(Some(slot), alive) {
            super::stop(&format!("a forked child cannot open far memory of its own: {errno}"));
        }
        self.keep_open();
        if let Err(why) = self.register_all() {
            super::stop(&format!("a forked child cannot page: {why}"));
        }
        self.blocks.values_mut().for_each(|block| block.shared = true);
        // Holds without operations: limbo (far has them) and staged (far has them too).
        let idle: Vec<_> = (0..self.holds.len()).filter(|&id| matches!(&self.holds[id], Some(hold) if hold.ops == 0)).collect();
        for id in idle {
            match self.hold(id).phase {
                Phase::Clean => self.end_limbo(id),
                Phase::Staged => self.end_staged(id),
                Phase::Reading | Phase::Writing => super::stop("internal error: fork with I/O under way; please report this"),
            }
        }
        // What was staged for the parent is no prefetch in vain.
        self.aside = Default::default();
        let (huge, single) = self.frames.free_pages();
        self.frames.release(huge + single);
        self.metadata_pages = 0;
        let resident = self.evict.resident_pages();
        self.job.force_charge(slot, resident);
        self.resting = false;
    }
}
