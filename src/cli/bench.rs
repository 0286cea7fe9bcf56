//! Options of `nearfar bench` and of its parts, and the words that they take.

use super::run::far_parser;
use nearfar_core::tier::FarSpec;
use nearfar_core::units::{BytesPerSec, Nanos};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Measure nearfar beside all-DRAM, kernel swap and mmap of a file, on this machine's own disk
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct BenchArgs {
    #[command(subcommand)]
    pub apart: Option<BenchCommand>,
    /// What to measure [default: everything but grain and apps]
    #[arg(value_enum, value_name = "SUITE")]
    pub suites: Vec<Suite>,
    /// Near memory, as an amount or a share of the data [default: a third of the data]
    #[arg(long, value_name = "SIZE")]
    pub near: Option<String>,
    /// Data of the programs; less when memory or disk is short [default: 2400M, with --quick 720M]
    #[arg(long, value_name = "SIZE")]
    pub data: Option<String>,
    /// Directory of the far tier, of the swap file and of the mapped file
    #[arg(long, value_name = "DIR", default_value = "/var/tmp")]
    pub far: PathBuf,
    /// Runs of each system [default: 3, with --quick 1; kernel swap once or twice]
    #[arg(long, value_name = "N")]
    pub runs: Option<usize>,
    /// Threads of each workload [default: all CPUs]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// One run of everything on less data: a first impression in a few minutes, without spread
    #[arg(long, conflicts_with = "smoke")]
    pub quick: bool,
    /// One tiny run of everything: shows that all parts work, not how fast they are
    #[arg(long)]
    pub smoke: bool,
    /// Only workloads with this text in their title, of the suites that are named or of all, grain and apps included
    #[arg(long, value_name = "TEXT")]
    pub only: Option<String>,
    /// For apps: install what is missing first: Python packages into a directory of their own (~/.cache/nearfar/apps, or $NEARFAR_APPS; about
    /// 1.8 GB), and as root on Debian or Ubuntu programs with apt-get; others are told the command
    #[arg(long)]
    pub install: bool,
    /// For apps: list them, what each needs and what is missing; measure nothing
    #[arg(long, conflicts_with = "install")]
    pub list: bool,
    /// Save the results here [default: bench-results/bench-TIME.json]
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// What has options of its own.
#[derive(Debug, clap::Subcommand)]
pub enum BenchCommand {
    Suite(Box<SuiteArgs>),
    Modes(Box<ModesArgs>),
    Policies(PoliciesArgs),
    Replay(ReplayArgs),
    Memkind(MemkindArgs),
    Profile(ProfileArgs),
}

/// A group of cases that answers one question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Suite {
    /// Sweeps over data larger than near: is the device's bandwidth used?
    Triad,
    /// Sweeps by strides, from the end, by several streams and by columns: does prefetch follow?
    Sweeps,
    /// 8-byte updates at random: is the device's random-read rate used?
    Random,
    /// Dependent loads: what does one miss cost?
    Chase,
    /// Skewed reads and updates of small objects in a hash table: does near hold what is popular?
    Zipf,
    /// A program tiled for near: is paging nearly free there?
    Gemm,
    /// Data that fits in near: does nearfar cost anything?
    Fits,
    /// Placement by size, of data that fit in near: do hooks and policy cost anything?
    Placed,
    /// Far that is emulated at an eighth of the bandwidth of DRAM: how much of all-DRAM is left, beside IMDT's published figures?
    Emu,
    /// Every fixed grain beside the learned one, on all kinds of workloads and on real programs: does learning cost anything? Left out by
    /// default, since it takes hours.
    Grain,
    /// Real programs (MKL, PARDISO, numpy, DuckDB, Polars, SQLite, Redis, PySCF, Quantum ESPRESSO, LAMMPS, GROMACS, Qiskit Aer; see
    /// --list) with near memory for a third of their data: how much of all-DRAM is left, and where did the time go? Left out by default.
    Apps,
    /// Single faults, without I/O and from the disk: what does the pager add to the device?
    Latency,
    /// A program that does nothing: what does starting under nearfar add?
    Startup,
    /// The pager's own tables, and one fault in an arena of 1, 4 and 16 times the size: does anything grow?
    Metadata,
}

