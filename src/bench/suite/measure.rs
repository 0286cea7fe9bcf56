//! One run of one work on one system, by the runner of all benches.

use super::super::case::{Case, Effort, Far, Length, Limit as CaseLimit, Metric, Sizes};
use super::super::cases::triad;
use super::super::external::Program;
use super::super::rival::Rival;
use super::super::runner::{Run, Runner};
use super::works::{Repetition as Kind, Work};
use crate::files::suite::{PointRun, System};
use crate::sample::{Outcome, median};
use anyhow::Result;
use nearfar_kernels::report::Repetition;
use std::path::Path;

/// More operations than any machine does in the time: the clock ends a repetition.
const ENDLESS: [&str; 2] = ["--ops", "1000000000000"];

/// What a run is made of.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// What it runs on.
    pub system: System,
    /// Whether modes run between nodes.
    pub between_nodes: bool,
    /// The plan, for modes that place objects by one.
    pub plan: Option<&'a Path>,
    /// Threads.
    pub threads: usize,
    /// Bytes of data that are asked for.
    pub data_bytes: u64,
    /// Bytes of near; for all-DRAM the size that tiles are chosen for.
    pub near_bytes: u64,
    /// Repetitions, of which the first warms up.
    pub repetitions: usize,
    /// Longest seconds of one repetition.
    pub seconds: f64,
}

/// The case of one run.
pub fn case(work: &Work, setting: Setting<'_>) -> Case {
    // All near between nodes: the fast memory has no limit.
    let near_bytes = if setting.between_nodes && setting.system == System::Dram { 0 } else { setting.near_bytes };
    let sizes = Sizes { data_bytes: setting.data_bytes, near_bytes, effort: Effort::Full };
    let mut arguments: Vec<String> = work.arguments.iter().map(|&argument| argument.to_owned()).collect();
    if work.tiled {
        arguments.extend(["--near".to_owned(), setting.near_bytes.to_string()]);
    }
    let clocked = work.repetition == Kind::Clock;
    if clocked {
        arguments.extend(ENDLESS.map(str::to_owned));
    }
    // By the clock a few seconds tell as much as many; what near holds must settle first.
    let seconds = if clocked { (setting.seconds / 4.0).clamp(0.5, 3.0) } else { setting.seconds };
    let length = Length { repetitions: setting.repetitions, seconds: Some(seconds), runs: usize::MAX };
    Case {
        title: work.title.to_owned(),
        program: Program::Kernel,
        arguments,
        options: options(setting),
        far: match setting.system {
            _ if setting.between_nodes => Far::Nodes,
            System::Emulated => Far::Emulated,
            mode if mode.is_mode() => Far::Emulated,
            _ => Far::Directory,
        },
        threads: Some(setting.threads),
        rivals: &[],
        metric: Metric::OperationsPerS("operations"),
        fixed_work: !clocked,
        length,
        swap_length: length,
        limit: CaseLimit::None,
        goals: Vec::new(),
        ..triad(sizes)
    }
}

/// Options of `nearfar run` that make a mode.
fn options(setting: Setting<'_>) -> Vec<String> {
    let place = match (setting.system, setting.plan) {
        (system, Some(plan)) if system.has_plan() => format!("plan:{}", plan.display()),
        (System::AllFar, _) => "calls".to_owned(),
        (System::FlatInOrder, _) => "all".to_owned(),
        (System::Cache, _) => return vec!["--mode".to_owned(), "cache".to_owned()],
        _ => return Vec::new(),
    };
    let share = setting.system.cache_share();
    let mode = if share == 0.0 { "flat".to_owned() } else { format!("hybrid={share}") };
    // A plan may say that nothing is worth its place.
    let force = setting.plan.is_some().then(|| "--force".to_owned());
    ["--mode".to_owned(), mode, "--place".to_owned(), place].into_iter().chain(force).collect()
}

/// What `system` is called by the runner.
pub const fn rival(system: System, between_nodes: bool) -> Rival {
    match system {
        // As fast as it can be there: all of it near.
        System::Dram if between_nodes => Rival::Nearfar,
        System::Dram => Rival::Dram,
        System::Swap => Rival::Swap,
        System::Mmap => Rival::AdvisedFile,
        _ => Rival::Nearfar,
    }
}

