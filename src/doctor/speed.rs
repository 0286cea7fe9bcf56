//! How fast a program is here that has half of its data in near: two short works of `nearfar-kernel`, as `nearfar run` would page them,
//! beside the same in plain memory. A few seconds, and at most [`DATA_MIB`] in far.

use crate::files::private_dir::PrivateDir;
use crate::launch::helper;
use crate::launch::kernel_program::{self, Report};
use nearfar_core::units::Bytes;
use nearfar_kernels::report::Repetition;
use nearfar_sys::kernel::Denied;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Data of a work, and near. Larger data would take longer on a slow disk; smaller data are in caches.
const DATA_MIB: u64 = 96;
const NEAR_MIB: u64 = DATA_MIB / 2;
/// A work that takes longer is ended.
const LIMIT: Duration = Duration::from_secs(5);
/// Of each repetition, at most.
const REPETITION: &str = "0.4";
/// The first brings the data to where they stay; the median of the others counts.
const REPETITIONS: &str = "4";

/// What was measured of paging.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed {
    /// Times as long as in plain memory: passes over all data.
    pub sweep: f64,
    /// The same with `--encrypt`; `None` where the kernel pages, which cannot encrypt.
    pub encrypted: Option<f64>,
    /// The same of visits of pages in no order, one after the other.
    pub hops: f64,
    /// Of such a visit, half of which find their page in near.
    pub hop_us: f64,
    /// Most bytes that were in near.
    pub near_peak: u64,
}

/// Why there are no figures.
#[derive(Debug)]
pub enum Unmeasured {
    /// Nothing is paged, or what is paged does not end well.
    Broken(String),
    /// It says nothing of paging: it takes too long, or something else is missing.
    Unknown(String),
}

impl Speed {
    /// Measures it, over that directory.
    ///
    /// # Errors
    /// Why it cannot be, for people.
    pub fn measure(far: &Path, denied: Denied) -> Result<Self, Unmeasured> {
        use Unmeasured::{Broken, Unknown};
        let dir = PrivateDir::new("nearfar-doctor-").map_err(|error| Unknown(format!("no temporary directory: {error}")))?;
        let run = |work: &[&str], paged: Option<&[&str]>| {
            let kernel = kernel_program::find().map_err(Unknown)?;
            let stats = dir.path().join("stats.json");
            let mut command = Command::new(&kernel);
            if let Some(options) = paged {
                command = Command::new(std::env::current_exe().map_err(|error| Unknown(error.to_string()))?);
                command.args(["run", "--quiet", "--mode", "cache", "--near", &format!("{NEAR_MIB}M"), "--far"]).arg(far);
                command.args(["--deny", &denied.names().join(","), "--stats"]).arg(&stats).args(options).arg("--").arg(&kernel);
            }
            command.args(work).args(["--bytes", &format!("{DATA_MIB}M"), "--threads", "1", "--verify", "none", "--json"]);
            command.args(["--sweeps", REPETITIONS, "--seconds", REPETITION]);
            let finished = helper::run(&mut command, LIMIT).map_err(|error| Unknown(error.to_string()))?;
            if !finished.is_ok() {
                let problem = finished.problem(LIMIT);
                // One that was ended at the limit is only slow.
                return Err(if paged.is_some() && finished.status.is_some() { Broken(problem) } else { Unknown(problem) });
            }
            let report: Report = serde_json::from_str(finished.stdout.trim()).map_err(|error| Unknown(error.to_string()))?;
            let median = median_cost(&report.repetitions).ok_or_else(|| Unknown("nothing was measured".to_owned()))?;
            let peak = paged.and_then(|_| near_peak(&stats)).unwrap_or(0);
            Ok((median, peak))
        };
        let (sweep, hop) = (["triad"], ["chase", "--ops", "100000"]);
        let (plain_sweep, _) = run(&sweep, None)?;
        let (paged_sweep, first_peak) = run(&sweep, Some(&[]))?;
        let encrypted = run(&sweep, Some(&["--encrypt"])).ok().map(|(seconds, _)| seconds / plain_sweep);
        let (plain_hop, _) = run(&hop, None)?;
        let (paged_hop, second_peak) = run(&hop, Some(&[]))?;
        if first_peak == 0 {
            return Err(Broken("nothing was paged: the library could not be loaded into the program".to_owned()));
        }
        Ok(Self {
            sweep: paged_sweep / plain_sweep,
            encrypted,
            hops: paged_hop / plain_hop,
            hop_us: paged_hop * 1e6,
            near_peak: first_peak.max(second_peak),
        })
    }

