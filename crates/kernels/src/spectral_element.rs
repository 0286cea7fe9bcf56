//! One spectral element of 8 x 8 x 8 points: derivatives on it, geometric factors, and the operator `D^T G D`.
//!
//! Numbers of a block stand along x first, so that the inner loops run over lines of eight. Does not know of neighbours: that is
//! `spectral`.

use nearfar_core::random_numbers::{mix, unit};

/// Points per edge of an element.
pub const N: usize = 8;
/// Points in it.
pub const POINTS: usize = N * N * N;
/// Geometric factors per point: the upper half of a symmetric matrix.
pub const FACTORS: usize = 6;
/// Floating-point operations of [`Element::apply`]: six products with D, and the factors.
pub const FLOP: usize = (12 * N + 15) * POINTS;

/// One value per point.
pub type Block = [f64; POINTS];
/// The geometric factors of an element, by factor and then by point.
pub type Factors = [Block; FACTORS];
type Line = [f64; N];
type Square = [Line; N];

/// The points of Gauss, Lobatto and Legendre in -1..1 and their weights, the second half.
const NODES: [f64; N / 2] = [0.209_299_217_902_478_87, 0.591_700_181_433_142_3, 0.871_740_148_509_606_6, 1.0];
const WEIGHTS: [f64; N / 2] =
    [0.412_458_794_658_703_9, 0.341_122_692_483_504_36, 0.210_704_227_143_506_05, 0.035_714_285_714_285_71];

/// The geometric factors of a point: a slightly deformed cube, times the point's weight in the integral.
pub fn factors_at(element: usize, point: usize) -> [f64; FACTORS] {
    let weight = |place: usize| WEIGHTS[if place < N / 2 { N / 2 - 1 - place } else { place - N / 2 }];
    let all = weight(point % N) * weight(point / N % N) * weight(point / (N * N));
    let random = |factor: usize| unit(mix(((element * POINTS + point) * FACTORS + factor) as u64)) - 0.5;
    let mut factors = [1.0, 0.0, 0.0, 1.0, 0.0, 1.0];
    factors.iter_mut().enumerate().for_each(|(number, factor)| *factor = all * (*factor + 0.3 * random(number)));
    factors
}

/// What is the same for all elements.
#[derive(Clone, Debug)]
pub struct Element {
    /// The derivative at each point of the polynomial that is 1 at one point and 0 at the others: `[at point][of polynomial]`.
    pub derivatives: Square,
    transposed: Square,
}

impl Element {
    /// The derivatives, from the products of the distances between points.
    pub fn new() -> Self {
        let node = |place: usize| if place < N / 2 { -NODES[N / 2 - 1 - place] } else { NODES[place - N / 2] };
        let scale = |place: usize| (0..N).filter(|&other| other != place).map(|other| node(place) - node(other)).product::<f64>();
        let (mut derivatives, mut transposed) = ([[0.0; N]; N], [[0.0; N]; N]);
        for (row, values) in derivatives.iter_mut().enumerate() {
            for (column, value) in values.iter_mut().enumerate().filter(|(column, _)| *column != row) {
                *value = scale(row) / (scale(column) * (node(row) - node(column)));
            }
            values[row] = -values.iter().sum::<f64>();
            values.iter().enumerate().for_each(|(column, value)| transposed[column][row] = *value);
        }
        Self { derivatives, transposed }
    }

    /// `w = D^T G D u`.
    pub fn apply(&self, factors: &Factors, u: &Block, w: &mut Block) {
        let (d, t, u) = (&self.derivatives, &self.transposed, u.as_chunks::<N>().0);
        let mut fluxes = [[[0.0; N]; N * N]; 3];
        for line in 0..N * N {
            let (y, z) = (line % N, line / N);
            let along_x = combined(&u[line], |k| &t[k]);
            let along_y = combined(&d[y], |k| &u[z * N + k]);
            let along_z = combined(&d[z], |k| &u[k * N + y]);
            let [g0, g1, g2, g3, g4, g5]: [&Line; FACTORS] = std::array::from_fn(|factor| &factors[factor].as_chunks().0[line]);
            for x in 0..N {
                fluxes[0][line][x] = g0[x] * along_x[x] + g1[x] * along_y[x] + g2[x] * along_z[x];
                fluxes[1][line][x] = g1[x] * along_x[x] + g3[x] * along_y[x] + g4[x] * along_z[x];
                fluxes[2][line][x] = g2[x] * along_x[x] + g4[x] * along_y[x] + g5[x] * along_z[x];
            }
        }
        for (line, w) in w.as_chunks_mut::<N>().0.iter_mut().enumerate() {
            let (y, z) = (line % N, line / N);
            *w = combined(&fluxes[0][line], |k| &d[k]);
            add_combined(w, &t[y], |k| &fluxes[1][z * N + k]);
            add_combined(w, &t[z], |k| &fluxes[2][k * N + y]);
        }
    }

