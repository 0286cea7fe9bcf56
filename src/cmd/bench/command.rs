//! How a workload is started under each system: what is compared can be read here in one place.
//!
//! Pure: builds command lines and runs nothing. Limits on memory are the cgroup's, not seen here.

use super::case::Case;
use super::rival::Rival;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Where the programs and their files are.
#[derive(Clone, Debug)]
pub struct Places {
    /// The workloads.
    pub kernel: PathBuf,
    /// This program.
    pub nearfar: PathBuf,
    /// Directory of the far tier.
    pub far: PathBuf,
    /// Where `nearfar run` writes its counters.
    pub stats: PathBuf,
}

/// The program to start for `case` under `rival`, and its arguments.
pub fn command(case: &Case, rival: Rival, places: &Places, threads: usize) -> (PathBuf, Vec<OsString>) {
    let length = case.length_under(rival);
    let mut arguments: Vec<OsString> = case.arguments.iter().map(OsString::from).collect();
    let mut add = |option: &str, value: &dyn AsRef<Path>| {
        arguments.push(option.into());
        arguments.push(value.as_ref().into());
    };
    add("--bytes", &case.data_bytes.to_string());
    add("--threads", &threads.to_string());
    add("--sweeps", &length.repetitions.to_string());
    if let Some(seconds) = length.seconds {
        add("--seconds", &seconds.to_string());
    }
    // Reading the data back through kernel swap would take longer than all the rest; the kernel's swap is trusted.
    add("--verify", &if rival == Rival::Swap { "none" } else { "full" });
    let map = places.far.join(format!(".nearfar-bench-{}.map", std::process::id()));
    match rival {
        Rival::MappedFile => add("--mmap-file", &map),
        Rival::AdvisedFile => add("--advised-file", &map),
        Rival::Dram | Rival::Nearfar | Rival::Swap => {}
    }
    arguments.push("--json".into());
    if rival != Rival::Nearfar {
        return (places.kernel.clone(), arguments);
    }
    let mut run: Vec<OsString> = vec!["run".into(), "--quiet".into(), "--near".into(), case.near_bytes.to_string().into()];
    run.extend(["--far".into(), places.far.clone().into(), "--stats".into(), places.stats.clone().into()]);
    run.extend(["--".into(), places.kernel.clone().into()]);
    run.extend(arguments);
    (places.nearfar.clone(), run)
}

#[cfg(test)]
mod tests {
    use super::super::case::{Sizes, triad};
    use super::*;

    #[test]
    fn everyone_runs_the_same_program_on_the_same_data() {
        let places = Places { kernel: "k".into(), nearfar: "n".into(), far: "/far".into(), stats: "s".into() };
        let case = triad(Sizes { data_bytes: 3000, near_bytes: 1000, smoke: false });
        for rival in [Rival::Dram, Rival::Nearfar, Rival::MappedFile, Rival::Swap] {
            let (program, arguments) = command(&case, rival, &places, 2);
            let line = arguments.iter().map(|a| a.to_string_lossy()).collect::<Vec<_>>().join(" ");
            assert!(line.contains("triad --bytes 3000 --threads 2"), "{line}");
            assert_eq!(line.starts_with("run --quiet --near 1000 --far /far"), rival == Rival::Nearfar);
            assert_eq!(program == Path::new("n"), rival == Rival::Nearfar);
            assert_eq!(line.contains("--mmap-file /far/"), rival == Rival::MappedFile);
        }
    }
}
