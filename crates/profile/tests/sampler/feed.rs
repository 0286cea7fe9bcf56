//! Offers random pages of what the scenarios name, all the time, and counts what comes back.

use nearfar_core::addr::{BLOCK, Extent, PAGE};
use nearfar_core::profile::record::WatchEnd;
use nearfar_core::random_numbers::Random;
use nearfar_profile::sampler::{Look, Sampler};
use nearfar_sys::proc_maps;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Ends of looks so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub read: u64,
    pub write: u64,
    pub nobody: u64,
    pub absent: u64,
    pub lost: u64,
    /// Of the touched: known instruction; visit looked at for writes, and seen to write; huge.
    pub with_ip: u64,
    pub followed: u64,
    pub wrote: u64,
    pub huge: u64,
    /// Of huge ones: visit looked at for writes, and seen to write.
    pub huge_followed: u64,
    pub huge_wrote: u64,
}

impl Counts {
    pub fn since(self, before: Self) -> Self {
        Self {
            read: self.read - before.read,
            write: self.write - before.write,
            nobody: self.nobody - before.nobody,
            absent: self.absent - before.absent,
            lost: self.lost - before.lost,
            with_ip: self.with_ip - before.with_ip,
            followed: self.followed - before.followed,
            wrote: self.wrote - before.wrote,
            huge: self.huge - before.huge,
            huge_followed: self.huge_followed - before.huge_followed,
            huge_wrote: self.huge_wrote - before.huge_wrote,
        }
    }
}

/// What is looked at.
#[derive(Default)]
struct Shared {
    ranges: Mutex<Vec<Extent>>,
    counts: Mutex<Counts>,
    everything: AtomicBool,
    rounds: AtomicU64,
}

pub struct Feed {
    pub sampler: &'static Sampler,
    pub time: Duration,
    shared: Arc<Shared>,
}

impl Feed {
    pub fn start(sampler: &'static Sampler, time: Duration) -> Self {
        let shared = Arc::new(Shared::default());
        let theirs = shared.clone();
        std::thread::spawn(move || work(sampler, &theirs));
        Self { sampler, time, shared }
    }

    /// Looks at `range` from now on.
    pub fn add(&self, range: Extent) {
        self.shared.ranges.lock().expect("as planned").push(range);
    }

    /// Looks at all writable private memory of the process.
    pub fn add_everything(&self) {
        self.shared.everything.store(true, Ordering::Relaxed);
    }

    pub fn clear(&self) {
        self.shared.everything.store(false, Ordering::Relaxed);
        self.shared.ranges.lock().expect("as planned").clear();
        // What was offered before is not looked at any more after that.
        let round = self.shared.rounds.load(Ordering::Relaxed);
        while self.shared.rounds.load(Ordering::Relaxed) < round + 2 {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(160));
        self.sampler.pause();
        self.sampler.resume();
    }

    pub fn counts(&self) -> Counts {
        *self.shared.counts.lock().expect("as planned")
    }

    /// Repeats `act` for the time of a scenario.
    pub fn repeat(&self, mut act: impl FnMut(u64)) {
        let end = Instant::now() + self.time;
        let mut round = 0;
        while Instant::now() < end {
            act(round);
            round += 1;
        }
    }
}

fn work(sampler: &Sampler, shared: &Shared) {
    let mut random = Random::new(4);
    let mut owed = 0.0;
    loop {
        let everything = shared.everything.load(Ordering::Relaxed);
        let ranges = if everything { own_memory() } else { shared.ranges.lock().expect("as planned").clone() };
        owed = (owed + sampler.rate() * 0.005).min(200.0);
        let wanted = if ranges.is_empty() { 0 } else { owed as usize };
        owed = owed.fract();
        for _ in 0..wanted {
            let range = ranges[random.below(ranges.len() as u64) as usize];
            let page = range.start + random.below((range.len() / PAGE) as u64) as usize * PAGE;
            let block = page & !(BLOCK - 1);
            let huge = range.contains_extent(Extent::new(block, BLOCK));
            let fine = if range.len() >= 16 * BLOCK { range.end - BLOCK + (page & (BLOCK - 1)) } else { 0 };
            sampler.offer(Look { object: 7, page, huge, fine: fine & !(PAGE - 1) });
        }
        sampler.begin_looks();
        let mut counts = *shared.counts.lock().expect("as planned");
        while let Some(watch) = sampler.take() {
            assert_eq!(watch.object, 7);
            *match watch.end {
                WatchEnd::Read => &mut counts.read,
                WatchEnd::Write => &mut counts.write,
                WatchEnd::Nobody => &mut counts.nobody,
                WatchEnd::Absent => &mut counts.absent,
                WatchEnd::Lost => &mut counts.lost,
            } += 1;
            if matches!(watch.end, WatchEnd::Read | WatchEnd::Write) {
                assert!(watch.touched - watch.page < u64::from(watch.pages) * PAGE as u64, "{watch:x?}");
                assert!(watch.tid != 0 && watch.waited < 60_000_000_000, "{watch:?}");
            }
            counts.with_ip += u64::from(watch.ip != 0);
            counts.followed += u64::from(watch.end == WatchEnd::Read && watch.wrote.is_some());
            counts.wrote += u64::from(watch.end == WatchEnd::Read && watch.wrote == Some(true));
            let huge = watch.pages > 1;
            counts.huge += u64::from(huge);
            counts.huge_followed += u64::from(huge && watch.end == WatchEnd::Read && watch.wrote.is_some());
            counts.huge_wrote += u64::from(huge && watch.end == WatchEnd::Read && watch.wrote == Some(true));
        }
        *shared.counts.lock().expect("as planned") = counts;
        shared.rounds.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn own_memory() -> Vec<Extent> {
    let maps = proc_maps::own().into_iter();
    maps.filter(|map| map.prot & libc::PROT_WRITE != 0 && !map.shared).map(|map| map.range).collect()
}
