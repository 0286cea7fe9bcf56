//! What a program inherits when it is started: the CPUs it may use and where its memory comes from. This reaches all that it starts
//! as well, static programs included, and memory that nothing else places: program text read from files, static data, stacks.

use crate::exit::refuse;
use nearfar_core::addr::PAGE;
use nearfar_core::node::{CpuList, Topology};
use nearfar_core::placement::{Full, NodeSet, Placement, Policy, Spread};
use nearfar_sys::affinity::{self, AffinityError};
use nearfar_sys::map::OwnedMap;
use nearfar_sys::numa::{self, MemoryPolicy, NumaError, PolicyMode};

/// CPUs and memory.
#[derive(Clone, Debug, Default)]
pub struct Binding {
    /// CPUs; `None`: those of the caller.
    pub cpus: Option<CpuList>,
    /// Memory; `None`: as the caller's.
    pub memory: Option<MemoryPolicy>,
}

impl Binding {
    /// Runs `spawn` with these; the caller is then as before.
    ///
    /// # Errors
    /// The system does not allow it; `spawn` has not run then.
    pub fn with<R>(&self, spawn: impl FnOnce() -> R) -> anyhow::Result<R> {
        let confined = || match &self.cpus {
            Some(cpus) => affinity::confined(cpus, spawn),
            None => Ok(spawn()),
        };
        let cannot = |error: AffinityError| refuse(format_args!("--cpus: {error}"));
        let Some(memory) = &self.memory else { return confined().map_err(cannot) };
        // A policy that cannot be asked for cannot be put back either, and is the default then.
        let before = numa::of_thread().unwrap_or_else(|_| MemoryPolicy::new(PolicyMode::Default, NodeSet::EMPTY));
        numa::set_thread(memory).map_err(|error| {
            refuse(format_args!(
                "memory cannot be taken from the nodes that were named: {error}; name a size with --near and a directory with --far to have \
                 memory paged instead"
            ))
        })?;
        let result = confined();
        let _ = numa::set_thread(&before);
        result.map_err(cannot)
    }

    /// Fails with a refusal when the system does not allow it.
    pub fn check(&self) -> anyhow::Result<()> {
        self.with(|| ())
    }
}

/// Where memory comes from that nobody places by itself, under `placement`.
pub fn memory_of(placement: &Placement) -> Option<MemoryPolicy> {
    let near = placement.policy == Policy::All;
    let (nodes, spread) = if near { (placement.near, placement.near_spread) } else { (placement.far, placement.far_spread) };
    let mode = match spread {
        _ if nodes.is_empty() => return None,
        Spread::Weighted => PolicyMode::WeightedInterleave,
        Spread::Interleave => PolicyMode::Interleave,
        // The only mode that takes no other node. Waiting is done before memory is granted, so that a stack may still spill.
        Spread::Nearest if near && placement.full == Full::Fail => PolicyMode::Bind,
        Spread::Nearest => preferred(&nodes),
    };
    Some(MemoryPolicy::new(mode, nodes))
}

/// Whether memory can be given to `nodes`, tried on a page and on this thread, which is then as before. Fails with the call that
/// cannot be made, and why.
pub fn try_placing(nodes: &NodeSet) -> Result<(), String> {
    let policy = MemoryPolicy::new(preferred(nodes), *nodes);
    let said = |call: &'static str| move |error: NumaError| format!("{call}: {error}");
    let page = OwnedMap::new(PAGE).map_err(NumaError::Other).map_err(said("a page"))?;
    numa::set_range(page.range(), &policy, false).map_err(said("mbind"))?;
    let before = numa::of_thread().unwrap_or_else(|_| MemoryPolicy::new(PolicyMode::Default, NodeSet::EMPTY));
    numa::set_thread(&policy).map_err(said("set_mempolicy"))?;
    numa::set_thread(&before).map_err(said("set_mempolicy"))
}

/// The mode that prefers `nodes`.
pub fn preferred(nodes: &NodeSet) -> PolicyMode {
    if nodes.len() == 1 { PolicyMode::Preferred } else { PolicyMode::PreferredMany }
}

