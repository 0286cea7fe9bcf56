//! What ends looks: messages of the kernel, and putting pages back.

use super::super::mover::{Step, Tries};
use super::super::slots::{After, SMALL, State};
use super::{BACK_NS, BACKS, Fault, PENDING, VISIT_NS, VISITS, Watcher};
use nearfar_core::addr::{BLOCK, Extent, PAGE};
use nearfar_core::profile::record::{Watch, WatchEnd};
use nearfar_sys::errno::Errno;
use nearfar_sys::event::now_ns;
use nearfar_sys::high_descriptors::{self, Kept};
use nearfar_sys::map;
use nearfar_sys::uffd_watch::{Message, Waiters, WatchFd};
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering;

impl Watcher {
    /// Reads all messages: follows events at once, keeps faults for later. Moves nothing, so it may be called amid anything.
    pub(super) fn read_messages(&mut self) {
        let fd = self.mover.fd;
        let now = now_ns();
        // Who faulted while this thread did something else has waited since some moment of that.
        let before = if self.read_at == 0 { self.waking() } else { now - self.read_at };
        let at = now - before / 2;
        self.read_at = now;
        let stalled = self.sampler.stall_ns.load(Ordering::Relaxed);
        loop {
            let result = fd.read(|message| match message {
                Message::Fault { addr, thread, write, protected } => {
                    if self.pending.len() < PENDING {
                        self.pending.push_back(Fault { addr, thread, write, protected, at, stalled });
                    } else {
                        self.overflow = true;
                    }
                }
                Message::Forked(child) => self.forked(&child),
                Message::Moved { from, to, len } => self.moved(Extent::new(from, len), to),
                Message::Discarded(range) => self.discarded(range),
                Message::Unmapped(range) => {
                    self.discarded(range);
                    fd.wake(range);
                }
            });
            match result {
                // Fewer than it may give: there were no more.
                Ok(count) if count >= WatchFd::AT_ONCE => {}
                Ok(_) => break,
                // A child waits for a descriptor.
                Err(Errno(libc::EMFILE | libc::ENFILE)) if self.spare.take().is_some() || self.threads.close_one() => {}
                _ => break,
            }
        }
        if self.spare.is_none() {
            self.spare = high_descriptors::duplicate(self.event.as_raw_fd()).map(Kept::in_place);
        }
    }

    fn forked(&mut self, child: &WatchFd) {
        let mut slot = 0;
        while let Some(found) = self.slots.next(slot) {
            let page = *self.slots.get(found);
            self.mover.give_child(child, found, &page);
            slot = found + 1;
        }
        // With its descriptor the child's registration ends, and its threads that wait are woken.
    }

    /// The program gave up the content of `range`, or the range.
    fn discarded(&mut self, range: Extent) {
        let mut from = 0;
        while let Some(slot) = self.slots.overlapping(range, from) {
            let page = self.slots.get(slot);
            page.spoilt |= page.run().is_some();
            page.set_away(range, false);
            self.mark_for_restoring(slot);
            from = slot + 1;
        }
    }

    fn moved(&mut self, from: Extent, to: usize) {
        let mut first = 0;
        while let Some(slot) = self.slots.overlapping(from, first) {
            let start = self.slots.get(slot).range.start;
            // A huge page of which a part was moved stays where most of the kernel's promises are: see docs/reference/promises-and-limits.md.
            if start >= from.start {
                self.slots.relocate(slot, start - from.start + to);
            }
            self.mark_for_restoring(slot);
            first = slot + 1;
        }
        self.mover.fd.wake(from);
    }

    /// A look ends since the program did something to the page's mapping.
    fn mark_for_restoring(&mut self, slot: usize) {
        let page = self.slots.get(slot);
        page.restore = true;
        if page.state == State::Away {
            page.watch.end = WatchEnd::Lost;
        }
        self.restores = true;
        self.stalled(self.waking());
    }

    pub(super) fn serve_pending(&mut self) {
        while let Some(fault) = self.pending.pop_front() {
            self.fault(fault);
            self.read_messages();
        }
        if std::mem::take(&mut self.overflow) {
            self.put_all_back();
        }
        while std::mem::take(&mut self.restores) {
            let mut from = 0;
            while let Some(slot) = self.slots.next(from) {
                if self.slots.get(slot).restore {
                    self.end(slot, None);
                }
                from = slot + 1;
            }
        }
    }

    fn fault(&mut self, fault: Fault) {
        let Some(slot) = self.slots.find(fault.addr) else { return self.stray(fault.addr) };
        let page = self.slots.get(slot);
        if page.restore {
            return self.end(slot, None);
        }
        if matches!(page.state, State::Protected | State::Back) {
            if page.state == State::Protected && fault.protected && fault.write {
                // Another page of a huge one may be another visit's: then it is not known.
                let same = (fault.addr ^ page.watch.touched as usize) < PAGE;
                page.watch.wrote = same.then_some(true);
            }
            self.stalled(now_ns() - fault.at + self.waking() / 2);
            return self.finish(slot);
        }
        // Dated back it may seem to be from before the look.
        let at = fault.at.max(page.watch.at);
        self.lasted(slot, at, fault.stalled);
        let page = self.slots.get(slot);
        page.watch.touched = fault.addr as u64;
        page.watch.tid = fault.thread;
        page.watch.end = if fault.write { WatchEnd::Write } else { WatchEnd::Read };
        page.watch.wrote = fault.write.then_some(true);
        let range = page.range;
        let ip = self.threads.instruction(fault.thread).unwrap_or(0) as u64;
        self.slots.get(slot).watch.ip = ip;
        let page = self.slots.get(slot);
        let follow = page.follow && !fault.write && self.protected.len() < VISITS;
        let mut tries = self.mover.tries(page, follow);
        // Where the page can come protected, it comes and wakes in one step.
        let waiters = if follow && !tries.protects() { Waiters::Leave } else { Waiters::Wake };
        self.put_back_by(slot, waiters, &mut tries);
        let mut protected = tries.protected;
        if waiters == Waiters::Leave {
            protected = !self.slots.get(slot).restore && self.mover.fd.protect(range).is_ok();
            self.mover.fd.wake(range);
        }
        let served = now_ns();
        self.stalled(served - at + self.waking() / 2);
        if !protected {
            return self.finish_later(slot, served);
        }
        let page = self.slots.get(slot);
        page.state = State::Protected;
        page.watch.wrote = Some(false);
        let at = page.watch.at;
        self.protected.push_back((served + VISIT_NS, slot, at));
    }

