//! What is held closest around every fork of a process that nearfar's library is in, whatever it does there: look-ups in the loader,
//! then nearfar's own heap, which a look-up may use.
//!
//! Registered when the library starts. Handlers that come with the first use come too late for a fork that is under way: the child
//! would get a heap locked for ever.

use crate::{alloc_internal, loader};

/// Before a fork, as the last thing.
pub extern "C" fn prepare() {
    loader::fork_prepare();
    alloc_internal::fork_prepare();
}

/// After it in the parent, as the first thing.
pub extern "C" fn parent() {
    alloc_internal::fork_parent();
    loader::fork_done();
}

/// After it in the child, as the first thing.
pub extern "C" fn child() {
    alloc_internal::fork_child();
    loader::fork_child();
}
