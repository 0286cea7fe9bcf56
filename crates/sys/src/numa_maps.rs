//! Where the pages of a process lie: /proc/PID/numa_maps for the nodes, /proc/PID/smaps for sizes, huge pages and swap.
//!
//! Both walk the process's page tables, so reading costs time in proportion to its memory. They are read one after the other:
//! a process that allocates meanwhile has areas in one that are not in the other, which then have no nodes or no size.

use crate::root::Root;
use nearfar_core::affinity::Area;
use std::collections::HashMap;

/// Largest text that is read: 65530 mappings, which is what the kernel allows by itself, take about 60 MB of smaps.
const MOST: u64 = 128 << 20;

/// One line of numa_maps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeArea {
    /// First address.
    pub start: u64,
    /// Memory policy: `default`, `bind:0`, `prefer:1`, `interleave:0-1`, ...
    pub policy: String,
    /// Bytes by node.
    pub nodes: Vec<(u32, u64)>,
}

/// Parses one line of numa_maps; `None` when it is not of the expected form. `page` is the size of a page where the line does not say.
pub fn parse_numa_line(line: &str, page: u64) -> Option<NodeArea> {
    let (start, rest) = line.split_once(' ')?;
    let start = u64::from_str_radix(start, 16).ok()?;
    // Policies are single words but "prefer (many):0-1" and "weighted interleave:0-1": the words of the counts begin behind them.
    let words: Vec<&str> = rest.split_ascii_whitespace().collect();
    let is_count = |word: &&str| {
        let name = word.split_once('=').map_or(*word, |(name, _)| name);
        matches!(name, "file" | "heap" | "stack" | "huge" | "anon" | "dirty" | "mapped" | "mapmax" | "swapcache" | "active")
            || matches!(name, "writeback" | "kernelpagesize_kB")
            || name.strip_prefix('N').is_some_and(|digits| digits.parse::<u32>().is_ok())
    };
    let policy_words = words.iter().take_while(|word| !is_count(word)).count();
    let unit = words.iter().find_map(|word| word.strip_prefix("kernelpagesize_kB=")?.parse::<u64>().ok());
    let unit = unit.map_or(page, |kib| kib * 1024);
    let node = |word: &&str| {
        let (node, pages) = word.strip_prefix('N')?.split_once('=')?;
        Some((node.parse().ok()?, pages.parse::<u64>().ok()? * unit))
    };
    let nodes = words.iter().skip(policy_words).filter_map(node).collect();
    Some(NodeArea { start, policy: words[..policy_words].join(" "), nodes })
}

/// Parses smaps, without nodes and policies.
pub fn parse_smaps(text: &str) -> Vec<Area> {
    let mut areas: Vec<Area> = Vec::new();
    for line in text.lines() {
        if let Some(area) = parse_head(line) {
            areas.push(area);
            continue;
        }
        let (Some(area), Some((name, value))) = (areas.last_mut(), line.split_once(':')) else { continue };
        let Some(bytes) = value.trim().strip_suffix(" kB").and_then(|kib| kib.parse::<u64>().ok()).map(|kib| kib * 1024) else {
            continue;
        };
        match name {
            "Rss" => area.bytes += bytes,
            "Anonymous" => area.anonymous_bytes += bytes,
            "Swap" => area.swap_bytes += bytes,
            "AnonHugePages" | "ShmemPmdMapped" | "FilePmdMapped" => area.huge_bytes += bytes,
            // Not part of Rss.
            "Private_Hugetlb" | "Shared_Hugetlb" => {
                area.bytes += bytes;
                area.huge_bytes += bytes;
            }
            _ => {}
        }
    }
    areas
}

/// The first line of an area of smaps, which is a line of maps.
fn parse_head(line: &str) -> Option<Area> {
    // Lines of counts begin with a capital letter; addresses have small ones.
    if line.starts_with(|c: char| c.is_ascii_uppercase()) {
        return None;
    }
    let mapping = crate::proc_maps::parse_line(line)?;
    Some(Area {
        start: mapping.range.start as u64,
        end: mapping.range.end as u64,
        accessible: mapping.prot != 0,
        writable: mapping.prot & libc::PROT_WRITE != 0,
        shared: mapping.shared,
        name: mapping.name,
        ..Area::default()
    })
}

/// The areas of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Areas {
    /// Ascending by address.
    pub areas: Vec<Area>,
    /// False where numa_maps is missing (a kernel without NUMA): no area has nodes.
    pub nodes_known: bool,
}

