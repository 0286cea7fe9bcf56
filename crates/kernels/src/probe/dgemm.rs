//! DGEMM: how much of the compute roof a real kernel reaches. C += A * B in f64, blocked for the caches as `gemm_tile` is, but with
//! micro-kernels in assembly, for the roof is the question here.
//!
//! Every thread has rows of C and A of its own and shares B. Values are small integers, so that the product can be checked exactly
//! (Freivalds: C x = n A (B x)) after all runs; a value that is no integer, NaN included, fails.

use super::compute::{Log, figures};
use super::error::Error;
use super::flops;
use super::team;
use crate::spin_barrier::SpinBarrier;
use nearfar_core::node::{Arithmetic, Compute, Isa, Precision};
use nearfar_core::random_numbers::mix;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Rows per thread, and columns and depth of the whole: a multiple of what every micro-kernel does at a time.
const ORDER: usize = 768;
/// Clocks over which the clock is measured after each run.
const CLOCKS: usize = 300_000;
/// Timed runs, whatever the budget.
const LEAST: usize = 5;
/// More tell nothing new.
const MOST: usize = 50;
/// Bytes of a packed block of A: it stays in the second-level cache.
const BLOCK_BYTES: usize = 192 << 10;

/// What to measure DGEMM with.
#[derive(Clone, Debug)]
pub struct GemmSetting<'a> {
    /// One thread on each: one CPU of every core.
    pub cpus: &'a [u32],
    /// Wall time of the timed runs.
    pub budget: Duration,
}

/// Adds the product of a packed strip of A (`depth` times `rows`) and a packed panel of B (`depth` times `columns`) to C.
type Micro = unsafe fn(depth: usize, a: *const f64, b: *const f64, c: *mut f64, stride: usize);

/// A micro-kernel and its shape.
#[derive(Clone, Copy)]
struct Kernel {
    isa: Isa,
    micro: Micro,
    rows: usize,
    columns: usize,
    /// Depth of a packed block: a panel of B stays in the first-level cache.
    depth: usize,
}

/// What every machine can run.
const PLAIN: Kernel = Kernel { isa: Isa::Scalar, micro: plain, rows: 4, columns: 8, depth: 256 };

fn kernels() -> Vec<Kernel> {
    let mut found = Vec::new();
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            found.push(Kernel { isa: Isa::Avx512, micro: x86::avx512, rows: 8, columns: 24, depth: 128 });
        }
        if is_x86_feature_detected!("avx") && is_x86_feature_detected!("fma") {
            found.push(Kernel { isa: Isa::Avx2, micro: x86::avx2, rows: 6, columns: 8, depth: 256 });
        }
    }
    // The compiler uses the vectors that every processor of the architecture has.
    let isa = if cfg!(target_arch = "aarch64") {
        Isa::Neon
    } else if cfg!(target_arch = "x86_64") {
        Isa::Sse2
    } else {
        Isa::Scalar
    };
    found.push(Kernel { isa, ..PLAIN });
    found
}

/// Measures DGEMM.
///
/// # Errors
/// CPUs could not be had; nothing was measured then.
pub fn gemm(setting: &GemmSetting) -> Result<Compute, Error> {
    measure(setting, kernels()[0], ORDER)
}

fn value(matrix: u64, index: usize) -> f64 {
    (mix(matrix << 56 | index as u64) % 5) as f64 - 2.0
}

fn measure(setting: &GemmSetting, kernel: Kernel, order: usize) -> Result<Compute, Error> {
    let threads = setting.cpus.len();
    let b: Vec<f64> = (0..order * order).map(|index| value(1, index)).collect();
    let barrier = SpinBarrier::new(threads);
    let runs = AtomicUsize::new(0);
    let logs = team::run(setting.cpus, vec![(); threads], |index, ()| {
        // Made by the thread that uses them, so that they are near it.
        let a: Vec<f64> = (0..order * order).map(|place| value(2 + index as u64, place)).collect();
        let mut c = vec![0.0; order * order];
        let mut scratch = Scratch::new(kernel, order);
        let mut log = Log { operations: 2.0 * (order * order * order) as f64, ..Log::default() };
        let mut once = || {
            barrier.wait();
            let start = Instant::now();
            scratch.multiply_add(order, &a, &b, &mut c);
            (start, Instant::now())
        };
        let (start, end) = once();
        if index == 0 {
            runs.store(team::repetitions(setting.budget, end.duration_since(start), LEAST, MOST), Ordering::Relaxed);
        }
        barrier.wait();
        let runs = runs.load(Ordering::Relaxed);
        for _ in 0..runs {
            log.spans.push(once());
            log.clocks.extend(flops::clock_hz(CLOCKS));
        }
        log.wrong = wrong(order, runs + 1, &a, &b, &c);
        log
    })?;
    let row = Compute { precision: Precision::F64, isa: kernel.isa, arithmetic: Arithmetic::Gemm, ..Compute::default() };
    Ok(figures(&logs.iter().collect::<Vec<_>>(), row))
}

