//! Where nearfar-kernel is: beside this executable, as cargo builds and packages install them.

use serde::Deserialize;
use std::path::PathBuf;

/// The program of the workloads.
///
/// # Errors
/// What is missing and how to get it, for people.
pub fn find() -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|error| format!("cannot find my own executable: {error}"))?;
    let beside = own.with_file_name("nearfar-kernel");
    if !beside.is_file() {
        return Err(format!("{} is missing; build all of nearfar: cargo build --release --workspace", beside.display()));
    }
    Ok(beside)
}

#[derive(Deserialize)]
struct Repetition {
    seconds: f64,
}

#[derive(Deserialize)]
struct Report {
    repetitions: Vec<Repetition>,
}

/// Seconds of each repetition, from its report (`--json`); `None`: that is no report.
pub fn seconds(report: &str) -> Option<Vec<f64>> {
    let report: Report = serde_json::from_str(report.trim()).ok()?;
    Some(report.repetitions.into_iter().map(|one| one.seconds).collect())
}
