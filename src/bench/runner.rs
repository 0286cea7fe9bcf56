//! Runs one case under one system and turns what came out into an [`Outcome`].
//!
//! Owns the cgroup controller, the swap file and the janitor. Invariant: a run without a right answer never counts as a rate.

use super::case::{Case, EMULATED_LATENCY_US, EMULATED_SHARE, Far, Metric};
use super::cgroup::Controller;
use super::command::{self, Places};
use super::external::{Outside, Program};
use super::janitor::Janitor;
use super::rival::Rival;
use super::swap::{self, SwapFile};
use crate::cli::bench::Nodes;
use crate::launch::helper::{self, Finished};
use crate::launch::kernel_program::{self, Report};
use crate::sample::{Outcome, median};
use anyhow::{Context, Result, bail};
use nearfar_kernels::report::Repetition;
use serde::Serialize;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Why a run failed whose data was wrong.
pub const WRONG: &str = "WRONG DATA";

/// Everything needed to run cases.
#[derive(Debug)]
pub struct Runner {
    places: Places,
    threads: usize,
    limit: Duration,
    controller: Result<Controller, String>,
    // Before the janitor: fields are dropped in this order.
    swap: Result<SwapFile, String>,
    _janitor: Option<Janitor>,
}

/// What emulated far is, and the measurement it comes from.
#[derive(Clone, Debug, Serialize)]
pub struct Emulated {
    /// Triad in DRAM, bytes per second.
    pub dram_triad: f64,
    /// The option `--far` of `nearfar run`.
    pub far: String,
}

/// One run of one case under one system.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// What is compared.
    pub outcome: Outcome,
    /// Wall seconds of the whole program.
    pub seconds: f64,
    /// Most bytes of memory that it had, page cache included.
    pub peak_bytes: Option<u64>,
    /// What the program said.
    pub report: Option<Report>,
    /// The counters of `nearfar run`.
    pub stats: Option<serde_json::Value>,
}

impl Run {
    /// A counter of `nearfar run`.
    pub fn counter(&self, name: &str) -> Option<u64> {
        self.stats.as_ref()?.get("counters")?.get(name)?.as_u64()
    }

    /// Work of a finished repetition in the unit of `metric`; `None` when none was finished.
    pub fn work_of_repetition(&self, metric: Metric) -> Option<f64> {
        let repetitions = &self.report.as_ref()?.repetitions;
        repetitions.iter().find(|repetition| repetition.complete).map(|repetition| work(metric, repetition))
    }

    /// The digest, where the data was read back and the amount of work is fixed.
    pub fn checksum(&self, case: &Case) -> Option<&str> {
        let report = self.report.as_ref()?;
        let finished = case.fixed_work && report.repetitions.iter().all(|repetition| repetition.complete);
        (finished && report.verified == "right").then_some(report.checksum.as_str())
    }
}

fn work(metric: Metric, repetition: &Repetition) -> f64 {
    match metric {
        Metric::BytesPerS => repetition.bytes as f64,
        Metric::OperationsPerS(_) | Metric::FlopPerS => repetition.operations as f64,
    }
}

impl Runner {
    /// Prepares for runs with far in `far`. `swap_bytes`: size of the swap file, `None` when no case needs one. What cannot be had
    /// is remembered with its reason; see [`Runner::obstacle`].
    pub fn new(far: &Path, threads: usize, limit: Duration, swap_bytes: Option<u64>) -> Result<Self> {
        let nearfar = std::env::current_exe().context("cannot find my own executable")?;
        let places = Places {
            kernel: kernel_program::find().map_err(anyhow::Error::msg)?,
            nearfar,
            far: far.to_owned(),
            stats: std::env::temp_dir().join(format!("nearfar-bench-{}-stats.json", std::process::id())),
            outside: Outside::find(),
            emulated: None,
            nodes: None,
        };
        let controller = Controller::find().map_err(|error| format!("{error:#}"));
        let janitor = match &controller {
            Ok(controller) => Some(Janitor::start(&swap::path_in(far), &controller.prefix())?),
            Err(_) => None,
        };
        let swap = match (&controller, swap_bytes) {
            (Ok(_), Some(bytes)) => SwapFile::enable(far, bytes).map_err(|error| format!("{error:#}")),
            (Ok(_), None) => Err("not needed here".to_owned()),
            (Err(reason), _) => Err(reason.clone()),
        };
        Ok(Self { places, threads, limit, controller, swap, _janitor: janitor })
    }

    /// From now on a program is killed after `limit`.
    pub fn set_limit(&mut self, limit: Duration) {
        self.limit = limit;
    }

    /// The memory controller, if it can be used.
    pub fn controller(&self) -> Option<&Controller> {
        self.controller.as_ref().ok()
    }

