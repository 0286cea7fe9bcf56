//! One machine beside another, row by row: "triad from near memory: 78 % of Xeon Max 9480 (560 GB/s, site, date)".
//!
//! Rows are matched by meaning, not by node number: the part that the memory plays (near, far, a level of cache), the operation and the
//! kind of store. Where several rows mean the same, the best valid one of each machine is taken.

use super::{Arithmetic, Bandwidth, FarAccess, Figure, Latency, Memory, MemoryKind, Node, Operation, Role, Stores, words};

/// What a number measures, which decides its unit and whether more is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Bytes per second.
    Rate,
    /// Floating-point operations per second.
    Flops,
    /// Nanoseconds.
    Time,
    /// Messages per second.
    Messages,
    /// Joules.
    Energy,
    /// Hertz.
    Clock,
}

impl Measure {
    /// True when more is better.
    pub const fn more_is_better(self) -> bool {
        !matches!(self, Self::Time | Self::Energy)
    }

    /// `value` with its unit.
    pub fn show(self, value: f64) -> String {
        match self {
            Self::Rate => words::rate(value),
            Self::Flops => words::flops(value),
            Self::Time => words::time(value),
            Self::Messages => format!("{} messages/s", words::digits(value)),
            Self::Energy => words::joules(value),
            Self::Clock => words::hertz(value),
        }
    }
}

/// One figure of this machine beside the figure of another that means the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Ratio {
    /// What was measured: "triad from near memory (DRAM here, HBM there)".
    pub what: String,
    /// Unit and direction.
    pub measure: Measure,
    /// Our figure.
    pub ours: f64,
    /// Theirs.
    pub theirs: f64,
    /// `ours / theirs`.
    pub ratio: f64,
    /// Who measured theirs, where and when; empty when the other machine was measured by nearfar.
    pub source: String,
    /// What a reader must know before drawing conclusions: noise, store kinds that were not published, ...
    pub notes: Vec<String>,
}

impl Ratio {
    fn of(what: String, measure: Measure, ours: &Figure, theirs: &Figure) -> Self {
        let mut notes = Vec::new();
        if ours.validity == super::Validity::Noisy {
            notes.push(format!("ours is noisy: {}", ours.why));
        }
        if theirs.validity == super::Validity::Noisy {
            notes.push(format!("theirs is noisy: {}", theirs.why));
        }
        let source = theirs.source.clone().unwrap_or_default();
        Self { what, measure, ours: ours.median, theirs: theirs.median, ratio: ours.median / theirs.median, source, notes }
    }

    fn noted(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// One line: "triad from near memory: 78 % of NAME (560 GB/s; SOURCE)". Times are told as factors.
    pub fn line(&self, name: &str) -> String {
        let source = if self.source.is_empty() { String::new() } else { format!("; {}", self.source) };
        let theirs = self.measure.show(self.theirs);
        if self.measure.more_is_better() {
            format!("{}: {} of {name} ({theirs}{source})", self.what, words::percent(self.ratio))
        } else {
            format!("{}: {} times that of {name} ({theirs}{source})", self.what, words::digits(self.ratio))
        }
    }
}

/// Memories of both machines that play the same part, or are of the same kind, and what they are called.
struct Pair {
    name: String,
    ours: Vec<Memory>,
    theirs: Vec<Memory>,
}

fn pairs(this: &Node, other: &Node) -> Vec<Pair> {
    let of_role = |node: &Node, role| -> Vec<Memory> {
        node.measured_memories().into_iter().filter(|&memory| node.role(memory) == Some(role)).collect()
    };
    let of_kind = |node: &Node, kind| -> Vec<Memory> {
        node.measured_memories().into_iter().filter(|&memory| node.kind(memory) == kind).collect()
    };
    let mut roles: Vec<Role> = other.measured_memories().into_iter().filter_map(|memory| other.role(memory)).collect();
    roles.sort_unstable();
    roles.dedup();
    let mut pairs = Vec::new();
    for &role in &roles {
        let (ours, theirs) = (of_role(this, role), of_role(other, role));
        let kind = |node: &Node, memories: &[Memory]| memories.first().map_or("", |&memory| node.kind(memory).name());
        let name = match (kind(this, &ours), kind(other, &theirs)) {
            (here, there) if here == there && !here.is_empty() => format!("{} ({here})", role.name()),
            (here, there) if !here.is_empty() && !there.is_empty() => format!("{} ({here} here, {there} there)", role.name()),
            _ => role.name(),
        };
        pairs.push(Pair { name, ours, theirs });
    }
    // DRAM is near on one machine and far on another: what is the same stuff is worth a line too.
    for kind in [MemoryKind::Hbm, MemoryKind::Dram, MemoryKind::Gpu, MemoryKind::Cxl, MemoryKind::Pmem] {
        let (ours, theirs) = (of_kind(this, kind), of_kind(other, kind));
        let part = |node: &Node, memories: &[Memory]| memories.first().and_then(|&memory| node.role(memory));
        if let (Some(here), Some(there)) = (part(this, &ours), part(other, &theirs))
            && here != there
        {
            let name = format!("{} ({} here, {} there)", kind.name(), here.name(), there.name());
            pairs.push(Pair { name, ours, theirs });
        }
    }
    pairs.retain(|pair| !pair.ours.is_empty());
    pairs
}

/// Every figure of `this` that has a counterpart in `other`, as a ratio: memories from the innermost, then compute, threads, far tiers
/// and messages. Theoretical peaks of `other` are compared too and named so. Invalid figures take no part.
pub fn compare(this: &Node, other: &Node) -> Vec<Ratio> {
    let mut ratios = Vec::new();
    for pair in pairs(this, other) {
        bandwidth(this, other, &pair, &mut ratios);
        latency(this, other, &pair, &mut ratios);
    }
    compute(this, other, &mut ratios);
    threading(this, other, &mut ratios);
    far(this, other, &mut ratios);
    mpi(this, other, &mut ratios);
    ratios
}

fn highest<'a>(figures: impl Iterator<Item = &'a Figure>) -> Option<&'a Figure> {
    figures.filter(|figure| figure.is_usable()).max_by(|a, b| a.median.total_cmp(&b.median))
}

