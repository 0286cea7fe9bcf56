//! What the page's script shows of a suite: every figure that it needs, computed, and no more. Pure.
//!
//! The script only chooses, formats and draws. Names of fields are short, since there are some thousand points.

use crate::files::suite::{MODES, Point, PointRun, Spread, SuiteFile, System, WorkResults};
use serde::Serialize;

/// A median between the least and the greatest.
type Range = [f64; 3];

/// A suite as the script reads it.
#[derive(Debug, Serialize)]
pub struct View {
    /// Which of the page's suites this is: the start of its marks.
    pub id: String,
    /// Systems that have points, all-DRAM first.
    pub systems: Vec<SystemView>,
    /// Numbers of threads, from the least.
    pub threads: Vec<usize>,
    /// Data by near, from the least.
    pub ratios: Vec<f64>,
    /// What is chosen when the page opens.
    pub start: Start,
    /// In the order of the file.
    pub works: Vec<WorkView>,
}

/// What is chosen when the page opens: what the conclusion is about.
#[derive(Debug, Serialize)]
pub struct Start {
    /// Key of a system under nearfar.
    pub far: Option<String>,
    /// Threads.
    pub threads: usize,
    /// Data by near.
    pub ratio: f64,
}

/// A system.
#[derive(Debug, Serialize)]
pub struct SystemView {
    /// As the file has it.
    pub key: String,
    /// For people.
    pub name: &'static str,
    /// Whether it is nearfar's.
    pub nearfar: bool,
    /// Whether it is a mode, to be seen beside others.
    pub mode: bool,
}

/// A work.
#[derive(Debug, Serialize)]
pub struct WorkView {
    /// Its name.
    pub name: String,
    /// What it is.
    pub title: String,
    /// How it goes over its data.
    pub access: String,
    /// Its points.
    pub points: Vec<PointView>,
}

/// A point. `e`: shares of the speed in all-DRAM; `g`: GB/s; `s`: seconds of a repetition.
#[derive(Debug, Default, Serialize)]
pub struct PointView {
    /// Key of its system.
    pub system: String,
    /// Threads.
    pub threads: usize,
    /// Data by near.
    pub ratio: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    e: Option<Range>,
    #[serde(skip_serializing_if = "Option::is_none")]
    g: Option<Range>,
    #[serde(skip_serializing_if = "Option::is_none")]
    s: Option<Range>,
    /// The bound in the same three units.
    #[serde(skip_serializing_if = "Option::is_none")]
    bound: Option<BoundView>,
    /// How many runs gave a figure.
    runs: usize,
    /// At least half were stopped: e and g are upper limits, s a lower one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stopped: bool,
    /// What has to be known: why there is no figure, what failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    /// Shares of the threads' time: computing and all else, waiting for far, waiting for the pager. Their sum is 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split: Option<Range>,
    /// What repeats it.
    command: String,
}

/// A bound in three units, where they are known.
#[derive(Debug, Serialize)]
struct BoundView {
    e: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    g: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    s: Option<f64>,
    because: String,
}

/// Of `file`, with what is chosen first.
pub fn view(id: &str, file: &SuiteFile, far: Option<System>, threads: usize, ratio: f64) -> View {
    let all = [System::Dram, System::Disk, System::Emulated, System::Swap, System::Mmap].into_iter().chain(MODES);
    let points = || file.works.iter().flat_map(|work| &work.points);
    let mut counts: Vec<usize> = points().map(|point| point.threads).collect();
    counts.sort_unstable();
    counts.dedup();
    let mut ratios: Vec<f64> = points().map(|point| point.ratio).filter(|ratio| *ratio > 0.0).collect();
    ratios.sort_by(f64::total_cmp);
    ratios.dedup();
    let systems = all.filter(|system| points().any(|point| point.system == *system));
    View {
        id: id.to_owned(),
        systems: systems
            .map(|system| SystemView {
                key: key(system),
                name: system.name(),
                nearfar: system.is_nearfar(),
                mode: system.is_mode(),
            })
            .collect(),
        start: Start {
            far: far.map(key),
            threads: if threads == 0 { counts.last().copied().unwrap_or(1) } else { threads },
            ratio: if ratio > 0.0 { ratio } else { ratios.first().copied().unwrap_or(1.0) },
        },
        threads: counts,
        ratios,
        works: file.works.iter().map(of_work).collect(),
    }
}

