//! Look-ups in a B+-tree of 4-KiB nodes, as a database makes them: four of five ask for one key, by Zipf's law (0.99), and one reads
//! 64 records in order from anywhere. The way down is hot at the top and cold at the leaves.
//!
//! The tree is bulk-loaded and read only, and its nodes lie in a random order: neighbours in key are not neighbours in memory. All
//! threads share it. Invariant: a node's words follow from its number, so that each is written, and checked, where it lies.

use crate::buffer::Buffer;
use crate::mapped_file::Pattern;
use crate::permutation::Permutation;
use crate::report::Report;
use crate::thread_team::{self, AfterLimit, Error, Setting, Watch};
use crate::timed_run::{Checked, Setup, digest};
use crate::zipf::{YCSB_THETA, Zipf};
use nearfar_core::random_numbers::{Random, below, mix};

/// Look-ups between two looks at the clock.
const BATCH: u64 = 64;
/// Records of a range scan.
const SCAN: usize = 64;
/// A node: the number of its entries, the place of the next leaf, keys, and values or, above the leaves, places of children.
const NODE: usize = 512;
const NEXT: usize = 1;
const KEYS: usize = 2;
const FANOUT: usize = (NODE - KEYS) / 2;
const VALUES: usize = KEYS + FANOUT;
/// Words that a search of one node reads: the number of entries, keys by bisection, one value.
const SEARCH: u64 = 10;

/// The key of record number `record`: ascending, with gaps.
const fn key_of(record: usize) -> u64 {
    (record as u64) << 20 | mix(record as u64) >> 44
}

/// What nodes there are and where.
struct Shape {
    /// Nodes of each level, leaves first. Nodes are numbered in this order.
    levels: Vec<usize>,
    /// From a node's number to its place.
    places: Permutation,
}

struct Share<'a> {
    nodes: &'a [u64],
    shape: &'a Shape,
    zipf: Zipf,
    /// From rank to record: or popular records would share their leaves.
    ranks: Permutation,
    rng: Random,
    wrong: u64,
}

impl Shape {
    /// The tree with the most leaves, all full, among those of up to `nodes` nodes.
    fn new(nodes: usize) -> Self {
        let mut leaves = (nodes - nodes / (FANOUT + 1)).max(1);
        let levels = loop {
            let mut levels = vec![leaves];
            while let Some(&below @ 2..) = levels.last() {
                levels.push(below.div_ceil(FANOUT));
            }
            if leaves == 1 || levels.iter().sum::<usize>() <= nodes {
                break levels;
            }
            leaves -= 1;
        };
        let places = Permutation::new(levels.iter().sum(), 3);
        Self { levels, places }
    }

    fn nodes(&self) -> usize {
        self.levels.iter().sum()
    }

    fn records(&self) -> usize {
        self.levels[0] * FANOUT
    }

    /// Writes the node that lies at `place` into `words`, which are zeros.
    fn write(&self, place: usize, words: &mut [u64]) {
        let (mut index, mut level) = (self.places.invert(place), 0);
        while index >= self.levels[level] {
            index -= self.levels[level];
            level += 1;
        }
        let first = index * FANOUT;
        if level == 0 {
            words[0] = FANOUT as u64;
            // The last leaf names the first one.
            words[NEXT] = self.places.apply((index + 1) % self.levels[0]) as u64;
            for slot in 0..FANOUT {
                let key = key_of(first + slot);
                (words[KEYS + slot], words[VALUES + slot]) = (key, mix(key));
            }
            return;
        }
        let children = first..self.levels[level - 1].min(first + FANOUT);
        let numbered_from = self.levels[..level - 1].iter().sum::<usize>();
        words[0] = children.len() as u64;
        for (slot, child) in children.enumerate() {
            words[KEYS + slot] = key_of(child * FANOUT.pow(level as u32));
            words[VALUES + slot] = self.places.apply(numbered_from + child) as u64;
        }
    }
}

/// Runs `setting.repetitions` batches of `operations` look-ups (all threads together) in a tree of `setting.data_bytes`, each ended
/// early by the time limit. An operation is one look-up, of a key or of a range; its traffic is the words of nodes that it reads.
pub fn btree(setting: &Setting, operations: u64) -> Result<Report, Error> {
    // One node more than the tree has: the heap does not begin a node with a page.
    let room = (setting.data_bytes / size_of::<u64>() / NODE).max(2);
    let setup = Setup::begin(setting);
    let mut memory = Buffer::<u64>::zeroed(&setting.placement, room * NODE)?;
    memory.announce(Pattern::Sequential);
    let shape = Shape::new(room - 1);
    let start = memory.as_ptr().align_offset(NODE * size_of::<u64>()).min(NODE);
    let words = start..start + shape.nodes() * NODE;
    thread_team::map(setting.split(&mut memory[words.clone()], NODE), |(first, part)| {
        part.chunks_exact_mut(NODE).enumerate().for_each(|(place, words)| shape.write(first / NODE + place, words));
    });

    memory.announce(Pattern::Random);
    let per_thread = operations.div_ceil(setting.threads.max(1) as u64);
    let shares = (0..setting.threads.max(1) as u64).map(|seed| Share::new(&memory[words.clone()], &shape, seed));
    let (ran, shares) = setup.run(shares.collect(), AfterLimit::Continue, |share, _, watch| look_up(share, per_thread, watch));
    let wrong_reads: u64 = shares.into_iter().map(|share| share.wrong).sum();

    memory.announce(Pattern::Sequential);
    let (wrong, checksum) = ran.check(setting.split(&mut memory[words], NODE), |(first, part)| check(&shape, first, part));
    Ok(ran.report("btree", "look-ups", room * NODE * size_of::<u64>(), (wrong_reads + wrong, checksum)))
}

