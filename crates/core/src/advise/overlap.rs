//! How long two things take that go on beside each other, more or less.

/// `(a^p + b^p)^(1/p)`: their sum for 1, the larger one for infinity.
pub fn together(a: f64, b: f64, p: f64) -> f64 {
    let (small, large) = if a < b { (a, b) } else { (b, a) };
    if small <= 0.0 { large } else { large * (1.0 + (small / large).powf(p)).powf(1.0 / p) }
}

/// How computing and transfers of pages overlap, in the middle: nearly wholly, in routines that pages are fetched for.
pub const PAGED_OVERLAP: f64 = 3.0;

/// The `a` for which `together(a, b, p)` is `sum`; at least a fiftieth of it.
pub fn without(sum: f64, b: f64, p: f64) -> f64 {
    let rest = 1.0 - (b / sum).powf(p);
    if sum <= 0.0 { 0.0 } else { sum * rest.max(0.02f64.powf(p)).powf(1.0 / p) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlap_is_between_the_sum_and_the_larger() {
        assert!((together(1.0, 2.0, 1.0) - 3.0).abs() < 1e-9 && (together(1.0, 2.0, 60.0) - 2.0).abs() < 1e-3);
        for p in [1.0, 2.0, 3.0] {
            assert!((without(together(1.0, 2.0, p), 2.0, p) - 1.0).abs() < 1e-9);
        }
    }
}
