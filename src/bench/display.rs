//! Results as people read them: one table per case, with ratios, the bound and what went wrong.
//!
//! Pure text. Does not measure or judge.

use super::case::{Case, Far, Metric};
use super::conditions::Conditions;
use super::goal::Verdict;
use super::results::{CaseResults, Row};
use super::rival::Rival;
use super::startup::Startup;
use crate::cli::bench::Suite;
use crate::sample::{Summary, median, show_ratio};
use crate::ui::table::{align_right, framed};
use nearfar_core::units::Bytes;
use std::fmt::Write;

/// The lines above all tables.
pub fn heading(conditions: &Conditions, threads: usize, controller: &str) -> String {
    format!(
        "machine   {} ({} CPUs), {} of memory, kernel {}, huge pages: {}{}\n\
         far       {}\n\
         measured  {threads} threads; rates are medians of runs, each the median of its repetitions after the first\n\
         {:10}{controller}\n",
        conditions.machine.cpu,
        conditions.machine.cpus,
        Bytes(conditions.machine.ram),
        conditions.machine.kernel,
        conditions.huge_pages,
        if conditions.zswap { ", zswap on" } else { "" },
        conditions.far,
        "",
    )
}

/// One case: its table and the lines below it.
pub fn case_table(case: &Case, results: &CaseResults) -> String {
    let mut table = framed();
    table.set_header(["system", "rate (median)", "min .. max", "runs", "of all-DRAM", "nearfar is", "peak memory"]);
    align_right(&mut table, 1..7);
    for row in &results.rows {
        table.add_row(cells(results, row));
    }
    let mut text = format!(
        "{}\n  data {}, near {} ({:.2} x near){}\n{table}\n",
        case.title,
        Bytes(case.data_bytes).exact(),
        Bytes(case.near_bytes).exact(),
        case.data_bytes as f64 / case.near_bytes as f64,
        if case.far == Far::Emulated { ", far emulated" } else { "" }
    );
    for line in notes(case, results) {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {line}");
    }
    text
}

fn cells(results: &CaseResults, row: &Row) -> [String; 7] {
    let (dram, nearfar) = (results.summary(Rival::Dram), results.summary(Rival::Nearfar));
    let summary = row.summary();
    let (rate, spread, runs) = match summary {
        Summary::Measured { median, min, max, runs } => {
            (results.metric.show(median), spread(results.metric, min, max), runs.to_string())
        }
        Summary::Below { bound, runs } => (format!("< {}", results.metric.show(bound)), "stopped".to_owned(), runs.to_string()),
        Summary::Nothing => ("-".to_owned(), "-".to_owned(), "0".to_owned()),
    };
    [
        row.rival.name().to_owned(),
        rate,
        spread,
        runs,
        percent_of(&summary, &dram),
        if row.rival == Rival::Nearfar { "1".to_owned() } else { nearfar.ratio_to(&summary) },
        row.peak_bytes().map_or("-".to_owned(), |bytes| Bytes(bytes).to_string()),
    ]
}

/// `1.210 .. 1.340`: the unit is beside it already.
fn spread(metric: Metric, min: f64, max: f64) -> String {
    let number = |rate| metric.show(rate).rsplit_once(' ').map_or_else(String::new, |(number, _)| number.to_owned());
    format!("{} .. {}", number(min), number(max))
}

fn percent_of(summary: &Summary, dram: &Summary) -> String {
    match (summary.median(), dram.median()) {
        (Some(rate), Some(dram)) => format!("{:.*} %", if rate / dram < 0.1 { 2 } else { 1 }, 100.0 * rate / dram),
        _ => "-".to_owned(),
    }
}

fn notes(case: &Case, results: &CaseResults) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(bound) = &results.bound {
        let reached = results
            .summary(Rival::Nearfar)
            .median()
            .map_or(String::new(), |rate| format!("; nearfar reaches {:.0} % of it", 100.0 * rate / bound.rate));
        lines.push(format!("bound {}{reached}", case.metric.show(bound.rate)));
        lines.push(format!("  ({})", bound.because));
        if !results.device.direct {
            lines.push("  (far refuses direct I/O: the device's figures are the page cache's)".to_owned());
        }
    }
    if results.rows.iter().any(|row| row.rival == Rival::Swap && !row.runs.is_empty()) && case.swap_length != case.length {
        let length = case.swap_length;
        let limit = length.seconds.map_or(String::new(), |seconds| format!(" of at most {seconds} s each"));
        let runs = results.row(Rival::Swap).map_or(0, |row| row.runs.len());
        lines.push(format!("kernel swap: runs {runs}, repetitions {}{limit}, data not read back", length.repetitions));
    }
    if let (Suite::Fits, Some(bytes)) = (case.suite, results.most_read())
        && bytes > 0
    {
        lines.push(format!("it did not fit in near: {} were read from far", Bytes(bytes)));
    }
    lines.extend((case.suite == Suite::Apps).then(|| moved(results)).flatten());
    for verdict in results.verdicts(case) {
        let [measured, spread, target, outcome] = verdict.cells();
        lines.push(format!("of {}: {measured} ({spread}), target {target}: {outcome}", verdict.against));
    }
    for row in &results.rows {
        if let Some(obstacle) = &row.obstacle {
            lines.push(format!("{}: not measured: {obstacle}", row.rival.name()));
        }
    }
    lines.extend(results.failures_of_rivals().into_iter().map(|failure| format!("failed: {failure}")));
    lines.extend(results.faults(case).into_iter().map(|fault| format!("FAULT: {fault}")));
    lines
}

