//! Cache mode among NUMA nodes: a thread of `nearfar run` looks at which pages of the job are visited and moves hot ones to near and cold ones
//! to far, from outside: whatever it does, the program's data stay what they are.
//!
//! What is moved is decided by `core::policy::migrate`. Modules are listed lowest first.

mod carry;
mod process;
mod tree;
mod report;
mod pair;
mod rounds;
mod plan;

pub use pair::NoPair;
pub use plan::{Migrator, Mover, NumaCache};
pub use report::Report;
pub use rounds::Limits;
