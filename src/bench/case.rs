//! What can be said of one measurement: the program, its size and length, who it is compared with, and what is aimed at.
//!
//! Pure types; the cases themselves are in `cases`, and nothing here runs.

use super::external::Program;
use super::goal::Goal;
use super::rival::Rival;
use crate::cli::bench::Suite;
use serde::Serialize;

/// What is read from a repetition. All are rates: more is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Program traffic, bytes per second.
    BytesPerS,
    /// Operations per second, named by the workload's noun.
    OperationsPerS(&'static str),
    /// Floating-point operations per second.
    FlopPerS,
}

/// The limit that hardware sets, if one is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Every sweep must read what near cannot hold, and write the given share (in percent) of it.
    Sweep {
        /// Share of the data whose pages each sweep touches.
        touched_percent: u64,
        /// Share of what each sweep touches that it writes.
        written_percent: u64,
    },
    /// Every miss waits for one random read.
    Miss,
    /// None but all-DRAM.
    None,
}

/// How long a run is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Length {
    /// Timed repetitions; the first warms up when there are more.
    pub repetitions: usize,
    /// Longest seconds of one repetition, watched by the workload.
    pub seconds: Option<f64>,
    /// Runs at the most, whatever `--runs` says.
    pub runs: usize,
}

/// One workload at one size under several systems.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its suite.
    pub suite: Suite,
    /// A line that says what is measured.
    pub title: String,
    /// What is run.
    pub program: Program,
    /// Its arguments, without sizes, threads and length.
    pub arguments: Vec<String>,
    /// Options of `nearfar run` besides.
    pub options: Vec<String>,
    /// Bytes of data.
    pub data_bytes: u64,
    /// Bytes of near memory.
    pub near_bytes: u64,
    /// What far is under nearfar.
    pub far: Far,
    /// Threads, where the case asks for a number of its own.
    pub threads: Option<usize>,
    /// Systems compared, in the order that they run in.
    pub rivals: &'static [Rival],
    /// What is compared.
    pub metric: Metric,
    /// True when a repetition is a fixed amount of work, so that running out of time gives only a bound of the rate.
    pub fixed_work: bool,
    /// Whether the data is read back at the end: not where counters are to be those of the measured part alone.
    pub read_back: bool,
    /// Length of most runs.
    pub length: Length,
    /// Length of runs under kernel swap, which is too slow for the same.
    pub swap_length: Length,
    /// The hardware's limit.
    pub limit: Limit,
    /// What nearfar should reach.
    pub goals: Vec<Goal>,
}

/// What the far tier is under nearfar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Far {
    /// The directory of the bench.
    Directory,
    /// Memory throttled to [`EMULATED_SHARE`] of the bandwidth of DRAM.
    Emulated,
    /// Nodes of this machine, and near other ones.
    Nodes,
}

/// Emulated far has one part in so many of the bandwidth that triad reaches in DRAM: the ratio of the machine IMDT was measured on.
pub const EMULATED_SHARE: f64 = 8.0;
/// Latency of emulated far, microseconds.
pub const EMULATED_LATENCY_US: u32 = 10;
/// Least near of a case: `nearfar run` refuses less.
pub const LEAST_NEAR: u64 = 16 << 20;

/// How thorough a bench is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// One tiny run of everything.
    Smoke,
    /// A few minutes.
    Quick,
    /// As long as it takes.
    Full,
}

/// Sizes that all cases derive from.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Bytes of data.
    pub data_bytes: u64,
    /// Bytes of near memory.
    pub near_bytes: u64,
    /// How thorough.
    pub effort: Effort,
}

impl Case {
    /// How long a run under `rival` is.
    pub const fn length_under(&self, rival: Rival) -> Length {
        match rival {
            Rival::Swap => self.swap_length,
            Rival::Dram | Rival::Nearfar | Rival::Grain(_) | Rival::MappedFile | Rival::AdvisedFile => self.length,
        }
    }
}

impl Metric {
    /// A rate for people: `1.234 GB/s`, `23.1 k updates/s`, `130.4 GFLOP/s`. Powers of ten.
    pub fn show(&self, rate: f64) -> String {
        match self {
            Metric::BytesPerS => format!("{:.3} GB/s", rate / 1e9),
            Metric::FlopPerS => format!("{:.1} GFLOP/s", rate / 1e9),
            Metric::OperationsPerS(noun) => {
                let (value, prefix) = match rate {
                    r if r >= 1e6 => (r / 1e6, "M "),
                    r if r >= 1e3 => (r / 1e3, "k "),
                    r => (r, ""),
                };
                format!("{value:.1} {prefix}{noun}/s")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_readable() {
        assert_eq!(Metric::BytesPerS.show(1.5e9), "1.500 GB/s");
        assert_eq!(Metric::OperationsPerS("hops").show(23_100.0), "23.1 k hops/s");
    }
}
