//! `nearfar bench suite`: how much of its speed in all-DRAM does each kind of program keep with less near memory than data?
//!
//! Rounds over all works: in each, a work runs in all-DRAM and then on every other system with every near, so that what is compared ran
//! within minutes, and after the first round there is a whole picture. Results are saved after every run.
//! Modules are listed lowest first.

mod works;
mod targets;
mod measure;
mod medium;
mod plan;
mod display;
mod compare;
mod figures;

use super::case::{Case, LEAST_NEAR, Metric};
use super::conditions::Conditions;
use super::runner::{Runner, WRONG};
use super::settings::settle_data;
use crate::cli::bench::SuiteArgs;
use crate::exit::refuse;
use crate::files::document::{self, Document};
use crate::files::output::OutputFile;
use crate::files::suite::{self, Point, Spread, SuiteFile, SuiteMachine, SuiteSettings, System, WorkResults};
use crate::report;
use anyhow::Result;
use measure::Setting;
use medium::InDram;
use nearfar_core::units::Bytes;
use plan::Step;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};
use works::{WORKS, Work};

/// Least data of a work that takes a part: less would leave too little near.
const LEAST_DATA: u64 = 64 << 20;
/// Bytes of the file that the disk is measured with.
const DEVICE_FILE: u64 = 1 << 30;
/// Longest seconds of a repetition in all-DRAM, when a work is tried out.
const LONGEST_IN_DRAM: f64 = 60.0;
/// A repetition may take so many times what it takes in all-DRAM, at the least: below, works differ too little to stop them.
const LONGEST: f64 = 6.0;
/// Repetitions of a run take at least this part of the longest one, in all-DRAM.
const SHARE_IN_DRAM: f64 = 0.1;
/// Emulated far is set by triad on arrays of so much.
const TRIAD_BYTES: u64 = 768 << 20;

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
        let file = read(path)?;
        if let Some(svg) = &args.svg {
            OutputFile::new("--svg", svg.clone())?.write(&figures::svg(&file, &args.only))?;
        }
        print!("{}", figures::markdown(&file, &args.only));
        return Ok(ExitCode::SUCCESS);
    }
    let conditions = Conditions::here(&args.far);
    let machine = machine(&conditions);
    let (file, path, note) = match &args.resume {
        Some(path) => (resumed(path, &machine)?, path.clone(), None),
        None => begun(args, &conditions, machine)?,
    };
    let page = OutputFile::new("--json", path.with_extension("html")).ok();
    let settings = &file.settings;
    let swap = settings.systems.contains(&System::Swap).then(|| settings.data_bytes + settings.data_bytes / 4 + (64 << 20));
    let limit = Duration::from_secs_f64(60.0 + 6.0 * settings.seconds);
    let threads = settings.threads.iter().copied().max().unwrap_or(1);
    let runner = Runner::new(&args.far, threads, limit, swap)?;

    print!("{}", display::heading(&file));
    for note in note.iter().chain(&conditions.disturbance()) {
        println!("note      {note}");
    }
    println!("results   {} after every run; after an interruption: nearfar bench suite --resume {0}\n", path.display());
    let mut suite = Suite { runner, file, path, far: args.far.clone() };
    suite.measure()?;
    print!("{}", display::tables(&suite.file));
    if let Some(page) = page {
        page.write(&report::page_about(Document::Suite(Box::new(suite.file.clone()))))?;
        println!("page      {}", page.path().display());
    }
    let faults = suite.faults();
    faults.iter().for_each(|fault| println!("FAULT     {fault}"));
    Ok(if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn read(path: &Path) -> Result<SuiteFile> {
    match document::read(path)? {
        Document::Suite(file) => Ok(*file),
        _ => Err(refuse(format_args!("{} is no suite; write a file that \"nearfar bench suite\" saved", path.display()))),
    }
}

fn machine(conditions: &Conditions) -> SuiteMachine {
    SuiteMachine {
        cpu: conditions.machine.cpu.clone(),
        cpus: conditions.machine.cpus,
        ram: conditions.machine.ram,
        kernel: conditions.machine.kernel.clone(),
        huge_pages: conditions.huge_pages.clone(),
        far: conditions.far.clone(),
    }
}

/// This command, as files name it.
fn nearfar() -> String {
    format!("{} ({})", env!("CARGO_PKG_VERSION"), env!("NEARFAR_COMMIT"))
}

/// A suite that goes on, where it was begun on this machine by this nearfar.
fn resumed(path: &Path, machine: &SuiteMachine) -> Result<SuiteFile> {
    let file = read(path)?;
    if file.machine != *machine || file.nearfar != nearfar() {
        let (then, now) = (display::origin(&file.nearfar, &file.machine), display::origin(&nearfar(), machine));
        return Err(refuse(format_args!(
            "--resume {}: it was measured with {then}, and this is {now}: figures of both cannot be compared; begin a new suite",
            path.display()
        )));
    }
    Ok(file)
}

/// A new one, where it is saved, and what to tell about it.
fn begun(args: &SuiteArgs, conditions: &Conditions, machine: SuiteMachine) -> Result<(SuiteFile, PathBuf, Option<String>)> {
    let works = chosen(&args.only, args.quick)?;
    let (data_mib, seconds, runs) = if args.quick { (128, 1.5, 1) } else { (512, 10.0, 3) };
    let (data, note) = settle_data(args.data.as_deref(), Bytes(data_mib << 20), &args.far, conditions)?;
    let cpus = conditions.machine.cpus.max(1);
    let or = |given: &[f64], quick: &[f64], full: &[f64]| match (given.is_empty(), args.quick) {
        (false, _) => given.to_vec(),
        (true, true) => quick.to_vec(),
        (true, false) => full.to_vec(),
    };
    let ratios = or(&args.ratios, &[2.0, 4.0], &[0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 8.0]);
    if let Some(wrong) = ratios.iter().find(|&&ratio| !(0.1..=100.0).contains(&ratio)) {
        return Err(refuse(format_args!("--ratios {wrong}: write numbers from 0.1 to 100, as 0.5,1,2,4")));
    }
    let mut threads = match (args.threads.is_empty(), args.quick) {
        (false, _) => args.threads.clone(),
        (true, true) => vec![cpus],
        (true, false) => vec![1, cpus],
    };
    threads.sort_unstable();
    threads.dedup();
    if threads.contains(&0) || threads.iter().any(|&threads| threads > 4 * cpus) {
        return Err(refuse(format_args!("--threads: write numbers from 1 to {}", 4 * cpus)));
    }
    let seconds = args.seconds.unwrap_or(seconds);
    if !(0.05..=3600.0).contains(&seconds) {
        return Err(refuse(format_args!("--seconds {seconds}: write a number from 0.05 to 3600")));
    }
    let systems = match (args.systems.is_empty(), args.quick) {
        (false, _) => args.systems.clone(),
        (true, true) => vec![System::Disk, System::Emulated, System::Swap],
        (true, false) => vec![System::Disk, System::Emulated, System::Swap, System::Mmap],
    };
    let settings =
        SuiteSettings { data_bytes: data.0, ratios, threads, systems, runs: args.runs.map_or(runs, |n| n as usize), seconds };
    let started_unix_s = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |age| age.as_secs());
    let path = match &args.json {
        Some(path) => OutputFile::new("--json", path.clone())?.path().to_owned(),
        None => PathBuf::from(format!("bench-results/suite-{started_unix_s}.json")),
    };
    let names: Vec<&str> = works.iter().map(|work| work.name).collect();
    let file = SuiteFile {
        format: suite::FORMAT.to_owned(),
        version: suite::VERSION,
        nearfar: nearfar(),
        started_unix_s,
        machine,
        targets: targets::of(&names, &settings.ratios),
        works: works.iter().map(|work| empty(work, settings.data_bytes)).collect(),
        settings,
        dram_triad: 0.0,
        disk: suite::DiskRates::default(),
    };
    Ok((file, path, note))
}

