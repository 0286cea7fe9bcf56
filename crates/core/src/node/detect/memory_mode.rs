//! How near memory is used: as memory of its own (flat), as a cache of the far one, both, or as the only memory there is.

use super::{GIB, MASKED, Product, conclude, counted, knl, nodes_text, size, total, unknown};
use crate::node::{Certainty, DaxBus, Finding, Firmware, MemoryKind, MemoryNode, ModuleKind, Subject, Topology};

/// HBM of a Xeon Max, per socket.
pub(super) const XEON_MAX_HBM: u64 = 64 * GIB;

pub(super) fn finding(topology: &Topology, firmware: Option<&Firmware>) -> Finding {
    let product = Product::of(topology);
    if product.is_knl() {
        return knl::memory_mode(topology, firmware);
    }
    if topology.hidden {
        return unknown(Subject::MemoryMode, vec![MASKED.to_owned()]);
    }
    let (value, certainty, evidence) = match product {
        Product::XeonMax => xeon_max(topology, firmware),
        Product::Mi300a => ("unified", Certainty::Detected, vec!["CPU and GPU of an MI300A have one HBM".to_owned()]),
        Product::EpycHbm | Product::A64fx => {
            ("HBM only", certainty_of(&topology.nodes), vec![format!("\"{}\" has no DIMMs", topology.cpu_model)])
        }
        _ => general(topology, firmware),
    };
    if certainty == Certainty::Unknown {
        return unknown(Subject::MemoryMode, evidence);
    }
    conclude(Subject::MemoryMode, value, certainty, evidence)
}

/// A cache in front of memory that the kernel does not list, but that follows from product and mode: bytes and why. Arrays that
/// shall not fit in a cache must exceed it.
pub fn unlisted_side_cache(topology: &Topology, firmware: Option<&Firmware>) -> Option<(u64, String)> {
    if topology.nodes.iter().any(|node| !node.side_caches.is_empty()) {
        return None;
    }
    let product = Product::of(topology);
    if product.is_knl() {
        return Some((knl::cache_bytes(topology, firmware)?, "MCDRAM in cache mode".to_owned())).filter(|(bytes, _)| *bytes > 0);
    }
    let mode = (product == Product::XeonMax).then(|| finding(topology, firmware))?;
    let bytes = XEON_MAX_HBM * u64::from(topology.packages.unwrap_or(1));
    (mode.value == "cache").then(|| (bytes, "HBM in cache mode".to_owned()))
}

/// True when all memory of a Xeon Max fits in the HBM of its sockets, so that there is no DDR.
pub(super) fn fits_in_hbm(topology: &Topology) -> bool {
    let hbm = XEON_MAX_HBM.saturating_mul(topology.packages.unwrap_or(1).into());
    !topology.is_virtual_machine() && topology.memory_bytes() <= hbm && !topology.nodes.iter().any(MemoryNode::is_memory_only)
}

/// The least of the nodes that have memory.
fn certainty_of<'a>(nodes: impl IntoIterator<Item = &'a MemoryNode>) -> Certainty {
    nodes.into_iter().filter(|node| node.bytes > 0).map(|node| node.certainty).min().unwrap_or_default()
}

fn side_caches(topology: &Topology) -> Option<String> {
    let with: Vec<&MemoryNode> = topology.nodes.iter().filter(|node| !node.side_caches.is_empty()).collect();
    let bytes = total(with.iter().flat_map(|node| &node.side_caches).map(|cache| cache.bytes));
    let nodes = nodes_text(with.iter().map(|node| node.id));
    (!with.is_empty()).then(|| format!("memory-side caches of {} in front of {nodes} (HMAT)", size(bytes)))
}

