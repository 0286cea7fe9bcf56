//! /proc/cpuinfo, in the layouts of x86 and Arm (and model names of others): blocks of `key : value`, one block for each CPU.

use super::arm;

/// What it says.
#[derive(Debug, Default, PartialEq)]
pub(super) struct CpuInfo {
    pub(super) model_name: String,
    pub(super) vendor: String,
    pub(super) family: Option<u32>,
    pub(super) model: Option<u32>,
    /// As the layout shows; empty when it shows nothing.
    pub(super) arch: &'static str,
    pub(super) features: Vec<String>,
    /// CPU, socket and core, where it says them.
    pub(super) places: Vec<(u32, Option<u32>, Option<u32>)>,
}

fn fields(block: &str) -> impl Iterator<Item = (&str, &str)> {
    block.lines().filter_map(|line| line.split_once(':')).map(|(key, value)| (key.trim(), value.trim()))
}

fn field<'a>(block: &'a str, name: &str) -> Option<&'a str> {
    fields(block).find(|(key, _)| *key == name).map(|(_, value)| value)
}

fn hex(text: &str) -> Option<u32> {
    u32::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

pub(super) fn parse(text: &str) -> CpuInfo {
    let blocks: Vec<&str> = text.split("\n\n").filter(|block| field(block, "processor").is_some()).collect();
    let number = |block: &str, name: &str| field(block, name).and_then(|value| value.parse::<u32>().ok());
    let mut info = CpuInfo::default();
    // POWER names its processor "cpu", other layouts "model name" or nothing.
    let first = blocks.first().copied().unwrap_or(text);
    if let Some(vendor) = field(first, "vendor_id") {
        info.vendor = vendor.to_owned();
        (info.family, info.model) = (number(first, "cpu family"), number(first, "model"));
        info.arch = if field(first, "flags").is_some() { "x86_64" } else { "" };
    }
    let flags = field(first, "flags").or_else(|| field(first, "Features")).unwrap_or_default();
    info.features = flags.split_ascii_whitespace().map(str::to_owned).collect();
    // gVisor writes "unknown".
    let name = field(first, "model name").or_else(|| field(first, "cpu")).filter(|name| *name != "unknown");
    info.model_name = name.unwrap_or_default().to_owned();
    if let Some(implementer) = field(first, "CPU implementer").and_then(hex) {
        info.arch = if field(first, "CPU architecture") == Some("7") { "arm" } else { "aarch64" };
        info.vendor = arm::vendor(implementer);
        let mut names: Vec<String> = Vec::new();
        for block in &blocks {
            let part = field(block, "CPU implementer").and_then(hex).zip(field(block, "CPU part").and_then(hex));
            let name = part.map(|(implementer, part)| arm::name(implementer, part)).unwrap_or_default();
            if !name.is_empty() && !names.contains(&name) {
                names.push(name);
            }
        }
        // Some Arm kernels give a model name too, but only the parts tell big from little cores.
        info.model_name = names.join(" + ");
    }
    info.places = blocks
        .iter()
        .filter_map(|block| Some((number(block, "processor")?, number(block, "physical id"), number(block, "core id"))))
        .collect();
    info
}

/// One block of each kind of processor.
pub(super) fn shortened(text: &str) -> String {
    const IDENTITY: [&str; 8] =
        ["vendor_id", "cpu family", "model", "model name", "CPU implementer", "CPU part", "CPU architecture", "cpu"];
    let mut seen: Vec<Vec<Option<&str>>> = Vec::new();
    let mut short = String::new();
    for block in text.split("\n\n").filter(|block| field(block, "processor").is_some()) {
        let identity: Vec<Option<&str>> = IDENTITY.iter().map(|name| field(block, name)).collect();
        if !seen.contains(&identity) {
            seen.push(identity);
            short.push_str(block.trim_end());
            short.push_str("\n\n");
        }
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x86() {
        let block = |cpu| {
            format!(
                "processor\t: {cpu}\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 87\nmodel name\t: Intel(R) Xeon Phi(TM) \
                 CPU 7210 @ 1.30GHz\nphysical id\t: 0\ncore id\t\t: {}\nflags\t\t: fpu avx512f\npower management:\n\n",
                cpu / 4
            )
        };
        let text: String = (0..8).map(block).collect();
        let info = parse(&text);
        assert_eq!((info.vendor.as_str(), info.family, info.model, info.arch), ("GenuineIntel", Some(6), Some(87), "x86_64"));
        assert_eq!(info.model_name, "Intel(R) Xeon Phi(TM) CPU 7210 @ 1.30GHz");
        assert_eq!(info.features, ["fpu", "avx512f"]);
        assert_eq!((info.places.len(), info.places[7]), (8, (7, Some(0), Some(1))));
        assert_eq!(shortened(&text), block(0));
    }

    #[test]
    fn arm_with_two_kinds_of_cores() {
        let block = |cpu, part| {
            format!(
                "processor\t: {cpu}\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU part\t: {part}\n\n"
            )
        };
        let text = format!("{}{}{}Serial : 1234\n", block(0, "0xd4f"), block(1, "0xd4f"), block(2, "0xfff"));
        let info = parse(&text);
        assert_eq!((info.vendor.as_str(), info.arch), ("ARM", "aarch64"));
        assert_eq!(info.model_name, "Neoverse V2 + ARM part 0xfff");
        assert_eq!(shortened(&text), format!("{}{}", block(0, "0xd4f"), block(2, "0xfff")));
        assert_eq!(parse(""), CpuInfo::default());
    }
}
