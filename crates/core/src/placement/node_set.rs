//! A set of NUMA nodes as plain bits, fit for shared memory and for the kernel's node masks.

use std::fmt;

/// The kernel's own limit (CONFIG_NODES_SHIFT is at most 10).
pub const MAX_NODES: u32 = 1024;

/// NUMA nodes, by number.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct NodeSet {
    words: [u64; (MAX_NODES / 64) as usize],
}

impl NodeSet {
    /// No node.
    pub const EMPTY: Self = Self { words: [0; (MAX_NODES / 64) as usize] };

    /// Adds a node; numbers from [`MAX_NODES`] are ignored, no kernel has them.
    pub const fn insert(&mut self, node: u32) {
        if node < MAX_NODES {
            self.words[(node / 64) as usize] |= 1 << (node % 64);
        }
    }

    /// True when `node` is in the set.
    pub const fn contains(&self, node: u32) -> bool {
        node < MAX_NODES && self.words[(node / 64) as usize] & (1 << (node % 64)) != 0
    }

    /// True without nodes.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// How many nodes.
    pub fn len(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    /// The nodes, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..MAX_NODES).filter(|&node| self.contains(node))
    }

    /// The lowest node.
    pub fn first(&self) -> Option<u32> {
        self.iter().next()
    }

    /// As the kernel's node masks: bit `n` of the words is node `n`.
    pub const fn words(&self) -> &[u64; (MAX_NODES / 64) as usize] {
        &self.words
    }

    /// Nodes of both sets.
    pub fn and(&self, other: &Self) -> Self {
        self.iter().filter(|&node| other.contains(node)).collect()
    }
}

impl Default for NodeSet {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl FromIterator<u32> for NodeSet {
    fn from_iter<I: IntoIterator<Item = u32>>(nodes: I) -> Self {
        let mut set = Self::EMPTY;
        nodes.into_iter().for_each(|node| set.insert(node));
        set
    }
}

/// "0", "1,3", "4-7".
impl fmt::Display for NodeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut nodes = self.iter().peekable();
        let mut first = true;
        while let Some(low) = nodes.next() {
            let mut high = low;
            while let Some(next) = nodes.next_if_eq(&(high + 1)) {
                high = next;
            }
            let comma = if first { "" } else { "," };
            first = false;
            match high - low {
                0 => write!(f, "{comma}{low}")?,
                1 => write!(f, "{comma}{low},{high}")?,
                _ => write!(f, "{comma}{low}-{high}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Debug for NodeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodeSet({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_nodes() {
        let set: NodeSet = [7, 4, 5, 6, 0, 1, 1023, 4000].into_iter().collect();
        assert_eq!(set.to_string(), "0,1,4-7,1023");
        assert_eq!((set.len(), set.first(), set.contains(1023), set.contains(4000)), (7, Some(0), true, false));
        assert_eq!(set.words()[0], 0xf3);
        assert!(NodeSet::EMPTY.is_empty() && NodeSet::EMPTY.to_string().is_empty());
        assert_eq!(set.and(&[1, 2].into_iter().collect()).to_string(), "1");
    }
}
