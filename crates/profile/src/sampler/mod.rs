//! Looks at pages: takes a page out of the program's view at a random moment and tells when it is touched next, by what and how.
//!
//! One thread does it (`watcher`), with userfaultfd. Threads of the program wait for it, whatever locks they hold, so it allocates
//! nothing, takes no lock and touches no memory of the program once it runs. It gets pages through one ring and gives results through
//! another; both ends may be any thread, one at a time.
//!
//! Modules, lowest first: `governor`, `slots`, `forbidden`, `holds`, `mover` (out of view and back), `watcher` (the thread), `waking`.

mod governor;
mod slots;
mod forbidden;
mod holds;
mod mover;
mod watcher;
mod waking;

use crate::ring::Ring;
use holds::Holds;
use nearfar_core::profile::record::Watch;
use nearfar_sys::errno::Errno;
use nearfar_sys::event::{Event, now_ns};
use nearfar_sys::process;
use nearfar_sys::uffd_watch::WatchFd;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

pub use waking::Wakeful;

/// How a sampler works.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Share of the program's time that looking may cost, 0..=1.
    pub budget: f64,
    /// Of the random numbers.
    pub seed: u64,
    /// A page that nobody touches is given up after so long.
    pub longest: Duration,
}

/// A page to be looked at.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Comes back in [`Watch::object`].
    pub object: u64,
    /// Address of the page.
    pub page: usize,
    /// The 2 MiB around the page belong to the object too: where they are one huge page, it is looked at as a whole. A page of a
    /// huge page that must not be taken as a whole is looked at only now and then, since the huge page is split.
    pub huge: bool,
    /// A page of one of the few huge pages of the object that may be split, 0 where there are none. Where `page` is in a huge page, every
    /// other look is at this one instead: visits at random come to 2 MiB more often than a look can tell.
    pub fine: usize,
}

/// What looking has cost so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SamplerCost {
    /// CPU time of the sampler's thread.
    pub cpu_ns: u64,
    /// Time that threads of the program waited for it.
    pub stall_ns: u64,
    /// Looks that have ended.
    pub watches: u64,
    /// Those that ended with a touch.
    pub touched: u64,
}

/// The sampler of this process.
pub struct Sampler {
    looks: Ring<(u64, Look), 1024>,
    watches: Ring<Watch, 4096>,
    /// Looks a second it would take, as the bits of a number; 0: none now.
    rate: AtomicU64,
    cpu_ns: AtomicU64,
    stall_ns: AtomicU64,
    /// What observing by other means takes of the budget.
    beside_ns: AtomicU64,
    /// What a thread waits for its page beside what the sampler's thread sees of it.
    waking_ns: AtomicU64,
    /// The program runs, rather than sleeps.
    busy: AtomicBool,
    /// Looks that were wanted and came to nothing.
    passed: AtomicU64,
    ended: AtomicU64,
    touched: AtomicU64,
    holds: Holds,
    /// The process whose thread runs; 0: none does. Children of vfork, and of forks unseen, find another's.
    process: AtomicU32,
    started: AtomicBool,
    budget: AtomicU64,
    seed: AtomicU64,
    longest_ns: AtomicU64,
    /// What the thread uses. Leaked; a child frees its copies.
    event: AtomicPtr<Event>,
    fd: AtomicPtr<WatchFd>,
}

static SAMPLER: Sampler = Sampler {
    looks: Ring::new(),
    watches: Ring::new(),
    rate: AtomicU64::new(0),
    cpu_ns: AtomicU64::new(0),
    stall_ns: AtomicU64::new(0),
    beside_ns: AtomicU64::new(0),
    waking_ns: AtomicU64::new(waking::AT_FIRST_NS),
    busy: AtomicBool::new(true),
    passed: AtomicU64::new(0),
    ended: AtomicU64::new(0),
    touched: AtomicU64::new(0),
    holds: Holds::new(),
    process: AtomicU32::new(0),
    started: AtomicBool::new(false),
    budget: AtomicU64::new(0),
    seed: AtomicU64::new(0),
    longest_ns: AtomicU64::new(0),
    event: AtomicPtr::new(null_mut()),
    fd: AtomicPtr::new(null_mut()),
};

