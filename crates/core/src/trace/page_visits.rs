//! From what a recorder saw that brought single pages (`run --trace FILE --grain 4K`) to visits of pages, for replay with times.

use super::Record;
use super::visits::{PROCESS_SHIFT, Summary, in_order};
use crate::addr::{BLOCK_PAGES, CHUNK_PAGES};
use crate::policy::Found;
use crate::policy::step::Step;
use std::collections::HashMap;

/// What the processes of the trace in `bytes` did, in order of time; `None` when it is no trace of this version. A first touch is a visit
/// that writes.
pub fn steps(bytes: &[u8]) -> Option<(Vec<Step>, Summary)> {
    let (records, summary) = in_order(bytes)?;
    let place = |process: usize, page: u64| {
        let blocks = (page / BLOCK_PAGES as u64) & ((1 << PROCESS_SHIFT) - 1);
        ((process as u64) << PROCESS_SHIFT | blocks) * BLOCK_PAGES as u64 + page % BLOCK_PAGES as u64
    };
    let mut steps = Vec::with_capacity(records.len());
    // Where the pages of a chunk that is in view were visited.
    let mut visible: HashMap<u64, Vec<usize>> = HashMap::new();
    for (process, record) in records {
        match record {
            Record::Visit { page, thread, write, found, .. } => {
                let page = place(process, page);
                visible.entry(page / CHUNK_PAGES as u64).or_default().push(steps.len());
                steps.push(Step::Visit { page, thread, write: write || found == Found::Zero });
            }
            Record::Out { page, changed } => {
                for at in visible.remove(&(place(process, page) / CHUNK_PAGES as u64)).unwrap_or_default() {
                    if let (true, Step::Visit { write, .. }) = (changed, &mut steps[at]) {
                        *write = true;
                    }
                }
            }
            Record::Gone { page, pages } => {
                let first = place(process, page);
                // Not into the next process.
                let pages = pages.min(place(process + 1, 0).saturating_sub(first));
                let range = first..first + pages;
                visible.retain(|chunk, _| !range.contains(&(chunk * CHUNK_PAGES as u64)));
                steps.push(Step::Gone { page: first, pages });
            }
        }
    }
    Some((steps, summary))
}
