//! What the kernel keeps free of a node for itself (/proc/zoneinfo): below it, an allocation that may use no other node wakes the
//! reclaimer, and in the end the OOM killer.

use crate::root::Root;

/// Bytes of `node` below its high watermarks, and those that a zone holds back for lower ones; 0 when the kernel does not say.
pub fn reserved_bytes(node: u32) -> u64 {
    parse(&Root::this().text("/proc/zoneinfo").unwrap_or_default(), node) * nearfar_core::addr::PAGE as u64
}

/// Bytes of memory that `node` has in all; `None` when the kernel does not say.
pub fn total_bytes(node: u32) -> Option<u64> {
    let text = Root::this().text(&format!("/sys/devices/system/node/node{node}/meminfo"))?;
    let line = text.lines().find(|line| line.contains("MemTotal:"))?;
    let kib = line.split_whitespace().rev().find_map(|word| word.parse::<u64>().ok())?;
    kib.checked_mul(1 << 10)
}

/// In pages.
fn parse(text: &str, node: u32) -> u64 {
    let mut of_node = false;
    let mut pages = 0;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("Node ") {
            of_node = rest.split(',').next().and_then(|number| number.trim().parse().ok()) == Some(node);
        } else if of_node && let Some(number) = line.trim().strip_prefix("high ") {
            // "high:" with a colon belongs to the pages that CPUs keep.
            pages += number.trim().parse::<u64>().unwrap_or(0);
        }
    }
    pages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watermarks_of_a_node() {
        let text = "Node 0, zone      DMA\n  pages free     2816\n        boost    0\n        min      7\n        low      10\n        high     13\n\
                    \n  pagesets\n    cpu: 0\n              count:    0\n              high:  9999\nNode 0, zone   Normal\n  pages free 5\n\
                            high     1000\nNode 1, zone   Normal\n        high     77\n";
        assert_eq!((parse(text, 0), parse(text, 1), parse(text, 2)), (1013, 77, 0));
        assert!(reserved_bytes(0) > 0);
    }
}
