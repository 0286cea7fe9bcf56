//! Where nearfar-kernel is: beside this executable, as cargo builds and packages install them, or unpacked by it; and what it reports.

use super::bundle;
use nearfar_kernels::report::Repetition;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The program of the workloads.
///
/// # Errors
/// What is missing and how to get it, for people.
pub fn find() -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|error| format!("cannot find my own executable: {error}"))?;
    let dir = own.parent().unwrap_or(Path::new("/"));
    bundle::unpack(dir).map_err(|error| error.to_string())?;
    let places = [".", bundle::PLACE].map(|place| dir.join(place).join("nearfar-kernel"));
    let found = places.into_iter().find(|path| path.is_file()).and_then(|path| path.canonicalize().ok());
    let missing =
        || format!("{}/nearfar-kernel is missing; build all of nearfar: cargo build --release --workspace", dir.display());
    found.ok_or_else(missing)
}

/// What is read of a report of nearfar-kernel (`--json`), and of other programs that say what it says.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Report {
    /// Seconds to allocate and initialise.
    pub setup_seconds: f64,
    /// What an operation is, in the plural.
    #[serde(default)]
    pub operation: String,
    /// Bytes of data, as the work made them; 0 where it does not say.
    #[serde(default)]
    pub data_bytes: u64,
    /// In order.
    pub repetitions: Vec<Repetition>,
    /// `right`, `wrong` or `skipped`.
    pub verified: String,
    /// Digest of the data.
    pub checksum: String,
    /// Times of single operations, where those were taken: (nanoseconds, count), ascending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latencies: Vec<(u64, u64)>,
    /// Floating-point operations of one operation; 0 where the work is not arithmetic.
    #[serde(default)]
    pub flop_per_operation: f64,
    /// Most bytes of memory that the process had; 0 where it does not say.
    #[serde(default)]
    pub resident_peak_bytes: u64,
    /// Seconds of parts of the last repetition by name, where they were taken.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parts: BTreeMap<String, f64>,
}

/// Seconds of each repetition, from its report; `None`: that is no report.
pub fn seconds(report: &str) -> Option<Vec<f64>> {
    let report: Report = serde_json::from_str(report.trim()).ok()?;
    Some(report.repetitions.into_iter().map(|one| one.seconds).collect())
}
