//! The loop of a plane-wave density-functional code (VASP, Quantum ESPRESSO, ABINIT): each band goes through the Hamiltonian by way of
//! Fourier transforms, is projected onto the atoms' projectors, and all bands are made orthogonal again.
//!
//! A repetition is a step of imaginary time (split operator, Feit and Fleck): half the kinetic factor, to real space, the potential,
//! back, half the kinetic factor; then the non-local part. Bands are the data, each a cube of points, and are walked in order, but for
//! the orthogonalisation, whose step for each block of bands goes over all bands before it: with n blocks, some n / 2 passes for the
//! inner products and as many for the update. Intensity: for N points, 10 log2 N + 8 flop for 40 bytes of each in the transforms, and in
//! the products up to 8 flop per byte, since a number of 16 bytes meets the 16 bands of a block with 8 flop each.

use std::time::Instant;

use crate::buffer::Buffer;
use crate::complex_tile::{Block, COLUMNS, ZERO};
use crate::fft_lines::{Cell, Direction, POINT, Shape, initial, transform_alone};
use crate::mapped_file::Pattern;
use crate::report::{Report, Traffic, Verified};
use crate::tall_matrices::{Crew, added};
use crate::thread_team::{self, AfterLimit, Done, Error, Setting, Watch};
use crate::timed_run::{Setup, digest};

/// Projectors: one block of columns.
const PROJECTORS: usize = COLUMNS;

/// Columns of data at least, bands and projectors: the cube grows with the data.
const MIN_COLUMNS: usize = 64;

/// What a projector takes from a band.
const STRENGTH: f64 = 0.3;

/// The kinetic factor of the highest frequency along one axis.
const DECAY: f64 = 0.8;

/// How far inner products of bands, and the part of a vector that is outside of the bands, may be off.
const TOLERANCE: f64 = 1e-9;

/// The names of the parts of a repetition.
const PARTS: [&str; 3] = ["fft", "projections", "orthogonalisation"];

/// Bands in the order of memory, and what acts on them.
struct System {
    shape: Shape,
    /// Half the kinetic factor along each axis.
    kinetic: [Vec<f64>; 3],
    potential: Buffer<f64>,
    projectors: Buffer<f64>,
}

/// The cube, and how many bands go with it.
fn sizes(bytes: usize) -> (Shape, usize) {
    let shape = Shape::new(bytes / MIN_COLUMNS);
    let columns = bytes / (shape.points() * size_of::<[f64; POINT]>());
    // The potential takes half a column.
    (shape, columns.saturating_sub(PROJECTORS + 1).max(1))
}

/// Runs `setting.repetitions` steps with as many bands as fit into `setting.data_bytes` beside 16 projectors and the potential. An
/// operation is one floating-point operation. The traffic counted: a band is read and written once by its two transforms, which read
/// the potential as well; projectors and a block of bands are read for the products, and again to be combined; the orthogonalisation
/// reads for each block of 16 bands all bands up to it, for the products and for the update. Blocks on the diagonal count whole, as
/// they are computed. Verified: all bands are orthonormal, and a random combination of the first bands, taken through the same steps,
/// is a combination of the last ones; not where the time limit cut a repetition off.
pub fn planewave(setting: &Setting) -> Result<Report, Error> {
    let setup = Setup::begin(setting);
    let (system, count) = System::new(setting)?;
    let column = POINT * system.shape.points();
    let mut bands = Buffer::<f64>::zeroed(&setting.placement, count * column)?;
    bands.announce(Pattern::Sequential);
    thread_team::map(setting.split(&mut bands, POINT), |(first, part)| {
        part.iter_mut().enumerate().for_each(|(offset, value)| *value = initial(first + offset));
    });

    // One member, who sends a crew through each part.
    let mut seconds = [0.0; PARTS.len()];
    let member = (&mut *bands, &mut seconds);
    let (ran, _) =
        setup.run(vec![member], AfterLimit::End, |(bands, seconds), _, watch| step(setting, &system, bands, seconds, watch));

    let digests =
        ran.check(setting.split(&mut bands, POINT), |(first, part)| (0, digest(first, part.iter().map(|value| value.to_bits()))));
    let verify_values = setting.verify && ran.finished();
    let wrong = if verify_values { system.wrong_values(setting, &bands, ran.last() + 1) } else { 0 };
    let data_bytes = size_of_val(&*bands) + size_of_val(&*system.projectors) + size_of_val(&*system.potential);
    Ok(Report {
        verified: Verified::of(verify_values, wrong),
        flop_per_operation: 1.0,
        parts: PARTS.into_iter().zip(seconds).collect(),
        ..ran.report("planewave", "flop", data_bytes, (wrong, digests.1))
    })
}

