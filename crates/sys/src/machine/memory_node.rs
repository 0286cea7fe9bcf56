//! NUMA nodes: CPUs, memory, distances, what the firmware claims of them (HMAT), caches in front of them, and devices that are behind them.

use super::cpu::status_list;
use super::reader::Reader;
use nearfar_core::node::{Claim, CpuList, Dax, DaxBus, MemoryNode, SideCache, Topology};

const NODES: &str = "/sys/devices/system/node";

/// Linux has no more nodes than this; higher numbers come from broken names.
const MOST: u32 = 1 << 10;

/// Bytes per second of the kernel's unit, MiB/s (Documentation/admin-guide/mm/numaperf.rst).
const MIB: f64 = 1048576.0;

/// Needs the online CPUs and their placement; fills in the rest of what nodes are.
pub(super) fn read(reader: &Reader, topology: &mut Topology) {
    outline(reader, topology);
    for node in &mut topology.nodes {
        let file = |name: &str| format!("{NODES}/node{}/{name}", node.id);
        // Class 1 is the nearest CPUs; class 0 may be a device that is nearer (kernel 5.10).
        node.claim = claim(reader, &file("access1/initiators")).or_else(|| claim(reader, &file("access0/initiators")));
        node.side_caches = side_caches(reader, &file("memory_side_cache"));
    }
    for node in &topology.nodes {
        for place in topology.placement.iter_mut().filter(|place| node.cpus.contains(place.cpu)) {
            place.node = Some(node.id);
        }
    }
    topology.memory_tiers = tiers(reader);
    topology.dax = dax(reader);
    topology.gpu_memory = gpu_memory(reader);
}

/// Needs the online CPUs; fills in number, CPUs and bytes of the nodes, whether they are allowed, and distances.
pub(super) fn outline(reader: &Reader, topology: &mut Topology) {
    let status = reader.text("/proc/self/status").unwrap_or_default();
    let allowed = status_list(&status, "Mems_allowed_list:");
    let numbers: Vec<u32> = reader.numbered(NODES, "node").into_iter().filter(|id| *id < MOST).collect();
    topology.nodes = numbers.iter().map(|id| node(reader, *id, &topology.online)).collect();
    if topology.nodes.is_empty() {
        let (bytes, free_bytes) = memory(&reader.text("/proc/meminfo").unwrap_or_default());
        let cpus = topology.online.clone();
        let evidence = vec![format!("no {NODES}: all memory as one node (/proc/meminfo)")];
        topology.nodes = vec![MemoryNode { bytes, free_bytes, cpus, evidence, ..MemoryNode::default() }];
    } else {
        topology.distances = distances(reader, &numbers);
    }
    for node in &mut topology.nodes {
        node.allowed = allowed.as_ref().is_none_or(|allowed| allowed.contains(node.id));
    }
}

/// True when the kernel lists its nodes.
pub(super) fn are_listed(reader: &Reader) -> bool {
    !reader.numbered(NODES, "node").is_empty()
}

fn node(reader: &Reader, id: u32, online: &CpuList) -> MemoryNode {
    let file = |name: &str| format!("{NODES}/node{id}/{name}");
    let cpus = reader.list(&file("cpulist")).unwrap_or_default().and(online);
    let (bytes, free_bytes) = memory(&reader.text(&file("meminfo")).unwrap_or_default());
    MemoryNode { id, bytes, free_bytes, cpus, ..MemoryNode::default() }
}

/// MemTotal and MemFree in bytes, from meminfo of the machine or of a node.
fn memory(meminfo: &str) -> (u64, u64) {
    let kibibytes = |name: &str| {
        let line = meminfo.lines().find_map(|line| Some(line.split_once(name)?.1))?;
        line.split_ascii_whitespace().next()?.parse::<u64>().ok()
    };
    let bytes = |name| kibibytes(name).unwrap_or(0).saturating_mul(1024);
    (bytes("MemTotal:"), bytes("MemFree:"))
}

fn claim(reader: &Reader, dir: &str) -> Option<Claim> {
    // 0 is what the kernel has when the firmware gave nothing.
    let value = |name: &str| reader.number(&format!("{dir}/{name}")).filter(|value| *value > 0).map(|value| value as f64);
    let claim = Claim {
        read_bytes_per_s: value("read_bandwidth").map(|value| value * MIB),
        write_bytes_per_s: value("write_bandwidth").map(|value| value * MIB),
        read_ns: value("read_latency"),
        write_ns: value("write_latency"),
    };
    (claim != Claim::default()).then_some(claim)
}

fn side_caches(reader: &Reader, dir: &str) -> Vec<SideCache> {
    let one = |index: u32| {
        let file = |name: &str| format!("{dir}/index{index}/{name}");
        let bytes = reader.number(&file("size")).filter(|bytes| *bytes > 0)?;
        // Numbers of include/linux/node.h.
        let word = |name: &str, words: [&str; 3]| {
            let number = reader.small(&file(name))?;
            words.get(number as usize).map(|word| (*word).to_owned())
        };
        Some(SideCache {
            bytes,
            line: reader.small(&file("line_size")).filter(|line| *line > 0),
            indexing: word("indexing", ["direct-mapped", "complex", "other"]),
            write_policy: word("write_policy", ["write-back", "write-through", "other"]),
        })
    };
    reader.numbered(dir, "index").into_iter().filter_map(one).collect()
}

