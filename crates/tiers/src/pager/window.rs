//! Recording (`nearfar run --trace`): the pager sees only faults, so most of near is kept out of the program's view, in limbo, and
//! what comes back is written down.
//!
//! A small window of chunks, first in, first out, is in view. The rest of near is limbo: coming back needs no I/O unless near
//! is full, but leaving view writes what was changed, as always, and a thread may wait for the window. Huge pages and prefetch
//! are left out: they would hide visits. Everything else is as without it: the same states, the same invariants.

use super::{Pager, evict::NotEvicted};
use crate::bits::Bits;
use crate::job::Job;
use crate::recorder::{Flusher, Recorder};
use nearfar_core::addr::{CHUNK_PAGES, Extent, PAGE, page_of};
use nearfar_core::policy::Found;
use nearfar_core::trace::Record;
use nearfar_sys::process;
use nearfar_sys::uffd::PageFault;

/// Victims tried in one round that turn out to be pinned, before giving up for now.
const PINNED_TRIES: u32 = 16;
/// More than so many windows in view: faults wait until what was changed is written.
const OVERRUN: u64 = 2;

impl Pager {
    /// The recorder that the settings ask for. Where the file cannot be opened (another user, another root directory) the
    /// process runs as without.
    pub(super) fn open_recorder(job: Job) -> Option<Recorder> {
        let settings = job.settings();
        if settings.trace_window == 0 {
            return None;
        }
        match Recorder::open(settings.trace()) {
            Ok(recorder) => Some(recorder),
            Err(errno) => {
                let text = format!("nearfar: process {}: its visits are not recorded ({errno})\n", process::pid());
                process::write_stderr(text.as_bytes());
                None
            }
        }
    }

    /// In the child of a fork: records of its own. What the parent had not written yet is the parent's to write.
    pub(super) fn renew_recorder(&mut self) {
        if self.recorder.is_some() {
            self.recorder = Self::open_recorder(self.job);
        }
    }

    /// What writes the records so far; to be used without the lock.
    pub fn flusher(&self) -> Option<Flusher> {
        self.recorder.as_ref().map(Recorder::flusher)
    }

    fn window_pages(&self) -> u64 {
        u64::from(self.job.settings().trace_window) * CHUNK_PAGES as u64
    }

    /// True when far is behind with writing what left view: letting more in would hide visits.
    pub(super) fn is_window_overrun(&self) -> bool {
        // Only while writes are under way, whose end lets the threads go on.
        self.recorder.is_some() && self.write_ops > 0 && self.evict.resident_pages() > OVERRUN * self.window_pages()
    }

    /// Takes what is beyond the window out of view.
    pub(super) fn keep_window(&mut self) {
        if self.recorder.is_none() {
            return;
        }
        let mut pinned = 0;
        while self.evict.resident_pages() > self.window_pages() && self.can_write_more() && pinned < PINNED_TRIES {
            let Some(unit) = self.evict.victim() else { return };
            match self.evict_unit(unit) {
                Ok(()) | Err(NotEvicted::Gone) => {}
                Err(NotEvicted::Pinned) => pinned += 1,
                // It is back in view; the program ends when a frame is wanting, not because of the window.
                Err(NotEvicted::FarFull(_)) => return,
            }
        }
    }

    pub(super) fn record_visit(&mut self, fault: PageFault, found: Found, now: u64) {
        if let Some(recorder) = &mut self.recorder {
            let page = page_of(fault.addr) as u64;
            recorder.push(Record::Visit { page, thread: fault.thread, write: fault.write, found, time_us: now / 1000 });
        }
    }

    /// The pages of `mask` in block `number` have left view.
    pub(super) fn record_out(&mut self, number: usize, mask: &Bits, changed: bool) {
        if let Some(recorder) = &mut self.recorder
            && let Some(first) = mask.iter().next()
        {
            let page = page_of(super::page_addr(number, first)) as u64;
            recorder.push(Record::Out { page, changed });
        }
    }

    pub(super) fn record_gone(&mut self, range: Extent) {
        if let Some(recorder) = &mut self.recorder {
            recorder.push(Record::Gone { page: page_of(range.start) as u64, pages: (range.len() / PAGE) as u64 });
        }
    }
}
