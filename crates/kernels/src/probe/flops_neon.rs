//! Loops that do nothing but arithmetic, for Arm: chains of dependent operations in registers, as many as hide the latency.
//!
//! Every chain begins at 0 and adds 1 per round (the sum times 1 plus 1 where there is a multiplication), so each ends at exactly the
//! number of rounds. 28 chains suffice up to a product of latency and pipes of 28.

use super::arithmetic_loop::{Loop, Runs, Sums};
use nearfar_core::node::{Arithmetic, Isa, Precision};
use std::arch::asm;

/// Chains: all registers but four.
const CHAINS: usize = 28;

macro_rules! arithmetic {
    ($name:ident, [$($each:expr),*]) => {
        /// # Safety
        /// None beyond the references.
        unsafe fn $name(rounds: usize, one: &[u8; 64], sums: &mut Sums) {
            if rounds == 0 {
                return;
            }
            // SAFETY: `one` and every place of `sums` hold a vector; all registers that C functions may change, and those of which
            // they must keep one half, count as changed.
            unsafe {
                asm!(
                    "ldr q31, [x1]",
                    ".irp k,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27",
                    "movi v\\k\\().2d, #0",
                    ".endr",
                    ".p2align 5",
                    "2:",
                    ".irp k,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27",
                    $($each,)*
                    ".endr",
                    "subs x2, x2, #1",
                    "b.ne 2b",
                    ".irp k,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27",
                    "str q\\k, [x0, #64*\\k]",
                    ".endr",
                    in("x0") sums,
                    in("x1") one,
                    in("x2") rounds,
                    out("v8") _, out("v9") _, out("v10") _, out("v11") _,
                    out("v12") _, out("v13") _, out("v14") _, out("v15") _,
                    clobber_abi("C"),
                    options(nostack),
                );
            }
        }
    };
}

macro_rules! vectors {
    ($module:ident, $t:literal) => {
        mod $module {
            use super::*;
            arithmetic!(add, [concat!("fadd v\\k\\()", $t, ", v\\k\\()", $t, ", v31", $t)]);
            arithmetic!(
                multiply_add,
                [
                    concat!("fmul v\\k\\()", $t, ", v\\k\\()", $t, ", v31", $t),
                    concat!("fadd v\\k\\()", $t, ", v\\k\\()", $t, ", v31", $t)
                ]
            );
            arithmetic!(fma, [concat!("fmla v\\k\\()", $t, ", v31", $t, ", v31", $t)]);
            pub const ALL: Runs = Runs { add, multiply_add, fma: Some(fma) };
        }
    };
}

macro_rules! scalars {
    ($module:ident, $r:literal) => {
        mod $module {
            use super::*;
            arithmetic!(add, [concat!("fadd ", $r, "\\k, ", $r, "\\k, ", $r, "31")]);
            arithmetic!(
                multiply_add,
                [concat!("fmul ", $r, "\\k, ", $r, "\\k, ", $r, "31"), concat!("fadd ", $r, "\\k, ", $r, "\\k, ", $r, "31")]
            );
            arithmetic!(fma, [concat!("fmadd ", $r, "\\k, ", $r, "31, ", $r, "31, ", $r, "\\k")]);
            pub const ALL: Runs = Runs { add, multiply_add, fma: Some(fma) };
        }
    };
}

vectors!(neon64, ".2d");
vectors!(neon32, ".4s");
scalars!(scalar64, "d");
scalars!(scalar32, "s");

/// The loop; none for instructions of other processors.
pub fn find(precision: Precision, isa: Isa, arithmetic: Arithmetic) -> Option<Loop> {
    let double = precision == Precision::F64;
    let (runs, lanes) = match (isa, double) {
        (Isa::Neon, true) => (neon64::ALL, 2),
        (Isa::Neon, false) => (neon32::ALL, 4),
        (Isa::Scalar, true) => (scalar64::ALL, 1),
        (Isa::Scalar, false) => (scalar32::ALL, 1),
        _ => return None,
    };
    Some(Loop { run: runs.of(arithmetic)?, lanes, chains: CHAINS })
}

/// Additions per round of [`additions`].
pub const ADDITIONS: usize = 32;

/// Does `rounds` times [`ADDITIONS`] integer additions, each of which needs the one before: one clock each on every processor. Gives
/// how many were done.
pub fn additions(rounds: usize) -> usize {
    let mut sum = 0usize;
    if rounds > 0 {
        // SAFETY: registers only.
        unsafe {
            asm!(
                ".p2align 5",
                "2:",
                ".rept 32",
                "add {sum}, {sum}, {one}",
                ".endr",
                "subs {rounds}, {rounds}, #1",
                "b.ne 2b",
                sum = inout(reg) sum,
                one = in(reg) 1usize,
                rounds = inout(reg) rounds => _,
                options(nomem, nostack),
            );
        }
    }
    sum
}
