//! Options of `nearfar run`, and the words that they take.

use clap::builder::{OsStringValueParser, TypedValueParser};
use nearfar_core::faults::Faults;
use nearfar_core::mode::Mode;
use nearfar_core::placement::Choice;
use nearfar_core::policy::fetch_grain::Grain;
use nearfar_core::share::Claim;
use nearfar_core::tier::{FarSpec, NearSpec};
use nearfar_core::units::Bytes;
use nearfar_sys::kernel::{DENY_NAMES, Denied};
use std::ffi::OsString;
use std::path::PathBuf;

/// `nearfar run`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_long_help = RUN_NOTES)]
pub struct RunArgs {
    /// Fast memory that the program and its children may use together: 800M, 16GiB or 50% (of this machine's memory); or NUMA
    /// nodes: node:1, node:1,3:12G. Without it: the fast memory of a machine with two kinds, otherwise 50%
    #[arg(long, value_name = "SPEC", allow_hyphen_values = true)]
    pub near: Option<NearSpec>,

    /// Where the rest goes: a directory on a fast disk, emu:bw=4G,lat=10us (memory made slow, for trials), or NUMA nodes: node:0.
    /// Without it: the other nodes when near is nodes, otherwise /var/tmp
    #[arg(long, value_name = "SPEC", value_parser = far_parser())]
    pub far: Option<FarSpec>,

    /// The most of far that the program and its children may take together: 100G. When they have it, allocations fail, as on a full disk; each MPI rank is counted by itself
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    pub far_max: Option<Bytes>,

    /// How near is used. cache: everything lives in far, near is a cache that the program does not see; flat: --place decides for
    /// each object; hybrid=0.25: this share of near is cache. Without it: flat between nodes and with --place, otherwise cache
    #[arg(long, value_name = "MODE")]
    pub mode: Option<Mode>,

    /// In flat and hybrid mode, which objects go near: all; size:1M..5M,10M.. (by their size); plan:FILE (by where they are
    /// allocated); calls (only what the program places itself)
    #[arg(long, value_name = "POLICY", allow_hyphen_values = true)]
    pub place: Option<Choice>,

    /// With --place plan: run even when no rule of the plan can match anything in this program
    #[arg(long, requires = "place")]
    pub force: bool,

    /// In flat and hybrid mode, when near is full: spill to far, fail (malloc returns NULL), or wait until there is room. Without it: spill
    #[arg(long, value_name = "HOW")]
    pub full: Option<Full>,

    /// Spread pages over all nodes of near, of far or of both in turn, instead of using the nearest
    #[arg(long, value_name = "WHICH")]
    pub interleave: Option<Interleave>,

    /// With --interleave: by the kernel's weights of the nodes; reports where these are not in proportion to the nodes' bandwidths, as
    /// --machine has measured them or the firmware claims, and how root sets them
    #[arg(long, requires = "interleave")]
    pub weighted: bool,

    /// This machine as "nearfar probe -o FILE" measured it: for --weighted, and for what moves are worth in cache mode between nodes
    #[arg(long, value_name = "FILE")]
    pub machine: Option<PathBuf>,

    /// In cache mode between nodes, who moves hot pages to near and cold ones to far. auto: the kernel where its own tiering is on,
    /// otherwise nearfar, if it may see which pages are visited; force: nearfar in any case; off: nobody (see docs/explanation/numa-cache.md)
    #[arg(long, value_name = "WHO", default_value = "auto")]
    pub migrate: Migration,

    /// In cache mode between nodes: the most that nearfar moves, in bytes per second
    #[arg(long, value_name = "SIZE", default_value = DEFAULT_MIGRATE_RATE, allow_hyphen_values = true)]
    pub migrate_rate: Bytes,

    /// In cache mode between nodes: the most that looking for visited pages may take, in per cent of one CPU
    #[arg(long, value_name = "PERCENT", default_value_t = DEFAULT_MIGRATE_CPU, allow_hyphen_values = true)]
    pub migrate_cpu: f64,

    /// Run on these CPUs only: 0-3,8 or those of nodes: node:0
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    pub cpus: Option<String>,

    /// Smallest allocation that gets a range of pages of its own; smaller ones share pages
    #[arg(long, value_name = "SIZE", default_value = "1M", allow_hyphen_values = true)]
    pub min_size: Bytes,

    /// What of the heap can be paged: all of it, or only allocations of at least --min-size
    #[arg(long, value_name = "WHAT", default_value = "all")]
    pub heap: Heap,

    /// When far space is reserved: lazy, for what is touched; strict, for all that is allocated, which fails when there is none
    #[arg(long, value_name = "HOW", default_value = "lazy")]
    pub commit: Commit,

    /// Under mpirun or srun: this rank's share of --near, which is that of the node, for all its ranks together. fair: an even
    /// part; 40%, 1/4 or 2G: that much; all: what the others leave; off: every rank has all of --near for itself (docs/how-to/slurm-and-mpirun.md)
    #[arg(long, value_name = "SHARE", default_value = "fair", allow_hyphen_values = true)]
    pub share: Claim,

    /// Write counters and derived figures of the run to this file, as JSON (see docs/reference/formats.md). With many ranks the last one
    /// writes it for all of its node; %h in the name is the node, %r the rank, which then writes a file of its own
    #[arg(long, value_name = "FILE")]
    pub stats: Option<PathBuf>,

    /// Record which pages the program visits to this file, for "nearfar bench policies"; slow, same results (docs/explanation/policies.md)
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,

    /// How much is read around a page that is needed: auto, or always 4K, 64K, 256K or 2M (any power of two), and nothing ahead
    #[arg(long, value_name = "GRAIN", default_value = "auto", allow_hyphen_values = true)]
    pub grain: Grain,

