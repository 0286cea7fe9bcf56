//! Breadth-first search of a graph with a skewed degree, level by level: the kernel of Graph500, and of the GAP suite.
//!
//! The graph is stored by lists of neighbours (CSR) and directed, with 16 edges per vertex on average: out-degrees are 4 to 256 by a
//! power law, in-degrees up to 16 sqrt(vertices). A search reads each list once, in the order in which vertices were found: short
//! runs at random places of four fifths of the data. The level of a vertex (a twentieth of the data) is looked at once for each edge
//! that leads to it, at random as well. Nothing else is used again, and there is no arithmetic: the intensity is 0.
//!
//! Each thread owns a range of vertices, as in Graph500's code for clusters: it expands what it found in its range, puts the ends of
//! the edges into bins by owner, and all threads take a round of bins at a time. Levels are the same for every number of threads. They
//! are numbers that grow from repetition to repetition, so that none needs to be reset and an old one is told.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};

use crate::buffer::Buffer;
use crate::mapped_file::Pattern;
use crate::report::{Report, Traffic, Verified};
use crate::skewed_graph::{EDGES, GROUP, Graph, ROOT};
use crate::thread_team::{self, AfterLimit, Error, Setting, Watch};
use crate::timed_run::{Setup, digest};

/// Bytes of a vertex: the end of its list, the list, its level, its place in the queue.
const VERTEX_BYTES: usize = size_of::<u64>() + (EDGES + 2) * size_of::<u32>();

/// Edges that a thread follows in a round (or one list more): bins of 256 KiB.
const ROUND: usize = 1 << 16;

/// More than a search has levels.
const LEVELS: u32 = 256;

/// A range of vertices.
struct Share<'a> {
    /// Of the range, and of the thread that owns it.
    number: usize,
    first: usize,
    /// Of each, the repetition times [`LEVELS`] plus 1 plus its distance from the root; not above the former: not reached yet.
    levels: &'a mut [u32],
    /// Those reached, in order.
    queue: &'a mut [u32],
    /// Rounds since the first repetition.
    round: usize,
}

/// What the threads share.
struct Team<'a> {
    graph: &'a Graph,
    vertices_per_share: u32,
    /// By sender and then by owner.
    bins: Vec<Mutex<Vec<u32>>>,
    threads: usize,
    barrier: Barrier,
    /// The last rounds after which any thread had more of the level, had found vertices of the next, and was over time.
    more: AtomicUsize,
    found: AtomicUsize,
    over: AtomicUsize,
}

fn vertices(setting: &Setting) -> usize {
    // Numbers of vertices have 32 bits.
    (setting.data_bytes.saturating_sub(size_of::<u64>()) / VERTEX_BYTES / GROUP).clamp(1, 1 << 25) * GROUP
}

/// Searches from the same vertex `setting.repetitions` times, in a graph that takes at most `setting.data_bytes` with levels and queue.
/// An operation is one edge. The traffic counted is, for each vertex, its start and end and its place in the queue read, and its level and
/// place written; for each edge, its end and that one's level read. Not verified where the time limit cut a repetition off.
pub fn bfs(setting: &Setting) -> Result<Report, Error> {
    let count = vertices(setting);
    let setup = Setup::begin(setting);
    let graph = Graph::new(setting, count)?;
    let mut levels = Buffer::<u32>::zeroed(&setting.placement, count)?;
    let mut queue = Buffer::<u32>::zeroed(&setting.placement, count)?;
    levels.announce(Pattern::Random);
    let data_bytes = graph.bytes() + size_of_val(&*levels) + size_of_val(&*queue);

    let shares = split(setting, &mut levels, &mut queue);
    let team = Team::new(&graph, setting);
    let (ran, _) = setup.run(shares, AfterLimit::End, |share, number, watch| team.search(share, number as u32 * LEVELS, watch));

    let base = ran.last() as u32 * LEVELS;
    let distances = levels.iter().map(|level| u64::from(level.saturating_sub(base)));
    let checksum = if setting.verify { digest(0, distances) } else { 0 };
    let verify_levels = setting.verify && ran.finished();
    let wrong = if verify_levels { graph.wrong(setting, &levels, base) } else { 0 };
    let verified = Verified::of(verify_levels, wrong);
    Ok(Report { verified, ..ran.report("bfs", "edges", data_bytes, (wrong, checksum)) })
}

/// What one search moves: it reaches all vertices.
pub fn traffic(setting: &Setting) -> Traffic {
    Traffic { bytes: vertices(setting) as f64 * (28.0 + 8.0 * EDGES as f64), flop: 0.0 }
}

