//! Bandwidth: the operations of STREAM on arrays in one memory or cache, by threads pinned one to a CPU.
//!
//! Method: every thread works on its own contiguous part; repetitions start at a spin barrier and last from the first start to the last
//! end; the first one is dropped. Bytes are counted as STREAM does: what the program reads and writes. Checks: a sample of elements
//! after each repetition, every element after the last, exactly; sums of reads every time; arrays at least four times the last-level
//! cache; pages where they should be. Caches: each thread sweeps arrays of its own many times between two looks at the clock.

use super::arrays::{self, Arrays, Kernel, Kernels, equal, scalar};
use super::error::Error;
use super::region::{Proof, Region};
use super::simd;
use super::team::{self, Span};
use crate::spin_barrier::SpinBarrier;
use nearfar_core::node::{Bandwidth, Figure, Memory, Missing, Operation, Pages, Scaling, ScalingPoint, Stores};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Timed repetitions of a row, whatever the budget.
const LEAST: usize = 5;
/// More tell nothing new.
const MOST: usize = 100;
/// Shortest timed repetition in a cache: reading the clock is nothing beside it.
const CACHE_REPETITION: Duration = Duration::from_millis(1);

/// What to measure bandwidth with.
#[derive(Clone, Debug)]
pub struct StreamSetting<'a> {
    /// One thread on each; all are used by this process alone for the time.
    pub cpus: &'a [u32],
    /// The NUMA node of the CPUs; none for CPUs of several nodes.
    pub cpu_node: Option<u32>,
    /// Where the arrays are. For a cache they come from wherever the kernel takes them.
    pub memory: Memory,
    /// What to measure, in this order; the arrays are made once for all.
    pub rows: &'a [(Operation, Stores)],
    /// For a node: bytes of one of the three arrays, all threads together. For a cache: bytes of all three arrays of one thread, half
    /// of what the thread has of that cache.
    pub array_bytes: u64,
    /// Pages to ask for; huge ones are taken where there are any.
    pub pages: Pages,
    /// The last-level cache of all CPUs in use together (memory-side caches included); none when it is not known.
    pub llc_bytes: Option<u64>,
    /// Wall time for all rows together, without making and checking the arrays.
    pub budget: Duration,
    /// Memory that may be used: the least of what the node has free and the cgroup leaves.
    pub limit_bytes: u64,
}

/// Rows that were measured, and those that could not be.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// In the order asked for.
    pub rows: Vec<Bandwidth>,
    /// What this processor does not have.
    pub missing: Vec<Missing>,
}

/// How bandwidth grows with the number of threads.
#[derive(Clone, Debug)]
pub struct ScalingSetting<'a> {
    /// As for [`bandwidth`]; the first row alone is measured, the budget is for all numbers of threads together. CPUs are used in their
    /// order: with 2 threads, the first two.
    pub stream: StreamSetting<'a>,
    /// Ascending numbers of threads; those that there are no CPUs for are left out. Empty: 1, 2, 4, ... and all.
    pub threads: &'a [u32],
}

/// Measures the rows.
///
/// # Errors
/// Memory or CPUs could not be had; nothing was measured then.
pub fn bandwidth(setting: &StreamSetting) -> Result<Measured, Error> {
    bandwidth_with(&simd::fastest(), setting)
}

fn bandwidth_with(kernels: &Kernels, setting: &StreamSetting) -> Result<Measured, Error> {
    let mut measured = Measured::default();
    let mut steps = Vec::new();
    for &(operation, stores) in setting.rows {
        match kernels.of(operation, stores) {
            Some(kernel) => steps.push(Step { operation, stores, kernel, threads: setting.cpus.len() }),
            None => measured.missing.push(Missing {
                what: format!("bandwidth of {} with {stores:?} stores", operation.name()),
                why: "not available on this architecture".into(),
            }),
        }
    }
    let (figures, proof) = measure(setting, &steps)?;
    let row = |(step, (rate, array_bytes)): (&Step, (Figure, u64))| Bandwidth {
        cpu_node: setting.cpu_node,
        memory: setting.memory,
        operation: step.operation,
        stores: step.stores,
        threads: step.threads as u32,
        array_bytes,
        counted_bytes: counted(step.operation),
        moved_bytes: counted(step.operation) + allocated(step.stores, setting.memory),
        pages: proof.pages,
        rate,
    };
    measured.rows = steps.iter().zip(figures).map(row).collect();
    Ok(measured)
}

