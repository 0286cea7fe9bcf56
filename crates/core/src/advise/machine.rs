//! Two tiers as the model needs them: bytes per second, latency by load, bytes. Made of a machine's description, or of what a far tier
//! behind page faults is.

use super::scaling::Scaling;
use crate::node::{Bandwidth, Figure, Memory, Node, Operation, ParallelLoads, Role};
use serde::Serialize;

/// Taken where nobody measured a latency.
const USUAL_LATENCY_NS: f64 = 100.0;
/// How much a load takes longer on a memory at full load than on an idle one, where nobody measured it.
const USUAL_LOADED: f64 = 2.5;
/// Lines that one core has under way with its prefetchers, where nobody measured what a thread reaches.
const LINES_IN_FLIGHT: f64 = 40.0;
const LINE: f64 = 64.0;
/// A rank's cache of far is no smaller.
const LEAST_CACHE: f64 = 32.0 * 1_048_576.0;
/// Bytes of a page.
pub const PAGE: f64 = 4096.0;

/// A memory that programs address.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tier {
    /// For people.
    pub name: String,
    /// Bytes per second, all cores together.
    pub read: f64,
    /// Bytes per second of what is written back, beside reads.
    pub write: f64,
    /// Nanoseconds of a load, idle.
    pub latency_ns: f64,
    /// (share of the bandwidth in use, how much longer a load takes then), ascending.
    pub loaded: Vec<(f64, f64)>,
    /// Bytes per second that one core reaches.
    pub per_core: f64,
    /// Loads at places without order that one thread has under way at the most; `None`: nobody measured it.
    pub parallel_loads: Option<f64>,
    /// (threads, share of the most that memory gives to any number of them), ascending; empty: not measured.
    pub by_threads: Vec<(f64, f64)>,
    /// Bytes; infinite where nothing limits them.
    pub bytes: f64,
}

/// A far tier that programs reach by page faults.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Paged {
    /// As it was given: a path, `emu:...`.
    pub name: String,
    /// Bytes per second of pages that are fetched ahead.
    pub read: f64,
    /// Bytes per second of pages that are written back.
    pub write: f64,
    /// Reads and writes pass one channel (emulated memory); otherwise beside each other.
    pub one_channel: bool,
    /// Nanoseconds that a thread waits for a page that nobody fetched ahead.
    pub fault_ns: f64,
    /// Nanoseconds that the program's thread takes per page that was fetched ahead, however fast far is: faults on it, looking up.
    pub page_ns: f64,
    /// Nanoseconds that the program's thread takes more for a page that is made anew and leaves for far than where it stays, beside the
    /// transfer; 0: nobody measured it.
    pub new_ns: f64,
    /// Bytes of near that cache pages of far in flat mode at the least; what placed objects leave free is a cache too.
    pub cache_bytes: f64,
}

#[cfg(test)]
impl Paged {
    /// An emulated tier as tests want one.
    pub(super) fn example(cache_bytes: f64) -> Self {
        Self {
            name: "emu".into(),
            read: 4e9,
            write: 4e9,
            one_channel: true,
            fault_ns: 20e3,
            page_ns: 350.0,
            new_ns: 0.0,
            cache_bytes,
        }
    }
}

/// What far is.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Far {
    /// Memory: loads go there.
    Memory(Tier),
    /// Pages.
    Paged(Paged),
}

/// The machine that is asked about.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Machine {
    /// For people.
    pub name: String,
    /// The fast and small tier; over a paged far, the memory that the profile was taken on.
    pub near: Tier,
    /// The other one.
    pub far: Far,
    /// The memory that the profile was taken on.
    pub home: Tier,
    /// Cores; 0: not known.
    pub cores: u32,
    /// Hardware threads; 0: not known.
    pub cpus: u32,
    /// How the predicted run is wider than the profiled one.
    pub scaling: Scaling,
    /// What was assumed.
    pub notes: Vec<String>,
}

/// Why a description is not enough.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MachineError {
    /// One kind of memory.
    #[error("{0} has one kind of memory: name what is far (--far emu:bw=4G,lat=10us, or a directory)")]
    OneMemory(String),
    /// No bandwidth.
    #[error("{name} does not give the bandwidth of its {which} memory: nothing can be predicted for it")]
    NoBandwidth {
        /// The machine.
        name: String,
        /// "near", "far".
        which: &'static str,
    },
}

