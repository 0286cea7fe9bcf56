//! A pseudo-random permutation of `0..n` that needs no table, and its inverse.
//!
//! The pointer chase links slots into one random cycle. A shuffled index table would be memory that the workload does not mean to
//! touch (150 MB beside 2400 MB of cache lines), and linking in cycle order would write at random before the measurement begins.
//! With the inverse at hand each slot's successor is computed in address order.

use nearfar_core::random_numbers::mix;

/// A bijection of `0..len` chosen by a seed.
#[derive(Clone, Debug)]
pub struct Permutation {
    len: u64,
    mask: u64,
    shift: u32,
    multipliers: [u64; ROUNDS],
    inverses: [u64; ROUNDS],
}

const ROUNDS: usize = 3;

impl Permutation {
    /// The permutation of `0..len` number `seed`. `len` must be at least 1; 0 is taken as 1.
    pub fn new(len: usize, seed: u64) -> Self {
        let len = (len as u64).max(1);
        // At least 2 bits, so that the shift below is shorter than the word.
        let bits = (u64::BITS - (len - 1).leading_zeros()).max(2);
        let multipliers = std::array::from_fn(|round| mix(seed ^ mix(round as u64)) | 1);
        Self {
            len,
            mask: if bits == u64::BITS { u64::MAX } else { (1 << bits) - 1 },
            // Half the bits or more: then x ^= x >> shift undoes itself.
            shift: bits.div_ceil(2),
            multipliers,
            inverses: multipliers.map(odd_inverse),
        }
    }

    /// The image of `index`, which must be below `len`.
    pub fn apply(&self, index: usize) -> usize {
        let mut x = index as u64;
        // The rounds permute the next power of two; walking the cycle until it returns into 0..len keeps it a bijection.
        loop {
            for multiplier in self.multipliers {
                x = x.wrapping_mul(multiplier) & self.mask;
                x ^= x >> self.shift;
            }
            if x < self.len {
                return x as usize;
            }
        }
    }

    /// The index whose image is `image`, which must be below `len`.
    pub fn invert(&self, image: usize) -> usize {
        let mut x = image as u64;
        loop {
            for inverse in self.inverses.iter().rev() {
                x ^= x >> self.shift;
                x = x.wrapping_mul(*inverse) & self.mask;
            }
            if x < self.len {
                return x as usize;
            }
        }
    }
}

/// The inverse of odd `n` modulo 2^64, by Newton's iteration: each step doubles the right bits, from 3.
fn odd_inverse(n: u64) -> u64 {
    let mut inverse = n;
    for _ in 0..5 {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(n.wrapping_mul(inverse)));
    }
    inverse
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_a_bijection_with_its_inverse() {
        for len in [1, 2, 3, 7, 64, 1000, 4097] {
            let permutation = Permutation::new(len, 42);
            let mut seen = vec![false; len];
            for index in 0..len {
                let image = permutation.apply(index);
                assert!(!seen[image], "{len}: {image} twice");
                seen[image] = true;
                assert_eq!(permutation.invert(image), index);
            }
        }
    }

    #[test]
    fn neighbours_are_scattered() {
        let permutation = Permutation::new(1 << 16, 1);
        let near = (1..1 << 16).filter(|&i| permutation.apply(i).abs_diff(permutation.apply(i - 1)) < 64).count();
        assert!(near < 400, "{near} of 65536 neighbours stayed within 64");
    }
}
