//! The measurements of `nearfar probe`: bandwidth, latency, loaded latency and compute roofs of memory and CPUs that the caller names.
//!
//! Every figure is checked before it is given: data have exactly the values that the kernels must leave, pages are where and as large
//! as they were asked for, arrays are larger than the caches. What fails a check is marked invalid with the reason; a check that the
//! system does not allow is said in the figure. Nothing here decides what to measure, and nothing depends on timing but the figures.
//!
//! Machine code of the kernels is written as inline assembly: a compiler that turns a loop into memcpy, keeps a sum in memory or drops
//! a result nobody reads would change what is measured. Modules are listed lowest first.

mod error;
mod region;
mod team;
mod arrays;
#[cfg(target_arch = "x86_64")]
mod simd_x86;
#[cfg(target_arch = "aarch64")]
mod simd_neon;
mod simd_portable;
mod simd;
mod stream;
mod ring;
mod parallel;
mod chase;
mod loaded;
mod arithmetic_loop;
#[cfg(target_arch = "x86_64")]
mod flops_x86;
#[cfg(target_arch = "aarch64")]
mod flops_neon;
mod flops;
mod compute;
mod dgemm;

pub use chase::{ChaseSetting, latency};
pub use compute::{ComputeSetting, compute, roofs};
pub use dgemm::{GemmSetting, gemm};
pub use error::Error;
pub use loaded::{DELAYS, LoadedSetting, QUICK_DELAYS, loaded};
pub use region::{Proof, Region};
pub use simd::best_isa;
pub use stream::{Measured, ScalingSetting, StreamSetting, bandwidth, scaling};

use nearfar_core::node::{Figure, Memory, Validity};

/// The figure with a reservation beside it that does not make it invalid: a check that the system did not allow.
fn with_remark(mut figure: Figure, remark: &str) -> Figure {
    if figure.validity != Validity::Invalid {
        if !figure.why.is_empty() {
            figure.why.push_str("; ");
        }
        figure.why.push_str(remark);
    }
    figure
}

/// Data in a memory must be this many times the last-level cache (STREAM's rule).
const CACHES: u64 = 4;

/// The figure, condemned when data in a memory are too small to be there rather than in the caches.
fn judge_size(figure: Figure, memory: Memory, bytes: u64, llc_bytes: Option<u64>) -> Figure {
    match (memory, llc_bytes) {
        (Memory::Cache(_), _) => figure,
        (Memory::Node(_), None) => with_remark(figure, "size of the last-level cache unknown"),
        (Memory::Node(_), Some(llc)) if bytes < llc.saturating_mul(CACHES) => {
            figure.condemned("arrays smaller than four times the last-level cache")
        }
        (Memory::Node(_), Some(_)) => figure,
    }
}