/// What one step moves and computes.
pub fn traffic(setting: &Setting) -> Traffic {
    let (shape, count) = sizes(setting.data_bytes);
    let (points, bands) = (shape.points() as f64, count as f64);
    let of_column = points * size_of::<[f64; POINT]>() as f64;
    let blocks = count.div_ceil(COLUMNS) as f64;
    // Sums over blocks of the bands up to each of them, and of those times the bands of the block.
    let up_to = |block: usize| ((block + 1) * COLUMNS).min(count);
    let of_block = |block: usize| up_to(block) - block * COLUMNS;
    let all = 0..count.div_ceil(COLUMNS);
    let read = all.clone().map(up_to).sum::<usize>() as f64;
    let pairs = all.map(|block| up_to(block) * of_block(block)).sum::<usize>() as f64;
    let transforms = (2.5 * bands * of_column, bands * points * (6.0 * shape.flop_per_point() + 8.0));
    let projectors = PROJECTORS as f64;
    let projections = ((2.0 * projectors * blocks + 3.0 * bands) * of_column, 16.0 * projectors * bands * points);
    let orthogonal = ((2.0 * read + 2.0 * bands) * of_column, 16.0 * pairs * points);
    Traffic { bytes: transforms.0 + projections.0 + orthogonal.0, flop: transforms.1 + projections.1 + orthogonal.1 }
}

type Part<'a> = dyn Fn(&mut [f64]) -> Done + 'a;

/// One step; the seconds of its parts, and (bytes, flop).
fn step(setting: &Setting, system: &System, bands: &mut [f64], seconds: &mut [f64; 3], watch: &Watch) -> Done {
    // Parts that the time limit leaves out took no time.
    *seconds = [0.0; PARTS.len()];
    let is_over = || watch.is_over();
    let crew = system.crew(setting, &is_over);
    let parts: [&Part; 3] =
        [&|bands| system.propagate(&crew, bands), &|bands| system.project(&crew, bands), &|bands| orthogonalise(&crew, bands)];
    let mut done = (0, 0);
    for (part, seconds) in parts.iter().zip(seconds) {
        let start = Instant::now();
        done = added(done, part(bands));
        *seconds = start.elapsed().as_secs_f64();
        if watch.is_over() {
            break;
        }
    }
    done
}

impl System {
    /// And the number of bands that go with it.
    fn new(setting: &Setting) -> Result<(Self, usize), Error> {
        let (shape, count) = sizes(setting.data_bytes);
        let points = shape.points();
        // Frequencies go up to the middle of an axis, and then down from below zero.
        let factor = |place: usize, edge: usize| DECAY.powf((2.0 * place.min(edge - place) as f64 / edge as f64).powi(2) / 2.0);
        let kinetic = shape.edges.map(|edge| (0..edge).map(|place| factor(place, edge)).collect());
        let mut potential = Buffer::<f64>::zeroed(&setting.placement, points)?;
        let mut projectors = Buffer::<f64>::zeroed(&setting.placement, PROJECTORS * POINT * points)?;
        potential.iter_mut().enumerate().for_each(|(place, value)| *value = potential_at(place));
        projectors.iter_mut().enumerate().for_each(|(place, value)| *value = projector_at(points, place));
        Ok((Self { shape, kinetic, potential, projectors }, count))
    }

    fn crew<'a>(&self, setting: &'a Setting, is_over: &'a (dyn Fn() -> bool + Sync)) -> Crew<'a> {
        Crew { setting, rows: self.shape.points(), is_over }
    }

