//! The arithmetic of one object's gain, step by step: what was measured, the rates, each formula with its numbers, the result. The numbers
//! are those of the middle model, which the printed values come from.

use super::advice::Advice;
use super::demand::Demands;
use super::machine::{Far, Machine, PAGE, Paged, Tier};
use super::model::{Model, Use, Waiting};
use super::sharing::Cached;
use super::unknowns::Unknowns;
use crate::profile::summary::{Estimate, ObjectGroup, Pattern, Summary};
use crate::units::Bytes;

/// One line: what it is, and the arithmetic.
pub type Line = (String, String);

/// Why an object cannot be explained.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotOne {
    /// None is called so.
    #[error("no object of the profile is called that; it has {0}")]
    None(String),
    /// Several are.
    #[error("several objects are called that: {0}; write more of the name")]
    Several(String),
}

/// Names that are listed in an error.
const NAMED: usize = 12;

/// The group that `name` means: its whole name, or a part that no other has.
///
/// # Errors
/// None, or several.
pub fn find(summary: &Summary, name: &str) -> Result<usize, NotOne> {
    let names = || summary.objects.iter().map(|group| group.name.as_str()).enumerate();
    if let Some((at, _)) = names().find(|(_, known)| *known == name) {
        return Ok(at);
    }
    let found: Vec<(usize, &str)> = names().filter(|(_, known)| known.contains(name)).collect();
    let list = |names: &mut dyn Iterator<Item = &str>| {
        let all: Vec<&str> = names.collect();
        let more = if all.len() > NAMED { format!(" and {} more", all.len() - NAMED) } else { String::new() };
        format!("{}{more}", all.iter().take(NAMED).copied().collect::<Vec<_>>().join(", "))
    };
    match found[..] {
        [(at, _)] => Ok(at),
        [] => Err(NotOne::None(list(&mut names().map(|(_, name)| name)))),
        _ => Err(NotOne::Several(list(&mut found.iter().map(|(_, name)| *name)))),
    }
}

fn gb(bytes: f64) -> String {
    format!("{:.3} GB", bytes / 1e9)
}

fn s(seconds: f64) -> String {
    format!("{seconds:.4} s")
}

fn known(estimate: &Estimate, show: fn(f64) -> String) -> String {
    format!("{} ({} .. {})", show(estimate.value), show(estimate.low), show(estimate.high))
}

fn count(value: f64) -> String {
    format!("{value:.0}")
}

