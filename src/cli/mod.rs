//! What was typed: the table of options from which parsing, `--help` and the man pages derive. Nothing is checked here.

pub mod values;

use std::ffi::OsString;
use std::path::PathBuf;
pub use values::{Commit, Full, Heap, Interleave, Migration, OnStall};

/// `nearfar run`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_long_help = RUN_NOTES)]
pub struct RunArgs {
    /// Fast memory that the program and its children may use together: 800M, 16GiB or 50% (of this machine's memory); or NUMA
    /// nodes: node:1, node:1,3:12G. Without it: the fast memory of a machine with two kinds, otherwise 50%
    #[arg(long, value_name = "SPEC", allow_hyphen_values = true)]
    pub near: Option<String>,

    /// Where the rest goes: a directory on a fast disk, emu:bw=4G,lat=10us (memory made slow, for trials), or NUMA nodes: node:0.
    /// Without it: the other nodes when near is nodes, otherwise /var/tmp
    #[arg(long, value_name = "SPEC")]
    pub far: Option<OsString>,

    /// How near is used. cache: everything lives in far, near is a cache that the program does not see; flat: --place decides for
    /// each object; hybrid=0.25: this share of near is cache. Without it: flat between nodes and with --place, otherwise cache
    #[arg(long, value_name = "MODE")]
    pub mode: Option<String>,

    /// In flat and hybrid mode, which objects go near: all; size:1M..5M,10M.. (by their size); plan:FILE (by where they are
    /// allocated); calls (only what the program places itself)
    #[arg(long, value_name = "POLICY", allow_hyphen_values = true)]
    pub place: Option<String>,

    /// With --place plan: run even when no rule of the plan can fit anything of this program
    #[arg(long, requires = "place")]
    pub force: bool,

    /// In flat and hybrid mode, when near is full: spill to far, fail (malloc returns NULL), or wait until there is room. Without it: spill
    #[arg(long, value_name = "HOW")]
    pub full: Option<Full>,

    /// Spread pages over all nodes of near, of far or of both in turn, instead of using the nearest
    #[arg(long, value_name = "WHICH")]
    pub interleave: Option<Interleave>,

    /// With --interleave: in proportion to the nodes' bandwidths, as --machine has measured them or the firmware claims
    #[arg(long, requires = "interleave")]
    pub weighted: bool,

    /// This machine as "nearfar probe -o FILE" measured it: for --weighted, and for what moves are worth in cache mode between nodes
    #[arg(long, value_name = "FILE")]
    pub machine: Option<PathBuf>,

    /// In cache mode between nodes, who moves hot pages to near and cold ones to far. auto: the kernel where its own tiering is on,
    /// otherwise nearfar, if it may see which pages are visited; force: nearfar in any case; off: nobody (see docs/numa-cache.md)
    #[arg(long, value_name = "WHO", default_value = "auto")]
    pub migrate: Migration,

    /// In cache mode between nodes: bytes per second that nearfar moves at most
    #[arg(long, value_name = "SIZE", default_value = DEFAULT_MIGRATE_RATE, allow_hyphen_values = true)]
    pub migrate_rate: String,

    /// In cache mode between nodes: per cent of one CPU that looking for visited pages may take
    #[arg(long, value_name = "PERCENT", default_value_t = DEFAULT_MIGRATE_CPU, allow_hyphen_values = true)]
    pub migrate_cpu: f64,

    /// Run on these CPUs only: 0-3,8 or those of nodes: node:0
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    pub cpus: Option<String>,

    /// Smallest allocation that gets a range of pages of its own; smaller ones share pages
    #[arg(long, value_name = "SIZE", default_value = "1M", allow_hyphen_values = true)]
    pub min_size: String,

    /// What of the heap can be paged: all of it, or only allocations of at least --min-size
    #[arg(long, value_name = "WHAT", default_value = "all")]
    pub heap: Heap,

    /// When far space is secured: lazy for what is touched; strict for all that is allocated, which fails when there is none
    #[arg(long, value_name = "HOW", default_value = "lazy")]
    pub commit: Commit,

    /// Under mpirun or srun: this rank's share of --near, which is that of the node, for all its ranks together. fair: an even
    /// part; 40%, 1/4 or 2G: so much; all: what the others leave; off: every rank has all of --near for itself (docs/ranks.md)
    #[arg(long, value_name = "SHARE", default_value = "fair", allow_hyphen_values = true)]
    pub share: String,

    /// Write counters and derived figures of the run to this file, as JSON (see docs/formats.md). Of many ranks the last one
    /// writes it for all of its node; %h in the name is the node, %r the rank, which then writes a file of its own
    #[arg(long, value_name = "FILE")]
    pub stats: Option<PathBuf>,

    /// Record which pages the program visits to this file, for "nearfar bench policies"; slow, same results (docs/policies.md)
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,

    /// How much is brought around a page that is asked for: auto, or always 4K, 64K, 256K or 2M (any power of two), and nothing ahead
    #[arg(long, value_name = "GRAIN", default_value = "auto", allow_hyphen_values = true)]
    pub grain: String,

