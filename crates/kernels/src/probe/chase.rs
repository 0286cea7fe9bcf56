//! Latency: the time of a load whose address the load before gave, so that nothing overlaps, on an otherwise idle machine.
//!
//! Two orders of visits (as in multichase): page-local, where address translation always hits, and random, where it is part of the
//! figure. Before timing, lines that the walk will not reach are loaded into the caches, so that none that it will reach is there; the
//! timed runs visit each line once. Checks: a walk must end where the cycle says, every pointer must be right afterwards, and the
//! region must be large enough, on its node and of its pages. What is given as pages is what was proved, not what was asked for.

use super::error::Error;
use super::parallel;
use super::region::{Region, page_size};
use super::ring::{Ring, drive_out, walk};
use super::team;
use nearfar_core::node::{Chase, Figure, Latency, Memory, Pages, ParallelLoads, ParallelPoint};
use std::time::{Duration, Instant};

/// Timed runs, after one that is dropped.
const RUNS: usize = 15;
/// Hops of a run, whatever the budget.
const LEAST_HOPS: usize = 4096;
/// Bytes of a line in a cache.
const LINE: usize = 64;

/// What to measure latency with.
#[derive(Clone, Debug)]
pub struct ChaseSetting<'a> {
    /// The CPU that walks.
    pub cpu: u32,
    /// CPUs that write and check the pointers, before and after; the more, the sooner it is done.
    pub helpers: &'a [u32],
    /// The NUMA node of `cpu`.
    pub cpu_node: u32,
    /// Where the data are. For a cache they come from wherever the kernel takes them.
    pub memory: Memory,
    /// Orders of visits, one row each, on the same memory.
    pub chases: &'a [Chase],
    /// Pages to ask for.
    pub pages: Pages,
    /// Bytes of the data: at least four times the last-level cache, or half of what the CPU has of a cache.
    pub bytes: u64,
    /// The last-level cache of the CPU (memory-side caches included); none when it is not known.
    pub llc_bytes: Option<u64>,
    /// Wall time of all walks together, without writing and checking the pointers; parallel loads take about as much again.
    pub budget: Duration,
    /// Memory that may be used: the least of what the node has free and the cgroup leaves.
    pub limit_bytes: u64,
}

/// Measures one row for each order of visits, and parallel loads where lines of a node are visited at random and there are enough of them.
///
/// # Errors
/// Memory or CPUs could not be had; nothing was measured then.
pub fn latency(setting: &ChaseSetting) -> Result<(Vec<Latency>, Option<ParallelLoads>), Error> {
    let node = if let Memory::Node(node) = setting.memory { Some(node) } else { None };
    let bytes = setting.bytes as usize;
    let region = Region::new(bytes, node, setting.pages, setting.limit_bytes)?;
    let budget = setting.budget / setting.chases.len().max(1) as u32;
    let helpers = if setting.helpers.is_empty() { std::slice::from_ref(&setting.cpu) } else { setting.helpers };
    let mut rows = Vec::with_capacity(setting.chases.len());
    let mut parallel = None;
    for &chase in setting.chases {
        let ring = Ring::new(chase, bytes);
        team::run(helpers, vec![(); helpers.len()], |index, ()| {
            // SAFETY: each thread has slots of its own.
            unsafe { ring.link(&region, ring.share(index, helpers.len())) }
        })?;
        if rows.is_empty() {
            fill_rest(&region, bytes);
        }
        let (figure, points) = team::run(&[setting.cpu], vec![()], |_, ()| {
            let (figure, done) = time(setting, &region, &ring, budget);
            let is_parallel = chase == Chase::Random && node.is_some();
            let points = is_parallel.then(|| parallel::points(&region, &ring, done, budget, figure.median));
            (figure, points.unwrap_or_default())
        })?
        .remove(0);
        let broken = team::run(helpers, vec![(); helpers.len()], |index, ()| {
            // SAFETY: all was linked, and nobody writes any more.
            unsafe { ring.broken(&region, ring.share(index, helpers.len())) }
        })?;
        let broken: usize = broken.into_iter().sum();
        let proof = region.proof();
        let judge = |figure: Figure| match broken {
            0 => super::judge_size(proof.judge(figure), setting.memory, setting.bytes, setting.llc_bytes),
            _ => Figure::invalid(format!("{broken} pointers of the cycle are wrong")),
        };
        let time = judge(figure);
        let pages = proof.pages.unwrap_or(setting.pages);
        if !points.is_empty() {
            let points = points.into_iter().map(|point| ParallelPoint { time: judge(point.time), ..point }).collect();
            let (cpu_node, memory, bytes) = (setting.cpu_node, setting.memory, setting.bytes);
            parallel = Some(ParallelLoads { cpu_node, memory, pages, bytes, points });
        }
        rows.push(Latency { cpu_node: setting.cpu_node, memory: setting.memory, chase, pages, bytes: setting.bytes, time });
    }
    Ok((rows, parallel))
}