/// Runs it once. `full_work`: operations of a whole repetition, where they are known: they make a limit of a run that was stopped.
pub fn run(runner: &Runner, work: &Work, setting: Setting<'_>, full_work: Option<f64>) -> Result<(PointRun, Facts)> {
    let case = case(work, setting);
    let run = runner.run(&case, rival(setting.system, setting.between_nodes), full_work)?;
    let mut figures = figures(&case, &run);
    if work.tiled {
        // With other tiles it is another computation, which checks itself.
        figures.checksum.clear();
    }
    Ok((figures, Facts::of(&run)))
}

/// What a run says of the work rather than of its speed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// What an operation is.
    pub operation: String,
    /// Flop per byte between data and work.
    pub intensity: f64,
    /// Bytes of data, as the work made them.
    pub data_bytes: u64,
    /// Most bytes of memory that the program had.
    pub footprint_bytes: u64,
    /// Bytes between data and work in a repetition.
    pub bytes: f64,
    /// Operations of a whole repetition and its seconds, where one was finished.
    pub whole: Option<(f64, f64)>,
}

impl Facts {
    fn of(run: &Run) -> Self {
        let Some(report) = &run.report else { return Self::default() };
        let whole = report.repetitions.iter().rfind(|repetition| repetition.complete);
        let counted = report.repetitions.last();
        let intensity = counted
            .filter(|last| last.bytes > 0)
            .map(|last| last.operations as f64 * report.flop_per_operation / last.bytes as f64);
        Self {
            operation: report.operation.clone(),
            intensity: intensity.unwrap_or(0.0),
            data_bytes: report.data_bytes,
            // A program that does not say it is watched by its cgroup.
            footprint_bytes: Some(report.resident_peak_bytes).filter(|&bytes| bytes > 0).or(run.peak_bytes).unwrap_or(0),
            bytes: counted.map_or(0.0, |last| last.bytes as f64),
            whole: whole.map(|repetition| (repetition.operations as f64, repetition.seconds)),
        }
    }
}

