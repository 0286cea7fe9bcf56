//! The 3-D Fourier transform of `fft` by a program that was written with two tiers in mind: two passes over the data instead of three,
//! each of which moves whole tiles of memory (out-of-core FFT after Bailey, and after Cormen and Nicol).
//!
//! The array is stored by tiles of some planes by some rows by a whole first axis, up to 2 MiB each and contiguous: a huge page. The
//! first pass takes tiles of the same planes, one run of memory, and does both axes of each plane; the second takes tiles of the same
//! rows and does the axis across planes. Either way the tiles in use are about the square root of all, and near need hold no more of
//! them. Lines are gathered by the thread that transforms them, so that no copy of the array is needed for a transposition.
//! Intensity: 5 log2(points) flop for 64 bytes of each point, three halves of that of `fft`. Results are those of `fft`, bit by bit.

use crate::buffer::Buffer;
use crate::fft_lines::{BATCH, Cell, Direction, POINT, Shape, across, along_rows, initial, wrong_values};
use crate::mapped_file::Pattern;
use crate::report::{Report, Traffic, Verified};
use crate::thread_team::{self, AfterLimit, Error, Setting};
use crate::timed_run::{Setup, digest};

/// Bytes of a tile: a huge page, so that no page holds what another step needs.
const TILE_BYTES: usize = 2 << 20;

/// Tiles of the array at least, where it has room for as many rows.
const MIN_TILES: usize = 16;

/// An array stored by tiles: those of the first planes first, and in them those of the first rows.
struct Tiled {
    shape: Shape,
    /// Planes of a tile.
    planes: usize,
    /// Rows of each of its planes.
    rows: usize,
}

impl Tiled {
    fn new(bytes: usize) -> Self {
        let shape = Shape::new(bytes);
        let [row, all_rows, all_planes] = shape.edges;
        let tile_points = (TILE_BYTES / size_of::<[f64; POINT]>()).min(shape.points() / MIN_TILES);
        let tile_rows = (tile_points / row).max(BATCH);
        // The longer of two powers of two whose product is that, and no fewer than a batch.
        let rows = (1 << tile_rows.ilog2().div_ceil(2)).max(BATCH).min(all_rows);
        Self { planes: (tile_rows / rows).clamp(1, all_planes), rows, shape }
    }

    /// Numbers in the rows that a tile has of one plane: memory's longest run of a single plane.
    fn strip(&self) -> usize {
        POINT * self.shape.edges[0] * self.rows
    }

    fn tile(&self) -> usize {
        self.planes * self.strip()
    }

    /// Tiles that have the same planes.
    fn tiles_per_group(&self) -> usize {
        self.shape.edges[1] / self.rows
    }

    /// Place, in the order of an array without tiles, of the first number of strip `number` in memory.
    fn place(&self, number: usize) -> usize {
        let (tile, plane) = (number / self.planes, number % self.planes);
        let (group, within) = (tile / self.tiles_per_group(), tile % self.tiles_per_group());
        ((group * self.planes + plane) * self.shape.edges[1] + within * self.rows) * POINT * self.shape.edges[0]
    }

    /// Calls `visit(place of the first, numbers)` for strips in the order of memory, by all threads; returns the results.
    fn strips<R: Send>(&self, setting: &Setting, data: &mut [f64], visit: impl Fn(usize, &mut [f64]) -> R + Sync) -> Vec<R> {
        let parts = thread_team::map(setting.split(data, self.strip()), |(first, part)| {
            let strips = part.chunks_exact_mut(self.strip()).zip(first / self.strip()..);
            strips.map(|(strip, number)| visit(self.place(number), strip)).collect::<Vec<R>>()
        });
        parts.into_iter().flatten().collect()
    }

    /// Takes `data` through the three axes with one thread for each of `spaces`, who share each group of tiles, so that near holds no
    /// more than one. Returns the points that were taken through an axis in each of the two passes.
    fn transform(
        &self,
        setting: &Setting,
        data: &mut [f64],
        spaces: &mut [Vec<Cell>],
        direction: Direction,
        is_over: &(impl Fn() -> bool + Sync),
    ) -> (u64, u64) {
        let row = POINT * self.shape.edges[0];
        let mut passed = (0, 0);
        for group in data.chunks_exact_mut(self.tiles_per_group() * self.tile()) {
            let mut planes: Vec<Vec<&mut [f64]>> = (0..self.planes).map(|_| Vec::new()).collect();
            for (number, strip) in group.chunks_exact_mut(self.strip()).enumerate() {
                planes[number % self.planes].push(strip);
            }
            let parts = setting.split(&mut planes, 1).into_iter().zip(&mut *spaces).collect();
            passed.0 += run(parts, |((_, planes), space)| {
                let mut points = 0;
                for plane in planes.iter_mut() {
                    if is_over() {
                        break;
                    }
                    plane.iter_mut().for_each(|strip| along_rows(&self.shape, strip, space, direction));
                    let mut rows: Vec<_> = plane.iter_mut().flat_map(|strip| strip.chunks_exact_mut(row)).collect();
                    across(&self.shape, &mut rows, 0..row, space, direction);
                    points += 2 * rows.len() * row / POINT;
                }
                points
            });
        }
        for within in 0..self.tiles_per_group() {
            let groups = data.chunks_exact_mut(self.tiles_per_group() * self.tile());
            let tiles = groups.flat_map(|group| group.chunks_exact_mut(self.tile()).nth(within));
            // Each thread's rows of every plane.
            let mut parts: Vec<_> = spaces.iter_mut().map(|space| (Vec::new(), space)).collect();
            for strip in tiles.flat_map(|tile| tile.chunks_exact_mut(self.strip())) {
                for ((strips, _), (_, own)) in parts.iter_mut().zip(setting.split(strip, row)) {
                    strips.push(own);
                }
            }
            passed.1 += run(parts, |(mut strips, space)| {
                let mut points = 0;
                for start in (0..strips[0].len()).step_by(row) {
                    if is_over() {
                        break;
                    }
                    across(&self.shape, &mut strips, start..start + row, space, direction);
                    points += strips.len() * row / POINT;
                }
                points
            });
        }
        passed
    }
}