/// Measures the first row of the setting by number of threads.
///
/// # Errors
/// Memory or CPUs could not be had, or the processor has no such operation; nothing was measured then.
pub fn scaling(setting: &ScalingSetting) -> Result<Scaling, Error> {
    let all = setting.stream.cpus.len();
    let &(operation, stores) = setting.stream.rows.first().ok_or(Error::Setting("no operation was named"))?;
    let kernel = simd::fastest().of(operation, stores).ok_or(Error::Setting("not available on this architecture"))?;
    let mut counts: Vec<usize> = setting.threads.iter().map(|&threads| threads as usize).collect();
    if counts.is_empty() {
        counts = std::iter::successors(Some(1), |threads| Some(threads * 2)).take_while(|&threads| threads < all).collect();
        counts.push(all);
    }
    counts.retain(|&threads| (1..=all).contains(&threads));
    let steps: Vec<Step> = counts.iter().map(|&threads| Step { operation, stores, kernel, threads }).collect();
    let (figures, _) = measure(&setting.stream, &steps)?;
    let points = steps.iter().zip(figures).map(|(step, (rate, _))| ScalingPoint { threads: step.threads as u32, rate }).collect();
    Ok(Scaling { memory: setting.stream.memory, operation, stores, points })
}

/// Bytes per element that STREAM counts.
const fn counted(operation: Operation) -> u32 {
    8 * (operation.reads() + operation.writes()) as u32
}

/// Bytes per element that a store reads beside: the line, unless it is written past the caches or is in the first-level one already.
fn allocated(stores: Stores, memory: Memory) -> u32 {
    if stores == Stores::Ordinary && memory != Memory::Cache(1) { 8 } else { 0 }
}

/// One row for the threads.
#[derive(Clone, Copy)]
struct Step {
    operation: Operation,
    stores: Stores,
    kernel: Kernel,
    threads: usize,
}

/// What one thread has to say of one step.
#[derive(Default)]
struct Log {
    spans: Vec<Span>,
    sweeps: usize,
    wrong: u64,
}

/// Figures of the steps, with the bytes of the arrays that each uses.
fn measure(setting: &StreamSetting, steps: &[Step]) -> Result<(Vec<(Figure, u64)>, Proof), Error> {
    let threads = setting.cpus.len();
    let is_cache = matches!(setting.memory, Memory::Cache(_));
    // What is to be in a cache may come from any memory: the node of the CPUs may have none, or not be ours.
    let node = if let Memory::Node(node) = setting.memory { Some(node) } else { None };
    let len = arrays::elements(if is_cache { setting.array_bytes / 3 } else { setting.array_bytes });
    if !is_cache && len / arrays::UNIT < threads {
        return Err(Error::Setting("the arrays have less than a line for each thread"));
    }
    let sets = if is_cache { threads } else { 1 };
    let region = Region::new(arrays::region_bytes(len, sets), node, setting.pages, setting.limit_bytes)?;
    let arrays = Arrays::new(&region, len, is_cache.then_some(threads));
    let orders = Orders {
        phase: Barrier::new(threads),
        barriers: steps.iter().map(|step| SpinBarrier::new(step.threads)).collect(),
        sweeps: AtomicUsize::new(1),
        repetitions: AtomicUsize::new(0),
        budget: setting.budget / steps.len().max(1) as u32,
        is_cache,
    };
    let logs = team::run(setting.cpus, vec![(); threads], |index, ()| {
        // SAFETY: parts of different threads share no element.
        unsafe { arrays.part(index, threads).fill() };
        let mut logs: Vec<Log> = Vec::with_capacity(steps.len());
        for (number, step) in steps.iter().enumerate() {
            orders.phase.wait();
            // Threads that do not take part sleep at the next phase.
            let idle = index >= step.threads;
            logs.push(if idle { Log::default() } else { orders.work(&arrays, index, step, number) });
        }
        orders.phase.wait();
        // SAFETY: nobody writes any more.
        (logs, unsafe { arrays.part(index, threads).wrong_inputs() })
    })?;
    let proof = region.proof();
    let spoilt_inputs: u64 = logs.iter().map(|(_, wrong)| wrong).sum();
    let per_element = |step: &Step| (step.operation.reads() + step.operation.writes()) as u64;
    let figures = steps.iter().enumerate().map(|(number, step)| {
        let logs: Vec<&Log> = logs.iter().take(step.threads).map(|(logs, _)| &logs[number]).collect();
        let elements = if is_cache { len * step.threads } else { len };
        let used = elements as u64 * 8 * per_element(step);
        let figure = judge(setting, &logs, elements, step, spoilt_inputs);
        (proof.judge(figure), used)
    });
    Ok((figures.collect(), proof))
}

