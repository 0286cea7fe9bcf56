//! What a reader needs to know to compare figures: printed above every table and saved in every file of results.
//!
//! Reads /proc and /sys; does not measure.

use crate::machine::{Machine, mount_of, read};
use nearfar_sys::{kernel, place, process};
use serde::Serialize;
use std::path::Path;

/// The machine and the state of it that matters here.
#[derive(Clone, Debug, Serialize)]
pub struct Conditions {
    /// The machine.
    #[serde(flatten)]
    pub machine: Machine,
    /// Bytes of memory that programs could get now.
    pub memory_available_bytes: u64,
    /// Transparent huge pages: the mode in force.
    pub huge_pages: String,
    /// Where far is: directory, file system, device.
    pub far: String,
    /// Bytes free for this user in the far directory.
    pub far_available_bytes: u64,
    /// Whether swapped pages are compressed in memory first.
    pub zswap: bool,
    /// Load average of the last minute when the bench began: what else was running.
    pub load: f64,
}

impl Conditions {
    /// Describes this machine with `far` as the directory of the far tier. What cannot be read is called unknown, or 0.
    pub fn here(far: &Path) -> Self {
        Self {
            machine: Machine::this(),
            memory_available_bytes: process::memory_available(),
            huge_pages: kernel::huge_pages().unwrap_or_else(|| "unknown".to_owned()),
            far: format!("{} ({})", far.display(), mount_of(far)),
            far_available_bytes: place::file_system(far).map_or(0, |found| found.free),
            zswap: read("/sys/module/zswap/parameters/enabled").starts_with('Y'),
            load: read("/proc/loadavg").split_whitespace().next().and_then(|load| load.parse().ok()).unwrap_or(0.0),
        }
    }
}

impl Conditions {
    /// A warning when other work will disturb the figures.
    pub fn disturbance(&self) -> Option<String> {
        // A quarter of a CPU per CPU: less is the noise of an idle desktop.
        (self.load > 0.25 * self.machine.cpus as f64)
            .then(|| format!("other programs are running (load {:.1}): figures may be too low and spreads too wide", self.load))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_far_have_sizes() {
        let here = Conditions::here(&std::env::temp_dir());
        assert!(here.machine.ram > here.memory_available_bytes && here.memory_available_bytes > 0);
        assert!(here.far_available_bytes > 0);
    }
}
