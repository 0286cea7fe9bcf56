//! What `nearfar bench suite` writes and goes on with, and what `nearfar report` and `--compare` read.
//!
//! Data that are measured are kept run by run; medians, ratios and verdicts are computed from them wherever they are shown.

pub use crate::cli::bench::{Nodes, System};

use crate::files::output::replace;
use anyhow::Context;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// Name of the format, in the field `format`.
pub const FORMAT: &str = "nearfar-suite";
/// Version of the format; grows when a field changes its meaning or goes.
pub const VERSION: u64 = 1;

/// A suite, finished or not.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct SuiteFile {
    /// [`FORMAT`].
    pub format: String,
    /// See [`VERSION`].
    pub version: u64,
    /// Version and commit of nearfar: `0.1.0 (34f6956)`, `0.1.0 (34f6956, changed)` for a build of a changed tree.
    pub nearfar: String,
    /// Seconds since 1970 when it began.
    pub started_unix_s: u64,
    /// The machine and the state of it that matters here.
    pub machine: SuiteMachine,
    /// What was asked for.
    pub settings: SuiteSettings,
    /// Triad in DRAM with all threads, bytes per second; 0 before it is measured.
    pub dram_triad: f64,
    /// The disk under far, measured between the rounds.
    #[serde(default)]
    pub disk: DiskRates,
    /// Works in the order that they ran in.
    pub works: Vec<WorkResults>,
    /// What is aimed at.
    #[serde(default)]
    pub targets: Vec<Target>,
}

/// A speed that one work should have at one ratio, with the largest number of threads.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Target {
    /// Name of the work.
    pub work: String,
    /// What it runs on.
    pub system: System,
    /// Data by near.
    pub ratio: f64,
    /// Least share of the speed in all-DRAM.
    pub least: f64,
    /// What others published, in words; may be empty.
    pub published: String,
    /// Name of the work whose speed in all-DRAM counts instead of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<String>,
}

/// What came of a target.
#[derive(Clone, Debug)]
pub struct Verdict<'a> {
    /// It.
    pub target: &'a Target,
    /// Title of the work.
    pub title: &'a str,
    /// Share of the speed in all-DRAM; `None` without figures.
    pub measured: Option<Spread>,
    /// Whether it is met; `None` without figures, or when runs were stopped before they could tell.
    pub met: Option<bool>,
    /// Why there is no figure, or what the bound says of a target that was missed; may be empty.
    pub why: String,
}

/// Where it was measured.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct SuiteMachine {
    /// Processor model.
    pub cpu: String,
    /// Processors that the command may use.
    pub cpus: usize,
    /// Bytes of memory.
    pub ram: u64,
    /// Kernel release.
    pub kernel: String,
    /// Transparent huge pages: the mode in force.
    pub huge_pages: String,
    /// Where far is: directory, file system, device.
    pub far: String,
}

/// The best that was seen of a disk.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct DiskRates {
    /// Bytes per second, one pass of reads over a file.
    pub read: f64,
    /// Bytes per second, one pass of writes.
    pub write: f64,
    /// Single pages at random per second, by number of threads that wait for one each.
    pub pages: BTreeMap<usize, f64>,
    /// The file system refuses direct I/O: the figures are the page cache's.
    pub cached: bool,
}

/// What the points of a suite follow from.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct SuiteSettings {
    /// Bytes of data of each work, before the work rounds them.
    pub data_bytes: u64,
    /// Data by near.
    pub ratios: Vec<f64>,
    /// Numbers of threads.
    pub threads: Vec<usize>,
    /// Systems besides all-DRAM.
    pub systems: Vec<System>,
    /// Runs of each point.
    pub runs: usize,
    /// Longest seconds of one repetition.
    pub seconds: f64,
    /// The memories that all of it runs between; absent where near is a budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Nodes>,
}

