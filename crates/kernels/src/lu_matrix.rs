//! The matrix that the LU workloads factor, the run of such a workload, and the verification of its factors.
//!
//! The matrix is diagonally dominant, so that no pivoting is needed, and another one in every repetition. Verified as A x = L (U x)
//! (Freivalds), also where elimination stopped early and a rest of the matrix is not factored yet. Does not factor.

use crate::buffer::Buffer;
use crate::mapped_file::Pattern;
use crate::report::{Report, Verified};
use crate::thread_team::{self, AfterLimit, Done, Error, Setting, Watch};
use crate::timed_run::{Setup, digest};
use nearfar_core::random_numbers::{mix, unit};

/// How far L (U x) may be off from A x, relative to the sum of the magnitudes in a row of A.
const TOLERANCE: f64 = 1e-12;

/// A square matrix of `tiles` x `tiles` square tiles, each contiguous in memory. Tiles and the values of a tile are stored column by
/// column. With one tile it is the usual matrix by columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Tiles per side of the matrix.
    pub tiles: usize,
    /// Values per side of a tile.
    pub size: usize,
}

/// A factorization that is to be run.
#[derive(Clone, Copy, Debug)]
pub struct Factorization {
    /// The name of the workload.
    pub workload: &'static str,
    /// How the matrix is stored.
    pub layout: Layout,
    /// Columns that are eliminated; the order, where the factorization is a whole one.
    pub steps: usize,
}

impl Layout {
    /// The usual matrix by columns, with `order` rows.
    pub const fn by_columns(order: usize) -> Self {
        Self { tiles: 1, size: order }
    }

    /// Rows and columns of the matrix.
    pub const fn order(self) -> usize {
        self.tiles * self.size
    }

    /// Values of a tile.
    pub const fn values_per_tile(self) -> usize {
        self.size * self.size
    }

    /// Row and column of the first value of a strip; a strip is one column of one tile, and `number` its place in memory.
    const fn place(self, number: usize) -> (usize, usize) {
        let (tile, column) = (number / self.size, number % self.size);
        (tile % self.tiles * self.size, tile / self.tiles * self.size + column)
    }

    /// Calls `visit(row and column of its first value, strip)` for the strips of a part that begins at the value number `first`.
    fn for_each_strip<'a>(self, first: usize, part: &'a [f64], mut visit: impl FnMut(usize, usize, &'a [f64])) {
        for (offset, strip) in part.chunks_exact(self.size).enumerate() {
            let (row, column) = self.place(first / self.size + offset);
            visit(row, column, strip);
        }
    }
}

/// The value of the matrix of a repetition.
pub fn a_at(order: usize, repetition: usize, row: usize, column: usize) -> f64 {
    let random = mix((repetition as u64) << 56 | (column * order + row) as u64);
    let value = 2.0 * unit(random) - 1.0;
    if row == column { value + order as f64 } else { value }
}

/// Writes a matrix and has it factored, `setting.repetitions` times in the same place. The traffic of writing the matrix anew is added to
/// what `factorize` counts. Not verified where the time limit cut a repetition off.
pub fn run(
    setting: &Setting,
    how: Factorization,
    factorize: impl Fn(&mut [f64], &Watch) -> Done + Sync,
) -> Result<Report, Error> {
    let Factorization { workload, layout, steps } = how;
    let setup = Setup::begin(setting);
    let mut matrix = Buffer::<f64>::zeroed(&setting.placement, layout.order() * layout.order())?;
    if layout.tiles == 1 {
        matrix.announce(Pattern::Sequential);
    }
    // No repetition meets fresh pages.
    thread_team::map(setting.split(&mut matrix, layout.size), |(_, part)| part.fill(-1.0));

    // One member, who sends a crew over each part of the matrix.
    let (ran, _) = setup.run(vec![&mut *matrix], AfterLimit::End, |matrix, number, watch| {
        let fills =
            thread_team::map(setting.split(matrix, layout.size), |(first, part)| fill(layout, number, first, part, watch));
        let filled = fills.into_iter().sum::<u64>() * size_of::<f64>() as u64;
        let (bytes, flop) = if watch.is_over() { (0, 0) } else { factorize(matrix, watch) };
        (filled + bytes, flop)
    });

    let (_, checksum) = ran.check(setting.split(&mut matrix, layout.size), |(first, part)| (0, checksum(layout, first, part)));
    let verify_product = setting.verify && ran.finished();
    let wrong = if verify_product { wrong_rows(setting, &mut matrix, layout, steps, ran.last()) } else { 0 };
    let data_bytes = matrix.len() * size_of::<f64>();
    let verified = Verified::of(verify_product, wrong);
    Ok(Report { verified, flop_per_operation: 1.0, ..ran.report(workload, "flop", data_bytes, (wrong, checksum)) })
}