impl Tier {
    /// How much longer a load takes when `share` of the bandwidth is in use.
    pub fn slowdown(&self, share: f64) -> f64 {
        let share = share.clamp(0.0, 1.0);
        let after = self.loaded.partition_point(|&(x, _)| x <= share);
        let before = after.checked_sub(1).and_then(|at| self.loaded.get(at)).copied();
        match (before, self.loaded.get(after).copied()) {
            (Some((x0, y0)), Some((x1, y1))) => y0 + (y1 - y0) * (share - x0) / (x1 - x0),
            (Some((_, y)), None) | (None, Some((_, y))) => y,
            // The usual shape: flat up to half of the bandwidth, steep at its end.
            (None, None) => 1.0 + (USUAL_LOADED - 1.0) * share.powi(4),
        }
    }

    /// Seconds to move so many bytes with `threads` threads.
    pub fn seconds(&self, read: f64, written: f64, threads: f64) -> f64 {
        let all = read / self.read + written / self.write;
        (all / self.share(threads)).max((read + written) / (self.per_core * threads.max(1.0)))
    }

    /// What of the bandwidth so many threads reach, where more of them than are measured, or fewer, do not reach less for their number.
    pub fn share(&self, threads: f64) -> f64 {
        let after = self.by_threads.partition_point(|&(x, _)| x <= threads);
        match (after.checked_sub(1).map(|at| self.by_threads[at]), self.by_threads.get(after)) {
            (Some((x0, y0)), Some(&(x1, y1))) => y0 + (y1 - y0) * (threads - x0) / (x1 - x0),
            (Some((_, y)), None) => y,
            // What fewer threads reach is told by what one core does.
            (None, _) => 1.0,
        }
    }

    /// What is left of it for one of several ranks that use it alike.
    fn part(&self, part: f64) -> Self {
        let by_threads = self.by_threads.iter().map(|&(threads, share)| (threads * part, share)).collect();
        Self { read: self.read * part, write: self.write * part, bytes: self.bytes * part, by_threads, ..self.clone() }
    }

    /// A tier of these figures, the rest as usual.
    pub fn plain(name: &str, bytes_per_s: f64, latency_ns: f64, bytes: f64) -> Self {
        let per_core = (LINES_IN_FLIGHT * LINE / latency_ns * 1e9).min(bytes_per_s);
        let name = name.to_owned();
        Self {
            name,
            read: bytes_per_s,
            write: bytes_per_s,
            latency_ns,
            loaded: Vec::new(),
            per_core,
            parallel_loads: None,
            by_threads: Vec::new(),
            bytes,
        }
    }

