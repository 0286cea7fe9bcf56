//! Two descriptions of machines that ought to be alike: what differs, which of the two is slower, and whether that is more than noise.
//! Finds slow nodes of a fleet, and gates changes of a machine.
//!
//! A row is the same in both when everything but its figure is the same. It differs significantly when the confidence intervals do not
//! overlap *and* the medians differ by more than the tolerance: the first alone would tell of every tenth of a per cent on a quiet
//! machine, the second alone of every noisy row. Figures that are marked as noisy differ never significantly. A figure that A has and that
//! B lacks, or has only as INVALID, is worse in B, unless B has no row of that table: that part was not measured then.

use super::compare::{Measure, measure_of};
use super::{Figure, Finding, Node, Subject, Validity, words};

/// One of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The first, the reference.
    A,
    /// The second.
    B,
}

/// Something that is not the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// What: "triad, ordinary stores, node 0 from CPUs of node 0, 2 threads", "memory of node 1".
    pub what: String,
    /// The first machine's value, in words.
    pub a: String,
    /// The second's.
    pub b: String,
    /// `b / a - 1` for numbers.
    pub change: Option<f64>,
    /// Which of the two is slower, or has less; `None` where that cannot be said.
    pub worse: Option<Side>,
    /// More than noise, or than a detail.
    pub significant: bool,
    /// Why it is significant, or why it is not.
    pub why: String,
}

/// What differs between `a` and `b`: facts of the machines first, then rows of measurements. `tolerance` is the share by which medians
/// may differ (0.05: five per cent). Rows that only B has are told of, and are not significant; those that only A has are, where B has
/// others of that table.
pub fn diff(a: &Node, b: &Node, tolerance: f64) -> Vec<Difference> {
    let mut differences = facts(a, b);
    let (ours, theirs) = (rows(a), rows(b));
    // A quick probe leaves rows out on purpose, and one that ran out of time says so.
    let shorter = (b.quick && !a.quick) || b.missing.iter().any(|missing| missing.why.starts_with("out of time"));
    for row in &ours {
        match theirs.iter().find(|other| other.what == row.what) {
            Some(other) => differences.extend(compare_rows(row, other, tolerance)),
            None => differences.push(lacking(row, !shorter && theirs.iter().any(|other| other.table == row.table))),
        }
    }
    let new = theirs.iter().filter(|row| ours.iter().all(|other| other.what != row.what));
    differences.extend(new.map(only_b));
    differences
}

struct Row<'a> {
    /// The list of [`Node`] that it is of.
    table: &'static str,
    what: String,
    measure: Measure,
    figure: &'a Figure,
}

impl Row<'_> {
    fn shown(&self) -> String {
        if !self.figure.is_known() {
            return "not measured".to_owned();
        }
        let mark = match self.figure.validity {
            Validity::Valid => "",
            Validity::Noisy => " (NOISY)",
            Validity::Invalid => " (INVALID)",
        };
        format!("{}{mark}", self.measure.show(self.figure.median))
    }

    /// A number that nothing is wrong with.
    fn is_sound(&self) -> bool {
        self.figure.is_known() && self.figure.validity == Validity::Valid
    }
}

/// A row that only A has. B is worse for it when `measured`: that part was measured there, and this figure did not come out.
fn lacking(row: &Row<'_>, measured: bool) -> Difference {
    let significant = measured && row.is_sound();
    let worse = significant.then_some(Side::B);
    let why = if measured { "B has no such figure" } else { "not measured in B" }.to_owned();
    Difference { what: row.what.clone(), a: row.shown(), b: "-".to_owned(), change: None, worse, significant, why }
}

fn only_b(row: &Row<'_>) -> Difference {
    let why = "only B has it".to_owned();
    Difference { what: row.what.clone(), a: "-".to_owned(), b: row.shown(), change: None, worse: None, significant: false, why }
}

/// `None` when they are as good as equal.
fn compare_rows(a: &Row<'_>, b: &Row<'_>, tolerance: f64) -> Option<Difference> {
    let difference = |change, worse, significant, why: String| {
        Some(Difference { what: a.what.clone(), a: a.shown(), b: b.shown(), change, worse, significant, why })
    };
    match (a.figure.is_usable(), b.figure.is_usable()) {
        (false, false) => return None,
        (false, true) => return difference(None, None, false, format!("not usable in A: {}", a.figure.why)),
        (true, false) => {
            let significant = a.is_sound();
            let worse = significant.then_some(Side::B);
            return difference(None, worse, significant, format!("not usable in B: {}", b.figure.why));
        }
        (true, true) => {}
    }
    let change = b.figure.median / a.figure.median - 1.0;
    if change.abs() <= tolerance {
        return None;
    }
    let b_is_worse = (change < 0.0) == a.measure.more_is_better();
    let apart = a.figure.high < b.figure.low || b.figure.high < a.figure.low;
    let quiet = a.is_sound() && b.is_sound();
    let why = match (apart, quiet) {
        (true, true) => "the intervals do not overlap",
        (true, false) => "noisy: may be noise, though the intervals do not overlap",
        (false, _) => "the intervals overlap: may be noise",
    };
    difference(Some(change), Some(if b_is_worse { Side::B } else { Side::A }), apart && quiet, why.to_owned())
}

