//! The two sets of nodes between which pages move: how much faster near is, how much room there is, and which node is nearest.

use nearfar_core::node::{Chase, Memory, Node, Topology, Validity};
use nearfar_core::placement::{NodeSet, Placement, Tier};
use nearfar_core::policy::migrate::{Gain, Origin, Room, Speed};
use nearfar_sys::numa;
use std::collections::BTreeMap;

/// What stays free on each node for the kernel and for new memory: that part of it, and at least this much.
const MARGIN_PART: u64 = 64;
const LEAST_MARGIN: u64 = 8 << 20;

/// There are no two nodes between which pages can move.
#[derive(Clone, Debug, thiserror::Error)]
#[error(
    "cache mode between NUMA nodes needs two nodes with memory, and this machine has {usable} that this process may use{}; near {near}, far \
     {far}",
    if *.usable == 1 { "" } else { ", but not these" }
)]
pub struct NoPair {
    usable: usize,
    near: String,
    far: String,
}

/// Near and far nodes.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The fast ones.
    pub near: NodeSet,
    /// The slower ones.
    pub far: NodeSet,
    /// At most that much of near.
    pub near_limit: u64,
    /// What a visit saves in near.
    pub gain: Gain,
    margins: BTreeMap<u32, u64>,
    /// From, to, distance.
    distances: BTreeMap<(u32, u32), u32>,
}

impl Pair {
    /// The nodes of `placement` on the machine of `topology`; `measured` is this machine's node.json.
    ///
    /// # Errors
    /// These are not two sets of nodes with memory that this process may use.
    pub fn of(placement: &Placement, topology: &Topology, measured: Option<&Node>) -> Result<Self, NoPair> {
        let usable = |set: &NodeSet| -> NodeSet {
            let has_memory = |&node: &u32| topology.node(node).is_some_and(|node| node.bytes > 0 && node.allowed);
            set.iter().filter(has_memory).collect()
        };
        let near = usable(&placement.near);
        let far = if placement.far.is_empty() {
            usable(&topology.nodes.iter().map(|node| node.id).collect())
        } else {
            usable(&placement.far)
        };
        let far: NodeSet = far.iter().filter(|&node| !near.contains(node)).collect();
        if near.is_empty() || far.is_empty() {
            let count = topology.nodes.iter().filter(|node| node.bytes > 0).count();
            return Err(NoPair { usable: count, near: placement.near.to_string(), far: placement.far.to_string() });
        }
        let margin = |node: u32| (node, (topology.node(node).map_or(0, |node| node.bytes) / MARGIN_PART).max(LEAST_MARGIN));
        let all = || near.iter().chain(far.iter());
        let pairs = all().flat_map(|from| all().map(move |to| (from, to)));
        Ok(Self {
            near_limit: placement.near_limit,
            gain: gain(&near, &far, topology, measured),
            margins: all().map(margin).collect(),
            distances: pairs.filter_map(|(from, to)| Some(((from, to), topology.distance(from, to)?))).collect(),
            near,
            far,
        })
    }

    /// The nodes of a tier.
    pub fn nodes(&self, tier: Tier) -> &NodeSet {
        match tier {
            Tier::Near => &self.near,
            Tier::Far => &self.far,
        }
    }

    /// Bytes that each node may still take, negative where the margin is used.
    pub fn free(&self) -> BTreeMap<u32, i64> {
        let free = |(&node, &margin): (&u32, &u64)| (node, numa::free_bytes(node).unwrap_or(0) as i64 - margin as i64);
        self.margins.iter().map(free).collect()
    }

    /// What the policy is told, when the job has `near_used` bytes in near.
    pub fn room(&self, free: &BTreeMap<u32, i64>, near_used: u64) -> Room {
        let sum = |set: &NodeSet| -> i64 { set.iter().filter_map(|node| free.get(&node)).sum() };
        let allowed = i64::try_from(self.near_limit).map_or(i64::MAX, |limit| limit - near_used as i64);
        Room { near: sum(&self.near).min(allowed), far: sum(&self.far) }
    }

    /// The node of `tier` that is nearest to node `from` and has room for `bytes`; of those equally near, the one with most room.
    pub fn target(&self, from: Option<u32>, tier: Tier, bytes: u64, free: &BTreeMap<u32, i64>) -> Option<u32> {
        let room = |node: u32| free.get(&node).copied().unwrap_or(0);
        let distance = |node: u32| from.and_then(|from| self.distances.get(&(from, node))).copied().unwrap_or(u32::MAX);
        let fit = self.nodes(tier).iter().filter(|&node| room(node) >= bytes as i64);
        fit.min_by_key(|&node| (distance(node), -room(node), node))
    }
}

