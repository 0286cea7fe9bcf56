//! What differs by processor: the raw system call instruction, and how a thread begins.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub use aarch64::{begin_thread_block, clone_thread, syscall6, thread_pointer};
#[cfg(target_arch = "x86_64")]
pub use x86_64::{begin_thread_block, clone_thread, syscall6, thread_pointer};