    /// With --trace: how much each process has in view at a time; visits to what is in view are not seen
    #[arg(long, value_name = "SIZE", default_value = "8M", requires = "trace")]
    pub trace_window: String,

    /// Show one status line on standard error while the program runs
    #[arg(long)]
    pub live: bool,

    /// When a thread waits and the pager has taken no turn for 10 s: say so and wait, or stop the program (status 86)
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = OnStall::Wait)]
    pub on_stall: OnStall,

    /// Print nothing but errors
    #[arg(short, long)]
    pub quiet: bool,

    /// Do without these facilities of the kernel, to try fallbacks: move, uffd, io_uring, odirect, thp, awake
    #[arg(
        long,
        value_name = "LIST",
        default_value = "",
        hide_default_value = true,
        env = "NEARFAR_DENY",
        hide_env_values = true
    )]
    pub deny: String,

    /// Encrypt what is written to far (AES-256-XTS); the key is random and only in memory
    #[arg(long)]
    pub encrypt: bool,

    /// Compare every byte that comes back from far with a checksum of what was written. Without it: short reads, and an
    /// eighth of the pages of those of 32 KiB and more (docs/limits.md)
    #[arg(long)]
    pub check: bool,

    /// Faults of far to be made on purpose, for tests (see CONTRIBUTING.md)
    #[arg(long, value_name = "LIST", default_value = "", hide = true, env = "NEARFAR_FAULTS")]
    pub faults: String,

    /// The program and its arguments
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub program: Vec<OsString>,
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
room, and says so. docs/placement.md tells about nodes, modes and placement.

Examples:
  nearfar run --near 800M --far /scratch -- python3 job.py
  nearfar run --near node:1 --far node:0 --place size:1M..5M -- ./solver
  nearfar run --cpus node:0 --near node:0 --far node:1 -- ./solver
      (two sockets: the own one stands for HBM, the other one for DDR)";

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

/// `nearfar doctor`.
#[derive(clap::Args, Clone, Debug)]
pub struct DoctorArgs {
    /// The directory that far would use
    #[arg(long, value_name = "DIR", default_value = DEFAULT_FAR)]
    pub far: PathBuf,

    /// Do as if these facilities were missing: move, uffd, io_uring, odirect, thp, awake
    #[arg(
        long,
        value_name = "LIST",
        default_value = "",
        hide_default_value = true,
        env = "NEARFAR_DENY",
        hide_env_values = true
    )]
    pub deny: String,
}

/// `nearfar profile`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_long_help = PROFILE_NOTES)]
pub struct ProfileArgs {
    /// Where what is seen goes. Of several MPI ranks each has a file of its own, with its number before the extension. Without it:
    /// the program's name with .nfprof, in this directory
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Smallest block of memory that is an object of its own
    #[arg(long, value_name = "SIZE", default_value = "4K", allow_hyphen_values = true)]
    pub least: String,

    /// Share of the program's time that observing may take [default: 2%]
    #[arg(long, value_name = "PERCENT", allow_hyphen_values = true, conflicts_with = "precise")]
    pub budget: Option<String>,

    /// Look more often: narrower intervals, for up to 15 % of the run time. A budget of 7%, and more memory samples where the processor
    /// takes them
    #[arg(long)]
    pub precise: bool,

    /// Size that the file may have; when it comes near, small objects are told of together
    #[arg(long, value_name = "SIZE", default_value = "64M", allow_hyphen_values = true)]
    pub limit: String,

    /// Write what the profile says to this file as well, as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Print no table
    #[arg(short, long)]
    pub quiet: bool,

    /// What random choices start from; 0: the clock
    #[arg(long, value_name = "N", default_value_t = 0, hide = true)]
    pub seed: u64,

    /// Do without these means of observing, to try what happens then: faults, clock, script, samples, awake
    #[arg(long, value_name = "LIST", default_value = "", hide = true, env = "NEARFAR_PROFILE_DENY")]
    pub deny: String,

    /// The program and its arguments
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub program: Vec<OsString>,
}

const PROFILE_NOTES: &str = "\
The program runs as it is; all that it starts is observed as well. Random pages
of its memory are taken out of its view for a moment, so that the next touch is
seen: from how soon that comes follows how much each object is read and written
beyond the caches. What comes out is an estimate, with an interval that holds
the truth in 9 of 10 cases.

The program's standard output is untouched; the table goes to standard error.
The exit status is the program's own, as with \"nearfar run\"; 2 when the
request was refused.

Examples:
  nearfar profile -o app.nfprof -- ./solver input.dat
  nearfar report app.nfprof                       (the table again, and a page)
  nearfar advise app.nfprof --near 16G";

/// `nearfar sensitivity`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_long_help = SENSITIVITY_NOTES)]
pub struct SensitivityArgs {
    /// Runs under each condition, at least 3; one more comes first and is not counted
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub runs: usize,

    /// Drop what the program prints in its first run as well
    #[arg(long)]
    pub mute: bool,

