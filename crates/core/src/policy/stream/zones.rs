//! Which blocks a thread has worked through lately, in whatever order inside each: rows of a matrix read forwards while the rows
//! themselves are taken backwards, small records from the end of a table. Fixed size.

use super::BLOCK;

const ZONES: usize = 16;
/// Pages brought after which a block counts as worked through.
const DENSE: u32 = 256;
/// Pages brought after which the next block is believed to be worked through as well.
const BEGUN: u32 = 32;

#[derive(Clone, Copy, Debug, Default)]
struct Zone {
    block: u64,
    pages: u32,
    used: u64,
    told: bool,
}

/// The last blocks in which a thread had faults.
#[derive(Clone, Debug, Default)]
pub(super) struct Zones {
    zones: [Zone; ZONES],
}

impl Zones {
    /// A fault at `time` on `page` brought `pages`. When the two blocks before were worked through and this one is begun, says
    /// so, once: `Some(true)` when they were left downwards.
    pub fn note(&mut self, page: u64, pages: u32, time: u64) -> Option<bool> {
        let block = page / BLOCK;
        let same = self.zones.iter().position(|zone| zone.used > 0 && zone.block == block);
        let slot = same.unwrap_or_else(|| {
            let oldest = (0..ZONES).min_by_key(|&slot| self.zones[slot].used).unwrap_or(0);
            self.zones[oldest] = Zone { block, pages: 0, used: time, told: false };
            oldest
        });
        let zone = &mut self.zones[slot];
        zone.pages = zone.pages.saturating_add(pages);
        zone.used = time;
        if zone.told || zone.pages < BEGUN {
            return None;
        }
        let dense = |at: Option<u64>| self.zones.iter().any(|zone| Some(zone.block) == at && zone.pages >= DENSE);
        let down = match () {
            () if dense(block.checked_add(1)) && dense(block.checked_add(2)) => true,
            () if dense(block.checked_sub(1)) && dense(block.checked_sub(2)) => false,
            () => return None,
        };
        self.zones[slot].told = true;
        Some(down)
    }
}
