//! Processors: model, which CPUs are online and allowed, and in which socket and core each is.

use super::cpu_info::{self, CpuInfo};
use super::reader::Reader;
use nearfar_core::node::{CpuList, Placement, Topology};
use std::collections::{BTreeMap, BTreeSet};

/// Linux has no more CPUs than this; higher numbers come from broken files.
const MOST: u32 = 1 << 14;

const CPUS: &str = "/sys/devices/system/cpu";

pub(super) fn read(reader: &Reader, topology: &mut Topology) {
    let info = cpu_info::parse(&reader.text("/proc/cpuinfo").unwrap_or_default());
    let status = reader.text("/proc/self/status").unwrap_or_default();
    let allowed = status_list(&status, "Cpus_allowed_list:");
    let listed = reader.list(&format!("{CPUS}/online"));
    topology.hidden = listed.is_none();
    let named = || Some(info.places.iter().map(|place| place.0).collect::<CpuList>()).filter(|cpus| !cpus.is_empty());
    let online = listed.or_else(named).or_else(|| allowed.clone()).unwrap_or_else(|| CpuList::from_iter([0]));
    topology.online = online.as_slice().iter().copied().filter(|cpu| *cpu < MOST).collect();
    // Linux allows CPUs that are not there as well.
    topology.allowed = allowed.map_or_else(|| topology.online.clone(), |allowed| topology.online.and(&allowed));
    place(reader, &info, topology);
    topology.arch = reader.text("/proc/sys/kernel/arch").unwrap_or_else(|| match info.arch {
        "" if reader.is_this() => std::env::consts::ARCH.to_owned(),
        arch => arch.to_owned(),
    });
    let socs = reader.names("/sys/bus/soc/devices");
    topology.soc = socs.iter().find_map(|soc| reader.text(&format!("/sys/bus/soc/devices/{soc}/soc_id")));
    (topology.cpu_model, topology.vendor) = (info.model_name, info.vendor);
    (topology.family, topology.model) = (info.family, info.model);
    topology.features = info.features;
}

/// Bytes of /proc/cpuinfo that hold the first CPU, however many flags it has.
const FIRST_CPU: u64 = 16 << 10;

/// The processor's name and numbers, from the first CPU alone, how many sockets there are, and which CPUs are online.
pub(super) fn identify(reader: &Reader, topology: &mut Topology) {
    let info = cpu_info::parse(&reader.beginning("/proc/cpuinfo", FIRST_CPU).unwrap_or_default());
    let listed = reader.list(&format!("{CPUS}/online"));
    topology.hidden = listed.is_none();
    let named = || Some(info.places.iter().map(|place| place.0).collect::<CpuList>()).filter(|cpus| !cpus.is_empty());
    topology.online = listed.or_else(named).unwrap_or_else(|| CpuList::from_iter([0]));
    // Sockets are alike: the CPUs of one tell how many there are.
    let first = topology.online.as_slice().first().copied().unwrap_or(0);
    let list = |name: &str| reader.list(&format!("{CPUS}/cpu{first}/topology/{name}"));
    let socket = list("package_cpus_list").or_else(|| list("core_siblings_list")).filter(|cpus| !cpus.is_empty());
    topology.packages = socket.map(|cpus| topology.online.len().div_ceil(cpus.len()) as u32);
    topology.arch = match info.arch {
        "" if reader.is_this() => std::env::consts::ARCH.to_owned(),
        arch => arch.to_owned(),
    };
    let socs = reader.names("/sys/bus/soc/devices");
    topology.soc = socs.iter().find_map(|soc| reader.text(&format!("/sys/bus/soc/devices/{soc}/soc_id")));
    (topology.cpu_model, topology.vendor) = (info.model_name, info.vendor);
    (topology.family, topology.model) = (info.family, info.model);
    let is_guest = info.features.iter().any(|feature| feature == "hypervisor");
    topology.virtualisation = is_guest.then(|| "virtual machine".to_owned());
    topology.features = info.features;
}

/// The list behind `name` in /proc/PID/status.
pub(super) fn status_list(status: &str, name: &str) -> Option<CpuList> {
    status.lines().find_map(|line| line.strip_prefix(name))?.parse().ok()
}

/// A core as the kernel numbers it. Numbers of cores need not be unique in a socket of several dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Core {
    package: Option<u32>,
    die: Option<u32>,
    number: Option<u32>,
    first: u32,
}

