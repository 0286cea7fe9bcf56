//! What was aimed at, beside what was measured: a row for each target.

use crate::files::suite::{Spread, SuiteFile, Verdict};
use crate::ui::html::{Cell, section};
use nearfar_core::node::words;

/// The section; nothing without targets.
pub fn targets(file: &SuiteFile) -> String {
    let head = ["work", "data ÷ near", "target", "measured", "spread", "published by others", "met", "why"];
    let how = "Speed as a share of all-DRAM with far emulated at an eighth of the bandwidth of DRAM, with the largest number of threads.";
    section("Targets", &head, file.verdicts().iter().map(row), how)
}

fn row(verdict: &Verdict) -> Vec<Cell> {
    let target = verdict.target;
    let or_dash = |words: &str| Cell::text(if words.is_empty() { "–" } else { words });
    let measured = |share: &Spread| format!("{}{}", if share.stopped { "≤ " } else { "" }, words::percent(share.median));
    let spread = |share: &Spread| format!("{} – {}", words::percent(share.low), words::percent(share.high));
    let against = target.against.as_ref().map_or(String::new(), |other| format!(" of {other}"));
    vec![
        Cell::text(verdict.title),
        Cell::number(target.ratio.to_string()),
        Cell::number(format!("≥ {}{against}", words::percent(target.least))),
        Cell::number(verdict.measured.as_ref().map_or("–".to_owned(), measured)),
        Cell::number(verdict.measured.as_ref().filter(|share| share.runs > 1).map_or("–".to_owned(), spread)),
        or_dash(&target.published),
        Cell::text(match verdict.met {
            Some(true) => "yes",
            Some(false) => "NO",
            None => "not known",
        }),
        or_dash(&verdict.why),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::suite::{System, Target, WorkResults};

    #[test]
    fn a_target_without_a_figure_is_not_met() {
        assert!(targets(&SuiteFile::default()).is_empty());
        let target = Target {
            work: "triad".to_owned(),
            system: System::Emulated,
            ratio: 2.0,
            least: 0.22,
            published: "<12.5 %>".to_owned(),
            against: None,
        };
        let work = WorkResults { name: "triad".to_owned(), title: "<triad>".to_owned(), ..WorkResults::default() };
        let html = targets(&SuiteFile { works: vec![work], targets: vec![target], ..SuiteFile::default() });
        for words in ["&lt;triad&gt;", "≥ 22", "&lt;12.5 %&gt;", "not known", "not measured yet"] {
            assert!(html.contains(words), "{words}: {html}");
        }
    }
}
