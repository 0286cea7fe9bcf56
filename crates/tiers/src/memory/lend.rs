//! Paging for users whose userfaultfd misses the kernel's own accesses: what a system call uses is brought to near before the
//! call and lent to the kernel until its end.

use super::{Memory, inner::Inner};
use crate::loans::Loans;
use nearfar_core::addr::{Extent, PAGE};
use nearfar_core::stats::Counter;
use nearfar_sys::call_memory::{self, Lender};
use nearfar_sys::errno::Errno;
use nearfar_sys::event::now_ns;
use nearfar_sys::proc_tasks::ThreadState;
use nearfar_sys::task;
use nearfar_sys::thread::give_way;
use nearfar_sys::{map, process, seccomp};
use std::sync::atomic::{AtomicU32, Ordering};

/// One call may have this part of near, and all together four times as much.
const CALL_SHARE: usize = 16;
/// But this much in any case.
const LEAST: usize = 64 << 10;
/// How long threads are given to leave the system calls that they were in when paging begins.
const SETTLE_NS: u64 = 2_000_000_000;
/// madvise(2), since 5.14.
const MADV_POPULATE_READ: i32 = 22;
const MADV_POPULATE_WRITE: i32 = 23;

/// Memory lent for one call. Ends when its word is cleared: by `end`, or by `gate` behind the call.
#[derive(Clone, Copy)]
pub struct CallLoan {
    memory: Memory,
    live: &'static AtomicU32,
}

impl CallLoan {
    /// The word that is cleared when the call is over.
    pub fn word(&self) -> &'static AtomicU32 {
        self.live
    }

    /// The call is over.
    pub fn end(&self) {
        self.live.store(0, Ordering::Release);
    }
}

impl Lender for CallLoan {
    fn lend(&mut self, ranges: &[Extent]) {
        let parts = self.memory.enter().lend(self.live, ranges);
        for part in parts {
            touch(part);
        }
    }
}

/// Brings readable memory of the program to near, as any access does.
fn touch(range: Extent) {
    for page in (range.start & !(PAGE - 1)..range.end).step_by(PAGE) {
        // SAFETY: a readable page of the program, which has just handed it to the kernel.
        unsafe { std::ptr::read_volatile(page as *const u8) };
    }
}

impl Memory {
    /// Begins a loan for a system call of this thread, and tells how many bytes it should not exceed.
    pub fn begin_loan(&self) -> (CallLoan, usize) {
        let mut inner = self.enter();
        let mut most = usize::MAX;
        if inner.pager.is_some() {
            if inner.job.settings().user_only {
                inner.slot.add(Counter::CallsCaught, 1);
            }
            most = inner.loan_limit();
        }
        let live = inner.loans().begin(process::tid(), now_ns());
        (CallLoan { memory: *self, live }, most)
    }

    /// Keeps `range` in near until it is freed or unmapped, or forgotten. False when that would leave too little of near.
    pub fn lend_for_good(&self, range: Extent) -> bool {
        let parts = {
            let mut inner = self.enter();
            let near = inner.job.settings().near_bytes as usize;
            let kept: usize = inner.loans().standing().iter().map(Extent::len).sum();
            let parts = inner.readable(&[range]);
            if parts.is_empty() {
                return true;
            }
            if kept + range.len() > near / 4 {
                return false;
            }
            inner.loans().keep(range);
            parts
        };
        parts.into_iter().for_each(touch);
        true
    }

    /// Ends `lend_for_good`.
    pub fn lend_no_more(&self, range: Extent) {
        self.enter().loans().forget(range);
    }

    /// Tells where this process's calls with structures are to be caught, should it begin to page.
    pub fn catch_calls_of(&self, code: Vec<Extent>) {
        self.enter().caught_code = Some(code);
    }
}

impl Inner {
    pub(super) fn loans(&mut self) -> &mut Loans {
        match &mut self.pager {
            Some(pager) => &mut pager.loans,
            None => &mut self.loans,
        }
    }

    fn loan_limit(&mut self) -> usize {
        let near = self.job.settings().near_bytes as usize;
        let left = (near / CALL_SHARE * 4).saturating_sub(self.loans().bytes());
        (near / CALL_SHARE).min(left / 4).max(LEAST) & !(PAGE - 1)
    }

