//! Reads and writes of far that are under way: which holds take part in each, and what to do when it ends.
//!
//! Writes to the log are gathered: many small pieces that leave near one after the other lie one behind the other in the
//! log, and go there in one operation. Invariant: nothing is gathered when the lock is released (`send_gathered`), since a
//! place of the log is known to be in use only once its write is under way.

use super::Pager;
use crate::block::{Frames, HoldId, Phase};
use crate::far::Place;
use crate::hash_map::Map;
use crate::log::Slot;
use nearfar_core::addr::PAGE;
use nearfar_core::stats::Counter;
use nearfar_sys::event::now_ns;
use nearfar_sys::io::{Done, Piece};
use std::ops::Range;

/// Pages of one gathered write. More would delay the reads that threads wait for by more than such a read takes.
const GATHER: usize = 32;

/// An operation of far that has not ended.
pub(super) struct Transfer {
    /// Holds that take part, with their serials.
    holds: Vec<(HoldId, u64)>,
    place: Place,
    write: bool,
    pages: usize,
}

/// Operations under way, by token.
#[derive(Default)]
pub(super) struct Transfers {
    slots: Vec<Option<Transfer>>,
    free: Vec<usize>,
    /// The write to the log that is being put together.
    gathered: Option<(Transfer, Slot, Vec<Piece>)>,
}

impl Transfers {
    fn add(&mut self, transfer: Transfer) -> u64 {
        let token = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[token] = Some(transfer);
        token as u64
    }

    /// Operations in which a hold takes part, for checks.
    pub(super) fn ops_of(&self, id: HoldId, serial: u64) -> u32 {
        let under_way = self.slots.iter().flatten().chain(self.gathered.iter().map(|(transfer, ..)| transfer));
        under_way.map(|transfer| transfer.holds.iter().filter(|&&member| member == (id, serial)).count() as u32).sum()
    }

    /// Operations under way at each place, for checks.
    pub(super) fn places(&self) -> Map<Place, u32> {
        let mut places = Map::default();
        self.slots.iter().flatten().for_each(|transfer| *places.entry(transfer.place).or_insert(0) += 1);
        places
    }

    fn take(&mut self, token: u64) -> Option<Transfer> {
        let transfer = self.slots.get_mut(token as usize)?.take()?;
        self.free.push(token as usize);
        Some(transfer)
    }
}

fn pieces_of(frames: &Frames, pages: impl Iterator<Item = usize>, out: &mut Vec<Piece>) -> usize {
    let mut count = 0;
    for page in pages {
        count += 1;
        let addr = frames.addr(page);
        match out.last_mut() {
            Some(last) if last.addr + last.len == addr => last.len += PAGE,
            _ => out.push(Piece { addr, len: PAGE }),
        }
    }
    count
}

impl Pager {
    /// The hold takes part in one more operation, at `place`.
    fn takes_part(&mut self, id: HoldId, place: Place) -> (HoldId, u64) {
        let hold = self.hold(id);
        hold.ops += 1;
        hold.place = Some(place);
        (id, hold.serial)
    }

    /// Starts reading or writing pages `run` of a hold at page `at.1` of the place `at.0`.
    pub(super) fn submit(&mut self, id: HoldId, write: bool, at: (Place, usize), run: Range<usize>, frames: &Frames) {
        let mut pieces: Vec<Piece> = Vec::new();
        let pages = pieces_of(frames, run, &mut pieces);
        let holds = vec![self.takes_part(id, at.0)];
        self.begin(Transfer { holds, place: at.0, write, pages }, at.1, pieces);
    }

    /// Writes `pages` of a hold to the log from `slot` on, with others or at once.
    pub(super) fn gather(&mut self, id: HoldId, slot: Slot, pages: impl Iterator<Item = usize>, frames: &Frames) {
        let follows = |(transfer, first, _): &(Transfer, Slot, Vec<Piece>)| {
            transfer.pages < GATHER && first.place == slot.place && first.page as usize + transfer.pages == slot.page as usize
        };
        if !self.transfers.gathered.as_ref().is_some_and(follows) {
            self.send_gathered();
        }
        let member = self.takes_part(id, slot.place);
        let (transfer, _, pieces) = self.transfers.gathered.get_or_insert_with(|| {
            let transfer = Transfer { holds: Vec::new(), place: slot.place, write: true, pages: 0 };
            (transfer, slot, Vec::new())
        });
        transfer.holds.push(member);
        transfer.pages += pieces_of(frames, pages, pieces);
    }

    /// Starts the write that was put together.
    pub(super) fn send_gathered(&mut self) {
        if let Some((transfer, first, pieces)) = self.transfers.gathered.take() {
            self.begin(transfer, first.page as usize, pieces);
        }
    }

    fn begin(&mut self, transfer: Transfer, page: usize, pieces: Vec<Piece>) {
        let (write, place, bytes) = (transfer.write, transfer.place, (transfer.pages * PAGE) as u64);
        let (count, volume) = if write { (Counter::WriteOps, Counter::BytesOut) } else { (Counter::ReadOps, Counter::BytesIn) };
        self.count(count, 1);
        self.count(volume, bytes);
        self.meter.started(self.slot, self.ops);
        self.ops += 1;
        self.write_ops += u32::from(write);
        let token = self.transfers.add(transfer);
        self.far.submit(token, write, place, page, pieces);
    }

    /// Takes completions in. True when there were any.
    pub fn take_completions(&mut self) -> bool {
        let mut done: Vec<Done> = Vec::new();
        self.far.backend().completions(&mut done);
        let any = !done.is_empty();
        for one in done {
            let Some(transfer) = self.transfers.take(one.token) else {
                super::stop("internal error: an operation ended that nobody started; please report this")
            };
            self.far.ended(transfer.place);
            let now = now_ns();
            self.meter.ended(self.slot, self.ops, (transfer.pages * PAGE) as u64, now);
            self.ops -= 1;
            self.write_ops -= u32::from(transfer.write);
            for (id, serial) in transfer.holds {
                if !self.is_current(id, serial) {
                    super::stop("internal error: an operation outlived its hold; please report this");
                }
                self.hold(id).ops -= 1;
                match self.hold(id).phase {
                    Phase::Reading => self.read_ended(id, one.result),
                    Phase::Writing => self.write_ended(id, one.result),
                    Phase::Staged | Phase::Clean => {
                        super::stop("internal error: an operation outlived its hold; please report this")
                    }
                }
            }
        }
        any
    }
}
