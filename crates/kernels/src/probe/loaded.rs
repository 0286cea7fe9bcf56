//! Latency under load: one CPU chases pointers while the others read (or read and write) the same memory at a set pace.
//!
//! Each injector visits one line after another of a buffer of its own and spins a set number of loop rounds (about one clock each)
//! between two lines. Their bytes are counted over the very interval in which the chaser's loads are timed. For reads and writes, every
//! step loads one line and stores to another, which is read before it is written (write-allocate): two lines in, one out, and all three
//! are counted. Checks: the walk ends where its cycle says, pointers are right, injectors find in every line what they wrote.

use super::chase::lines_to_load;
use super::error::Error;
use super::region::Region;
use super::ring::{Ring, drive_out, walk};
use super::team;
use nearfar_core::node::{Chase, Figure, Injection, LoadPoint, LoadedLatency, Memory, Pages, Validity};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Delays of a whole curve (those of Intel MLC).
pub const DELAYS: [u32; 19] = [0, 2, 8, 15, 50, 100, 200, 300, 400, 500, 700, 1000, 1300, 1700, 2500, 3500, 5000, 9000, 20000];
/// Delays of a short one.
pub const QUICK_DELAYS: [u32; 6] = [0, 15, 100, 300, 700, 2500];

/// Timed runs of a point, after a pause in which the new load settles.
const RUNS: usize = 9;
/// How long a new load settles.
const SETTLE: Duration = Duration::from_millis(3);
/// Hops between two looks at the clock.
const BATCH: usize = 256;
/// Bytes of a line.
const LINE: usize = 64;
/// Orders to injectors beside delays, which are smaller.
const REST: u32 = u32::MAX;
const STOP: u32 = u32::MAX - 1;

/// What to measure loaded latency with.
#[derive(Clone, Debug)]
pub struct LoadedSetting<'a> {
    /// The CPU that chases.
    pub cpu: u32,
    /// The CPUs that load the memory, `cpu` not among them.
    pub injectors: &'a [u32],
    /// The NUMA node of the CPUs.
    pub cpu_node: u32,
    /// The NUMA node of the memory.
    pub node: u32,
    /// What the injectors do.
    pub injection: Injection,
    /// Loop rounds between two lines, one point each; see [`DELAYS`]. A point without load is always measured first.
    pub delays: &'a [u32],
    /// Bytes that are chased: at least four times the last-level cache.
    pub bytes: u64,
    /// Bytes that each injector visits; all of them together at least four times the last-level cache.
    pub injector_bytes: u64,
    /// The last-level cache of all CPUs in use (memory-side caches included); none when it is not known.
    pub llc_bytes: Option<u64>,
    /// Wall time of all points together, without writing and checking the data.
    pub budget: Duration,
    /// Memory that may be used: the least of what the node has free and the cgroup leaves.
    pub limit_bytes: u64,
}