    /// The local part of a step, band after band, each by one thread.
    fn propagate(&self, crew: &Crew, bands: &mut [f64]) -> Done {
        let parts = crew.setting.split(bands, crew.column());
        let done = thread_team::map(parts, |(_, bands)| {
            let mut space = vec![Cell::default(); self.shape.edges[0]];
            bands.chunks_exact_mut(crew.column()).take_while(|_| !(crew.is_over)()).fold(0, |done, band| {
                self.move_freely(band);
                transform_alone(&self.shape, band, &mut space, Direction::Back);
                for (point, factor) in band.chunks_exact_mut(POINT).zip(&*self.potential) {
                    point.iter_mut().for_each(|part| *part *= factor);
                }
                transform_alone(&self.shape, band, &mut space, Direction::Forth);
                self.move_freely(band);
                done + 1
            })
        });
        let (bands, points) = (done.into_iter().sum::<u64>(), crew.rows as u64);
        // A point: three axes twice; one factor for each of two kinetic halves, and twice two products with it; two for the potential.
        let flop = (6.0 * self.shape.flop_per_point()).round() as u64 + 8;
        (bands * points * (2 * size_of::<[f64; POINT]>() + size_of::<f64>()) as u64, bands * points * flop)
    }

    /// Half the kinetic factor.
    fn move_freely(&self, band: &mut [f64]) {
        let [along, across, over] = &self.kinetic;
        let factors = over.iter().flat_map(|over| across.iter().map(move |across| over * across));
        for (row, outer) in band.chunks_exact_mut(POINT * along.len()).zip(factors) {
            for (point, inner) in row.chunks_exact_mut(POINT).zip(along) {
                let factor = outer * inner;
                point.iter_mut().for_each(|part| *part *= factor);
            }
        }
    }

    /// The non-local part of a step, by blocks of bands.
    fn project(&self, crew: &Crew, bands: &mut [f64]) -> Done {
        let blocks = bands.chunks_mut(COLUMNS * crew.column());
        blocks.fold((0, 0), |done, block| added(done, crew.subtract(&self.projectors, STRENGTH, block)))
    }

    /// Pairs of bands that are not orthonormal, values of potential and projectors that are not as they were made, and one more if the bands
    /// are not those that `steps` make. Written so that NaN is wrong.
    fn wrong_values(&self, setting: &Setting, bands: &[f64], steps: usize) -> u64 {
        let crew = self.crew(setting, &|| false);
        let column = crew.column();
        let count = bands.len() / column;
        let gram = gram(&crew, bands).0;
        let close = |i: usize, j: usize| {
            let [re, im] = gram[j * count + i];
            (re - if i == j { 1.0 } else { 0.0 }).abs() <= TOLERANCE && im.abs() <= TOLERANCE
        };
        let right = (0..count).map(|j| (0..=j).filter(|&i| close(i, j)).count()).sum::<usize>();

        // Steps are linear and the bands of each span what it makes of the bands before: so a combination of the first bands ends in the
        // span of the last.
        let mut vector = vec![0.0; column];
        thread_team::map(setting.split(&mut vector, POINT), |(first, part)| {
            for band in 0..count {
                let factor = initial(2 << 60 | band);
                let values = part.iter_mut().zip(band * column + first..);
                values.for_each(|(value, index)| *value += factor * initial(index));
            }
        });
        for _ in 0..steps {
            self.propagate(&crew, &mut vector);
            self.project(&crew, &mut vector);
        }
        let norm = |vector: &[f64]| crew.products(vector, vector).0[0][0][0][0].sqrt();
        let whole = norm(&vector);
        crew.subtract(bands, 1.0, &mut vector);
        let is_inside = norm(&vector) <= TOLERANCE * whole;
        let differ = |values: &[f64], made: &dyn Fn(usize) -> f64| {
            values.iter().enumerate().filter(|(place, value)| value.to_bits() != made(*place).to_bits()).count()
        };
        let spoiled =
            differ(&self.potential, &potential_at) + differ(&self.projectors, &|place| projector_at(self.shape.points(), place));
        (count * (count + 1) / 2 - right + spoiled) as u64 + u64::from(!is_inside)
    }
}

fn potential_at(place: usize) -> f64 {
    0.75 + 0.25 * initial(!place)
}

/// Of projectors over so many points. Parts of a random number in -1..1 have mean square 1/3: this is nearly of norm 1.
fn projector_at(points: usize, place: usize) -> f64 {
    (1.5 / points as f64).sqrt() * initial(1 << 60 | place)
}

/// Inner products of bands, column by column of the upper triangle, and (bytes, flop).
fn gram(crew: &Crew, bands: &[f64]) -> (Vec<[f64; 2]>, Done) {
    let count = bands.len() / crew.column();
    let (mut gram, mut done) = (vec![[0.0; 2]; count * count], (0, 0));
    for first in (0..count).step_by(COLUMNS) {
        let end = (first + COLUMNS).min(count);
        let (blocks, passed) = crew.products(&bands[..end * crew.column()], &bands[first * crew.column()..end * crew.column()]);
        for j in first..end {
            for i in 0..end {
                let [re, im] = &blocks[i / COLUMNS];
                gram[j * count + i] = [re[i % COLUMNS][j - first], im[i % COLUMNS][j - first]];
            }
        }
        done = added(done, passed);
    }
    (gram, done)
}

