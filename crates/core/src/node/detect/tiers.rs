//! Which nodes are near memory and which far, for programs on the CPUs.

use super::kind::{Speed, compare, home, kernel_tier};
use super::{MASKED, Product, conclude, knl, nodes_text, unknown};
use crate::node::{Certainty, CpuList, Finding, MemoryKind, MemoryNode, Subject, Topology};

/// Near and far memory of a machine with two kinds of memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tiers {
    /// Nodes of the fast memory, ascending.
    pub near: Vec<u32>,
    /// Nodes of the slow memory, the better ones first.
    pub far: Vec<u32>,
    /// Near node and far node that belong to the same CPUs, where distances tell.
    pub pairs: Vec<(u32, u32)>,
    /// How sure that is.
    pub certainty: Certainty,
    /// Why these, in words for people.
    pub why: String,
}

/// How good a memory is for programs on the CPUs; the lowest is near.
fn rank(topology: &Topology, node: &MemoryNode) -> Option<u32> {
    let speed = || compare(topology, node).or_else(|| kernel_tier(topology, node)).map(|(speed, _)| speed);
    match node.kind {
        MemoryKind::Hbm => Some(0),
        MemoryKind::Dram => Some(1),
        MemoryKind::Cxl | MemoryKind::Pmem => Some(2),
        MemoryKind::Gpu => Some(3),
        MemoryKind::Unknown => match speed()? {
            Speed::Faster => Some(0),
            Speed::Alike => None,
            Speed::Slower => Some(2),
        },
    }
}

/// Near and far memory; `None` when there is one kind of memory, or when nothing tells which of two is the faster.
pub fn tiers(topology: &Topology) -> Option<Tiers> {
    let nodes: Vec<&MemoryNode> = topology.nodes.iter().filter(|node| node.bytes > 0).collect();
    let mut ranked = nodes.iter().map(|node| Some((rank(topology, node)?, node.id))).collect::<Option<Vec<_>>>()?;
    ranked.sort_unstable();
    let best = ranked.first()?.0;
    let near: Vec<u32> = ranked.iter().filter(|(rank, _)| *rank == best).map(|(_, id)| *id).collect();
    let far: Vec<u32> = ranked.iter().filter(|(rank, _)| *rank != best).map(|(_, id)| *id).collect();
    if far.is_empty() {
        return None;
    }
    let certainty = match nodes.iter().filter(|node| node.is_memory_only()).map(|node| node.certainty).min() {
        Some(Certainty::Detected) if !nodes.iter().any(|node| node.kind == MemoryKind::Unknown) => Certainty::Detected,
        _ => Certainty::Inferred,
    };
    let words = |ids: &[u32]| words(topology, ids);
    let mut why = match best {
        0 => format!("{} has more bandwidth than {}", words(&near), words(&far)),
        _ => format!("{} is the CPUs' own memory, and {} is slower for them", words(&near), words(&far)),
    };
    if far.iter().any(|id| topology.node(*id).is_some_and(|node| node.kind == MemoryKind::Gpu)) {
        why.push_str(
            ": over the link to the GPU loads take several times as long, whatever bandwidth the GPU itself has; \
             take that memory only when the GPU does not need it",
        );
    }
    let pairs = pairs(topology, &nodes, &near);
    Some(Tiers { near, far, pairs, certainty, why })
}

/// "HBM (nodes 4-7)".
fn words(topology: &Topology, ids: &[u32]) -> String {
    let mut kinds: Vec<&str> = Vec::new();
    for node in ids.iter().filter_map(|id| topology.node(*id)) {
        let name = match node.kind {
            MemoryKind::Hbm => "HBM",
            MemoryKind::Dram => "DRAM",
            MemoryKind::Cxl if node.certainty == Certainty::Detected => "CXL memory",
            MemoryKind::Cxl => "memory behind a link (such as CXL)",
            MemoryKind::Pmem => "persistent memory",
            MemoryKind::Gpu => "memory of GPUs",
            MemoryKind::Unknown => "memory",
        };
        if !kinds.contains(&name) {
            kinds.push(name);
        }
    }
    format!("{} ({})", kinds.join(" and "), nodes_text(ids.iter().copied()))
}

