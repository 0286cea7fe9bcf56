//! Kinds of memory as memkind knows them, served from nearfar's pools: what libmemkind.so, libautohbw.so and libmemtier.so export.
//!
//! No symbol is exported here; the three libraries are thin. The names, numbers and codes are those of memkind 1.14.0, so that programs
//! built for it run as they are; docs/reference/memkind.md says what differs. Modules are listed lowest first; a module uses only modules above it.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod code;
mod report;
mod node_list;
mod lock;
pub mod environment;
pub mod static_kind;
pub mod choice;
pub mod kind;
mod heap_file;
mod range_heap;
mod registry;
mod paged;
pub mod place;
pub mod memory;
pub mod create;
pub mod stats;
pub mod hbw;
pub mod internal;
pub mod memtier;
pub mod memtier_env;
pub mod autohbw;
pub mod next_heap;
pub mod family;
pub mod placed;
pub mod tiered;