/// Makes bands orthonormal in order: inner products, their Cholesky factor, and an update with its inverse by blocks of bands, from the
/// last to the first, since each needs the bands before it as they were.
fn orthogonalise(crew: &Crew, bands: &mut [f64]) -> Done {
    let count = bands.len() / crew.column();
    let (gram, mut done) = gram(crew, bands);
    let factors = inverse_factor(gram, count);
    for first in (0..count).step_by(COLUMNS).rev() {
        if (crew.is_over)() {
            break;
        }
        let end = (first + COLUMNS).min(count);
        let block = |row: usize| -> Block {
            let mut block = ZERO;
            for (j, i) in (first..end).flat_map(|j| (row..(row + COLUMNS).min(j + 1)).map(move |i| (j, i))) {
                let [re, im] = factors[j * count + i];
                (block[0][i - row][j - first], block[1][i - row][j - first]) = (re, im);
            }
            block
        };
        let (before, rest) = bands.split_at_mut(first * crew.column());
        let above: Vec<Block> = (0..first).step_by(COLUMNS).map(block).collect();
        done = added(done, crew.combine(before, &above, Some(&block(first)), &mut rest[..(end - first) * crew.column()]));
    }
    done
}

/// The inverse of the upper triangular R with R^H R = `gram`, column by column; small, and not counted.
fn inverse_factor(mut gram: Vec<[f64; 2]>, count: usize) -> Vec<[f64; 2]> {
    // a - conj(b) c, and a - b c.
    let minus = |a: [f64; 2], b: [f64; 2], c: [f64; 2], sign: f64| {
        [a[0] - b[0] * c[0] + sign * b[1] * c[1], a[1] - b[0] * c[1] - sign * b[1] * c[0]]
    };
    for j in 0..count {
        for i in 0..=j {
            let sum = (0..i).fold(gram[j * count + i], |sum, k| minus(sum, gram[i * count + k], gram[j * count + k], -1.0));
            gram[j * count + i] = if i == j { [sum[0].sqrt(), 0.0] } else { sum.map(|part| part / gram[i * count + i][0]) };
        }
    }
    let mut inverse = vec![[0.0; 2]; count * count];
    for j in 0..count {
        inverse[j * count + j] = [1.0 / gram[j * count + j][0], 0.0];
        for i in (0..j).rev() {
            let sum = (i + 1..=j).fold([0.0; 2], |sum, k| minus(sum, gram[k * count + i], inverse[j * count + k], 1.0));
            inverse[j * count + i] = sum.map(|part| part / gram[i * count + i][0]);
        }
    }
    inverse
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_bit_is_told_whenever_it_came() {
        let setting = Setting::new(700_000, 2, 2);
        let (mut system, count) = System::new(&setting).expect("a small system");
        let column = POINT * system.shape.points();
        for spoiled in [None, Some((0, 0)), Some((0, column + 3)), Some((1, column * (count - 1) + 77)), Some((2, 500))] {
            let mut bands: Vec<f64> = (0..count * column).map(initial).collect();
            let flip = |bands: &mut [f64], time: usize| {
                if let Some((_, place)) = spoiled.filter(|(when, _)| *when == time) {
                    bands[place] = f64::from_bits(bands[place].to_bits() ^ 1 << 44);
                }
            };
            flip(&mut bands, 0);
            thread_team::run(&setting, vec![&mut bands], AfterLimit::End, |bands, number, watch| {
                step(&setting, &system, bands, &mut [0.0; 3], watch);
                flip(bands, number + 1);
                (0, 0)
            });
            assert_eq!(system.wrong_values(&setting, &bands, 2) > 0, spoiled.is_some(), "{spoiled:?}");
            if spoiled.is_none() {
                // Bands that were made with a wrong potential are wrong even when the check makes the same mistake.
                let right = std::mem::replace(&mut system.potential[5], 0.5);
                assert!(system.wrong_values(&setting, &bands, 2) > 0);
                system.potential[5] = right;
            }
        }
    }
}
