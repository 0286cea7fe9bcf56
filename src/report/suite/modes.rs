//! What a comparison of modes says, in words. Pure.

use super::standing::{Conclusion, Standing, nearest_to_asked, share_of_memory, standings};
use crate::files::suite::{MODES, Spread, SuiteFile, System};
use crate::sample::median;
use nearfar_core::node::words;

/// What `file`, which has modes, says; `beside` are sentences that go with it. Runs that the time limit stopped count nowhere.
pub fn conclude(file: &SuiteFile, beside: Vec<String>) -> Conclusion {
    let points = || file.works.iter().flat_map(|work| &work.points).filter(|point| point.system.is_mode());
    let threads = points().map(|point| point.threads).max().unwrap_or(0);
    let ratio = nearest_to_asked(points().map(|point| point.ratio));
    let of_modes = MODES.map(|mode| (mode, standings(file, mode, threads, ratio)));
    let shares = |works: &[Standing<'_>]| works.iter().filter_map(ended).map(|speed| speed.median).collect::<Vec<_>>();
    let middle = |(mode, works): &(System, Vec<Standing<'_>>)| {
        let shares = shares(works);
        // Of other works it is another middle.
        let fewer = if shares.len() < works.len() { format!(" (of {})", shares.len()) } else { String::new() };
        Some(format!("{} {}{fewer}", mode.name(), words::percent(median(&shares)?)))
    };
    let middles: Vec<String> = of_modes.iter().filter_map(middle).collect();
    let lead = format!(
        "With {} of the memory near, {}; in the middle of the works they keep of the speed with all data near: {}.",
        share_of_memory(ratio),
        fastest(&of_modes),
        middles.join(", ")
    );
    let far = of_modes.iter().find(|(_, works)| works.iter().any(|work| work.speed.is_some())).map(|(mode, _)| *mode);
    Conclusion { lead, more: beside, ratio, threads, far }
}

/// The speed, where it was not cut off.
fn ended(work: &Standing<'_>) -> Option<Spread> {
    work.speed.filter(|speed| !speed.stopped)
}

/// "fastest is flat by plan in 3, cache in 1 of 6 works; in 2 ...". One mode is the fastest of a work when all its runs were faster than all
/// of every other's, of two at least.
fn fastest(of_modes: &[(System, Vec<Standing<'_>>)]) -> String {
    let works = of_modes.first().map_or(0, |(_, works)| works.len());
    let (mut firsts, mut open) = (vec![0; of_modes.len()], 0);
    for work in 0..works {
        let mut known: Vec<(usize, Spread)> =
            of_modes.iter().enumerate().filter_map(|(mode, (_, works))| Some((mode, ended(&works[work])?))).collect();
        known.sort_by(|(_, one), (_, other)| other.median.total_cmp(&one.median));
        match known[..] {
            [(mode, best), _, ..] if best.runs > 1 && known[1..].iter().all(|(_, other)| other.high < best.low) => {
                firsts[mode] += 1
            }
            [_, _, ..] => open += 1,
            _ => {}
        }
    }
    let mut ranked: Vec<(usize, &str)> = firsts.iter().zip(of_modes).map(|(count, (mode, _))| (*count, mode.name())).collect();
    ranked.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    let clear: Vec<String> =
        ranked.iter().filter(|(count, _)| *count > 0).map(|(count, name)| format!("{name} in {count}")).collect();
    let clear = match clear.is_empty() {
        true => "no mode is clearly the fastest in any work".to_owned(),
        false => format!("fastest is {} of {works} works", clear.join(", ")),
    };
    if open == 0 { clear } else { format!("{clear}; in {open} the spreads of the fastest meet, or there is none") }
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
                point(System::FlatByPlan, 2.0, plan),
            ],
            ..WorkResults::default()
        };
        let told =
            conclude(&SuiteFile { works: vec![work(&[60.0, 80.0]), work(&[45.0, 80.0])], ..SuiteFile::default() }, Vec::new());
        assert_eq!(
            told.lead,
            "With half of the memory near, fastest is flat by plan in 1 of 2 works; in 1 the spreads of the fastest meet, or there is none; \
             in the middle of the works they keep of the speed with all data near: cache 45 %, flat by plan 66 %."
        );
        assert_eq!((told.ratio, told.threads), (2.0, 2));
    }
}