    fn of(node: &Node, memory: Memory, which: &'static str, notes: &mut Vec<String>) -> Result<Self, MachineError> {
        let moved = |row: &Bandwidth| {
            let scale = match (row.moved_bytes, row.counted_bytes) {
                (moved, counted) if moved > 0 && counted > 0 => f64::from(moved) / f64::from(counted),
                _ => 1.0,
            };
            row.rate.median * scale
        };
        let usable = |figure: &Figure| figure.is_valid() && figure.median > 0.0;
        let rows = |theoretical: bool| {
            let of = move |row: &&Bandwidth| usable(&row.rate) && row.rate.is_theoretical() == theoretical;
            node.bandwidth.iter().filter(move |row| row.memory == memory).filter(of)
        };
        let best = |operation: Operation| rows(false).filter(|row| row.operation == operation).map(moved).max_by(f64::total_cmp);
        let claim = || match memory {
            Memory::Node(id) => node.topology.node(id).and_then(|memory| memory.claim.as_ref()?.read_bytes_per_s),
            Memory::Cache(_) => None,
        };
        // What memory moves, whatever is done: some programs publish reads only, some no reads.
        let any = rows(false).map(moved).max_by(f64::total_cmp);
        let theoretical = || {
            let found = rows(true).map(moved).max_by(f64::total_cmp).or_else(claim);
            (
                found,
                format!(
                    "nobody measured the bandwidth of {which} memory: its theoretical peak is taken, which no program reaches"
                ),
            )
        };
        let read = match any {
            Some(any) => any,
            None => {
                let (found, note) = theoretical();
                notes.push(note);
                found.ok_or(MachineError::NoBandwidth { name: node.name.clone(), which })?
            }
        };
        // A triad of ordinary stores moves three lines in and one out.
        let triad = [Operation::Triad, Operation::Add, Operation::Copy, Operation::Scale].into_iter().find_map(best);
        let write = triad.map_or(read, |triad| 0.25 / (1.0 / triad - 0.75 / read).max(0.25 / (2.0 * read)));
        let latencies: Vec<f64> =
            node.latency.iter().filter(|row| row.memory == memory && usable(&row.time)).map(|row| row.time.median).collect();
        let latency_ns = latencies.iter().copied().min_by(f64::total_cmp).unwrap_or_else(|| {
            notes.push(format!("the latency of {which} memory is not known: {USUAL_LATENCY_NS:.0} ns are assumed"));
            USUAL_LATENCY_NS
        });
        let one_thread = node
            .scaling
            .iter()
            .filter(|row| row.memory == memory)
            .flat_map(|row| &row.points)
            .filter(|point| point.threads == 1 && usable(&point.rate))
            .map(|point| point.rate.median)
            .max_by(f64::total_cmp);
        let bytes = match memory {
            Memory::Node(_) => {
                let same = node.topology.nodes.iter().filter(|other| node.role(Memory::Node(other.id)) == node.role(memory));
                same.map(|node| node.bytes as f64).sum()
            }
            Memory::Cache(level) => {
                let caches = node.topology.caches.iter().filter(|cache| cache.level == level);
                caches.map(|cache| cache.bytes as f64 * f64::from(cache.instances.max(1))).sum()
            }
        };
        let mut tier = Self::plain(&node.memory_name(memory), read, latency_ns, bytes);
        tier.write = write.min(2.0 * read);
        tier.per_core = one_thread.unwrap_or(tier.per_core);
        let parallel = node.parallel_loads.iter().filter(|row| row.memory == memory).filter_map(ParallelLoads::most);
        // Of small and huge pages the fewer: most programs have small ones.
        tier.parallel_loads = parallel.min_by(f64::total_cmp);
        tier.loaded = loaded(node, memory);
        tier.by_threads = by_threads(node, memory);
        Ok(tier)
    }
}

/// The measured curve of latency by load, as shares and ratios.
fn loaded(node: &Node, memory: Memory) -> Vec<(f64, f64)> {
    let Some(row) = node.loaded.iter().find(|row| row.memory == memory) else { return Vec::new() };
    let usable = row.points.iter().filter(|point| point.time.median > 0.0);
    let most = usable.clone().map(|point| point.rate.median).fold(0.0, f64::max);
    let idle = usable.clone().map(|point| point.time.median).fold(f64::INFINITY, f64::min);
    if most <= 0.0 || !idle.is_finite() {
        return Vec::new();
    }
    let mut points: Vec<(f64, f64)> = usable.map(|point| (point.rate.median / most, point.time.median / idle)).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points.dedup_by(|a, b| a.0 - b.0 < 1e-6);
    points
}

/// The measured curve of bandwidth by threads, as shares of its highest point. Of several operations the one with most points counts.
fn by_threads(node: &Node, memory: Memory) -> Vec<(f64, f64)> {
    let usable = |row: &&crate::node::Scaling| row.memory == memory && row.points.len() > 1;
    let Some(row) = node.scaling.iter().filter(usable).max_by_key(|row| row.points.len()) else { return Vec::new() };
    let points = row.points.iter().filter(|point| point.rate.median > 0.0);
    let most = points.clone().map(|point| point.rate.median).fold(0.0, f64::max);
    let mut curve: Vec<(f64, f64)> = points.map(|point| (f64::from(point.threads), point.rate.median / most)).collect();
    curve.sort_by(|a, b| a.0.total_cmp(&b.0));
    // Up to the highest point what one core reaches says it; from there on memory does.
    let highest = curve.iter().position(|point| point.1 >= 1.0).unwrap_or(0);
    curve.split_off(highest)
}

fn memories(node: &Node) -> Vec<Memory> {
    let mut all: Vec<Memory> = node.topology.nodes.iter().map(|memory| Memory::Node(memory.id)).collect();
    for memory in node.bandwidth.iter().map(|row| row.memory).chain(node.latency.iter().map(|row| row.memory)) {
        if !all.contains(&memory) {
            all.push(memory);
        }
    }
    all
}

