//! The product line, from CPUID numbers, model names and chip identities.

use super::{conclude, unknown};
use crate::node::{Certainty, Finding, Subject, Topology};

/// Products whose memory needs rules of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Product {
    /// Xeon Phi x200: 16 GB of MCDRAM.
    KnightsLanding,
    /// Xeon Phi 72x5: the same memory.
    KnightsMill,
    /// Sapphire Rapids with 64 GB of HBM2e per socket.
    XeonMax,
    /// Grace with a GPU whose memory is a NUMA node.
    GraceHopper,
    /// The same with a Blackwell GPU.
    GraceBlackwell,
    /// Grace alone.
    Grace,
    /// CPU and GPU on one HBM.
    Mi300a,
    /// EPYC with HBM in place of DIMMs (MI300C, Azure HBv5).
    EpycHbm,
    /// Fujitsu A64FX: 32 GB of HBM2 and nothing else.
    A64fx,
    /// No rules of its own.
    Other,
}

/// SMCCC SOC_ID of NVIDIA Grace (T241), as /sys/bus/soc/devices/soc0/soc_id has it.
const GRACE_SOC: &str = "jep106:036b:0241";

impl Product {
    pub(super) fn of(topology: &Topology) -> Self {
        let model = topology.cpu_model.as_str();
        match (topology.vendor.as_str(), topology.family, topology.model) {
            ("GenuineIntel", Some(6), Some(87)) => return Self::KnightsLanding,
            ("GenuineIntel", Some(6), Some(133)) => return Self::KnightsMill,
            ("GenuineIntel", ..) if model.contains("Xeon") && model.contains(" Max 94") => return Self::XeonMax,
            ("AuthenticAMD", ..) if model.contains("MI300A") => return Self::Mi300a,
            ("AuthenticAMD", ..) if model.contains("9V64H") => return Self::EpycHbm,
            _ if model.contains("A64FX") => return Self::A64fx,
            _ => {}
        }
        let grace = topology.soc.as_deref() == Some(GRACE_SOC);
        if topology.arch != "aarch64" || (!grace && topology.gpu_memory.is_empty()) {
            return Self::Other;
        }
        let gpus = || topology.gpu_memory.iter().map(|(gpu, _)| gpu.as_str());
        if gpus().any(|gpu| gpu.contains("GB200") || gpu.contains("GB300")) {
            Self::GraceBlackwell
        } else if gpus().next().is_some() || topology.machine.contains("GH200") {
            Self::GraceHopper
        } else {
            Self::Grace
        }
    }

    pub(super) fn is_knl(self) -> bool {
        matches!(self, Self::KnightsLanding | Self::KnightsMill)
    }

    pub(super) fn is_grace_with_gpu(self) -> bool {
        matches!(self, Self::GraceHopper | Self::GraceBlackwell)
    }

    /// HBM is all the memory that the CPUs have of their own, whatever the mode.
    pub(super) fn has_hbm_only(self) -> bool {
        matches!(self, Self::Mi300a | Self::EpycHbm | Self::A64fx)
    }

    fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::KnightsLanding => "Knights Landing",
            Self::KnightsMill => "Knights Mill",
            Self::XeonMax => "Xeon Max",
            Self::GraceHopper => "Grace-Hopper",
            Self::GraceBlackwell => "Grace-Blackwell",
            Self::Grace => "Grace",
            Self::Mi300a => "MI300A",
            Self::EpycHbm => "EPYC with HBM",
            Self::A64fx => "A64FX",
            Self::Other => return None,
        })
    }
}

/// Servers that CPUID names, by vendor, family and range of models.
const CODE_NAMES: &[(&str, u32, u32, u32, &str)] = &[
    ("GenuineIntel", 6, 63, 63, "Haswell (Xeon E5 v3)"),
    ("GenuineIntel", 6, 79, 79, "Broadwell (Xeon E5 v4)"),
    ("GenuineIntel", 6, 85, 85, "Skylake, Cascade Lake or Cooper Lake"),
    ("GenuineIntel", 6, 106, 106, "Ice Lake"),
    ("GenuineIntel", 6, 143, 143, "Sapphire Rapids"),
    ("GenuineIntel", 6, 207, 207, "Emerald Rapids"),
    ("GenuineIntel", 6, 173, 173, "Granite Rapids"),
    ("GenuineIntel", 6, 175, 175, "Sierra Forest"),
    ("AuthenticAMD", 23, 1, 1, "Naples (EPYC 7001)"),
    ("AuthenticAMD", 23, 49, 49, "Rome (EPYC 7002)"),
    ("AuthenticAMD", 25, 1, 1, "Milan (EPYC 7003)"),
    ("AuthenticAMD", 25, 17, 17, "Genoa (EPYC 9004)"),
    ("AuthenticAMD", 25, 160, 175, "Bergamo or Siena (EPYC 9004, 8004)"),
    ("AuthenticAMD", 26, 2, 2, "Turin (EPYC 9005)"),
    ("AuthenticAMD", 26, 17, 17, "Turin Dense (EPYC 9005)"),
];

pub(super) fn finding(topology: &Topology) -> Finding {
    let mut evidence = Vec::new();
    if !topology.cpu_model.is_empty() {
        evidence.push(format!("processor \"{}\" (/proc/cpuinfo)", topology.cpu_model));
    }
    let numbers = topology.family.zip(topology.model);
    if let Some((family, model)) = numbers {
        evidence.push(format!("{} family {family} model {model} (/proc/cpuinfo)", topology.vendor));
    }
    if !topology.machine.is_empty() {
        evidence.push(format!("machine \"{}\" (DMI)", topology.machine));
    }
    if let Some(soc) = &topology.soc {
        evidence.push(format!("chip {soc} (SOC_ID)"));
    }
    evidence.extend(topology.gpu_memory.iter().map(|(gpu, node)| format!("memory of GPU {gpu} is node {node} (driver)")));
    let product = Product::of(topology);
    let listed = |(family, model)| {
        let same = |&&(vendor, f, low, high, _): &&(&str, u32, u32, u32, &str)| {
            vendor == topology.vendor && f == family && (low..=high).contains(&model)
        };
        CODE_NAMES.iter().find(same).map(|entry| entry.4)
    };
    // A hypervisor may show another processor than there is. A GPU with memory beside an Arm processor may be no Grace.
    let doubt = topology.is_virtual_machine() || (product.is_grace_with_gpu() && topology.soc.is_none());
    let certainty = if doubt { Certainty::Inferred } else { Certainty::Detected };
    match product.name().or_else(|| numbers.and_then(listed)) {
        Some(name) => conclude(Subject::Product, name, certainty, evidence),
        None if topology.cpu_model.is_empty() => unknown(Subject::Product, evidence),
        None => conclude(Subject::Product, topology.cpu_model.clone(), certainty, evidence),
    }
}
