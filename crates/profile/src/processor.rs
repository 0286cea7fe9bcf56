//! Memory samples of the processor, where it takes them (PEBS, IBS): who touches what, how long it takes, and where the data come
//! from. They stand beside the looks at pages, which tell how much traffic there is.

use crate::rings::{self, MOST_DESCRIPTORS};
use nearfar_core::profile::hardware::{self, Event};
use nearfar_core::profile::record::Access;
use nearfar_sys::errno::Errno;
use nearfar_sys::perf::Ring;
use nearfar_sys::rlimit::{self, Limit};
use nearfar_sys::root::Root;
use nearfar_sys::{memory_events, process};

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

    /// One event on every CPU that has it, for all threads. Of an event that is denied somewhere nothing stays.
    fn add(&mut self, event: &Event, period: u64) -> Result<(), Errno> {
        let limit = rlimit::limit(Limit::Descriptors).unwrap_or(u64::MAX) / MOST_DESCRIPTORS;
        let earlier = rings::earlier(&self.ours);
        let descriptors = |events: usize| events as u64 * if event.auxiliary.is_some() { 2 } else { 1 };
        let fits =
            |events: usize| if self.descriptors + descriptors(events) <= limit { Ok(()) } else { Err(Errno(libc::EMFILE)) };
        let mut rings = rings::open(&earlier, fits, |cpu| Ring::memory(self.pid, cpu, event, period))?;
        self.descriptors += descriptors(rings.len() * (1 + earlier.len()));
        self.rings.append(&mut rings);
        Ok(())
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
