//! The sampler: looks at a process, all that it starts, and their threads, and adds up what is seen to a [`Survey`].
//!
//! Nothing is stopped or attached to. Threads that end before a look are not seen; of those that were seen, the last look counts. Processes
//! are found through their parents: one whose parent had ended before it was first looked at is missed.

mod crowd;
mod facts;
mod track;

use crate::interval::Interval;
use crowd::{Cores, Runner};
use nearfar_core::affinity::{Crowding, Pages, Process, Survey, Thread, classify, number_threads};
use nearfar_core::node::{CpuList, Topology};
use nearfar_sys::numa_maps;
use nearfar_sys::proc_cgroup;
use nearfar_sys::proc_tasks::{self, Stat};
use nearfar_sys::root::Root;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::{Duration, Instant};
use track::{CpuTime, LiveProcess, LiveThread};

/// Threads that are listed one by one; of more, only the number is kept.
const MOST_THREADS: usize = 4096;
/// Processes that are looked at.
const MOST_PROCESSES: usize = 1024;
/// Stack pointers that are asked for, per process.
const MOST_STACKS: usize = 512;
/// Where the kernel lists no children, all of /proc is read to find them: not more often than this.
const SCAN_EVERY_S: f64 = 0.1;
/// A process is taken to have been started for the watch when it started at most this long before; the kernel's clock of starts
/// ticks every 10 ms.
const BORN_WITH_THE_WATCH_S: f64 = 0.05;

/// A watched program.
pub struct Watch {
    root: Root,
    page: u64,
    ticks: f64,
    begin: Instant,
    begin_uptime_s: f64,
    leader: u32,
    live: BTreeMap<u32, LiveProcess>,
    survey: Survey,
    listed: usize,
    cores: Cores,
    threads_interval: Interval,
    new_threads_interval: Interval,
    memory_interval: Interval,
    limits_interval: Interval,
    children_interval: Interval,
    scanned_s: f64,
    searched_s: f64,
    throttled_before: Option<u64>,
    denied: BTreeSet<u32>,
}

impl Watch {
    /// Begins to watch process `leader` and what descends from it, with a first look. `page` is the size of a page in bytes.
    pub fn new(root: Root, leader: u32, page: u64) -> Self {
        let Topology { nodes, placement, .. } = nearfar_sys::machine::topology(&root);
        let huge_pages = root.text("/sys/kernel/mm/transparent_hugepage/enabled");
        let chosen = huge_pages.and_then(|text| Some(text.split_once('[')?.1.split_once(']')?.0.to_owned()));
        let mut watch = Self {
            page,
            ticks: proc_tasks::ticks_per_second() as f64,
            begin: Instant::now(),
            begin_uptime_s: proc_tasks::uptime(&root).unwrap_or(0.0),
            leader,
            live: BTreeMap::new(),
            cores: Cores::new(&placement),
            survey: Survey { placement, nodes, ..Survey::default() },
            listed: 0,
            threads_interval: Interval::of_threads(),
            new_threads_interval: Interval::of_new_threads(),
            memory_interval: Interval::of_memory(),
            limits_interval: Interval::of_limits(),
            children_interval: Interval::of_children(),
            scanned_s: f64::NEG_INFINITY,
            searched_s: 0.0,
            throttled_before: None,
            denied: BTreeSet::new(),
            root,
        };
        watch.survey.limits.huge_pages = chosen;
        watch.limits();
        watch.add(leader);
        // At once: a program may live for a millisecond.
        watch.look(true);
        watch
    }

    /// Time until the next look is due.
    pub fn left(&self) -> Duration {
        let now = self.begin.elapsed().as_secs_f64();
        let paces = [
            &self.children_interval,
            &self.threads_interval,
            &self.new_threads_interval,
            &self.memory_interval,
            &self.limits_interval,
        ];
        paces.iter().map(|interval| interval.left(now)).min().unwrap_or_default()
    }

