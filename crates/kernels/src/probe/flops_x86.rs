//! Loops that do nothing but arithmetic, for x86-64: chains of dependent operations in registers, as many as hide the latency.
//!
//! Every chain begins at 0 and adds 1 per round (the sum times 1 plus 1 where there is a multiplication), so each ends at exactly the
//! number of rounds. 14 chains (28 with the 32 registers of AVX-512) suffice up to a product of latency and ports of 14 (28).

use super::arithmetic_loop::{Loop, Runs, Sums};
use nearfar_core::node::{Arithmetic, Isa, Precision};
use std::arch::asm;

/// Chains of the loops with 16 registers: all but two.
const CHAINS: usize = 14;
/// Chains of the loops with 32 registers.
const CHAINS_512: usize = 28;

/// One loop: the ones go to a register of their own (`$one`), the registers `\k` of the list `$k` are the chains, `$body` is a round.
macro_rules! arithmetic {
    ($name:ident, $k:expr, $one:expr, $zero:expr, [$($body:expr),*], $store:expr, $end:literal) => {
        /// # Safety
        /// The processor has the instructions.
        unsafe fn $name(rounds: usize, one: &[u8; 64], sums: &mut Sums) {
            if rounds == 0 {
                return;
            }
            // SAFETY: `one` and every place of `sums` hold the widest vector; all registers that C functions may change count as
            // changed.
            unsafe {
                asm!(
                    $one,
                    concat!(".irp k,", $k),
                    $zero,
                    ".endr",
                    ".p2align 5",
                    "2:",
                    $($body,)*
                    "dec rcx",
                    "jnz 2b",
                    concat!(".irp k,", $k),
                    $store,
                    ".endr",
                    $end,
                    in("rcx") rounds,
                    in("rsi") one,
                    in("rdi") sums,
                    clobber_abi("C"),
                    options(nostack),
                );
            }
        }
    };
}

/// Multiplications and additions of two chains at a time: two multiplications, then the two additions that need them. Of several orders
/// this one kept the four pipes of a Zen 3 busiest.
macro_rules! pairs {
    () => {
        "nearfar_pair 0,1\n\
         nearfar_pair 2,3\n\
         nearfar_pair 4,5\n\
         nearfar_pair 6,7\n\
         nearfar_pair 8,9\n\
         nearfar_pair 10,11\n\
         nearfar_pair 12,13"
    };
}

/// Additions, and multiplications and additions, with SSE2: `$t` is the suffix of packed or scalar, double or single.
macro_rules! sse {
    ($module:ident, $t:literal) => {
        mod $module {
            use super::*;
            sse!(@one add, [".irp k,0,1,2,3,4,5,6,7,8,9,10,11,12,13", concat!("add", $t, " xmm\\k, xmm15"), ".endr"]);
            sse!(
                @one multiply_add,
                [
                    ".macro nearfar_pair k, l",
                    concat!("mul", $t, " xmm\\k, xmm15"),
                    concat!("mul", $t, " xmm\\l, xmm15"),
                    concat!("add", $t, " xmm\\k, xmm15"),
                    concat!("add", $t, " xmm\\l, xmm15"),
                    ".endm",
                    pairs!(),
                    ".purgem nearfar_pair"
                ]
            );
            pub const ALL: Runs = Runs { add, multiply_add, fma: None };
        }
    };
    (@one $name:ident, $body:tt) => {
        arithmetic!(
            $name,
            "0,1,2,3,4,5,6,7,8,9,10,11,12,13",
            "movups xmm15, [rsi]",
            "xorps xmm\\k, xmm\\k",
            $body,
            "movups [rdi + 64*\\k], xmm\\k",
            ""
        );
    };
}

