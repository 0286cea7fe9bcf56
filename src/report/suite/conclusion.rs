//! What a suite says, in words, made by rules from its data. Pure.
//!
//! Invariant: a stopped run is an upper limit of speed and is never counted as speed that was kept; what is missing is said.

use super::modes;
use super::standing::{Conclusion, Standing, nearest_to_asked, share_of_memory, standings};
use crate::files::suite::{MODES, Point, SuiteFile, System, WorkResults};
use crate::sample::median;
use nearfar_core::node::words;

/// A work that keeps more than this of its speed is not slowed by much.
pub const KEPT: f64 = 0.7;
/// A work that keeps less than this suffers.
const SUFFERS: f64 = 0.5;
/// What `file` says.
pub fn conclude(file: &SuiteFile) -> Conclusion {
    let fars: Vec<System> =
        [System::Disk, System::Emulated].into_iter().filter(|far| measured(file, *far).next().is_some()).collect();
    if fars.is_empty() && MODES.iter().any(|mode| measured(file, *mode).next().is_some()) {
        let beside = [wrong_data(file).into_iter().collect(), troubles(file)].concat();
        return modes::conclude(file, beside);
    }
    let Some(&far) = fars.first() else {
        let lead = "Nothing can be concluded yet: no work has a figure both under nearfar and with all data in DRAM.".to_owned();
        return Conclusion { lead, more: wrong_data(file).into_iter().chain(troubles(file)).collect(), ..Conclusion::default() };
    };
    let threads = measured(file, far).map(|point| point.threads).max().unwrap_or(0);
    let ratios = measured(file, far).filter(|point| point.threads == threads).map(|point| point.ratio);
    let ratio = nearest_to_asked(ratios);
    let ours = standings(file, far, threads, ratio);
    let lead = format!("With {} of the memory, {}", share_of_memory(ratio), lead(far, &ours));
    let mut more: Vec<String> = wrong_data(file).into_iter().collect();
    more.extend(fars.iter().skip(1).map(|other| beside(*other, &standings(file, *other, threads, ratio))));
    if let Some(without) = without_figure(&ours) {
        more.push(without);
    }
    if far == System::Disk {
        let rivals = [System::Swap, System::Mmap];
        more.extend(rivals.iter().filter_map(|rival| against(*rival, &ours, &standings(file, *rival, threads, ratio))));
    }
    if file.settings.threads.len() > 1 {
        more.push(format!("These are figures with {}.", counted(threads, "thread")));
    }
    more.extend(troubles(file));
    Conclusion { lead, more, ratio, threads, far: Some(far) }
}

/// Points of `system` for which there is an efficiency.
fn measured(file: &SuiteFile, system: System) -> impl Iterator<Item = &Point> {
    let of = move |work: &'_ WorkResults, point: &Point| point.system == system && work.efficiency(point).is_some();
    file.works.iter().flat_map(move |work| work.points.iter().filter(move |point| of(work, point)))
}

fn where_far_is(far: System) -> &'static str {
    if far == System::Emulated { "with emulated far memory" } else { "with far memory on this machine's disk" }
}

fn keep(works: &[Standing]) -> (usize, usize) {
    let known: Vec<&Standing> = works.iter().filter(|work| work.is_judged(KEPT)).collect();
    (known.iter().filter(|work| work.keeps(KEPT)).count(), known.len())
}

fn works(count: usize) -> String {
    if count == 1 { "1 work".to_owned() } else { format!("{count} works") }
}

/// "11 of 24 works keep more than 70 % of their speed".
fn kept(ours: &[Standing]) -> String {
    let (kept, all) = keep(ours);
    let (verb, whose) = if kept == 1 || all == 1 { ("keeps", "its") } else { ("keep", "their") };
    format!("{kept} of {} {verb} more than {} of {whose} speed", works(all), words::percent(KEPT))
}

fn lead(far: System, ours: &[Standing]) -> String {
    format!("{} {}; {}.", kept(ours), where_far_is(far), what_suffers(ours))
}

fn beside(far: System, standings: &[Standing]) -> String {
    if standings.iter().all(|work| work.speed.is_none()) {
        return format!("There is no figure {} at this size of near.", where_far_is(far));
    }
    let mut chars = where_far_is(far).chars();
    let start: String = chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default();
    format!("{start}, {}; {}.", kept(standings), what_suffers(standings))
}

