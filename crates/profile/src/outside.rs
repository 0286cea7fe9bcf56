//! Watches a program from outside, without anything in it: where the wall time of a run goes, by routine. For runs that are to be as fast
//! as they are without us.
//!
//! Every few milliseconds each thread is looked at: it runs, or sleeps in a page fault (at an instruction), or in a system call
//! (/proc/PID/task/TID/syscall). Where those that run are tells a software clock that the program inherits from us (perf_event_open),
//! which stands still while a thread sleeps or is in the kernel. nearfar's own threads do not count. Needs no rights up to
//! perf_event_paranoid 2, and at ptrace_scope 1 or less, or none.
//!
//! Rejected: switches of threads as events, with the instruction: the kernel tells them to root alone; every page fault as an event:
//! its cost grows with their number, and a look's does not.

mod member;

use crate::clock::Refused;
use crate::facts;
use crate::names::FileNames;
use crate::rings;
use member::{Coverage, Member};
use nearfar_core::profile::file::{Batch, Content};
use nearfar_core::profile::names::Names;
use nearfar_core::profile::record::{Record, Start};
use nearfar_core::profile::wall::{BusyThread, Place, WallShares, divide, share};
use nearfar_sys::perf::{Found, Ring};
use nearfar_sys::proc_tasks::{self, ThreadState};
use nearfar_sys::process;
use nearfar_sys::root::Root;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::ErrorKind;
use std::time::{Duration, Instant};

/// CPU time that one sample stands for: most of the time the kernel's own tick is the next event, so that the clock sets no timer when
/// threads go to sleep and wake. No multiple of ticks, which programs may follow.
const PERIOD_NS: u64 = 4_700_000;
/// Between looks at the least.
const LOOK: Duration = Duration::from_millis(5);
/// Looks take this part of a CPU's time at most: with many threads they become fewer.
const SHARE: u32 = 100;
/// A stretch: within it, threads run as the clock's samples in it say. New threads are found at its end.
const STRETCH: Duration = Duration::from_millis(100);
/// What nearfar calls its threads within programs.
const OURS: [&str; 3] = ["nearfar", "iou-wrk-", "iou-sqp-"];
/// So many threads are looked at between two questions whether the run is over.
const ASK: usize = 16;

/// Why there are no times of routines.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoTimes {
    /// No clock.
    #[error("{0}")]
    Clock(#[from] Refused),
    /// Threads cannot be looked at.
    #[error(
        "threads of the program cannot be observed (/proc/PID/task/TID/syscall; kernel.yama.ptrace_scope): routines have no times"
    )]
    Threads,
    /// It ended too soon.
    #[error("the run was too short to see routines in it")]
    Nothing,
}

/// Wall seconds of a routine.
#[derive(Clone, Debug, PartialEq)]
pub struct RoutineWall {
    /// Its name.
    pub function: String,
    /// File name of the program or library.
    pub module: String,
    /// Seconds.
    pub seconds: f64,
}

/// Where the time of a run went.
#[derive(Clone, Debug, PartialEq)]
pub struct Watched {
    /// By routine.
    pub spent: Vec<RoutineWall>,
    /// What is wrong with it, for people.
    pub doubt: Option<String>,
}

/// The watcher. It is made before the program is started.
pub struct Outside {
    rings: Vec<Ring>,
    root: Root,
    /// We, and the command that runs the program.
    leave_out: Vec<u32>,
    members: BTreeMap<u32, Member>,
    looks: u32,
    since: Instant,
    next: Instant,
    total: WallShares,
    came: Coverage,
    known: HashSet<Place>,
}

impl Outside {
    /// Samples what this thread starts from now on.
    ///
    /// # Errors
    /// The kernel denies the clock.
    pub fn start() -> Result<Self, NoTimes> {
        let rings = rings::open(&[], |_| Ok::<(), Refused>(()), |cpu| Ring::family(cpu, PERIOD_NS))?;
        let now = Instant::now();
        Ok(Self {
            rings,
            root: Root::this(),
            leave_out: vec![process::pid()],
            members: BTreeMap::new(),
            looks: 0,
            since: now,
            next: now,
            total: WallShares::default(),
            came: Coverage::default(),
            known: HashSet::new(),
        })
    }