/// The works of the literature, with 0.5 to 8 times the near memory that they get: speed as a share of all-DRAM, beside the bound, kernel
/// swap and mmap; and a page about it. Takes hours; can be interrupted
#[derive(Debug, clap::Args)]
#[command(after_long_help = SUITE_NOTES)]
pub struct SuiteArgs {
    /// A first look in five minutes: a work of each kind on less data, fewer points, one run of each
    #[arg(long)]
    pub quick: bool,
    /// Only these works, with commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Data by near, with commas [default: 0.5,1,1.5,2,3,4,8, with --quick 2,4]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub ratios: Vec<f64>,
    /// Numbers of threads, with commas [default: 1 and all CPUs, with --quick all]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub threads: Vec<usize>,
    /// What to compare all-DRAM with, with commas [default: disk,emulated,swap,mmap, with --quick disk,emulated,swap]
    #[arg(long, value_enum, value_name = "LIST", value_delimiter = ',')]
    pub systems: Vec<System>,
    /// Data of each work; less when memory or disk is short [default: 512M, with --quick 128M]
    #[arg(long, value_name = "SIZE")]
    pub data: Option<String>,
    /// Runs of each point [default: 3, with --quick 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub runs: Option<u64>,
    /// Longest seconds of one repetition, or six times those in all-DRAM where that is more; what takes longer is shown as "less than" [default: 10, with --quick 1.5]
    #[arg(long, value_name = "S", allow_hyphen_values = true)]
    pub seconds: Option<f64>,
    /// Directory of the far tier, of the swap file and of the mapped file
    #[arg(long, value_name = "DIR", default_value = "/var/tmp")]
    pub far: PathBuf,
    /// Save the results here; the page is written beside them [default: bench-results/suite-TIME.json]
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Go on with a suite that was interrupted: what it holds is not measured again
    #[arg(long, value_name = "FILE", conflicts_with_all = ["quick", "only", "ratios", "threads", "systems", "data", "runs", "seconds", "json"])]
    pub resume: Option<PathBuf>,
    /// Measure nothing: say what got better or worse from one suite to another, beyond the spread
    #[arg(long, num_args = 2, value_names = ["OLD", "NEW"], conflicts_with_all = ["resume", "quick", "only", "ratios", "threads", "systems", "data", "runs", "seconds", "json"])]
    pub compare: Vec<PathBuf>,
    /// Measure nothing: print this suite as a Markdown table, of the works, ratios and systems that --only, --ratios and --systems name
    #[arg(long, value_name = "FILE", conflicts_with_all = ["compare", "resume", "quick", "threads", "data", "runs", "seconds", "json"])]
    pub figures: Option<PathBuf>,
    /// With --figures: write a chart of it to this file
    #[arg(long, value_name = "FILE", requires = "figures")]
    pub svg: Option<PathBuf>,
    /// List the works
    #[arg(long)]
    pub list: bool,
    /// What modes run between, when it is not a budget and emulated far.
    #[arg(skip)]
    pub nodes: Option<Nodes>,
}

/// Two memories of this machine.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Nodes {
    /// As `nearfar run --near` takes it, without a limit: `node:1`.
    pub near: String,
    /// As `--far` takes it.
    pub far: String,
}

/// What a program runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum System {
    /// No limit: all data in DRAM.
    #[value(skip)]
    Dram,
    /// nearfar, far on this machine's disk
    Disk,
    /// nearfar, far emulated at an eighth of the bandwidth of DRAM
    Emulated,
    /// Memory limited by a cgroup, the rest in a swap file
    Swap,
    /// Data in a mapped file, page cache limited by a cgroup
    Mmap,
    /// nearfar in flat mode with nothing near but the least cache: far is emulated, or a node.
    #[value(skip)]
    AllFar,
    /// nearfar in cache mode, over the same far.
    #[value(skip)]
    Cache,
    /// nearfar in flat mode: near is filled in the order of allocation, and the rest goes far.
    #[value(skip)]
    FlatInOrder,
    /// nearfar in flat mode, by the plan of `nearfar advise` for this near.
    #[value(skip)]
    FlatByPlan,
    /// nearfar in hybrid mode: a quarter of near is cache, the rest is filled by the plan.
    #[value(skip)]
    Hybrid25,
    /// The same with half of near.
    #[value(skip)]
    Hybrid50,
    /// The same with three quarters of near.
    #[value(skip)]
    Hybrid75,
}