/// All lines about `group` of `summary`, where the others are as `advice` has them.
pub fn explain(summary: &Summary, machine: &Machine, advice: &Advice, group: usize) -> Vec<Line> {
    let demands = Demands::of(summary);
    let model = Model::new(summary, &demands, machine, Unknowns::middle(summary));
    let mut lines = measured(&summary.objects[group]);
    let shares = |share: f64| {
        let mut shares = vec![0.0; summary.objects.len()];
        advice.items.iter().for_each(|item| shares[item.group] = item.near);
        let with = advice.items.iter().find(|item| item.group == group).map(|item| item.with.as_slice()).unwrap_or_default();
        for (at, other) in summary.objects.iter().enumerate() {
            if at == group || with.contains(&other.name) {
                shares[at] = share;
            }
        }
        shares
    };
    let [far, near] = [0.0, 1.0].map(shares);
    // As the gain is: what is free may be taken by others tomorrow.
    let cached = [&far, &near].map(|shares| model.cached(model.flat_cache(), shares));
    lines.extend(rates(machine));
    // The stretch in which it matters most.
    let time = |at: usize, bin: usize| {
        let cached = cached[at].as_ref().map(|cached| cached[bin].as_slice());
        let shares = if at == 0 { &far } else { &near };
        let all = model.asked(bin, shares, cached).fold(Use::default(), |sum, one| sum.plus(1.0, &one));
        (model.seconds(bin, &all), all)
    };
    let bins = demands.seconds.len();
    let gain = |bin: usize| time(0, bin).0 - time(1, bin).0;
    let Some(most) = (0..bins).max_by(|&a, &b| gain(a).total_cmp(&gain(b))) else { return lines };
    let from: f64 = demands.seconds[..most].iter().sum();
    let line = |what: &str, how: String| (what.to_owned(), how);
    lines.push(line(
        "stretch",
        format!("number {} of {bins}, in which it matters most: {} from second {from:.2} on", most + 1, s(demands.seconds[most])),
    ));
    let demand = &demands.groups[group];
    lines.push(line(
        "  of it",
        format!(
            "{} read, {} written, {:.0} visits of pages",
            gb(demand.read[most]),
            gb(demand.written[most]),
            demand.visits[most]
        ),
    ));
    let ((whole, at_home), computing) = (model.at_home(most), model.computes(most));
    lines.push(line(
        "  computing",
        format!(
            "{} of {} at home that memory does not explain there; with the predicted threads, cores and ranks {}",
            s(at_home),
            s(whole),
            s(computing)
        ),
    ));
    let at_far = cached[0].as_ref().map(|cached| (cached[most][group], 1.0));
    let (asked_far, asked_near) = (model.far(demand, most, at_far), model.near(demand, most));
    let threads = model.threads(most);
    match &machine.far {
        Far::Memory(tier) => {
            lines.push(line(
                "  far",
                moving((demand.read[most], demand.written[most]), tier, machine, threads, (asked_far.far, asked_far.far_stall)),
            ));
            let near = &machine.near;
            lines.push(line(
                "  near",
                moving(
                    (demand.read[most], demand.written[most]),
                    near,
                    machine,
                    threads,
                    (asked_near.near, asked_near.near_stall),
                ),
            ));
            if let Some(waiting) = model.waiting(demand, most) {
                lines.push(line("  waits", waits(&waiting, &model, most, machine, tier)));
            }
        }
        Far::Paged(_) if !demand.pageable => lines.push(line("  far", "it is never paged".to_owned())),
        Far::Paged(paged) => lines.extend(paging(
            machine.scaling.traffic() * demand.visits[most],
            demand.changed,
            at_far.map(|one| one.0),
            paged,
            &asked_far,
            demand.ahead,
        )),
    }
    for (at, name) in ["  all, it far", "  all, it near"].iter().enumerate() {
        let (seconds, all) = time(at, most);
        lines.push(line(name, together(&all, computing, seconds, machine)));
    }
    let total = |at: usize| (0..bins).map(|bin| time(at, bin).0).sum::<f64>();
    let (far, near) = (total(0), total(1));
    lines.push(line("all stretches", format!("{} with it far - {} with it near = {}", s(far), s(near), s(far - near))));
    if let Some(item) = advice.items.iter().find(|item| item.group == group) {
        lines.push(line("said", format!("takes off {} when near; {}", known(&item.gain, s), item.why)));
    }
    lines
}

fn measured(group: &ObjectGroup) -> Vec<Line> {
    let line = |what: &str, how: String| (what.to_owned(), how);
    let pattern = match group.pattern {
        Pattern::Stream => "in order",
        Pattern::Strided => "with strides",
        Pattern::Random => "without order: loads wait, and pages cannot be fetched ahead",
        Pattern::Unknown => "in an unknown order",
    };
    vec![
        line("object", group.name.clone()),
        line(
            "bytes",
            format!("{} at most, in {} objects; used: {}", Bytes(group.peak_bytes), group.count, known(&group.footprint, gb)),
        ),
        line("order", pattern.to_owned()),
        line(
            "looks",
            format!("{}, of which {} saw a touch; {} samples of the processor", group.looks, group.touches, group.samples),
        ),
        line(
            "visits of pages",
            format!(
                "{}, each of {} lines of 64 bytes",
                known(&group.page_visits, count),
                known(&group.lines_per_visit, |lines| format!("{lines:.1}"))
            ),
        ),
        line("read from memory", known(&group.read, gb)),
        line("written to memory", known(&group.written, gb)),
    ]
}

fn tier(tier: &Tier) -> String {
    format!(
        "{}: {:.1} GB/s read, {:.1} GB/s written, {:.1} GB/s by one core, {:.0} ns idle",
        tier.name,
        tier.read / 1e9,
        tier.write / 1e9,
        tier.per_core / 1e9,
        tier.latency_ns
    )
}

fn rates(machine: &Machine) -> Vec<Line> {
    let line = |what: &str, how: String| (what.to_owned(), how);
    let far = match &machine.far {
        Far::Memory(memory) => tier(memory),
        Far::Paged(paged) => format!(
            "{}: {:.2} GB/s read, {:.2} GB/s written{}, {:.1} us for a page that is waited for, {:.2} us for each page beside",
            paged.name,
            paged.read / 1e9,
            paged.write / 1e9,
            if paged.one_channel { " through one channel" } else { "" },
            paged.fault_ns / 1e3,
            paged.page_ns / 1e3
        ),
    };
    let scaling = &machine.scaling;
    let threads = format!(
        "{:.0}, profiled with {:.0}; traffic times {:.2}; a core takes {:.2} times as long",
        scaling.threads,
        scaling.profiled,
        scaling.traffic(),
        scaling.core
    );
    vec![line("home", tier(&machine.home)), line("near", tier(&machine.near)), line("far", far), line("threads", threads)]
}

