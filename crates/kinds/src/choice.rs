//! Which nodes serve a kind, for each CPU node: decided from a description of the machine and the variables, without asking either.
//!
//! Rules that differ from memkind, each for a reason: high bandwidth is what nearfar's own detection calls HBM, on any processor and
//! also where it is the only memory; nodes that the cpuset forbids do not count; where the firmware claims no speeds, the kinds of
//! memory order the local nodes; memory of GPUs is used only when it is named.

use crate::code;
use crate::environment::{DEFAULT_THRESHOLD_MB, Environment};
use crate::static_kind::{Family, NodeChoice, StaticKind};
use nearfar_core::node::{MemoryKind, MemoryNode, Topology};
use nearfar_core::placement::NodeSet;
use nearfar_sys::numa::PolicyMode;
use std::ffi::c_int;

/// Why a kind is not to be had: the code that memkind documents, and the reason for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unavailable {
    /// As `memkind_check_available` returns it.
    pub code: c_int,
    /// For the log.
    pub why: String,
}

fn unavailable(code: c_int, why: impl Into<String>) -> Unavailable {
    Unavailable { code, why: why.into() }
}

/// What a kind is made of on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// How the kernel picks among the nodes.
    pub mode: PolicyMode,
    /// Every node that may serve it.
    pub nodes: NodeSet,
    /// By number of the CPU's node: the nodes that serve it. An empty set is a tie, where the kind fails.
    pub by_cpu_node: Vec<NodeSet>,
    /// Bytes of `nodes`.
    pub bytes: u64,
}

impl Choice {
    /// Memory from wherever the thread's policy says.
    pub fn anywhere() -> Self {
        Self { mode: PolicyMode::Default, nodes: NodeSet::EMPTY, by_cpu_node: vec![NodeSet::EMPTY], bytes: 0 }
    }

    /// The set that serves every CPU, if it is the same for all.
    pub fn only(&self) -> Option<&NodeSet> {
        let first = self.by_cpu_node.first()?;
        self.by_cpu_node.iter().all(|set| set == first).then_some(first)
    }
}

/// What `kind` is on this machine.
///
/// # Errors
/// See [`Unavailable`].
pub fn choose(topology: &Topology, environment: &Environment, kind: StaticKind) -> Result<Choice, Unavailable> {
    let machine = Machine { topology, environment };
    let is_ordinary = !matches!(kind.family(), Family::HighBandwidth | Family::DaxKmem | Family::Gone);
    if is_ordinary && machine.ordinary().next().is_none() {
        // Nothing is shown of the machine, as in some containers: memory is memory.
        return Ok(Choice::anywhere());
    }
    let mode = match (kind.family(), kind.node_choice()) {
        (Family::Default, _) => PolicyMode::Default,
        (_, NodeChoice::Nearest | NodeChoice::All) => PolicyMode::Bind,
        (_, NodeChoice::Preferred) => PolicyMode::Preferred,
        (_, NodeChoice::Interleaved) => PolicyMode::Interleave,
    };
    let members = machine.members(kind.family())?;
    let serve = |cpu_node: u32| match (kind.family(), kind.node_choice()) {
        (Family::HighestCapacityLocal | Family::LowestLatencyLocal | Family::HighestBandwidthLocal, _) => {
            machine.best_local(kind.family(), cpu_node)
        }
        (_, NodeChoice::All | NodeChoice::Interleaved) => Ok(members),
        (Family::HighestCapacity, _) => Ok(members),
        _ => Ok(machine.nearest(cpu_node, &members)),
    };
    let single = |set: NodeSet| if kind.node_choice() == NodeChoice::Preferred && set.len() > 1 { NodeSet::EMPTY } else { set };
    let cpu_nodes = machine.cpu_nodes();
    let mut by_cpu_node = Vec::new();
    let mut error = None;
    let highest = cpu_nodes.iter().copied().max().unwrap_or(0);
    for node in 0..=highest {
        // Nodes without CPUs are never asked for; what stands there must not spoil `only`.
        let asked = if cpu_nodes.contains(&node) { node } else { cpu_nodes.first().copied().unwrap_or(0) };
        by_cpu_node.push(serve(asked).map(single).unwrap_or_else(|why| {
            error = Some(why);
            NodeSet::EMPTY
        }));
    }
    if by_cpu_node.iter().all(NodeSet::is_empty) && mode != PolicyMode::Default {
        let tie = || unavailable(code::RUNTIME, format!("several nodes are equally near ({members}), and this kind needs one"));
        return Err(error.unwrap_or_else(tie));
    }
    let nodes: NodeSet = match mode {
        PolicyMode::Default => members,
        _ => by_cpu_node.iter().flat_map(NodeSet::iter).collect(),
    };
    let bytes =
        topology.nodes.iter().filter(|node| nodes.contains(node.id)).fold(0, |sum: u64, node| sum.saturating_add(node.bytes));
    Ok(Choice { mode, nodes, by_cpu_node, bytes })
}

