//! Memory that the program registers with a userfaultfd of its own: from then on it is ordinary memory, which counts as near.

use super::Memory;
use super::inner::{Inner, Released, committed_bytes};
use nearfar_core::addr::Extent;
use nearfar_core::stats::Counter;

/// Rounds of bringing what is not in view: it is pinned, so that one is enough, but for what was on its way out.
const ROUNDS: u32 = 100;

impl Memory {
    /// Lets the program have `range`. What cannot be released stays managed.
    pub fn release(&self, range: Extent) {
        let parts: Vec<Extent> = {
            let mut inner = self.enter();
            let parts = inner.regions().parts(range);
            parts.into_iter().map(|(part, _)| part).collect()
        };
        for part in parts {
            self.release_part(part);
        }
    }

    fn release_part(&self, part: Extent) {
        for _ in 0..ROUNDS {
            let hidden = match self.enter().try_release(part) {
                Some(hidden) => hidden,
                None => return,
            };
            for page in hidden {
                // SAFETY: a page of the program that has content; where it may not be read it could not have been shown either.
                unsafe { std::ptr::read_volatile(page as *const u8) };
            }
        }
        self.enter().notice(
            "memory that the program registers with its own userfaultfd could not all be brought to near; it stays paged",
        );
    }
}

impl Inner {
    /// Releases `part`, unless pages of it are to be brought first, which are returned.
    fn try_release(&mut self, part: Extent) -> Option<Vec<usize>> {
        let parts = self.regions().parts(part);
        let committed = committed_bytes(&parts);
        let pages = match &mut self.pager {
            // It stays charged as it is.
            None if self.mapped.is_none() => {
                self.regions().remove(part);
                0
            }
            None => return None,
            Some(pager) => {
                if parts.iter().any(|(_, attr)| attr.prot & libc::PROT_READ == 0) || !pager.keep_content(part) {
                    self.notice(&format!(
                        "the program registers {:#x}..{:#x} with its own userfaultfd: it stays paged, since near has no room \
                         for it or it cannot be read",
                        part.start, part.end
                    ));
                    return None;
                }
                let hidden = pager.out_of_view(part);
                if !hidden.is_empty() {
                    return Some(hidden);
                }
                let pages = pager.release(part).ok()?;
                self.note_placed(pages);
                pages
            }
        };
        self.slot.add(Counter::ReleasedBytes, part.len() as u64);
        self.released.push(Released { range: part, left: part.len(), pages, committed });
        None
    }

    /// The program has unmapped `range`: what was released of it does not count any more.
    pub(super) fn end_released(&mut self, range: Extent) {
        let (mut pages, mut committed) = (0, 0);
        self.released.retain_mut(|released| {
            released.left -= released.range.intersect(&range).map_or(0, |part| part.len()).min(released.left);
            if released.left == 0 {
                pages += released.pages;
                committed += released.committed;
            }
            released.left > 0
        });
        if pages > 0 {
            self.uncharge_placed(pages);
        }
        if committed > 0 {
            self.decommit(committed);
        }
    }
}
