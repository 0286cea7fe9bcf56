//! The sampler's thread: begins looks at random moments, serves the faults that end them, follows what the program does to its
//! mappings, and gives up what nobody touches.

use super::forbidden;
use super::governor::{Counted, Governor};
use super::mover::{Mover, Step, Tries};
use super::slots::{Slots, State};
use super::{Look, Sampler};
use nearfar_core::addr::{BLOCK, Extent, PAGE};
use nearfar_core::profile::choice::Random;
use nearfar_core::profile::record::{Watch, WatchEnd};
use nearfar_sys::blocked::BlockedThreads;
use nearfar_sys::errno::{Errno, call};
use nearfar_sys::event::{Event, now_ns};
use nearfar_sys::pagemap::PageState;
use nearfar_sys::uffd_watch::{Message, Waiters, WatchFd};
use nearfar_sys::{aside, map, thread};
use std::collections::VecDeque;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// How often costs are counted and old looks are given up.
const TICK_NS: u64 = 20_000_000;
/// How long a page stays write-protected after it was read.
const VISIT_NS: u64 = 2_000_000;
/// A page that was offered so long ago may not be the object's any more.
const STALE_NS: u64 = 150_000_000;
/// What a thread waits before we know of it and after we are done with it.
const WAKING_NS: u64 = 10_000;
/// Faults that were read while something else was being done.
const PENDING: usize = 1024;
/// Huge pages that are split for the sake of one small page: so many at first, and then one in so long.
const SPLITS: u32 = 8;
const SPLIT_NS: u64 = 10_000_000_000;

#[derive(Clone, Copy)]
struct Fault {
    addr: usize,
    thread: u32,
    write: bool,
    protected: bool,
}

struct Watcher {
    sampler: &'static Sampler,
    event: &'static Event,
    mover: Mover,
    slots: Slots,
    pending: VecDeque<Fault>,
    /// A fault could not be kept: whoever waits is to be woken.
    overflow: bool,
    /// There are slots to be put back at once.
    restores: bool,
    /// When visits end: time, slot, and when its look began.
    protected: VecDeque<(u64, usize, u64)>,
    threads: BlockedThreads,
    spare: Option<OwnedFd>,
    forbidden: Vec<Extent>,
    random: Random,
    governor: Governor,
    longest: u64,
    begun: u64,
    next: u64,
    tick: u64,
    splits: u32,
    next_split: u64,
    paused: bool,
    /// Looks at a time, fewer in programs that often pause.
    most: usize,
    pauses: u32,
}

/// What the thread works with. Only it uses it; in the child of a fork nobody does.
static WATCHER: AtomicPtr<Watcher> = AtomicPtr::new(null_mut());

/// In the child of a fork: frees the copy of what the parent's thread worked with, and closes its descriptors.
pub fn forget_parent() {
    let watcher = WATCHER.swap(null_mut(), Ordering::AcqRel);
    if !watcher.is_null() {
        // SAFETY: from the box of `spawn`; the thread that used it does not exist here, and was paused when the copy was made.
        drop(unsafe { Box::from_raw(watcher) });
    }
}

/// Starts the thread.
pub fn spawn(sampler: &'static Sampler) -> Result<(), Errno> {
    // SAFETY: both are leaked boxes of `Sampler::begin`.
    let (fd, event): (&'static WatchFd, &'static Event) =
        unsafe { (&*sampler.fd.load(Ordering::Acquire), &*sampler.event.load(Ordering::Acquire)) };
    let options = sampler.options();
    let mover = Mover::new(fd)?;
    let spare = aside::duplicate(event.as_raw_fd());
    let watcher = Box::new(Watcher {
        sampler,
        event,
        mover,
        slots: Slots::new(),
        pending: VecDeque::with_capacity(PENDING),
        overflow: false,
        restores: false,
        protected: VecDeque::with_capacity(64),
        threads: BlockedThreads::new(),
        spare,
        forbidden: Vec::new(),
        random: Random::new(options.seed ^ u64::from(nearfar_sys::process::pid()) << 32),
        governor: Governor::new(options.budget, Counted { now: now_ns(), ..Counted::default() }),
        longest: options.longest.as_nanos() as u64,
        begun: 0,
        next: 0,
        tick: 0,
        splits: SPLITS,
        next_split: 0,
        paused: true,
        most: usize::MAX,
        pauses: 0,
    });
    let watcher = Box::into_raw(watcher);
    WATCHER.store(watcher, Ordering::Release);
    let address = watcher.expose_provenance();
    // SAFETY: the box lives as long as the process, and this thread alone uses it.
    let body = move || unsafe { (*std::ptr::with_exposed_provenance_mut::<Watcher>(address)).run() };
    thread::spawn("nearfar-watch", body).inspect_err(|_| forget_parent())
}