/// Measures the curve: the lowest load first.
///
/// # Errors
/// There is no CPU to load the memory with, or memory or CPUs could not be had; nothing was measured then.
pub fn loaded(setting: &LoadedSetting) -> Result<LoadedLatency, Error> {
    if setting.injectors.is_empty() || setting.injectors.contains(&setting.cpu) {
        return Err(Error::TooFewCpus("only one CPU may be used there: none is left to load the memory while it chases"));
    }
    let threads = setting.injectors.len() + 1;
    let lines = (setting.injector_bytes as usize / LINE).max(2);
    let injected = lines * LINE * setting.injectors.len();
    let needed = setting.bytes.saturating_add(injected as u64);
    if needed > setting.limit_bytes {
        return Err(Error::TooLarge { needed, limit: setting.limit_bytes });
    }
    let bytes = setting.bytes as usize;
    let chased = Region::new(bytes, Some(setting.node), Pages::Huge, u64::MAX)?;
    let buffers = Region::new(injected, Some(setting.node), Pages::Huge, u64::MAX)?;
    let ring = Ring::new(Chase::PageLocal, chased.len());
    let orders = Orders {
        order: AtomicU32::new(REST),
        moved: setting.injectors.iter().map(|_| Counter::default()).collect(),
        ready: Barrier::new(threads),
    };
    let mut delays: Vec<u32> = setting.delays.iter().copied().filter(|&delay| delay < STOP).collect();
    delays.sort_unstable_by(|a, b| b.cmp(a));
    delays.dedup();
    let cpus: Vec<u32> = std::iter::once(setting.cpu).chain(setting.injectors.iter().copied()).collect();
    let results = team::run(&cpus, vec![(); threads], |index, ()| {
        // SAFETY: each thread has slots of its own.
        unsafe { ring.link(&chased, ring.share(index, threads)) };
        orders.ready.wait();
        let mut result = Done::default();
        if let Some(number) = index.checked_sub(1) {
            let injector = Injector { base: number * lines, lines, injection: setting.injection };
            // SAFETY: the lines of this injector alone.
            result.wrong = unsafe { injector.run(&buffers, &orders, number) };
        } else {
            orders.ready.wait();
            let curve = Curve { setting, chased: &chased, ring: &ring, orders: &orders };
            (result.points, result.wrong) = curve.measure(&delays);
            orders.order.store(STOP, Ordering::Relaxed);
        }
        orders.ready.wait();
        // SAFETY: all was linked, and nobody writes any more.
        result.wrong += unsafe { ring.broken(&chased, ring.share(index, threads)) } as u64;
        result
    })?;
    let wrong: u64 = results.iter().map(|result| result.wrong).sum();
    let mut points = results.into_iter().next().map(|result| result.points).unwrap_or_default();
    let whole = setting.bytes.min(injected as u64);
    let proofs = [chased.proof(), buffers.proof()];
    for figure in points.iter_mut().flat_map(|point| [&mut point.time, &mut point.rate]) {
        let mut judged = std::mem::take(figure);
        for proof in &proofs {
            judged = proof.judge(judged);
        }
        judged = super::judge_size(judged, Memory::Node(setting.node), whole, setting.llc_bytes);
        *figure = if wrong > 0 { Figure::invalid(format!("{wrong} checked data are wrong")) } else { judged };
    }
    Ok(LoadedLatency {
        cpu_node: setting.cpu_node,
        memory: Memory::Node(setting.node),
        injection: setting.injection,
        injectors: setting.injectors.len() as u32,
        points,
    })
}

#[derive(Default)]
struct Done {
    points: Vec<LoadPoint>,
    wrong: u64,
}

/// Bytes that an injector has moved, in a line of its own (two, for processors that fetch pairs).
#[derive(Default)]
#[repr(align(128))]
struct Counter(AtomicU64);

struct Orders {
    /// A delay, or one of the special orders.
    order: AtomicU32,
    moved: Vec<Counter>,
    ready: Barrier,
}

impl Orders {
    fn moved(&self) -> u64 {
        self.moved.iter().map(|counter| counter.0.load(Ordering::Relaxed)).sum()
    }
}

/// The chaser's part.
struct Curve<'a> {
    setting: &'a LoadedSetting<'a>,
    chased: &'a Region,
    ring: &'a Ring,
    orders: &'a Orders,
}