fn figures(case: &Case, run: &Run) -> PointRun {
    let seconds_of = |name: &str| run.counter(name).unwrap_or(0) as f64 / 1e9;
    let measured = PointRun {
        wall_s: run.seconds,
        stall_s: seconds_of("stall_ns"),
        far_s: seconds_of("stall_far_ns"),
        bytes_in: run.counter("bytes_in").unwrap_or(0),
        bytes_out: run.counter("bytes_out").unwrap_or(0),
        checksum: run.checksum(case).unwrap_or_default().to_owned(),
        ..PointRun::default()
    };
    let repetitions = run.report.as_ref().map_or(&[][..], |report| &report.repetitions[..]);
    // The first one warms up.
    let counted = if repetitions.len() > 1 { &repetitions[1..] } else { repetitions };
    let middle = |figure: fn(&Repetition) -> f64| median(&counted.iter().map(figure).collect::<Vec<_>>()).unwrap_or(0.0);
    let parts = run.report.as_ref().map(|report| report.parts.clone()).unwrap_or_default();
    match &run.outcome {
        // Killed: its repetitions may have ended long before.
        Outcome::Below(_) if repetitions.is_empty() => {
            PointRun { failed: Some(format!("it did not end, and was killed after {:.0} s", run.seconds)), ..measured }
        }
        Outcome::Failed(why) => PointRun { failed: Some(why.clone()), ..measured },
        Outcome::Value(rate) => {
            let (seconds, bytes_per_s) = (middle(|one| one.seconds), middle(|one| one.bytes as f64 / one.seconds));
            PointRun { rate: *rate, seconds, bytes_per_s, parts, ..measured }
        }
        // The rate that a whole repetition would have had if it had ended now.
        Outcome::Below(rate) => {
            let seconds = repetitions.last().map_or(run.seconds, |cut| cut.seconds);
            PointRun { rate: *rate, seconds, stopped: true, ..measured }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::works::WORKS;
    use super::*;
    use crate::launch::kernel_program::Report;

    fn setting(system: System) -> Setting<'static> {
        let (data_bytes, near_bytes) = (96 << 20, 32 << 20);
        let plan = system.has_plan().then_some(Path::new("p"));
        Setting { system, between_nodes: false, plan, threads: 2, data_bytes, near_bytes, repetitions: 2, seconds: 6.0 }
    }

    fn work(name: &str) -> &'static Work {
        WORKS.iter().find(|work| work.name == name).expect("a work")
    }

    #[test]
    fn tiles_are_for_near_and_clocked_works_end_by_the_clock() {
        let gemm = case(work("gemm-tiled"), setting(System::Disk));
        assert_eq!(gemm.arguments, ["gemm", "--near", &(32u64 << 20).to_string()]);
        let random = case(work("random"), setting(System::Emulated));
        assert!(random.arguments.contains(&"--ops".to_owned()) && !random.fixed_work && random.far == Far::Emulated);
        assert_eq!((random.length.seconds, random.length.repetitions), (Some(1.5), 2));
    }

    #[test]
    fn modes_are_options_of_a_run_over_emulated_far_or_between_nodes() {
        let options = |system| case(work("triad"), setting(system)).options.join(" ");
        assert_eq!(options(System::AllFar), "--mode flat --place calls");
        assert_eq!(options(System::Cache), "--mode cache");
        assert_eq!(options(System::FlatInOrder), "--mode flat --place all");
        assert_eq!(options(System::FlatByPlan), "--mode flat --place plan:p --force");
        assert_eq!(options(System::Hybrid25), "--mode hybrid=0.25 --place plan:p --force");
        assert_eq!(options(System::Disk), "");
        assert_eq!(case(work("triad"), setting(System::Hybrid75)).far, Far::Emulated);
        let near = Setting { between_nodes: true, ..setting(System::Dram) };
        assert_eq!((case(work("triad"), near).far, rival(System::Dram, true)), (Far::Nodes, Rival::Nearfar));
    }

    #[test]
    fn figures_are_of_the_repetitions_after_the_first() {
        let repetition = |seconds, complete| Repetition { seconds, bytes: 300, operations: 100, complete };
        let report = |repetitions| Report {
            operation: "elements".to_owned(),
            repetitions,
            verified: "right".to_owned(),
            checksum: "ab".to_owned(),
            flop_per_operation: 6.0,
            resident_peak_bytes: 77,
            data_bytes: 66,
            ..Report::default()
        };
        let stats =
            serde_json::json!({ "counters": { "stall_ns": 2_000_000_000u64, "stall_far_ns": 500_000_000, "bytes_in": 9 } });
        let run = |outcome, repetitions| Run {
            outcome,
            seconds: 9.0,
            peak_bytes: Some(5),
            report: Some(report(repetitions)),
            stats: Some(stats.clone()),
        };
        let case = case(work("triad"), setting(System::Disk));
        let good = run(Outcome::Value(50.0), vec![repetition(9.0, true), repetition(2.0, true)]);
        let got = figures(&case, &good);
        assert_eq!((got.rate, got.seconds, got.bytes_per_s, got.stall_s, got.far_s), (50.0, 2.0, 150.0, 2.0, 0.5));
        assert_eq!((got.checksum.as_str(), got.bytes_in, got.wall_s, got.stopped), ("ab", 9, 9.0, false));
        let facts = Facts::of(&good);
        assert_eq!((facts.intensity, facts.data_bytes, facts.footprint_bytes, facts.whole), (2.0, 66, 77, Some((100.0, 2.0))));
        let cut = figures(&case, &run(Outcome::Below(3.0), vec![repetition(6.0, false)]));
        assert!(cut.stopped && cut.rate == 3.0 && cut.seconds == 6.0 && cut.checksum.is_empty());
        let killed = figures(&case, &run(Outcome::Below(3.0), Vec::new()));
        assert!(!killed.stopped && killed.failed.as_deref() == Some("it did not end, and was killed after 9 s"));
        let failed = figures(&case, &run(Outcome::Failed("no".to_owned()), Vec::new()));
        assert_eq!((failed.failed.as_deref(), failed.rate), (Some("no"), 0.0));
    }
}
