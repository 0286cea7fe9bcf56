//! Keeps CPUs from deep sleep while threads wait for each other, by the kernel's PM QoS interface (/dev/cpu_dma_latency).
//!
//! A thread that waits for a page leaves its CPU idle for the time of one read, and an idle CPU goes to sleep. Waking it takes
//! 50 to 150 us in a virtual machine and in deep sleep states: as long as the read, and twice per fault. The interface is
//! the one that real-time programs use; only root may, and it is asked for only while threads wait often.

use crate::errno::{Errno, call};
use crate::high_descriptors::Kept;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// "No matter" of PM_QOS_CPU_LATENCY_DEFAULT_VALUE: 2000 s.
const ANY_US: i32 = 2_000_000_000;
/// Sleep states of real CPUs that wake up as fast as this cost nothing that one would notice.
const SHORT_US: i32 = 2;

/// A request that CPUs wake up quickly; in force while `on`.
#[derive(Debug)]
pub struct LatencyRequest {
    fd: Kept,
    guest: bool,
    on_us: i32,
    on: bool,
}

impl LatencyRequest {
    /// A request that is not in force yet. Fails for ordinary users, and where there is no such device.
    pub fn open() -> Result<Self, Errno> {
        let mut request =
            Self { fd: Kept::new(open(c"/dev/cpu_dma_latency", libc::O_WRONLY)?), guest: false, on_us: SHORT_US, on: true };
        let mut driver = [0u8; 16];
        if let Ok(file) = open(c"/sys/devices/system/cpu/cpuidle/current_driver", libc::O_RDONLY) {
            let args = [file.as_raw_fd() as usize, driver.as_mut_ptr() as usize, driver.len(), 0, 0, 0];
            // SAFETY: writes at most so many bytes into a local array of that size.
            let _ = unsafe { call(libc::SYS_read, args) };
        }
        if driver.starts_with(b"haltpoll") {
            // A guest has one sleep state, halting, which is said to take 1 us and does not: it must look for work instead.
            (request.guest, request.on_us) = (true, 0);
        }
        request.set(false);
        Ok(request)
    }

    /// This is a virtual machine whose CPUs halt when they are idle: waking one is the hypervisor's doing.
    pub fn is_of_a_guest(&self) -> bool {
        self.guest
    }

    /// Puts the request in force, or lifts it.
    pub fn set(&mut self, on: bool) {
        // Where the program has closed it, something else may have its number.
        if self.on == on || !self.fd.is_ours() {
            return;
        }
        let value = if on { self.on_us } else { ANY_US }.to_ne_bytes();
        let args = [self.fd.as_raw_fd() as usize, value.as_ptr() as usize, value.len(), 0, 0, 0];
        // SAFETY: reads four bytes of a local. When it fails, the request stays what it was, which affects only speed.
        let _ = unsafe { call(libc::SYS_write, args) };
        self.on = on;
    }
}

impl AsRawFd for LatencyRequest {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

fn open(path: &std::ffi::CStr, flags: i32) -> Result<OwnedFd, Errno> {
    let args = [libc::AT_FDCWD as usize, path.as_ptr() as usize, (flags | libc::O_CLOEXEC) as usize, 0, 0, 0];
    // SAFETY: a C string that lives through the call.
    let fd = unsafe { call(libc::SYS_openat, args)? };
    // SAFETY: a fresh descriptor, ours alone.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}
