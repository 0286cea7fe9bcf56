//! Fourier transforms of lines of complex f64 in a small workspace: what the 3-D transforms share.
//!
//! A batch of adjacent lines is gathered into the workspace, transformed there and scattered back, as blocked FFT libraries do. A
//! line's arithmetic is the same whichever thread does it, and however its points lie in memory. Does not know the order of axes.

use std::f64::consts::TAU;
use std::ops::Range;

use nearfar_core::random_numbers::{mix, unit};

/// Lines gathered at a time: two cache lines of points.
pub const BATCH: usize = 8;

/// Numbers per point: real and imaginary part.
pub const POINT: usize = 2;

/// How far a value (they are in -1..1) may be off after transforms forth and back.
const TOLERANCE: f64 = 1e-12;

/// One place in each of a batch of lines: real parts, imaginary parts.
pub type Cell = ([f64; BATCH], [f64; BATCH]);

/// Which way to transform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// With `exp(-i ...)`, unscaled.
    Forth,
    /// With `exp(i ...)`, divided by the number of points: it undoes the other.
    Back,
}

/// Powers of two, at least [`BATCH`]; the first axis is the one along memory, and none is longer.
#[derive(Debug)]
pub struct Shape {
    /// Points along each axis.
    pub edges: [usize; 3],
    /// `exp(-i TAU k / edges[0])` for the first half turn.
    twiddles: Vec<(f64, f64)>,
}

impl Shape {
    /// The largest that takes at most `bytes`, as near to a cube as can be.
    pub fn new(bytes: usize) -> Self {
        let points = (bytes / size_of::<[f64; POINT]>()).max(BATCH.pow(3)).ilog2();
        let edges = [2, 1, 0].map(|more| 1 << ((points + more) / 3));
        let angle = |k: usize| TAU * k as f64 / edges[0] as f64;
        Self { edges, twiddles: (0..edges[0] / 2).map(|k| (angle(k).cos(), -angle(k).sin())).collect() }
    }

    /// Of one point taken through one axis, the mean of the axes: a line of n points takes 5 n log2 n, the count that all use.
    pub fn flop_per_point(&self) -> f64 {
        self.edges.iter().map(|edge| 5.0 * f64::from(edge.ilog2())).sum::<f64>() / 3.0
    }

    /// Points of the whole array.
    pub fn points(&self) -> usize {
        self.edges.iter().product()
    }

    /// Transforms a batch of lines of `cells.len()` points that stand in bit-reversed order.
    fn lines(&self, cells: &mut [Cell], direction: Direction) {
        let mut half = 1;
        while half < cells.len() {
            let stride = self.edges[0] / 2 / half;
            for group in cells.chunks_exact_mut(2 * half) {
                let (low, high) = group.split_at_mut(half);
                for ((a, b), &(re, im)) in low.iter_mut().zip(high).zip(self.twiddles.iter().step_by(stride)) {
                    butterfly(a, b, re, if direction == Direction::Forth { im } else { -im });
                }
            }
            half *= 2;
        }
        if direction == Direction::Back {
            // A power of two: exact.
            let scale = 1.0 / cells.len() as f64;
            cells.iter_mut().for_each(|(re, im)| re.iter_mut().chain(im).for_each(|value| *value *= scale));
        }
    }
}

fn butterfly(a: &mut Cell, b: &mut Cell, re: f64, im: f64) {
    for line in 0..BATCH {
        let (b_re, b_im) = (b.0[line] * re - b.1[line] * im, b.0[line] * im + b.1[line] * re);
        (b.0[line], b.1[line]) = (a.0[line] - b_re, a.1[line] - b_im);
        (a.0[line], a.1[line]) = (a.0[line] + b_re, a.1[line] + b_im);
    }
}

/// The value at place `index` of an array before its first transform, in -1..1.
pub fn initial(index: usize) -> f64 {
    2.0 * unit(mix(index as u64)) - 1.0
}

const fn reversed(index: usize, len: usize) -> usize {
    index.reverse_bits() >> (usize::BITS - len.ilog2())
}

/// The first axis: a batch is as many whole rows.
pub fn along_rows(shape: &Shape, plane: &mut [f64], space: &mut [Cell], direction: Direction) {
    let row = shape.edges[0];
    let cells = &mut space[..row];
    for rows in plane.chunks_exact_mut(BATCH * POINT * row) {
        for (line, values) in rows.chunks_exact(POINT * row).enumerate() {
            for (place, point) in values.chunks_exact(POINT).enumerate() {
                let cell = &mut cells[reversed(place, row)];
                (cell.0[line], cell.1[line]) = (point[0], point[1]);
            }
        }
        shape.lines(cells, direction);
        for (line, values) in rows.chunks_exact_mut(POINT * row).enumerate() {
            for (point, cell) in values.chunks_exact_mut(POINT).zip(&*cells) {
                (point[0], point[1]) = (cell.0[line], cell.1[line]);
            }
        }
    }
}

/// The second axis.
pub fn across_rows(shape: &Shape, plane: &mut [f64], space: &mut [Cell], direction: Direction) {
    let len = POINT * shape.edges[0];
    let mut rows: Vec<_> = plane.chunks_exact_mut(len).collect();
    across(shape, &mut rows, 0..len, space, direction);
}

/// Lines of which every strip holds one point, at a place in `range`: a batch is as many adjacent points of every strip.
pub fn across(shape: &Shape, strips: &mut [&mut [f64]], range: Range<usize>, space: &mut [Cell], direction: Direction) {
    let cells = &mut space[..strips.len()];
    for start in range.step_by(POINT * BATCH) {
        let batch = start..start + POINT * BATCH;
        for (place, strip) in strips.iter().enumerate() {
            let (re, im) = &mut cells[reversed(place, strips.len())];
            for (line, point) in strip[batch.clone()].chunks_exact(POINT).enumerate() {
                (re[line], im[line]) = (point[0], point[1]);
            }
        }
        shape.lines(cells, direction);
        for (strip, (re, im)) in strips.iter_mut().zip(&*cells) {
            for (line, point) in strip[batch.clone()].chunks_exact_mut(POINT).enumerate() {
                (point[0], point[1]) = (re[line], im[line]);
            }
        }
    }
}

/// All three axes of a small array, by one thread. `space` holds at least a line of the first axis.
pub fn transform_alone(shape: &Shape, data: &mut [f64], space: &mut [Cell], direction: Direction) {
    let [row, rows, _] = shape.edges;
    for plane in data.chunks_exact_mut(POINT * row * rows) {
        along_rows(shape, plane, space, direction);
        across_rows(shape, plane, space, direction);
    }
    let mut planes: Vec<_> = data.chunks_exact_mut(POINT * row * rows).collect();
    across(shape, &mut planes, 0..POINT * row * rows, space, direction);
}

/// Values that are not what they were at first. Written so that a NaN is wrong.
pub fn wrong_values(first: usize, part: &[f64]) -> u64 {
    let right = part.iter().enumerate().filter(|(offset, value)| (**value - initial(first + offset)).abs() <= TOLERANCE);
    (part.len() - right.count()) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_value_is_told() {
        let mut part: Vec<f64> = (100..200).map(initial).collect();
        assert_eq!(wrong_values(100, &part), 0);
        part[17] = f64::from_bits(part[17].to_bits() ^ 1 << 40);
        part[30] = f64::NAN;
        assert_eq!(wrong_values(100, &part), 2);
    }
}
