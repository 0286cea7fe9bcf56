//! Moves. Turns decisions of `core` into page traffic, through `sys`.
//!
//! Modules are listed lowest first; a module uses only modules above it in this list.

pub mod sync;
pub mod pool;
pub mod bits;
pub mod frame_bytes;
pub mod hash_map;
pub mod own_fds;
pub mod ledger;
pub mod xts;
pub mod health;
pub mod job;
pub mod backend;
pub mod speed;
pub mod far_account;
pub mod reserve;
pub mod far;
pub mod log;
pub mod page_map;
pub mod block;
pub mod region;
pub mod frame;
pub mod arena;
pub mod loans;
pub mod guard;
pub mod recorder;
pub mod pager;
pub mod mapped;
pub mod memory;
