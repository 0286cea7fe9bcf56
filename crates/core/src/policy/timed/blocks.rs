//! Where the pages of a replayed program are.

use crate::addr::BLOCK_PAGES;
use crate::policy::{Run, View};
use std::collections::HashMap;

/// Where a page is.
#[derive(Clone, Copy, PartialEq)]
pub enum Page {
    /// Never written.
    Empty,
    /// In far only.
    Far,
    /// In near, and the program sees it.
    View,
    /// Brought ahead, by its number.
    Staged(u32),
    /// Out of view, not yet out of near; with the stamp of its entry in the list.
    Limbo(u64),
}

/// Pages beside each other, as many as a huge page has.
pub struct Block {
    /// Where they are.
    pub pages: [Page; BLOCK_PAGES],
    /// Far has something else.
    pub dirty: [bool; BLOCK_PAGES],
    /// It was visited since it came to near.
    pub used: [bool; BLOCK_PAGES],
    /// When what was asked for is there.
    pub ready: [f64; BLOCK_PAGES],
    /// It is evicted as one.
    pub whole: bool,
}

/// All that were visited.
#[derive(Default)]
pub struct Blocks(pub HashMap<u64, Box<Block>>);

impl Blocks {
    /// That of `page`.
    pub fn of(&mut self, page: u64) -> &mut Block {
        let none = [false; BLOCK_PAGES];
        let fresh = || {
            Box::new(Block {
                pages: [Page::Empty; BLOCK_PAGES],
                dirty: none,
                used: none,
                ready: [0.0; BLOCK_PAGES],
                whole: false,
            })
        };
        self.0.entry(page / BLOCK_PAGES as u64).or_insert_with(fresh)
    }
}

impl View for Blocks {
    fn in_far(&self, run: Run, down: bool) -> Option<Run> {
        let block = self.0.get(&(run.first / BLOCK_PAGES as u64))?;
        let base = run.first / BLOCK_PAGES as u64 * BLOCK_PAGES as u64;
        let start = (run.first - base) as usize;
        let range = start..(start + run.count as usize).min(BLOCK_PAGES);
        let far = |page: &usize| block.pages[*page] == Page::Far;
        if range.clone().all(|page| matches!(block.pages[page], Page::Far | Page::Empty)) {
            return range.clone().any(|page| far(&page)).then_some(run);
        }
        let (first, last) = match down {
            false => {
                let first = range.clone().find(far)?;
                (first, (first..range.end).take_while(far).last()?)
            }
            true => {
                let last = range.clone().rev().find(far)?;
                ((range.start..=last).rev().take_while(far).last()?, last)
            }
        };
        Some(Run { first: base + first as u64, count: (last - first + 1) as u32 })
    }
}

/// The place of `page` in its block.
pub fn index(page: u64) -> usize {
    page as usize % BLOCK_PAGES
}