fn judge(setting: &StreamSetting, logs: &[&Log], elements: usize, step: &Step, spoilt_inputs: u64) -> Figure {
    let wrong: u64 = logs.iter().map(|log| log.wrong).sum();
    if wrong > 0 {
        return Figure::invalid(format!("{wrong} results of {} are wrong", step.operation.name()));
    }
    if spoilt_inputs > 0 {
        return Figure::invalid(format!("{spoilt_inputs} elements that are only read have changed"));
    }
    let sweeps = logs.first().map_or(1, |log| log.sweeps);
    let bytes = counted(step.operation) as f64 * elements as f64 * sweeps as f64;
    let spans: Vec<Vec<Span>> = logs.iter().map(|log| log.spans.clone()).collect();
    let rates: Vec<f64> = team::seconds(&spans).into_iter().map(|seconds| bytes / seconds).collect();
    super::judge_size(Figure::of(&rates), setting.memory, elements as u64 * 8, setting.llc_bytes)
}

/// How threads keep in step.
struct Orders {
    phase: Barrier,
    /// One per step: only the threads of the step meet there.
    barriers: Vec<SpinBarrier>,
    /// Sweeps in a repetition, and timed repetitions: said by the first thread.
    sweeps: AtomicUsize,
    repetitions: AtomicUsize,
    budget: Duration,
    is_cache: bool,
}

impl Orders {
    /// One step by one thread: a repetition to warm up, in caches two and one of the final length, then the timed ones.
    fn work(&self, arrays: &Arrays, index: usize, step: &Step, number: usize) -> Log {
        let barrier = &self.barriers[number];
        let part = arrays.part(index, step.threads);
        let sum = if step.operation == Operation::Read { part.sum() } else { 0.0 };
        let mut log = Log { sweeps: 1, ..Log::default() };
        // Numbers go on from step to step, so that what a step left is wrong in the next.
        let mut repetition = number * (MOST + 8);
        let mut once = |log: &mut Log, last: bool| {
            repetition += 1;
            let s = scalar(repetition);
            // SAFETY: the part is this thread's; the kernel's set was chosen by what the processor has.
            unsafe { part.prepare(step.operation, repetition, last) };
            barrier.wait();
            let start = Instant::now();
            for _ in 0..log.sweeps {
                // SAFETY: as above.
                let result = unsafe { (step.kernel)(&part, s) };
                log.wrong += u64::from(step.operation == Operation::Read && !equal(result, sum));
            }
            let end = Instant::now();
            barrier.wait();
            // SAFETY: as above.
            log.wrong += unsafe { part.wrong(step.operation, repetition, last) };
            (start, end)
        };
        let mut span = once(&mut log, false);
        if self.is_cache {
            span = once(&mut log, false);
            log.sweeps = self.agree(index, barrier, &self.sweeps, || {
                team::repetitions(CACHE_REPETITION, span.1.duration_since(span.0), 1, 1 << 24)
            });
            span = once(&mut log, false);
        }
        let timed = self.agree(index, barrier, &self.repetitions, || {
            team::repetitions(self.budget, span.1.duration_since(span.0), LEAST, MOST)
        });
        for left in (0..timed).rev() {
            let span = once(&mut log, left == 0);
            log.spans.push(span);
        }
        log
    }

