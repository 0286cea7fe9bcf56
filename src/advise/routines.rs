//! Predicted beside measured by routine: one case of `--verify` after another, as rows, stacked bars and a table.

use super::display::BAR;
use crate::files::advice::{OTHER, Routine};
use crate::ui::routine::{Column, Key};
use nearfar_core::advise::by_routine::ByRoutine;
use nearfar_profile::outside::{RoutineWall, UNKNOWN};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Letters of a routine's name.
const NAME: usize = 26;
/// Function and module.
type Name = (String, String);

/// Wall seconds of a run, and where they went.
pub type Run = (f64, Vec<RoutineWall>);

/// Rows of one case, most time first, "other" last; both columns sum to their total. Empty where nothing is known.
pub fn rows(predicted: Option<&ByRoutine>, runs: &[Run], median: f64) -> Vec<Routine> {
    if predicted.is_none() && runs.is_empty() {
        return Vec::new();
    }
    let mut known: BTreeMap<Name, (f64, f64)> = BTreeMap::new();
    let is_named = |function: &str| function != UNKNOWN;
    for one in predicted.iter().flat_map(|predicted| &predicted.routines).filter(|one| is_named(&one.function)) {
        known.entry((one.function.clone(), one.module.clone())).or_default().0 += one.seconds;
    }
    for (wall, spent) in runs {
        for one in spent.iter().filter(|one| is_named(&one.function)) {
            let part = one.seconds / wall * median / runs.len() as f64;
            known.entry((one.function.clone(), one.module.clone())).or_default().1 += part;
        }
    }
    let left = |total: f64, of: fn(&(f64, f64)) -> f64| (total - known.values().map(of).sum::<f64>()).max(0.0);
    let other = (left(predicted.map_or(0.0, ByRoutine::total), |pair| pair.0), left(median, |pair| pair.1));
    let row = |(function, module): Name, pair: (f64, f64)| {
        let (predicted, measured) = (predicted.map(|_| pair.0), (!runs.is_empty()).then_some(pair.1));
        let error = predicted.zip(measured).filter(|(_, measured)| *measured > 0.0).map(|(said, seen)| said / seen - 1.0);
        Routine { function, module, predicted, measured, error }
    };
    let mut rows: Vec<Routine> = known.into_iter().map(|(name, pair)| row(name, pair)).collect();
    rows.retain(|row| row.most() > 0.0);
    rows.sort_by(|one, next| next.most().total_cmp(&one.most()));
    rows.push(row((OTHER.to_owned(), String::new()), other));
    rows
}

/// A bar of `total` seconds in which each routine has its letter; without routines of one sign.
pub fn bar(key: &Key, rows: &[Routine], of: Column, total: f64, most: f64) -> String {
    let names: Vec<&str> = key.names().collect();
    let Some(parts) = key.parts(rows, of).filter(|_| !names.is_empty()) else { return super::display::bar(total, most) };
    let mut text = String::new();
    let mut until = 0.0;
    for (at, seconds) in parts.iter().enumerate() {
        until += seconds;
        let end = if most > 0.0 { ((until / most * BAR as f64).round() as usize).min(BAR) } else { 0 };
        let letter = if at < names.len() { letter(at) } else { '.' };
        text.extend(std::iter::repeat_n(letter, end.saturating_sub(text.len())));
    }
    text
}

/// A row for each routine: predicted, measured and error in each of the cases.
pub fn table(key: &Key, cases: &[(&str, &[Routine])]) -> String {
    let names: Vec<&str> = key.names().collect();
    let cases: Vec<_> = cases.iter().filter(|(_, rows)| !rows.is_empty()).collect();
    if names.is_empty() || cases.is_empty() {
        return String::new();
    }
    let mut text = "by routine: seconds predicted and measured, error\n".to_owned();
    let _ = write!(text, "  {:<NAME$}", "");
    cases.iter().for_each(|(name, _)| text += &format!("  {name:^21}"));
    let columns: Vec<_> =
        cases.iter().map(|(_, rows)| (key.parts(rows, |row| row.predicted), key.parts(rows, |row| row.measured))).collect();
    for at in 0..=names.len() {
        let name = names.get(at).map_or_else(|| format!(". {OTHER}"), |function| format!("{} {function}", letter(at)));
        // Writing to a String cannot fail.
        let _ = write!(text, "\n  {:<NAME$}", super::display::short(&name, NAME));
        for (predicted, measured) in &columns {
            let (said, seen) = (predicted.as_ref().map(|parts| parts[at]), measured.as_ref().map(|parts| parts[at]));
            let _ = write!(text, "  {:>6}{:>7}{:>8}", seconds(said), seconds(seen), error(said, seen));
        }
    }
    text + "\n"
}

