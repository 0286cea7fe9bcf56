//! The works of `bench grain`: patterns of access of many kinds, and real programs, each under the learned grain and every fixed one.

use super::case::{Case, Effort, Length, Limit, Metric, Sizes};
use super::cases::{gemm, runnable, triad};
use super::external::Program;
use super::goal::{Baseline, Goal};
use super::recipe::{self, Recipe};
use super::rival::{GRAINS, Rival};
use crate::cli::bench::Suite;

const RIVALS: &[Rival] =
    &[Rival::Dram, Rival::Nearfar, GRAINS[0], GRAINS[1], GRAINS[2], GRAINS[3], GRAINS[4], Rival::MappedFile, Rival::Swap];
/// Programs that are not ours cannot place their data in a file.
const WITHOUT_FILE: &[Rival] = &[Rival::Dram, Rival::Nearfar, GRAINS[0], GRAINS[1], GRAINS[2], GRAINS[3], GRAINS[4], Rival::Swap];
/// What an interpreter with its libraries takes beside the data.
pub const INTERPRETER: u64 = 48 << 20;
/// For a tiny run of everything.
const FEW: &[Rival] = &[Rival::Dram, Rival::Nearfar, GRAINS[1]];

/// All of them.
pub fn grain_cases(sizes: Sizes) -> Vec<Case> {
    let sweep = |title, arguments: &[&str]| work(sizes, title, arguments, Metric::BytesPerS);
    let timed = |title, arguments: &[&str], noun| endless(work(sizes, title, arguments, Metric::OperationsPerS(noun)));
    let fixed = |title, arguments: &[&str], noun| work(sizes, title, arguments, Metric::OperationsPerS(noun));
    let ours = [
        sweep("triad", &["triad"]),
        sweep("reverse", &["reverse"]),
        fixed("strided, a line of every 8 KiB", &["strided", "--stride", "8192"], "pages"),
        sweep("columns of a matrix, transposed", &["columns"]),
        power_of_two(fixed("3-D FFT", &["fft"], "points"), sizes),
        compared(gemm(sizes), sizes, "tiled GEMM"),
        work(sizes, "LU, blocked", &["lu"], Metric::FlopPerS),
        fixed("sparse triangular solve", &["trisolve"], "rows"),
        timed("random updates", &["random"], "updates"),
        timed("pointer chase", &["chase", "--stride", "4096"], "hops"),
        timed("Zipf hash table", &["objects"], "requests"),
        timed("B-tree look-ups and scans", &["btree"], "look-ups"),
        fixed("sort", &["sort"], "keys"),
        fixed("hash join", &["join"], "rows"),
    ];
    ours.into_iter().chain(["fft", "pardiso", "duckdb", "sqlite"].map(|name| real(sizes, recipe::named(name)))).collect()
}

/// At least 95 % of the best fixed grain, and of what the kernel does by itself.
fn goals(rivals: &[Rival]) -> Vec<Goal> {
    let kernel = [Rival::MappedFile, Rival::Swap].into_iter().filter(|rival| rivals.contains(rival));
    [Baseline::BestGrain].into_iter().chain(kernel.map(Baseline::Rival)).map(|against| Goal::share(against, 0.95)).collect()
}

fn work(sizes: Sizes, title: &str, arguments: &[&str], metric: Metric) -> Case {
    // Sweep after sweep is alike, but the first finds what initialisation left.
    let seconds = match sizes.effort {
        Effort::Smoke => 5.0,
        Effort::Quick => 15.0,
        Effort::Full => 60.0,
    };
    let length = Length { repetitions: 2, seconds: Some(seconds), runs: usize::MAX };
    let case = Case {
        arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
        metric,
        limit: Limit::None,
        length,
        swap_length: Length { runs: 2, ..length },
        ..triad(sizes)
    };
    compared(case, sizes, title)
}

fn compared(case: Case, sizes: Sizes, title: &str) -> Case {
    let rivals = if sizes.effort == Effort::Smoke { FEW } else { RIVALS };
    Case { suite: Suite::Grain, title: format!("grain: {title}"), rivals, goals: goals(rivals), ..case }
}

/// As many operations as the time allows.
fn endless(case: Case) -> Case {
    let seconds = case.length.seconds.map(|seconds| seconds / 5.0);
    let length = Length { seconds, ..case.length };
    let arguments = case.arguments.into_iter().chain(["--ops", "1000000000000"].map(str::to_owned)).collect();
    Case { arguments, fixed_work: false, length, swap_length: Length { runs: 2, ..length }, ..case }
}

/// Data of the largest power of two that `sizes` allow, and near in proportion.
fn power_of_two(case: Case, sizes: Sizes) -> Case {
    let data_bytes = 1 << sizes.data_bytes.ilog2();
    let near_bytes = runnable((sizes.near_bytes as f64 * data_bytes as f64 / sizes.data_bytes as f64) as u64);
    Case { data_bytes, near_bytes, ..case }
}

fn real(sizes: Sizes, recipe: &'static Recipe) -> Case {
    let case = work(sizes, recipe.title, &[], Metric::OperationsPerS(recipe.counts));
    let rivals = if sizes.effort == Effort::Smoke { FEW } else { WITHOUT_FILE };
    // Databases take minutes per GiB to fill where near is too small.
    let part = if sizes.effort == Effort::Full { 4 } else { 2 };
    let near_bytes = runnable(sizes.near_bytes / part + INTERPRETER);
    let data_bytes = sizes.data_bytes / part;
    Case { program: Program::Recipe(recipe), rivals, goals: goals(rivals), data_bytes, near_bytes, ..case }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_work_is_compared_with_what_it_is_held_against() {
        for (data, effort) in [(2400u64, Effort::Full), (720, Effort::Quick), (96, Effort::Smoke)] {
            let works = grain_cases(Sizes { data_bytes: data << 20, near_bytes: data << 20 >> 2, effort });
            assert!(works.len() >= 14);
            for case in works {
                assert!(case.program != Program::Kernel || case.data_bytes > case.near_bytes, "{}", case.title);
                assert!(case.goals.iter().any(|goal| goal.against == Baseline::BestGrain), "{}", case.title);
                for goal in &case.goals {
                    match goal.against {
                        Baseline::Rival(rival) => assert!(case.rivals.contains(&rival), "{}", case.title),
                        Baseline::BestGrain => assert!(case.rivals.iter().any(|rival| GRAINS.contains(rival)), "{}", case.title),
                        Baseline::Bound => panic!("{} has no bound", case.title),
                    }
                }
            }
        }
    }
}