fn lowest<'a>(figures: impl Iterator<Item = &'a Figure>) -> Option<&'a Figure> {
    figures.filter(|figure| figure.is_usable()).min_by(|a, b| a.median.total_cmp(&b.median))
}

fn bandwidth(this: &Node, other: &Node, pair: &Pair, ratios: &mut Vec<Ratio>) {
    let ours = || this.bandwidth.iter().filter(|row| pair.ours.contains(&row.memory) && row.rate.is_usable());
    let theirs = || other.bandwidth.iter().filter(|row| pair.theirs.contains(&row.memory) && row.rate.is_usable());
    let split = this.topology.nodes.len() > 1 && pair.ours.len() > 1;
    for operation in Operation::ALL {
        for stores in [Some(Stores::None), Some(Stores::Ordinary), Some(Stores::NonTemporal), None] {
            let same = |row: &&Bandwidth| row.operation == operation && !row.rate.is_theoretical();
            let published = theirs().filter(same).filter(|row| row.known_stores() == stores);
            let Some(there) = highest(published.map(|row| &row.rate)) else { continue };
            // Where one of them does not say how it stored, the best of the other is the fair one.
            let fits = |row: &&Bandwidth| stores.is_none() || row.known_stores().is_none_or(|ours| Some(ours) == stores);
            let candidates = ours().filter(same).filter(fits);
            let best = candidates.max_by(|a, b| a.rate.median.total_cmp(&b.rate.median));
            let Some(here) = best else { continue };
            let how = match stores {
                Some(Stores::None) | None => String::new(),
                Some(stores) => format!(", {}", stores.name()),
            };
            let what = format!("{}{how} from {}", operation.name(), pair.name);
            let mut ratio = Ratio::of(what, Measure::Rate, &here.rate, there);
            if stores.is_none() {
                ratio = ratio.noted("their kind of stores was not published; ours is the best");
            } else if here.known_stores().is_none() {
                ratio = ratio.noted("our kind of stores was not published");
            }
            if split && here.cpu_node.is_some() {
                ratio = ratio.noted(format!("ours is one of {} such memories", pair.ours.len()));
            }
            ratios.push(ratio);
        }
    }
    let peak = highest(theirs().map(|row| &row.rate).filter(|rate| rate.is_theoretical()));
    let best = highest(ours().map(|row| &row.rate).filter(|rate| !rate.is_theoretical()));
    if let (Some(peak), Some(best)) = (peak, best) {
        ratios.push(Ratio::of(format!("best bandwidth of {}, of their theoretical peak", pair.name), Measure::Rate, best, peak));
    }
}

