//! A suite of `nearfar bench suite`: what it says, the board that shows it, and the tables behind.
//!
//! Modules are listed lowest first.

mod standing;
mod targets;
mod modes;
mod conclusion;
mod view;
mod tables;

use crate::files::suite::SuiteFile;
use crate::ui::html;
use crate::ui::page::data;
use crate::ui::suite::board;

/// Test data, which tests of whole pages use too.
#[path = "../../../tests/util/suite_sample.rs"]
#[cfg(test)]
mod sample;

/// The heading.
pub fn title(file: &SuiteFile) -> String {
    if file.machine.cpu.is_empty() { "Suite".to_owned() } else { format!("Suite on {}", file.machine.cpu) }
}

/// The sections on a suite, the `number`th document of the page.
pub fn sections(number: usize, file: &SuiteFile) -> String {
    let id = format!("suite{number}");
    let answer = conclusion::conclude(file);
    let view = view::view(&id, file, answer.far, answer.threads, answer.ratio);
    let mut html = html::conclusion(&answer.lead, &answer.more);
    if !view.works.is_empty() {
        let strips = tables::strips(&id, file, &view.threads, &view.ratios);
        html += &board(
            &id,
            &strips,
            "Share of the speed that a work has with all its data in DRAM; the strong shades begin at 70 %. ≤: stopped at the time limit.",
        );
        html += &data(&format!("{id}-data"), &serde_json::to_string(&view).unwrap_or_default());
    }
    html += &targets::targets(file);
    if !view.works.is_empty() {
        html += &tables::figures(&id, file);
    }
    html + &tables::facts(file)
}

/// The test data, read.
#[cfg(test)]
pub fn sample_file() -> SuiteFile {
    serde_json::from_str(&sample::json()).expect("a suite")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_comes_before_picture_and_tables() {
        let html = sections(0, &sample_file());
        let at = |words: &str| html.find(words).unwrap_or_else(|| panic!("{words}"));
        assert!(at("With a third of the memory, ") < at("class=\"board\"") && at("class=\"board\"") < at("All figures"));
        assert!(at("WRONG DATA: sort on mmap of a file at 6 times near") < at("class=\"board\""));
        assert!(html.len() < 1_500_000, "{} bytes", html.len());
        let empty = sections(0, &SuiteFile::default());
        assert!(empty.contains("Nothing can be concluded yet") && !empty.contains("<script"));
    }

    #[test]
    fn nothing_from_a_suite_becomes_markup() {
        let evil = "\"></script><script>alert('x')</script><img src=x onerror=y>";
        let mut file = sample_file();
        file.nearfar = evil.to_owned();
        file.machine.cpu = evil.to_owned();
        file.machine.far = evil.to_owned();
        for work in &mut file.works {
            work.name = evil.to_owned();
            work.title = evil.to_owned();
            work.access = evil.to_owned();
            for point in &mut work.points {
                point.command = evil.to_owned();
                point.obstacle = Some(evil.to_owned());
                point.runs.iter_mut().for_each(|run| run.failed = Some(evil.to_owned()));
                point.bound.iter_mut().for_each(|bound| bound.because = evil.to_owned());
            }
        }
        let html = sections(0, &file);
        assert!(!html.contains("<script>") && !html.contains("<img") && html.matches("</script").count() == 1);
        assert!(html.contains("&lt;script&gt;") && html.contains("\\u003cscript\\u003e"));
    }
}
