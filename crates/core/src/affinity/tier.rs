//! Near and far among NUMA nodes: the faster kind of memory is near. Said only where there are several kinds and all are known.

use crate::node::{MemoryKind, MemoryNode};
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

/// Bandwidth from the CPUs, in order; `None` when nothing is known.
const fn speed(kind: MemoryKind) -> Option<u32> {
    match kind {
        MemoryKind::Unknown => None,
        MemoryKind::Hbm => Some(4),
        MemoryKind::Dram => Some(3),
        MemoryKind::Gpu => Some(2),
        MemoryKind::Cxl => Some(1),
        MemoryKind::Pmem => Some(0),
    }
}

/// The tier of node `id`; `None` with one kind of memory, or when a kind is not known.
pub fn tier_of(nodes: &[MemoryNode], id: u32) -> Option<Tier> {
    let with_memory = nodes.iter().filter(|node| node.bytes > 0);
    let speeds: Vec<u32> = with_memory.map(|node| speed(node.kind)).collect::<Option<_>>()?;
    let (fastest, slowest) = (*speeds.iter().max()?, *speeds.iter().min()?);
    let own = speed(nodes.iter().find(|node| node.id == id)?.kind)?;
    match (fastest == slowest, own == fastest) {
        (true, _) => None,
        (false, true) => Some(Tier::Near),
        (false, false) => Some(Tier::Far),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
