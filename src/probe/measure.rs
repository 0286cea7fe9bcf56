//! One probe of this machine: goes through the plan, part by part, and files what it finds in the node.
//!
//! A part that fails leaves a line of what is missing. Nothing is measured beside anything else.

use super::plan::{self, Pair, Plan};
use super::{far, mpi, noise, threading};
use crate::cli::probe::{Part, ProbeArgs};
use crate::cli::run::DEFAULT_FAR;
use crate::machine;
use crate::ui::progress::Progress;
use nearfar_core::energy::{self, EnergyUsed};
use nearfar_core::node::{
    Arithmetic, Chase, Injection, Isa, Memory, Missing, Node, Operation, Pages, Precision, Stores, Topology,
};
use nearfar_core::units::Bytes;
use nearfar_kernels::hog::{self, HogResource};
use nearfar_kernels::probe as kernels;
use nearfar_sys::rapl::Meter;
use nearfar_sys::root::Root;
use std::time::{Duration, Instant};

/// Rows of a memory that is measured in full.
const ROWS: &[(Operation, Stores)] = &[
    (Operation::Read, Stores::None),
    (Operation::Write, Stores::Ordinary),
    (Operation::Write, Stores::NonTemporal),
    (Operation::Copy, Stores::Ordinary),
    (Operation::Copy, Stores::NonTemporal),
    (Operation::Scale, Stores::Ordinary),
    (Operation::Scale, Stores::NonTemporal),
    (Operation::Add, Stores::Ordinary),
    (Operation::Add, Stores::NonTemporal),
    (Operation::Triad, Stores::Ordinary),
    (Operation::Triad, Stores::NonTemporal),
];
/// Rows of other memories, of all nodes together, and with `--quick`.
pub(super) const FEW_ROWS: &[(Operation, Stores)] =
    &[(Operation::Read, Stores::None), (Operation::Triad, Stores::Ordinary), (Operation::Triad, Stores::NonTemporal)];
/// Memory that is left to others.
const LEFT: u64 = 64 << 20;
/// Optional rows are left out after so long: quick, full.
const LATE: (Duration, Duration) = (Duration::from_secs(4), Duration::from_secs(25));
/// Energy is counted in so many windows of so long: counters are updated once in about a millisecond.
const ENERGY_WINDOWS: usize = 5;
const ENERGY_WINDOW: Duration = Duration::from_millis(150);

/// Steps that the progress bar has.
pub fn steps(args: &ProbeArgs, topology: &Topology) -> u64 {
    let plan = plan::plan(topology, args.quick, far_tiers(args).len());
    let pairs = plan.pairs.len() as u64;
    // Bandwidth, latency, latency under load of each pair; caches twice; the rest by and large.
    3 * pairs + 8 + 10 + 24 * far_tiers(args).len() as u64
}

fn far_tiers(args: &ProbeArgs) -> Vec<String> {
    match (args.no_far, args.far.is_empty()) {
        (true, _) => Vec::new(),
        (false, true) => vec![DEFAULT_FAR.to_owned()],
        (false, false) => args.far.clone(),
    }
}

/// A probe under way.
pub struct Session<'a> {
    pub(super) args: &'a ProbeArgs,
    pub(super) node: &'a mut Node,
    pub(super) progress: &'a Progress,
    pub(super) plan: Plan,
    start: Instant,
}

impl<'a> Session<'a> {
    /// A probe that files its results in `node`, whose topology is known.
    pub fn new(args: &'a ProbeArgs, node: &'a mut Node, progress: &'a Progress) -> Self {
        let plan = plan::plan(&node.topology, args.quick, far_tiers(args).len());
        Self { args, node, progress, plan, start: Instant::now() }
    }

