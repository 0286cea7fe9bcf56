//! Two suites side by side: what got better or worse by more than both spreads.

use super::display::{origin, where_};
use crate::files::suite::{Point, Spread, SuiteFile, System, WorkResults};
use crate::ui::table::{align_right, for_output};

/// With single runs there is no spread: less than this change is taken for noise.
const NOISE: f64 = 0.10;

/// A point that differs.
#[derive(Debug, PartialEq)]
struct Change {
    what: String,
    old: f64,
    new: f64,
}

/// What got better, worse, and how much stayed the same, for people.
pub fn text(old: &SuiteFile, new: &SuiteFile) -> String {
    let (changes, compared) = changes(old, new);
    let mut text = format!("old  {}\nnew  {}\n", origin(&old.nearfar, &old.machine), origin(&new.nearfar, &new.machine));
    if old.machine.cpu != new.machine.cpu || old.machine.far != new.machine.far {
        text += "note the machines differ: shares of all-DRAM are compared, which depend on the machine\n";
    }
    if old.settings.data_bytes != new.settings.data_bytes {
        text += "note the sizes of data differ\n";
    }
    if compared == 0 {
        return text + "\nThey have no point in common: nothing can be compared.\n";
    }
    for (better, title) in [(false, "worse"), (true, "better")] {
        let rows: Vec<&Change> = changes.iter().filter(|change| (change.new > change.old) == better).collect();
        if rows.is_empty() {
            text += &format!("\n{title}: none\n");
            continue;
        }
        let mut table = for_output(110);
        table.set_header(["point", "old, % of all-DRAM", "new", "new/old"]);
        align_right(&mut table, 1..4);
        for change in rows {
            let percent = |share: f64| format!("{:.1}", 100.0 * share);
            table.add_row([
                change.what.clone(),
                percent(change.old),
                percent(change.new),
                format!("{:.2}", change.new / change.old),
            ]);
        }
        text += &format!("\n{title}\n{table}\n");
    }
    text + &format!(
        "\n{} of {compared} points in common are the same within their spread (or {:.0} %, where runs are single)\n",
        compared - changes.len(),
        100.0 * NOISE
    )
}

/// Those that differ by more than both spreads, and how many were compared.
fn changes(old: &SuiteFile, new: &SuiteFile) -> (Vec<Change>, usize) {
    let mut changes = Vec::new();
    let mut compared = 0;
    for work in &new.works {
        let Some(before) = old.works.iter().find(|other| other.name == work.name) else { continue };
        for point in work.points.iter().filter(|point| point.system != System::Dram) {
            let Some((a, b)) = both(before, work, point) else { continue };
            compared += 1;
            let apart = a.high < b.low || b.high < a.low;
            let single = a.runs < 2 || b.runs < 2;
            if apart && !(single && (b.median / a.median - 1.0).abs() < NOISE) {
                changes.push(Change { what: format!("{}, {}", work.name, where_(point)), old: a.median, new: b.median });
            }
        }
    }
    changes.sort_by(|a, b| (a.new / a.old).total_cmp(&(b.new / b.old)));
    (changes, compared)
}

/// Shares of both, unless one was stopped: then nothing is known of the change.
fn both(before: &WorkResults, after: &WorkResults, point: &Point) -> Option<(Spread, Spread)> {
    let old = before.point(point.system, point.threads, point.ratio)?;
    let (a, b) = (before.efficiency(old)?, after.efficiency(point)?);
    (!a.stopped && !b.stopped && a.median > 0.0).then_some((a, b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::suite::PointRun;

    fn suite(rates: &[f64]) -> SuiteFile {
        let point = |system, ratio, rates: &[f64]| Point {
            system,
            threads: 2,
            ratio,
            near_bytes: 0,
            command: String::new(),
            obstacle: None,
            bound: None,
            runs: rates.iter().map(|&rate| PointRun { rate, ..PointRun::default() }).collect(),
        };
        let dram = vec![10.0; rates.len()];
        let points = vec![point(System::Dram, 0.0, &dram), point(System::Disk, 2.0, rates)];
        SuiteFile {
            works: vec![WorkResults { name: "triad".to_owned(), points, ..WorkResults::default() }],
            ..SuiteFile::default()
        }
    }

    #[test]
    fn only_changes_beyond_both_spreads_are_told() {
        assert_eq!(changes(&suite(&[5.0, 6.0, 7.0]), &suite(&[6.9, 8.0, 9.0])), (Vec::new(), 1));
        let (found, _) = changes(&suite(&[5.0, 6.0, 7.0]), &suite(&[7.1, 8.0, 9.0]));
        assert_eq!((found.len(), found[0].old, found[0].new), (1, 0.6, 0.8));
        // Single runs have no spread of their own.
        assert!(changes(&suite(&[5.0]), &suite(&[5.4])).0.is_empty());
        assert_eq!(changes(&suite(&[5.0]), &suite(&[4.0])).0.len(), 1);
        let worse = text(&suite(&[5.0]), &suite(&[4.0]));
        assert!(worse.contains("better: none") && worse.contains("0.80"), "{worse}");
        assert!(text(&suite(&[5.0]), &SuiteFile::default()).contains("no point in common"));
    }
}