/// Touches what a ring of whole groups leaves out at its end: the proof is of all that was asked for.
fn fill_rest(region: &Region, bytes: usize) {
    let page = page_size();
    let from = bytes.saturating_sub(64 * page) / page * page;
    for at in (from..bytes).step_by(page) {
        // SAFETY: inside the region, which no thread uses now; what is there stays.
        unsafe {
            let byte = region.as_mut_ptr().add(at);
            byte.write_volatile(byte.read_volatile());
        }
    }
}

/// Nanoseconds per hop, by the thread that walks, and the places that were visited.
fn time(setting: &ChaseSetting, region: &Region, ring: &Ring, budget: Duration) -> (Figure, usize) {
    let mut done = 0;
    let mut at = ring.at(region, 0);
    let mut run = |hops: usize| {
        let start = Instant::now();
        // SAFETY: the ring was linked, and nobody writes to it now.
        at = unsafe { walk(at, hops) };
        let seconds = start.elapsed().as_secs_f64();
        done += hops;
        (seconds * 1e9 / hops as f64, at == ring.at(region, done))
    };
    let most = if matches!(setting.memory, Memory::Cache(_)) {
        // All of it comes into the cache.
        run(2 * ring.slots());
        usize::MAX
    } else {
        // SAFETY: as above.
        unsafe { drive_out(ring, region, lines_to_load(setting.llc_bytes, setting.bytes) / 16) };
        (ring.slots() / 4 / RUNS).max(LEAST_HOPS)
    };
    let (first, right) = run(LEAST_HOPS);
    let fit = budget.as_secs_f64() * 1e9 / first.max(0.1) / (RUNS + 1) as f64;
    let hops = (fit as usize).clamp(LEAST_HOPS, most);
    let mut all_right = right & run(hops.min(2 * LEAST_HOPS)).1;
    let mut times = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        let (nanoseconds, right) = run(hops);
        times.push(nanoseconds);
        all_right &= right;
    }
    (if all_right { Figure::of(&times) } else { Figure::invalid("the walk left its cycle") }, done)
}

/// Lines that fill the caches twice over.
pub fn lines_to_load(llc_bytes: Option<u64>, bytes: u64) -> usize {
    (2 * llc_bytes.unwrap_or(bytes / 8)) as usize / LINE
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearfar_core::node::Validity;

    fn setting<'a>(helpers: &'a [u32], chases: &'a [Chase]) -> ChaseSetting<'a> {
        ChaseSetting {
            cpu: helpers[0],
            helpers,
            cpu_node: 0,
            memory: Memory::Node(0),
            chases,
            pages: Pages::Small,
            bytes: 5 << 20,
            llc_bytes: Some(1 << 20),
            budget: Duration::from_millis(20),
            limit_bytes: 1 << 30,
        }
    }

    #[test]
    fn both_orders_give_a_row() {
        let cpus = team::own_cpus();
        let (rows, _) = latency(&setting(&cpus, &[Chase::PageLocal, Chase::Random])).expect("measured");
        assert_eq!([rows[0].chase, rows[1].chase], [Chase::PageLocal, Chase::Random]);
        for row in &rows {
            assert!(row.time.is_valid() && row.time.runs == RUNS as u32 && row.time.median > 0.1, "{row:?}");
            assert_eq!((row.pages, row.bytes), (Pages::Small, 5 << 20));
        }
    }

    #[test]
    fn loads_that_do_not_wait_for_each_other_go_on_together() {
        let cpus = team::own_cpus();
        let large = ChaseSetting { bytes: 64 << 20, budget: Duration::from_millis(60), ..setting(&cpus, &[Chase::Random]) };
        let (rows, parallel) = latency(&large).expect("measured");
        let parallel = parallel.expect("there is room for it");
        assert_eq!((rows.len(), parallel.points.len(), parallel.bytes), (1, 6, 64 << 20));
        // Any core of the last thirty years has more than one under way.
        assert!(parallel.most().expect("valid") > 1.2, "{parallel:?}");
        assert!(parallel.points.iter().all(|point| point.time.is_valid()), "{parallel:?}");
        let (_, none) = latency(&setting(&cpus, &[Chase::PageLocal])).expect("measured");
        assert_eq!(none, None);
    }

    #[test]
    fn data_that_fit_the_cache_are_no_memory() {
        let cpus = team::own_cpus();
        let small = ChaseSetting { llc_bytes: Some(2 << 20), ..setting(&cpus, &[Chase::Random]) };
        assert_eq!(latency(&small).expect("measured").0[0].time.validity, Validity::Invalid);
        let cache = ChaseSetting { memory: Memory::Cache(1), bytes: 16 << 10, ..setting(&cpus, &[Chase::Random]) };
        assert!(latency(&cache).expect("measured").0[0].time.is_valid());
        assert!(latency(&ChaseSetting { limit_bytes: 1 << 20, ..setting(&cpus, &[Chase::Random]) }).is_err());
        assert!(latency(&ChaseSetting { cpu: 60_000, ..setting(&cpus, &[Chase::Random]) }).is_err());
    }
}
