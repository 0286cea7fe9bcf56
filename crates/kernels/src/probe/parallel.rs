//! Parallel loads: what a load takes when one thread follows several cycles at once, each load depending on the one before in its cycle
//! alone. The most that a core has under way is how much shorter that becomes: its line buffers, page walks and reordering, as far as a
//! loop without arithmetic shows them. The order is random, so that prefetchers find little.
//!
//! The ring is the one that latency was measured on; every run begins at places that no walk has reached, so that nothing is cached.

use super::region::Region;
use super::ring::{Ring, walk_together};
use nearfar_core::node::{Figure, ParallelPoint};
use std::time::{Duration, Instant};

/// Timed runs of a point, after one that is dropped.
const RUNS: usize = 15;
/// Hops of each cycle in a run, at the least: in fewer, reading the clock would count.
const LEAST_HOPS: usize = 128;
/// Hops of each cycle in a run, at the most.
const MOST_HOPS: usize = 16_384;
/// Numbers of cycles, as `points` measures them, together.
const CYCLES: usize = 1 + 2 + 4 + 8 + 16 + 32;

/// Points for 1 to 32 cycles, on a linked random `ring` whose places from `fresh` to its half nobody visited since the caches were
/// filled with others, in about `budget`; `load_ns` is what one load takes by itself. Empty where too few places are left.
pub fn points(region: &Region, ring: &Ring, fresh: usize, budget: Duration, load_ns: f64) -> Vec<ParallelPoint> {
    let left = (ring.slots() / 2).saturating_sub(fresh);
    let fits = budget.as_secs_f64() * 1e9 / load_ns.max(0.1) / (6 * (RUNS + 1)) as f64;
    let hops = (left / ((RUNS + 1) * CYCLES)).min(MOST_HOPS).min((fits as usize).max(LEAST_HOPS));
    if hops < LEAST_HOPS {
        return Vec::new();
    }
    let mut from = fresh;
    vec![
        point::<1>(region, ring, &mut from, hops),
        point::<2>(region, ring, &mut from, hops),
        point::<4>(region, ring, &mut from, hops),
        point::<8>(region, ring, &mut from, hops),
        point::<16>(region, ring, &mut from, hops),
        point::<32>(region, ring, &mut from, hops),
    ]
}

/// Nanoseconds per load with `N` cycles at once.
fn point<const N: usize>(region: &Region, ring: &Ring, from: &mut usize, hops: usize) -> ParallelPoint {
    let mut right = true;
    let mut run = || {
        let begin: [usize; N] = std::array::from_fn(|cycle| *from + cycle * hops);
        *from += N * hops;
        let mut at = begin.map(|place| ring.at(region, place));
        let start = Instant::now();
        // SAFETY: the ring was linked, and nobody writes to it now.
        unsafe { walk_together(&mut at, hops) };
        let seconds = start.elapsed().as_secs_f64();
        right &= at == begin.map(|place| ring.at(region, place + hops));
        seconds * 1e9 / (N * hops) as f64
    };
    run();
    let times: Vec<f64> = (0..RUNS).map(|_| run()).collect();
    let time = if right { Figure::of(&times) } else { Figure::invalid("a walk left its cycle") };
    ParallelPoint { cycles: N as u32, time }
}
