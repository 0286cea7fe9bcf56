//! `nearfar bench suite`: how much of its speed in all-DRAM does each kind of program keep with less near memory than data?
//!
//! Rounds over all works: in each, a work runs in all-DRAM and then on every other system with every near, so that what is compared ran
//! within minutes, and after the first round there is a whole picture. Results are saved after every run.
//! Modules are listed lowest first.

pub mod works;
mod targets;
mod measure;
mod advised;
mod medium;
mod plan;
mod display;
mod modes;
mod compare;
mod figures;
mod request;

use super::case::LEAST_NEAR;
use super::conditions::Conditions;
use super::runner::{Runner, WRONG};
use crate::cli::bench::{ModesArgs, Nodes, SuiteArgs};
use crate::exit::refuse;
use crate::files::document::Document;
use crate::files::output::OutputFile;
use crate::files::suite::{MODES, Point, PointRun, Spread, SuiteFile, System, WorkResults};
use crate::machine::Machine;
use crate::report;
use anyhow::{Context, Result};
use measure::Setting;
use medium::InDram;
use nearfar_core::units::Bytes;
use plan::Step;
use request::{begun, check_nodes, machine, read, resumed};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use works::{WORKS, Work};

/// Bytes of the file that the disk is measured with.
const DEVICE_FILE: u64 = 1 << 30;
/// Longest seconds of a repetition in all-DRAM, when a work is tried out.
const LONGEST_IN_DRAM: f64 = 60.0;
/// A repetition may take so many times what it takes in all-DRAM, at the least: below, works differ too little to stop them.
const LONGEST: f64 = 6.0;
/// Repetitions of a run take about this part of the longest one, in all-DRAM.
const SHARE_IN_DRAM: f64 = 0.1;
/// But there are no more than so many: under a pager each takes many times as long.
const MOST_REPETITIONS: f64 = 32.0;
/// A profile is taken of so many repetitions at least.
const PROFILED_REPETITIONS: usize = 8;
/// Longest time of a run besides its repetitions: it makes its data and reads them back.
const BESIDES: Duration = Duration::from_secs(90);
/// Runs of triad that emulated far is set by.
const TRIAD_RUNS: usize = 3;
/// Emulated far is set by triad on arrays of so much.
const TRIAD_BYTES: u64 = 768 << 20;

/// Runs or goes on with a comparison of modes: a suite with other systems.
pub fn run_modes(args: &ModesArgs) -> Result<ExitCode> {
    let nodes = args.near_node.clone().zip(args.far_node.clone()).map(|(near, far)| Nodes { near, far });
    if let Some(nodes) = &nodes {
        check_nodes("--near-node", &nodes.near)?;
        check_nodes("--far-node", &nodes.far)?;
        if nodes.near == nodes.far {
            return Err(refuse(format_args!("near and far are both {}: name two memories", nodes.near)));
        }
    }
    run(&SuiteArgs {
        quick: false,
        only: args.only.clone(),
        ratios: args.ratios.clone(),
        threads: if args.threads.is_empty() { vec![Machine::this().cpus.max(1)] } else { args.threads.clone() },
        systems: MODES.to_vec(),
        data: args.data.clone(),
        runs: Some(args.runs),
        seconds: Some(args.seconds),
        far: std::env::temp_dir(),
        json: args.json.clone(),
        resume: args.resume.clone(),
        compare: Vec::new(),
        figures: None,
        svg: None,
        list: false,
        nodes,
    })
}