/// "read / rate + written / rate = ...; waits ...".
fn moving((read, written): (f64, f64), tier: &Tier, machine: &Machine, threads: f64, (moved, waits): (f64, f64)) -> String {
    let more = machine.scaling.traffic();
    let factor = if more == 1.0 { String::new() } else { format!("{more:.2} x ") };
    let reached = match tier.share(threads) {
        share if share < 1.0 => format!(" (divided by {share:.2}, what so many threads reach of it)"),
        _ => String::new(),
    };
    format!(
        "{factor}the larger of {} / {:.1} GB/s + {} / {:.1} GB/s{reached} and all of it / ({:.1} GB/s x {threads:.1} threads) = {} moving; {} waiting for loads",
        gb(read),
        tier.read / 1e9,
        gb(written),
        tier.write / 1e9,
        tier.per_core / 1e9,
        s(moved),
        s(waits)
    )
}

/// "lines x latency / loads at once / threads = ...; x far's latency per load at once / home's = ...".
fn waits(waiting: &Waiting, model: &Model, bin: usize, machine: &Machine, far: &Tier) -> String {
    let threads = model.threads_at_home(bin);
    let (most, is_measured) = model.most_at_once(&machine.home);
    let how = if is_measured { "measured" } else { "assumed" };
    let home = waiting.wall(threads);
    let limit = match waiting.most {
        most if most.is_finite() => format!(", {} at most, which the code that loads them took,", s(most)),
        _ => String::new(),
    };
    let then = |tier: &Tier| {
        let (at_once, at_home) = (model.at_once(tier), waiting.at_once);
        let seconds = home * (tier.latency_ns / at_once) / (machine.home.latency_ns / at_home);
        let per_load = |latency: f64, at_once: f64| format!("({latency:.0} ns / {at_once:.1})");
        format!("x {} / {} = {}", per_load(tier.latency_ns, at_once), per_load(machine.home.latency_ns, at_home), s(seconds))
    };
    format!(
        "{:.0} lines x {:.0} ns / {:.1} loads at once (of {most:.1} that a core can, {how}: the middle of a guess){limit} / {threads:.1} threads, of which {:.0} % fit into what is not computing = {} at home; far {}, near {}, before other threads and traffic",
        waiting.lines,
        waiting.latency_ns,
        waiting.at_once,
        100.0 * waiting.room,
        s(home),
        then(far),
        then(&machine.near)
    )
}

fn paging(visits: f64, changed: f64, cached: Option<Cached>, paged: &Paged, asked: &Use, ahead: bool) -> Vec<Line> {
    let line = |what: &str, how: String| (what.to_owned(), how);
    let misses = cached.map_or(1.0, |cached| cached.misses);
    let pages = visits * misses;
    let transfer = format!(
        "{visits:.0} visits x {misses:.3} that miss = {pages:.0} pages; {} / {:.2} GB/s in, {:.0} % of them / {:.2} GB/s out, and new pages: {}",
        gb(pages * PAGE),
        paged.read / 1e9,
        100.0 * changed,
        paged.write / 1e9,
        s(asked.far)
    );
    let waits = match ahead {
        true => format!("fetched ahead: {pages:.0} x {:.2} us of handling = {}", paged.page_ns / 1e3, s(asked.handling)),
        false => format!(
            "nobody can fetch them ahead: {pages:.0} x {:.1} us / threads = {} waiting",
            paged.fault_ns / 1e3,
            s(asked.far_stall)
        ),
    };
    vec![line("  far", transfer), line("  waits", waits)]
}

