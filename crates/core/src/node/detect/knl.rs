//! Memory mode and cluster mode of Knights Landing and Knights Mill. Root reads both from SMBIOS; everyone else goes by number and size
//! of the nodes: MCDRAM is a node without CPUs in flat and hybrid mode, and nowhere to be seen in cache mode.

use super::{GIB, MASKED, conclude, counted, nodes_text, size, total, unknown};
use crate::node::{Certainty, Finding, Firmware, KnlModes, MemoryNode, Subject, Topology};
use std::collections::BTreeMap;

/// MCDRAM of every Knights Landing.
pub(super) const MCDRAM: u64 = 16 * GIB;

/// What is known of the modes.
struct Modes {
    memory: (String, Certainty),
    cluster: (String, Certainty),
    evidence: Vec<String>,
}

pub(super) fn memory_mode(topology: &Topology, firmware: Option<&Firmware>) -> Finding {
    match modes(topology, firmware) {
        Ok(modes) => conclude(Subject::MemoryMode, modes.memory.0, modes.memory.1, modes.evidence),
        Err(evidence) => unknown(Subject::MemoryMode, evidence),
    }
}

pub(super) fn cluster_mode(topology: &Topology, firmware: Option<&Firmware>) -> Finding {
    match modes(topology, firmware) {
        Ok(modes) => conclude(Subject::ClusterMode, modes.cluster.0, modes.cluster.1, modes.evidence),
        Err(evidence) => unknown(Subject::ClusterMode, evidence),
    }
}

/// MCDRAM that is cache, in bytes, as far as the modes tell.
pub(super) fn cache_bytes(topology: &Topology, firmware: Option<&Firmware>) -> Option<u64> {
    let told = firmware.and_then(|firmware| firmware.knl);
    if let Some(KnlModes { memory, cache, .. }) = told {
        return match (memory, cache) {
            (1, _) => Some(MCDRAM),
            (4, 1) => Some(MCDRAM / 4),
            (4, 2) => Some(MCDRAM / 2),
            _ => None,
        };
    }
    let modes = modes(topology, None).ok()?;
    let flat = total(topology.nodes.iter().filter(|node| node.is_memory_only()).map(|node| node.bytes));
    match modes.memory.0.as_str() {
        "cache" => Some(MCDRAM),
        mode if mode.starts_with("hybrid") => Some(MCDRAM.saturating_sub(flat)),
        _ => None,
    }
}

fn modes(topology: &Topology, firmware: Option<&Firmware>) -> Result<Modes, Vec<String>> {
    let told = firmware.and_then(|firmware| firmware.knl);
    if let Some((memory, cluster)) = told.and_then(|modes| modes.memory_name().zip(modes.cluster_name())) {
        let sure = |text: &str| (text.to_owned(), Certainty::Detected);
        let evidence = vec!["SMBIOS group \"Knights Landing Information\" (/sys/firmware/dmi, root)".to_owned()];
        return Ok(Modes { memory: sure(memory), cluster: sure(cluster), evidence });
    }
    if topology.hidden {
        return Err(vec![MASKED.to_owned()]);
    }
    let with_memory: Vec<&MemoryNode> = topology.nodes.iter().filter(|node| node.bytes > 0).collect();
    let homes = with_memory.iter().filter(|node| !node.cpus.is_empty()).count();
    let mcdram: Vec<&MemoryNode> = with_memory.iter().copied().filter(|node| node.is_memory_only()).collect();
    let mut evidence = vec![format!("{} with CPUs, {} without (/sys/devices/system/node)", counted(homes, "node"), mcdram.len())];
    let side_cache = total(with_memory.iter().flat_map(|node| &node.side_caches).map(|cache| cache.bytes));
    // 0 nodes with CPUs: the lists are not readable, so number and distances decide.
    let (clusters, is_flat) = match (homes, mcdram.len()) {
        (1 | 2 | 4, 0) => (homes, false),
        (1 | 2 | 4, without) if without == homes => (homes, true),
        (0, 1) => (1, false),
        (0, 2) => (1, true),
        (0, 4) if distinct_distances(topology) == 4 => (2, true),
        (0, 4) => (4, false),
        (0, 8) => (4, true),
        _ => return Err(evidence),
    };
    let cluster = match clusters {
        1 => "quadrant, hemisphere or all-to-all".to_owned(),
        clusters => format!("SNC-{clusters}"),
    };
    let memory = match (is_flat, side_cache) {
        (true, 1..) => ("hybrid".to_owned(), Certainty::Detected),
        (false, 1..) => ("cache".to_owned(), Certainty::Detected),
        (true, 0) => {
            let flat = total(mcdram.iter().map(|node| node.bytes));
            evidence.push(format!("{} of MCDRAM without CPUs: {}", size(flat), nodes_text(mcdram.iter().map(|node| node.id))));
            by_size(flat)
        }
        (false, 0) if topology.is_virtual_machine() => return Err(evidence),
        (false, 0) => {
            evidence.push("no node of MCDRAM".to_owned());
            ("cache".to_owned(), Certainty::Inferred)
        }
    };
    if side_cache > 0 {
        evidence.push(format!("memory-side cache of {} (/sys/devices/system/node)", size(side_cache)));
    }
    Ok(Modes { memory, cluster: (cluster, Certainty::Inferred), evidence })
}

