//! Which memory of a machine is near and which is far, and what it is called. Node numbers differ from machine to machine; what two
//! machines have in common is the part that a memory plays.
//!
//! A large cache in front of memory (KNL and Xeon Max in cache mode, IMDT) is near and the memory behind it is far. In a description it is
//! a [`Memory::Cache`] one level beyond the processor's last; its entry in [`Topology::caches`](super::Topology) has the bytes of a
//! [`SideCache`](super::SideCache).

use super::{CpuList, Latency, Memory, MemoryKind, Node, Subject, words};

/// The part that a memory plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// A cache of the processor, by level.
    Cache(u32),
    /// The fast and small memory, or the only one.
    Near,
    /// The slower and larger one.
    Far,
}

impl Role {
    /// "near memory", "L2 cache".
    pub fn name(self) -> String {
        match self {
            Self::Cache(level) => format!("L{level} cache"),
            Self::Near => "near memory".to_owned(),
            Self::Far => "far memory".to_owned(),
        }
    }
}

impl MemoryKind {
    /// Order of nearness to the CPUs where nothing else is known; a GPU's memory is behind a link.
    const fn distance(self) -> u32 {
        match self {
            Self::Hbm => 0,
            Self::Dram | Self::Unknown => 1,
            Self::Gpu => 2,
            Self::Cxl => 3,
            Self::Pmem => 4,
        }
    }
}

impl Node {
    /// Near or far or a cache; `None` for a node that the description does not know. What the description says itself (a finding on
    /// tiers) goes before the kinds of memory.
    pub fn role(&self, memory: Memory) -> Option<Role> {
        match memory {
            Memory::Cache(level) if self.side_cache(level).is_some_and(is_tier) => Some(Role::Near),
            Memory::Cache(level) => Some(Role::Cache(level)),
            Memory::Node(id) => self.node_role(id),
        }
    }

    fn node_role(&self, id: u32) -> Option<Role> {
        let nodes = &self.topology.nodes;
        let node = nodes.iter().find(|node| node.id == id);
        let mut findings = self.findings.iter().filter(|finding| finding.subject == Subject::Tiers);
        if let Some((near, far)) = findings.find_map(|finding| tiers_of(&finding.value)) {
            if near.contains(id) {
                return Some(Role::Near);
            }
            if far.contains(id) {
                return Some(Role::Far);
            }
        }
        let node = node?;
        if node.side_caches.iter().any(|cache| is_tier(cache.bytes)) {
            return Some(Role::Far);
        }
        let nearest = nodes.iter().map(|node| node.kind.distance()).min()?;
        Some(if node.kind.distance() == nearest { Role::Near } else { Role::Far })
    }

    /// True when caches of `level` are in front of a memory rather than of a processor.
    pub fn is_side_cache(&self, level: u32) -> bool {
        self.side_cache(level).is_some()
    }

    /// Bytes of one cache in front of a memory.
    fn side_cache(&self, level: u32) -> Option<u64> {
        let caches = self.topology.caches.iter().filter(|cache| cache.level == level && cache.bytes > 0);
        let sides = || self.topology.nodes.iter().flat_map(|node| &node.side_caches);
        caches.map(|cache| cache.bytes).find(|&bytes| sides().any(|side| side.bytes == bytes))
    }

    /// The kind of a memory, [`MemoryKind::Unknown`] for caches.
    pub fn kind(&self, memory: Memory) -> MemoryKind {
        let Memory::Node(id) = memory else { return MemoryKind::Unknown };
        self.topology.nodes.iter().find(|node| node.id == id).map_or(MemoryKind::Unknown, |node| node.kind)
    }

    /// "L2", "HBM, node 1", "node 0", "memory-side cache".
    pub fn memory_name(&self, memory: Memory) -> String {
        match memory {
            Memory::Cache(level) if self.is_side_cache(level) => "memory-side cache".to_owned(),
            Memory::Cache(level) => format!("L{level}"),
            Memory::Node(id) => match self.kind(memory).name() {
                "" => format!("node {id}"),
                kind => format!("{kind}, node {id}"),
            },
        }
    }

    /// The name with its size, where that is known: "L2 (1 MiB)", "HBM, node 1 (16 GiB)".
    pub fn memory_name_with_size(&self, memory: Memory) -> String {
        let bytes = match memory {
            Memory::Cache(level) => {
                let mut caches = self.topology.caches.iter().filter(|cache| cache.level == level);
                caches.find(|cache| cache.kind != super::CacheKind::Instruction).map(|cache| cache.bytes)
            }
            Memory::Node(id) => self.topology.nodes.iter().find(|node| node.id == id).map(|node| node.bytes),
        };
        let name = self.memory_name(memory);
        bytes.filter(|&bytes| bytes > 0).map_or(name.clone(), |bytes| format!("{name} ({})", words::size(bytes)))
    }

