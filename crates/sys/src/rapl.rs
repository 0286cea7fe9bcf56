//! Energy counters: RAPL through powercap (Intel and AMD), else the socket counters of the hwmon driver amd_energy.
//!
//! Since Linux 5.10 only root may read them, because they leak what other processes compute (CVE-2020-8694). Counters are in
//! microjoules, change about every millisecond and wrap around; a wrap between two readings is undone, so readings must not be
//! further apart than one (minutes at full power).

use crate::root::Root;
use nearfar_core::energy::EnergyUsed;
use std::time::Instant;

const POWERCAP: &str = "/sys/class/powercap";
const HWMON: &str = "/sys/class/hwmon";

/// A part of the machine whose energy is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    /// "package-0", "package-0/dram", "package-0/core", "psys", "socket-0".
    pub name: String,
    /// The file of the counter.
    file: String,
    /// Value after which it begins at 0 again, in microjoules; `None` for counters that do not wrap.
    range: Option<u64>,
}

impl Domain {
    /// True for a part that contains all others of its package: parts of it must not be added to it.
    pub fn is_whole(&self) -> bool {
        !self.name.contains('/')
    }

    fn microjoules(&self, root: &Root) -> Option<u64> {
        root.number(&self.file)
    }
}

/// What can be counted on this machine, packages first.
///
/// # Errors
/// Why nothing can, and how to get it, for people.
pub fn domains(root: &Root) -> Result<Vec<Domain>, String> {
    let zones = root.names(POWERCAP);
    // The same package shows twice where there is an MMIO interface as well: that one is for laptops' firmware.
    let (mmio, msr): (Vec<_>, Vec<_>) = zones.iter().filter(|zone| zone.contains(':')).partition(|zone| zone.contains("mmio"));
    let zones = if msr.is_empty() { mmio } else { msr };
    let named: Vec<(&String, String)> =
        zones.iter().filter_map(|&zone| Some((zone, root.text(&format!("{POWERCAP}/{zone}/name"))?))).collect();
    let mut found: Vec<Domain> = named.iter().map(|(zone, name)| powercap(root, &named, zone, name)).collect();
    if found.is_empty() {
        found = amd_energy(root);
    }
    if found.is_empty() {
        return Err(why_none(root, !zones.is_empty()));
    }
    found.sort_by_key(|domain| !domain.is_whole());
    let is_readable = |domain: &Domain| domain.microjoules(root).is_some();
    if !found.iter().any(is_readable) {
        return Err(format!(
            "energy counters are there, but only root may read them since Linux 5.10; ask your admin to run \"chmod a+r {}\" (until the \
             next boot), or run nearfar probe as root",
            if found[0].file.starts_with(POWERCAP) { format!("{POWERCAP}/*/energy_uj") } else { found[0].file.clone() }
        ));
    }
    found.retain(is_readable);
    Ok(found)
}

/// The domain of a powercap zone; parts of a package ("intel-rapl:0:1") carry its name.
fn powercap(root: &Root, named: &[(&String, String)], zone: &str, name: &str) -> Domain {
    let parent = zone.rsplit_once(':').map(|(parent, _)| parent);
    let package = named.iter().find(|(other, _)| Some(other.as_str()) == parent);
    let range = root.number(&format!("{POWERCAP}/{zone}/max_energy_range_uj"));
    Domain {
        name: package.map_or_else(|| name.to_owned(), |(_, package)| format!("{package}/{name}")),
        file: format!("{POWERCAP}/{zone}/energy_uj"),
        range,
    }
}

/// Sockets of the driver amd_energy, whose counters are of 64 bits.
fn amd_energy(root: &Root) -> Vec<Domain> {
    let mut found = Vec::new();
    for device in root.names(HWMON) {
        let dir = format!("{HWMON}/{device}");
        if root.text(&format!("{dir}/name")).as_deref() != Some("amd_energy") {
            continue;
        }
        for file in root.names(&dir) {
            let Some(number) = file.strip_suffix("_input").filter(|name| name.starts_with("energy")) else { continue };
            let label = root.text(&format!("{dir}/{number}_label")).unwrap_or_default();
            if let Some(socket) = label.strip_prefix("Esocket") {
                found.push(Domain { name: format!("socket-{socket}"), file: format!("{dir}/{file}"), range: None });
            }
        }
    }
    found
}

