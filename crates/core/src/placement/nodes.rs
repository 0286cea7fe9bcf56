//! Which NUMA nodes are near and far on a machine, whether those that were asked for can be used, and how pages are shared out among
//! several. Pure: descriptions of machines go in.

use super::NodeSet;
use crate::node::{Certainty, CpuList, Memory, MemoryKind, MemoryNode, Node, Topology, detect};
use crate::units::Bytes;

/// Near and far nodes that this process may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tiers {
    /// The fast memory.
    pub near: NodeSet,
    /// The slower memory.
    pub far: NodeSet,
    /// How sure that is.
    pub certainty: Certainty,
    /// Why these, in words for people.
    pub why: String,
}

/// Near and far of a machine with two kinds of memory, as far as this process may use them; `None` when there is one kind, when
/// nothing tells which is the faster, or when only one of them may be used.
///
/// Memory of GPUs (Grace-Hopper) is never among them: it is the GPU's, and what the kernel puts there unasked the GPU lacks.
pub fn tiers_of(topology: &Topology) -> Option<Tiers> {
    let mut rest = topology.clone();
    // As if it were not there; distances go by the order of the nodes.
    rest.nodes.iter_mut().filter(|node| node.kind == MemoryKind::Gpu).for_each(|node| node.bytes = 0);
    let found = detect::tiers(&rest)?;
    let may = usable(topology);
    let set = |ids: &[u32]| ids.iter().copied().collect::<NodeSet>().and(&may);
    let (near, far) = (set(&found.near), set(&found.far));
    let both = !near.is_empty() && !far.is_empty();
    both.then_some(Tiers { near, far, certainty: found.certainty, why: found.why })
}

/// Nodes with memory that this process may use.
pub fn usable(topology: &Topology) -> NodeSet {
    topology.nodes.iter().filter(|node| node.bytes > 0 && node.allowed).map(|node| node.id).collect()
}

/// Usable nodes of memory of GPUs, which is used only when it is named.
pub fn gpu_nodes(topology: &Topology) -> NodeSet {
    let usable = usable(topology);
    let is_gpu = |node: &&MemoryNode| node.kind == MemoryKind::Gpu && usable.contains(node.id);
    topology.nodes.iter().filter(is_gpu).map(|node| node.id).collect()
}

/// Usable nodes that are not in `these`, less those that are used only when they are named.
pub fn others(topology: &Topology, these: &NodeSet) -> NodeSet {
    let gpu = gpu_nodes(topology);
    usable(topology).iter().filter(|&node| !these.contains(node) && !gpu.contains(node)).collect()
}

/// Those of `among` that are nearest to node `from`, by distance; several when they are equally near, all when nothing is known.
pub fn nearest(topology: &Topology, from: u32, among: &NodeSet) -> NodeSet {
    let distance = |node: u32| topology.distance(from, node);
    let Some(least) = among.iter().filter_map(distance).min() else { return *among };
    among.iter().filter(|&node| distance(node) == Some(least)).collect()
}

/// Bytes of the nodes of `set` together.
pub fn bytes(topology: &Topology, set: &NodeSet) -> u64 {
    sum(topology, set, |node| node.bytes)
}

/// Bytes that were free when `topology` was read.
pub fn free_bytes(topology: &Topology, set: &NodeSet) -> u64 {
    sum(topology, set, |node| node.free_bytes)
}

fn sum(topology: &Topology, set: &NodeSet, of: impl Fn(&MemoryNode) -> u64) -> u64 {
    topology.nodes.iter().filter(|node| set.contains(node.id)).map(of).fold(0, u64::saturating_add)
}

