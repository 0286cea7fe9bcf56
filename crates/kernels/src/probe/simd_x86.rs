//! The bandwidth kernels for x86-64: SSE2, AVX2 and AVX-512, with ordinary and non-temporal stores.
//!
//! Each round does eight vectors of each array, so that loop overhead vanishes behind the first-level cache. Non-temporal kernels end
//! with a fence: the time is that until the data are on their way.

use super::arrays::{Kernels, Part, Writers};
use nearfar_core::node::Isa;
use std::arch::asm;

/// One kernel: `before` the loop, `each` for the eight vectors numbered `\k`, `after` the loop. Registers: rdi, rsi, rdx are a, b, c; rcx
/// their bytes; r8 the address of the number s; r9 that of eight sums; rax the offset.
macro_rules! kernel {
    ($name:ident, $width:literal, [$($before:expr),*], [$($each:expr),*], [$($after:expr),*]) => {
        /// # Safety
        /// The processor has the instructions; no other thread uses the part meanwhile.
        unsafe fn $name(part: &Part, s: f64) -> f64 {
            let mut sums = [0.0f64; 8];
            if part.len == 0 {
                return 0.0;
            }
            // SAFETY: the pointers are valid for `len` elements, a multiple of what a round does, and aligned to a line; `sums` takes
            // the widest vector. All registers that C functions may change count as changed.
            unsafe {
                asm!(
                    $($before,)*
                    "xor eax, eax",
                    ".p2align 5",
                    "2:",
                    ".irp k,0,1,2,3,4,5,6,7",
                    $($each,)*
                    ".endr",
                    concat!("add rax, 8*", $width),
                    "cmp rax, rcx",
                    "jb 2b",
                    $($after,)*
                    in("rdi") part.a,
                    in("rsi") part.b,
                    in("rdx") part.c,
                    in("rcx") part.len * size_of::<f64>(),
                    in("r8") &raw const s,
                    in("r9") &raw mut sums,
                    clobber_abi("C"),
                    options(nostack),
                );
            }
            sums.iter().sum()
        }
    };
}

/// The kernels of one width of AVX vectors.
macro_rules! avx {
    ($set:ident, $isa:expr, $v:literal, $w:literal) => {
        /// The kernels with vectors of this width.
        pub const $set: Kernels = {
            kernel!(
                read,
                $w,
                [".irp k,0,1,2,3,4,5,6,7", "vxorpd xmm\\k, xmm\\k, xmm\\k", ".endr"],
                [concat!("vaddpd ", $v, "\\k, ", $v, "\\k, [rsi + rax + ", $w, "*\\k]")],
                [
                    ".irp k,1,2,3,4,5,6,7",
                    concat!("vaddpd ", $v, "0, ", $v, "0, ", $v, "\\k"),
                    ".endr",
                    concat!("vmovupd [r9], ", $v, "0"),
                    "vzeroupper"
                ]
            );
    avx!(@stores ordinary, $v, $w, "vmovapd", "vzeroupper");
    avx!(@stores streaming, $v, $w, "vmovntpd", "sfence");
            Kernels { isa: $isa, read, ordinary: ordinary::ALL, streaming: Some(streaming::ALL) }
        };
    };
    (@stores $module:ident, $v:literal, $w:literal, $store:literal, $end:literal) => {
        mod $module {
            use super::*;

            kernel!(
                write,
                $w,
                [concat!("vbroadcastsd ", $v, "15, qword ptr [r8]")],
                [concat!($store, " [rdi + rax + ", $w, "*\\k], ", $v, "15")],
                [$end, "vzeroupper"]
            );
            kernel!(
                copy,
                $w,
                [""],
                [
                    concat!("vmovapd ", $v, "\\k, [rsi + rax + ", $w, "*\\k]"),
                    concat!($store, " [rdi + rax + ", $w, "*\\k], ", $v, "\\k")
                ],
                [$end, "vzeroupper"]
            );
            kernel!(
                scale,
                $w,
                [concat!("vbroadcastsd ", $v, "15, qword ptr [r8]")],
                [
                    concat!("vmulpd ", $v, "\\k, ", $v, "15, [rsi + rax + ", $w, "*\\k]"),
                    concat!($store, " [rdi + rax + ", $w, "*\\k], ", $v, "\\k")
                ],
                [$end, "vzeroupper"]
            );
            kernel!(
                add,
                $w,
                [""],
                [
                    concat!("vmovapd ", $v, "\\k, [rsi + rax + ", $w, "*\\k]"),
                    concat!("vaddpd ", $v, "\\k, ", $v, "\\k, [rdx + rax + ", $w, "*\\k]"),
                    concat!($store, " [rdi + rax + ", $w, "*\\k], ", $v, "\\k")
                ],
                [$end, "vzeroupper"]
            );
            kernel!(
                triad,
                $w,
                [concat!("vbroadcastsd ", $v, "15, qword ptr [r8]")],
                [
                    concat!("vmulpd ", $v, "\\k, ", $v, "15, [rdx + rax + ", $w, "*\\k]"),
                    concat!("vaddpd ", $v, "\\k, ", $v, "\\k, [rsi + rax + ", $w, "*\\k]"),
                    concat!($store, " [rdi + rax + ", $w, "*\\k], ", $v, "\\k")
                ],
                [$end, "vzeroupper"]
            );
            pub const ALL: Writers = Writers { write, copy, scale, add, triad };
        }
    };
}

