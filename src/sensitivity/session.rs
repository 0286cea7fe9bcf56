//! Runs the program and the two kernels under every condition in turn (A B A B), and times them.
//!
//! Invariant: a program that does not end with status 0 ends the session, and whatever was changed (hogs, clock) is put back by then.

use super::clock::{self, Clock};
use super::hog::Hog;
use super::plan::{Plan, Split, confined_environment};
use crate::launch::kernel_program;
use anyhow::{Context, Result, bail};
use nearfar_core::node::CpuList;
use nearfar_core::sensitivity::{Evidence, Packing, Pairs, Spread, Trial};
use nearfar_kernels::hog::HogResource;
use nearfar_sys::child::{self, Signals};
use nearfar_sys::event::wait_readable;
use nearfar_sys::usage::{UsageOf, Used, used};
use nearfar_sys::{affinity, process};
use std::ffi::OsString;
use std::fmt;
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

/// Somebody wanted the command to end.
#[derive(Debug)]
pub struct Interrupted(pub i32);

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ended by {}", child::signal_name(self.0))
    }
}

impl std::error::Error for Interrupted {}

/// The program did not end well.
#[derive(Debug)]
pub struct ProgramFailed(String);

impl fmt::Display for ProgramFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ProgramFailed {}

/// What is done around a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// All CPUs, nothing else.
    AsIs,
    /// All CPUs of half of the nodes.
    Packed,
    /// Half of the cores of each node.
    Half,
    /// The same beside a hog of processor time.
    Control,
    /// The same beside a hog of bandwidth.
    Hog,
    /// All CPUs with a lower clock.
    LowClock,
}

impl Condition {
    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::AsIs => "as it is",
            Self::Packed => "all CPUs of half of the nodes",
            Self::Half => "half of the cores",
            Self::Control => "half of the cores, beside a hog of processor time",
            Self::Hog => "half of the cores, beside a hog of bandwidth",
            Self::LowClock => "lower clock",
        }
    }
}

/// Sizes of the kernels.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Bytes of triad's arrays together, and of the hog's.
    pub bytes: u64,
    /// Steps of arithmetic, all threads together.
    pub steps: u64,
    /// Timed repetitions of each, the first of which is dropped.
    pub sweeps: u32,
}

/// One round under one condition.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Wall seconds of the program.
    pub seconds: f64,
    /// Processor seconds of the program.
    pub cpu_seconds: f64,
    triad: f64,
    compute: f64,
    /// Bytes per second of the hog.
    pub hog: Option<f64>,
    /// CPUs that were busy with something else than the program, hogs included.
    others_cpus: f64,
}

/// Everything that is fixed for all runs.
pub struct Session {
    pub kernel: PathBuf,
    pub program: PathBuf,
    pub argv: Vec<OsString>,
    pub plan: Plan,
    pub sizes: Sizes,
    pub mute: bool,
    signals: Signals,
    clock: Result<Clock, String>,
}

/// All samples, by condition.
pub struct Samples(pub Vec<(Condition, Vec<Sample>)>);

impl Session {
    /// Prepares; changes nothing yet.
    pub fn new(kernel: PathBuf, program: PathBuf, argv: Vec<OsString>, plan: Plan, sizes: Sizes, mute: bool) -> Result<Self> {
        let clock = Clock::find(Path::new(clock::CPUFREQ));
        let signals = Signals::catch().context("signals cannot be caught")?;
        Ok(Self { kernel, program, argv, plan, sizes, mute, signals, clock })
    }

    /// What can be done here.
    pub fn conditions(&self) -> Vec<Condition> {
        let mut conditions = vec![Condition::AsIs];
        conditions.extend(self.plan.packed.is_some().then_some(Condition::Packed));
        if self.plan.split.is_ok() {
            conditions.extend([Condition::Half, Condition::Control, Condition::Hog]);
        }
        conditions.extend(self.clock.is_ok().then_some(Condition::LowClock));
        conditions
    }

    /// The clock before and with `LowClock`, in MHz; why it cannot be lowered.
    pub fn clock(&self) -> Result<(u64, u64), &str> {
        self.clock.as_ref().map(Clock::mhz).map_err(String::as_str)
    }

    /// The first run: fills caches of files, and its output is passed on. Wall seconds.
    pub fn warm_up(&self) -> Result<f64> {
        Ok(self.run_program(&self.plan.all, !self.mute, "the first run")?.0)
    }

    /// Runs everything under every condition, `rounds` times.
    pub fn measure(&self, rounds: usize, mut progress: impl FnMut(usize, Condition)) -> Result<Samples> {
        let mut samples = Samples(self.conditions().into_iter().map(|condition| (condition, Vec::new())).collect());
        for round in 0..rounds {
            for (condition, of_condition) in &mut samples.0 {
                progress(round, *condition);
                of_condition.push(self.sample(*condition)?);
            }
        }
        Ok(samples)
    }

    fn split(&self) -> Result<&Split> {
        self.plan.split.as_ref().map_err(|why| anyhow::anyhow!("{why}"))
    }

