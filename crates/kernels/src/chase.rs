//! Pointer chase: each load gives the address of the next, so that nothing can be overlapped and time is pure latency.
//!
//! Slots of `stride` bytes (a page or a cache line) are linked into one random cycle. Threads follow the same cycle from starting
//! points spread evenly over it. Invariant: where a thread stands after h hops is known without memory, so every run verifies itself.

use crate::buffer::Buffer;
use crate::mapped_file::Pattern;
use crate::permutation::Permutation;
use crate::report::{Report, Verified};
use crate::thread_team::{self, AfterLimit, Error, Setting, Watch};
use crate::timed_run::Setup;
use nearfar_core::random_numbers::mix;

/// Hops between two looks at the clock.
const BATCH: u64 = 64;
/// Numbers in a cache line.
const LINE: usize = 64 / size_of::<u64>();

struct Walker {
    start: usize,
    position: usize,
    hops: u64,
}

/// The cycle over slots of memory.
struct Ring {
    order: Permutation,
    slots: usize,
    numbers_per_slot: usize,
}

impl Ring {
    /// Index of the number that holds slot `slot`'s link. Its line varies with the slot, or all links would share a few cache sets.
    fn link(&self, slot: usize) -> usize {
        let lines = self.numbers_per_slot / LINE;
        slot * self.numbers_per_slot + (mix(slot as u64) as usize % lines.max(1)) * LINE
    }

    /// Where a walker stands `hops` hops after the cycle's position `start`, as an index of a number.
    fn at(&self, start: usize, hops: u64) -> usize {
        let place = (start as u64).wrapping_add(hops % self.slots as u64) % self.slots as u64;
        self.link(self.order.apply(place as usize))
    }
}

/// Runs `setting.repetitions` walks of `hops` hops (all threads together), each ended early by the time limit, over slots of `stride`
/// bytes (64 at the least). An operation is one hop; its traffic is 8 bytes.
pub fn chase(setting: &Setting, stride: usize, hops: u64) -> Result<Report, Error> {
    let numbers_per_slot = (stride / size_of::<u64>()).max(LINE);
    let slots = (setting.data_bytes / size_of::<u64>() / numbers_per_slot).max(1);
    let ring = Ring { order: Permutation::new(slots, 1), slots, numbers_per_slot };
    let setup = Setup::begin(setting);
    let mut memory = Buffer::<u64>::zeroed(&setting.placement, slots * numbers_per_slot)?;
    thread_team::map(setting.split(&mut memory, numbers_per_slot), |(first, memory)| {
        for (offset, slot_memory) in memory.chunks_exact_mut(numbers_per_slot).enumerate() {
            let slot = first / numbers_per_slot + offset;
            let place = ring.order.invert(slot);
            // The whole slot is written, so that no page of it is a page of zeros that costs nothing to evict.
            slot_memory.fill(mix(slot as u64));
            slot_memory[ring.link(slot) - slot * numbers_per_slot] = ring.at(place, 1) as u64;
        }
    });

    let threads = setting.threads.max(1);
    let walkers = (0..threads)
        .map(|index| {
            let start = (slots as u128 * index as u128 / threads as u128) as usize;
            Walker { start, position: ring.at(start, 0), hops: 0 }
        })
        .collect();
    let per_thread = hops.div_ceil(threads as u64);
    memory.announce(Pattern::Random);
    let memory = &*memory;
    let (ran, walkers) = setup.run(walkers, AfterLimit::Continue, |walker, _, watch| walk(walker, memory, per_thread, watch));

    let wrong = walkers.iter().filter(|walker| walker.position != ring.at(walker.start, walker.hops)).count() as u64;
    let checksum = walkers.iter().fold(0u64, |sum, walker| mix(sum).wrapping_add(walker.position as u64));
    // Where a walker stands is known without reading back.
    let verified = Verified::of(true, wrong);
    Ok(Report { verified, ..ran.report("chase", "hops", size_of_val(memory), (wrong, checksum)) })
}

fn walk(walker: &mut Walker, memory: &[u64], hops: u64, watch: &Watch) -> thread_team::Done {
    let (mut position, mut done) = (walker.position, 0);
    while done < hops {
        let batch = BATCH.min(hops - done);
        for _ in 0..batch {
            // A wrong link may point anywhere: the bounds check turns that into a verification failure below, not a crash.
            position = memory.get(position).map_or(0, |&next| next as usize);
        }
        done += batch;
        if watch.is_over() {
            break;
        }
    }
    walker.position = position;
    walker.hops += done;
    (done * size_of::<u64>() as u64, done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cycle_visits_every_slot_once() {
        let ring = Ring { order: Permutation::new(1000, 1), slots: 1000, numbers_per_slot: 512 };
        let mut places: Vec<_> = (0..1000).map(|hops| ring.at(0, hops)).collect();
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), 1000);
        assert_eq!(ring.at(0, 1000), ring.at(0, 0));
    }
}