/// Flat and hybrid differ by the MCDRAM that is left: 16 GiB, or 12 or 8.
fn by_size(flat: u64) -> (String, Certainty) {
    let near = |bytes: u64| flat.abs_diff(bytes) < GIB / 2;
    let mode = match flat {
        _ if near(MCDRAM) => "flat",
        _ if near(MCDRAM / 4 * 3) => "hybrid (25 % cache)",
        _ if near(MCDRAM / 2) => "hybrid (50 % cache)",
        _ => "flat (assumed)",
    };
    (mode.to_owned(), Certainty::Inferred)
}

fn distinct_distances(topology: &Topology) -> usize {
    let mut values: Vec<u32> = topology.distances.iter().flatten().copied().collect();
    values.sort_unstable();
    values.dedup();
    values.len()
}

/// Each MCDRAM node (first) with the DDR node of its own quarter or half (second), by how often a distance occurs: in SNC-4 flat mode
/// exactly four pairs are DDR and own MCDRAM, in SNC-2 two. The distances' values differ between firmwares; the counts do not.
pub(super) fn pairs(topology: &Topology) -> Option<Vec<(u32, u32)>> {
    let nodes: Vec<&MemoryNode> = topology.nodes.iter().filter(|node| node.bytes > 0).collect();
    let mcdram: Vec<u32> = nodes.iter().filter(|node| node.is_memory_only()).map(|node| node.id).collect();
    let mut by_distance: BTreeMap<u32, Vec<(u32, u32)>> = BTreeMap::new();
    for &near in &mcdram {
        for far in nodes.iter().filter(|node| !node.cpus.is_empty()) {
            by_distance.entry(topology.distance(far.id, near)?).or_default().push((near, far.id));
        }
    }
    let one_each = |pairs: &&Vec<(u32, u32)>| {
        pairs.len() == mcdram.len() && mcdram.iter().all(|near| pairs.iter().filter(|pair| pair.0 == *near).count() == 1)
    };
    by_distance.values().find(one_each).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::CpuList;

    /// Nodes as (bytes in GiB, has CPUs), all distances alike.
    fn knl(nodes: &[(u64, bool)]) -> Topology {
        let node = |(id, &(gib, has_cpus)): (usize, &(u64, bool))| MemoryNode {
            id: id as u32,
            bytes: gib * GIB,
            cpus: if has_cpus { CpuList::from_iter([id as u32]) } else { CpuList::default() },
            ..MemoryNode::default()
        };
        Topology { nodes: nodes.iter().enumerate().map(node).collect(), ..Topology::default() }
    }

    fn both(topology: &Topology) -> (String, String) {
        (memory_mode(topology, None).value, cluster_mode(topology, None).value)
    }

    #[test]
    fn modes_by_nodes() {
        let quad = "quadrant, hemisphere or all-to-all";
        let of = |nodes: &[(u64, bool)]| both(&knl(nodes));
        let is = |memory: &str, cluster: &str| (memory.to_owned(), cluster.to_owned());
        assert_eq!(of(&[(96, true)]), is("cache", quad));
        assert_eq!(of(&[(96, true), (16, false)]), is("flat", quad));
        assert_eq!(of(&[(96, true), (12, false)]), is("hybrid (25 % cache)", quad));
        assert_eq!(of(&[(96, true), (3, false)]), is("flat (assumed)", quad));
        assert_eq!(of(&[(48, true), (48, true)]), is("cache", "SNC-2"));
        assert_eq!(of(&[(48, true), (48, true), (8, false), (8, false)]), is("flat", "SNC-2"));
        assert_eq!(of(&[(24, true); 4]), is("cache", "SNC-4"));
        assert_eq!(of(&[(24, true), (24, true), (24, true)]), is("unknown", "unknown"));
    }

    #[test]
    fn four_nodes_with_unknown_cpus_differ_by_their_distances() {
        let mut four = knl(&[(24, false); 4]);
        four.distances = vec![vec![10, 21, 31, 41]; 4];
        assert_eq!(both(&four).1, "SNC-2");
        four.distances = vec![vec![10, 21, 21, 21]; 4];
        assert_eq!(both(&four), ("cache".to_owned(), "SNC-4".to_owned()));
    }

    #[test]
    fn the_firmware_is_believed_first() {
        let knl_modes = Some(KnlModes { cluster: 16, memory: 4, cache: 1 });
        let firmware = Firmware { knl: knl_modes, modules: Vec::new() };
        let topology = knl(&[(96, true), (12, false)]);
        let found = memory_mode(&topology, Some(&firmware));
        assert_eq!((found.value.as_str(), found.certainty), ("hybrid (25 % cache)", Certainty::Detected));
        assert_eq!(cluster_mode(&topology, Some(&firmware)).value, "all-to-all");
        assert_eq!(cache_bytes(&topology, Some(&firmware)), Some(4 * GIB));
    }

    #[test]
    fn pairs_by_how_often_a_distance_occurs() {
        let mut topology = knl(&[(24, true), (24, true), (24, true), (24, true), (4, false), (4, false), (4, false), (4, false)]);
        // A firmware that numbers backwards and calls its own MCDRAM farther than the others'.
        let distance = |from: usize, to: usize| match (from / 4, to / 4) {
            _ if from == to => 10,
            (0, 0) | (1, 1) => 21,
            _ if from % 4 == 3 - to % 4 => 51,
            _ => 41,
        };
        topology.distances = (0..8).map(|from| (0..8).map(|to| distance(from, to)).collect()).collect();
        assert_eq!(pairs(&topology), Some(vec![(4, 3), (5, 2), (6, 1), (7, 0)]));
        topology.distances.clear();
        assert_eq!(pairs(&topology), None);
    }
}
