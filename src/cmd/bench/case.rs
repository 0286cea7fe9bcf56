//! What each suite runs: the workload, its size and length, and who it is compared with. A table in code; nothing here runs.

use super::rival::Rival;
use clap::ValueEnum;
use serde::Serialize;

/// A group of cases that answers one question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Suite {
    /// Sweeps over data larger than near: is the device's bandwidth used?
    Triad,
    /// 8-byte updates at random: is the device's random-read rate used?
    Random,
    /// Dependent loads: what does one miss cost?
    Chase,
    /// A program tiled for near: is paging nearly free there?
    Gemm,
    /// Data that fits in near: does nearfar cost anything?
    Fits,
    /// A program that does nothing: what does starting under nearfar add?
    Startup,
}

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
        /// Share of the data that each sweep writes.
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
    /// Arguments of nearfar-kernel, without sizes, threads and length.
    pub arguments: Vec<String>,
    /// Bytes of data.
    pub data_bytes: u64,
    /// Bytes of near memory.
    pub near_bytes: u64,
    /// Systems compared, in the order that they run in.
    pub rivals: &'static [Rival],
    /// What is compared.
    pub metric: Metric,
    /// True when a repetition is a fixed amount of work, so that running out of time gives only a bound of the rate.
    pub fixed_work: bool,
    /// Length of most runs.
    pub length: Length,
    /// Length of runs under kernel swap, which is too slow for the same.
    pub swap_length: Length,
    /// The hardware's limit.
    pub limit: Limit,
}

/// Sizes that all cases derive from.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Bytes of data.
    pub data_bytes: u64,
    /// Bytes of near memory.
    pub near_bytes: u64,
    /// True for one tiny run of everything.
    pub smoke: bool,
}

const EVERYONE: &[Rival] = &[Rival::Dram, Rival::Nearfar, Rival::MappedFile, Rival::AdvisedFile, Rival::Swap];
/// For random access, where mmap without madvise reads 32 pages for one and would be too easy to beat.
const STRONGEST: &[Rival] = &[Rival::Dram, Rival::Nearfar, Rival::AdvisedFile, Rival::Swap];
/// For GEMM, where no advice fits.
const PLAIN: &[Rival] = &[Rival::Dram, Rival::Nearfar, Rival::MappedFile, Rival::Swap];
const OURS: &[Rival] = &[Rival::Dram, Rival::Nearfar];

/// The cases of `suite`; none for start-up, which measures no workload.
pub fn cases(suite: Suite, sizes: Sizes) -> Vec<Case> {
    match suite {
        Suite::Triad => vec![triad(sizes)],
        Suite::Random => vec![random(sizes)],
        Suite::Chase => vec![chase(sizes)],
        Suite::Gemm => vec![gemm(sizes)],
        Suite::Fits => vec![fits_triad(sizes), fits_random(sizes), fits_touch(sizes)],
        Suite::Startup => Vec::new(),
    }
}

/// STREAM triad over data larger than near.
pub fn triad(sizes: Sizes) -> Case {
    Case {
        suite: Suite::Triad,
        title: "triad: repeated sweeps a = b + s*c".to_owned(),
        arguments: vec!["triad".to_owned()],
        data_bytes: sizes.data_bytes,
        near_bytes: sizes.near_bytes,
        rivals: EVERYONE,
        metric: Metric::BytesPerS,
        fixed_work: true,
        length: Length { repetitions: if sizes.smoke { 2 } else { 4 }, seconds: Some(60.0), runs: usize::MAX },
        // One sweep takes 20 to 40 s for 2400M.
        swap_length: Length { repetitions: 1, seconds: Some(45.0), runs: 2 },
        limit: Limit::Sweep { written_percent: 33 },
    }
}

fn clocked(sizes: Sizes, seconds: f64, runs: usize) -> Length {
    Length { repetitions: 2, seconds: Some(if sizes.smoke { 0.3 } else { seconds }), runs }
}

