//! Recorded visits of real programs: the file format (docs/reference/binary-formats.md), and how a trace becomes what `policy::replay` replays.
//!
//! Only bytes and decisions: who records and who writes is not known here. Reading never fails and never panics: what is
//! damaged is passed over and counted.

// Lowest first: a module uses only modules above it.
mod bytes;
mod batch;
mod visits;
mod page_visits;
mod stack;
#[cfg(test)]
mod tests;

pub use batch::{Batch, HEADER_BYTES, Process, Reader, encode, header};
pub use page_visits::steps;
pub use stack::Stack;
pub use visits::{Grain, Summary, accesses};

use crate::policy::Found;

/// One thing that the pager saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// A thread asked for a page that was out of view.
    Visit {
        /// Page number (address / 4 KiB).
        page: u64,
        /// Kernel thread id.
        thread: u32,
        /// The first access was a store. A load first and stores later are told by `Out`.
        write: bool,
        /// Where the page was.
        found: Found,
        /// Monotonic time in microseconds.
        time_us: u64,
    },
    /// A chunk was taken out of view; whatever comes next to it is a visit.
    Out {
        /// Its first page.
        page: u64,
        /// It differs from what it was when it came into view last, or from zeros.
        changed: bool,
    },
    /// The program gave pages up: they hold nothing any more.
    Gone {
        /// First page.
        page: u64,
        /// How many.
        pages: u64,
    },
}