/// Every row with words that say all but its figure; rows that would be called the same get their sizes, then their place.
fn rows(node: &Node) -> Vec<Row<'_>> {
    let mut rows: Vec<(Row<'_>, String)> = Vec::new();
    let mut add =
        |table, what: String, detail: String, measure, figure| rows.push((Row { table, what, measure, figure }, detail));
    let name = |memory| node.memory_name(memory);
    for row in &node.bandwidth {
        let cpus = row.cpu_node.map_or("all CPUs".to_owned(), |id| format!("CPUs of node {id}"));
        let stores = row.known_stores().map_or("unknown stores", |stores| stores.name());
        let what = format!("{}, {stores}, {} from {cpus}, {} threads", row.operation.name(), name(row.memory), row.threads);
        add("bandwidth", what, words::size(row.array_bytes), Measure::Rate, &row.rate);
    }
    for row in &node.scaling {
        for point in &row.points {
            let what = format!(
                "{}, {}, {}, {} threads of the curve",
                row.operation.name(),
                row.stores.name(),
                name(row.memory),
                point.threads
            );
            add("scaling", what, String::new(), Measure::Rate, &point.rate);
        }
    }
    for row in &node.latency {
        let what =
            format!("latency of {} from node {}, {}, {}", name(row.memory), row.cpu_node, row.chase.name(), row.pages.name());
        add("latency", what, words::size(row.bytes), Measure::Time, &row.time);
    }
    for row in &node.loaded {
        for point in &row.points {
            let delay = point.delay.map_or("no load".to_owned(), |delay| format!("delay {delay}"));
            let under = format!("{} from node {} under {}, {delay}", name(row.memory), row.cpu_node, row.injection.name());
            add("loaded", format!("latency of {under}"), String::new(), Measure::Time, &point.time);
            add("loaded", format!("bandwidth of {under}"), String::new(), Measure::Rate, &point.rate);
        }
    }
    for row in &node.parallel_loads {
        for point in &row.points {
            let from = format!("{} from node {}, {}", name(row.memory), row.cpu_node, row.pages.name());
            let what = format!("load of {from}, {} cycles at once", point.cycles);
            add("parallel loads", what, words::size(row.bytes), Measure::Time, &point.time);
        }
    }
    for row in &node.compute {
        let what = format!("{} {} {}, {} threads", row.precision.name(), row.isa.name(), row.arithmetic.name(), row.threads);
        if let Some(clock) = &row.clock_hz {
            add("compute", format!("clock during {what}"), String::new(), Measure::Clock, clock);
        }
        add("compute", what, String::new(), Measure::Flops, &row.rate);
    }
    for row in &node.threading {
        add("threading", row.title(), String::new(), Measure::Time, &row.overhead);
    }
    for (index, tier) in node.far.iter().enumerate() {
        for point in &tier.points {
            let of = format!(
                "{} of {}, {} at once, far tier {}",
                point.access.name(),
                words::size(point.request_bytes),
                point.depth,
                index + 1
            );
            add("far", format!("rate of {of}"), tier.spec.clone(), Measure::Rate, &point.rate);
            add("far", format!("time of {of}"), tier.spec.clone(), Measure::Time, &point.time);
        }
    }
    for row in &node.energy {
        let what = format!("energy per {} of {} in {}", row.unit, row.load, row.domain);
        add("energy", what, String::new(), Measure::Energy, &row.joules);
    }
    for row in &node.mpi {
        add("mpi", row.title(), String::new(), measure_of(&row.unit), &row.value);
    }
    rows.retain(|(row, _)| row.figure.is_known() || !row.figure.is_valid());
    distinct(rows)
}

