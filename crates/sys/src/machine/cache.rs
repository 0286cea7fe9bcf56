//! Caches: every kind from sysfs, and the size of the last level from all sources, because each of them has been seen to lie.
//!
//! sysfs is believed where it has sizes: getconf has said 256 and 320 MiB of a virtual machine whose caches have 32. The caches of the
//! allowed CPUs count, each shared one once; memory-side caches (HMAT, or MCDRAM and HBM in cache mode) are added.

use super::cpuid;
use super::reader::Reader;
use nearfar_core::node::{Cache, CacheKind, CpuList, LlcSource, Topology};
use std::collections::{BTreeMap, BTreeSet};

/// One cache larger than this is a broken file: the largest so far is 1152 MiB a socket, in pieces.
const MOST: u64 = 2 << 30;

/// Kinds of caches (`index0` and so on) of one CPU.
const MOST_INDEXES: u32 = 8;

/// One cache.
struct Instance {
    level: u32,
    kind: CacheKind,
    bytes: u64,
    cpus: CpuList,
}

pub(super) fn read(reader: &Reader, topology: &mut Topology) {
    let (instances, details) = instances(reader, &topology.online);
    topology.caches = kinds(&instances, &details, &topology.online);
    let mut sources: Vec<LlcSource> = Vec::new();
    let mut add = |source: &str, bytes: u64| {
        if bytes > 0 {
            sources.push(LlcSource { source: source.to_owned(), bytes });
        }
    };
    let (count, listed) = last_level(&instances, &topology.allowed);
    add("sysfs", listed);
    let mut others = 0;
    if reader.is_this() {
        if let Some(cache) = cpuid::last_level().filter(|cache| cache.bytes <= MOST) {
            // Where sysfs does not tell how many there are: as many as the CPUs need.
            let needed = (topology.allowed.len() as u64).div_ceil(cache.shared_by.into());
            others = cache.bytes.saturating_mul(if count > 0 { count } else { needed });
            add("cpuid", others);
        }
        let told = sysconf();
        add("sysconf", told);
        if others == 0 && told <= MOST.min(topology.memory_bytes() / 8) {
            others = told;
        }
    }
    let side: u64 =
        topology.nodes.iter().flat_map(|node| &node.side_caches).fold(0, |sum, cache| sum.saturating_add(cache.bytes));
    add("memory-side caches", side);
    let believed = if listed > 0 { listed } else { others };
    topology.llc.bytes = Some(believed.saturating_add(side)).filter(|bytes| *bytes > 0);
    (topology.llc.side_bytes, topology.llc.sources) = (side, sources);
}

type Details = BTreeMap<(u32, u64, u8), (Option<u32>, Option<u32>)>;

fn key(level: u32, kind: CacheKind, bytes: u64) -> (u32, u64, u8) {
    (level, bytes, kind as u8)
}

/// Every cache once, with line size and associativity of each kind. A CPU that shares a cache seen before is not asked again.
fn instances(reader: &Reader, online: &CpuList) -> (Vec<Instance>, Details) {
    let mut instances = Vec::new();
    let mut details = Details::new();
    let mut covered: BTreeSet<(u32, u32)> = BTreeSet::new();
    for &cpu in online.as_slice() {
        for index in 0..MOST_INDEXES {
            if covered.contains(&(index, cpu)) {
                continue;
            }
            let file = |name: &str| format!("/sys/devices/system/cpu/cpu{cpu}/cache/index{index}/{name}");
            let Some(level) = reader.small(&file("level")).filter(|level| (1..=8).contains(level)) else { break };
            let kind = match reader.text(&file("type")).as_deref() {
                Some("Data") => CacheKind::Data,
                Some("Instruction") => CacheKind::Instruction,
                _ => CacheKind::Unified,
            };
            let cpus = reader.list(&file("shared_cpu_list")).map(|cpus| cpus.and(online)).filter(|cpus| cpus.contains(cpu));
            let cpus = cpus.unwrap_or_else(|| CpuList::from_iter([cpu]));
            covered.extend(cpus.as_slice().iter().map(|other| (index, *other)));
            let Some(bytes) = reader.text(&file("size")).and_then(|text| size(&text)).filter(|bytes| (1..=MOST).contains(bytes))
            else {
                continue;
            };
            details
                .entry(key(level, kind, bytes))
                .or_insert_with(|| (reader.small(&file("coherency_line_size")), reader.small(&file("ways_of_associativity"))));
            instances.push(Instance { level, kind, bytes, cpus });
        }
    }
    (instances, details)
}

