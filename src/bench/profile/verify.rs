//! Whether predicted run times come true: programs are profiled, advised and run as advised (`nearfar advise --verify`), over emulated far
//! memory of a share of this machine's bandwidth and over a disk.

use super::programs::{Started, numpy, output_of};
use crate::files::advice::{Row, Verified};
use crate::ui::routine::Key;
use anyhow::Result;
use nearfar_core::advise::advice::Moved;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// How predictions of one program over one far tier came out.
#[derive(Serialize)]
pub struct Outcome {
    program: &'static str,
    far: String,
    near: String,
    verified: Verified,
    /// The plan's time over that of the best set of objects, less 1, where all sets were run.
    beyond_best: Option<f64>,
}

#[derive(Deserialize)]
struct Document {
    verified: Verified,
}

/// A program that always does the same.
struct Job {
    name: &'static str,
    started: Started,
    /// Near memory of the run by the plan, as `--near` takes it.
    near: &'static str,
}

pub const WAVE: &str = include_str!("../../../tests/verify/wave.c");
pub const PHASES: &str = include_str!("../../../tests/verify/phases.c");
pub const ARRAYS: &str = include_str!("../../../tests/verify/arrays.py");

fn jobs(dir: &Path, wanted: &impl Fn(&str) -> bool) -> Vec<(&'static str, Result<Job>)> {
    let wave = || Started::compiled("wave", WAVE, &["150", "64"], dir);
    let phases = || Started::compiled("phases", PHASES, &["24", "96"], dir);
    let arrays = || {
        let file = dir.join("arrays.py");
        std::fs::write(&file, ARRAYS)?;
        let command = vec![numpy()?.into(), file.into(), "150".into(), "64".into()];
        Ok(Started { command, environment: Vec::new() })
    };
    let lammps = || Started::lammps(4, dir);
    let all: [(_, &dyn Fn() -> Result<Started>, _); 4] =
        [("wave", &wave, "160M"), ("phases", &phases, "224M"), ("arrays", &arrays, "192M"), ("lammps", &lammps, "64M")];
    let chosen = all.into_iter().filter(|(name, ..)| wanted(name));
    chosen.map(|(name, start, near)| (name, start().map(|started| Job { name, started, near }))).collect()
}

/// Bytes a second that one thread reads from memory here.
fn bandwidth() -> f64 {
    let memory = vec![1u64; 32 << 20];
    let (one, other) = memory.split_at(memory.len() / 2);
    let pass = || {
        let start = Instant::now();
        // The C library's memcmp(3), as fast however this file is compiled.
        black_box(black_box(one) == other);
        start.elapsed().as_secs_f64()
    };
    let fastest = (0..5).map(|_| pass()).fold(f64::INFINITY, f64::min);
    (memory.len() * 8) as f64 / fastest
}

/// Far tiers: an eighth and a third of the bandwidth, and a disk.
fn fars(disk: Option<&Path>) -> Vec<String> {
    let bandwidth = bandwidth();
    let emulated = |part: f64| format!("emu:bw={}M,lat=10us", (bandwidth / part / 1e6).round());
    let mut fars = vec![emulated(8.0), emulated(3.0)];
    fars.extend(disk.map(|path| path.display().to_string()));
    fars
}

/// Profiles, advises and runs all of them.
pub fn measure(dir: &Path, runs: u32, sets: bool, disk: Option<&PathBuf>, wanted: impl Fn(&str) -> bool) -> Result<Vec<Outcome>> {
    let fars = fars(disk.map(PathBuf::as_path));
    let mut outcomes = Vec::new();
    println!("program  far                     run        predicted       measured   error");
    for (name, job) in jobs(dir, &wanted) {
        let profiled = job.and_then(|job| {
            let profile = dir.join(format!("{name}.nfprof"));
            // These run for seconds only: too few looks at the usual rate.
            nearfar(&job, ["profile", "--precise", "-q", "-o"].map(OsString::from).into_iter().chain([profile.clone().into()]))?;
            Ok((job, profile))
        });
        let (job, profile) = match profiled {
            Ok(profiled) => profiled,
            Err(error) => {
                println!("{name:8} left out: {error:#}");
                continue;
            }
        };
        for far in &fars {
            match verified(&job, &profile, far, runs, sets, dir) {
                Ok(outcome) => outcomes.push(outcome),
                Err(error) => println!("{name:8} {far}: {error:#}"),
            }
        }
    }
    summarise(&outcomes);
    Ok(outcomes)
}

