//! Amounts over time: a run cut into bins of equal length.

/// Bytes of a page.
pub const PAGE: u64 = 4096;
/// Most numbers of a timeline that people read.
pub const MOST_BINS: usize = 64;

/// Amounts per bin.
#[derive(Clone, Debug)]
pub struct Timeline {
    begin: f64,
    bin: f64,
    /// Amounts.
    pub bins: Vec<f64>,
}

/// Length of bins that people can read: 1, 2 or 5 times a power of ten, such that at most [`MOST_BINS`] cover `seconds`.
pub fn bin_seconds(seconds: f64) -> f64 {
    if !(seconds > 0.0 && seconds.is_finite()) {
        return 1.0;
    }
    let least = (seconds / MOST_BINS as f64).max(1e-9);
    let power = 10.0_f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|&bin| bin >= least).unwrap_or(least)
}

impl Timeline {
    /// `number` empty bins between two seconds.
    pub fn new(begin: f64, end: f64, number: usize) -> Self {
        let number = number.max(1);
        Self { begin, bin: ((end - begin) / number as f64).max(1e-9), bins: vec![0.0; number] }
    }

    /// Empty bins of `bin` seconds.
    pub fn with_bin(begin: f64, end: f64, bin: f64) -> Self {
        let number = ((end - begin) / bin - 1e-9).ceil().clamp(1.0, MOST_BINS as f64) as usize;
        Self { begin, bin, bins: vec![0.0; number] }
    }

    fn index(&self, at: f64) -> usize {
        // A cast of what is negative or not a number is 0.
        (((at - self.begin) / self.bin) as usize).min(self.bins.len() - 1)
    }

    /// Adds an amount, spread evenly over a time. What lies outside goes to the first or last bin.
    pub fn add(&mut self, from: f64, to: f64, amount: f64) {
        let (first, last) = (self.index(from), self.index(to));
        if first >= last || to <= from {
            self.bins[first] += amount;
            return;
        }
        for at in first..=last {
            let begin = if at == first { from } else { self.begin + at as f64 * self.bin };
            let end = if at == last { to } else { self.begin + (at + 1) as f64 * self.bin };
            self.bins[at] += amount * ((end - begin) / (to - from)).max(0.0);
        }
    }

    /// The highest level in each bin that `changes`, in order of time, lead to from 0.
    pub fn highest(begin: f64, end: f64, bin: f64, changes: &[(f64, i128)]) -> Self {
        let mut line = Self::with_bin(begin, end, bin);
        let (mut level, mut last) = (0i128, 0);
        for &(at, change) in changes {
            let here = line.index(at);
            // What ends with a bin is not in the next one.
            let until = if at > begin + here as f64 * bin { here + 1 } else { here };
            for most in &mut line.bins[last.min(until)..until] {
                *most = most.max(level as f64);
            }
            level += change;
            last = here;
        }
        line
    }

    /// Sums up to each bin.
    pub fn running(&self) -> Running {
        let mut sums = vec![0.0];
        let mut sum = 0.0;
        for amount in &self.bins {
            sum += amount;
            sums.push(sum);
        }
        Running { begin: self.begin, bin: self.bin, sums }
    }
}

/// Sums over time.
pub struct Running {
    begin: f64,
    bin: f64,
    sums: Vec<f64>,
}

impl Running {
    /// Amount up to a second, as if it were even within a bin.
    fn until(&self, at: f64) -> f64 {
        let last = self.sums.len() - 1;
        let place = ((at - self.begin) / self.bin).clamp(0.0, last as f64);
        let below = (place as usize).min(last);
        let next = self.sums.get(below + 1).unwrap_or(&self.sums[last]);
        self.sums[below] + (next - self.sums[below]) * (place - below as f64)
    }

    /// Amount between two seconds.
    pub fn between(&self, from: f64, to: f64) -> f64 {
        (self.until(to) - self.until(from)).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_round_and_few() {
        for (seconds, bin) in [(0.0, 1.0), (64.0, 1.0), (65.0, 2.0), (0.1, 0.002), (3600.0, 100.0), (f64::NAN, 1.0)] {
            assert!((bin_seconds(seconds) - bin).abs() < 1e-9 * bin, "{seconds}: {}", bin_seconds(seconds));
        }
    }

    #[test]
    fn the_highest_level_of_each_bin() {
        let changes = [(10.0, 5), (11.2, 100), (11.3, -100), (12.0, -5), (13.5, 7), (13.7, -7)];
        assert_eq!(Timeline::highest(10.0, 13.8, 1.0, &changes).bins, [5.0, 105.0, 0.0, 7.0]);
        assert_eq!(Timeline::highest(10.0, 14.0, 1.0, &[(10.5, 3), (14.0, -3)]).bins, [3.0; 4]);
    }

    #[test]
    fn amounts_are_spread_and_none_is_lost() {
        let mut line = Timeline::with_bin(10.0, 14.0, 1.0);
        line.add(10.5, 12.5, 4.0);
        line.add(13.0, 13.0, 1.0);
        line.add(99.0, 99.5, 1.0);
        assert_eq!(line.bins, [1.0, 2.0, 1.0, 2.0]);
        let sums = line.running();
        assert_eq!(sums.between(f64::NEG_INFINITY, f64::INFINITY), 6.0);
        assert_eq!(sums.between(10.5, 11.5), 1.5);
    }
}
