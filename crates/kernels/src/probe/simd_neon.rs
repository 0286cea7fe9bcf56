//! The bandwidth kernels for Arm (NEON): with ordinary stores, and with STNP, which hints that the data will not be used again.
//!
//! STNP is only a hint: whether the line is read before it is written is up to the core.

use super::arrays::{Kernels, Part, Writers};
use nearfar_core::node::Isa;
use std::arch::asm;

/// One kernel; x0, x1, x2 walk over a, b, c, x3 counts bytes, d16 is the number s, x5 the address of two sums. A round does 128 bytes.
macro_rules! kernel {
    ($name:ident, [$($before:expr),*], [$($each:expr),*], [$($after:expr),*]) => {
        /// # Safety
        /// No other thread uses the part meanwhile.
        unsafe fn $name(part: &Part, s: f64) -> f64 {
            let mut sums = [0.0f64; 2];
            if part.len == 0 {
                return 0.0;
            }
            // SAFETY: the pointers are valid for `len` elements, a multiple of what a round does; `sums` takes a vector. All registers
            // that C functions may change count as changed.
            unsafe {
                asm!(
                    "ldr d16, [x4]",
                    "dup v16.2d, v16.d[0]",
                    $($before,)*
                    ".p2align 5",
                    "2:",
                    $($each,)*
                    "add x0, x0, #128",
                    "add x1, x1, #128",
                    "add x2, x2, #128",
                    "subs x3, x3, #128",
                    "b.ne 2b",
                    $($after,)*
                    in("x0") part.a,
                    in("x1") part.b,
                    in("x2") part.c,
                    in("x3") part.len * size_of::<f64>(),
                    in("x4") &raw const s,
                    in("x5") &raw mut sums,
                    clobber_abi("C"),
                    options(nostack),
                );
            }
            sums.iter().sum()
        }
    };
}

macro_rules! stores {
    ($module:ident, $store:literal) => {
        mod $module {
            use super::*;

            kernel!(
                write,
                [],
                [
                    concat!($store, " q16, q16, [x0]"),
                    concat!($store, " q16, q16, [x0, #32]"),
                    concat!($store, " q16, q16, [x0, #64]"),
                    concat!($store, " q16, q16, [x0, #96]")
                ],
                []
            );
            stores!(@one $store, copy, [""]);
            stores!(@one $store, scale, [".irp k,0,1,2,3,4,5,6,7", "fmul v\\k\\().2d, v\\k\\().2d, v16.2d", ".endr"]);
            stores!(@two $store, add, [".irp k,0,1,2,3,4,5,6,7", "fadd v\\k\\().2d, v\\k\\().2d, v2\\k\\().2d", ".endr"]);
            stores!(@two $store, triad, [".irp k,0,1,2,3,4,5,6,7", "fmla v\\k\\().2d, v2\\k\\().2d, v16.2d", ".endr"]);

            pub const ALL: Writers = Writers { write, copy, scale, add, triad };
        }
    };
    // b in v0 to v7.
    (@one $store:literal, $name:ident, [$($work:expr),*]) => {
        kernel!(
            $name,
            [],
            [
                ".irp k,0,1,2,3,4,5,6,7",
                "ldr q\\k, [x1, #16*\\k]",
                ".endr",
                $($work,)*
                concat!($store, " q0, q1, [x0]"),
                concat!($store, " q2, q3, [x0, #32]"),
                concat!($store, " q4, q5, [x0, #64]"),
                concat!($store, " q6, q7, [x0, #96]")
            ],
            []
        );
    };
    // b in v0 to v7, c in v20 to v27.
    (@two $store:literal, $name:ident, [$($work:expr),*]) => {
        stores!(
            @one $store,
            $name,
            [".irp k,0,1,2,3,4,5,6,7", "ldr q2\\k, [x2, #16*\\k]", ".endr", $($work),*]
        );
    };
}

kernel!(
    read,
    [".irp k,0,1,2,3,4,5,6,7", "movi v\\k\\().2d, #0", ".endr"],
    [".irp k,0,1,2,3,4,5,6,7", "ldr q2\\k, [x1, #16*\\k]", "fadd v\\k\\().2d, v\\k\\().2d, v2\\k\\().2d", ".endr"],
    [".irp k,1,2,3,4,5,6,7", "fadd v0.2d, v0.2d, v\\k\\().2d", ".endr", "str q0, [x5]"]
);
stores!(ordinary, "stp");
stores!(streaming, "stnp");

/// The kernels.
pub const NEON: Kernels = Kernels { isa: Isa::Neon, read, ordinary: ordinary::ALL, streaming: Some(streaming::ALL) };