/// Each memory without CPUs with its home, the near one of both first.
fn pairs(topology: &Topology, nodes: &[&MemoryNode], near: &[u32]) -> Vec<(u32, u32)> {
    if Product::of(topology).is_knl()
        && let Some(pairs) = knl::pairs(topology)
    {
        return pairs;
    }
    let with_home = nodes.iter().filter(|node| node.is_memory_only()).filter_map(|node| {
        let home = home(topology, node.id)?.id;
        topology.distance(home, node.id)?;
        Some((node.id, home))
    });
    let ordered = with_home.filter_map(|(alone, home)| match (near.contains(&alone), near.contains(&home)) {
        (true, false) => Some((alone, home)),
        (false, true) => Some((home, alone)),
        _ => None,
    });
    ordered.collect()
}

pub(super) fn finding(topology: &Topology) -> Finding {
    if let Some(tiers) = tiers(topology) {
        let list = |ids: &[u32]| nodes_text(ids.iter().copied());
        let value = format!("near: {}, far: {}", list(&tiers.near), list(&tiers.far));
        let mut evidence = vec![tiers.why];
        if tiers.pairs.len() > 1 {
            let pairs: Vec<String> = tiers.pairs.iter().map(|(near, far)| format!("{near} with {far}")).collect();
            evidence.push(format!("by distance, near and far belong together: {}", pairs.join(", ")));
        }
        return conclude(Subject::Tiers, value, tiers.certainty, evidence);
    }
    if topology.hidden {
        return unknown(Subject::Tiers, vec![MASKED.to_owned()]);
    }
    let alone: CpuList = topology.nodes.iter().filter(|node| node.is_memory_only()).map(|node| node.id).collect();
    if alone.is_empty() {
        let with_memory = topology.nodes.iter().filter(|node| node.bytes > 0).map(|node| node.id);
        let evidence = vec![format!("every node with memory has CPUs: {}", nodes_text(with_memory))];
        return conclude(Subject::Tiers, "one tier", Certainty::Inferred, evidence);
    }
    let text = format!(
        "{} has no CPUs, and nothing says whether it is faster or slower than the rest: no HMAT, no memory tier of its own, \
         no device that names it",
        nodes_text(alone.as_slice().iter().copied())
    );
    unknown(Subject::Tiers, vec![text])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::Claim;
    use crate::node::detect::assign_kinds;

    /// Node 0 with CPUs, node 1 without; claimed bandwidths in GB/s.
    fn two(claims: [Option<f64>; 2]) -> Topology {
        let claim = |rate: Option<f64>| rate.map(|rate| Claim { read_bytes_per_s: Some(rate * 1e9), ..Claim::default() });
        let node = |id: u32, cpus: &str| MemoryNode {
            id,
            bytes: 1 << 30,
            cpus: cpus.parse().unwrap(),
            claim: claim(claims[id as usize]),
            ..MemoryNode::default()
        };
        let nodes = vec![node(0, "0-3"), node(1, "")];
        let mut topology = Topology { nodes, distances: vec![vec![10, 20], vec![20, 10]], ..Topology::default() };
        assign_kinds(&mut topology, None);
        topology
    }

    #[test]
    fn claims_tell_near_from_far() {
        let of = |claims| tiers(&two(claims)).map(|tiers| (tiers.near, tiers.far, tiers.pairs));
        assert_eq!(of([Some(90.0), Some(400.0)]), Some((vec![1], vec![0], vec![(1, 0)])));
        assert_eq!(of([Some(200.0), Some(30.0)]), Some((vec![0], vec![1], vec![(0, 1)])));
        assert_eq!(of([Some(200.0), Some(190.0)]), None);
    }

    #[test]
    fn without_a_sign_nothing_is_claimed() {
        let topology = two([None, None]);
        assert_eq!((tiers(&topology), finding(&topology).certainty), (None, Certainty::Unknown));
    }

    #[test]
    fn the_kernel_may_know() {
        let mut topology = two([None, None]);
        topology.memory_tiers = vec![(4, CpuList::from_iter([0])), (22, CpuList::from_iter([1]))];
        let found = tiers(&topology).unwrap();
        assert_eq!((found.near, found.far, found.certainty), (vec![0], vec![1], Certainty::Inferred));
    }

    #[test]
    fn three_kinds_make_two_tiers_and_the_better_far_memory_comes_first() {
        let mut topology = two([Some(90.0), Some(400.0)]);
        let far = MemoryNode { id: 2, bytes: 1 << 30, kind: MemoryKind::Cxl, ..MemoryNode::default() };
        topology.nodes.push(far);
        topology.distances.clear();
        let found = tiers(&topology).unwrap();
        assert_eq!((found.near, found.far, found.pairs), (vec![1], vec![0, 2], Vec::new()));
    }
}
