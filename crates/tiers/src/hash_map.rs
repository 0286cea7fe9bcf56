//! Hash maps keyed by block numbers and the like: std's map with a multiplicative hash, since the keys are ours.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map with a fast hash for small integer keys.
pub type Map<K, V> = HashMap<K, V, BuildHasherDefault<Multiply>>;

/// Fibonacci hashing (Knuth, TAOCP 6.4): one multiplication, and the high bits folded down.
#[derive(Default)]
pub struct Multiply(u64);

impl Hasher for Multiply {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(u64::from(byte)));
    }

    fn write_u64(&mut self, word: u64) {
        let mixed = (self.0 ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = mixed ^ mixed >> 29;
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }
}

/// Entries that a table of `len` entries will get at once when it is full, if that is soon.
pub fn soon(len: usize, capacity: usize) -> usize {
    if len * 4 > capacity * 3 { capacity } else { 0 }
}
