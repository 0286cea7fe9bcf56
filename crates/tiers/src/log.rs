//! The log: where small scattered pieces are written, one behind the other.
//!
//! A block that leaves near whole has a place of its own, and lies there as in memory. Pieces of it that leave alone would
//! each be a small write somewhere on the device, which is the slowest thing that one can ask of it. They go to the end of
//! the log instead: writes become sequential, and memory that is touched sparsely takes as much far space as was touched.
//!
//! A slot is written once and never again. A place of the log is free when its last live slot is dropped. While there is
//! space nothing is compacted, so under random rewriting the log can grow to about 7 times the data (ln 512 + 0.58, when all
//! is rewritten again and again); when there is no more, the pager's cleaner moves live slots together.

use crate::far::{Far, Place};
use crate::hash_map::{Map, soon};
use nearfar_core::addr::BLOCK_PAGES;
use nearfar_sys::errno::Errno;

/// The log lies in the first 16 TiB of a store, so that a slot's number has 32 bits.
const MOST_PLACES: u32 = u32::MAX / BLOCK_PAGES as u32;

/// A page of a place of the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot {
    /// The place.
    pub place: Place,
    /// Index of the page in it.
    pub page: u16,
}

/// Open and closed places of the log.
#[derive(Default)]
pub struct Log {
    open: Option<(Place, usize)>,
    live: Map<Place, u16>,
}

impl Log {
    /// True when `pages` slots can be had in the open place.
    pub fn has_room(&self, pages: usize) -> bool {
        self.open.is_some_and(|(_, next)| next + pages <= BLOCK_PAGES)
    }

    /// Bytes of the log's own table.
    pub fn metadata_bytes(&self) -> usize {
        self.live.capacity() * (size_of::<(Place, u16)>() + 1)
    }

    /// Bytes by which that table will soon grow at once.
    pub fn metadata_step(&self) -> usize {
        soon(self.live.len(), self.live.capacity()) * (size_of::<(Place, u16)>() + 1)
    }

    /// Slots left in the open place.
    pub fn room(&self) -> usize {
        self.open.map_or(0, |(_, next)| BLOCK_PAGES - next)
    }

    /// Takes `pages` slots in a row (at most a block of them); the first is returned. They count as live.
    pub fn append(&mut self, far: &mut Far, pages: usize) -> Result<Slot, Errno> {
        self.append_to(far, pages, Far::allocate)
    }

    /// As `append`, for the cleaner.
    pub fn append_saved(&mut self, far: &mut Far, pages: usize) -> Result<Slot, Errno> {
        self.append_to(far, pages, Far::allocate_kept)
    }

    /// Places that are full, with the number of live slots in each.
    pub fn closed(&self) -> impl Iterator<Item = (Place, usize)> + '_ {
        let open = self.open.map(|(place, _)| place);
        self.live.iter().map(|(&place, &live)| (place, live as usize)).filter(move |&(place, _)| Some(place) != open)
    }

    fn append_to(
        &mut self,
        far: &mut Far,
        pages: usize,
        allocate: impl Fn(&mut Far) -> Result<Place, Errno>,
    ) -> Result<Slot, Errno> {
        let (place, next) = match self.open {
            Some((place, next)) if next + pages <= BLOCK_PAGES => (place, next),
            _ => {
                let place = allocate(far)?;
                if place.index >= MOST_PLACES {
                    far.free(place);
                    return Err(Errno(libc::EFBIG));
                }
                self.close(far);
                self.live.insert(place, 0);
                (place, 0)
            }
        };
        self.open = Some((place, next + pages));
        *self.live.entry(place).or_insert(0) += pages as u16;
        Ok(Slot { place, page: next as u16 })
    }

    /// Ends the life of one slot.
    pub fn drop_slot(&mut self, far: &mut Far, slot: Slot) {
        let Some(live) = self.live.get_mut(&slot.place) else { return };
        *live -= 1;
        if *live == 0 && self.open.is_none_or(|(open, _)| open != slot.place) {
            self.live.remove(&slot.place);
            far.free(slot.place);
        }
    }

    /// Checks the counts of live slots against those that blocks have; returns the places of the log.
    pub fn check(&self, slots: &Map<Place, u16>) -> Result<Vec<Place>, String> {
        for (place, &live) in &self.live {
            let found = slots.get(place).copied().unwrap_or(0);
            let open = self.open.is_some_and(|(open, _)| open == *place);
            if live != found || (live == 0 && !open) {
                return Err(format!("{place:?} of the log has {live} live slots, blocks have {found} (open: {open})"));
            }
        }
        match slots.keys().find(|place| !self.live.contains_key(place)) {
            Some(place) => Err(format!("a block has a slot in {place:?}, which is not of the log")),
            None => Ok(self.live.keys().copied().collect()),
        }
    }

    /// Nothing is written to `place` any more.
    pub fn avoid(&mut self, far: &mut Far, place: Place) {
        if self.open.is_some_and(|(open, _)| open == place) {
            self.close(far);
        }
    }

    fn close(&mut self, far: &mut Far) {
        if let Some((place, _)) = self.open.take()
            && self.live.get(&place) == Some(&0)
        {
            self.live.remove(&place);
            far.free(place);
        }
    }

    /// In the child of a fork: what is in the log stays readable; the child's own begins anew.
    pub fn after_fork(&mut self) {
        if let Some((place, _)) = self.open.take()
            && self.live.get(&place) == Some(&0)
        {
            // The place is the parent's; nothing of this process is there.
            self.live.remove(&place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::far::tests::far;

    #[test]
    fn a_child_keeps_no_empty_place_of_its_parent() {
        let (mut far, mut log) = (far(8), Log::default());
        let slot = log.append(&mut far, 1).expect("space");
        log.drop_slot(&mut far, slot);
        assert_eq!(log.check(&Map::default()).map(|places| places.len()), Ok(1), "open, with nothing in it");
        log.after_fork();
        far.after_fork(None, None).expect("a store");
        assert_eq!(log.check(&Map::default()), Ok(vec![]));
        assert_eq!(far.used_bytes(), 0);
    }
}