fn why_none(root: &Root, has_zones: bool) -> String {
    if has_zones {
        return format!("{POWERCAP} lists energy counters but not their values: this container hides them; run outside it");
    }
    let cpuinfo = root.text("/proc/cpuinfo").unwrap_or_default();
    let mut flags = cpuinfo.lines().filter(|line| line.starts_with("flags")).flat_map(str::split_ascii_whitespace);
    if flags.any(|flag| flag == "hypervisor") {
        return "this is a virtual machine, and its hypervisor shows it no energy counters (RAPL); run on the host".to_owned();
    }
    if cpuinfo.contains("vendor_id") {
        return format!(
            "there are no energy counters in {POWERCAP}; as root: \"modprobe intel_rapl_msr\" (Intel, and AMD since Linux 5.8)"
        );
    }
    format!("there are no energy counters in {POWERCAP}: this kernel or processor has none that nearfar knows")
}

/// Counters and what they said last.
#[derive(Debug)]
pub struct Meter {
    root: Root,
    domains: Vec<Domain>,
    last: Vec<Option<u64>>,
    since: Instant,
}

impl Meter {
    /// All counters of the machine, from now on.
    ///
    /// # Errors
    /// As of [`domains`].
    pub fn open(root: &Root) -> Result<Self, String> {
        let domains = domains(root)?;
        let mut meter = Self { root: root.clone(), last: Vec::new(), domains, since: Instant::now() };
        meter.last = meter.read();
        Ok(meter)
    }

    /// What is counted.
    pub fn domains(&self) -> &[Domain] {
        &self.domains
    }

    fn read(&self) -> Vec<Option<u64>> {
        self.domains.iter().map(|domain| domain.microjoules(&self.root)).collect()
    }

    /// Energy since it was opened or asked last. A domain that cannot be read any more is left out.
    pub fn joules_since(&mut self) -> EnergyUsed {
        let (now, seconds) = (self.read(), self.since.elapsed().as_secs_f64());
        let pairs = self.domains.iter().zip(self.last.iter().zip(&now));
        let joules = pairs.filter_map(|(domain, (&before, &after))| {
            Some((domain.name.clone(), difference(before?, after?, domain.range)? as f64 / 1e6))
        });
        let spent = EnergyUsed { seconds, joules: joules.collect() };
        (self.last, self.since) = (now, Instant::now());
        spent
    }

    /// Runs `work` and tells what was spent meanwhile, by the whole machine: other programs count as well.
    pub fn around<R>(&mut self, work: impl FnOnce() -> R) -> (R, EnergyUsed) {
        self.joules_since();
        let result = work();
        (result, self.joules_since())
    }
}

