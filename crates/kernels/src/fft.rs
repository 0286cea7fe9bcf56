//! 3-D Fourier transform of complex f64, in place, axis after axis: one walk along memory, one across rows, one across whole planes.
//!
//! A batch of adjacent lines is gathered into a small workspace, transformed there and scattered back, as blocked FFT libraries do.
//! Repetitions go forth and back by turns, so that the initial data must come out again. A line's arithmetic is the same whichever
//! thread does it: results are the same to the last bit. Does not keep a plane's first two axes together: each is a pass of its own.

use std::f64::consts::TAU;
use std::ops::Range;

use crate::buffer::Buffer;
use crate::mapped_file::Pattern;
use crate::report::{Report, Traffic, Verified};
use crate::thread_team::{self, AfterLimit, Error, Setting};
use crate::timed_run::{Setup, digest};
use nearfar_core::random_numbers::mix;

/// Lines gathered at a time: two cache lines of points.
const BATCH: usize = 8;

/// Numbers per point: real and imaginary part.
const POINT: usize = 2;

/// How far a value (they are in -1..1) may be off after transforms forth and back.
const TOLERANCE: f64 = 1e-9;

/// One place in each of a batch of lines: real parts, imaginary parts.
type Cell = ([f64; BATCH], [f64; BATCH]);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Forth,
    Back,
}

/// Powers of two, at least [`BATCH`]; the first axis is the one along memory, and none is longer.
struct Shape {
    edges: [usize; 3],
    /// `exp(-i TAU k / edges[0])` for the first half turn.
    twiddles: Vec<(f64, f64)>,
}

impl Shape {
    /// The largest that takes at most `bytes`, as near to a cube as can be.
    fn new(bytes: usize) -> Self {
        let points = (bytes / size_of::<[f64; POINT]>()).max(BATCH.pow(3)).ilog2();
        let edges = [2, 1, 0].map(|more| 1 << ((points + more) / 3));
        let angle = |k: usize| TAU * k as f64 / edges[0] as f64;
        Self { edges, twiddles: (0..edges[0] / 2).map(|k| (angle(k).cos(), -angle(k).sin())).collect() }
    }

    /// Of one point taken through one axis, the mean of the axes: a line of n points takes 5 n log2 n, the count that all use.
    fn flop_per_point(&self) -> f64 {
        self.edges.iter().map(|edge| 5.0 * f64::from(edge.ilog2())).sum::<f64>() / 3.0
    }