    /// Looks, at whatever is due; `at_once` looks at the threads in any case.
    pub fn look(&mut self, at_once: bool) {
        let now = self.begin.elapsed().as_secs_f64();
        if self.children_interval.is_due(now) {
            let before = self.cost();
            self.discover(now);
            self.children_interval.taken(now, self.cost() - before);
        }
        if at_once || self.threads_interval.is_due(now) {
            let before = self.cost();
            self.look_at_threads(now);
            self.searched(now);
            self.survey.seconds = now;
            self.survey.looks += 1;
            self.threads_interval.taken(now, self.cost() - before);
        } else if self.new_threads_interval.is_due(now) {
            let before = self.cost();
            self.look_for_new_threads(now);
            self.searched(now);
            self.new_threads_interval.taken(now, self.cost() - before);
        }
        if self.memory_interval.is_due(now) {
            let before = self.cost();
            self.look_at_memory(now);
            self.memory_interval.taken(now, self.cost() - before);
        }
        if self.limits_interval.is_due(now) {
            let before = self.cost();
            self.limits();
            self.limits_interval.taken(now, self.cost() - before);
        }
    }

    /// All threads that live at `now` are known.
    fn searched(&mut self, now: f64) {
        self.survey.longest_gap_s = self.survey.longest_gap_s.max(now - self.searched_s);
        self.searched_s = now;
    }

    /// Looks at the memory now, however lately that was done: for a program that goes on after the report.
    pub fn look_at_all(&mut self) {
        self.look(true);
        self.look_at_memory(self.begin.elapsed().as_secs_f64());
        self.limits();
    }

    /// True while a watched process lives.
    pub fn is_alive(&self) -> bool {
        !self.live.is_empty()
    }

    /// What was seen.
    pub fn into_survey(mut self) -> Survey {
        self.survey.processes.iter_mut().for_each(number_threads);
        if self.survey.processes.len() >= MOST_PROCESSES {
            self.survey.notes.push(format!("only the first {MOST_PROCESSES} processes were looked at"));
        }
        if !self.denied.is_empty() {
            let pids: Vec<String> = self.denied.iter().map(u32::to_string).collect();
            let plural = if pids.len() == 1 { "" } else { "es" };
            self.survey.notes.push(format!(
                "permission denied: memory and environment of process{plural} {} belong to another user; run nearfar map as that user \
                 or as root",
                pids.join(", ")
            ));
        }
        self.survey
    }

    /// Seconds of CPU time of the caller so far, or of wall time where the kernel does not count.
    fn cost(&self) -> f64 {
        proc_tasks::own_cpu_ns(&self.root).map_or_else(|| self.begin.elapsed().as_secs_f64(), |ns| ns as f64 / 1e9)
    }

    fn add(&mut self, pid: u32) {
        if self.live.contains_key(&pid) || self.survey.processes.len() >= MOST_PROCESSES {
            return;
        }
        let Some(stat) = proc_tasks::stat(&self.root, pid, pid) else { return };
        let mut process = Process { pid, parent: stat.parent, name: stat.name, ..Process::default() };
        if !facts::read(&self.root, &mut process) {
            self.denied.insert(pid);
        }
        let program = self.root.link(&format!("/proc/{pid}/exe")).unwrap_or_default();
        let live = LiveProcess::new(self.survey.processes.len(), stat.start_ticks, program);
        self.survey.processes.push(process);
        self.live.insert(pid, live);
    }

    /// Finds processes that those known have started.
    fn discover(&mut self, now: f64) {
        let may_scan = || {
            let is_time = now - self.scanned_s >= SCAN_EVERY_S;
            if is_time {
                self.scanned_s = now;
            }
            is_time
        };
        for pid in proc_tasks::descendants(&self.root, self.live.keys().copied(), usize::MAX, may_scan) {
            self.add(pid);
        }
    }

