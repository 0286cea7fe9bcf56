//! The mover at work: rounds of looking, deciding and moving, until it is told to stop.
//!
//! Looking takes at most a share of one CPU (1 % unless the user says otherwise), our thread's and the kernel's together; the first rounds
//! may take at once what is theirs in 5 s; what moves take is bounded by their rate.

use super::carry;
use super::pair::Pair;
use super::process::Process;
use super::report::Report;
use super::tree::Tree;
use nearfar_core::addr::Extent;
use nearfar_core::placement::Tier;
use nearfar_core::policy::migrate::{GroupId, Migrate, Move, Seen, Terms, Verdict};
use nearfar_sys::damon::Target;
use nearfar_sys::numa::NumaError;
use nearfar_sys::proc_tasks;
use nearfar_sys::root::Root;
use nearfar_sys::visits::{Looked, Sampler};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Looks at a group in a round.
const LOOKS: u32 = 10;
/// Time between looks at first.
const INTERVAL_S: f64 = 0.02;
/// Groups that are looked at in a round: bounds, and the start.
const GROUPS: (usize, usize) = (128, 512);
const GROUPS_AT_FIRST: usize = 256;
/// CPU time of a round above which fewer groups are looked at, and below which more are.
const ROUND_S: (f64, f64) = (0.005, 0.03);
/// Time between rounds.
const ROUND_EVERY_S: f64 = 1.0;
/// A program that ends sooner is left alone.
const FIRST_AFTER_S: f64 = 0.5;
/// What this time's share is may be taken before it has passed, so that the first rounds come soon: a run of 10 s pays half as much again.
const AHEAD_S: f64 = 5.0;
/// Steps round the address spaces in a round.
const STEPS: usize = 2048;
/// What moving a byte costs until it has been measured.
const MOVE_NS_PER_BYTE: f64 = 0.5;

/// What the rounds may take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Bytes per second that are moved.
    pub bytes_per_s: f64,
    /// Of one CPU, for looking.
    pub cpu_share: f64,
}

/// How the rounds are told to stop, and what they have to tell.
#[derive(Default)]
pub struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    stop: bool,
    stopped: bool,
    report: Report,
}

impl Shared {
    /// Makes the rounds stop, waits for that, though not for ever, and returns what they did and whether they have stopped.
    pub fn stop(&self) -> (Report, bool) {
        const MOST: Duration = Duration::from_secs(2);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.stop = true;
        self.changed.notify_all();
        let waited = self.changed.wait_timeout_while(state, MOST, |state| !state.stopped);
        let state = waited.unwrap_or_else(PoisonError::into_inner).0;
        (state.report.clone(), state.stopped)
    }

    /// Waits; false when the rounds must stop.
    fn wait(&self, time: Duration) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(state, time, |state| !state.stop);
        !waited.unwrap_or_else(PoisonError::into_inner).0.stop
    }

    fn must_stop(&self) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).stop
    }

    fn tell(&self, report: &Report, stopped: bool) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.report = report.clone();
        state.stopped = stopped;
        self.changed.notify_all();
    }
}

/// The loop and what it keeps.
pub struct Rounds {
    root: Root,
    pair: Pair,
    sampler: Sampler,
    policy: Migrate,
    tree: Tree,
    begin: Instant,
    interval_s: f64,
    groups: usize,
    /// The node of most pages of groups, as last seen.
    nodes: BTreeMap<GroupId, u32>,
    /// Processes whose pages may not be asked for or moved.
    denied: BTreeSet<u32>,
    limits: Limits,
    looking_s: f64,
    report: Report,
}

impl Rounds {
    /// For process `leader` and what descends from it.
    pub fn new(pair: Pair, sampler: Sampler, leader: u32, limits: Limits) -> Self {
        let (gain_ns, bytes_per_s) = (pair.gain.ns_per_visit, limits.bytes_per_s);
        let terms = Terms { gain_ns, bytes_per_s, move_ns_per_byte: MOVE_NS_PER_BYTE };
        Self {
            tree: Tree::new(Root::this(), leader),
            root: Root::this(),
            pair,
            sampler,
            policy: Migrate::new(terms),
            begin: Instant::now(),
            interval_s: INTERVAL_S,
            groups: GROUPS_AT_FIRST,
            nodes: BTreeMap::new(),
            denied: BTreeSet::new(),
            limits,
            looking_s: 0.0,
            report: Report::default(),
        }
    }

