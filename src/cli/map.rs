//! Options of `nearfar map`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// `nearfar map`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_long_help = MAP_NOTES)]
pub struct MapArgs {
    /// Report after this many seconds; a program is otherwise watched until it ends, a process for 1 second
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_hyphen_values = true)]
    pub after: Option<Duration>,

    /// Write the report to this file, not to standard error (for a program) or standard output (for a process)
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Report as JSON (see docs/reference/map.md)
    #[arg(long, conflicts_with = "xthi")]
    pub json: bool,

    /// Report one line per thread, as xthi prints them
    #[arg(long)]
    pub xthi: bool,

    /// The number of a process, or a program and its arguments; either with all that it starts
    #[arg(value_name = "PID | PROGRAM", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub what: Vec<OsString>,
}

const MAP_NOTES: &str = "\
The program needs no changes: it is observed from outside, every 10 ms at
first and less often later, at about 1 % of one CPU at most. Threads that live
shorter than the time between two looks may be missing.

OpenMP thread numbers are inferred from the order in which threads were
created; MPI ranks are read from the environment. Warnings name the variables
to set (OMP_NUM_THREADS, OMP_PROC_BIND, OMP_PLACES, ...).

The exit status is the program's own, as with \"nearfar run\"; 2 when the
request was refused. For a process it is 0.

Examples:
  nearfar map -- env OMP_NUM_THREADS=4 ./solver
  nearfar map -o map.txt -- mpirun -n 4 ./solver
  nearfar map 4711";

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.strip_suffix('s').unwrap_or(text).parse().ok().filter(|seconds: &f64| *seconds > 0.0);
    let duration = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    duration.ok_or_else(|| format!("{text} is not a time; write seconds, such as 2.5"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        assert_eq!(seconds("2.5").ok(), Some(Duration::from_millis(2500)));
        assert_eq!(seconds("3s").ok(), Some(Duration::from_secs(3)));
        for bad in ["0", "-1", "x", "", "inf", "nan", "1e300"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }
}