    /// Measures everything that was asked for.
    pub fn measure(mut self) {
        self.node.quick = self.args.quick;
        let watch = noise::Watch::start();
        if self.plan.groups.is_empty() {
            self.missing(
                "everything",
                "no CPU of this machine is known: /sys/devices/system/cpu and /proc/self/status are not readable",
            );
            return;
        }
        if !self.plan.behind_side_cache {
            let side = Bytes(self.node.topology.llc.side_bytes);
            self.missing(
                "memory behind the memory-side cache",
                format!(
                    "arrays four times its {side} do not fit or take too long: the rows show that cache, not the memory behind it"
                ),
            );
        }
        for node in self.plan.gpu.clone() {
            self.missing(format!("memory of node {node}"), "it is a GPU's: programs on the GPU may need it, so it is not used");
        }
        // What matters most comes first, in case time runs out.
        let mut pairs = self.plan.pairs.clone();
        pairs.sort_by_key(|pair| !pair.main);
        for pair in pairs {
            if !pair.main && self.is_late() {
                self.missing(
                    format!("node {} from CPUs of node {}", pair.memory, self.plan.groups[pair.group].node),
                    "out of time: this machine has many nodes; nearer ones were measured",
                );
                continue;
            }
            if self.wants(Part::Bandwidth) {
                self.bandwidth(pair);
            }
            if self.wants(Part::Latency) {
                self.latency(pair);
                if pair.main && !(self.args.quick && pair.group > 0) {
                    self.loaded(pair);
                }
            }
        }
        if self.wants(Part::Bandwidth) {
            self.together();
            self.scaling();
        }
        self.caches();
        if self.wants(Part::Compute) {
            self.compute();
        }
        if self.wants(Part::Threading) {
            self.threading();
        }
        if self.wants(Part::Energy) {
            self.energy();
        }
        if self.wants(Part::Mpi) {
            self.mpi();
        }
        if self.wants(Part::Far) {
            self.far();
        }
        if !self.plan.behind_side_cache {
            self.file_as_side_cache();
        }
        self.node.noise = watch.end(self.node.topology.online.len().max(1));
        noise::spread(self.node);
    }

    /// Little time is left: what is optional is left out.
    fn is_late(&self) -> bool {
        self.start.elapsed() > if self.args.quick { LATE.0 } else { LATE.1 }
    }

    pub(super) fn wants(&self, part: Part) -> bool {
        self.args.only.is_empty() || self.args.only.contains(&part)
    }

    pub(super) fn missing(&mut self, what: impl Into<String>, why: impl Into<String>) {
        let missing = Missing { what: what.into(), why: why.into() };
        if !self.node.missing.contains(&missing) {
            self.node.missing.push(missing);
        }
    }

    /// Memory that may be used now on `node`.
    pub(super) fn limit(&self, node: Option<u32>) -> u64 {
        let memory = machine::memory_limit().bytes.min(nearfar_sys::process::memory_available());
        let free = node.and_then(|id| {
            let path = format!("/sys/devices/system/node/node{id}/meminfo");
            let text = std::fs::read_to_string(path).ok()?;
            let field = |name: &str| {
                let line = text.lines().find(|line| line.contains(name))?;
                line.split_ascii_whitespace().rev().nth(1)?.parse::<u64>().ok().map(|kib| kib << 10)
            };
            // What the kernel keeps of files there makes room when memory is wanted.
            let files = ["Active(file):", "Inactive(file):"].iter().filter_map(|name| field(name)).sum::<u64>();
            Some(field("MemFree:")? + files / 2)
        });
        let free = free.filter(|_| self.node.topology.nodes.len() > 1);
        free.map_or(memory, |free| free.min(memory)).saturating_sub(LEFT)
    }

    pub(super) fn pages(&self) -> Pages {
        match self.node.topology.huge_pages.transparent.as_deref() {
            Some("always" | "madvise") => Pages::Huge,
            _ => Pages::Small,
        }
    }