/// Fills in sockets, cores and placement. Reads the files of one CPU for each core.
fn place(reader: &Reader, info: &CpuInfo, topology: &mut Topology) {
    let mut packages: BTreeMap<u32, u32> = BTreeMap::new();
    let mut cores: BTreeMap<u32, Core> = BTreeMap::new();
    for &cpu in topology.online.as_slice() {
        let file = |name: &str| format!("{CPUS}/cpu{cpu}/topology/{name}");
        if !packages.contains_key(&cpu)
            && let Some(package) = reader.small(&file("physical_package_id"))
        {
            let list = reader.list(&file("package_cpus_list")).or_else(|| reader.list(&file("core_siblings_list")));
            list.iter().flat_map(CpuList::as_slice).for_each(|&other| _ = packages.insert(other, package));
            packages.insert(cpu, package);
        }
        if !cores.contains_key(&cpu)
            && let Some(list) = reader.list(&file("core_cpus_list")).or_else(|| reader.list(&file("thread_siblings_list")))
        {
            let core = Core {
                package: packages.get(&cpu).copied(),
                die: reader.small(&file("die_id")),
                number: reader.small(&file("core_id")),
                first: cpu,
            };
            list.as_slice().iter().for_each(|&other| _ = cores.insert(other, core));
            cores.insert(cpu, core);
        }
    }
    if packages.is_empty() && cores.is_empty() {
        let mut firsts: BTreeMap<(Option<u32>, u32), u32> = BTreeMap::new();
        for &(cpu, package, core) in info.places.iter().filter(|place| topology.online.contains(place.0)) {
            package.into_iter().for_each(|package| _ = packages.insert(cpu, package));
            if let Some(number) = core {
                let first = *firsts.entry((package, number)).or_insert(cpu);
                cores.insert(cpu, Core { package, die: None, number: core, first });
            }
        }
    }
    let online = || topology.online.as_slice().iter();
    let all = |known: usize| known > 0 && known == topology.online.len();
    let known_packages: Vec<u32> = online().filter_map(|cpu| packages.get(cpu).copied()).collect();
    let known_cores: Vec<Core> = online().filter_map(|cpu| cores.get(cpu).copied()).collect();
    let numbers = core_numbers(&known_cores);
    let placement: Vec<Placement> = online()
        .map(|cpu| Placement {
            cpu: *cpu,
            package: packages.get(cpu).copied(),
            core: cores.get(cpu).and_then(|core| numbers.get(&core.first).copied()),
            node: None,
        })
        .collect();
    let mut threads: BTreeMap<u32, u32> = BTreeMap::new();
    known_cores.iter().for_each(|core| *threads.entry(core.first).or_default() += 1);
    topology.packages = all(known_packages.len()).then(|| known_packages.iter().collect::<BTreeSet<_>>().len() as u32);
    topology.cores = all(known_cores.len()).then_some(threads.len() as u32);
    topology.threads_per_core = threads.values().max().copied().filter(|_| topology.cores.is_some());
    topology.placement = placement;
}

/// A number for each core (by its first CPU), unique in its socket: the kernel's where that is, else their order.
fn core_numbers(cores: &[Core]) -> BTreeMap<u32, u32> {
    let distinct: BTreeSet<Core> = cores.iter().copied().collect();
    let names: BTreeSet<_> = distinct.iter().map(|core| (core.package, core.number)).collect();
    let is_unique = names.len() == distinct.len() && distinct.iter().all(|core| core.number.is_some());
    let mut next: BTreeMap<Option<u32>, u32> = BTreeMap::new();
    let mut numbers = BTreeMap::new();
    for core in &distinct {
        let order = next.entry(core.package).or_default();
        numbers.insert(core.first, core.number.filter(|_| is_unique).unwrap_or(*order));
        *order += 1;
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::Root;

    #[test]
    fn cores_of_two_dies_get_numbers_of_their_own() {
        let mut text =
            String::from("=== /sys/devices/system/cpu/online\n 0-3\n=== /proc/self/status\n Cpus_allowed_list:\t1-127\n");
        for cpu in 0..4 {
            let dir = format!("/sys/devices/system/cpu/cpu{cpu}/topology");
            text += &format!("=== {dir}/physical_package_id\n 0\n=== {dir}/package_cpus_list\n 0-3\n");
            text +=
                &format!("=== {dir}/core_cpus_list\n {cpu}\n=== {dir}/core_id\n {}\n=== {dir}/die_id\n {}\n", cpu % 2, cpu / 2);
        }
        let root = Root::captured(&text).expect("a capture");
        let mut topology = Topology::default();
        read(&Reader::new(&root), &mut topology);
        let cores: Vec<_> = topology.placement.iter().map(|place| place.core).collect();
        assert_eq!(cores, [Some(0), Some(1), Some(2), Some(3)]);
        assert_eq!((topology.packages, topology.cores, topology.threads_per_core), (Some(1), Some(4), Some(1)));
        assert_eq!(topology.allowed.to_string(), "1-3");
    }

    #[test]
    fn cpuinfo_stands_in_for_sysfs() {
        let block = |cpu| format!(" processor : {cpu}\n physical id : {}\n core id : 0\n \n", cpu % 2);
        let text = format!("=== /proc/cpuinfo\n{}", (0..4).map(block).collect::<String>());
        let mut topology = Topology::default();
        let root = Root::captured(&text).expect("a capture");
        read(&Reader::new(&root), &mut topology);
        assert_eq!((topology.packages, topology.cores, topology.threads_per_core), (Some(2), Some(2), Some(2)));
        assert!(topology.hidden && topology.online.len() == 4);
    }
}
