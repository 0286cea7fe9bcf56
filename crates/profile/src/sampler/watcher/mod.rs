//! The sampler's thread: begins looks at random moments, and gives up what nobody touches. `serve` has what ends looks before:
//! faults, and what the program does to its mappings.

mod serve;

use super::forbidden;
use super::governor::{Counted, Governor};
use super::mover::{Mover, Step, Tries};
use super::slots::{After, HUGE, SMALL, Slots, State};
use super::{Look, Sampler};
use nearfar_core::addr::{BLOCK, Extent, PAGE};
use nearfar_core::profile::record::{Watch, WatchEnd};
use nearfar_core::random_numbers::Random;
use nearfar_sys::blocked::BlockedThreads;
use nearfar_sys::errno::{Errno, call};
use nearfar_sys::event::{Event, now_ns};
use nearfar_sys::high_descriptors::{self, Kept};
use nearfar_sys::pagemap::PageState;
use nearfar_sys::thread;
use nearfar_sys::uffd_watch::WatchFd;
use std::collections::VecDeque;
use std::os::fd::AsRawFd;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Looks at huge pages that can begin at once.
const SPARE_HUGE: usize = 8;
/// How often costs are counted and old looks are given up.
const TICK_NS: u64 = 40_000_000;
/// Share of the looks that, when they end with a read, go on to see whether the visit writes; each costs as much again.
const FOLLOWED: f64 = 0.25;
/// The same of huge pages, where it costs several times as much; what the code at one place does is told by a few.
const FOLLOWED_HUGE: f64 = 0.05;
/// Share of the looks at huge pages that are at a small page of one that may be split instead.
const FINE: f64 = 0.5;
/// So many at a time.
const VISITS: usize = 64;
/// How long a page stays write-protected after it was read.
const VISIT_NS: u64 = 2_000_000;
/// It may stay so for that much longer, so that a wake-up for something else can end it.
const VISIT_SLACK_NS: u64 = 3_000_000;
/// A page that was offered so long ago may not be the object's any more.
const STALE_NS: u64 = 20_000_000;
/// A page that is back in view may stay registered for so long, so that many are unregistered together.
const BACK_NS: u64 = 50_000_000;
/// So many pages.
const BACKS: usize = 256;
/// A wait that takes no longer found something at once.
const AWAKE_NS: u64 = 4_000;
/// Faults that were read while something else was being done.
const PENDING: usize = 1024;
/// CPUs that a program uses which does not wait for something else most of the time.
const BUSY: f64 = 0.25;
/// Counts without that until it is taken to be idle.
const CALM: u32 = 5;
/// Looks at a time that are not too many in programs that pause all the time: some 0.2 ms to put back.
const LEAST_AT_A_TIME: usize = 64;
/// Huge pages that are split for the sake of one small page: so many at first, and then one in so long.
const SPLITS: u32 = 8;
const SPLIT_NS: u64 = 10_000_000_000;

#[derive(Clone, Copy)]
struct Fault {
    addr: usize,
    thread: u32,
    write: bool,
    protected: bool,
    /// When it happened, about.
    at: u64,
    /// What threads had waited for us by then, all together.
    stalled: u64,
}

