//! Runs the program as it was predicted: everything far, by the plan, everything near (and single objects), in turn, so that what changes
//! on the machine meanwhile meets all of them; and prints what came of it beside what was predicted.

use super::display::{duration, seconds};
use super::routines::{self, Run};
use super::tiers;
use crate::cli::advise::AdviseArgs;
use crate::exit::refuse;
use crate::files::advice::{AgainstBest, Row, Set, Verified};
use crate::files::private_dir::PrivateDir;
use crate::launch::executable;
use crate::machine;
use crate::ui::message;
use crate::ui::routine::{Column, Key};
use anyhow::{Context, Result};
use nearfar_core::advise::advice::{Advice, LEAST_NEAR, Moved};
use nearfar_core::advise::by_routine::ByRoutine;
use nearfar_core::advise::rules;
use nearfar_core::placement::plan::{Place, TierName};
use nearfar_core::profile::summary::{Estimate, Summary};
use nearfar_core::tier::NearSpec;
use nearfar_core::units::Bytes;
use nearfar_profile::outside::{NoTimes, Outside, Watched};
use nearfar_sys::child::{self, Signals};
use nearfar_sys::event::wait_readable;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt::Write;
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Room beside the program's objects in the run with everything near: its cache and small change.
const BESIDE: f64 = 320.0 * 1_048_576.0;
/// The end of a run is known by a signal at once; this is for one that was missed.
const POLL: Duration = Duration::from_millis(200);
const MIB: f64 = 1_048_576.0;

/// The program ended with an error: nothing can be compared.
#[derive(Debug)]
pub struct ProgramFailed(String);

impl std::fmt::Display for ProgramFailed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ProgramFailed {}

/// What is run.
pub struct Job {
    argv: Vec<OsString>,
    near: NearSpec,
    far: OsString,
    runs: usize,
    each: bool,
    sets: bool,
}

/// The cases that are told by routine.
const MAIN: [&str; 3] = ["All far", "Mixed", "All near"];
/// Objects of which every set is run.
const MOST_OF_SETS: usize = 6;
/// Sets that are run again beside the plan: the fastest ones.
const FINALISTS: usize = 2;
/// And how often at least.
const FINAL_RUNS: usize = 3;

/// A way to run: the name, the prediction, options of `nearfar run`.
struct Case {
    name: String,
    predicted: Estimate,
    moved: Option<Moved>,
    by_routine: Option<ByRoutine>,
    options: Vec<OsString>,
}

/// What came of a case.
#[derive(Clone, Default)]
struct Measured {
    /// Wall seconds of each run.
    walls: Vec<f64>,
    /// What passed between near and far in each.
    moved: Vec<Moved>,
    /// Of those whose routines were seen.
    runs: Vec<Run>,
}

/// All cases and what came of them; from number `first_set` on they are sets, of these objects.
#[derive(Clone, Copy)]
struct Compared<'a> {
    cases: &'a [Case],
    first_set: usize,
    measured: &'a [Measured],
    objects: &'a [Vec<String>],
    /// What the plan puts near.
    planned: &'a BTreeSet<&'a String>,
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

impl Job {
    /// Checks that the program can be run, and is the one that was profiled.
    pub fn new(args: &AdviseArgs, summary: &Summary) -> Result<Self> {
        let mut argv = args.program.clone();
        if argv.is_empty() {
            argv.push(summary.program.clone().into());
            argv.extend(summary.args.iter().map(OsString::from));
        }
        let path = executable::find(&argv[0], std::env::var_os("PATH").as_deref())?;
        executable::check_preloadable(&path)?;
        same_program(&path, summary)?;
        let far = args.far.as_ref().map_or_else(OsString::new, |far| far.to_string().into());
        Ok(Self { argv, near: args.near.clone(), far, runs: args.runs, each: args.each, sets: args.sets })
    }

