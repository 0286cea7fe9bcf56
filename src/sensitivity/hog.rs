//! A hog beside the program: a child that takes memory bandwidth, or as a control processor time alone, on CPUs that the program does
//! not use. It ends when its standard input does, and so never outlives this command.

use anyhow::{Context, Result, bail};
use nearfar_core::node::CpuList;
use nearfar_kernels::hog::{HogResource, HogUsage};
use nearfar_sys::affinity;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A hog at work.
#[derive(Debug)]
pub struct Hog {
    child: Child,
    // `Option`, so that the pipe can be closed before the child is waited for.
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Hog {
    /// Starts one on each CPU of `cpus`, and waits until all are at work. `bytes`: of all its arrays.
    pub fn start(kernel: &Path, cpus: &CpuList, takes: HogResource, bytes: u64) -> Result<Self> {
        let mut command = Command::new(kernel);
        command.args(["hog", "--bytes", &bytes.to_string()]);
        if takes == HogResource::Processor {
            command.arg("--processor");
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let started = affinity::confined(cpus, || command.spawn()).context("the hog cannot be confined to its CPUs")?;
        let mut child = started.with_context(|| format!("cannot start {}", kernel.display()))?;
        let (input, output) = (child.stdin.take(), child.stdout.take().context("the hog has no output")?);
        let mut hog = Self { child, input, output: BufReader::new(output) };
        let mut line = String::new();
        hog.output.read_line(&mut line).context("reading from the hog")?;
        if line.trim() != "ready" {
            bail!("the hog ended before it was at work");
        }
        Ok(hog)
    }

    /// Ends it; bytes per second that it had.
    pub fn stop(mut self) -> Result<f64> {
        self.input = None;
        let mut line = String::new();
        self.output.read_line(&mut line).context("reading from the hog")?;
        let taken: HogUsage = serde_json::from_str(&line).context("the hog ended early")?;
        Ok(taken.bytes as f64 / taken.seconds.max(1e-9))
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        self.input = None;
        // It cannot be waited for only when it has been already.
        let _ = self.child.wait();
    }
}
