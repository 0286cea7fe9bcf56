//! SMBIOS tables, as the kernel gives them to root: modules of memory, and the modes of Knights Landing.

use super::reader::Reader;
use nearfar_core::node::{Firmware, KnlModes, MemoryModule, ModuleKind};

const ENTRIES: &str = "/sys/firmware/dmi/entries";

/// Names of the group (type 14) that holds the tables of a Knights Landing: Intel's own two, and Dell's.
const KNL_GROUPS: [&str; 3] =
    ["Group: Knights Landing Information", "Group: Knights Mill Information", "Knights Landing Association"];

/// Of a member of that group: the identity of its general table.
const KNL_GENERAL: u16 = 1;

/// What can be read; `None` when nothing can.
pub(super) fn firmware(reader: &Reader) -> Option<Firmware> {
    let names = reader.names(ENTRIES);
    let tables = |kind: u8| {
        let prefix = format!("{kind}-");
        let ours: Vec<String> = names.iter().filter(|name| name.starts_with(&prefix)).cloned().collect();
        ours.into_iter().filter_map(|name| Table::new(reader.bytes(&format!("{ENTRIES}/{name}/raw"))?))
    };
    let modules: Vec<MemoryModule> = tables(17).filter_map(|table| module(&table)).collect();
    let group = tables(14).find(|table| table.string(4).is_some_and(|name| KNL_GROUPS.contains(&name.as_str())));
    let knl = group.and_then(|group| {
        let members = group.body().get(5..)?.chunks_exact(3).map(|entry| (entry[0], u16::from_le_bytes([entry[1], entry[2]])));
        members
            .into_iter()
            .find_map(|(kind, handle)| tables(kind).find(|table| table.word(2) == Some(handle)).and_then(knl_modes))
    });
    (knl.is_some() || !modules.is_empty()).then_some(Firmware { knl, modules })
}

/// One table: a body whose second byte is its length, then strings that end with 0.
struct Table(Vec<u8>);

impl Table {
    fn new(bytes: Vec<u8>) -> Option<Self> {
        let length = usize::from(*bytes.get(1)?);
        (length >= 4 && length <= bytes.len()).then_some(Self(bytes))
    }

    fn body(&self) -> &[u8] {
        &self.0[..usize::from(self.0[1])]
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.body().get(at).copied()
    }

    fn word(&self, at: usize) -> Option<u16> {
        Some(u16::from_le_bytes([self.byte(at)?, self.byte(at + 1)?]))
    }

    /// The string whose number is at `at` (1 is the first, 0 none).
    fn string(&self, at: usize) -> Option<String> {
        let number = usize::from(self.byte(at)?).checked_sub(1)?;
        let bytes = self.0[self.body().len()..].split(|byte| *byte == 0).nth(number)?;
        Some(String::from_utf8_lossy(bytes).trim().to_owned())
    }
}

/// Header (4 bytes), identity of the table (2), name (1), then: supported cluster modes, cluster mode, supported memory modes, memory
/// mode, share of cache.
fn knl_modes(table: Table) -> Option<KnlModes> {
    let is_general = table.word(4)? == KNL_GENERAL;
    is_general.then_some(())?;
    Some(KnlModes { cluster: table.byte(8)?, memory: table.byte(10)?, cache: table.byte(11)? })
}

/// A module of memory (SMBIOS 3.7, 7.18); `None` for an empty slot.
fn module(table: &Table) -> Option<MemoryModule> {
    let size = table.word(0x0c)?;
    let bytes = match size {
        0 | 0xffff => return None,
        // Too large for the field: the extended size, in MiB.
        0x7fff => {
            let low = u64::from(table.word(0x1c)?);
            (u64::from(table.word(0x1e)? & 0x7fff) << 16 | low) << 20
        }
        kib if kib & 0x8000 != 0 => u64::from(kib & 0x7fff) << 10,
        mib => u64::from(mib) << 20,
    };
    // Technology 4-6 are kinds of NVDIMM, 7 is Optane.
    let is_persistent = table.byte(0x28).is_some_and(|technology| (4..=7).contains(&technology));
    let kind = match table.byte(0x12)? {
        _ if is_persistent => ModuleKind::Persistent,
        0x1f => ModuleKind::Persistent,
        0x20 | 0x21 | 0x24 => ModuleKind::Hbm,
        0x12 | 0x13 | 0x18 | 0x1a | 0x1b | 0x1c | 0x1d | 0x1e | 0x22 | 0x23 => ModuleKind::Dram,
        _ => ModuleKind::Other,
    };
    Some(MemoryModule { kind, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::Root;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn modes_of_a_knights_landing() {
        let mut group = vec![14, 8, 0x40, 0, 1, 160, 0x34, 0x12];
        group.extend(b"Group: Knights Landing Information\0\0");
        // SNC-4, hybrid with a quarter of cache.
        let general = [160, 12, 0x34, 0x12, 1, 0, 1, 31, 4, 7, 4, 1, b'x', 0, 0];
        let other = [160, 12, 0x35, 0x12, 2, 0, 1, 9, 9, 9, 9, 9, 0, 0];
        let text = format!(
            "=x= {ENTRIES}/14-0/raw\n {}\n=x= {ENTRIES}/160-0/raw\n {}\n=x= {ENTRIES}/160-1/raw\n {}\n",
            hex(&group),
            hex(&other),
            hex(&general)
        );
        let root = Root::captured(&text).expect("a capture");
        let found = firmware(&Reader::new(&root)).and_then(|firmware| firmware.knl).expect("modes");
        assert_eq!((found.cluster_name(), found.memory_name()), (Some("SNC-4"), Some("hybrid (25 % cache)")));
    }

    #[test]
    fn modules_of_memory() {
        let mut table = [0_u8; 0x29];
        (table[0], table[1], table[0x12]) = (17, 0x29, 0x22);
        table[0x0c..0x0e].copy_from_slice(&0x4000_u16.to_le_bytes());
        let of = |table: &[u8]| Table::new(table.to_vec()).and_then(|table| module(&table));
        assert_eq!(of(&table), Some(MemoryModule { kind: ModuleKind::Dram, bytes: 16 << 30 }));
        table[0x0c..0x0e].copy_from_slice(&0x7fff_u16.to_le_bytes());
        table[0x1c..0x20].copy_from_slice(&0x20000_u32.to_le_bytes());
        table[0x28] = 7;
        assert_eq!(of(&table), Some(MemoryModule { kind: ModuleKind::Persistent, bytes: 128 << 30 }));
        table[0x0c..0x0e].copy_from_slice(&[0, 0]);
        assert_eq!((of(&table), of(&table[..9]), of(&[])), (None, None, None));
    }
}
