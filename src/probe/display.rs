//! The tables that `nearfar probe` prints: what node.json holds, for people. Every figure is a median; what is noisy or invalid says so.

use crate::ui::table::for_output;
use nearfar_core::node::{
    Bandwidth, Cache, CacheKind, Certainty, Compute, Energy, FarTier, Figure, Injection, Latency, LoadPoint, Memory, MemoryNode,
    Mpi, Node, Operation, ParallelLoads, Scaling, ScalingPoint, Stores, Subject, Threading, Validity,
};
use nearfar_core::units::Bytes;
use std::fmt::Write as _;

/// All of it.
pub fn render(node: &Node) -> String {
    let tables = [memories, bandwidth, scaling, latency, loaded, parallel, compute, threading, energy, mpi];
    let mut text = head(node);
    text.extend(tables.map(|table| table(node)));
    text.extend(node.far.iter().map(far));
    if !node.missing.is_empty() {
        text.push_str("\nNot measured\n");
        for missing in &node.missing {
            let _ = writeln!(text, "  {}: {}", missing.what, missing.why);
        }
    }
    if node.noise.noisy {
        let _ = writeln!(
            text,
            "\nNOISY: {}. Figures marked ~ are not to be trusted; measure again on a quiet machine.",
            node.noise.why
        );
    }
    for (what, why) in invalid(node) {
        let _ = writeln!(text, "INVALID: {what}: {why}");
    }
    text
}

/// Every figure that must not be used, and why.
pub fn invalid(node: &Node) -> Vec<(String, &str)> {
    let bad = rows(node).into_iter().filter(|(_, figure)| figure.validity == Validity::Invalid);
    bad.map(|(name, figure)| (name, figure.why.as_str())).collect()
}

/// Every figure with a name for people.
fn rows(node: &Node) -> Vec<(String, &Figure)> {
    let mut rows: Vec<(String, &Figure)> = Vec::new();
    for row in &node.bandwidth {
        rows.push((format!("bandwidth of {}, {}", memory(row.memory), stored(row.operation, row.stores)), &row.rate));
    }
    for row in &node.scaling {
        let name = |threads: u32| format!("bandwidth of {} by {threads} threads", memory(row.memory));
        rows.extend(row.points.iter().map(|point| (name(point.threads), &point.rate)));
    }
    for row in &node.latency {
        rows.push((format!("latency of {} from node {}", memory(row.memory), row.cpu_node), &row.time));
    }
    for row in &node.loaded {
        for point in &row.points {
            let load = point.delay.map_or("idle".to_owned(), |delay| format!("delay {delay}"));
            let name = format!("latency of {} under load, {load}", memory(row.memory));
            rows.extend([(name.clone(), &point.time), (name, &point.rate)]);
        }
    }
    for row in &node.parallel_loads {
        let name = |cycles: u32| format!("load of {}, {cycles} cycles at once", memory(row.memory));
        rows.extend(row.points.iter().map(|point| (name(point.cycles), &point.time)));
    }
    rows.extend(node.compute.iter().map(|row| (format!("{:?} {:?} {:?}", row.precision, row.isa, row.arithmetic), &row.rate)));
    rows.extend(node.threading.iter().map(|row| (format!("{} of {} threads", row.construct, row.threads), &row.overhead)));
    for tier in &node.far {
        let name = |point: &nearfar_core::node::FarPoint| {
            format!("{}: {} of {} at depth {}", tier.spec, point.access.name(), Bytes(point.request_bytes).exact(), point.depth)
        };
        rows.extend(tier.points.iter().flat_map(|point| [(name(point), &point.rate), (name(point), &point.time)]));
    }
    rows.extend(node.energy.iter().map(|row| (format!("energy of {}, {}", row.load, row.domain), &row.joules)));
    rows.extend(node.mpi.iter().map(|row| (format!("MPI {} of {} bytes", row.what, row.bytes), &row.value)));
    rows
}

/// A table below its title, with a note below it; nothing when it has no rows.
fn section(title: &str, head: &[impl AsRef<str>], rows: impl IntoIterator<Item = Vec<String>>, note: &str) -> String {
    let mut table = for_output(110);
    table.set_header(head.iter().map(AsRef::as_ref)).add_rows(rows);
    if table.is_empty() {
        return String::new();
    }
    let note = if note.is_empty() { String::new() } else { format!("{note}\n") };
    format!("\n{title}\n{table}\n{note}")
}

