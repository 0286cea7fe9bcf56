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
use crate::far_account::FarAccount;
use crate::job::Slot;
use crate::reserve::Reserve;
use nearfar_core::addr::BLOCK;
use nearfar_sys::errno::Errno;
use nearfar_sys::event::now_ns;
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

/// Places that only the cleaner may take: it writes what it saves from a few places before those are free.
pub const KEPT: u64 = 2;
/// Places that cannot be counted on to hold data: those kept, the open place of the log, and one being filled.
const MARGIN: u64 = KEPT + 2;
/// With one place in so many unused, the cleaner finds places that are worth it.
const LOOSE: u64 = 8;
/// The generation of a place that nobody uses: no fork can read it.
const UNUSED: u32 = u32::MAX;

/// Far space of this process.
pub struct Far {
    backend: Box<dyn Backend>,
    free: Vec<u32>,
    next: u32,
    reserve: Reserve,
    // Counted for the next child, which has it secured.
    of_child: u64,
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
    /// Far space on `backend`, counted in `account`; nothing is secured yet.
    pub fn new(backend: Box<dyn Backend>, account: FarAccount) -> Self {
        Self {
            backend,
            free: Vec::new(),
            next: 0,
            reserve: Reserve::new(0, account),
            of_child: 0,
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

    /// Bytes of data that space for `bytes` can hold, with so many places that cannot be used.
    fn usable_of(bytes: u64, unusable: u64) -> u64 {
        let places = (bytes / BLOCK as u64).saturating_sub(unusable + MARGIN);
        (places - places.div_ceil(LOOSE)) * BLOCK as u64
    }

    /// Bytes of data that could be held beyond those there are, if all that is free now could be had.
    pub fn holdable_bytes(&self) -> u64 {
        let all = self.reserve.secured().saturating_add(self.free_bytes());
        Self::usable_of(all, 0).saturating_sub(self.used_bytes())
    }

    /// Bytes in places that hold data.
    pub fn used_bytes(&self) -> u64 {
        self.used * BLOCK as u64
    }

    /// Bytes of the tables of places.
    pub fn metadata_bytes(&self) -> usize {
        (self.free.capacity() + self.born.capacity() + self.deferred.capacity()) * size_of::<u32>()
    }

    /// Bytes that this process has for sure, used or not.
    pub fn secured_bytes(&self) -> u64 {
        self.reserve.secured()
    }

    /// Places that are secured and free.
    pub fn spare_places(&self) -> u64 {
        self.reserve.secured() / BLOCK as u64 - u64::from(self.next) + self.free.len() as u64
    }

    /// Why no more space can be had; `None` while it can.
    pub fn short(&self) -> Option<Errno> {
        self.reserve.short()
    }

    /// Bytes that could be had beyond what is secured, as far as one can know.
    pub fn free_bytes(&self) -> u64 {
        self.reserve.free_bytes(self.backend.as_ref())
    }

    /// Keeps some space secured ahead of need. To be called often; never waits.
    pub fn keep_ahead(&mut self) {
        let spare = self.spare_places() * BLOCK as u64;
        self.reserve.keep_ahead(self.backend.as_mut(), spare, now_ns());
    }

    /// Steps of securing space, which can take a while, and the thread that takes them.
    pub fn reserve(&mut self) -> &mut Reserve {
        &mut self.reserve
    }

    /// Bytes of data that what is secured can hold, however they come to lie. Places that forks read may all be needed
    /// twice; and small pieces need some room to move.
    pub fn usable_bytes(&self) -> u64 {
        Self::usable_of(self.reserve.secured(), self.unusable_places())
    }

    fn places_for(bytes: u64) -> u64 {
        let places = bytes.div_ceil(BLOCK as u64);
        places + places.div_ceil(LOOSE - 1) + MARGIN
    }

    /// Secures space for `bytes` of data, however they come to lie, at once.
    pub fn hold(&mut self, bytes: u64) -> Result<(), Errno> {
        let places = Self::places_for(bytes) + self.unusable_places();
        self.reserve.secure_at_once(self.backend.as_mut(), places * BLOCK as u64, now_ns())
    }

    /// Before a fork: secures what parent and child need to write all of `bytes` anew, each for itself.
    pub fn hold_for_fork(&mut self, bytes: u64) -> Result<(), Errno> {
        let places = Self::places_for(bytes) + u64::from(self.next) - self.free.len() as u64 + self.spoilt.len() as u64;
        self.reserve.secure_at_once(self.backend.as_mut(), places * BLOCK as u64, now_ns())?;
        let of_child = Self::places_for(bytes) * BLOCK as u64;
        let (account, more) = (self.reserve.account(), of_child.saturating_sub(self.of_child));
        account.take(more)?;
        self.backend.prepare_child(of_child).inspect_err(|_| account.give(more))?;
        self.of_child += more;
        Ok(())
    }

    /// Places in which nothing can be written.
    fn unusable_places(&self) -> u64 {
        let mut count = self.spoilt.len() as u64;
        if !self.forks.is_empty() || self.frozen_for_ever > 0 {
            count += (0..self.next).filter(|&index| self.is_read_by_forks(index)).count() as u64;
        }
        count
    }

    /// A place to write a block to. Fails when no space can be had.
    pub fn allocate(&mut self) -> Result<Place, Errno> {
        self.allocate_beyond(KEPT)
    }

    /// A place for the cleaner.
    pub fn allocate_kept(&mut self) -> Result<Place, Errno> {
        self.allocate_beyond(0)
    }

    fn allocate_beyond(&mut self, kept: u64) -> Result<Place, Errno> {
        let lacking = (kept + 1).saturating_sub(self.spare_places());
        if lacking > 0 {
            let least = self.reserve.secured() + lacking * BLOCK as u64;
            self.reserve.secure_at_once(self.backend.as_mut(), least, now_ns())?;
        }
        let index = self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            self.born.push(UNUSED);
            self.next - 1
        });
        self.born[index as usize] = self.generation;
        self.used += 1;
        Ok(Place { store: self.backend.own(), index })
    }

