//! What `nearfar bench suite` writes and goes on with, and what `nearfar report` and `--compare` read.
//!
//! Data that are measured are kept run by run; medians, ratios and verdicts are computed from them wherever they are shown.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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
    /// Works in the order that they ran in.
    pub works: Vec<WorkResults>,
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
}

/// What a program runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum System {
    /// No limit: all data in DRAM.
    Dram,
    /// nearfar, far on this machine's disk
    Disk,
    /// nearfar, far emulated at an eighth of the bandwidth of DRAM
    Emulated,
    /// Memory limited by a cgroup, the rest in a swap file
    Swap,
    /// Data in a mapped file, page cache limited by a cgroup
    Mmap,
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
    /// Bytes of data, as the work made them.
    pub data_bytes: u64,
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

impl System {
    /// What people call it.
    pub const fn name(self) -> &'static str {
        match self {
            System::Dram => "all-DRAM",
            System::Disk => "nearfar, disk",
            System::Emulated => "nearfar, emulated far",
            System::Swap => "kernel swap",
            System::Mmap => "mmap of a file",
        }
    }

    /// Whether it runs under `nearfar run`.
    pub const fn is_nearfar(self) -> bool {
        matches!(self, System::Disk | System::Emulated)
    }
}

impl WorkResults {
    /// The point of these, if it was begun.
    pub fn point(&self, system: System, threads: usize, ratio: f64) -> Option<&Point> {
        self.points.iter().find(|point| point.system == system && point.threads == threads && point.ratio == ratio)
    }

    /// Speed at `point` as a share of that in all-DRAM with as many threads: of the medians; its spread is that of the shares run by
    /// run. `None` where one of them gave no figure, or all-DRAM was stopped.
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
        Point { system, threads: 2, ratio, near_bytes: 0, command: String::new(), obstacle: None, bound: None, runs }
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
