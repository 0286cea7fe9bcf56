//! How much of a running job's memory lies on near and on far nodes, looked at from outside while it runs.
//!
//! Reading /proc/PID/numa_maps walks page tables, under a lock that the process's own mmap and munmap wait for meanwhile: some 5 ms per
//! GiB of small pages, seconds for the largest processes. It is therefore done on a thread of its own, only when the job has grown (which
//! is cheap to tell), and the more seldom the longer it takes: 1 % of the time, or up to 10 % while the job grows by half
//! between two looks, so that the peak of a job that has just become large is seen. What lives shorter than that is missed, and
//! pages that processes share count once for each. Text of programs and other pages of files that nobody changed are not
//! the job's memory and do not count.

use crate::interval::Interval;
use nearfar_core::placement::NodeSet;
use nearfar_sys::numa_maps::parse_numa_line;
use nearfar_sys::proc_tasks;
use nearfar_sys::root::Root;
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Longest numa_maps that is read.
const MOST_BYTES: u64 = 64 << 20;
/// Processes that are looked at.
const MOST_PROCESSES: usize = 1024;
/// What a page costs more than at the last look.
const PAGE_S: f64 = 20e-9;
/// A look that takes a second is taken after so many, and after so many where the job has grown by half.
const APART: (f64, f64) = (100.0, 10.0);

/// Bytes by tier at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Resident {
    /// On near nodes.
    #[serde(rename = "near_bytes")]
    pub near: u64,
    /// On far nodes.
    #[serde(rename = "far_bytes")]
    pub far: u64,
    /// On nodes that are neither.
    #[serde(rename = "other_bytes")]
    pub other: u64,
}

impl Resident {
    /// All of it.
    pub const fn total(&self) -> u64 {
        self.near + self.far + self.other
    }
}

/// What was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Residence {
    /// How often it was looked.
    pub looks: u32,
    /// At the look that saw most memory.
    pub peak: Resident,
    /// Most on near nodes at any look.
    pub near_peak_bytes: u64,
}

/// Looks at a process and all that it starts.
pub struct Observer {
    root: Root,
    page: u64,
    near: NodeSet,
    far: NodeSet,
    pids: BTreeSet<u32>,
    begin: Instant,
    interval: Interval,
    /// Resident pages, files included, at the look that saw most.
    most_pages: u64,
    /// When the last look at areas was over, and what it took.
    looked_s: f64,
    took_s: f64,
    seen: Residence,
}

/// An observer at work on its own thread.
pub struct Observing {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    stop: bool,
    stopped: bool,
    seen: Residence,
}

impl Observing {
    /// What was seen. Does not wait for a look at a large process that is still being taken.
    pub fn stop(self) -> Residence {
        const MOST: Duration = Duration::from_millis(200);
        let mut state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.stop = true;
        self.shared.changed.notify_all();
        let waited = self.shared.changed.wait_timeout_while(state, MOST, |state| !state.stopped);
        waited.unwrap_or_else(PoisonError::into_inner).0.seen.clone()
    }
}

impl Observer {
    /// Begins to look at process `leader`.
    pub fn new(root: Root, leader: u32, near: NodeSet, far: NodeSet) -> Self {
        let (page, pids) = (proc_tasks::page_bytes(), [leader].into_iter().collect());
        Self {
            root,
            page,
            near,
            far,
            pids,
            begin: Instant::now(),
            interval: Interval::of_residence(),
            most_pages: 0,
            looked_s: 0.0,
            took_s: 0.0,
            seen: Residence::default(),
        }
    }

