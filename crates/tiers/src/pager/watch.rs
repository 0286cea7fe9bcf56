//! Tells what a thread waits for that has waited long: for the watchdog, which asks now and then.

use super::{Pager, page_index};
use crate::block::{PageState, Phase};
use nearfar_core::addr::{PAGE, block_of};
use nearfar_sys::event::now_ns;

/// A thread that has waited long.
pub struct Stuck {
    /// Since when.
    pub since_ns: u64,
    /// The page.
    pub addr: usize,
    /// Its number.
    pub thread: u32,
}

impl Pager {
    /// The thread that has waited longest for a page, if that is since before `before_ns`.
    pub fn stuck(&self, before_ns: u64) -> Option<Stuck> {
        let oldest = self.waits.iter().min_by_key(|wait| wait.since_ns)?;
        (oldest.since_ns <= before_ns).then_some(Stuck { since_ns: oldest.since_ns, addr: oldest.addr, thread: oldest.thread })
    }

    /// What the page at `addr` needs, and what the pager is at, in words.
    pub fn explain(&mut self, addr: usize) -> String {
        let (number, page) = (block_of(addr), page_index(addr));
        let what = match self.blocks.get(&number).map(|block| block.state[page]) {
            Some(PageState::Held) => self.explain_hold(number, page),
            _ if self.starved.iter().any(|starved| starved.fault.addr == addr) => {
                let full = "it needs a free frame, and far has no space for what is in near: if other processes give nothing back, \
                            this one will be stopped";
                if self.waits_for_far { full } else { "it needs a free frame" }.to_owned()
            }
            Some(PageState::Far) => "its read from far has not begun".to_owned(),
            _ => "the pager has not got to it yet".to_owned(),
        };
        let (huge, single) = self.frames.free_pages();
        format!(
            "{what}. {} reads and {} writes of far are under way, {} threads wait, {} of them for a frame; {} pages are free, \
             {} in limbo ({} of them being written), {} staged; {} prefetches are queued",
            self.ops - self.write_ops,
            self.write_ops,
            self.waits.len(),
            self.starved.len(),
            huge + single,
            self.limbo_pages,
            self.writing_pages,
            self.staged_pages,
            self.wishes.len(),
        )
    }

    fn explain_hold(&mut self, number: usize, page: usize) -> String {
        let Some(id) = self.holder(number, page) else { return "nobody holds it".to_owned() };
        let phase = self.hold(id).phase;
        let mine = self.transfers.under_way().filter(|transfer| transfer.holds.iter().any(|&(of, _)| of == id));
        let Some(oldest) = mine.min_by_key(|transfer| transfer.since_ns) else {
            return match phase {
                Phase::Clean | Phase::Staged => "it is in near already".to_owned(),
                Phase::Reading | Phase::Writing => "its transfer has not begun".to_owned(),
            };
        };
        let (place, first, pages) = (oldest.place, oldest.next_page(), oldest.left() / PAGE);
        let (write, tries, since_ns) = (oldest.write, oldest.tries, oldest.since_ns);
        let at = self.far_text(Some((place, first)));
        let again = if tries > 0 { format!(", tried again {tries} times") } else { String::new() };
        format!(
            "{at} a {} of {} bytes has been under way for {:.1} s{again}",
            if write { "write" } else { "read" },
            pages * PAGE,
            (now_ns() - since_ns) as f64 / 1e9
        )
    }
}