fn latency(this: &Node, other: &Node, pair: &Pair, ratios: &mut Vec<Ratio>) {
    let ours = || pair.ours.iter().flat_map(|&memory| this.settled_latencies(memory));
    let theirs = || pair.theirs.iter().flat_map(|&memory| other.settled_latencies(memory));
    let mut methods: Vec<_> = theirs().map(Latency::method).collect();
    methods.dedup();
    let mut seen = Vec::new();
    for method in methods {
        if seen.contains(&method) {
            continue;
        }
        seen.push(method);
        let Some(there) = lowest(theirs().filter(|row| row.method() == method).map(|row| &row.time)) else { continue };
        let same = |row: &&Latency| method.is_none() || row.method().is_none_or(|ours| Some(ours) == method);
        let Some(here) = lowest(ours().filter(same).map(|row| &row.time)) else { continue };
        let how = method.map_or(String::new(), |(chase, pages)| format!(", {}, {}", chase.name(), pages.name()));
        let ratio = Ratio::of(format!("latency of {}{how}", pair.name), Measure::Time, here, there);
        ratios.push(if method.is_none() {
            ratio.noted("their pages and order of visits were not published; ours is the lowest")
        } else {
            ratio
        });
    }
}

fn compute(this: &Node, other: &Node, ratios: &mut Vec<Ratio>) {
    for precision in [super::Precision::F64, super::Precision::F32] {
        let best = |node: &Node, arithmetic, theoretical| {
            let rows = node.compute.iter().filter(|row| row.precision == precision && row.arithmetic == arithmetic);
            highest(rows.map(|row| &row.rate).filter(|rate| rate.is_theoretical() == theoretical)).cloned()
        };
        for arithmetic in [Arithmetic::Add, Arithmetic::MultiplyAdd, Arithmetic::Fma, Arithmetic::Gemm] {
            let Some(here) = best(this, arithmetic, false) else { continue };
            let what = format!("{} {}", precision.name(), arithmetic.name());
            if let Some(there) = best(other, arithmetic, false) {
                ratios.push(Ratio::of(what.clone(), Measure::Flops, &here, &there));
            }
            if let Some(there) = best(other, arithmetic, true) {
                ratios.push(Ratio::of(format!("{what}, of their theoretical peak"), Measure::Flops, &here, &there));
            }
        }
    }
}

fn threading(this: &Node, other: &Node, ratios: &mut Vec<Ratio>) {
    for there in other.threading.iter().filter(|row| row.overhead.is_usable()) {
        let mut rows = this.threading.iter().filter(|row| row.overhead.is_usable());
        if let Some(here) = rows.find(|row| row.title() == there.title()) {
            ratios.push(Ratio::of(here.title(), Measure::Time, &here.overhead, &there.overhead));
        }
    }
}

fn far(this: &Node, other: &Node, ratios: &mut Vec<Ratio>) {
    let points = |node: &Node, access| -> Vec<super::FarPoint> {
        node.far.iter().flat_map(|tier| &tier.points).filter(|point| point.access == access).cloned().collect()
    };
    for access in [FarAccess::SequentialRead, FarAccess::SequentialWrite, FarAccess::RandomRead, FarAccess::RandomWrite] {
        let (ours, theirs) = (points(this, access), points(other, access));
        let best = |points: &[super::FarPoint]| highest(points.iter().map(|point| &point.rate)).cloned();
        if let (Some(here), Some(there)) = (best(&ours), best(&theirs)) {
            ratios.push(Ratio::of(format!("best {} of a far tier", access.name()), Measure::Rate, &here, &there));
        }
        // One request at a time shows the device itself; with more, queues are part of the time.
        let single =
            |points: &[super::FarPoint]| lowest(points.iter().filter(|point| point.depth <= 1).map(|p| &p.time)).cloned();
        if let (Some(here), Some(there)) = (single(&ours), single(&theirs)) {
            ratios.push(Ratio::of(format!("time of one {} of a far tier", access.name()), Measure::Time, &here, &there));
        }
    }
}

fn mpi(this: &Node, other: &Node, ratios: &mut Vec<Ratio>) {
    for there in other.mpi.iter().filter(|row| row.value.is_usable()) {
        let mut rows = this.mpi.iter().filter(|row| row.value.is_usable());
        let same = |row: &&super::Mpi| {
            (&row.what, row.bytes, row.ranks, &row.unit) == (&there.what, there.bytes, there.ranks, &there.unit)
        };
        if let Some(here) = rows.find(same) {
            ratios.push(Ratio::of(here.title(), measure_of(&here.unit), &here.value, &there.value));
        }
    }
}

