//! Where each work stands at one system, number of threads and ratio: the speed it keeps; and what an answer is made of.

use crate::files::suite::{Spread, SuiteFile, System, WorkResults};
use nearfar_core::node::words;

/// The answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conclusion {
    /// In a sentence or two.
    pub lead: String,
    /// What has to be known beside it, a sentence each.
    pub more: Vec<String>,
    /// Data by near that it is about; 0 without any figure.
    pub ratio: f64,
    /// Threads that it is about.
    pub threads: usize,
    /// Far that it is about.
    pub far: Option<System>,
}

/// The ratio of data to near that the answer is given for, or the nearest to it.
const ASKED: f64 = 3.0;

/// That ratio of these; 0 without any.
pub fn nearest_to_asked(ratios: impl Iterator<Item = f64>) -> f64 {
    let distance = |ratio: f64| (ratio / ASKED).ln().abs();
    ratios.min_by(|a, b| distance(*a).total_cmp(&distance(*b))).unwrap_or(0.0)
}

/// "half", "a third": near, by data.
pub fn share_of_memory(ratio: f64) -> String {
    let known = [(1.5, "two thirds"), (2.0, "half"), (3.0, "a third"), (4.0, "a quarter"), (5.0, "a fifth"), (6.0, "a sixth")];
    let known = known.into_iter().chain([(8.0, "an eighth"), (10.0, "a tenth")]).find(|(of, _)| (of - ratio).abs() < 0.01);
    known.map_or_else(|| words::percent(1.0 / ratio), |(_, words)| words.to_owned())
}

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
    // As little as a thousandth is a figure too.
    let share =
        if speed.median < 0.001 { format!("{} %", words::digits(100.0 * speed.median)) } else { words::percent(speed.median) };
    format!("{}{share}", if speed.stopped { "≤ " } else { "" })
}
