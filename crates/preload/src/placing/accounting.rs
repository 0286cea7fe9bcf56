//! The books of near: how much of it this process's placed objects have, and whether there is room for more.
//!
//! A thread that asks takes from what was granted to the process already, which is one addition; more is asked for in steps. Large
//! objects are granted to the page. What is granted is judged by `Limits`: nothing, the nodes themselves, or the job's budget.

use super::nodes::NodeCapacity;
use crate::managed::Managed;
use nearfar_core::addr::PAGE;
use nearfar_core::stats::Counter;
use nearfar_sys::event::wait_readable;
use nearfar_sys::thread;
use nearfar_tiers::job::Slot;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

/// From this size on objects are granted exactly.
const LARGE: u64 = 64 << 10;
/// Small ones share grants of this size.
const STEP: u64 = 1 << 20;
/// What is granted and not used beyond this goes back.
const SPARE: u64 = 2 * STEP;

/// Who says whether there is room.
pub enum Limits {
    /// Nobody: near takes what the kernel puts there, the rest goes to far.
    None,
    /// The nodes of near, and the user's limit.
    Nodes(NodeCapacity),
    /// The job's budget of near memory, of which placed objects may have so many pages.
    Budget(&'static Managed, u64),
}

impl Limits {
    fn grant(&self, slot: Option<&Slot>, pages: u64) -> bool {
        match self {
            Self::None => true,
            Self::Nodes(nodes) => slot.is_none_or(|slot| nodes.grant(slot, pages)),
            Self::Budget(managed, most) => managed.with(|memory| memory.charge_placed(pages, *most)),
        }
    }

    fn give_back(&self, slot: Option<&Slot>, pages: u64) {
        match self {
            Self::None => {}
            Self::Nodes(nodes) => {
                if let Some(slot) = slot {
                    nodes.give_back(slot, pages);
                }
            }
            Self::Budget(managed, _) => managed.with(|memory| memory.uncharge_placed(pages)),
        }
    }
}

/// What a heap block of `bytes` counts: small ones share pages with free space and with the heap's own tables. One of no bytes takes
/// memory too.
pub const fn of_block(bytes: usize) -> u64 {
    let bytes = if bytes == 0 { 1 } else { bytes as u64 };
    if bytes < LARGE { bytes + bytes / 8 } else { bytes }
}

/// The books of one process.
pub struct Room {
    limits: Limits,
    live: AtomicU64,
    granted: AtomicU64,
    peak: AtomicU64,
    // One thread at a time asks for a grant. No mutex: it must be possible to let go of it in the child of a fork.
    asking: AtomicBool,
    slot: AtomicPtr<Slot>,
}

impl Room {
    /// Empty books.
    pub fn new(limits: Limits, slot: Option<&'static Slot>) -> Self {
        Self {
            limits,
            live: AtomicU64::new(0),
            granted: AtomicU64::new(0),
            peak: AtomicU64::new(0),
            asking: AtomicBool::new(false),
            slot: AtomicPtr::new(slot.map_or(null_mut(), |slot| std::ptr::from_ref(slot).cast_mut())),
        }
    }

    fn slot(&self) -> Option<&'static Slot> {
        // SAFETY: null or a slot of the job segment, which stays mapped for the life of the process.
        unsafe { self.slot.load(Ordering::Relaxed).as_ref() }
    }

    /// Adds to a counter of this process.
    pub fn count(&self, counter: Counter, n: u64) {
        if let Some(slot) = self.slot() {
            slot.add(counter, n);
        }
    }

    /// True when there may be no room.
    pub fn is_limited(&self) -> bool {
        !matches!(self.limits, Limits::None)
    }

    /// True when what is given out is compared with what the nodes have.
    pub fn is_checked(&self) -> bool {
        matches!(&self.limits, Limits::Nodes(nodes) if nodes.is_checked())
    }

    /// Bytes that live now.
    pub fn live(&self) -> u64 {
        self.live.load(Ordering::Relaxed)
    }

    /// Bytes that placed objects may have in all, as far as that is known.
    pub fn most(&self) -> u64 {
        match &self.limits {
            Limits::None => u64::MAX,
            Limits::Nodes(nodes) => nodes.most(),
            Limits::Budget(_, pages) => pages * PAGE as u64,
        }
    }

    /// Bytes of near that are free for placed objects now; `None` where nobody counts.
    pub fn left(&self) -> Option<u64> {
        match &self.limits {
            Limits::None => None,
            Limits::Nodes(nodes) => Some(nodes.left()),
            Limits::Budget(_, pages) => Some((pages * PAGE as u64).saturating_sub(self.granted.load(Ordering::Relaxed))),
        }
    }

