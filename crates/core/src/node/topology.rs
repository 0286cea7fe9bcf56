//! What a machine is made of, as read from the kernel; nothing here is measured.

use super::{Certainty, CpuList};
use serde::{Deserialize, Serialize};

/// The machine's parts and what this process may use of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Topology {
    /// Processor model, as the kernel names it.
    pub cpu_model: String,
    /// "GenuineIntel", "AuthenticAMD", "ARM", ...; empty when unknown.
    pub vendor: String,
    /// CPUID family (x86) or null.
    pub family: Option<u32>,
    /// CPUID model (x86) or null.
    pub model: Option<u32>,
    /// "x86_64", "aarch64".
    pub arch: String,
    /// Flags or features, as /proc/cpuinfo lists them.
    pub features: Vec<String>,
    /// Kernel release.
    pub kernel: String,
    /// The hypervisor and the container runtime that were found, if any: "virtual machine (QEMU); container (Docker)".
    pub virtualisation: Option<String>,
    /// Sockets with an online CPU; null when the kernel does not say.
    pub packages: Option<u32>,
    /// Physical cores with an online CPU.
    pub cores: Option<u32>,
    /// Hardware threads per core.
    pub threads_per_core: Option<u32>,
    /// Online CPUs.
    pub online: CpuList,
    /// CPUs that this process may use (affinity and cpuset).
    pub allowed: CpuList,
    /// Where each allowed or online CPU is.
    pub placement: Vec<Placement>,
    /// Every distinct kind of cache, innermost first.
    pub caches: Vec<Cache>,
    /// The last-level cache, from every source there is.
    pub llc: Llc,
    /// NUMA nodes, ascending; a machine without NUMA has node 0.
    pub nodes: Vec<MemoryNode>,
    /// Relative distances (SLIT), row from, column to, in the order of `nodes`; empty when unknown.
    pub distances: Vec<Vec<u32>>,
    /// Memory tiers of the kernel (memory_tiering): number and nodes.
    pub memory_tiers: Vec<(u32, CpuList)>,
    /// Huge pages.
    pub huge_pages: HugePages,
    /// Limits of the cgroup.
    pub cgroup: Cgroup,
    /// NUMA nodes cannot be seen, and perhaps neither sockets nor caches: /sys is masked, as in some containers.
    pub hidden: bool,
    /// Vendor and product of the machine or the virtual machine (DMI); empty when unknown.
    pub machine: String,
    /// Identity of the chip (SMCCC SOC_ID, Arm), such as "jep106:036b:0241".
    pub soc: Option<String>,
    /// Special memory that the kernel lists on the dax bus, in use as ordinary memory or not.
    pub dax: Vec<Dax>,
    /// Memory of GPUs that is a NUMA node: address of the GPU, and the node.
    pub gpu_memory: Vec<(String, u32)>,
}

impl Topology {
    /// Bytes of memory of all nodes.
    pub fn memory_bytes(&self) -> u64 {
        self.nodes.iter().fold(0, |sum, node| sum.saturating_add(node.bytes))
    }

    /// True in a virtual machine, where the hypervisor chooses what is to be seen.
    pub fn is_virtual_machine(&self) -> bool {
        self.virtualisation.as_deref().is_some_and(|text| text.contains("virtual machine"))
    }

    /// The node of this number.
    pub fn node(&self, id: u32) -> Option<&MemoryNode> {
        self.nodes.iter().find(|node| node.id == id)
    }

    /// The cores of `cpus`, by lowest CPU: each with those of its hardware threads that are in `cpus`. A CPU whose core is not known is
    /// one of its own.
    pub fn cores(&self, cpus: &CpuList) -> Vec<CpuList> {
        let core_of = |cpu: u32| {
            let place = self.placement.iter().find(|place| place.cpu == cpu)?;
            Some((place.package, place.core?))
        };
        let mut cores: Vec<Vec<u32>> = Vec::new();
        for &cpu in cpus.as_slice() {
            let core = core_of(cpu);
            // The first thread of a core stands for it.
            match cores.iter_mut().find(|threads| core.is_some() && core_of(threads[0]) == core) {
                Some(threads) => threads.push(cpu),
                None => cores.push(vec![cpu]),
            }
        }
        cores.into_iter().map(|threads| threads.into_iter().collect()).collect()
    }

    /// The parts of `cpus` by node, ascending; CPUs of no node are a part of their own.
    pub fn cpus_by_node(&self, cpus: &CpuList) -> Vec<CpuList> {
        let mut parts: Vec<CpuList> = self.nodes.iter().map(|node| node.cpus.and(cpus)).collect();
        let rest = cpus.as_slice().iter().copied().filter(|&cpu| !parts.iter().any(|part| part.contains(cpu))).collect();
        parts.push(rest);
        parts.retain(|part| !part.is_empty());
        parts
    }

    /// Relative distance (SLIT) between two nodes; null when it is not known.
    pub fn distance(&self, from: u32, to: u32) -> Option<u32> {
        let place = |id: u32| self.nodes.iter().position(|node| node.id == id);
        self.distances.get(place(from)?)?.get(place(to)?).copied()
    }
}

/// Memory on the dax bus.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Dax {
    /// "dax0.0".
    pub name: String,
    /// The node that it belongs to, or would.
    pub node: Option<u32>,
    /// Bytes.
    pub bytes: u64,
    /// What registered it.
    pub bus: DaxBus,
}

/// What registered special memory, from the path of the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DaxBus {
    /// Something else.
    #[default]
    Other,
    /// NVDIMM (ndbus): persistent memory.
    Nvdimm,
    /// Soft-reserved by the firmware (hmem): HBM, or CXL that the firmware set up.
    SoftReserved,
    /// A CXL region.
    Cxl,
}