/// Rows of C that are not `times` A B.
fn wrong(order: usize, times: usize, a: &[f64], b: &[f64], c: &[f64]) -> usize {
    let x: Vec<i64> = (0..order).map(|index| (mix(index as u64) >> 44) as i64).collect();
    let product = |matrix: &[f64], vector: &[i64]| -> Vec<i64> {
        // Wrapping: a wrong value may be of any size.
        let row =
            |row: &[f64]| row.iter().zip(vector).fold(0i64, |sum, (&value, x)| sum.wrapping_add((value as i64).wrapping_mul(*x)));
        matrix.chunks_exact(order).map(row).collect()
    };
    let expected = product(a, &product(b, &x));
    let whole = |row: &[f64]| row.iter().all(|&value| value == value as i64 as f64);
    let rows = c.chunks_exact(order).zip(product(c, &x)).zip(expected);
    rows.filter(|((row, cx), abx)| !(whole(row) && *cx == abx.wrapping_mul(times as i64))).count()
}

/// Packed blocks of one thread.
struct Scratch {
    kernel: Kernel,
    /// Rows of A in a block.
    block_rows: usize,
    a: Lines,
    b: Lines,
}

/// Numbers from the start of a cache line on.
struct Lines {
    numbers: Vec<f64>,
    first: usize,
    len: usize,
}

impl Lines {
    fn new(len: usize) -> Self {
        let numbers = vec![0.0f64; len + 8];
        // The vector is never resized, so it stays where it is; a miss costs speed alone.
        let first = numbers.as_ptr().align_offset(64).min(8);
        Self { numbers, first, len }
    }

    fn get(&self) -> &[f64] {
        &self.numbers[self.first..self.first + self.len]
    }

    fn get_mut(&mut self) -> &mut [f64] {
        &mut self.numbers[self.first..self.first + self.len]
    }
}

impl Scratch {
    fn new(kernel: Kernel, order: usize) -> Self {
        let strips = (BLOCK_BYTES / size_of::<f64>() / kernel.depth / kernel.rows).max(1);
        let block_rows = strips * kernel.rows;
        Self { kernel, block_rows, a: Lines::new(block_rows * kernel.depth), b: Lines::new(order * kernel.depth) }
    }

    /// Adds `a * b` to `c`, square matrices by rows.
    fn multiply_add(&mut self, order: usize, a: &[f64], b: &[f64], c: &mut [f64]) {
        let Kernel { rows, columns, micro, .. } = self.kernel;
        let shapes = order.is_multiple_of(rows) && order.is_multiple_of(columns) && order <= self.b.len / self.kernel.depth;
        assert!(shapes && [a.len(), b.len(), c.len()] == [order * order; 3], "whole strips and panels");
        for k in (0..order).step_by(self.kernel.depth) {
            let depth = self.kernel.depth.min(order - k);
            for (number, panel) in self.b.get_mut().chunks_exact_mut(depth * columns).take(order / columns).enumerate() {
                for (row, panel) in panel.chunks_exact_mut(columns).enumerate() {
                    let start = (k + row) * order + number * columns;
                    // Eight at a time, which needs no call; every kernel's columns are a multiple.
                    let from = b[start..start + columns].as_chunks::<8>().0;
                    panel.as_chunks_mut::<8>().0.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
                }
            }
            for first in (0..order).step_by(self.block_rows) {
                let block_rows = self.block_rows.min(order - first);
                for (number, strip) in self.a.get_mut().chunks_exact_mut(depth * rows).take(block_rows / rows).enumerate() {
                    for row in 0..rows {
                        let start = (first + number * rows + row) * order + k;
                        for (place, &value) in a[start..start + depth].iter().enumerate() {
                            strip[place * rows + row] = value;
                        }
                    }
                }
                for (column, panel) in self.b.get().chunks_exact(depth * columns).take(order / columns).enumerate() {
                    for (number, strip) in self.a.get().chunks_exact(depth * rows).take(block_rows / rows).enumerate() {
                        let corner = &mut c[(first + number * rows) * order + column * columns..];
                        assert!(corner.len() >= (rows - 1) * order + columns, "the block is inside C");
                        // SAFETY: strip and panel have `depth` times rows and columns, the block of C was just checked; `kernels` gives
                        // what the processor has.
                        unsafe { micro(depth, strip.as_ptr(), panel.as_ptr(), corner.as_mut_ptr(), order) };
                    }
                }
            }
        }
    }
}

