//! The works of `bench apps`: real programs with near memory for a third of their data (Python has 48 MiB more), what share of all-DRAM is wanted of each,
//! beside what is published of Intel's Memory Drive (MCHPC 2018).

use super::case::{Case, Effort, Length, Limit, Metric, Sizes};
use super::cases::{runnable, triad};
use super::external::Program;
use super::goal::{Baseline, Goal};
use super::grain_cases::INTERPRETER;
use super::rival::Rival;
use super::scripts::Script;
use crate::cli::bench::Suite;

/// All of them.
pub fn app_cases(sizes: Sizes) -> Vec<Case> {
    let app = |title: &str, program, noun, wanted| app(sizes, title, program, noun, wanted);
    let imdt =
        |case: Case, published| Case { goals: case.goals.into_iter().map(|goal| beside(goal, published)).collect(), ..case };
    vec![
        imdt(app("MKL 3-D FFT", Program::Script(Script::MklFft), "points", 0.50), "IMDT 40 %"),
        imdt(app("MKL PARDISO", Program::Script(Script::Pardiso), "points", 0.50), "IMDT 120-140 %"),
        app("DuckDB", Program::Script(Script::Duckdb), "rows", 0.60),
        app("SQLite", Program::Script(Script::Sqlite), "rows", 0.60),
        imdt(app("numpy 3-D FFT", Program::Script(Script::Fft), "points", 0.70), "IMDT 40 %"),
        imdt(app("MKL LU", Program::Script(Script::MklLu), "flop", 0.75), "IMDT 30-60 %"),
        app("PySCF, in core", Program::Script(Script::Pyscf), "integrals", 0.75),
        imdt(app("LAMMPS, Lennard-Jones", Program::Lammps, "atom-steps", 0.80), "IMDT 50-70 %"),
    ]
}

fn beside(goal: Goal, published: &'static str) -> Goal {
    if goal.against == Baseline::Rival(Rival::Dram) { goal.beside(published) } else { goal }
}

fn app(sizes: Sizes, title: &str, program: Program, noun: &'static str, wanted: f64) -> Case {
    let seconds = match sizes.effort {
        Effort::Smoke => 10.0,
        Effort::Quick => 30.0,
        Effort::Full => 75.0,
    };
    // Databases take minutes per GiB to fill where near is too small.
    let part = if sizes.effort == Effort::Full { 4 } else { 2 };
    let length = Length { repetitions: 2, seconds: Some(seconds), runs: usize::MAX };
    Case {
        suite: Suite::Apps,
        title: title.to_owned(),
        program,
        arguments: Vec::new(),
        data_bytes: sizes.data_bytes / part,
        near_bytes: runnable(sizes.near_bytes / part + if matches!(program, Program::Script(_)) { INTERPRETER } else { 0 }),
        rivals: &[Rival::Dram, Rival::Nearfar, Rival::Swap],
        metric: if noun == "flop" { Metric::FlopPerS } else { Metric::OperationsPerS(noun) },
        limit: Limit::None,
        length,
        swap_length: Length { runs: 2, ..length },
        goals: vec![Goal::share(Baseline::Rival(Rival::Dram), wanted), Goal::share(Baseline::Rival(Rival::Swap), 0.95)],
        ..triad(sizes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_is_short_of_memory_and_held_against_dram_and_swap() {
        let works = app_cases(Sizes { data_bytes: 720 << 20, near_bytes: 240 << 20, effort: Effort::Quick });
        assert_eq!(works.len(), 8);
        for case in works {
            assert!(case.near_bytes * 2 < case.data_bytes, "{}", case.title);
            let against: Vec<Baseline> = case.goals.iter().map(|goal| goal.against).collect();
            assert_eq!(against, [Baseline::Rival(Rival::Dram), Baseline::Rival(Rival::Swap)], "{}", case.title);
        }
    }
}
