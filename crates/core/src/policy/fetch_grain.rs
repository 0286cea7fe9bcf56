//! The simplest rule: brings the aligned piece around the page that is asked for, always of the same size, and nothing ahead. No streams,
//! no state. The measure of everything cleverer (`--grain`), and what a recorder of visits wants, who must see each one.

use crate::addr::{BLOCK, BLOCK_PAGES, CHUNK_PAGES, PAGE};
use crate::error::{Error, SIZE};
use crate::policy::{Fault, Fetch, Found, Prefetch, Room, Run, View};
use crate::units::Bytes;
use std::fmt;
use std::str::FromStr;

/// A piece is at most this share of near, so that small budgets are not swept out by one.
const NEAR_SHARE: u64 = 16;
/// Fresh memory comes in whole blocks while at least this share of near is free: that costs no transfer.
const FREE_SHARE: u64 = 8;

/// How much is brought around a page that is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grain {
    /// Learned from the program.
    #[default]
    Auto,
    /// Always so many pages: a power of two up to a block.
    Pages(u32),
}

impl Grain {
    /// As a plain number: pages, 0 for [`Grain::Auto`].
    pub const fn number(self) -> u32 {
        match self {
            Self::Auto => 0,
            Self::Pages(pages) => pages,
        }
    }

    /// The grain of that number.
    pub const fn of_number(number: u32) -> Self {
        if number == 0 { Self::Auto } else { Self::Pages(number) }
    }
}

impl FromStr for Grain {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        let known = |bytes: &u64| bytes.is_power_of_two() && (PAGE as u64..=BLOCK as u64).contains(bytes);
        let bytes = text.parse::<Bytes>().ok().map(|bytes| bytes.0).filter(known);
        let bytes = bytes.ok_or_else(|| SIZE.refuse(text, "write auto, or a power of two from 4K to 2M"))?;
        Ok(Self::Pages((bytes / PAGE as u64) as u32))
    }
}

impl fmt::Display for Grain {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => formatter.write_str("auto"),
            Self::Pages(pages) => formatter.write_str(&Bytes(u64::from(*pages) * PAGE as u64).exact()),
        }
    }
}

/// Brings so many pages (a power of two up to a block) around each that is asked for.
#[derive(Clone, Copy, Debug)]
pub struct GrainFetch {
    pages: u64,
    /// Of fresh memory too.
    exact: bool,
}

impl GrainFetch {
    /// `pages` is rounded down to a power of two from 1 to a block.
    pub fn new(pages: u32) -> Self {
        Self { pages: 1 << pages.clamp(1, BLOCK_PAGES as u32).ilog2(), exact: false }
    }

    /// For a recorder: fresh memory too comes in such pieces only.
    pub fn exact(pages: u32) -> Self {
        Self { exact: true, ..Self::new(pages) }
    }
}

impl Prefetch for GrainFetch {
    fn on_fault(&mut self, fault: &Fault, room: &Room, _: &dyn View) -> Fetch {
        let most = 1 << (room.near_pages / NEAR_SHARE).clamp(1, BLOCK_PAGES as u64).ilog2();
        let pages = match fault.found {
            _ if self.exact => self.pages,
            Found::Zero if room.free_pages >= (room.near_pages / FREE_SHARE).max(1) => most,
            Found::Zero => self.pages.max(CHUNK_PAGES as u64).min(most),
            _ => self.pages.min(most),
        };
        let run = Run { first: fault.page / pages * pages, count: pages as u32 };
        Fetch { run: Some(run), ..Fetch::default() }
    }

    fn on_wasted(&mut self, _: Run) {}

    fn name(&self) -> &'static str {
        "grain"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Room =
        Room { near_pages: 1 << 14, free_pages: 0, data_pages: 1 << 16, staging_pages: 0, staged_pages: 0, far_bytes_per_s: 0 };

    fn brought(pages: u32, page: u64, found: Found, room: &Room) -> (u64, u32) {
        let fault = Fault { page, thread: 1, found, write: false, now_ns: 0 };
        let fetch = GrainFetch::new(pages).on_fault(&fault, room, &());
        assert!(fetch.ahead.is_empty() && fetch.show.is_empty());
        fetch.run.map_or((0, 0), |run| (run.first, run.count))
    }

    #[test]
    fn the_aligned_piece_comes() {
        assert_eq!(brought(1, 1029, Found::Far, &ROOM), (1029, 1));
        assert_eq!(brought(64, 1029, Found::Far, &ROOM), (1024, 64));
        assert_eq!(brought(512, 1029, Found::Limbo, &ROOM), (1024, 512));
        assert_eq!(brought(512, 1029, Found::Far, &Room { near_pages: 1024, ..ROOM }), (1024, 64));
    }

    #[test]
    fn fresh_memory_comes_in_blocks_while_there_is_room() {
        assert_eq!(brought(1, 1029, Found::Zero, &Room { free_pages: 1 << 13, ..ROOM }), (1024, 512));
        assert_eq!(brought(1, 1029, Found::Zero, &ROOM), (1024, 16));
    }

    #[test]
    fn grains_that_people_write() {
        for (text, grain) in
            [("auto", Grain::Auto), ("4K", Grain::Pages(1)), ("256k", Grain::Pages(64)), ("2M", Grain::Pages(512))]
        {
            assert_eq!(text.parse(), Ok(grain));
            assert_eq!(grain.to_string().parse(), Ok(grain));
            assert_eq!(Grain::of_number(grain.number()), grain);
        }
        for text in ["", "3K", "12K", "4M", "1K", "all", "5%"] {
            assert!(text.parse::<Grain>().is_err(), "{text}");
        }
    }
}
