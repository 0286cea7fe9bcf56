//! What each memory is made of, with the evidence: a device that names it, else the product, else what the firmware claims of its speed.

use super::{Product, nodes_text, size};
use crate::node::{Certainty, DaxBus, Firmware, MemoryKind, MemoryNode, Topology};

/// Claimed bandwidth of a memory without CPUs, relative to its home's, from which it is HBM. DDR and its HBM differ by 4 or 5,
/// memories of one kind by less than 2.
const FASTER: f64 = 2.0;

/// The same, up to which it is an expansion (CXL and the like).
const SLOWER: f64 = 0.8;

/// Claimed latency relative to its home's from which it is an expansion, unless it has more bandwidth.
const FARTHER: f64 = 1.5;

/// How a memory without CPUs compares with the memory of the nearest CPUs, as far as the firmware claims (HMAT).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speed {
    Faster,
    Alike,
    Slower,
}

/// Fills in kind, certainty and evidence of every node.
pub fn assign_kinds(topology: &mut Topology, firmware: Option<&Firmware>) {
    let product = Product::of(topology);
    let kinds: Vec<_> = topology.nodes.iter().map(|node| kind_of(topology, product, firmware, node)).collect();
    for (node, (kind, certainty, evidence)) in topology.nodes.iter_mut().zip(kinds) {
        (node.kind, node.certainty) = (kind, certainty);
        node.evidence.extend(evidence);
    }
}

type Kind = (MemoryKind, Certainty, Vec<String>);

fn kind_of(topology: &Topology, product: Product, firmware: Option<&Firmware>, node: &MemoryNode) -> Kind {
    if node.bytes == 0 {
        return (MemoryKind::Unknown, Certainty::Unknown, vec!["no memory".to_owned()]);
    }
    if let Some((gpu, _)) = topology.gpu_memory.iter().find(|(_, id)| *id == node.id) {
        return (MemoryKind::Gpu, Certainty::Detected, vec![format!("memory of GPU {gpu} (/proc/driver/nvidia)")]);
    }
    if node.cpus.is_empty() { memory_only(topology, product, node) } else { with_cpus(topology, product, firmware) }
}

fn memory_only(topology: &Topology, product: Product, node: &MemoryNode) -> Kind {
    let mut evidence = vec!["no CPUs (cpulist)".to_owned()];
    let claims = compare(topology, node);
    let speed = claims.as_ref().map(|(speed, _)| *speed);
    evidence.extend(claims.map(|(_, text)| text));
    evidence.extend(kernel_tier(topology, node).map(|(_, text)| text));
    let mut is_reserved = false;
    for dax in topology.dax.iter().filter(|dax| dax.node == Some(node.id)) {
        let (kind, what) = match dax.bus {
            DaxBus::Nvdimm => (Some(MemoryKind::Pmem), "an NVDIMM (ndbus)"),
            DaxBus::Cxl => (Some(MemoryKind::Cxl), "a CXL region"),
            DaxBus::SoftReserved => (None, "soft-reserved by the firmware (hmem)"),
            DaxBus::Other => continue,
        };
        evidence.push(format!("{} is {what} (/sys/bus/dax)", dax.name));
        if let Some(kind) = kind {
            return (kind, Certainty::Detected, evidence);
        }
        is_reserved = true;
    }
    // Rules of products hold only where the kernel says which CPUs a node has.
    let product = if home(topology, node.id).is_some() { product } else { Product::Other };
    if product.is_knl() {
        evidence.push("on this processor only MCDRAM has no CPUs".to_owned());
        return (MemoryKind::Hbm, Certainty::Detected, evidence);
    }
    if product == Product::XeonMax && speed != Some(Speed::Slower) && node.bytes <= super::memory_mode::XEON_MAX_HBM {
        evidence.push("a Xeon Max has 64 GiB of HBM per socket".to_owned());
        let certainty = if is_reserved || speed == Some(Speed::Faster) { Certainty::Detected } else { Certainty::Inferred };
        return (MemoryKind::Hbm, certainty, evidence);
    }
    if product.is_grace_with_gpu() {
        evidence.push("beside Grace only GPUs have such memory".to_owned());
        return (MemoryKind::Gpu, Certainty::Inferred, evidence);
    }
    match speed {
        Some(Speed::Faster) => (MemoryKind::Hbm, Certainty::Inferred, evidence),
        Some(Speed::Slower) => (MemoryKind::Cxl, Certainty::Inferred, evidence),
        Some(Speed::Alike) | None => (MemoryKind::Unknown, Certainty::Unknown, evidence),
    }
}

