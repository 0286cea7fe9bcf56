//! C += A * B for one tile held in near memory: blocked for the CPU's caches, with a micro-kernel that the compiler vectorises.
//!
//! Invariant: each element of C adds its products in order of k, whatever the blocking, so results do not depend on tile size or
//! threads. Does not know about tiles of a larger matrix: that is `gemm`. Within 1.5 to 2 times of a tuned BLAS, which is enough: the
//! question is how much of it survives paging.

/// Rows of the micro-kernel: 6 rows of 2 AVX registers of sums leave 4 of 16 registers for operands.
pub const ROWS: usize = 6;
/// Columns of the micro-kernel.
pub const COLUMNS: usize = 16;
/// Elements of k per packed block: a packed panel of B (16 KiB) stays in L1.
const DEPTH: usize = 256;
/// Rows of A packed at once: 96 KiB, for L2.
const BLOCK_ROWS: usize = 16 * ROWS;
/// Columns of B packed at once: 512 KiB, for L2 or L3.
const BLOCK_COLUMNS: usize = 32 * COLUMNS;

/// Scratch of one thread, reused from tile to tile; under 1 MiB.
#[derive(Debug, Default)]
pub struct Scratch {
    a: Vec<f32>,
    b: Vec<f32>,
}

impl Scratch {
    /// Scratch for any tile.
    pub fn new() -> Self {
        Self { a: vec![0.0; BLOCK_ROWS * DEPTH], b: vec![0.0; BLOCK_COLUMNS * DEPTH] }
    }
}

/// Adds `a * b` to `c`. `b` is a `size` by `size` tile, `a` and `c` are whole rows of such tiles (the same number of them), all by rows.
/// `size` must be a multiple of [`COLUMNS`], the number of rows one of [`ROWS`].
pub fn multiply_add(scratch: &mut Scratch, size: usize, a: &[f32], b: &[f32], c: &mut [f32]) {
    let rows = c.len() / size;
    assert!(size.is_multiple_of(COLUMNS) && rows.is_multiple_of(ROWS) && a.len() == c.len() && b.len() == size * size);
    let kernel = fastest_kernel();
    for column in (0..size).step_by(BLOCK_COLUMNS) {
        let columns = BLOCK_COLUMNS.min(size - column);
        for k in (0..size).step_by(DEPTH) {
            let depth = DEPTH.min(size - k);
            pack_b(&mut scratch.b, b, size, (k, depth), (column, columns));
            for row in (0..rows).step_by(BLOCK_ROWS) {
                let block_rows = BLOCK_ROWS.min(rows - row);
                pack_a(&mut scratch.a, a, size, (row, block_rows), (k, depth));
                for (panel, b) in scratch.b.chunks(depth * COLUMNS).take(columns / COLUMNS).enumerate() {
                    for (strip, a) in scratch.a.chunks(depth * ROWS).take(block_rows / ROWS).enumerate() {
                        let corner = (row + strip * ROWS) * size + column + panel * COLUMNS;
                        kernel(a, b, &mut c[corner..], size);
                    }
                }
            }
        }
    }
}

/// Copies rows `first..first+rows` and k `k..k+depth` of A into strips of [`ROWS`] rows, k by k.
fn pack_a(packed: &mut [f32], a: &[f32], size: usize, (first, rows): (usize, usize), (k, depth): (usize, usize)) {
    for (strip, packed) in packed.chunks_mut(depth * ROWS).take(rows / ROWS).enumerate() {
        for row in 0..ROWS {
            let start = (first + strip * ROWS + row) * size + k;
            for (column, &value) in a[start..start + depth].iter().enumerate() {
                packed[column * ROWS + row] = value;
            }
        }
    }
}

/// Copies k `k..k+depth` and columns `first..first+columns` of B into panels of [`COLUMNS`] columns, k by k.
fn pack_b(packed: &mut [f32], b: &[f32], size: usize, (k, depth): (usize, usize), (first, columns): (usize, usize)) {
    for (panel, packed) in packed.chunks_mut(depth * COLUMNS).take(columns / COLUMNS).enumerate() {
        for (row, packed) in packed.chunks_exact_mut(COLUMNS).enumerate() {
            let start = (k + row) * size + first + panel * COLUMNS;
            packed.copy_from_slice(&b[start..start + COLUMNS]);
        }
    }
}

type Kernel = fn(&[f32], &[f32], &mut [f32], usize);

#[cfg(target_arch = "x86_64")]
fn fastest_kernel() -> Kernel {
    #[target_feature(enable = "avx2,fma")]
    fn fused(a: &[f32], b: &[f32], c: &mut [f32], stride: usize) {
        sum_products(a, b, c, stride, |x, y, sum| x.mul_add(y, sum));
    }
    fn checked(a: &[f32], b: &[f32], c: &mut [f32], stride: usize) {
        // SAFETY: `fastest_kernel` hands this function out only after the CPU said that it has AVX2 and FMA.
        unsafe { fused(a, b, c, stride) }
    }
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") { checked } else { plain }
}

#[cfg(not(target_arch = "x86_64"))]
fn fastest_kernel() -> Kernel {
    plain
}

fn plain(a: &[f32], b: &[f32], c: &mut [f32], stride: usize) {
    sum_products(a, b, c, stride, |x, y, sum| x * y + sum);
}

/// The micro-kernel: adds the product of one packed strip and one packed panel to [`ROWS`] x [`COLUMNS`] elements of C.
#[inline(always)]
fn sum_products(a: &[f32], b: &[f32], c: &mut [f32], stride: usize, fused: impl Fn(f32, f32, f32) -> f32) {
    let mut sums = [[0.0f32; COLUMNS]; ROWS];
    for (row, sums) in sums.iter_mut().enumerate() {
        sums.copy_from_slice(&c[row * stride..row * stride + COLUMNS]);
    }
    for (a, b) in a.chunks_exact(ROWS).zip(b.chunks_exact(COLUMNS)) {
        for (sums, &x) in sums.iter_mut().zip(a) {
            for (sum, &y) in sums.iter_mut().zip(b) {
                *sum = fused(x, y, *sum);
            }
        }
    }
    for (row, sums) in sums.iter().enumerate() {
        c[row * stride..row * stride + COLUMNS].copy_from_slice(sums);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_definition() {
        // 576 is more than one block of k and of columns, and 102 rows more than one of rows.
        let (size, rows) = (576, 102);
        let value = |index: usize| (nearfar_core::random_numbers::mix(index as u64) % 5) as f32 - 2.0;
        let a: Vec<f32> = (0..rows * size).map(value).collect();
        let b: Vec<f32> = (0..size * size).map(|index| value(index + 7_000_000)).collect();
        let mut c = vec![1.0; rows * size];
        multiply_add(&mut Scratch::new(), size, &a, &b, &mut c);
        for (row, column) in [(0, 0), (101, 575), (50, 512), (97, 17)] {
            let expected: f32 = 1.0 + (0..size).map(|k| a[row * size + k] * b[k * size + column]).sum::<f32>();
            assert_eq!(c[row * size + column], expected, "{row} {column}");
        }
    }
}
