//! Whether the small pages of a block that has become complete are made one huge page. The kernel copies 2 MiB for that, which pays when
//! the block stays: a stream through a small cache would pay it for every block that it passes. How long merged blocks have
//! stayed tells.

/// A merged block that leaves sooner was not worth it.
const SOON_NS: u64 = 1_000_000_000;
/// So many may be lost before anything is known.
const FREE: u32 = 4;
/// Of those that are passed over, one in so many is merged all the same: what the program does changes.
const PROBE: u32 = 64;
/// Half of what is known is forgotten after so many.
const MEMORY: u32 = 64;

/// What became of merged blocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Merging {
    merged: u32,
    lost: u32,
    passed: u32,
}

impl Merging {
    /// Whether the next block is to be merged.
    pub fn wants(&mut self) -> bool {
        if 2 * self.lost <= self.merged + FREE {
            return true;
        }
        self.passed = (self.passed + 1) % PROBE;
        self.passed == 0
    }

    /// A block was merged.
    pub fn merged(&mut self) {
        self.merged += 1;
        if self.merged >= MEMORY {
            (self.merged, self.lost) = (self.merged / 2, self.lost / 2);
        }
    }

    /// A merged block leaves near after so many nanoseconds.
    pub fn left(&mut self, after_ns: u64) {
        self.lost = (self.lost + u32::from(after_ns < SOON_NS)).min(self.merged);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks that become complete and leave after `stay` more have; how many of `count` are merged.
    fn merges(merging: &mut Merging, count: usize, stay: usize, stay_ns: u64) -> usize {
        let mut inside = std::collections::VecDeque::new();
        (0..count)
            .filter(|_| {
                let wants = merging.wants();
                if wants {
                    merging.merged();
                }
                inside.push_back(wants);
                if inside.len() > stay && inside.pop_front() == Some(true) {
                    merging.left(stay_ns);
                }
                wants
            })
            .count()
    }

    #[test]
    fn blocks_that_stay_are_merged_and_streams_are_not() {
        assert_eq!(merges(&mut Merging::default(), 1000, 2000, 0), 1000, "none ever leaves");
        assert_eq!(merges(&mut Merging::default(), 1000, 12, 60_000_000_000), 1000, "they leave late");
        let streamed = merges(&mut Merging::default(), 1000, 12, 50_000_000);
        assert!(streamed < 60, "{streamed}");
    }

    #[test]
    fn a_program_that_changes_is_followed() {
        let mut merging = Merging::default();
        merges(&mut merging, 1000, 12, 50_000_000);
        merges(&mut merging, 6000, 12, 60_000_000_000);
        assert!(merges(&mut merging, 1000, 12, 60_000_000_000) > 900, "{merging:?}");
    }
}
