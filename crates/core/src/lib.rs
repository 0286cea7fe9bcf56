//! Decides. Pure vocabulary and policies of nearfar: no I/O, no threads, no unsafe code, no libc.
//!
//! Modules are listed lowest first; a module uses only modules above it in this list.
#![forbid(unsafe_code)]

pub mod addr;
pub mod policy;
pub mod stats;
