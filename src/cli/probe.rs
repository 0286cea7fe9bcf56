//! Options of `nearfar probe`, and the words that they take.

use std::path::PathBuf;

/// Measure this machine's memories, processors and far tiers; works without root
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, after_long_help = NOTES)]
pub struct ProbeArgs {
    #[command(subcommand)]
    pub action: Option<Action>,

    /// Write what was found to this file, as JSON (see docs/reference/formats.md); "-" for standard output, without the tables
    #[arg(short, long, value_name = "FILE", default_value = "node.json")]
    pub output: PathBuf,

    /// Fewer rows and repetitions: under ten seconds
    #[arg(long)]
    pub quick: bool,

    /// A far tier to measure as well: a directory on the disk, a block device (which is only read), or emu:bw=4G,lat=10us;
    /// may be given several times [default: /var/tmp]
    #[arg(long, value_name = "SPEC")]
    pub far: Vec<String>,

    /// Do not measure any far tier
    #[arg(long, conflicts_with = "far")]
    pub no_far: bool,

    /// Measure only these parts
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PART")]
    pub only: Vec<Part>,

    /// Compare with a published machine (see --list-machines) or with another node.json
    #[arg(long, value_name = "NAME")]
    pub compare: Option<String>,

    /// List the published machines that are known, and where their figures come from
    #[arg(long)]
    pub list_machines: bool,

    /// Describe the machine of this capture, or of this copy of /proc and /sys, instead of this one; nothing is measured
    #[arg(long, value_name = "PATH")]
    pub from: Option<PathBuf>,

    /// Write what /proc and /sys say of this machine to this file, to be sent with a report or for --from
    #[arg(long, value_name = "FILE")]
    pub capture: Option<PathBuf>,

    /// Print nothing but errors and what is invalid
    #[arg(short = 's', long = "quiet")]
    pub quiet: bool,
}

#[derive(Debug, clap::Subcommand)]
pub enum Action {
    /// Compare two node.json, row by row: finds slow nodes. Exits with 1 when the second is slower somewhere
    Diff {
        /// The machine to compare with
        a: PathBuf,
        /// The machine in question
        b: PathBuf,
    },
}

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// Bandwidth of memories and caches, and how it grows with threads
    Bandwidth,
    /// Latency of memories and caches, idle and under load
    Latency,
    /// Floating-point roofs
    Compute,
    /// What starting and joining threads costs
    Threading,
    /// Far tiers
    Far,
    /// Energy, where the processor's counters can be read
    Energy,
    /// Messages between ranks on this machine
    Mpi,
}

const NOTES: &str = "\
Every figure is the median of several runs with its 95 % interval. Results are
checked: a kernel that does not do its work, memory that is not where it should
be, or arrays that fit a cache make a row INVALID, and the exit status 1. On a
busy machine figures are marked NOISY. docs/reference/probe.md explains every number.

Example:
  nearfar probe --quick --far /scratch -o node.json
  nearfar report node.json -o node.html";