/// Writes strips from the value number `first` on; returns the values written.
fn fill(layout: Layout, repetition: usize, first: usize, part: &mut [f64], watch: &Watch) -> u64 {
    for (number, strip) in part.chunks_exact_mut(layout.size).enumerate() {
        let (row, column) = layout.place(first / layout.size + number);
        let order = layout.order();
        strip.iter_mut().enumerate().for_each(|(offset, value)| *value = a_at(order, repetition, row + offset, column));
        if watch.is_over() {
            return ((number + 1) * layout.size) as u64;
        }
    }
    part.len() as u64
}

/// By row and column, not by memory, so that it is the same for every layout.
fn checksum(layout: Layout, first: usize, part: &[f64]) -> u64 {
    let mut sum = 0u64;
    layout.for_each_strip(first, part, |row, column, strip| {
        let bits = strip.iter().map(|value| value.to_bits());
        sum = sum.wrapping_add(digest(column * layout.order() + row, bits));
    });
    sum
}

/// Rows in which L (U x) is not A x, for an x of values that no two columns share. After the first `steps` columns were eliminated, U has
/// as many rows, and what remains of the matrix is taken times x itself. Written so that a NaN is wrong.
pub fn wrong_rows(setting: &Setting, matrix: &mut [f64], layout: Layout, steps: usize, repetition: usize) -> u64 {
    let order = layout.order();
    let x: Vec<f64> = (0..order).map(|column| 1.0 + unit(mix(!(column as u64)))).collect();
    let expected = product(setting, matrix, layout, |row, column, strip, sum| {
        let places = sum[row..].iter_mut().take(strip.len()).enumerate();
        places.for_each(|(offset, sum)| *sum += a_at(order, repetition, row + offset, column) * x[column]);
    });
    let upper = product(setting, matrix, layout, |row, column, strip, sum| {
        let end = (column + 1).min(steps).clamp(row, row + strip.len());
        add_times(&mut sum[row..end], &strip[..end - row], x[column]);
    });
    let both = product(setting, matrix, layout, |row, column, strip, sum| {
        let rows = row..row + strip.len();
        if column < steps && rows.contains(&column) {
            // The diagonal of L.
            sum[column] += upper[column];
        }
        let (start, factor) = if column < steps { (column + 1, upper[column]) } else { (steps, x[column]) };
        let start = start.clamp(rows.start, rows.end);
        add_times(&mut sum[start..rows.end], &strip[start - row..], factor);
    });
    let right = both.iter().zip(&expected).filter(|(both, expected)| (*both - *expected).abs() <= TOLERANCE * 2.0 * order as f64);
    (order - right.count()) as u64
}

fn add_times(sum: &mut [f64], values: &[f64], factor: f64) {
    sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += value * factor);
}

/// The sum of what `add(row and column of its first value, strip, sum)` makes of all strips.
fn product(
    setting: &Setting,
    matrix: &mut [f64],
    layout: Layout,
    add: impl Fn(usize, usize, &[f64], &mut [f64]) + Sync,
) -> Vec<f64> {
    let sums = thread_team::map(setting.split(matrix, layout.size), |(first, part)| {
        let mut sum = vec![0.0; layout.order()];
        layout.for_each_strip(first, part, |row, column, strip| add(row, column, strip, &mut sum));
        sum
    });
    let total = |row: usize| sums.iter().map(|sum| sum[row]).sum();
    (0..layout.order()).map(total).collect()
}

/// Factors the matrix of repetition 5, and asserts that a changed bit is found at any of `places`.
#[cfg(test)]
pub fn assert_wrong_values_are_told(
    how: Factorization,
    places: &[(usize, usize)],
    factorize: impl Fn(&Setting, &mut [f64], &Watch) -> Done + Sync,
) {
    let (layout, order, setting) = (how.layout, how.layout.order(), Setting::new(0, 2, 1));
    let mut matrix = vec![0.0; order * order];
    thread_team::run(&setting, vec![&mut matrix], AfterLimit::End, |matrix, _, watch| {
        fill(layout, 5, 0, matrix, watch);
        factorize(&setting, matrix, watch)
    });
    assert_eq!(wrong_rows(&setting, &mut matrix, layout, how.steps, 5), 0);
    for &(row, column) in places {
        let mut spoilt = matrix.clone();
        let tile = column / layout.size * layout.tiles + row / layout.size;
        let value = &mut spoilt[(tile * layout.size + column % layout.size) * layout.size + row % layout.size];
        *value = f64::from_bits(value.to_bits() ^ 1 << 48);
        assert!(wrong_rows(&setting, &mut spoilt, layout, how.steps, 5) > 0, "row {row}, column {column}");
    }
}