type Mode = (&'static str, Certainty, Vec<String>);

fn xeon_max(topology: &Topology, firmware: Option<&Firmware>) -> Mode {
    let mut evidence = vec![format!("\"{}\" has 64 GiB of HBM per socket", topology.cpu_model)];
    let hbm: Vec<&MemoryNode> =
        topology.nodes.iter().filter(|node| node.is_memory_only() && node.kind == MemoryKind::Hbm).collect();
    let cached = side_caches(topology);
    let is_cached = cached.is_some();
    evidence.extend(cached);
    if !hbm.is_empty() {
        evidence.push(format!("HBM without CPUs: {}", nodes_text(hbm.iter().map(|node| node.id))));
        let certainty = certainty_of(hbm);
        return (if is_cached { "hybrid" } else { "flat" }, certainty, evidence);
    }
    if is_cached {
        return ("cache", Certainty::Detected, evidence);
    }
    if let Some(dax) = topology.dax.iter().find(|dax| dax.bus == DaxBus::SoftReserved) {
        evidence.push(format!("{} is soft-reserved memory that is not in use as memory (/sys/bus/dax)", dax.name));
        return ("flat", Certainty::Inferred, evidence);
    }
    if topology.is_virtual_machine() {
        evidence.push("a virtual machine need not show it".to_owned());
        return ("unknown", Certainty::Unknown, evidence);
    }
    let modules = firmware.map(|firmware| (firmware.modules_of(ModuleKind::Dram).0, firmware.modules_of(ModuleKind::Hbm).0));
    if let Some((dram, hbm)) = modules.filter(|(_, hbm)| *hbm > 0) {
        evidence.push(format!("{} of DDR and {hbm} of HBM (SMBIOS type 17), no node of HBM alone", counted(dram, "module")));
        return (if dram == 0 { "HBM only" } else { "cache" }, Certainty::Detected, evidence);
    }
    let text = size(topology.memory_bytes());
    if fits_in_hbm(topology) {
        evidence.push(format!("{text} of memory in all is no more than the HBM"));
        return ("HBM only", Certainty::Inferred, evidence);
    }
    evidence.push(format!("{text} of memory in all is more than the HBM, and no node is HBM alone"));
    ("cache", Certainty::Inferred, evidence)
}

fn general(topology: &Topology, firmware: Option<&Firmware>) -> Mode {
    let alone: Vec<&MemoryNode> = topology.nodes.iter().filter(|node| node.is_memory_only()).collect();
    let mut evidence: Vec<String> = side_caches(topology).into_iter().collect();
    let is_cached = !evidence.is_empty();
    if !alone.is_empty() {
        evidence.push(format!("memory without CPUs: {}", nodes_text(alone.iter().map(|node| node.id))));
        // Memory loses its CPUs also when they are taken offline, and virtual machines are given such memory while they run.
        let is_open = alone.iter().all(|node| node.kind == MemoryKind::Unknown);
        match (is_cached, is_open) {
            (true, true) => return ("cache", Certainty::Detected, evidence),
            (true, false) => return ("hybrid", Certainty::Detected, evidence),
            (false, true) => {
                evidence.push("nothing says that it is a different kind of memory from the rest".to_owned());
                return ("unknown", Certainty::Unknown, evidence);
            }
            (false, false) => {}
        }
        let is_gpu = alone.iter().all(|node| node.kind == MemoryKind::Gpu);
        let certainty = if certainty_of(alone) == Certainty::Detected { Certainty::Detected } else { Certainty::Inferred };
        return (if is_gpu { "flat (memory of GPUs)" } else { "flat" }, certainty, evidence);
    }
    if is_cached {
        return ("cache", Certainty::Detected, evidence);
    }
    let persistent = firmware.map_or((0, 0), |firmware| firmware.modules_of(ModuleKind::Persistent));
    if persistent.0 > 0 && !topology.dax.iter().any(|dax| dax.bus == DaxBus::Nvdimm) && topology.memory_bytes() > persistent.1 / 2
    {
        let text = format!("{} of persistent memory (SMBIOS type 17), none on the dax bus", counted(persistent.0, "module"));
        evidence.push(text);
        return ("cache", Certainty::Inferred, evidence);
    }
    evidence.push("no memory without CPUs, no memory-side cache (/sys/devices/system/node)".to_owned());
    let certainty = match firmware.and_then(Firmware::only_kind) {
        Some(_) => Certainty::Detected,
        None => Certainty::Inferred,
    };
    ("one kind of memory", certainty, evidence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_without_cpus_need_not_be_of_another_kind() {
        let node =
            |id: u32, cpus: &str, kind| MemoryNode { id, bytes: GIB, cpus: cpus.parse().unwrap(), kind, ..MemoryNode::default() };
        let of = |kinds: [MemoryKind; 2]| {
            let nodes = vec![node(0, "0-3", MemoryKind::Dram), node(1, "", kinds[0]), node(2, "", kinds[1])];
            finding(&Topology { nodes, ..Topology::default() }, None)
        };
        // CPUs of a socket that are offline, or memory that was added to a virtual machine.
        let open = of([MemoryKind::Unknown; 2]);
        assert_eq!((open.value.as_str(), open.certainty), ("unknown", Certainty::Unknown));
        assert!(open.evidence.iter().any(|text| text.contains("nodes 1-2")), "{open:?}");
        assert_eq!(of([MemoryKind::Unknown, MemoryKind::Cxl]).value, "flat");
    }
}