/// "32K", "32768K", "32M".
fn size(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// Caches that are alike, as one: level, then data, code, both.
fn kinds(instances: &[Instance], details: &Details, online: &CpuList) -> Vec<Cache> {
    let mut kinds: Vec<Cache> = Vec::new();
    for one in instances {
        let shared_by = if one.cpus.is_empty() { online.len() } else { one.cpus.len() } as u32;
        let same = |cache: &&mut Cache| cache.level == one.level && cache.kind == one.kind && cache.bytes == one.bytes;
        if let Some(cache) = kinds.iter_mut().find(same) {
            cache.instances += 1;
            cache.shared_by = cache.shared_by.max(shared_by);
            continue;
        }
        let (line, ways) = details.get(&key(one.level, one.kind, one.bytes)).copied().unwrap_or_default();
        // 0 ways: the kernel's word for "unknown" or "fully associative".
        let ways = ways.filter(|ways| *ways > 0);
        kinds.push(Cache { level: one.level, kind: one.kind, bytes: one.bytes, line, ways, instances: 1, shared_by });
    }
    kinds.sort_by_key(|cache| (cache.level, cache.kind as u8, cache.bytes));
    kinds
}

/// Number and bytes of the caches that are the last before memory for one of `cpus`.
fn last_level(instances: &[Instance], cpus: &CpuList) -> (u64, u64) {
    let mut data: Vec<&Instance> = instances.iter().filter(|one| one.kind != CacheKind::Instruction).collect();
    data.sort_by_key(|one| std::cmp::Reverse(one.level));
    let mut left: BTreeSet<u32> = cpus.as_slice().iter().copied().collect();
    let (mut count, mut bytes) = (0, 0_u64);
    for one in data {
        let before = left.len();
        one.cpus.as_slice().iter().for_each(|cpu| _ = left.remove(cpu));
        if left.len() < before {
            (count, bytes) = (count + 1, bytes.saturating_add(one.bytes));
        }
    }
    (count, bytes)
}

/// What the C library says of the third level (getconf LEVEL3_CACHE_SIZE); 0 when it does not know.
fn sysconf() -> u64 {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: no pointers are involved.
        u64::try_from(unsafe { libc::sysconf(libc::_SC_LEVEL3_CACHE_SIZE) }).unwrap_or(0)
    }
    #[cfg(not(target_env = "gnu"))]
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::Root;

    fn capture(cpu: u32, index: u32, [level, kind, size, shared]: [&str; 4]) -> String {
        let dir = format!("/sys/devices/system/cpu/cpu{cpu}/cache/index{index}");
        format!(
            "=== {dir}/level\n {level}\n=== {dir}/type\n {kind}\n=== {dir}/size\n {size}\n=== {dir}/shared_cpu_list\n {shared}\n"
        )
    }

    fn caches(text: &str, online: &str, allowed: &str) -> Topology {
        let list = |text: &str| text.parse().expect("a list");
        let mut topology = Topology { online: list(online), allowed: list(allowed), ..Topology::default() };
        read(&Reader::new(&Root::captured(text).expect("a capture")), &mut topology);
        topology
    }

    #[test]
    fn shared_caches_count_once_and_only_for_allowed_cpus() {
        let mut text = String::new();
        for cpu in 0..4 {
            text += &capture(cpu, 0, ["1", "Data", "32K", &cpu.to_string()]);
            text += &capture(cpu, 1, ["1", "Instruction", "64K", &cpu.to_string()]);
            text += &capture(cpu, 2, ["3", "Unified", "16M", if cpu < 2 { "0-1" } else { "2-3" }]);
        }
        let all = caches(&text, "0-3", "0-3");
        assert_eq!(all.llc.bytes, Some(32 << 20));
        let (first, last) = (&all.caches[0], &all.caches[2]);
        assert_eq!((first.level, first.kind, first.bytes, first.instances), (1, CacheKind::Data, 32 << 10, 4));
        assert_eq!((last.level, last.instances, last.shared_by), (3, 2, 2));
        assert_eq!(caches(&text, "0-3", "1").llc.bytes, Some(16 << 20));
    }

    #[test]
    fn cores_without_a_third_level_count_their_second() {
        let text = capture(0, 0, ["2", "Unified", "2M", "0"])
            + &capture(0, 1, ["3", "Unified", "24M", "0"])
            + &capture(1, 0, ["2", "Unified", "4096K", "1"]);
        assert_eq!(caches(&text, "0-1", "0-1").llc.bytes, Some(28 << 20));
    }

    #[test]
    fn broken_sizes_are_no_caches() {
        for size in ["", "K", "99999999999999999999K", "18446744073709551615G", "-1", "3X"] {
            assert_eq!(caches(&capture(0, 0, ["1", "Data", size, "0"]), "0", "0").llc.bytes, None, "{size}");
        }
    }
}
