//! DAMON, the kernel's sampler of accesses, through /sys/kernel/mm/damon/admin (Linux 5.19, root).
//!
//! We name the regions ourselves (`fvaddr`) and keep the kernel from merging and splitting them, so that a round gives for each region how many
//! looks found a visit, each look at a random page of it. One kernel thread does all processes. DAMON has one user at a time: what another
//! one has set up or running is left alone, and of several nearfar commands the first has it. What a killed one left is known by a mark.

use nearfar_core::addr::Extent;
use std::fs;
use std::io::{Error, ErrorKind};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

const ADMIN: &str = "/sys/kernel/mm/damon/admin/kdamonds";
/// Held by the nearfar command that uses DAMON, until it ends in whatever way.
const LOCK: &str = "nearfar-damon";
/// Where we leave our mark: the kernel reads this only for schemes with watermarks, and ours has none.
const MARK_FILE: &str = "contexts/0/schemes/0/watermarks/interval_us";
const MARK: &str = "63277327";
/// How long at most before the end of the looks the kernel is asked for what they found.
const LAST_OF_IT: Duration = Duration::from_millis(50);
/// The kernel refuses fewer.
const FEWEST_REGIONS: usize = 3;

/// Why DAMON cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DamonError {
    /// The kernel was built without, or is too old.
    #[error("the kernel has no DAMON for chosen addresses (CONFIG_DAMON_VADDR and CONFIG_DAMON_SYSFS, Linux 5.19)")]
    Missing,
    /// Only root may.
    #[error("only root may use DAMON")]
    Denied,
    /// Somebody else uses it.
    #[error("DAMON is in use (by another nearfar command, or by whoever made {ADMIN}/nr_kdamonds other than 0)")]
    InUse,
    /// The caller wanted to look no longer.
    #[error("DAMON was stopped")]
    Stopped,
    /// A file could not be read or written.
    #[error("DAMON: {0}: {1}")]
    File(PathBuf, Error),
}

/// A process and what to look at in it, ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The process.
    pub pid: u32,
    /// Not overlapping.
    pub regions: Vec<Extent>,
}

/// What a round saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round {
    /// For each region of all targets in order: looks that found a visit.
    pub visits: Vec<u32>,
    /// CPU time that the kernel's thread took.
    pub cpu_ns: u64,
}

/// DAMON, ours until dropped.
#[derive(Debug)]
pub struct Damon {
    kdamond: PathBuf,
    /// What the kernel was told last, to tell it again only what changed.
    told: Option<(Vec<Target>, u32, Duration)>,
    _lock: UnixListener,
}

/// True when it is there and this user may use it.
///
/// # Errors
/// Why not.
pub fn check() -> Result<(), DamonError> {
    let counter = Path::new(ADMIN).join("nr_kdamonds");
    if !counter.exists() {
        return Err(DamonError::Missing);
    }
    // Opened for writing, nothing written.
    fs::OpenOptions::new().write(true).open(&counter).map(drop).map_err(|error| match error.kind() {
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => DamonError::Denied,
        _ => DamonError::File(counter, error),
    })
}

impl Damon {
    /// Takes DAMON.
    ///
    /// # Errors
    /// See [`DamonError`].
    pub fn claim() -> Result<Self, DamonError> {
        check()?;
        let address = SocketAddr::from_abstract_name(LOCK).map_err(|error| DamonError::File(LOCK.into(), error))?;
        let lock = UnixListener::bind_addr(&address).map_err(|_| DamonError::InUse)?;
        let admin = Path::new(ADMIN);
        let kdamond = admin.join("0");
        if !may_be_taken(&read(&admin.join("nr_kdamonds"))?, read(&kdamond.join(MARK_FILE)).ok().as_deref()) {
            return Err(DamonError::InUse);
        }
        // Of a nearfar command that was killed; nothing to stop otherwise.
        let _ = write(&kdamond.join("state"), "off");
        write(&admin.join("nr_kdamonds"), "1")?;
        // From here on it is given back, whatever goes wrong.
        let damon = Self { kdamond, told: None, _lock: lock };
        write(&damon.kdamond.join("contexts/nr_contexts"), "1")?;
        damon.set_up()?;
        let known = read(&damon.context().join("avail_operations")).unwrap_or_default();
        if !known.split_whitespace().any(|name| name == "fvaddr") {
            return Err(DamonError::Missing);
        }
        Ok(damon)
    }

