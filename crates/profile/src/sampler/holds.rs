//! Requests of other threads that pages stay in view: all of them (`pause`), or those of a range. No lock: the one who asks may be
//! about to fork, and the sampler's thread must not wait.

use nearfar_core::addr::Extent;
use nearfar_sys::thread;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

const RANGES: usize = 8;
const FREE: u32 = 0;
const CLAIMED: u32 = 1;
const ASKED: u32 = 2;
const HELD: u32 = 3;

struct Range {
    state: AtomicU32,
    start: AtomicUsize,
    end: AtomicUsize,
}

/// All requests.
pub struct Holds {
    pausing: AtomicU32,
    /// The sampler looks at nothing, and will not begin before it has said that it does.
    quiet: AtomicBool,
    ranges: [Range; RANGES],
}

impl Holds {
    /// None; the sampler does not run yet.
    pub const fn new() -> Self {
        let ranges =
            [const { Range { state: AtomicU32::new(FREE), start: AtomicUsize::new(0), end: AtomicUsize::new(0) } }; RANGES];
        Self { pausing: AtomicU32::new(0), quiet: AtomicBool::new(true), ranges }
    }

    /// Asks that all pages be in view.
    pub fn pause(&self) {
        self.pausing.fetch_add(1, Ordering::SeqCst);
    }

    /// Waits until that is so.
    pub fn wait_until_quiet(&self) {
        wait(|| self.quiet.load(Ordering::SeqCst));
    }

    /// Ends `pause`.
    pub fn resume(&self) {
        self.pausing.fetch_sub(1, Ordering::SeqCst);
    }

    /// Asks for a range; `None` when too many others do.
    pub fn claim(&self, start: usize, len: usize) -> Option<usize> {
        let claim = |range: &Range| range.state.compare_exchange(FREE, CLAIMED, Ordering::SeqCst, Ordering::Relaxed).is_ok();
        let place = self.ranges.iter().position(claim)?;
        let range = &self.ranges[place];
        range.start.store(start, Ordering::Relaxed);
        range.end.store(start.saturating_add(len), Ordering::Relaxed);
        range.state.store(ASKED, Ordering::SeqCst);
        Some(place)
    }

    /// Waits until the range is in view.
    pub fn wait_for(&self, place: usize) {
        wait(|| self.ranges[place].state.load(Ordering::SeqCst) == HELD);
    }

    /// Ends `claim`.
    pub fn release(&self, place: usize) {
        self.ranges[place].state.store(FREE, Ordering::SeqCst);
    }

    /// In the child of a fork, where nobody else is.
    pub fn reset(&self) {
        self.pausing.store(0, Ordering::SeqCst);
        self.quiet.store(true, Ordering::SeqCst);
        self.ranges.iter().for_each(|range| range.state.store(FREE, Ordering::SeqCst));
    }

    /// For the sampler's thread: whether it may look at pages. Those who pause see that it does, or it sees them.
    pub fn may_look(&self) -> bool {
        self.quiet.store(false, Ordering::SeqCst);
        self.pausing.load(Ordering::SeqCst) == 0
    }

    /// For the sampler's thread: it looks at nothing.
    pub fn be_quiet(&self) {
        self.quiet.store(true, Ordering::SeqCst);
    }

    /// For the sampler's thread: a range that is asked for.
    pub fn asked(&self) -> Option<(usize, Extent)> {
        let place = self.ranges.iter().position(|range| range.state.load(Ordering::SeqCst) == ASKED)?;
        Some((place, self.extent(place)))
    }

    /// For the sampler's thread: the range is in view.
    pub fn grant(&self, place: usize) {
        self.ranges[place].state.store(HELD, Ordering::SeqCst);
    }

    /// For the sampler's thread: whether somebody wants `range` in view.
    pub fn covers(&self, range: Extent) -> bool {
        let wanted =
            |place: usize| self.ranges[place].state.load(Ordering::SeqCst) >= ASKED && self.extent(place).overlaps(&range);
        (0..RANGES).any(wanted)
    }

    fn extent(&self, place: usize) -> Extent {
        let range = &self.ranges[place];
        Extent { start: range.start.load(Ordering::Relaxed), end: range.end.load(Ordering::Relaxed) }
    }
}

fn wait(done: impl Fn() -> bool) {
    let mut times = 0u32;
    while !done() {
        times += 1;
        if times < 50 { thread::give_way() } else { sleep(Duration::from_micros(30)) }
    }
}

/// Sleeps, without what the C library makes a cancellation point.
pub fn sleep(time: Duration) {
    let time = libc::timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
    // SAFETY: reads a local.
    let _ = unsafe { nearfar_sys::errno::call(libc::SYS_nanosleep, [(&raw const time).addr(), 0, 0, 0, 0, 0]) };
}
