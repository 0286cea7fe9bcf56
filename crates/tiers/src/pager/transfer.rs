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
use nearfar_core::addr::{BLOCK_PAGES, PAGE};
use nearfar_core::stats::Counter;
use nearfar_sys::event::now_ns;
use nearfar_sys::io::{Done, Piece, rest_of};
use std::ops::Range;

/// Pages of one gathered write. More would delay the reads that threads wait for by more than such a read takes.
const GATHER: usize = 32;

/// An operation of far that has not ended.
pub(super) struct Transfer {
    /// Holds that take part, with their serials.
    pub holds: Vec<(HoldId, u64)>,
    pub place: Place,
    /// The first page in the place.
    pub first: usize,
    pub write: bool,
    /// Pages in all.
    pub pages: usize,
    /// Memory of what has not moved yet.
    pub pieces: Vec<Piece>,
    // All of the memory, once a part has moved: a write that goes elsewhere begins anew.
    all: Option<Vec<Piece>>,
    /// How often it was tried again at its place.
    pub tries: usize,
    /// Places at which it was given up.
    pub places: u32,
    /// When it began.
    pub since_ns: u64,
}

impl Transfer {
    /// A transfer of all of `pieces`, for nobody yet.
    pub fn new(write: bool, place: Place, first: usize, pieces: Vec<Piece>) -> Self {
        let pages = pieces.iter().map(|piece| piece.len).sum::<usize>() / PAGE;
        Self { holds: Vec::new(), place, first, write, pages, pieces, all: None, tries: 0, places: 0, since_ns: 0 }
    }

    /// Bytes that have not moved yet.
    pub fn left(&self) -> usize {
        self.pieces.iter().map(|piece| piece.len).sum()
    }

    /// The page of the place at which what has not moved begins.
    pub fn next_page(&self) -> usize {
        self.first + self.pages - self.left() / PAGE
    }

    /// The first `bytes` of what was left have moved.
    pub fn advance(&mut self, bytes: usize) {
        let rest = rest_of(&self.pieces, bytes);
        let before = std::mem::replace(&mut self.pieces, rest);
        self.all.get_or_insert(before);
    }

    /// Begins anew, at another place.
    pub fn move_to(&mut self, place: Place, first: usize) {
        (self.place, self.first, self.tries, self.places) = (place, first, 0, self.places + 1);
        if let Some(all) = self.all.take() {
            self.pieces = all;
        }
    }
}

