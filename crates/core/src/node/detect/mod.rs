//! Detects what kind of machine this is: product, memory mode, cluster mode, near and far tier, and what distorts figures.
//!
//! Pure: facts that were read go in, conclusions with their evidence come out. Firmware tables and devices that name a memory come
//! first ("detected"), rules on model, sizes and distances second ("inferred"); what stays open is "unknown", never a guess.

mod caution;
mod knl;
mod cluster;
mod memory_mode;
mod kind;
mod product;
mod tiers;

pub use kind::assign_kinds;
pub use memory_mode::unlisted_side_cache;
pub use tiers::{Tiers, tiers};

use super::{Certainty, CpuList, Finding, Firmware, Subject, Topology};
use product::Product;

/// All conclusions: product, memory mode, cluster mode and tiers, one each, then any number of cautions.
pub fn findings(topology: &Topology, firmware: Option<&Firmware>) -> Vec<Finding> {
    let mut findings = vec![
        product::finding(topology),
        memory_mode::finding(topology, firmware),
        cluster::finding(topology, firmware),
        tiers::finding(topology),
    ];
    findings.extend(caution::findings(topology));
    findings
}

fn conclude(subject: Subject, value: impl Into<String>, certainty: Certainty, evidence: Vec<String>) -> Finding {
    Finding { subject, value: value.into(), certainty, evidence }
}

fn unknown(subject: Subject, evidence: Vec<String>) -> Finding {
    conclude(subject, "unknown", Certainty::Unknown, evidence)
}

/// "node 1", "nodes 4-7".
fn nodes_text(nodes: impl IntoIterator<Item = u32>) -> String {
    let list: CpuList = nodes.into_iter().collect();
    format!("node{} {list}", if list.len() == 1 { "" } else { "s" })
}

/// "1 node", "4 nodes".
fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Why nothing is concluded from nodes that cannot be seen.
const MASKED: &str = "no NUMA nodes can be seen (/sys is masked, or this is a container on a kernel without NUMA)";

/// Bytes of memory for people: binary units, to a tenth where that is needed.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = usize::from(value < 99.95 && (value - value.round()).abs() >= 0.05);
    format!("{value:.digits$} {}", UNITS[unit])
}

/// The sum of sizes; those of broken files may be anything.
fn total(sizes: impl Iterator<Item = u64>) -> u64 {
    sizes.fold(0, u64::saturating_add)
}

const GIB: u64 = 1 << 30;
