//! Far space: 2 MiB places in the process's own store, secured ahead of need, and what forks still read.
//!
//! A place that a living fork may read is *frozen*: it is neither written nor given to anybody else until that child and
//! all its descendants are gone. Whether they are is told by a pipe whose other end they inherit: the kernel closes it
//! however they end, also at exec.
//!
//! A place where a write failed is *spoilt*: what it holds is read as long as it can be, but nothing is written there again.
//!
//! Invariant: a place with operations under way is never handed out again (`busy`, `dying`).

use crate::backend::{Backend, StoreId};
use nearfar_core::addr::BLOCK;
use nearfar_sys::errno::Errno;
use nearfar_sys::pipe;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// Where a block's far copy is: 2 MiB at `index * 2 MiB` of a store.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Place {
    /// The store.
    pub store: StoreId,
    /// Number of the place in it.
    pub index: u32,
}

impl Place {
    /// Byte offset of page `page` of the block.
    pub fn offset(self, page: usize) -> u64 {
        u64::from(self.index) * BLOCK as u64 + (page * nearfar_core::addr::PAGE) as u64
    }
}

/// Steps in which space is secured: from the first to the second, doubling.
const STEP: (u64, u64) = (64 << 20, 1 << 30);

/// Far space of this process.
pub struct Far {
    backend: Box<dyn Backend>,
    free: Vec<u32>,
    next: u32,
    secured: u64,
    used: u64,
    generation: u32,
    born: Vec<u32>,
    forks: Vec<(u32, OwnedFd)>,
    lineage: Vec<OwnedFd>,
    frozen_for_ever: u32,
    deferred: Vec<u32>,
    busy: HashMap<Place, u32>,
    dying: HashSet<Place>,
    spoilt: HashSet<Place>,
}

impl Far {
    /// Far space on `backend`; nothing is secured yet.
    pub fn new(backend: Box<dyn Backend>) -> Self {
        Self {
            backend,
            free: Vec::new(),
            next: 0,
            secured: 0,
            used: 0,
            generation: 1,
            born: Vec::new(),
            forks: Vec::new(),
            lineage: Vec::new(),
            frozen_for_ever: 0,
            deferred: Vec::new(),
            busy: HashMap::new(),
            dying: HashSet::new(),
            spoilt: HashSet::new(),
        }
    }

    /// The backend, for completions and descriptions.
    pub fn backend(&mut self) -> &mut dyn Backend {
        self.backend.as_mut()
    }

    /// Bytes in places that hold data.
    pub fn used_bytes(&self) -> u64 {
        self.used * BLOCK as u64
    }