    /// Works until it is told to stop, or nothing can be done any more.
    pub fn run(mut self, shared: &Arc<Shared>) {
        let mut due_s = FIRST_AFTER_S;
        while shared.wait(Duration::from_secs_f64((due_s - self.now()).max(0.0))) {
            let before = self.now();
            let spent = self.cpu_s();
            let moving = self.report.moving_s;
            let Some(verdict) = self.round(shared) else { break };
            let cost = (self.cpu_s() - spent - (self.report.moving_s - moving)).max(0.0);
            self.looking_s += cost;
            self.groups = match cost {
                cost if cost > ROUND_S.1 => (self.groups / 2).max(GROUPS.0),
                cost if cost < ROUND_S.0 => (self.groups * 2).min(GROUPS.1),
                _ => self.groups,
            };
            let now = self.now();
            let rest = match verdict {
                Verdict::Work => {
                    self.report.off = None;
                    ROUND_EVERY_S
                }
                Verdict::Rest(seconds, why) => {
                    self.report.pause(now, seconds, why);
                    seconds
                }
            };
            due_s = (before + rest).max(self.looking_s / self.limits.cpu_share - AHEAD_S);
            if matches!(verdict, Verdict::Rest(..)) {
                self.report.paused_s += (due_s - now).max(0.0);
            }
            self.sum_up();
            shared.tell(&self.report, false);
        }
        // A pause that was cut short.
        self.report.paused_s -= if self.report.off.is_some() { (due_s - self.now()).max(0.0) } else { 0.0 };
        self.sum_up();
        let report = self.report.clone();
        // DAMON is given back first: whoever waits may need it.
        drop(self);
        shared.tell(&report, true);
    }

    fn sum_up(&mut self) {
        self.report.seconds = self.now();
        self.report.looking_cpu_s = self.looking_s;
    }

    fn now(&self) -> f64 {
        self.begin.elapsed().as_secs_f64()
    }

    /// CPU time of this thread and of the kernel's for us; wall time where the kernel does not count.
    fn cpu_s(&self) -> f64 {
        let own = proc_tasks::own_thread_cpu_ns(&self.root).map_or_else(|| self.now(), |ns| ns as f64 / 1e9);
        own + self.sampler.kernel_cpu_ns() as f64 / 1e9
    }

    /// One round; `None` when nothing can be done any more.
    fn round(&mut self, shared: &Shared) -> Option<Verdict> {
        self.find();
        let picked = self.policy.pick(self.now(), self.groups);
        let (targets, groups) = self.targets(&picked);
        if groups.is_empty() {
            return Some(Verdict::Work);
        }
        let looked =
            match self.sampler.round(&targets, LOOKS, Duration::from_secs_f64(self.interval_s), &|time| shared.wait(time)) {
                Ok(looked) => looked,
                // Processes may have ended meanwhile; it is trouble only when it goes on.
                Err(_) if shared.must_stop() || self.leave_dead() => return Some(Verdict::Work),
                Err(error) => {
                    self.report.trouble = Some(format!("visits can no longer be seen: {error}; pages stay where they are"));
                    return None;
                }
            };
        self.report.rounds += 1;
        let now = self.now();
        let seen = self.seen(&groups, &looked);
        self.policy.observe(now, self.interval_s, &seen);
        if let Some(share) = self.policy.near_share() {
            self.report.share(now, share);
        }
        let mut free = self.pair.free();
        let room = self.pair.room(&free, self.policy.near_bytes());
        for one in self.policy.decide(now, room) {
            if shared.must_stop() {
                break;
            }
            self.carry(&one, &mut free);
        }
        self.interval_s = self.policy.better_interval(&seen);
        Some(self.policy.verdict())
    }

    /// New processes and new groups of those that are known.
    fn find(&mut self) {
        let (policy, nodes) = (&mut self.policy, &mut self.nodes);
        self.tree.look(&mut |number| {
            policy.forget(number);
            nodes.retain(|group, _| group.process != number);
        });
        let share = STEPS / self.tree.live.len().max(1) + 1;
        for process in self.tree.live.values_mut().filter(|process| !self.denied.contains(&process.number)) {
            let mut full = false;
            process.sweep(&self.root, &mut share.clone(), &mut |group| full |= !policy.found(group));
            if full {
                policy.forget(process.number);
                process.coarsen();
            }
        }
    }

