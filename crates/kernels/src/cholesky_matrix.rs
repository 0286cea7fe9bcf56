//! The linear systems that `cholesky` solves: a 7-point Laplacian with random coefficients, another one in every repetition.
//!
//! All values follow from the place in the grid. The matrix is symmetric and positive definite: beyond the edges of the grid all is zero.

use crate::cholesky_tree::Tree;
use nearfar_core::random_numbers::{mix, unit};

/// How far A x may be off from b, relative to the sum of the magnitudes in a row.
const TOLERANCE: f64 = 1e-12;

/// What joins a point to its neighbour along an axis, beyond the edge of the grid too.
fn coefficient(repetition: usize, axis: usize, lower: usize) -> f64 {
    1.0 + unit(mix((repetition as u64) << 56 | (3 * lower + axis) as u64))
}

/// The right-hand side.
pub fn b_at(repetition: usize, point: usize) -> f64 {
    2.0 * unit(mix(!((repetition as u64) << 56 | point as u64))) - 1.0
}

/// The diagonal of a row of the matrix, and (neighbour, entry) off it.
pub fn row_of(tree: &Tree, repetition: usize, point: usize) -> (f64, impl Iterator<Item = (usize, f64)>) {
    let joined = tree.neighbours(point).map(|(axis, other)| {
        let value = other.map_or(1.0, |other| coefficient(repetition, axis, other.min(point)));
        (other, value)
    });
    (joined.iter().map(|(_, value)| value).sum(), joined.into_iter().filter_map(|(other, value)| Some((other?, -value))))
}

/// Rows in which A x is not b. Written so that a NaN is wrong.
pub fn wrong_rows(tree: &Tree, x: &[f64], repetition: usize) -> u64 {
    let at = |point: usize| x[tree.places[point] as usize];
    let right = (0..tree.points.len()).filter(|&point| {
        let (diagonal, others) = row_of(tree, repetition, point);
        let b = b_at(repetition, point);
        let add = |(sum, size): (f64, f64), value: f64| (sum + value, size + value.abs());
        let (sum, size) = others.map(|(other, entry)| entry * at(other)).fold(add((-b, b.abs()), diagonal * at(point)), add);
        sum.abs() <= TOLERANCE * size
    });
    (tree.points.len() - right.count()) as u64
}