    /// The program is a child of process `command`, which is a child of ours and does not count itself.
    pub fn below(&mut self, command: u32) {
        self.leave_out.push(command);
        self.since = Instant::now();
    }

    /// How long to wait before the next look.
    pub fn wait(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    /// Looks at the program, if it is time. Ends early when `is_over` tells so, which is asked now and then: what is seen then is
    /// left out, and the time of the end is not that of the look.
    pub fn look(&mut self, is_over: impl Fn() -> bool) {
        if Instant::now() < self.next {
            return;
        }
        // Not by the wall: whoever took the CPU from us for 20 ms would blind us for two seconds.
        let begun = facts::thread_cpu_ns();
        self.drain();
        // What is new is seen at the end of a stretch; until there is something, at each look.
        if self.members.values().all(|member| member.is_gone) {
            self.find();
        }
        let Some(met) = self.look_at_threads(&is_over) else { return };
        self.looks += 1;
        met.into_iter().for_each(|place| self.meet(place));
        if self.since.elapsed() >= STRETCH && !is_over() {
            self.end_stretch();
            self.find();
        }
        let used = Duration::from_nanos(facts::thread_cpu_ns().saturating_sub(begun));
        self.next = Instant::now() + LOOK.max(used * SHARE);
    }

    /// Places of those that wait in a page fault; `None` when the run is over meanwhile.
    fn look_at_threads(&mut self, is_over: &impl Fn() -> bool) -> Option<HashSet<Place>> {
        let Self { root, members, came, .. } = self;
        let (mut states, mut met) = (Vec::new(), HashSet::new());
        for (&pid, member) in members {
            for (&tid, thread) in member.threads.iter_mut().filter(|(_, thread)| !thread.is_ours) {
                if states.len() % ASK == 0 && is_over() {
                    return None;
                }
                let found = proc_tasks::thread_state(root, pid, tid);
                came.told += u64::from(found.is_ok());
                let busy = match found {
                    Ok(ThreadState::Running) => Some(BusyThread::Running),
                    Ok(ThreadState::Fault(ip)) => {
                        met.insert((pid, ip));
                        Some(BusyThread::Fault((pid, ip)))
                    }
                    Ok(ThreadState::Call(..) | ThreadState::Gone) => None,
                    Err(error) => {
                        came.refused += u64::from(error.kind() == ErrorKind::PermissionDenied);
                        None
                    }
                };
                states.push((&mut thread.seen, busy));
            }
        }
        share(&mut states);
        Some(met)
    }

    fn drain(&mut self) {
        let Self { rings, leave_out, members, came, .. } = self;
        let mut met = HashSet::new();
        for ring in rings {
            ring.drain(&mut |found| match found {
                Found::Lost(number) => came.lost += number,
                Found::Sample { ip, pid, tid, at } => {
                    came.samples += 1;
                    if !leave_out.contains(&pid) {
                        let member = members.entry(pid).or_default();
                        // Numbers are used again; what comes late is cleared away as the rest was.
                        member.is_gone = false;
                        member.threads.entry(tid).or_default().sample(at, (pid, ip));
                        met.insert((pid, ip));
                    }
                }
            });
        }
        met.into_iter().for_each(|place| self.meet(place));
    }

    /// An instruction in a file that is not known means that something was mapped, or executed. One that is in no file after that is
    /// not asked for again.
    fn meet(&mut self, place: Place) {
        let (pid, ip) = place;
        let Some(member) = self.members.get_mut(&pid).filter(|_| !self.known.contains(&place)) else { return };
        if member.knows(ip) || member.read_modules(&self.root, pid, Some(ip)) {
            self.known.insert(place);
        }
    }

    /// Finds processes and threads, and whose they are.
    fn find(&mut self) {
        let members: Vec<u32> = self.living().collect();
        let known = self.leave_out.get(1).into_iter().chain(&members).copied();
        let found = proc_tasks::descendants(&self.root, known, usize::MAX, || false);
        for pid in members.into_iter().chain(found) {
            let tasks = proc_tasks::tasks(&self.root, pid);
            if tasks.is_empty() {
                self.members.get_mut(&pid).into_iter().for_each(Member::end);
                continue;
            }
            let member = self.members.entry(pid).or_default();
            member.is_gone = false;
            if member.read.is_none() {
                member.read_modules(&self.root, pid, None);
            }
            member.threads.retain(|tid, _| tasks.contains(tid));
            let name = |tid: u32| self.root.text(&format!("/proc/{pid}/task/{tid}/comm")).unwrap_or_default();
            let program = name(pid);
            for &tid in &tasks {
                let own = name(tid);
                // Threads of a program whose own name begins so have that name.
                let is_ours = tid != pid && own != program && OURS.iter().any(|prefix| own.starts_with(prefix));
                member.threads.entry(tid).or_default().is_ours = is_ours;
            }
        }
    }

    fn living(&self) -> impl Iterator<Item = u32> {
        self.members.iter().filter(|(_, member)| !member.is_gone).map(|(&pid, _)| pid)
    }

    /// Divides the time since the last stretch.
    fn end_stretch(&mut self) {
        let wall = self.since.elapsed().as_secs_f64();
        self.since = Instant::now();
        let mut seen = Vec::new();
        for thread in self.members.values_mut().flat_map(|member| member.threads.values_mut()) {
            let of_stretch = thread.end_stretch();
            if !thread.is_ours {
                seen.push(of_stretch);
            }
        }
        self.total = std::mem::take(&mut self.total).plus(divide(wall, self.looks, &seen));
        self.looks = 0;
    }

    /// The run is over.
    ///
    /// # Errors
    /// Nothing was seen, or nothing could be.
    pub fn finish(mut self) -> Result<Watched, NoTimes> {
        self.drain();
        let mut rest: Vec<_> = self
            .members
            .values_mut()
            .flat_map(|member| member.threads.values_mut())
            .map(|thread| (&mut thread.seen, None))
            .collect();
        share(&mut rest);
        self.end_stretch();
        let doubt = self.came.doubt()?;
        if self.total.places.is_empty() {
            return Err(NoTimes::Nothing);
        }
        let (mut batches, mut index) = (Vec::new(), HashMap::new());
        for (&pid, member) in &self.members {
            index.insert(pid, batches.len());
            let start = Record::Start(Start { pid, ..Start::default() });
            let records = std::iter::once(start).chain(member.modules.iter().cloned().map(Record::Module)).collect();
            batches.push(Batch { pid, records });
        }
        let names = FileNames::of(&Content { batches, lost_bytes: 0 });
        let mut spent: BTreeMap<(String, String), f64> = BTreeMap::new();
        for (&(pid, ip), seconds) in &self.total.places {
            let function = index.get(&pid).and_then(|&process| names.function(process, ip));
            *spent.entry(function.unwrap_or_else(|| (UNKNOWN.to_owned(), String::new()))).or_default() += seconds;
        }
        let spent = spent.into_iter().map(|((function, module), seconds)| RoutineWall { function, module, seconds }).collect();
        Ok(Watched { spent, doubt })
    }
}

/// Of a function whose name is not known, as in profiles.
pub const UNKNOWN: &str = "?";

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;
    use std::process::Command;