    /// Runs everything.
    pub fn run(&self, advice: &Advice, plan: &str, summary: &Summary) -> Result<Verified> {
        let dir = PrivateDir::new("nearfar-verify-").context("no temporary directory can be made")?;
        let by_routine = advice.routines.as_ref();
        let mut cases = vec![self.all_far(advice, &dir)?];
        if !advice.rules.is_empty() {
            let case = self.flat("Mixed", advice.times.plan, &dir, "plan", plan)?;
            let moved = advice.moves.map(|moves| moves.plan);
            cases.push(Case { by_routine: by_routine.map(|times| times.plan.clone()), moved, ..case });
        }
        cases.push(self.all_near(advice, summary)?);
        let near = advice.items.iter().filter(|item| item.near > 0.0);
        let mut seen = Vec::new();
        for item in near.filter(|_| self.each) {
            // What no rule tells apart is near together: one run for all of it.
            let names: Vec<&String> = std::iter::once(&item.name).chain(&item.with).collect();
            if seen.contains(&names[0]) {
                continue;
            }
            seen.extend(&names);
            let rules: Vec<_> = advice.rules.iter().filter(|(place, _)| names.contains(&&place.name)).cloned().collect();
            let text = rules::text(&[], &rules);
            let case = self.flat(&format!("only {}", item.name), item.alone, &dir, &format!("only{}", item.group), &text)?;
            cases.push(Case { by_routine: item.alone_by_routine.clone(), ..case });
        }
        let compared = cases.len();
        let sets = if self.sets { self.sets(advice, summary, &dir)? } else { Vec::new() };
        let (objects, of_sets): (Vec<_>, Vec<_>) = sets.into_iter().unzip();
        cases.extend(of_sets);
        let signals = Signals::catch().context("signals cannot be caught")?;
        let predicted: f64 = cases.iter().map(|case| case.predicted.value).sum();
        message::line(format_args!(
            "{} runs, predicted to take {} together; Ctrl-C ends them",
            self.runs * cases.len(),
            duration(self.runs as f64 * predicted)
        ));
        let mut measured = vec![Measured::default(); cases.len()];
        let (mut missing, mut doubted) = (None, false);
        let stats = dir.path().join("run.json");
        for round in 0..self.runs {
            for (case, measured) in cases.iter().zip(&mut measured) {
                let predicted = duration(case.predicted.value);
                message::line(format_args!("round {} of {}: {}, predicted {predicted}", round + 1, self.runs, case.name));
                let _ = std::fs::remove_file(&stats);
                let (wall, watched) = self.once(case, &signals, &stats)?;
                measured.moved.extend(moved(&stats));
                measured.walls.push(wall);
                match watched {
                    Ok(Watched { spent, doubt }) => {
                        if let Some(doubt) = doubt.filter(|_| !doubted) {
                            message::line(format_args!("times of routines are doubtful: {doubt}"));
                            doubted = true;
                        }
                        measured.runs.push((wall, spent));
                    }
                    Err(why) if missing.is_none() => {
                        message::line(&why);
                        missing = Some(why.to_string());
                    }
                    Err(_) => {}
                }
            }
        }
        let planned = advice.items.iter().filter(|item| item.near > 0.0).map(|item| &item.name).collect();
        let all = Compared { cases: &cases, first_set: compared, measured: &measured, objects: &objects, planned: &planned };
        let against_best = self.against_best(&all, &signals, &stats)?;
        let mut rows: Vec<Row> = cases.into_iter().zip(measured).map(|(case, measured)| row(case, measured)).collect();
        let sets: Vec<Set> =
            objects.into_iter().zip(rows.drain(compared..)).map(|(objects, row)| Set { objects, median: row.median }).collect();
        let of = |name: &str| rows.iter().find(|row| row.name == name).map(|row| row.median);
        let gain_share = match (of("All far"), of("Mixed"), of("All near")) {
            (Some(far), Some(mixed), Some(near)) if far > near => (far - mixed) / (far - near),
            _ => 0.0,
        };
        let bytes_share = advice.planned / (summary.peak_bytes as f64).max(1.0);
        Ok(Verified { rows, gain_share, bytes_share, sets, against_best, routines_missing: missing })
    }

