//! 3-D Fourier transform of complex f64, in place, axis after axis: one walk along memory, one across rows, one across whole planes.
//!
//! Repetitions go forth and back by turns, so that the initial data must come out again. A line's arithmetic is the same whichever
//! thread does it: results are the same to the last bit. Does not keep a plane's first two axes together: each is a pass of its own.

use crate::buffer::Buffer;
use crate::fft_lines::{Cell, Direction, POINT, Shape, across, across_rows, along_rows, initial, wrong_values};
use crate::mapped_file::Pattern;
use crate::report::{Report, Traffic, Verified};
use crate::thread_team::{self, AfterLimit, Error, Setting};
use crate::timed_run::{Setup, digest};

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

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::TAU;

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
}
