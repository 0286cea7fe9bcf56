//! What the pager's own tables take, and whether a fault costs more where more is allocated.
//!
//! The same number of pages is used, touched as often at random, with the same near, in an arena that holds just these pages, and in
//! ones of 4 and 16 times the size over which they are spread. So only the size of the arena differs. The three are run in turn.

use super::case::{Case, Effort, LEAST_NEAR, Length, Sizes};
use super::goal::{Figure, Target, Unit, Verdict};
use super::latency::{FaultTimes, failure, touches};
use super::rival::Rival;
use super::runner::{Run, Runner};
use anyhow::Result;
use nearfar_core::units::Bytes;
use serde::Serialize;

/// Sizes of the arena, in sizes of the pages used.
const SPREADS: [u64; 3] = [1, 4, 16];
/// Bytes of the pages used at the most: an arena of 1, 4 and 16 GiB.
const MOST: u64 = 1 << 30;
/// Bytes of a page.
const PAGE: u64 = 4096;
/// Part of the arena that tables may take.
const TABLES_GOAL: f64 = 0.001;
/// How much longer a fault in the largest arena may take: what is left for noise and for page tables of the kernel's.
const GROWTH_GOAL: f64 = 1.1;

/// One size of arena.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Arena {
    /// Bytes allocated.
    pub bytes: u64,
    /// Why it was not measured.
    pub obstacle: Option<String>,
    /// Most bytes of tables, per round.
    pub metadata_bytes: Vec<u64>,
    /// Demand faults, per round.
    pub faults: Vec<FaultTimes>,
}

/// All sizes.
#[derive(Clone, Debug, Serialize)]
pub struct Metadata {
    /// Near of all.
    pub near_bytes: u64,
    /// Bytes of the pages used in each.
    pub working_bytes: u64,
    /// In order of size.
    pub arenas: Vec<Arena>,
    /// What went wrong.
    pub failures: Vec<String>,
}

impl Metadata {
    /// No runs yet. `far_available_bytes`: what the file system of far has.
    pub fn new(sizes: Sizes, far_available_bytes: u64) -> Self {
        let working_bytes = sizes.data_bytes.min(MOST);
        // Written pages are not given back before the end, and single ones go to a log: three times them is ample.
        let needed = 3 * working_bytes;
        let short = (far_available_bytes < needed)
            .then(|| format!("far has {} free, and up to {} may be needed", Bytes(far_available_bytes), Bytes(needed)));
        let arena = |spread| Arena { bytes: working_bytes * spread, obstacle: short.clone(), ..Arena::default() };
        let near_bytes = sizes.near_bytes.min(working_bytes / 3).max(LEAST_NEAR);
        Self { near_bytes, working_bytes, arenas: SPREADS.map(arena).to_vec(), failures: Vec::new() }
    }

    /// One more round of all sizes.
    pub fn round(&mut self, runner: &Runner, sizes: Sizes) -> Result<()> {
        for index in 0..self.arenas.len() {
            if self.arenas[index].obstacle.is_some() {
                continue;
            }
            let case = self.case(sizes, index);
            let run = runner.run(&case, Rival::Nearfar, None)?;
            if let Some(why) = failure(&run) {
                self.failures.push(format!("{}: {why}", case.title));
            } else {
                self.arenas[index].take(&run);
            }
        }
        Ok(())
    }

    fn case(&self, sizes: Sizes, index: usize) -> Case {
        let stride = SPREADS[index] * PAGE;
        let touched = if sizes.effort == Effort::Smoke { 500 } else { 20_000 };
        let options = [("--working", self.working_bytes), ("--stride", stride), ("--ops", touched)];
        let length = Length { repetitions: 1, seconds: Some(60.0), runs: usize::MAX };
        let bytes = self.arenas[index].bytes;
        let title = format!("metadata, arena of {}", Bytes(bytes));
        Case { data_bytes: bytes, near_bytes: self.near_bytes, ..touches(sizes, &title, &options, length) }
    }