/// "HBM on node 1", "DRAM on nodes 0-1".
pub fn name(topology: &Topology, set: &NodeSet) -> String {
    let mut kinds: Vec<&str> = Vec::new();
    for node in topology.nodes.iter().filter(|node| set.contains(node.id)) {
        let kind = match node.kind {
            MemoryKind::Unknown => "memory",
            kind => kind.name(),
        };
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    format!("{} on node{} {set}", kinds.join(" and "), if set.len() == 1 { "" } else { "s" })
}

/// Why nodes cannot be tiers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NodesError {
    /// The machine has no node of this number.
    #[error("there is no node {node}; this machine has {}", list(have))]
    NoSuchNode {
        /// The node.
        node: u32,
        /// Nodes with memory that may be used.
        have: CpuList,
    },
    /// The node has no memory, or it is offline.
    #[error(
        "node {node} has no memory, or it is offline (\"chmem -e\" or \"daxctl online-memory\" bring it online, as root); \
         this machine has {}",
        list(have)
    )]
    NoMemory {
        /// The node.
        node: u32,
        /// Nodes with memory that may be used.
        have: CpuList,
    },
    /// The cpuset does not allow it.
    #[error(
        "memory of node {node} may not be used by this process (its cpuset or batch job forbids it); it may use {}",
        list(have)
    )]
    NotAllowed {
        /// The node.
        node: u32,
        /// Nodes with memory that may be used.
        have: CpuList,
    },
    /// In both tiers.
    #[error("node {0} cannot be near and far at once")]
    Overlap(u32),
    /// More near was asked for than there is.
    #[error("{} were asked for, but node{} {nodes} ha{} {}", Bytes(*asked), plural(nodes), if nodes.len() == 1 { "s" } else { "ve" }, Bytes(*have))]
    TooMuch {
        /// Bytes that were asked for.
        asked: u64,
        /// Bytes that the nodes have.
        have: u64,
        /// The nodes.
        nodes: CpuList,
    },
}

fn plural(nodes: &CpuList) -> &'static str {
    if nodes.len() == 1 { "" } else { "s" }
}

fn list(nodes: &CpuList) -> String {
    if nodes.is_empty() { "none".to_owned() } else { format!("node{} {nodes}", plural(nodes)) }
}

/// Checks that every node of `set` has memory that this process may use.
///
/// # Errors
/// The lowest node that cannot be used.
pub fn check(topology: &Topology, set: &NodeSet) -> Result<(), NodesError> {
    let have = usable(topology);
    let Some(node) = set.iter().find(|&node| !have.contains(node)) else { return Ok(()) };
    let have = have.iter().collect();
    Err(match topology.node(node) {
        None => NodesError::NoSuchNode { node, have },
        Some(found) if found.bytes == 0 => NodesError::NoMemory { node, have },
        Some(_) => NodesError::NotAllowed { node, have },
    })
}

/// Checks a pair of tiers: usable nodes, none in both, and no more near than there is.
///
/// # Errors
/// The first thing that is wrong.
pub fn check_pair(topology: &Topology, near: &NodeSet, far: &NodeSet, limit: Option<u64>) -> Result<(), NodesError> {
    check(topology, near)?;
    check(topology, far)?;
    if let Some(node) = near.and(far).first() {
        return Err(NodesError::Overlap(node));
    }
    let have = bytes(topology, near);
    match limit {
        Some(asked) if asked > have => Err(NodesError::TooMuch { asked, have, nodes: near.iter().collect() }),
        _ => Ok(()),
    }
}

/// Where bandwidths come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Measured by `nearfar probe`.
    Measured,
    /// Claimed by the firmware (HMAT).
    Claimed,
}

/// Bytes per second of each node of `set`, ascending: as `measured` has them, else as the firmware of `topology` claims. `None` when
/// neither knows all of them.
pub fn rates(topology: &Topology, measured: Option<&Node>, set: &NodeSet) -> Option<(Vec<f64>, Source)> {
    let all = |of: &dyn Fn(u32) -> Option<f64>| -> Option<Vec<f64>> {
        set.iter().map(|node| of(node).filter(|rate| rate.is_finite() && *rate > 0.0)).collect()
    };
    let in_file = |file: &Node, node: u32| {
        let memory = Memory::Node(node);
        file.triad(memory).map(|rate| rate.median).or_else(|| Some(file.best_bandwidth(memory)?.rate.median))
    };
    let measured = measured.and_then(|file| all(&|node| in_file(file, node)));
    let claimed = || all(&|node| topology.node(node)?.claim?.read_bytes_per_s);
    measured.map(|rates| (rates, Source::Measured)).or_else(|| Some((claimed()?, Source::Claimed)))
}