    /// The plan and the fastest of the sets that are not the plan itself, again and by turns.
    fn against_best(&self, all: &Compared<'_>, signals: &Signals, stats: &Path) -> Result<Option<AgainstBest>> {
        let Compared { cases, first_set, measured, objects, planned } = *all;
        let Some(plan) = cases[..first_set].iter().position(|case| case.name == MAIN[1]) else { return Ok(None) };
        let is_plan = |at: &usize| objects[at - first_set].iter().collect::<BTreeSet<_>>() == *planned;
        let mut running: Vec<usize> = (first_set..cases.len()).filter(|at| !is_plan(at)).collect();
        running.sort_by(|&one, &other| median(&measured[one].walls).total_cmp(&median(&measured[other].walls)));
        running.truncate(FINALISTS);
        let sets = running.len();
        if sets == 0 {
            return Ok(None);
        }
        running.push(plan);
        let runs = self.runs.max(FINAL_RUNS);
        let mut walls = vec![Vec::new(); running.len()];
        for round in 0..runs {
            for turn in 0..running.len() {
                // Who is first differs from round to round.
                let who = (turn + round) % running.len();
                let case = &cases[running[who]];
                message::line(format_args!("final round {} of {runs}: {}", round + 1, case.name));
                walls[who].push(self.once(case, signals, stats)?.0);
            }
        }
        let of_plan = median(&walls[sets]);
        let medians = running[..sets].iter().zip(&walls).map(|(at, walls)| (at - first_set, median(walls)));
        let best = medians.min_by(|one, other| one.1.total_cmp(&other.1));
        Ok(best.map(|(at, best)| AgainstBest { objects: objects[at].clone(), best, plan: of_plan, runs }))
    }

    /// A run for every set that fits of the objects that would gain most.
    fn sets(&self, advice: &Advice, summary: &Summary, dir: &PrivateDir) -> Result<Vec<(Vec<String>, Case)>> {
        let room = tiers::near(&self.near)?;
        let mut items: Vec<_> = advice
            .items
            .iter()
            .filter(|item| item.alone.value < advice.times.all_far.value && !item.nameless && item.bytes as f64 <= room)
            .collect();
        items.sort_by(|one, other| one.alone.value.total_cmp(&other.alone.value));
        let named = items.into_iter().filter_map(|item| {
            let place = rules::place(summary.objects.get(item.group)?, &summary.objects, summary.least)?;
            Some((item, place))
        });
        let named: Vec<_> = named.take(MOST_OF_SETS).collect();
        let mut cases = Vec::new();
        for set in 1..1usize << named.len() {
            let members: Vec<_> =
                named.iter().enumerate().filter(|(at, _)| set >> at & 1 == 1).map(|(_, member)| member).collect();
            if members.iter().map(|(item, _)| item.bytes as f64).sum::<f64>() > room {
                continue;
            }
            let rules: Vec<_> = members.iter().map(|(item, place)| (place.clone(), item.name.clone())).collect();
            let names: Vec<String> = members.iter().map(|(item, _)| item.name.clone()).collect();
            let case = self.flat(
                &format!("set {}", names.join(" + ")),
                advice.times.plan,
                dir,
                &format!("set{set}"),
                &rules::text(&[], &rules),
            )?;
            cases.push((names, case));
        }
        Ok(cases)
    }

    fn flat(&self, name: &str, predicted: Estimate, dir: &PrivateDir, file: &str, plan: &str) -> Result<Case> {
        let path = dir.path().join(format!("{file}.toml"));
        std::fs::write(&path, plan).with_context(|| format!("{} cannot be written", path.display()))?;
        let mut place = OsString::from("plan:");
        place.push(&path);
        let options = [OsString::from("--near"), self.near.to_string().into(), "--place".into(), place];
        Ok(Case { name: name.to_owned(), predicted, moved: None, by_routine: None, options: options.into() })
    }

    /// With as little cache as paging needs, and the prediction has: near is what is measured against.
    fn all_far(&self, advice: &Advice, dir: &PrivateDir) -> Result<Case> {
        let mut case = self.flat("All far", advice.times.all_far, dir, "far", &nothing_near())?;
        case.by_routine = advice.routines.as_ref().map(|times| times.all_far.clone());
        case.moved = advice.moves.map(|moves| moves.all_far);
        case.options[1] = format!("{}M", LEAST_NEAR / MIB).into();
        Ok(case)
    }

