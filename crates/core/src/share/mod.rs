//! Sharing the near memory of a node among the ranks of a job on it: who a rank is, what it asks for, how near is divided, and the
//! book of who has come, got and left. Pure: who keeps the book in a file is `nearfar_host::broker`.
//!
//! Words: a *rank* is one process of an MPI job (or task of a Slurm step); its *place* is its number among the ranks of its node.

mod member;
mod claim;
mod divide;
mod book;

pub use book::{Book, Event, Guest, NewRank, Process};
pub use claim::Claim;
pub use divide::divide;
pub use member::{Member, NODE_NAME, member_of, tasks_per_node};
