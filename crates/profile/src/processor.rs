//! Memory samples of the processor, where it takes them (PEBS, IBS): who touches what, how long it takes, and where the data come
//! from. They stand beside the looks at pages, which tell how much traffic there is.

use crate::clock::{MOST_DESCRIPTORS, MOST_EARLIER, candidates};
use nearfar_core::profile::hardware::{self, Event};
use nearfar_core::profile::record::Access;
use nearfar_sys::errno::Errno;
use nearfar_sys::perf::Ring;
use nearfar_sys::rlimit::{self, Limit};
use nearfar_sys::root::Root;
use nearfar_sys::{memory_events, process, task};

/// How often is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleRate {
    /// A core that misses its first-level cache a hundred million times a second is sampled a thousand times, which takes a few
    /// thousandths of its time.
    Usual,
    /// Five times as often.
    Fast,
}

impl SampleRate {
    /// One sample of so many loads or stores (a prime, so that no loop keeps in step with it), or, with IBS, of so many ops, of which
    /// there are ten times as many; the hardware counts those in sixteens.
    fn period(self, event: &Event) -> u64 {
        match (self, event.precise) {
            (Self::Usual, 0) => 16 * 62_501,
            (Self::Fast, 0) => 16 * 12_503,
            (Self::Usual, _) => 100_003,
            (Self::Fast, _) => 20_011,
        }
    }
}

/// Running samples of this process.
pub struct Processor {
    rings: Vec<Ring>,
    /// Open descriptors of them all.
    descriptors: u64,
    pid: u32,
    ours: Vec<u32>,
    lost: u64,
    bytes: Vec<u8>,
}

impl Processor {
    /// Samples all threads of this process, and those that they start, but for `ours`.
    ///
    /// # Errors
    /// `ENODEV`: the processor, or the virtual machine, has no such samples; `EMFILE`: the program may need its descriptors itself;
    /// others: the kernel denies them.
    pub fn start(ours: &[u32], pace: SampleRate) -> Result<Self, Errno> {
        let events: Vec<(Event, u64)> =
            memory_events::find(&Root::this()).into_iter().map(|event| (event, pace.period(&event))).collect();
        Self::of(&events, ours)
    }

    /// The same with events, each with its period, that may be any that have addresses.
    pub(crate) fn of(events: &[(Event, u64)], ours: &[u32]) -> Result<Self, Errno> {
        let mut refused = Errno(libc::ENODEV);
        let mut all =
            Self { rings: Vec::new(), descriptors: 0, pid: process::pid(), ours: ours.to_vec(), lost: 0, bytes: Vec::new() };
        for (event, period) in events {
            if let Err(errno) = all.add(event, *period) {
                refused = errno;
            }
        }
        if all.rings.is_empty() { Err(refused) } else { Ok(all) }
    }

    /// One event on every CPU that has it (hybrid processors have units that only some CPUs have), for all threads. Of an event that
    /// is denied somewhere nothing stays: samples of some threads only would be wrong about the whole.
    fn add(&mut self, event: &Event, period: u64) -> Result<(), Errno> {
        let limit = rlimit::limit(Limit::Descriptors).unwrap_or(u64::MAX) / MOST_DESCRIPTORS;
        let others = || task::others().into_iter().chain([process::tid()]);
        let earlier: Vec<u32> = others().filter(|tid| *tid != self.pid && !self.ours.contains(tid)).take(MOST_EARLIER).collect();
        let each = (1 + earlier.len() as u64) * if event.auxiliary.is_some() { 2 } else { 1 };
        let mut rings = Vec::new();
        let mut result = Err(Errno(libc::ENODEV));
        for cpu in candidates() {
            if self.descriptors + (rings.len() as u64 + 1) * each > limit {
                return Err(Errno(libc::EMFILE));
            }
            let mut ring = match Ring::memory(self.pid, cpu, event, period) {
                Ok(ring) => ring,
                // It is off, or has no such unit.
                Err(errno @ Errno(libc::ENODEV | libc::ENXIO | libc::ENOENT)) => {
                    result = result.or(Err(errno));
                    continue;
                }
                // No CPU has that number.
                Err(Errno::EINVAL) if !rings.is_empty() => break,
                Err(errno) => return Err(errno),
            };
            for &tid in &earlier {
                match ring.also(tid) {
                    Ok(()) | Err(Errno(libc::ESRCH)) => {}
                    Err(errno) => return Err(errno),
                }
            }
            rings.push(ring);
            result = Ok(());
        }
        self.descriptors += rings.len() as u64 * each;
        self.rings.append(&mut rings);
        result
    }