    fn look_at_threads(&mut self, now: f64) {
        // Place in the survey, and what a thread that runs or wants to is on and may use.
        let mut running: Vec<(usize, usize)> = Vec::new();
        let pids: Vec<u32> = self.live.keys().copied().collect();
        for pid in pids {
            let Some(mut live) = self.live.remove(&pid) else { continue };
            if self.look_at_process(pid, &mut live, now, &mut running) {
                self.live.insert(pid, live);
            } else {
                let process = &mut self.survey.processes[live.index];
                process.ended = true;
                process.threads.iter_mut().for_each(|thread| thread.ended = true);
            }
        }
        let mut by_process: BTreeMap<usize, Vec<(usize, usize)>> = BTreeMap::new();
        for &place in &running {
            by_process.entry(place.0).or_default().push(place);
        }
        for (index, places) in by_process {
            let mut crowding = self.survey.processes[index].crowding;
            self.count(&mut crowding, &places);
            self.survey.processes[index].crowding = crowding;
        }
        let mut crowding = self.survey.crowding;
        self.count(&mut crowding, &running);
        self.survey.crowding = crowding;
    }

    fn count(&self, crowding: &mut Crowding, places: &[(usize, usize)]) {
        let thread = |&(process, thread): &(usize, usize)| &self.survey.processes[process].threads[thread];
        let runners: Vec<Runner<'_>> =
            places.iter().map(thread).map(|thread| Runner { cpu: thread.cpu, allowed: &thread.allowed }).collect();
        crowd::count(crowding, &runners, &self.cores);
    }

    /// False when the process has ended, or another one has its number now.
    fn look_at_process(&mut self, pid: u32, live: &mut LiveProcess, now: f64, running: &mut Vec<(usize, usize)>) -> bool {
        let tids = proc_tasks::tasks(&self.root, pid);
        let Some(first) = proc_tasks::stat(&self.root, pid, pid) else { return false };
        if tids.is_empty() || first.start_ticks != live.start_ticks {
            return false;
        }
        self.look_for_exec(pid, live, &first);
        let mut there = HashSet::with_capacity(tids.len());
        for &tid in &tids {
            let stat = if tid == pid { Some(first.clone()) } else { proc_tasks::stat(&self.root, pid, tid) };
            let Some(stat) = stat else { continue };
            there.insert(tid);
            self.look_at_thread(pid, tid, live, &stat, now);
            if let (true, Some(thread)) = (stat.state == 'R', live.threads.get(&tid)) {
                running.push((live.index, thread.index));
            }
        }
        let process = &mut self.survey.processes[live.index];
        live.threads.retain(|tid, thread| {
            let stays = there.contains(tid);
            process.threads[thread.index].ended |= !stays;
            stays
        });
        live.unlisted.retain(|tid| there.contains(tid));
        // The first thread stays as a zombie until the others have ended, and the process until its parent has asked for its status.
        !(matches!(first.state, 'Z' | 'X') && tids.len() <= 1)
    }

    /// A process that becomes another program has another name, and other threads, environment and libraries.
    fn look_for_exec(&mut self, pid: u32, live: &mut LiveProcess, first: &Stat) {
        if matches!(first.state, 'Z' | 'X') {
            return;
        }
        let program = self.root.link(&format!("/proc/{pid}/exe"));
        let process = &mut self.survey.processes[live.index];
        let renamed = process.name != first.name;
        if program.as_ref().is_some_and(|program| *program != live.program) {
            live.program = program.unwrap_or_default();
            // Within exec the program and its name are there for a moment before its arguments: the old ones are not its, and while
            // there are none, every look asks for them.
            process.command.clear();
            process.memory = None;
            process.openmp.clear();
            process.pools.clear();
            live.stack_pointers.clear();
            // taskset and the like bind themselves, then become the program: what they might use before does not count.
            process.allowed = CpuList::default();
            if let Some(thread) = live.threads.get_mut(&pid) {
                thread.looks = 0;
            }
        } else if !renamed && !process.command.is_empty() {
            return;
        }
        process.name.clone_from(&first.name);
        if !facts::read(&self.root, process) {
            self.denied.insert(pid);
        }
    }

