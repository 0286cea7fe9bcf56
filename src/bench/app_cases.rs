//! The works of `bench apps`: every recipe, with near memory for a third of its data and 48 MiB more for Python.

use super::case::{Case, Effort, Length, Limit, Metric, Sizes};
use super::cases::{runnable, triad};
use super::external::Program;
use super::goal::{Baseline, Goal};
use super::grain_cases::INTERPRETER;
use super::recipe::{self, Recipe};
use super::rival::Rival;
use crate::cli::bench::Suite;

/// All of them.
pub fn app_cases(sizes: Sizes) -> Vec<Case> {
    recipe::all().iter().map(|recipe| app(sizes, recipe)).collect()
}

fn app(sizes: Sizes, recipe: &'static Recipe) -> Case {
    let seconds = match sizes.effort {
        Effort::Smoke => 10.0,
        Effort::Quick => 30.0,
        Effort::Full => 75.0,
    };
    // Databases take minutes per GiB to fill where near is too small.
    let part = if sizes.effort == Effort::Full { 4 } else { 2 };
    let length = Length { repetitions: 2, seconds: Some(seconds), runs: usize::MAX };
    let of_dram = Goal::share(Baseline::Rival(Rival::Dram), recipe.wanted);
    Case {
        suite: Suite::Apps,
        title: recipe.title.to_owned(),
        program: Program::Recipe(recipe),
        arguments: Vec::new(),
        data_bytes: sizes.data_bytes / part,
        near_bytes: runnable(sizes.near_bytes / part + INTERPRETER),
        rivals: &[Rival::Dram, Rival::Nearfar, Rival::Swap],
        metric: if recipe.counts == "flop" { Metric::FlopPerS } else { Metric::OperationsPerS(recipe.counts) },
        limit: Limit::None,
        length,
        swap_length: Length { runs: 2, ..length },
        goals: vec![
            recipe.published.map_or(of_dram, |published| of_dram.beside(published)),
            Goal::share(Baseline::Rival(Rival::Swap), 0.95),
        ],
        ..triad(sizes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_is_short_of_memory_and_held_against_dram_and_swap() {
        let works = app_cases(Sizes { data_bytes: 720 << 20, near_bytes: 240 << 20, effort: Effort::Quick });
        assert_eq!(works.len(), recipe::all().len());
        for case in works {
            assert!(case.near_bytes * 2 < case.data_bytes, "{}", case.title);
            let against: Vec<Baseline> = case.goals.iter().map(|goal| goal.against).collect();
            assert_eq!(against, [Baseline::Rival(Rival::Dram), Baseline::Rival(Rival::Swap)], "{}", case.title);
        }
    }
}