    /// The usable latencies of `memory` itself: of a sweep over sizes only the largest, since smaller data lie in caches.
    pub fn settled_latencies(&self, memory: Memory) -> impl Iterator<Item = &Latency> {
        let rows = move || self.latency.iter().filter(move |row| row.memory == memory && row.time.is_usable());
        rows().filter(move |row| {
            let same = |other: &&Latency| (other.cpu_node, other.method()) == (row.cpu_node, row.method());
            matches!(memory, Memory::Cache(_)) || rows().filter(same).all(|other| other.bytes <= row.bytes)
        })
    }

    /// Every memory that has a row of bandwidth or latency: caches from the innermost, then nodes, ascending.
    pub fn measured_memories(&self) -> Vec<Memory> {
        let bandwidth = self.bandwidth.iter().map(|row| row.memory);
        let mut all: Vec<Memory> = bandwidth.chain(self.latency.iter().map(|row| row.memory)).collect();
        all.sort_unstable_by_key(|memory| match *memory {
            Memory::Cache(level) => (0, level),
            Memory::Node(id) => (1, id),
        });
        all.dedup();
        all
    }
}

/// True for a cache that is a tier of memory in its own right (MCDRAM, HBM, DRAM as a cache), rather than part of a memory controller
/// (Infinity Cache).
const fn is_tier(bytes: u64) -> bool {
    bytes >= 1 << 30
}

/// The nodes of a finding such as "near: nodes 4-7, far: nodes 0-3"; `None` for other words.
fn tiers_of(value: &str) -> Option<(CpuList, CpuList)> {
    let list = |mark: &str| -> Option<CpuList> {
        let (_, rest) = value.split_once(mark)?;
        let rest = rest.trim_start().trim_start_matches("nodes").trim_start_matches("node").trim_start();
        let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '-' || c == ',')).unwrap_or(rest.len());
        let list: CpuList = rest[..end].trim_end_matches([',', '-']).parse().ok()?;
        (!list.is_empty()).then_some(list)
    };
    Some((list("near:")?, list("far:").unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::super::{Cache, Finding, MemoryNode, SideCache};
    use super::*;

    fn machine(kinds: &[MemoryKind]) -> Node {
        let mut machine = Node::default();
        machine.topology.nodes =
            (0..).zip(kinds).map(|(id, &kind)| MemoryNode { id, kind, bytes: 16 << 30, ..MemoryNode::default() }).collect();
        machine
    }

    #[test]
    fn kinds_decide() {
        let flat = machine(&[MemoryKind::Dram, MemoryKind::Hbm]);
        assert_eq!(flat.role(Memory::Node(1)), Some(Role::Near));
        assert_eq!(flat.role(Memory::Node(0)), Some(Role::Far));
        assert_eq!(flat.role(Memory::Node(7)), None);
        assert_eq!(flat.role(Memory::Cache(2)), Some(Role::Cache(2)));
        assert_eq!(flat.memory_name_with_size(Memory::Node(1)), "HBM, node 1 (16 GiB)");
        let expanded = machine(&[MemoryKind::Dram, MemoryKind::Cxl]);
        assert_eq!(expanded.role(Memory::Node(1)), Some(Role::Far));
        assert_eq!(machine(&[MemoryKind::Unknown]).role(Memory::Node(0)), Some(Role::Near));
    }

    #[test]
    fn the_finding_goes_before_the_kinds() {
        let mut machine = machine(&[MemoryKind::Unknown, MemoryKind::Unknown]);
        let value = "near: node 1, far: node 0".to_owned();
        machine.findings.push(Finding { subject: Subject::Tiers, value, ..Finding::default() });
        assert_eq!(machine.role(Memory::Node(1)), Some(Role::Near));
        assert_eq!(machine.role(Memory::Node(0)), Some(Role::Far));
        assert_eq!(tiers_of("near: nodes 4-7, far: nodes 0-3"), Some(("4-7".parse().unwrap(), "0-3".parse().unwrap())));
        assert_eq!(tiers_of("one tier"), None);
        assert_eq!(tiers_of("near: nothing"), None);
    }

    #[test]
    fn a_cache_in_front_of_memory_is_near() {
        let mut machine = machine(&[MemoryKind::Dram]);
        machine.topology.nodes[0].side_caches.push(SideCache { bytes: 64 << 30, ..SideCache::default() });
        machine.topology.caches.push(Cache { level: 4, bytes: 64 << 30, ..Cache::default() });
        assert_eq!(machine.role(Memory::Cache(4)), Some(Role::Near));
        assert_eq!(machine.role(Memory::Node(0)), Some(Role::Far));
        assert_eq!(machine.memory_name(Memory::Cache(4)), "memory-side cache");
        machine.topology.nodes[0].side_caches[0].bytes = 256 << 20;
        machine.topology.caches[0].bytes = 256 << 20;
        assert_eq!(machine.role(Memory::Cache(4)), Some(Role::Cache(4)), "too small for a tier");
        assert_eq!(machine.role(Memory::Node(0)), Some(Role::Near));
    }
}
