//! Samples of where a thread and those that it starts run: the kernel's software clock (perf_event_open), which needs no counters
//! and, up to perf_event_paranoid 2, no rights. One event and one small ring per CPU, since the kernel maps no ring of an event
//! that threads inherit otherwise.

use crate::aside;
use crate::errno::{Errno, call};
use crate::map::{RW, mmap, munmap};
use crate::process;
use nearfar_core::addr::{Extent, PAGE};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// PERF_TYPE_SOFTWARE.
const SOFTWARE: u32 = 1;
/// PERF_COUNT_SW_CPU_CLOCK.
const CPU_CLOCK: u64 = 0;
/// PERF_SAMPLE_IP | PERF_SAMPLE_TID.
const IP_AND_TID: u64 = 0b11;
/// Bits of the flags: inherit, exclude_kernel, exclude_hv, inherit_thread.
const INHERIT: u64 = 1 << 1;
const NO_KERNEL: u64 = 1 << 5;
const NO_HYPERVISOR: u64 = 1 << 6;
/// Only threads inherit, not child processes (Linux 5.13).
const THREADS_ONLY: u64 = 1 << 35;
/// Close-on-exec.
const CLOEXEC: usize = 8;
/// PERF_EVENT_IOC_SET_OUTPUT.
const SET_OUTPUT: usize = 0x2405;
const RECORD_LOST: u32 = 2;
const RECORD_SAMPLE: u32 = 9;
/// Where the kernel says how far it wrote, and we how far we read (struct perf_event_mmap_page).
const HEAD: usize = 1024;
const TAIL: usize = 1032;
/// Pages of samples per CPU, tried in this order: the kernel lets a user lock about half a MiB per CPU for all their rings.
/// Four pages hold 680 samples.
const PAGES: [usize; 2] = [4, 1];

/// perf_event_attr up to its fifth version, of which only the first fields matter here.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    period: u64,
    sample: u64,
    read: u64,
    flags: u64,
    rest: [u64; 8],
}

/// What is in a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Thread `tid` of process `pid` was at `ip`.
    Sample {
        /// The instruction.
        ip: u64,
        /// The process.
        pid: u32,
        /// The thread.
        tid: u32,
    },
    /// So many samples found the ring full.
    Lost(u64),
}

/// Samples of one CPU.
pub struct Ring {
    event: OwnedFd,
    /// Events of further threads, with the same ring.
    others: Vec<OwnedFd>,
    cpu: usize,
    period_ns: u64,
    range: Extent,
    /// Whose mapping it is: the kernel does not copy it in a fork.
    owner: u32,
}

impl Ring {
    /// Samples thread `tid`, and threads that it starts from now on, each time they have run `period_ns` on `cpu` (in user mode).
    ///
    /// # Errors
    /// `EINVAL`: there is no such CPU; `ENODEV`: it is off; `EACCES`, `EPERM`, `ENOSYS`: not allowed here.
    pub fn open(tid: u32, cpu: usize, period_ns: u64) -> Result<Self, Errno> {
        let event = event(tid, cpu, period_ns)?;
        let mut result = Err(Errno::ENOMEM);
        for pages in PAGES {
            let len = (1 + pages) * PAGE;
            // SAFETY: not fixed: the kernel picks free space.
            result = unsafe { mmap(0, len, RW, libc::MAP_SHARED, event.as_raw_fd(), 0) }.map(|start| Extent::new(start, len));
            if result.is_ok() {
                break;
            }
        }
        Ok(Self { event, others: Vec::new(), cpu, period_ns, range: result?, owner: process::pid() })
    }

    /// Samples thread `tid`, and those that it starts, into this ring as well.
    ///
    /// # Errors
    /// As for `open`; `ESRCH`: it has ended.
    pub fn also(&mut self, tid: u32) -> Result<(), Errno> {
        let event = event(tid, self.cpu, self.period_ns)?;
        let args = [event.as_raw_fd() as usize, SET_OUTPUT, self.event.as_raw_fd() as usize, 0, 0, 0];
        // SAFETY: integers only.
        unsafe { call(libc::SYS_ioctl, args)? };
        self.others.push(event);
        Ok(())
    }

    /// Takes everything out of the ring. In a child of a fork there is nothing.
    pub fn drain(&mut self, each: &mut dyn FnMut(Found)) {
        if self.owner != process::pid() {
            return;
        }
        let head = self.counter(HEAD).load(Ordering::Acquire);
        let mut at = self.counter(TAIL).load(Ordering::Relaxed);
        while at < head {
            let first = self.word(at);
            let (kind, size) = (first as u32, first >> 48);
            match kind {
                RECORD_SAMPLE => {
                    let task = self.word(at + 16);
                    each(Found::Sample { ip: self.word(at + 8), pid: task as u32, tid: (task >> 32) as u32 });
                }
                RECORD_LOST => each(Found::Lost(self.word(at + 16))),
                _ => {}
            }
            // The kernel writes no record without a length; damage must not hang us.
            at = if size == 0 { head } else { at + size };
        }
        // What we read is read before the kernel may write there.
        fence(Ordering::Release);
        self.counter(TAIL).store(head, Ordering::Release);
    }

    fn counter(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: within the first page of the ring, aligned, shared with the kernel, which goes by atomic loads and stores there.
        unsafe { &*((self.range.start + offset) as *const AtomicU64) }
    }

    /// Eight bytes of the samples; records are multiples of that.
    fn word(&self, at: u64) -> u64 {
        let bytes = (self.range.len() - PAGE) as u64;
        let offset = PAGE + (at % bytes & !7) as usize;
        // SAFETY: within the mapping by the remainder, aligned; between tail and head the kernel does not write.
        unsafe { std::ptr::read_volatile((self.range.start + offset) as *const u64) }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if self.owner == process::pid() {
            // SAFETY: the mapping is ours alone, and the borrow of `self` is the last.
            let _ = unsafe { munmap(self.range) };
        }
    }
}

fn event(tid: u32, cpu: usize, period_ns: u64) -> Result<OwnedFd, Errno> {
    match event_with(tid, cpu, period_ns, THREADS_ONLY) {
        // An older kernel: children are sampled too, and told apart by their number.
        Err(Errno::EINVAL) => event_with(tid, cpu, period_ns, 0),
        other => other,
    }
}

fn event_with(tid: u32, cpu: usize, period_ns: u64, more: u64) -> Result<OwnedFd, Errno> {
    let attributes = Attributes {
        kind: SOFTWARE,
        size: size_of::<Attributes>() as u32,
        config: CPU_CLOCK,
        period: period_ns,
        sample: IP_AND_TID,
        flags: INHERIT | NO_KERNEL | NO_HYPERVISOR | more,
        ..Attributes::default()
    };
    let args = [&raw const attributes as usize, tid as usize, cpu, usize::MAX, CLOEXEC, 0];
    // SAFETY: the attributes live until the call returns, and their size is in them.
    let fd = unsafe { call(libc::SYS_perf_event_open, args)? };
    // SAFETY: a fresh descriptor, ours alone.
    Ok(aside::put(unsafe { OwnedFd::from_raw_fd(fd as i32) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_such_cpu_is_an_error() {
        assert!(Ring::open(process::pid(), 1 << 20, 1_000_000).is_err());
        assert_eq!(size_of::<Attributes>(), 112, "PERF_ATTR_SIZE_VER5");
    }
}
