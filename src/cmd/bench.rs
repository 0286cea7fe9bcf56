//! `nearfar bench`: how close is nearfar to all-DRAM and to the device, and how far ahead of what people use today?
//!
//! Runs are interleaved (all-DRAM, nearfar, mapped file, swap, and again), the device is measured between them, and results are
//! saved after each step.
//! Does not hold any policy, and no unsafe code: what must happen in the child is done by a shell.

// Lowest first: a module uses only modules above it.
mod sample;
mod conditions;
mod child;
mod janitor;
mod cgroup;
mod swap;
mod rival;
mod case;
mod command;
mod runner;
mod bound;
mod startup;
mod results;
mod table;
mod settings;

pub(super) use case::{Case, Sizes, gemm, triad};
pub(super) use conditions::Conditions;
pub(super) use results::CaseResults;
pub(super) use rival::Rival;
pub(super) use runner::Runner;
pub(super) use sample::{Outcome, Summary, show_ratio};
pub(super) use settings::settle;

use anyhow::{Context, Result};
use case::{Suite, cases};
use clap::ValueEnum;
use results::Results;
use startup::Startup;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

/// Longest wall time of one program, verification included.
const PROGRAM_LIMIT: Duration = Duration::from_secs(180);
/// Pairs of runs of the start-up suite.
const STARTUP_PAIRS: usize = 100;

/// Measure nearfar beside all-DRAM, kernel swap and mmap of a file, on this machine's own disk
#[derive(Debug, clap::Args)]
pub struct BenchArgs {
    /// What to measure [default: everything]
    #[arg(value_enum, value_name = "SUITE")]
    suites: Vec<Suite>,
    /// Near memory, as an amount or a share of the data [default: a third of the data]
    #[arg(long, value_name = "SIZE")]
    near: Option<String>,
    /// Data of the programs; less when memory or disk is short [default: 2400M]
    #[arg(long, value_name = "SIZE")]
    data: Option<String>,
    /// Directory of the far tier, of the swap file and of the mapped file
    #[arg(long, value_name = "DIR", default_value = "/var/tmp")]
    far: PathBuf,
    /// Runs of each system [default: 3; kernel swap once or twice]
    #[arg(long, value_name = "N")]
    runs: Option<usize>,
    /// Threads of each workload [default: all CPUs]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// One tiny run of everything: shows that all parts work, not how fast they are
    #[arg(long)]
    smoke: bool,
    /// Save the results here [default: bench-results/bench-TIME.json]
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Runs the suites. Exits with 1 when a run failed or gave wrong data.
pub fn run(args: BenchArgs) -> Result<ExitCode> {
    let conditions = Conditions::here(&args.far);
    let settled = settle(args.data.as_deref(), args.near.as_deref(), args.smoke, &args.far, &conditions)?;
    let suites = if args.suites.is_empty() { Suite::value_variants().to_vec() } else { args.suites };
    let all: Vec<Case> = suites.iter().flat_map(|&suite| cases(suite, settled.sizes)).collect();
    let threads = args.threads.unwrap_or(conditions.machine.cpus).max(1);
    let runner = Runner::new(&args.far, threads, PROGRAM_LIMIT, swap_bytes(&all))?;
    let runs = args.runs.unwrap_or(if args.smoke { 1 } else { 3 }).max(1);

    print!("{}", table::heading(&conditions, threads, &describe_controller(&runner)));
    for note in settled.note.iter().chain(&conditions.disturbance()) {
        println!("note      {note}");
    }
    if args.smoke {
        println!("note      smoke run: sizes are too small for figures to mean anything");
    }
    let started_unix_s = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |age| age.as_secs());
    let path = args.json.unwrap_or_else(|| PathBuf::from(format!("bench-results/bench-{started_unix_s}.json")));
    let mut results = Results {
        version: results::VERSION,
        nearfar: env!("CARGO_PKG_VERSION"),
        started_unix_s,
        conditions,
        threads,
        cases: Vec::new(),
        startup: None,
    };
    let mut healthy = true;
    for case in &all {
        let index = results.cases.len();
        results.cases.push(CaseResults::new(case));
        for round in 0..runs.min(case.length.runs) {
            results.cases[index].device.sample(&args.far, settled.device_bytes, case, threads)?;
            run_round(&runner, case, (round, runs), &mut results.cases[index])?;
            results.save(&path)?;
        }
        let own = &mut results.cases[index];
        own.bound = own.device.bound(case, own.work_of_repetition(), threads);
        healthy &= own.faults(case).is_empty();
        println!("\n{}", table::case_table(case, own).trim_end());
        results.save(&path)?;
    }
    if suites.contains(&Suite::Startup) {
        match Startup::measure(&runner, settled.sizes.near_bytes, if args.smoke { 5 } else { STARTUP_PAIRS }) {
            Ok(startup) => {
                println!("\n{}", table::startup_lines(&startup).trim_end());
                results.startup = Some(startup);
            }
            Err(error) => {
                println!("\nstart-up\n  FAULT: {error:#}");
                healthy = false;
            }
        }
        results.save(&path)?;
    }
    println!("\nsaved in {}", path.display());
    Ok(if healthy { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs every system once, in order; says each figure on standard error as it comes.
pub(super) fn run_round(runner: &Runner, case: &Case, (round, rounds): (usize, usize), results: &mut CaseResults) -> Result<()> {
    for index in 0..results.rows.len() {
        let rival = results.rows[index].rival;
        if let Some(obstacle) = runner.obstacle(rival) {
            results.rows[index].obstacle = Some(obstacle.to_owned());
            continue;
        }
        if round >= case.length_under(rival).runs {
            continue;
        }
        let work = results.work_of_repetition();
        let run = runner.run(case, rival, work).with_context(|| format!("{} under {}", case.title, rival.name()))?;
        let said = match &run.outcome {
            Outcome::Value(rate) => case.metric.show(*rate),
            Outcome::Below(rate) => format!("< {} (stopped)", case.metric.show(*rate)),
            Outcome::Failed(why) => format!("failed: {why}"),
        };
        let workload = case.arguments.first().map_or("", String::as_str);
        eprintln!("[{}/{rounds}] {workload} {}: {said}, {:.1} s in all", round + 1, rival.name(), run.seconds);
        results.rows[index].runs.push(run);
    }
    Ok(())
}

/// Swap for the largest case that runs under it, with room for what else the program has; `None` when there is no such case.
pub(super) fn swap_bytes(cases: &[Case]) -> Option<u64> {
    let data = cases.iter().filter(|case| case.rivals.contains(&Rival::Swap)).map(|case| case.data_bytes).max()?;
    Some(data + data / 10 + (64 << 20))
}

fn describe_controller(runner: &Runner) -> String {
    match runner.controller() {
        Some(controller) => format!(
            "rivals are limited to near by {} (swappiness {}); peak memory by the same cgroup, page cache included",
            controller.name(),
            controller.swappiness()
        ),
        None => "no memory cgroup here, so no peak memory".to_owned(),
    }
}
