//! The tables of a suite, which need no script: shares of speed by work and ratio, every figure of every work, what it ran on.

use super::standing::shown;
use super::view::{key, notes, split};
use crate::files::suite::{MODES, Point, Spread, SuiteFile, System, WorkResults};
use crate::ui::html::{self, Cell, heading, table};
use crate::ui::suite::{StripCell, StripRow, strip};
use nearfar_core::node::words;

/// A strip for each system under nearfar and number of threads.
pub fn strips(id: &str, file: &SuiteFile, threads: &[usize], ratios: &[f64]) -> String {
    let mut html = String::new();
    for system in [System::Disk, System::Emulated].into_iter().chain(MODES) {
        for &threads in threads {
            let here = |work: &WorkResults| work.points.iter().any(|point| point.system == system && point.threads == threads);
            if !file.works.iter().any(here) {
                continue;
            }
            let row = |(number, work): (usize, &WorkResults)| StripRow {
                name: work.name.clone(),
                figures: figures_id(id, number),
                cells: ratios.iter().map(|ratio| strip_cell(work, work.point(system, threads, *ratio))).collect(),
            };
            let rows: Vec<StripRow> = file.works.iter().enumerate().map(row).collect();
            let title =
                format!("{}, {}: speed kept, % of that in all-DRAM, by data ÷ near", system.name(), threads_words(threads));
            html += &strip(&title, (&key(system), threads), ratios, &rows);
        }
    }
    html
}

fn strip_cell(work: &WorkResults, point: Option<&Point>) -> StripCell {
    match point.and_then(|point| work.efficiency(point)) {
        Some(speed) => StripCell { share: Some(speed.median), words: shown(&speed) },
        None => StripCell { share: None, words: "–".to_owned() },
    }
}

/// The mark of the figures of work `number`.
pub fn figures_id(id: &str, number: usize) -> String {
    format!("{id}-figures{number}")
}

fn threads_words(threads: usize) -> String {
    if threads == 1 { "1 thread".to_owned() } else { format!("{threads} threads") }
}

/// Every figure of every work.
pub fn figures(id: &str, file: &SuiteFile) -> String {
    let mut html = heading("All figures");
    for (number, work) in file.works.iter().enumerate() {
        let summary = if work.title.is_empty() { work.name.clone() } else { format!("{}: {}", work.name, work.title) };
        html += &html::folded(Some(&figures_id(id, number)), &summary, &of_work(work));
    }
    html + &html::method(
        "Medians, and between brackets the least and the greatest run. Speed kept: share of that in all-DRAM with as many threads, round by \
         round. Bound: the most that the medium under far allows. GB/s: bytes between data and work. Seconds: of one repetition. ≤ and ≥: \
         the time limit ended at least half of the runs. Waiting: share of the time of all threads, the start of the program and the \
         making of its data included.",
    )
}

fn of_work(work: &WorkResults) -> String {
    let head = [
        "on",
        "threads",
        "data ÷ near",
        "near",
        "speed kept",
        "bound",
        "GB/s",
        "seconds",
        "waiting for far",
        "for the pager",
        "runs",
        "notes",
    ];
    let row = |point: &Point| {
        let spread =
            |figure: fn(&crate::files::suite::PointRun) -> f64| Spread::of(&point.runs, figure).filter(|s| s.median > 0.0);
        let waiting = split(point);
        vec![
            Cell::text(point.system.name()),
            Cell::number(point.threads.to_string()),
            Cell::number(if point.ratio > 0.0 { point.ratio.to_string() } else { "–".to_owned() }),
            Cell::number(if point.near_bytes > 0 { words::size(point.near_bytes) } else { "no limit".to_owned() }),
            spread_cell(work.efficiency(point), "≤ ", words::percent),
            Cell::number(point.bound.as_ref().map_or("–".to_owned(), |bound| words::percent(bound.efficiency))),
            spread_cell(spread(|run| run.bytes_per_s / 1e9), "≤ ", words::digits),
            spread_cell(spread(|run| run.seconds), "≥ ", words::digits),
            Cell::number(waiting.map_or("–".to_owned(), |[_, far, _]| words::percent(far))),
            Cell::number(waiting.map_or("–".to_owned(), |[_, _, pager]| words::percent(pager))),
            Cell::number(point.runs.len().to_string()),
            Cell::lines(notes(work, point)),
        ]
    };
    let about = if work.access.is_empty() {
        String::new()
    } else {
        html::paragraph(&format!("How it goes over its data: {}.", work.access.trim_end_matches('.')))
    };
    let mut bounds: Vec<&str> = work.points.iter().filter_map(|point| Some(point.bound.as_ref()?.because.as_str())).collect();
    bounds.dedup();
    bounds.truncate(3);
    let bounds = if bounds.is_empty() { String::new() } else { html::method(&format!("Bound: {}.", bounds.join("; "))) };
    about + &table(&head, work.points.iter().map(row)) + &bounds + &routines(work)
}

