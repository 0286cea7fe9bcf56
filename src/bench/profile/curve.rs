//! Whether run times by near size come out as a replay of a trace predicts them: each work of the suite, and programs that the replay was
//! not fitted to, are recorded, predicted (`nearfar advise TRACE`) and run with several sizes of near.

use super::programs::{Started, numpy, output_of};
use crate::bench::suite::works::{Repetition, WORKS, Work};
use crate::files::curve::{Replayed, Size};
use crate::launch::kernel_program;
use crate::sample::median;
use anyhow::{Context, Result};
use serde::Serialize;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Data of a work, before its part.
const DATA_MIB: u64 = 192;
/// Near while visits are recorded.
const RECORD_NEAR: &str = "64M";
/// Nothing waits for it.
const RECORD_FAR: &str = "emu:bw=16G,lat=0";
/// What takes longer to record is left out: a trace of every visit of its pages is no way to know it.
const MOST_RECORDING: Duration = Duration::from_secs(120);
/// Programs that are asked to end have so long.
const ENDING: Duration = Duration::from_secs(3);
/// Seconds of a run without nearfar, about: shorter ones differ too much from each other. And repetitions at the most.
const SECONDS: f64 = 1.0;
const MOST_SWEEPS: f64 = 8.0;
/// Operations of works that go by the clock.
const OPERATIONS: &str = "30000";

/// How one program came out.
#[derive(Serialize)]
pub struct Outcome {
    program: String,
    /// Threads that works of the suite were told to take.
    threads: u32,
    /// It is none of those that the costs and the model were tried on.
    fresh: bool,
    /// Why there are no figures.
    failed: Option<String>,
    pub curve: Option<Replayed>,
}

/// One size that was measured.
struct Pair<'a> {
    size: &'a Size,
    median: f64,
    /// Half of the range of the runs, as a share of the median.
    spread: f64,
}

impl Pair<'_> {
    fn error(&self) -> f64 {
        self.size.said.seconds.value / self.median - 1.0
    }

    fn holds(&self) -> bool {
        (self.size.said.seconds.low..=self.size.said.seconds.high).contains(&self.median)
    }
}

fn of_work(work: &Work, threads: u32) -> Result<Started> {
    let threads = threads.to_string();
    let bytes = format!("{}M", DATA_MIB / work.part);
    let mut command: Vec<OsString> = vec![kernel_program::find().map_err(anyhow::Error::msg)?.into()];
    command.extend(work.arguments.iter().map(OsString::from));
    command.extend(["--bytes", &bytes, "--threads", &threads, "--verify", "none", "--json"].map(OsString::from));
    if work.tiled {
        command.extend(["--near".into(), format!("{}M", DATA_MIB / work.part / 3).into()]);
    }
    if work.repetition == Repetition::Clock {
        command.extend(["--ops", OPERATIONS].map(OsString::from));
    }
    let once = output_of(Command::new(&command[0]).args(&command[1..]).args(["--sweeps", "1"]))?;
    let seconds = kernel_program::seconds(&once).and_then(|seconds| seconds.first().copied()).unwrap_or(SECONDS);
    let sweeps = (SECONDS / seconds).ceil().clamp(1.0, MOST_SWEEPS);
    command.extend(["--sweeps".into(), sweeps.to_string().into()]);
    Ok(Started { command, environment: Vec::new() })
}

