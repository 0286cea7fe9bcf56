//! Tiers of memory in a given ratio: what memkind's memtier does. Decides which tier an allocation goes to and counts what is there;
//! allocates nothing. A tier is whatever the caller wants (`K`): a kind of libmemkind, a heap of libmemtier.
//!
//! Parts, lowest first: the decisions (pure), what the program sets before (`builder`), the memory object, the counters.

mod policy;
mod ctl;
mod memory;
mod builder;
mod counters;

pub use builder::{Builder, Refused};
pub use counters::Counters;
pub use ctl::{Ctl, Value};
pub use memory::Memory;
pub use policy::{Policy, Threshold};