/// Those that are named, those of a first look, or all.
fn chosen(only: &[String], quick: bool) -> Result<Vec<&'static Work>> {
    if let Some(unknown) = only.iter().find(|name| !WORKS.iter().any(|work| work.name == **name)) {
        let names: Vec<&str> = WORKS.iter().map(|work| work.name).collect();
        return Err(refuse(format_args!("--only {unknown}: there is no such work; there are: {}", names.join(", "))));
    }
    let is_chosen = |work: &&Work| match only.is_empty() {
        true => work.quick || !quick,
        false => only.iter().any(|name| name == work.name),
    };
    Ok(WORKS.iter().filter(is_chosen).collect())
}

fn empty(work: &Work, data_bytes: u64) -> WorkResults {
    WorkResults {
        name: work.name.to_owned(),
        title: work.title.to_owned(),
        access: work.access.to_owned(),
        data_bytes: (data_bytes / work.part).max(data_bytes.min(LEAST_DATA)) >> 20 << 20,
        ..WorkResults::default()
    }
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
        Ok(())
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
        if !self.file.settings.systems.contains(&System::Emulated) {
            return;
        }
        if self.file.dram_triad > 0.0 {
            self.runner.set_emulated(self.file.dram_triad);
            return;
        }
        let Some(triad) = WORKS.iter().find(|work| work.name == "triad") else { return };
        let threads = self.file.settings.threads.iter().copied().max().unwrap_or(1);
        let bytes = TRIAD_BYTES.min(self.file.settings.data_bytes);
        let setting =
            Setting { system: System::Dram, threads, data_bytes: bytes, near_bytes: bytes, repetitions: 8, seconds: 10.0 };
        match self.runner.emulate(&Case { metric: Metric::BytesPerS, ..measure::case(triad, setting) }) {
            Ok(emulated) => {
                self.file.dram_triad = emulated.dram_triad;
                println!("emulated far: triad in DRAM reaches {:.2} GB/s, so {}\n", emulated.dram_triad / 1e9, emulated.far);
            }
            // Its points say that they could not be measured.
            Err(error) => println!("emulated far: not measured: {error:#}\n"),
        }
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
        let setting = setting(results, step);
        let case = measure::case(work, setting);
        let obstacle =
            self.obstacle(step, setting.near_bytes).or_else(|| self.runner.obstacle(&case, measure::rival(step.system)));
        let run = match obstacle {
            Some(_) => None,
            None => Some(measure::run(&self.runner, work, setting, Some(results.operations).filter(|&known| known > 0.0))?.0),
        };
        let command = match step.system {
            System::Swap | System::Mmap => plan::repeat(work.name, step, self.file.settings.data_bytes),
            _ => self.runner.command_line(&case, measure::rival(step.system)),
        };
        let results = &mut self.file.works[step.work];
        let index = results.index_of(step.system, step.threads, step.ratio).unwrap_or_else(|| {
            results.points.push(Point {
                system: step.system,
                threads: step.threads,
                ratio: step.ratio,
                near_bytes: if step.system == System::Dram { 0 } else { setting.near_bytes },
                command,
                obstacle,
                bound: None,
                runs: Vec::new(),
            });
            results.points.len() - 1
        });
        results.points[index].runs.extend(run);
        self.set_bound(step, work.limit, index);
        Ok(display::step_line(&self.file.works[step.work], index))
    }

    /// One run in all-DRAM that does not count: it tells how much memory the program has and how long a repetition takes.
    fn try_out(&mut self, work: &Work, step: &Step) -> Result<()> {
        let results = &self.file.works[step.work];
        let first = Step { system: System::Dram, ratio: 0.0, ..*step };
        let trial = Setting { repetitions: 2, seconds: LONGEST_IN_DRAM, ..setting(results, &first) };
        let (_, facts) = measure::run(&self.runner, work, trial, None)?;
        let (operations, dram_seconds) = facts.whole.unwrap_or((0.0, f64::INFINITY));
        let settings = &self.file.settings;
        let results = &mut self.file.works[step.work];
        results.footprint_bytes = facts.footprint_bytes;
        results.operation = facts.operation;
        results.intensity = facts.intensity;
        results.operations = operations;
        results.traffic_bytes = facts.bytes;
        let clocked = work.repetition == works::Repetition::Clock;
        // Enough for a figure, where a repetition is short; the limit is one for far, not for the work itself.
        let enough = (settings.seconds * SHARE_IN_DRAM / dram_seconds).ceil().clamp(1.0, 12.0);
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
        if let Some(why) = dram.obstacle.clone().or_else(|| dram.runs.first()?.failed.clone()) {
            return Some(format!("it gave no figure in all-DRAM: {why}"));
        }
        (near_bytes < LEAST_NEAR)
            .then(|| format!("near would be {}; it is at least {}: more --data is needed", Bytes(near_bytes), Bytes(LEAST_NEAR)))
    }

    fn set_bound(&mut self, step: &Step, limit: works::Limit, index: usize) {
        let (triad, disk) = (self.file.dram_triad, self.file.disk.clone());
        let results = &mut self.file.works[step.work];
        let dram = results.point(System::Dram, step.threads, 0.0).map(|point| &point.runs[..]).unwrap_or_default();
        let (Some(seconds), Some(rate)) = (Spread::of(dram, |run| run.seconds), Spread::of(dram, |run| run.rate)) else { return };
        let in_dram = InDram {
            data: results.data_bytes as f64,
            traffic: results.traffic_bytes,
            seconds: seconds.median,
            rate: rate.median,
            threads: step.threads,
        };
        let point = &mut results.points[index];
        point.bound = medium::bound(limit, in_dram, point.near_bytes as f64, point.system, &disk, triad);
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
                // Threads may have parts of their own.
                let alike = |other: &&Point| other.threads == point.threads;
                let digests = |point: &Point| point.runs.iter().map(|run| run.checksum.clone()).find(|digest| !digest.is_empty());
                let first = work.points.iter().filter(alike).find_map(digests);
                if point.runs.iter().any(|run| !run.checksum.is_empty() && Some(&run.checksum) != first.as_ref()) {
                    faults.push(format!("{}, {}: it computed other data than elsewhere", work.name, display::where_(point)));
                }
            }
        }
        faults
    }
}

/// What a step runs.
fn setting(results: &WorkResults, step: &Step) -> Setting {
    Setting {
        system: step.system,
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

    #[test]
    fn an_unknown_work_is_refused_with_the_list() {
        let error = chosen(&["tirad".to_owned()], false).expect_err("no such work").to_string();
        assert!(error.contains("triad") && error.contains("fft"), "{error}");
        assert_eq!(chosen(&["triad".to_owned()], true).expect("one").len(), 1);
        assert_eq!(chosen(&[], false).expect("all").len(), WORKS.len());
        assert!(chosen(&[], true).expect("some").len() < WORKS.len());
    }
}