    /// Measures triad in DRAM, and sets emulated far to a part of that. `triad`: the case to measure with.
    pub fn emulate(&mut self, triad: &Case) -> Result<Emulated> {
        let run = self.run(triad, Rival::Dram, None)?;
        let Outcome::Value(dram_triad) = run.outcome else { bail!("triad in DRAM gave no rate: {:?}", run.outcome) };
        Ok(Emulated { dram_triad, far: self.set_emulated(dram_triad) })
    }

    /// Sets emulated far to a part of this bandwidth of DRAM, which was measured before; returns the option `--far`.
    pub fn set_emulated(&mut self, dram_triad: f64) -> String {
        let far = format!("emu:bw={:.0},lat={EMULATED_LATENCY_US}us", dram_triad / EMULATED_SHARE);
        self.places.emulated = Some(far.clone());
        far
    }

    /// From now on cases that run between nodes run between these.
    pub fn set_nodes(&mut self, nodes: Option<Nodes>) {
        self.places.nodes = nodes;
    }

    /// This program, ready to be told what to do.
    pub fn nearfar(&self) -> Command {
        Command::new(&self.places.nearfar)
    }

    /// What starts `case` with all its data in DRAM.
    pub fn plain(&self, case: &Case) -> (PathBuf, Vec<OsString>) {
        command::command(case, Rival::Dram, &self.places, case.threads.unwrap_or(self.threads))
    }

    /// The options `--near` and `--far` of `nearfar run` of a case.
    pub fn tiers(&self, case: &Case) -> (String, OsString) {
        self.places.tiers(case)
    }

    /// Why `case` cannot run under `rival` here; `None` when it can.
    pub fn obstacle(&self, case: &Case, rival: Rival) -> Option<String> {
        if let Some(why) = case.program.recipe().and_then(|recipe| self.places.outside.missing(recipe)) {
            return Some(why);
        }
        if case.far == Far::Emulated && self.places.emulated.is_none() {
            return Some("the bandwidth of DRAM was not measured".to_owned());
        }
        match rival {
            Rival::Dram | Rival::Nearfar | Rival::Grain(_) => None,
            Rival::MappedFile | Rival::AdvisedFile => self.controller.as_ref().err().cloned(),
            Rival::Swap => self.swap.as_ref().err().cloned(),
        }
    }

    /// Runs `case` under `rival`. `full_work`: work of a whole repetition, known from another run, in the unit of the case's metric;
    /// it makes a bound of a run that was stopped.
    pub fn run(&self, case: &Case, rival: Rival, full_work: Option<f64>) -> Result<Run> {
        let threads = case.threads.unwrap_or(self.threads);
        let (program, arguments) = command::command(case, rival, &self.places, threads);
        let group = match &self.controller {
            Ok(controller) => Some(controller.create(rival.is_limited().then_some(case.near_bytes))?),
            Err(_) => None,
        };
        let mut command = match &group {
            Some(group) => group.enter(&program),
            None => Command::new(&program),
        };
        command.args(arguments).envs(case.program.environment(threads));
        let finished =
            helper::run(&mut command, self.limit).with_context(|| format!("cannot start {}", program.to_string_lossy()))?;
        if let (None, Some(group)) = (finished.status, &group) {
            group.kill_all();
        }
        let report: Option<Report> = serde_json::from_str(finished.stdout.trim()).ok();
        let stats = rival.is_nearfar().then(|| self.take_stats()).flatten();
        let peak_bytes = group.as_ref().and_then(|group| group.peak_bytes());
        let mut outcome = judge(case, &finished, report.as_ref(), full_work);
        if let (Outcome::Failed(why), Some(kills @ 1..)) = (&mut outcome, group.as_ref().and_then(|group| group.oom_kills())) {
            *why = format!("out of memory in its cgroup: the kernel killed it ({kills} kills)");
        }
        Ok(Run { outcome, seconds: finished.seconds, peak_bytes, report, stats })
    }

    /// What [`Runner::run`] starts, as one types it; the limit of memory of a rival is not in it.
    pub fn command_line(&self, case: &Case, rival: Rival) -> String {
        let places = Places { kernel: "nearfar-kernel".into(), nearfar: "nearfar".into(), ..self.places.clone() };
        let (program, arguments) = command::command(case, rival, &places, case.threads.unwrap_or(self.threads));
        let mut words = vec![quoted(&program.to_string_lossy())];
        let mut arguments = arguments.iter().map(|argument| argument.to_string_lossy());
        while let Some(argument) = arguments.next() {
            match &*argument {
                "--quiet" | "--json" => {}
                "--stats" => drop(arguments.next()),
                word => words.push(quoted(word)),
            }
        }
        words.join(" ")
    }

