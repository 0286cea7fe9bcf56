//! Deterministic pseudo-random numbers, cheap enough not to be what a workload or a sampler measures.
//!
//! Not for secrets.

/// Splitmix64's finaliser: every bit of `x` changes about half of the result.
#[inline]
pub const fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// 64 random bits as a number from 0 to below 1, with all 53 bits that it can have.
#[inline]
pub const fn unit(random: u64) -> f64 {
    (random >> 11) as f64 / (1u64 << 53) as f64
}

/// Scales 64 random bits to `0..limit` without a division; 0 when `limit` is 0.
#[inline]
pub const fn below(random: u64, limit: usize) -> usize {
    ((random as u128 * limit as u128) >> 64) as usize
}

/// Marsaglia's xorshift64, for states of one word; `state` must not be 0 and never becomes 0.
#[inline]
pub const fn xorshift(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Random numbers that a seed determines (splitmix64).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Numbers of `seed`.
    #[inline]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    #[inline]
    #[allow(clippy::should_implement_trait)] // Not an iterator: it never ends.
    pub const fn next(&mut self) -> u64 {
        let mixed = mix(self.0);
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed
    }

    /// Evenly from 0 to 1, neither included.
    pub fn unit(&mut self) -> f64 {
        ((self.next() >> 12) as f64 + 0.5) / (1_u64 << 52) as f64
    }

    /// From the exponential distribution with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -self.unit().ln()
    }

    /// Evenly in 0..`end`; 0 when `end` is 0.
    #[inline]
    pub const fn below(&mut self, end: u64) -> u64 {
        ((self.next() as u128 * end as u128) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_fill_the_range() {
        let mut random = Random::new(0);
        let mut seen = [0u32; 10];
        for _ in 0..10_000 {
            seen[below(random.next(), 10)] += 1;
        }
        assert!(seen.iter().all(|&n| (800..1200).contains(&n)), "{seen:?}");
        assert_eq!((Random::new(1).below(0), below(u64::MAX, 0)), (0, 0));
    }

    #[test]
    fn weights_have_mean_one() {
        let mut random = Random::new(0);
        let mean = (0..100_000).map(|_| random.exponential()).sum::<f64>() / 1e5;
        assert!((mean - 1.0).abs() < 0.02, "{mean}");
    }
}