impl Sampler {
    /// Starts the thread. Fails where userfaultfd is denied or serves only accesses in user mode (system calls on a page that is
    /// looked at would fail), where the kernel cannot move pages (before Linux 6.8), and when it runs already (EEXIST).
    pub fn start(options: Options) -> Result<&'static Self, Errno> {
        let sampler = &SAMPLER;
        if sampler.started.swap(true, Ordering::AcqRel) {
            return Err(Errno::EEXIST);
        }
        sampler.budget.store(options.budget.to_bits(), Ordering::Relaxed);
        sampler.seed.store(options.seed, Ordering::Relaxed);
        sampler.longest_ns.store(options.longest.as_nanos() as u64, Ordering::Relaxed);
        let result = sampler.begin();
        if result.is_err() {
            sampler.started.store(false, Ordering::Release);
        }
        result.map(|()| sampler)
    }

    fn begin(&'static self) -> Result<(), Errno> {
        let fd = WatchFd::open()?;
        let event = Event::new()?;
        let old_fd = self.fd.swap(Box::into_raw(Box::new(fd)), Ordering::AcqRel);
        let old_event = self.event.swap(Box::into_raw(Box::new(event)), Ordering::AcqRel);
        // SAFETY: null, or from a box that only a thread of the parent used, of which there is no copy here.
        unsafe {
            drop((!old_fd.is_null()).then(|| Box::from_raw(old_fd)));
            drop((!old_event.is_null()).then(|| Box::from_raw(old_event)));
        }
        watcher::spawn(self)?;
        // Nothing is offered before that.
        self.process.store(process::pid(), Ordering::Release);
        Ok(())
    }

    /// Observing by other means has taken so much more CPU time, which looks must leave of the budget.
    pub fn spent_beside(&self, ns: u64) {
        self.beside_ns.fetch_add(ns, Ordering::Relaxed);
    }

    fn options(&self) -> Options {
        Options {
            budget: f64::from_bits(self.budget.load(Ordering::Relaxed)),
            seed: self.seed.load(Ordering::Relaxed),
            longest: Duration::from_nanos(self.longest_ns.load(Ordering::Relaxed)),
        }
    }

    fn wake_thread(&self) {
        // SAFETY: null, or a box that is freed only in a child that has no other threads yet.
        if let Some(event) = unsafe { self.event.load(Ordering::Acquire).as_ref() } {
            event.signal();
        }
    }

    fn runs(&self) -> bool {
        self.process.load(Ordering::Acquire) == process::pid()
    }

    /// How many looks a second it would take; 0 while it takes none. Several at a time are cheaper than one by one: what the kernel
    /// does for the first is in the processor's caches for the others.
    pub fn rate(&self) -> f64 {
        let waiting = self.looks.len();
        if waiting > 0 { 0.0 } else { f64::from_bits(self.rate.load(Ordering::Relaxed)) }
    }

    /// Gives it a page to look at; false when it has enough. Looks begin with the next [`begin_looks`](Self::begin_looks).
    pub fn offer(&self, look: Look) -> bool {
        self.looks.push((now_ns(), look))
    }

    /// So many looks came to nothing, since what was drawn does not live now.
    pub fn passed(&self, count: u64) {
        self.passed.fetch_add(count, Ordering::Relaxed);
    }

    /// Has the offered pages looked at now.
    pub fn begin_looks(&self) {
        if self.runs() && !self.looks.is_empty() {
            self.wake_thread();
        }
    }

    /// The next result.
    pub fn take(&self) -> Option<Watch> {
        self.watches.pop()
    }

    /// What it has cost so far.
    pub fn cost(&self) -> SamplerCost {
        SamplerCost {
            cpu_ns: self.cpu_ns.load(Ordering::Relaxed),
            stall_ns: self.stall_ns.load(Ordering::Relaxed),
            watches: self.ended.load(Ordering::Relaxed),
            touched: self.touched.load(Ordering::Relaxed),
        }
    }

    /// Puts all pages back into view, waits until that is so, and looks at none until [`resume`](Self::resume) was called as often.
    pub fn pause(&self) {
        self.holds.pause();
        if self.runs() {
            self.wake_thread();
            self.holds.wait_until_quiet();
        }
    }

    /// Ends `pause`.
    pub fn resume(&self) {
        self.holds.resume();
    }

    /// As `pause`, for the pages of a range, until what is returned is dropped: around mremap(2), which refuses ranges with a page
    /// that is looked at.
    pub fn hold(&self, start: usize, len: usize) -> Hold<'_> {
        let place = self.holds.claim(start, len);
        match place {
            Some(place) if self.runs() => {
                self.wake_thread();
                self.holds.wait_for(place);
            }
            Some(_) => {}
            None => self.pause(),
        }
        Hold { sampler: self, place }
    }

    /// Before fork. In a child that is forked without this nothing is lost where the sampler is told of forks (CAP_SYS_PTRACE);
    /// elsewhere it does not have the pages that are looked at, and a touch stops it (SIGSEGV).
    pub fn fork_prepare(&self) {
        self.pause();
    }

    /// After fork, in the parent.
    pub fn fork_parent(&self) {
        self.resume();
    }

    /// After fork, in the child: starts anew, for the child's own memory. An error: nothing is looked at in the child.
    pub fn fork_child(&'static self) -> Result<(), Errno> {
        if !self.started.load(Ordering::Acquire) {
            return Ok(());
        }
        self.process.store(0, Ordering::Release);
        self.looks.reset();
        self.watches.reset();
        self.rate.store(0, Ordering::Relaxed);
        for count in [&self.cpu_ns, &self.stall_ns, &self.beside_ns, &self.ended, &self.touched] {
            count.store(0, Ordering::Relaxed);
        }
        self.holds.reset();
        watcher::forget_parent();
        self.begin()
    }
}

/// A range in which no page is looked at while this lives.
#[must_use]
pub struct Hold<'a> {
    sampler: &'a Sampler,
    /// `None`: everything is paused.
    place: Option<usize>,
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        match self.place {
            Some(place) => self.sampler.holds.release(place),
            None => self.sampler.resume(),
        }
    }
}
