//! Where CPUs are and which NUMA nodes there are, read from sysfs: as much as a map of threads takes.

use nearfar_core::node::{CpuList, MemoryNode, Placement};
use nearfar_sys::root::Root;

const CPUS: &str = "/sys/devices/system/cpu";
const NODES: &str = "/sys/devices/system/node";

/// Where each online CPU is.
pub fn placement(root: &Root, nodes: &[MemoryNode]) -> Vec<Placement> {
    let online: Option<CpuList> = root.text(&format!("{CPUS}/online")).and_then(|list| list.parse().ok());
    let cpus = online.map_or_else(|| root.numbered(CPUS, "cpu"), |list| list.as_slice().to_vec());
    let number = |cpu: u32, file: &str| {
        // -1 where the firmware does not say.
        root.text(&format!("{CPUS}/cpu{cpu}/topology/{file}"))?.parse().ok()
    };
    let place = |cpu: u32| Placement {
        cpu,
        package: number(cpu, "physical_package_id"),
        core: number(cpu, "core_id"),
        node: nodes.iter().find(|node| node.cpus.contains(cpu)).map(|node| node.id),
    };
    cpus.into_iter().map(place).collect()
}

/// NUMA nodes with their CPUs and memory; their kinds are not looked for.
pub fn nodes(root: &Root) -> Vec<MemoryNode> {
    let node = |id: u32| {
        let text = |file: &str| root.text(&format!("{NODES}/node{id}/{file}")).unwrap_or_default();
        let info = text("meminfo");
        let field = |name: &str| {
            let line = info.lines().find(|line| line.contains(name))?;
            line.split_ascii_whitespace().rev().nth(1)?.parse::<u64>().ok()
        };
        MemoryNode {
            id,
            bytes: field("MemTotal:").unwrap_or(0) * 1024,
            free_bytes: field("MemFree:").unwrap_or(0) * 1024,
            cpus: text("cpulist").parse().unwrap_or_default(),
            ..MemoryNode::default()
        }
    };
    root.numbered(NODES, "node").into_iter().map(node).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_machine() {
        let root = Root::captured(
            "=== /sys/devices/system/cpu/online\n 0,2\n=== /sys/devices/system/cpu/cpu0/topology/core_id\n 5\n\
             === /sys/devices/system/cpu/cpu0/topology/physical_package_id\n 1\n\
             === /sys/devices/system/node/node3/cpulist\n 0\n\
             === /sys/devices/system/node/node3/meminfo\n Node 3 MemTotal:       2048 kB\n Node 3 MemFree:        1024 kB\n",
        )
        .expect("a capture");
        let nodes = nodes(&root);
        assert_eq!((nodes.len(), nodes[0].id, nodes[0].bytes, nodes[0].free_bytes), (1, 3, 2 << 20, 1 << 20));
        let placement = placement(&root, &nodes);
        let known = Placement { cpu: 0, package: Some(1), core: Some(5), node: Some(3) };
        assert_eq!(placement, [known, Placement { cpu: 2, ..Placement::default() }]);
    }
}
