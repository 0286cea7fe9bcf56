//! Small objects found by key through a hash table, index and objects in one piece of memory: what caches and databases keep.
//!
//! The index is open addressing over one word per bucket, half of them empty; objects of 64 to 256 bytes follow it in the order of
//! their arrival. Invariants: the last word of an object is the sum of the others, so every read is checked; the digest of the whole
//! memory is kept while it changes, without reading, so that a wrong byte anywhere shows at the end.

use crate::timed_run::{digest, weight};
use nearfar_core::random_numbers::{below, mix};

/// Words of the smallest object, and sizes above it.
const LEAST: usize = 8;
const SIZES: usize = 25;
/// Words per object on average, two buckets of the index included.
const PER_OBJECT: usize = LEAST + (SIZES - 1) / 2 + 2;

/// A table over borrowed memory.
#[derive(Debug)]
pub struct ObjectStore<'a> {
    memory: &'a mut [u64],
    /// Place of the memory in the whole, so that digests of parts add up.
    first: usize,
    buckets: usize,
    objects: usize,
    digest: u64,
    wrong: u64,
}

/// The key of object number `number`.
const fn key_of(number: usize) -> u64 {
    mix(number as u64 ^ 0x0bec_0000_0000_0000)
}

/// Words of the object with this key: key, values, sum.
fn words_of(key: u64) -> usize {
    LEAST + below(mix(key), SIZES)
}

impl<'a> ObjectStore<'a> {
    /// Fills zeroed `memory`, which begins at word `first` of the whole, with as many objects as it holds.
    pub fn build(memory: &'a mut [u64], first: usize) -> Self {
        let buckets = memory.len() / PER_OBJECT * 2;
        let mut store = Self { memory, first, buckets, objects: 0, digest: 0, wrong: 0 };
        let mut end = buckets;
        while store.objects + 1 < buckets {
            let key = key_of(store.objects);
            let words = words_of(key);
            if end + words > store.memory.len() {
                break;
            }
            let mut bucket = store.home(key);
            while store.memory[bucket] != 0 {
                bucket = store.next(bucket);
            }
            store.set(bucket, end as u64);
            store.set(end, key);
            let mut sum = key;
            for place in end + 1..end + words - 1 {
                let value = mix(key ^ place as u64);
                sum = sum.wrapping_add(value);
                store.set(place, value);
            }
            store.set(end + words - 1, sum);
            end += words;
            store.objects += 1;
        }
        store
    }

    /// Objects held.
    pub const fn objects(&self) -> usize {
        self.objects
    }

    /// Words found wrong so far, or keys not found.
    pub const fn wrong(&self) -> u64 {
        self.wrong
    }

    /// Reads object `number` whole and checks it; returns its bytes.
    pub fn read(&mut self, number: usize) -> u64 {
        let key = key_of(number);
        let Some(start) = self.find(key) else { return 0 };
        let words = words_of(key);
        let Some(object) = self.memory.get(start..start + words) else {
            self.wrong += 1;
            return 0;
        };
        let sum = object[..words - 1].iter().fold(0u64, |sum, value| sum.wrapping_add(*value));
        self.wrong += u64::from(sum != object[words - 1]);
        (words * size_of::<u64>()) as u64
    }

    /// Adds `random` to one value of object `number`; returns the bytes read and written, the key's comparison included.
    pub fn update(&mut self, number: usize, random: u64) -> u64 {
        let key = key_of(number);
        let Some(start) = self.find(key) else { return 0 };
        let last = start + words_of(key) - 1;
        let place = start + 1 + below(mix(random), last - start - 1);
        if last >= self.memory.len() {
            self.wrong += 1;
            return 0;
        }
        for changed in [place, last] {
            self.memory[changed] = self.memory[changed].wrapping_add(random);
            self.digest = self.digest.wrapping_add(random.wrapping_mul(weight(self.first + changed)));
        }
        5 * size_of::<u64>() as u64
    }

    /// Reads everything: the digest, and whether it is the expected one.
    pub fn verify(&self) -> (u64, bool) {
        let digest = digest(self.first, self.memory.iter().copied());
        (digest, digest == self.digest)
    }

    fn home(&self, key: u64) -> usize {
        below(mix(key ^ 0x5ca1_ab1e), self.buckets)
    }

    fn next(&self, bucket: usize) -> usize {
        if bucket + 1 == self.buckets { 0 } else { bucket + 1 }
    }

    /// Where the object with `key` begins. A key that is not found is an error: all that are asked for were stored.
    fn find(&mut self, key: u64) -> Option<usize> {
        let mut bucket = self.home(key);
        for _ in 0..self.buckets {
            let start = self.memory[bucket] as usize;
            if start == 0 {
                break;
            }
            // A wrong word of the index may point anywhere.
            if self.memory.get(start) == Some(&key) {
                return Some(start);
            }
            bucket = self.next(bucket);
        }
        self.wrong += 1;
        None
    }

    fn set(&mut self, place: usize, value: u64) {
        self.memory[place] = value;
        self.digest = self.digest.wrapping_add(value.wrapping_mul(weight(self.first + place)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_object_is_found_and_checked() {
        let mut memory = vec![0u64; 100_000];
        let mut store = ObjectStore::build(&mut memory, 7);
        assert!(store.objects() > 4300, "{}", store.objects());
        for number in 0..store.objects() {
            assert!((64..=256).contains(&store.read(number)));
            store.update(number, mix(number as u64));
            store.read(number);
        }
        assert_eq!((store.wrong(), store.verify().1), (0, true));
        assert_eq!(store.read(1 << 40), 0);
        assert_eq!(store.wrong(), 1);
    }

    #[test]
    fn a_wrong_byte_is_told() {
        let mut memory = vec![0u64; 10_000];
        let mut store = ObjectStore::build(&mut memory, 0);
        let start = store.find(key_of(5)).expect("stored");
        store.memory[start + 3] ^= 1;
        (0..store.objects()).for_each(|number| {
            store.read(number);
        });
        assert_eq!((store.wrong(), store.verify().1), (1, false));
    }

    #[test]
    fn too_little_memory_is_no_fault() {
        for words in [0, 1, 21, 22, 60] {
            let mut memory = vec![0u64; words];
            assert!(ObjectStore::build(&mut memory, 0).verify().1);
        }
    }
}