    fn points(&self) -> usize {
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

fn initial(index: usize) -> f64 {
    (mix(index as u64) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

const fn reversed(index: usize, len: usize) -> usize {
    index.reverse_bits() >> (usize::BITS - len.ilog2())
}

/// Transforms `setting.repetitions` times, forth and back by turns, an array of at most `setting.data_bytes` with edges that are powers
/// of two (and at least 8 KiB). An operation is one point taken through one axis; its traffic is 32 bytes, 16 read and 16 written.
/// Verified exactly but for rounding, after a transform back where the last one went forth; not where the time limit cut one off.
pub fn fft(setting: &Setting) -> Result<Report, Error> {
    let shape = Shape::new(setting.data_bytes);
    let setup = Setup::begin(setting);
    let mut data = Buffer::<f64>::zeroed(&setting.placement, POINT * shape.points())?;
    data.announce(Pattern::Sequential);
    thread_team::map(setting.split(&mut data, POINT), |(first, part)| {
        part.iter_mut().enumerate().for_each(|(offset, value)| *value = initial(first + offset));
    });
    let mut spaces = vec![vec![Cell::default(); shape.edges[0]]; setting.threads.max(1)];

    // One member, who sends a crew along each axis: parts differ by axis, and an axis must end before the next begins.
    let member = (&mut *data, &mut spaces);
    let (ran, _) = setup.run(vec![member], AfterLimit::End, |(data, spaces), number, watch| {
        let direction = if number % 2 == 0 { Direction::Forth } else { Direction::Back };
        let points = transform(setting, &shape, data, spaces, direction, &|| watch.is_over());
        (points * 2 * size_of::<[f64; POINT]>() as u64, points)
    });

    let (_, checksum) =
        ran.check(setting.split(&mut data, POINT), |(first, part)| (0, digest(first, part.iter().map(|value| value.to_bits()))));
    let verify_values = setting.verify && ran.finished();
    let mut wrong = 0;
    if verify_values {
        if ran.last() % 2 == 0 {
            transform(setting, &shape, &mut data, &mut spaces, Direction::Back, &|| false);
        }
        (wrong, _) = ran.check(setting.split(&mut data, POINT), |(first, part)| (wrong_values(first, part), 0));
    }
    let (data_bytes, verified) = (shape.points() * size_of::<[f64; POINT]>(), Verified::of(verify_values, wrong));
    Ok(Report {
        verified,
        flop_per_operation: shape.flop_per_point(),
        ..ran.report("fft", "points", data_bytes, (wrong, checksum))
    })
}

/// What one transform moves and computes.
pub fn traffic(setting: &Setting) -> Traffic {
    let shape = Shape::new(setting.data_bytes);
    let passed = 3.0 * shape.points() as f64;
    Traffic { bytes: passed * 2.0 * size_of::<[f64; POINT]>() as f64, flop: passed * shape.flop_per_point() }
}

/// Takes `data` through the three axes with one thread for each of `spaces`; returns the points done, of three times all of them.
fn transform(
    setting: &Setting,
    shape: &Shape,
    data: &mut [f64],
    spaces: &mut [Vec<Cell>],
    direction: Direction,
    is_over: &(impl Fn() -> bool + Sync),
) -> u64 {
    let [row, rows, _] = shape.edges;
    let plane = POINT * row * rows;
    let mut points = 0;
    for pass in [along_rows, across_rows] {
        let parts = setting.split(data, plane).into_iter().zip(&mut *spaces).collect();
        points += thread_team::map(parts, |((_, part), space)| {
            let mut done = 0;
            for plane in part.chunks_exact_mut(plane) {
                pass(shape, plane, space, direction);
                done += plane.len() as u64 / POINT as u64;
                if is_over() {
                    break;
                }
            }
            done
        })
        .into_iter()
        .sum::<u64>();
        if is_over() {
            return points;
        }
    }
    // Each thread's rows of every plane.
    let mut parts: Vec<_> = spaces.iter_mut().map(|space| (Vec::new(), space)).collect();
    for plane in data.chunks_exact_mut(plane) {
        for ((strips, _), (_, strip)) in parts.iter_mut().zip(setting.split(plane, POINT * row)) {
            strips.push(strip);
        }
    }
    let done = thread_team::map(parts, |(mut strips, space)| {
        let len = strips[0].len();
        for start in (0..len).step_by(POINT * row) {
            across(shape, &mut strips, start..start + POINT * row, space, direction);
            if is_over() {
                return (start / POINT + row) * strips.len();
            }
        }
        len / POINT * strips.len()
    });
    points + done.into_iter().sum::<usize>() as u64
}

/// The first axis: a batch is as many whole rows.
fn along_rows(shape: &Shape, plane: &mut [f64], space: &mut [Cell], direction: Direction) {
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
fn across_rows(shape: &Shape, plane: &mut [f64], space: &mut [Cell], direction: Direction) {
    let len = POINT * shape.edges[0];
    let mut rows: Vec<_> = plane.chunks_exact_mut(len).collect();
    across(shape, &mut rows, 0..len, space, direction);
}

/// Lines of which every strip holds one point, at a place in `range`: a batch is as many adjacent points of every strip.
fn across(shape: &Shape, strips: &mut [&mut [f64]], range: Range<usize>, space: &mut [Cell], direction: Direction) {
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

/// Values that are not what they were at first. Written so that a NaN is wrong.
fn wrong_values(first: usize, part: &[f64]) -> u64 {
    let right = part.iter().enumerate().filter(|(offset, value)| (**value - initial(first + offset)).abs() <= TOLERANCE);
    (part.len() - right.count()) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transform_is_the_sum_that_defines_it() {
        let shape = Shape::new(40_000);
        assert_eq!(shape.edges, [16, 16, 8]);
        let before: Vec<f64> = (0..POINT * shape.points()).map(initial).collect();
        let mut data = before.clone();
        transform(&Setting::new(0, 2, 1), &shape, &mut data, &mut vec![vec![Cell::default(); 16]; 2], Direction::Forth, &|| {
            false
        });
        for (x, y, z) in [(0, 0, 0), (1, 0, 0), (0, 3, 0), (0, 0, 5), (15, 9, 2)] {
            let (mut re, mut im) = (0.0, 0.0);
            for (index, point) in before.chunks_exact(POINT).enumerate() {
                let turns = (index % 16 * x) as f64 / 16.0 + (index / 16 % 16 * y) as f64 / 16.0 + (index / 256 * z) as f64 / 8.0;
                let (sin, cos) = (-TAU * turns).sin_cos();
                (re, im) = (re + point[0] * cos - point[1] * sin, im + point[0] * sin + point[1] * cos);
            }
            let at = POINT * ((z * 16 + y) * 16 + x);
            assert!((data[at] - re).abs() < 1e-9 && (data[at + 1] - im).abs() < 1e-9, "{x} {y} {z}");
        }
    }

    #[test]
    fn a_wrong_value_is_told() {
        let mut part: Vec<f64> = (100..200).map(initial).collect();
        assert_eq!(wrong_values(100, &part), 0);
        part[17] = f64::from_bits(part[17].to_bits() ^ 1 << 40);
        part[30] = f64::NAN;
        assert_eq!(wrong_values(100, &part), 2);
    }
}