fn clock(id: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: fills a local.
    unsafe { libc::clock_gettime(id, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

impl Watcher {
    fn run(&mut self) -> ! {
        thread::be_prompt();
        self.forbidden = forbidden::ranges();
        self.forbidden.extend(self.slots.memory());
        self.forbidden.push(self.mover.memory());
        self.forbidden.push(Extent::new(std::ptr::from_ref(self).addr(), size_of::<Self>()));
        let (faults, protected) = (self.pending.as_slices().0, self.protected.as_slices().0);
        self.forbidden.push(Extent::new(faults.as_ptr().addr(), PENDING * size_of::<Fault>()));
        self.forbidden.push(Extent::new(protected.as_ptr().addr(), 64 * 24));
        self.forbidden.push(Extent::new((&raw const *self.mover.fd).addr(), size_of::<WatchFd>()));
        self.forbidden.push(Extent::new((&raw const *self.event).addr(), size_of::<Event>()));
        self.forbidden.reserve(1);
        let list = Extent::new(self.forbidden.as_ptr().addr(), (self.forbidden.len() + 1) * size_of::<Extent>());
        self.forbidden.push(list);
        loop {
            self.wait();
            self.read_messages();
            self.serve_pending();
            self.hold_requests();
            let now = now_ns();
            self.end_visits(now);
            if now >= self.tick {
                self.tick = now + TICK_NS;
                self.end_old(now);
                self.count(now);
            }
            if self.sampler.holds.may_look() {
                self.paused = false;
                self.begin_due();
            } else {
                self.put_all_back();
                self.pauses += u32::from(!self.paused);
                self.paused = true;
                self.sampler.holds.be_quiet();
            }
        }
    }

    /// Sleeps until something is to be done.
    fn wait(&mut self) {
        if !self.pending.is_empty() {
            return;
        }
        let now = now_ns();
        let mut until = self.tick;
        if !self.paused && !self.sampler.looks.is_empty() {
            until = until.min(self.next);
        }
        if let Some(&(at, ..)) = self.protected.front() {
            until = until.min(at);
        }
        let left = until.saturating_sub(now);
        let time = libc::timespec { tv_sec: (left / 1_000_000_000) as i64, tv_nsec: (left % 1_000_000_000) as i64 };
        let poll = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let mut polls = [poll(self.mover.fd.as_raw_fd()), poll(self.event.as_raw_fd())];
        let args = [polls.as_mut_ptr().addr(), polls.len(), (&raw const time).addr(), 0, 0, 0];
        // SAFETY: reads and writes locals.
        let _ = unsafe { call(libc::SYS_ppoll, args) };
        if polls[1].revents != 0 {
            self.event.clear();
        }
    }

    /// Reads all messages: follows events at once, keeps faults for later. Moves nothing, so it may be called amid anything.
    fn read_messages(&mut self) {
        let fd = self.mover.fd;
        loop {
            let result = fd.read(|message| match message {
                Message::Fault { addr, thread, write, protected } => {
                    if self.pending.len() < PENDING {
                        self.pending.push_back(Fault { addr, thread, write, protected });
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
                Ok(count) if count > 0 => {}
                // A child waits for a descriptor.
                Err(Errno(libc::EMFILE | libc::ENFILE)) if self.spare.take().is_some() || self.threads.close_one() => {}
                _ => break,
            }
        }
        if self.spare.is_none() {
            self.spare = aside::duplicate(self.event.as_raw_fd());
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
            self.to_restore(slot);
            from = slot + 1;
        }
    }

    fn moved(&mut self, from: Extent, to: usize) {
        let mut first = 0;
        while let Some(slot) = self.slots.overlapping(from, first) {
            let start = self.slots.get(slot).range.start;
            // A huge page of which a part was moved stays where most of the kernel's promises are: see docs/limits.md.
            if start >= from.start {
                self.slots.relocate(slot, start - from.start + to);
            }
            self.to_restore(slot);
            first = slot + 1;
        }
        self.mover.fd.wake(from);
    }

    /// A look ends since the program did something to the page's mapping.
    fn to_restore(&mut self, slot: usize) {
        let page = self.slots.get(slot);
        page.restore = true;
        if page.state == State::Away {
            page.watch.end = WatchEnd::Lost;
        }
        self.restores = true;
        self.stalled(WAKING_NS);
    }

    fn serve_pending(&mut self) {
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
        let now = now_ns();
        let page = self.slots.get(slot);
        if page.restore {
            return self.end(slot, None);
        }
        if page.state == State::Protected {
            if fault.protected && fault.write {
                page.watch.wrote = Some(true);
            }
            self.stalled(WAKING_NS);
            return self.finish(slot);
        }
        page.watch.waited = now - page.watch.at;
        page.watch.touched = fault.addr as u64;
        page.watch.tid = fault.thread;
        page.watch.end = if fault.write { WatchEnd::Write } else { WatchEnd::Read };
        page.watch.wrote = fault.write.then_some(true);
        let range = page.range;
        let ip = self.threads.instruction(fault.thread).unwrap_or(0) as u64;
        self.slots.get(slot).watch.ip = ip;
        let follow = !fault.write && range.len() == PAGE && self.protected.len() < 64 && self.random.next() & 1 == 0;
        if !follow {
            self.put_back(slot, Waiters::Wake);
            self.stalled(now_ns() - now + WAKING_NS);
            return self.finish(slot);
        }
        self.put_back(slot, Waiters::Leave);
        let page = self.slots.get(slot);
        let protected = !page.restore && self.mover.fd.protect(range).is_ok();
        self.mover.fd.wake(range);
        self.stalled(now_ns() - now + WAKING_NS);
        if !protected {
            return self.finish(slot);
        }
        let page = self.slots.get(slot);
        page.state = State::Protected;
        page.watch.wrote = Some(false);
        let at = page.watch.at;
        self.protected.push_back((now_ns() + VISIT_NS, slot, at));
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

    fn stalled(&self, ns: u64) {
        self.sampler.stall_ns.fetch_add(ns, Ordering::Relaxed);
    }

    /// Puts a slot's pages back into view; afterwards none is away.
    fn put_back(&mut self, slot: usize, waiters: Waiters) {
        let mut tries = Tries::default();
        while self.mover.put_back(slot, self.slots.get(slot), waiters, &mut tries) != Step::Done {
            tries.wait();
            self.read_messages();
        }
        self.slots.get(slot).spoilt |= tries.copied;
    }

    /// Ends a look: puts back what is away, tells what it came to (`end`: other than what is noted).
    fn end(&mut self, slot: usize, end: Option<WatchEnd>) {
        self.put_back(slot, Waiters::Wake);
        let now = now_ns();
        let page = self.slots.get(slot);
        if let Some(end) = end {
            page.watch.end = end;
        }
        if page.watch.touched == 0 {
            page.watch.waited = now.saturating_sub(page.watch.at);
        }
        self.finish(slot);
    }

    /// Ends a look whose pages are in view.
    fn finish(&mut self, slot: usize) {
        let page = *self.slots.get(slot);
        let _ = self.mover.fd.unregister(page.range);
        self.hide_from_forks(page.range, false);
        self.mover.fd.wake(page.range);
        self.report(page.watch);
        let retired = page.spoilt && !self.mover.clear(Extent::new(self.mover.place(slot), page.range.len()));
        self.slots.free(slot, retired);
    }

    fn report(&mut self, watch: Watch) {
        self.sampler.ended.fetch_add(1, Ordering::Relaxed);
        if matches!(watch.end, WatchEnd::Read | WatchEnd::Write) {
            self.sampler.touched.fetch_add(1, Ordering::Relaxed);
        }
        // Without room it is lost: nobody has taken any for seconds.
        self.sampler.watches.push(watch);
    }

    /// Where forks are not told, a child must not find zeros in the place of a page: it does not have the page at all.
    fn hide_from_forks(&self, range: Extent, hide: bool) {
        if !self.mover.fd.sees_forks() {
            let advice = if hide { libc::MADV_DONTFORK } else { libc::MADV_DOFORK };
            // SAFETY: changes what a child gets.
            let _ = unsafe { map::madvise(range, advice) };
        }
    }

    fn hold_requests(&mut self) {
        while let Some((place, range)) = self.sampler.holds.asked() {
            let mut from = 0;
            while let Some(slot) = self.slots.overlapping(range, from) {
                self.end(slot, None);
                from = slot + 1;
            }
            self.sampler.holds.grant(place);
        }
    }

    fn put_all_back(&mut self) {
        let mut from = 0;
        while let Some(slot) = self.slots.next(from) {
            self.end(slot, None);
            from = slot + 1;
        }
    }

    fn end_visits(&mut self, now: u64) {
        while let Some(&(until, slot, at)) = self.protected.front() {
            let page = self.slots.get(slot);
            let current = page.state == State::Protected && page.watch.at == at;
            if current && until > now {
                break;
            }
            self.protected.pop_front();
            if current {
                self.finish(slot);
            }
        }
    }

    fn end_old(&mut self, now: u64) {
        let mut from = 0;
        while let Some(slot) = self.slots.next(from) {
            let page = self.slots.get(slot);
            if page.state == State::Away && now.saturating_sub(page.watch.at) >= self.longest {
                self.end(slot, Some(WatchEnd::Nobody));
            }
            from = slot + 1;
        }
    }

    fn count(&mut self, now: u64) {
        let own = clock(libc::CLOCK_THREAD_CPUTIME_ID);
        self.sampler.cpu_ns.store(own, Ordering::Relaxed);
        self.governor.update(Counted {
            now,
            process: clock(libc::CLOCK_PROCESS_CPUTIME_ID),
            own,
            stall: self.sampler.stall_ns.load(Ordering::Relaxed),
            looks: self.begun,
        });
        // Every pause puts all pages back, which the pausing thread waits for.
        self.most = match std::mem::take(&mut self.pauses) {
            0 => self.most.saturating_add(self.most / 64).max(16),
            _ => (self.slots.in_use().max(32) / 2).max(16),
        };
        let wanted = (self.governor.rate() * 0.06).ceil() as usize;
        let room = self.slots.in_use() < self.most.min(super::slots::SMALL) && !self.paused;
        self.sampler.wanted.store(if room { wanted.min(1000) } else { 0 }, Ordering::Relaxed);
    }

    fn begin_due(&mut self) {
        let mut now = now_ns();
        // Late by much: we had no CPU, or nothing to look at. Nothing is made up for in a burst.
        if now > self.next + TICK_NS {
            self.next = now;
        }
        for _ in 0..4 {
            if now < self.next || self.slots.in_use() >= self.most.min(super::slots::SMALL) {
                return;
            }
            let Some((offered, look)) = self.sampler.looks.pop() else { return };
            if offered + STALE_NS < now {
                continue;
            }
            let gap = -(1.0 - self.random.unit()).ln() / self.governor.rate();
            self.next += (gap * 1e9) as u64 + 1;
            self.begun += 1;
            self.begin(look);
            self.read_messages();
            self.serve_pending();
            now = now_ns();
        }
    }

    fn begin(&mut self, look: Look) {
        let small = Extent::new(look.page & !(PAGE - 1), PAGE);
        let block = Extent::new(look.page & !(BLOCK - 1), BLOCK);
        let state = self.mover.pagemap.state(small.start).unwrap_or(PageState::File);
        let range = if state == PageState::Huge && look.huge { block } else { small };
        let mut watch = Watch {
            object: look.object,
            page: range.start as u64,
            pages: (range.len() / PAGE) as u16,
            at: now_ns(),
            waited: 0,
            end: WatchEnd::Lost,
            touched: 0,
            ip: 0,
            tid: 0,
            wrote: None,
            lines: None,
        };
        if state == PageState::Absent {
            watch.end = WatchEnd::Absent;
        }
        let ours = self.forbidden.iter().any(|own| own.overlaps(&range));
        let splits = state == PageState::Huge && range == small && !self.may_split(watch.at);
        if !matches!(state, PageState::Small | PageState::Huge) || ours || splits {
            return self.report(watch);
        }
        let taken = if range == small { self.slots.find(small.start) } else { self.slots.overlapping(range, 0) };
        if taken.is_some() || self.sampler.holds.covers(range) {
            return;
        }
        let Some(slot) = self.slots.claim(range, watch) else { return };
        // SAFETY: this thread reads the messages until `finish` unregisters.
        if unsafe { self.mover.fd.register(range) }.is_err() {
            self.slots.free(slot, false);
            return self.report(watch);
        }
        self.hide_from_forks(range, true);
        let mut tries = Tries::default();
        let mut done = 0;
        let taken = loop {
            match self.mover.take(slot, self.slots.get(slot), &mut done) {
                Step::Done => break true,
                Step::Refused => break false,
                Step::Again => {}
            }
            self.read_messages();
            if self.slots.get(slot).restore || tries.times() > 40 {
                break false;
            }
            tries.wait();
        };
        let page = self.slots.get(slot);
        page.watch.at = now_ns();
        if !taken || self.has_thread(slot) {
            self.end(slot, Some(WatchEnd::Lost));
        }
    }

    fn may_split(&mut self, now: u64) -> bool {
        if self.splits == 0 && now < self.next_split {
            return false;
        }
        self.splits = self.splits.saturating_sub(1);
        self.next_split = now + SPLIT_NS;
        true
    }

    fn has_thread(&mut self, slot: usize) -> bool {
        let len = self.slots.get(slot).range.len();
        let words = self.mover.place(slot) as *const usize;
        // SAFETY: the memory aside is ours, and the pages that were moved there are nobody else's now. What a racing `discarded`
        // empties it reads as zeros.
        forbidden::has_thread(unsafe { std::slice::from_raw_parts(words, len / size_of::<usize>()) })
    }
}