/// One work at one size of data.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct WorkResults {
    /// Its name, as `--only` takes it.
    pub name: String,
    /// What it is, in a line.
    pub title: String,
    /// How it goes over its data, in a sentence: the reason for what is seen.
    pub access: String,
    /// Unit of an operation in the plural: `elements`, `flop`, `updates`.
    pub operation: String,
    /// Others are held against it: it is run in all-DRAM only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reference: bool,
    /// Bytes of data, as the suite asked for them.
    pub data_bytes: u64,
    /// Bytes of data, as the work made them; 0 before it has run.
    #[serde(default)]
    pub held_bytes: u64,
    /// Most bytes of memory that the program had in all-DRAM: what data by near is counted with. 0 before that has run.
    #[serde(default)]
    pub footprint_bytes: u64,
    /// Operations of a whole repetition; 0 before one was seen.
    #[serde(default)]
    pub operations: f64,
    /// Bytes between data and work in a repetition.
    #[serde(default)]
    pub traffic_bytes: f64,
    /// Repetitions of each run, of which the first warms up; 0 before their number was chosen.
    #[serde(default)]
    pub repetitions: usize,
    /// Longest seconds of one repetition.
    #[serde(default)]
    pub seconds: f64,
    /// Arithmetic intensity, flop per byte that passes between data and work; 0 where the work is not arithmetic.
    pub intensity: f64,
    /// All that was measured.
    pub points: Vec<Point>,
}

/// One work on one system with one near and number of threads.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Point {
    /// What it ran on.
    pub system: System,
    /// Threads.
    pub threads: usize,
    /// Data by near; 0 for all-DRAM, which has no limit.
    pub ratio: f64,
    /// Bytes of near; 0 for all-DRAM.
    pub near_bytes: u64,
    /// The command of one run, as one types it.
    pub command: String,
    /// Why it cannot run here; then there are no runs.
    pub obstacle: Option<String>,
    /// The limit that the medium under far sets, as a share of the speed in all-DRAM, and why; absent where none is known.
    pub bound: Option<PointBound>,
    /// In order.
    pub runs: Vec<PointRun>,
}

impl Point {
    /// Without runs.
    pub fn new(system: System, threads: usize, ratio: f64) -> Self {
        Self { system, threads, ratio, near_bytes: 0, command: String::new(), obstacle: None, bound: None, runs: Vec::new() }
    }

    /// Why a run of it gave no figure, or why it could not run.
    pub fn trouble(&self) -> Option<&str> {
        self.obstacle.as_deref().or_else(|| self.runs.iter().find_map(|run| run.failed.as_deref()))
    }
}

/// A limit and its derivation in words.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct PointBound {
    /// Speed, as a share of that in all-DRAM, at most 1.
    pub efficiency: f64,
    /// How it comes about.
    pub because: String,
}

/// One run.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct PointRun {
    /// Operations per second: the median of the repetitions after the first. With `stopped`: less than this.
    pub rate: f64,
    /// Seconds of such a repetition. With `stopped`: more than this.
    pub seconds: f64,
    /// Bytes per second between data and work.
    pub bytes_per_s: f64,
    /// The time limit ended it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
    /// Why it gave no figure: the numbers above are 0 then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// Digest of the data, where it was read back.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub checksum: String,
    /// Wall seconds of the whole program, its start and the making of its data included.
    pub wall_s: f64,
    /// Sums over threads and the whole program, under nearfar: seconds that threads waited for pages.
    #[serde(default)]
    pub stall_s: f64,
    /// Of these, seconds that they waited for far.
    #[serde(default)]
    pub far_s: f64,
    /// Bytes read from far.
    #[serde(default)]
    pub bytes_in: u64,
    /// Bytes written to far.
    #[serde(default)]
    pub bytes_out: u64,
    /// Times of parts of the work by name, seconds, where it says them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parts: BTreeMap<String, f64>,
}

/// The middle of several runs and their spread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The middle one.
    pub median: f64,
    /// The least.
    pub low: f64,
    /// The greatest.
    pub high: f64,
    /// How many.
    pub runs: usize,
    /// At least half of them were stopped: the true figure is at most the median, for rates.
    pub stopped: bool,
}

