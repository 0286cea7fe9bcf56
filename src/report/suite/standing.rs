//! Where each work stands at one system, number of threads and ratio: the speed it keeps.

use crate::files::suite::{Point, PointRun, Spread, SuiteFile, System, WorkResults};
use nearfar_core::node::words;

/// One work there.
#[derive(Clone, Copy, Debug)]
pub struct Standing<'a> {
    /// Its name.
    pub name: &'a str,
    /// How it goes over its data.
    pub access: &'a str,
    /// Its speed as a share of that in all-DRAM, if both were measured.
    pub speed: Option<Spread>,
}

/// All works of `file`, in its order.
pub fn standings(file: &SuiteFile, system: System, threads: usize, ratio: f64) -> Vec<Standing<'_>> {
    let of = |work: &WorkResults| work.efficiency(work.point(system, threads, ratio)?);
    file.works.iter().map(|work| Standing { name: &work.name, access: &work.access, speed: of(work) }).collect()
}

impl Standing<'_> {
    /// Whether it is known on which side of `limit` it stands: a stopped run above it could be either.
    pub fn is_judged(&self, limit: f64) -> bool {
        self.speed.is_some_and(|speed| !speed.stopped || speed.median <= limit)
    }

    /// Whether it is above `limit`.
    pub fn keeps(&self, limit: f64) -> bool {
        self.speed.is_some_and(|speed| !speed.stopped && speed.median > limit)
    }

    /// The share, which it has at most; without a figure: infinite.
    pub fn at_most(&self) -> f64 {
        self.speed.map_or(f64::INFINITY, |speed| speed.median)
    }

    /// "71 %", "≤ 4.0 %".
    pub fn shown(&self) -> String {
        self.speed.map_or_else(|| "not known".to_owned(), |speed| shown(&speed))
    }
}

/// A share of speed in words.
pub fn shown(speed: &Spread) -> String {
    format!("{}{}", if speed.stopped { "≤ " } else { "" }, words::percent(speed.median))
}

/// Whether the runs of `point` that ended read back the data that all-DRAM had with as many threads. `None` where that cannot be told:
/// nothing was read back, or the data differ from run to run in all-DRAM.
pub fn gave_same_data(work: &WorkResults, point: &Point) -> Option<bool> {
    let ended = |run: &&PointRun| run.failed.is_none() && !run.stopped && !run.checksum.is_empty();
    let dram = work.point(System::Dram, point.threads, 0.0).filter(|_| point.system != System::Dram)?;
    let mut right = dram.runs.iter().filter(ended).map(|run| &run.checksum);
    let first = right.next()?;
    let mut ours = point.runs.iter().filter(ended).map(|run| &run.checksum).peekable();
    ours.peek()?;
    right.all(|checksum| checksum == first).then(|| ours.all(|checksum| checksum == first))
}
