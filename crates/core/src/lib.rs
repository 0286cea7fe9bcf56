//! Decides. Pure vocabulary and policies of nearfar: no I/O, no threads, no unsafe code, no libc.
//!
//! Modules are listed lowest first; a module uses only modules above it in this list.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod error;
pub mod random_numbers;
pub mod units;
pub mod addr;
pub mod ranges;
pub mod tier;
pub mod mode;
pub mod faults;
pub mod stats;
pub mod node;
pub mod energy;
pub mod sensitivity;
pub mod affinity;
pub mod share;
pub mod placement;
pub mod policy;
pub mod trace;
pub mod profile;
pub mod advise;
