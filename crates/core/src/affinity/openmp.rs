//! OpenMP as seen from outside: which runtime is loaded, how many threads a team should have, and which thread is which.
//!
//! Runtimes do not name their threads. Both libgomp and libomp keep one pool and create its threads in the order of their numbers, so the
//! order of creation tells the number of a thread in the outermost team, as long as nothing else in the process makes threads: inferred.

use super::{Pool, Process, Thread};

/// The OpenMP runtime that a mapped file is, by its file name.
pub fn runtime_of(path: &str) -> Option<&str> {
    let file = path.rsplit('/').next()?;
    ["libgomp", "libomp.", "libomp-", "libiomp5", "libnvomp", "libcraymp", "libxlsmp"]
        .iter()
        .any(|start| file.starts_with(start))
        .then_some(file)
}

/// The library with threads of its own that a mapped file is.
pub fn has_pool_of(path: &str) -> Option<Pool> {
    let file = path.rsplit('/').next()?;
    let starts = |start: &str| file.starts_with(start);
    match () {
        () if starts("libopenblas") || starts("libscipy_openblas") => Some(Pool::OpenBlas),
        () if starts("libmkl_rt") || starts("libmkl_gnu_thread") || starts("libmkl_intel_thread") => Some(Pool::Mkl),
        () if starts("libblis-mt") || starts("libblis") && !starts("libblis-st") => Some(Pool::Blis),
        () => None,
    }
}

/// Threads that the outermost team of `process` should have: the first number of OMP_NUM_THREADS, else one per CPU that it may use.
pub fn team(process: &Process) -> u32 {
    let asked = process.settings.get("OMP_NUM_THREADS");
    let asked = asked.and_then(|text| text.split(',').next()?.trim().parse().ok()).filter(|&threads| threads > 0);
    asked.unwrap_or_else(|| (process.allowed.len() as u32).max(1))
}

/// Gives the threads of a process with an OpenMP runtime their numbers: the first thread is 0, the rest follow in order of creation.
/// Threads with names of their own are somebody else's; threads beyond the team's size have no number (nested teams, other pools).
pub fn number_threads(process: &mut Process) {
    for thread in &mut process.threads {
        thread.openmp = None;
    }
    if process.openmp.is_empty() {
        return;
    }
    let team = team(process);
    let Some(first) = process.threads.first().map(|thread: &Thread| thread.name.clone()) else { return };
    let unnamed = process.threads.iter_mut().filter(|thread| thread.name == first);
    for (thread, number) in unnamed.zip(0..team) {
        thread.openmp = Some(number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(names: &[&str], runtime: bool, threads: Option<&str>) -> Process {
        let threads_of = names.iter().map(|name| Thread { name: (*name).into(), ..Thread::default() }).collect();
        let settings = threads.map(|text| ("OMP_NUM_THREADS".to_owned(), text.to_owned())).into_iter().collect();
        let openmp = if runtime { vec!["libgomp.so.1".to_owned()] } else { Vec::new() };
        Process { threads: threads_of, openmp, settings, allowed: "0-1".parse().unwrap(), ..Process::default() }
    }

    fn numbers(mut process: Process) -> Vec<Option<u32>> {
        number_threads(&mut process);
        process.threads.iter().map(|thread| thread.openmp).collect()
    }

    #[test]
    fn threads_are_numbered_by_creation() {
        assert_eq!(numbers(process(&["a", "a", "cuda", "a"], true, Some("4,2"))), [Some(0), Some(1), None, Some(2)]);
        assert_eq!(numbers(process(&["a", "a", "a"], true, None)), [Some(0), Some(1), None], "one per CPU");
        assert_eq!(numbers(process(&["a", "a"], false, Some("4"))), [None, None]);
        assert_eq!(numbers(process(&[], true, None)), []);
    }

    #[test]
    fn libraries() {
        assert_eq!(runtime_of("/usr/lib/x86_64-linux-gnu/libgomp.so.1.0.0"), Some("libgomp.so.1.0.0"));
        assert_eq!(runtime_of("/usr/lib/llvm-14/lib/libomp-14.so.5"), Some("libomp-14.so.5"));
        assert_eq!(runtime_of("/usr/lib/libompi.so"), None);
        assert_eq!(has_pool_of("/usr/lib/libopenblas64p-r0.3.21.so"), Some(Pool::OpenBlas));
        assert_eq!(has_pool_of("/lib/libc.so.6"), None);
    }
}
