//! What every run needs of its surroundings: a /proc that shows its own processes, and room for the shared memory of the job.

use nearfar_core::units::Bytes;
use nearfar_sys::rlimit::{Limit, limit};
use nearfar_tiers::job;
use std::path::Path;

/// What is missing, and what mends it; `None` where nothing is.
pub fn problem() -> Option<String> {
    let shown = std::fs::read_link("/proc/self").ok();
    problem_of(shown.as_deref(), std::process::id(), limit(Limit::FileSize))
}

/// `shown`: what /proc says of the process that asks, which has the number `own`. `file`: most bytes that a file may have.
fn problem_of(shown: Option<&Path>, own: u32, file: Option<u64>) -> Option<String> {
    let Some(shown) = shown else {
        return Some("there is no /proc here: mount it (\"mount -t proc proc /proc\")".to_owned());
    };
    if shown != Path::new(&own.to_string()) {
        // Its numbers are those of other processes: the job would be looked for in one of them.
        return Some(
            "/proc is that of another PID namespace, where processes have other numbers: mount this one's (\"unshare --pid --fork --mount-proc\")"
                .to_owned(),
        );
    }
    let needed = job::segment_len() as u64;
    // The kernel would end the process (SIGXFSZ).
    file.filter(|&most| most < needed).map(|most| {
        format!(
            "files may have {} at most, and the shared memory of a job, a file in memory, has {}: raise it (\"ulimit -f unlimited\")",
            Bytes(most),
            Bytes(needed)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named() {
        let problem = |shown: Option<&str>, file| problem_of(shown.map(Path::new), 7, file).unwrap_or_default();
        assert_eq!(problem(Some("7"), None), "");
        assert_eq!(problem(Some("7"), Some(1 << 30)), "");
        assert!(problem(None, None).contains("mount -t proc"));
        assert!(problem(Some("4711"), None).contains("another PID namespace"));
        assert!(
            problem(Some("7"), Some(1 << 20)).contains("files may have 1.0 MiB at most"),
            "{}",
            problem(Some("7"), Some(1 << 20))
        );
    }
}