/// The nodes of high bandwidth, as `memkind-hbw-nodes` prints them.
///
/// # Errors
/// See [`Unavailable`].
pub fn high_bandwidth_nodes(topology: &Topology, environment: &Environment) -> Result<NodeSet, Unavailable> {
    Machine { topology, environment }.high_bandwidth()
}

struct Machine<'a> {
    topology: &'a Topology,
    environment: &'a Environment,
}

impl Machine<'_> {
    /// Nodes whose memory this process may use.
    fn usable(&self) -> impl Iterator<Item = &MemoryNode> {
        self.topology.nodes.iter().filter(|node| node.bytes > 0 && node.allowed)
    }

    /// The same without memory that is used only when it is named.
    fn ordinary(&self) -> impl Iterator<Item = &MemoryNode> {
        self.usable().filter(|node| node.kind != MemoryKind::Gpu)
    }

    fn set_of<'n>(nodes: impl Iterator<Item = &'n MemoryNode>) -> NodeSet {
        nodes.map(|node| node.id).collect()
    }

    /// Nodes that a thread can run on; 0 alone where the kernel does not say.
    fn cpu_nodes(&self) -> Vec<u32> {
        let nodes: Vec<u32> = self.topology.nodes.iter().filter(|node| !node.cpus.is_empty()).map(|node| node.id).collect();
        if nodes.is_empty() { vec![0] } else { nodes }
    }

    fn distance(&self, from: u32, to: u32) -> u32 {
        self.topology.distance(from, to).unwrap_or(if from == to { 10 } else { u32::MAX })
    }

    /// Of `members`, those at the least distance from `cpu_node`.
    fn nearest(&self, cpu_node: u32, members: &NodeSet) -> NodeSet {
        let least = members.iter().map(|node| self.distance(cpu_node, node)).min();
        members.iter().filter(|&node| Some(self.distance(cpu_node, node)) == least).collect()
    }

    fn members(&self, family: Family) -> Result<NodeSet, Unavailable> {
        let all = || Self::set_of(self.ordinary());
        match family {
            Family::Default | Family::Every => Ok(all()),
            Family::Regular => {
                let with_cpus = Self::set_of(self.ordinary().filter(|node| !node.cpus.is_empty()));
                Ok(if with_cpus.is_empty() { all() } else { with_cpus })
            }
            Family::HighBandwidth => self.high_bandwidth(),
            Family::DaxKmem => self.dax_kmem(),
            Family::HighestCapacity => {
                let most = self.ordinary().map(|node| node.bytes).max();
                Ok(Self::set_of(self.ordinary().filter(|node| Some(node.bytes) == most)))
            }
            Family::HighestCapacityLocal | Family::LowestLatencyLocal | Family::HighestBandwidthLocal => Ok(all()),
            Family::Gone => Err(unavailable(code::UNAVAILABLE, "kinds of 1 GiB chunks no longer exist, as in memkind itself")),
        }
    }

    fn high_bandwidth(&self) -> Result<NodeSet, Unavailable> {
        let bad = |name: &str, why: &str| unavailable(code::ENVIRON, format!("{name}: {why}"));
        match &self.environment.hbw_nodes {
            Err(problem) => return Err(unavailable(code::ENVIRON, problem.to_string())),
            Ok(Some(list)) => {
                return list.nodes(&Self::set_of(self.usable())).map_err(|why| bad("MEMKIND_HBW_NODES", &why));
            }
            Ok(None) => {}
        }
        let threshold = match &self.environment.threshold {
            Err(problem) => return Err(unavailable(code::ENVIRON, problem.to_string())),
            Ok(threshold) => *threshold,
        };
        // A threshold that the user gave goes before what we think of the memories.
        let by_kind = Self::set_of(self.ordinary().filter(|node| node.kind == MemoryKind::Hbm));
        if threshold.is_none() && !by_kind.is_empty() {
            return Ok(by_kind);
        }
        let least = threshold.unwrap_or(DEFAULT_THRESHOLD_MB as f64 * 1e6);
        let is_wide = |node: &&MemoryNode| {
            let claimed = node.claim.and_then(|claim| claim.read_bytes_per_s);
            claimed.is_some_and(|rate| rate >= least)
        };
        let wide = Self::set_of(self.ordinary().filter(is_wide));
        // By claims alone, memory is of high bandwidth only beside slower memory: fast DDR everywhere is ordinary memory.
        let is_told_apart = threshold.is_some() || self.ordinary().any(|node| !wide.contains(node.id));
        if wide.is_empty() || !is_told_apart {
            let why = "the machine shows no memory of high bandwidth (MEMKIND_HBW_NODES can name nodes with it)";
            return Err(unavailable(code::MEMTYPE_NOT_AVAILABLE, why));
        }
        Ok(wide)
    }

    fn dax_kmem(&self) -> Result<NodeSet, Unavailable> {
        match &self.environment.dax_nodes {
            Err(problem) => return Err(unavailable(code::ENVIRON, problem.to_string())),
            Ok(Some(list)) => {
                let nodes = list.nodes(&Self::set_of(self.usable()));
                return nodes.map_err(|why| unavailable(code::ENVIRON, format!("MEMKIND_DAX_KMEM_NODES: {why}")));
            }
            Ok(None) => {}
        }
        let added = |node: &&MemoryNode| {
            let has_device = self.topology.dax.iter().any(|dax| dax.node == Some(node.id));
            let is_slow = matches!(node.kind, MemoryKind::Pmem | MemoryKind::Cxl);
            is_slow || (has_device && node.cpus.is_empty() && node.kind != MemoryKind::Hbm)
        };
        let nodes = Self::set_of(self.ordinary().filter(added));
        let why = "no node is persistent or CXL memory (MEMKIND_DAX_KMEM_NODES can name nodes that are)";
        if nodes.is_empty() { Err(unavailable(code::UNAVAILABLE, why)) } else { Ok(nodes) }
    }

    /// Memory of the same neighbourhood as `cpu_node`: its own, and what has no CPUs and none nearer.
    fn local(&self, cpu_node: u32) -> Vec<&MemoryNode> {
        let cpu_nodes = self.cpu_nodes();
        let belongs = |node: &&MemoryNode| {
            let least = cpu_nodes.iter().map(|&home| self.distance(home, node.id)).min();
            node.id == cpu_node || (node.cpus.is_empty() && Some(self.distance(cpu_node, node.id)) == least)
        };
        let local: Vec<&MemoryNode> = self.ordinary().filter(belongs).collect();
        if !local.is_empty() {
            return local;
        }
        let nearest = self.nearest(cpu_node, &Self::set_of(self.ordinary()));
        self.ordinary().filter(|node| nearest.contains(node.id)).collect()
    }

    /// The one local node that is best; of equals the smaller, or for capacity the slower one.
    fn best_local(&self, family: Family, cpu_node: u32) -> Result<NodeSet, Unavailable> {
        let mut local = self.local(cpu_node);
        let latency = |node: &MemoryNode| node.claim.and_then(|claim| claim.read_ns);
        let bandwidth = |node: &MemoryNode| node.claim.and_then(|claim| claim.read_bytes_per_s);
        let distance = |node: &MemoryNode| self.distance(cpu_node, node.id);
        let has_all = |value: &dyn Fn(&MemoryNode) -> Option<f64>| local.iter().all(|node| value(node).is_some());
        let one = |nodes: &[&MemoryNode]| Ok(nodes.first().map(|node| node.id).into_iter().collect());
        if family == Family::HighestCapacityLocal {
            let by_claim = has_all(&latency);
            local.sort_by(|a, b| {
                let slower = if by_claim { latency(b).partial_cmp(&latency(a)) } else { None };
                b.bytes.cmp(&a.bytes).then(slower.unwrap_or(distance(b).cmp(&distance(a)))).then(a.id.cmp(&b.id))
            });
            return one(&local);
        }
        let (claimed, rank): (&Claimed, Rank) = match family {
            Family::LowestLatencyLocal => (&latency, latency_rank),
            _ => (&bandwidth, bandwidth_rank),
        };
        let key: Box<dyn Fn(&MemoryNode) -> f64> = if has_all(claimed) {
            let sign = if family == Family::LowestLatencyLocal { 1.0 } else { -1.0 };
            Box::new(move |node| claimed(node).unwrap_or(0.0) * sign)
        } else if local.len() == 1 {
            Box::new(|_| 0.0)
        } else if local.iter().all(|node| rank(node.kind).is_some()) {
            Box::new(move |node| rank(node.kind).map_or(f64::MAX, f64::from))
        } else {
            let why = format!("nothing says which memory near node {cpu_node} is faster: no HMAT, and not all kinds are known");
            return Err(unavailable(code::MEMTYPE_NOT_AVAILABLE, why));
        };
        local.sort_by(|a, b| key(a).total_cmp(&key(b)).then(a.bytes.cmp(&b.bytes)).then(a.id.cmp(&b.id)));
        one(&local)
    }
}

/// What the firmware claims of a node.
type Claimed = dyn Fn(&MemoryNode) -> Option<f64>;
/// Order of kinds of memory, the best first.
type Rank = fn(MemoryKind) -> Option<u32>;

/// Order of latency where nothing is claimed: HBM answers a little later than DDR.
fn latency_rank(kind: MemoryKind) -> Option<u32> {
    Some(match kind {
        MemoryKind::Dram => 0,
        MemoryKind::Hbm => 1,
        MemoryKind::Cxl => 2,
        MemoryKind::Pmem => 3,
        MemoryKind::Gpu | MemoryKind::Unknown => return None,
    })
}

/// Order of bandwidth, the widest first.
fn bandwidth_rank(kind: MemoryKind) -> Option<u32> {
    Some(match kind {
        MemoryKind::Hbm => 0,
        MemoryKind::Dram => 1,
        MemoryKind::Cxl => 2,
        MemoryKind::Pmem => 3,
        MemoryKind::Gpu | MemoryKind::Unknown => return None,
    })
}
