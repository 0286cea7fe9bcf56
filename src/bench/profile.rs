//! `nearfar bench profile`: programs whose memory traffic is known, profiled, and what the profile says beside the truth.
//!
//! The programs count for themselves what each of their objects costs (`tests/truth`), by what they do, not by measuring.

mod programs;
mod truth;
mod overhead;
mod verify;
mod misses;

use crate::cli::bench::{ProfileArgs, What};
use crate::files::nfprof;
use anyhow::{Context, Result};
use programs::Scratch;
use programs::{PROGRAMS, Program};
use serde::Serialize;
use std::path::Path;
use std::process::{Command, ExitCode};
use truth::{Row, Tally};

/// One program, as JSON has it.
#[derive(Serialize)]
struct Outcome {
    program: String,
    /// Why there are no rows.
    failed: Option<String>,
    rows: Vec<Row>,
    order_right: bool,
    overhead: f64,
}

/// Exits with 1 when a program could not be profiled; an estimate that is off is a result.
pub fn run(args: &ProfileArgs) -> Result<ExitCode> {
    let wanted = |name: &str| args.only.as_deref().is_none_or(|only| name.starts_with(only));
    let scratch = Scratch::new()?;
    if args.what == What::Overhead {
        let found = overhead::measure(scratch.path(), args.pairs, args.precise, &args.options, wanted)?;
        save(args.json.as_deref(), &found)?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.what == What::Verify {
        let found = verify::measure(scratch.path(), args.runs, args.sets, args.disk.as_ref(), wanted)?;
        save(args.json.as_deref(), &found)?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.what == What::Misses {
        let runs = misses::Runs { seconds: args.seconds, size: args.size, options: &args.options };
        let found = misses::measure(&scratch, &runs, wanted);
        save(args.json.as_deref(), &found)?;
        let failed = found.iter().any(|outcome| outcome.failed.is_some());
        return Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS });
    }
    println!("{}", truth::HEADING);
    let mut outcomes = Vec::new();
    let mut tally = Tally::default();
    for program in PROGRAMS.iter().filter(|program| wanted(program.name)) {
        let outcome = match outcome(program, args, scratch.path()) {
            Ok(outcome) => outcome,
            Err(error) => {
                println!("{:12} {error:#}", program.name);
                Outcome {
                    program: program.name.to_owned(),
                    failed: Some(format!("{error:#}")),
                    rows: Vec::new(),
                    order_right: false,
                    overhead: 0.0,
                }
            }
        };
        outcome.rows.iter().for_each(|row| println!("{:12} {row}", outcome.program));
        tally.add(&outcome.rows, outcome.order_right);
        outcomes.push(outcome);
        save(args.json.as_deref(), &outcomes)?;
    }
    println!("\n{tally}");
    let failed = outcomes.iter().any(|outcome| outcome.failed.is_some());
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn outcome(program: &Program, args: &ProfileArgs, dir: &Path) -> Result<Outcome> {
    let command = program.build(dir)?;
    let file = dir.join(format!("{}.nfprof", program.name));
    let mut profile = Command::new(std::env::current_exe()?);
    profile.arg("profile").arg("-o").arg(&file).args(&args.options).arg("--").args(&command);
    profile
        .args([args.seconds.to_string(), args.size.to_string(), program.threads.to_string()])
        .env("OMP_NUM_THREADS", program.threads.to_string());
    let output = profile.output().context("nearfar profile")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        anyhow::bail!("nearfar profile: {}: {}", output.status, said.lines().last().unwrap_or_default());
    }
    let truths = truth::parse(&String::from_utf8_lossy(&output.stdout));
    anyhow::ensure!(!truths.is_empty(), "the program did not report its traffic");
    let summary = nfprof::read(&[file])?;
    let (rows, order_right) = truth::compare(&truths, &summary);
    Ok(Outcome { program: program.name.to_owned(), failed: None, rows, order_right, overhead: summary.overhead })
}

fn save(path: Option<&Path>, found: &impl Serialize) -> Result<()> {
    let Some(path) = path else { return Ok(()) };
    std::fs::write(path, serde_json::to_vec_pretty(found)?).with_context(|| path.display().to_string())
}
