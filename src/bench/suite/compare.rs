//! Two suites side by side: what got better or worse by more than both spreads.

use super::display::{origin, percent, where_};
use crate::files::suite::{Spread, SuiteFile, System};
use crate::ui::table::{align_right, for_output};

/// With single runs there is no spread: less than this change is taken for noise.
const NOISE: f64 = 0.10;

/// A point that differs.
#[derive(Debug, PartialEq)]
struct Change {
    what: String,
    old: Spread,
    new: Spread,
}

/// What two suites say of each other.
#[derive(Debug, Default, PartialEq)]
struct Compared {
    /// Points that differ, the worst first.
    changes: Vec<Change>,
    /// Points that had a figure and have none now, and why.
    lost: Vec<String>,
    /// Points with figures in both, of which something can be said.
    count: usize,
}

/// What got better, worse, and how much stayed the same, for people.
pub fn text(old: &SuiteFile, new: &SuiteFile) -> String {
    let Compared { changes, lost, count } = compared(old, new);
    let mut text = format!("old  {}\nnew  {}\n", origin(&old.nearfar, &old.machine), origin(&new.nearfar, &new.machine));
    if old.machine.cpu != new.machine.cpu || old.machine.far != new.machine.far {
        text += "note the machines differ: shares of all-DRAM are compared, which depend on the machine\n";
    }
    if old.settings.data_bytes != new.settings.data_bytes {
        text += "note the sizes of data differ\n";
    }
    if count == 0 && lost.is_empty() {
        return text + "\nThey have no point in common: nothing can be compared.\n";
    }
    for (better, title) in [(false, "worse"), (true, "better")] {
        let rows: Vec<&Change> = changes.iter().filter(|change| (change.new.median > change.old.median) == better).collect();
        if rows.is_empty() {
            text += &format!("\n{title}: none\n");
            continue;
        }
        let mut table = for_output(110);
        table.set_header(["point", "old, % of all-DRAM", "new", "new/old"]);
        align_right(&mut table, 1..4);
        for change in rows {
            let ratio = format!("{:.2}", change.new.median / change.old.median);
            table.add_row([change.what.clone(), percent(&change.old), percent(&change.new), ratio]);
        }
        text += &format!("\n{title}\n{table}\n");
    }
    if !lost.is_empty() {
        text += &format!("\nno figure any more\n  {}\n", lost.join("\n  "));
    }
    text + &format!(
        "\n{} of {count} points in common are the same within their spread (or {:.0} %, where runs are single)\n",
        count - changes.len(),
        100.0 * NOISE
    )
}

fn compared(old: &SuiteFile, new: &SuiteFile) -> Compared {
    let mut compared = Compared::default();
    for work in &new.works {
        let Some(before) = old.works.iter().find(|other| other.name == work.name) else { continue };
        for point in work.points.iter().filter(|point| point.system != System::Dram) {
            let Some(then) = before.point(point.system, point.threads, point.ratio) else { continue };
            let Some(a) = before.efficiency(then).filter(|share| share.median > 0.0) else { continue };
            let what = format!("{}, {}", work.name, where_(point));
            let Some(b) = work.efficiency(point) else {
                compared.lost.extend(point.trouble().map(|why| format!("{what}: {why}")));
                continue;
            };
            let differs = match (a.stopped, b.stopped) {
                (false, false) => {
                    let single = a.runs < 2 || b.runs < 2;
                    let apart = a.high < b.low || b.high < a.low;
                    apart && !(single && (b.median / a.median - 1.0).abs() < NOISE)
                }
                // A share that was stopped is an upper limit.
                (false, true) if b.median < a.low => true,
                (true, false) if b.low > a.median => true,
                _ => continue,
            };
            compared.count += 1;
            if differs {
                compared.changes.push(Change { what, old: a, new: b });
            }
        }
    }
    compared.changes.sort_by(|a, b| (a.new.median / a.old.median).total_cmp(&(b.new.median / b.old.median)));
    compared
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::suite::{Point, PointRun, WorkResults};

    fn suite(rates: &[f64]) -> SuiteFile {
        let point = |system, ratio, rates: &[f64]| Point {
            runs: rates.iter().map(|&rate| PointRun { rate, ..PointRun::default() }).collect(),
            ..Point::new(system, 2, ratio)
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
        let changes = |old: &SuiteFile, new: &SuiteFile| {
            let compared = compared(old, new);
            assert_eq!(compared.count, 1);
            compared.changes.iter().map(|change| (change.old.median, change.new.median)).collect::<Vec<_>>()
        };
        assert_eq!(changes(&suite(&[5.0, 6.0, 7.0]), &suite(&[6.9, 8.0, 9.0])), []);
        assert_eq!(changes(&suite(&[5.0, 6.0, 7.0]), &suite(&[7.1, 8.0, 9.0])), [(0.6, 0.8)]);
        // Single runs have no spread of their own.
        assert_eq!(changes(&suite(&[5.0]), &suite(&[5.4])), []);
        assert_eq!(changes(&suite(&[5.0]), &suite(&[4.0])), [(0.5, 0.4)]);
        let worse = text(&suite(&[5.0]), &suite(&[4.0]));
        assert!(worse.contains("better: none") && worse.contains("0.80"), "{worse}");
        assert!(text(&suite(&[5.0]), &SuiteFile::default()).contains("no point in common"));
    }

    #[test]
    fn what_is_stopped_or_fails_now_is_not_passed_over() {
        let with = |change: fn(&mut PointRun)| {
            let mut file = suite(&[1.0]);
            change(&mut file.works[0].points[1].runs[0]);
            file
        };
        let stopped = with(|run| run.stopped = true);
        let worse = text(&suite(&[5.0]), &stopped);
        assert!(worse.contains("< 10 %") && worse.contains("better: none"), "{worse}");
        assert!(text(&stopped, &suite(&[5.0])).contains("worse: none"));
        // It may have been as slow before.
        assert_eq!(compared(&suite(&[0.5]), &stopped).count, 0);
        let failed = with(|run| run.failed = Some("no room".to_owned()));
        assert!(text(&suite(&[5.0]), &failed).contains("triad, nearfar, disk, data 2 x near, 2 threads: no room"));
    }
}
