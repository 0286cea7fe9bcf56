//! When far fails: what can be tried again is, and what cannot stops the program, saying where and why.
//!
//! A read or write that fails is tried a few times, with pauses; then a write goes to the log, at another place, and the
//! place where it failed is written no more. Bytes that do not match their hash are read again. All this is counted, and
//! said once. Operations that are tried again stay under way for everybody else.

use super::transfer::Transfer;
use super::{Pager, page_addr, stop};
use crate::far::Place;
use crate::frame_bytes;
use crate::log::Slot;
use nearfar_core::addr::PAGE;
use nearfar_core::stats::Counter;
use nearfar_sys::errno::Errno;
use nearfar_sys::event::now_ns;
use nearfar_sys::io::Piece;
use nearfar_sys::process;
use std::time::Duration;

/// Pauses before an operation is tried again at its place: most of what passes at all passes at once, and a controller or a
/// path that is reset takes a moment.
const PAUSES_NS: [u64; 3] = [0, 10_000_000, 100_000_000];
/// How often bytes that do not match their hash are read again.
pub(super) const REREADS: u8 = 2;
/// Places at which a write is tried.
const PLACES: u32 = 3;

/// A page as direct I/O wants it.
#[derive(Clone)]
#[repr(align(4096))]
struct Aligned(#[expect(dead_code, reason = "the kernel writes and reads it")] [u8; PAGE]);

impl Pager {
    /// Takes the end of an operation of far in. Returns the transfer when all of it has moved, and otherwise goes on with it.
    pub(super) fn settle(&mut self, token: u64, mut transfer: Transfer, result: Result<usize, Errno>) -> Option<Transfer> {
        let left = transfer.left();
        let failed = match result {
            Ok(bytes) if bytes >= left => return Some(transfer),
            // Whole pages, as direct I/O wants it; of a page that has moved in part nothing has.
            Ok(bytes) if bytes >= PAGE => {
                transfer.advance(bytes / PAGE * PAGE);
                // It moves: what failed before did not fail here.
                transfer.tries = 0;
                self.go_on(token, transfer);
                return None;
            }
            // The end of the file where there should be more, or less than a page.
            Ok(_) => Errno(libc::EIO),
            Err(errno) => errno,
        };
        self.tells_of(&transfer, failed);
        if let Some(&pause) = PAUSES_NS.get(transfer.tries) {
            transfer.tries += 1;
            match pause {
                0 => self.go_on(token, transfer),
                _ => self.transfers.postpone(token, transfer, now_ns() + pause),
            }
        } else if transfer.write && transfer.places + 1 < PLACES {
            self.write_elsewhere(token, transfer, failed);
        } else {
            self.stop_io(&transfer, failed);
        }
        None
    }

    /// Starts what is left of a transfer that has not ended.
    fn go_on(&mut self, token: u64, transfer: Transfer) {
        let (write, place, page, pieces) = (transfer.write, transfer.place, transfer.next_page(), transfer.pieces.clone());
        self.transfers.put_back(token, transfer);
        self.far.submit_again(token, write, place, page, pieces);
    }

    /// Starts again what was to wait until now. True when there was any.
    pub(super) fn try_again(&mut self) -> bool {
        let mut any = false;
        while let Some((token, transfer)) = self.transfers.take_due(now_ns()) {
            any = true;
            self.go_on(token, transfer);
        }
        any
    }

    /// Sends a write to the log that cannot be done where it was to go.
    fn write_elsewhere(&mut self, token: u64, mut transfer: Transfer, failed: Errno) {
        // What is gathered may lie in the place that is given up.
        self.send_gathered();
        let old = transfer.place;
        self.far.spoil(old);
        self.log.avoid(&mut self.far, old);
        let Ok(slot) = self.log.append(&mut self.far, transfer.pages) else { self.stop_io(&transfer, failed) };
        let was_at = transfer.first..transfer.first + transfer.pages;
        let mut used = vec![false; transfer.pages];
        for &(id, _) in &transfer.holds {
            let hold = self.hold(id);
            let (number, wanted) = (hold.block, hold.writing.iter().filter(|&page| hold.mask.get(page) && !hold.zeros.get(page)));
            for page in wanted.collect::<Vec<_>>() {
                let Some((_, at)) = self.block(number).far_at(page).filter(|(place, at)| *place == old && was_at.contains(at))
                else {
                    continue;
                };
                let index = at - was_at.start;
                used[index] = true;
                let new = Slot { place: slot.place, page: slot.page + index as u16 };
                if let Some(before) = self.with_tables(number, |block| block.set_log_slot(page, Some(new))) {
                    self.log.drop_slot(&mut self.far, before);
                }
            }
        }
        transfer.move_to(slot.place, slot.page as usize);
        let pieces = transfer.pieces.clone();
        self.transfers.put_back(token, transfer);
        self.far.submit(token, true, slot.place, slot.page as usize, pieces);
        self.far.ended(old);
        // Pages that the program gave up meanwhile, and zeros between others, need no slot.
        for index in (0..used.len()).filter(|&index| !used[index]) {
            self.log.drop_slot(&mut self.far, Slot { place: slot.place, page: slot.page + index as u16 });
        }
    }

    /// Copies the far copies of `pages` (block and page) one behind the other to page `first` of `to`, waiting for it. They are
    /// checked on the way, lest an error is written back as the truth.
    pub(super) fn copy_far(&mut self, pages: &[(usize, usize)], to: Place, first: usize) {
        // On our own heap, which has a reserve: there may be no room for another mapping.
        let mut bounce = vec![Aligned([0; PAGE]); pages.len()];
        let start = bounce.as_mut_ptr().expose_provenance();
        let mut done = 0;
        while done < pages.len() {
            // As far as they lie one behind the other.
            let place_of = |pager: &mut Self, index: usize| {
                let Some(at) = pager.block(pages[index].0).far_at(pages[index].1) else {
                    stop("internal error: a page is in far at no place; please report this")
                };
                at
            };
            let (from, at) = place_of(self, done);
            let count = (done + 1..pages.len()).take_while(|&next| place_of(self, next) == (from, at + next - done)).count() + 1;
            self.read_checked(&pages[done..done + count], (from, at), start + done * PAGE);
            done += count;
        }
        self.move_now(true, to, first, Piece { addr: start, len: pages.len() * PAGE });
        drop(bounce);
    }

    /// Reads pages that lie one behind the other at `at` to `addr`, and checks them.
    fn read_checked(&mut self, pages: &[(usize, usize)], (from, at): (Place, usize), addr: usize) {
        let piece = Piece { addr, len: pages.len() * PAGE };
        for again in 0..=REREADS {
            self.move_now(false, from, at, piece);
            let found = |index: usize| {
                // SAFETY: memory of our own that the read has filled.
                unsafe { frame_bytes::page_hash(addr + index * PAGE) }
            };
            let wrong = pages.iter().enumerate().find_map(|(index, &(number, page))| {
                let expected = self.block(number).differs(page, found(index))?;
                Some((index, number, page, expected))
            });
            let Some((index, number, page, expected)) = wrong else { return };
            let at = Some((from, at + index));
            if again == REREADS {
                self.stop_corrupt(number, page, at, expected, found(index));
            }
            self.note_trouble(|pager| format!("{} a read returned different bytes from those written", pager.far_text(at)));
        }
    }

    fn move_now(&mut self, write: bool, place: Place, page: usize, piece: Piece) {
        let mut pauses = PAUSES_NS.iter();
        while let Err(errno) = self.far.move_now(write, place, page, piece) {
            let transfer = Transfer::new(write, place, page, vec![piece]);
            self.tells_of(&transfer, errno);
            match pauses.next() {
                Some(&pause) => std::thread::sleep(Duration::from_nanos(pause)),
                None => self.stop_io(&transfer, errno),
            }
        }
    }

    /// Counts something that went wrong and is tried again; the first is told.
    pub(super) fn note_trouble(&mut self, what: impl FnOnce(&mut Self) -> String) {
        self.count(Counter::FarRetries, 1);
        if !self.told_trouble {
            self.told_trouble = true;
            let text = what(self);
            let text = format!(
                "nearfar: process {}: {text}; it is tried again (reported once; far_retries in --stats counts all)\n",
                process::pid()
            );
            process::write_stderr(text.as_bytes());
        }
    }

    fn tells_of(&mut self, transfer: &Transfer, errno: Errno) {
        let (write, at) = (transfer.write, Some((transfer.place, transfer.next_page())));
        self.note_trouble(|pager| format!("{} a {} failed: {errno}", pager.far_text(at), if write { "write" } else { "read" }));
    }

    /// Where in far, in words.
    pub(super) fn far_text(&mut self, at: Option<(Place, usize)>) -> String {
        let what = self.far.backend().describe();
        match at {
            Some((place, page)) => format!("in the spill file {} of {what}, at offset {},", place.store, place.offset(page)),
            None => format!("in {what}"),
        }
    }

    fn stop_io(&mut self, transfer: &Transfer, errno: Errno) -> ! {
        let at = self.far_text(Some((transfer.place, transfer.next_page())));
        let what = if transfer.write { "write" } else { "read" };
        let where_else = if transfer.places > 0 { ", and as often at other offsets before" } else { "" };
        let times = PAUSES_NS.len() + 1;
        stop(&format!("{at} a {what} of {} bytes failed {times} times{where_else}: {errno}", transfer.left()))
    }

    /// Ends the program because of a page that came back wrong each time.
    pub(super) fn stop_corrupt(
        &mut self,
        number: usize,
        page: usize,
        at: Option<(Place, usize)>,
        expected: u64,
        found: u64,
    ) -> ! {
        let place = self.far_text(at);
        stop(&format!(
            "{place} 4096 bytes came back different from what was written, {} times (page {:#x} of the program; checksum {found:016x}, \
             should be {expected:016x}): the device is failing, or somebody has written to the file",
            REREADS + 1,
            page_addr(number, page)
        ))
    }
}