    /// The same from the definition, with the factors by point: slow, and shares no code with [`Self::apply`].
    pub fn apply_by_definition(&self, factors: &[[f64; FACTORS]; POINTS], u: &Block, w: &mut Block) {
        let d = &self.derivatives;
        let mut fluxes = [[0.0; 3]; POINTS];
        for (point, (fluxes, g)) in fluxes.iter_mut().zip(factors).enumerate() {
            let slope = |axis| (0..N).map(|k| d[along(point, axis)][k] * u[moved(point, axis, k)]).sum::<f64>();
            let slopes = [slope(0), slope(1), slope(2)];
            for (flux, factors) in fluxes.iter_mut().zip([[0, 1, 2], [1, 3, 4], [2, 4, 5]]) {
                *flux = factors.iter().zip(slopes).map(|(&factor, slope)| g[factor] * slope).sum();
            }
        }
        for (point, w) in w.iter_mut().enumerate() {
            let of_axis = |axis| (0..N).map(|k| d[k][along(point, axis)] * fluxes[moved(point, axis, k)][axis]).sum::<f64>();
            *w = of_axis(0) + of_axis(1) + of_axis(2);
        }
    }
}

impl Default for Element {
    fn default() -> Self {
        Self::new()
    }
}

/// The place of a point along an axis.
pub const fn along(point: usize, axis: usize) -> usize {
    (point >> shift(axis)) % N
}

/// The point of the same line along `axis` that has place `to` on it.
pub const fn moved(point: usize, axis: usize, to: usize) -> usize {
    point - (along(point, axis) << shift(axis)) + (to << shift(axis))
}

/// By how many bits the place along an axis is shifted in the number of a point: N is a power of two.
const fn shift(axis: usize) -> u32 {
    axis as u32 * N.ilog2()
}

/// The sum over k of `factors[k] * lines(k)`.
#[inline(always)]
fn combined<'a>(factors: &Line, lines: impl Fn(usize) -> &'a Line) -> Line {
    let mut sum = [0.0; N];
    add_combined(&mut sum, factors, lines);
    sum
}

#[inline(always)]
fn add_combined<'a>(to: &mut Line, factors: &Line, lines: impl Fn(usize) -> &'a Line) {
    let mut sum = *to;
    for (k, factor) in factors.iter().enumerate() {
        sum.iter_mut().zip(lines(k)).for_each(|(sum, value)| *sum += factor * value);
    }
    *to = sum;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derivatives_of_polynomials_are_exact_and_the_operator_is_as_defined() {
        let element = Element::new();
        let node = |place: usize| if place < N / 2 { -NODES[N / 2 - 1 - place] } else { NODES[place - N / 2] };
        for (row, values) in element.derivatives.iter().enumerate() {
            let of_power = |power: i32| values.iter().enumerate().map(|(k, d)| d * node(k).powi(power)).sum::<f64>();
            assert!((1..N as i32).all(|power| (of_power(power) - f64::from(power) * node(row).powi(power - 1)).abs() < 1e-12));
        }
        let (mut factors, mut u) = ([[0.0; POINTS]; FACTORS], [0.0; POINTS]);
        for point in 0..POINTS {
            u[point] = unit(mix(!(point as u64)));
            factors_at(7, point).iter().zip(&mut factors).for_each(|(factor, block)| block[point] = *factor);
        }
        let (mut fast, mut slow) = ([0.0; POINTS], [0.0; POINTS]);
        element.apply(&factors, &u, &mut fast);
        element.apply_by_definition(&std::array::from_fn(|point| factors_at(7, point)), &u, &mut slow);
        assert!(fast.iter().zip(slow).all(|(fast, slow)| (fast - slow).abs() < 1e-12));
    }
}