    /// Says to the copy of this program that it is the one that is watched.
    const WATCHED: &str = "NEARFAR_TEST_WATCHED";

    #[inline(never)]
    #[unsafe(no_mangle)]
    fn nearfar_test_works(until: Instant) -> u64 {
        let mut sum = 0u64;
        while Instant::now() < until {
            (0..100_000u64).for_each(|at| sum = sum.wrapping_mul(black_box(31)).wrapping_add(at));
        }
        sum
    }

    /// What is watched: half of the time it works, half it sleeps.
    #[test]
    fn a_program_that_is_watched() {
        if std::env::var_os(WATCHED).is_some() {
            black_box(nearfar_test_works(Instant::now() + Duration::from_millis(600)));
            std::thread::sleep(Duration::from_millis(600));
        }
    }

    #[test]
    fn code_in_no_file_is_asked_for_once() {
        let Ok(mut outside) = Outside::start() else { return println!("skip: no clock") };
        // A process that is no more has no mappings.
        let mut child = Command::new("/bin/true").spawn().unwrap();
        child.wait().unwrap();
        outside.members.entry(child.id()).or_default();
        outside.meet((child.id(), 0x10));
        assert!(outside.known.contains(&(child.id(), 0x10)));
        outside.meet((child.id(), 0x20));
        assert!(!outside.known.contains(&(child.id(), 0x20)), "mappings were just read, and not for this one");
    }

