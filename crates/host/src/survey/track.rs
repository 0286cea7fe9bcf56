//! What must be remembered of a living process or thread from look to look, and the figures that follow from two looks.

use nearfar_core::affinity::Thread;
use nearfar_sys::proc_tasks::{Scheduled, Stat};
use std::collections::{HashMap, HashSet};

/// A process that lives.
pub struct LiveProcess {
    /// Its place in the survey.
    pub index: usize,
    /// When it was started: tells it from a later one with its number.
    pub start_ticks: u64,
    /// The file of the program that it runs.
    pub program: String,
    /// Its threads that are listed, by number.
    pub threads: HashMap<u32, LiveThread>,
    /// Its threads that are not.
    pub unlisted: HashSet<u32>,
    /// Stack pointers, as far as they were ever seen.
    pub stack_pointers: HashMap<u32, u64>,
}

impl LiveProcess {
    /// A process just found.
    pub fn new(index: usize, start_ticks: u64, program: String) -> Self {
        let (threads, unlisted, stack_pointers) = (HashMap::new(), HashSet::new(), HashMap::new());
        Self { index, start_ticks, program, threads, unlisted, stack_pointers }
    }

    /// True when thread `tid` was seen before.
    pub fn knows(&self, tid: u32) -> bool {
        self.threads.contains_key(&tid) || self.unlisted.contains(&tid)
    }
}

/// CPU time of a thread since its creation.
#[derive(Clone, Copy, Default)]
pub struct CpuTime {
    cpu_s: f64,
    waited_s: Option<f64>,
}

impl CpuTime {
    /// From what the kernel says; `ticks` are those per second.
    pub fn of(stat: &Stat, scheduled: Option<Scheduled>, ticks: f64) -> Self {
        Self {
            cpu_s: scheduled.map_or(stat.cpu_ticks as f64 / ticks, |times| times.run_ns as f64 / 1e9),
            waited_s: scheduled.map(|times| times.wait_ns as f64 / 1e9),
        }
    }
}

/// A thread that lives and is listed.
pub struct LiveThread {
    /// Its place in the process.
    pub index: usize,
    /// When it was created: tells it from a later one with its number.
    pub start_ticks: u64,
    /// Looks so far; set to 0 when its process becomes another program.
    pub looks: u32,
    /// What it had spent when the watch began.
    before: CpuTime,
    now: CpuTime,
    watched_from_s: f64,
}

impl LiveThread {
    /// A thread first seen at `now`, which was created at `born_s`, or before the watch with `spent` spent by now.
    pub fn new(index: usize, start_ticks: u64, born_s: Option<f64>, spent: CpuTime, now: f64) -> Self {
        let (before, watched_from_s) = match born_s {
            Some(born_s) => (CpuTime::default(), born_s.clamp(0.0, now)),
            None => (spent, now),
        };
        Self { index, start_ticks, looks: 0, before, now: before, watched_from_s }
    }

    /// Writes what a look at `now` gave into `thread`.
    pub fn update(&mut self, thread: &mut Thread, stat: &Stat, spent: CpuTime, now: f64) {
        let ran = self.looks == 0 || stat.state == 'R' || spent.cpu_s > self.now.cpu_s;
        if let (true, Some(cpu)) = (ran, stat.cpu) {
            thread.moves += u32::from(self.looks > 0 && thread.cpu.is_some_and(|before| before != cpu));
            match thread.seen.iter_mut().find(|(seen, _)| *seen == cpu) {
                Some((_, looks)) => *looks += 1,
                None => thread.seen.push((cpu, 1)),
            }
        }
        thread.cpu = stat.cpu.or(thread.cpu);
        thread.name.clone_from(&stat.name);
        thread.state = stat.state.to_string();
        thread.last_s = now;
        thread.watched_s = now - self.watched_from_s;
        thread.cpu_s = (spent.cpu_s - self.before.cpu_s).max(0.0);
        let waited_before = self.before.waited_s.unwrap_or(0.0);
        thread.waited_s = spent.waited_s.map(|waited| (waited - waited_before).max(0.0)).or(thread.waited_s);
        self.now = spent;
        self.looks += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_looks() {
        let stat = |cpu| Stat { state: 'S', cpu: Some(cpu), ..Stat::default() };
        let spent = |run_ns, wait_ns| CpuTime::of(&stat(0), Some(Scheduled { run_ns, wait_ns }), 100.0);
        let mut thread = Thread::default();
        let mut live = LiveThread::new(0, 7, None, spent(5_000_000_000, 1_000_000_000), 1.0);
        live.update(&mut thread, &stat(0), spent(5_000_000_000, 1_000_000_000), 1.0);
        assert_eq!((thread.cpu_s, thread.watched_s), (0.0, 0.0), "what was before does not count");
        live.update(&mut thread, &stat(3), spent(6_000_000_000, 1_500_000_000), 3.0);
        assert_eq!((thread.cpu_s, thread.waited_s, thread.watched_s, thread.moves), (1.0, Some(0.5), 2.0, 1));
        live.update(&mut thread, &stat(3), spent(6_000_000_000, 1_500_000_000), 4.0);
        assert_eq!(thread.seen, [(0, 1), (3, 1)], "a thread that has not run since was not seen on its CPU again");
        let mut young = LiveThread::new(0, 7, Some(2.0), spent(1_000_000_000, 0), 3.0);
        young.update(&mut thread, &stat(0), spent(1_000_000_000, 0), 3.0);
        assert_eq!((thread.cpu_s, thread.watched_s), (1.0, 1.0), "a thread of this watch counts from its creation");
    }
}
