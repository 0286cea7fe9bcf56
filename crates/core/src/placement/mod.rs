//! Where data go in flat and hybrid mode: what the user asked for, as plain data that every process of a job can read, and the
//! decision for one object. Asks no machine and moves nothing.
//!
//! Words: *near* and *far* are the tiers; an *object* is a heap block, a mapping, a static array or a stack; a *node* is a NUMA node.

mod node_set;
mod job;
mod choice;
pub mod plan;
pub mod table;
pub mod nodes;

pub use choice::Choice;
pub use job::{Full, MAX_SIZE_RANGES, ObjectKind, Placement, Policy, SizeRange, Spread, Tier};
pub use node_set::{MAX_NODES, NodeSet};
pub use plan::MAX_BUILD_ID;

/// Libraries whose functions hand on to malloc for their callers: what they call is not where an object is allocated.
const WRAPPERS: [&str; 6] = ["libstdc++.", "libc++.", "libc++abi.", "libgfortran.", "libc.so", "libnearfar."];

/// True of the file name of such a library. A plan names no frames of theirs at the innermost end, and those that are there are gone
/// past when its frames are looked for.
pub fn is_wrapper(module: &[u8]) -> bool {
    WRAPPERS.iter().any(|name| module.starts_with(name.as_bytes()))
}