/// Programs that are no works of the suite.
fn fresh(dir: &Path) -> Vec<(&'static str, Result<Started>)> {
    let arrays = || {
        let file = dir.join("arrays.py");
        std::fs::write(&file, super::verify::ARRAYS)?;
        Ok(Started { command: vec![numpy()?.into(), file.into(), "20".into(), "48".into()], environment: Vec::new() })
    };
    let sorted = || {
        let file = dir.join("lines.txt");
        let mut state = 1u64;
        let mut text = String::new();
        for _ in 0..1_500_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            text += &format!("{:020}\n", state);
        }
        std::fs::write(&file, text)?;
        let arguments = ["--parallel=1", "-S", "200M", "-o", "/dev/null"].map(OsString::from);
        Ok(Started {
            command: ["sort".into()].into_iter().chain(arguments).chain([file.into()]).collect(),
            environment: Vec::new(),
        })
    };
    vec![
        ("wave", Started::compiled("wave", super::verify::WAVE, &["12", "48"], dir)),
        ("phases", Started::compiled("phases", super::verify::PHASES, &["4", "64"], dir)),
        ("arrays", arrays()),
        ("lammps", Started::lammps(1, dir)),
        ("sort", sorted()),
    ]
}

/// Records, predicts and runs all of them over `far`.
///
/// With `keep`, a directory, traces stay there, and programs that it has already are only predicted again.
pub fn measure(
    (dir, keep): (&Path, Option<&Path>),
    far: &str,
    threads: u32,
    runs: u32,
    wanted: impl Fn(&str) -> bool,
) -> Result<Vec<Outcome>> {
    let (dir, keep) = (keep.unwrap_or(dir), keep.is_some());
    println!("program      near   predicted (interval)         measured (spread)      error");
    let works = WORKS.iter().filter(|work| !work.reference).map(|work| (work.name, false, of_work(work, threads)));
    let others = fresh(dir).into_iter().map(|(name, started)| (name, true, started));
    let mut outcomes = Vec::new();
    for (name, is_fresh, started) in works.chain(others).filter(|(name, ..)| wanted(name)) {
        // There are two that are called sort.
        let file = format!("{name}-{}", if is_fresh { "fresh".to_owned() } else { threads.to_string() });
        let found = started.and_then(|started| one(&file, &started, far, runs, (dir, keep)));
        match &found {
            Ok(curve) => print(name, is_fresh, curve),
            Err(error) => println!("{name:12} left out: {error:#}"),
        }
        let (failed, curve) = match found {
            Ok(curve) => (None, Some(curve)),
            Err(error) => (Some(format!("{error:#}")), None),
        };
        outcomes.push(Outcome { program: name.to_owned(), threads, fresh: is_fresh, failed, curve });
    }
    println!();
    for (what, is_fresh) in [("works of the suite", false), ("programs that the model was not tried on", true)] {
        println!("{what}: {}", tally(outcomes.iter().filter(|outcome| outcome.fresh == is_fresh)));
    }
    Ok(outcomes)
}

fn one(name: &str, started: &Started, far: &str, runs: u32, (dir, keep): (&Path, bool)) -> Result<Replayed> {
    let (trace, json) = (dir.join(format!("{name}.nft")), dir.join(format!("{name}.json")));
    let environment = || started.environment.iter().map(|(name, value)| (name, value));
    let nearfar = std::env::current_exe()?;
    if keep && trace.exists() && json.exists() {
        return again(&nearfar, (&trace, &json), far);
    }
    let mut record = Command::new(&nearfar);
    record.args(["run", "--quiet", "--near", RECORD_NEAR, "--far", RECORD_FAR, "--grain", "4K", "--trace"]).arg(&trace);
    record.arg("--").args(&started.command).envs(environment());
    within(&mut record, MOST_RECORDING).context("recording it")?;
    let mut advise = Command::new(&nearfar);
    advise.arg("advise").arg(&trace).args(["--near", "64M", "--far", far, "--verify", "--runs", &runs.to_string(), "--json"]);
    advise.arg(&json).arg("--").args(&started.command).envs(environment());
    let done = output_of(&mut advise);
    if !keep || done.is_err() {
        let _ = std::fs::remove_file(&trace);
    }
    done?;
    Ok(serde_json::from_slice(&std::fs::read(&json)?)?)
}

