//! Profiles: what a program's objects are, how often memory is asked for each, and what can be concluded from it. Formats and
//! conclusions; observing a program is the business of the crate `profile`.
//!
//! - [`record`]: what is observed, as it is written while the program runs.
//! - [`file`](mod@file): the bytes of an `.nfprof` file, readable up to where it was cut off.
//! - [`clocks`]: one time for records of several hosts.
//! - [`process`]: which records are whose.
//! - [`names`]: what is asked of symbols and machine code.
//! - [`hardware`]: memory samples of processors.
//! - [`roofline`]: where routines stand on a machine's roofline.
//! - [`wall`]: wall time by instruction, of a program that is watched from outside.
//! - [`analyse`](mod@analyse): records to conclusions.
//! - [`choice`]: which object to look at next.
//! - [`fine`]: small pages that speak for huge ones.
//! - [`thin`](mod@thin): which samples of the processor are kept.
//! - [`compare`](mod@compare): what changed from one profile to another.
//! - [`least_bytes`]: what miss-ratio curves take for one visit.
//! - [`summary`]: what a whole profile says, per object and routine, with intervals.

pub mod record;
pub mod file;
pub mod clocks;
pub mod hardware;
pub mod process;
pub mod choice;
pub mod thin;
mod timeline;
pub mod summary;
pub mod names;
pub mod roofline;
pub mod wall;
mod recurrence;
mod cache;
mod groups;
mod memory_clock;
mod visits;
pub mod fine;
mod samples;
mod traffic;
mod misses;
mod interval;
mod origin;
mod title;
mod routines;
mod study;
mod combine;
mod describe;
mod notes;
pub mod analyse;
pub mod compare;

pub use misses::least_bytes;

#[cfg(test)]
mod simulate;
#[cfg(test)]
mod truth;
#[cfg(test)]
mod truth_samples;
#[cfg(test)]
mod any_records;
