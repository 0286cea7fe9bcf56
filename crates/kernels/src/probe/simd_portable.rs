//! The bandwidth kernels for processors that have none of their own here: loops that the compiler vectorises as it can.
//!
//! Blocks pass through `black_box`, so that the compiler knows neither their place nor their length and keeps every one. It may copy a
//! block of 4 KiB by memcpy, which is then what this architecture's library does. There are no non-temporal stores.

use super::arrays::{Kernels, Part, UNIT, Writers};
use nearfar_core::node::Isa;
use std::hint::black_box;

/// Elements between two places where the compiler must forget what it knows.
const BLOCK: usize = 8 * UNIT;

/// # Safety
/// No other thread uses the part meanwhile.
unsafe fn blocks(part: &Part, mut work: impl FnMut(&mut [f64], &[f64], &[f64])) {
    for start in (0..part.len).step_by(BLOCK) {
        let len = BLOCK.min(part.len - start);
        // SAFETY: inside the three arrays, which are valid for `len` elements and do not overlap; the caller keeps others out.
        let (a, b, c) = unsafe {
            (
                std::slice::from_raw_parts_mut(black_box(part.a.add(start)), len),
                std::slice::from_raw_parts(black_box(part.b.add(start)), len),
                std::slice::from_raw_parts(black_box(part.c.add(start)), len),
            )
        };
        work(a, b, c);
    }
}

/// One kernel: what to do with the slices of a block and the number s; its value is the sum of what the blocks give.
macro_rules! kernel {
    ($name:ident, $work:expr) => {
        /// # Safety
        /// No other thread uses the part meanwhile.
        unsafe fn $name(part: &Part, s: f64) -> f64 {
            let mut sum = 0.0;
            let work: fn(&mut [f64], &[f64], &[f64], f64) -> f64 = $work;
            // SAFETY: passed on to the caller.
            unsafe { blocks(part, |a, b, c| sum += work(a, b, c, s)) };
            sum
        }
    };
}

kernel!(read, |_, b, _, _| {
    let mut lanes = [0.0; 8];
    b.chunks_exact(8).for_each(|b| lanes.iter_mut().zip(b).for_each(|(lane, b)| *lane += b));
    lanes.iter().sum()
});
kernel!(write, |a, _, _, s| {
    a.fill(s);
    0.0
});
kernel!(copy, |a, b, _, _| {
    a.copy_from_slice(b);
    0.0
});
kernel!(scale, |a, b, _, s| {
    a.iter_mut().zip(b).for_each(|(a, b)| *a = s * b);
    0.0
});
kernel!(add, |a, b, c, _| {
    a.iter_mut().zip(b).zip(c).for_each(|((a, b), c)| *a = b + c);
    0.0
});
kernel!(triad, |a, b, c, s| {
    a.iter_mut().zip(b).zip(c).for_each(|((a, b), c)| *a = b + s * c);
    0.0
});

/// These kernels.
pub const PORTABLE: Kernels =
    Kernels { isa: Isa::Scalar, read, ordinary: Writers { write, copy, scale, add, triad }, streaming: None };
