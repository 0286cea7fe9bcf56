//! What was advised, and what came of it: predicted beside measured run times, in total and by routine.

use super::answers;
use crate::files::advice::{AdviceFile, Costs, Item, Row, Verified};
use crate::ui::chart::verified;
use crate::ui::html::{self, Cell, heading, method, paragraph, section, table};
use crate::ui::routine::Key;
use nearfar_core::node::words;
use nearfar_core::profile::summary::Estimate;

/// Rows of the table of objects.
const ROWS: usize = 40;
/// Routines in the table of each case.
const ROUTINES: usize = 20;

/// The heading.
pub fn title(file: &AdviceFile) -> String {
    format!("Advice for {}", file.program)
}

fn seconds(value: f64) -> String {
    format!("{} s", words::digits(value))
}

fn interval(time: &Estimate) -> String {
    format!("{} ({} – {})", seconds(time.value), seconds(time.low), seconds(time.high))
}

fn percent(error: f64) -> String {
    format!("{:+.0} %", 100.0 * error)
}

/// The sections on advice.
pub fn sections(file: &AdviceFile) -> String {
    let times = &file.advice.times;
    let named = [
        ("Everything far", &times.all_far),
        ("By the plan", &times.plan),
        ("Everything near", &times.all_near),
        ("Near as a cache", &times.cache),
        ("Hybrid", &times.hybrid),
    ];
    let mut rows: Vec<Vec<Cell>> =
        named.iter().map(|(name, time)| vec![Cell::text(name), Cell::number(interval(time))]).collect();
    rows.insert(0, vec![Cell::text("Near"), Cell::number(words::size(file.near_bytes.max(0.0) as u64))]);
    let mut html = html::conclusion(&answers::advice(file), &file.notes);
    html += &file.verified.as_ref().map_or(String::new(), proof);
    html += &heading("Predicted");
    html += &table(&["", "predicted run time"], rows);
    html += &file.costs.as_ref().map_or(String::new(), costs);
    let row = |item: &Item| {
        vec![
            Cell::text(&item.name),
            Cell::number(words::size(item.bytes)),
            Cell::number(words::percent(item.near)),
            Cell::number(interval(&item.gain)),
            Cell::text(&item.why),
        ]
    };
    let head = ["object", "most bytes", "near", "takes off the run when near", "why"];
    html + &section("Objects", &head, file.advice.items.iter().take(ROWS).map(row), "")
}

/// Sizes of near that no other one beats, with what they cost.
fn costs(costs: &Costs) -> String {
    let front = costs.sizes.iter().filter(|size| size.front);
    let cheapest = costs.sizes.iter().map(|size| size.run).fold(f64::INFINITY, f64::min);
    let rows = front.map(|size| {
        vec![
            Cell::number(words::size(size.near.max(0.0) as u64)),
            Cell::number(words::size(size.far.max(0.0) as u64)),
            Cell::number(seconds(size.seconds)),
            Cell::number(words::digits(size.memory_hour)),
            Cell::number(words::digits(size.run)),
            Cell::text(if size.run == cheapest { "cheapest run" } else { "" }),
        ]
    });
    let per_hour = format!("memory, {} an hour", costs.currency);
    let per_run = format!("a run, {}", costs.currency);
    let head = ["near", "far", "predicted run time", per_hour.as_str(), per_run.as_str(), ""];
    let how = format!(
        "Of {} sizes of near, those that no other size beats in both time and price of memory. A run costs the machine and its memory for as \
         long as it is predicted to take by plan.",
        costs.sizes.len()
    );
    heading("What it costs") + &table(&head, rows) + &method(&how)
}

fn proof(verified: &Verified) -> String {
    let mut html = heading("Predicted and measured");
    if let Some(svg) = verified::draw(&verified.rows) {
        html += &format!("<figure>{svg}</figure>\n");
    }
    let row = |row: &Row| {
        let runs = row.measured.iter().map(|run| words::digits(*run)).collect::<Vec<_>>().join(", ");
        vec![
            Cell::text(&row.name),
            Cell::number(interval(&row.predicted)),
            Cell::number(seconds(row.median)),
            Cell::number(percent(row.error)),
            Cell::text(runs),
        ]
    };
    let head = ["", "predicted", "measured (median)", "error", "runs, in seconds"];
    html += &table(&head, verified.rows.iter().map(row));
    html += &by_routine(verified);
    if verified.rows.iter().any(|row| row.name == "Mixed") {
        let (gain, bytes) = (words::percent(verified.gain_share), words::percent(verified.bytes_share));
        html += &paragraph(&format!("The plan has {gain} of the gain of all near with {bytes} of the bytes."));
    }
    html
}

fn by_routine(verified: &Verified) -> String {
    let missing = verified.routines_missing.as_deref().map_or(String::new(), paragraph);
    let cases: Vec<&Row> = verified.rows.iter().filter(|row| !row.routines.is_empty()).collect();
    if Key::of(cases.iter().map(|row| row.routines.as_slice())).names().next().is_none() {
        return missing;
    }
    let known = |value: Option<f64>, show: fn(f64) -> String| Cell::number(value.map_or("?".to_owned(), show));
    let mut rows = Vec::new();
    for case in cases {
        for (number, routine) in case.routines.iter().take(ROUTINES).enumerate() {
            rows.push(vec![
                Cell::text(if number == 0 { &case.name } else { "" }),
                Cell::text(&routine.function),
                Cell::text(&routine.module),
                known(routine.predicted, seconds),
                known(routine.measured, seconds),
                known(routine.error, percent),
            ]);
        }
    }
    let head = ["", "routine", "in", "predicted", "measured", "error"];
    let how = "Wall time. Predicted: from the profile's times of routines and what each asks of the objects. Measured: each thread of the run \
               was looked at every few milliseconds from outside; a thread in a page fault counts for the routine that waits.";
    heading("By routine") + &missing + &table(&head, rows) + &method(how)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::chart::verified::tests::row;

    #[test]
    fn advice_is_a_part_of_a_page() {
        let rows = vec![row("All far", [6.0, 2.0], Some([5.0, 3.0])), row("Mixed", [1.0, 1.0], Some([2.0, 1.0]))];
        let verified = Verified { rows, gain_share: 0.9, bytes_share: 0.3, ..Verified::default() };
        let evil = Item { name: "<script>".into(), why: "<img>".into(), ..Item::default() };
        let mut file = AdviceFile { program: "app".into(), verified: Some(verified), ..AdviceFile::default() };
        file.advice.items.push(evil);
        let html = sections(&file);
        for text in ["<svg", "up&lt;date", "+20 %", "-50 %", "90 % of the gain", "By routine"] {
            assert!(html.contains(text), "{text}: {html}");
        }
        assert!(!html.contains("<script") && !html.contains("<img"));
        let unseen = Verified { routines_missing: Some("no <clock>".into()), ..Verified::default() };
        let html = sections(&AdviceFile { verified: Some(unseen), ..file.clone() });
        assert!(html.contains("no &lt;clock&gt;") && !html.contains("By routine"));
        file.verified = None;
        assert!(!sections(&file).contains("Predicted and measured"));
    }
}
