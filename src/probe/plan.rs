//! What is measured on which CPUs and memories, and how long each row may take. Pure: decided from the topology alone.

use nearfar_core::node::{CacheKind, CpuList, MemoryKind, MemoryNode, Topology};
use std::time::Duration;

/// CPUs that measure together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Their NUMA node.
    pub node: u32,
    /// One CPU of each core that this process may use, ascending.
    pub cores: Vec<u32>,
    /// All CPUs of the node that it may use.
    pub cpus: Vec<u32>,
}

/// A node with CPUs and a node with memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Index of the group.
    pub group: usize,
    /// The node of the memory.
    pub memory: u32,
    /// It is the nearest memory of the group: measured in full; others get fewer rows.
    pub main: bool,
}

/// All of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// CPUs, by node.
    pub groups: Vec<Group>,
    /// One CPU of every core, all groups.
    pub cores: Vec<u32>,
    /// Every CPU.
    pub cpus: Vec<u32>,
    /// What is paired.
    pub pairs: Vec<Pair>,
    /// Nodes that are a GPU's memory: not measured.
    pub gpu: Vec<u32>,
    /// The last-level cache that arrays must exceed; none when it is not known.
    pub llc_bytes: Option<u64>,
    /// False where a memory-side cache is too large for arrays to exceed it: what is measured is that cache.
    pub behind_side_cache: bool,
    /// Bytes of each array of the bandwidth kernels.
    pub array_bytes: u64,
    /// Bytes of the data of a chase.
    pub chase_bytes: u64,
    /// Time of a bandwidth row.
    pub row: Duration,
    /// Time of a latency row.
    pub chase: Duration,
    /// Time of a point under load.
    pub point: Duration,
    /// Time of a compute row.
    pub compute: Duration,
    /// Time of a far tier.
    pub far: Duration,
    /// Fewer rows.
    pub quick: bool,
}

/// Arrays have at least so many times the last-level cache (STREAM's rule).
pub const TIMES_LLC: u64 = 4;
/// Arrays where the cache is not known, and at the least.
const ARRAY_BYTES: (u64, u64) = (256 << 20, 64 << 20);
/// All arrays together have no more than this for the sake of a memory-side cache: touching them takes seconds.
const LARGEST: u64 = 16 << 30;
/// Data of a chase: beyond the reach of every TLB of today.
const CHASE_BYTES: (u64, u64) = (256 << 20, 1 << 30);

/// The plan for a machine, with `far` far tiers.
pub fn plan(topology: &Topology, quick: bool, far: usize) -> Plan {
    let groups = groups(topology);
    let usable = topology.nodes.iter().filter(|node| node.bytes > 0 && (node.allowed || topology.nodes.len() == 1));
    // A program on the GPU may need all of its memory.
    let (gpu, memories): (Vec<&MemoryNode>, Vec<&MemoryNode>) = usable.partition(|node| node.kind == MemoryKind::Gpu);
    let gpu = gpu.into_iter().map(|node| node.id).collect();
    let mut pairs = Vec::new();
    for (index, group) in groups.iter().enumerate() {
        for memory in &memories {
            let main = memory.id == group.node || nearest(topology, group.node, &memories) == Some(memory.id);
            // A memory without CPUs is measured from its nearest ones in full.
            let lone = memory.cpus.is_empty() && nearest_group(topology, memory.id, &groups) == Some(index);
            if !quick || main || lone {
                pairs.push(Pair { group: index, memory: memory.id, main: main || lone });
            }
        }
    }
    let (llc_bytes, behind_side_cache) = llc(topology, &groups);
    let llc = llc_bytes;
    let array_bytes = llc.map_or(ARRAY_BYTES.0, |bytes| bytes * TIMES_LLC).max(ARRAY_BYTES.1);
    let chase_bytes = llc.map_or(CHASE_BYTES.1, |bytes| (bytes * 8).clamp(CHASE_BYTES.0, CHASE_BYTES.1).max(bytes * TIMES_LLC));
    let full = pairs.iter().filter(|pair| pair.main).count().max(1) as u32;
    let part = pairs.len() as u32 - full.min(pairs.len() as u32);
    // Seconds for each part of the 60 (10 with --quick), divided by its rows: see docs/reference/probe.md.
    let seconds = |full: f64, brief: f64| if quick { brief } else { full };
    let each = |seconds: f64, rows: u32, most_ms: u64| {
        Duration::from_secs_f64(seconds / f64::from(rows.max(1))).min(Duration::from_millis(most_ms))
    };
    Plan {
        cores: groups.iter().flat_map(|group| group.cores.iter().copied()).collect(),
        cpus: groups.iter().flat_map(|group| group.cpus.iter().copied()).collect(),
        row: each(seconds(9.0, 1.6), full * 11 + part * 3, 400),
        chase: each(seconds(6.0, 1.2), full * 3 + part, 1500),
        point: each(seconds(6.0, 1.0), full * 20, 300),
        compute: each(seconds(5.0, 1.0), 20, 250),
        far: Duration::from_secs_f64(seconds(10.0, 1.5) / far.max(1) as f64),
        groups,
        pairs,
        array_bytes,
        chase_bytes,
        gpu,
        llc_bytes,
        behind_side_cache,
        quick,
    }
}

