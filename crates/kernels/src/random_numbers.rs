//! Deterministic pseudo-random numbers, cheap enough not to be what a workload measures.
//!
//! Not for secrets.

/// Splitmix64's finaliser: every bit of `x` changes about half of the result.
pub const fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Marsaglia's xorshift generator with a multiplied output (xorshift64*).
#[derive(Clone, Debug)]
pub struct XorShift {
    state: u64,
}

impl XorShift {
    /// The generator of stream number `seed`; streams of different seeds start far apart.
    pub const fn new(seed: u64) -> Self {
        // `| 1`: xorshift stays at 0 for ever once there.
        Self { state: mix(seed) | 1 }
    }

    /// The next 64 bits.
    pub const fn next_u64(&mut self) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

/// Scales 64 random bits to `0..limit` without a division.
pub const fn below(random: u64, limit: usize) -> usize {
    ((random as u128 * limit as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_fill_the_range() {
        let mut rng = XorShift::new(0);
        let mut seen = [0u32; 10];
        for _ in 0..10_000 {
            seen[below(rng.next_u64(), 10)] += 1;
        }
        assert!(seen.iter().all(|&n| (800..1200).contains(&n)), "{seen:?}");
    }
}