/// Runs or goes on with a suite, or compares two. Exits with 1 when a program failed in all-DRAM or under nearfar.
pub fn run(args: &SuiteArgs) -> Result<ExitCode> {
    if args.list {
        print!("{}", display::list());
        return Ok(ExitCode::SUCCESS);
    }
    if let [old, new] = &args.compare[..] {
        print!("{}", compare::text(&read(old)?, &read(new)?));
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(path) = &args.figures {
        let mut file = read(path)?;
        let settings = &mut file.settings;
        let lacks = args.ratios.iter().find(|ratio| !settings.ratios.contains(ratio)).map(|ratio| format!("--ratios {ratio}"));
        let lacks = lacks.or_else(|| {
            let system = args.systems.iter().find(|system| !settings.systems.contains(system))?;
            Some(format!("--systems: {}", system.name()))
        });
        let lacks = lacks.or_else(|| {
            let name = args.only.iter().find(|name| !file.works.iter().any(|work| work.name == **name))?;
            Some(format!("--only {name}"))
        });
        if let Some(lacks) = lacks {
            return Err(refuse(format_args!("{lacks}: {} does not have it", path.display())));
        }
        settings.ratios.retain(|ratio| args.ratios.is_empty() || args.ratios.contains(ratio));
        settings.systems.retain(|system| args.systems.is_empty() || args.systems.contains(system));
        if let Some(svg) = &args.svg {
            OutputFile::new("--svg", svg.clone())?.write(&figures::svg(&file, &args.only))?;
        }
        print!("{}", figures::markdown(&file, &args.only));
        return Ok(ExitCode::SUCCESS);
    }
    let mut conditions = Conditions::here(&args.far);
    let mut machine = machine(&conditions);
    if let [system, ..] = args.systems[..]
        && system.is_mode()
    {
        // No disk is used.
        conditions.far_available_bytes = u64::MAX;
        machine.far = match &args.nodes {
            Some(nodes) => format!("{}, near {}", nodes.far, nodes.near),
            None => "emulated at an eighth of the bandwidth of DRAM".to_owned(),
        };
    }
    let (file, path, note) = match &args.resume {
        Some(path) => (resumed(path, &machine)?, path.clone(), None),
        None => begun(args, &conditions, machine)?,
    };
    if path.extension().is_some_and(|extension| extension == "html") {
        return Err(refuse(format_args!(
            "{}: the page about the results gets this name; name the results .json",
            path.display()
        )));
    }
    let page = OutputFile::new("the page beside the results:", path.with_extension("html"))?;
    let settings = &file.settings;
    let swap = settings.systems.contains(&System::Swap).then(|| settings.data_bytes + settings.data_bytes / 4 + (64 << 20));
    let threads = settings.threads.iter().copied().max().unwrap_or(1);
    let runner = Runner::new(&args.far, threads, BESIDES, swap)?;

    print!("{}", display::heading(&file));
    for note in note.iter().chain(&conditions.disturbance()) {
        println!("note      {note}");
    }
    let command = if plan::has_modes(&file.settings) { "modes" } else { "suite" };
    println!("results   {} after every run; after an interruption: nearfar bench {command} --resume {0}\n", path.display());
    let mut suite = Suite { runner, file, path, far: args.far.clone() };
    suite.runner.set_nodes(suite.file.settings.nodes.clone());
    suite.measure()?;
    print!("{}{}", modes::tables(&suite.file), display::tables(&suite.file));
    page.write(&report::page_of(&[Document::Suite(Box::new(suite.file.clone()))], &[]))?;
    println!("page      {}", page.path().display());
    let faults = suite.faults();
    faults.iter().for_each(|fault| println!("FAULT     {fault}"));
    Ok(if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A suite under way.
struct Suite {
    runner: Runner,
    file: SuiteFile,
    path: PathBuf,
    far: PathBuf,
}

impl Suite {
    fn measure(&mut self) -> Result<()> {
        self.emulate();
        let steps = plan::steps(&self.file.settings, &plan::works(&self.file.works));
        let begun = Instant::now();
        let mut ran = 0;
        for (number, step) in steps.iter().enumerate() {
            if number == 0 || steps[number - 1].round != step.round {
                let pending = steps[number..].iter().any(|step| self.is_pending(step));
                self.sample_disk(pending)?;
                self.set_bounds();
            }
            if !self.is_pending(step) {
                continue;
            }
            let left = steps[number..].iter().filter(|step| self.is_pending(step)).count();
            let left_s = if ran == 0 { None } else { Some(begun.elapsed().as_secs_f64() / ran as f64 * left as f64) };
            let said = self.step(step)?;
            ran += 1;
            eprintln!("[{}/{}{}] {said}", number + 1, steps.len(), display::time_left(left_s));
            self.file.save(&self.path)?;
        }
        // All-DRAM and the disk may have been faster later than when a point ran.
        self.set_bounds();
        self.file.save(&self.path)
    }

    /// Whether the step has still to be run. What was stopped by the time limit once is stopped again, and not run again.
    fn is_pending(&self, step: &Step) -> bool {
        let point = self.file.works[step.work].point(step.system, step.threads, step.ratio);
        point.is_none_or(|point| {
            point.obstacle.is_none() && point.runs.len() <= step.round && !point.runs.iter().any(|run| run.stopped)
        })
    }

    /// Finds out what emulated far is to be, unless the file says it.
    fn emulate(&mut self) {
        let settings = &self.file.settings;
        let over_emulated = |system: &System| *system == System::Emulated || system.is_mode() && settings.nodes.is_none();
        if !settings.systems.iter().any(over_emulated) {
            return;
        }
        if self.file.dram_triad > 0.0 {
            self.runner.set_emulated(self.file.dram_triad);
            return;
        }
        match self.dram_triad() {
            Ok(rate) => {
                self.file.dram_triad = rate;
                let far = self.runner.set_emulated(rate);
                println!("emulated far: triad in DRAM reaches {:.2} GB/s, so {far}\n", rate / 1e9);
            }
            // Its points say that they could not be measured.
            Err(error) => println!("emulated far: not measured: {error:#}\n"),
        }
    }

    /// Triad in DRAM with all threads, bytes per second: the median of some runs.
    fn dram_triad(&mut self) -> Result<f64> {
        let triad = WORKS.iter().find(|work| work.name == "triad").context("this nearfar has no triad")?;
        let threads = self.file.settings.threads.iter().copied().max().unwrap_or(1);
        let setting = Setting {
            system: System::Dram,
            between_nodes: false,
            plan: None,
            threads,
            data_bytes: TRIAD_BYTES,
            near_bytes: TRIAD_BYTES,
            repetitions: 8,
            seconds: 10.0,
        };
        self.runner.set_limit(longest(setting));
        let runs: Vec<PointRun> =
            (0..TRIAD_RUNS).map(|_| Ok(measure::run(&self.runner, triad, setting, None)?.0)).collect::<Result<_>>()?;
        let why = || runs.iter().find_map(|run| run.failed.clone()).unwrap_or_default();
        Spread::of(&runs, |run| run.bytes_per_s).map(|rate| rate.median).with_context(why)
    }

    fn sample_disk(&mut self, pending: bool) -> Result<()> {
        if !pending || !self.file.settings.systems.contains(&System::Disk) {
            return Ok(());
        }
        let bytes = DEVICE_FILE.min(self.file.settings.data_bytes) as usize;
        medium::sample(&mut self.file.disk, &self.far, bytes, &self.file.settings.threads)
    }

    /// Runs one point once; returns what to say of it.
    fn step(&mut self, step: &Step) -> Result<String> {
        let Some(work) = WORKS.iter().find(|work| work.name == self.file.works[step.work].name) else {
            return Ok(format!("{}: this nearfar has no such work", self.file.works[step.work].name));
        };
        if self.file.works[step.work].repetitions == 0 {
            self.try_out(work, step)?;
        }
        let results = &self.file.works[step.work];
        let setting = self.setting(results, step);
        let mut obstacle = self.obstacle(step, setting.near_bytes);
        let (mut plan, mut broken) = (None, None);
        if obstacle.is_none() && step.system.has_plan() {
            match self.plan(work, step) {
                Ok(Some(path)) => plan = Some(path),
                Ok(None) => {
                    obstacle =
                        Some("nearfar advise found no object worth its place near, or none that a rule can name".to_owned())
                }
                Err(error) => broken = Some(format!("{error:#}")),
            }
        }
        let setting = Setting { plan: plan.as_deref(), ..setting };
        let (case, rival) = (measure::case(work, setting), measure::rival(step.system, setting.between_nodes));
        let obstacle = obstacle.or_else(|| self.runner.obstacle(&case, rival));
        self.runner.set_limit(longest(setting));
        let results = &self.file.works[step.work];
        let mut run = match (&obstacle, broken) {
            (Some(_), _) => None,
            (None, Some(why)) => Some(PointRun { failed: Some(why), ..PointRun::default() }),
            (None, None) => {
                Some(measure::run(&self.runner, work, setting, Some(results.operations).filter(|&known| known > 0.0))?.0)
            }
        };
        let command = match step.system {
            _ if obstacle.is_some() => String::new(),
            System::Swap | System::Mmap => plan::repeat(work.name, step, &self.file.settings, &self.far),
            _ => self.runner.command_line(&case, rival),
        };
        let results = &mut self.file.works[step.work];
        let index = results.index_of(step.system, step.threads, step.ratio).unwrap_or_else(|| {
            let near_bytes = if step.system == System::Dram { 0 } else { setting.near_bytes };
            results.points.push(Point { near_bytes, command, ..Point::new(step.system, step.threads, step.ratio) });
            results.points.len() - 1
        });
        results.points[index].obstacle = obstacle;
        if let Some(run) = &mut run
            && run.stopped
        {
            // As the rate: of a whole repetition that would have ended now.
            run.bytes_per_s = results.traffic_bytes / run.seconds;
        }
        results.points[index].runs.extend(run);
        self.set_bounds_of(step.work);
        Ok(display::step_line(&self.file.works[step.work], index))
    }

    /// One run in all-DRAM that does not count: it tells how much memory the program has and how long a repetition takes.
    fn try_out(&mut self, work: &Work, step: &Step) -> Result<()> {
        let results = &self.file.works[step.work];
        let first = Step { system: System::Dram, ratio: 0.0, ..*step };
        let trial = Setting { repetitions: 2, seconds: LONGEST_IN_DRAM, ..self.setting(results, &first) };
        self.runner.set_limit(longest(trial));
        let (_, facts) = measure::run(&self.runner, work, trial, None)?;
        let (operations, dram_seconds) = facts.whole.unwrap_or((0.0, f64::INFINITY));
        let settings = &self.file.settings;
        let results = &mut self.file.works[step.work];
        results.footprint_bytes = facts.footprint_bytes;
        results.operation = facts.operation;
        results.intensity = facts.intensity;
        results.operations = operations;
        results.traffic_bytes = facts.bytes;
        results.held_bytes = facts.data_bytes;
        let clocked = work.repetition == works::Repetition::Clock;
        // Enough for a figure, where a repetition is short; the limit is one for far, not for the work itself.
        let enough = (settings.seconds * SHARE_IN_DRAM / dram_seconds).ceil().clamp(1.0, MOST_REPETITIONS);
        results.repetitions = 1 + if clocked { 1 } else { enough as usize };
        results.seconds = if dram_seconds.is_finite() { settings.seconds.max(LONGEST * dram_seconds) } else { settings.seconds };
        Ok(())
    }

    /// Why a point cannot be measured, whatever the runner says.
    fn obstacle(&self, step: &Step, near_bytes: u64) -> Option<String> {
        if step.system == System::Dram {
            return None;
        }
        let results = &self.file.works[step.work];
        let dram = results.point(System::Dram, step.threads, 0.0)?;
        if Spread::of(&dram.runs, |run| run.rate).is_none_or(|rate| rate.stopped) {
            return Some(format!("it gave no figure in all-DRAM: {}", dram.trouble().unwrap_or("it took too long")));
        }
        let share = step.system.cache_share();
        let between_nodes = self.file.settings.nodes.is_some();
        if between_nodes && share > 0.0 && share < 1.0 {
            return Some("between nodes there is no hybrid mode".to_owned());
        }
        // Cache and placed objects need it each, and flat mode has a small cache.
        let least = match share {
            _ if between_nodes => 0,
            0.0 => 2 * LEAST_NEAR,
            share if share < 1.0 => (LEAST_NEAR as f64 / share.min(1.0 - share)) as u64,
            _ => LEAST_NEAR,
        };
        (near_bytes < least)
            .then(|| format!("near would be {}; it is at least {}: more --data is needed", Bytes(near_bytes), Bytes(least)))
    }

    /// The plan for the mode and near of a step.
    fn plan(&self, work: &Work, step: &Step) -> Result<Option<PathBuf>> {
        let results = &self.file.works[step.work];
        let plain = Setting { system: System::Dram, between_nodes: false, ..self.setting(results, step) };
        // Short works are repeated until there is something to see.
        let repetitions = plain.repetitions.max(PROFILED_REPETITIONS);
        let plain = measure::case(work, Setting { repetitions, ..plain });
        let case = measure::case(work, self.setting(results, step));
        let stem = format!("{}-{}-threads", work.name, step.threads);
        advised::plan(&self.runner, &advised::folder(&self.path, self.file.started_unix_s), (&stem, step.system), &plain, &case)
    }

    /// What a step runs.
    fn setting(&self, results: &WorkResults, step: &Step) -> Setting<'static> {
        Setting { between_nodes: self.file.settings.nodes.is_some(), ..setting(results, step) }
    }

    /// Sets the bounds of all points.
    fn set_bounds(&mut self) {
        for work in 0..self.file.works.len() {
            self.set_bounds_of(work);
        }
    }

    fn set_bounds_of(&mut self, work: usize) {
        let SuiteFile { works, disk, dram_triad, settings, .. } = &mut self.file;
        let results = &mut works[work];
        let Some(limit) = WORKS.iter().find(|own| own.name == results.name).map(|own| own.limit) else { return };
        for index in 0..results.points.len() {
            let threads = results.points[index].threads;
            let Some(dram) = results.point(System::Dram, threads, 0.0).map(|point| &point.runs[..]) else { continue };
            let figure = |figure: fn(&PointRun) -> f64| Spread::of(dram, figure).filter(|spread| !spread.stopped);
            let (Some(seconds), Some(rate)) = (figure(|run| run.seconds), figure(|run| run.rate)) else { continue };
            let in_dram = InDram {
                data: if results.held_bytes > 0 { results.held_bytes } else { results.data_bytes } as f64,
                traffic: results.traffic_bytes,
                seconds: seconds.median,
                rate: rate.median,
                threads,
            };
            let point = &mut results.points[index];
            let medium = match point.system {
                System::AllFar => continue,
                mode if mode.is_mode() && settings.nodes.is_some() => continue,
                mode if mode.is_mode() => System::Emulated,
                system => system,
            };
            point.bound = medium::bound(limit, in_dram, point.near_bytes as f64, medium, disk, *dram_triad);
        }
    }

    /// What makes figures worthless: programs that failed in all-DRAM or under nearfar, and data that differ.
    fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for work in &self.file.works {
            for point in &work.points {
                let must = point.system == System::Dram || point.system.is_nearfar();
                let why = point.runs.iter().find_map(|run| run.failed.as_deref());
                faults.extend(
                    why.filter(|why| must || *why == WRONG)
                        .map(|why| format!("{}, {}: {why}", work.name, display::where_(point))),
                );
                if work.gave_same_data(point) == Some(false) {
                    faults.push(format!("{}, {}: it computed other data than in all-DRAM", work.name, display::where_(point)));
                }
            }
        }
        faults
    }
}

/// When a run is killed: a repetition ends itself at its limit, and is looked at from time to time only.
fn longest(setting: Setting<'_>) -> Duration {
    BESIDES + Duration::from_secs_f64((setting.repetitions + 2) as f64 * setting.seconds)
}

/// What a step runs, where near is a budget.
fn setting(results: &WorkResults, step: &Step) -> Setting<'static> {
    Setting {
        system: step.system,
        between_nodes: false,
        plan: None,
        threads: step.threads,
        data_bytes: results.data_bytes,
        near_bytes: near_bytes(results, step),
        repetitions: results.repetitions,
        // A work by the clock has one length everywhere.
        seconds: results.seconds,
    }
}

/// Near of a step: a part of what the program had in all-DRAM; there, what tiles are chosen for.
fn near_bytes(results: &WorkResults, step: &Step) -> u64 {
    let whole = if results.footprint_bytes == 0 { results.data_bytes + (8 << 20) } else { results.footprint_bytes };
    if step.system == System::Dram {
        return whole.div_ceil(1 << 20) << 20;
    }
    // Rounded up: with a ratio of 1 all is to fit.
    ((whole as f64 / step.ratio / f64::from(1 << 20)).ceil() as u64) << 20
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_is_a_part_of_what_the_program_had() {
        let mut results = WorkResults { data_bytes: 96 << 20, ..WorkResults::default() };
        let step = |system, ratio| Step { round: 0, work: 0, threads: 2, system, ratio };
        assert_eq!(near_bytes(&results, &step(System::Disk, 2.0)), 52 << 20);
        results.footprint_bytes = (99 << 20) + 1;
        assert_eq!(near_bytes(&results, &step(System::Disk, 1.0)), 100 << 20);
        assert_eq!(near_bytes(&results, &step(System::Swap, 0.5)), 199 << 20);
        assert_eq!(near_bytes(&results, &step(System::Dram, 0.0)), 100 << 20);
    }
}