fn letter(at: usize) -> char {
    char::from(b'a' + at as u8)
}

fn seconds(value: Option<f64>) -> String {
    match value {
        None => "?".to_owned(),
        Some(value) if value >= 999.5 => format!("{value:.0}"),
        Some(value) if value >= 99.5 => format!("{value:.1}"),
        Some(value) => format!("{value:.2}"),
    }
}

/// In percent, where there is enough to divide by.
fn error(said: Option<f64>, seen: Option<f64>) -> String {
    match said.zip(seen) {
        Some((said, seen)) if seen >= 0.005 && said / seen < 10.0 => format!("{:+.0} %", 100.0 * (said / seen - 1.0)),
        _ => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::routine::ROWS;
    use nearfar_core::advise::by_routine::RoutineTime;

    fn predicted(list: &[(&str, f64)], other: f64) -> ByRoutine {
        let of = |&(name, seconds): &(&str, f64)| RoutineTime { function: name.into(), module: "app".into(), seconds };
        ByRoutine { routines: list.iter().map(of).collect(), other }
    }

    fn run(wall: f64, list: &[(&str, f64)]) -> Run {
        let of = |&(name, seconds): &(&str, f64)| RoutineWall { function: name.into(), module: "app".into(), seconds };
        (wall, list.iter().map(of).collect())
    }

    #[test]
    fn both_columns_sum_to_their_totals() {
        let said = predicted(&[("fast", 1.0), ("slow", 6.0), ("?", 0.5)], 0.5);
        let runs = [run(8.0, &[("slow", 4.0), ("fast", 2.0), ("?", 1.0)]), run(12.0, &[("slow", 6.0), ("hook", 3.0)])];
        let found = rows(Some(&said), &runs, 10.0);
        let sum = |of: fn(&Routine) -> Option<f64>| found.iter().map(|row| of(row).expect("known")).sum::<f64>();
        assert!((sum(|row| row.predicted) - 8.0).abs() < 1e-9 && (sum(|row| row.measured) - 10.0).abs() < 1e-9, "{found:?}");
        assert_eq!((found[0].function.as_str(), found[0].measured, found.len()), ("slow", Some(5.0), 4));
        assert!((found[0].error.expect("known") - 0.2).abs() < 1e-9 && found[3].is_other());
        assert!((found[3].predicted.expect("known") - 1.0).abs() < 1e-9, "who has no name is other");
        assert!(rows(None, &[], 1.0).is_empty());
        let unmeasured = rows(Some(&said), &[], 10.0);
        assert!(unmeasured.iter().all(|row| row.measured.is_none() && row.error.is_none() && row.predicted.is_some()));
    }

    #[test]
    fn bars_are_stacked_and_lines_fit_in_100_columns() {
        let names: Vec<String> = (0..12).map(|number| format!("a_routine_with_quite_a_long_name_{number}")).collect();
        let list: Vec<(&str, f64)> = names.iter().zip(1..).map(|(name, at)| (name.as_str(), 100.0 * f64::from(at))).collect();
        let said = predicted(&list, 0.0);
        let case = rows(Some(&said), &[run(7800.0, &list)], 7800.0);
        let key = Key::of([case.as_slice()].into_iter());
        let drawn = bar(&key, &case, |row| row.predicted, 7800.0, 7800.0);
        assert!(drawn.len() == BAR && drawn.starts_with("aaaaaabbbbb") && drawn.ends_with("....."), "{drawn}");
        let drawn = table(&key, &[("All far", &case), ("Mixed", &case), ("All near", &case)]);
        assert!(drawn.lines().all(|line| line.chars().count() <= 100) && drawn.lines().count() == ROWS + 3, "{drawn}");
        assert!(drawn.contains("+0 %") && drawn.contains(". other"), "{drawn}");
        let nothing = Key::of(std::iter::empty());
        assert_eq!(bar(&nothing, &[], |row| row.measured, 1.0, 2.0), "#".repeat(BAR / 2));
        assert_eq!(table(&nothing, &[("All far", &[])]), "");
    }
}