struct Watcher {
    sampler: &'static Sampler,
    event: &'static Event,
    mover: Mover,
    slots: Slots,
    pending: VecDeque<Fault>,
    /// When messages were last read; 0: the thread has slept since.
    read_at: u64,
    /// A fault could not be kept: whoever waits is to be woken.
    overflow: bool,
    /// There are slots to be put back at once.
    restores: bool,
    /// When visits end: time, slot, and when its look began.
    protected: VecDeque<(u64, usize, u64)>,
    /// Pages that are in view again and still registered: until when, slot, and when its look began.
    backs: VecDeque<(u64, usize, u64)>,
    threads: BlockedThreads,
    spare: Option<Kept>,
    forbidden: Vec<Extent>,
    random: Random,
    governor: Governor,
    longest: u64,
    tried: u64,
    begun: u64,
    /// CPU time of the process and the clock at the last count, and how many of its threads run, 1 at least.
    counted: (u64, u64),
    running: f64,
    calm: u32,
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
    let spare = high_descriptors::duplicate(event.as_raw_fd()).map(Kept::in_place);
    let watcher = Box::new(Watcher {
        sampler,
        event,
        mover,
        slots: Slots::new(),
        pending: VecDeque::with_capacity(PENDING),
        read_at: 0,
        overflow: false,
        restores: false,
        protected: VecDeque::with_capacity(VISITS),
        backs: VecDeque::with_capacity(BACKS),
        threads: BlockedThreads::new(),
        spare,
        forbidden: Vec::new(),
        random: Random::new(options.seed ^ u64::from(nearfar_sys::process::pid()) << 32),
        governor: Governor::new(options.budget, Counted { now: now_ns(), ..Counted::default() }),
        longest: options.longest.as_nanos() as u64,
        tried: 0,
        begun: 0,
        counted: (0, 0),
        running: 1.0,
        calm: 0,
        tick: 0,
        splits: SPLITS,
        next_split: 0,
        paused: true,
        most: SMALL,
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
        let (faults, protected, backs) = (self.pending.as_slices().0, self.protected.as_slices().0, self.backs.as_slices().0);
        self.forbidden.push(Extent::new(faults.as_ptr().addr(), PENDING * size_of::<Fault>()));
        self.forbidden.push(Extent::new(protected.as_ptr().addr(), VISITS * 24));
        self.forbidden.push(Extent::new(backs.as_ptr().addr(), BACKS * 24));
        self.forbidden.push(Extent::new((&raw const *self.mover.fd).addr(), size_of::<WatchFd>()));
        self.forbidden.push(Extent::new((&raw const *self.event).addr(), size_of::<Event>()));
        self.forbidden.reserve(1);
        let list = Extent::new(self.forbidden.as_ptr().addr(), (self.forbidden.len() + 1) * size_of::<Extent>());
        self.forbidden.push(list);
        loop {
            if self.wait() {
                self.read_messages();
            }
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
                if std::mem::take(&mut self.paused) {
                    // What is wanted is told at once.
                    self.tick = now;
                }
                self.begin_offered();
            } else {
                self.put_all_back();
                self.pauses += u32::from(!self.paused);
                self.paused = true;
                self.sampler.holds.be_quiet();
            }
        }
    }

    /// Sleeps until something is to be done. True: there may be messages.
    fn wait(&mut self) -> bool {
        if !self.pending.is_empty() {
            return true;
        }
        let now = now_ns();
        let mut until = self.tick;
        if let Some(&(at, ..)) = self.protected.front() {
            until = until.min(at + VISIT_SLACK_NS);
        }
        if let Some(&(at, ..)) = self.backs.front() {
            until = until.min(at);
        }
        let left = until.saturating_sub(now);
        let time = libc::timespec { tv_sec: (left / 1_000_000_000) as i64, tv_nsec: (left % 1_000_000_000) as i64 };
        let poll = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let mut polls = [poll(self.mover.fd.as_raw_fd()), poll(self.event.as_raw_fd())];
        let args = [polls.as_mut_ptr().addr(), polls.len(), (&raw const time).addr(), 0, 0, 0];
        // SAFETY: reads and writes locals.
        let failed = unsafe { call(libc::SYS_ppoll, args) }.is_err();
        if now_ns() - now > AWAKE_NS {
            self.read_at = 0;
        }
        if polls[1].revents != 0 {
            self.event.clear();
        }
        failed || polls[0].revents != 0
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
        if self.backs.front().is_some_and(|&(until, ..)| until <= now) {
            self.finish_backs();
        }
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
        let process = clock(libc::CLOCK_PROCESS_CPUTIME_ID);
        let (cpu, then) = std::mem::replace(&mut self.counted, (process.saturating_sub(own), now));
        if then != 0 && now > then {
            let running = self.counted.0.saturating_sub(cpu) as f64 / (now - then) as f64;
            self.calm = if running > BUSY { 0 } else { self.calm.saturating_add(1) };
            self.sampler.busy.store(self.calm < CALM, Ordering::Relaxed);
            self.running += 0.2 * (running.max(1.0) - self.running);
        }
        self.governor.update(Counted {
            now,
            process,
            own,
            stall: self.sampler.stall_ns.load(Ordering::Relaxed),
            beside: self.sampler.beside_ns.load(Ordering::Relaxed),
            tried: self.tried + self.sampler.passed.load(Ordering::Relaxed),
            looks: self.begun,
        });
        // Every pause puts all pages back, which the pausing thread waits for.
        let pauses = std::mem::take(&mut self.pauses);
        self.most = if pauses == 0 { (self.most + self.most / 8).min(SMALL) } else { (self.most / 2).max(LEAST_AT_A_TIME) };
        let rate = if self.has_room() { self.governor.rate() } else { 0.0 };
        self.sampler.rate.store(rate.to_bits(), Ordering::Relaxed);
    }

