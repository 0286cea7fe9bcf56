//! What a bench has measured so far, and the JSON file that keeps it.
//!
//! Invariant: the file on disk is whole at any moment; it is replaced after each step, since a later failure would lose the rest.

use super::bound::{Bound, Device};
use super::case::{Case, Metric};
use super::conditions::Conditions;
use super::goal::{Baseline, Figure, Goal, Target, Verdict};
use super::latency::Latency;
use super::metadata::Metadata;
use super::rival::{GRAINS, Rival};
use super::runner::{Emulated, Run, WRONG};
use super::startup::Startup;
use crate::cli::bench::Suite;
use crate::files::output::replace;
use crate::sample::{Outcome, Summary};
use anyhow::{Context, Result};
use serde::Serialize;
use std::path::Path;

/// Version of the file's form; grows when a field changes its meaning or goes.
pub const VERSION: u32 = 2;

/// Everything.
#[derive(Clone, Debug, Serialize)]
pub struct Results {
    /// See [`VERSION`].
    pub version: u32,
    /// Version of nearfar.
    pub nearfar: &'static str,
    /// Seconds since 1970 when the bench began.
    pub started_unix_s: u64,
    /// Where.
    pub conditions: Conditions,
    /// Threads of each workload.
    pub threads: usize,
    /// What emulated far was, if it was needed.
    pub emulated: Option<Emulated>,
    /// Cases in the order that they ran in.
    pub cases: Vec<CaseResults>,
    /// Start-up times, if measured.
    pub startup: Option<Startup>,
    /// Latencies of faults, if measured.
    pub latency: Option<Latency>,
    /// The pager's tables, if measured.
    pub metadata: Option<Metadata>,
    /// What was aimed at, and what came out.
    pub verdicts: Vec<Verdict>,
}

/// All runs of one case.
#[derive(Clone, Debug, Serialize)]
pub struct CaseResults {
    /// Its suite.
    pub suite: Suite,
    /// What it measures.
    pub title: String,
    /// Bytes of data.
    pub data_bytes: u64,
    /// Bytes of near.
    pub near_bytes: u64,
    /// Unit of all rates.
    pub metric: Metric,
    /// Per system, in order.
    pub rows: Vec<Row>,
    /// The device between the runs.
    pub device: Device,
    /// The hardware's limit, if known.
    pub bound: Option<Bound>,
}

/// The runs of one system.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The system.
    pub rival: Rival,
    /// Why it cannot run here.
    pub obstacle: Option<String>,
    /// In order.
    pub runs: Vec<Run>,
}

impl CaseResults {
    /// No runs yet.
    pub fn new(case: &Case) -> Self {
        Self {
            suite: case.suite,
            title: case.title.clone(),
            data_bytes: case.data_bytes,
            near_bytes: case.near_bytes,
            metric: case.metric,
            rows: case.rivals.iter().map(|&rival| Row { rival, obstacle: None, runs: Vec::new() }).collect(),
            device: Device::default(),
            bound: None,
        }
    }

    /// The row of `rival`.
    pub fn row(&self, rival: Rival) -> Option<&Row> {
        self.rows.iter().find(|row| row.rival == rival)
    }

    /// The runs of `rival` put together.
    pub fn summary(&self, rival: Rival) -> Summary {
        self.row(rival).map_or(Summary::Nothing, Row::summary)
    }

    /// Most bytes that a run of nearfar read from far; `None` without counters.
    pub fn most_read(&self) -> Option<u64> {
        self.row(Rival::Nearfar)?.runs.iter().filter_map(|run| run.counter("bytes_in")).max()
    }

    /// Each goal of `case` and what came out.
    pub fn verdicts(&self, case: &Case) -> Vec<Verdict> {
        let verdict = |goal: &Goal| {
            let figure = match goal.against {
                Baseline::Rival(rival) => self.ratio_to(rival),
                Baseline::BestGrain => self.ratio_to(self.best_grain()),
                Baseline::Bound => self.share_of_bound(),
            };
            Verdict::new(&case.title, goal.label(), figure, goal.unit, (Target::AtLeast, goal.least))
        };
        case.goals.iter().map(verdict).collect()
    }