fn head(node: &Node) -> String {
    let topology = &node.topology;
    let mut text = format!("{}: {}", node.name, topology.cpu_model);
    let count = |number: Option<u32>, what: &str| {
        number.map_or(String::new(), |number| format!(", {number} {what}{}", if number == 1 { "" } else { "s" }))
    };
    let cpus = count(Some(topology.online.len() as u32), "CPU");
    let _ = write!(text, "{}{}{cpus}", count(topology.packages, "socket"), count(topology.cores, "core"));
    if topology.allowed.len() < topology.online.len() {
        let _ = write!(text, " ({} of them ours: {})", topology.allowed.len(), topology.allowed);
    }
    let _ = writeln!(text, ", Linux {}", topology.kernel);
    let caches: Vec<String> = topology.caches.iter().filter(|cache| cache.kind != CacheKind::Instruction).map(cache).collect();
    if !caches.is_empty() {
        let _ = writeln!(text, "Caches: {}", caches.join(", "));
    }
    if topology.llc.sources.len() > 1 {
        let said: Vec<String> =
            topology.llc.sources.iter().map(|source| format!("{} says {}", source.source, Bytes(source.bytes).exact())).collect();
        let _ = writeln!(text, "Last-level cache: {}", said.join(", "));
    }
    let huge = &topology.huge_pages;
    let _ = writeln!(
        text,
        "Huge pages: transparent {}{}",
        huge.transparent.as_deref().unwrap_or("none"),
        huge.huge_page.map_or(String::new(), |bytes| format!(" of {}", Bytes(bytes).exact()))
    );
    for finding in &node.findings {
        let _ = writeln!(text, "{}: {} ({})", subject(finding.subject), finding.value, certainty(finding.certainty));
        for evidence in &finding.evidence {
            let _ = writeln!(text, "    {evidence}");
        }
    }
    text
}

fn cache(cache: &Cache) -> String {
    let kind = if cache.kind == CacheKind::Data { "d" } else { "" };
    let instances = if cache.instances > 1 { format!("{} x ", cache.instances) } else { String::new() };
    format!("L{}{kind} {instances}{}", cache.level, Bytes(cache.bytes).exact())
}

/// The words for what a finding is about.
pub const fn subject(subject: Subject) -> &'static str {
    match subject {
        Subject::MemoryMode => "Memory mode",
        Subject::ClusterMode => "Cluster mode",
        Subject::Product => "Product",
        Subject::Tiers => "Tiers",
        Subject::Caution => "Caution",
    }
}

/// The word for how sure a finding is.
pub const fn certainty(certainty: Certainty) -> &'static str {
    match certainty {
        Certainty::Unknown => "unknown",
        Certainty::Inferred => "inferred",
        Certainty::Detected => "detected",
    }
}

/// `figure` in units of `scale`, with the interval as a percentage and a mark when it is not to be trusted.
fn show(figure: &Figure, scale: f64) -> String {
    if figure.validity == Validity::Invalid {
        return "INVALID".into();
    }
    let value = number(figure.median / scale);
    let mark = if figure.validity == Validity::Noisy { "~" } else { "" };
    if figure.median <= 0.0 {
        return format!("{mark}0");
    }
    let spread = (figure.high - figure.median).max(figure.median - figure.low) / figure.median * 100.0;
    if figure.runs > 1 { format!("{mark}{value} ±{spread:.0}%") } else { format!("{mark}{value}") }
}

