//! What `nearfar advise --json` writes, as far as it is read again: by `nearfar report` and `nearfar bench`.

use nearfar_core::advise::advice::{Moved, Times};
use nearfar_core::advise::prices::Priced;
use nearfar_core::profile::summary::Estimate;
use serde::{Deserialize, Serialize};

/// Version of the document.
pub const FORMAT: u32 = 1;

/// What is of no routine, or of one without a name.
pub const OTHER: &str = "other";

/// The document.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct AdviceFile {
    /// The program that was profiled.
    #[serde(default)]
    pub program: String,
    /// Bytes of near that were asked about.
    #[serde(default)]
    pub near_bytes: f64,
    /// The advice.
    pub advice: Advice,
    /// What sizes of near cost, where `--prices` was given.
    #[serde(default)]
    pub costs: Option<Costs>,
    /// What came of it.
    pub verified: Option<Verified>,
    /// What the user should know.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// What sizes of near cost.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Costs {
    /// What prices are in.
    pub currency: String,
    /// One for each size of the curve.
    pub sizes: Vec<Priced>,
}

/// The advice.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Advice {
    /// Objects, the largest gain first.
    #[serde(default)]
    pub items: Vec<Item>,
    /// Predictions.
    pub times: Times,
}

/// An object.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Item {
    /// Its name.
    pub name: String,
    /// Most bytes at a time.
    pub bytes: u64,
    /// Share that is near.
    pub near: f64,
    /// Seconds that it takes off the run.
    pub gain: Estimate,
    /// Why.
    pub why: String,
}

/// What `--verify` found.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Verified {
    /// One for each way to place.
    pub rows: Vec<Row>,
    /// Share of the gain of all near that the plan has, as measured.
    pub gain_share: f64,
    /// Share of the program's bytes that it puts near.
    pub bytes_share: f64,
    /// Every set of objects that fits, where that was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sets: Vec<Set>,
    /// The plan against the fastest of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against_best: Option<AgainstBest>,
    /// Why there are no measured times of routines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routines_missing: Option<String>,
}

/// One way to place, and what came of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Row {
    /// "All far", "Mixed", "All near", "only psi".
    pub name: String,
    /// What was said.
    pub predicted: Estimate,
    /// Wall seconds of each run.
    #[serde(default)]
    pub measured: Vec<f64>,
    /// Their median.
    pub median: f64,
    /// Predicted over measured, less 1.
    pub error: f64,
    /// Bytes that were said to pass between near and far; `None`: of an older nearfar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted_moved: Option<Moved>,
    /// Bytes that did, the mean of the runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_moved: Option<Moved>,
    /// The same by routine, most time first, what is of none last; both columns sum to their total. Empty: not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routines: Vec<Routine>,
}

/// A set of objects that was near.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Set {
    /// Their names.
    pub objects: Vec<String>,
    /// Wall seconds, median.
    pub median: f64,
}

/// The plan beside the set that was fastest, both run again by turns: the fastest of many single runs is so by chance in part.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AgainstBest {
    /// What the set puts near.
    pub objects: Vec<String>,
    /// Wall seconds of the set, median.
    pub best: f64,
    /// Wall seconds of the plan, median.
    pub plan: f64,
    /// Runs of each.
    pub runs: usize,
}

/// One routine in one case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Routine {
    /// Its name; [`OTHER`] without a module: everything else.
    pub function: String,
    /// File name of the program or library.
    pub module: String,
    /// Wall seconds, as was said; `None`: the profile has no times of routines.
    pub predicted: Option<f64>,
    /// Wall seconds, as seen: the mean share of the runs, of their median. `None`: not measured.
    pub measured: Option<f64>,
    /// Predicted over measured, less 1.
    pub error: Option<f64>,
}

impl Routine {
    /// The larger of what was said and seen.
    pub fn most(&self) -> f64 {
        self.predicted.unwrap_or(0.0).max(self.measured.unwrap_or(0.0))
    }

    /// It stands for what is of no routine.
    pub fn is_other(&self) -> bool {
        self.module.is_empty() && self.function == OTHER
    }
}