/// The micro-kernel that the compiler vectorises.
///
/// # Safety
/// As [`Micro`] says of the sizes, for [`PLAIN`].
unsafe fn plain(depth: usize, a: *const f64, b: *const f64, c: *mut f64, stride: usize) {
    const ROWS: usize = PLAIN.rows;
    const COLUMNS: usize = PLAIN.columns;
    // SAFETY: the caller answers for the sizes.
    let (a, b) = unsafe { (std::slice::from_raw_parts(a, depth * ROWS), std::slice::from_raw_parts(b, depth * COLUMNS)) };
    let mut sums = [[0.0f64; COLUMNS]; ROWS];
    for (a, b) in a.chunks_exact(ROWS).zip(b.chunks_exact(COLUMNS)) {
        for (sums, &x) in sums.iter_mut().zip(a) {
            for (sum, &y) in sums.iter_mut().zip(b) {
                // Fused where the instruction is part of the architecture; a library call elsewhere.
                *sum = if cfg!(target_arch = "aarch64") { x.mul_add(y, *sum) } else { x * y + *sum };
            }
        }
    }
    for (row, sums) in sums.iter().enumerate() {
        // SAFETY: a row of the block of C, which is the caller's alone.
        let c = unsafe { std::slice::from_raw_parts_mut(c.add(row * stride), COLUMNS) };
        c.iter_mut().zip(sums).for_each(|(c, sum)| *c += sum);
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    //! Micro-kernels whose sums fill the registers: 6 rows of 2 vectors with AVX, 8 rows of 3 with AVX-512.
    use std::arch::asm;

    /// # Safety
    /// As `Micro` says of the sizes, 6 by 8; the processor has AVX and FMA.
    pub unsafe fn avx2(depth: usize, a: *const f64, b: *const f64, c: *mut f64, stride: usize) {
        macro_rules! row {
            ($at:literal, $x:literal, $left:literal, $right:literal) => {
                concat!(
                    "vbroadcastsd ymm",
                    $x,
                    ", qword ptr [rdi + ",
                    $at,
                    "]\n",
                    "vfmadd231pd ymm",
                    $left,
                    ", ymm",
                    $x,
                    ", ymm12\n",
                    "vfmadd231pd ymm",
                    $right,
                    ", ymm",
                    $x,
                    ", ymm13"
                )
            };
        }
        macro_rules! store {
            ($left:literal, $right:literal) => {
                concat!(
                    "vaddpd ymm",
                    $left,
                    ", ymm",
                    $left,
                    ", [rdx]\nvmovupd [rdx], ymm",
                    $left,
                    "\n",
                    "vaddpd ymm",
                    $right,
                    ", ymm",
                    $right,
                    ", [rdx + 32]\nvmovupd [rdx + 32], ymm",
                    $right,
                    "\nadd rdx, r8"
                )
            };
        }
        // SAFETY: the caller answers for the sizes; all registers that C functions may change count as changed.
        unsafe {
            asm!(
                // The block of C comes while the products are summed.
                "mov rax, rdx",
                ".rept 6",
                "prefetcht0 [rax]",
                "prefetcht0 [rax + 56]",
                "add rax, r8",
                ".endr",
                ".irp k,0,1,2,3,4,5,6,7,8,9,10,11",
                "vxorpd xmm\\k, xmm\\k, xmm\\k",
                ".endr",
                ".p2align 5",
                "2:",
                "vmovupd ymm12, [rsi]",
                "vmovupd ymm13, [rsi + 32]",
                row!("0", "14", "0", "1"),
                row!("8", "15", "2", "3"),
                row!("16", "14", "4", "5"),
                row!("24", "15", "6", "7"),
                row!("32", "14", "8", "9"),
                row!("40", "15", "10", "11"),
                "add rdi, 48",
                "add rsi, 64",
                "dec rcx",
                "jnz 2b",
                store!("0", "1"),
                store!("2", "3"),
                store!("4", "5"),
                store!("6", "7"),
                store!("8", "9"),
                store!("10", "11"),
                "vzeroupper",
                in("rcx") depth,
                in("rdi") a,
                in("rsi") b,
                in("rdx") c,
                in("r8") stride * size_of::<f64>(),
                clobber_abi("C"),
                options(nostack),
            );
        }
    }

    /// # Safety
    /// As `Micro` says of the sizes, 8 by 24; the processor has AVX-512F.
    pub unsafe fn avx512(depth: usize, a: *const f64, b: *const f64, c: *mut f64, stride: usize) {
        macro_rules! row {
            ($at:literal, $x:literal, $one:literal, $two:literal, $three:literal) => {
                concat!(
                    "vbroadcastsd zmm",
                    $x,
                    ", qword ptr [rdi + ",
                    $at,
                    "]\n",
                    "vfmadd231pd zmm",
                    $one,
                    ", zmm",
                    $x,
                    ", zmm24\n",
                    "vfmadd231pd zmm",
                    $two,
                    ", zmm",
                    $x,
                    ", zmm25\n",
                    "vfmadd231pd zmm",
                    $three,
                    ", zmm",
                    $x,
                    ", zmm26"
                )
            };
        }
        macro_rules! store {
            ($one:literal, $two:literal, $three:literal) => {
                concat!(
                    "vaddpd zmm",
                    $one,
                    ", zmm",
                    $one,
                    ", [rdx]\nvmovupd [rdx], zmm",
                    $one,
                    "\n",
                    "vaddpd zmm",
                    $two,
                    ", zmm",
                    $two,
                    ", [rdx + 64]\nvmovupd [rdx + 64], zmm",
                    $two,
                    "\n",
                    "vaddpd zmm",
                    $three,
                    ", zmm",
                    $three,
                    ", [rdx + 128]\nvmovupd [rdx + 128], zmm",
                    $three,
                    "\nadd rdx, r8"
                )
            };
        }
        // SAFETY: the caller answers for the sizes; all registers that C functions may change count as changed.
        unsafe {
            asm!(
                "mov rax, rdx",
                ".rept 8",
                "prefetcht0 [rax]",
                "prefetcht0 [rax + 64]",
                "prefetcht0 [rax + 128]",
                "prefetcht0 [rax + 184]",
                "add rax, r8",
                ".endr",
                ".irp k,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23",
                "vpxord zmm\\k, zmm\\k, zmm\\k",
                ".endr",
                ".p2align 5",
                "2:",
                "vmovupd zmm24, [rsi]",
                "vmovupd zmm25, [rsi + 64]",
                "vmovupd zmm26, [rsi + 128]",
                row!("0", "27", "0", "1", "2"),
                row!("8", "28", "3", "4", "5"),
                row!("16", "29", "6", "7", "8"),
                row!("24", "30", "9", "10", "11"),
                row!("32", "27", "12", "13", "14"),
                row!("40", "28", "15", "16", "17"),
                row!("48", "29", "18", "19", "20"),
                row!("56", "30", "21", "22", "23"),
                "add rdi, 64",
                "add rsi, 192",
                "dec rcx",
                "jnz 2b",
                store!("0", "1", "2"),
                store!("3", "4", "5"),
                store!("6", "7", "8"),
                store!("9", "10", "11"),
                store!("12", "13", "14"),
                store!("15", "16", "17"),
                store!("18", "19", "20"),
                store!("21", "22", "23"),
                "vzeroupper",
                in("rcx") depth,
                in("rdi") a,
                in("rsi") b,
                in("rdx") c,
                in("r8") stride * size_of::<f64>(),
                clobber_abi("C"),
                options(nostack),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_micro_kernel_is_exact() {
        let cpus = team::own_cpus();
        for kernel in kernels() {
            // Not a multiple of the depth: the last block is shallower.
            let setting = GemmSetting { cpus: &cpus, budget: Duration::ZERO };
            let row = measure(&setting, kernel, 264).expect("measured");
            assert!(row.rate.is_valid() && row.rate.runs == LEAST as u32, "{:?}: {row:?}", kernel.isa);
            assert_eq!((row.arithmetic, row.isa, row.threads as usize), (Arithmetic::Gemm, kernel.isa, cpus.len()));
        }
    }

    #[test]
    fn one_wrong_element_is_found() {
        let order = 24;
        let a: Vec<f64> = (0..order * order).map(|index| value(1, index)).collect();
        let b: Vec<f64> = (0..order * order).map(|index| value(2, index)).collect();
        let mut c = vec![0.0; order * order];
        let mut scratch = Scratch::new(PLAIN, order);
        scratch.multiply_add(order, &a, &b, &mut c);
        scratch.multiply_add(order, &a, &b, &mut c);
        let direct: f64 = (0..order).map(|k| a[3 * order + k] * b[k * order + 5]).sum();
        assert_eq!((c[3 * order + 5], wrong(order, 2, &a, &b, &c), wrong(order, 1, &a, &b, &c) > 0), (2.0 * direct, 0, true));
        for bad in [f64::NAN, f64::INFINITY, c[7] + 1.0, 0.5] {
            let right = std::mem::replace(&mut c[7], bad);
            assert_eq!(wrong(order, 2, &a, &b, &c), 1, "{bad}");
            c[7] = right;
        }
    }
}