/// The accesses of the works that lose most, worst first, with the works of each.
fn what_suffers(ours: &[Standing]) -> String {
    let mut slow: Vec<&Standing> = ours.iter().filter(|work| work.at_most() < SUFFERS).collect();
    slow.sort_by(|a, b| a.at_most().total_cmp(&b.at_most()));
    if slow.is_empty() {
        let least = ours.iter().filter(|work| work.speed.is_some()).min_by(|a, b| a.at_most().total_cmp(&b.at_most()));
        return least.map_or("none has a figure".to_owned(), |work| {
            format!("none loses more than half: {} keeps {}", work.name, work.shown())
        });
    }
    let mut groups: Vec<(String, Vec<&Standing>)> = Vec::new();
    for work in &slow {
        let access = phrase(work.access);
        match groups.iter_mut().find(|(known, _)| *known == access) {
            Some((_, members)) => members.push(work),
            None => groups.push((access, vec![work])),
        }
    }
    let told = |(access, members): &(String, Vec<&Standing>)| {
        let names: Vec<String> = members.iter().take(3).map(|work| format!("{} {}", work.name, work.shown())).collect();
        let more = if members.len() > 3 { format!(" and {} more", members.len() - 3) } else { String::new() };
        let access = if access.is_empty() { "work of a kind that is not described" } else { access };
        format!("{access} ({}{more})", names.join(", "))
    };
    let shown: Vec<String> = groups.iter().take(2).map(told).collect();
    let rest: usize = groups.iter().skip(2).map(|(_, members)| members.len()).sum();
    let rest = if rest > 0 { format!(", and {} more with less than half", works(rest)) } else { String::new() };
    format!("what suffers most is {}{rest}", shown.join(", then "))
}

/// A sentence as a part of another.
fn phrase(access: &str) -> String {
    let text = access.trim().trim_end_matches('.');
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        (Some(first), Some(second)) if first.is_uppercase() && (second.is_lowercase() || second == ' ') => {
            first.to_lowercase().chain(text.chars().skip(1)).collect()
        }
        _ => text.to_owned(),
    }
}

fn without_figure(ours: &[Standing]) -> Option<String> {
    let without: Vec<&str> = ours.iter().filter(|work| !work.is_judged(KEPT)).map(|work| work.name).collect();
    (!without.is_empty()).then(|| format!("Not counted, for want of a figure there: {}.", without.join(", ")))
}

/// How many times as fast nearfar is, in the middle of the works that ran on both.
fn against(rival: System, ours: &[Standing], theirs: &[Standing]) -> Option<String> {
    let mut times = Vec::new();
    let mut stopped = Vec::new();
    let (mut slower, mut unclear) = (Vec::new(), 0);
    for (our, their) in ours.iter().zip(theirs) {
        let (Some(us), Some(them)) = (our.speed, their.speed) else { continue };
        if us.stopped || them.median <= 0.0 {
            unclear += 1;
            continue;
        }
        let ratio = us.median / them.median;
        times.push(ratio);
        if them.stopped {
            stopped.push(ratio);
        } else if us.high < them.low {
            slower.push(our.name);
        }
    }
    let middle = median(&times)?;
    // The rival was slower than the limit says: what stands above the middle stays there, what stands below may pass it.
    let at_least = if stopped.iter().any(|ratio| *ratio <= middle) { "at least " } else { "" };
    let mut told = format!(
        "Beside {}, nearfar is {at_least}{} times as fast in the middle of {}",
        rival.name(),
        words::digits(middle),
        works(times.len())
    );
    if !slower.is_empty() {
        told += &format!("; it is slower in {}", slower.join(", "));
    }
    if !stopped.is_empty() {
        told +=
            &format!("; in {} {} reached the time limit and is slower than is counted here", works(stopped.len()), rival.name());
    }
    if unclear > 0 {
        told += &format!("; {} cannot be compared: nearfar reached the time limit", works(unclear));
    }
    Some(told + ".")
}