/// Where a CPU is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Placement {
    /// Its number.
    pub cpu: u32,
    /// Its socket.
    pub package: Option<u32>,
    /// Its core, unique in its socket.
    pub core: Option<u32>,
    /// Its NUMA node.
    pub node: Option<u32>,
}

/// What a cache holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheKind {
    /// Data only.
    Data,
    /// Code only.
    Instruction,
    /// Both.
    #[default]
    Unified,
}

/// Caches of one level and kind that are alike.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cache {
    /// 1 is next to the core.
    pub level: u32,
    /// What it holds.
    pub kind: CacheKind,
    /// Bytes of one.
    pub bytes: u64,
    /// Bytes of a line.
    pub line: Option<u32>,
    /// Associativity.
    pub ways: Option<u32>,
    /// How many there are over the online CPUs.
    pub instances: u32,
    /// CPUs that share one.
    pub shared_by: u32,
}

/// One source's word on the last-level cache.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LlcSource {
    /// "sysfs", "cpuid", "measured knee", ...
    pub source: String,
    /// Bytes that it says, all instances over the allowed CPUs together.
    pub bytes: u64,
}

/// Size of the last-level cache (memory-side caches included).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Llc {
    /// The largest that any credible source says; null when none does. Arrays have at least four times this.
    pub bytes: Option<u64>,
    /// How much of `bytes` is memory-side caches: gigabytes where HBM is a cache, so that only what is larger measures the memory behind.
    pub side_bytes: u64,
    /// All that was said.
    pub sources: Vec<LlcSource>,
}

/// What a memory is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemoryKind {
    /// Not known.
    #[default]
    Unknown,
    /// DDR, LPDDR.
    Dram,
    /// High-bandwidth memory on the package: HBM, MCDRAM.
    Hbm,
    /// Behind a CXL link.
    Cxl,
    /// Persistent memory used as memory.
    Pmem,
    /// Memory of a GPU that the CPUs can address.
    Gpu,
}

/// What the firmware claims of a memory (HMAT), seen from its nearest CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Claim {
    /// Read bandwidth in bytes per second.
    pub read_bytes_per_s: Option<f64>,
    /// Write bandwidth in bytes per second.
    pub write_bytes_per_s: Option<f64>,
    /// Read latency in nanoseconds.
    pub read_ns: Option<f64>,
    /// Write latency in nanoseconds.
    pub write_ns: Option<f64>,
}

/// A cache between a memory and everything else (HMAT).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SideCache {
    /// Bytes.
    pub bytes: u64,
    /// Bytes of a line.
    pub line: Option<u32>,
    /// "direct-mapped", "other", ...
    pub indexing: Option<String>,
    /// "write-back", "write-through", ...
    pub write_policy: Option<String>,
}

/// A NUMA node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MemoryNode {
    /// Its number.
    pub id: u32,
    /// Bytes of memory (MemTotal of the node).
    pub bytes: u64,
    /// Bytes free when it was read.
    pub free_bytes: u64,
    /// Its CPUs; none for memory alone.
    pub cpus: CpuList,
    /// This process may allocate there (cpuset.mems).
    pub allowed: bool,
    /// What it is made of.
    pub kind: MemoryKind,
    /// How sure that is.
    pub certainty: Certainty,
    /// Why.
    pub evidence: Vec<String>,
    /// What the firmware claims.
    pub claim: Option<Claim>,
    /// Caches in front of it.
    pub side_caches: Vec<SideCache>,
}

impl MemoryNode {
    /// It has memory, but no CPUs.
    pub fn is_memory_only(&self) -> bool {
        self.bytes > 0 && self.cpus.is_empty()
    }
}

/// Huge pages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HugePages {
    /// Bytes of a small page.
    pub page: u64,
    /// Transparent huge pages: "always", "madvise", "never"; null when the kernel has none.
    pub transparent: Option<String>,
    /// Bytes of a transparent huge page.
    pub huge_page: Option<u64>,
    /// Pools of hugetlb: bytes of a page and how many are reserved.
    pub reserved: Vec<(u64, u64)>,
}

/// Limits of the control group that this process is in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cgroup {
    /// Bytes of memory, the lowest limit up to the root; null without a limit.
    pub memory_bytes: Option<u64>,
    /// CPUs' worth of time (quota / period); null without a limit.
    pub cpus: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> CpuList {
        text.parse().unwrap()
    }

    #[test]
    fn two_sockets_with_two_threads_per_core() {
        let place = |cpu: u32| Placement { cpu, package: Some(cpu % 4 / 2), core: Some(cpu % 2), node: Some(cpu % 4 / 2) };
        let node = |id, cpus| MemoryNode { id, cpus: list(cpus), ..MemoryNode::default() };
        let machine = Topology {
            placement: (0..8).map(place).collect(),
            nodes: vec![node(0, "0-1,4-5"), node(1, "2-3,6-7")],
            ..Topology::default()
        };
        assert_eq!(machine.cores(&list("0-7")), ["0,4", "1,5", "2,6", "3,7"].map(list));
        assert_eq!(machine.cores(&list("0,5,9")), ["0", "5", "9"].map(list));
        assert_eq!(machine.cpus_by_node(&list("0-7")), ["0-1,4-5", "2-3,6-7"].map(list));
        assert_eq!(machine.cpus_by_node(&list("1,6,9")), ["1", "6", "9"].map(list));
        let nothing = Topology::default();
        assert_eq!((nothing.cores(&list("0-1")).len(), nothing.cpus_by_node(&list("0-1"))), (2, vec![list("0-1")]));
    }
}