/// The memory of `node` that plays this part; the one that has figures before others.
fn of_role(node: &Node, role: Role) -> Option<Memory> {
    let of_role: Vec<Memory> = memories(node).into_iter().filter(|&memory| node.role(memory) == Some(role)).collect();
    let has = |memory: &&Memory| node.bandwidth.iter().any(|row| row.memory == **memory && row.rate.is_valid());
    of_role.iter().find(has).or(of_role.first()).copied()
}

impl Machine {
    /// The two memories of `node`; `home` is what the profile was taken on.
    ///
    /// # Errors
    /// It has one kind of memory only, or says no bandwidth.
    pub fn of_node(node: &Node, home: Option<Tier>) -> Result<Self, MachineError> {
        let mut notes = Vec::new();
        let one = || MachineError::OneMemory(node.name.clone());
        let (near, far) = (of_role(node, Role::Near).ok_or_else(one)?, of_role(node, Role::Far).ok_or_else(one)?);
        let near = Tier::of(node, near, "near", &mut notes)?;
        let far = Tier::of(node, far, "far", &mut notes)?;
        let home = home.unwrap_or_else(|| {
            notes.push(format!("the profile is assumed to come from {}, with everything far; if not, use --home", node.name));
            far.clone()
        });
        let (name, far, scaling) = (node.name.clone(), Far::Memory(far), Scaling::default());
        Ok(Self { name, near, far, home, cores: 0, cpus: 0, scaling, notes }.with_cores(node))
    }

    /// With the cores of `node`.
    #[must_use]
    pub fn with_cores(self, node: &Node) -> Self {
        let cores = node.topology.cores.unwrap_or(0);
        Self { cores, cpus: cores * node.topology.threads_per_core.unwrap_or(1), ..self }
    }

    /// What is left of it for the profiled ranks when they are this part of all that run on it.
    #[must_use]
    pub fn part(&self, part: f64) -> Self {
        let far = match &self.far {
            Far::Memory(tier) => Far::Memory(tier.part(part)),
            Far::Paged(paged) => {
                let cache_bytes = (paged.cache_bytes * part).max(LEAST_CACHE.min(paged.cache_bytes));
                Far::Paged(Paged { read: paged.read * part, write: paged.write * part, cache_bytes, ..paged.clone() })
            }
        };
        Self { near: self.near.part(part), far, scaling: Scaling { part, ..self.scaling }, ..self.clone() }
    }

    /// `home` over pages of `far`.
    pub fn paged(name: &str, home: Tier, far: Paged) -> Self {
        let scaling = Scaling::default();
        Self {
            name: name.to_owned(),
            near: home.clone(),
            far: Far::Paged(far),
            home,
            cores: 0,
            cpus: 0,
            scaling,
            notes: Vec::new(),
        }
    }

    /// The name of far.
    pub fn far_name(&self) -> &str {
        match &self.far {
            Far::Memory(tier) => &tier.name,
            Far::Paged(paged) => &paged.name,
        }
    }
}