fn split<'a>(setting: &Setting, levels: &'a mut [u32], queue: &'a mut [u32]) -> Vec<Share<'a>> {
    let parts = setting.split(levels, GROUP).into_iter().zip(setting.split(queue, GROUP)).enumerate();
    parts.map(|(number, ((first, levels), (_, queue)))| Share { number, first, levels, queue, round: 0 }).collect()
}

impl<'a> Team<'a> {
    fn new(graph: &'a Graph, setting: &Setting) -> Self {
        let threads = setting.threads.max(1);
        Self {
            graph,
            // As [`Setting::split`] does.
            vertices_per_share: ((graph.vertices() / GROUP).div_ceil(threads) * GROUP) as u32,
            bins: (0..threads * threads).map(|_| Mutex::default()).collect(),
            threads,
            barrier: Barrier::new(threads),
            more: AtomicUsize::new(0),
            found: AtomicUsize::new(0),
            over: AtomicUsize::new(0),
        }
    }

    /// Nobody waits: in one half of a round each thread has the bins that it sends, in the other those that it owns.
    fn bin(&self, sender: usize, owner: usize) -> MutexGuard<'_, Vec<u32>> {
        self.bins[sender * self.threads + owner].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One thread's part of a search. All threads leave after the same round.
    fn search(&self, share: &mut Share, base: u32, watch: &Watch) -> thread_team::Done {
        let own = share.number;
        let mut level = base + 1;
        let mut reached = 0;
        if (share.first..share.first + share.levels.len()).contains(&ROOT) {
            (share.levels[ROOT - share.first], share.queue[0]) = (level, ROOT as u32);
            reached = 1;
        }
        // Places in the queue of those of this level that are not expanded yet.
        let mut waiting = 0..reached;
        let (mut expanded, mut edges, mut looked_at) = (0, 0, 0);
        loop {
            share.round += 1;
            let followed = self.expand(share.queue, &mut waiting, &mut expanded, own);
            edges += followed;
            // Flags of a round are set before its first barrier and read before its second, or in the other half: so they need no reset.
            if !waiting.is_empty() {
                self.more.fetch_max(share.round, Ordering::Relaxed);
            }
            if watch.is_over() {
                self.over.fetch_max(share.round, Ordering::Relaxed);
            }
            self.barrier.wait();
            for sender in 0..self.threads {
                let mut bin = self.bin(sender, own);
                looked_at += bin.len() as u64;
                for vertex in bin.drain(..) {
                    let known = &mut share.levels[vertex as usize - share.first];
                    if *known <= base {
                        *known = level + 1;
                        share.queue[reached] = vertex;
                        reached += 1;
                    }
                }
            }
            let more = self.more.load(Ordering::Relaxed) == share.round;
            let over = self.over.load(Ordering::Relaxed) == share.round;
            if reached > waiting.end {
                self.found.fetch_max(share.round, Ordering::Relaxed);
            }
            self.barrier.wait();
            if over || (!more && self.found.load(Ordering::Relaxed) != share.round) {
                return (expanded * 20 + edges * 4 + looked_at * 4 + reached as u64 * 8, edges);
            }
            if !more {
                level += 1;
                waiting = waiting.end..reached;
            }
        }
    }

    /// Puts the ends of the edges from vertices that wait into bins, for a round; returns how many.
    fn expand(&self, queue: &[u32], waiting: &mut Range<usize>, expanded: &mut u64, own: usize) -> u64 {
        let mut bins: Vec<_> = (0..self.threads).map(|owner| self.bin(own, owner)).collect();
        let mut edges = 0;
        for place in waiting.by_ref() {
            let list = self.graph.list(queue[place] as usize);
            for &neighbour in list {
                bins[(neighbour / self.vertices_per_share) as usize].push(neighbour);
            }
            *expanded += 1;
            edges += list.len();
            if edges >= ROUND {
                break;
            }
        }
        edges as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skewed_graph::searched;

    #[test]
    fn levels_are_those_of_a_plain_search() {
        let count = 100 * GROUP;
        let graph = Graph::new(&Setting::new(0, 3, 1), count).expect("a small graph");
        let right = searched(&graph, 2 * LEVELS);
        assert!(right.iter().max().is_some_and(|level| (2 * LEVELS + 4..3 * LEVELS).contains(level)));
        for threads in [1, 2, 3, 7, 40] {
            let setting = Setting::new(0, threads, 3);
            let (mut levels, mut queue) = (vec![0; count], vec![0; count]);
            let team = Team::new(&graph, &setting);
            thread_team::run(&setting, split(&setting, &mut levels, &mut queue), AfterLimit::End, |share, number, watch| {
                team.search(share, number as u32 * LEVELS, watch)
            });
            assert!(levels == right && graph.wrong(&setting, &levels, 2 * LEVELS) == 0, "{threads} threads");
        }
    }
}
