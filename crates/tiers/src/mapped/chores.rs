//! What a round of the keeper wants done without the lock: advice and waiting for the device. None of it changes content.

use nearfar_core::addr::BLOCK;
use nearfar_sys::errno::Errno;
use nearfar_sys::file::SpillFile;
use nearfar_sys::page_cache;
use std::sync::Arc;

/// Things to do with blocks of the file, each by its offset.
pub struct Chores {
    pub(super) file: Arc<SpillFile>,
    /// The file's pages are another file's (an overlay): only the calls that are handed on have an effect.
    pub(super) handed_on: bool,
    /// To be read ahead.
    pub(super) fetch: Vec<u64>,
    /// To be written, without waiting.
    pub(super) write: Vec<u64>,
    /// To be written, with waiting: the keeper is far behind.
    pub(super) wait: Vec<u64>,
    /// To be let go, as far as it is written.
    pub(super) drop: Vec<u64>,
    /// More is in memory than the process may have.
    pub crowded: bool,
    /// How long the keeper may rest afterwards, in ms.
    pub patience_ms: i32,
}

impl Chores {
    /// Does them. An error is one of writing: data may be lost.
    pub fn carry_out(&self) -> Result<(), Errno> {
        let (file, block) = (&*self.file, BLOCK as u64);
        self.fetch.iter().for_each(|&offset| page_cache::read_ahead(file, offset, block));
        if self.handed_on {
            self.write.iter().for_each(|&offset| page_cache::let_go(file, offset, block));
            if !self.drop.is_empty() {
                page_cache::write_all_out(file)?;
            }
        } else {
            for &offset in &self.write {
                page_cache::write_back(file, offset, block)?;
            }
            for &offset in &self.wait {
                page_cache::write_out(file, offset, block)?;
            }
        }
        self.drop.iter().for_each(|&offset| page_cache::let_go(file, offset, block));
        // A page whose write failed counts as written, and would be read as it was before: that must be known at once.
        page_cache::write_failed(file)
    }
}
