//! `nearfar bench profile`: programs whose memory traffic is known, profiled, and what the profile says beside the truth.
//!
//! The programs count for themselves what each of their objects costs (`tests/truth`), by what they do, not by measuring.

mod programs;
mod truth;
mod overhead;
mod verify;
mod curve;
mod misses;

use crate::cli::bench::{ProfileArgs, What};
use crate::exit::refuse;
use crate::files::private_dir::PrivateDir;
use anyhow::{Context, Result};
use programs::{PROGRAMS, Program, Runs};
use serde::Serialize;
use std::path::Path;
use std::process::ExitCode;
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
    let scratch = PrivateDir::new("nearfar-bench-profile-")?;
    let (dir, json) = (scratch.path(), args.json.as_deref());
    let runs = Runs { seconds: args.seconds, size: args.size, options: &args.options };
    if args.keep.is_some() && !matches!(args.what, What::Truth | What::Curve) {
        return Err(refuse("--keep is for truth and curve; the others keep nothing"));
    }
    // Compilers run in it: a relative name would not be found there.
    let keep = args.keep.as_deref().map(|keep| std::fs::create_dir_all(keep).and_then(|()| keep.canonicalize()));
    let keep = keep.transpose().context("--keep")?;
    let failed = match args.what {
        What::Truth => truths(keep.as_deref().unwrap_or(dir), &runs, json, wanted)?,
        What::Overhead => {
            save(json, &overhead::measure(dir, args.pairs, args.precise, &args.options, wanted)?)?;
            false
        }
        What::Verify => {
            save(json, &verify::measure(dir, args.runs, args.sets, args.disk.as_ref(), wanted)?)?;
            false
        }
        What::Curve => {
            let found = curve::measure((dir, keep.as_deref()), &args.far.to_string(), args.threads, args.runs, wanted)?;
            save(json, &found)?;
            found.iter().all(|outcome| outcome.curve.is_none())
        }
        What::Misses => {
            let found = misses::measure(dir, &runs, wanted);
            save(json, &found)?;
            found.iter().any(|outcome| outcome.failed.is_some())
        }
    };
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// True when one of the programs could not be profiled.
fn truths(dir: &Path, runs: &Runs<'_>, json: Option<&Path>, wanted: impl Fn(&str) -> bool) -> Result<bool> {
    println!("{}", truth::HEADING);
    let mut outcomes = Vec::new();
    let mut tally = Tally::default();
    for program in PROGRAMS.iter().filter(|program| wanted(program.name)) {
        let outcome = outcome(program, runs, dir).unwrap_or_else(|error| Outcome {
            program: program.name.to_owned(),
            failed: Some(format!("{error:#}")),
            rows: Vec::new(),
            order_right: false,
            overhead: 0.0,
        });
        outcome.failed.iter().for_each(|why| println!("{:12} {why}", outcome.program));
        outcome.rows.iter().for_each(|row| println!("{:12} {row}", outcome.program));
        tally.add(&outcome.rows, outcome.order_right);
        outcomes.push(outcome);
        save(json, &outcomes)?;
    }
    println!("\n{tally}");
    Ok(outcomes.iter().any(|outcome| outcome.failed.is_some()))
}

fn outcome(program: &Program, runs: &Runs<'_>, dir: &Path) -> Result<Outcome> {
    let (printed, summary) = program.kept(runs, dir)?;
    let truths = truth::parse(&printed);
    anyhow::ensure!(!truths.is_empty(), "the program did not report its traffic");
    let (rows, order_right) = truth::compare(&truths, &summary);
    Ok(Outcome { program: program.name.to_owned(), failed: None, rows, order_right, overhead: summary.overhead })
}

fn save(path: Option<&Path>, found: &impl Serialize) -> Result<()> {
    let Some(path) = path else { return Ok(()) };
    std::fs::write(path, serde_json::to_vec_pretty(found)?).with_context(|| path.display().to_string())
}