    /// The parts of `ranges` that the program may read, and that we manage.
    fn readable(&mut self, ranges: &[Extent]) -> Vec<Extent> {
        let mut out = Vec::new();
        for &range in ranges.iter().filter(|range| !range.is_empty()) {
            let parts = self.regions().parts(range);
            out.extend(parts.into_iter().filter(|(_, attr)| attr.prot & libc::PROT_READ != 0).map(|(part, _)| part));
        }
        out
    }

    /// Lends ranges; returns what is to be touched once the lock is free.
    fn lend(&mut self, live: &'static AtomicU32, ranges: &[Extent]) -> Vec<Extent> {
        if self.pager.is_none() {
            // Nothing leaves near yet; but it may before this call is over.
            ranges.iter().for_each(|&range| self.loans().add(live, range));
            return Vec::new();
        }
        // More than half of what this process may count on would leave it nothing to go on with. What is not lent the kernel finds
        // absent, and says EFAULT, if it gets there: programs give sizes that they do not mean.
        let fair = (self.job.fair_share_pages() as usize).saturating_mul(PAGE) / 2;
        let mut left = fair.max(LEAST).saturating_sub(self.loans().bytes());
        let mut parts = self.readable(ranges);
        for part in &mut parts {
            part.end = part.end.min(part.start.saturating_add(left));
            left -= part.len();
        }
        parts.retain(|part| !part.is_empty());
        parts.iter().for_each(|&part| self.loans().add(live, part));
        parts
    }

    /// Before paging begins: new system calls are caught from now on, and what those under way use is lent.
    pub(super) fn catch_calls(&mut self) -> Result<(), Errno> {
        let code = self.caught_code.take().ok_or(Errno(libc::ENOSYS))?;
        // SAFETY: whoever gave the code has put the handler in place and keeps SIGSYS open in all threads.
        let installed = unsafe { seccomp::install(&code) };
        self.caught_code = Some(code);
        installed?;
        let standing = self.loans().standing().to_vec();
        self.populate(&standing);
        let deadline = now_ns() + SETTLE_NS;
        for tid in task::others() {
            self.settle(tid, deadline);
        }
        Ok(())
    }

    /// Waits until thread `tid` is in no system call that began before they were caught, or lends what it uses.
    fn settle(&mut self, tid: u32, deadline: u64) {
        if task::name(tid).starts_with("nearfar") {
            return;
        }
        let before = task::answers();
        let mut asked = false;
        while now_ns() < deadline {
            match task::state(tid) {
                None | Some(ThreadState::Gone | ThreadState::Fault(_)) => return,
                Some(ThreadState::Call(number, args)) => {
                    if let Some(entry) = call_memory::entry(number)
                        && call_memory::concerns(entry, &args)
                    {
                        let live = self.loans().begin_for(tid, now_ns());
                        let mut lent = Populating { inner: self, live };
                        call_memory::lend_all(entry, &args, &mut lent);
                    }
                    return;
                }
                Some(ThreadState::Running) if task::answers() != before => return,
                Some(ThreadState::Running) => {
                    if !asked {
                        asked = true;
                        task::ask(tid);
                    }
                    give_way();
                }
            }
        }
        self.notice("a thread did not leave the kernel in time when paging began; a system call of it may fail");
    }

    /// Has the kernel bring what is managed of `ranges` to memory, while that is still ordinary memory.
    fn populate(&mut self, ranges: &[Extent]) {
        for part in self.readable(ranges) {
            let whole = Extent { start: part.start & !(PAGE - 1), end: part.end.next_multiple_of(PAGE) };
            for advice in [MADV_POPULATE_WRITE, MADV_POPULATE_READ] {
                // SAFETY: brings pages, and changes no content.
                if unsafe { map::madvise(whole, advice) }.is_ok() {
                    break;
                }
            }
        }
    }
}

/// Lends what a thread uses that is in the kernel already; not more than its share, the rest must be there by itself.
struct Populating<'a> {
    inner: &'a mut Inner,
    live: &'static AtomicU32,
}

impl Lender for Populating<'_> {
    fn lend(&mut self, ranges: &[Extent]) {
        for &range in ranges {
            let most = self.inner.loan_limit();
            let range = Extent { start: range.start, end: range.end.min(range.start.saturating_add(most)) };
            self.inner.populate(&[range]);
            self.inner.loans().add(self.live, range);
        }
    }
}
