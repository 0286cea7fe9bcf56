//! Names of Arm processors by implementer and part number (MIDR_EL1), as /proc/cpuinfo gives them. Sources: Arm's technical reference
//! manuals and arch/arm64/include/asm/cputype.h of Linux.

const VENDORS: &[(u32, &str)] = &[
    (0x41, "ARM"),
    (0x42, "Broadcom"),
    (0x43, "Cavium"),
    (0x46, "Fujitsu"),
    (0x48, "HiSilicon"),
    (0x4e, "NVIDIA"),
    (0x50, "Applied Micro"),
    (0x51, "Qualcomm"),
    (0x61, "Apple"),
    (0x6d, "Microsoft"),
    (0x70, "Phytium"),
    (0xc0, "Ampere"),
];

const PARTS: &[(u32, u32, &str)] = &[
    (0x41, 0xd03, "Cortex-A53"),
    (0x41, 0xd05, "Cortex-A55"),
    (0x41, 0xd07, "Cortex-A57"),
    (0x41, 0xd08, "Cortex-A72"),
    (0x41, 0xd09, "Cortex-A73"),
    (0x41, 0xd0a, "Cortex-A75"),
    (0x41, 0xd0b, "Cortex-A76"),
    (0x41, 0xd0c, "Neoverse N1"),
    (0x41, 0xd40, "Neoverse V1"),
    (0x41, 0xd41, "Cortex-A78"),
    (0x41, 0xd44, "Cortex-X1"),
    (0x41, 0xd49, "Neoverse N2"),
    (0x41, 0xd4a, "Neoverse E1"),
    (0x41, 0xd4f, "Neoverse V2"),
    (0x41, 0xd80, "Cortex-A520"),
    (0x41, 0xd81, "Cortex-A720"),
    (0x41, 0xd82, "Cortex-X4"),
    (0x41, 0xd83, "Neoverse V3AE"),
    (0x41, 0xd84, "Neoverse V3"),
    (0x41, 0xd85, "Cortex-X925"),
    (0x41, 0xd87, "Cortex-A725"),
    (0x41, 0xd8e, "Neoverse N3"),
    (0x42, 0x516, "ThunderX2"),
    (0x43, 0x0af, "ThunderX2"),
    (0x46, 0x001, "A64FX"),
    (0x48, 0xd01, "TaiShan v110 (Kunpeng 920)"),
    (0x4e, 0x004, "Carmel"),
    (0x6d, 0xd49, "Azure Cobalt 100"),
    (0xc0, 0xac3, "Ampere-1"),
    (0xc0, 0xac4, "Ampere-1a"),
];

/// "ARM", or the number of an implementer that is not listed.
pub(super) fn vendor(implementer: u32) -> String {
    let known = VENDORS.iter().find(|(number, _)| *number == implementer);
    known.map_or_else(|| format!("implementer {implementer:#x}"), |(_, name)| (*name).to_owned())
}

/// "Neoverse V2", or vendor and number of a part that is not listed.
pub(super) fn name(implementer: u32, part: u32) -> String {
    let known = PARTS.iter().find(|(vendor, number, _)| (*vendor, *number) == (implementer, part));
    known.map_or_else(|| format!("{} part {part:#x}", vendor(implementer)), |(_, _, name)| (*name).to_owned())
}