fn random(sizes: Sizes) -> Case {
    Case {
        suite: Suite::Random,
        title: "random updates: 8 bytes read and written at random".to_owned(),
        // More operations than any machine does in the time: the clock ends a repetition.
        arguments: ["random", "--ops", "1000000000000"].map(str::to_owned).to_vec(),
        rivals: STRONGEST,
        metric: Metric::OperationsPerS("updates"),
        fixed_work: false,
        length: clocked(sizes, 3.0, usize::MAX),
        swap_length: clocked(sizes, 3.0, 2),
        limit: Limit::Miss,
        ..triad(sizes)
    }
}

fn chase(sizes: Sizes) -> Case {
    Case {
        suite: Suite::Chase,
        title: "pointer chase: dependent loads over pages in random order".to_owned(),
        arguments: ["chase", "--stride", "4096", "--ops", "1000000000000"].map(str::to_owned).to_vec(),
        metric: Metric::OperationsPerS("hops"),
        length: clocked(sizes, 2.0, usize::MAX),
        swap_length: clocked(sizes, 2.0, 1),
        ..random(sizes)
    }
}

/// Tiled GEMM on a quarter of the data: its work grows with the 3/2 power of it.
pub fn gemm(sizes: Sizes) -> Case {
    let part = if sizes.smoke { 2 } else { 4 };
    let near_bytes = whole_mib(sizes.near_bytes / part);
    Case {
        suite: Suite::Gemm,
        title: "tiled GEMM: f32, three tiles fit near".to_owned(),
        arguments: ["gemm", "--near"].map(str::to_owned).into_iter().chain([near_bytes.to_string()]).collect(),
        data_bytes: whole_mib(sizes.data_bytes / part),
        near_bytes,
        rivals: PLAIN,
        metric: Metric::FlopPerS,
        length: Length { repetitions: 1, seconds: Some(60.0), runs: usize::MAX },
        swap_length: Length { repetitions: 1, seconds: Some(45.0), runs: 1 },
        limit: Limit::None,
        ..triad(sizes)
    }
}

/// Three fifths of near: room for the program itself, and no page has to leave.
fn fits(sizes: Sizes) -> u64 {
    whole_mib(sizes.near_bytes * 3 / 5)
}

/// Rounded down, but not to nothing: sizes of cases are read by people.
fn whole_mib(bytes: u64) -> u64 {
    (bytes >> 20).max(1) << 20
}

fn fits_triad(sizes: Sizes) -> Case {
    Case {
        suite: Suite::Fits,
        title: "fits in near, triad".to_owned(),
        data_bytes: fits(sizes),
        rivals: OURS,
        length: Length { repetitions: 31, seconds: Some(10.0), runs: usize::MAX },
        limit: Limit::None,
        ..triad(sizes)
    }
}

fn fits_random(sizes: Sizes) -> Case {
    Case {
        suite: Suite::Fits,
        title: "fits in near, random updates".to_owned(),
        data_bytes: fits(sizes),
        rivals: OURS,
        length: clocked(sizes, 1.0, usize::MAX),
        limit: Limit::None,
        ..random(sizes)
    }
}

fn fits_touch(sizes: Sizes) -> Case {
    Case {
        suite: Suite::Fits,
        title: "fits in near, allocate and fill and free".to_owned(),
        arguments: vec!["touch".to_owned()],
        length: Length { repetitions: 5, seconds: Some(10.0), runs: usize::MAX },
        ..fits_triad(sizes)
    }
}

impl Case {
    /// How long a run under `rival` is.
    pub const fn length_under(&self, rival: Rival) -> Length {
        match rival {
            Rival::Swap => self.swap_length,
            Rival::Dram | Rival::Nearfar | Rival::MappedFile | Rival::AdvisedFile => self.length,
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
    fn every_case_has_sizes_that_ask_its_question() {
        let sizes = Sizes { data_bytes: 2400 << 20, near_bytes: 800 << 20, smoke: false };
        for suite in Suite::value_variants() {
            for case in cases(*suite, sizes) {
                assert_eq!(case.data_bytes < case.near_bytes, *suite == Suite::Fits, "{}", case.title);
                assert!(case.swap_length.runs < case.length.runs);
            }
        }
    }

    #[test]
    fn rates_are_readable() {
        assert_eq!(Metric::BytesPerS.show(1.5e9), "1.500 GB/s");
        assert_eq!(Metric::OperationsPerS("hops").show(23_100.0), "23.1 k hops/s");
    }
}
