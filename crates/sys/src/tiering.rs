//! What the kernel itself does to keep hot pages in fast nodes: NUMA balancing in tiering mode, and demotion. Changes nothing.

use crate::root::Root;
use nearfar_core::node::CpuList;
use nearfar_core::placement::NodeSet;

/// Bit of /proc/sys/kernel/numa_balancing: pages of slow tiers are promoted (NUMA_BALANCING_MEMORY_TIERING, Linux 5.18).
const TIERING: u64 = 2;

/// The kernel's own tiering.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tiering {
    /// /proc/sys/kernel/numa_balancing; `None` when the kernel was built without.
    pub balancing: Option<u64>,
    /// Cold pages are demoted where memory is short (Linux 5.15); `None` when the kernel cannot.
    pub demotion: Option<bool>,
    /// The kernel's memory tiers, fastest first.
    pub tiers: Vec<(u32, CpuList)>,
}

impl Tiering {
    /// Asks the kernel.
    pub fn of(root: &Root) -> Self {
        let demotion = root.text("/sys/kernel/mm/numa/demotion_enabled");
        const TIERS: &str = "/sys/devices/virtual/memory_tiering";
        let tier = |number| Some((number, root.text(&format!("{TIERS}/memory_tier{number}/nodelist"))?.parse().ok()?));
        Self {
            balancing: root.number("/proc/sys/kernel/numa_balancing"),
            demotion: demotion.map(|text| matches!(text.as_str(), "1" | "true" | "Y")),
            tiers: root.numbered(TIERS, "memory_tier").into_iter().filter_map(tier).collect(),
        }
    }

    /// True when the kernel promotes hot pages.
    pub fn promotes(&self) -> bool {
        self.balancing.is_some_and(|bits| bits & TIERING != 0)
    }

    /// True when the kernel moves hot pages of `far` to `near`: it promotes, and all nodes of near are in faster tiers than those of far.
    pub fn serves(&self, near: &NodeSet, far: &NodeSet) -> bool {
        let tiers_of = |nodes: &NodeSet| -> Option<Vec<u32>> {
            let tier = |node: u32| self.tiers.iter().find(|(_, list)| list.as_slice().contains(&node)).map(|(tier, _)| *tier);
            nodes.iter().map(tier).collect()
        };
        let (Some(near), Some(far)) = (tiers_of(near), tiers_of(far)) else { return false };
        self.promotes() && near.iter().max().zip(far.iter().min()).is_some_and(|(near, far)| near < far)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tiering(balancing: u32) -> Tiering {
        let text = format!(
            "=== /proc/sys/kernel/numa_balancing\n {balancing}\n=== /sys/kernel/mm/numa/demotion_enabled\n true\n\
             === /sys/devices/virtual/memory_tiering/memory_tier4/nodelist\n 0-1\n\
             === /sys/devices/virtual/memory_tiering/memory_tier22/nodelist\n 2\n"
        );
        Tiering::of(&Root::captured(&text).expect("a capture"))
    }

    #[test]
    fn the_kernel_serves_pairs_of_its_own_tiers() {
        let nodes = |list: &[u32]| list.iter().copied().collect::<NodeSet>();
        let on = tiering(2);
        assert!(on.promotes() && on.demotion == Some(true));
        assert!(on.serves(&nodes(&[0]), &nodes(&[2])) && on.serves(&nodes(&[0, 1]), &nodes(&[2])));
        assert!(!on.serves(&nodes(&[0]), &nodes(&[1])), "one tier");
        assert!(!on.serves(&nodes(&[2]), &nodes(&[0])), "the wrong way");
        assert!(!on.serves(&nodes(&[7]), &nodes(&[2])) && !on.serves(&NodeSet::EMPTY, &nodes(&[2])));
        assert!(!tiering(1).serves(&nodes(&[0]), &nodes(&[2])), "ordinary balancing");
        assert_eq!(Tiering::of(&Root::captured("").expect("a capture")), Tiering::default());
    }
}
