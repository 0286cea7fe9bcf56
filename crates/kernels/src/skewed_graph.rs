//! A directed graph with a skewed degree, made from random numbers alone, and the verification of a search in it.
//!
//! Out-degrees are 4 to 256 by a power law; the ends of edges are drawn so that a few vertices, all over the graph, are those of many.
//! Each list can be made by itself, so that the graph is written in order, in parallel, and verified in the same way.

use std::ops::Range;

use crate::buffer::Buffer;
use crate::mapped_file::Pattern;
use crate::thread_team::{self, Error, Setting};
use nearfar_core::random_numbers::{mix, unit};

/// Vertices that together have [`EDGES`] times as many edges, whatever their order.
pub const GROUP: usize = 64;

/// Edges per vertex, on average.
pub const EDGES: usize = 16;

/// Where every search begins.
pub const ROOT: usize = 0;

/// A prime above any number of vertices: multiplication by it spreads the vertices that many edges lead to.
const SPREAD: u64 = 2_654_435_761;

/// Lists of neighbours, one after another (CSR).
#[derive(Debug)]
pub struct Graph {
    /// Number of the first edge of each vertex, and of the end.
    starts: Buffer<u64>,
    neighbours: Buffer<u32>,
}

/// 4 to 256. Of the vertices of a group one half have 4, a quarter 8 and so on.
const fn degree(vertex: usize) -> usize {
    let rank = (vertex ^ mix((vertex / GROUP) as u64) as usize) % GROUP;
    let doublings = if rank == 0 { GROUP.ilog2() } else { rank.trailing_zeros() };
    4 << doublings
}

/// The list of a vertex whose first edge has the number `first`. The next vertex is in it, so that all can be reached.
fn list(vertices: usize, vertex: usize, first: usize) -> impl Iterator<Item = u32> {
    let next = ((vertex + 1) % vertices) as u32;
    let others = (first + 1..first + degree(vertex)).map(move |edge| {
        let fraction = unit(mix(edge as u64));
        // Squared, so that few vertices are the end of many edges.
        let popular = (fraction * fraction * vertices as f64) as u64;
        (popular * SPREAD % vertices as u64) as u32
    });
    std::iter::once(next).chain(others)
}

impl Graph {
    /// A graph of `vertices` vertices, a multiple of [`GROUP`] and below 2^31 + 1.
    pub fn new(setting: &Setting, vertices: usize) -> Result<Self, Error> {
        let place = &setting.placement;
        let mut graph =
            Self { starts: Buffer::zeroed(place, vertices + 1)?, neighbours: Buffer::zeroed(place, EDGES * vertices)? };
        graph.fill(setting);
        graph.starts.announce(Pattern::Random);
        graph.neighbours.announce(Pattern::Random);
        Ok(graph)
    }

    /// How many there are.
    pub fn vertices(&self) -> usize {
        self.starts.len() - 1
    }