/// What a visit saves, from the best there is to know.
fn gain(near: &NodeSet, far: &NodeSet, topology: &Topology, measured: Option<&Node>) -> Gain {
    let cpus = topology.allowed.len().max(1) as u32;
    let (Some(first_near), Some(first_far)) = (near.first(), far.first()) else { return Gain::from_distances(None, None) };
    let has_cpus = |node: u32| topology.node(node).is_some_and(|node| !node.cpus.is_empty());
    // Where the program is taken to run.
    let home = if has_cpus(first_near) { first_near } else { first_far };
    if let Some(node) = measured
        && let (near, far) = (measured_speed(node, home, first_near), measured_speed(node, home, first_far))
        && let Some(gain) = Gain::of(near, far, cpus, Origin::Measured)
    {
        return gain;
    }
    // The firmware's figures are those of the CPUs next to each memory: of two sockets both are fast, and what is slow is the way between.
    let claimed = |node: u32| {
        let claim = topology.node(node).and_then(|node| node.claim).unwrap_or_default();
        Speed { latency_ns: claim.read_ns, bytes_per_s: claim.read_bytes_per_s }
    };
    if !(has_cpus(first_near) && has_cpus(first_far))
        && let Some(gain) = Gain::of(claimed(first_near), claimed(first_far), cpus, Origin::Firmware)
    {
        return gain;
    }
    Gain::from_distances(topology.distance(home, first_near), topology.distance(home, first_far))
}

/// What was measured of `memory` from the CPUs of node `home`.
fn measured_speed(node: &Node, home: u32, memory: u32) -> Speed {
    let (valid, memory) = (|validity: Validity| validity != Validity::Invalid, Memory::Node(memory));
    let latency = node.latency.iter().filter(|row| row.memory == memory && row.cpu_node == home && row.chase == Chase::Random);
    let rate = node.bandwidth.iter().filter(|row| row.memory == memory && row.cpu_node.is_none_or(|node| node == home));
    Speed {
        latency_ns: latency.filter(|row| valid(row.time.validity)).map(|row| row.time.median).min_by(f64::total_cmp),
        bytes_per_s: rate.filter(|row| valid(row.rate.validity)).map(|row| row.rate.median).max_by(f64::total_cmp),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearfar_core::node::{Claim, MemoryNode};

    fn node(id: u32, cpus: &str, claim: Option<(f64, f64)>) -> MemoryNode {
        let claim = claim.map(|(ns, rate)| Claim { read_ns: Some(ns), read_bytes_per_s: Some(rate), ..Claim::default() });
        MemoryNode { id, bytes: 1 << 30, cpus: cpus.parse().expect("a list"), allowed: true, claim, ..MemoryNode::default() }
    }

    fn machine(nodes: Vec<MemoryNode>, distances: &[&[u32]]) -> Topology {
        let distances = distances.iter().map(|row| row.to_vec()).collect();
        Topology { nodes, distances, allowed: "0-3".parse().expect("a list"), ..Topology::default() }
    }

    fn placement(near: &[u32], far: &[u32]) -> Placement {
        Placement { near: near.iter().copied().collect(), far: far.iter().copied().collect(), ..Placement::default() }
    }

    #[test]
    fn one_node_is_refused_with_advice() {
        let single = machine(vec![node(0, "0-3", None)], &[&[10]]);
        for placement in [placement(&[0], &[]), placement(&[0], &[0]), placement(&[1], &[0])] {
            let error = Pair::of(&placement, &single, None).expect_err("refused").to_string();
            assert!(error.contains("this machine has 1"), "{error}");
        }
    }

    #[test]
    fn firmware_for_memories_of_one_socket_and_distance_for_two() {
        let cxl = machine(vec![node(0, "0-3", Some((100.0, 2e11))), node(1, "", Some((250.0, 3e10)))], &[&[10, 20], &[20, 10]]);
        let pair = Pair::of(&placement(&[0], &[]), &cxl, None).expect("a pair");
        assert_eq!((pair.gain.origin, pair.gain.ns_per_visit.round() as u32, pair.far.first()), (Origin::Firmware, 600, Some(1)));
        let sockets =
            machine(vec![node(0, "0-1", Some((100.0, 2e11))), node(1, "2-3", Some((100.0, 2e11)))], &[&[10, 21], &[21, 10]]);
        let pair = Pair::of(&placement(&[1], &[0]), &sockets, None).expect("a pair");
        assert_eq!((pair.gain.origin, pair.gain.ns_per_visit.round() as u32), (Origin::Distance, 440));
    }

    #[test]
    fn the_nearest_node_with_room() {
        let nodes = (0..4).map(|id| node(id, if id < 2 { "0" } else { "" }, None)).collect();
        let rows: [&[u32]; 4] = [&[10, 21, 13, 23], &[21, 10, 23, 13], &[13, 23, 10, 23], &[23, 13, 23, 10]];
        let pair = Pair::of(&placement(&[2, 3], &[0, 1]), &machine(nodes, &rows), None).expect("a pair");
        let free = BTreeMap::from([(0, 1 << 30), (1, 1 << 30), (2, 4 << 20), (3, 1 << 20)]);
        assert_eq!(pair.target(Some(0), Tier::Near, 2 << 20, &free), Some(2));
        assert_eq!(pair.target(Some(1), Tier::Near, 2 << 20, &free), Some(2), "node 3 is nearer, but full");
        assert_eq!(pair.target(Some(1), Tier::Near, 1 << 20, &free), Some(3));
        assert_eq!(pair.target(None, Tier::Near, 8 << 20, &free), None);
        assert_eq!(pair.room(&free, 0), Room { near: 5 << 20, far: 2 << 30 });
        let limited = Pair { near_limit: 3 << 20, ..pair };
        assert_eq!(limited.room(&free, 4 << 20).near, -(1 << 20));
    }
}
