//! Rows of measurements. Each says what was done, so that a reader need not guess: bytes counted, threads, kind of pages.

use super::Figure;
use serde::{Deserialize, Serialize};

/// The memory behind a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Memory {
    /// A NUMA node.
    Node(u32),
    /// A cache of this level.
    Cache(u32),
}

impl Default for Memory {
    fn default() -> Self {
        Self::Node(0)
    }
}

/// What is done with arrays of f64: `a` is written, `b` and `c` are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// Sum of `b`.
    #[default]
    Read,
    /// `a = s`.
    Write,
    /// `a = b`.
    Copy,
    /// `a = s b`.
    Scale,
    /// `a = b + c`.
    Add,
    /// `a = b + s c`.
    Triad,
}

impl Operation {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Read, Self::Write, Self::Copy, Self::Scale, Self::Add, Self::Triad];

    /// Arrays read.
    pub const fn reads(self) -> usize {
        match self {
            Self::Write => 0,
            Self::Read | Self::Copy | Self::Scale => 1,
            Self::Add | Self::Triad => 2,
        }
    }

    /// Arrays written.
    pub const fn writes(self) -> usize {
        if matches!(self, Self::Read) { 0 } else { 1 }
    }
}

/// How results are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stores {
    /// Through the caches: a line is read before it is written (write-allocate), unless the processor avoids it.
    #[default]
    Ordinary,
    /// Past the caches (streaming).
    NonTemporal,
    /// The operation stores nothing.
    None,
}

/// Bytes per second of one operation on one memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Bandwidth {
    /// The NUMA node of the CPUs; null for all CPUs of the machine together (in presets: each from its own node, of which `memory` is
    /// the first).
    pub cpu_node: Option<u32>,
    /// Where the arrays are.
    pub memory: Memory,
    /// What was done.
    pub operation: Operation,
    /// How it was stored.
    pub stores: Stores,
    /// Threads, one per CPU.
    pub threads: u32,
    /// Bytes of all arrays of all threads.
    pub array_bytes: u64,
    /// Bytes per element that `rate` counts: what the program asks for.
    pub counted_bytes: u32,
    /// Bytes per element with the reads of write-allocate, which ordinary stores cause beside. 0 where a publication does not say how
    /// results were stored; `stores` means nothing then.
    pub moved_bytes: u32,
    /// Pages under the arrays; null when that could not be proved.
    pub pages: Option<Pages>,
    /// Bytes per second, as counted.
    pub rate: Figure,
}

impl Bandwidth {
    /// How results were stored; `None` when that was not published.
    pub fn known_stores(&self) -> Option<Stores> {
        (self.moved_bytes > 0 || self.operation.writes() == 0).then_some(self.stores)
    }
}

/// Bandwidth by number of threads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Scaling {
    /// Where the arrays are.
    pub memory: Memory,
    /// What was done.
    pub operation: Operation,
    /// How it was stored.
    pub stores: Stores,
    /// Ascending numbers of threads.
    pub points: Vec<ScalingPoint>,
}

/// One number of threads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ScalingPoint {
    /// Threads.
    pub threads: u32,
    /// Bytes per second, as counted.
    pub rate: Figure,
}

/// In which order a chase visits memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Chase {
    /// Random lines within 64 neighbouring pages, then the next 64: address translation always hits.
    #[default]
    PageLocal,
    /// Random lines of all of it: address translation is part of the figure.
    Random,
}

/// Pages under the data, proved from /proc/self/smaps (or as far as that can be read).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pages {
    /// The small pages of the machine.
    #[default]
    Small,
    /// Transparent huge pages, at least 95 % of it.
    Huge,
    /// Some of both.
    Mixed,
}

/// Time of a dependent load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Latency {
    /// The NUMA node of the CPU.
    pub cpu_node: u32,
    /// Where the data are.
    pub memory: Memory,
    /// The order of visits.
    pub chase: Chase,
    /// The pages.
    pub pages: Pages,
    /// Bytes of the data. 0 where a publication does not say how it was measured; `chase` and `pages` mean nothing then.
    pub bytes: u64,
    /// Nanoseconds of a load.
    pub time: Figure,
}

impl Latency {
    /// Order of visits and pages; `None` when that was not published.
    pub fn method(&self) -> Option<(Chase, Pages)> {
        (self.bytes > 0).then_some((self.chase, self.pages))
    }
}

/// Loads that a core has under way at once: the time of a load when one thread follows several cycles of dependent loads together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ParallelLoads {
    /// The NUMA node of the CPU.
    pub cpu_node: u32,
    /// Where the data are.
    pub memory: Memory,
    /// The pages.
    pub pages: Pages,
    /// Bytes of the data.
    pub bytes: u64,
    /// Ascending numbers of cycles, the first is 1.
    pub points: Vec<ParallelPoint>,
}

/// One number of cycles.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ParallelPoint {
    /// Cycles.
    pub cycles: u32,
    /// Nanoseconds of a load: of the walk, divided by the loads of all cycles.
    pub time: Figure,
}

impl ParallelLoads {
    /// Loads under way at the most, 32 where these are the most cycles: how often the shortest time goes into that of a load by itself,
    /// and no more than there were cycles. `None` without usable figures.
    pub fn most(&self) -> Option<f64> {
        let usable = || self.points.iter().filter(|point| point.time.is_usable() && point.time.median > 0.0);
        let single = usable().find(|point| point.cycles == 1)?.time.median;
        let under_way = |point: &ParallelPoint| (single / point.time.median).min(f64::from(point.cycles));
        usable().map(under_way).max_by(f64::total_cmp)
    }
}