    fn all_near(&self, advice: &Advice, summary: &Summary) -> Result<Case> {
        let wanted = summary.peak_bytes as f64 * 1.25 + BESIDE;
        let have = machine::memory_limit().bytes as f64;
        if wanted > have {
            return Err(refuse(format_args!(
                "--verify also runs the program with everything near, which takes {}; this machine has {}",
                Bytes(wanted as u64),
                Bytes(have as u64)
            )));
        }
        let near = format!("{}M", (wanted / MIB).ceil());
        let options = ["--near".into(), near.into(), "--place".into(), "all".into()];
        let by_routine = advice.routines.as_ref().map(|times| times.all_near.clone());
        let moved = advice.moves.map(|moves| moves.all_near);
        Ok(Case { name: "All near".to_owned(), predicted: advice.times.all_near, moved, by_routine, options: options.into() })
    }

    /// Wall seconds of a run, and where they went.
    fn once(&self, case: &Case, signals: &Signals, stats: &Path) -> Result<(f64, Result<Watched, NoTimes>)> {
        let nearfar = std::env::current_exe().context("cannot find my own executable")?;
        let mut command = Command::new(nearfar);
        command
            .args(["run", "--quiet", "--mode", "flat", "--far"])
            .arg(&self.far)
            .args(&case.options)
            .arg("--stats")
            .arg(stats)
            .arg("--")
            .args(&self.argv);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        // Before the start: what is sampled is inherited.
        let mut outside = Outside::start();
        let start = Instant::now();
        let mut running = signals.spawn(&mut command).context("nearfar run cannot be started")?;
        if let Ok(outside) = &mut outside {
            outside.below(running.id());
        }
        loop {
            while let Some(arrived) = signals.next() {
                if !arrived.from_kernel {
                    child::send(&running, arrived.signal);
                }
            }
            if let Some(status) = running.try_wait().context("waiting for the program")? {
                let wall = start.elapsed().as_secs_f64();
                let end = match (status.code(), status.signal()) {
                    (Some(0), _) => return Ok((wall, outside.and_then(Outside::finish))),
                    (Some(code), _) => format!("status {code}"),
                    (None, signal) => child::signal_name(signal.unwrap_or(0)),
                };
                let name = &case.name;
                return Err(ProgramFailed(format!(
                    "the program ended with {end} in the run \"{name}\": runs that fail cannot be compared"
                ))
                .into());
            }
            let mut patience = POLL;
            if let Ok(outside) = &mut outside {
                // A signal: the end, or one to pass on.
                outside.look(|| {
                    let mut ready = [false];
                    wait_readable(&[signals.as_raw_fd()], 0, &mut ready);
                    ready[0]
                });
                patience = outside.wait().min(POLL);
            }
            wait_readable(&[signals.as_raw_fd()], patience.as_micros().div_ceil(1000) as i32, &mut [false]);
        }
    }
}

/// What passed between near and far in the run of this run file.
fn moved(stats: &Path) -> Option<Moved> {
    #[derive(Deserialize)]
    struct Counters {
        bytes_in: f64,
        bytes_out: f64,
    }
    #[derive(Deserialize)]
    struct RunFile {
        counters: Counters,
    }
    let RunFile { counters } = serde_json::from_slice(&std::fs::read(stats).ok()?).ok()?;
    Some(Moved { read: counters.bytes_in, written: counters.bytes_out })
}

fn nothing_near() -> String {
    rules::text(&[], &[(Place { tier: TierName::Far, ..Place::default() }, "everything".to_owned())])
}

fn same_program(path: &Path, summary: &Summary) -> Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let resolved = path.canonicalize().ok().and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
    let profiled = file_name(&summary.program);
    let is_same = [Some(name.as_str()), resolved.as_deref()].into_iter().flatten().any(|name| name == profiled);
    if is_same {
        return Ok(());
    }
    Err(refuse(format_args!(
        "the profile is of {}, but --verify would run {}, for which nothing was predicted; profile this program",
        summary.program,
        path.display()
    )))
}

/// The median; not a number without any.
fn median(of: &[f64]) -> f64 {
    crate::sample::median(of).unwrap_or(f64::NAN)
}

fn row(case: Case, measured: Measured) -> Row {
    let median = median(&measured.walls);
    let routines = routines::rows(case.by_routine.as_ref(), &measured.runs, median);
    let runs = measured.moved.len() as f64;
    let mean = |of: fn(&Moved) -> f64| measured.moved.iter().map(of).sum::<f64>() / runs;
    let measured_moved = (runs > 0.0).then(|| Moved { read: mean(|one| one.read), written: mean(|one| one.written) });
    let (name, predicted, measured) = (case.name, case.predicted, measured.walls);
    let error = predicted.value / median - 1.0;
    Row { error, name, predicted, measured, median, predicted_moved: case.moved, measured_moved, routines }
}