    /// Samples of these threads are left out from now on, and of no others.
    pub fn set_ours(&mut self, ours: Vec<u32>) {
        self.ours = ours;
    }

    /// Adds what was sampled since the last call.
    pub fn drain(&mut self, out: &mut Vec<Access>) {
        let Self { rings, pid, ours, lost, bytes, .. } = self;
        for ring in rings {
            bytes.clear();
            ring.take(bytes);
            let found = hardware::samples(bytes);
            *lost += found.lost;
            let wanted = |(of, access): &(u32, Access)| of == pid && !ours.contains(&access.tid);
            out.extend(found.accesses.into_iter().filter(wanted).map(|(_, access)| access));
        }
    }

    /// Samples that found no room since the last call of this.
    pub fn take_lost(&mut self) -> u64 {
        std::mem::take(&mut self.lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearfar_sys::map::OwnedMap;
    use std::sync::mpsc;

    /// Touches so many fresh pages, at an offset of 8 bytes each; returns where they are, and the thread.
    fn touch(pages: usize) -> (OwnedMap, u32) {
        let fresh = OwnedMap::new(pages * 4096).unwrap();
        for page in (fresh.range().start..fresh.range().end).step_by(4096) {
            // SAFETY: within a fresh mapping of our own.
            unsafe { std::ptr::write_volatile((page + 8) as *mut u8, 1) };
        }
        (fresh, process::tid())
    }

    /// Few machines that build this have what it needs: an event that all have, page faults, stands in. Tests of the harness run on
    /// threads: those that run already must be found, and those that are started later, and ours must not.
    #[test]
    fn samples_of_all_threads_but_ours() {
        // Other tests fault as well, and may fill the rings.
        for _ in 0..20 {
            match attempt() {
                Ok(0) => return,
                Ok(_) => {}
                Err(errno) => return println!("skip: no perf_event_open here: {errno}"),
            }
        }
        panic!("samples were lost each time");
    }

    /// Returns how many samples were lost; checks them if none were.
    fn attempt() -> Result<u64, Errno> {
        let (go, wait) = mpsc::channel::<()>();
        let earlier = std::thread::spawn(move || wait.recv().is_ok().then(|| touch(20)));
        let faults = Event { unit: 1, config: 2, ..Event::default() };
        let mut all = Processor::of(&[(faults, 1)], &[])?;
        go.send(()).unwrap();
        let touched = [earlier.join().unwrap().unwrap(), std::thread::spawn(|| touch(30)).join().unwrap(), touch(40)];
        let ours = std::thread::spawn(|| touch(50)).join().unwrap();
        all.set_ours(vec![ours.1]);
        let mut found = Vec::new();
        all.drain(&mut found);
        let lost = all.take_lost();
        if lost > 0 {
            return Ok(lost);
        }
        for ((fresh, tid), expected) in touched.iter().zip([20, 30, 40]) {
            let inside: Vec<_> = found.iter().filter(|access| fresh.range().contains(access.addr as usize)).collect();
            assert_eq!(inside.len(), expected, "{found:?}");
            assert!(inside.iter().all(|access| access.tid == *tid && access.addr % 4096 == 8 && access.stands_for == 1));
        }
        assert!(!found.iter().any(|access| access.tid == ours.1), "ours are left out");
        let count = found.len();
        all.drain(&mut found);
        assert!(found[count..].iter().all(|access| !touched[0].0.range().contains(access.addr as usize)), "handed over once");
        Ok(0)
    }

    #[test]
    fn what_this_machine_has_is_an_answer() {
        match Processor::start(&[], SampleRate::Usual) {
            Ok(_) => println!("this processor takes memory samples"),
            Err(errno) => println!("skip: no memory samples here: {errno}"),
        }
        let ibs = Event { precise: 0, ..Event::default() };
        let pebs = Event { precise: 2, ..Event::default() };
        for event in [ibs, pebs] {
            assert_eq!(SampleRate::Usual.period(&event) / SampleRate::Fast.period(&event), 4, "about five times as often");
        }
        assert!([SampleRate::Usual, SampleRate::Fast].iter().all(|pace| pace.period(&ibs) % 16 == 0));
    }
}