/// Seconds of each routine of a work that says them, at every point.
fn routines(work: &WorkResults) -> String {
    let mut names: Vec<&String> = work.points.iter().flat_map(|point| &point.runs).flat_map(|run| run.parts.keys()).collect();
    names.sort_unstable();
    names.dedup();
    if names.is_empty() {
        return String::new();
    }
    let head = ["seconds by routine, on", "threads", "data ÷ near"].into_iter().chain(names.iter().map(|name| name.as_str()));
    let row = |point: &Point| {
        let ratio = if point.ratio > 0.0 { point.ratio.to_string() } else { "–".to_owned() };
        let place = [Cell::text(point.system.name()), Cell::number(point.threads.to_string()), Cell::number(ratio)];
        let seconds = |name: &&String| {
            let spread = Spread::of(&point.runs, |run| run.parts.get(*name).copied().unwrap_or(0.0));
            spread_cell(spread.filter(|spread| spread.median > 0.0), "≥ ", words::digits)
        };
        place.into_iter().chain(names.iter().map(seconds)).collect()
    };
    table(&head.collect::<Vec<_>>(), work.points.iter().map(row))
}

fn spread_cell(spread: Option<Spread>, limit: &str, show: fn(f64) -> String) -> Cell {
    let Some(spread) = spread else { return Cell::number("–") };
    let limit = if spread.stopped { limit } else { "" };
    let range =
        if spread.high > spread.low { format!(" ({} – {})", show(spread.low), show(spread.high)) } else { String::new() };
    Cell::number(format!("{limit}{}{range}", show(spread.median)))
}

/// What it ran on, and what was asked for.
pub fn facts(file: &SuiteFile) -> String {
    let (machine, set) = (&file.machine, &file.settings);
    let joined = |values: Vec<String>| values.join(", ");
    let started =
        jiff::Timestamp::from_second(file.started_unix_s.try_into().unwrap_or(0)).ok().filter(|_| file.started_unix_s > 0);
    let rate = |rate: f64| if rate > 0.0 { words::rate(rate) } else { String::new() };
    let size = |bytes: u64| if bytes > 0 { words::size(bytes) } else { String::new() };
    heading("What it ran on")
        + &html::facts([
            ("Processor", machine.cpu.clone()),
            ("Processors allowed", if machine.cpus > 0 { machine.cpus.to_string() } else { String::new() }),
            ("Memory", size(machine.ram)),
            ("Kernel", machine.kernel.clone()),
            ("Transparent huge pages", machine.huge_pages.clone()),
            ("Far", machine.far.clone()),
            ("Triad in DRAM, all threads", rate(file.dram_triad)),
            ("Data of each work", size(set.data_bytes)),
            ("Data ÷ near", joined(set.ratios.iter().map(f64::to_string).collect())),
            ("Threads", joined(set.threads.iter().map(usize::to_string).collect())),
            ("Besides all-DRAM", joined(set.systems.iter().map(|system| system.name().to_owned()).collect())),
            ("Runs of each point", if set.runs > 0 { set.runs.to_string() } else { String::new() }),
            (
                "Time limit of a repetition",
                if set.seconds > 0.0 { format!("{} s", words::digits(set.seconds)) } else { String::new() },
            ),
            ("nearfar", file.nearfar.clone()),
            ("Begun", started.map_or(String::new(), |time| time.to_string())),
        ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::suite::sample_file;

    #[test]
    fn tables_hold_every_figure_with_its_spread() {
        let file = sample_file();
        let strips = strips("suite0", &file, &[1, 2], &[1.0, 3.0]);
        assert_eq!(strips.matches("class=\"strip\"").count(), 4);
        assert!(strips.contains("nearfar, emulated far, 1 thread: speed kept, %") && strips.contains("≤ "));
        let figures = figures("suite0", &file);
        let points: usize = file.works.iter().map(|work| work.points.len()).sum();
        assert_eq!(figures.matches("</tr>\n").count(), points);
        for words in ["WRONG DATA", "out of memory", "≥ 30.0", "no limit", "crosses the device"] {
            assert!(figures.contains(words), "{words}");
        }
        assert!(facts(&file).contains("2026-09-2") && facts(&SuiteFile::default()).matches("<tr>").count() == 0);
    }
}
