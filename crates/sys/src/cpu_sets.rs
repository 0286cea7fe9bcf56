//! CPUs that share something: a core, a NUMA node, a last-level cache. Reads what the kernel says of each; what it does not say is
//! taken as "shared with nobody" for cores and "all in one" for nodes.

use crate::machine;
use crate::root::Root;
use nearfar_core::node::CpuList;
use std::collections::BTreeMap;

/// The cores of `cpus`, by lowest CPU: each with those of its hardware threads that are in `cpus`.
pub fn cores(root: &Root, cpus: &CpuList) -> Vec<CpuList> {
    let siblings = |cpu: u32| {
        let dir = format!("/sys/devices/system/cpu/cpu{cpu}/topology");
        let list = root.text(&format!("{dir}/core_cpus_list")).or_else(|| root.text(&format!("{dir}/thread_siblings_list")))?;
        list.parse::<CpuList>().ok().filter(|list| list.contains(cpu))
    };
    let mut cores: Vec<CpuList> = Vec::new();
    for &cpu in cpus.as_slice() {
        if !cores.iter().any(|core| core.contains(cpu)) {
            cores.push(siblings(cpu).map_or_else(|| [cpu].into_iter().collect(), |core| core.and(cpus)));
        }
    }
    cores
}

/// The parts of `cpus` by NUMA node, ascending; CPUs of no node are a part of their own.
pub fn nodes(root: &Root, cpus: &CpuList) -> Vec<CpuList> {
    let dir = "/sys/devices/system/node";
    let lists = root.numbered(dir, "node").into_iter().filter_map(|node| root.text(&format!("{dir}/node{node}/cpulist")));
    let mut parts: Vec<CpuList> = lists.filter_map(|list| Some(list.parse::<CpuList>().ok()?.and(cpus))).collect();
    let rest = cpus.as_slice().iter().copied().filter(|&cpu| !parts.iter().any(|part| part.contains(cpu))).collect();
    parts.push(rest);
    parts.retain(|part| !part.is_empty());
    parts
}

/// Bytes of the last-level caches that `cpus` use, all together; `None` when nothing says. For all CPUs that may be used it is no less
/// than what [`machine::topology`] finds from more sources, memory-side caches included.
pub fn last_level_cache(root: &Root, cpus: &CpuList) -> Option<u64> {
    let topology = machine::topology(root);
    // The topology's is of all allowed CPUs: too much for a part of them.
    let of_all = topology.llc.bytes.filter(|_| topology.allowed.and(cpus) == topology.allowed);
    listed_last_level(root, cpus).max(of_all)
}

/// What sysfs lists. A hypervisor may lie.
fn listed_last_level(root: &Root, cpus: &CpuList) -> Option<u64> {
    let mut largest: BTreeMap<(u64, String), u64> = BTreeMap::new();
    for cpu in cpus.as_slice() {
        let dir = format!("/sys/devices/system/cpu/cpu{cpu}/cache");
        for index in root.numbered(&dir, "index") {
            let of = |name: &str| root.text(&format!("{dir}/index{index}/{name}"));
            let Some(level) = of("level").and_then(|level| level.parse().ok()) else { continue };
            if of("type").as_deref() == Some("Instruction") {
                continue;
            }
            let (Some(shared), Some(bytes)) = (of("shared_cpu_list"), of("size").and_then(|size| bytes(&size))) else { continue };
            largest.insert((level, shared), bytes);
        }
    }
    let level = largest.keys().map(|(level, _)| *level).max()?;
    Some(largest.iter().filter(|((of, _), _)| *of == level).map(|(_, bytes)| bytes).sum())
}

/// "32768K" in bytes.
fn bytes(size: &str) -> Option<u64> {
    let digits = size.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &size[digits.len()..] {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> CpuList {
        text.parse().expect("a list")
    }

    #[test]
    fn two_sockets_with_two_threads_per_core() {
        let mut text = String::from(
            "=== /sys/devices/system/node/node0/cpulist\n 0-1,4-5\n=== /sys/devices/system/node/node1/cpulist\n 2-3,6-7\n",
        );
        for cpu in 0..8 {
            let dir = format!("/sys/devices/system/cpu/cpu{cpu}");
            let core = cpu % 4;
            text += &format!("=== {dir}/topology/thread_siblings_list\n {core},{}\n", core + 4);
            let shared = if core < 2 { "0-1,4-5" } else { "2-3,6-7" };
            for (index, level, kind, size) in [(0, 1, "Data", "32K"), (1, 1, "Instruction", "64K"), (3, 3, "Unified", "16384K")] {
                let dir = format!("{dir}/cache/index{index}");
                text += &format!(
                    "=== {dir}/level\n {level}\n=== {dir}/type\n {kind}\n=== {dir}/size\n {size}\n=== {dir}/shared_cpu_list\n {shared}\n"
                );
            }
        }
        let root = Root::captured(&text).expect("a capture");
        assert_eq!(cores(&root, &list("0-7")), ["0,4", "1,5", "2,6", "3,7"].map(list));
        assert_eq!(cores(&root, &list("0,5")), ["0", "5"].map(list));
        assert_eq!(nodes(&root, &list("0-7")), ["0-1,4-5", "2-3,6-7"].map(list));
        assert_eq!(nodes(&root, &list("1,6,9")), ["1", "6", "9"].map(list));
        assert_eq!(last_level_cache(&root, &list("0-7")), Some(32 << 20));
        assert_eq!(last_level_cache(&root, &list("0")), Some(16 << 20));
    }

    #[test]
    fn a_system_that_says_nothing() {
        let root = Root::captured("").expect("empty");
        assert_eq!(cores(&root, &list("0-1")).len(), 2);
        assert_eq!(nodes(&root, &list("0-1")), [list("0-1")]);
        assert_eq!(last_level_cache(&root, &list("0-1")), None);
        assert_eq!((bytes("2M"), bytes("x"), bytes("3Q")), (Some(2 << 20), None, None));
    }
}
