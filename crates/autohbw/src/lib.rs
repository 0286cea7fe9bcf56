//! libautohbw.so: preloaded into a program, or linked to it, it gives allocations of chosen sizes memory of high bandwidth and leaves
//! all others to the C library. What AUTO_HBW_SIZE, AUTO_HBW_LOG and AUTO_HBW_MEM_TYPE mean is `nearfar_kinds::autohbw`'s business.
//!
//! # Life story
//! - **Load.** Until our constructor has run nothing is placed: every call goes on to the malloc behind ours.
//! - **Start.** The constructor reads the variables, opens the kind of memory and sets the window of sizes.
//! - **Run.** A call outside the window costs two comparisons; a block given back is known by its address.
//! - **Exit.** A summary, if it was asked for. Memory stays, so that streams are flushed and destructors run as ever.
//!
//! Modules are listed lowest first; a module uses only modules above it.
// Under test nothing is exported, and so nothing is used.
#![cfg_attr(test, allow(dead_code))]

mod window;
mod tally;
mod talk;
mod heap;
mod lifecycle;

use nearfar_kinds::family::Void;

nearfar_kinds::malloc_family!(heap::AutoHbw, "");

/// Places allocations again, as from the start (autohbw_api.h).
#[allow(non_snake_case)]
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn enableAutoHBW() {
    window::set_enabled(true);
}

/// Leaves allocations where they would be without us, until `enableAutoHBW` (autohbw_api.h). What is placed stays.
#[allow(non_snake_case)]
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn disableAutoHBW() {
    window::set_enabled(false);
}
