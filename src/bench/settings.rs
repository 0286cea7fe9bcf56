//! From what was typed and what the machine has to the sizes of a bench.
//!
//! Invariant: sizes fit: all data in memory at once, and the files of the hungriest system in far. Defaults shrink to fit and say
//! so; sizes that were asked for are refused instead.

use super::case::{Effort, LEAST_NEAR, Sizes};
use super::conditions::Conditions;
use crate::exit::refuse;
use anyhow::Result;
use nearfar_core::units::Bytes;
use std::path::Path;

/// Default data size, in MiB.
const DATA_MIB: u64 = 2400;
/// Data size of `--smoke`, in MiB: the smallest of its cases still has a near of 30 MiB.
const SMOKE_MIB: u64 = 180;
/// Data size of `--quick`, in MiB.
const QUICK_MIB: u64 = 720;
/// Bytes of the file that the device is measured with.
const DEVICE_FILE: u64 = 1 << 30;

/// Sizes, and what to tell about them.
#[derive(Clone, Debug)]
pub struct Sizing {
    /// For the cases.
    pub sizes: Sizes,
    /// Bytes of the file that the device is measured with.
    pub device_bytes: u64,
    /// Set when the data is smaller than the default, with the reason.
    pub note: Option<String>,
}

/// Bytes of data: as typed, or the default, which shrinks to what memory and `far` have room for, with a note. `far` must be a directory.
pub fn settle_data(data: Option<&str>, default: Bytes, far: &Path, conditions: &Conditions) -> Result<(Bytes, Option<String>)> {
    if !far.is_dir() {
        return Err(refuse(format!("--far {}: no such directory", far.display())));
    }
    // Seven tenths of free memory: the all-DRAM run must not push the machine itself into swap.
    let fits_memory = conditions.memory_available_bytes / 10 * 7;
    // Swap file and mapped file or spill file at the same time, and the device's file: three data sizes with some air.
    let fits_far = conditions.far_available_bytes / 10 * 9 / 3;
    let most = fits_memory.min(fits_far) & !((1 << 20) - 1);
    let (data, note) = match data {
        Some(text) => {
            let data: Bytes = text.parse().map_err(refuse)?;
            if data.0 > most {
                return Err(refuse(format!(
                    "--data {text} does not fit: memory allows {}, far allows {}",
                    Bytes(fits_memory),
                    Bytes(fits_far)
                )));
            }
            (data, None)
        }
        None if default.0 > most => {
            let shorter = if fits_memory < fits_far { "free memory" } else { "free space in far" };
            (Bytes(most), Some(format!("data is {} instead of {}: {shorter} is short", Bytes(most), default.exact())))
        }
        None => (default, None),
    };
    if data.0 < 48 << 20 {
        return Err(refuse(format!("data of {} is too little to measure; write at least 48M", Bytes(data.0))));
    }
    Ok((data, note))
}

/// Settles the sizes. `data` and `near` are as typed; `near` may be a share of data. `far` must be a directory.
pub fn settle(data: Option<&str>, near: Option<&str>, effort: Effort, far: &Path, conditions: &Conditions) -> Result<Sizing> {
    let default = match effort {
        Effort::Smoke => SMOKE_MIB,
        Effort::Quick => QUICK_MIB,
        Effort::Full => DATA_MIB,
    };
    let (data, note) = settle_data(data, Bytes(default << 20), far, conditions)?;
    let near = match near {
        Some(text) => Bytes::parse_of(text, data).map_err(refuse)?,
        None => Bytes((data.0 / 3) & !((1 << 20) - 1)),
    };
    if near.0 < LEAST_NEAR || near.0 >= data.0 {
        return Err(refuse(format!(
            "near of {} does not suit data of {}: write less than the data, and at least 16M",
            near, data
        )));
    }
    let device_bytes = if effort == Effort::Smoke { 64 << 20 } else { DEVICE_FILE.min(data.0) };
    Ok(Sizing { sizes: Sizes { data_bytes: data.0, near_bytes: near.0, effort }, device_bytes, note })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(memory_mib: u64, far_mib: u64) -> Conditions {
        let mut conditions = Conditions::here(&std::env::temp_dir());
        (conditions.memory_available_bytes, conditions.far_available_bytes) = (memory_mib << 20, far_mib << 20);
        conditions
    }

    #[test]
    fn defaults_shrink_and_wishes_are_refused() {
        let roomy = settle(None, None, Effort::Full, Path::new("/"), &machine(24_000, 80_000)).expect("fits");
        assert_eq!((roomy.sizes.data_bytes >> 20, roomy.sizes.near_bytes >> 20, roomy.note), (2400, 800, None));
        let tight = settle(None, None, Effort::Full, Path::new("/"), &machine(1000, 80_000)).expect("shrinks");
        assert_eq!(tight.sizes.data_bytes >> 20, 700);
        assert!(tight.note.is_some());
        assert!(settle(Some("2400M"), None, Effort::Full, Path::new("/"), &machine(1000, 80_000)).is_err());
        assert!(settle(Some("2400M"), Some("3G"), Effort::Full, Path::new("/"), &machine(24_000, 80_000)).is_err());
        let half = settle(Some("2400M"), Some("50%"), Effort::Full, Path::new("/"), &machine(24_000, 80_000)).expect("fits");
        assert_eq!(half.sizes.near_bytes, 1200 << 20);
    }
}