    /// Goes on looking on a thread of its own. Without one (no more threads are allowed) nothing is seen.
    pub fn start(mut self) -> Observing {
        let shared = Arc::new(Shared::default());
        let of_thread = Arc::clone(&shared);
        let work = move || {
            let lock = || of_thread.state.lock().unwrap_or_else(PoisonError::into_inner);
            let mut state = lock();
            while !state.stop {
                drop(state);
                self.look();
                state = lock();
                state.seen = self.seen.clone();
                let waited = of_thread.changed.wait_timeout_while(state, self.left(), |state| !state.stop);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
            state.stopped = true;
            of_thread.changed.notify_all();
        };
        if std::thread::Builder::new().name("residence".to_owned()).spawn(work).is_err() {
            shared.state.lock().unwrap_or_else(PoisonError::into_inner).stopped = true;
        }
        Observing { shared }
    }

    /// Time until the next look is due.
    fn left(&self) -> Duration {
        self.interval.left(self.begin.elapsed().as_secs_f64())
    }

    /// Looks, if it is time.
    fn look(&mut self) {
        let now = self.begin.elapsed().as_secs_f64();
        if !self.interval.is_due(now) {
            return;
        }
        let before = self.cost();
        let root = &self.root;
        self.pids.retain(|&pid| resident_pages(root, pid).is_some());
        let most = MOST_PROCESSES.saturating_sub(self.pids.len());
        self.pids.extend(proc_tasks::descendants(root, self.pids.iter().copied(), most, || false));
        let mut pages = 0;
        // Those that have ended are forgotten.
        self.pids.retain(|&pid| resident_pages(root, pid).inspect(|of_process| pages += of_process).is_some());
        let spent = self.cost() - before;
        self.interval.taken(now, spent);
        if has_grown(pages, self.most_pages) && now - self.looked_s >= apart_s(pages, self.most_pages, self.took_s) {
            self.most_pages = pages;
            self.look_at_areas();
            self.looked_s = self.begin.elapsed().as_secs_f64();
            // Time, not CPU time: it is for how long the lock may be held.
            self.took_s = self.looked_s - now;
        }
    }

    fn look_at_areas(&mut self) {
        let mut sum = Resident::default();
        for &pid in &self.pids {
            let Ok(text) = self.root.read(&format!("/proc/{pid}/numa_maps"), MOST_BYTES) else { continue };
            self.add(&String::from_utf8_lossy(&text), &mut sum);
        }
        if sum.total() > 0 {
            self.seen.looks += 1;
        }
        if sum.total() >= self.seen.peak.total() {
            self.seen.peak = sum;
        }
        self.seen.near_peak_bytes = self.seen.near_peak_bytes.max(sum.near);
    }

    /// Seconds of CPU time of this thread so far, or of wall time where the kernel does not count.
    fn cost(&self) -> f64 {
        proc_tasks::own_thread_cpu_ns(&self.root).map_or_else(|| self.begin.elapsed().as_secs_f64(), |ns| ns as f64 / 1e9)
    }

    fn add(&self, numa_maps: &str, sum: &mut Resident) {
        for line in numa_maps.lines() {
            let Some(area) = parse_numa_line(line, self.page) else { continue };
            let total: u64 = area.nodes.iter().map(|(_, bytes)| bytes).sum();
            let own = if line.contains(" file=") { self.anonymous(line).min(total) } else { total };
            for (node, bytes) in area.nodes {
                // Which node the changed pages of a file lie on is not said; most areas have all or none.
                let bytes = (u128::from(bytes) * u128::from(own) / u128::from(total.max(1))) as u64;
                match node {
                    _ if self.near.contains(node) => sum.near += bytes,
                    _ if self.far.contains(node) => sum.far += bytes,
                    _ => sum.other += bytes,
                }
            }
        }
    }

    /// Bytes of a line's pages that are the process's own.
    fn anonymous(&self, line: &str) -> u64 {
        let number = |name: &str| line.split_ascii_whitespace().find_map(|word| word.strip_prefix(name)?.parse::<u64>().ok());
        let page = number("kernelpagesize_kB=").map_or(self.page, |kib| kib * 1024);
        number("anon=").unwrap_or(0).saturating_mul(page)
    }
}

fn resident_pages(root: &Root, pid: u32) -> Option<u64> {
    root.text(&format!("/proc/{pid}/statm"))?.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Growth by less than a thirty-second is not worth a look.
const fn has_grown(pages: u64, most: u64) -> bool {
    pages > 0 && pages >= most + most / 32
}

/// Time that must pass before a look at `pages` when the last one saw `most` and took `took_s`.
fn apart_s(pages: u64, most: u64, took_s: f64) -> f64 {
    let expected_s = took_s + pages.saturating_sub(most) as f64 * PAGE_S;
    expected_s * if pages >= most + most / 2 { APART.1 } else { APART.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_at_large_jobs_are_far_apart() {
        // 500 GiB of small pages, 2.6 s: soon when they are new, seldom later.
        let pages = 500 << 18;
        assert!((20.0..30.0).contains(&apart_s(pages, 0, 0.0)));
        assert!((200.0..300.0).contains(&apart_s(pages, pages - pages / 31, 2.5)));
        assert!(apart_s(64 << 8, 16 << 8, 0.001) < 0.05, "64 MiB");
    }

    #[test]
    fn it_works_on_a_thread_of_its_own_and_ends_at_once() {
        let (near, far) = ([900].into_iter().collect(), (0..64).collect());
        let observing = Observer::new(Root::this(), std::process::id(), near, far).start();
        std::thread::sleep(Duration::from_millis(300));
        let begin = Instant::now();
        let seen = observing.stop();
        assert!(begin.elapsed() < Duration::from_secs(2));
        assert_eq!(seen.near_peak_bytes, 0);
        assert!(seen.peak.far > 0 || !std::path::Path::new("/proc/self/numa_maps").exists(), "{seen:?}");
    }

    const NUMA: &str = " 55f0 default file=/bin/my\\040prog mapped=3 mapmax=7 N0=3 kernelpagesize_kB=4\n \
                         55f8 default file=/bin/my\\040prog anon=1 dirty=1 mapped=2 N0=1 N1=1 kernelpagesize_kB=4\n \
                         7f00 prefer:1 anon=100 dirty=100 N0=20 N1=80 kernelpagesize_kB=4\n \
                         7f10 bind:2 huge anon=1 dirty=1 N2=1 kernelpagesize_kB=2048\n";

    fn observer(text: &str) -> Observer {
        let set = |node: u32| [node].into_iter().collect();
        Observer::new(Root::captured(text).expect("a capture"), 9, set(1), set(0))
    }

    #[test]
    fn pages_count_by_tier() {
        let status = "=== /proc/9/task/9/children\n 10\n=== /proc/10/task/10/children\n \n";
        let statm = "=== /proc/9/statm\n 900 800 3\n=== /proc/10/statm\n 0 0 0\n";
        let mut observer = observer(&format!("{status}{statm}=== /proc/9/numa_maps\n{NUMA}=== /proc/10/numa_maps\n{NUMA}"));
        std::thread::sleep(observer.left());
        observer.look();
        let seen = observer.seen;
        // A half of each page of the second line is changed, as far as can be told.
        let one = Resident { near: (80 << 12) + 2048, far: (20 << 12) + 2048, other: 2 << 20 };
        let twice = Resident { near: 2 * one.near, far: 2 * one.far, other: 2 * one.other };
        assert_eq!(seen, Residence { looks: 1, peak: twice, near_peak_bytes: twice.near });
    }

    #[test]
    fn a_process_that_is_gone_is_nothing() {
        let mut observer = observer("");
        std::thread::sleep(observer.left());
        observer.look();
        assert_eq!(observer.seen, Residence::default());
    }
}