    /// nearfar's rate by that of `rival`: of the medians, and the spread of the ratios within rounds.
    fn ratio_to(&self, rival: Rival) -> Result<Figure, String> {
        let ours = self.summary(Rival::Nearfar).median().ok_or_else(|| self.why_none(Rival::Nearfar))?;
        match self.summary(rival) {
            Summary::Nothing => Err(self.why_none(rival)),
            Summary::Below { bound, .. } => {
                let ratio = ours / bound;
                Ok(Figure { median: ratio, min: ratio, max: ratio, at_least: true })
            }
            Summary::Measured { median, .. } => {
                let of = |rival| self.row(rival).map_or(&[][..], |row| &row.runs[..]);
                let rounds = of(Rival::Nearfar).iter().zip(of(rival));
                let ratios: Vec<f64> = rounds
                    .filter_map(|(a, b)| match (&a.outcome, &b.outcome) {
                        (Outcome::Value(a), Outcome::Value(b)) => Some(a / b),
                        _ => None,
                    })
                    .collect();
                let ratio = ours / median;
                // The ratio of the medians may lie outside of those of the rounds, which may even be none.
                let spread = Figure::of(&[&ratios[..], &[ratio]].concat()).ok_or("no figure")?;
                Ok(Figure { median: ratio, ..spread })
            }
        }
    }

    /// The fixed grain with the highest median; without any, the one whose bound is the highest.
    fn best_grain(&self) -> Rival {
        let rate = |rival: &Rival| match self.summary(*rival) {
            Summary::Measured { median, .. } => (2, median),
            Summary::Below { bound, .. } => (1, bound),
            Summary::Nothing => (0, 0.0),
        };
        let higher = |a: &Rival, b: &Rival| rate(a).partial_cmp(&rate(b)).unwrap_or(std::cmp::Ordering::Equal);
        GRAINS.into_iter().filter(|&grain| self.row(grain).is_some()).max_by(higher).unwrap_or(GRAINS[0])
    }

    /// nearfar's rate as a share of the bound.
    fn share_of_bound(&self) -> Result<Figure, String> {
        let bound = self.bound.as_ref().ok_or("no bound could be measured")?.rate;
        match self.summary(Rival::Nearfar) {
            Summary::Measured { median, min, max, .. } => {
                Ok(Figure { median: median / bound, min: min / bound, max: max / bound, at_least: false })
            }
            _ => Err(self.why_none(Rival::Nearfar)),
        }
    }

    /// Why `rival` has no rate.
    fn why_none(&self, rival: Rival) -> String {
        let Some(row) = self.row(rival) else { return "not compared".to_owned() };
        let failed = row.runs.iter().find_map(|run| if let Outcome::Failed(why) = &run.outcome { Some(why) } else { None });
        let stopped = row.runs.iter().any(|run| matches!(run.outcome, Outcome::Below(_)));
        row.obstacle.clone().or_else(|| failed.map(|why| format!("failed: {why}"))).unwrap_or_else(|| {
            format!("{} {}", rival.name(), if stopped { "did not end within its time" } else { "was not run" })
        })
    }

    /// Work of a finished repetition of any run, in the unit of the metric.
    pub fn work_of_repetition(&self) -> Option<f64> {
        self.rows.iter().flat_map(|row| &row.runs).find_map(|run| run.work_of_repetition(self.metric))
    }

    /// What rivals could not do, each reason once.
    pub fn failures_of_rivals(&self) -> Vec<String> {
        let mut failures = Vec::new();
        for row in self.rows.iter().filter(|row| !row.rival.must_succeed()) {
            let whys = row.runs.iter().filter_map(|run| if let Outcome::Failed(why) = &run.outcome { Some(why) } else { None });
            failures.extend(whys.map(|why| format!("{}: {why}", row.rival.name())));
        }
        failures.dedup();
        failures
    }

    /// Everything that makes nearfar's figures worthless: failed runs, and digests that differ between systems.
    pub fn faults(&self, case: &Case) -> Vec<String> {
        let mut faults = Vec::new();
        let mut digest: Option<(&str, Rival)> = None;
        for row in &self.rows {
            for run in &row.runs {
                let fatal = |why: &str| row.rival.must_succeed() || row.rival.is_nearfar() && why == WRONG;
                if let Outcome::Failed(why) = &run.outcome
                    && fatal(why)
                {
                    faults.push(format!("{}: {why}", row.rival.name()));
                }
                // Kernel swap does not read its data back, so all digests are of the same number of repetitions.
                let Some(own) = run.checksum(case) else { continue };
                let (first, rival) = *digest.get_or_insert((own, row.rival));
                if own != first {
                    faults.push(format!("{} and {} computed different data ({own}, {first})", row.rival.name(), rival.name()));
                }
            }
        }
        faults.dedup();
        faults
    }
}