impl Spread {
    /// Of `figure` of all runs that gave one; `None` without any.
    pub fn of(runs: &[PointRun], figure: impl Fn(&PointRun) -> f64) -> Option<Self> {
        let good: Vec<&PointRun> = runs.iter().filter(|run| run.failed.is_none()).collect();
        let mut values: Vec<f64> = good.iter().map(|run| figure(run)).collect();
        values.sort_by(f64::total_cmp);
        let stopped = 2 * good.iter().filter(|run| run.stopped).count() >= good.len();
        let median = crate::sample::median(&values)?;
        Some(Self { median, low: *values.first()?, high: *values.last()?, runs: values.len(), stopped })
    }
}

/// What `bench modes` compares, in the order of the literature.
pub const MODES: [System; 7] = [
    System::AllFar,
    System::Cache,
    System::FlatInOrder,
    System::FlatByPlan,
    System::Hybrid25,
    System::Hybrid50,
    System::Hybrid75,
];

impl System {
    /// What people call it.
    pub const fn name(self) -> &'static str {
        match self {
            System::Dram => "all-DRAM",
            System::Disk => "nearfar, disk",
            System::Emulated => "nearfar, emulated far",
            System::Swap => "kernel swap",
            System::Mmap => "mmap of a file",
            System::AllFar => "all far",
            System::Cache => "cache",
            System::FlatInOrder => "flat in order",
            System::FlatByPlan => "flat by plan",
            System::Hybrid25 => "hybrid 25 %",
            System::Hybrid50 => "hybrid 50 %",
            System::Hybrid75 => "hybrid 75 %",
        }
    }

    /// Whether it runs under `nearfar run`.
    pub const fn is_nearfar(self) -> bool {
        !matches!(self, System::Dram | System::Swap | System::Mmap)
    }

    /// Whether it is one of [`MODES`].
    pub fn is_mode(self) -> bool {
        MODES.contains(&self)
    }

    /// Whether it places objects by a plan.
    pub const fn has_plan(self) -> bool {
        matches!(self, System::FlatByPlan | System::Hybrid25 | System::Hybrid50 | System::Hybrid75)
    }

    /// Share of near that is cache; the rest is filled by object.
    pub const fn cache_share(self) -> f64 {
        match self {
            System::Hybrid25 => 0.25,
            System::Hybrid50 => 0.5,
            System::Hybrid75 => 0.75,
            System::AllFar | System::FlatInOrder | System::FlatByPlan => 0.0,
            _ => 1.0,
        }
    }
}

impl SuiteFile {
    /// Replaces the file at `path`, making its directory if there is none: it is whole at any moment.
    pub fn save(&self, path: &Path) -> anyhow::Result<()> {
        let cannot = || format!("cannot write {}", path.display());
        if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
            std::fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
        }
        replace(path, &(serde_json::to_string(self).with_context(cannot)? + "\n")).with_context(cannot)
    }

    /// Each target, and what came of it.
    pub fn verdicts(&self) -> Vec<Verdict<'_>> {
        let threads = self.settings.threads.iter().copied().max().unwrap_or(1);
        self.targets.iter().filter_map(|target| self.verdict(target, threads)).collect()
    }

    fn verdict<'a>(&'a self, target: &'a Target, threads: usize) -> Option<Verdict<'a>> {
        let work = self.works.iter().find(|work| work.name == target.work)?;
        let point = work.point(target.system, threads, target.ratio);
        let other = target.against.as_ref().map(|name| self.works.iter().find(|work| work.name == *name));
        let measured = point.and_then(|point| other.unwrap_or(Some(work))?.efficiency(point));
        let met = measured.and_then(|share| match share.median >= target.least {
            // Stopped: the true share is less.
            true if share.stopped => None,
            met => Some(met),
        });
        let why = match (point, measured) {
            (None, _) => "not measured yet".to_owned(),
            (Some(point), None) => point.trouble().unwrap_or("not measured yet").to_owned(),
            // Of the work's own speed in all-DRAM.
            (Some(Point { bound: Some(bound), .. }), Some(_))
                if met == Some(false) && target.against.is_none() && bound.efficiency < target.least =>
            {
                format!("the bound is {:.0} %", 100.0 * bound.efficiency)
            }
            _ => String::new(),
        };
        Some(Verdict { target, title: &work.title, measured, met, why })
    }
}