    /// The number that the first thread finds, for all.
    fn agree(&self, index: usize, barrier: &SpinBarrier, place: &AtomicUsize, find: impl FnOnce() -> usize) -> usize {
        if index == 0 {
            place.store(find(), Ordering::Relaxed);
        }
        barrier.wait();
        let found = place.load(Ordering::Relaxed);
        // Nobody finds the next number before all have read this one.
        barrier.wait();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::super::arrays::{Part, Writers};
    use super::super::simd_portable::PORTABLE;
    use super::*;
    use nearfar_core::node::Validity;

    const TRIAD: [(Operation, Stores); 1] = [(Operation::Triad, Stores::Ordinary)];

    fn setting<'a>(cpus: &'a [u32], rows: &'a [(Operation, Stores)]) -> StreamSetting<'a> {
        StreamSetting {
            cpus,
            cpu_node: None,
            memory: Memory::Node(0),
            rows,
            array_bytes: 1 << 20,
            pages: Pages::Small,
            llc_bytes: Some(1 << 18),
            budget: Duration::from_millis(20),
            limit_bytes: 1 << 30,
        }
    }

    /// A triad that leaves out the second half: STREAM says that its results are right when it is repeated often enough.
    unsafe fn half_a_triad(part: &Part, s: f64) -> f64 {
        let half = Part { len: part.len / 2, ..*part };
        // SAFETY: a shorter part of what the caller gave; SSE2 or nothing special is what every processor here has.
        unsafe { (PORTABLE.ordinary.triad)(&half, s) }
    }

    const fn with(ordinary: Writers) -> Kernels {
        Kernels { ordinary, ..PORTABLE }
    }

    #[test]
    fn half_a_triad_is_invalid_however_often_it_is_repeated() {
        let cpus = team::own_cpus();
        for budget in [0, 5, 100] {
            let setting = StreamSetting { budget: Duration::from_millis(budget), ..setting(&cpus, &TRIAD) };
            let measured =
                bandwidth_with(&with(Writers { triad: half_a_triad, ..PORTABLE.ordinary }), &setting).expect("measured");
            let rate = &measured.rows[0].rate;
            assert!(rate.validity == Validity::Invalid && rate.why.contains("results of triad are wrong"), "{rate:?}");
        }
    }

    #[test]
    fn a_kernel_that_works_in_its_first_repetitions_only_is_invalid() {
        static CALLS: AtomicUsize = AtomicUsize::new(0);
        unsafe fn tired(part: &Part, s: f64) -> f64 {
            if CALLS.fetch_add(1, Ordering::Relaxed) > 2 {
                return 0.0;
            }
            // SAFETY: passed on; the last set needs nothing special of the processor.
            unsafe { (PORTABLE.ordinary.copy)(part, s) }
        }
        let cpus = [team::own_cpus()[0]];
        let rows = [(Operation::Copy, Stores::Ordinary)];
        let kernels = with(Writers { copy: tired, ..PORTABLE.ordinary });
        let measured = bandwidth_with(&kernels, &setting(&cpus, &rows)).expect("measured");
        assert!(measured.rows[0].rate.why.contains("results of copy are wrong"), "{measured:?}");
    }

    #[test]
    fn all_rows_are_right_and_count_their_bytes() {
        let cpus = team::own_cpus();
        let mut rows = vec![(Operation::Read, Stores::None)];
        for operation in &Operation::ALL[1..] {
            rows.extend([(*operation, Stores::Ordinary), (*operation, Stores::NonTemporal)]);
        }
        let measured = bandwidth(&setting(&cpus, &rows)).expect("measured");
        assert_eq!(measured.rows.len() + measured.missing.len(), rows.len());
        for row in &measured.rows {
            assert!(row.rate.is_valid() && row.rate.runs >= LEAST as u32 && row.rate.median > 1e6, "{row:?}");
            assert_eq!(row.threads as usize, cpus.len());
        }
        let of = |operation, stores| measured.rows.iter().find(|row| row.operation == operation && row.stores == stores);
        let triad = of(Operation::Triad, Stores::Ordinary).expect("measured");
        assert_eq!((triad.counted_bytes, triad.moved_bytes, triad.array_bytes), (24, 32, 3 << 20));
        let read = of(Operation::Read, Stores::None).expect("measured");
        assert_eq!((read.counted_bytes, read.moved_bytes, read.array_bytes), (8, 8, 1 << 20));
        assert!(of(Operation::Copy, Stores::NonTemporal).is_none_or(|row| row.moved_bytes == 16));
    }

    #[test]
    fn small_arrays_and_other_nodes_are_refused() {
        let cpus = team::own_cpus();
        let small = bandwidth(&StreamSetting { llc_bytes: Some(1 << 19), ..setting(&cpus, &TRIAD) }).expect("measured");
        assert_eq!(small.rows[0].rate.why, "arrays smaller than four times the last-level cache");
        let unknown = bandwidth(&StreamSetting { llc_bytes: None, ..setting(&cpus, &TRIAD) }).expect("measured");
        assert!(unknown.rows[0].rate.is_valid() && unknown.rows[0].rate.why.contains("cache unknown"), "{unknown:?}");
        let limit = bandwidth(&StreamSetting { limit_bytes: 1 << 20, ..setting(&cpus, &TRIAD) });
        assert!(matches!(limit, Err(Error::TooLarge { .. })), "{limit:?}");
        if let Ok(far) = bandwidth(&StreamSetting { memory: Memory::Node(900), ..setting(&cpus, &TRIAD) }) {
            assert!(far.rows[0].rate.why.contains("not verified"), "a system without NUMA calls: {far:?}");
        }
        assert!(bandwidth(&setting(&[], &TRIAD)).is_err());
    }

    #[test]
    fn caches_and_thread_counts() {
        let cpus = team::own_cpus();
        let cache = StreamSetting { memory: Memory::Cache(1), array_bytes: 16 << 10, llc_bytes: None, ..setting(&cpus, &TRIAD) };
        let row = &bandwidth(&cache).expect("measured").rows[0];
        assert!(row.rate.is_valid() && row.moved_bytes == 24 && row.array_bytes <= (16 << 10) * cpus.len() as u64, "{row:?}");
        let scaling = scaling(&ScalingSetting { stream: setting(&cpus, &TRIAD), threads: &[] }).expect("measured");
        let threads: Vec<u32> = scaling.points.iter().map(|point| point.threads).collect();
        assert_eq!((threads[0], threads[threads.len() - 1] as usize), (1, cpus.len()));
        assert!(scaling.points.iter().all(|point| point.rate.is_valid()), "{scaling:?}");
    }
}