    /// Save the judgement and every time measured to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// One run of everything, on tiny data: shows that all parts work, not what limits the program
    #[arg(long, hide = true)]
    pub smoke: bool,

    /// The program and its arguments
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub program: Vec<OsString>,
}

const SENSITIVITY_NOTES: &str = "\
The program runs several times: as it is, on half of the cores of each
memory node, there beside a hog of memory bandwidth and beside one that
takes processor time alone, and with a lower clock where root may set it.
It must do the same work every time, needs no standard input, and must end
with status 0. Its output is passed on in the first run and dropped later.

Each change is made to two kernels as well, triad (memory alone) and
arithmetic in registers. Where the program stands between them is the share
of its time that follows memory.

Exit status: 0 when all was measured, 1 when the program failed, 2 for a
request that cannot be carried out.

Example:
  nearfar sensitivity -- ./solver input.dat";
/// `nearfar report`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_long_help = REPORT_NOTES)]
pub struct ReportArgs {
    /// Machine descriptions of "nearfar probe -o", run files of "nearfar run --stats", profiles, and what "nearfar advise --json"
    /// wrote; several machines are put side by side
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,

    /// Where the page goes; "-" is standard output. Without it: beside the first FILE, with .html for its extension
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Put a published machine beside the first one, in tables and on the roofline (see "nearfar probe --list-machines")
    #[arg(long, value_name = "NAME")]
    pub compare: Option<String>,

    /// Write every chart to a file of its own in this directory as well, as SVG
    #[arg(long, value_name = "DIR")]
    pub svg: Option<PathBuf>,
}

const REPORT_NOTES: &str = "\
The page is one file that needs nothing else: charts are drawn inside it, there
are no scripts. It follows the reader's light or dark scheme and can be printed.

The exit status is 2 when a file cannot be used: unreadable, not of nearfar, or
of a newer format; nothing is written then.

Example:
  nearfar probe -o node.json && nearfar report node.json -o node.html";

/// `nearfar man`.
#[derive(clap::Args, Clone, Debug)]
pub struct ManArgs {
    /// Where the pages are written
    pub dir: PathBuf,
}

/// `nearfar advise`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_long_help = ADVISE_NOTES)]
pub struct AdviseArgs {
    /// Profiles that "nearfar profile" wrote; those of several ranks are put together
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,

    /// How much near memory there is: 16G, or 50% (of this machine's memory)
    #[arg(long, value_name = "SIZE", required = true, allow_hyphen_values = true)]
    pub near: String,

    /// The machine to predict for: a published one (see "nearfar probe --list-machines"), or a node.json of "nearfar probe".
    /// Without it, or with "this": this machine's memory, over what --far names
    #[arg(long, value_name = "NAME | FILE")]
    pub machine: Option<String>,

    /// What is behind near: emu:bw=4G,lat=10us or a directory, whose speed is measured. Without it: the machine's far memory
    #[arg(long, value_name = "SPEC")]
    pub far: Option<OsString>,

    /// The machine that the profile was taken on, as a node.json or a published one, when it is another one than --machine
    #[arg(long, value_name = "NAME | FILE")]
    pub home: Option<String>,

    /// Write the plan to this file, for "nearfar run --place plan:FILE"; a person can read and edit it
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Write everything that is said to this file, as JSON; "nearfar report" makes a page of it
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Draw run time against bytes of near to this file, as SVG
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,

    /// Of a group that does not fit, some objects may be near as well; what is allocated first is near then
    #[arg(long)]
    pub fractions: bool,

    /// Run the program with everything far, by the plan and with everything near, and print what was measured beside what was
    /// predicted, in total and by routine. Needs --far. The program is the one behind --, or that of the profile
    #[arg(long)]
    pub verify: bool,

    /// With --verify: rounds of runs
    #[arg(long, value_name = "N", default_value_t = 2, requires = "verify")]
    pub runs: usize,

    /// With --verify: also runs with each object of the plan near alone
    #[arg(long, requires = "verify")]
    pub each: bool,

    /// With --verify: also runs with every set that fits of the six objects that gain most alone, then the plan and the fastest again by turns
    #[arg(long, requires = "verify")]
    pub sets: bool,

    /// With --verify: the program and its arguments
    #[arg(value_name = "PROGRAM", last = true, requires = "verify")]
    pub program: Vec<OsString>,
}

const ADVISE_NOTES: &str = "\
Nothing is run without --verify. What is predicted rests on the profile and
on the machine's figures: intervals hold what is not known of both in 9 of 10
cases. docs/advise.md tells how.

Exit status: 0; 1 when a program failed with --verify; 2 when the request was
refused, such as for a file that is no profile, or one that saw nothing.

Examples:
  nearfar advise app.nfprof --near 16G --machine knl-flat -o plan.toml
  nearfar advise app.nfprof --near 2G --far emu:bw=4G,lat=10us --verify
  nearfar run --near 2G --far /scratch --place plan:plan.toml -- ./app";
