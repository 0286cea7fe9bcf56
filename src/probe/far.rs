//! Measures the far tiers that the user names: a directory (through the pager's own backend), `emu:...`, a block device or a file
//! (read only). What is refused becomes a line of what is missing; the rest of the probe goes on.

use crate::files::spill_dir::FarDir;
use crate::machine;
use nearfar_core::node::{FarAccess, FarPoint, FarTier, Figure, Missing};
use nearfar_core::tier::FarSpec;
use nearfar_core::units::Bytes;
use nearfar_sys::place;
use nearfar_tiers::backend;
use nearfar_tiers::job::Settings;
use nearfar_tiers::speed::{Speed, Trouble};
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::time::Duration;

/// Bytes of the file that is measured, at the most: more than controllers keep in their caches would take too long to write.
const FILE_BYTES: (u64, u64) = (256 << 20, 1 << 30);
/// Runs of a point.
const RUNS: usize = 5;
/// Request sizes and depths: quick, full.
const SIZES: (&[usize], &[usize]) = (&[4096, 1 << 20], &[4096, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 2 << 20]);
const DEPTHS: (&[usize], &[usize]) = (&[1, 16], &[1, 4, 16, 64]);
const ACCESSES: [FarAccess; 4] =
    [FarAccess::SequentialRead, FarAccess::RandomRead, FarAccess::SequentialWrite, FarAccess::RandomWrite];

/// Measures the tier `spec` in about `time`; `stage` is told of each point.
pub fn measure(spec: &str, quick: bool, time: Duration, mut stage: impl FnMut(&str)) -> Result<FarTier, Missing> {
    let missing = |why: String| Missing { what: format!("far tier {spec}"), why };
    stage(&format!("far tier {spec}: preparing"));
    let (mut speed, mut tier, writes) = open(spec, quick).map_err(missing)?;
    tier.spec = spec.to_owned();
    tier.file_bytes = speed.bytes();
    let (sizes, depths) = if quick { (SIZES.0, DEPTHS.0) } else { (SIZES.1, DEPTHS.1) };
    let accesses: Vec<FarAccess> = ACCESSES.into_iter().filter(|access| writes || is_read(*access)).collect();
    let points = points(&accesses, sizes, depths);
    let each = time / (points.len() * RUNS).max(1) as u32;
    for (access, request, depth) in points {
        stage(&format!("far tier {spec}: {} of {} at depth {depth}", access.name(), Bytes(request as u64).exact()));
        match point(&mut speed, access, request, depth, each) {
            Ok(point) => tier.points.push(point),
            Err(trouble) => {
                return Err(missing(format!("{} of {}: {trouble}", access.name(), Bytes(request as u64).exact())));
            }
        }
    }
    Ok(tier)
}

const fn is_read(access: FarAccess) -> bool {
    matches!(access, FarAccess::SequentialRead | FarAccess::RandomRead)
}

/// Small requests show operations per second by depth; in order only the largest is of interest at depth.
fn points(accesses: &[FarAccess], sizes: &[usize], depths: &[usize]) -> Vec<(FarAccess, usize, usize)> {
    let mut points = Vec::new();
    for &access in accesses {
        for (number, &size) in sizes.iter().enumerate() {
            for &depth in depths {
                let random = matches!(access, FarAccess::RandomRead | FarAccess::RandomWrite);
                let end = number == 0 || number + 1 == sizes.len();
                // Between the smallest and the largest request two depths tell the curve.
                if end || depth == depths[0] || (random && depth == depths[depths.len() - 1]) {
                    points.push((access, size, depth));
                }
            }
        }
    }
    points
}

fn point(speed: &mut Speed, access: FarAccess, request: usize, depth: usize, each: Duration) -> Result<FarPoint, Trouble> {
    let (mut rates, mut times) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let run = speed.run(access, request, depth, each)?;
        rates.push(run.bytes as f64 / run.seconds);
        times.push(run.mean_ns);
    }
    let (rate, time) = (Figure::of(&rates), Figure::of(&times));
    Ok(FarPoint { access, request_bytes: request as u64, depth: depth as u32, rate, time })
}