impl Row {
    /// The runs put together.
    pub fn summary(&self) -> Summary {
        let outcomes: Vec<Outcome> = self.runs.iter().map(|run| run.outcome.clone()).collect();
        Summary::of(&outcomes)
    }

    /// Highest peak of memory of any run, bytes.
    pub fn peak_bytes(&self) -> Option<u64> {
        self.runs.iter().filter_map(|run| run.peak_bytes).max()
    }
}

impl Results {
    /// Replaces the file at `path`, making its directory if there is none.
    pub fn save(&self, path: &Path) -> Result<()> {
        if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
            std::fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
        }
        let text = serde_json::to_string_pretty(self).context("cannot write the results as JSON")?;
        replace(path, &(text + "\n")).with_context(|| format!("cannot write {}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::case::{Effort, Sizes};
    use super::super::cases::triad;
    use super::super::grain_cases::grain_cases;
    use super::*;

    /// A grain that was stopped is not the best, and one that alone came to an end is.
    #[test]
    fn the_best_grain_is_the_one_with_the_highest_rate() {
        let case = grain_cases(Sizes { data_bytes: 720 << 20, near_bytes: 240 << 20, effort: Effort::Quick }).remove(0);
        let mut results = CaseResults::new(&case);
        let mut set =
            |rival, outcome| results.rows.iter_mut().find(|row| row.rival == rival).expect("a row").runs = vec![run(outcome)];
        set(Rival::Nearfar, Outcome::Value(19.0));
        set(Rival::Grain(4), Outcome::Below(90.0));
        set(Rival::Grain(64), Outcome::Value(20.0));
        set(Rival::Grain(256), Outcome::Value(5.0));
        let verdict = results.verdicts(&case).remove(0);
        assert_eq!((verdict.figure.expect("measured").median, verdict.met), (0.95, Some(true)));
        // All were stopped: nearfar is that much faster than the best of them can be.
        for row in results.rows.iter_mut().filter(|row| row.rival.grain().is_some()) {
            row.runs = vec![run(Outcome::Below(if row.rival == Rival::Grain(64) { 38.0 } else { 1.0 }))];
        }
        let figure = results.verdicts(&case).remove(0).figure.expect("a bound");
        assert_eq!((figure.median, figure.at_least), (0.5, true));
    }

    fn run(outcome: Outcome) -> Run {
        Run { outcome, seconds: 1.0, peak_bytes: None, report: None, stats: None }
    }

    #[test]
    fn ratios_are_taken_within_rounds_and_gaps_say_why() {
        let case = triad(Sizes { data_bytes: 3000, near_bytes: 1000, effort: Effort::Full });
        let mut results = CaseResults::new(&case);
        let mut set = |rival, rates: &[f64]| {
            let row = results.rows.iter_mut().find(|row| row.rival == rival).expect("a row");
            row.runs = rates.iter().map(|&rate| run(Outcome::Value(rate))).collect();
        };
        set(Rival::Nearfar, &[10.0, 20.0, 30.0]);
        set(Rival::MappedFile, &[10.0, 10.0, 40.0]);
        let verdicts = results.verdicts(&case);
        let mapped = verdicts[1].figure.expect("measured");
        assert_eq!((mapped.median, mapped.min, mapped.max, verdicts[1].met), (2.0, 0.75, 2.0, Some(true)));
        assert_eq!(verdicts[0].missing.as_deref(), Some("kernel swap was not run"));
        assert_eq!(verdicts[2].missing.as_deref(), Some("no bound could be measured"));
        results.bound = Some(Bound { rate: 40.0, because: String::new() });
        results.rows.last_mut().expect("swap").obstacle = Some("needs root".to_owned());
        let verdicts = results.verdicts(&case);
        assert_eq!(verdicts[0].missing.as_deref(), Some("needs root"));
        assert_eq!((verdicts[2].figure.expect("measured").median, verdicts[2].met), (0.5, Some(false)));
    }
}
