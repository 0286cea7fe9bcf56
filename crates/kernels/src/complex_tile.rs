//! Products of tall and narrow complex matrices, a tile of some columns by some thousand rows at a time: what plane-wave codes ask of
//! ZGEMM and ZHERK.
//!
//! A tile is a copy with real and imaginary parts apart, as BLAS packs its operands, so that the compiler uses vectors. Each number of
//! a result comes from the same sums in the same order, whatever the columns beside it. Within two or three times of a tuned BLAS.

use std::ops::Range;

/// Columns of a tile.
pub const COLUMNS: usize = 16;

/// Rows of a tile at most: a tile has 128 KiB, and three of them fit into a level 2 cache.
pub const ROWS: usize = 512;

/// Columns and rows that the inner loops keep in registers.
const UNIT: usize = 2;
const LANES: usize = 4;

/// Numbers of a complex value.
const PARTS: usize = 2;

/// A few columns of some rows. Columns and rows that are not there are zero.
#[derive(Debug)]
pub struct Tile {
    re: Vec<f64>,
    im: Vec<f64>,
}

/// A matrix of one complex number for each two columns of two tiles: real parts, imaginary parts.
pub type Block = [[[f64; COLUMNS]; COLUMNS]; PARTS];

/// No number but zeros.
pub const ZERO: Block = [[[0.0; COLUMNS]; COLUMNS]; PARTS];

impl Tile {
    /// All zero.
    pub fn new() -> Self {
        Self { re: vec![0.0; COLUMNS * ROWS], im: vec![0.0; COLUMNS * ROWS] }
    }

    /// Takes rows `rows` of at most [`COLUMNS`] columns; further columns are zero, and so are further rows up to a multiple of lanes.
    pub fn load<'a>(&mut self, columns: impl Iterator<Item = &'a [f64]>, rows: Range<usize>) {
        let mut columns = columns.fuse();
        for (re, im) in self.re.chunks_exact_mut(ROWS).zip(self.im.chunks_exact_mut(ROWS)) {
            let padded = rows.len().next_multiple_of(LANES);
            let Some(column) = columns.next() else {
                re[..padded].fill(0.0);
                im[..padded].fill(0.0);
                continue;
            };
            let values = column[PARTS * rows.start..PARTS * rows.end].as_chunks::<PARTS>().0;
            for ((re, im), value) in re.iter_mut().zip(&mut *im).zip(values) {
                (*re, *im) = (value[0], value[1]);
            }
            re[rows.len()..padded].fill(0.0);
            im[rows.len()..padded].fill(0.0);
        }
    }

    /// Puts rows back to where [`Self::load`] takes them from.
    pub fn store<'a>(&self, columns: impl Iterator<Item = &'a mut [f64]>, rows: Range<usize>) {
        for (column, (re, im)) in columns.zip(self.re.chunks_exact(ROWS).zip(self.im.chunks_exact(ROWS))) {
            let values = column[PARTS * rows.start..PARTS * rows.end].as_chunks_mut::<PARTS>().0;
            for ((re, im), value) in re.iter().zip(im).zip(values) {
                *value = [*re, *im];
            }
        }
    }

    /// Sets all of `rows` rows to zero.
    pub fn clear(&mut self) {
        self.re.fill(0.0);
        self.im.fill(0.0);
    }

    fn column(&self, number: usize, rows: usize) -> (&[[f64; LANES]], &[[f64; LANES]]) {
        let part = number * ROWS..number * ROWS + rows.next_multiple_of(LANES);
        (self.re[part.clone()].as_chunks().0, self.im[part].as_chunks().0)
    }
}

impl Default for Tile {
    fn default() -> Self {
        Self::new()
    }
}

/// Adds to `sums` the inner products of the first `rows` rows: `sums[i][j] += conj(a_i) b_j`, 8 flop for each row and two columns.
pub fn inner_products(a: &Tile, b: &Tile, rows: usize, sums: &mut Block) {
    for first in (0..COLUMNS).step_by(UNIT) {
        for second in (0..COLUMNS).step_by(UNIT) {
            let [a0, a1] = [a.column(first, rows), a.column(first + 1, rows)];
            let [b0, b1] = [b.column(second, rows), b.column(second + 1, rows)];
            let mut lanes = [[[[0.0; LANES / 2]; UNIT]; UNIT]; PARTS];
            for row in 0..a0.0.len().min(b1.0.len()) {
                let (a_re, a_im) = ([&a0.0[row], &a1.0[row]], [&a0.1[row], &a1.1[row]]);
                let (b_re, b_im) = ([&b0.0[row], &b1.0[row]], [&b0.1[row], &b1.1[row]]);
                for i in 0..UNIT {
                    for j in 0..UNIT {
                        for lane in 0..LANES {
                            lanes[0][i][j][lane % 2] += a_re[i][lane] * b_re[j][lane] + a_im[i][lane] * b_im[j][lane];
                            lanes[1][i][j][lane % 2] += a_re[i][lane] * b_im[j][lane] - a_im[i][lane] * b_re[j][lane];
                        }
                    }
                }
            }
            for (sums, lanes) in sums.iter_mut().zip(lanes) {
                for i in 0..UNIT {
                    for j in 0..UNIT {
                        sums[first + i][second + j] += lanes[i][j].iter().sum::<f64>();
                    }
                }
            }
        }
    }
}