/// What was measured, beside what is predicted now.
fn again(nearfar: &Path, (trace, json): (&Path, &Path), far: &str) -> Result<Replayed> {
    let measured: Replayed = serde_json::from_slice(&std::fs::read(json)?)?;
    let said = json.with_extension("again");
    let mut advise = Command::new(nearfar);
    advise.arg("advise").arg(trace).args(["--near", "64M", "--far", far, "--plain", &measured.plain_s.to_string(), "--json"]);
    output_of(advise.arg(&said))?;
    let mut found: Replayed = serde_json::from_slice(&std::fs::read(&said)?)?;
    let (here, before) = ((&found.far, found.sizes.len()), (&measured.far, measured.sizes.len()));
    anyhow::ensure!(here == before, "{} is of far {}", json.display(), measured.far);
    for (size, before) in found.sizes.iter_mut().zip(measured.sizes) {
        anyhow::ensure!(size.said.near == before.said.near, "{} is of other sizes of near", json.display());
        size.measured = before.measured;
    }
    Ok(found)
}

/// Runs `command` to its end, for so long at most.
fn within(command: &mut Command, limit: Duration) -> Result<()> {
    let mut running = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let start = Instant::now();
    loop {
        if let Some(status) = running.try_wait()? {
            anyhow::ensure!(status.success(), "it ended with {status}");
            return Ok(());
        }
        if start.elapsed() > limit {
            // It passes this on to the program. What is still there then is left.
            nearfar_sys::child::send(&running, nearfar_sys::child::TERMINATE);
            std::thread::sleep(ENDING);
            let _ = running.kill();
            let _ = running.wait();
            anyhow::bail!("it takes longer than {} s", limit.as_secs());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn pairs(curve: &Replayed) -> impl Iterator<Item = Pair<'_>> {
    curve.sizes.iter().filter_map(|size| {
        let median = median(&size.measured)?;
        let low = size.measured.iter().copied().fold(f64::INFINITY, f64::min);
        let high = size.measured.iter().copied().fold(0.0, f64::max);
        Some(Pair { size, median, spread: (high - low) / 2.0 / median })
    })
}

fn print(name: &str, fresh: bool, curve: &Replayed) {
    for pair in pairs(curve) {
        let said = pair.size.said.seconds;
        println!(
            "{:12} {:>4.0} %  {:7.2} s ({:.2} .. {:.2})  {:7.2} s (+- {:.0} %)  {:+6.1} %{}",
            format!("{name}{}", if fresh { " *" } else { "" }),
            100.0 * pair.size.said.near / curve.data_bytes,
            said.value,
            said.low,
            said.high,
            pair.median,
            100.0 * pair.spread,
            100.0 * pair.error(),
            if pair.holds() { "" } else { "  outside" }
        );
    }
}

/// "of 36: median error 7 %, 20 within 10 %, ...".
fn tally<'a>(outcomes: impl Iterator<Item = &'a Outcome> + Clone) -> String {
    let curves = || outcomes.clone().filter_map(|outcome| outcome.curve.as_ref());
    let all: Vec<Pair<'_>> = curves().flat_map(pairs).collect();
    let errors: Vec<f64> = all.iter().map(|pair| pair.error().abs()).collect();
    let spreads: Vec<f64> = all.iter().map(|pair| pair.spread).collect();
    let (Some(error), Some(spread)) = (median(&errors), median(&spreads)) else { return "nothing was measured".to_owned() };
    let within = |most: f64| errors.iter().filter(|error| **error <= most).count();
    let worst = errors.iter().copied().fold(0.0, f64::max);
    let held = all.iter().filter(|pair| pair.holds()).count();
    format!(
        "{} programs, {} sizes: median error {:.0} % (runs of one size differ by +- {:.0} %), {} within 10 %, {} within 25 %, worst {:.0} %; \
         intervals hold {held}",
        curves().count(),
        all.len(),
        100.0 * error,
        100.0 * spread,
        within(0.1),
        within(0.25),
        100.0 * worst
    )
}