impl Curve<'_> {
    /// The points, and 1 when the walk left its cycle.
    fn measure(&self, delays: &[u32]) -> (Vec<LoadPoint>, u64) {
        let setting = self.setting;
        // SAFETY: the ring was linked, and nobody writes to it now.
        unsafe { drive_out(self.ring, self.chased, lines_to_load(setting.llc_bytes, setting.bytes) / 16) };
        let run = setting.budget / ((delays.len() + 1) * (RUNS + 1)) as u32;
        let (mut at, mut done) = (self.ring.at(self.chased, 0), 0usize);
        let mut walk_for = |time: Duration| {
            let start = Instant::now();
            let before = self.orders.moved();
            let mut hops = 0;
            loop {
                // SAFETY: as above.
                at = unsafe { walk(at, BATCH) };
                hops += BATCH;
                let elapsed = start.elapsed();
                if elapsed >= time {
                    done += hops;
                    let moved = self.orders.moved() - before;
                    return (elapsed.as_secs_f64() * 1e9 / hops as f64, moved as f64 / elapsed.as_secs_f64());
                }
            }
        };
        let mut points = Vec::with_capacity(delays.len() + 1);
        for delay in std::iter::once(None).chain(delays.iter().copied().map(Some)) {
            self.orders.order.store(delay.unwrap_or(REST), Ordering::Relaxed);
            walk_for(SETTLE.max(run));
            let runs: Vec<(f64, f64)> = (0..RUNS).map(|_| walk_for(run)).collect();
            let time = Figure::of(&runs.iter().map(|run| run.0).collect::<Vec<_>>());
            let rates: Vec<f64> = runs.iter().map(|run| run.1).collect();
            // No load is a rate of zero, which is no failure.
            let rate = if delay.is_none() { Figure { runs: RUNS as u32, ..Figure::default() } } else { loads(&rates) };
            points.push(LoadPoint { delay, time, rate });
        }
        (points, u64::from(at != self.ring.at(self.chased, done)))
    }
}

/// The rate of the load. A run in which nothing was moved is one in which no injector had its CPU: noise, unless all are such.
fn loads(rates: &[f64]) -> Figure {
    let moved: Vec<f64> = rates.iter().copied().filter(|rate| *rate > 0.0).collect();
    if moved.is_empty() {
        return Figure::invalid("the CPUs that load the memory were used by other processes all the time");
    }
    let mut figure = Figure::of(&moved);
    let lost = rates.len() - moved.len();
    if lost > 0 && figure.is_valid() {
        (figure.validity, figure.why) =
            (Validity::Noisy, format!("other processes had the CPUs in {lost} of {} runs", rates.len()));
    }
    figure
}

/// One injector: the lines `base..base + lines` of the buffers.
struct Injector {
    base: usize,
    lines: usize,
    injection: Injection,
}

impl Injector {
    /// Obeys until it is told to stop; gives the number of checks that failed.
    ///
    /// # Safety
    /// No other thread uses these lines meanwhile.
    unsafe fn run(&self, buffers: &Region, orders: &Orders, number: usize) -> u64 {
        assert!((self.base + self.lines) * LINE <= buffers.len(), "the region holds the buffers");
        let word = |line: usize| {
            // SAFETY: inside the region, see above.
            unsafe { buffers.as_mut_ptr().add((self.base + line) * LINE).cast::<u64>() }
        };
        for line in 0..self.lines {
            // SAFETY: inside the region, and this thread's alone; the first word of every line, so that every page is touched.
            unsafe { word(line).write_volatile(line as u64) };
        }
        orders.ready.wait();
        let writes = self.injection == Injection::ReadsAndWrites;
        // Reads go over the first half when there are writes, which go over the second.
        let read_lines = if writes { self.lines / 2 } else { self.lines };
        let expected = (0..read_lines as u64).fold(0u64, u64::wrapping_add);
        let (mut sum, mut line, mut round, mut moved, mut wrong) = (0u64, 0, 0u64, 0u64, 0);
        loop {
            let delay = match orders.order.load(Ordering::Relaxed) {
                STOP => break,
                REST => {
                    std::thread::sleep(Duration::from_micros(200));
                    continue;
                }
                delay => delay,
            };
            // Often enough for the chaser's short runs, seldom enough to cost nothing.
            let batch = (4096 / (delay as usize + 16)).max(1).min(read_lines - line);
            for line in line..line + batch {
                // SAFETY: inside the region, and this thread's alone. Volatile: every line is really visited.
                unsafe {
                    sum = sum.wrapping_add(word(line).read_volatile());
                    if writes {
                        word(read_lines + line).write_volatile(round + u64::MAX / 2);
                    }
                }
                spin(delay);
            }
            line += batch;
            moved += (batch * LINE * if writes { 3 } else { 1 }) as u64;
            orders.moved[number].0.store(moved, Ordering::Relaxed);
            if line == read_lines {
                wrong += u64::from(sum != expected);
                (sum, line, round) = (0, 0, round + 1);
            }
        }
        if writes {
            // Lines before the current one were written in this round, the others in the one before, or never.
            let value = |at: usize| match (at < line, round) {
                (true, _) => round + u64::MAX / 2,
                (false, 0) => (read_lines + at) as u64,
                (false, _) => round - 1 + u64::MAX / 2,
            };
            // SAFETY: as above.
            wrong += (0..read_lines).filter(|&at| unsafe { word(read_lines + at).read_volatile() } != value(at)).count() as u64;
        }
        wrong
    }
}