    pub(super) fn stream<'s>(
        &self,
        cpus: &'s [u32],
        cpu_node: Option<u32>,
        memory: u32,
        rows: &'s [(Operation, Stores)],
    ) -> kernels::StreamSetting<'s> {
        kernels::StreamSetting {
            cpus,
            cpu_node,
            memory: Memory::Node(memory),
            rows,
            array_bytes: self.array_bytes(memory),
            pages: self.pages(),
            llc_bytes: self.plan.llc_bytes,
            budget: self.plan.row * rows.len() as u32,
            limit_bytes: self.limit(Some(memory)),
        }
    }

    /// As planned, or less where the node has not so much: the row is invalid then and says why.
    fn array_bytes(&self, memory: u32) -> u64 {
        self.plan.array_bytes.min(self.limit(Some(memory)) / 7 * 2).max(1 << 20)
    }

    fn bandwidth(&mut self, pair: Pair) {
        let group = self.plan.groups[pair.group].clone();
        let what = format!("bandwidth of node {} from CPUs of node {}", pair.memory, group.node);
        self.progress.step(&what);
        let rows = if pair.main && !self.args.quick { ROWS } else { FEW_ROWS };
        match kernels::bandwidth(&self.stream(&group.cores, Some(group.node), pair.memory, rows)) {
            Ok(measured) => {
                self.node.bandwidth.extend(measured.rows);
                measured.missing.into_iter().for_each(|missing| self.missing(missing.what, missing.why));
            }
            Err(error) => self.missing(what, error.to_string()),
        }
    }

    fn scaling(&mut self) {
        let mut groups = self.plan.groups.clone();
        groups.truncate(1);
        for group in groups {
            if group.cpus.len() < 2 {
                self.missing("bandwidth by threads", "one CPU only");
                continue;
            }
            // Cores first, then their second hardware threads.
            let mut cpus = group.cores.clone();
            cpus.extend(group.cpus.iter().filter(|cpu| !group.cores.contains(cpu)));
            let pairs: Vec<Pair> =
                self.plan.pairs.iter().copied().filter(|pair| self.plan.groups[pair.group].node == group.node).collect();
            for pair in pairs.iter().filter(|pair| pair.main) {
                let what = format!("bandwidth by threads, node {}", pair.memory);
                self.progress.step(&what);
                let stream = self.stream(&cpus, Some(group.node), pair.memory, &FEW_ROWS[1..2]);
                let points = (usize::BITS - cpus.len().leading_zeros()) + 1;
                let stream = kernels::StreamSetting { budget: self.plan.row * points, ..stream };
                match kernels::scaling(&kernels::ScalingSetting { stream, threads: &[] }) {
                    Ok(scaling) => self.node.scaling.push(scaling),
                    Err(error) => self.missing(what, error.to_string()),
                }
            }
        }
    }

    fn latency(&mut self, pair: Pair) {
        let group = self.plan.groups[pair.group].clone();
        let what = format!("latency of node {} from a CPU of node {}", pair.memory, group.node);
        self.progress.step(&what);
        let both = [Chase::PageLocal, Chase::Random];
        let settings: &[(Pages, &[Chase])] = match (pair.main, self.pages()) {
            (false, _) => &[(Pages::Small, &both[..1])],
            (true, Pages::Huge) => &[(Pages::Small, &both), (Pages::Huge, &both[1..])],
            (true, _) => &[(Pages::Small, &both)],
        };
        for &(pages, chases) in settings {
            let limit = self.limit(Some(pair.memory));
            let setting = kernels::ChaseSetting {
                cpu: group.cores[0],
                helpers: &group.cpus,
                cpu_node: group.node,
                memory: Memory::Node(pair.memory),
                chases,
                pages,
                bytes: self.plan.chase_bytes.min(limit / 8 * 7 / (1 << 20) * (1 << 20)),
                llc_bytes: self.plan.llc_bytes,
                budget: self.plan.chase * chases.len() as u32,
                limit_bytes: limit,
            };
            match kernels::latency(&setting) {
                Ok((rows, parallel)) => {
                    self.node.latency.extend(rows);
                    if parallel.is_none() && chases.contains(&Chase::Random) {
                        self.missing(format!("parallel loads of node {}", pair.memory), "too little memory may be used");
                    }
                    self.node.parallel_loads.extend(parallel);
                }
                Err(error) => self.missing(what.clone(), error.to_string()),
            }
        }
        if pair.main && self.pages() != Pages::Huge {
            self.missing("latency over huge pages", "the kernel gives no transparent huge pages here");
        }
    }

    fn loaded(&mut self, pair: Pair) {
        let group = self.plan.groups[pair.group].clone();
        let what = format!("latency of node {} under load", pair.memory);
        let kinds: &[Injection] =
            if self.args.quick { &[Injection::Reads] } else { &[Injection::Reads, Injection::ReadsAndWrites] };
        for &injection in kinds {
            self.progress.step(&what);
            let delays: &[u32] = if self.args.quick { &kernels::QUICK_DELAYS } else { &kernels::DELAYS };
            let limit = self.limit(Some(pair.memory));
            let setting = kernels::LoadedSetting {
                cpu: group.cores[0],
                injectors: &group.cores[1..],
                cpu_node: group.node,
                node: pair.memory,
                injection,
                delays,
                bytes: self.plan.chase_bytes.min(limit / 4),
                injector_bytes: self.injector_bytes(group.cores.len() - 1, limit),
                llc_bytes: self.plan.llc_bytes,
                budget: self.plan.point * (delays.len() as u32 + 1),
                limit_bytes: limit,
            };
            match kernels::loaded(&setting) {
                Ok(curve) => self.node.loaded.push(curve),
                Err(error) => self.missing(what.clone(), error.to_string()),
            }
        }
    }

    /// All injectors together visit as much as an array of the bandwidth kernels has.
    fn injector_bytes(&self, injectors: usize, limit: u64) -> u64 {
        // Rounded up to pages: all together must not fall short of what exceeds the caches by a line.
        let each = self.plan.array_bytes.div_ceil(injectors.max(1) as u64).next_multiple_of(4096);
        each.max(64 << 20).min(limit / 2 / injectors.max(1) as u64)
    }

    fn compute(&mut self) {
        self.progress.step("compute roofs");
        let roofs = kernels::roofs();
        let rows: Vec<_> =
            if self.args.quick { roofs.into_iter().filter(|row| row.2 == Arithmetic::Fma).collect() } else { roofs };
        let budget = self.plan.compute * rows.len().max(1) as u32;
        let cores = self.plan.cores.clone();
        match kernels::compute(&kernels::ComputeSetting { cpus: &cores, rows: &rows, budget }) {
            Ok(rows) => self.node.compute.extend(rows),
            Err(error) => self.missing("compute roofs", error.to_string()),
        }
        if cores.len() > 1 && !self.args.quick {
            // One core alone: its clock may be higher, and threads of a program do not always all work.
            let best: Vec<_> = self.best_roof().into_iter().collect();
            match kernels::compute(&kernels::ComputeSetting { cpus: &cores[..1], rows: &best, budget: self.plan.compute }) {
                Ok(rows) => self.node.compute.extend(rows),
                Err(error) => self.missing("compute roof of one core", error.to_string()),
            }
        }
        match kernels::gemm(&kernels::GemmSetting { cpus: &cores, budget: self.plan.compute * 3 }) {
            Ok(row) => self.node.compute.push(row),
            Err(error) => self.missing("matrix product", error.to_string()),
        }
    }

    fn best_roof(&self) -> Option<(Precision, Isa, Arithmetic)> {
        self.node.peak(Precision::F64).map(|row| (row.precision, row.isa, row.arithmetic))
    }

    fn threading(&mut self) {
        self.progress.step("threading overhead");
        let (rows, missing) = threading::measure(self.args.quick, &self.plan.cores.iter().copied().collect());
        self.node.threading.extend(rows);
        self.node.missing.extend(missing);
    }

    fn mpi(&mut self) {
        if self.args.only.is_empty() && machine::is_root() {
            return self.missing(
                "MPI",
                "programs are not compiled and started as root unasked: --only mpi measures it, or run as an ordinary user",
            );
        }
        if self.args.quick && self.args.only.is_empty() {
            return self.missing("MPI", "left out with --quick; --quick --only mpi measures it");
        }
        self.progress.step("MPI");
        let (rows, missing) = mpi::measure(self.args.quick, self.plan.cores.len());
        self.node.mpi.extend(rows);
        self.node.missing.extend(missing);
    }

    /// Joules of idling, of triad and of arithmetic, where the counters can be read.
    fn energy(&mut self) {
        self.progress.step("energy");
        let mut meter = match Meter::open(&Root::this()) {
            Ok(meter) => meter,
            Err(why) => return self.missing("energy", why),
        };
        let windows = |meter: &mut Meter| -> Vec<EnergyUsed> {
            (0..ENERGY_WINDOWS).map(|_| meter.around(|| std::thread::sleep(ENERGY_WINDOW)).1).collect()
        };
        let idle = windows(&mut meter);
        self.node.energy.extend(energy::idle_rows(&idle));

        let bytes = (3 * self.plan.array_bytes).min(self.limit(None) / 2) as usize;
        let mut busy = Vec::new();
        let taken = hog::hog(HogResource::Memory, bytes, || {}, || busy = windows(&mut meter));
        if taken.seconds > 0.0 && taken.bytes > 0 {
            let rate = taken.bytes as f64 / taken.seconds;
            let busy: Vec<(EnergyUsed, f64)> = busy
                .into_iter()
                .map(|spent| {
                    let units = spent.seconds * rate;
                    (spent, units)
                })
                .collect();
            self.node.energy.extend(energy::load_rows("triad", "byte", &idle, &busy));
        }
        let Some(roof) = self.best_roof() else {
            return self.missing("energy per FLOP", "the compute roofs were not measured");
        };
        let cores = self.plan.cores.clone();
        let mut busy = Vec::new();
        for _ in 0..ENERGY_WINDOWS {
            let setting = kernels::ComputeSetting { cpus: &cores, rows: &[roof], budget: ENERGY_WINDOW };
            let (rows, spent) = meter.around(|| kernels::compute(&setting));
            // The rows are timed for nearly all of that: what comes before makes the figure a little too high.
            if let Ok([row, ..]) = rows.as_deref() {
                busy.push((spent.clone(), row.rate.median * spent.seconds));
            }
        }
        self.node.energy.extend(energy::load_rows("fused multiply-add f64", "flop", &idle, &busy));
    }

    fn far(&mut self) {
        let tiers = far_tiers(self.args);
        for spec in tiers {
            let progress = self.progress;
            match far::measure(&spec, self.args.quick, self.plan.far, |what| progress.step(what)) {
                Ok(tier) => self.node.far.push(tier),
                Err(missing) => self.missing(missing.what, missing.why),
            }
        }
    }
}
