//! Brings the chunk of the page that is asked for, and nothing ahead: what a recorder of visits wants, who must see each one.

use crate::addr::CHUNK_PAGES;
use crate::policy::{Fault, Fetch, Prefetch, Room, Run, View};

/// No streams, no state.
#[derive(Clone, Copy, Debug, Default)]
pub struct ChunkFetch;

impl Prefetch for ChunkFetch {
    fn on_fault(&mut self, fault: &Fault, _: &Room, _: &dyn View) -> Fetch {
        let chunk = CHUNK_PAGES as u64;
        let run = Run { first: fault.page / chunk * chunk, count: CHUNK_PAGES as u32 };
        Fetch { run: Some(run), ..Fetch::default() }
    }

    fn on_wasted(&mut self, _: Run) {}

    fn name(&self) -> &'static str {
        "chunk"
    }
}