/// All objects in the stretch.
fn together(all: &Use, computing: f64, seconds: f64, machine: &Machine) -> String {
    match &machine.far {
        Far::Memory(_) => format!(
            "computing {} and waiting {} beside moving near {} or far {}, whichever is longer = {}",
            s(computing),
            s(all.near_stall + all.far_stall),
            s(all.near),
            s(all.far),
            s(seconds)
        ),
        Far::Paged(_) => format!(
            "computing {}, of which {:.0} % can hide transfers; transfers {}, handling {}, waiting {} = {}",
            s(computing),
            100.0 * all.beside.clamp(0.0, 1.0),
            s(all.far),
            s(all.handling),
            s(all.far_stall),
            s(seconds)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::advice::{Question, advice};
    use super::super::demand::tests::{summary, swept};
    use super::*;

    fn number(text: &str, after: &str) -> f64 {
        let start = if after.is_empty() { Some(0) } else { text.rfind(after).map(|at| at + after.len()) };
        let rest = &text[start.unwrap_or_else(|| panic!("{after} in {text}"))..];
        rest.trim_start().split(' ').next().and_then(|word| word.parse().ok()).unwrap_or_else(|| panic!("{rest}"))
    }

    #[test]
    fn the_arithmetic_comes_to_what_was_said() {
        let summary = summary(8.0, 8, vec![swept("hot (a.c:1)", 1e9, 60.0, 8), swept("cold (a.c:2)", 3e9, 2.0, 8)]);
        let memory = |rate: f64| Tier { per_core: rate, ..Tier::plain("t", rate, 100.0, 1e12) };
        let paged = Machine::paged("here", memory(30e9), Paged::example(32e6));
        let two = Machine {
            name: "m".into(),
            near: memory(40e9),
            far: Far::Memory(memory(8e9)),
            home: memory(8e9),
            cores: 1,
            cpus: 1,
            scaling: Default::default(),
            notes: Vec::new(),
        };
        for machine in [paged, two] {
            let question = Question { near: 1.5e9, fractions: false };
            let said = advice(&summary, &machine, question).expect("advice");
            let group = find(&summary, "hot").expect("one");
            let lines = explain(&summary, &machine, &said, group);
            let of = |what: &str| &lines.iter().find(|line| line.0 == what).unwrap_or_else(|| panic!("{what}: {lines:?}")).1;
            let gain = said.items.iter().find(|item| item.group == group).expect("item").gain.value;
            let total = of("all stretches");
            assert!((number(total, "= ") - gain).abs() < 0.002 * gain.max(1.0), "{total} {gain}");
            assert!((number(total, "") - number(total, "far - ") - gain).abs() < 0.002, "{total}");
            assert!(of("read from memory").starts_with("60.000 GB"));
        }
    }

    #[test]
    fn waits_and_what_threads_reach_are_told() {
        let mut summary = summary(8.0, 8, vec![swept("hot (a.c:1)", 1e9, 60.0, 8), swept("cold (a.c:2)", 3e9, 2.0, 8)]);
        summary.objects[0].pattern = Pattern::Random;
        let memory = |rate: f64, latency: f64| Tier { per_core: rate, ..Tier::plain("t", rate, latency, 1e12) };
        let far = Tier { by_threads: vec![(1.0, 0.5)], ..memory(8e9, 300.0) };
        let machine = Machine {
            name: "m".into(),
            near: memory(40e9, 150.0),
            far: Far::Memory(far),
            home: memory(20e9, 100.0),
            cores: 1,
            cpus: 1,
            scaling: Default::default(),
            notes: Vec::new(),
        };
        let said = advice(&summary, &machine, Question { near: 1.5e9, fractions: false }).expect("advice");
        let lines = explain(&summary, &machine, &said, find(&summary, "hot").expect("one"));
        let of = |what: &str| lines.iter().find(|line| line.0 == what).unwrap_or_else(|| panic!("{what}: {lines:?}")).1.as_str();
        let (home, rest) = of("  waits").split_once(" at home; far ").expect("home");
        let (far, near) = rest.split_once(", near ").expect("far");
        let [home, far, near] = [home, far, near].map(|text| number(text, "= "));
        assert!(home > 0.0 && (far / home - 3.0).abs() < 0.01 && (near / home - 1.5).abs() < 0.01, "{home} {far} {near}");
        assert!((number(of("  far"), "moving; ") - far).abs() < 0.002 && (number(of("  near"), "moving; ") - near).abs() < 0.002);
        assert!(of("  far").contains("(divided by 0.50, what so many threads reach of it)") && !of("  near").contains("reach"));
    }

    #[test]
    fn names_mean_one_object() {
        let summary = summary(8.0, 8, vec![swept("psi (a.c:1)", 1e9, 1.0, 8), swept("psi2 (a.c:1)", 1e9, 1.0, 8)]);
        assert_eq!((find(&summary, "psi2"), find(&summary, "psi (a.c:1)")), (Ok(1), Ok(0)));
        assert!(matches!(find(&summary, "psi"), Err(NotOne::Several(_))) && matches!(find(&summary, "x"), Err(NotOne::None(_))));
    }
}