    /// Looks `looks` times, `interval` apart, at a random page of each region. Lets most of that time pass by `pause`, which returns false
    /// when the round is to be given up.
    ///
    /// # Errors
    /// When the kernel refuses, such as for processes that are all gone; `Stopped` when it was given up.
    pub fn round(
        &mut self,
        targets: &[Target],
        looks: u32,
        interval: Duration,
        pause: &dyn Fn(Duration) -> bool,
    ) -> Result<Round, DamonError> {
        let count: usize = targets.iter().map(|target| target.regions.len()).sum();
        if self.told.as_ref().is_none_or(|told| told.0 != targets || told.1 != looks || told.2 != interval) {
            self.told = None;
            self.tell(targets, count, looks, interval)?;
            self.told = Some((targets.to_vec(), looks, interval));
        }
        let state = self.kdamond.join("state");
        write(&state, "on")?;
        // The kernel's own wait for the end of the looks cannot be cut short: it gets the last of it only. (Were it asked for after the
        // end, it would wait for the end of the next looks.)
        let all = interval * looks;
        if !pause(all - (all * 3 / 10).min(LAST_OF_IT)) {
            let _ = write(&state, "off");
            return Err(DamonError::Stopped);
        }
        let result = write(&state, "update_schemes_tried_regions").and_then(|()| {
            let regions: Vec<Extent> = targets.iter().flat_map(|target| target.regions.iter().copied()).collect();
            Ok(Round { visits: self.read_visits(&regions, looks)?, cpu_ns: self.cpu_ns() })
        });
        // It may have stopped by itself, when all processes are gone.
        let _ = write(&state, "off");
        result
    }

    fn context(&self) -> PathBuf {
        self.kdamond.join("contexts/0")
    }

    fn tell(&self, targets: &[Target], count: usize, looks: u32, interval: Duration) -> Result<(), DamonError> {
        let context = self.context();
        let put = |name: &str, value: &dyn std::fmt::Display| write(&context.join(name), &value.to_string());
        put("operations", &"fvaddr")?;
        let attributes = |name: &str| format!("monitoring_attrs/{name}");
        put(&attributes("intervals/sample_us"), &interval.as_micros())?;
        put(&attributes("intervals/aggr_us"), &(interval * looks).as_micros())?;
        // Not before the round is over: there is nothing to update.
        put(&attributes("intervals/update_us"), &(interval * looks * 100).as_micros())?;
        // As many as there are: neither split, which needs fewer than half of the most, nor merged, which makes none longer than the
        // whole divided by the fewest.
        let fewest = count.max(FEWEST_REGIONS);
        // The most first when it grows, the fewest first when it shrinks: the kernel checks at the start only, either order will do.
        put(&attributes("nr_regions/max"), &fewest)?;
        put(&attributes("nr_regions/min"), &fewest)?;
        put("targets/nr_targets", &targets.len())?;
        for (number, target) in targets.iter().enumerate() {
            let of = |name: &str| format!("targets/{number}/{name}");
            put(&of("pid_target"), &target.pid)?;
            put(&of("regions/nr_regions"), &target.regions.len())?;
            for (number, region) in target.regions.iter().enumerate() {
                put(&of(&format!("regions/{number}/start")), &region.start)?;
                put(&of(&format!("regions/{number}/end")), &region.end)?;
            }
        }
        Ok(())
    }

    /// One scheme that matches all and does nothing, with our mark.
    fn set_up(&self) -> Result<(), DamonError> {
        let put = |name: &str, value: &str| write(&self.context().join("schemes").join(name), value);
        put("nr_schemes", "1")?;
        write(&self.kdamond.join(MARK_FILE), MARK)?;
        put("0/action", "stat")?;
        for pattern in ["sz", "nr_accesses", "age"] {
            put(&format!("0/access_pattern/{pattern}/min"), "0")?;
            put(&format!("0/access_pattern/{pattern}/max"), &u64::MAX.to_string())?;
        }
        Ok(())
    }

    fn read_visits(&self, regions: &[Extent], looks: u32) -> Result<Vec<u32>, DamonError> {
        let dir = self.context().join("schemes/0/tried_regions");
        let names = numbered(&dir);
        let number = |name: &u64, file: &str| -> Result<u64, DamonError> {
            let path = dir.join(name.to_string()).join(file);
            let text = read(&path)?;
            text.trim().parse().map_err(|_| DamonError::File(path, ErrorKind::InvalidData.into()))
        };
        if names.len() == regions.len() {
            return names.iter().map(|name| Ok(number(name, "nr_accesses")?.min(u64::from(looks)) as u32)).collect();
        }
        let found = |name: &u64| {
            let range = Extent { start: number(name, "start")? as usize, end: number(name, "end")? as usize };
            Ok((range, number(name, "nr_accesses")? as u32))
        };
        let found = names.iter().map(found).collect::<Result<Vec<_>, DamonError>>()?;
        Ok(spread(regions, &found, looks))
    }

