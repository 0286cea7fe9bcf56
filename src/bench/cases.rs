//! What each suite runs: a table in code, one function per case.
//!
//! Sizes keep the data three times near unless the case says otherwise. Goals are those of the project, not of this machine.

use super::case::{Case, Effort, Far, LEAST_NEAR, Length, Limit, Metric, Sizes};
use super::external::Program;
use super::goal::{Baseline, Goal};
use super::recipe;
use super::rival::Rival;
use crate::cli::bench::Suite;

const EVERYONE: &[Rival] = &[Rival::Dram, Rival::Nearfar, Rival::MappedFile, Rival::AdvisedFile, Rival::Swap];
/// For random access, where mmap without madvise reads 32 pages for one and would be too easy to beat.
const STRONGEST: &[Rival] = &[Rival::Dram, Rival::Nearfar, Rival::AdvisedFile, Rival::Swap];
/// For GEMM, where no advice fits.
const PLAIN: &[Rival] = &[Rival::Dram, Rival::Nearfar, Rival::MappedFile, Rival::Swap];
const OURS: &[Rival] = &[Rival::Dram, Rival::Nearfar];
/// More operations than any machine does in the time: the clock ends a repetition.
const ENDLESS: [&str; 2] = ["--ops", "1000000000000"];

/// The cases of `suite`; none for those that measure something else than rates (start-up, latency, metadata).
pub fn cases(suite: Suite, sizes: Sizes) -> Vec<Case> {
    match suite {
        Suite::Triad => vec![triad(sizes)],
        Suite::Sweeps => vec![
            strided(sizes),
            reverse(sizes),
            streams(sizes, "8 streams by 1 thread", Some(1)),
            streams(sizes, "8 streams by 2 threads", Some(2)),
            columns(sizes),
        ],
        Suite::Random => vec![random(sizes)],
        Suite::Chase => vec![chase(sizes)],
        Suite::Zipf => vec![zipf(sizes)],
        Suite::Gemm => vec![gemm(sizes)],
        Suite::Fits => vec![
            fits_triad(sizes),
            fits_numpy(sizes),
            fits_lammps(sizes),
            fits_churn(sizes),
            fits_touch(sizes),
            fits_random(sizes),
        ],
        Suite::Placed => vec![placed(fits_numpy(sizes)), placed(fits_lammps(sizes)), placed(fits_churn(sizes))],
        Suite::Emu => vec![emu_triad(sizes, 2, 0.22), emu_triad(sizes, 4, 0.15), emu_gemm(sizes)],
        Suite::Grain | Suite::Apps | Suite::Startup | Suite::Latency | Suite::Metadata => Vec::new(),
    }
}

/// STREAM triad over data larger than near.
pub fn triad(sizes: Sizes) -> Case {
    let seconds = if sizes.effort == Effort::Quick { 20.0 } else { 45.0 };
    Case {
        suite: Suite::Triad,
        title: "triad: repeated sweeps a = b + s*c".to_owned(),
        program: Program::Kernel,
        arguments: vec!["triad".to_owned()],
        options: Vec::new(),
        data_bytes: sizes.data_bytes,
        near_bytes: sizes.near_bytes,
        far: Far::Directory,
        threads: None,
        rivals: EVERYONE,
        metric: Metric::BytesPerS,
        fixed_work: true,
        read_back: true,
        length: match sizes.effort {
            Effort::Smoke => Length { repetitions: 2, seconds: Some(5.0), runs: usize::MAX },
            // Policies need some sweeps to learn what is written; most of a long run comes after that.
            _ => Length { repetitions: 10, seconds: Some(60.0), runs: usize::MAX },
        },
        // One sweep takes 20 to 40 s for 2400M.
        swap_length: Length { repetitions: 1, seconds: Some(seconds), runs: 2 },
        limit: Limit::Sweep { touched_percent: 100, written_percent: 33 },
        goals: vec![
            Goal::times(Baseline::Rival(Rival::Swap), 20.0),
            Goal::times(Baseline::Rival(Rival::MappedFile), 1.4),
            Goal::share(Baseline::Bound, 0.85),
        ],
    }
}

fn sweep(sizes: Sizes, title: &str, arguments: &[&str], limit: Limit) -> Case {
    Case {
        suite: Suite::Sweeps,
        title: title.to_owned(),
        arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
        rivals: OURS,
        limit,
        goals: vec![Goal::share(Baseline::Bound, 0.75)],
        ..triad(sizes)
    }
}

/// Every second page: near is halved, so that the pages touched are three times near all the same.
fn strided(sizes: Sizes) -> Case {
    let limit = Limit::Sweep { touched_percent: 50, written_percent: 0 };
    let case = sweep(sizes, "strided: a line of every 8 KiB read, first to last", &["strided", "--stride", "8192"], limit);
    Case { near_bytes: runnable(sizes.near_bytes / 2), metric: Metric::OperationsPerS("pages"), ..case }
}