/// The near memory of `node`, for the machine that a profile was taken on.
///
/// # Errors
/// It says no bandwidth.
pub fn home(node: &Node) -> Result<Tier, MachineError> {
    // Programs run in the memory of the CPUs unless somebody says otherwise.
    let cpus = |memory: &crate::node::MemoryNode| memory.cpus != crate::node::CpuList::default();
    let with_cpus = node.topology.nodes.iter().find(|memory| cpus(memory)).map(|memory| Memory::Node(memory.id));
    let memory = with_cpus.or_else(|| of_role(node, Role::Near)).unwrap_or_default();
    Tier::of(node, memory, "near", &mut Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::{Bandwidth, MemoryKind, MemoryNode, Stores};

    fn node() -> Node {
        let mut node = Node { name: "test".into(), ..Node::default() };
        for (id, kind, rate) in [(0, MemoryKind::Dram, 100e9), (1, MemoryKind::Hbm, 400e9)] {
            node.topology.nodes.push(MemoryNode { id, kind, bytes: 1 << 34, ..MemoryNode::default() });
            for (operation, rate, moved) in [(Operation::Read, rate, 8), (Operation::Triad, 0.6 * rate, 32)] {
                node.bandwidth.push(Bandwidth {
                    memory: Memory::Node(id),
                    operation,
                    stores: Stores::Ordinary,
                    counted_bytes: if moved == 8 { 8 } else { 24 },
                    moved_bytes: moved,
                    rate: Figure { median: rate, low: rate, high: rate, ..Figure::default() },
                    ..Bandwidth::default()
                });
            }
        }
        node
    }

    #[test]
    fn tiers_of_a_description() {
        let machine = Machine::of_node(&node(), None).unwrap();
        let Far::Memory(far) = &machine.far else { panic!("memory") };
        assert_eq!((machine.near.read, far.read, machine.near.bytes), (400e9, 100e9, (1u64 << 34) as f64));
        // 0.6 x 4/3 = 0.8 of the read rate: 1.25 units of time, 0.75 of them for reads.
        assert!((far.write - 50e9).abs() < 1e6, "{}", far.write);
        assert!(machine.notes.iter().any(|note| note.contains("latency")));
        let mut one = node();
        one.topology.nodes.pop();
        one.bandwidth.truncate(2);
        assert!(matches!(Machine::of_node(&one, None), Err(MachineError::OneMemory(_))));
        let mut mute = node();
        mute.bandwidth.clear();
        assert!(matches!(Machine::of_node(&mute, None), Err(MachineError::NoBandwidth { which: "near", .. })));
    }

    #[test]
    fn more_threads_than_are_best_reach_less_and_ranks_share() {
        let mut node = node();
        let points = [(1, 10e9), (64, 400e9), (256, 300e9)];
        let points =
            points.map(|(threads, median)| crate::node::ScalingPoint { threads, rate: Figure { median, ..Figure::default() } });
        node.scaling.push(crate::node::Scaling { memory: Memory::Node(1), points: points.into(), ..Default::default() });
        let machine = Machine::of_node(&node, None).expect("a machine");
        assert_eq!((machine.near.by_threads.clone(), machine.near.per_core), (vec![(64.0, 1.0), (256.0, 0.75)], 10e9));
        let time = |machine: &Machine, threads: f64| machine.near.seconds(400e9, 0.0, threads);
        assert!((time(&machine, 8.0) - 5.0).abs() < 1e-9 && (time(&machine, 64.0) - 1.0).abs() < 1e-9);
        assert!((time(&machine, 256.0) - 1.0 / 0.75).abs() < 1e-9);
        // A quarter of the machine: 64 of its 256 threads have a quarter of what these reach.
        let quarter = machine.part(0.25);
        assert!((time(&quarter, 64.0) - 4.0 / 0.75).abs() < 1e-9 && quarter.near.bytes == machine.near.bytes / 4.0);
        assert_eq!(quarter.scaling.part, 0.25);
        let paged = Machine::paged("p", machine.near, Paged::example(256e6)).part(0.5);
        let Far::Paged(paged) = paged.far else { panic!("pages") };
        assert_eq!((paged.read, paged.cache_bytes), (2e9, 128e6));
    }

    #[test]
    fn loads_under_way_are_those_of_the_memory() {
        use crate::node::{ParallelLoads, ParallelPoint};
        let mut node = node();
        let point = |(cycles, median)| ParallelPoint { cycles, time: Figure { median, ..Figure::default() } };
        let points = [(1, 120.0), (4, 30.0), (16, 10.0), (32, 12.0)].map(point);
        node.parallel_loads.push(ParallelLoads { memory: Memory::Node(1), points: points.into(), ..Default::default() });
        let machine = Machine::of_node(&node, None).expect("a machine");
        assert_eq!((machine.near.parallel_loads, machine.home.parallel_loads), (Some(12.0), None));
    }

    #[test]
    fn loads_take_longer_under_load() {
        let mut tier = Tier::plain("x", 10e9, 100.0, 1e9);
        assert!(tier.slowdown(0.0) == 1.0 && tier.slowdown(1.0) == USUAL_LOADED);
        tier.loaded = vec![(0.0, 1.0), (0.5, 1.5), (1.0, 4.0)];
        assert_eq!((tier.slowdown(0.25), tier.slowdown(2.0)), (1.25, 4.0));
    }
}
