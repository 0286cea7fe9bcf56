//! The profiled run on more threads than it had: how computing and traffic grow.
//!
//! From one profile, what ran in parallel is taken to be divided among all threads, what one thread did alone stays as it was, and the
//! traffic stays the same: an extrapolation, whose doubt grows with each doubling. From profiles with several numbers of threads both are
//! fitted: computing as `alone + divided / threads` (Amdahl 1967), traffic as `shared + own x threads`, by least squares without negative
//! parts.

use serde::Serialize;

/// Nine in ten programs are taken to compute within this factor of what is extrapolated, for each doubling of threads.
const DOUBT: f64 = 1.10;
/// The same beyond the profile with most threads, where several were fitted.
const FITTED_DOUBT: f64 = 1.05;

/// How the predicted run is wider than the profiled one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Scaling {
    /// Threads that the profiled run computed with.
    pub profiled: f64,
    /// Threads of the predicted run, of one rank.
    pub threads: f64,
    /// Cores for these threads: more threads do not compute more. Infinite: not known.
    pub cores: f64,
    /// What the profiled ranks are of all that share the machine.
    pub part: f64,
    /// Factors on computing and on traffic that several profiles gave; `None`: one profile, extrapolated.
    pub fitted: Option<Fitted>,
    /// How long a core takes to compute what one of the profile's machine takes a second for.
    pub core: f64,
    /// Nine in ten programs are taken to be within this factor of what is said of computing.
    pub doubt: f64,
}

/// Several profiles, fitted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Fitted {
    /// Computing with all threads over that of the profile.
    pub computing: f64,
    /// Traffic with all threads over that of the profile.
    pub traffic: f64,
    /// Share of the computing of one thread that is not divided.
    pub alone: f64,
}

/// What one profile says of a number of threads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Threads.
    pub threads: f64,
    /// Seconds of computing.
    pub computing: f64,
    /// Bytes from and to memory.
    pub traffic: f64,
}

impl Default for Scaling {
    /// As it was.
    fn default() -> Self {
        Self { profiled: 1.0, threads: 1.0, cores: f64::INFINITY, part: 1.0, fitted: None, core: 1.0, doubt: 1.0 }
    }
}

/// `a + b x` through (x, y) by least squares, neither negative.
fn line(points: impl Iterator<Item = (f64, f64)> + Clone) -> (f64, f64) {
    let count = points.clone().count().max(1) as f64;
    let mean = |of: fn((f64, f64)) -> f64| points.clone().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let across: f64 = points.clone().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let wide: f64 = points.clone().map(|point| (point.0 - x).powi(2)).sum();
    let b = if wide > 0.0 { across / wide } else { 0.0 };
    let a = y - b * x;
    if b < 0.0 {
        return (y, 0.0);
    }
    if a < 0.0 {
        let squares: f64 = points.clone().map(|point| point.0 * point.0).sum();
        return (0.0, points.map(|point| point.0 * point.1).sum::<f64>() / squares.max(f64::MIN_POSITIVE));
    }
    (a, b)
}

impl Scaling {
    /// A run with `profiled` threads on `threads`, extrapolated.
    pub fn extrapolated(profiled: f64, threads: f64) -> Self {
        let doublings = (threads / profiled).log2().abs();
        Self { profiled, threads, doubt: DOUBT.powf(doublings), ..Self::default() }
    }

    /// The run of `base` on `threads` threads, by what profiles of the same work say; extrapolated where all have as many threads.
    pub fn fitted(base: Sample, others: &[Sample], threads: f64) -> Self {
        let one = Self::extrapolated(base.threads, threads);
        let all = || std::iter::once(&base).chain(others).filter(|sample| sample.threads >= 1.0);
        let most = all().map(|sample| sample.threads).fold(1.0, f64::max);
        let least = all().map(|sample| sample.threads).fold(most, f64::min);
        if most <= least || base.computing <= 0.0 {
            return one;
        }
        let (alone, divided) = line(all().map(|sample| (1.0 / sample.threads, sample.computing)));
        let (shared, own) = line(all().map(|sample| (sample.threads, sample.traffic)));
        let computing = |threads: f64| alone + divided / threads;
        let off = all().map(|sample| (computing(sample.threads) / sample.computing.max(1e-9)).ln().abs()).fold(0.0, f64::max);
        let traffic = if base.traffic > 0.0 { (shared + own * threads) / (shared + own * base.threads) } else { 1.0 };
        let fitted = Fitted {
            computing: computing(threads) / computing(base.threads),
            traffic,
            alone: alone / (alone + divided).max(f64::MIN_POSITIVE),
        };
        let beyond = (threads / most).max(least / threads).max(1.0).log2();
        Self { fitted: Some(fitted), doubt: FITTED_DOUBT.powf(beyond) * off.exp(), ..one }
    }