/// The CPUs that `text` names (`0-3,8`, `node:0`), all of which must be usable. `topology` is asked for the CPUs of nodes.
pub fn cpus(text: &str, allowed: &CpuList, topology: impl FnOnce() -> Topology) -> anyhow::Result<CpuList> {
    let bad = |why: &dyn std::fmt::Display| {
        refuse(format_args!("--cpus {text}: {why}; write CPUs (0-3,8) or nodes (node:0), of those that may be used: {allowed}"))
    };
    let Some(list) = text.strip_prefix("node:") else {
        let cpus: CpuList = text.parse().map_err(|error: String| bad(&error))?;
        let absent: CpuList = cpus.as_slice().iter().copied().filter(|&cpu| !allowed.contains(cpu)).collect();
        return match (cpus.is_empty(), absent.is_empty()) {
            (true, _) => Err(bad(&"no CPU is named")),
            (_, false) => Err(bad(&format_args!("CPU {absent} is offline or may not be used"))),
            _ => Ok(cpus),
        };
    };
    let nodes: CpuList = list.parse().map_err(|error: String| bad(&error))?;
    if nodes.is_empty() {
        return Err(bad(&"no node is named"));
    }
    let topology = topology();
    let mut cpus = Vec::new();
    for &id in nodes.as_slice() {
        let node = topology.node(id).ok_or_else(|| bad(&format_args!("there is no node {id}")))?;
        if node.cpus.is_empty() {
            return Err(bad(&format_args!("node {id} has no CPUs")));
        }
        let usable = node.cpus.and(allowed);
        if usable.is_empty() {
            return Err(bad(&format_args!("none of the CPUs of node {id} ({}) may be used", node.cpus)));
        }
        cpus.extend_from_slice(usable.as_slice());
    }
    Ok(cpus.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearfar_core::node::MemoryNode;

    fn set(nodes: &[u32]) -> NodeSet {
        nodes.iter().copied().collect()
    }

    #[test]
    fn memory_follows_the_placement() {
        let near = set(&[1]);
        let placement =
            |policy, full, near_spread| Placement { policy, full, near_spread, near, far: set(&[0, 2]), ..Placement::default() };
        let mode = |policy, full, spread| memory_of(&placement(policy, full, spread)).map(|memory| (memory.mode, memory.nodes));
        assert_eq!(mode(Policy::All, Full::Spill, Spread::Nearest), Some((PolicyMode::Preferred, near)));
        assert_eq!(mode(Policy::All, Full::Wait, Spread::Nearest), Some((PolicyMode::Preferred, near)));
        assert_eq!(mode(Policy::All, Full::Fail, Spread::Nearest), Some((PolicyMode::Bind, near)));
        assert_eq!(mode(Policy::All, Full::Fail, Spread::Interleave), Some((PolicyMode::Interleave, near)));
        assert_eq!(mode(Policy::All, Full::Spill, Spread::Weighted), Some((PolicyMode::WeightedInterleave, near)));
        for policy in [Policy::None, Policy::Sizes, Policy::Plan, Policy::Calls] {
            assert_eq!(
                mode(policy, Full::Fail, Spread::Interleave),
                Some((PolicyMode::PreferredMany, set(&[0, 2]))),
                "{policy:?}"
            );
        }
        assert_eq!(memory_of(&Placement { policy: Policy::Sizes, near, ..Placement::default() }), None, "far is nothing");
    }

    #[test]
    fn cpus_by_number_and_by_node() {
        let node = |id, cpus: &str| MemoryNode { id, cpus: cpus.parse().expect("a list"), ..MemoryNode::default() };
        let topology = || Topology { nodes: vec![node(0, "0-3"), node(1, ""), node(2, "8-9")], ..Topology::default() };
        let allowed: CpuList = "1-5".parse().expect("a list");
        let cpus = |text| cpus(text, &allowed, topology).map(|cpus| cpus.to_string()).map_err(|error| error.to_string());
        assert_eq!((cpus("1,4-5"), cpus("node:0")), (Ok("1,4-5".into()), Ok("1-3".into())));
        for (bad, hint) in [
            ("", "no CPU"),
            ("a", "not a range"),
            ("5-1", "not a range"),
            ("0-2", "CPU 0 is offline or may not"),
            ("node:", "no node"),
            ("node:7", "no node 7"),
            ("node:1", "has no CPUs"),
            ("node:2", "none of the CPUs"),
        ] {
            let error = cpus(bad).expect_err(bad);
            assert!(error.contains(hint) && error.contains("of those that may be used: 1-5"), "{bad}: {error}");
        }
    }

    #[test]
    fn the_caller_is_as_before() {
        let all = affinity::of(0).expect("own CPUs");
        let one: CpuList = all.as_slice().iter().copied().take(1).collect();
        let memory = Some(MemoryPolicy::new(PolicyMode::Preferred, set(&[0])));
        let start = Binding { cpus: Some(one.clone()), memory };
        match start.with(|| (affinity::of(0), numa::of_thread())) {
            Ok((cpus, memory)) => {
                assert_eq!(cpus, Ok(one));
                assert_eq!(memory.map(|memory| memory.mode), Ok(PolicyMode::Preferred));
            }
            Err(error) => assert!(error.to_string().contains("system"), "{error}"),
        }
        assert_eq!(affinity::of(0), Ok(all));
        let tried = try_placing(&[numa::here().1].into_iter().collect());
        assert!(
            tried.is_ok() || tried.as_ref().is_err_and(|why| why.contains("mbind") || why.contains("set_mempolicy")),
            "{tried:?}"
        );
        assert!(numa::of_thread().is_ok_and(|memory| memory.mode == PolicyMode::Default) || numa::of_thread().is_err());
    }
}
