//! Ranges that are *lent* to the kernel: they stay in view for as long as a system call of the program may use them.
//!
//! Only needed where userfaultfd misses the kernel's own accesses. A loan for a call ends when its word is cleared, which
//! `gate` does behind the call without any lock; standing loans (signal stacks) end when the memory is unmapped or freed.

use nearfar_core::addr::{Extent, PAGE};
use nearfar_sys::{process, task};
use std::sync::atomic::{AtomicU32, Ordering};

/// One call that may be under way.
struct Loan {
    // Not zero while it is. Lives for ever, since a thread may be about to clear it.
    live: &'static AtomicU32,
    ranges: Vec<Extent>,
    thread: u32,
    since_ns: u64,
    // Begun by somebody else for a call that the thread was in: nobody clears the word.
    found: bool,
}

/// A thread has this many calls under way at the most: one, and one for each handler that interrupted another. What is older
/// was left by longjmp.
const NESTED: usize = 6;
/// A child of vfork that lends memory runs another program within this time.
const VFORK_NS: u64 = 10_000_000_000;

/// All loans of the process.
#[derive(Default)]
pub struct Loans {
    calls: Vec<Loan>,
    standing: Vec<Extent>,
}

impl Loans {
    /// Begins a loan for a call of `thread`; it has no ranges yet. Clearing the word ends it.
    pub fn begin(&mut self, thread: u32, now: u64) -> &'static AtomicU32 {
        self.clear_ended();
        // A thread that makes a call has come out of the one that it was found in. When it was interrupted and is to make that
        // call again, it will lend again.
        self.calls.iter_mut().filter(|loan| loan.found && loan.thread == thread).for_each(Loan::end);
        let mine = |loan: &&mut Loan| loan.is_live() && loan.thread == thread;
        if self.calls.iter_mut().filter(mine).count() >= NESTED
            && let Some(oldest) = self.calls.iter_mut().filter(mine).min_by_key(|loan| loan.since_ns)
        {
            oldest.end();
        }
        let free = match self.calls.iter().position(|loan| !loan.is_live()) {
            Some(free) => free,
            None => {
                self.end_orphans(now);
                self.calls.iter().position(|loan| !loan.is_live()).unwrap_or_else(|| {
                    let live = Box::leak(Box::new(AtomicU32::new(0)));
                    self.calls.push(Loan { live, ranges: Vec::new(), thread: 0, since_ns: 0, found: false });
                    self.calls.len() - 1
                })
            }
        };
        let loan = &mut self.calls[free];
        (loan.thread, loan.since_ns, loan.found) = (thread, now, false);
        loan.ranges.clear();
        loan.live.store(1, Ordering::Relaxed);
        loan.live
    }

    /// As `begin`, by another thread, for a call that `thread` is in already. It ends when that thread makes another call.
    pub fn begin_for(&mut self, thread: u32, now: u64) -> &'static AtomicU32 {
        let live = self.begin(thread, now);
        self.calls.iter_mut().filter(|loan| std::ptr::eq(loan.live, live)).for_each(|loan| loan.found = true);
        live
    }

    /// Adds a range to a loan that `begin` began.
    pub fn add(&mut self, live: &'static AtomicU32, range: Extent) {
        if let Some(loan) = self.calls.iter_mut().find(|loan| std::ptr::eq(loan.live, live)) {
            loan.ranges.push(whole_pages(range));
        }
    }

    fn clear_ended(&mut self) {
        self.calls.iter_mut().filter(|loan| !loan.is_live()).for_each(|loan| loan.ranges.clear());
    }

    /// Ends loans of threads that are gone: their calls never came back.
    fn end_orphans(&mut self, now: u64) {
        for loan in self.calls.iter_mut().filter(|loan| loan.is_live() && now - loan.since_ns > VFORK_NS) {
            if !task::lives(loan.thread) {
                loan.end();
            }
        }
    }

    /// Keeps a range in view until it is forgotten.
    pub fn keep(&mut self, range: Extent) {
        self.standing.push(whole_pages(range));
    }

    /// Ends standing loans that touch `range`: the memory is about to be unmapped or freed, or used otherwise.
    pub fn forget(&mut self, range: Extent) {
        self.standing.retain(|kept| !kept.overlaps(&range));
    }

    /// The standing loans.
    pub fn standing(&self) -> &[Extent] {
        &self.standing
    }

    /// True when part of `range` is lent.
    pub fn overlap(&self, range: &Extent) -> bool {
        self.standing.iter().any(|kept| kept.overlaps(range))
            || self.calls.iter().any(|loan| loan.is_live() && loan.ranges.iter().any(|lent| lent.overlaps(range)))
    }

    /// Bytes lent for calls.
    pub fn bytes(&self) -> usize {
        let live = self.calls.iter().filter(|loan| loan.is_live());
        live.flat_map(|loan| &loan.ranges).map(Extent::len).sum()
    }

    /// In the child of a fork by thread `before`: of the others' calls none is under way here.
    pub fn after_fork(&mut self, before: u32) {
        let own = process::tid();
        for loan in &mut self.calls {
            if loan.thread == before { loan.thread = own } else { loan.end() }
        }
    }
}

impl Loan {
    fn is_live(&self) -> bool {
        self.live.load(Ordering::Acquire) != 0
    }

    fn end(&mut self) {
        self.live.store(0, Ordering::Relaxed);
        self.ranges.clear();
    }
}

fn whole_pages(range: Extent) -> Extent {
    Extent { start: range.start & !(PAGE - 1), end: range.end.saturating_add(PAGE - 1) & !(PAGE - 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANGE: Extent = Extent { start: 0x1800, end: 0x2800 };

    #[test]
    fn loans_begin_and_end() {
        let mut loans = Loans::default();
        let call = loans.begin(7, 1);
        loans.add(call, RANGE);
        assert!(loans.overlap(&Extent { start: 0x1000, end: 0x1001 }) && !loans.overlap(&Extent { start: 0x3000, end: 0x4000 }));
        assert_eq!(loans.bytes(), 0x2000);
        call.store(0, Ordering::Relaxed);
        assert!(!loans.overlap(&RANGE) && std::ptr::eq(loans.begin(8, 2), call) && loans.bytes() == 0);
        loans.keep(RANGE);
        assert!(loans.overlap(&RANGE));
        loans.forget(Extent { start: 0x2000, end: 0x2001 });
        assert!(!loans.overlap(&RANGE));
    }

    #[test]
    fn calls_left_by_longjmp_do_not_pile_up() {
        let mut loans = Loans::default();
        for round in 0..1000 {
            let call = loans.begin(7, round);
            loans.add(call, Extent::new(round as usize * PAGE, PAGE));
        }
        assert!(loans.calls.len() <= NESTED && loans.bytes() <= NESTED * PAGE);
        assert!(loans.overlap(&Extent::new(999 * PAGE, PAGE)));
    }

    #[test]
    fn threads_that_are_gone_lend_nothing() {
        let mut loans = Loans::default();
        let call = loans.begin(1 << 30, 0);
        loans.add(call, RANGE);
        loans.begin(8, 1);
        assert!(loans.overlap(&RANGE), "a child of vfork may still be in its call");
        loans.begin(9, VFORK_NS + 1);
        assert!(!loans.overlap(&RANGE));
    }
}
