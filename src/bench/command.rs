//! How a workload is started under each system: what is compared can be read here in one place.
//!
//! Pure: builds command lines and runs nothing. Limits on memory are the cgroup's, not seen here.

use super::case::{Case, Far};
use super::external::{Outside, Program};
use super::rival::Rival;
use crate::cli::bench::Nodes;
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
    /// Programs that are not ours.
    pub outside: Outside,
    /// What emulated far is, once the bandwidth of DRAM is known.
    pub emulated: Option<String>,
    /// The nodes that near and far are, where they are not a budget and a directory.
    pub nodes: Option<Nodes>,
}

impl Places {
    /// The options `--near` and `--far` of a case; between nodes 0 bytes are no limit.
    pub fn tiers(&self, case: &Case) -> (String, OsString) {
        let budget = case.near_bytes.to_string();
        match (case.far, &self.emulated, &self.nodes) {
            (Far::Nodes, _, Some(nodes)) if case.near_bytes == 0 => (nodes.near.clone(), nodes.far.clone().into()),
            (Far::Nodes, _, Some(nodes)) => (format!("{}:{budget}", nodes.near), nodes.far.clone().into()),
            (Far::Emulated, Some(far), _) => (budget, far.into()),
            _ => (budget, self.far.clone().into()),
        }
    }
}

/// The program to start for `case` under `rival`, and its arguments.
pub fn command(case: &Case, rival: Rival, places: &Places, threads: usize) -> (PathBuf, Vec<OsString>) {
    let (program, arguments) = match case.program {
        Program::Kernel => (places.kernel.clone(), kernel_arguments(case, rival, places, threads)),
        Program::Recipe(recipe) => {
            let length = case.length_under(rival);
            // What is not here is an obstacle, told before this is called.
            let python = places.outside.python().unwrap_or(Path::new("not-found")).to_owned();
            (python, recipe.arguments(case.data_bytes, length.repetitions, length.seconds))
        }
    };
    if !rival.is_nearfar() {
        return (program, arguments);
    }
    let (near, far) = places.tiers(case);
    let mut run: Vec<OsString> = vec!["run".into(), "--quiet".into(), "--near".into(), near.into()];
    run.extend(["--far".into(), far, "--stats".into(), places.stats.clone().into()]);
    run.extend(rival.grain().into_iter().flat_map(|grain| ["--grain".into(), grain.into()]));
    run.extend(case.options.iter().map(OsString::from));
    run.extend(["--".into(), program.into()]);
    run.extend(arguments);
    (places.nearfar.clone(), run)
}

fn kernel_arguments(case: &Case, rival: Rival, places: &Places, threads: usize) -> Vec<OsString> {
    debug_assert!(case.program == Program::Kernel);
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
    add("--verify", &if rival == Rival::Swap || !case.read_back { "none" } else { "full" });
    let map = places.far.join(format!(".nearfar-bench-{}.map", std::process::id()));
    match rival {
        Rival::MappedFile => add("--mmap-file", &map),
        Rival::AdvisedFile => add("--advised-file", &map),
        Rival::Dram | Rival::Nearfar | Rival::Grain(_) | Rival::Swap => {}
    }
    arguments.push("--json".into());
    arguments
}

#[cfg(test)]
mod tests {
    use super::super::case::{Effort, Sizes};
    use super::super::cases::{cases, triad};
    use super::*;
    use crate::cli::bench::Suite;

    const SIZES: Sizes = Sizes { data_bytes: 3000, near_bytes: 1000, effort: Effort::Full };

    fn places() -> Places {
        Places {
            kernel: "k".into(),
            nearfar: "n".into(),
            far: "/far".into(),
            stats: "s".into(),
            outside: Outside::nowhere(),
            emulated: Some("emu:bw=5,lat=10us".to_owned()),
            nodes: None,
        }
    }

    fn line(case: &Case, rival: Rival) -> String {
        let (program, arguments) = command(case, rival, &places(), 2);
        let words = [program.into_os_string()].into_iter().chain(arguments);
        words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn far_is_emulated_where_the_case_says_so_and_programs_are_their_own() {
        for case in cases(Suite::Emu, SIZES) {
            assert!(line(&case, Rival::Nearfar).contains(" --far emu:bw=5,lat=10us "));
            assert!(!line(&case, Rival::Dram).contains("emu"));
        }
        let fits = cases(Suite::Fits, SIZES);
        let lammps = fits.iter().find(|case| case.title.contains("LAMMPS")).expect("a case");
        assert!(line(lammps, Rival::Dram).starts_with("python3 -c "));
        assert!(line(lammps, Rival::Nearfar).contains(" --stats s -- python3 -c "));
        assert!(line(lammps, Rival::Nearfar).ends_with(&format!("\n {} 4 0", lammps.data_bytes)));
    }

    #[test]
    fn everyone_runs_the_same_program_on_the_same_data() {
        let places = places();
        let case = triad(SIZES);
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
