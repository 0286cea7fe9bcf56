//! What the firmware's tables (SMBIOS, read by root only) say of the memory: modules, and the modes of Knights Landing.

use super::MemoryKind;

/// Facts that only root can read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Firmware {
    /// The modes of a Knights Landing or Knights Mill.
    pub knl: Option<KnlModes>,
    /// Memory modules and stacks that are there (type 17).
    pub modules: Vec<MemoryModule>,
}

/// Cluster and memory mode, as the firmware's "Group: Knights Landing Information" says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KnlModes {
    /// 1 quadrant, 2 hemisphere, 4 SNC-4, 8 SNC-2, 16 all-to-all.
    pub cluster: u8,
    /// 1 cache, 2 flat, 4 hybrid.
    pub memory: u8,
    /// In hybrid mode, what is cache: 1 a quarter, 2 half.
    pub cache: u8,
}

/// A module or a stack of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryModule {
    /// What it is made of.
    pub kind: ModuleKind,
    /// Bytes.
    pub bytes: u64,
}

/// What a module is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ModuleKind {
    /// Anything else.
    #[default]
    Other,
    /// DDR or LPDDR of any generation.
    Dram,
    /// HBM of any generation.
    Hbm,
    /// Persistent memory (Optane).
    Persistent,
}

impl Firmware {
    /// Number of modules and bytes of one kind.
    pub fn modules_of(&self, kind: ModuleKind) -> (usize, u64) {
        let of_kind = self.modules.iter().filter(|module| module.kind == kind);
        of_kind.fold((0, 0), |(count, bytes), module| (count + 1, bytes.saturating_add(module.bytes)))
    }

    /// The one kind that all known modules are of.
    pub(super) fn only_kind(&self) -> Option<MemoryKind> {
        let (dram, hbm) = (self.modules_of(ModuleKind::Dram).0, self.modules_of(ModuleKind::Hbm).0);
        match (dram, hbm) {
            _ if dram + hbm != self.modules.len() => None,
            (1.., 0) => Some(MemoryKind::Dram),
            (0, 1..) => Some(MemoryKind::Hbm),
            _ => None,
        }
    }
}

impl KnlModes {
    /// The cluster mode in words; `None` for a value that is not documented.
    pub fn cluster_name(self) -> Option<&'static str> {
        match self.cluster {
            1 => Some("quadrant"),
            2 => Some("hemisphere"),
            4 => Some("SNC-4"),
            8 => Some("SNC-2"),
            16 => Some("all-to-all"),
            _ => None,
        }
    }

    /// The memory mode in words; `None` for a value that is not documented.
    pub fn memory_name(self) -> Option<&'static str> {
        match (self.memory, self.cache) {
            (1, _) => Some("cache"),
            (2, _) => Some("flat"),
            (4, 1) => Some("hybrid (25 % cache)"),
            (4, 2) => Some("hybrid (50 % cache)"),
            (4, _) => Some("hybrid"),
            _ => None,
        }
    }
}