    /// Looks for threads that were not there before: much cheaper than looking at all of them.
    fn look_for_new_threads(&mut self, now: f64) {
        let pids: Vec<u32> = self.live.keys().copied().collect();
        for pid in pids {
            let Some(mut live) = self.live.remove(&pid) else { continue };
            for tid in proc_tasks::tasks(&self.root, pid) {
                if !live.knows(tid)
                    && let Some(stat) = proc_tasks::stat(&self.root, pid, tid)
                {
                    self.look_at_thread(pid, tid, &mut live, &stat, now);
                }
            }
            self.live.insert(pid, live);
        }
    }

    fn look_at_thread(&mut self, pid: u32, tid: u32, live: &mut LiveProcess, stat: &Stat, now: f64) {
        let spent = CpuTime::of(stat, proc_tasks::scheduled(&self.root, pid, tid), self.ticks);
        // The number may be another thread's by now.
        if live.threads.get(&tid).is_some_and(|thread| thread.start_ticks != stat.start_ticks)
            && let Some(old) = live.threads.remove(&tid)
        {
            self.survey.processes[live.index].threads[old.index].ended = true;
        }
        let process = &mut self.survey.processes[live.index];
        if !live.threads.contains_key(&tid) {
            if self.listed >= MOST_THREADS {
                if live.unlisted.insert(tid) {
                    process.unlisted_threads += 1;
                    self.survey.unlisted_threads += 1;
                }
                return;
            }
            self.listed += 1;
            let born_s = stat.start_ticks as f64 / self.ticks - self.begin_uptime_s;
            let born_s = Some(born_s).filter(|born_s| *born_s > -BORN_WITH_THE_WATCH_S);
            live.threads.insert(tid, LiveThread::new(process.threads.len(), stat.start_ticks, born_s, spent, now));
            process.threads.push(Thread { tid, first_s: now, ..Thread::default() });
        }
        let Some(track) = live.threads.get_mut(&tid) else { return };
        let thread = &mut process.threads[track.index];
        track.update(thread, stat, spent, now);
        // Threads are bound soon after their start, if at all: read it again at the 2nd, 4th, 8th ... look, and now and then.
        if (track.looks.is_power_of_two() || track.looks.is_multiple_of(64))
            && let Some(allowed) = proc_tasks::allowed(&self.root, pid, tid)
            && !allowed.cpus.is_empty()
        {
            // What any of its threads may use, or could before it was bound.
            process.allowed = process.allowed.as_slice().iter().chain(allowed.cpus.as_slice()).copied().collect();
            process.allowed_nodes = allowed.nodes;
            thread.allowed = allowed.cpus;
        }
    }

    fn look_at_memory(&mut self, now: f64) {
        for (&pid, live) in &mut self.live {
            let process = &mut self.survey.processes[live.index];
            let mut found = match numa_maps::areas(&self.root, pid, self.page) {
                Ok(found) => found,
                Err(error) => {
                    if error.kind() == std::io::ErrorKind::PermissionDenied {
                        self.denied.insert(pid);
                    }
                    continue;
                }
            };
            if found.areas.is_empty() {
                continue;
            }
            facts::libraries(process, &found.areas);
            if let (false, [only]) = (found.nodes_known, self.survey.nodes.as_slice()) {
                found.areas.iter_mut().for_each(|area| area.nodes = vec![(only.id, area.bytes)]);
                found.nodes_known = true;
            }
            for &tid in live.threads.keys().filter(|tid| **tid != pid).take(MOST_STACKS) {
                if let Some(pointer) = proc_tasks::stack_pointer(&self.root, pid, tid) {
                    live.stack_pointers.insert(tid, pointer);
                }
            }
            let pointers: Vec<u64> = live.stack_pointers.values().copied().collect();
            let objects = classify(&found.areas, &live.program, &pointers);
            let pages = Pages::of(now, found.nodes_known, &found.areas, &objects);
            let most = process.memory.as_ref().map_or(0, |before| before.bytes() + before.swap_bytes());
            if pages.bytes() + pages.swap_bytes() >= most {
                process.memory = Some(pages);
            }
        }
    }

