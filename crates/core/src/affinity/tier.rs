//! Near and far among NUMA nodes, as [`detect::tiers`](crate::node::detect::tiers) finds them: what a probe of the machine says as well.

use crate::node::detect::tiers;
use crate::node::{MemoryNode, Topology};
use serde::Serialize;
use std::fmt;

/// A tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tier {
    /// The fastest kind of memory of the machine.
    Near,
    /// Any slower kind.
    Far,
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Tier::Near => "near",
            Tier::Far => "far",
        })
    }
}

/// The tier of node `id` as far as the nodes themselves tell; `None` with one kind of memory, or when nothing tells which is the faster.
/// Where the whole topology is at hand, `tier_in` knows more.
pub fn tier_of(nodes: &[MemoryNode], id: u32) -> Option<Tier> {
    tier_in(&Topology { nodes: nodes.to_vec(), ..Topology::default() }, id)
}

/// The tier of node `id` of a machine: kinds of memory, and the kernel's memory tiers where a kind is not known.
pub fn tier_in(topology: &Topology, id: u32) -> Option<Tier> {
    let tiers = tiers(topology)?;
    match (tiers.near.contains(&id), tiers.far.contains(&id)) {
        (true, _) => Some(Tier::Near),
        (false, true) => Some(Tier::Far),
        (false, false) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::{CpuList, MemoryKind};

    #[test]
    fn the_faster_kind_is_near() {
        let nodes = |kinds: &[MemoryKind]| -> Vec<MemoryNode> {
            kinds.iter().zip(0..).map(|(&kind, id)| MemoryNode { id, kind, bytes: 1, ..MemoryNode::default() }).collect()
        };
        let flat = nodes(&[MemoryKind::Dram, MemoryKind::Hbm]);
        assert_eq!((tier_of(&flat, 0), tier_of(&flat, 1), tier_of(&flat, 2)), (Some(Tier::Far), Some(Tier::Near), None));
        let cxl = nodes(&[MemoryKind::Dram, MemoryKind::Cxl]);
        assert_eq!((tier_of(&cxl, 0), tier_of(&cxl, 1)), (Some(Tier::Near), Some(Tier::Far)));
        assert_eq!(tier_of(&nodes(&[MemoryKind::Dram, MemoryKind::Dram]), 0), None);
        assert_eq!(tier_of(&nodes(&[MemoryKind::Dram, MemoryKind::Unknown]), 0), None);
    }

    #[test]
    fn the_kernel_may_know_where_the_nodes_do_not_tell() {
        let node = |id, kind, cpus: &str| MemoryNode { id, kind, bytes: 1, cpus: cpus.parse().unwrap(), ..MemoryNode::default() };
        let nodes = vec![node(0, MemoryKind::Dram, "0-3"), node(1, MemoryKind::Unknown, "")];
        let memory_tiers = vec![(4, CpuList::from_iter([0])), (22, CpuList::from_iter([1]))];
        let topology = Topology { nodes, memory_tiers, ..Topology::default() };
        assert_eq!((tier_in(&topology, 0), tier_in(&topology, 1)), (Some(Tier::Near), Some(Tier::Far)));
        assert_eq!(tier_of(&topology.nodes, 1), None);
    }
}
