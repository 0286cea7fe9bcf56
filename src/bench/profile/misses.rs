//! Miss-ratio curves of profiles beside the truth: programs of `tests/truth` write down every page that they visit, and a replay
//! of that tells exactly what memories of each size miss (LRU).
//!
//! A *visit* is the same on both sides: a touch of a page that a memory of [`least_bytes`] would miss. Of those each curve tells
//! the share that a memory of so many bytes misses. First touches of pages are none: they bring nothing from far. An object shares
//! the memory with all others, as in cache mode and as the advisor takes it: its curve is asked for the share of it that is in
//! there, as a mean over time, so that how large it is taken to be makes no difference.

use super::programs::{PROGRAMS, Program, Runs};
use super::truth::is_of;
use anyhow::{Context, Result, ensure};
use nearfar_core::profile::least_bytes;
use nearfar_core::profile::summary::{Curve, ObjectGroup, Summary};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};
use visits::{Trace, Visits};

mod visits;

/// Points that a curve may be off.
const POINTS: f64 = 3.0;
/// Sizes of near memory, from 5 to 95 % of the program's pages: steps of which none ends where an array of a half, a third, a
/// quarter or a fifth does, since there a byte decides.
const SIZES: usize = 18;
/// Objects with less of the program's pages have no rows: near holds them, however small it is.
const LEAST_SHARE: f64 = 0.01;
/// Rounds that are written down; a run goes on as the last of them do.
const ROUNDS: u64 = 3;
const PAGE: f64 = 4096.0;

/// What a profiled program says of itself.
#[derive(Deserialize)]
struct Said {
    rounds: u64,
}

/// One curve: of an object, or of the whole program ("all").
#[derive(Serialize, Clone, Debug)]
pub struct Row {
    pub program: &'static str,
    pub object: String,
    /// Pages at most at a time.
    pub pages: usize,
    /// Visits, counted and as the profile has them; those of the whole program are in no profile.
    pub visits: f64,
    pub profiled_visits: Option<f64>,
    pub points: Vec<Point>,
}

/// Misses by a near memory of one size, in per cent.
#[derive(Serialize, Clone, Copy, Debug)]
pub struct Point {
    pub near: f64,
    pub truth: f64,
    pub profiled: f64,
}

impl Point {
    fn error(&self) -> f64 {
        self.profiled - self.truth
    }
}

/// What became of one program.
#[derive(Serialize)]
pub struct Outcome {
    program: &'static str,
    /// Why there are no rows.
    pub failed: Option<String>,
    /// Rounds of the profiled run.
    rounds: u64,
    /// By how much the rounds that were written down differ, as a share.
    rounds_differ: f64,
    rows: Vec<Row>,
}

/// Profiles and traces all programs that can be traced.
pub fn measure(dir: &Path, runs: &Runs<'_>, wanted: impl Fn(&str) -> bool) -> Vec<Outcome> {
    print!("{:32}misses, % of visits, by near, % of pages:\nprogram    object              ", "");
    println!("          {}    mean   most  visits", shown((0..SIZES).map(near)));
    let mut outcomes = Vec::new();
    for program in PROGRAMS.iter().filter(|program| program.traced && wanted(program.name)) {
        let outcome = outcome(program, runs, dir).unwrap_or_else(|error| Outcome {
            program: program.name,
            failed: Some(format!("{error:#}")),
            rounds: 0,
            rounds_differ: 0.0,
            rows: Vec::new(),
        });
        outcome.failed.iter().for_each(|why| println!("{:10} {why}", program.name));
        outcome.rows.iter().for_each(|row| println!("{row}"));
        if outcome.rounds_differ > 0.01 {
            println!("{:10} its rounds differ by {:.0} %", program.name, 100.0 * outcome.rounds_differ);
        }
        outcomes.push(outcome);
    }
    let rows: Vec<&Row> = outcomes.iter().flat_map(|outcome| &outcome.rows).collect();
    println!("\n{}", Tally::of("whole programs", rows.iter().copied().filter(|row| row.is_whole())));
    println!("{}", Tally::of("objects", rows.iter().copied().filter(|row| !row.is_whole())));
    outcomes
}

/// Size number `at`, in per cent of all pages.
fn near(at: usize) -> f64 {
    5.0 + 90.0 * at as f64 / (SIZES - 1) as f64
}

fn outcome(program: &Program, runs: &Runs<'_>, dir: &Path) -> Result<Outcome> {
    let (said, summary) = program.profiled(runs, dir)?;
    let rounds =
        said.lines().find_map(|line| serde_json::from_str::<Said>(line).ok()).context("it did not report its rounds")?.rounds;
    ensure!(rounds > 0, "it had no time for a round");
    let trace = traced(program, &runs.size.to_string(), rounds.min(ROUNDS), dir)?;
    let rows = rows(program.name, &trace, rounds, &summary)?;
    Ok(Outcome { program: program.name, failed: None, rounds, rounds_differ: trace.unlike(), rows })
}