/// Operations under way, by token.
#[derive(Default)]
pub(super) struct Transfers {
    slots: Vec<Option<Transfer>>,
    free: Vec<usize>,
    // Moments at which to try again, and tokens. The transfers stay in `slots`: they are under way for everybody else.
    postponed: Vec<(u64, u64)>,
    /// The write to the log that is being put together.
    gathered: Option<Transfer>,
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
        self.under_way()
            .chain(&self.gathered)
            .map(|transfer| transfer.holds.iter().filter(|&&member| member == (id, serial)).count() as u32)
            .sum()
    }

    /// Operations under way at each place, for checks.
    pub(super) fn places(&self) -> Map<Place, u32> {
        let mut places = Map::default();
        self.under_way().for_each(|transfer| *places.entry(transfer.place).or_insert(0) += 1);
        places
    }

    fn take(&mut self, token: u64) -> Option<Transfer> {
        self.slots.get_mut(token as usize)?.take()
    }

    /// Says that the operation of `token`, which was taken, has ended.
    fn end(&mut self, token: u64) {
        self.free.push(token as usize);
    }

    /// Goes on with a transfer that was taken.
    pub fn put_back(&mut self, token: u64, transfer: Transfer) {
        self.slots[token as usize] = Some(transfer);
    }

    /// Keeps a transfer that was taken until `due_ns`.
    pub fn postpone(&mut self, token: u64, transfer: Transfer, due_ns: u64) {
        self.put_back(token, transfer);
        self.postponed.push((due_ns, token));
    }

    /// True when some are to be tried again later.
    pub fn are_postponed(&self) -> bool {
        !self.postponed.is_empty()
    }

    /// One whose time has come.
    pub fn take_due(&mut self, now_ns: u64) -> Option<(u64, Transfer)> {
        let at = self.postponed.iter().position(|&(due, _)| due <= now_ns)?;
        let (_, token) = self.postponed.swap_remove(at);
        self.take(token).map(|transfer| (token, transfer))
    }

    /// All that have not ended.
    pub fn under_way(&self) -> impl Iterator<Item = &Transfer> {
        self.slots.iter().flatten()
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
        pieces_of(frames, run, &mut pieces);
        let mut transfer = Transfer::new(write, at.0, at.1, pieces);
        transfer.holds.push(self.takes_part(id, at.0));
        self.begin(transfer);
    }

    /// Writes `pages` of a hold to the log from `slot` on, with others or at once.
    pub(super) fn gather(&mut self, id: HoldId, slot: Slot, pages: impl Iterator<Item = usize>, frames: &Frames) {
        let follows = |transfer: &Transfer| {
            transfer.pages < GATHER && transfer.place == slot.place && transfer.first + transfer.pages == slot.page as usize
        };
        if !self.transfers.gathered.as_ref().is_some_and(follows) {
            self.send_gathered();
        }
        let member = self.takes_part(id, slot.place);
        let empty = || Transfer::new(true, slot.place, slot.page as usize, Vec::new());
        let transfer = self.transfers.gathered.get_or_insert_with(empty);
        transfer.holds.push(member);
        transfer.pages += pieces_of(frames, pages, &mut transfer.pieces);
    }

    /// Starts the write that was put together.
    pub(super) fn send_gathered(&mut self) {
        if let Some(transfer) = self.transfers.gathered.take() {
            self.begin(transfer);
        }
    }

    fn begin(&mut self, mut transfer: Transfer) {
        let (page, pieces) = (transfer.first, transfer.pieces.clone());
        let (write, place, bytes) = (transfer.write, transfer.place, (transfer.pages * PAGE) as u64);
        let (count, volume) = if write { (Counter::WriteOps, Counter::BytesOut) } else { (Counter::ReadOps, Counter::BytesIn) };
        self.count(count, 1);
        self.count(volume, bytes);
        self.meter.started(self.slot, self.ops);
        self.ops += 1;
        self.write_ops += u32::from(write);
        transfer.since_ns = now_ns();
        let token = self.transfers.add(transfer);
        self.far.submit(token, write, place, page, pieces);
    }

    /// Starts the next prefetches in place of those that have ended, when these are a block or more, before what they brought is
    /// looked at: far would have nothing to do meanwhile.
    fn replace_ended(&mut self, done: &[Done]) {
        let ahead = |id: HoldId| matches!(&self.holds[id], Some(hold) if hold.phase == Phase::Reading && hold.prefetch);
        let read = |one: &Done| match self.transfers.slots.get(one.token as usize) {
            Some(Some(transfer)) if transfer.holds.iter().all(|&(id, _)| ahead(id)) => transfer.pages,
            _ => 0,
        };
        self.arriving = done.iter().map(read).sum();
        if self.arriving >= BLOCK_PAGES && !self.resting && self.starved.is_empty() {
            self.grant_wishes();
            self.far.backend().flush();
        }
        self.arriving = 0;
    }

    /// Takes completions in. True when there were any.
    pub fn take_completions(&mut self) -> bool {
        let mut done: Vec<Done> = Vec::new();
        let again = self.try_again();
        self.far.backend().completions(&mut done);
        let any = again || !done.is_empty();
        self.replace_ended(&done);
        for one in done {
            let Some(transfer) = self.transfers.take(one.token) else {
                super::stop("internal error: an operation ended that nobody started; please report this")
            };
            let Some(transfer) = self.settle(one.token, transfer, one.result) else { continue };
            self.transfers.end(one.token);
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
                    Phase::Reading => self.read_ended(id),
                    Phase::Writing => self.write_ended(id),
                    Phase::Staged | Phase::Clean => {
                        super::stop("internal error: an operation outlived its hold; please report this")
                    }
                }
            }
        }
        any
    }
}