/// Reads the areas of `pid` from smaps and numa_maps.
///
/// # Errors
/// Those of opening or reading smaps: `PermissionDenied` for other users' processes, `NotFound` when it is gone.
pub fn areas(root: &Root, pid: u32, page: u64) -> std::io::Result<Areas> {
    let smaps = root.read(&format!("/proc/{pid}/smaps"), MOST)?;
    let mut areas = parse_smaps(&String::from_utf8_lossy(&smaps));
    let numa = root.read(&format!("/proc/{pid}/numa_maps"), MOST).unwrap_or_default();
    let numa = String::from_utf8_lossy(&numa);
    let lines = numa.lines().filter_map(|line| parse_numa_line(line, page));
    let mut by_start: HashMap<u64, NodeArea> = lines.map(|area| (area.start, area)).collect();
    let nodes_known = !by_start.is_empty();
    for area in &mut areas {
        if let Some(found) = by_start.remove(&area.start) {
            (area.policy, area.nodes) = (found.policy, found.nodes);
        }
    }
    Ok(Areas { areas, nodes_known })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMAPS: &str = "\
55f0-55f4 r-xp 00000000 fe:00 42                         /bin/my prog
Size:                 16 kB
KernelPageSize:        4 kB
Rss:                  12 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me
7f0000000000-7f0000400000 rw-p 00000000 00:00 0 
Rss:                4096 kB
Anonymous:          4096 kB
AnonHugePages:      2048 kB
Swap:                  8 kB
SwapPss:               8 kB
THPeligible:           1
7f0000800000-7f0000a00000 rw-p 00000000 00:0f 7                          /anon_hugepage (deleted)
Rss:                   0 kB
Private_Hugetlb:    2048 kB
";

    const NUMA: &str = "\
55f0 default file=/bin/my\\040prog mapped=3 mapmax=7 N0=3 kernelpagesize_kB=4
7f0000000000 prefer (many):0-1 anon=1024 dirty=1024 active=0 N0=1000 N1=24 kernelpagesize_kB=4
7f0000800000 bind:1 file=/anon_hugepage\\040(deleted) huge anon=1 dirty=1 N1=1 kernelpagesize_kB=2048
";

    #[test]
    fn lines_of_numa_maps() {
        let area = parse_numa_line("5558d239a000 default file=/usr/bin/N2=5 mapped=2 N0=2 N12=1 kernelpagesize_kB=64", 1)
            .expect("a line");
        assert_eq!(
            (area.start, area.policy.as_str(), area.nodes),
            (0x5558_d239_a000, "default", vec![(0, 131_072), (12, 65_536)])
        );
        let area = parse_numa_line("7ffe weighted interleave:0-1 stack anon=3 dirty=3 N1=3", 4096).expect("an old kernel's line");
        assert_eq!((area.policy.as_str(), area.nodes), ("weighted interleave:0-1", vec![(1, 12_288)]));
        assert_eq!(parse_numa_line("7f099f94a000 default", 4096).map(|area| area.nodes.len()), Some(0));
        assert_eq!((parse_numa_line("", 4096), parse_numa_line("xyz default", 4096)), (None, None));
    }

    #[test]
    fn both_files_together() {
        let capture = |name: &str, text: &str| {
            let lines: String = text.lines().map(|line| format!(" {line}\n")).collect();
            format!("=== /proc/9/{name}\n{lines}")
        };
        let both = Root::captured(&(capture("smaps", SMAPS) + &capture("numa_maps", NUMA))).expect("a capture");
        let found = areas(&both, 9, 4096).expect("readable");
        let [program, anonymous, huge] = found.areas.as_slice() else { panic!("three areas: {found:?}") };
        assert!(found.nodes_known);
        assert_eq!((program.name.as_str(), program.bytes, program.writable), ("/bin/my prog", 12 << 10, false));
        assert_eq!((anonymous.bytes, anonymous.huge_bytes, anonymous.swap_bytes), (4 << 20, 2 << 20, 8 << 10));
        assert_eq!(
            (anonymous.nodes.as_slice(), anonymous.policy.as_str()),
            (&[(0, 1000 << 12), (1, 24 << 12)][..], "prefer (many):0-1")
        );
        assert_eq!((huge.bytes, huge.huge_bytes, huge.nodes.as_slice()), (2 << 20, 2 << 20, &[(1, 2 << 20)][..]));
        let alone = Root::captured(&capture("smaps", SMAPS)).expect("a capture");
        let found = areas(&alone, 9, 4096).expect("readable");
        assert!(!found.nodes_known && found.areas.len() == 3 && found.areas[1].nodes.is_empty());
        assert!(areas(&alone, 10, 4096).is_err());
    }

    #[test]
    fn own_areas_hold_what_was_touched() {
        let data = vec![1u8; 8 << 20];
        let at = data.as_ptr() as u64;
        // Other tests map memory beside it: between the two files the area may have grown, and is another then.
        let told = (0..50).any(|_| {
            let found = areas(&Root::this(), crate::process::pid(), 4096).expect("own");
            let area = found.areas.iter().find(|area| area.start <= at && at < area.end).expect("the data are mapped");
            assert!(area.bytes >= 7 << 20, "{area:?}");
            let on_nodes: u64 = area.nodes.iter().map(|(_, bytes)| bytes).sum();
            !found.nodes_known || on_nodes >= 7 << 20
        });
        assert!(told, "the nodes of what was touched are never told");
        std::hint::black_box(&data);
    }
}
