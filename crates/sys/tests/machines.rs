//! Captured machines (tests/machines/*.capture): what is concluded of each, and that broken ones do no harm.
//! Put it here if it needs a whole machine; parts are tested beside their parsers.

use nearfar_core::node::detect::{findings, tiers};
use nearfar_core::node::{Certainty, CpuList, MemoryKind, Subject, Topology};
use nearfar_core::placement::{NodeSet, nodes};
use nearfar_sys::machine;
use nearfar_sys::root::{Entry, Root};
use proptest::prelude::*;
use std::path::{Path, PathBuf};

fn dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/machines")
}

fn root(name: &str) -> Root {
    Root::open(&dir().join(format!("{name}.capture"))).expect("a capture")
}

/// What must be found.
struct Expected {
    file: &'static str,
    product: &'static str,
    memory: (&'static str, Certainty),
    cluster: &'static str,
    tiers: &'static str,
    /// Nodes by kind; those without memory are not listed.
    kinds: &'static str,
    /// Sockets, cores, threads of a core; 0 for unknown.
    cores: [u32; 3],
    /// The last level over the allowed CPUs, memory-side caches included, in MiB; 0 for unknown.
    llc_mib: u64,
}

use Certainty::{Detected, Inferred, Unknown};

#[rustfmt::skip]
const MACHINES: &[Expected] = &[
    of("a64fx", "A64FX", ("HBM only", Detected), "4 nodes per socket", "one tier", "hbm 0-3", [1, 48, 1], 32),
    of("altra-without-caches", "Neoverse N1", ("one kind of memory", Inferred), "none", "one tier", "dram 0", [1, 80, 1], 0),
    of("booted-cxl", "QEMU TCG CPU version 2.5+", ("flat", Inferred), "none", "near: node 0, far: node 1", "dram 0, cxl 1", [1, 4, 1], 16),
    of("booted-cxl-no-hmat", "QEMU TCG CPU version 2.5+", ("unknown", Unknown), "none", "unknown", "dram 0, unknown 1", [1, 4, 1], 16),
    of("booted-dual-socket", "QEMU TCG CPU version 2.5+", ("one kind of memory", Inferred), "none", "one tier", "dram 0-1", [2, 4, 1], 32),
    of("booted-knl-cache", "Knights Landing", ("cache", Detected), "quadrant, hemisphere or all-to-all", "one tier", "dram 0", [1, 4, 1], 16 + 256),
    of("booted-knl-cache-no-hmat", "Knights Landing", ("cache", Inferred), "quadrant, hemisphere or all-to-all", "one tier", "dram 0", [1, 4, 1], 16 + 16384),
    of("booted-knl-flat", "Knights Landing", ("flat", Inferred), "quadrant, hemisphere or all-to-all", "near: node 1, far: node 0", "dram 0, hbm 1", [1, 4, 1], 16),
    of("booted-knl-flat-as-seen", "QEMU TCG CPU version 2.5+", ("flat", Inferred), "none", "near: node 1, far: node 0", "dram 0, hbm 1", [1, 4, 1], 16),
    of("booted-knl-flat-no-hmat", "Knights Landing", ("flat", Inferred), "quadrant, hemisphere or all-to-all", "near: node 1, far: node 0", "dram 0, hbm 1", [1, 4, 1], 16),
    of("booted-knl-snc4", "Knights Landing", ("flat", Inferred), "SNC-4", "near: nodes 4-7, far: nodes 0-3", "dram 0-3, hbm 4-7", [1, 4, 1], 64),
    of("booted-knl-snc4-no-hmat", "Knights Landing", ("flat", Inferred), "SNC-4", "near: nodes 4-7, far: nodes 0-3", "dram 0-3, hbm 4-7", [1, 4, 1], 64),
    of("booted-xeonmax-flat", "Xeon Max", ("flat", Detected), "none", "near: nodes 2-3, far: nodes 0-1", "dram 0-1, hbm 2-3", [2, 4, 1], 32),
    of("booted-xeonmax-flat-no-hmat", "Xeon Max", ("flat", Inferred), "none", "near: nodes 2-3, far: nodes 0-1", "dram 0-1, hbm 2-3", [2, 4, 1], 32),
    of("development-machine", "Milan (EPYC 7003)", ("one kind of memory", Inferred), "NPS-1", "one tier", "dram 0", [1, 2, 1], 32),
    of("container-gvisor", "Genoa (EPYC 9004)", ("unknown", Unknown), "unknown", "unknown", "unknown 0", [0, 0, 0], 0),
    of("container-without-anything", "unknown", ("unknown", Unknown), "unknown", "unknown", "", [0, 0, 0], 0),
    of("container-without-sys", "Sapphire Rapids", ("unknown", Unknown), "unknown", "unknown", "unknown 0", [1, 2, 2], 0),
    of("cxl-region", "Sapphire Rapids", ("flat", Detected), "none", "near: node 0, far: node 1", "dram 0, cxl 1", [1, 32, 2], 60),
    of("grace-hopper", "Grace-Hopper", ("flat (memory of GPUs)", Detected), "none", "near: node 0, far: node 1", "dram 0, gpu 1", [1, 72, 1], 114),
    of("knl-cache", "Knights Landing", ("cache", Inferred), "quadrant, hemisphere or all-to-all", "one tier", "dram 0", [1, 64, 4], 32 + 16384),
    of("knl-cache-root", "Knights Landing", ("cache", Detected), "hemisphere", "one tier", "dram 0", [1, 64, 4], 32 + 16384),
    of("knl-quad-hybrid", "Knights Landing", ("hybrid (50 % cache)", Inferred), "quadrant, hemisphere or all-to-all", "near: node 1, far: node 0", "dram 0, hbm 1", [1, 68, 4], 34 + 8192),
    of("knl-snc4-flat", "Knights Landing", ("flat", Inferred), "SNC-4", "near: nodes 4-7, far: nodes 0-3", "dram 0-3, hbm 4-7", [1, 64, 4], 32),
    of("laptop-hybrid", "12th Gen Intel(R) Core(TM) i7-1260P", ("one kind of memory", Inferred), "none", "one tier", "dram 0", [1, 12, 2], 18),
    of("mi300a", "MI300A", ("unified", Detected), "NPS-1", "one tier", "hbm 0-3", [4, 96, 2], 384),
    of("milan-nps4", "Milan (EPYC 7003)", ("one kind of memory", Inferred), "NPS-4", "one tier", "dram 0-7", [2, 64, 2], 512),
    of("optane-kmem", "Skylake, Cascade Lake or Cooper Lake", ("flat", Detected), "none", "near: nodes 0-1, far: nodes 2-3", "dram 0-1, pmem 2-3", [2, 40, 2], 55),
    of("rome-l3-as-numa", "Rome (EPYC 7002)", ("one kind of memory", Inferred), "L3 as NUMA node", "one tier", "dram 0-7", [1, 32, 1], 128),
    of("snc2-slurm-job", "Sapphire Rapids", ("one kind of memory", Inferred), "SNC-2", "one tier", "dram 0-3", [2, 64, 1], 60),
    of("two-sockets-sapphire-rapids", "Sapphire Rapids", ("one kind of memory", Inferred), "none", "one tier", "dram 0-1", [2, 64, 2], 120),
    of("xeonmax-cache", "Xeon Max", ("cache", Inferred), "none", "one tier", "dram 0-1", [2, 64, 2], 150 + 131072),
    of("xeonmax-flat-reserved", "Xeon Max", ("flat", Inferred), "none", "one tier", "dram 0-1", [2, 64, 2], 150),
    of("xeonmax-hbm-only", "Xeon Max", ("HBM only", Inferred), "SNC-4", "one tier", "hbm 0-7", [2, 64, 1], 150),
    of("xeonmax-snc4-flat", "Xeon Max", ("flat", Detected), "SNC-4", "near: nodes 8-15, far: nodes 0-7", "dram 0-7, hbm 8-15", [2, 112, 1], 225),
];

#[allow(clippy::too_many_arguments)]
const fn of(
    file: &'static str,
    product: &'static str,
    memory: (&'static str, Certainty),
    cluster: &'static str,
    tiers: &'static str,
    kinds: &'static str,
    cores: [u32; 3],
    llc_mib: u64,
) -> Expected {
    Expected { file, product, memory, cluster, tiers, kinds, cores, llc_mib }
}

fn value(topology: &Topology, root: &Root, subject: Subject) -> (String, Certainty) {
    let all = findings(topology, machine::firmware(root).as_ref());
    let found: Vec<_> = all.into_iter().filter(|finding| finding.subject == subject).collect();
    assert_eq!(found.len(), 1, "{subject:?}");
    (found[0].value.clone(), found[0].certainty)
}

fn kinds(topology: &Topology) -> String {
    let of = |kind| -> CpuList {
        topology.nodes.iter().filter(|node| node.kind == kind && node.bytes > 0).map(|node| node.id).collect()
    };
    let all = [
        ("dram", MemoryKind::Dram),
        ("hbm", MemoryKind::Hbm),
        ("cxl", MemoryKind::Cxl),
        ("pmem", MemoryKind::Pmem),
        ("gpu", MemoryKind::Gpu),
        ("unknown", MemoryKind::Unknown),
    ];
    let texts = all.into_iter().map(|(name, kind)| (name, of(kind))).filter(|(_, nodes)| !nodes.is_empty());
    texts.map(|(name, nodes)| format!("{name} {nodes}")).collect::<Vec<_>>().join(", ")
}

#[test]
fn every_machine_is_recognised() {
    let mut wrong = Vec::new();
    for expected in MACHINES {
        let root = root(expected.file);
        let topology = machine::topology(&root);
        let mut check = |what: &str, found: String, wanted: String| {
            if found != wanted {
                wrong.push(format!("{}: {what} is {found}, and should be {wanted}", expected.file));
            }
        };
        check("product", value(&topology, &root, Subject::Product).0, expected.product.to_owned());
        let (mode, certainty) = value(&topology, &root, Subject::MemoryMode);
        check("memory mode", format!("{mode} ({certainty:?})"), format!("{} ({:?})", expected.memory.0, expected.memory.1));
        check("cluster mode", value(&topology, &root, Subject::ClusterMode).0, expected.cluster.to_owned());
        check("tiers", value(&topology, &root, Subject::Tiers).0, expected.tiers.to_owned());
        check("kinds", kinds(&topology), expected.kinds.to_owned());
        let cores = [topology.packages, topology.cores, topology.threads_per_core].map(Option::unwrap_or_default);
        check("cores", format!("{cores:?}"), format!("{:?}", expected.cores));
        check("llc", (topology.llc.bytes.unwrap_or(0) >> 20).to_string(), expected.llc_mib.to_string());
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// SMBIOS, which the short reading leaves out, decides in these.
const KNOWN_BY_FIRMWARE: &[&str] = &[];

#[test]
fn the_short_reading_finds_the_same_memories() {
    for expected in MACHINES.iter().filter(|expected| !KNOWN_BY_FIRMWARE.contains(&expected.file)) {
        let root = root(expected.file);
        let (whole, short) = (machine::topology(&root), machine::nodes(&root));
        let facts = |topology: &Topology| -> Vec<_> {
            let nodes = topology.nodes.iter();
            nodes.map(|node| (node.id, node.bytes, node.cpus.clone(), node.allowed, node.kind, node.claim)).collect()
        };
        assert_eq!(facts(&short), facts(&whole), "{}", expected.file);
        assert_eq!(short.distances, whole.distances, "{}", expected.file);
    }
}

#[test]
fn every_capture_is_in_the_table_and_says_what_it_is() {
    for entry in std::fs::read_dir(dir()).expect("tests/machines").flatten() {
        let path = entry.path();
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a name").to_owned();
        assert!(MACHINES.iter().any(|expected| expected.file == name), "{name} is not in the table");
        let text = std::fs::read_to_string(&path).expect("text");
        assert!(text.starts_with('#'), "{name} does not say where it comes from");
    }
}

#[test]
fn conclusions_have_evidence() {
    for expected in MACHINES {
        let root = root(expected.file);
        let topology = machine::topology(&root);
        for finding in findings(&topology, machine::firmware(&root).as_ref()) {
            let is_caution = finding.subject == Subject::Caution;
            assert!(!finding.value.is_empty(), "{}: {finding:?}", expected.file);
            assert_eq!(finding.value == "unknown", finding.certainty == Unknown, "{}: {finding:?}", expected.file);
            assert!(is_caution || finding.certainty == Unknown || !finding.evidence.is_empty(), "{}: {finding:?}", expected.file);
        }
        for node in topology.nodes.iter().filter(|node| !topology.hidden && node.bytes > 0) {
            assert!(!node.evidence.is_empty(), "{}: node {}", expected.file, node.id);
        }
    }
}

fn cautions(name: &str) -> String {
    let root = root(name);
    let topology = machine::topology(&root);
    let all = findings(&topology, machine::firmware(&root).as_ref()).into_iter();
    all.filter(|finding| finding.subject == Subject::Caution).map(|finding| finding.value + "\n").collect()
}

#[test]
fn what_distorts_figures_is_said() {
    for (name, said) in [
        ("container-without-sys", "a cgroup allows 2 GiB of 15.6 GiB"),
        ("container-without-sys", "container (Docker): "),
        ("container-without-sys", "virtual machine: other guests"),
        ("container-without-sys", "no NUMA nodes can be seen"),
        ("snc2-slurm-job", "a cgroup allows 64 GiB"),
        ("snc2-slurm-job", "this process may use only 16 of 64 CPUs: 16-31"),
        ("snc2-slurm-job", "this process cannot use memory of nodes 0,2-3"),
        ("xeonmax-flat-reserved", "64 GiB of memory that the firmware set apart (HBM or CXL) is not in use"),
        ("xeonmax-flat-reserved", "daxctl reconfigure-device --mode=system-ram dax1.0"),
        ("knl-snc4-flat", "SMT: 4 hardware threads"),
        ("grace-hopper", "node 1: memory of GPUs"),
        ("altra-without-caches", "the size of the last-level cache is not known"),
    ] {
        let all = cautions(name);
        assert!(all.contains(said), "{name}: {said}\n{all}");
    }
    assert_eq!(cautions("rome-l3-as-numa"), "");
}

/// What `nearfar run` takes when nobody says: as the findings have it, but only nodes that may be used, and no memory of GPUs.
#[test]
fn default_tiers_of_every_machine() {
    for expected in MACHINES {
        let topology = machine::topology(&root(expected.file));
        let found = nodes::tiers_of(&topology);
        let plural = |set: &NodeSet| if set.len() == 1 { "" } else { "s" };
        let list = |set: &NodeSet| format!("node{} {}", plural(set), set.iter().collect::<CpuList>());
        let value = found.as_ref().map(|tiers| format!("near: {}, far: {}", list(&tiers.near), list(&tiers.far)));
        let has_gpu = !nodes::gpu_nodes(&topology).is_empty();
        let wanted = Some(expected.tiers.to_owned()).filter(|tiers| tiers.starts_with("near") && !has_gpu);
        assert_eq!(value, wanted, "{}", expected.file);
        if let Some(tiers) = found {
            assert!(!tiers.why.is_empty() && tiers.certainty != Unknown, "{}", expected.file);
            assert_eq!(nodes::check_pair(&topology, &tiers.near, &tiers.far, None), Ok(()), "{}", expected.file);
        }
    }
    let snc4 = machine::topology(&root("knl-snc4-flat"));
    let near = nodes::tiers_of(&snc4).expect("two tiers").near;
    for cpus in 0..4 {
        assert_eq!(nodes::nearest(&snc4, cpus, &near).iter().collect::<Vec<_>>(), [cpus + 4], "each quadrant has its own MCDRAM");
    }
    let restricted = machine::topology(&root("snc2-slurm-job"));
    assert_eq!(nodes::usable(&restricted).to_string(), "1");
}

#[test]
fn claimed_bandwidths_become_weights() {
    let weights = |name: &str, set: &[u32]| {
        let found = nodes::rates(&machine::topology(&root(name)), None, &set.iter().copied().collect());
        found.map(|(rates, _)| nodes::weights(&rates))
    };
    assert_eq!(weights("booted-cxl", &[0, 1]), Some(vec![13, 2]), "200 and 30 GB/s");
    assert_eq!(weights("booted-cxl-no-hmat", &[0, 1]), None);
}

#[test]
fn near_and_far_nodes_are_paired_by_distance() {
    let pairs = |name| tiers(&machine::topology(&root(name))).map(|tiers| tiers.pairs).unwrap_or_default();
    assert_eq!(pairs("knl-snc4-flat"), [(4, 0), (5, 1), (6, 2), (7, 3)]);
    assert_eq!(pairs("xeonmax-snc4-flat"), (0..8).map(|node| (8 + node, node)).collect::<Vec<_>>());
    assert_eq!(pairs("cxl-region"), [(0, 1)]);
    assert_eq!(pairs("optane-kmem"), [(0, 2), (1, 3)]);
}

#[test]
fn memory_that_is_a_cache_is_told_from_caches_of_the_processor() {
    for (name, gib) in [("knl-cache", 16), ("knl-cache-root", 16), ("xeonmax-cache", 128), ("xeonmax-snc4-flat", 0)] {
        assert_eq!(machine::topology(&root(name)).llc.side_bytes, gib << 30, "{name}");
    }
    assert_eq!(machine::topology(&root("booted-knl-cache")).llc.side_bytes, 256 << 20);
}

#[test]
fn sources_that_disagree_are_named() {
    let mut topology = machine::topology(&root("two-sockets-sapphire-rapids"));
    let of = |topology: &Topology| findings(topology, None).iter().any(|finding| finding.value.contains("sources disagree"));
    let mut add = |source: &str, mib: u64| {
        topology.llc.sources.push(nearfar_core::node::LlcSource { source: source.to_owned(), bytes: mib << 20 });
        of(&topology)
    };
    assert!(!add("cpuid", 120), "the same");
    assert!(!add("sysconf", 60), "one of two caches");
    assert!(add("sysconf", 320), "nonsense");
}

#[test]
fn a_capture_of_a_capture_is_the_same_machine() {
    for expected in MACHINES {
        let first = root(expected.file);
        let text = machine::capture(&first);
        let again = Root::captured(&text).unwrap_or_else(|why| panic!("{}: {why}", expected.file));
        assert_eq!(machine::topology(&first), machine::topology(&again), "{}", expected.file);
        assert_eq!(machine::firmware(&first), machine::firmware(&again), "{}", expected.file);
        assert_eq!(machine::capture(&again), text, "{}", expected.file);
    }
}

#[test]
fn this_machine_and_its_capture_agree() {
    let this = Root::this();
    let live = machine::topology(&this);
    assert!(!live.online.is_empty() && !live.allowed.is_empty() && live.memory_bytes() > 0 && live.huge_pages.page >= 4096);
    let captured = machine::topology(&Root::captured(&machine::capture(&this)).expect("a capture"));
    // Only a live machine has the processor and the C library to ask.
    assert_eq!((&captured.online, &captured.caches, &captured.cpu_model), (&live.online, &live.caches, &live.cpu_model));
    assert_eq!(captured.nodes.len(), live.nodes.len());
}

/// A machine of 1024 CPUs: 512 cores, 16 nodes.
fn large() -> Root {
    let mut text = String::from("=== /sys/devices/system/cpu/online\n 0-1023\n");
    for cpu in 0..1024 {
        let core = cpu % 512;
        let siblings = format!("{core},{}", core + 512);
        let dir = format!("/sys/devices/system/cpu/cpu{cpu}");
        let package = core / 256;
        text += &format!("=== {dir}/topology/physical_package_id\n {package}\n=== {dir}/topology/core_cpus_list\n {siblings}\n");
        let (first, last) = (package * 256, package * 256 + 255);
        text += &format!("=== {dir}/topology/package_cpus_list\n {first}-{last},{}-{}\n", first + 512, last + 512);
        let chip = core / 8 * 8;
        let shared = format!("{chip}-{},{}-{}", chip + 7, chip + 512, chip + 519);
        let caches = [("1", "Data", "32K", &siblings), ("2", "Unified", "1024K", &siblings), ("3", "Unified", "32M", &shared)];
        for (index, (level, kind, size, cpus)) in caches.into_iter().enumerate() {
            let cache = format!("{dir}/cache/index{index}");
            text += &format!("=== {cache}/level\n {level}\n=== {cache}/type\n {kind}\n=== {cache}/size\n {size}\n");
            text += &format!("=== {cache}/shared_cpu_list\n {cpus}\n");
        }
    }
    for node in 0..16 {
        let dir = format!("/sys/devices/system/node/node{node}");
        let (first, last) = (node * 32, node * 32 + 31);
        text += &format!("=== {dir}/cpulist\n {first}-{last},{}-{}\n", first + 512, last + 512);
        text += &format!("=== {dir}/meminfo\n Node {node} MemTotal: 67108864 kB\n");
        let row: String = (0..16).map(|other| if other == node { "10 " } else { "20 " }).collect();
        text += &format!("=== {dir}/distance\n {row}\n");
    }
    Root::captured(&text).expect("a capture")
}

#[test]
fn a_thousand_cpus_are_read_core_by_core() {
    let root = large();
    let started = std::time::Instant::now();
    let topology = machine::topology(&root);
    let took = started.elapsed();
    assert_eq!((topology.packages, topology.cores, topology.threads_per_core), (Some(2), Some(512), Some(2)));
    assert_eq!((topology.nodes.len(), topology.llc.bytes), (16, Some(64 << 25)));
    assert!(topology.placement.iter().all(|place| place.node == Some(place.cpu % 512 / 32)));
    // Loose: it is some 20 ms. The number of files is what grows on a real machine.
    assert!(took.as_secs() < 2, "{took:?}");
    let files = machine::capture(&root).matches("\n=== ").count();
    assert!(files < 512 * 14, "{files} files were read");
}

fn examine(root: &Root) {
    let topology = machine::topology(root);
    let firmware = machine::firmware(root);
    let all = findings(&topology, firmware.as_ref());
    assert!(all.len() >= 4);
    let _ = tiers(&topology);
    let _ = machine::capture(root);
}

/// What a broken file may hold.
fn broken() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(Vec::new()),
        Just(b"-1".to_vec()),
        Just(b"18446744073709551615".to_vec()),
        Just(b"0-16383".to_vec()),
        Just(b"4294967295".to_vec()),
        Just(b"Node 0 MemTotal: 18446744073709551615 kB".to_vec()),
        Just(vec![14, 255, 1, 2, 3]),
        Just(vec![17, 4, 1, 2]),
        proptest::collection::vec(any::<u8>(), 0..80),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changed_bytes_do_no_harm(
        which in any::<prop::sample::Index>(),
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..60),
        cut in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        let name = MACHINES[which.index(MACHINES.len())].file;
        let mut bytes = std::fs::read(dir().join(format!("{name}.capture"))).expect("a capture");
        for (at, byte) in edits {
            let at = at.index(bytes.len());
            // The marks of the capture stay whole, so that what is behind them is reached.
            if bytes[at] != b'\n' && bytes[at] != b'=' && byte != b'\n' {
                bytes[at] = byte;
            }
        }
        bytes.truncate(cut.map_or(bytes.len(), |cut| cut.index(bytes.len())));
        if let Ok(root) = Root::captured(&String::from_utf8_lossy(&bytes)) {
            examine(&root);
        }
    }

    #[test]
    fn broken_and_missing_files_do_no_harm(
        which in any::<prop::sample::Index>(),
        edits in proptest::collection::vec((any::<prop::sample::Index>(), proptest::option::of(broken())), 1..40),
    ) {
        let name = MACHINES[which.index(MACHINES.len())].file;
        let Root::Captured(mut entries) = root(name) else { unreachable!("captures are captured") };
        for (at, content) in edits {
            if entries.is_empty() {
                break;
            }
            let Some(path) = entries.keys().nth(at.index(entries.len())).cloned() else { continue };
            match content {
                Some(bytes) => entries.insert(path, Entry::File(bytes)),
                None => entries.remove(&path),
            };
        }
        examine(&Root::Captured(entries));
    }
}