    /// True when operations are under way at `place`.
    pub fn is_busy(&self, place: Place) -> bool {
        self.busy.contains_key(&place)
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
        self.born[index as usize] = UNUSED;
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

    /// Waits until no space is being secured.
    pub fn rest(&mut self) {
        self.reserve.rest(now_ns());
    }

    /// After a fork, in the parent: what was prepared for the child is its own. The child counts it itself, perhaps a moment later.
    pub fn forget_child(&mut self) {
        self.reserve.account().give(std::mem::take(&mut self.of_child));
        self.backend.forget_child();
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

    /// In the child after a fork, whose place in the job is `slot`: a store of its own; all places so far belong to ancestors. `alive` is
    /// kept open for them.
    pub fn after_fork(&mut self, slot: Option<&'static Slot>, alive: Option<OwnedFd>) -> Result<(), Errno> {
        self.lineage.extend(alive);
        self.frozen_for_ever = 0;
        self.forks.clear();
        let (secured, of_parent) = (self.backend.after_fork()?, self.reserve.account());
        self.reserve = Reserve::new(secured, slot.map_or(of_parent, |slot| of_parent.of_child(slot, secured)));
        self.of_child = 0;
        self.free.clear();
        self.born.clear();
        self.deferred.clear();
        self.busy.clear();
        self.dying.clear();
        (self.next, self.used) = (0, 0);
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
        if let Some(index) = self.free.iter().find(|&&index| self.is_spoilt(Place { store: own, index })) {
            return Err(format!("place {index} is spoilt, and free"));
        }
        // Spoilt ones that were given back are in no list.
        used.extend(self.spoilt.iter().filter(|place| place.store == own).map(|place| place.index));
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

impl Drop for Far {
    /// Paging could not start after all.
    fn drop(&mut self) {
        self.reserve.account().give(self.reserve.secured() + self.of_child);
    }
}

#[cfg(test)]
pub(crate) mod tests;
