//! `nearfar demo`: in two minutes, on this machine, what nearfar is for. Each figure comes with how it was measured.
//!
//! Uses the parts of `nearfar bench`, with one run of each system. Does not save anything.

use crate::bench::{
    Case, CaseResults, Conditions, Effort, Outcome, Rival, Runner, Sizes, Summary, gemm, run_round, settle, show_ratio,
    swap_bytes, triad,
};
use crate::cli::demo::DemoArgs;
use crate::files::output::OutputFile;
use crate::ui::chart::bars::{self, Bar};
use crate::ui::message;
use anyhow::Result;
use nearfar_core::units::Bytes;
use std::process::ExitCode;
use std::time::Duration;

/// Longest wall time of one program.
const PROGRAM_LIMIT: Duration = Duration::from_secs(90);
/// Longest sweep under kernel swap, in seconds: it usually needs 20 to 40.
const SWAP_SECONDS: f64 = 30.0;

/// Runs the tour. Exits with 1 when a program failed or gave wrong data.
pub fn run(args: DemoArgs) -> Result<ExitCode> {
    let svg = args.svg.map(|path| OutputFile::new("--svg", path)).transpose()?;
    let conditions = Conditions::here(&args.far);
    let near = args.near.map(Bytes::exact);
    let data = args.near.map(|near| Bytes(near.0 * 3).exact());
    let settled = settle(data.as_deref(), near.as_deref(), Effort::Full, &args.far, &conditions)?;
    let sizes = settled.sizes;
    let (sweep, tiled) = (sweep(sizes), tiled(sizes));
    let threads = conditions.machine.cpus;
    println!(
        "This machine: {} ({threads} CPUs), {} of memory, Linux {}.\nFar tier: {}.",
        conditions.machine.cpu,
        Bytes(conditions.machine.ram),
        conditions.machine.kernel,
        conditions.far
    );
    for note in settled.note.iter().chain(&conditions.disturbance()) {
        println!("Note: {note}.");
    }
    let runner = Runner::new(&args.far, threads, PROGRAM_LIMIT, swap_bytes(std::slice::from_ref(&sweep)))?;

    println!(
        "\n1. A program with {} of data and {} of near memory\n   STREAM triad: it sweeps over all its data again and again, the worst case for any cache.",
        Bytes(sizes.data_bytes).exact(),
        Bytes(sizes.near_bytes).exact()
    );
    let mut first = CaseResults::new(&sweep);
    first.device.sample(&args.far, settled.device_bytes, &sweep, threads)?;
    run_round(&runner, &sweep, (0, 1), &mut first)?;
    first.bound = first.device.bound(&sweep, first.work_of_repetition(), threads);
    println!("   Disk, measured just now with direct I/O: {}.", first.device.describe());
    print!("{}", rates(&sweep, &first));
    print!("{}", sweep_verdict(&sweep, &first));

    println!(
        "\n2. A program written for two tiers, with {} of data and {} of near memory\n   Tiled matrix product (f32): \
         it works on three tiles at a time, and those fit in near memory.",
        Bytes(tiled.data_bytes).exact(),
        Bytes(tiled.near_bytes).exact()
    );
    let mut second = CaseResults::new(&tiled);
    run_round(&runner, &tiled, (0, 1), &mut second)?;
    print!("{}", rates(&tiled, &second));
    if let Some(share) = share_of_dram(&second) {
        println!("   nearfar keeps {share:.0} % of the speed with a third of the memory.");
    }

    let faults: Vec<String> = first.faults(&sweep).into_iter().chain(second.faults(&tiled)).collect();
    println!(
        "\nHow this was measured: {threads} threads, one run each, time by the program itself without its initialisation; the median of"
    );
    println!("its sweeps after the first. Every program read its data back and checked it, except under kernel swap (too slow).");
    println!("More systems, repeated runs and spread: nearfar bench. Your own program: nearfar run --near SIZE -- PROGRAM");
    for fault in &faults {
        println!("FAULT: {fault}");
    }
    if let Some(svg) = svg {
        svg.write(&chart([("STREAM triad", &sweep, &first), ("tiled matrix product", &tiled, &second)]))?;
        message::line(format_args!("wrote {}", svg.path().display()));
    }
    Ok(if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn sweep(sizes: Sizes) -> Case {
    let mut case = triad(sizes);
    case.rivals = &[Rival::Dram, Rival::Nearfar, Rival::Swap];
    case.swap_length.seconds = Some(SWAP_SECONDS);
    case
}

fn tiled(sizes: Sizes) -> Case {
    Case { rivals: &[Rival::Dram, Rival::Nearfar], ..gemm(sizes) }
}

/// One line per system: rate, share of the all-DRAM rate, memory.
fn rates(case: &Case, results: &CaseResults) -> String {
    let mut text = String::new();
    let dram = results.summary(Rival::Dram).median();
    for row in &results.rows {
        let rate = match row.runs.first().map(|run| &run.outcome) {
            Some(Outcome::Value(rate)) => {
                let share = dram.map_or(String::new(), |dram| format!(" ({:.1} %)", 100.0 * rate / dram));
                case.metric.show(*rate) + &share
            }
            Some(Outcome::Below(rate)) => format!("less than {} (stopped after {SWAP_SECONDS} s)", case.metric.show(*rate)),
            Some(Outcome::Failed(why)) => format!("failed: {why}"),
            None => format!("not measured: {}", row.obstacle.as_deref().unwrap_or("no reason known")),
        };
        let peak = row.peak_bytes().map_or(String::new(), |bytes| format!("   peak memory {}", Bytes(bytes)));
        text += &format!("   {:<12} {rate:<26}{peak}\n", row.rival.name());
    }
    text
}

/// The same as bars.
fn chart(programs: [(&str, &Case, &CaseResults); 2]) -> String {
    let groups = programs.map(|(name, case, results)| {
        let dram = results.summary(Rival::Dram).median();
        let bars = results.rows.iter().map(|row| {
            let (rate, word) = match row.runs.first().map(|run| &run.outcome) {
                Some(Outcome::Value(rate)) => (Some(*rate), ""),
                Some(Outcome::Below(rate)) => (Some(*rate), "less than "),
                Some(Outcome::Failed(_)) | None => (None, ""),
            };
            let share = rate.zip(dram).map(|(rate, dram)| rate / dram);
            let words = match (rate, share) {
                (Some(rate), Some(share)) => format!("{word}{:.1} %, {}", 100.0 * share, case.metric.show(rate)),
                (Some(rate), None) => format!("{word}{}", case.metric.show(rate)),
                (None, _) => "not measured".to_owned(),
            };
            Bar { name: row.rival.name().to_owned(), share, words }
        });
        (
            format!("{name}: {} of data, {} of near memory", Bytes(case.data_bytes).exact(), Bytes(case.near_bytes).exact()),
            bars.collect(),
        )
    });
    bars::draw("Speed as a share of all-DRAM, one run each", &groups)
}

fn share_of_dram(results: &CaseResults) -> Option<f64> {
    Some(100.0 * results.summary(Rival::Nearfar).median()? / results.summary(Rival::Dram).median()?)
}

fn sweep_verdict(case: &Case, results: &CaseResults) -> String {
    let Some(rate) = results.summary(Rival::Nearfar).median() else { return String::new() };
    let mut text = String::new();
    match results.summary(Rival::Swap) {
        Summary::Measured { median, .. } => {
            text += &format!("   nearfar is {} as fast as kernel swap.\n", show_ratio(rate / median))
        }
        Summary::Below { bound, .. } => {
            text += &format!("   nearfar is at least {} as fast as kernel swap.\n", show_ratio(rate / bound))
        }
        Summary::Nothing => {}
    }
    if let Some(bound) = &results.bound {
        text += &format!(
            "   The disk allows {} at most ({}): nearfar reaches {:.0} % of that.\n",
            case.metric.show(bound.rate),
            bound.because,
            100.0 * rate / bound.rate
        );
    }
    text
}
