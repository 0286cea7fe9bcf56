//! What starting a program under nearfar adds: /bin/true, plain and under `nearfar run`, in turn.
//!
//! A whole process is timed, from spawn to the end of waiting. Does not use the workloads.

use super::runner::Runner;
use super::sample::median;
use anyhow::{Context, Result, bail};
use serde::Serialize;
use std::process::{Command, Stdio};
use std::time::Instant;

const PROGRAM: &str = "/bin/true";

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