/// Three significant digits.
fn number(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

fn memory(memory: Memory) -> String {
    match memory {
        Memory::Node(id) => format!("node {id}"),
        Memory::Cache(level) => format!("L{level}"),
    }
}

fn memories(node: &Node) -> String {
    let topology = &node.topology;
    let mut head = vec!["node", "kind", "size", "CPUs", "claimed (HMAT)"];
    let distances = topology.nodes.len() > 1 && !topology.distances.is_empty();
    if distances {
        head.push("distances");
    }
    let row = |(index, node): (usize, &MemoryNode)| {
        let claim = node.claim.map_or("nothing".to_owned(), |claim| {
            let rate = claim.read_bytes_per_s.map(|rate| format!("{} GB/s", number(rate / 1e9)));
            let time = claim.read_ns.map(|ns| format!("{} ns", number(ns)));
            [rate, time].into_iter().flatten().collect::<Vec<_>>().join(", ")
        });
        let mut kind = match node.kind.name() {
            "" => "unknown".to_owned(),
            kind => format!("{kind} ({})", certainty(node.certainty)),
        };
        for side in &node.side_caches {
            let _ = write!(kind, ", behind a cache of {}", Bytes(side.bytes));
        }
        let cpus = if node.cpus.is_empty() { "none".to_owned() } else { node.cpus.to_string() };
        let mut row = vec![node.id.to_string(), kind, Bytes(node.bytes).to_string(), cpus, claim];
        if distances {
            let of = topology.distances.get(index).map_or(&[][..], Vec::as_slice);
            row.push(of.iter().map(u32::to_string).collect::<Vec<_>>().join(" "));
        }
        row
    };
    section("Memory", &head, topology.nodes.iter().enumerate().map(row), "")
}

fn bandwidth(node: &Node) -> String {
    let key = |row: &Bandwidth| (row.cpu_node, row.memory, row.threads, row.operation);
    let mut seen = Vec::new();
    let mut rows = Vec::new();
    for row in &node.bandwidth {
        if seen.contains(&key(row)) {
            continue;
        }
        seen.push(key(row));
        let find = |stores: Stores| node.bandwidth.iter().find(|other| key(other) == key(row) && other.stores == stores);
        let plain = find(Stores::Ordinary).or_else(|| find(Stores::None));
        let cell = |row: Option<&Bandwidth>| row.map_or(String::new(), |row| show(&row.rate, 1e9));
        let moved = plain.filter(|row| row.rate.is_valid() && row.moved_bytes != row.counted_bytes);
        let moved = moved.map_or(String::new(), |row| {
            number(row.rate.median / 1e9 * f64::from(row.moved_bytes) / f64::from(row.counted_bytes.max(1)))
        });
        rows.push(vec![
            row.cpu_node.map_or("all nodes".to_owned(), |id| format!("node {id}")),
            memory(row.memory),
            row.threads.to_string(),
            row.operation.name().to_owned(),
            cell(plain),
            moved,
            cell(find(Stores::NonTemporal)),
            Bytes(row.array_bytes).to_string(),
        ]);
    }
    let head = ["CPUs of", "memory", "threads", "operation", "ordinary", "moved", "non-temporal", "arrays"];
    let note = "Bytes that the program asks for, as STREAM counts them; \"moved\" adds the reads of write-allocate. ± is the 95 %\n\
                interval of the median. Based on variants of the STREAM kernels; not STREAM results.";
    section("Bandwidth, GB/s", &head, rows, note)
}

fn scaling(node: &Node) -> String {
    let row = |row: &Scaling| {
        let point = |point: &ScalingPoint| format!("{}: {}", point.threads, show(&point.rate, 1e9));
        let points: Vec<String> = row.points.iter().map(point).collect();
        vec![memory(row.memory), stored(row.operation, row.stores), points.join("   ")]
    };
    let head = ["memory", "operation", "threads: GB/s"];
    section("Bandwidth by threads", &head, node.scaling.iter().map(row), "")
}

fn stored(operation: Operation, stores: Stores) -> String {
    match stores {
        Stores::NonTemporal => format!("{} (non-temporal)", operation.name()),
        _ => operation.name().to_owned(),
    }
}

fn latency(node: &Node) -> String {
    let row = |row: &Latency| {
        vec![
            format!("node {}", row.cpu_node),
            memory(row.memory),
            row.chase.name().to_owned(),
            row.pages.name().to_owned(),
            Bytes(row.bytes).to_string(),
            show(&row.time, 1.0),
        ]
    };
    let head = ["CPU of", "memory", "order", "pages", "data", "ns"];
    let note = "One dependent load at a time; page-local: random within 64 pages, then within the next 64. Random over small pages\n\
                includes address translation; the difference to huge pages is its cost.";
    section("Latency", &head, node.latency.iter().map(row), note)
}

fn loaded(node: &Node) -> String {
    let Some(first) = node.loaded.first() else { return String::new() };
    let mut head = vec!["pause".to_owned()];
    for curve in &node.loaded {
        let load = if curve.injection == Injection::Reads { "reads" } else { "2 reads : 1 write" };
        head.extend([format!("{}, {load}: GB/s", memory(curve.memory)), "ns".into()]);
    }
    let row = |point: &LoadPoint| {
        let mut row = vec![point.delay.map_or("idle".to_owned(), |delay| delay.to_string())];
        for curve in &node.loaded {
            let same = curve.points.iter().find(|other| other.delay == point.delay);
            let rate = same.filter(|point| point.delay.is_some()).map_or(String::new(), |point| show(&point.rate, 1e9));
            row.extend([rate, same.map_or(String::new(), |point| show(&point.time, 1.0))]);
        }
        row
    };
    let note = format!(
        "One CPU chases within 64 pages while other CPUs ({}) load the memory, with a pause of so many loop rounds between two lines.",
        first.injectors
    );
    section("Latency under load", &head, first.points.iter().map(row), &note)
}

fn parallel(node: &Node) -> String {
    let row = |row: &ParallelLoads| {
        let points = row.points.iter().map(|point| format!("{}: {}", point.cycles, show(&point.time, 1.0)));
        vec![
            format!("node {}", row.cpu_node),
            memory(row.memory),
            row.pages.name().to_owned(),
            points.collect::<Vec<_>>().join("   "),
            row.most().map_or("-".to_owned(), number),
        ]
    };
    let head = ["CPU of", "memory", "pages", "cycles at once: ns per load", "loads under way"];
    let note = "One thread follows so many cycles of dependent loads, at random places. Loads under way: how often the shortest goes into that\n\
                of one cycle; 32 at the most.";
    section("Parallel loads", &head, node.parallel_loads.iter().map(row), note)
}

fn compute(node: &Node) -> String {
    let row = |row: &Compute| {
        vec![
            row.precision.name().to_owned(),
            row.isa.name().to_owned(),
            row.arithmetic.name().to_owned(),
            row.threads.to_string(),
            show(&row.rate, 1e9),
            row.clock_hz.as_ref().map_or(String::new(), |clock| number(clock.median / 1e9)),
            row.per_clock.map_or(String::new(), number),
        ]
    };
    let head = ["precision", "instructions", "arithmetic", "threads", "GFLOP/s", "clock GHz", "FLOP per clock and core"];
    let note =
        "FMA: fused multiply-add. Clock: a chain of dependent integer additions, timed beside the arithmetic on the same core.";
    section("Compute", &head, node.compute.iter().map(row), note)
}

fn threading(node: &Node) -> String {
    let row =
        |row: &Threading| vec![row.runtime.name(), row.construct.clone(), row.threads.to_string(), show(&row.overhead, 1e3)];
    let note = "Overhead of one construct: time with it less time without (method of the EPCC OpenMP microbenchmarks).";
    section("Threading", &["runtime", "construct", "threads", "us"], node.threading.iter().map(row), note)
}

fn energy(node: &Node) -> String {
    let row = |row: &Energy| {
        let joules = if row.unit == "second" { String::new() } else { format!("{} pJ/{}", show(&row.joules, 1e-12), row.unit) };
        vec![row.load.clone(), row.domain.clone(), number(row.watts), joules]
    };
    section("Energy", &["load", "domain", "watts", "energy above idle"], node.energy.iter().map(row), "")
}

fn mpi(node: &Node) -> String {
    let row = |row: &Mpi| {
        let value = match row.unit.as_str() {
            "ns" => format!("{} us", show(&row.value, 1e3)),
            "bytes/s" => format!("{} GB/s", show(&row.value, 1e9)),
            _ => format!("{} M/s", show(&row.value, 1e6)),
        };
        vec![row.what.clone(), row.bytes.to_string(), row.ranks.to_string(), value]
    };
    let library = node.mpi.first().map_or("", |row| &row.library);
    let title = format!("MPI on this node ({library})");
    section(&title, &["what", "bytes", "ranks", "value"], node.mpi.iter().map(row), "")
}

fn far(tier: &FarTier) -> String {
    let mut depths: Vec<u32> = tier.points.iter().map(|point| point.depth).collect();
    depths.sort_unstable();
    depths.dedup();
    let mut head = vec!["access".to_owned(), "request".into()];
    head.extend(depths.iter().flat_map(|depth| [format!("depth {depth}: GB/s"), "us".into()]));
    let mut rows = Vec::new();
    let mut seen = Vec::new();
    for point in &tier.points {
        let key = (point.access, point.request_bytes);
        if seen.contains(&key) {
            continue;
        }
        seen.push(key);
        let mut row = vec![point.access.name().to_owned(), Bytes(point.request_bytes).exact().to_string()];
        for &depth in &depths {
            let same = tier.points.iter().find(|other| (other.access, other.request_bytes) == key && other.depth == depth);
            row.push(same.map_or(String::new(), |point| show(&point.rate, 1e9)));
            row.push(same.map_or(String::new(), |point| number(point.time.median / 1e3)));
        }
        rows.push(row);
    }
    let note = "us: from submission to completion of a request, the mean. Depth: requests under way at a time.";
    section(&format!("Far tier {} ({})", tier.spec, tier.about), &head, rows, note)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_without_anything_prints() {
        let text = render(&Node::default());
        assert!(text.contains("0 CPUs"), "{text}");
    }

    #[test]
    fn invalid_and_noisy_figures_are_marked() {
        let mut node = Node::default();
        let row = Bandwidth { operation: Operation::Triad, counted_bytes: 24, moved_bytes: 32, ..Bandwidth::default() };
        node.bandwidth.push(Bandwidth { rate: Figure::of(&[12e9, 12e9, 12.1e9]), ..row.clone() });
        node.bandwidth.push(Bandwidth { stores: Stores::NonTemporal, rate: Figure::invalid("half of it"), ..row });
        node.missing.push(nearfar_core::node::Missing { what: "energy".into(), why: "no RAPL".into() });
        let text = render(&node);
        for part in
            ["12.0 ±1%", "16.0", "INVALID", "INVALID: bandwidth of node 0, triad (non-temporal): half of it", "energy: no RAPL"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        let noisy = Figure::of(&[1.0, 2.0, 3.0]);
        assert!(show(&noisy, 1.0).starts_with('~'), "{noisy:?}");
        assert_eq!([number(123.4), number(12.34), number(1.234), number(0.1234)], ["123", "12.3", "1.23", "0.123"]);
    }
}
