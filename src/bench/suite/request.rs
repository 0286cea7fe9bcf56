//! What a suite is to be: from options, or from a file that goes on.

use super::super::conditions::Conditions;
use super::super::settings::settle_data;
use super::works::{WORKS, Work};
use super::{display, plan, targets};
use crate::cli::bench::SuiteArgs;
use crate::exit::refuse;
use crate::files::document::{self, Document};
use crate::files::output::OutputFile;
use crate::files::suite::{self, SuiteFile, SuiteMachine, SuiteSettings, System, WorkResults};
use anyhow::Result;
use nearfar_core::units::Bytes;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Where results go without `--json`.
const RESULTS: &str = "bench-results";
/// More runs are a slip of the pen.
const MOST_RUNS: usize = 1000;
/// No machine has more.
const MOST_DATA: u64 = 1 << 50;
/// Least data of a work that takes a part: less would leave too little near.
const LEAST_DATA: u64 = 64 << 20;

/// A suite that was saved.
///
/// # Errors
/// A refusal when it cannot be read, or is no suite.
pub fn read(path: &Path) -> Result<SuiteFile> {
    match document::read(path)? {
        Document::Suite(file) => Ok(*file),
        _ => Err(refuse(format_args!("{} is no suite; write a file that \"nearfar bench suite\" saved", path.display()))),
    }
}

/// Where `conditions` are those of.
pub fn machine(conditions: &Conditions) -> SuiteMachine {
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

/// Whether `text` names nodes of this machine, without a limit: near's is each point's own.
///
/// # Errors
/// A refusal when it does not.
pub fn check_nodes(option: &str, text: &str) -> Result<()> {
    let numbers = text.strip_prefix("node:").map(|list| list.split([',', '-']).collect::<Vec<_>>()).unwrap_or_default();
    let is_number = |number: &&str| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    if numbers.is_empty() || !numbers.iter().all(is_number) {
        return Err(refuse(format_args!("{option} {text}: write nodes without a limit, as node:1 or node:0,2")));
    }
    let is_here = |number: &&&str| Path::new(&format!("/sys/devices/system/node/node{number}")).exists();
    match numbers.iter().find(|number| !is_here(number)) {
        Some(number) => Err(refuse(format_args!(
            "{option} {text}: this machine has no node {number}; nearfar doctor shows those that it has"
        ))),
        None => Ok(()),
    }
}

/// A suite that goes on, where it was begun on this machine by this nearfar. What stood in the way of a point may be gone.
///
/// # Errors
/// A refusal, also of a file whose settings cannot be.
pub fn resumed(path: &Path, machine: &SuiteMachine) -> Result<SuiteFile> {
    let mut file = read(path)?;
    // Modes say what they run between.
    let modes = plan::has_modes(&file.settings);
    let machine = &SuiteMachine { far: if modes { file.machine.far.clone() } else { machine.far.clone() }, ..machine.clone() };
    if file.machine != *machine || file.nearfar != nearfar() {
        let (then, now) = (display::origin(&file.nearfar, &file.machine), display::origin(&nearfar(), machine));
        return Err(refuse(format_args!(
            "--resume {}: it was measured with {then}, and this is {now}: figures of both cannot be compared; begin a new suite",
            path.display()
        )));
    }
    check(&file.settings, file.machine.cpus)?;
    for work in &mut file.works {
        work.points.retain(|point| point.obstacle.is_none() || !point.runs.is_empty());
        work.points.iter_mut().for_each(|point| point.obstacle = None);
    }
    Ok(file)
}

/// Refuses settings that cannot be, of options or of a damaged file.
fn check(settings: &SuiteSettings, cpus: usize) -> Result<()> {
    if let Some(wrong) = settings.ratios.iter().find(|&&ratio| !(0.1..=100.0).contains(&ratio)) {
        return Err(refuse(format_args!("--ratios {wrong}: write numbers from 0.1 to 100, as 0.5,1,2,4")));
    }
    if settings.threads.iter().any(|&threads| threads == 0 || threads > 4 * cpus) {
        return Err(refuse(format_args!("--threads: write numbers from 1 to {}", 4 * cpus)));
    }
    if !(0.05..=3600.0).contains(&settings.seconds) {
        return Err(refuse(format_args!("--seconds {}: write a number from 0.05 to 3600", settings.seconds)));
    }
    if settings.runs == 0 || settings.runs > MOST_RUNS {
        return Err(refuse(format_args!("--runs {}: write a number from 1 to {MOST_RUNS}", settings.runs)));
    }
    if settings.data_bytes > MOST_DATA {
        return Err(refuse(format_args!("data of {} cannot be", Bytes(settings.data_bytes))));
    }
    Ok(())
}

/// A new one, where it is saved, and what to tell about it.
///
/// # Errors
/// A refusal of what was typed, or of a place that cannot be written.
pub fn begun(args: &SuiteArgs, conditions: &Conditions, machine: SuiteMachine) -> Result<(SuiteFile, PathBuf, Option<String>)> {
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
    let mut threads = match (args.threads.is_empty(), args.quick) {
        (false, _) => args.threads.clone(),
        (true, true) => vec![cpus],
        (true, false) => vec![1, cpus],
    };
    threads.sort_unstable();
    threads.dedup();
    let seconds = args.seconds.unwrap_or(seconds);
    let systems = match (args.systems.is_empty(), args.quick) {
        (false, _) => args.systems.clone(),
        (true, true) => vec![System::Disk, System::Emulated, System::Swap],
        (true, false) => vec![System::Disk, System::Emulated, System::Swap, System::Mmap],
    };
    let settings = SuiteSettings {
        data_bytes: data.0,
        ratios,
        threads,
        systems,
        runs: args.runs.map_or(runs, |n| n as usize),
        seconds,
        nodes: args.nodes.clone(),
    };
    check(&settings, cpus)?;
    let started_unix_s = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |age| age.as_secs());
    let path = match &args.json {
        Some(path) => OutputFile::new("--json", path.clone())?.path().to_owned(),
        None => {
            std::fs::create_dir_all(RESULTS).map_err(|error| refuse(format_args!("{RESULTS} cannot be made here: {error}")))?;
            let what = if plan::has_modes(&settings) { "modes" } else { "suite" };
            PathBuf::from(format!("{RESULTS}/{what}-{started_unix_s}.json"))
        }
    };
    let file = SuiteFile {
        format: suite::FORMAT.to_owned(),
        version: suite::VERSION,
        nearfar: nearfar(),
        started_unix_s,
        machine,
        targets: if settings.systems.contains(&System::Emulated) { targets::of(&works, &settings.ratios) } else { Vec::new() },
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
        reference: work.reference,
        data_bytes: (data_bytes / work.part).max(data_bytes.min(LEAST_DATA)) >> 20 << 20,
        ..WorkResults::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_work_is_refused_with_the_list() {
        let error = chosen(&["tirad".to_owned()], false).expect_err("no such work").to_string();
        assert!(error.contains("triad") && error.contains("fft"), "{error}");
        assert_eq!(chosen(&["triad".to_owned()], true).expect("one").len(), 1);
        assert_eq!(chosen(&[], false).expect("all").len(), WORKS.len());
        assert!(chosen(&[], true).expect("some").len() < WORKS.len());
    }
}
