//! What the device under far can do, measured between the runs, and the limit that this sets to each case.
//!
//! A bound uses the best of the device's samples, so that noise cannot make nearfar look better than it is. Does not decide policy:
//! the sweep bound is that of any policy (no policy reads less than data minus near per sweep, nor writes less than what changes
//! minus near).

use super::case::{Case, Limit};
use crate::sample::median;
use anyhow::{Context, Result};
use nearfar_kernels::device::DeviceFile;
use serde::Serialize;
use std::path::Path;
use std::time::Duration;

/// Requests of 1 MiB under way at once in sequential measurements.
pub const DEPTH: usize = 32;
/// How long single pages are read at that depth.
const PAGES_TIME: Duration = Duration::from_millis(300);

/// Samples, one per round.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Device {
    /// False when the file system refused direct I/O, so that the figures are the page cache's.
    pub direct: bool,
    /// Sequential reads, bytes per second.
    pub read: Vec<f64>,
    /// Sequential writes, bytes per second.
    pub write: Vec<f64>,
    /// Reads and writes mixed as the case does, bytes per second of both.
    pub mixed: Vec<f64>,
    /// 4 KiB random reads with as many threads as the workload, per second.
    pub random: Vec<f64>,
    /// 4 KiB random reads with as many at once as sequential ones, bytes per second: what a sweep gets that reads page by page.
    pub pages: Vec<f64>,
}

/// A limit and its derivation in words.
#[derive(Clone, Debug, Serialize)]
pub struct Bound {
    /// In the unit of the case's metric, per second.
    pub rate: f64,
    /// How it comes about.
    pub because: String,
}

/// Bytes that a sweep moves whatever the policy: what near cannot hold must be read, and what changes and near could not hold even
/// if it kept nothing else must be written. A policy that keeps what is written reaches both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Least {
    bytes_in: u64,
    bytes_out: u64,
}

impl Least {
    fn of(case: &Case) -> Option<Self> {
        let Limit::Sweep { touched_percent, written_percent } = case.limit else { return None };
        let touched = case.data_bytes * touched_percent / 100;
        let written = touched * written_percent / 100;
        let beyond_near = |bytes: u64| bytes.saturating_sub(case.near_bytes);
        Some(Self { bytes_in: beyond_near(touched), bytes_out: beyond_near(written) })
    }

    /// `None` where nothing must be written.
    fn reads_per_write(&self) -> Option<usize> {
        let ratio = self.bytes_in as f64 / self.bytes_out as f64;
        (self.bytes_out > 0).then_some(ratio.round().max(1.0) as usize)
    }
}

impl Device {
    /// Takes one more sample of what `case` needs, with a file of `bytes` in `far`.
    pub fn sample(&mut self, far: &Path, bytes: u64, case: &Case, threads: usize) -> Result<()> {
        if case.limit == Limit::None {
            return Ok(());
        }
        let file = DeviceFile::create(far, bytes as usize)
            .with_context(|| format!("cannot measure the device under {}", far.display()))?;
        self.direct = file.is_direct();
        match case.limit {
            Limit::Sweep { .. } => {
                self.read.push(file.read(DEPTH)?.bytes_per_s());
                if let Some(reads_per_write) = Least::of(case).and_then(|least| least.reads_per_write()) {
                    self.write.push(file.write(DEPTH)?.bytes_per_s());
                    self.mixed.push(file.read_and_write(DEPTH, reads_per_write)?.bytes_per_s());
                }
                self.pages.push(file.read_random(DEPTH, PAGES_TIME)?.bytes_per_s());
            }
            Limit::Miss => {
                let threads = case.threads.unwrap_or(threads);
                self.random.push(file.read_random(threads, Duration::from_millis(700))?.operations_per_s());
            }
            Limit::None => {}
        }
        Ok(())
    }