/// The tier, what is known of it before it is measured, and whether it is written to.
fn open(spec: &str, quick: bool) -> Result<(Speed, FarTier, bool), String> {
    let most = if quick { FILE_BYTES.0 } else { FILE_BYTES.1 };
    match spec.parse::<FarSpec>().map_err(|error| error.to_string())? {
        FarSpec::Node { .. } => Err("NUMA nodes are measured as memory, in the bandwidth and latency tables".into()),
        FarSpec::Emulated { bytes_per_s, latency_ns } => {
            let mut settings = Settings::new(0, "").map_err(|errno| errno.to_string())?;
            (settings.emulated, settings.emu_bytes_per_s, settings.emu_latency_ns) = (true, bytes_per_s, latency_ns);
            let backend = backend::open(&settings).map_err(|errno| errno.to_string())?;
            let speed = Speed::new(backend, FILE_BYTES.0 / 2).map_err(|trouble| trouble.to_string())?;
            let about = "DRAM behind a throttle, as nearfar run emulates it".to_owned();
            Ok((speed, FarTier { about, direct: true, ..FarTier::default() }, true))
        }
        FarSpec::Path(path) => {
            let path = Path::new(&path);
            let facts =
                std::fs::metadata(path).map_err(|error| format!("{error}; name a directory on the disk, or a block device"))?;
            if facts.is_dir() {
                return open_directory(path, most);
            }
            let bytes = if facts.file_type().is_block_device() {
                let seek = std::fs::File::open(path).and_then(|mut file| file.seek(SeekFrom::End(0)));
                seek.map_err(|error| format!("{error}; reading a block device needs root or the group disk"))?
            } else if facts.is_file() {
                facts.len()
            } else {
                return Err("it is neither a directory, nor a file, nor a block device".into());
            };
            if bytes < 64 << 20 {
                return Err(format!("it holds {}, too little to measure; 64M is needed", Bytes(bytes)));
            }
            let (speed, direct) = Speed::device(path, bytes.min(64 * most)).map_err(|trouble| trouble.to_string())?;
            let kind = if facts.is_file() { "a file" } else { "a block device" };
            let about = format!("{kind} of {}, only read{}", Bytes(bytes), if direct { "" } else { ", through the page cache" });
            Ok((speed, FarTier { about, direct, ..FarTier::default() }, false))
        }
    }
}

fn open_directory(path: &Path, most: u64) -> Result<(Speed, FarTier, bool), String> {
    let far = FarDir::open(path, true).map_err(|error| error.to_string())?;
    let free = place::file_system(&far.path).map_err(|errno| errno.to_string())?.free;
    // Never more than a quarter of what others may need.
    let bytes = most.min(free / 4);
    if bytes < 64 << 20 {
        return Err(format!(
            "only {} is free there; measuring takes a quarter of that, and that must be at least 64M",
            Bytes(free)
        ));
    }
    if far.file_system.in_memory && bytes > nearfar_sys::process::memory_available() / 4 {
        return Err("it is a file system in memory, and too little memory is free to measure it".into());
    }
    let text = far.path.to_str().ok_or("the path is not UTF-8")?;
    let settings = Settings::new(0, text).map_err(|errno| errno.to_string())?;
    let backend = backend::open(&settings).map_err(|errno| errno.to_string())?;
    let speed = Speed::new(backend, bytes).map_err(|trouble| trouble.to_string())?;
    let mut about = machine::mount_of(&far.path);
    if !far.direct {
        about.push_str(", through the page cache: it takes no direct I/O");
    }
    Ok((speed, FarTier { about, direct: far.direct, ..FarTier::default() }, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_places_are_missing_lines() {
        for (spec, why) in
            [("/nowhere/at/all", "No such file"), ("/dev/null", "neither"), ("node:1", "bandwidth"), ("emu:bw=x", "bw")]
        {
            let missing = measure(spec, true, Duration::from_millis(1), |_| {}).expect_err("refused");
            assert!(missing.why.contains(why), "{missing:?}");
            assert!(missing.what.contains(spec));
        }
    }

    #[test]
    fn an_emulated_tier_is_measured() {
        let tier = measure("emu:bw=8G,lat=20us", true, Duration::from_millis(40), |_| {}).expect("measured");
        let slow = tier.points.iter().find(|point| point.access == FarAccess::RandomRead && point.depth == 1).expect("a point");
        assert!(slow.time.median >= 20_000.0, "{slow:?}");
        assert_eq!(tier.points.len(), 4 * 4);
    }
}
