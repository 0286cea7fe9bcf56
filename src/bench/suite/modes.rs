//! Modes as text: what each keeps of the speed with all data near, and what each routine takes in it.

use super::display::percent;
use super::plan::has_modes;
use crate::files::suite::{MODES, Point, PointRun, Spread, SuiteFile, System, WorkResults};
use crate::ui::table::{align_right, framed};
use std::fmt::Write;

/// The tables of `file`: works by modes, and routines by modes of works that say their times. Empty for a suite without modes.
pub fn tables(file: &SuiteFile) -> String {
    let settings = &file.settings;
    let mut text = String::new();
    if !has_modes(settings) {
        return text;
    }
    for (&threads, &ratio) in
        settings.threads.iter().flat_map(|threads| settings.ratios.iter().map(move |ratio| (threads, ratio)))
    {
        let heading = format!("data {ratio} x near, {threads} {}", if threads == 1 { "thread" } else { "threads" });
        let mut table = framed();
        table.set_header(["work"].into_iter().chain(MODES.map(System::name)));
        align_right(&mut table, 1..MODES.len() + 1);
        for work in &file.works {
            let cell = |system| share(work, work.point(system, threads, ratio));
            table.add_row([work.name.clone()].into_iter().chain(MODES.map(cell)));
        }
        // Writing to a String cannot fail.
        let _ = writeln!(text, "\n{heading}: speed as a share of that with all data near\n{table}");
        for work in &file.works {
            if let Some(table) = routines(work, threads, ratio) {
                let _ = writeln!(
                    text,
                    "\n{}, {heading}: seconds by routine, of the last repetition; and of a repetition in the middle\n{table}",
                    work.name
                );
            }
        }
    }
    text
}

/// `45 % (43 .. 46)`.
fn share(work: &WorkResults, point: Option<&Point>) -> String {
    let Some(share) = point.and_then(|point| work.efficiency(point)) else { return "-".to_owned() };
    let spread = if share.runs > 1 { format!(" ({:.0} .. {:.0})", 100.0 * share.low, 100.0 * share.high) } else { String::new() };
    percent(&share) + &spread
}

/// Rows: its routines; `None` for a work that does not say their times.
fn routines(work: &WorkResults, threads: usize, ratio: f64) -> Option<String> {
    let near = work.point(System::Dram, threads, 0.0)?;
    let names = near.runs.first().map(|run| run.parts.keys().cloned().collect::<Vec<_>>()).filter(|names| !names.is_empty())?;
    let seconds = |point: Option<&Point>, figure: &dyn Fn(&PointRun) -> f64| {
        let spread = point.and_then(|point| Spread::of(&point.runs, figure)).filter(|spread| spread.median > 0.0);
        spread.map_or("-".to_owned(), |spread| format!("{}{:.3}", if spread.stopped { "> " } else { "" }, spread.median))
    };
    let columns = || [(System::Dram, 0.0)].into_iter().chain(MODES.map(|mode| (mode, ratio)));
    let row = |name: String, figure: &dyn Fn(&PointRun) -> f64| {
        [name]
            .into_iter()
            .chain(columns().map(|(system, ratio)| seconds(work.point(system, threads, ratio), figure)))
            .collect::<Vec<_>>()
    };
    let mut table = framed();
    table.set_header(["routine", "all near"].into_iter().chain(MODES.map(System::name)));
    align_right(&mut table, 1..MODES.len() + 2);
    for name in names {
        table.add_row(row(name.clone(), &|run| run.parts.get(&name).copied().unwrap_or(0.0)));
    }
    table.add_row(row("a repetition".to_owned(), &|run| run.seconds));
    Some(table.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::suite::SuiteSettings;

    #[test]
    fn works_and_routines_stand_beside_each_other_by_mode() {
        let run = |rate: f64| PointRun {
            rate,
            seconds: 1.0 / rate,
            parts: [("fft".to_owned(), 0.5 / rate)].into(),
            ..PointRun::default()
        };
        let point = |system, ratio, rate| Point { runs: vec![run(rate), run(rate)], ..Point::new(system, 2, ratio) };
        let points = vec![point(System::Dram, 0.0, 4.0), point(System::FlatByPlan, 2.0, 3.0), point(System::AllFar, 2.0, 1.0)];
        let work = WorkResults { name: "planewave".to_owned(), points, ..WorkResults::default() };
        let plain = WorkResults { name: "triad".to_owned(), ..WorkResults::default() };
        let settings = SuiteSettings { ratios: vec![2.0], threads: vec![2], systems: MODES.to_vec(), ..SuiteSettings::default() };
        let text = tables(&SuiteFile { works: vec![work, plain], settings, ..SuiteFile::default() });
        assert!(text.contains("75 % (75 .. 75)") && text.contains("25 % (25 .. 25)"), "{text}");
        let routine = text.lines().find(|line| line.contains("fft ")).expect("a row");
        let cells: Vec<&str> = routine.split_whitespace().filter(|cell| !cell.contains(['│', '|'])).collect();
        assert_eq!(cells, ["fft", "0.125", "0.500", "-", "-", "0.167", "-", "-", "-"], "{text}");
        assert_eq!(text.matches("seconds by routine").count(), 1, "{text}");
    }
}
