//! Hypervisors and containers around this process, from what they leave to be seen; and the name of the machine (DMI).

use super::reader::Reader;

/// What is found, "virtual machine (QEMU); container (Docker)", and vendor with product of the machine.
pub(super) fn read(reader: &Reader, features: &[String]) -> (Option<String>, String) {
    let vendor = reader.text("/sys/class/dmi/id/sys_vendor").unwrap_or_default();
    let product = reader.text("/sys/class/dmi/id/product_name").unwrap_or_default();
    // Some products bear the vendor's name already.
    let machine = if product.starts_with(&vendor) { product } else { format!("{vendor} {product}").trim().to_owned() };
    let found: Vec<String> = [hypervisor(reader, features, &machine), container(reader)].into_iter().flatten().collect();
    ((!found.is_empty()).then(|| found.join("; ")), machine)
}

/// Words of DMI names that only virtual machines bear. "Amazon EC2" and "Google Compute Engine" name bare metal as well.
const VIRTUAL: [&str; 9] =
    ["QEMU", "KVM", "VMware", "VirtualBox", "Virtual Machine", "Bochs", "Xen", "HVM domU", "OpenStack Nova"];

fn hypervisor(reader: &Reader, features: &[String], machine: &str) -> Option<String> {
    let named = || {
        let by_cpuid = if reader.is_this() { super::cpuid::hypervisor_name() } else { None };
        let xen = || reader.text("/sys/hypervisor/type").filter(|name| !name.is_empty());
        let guest = || (!machine.is_empty()).then(|| machine.to_owned());
        by_cpuid.into_iter().chain(guest()).chain(xen()).collect::<Vec<_>>().join(", ")
    };
    let release = reader.text("/proc/sys/kernel/osrelease").unwrap_or_default();
    let is_wsl = release.to_ascii_lowercase().contains("microsoft-standard");
    let has_flag = features.iter().any(|feature| feature == "hypervisor");
    let is_guest = has_flag || is_wsl || VIRTUAL.iter().any(|word| machine.contains(word));
    let is_guest = is_guest || reader.exists("/proc/device-tree/hypervisor/compatible");
    // Xen's control domain is not bare metal either, but sees the real processor.
    let is_guest = is_guest || reader.text("/sys/hypervisor/type").is_some_and(|name| name == "xen");
    is_guest.then(|| match (named().as_str(), is_wsl) {
        (_, true) => "virtual machine (WSL)".to_owned(),
        ("", _) => "virtual machine".to_owned(),
        (name, _) => format!("virtual machine ({})", name.replace("; ", ", ")),
    })
}

/// Files and words in the group of process 1 that container runtimes leave.
fn container(reader: &Reader) -> Option<String> {
    let marks = [("/.dockerenv", "Docker"), ("/run/.containerenv", "Podman"), ("/.singularity.d/runscript", "Apptainer")];
    let groups = reader.text("/proc/1/cgroup").unwrap_or_default();
    let words =
        [("docker", "Docker"), ("kubepods", "Kubernetes"), ("containerd", "containerd"), ("/lxc", "LXC"), ("libpod", "Podman")];
    let told = reader.text("/run/systemd/container").filter(|name| !name.is_empty());
    let name = words
        .iter()
        .find(|(word, _)| groups.contains(word))
        .or_else(|| marks.iter().find(|(path, _)| reader.exists(path)))
        .map(|(_, name)| (*name).to_owned())
        .or(told)?;
    Some(format!("container ({})", name.replace("; ", ", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::Root;

    fn found(capture: &str, flags: &[&str]) -> Option<String> {
        let flags: Vec<String> = flags.iter().map(|&flag| flag.to_owned()).collect();
        read(&Reader::new(&Root::captured(capture).expect("a capture")), &flags).0
    }

    #[test]
    fn what_is_around() {
        let kubernetes = "=== /sys/class/dmi/id/sys_vendor\n QEMU\n=== /proc/1/cgroup\n 0::/kubepods.slice/a\n";
        assert_eq!(found(kubernetes, &[]).as_deref(), Some("virtual machine (QEMU); container (Kubernetes)"));
        assert_eq!(found("=== /.dockerenv\n", &["fpu"]).as_deref(), Some("container (Docker)"));
        assert_eq!(found("", &["fpu", "hypervisor"]).as_deref(), Some("virtual machine"));
        assert_eq!(found("=== /sys/class/dmi/id/sys_vendor\n Dell Inc.\n", &["fpu"]), None);
    }
}