/// Rows with names that are all different.
fn distinct(rows: Vec<(Row<'_>, String)>) -> Vec<Row<'_>> {
    let names: Vec<String> = rows.iter().map(|(row, _)| row.what.clone()).collect();
    let mut used: Vec<String> = Vec::new();
    let mut result = Vec::new();
    for (mut row, detail) in rows {
        if !detail.is_empty() && names.iter().filter(|name| **name == row.what).count() > 1 {
            row.what = format!("{} ({detail})", row.what);
        }
        let before = used.iter().filter(|name| **name == row.what).count();
        used.push(row.what.clone());
        if before > 0 {
            row.what = format!("{} [{}]", row.what, before + 1);
        }
        result.push(row);
    }
    result
}

/// Memory may differ by this share without a module missing: kernels keep more or less of it for themselves.
const MEMORY_SLACK: f64 = 0.02;

fn facts(a: &Node, b: &Node) -> Vec<Difference> {
    let (ours, theirs) = (&a.topology, &b.topology);
    let mut differences = Vec::new();
    let ids: std::collections::BTreeSet<u32> = ours.nodes.iter().chain(&theirs.nodes).map(|node| node.id).collect();
    for id in ids {
        let bytes = |nodes: &[super::MemoryNode]| nodes.iter().find(|node| node.id == id).map_or(0, |node| node.bytes);
        let slack = MEMORY_SLACK;
        let difference = amount(&format!("memory of node {id}"), bytes(&ours.nodes), bytes(&theirs.nodes), slack, words::size);
        differences.extend(difference.map(|mut difference| {
            difference.why = "a memory module may be missing or switched off".to_owned();
            difference
        }));
    }
    let count = |what, a: Option<u32>, b: Option<u32>| {
        let (a, b) = (a?, b?);
        amount(what, a.into(), b.into(), 0.0, |value| value.to_string())
    };
    differences.extend(count("packages", ours.packages, theirs.packages));
    differences.extend(count("cores", ours.cores, theirs.cores));
    differences.extend(count("hardware threads of a core", ours.threads_per_core, theirs.threads_per_core));
    let cpus = |list: &super::CpuList| Some(list.len() as u32);
    differences.extend(count("CPUs online", cpus(&ours.online), cpus(&theirs.online)));
    differences.extend(count("CPUs that may be used", cpus(&ours.allowed), cpus(&theirs.allowed)));
    let llc = |topology: &super::Topology| topology.llc.bytes.unwrap_or(0);
    differences.extend(amount("last-level cache", llc(ours), llc(theirs), 0.0, words::size));
    let huge = |topology: &super::Topology| topology.huge_pages.transparent.clone().unwrap_or_else(|| "none".to_owned());
    let limit = |topology: &super::Topology| topology.cgroup.memory_bytes.map_or("none".to_owned(), words::size);
    let share = |topology: &super::Topology| topology.cgroup.cpus.map_or("none".to_owned(), |cpus| format!("{cpus:.2}"));
    let virtualisation = |topology: &super::Topology| topology.virtualisation.clone().unwrap_or_else(|| "none".to_owned());
    let facts: [(&str, String, String); 8] = [
        ("processor", ours.cpu_model.clone(), theirs.cpu_model.clone()),
        ("kernel", ours.kernel.clone(), theirs.kernel.clone()),
        ("transparent huge pages", huge(ours), huge(theirs)),
        ("memory limit of the cgroup", limit(ours), limit(theirs)),
        ("CPU limit of the cgroup", share(ours), share(theirs)),
        ("virtualisation", virtualisation(ours), virtualisation(theirs)),
        ("memory mode", finding(a, Subject::MemoryMode), finding(b, Subject::MemoryMode)),
        ("cluster mode", finding(a, Subject::ClusterMode), finding(b, Subject::ClusterMode)),
    ];
    let differ = facts.into_iter().filter(|(_, a, b)| a != b);
    differences.extend(differ.map(|(what, a, b)| {
        let why = "settings differ, which may explain differences in figures".to_owned();
        Difference { what: what.to_owned(), a, b, change: None, worse: None, significant: false, why }
    }));
    differences
}

fn finding(node: &Node, subject: Subject) -> String {
    let found = |finding: &&Finding| finding.subject == subject;
    node.findings.iter().find(found).map_or("unknown".to_owned(), |finding| finding.value.clone())
}

/// A difference of amounts, where less is worse; `None` within `slack`.
fn amount(what: &str, a: u64, b: u64, slack: f64, show: impl Fn(u64) -> String) -> Option<Difference> {
    if (b as f64 - a as f64).abs() <= slack * a.max(b) as f64 {
        return None;
    }
    let change = (a > 0).then(|| b as f64 / a as f64 - 1.0);
    let worse = Some(if b < a { Side::B } else { Side::A });
    let why = "one machine has less".to_owned();
    Some(Difference { what: what.to_owned(), a: show(a), b: show(b), change, worse, significant: true, why })
}

#[cfg(test)]
mod tests {
    use super::super::{Bandwidth, Latency, MemoryNode};
    use super::*;

    fn machine(gib: u64, rates: &[f64], ns: &[f64]) -> Node {
        let mut node = Node::default();
        node.topology.nodes = vec![MemoryNode { bytes: gib << 30, ..MemoryNode::default() }];
        node.bandwidth = vec![Bandwidth { rate: Figure::of(rates), ..Bandwidth::default() }];
        node.latency = vec![Latency { time: Figure::of(ns), ..Latency::default() }];
        node
    }

    #[test]
    fn slower_is_told_beyond_noise_and_tolerance() {
        let good = machine(64, &[100.0, 101.0, 102.0], &[80.0, 81.0]);
        assert!(diff(&good, &good, 0.05).is_empty());
        // 3 % less with intervals apart: within the tolerance.
        assert!(diff(&good, &machine(64, &[98.0, 98.1, 98.2], &[80.0]), 0.05).is_empty());
        let slow = diff(&good, &machine(64, &[70.0, 71.0, 72.0], &[120.0, 121.0]), 0.05);
        assert_eq!(slow.len(), 2);
        assert!(slow.iter().all(|row| row.significant && row.worse == Some(Side::B)), "{slow:#?}");
        // The other way round it is A that is slower.
        let fast = diff(&machine(64, &[70.0], &[120.0]), &good, 0.05);
        assert!(fast.iter().all(|row| row.worse == Some(Side::A)), "{fast:#?}");
        // Much less in the middle, but the intervals overlap.
        let noisy = diff(&good, &machine(64, &[60.0, 70.0, 103.0], &[80.0, 81.0]), 0.05);
        assert_eq!(noisy.len(), 1);
        assert!(!noisy[0].significant && noisy[0].why.contains("overlap"));
    }

    #[test]
    fn facts_of_the_machine() {
        let good = machine(64, &[100.0], &[80.0]);
        let missing = diff(&good, &machine(48, &[100.0], &[80.0]), 0.05);
        assert_eq!((missing.len(), missing[0].what.as_str()), (1, "memory of node 0"));
        assert!(missing[0].significant && missing[0].worse == Some(Side::B));
        let mut other = good.clone();
        other.topology.nodes[0].bytes -= 100 << 20;
        assert!(diff(&good, &other, 0.05).is_empty(), "kernels keep a little for themselves");
        other.topology.kernel = "6.1".to_owned();
        other.topology.online = "0-3".parse().unwrap();
        let differences = diff(&other, &good, 0.05);
        let whats: Vec<&str> = differences.iter().map(|row| row.what.as_str()).collect();
        assert_eq!(whats, ["CPUs online", "kernel"]);
        assert!(!differences[1].significant);
    }

    #[test]
    fn figures_that_b_lacks_are_worse_unless_their_part_was_not_measured() {
        let good = machine(64, &[100.0], &[80.0]);
        let verdicts = |a: &Node, b: &Node| diff(a, b, 0.05).iter().map(|row| (row.significant, row.worse)).collect::<Vec<_>>();
        let (worse, told) = ((true, Some(Side::B)), (false, None));
        let mut other = good.clone();
        other.bandwidth[0].rate = Figure::invalid("arrays too small");
        other.latency.clear();
        let differences = diff(&good, &other, 0.05);
        assert!(differences[0].why.contains("too small") && differences[1].why.contains("not measured"), "{differences:#?}");
        assert_eq!(verdicts(&good, &other), [worse, told]);
        assert_eq!(verdicts(&other, &good), [told, told], "B has more");
        // Latencies were measured, but not this one.
        other = good.clone();
        other.latency[0].cpu_node = 1;
        assert_eq!(verdicts(&good, &other), [worse, told]);
        // What is noisy in A is no figure to miss.
        let noisy = machine(64, &[60.0, 70.0, 103.0], &[80.0]);
        other = good.clone();
        other.bandwidth[0].rate = Figure::invalid("arrays too small");
        assert_eq!(verdicts(&noisy, &other), [told]);
    }

    #[test]
    fn noisy_figures_are_shown_and_are_not_significant() {
        let differences = diff(&machine(64, &[100.0], &[80.0]), &machine(64, &[20.0, 30.0, 50.0], &[80.0]), 0.05);
        assert_eq!(differences.len(), 1);
        assert!(!differences[0].significant && differences[0].b.contains("NOISY"), "{differences:#?}");
        assert!(differences[0].why.starts_with("noisy"));
    }

    #[test]
    fn rows_that_are_called_the_same_are_told_apart() {
        let mut node = machine(64, &[100.0], &[80.0]);
        node.latency =
            [1u64, 2, 2].map(|bytes| Latency { bytes: bytes << 20, time: Figure::of(&[5.0]), ..Latency::default() }).into();
        let names: Vec<String> = rows(&node).into_iter().skip(1).map(|row| row.what).collect();
        let called = "latency of node 0 from node 0, page-local, small pages";
        let wanted = [" (1 MiB)", " (2 MiB)", " (2 MiB) [2]"].map(|end| format!("{called}{end}"));
        assert_eq!(names, wanted);
    }
}