/// The cache that arrays of one group must exceed, and whether memory-side caches are part of it.
fn llc(topology: &Topology, groups: &[Group]) -> (Option<u64>, bool) {
    let Some(all) = topology.llc.bytes else { return (None, true) };
    let side = topology.llc.side_bytes;
    // Of all sockets' caches only those of the group's CPUs count.
    let outer = topology.caches.iter().filter(|cache| cache.kind != CacheKind::Instruction).max_by_key(|cache| cache.level);
    let of_group = |group: &Group| {
        let instances = outer.map(|cache| group.cpus.len().div_ceil(cache.shared_by.max(1) as usize) as u64);
        outer.zip(instances).map_or(all, |(cache, instances)| cache.bytes * instances + side)
    };
    let bytes = groups.iter().map(of_group).max().unwrap_or(all).min(all);
    let memory: u64 = topology.nodes.iter().map(|node| node.bytes).sum();
    // Three arrays, in half of the memory at the most, and in a time that can be borne.
    let fits = bytes.saturating_mul(3 * TIMES_LLC) <= (memory / 2).min(LARGEST);
    if side == 0 || fits { (Some(bytes), true) } else { (Some(bytes.saturating_sub(side)).filter(|&bytes| bytes > 0), false) }
}

fn groups(topology: &Topology) -> Vec<Group> {
    let allowed = if topology.allowed.is_empty() { &topology.online } else { &topology.allowed };
    let mut groups: Vec<Group> = Vec::new();
    for node in &topology.nodes {
        let cpus = node.cpus.and(allowed);
        if !cpus.is_empty() {
            groups.push(Group { node: node.id, cores: one_per_core(topology, &cpus), cpus: cpus.as_slice().to_vec() });
        }
    }
    if let Some(quota) = topology.cgroup.cpus {
        // More threads than the quota would be throttled together for most of each period.
        let mut left = (quota.floor() as usize).max(1);
        for group in &mut groups {
            group.cores.truncate(left);
            group.cpus.truncate(left.max(group.cores.len()));
            left -= group.cores.len();
        }
        groups.retain(|group| !group.cores.is_empty());
    }
    if groups.is_empty() && !allowed.is_empty() {
        let node = topology.nodes.first().map_or(0, |node| node.id);
        groups.push(Group { node, cores: one_per_core(topology, allowed), cpus: allowed.as_slice().to_vec() });
    }
    groups
}

fn one_per_core(topology: &Topology, cpus: &CpuList) -> Vec<u32> {
    topology.cores(cpus).iter().filter_map(|core| core.as_slice().first().copied()).collect()
}

fn distance(topology: &Topology, from: u32, to: u32) -> u32 {
    let index = |id: u32| topology.nodes.iter().position(|node| node.id == id);
    let row = index(from).and_then(|row| topology.distances.get(row));
    row.zip(index(to)).and_then(|(row, column)| row.get(column)).copied().unwrap_or(if from == to { 10 } else { 20 })
}

fn nearest(topology: &Topology, node: u32, memories: &[&MemoryNode]) -> Option<u32> {
    memories.iter().min_by_key(|memory| distance(topology, node, memory.id)).map(|memory| memory.id)
}