/// Error of a weight's share that is not worth larger numbers: bandwidths are not known better.
const GOOD_ENOUGH: f64 = 0.05;

/// Weights in the proportion of `rates`, as small as a good proportion allows: each is within 5 % of what it should be relative to
/// the least, where no rate is more than 25 times another. Rates that are no positive numbers get 1.
pub fn weights(rates: &[f64]) -> Vec<u8> {
    const MOST: f64 = u8::MAX as f64;
    let is_rate = |rate: &&f64| rate.is_finite() && **rate > 0.0;
    let least = rates.iter().filter(is_rate).copied().fold(f64::INFINITY, f64::min);
    let most = rates.iter().filter(is_rate).copied().fold(0.0, f64::max);
    if most == 0.0 {
        return vec![1; rates.len()];
    }
    let exact = |rate: f64, factor: f64| if is_rate(&&rate) { rate / least * factor } else { 1.0 };
    let good =
        |factor: f64| rates.iter().all(|&rate| (exact(rate, factor).round() / exact(rate, factor) - 1.0).abs() <= GOOD_ENOUGH);
    let largest = (MOST / (most / least)).max(1.0);
    let factor = (1..=16).map(f64::from).take_while(|&factor| factor <= largest).find(|&factor| good(factor));
    let factor = factor.unwrap_or_else(|| largest.min(16.0).floor());
    rates.iter().map(|&rate| exact(rate, factor).round().clamp(1.0, MOST) as u8).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::{Bandwidth, Claim, Figure, Operation};
    use proptest::prelude::*;

    fn set(text: &str) -> NodeSet {
        text.parse::<crate::node::CpuList>().unwrap().as_slice().iter().copied().collect()
    }

    /// Four nodes: two with CPUs, HBM beside each; node 3 is not ours, node 4 has no memory.
    fn machine() -> Topology {
        let node = |id: u32| MemoryNode {
            id,
            bytes: if id == 4 { 0 } else { 1 << 30 },
            free_bytes: 1 << 29,
            allowed: id != 3,
            kind: if id < 2 { MemoryKind::Dram } else { MemoryKind::Hbm },
            claim: Some(Claim { read_bytes_per_s: Some(if id < 2 { 90e9 } else { 400e9 }), ..Claim::default() }),
            ..MemoryNode::default()
        };
        let distances = vec![vec![10, 21, 13, 23, 30], vec![21, 10, 23, 13, 30], vec![13, 23, 10, 23, 30]];
        Topology { nodes: (0..5).map(node).collect(), distances, ..Topology::default() }
    }

    #[test]
    fn tiers_are_what_may_be_used() {
        let found = tiers_of(&machine()).unwrap();
        assert_eq!((found.near, found.far), (set("2"), set("0-1")));
        assert!(found.why.contains("HBM"), "{}", found.why);
        let mut machine = machine();
        machine.nodes[2].allowed = false;
        assert_eq!(tiers_of(&machine), None, "no near memory may be used");
        assert_eq!(others(&machine, &set("0")), set("1"));
        assert_eq!(name(&machine, &set("0-1")), "DRAM on nodes 0,1");
    }

    #[test]
    fn memory_of_gpus_is_taken_only_when_it_is_named() {
        let mut machine = machine();
        machine.nodes.iter_mut().filter(|node| node.id >= 2).for_each(|node| node.kind = MemoryKind::Gpu);
        assert_eq!(tiers_of(&machine), None, "nothing else is left");
        assert_eq!((gpu_nodes(&machine), others(&machine, &set("0"))), (set("2"), set("1")));
        assert_eq!(check_pair(&machine, &set("0-1"), &set("2"), None), Ok(()), "named");
        // A slower memory beside it is far, alone.
        machine.nodes[1].kind = MemoryKind::Cxl;
        let found = tiers_of(&machine).unwrap();
        assert_eq!((found.near, found.far), (set("0"), set("1")), "{}", found.why);
        assert!(!found.why.contains("GPU"), "{}", found.why);
    }

    #[test]
    fn nearest_nodes_with_ties() {
        let machine = machine();
        assert_eq!(nearest(&machine, 0, &set("2-3")), set("2"));
        assert_eq!(nearest(&machine, 1, &set("2-3")), set("3"));
        assert_eq!(nearest(&machine, 2, &set("1,3")), set("1,3"), "equally near");
        assert_eq!(nearest(&machine, 9, &set("2-3")), set("2-3"), "unknown");
    }

    #[test]
    fn pairs_are_checked() {
        let machine = machine();
        let check = |near, far, limit| check_pair(&machine, &set(near), &set(far), limit).map_err(|error| error.to_string());
        assert_eq!(check("2", "0-1", Some(1 << 30)), Ok(()));
        for (near, far, limit, hint) in [
            ("7", "0", None, "no node 7; this machine has nodes 0-2"),
            ("4", "0", None, "node 4 has no memory"),
            ("2", "3", None, "node 3 may not be used"),
            ("0,2", "0-1", None, "node 0 cannot be near and far"),
            ("2", "0", Some(2 << 30), "2.0 GiB were asked for, but node 2 has 1.0 GiB"),
        ] {
            let error = check(near, far, limit).unwrap_err();
            assert!(error.contains(hint), "{error}");
        }
    }

    #[test]
    fn measured_rates_go_before_claims() {
        let machine = machine();
        assert_eq!(rates(&machine, None, &set("0,2")), Some((vec![90e9, 400e9], Source::Claimed)));
        let mut file = Node::default();
        for (node, rate) in [(0, 80e9), (2, 300e9)] {
            let rate = Figure { median: rate, ..Figure::default() };
            file.bandwidth.push(Bandwidth {
                memory: Memory::Node(node),
                operation: Operation::Triad,
                rate,
                ..Bandwidth::default()
            });
        }
        assert_eq!(rates(&machine, Some(&file), &set("0,2")), Some((vec![80e9, 300e9], Source::Measured)));
        assert_eq!(rates(&machine, Some(&file), &set("0-1")), Some((vec![90e9, 90e9], Source::Claimed)));
        let silent = Topology { nodes: vec![MemoryNode::default()], ..Topology::default() };
        assert_eq!(rates(&silent, None, &set("0")), None);
    }

    #[test]
    fn weights_are_small() {
        assert_eq!(weights(&[200e9, 200e9]), [1, 1]);
        assert_eq!(weights(&[90e9, 400e9]), [2, 9]);
        assert_eq!(weights(&[200e9, 30e9]), [13, 2]);
        assert_eq!(weights(&[200e9, 66e9]), [3, 1]);
        assert_eq!(weights(&[1.0, 1e9]), [1, 255]);
        assert_eq!(weights(&[0.0, f64::NAN]), [1, 1]);
        assert!(weights(&[]).is_empty());
    }

    proptest! {
        #[test]
        fn weights_keep_the_proportion(rates in prop::collection::vec(1.0f64..15.0, 1..9)) {
            let found = weights(&rates);
            let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
            let unit = f64::from(*found.iter().min().unwrap());
            prop_assert_eq!(found.len(), rates.len());
            for (&rate, &weight) in rates.iter().zip(&found) {
                let share = f64::from(weight) / unit / (rate / least);
                prop_assert!((share - 1.0).abs() <= 0.05 + 1e-9, "{} for {} of {}", weight, rate, least);
            }
        }

        #[test]
        fn any_rates_give_weights(rates in prop::collection::vec(any::<f64>(), 0..9)) {
            prop_assert!(weights(&rates).iter().all(|&weight| weight >= 1));
        }
    }
}