    /// With --trace: how much each process has in view at a time; visits to what is in view are not seen
    #[arg(long, value_name = "SIZE", default_value = "8M", requires = "trace")]
    pub trace_window: Bytes,

    /// Show one status line on standard error while the program runs
    #[arg(long)]
    pub live: bool,

    /// When a thread waits and the pager has taken no turn for 10 s: say so and wait, or stop the program (status 86)
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = OnStall::Wait)]
    pub on_stall: OnStall,

    /// Print nothing but errors
    #[arg(short, long)]
    pub quiet: bool,

    #[command(flatten)]
    pub kernel: KernelArgs,

    /// Encrypt what is written to far (AES-256-XTS); the key is random and only in memory
    #[arg(long)]
    pub encrypt: bool,

    /// Compare every byte that comes back from far with a checksum of what was written. Without it: short reads, and an
    /// eighth of the pages of those of 32 KiB and more (docs/reference/promises-and-limits.md)
    #[arg(long)]
    pub check: bool,

    /// Faults of far to be made on purpose, for tests (see CONTRIBUTING.md)
    #[arg(long, value_name = "LIST", default_value = "", hide = true, env = "NEARFAR_FAULTS")]
    pub faults: Faults,

    /// The program and its arguments
    #[arg(
        value_name = "PROGRAM",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_hint = clap::ValueHint::CommandWithArguments
    )]
    pub program: Vec<OsString>,
}

/// What of the kernel `nearfar run` and `nearfar doctor` use.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct KernelArgs {
    /// Do without these facilities of the kernel, to try fallbacks: move, uffd, io_uring, odirect, thp, awake,
    /// kernel-faults
    #[arg(
        long,
        value_name = "LIST",
        default_value = "",
        hide_default_value = true,
        value_parser = denied,
        env = "NEARFAR_DENY",
        hide_env_values = true
    )]
    pub deny: Denied,
}

/// The facilities named in a `--deny` list.
fn denied(list: &str) -> Result<Denied, String> {
    Denied::parse(list).map_err(|word| {
        let known: Vec<_> = DENY_NAMES.iter().map(|(name, _)| *name).collect();
        format!("\"{word}\" is not a facility; write one or more of {}", known.join(", "))
    })
}

/// How `--far` is understood.
pub fn far_parser() -> impl TypedValueParser<Value = FarSpec> {
    OsStringValueParser::new().try_map(|text| match text.to_str() {
        Some(text) => text.parse::<FarSpec>().map_err(|error| error.to_string()),
        None => Err("the path is not UTF-8; name another directory".to_owned()),
    })
}

/// What moving pages may take when nobody says: bytes per second, and per cent of one CPU.
pub const DEFAULT_MIGRATE_RATE: &str = "256M";
/// See [`DEFAULT_MIGRATE_RATE`].
pub const DEFAULT_MIGRATE_CPU: f64 = 1.0;

/// Where far is when nobody says: unlike /tmp it is a disk everywhere.
pub const DEFAULT_FAR: &str = "/var/tmp";

const RUN_NOTES: &str = "\
K, M, G and T are powers of 1024, with or without iB behind them.

The program's standard output is untouched; the summary goes to standard
error. The exit status is the program's own, and a program that dies of a
signal makes nearfar die of the same signal. Otherwise:

    2  the request was refused (bad option, missing program or directory,
       rights); nothing was started or created
   86  nearfar stopped the program because its data could not be kept right
       (I/O error, corrupt block, far full)
  125  nearfar itself failed
  126  the program could not be executed
  127  the program or its interpreter vanished before it was executed

On a machine with two kinds of memory (HBM and DDR, DDR and CXL) a plain
\"nearfar run -- PROGRAM\" puts everything into the faster one as long as it has
room, and says so. docs/how-to/numa-nodes.md explains nodes, modes and placement.

Examples:
  nearfar run --near 800M --far /scratch -- python3 job.py
  nearfar run --near node:1 --far node:0 --place size:1M..5M -- ./solver
  nearfar run --cpus node:0 --near node:0 --far node:1 -- ./solver
      (two sockets: the one it runs on stands for HBM, the other for DDR)";

/// Which part of the heap is managed.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heap {
    /// Every byte
    All,
    /// Only large allocations
    Large,
}

/// When far space is reserved.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commit {
    /// For what is touched, in steps ahead of need
    Lazy,
    /// For all that may be written, at allocation
    Strict,
}

/// Who moves pages in cache mode between nodes.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Migration {
    /// The kernel where its tiering is on, otherwise nearfar
    Auto,
    /// Nearfar, even where the kernel's tiering is on
    Force,
    /// Nobody: memory stays where it was touched first
    Off,
}

/// What happens when near is full.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// Further objects go far
    Spill,
    /// Allocations fail
    Fail,
    /// Allocations wait
    Wait,
}

/// Nodes of which tier take pages in turn.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interleave {
    /// Those of near
    Near,
    /// Those of far
    Far,
    /// Those of near in turn, and those of far
    Both,
}

/// What becomes of a program that is stuck.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnStall {
    /// It is reported, and may go on.
    Wait,
    /// All processes of the job are ended.
    Stop,
}

#[cfg(test)]
impl RunArgs {
    /// `nearfar run OPTIONS ls`, parsed.
    pub fn typed(options: &[&str]) -> Self {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            run: RunArgs,
        }
        let line = [&["run"], options, &["ls"]].concat();
        <Line as clap::Parser>::try_parse_from(line).expect("options").run
    }
}