    /// A place to write a block to. Fails when no space can be had.
    pub fn allocate(&mut self) -> Result<Place, Errno> {
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                let end = (u64::from(self.next) + 1) * BLOCK as u64;
                if end > self.secured {
                    self.secure_more(end)?;
                }
                self.next += 1;
                self.born.push(0);
                self.next - 1
            }
        };
        self.born[index as usize] = self.generation;
        self.used += 1;
        Ok(Place { store: self.backend.own(), index })
    }

    fn secure_more(&mut self, end: u64) -> Result<(), Errno> {
        // A step with headroom when the device has it, else as little as will do.
        let mut step = self.secured.clamp(STEP.0, STEP.1);
        loop {
            let to = end.max(self.secured + step);
            match self.backend.secure(self.secured, to) {
                Ok(()) => {
                    self.secured = to;
                    return Ok(());
                }
                Err(errno) if step <= BLOCK as u64 => return Err(errno),
                Err(_) => step = (step / 4).max(BLOCK as u64),
            }
        }
    }

    /// True when `place` must not be written: an ancestor's, one that a living fork may read, or a spoilt one.
    pub fn is_frozen(&self, place: Place) -> bool {
        place.store != self.backend.own() || self.is_read_by_forks(place.index) || self.is_spoilt(place)
    }

    /// True where a write failed.
    pub fn is_spoilt(&self, place: Place) -> bool {
        self.spoilt.contains(&place)
    }

    /// Says that a write to `place` failed.
    pub fn spoil(&mut self, place: Place) {
        self.spoilt.insert(place);
    }

    fn is_read_by_forks(&self, index: u32) -> bool {
        // Forks are in order of generation: the youngest sees the most.
        let youngest = self.forks.last().map_or(0, |&(generation, _)| generation);
        self.born[index as usize] <= youngest.max(self.frozen_for_ever)
    }

    /// Gives a place back, once nothing is under way there and no fork can read it.
    pub fn free(&mut self, place: Place) {
        if place.store != self.backend.own() {
            return;
        }
        if self.busy.contains_key(&place) {
            self.dying.insert(place);
            return;
        }
        self.used -= 1;
        if self.is_read_by_forks(place.index) {
            self.deferred.push(place.index);
        } else {
            self.reuse(place.index);
        }
    }

    fn reuse(&mut self, index: u32) {
        if self.is_spoilt(Place { store: self.backend.own(), index }) {
            return;
        }
        // Far space that was used once stays secured for the process; punching it would give away what was promised.
        self.free.push(index);
    }

    /// Starts a read or write at page `page` of `place`.
    pub fn submit(&mut self, token: u64, write: bool, place: Place, page: usize, pieces: Vec<nearfar_sys::io::Piece>) {
        *self.busy.entry(place).or_insert(0) += 1;
        self.backend.submit(token, write, place.store, place.offset(page), pieces);
    }

    /// Says that an operation of `submit` at `place` has ended.
    pub fn ended(&mut self, place: Place) {
        if let Some(count) = self.busy.get_mut(&place) {
            *count -= 1;
            if *count == 0 {
                self.busy.remove(&place);
                if self.dying.remove(&place) {
                    self.free(place);
                }
            }
        }
    }

    /// As `submit`, for an operation that has not ended: what is left of it is tried again.
    pub fn submit_again(&mut self, token: u64, write: bool, place: Place, page: usize, pieces: Vec<nearfar_sys::io::Piece>) {
        self.backend.submit(token, write, place.store, place.offset(page), pieces);
    }

    /// Reads or writes `piece` at page `page` of `place`, waiting for it.
    pub fn move_now(&mut self, write: bool, place: Place, page: usize, piece: nearfar_sys::io::Piece) -> Result<(), Errno> {
        self.backend.move_now(write, place.store, place.offset(page), piece)
    }

    /// Before a fork: the pipe ends for the parent and for the child.
    pub fn fork_pipe() -> Result<(OwnedFd, OwnedFd), Errno> {
        pipe::pipe()
    }

    /// In the parent after a fork: everything in far so far is frozen until `alive` hangs up.
    pub fn froze(&mut self, alive: OwnedFd) {
        self.forks.push((self.generation, alive));
        self.generation += 1;
    }

    /// As `froze`, when no pipe could be had: nobody will know when the fork is gone.
    pub fn froze_for_ever(&mut self) {
        self.frozen_for_ever = self.generation;
        self.generation += 1;
    }

    /// Descriptors that hang up when a fork is gone.
    pub fn fork_fds(&self) -> impl Iterator<Item = RawFd> + '_ {
        self.forks.iter().map(|(_, fd)| fd.as_raw_fd())
    }

    /// Thaws what only forks that are gone could read.
    pub fn reap_forks(&mut self) {
        let before = self.forks.len();
        self.forks.retain(|(_, fd)| !pipe::is_hung_up(fd));
        if self.forks.len() != before {
            for index in std::mem::take(&mut self.deferred) {
                if self.is_read_by_forks(index) {
                    self.deferred.push(index);
                } else {
                    self.reuse(index);
                }
            }
        }
    }

    /// In the child after a fork: a store of its own; all places so far belong to ancestors. `alive` is kept open for them.
    pub fn after_fork(&mut self, alive: Option<OwnedFd>) -> Result<(), Errno> {
        self.lineage.extend(alive);
        self.frozen_for_ever = 0;
        self.forks.clear();
        self.backend.after_fork()?;
        self.free.clear();
        self.born.clear();
        self.deferred.clear();
        self.busy.clear();
        self.dying.clear();
        (self.next, self.secured, self.used) = (0, 0, 0);
        Ok(())
    }

    /// Checks the books against the places that have an owner, and the operations under way at each place.
    pub fn check(
        &self,
        owned: impl Iterator<Item = Place>,
        under_way: &HashMap<Place, u32, impl BuildHasher>,
    ) -> Result<(), String> {
        let own = self.backend.own();
        let mut used: HashSet<u32> = HashSet::new();
        used.extend(owned.filter(|place| place.store == own).map(|place| place.index));
        for place in &self.dying {
            if !used.insert(place.index) || !self.busy.contains_key(place) {
                return Err(format!("{place:?} was given up, and is owned or idle"));
            }
        }
        if used.len() as u64 != self.used {
            return Err(format!("{} places are in use, counted {}", used.len(), self.used));
        }
        for &index in self.free.iter().chain(&self.deferred) {
            if !used.insert(index) || index >= self.next {
                return Err(format!("place {index} is free, and in use or free again"));
            }
        }
        if used.len() != self.next as usize || self.born.len() != self.next as usize {
            return Err(format!("{} of {} places are neither free nor in use", self.next as usize - used.len(), self.next));
        }
        let same = self.busy.len() == under_way.len() && self.busy.iter().all(|(place, ops)| under_way.get(place) == Some(ops));
        if same { Ok(()) } else { Err("the operations under way are not those that places know of".to_owned()) }
    }

    /// Descriptors that the program must not close.
    pub fn fds(&self) -> Vec<RawFd> {
        let mut fds = self.backend.fds();
        fds.extend(self.fork_fds());
        fds.extend(self.lineage.iter().map(AsRawFd::as_raw_fd));
        fds
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearfar_sys::io::{Done, Piece};

    /// A device that has so many bytes, and does nothing.
    struct Device {
        space: u64,
        own: StoreId,
    }

    impl Backend for Device {
        fn submit(&mut self, _: u64, _: bool, _: StoreId, _: u64, _: Vec<Piece>) {}
        fn flush(&mut self) {}
        fn completions(&mut self, _: &mut Vec<Done>) {}
        fn wait_fd(&self) -> RawFd {
            -1
        }
        fn secure(&mut self, _: u64, to: u64) -> Result<(), Errno> {
            if to <= self.space { Ok(()) } else { Err(Errno(libc::ENOSPC)) }
        }
        fn discard(&mut self, _: u64, _: u64) {}
        fn move_now(&mut self, _: bool, _: StoreId, _: u64, _: Piece) -> Result<(), Errno> {
            Ok(())
        }
        fn own(&self) -> StoreId {
            self.own
        }
        fn after_fork(&mut self) -> Result<(), Errno> {
            self.own += 1;
            Ok(())
        }
        fn describe(&self) -> String {
            "test".to_owned()
        }
        fn fds(&self) -> Vec<RawFd> {
            Vec::new()
        }
    }

    fn far(blocks: u64) -> Far {
        Far::new(Box::new(Device { space: blocks * BLOCK as u64, own: 0 }))
    }

    #[test]
    fn the_last_block_of_a_small_device_can_be_had() {
        let mut far = far(3);
        let places: Vec<_> = (0..3).map(|_| far.allocate().expect("space")).collect();
        assert_eq!(far.allocate(), Err(Errno(libc::ENOSPC)));
        far.free(places[1]);
        assert_eq!(far.allocate(), Ok(places[1]));
    }

    #[test]
    fn a_place_with_operations_under_way_is_not_handed_out() {
        let mut far = far(2);
        let place = far.allocate().expect("space");
        far.submit(1, true, place, 0, Vec::new());
        far.free(place);
        assert_ne!(far.allocate(), Ok(place));
        far.ended(place);
        assert_eq!(far.allocate(), Ok(place));
    }

    #[test]
    fn a_spoilt_place_is_neither_written_nor_handed_out() {
        let mut far = far(2);
        let place = far.allocate().expect("space");
        far.spoil(place);
        assert!(far.is_frozen(place));
        far.free(place);
        assert_ne!(far.allocate(), Ok(place));
        assert_eq!(far.allocate(), Err(Errno(libc::ENOSPC)));
    }

    #[test]
    fn what_a_living_fork_reads_is_frozen_until_it_is_gone() {
        let mut far = far(8);
        let (old, freed) = (far.allocate().expect("space"), far.allocate().expect("space"));
        let (reader, writer) = Far::fork_pipe().expect("pipe");
        far.froze(reader);
        let young = far.allocate().expect("space");
        assert!(far.is_frozen(old) && !far.is_frozen(young));
        far.free(freed);
        assert_ne!(far.allocate(), Ok(freed), "a fork may still read it");
        far.reap_forks();
        assert!(far.is_frozen(old));
        drop(writer);
        far.reap_forks();
        assert!(!far.is_frozen(old));
        assert_eq!(far.allocate(), Ok(freed));
    }

    #[test]
    fn a_child_never_writes_places_of_its_ancestors() {
        let mut far = far(8);
        let old = far.allocate().expect("space");
        far.after_fork(None).expect("store");
        assert!(far.is_frozen(old));
        far.free(old);
        let own = far.allocate().expect("space");
        assert_eq!((own.store, far.is_frozen(own)), (1, false));
        assert_eq!(far.used_bytes(), BLOCK as u64);
    }
}
