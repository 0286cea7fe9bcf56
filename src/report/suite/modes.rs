//! What a comparison of modes says, in words. Pure.

use super::standing::{Conclusion, Standing, nearest_to_asked, share_of_memory, standings};
use crate::files::suite::{MODES, SuiteFile, System};
use crate::sample::median;
use nearfar_core::node::words;

/// What `file`, which has modes, says; `beside` are sentences that go with it.
pub fn conclude(file: &SuiteFile, beside: Vec<String>) -> Conclusion {
    let points = || file.works.iter().flat_map(|work| &work.points).filter(|point| point.system.is_mode());
    let threads = points().map(|point| point.threads).max().unwrap_or(0);
    let ratio = nearest_to_asked(points().map(|point| point.ratio));
    let of_modes = MODES.map(|mode| (mode, standings(file, mode, threads, ratio)));
    let middles = of_modes.iter().filter_map(|(mode, works)| {
        let shares: Vec<f64> = works.iter().filter_map(|work| work.speed).map(|speed| speed.median).collect();
        Some(format!("{} {}", mode.name(), words::percent(median(&shares)?)))
    });
    let middles: Vec<String> = middles.collect();
    let lead = format!(
        "With {} of the memory near, {}; in the middle of the works they keep of the speed with all data near: {}.",
        share_of_memory(ratio),
        fastest(&of_modes),
        middles.join(", ")
    );
    Conclusion { lead, more: beside, ratio, threads, far: Some(System::FlatPlan) }
}

/// "fastest is flat by plan in 3, cache in 1 of 6 works; in 2 ...": of the modes that were measured.
fn fastest(of_modes: &[(System, Vec<Standing<'_>>)]) -> String {
    let works = of_modes.first().map_or(0, |(_, works)| works.len());
    let mut firsts = vec![0; of_modes.len()];
    let mut open = 0;
    for work in 0..works {
        let known = of_modes.iter().enumerate().filter_map(|(mode, (_, works))| Some((mode, works[work].speed?)));
        let mut known: Vec<_> = known.collect();
        known.sort_by(|(_, one), (_, other)| other.median.total_cmp(&one.median));
        match known[..] {
            [] => {}
            [(_, best), (_, second), ..] if best.stopped || second.high >= best.low => open += 1,
            [(mode, _), ..] => firsts[mode] += 1,
        }
    }
    let mut ranked: Vec<(usize, &str)> = firsts.iter().zip(of_modes).map(|(count, (mode, _))| (*count, mode.name())).collect();
    ranked.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    let clear: Vec<String> =
        ranked.iter().filter(|(count, _)| *count > 0).map(|(count, name)| format!("{name} in {count}")).collect();
    let clear = if clear.is_empty() {
        "no mode is clearly the fastest in any work".to_owned()
    } else {
        format!("fastest is {} of {works} works", clear.join(", "))
    };
    if open == 0 { clear } else { format!("{clear}; in {open} the fastest are within their spread of each other") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::suite::{Point, PointRun, WorkResults};

    #[test]
    fn the_fastest_mode_is_told_unless_spreads_meet() {
        let runs = |rates: &[f64]| rates.iter().map(|&rate| PointRun { rate, ..PointRun::default() }).collect::<Vec<_>>();
        let point = |system, ratio, rates: &[f64]| Point { runs: runs(rates), ..Point::new(system, 2, ratio) };
        let work = |plan: &[f64]| WorkResults {
            points: vec![
                point(System::Dram, 0.0, &[100.0, 100.0]),
                point(System::Cache, 2.0, &[40.0, 50.0]),
                point(System::FlatPlan, 2.0, plan),
            ],
            ..WorkResults::default()
        };
        let told =
            conclude(&SuiteFile { works: vec![work(&[60.0, 80.0]), work(&[45.0, 80.0])], ..SuiteFile::default() }, Vec::new());
        assert_eq!(
            told.lead,
            "With half of the memory near, fastest is flat by plan in 1 of 2 works; in 1 the fastest are within their spread of each other; \
             in the middle of the works they keep of the speed with all data near: cache 45 %, flat by plan 66 %."
        );
        assert_eq!((told.ratio, told.threads), (2.0, 2));
    }
}
