//! Data in near (fast, small) or far (large, slower) memory, and questions about where data are.
//!
//! ```no_run
//! use nearfar_alloc::{FarVec, NearVec, where_is};
//! let psi: NearVec<f64> = (0..1_000_000).map(f64::from).collect();
//! let log = FarVec::<u8>::with_capacity(1 << 30);
//! println!("{:?} {}", where_is(&psi), log.len());
//! ```
//!
//! A front over the C functions of `nearfar.h`, which says what near and far are; links to libnearfar.so. All of a program's memory
//! goes to one tier with `#[global_allocator] static HEAP: Near = Near;`.
//!
//! Modules are listed lowest first; a module uses only modules above it.

mod ffi;
mod tier;
mod questions;
mod tier_vec;

pub use questions::{Capacity, Where, capacity, describe, tiers, version, where_is};
pub use tier::{Far, Near, NoMemory, Tier, Tiered};
pub use tier_vec::{FarVec, NearVec, TierVec, Zero};