fn nearest_group(topology: &Topology, memory: u32, groups: &[Group]) -> Option<usize> {
    (0..groups.len()).min_by_key(|&index| distance(topology, groups[index].node, memory))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearfar_core::node::{Llc, Placement};

    fn list(text: &str) -> CpuList {
        text.parse().expect("a list")
    }

    fn knl_flat() -> Topology {
        let node = |id, bytes: u64, cpus| MemoryNode { id, bytes, cpus: list(cpus), allowed: true, ..MemoryNode::default() };
        Topology {
            online: list("0-7"),
            allowed: list("0-7"),
            placement: (0..8).map(|cpu| Placement { cpu, package: Some(0), core: Some(cpu % 4), node: Some(0) }).collect(),
            nodes: vec![node(0, 96 << 30, "0-7"), node(1, 16 << 30, "")],
            distances: vec![vec![10, 31], vec![31, 10]],
            llc: Llc { bytes: Some(32 << 20), ..Llc::default() },
            ..Topology::default()
        }
    }

    #[test]
    fn memory_without_cpus_is_measured_in_full() {
        let plan = plan(&knl_flat(), false, 1);
        assert_eq!(plan.groups, [Group { node: 0, cores: vec![0, 1, 2, 3], cpus: (0..8).collect() }]);
        assert_eq!(plan.pairs.iter().map(|pair| (pair.memory, pair.main)).collect::<Vec<_>>(), [(0, true), (1, true)]);
        assert_eq!(plan.array_bytes, 128 << 20);
        let quick = super::plan(&knl_flat(), true, 1);
        assert_eq!(quick.pairs.len(), 2);
    }

    #[test]
    fn a_memory_side_cache_that_cannot_be_exceeded_is_what_is_measured() {
        let mut topology = knl_flat();
        topology.llc = Llc { bytes: Some((16 << 30) + (32 << 20)), side_bytes: 16 << 30, ..Llc::default() };
        let large = plan(&topology, false, 0);
        assert_eq!((large.llc_bytes, large.behind_side_cache, large.array_bytes), (Some(32 << 20), false, 128 << 20));
        topology.llc = Llc { bytes: Some(288 << 20), side_bytes: 256 << 20, ..Llc::default() };
        let small = plan(&topology, false, 0);
        assert_eq!((small.behind_side_cache, small.array_bytes), (true, 4 * (288 << 20)));
    }

    #[test]
    fn quotas_sockets_and_gpus() {
        use nearfar_core::node::Cache;
        let mut topology = knl_flat();
        topology.cgroup.cpus = Some(2.5);
        assert_eq!(plan(&topology, false, 0).cores, [0, 1]);
        topology.cgroup.cpus = None;
        topology.nodes[1].kind = MemoryKind::Gpu;
        let plan = plan(&topology, false, 0);
        assert_eq!((plan.gpu.as_slice(), plan.pairs.len()), (&[1][..], 1));
        // Two sockets of 32 MiB: one group's arrays exceed one of them.
        let mut topology = knl_flat();
        topology.llc.bytes = Some(64 << 20);
        topology.caches = vec![Cache { level: 3, bytes: 32 << 20, instances: 2, shared_by: 8, ..Cache::default() }];
        assert_eq!(super::plan(&topology, false, 0).llc_bytes, Some(32 << 20));
    }

    #[test]
    fn cpus_that_are_not_ours_are_left_out() {
        let mut topology = knl_flat();
        topology.allowed = list("2,6-7");
        let plan = plan(&topology, false, 0);
        assert_eq!((plan.cores, plan.cpus), (vec![2, 7], vec![2, 6, 7]));
    }

    #[test]
    fn a_machine_of_which_nothing_is_known_has_one_group() {
        let topology = Topology { online: list("0-1"), ..Topology::default() };
        let plan = plan(&topology, false, 0);
        assert_eq!(plan.groups, [Group { node: 0, cores: vec![0, 1], cpus: vec![0, 1] }]);
        assert!(plan.pairs.is_empty());
    }

    #[test]
    fn sixteen_nodes_take_no_longer() {
        let mut topology = knl_flat();
        let node = |id: u32| MemoryNode {
            id,
            bytes: 16 << 30,
            cpus: if id < 8 { list(&format!("{}-{}", id * 8, id * 8 + 7)) } else { CpuList::default() },
            allowed: true,
            ..MemoryNode::default()
        };
        topology.nodes = (0..16).map(node).collect();
        (topology.online, topology.allowed) = (list("0-63"), list("0-63"));
        topology.distances = (0..16).map(|a| (0..16).map(|b| if a % 8 == b % 8 { 10 } else { 20 }).collect()).collect();
        let plan = plan(&topology, false, 1);
        assert_eq!(plan.pairs.len(), 8 * 16);
        let rows: f64 = plan.pairs.iter().map(|pair| if pair.main { 11.0 } else { 3.0 }).sum();
        assert!(plan.row.as_secs_f64() * rows < 10.0, "{:?}", plan.row);
    }
}
