//! In which order a suite runs its points. Pure.

use super::works::{WORKS, Work};
use crate::files::suite::{SuiteSettings, System, WorkResults};

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
                    let systems = settings.systems.iter().filter(|&&system| system != System::Mmap || kind.in_files);
                    steps.extend(systems.map(|&system| Step { round, work, threads, system, ratio }));
                }
            }
        }
    }
    steps
}

/// The command that measures the point of `step` again, for systems that are more than a command.
pub fn repeat(work: &str, step: &Step, data_bytes: u64) -> String {
    let system = if step.system == System::Swap { "swap" } else { "mmap" };
    format!(
        "nearfar bench suite --only {work} --systems {system} --ratios {} --threads {} --data {} --runs 1",
        step.ratio, step.threads, data_bytes
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_dram_comes_first_and_files_only_where_they_can_be() {
        let settings = SuiteSettings {
            ratios: vec![2.0, 4.0],
            threads: vec![1, 2],
            systems: vec![System::Disk, System::Mmap],
            runs: 2,
            ..SuiteSettings::default()
        };
        let heap_only = Work { in_files: false, ..WORKS[0] };
        let reference = Work { reference: true, ..WORKS[0] };
        let steps = steps(&settings, &[Some(&WORKS[0]), Some(&heap_only), None, Some(&reference)]);
        assert_eq!(steps.len(), 2 * (2 * (1 + 2 * 2) + 2 * (1 + 2) + 2));
        assert_eq!((steps[0].system, steps[0].round, steps[1].system, steps[1].ratio), (System::Dram, 0, System::Disk, 2.0));
        assert!(steps.iter().all(|step| step.work == 0 || step.system != System::Mmap));
        assert_eq!(steps.last().map(|step| step.round), Some(1));
        let command = repeat("triad", &steps[2], 1000);
        assert_eq!(command, "nearfar bench suite --only triad --systems mmap --ratios 2 --threads 1 --data 1000 --runs 1");
    }
}
