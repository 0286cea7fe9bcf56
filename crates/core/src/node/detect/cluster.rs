//! Sub-NUMA modes: how many nodes with CPUs a socket is cut into. Distances alone prove nothing and are not used.

use super::{MASKED, Product, conclude, counted, knl, unknown};
use crate::node::{CacheKind, Certainty, Finding, Firmware, Subject, Topology};

pub(super) fn finding(topology: &Topology, firmware: Option<&Firmware>) -> Finding {
    if Product::of(topology).is_knl() {
        return knl::cluster_mode(topology, firmware);
    }
    let open = |why: &str| unknown(Subject::ClusterMode, vec![why.to_owned()]);
    if topology.hidden {
        return open(MASKED);
    }
    let Some(packages) = topology.packages.filter(|packages| *packages > 0) else {
        return open("the kernel does not say how many sockets there are");
    };
    let homes = topology.nodes.iter().filter(|node| !node.cpus.is_empty()).count() as u32;
    let mut evidence = vec![format!(
        "{} with CPUs on {} (/sys/devices/system)",
        counted(homes as usize, "node"),
        counted(packages as usize, "socket")
    )];
    let l3 = last_level_instances(topology);
    let (value, mut certainty) = match (homes, homes % packages) {
        (0, _) => return unknown(Subject::ClusterMode, evidence),
        (1, _) if packages > 1 && is_epyc(topology) => ("NPS-0".to_owned(), Certainty::Inferred),
        (1, _) if packages > 1 => ("none, sockets interleaved".to_owned(), Certainty::Inferred),
        (_, 0) => {
            let Some(found) = per_socket(topology, homes / packages, l3 / packages) else {
                return unknown(Subject::ClusterMode, evidence);
            };
            found
        }
        _ => return unknown(Subject::ClusterMode, evidence),
    };
    if topology.vendor == "AuthenticAMD" && l3 > 0 {
        evidence.push(counted(l3 as usize, "last-level cache"));
    }
    if topology.is_virtual_machine() && certainty == Certainty::Detected {
        evidence.push("as the hypervisor shows it".to_owned());
        certainty = Certainty::Inferred;
    }
    conclude(Subject::ClusterMode, value, certainty, evidence)
}

/// The mode with `nodes` nodes and `l3` last-level caches on each socket.
fn per_socket(topology: &Topology, nodes: u32, l3: u32) -> Option<(String, Certainty)> {
    let is_intel = topology.vendor == "GenuineIntel";
    let is_cluster_on_die = matches!(topology.model, Some(63 | 79));
    Some(match nodes {
        1 if is_epyc(topology) => ("NPS-1".to_owned(), Certainty::Detected),
        1 => ("none".to_owned(), Certainty::Detected),
        2 if is_intel && is_cluster_on_die => ("cluster on die".to_owned(), Certainty::Detected),
        2..=4 if is_intel => (format!("SNC-{nodes}"), Certainty::Detected),
        // With as many last-level caches as nodes, the firmware's "L3 as NUMA node" looks the same.
        2 | 4 if is_epyc(topology) && l3 == nodes => (format!("NPS-{nodes} or L3 as NUMA node"), Certainty::Inferred),
        2 | 4 if is_epyc(topology) => (format!("NPS-{nodes}"), Certainty::Detected),
        _ if is_epyc(topology) && l3 == nodes => ("L3 as NUMA node".to_owned(), Certainty::Inferred),
        _ if is_intel || topology.vendor == "AuthenticAMD" => return None,
        _ => (format!("{nodes} nodes per socket"), Certainty::Detected),
    })
}

fn is_epyc(topology: &Topology) -> bool {
    let model = &topology.cpu_model;
    topology.vendor == "AuthenticAMD" && (model.contains("EPYC") || model.contains("Instinct"))
}

/// Instances of the last cache level, over the online CPUs.
fn last_level_instances(topology: &Topology) -> u32 {
    let data = || topology.caches.iter().filter(|cache| cache.kind != CacheKind::Instruction);
    let level = data().map(|cache| cache.level).max().unwrap_or(0);
    data().filter(|cache| cache.level == level).map(|cache| cache.instances).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::{Cache, MemoryNode};

    fn mode(vendor: &str, model: &str, packages: u32, nodes: u32, l3: u32) -> (String, Certainty) {
        let node = |id| MemoryNode { id, bytes: 1, cpus: [id].into_iter().collect(), ..MemoryNode::default() };
        let topology = Topology {
            vendor: vendor.to_owned(),
            cpu_model: model.to_owned(),
            packages: Some(packages),
            nodes: (0..nodes).map(node).collect(),
            caches: vec![Cache { level: 3, instances: l3, ..Cache::default() }],
            ..Topology::default()
        };
        let found = finding(&topology, None);
        (found.value, found.certainty)
    }

    #[test]
    fn nodes_per_socket() {
        let epyc = |packages, nodes, l3| mode("AuthenticAMD", "AMD EPYC 7763", packages, nodes, l3);
        assert_eq!(epyc(2, 2, 16), ("NPS-1".to_owned(), Certainty::Detected));
        assert_eq!(epyc(2, 8, 16), ("NPS-4".to_owned(), Certainty::Detected));
        assert_eq!(epyc(2, 8, 8), ("NPS-4 or L3 as NUMA node".to_owned(), Certainty::Inferred));
        assert_eq!(epyc(2, 16, 16), ("L3 as NUMA node".to_owned(), Certainty::Inferred));
        assert_eq!(epyc(2, 1, 16), ("NPS-0".to_owned(), Certainty::Inferred));
        assert_eq!(epyc(2, 3, 16).1, Certainty::Unknown);
        let xeon = |packages, nodes| mode("GenuineIntel", "Xeon", packages, nodes, packages);
        assert_eq!(xeon(2, 2), ("none".to_owned(), Certainty::Detected));
        assert_eq!(xeon(2, 6), ("SNC-3".to_owned(), Certainty::Detected));
        assert_eq!(xeon(1, 8).1, Certainty::Unknown);
        assert_eq!(mode("ARM", "Neoverse N1", 1, 4, 0), ("4 nodes per socket".to_owned(), Certainty::Detected));
        assert_eq!(mode("AuthenticAMD", "AMD Ryzen 9", 1, 1, 2), ("none".to_owned(), Certainty::Detected));
    }
}