    fn limits(&mut self) {
        let found = proc_cgroup::limits(&self.root, self.leader);
        let limits = &mut self.survey.limits;
        // A process that has ended has no group any more.
        limits.quota_cpus = found.quota_cpus.or(limits.quota_cpus);
        limits.memory_bytes = found.memory_bytes.or(limits.memory_bytes);
        limits.memory_used_bytes = limits.memory_used_bytes.max(found.memory_used_bytes);
        if let Some(throttled) = found.throttled {
            let before = *self.throttled_before.get_or_insert(throttled);
            limits.throttled = Some(throttled.saturating_sub(before));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_child_and_its_child_are_seen() {
        let mut shell = Command::new("sh");
        // The second command keeps the shell from becoming the first.
        let mut child = shell.args(["-c", "sleep 20; true"]).stdin(Stdio::null()).spawn().expect("sh");
        let mut watch = Watch::new(Root::this(), child.id(), 4096);
        let begin = Instant::now();
        let sleeps = |process: &Process| process.name == "sleep" && !process.command.is_empty();
        while !watch.survey.processes.iter().any(sleeps) && begin.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(watch.left());
            watch.look(false);
        }
        // So long that what exec costs on a busy machine is no work of the thread's.
        std::thread::sleep(Duration::from_millis(200));
        watch.look_at_all();
        let killed = watch.survey.processes.iter().find(|process| process.name == "sleep").map(|process| process.pid);
        child.kill().expect("kill");
        child.wait().expect("wait");
        watch.look(true);
        let survey = watch.into_survey();
        if let Some(pid) = killed {
            nearfar_sys::process::kill(pid);
        }
        let [sh, sleep] = survey.processes.as_slice() else { panic!("two processes: {survey:?}") };
        assert_eq!((sh.pid, sh.ended, sleep.parent, sleep.command.as_str()), (child.id(), true, child.id(), "sleep 20"));
        let thread = &sleep.threads[0];
        // An exec may move it to another CPU, between two looks.
        assert!(
            thread.tid == sleep.pid && !thread.allowed.is_empty() && !thread.seen.is_empty() && !thread.is_busy(),
            "{thread:?}"
        );
        assert!(sleep.memory.as_ref().is_some_and(|pages| pages.bytes() > 0), "{sleep:?}");
        assert!(survey.looks >= 2 && survey.notes.is_empty(), "{survey:?}");
    }

    #[test]
    fn the_arguments_of_a_program_come_after_its_name() {
        let state = |name: &str, exe: &str, cmdline: &str| {
            let stat =
                format!("5 ({name}) S 1 5 5 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 9 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0");
            let files = [("task/5/stat", &*stat), ("cmdline", cmdline), ("environ", "A=b")];
            let there = files.iter().filter(|(_, text)| !text.is_empty());
            let files: String = there.map(|(file, text)| format!("=== /proc/5/{file}\n {text}\n")).collect();
            Root::captured(&format!("{files}--- /proc/5/exe {exe}\n")).expect("a capture")
        };
        let mut watch = Watch::new(state("sh", "/bin/sh", "sh -c x"), 5, 4096);
        let mut seen = Vec::new();
        let steps =
            [("sh", "/bin/x", ""), ("x", "/bin/x", ""), ("x", "/bin/x", "x -y"), ("x", "/bin/z", ""), ("z", "/bin/z", "z")];
        for (name, exe, cmdline) in steps {
            watch.root = state(name, exe, cmdline);
            watch.look(true);
            let process = &watch.survey.processes[0];
            seen.push(format!("{}: {}", process.name, process.command.trim()));
        }
        assert_eq!(seen, ["sh: ", "x: ", "x: x -y", "x: ", "z: z"]);
    }

    #[test]
    fn what_is_not_there_gives_an_empty_survey() {
        let root = Root::captured("").expect("a capture");
        let mut watch = Watch::new(root, 5, 4096);
        watch.look_at_all();
        assert!(!watch.is_alive() && watch.into_survey().processes.is_empty());
    }
}