/// For people: bars of predicted and measured times, as in the founding paper's figure.
pub fn text(verified: &Verified) -> String {
    let most = verified.rows.iter().map(|row| row.median.max(row.predicted.value)).fold(0.0, f64::max);
    let width = verified.rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
    let key = Key::of(verified.rows.iter().map(|row| row.routines.as_slice()));
    let mut text = "predicted and measured run time\n".to_owned();
    let bar = |row: &Row, of: Column, total| routines::bar(&key, &row.routines, of, total, most);
    for row in &verified.rows {
        let low = row.measured.iter().copied().fold(f64::INFINITY, f64::min);
        let high = row.measured.iter().copied().fold(0.0, f64::max);
        let held = if row.predicted.low <= high && low <= row.predicted.high { "" } else { ", outside of the interval" };
        let (name, predicted) = (&row.name, &row.predicted);
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "  {name:<width$}  predicted {:>16}  {}",
            seconds(predicted),
            bar(row, |one| one.predicted, predicted.value)
        );
        let _ = writeln!(
            text,
            "  {:<width$}  measured  {:>16}  {} ({:+.0} %{held})",
            "",
            format!("{:.2} s", row.median),
            bar(row, |one| one.measured, row.median),
            100.0 * row.error
        );
    }
    for row in &verified.rows {
        if let (Some(said), Some(seen)) = (row.predicted_moved, row.measured_moved) {
            let pair = |moved: Moved| format!("{} in, {} out", Bytes(moved.read as u64), Bytes(moved.written as u64));
            let _ = writeln!(text, "  {:<width$}  from and to far: predicted {}; measured {}", row.name, pair(said), pair(seen));
        }
    }
    let main = verified.rows.iter().filter(|row| MAIN.contains(&row.name.as_str()));
    text += &routines::table(&key, &main.map(|row| (row.name.as_str(), row.routines.as_slice())).collect::<Vec<_>>());
    if verified.rows.iter().any(|row| row.name == "Mixed") {
        let _ = writeln!(
            text,
            "the plan has {:.0} % of the gain of all near with {:.0} % of the bytes",
            100.0 * verified.gain_share,
            100.0 * verified.bytes_share
        );
    }
    if let Some(AgainstBest { objects, best, plan, runs }) = &verified.against_best {
        let _ = writeln!(
            text,
            "of {} sets that fit, the fastest other than the plan is {}: the plan takes {:+.1} % against it ({plan:.2} s for {best:.2} s, medians of {runs} more runs)",
            verified.sets.len(),
            objects.join(", "),
            100.0 * (plan / best - 1.0)
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_of_the_median_and_bars_of_the_largest() {
        let row = |name: &str, predicted: f64, measured: &[f64]| {
            let predicted = Estimate { value: predicted, low: predicted * 0.9, high: predicted * 1.1 };
            let moved = |read: f64| Moved { read, written: 1e9 };
            let measured = Measured { walls: measured.to_vec(), moved: vec![moved(2e9), moved(4e9)], runs: Vec::new() };
            let case = Case { name: name.into(), predicted, moved: Some(moved(5e9)), by_routine: None, options: Vec::new() };
            super::row(case, measured)
        };
        let rows = vec![row("All far", 10.0, &[8.0, 12.0]), row("Mixed", 6.0, &[9.0, 5.0, 5.0]), row("All near", 4.0, &[2.0])];
        assert_eq!((rows[0].median, rows[1].median, rows[2].error), (10.0, 5.0, 1.0));
        let text = text(&Verified { rows, gain_share: 0.9, bytes_share: 0.3, ..Verified::default() });
        assert!(text.contains("predicted 4.7 GiB in, 953.7 MiB out; measured 2.8 GiB in, 953.7 MiB out"), "{text}");
        assert!(
            text.contains("+100 %, outside of the interval") && text.contains("90 % of the gain of all near with 30 %"),
            "{text}"
        );
    }
}