    /// Somebody waits for a page that is not looked at (any more): the range is none of our business, so all of it is let go.
    fn stray(&mut self, addr: usize) {
        let page = Extent::new(addr & !(PAGE - 1), PAGE);
        let block = Extent::new(addr & !(BLOCK - 1), BLOCK);
        // A mapping that grew while a page of it was registered is registered further than that.
        if self.slots.overlapping(block, 0).is_some() || self.mover.fd.unregister(block).is_err() {
            let _ = self.mover.fd.unregister(page);
        }
        self.mover.fd.wake(page);
    }

    /// Notes how long a look has lasted, and what of that the program's threads waited for us: meanwhile they touch nothing, and they
    /// wait most just after some looks have begun.
    fn lasted(&mut self, slot: usize, now: u64, stalled: u64) {
        let page = self.slots.get(slot);
        page.watch.waited = now.saturating_sub(page.watch.at);
        page.watch.stalled = ((stalled.saturating_sub(page.stalled) as f64 / self.running) as u64).min(page.watch.waited);
    }

    /// What a thread waits before we know of it and after we are done with it, if we sleep: half of it each.
    fn waking(&self) -> u64 {
        self.sampler.waking_ns.load(Ordering::Relaxed)
    }

    fn stalled(&self, ns: u64) {
        self.sampler.stall_ns.fetch_add(ns, Ordering::Relaxed);
    }

    /// Puts a slot's pages back into view; afterwards none is away.
    pub(super) fn put_back(&mut self, slot: usize, waiters: Waiters) {
        self.put_back_by(slot, waiters, &mut Tries::default());
    }

    fn put_back_by(&mut self, slot: usize, waiters: Waiters, tries: &mut Tries) {
        while self.mover.put_back(slot, self.slots.get(slot), waiters, tries) != Step::Done {
            tries.wait();
            self.read_messages();
        }
        self.slots.get(slot).spoilt |= tries.copied;
    }

    /// Ends a look: puts back what is away, tells what it came to (`end`: other than what is noted).
    pub(super) fn end(&mut self, slot: usize, end: Option<WatchEnd>) {
        self.put_back(slot, Waiters::Wake);
        let now = now_ns();
        let page = self.slots.get(slot);
        if let Some(end) = end {
            page.watch.end = end;
        }
        if page.watch.touched == 0 {
            self.lasted(slot, now, self.sampler.stall_ns.load(Ordering::Relaxed));
        }
        self.finish(slot);
    }

    /// As `finish`, when it costs least: with others.
    fn finish_later(&mut self, slot: usize, now: u64) {
        let page = self.slots.get(slot);
        // In a child that is forked unseen the page would be missing as long as it is registered.
        if page.range.len() != PAGE || self.backs.len() >= BACKS || !self.mover.fd.sees_forks() {
            return self.finish(slot);
        }
        page.state = State::Back;
        let at = page.watch.at;
        self.backs.push_back((now + BACK_NS, slot, at));
    }

    /// Ends what `finish_later` left.
    pub(super) fn finish_backs(&mut self) {
        while let Some((_, slot, at)) = self.backs.pop_front() {
            let page = self.slots.get(slot);
            if page.state == State::Back && page.watch.at == at {
                self.finish(slot);
            }
        }
    }

    /// Ends a look whose pages are in view.
    pub(super) fn finish(&mut self, slot: usize) {
        let page = *self.slots.get(slot);
        if self.mover.fd.unregister(page.range).is_err() {
            // Otherwise it has woken them.
            self.mover.fd.wake(page.range);
        }
        self.hide_from_forks(page.range, false);
        self.report(page.watch);
        let place = Extent::new(self.mover.place(slot), page.range.len());
        let after = match page.spoilt {
            false => After::Free,
            true if slot < SMALL => After::Used,
            true if self.mover.clear(place) => After::Free,
            true => After::Retired,
        };
        self.slots.free(slot, after);
    }

    pub(super) fn report(&mut self, watch: Watch) {
        self.sampler.ended.fetch_add(1, Ordering::Relaxed);
        if matches!(watch.end, WatchEnd::Read | WatchEnd::Write) {
            self.sampler.touched.fetch_add(1, Ordering::Relaxed);
        }
        // Without room it is lost: nobody has taken any for seconds.
        self.sampler.watches.push(watch);
    }

    /// Where forks are not told, a child must not find zeros in the place of a page: it does not have the page at all.
    pub(super) fn hide_from_forks(&self, range: Extent, hide: bool) {
        if !self.mover.fd.sees_forks() {
            let advice = if hide { libc::MADV_DONTFORK } else { libc::MADV_DOFORK };
            // SAFETY: changes what a child gets.
            let _ = unsafe { map::madvise(range, advice) };
        }
    }
}
