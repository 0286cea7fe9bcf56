//! What the media under far can do, and the speed that this leaves to a work: the bound that is shown beside each figure.

use super::super::case::{EMULATED_LATENCY_US, EMULATED_SHARE};
use super::works::Limit;
use crate::files::suite::{DiskRates, PointBound, System};
use anyhow::{Context, Result};
use nearfar_kernels::device::DeviceFile;
use std::path::Path;
use std::time::Duration;

/// Requests of 1 MiB under way at once.
const DEPTH: usize = 32;
/// How long single pages are read.
const PAGES_TIME: Duration = Duration::from_millis(400);
const PAGE: f64 = 4096.0;

/// Measures the disk once more with a file of `bytes` in `far`. The best figures are kept: a bound must not be too low.
pub fn sample(disk: &mut DiskRates, far: &Path, bytes: usize, threads: &[usize]) -> Result<()> {
    let file = DeviceFile::create(far, bytes).with_context(|| format!("cannot measure the disk under {}", far.display()))?;
    disk.cached = !file.is_direct();
    disk.read = disk.read.max(file.read(DEPTH)?.bytes_per_s());
    disk.write = disk.write.max(file.write(DEPTH)?.bytes_per_s());
    for &threads in threads {
        let rate = file.read_random(threads, PAGES_TIME)?.operations_per_s();
        let best = disk.pages.entry(threads).or_default();
        *best = best.max(rate);
    }
    Ok(())
}

/// A work in all-DRAM, with so many threads.
#[derive(Clone, Copy, Debug)]
pub struct InDram {
    /// Bytes of data.
    pub data: f64,
    /// Bytes between data and work in a repetition.
    pub traffic: f64,
    /// Seconds of a repetition.
    pub seconds: f64,
    /// Operations per second.
    pub rate: f64,
    /// Threads.
    pub threads: usize,
}

/// The most that a work can reach of its speed in all-DRAM with so much near, whatever the pager does; `None` where that is not known.
pub fn bound(limit: Limit, dram: InDram, near: f64, system: System, disk: &DiskRates, dram_triad: f64) -> Option<PointBound> {
    let (read, write) = match system {
        System::Emulated => (dram_triad / EMULATED_SHARE, dram_triad / EMULATED_SHARE),
        System::Disk => (disk.read, disk.write),
        // Of modes the caller says what is under far.
        _ => return None,
    };
    if dram.data <= near {
        return Some(PointBound { efficiency: 1.0, because: "all data fit in near".to_owned() });
    }
    let gb = |bytes: f64| bytes / 1e9;
    let (efficiency, because) = match limit {
        Limit::Unknown => return None,
        Limit::Passes { .. } | Limit::CountedPasses => {
            let (passes, touched, changed) = match limit {
                Limit::Passes { passes, touched, changed } => (passes, touched, changed),
                _ => (dram.traffic / 2.0 / dram.data, 1.0, 1.0),
            };
            let bytes_in = passes * (touched * dram.data - near).max(0.0);
            let bytes_out = passes * (changed * dram.data - near).max(0.0);
            // A disk may read and write at once; emulated far has one bandwidth for both.
            let (reading, writing) = (bytes_in / read, bytes_out / write);
            let seconds = if system == System::Emulated { reading + writing } else { reading.max(writing) };
            let written = if bytes_out > 0.0 {
                format!(" and write {:.2} GB at {:.2} GB/s", gb(bytes_out), gb(write))
            } else {
                String::new()
            };
            let because = format!("must read {:.2} GB at {:.2} GB/s{written}, whatever the policy", gb(bytes_in), gb(read));
            (dram.seconds / seconds.max(dram.seconds), because)
        }
        Limit::Visits => {
            let single = match system {
                System::Emulated => dram.threads as f64 / (f64::from(EMULATED_LATENCY_US) / 1e6 + PAGE / read),
                _ => *disk.pages.get(&dram.threads)?,
            };
            let miss = 1.0 - near / dram.data;
            let because = format!(
                "{:.0} % of the visits miss near, and {} threads get {:.1} k single pages/s",
                100.0 * miss,
                dram.threads,
                single / 1e3
            );
            ((single / miss / dram.rate).min(1.0), because)
        }
    };
    let cached = if system == System::Disk && disk.cached { "; the disk's figures are the page cache's" } else { "" };
    Some(PointBound { efficiency, because: because + cached })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const DRAM: InDram = InDram { data: 3e9, traffic: 12e9, seconds: 0.5, rate: 1e6, threads: 2 };

    fn efficiency(limit: Limit, near: f64, system: System) -> Option<f64> {
        let disk = DiskRates { read: 2e9, write: 1e9, pages: BTreeMap::from([(2, 20_000.0)]), cached: false };
        bound(limit, DRAM, near, system, &disk, 32e9).map(|bound| bound.efficiency)
    }

    #[test]
    fn bounds_follow_from_what_must_move() {
        // 2 GB in at 2 GB/s; a third of the data is changed and stays near.
        let triad = Limit::Passes { passes: 1.0, touched: 1.0, changed: 1.0 / 3.0 };
        assert_eq!(efficiency(triad, 1e9, System::Disk), Some(0.5));
        // 2 GB in and 2 GB out at 4 GB/s each.
        let update = Limit::Passes { passes: 1.0, touched: 1.0, changed: 1.0 };
        assert_eq!(efficiency(update, 1e9, System::Emulated), Some(0.5));
        assert_eq!(efficiency(update, 3e9, System::Disk), Some(1.0));
        // 2 GB out at 1 GB/s, and 2 GB in meanwhile.
        assert_eq!(efficiency(update, 1e9, System::Disk), Some(0.25));
        // Two passes, each of which reads and writes.
        assert_eq!(efficiency(Limit::CountedPasses, 1e9, System::Emulated), Some(0.25));
        let half = Limit::Passes { passes: 1.0, touched: 0.5, changed: 0.0 };
        assert_eq!(efficiency(half, 1e9, System::Disk), Some(1.0));
        // 30 000 visits per second of a million.
        let visits = efficiency(Limit::Visits, 1e9, System::Disk).expect("known");
        assert!((visits - 0.03).abs() < 1e-9, "{visits}");
        assert_eq!(efficiency(Limit::Unknown, 1e9, System::Disk), None);
        assert_eq!(efficiency(triad, 1e9, System::Swap), None);
    }
}
