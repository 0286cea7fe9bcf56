//! `nearfar bench`: how close is nearfar to all-DRAM and to the device, and how far ahead of what people use today?
//!
//! Runs are interleaved (all-DRAM, nearfar, mapped file, swap, and again), the device is measured between them, and results are
//! saved after each step.
//! Does not hold any policy, and no unsafe code: what must happen in the child is done by a shell.

// Lowest first: a module uses only modules above it.
mod conditions;
mod janitor;
mod cgroup;
mod swap;
mod rival;
mod goal;
mod recipe;
mod apps;
mod external;
mod case;
mod cases;
mod grain_cases;
mod app_cases;
mod command;
mod runner;
mod bound;
mod startup;
mod times;
mod latency;
mod metadata;
mod results;
mod display;
mod settings;
mod policies;
mod replay;
mod gtest;
mod expected_failures;
mod peer_suite;
mod memkind;
mod suite;
mod profile;

pub(super) use crate::sample::{Outcome, Summary, show_ratio};
pub(super) use case::{Case, Effort, Sizes};
pub(super) use cases::{gemm, triad};
pub(super) use conditions::Conditions;
pub(super) use results::CaseResults;
pub(super) use rival::Rival;
pub(super) use runner::Runner;
pub(super) use settings::settle;

use crate::cli::bench::{BenchArgs, BenchCommand, Suite};
use crate::exit::refuse;
use anyhow::{Context, Result};
use app_cases::app_cases;
use case::{Far, Length};
use cases::cases;
use clap::ValueEnum;
use external::Outside;
use grain_cases::grain_cases;
use latency::Latency;
use metadata::Metadata;
use results::Results;
use settings::Sizing;
use startup::Startup;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

/// Longest wall time of one program, verification included.
const PROGRAM_LIMIT: Duration = Duration::from_secs(180);

