//! Samples of where a thread and those that it starts run: the kernel's software clock (perf_event_open), which needs no counters
//! and, up to perf_event_paranoid 2, no rights. One event and one small ring per CPU, since the kernel maps no ring of an event
//! that threads inherit otherwise.

use crate::errno::{Errno, call};
use crate::high_descriptors::Kept;
use crate::map::{RW, mmap, munmap};
use crate::process;
use nearfar_core::addr::{Extent, PAGE};
use nearfar_core::profile::hardware::{Event, SAMPLE_TYPE};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// PERF_TYPE_SOFTWARE.
const SOFTWARE: u32 = 1;
/// PERF_COUNT_SW_CPU_CLOCK.
const CPU_CLOCK: u64 = 0;
/// PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME.
const IP_TID_TIME: u64 = 0b111;
/// Bits of the flags: inherit, exclude_kernel, exclude_hv, inherit_thread.
const INHERIT: u64 = 1 << 1;
const NO_KERNEL: u64 = 1 << 5;
const NO_HYPERVISOR: u64 = 1 << 6;
const USER_ONLY: u64 = NO_KERNEL | NO_HYPERVISOR;
/// Only threads inherit, not child processes (Linux 5.13).
const THREADS_ONLY: u64 = 1 << 35;
/// Close-on-exec.
const CLOEXEC: usize = 8;
/// PERF_EVENT_IOC_SET_OUTPUT.
const SET_OUTPUT: usize = 0x2405;
/// use_clockid: time stamps of CLOCK_MONOTONIC.
const USE_CLOCK: u64 = 1 << 25;
/// Where precise_ip begins in the flags.
const PRECISE_SHIFT: u32 = 15;
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
#[derive(Clone, Copy, Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    period: u64,
    sample: u64,
    read: u64,
    flags: u64,
    /// wakeup_events and bp_type.
    wakeup: u64,
    config1: u64,
    config2: u64,
    /// branch_sample_type, sample_regs_user, then sample_stack_user and clockid.
    branch: u64,
    registers: u64,
    stack: u32,
    clock: i32,
    rest: [u64; 2],
}

impl Attributes {
    /// The software clock, each `period_ns` of user-mode CPU time.
    fn clock(period_ns: u64) -> Self {
        Self {
            kind: SOFTWARE,
            config: CPU_CLOCK,
            period: period_ns,
            sample: IP_TID_TIME,
            flags: USE_CLOCK | USER_ONLY,
            clock: libc::CLOCK_MONOTONIC,
            ..Self::default()
        }
    }

    /// Memory samples, one of `period` events.
    fn memory(event: &Event, period: u64) -> Self {
        Self {
            kind: event.unit,
            config: event.config,
            config1: event.config1,
            config2: event.config2,
            period,
            sample: SAMPLE_TYPE,
            flags: USE_CLOCK | USER_ONLY | u64::from(event.precise.min(3)) << PRECISE_SHIFT,
            clock: libc::CLOCK_MONOTONIC,
            ..Self::default()
        }
    }

    /// An event that only counts: some processors sample loads only in a group that it leads. The kernel wants one clock for all of a
    /// group.
    fn auxiliary(event: &Event, config: u64) -> Self {
        let flags = USE_CLOCK | USER_ONLY;
        Self { kind: event.unit, config, flags, clock: libc::CLOCK_MONOTONIC, ..Self::default() }
    }
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
        /// When, in ns of CLOCK_MONOTONIC.
        at: u64,
    },
    /// So many samples found the ring full.
    Lost(u64),
}

/// Who is sampled besides the thread itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heirs {
    /// Threads that it starts.
    Threads,
    /// And processes.
    Processes,
}

