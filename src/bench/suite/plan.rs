//! In which order a suite runs its points. Pure.

use super::super::runner::quoted;
use super::works::{WORKS, Work};
use crate::files::suite::{SuiteSettings, System, WorkResults};
use std::path::Path;

/// One run of one point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// From 0.
    pub round: usize,
    /// Place of the work in the suite.
    pub work: usize,
    /// Threads.
    pub threads: usize,
    /// What it runs on.
    pub system: System,
    /// Data by near; 0 for all-DRAM.
    pub ratio: f64,
}

/// Whether these are settings of a comparison of modes.
pub fn has_modes(settings: &SuiteSettings) -> bool {
    settings.systems.iter().any(|system| system.is_mode())
}

/// Of each work in a suite, what it is; `None` for one of another nearfar, which is not run.
pub fn works(results: &[WorkResults]) -> Vec<Option<&'static Work>> {
    results.iter().map(|work| WORKS.iter().find(|own| own.name == work.name)).collect()
}

/// All steps: rounds, in each all works, in each all numbers of threads; all-DRAM comes first, then ratio by ratio every system.
pub fn steps(settings: &SuiteSettings, works: &[Option<&Work>]) -> Vec<Step> {
    let mut steps = Vec::new();
    for round in 0..settings.runs {
        for (work, kind) in works.iter().enumerate().filter_map(|(work, kind)| Some((work, (*kind)?))) {
            for &threads in &settings.threads {
                steps.push(Step { round, work, threads, system: System::Dram, ratio: 0.0 });
                let ratios = if kind.reference { &[] } else { &settings.ratios[..] };
                for &ratio in ratios {
                    steps.extend(settings.systems.iter().map(|&system| Step { round, work, threads, system, ratio }));
                }
            }
        }
    }
    steps
}

/// The command that measures the point of `step` again, for systems that are more than a command.
pub fn repeat(work: &str, step: &Step, settings: &SuiteSettings, far: &Path) -> String {
    let system = if step.system == System::Swap { "swap" } else { "mmap" };
    format!(
        "nearfar bench suite --only {work} --systems {system} --ratios {} --threads {} --data {} --seconds {} --runs 1 --far {}",
        step.ratio,
        step.threads,
        settings.data_bytes,
        settings.seconds,
        quoted(&far.to_string_lossy())
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_dram_comes_first_and_references_run_nowhere_else() {
        let settings = SuiteSettings {
            data_bytes: 1000,
            ratios: vec![2.0, 4.0],
            threads: vec![1, 2],
            systems: vec![System::Disk, System::Mmap],
            runs: 2,
            seconds: 1.5,
            nodes: None,
        };
        let reference = Work { reference: true, ..WORKS[0] };
        let steps = steps(&settings, &[Some(&WORKS[0]), None, Some(&reference)]);
        assert_eq!(steps.len(), 2 * (2 * (1 + 2 * 2) + 2));
        assert_eq!((steps[0].system, steps[0].round, steps[1].system, steps[1].ratio), (System::Dram, 0, System::Disk, 2.0));
        assert!(steps.iter().all(|step| step.work == 0 || step.work == 2 && step.system == System::Dram));
        assert_eq!(steps.last().map(|step| step.round), Some(1));
        let command = repeat("triad", &steps[2], &settings, Path::new("/my far"));
        assert_eq!(
            command,
            "nearfar bench suite --only triad --systems mmap --ratios 2 --threads 1 --data 1000 --seconds 1.5 --runs 1 --far '/my far'"
        );
    }
}
