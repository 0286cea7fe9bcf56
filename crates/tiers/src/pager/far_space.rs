//! Far space against what the program holds: when it may have more, and what happens when there is no more.
//!
//! Space is secured ahead of what is evicted, not for what is merely allocated: programs reserve far more than they touch.
//! As long as there is more to be had, anything may be allocated that could be held alone. When there is none, allocations
//! fail that near and what is secured could not hold together with all that the program has; what it was given before, it
//! can always use. Only a program that was given more than that and then touches it is stopped.

use super::Pager;
use nearfar_core::addr::{BLOCK, BLOCK_PAGES, PAGE};
use nearfar_core::stats::Counter;
use nearfar_core::units::Bytes;
use nearfar_sys::errno::Errno;
use nearfar_sys::event::now_ns;
use nearfar_sys::process;

/// How long a process waits for what others of the job have when neither near nor far has space for what it holds: many end meanwhile,
/// or free memory. No longer, since they may wait for this one. One that has no more than its share of near has twice the time.
const OTHERS_WAIT_NS: u64 = 30_000_000_000;
/// Processes that ran out together are not stopped together: what one leaves may do for the others.
const APART_NS: u64 = 1_000_000_000;
/// Between looks whether somebody died or there is something to clean, while waiting.
const LOOK_NS: u64 = 200_000_000;
/// Others with less near, and nothing in far, have nothing to give: a shell that waits, for example.
const WORTH_PAGES: u64 = 2 * BLOCK_PAGES as u64;

/// Why an allocation cannot be held.
#[derive(Clone, Copy, Debug)]
pub struct NoSpace {
    /// What the far tier says.
    pub errno: Errno,
    /// Bytes that it still has, as far as one can know.
    pub free: u64,
}

impl Pager {
    /// True when `committed` bytes in all, `len` of them new, may be promised. `reserved`: the program said that it will not
    /// use all of it. With `--commit=strict`, far space is secured for all of it.
    pub fn promise(&mut self, committed: u64, len: u64, reserved: bool) -> Result<(), NoSpace> {
        let result = self.find_space(committed, len, reserved);
        result.map_err(|errno| NoSpace { errno, free: self.far.free_bytes() })
    }

    fn find_space(&mut self, committed: u64, len: u64, reserved: bool) -> Result<(), Errno> {
        if self.job.settings().strict {
            return self.far.hold(committed);
        }
        let sure = self.sure_near_bytes();
        if committed <= sure + self.far.usable_bytes() {
            return Ok(());
        }
        if self.far.short().is_some() {
            // Somebody may have made room meanwhile.
            return self.far.hold(committed.saturating_sub(sure));
        }
        if !reserved && len > self.uncharged_room() * PAGE as u64 + self.far.holdable_bytes() {
            return Err(Errno(libc::ENOSPC));
        }
        Ok(())
    }

    /// Near memory that no other process takes from this one, less what is not for data. A little less than there is: what
    /// is said here is relied on.
    fn sure_near_bytes(&self) -> u64 {
        let fair = self.job.fair_share_pages();
        (fair - fair / 8).saturating_sub(self.metadata_pages as u64) * PAGE as u64
    }

    /// Keeps far space ahead of need; never waits.
    pub(super) fn keep_far_ahead(&mut self) {
        self.far.keep_ahead();
        self.slot.set(Counter::FarSecured, self.far.secured_bytes());
    }

    /// Starts the thread that secures far space, by `spawn`. Without it the pager does, which faults may have to wait for.
    pub fn start_helper(&mut self, spawn: impl FnOnce(Box<dyn FnOnce() + Send>) -> bool) {
        let reserve = self.far.reserve();
        let body = reserve.helper();
        if !spawn(Box::new(body)) {
            reserve.without_helper();
        }
    }

    /// Before a fork: with `--commit=strict`, secures what the child and this process may write from then on.
    pub fn promise_fork(&mut self, committed: u64) -> Result<(), NoSpace> {
        if !self.job.settings().strict {
            return Ok(());
        }
        self.far.hold_for_fork(committed).map_err(|errno| NoSpace { errno, free: self.far.free_bytes() })
    }

    /// Far has refused space for an eviction. True when some was found after all. Only a thread that waits with no other
    /// hope is a reason to stop: what is in limbo may still free frames, and the program may free memory.
    pub(super) fn far_full(&mut self, errno: Errno) -> bool {
        if self.starved.is_empty() || self.ops > 0 || self.limbo_pages > 0 {
            return false;
        }
        let now = now_ns();
        let waits = self.may_wait_for_others(now);
        self.waits_for_far = waits;
        if waits && now < self.clean_after_ns {
            return false;
        }
        if self.clean() {
            return true;
        }
        if waits {
            // They are told that it starves (`break_deadlock`).
            self.job.bury_dead();
            self.clean_after_ns = now + LOOK_NS;
            return false;
        }
        let (what, free) = (self.far.backend().describe(), Bytes(self.far.free_bytes()));
        let bound = match self.job.settings().far_max {
            0 => String::new(),
            most => format!(", raise --far-max (all processes have {} of {})", Bytes(self.job.far_bytes()), Bytes(most)),
        };
        let (secured, held) = (Bytes(self.far.secured_bytes()), Bytes(self.slot.get(Counter::Committed)));
        super::stop(&format!(
            "no space in far memory for what the program touches: it holds {held}, far has {secured} of {what}, and another \
             {} are refused: {errno} ({free} free there). Free some space, name another --far{bound}, give more --near, or use \
             --commit=strict, so that allocations fail instead",
            Bytes(BLOCK as u64)
        ))
    }

    /// True while others of the job may still make room for a thread that starves.
    fn may_wait_for_others(&self, now: u64) -> bool {
        let since = self.starved.front().map_or(now, |starved| starved.since_ns).max(self.starved_since_ns);
        let within_share = self.slot.charged_pages() <= self.job.fair_share_pages();
        let patience = OTHERS_WAIT_NS * if within_share { 2 } else { 1 } + u64::from(process::pid() % 10) * APART_NS;
        now.saturating_sub(since) < patience && self.job.others_hold(self.slot, WORTH_PAGES)
    }
}