    /// Whether nothing differs from the profiled run.
    pub fn is_same(&self) -> bool {
        self.threads == self.profiled && self.core == 1.0 && self.part == 1.0 && self.fitted.is_none()
    }

    /// Factor on the computing of a stretch in which so many CPUs were busy on average.
    pub fn computing(&self, busy: f64) -> f64 {
        let by_threads = match self.fitted {
            Some(fitted) => fitted.computing,
            None => {
                let alone = self.alone(busy);
                alone + (1.0 - alone) * self.profiled / self.threads.min(self.cores.max(self.profiled))
            }
        };
        by_threads * self.core
    }

    /// Factor on the traffic.
    pub fn traffic(&self) -> f64 {
        self.fitted.map_or(1.0, |fitted| fitted.traffic)
    }

    /// Threads that are busy on average where `busy` were in the profile.
    pub fn busy(&self, busy: f64) -> f64 {
        if self.threads == self.profiled {
            return busy;
        }
        let alone = self.alone(busy);
        // The same CPU time in less wall time.
        (busy / (alone + (1.0 - alone) * self.profiled / self.threads)).max(1.0).min(self.threads)
    }

    /// Share of a stretch's time in which one thread ran alone.
    fn alone(&self, busy: f64) -> f64 {
        if self.profiled <= 1.0 { 0.0 } else { ((self.profiled - busy) / (self.profiled - 1.0)).clamp(0.0, 1.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ran_in_parallel_is_divided() {
        let two = Scaling::extrapolated(2.0, 64.0);
        assert_eq!(two.busy(2.0), 64.0);
        assert!((two.computing(2.0) - 2.0 / 64.0).abs() < 1e-12 && (two.computing(1.0) - 1.0).abs() < 1e-12);
        // Half of the time alone: 0.5 + 0.5 x 2 / 64.
        assert!((two.computing(1.5) - 0.515_625).abs() < 1e-12 && (two.busy(1.5) - 1.5 / 0.515_625).abs() < 1e-9);
        assert!((two.doubt - DOUBT.powi(5)).abs() < 1e-9);
        let same = Scaling::extrapolated(2.0, 2.0);
        assert!(same.is_same() && same.computing(1.3) == 1.0 && same.busy(1.3) == 1.3 && same.doubt == 1.0);
    }

    #[test]
    fn several_profiles_give_what_is_not_divided() {
        // 1 s alone, 8 s divided; 4 GB shared, 1 GB for each thread.
        let of = |threads: f64| Sample { threads, computing: 1.0 + 8.0 / threads, traffic: 4e9 + 1e9 * threads };
        let found = Scaling::fitted(of(1.0), &[of(2.0), of(4.0)], 8.0);
        let fitted = found.fitted.expect("fitted");
        assert!((fitted.computing - 2.0 / 9.0).abs() < 1e-9 && (fitted.traffic - 12.0 / 5.0).abs() < 1e-9, "{fitted:?}");
        assert!((fitted.alone - 1.0 / 9.0).abs() < 1e-9 && (found.doubt - FITTED_DOUBT).abs() < 1e-6, "{found:?}");
        // Profiles that are all alike say nothing.
        assert_eq!(Scaling::fitted(of(1.0), &[of(1.0)], 8.0).fitted, None);
        // More threads never take longer, whatever noise says.
        let noisy = [Sample { threads: 2.0, computing: 11.0, traffic: 4e9 }];
        let found = Scaling::fitted(of(1.0), &noisy, 8.0);
        assert!((found.computing(1.0) - 1.0).abs() < 1e-9 && found.doubt > 1.05, "{found:?}");
    }
}
