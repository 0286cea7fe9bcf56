//! The roofs of a machine: what each memory can feed, what the cores can compute. What goes on a roofline, before it is drawn.

use nearfar_core::node::{Arithmetic, Bandwidth, FarAccess, Figure, Isa, Memory, MemoryKind, Node, Operation, Precision, words};

/// A slanted roof: bytes per second of a memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Roof {
    /// Memory, rate and operation.
    pub label: String,
    /// Bytes per second.
    pub rate: f64,
    /// Arithmetic on a data sheet, not a measurement.
    pub theoretical: bool,
}

/// A flat roof: operations per second of the cores.
#[derive(Clone, Debug, PartialEq)]
pub struct Ceiling {
    /// Instructions and rate.
    pub label: String,
    /// Operations per second.
    pub flops: f64,
    /// Single precision.
    pub single: bool,
    /// Arithmetic on a data sheet, not a measurement.
    pub theoretical: bool,
}

/// Nodes whose rates differ by less than this share are one roof.
const ALIKE: f64 = 0.10;

/// True when nodes have CPUs of their own: ceilings are of all cores, so a roof of one node's CPUs is not their counterpart.
fn is_split(node: &Node) -> bool {
    node.topology.nodes.iter().filter(|node| !node.cpus.is_empty()).count() > 1
}

/// The slanted roofs, the fastest first: of all nodes together where that was measured, else of one node's CPUs.
pub fn roofs(node: &Node) -> Vec<Roof> {
    let mut roofs = Vec::new();
    let split = is_split(node);
    let roof = |name: &str, row: &Bandwidth| roof(name, row, split);
    let is_all = |row: &Bandwidth| split && row.cpu_node.is_none();
    let mut nodes: Vec<(MemoryKind, u32, &Bandwidth)> = Vec::new();
    for memory in node.measured_memories() {
        let Some(row) = representative(node, memory) else { continue };
        match memory {
            Memory::Cache(_) if is_all(row) => roofs.push(roof(&format!("{}, all nodes", node.memory_name(memory)), row)),
            Memory::Cache(_) => roofs.push(roof(&node.memory_name(memory), row)),
            Memory::Node(id) => nodes.push((node.kind(memory), id, row)),
        }
    }
    // The sum stands for its parts.
    let summed: Vec<MemoryKind> = nodes.iter().filter(|(_, _, row)| is_all(row)).map(|(kind, _, _)| *kind).collect();
    nodes.retain(|(kind, _, row)| is_all(row) || !summed.contains(kind));
    while let Some(&(kind, first, fastest)) = nodes.iter().max_by(|a, b| a.2.rate.median.total_cmp(&b.2.rate.median)) {
        let limit = fastest.rate.median * (1.0 - ALIKE);
        let alike = |&(other, _, row): &(MemoryKind, u32, &Bandwidth)| {
            other == kind && row.rate.median >= limit && (row.operation, row.stores) == (fastest.operation, fastest.stores)
        };
        let ids: nearfar_core::node::CpuList = nodes.iter().filter(|row| alike(row)).map(|&(_, id, _)| id).collect();
        nodes.retain(|row| !alike(row));
        if ids.len() > 1 {
            roofs.push(roof(format!("{} nodes {ids}, each", kind.name()).trim_start(), fastest));
        } else if is_all(fastest) {
            roofs.push(roof(format!("{} all nodes", kind.name()).trim_start(), fastest));
        } else {
            roofs.push(roof(&node.memory_name(Memory::Node(first)), fastest));
        }
    }
    roofs.extend(node.far.iter().filter_map(far_roof));
    roofs.sort_by(|a, b| b.rate.total_cmp(&a.rate));
    roofs
}

/// The row that stands for a memory: the fastest measured triad, else the fastest measured row, else the data sheet. Rows of all CPUs
/// come before those of one node's.
fn representative(node: &Node, memory: Memory) -> Option<&Bandwidth> {
    let rows = || node.bandwidth.iter().filter(move |row| row.memory == memory && row.rate.is_usable());
    let measured = || rows().filter(|row| !row.rate.is_theoretical());
    let is_triad = |row: &&Bandwidth| row.operation == Operation::Triad;
    let split = is_split(node);
    let all = || measured().filter(move |row| split && row.cpu_node.is_none());
    let together = fastest(all().filter(is_triad)).or_else(|| fastest(all()));
    together.or_else(|| fastest(measured().filter(is_triad))).or_else(|| fastest(measured())).or_else(|| fastest(rows()))
}

fn fastest<'a>(rows: impl Iterator<Item = &'a Bandwidth>) -> Option<&'a Bandwidth> {
    rows.max_by(|a, b| a.rate.median.total_cmp(&b.rate.median))
}

/// `split`: see [`is_split`].
fn roof(name: &str, row: &Bandwidth, split: bool) -> Roof {
    let theoretical = row.rate.is_theoretical();
    let how = if theoretical { "theoretical" } else { row.operation.name() };
    let whose = if split && row.cpu_node.is_some() { ", one node's CPUs" } else { "" };
    Roof { label: format!("{name} {} ({how}{whose})", words::rate(row.rate.median)), rate: row.rate.median, theoretical }
}

fn far_roof(tier: &nearfar_core::node::FarTier) -> Option<Roof> {
    let of = |access| {
        let rates = tier.points.iter().filter(move |point| point.access == access).map(|point| &point.rate);
        let best = rates.filter(|rate| rate.is_usable()).max_by(|a, b| a.median.total_cmp(&b.median));
        best.map(|rate| (access, rate.median))
    };
    let (access, rate) = of(FarAccess::SequentialRead).or_else(|| of(FarAccess::RandomRead))?;
    let label = format!("far {} {} ({})", super::svg::cut(&tier.spec, 18), words::rate(rate), access.name());
    Some(Roof { label, rate, theoretical: false })
}