/// Distances between the nodes; none at all when a row is missing or of another length.
fn distances(reader: &Reader, numbers: &[u32]) -> Vec<Vec<u32>> {
    let row = |id: &u32| {
        let text = reader.text(&format!("{NODES}/node{id}/distance"))?;
        let row: Vec<u32> = text.split_ascii_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
        (row.len() == numbers.len()).then_some(row)
    };
    numbers.iter().map(row).collect::<Option<_>>().unwrap_or_default()
}

fn tiers(reader: &Reader) -> Vec<(u32, CpuList)> {
    let dir = "/sys/devices/virtual/memory_tiering";
    let tier = |number: u32| Some((number, reader.list(&format!("{dir}/memory_tier{number}/nodelist"))?));
    reader.numbered(dir, "memory_tier").into_iter().filter_map(tier).filter(|(_, nodes)| !nodes.is_empty()).collect()
}

fn dax(reader: &Reader) -> Vec<Dax> {
    let dir = "/sys/bus/dax/devices";
    let one = |name: String| {
        let link = reader.link(&format!("{dir}/{name}")).unwrap_or_default();
        let bus = match link {
            _ if link.contains("/ndbus") => DaxBus::Nvdimm,
            // The root device of CXL in ACPI, and the regions that it has.
            _ if link.contains("ACPI0017") || link.contains("/dax_region") => DaxBus::Cxl,
            _ if link.contains("/hmem") => DaxBus::SoftReserved,
            _ => DaxBus::Other,
        };
        let node = reader.small(&format!("{dir}/{name}/target_node")).filter(|node| *node < MOST);
        let bytes = reader.number(&format!("{dir}/{name}/size")).unwrap_or(0);
        // An empty device is the seed for others.
        (bytes > 0 || node.is_some()).then_some(Dax { name, node, bytes, bus })
    };
    reader.names(dir).into_iter().filter_map(one).collect()
}

/// GPUs whose memory is a node: "NVIDIA GH200 480GB at 0009:01:00.0".
fn gpu_memory(reader: &Reader) -> Vec<(String, u32)> {
    let dir = "/proc/driver/nvidia/gpus";
    let value = |text: &str, name: &str| {
        let mut fields = text.lines().filter_map(|line| line.split_once(':'));
        fields.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim().to_owned())
    };
    let one = |address: String| {
        let status = reader.text(&format!("{dir}/{address}/numa_status"))?;
        let node = value(&status, "Node")?.parse().ok().filter(|node| *node < MOST)?;
        let information = reader.text(&format!("{dir}/{address}/information")).unwrap_or_default();
        let model = value(&information, "Model").unwrap_or_else(|| "NVIDIA".to_owned());
        Some((format!("{model} at {address}"), node))
    };
    reader.names(dir).into_iter().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::Root;

    fn nodes(text: &str) -> Topology {
        let mut topology = Topology { online: "0-3".parse().expect("a list"), ..Topology::default() };
        read(&Reader::new(&Root::captured(text).expect("a capture")), &mut topology);
        topology
    }

    #[test]
    fn class_1_before_class_0_and_zero_is_no_claim() {
        let dir = "/sys/devices/system/node/node0";
        let text = format!(
            "=== {dir}/cpulist\n 0-3\n=== {dir}/meminfo\n Node 0 MemTotal:  8 kB\n Node 0 MemFree: 4 kB\n\
             === {dir}/access0/initiators/read_bandwidth\n 10\n=== {dir}/access1/initiators/read_bandwidth\n 20\n\
             === {dir}/access1/initiators/read_latency\n 0\n\
             === {dir}/memory_side_cache/index1/size\n 4096\n=== {dir}/memory_side_cache/index1/indexing\n 0\n"
        );
        let topology = nodes(&text);
        let node = &topology.nodes[0];
        assert_eq!((node.bytes, node.free_bytes, node.cpus.len(), node.allowed), (8192, 4096, 4, true));
        assert_eq!(node.claim, Some(Claim { read_bytes_per_s: Some(20.0 * MIB), ..Claim::default() }));
        assert_eq!((node.side_caches[0].bytes, node.side_caches[0].indexing.as_deref()), (4096, Some("direct-mapped")));
        assert!(topology.distances.is_empty());
    }

    #[test]
    fn devices_that_name_a_memory() {
        let dir = "/sys/bus/dax/devices";
        let text = format!(
            "--- {dir}/dax0.0 ../../../devices/LNXSYSTM:00/ACPI0012:00/ndbus0/region0/dax0.0/dax0.0\n=== {dir}/dax0.0/target_node\n 2\n\
             --- {dir}/dax1.0 ../../../devices/platform/hmem.0/dax1.0\n=== {dir}/dax1.0/size\n 99\n=== {dir}/dax1.0/target_node\n -1\n\
             --- {dir}/dax2.0 ../../../devices/platform/ACPI0017:00/root0/decoder0.0/region0/dax_region0/dax2.0\n\
             === {dir}/dax2.0/target_node\n 3\n\
             === /proc/driver/nvidia/gpus/0009:01:00.0/numa_status\n Node:           1\n Status:         online\n"
        );
        let topology = nodes(&text);
        let found: Vec<_> = topology.dax.iter().map(|dax| (dax.bus, dax.node, dax.bytes)).collect();
        assert_eq!(found, [(DaxBus::Nvdimm, Some(2), 0), (DaxBus::SoftReserved, None, 99), (DaxBus::Cxl, Some(3), 0)]);
        assert_eq!(topology.gpu_memory, [("NVIDIA at 0009:01:00.0".to_owned(), 1)]);
    }
}
