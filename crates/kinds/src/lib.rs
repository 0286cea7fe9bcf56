//! Kinds of memory, as memkind knows them, and what is built on them.
//!
//! Modules are listed lowest first; a module uses only modules above it.

pub mod memtier;
pub mod memtier_env;
pub mod autohbw;
