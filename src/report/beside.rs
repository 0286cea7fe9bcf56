//! Machines side by side: what one reaches of what another does, and where two of the same kind differ.

use crate::ui::html::{Cell, heading, method, section};
use nearfar_core::node::{Difference, Node, Ratio, Side, compare, diff, words};

/// Medians of machines of one kind may differ by so much without a line.
pub const TOLERANCE: f64 = 0.05;

/// `first` beside each of `others`, by what figures mean.
pub fn ratios(first: &Node, others: &[&Node]) -> String {
    let mut html = String::new();
    for other in others {
        let title = format!("{} beside {}", first.name, other.name);
        let head = ["what", &first.name, &other.name, "ratio", "notes and source"];
        let rows = section(&title, &head, compare(first, other).iter().map(row), "");
        html += &if rows.is_empty() { heading(&title) + &method("They have no figure in common.") } else { rows };
    }
    html + &method(
        "Rows are matched by meaning: the role of the memory, the operation and the kind of stores. Where several rows mean the \
         same, the best valid one of each machine is taken. For times, a ratio above 1 is slower.",
    )
}

fn row(ratio: &Ratio) -> Vec<Cell> {
    let shown = if ratio.measure.more_is_better() {
        words::percent(ratio.ratio)
    } else {
        format!("{} times", words::digits(ratio.ratio))
    };
    let source = (!ratio.source.is_empty()).then(|| ratio.source.clone());
    vec![
        Cell::text(&ratio.what),
        Cell::number(ratio.measure.show(ratio.ours)),
        Cell::number(ratio.measure.show(ratio.theirs)),
        Cell::number(shown),
        Cell::lines(ratio.notes.iter().cloned().chain(source)),
    ]
}

/// Where `b` differs from `a`, for machines with the same processor; nothing for others.
pub fn differences(a: &Node, b: &Node) -> String {
    if a.topology.cpu_model.is_empty() || a.topology.cpu_model != b.topology.cpu_model || a.figures().any(|f| f.source.is_some())
    {
        return String::new();
    }
    let row = |difference: &Difference| {
        let verdict = match (difference.significant, difference.worse) {
            (true, Some(Side::A)) => format!("{} is worse", a.name),
            (true, Some(Side::B)) => format!("{} is worse", b.name),
            _ => String::new(),
        };
        let change = difference.change.map_or(String::new(), |change| format!("{:+.0} %", change * 100.0));
        vec![
            Cell::text(&difference.what),
            Cell::number(&difference.a),
            Cell::number(&difference.b),
            Cell::number(change),
            Cell::text(verdict),
            Cell::text(&difference.why),
        ]
    };
    let title = format!("Differences of {} from {}", b.name, a.name);
    let head = ["what", &a.name, &b.name, "change", "", "why"];
    let how = "Rows with the same key in both, when medians differ by more than 5 per cent; significant when the intervals do not overlap.";
    let rows = section(&title, &head, diff(a, b, TOLERANCE).iter().map(row), how);
    if rows.is_empty() { heading(&title) + &method("None beyond 5 per cent.") } else { rows }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::preset;

    #[test]
    fn machines_side_by_side() {
        let (knl, max) = (preset::find("knl-flat").expect("found"), preset::find("xeon-max-9480-flat").expect("found"));
        let html = ratios(&knl, &[&max]);
        assert!(html.contains("triad from near memory (HBM)") && html.contains("560 GB/s") && html.contains("one site"));
        assert!(differences(&knl, &max).is_empty(), "presets are not of a fleet");
        assert!(ratios(&Node::default(), &[&max]).contains("no figure in common"));
    }

    #[test]
    fn machines_of_one_fleet() {
        let mut a = Node { name: "n1".to_owned(), ..Node::default() };
        a.topology.cpu_model = "X".to_owned();
        a.topology.kernel = "6.1".to_owned();
        let mut b = a.clone();
        b.name = "<n2>".to_owned();
        assert!(differences(&a, &b).contains("None beyond"));
        b.topology.kernel = "6.2".to_owned();
        let html = differences(&a, &b);
        assert!(html.contains("kernel") && html.contains("&lt;n2&gt;") && !html.contains("<n2>"));
    }
}
