//! What is known of a process besides its threads: its command, what its environment says, the libraries that it has mapped.

use nearfar_core::affinity::{Area, Process, SETTINGS, has_pool_of, rank_of, runtime_of};
use nearfar_sys::proc_tasks;
use nearfar_sys::root::Root;
use nearfar_tiers::job::ENV_JOB;
use std::collections::{BTreeMap, BTreeSet};

/// Fills in what the environment and the command line of `process` say. False without the right to see the environment.
pub fn read(root: &Root, process: &mut Process) -> bool {
    let command = proc_tasks::command(root, process.pid);
    if !command.is_empty() {
        process.command = command;
    }
    let environment = match proc_tasks::environment(root, process.pid) {
        Ok(environment) => environment,
        Err(error) => return error.kind() != std::io::ErrorKind::PermissionDenied,
    };
    // A process that is about to end has none any more.
    if !environment.is_empty() {
        apply(process, &environment.into_iter().collect());
    }
    true
}

fn apply(process: &mut Process, environment: &BTreeMap<String, String>) {
    process.rank = rank_of(|name| environment.get(name).map(String::as_str));
    process.under_nearfar = environment.contains_key(ENV_JOB);
    let set = SETTINGS.iter().filter_map(|&name| Some((name.to_owned(), environment.get(name)?.clone())));
    process.settings = set.collect();
}

/// Notes which of the libraries that matter are among `areas`.
pub fn libraries(process: &mut Process, areas: &[Area]) {
    let names: BTreeSet<&str> = areas.iter().map(|area| area.name.as_str()).filter(|name| name.starts_with('/')).collect();
    let runtimes: BTreeSet<&str> = names.iter().filter_map(|name| runtime_of(name)).collect();
    process.openmp = runtimes.into_iter().map(str::to_owned).collect();
    let pools: BTreeSet<_> = names.iter().filter_map(|name| has_pool_of(name)).collect();
    process.pools = pools.into_iter().collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_with_openmp_under_nearfar() {
        let mut process = Process::default();
        let environment = [("OMP_NUM_THREADS", "4"), ("PMI_RANK", "2"), (ENV_JOB, "/proc/1/fd/3"), ("HOME", "/root")];
        apply(&mut process, &environment.into_iter().map(|(name, value)| (name.into(), value.into())).collect());
        assert_eq!(process.rank.as_ref().map(|rank| rank.number), Some(2));
        assert!(process.under_nearfar && process.settings.len() == 1 && process.settings["OMP_NUM_THREADS"] == "4");
        let area = |name: &str| Area { name: name.into(), ..Area::default() };
        libraries(&mut process, &[area("/usr/lib/libgomp.so.1.0.0"), area("/usr/lib/libgomp.so.1.0.0"), area("[heap]")]);
        assert_eq!((process.openmp.as_slice(), process.pools.len()), (&["libgomp.so.1.0.0".to_owned()][..], 0));
    }
}