/// The sum of what each thread did.
fn run<S: Send>(parts: Vec<S>, work: impl Fn(S) -> usize + Sync) -> u64 {
    thread_team::map(parts, work).into_iter().sum::<usize>() as u64
}

/// Bytes of the first pass, that takes points through two axes at once, and of the second: each reads and writes 16 of every point.
fn bytes((planar, across): (u64, u64)) -> u64 {
    (planar / 2 + across) * 2 * size_of::<[f64; POINT]>() as u64
}

/// Transforms `setting.repetitions` times, forth and back by turns, an array of at most `setting.data_bytes` with edges that are powers
/// of two (and at least 8 KiB). An operation is one point taken through one axis; the traffic counted is 32 bytes for each point and
/// pass, 16 read and 16 written: a plane is not counted again between its two axes. Verified and digested as `fft` is.
pub fn fft_blocked(setting: &Setting) -> Result<Report, Error> {
    let tiled = Tiled::new(setting.data_bytes);
    let setup = Setup::begin(setting);
    let mut data = Buffer::<f64>::zeroed(&setting.placement, POINT * tiled.shape.points())?;
    data.announce(Pattern::Sequential);
    tiled.strips(setting, &mut data, |first, strip| {
        strip.iter_mut().enumerate().for_each(|(offset, value)| *value = initial(first + offset));
    });
    let mut spaces = vec![vec![Cell::default(); tiled.shape.edges[0]]; setting.threads.max(1)];

    // One member, who sends a crew over each group of tiles.
    let member = (&mut *data, &mut spaces);
    let (ran, _) = setup.run(vec![member], AfterLimit::End, |(data, spaces), number, watch| {
        let direction = if number % 2 == 0 { Direction::Forth } else { Direction::Back };
        let passed = tiled.transform(setting, data, spaces, direction, &|| watch.is_over());
        (bytes(passed), passed.0 + passed.1)
    });

    let mut checksum = 0u64;
    if setting.verify {
        let digests = tiled.strips(setting, &mut data, |first, strip| digest(first, strip.iter().map(|value| value.to_bits())));
        checksum = digests.into_iter().fold(0, u64::wrapping_add);
    }
    let verify_values = setting.verify && ran.finished();
    let mut wrong = 0;
    if verify_values {
        if ran.last() % 2 == 0 {
            tiled.transform(setting, &mut data, &mut spaces, Direction::Back, &|| false);
        }
        wrong = tiled.strips(setting, &mut data, |first, strip| wrong_values(first, strip)).into_iter().sum();
    }
    let (data_bytes, verified) = (size_of_val(&*data), Verified::of(verify_values, wrong));
    Ok(Report {
        verified,
        flop_per_operation: tiled.shape.flop_per_point(),
        ..ran.report("fft-blocked", "points", data_bytes, (wrong, checksum))
    })
}

/// What one transform moves and computes.
pub fn traffic(setting: &Setting) -> Traffic {
    let shape = Shape::new(setting.data_bytes);
    let points = shape.points() as f64;
    Traffic { bytes: 2.0 * points * 2.0 * size_of::<[f64; POINT]>() as f64, flop: 3.0 * points * shape.flop_per_point() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fft;

    #[test]
    fn results_are_those_of_the_transform_without_tiles() {
        for (bytes, repetitions) in [(1, 1), (40_000, 1), (1 << 20, 1), (1 << 20, 2), (3 << 20, 3)] {
            let setting = Setting::new(bytes, 2, repetitions);
            let blocked = fft_blocked(&setting).expect("a small transform");
            assert_eq!(blocked.verified, Verified::Right);
            assert_eq!(blocked.checksum, fft::fft(&setting).expect("a small transform").checksum, "{bytes} {repetitions}");
        }
    }

    #[test]
    fn tiles_are_huge_pages_and_a_pass_needs_few_of_them() {
        let tiled = Tiled::new(512 << 20);
        assert_eq!((tiled.tile() * 8, tiled.tiles_per_group(), tiled.shape.edges[2] / tiled.planes), (TILE_BYTES, 16, 16));
        let mut places: Vec<usize> = (0..tiled.shape.edges[1] * 256 / tiled.rows).map(|number| tiled.place(number)).collect();
        places.sort_unstable();
        assert!(places.iter().enumerate().all(|(number, &place)| place == number * tiled.strip()));
    }
}