/// As the file has it.
pub fn key(system: System) -> String {
    serde_json::to_value(system).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

fn of_work(work: &WorkResults) -> WorkView {
    WorkView {
        name: work.name.clone(),
        title: work.title.clone(),
        access: work.access.clone(),
        points: work.points.iter().map(|point| of_point(work, point)).collect(),
    }
}

fn of_point(work: &WorkResults, point: &Point) -> PointView {
    let bytes = Spread::of(&point.runs, |run| run.bytes_per_s / 1e9).filter(|spread| spread.median > 0.0);
    PointView {
        system: key(point.system),
        threads: point.threads,
        ratio: point.ratio,
        e: work.efficiency(point).map(range),
        g: bytes.map(range),
        s: Spread::of(&point.runs, |run| run.seconds).map(range),
        bound: of_bound(work, point),
        runs: bytes.map_or(0, |spread| spread.runs),
        stopped: Spread::of(&point.runs, |run| run.rate).is_some_and(|spread| spread.stopped),
        notes: notes(work, point),
        split: split(point),
        command: point.command.clone(),
    }
}

fn range(spread: Spread) -> Range {
    [rounded(spread.median), rounded(spread.low), rounded(spread.high)]
}

/// Four digits are more than is shown, and a quarter of the text.
fn rounded(value: f64) -> f64 {
    if !value.is_finite() || value == 0.0 {
        return 0.0;
    }
    format!("{value:.3e}").parse().unwrap_or(value)
}

fn of_bound(work: &WorkResults, point: &Point) -> Option<BoundView> {
    let bound = point.bound.as_ref().filter(|bound| bound.efficiency > 0.0)?;
    let dram = work.point(System::Dram, point.threads, 0.0).map_or(&[][..], |dram| &dram.runs);
    let of = |figure: fn(&PointRun) -> f64| {
        Spread::of(dram, figure).filter(|spread| !spread.stopped && spread.median > 0.0).map(|spread| spread.median)
    };
    Some(BoundView {
        e: rounded(bound.efficiency),
        g: of(|run| run.bytes_per_s / 1e9).map(|rate| rounded(rate * bound.efficiency)),
        s: of(|run| run.seconds).map(|seconds| rounded(seconds / bound.efficiency)),
        because: bound.because.clone(),
    })
}

/// What has to be known of a point beside its figures.
pub fn notes(work: &WorkResults, point: &Point) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    notes.extend(point.obstacle.as_ref().map(|why| format!("cannot run here: {why}")));
    if work.gave_same_data(point) == Some(false) {
        notes.push("WRONG DATA: not those of all-DRAM".to_owned());
    }
    for why in point.runs.iter().filter_map(|run| run.failed.as_ref()) {
        let note = format!("a run failed: {why}");
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    let stopped = point.runs.iter().filter(|run| run.stopped).count();
    if stopped > 0 {
        notes.push(format!("{stopped} of {} runs reached the time limit", point.runs.len()));
    }
    if point.obstacle.is_none() && point.runs.is_empty() {
        notes.push("not measured".to_owned());
    }
    notes
}

/// Where the time of all threads went, as shares: the rest (computing, mostly), waiting for far, waiting for the pager. Under nearfar.
pub fn split(point: &Point) -> Option<[f64; 3]> {
    let good = || point.runs.iter().filter(|run| run.failed.is_none());
    let sum = |figure: fn(&PointRun) -> f64| good().map(figure).sum::<f64>();
    let all = sum(|run| run.wall_s) * point.threads as f64;
    if !point.system.is_nearfar() || all <= 0.0 {
        return None;
    }
    // Threads that start and end within the program may make the sum larger than threads x wall time.
    let stall = (sum(|run| run.stall_s) / all).clamp(0.0, 1.0);
    let far = (sum(|run| run.far_s) / all).clamp(0.0, stall);
    let shares = [far, stall - far].map(|share| (share * 1000.0).round() / 1000.0);
    Some([((1.0 - shares[0] - shares[1]) * 1000.0).round() / 1000.0, shares[0], shares[1]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::suite::sample_file;

    #[test]
    fn the_script_gets_every_figure() {
        let file = sample_file();
        let view = view("suite0", &file, Some(System::Disk), 2, 3.0);
        assert_eq!((view.systems.len(), view.works.len(), view.threads.as_slice()), (5, 24, &[1, 2][..]));
        let triad = &view.works[0];
        let disk =
            triad.points.iter().find(|point| point.system == "disk" && point.threads == 2 && point.ratio == 3.0).expect("it");
        let (e, g, s) = (disk.e.expect("E"), disk.g.expect("GB/s"), disk.s.expect("seconds"));
        assert!(e[1] <= e[0] && e[0] <= e[2] && (0.6..0.66).contains(&e[0]) && g[0] > 0.0 && s[0] > 0.0, "{disk:?}");
        let bound = disk.bound.as_ref().expect("a bound");
        let dram = triad.points.iter().find(|point| point.system == "dram" && point.threads == 2).expect("all-DRAM");
        assert!((bound.s.expect("seconds") * bound.e / dram.s.expect("seconds")[0] - 1.0).abs() < 0.01);
        let split = disk.split.expect("under nearfar");
        assert!((split.iter().sum::<f64>() - 1.0).abs() < 1e-9 && dram.split.is_none());
        let nbody = view.works.iter().find(|work| work.name == "nbody").expect("it");
        let mmap = nbody.points.iter().find(|point| point.system == "mmap").expect("it");
        assert!(mmap.e.is_none() && mmap.notes[0].starts_with("cannot run here"));
        assert_eq!([rounded(0.123_456), rounded(f64::NAN), rounded(0.0)], [0.1235, 0.0, 0.0]);
    }

    #[test]
    fn notes_tell_what_went_wrong() {
        let file = sample_file();
        let note = |name: &str, system, ratio| {
            let work = file.works.iter().find(|work| work.name == name).expect("it");
            notes(work, work.point(system, 2, ratio).expect("a point")).join("; ")
        };
        assert!(note("sort", System::Mmap, 6.0).contains("WRONG DATA"));
        assert!(note("bfs", System::Swap, 8.0).contains("out of memory"));
        assert!(note("chase", System::Swap, 8.0).contains("3 of 3 runs reached the time limit"));
        assert!(note("triad", System::Disk, 3.0).is_empty());
    }
}