/// What the last run of nearfar moved and waited for, start and setup of the program included.
fn moved(results: &CaseResults) -> Option<String> {
    let run = results.row(Rival::Nearfar)?.runs.last()?;
    let [read, written, waited, far] =
        ["bytes_in", "bytes_out", "stall_ns", "stall_far_ns"].map(|name| run.counter(name).unwrap_or(0));
    let best = run.counter("far_peak_bytes_per_s").filter(|&rate| rate > 0)?;
    Some(format!(
        "nearfar, the last run as a whole: {:.1} s; {} read and {} written ({:.1} s at the best rate seen); threads waited {:.1} s \
         in total, {:.1} s of that for far",
        run.seconds,
        Bytes(read),
        Bytes(written),
        (read + written) as f64 / best as f64,
        waited as f64 / 1e9,
        far as f64 / 1e9
    ))
}

/// All goals in one table.
pub fn speed_table(verdicts: &[Verdict]) -> String {
    let mut table = framed();
    table.set_header(["work", "against", "nearfar", "min .. max", "target", ""]);
    align_right(&mut table, 2..5);
    for verdict in verdicts {
        let [measured, spread, target, outcome] = verdict.cells();
        table.add_row([verdict.work.clone(), verdict.against.clone(), measured, spread, target, outcome]);
    }
    let count = |met| verdicts.iter().filter(|verdict| verdict.met == met).count();
    format!(
        "speed: ratios are nearfar's rate over the other's, measured in turn; shares are of the bound or of all-DRAM\n{table}\n  \
         {} met, {} missed, {} without a verdict\n",
        count(Some(true)),
        count(Some(false)),
        count(None)
    )
}

/// The start-up suite.
pub fn startup_lines(startup: &Startup) -> String {
    let (Some(plain), Some(nearfar), Some(added)) = (median(&startup.plain), median(&startup.nearfar), startup.added()) else {
        return "start-up: no runs\n".to_owned();
    };
    let worst = |times: &[f64]| times.iter().copied().fold(0.0, f64::max) * 1e3;
    format!(
        "start-up: /bin/true, {} pairs\n  plain {:.2} ms (at most {:.1}), under nearfar {:.2} ms (at most {:.1}): nearfar adds {:.2} ms ({})\n",
        startup.plain.len(),
        plain * 1e3,
        worst(&startup.plain),
        nearfar * 1e3,
        worst(&startup.nearfar),
        added * 1e3,
        show_ratio(nearfar / plain),
    )
}

#[cfg(test)]
mod tests {
    use super::super::case::{Effort, Sizes};
    use super::super::cases::{cases, triad};
    use super::super::goal::{Figure, Target, Unit};
    use super::*;

    #[test]
    fn every_goal_has_a_line_with_its_target_and_outcome() {
        let line = |figure: Result<f64, &str>| {
            let figure = figure.map_err(str::to_owned).and_then(|x| Figure::of(&[x]).ok_or_else(String::new));
            Verdict::new("triad", "kernel swap", figure, Unit::Times, (Target::AtLeast, 20.0))
        };
        let text = speed_table(&[line(Ok(25.0)), line(Ok(3.0)), line(Err("needs root"))]);
        for expected in ["25.0x", ">= 20.0x", "met", "MISSED", "skipped: needs root", "1 met, 1 missed, 1 without"] {
            assert!(text.contains(expected), "no {expected:?} in\n{text}");
        }
    }

    #[test]
    fn a_case_without_runs_says_so_for_every_goal() {
        let case = triad(Sizes { data_bytes: 3000, near_bytes: 1000, effort: Effort::Full });
        let text = case_table(&case, &CaseResults::new(&case));
        for expected in ["of kernel swap: -", "of mmap of a file: -", "of bound: -", ">= 85.0 %"] {
            assert!(text.contains(expected), "no {expected:?} in\n{text}");
        }
        let sizes = Sizes { data_bytes: 2400 << 20, near_bytes: 800 << 20, effort: Effort::Quick };
        let emulated = cases(Suite::Emu, sizes).remove(0);
        assert!(case_table(&emulated, &CaseResults::new(&emulated)).contains("far emulated"));
    }
}
