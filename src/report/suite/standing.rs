//! Where each work stands at one system, number of threads and ratio: the speed it keeps.

use crate::files::suite::{Spread, SuiteFile, System, WorkResults};
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

/// All works of `file`, in its order, but for those that others are held against.
pub fn standings(file: &SuiteFile, system: System, threads: usize, ratio: f64) -> Vec<Standing<'_>> {
    let of = |work: &WorkResults| work.efficiency(work.point(system, threads, ratio)?);
    let own = file.works.iter().filter(|work| !work.reference);
    own.map(|work| Standing { name: &work.name, access: &work.access, speed: of(work) }).collect()
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
