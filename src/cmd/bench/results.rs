//! What a bench has measured so far, and the JSON file that keeps it.
//!
//! Invariant: the file on disk is whole at any moment; it is replaced after each step, since a later failure would lose the rest.

use super::bound::{Bound, Device};
use super::case::{Case, Metric, Suite};
use super::conditions::Conditions;
use super::rival::Rival;
use super::runner::Run;
use super::sample::{Outcome, Summary};
use super::startup::Startup;
use anyhow::{Context, Result};
use serde::Serialize;
use std::path::Path;

/// Version of the file's form; grows when a field changes its meaning or goes.
pub const VERSION: u32 = 1;

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
    /// Cases in the order that they ran in.
    pub cases: Vec<CaseResults>,
    /// Start-up times, if measured.
    pub startup: Option<Startup>,
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
                if let (Outcome::Failed(why), true) = (&run.outcome, row.rival.must_succeed()) {
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
        let mut partial = path.as_os_str().to_owned();
        partial.push(".part");
        let text = serde_json::to_string_pretty(self).context("cannot write the results as JSON")?;
        std::fs::write(&partial, text + "\n").with_context(|| format!("cannot write {}", path.display()))?;
        std::fs::rename(&partial, path).with_context(|| format!("cannot write {}", path.display()))
    }
}