/// Microjoules from `before` to `after`, over at most one wrap; `None` when a counter without a range went backwards.
fn difference(before: u64, after: u64, range: Option<u64>) -> Option<u64> {
    match range {
        _ if after >= before => Some(after - before),
        Some(range) if range >= before => Some(range - before + after),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    struct Tree(PathBuf);

    impl Tree {
        fn new(name: &str) -> Self {
            let dir = std::env::temp_dir().join(format!("nearfar-rapl-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&dir).expect("a directory");
            Self(dir)
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.0.join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
            std::fs::write(path, text).expect("written");
        }

        fn root(&self) -> Root {
            Root::Dir(self.0.clone())
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn zone(tree: &Tree, zone: &str, name: &str, energy: u64, range: u64) {
        let dir = format!("sys/class/powercap/{zone}");
        tree.write(&format!("{dir}/name"), &format!("{name}\n"));
        tree.write(&format!("{dir}/energy_uj"), &format!("{energy}\n"));
        tree.write(&format!("{dir}/max_energy_range_uj"), &format!("{range}\n"));
    }

    fn names(meter: &Meter) -> Vec<&str> {
        meter.domains().iter().map(|domain| domain.name.as_str()).collect()
    }

    #[test]
    fn counters_are_read_across_their_wrap() {
        let tree = Tree::new("wrap");
        zone(&tree, "intel-rapl:0", "package-0", 999_000_000, 1_000_000_000);
        zone(&tree, "intel-rapl:0:0", "dram", 5_000_000, 1_000_000_000);
        zone(&tree, "intel-rapl-mmio:0", "package-0", 7, 1_000_000_000);
        tree.write("sys/class/powercap/intel-rapl/enabled", "1");
        let mut meter = Meter::open(&tree.root()).expect("counters");
        assert_eq!(names(&meter), ["package-0", "package-0/dram"]);
        assert!(meter.domains()[0].is_whole() && !meter.domains()[1].is_whole());
        let (answer, spent) = meter.around(|| {
            zone(&tree, "intel-rapl:0", "package-0", 2_000_000, 1_000_000_000);
            zone(&tree, "intel-rapl:0:0", "dram", 5_500_000, 1_000_000_000);
            42
        });
        assert_eq!((answer, &spent.joules[..]), (42, &[("package-0".to_owned(), 3.0), ("package-0/dram".to_owned(), 0.5)][..]));
        assert!(spent.seconds > 0.0);
        assert_eq!(meter.joules_since().joules[0].1, 0.0);
        std::fs::remove_file(tree.0.join("sys/class/powercap/intel-rapl:0:0/energy_uj")).expect("removed");
        assert_eq!(meter.joules_since().joules.len(), 1);
    }

    #[test]
    fn amd_energy_and_mmio_stand_in() {
        let tree = Tree::new("amd");
        tree.write("sys/class/hwmon/hwmon3/name", "amd_energy");
        tree.write("sys/class/hwmon/hwmon3/energy1_label", "Ecore000");
        tree.write("sys/class/hwmon/hwmon3/energy1_input", "5");
        tree.write("sys/class/hwmon/hwmon3/energy129_label", "Esocket0");
        tree.write("sys/class/hwmon/hwmon3/energy129_input", "1000000");
        let mut meter = Meter::open(&tree.root()).expect("counters");
        assert_eq!(names(&meter), ["socket-0"]);
        tree.write("sys/class/hwmon/hwmon3/energy129_input", "4000000");
        assert_eq!(meter.joules_since().joules, [("socket-0".to_owned(), 3.0)]);
        zone(&tree, "intel-rapl-mmio:0", "package-0", 7, 1000);
        assert_eq!(names(&Meter::open(&tree.root()).expect("counters")), ["package-0"]);
    }

    #[test]
    fn reasons_why_not() {
        let why = |text: &str| domains(&Root::captured(text).expect("a capture")).expect_err("nothing can be read");
        assert!(why("=== /proc/cpuinfo\n vendor_id\t: x\n flags\t\t: fpu hypervisor lahf\n").contains("virtual machine"));
        assert!(why("=== /proc/cpuinfo\n vendor_id\t: x\n flags\t\t: fpu\n").contains("modprobe"));
        assert!(why("").contains("no energy counters"));
        assert!(why("=== /sys/class/powercap/intel-rapl:0/name\n package-0\n").contains("only root"));
        assert!(why("--- /sys/class/powercap/intel-rapl:0 ../../devices/virtual/powercap/intel-rapl\n").contains("container"));
    }

    #[test]
    fn wraps() {
        assert_eq!(difference(5, 9, Some(100)), Some(4));
        assert_eq!(difference(95, 9, Some(100)), Some(14));
        assert_eq!((difference(95, 9, None), difference(195, 9, Some(100))), (None, None));
    }
}