    /// `nearfar run --quiet` of a program with near memory of `near_bytes`, ready to start.
    pub fn nearfar_run(&self, near_bytes: u64, program: &str) -> Command {
        let mut command = Command::new(&self.places.nearfar);
        command.args(["run", "--quiet", "--near", &near_bytes.to_string(), "--far"]).arg(&self.places.far).args(["--", program]);
        command
    }

    fn take_stats(&self) -> Option<serde_json::Value> {
        let text = std::fs::read_to_string(&self.places.stats).ok()?;
        // A file left over would be taken for the next run's.
        let _ = std::fs::remove_file(&self.places.stats);
        serde_json::from_str(&text).ok()
    }
}

/// A word as a shell takes it for one word.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+%@".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// What a run is worth.
fn judge(case: &Case, finished: &Finished, report: Option<&Report>, full_work: Option<f64>) -> Outcome {
    let Some(status) = finished.status else {
        // A recipe ends itself at its limit: one that had to be killed had not begun to work.
        let began = case.program == Program::Kernel;
        return match full_work.filter(|_| case.fixed_work && began) {
            Some(work) => Outcome::Below(work / finished.seconds),
            None => Outcome::Failed(format!("killed after {:.0} s", finished.seconds)),
        };
    };
    if !status.success() {
        let mut said = finished.stderr.lines().filter(|line| !line.trim().is_empty());
        // After bad usage (2) help follows the message; after other failures the message follows warnings.
        let why = if status.code() == Some(2) { said.next() } else { said.next_back() };
        return Outcome::Failed(format!("{status}: {}", why.unwrap_or("it said nothing")));
    }
    let Some(report) = report else { return Outcome::Failed("its report cannot be read".to_owned()) };
    if report.verified == "wrong" {
        return Outcome::Failed(WRONG.to_owned());
    }
    // The first repetition warms up: it meets the state that initialisation left.
    let measured = if report.repetitions.len() > 1 { &report.repetitions[1..] } else { &report.repetitions[..] };
    let cut = measured.iter().find(|repetition| case.fixed_work && !repetition.complete);
    if let Some(cut) = cut {
        let work = full_work.unwrap_or_else(|| work(case.metric, cut));
        return Outcome::Below(work / cut.seconds);
    }
    let rates: Vec<f64> = measured.iter().map(|repetition| work(case.metric, repetition) / repetition.seconds).collect();
    median(&rates).map_or_else(|| Outcome::Failed("no repetition".to_owned()), Outcome::Value)
}

#[cfg(test)]
mod tests {
    use super::super::case::{Effort, Sizes};
    use super::super::cases::triad;
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    fn finished(status: Option<i32>, stderr: &str) -> Finished {
        Finished { status: status.map(ExitStatus::from_raw), stdout: String::new(), stderr: stderr.to_owned(), seconds: 100.0 }
    }

    fn report(repetitions: &[(f64, u64, bool)], verified: &str) -> Report {
        let repetitions =
            repetitions.iter().map(|&(seconds, bytes, complete)| Repetition { seconds, bytes, operations: 0, complete });
        Report {
            repetitions: repetitions.collect(),
            verified: verified.to_owned(),
            checksum: "0".to_owned(),
            ..Report::default()
        }
    }

    #[test]
    fn words_are_quoted_where_a_shell_would_take_them_apart() {
        assert_eq!((quoted("emu:bw=5,lat=10us").as_str(), quoted("").as_str()), ("emu:bw=5,lat=10us", "''"));
        assert_eq!(quoted("/my far; rm 'x'"), r"'/my far; rm '\''x'\'''");
    }

    #[test]
    fn only_right_and_finished_runs_count() {
        let case = triad(Sizes { data_bytes: 3000, near_bytes: 1000, effort: Effort::Full });
        let good = report(&[(9.0, 3000, true), (1.0, 3000, true), (2.0, 3000, true), (3.0, 3000, true)], "right");
        assert_eq!(judge(&case, &finished(Some(0), ""), Some(&good), None), Outcome::Value(1500.0));
        let cut = report(&[(60.0, 100, false)], "skipped");
        assert_eq!(judge(&case, &finished(Some(0), ""), Some(&cut), Some(3000.0)), Outcome::Below(50.0));
        assert_eq!(judge(&case, &finished(None, ""), None, Some(3000.0)), Outcome::Below(30.0));
        let wrong = report(&[(1.0, 3000, true)], "wrong");
        assert_eq!(judge(&case, &finished(Some(0), ""), Some(&wrong), None), Outcome::Failed("WRONG DATA".to_owned()));
        let failed = judge(&case, &finished(Some(2 << 8), "no room\nusage\n"), None, None);
        assert_eq!(failed, Outcome::Failed("exit status: 2: no room".to_owned()));
    }
}