/// Runs the program as one that writes down what it visits.
fn traced(program: &Program, size: &str, rounds: u64, dir: &Path) -> Result<Trace> {
    let command = program.build_traced(dir)?;
    let (name, arguments) = command.split_first().context("no command")?;
    let mut child = Command::new(name)
        .args(arguments)
        .args(["0", size, "1", &rounds.to_string()])
        .env("OMP_NUM_THREADS", "1")
        .stdout(Stdio::piped())
        .spawn()?;
    // When it is not read to its end, the program ends by itself.
    let trace = Trace::read(child.stdout.take().context("no output")?);
    let status = child.wait()?;
    let trace = trace?;
    ensure!(status.success() && trace.rounds() == rounds, "the traced run: {status}, {} rounds", trace.rounds());
    Ok(trace)
}

/// The rows of a program of so many rounds.
fn rows(program: &'static str, trace: &Trace, rounds: u64, summary: &Summary) -> Result<Vec<Row>> {
    let pages = trace.all.pages as f64;
    let row = |visits: &Visits, curve: &Curve, profiled_visits: Option<f64>| {
        let end = curve.points.last().map_or(0.0, |point| point.0);
        let bytes = |near: f64| match profiled_visits {
            Some(_) => visits.held(near as usize) / visits.held(trace.all.pages).max(1.0) * end,
            None => near * PAGE,
        };
        let least = least_bytes(pages * PAGE) / PAGE;
        let (visited, profiled) = (visits.misses(least as usize, rounds), curve.at(bytes(least)));
        let share = |part: f64, of: f64| if of > 0.0 { 100.0 * part / of } else { 0.0 };
        let point = |at: usize| {
            let near_pages = near(at) / 100.0 * pages;
            Point {
                near: near(at),
                truth: share(visits.misses(near_pages as usize, rounds), visited),
                profiled: share(curve.at(bytes(near_pages)), profiled),
            }
        };
        // Of what is hardly visited again, no share says anything.
        let points = if visited >= visits.pages as f64 { (0..SIZES).map(point).collect() } else { Vec::new() };
        Row { program, object: visits.name.clone(), pages: visits.pages, visits: visited, profiled_visits, points }
    };
    let mut rows = vec![row(&trace.all, &summary.misses, None)];
    for object in trace.objects.iter().filter(|object| object.pages as f64 >= LEAST_SHARE * pages) {
        let groups = summary.objects.iter().filter(|group| is_of(group, &object.name));
        let group: &ObjectGroup = groups
            .max_by(|one, other| one.page_visits.value.total_cmp(&other.page_visits.value))
            .with_context(|| format!("the profile has no {}", object.name))?;
        rows.push(row(object, &group.misses, Some(group.page_visits.value)));
    }
    Ok(rows)
}

impl Row {
    fn is_whole(&self) -> bool {
        self.profiled_visits.is_none()
    }
}

/// Every other figure, as the table has room.
fn shown(figures: impl Iterator<Item = f64>) -> String {
    figures.step_by(2).map(|figure| format!("{figure:6.1}")).collect()
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (program, object) = (self.program, &self.object);
        if self.points.is_empty() {
            let profiled = self.profiled_visits.unwrap_or(0.0);
            let visits = self.visits;
            return write!(f, "{program:10} {object:20} visited again only {visits:.0} times; the profile says {profiled:.0}");
        }
        writeln!(f, "{program:10} {object:20} true      {}", shown(self.points.iter().map(|point| point.truth)))?;
        writeln!(f, "{:31} profiled  {}", "", shown(self.points.iter().map(|point| point.profiled)))?;
        let errors = shown(self.points.iter().map(Point::error));
        let tally = Tally::of("", std::iter::once(self));
        write!(f, "{:31} difference{errors}  {:6.1} {:6.1}", "", tally.mean(), tally.most)?;
        if let Some(profiled) = self.profiled_visits {
            write!(f, "  x {:.2}", profiled / self.visits)?;
        }
        Ok(())
    }
}

/// How far curves are off.
#[derive(Default)]
struct Tally<'a> {
    of: &'a str,
    curves: usize,
    close_curves: usize,
    points: usize,
    close: usize,
    sum: f64,
    most: f64,
}

impl<'a> Tally<'a> {
    fn of<'b>(of: &'a str, rows: impl Iterator<Item = &'b Row>) -> Self {
        let mut tally = Self { of, ..Self::default() };
        for row in rows.filter(|row| !row.points.is_empty()) {
            let errors: Vec<f64> = row.points.iter().map(|point| point.error().abs()).collect();
            let sum: f64 = errors.iter().sum();
            tally.curves += 1;
            tally.close_curves += usize::from(sum <= POINTS * errors.len() as f64);
            tally.points += errors.len();
            tally.close += errors.iter().filter(|&&error| error <= POINTS).count();
            tally.sum += sum;
            tally.most = errors.iter().copied().fold(tally.most, f64::max);
        }
        tally
    }

    fn mean(&self) -> f64 {
        self.sum / self.points.max(1) as f64
    }
}

impl fmt::Display for Tally<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:15} mean |difference| {:.1} points, most {:.1}; {} of {} points within {POINTS}, {} of {} curves as a mean",
            self.of,
            self.mean(),
            self.most,
            self.close,
            self.points,
            self.close_curves,
            self.curves
        )
    }
}
