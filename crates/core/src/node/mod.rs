//! The measured machine: what `nearfar probe` writes (node.json) and what reports, comparisons and the advisor read.
//!
//! Units are in the names: bytes, bytes per second, nanoseconds, flop per second; K, M, G in prose are powers of 1000 for rates and
//! of 1024 for sizes. What could not be measured is absent and has a line in [`Node::missing`]; nothing is guessed.
//! Presets of published machines have the same form, with [`Figure::source`] at each number.

mod cpu_list;
pub mod detect;
mod figure;
mod finding;
mod firmware;
mod measured;
mod topology;
pub mod words;
mod names;
mod role;
mod compare;
mod diff;

pub use compare::{Measure, Ratio, compare};
pub use cpu_list::CpuList;
pub use diff::{Difference, Side, diff};
pub use figure::{Figure, NOISY_SPREAD, THEORETICAL, Validity, median_with_interval};
pub use finding::{Certainty, Finding, Subject};
pub use firmware::{Firmware, KnlModes, MemoryModule, ModuleKind};
pub use measured::{
    Arithmetic, Bandwidth, Chase, Compute, Energy, FarAccess, FarPoint, FarTier, Injection, Isa, Latency, LoadPoint,
    LoadedLatency, Memory, Mpi, Noise, Operation, Pages, ParallelLoads, ParallelPoint, Precision, Runtime, Scaling, ScalingPoint,
    Stores, Threading,
};
pub use role::Role;
pub use topology::{
    Cache, CacheKind, Cgroup, Claim, Dax, DaxBus, HugePages, Llc, LlcSource, MemoryKind, MemoryNode, Placement, SideCache,
    Topology,
};

use serde::{Deserialize, Serialize};

/// Version of the format. Readers refuse a higher one; additions that old readers may ignore do not raise it.
pub const FORMAT: u32 = 1;

/// A machine: what it is, and what was measured on it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Node {
    /// [`FORMAT`].
    pub format: u32,
    /// Version of nearfar that wrote it.
    pub nearfar: String,
    /// When it was written (RFC 3339, UTC); for presets, when the figures were collected.
    pub written: String,
    /// Host name, or the name of the preset.
    pub name: String,
    /// What a preset is; empty for a measured machine.
    pub about: String,
    /// Measured with `--quick`: fewer rows and repetitions.
    pub quick: bool,
    /// Wall seconds that the measurement took.
    pub seconds: f64,
    /// What the machine is made of.
    pub topology: Topology,
    /// What was concluded from it: memory mode, cluster mode, ...
    pub findings: Vec<Finding>,
    /// How quiet the machine was.
    pub noise: Noise,
    /// Bytes per second, by memory, operation and kind of store.
    pub bandwidth: Vec<Bandwidth>,
    /// Bandwidth by number of threads.
    pub scaling: Vec<Scaling>,
    /// Time of one dependent load, on an idle machine.
    pub latency: Vec<Latency>,
    /// The same while other CPUs load the memory.
    pub loaded: Vec<LoadedLatency>,
    /// Loads that a core has under way at once.
    pub parallel_loads: Vec<ParallelLoads>,
    /// Floating-point roofs.
    pub compute: Vec<Compute>,
    /// What starting and joining threads costs.
    pub threading: Vec<Threading>,
    /// Far tiers: files, devices, emulated memory.
    pub far: Vec<FarTier>,
    /// Joules.
    pub energy: Vec<Energy>,
    /// Messages between ranks of this machine.
    pub mpi: Vec<Mpi>,
    /// What could not be measured, and why.
    pub missing: Vec<Missing>,
}

/// Something that could not be measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// What: "energy", "loaded latency of node 1", ...
    pub what: String,
    /// Why, and how to get it.
    pub why: String,
}

/// All figures of all tables, by `iter` or `iter_mut`.
macro_rules! figures {
    ($node:ident, $iter:ident $(, $mut:tt)?) => {{
        let bandwidth = $node.bandwidth.$iter().map(|row| &$($mut)? row.rate);
        let scaling = $node.scaling.$iter().flat_map(|row| &$($mut)? row.points).map(|point| &$($mut)? point.rate);
        let latency = $node.latency.$iter().map(|row| &$($mut)? row.time);
        let loaded = $node.loaded.$iter().flat_map(|row| &$($mut)? row.points);
        let loaded = loaded.flat_map(|point| [&$($mut)? point.time, &$($mut)? point.rate]);
        let parallel = $node.parallel_loads.$iter().flat_map(|row| &$($mut)? row.points).map(|point| &$($mut)? point.time);
        let compute = $node.compute.$iter().map(|row| &$($mut)? row.rate);
        let threading = $node.threading.$iter().map(|row| &$($mut)? row.overhead);
        let far = $node.far.$iter().flat_map(|tier| &$($mut)? tier.points);
        let far = far.flat_map(|point| [&$($mut)? point.rate, &$($mut)? point.time]);
        let energy = $node.energy.$iter().map(|row| &$($mut)? row.joules);
        let mpi = $node.mpi.$iter().map(|row| &$($mut)? row.value);
        bandwidth.chain(scaling).chain(latency).chain(loaded).chain(parallel).chain(compute).chain(threading).chain(far).chain(energy).chain(mpi)
    }};
}

impl Node {
    /// The best valid bandwidth from `memory`, all CPUs of any node together, counted as the program sees it.
    pub fn best_bandwidth(&self, memory: Memory) -> Option<&Bandwidth> {
        let rows = self.bandwidth.iter().filter(|row| row.memory == memory && row.rate.is_valid());
        rows.max_by(|a, b| a.rate.median.total_cmp(&b.rate.median))
    }

    /// The triad bandwidth from `memory` with ordinary stores, the fastest CPU node.
    pub fn triad(&self, memory: Memory) -> Option<&Figure> {
        let rows = self.bandwidth.iter().filter(|row| row.memory == memory && row.operation == Operation::Triad);
        let rows = rows.filter(|row| row.stores == Stores::Ordinary).map(|row| &row.rate).filter(|rate| rate.is_valid());
        rows.max_by(|a, b| a.median.total_cmp(&b.median))
    }

    /// The highest valid compute roof of `precision`, all CPUs together.
    pub fn peak(&self, precision: Precision) -> Option<&Compute> {
        let rows = self.compute.iter().filter(|row| row.precision == precision && row.rate.is_valid());
        rows.max_by(|a, b| a.rate.median.total_cmp(&b.rate.median))
    }

    /// Every figure, to be changed.
    pub fn figures_mut(&mut self) -> impl Iterator<Item = &mut Figure> {
        figures!(self, iter_mut, mut)
    }

    /// Every figure.
    pub fn figures(&self) -> impl Iterator<Item = &Figure> {
        figures!(self, iter)
    }
}