/// The flat roofs, the highest first: matrix product, FMA, vectors without FMA, scalar; single precision FMA; the data sheet only where
/// nothing was measured.
pub fn ceilings(node: &Node) -> Vec<Ceiling> {
    let mut ceilings = Vec::new();
    let mut add = |name: &str, single: bool, figure: Option<&Figure>| {
        ceilings.extend(figure.map(|rate| {
            let theoretical = rate.is_theoretical();
            let mark = if theoretical { " (theoretical)" } else { "" };
            Ceiling { label: format!("{name} {}{mark}", words::flops(rate.median)), flops: rate.median, single, theoretical }
        }));
    };
    let best = |precision: Precision, choose: &dyn Fn(Isa, Arithmetic) -> bool, theoretical: bool| {
        let rows = node.compute.iter().filter(|row| row.precision == precision && choose(row.isa, row.arithmetic));
        let rates = rows.map(|row| &row.rate).filter(|rate| rate.is_usable() && rate.is_theoretical() == theoretical);
        rates.max_by(|a, b| a.median.total_cmp(&b.median))
    };
    let vector = |isa: Isa, arithmetic: Arithmetic, wanted: &[Arithmetic]| isa != Isa::Scalar && wanted.contains(&arithmetic);
    let fma = |isa, arithmetic| vector(isa, arithmetic, &[Arithmetic::Fma]);
    let plain = |isa, arithmetic| vector(isa, arithmetic, &[Arithmetic::Add, Arithmetic::MultiplyAdd]);
    let double = Precision::F64;
    let measured_fma = best(double, &fma, false);
    add("f64 FMA", false, measured_fma.or_else(|| best(double, &fma, true)));
    add("f64 vectors, no FMA", false, best(double, &plain, false));
    add("f64 scalar", false, best(double, &|isa, arithmetic| isa == Isa::Scalar && arithmetic != Arithmetic::Gemm, false));
    add("f64 matrix product", false, best(double, &|_, arithmetic| arithmetic == Arithmetic::Gemm, false));
    add("f32 FMA", true, best(Precision::F32, &fma, false).or_else(|| best(Precision::F32, &fma, true)));
    ceilings.sort_by(|a, b| b.flops.total_cmp(&a.flops));
    ceilings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::preset;

    #[test]
    fn roofs_of_a_published_machine() {
        let knl = preset::find("knl-flat").expect("found");
        let labels: Vec<String> = roofs(&knl).into_iter().map(|roof| roof.label).collect();
        assert_eq!(
            labels,
            ["L1 6.04 TB/s (scale)", "L2 1.83 TB/s (scale)", "HBM, node 1 485 GB/s (triad)", "DRAM, node 0 88.4 GB/s (triad)"]
        );
        let ceilings = ceilings(&knl);
        assert_eq!(ceilings[0].label, "f64 FMA 2.20 TFLOP/s");
        assert_eq!(ceilings.len(), 2, "{ceilings:?}");
        let theoretical = roofs(&preset::find("genoa-9004").expect("found"));
        assert!(theoretical[0].theoretical && theoretical[0].label.contains("theoretical"));
        let device = roofs(&preset::find("nvme-gen4").expect("found"));
        assert_eq!(device[0].label, "far Kioxia CM6 6.90 GB/s (sequential read)");
    }

    #[test]
    fn nodes_that_are_alike_are_one_roof() {
        let mut node = Node::default();
        let row = |id, rate| Bandwidth {
            memory: Memory::Node(id),
            operation: Operation::Triad,
            rate: Figure::of(&[rate]),
            ..Bandwidth::default()
        };
        node.bandwidth = vec![row(0, 50e9), row(1, 49e9), row(2, 20e9)];
        let labels: Vec<String> = roofs(&node).into_iter().map(|roof| roof.label).collect();
        assert_eq!(labels, ["nodes 0-1, each 50.0 GB/s (triad)", "node 2 20.0 GB/s (triad)"]);
    }

    #[test]
    fn roofs_of_all_nodes_and_of_one() {
        use nearfar_core::node::MemoryNode;
        let memory = |id: u32, kind, cpus: &str| MemoryNode {
            id,
            kind,
            bytes: 1 << 30,
            cpus: cpus.parse().expect("a list"),
            ..MemoryNode::default()
        };
        let row = |id, cpu_node, rate| Bandwidth {
            memory: Memory::Node(id),
            cpu_node,
            operation: Operation::Triad,
            rate: Figure::of(&[rate]),
            ..Bandwidth::default()
        };
        let mut node = Node::default();
        node.topology.nodes =
            vec![memory(0, MemoryKind::Dram, "0-3"), memory(1, MemoryKind::Dram, "4-7"), memory(2, MemoryKind::Cxl, "")];
        node.bandwidth = vec![row(0, Some(0), 50e9), row(1, Some(1), 49e9), row(2, Some(0), 20e9)];
        let labels = |node: &Node| roofs(node).into_iter().map(|roof| roof.label).collect::<Vec<_>>();
        let cxl = "CXL, node 2 20.0 GB/s (triad, one node's CPUs)";
        assert_eq!(labels(&node), ["DRAM nodes 0-1, each 50.0 GB/s (triad, one node's CPUs)", cxl]);
        node.bandwidth.push(row(0, None, 99e9));
        assert_eq!(labels(&node), ["DRAM all nodes 99.0 GB/s (triad)", cxl]);
    }
}
