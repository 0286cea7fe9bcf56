//! Thread-local arrays: where each thread has those of a module.
//!
//! The loader is not asked, nor is the thread, since either may be held by something that waits for us. What they have written is read: the
//! module's number, or the distance of its data from the thread's descriptor, where the module itself has it for its accesses; and the
//! table of blocks that the thread's descriptor points to. All of that is part of the ABI of x86-64, where glibc has not changed it.

use nearfar_core::addr::Extent;

/// The thread-local arrays of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Locals {
    way: Way,
    /// Symbol, and the range from the beginning of the module's thread-local data on; in order, without overlaps.
    pub arrays: Vec<(String, Extent)>,
}

/// How a thread's block is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The program is the first module with thread-local data.
    First,
    /// The module's number stands at this address.
    Number(u64),
    /// How far the symbol that lies `symbol` bytes into the block is from the descriptor stands at this address.
    Distance {
        /// Where it stands.
        at: u64,
        /// Which place in the block it is of.
        symbol: u64,
    },
}

/// The block of a thread with the thread-local data of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Where the data begin.
    pub start: u64,
    /// The block of the heap that holds them; 0: they lie beside the thread's stack.
    pub heap: u64,
}

/// Bytes of an entry of a thread's table.
const ENTRY: u64 = 16;
/// More modules are a mistake.
const MOST_MODULES: u64 = 1 << 20;

impl Locals {
    /// Of those ways that a module has, the one that needs the least.
    pub fn new(way: Way, arrays: Vec<(String, Extent)>) -> Self {
        Self { way, arrays }
    }

    /// Where the thread with that descriptor has its block; `None`: it has none yet, or it cannot be told. `read` reads a word.
    pub fn block(&self, descriptor: u64, read: &mut dyn FnMut(u64) -> Option<u64>) -> Option<Block> {
        let number = match self.way {
            Way::First => 1,
            Way::Number(at) => read(at)?,
            Way::Distance { at, symbol } => {
                // Below the descriptor; before the loader has filled it in it is not.
                let distance = read(at)? as i64;
                let start = descriptor.checked_add_signed(distance)?.checked_sub(symbol)?;
                return (distance < 0).then_some(Block { start, heap: 0 });
            }
        };
        let table = read(descriptor.checked_add(8)?)?;
        let entries = read(table.checked_sub(ENTRY)?)?;
        if number == 0 || number > entries.min(MOST_MODULES) {
            return None;
        }
        let entry = table.checked_add(number * ENTRY)?;
        let (start, heap) = (read(entry)?, read(entry + 8)?);
        // All bits set: not allocated yet.
        (start != 0 && start != u64::MAX).then_some(Block { start, heap })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn block(way: Way, words: &[(u64, u64)]) -> Option<Block> {
        let words: HashMap<u64, u64> = words.iter().copied().collect();
        Locals::new(way, Vec::new()).block(0x9000, &mut |addr| words.get(&addr).copied())
    }

    #[test]
    fn blocks_are_found_in_the_table_of_a_thread() {
        let table = [(0x9008, 0x5000), (0x4ff0, 14), (0x5010, 0x8000), (0x5018, 0), (0x5030, 0x7010), (0x5038, 0x7000)];
        assert_eq!(block(Way::First, &table), Some(Block { start: 0x8000, heap: 0 }));
        let numbered = |number: u64| block(Way::Number(0x100), &[&table[..], &[(0x100, number)]].concat());
        assert_eq!(numbered(3), Some(Block { start: 0x7010, heap: 0x7000 }));
        // Not filled in yet; not in the table; and beyond it.
        assert_eq!((numbered(0), numbered(2), numbered(15), numbered(u64::MAX)), (None, None, None, None));
        let empty = [(0x9008, 0x5000), (0x4ff0, 14), (0x5010, u64::MAX), (0x5018, 0)];
        assert_eq!((block(Way::First, &empty), block(Way::First, &[])), (None, None));
    }

    #[test]
    fn blocks_at_a_distance() {
        let way = Way::Distance { at: 0x100, symbol: 0x40 };
        assert_eq!(block(way, &[(0x100, (-0x1000_i64 + 0x40) as u64)]), Some(Block { start: 0x8000, heap: 0 }));
        assert_eq!((block(way, &[(0x100, 0)]), block(way, &[(0x100, 0x80)]), block(way, &[])), (None, None, None));
    }
}