    fn cpu_ns(&self) -> u64 {
        let pid = read(&self.kdamond.join("pid")).unwrap_or_default();
        let text = fs::read_to_string(format!("/proc/{}/schedstat", pid.trim())).unwrap_or_default();
        text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0)
    }
}

impl Drop for Damon {
    fn drop(&mut self) {
        give_back();
    }
}

/// Gives DAMON back in the place of the thread that has it, when this command must end and cannot wait for that thread.
pub fn give_back() {
    let admin = Path::new(ADMIN);
    let _ = write(&admin.join("0/state"), "off");
    let _ = write(&admin.join("nr_kdamonds"), "0");
}

/// True where nobody has set up DAMON, or one of us that does not live any more: it held the lock while it did.
fn may_be_taken(kdamonds: &str, mark: Option<&str>) -> bool {
    match kdamonds.trim() {
        "0" => true,
        "1" => mark.is_some_and(|mark| mark.trim() == MARK),
        _ => false,
    }
}

/// Visits of `regions` from those that the kernel found, in the same order, where it split or merged some. Regions of several processes
/// follow each other, so that addresses may descend in between.
fn spread(regions: &[Extent], found: &[(Extent, u32)], looks: u32) -> Vec<u32> {
    let mut sums = vec![0.0; regions.len()];
    let mut at = 0;
    for (range, visits) in found {
        let overlap = |region: &Extent| region.end.min(range.end).saturating_sub(region.start.max(range.start));
        let Some(first) = regions[at..].iter().position(|region| overlap(region) > 0) else { continue };
        at += first;
        let reached = regions[at..].iter().take_while(|region| overlap(region) > 0).count();
        for (sum, region) in sums[at..at + reached].iter_mut().zip(&regions[at..]) {
            *sum += f64::from(*visits) * overlap(region) as f64 / region.len().max(1) as f64;
        }
        // The last one may go on in the next range.
        at += reached - 1;
    }
    sums.into_iter().map(|sum: f64| (sum.round() as u32).min(looks)).collect()
}

fn numbered(dir: &Path) -> Vec<u64> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let mut numbers: Vec<u64> = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

fn read(path: &Path) -> Result<String, DamonError> {
    fs::read_to_string(path).map_err(|error| DamonError::File(path.to_owned(), error))
}

fn write(path: &Path, text: &str) -> Result<(), DamonError> {
    // Not created, not cut: these are files of the kernel.
    let mut file = fs::OpenOptions::new().write(true).open(path).map_err(|error| DamonError::File(path.to_owned(), error))?;
    std::io::Write::write_all(&mut file, text.as_bytes()).map_err(|error| DamonError::File(path.to_owned(), error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_and_merged_regions() {
        let extent = |start: usize, end: usize| Extent { start, end };
        // Two processes with the same addresses.
        let regions = [extent(0, 100), extent(100, 200), extent(400, 500), extent(0, 100), extent(100, 200)];
        let exact: Vec<_> = regions.iter().zip([5, 0, 9, 1, 2]).map(|(&region, visits)| (region, visits)).collect();
        assert_eq!(spread(&regions, &exact, 10), [5, 0, 9, 1, 2]);
        let merged = [(extent(0, 200), 4), (extent(400, 450), 10), (extent(450, 500), 0), (extent(0, 200), 2)];
        assert_eq!(spread(&regions, &merged, 10), [4, 4, 5, 2, 2]);
        assert_eq!(spread(&regions, &[], 10), [0; 5]);
    }

    #[test]
    fn what_others_have_set_up_is_not_taken() {
        assert!(may_be_taken("0\n", None) && may_be_taken("1\n", Some(&format!("{MARK}\n"))));
        assert!(!may_be_taken("1\n", None) && !may_be_taken("1\n", Some("0\n")) && !may_be_taken("2\n", Some(MARK)));
    }

    #[test]
    fn where_it_cannot_be_had_it_says_why() {
        match Damon::claim() {
            Ok(_) => {}
            Err(error) => assert!(error.to_string().contains("DAMON"), "{error}"),
        }
    }
}
