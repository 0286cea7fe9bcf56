//! What was placed and what was not, for the summary.

use nearfar_core::units::Bytes;
use nearfar_kinds::memtier::Counters;
use std::fmt;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

/// Why an allocation of the window was not placed, or not for certain.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum NotPlaced {
    /// The nodes had less free memory: it went to ordinary memory.
    Full,
    /// The same, but the kind takes other nodes then: part of it may lie there.
    Spilled,
    /// The kind gave no block.
    Refused,
}

/// Allocations and their bytes.
struct Count {
    blocks: AtomicU64,
    bytes: AtomicU64,
}

impl Count {
    const fn new() -> Self {
        Self { blocks: AtomicU64::new(0), bytes: AtomicU64::new(0) }
    }

    fn add(&self, bytes: usize) {
        self.blocks.fetch_add(1, Relaxed);
        self.bytes.fetch_add(bytes as u64, Relaxed);
    }

    fn get(&self) -> (u64, u64) {
        (self.blocks.load(Relaxed), self.bytes.load(Relaxed))
    }

    fn forget(&self) {
        self.blocks.store(0, Relaxed);
        self.bytes.store(0, Relaxed);
    }
}

static MISSED: [Count; 3] = [const { Count::new() }; 3];
static COUNTERS: Counters<3> = Counters::new();
/// Bytes of placed blocks that are given out.
const LIVE: usize = 0;
/// Bytes that were ever asked for and placed, and how many blocks they were.
const BYTES: usize = 1;
const BLOCKS: usize = 2;
static PEAK: AtomicI64 = AtomicI64::new(0);

/// A block was asked for with `size` and placed with room for `usable` bytes. True when about 64 KiB have come together since the last
/// time that it was.
#[inline]
pub fn placed(size: usize, usable: usize) -> bool {
    let counters = COUNTERS.mine();
    counters.add(BLOCKS, 1);
    counters.add(BYTES, size as i64);
    let grew = counters.add(LIVE, usable as i64);
    let live = counters.about(LIVE);
    if live > PEAK.load(Relaxed) {
        PEAK.fetch_max(live, Relaxed);
    }
    grew
}

/// A placed block with room for `usable` bytes was given back.
#[inline]
pub fn freed(usable: usize) {
    COUNTERS.add(LIVE, -(usable as i64));
}

/// A block of `size` bytes was not placed.
pub fn missed(why: NotPlaced, size: usize) {
    MISSED[why as usize].add(size);
}

/// In the child of a fork: what was placed there is its own; what lies there already is of its parent.
pub fn forget() {
    COUNTERS.clear(BLOCKS);
    COUNTERS.clear(BYTES);
    MISSED.iter().for_each(Count::forget);
    PEAK.store(COUNTERS.exact(LIVE), Relaxed);
}

/// The summary's lines, without what names the process; `kind` and `sizes` say what was to be done.
pub fn summary(kind: &dyn fmt::Display, sizes: &dyn fmt::Display) -> Vec<String> {
    let count = |index| u64::try_from(COUNTERS.exact(index)).unwrap_or(0);
    let (blocks, bytes) = (count(BLOCKS), count(BYTES));
    let peak = Bytes(u64::try_from(PEAK.load(Relaxed)).unwrap_or(0));
    let mut lines =
        vec![format!("{} of {sizes} placed in {kind}: {} in all, at most {peak} at a time", allocations(blocks), Bytes(bytes))];
    for (why, text) in [
        (NotPlaced::Full, "not placed because the memory was full"),
        (NotPlaced::Refused, "not placed because the kind gave no block"),
        (NotPlaced::Spilled, "placed when the memory was full, so that part may lie elsewhere"),
    ] {
        let (blocks, bytes) = MISSED[why as usize].get();
        if blocks > 0 {
            lines.push(format!("{}, {}: {text}", allocations(blocks), Bytes(bytes)));
        }
    }
    lines
}

fn allocations(count: u64) -> String {
    format!("{count} allocation{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_names_what_was_placed_and_what_was_not() {
        placed(1000, 1024);
        placed(2000, 2048);
        freed(2048);
        placed(500, 768);
        missed(NotPlaced::Full, 1 << 20);
        let lines = summary(&"memkind_hbw (node 1)", &"at least 1M");
        assert_eq!(
            lines[0],
            "3 allocations of at least 1M placed in memkind_hbw (node 1): 3.4 KiB in all, at most 3.0 KiB at a time"
        );
        assert_eq!(lines[1], "1 allocation, 1.0 MiB: not placed because the memory was full");
        forget();
        let lines = summary(&"memkind_hbw (node 1)", &"at least 1M");
        assert_eq!(lines, ["0 allocations of at least 1M placed in memkind_hbw (node 1): 0 B in all, at most 1.8 KiB at a time"]);
    }
}