/// What the other CPUs do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Injection {
    /// They read.
    #[default]
    Reads,
    /// Two reads for each write.
    ReadsAndWrites,
}

/// Latency while the memory is under load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LoadedLatency {
    /// The NUMA node of the CPUs.
    pub cpu_node: u32,
    /// Where the data are.
    pub memory: Memory,
    /// What loads it.
    pub injection: Injection,
    /// Threads that load it.
    pub injectors: u32,
    /// Points, the lowest load first.
    pub points: Vec<LoadPoint>,
}

/// One strength of load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LoadPoint {
    /// Spin iterations between two lines of an injector: 0 is full load. Null for no load at all.
    pub delay: Option<u32>,
    /// Nanoseconds of a dependent load.
    pub time: Figure,
    /// Bytes per second of the injectors.
    pub rate: Figure,
}

/// Width of a floating-point number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    /// Single.
    F32,
    /// Double.
    #[default]
    F64,
}

/// Instructions of a compute roof.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Isa {
    /// One number at a time.
    #[default]
    Scalar,
    /// 128-bit vectors.
    Sse2,
    /// 256-bit vectors.
    Avx2,
    /// 512-bit vectors.
    Avx512,
    /// 128-bit vectors of Arm.
    Neon,
}

/// Arithmetic of a compute roof.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arithmetic {
    /// Additions only.
    Add,
    /// As many multiplications as additions, in separate instructions.
    MultiplyAdd,
    /// Fused multiply-add: two operations each.
    #[default]
    Fma,
    /// Matrix product: what a real kernel reaches.
    Gemm,
}

/// Floating-point operations per second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Compute {
    /// Number format.
    pub precision: Precision,
    /// Instructions.
    pub isa: Isa,
    /// Arithmetic.
    pub arithmetic: Arithmetic,
    /// Threads, one per core.
    pub threads: u32,
    /// Operations per second.
    pub rate: Figure,
    /// Clock of one core while it ran, in Hz, from a chain of dependent integer additions timed beside it.
    pub clock_hz: Option<Figure>,
    /// Operations per clock and core: rate / clock / threads.
    pub per_clock: Option<f64>,
}

/// Whose threads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Runtime {
    /// Threads and spin barriers of nearfar.
    #[default]
    Own,
    /// An OpenMP runtime, by the file it was loaded from.
    OpenMp(String),
}

/// Overhead of a construct (method of the EPCC OpenMP microbenchmarks: with the construct less without, over the repetitions).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Threading {
    /// Whose threads.
    pub runtime: Runtime,
    /// "fork-join", "barrier", "reduction".
    pub construct: String,
    /// Threads.
    pub threads: u32,
    /// Nanoseconds per construct.
    pub overhead: Figure,
}

/// How a far tier is accessed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FarAccess {
    /// Reads in order.
    #[default]
    SequentialRead,
    /// Writes in order.
    SequentialWrite,
    /// Reads at random.
    RandomRead,
    /// Writes at random.
    RandomWrite,
}

/// A far tier: a file system, a device or emulated memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FarTier {
    /// As it was given: a path or `emu:...`.
    pub spec: String,
    /// Model of the device and file system, as far as known.
    pub about: String,
    /// Bytes of the file that was measured.
    pub file_bytes: u64,
    /// Without the page cache (O_DIRECT).
    pub direct: bool,
    /// Measurements.
    pub points: Vec<FarPoint>,
}

/// One access pattern, request size and queue depth.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FarPoint {
    /// How.
    pub access: FarAccess,
    /// Bytes of a request; 0 where a publication does not say.
    pub request_bytes: u64,
    /// Requests under way at a time; 0 where a publication does not say.
    pub depth: u32,
    /// Bytes per second.
    pub rate: Figure,
    /// Nanoseconds of a request (mean over a run).
    pub time: Figure,
}

/// Energy of something.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Energy {
    /// "idle", "triad", "fma f64", "chase".
    pub load: String,
    /// RAPL domain: "package-0", "dram", ...
    pub domain: String,
    /// Watts while it ran.
    pub watts: f64,
    /// Joules per `unit`, above idle.
    pub joules: Figure,
    /// "byte", "flop", "load", "second".
    pub unit: String,
}

/// Messages between two (or all) ranks on this machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Mpi {
    /// "ping-pong latency", "bandwidth", "message rate", "allreduce".
    pub what: String,
    /// Bytes of a message.
    pub bytes: u64,
    /// Ranks.
    pub ranks: u32,
    /// Version that the library gives.
    pub library: String,
    /// "ns", "bytes/s" or "messages/s".
    pub unit: String,
    /// The figure.
    pub value: Figure,
}

/// How quiet the machine was while it was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Noise {
    /// Load average of the last minute before the start.
    pub load_before: Option<f64>,
    /// Share of CPU time that the hypervisor gave to others, 0 to 1.
    pub steal: Option<f64>,
    /// Share of CPU time that other processes had, 0 to 1.
    pub others: Option<f64>,
    /// True when one of them is too high for figures to be trusted: every figure is marked noisy then.
    pub noisy: bool,
    /// Why.
    pub why: String,
}
