//! Options of `nearfar map`.

use std::ffi::OsString;
use std::path::PathBuf;

/// `nearfar map`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_long_help = MAP_NOTES)]
pub struct MapArgs {
    /// Report after this many seconds; a program is otherwise watched until it ends, a process for 1 second
    #[arg(long, value_name = "SECONDS", allow_hyphen_values = true)]
    pub after: Option<String>,

    /// Write the report to this file, not to standard error (for a program) or standard output (for a process)
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Report as JSON (see docs/map.md)
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
The program needs no changes: it is looked at from outside, every 10 ms at
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
