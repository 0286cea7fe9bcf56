//! What a machine is made of: reads /proc and /sys behind one [`Root`] into [`Topology`], for this machine or a captured one.
//!
//! Nothing here fails: what cannot be read is absent in the result. Files are opened about a dozen per core and once per shared cache,
//! never for each pair of CPUs, so that a machine of a thousand CPUs takes a fraction of a second.

mod arm;
mod cache;
mod cpu;
mod cpu_info;
mod cpuid;
mod firmware;
mod huge_pages;
mod memory_node;
mod reader;
mod virtualisation;

use crate::cgroup;
use crate::root::Root;
use nearfar_core::node::detect::{assign_kinds, unlisted_side_cache};
use nearfar_core::node::{Cgroup, Firmware, LlcSource, Topology};
use reader::Reader;

/// The parts of the machine, with the kind of each memory; nothing is measured.
pub fn topology(root: &Root) -> Topology {
    read(&Reader::new(root)).0
}

/// The nodes alone: sizes, CPUs, distances, what the firmware claims and the kind of each memory. For programs that ask while they
/// start: nothing is read per CPU, so that hundreds of CPUs cost no more than two.
pub fn nodes(root: &Root) -> Topology {
    let reader = Reader::new(root);
    let mut topology = Topology::default();
    cpu::identify(&reader, &mut topology);
    memory_node::read(&reader, &mut topology);
    if !memory_node::are_listed(&reader) {
        let found = virtualisation::read(&reader, &topology.features).0;
        topology.hidden |= found.is_some_and(|found| found.contains("container"));
    }
    assign_kinds(&mut topology, None);
    topology
}

/// Less still: sizes, CPUs and distances of the nodes, for programs that know already what their memories are. Kinds and claims are absent.
pub fn outline(root: &Root) -> Topology {
    let reader = Reader::new(root);
    let online = reader.list("/sys/devices/system/cpu/online").unwrap_or_default();
    let mut topology = Topology { online, ..Topology::default() };
    memory_node::outline(&reader, &mut topology);
    topology
}

/// What the firmware's tables say; `None` for users who may not read them (all but root) and where there are none.
pub fn firmware(root: &Root) -> Option<Firmware> {
    firmware::firmware(&Reader::new(root))
}

/// A capture of everything that [`topology`] and [`firmware()`] read, as [`Root::captured`] takes it. Repeated blocks of /proc/cpuinfo,
/// most of /proc/self/status and the strings of memory modules (serial numbers) are left out.
pub fn capture(root: &Root) -> String {
    let reader = Reader::recording(root);
    read(&reader);
    format!(
        "# Captured by nearfar {}: what it reads of /proc and /sys to know a machine.\n{}",
        env!("CARGO_PKG_VERSION"),
        reader.capture()
    )
}

fn read(reader: &Reader) -> (Topology, Option<Firmware>) {
    let firmware = firmware::firmware(reader);
    let mut topology = Topology { kernel: reader.text("/proc/sys/kernel/osrelease").unwrap_or_default(), ..Topology::default() };
    cpu::read(reader, &mut topology);
    memory_node::read(reader, &mut topology);
    topology.huge_pages = huge_pages::read(reader, &topology.arch);
    topology.cgroup = limits(reader);
    (topology.virtualisation, topology.machine) = virtualisation::read(reader, &topology.features);
    let is_container = topology.virtualisation.as_deref().is_some_and(|found| found.contains("container"));
    topology.hidden |= is_container && !memory_node::are_listed(reader);
    cache::read(reader, &mut topology);
    assign_kinds(&mut topology, firmware.as_ref());
    if let Some((bytes, source)) = unlisted_side_cache(&topology, firmware.as_ref()) {
        topology.llc.sources.push(LlcSource { source, bytes });
        topology.llc.bytes = topology.llc.bytes.map(|llc| llc.saturating_add(bytes));
        topology.llc.side_bytes = bytes;
    }
    (topology, firmware)
}

/// Limits of the control group that this process is in.
fn limits(reader: &Reader) -> Cgroup {
    let own = reader.text("/proc/self/cgroup").unwrap_or_default();
    let text = |path: &str| reader.text(path);
    Cgroup {
        memory_bytes: cgroup::lowest_memory_limit(&own, text).map(|(bytes, _)| bytes),
        cpus: cgroup::lowest_cpu_quota(&own, text).map(|(cpus, _)| cpus),
    }
}
