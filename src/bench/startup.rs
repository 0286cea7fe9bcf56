//! What starting a program under nearfar adds: /bin/true, plain and under `nearfar run`, in turn.
//!
//! A whole process is timed, from spawn to the end of waiting. Does not use the workloads.

use super::goal::{Figure, Target, Unit, Verdict};
use super::runner::Runner;
use crate::sample::median;
use anyhow::{Context, Result, bail};
use serde::Serialize;
use std::process::{Command, Stdio};
use std::time::Instant;

const PROGRAM: &str = "/bin/true";
/// What nearfar may add, in milliseconds.
const GOAL_MS: f64 = 15.0;

/// Wall seconds of each run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Startup {
    /// Plain.
    pub plain: Vec<f64>,
    /// Under `nearfar run`.
    pub nearfar: Vec<f64>,
}

impl Startup {
    /// Runs `pairs` pairs, after a few that warm up.
    pub fn measure(runner: &Runner, near_bytes: u64, pairs: usize) -> Result<Self> {
        let mut startup = Self::default();
        for pair in 0..pairs + 3 {
            let plain = time(&mut Command::new(PROGRAM))?;
            let nearfar = time(&mut runner.nearfar_run(near_bytes, PROGRAM))?;
            if pair >= 3 {
                startup.plain.push(plain);
                startup.nearfar.push(nearfar);
            }
        }
        Ok(startup)
    }

    /// Difference of the medians in seconds; `None` without runs.
    pub fn added(&self) -> Option<f64> {
        Some(median(&self.nearfar)? - median(&self.plain)?)
    }

    /// The row of the table of speed: the difference of the medians, and the spread of the pairs' differences.
    pub fn verdict(measured: Result<&Self, String>) -> Verdict {
        let figure = measured.and_then(|startup| {
            let pairs = startup.nearfar.iter().zip(&startup.plain);
            let differences: Vec<f64> = pairs.map(|(nearfar, plain)| 1e3 * (nearfar - plain)).collect();
            let spread = Figure::of(&differences).ok_or("no runs")?;
            Ok(Figure { median: 1e3 * startup.added().ok_or("no runs")?, ..spread })
        });
        Verdict::new("start-up added to a short program", "the same alone", figure, Unit::Ms, (Target::AtMost, GOAL_MS))
    }
}

fn time(command: &mut Command) -> Result<f64> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    let status = command.status().with_context(|| format!("cannot start {}", command.get_program().to_string_lossy()))?;
    let seconds = start.elapsed().as_secs_f64();
    if !status.success() {
        bail!("{} under test ended with {status}", command.get_program().to_string_lossy());
    }
    Ok(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_is_the_difference_of_the_medians() {
        let startup = Startup { plain: vec![0.001, 0.001, 0.002], nearfar: vec![0.005, 0.030, 0.006] };
        let verdict = Startup::verdict(Ok(&startup));
        let figure = verdict.figure.expect("measured");
        assert!((figure.median - 5.0).abs() < 1e-9 && (figure.max - 29.0).abs() < 1e-9 && verdict.met == Some(true));
        assert_eq!(Startup::verdict(Err("broken".to_owned())).missing.as_deref(), Some("broken"));
    }
}