    /// Bytes of the lists and of where they start.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.starts) + size_of_val(&*self.neighbours)
    }

    /// Where the edges from a vertex lead to.
    pub fn list(&self, vertex: usize) -> &[u32] {
        &self.neighbours[self.starts[vertex] as usize..self.starts[vertex + 1] as usize]
    }

    fn fill(&mut self, setting: &Setting) {
        let vertices = self.vertices();
        // The list of each group begins at the same place for any degrees.
        let ends = setting.split(&mut self.starts[1..], GROUP);
        let shares = ends.into_iter().zip(setting.split(&mut self.neighbours, EDGES * GROUP)).collect();
        thread_team::map(shares, |((first, ends), (first_edge, mut neighbours))| {
            let mut edge = first_edge;
            for (offset, end) in ends.iter_mut().enumerate() {
                let (own, others) = neighbours.split_at_mut(degree(first + offset));
                own.iter_mut().zip(list(vertices, first + offset, edge)).for_each(|(to, neighbour)| *to = neighbour);
                edge += own.len();
                *end = edge as u64;
                neighbours = others;
            }
        });
    }

    /// Errors in the levels of a search, which are `base` plus 1 plus the distance from the root: words of the graph that are not as they
    /// were made, edges that lead beyond the next level, and vertices to whose level no edge leads. None: all levels are right.
    pub fn wrong(&self, setting: &Setting, levels: &[u32], base: u32) -> u64 {
        let per_share = (self.vertices() / GROUP).div_ceil(setting.threads.max(1)) * GROUP;
        let shares = (0..self.vertices()).step_by(per_share);
        let shares = shares.map(|first| first..(first + per_share).min(self.vertices())).collect();
        let found = thread_team::map(shares, |share: Range<usize>| self.check_edges(levels, base, share));
        let led_to = |vertex: usize| found.iter().any(|(_, marks)| marks[vertex / 64] >> (vertex % 64) & 1 == 1);
        let is_right = |&vertex: &usize| if vertex == ROOT { levels[vertex] == base + 1 } else { led_to(vertex) };
        let right = (0..self.vertices()).filter(is_right).count();
        let wrong_edges: u64 = found.iter().map(|(wrong, _)| wrong).sum();
        wrong_edges + (self.vertices() - right) as u64 + u64::from(self.starts[0] != 0)
    }

    /// (errors, a bit for each vertex of the graph to whose level an edge leads) of the edges from a range of whole groups.
    fn check_edges(&self, levels: &[u32], base: u32, range: Range<usize>) -> (u64, Vec<u64>) {
        let (mut wrong, mut marks) = (0, vec![0u64; self.vertices().div_ceil(64)]);
        let mut edge = range.start * EDGES;
        for vertex in range {
            let end = edge + degree(vertex);
            let stored = &self.neighbours[edge..end];
            wrong += u64::from(self.starts[vertex + 1] != end as u64);
            for (neighbour, &stored) in list(self.vertices(), vertex, edge).zip(stored) {
                let (from, to) = (levels[vertex], levels[neighbour as usize]);
                wrong += u64::from(neighbour != stored || from <= base || to <= base || to > from.saturating_add(1));
                if to == from.wrapping_add(1) {
                    marks[neighbour as usize / 64] |= 1 << (neighbour % 64);
                }
            }
            edge = end;
        }
        (wrong, marks)
    }
}

/// A search by the definition: its levels.
#[cfg(test)]
pub fn searched(graph: &Graph, base: u32) -> Vec<u32> {
    let (mut levels, mut queue) = (vec![0; graph.vertices()], vec![ROOT]);
    levels[ROOT] = base + 1;
    let mut place = 0;
    while let Some(&vertex) = queue.get(place) {
        for &neighbour in graph.list(vertex) {
            if levels[neighbour as usize] == 0 {
                levels[neighbour as usize] = levels[vertex] + 1;
                queue.push(neighbour as usize);
            }
        }
        place += 1;
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(count: usize) -> Graph {
        Graph::new(&Setting::new(0, 3, 1), count).expect("a small graph")
    }

    #[test]
    fn degrees_are_skewed_on_both_sides() {
        let graph = graph(100 * GROUP);
        let mut ends = vec![0; graph.vertices()];
        graph.neighbours.iter().for_each(|&neighbour| ends[neighbour as usize] += 1);
        assert!(ends.iter().max().is_some_and(|most| *most > 500) && ends.iter().filter(|ends| **ends < 16).count() > 3000);
        assert_eq!((0..100 * GROUP).map(degree).filter(|degree| *degree == 256).count(), 100);
    }

    #[test]
    fn a_wrong_word_is_told() {
        let setting = Setting::new(0, 2, 1);
        let wrong = |spoil: fn(&mut Graph, &mut [u32])| {
            let mut graph = graph(10 * GROUP);
            let mut levels = searched(&graph, 0);
            spoil(&mut graph, &mut levels);
            graph.wrong(&setting, &levels, 0)
        };
        assert_eq!(wrong(|_, _| ()), 0);
        assert!(wrong(|graph, _| graph.neighbours[5000] ^= 1) > 0);
        assert!(wrong(|graph, _| graph.starts[500] ^= 1) > 0);
        assert!(wrong(|_, levels| levels[ROOT] += 1) > 0);
        for bit in [0, 1, 20] {
            for vertex in [17, 300, 639] {
                let mut levels = searched(&graph(10 * GROUP), 0);
                levels[vertex] ^= 1 << bit;
                assert!(graph(10 * GROUP).wrong(&setting, &levels, 0) > 0, "vertex {vertex}, bit {bit}");
            }
        }
    }
}
