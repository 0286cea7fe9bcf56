//! Where the pages of a range are: near, far, or nowhere yet. Any memory of the process, managed or not; touches nothing, moves nothing.

use super::{Memory, inner::Inner};
use crate::block::PageState;
use nearfar_core::addr::{Extent, PAGE};
use nearfar_sys::pagemap;

/// Bytes of a range by where their pages are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Whereabouts {
    /// In near, in view of the program or held for it by the pager.
    pub near: u64,
    /// In far and nowhere else.
    pub far: u64,
    /// Nowhere: never touched, or given back.
    pub absent: u64,
    /// Not told: where the kernel pages, a page that is not in view may be anywhere.
    pub unknown: u64,
}

/// Pages asked about at a time, under the lock: a block's.
const BATCH: usize = 512;

impl Memory {
    /// Where the bytes of `range` are now.
    pub fn whereabouts(&self, range: Extent) -> Whereabouts {
        let mut found = Whereabouts::default();
        if Self::inside() {
            found.unknown = range.len() as u64;
            return found;
        }
        let mut page = range.start & !(PAGE - 1);
        while page < range.end {
            let count = (range.end - page).div_ceil(PAGE).min(BATCH);
            let batch = Extent::new(page, count * PAGE);
            let states = self.enter().states(batch);
            for (index, state) in states.iter().take(count).enumerate() {
                let start = page + index * PAGE;
                let bytes = ((start + PAGE).min(range.end) - start.max(range.start)) as u64;
                match state {
                    Some(PageState::Resident | PageState::Held) => found.near += bytes,
                    Some(PageState::Far) => found.far += bytes,
                    Some(PageState::Empty) => found.absent += bytes,
                    None => found.unknown += bytes,
                }
            }
            page = batch.end;
        }
        found
    }
}

impl Inner {
    /// The state of each page of `batch`; `None` where it cannot be told.
    fn states(&self, batch: Extent) -> [Option<PageState>; BATCH] {
        let mut exists = [false; BATCH];
        let count = batch.len() / PAGE;
        let known = pagemap::existing(batch, &mut exists[..count]).is_ok();
        let mut states = [None; BATCH];
        for (index, state) in states.iter_mut().take(count).enumerate() {
            let addr = batch.start + index * PAGE;
            let paged = self.pager.as_ref().and_then(|pager| pager.state_of(addr));
            let kernel_pages = self.mapped.is_some() && self.arena.whole().contains(addr);
            *state = paged.or(match (known, exists[index]) {
                (true, true) => Some(PageState::Resident),
                (true, false) if !kernel_pages => Some(PageState::Empty),
                _ => None,
            });
        }
        states
    }
}