/// Adds to the columns of `b` the columns of `a` times `factors`: `b_j += a_i factors[i][j]`, 8 flop for each row and two columns.
pub fn add_columns(a: &Tile, factors: &Block, rows: usize, b: &mut Tile) {
    let padded = rows.next_multiple_of(LANES);
    for second in (0..COLUMNS).step_by(UNIT) {
        let (re0, re1) = b.re[second * ROWS..(second + UNIT) * ROWS].split_at_mut(ROWS);
        let (im0, im1) = b.im[second * ROWS..(second + UNIT) * ROWS].split_at_mut(ROWS);
        let re = re0[..padded].as_chunks_mut::<LANES>().0.iter_mut().zip(re1[..padded].as_chunks_mut::<LANES>().0);
        let im = im0[..padded].as_chunks_mut::<LANES>().0.iter_mut().zip(im1[..padded].as_chunks_mut::<LANES>().0);
        for (group, (re, im)) in re.zip(im).enumerate() {
            let (re, im) = ([re.0, re.1], [im.0, im.1]);
            let (mut sums_re, mut sums_im) = ([*re[0], *re[1]], [*im[0], *im[1]]);
            for (i, (factors_re, factors_im)) in factors[0].iter().zip(&factors[1]).enumerate() {
                let at = i * ROWS + group * LANES;
                let (a_re, a_im) = (&a.re[at..at + LANES], &a.im[at..at + LANES]);
                for j in 0..UNIT {
                    let (re, im) = (factors_re[second + j], factors_im[second + j]);
                    for lane in 0..LANES {
                        sums_re[j][lane] += a_re[lane] * re - a_im[lane] * im;
                        sums_im[j][lane] += a_re[lane] * im + a_im[lane] * re;
                    }
                }
            }
            for j in 0..UNIT {
                *re[j] = sums_re[j];
                *im[j] = sums_im[j];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearfar_core::random_numbers::Random;

    #[test]
    fn products_are_those_of_the_definition() {
        let mut random = Random::new(4);
        let mut columns =
            |count: usize| -> Vec<Vec<f64>> { (0..count).map(|_| (0..300).map(|_| random.unit() - 0.5).collect()).collect() };
        let (left, mut right) = (columns(16), columns(7));
        let (mut a, mut b) = (Tile::new(), Tile::new());
        a.re.fill(9.0);
        let rows = 10..135;
        a.load(left.iter().map(Vec::as_slice), rows.clone());
        b.load(right.iter().map(Vec::as_slice), rows.clone());
        let mut sums = ZERO;
        inner_products(&a, &b, 125, &mut sums);
        for (i, left) in left.iter().enumerate() {
            for (j, right) in right.iter().enumerate() {
                let product = |row: usize| {
                    (
                        left[2 * row] * right[2 * row] + left[2 * row + 1] * right[2 * row + 1],
                        left[2 * row] * right[2 * row + 1] - left[2 * row + 1] * right[2 * row],
                    )
                };
                let sum = rows.clone().map(product).fold((0.0, 0.0), |sum, term| (sum.0 + term.0, sum.1 + term.1));
                assert!((sums[0][i][j] - sum.0).abs() < 1e-12 && (sums[1][i][j] - sum.1).abs() < 1e-12, "{i} {j}");
            }
            assert_eq!(sums[0][i][7], 0.0);
        }
        let before = right.clone();
        add_columns(&a, &sums, 125, &mut b);
        b.store(right.iter_mut().map(Vec::as_mut_slice), rows);
        for (j, (right, before)) in right.iter().zip(&before).enumerate() {
            for row in 0..150 {
                let inside = (10..135).contains(&row);
                let term = |i: usize, part: usize| {
                    let (re, im) = (left[i][2 * row], left[i][2 * row + 1]);
                    let factor = (sums[0][i][j], sums[1][i][j]);
                    if part == 0 { re * factor.0 - im * factor.1 } else { re * factor.1 + im * factor.0 }
                };
                for part in 0..2 {
                    let expected = before[2 * row + part] + if inside { (0..16).map(|i| term(i, part)).sum() } else { 0.0 };
                    assert!((right[2 * row + part] - expected).abs() < 1e-12, "{j} {row} {part}");
                }
            }
        }
    }
}
