//! What a thread waits that touches a page which is looked at, beside what we see of it: until the kernel has woken us, and until it has
//! woken the thread again. A few microseconds on a machine of its own; in a virtual one, where an idle processor is woken through the
//! hypervisor, most of it all. So it is measured.

use super::{Look, Sampler};
use nearfar_core::addr::{Extent, PAGE};
use nearfar_sys::event::now_ns;
use nearfar_sys::map::{self, RW};
use nearfar_sys::pm_qos::LatencyRequest;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Taken until it is known.
pub const AT_FIRST_NS: u64 = 10_000;
/// Touches that are timed, and how often that is tried.
const TOUCHES: usize = 12;
const TRIES: usize = 40;
/// More is another program's doing.
const MOST_NS: u64 = 300_000;
/// Time for a page to be taken, and for the count after it.
const PAUSE: Duration = Duration::from_micros(600);

/// CPUs that are kept from sleep while the program computes, in a guest whose CPUs halt when they are idle: the hypervisor takes longer to
/// wake one than all else that a look costs. (Elsewhere it would take from the program: CPUs that do not sleep deeply leave less
/// power to those that compute.)
pub struct Wakeful {
    request: LatencyRequest,
}

impl Wakeful {
    /// Asks for it while the program runs; otherwise CPUs may sleep. Waits are counted then as if they did not: few looks are made.
    pub fn follow(&mut self, sampler: &Sampler) {
        self.request.set(sampler.busy.load(Ordering::Relaxed));
    }

    /// The same for the child of a fork, with a request of its own; what its parent measured holds.
    pub fn anew(&self) -> Option<Self> {
        Some(Self { request: LatencyRequest::open().ok()? })
    }
}

impl Sampler {
    /// Measures it, with CPUs kept from sleep where that is worth it and the user `may`.
    pub fn settle_waking(&self, may: bool) -> Option<Wakeful> {
        let mut request = if may { LatencyRequest::open().ok().filter(LatencyRequest::is_of_a_guest) } else { None };
        if let Some(request) = &mut request {
            request.set(true);
        }
        self.measure_waking();
        request.map(|request| Wakeful { request })
    }

    /// Touches some pages of its own that are looked at, and compares what that took with what was counted. Called by the thread that offers
    /// looks; takes 15 to 50 ms. Results for object `u64::MAX` may come of it.
    fn measure_waking(&self) {
        // SAFETY: not fixed: the kernel picks free space.
        let mapped = unsafe { map::mmap(0, TRIES * PAGE, RW, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0) };
        let Ok(start) = mapped else { return };
        let range = Extent::new(start, TRIES * PAGE);
        // Each page is a word's worth; as long as one is away, the write waits like the program's.
        // SAFETY: within the mapping above, which nobody else knows of.
        let touch = |page: usize| unsafe { ((start + page * PAGE) as *mut u64).write_volatile(1) };
        (0..TRIES).for_each(touch);
        let counted = || self.stall_ns.load(Ordering::Relaxed);
        let mut beside = Vec::with_capacity(TOUCHES);
        for page in 0..TRIES {
            if beside.len() == TOUCHES {
                break;
            }
            self.offer(Look { object: u64::MAX, page: start + page * PAGE, huge: false, fine: 0 });
            self.begin_looks();
            std::thread::sleep(PAUSE);
            let (stalled, ended, begun) = (counted(), self.ended.load(Ordering::Relaxed), now_ns());
            touch(page);
            let took = now_ns() - begun;
            // It is counted when the next messages are read at the latest.
            std::thread::sleep(PAUSE);
            let seen = counted() - stalled;
            if seen > 0 || self.ended.load(Ordering::Relaxed) != ended {
                let waking = self.waking_ns.load(Ordering::Relaxed);
                beside.push((took + waking).saturating_sub(seen));
            }
        }
        beside.sort_unstable();
        if let Some(&middle) = beside.get(beside.len() / 2).filter(|_| beside.len() >= TOUCHES / 2) {
            self.waking_ns.store(middle.min(MOST_NS), Ordering::Relaxed);
        }
        // SAFETY: mapped above; nothing points there any more.
        let _ = unsafe { map::munmap(range) };
    }
}