    fn sample(&self, condition: Condition) -> Result<Sample> {
        let cpus = match condition {
            Condition::AsIs | Condition::LowClock => &self.plan.all,
            Condition::Packed => self.plan.packed.as_ref().context("one node")?,
            Condition::Half | Condition::Control | Condition::Hog => &self.split()?.program,
        };
        let takes = match condition {
            Condition::Control => Some(HogResource::Processor),
            Condition::Hog => Some(HogResource::Memory),
            _ => None,
        };
        let hog = match takes {
            Some(takes) => Some(Hog::start(&self.kernel, &self.split()?.hog, takes, self.sizes.bytes)?),
            None => None,
        };
        let lowered = match (&self.clock, condition) {
            (Ok(clock), Condition::LowClock) => Some(clock),
            _ => None,
        };
        lowered.map_or(Ok(()), Clock::lower)?;
        let before = busy_seconds();
        let ran = self.run_program(cpus, false, condition.words()).and_then(|(seconds, cpu_seconds)| {
            let busy = before.zip(busy_seconds()).map_or(0.0, |(before, after)| after - before);
            let others_cpus = (busy - cpu_seconds).max(0.0) / seconds.max(1e-9);
            let (triad, compute) = (self.run_kernel("triad", cpus)?, self.run_kernel("compute", cpus)?);
            Ok(Sample { seconds, cpu_seconds, triad, compute, hog: None, others_cpus })
        });
        lowered.map_or(Ok(()), Clock::restore)?;
        let rate = hog.map(Hog::stop);
        let mut sample = ran?;
        sample.hog = rate.transpose()?.filter(|_| condition == Condition::Hog);
        Ok(sample)
    }

    /// Wall and processor seconds.
    fn run_program(&self, cpus: &CpuList, show: bool, when: &str) -> Result<(f64, f64)> {
        use std::os::unix::process::CommandExt;
        let mut command = Command::new(&self.program);
        if let [name, args @ ..] = self.argv.as_slice() {
            command.arg0(name).args(args);
        }
        if cpus != &self.plan.all {
            let set = |name: &str| std::env::var(name).ok();
            for (name, value) in confined_environment(set, self.plan.all.len(), cpus.len()) {
                match value {
                    Some(value) => command.env(name, value),
                    None => command.env_remove(name),
                };
            }
        }
        command.stdin(Stdio::null());
        if !show {
            command.stdout(Stdio::null()).stderr(Stdio::null());
        }
        let used = || {
            let Used { user, system, .. } = used(UsageOf::Children);
            (user + system).as_secs_f64()
        };
        let (before, start) = (used(), Instant::now());
        let mut running = affinity::confined(cpus, || self.signals.spawn(&mut command))
            .context("the program cannot be confined to CPUs")?
            .map_err(|error| ProgramFailed(format!("{} cannot be executed: {error}", self.program.display())))?;
        let status = self.wait(&mut running)?;
        let (seconds, cpu_seconds) = (start.elapsed().as_secs_f64(), used() - before);
        if !status.success() {
            let output = if show { "" } else { " (its output was dropped)" };
            let end = match (status.code(), status.signal()) {
                (Some(code), _) => format!("status {code}"),
                (None, signal) => child::signal_name(signal.unwrap_or(0)),
            };
            return Err(ProgramFailed(format!(
                "the program ended with {end} in the run \"{when}\"{output}; runs that fail cannot be compared"
            ))
            .into());
        }
        Ok((seconds, cpu_seconds))
    }

    /// Passes signals on meanwhile.
    fn wait(&self, running: &mut std::process::Child) -> Result<ExitStatus> {
        let mut interrupted = None;
        loop {
            while let Some(arrived) = self.signals.next() {
                interrupted = Some(arrived.signal);
                // What the terminal sent has reached the program as well, which is in the same process group.
                if !arrived.from_kernel {
                    child::send(running, arrived.signal);
                }
            }
            if let Some(status) = running.try_wait().context("waiting for a program")? {
                // A program may have a handler for SIGUSR1 or SIGUSR2 and go on; the others are meant to end it, and end this command.
                let is_end = |signal: &i32| !status.success() || !child::signal_name(*signal).starts_with("SIGUSR");
                return match interrupted.filter(is_end) {
                    Some(signal) => Err(Interrupted(signal).into()),
                    None => Ok(status),
                };
            }
            wait_readable(&[self.signals.as_raw_fd()], 1000, &mut [false]);
        }
    }