    fn has_room(&self) -> bool {
        !self.paused && self.slots.in_use() < self.most
    }

    /// Begins the looks that were offered.
    fn begin_offered(&mut self) {
        let mut begun = false;
        while let Some((offered, look)) = self.sampler.looks.pop() {
            if offered + STALE_NS < now_ns() || !self.has_room() {
                continue;
            }
            if std::mem::replace(&mut begun, true) {
                // The program does not wait for the rest.
                self.read_messages();
                self.serve_pending();
                self.spare_huge();
            }
            self.tried += 1;
            self.begin(look);
        }
        if begun {
            self.finish_backs();
        }
    }

    /// Ends looks at huge pages where few more could begin: those that nobody touches would be all there are. Any of them: if it were
    /// the oldest, no long wait would ever be seen.
    fn spare_huge(&mut self) {
        while self.slots.free_huge() < SPARE_HUGE {
            let from = self.random.below(HUGE as u64) as usize;
            let Some(slot) = self.slots.some_huge(from) else { return };
            self.end(slot, Some(WatchEnd::Nobody));
        }
    }

    fn begin(&mut self, look: Look) {
        let small = Extent::new(look.page & !(PAGE - 1), PAGE);
        let block = Extent::new(look.page & !(BLOCK - 1), BLOCK);
        // First of all: who asks from now on waits until this look has begun. Asked after the page was found, somebody whose turn is over
        // by now may have moved the mapping away.
        if self.sampler.holds.covers(if look.huge { block } else { small }) {
            return;
        }
        // Where a huge page could not be looked at, its being absent must not be told of either.
        if look.huge && self.slots.free_huge() == 0 {
            return;
        }
        let state = self.mover.state(small.start).unwrap_or(PageState::File);
        if state == PageState::Huge && look.huge && self.random.unit() < FINE && self.is_free(look.fine) {
            return self.begin(Look { page: look.fine, huge: false, ..look });
        }
        let range = if state == PageState::Huge && look.huge { block } else { small };
        let mut watch = Watch {
            object: look.object,
            page: range.start as u64,
            pages: (range.len() / PAGE) as u16,
            at: now_ns(),
            waited: 0,
            stalled: 0,
            end: WatchEnd::Lost,
            touched: 0,
            ip: 0,
            tid: 0,
            wrote: None,
            lines: None,
        };
        let taken = if range == small { self.slots.find(small.start) } else { self.slots.overlapping(range, 0) };
        if taken.is_some() {
            // Not absent: aside.
            return;
        }
        if state == PageState::Absent {
            watch.end = WatchEnd::Absent;
        }
        let ours = self.forbidden.iter().any(|own| own.overlaps(&range));
        let splits = state == PageState::Huge && range == small && look.page != look.fine && !self.may_split(watch.at);
        if !matches!(state, PageState::Small | PageState::Huge) || ours || splits {
            return self.report(watch);
        }
        self.slots.reuse(|used| self.mover.clear_slots(used));
        let Some(slot) = self.slots.claim(range, watch) else { return };
        self.begun += 1;
        let follow = self.random.unit() < if range == small { FOLLOWED } else { FOLLOWED_HUGE };
        self.slots.get(slot).follow = follow;
        // SAFETY: this thread reads the messages until `finish` unregisters.
        if unsafe { self.mover.fd.register(range, follow) }.is_err() {
            self.slots.free(slot, After::Free);
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
        page.stalled = self.sampler.stall_ns.load(Ordering::Relaxed);
        if !taken || self.has_thread(slot) {
            self.end(slot, Some(WatchEnd::Lost));
        }
    }

    /// True when a look at the small page could begin: otherwise the one that was drawn is looked at, as if there were no such page.
    fn is_free(&mut self, page: usize) -> bool {
        page != 0
            && !self.sampler.holds.covers(Extent::new(page, PAGE))
            && matches!(self.mover.state(page), Ok(PageState::Small | PageState::Huge))
            && self.slots.find(page).is_none()
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
        let range = self.slots.get(slot).range;
        if range.len() == BLOCK {
            return forbidden::has_live_thread(range);
        }
        let words = self.mover.place(slot) as *const usize;
        // SAFETY: the memory aside is ours, and the pages that were moved there are nobody else's now. What a racing `discarded`
        // empties it reads as zeros.
        forbidden::has_thread(unsafe { std::slice::from_raw_parts(words, PAGE / size_of::<usize>()) })
    }
}