    #[test]
    fn who_has_ended_is_not_looked_at() {
        let Ok(mut outside) = Outside::start() else { return println!("skip: no clock") };
        let mut child = Command::new("/bin/sleep").arg("5").spawn().unwrap();
        let pid = child.id();
        // The kernel lets its parent go on before the program is mapped.
        let is_mapped =
            || outside.root.text(&format!("/proc/{pid}/maps")).is_some_and(|maps| maps.contains("r-xp") && maps.contains(" /"));
        while !is_mapped() && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        outside.members.entry(pid).or_default();
        outside.find();
        assert!(outside.members[&pid].threads.contains_key(&pid) && outside.living().eq([pid]));
        child.kill().unwrap();
        child.wait().unwrap();
        outside.find();
        assert!(outside.members[&pid].threads.is_empty() && outside.living().next().is_none());
        assert!(!outside.members[&pid].modules.is_empty(), "names are wanted at the end");
    }

    #[test]
    fn a_look_ends_with_the_run() {
        let Ok(mut outside) = Outside::start() else { return println!("skip: no clock") };
        outside.members.entry(process::pid()).or_default().threads.entry(process::pid()).or_default();
        outside.look(|| true);
        assert_eq!((outside.looks, outside.came), (0, Coverage { told: 0, refused: 0, ..outside.came }));
        outside.look(|| false);
        assert_eq!((outside.looks, outside.came.told + outside.came.refused > 0), (1, true));
    }

    #[test]
    fn waiting_for_a_cpu_makes_no_looks_fewer() {
        let Ok(mut outside) = Outside::start() else { return println!("skip: no clock") };
        outside.members.entry(process::pid()).or_default().threads.entry(process::pid()).or_default();
        outside.look(|| {
            std::thread::sleep(Duration::from_millis(60));
            false
        });
        assert!(outside.wait() < Duration::from_secs(3), "{:?} until the next look", outside.wait());
    }

    #[test]
    fn time_is_told_by_routine_and_what_sleeps_has_none() {
        let mut outside = match Outside::start() {
            Ok(outside) => outside,
            Err(why) => return println!("skip: {why}"),
        };
        // A shell between, as `nearfar run` is one.
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", "\"$0\" --exact outside::tests::a_program_that_is_watched; exit 0"])
            .arg(std::env::current_exe().unwrap());
        let begun = Instant::now();
        let mut child = command.env(WATCHED, "1").stdout(std::process::Stdio::null()).spawn().unwrap();
        outside.below(child.id());
        while child.try_wait().unwrap().is_none() {
            std::thread::sleep(outside.wait().max(Duration::from_millis(1)));
            outside.look(|| false);
        }
        let wall = begun.elapsed().as_secs_f64();
        let spent = match outside.finish() {
            Ok(watched) => watched.spent,
            Err(NoTimes::Threads) => return println!("skip: threads cannot be looked at here"),
            Err(why) => panic!("{why}"),
        };
        let works = spent.iter().filter(|one| one.function == "nearfar_test_works").map(|one| one.seconds).sum::<f64>();
        let all: f64 = spent.iter().map(|one| one.seconds).sum();
        assert!((0.3..=0.9).contains(&works) && all < wall - 0.3, "{works} s of {all} s in {wall} s: {spent:?}");
    }
}