/// Runs `nearfar` on the program of a job.
fn nearfar(job: &Job, arguments: impl Iterator<Item = OsString>) -> Result<String> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(arguments).arg("--").args(&job.started.command);
    output_of(command.envs(job.started.environment.iter().map(|(name, value)| (name, value))))
}

fn verified(job: &Job, profile: &Path, far: &str, runs: u32, sets: bool, dir: &Path) -> Result<Outcome> {
    let json = dir.join("verified.json");
    let mut arguments: Vec<OsString> = vec!["advise".into(), profile.into()];
    let options = ["--near", job.near, "--far", far, "--verify", "--runs", &runs.to_string()];
    arguments.extend(options.map(OsString::from));
    arguments.extend(sets.then(|| OsString::from("--sets")));
    arguments.extend([OsString::from("--json"), json.clone().into()]);
    nearfar(job, arguments.into_iter())?;
    let document: Document = serde_json::from_slice(&std::fs::read(&json)?)?;
    for row in &document.verified.rows {
        println!(
            "{:8} {far:22}  {:20} {:6.2} s ({:5.2} .. {:5.2})  {:6.2} s  {:+6.1} %",
            job.name,
            row.name,
            row.predicted.value,
            row.predicted.low,
            row.predicted.high,
            row.median,
            100.0 * row.error
        );
    }
    for row in &document.verified.rows {
        if let (Some(said), Some(seen)) = (row.predicted_moved, row.measured_moved) {
            let pair = |moved: Moved| format!("{:.2} GB in, {:.2} GB out", moved.read / 1e9, moved.written / 1e9);
            println!("{:8} {far:22}  {} from and to far: {} for {}", job.name, row.name, pair(said), pair(seen));
        }
    }
    document.verified.rows.iter().filter_map(by_routine).for_each(|line| println!("{:8} {far:22}  {line}", job.name));
    let Verified { gain_share, bytes_share, .. } = &document.verified;
    println!(
        "{:8} {far:22}  the plan has {:.0} % of the gain with {:.0} % of the bytes",
        job.name,
        100.0 * gain_share,
        100.0 * bytes_share
    );
    let beyond_best = document.verified.against_best.as_ref().map(|found| found.plan / found.best - 1.0);
    if let Some(beyond) = beyond_best {
        println!("{:8} {far:22}  the plan takes {:+.1} % against the best of all sets that fit", job.name, 100.0 * beyond);
    }
    Ok(Outcome { program: job.name, far: far.to_owned(), near: job.near.to_owned(), verified: document.verified, beyond_best })
}

/// Routines in the line of a run.
const ROUTINES: usize = 3;

/// "All far by routine: sum_of +5 % of 3.1 s, ...": the largest ones. `None` where they are not known.
fn by_routine(row: &Row) -> Option<String> {
    let key = Key::of([row.routines.as_slice()].into_iter());
    let (said, seen) = (key.parts(&row.routines, |one| one.predicted)?, key.parts(&row.routines, |one| one.measured)?);
    let parts = key.names().zip(said.iter().zip(&seen)).take(ROUTINES);
    let parts: Vec<String> = parts.map(|(name, (said, seen))| format!("{name} {said:.2} s for {seen:.2} s")).collect();
    (!parts.is_empty()).then(|| format!("{} by routine: {}", row.name, parts.join(", ")))
}

fn summarise(outcomes: &[Outcome]) {
    let rows = || outcomes.iter().flat_map(|outcome| &outcome.verified.rows);
    let all = rows().count();
    let close = rows().filter(|row| row.error.abs() <= 0.1).count();
    let held = rows().filter(|row| (row.predicted.low..=row.predicted.high).contains(&row.median)).count();
    println!("\npredicted within 10 % of measured    {close} of {all}");
    println!("measured within the 90 % interval    {held} of {all}");
}
