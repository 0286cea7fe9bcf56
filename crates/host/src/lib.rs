//! Running programs, seen from outside: where their threads and pages are, pages that move between NUMA nodes, and ranks of one job
//! that share the near memory of a host.
//!
//! Nothing here runs inside of a program or changes its data. Modules are listed lowest first; a module uses only modules above it.
#![forbid(unsafe_code)]

mod interval;
pub mod residence;
pub mod jobs;
pub mod survey;
pub mod mover;
pub mod broker;