/// Samples of one CPU.
pub struct Ring {
    event: Kept,
    /// Events that others need beside them.
    leaders: Vec<Kept>,
    /// Events of further threads, with the same ring.
    others: Vec<Kept>,
    cpu: usize,
    attributes: Attributes,
    auxiliary: Option<Attributes>,
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
        Self::of(tid, cpu, Attributes::clock(period_ns), None, Heirs::Threads)
    }

    /// The same of the calling thread, and of threads and processes that it starts from now on, whatever they execute. For a process that
    /// watches its children: the rights are those over itself.
    ///
    /// # Errors
    /// As for `open`.
    pub fn family(cpu: usize, period_ns: u64) -> Result<Self, Errno> {
        Self::of(process::tid(), cpu, Attributes::clock(period_ns), None, Heirs::Processes)
    }

    /// Memory samples (`core::profile::hardware`) of thread `tid`, and of those that it starts: one of each `period` events.
    ///
    /// # Errors
    /// As for `open`; `ENOENT`, `EOPNOTSUPP`: the processor has no such event.
    pub fn memory(tid: u32, cpu: usize, event: &Event, period: u64) -> Result<Self, Errno> {
        let auxiliary = event.auxiliary.map(|config| Attributes::auxiliary(event, config));
        let exact = Attributes::memory(event, period);
        match Self::of(tid, cpu, exact, auxiliary, Heirs::Threads) {
            // Units that cannot leave the kernel out (IBS before Linux 6.14) may be used by who may look at the kernel; readers
            // leave out what is its.
            Err(Errno::EINVAL) => {
                Self::of(tid, cpu, Attributes { flags: exact.flags & !USER_ONLY, ..exact }, auxiliary, Heirs::Threads)
            }
            other => other,
        }
    }

    fn of(tid: u32, cpu: usize, attributes: Attributes, auxiliary: Option<Attributes>, heirs: Heirs) -> Result<Self, Errno> {
        let (leader, event) = grouped(tid, cpu, &attributes, auxiliary.as_ref(), heirs)?;
        let mut result = Err(Errno::ENOMEM);
        for pages in PAGES {
            let len = (1 + pages) * PAGE;
            // SAFETY: not fixed: the kernel picks free space.
            result = unsafe { mmap(0, len, RW, libc::MAP_SHARED, event.as_raw_fd(), 0) }.map(|start| Extent::new(start, len));
            if result.is_ok() {
                break;
            }
        }
        let leaders = leader.into_iter().collect();
        Ok(Self { event, leaders, others: Vec::new(), cpu, attributes, auxiliary, range: result?, owner: process::pid() })
    }

    /// Samples thread `tid`, and those that it starts, into this ring as well.
    ///
    /// # Errors
    /// As for `open`; `ESRCH`: it has ended.
    pub fn also(&mut self, tid: u32) -> Result<(), Errno> {
        let (leader, event) = grouped(tid, self.cpu, &self.attributes, self.auxiliary.as_ref(), Heirs::Threads)?;
        let args = [event.as_raw_fd() as usize, SET_OUTPUT, self.event.as_raw_fd() as usize, 0, 0, 0];
        // SAFETY: integers only.
        unsafe { call(libc::SYS_ioctl, args)? };
        self.others.push(event);
        self.leaders.extend(leader);
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
                    each(Found::Sample {
                        ip: self.word(at + 8),
                        pid: task as u32,
                        tid: (task >> 32) as u32,
                        at: self.word(at + 24),
                    });
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

    /// Moves all whole records out of the ring, as they are, to the end of `out`. In a child of a fork there are none.
    pub fn take(&mut self, out: &mut Vec<u8>) {
        if self.owner != process::pid() {
            return;
        }
        let head = self.counter(HEAD).load(Ordering::Acquire);
        let tail = self.counter(TAIL).load(Ordering::Relaxed);
        (tail..head).step_by(8).for_each(|at| out.extend_from_slice(&self.word(at).to_le_bytes()));
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
        let offset = PAGE + ((at % bytes) & !7) as usize;
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

/// An event, with the one that leads it if it needs one.
fn grouped(
    tid: u32,
    cpu: usize,
    what: &Attributes,
    auxiliary: Option<&Attributes>,
    heirs: Heirs,
) -> Result<(Option<Kept>, Kept), Errno> {
    let leader = auxiliary.map(|auxiliary| event(tid, cpu, auxiliary, None, heirs)).transpose()?;
    let event = event(tid, cpu, what, leader.as_ref(), heirs)?;
    Ok((leader, event))
}

fn event(tid: u32, cpu: usize, what: &Attributes, leader: Option<&Kept>, heirs: Heirs) -> Result<Kept, Errno> {
    if heirs == Heirs::Processes {
        return event_with(tid, cpu, what, leader, 0);
    }
    match event_with(tid, cpu, what, leader, THREADS_ONLY) {
        // An older kernel: children are sampled too, and told apart by their number.
        Err(Errno::EINVAL) => event_with(tid, cpu, what, leader, 0),
        other => other,
    }
}

fn event_with(tid: u32, cpu: usize, what: &Attributes, leader: Option<&Kept>, more: u64) -> Result<Kept, Errno> {
    let flags = what.flags | INHERIT | more;
    let attributes = Attributes { size: size_of::<Attributes>() as u32, flags, ..*what };
    let group = leader.map_or(usize::MAX, |leader| leader.as_raw_fd() as usize);
    let args = [&raw const attributes as usize, tid as usize, cpu, group, CLOEXEC, 0];
    // SAFETY: the attributes live until the call returns, and their size is in them.
    let fd = unsafe { call(libc::SYS_perf_event_open, args)? };
    // SAFETY: a fresh descriptor, ours alone.
    Ok(Kept::new(unsafe { OwnedFd::from_raw_fd(fd as i32) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_such_cpu_is_an_error() {
        assert!(Ring::open(process::pid(), 1 << 20, 1_000_000).is_err());
        assert_eq!(size_of::<Attributes>(), 112, "PERF_ATTR_SIZE_VER5");
    }

    /// Page faults of the kernel's own count come in the same records as samples of processors.
    #[test]
    fn records_with_addresses() {
        let faults = Event { unit: SOFTWARE, config: 2, ..Event::default() };
        let rings: Result<Vec<_>, _> = crate::affinity::of(0)
            .expect("own CPUs")
            .as_slice()
            .iter()
            .map(|&cpu| Ring::memory(process::tid(), cpu as usize, &faults, 1))
            .collect();
        let mut rings = match rings {
            Ok(rings) => rings,
            Err(errno) => return println!("skip: no perf_event_open here: {errno}"),
        };
        // In a group as well, which some processors want.
        let led = Event { auxiliary: Some(2), ..faults };
        let led = Ring::memory(process::tid(), rings[0].cpu, &led, 1).map(|ring| ring.leaders.len());
        assert_eq!(led, Ok(1));
        let fresh = crate::map::OwnedMap::new(16 * PAGE).expect("memory");
        let begun = crate::event::now_ns();
        for page in (fresh.range().start..fresh.range().end).step_by(PAGE) {
            // SAFETY: within a fresh mapping of our own.
            unsafe { std::ptr::write_volatile((page + 8) as *mut u8, 1) };
        }
        let mut found = Vec::new();
        for ring in &mut rings {
            let mut bytes = Vec::new();
            ring.take(&mut bytes);
            found.extend(nearfar_core::profile::hardware::samples(&bytes).accesses);
        }
        let inside: Vec<_> = found.iter().filter(|(_, access)| fresh.range().contains(access.addr as usize)).collect();
        assert_eq!(inside.len(), 16, "{found:?}");
        for (pid, access) in inside {
            assert_eq!((*pid, access.tid, access.addr % PAGE as u64), (process::pid(), process::tid(), 8));
            assert!((begun..begun + 10_000_000_000).contains(&access.at), "the clock is CLOCK_MONOTONIC");
        }
    }
}