/// About `rounds` clocks.
#[inline(always)]
fn spin(rounds: u32) {
    if rounds == 0 {
        return;
    }
    #[cfg(target_arch = "x86_64")]
    // SAFETY: registers only.
    unsafe {
        std::arch::asm!("2:", "dec {0:e}", "jnz 2b", inout(reg) rounds => _, options(nomem, nostack));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: registers only.
    unsafe {
        std::arch::asm!("2:", "subs {0:w}, {0:w}, #1", "b.ne 2b", inout(reg) rounds => _, options(nomem, nostack));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    (0..rounds).for_each(|round| {
        std::hint::black_box(round);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn injectors_without_a_cpu_are_noise() {
        assert_eq!(loads(&[5.0, 5.0, 0.0]).validity, Validity::Noisy);
        assert_eq!(loads(&[5.0, 5.1]).validity, Validity::Valid);
        assert!(!loads(&[0.0, 0.0]).is_valid());
    }

    fn setting<'a>(cpus: &'a [u32], injection: Injection) -> LoadedSetting<'a> {
        LoadedSetting {
            cpu: cpus[0],
            injectors: &cpus[1..],
            cpu_node: 0,
            node: 0,
            injection,
            delays: &[0, 500],
            bytes: 6 << 20,
            injector_bytes: 4 << 20,
            llc_bytes: Some(1 << 20),
            budget: Duration::from_millis(200),
            limit_bytes: 1 << 30,
        }
    }

    #[test]
    fn a_curve_begins_idle_and_ends_at_full_load() {
        let mut cpus = team::own_cpus();
        if cpus.len() < 2 {
            return println!("skipped: one CPU");
        }
        cpus.truncate(3);
        for injection in [Injection::Reads, Injection::ReadsAndWrites] {
            let curve = loaded(&setting(&cpus, injection)).expect("measured");
            let delays: Vec<_> = curve.points.iter().map(|point| point.delay).collect();
            assert_eq!((delays, curve.injectors as usize), (vec![None, Some(500), Some(0)], cpus.len() - 1));
            assert_eq!(curve.points[0].rate.median, 0.0);
            for point in &curve.points {
                assert!(point.time.is_valid() && point.time.median > 0.1, "{injection:?}: {point:?}");
                // On a machine where others keep the injectors from running, some runs see no load: that is said.
                assert!(point.rate.is_valid() || point.rate.why.contains("no positive number"), "{injection:?}: {point:?}");
            }
            let small = LoadedSetting { llc_bytes: Some(4 << 20), ..setting(&cpus, injection) };
            assert!(loaded(&small).expect("measured").points.iter().all(|point| !point.time.is_valid()));
        }
    }

    #[test]
    fn one_cpu_cannot_load_and_chase() {
        let cpus = team::own_cpus();
        let error = loaded(&setting(&cpus[..1], Injection::Reads)).expect_err("no injector");
        assert!(error.to_string().contains("only one CPU"), "{error}");
        let both = LoadedSetting { limit_bytes: 7 << 20, injectors: &[60_000], ..setting(&cpus, Injection::Reads) };
        assert!(matches!(loaded(&both), Err(Error::TooLarge { .. })));
    }
}
