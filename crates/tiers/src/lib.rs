//! Moves. Turns decisions of `core` into page traffic, through `sys`.

pub mod job;
pub mod memory;
