//! What differs by processor: the raw system call instruction and the spin hint.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub use aarch64::syscall6;
#[cfg(target_arch = "x86_64")]
pub use x86_64::syscall6;