fn with_cpus(topology: &Topology, product: Product, firmware: Option<&Firmware>) -> Kind {
    if topology.hidden {
        return (MemoryKind::Unknown, Certainty::Unknown, Vec::new());
    }
    if product.has_hbm_only() {
        let text = format!("\"{}\" has HBM and no DIMMs", topology.cpu_model);
        let certainty = if product == Product::EpycHbm { Certainty::Inferred } else { Certainty::Detected };
        return (MemoryKind::Hbm, certainty, vec![text]);
    }
    let modules = firmware.and_then(Firmware::only_kind).filter(|_| !product.is_knl());
    if let Some(kind) = modules {
        return (kind, Certainty::Detected, vec!["all memory modules are of this kind (SMBIOS type 17)".to_owned()]);
    }
    if product == Product::XeonMax && super::memory_mode::fits_in_hbm(topology) {
        let text = format!("{} in all, and a Xeon Max has 64 GiB of HBM per socket", size(topology.memory_bytes()));
        return (MemoryKind::Hbm, Certainty::Inferred, vec![text]);
    }
    let mut evidence = vec!["has CPUs, and nothing says that it is anything else".to_owned()];
    if topology.is_virtual_machine() {
        evidence.push("a virtual machine: the hypervisor does not show what kind of memory it uses".to_owned());
    }
    (MemoryKind::Dram, Certainty::Inferred, evidence)
}

/// The node with CPUs and memory that is nearest to `node` (the lowest number of several).
pub(super) fn home(topology: &Topology, node: u32) -> Option<&MemoryNode> {
    let homes = topology.nodes.iter().filter(|home| home.id != node && home.bytes > 0 && !home.cpus.is_empty());
    homes.min_by_key(|home| topology.distance(home.id, node).unwrap_or(u32::MAX))
}

/// How the firmware's claims for a memory without CPUs compare with those for its home.
pub(super) fn compare(topology: &Topology, node: &MemoryNode) -> Option<(Speed, String)> {
    let home = home(topology, node.id)?;
    let (ours, theirs) = (node.claim?, home.claim?);
    let ratio = |ours: Option<f64>, theirs: Option<f64>| Some(ours? / theirs?).filter(|ratio| ratio.is_finite());
    let bandwidth = ratio(ours.read_bytes_per_s, theirs.read_bytes_per_s);
    let latency = ratio(ours.read_ns, theirs.read_ns);
    let speed = match (bandwidth, latency) {
        (None, None) => return None,
        (Some(ratio), _) if ratio >= FASTER => Speed::Faster,
        (Some(ratio), _) if ratio <= SLOWER => Speed::Slower,
        (_, Some(ratio)) if ratio >= FARTHER => Speed::Slower,
        _ => Speed::Alike,
    };
    let times = |ratio: Option<f64>| ratio.map_or("unknown".to_owned(), |ratio| format!("{ratio:.2} times"));
    let text = format!(
        "the firmware claims bandwidth {} and latency {} that of {} (HMAT)",
        times(bandwidth),
        times(latency),
        nodes_text([home.id])
    );
    Some((speed, text))
}

/// How the kernel ranks a memory without CPUs against its home (memory_tiering; the lower number is the faster).
pub(super) fn kernel_tier(topology: &Topology, node: &MemoryNode) -> Option<(Speed, String)> {
    let tier = |id: u32| topology.memory_tiers.iter().find(|(_, nodes)| nodes.contains(id)).map(|(tier, _)| *tier);
    let home = home(topology, node.id)?.id;
    let (ours, theirs) = (tier(node.id)?, tier(home)?);
    let speed = match ours.cmp(&theirs) {
        std::cmp::Ordering::Less => Speed::Faster,
        std::cmp::Ordering::Equal => return None,
        std::cmp::Ordering::Greater => Speed::Slower,
    };
    Some((speed, format!("the kernel has it in memory tier {ours}, and {} in {theirs}", nodes_text([home]))))
}