/// Runs the suites. Exits with 1 when a run failed or gave wrong data; a missed target is a result, not a failure.
pub fn run(args: BenchArgs) -> Result<ExitCode> {
    match &args.apart {
        Some(BenchCommand::Suite(args)) => return suite::run(args),
        Some(BenchCommand::Modes(args)) => return suite::run_modes(args),
        Some(BenchCommand::Policies(args)) => return policies::run(args),
        Some(BenchCommand::Replay(args)) => return replay::run(args),
        Some(BenchCommand::Memkind(args)) => return memkind::run(args),
        Some(BenchCommand::Profile(args)) => return profile::run(args),
        None => {}
    }
    if (args.install || args.list) && !args.suites.contains(&Suite::Apps) {
        let option = if args.list { "--list" } else { "--install" };
        return Err(refuse(format!("{option} is for apps: nearfar bench apps {option}")));
    }
    let conditions = Conditions::here(&args.far);
    let effort = match (args.smoke, args.quick) {
        (true, _) => Effort::Smoke,
        (_, true) => Effort::Quick,
        _ => Effort::Full,
    };
    let settled = settle(args.data.as_deref(), args.near.as_deref(), effort, &args.far, &conditions)?;
    let everything =
        || Suite::value_variants().iter().copied().filter(|suite| ![Suite::Grain, Suite::Apps].contains(suite)).collect();
    let suites = match (args.suites.is_empty(), &args.only) {
        (true, None) => everything(),
        (true, Some(_)) => Suite::value_variants().to_vec(),
        (false, _) => args.suites,
    };
    let of_suite = |&suite: &Suite| match suite {
        Suite::Grain => grain_cases(settled.sizes),
        Suite::Apps => app_cases(settled.sizes),
        _ => cases(suite, settled.sizes),
    };
    let chosen = |case: &Case| args.only.as_ref().is_none_or(|text| case.title.contains(text));
    let all: Vec<Case> = suites.iter().flat_map(of_suite).filter(chosen).collect();
    if let Some(text) = args.only.as_ref().filter(|_| all.is_empty()) {
        let titles: Vec<String> = suites.iter().flat_map(of_suite).map(|case| case.title).collect();
        return Err(refuse(format!("--only {text}: no workload has this in its title; the titles are: {}", titles.join("; "))));
    }
    let suites: Vec<Suite> = match &args.only {
        Some(_) => suites.into_iter().filter(|suite| all.iter().any(|case| case.suite == *suite)).collect(),
        None => suites,
    };
    let recipes: Vec<_> = all.iter().filter_map(|case| case.program.recipe()).collect();
    if args.list {
        print!("{}", Outside::find().list(&recipes));
        return Ok(ExitCode::SUCCESS);
    }
    if args.install {
        apps::install(&recipes)?;
    }
    let threads = args.threads.unwrap_or(conditions.machine.cpus).max(1);
    let runner = Runner::new(&args.far, threads, PROGRAM_LIMIT, swap_bytes(&all))?;
    let runs = args.runs.unwrap_or(if effort == Effort::Full { 3 } else { 1 }).max(1);

    print!("{}", display::heading(&conditions, threads, &describe_controller(&runner)));
    for note in settled.note.iter().chain(&conditions.disturbance()) {
        println!("note      {note}");
    }
    if effort == Effort::Smoke {
        println!("note      smoke run: sizes are too small for figures to mean anything");
    }
    let started_unix_s = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |age| age.as_secs());
    let path = args.json.unwrap_or_else(|| PathBuf::from(format!("bench-results/bench-{started_unix_s}.json")));
    let results = Results {
        version: results::VERSION,
        nearfar: env!("CARGO_PKG_VERSION"),
        started_unix_s,
        conditions,
        threads,
        emulated: None,
        cases: Vec::new(),
        startup: None,
        latency: None,
        metadata: None,
        verdicts: Vec::new(),
    };
    let mut bench = Bench { runner, far: args.far, settled, threads, runs, path, results, healthy: true };
    for suite in suites {
        match suite {
            Suite::Startup => bench.startup()?,
            Suite::Latency => bench.latency()?,
            Suite::Metadata => bench.metadata()?,
            _ => all.iter().filter(|case| case.suite == suite).try_for_each(|case| bench.case(case))?,
        }
    }
    println!("\n{}", display::speed_table(&bench.results.verdicts).trim_end());
    println!("\nsaved in {}", bench.path.display());
    Ok(if bench.healthy { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A bench under way.
struct Bench {
    runner: Runner,
    far: PathBuf,
    settled: Sizing,
    threads: usize,
    runs: usize,
    path: PathBuf,
    results: Results,
    healthy: bool,
}

impl Bench {
    fn case(&mut self, case: &Case) -> Result<()> {
        if case.far == Far::Emulated && self.results.emulated.is_none() {
            self.emulate(case)?;
        }
        let index = self.results.cases.len();
        self.results.cases.push(CaseResults::new(case));
        for round in 0..self.runs.min(case.length.runs) {
            let own = &mut self.results.cases[index];
            own.device.sample(&self.far, self.settled.device_bytes, case, self.threads)?;
            run_round(&self.runner, case, (round, self.runs), own)?;
            self.results.save(&self.path)?;
        }
        let own = &mut self.results.cases[index];
        own.bound = own.device.bound(case, own.work_of_repetition(), self.threads);
        self.healthy &= own.faults(case).is_empty();
        println!("\n{}", display::case_table(case, own).trim_end());
        let verdicts = own.verdicts(case);
        self.results.verdicts.extend(verdicts);
        self.results.save(&self.path)
    }

    /// Finds out what emulated far is to be. Without it the cases have an obstacle.
    fn emulate(&mut self, case: &Case) -> Result<()> {
        let mut triad = triad(self.settled.sizes);
        triad.data_bytes = case.data_bytes;
        match self.runner.emulate(&triad) {
            Ok(emulated) => {
                println!("\nemulated far: triad in DRAM reaches {:.2} GB/s, so {}", emulated.dram_triad / 1e9, emulated.far);
                self.results.emulated = Some(emulated);
            }
            Err(error) => {
                println!("\nemulated far: FAULT: {error:#}");
                self.healthy = false;
            }
        }
        self.results.save(&self.path)
    }

    fn startup(&mut self) -> Result<()> {
        let pairs = match self.settled.sizes.effort {
            Effort::Smoke => 5,
            Effort::Quick => 30,
            Effort::Full => 100,
        };
        match Startup::measure(&self.runner, self.settled.sizes.near_bytes, pairs) {
            Ok(startup) => {
                println!("\n{}", display::startup_lines(&startup).trim_end());
                self.results.verdicts.push(Startup::verdict(Ok(&startup)));
                self.results.startup = Some(startup);
            }
            Err(error) => {
                println!("\nstart-up\n  FAULT: {error:#}");
                self.results.verdicts.push(Startup::verdict(Err(format!("{error:#}"))));
                self.healthy = false;
            }
        }
        self.results.save(&self.path)
    }

    fn latency(&mut self) -> Result<()> {
        let seconds = if self.settled.sizes.effort == Effort::Smoke { 0.3 } else { 3.0 };
        let length = Length { repetitions: 1, seconds: Some(seconds), runs: usize::MAX };
        let mut latency = Latency::default();
        for round in 0..self.runs {
            eprintln!("[{}/{}] latency", round + 1, self.runs);
            latency.round(&self.runner, &self.far, self.settled.device_bytes, self.settled.sizes, length)?;
            self.results.latency = Some(latency.clone());
            self.results.save(&self.path)?;
        }
        println!("\n{}", latency.lines().trim_end());
        self.healthy &= latency.faults.is_empty();
        self.results.verdicts.extend(latency.verdicts());
        self.results.save(&self.path)
    }

    fn metadata(&mut self) -> Result<()> {
        let mut metadata = Metadata::new(self.settled.sizes, self.results.conditions.far_available_bytes);
        for round in 0..self.runs {
            eprintln!("[{}/{}] metadata", round + 1, self.runs);
            metadata.round(&self.runner, self.settled.sizes)?;
            self.results.metadata = Some(metadata.clone());
            self.results.save(&self.path)?;
        }
        println!("\n{}", metadata.lines().trim_end());
        self.healthy &= metadata.failures.is_empty();
        self.results.verdicts.extend(metadata.verdicts());
        self.results.save(&self.path)
    }
}

/// Runs every system once, in order; says each figure on standard error as it comes.
pub(super) fn run_round(runner: &Runner, case: &Case, (round, rounds): (usize, usize), results: &mut CaseResults) -> Result<()> {
    for index in 0..results.rows.len() {
        let rival = results.rows[index].rival;
        if let Some(obstacle) = runner.obstacle(case, rival) {
            results.rows[index].obstacle = Some(obstacle);
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
        let workload = case.arguments.first().map_or(case.title.as_str(), String::as_str);
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