/// The SSE2 kernels of one kind of store.
macro_rules! sse {
    ($module:ident, $store:literal, $end:literal) => {
        mod $module {
            use super::*;

            kernel!(
                write,
                "16",
                ["movsd xmm15, qword ptr [r8]", "unpcklpd xmm15, xmm15"],
                [concat!($store, " [rdi + rax + 16*\\k], xmm15")],
                [$end]
            );
            kernel!(
                copy,
                "16",
                [""],
                ["movapd xmm\\k, [rsi + rax + 16*\\k]", concat!($store, " [rdi + rax + 16*\\k], xmm\\k")],
                [$end]
            );
            kernel!(
                scale,
                "16",
                ["movsd xmm15, qword ptr [r8]", "unpcklpd xmm15, xmm15"],
                ["movapd xmm\\k, [rsi + rax + 16*\\k]", "mulpd xmm\\k, xmm15", concat!($store, " [rdi + rax + 16*\\k], xmm\\k")],
                [$end]
            );
            kernel!(
                add,
                "16",
                [""],
                [
                    "movapd xmm\\k, [rsi + rax + 16*\\k]",
                    "addpd xmm\\k, [rdx + rax + 16*\\k]",
                    concat!($store, " [rdi + rax + 16*\\k], xmm\\k")
                ],
                [$end]
            );
            kernel!(
                triad,
                "16",
                ["movsd xmm15, qword ptr [r8]", "unpcklpd xmm15, xmm15"],
                [
                    "movapd xmm\\k, [rdx + rax + 16*\\k]",
                    "mulpd xmm\\k, xmm15",
                    "addpd xmm\\k, [rsi + rax + 16*\\k]",
                    concat!($store, " [rdi + rax + 16*\\k], xmm\\k")
                ],
                [$end]
            );
            pub const ALL: Writers = Writers { write, copy, scale, add, triad };
        }
    };
}

/// The kernels with SSE2.
pub const SSE2: Kernels = {
    kernel!(
        read,
        "16",
        [".irp k,0,1,2,3,4,5,6,7", "xorpd xmm\\k, xmm\\k", ".endr"],
        ["addpd xmm\\k, [rsi + rax + 16*\\k]"],
        [".irp k,1,2,3,4,5,6,7", "addpd xmm0, xmm\\k", ".endr", "movupd [r9], xmm0"]
    );
    sse!(ordinary, "movapd", "");
    sse!(streaming, "movntpd", "sfence");
    Kernels { isa: Isa::Sse2, read, ordinary: ordinary::ALL, streaming: Some(streaming::ALL) }
};

avx!(AVX2, Isa::Avx2, "ymm", "32");
avx!(AVX512, Isa::Avx512, "zmm", "64");