/// The modes of KNL and of nearfar on works of the suite: all near, all far, cache, flat by the order of allocation and by the advised plan,
/// hybrid; by routine where a work says its times
#[derive(Debug, clap::Args)]
#[command(after_long_help = MODES_NOTES)]
pub struct ModesArgs {
    /// Only these works of "nearfar bench suite", with commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "planewave,triad,spectral,hydro,md,join")]
    pub only: Vec<String>,
    /// Data by near, with commas
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "2")]
    pub ratios: Vec<f64>,
    /// Numbers of threads, with commas [default: all CPUs]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub threads: Vec<usize>,
    /// Data of each work [default: 512M, less when memory is short]
    #[arg(long, value_name = "SIZE")]
    pub data: Option<String>,
    /// Runs of each point
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), default_value_t = 3)]
    pub runs: u64,
    /// Longest seconds of one repetition, or six times those in all-DRAM where that is more
    #[arg(long, value_name = "S", allow_hyphen_values = true, default_value_t = 10.0)]
    pub seconds: f64,
    /// Between memories of this machine: the nodes of near, node:1; all-DRAM is then "all near". Without it: near is a budget of memory,
    /// far is emulated at an eighth of the bandwidth of DRAM
    #[arg(long, value_name = "NODES", requires = "far_node")]
    pub near_node: Option<String>,
    /// The nodes of far, node:0
    #[arg(long, value_name = "NODES", requires = "near_node")]
    pub far_node: Option<String>,
    /// Save the results here; the page and the plans are written beside them [default: bench-results/modes-TIME.json]
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Go on with results of an interrupted run
    #[arg(long, value_name = "FILE", conflicts_with_all = ["only", "ratios", "threads", "data", "runs", "seconds", "json", "near_node", "far_node"])]
    pub resume: Option<PathBuf>,
}

const MODES_NOTES: &str = "\
Each work is profiled once, and \"nearfar advise\" makes a plan for each near.
Results are those of \"nearfar bench suite\": \"nearfar report FILE\" writes the
page, and \"nearfar bench suite --compare OLD NEW\" compares two.

Examples:
  nearfar bench modes
  nearfar bench modes --only planewave --near-node node:1 --far-node node:0";

const SUITE_NOTES: &str = "\
Results are saved after every run; after Ctrl-C, go on with --resume FILE.
\"nearfar report FILE\" writes the page again.

The exit status is 1 when a program failed or computed wrong data in all-DRAM
or under nearfar; a missed target is a result, not a failure.

Examples:
  nearfar bench suite --quick
  nearfar bench suite --only triad,fft --ratios 2,4 --systems disk,swap";

/// Replay traces against every eviction policy and against Belady's bound: hits, and bytes read and written
#[derive(Debug, clap::Args)]
pub struct PoliciesArgs {
    /// Traces that "nearfar run --trace" recorded [default: built-in ones]
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub trace: Vec<PathBuf>,
    /// Sizes of near, with commas: amounts, or shares of all that a recorded trace visits
    /// [default: 256M for built-in traces, whose data are counted in nears; 25%,50%,75% for recorded ones]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub near: Vec<String>,
    /// What is evicted as one
    #[arg(long, value_name = "UNIT", default_value = "64K")]
    pub unit: UnitSize,
}

/// Sizes of a unit.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
pub enum UnitSize {
    /// Chunks, as where access is scattered
    #[value(name = "64K")]
    Chunk,
    /// Blocks, as where huge pages are in use
    #[value(name = "2M")]
    Block,
}

