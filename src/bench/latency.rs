//! What one fault costs: without I/O (a rescue from limbo), and from the disk, beside the device with one read at a time.
//!
//! One thread touches single pages at random and times each touch; the counters of the run tell what the touches met. For rescues
//! the pages in use are as many as near holds beside the pager's own tables: some of them are always in limbo, and no frame is ever
//! needed for anything else. Device, rescues and demand faults are measured in turn.

use super::case::{Case, Length, Limit, Metric, Sizes};
use super::cases::triad;
use super::goal::{Figure, Target, Unit, Verdict};
use super::rival::Rival;
use super::runner::{Run, Runner};
use super::times::{Percentiles, fastest, slow, slowest};
use crate::sample::Outcome;
use anyhow::{Context, Result};
use nearfar_kernels::device::DeviceFile;
use serde::Serialize;
use std::path::Path;
use std::time::Duration;

/// Title of the rows, for both figures.
const RESCUE: &str = "fault without I/O (limbo rescue), p50";
const DEMAND: &str = "demand fault from disk less the device, p50";
/// How long the device is read one page at a time.
const DEVICE_TIME: Duration = Duration::from_millis(700);
/// Goals, in microseconds. A prototype of 150 lines took 10 us for a fault without I/O.
const RESCUE_GOAL_US: f64 = 8.0;
const ADDED_GOAL_US: f64 = 10.0;

/// Faults of a run by kind (rescued, demand, late, staged), and its slow touches: a time, and how many took it.
type Counted = ([u64; 4], Vec<(u64, u64)>);

/// Faults of one kind in one run.
#[derive(Clone, Debug, Serialize)]
pub struct FaultTimes {
    /// Times of the touches that the counters make this kind of fault.
    pub times: Option<Percentiles>,
    /// Touches slower than that of a page in place.
    pub slow_touches: u64,
    /// Faults of the run by kind: rescued, demand, late, staged.
    pub counters: [u64; 4],
    /// Threads' waiting per fault by the counters, in microseconds: all faults of the run together.
    pub mean_stall_us: Option<f64>,
}

/// All rounds.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Latency {
    /// False when the file system refused direct I/O.
    pub direct: bool,
    /// The device: 4 KiB random reads, one at a time.
    pub device: Vec<Percentiles>,
    /// Faults without I/O.
    pub rescue: Vec<FaultTimes>,
    /// Faults from the disk.
    pub demand: Vec<FaultTimes>,
    /// What went wrong.
    pub faults: Vec<String>,
}

/// Touches of pages: the case that both suites build on.
pub fn touches(sizes: Sizes, title: &str, options: &[(&str, u64)], length: Length) -> Case {
    let options = options.iter().flat_map(|(option, value)| [(*option).to_owned(), value.to_string()]);
    Case {
        title: title.to_owned(),
        arguments: ["latency".to_owned()].into_iter().chain(options).collect(),
        rivals: &[Rival::Nearfar],
        metric: Metric::OperationsPerS("touches"),
        fixed_work: false,
        // Every touch is checked.
        read_back: false,
        threads: Some(1),
        length,
        limit: Limit::None,
        goals: Vec::new(),
        ..triad(sizes)
    }
}

/// Pages in use that near holds, but not all of them in the program's view: the pager keeps a 32nd of near (at most 128 MiB) for limbo
/// and free frames while single pages are touched, and half of that is left to be free. Its tables take about a 256th.
fn rescue_case(sizes: Sizes, length: Length) -> Case {
    let near = sizes.near_bytes;
    let slack = (near / 32).min(128 << 20);
    let working = near - near / 256 - slack / 2;
    let endless = 1_000_000_000_000;
    // Twice near is allocated, so that the pager comes to work; only the pages in use are touched.
    let case = touches(sizes, RESCUE, &[("--working", working), ("--ops", endless)], length);
    Case { data_bytes: 2 * near, ..case }
}

fn demand_case(sizes: Sizes, length: Length) -> Case {
    touches(sizes, DEMAND, &[("--ops", 1_000_000_000_000)], length)
}

impl FaultTimes {
    fn counted(run: &Run) -> Option<Counted> {
        let bins = &run.report.as_ref()?.latencies;
        let counter = |name| run.counter(name);
        let counters =
            [counter("faults_rescued")?, counter("faults_demand")?, counter("faults_late")?, counter("faults_staged")?];
        Some((counters, slow(bins)))
    }

    fn of(run: &Run, pick: impl Fn(&[(u64, u64)], [u64; 4]) -> Vec<(u64, u64)>) -> Option<Self> {
        let (counters, slow) = Self::counted(run)?;
        let faults = run.counter("faults")?;
        let mean_stall_us = (faults > 0).then(|| run.counter("stall_ns").map(|ns| ns as f64 / faults as f64 / 1e3)).flatten();
        Some(Self {
            times: Percentiles::of(&pick(&slow, counters)),
            slow_touches: slow.iter().map(|(_, count)| count).sum(),
            counters,
            mean_stall_us,
        })
    }

    /// As many of the fastest slow touches as the counters say were rescued.
    pub fn rescues(run: &Run) -> Option<Self> {
        Self::of(run, |slow, [rescued, ..]| fastest(slow, rescued))
    }

    /// As many of the slowest touches as the counters say waited for far.
    pub fn demands(run: &Run) -> Option<Self> {
        Self::of(run, |slow, [_, demand, late, _]| slowest(slow, demand + late))
    }

    /// The figures and, beside them, what the counters say the touches were.
    pub fn line(&self) -> String {
        let [rescued, demand, late, staged] = self.counters;
        let times = self.times.map_or("no such fault".to_owned(), |times| {
            format!("p50 {:.1} us, p99 {:.1} us ({} touches)", times.p50_us, times.p99_us, times.count)
        });
        let slow = self.slow_touches;
        format!("{times}; of {slow} slow touches; counters: {rescued} rescued, {demand} demand, {late} late, {staged} staged")
    }
}