/// The measure behind the unit of an MPI figure.
pub(super) fn measure_of(unit: &str) -> Measure {
    match unit {
        "ns" => Measure::Time,
        "messages/s" => Measure::Messages,
        _ => Measure::Rate,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Compute, MemoryNode};
    use super::*;

    fn row(memory: u32, operation: Operation, stores: Stores, rate: f64) -> Bandwidth {
        let moved_bytes = 32;
        let rate = Figure::of(&[rate]);
        Bandwidth { memory: Memory::Node(memory), operation, stores, moved_bytes, rate, ..Bandwidth::default() }
    }

    fn machine(kinds: &[MemoryKind]) -> Node {
        let mut machine = Node::default();
        machine.topology.nodes = (0..).zip(kinds).map(|(id, &kind)| MemoryNode { id, kind, ..MemoryNode::default() }).collect();
        machine
    }

    fn find<'a>(ratios: &'a [Ratio], what: &str) -> &'a Ratio {
        ratios.iter().find(|ratio| ratio.what == what).unwrap_or_else(|| panic!("no \"{what}\" in {ratios:#?}"))
    }

    #[test]
    fn near_is_compared_with_near_whatever_its_number() {
        let mut plain = machine(&[MemoryKind::Dram]);
        plain.bandwidth = vec![
            row(0, Operation::Triad, Stores::Ordinary, 150e9),
            row(0, Operation::Triad, Stores::NonTemporal, 200e9),
            Bandwidth {
                rate: Figure::of(&[900e9]).condemned("arrays too small"),
                ..row(0, Operation::Triad, Stores::Ordinary, 1.0)
            },
        ];
        let mut flat = machine(&[MemoryKind::Dram, MemoryKind::Hbm]);
        let source = "a site, 2024";
        flat.bandwidth = vec![
            Bandwidth {
                moved_bytes: 0,
                rate: Figure::published(400e9, source),
                ..row(1, Operation::Triad, Stores::Ordinary, 1.0)
            },
            row(0, Operation::Triad, Stores::Ordinary, 100e9),
        ];
        let ratios = compare(&plain, &flat);
        let near = find(&ratios, "triad from near memory (DRAM here, HBM there)");
        assert_eq!((near.ratio, near.source.as_str()), (0.5, source), "the store kind is unknown there: our best");
        assert_eq!(near.notes.len(), 1);
        assert_eq!(near.line("Max"), "triad from near memory (DRAM here, HBM there): 50 % of Max (400 GB/s; a site, 2024)");
        let same_stuff = find(&ratios, "triad, ordinary stores from DRAM (near memory here, far memory there)");
        assert_eq!(same_stuff.ratio, 1.5, "the invalid row takes no part");
    }

    #[test]
    fn theoretical_peaks_are_named_so() {
        let mut ours = machine(&[MemoryKind::Dram]);
        ours.bandwidth = vec![row(0, Operation::Read, Stores::None, 300e9)];
        ours.compute = vec![Compute { rate: Figure::of(&[1e12]), ..Compute::default() }];
        let mut theirs = machine(&[MemoryKind::Dram]);
        theirs.bandwidth =
            vec![Bandwidth { rate: Figure::theoretical(400e9, "12 channels"), ..row(0, Operation::Read, Stores::None, 1.0) }];
        theirs.compute = vec![Compute { rate: Figure::theoretical(2e12, "clock x width"), ..Compute::default() }];
        let ratios = compare(&ours, &theirs);
        assert_eq!(find(&ratios, "best bandwidth of near memory (DRAM), of their theoretical peak").ratio, 0.75);
        assert_eq!(find(&ratios, "f64 FMA, of their theoretical peak").ratio, 0.5);
        assert_eq!(ratios.len(), 2);
    }

    #[test]
    fn times_are_factors_and_methods_must_match() {
        let latency = |bytes, chase, ns: f64| Latency { bytes, chase, time: Figure::of(&[ns]), ..Latency::default() };
        let mut ours = machine(&[MemoryKind::Dram]);
        ours.latency =
            vec![latency(1 << 30, super::super::Chase::Random, 150.0), latency(1 << 30, super::super::Chase::PageLocal, 90.0)];
        let mut theirs = machine(&[MemoryKind::Dram]);
        theirs.latency = vec![latency(1 << 30, super::super::Chase::Random, 100.0)];
        let ratios = compare(&ours, &theirs);
        assert_eq!(ratios.len(), 1);
        assert_eq!(ratios[0].ratio, 1.5);
        assert!(ratios[0].line("X").contains("1.50 times"));
        theirs.latency[0].bytes = 0;
        assert_eq!(compare(&ours, &theirs)[0].ratio, 0.9, "no method was published: our lowest");
        ours.latency.push(latency(1 << 14, super::super::Chase::PageLocal, 1.5));
        assert_eq!(compare(&ours, &theirs)[0].ratio, 0.9, "what fits in a cache is not the latency of memory");
        assert!(compare(&Node::default(), &theirs).is_empty() && compare(&ours, &Node::default()).is_empty());
    }
}