/// Replay recorded visits to pages with every rule of how much to bring around a page, with the times of a device: predicted run times
#[derive(Debug, clap::Args)]
pub struct ReplayArgs {
    /// A trace that "nearfar run --trace FILE --grain 4K" recorded
    #[arg(value_name = "FILE")]
    pub trace: PathBuf,
    /// Sizes of near, with commas: amounts, or shares of all that is visited
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "33%")]
    pub near: Vec<String>,
    /// Seconds that the program takes without nearfar
    #[arg(long, value_name = "SECONDS", allow_hyphen_values = true)]
    pub plain: f64,
    /// Time of one read of a page from an idle device
    #[arg(long, value_name = "TIME", default_value = "80us", allow_hyphen_values = true)]
    pub latency: Nanos,
    /// Bandwidth of the device
    #[arg(long, value_name = "RATE", default_value = "2G", allow_hyphen_values = true)]
    pub bandwidth: BytesPerSec,
    /// Time of a page fault that needs no read
    #[arg(long, value_name = "TIME", default_value = "14us", allow_hyphen_values = true)]
    pub fault: Nanos,
    /// Time for each page that is read, in addition to the device's
    #[arg(long, value_name = "TIME", default_value = "500ns", allow_hyphen_values = true)]
    pub page: Nanos,
    /// Eviction policy: those of "nearfar bench policies"
    #[arg(long, value_name = "NAME", default_value = "adaptive")]
    pub evict: String,
}

/// Allocation by our libmemkind.so.0 beside another one (Debian's, say) and the C library's malloc: pairs, batches, threads, start
#[derive(Debug, clap::Args)]
pub struct MemkindArgs {
    /// The other libmemkind.so.0, or where its package was unpacked [default: the one that is installed]
    #[arg(long, value_name = "FILE")]
    pub theirs: Option<PathBuf>,
    /// Rounds; in each, every library is measured once
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub runs: usize,
    /// Seconds of each measurement
    #[arg(long, value_name = "S", default_value_t = 4.0)]
    pub seconds: f64,
    /// Save all figures here, as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Run memkind's own tests instead, with its library and with ours: its tree, with library and tests built
    #[arg(long, value_name = "DIR", conflicts_with_all = ["runs", "seconds", "json"])]
    pub suite: Option<PathBuf>,
    /// Of the suite only these tests, as GoogleTest filters them: *ratio*:Fixed*-*Thread*
    #[arg(long, value_name = "FILTER", default_value = "*", hide_default_value = true, requires = "suite")]
    pub only: String,
}

/// Profile programs whose traffic is known, and compare; "overhead": what profiling costs three programs; "verify": whether predicted run
/// times come true; "curve": the same of run time by near size, from traces; "misses": miss-ratio curves beside a replay of every visit of a page
#[derive(Debug, clap::Args)]
pub struct ProfileArgs {
    /// Which
    #[arg(value_enum, value_name = "WHAT", default_value = "truth")]
    pub what: What,
    /// Seconds of each program
    #[arg(long, value_name = "N", default_value_t = 10.0)]
    pub seconds: f64,
    /// MiB of an array of the programs; twice the last-level cache at least, or they stay in it
    #[arg(long, value_name = "N", default_value_t = 96)]
    pub size: u32,
    /// Only programs whose name begins with this
    #[arg(long, value_name = "NAME")]
    pub only: Option<String>,
    /// For truth and curve: keep profiles, traces and what was measured in this directory; where it has them, only estimate again
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Pairs of runs for overhead
    #[arg(long, value_name = "N", default_value_t = 7)]
    pub pairs: u32,
    /// For overhead: with "nearfar profile --precise", which may cost 15 %
    #[arg(long)]
    pub precise: bool,
    /// Runs of each placement for verify, of each size for curve
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub runs: u32,
    /// For verify: also runs with every set of objects that fits
    #[arg(long)]
    pub sets: bool,
    /// For curve: threads of the works of the suite
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub threads: u32,
    /// For curve: what is far
    #[arg(long, value_name = "SPEC", value_parser = far_parser(), default_value = "emu:bw=4G,lat=10us")]
    pub far: FarSpec,
    /// For verify: a directory on a disk that is a far tier too
    #[arg(long, value_name = "DIR")]
    pub disk: Option<PathBuf>,
    /// Write the figures here
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Further options of "nearfar profile"
    #[arg(last = true, value_name = "OPTIONS")]
    pub options: Vec<String>,
}

/// What is found out.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Whether what the profile says of objects is true
    Truth,
    /// How much longer programs take
    Overhead,
    /// Whether run times come out as "nearfar advise" predicts them
    Verify,
    /// Whether run times by near size come out as a replay of a trace predicts them
    Curve,
    /// Whether miss-ratio curves are those of a replay of every visit of a page
    Misses,
}