    /// The limit of `case`, if it has one and the device was measured. `work`: work of one repetition, in the unit of the metric.
    pub fn bound(&self, case: &Case, work: Option<f64>, threads: usize) -> Option<Bound> {
        let best = |samples: &[f64]| samples.iter().copied().reduce(f64::max);
        match case.limit {
            Limit::None => None,
            Limit::Sweep { touched_percent, .. } => {
                let read = best(&self.read)?;
                let Least { bytes_in, bytes_out } = Least::of(case)?;
                let how = format!("1 MiB to and from huge pages, {DEPTH} at once, {}", self.io());
                let pages =
                    best(&self.pages).map_or(String::new(), |rate| format!("; page by page it reads {:.2} GB/s", rate / 1e9));
                let pages_of = if touched_percent < 100 { "of pages " } else { "" };
                let first = format!("a sweep must read the {:.0} MB {pages_of}that near cannot hold", bytes_in as f64 / 1e6);
                if bytes_out == 0 {
                    let because =
                        format!("{first}; near holds all that it changes; device: read {:.2} GB/s ({how}){pages}", read / 1e9);
                    return Some(Bound { rate: work? / (bytes_in as f64 / read), because });
                }
                let (write, mixed) = (best(&self.write)?, best(&self.mixed)?);
                // A device that reads and writes at once may beat the sum; the shorter time is the bound.
                let (bytes_in, bytes_out) = (bytes_in as f64, bytes_out as f64);
                let seconds = (bytes_in / read + bytes_out / write).min((bytes_in + bytes_out) / mixed);
                let because = format!(
                    "{first} and write the {:.0} MB of changed ones that near could not hold either; device: read {:.2}, write {:.2}, \
                     mixed in that proportion {:.2} GB/s ({how}){pages}",
                    bytes_out / 1e6,
                    read / 1e9,
                    write / 1e9,
                    mixed / 1e9
                );
                Some(Bound { rate: work? / seconds, because })
            }
            Limit::Miss => {
                let random = best(&self.random)?;
                let miss = 1.0 - case.near_bytes as f64 / case.data_bytes as f64;
                let because = format!(
                    "{:.0} % of accesses miss near, and each waits for a random 4 KiB read; device: {:.1} k such reads/s with \
                     {} threads, one each, {}",
                    miss * 100.0,
                    random / 1e3,
                    case.threads.unwrap_or(threads),
                    self.io()
                );
                Some(Bound { rate: random / miss, because })
            }
        }
    }

    fn io(&self) -> &'static str {
        if self.direct { "O_DIRECT" } else { "through the page cache: far refuses O_DIRECT" }
    }

    /// Medians of all samples, for people; empty when nothing was measured.
    pub fn describe(&self) -> String {
        let gb = |name: &str, samples: &[f64]| median(samples).map(|rate| format!("{name} {:.2} GB/s", rate / 1e9));
        let parts = [
            gb("read", &self.read),
            gb("write", &self.write),
            gb("mixed", &self.mixed),
            median(&self.random).map(|rate| format!("random 4 KiB reads {:.1} k/s", rate / 1e3)),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::super::case::{Effort, Sizes};
    use super::super::cases::{cases, triad};
    use super::*;
    use crate::cli::bench::Suite;

    const SIZES: Sizes = Sizes { data_bytes: 3_000_000_000, near_bytes: 1_000_000_000, effort: Effort::Full };

    #[test]
    fn sweep_bound_takes_the_best_device() {
        let device = Device { direct: true, read: vec![0.5e9, 1e9], write: vec![1e9], mixed: vec![0.1e9], ..Device::default() };
        let [streams, columns] = [2, 4].map(|index| cases(Suite::Sweeps, SIZES).swap_remove(index));
        // 2 GB in, and 2 or 0.5 GB out.
        assert!((device.bound(&streams, Some(3e9), 2).expect("measured").rate - 3e9 / 4.0).abs() < 1e6);
        assert!((device.bound(&columns, Some(3e9), 2).expect("measured").rate - 3e9 / 2.5).abs() < 1e6);
        assert!(device.bound(&streams, None, 2).is_none());
        let both = Device { mixed: vec![2e9], ..device };
        assert!((both.bound(&streams, Some(3e9), 2).expect("measured").rate - 3e9 / 2.0).abs() < 1e6);
    }

    #[test]
    fn only_what_near_cannot_hold_must_be_moved() {
        let [streams, columns] = [2, 4].map(|index| Least::of(&cases(Suite::Sweeps, SIZES).swap_remove(index)).expect("a sweep"));
        assert_eq!((streams.reads_per_write(), columns.reads_per_write()), (Some(1), Some(4)));
        // A third of the data is written, and near holds it.
        let triad = Least::of(&triad(SIZES)).expect("a sweep");
        assert_eq!((triad.bytes_in, triad.bytes_out, triad.reads_per_write()), (2_000_000_000, 0, None));
        assert_eq!(Least::of(&cases(Suite::Random, SIZES).remove(0)), None);
    }

    #[test]
    fn only_touched_pages_and_changed_bytes_count() {
        let device = Device { read: vec![1e9], pages: vec![0.2e9], ..Device::default() };
        let strided = cases(Suite::Sweeps, SIZES).remove(0);
        let bound = device.bound(&strided, Some(1e6), 2).expect("nothing is written, so writes need no measurement");
        // Half of 3 GB is touched, and near is 500 MB, rounded to MiB.
        assert!((bound.rate - 1e6).abs() < 2e3, "{}", bound.rate);
        assert!(bound.because.contains("page by page it reads 0.20 GB/s"), "{}", bound.because);
    }

    #[test]
    fn miss_bound_counts_only_misses() {
        let device = Device { random: vec![20_000.0], ..Device::default() };
        let case = cases(Suite::Random, SIZES).remove(0);
        assert!((device.bound(&case, None, 2).expect("measured").rate - 30_000.0).abs() < 1.0);
    }
}
