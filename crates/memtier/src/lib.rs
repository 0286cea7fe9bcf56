//! libmemtier.so: preloaded into a program, it spreads the program's allocations over tiers of memory in a given ratio. What
//! MEMKIND_MEM_TIERS and its fellows mean is `nearfar_kinds::memtier_env`'s business; which tier a block goes to, `nearfar_kinds::memtier`'s.
//!
//! # Life story
//! - **Load.** Until our constructor has run every block is the C library's, and counts as DRAM.
//! - **Start.** The constructor reads the variables and opens the tiers. What cannot be had ends the program, as documented: abort(3),
//!   after a line that says what to write.
//! - **Run.** Each allocation asks for its tier. DRAM is the C library's heap, other tiers are kinds; a block is known by its address.
//! - **Exit.** Nothing: memory stays, so that streams are flushed and destructors run as ever.
//!
//! Modules are listed lowest first; a module uses only modules above it.
// Under test nothing is exported, and so nothing is used.
#![cfg_attr(test, allow(dead_code))]

mod talk;
mod tiers;
mod heap;
mod lifecycle;

use nearfar_kinds::family::Void;

nearfar_kinds::malloc_family!(heap::Tiered, "");

/// The same functions, as programs call them that were built with jemalloc's prefix.
pub mod je {
    use crate::heap::Tiered;
    use nearfar_kinds::family::Void;

    nearfar_kinds::malloc_family!(Tiered, "je_");
}
