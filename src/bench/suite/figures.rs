//! The table and the picture of a README, from a suite that was measured: no figure in them is typed by hand.

use super::display::digits;
use crate::files::suite::{Spread, SuiteFile, System, WorkResults};
use crate::ui::chart::bars::{self, Bar};

/// Data by near that the picture shows, if it was measured; else the first.
const SHOWN: f64 = 2.0;

/// A Markdown table of the works that are named, or of all; below it, what was measured where.
pub fn markdown(file: &SuiteFile, only: &[String]) -> String {
    let threads = most_threads(file);
    let ratios: Vec<f64> = file.settings.ratios.iter().copied().filter(|&ratio| ratio > 1.0).collect();
    let columns: Vec<(System, f64)> =
        file.settings.systems.iter().flat_map(|&system| ratios.iter().map(move |&ratio| (system, ratio))).collect();
    let head: Vec<String> = columns.iter().map(|(system, ratio)| format!("{}, {ratio}x", system.name())).collect();
    let mut text = format!("| work | {} |\n|---|{}\n", head.join(" | "), "---|".repeat(columns.len()));
    for work in works(file, only) {
        let cell = |&(system, ratio): &(System, f64)| {
            let Some(point) = work.point(system, threads, ratio) else { return "–".to_owned() };
            let without = if point.obstacle.is_some() { "–" } else { "failed" };
            let bound = point.bound.as_ref().map_or(String::new(), |bound| format!(" / {}", digits(bound.efficiency)));
            work.efficiency(point).map_or(without.to_owned(), |share| cell(&share) + &bound)
        };
        let cells: Vec<String> = columns.iter().map(cell).collect();
        text += &format!("| {} | {} |\n", work.title, cells.join(" | "));
    }
    let (machine, settings) = (&file.machine, &file.settings);
    let runs = if settings.runs == 1 { "1 run".to_owned() } else { format!("{} runs (least .. greatest)", settings.runs) };
    text + &format!(
        "\nSpeed in % of all-DRAM / the most that far allows, where that is known: medians of {runs} with {threads} threads; data are so many \
         times near (\"2x\"). \"<\": the time limit stopped it. \"failed\": it ended without a result. {} ({} CPUs), Linux {}, far {}; \
         nearfar {}.{}\n",
        machine.cpu,
        machine.cpus,
        machine.kernel,
        machine.far,
        file.nearfar,
        targets(file)
    )
}

/// " Of 62 targets ...", of all works.
fn targets(file: &SuiteFile) -> String {
    let verdicts = file.verdicts();
    let count = |met| verdicts.iter().filter(|verdict| verdict.met == met).count();
    if verdicts.is_empty() {
        return String::new();
    }
    format!(
        " Of {} targets of the suite {} are met, {} missed, {} open.",
        verdicts.len(),
        count(Some(true)),
        count(Some(false)),
        count(None)
    )
}

/// `31 (28 .. 36)`, `< 2`: the spread stands where there is one.
fn cell(share: &Spread) -> String {
    let spread = (share.runs > 1).then(|| format!(" ({} .. {})", digits(share.low), digits(share.high)));
    format!("{}{}{}", if share.stopped { "< " } else { "" }, digits(share.median), spread.unwrap_or_default())
}

/// A bar for each system and work that is named, or for all, at one size of near.
pub fn svg(file: &SuiteFile, only: &[String]) -> String {
    let threads = most_threads(file);
    let ratios = &file.settings.ratios;
    let shown = ratios.iter().copied().find(|&ratio| ratio == SHOWN).or(ratios.first().copied()).unwrap_or(SHOWN);
    let group = |work: &WorkResults| {
        let bar = |&system: &System| {
            let share = share(work, system, threads, shown);
            Bar {
                name: system.name().to_owned(),
                share: share.map(|share| share.median),
                words: share.map_or("not measured".to_owned(), |share| format!("{} %", cell(&share))),
            }
        };
        (work.title.clone(), file.settings.systems.iter().map(bar).collect())
    };
    let groups: Vec<(String, Vec<Bar>)> = works(file, only).map(group).collect();
    bars::draw(&format!("Speed as a share of all-DRAM, data {shown} times near"), &groups)
}

fn most_threads(file: &SuiteFile) -> usize {
    file.settings.threads.iter().copied().max().unwrap_or(1)
}

fn works<'a>(file: &'a SuiteFile, only: &'a [String]) -> impl Iterator<Item = &'a WorkResults> {
    file.works.iter().filter(move |work| only.is_empty() || only.contains(&work.name))
}

fn share(work: &WorkResults, system: System, threads: usize, ratio: f64) -> Option<Spread> {
    work.efficiency(work.point(system, threads, ratio)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::suite::{Point, PointRun, SuiteSettings};

    #[test]
    fn every_figure_has_its_place_and_gaps_are_shown() {
        let point = |system, ratio, rate, stopped| Point {
            runs: vec![PointRun { rate, stopped, ..PointRun::default() }],
            ..Point::new(system, 2, ratio)
        };
        let points = vec![
            point(System::Dram, 0.0, 10.0, false),
            point(System::Disk, 2.0, 4.0, false),
            point(System::Swap, 2.0, 0.5, true),
        ];
        let named = |name: &str, points| WorkResults {
            name: name.to_owned(),
            title: format!("The {name}"),
            points,
            ..WorkResults::default()
        };
        let settings = SuiteSettings {
            ratios: vec![1.0, 2.0],
            threads: vec![2],
            systems: vec![System::Disk, System::Swap],
            runs: 1,
            ..SuiteSettings::default()
        };
        let file = SuiteFile { settings, works: vec![named("triad", points), named("fft", Vec::new())], ..SuiteFile::default() };
        let table = markdown(&file, &[]);
        assert!(table.contains("| nearfar, disk, 2x | kernel swap, 2x |"), "{table}");
        assert!(table.contains("| The triad | 40 | < 5.0 |") && table.contains("| The fft | – | – |"), "{table}");
        assert!(!markdown(&file, &["fft".to_owned()]).contains("triad"));
        let chart = svg(&file, &["triad".to_owned()]);
        assert!(chart.contains("40 %") && chart.contains("&lt; 5.0 %") && !chart.contains("The fft"), "{chart}");
    }
}