    /// Both rows of the table of speed.
    pub fn verdicts(&self) -> Vec<Verdict> {
        // The worst arena of each round.
        let rounds = self.arenas.iter().map(|arena| arena.metadata_bytes.len()).min().unwrap_or(0);
        let share = |round: usize| self.arenas.iter().map(move |arena| arena.metadata_bytes[round] as f64 / arena.bytes as f64);
        let shares: Vec<f64> = (0..rounds).map(|round| share(round).fold(0.0, f64::max)).collect();
        let p50 = |arena: Option<&Arena>, round: usize| Some(arena?.faults.get(round)?.times?.p50_us);
        let growth = |round| Some(p50(self.arenas.last(), round)? / p50(self.arenas.first(), round)?);
        let growths: Vec<f64> = (0..rounds).filter_map(growth).collect();
        let obstacle = self.arenas.iter().find_map(|arena| arena.obstacle.clone());
        let why =
            || obstacle.clone().or_else(|| self.failures.first().cloned()).unwrap_or_else(|| "there was no fault".to_owned());
        let sizes: Vec<String> = self.arenas.iter().map(|arena| Bytes(arena.bytes).to_string()).collect();
        let (least, most) = (sizes.first().cloned().unwrap_or_default(), sizes.last().cloned().unwrap_or_default());
        vec![
            Verdict::new(
                "metadata",
                format!("share of the arena, worst of {}", sizes.join(", ")),
                Figure::of(&shares).ok_or_else(why),
                Unit::Share,
                (Target::AtMost, TABLES_GOAL),
            ),
            Verdict::new(
                format!("cost of a demand fault in {most}, p50"),
                format!("that in {least}: no growth"),
                Figure::of(&growths).ok_or_else(why),
                Unit::Times,
                (Target::AtMost, GROWTH_GOAL),
            ),
        ]
    }

    /// For people.
    pub fn lines(&self) -> String {
        let mut text = format!(
            "metadata: {} of pages used at random by one thread, near {}, spread over arenas of three sizes\n",
            Bytes(self.working_bytes),
            Bytes(self.near_bytes)
        );
        for arena in &self.arenas {
            let size = Bytes(arena.bytes);
            if let Some(why) = &arena.obstacle {
                text += &format!("  arena of {size}: not measured: {why}\n");
            }
            for (metadata, faults) in arena.metadata_bytes.iter().zip(&arena.faults) {
                let share = Unit::Share.show(*metadata as f64 / arena.bytes as f64);
                let stall = faults.mean_stall_us.map_or(String::new(), |us| format!("; stall per fault {us:.1} us"));
                text += &format!("  arena of {size}: tables {} ({share}); demand {}{stall}\n", Bytes(*metadata), faults.line());
            }
        }
        self.failures.iter().for_each(|failure| text += &format!("  FAULT: {failure}\n"));
        text
    }
}

impl Arena {
    fn take(&mut self, run: &Run) {
        if let (Some(metadata), Some(faults)) = (run.counter("metadata_peak_bytes"), FaultTimes::demands(run)) {
            self.metadata_bytes.push(metadata);
            self.faults.push(faults);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::times::Percentiles;
    use super::*;

    const SIZES: Sizes = Sizes { data_bytes: 2400 << 20, near_bytes: 800 << 20, effort: Effort::Full };

    fn filled(metadata_bytes: [u64; 3], p50_us: [f64; 3]) -> Metadata {
        let mut metadata = Metadata::new(SIZES, u64::MAX);
        for (arena, (bytes, p50_us)) in metadata.arenas.iter_mut().zip(metadata_bytes.into_iter().zip(p50_us)) {
            let times = Some(Percentiles { p50_us, p99_us: p50_us, count: 9 });
            arena.metadata_bytes.push(bytes);
            arena.faults.push(FaultTimes { times, slow_touches: 9, counters: [0, 9, 0, 0], mean_stall_us: None });
        }
        metadata
    }

    #[test]
    fn arenas_are_1_4_and_16_gib_and_only_the_worst_counts() {
        let metadata = filled([1 << 20, 3 << 20, 15 << 20], [100.0, 110.0, 105.0]);
        assert_eq!(metadata.arenas.iter().map(|arena| arena.bytes >> 30).collect::<Vec<_>>(), [1, 4, 16]);
        let verdicts = metadata.verdicts();
        assert_eq!((verdicts[0].met, verdicts[1].met), (Some(true), Some(true)));
        let verdicts = filled([2 << 20, 3 << 20, 15 << 20], [100.0, 100.0, 120.0]).verdicts();
        assert_eq!((verdicts[0].met, verdicts[1].met), (Some(false), Some(false)));
    }

    #[test]
    fn want_of_space_is_said() {
        let metadata = Metadata::new(SIZES, 1 << 30);
        assert!(metadata.lines().contains("not measured: far has"));
        assert!(metadata.verdicts()[0].cells()[3].starts_with("skipped: far has"));
    }
}