    /// True when more than near was in memory, beyond the little that a moment takes.
    pub fn exceeds_near(&self) -> bool {
        self.near_peak > (NEAR_MIB << 20) * 11 / 10
    }

    /// In a sentence.
    pub fn words(&self) -> String {
        let near = Bytes(NEAR_MIB << 20);
        let held = match self.exceeds_near() {
            true => format!("near is not held: {} were in memory of {near}", Bytes(self.near_peak)),
            false => format!("near is held ({near})"),
        };
        let encrypted = self.encrypted.map_or(String::new(), |times| format!(" ({} with --encrypt)", rounded(times)));
        format!(
            "measured with half of the data in near and nothing computed, the worst case: passes over the data take {} times as long{encrypted}, \
             pages in no order {} times ({} us each); {held}. \"nearfar try -- PROGRAM\" tells it of your program",
            rounded(self.sweep),
            rounded(self.hops),
            rounded(self.hop_us)
        )
    }
}

/// Seconds of an operation. Of the first repetition only where there is no other: it took so long that it was ended.
fn median_cost(repetitions: &[Repetition]) -> Option<f64> {
    let mut costs: Vec<f64> = repetitions.iter().map(|one| one.seconds / one.operations.max(1) as f64).collect();
    if costs.len() > 1 {
        costs.remove(0);
    }
    costs.sort_by(f64::total_cmp);
    costs.get(costs.len() / 2).copied()
}

/// With two digits: runs differ by more than the third would tell.
fn rounded(value: f64) -> String {
    if value < 10.0 {
        return format!("{value:.1}");
    }
    let unit = 10_f64.powf(value.log10().floor() - 1.0);
    format!("{:.0}", (value / unit).round() * unit)
}

fn near_peak(stats: &Path) -> Option<u64> {
    let record: serde_json::Value = serde_json::from_slice(&std::fs::read(stats).ok()?).ok()?;
    record["counters"]["near_peak_bytes"].as_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repetition_that_was_ended_counts_where_it_is_the_only_one() {
        let of = |seconds: &[f64]| {
            let one = |&seconds: &f64| Repetition { seconds, bytes: 0, operations: 2, complete: false };
            median_cost(&seconds.iter().map(one).collect::<Vec<_>>())
        };
        assert_eq!((of(&[]), of(&[8.0]), of(&[8.0, 2.0]), of(&[8.0, 2.0, 6.0, 4.0])), (None, Some(4.0), Some(1.0), Some(2.0)));
    }

    #[test]
    fn near_that_is_not_held_is_told() {
        let speed = |mib: u64| Speed { sweep: 4.0, encrypted: Some(4.25), hops: 304.0, hop_us: 30.0, near_peak: mib << 20 };
        assert!(speed(NEAR_MIB).words().contains("near is held (48.0 MiB)"), "{}", speed(NEAR_MIB).words());
        assert!(speed(DATA_MIB).words().contains("not held: 96.0 MiB were in memory of 48.0 MiB"), "{}", speed(DATA_MIB).words());
        assert!(
            speed(NEAR_MIB).words().contains("4.0 times as long (4.2 with --encrypt), pages in no order 300 times (30 us each)")
        );
    }
}