fn reverse(sizes: Sizes) -> Case {
    sweep(sizes, "reverse: all read, last to first", &["reverse"], Limit::Sweep { touched_percent: 100, written_percent: 0 })
}

fn streams(sizes: Sizes, who: &str, threads: Option<usize>) -> Case {
    let title = format!("streams: {who}, updated in turn");
    let limit = Limit::Sweep { touched_percent: 100, written_percent: 100 };
    Case { threads, ..sweep(sizes, &title, &["streams", "--streams", "8", "--update"], limit) }
}

fn columns(sizes: Sizes) -> Case {
    let limit = Limit::Sweep { touched_percent: 100, written_percent: 50 };
    // Each thread needs a page of every row: in a tiny near only one thread's pages have room.
    let threads = (sizes.effort == Effort::Smoke).then_some(1);
    let case = sweep(sizes, "columns: transposing copy of a row-major matrix", &["columns"], limit);
    let length = Length { repetitions: case.length.repetitions.min(4), ..case.length };
    Case { threads, length, ..case }
}

fn clocked(sizes: Sizes, seconds: f64, runs: usize) -> Length {
    let seconds = match sizes.effort {
        Effort::Smoke => 0.3,
        Effort::Quick => seconds / 2.0,
        Effort::Full => seconds,
    };
    Length { repetitions: 2, seconds: Some(seconds), runs }
}

fn endless(workload: &[&str]) -> Vec<String> {
    workload.iter().chain(&ENDLESS).map(|&argument| argument.to_owned()).collect()
}

fn random(sizes: Sizes) -> Case {
    Case {
        suite: Suite::Random,
        title: "random updates: 8 bytes read and written at random".to_owned(),
        arguments: endless(&["random"]),
        rivals: STRONGEST,
        metric: Metric::OperationsPerS("updates"),
        fixed_work: false,
        length: clocked(sizes, 3.0, usize::MAX),
        swap_length: clocked(sizes, 3.0, 2),
        limit: Limit::Miss,
        goals: vec![Goal::times(Baseline::Rival(Rival::Swap), 1.3), Goal::share(Baseline::Bound, 0.8)],
        ..triad(sizes)
    }
}

fn chase(sizes: Sizes) -> Case {
    Case {
        suite: Suite::Chase,
        title: "pointer chase: dependent loads over pages in random order".to_owned(),
        arguments: endless(&["chase", "--stride", "4096"]),
        metric: Metric::OperationsPerS("hops"),
        length: clocked(sizes, 2.0, usize::MAX),
        swap_length: clocked(sizes, 2.0, 1),
        ..random(sizes)
    }
}

fn zipf(sizes: Sizes) -> Case {
    Case {
        suite: Suite::Zipf,
        title: "Zipf (0.99): half reads, half updates of objects of 64 to 256 bytes in a hash table".to_owned(),
        arguments: endless(&["objects"]),
        metric: Metric::OperationsPerS("requests"),
        limit: Limit::None,
        goals: vec![Goal::times(Baseline::Rival(Rival::Swap), 1.5)],
        // The first seconds fill near with what is popular.
        length: clocked(sizes, 6.0, usize::MAX),
        swap_length: clocked(sizes, 6.0, 2),
        ..random(sizes)
    }
}

