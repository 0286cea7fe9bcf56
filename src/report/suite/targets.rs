//! What was aimed at, beside what was measured: a row for each target. Nothing is filled in that nobody gave.

use crate::ui::html::{Cell, section};
use serde::Deserialize;

/// A target and what came of it, in words as they are shown.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Target {
    /// Name of the work.
    pub work: String,
    /// Data by near.
    pub ratio: f64,
    /// What is aimed at.
    pub target: String,
    /// What was measured; empty: nothing yet.
    pub measured: String,
    /// What others published, and where; may be empty.
    pub published: String,
    /// Whether it is reached; `None` while there is no figure.
    pub met: Option<bool>,
    /// Why, or why not.
    pub why: String,
}

/// The section; nothing without rows.
pub fn targets(rows: &[Target]) -> String {
    let row = |target: &Target| {
        let met = match target.met {
            Some(true) => "yes",
            Some(false) => "NO",
            None => "not known",
        };
        let words = |words: &str| Cell::text(if words.is_empty() { "–" } else { words });
        vec![
            Cell::text(&target.work),
            Cell::number(target.ratio.to_string()),
            words(&target.target),
            words(&target.measured),
            words(&target.published),
            Cell::text(met),
            Cell::text(&target.why),
        ]
    };
    let head = ["work", "data ÷ near", "target", "measured", "published by others", "met", "why"];
    section("Targets", &head, rows.iter().map(row), "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_without_a_figure_is_not_met() {
        assert!(targets(&[]).is_empty());
        let rows = [
            Target { work: "<triad>".into(), ratio: 3.0, target: "70 %".into(), met: Some(false), ..Target::default() },
            Target::default(),
        ];
        let html = targets(&rows);
        assert!(html.contains("&lt;triad&gt;") && html.contains(">NO<") && html.contains(">not known<"), "{html}");
    }
}