/// Points that gave other data than all-DRAM.
fn wrong_data(file: &SuiteFile) -> Option<String> {
    let points = file.works.iter().flat_map(|work| work.points.iter().map(move |point| (work, point)));
    let near = |point: &Point| if point.ratio > 0.0 { format!(" at {} times near", point.ratio) } else { String::new() };
    let wrong: Vec<String> = points
        .filter(|(work, point)| work.gave_same_data(point) == Some(false))
        .map(|(work, point)| format!("{}{}", at(work, point), near(point)))
        .collect();
    (!wrong.is_empty()).then(|| format!("WRONG DATA: {} gave other data than with all of them in DRAM.", some(&wrong)))
}

/// What else went wrong, is missing, or cannot be known.
fn troubles(file: &SuiteFile) -> Vec<String> {
    let mut told = Vec::new();
    let points = || file.works.iter().flat_map(|work| work.points.iter().map(move |point| (work, point)));
    let runs = || points().flat_map(|(work, point)| point.runs.iter().map(move |run| (work, point, run)));
    let compared = points().filter_map(|(work, point)| work.gave_same_data(point));
    let (same, other): (Vec<bool>, Vec<bool>) = compared.partition(|same| *same);
    if !same.is_empty() && other.is_empty() {
        told.push("Wherever data were read back, they were those of all-DRAM.".to_owned());
    }
    let failed: Vec<String> =
        runs().filter_map(|(work, point, run)| Some(format!("{} ({})", at(work, point), run.failed.as_ref()?))).collect();
    if failed.is_empty() {
        told.push("No run failed.".to_owned());
    } else {
        told.push(format!("{} failed: {}.", counted(failed.len(), "run"), some(&failed)));
    }
    let stopped = runs().filter(|(_, _, run)| run.stopped).count();
    if stopped > 0 {
        told.push(format!(
            "{} reached the time limit: their speed is \"at most\" (≤), their time \"at least\" (≥).",
            counted(stopped, "run")
        ));
    }
    let barred: Vec<String> =
        points().filter_map(|(work, point)| Some(format!("{} ({})", at(work, point), point.obstacle.as_ref()?))).collect();
    if !barred.is_empty() {
        told.push(format!("{} could not be measured: {}.", counted(barred.len(), "point"), some(&barred)));
    }
    let set = &file.settings;
    let references = file.works.iter().filter(|work| work.reference).count();
    let others = file.works.len() - references;
    let whole = set.threads.len() * (references + others * (1 + set.systems.len() * set.ratios.len()));
    let begun = points().filter(|(_, point)| !point.runs.is_empty() || point.obstacle.is_some()).count();
    if begun < whole {
        told.push(format!(
            "{} of {whole} are not there: the suite was stopped, or these were not asked for.",
            counted(whole - begun, "point")
        ));
    }
    if points().all(|(_, point)| point.runs.len() < 2) && runs().next().is_some() {
        told.push("Every point is a single run: how much figures vary is not known.".to_owned());
    }
    told
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn at(work: &WorkResults, point: &Point) -> String {
    format!("{} on {}", work.name, point.system.name())
}

/// The first few.
fn some(all: &[String]) -> String {
    let mut different: Vec<&String> = Vec::new();
    for one in all {
        if !different.contains(&one) {
            different.push(one);
        }
    }
    let shown: Vec<&str> = different.iter().take(3).map(|one| one.as_str()).collect();
    let more = if different.len() > 3 { format!(" and {} more", different.len() - 3) } else { String::new() };
    shown.join("; ") + &more
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::suite::{PointRun, SuiteSettings};

    fn run(rate: f64) -> PointRun {
        PointRun { rate, ..PointRun::default() }
    }

    fn point(system: System, ratio: f64, runs: Vec<PointRun>) -> Point {
        Point { runs, ..Point::new(system, 2, ratio) }
    }

    fn work(name: &str, access: &str, disk: f64, swap: PointRun) -> WorkResults {
        let points = vec![
            point(System::Dram, 0.0, vec![run(100.0)]),
            point(System::Disk, 2.0, vec![run(95.0)]),
            point(System::Disk, 2.8, vec![run(disk)]),
            point(System::Swap, 2.8, vec![swap]),
        ];
        WorkResults { name: name.to_owned(), access: access.to_owned(), points, ..WorkResults::default() }
    }

    fn suite(works: Vec<WorkResults>) -> SuiteFile {
        let settings =
            SuiteSettings { ratios: vec![2.0, 2.8], threads: vec![2], systems: vec![System::Disk], ..SuiteSettings::default() };
        SuiteFile { works, settings, ..SuiteFile::default() }
    }

    #[test]
    fn the_answer_leads() {
        let told = conclude(&suite(vec![
            work("triad", "Sweeps over data.", 71.0, run(10.0)),
            work("gemm", "Tiles", 99.0, run(110.0)),
            work("random", "random access to data that are used once", 4.0, run(1.0)),
            work("chase", "random access to data that are used once", 2.0, PointRun { stopped: true, ..run(1.0) }),
        ]));
        assert_eq!(
            told.lead,
            "With 36 % of the memory, 2 of 4 works keep more than 70 % of their speed with far memory on this machine's disk; what suffers \
             most is random access to data that are used once (chase 2.0 %, random 4.0 %)."
        );
        assert_eq!((told.ratio, told.threads, told.far), (2.8, 2, Some(System::Disk)));
        let all = told.more.join("\n");
        assert!(all.contains(
            "Beside kernel swap, nearfar is at least 3.00 times as fast in the middle of 4 works; it is slower in gemm; in 1 work"
        ));
        assert!(all.contains("No run failed.") && all.contains("single run") && all.contains("1 run reached"), "{all}");
    }

    #[test]
    fn what_lies_within_the_spread_is_not_slower() {
        let slower = |swap: [f64; 2]| {
            let mut work = work("random", "Random access", 0.04, run(0.0));
            work.points[0].runs = vec![run(100.0); 2];
            work.points[2].runs = vec![run(0.03), run(0.05)];
            work.points[3].runs = swap.map(run).to_vec();
            let told = conclude(&suite(vec![work]));
            (told.lead.contains("random 0.04 %"), told.more.join(" ").contains("slower in random"))
        };
        assert_eq!((slower([0.045, 0.055]), slower([0.055, 0.065])), ((true, false), (true, true)));
    }

    #[test]
    fn stopped_runs_are_never_speed_that_was_kept() {
        let mut work = work("a", "Sweeps", 90.0, run(1.0));
        work.points[2].runs[0].stopped = true;
        let told = conclude(&suite(vec![work.clone()]));
        assert!(
            told.lead.contains("0 of 0 works") && told.more.join(" ").contains("Not counted, for want of a figure there: a."),
            "{told:?}"
        );
        work.points[2].runs[0].rate = 40.0;
        let told = conclude(&suite(vec![work]));
        assert!(told.lead.contains("0 of 1 work keeps") && told.lead.contains("sweeps (a ≤ 40 %)"), "{told:?}");
    }

    #[test]
    fn what_went_wrong_is_said() {
        let mut bad = work("a", "Sweeps", 90.0, run(1.0));
        bad.points[0].runs[0].checksum = "1".to_owned();
        let told = |work: &WorkResults| conclude(&suite(vec![work.clone()])).more.join("\n");
        assert!(!told(&bad).contains("read back"), "nothing but all-DRAM was");
        bad.points[2].runs[0].checksum = "1".to_owned();
        assert!(told(&bad).contains("Wherever data were read back, they were those of all-DRAM."));
        bad.points[2].runs[0].checksum = "2".to_owned();
        bad.points[1].obstacle = Some("no <room>".to_owned());
        bad.points[1].runs.clear();
        bad.points[3].runs[0].failed = Some("out of memory".to_owned());
        let all = conclude(&suite(vec![bad])).more.join("\n");
        for words in ["WRONG DATA: a on nearfar, disk at 2.8 times near", "1 run failed: a on kernel swap", "no <room>"] {
            assert!(all.contains(words), "{words}: {all}");
        }
        assert!(conclude(&SuiteFile::default()).lead.contains("Nothing can be concluded yet"));
    }

    #[test]
    fn a_suite_that_loses_little_says_so() {
        let told = conclude(&suite(vec![work("a", "Sweeps", 72.0, run(1.0)), work("b", "Tiles", 95.0, run(2.0))]));
        assert!(told.lead.ends_with("none loses more than half: a keeps 72 %."), "{}", told.lead);
    }
}