    /// True when a process has ended that was looked at.
    fn leave_dead(&mut self) -> bool {
        let before = self.tree.live.len();
        self.find();
        self.tree.live.len() < before
    }

    /// What to look at, by process, and the groups in the same order. Groups that are not mapped any more are forgotten.
    fn targets(&mut self, picked: &[GroupId]) -> (Vec<Target>, Vec<(GroupId, Extent)>) {
        let (mut targets, mut groups): (Vec<Target>, Vec<_>) = (Vec::new(), Vec::new());
        let mut gone = Vec::new();
        for &group in picked {
            let process = self.tree.of(group.process);
            let Some((process, part)) = process.and_then(|process| Some((process, process.mapped(group)?))) else {
                gone.push(Seen { group, bytes: 0, tier: Tier::Far, visits: 0, looks: 0 });
                continue;
            };
            match targets.last_mut() {
                Some(last) if last.pid == process.pid => last.regions.push(part),
                _ => targets.push(Target { pid: process.pid, regions: vec![part] }),
            }
            groups.push((group, part));
        }
        self.policy.observe(self.now(), self.interval_s, &gone);
        (targets, groups)
    }

    /// What was seen of `groups`, with where they are now.
    fn seen(&mut self, groups: &[(GroupId, Extent)], looked: &[Looked]) -> Vec<Seen> {
        let mut seen = Vec::with_capacity(groups.len());
        let mut looked = looked.iter();
        for of_process in groups.chunk_by(|a, b| a.0.process == b.0.process) {
            let Some(process) = of_process.first().and_then(|(group, _)| self.tree.of(group.process)) else { continue };
            let parts: Vec<Extent> = of_process.iter().map(|(_, part)| *part).collect();
            let placed = match process.placement(&parts, &self.pair.near, &self.pair.far) {
                Ok(placed) => placed,
                Err(error) => {
                    let number = process.number;
                    let pid = process.pid;
                    looked.by_ref().take(parts.len()).for_each(drop);
                    self.refuse(number, pid, error);
                    continue;
                }
            };
            for ((&(group, _), placed), looked) in of_process.iter().zip(placed).zip(looked.by_ref()) {
                seen.push(Seen { group, bytes: placed.bytes, tier: placed.tier, visits: looked.visits, looks: looked.looks });
                if let Some(node) = placed.node {
                    self.nodes.insert(group, node);
                }
            }
        }
        seen
    }

    fn carry(&mut self, one: &Move, free: &mut BTreeMap<u32, i64>) {
        let Some(process) = self.tree.of(one.group.process) else { return };
        let from_node = self.nodes.get(&one.group).copied();
        let source = if one.to == Tier::Near { Tier::Far } else { Tier::Near };
        let begin = Instant::now();
        // It may have ended since it was looked at, and its number be another's.
        let lives = process.lives();
        let result = match self.pair.target(from_node, one.to, one.bytes, free).filter(|_| lives) {
            Some(node) => {
                carry::carry(process.pid, &process.parts(one.group), self.pair.nodes(source), node).map(|done| (node, done))
            }
            None => {
                self.policy.moved(self.now(), one, 0, 0.0);
                return;
            }
        };
        let took = begin.elapsed();
        match result {
            Ok((node, carried)) => {
                *free.entry(node).or_default() -= carried.bytes as i64;
                if let Some(from) = from_node {
                    *free.entry(from).or_default() += carried.bytes as i64;
                }
                self.nodes.insert(one.group, node);
                self.policy.moved(self.now(), one, carried.bytes, took.as_nanos() as f64);
                self.report.add(one.to == Tier::Near, &carried, took.as_secs_f64());
            }
            Err(error) => {
                let (number, pid) = (process.number, process.pid);
                self.policy.moved(self.now(), one, 0, 0.0);
                self.refuse(number, pid, error);
            }
        }
    }

    /// The kernel does not let us ask for or move the pages of a process, if it still lives.
    fn refuse(&mut self, number: u32, pid: u32, error: NumaError) {
        if !nearfar_sys::process::exists(pid) {
            return;
        }
        self.denied.insert(number);
        self.policy.forget(number);
        self.report.trouble = Some(format!(
            "pages of process {pid} cannot be moved: {error}; that needs the same user, or CAP_SYS_NICE and CAP_SYS_PTRACE, and a seccomp \
             profile that allows move_pages(2)"
        ));
    }
}

impl std::fmt::Debug for Process {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "process {}", self.pid)
    }
}
