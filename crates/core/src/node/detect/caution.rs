//! What distorts figures or narrows what a program may use: virtual machines, containers, cgroups, affinity, SMT, caches of doubtful size.

use super::{MASKED, conclude, nodes_text, size};
use crate::node::{CacheKind, Certainty, CpuList, DaxBus, Finding, MemoryKind, Subject, Topology};

/// Sources of one size that differ by more than this disagree.
const TOLERANCE: f64 = 0.1;

pub(super) fn findings(topology: &Topology) -> Vec<Finding> {
    let mut cautions = Vec::new();
    let mut say = |certainty, value: String, evidence: Vec<String>| {
        cautions.push(conclude(Subject::Caution, value, certainty, evidence));
    };
    if let Some(found) = &topology.virtualisation {
        for what in found.split("; ") {
            let value = match what.starts_with("virtual machine") {
                true => format!("{what}: other guests may disturb figures, and the hardware shown might not be the real one"),
                false => format!("{what}: the rest of the machine may be busy"),
            };
            say(Certainty::Detected, value, Vec::new());
        }
    }
    if topology.hidden {
        say(Certainty::Detected, MASKED.to_owned(), Vec::new());
    }
    cgroup(topology, &mut say);
    if topology.allowed.len() < topology.online.len() {
        let value = format!(
            "this process may use only {} of {} CPUs: {}",
            topology.allowed.len(),
            topology.online.len(),
            topology.allowed
        );
        say(Certainty::Detected, value, vec!["Cpus_allowed_list (/proc/self/status)".to_owned()]);
    }
    let denied: CpuList = topology.nodes.iter().filter(|node| node.bytes > 0 && !node.allowed).map(|node| node.id).collect();
    if !denied.is_empty() {
        let value = format!("this process cannot use memory of {}", nodes_text(denied.as_slice().iter().copied()));
        say(Certainty::Detected, value, vec!["Mems_allowed_list (/proc/self/status)".to_owned()]);
    }
    if let Some(threads) = topology.threads_per_core.filter(|threads| *threads > 1) {
        let value = format!("SMT: {threads} hardware threads share a core, so one thread per core may give the better figure");
        say(Certainty::Detected, value, Vec::new());
    }
    llc(topology, &mut say);
    special(topology, &mut say);
    cautions
}

type Say<'a> = dyn FnMut(Certainty, String, Vec<String>) + 'a;

fn cgroup(topology: &Topology, say: &mut Say) {
    let memory = topology.memory_bytes();
    if let Some(limit) = topology.cgroup.memory_bytes.filter(|limit| *limit < memory) {
        let value = format!("a cgroup allows {} of {} of memory", size(limit), size(memory));
        say(Certainty::Detected, value, vec!["memory limits from /proc/self/cgroup up to the root".to_owned()]);
    }
    if let Some(cpus) = topology.cgroup.cpus.filter(|cpus| *cpus < topology.allowed.len() as f64) {
        let value =
            format!("a cgroup allows the time of {cpus:.1} of {} CPUs: throttling makes figures jump", topology.allowed.len());
        say(Certainty::Detected, value, vec!["CPU limits from /proc/self/cgroup up to the root".to_owned()]);
    }
}

/// Sources that contradict the one that is believed.
fn llc(topology: &Topology, say: &mut Say) {
    let Some(bytes) = topology.llc.bytes else {
        say(Certainty::Detected, "the size of the last-level cache is not known".to_owned(), Vec::new());
        return;
    };
    let sources = &topology.llc.sources;
    let one = topology.caches.iter().filter(|cache| cache.kind != CacheKind::Instruction).max_by_key(|cache| cache.level);
    // sysconf gives all caches of the machine or one of them, depending on processor and C library.
    let reference = sources.iter().find(|source| source.source == "sysfs").or(sources.first()).map(|source| source.bytes);
    let like = |bytes: u64, other: Option<u64>| {
        other.is_some_and(|other| (bytes as f64 - other as f64).abs() <= TOLERANCE * other as f64)
    };
    let of_cache = |name: &str| matches!(name, "sysfs" | "cpuid" | "sysconf");
    let disagrees = sources.iter().filter(|source| of_cache(&source.source)).any(|source| {
        let is_one = source.source == "sysconf" && like(source.bytes, one.map(|cache| cache.bytes));
        !is_one && !like(source.bytes, reference)
    });
    if disagrees {
        let said: Vec<String> = sources.iter().map(|source| format!("{} says {}", source.source, size(source.bytes))).collect();
        say(Certainty::Detected, format!("sources disagree on the last-level cache; {} is taken", size(bytes)), said);
    }
}

/// Memory that is there, but not for everyone.
fn special(topology: &Topology, say: &mut Say) {
    for dax in &topology.dax {
        let in_use = dax.node.and_then(|id| topology.node(id)).is_some_and(|node| node.bytes > 0);
        if dax.bus != DaxBus::Other && !in_use {
            let what = match dax.bus {
                DaxBus::Nvdimm => "persistent memory",
                DaxBus::Cxl => "CXL memory",
                DaxBus::SoftReserved | DaxBus::Other => "memory that the firmware set apart (HBM or CXL)",
            };
            let value = format!(
                "{} of {what} is not in use as memory; root can change that: daxctl reconfigure-device --mode=system-ram {}",
                size(dax.bytes),
                dax.name
            );
            say(Certainty::Detected, value, vec![format!("/sys/bus/dax/devices/{}", dax.name)]);
        }
    }
    let gpu: CpuList = topology.nodes.iter().filter(|node| node.kind == MemoryKind::Gpu).map(|node| node.id).collect();
    if !gpu.is_empty() {
        let nodes = nodes_text(gpu.as_slice().iter().copied());
        say(Certainty::Detected, format!("{nodes}: memory of GPUs, which is not used unless it is asked for"), Vec::new());
    }
}