    /// Median seconds of a repetition of a kernel of known nature on `cpus`; as much work on any number of them.
    fn run_kernel(&self, workload: &str, cpus: &CpuList) -> Result<f64> {
        let mut command = Command::new(&self.kernel);
        command.args([workload, "--json", "--verify", "none"]);
        for (option, value) in [
            ("--bytes", self.sizes.bytes),
            ("--ops", self.sizes.steps),
            ("--sweeps", u64::from(self.sizes.sweeps)),
            ("--threads", cpus.len() as u64),
        ] {
            command.args([option, &value.to_string()]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut running = affinity::confined(cpus, || self.signals.spawn(&mut command))
            .context("a kernel cannot be confined to CPUs")?
            .with_context(|| format!("cannot start {}", self.kernel.display()))?;
        let mut output = running.stdout.take().context("a kernel has no output")?;
        let status = self.wait(&mut running)?;
        let mut text = String::new();
        // One line: it fits in the pipe, so that the kernel did not wait for this.
        std::io::Read::read_to_string(&mut output, &mut text)?;
        if !status.success() {
            bail!("nearfar-kernel {workload}: {status}");
        }
        let seconds = kernel_program::seconds(&text).context("the report of nearfar-kernel cannot be read")?;
        Spread::of(seconds.get(1..).unwrap_or_default()).map(|spread| spread.median).context("nearfar-kernel measured nothing")
    }

    /// What was measured, in pairs.
    pub fn evidence(&self, samples: &Samples) -> Evidence {
        let split = self.plan.split.as_ref();
        let trial = |without, with, why: Option<String>| match why {
            Some(why) => Err(why),
            None => samples.trial(without, with),
        };
        let no_split = || split.err().cloned();
        let packing = if self.plan.packed.is_some() { Packing::TwiceTheNodes } else { Packing::HalfTheCores };
        let packed = if packing == Packing::TwiceTheNodes { Condition::Packed } else { Condition::AsIs };
        let as_is = samples.of(Condition::AsIs);
        let median = |values: Vec<f64>| Spread::of(&values).unwrap_or_default().median;
        Evidence {
            hog: trial(Condition::Control, Condition::Hog, no_split()),
            half: trial(packed, Condition::Half, no_split()),
            packing,
            clock: trial(Condition::AsIs, Condition::LowClock, self.clock.as_ref().err().cloned()),
            seconds: median(as_is.iter().map(|sample| sample.seconds).collect()),
            cpus_used: median(as_is.iter().map(|sample| sample.cpu_seconds / sample.seconds.max(1e-9)).collect()),
            cpus: self.plan.all.len() as u32,
            others_cpus: median(as_is.iter().map(|sample| sample.others_cpus).collect()),
            half_cpus: split.map_or(0, |split| split.program.len() as u32),
        }
    }
}

impl Samples {
    /// Those of a condition.
    pub fn of(&self, condition: Condition) -> &[Sample] {
        self.0.iter().find(|(of, _)| *of == condition).map_or(&[], |(_, samples)| samples)
    }

    fn trial(&self, without: Condition, with: Condition) -> Result<Trial, String> {
        let (without, with) = (self.of(without), self.of(with));
        let pairs = |of: fn(&Sample) -> f64| -> Pairs { without.iter().zip(with).map(|(a, b)| (of(a), of(b))).collect() };
        if without.is_empty() || with.is_empty() {
            return Err("it was not measured".into());
        }
        Ok(Trial {
            program: pairs(|sample| sample.seconds),
            triad: pairs(|sample| sample.triad),
            compute: pairs(|sample| sample.compute),
        })
    }
}

/// Seconds that all CPUs together have not been idle, stolen time included; `None` where the kernel does not say.
fn busy_seconds() -> Option<f64> {
    busy_in(&std::fs::read_to_string("/proc/stat").ok()?)
}

fn busy_in(stat: &str) -> Option<f64> {
    // Of a second; the same on all processors that nearfar runs on.
    const TICKS: f64 = 100.0;
    const IDLE_AND_IOWAIT: std::ops::Range<usize> = 3..5;
    // user, nice, system, idle, iowait, irq, softirq, steal; guests are counted in user and nice already.
    const FIELDS: usize = 8;
    let fields = stat.lines().next()?.strip_prefix("cpu ")?.split_ascii_whitespace().take(FIELDS);
    let numbers: Vec<u64> = fields.map(|field| field.parse().ok()).collect::<Option<_>>()?;
    let busy = numbers.iter().enumerate().filter(|(index, _)| !IDLE_AND_IOWAIT.contains(index)).map(|(_, ticks)| ticks);
    Some(busy.sum::<u64>() as f64 / TICKS)
}

/// Sizes for this machine: arrays of four times the last-level cache, as far as memory goes.
pub fn sizes(last_level_cache: Option<u64>, cpus: usize, smoke: bool) -> Sizes {
    const UNKNOWN_CACHE: u64 = 64 << 20;
    const LEAST: u64 = 96 << 20;
    const STEPS_PER_CPU: u64 = 4_000_000;
    if smoke {
        return Sizes { bytes: 3 << 20, steps: 10_000, sweeps: 3 };
    }
    let wanted = (last_level_cache.unwrap_or(UNKNOWN_CACHE) * 4).max(LEAST);
    // Triad's and the hog's arrays are there at a time, beside the program.
    Sizes { bytes: wanted.min(process::memory_available() / 8), steps: STEPS_PER_CPU * cpus as u64, sweeps: 15 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_that_is_not_idle() {
        assert_eq!(busy_in("cpu  100 10 50 9999 77 1 2 37 5 0\ncpu0 1 1\n"), Some(2.0));
        assert_eq!((busy_in(""), busy_in("cpu  x")), (None, None));
    }
}
