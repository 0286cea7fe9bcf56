//! Memory samples of the processor, where it takes them (PEBS, IBS): who touches what, how long it takes, and where the data come
//! from. They stand beside the looks at pages, which tell how much traffic there is.

use nearfar_core::profile::hardware::{self, Event};
use nearfar_core::profile::record::Access;
use nearfar_sys::errno::Errno;
use nearfar_sys::memory_events;
use nearfar_sys::perf::Ring;
use nearfar_sys::root::Root;
use nearfar_sys::{affinity, process};

/// One sample of so many events; a prime, so that no loop keeps in step with it. A core that misses its first-level cache a hundred
/// million times a second is sampled a thousand times.
const PERIOD: u64 = 100_003;
/// IBS counts ops, of which there are ten times as many.
const PERIOD_OF_OPS: u64 = 1_000_003;

/// Running samples of this process.
pub struct Processor {
    rings: Vec<Ring>,
    pid: u32,
    lost: u64,
    bytes: Vec<u8>,
}

impl Processor {
    /// Samples this process's first thread and those that are started from now on.
    ///
    /// # Errors
    /// `ENODEV`: the processor, or the virtual machine, has no such samples; others: the kernel denies them.
    pub fn start() -> Result<Self, Errno> {
        let mut refused = Errno(libc::ENODEV);
        let mut all = Self { rings: Vec::new(), pid: process::pid(), lost: 0, bytes: Vec::new() };
        for event in memory_events::find(&Root::this()) {
            match all.add(&event, if event.precise == 0 { PERIOD_OF_OPS } else { PERIOD }) {
                Ok(()) => {}
                Err(errno) => refused = errno,
            }
        }
        if all.rings.is_empty() { Err(refused) } else { Ok(all) }
    }

    /// One event on every CPU that has it (hybrid processors have units that only some CPUs have).
    fn add(&mut self, event: &Event, period: u64) -> Result<(), Errno> {
        let cpus = affinity::of(0).map_err(|_| Errno(libc::ENODEV))?;
        let mut result = Err(Errno(libc::ENODEV));
        for &cpu in cpus.as_slice() {
            match Ring::memory(self.pid, cpu as usize, event, period) {
                Ok(ring) => {
                    self.rings.push(ring);
                    result = Ok(());
                }
                Err(errno) if result.is_err() => result = Err(errno),
                Err(_) => {}
            }
        }
        result
    }

    /// Adds what was sampled since the last call.
    pub fn drain(&mut self, out: &mut Vec<Access>) {
        let Self { rings, pid, lost, bytes } = self;
        for ring in rings {
            bytes.clear();
            ring.take(bytes);
            let found = hardware::samples(bytes);
            *lost += found.lost;
            out.extend(found.accesses.into_iter().filter(|(of, _)| of == pid).map(|(_, access)| access));
        }
    }

    /// Samples that found no room since the start.
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Few machines that build this have what it needs: an event that all have, page faults, stands in.
    #[test]
    fn samples_of_this_process_only() {
        let mut all = Processor { rings: Vec::new(), pid: process::pid(), lost: 0, bytes: Vec::new() };
        if let Err(errno) = all.add(&Event { unit: 1, config: 2, ..Event::default() }, 1) {
            return println!("skip: no perf_event_open here: {errno}");
        }
        let mut found = Vec::new();
        all.drain(&mut found);
        // The first thread only, which waits for the tests: whatever it did, it did not fault with another's address.
        assert!(found.iter().all(|access| access.tid == process::pid() && access.addr != 0), "{found:?}");
        assert_eq!(all.lost(), 0);
        // What this machine has or has not is an answer, not a failure.
        match Processor::start() {
            Ok(_) => println!("this processor takes memory samples"),
            Err(errno) => println!("skip: no memory samples here: {errno}"),
        }
    }
}
