//! Random ranks by Zipf's law: rank r (from 0) comes in proportion to 1 / (r + 1)^theta, as requests for records do.
//!
//! The method is that of Gray et al. (SIGMOD 1994), which YCSB uses as well: constant time, exact for the first two ranks and close
//! for the rest. Ranks are not scattered here: neighbours in rank are neighbours in number.

/// The skew that YCSB uses.
pub const YCSB_THETA: f64 = 0.99;
/// Ranks whose shares are added up one by one; the rest by an integral (error below 1e-9).
const EXACT: u64 = 100_000;

/// The distribution over `0..ranks`.
#[derive(Clone, Copy, Debug)]
pub struct Zipf {
    ranks: u64,
    zeta: f64,
    second: f64,
    alpha: f64,
    eta: f64,
}

impl Zipf {
    /// `theta` between 0 and 1, both excluded; `ranks` of 0 is taken as 1.
    pub fn new(ranks: usize, theta: f64) -> Self {
        let ranks = (ranks as u64).max(1);
        let zeta = zeta(ranks, theta);
        let eta = (1.0 - (2.0 / ranks as f64).powf(1.0 - theta)) / (1.0 - zeta_of_two(theta) / zeta);
        Self { ranks, zeta, second: zeta_of_two(theta), alpha: 1.0 / (1.0 - theta), eta }
    }

    /// The rank that `random` (64 random bits) stands for.
    pub fn rank(&self, random: u64) -> usize {
        // 53 bits: what a float holds.
        let u = nearfar_core::random_numbers::unit(random);
        let share = u * self.zeta;
        if share < 1.0 || self.ranks == 1 {
            return 0;
        }
        if share < self.second || self.ranks == 2 {
            return 1;
        }
        let rank = self.ranks as f64 * (self.eta * u - self.eta + 1.0).powf(self.alpha);
        (rank as u64).min(self.ranks - 1) as usize
    }
}

fn zeta_of_two(theta: f64) -> f64 {
    1.0 + 0.5f64.powf(theta)
}

/// The sum of 1 / r^theta over the first `ranks` ranks.
fn zeta(ranks: u64, theta: f64) -> f64 {
    let exact = ranks.min(EXACT);
    let head: f64 = (1..=exact).map(|rank| (rank as f64).powf(-theta)).sum();
    let (a, b) = (exact as f64, ranks as f64);
    // Euler and Maclaurin's first terms: the sum from a + 1 to b.
    let tail = (b.powf(1.0 - theta) - a.powf(1.0 - theta)) / (1.0 - theta) + (b.powf(-theta) - a.powf(-theta)) / 2.0;
    head + tail
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearfar_core::random_numbers::Random;

    #[test]
    fn sums_are_right_beyond_the_exact_part() {
        let ranks = 3 * EXACT;
        let plain: f64 = (1..=ranks).map(|rank| (rank as f64).powf(-YCSB_THETA)).sum();
        assert!((zeta(ranks, YCSB_THETA) - plain).abs() < 1e-8);
    }

    #[test]
    fn the_first_ranks_come_as_often_as_they_should() {
        let (ranks, draws) = (100_000, 400_000);
        let zipf = Zipf::new(ranks, YCSB_THETA);
        let mut rng = Random::new(1);
        let mut counts = vec![0u32; ranks];
        (0..draws).for_each(|_| counts[zipf.rank(rng.next())] += 1);
        let share = |ranks: std::ops::Range<usize>| counts[ranks].iter().sum::<u32>() as f64 / draws as f64;
        let expected = |end: u64| zeta(end, YCSB_THETA) / zeta(ranks as u64, YCSB_THETA);
        assert!((share(0..1) - expected(1)).abs() < 0.005);
        assert!((share(0..1000) - expected(1000)).abs() < 0.02);
        assert!(share(ranks / 2..ranks) > 0.02);
    }

    #[test]
    fn tiny_distributions_stay_inside() {
        for ranks in 0..5 {
            let zipf = Zipf::new(ranks, YCSB_THETA);
            assert!([0, 1 << 62, u64::MAX].into_iter().all(|random| zipf.rank(random) < ranks.max(1)));
        }
    }
}