impl WorkResults {
    /// The place of the point of these, if it was begun.
    pub fn index_of(&self, system: System, threads: usize, ratio: f64) -> Option<usize> {
        self.points.iter().position(|point| point.system == system && point.threads == threads && point.ratio == ratio)
    }

    /// The point of these, if it was begun.
    pub fn point(&self, system: System, threads: usize, ratio: f64) -> Option<&Point> {
        self.index_of(system, threads, ratio).map(|index| &self.points[index])
    }

    /// Whether the runs of `point` that ended read back the data that all-DRAM had with as many threads. `None` where that cannot be told:
    /// nothing was read back, or the data differ from run to run in all-DRAM.
    pub fn gave_same_data(&self, point: &Point) -> Option<bool> {
        let ended = |run: &&PointRun| run.failed.is_none() && !run.stopped && !run.checksum.is_empty();
        let dram = self.point(System::Dram, point.threads, 0.0).filter(|_| point.system != System::Dram)?;
        let mut right = dram.runs.iter().filter(ended).map(|run| &run.checksum);
        let first = right.next()?;
        let mut ours = point.runs.iter().filter(ended).map(|run| &run.checksum).peekable();
        ours.peek()?;
        right.all(|checksum| checksum == first).then(|| ours.all(|checksum| checksum == first))
    }

    /// Speed at `point`, of this work or of another one, as a share of this work's in all-DRAM with as many threads: of the medians; its
    /// spread is that of the shares run by run. `None` where one of them gave no figure, or all-DRAM was stopped.
    pub fn efficiency(&self, point: &Point) -> Option<Spread> {
        let dram = self.point(System::Dram, point.threads, 0.0)?;
        let (ours, all) = (Spread::of(&point.runs, |run| run.rate)?, Spread::of(&dram.runs, |run| run.rate)?);
        if all.stopped || all.median <= 0.0 {
            return None;
        }
        let rounds = point.runs.iter().zip(&dram.runs).filter(|(a, b)| a.failed.is_none() && b.rate > 0.0);
        let median = ours.median / all.median;
        let (low, high) = rounds.map(|(a, b)| a.rate / b.rate).fold((median, median), |(l, h), e| (l.min(e), h.max(e)));
        Some(Spread { median, low, high, ..ours })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(rate: f64) -> PointRun {
        PointRun { rate, ..PointRun::default() }
    }

    fn point(system: System, ratio: f64, runs: Vec<PointRun>) -> Point {
        Point { runs, ..Point::new(system, 2, ratio) }
    }

    #[test]
    fn efficiency_is_taken_by_rounds_and_stopped_runs_say_so() {
        let disk = point(System::Disk, 2.0, vec![run(4.0), run(5.0), run(9.0)]);
        let dram = point(System::Dram, 0.0, vec![run(10.0), run(20.0), run(10.0)]);
        let mut work = WorkResults { points: vec![dram, disk.clone()], ..WorkResults::default() };
        let got = work.efficiency(&disk).expect("both ran");
        assert_eq!((got.median, got.low, got.high, got.runs, got.stopped), (0.5, 0.25, 0.9, 3, false));
        let stopped = |rate| PointRun { stopped: true, ..run(rate) };
        let swap = point(System::Swap, 2.0, vec![stopped(1.0), stopped(1.0)]);
        assert!(work.efficiency(&swap).expect("an upper limit").stopped);
        let failed = PointRun { failed: Some("out of memory".to_owned()), ..PointRun::default() };
        assert_eq!(work.efficiency(&point(System::Swap, 2.0, vec![failed])), None);
        work.points.clear();
        assert_eq!(work.efficiency(&disk), None);
    }
}
