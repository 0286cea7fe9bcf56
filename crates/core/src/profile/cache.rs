//! How long memory stays in a cache (Che's approximation): until as much other memory was touched as the cache holds.

/// Longest time that is told from for ever.
const LONGEST: f64 = 1e6;
/// Shortest.
const SHORTEST: f64 = 1e-8;

/// Seconds after which what is touched fills `size`; infinite if it never does. `touched` tells how much is touched within some seconds,
/// and never falls.
pub fn kept(size: f64, touched: impl Fn(f64) -> f64) -> f64 {
    let most = touched(LONGEST);
    if most <= size || most.is_nan() {
        return f64::INFINITY;
    }
    let (mut low, mut high) = (SHORTEST.ln(), LONGEST.ln());
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if touched(middle.exp()) > size { high = middle } else { low = middle }
    }
    high.exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_is_full_when_as_much_was_touched() {
        let sweep = |seconds: f64| (1000.0 * seconds).min(5000.0);
        assert!((kept(2000.0, sweep) - 2.0).abs() < 1e-6);
        assert_eq!(kept(6000.0, sweep), f64::INFINITY);
        assert_eq!(kept(1.0, |_| f64::NAN), f64::INFINITY);
        assert!(kept(0.0, |_| 1.0) < 1e-6);
    }
}