    /// Takes room for an object of `bytes`; false when there is none.
    pub fn take(&self, bytes: u64) -> bool {
        if !self.is_limited() {
            self.note_peak(self.live.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes));
            return true;
        }
        let taken = self.take_granted(bytes).or_else(|| self.take_slowly(bytes));
        if let Some(live) = taken {
            self.note_peak(live);
        }
        taken.is_some()
    }

    /// Takes what was granted already; what lives then. Others see only what was taken, never what somebody would like to have.
    fn take_granted(&self, bytes: u64) -> Option<u64> {
        let fits = |live: u64| live.checked_add(bytes).filter(|&sum| sum <= self.granted.load(Ordering::SeqCst));
        let live = self.live.fetch_update(Ordering::SeqCst, Ordering::Relaxed, fits).ok()? + bytes;
        if live <= self.granted.load(Ordering::SeqCst) {
            return Some(live);
        }
        // It was given back meanwhile.
        self.live.fetch_sub(bytes, Ordering::SeqCst);
        None
    }

    /// Notes that an object for which room for `taken` bytes was taken has `real` ones.
    pub fn correct(&self, taken: u64, real: u64) {
        // Wraps for fewer.
        self.live.fetch_add(real.wrapping_sub(taken), Ordering::SeqCst);
    }

    fn note_peak(&self, live: u64) {
        if live > self.peak.load(Ordering::Relaxed) {
            self.peak.store(live, Ordering::Relaxed);
            if let Some(slot) = self.slot() {
                slot.raise(Counter::PlacedPeak, live);
            }
        }
    }

    #[cold]
    fn take_slowly(&self, bytes: u64) -> Option<u64> {
        let _asking = Asking::begin(&self.asking);
        if let Some(live) = self.take_granted(bytes) {
            return Some(live);
        }
        let wanting = self.live().checked_add(bytes)?.saturating_sub(self.granted.load(Ordering::SeqCst)).div_ceil(PAGE as u64);
        let pages = self.ask(wanting, if bytes < LARGE { STEP / PAGE as u64 } else { 0 })?;
        // In this order: nobody else takes what was granted for these bytes.
        let live = self.live.fetch_add(bytes, Ordering::SeqCst) + bytes;
        let granted = self.granted.fetch_add(pages * PAGE as u64, Ordering::SeqCst) + pages * PAGE as u64;
        // Others may have taken the rest of the last grant meanwhile.
        let missing = live.saturating_sub(granted).div_ceil(PAGE as u64);
        if missing > 0 {
            if !self.limits.grant(self.slot(), missing) {
                self.live.fetch_sub(bytes, Ordering::SeqCst);
                return None;
            }
            self.granted.fetch_add(missing * PAGE as u64, Ordering::SeqCst);
        }
        Some(live)
    }

    /// Asks for `pages` and `step` more, or for `pages` alone; how many were granted.
    fn ask(&self, pages: u64, step: u64) -> Option<u64> {
        if step > 0 && self.limits.grant(self.slot(), pages + step) {
            return Some(pages + step);
        }
        self.limits.grant(self.slot(), pages).then_some(pages)
    }

    /// Gives the room of an object back. Inside nearfar, in handlers of a fork, only the books change; what is spare goes back later.
    pub fn give(&self, bytes: u64) {
        let before = self.live.fetch_sub(bytes, Ordering::Relaxed);
        if self.is_limited()
            && self.granted.load(Ordering::Relaxed) > before.saturating_sub(bytes) + SPARE
            && !thread::is_inside()
        {
            self.give_back();
        }
    }

    #[cold]
    fn give_back(&self) {
        let Some(asking) = Asking::try_begin(&self.asking) else { return };
        let spare = self.granted.load(Ordering::Relaxed).saturating_sub(self.live() + STEP) / PAGE as u64;
        if spare > 0 {
            let granted = self.granted.fetch_sub(spare * PAGE as u64, Ordering::SeqCst) - spare * PAGE as u64;
            // Somebody may have taken of it since.
            let missing = self.live.load(Ordering::SeqCst).saturating_sub(granted).div_ceil(PAGE as u64).min(spare);
            self.granted.fetch_add(missing * PAGE as u64, Ordering::SeqCst);
            if spare > missing {
                self.limits.give_back(self.slot(), spare - missing);
            }
        }
        drop(asking);
    }

    /// Writes the gauges.
    pub fn publish(&self) {
        if let Some(slot) = self.slot() {
            slot.set(Counter::PlacedLive, self.live());
        }
    }

    /// In the child of a fork, which has `slot`: it has copies of all objects.
    pub fn after_fork(&self, slot: Option<&'static Slot>) {
        self.slot.store(slot.map_or(null_mut(), |slot| std::ptr::from_ref(slot).cast_mut()), Ordering::Relaxed);
        self.asking.store(false, Ordering::Relaxed);
        if let (Limits::Nodes(nodes), Some(slot)) = (&self.limits, slot) {
            nodes.after_fork(slot, self.granted.load(Ordering::Relaxed) / PAGE as u64);
        }
        self.publish();
    }
}

/// The turn of one thread.
struct Asking<'a>(&'a AtomicBool);

impl<'a> Asking<'a> {
    fn try_begin(flag: &'a AtomicBool) -> Option<Self> {
        (!flag.swap(true, Ordering::Acquire)).then_some(Self(flag))
    }

    fn begin(flag: &'a AtomicBool) -> Self {
        let mut tries = 0u32;
        loop {
            if let Some(asking) = Self::try_begin(flag) {
                return asking;
            }
            tries += 1;
            // A grant takes a microsecond, or as long as the pager needs to make room.
            if tries < 100 { thread::give_way() } else { wait_readable(&[], 1, &mut []) }
        }
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn books_without_limits() {
        let room = Room::new(Limits::None, None);
        assert!(room.take(5 << 20) && room.take(100));
        room.correct(100, 112);
        room.correct(112, 110);
        room.give(110);
        assert_eq!((room.live(), room.peak.load(Ordering::Relaxed), room.left()), (5 << 20, (5 << 20) + 100, None));
    }
}