/// Why a run gave no figure; `None` when it did its work and its data were right.
pub fn failure(run: &Run) -> Option<String> {
    match &run.outcome {
        Outcome::Failed(why) => Some(why.clone()),
        Outcome::Below(_) => Some("it was stopped by its time limit".to_owned()),
        Outcome::Value(_) => None,
    }
}

impl Latency {
    /// One more round of device, rescues and demand faults. `length`: of each run; `device_bytes`: of the file that the device is
    /// measured with.
    pub fn round(&mut self, runner: &Runner, far: &Path, device_bytes: u64, sizes: Sizes, length: Length) -> Result<()> {
        let file = DeviceFile::create(far, device_bytes as usize)
            .with_context(|| format!("cannot measure the device under {}", far.display()))?;
        self.direct = file.is_direct();
        self.device.extend(Percentiles::of(&file.time_reads(DEVICE_TIME)?.bins()));
        drop(file);
        for (case, rescue) in [(rescue_case(sizes, length), true), (demand_case(sizes, length), false)] {
            let run = runner.run(&case, Rival::Nearfar, None)?;
            if let Some(why) = failure(&run) {
                self.faults.push(format!("{}: {why}", case.title));
                continue;
            }
            let times = if rescue { FaultTimes::rescues(&run) } else { FaultTimes::demands(&run) };
            match (times, rescue) {
                (None, _) => self.faults.push(format!("{}: no counters or times in its report", case.title)),
                (Some(times), true) => self.rescue.push(times),
                (Some(times), false) => self.demand.push(times),
            }
        }
        Ok(())
    }

    /// Both rows of the table of speed.
    pub fn verdicts(&self) -> Vec<Verdict> {
        let p50 = |times: &FaultTimes| times.times.map(|times| times.p50_us);
        let rescues: Vec<f64> = self.rescue.iter().filter_map(p50).collect();
        // Each round's faults less that round's device.
        let added: Vec<f64> =
            self.demand.iter().zip(&self.device).filter_map(|(own, device)| Some(p50(own)? - device.p50_us)).collect();
        let why = |what: &str| self.faults.first().cloned().unwrap_or_else(|| format!("there was no {what}"));
        vec![
            Verdict::new(
                RESCUE,
                "prototype 10 us",
                Figure::of(&rescues).ok_or_else(|| why("rescue")),
                Unit::Us,
                (Target::AtMost, RESCUE_GOAL_US),
            ),
            Verdict::new(
                DEMAND,
                "device, 1 read at a time",
                Figure::of(&added).ok_or_else(|| why("demand fault")),
                Unit::Us,
                (Target::AtMost, ADDED_GOAL_US),
            ),
        ]
    }

    /// For people: every round, and what the counters say.
    pub fn lines(&self) -> String {
        let how = if self.direct { "O_DIRECT" } else { "through the page cache: far refuses O_DIRECT" };
        let mut text = "latency of single faults, one thread, pages at random\n".to_owned();
        for device in &self.device {
            let (p50, p99) = (device.p50_us, device.p99_us);
            text += &format!("  device, 4 KiB reads, one at a time, {how}: p50 {p50:.1} us, p99 {p99:.1} us\n");
        }
        for (name, all) in [("without I/O (limbo rescue)", &self.rescue), ("demand from disk", &self.demand)] {
            all.iter().for_each(|times| text += &format!("  {name}: {}\n", times.line()));
        }
        self.faults.iter().for_each(|fault| text += &format!("  FAULT: {fault}\n"));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::kernel_program::Report;

    fn run(latencies: &[(u64, u64)], rescued: u64, demand: u64) -> Run {
        let report = Report { verified: "right".to_owned(), latencies: latencies.to_vec(), ..Report::default() };
        let counters = serde_json::json!({"counters": {
            "faults": rescued + demand, "faults_rescued": rescued, "faults_demand": demand, "faults_late": 0,
            "faults_staged": 0, "stall_ns": 1000 * (rescued + demand),
        }});
        Run { outcome: Outcome::Value(1.0), seconds: 1.0, peak_bytes: None, report: Some(report), stats: Some(counters) }
    }

    #[test]
    fn counters_say_which_touches_are_which() {
        let run = run(&[(80, 10_000), (7000, 90), (8000, 10), (95_000, 50)], 100, 50);
        let rescues = FaultTimes::rescues(&run).and_then(|faults| faults.times).expect("rescues");
        assert_eq!((rescues.p50_us, rescues.count), (7.0, 100));
        let demands = FaultTimes::demands(&run).and_then(|faults| faults.times).expect("demands");
        assert_eq!((demands.p50_us, demands.count), (95.0, 50));
        let latency = Latency {
            device: vec![Percentiles { p50_us: 80.0, p99_us: 100.0, count: 1 }],
            rescue: FaultTimes::rescues(&run).into_iter().collect(),
            demand: FaultTimes::demands(&run).into_iter().collect(),
            ..Latency::default()
        };
        let verdicts = latency.verdicts();
        assert_eq!((verdicts[0].met, verdicts[1].met), (Some(true), Some(false)));
        assert_eq!(verdicts[1].figure.expect("measured").median, 15.0);
    }

    #[test]
    fn without_faults_there_is_no_figure() {
        let verdicts =
            Latency { rescue: FaultTimes::rescues(&run(&[(80, 10)], 0, 0)).into_iter().collect(), ..Latency::default() }
                .verdicts();
        assert!(verdicts.iter().all(|verdict| verdict.met.is_none() && verdict.missing.is_some()));
    }
}