/// Tiled GEMM on a quarter of the data: its work grows with the 3/2 power of it.
pub fn gemm(sizes: Sizes) -> Case {
    let part = if sizes.effort == Effort::Smoke { 2 } else { 4 };
    let near_bytes = runnable(sizes.near_bytes / part);
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
        goals: Vec::new(),
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

/// Whole MiB, and as much near as `nearfar run` asks for.
pub fn runnable(near_bytes: u64) -> u64 {
    whole_mib(near_bytes).max(LEAST_NEAR)
}

/// The same with a policy that looks at every allocation.
fn placed(case: Case) -> Case {
    Case {
        suite: Suite::Placed,
        title: case.title.replace("fits in near", "placed by size"),
        options: ["--mode", "flat", "--place", "size:1M..5M"].map(str::to_owned).to_vec(),
        ..case
    }
}

fn fits_triad(sizes: Sizes) -> Case {
    Case {
        suite: Suite::Fits,
        title: "fits in near, triad".to_owned(),
        data_bytes: fits(sizes),
        rivals: OURS,
        length: Length { repetitions: 31, seconds: Some(10.0), runs: usize::MAX },
        limit: Limit::None,
        goals: vec![Goal::times(Baseline::Rival(Rival::Dram), 0.99)],
        ..triad(sizes)
    }
}

fn fits_numpy(sizes: Sizes) -> Case {
    // What Python and BLAS have besides, seen on x86-64: near must hold that as well.
    let interpreter = 24 << 20;
    Case {
        title: "fits in near, numpy LU".to_owned(),
        program: Program::Recipe(recipe::named("numpy_lu")),
        arguments: Vec::new(),
        data_bytes: whole_mib(fits(sizes).saturating_sub(interpreter)),
        metric: Metric::FlopPerS,
        length: Length { repetitions: if sizes.effort == Effort::Full { 6 } else { 3 }, seconds: None, runs: usize::MAX },
        ..fits_triad(sizes)
    }
}

fn fits_lammps(sizes: Sizes) -> Case {
    Case {
        title: "fits in near, LAMMPS melt".to_owned(),
        program: Program::Recipe(recipe::named("lammps")),
        metric: Metric::OperationsPerS("atom-steps"),
        length: Length { repetitions: if sizes.effort == Effort::Full { 4 } else { 2 }, seconds: None, runs: usize::MAX },
        ..fits_numpy(sizes)
    }
}

fn fits_churn(sizes: Sizes) -> Case {
    Case {
        title: "fits in near, allocation-heavy: blocks of 16 bytes to 64 KiB freed and replaced".to_owned(),
        arguments: endless(&["churn"]),
        // Under the C library alone the heap becomes a third larger than what lives in it.
        data_bytes: whole_mib(fits(sizes) * 3 / 4),
        metric: Metric::OperationsPerS("replacements"),
        ..fits_random(sizes)
    }
    .with_goal(0.99)
}

fn fits_random(sizes: Sizes) -> Case {
    Case {
        suite: Suite::Fits,
        title: "fits in near, random updates".to_owned(),
        data_bytes: fits(sizes),
        rivals: OURS,
        length: clocked(sizes, 2.0, usize::MAX),
        limit: Limit::None,
        ..random(sizes)
    }
    .with_goal(1.0)
}

fn fits_touch(sizes: Sizes) -> Case {
    Case {
        title: "fits in near, allocate and fill and free".to_owned(),
        arguments: vec!["touch".to_owned()],
        length: Length { repetitions: 5, seconds: Some(10.0), runs: usize::MAX },
        ..fits_triad(sizes)
    }
}

/// Triad with emulated far and near a part in `ratio` of the data. Two thirds of the data: far is memory here.
fn emu_triad(sizes: Sizes, ratio: u64, least: f64) -> Case {
    let data_bytes = whole_mib(sizes.data_bytes * 2 / 3);
    Case {
        suite: Suite::Emu,
        title: format!("emulated far, triad, data {ratio} x near"),
        data_bytes,
        near_bytes: runnable(data_bytes / ratio),
        far: Far::Emulated,
        rivals: OURS,
        limit: Limit::None,
        goals: vec![Goal::share(Baseline::Rival(Rival::Dram), least).beside("IMDT 12.5 % (MCHPC 2018)")],
        ..triad(sizes)
    }
}

fn emu_gemm(sizes: Sizes) -> Case {
    Case {
        suite: Suite::Emu,
        title: "emulated far, tiled GEMM, data 3 x near".to_owned(),
        far: Far::Emulated,
        rivals: OURS,
        goals: vec![Goal::share(Baseline::Rival(Rival::Dram), 0.93).beside("IMDT 90 % (MCHPC 2018)")],
        ..gemm(sizes)
    }
}

impl Case {
    fn with_goal(self, least: f64) -> Self {
        Self { goals: vec![Goal::times(Baseline::Rival(Rival::Dram), least)], ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn every_case_has_sizes_that_ask_its_question() {
        for (data, effort) in [(2400u64, Effort::Full), (96, Effort::Quick), (96, Effort::Smoke)] {
            let sizes = Sizes { data_bytes: data << 20, near_bytes: data << 20 >> 2, effort };
            for case in Suite::value_variants().iter().flat_map(|&suite| cases(suite, sizes)) {
                assert_eq!(
                    case.data_bytes < case.near_bytes,
                    matches!(case.suite, Suite::Fits | Suite::Placed),
                    "{}",
                    case.title
                );
                assert!(case.swap_length.runs < case.length.runs);
                assert!(case.near_bytes >= LEAST_NEAR, "{}", case.title);
                assert!(!case.goals.is_empty() || case.suite == Suite::Gemm, "{}", case.title);
                assert!(case.goals.iter().all(|goal| match goal.against {
                    Baseline::Rival(rival) => case.rivals.contains(&rival),
                    Baseline::BestGrain => case.rivals.iter().any(|rival| rival.grain().is_some()),
                    Baseline::Bound => case.limit != Limit::None,
                }));
            }
        }
    }

    #[test]
    fn the_pages_of_a_strided_sweep_are_three_times_near() {
        let case = strided(Sizes { data_bytes: 2400 << 20, near_bytes: 800 << 20, effort: Effort::Full });
        assert_eq!(case.data_bytes / 2, 3 * case.near_bytes);
    }
}