/// The three loops with AVX or AVX-512: suffix, vector register, number of the register of the ones, chains, pairs of chains beyond 14, how
/// a chain is zeroed.
macro_rules! avx {
    ($module:ident, $t:literal, $v:literal, $one:literal, $k:literal, $more:literal, $zero:literal) => {
        mod $module {
            use super::*;
            avx!(
                @one add, $v, $one, $k, $zero,
                [concat!(".irp k,", $k), concat!("vadd", $t, " ", $v, "\\k, ", $v, "\\k, ", $v, $one), ".endr"]
            );
            avx!(
                @one multiply_add, $v, $one, $k, $zero,
                [
                    ".macro nearfar_pair k, l",
                    concat!("vmul", $t, " ", $v, "\\k, ", $v, "\\k, ", $v, $one),
                    concat!("vmul", $t, " ", $v, "\\l, ", $v, "\\l, ", $v, $one),
                    concat!("vadd", $t, " ", $v, "\\k, ", $v, "\\k, ", $v, $one),
                    concat!("vadd", $t, " ", $v, "\\l, ", $v, "\\l, ", $v, $one),
                    ".endm",
                    pairs!(),
                    $more,
                    ".purgem nearfar_pair"
                ]
            );
            avx!(
                @one fma, $v, $one, $k, $zero,
                [concat!(".irp k,", $k), concat!("vfmadd213", $t, " ", $v, "\\k, ", $v, $one, ", ", $v, $one), ".endr"]
            );
            pub const ALL: Runs = Runs { add, multiply_add, fma: Some(fma) };
        }
    };
    (@one $name:ident, $v:literal, $one:literal, $k:literal, $zero:literal, $body:tt) => {
        arithmetic!(
            $name,
            $k,
            concat!("vmovups ", $v, $one, ", [rsi]"),
            concat!($zero, " ", $v, "\\k, ", $v, "\\k, ", $v, "\\k"),
            $body,
            concat!("vmovups [rdi + 64*\\k], ", $v, "\\k"),
            "vzeroupper"
        );
    };
}

sse!(scalar64, "sd");
sse!(scalar32, "ss");
sse!(sse64, "pd");
sse!(sse32, "ps");
avx!(fused64, "sd", "xmm", "15", "0,1,2,3,4,5,6,7,8,9,10,11,12,13", "", "vxorps");
avx!(fused32, "ss", "xmm", "15", "0,1,2,3,4,5,6,7,8,9,10,11,12,13", "", "vxorps");
avx!(avx64, "pd", "ymm", "15", "0,1,2,3,4,5,6,7,8,9,10,11,12,13", "", "vxorps");
avx!(avx32, "ps", "ymm", "15", "0,1,2,3,4,5,6,7,8,9,10,11,12,13", "", "vxorps");
avx!(
    wide64,
    "pd",
    "zmm",
    "31",
    "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27",
    "nearfar_pair 14,15\nnearfar_pair 16,17\nnearfar_pair 18,19\nnearfar_pair 20,21\nnearfar_pair 22,23\nnearfar_pair 24,25\nnearfar_pair 26,27",
    "vpxord"
);
avx!(
    wide32,
    "ps",
    "zmm",
    "31",
    "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27",
    "nearfar_pair 14,15\nnearfar_pair 16,17\nnearfar_pair 18,19\nnearfar_pair 20,21\nnearfar_pair 22,23\nnearfar_pair 24,25\nnearfar_pair 26,27",
    "vpxord"
);

/// The loop; none when this processor has no such instructions.
pub fn find(precision: Precision, isa: Isa, arithmetic: Arithmetic) -> Option<Loop> {
    let double = precision == Precision::F64;
    let is_fused = arithmetic == Arithmetic::Fma;
    let has_fma = is_x86_feature_detected!("fma");
    let of_two = |double_runs: Runs, single_runs: Runs| if double { double_runs } else { single_runs };
    let (runs, bytes, chains) = match isa {
        Isa::Scalar if is_fused && has_fma => (of_two(fused64::ALL, fused32::ALL), 0, CHAINS),
        Isa::Scalar => (of_two(scalar64::ALL, scalar32::ALL), 0, CHAINS),
        Isa::Sse2 => (of_two(sse64::ALL, sse32::ALL), 16, CHAINS),
        Isa::Avx2 if is_x86_feature_detected!("avx") && (has_fma || !is_fused) => (of_two(avx64::ALL, avx32::ALL), 32, CHAINS),
        Isa::Avx512 if is_x86_feature_detected!("avx512f") => (of_two(wide64::ALL, wide32::ALL), 64, CHAINS_512),
        _ => return None,
    };
    Some(Loop { run: runs.of(arithmetic)?, lanes: (bytes / if double { 8 } else { 4 }).max(1), chains })
}

/// Additions per round of [`additions`].
pub const ADDITIONS: usize = 32;

/// Does `rounds` times [`ADDITIONS`] integer additions, each of which needs the one before: one clock each on every processor. Gives
/// how many were done. Of register and register, because some processors fold additions of constants away.
pub fn additions(rounds: usize) -> usize {
    let mut sum = 0usize;
    if rounds > 0 {
        // SAFETY: registers only.
        unsafe {
            asm!(
                ".p2align 5",
                "2:",
                ".rept 32",
                "add {sum}, {one}",
                ".endr",
                "dec {rounds}",
                "jnz 2b",
                sum = inout(reg) sum,
                one = in(reg) 1usize,
                rounds = inout(reg) rounds => _,
                options(nomem, nostack),
            );
        }
    }
    sum
}