impl<'a> Share<'a> {
    fn new(nodes: &'a [u64], shape: &'a Shape, seed: u64) -> Self {
        let zipf = Zipf::new(shape.records(), YCSB_THETA);
        Self { nodes, shape, zipf, ranks: Permutation::new(shape.records(), 4), rng: Random::new(seed), wrong: 0 }
    }

    fn node(&self, place: u64) -> Option<&'a [u64]> {
        // A wrong word may point anywhere.
        self.nodes.chunks_exact(NODE).nth(usize::try_from(place).ok()?)
    }

    /// Goes down to the leaf with `key`, and to its slot there.
    fn seek(&self, key: u64) -> Option<(&'a [u64], usize)> {
        let keys = |node: &'a [u64]| &node[KEYS..][..(node[0] as usize).min(FANOUT)];
        let mut node = self.node(self.shape.places.apply(self.shape.nodes() - 1) as u64)?;
        for _ in 1..self.shape.levels.len() {
            let slot = keys(node).partition_point(|&least| least <= key).checked_sub(1)?;
            node = self.node(node[VALUES + slot])?;
        }
        keys(node).binary_search(&key).ok().map(|slot| (node, slot))
    }

    /// Reads `count` records from number `record` on; returns how many of them were right.
    fn read(&self, record: usize, count: usize) -> usize {
        let Some((mut leaf, mut slot)) = self.seek(key_of(record)) else { return 0 };
        let mut right = 0;
        for key in (record..record + count).map(key_of) {
            if slot == FANOUT {
                let Some(next) = self.node(leaf[NEXT]) else { break };
                (leaf, slot) = (next, 0);
            }
            right += usize::from(leaf[KEYS + slot] == key && leaf[VALUES + slot] == mix(key));
            slot += 1;
        }
        right
    }
}

fn look_up(share: &mut Share, operations: u64, watch: &Watch) -> thread_team::Done {
    let (mut words, mut done) = (0, 0);
    let (way, records) = (SEARCH * share.shape.levels.len() as u64, share.shape.records());
    while done < operations {
        let batch = BATCH.min(operations - done);
        for _ in 0..batch {
            let random = share.rng.next();
            // The lowest 11 bits do not reach the rank: a fifth of their numbers asks for a scan.
            let (record, count) = if random % (1 << 11) < (1 << 11) / 5 {
                (below(random, records - SCAN + 1), SCAN)
            } else {
                (share.ranks.apply(share.zipf.rank(random)), 1)
            };
            share.wrong += (count - share.read(record, count)) as u64;
            words += way + 2 * count as u64;
        }
        done += batch;
        if watch.is_over() {
            break;
        }
    }
    (words * size_of::<u64>() as u64, done)
}

/// (wrong nodes, digest) of a part of the tree that begins at word `first`.
fn check(shape: &Shape, first: usize, part: &[u64]) -> Checked {
    let (mut wrong, mut sum) = (0, 0u64);
    for (place, node) in part.chunks_exact(NODE).enumerate().map(|(offset, node)| (first / NODE + offset, node)) {
        let mut right = [0; NODE];
        shape.write(place, &mut right);
        wrong += u64::from(node != right);
        sum = sum.wrapping_add(digest(place * NODE, node.iter().copied()));
    }
    (wrong, sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(shape: &Shape) -> Vec<u64> {
        let mut nodes = vec![0; shape.nodes() * NODE];
        nodes.chunks_exact_mut(NODE).enumerate().for_each(|(place, words)| shape.write(place, words));
        nodes
    }

    #[test]
    fn every_record_is_found_in_trees_of_every_height() {
        for (room, levels) in [(0, 1), (1, 1), (2, 1), (3, 2), (256, 2), (257, 2), (258, 2), (259, 3), (700, 3)] {
            let shape = Shape::new(room);
            assert!(shape.levels.len() == levels && shape.nodes() <= room.max(1), "{room}: {:?}", shape.levels);
            let (nodes, last) = (tree(&shape), shape.records() - SCAN);
            let share = Share::new(&nodes, &shape, 0);
            assert!((0..shape.records()).all(|record| share.read(record, 1) == 1), "{room}");
            assert!((0..=last).step_by(31).chain([last]).all(|record| share.read(record, SCAN) == SCAN), "{room}");
        }
    }

    #[test]
    fn a_wrong_byte_is_told() {
        let shape = Shape::new(300);
        let mut nodes = tree(&shape);
        nodes[shape.places.apply(7) * NODE + VALUES + 5] ^= 1 << 40;
        let share = Share::new(&nodes, &shape, 0);
        assert_eq!((share.read(7 * FANOUT + 5, 1), share.read(7 * FANOUT, SCAN), share.read(8 * FANOUT, SCAN)), (0, 63, 64));
        assert_eq!(check(&shape, 0, &nodes).0, 1);
        let root = shape.places.apply(shape.nodes() - 1) * NODE;
        nodes[root + VALUES] = u64::MAX;
        assert_eq!(Share::new(&nodes, &shape, 0).read(0, 1), 0);
    }
}
