//! The sizes that may have to be placed, in the form that costs the others least: two loads and a comparison. Empty in processes that
//! place nothing.

use nearfar_core::placement::{Placement, Policy, SizeRange};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Smallest size and number of sizes.
pub struct SizeFilter {
    least: AtomicUsize,
    span: AtomicUsize,
}

impl SizeFilter {
    /// Holds no size.
    pub const fn empty() -> Self {
        Self { least: AtomicUsize::new(usize::MAX), span: AtomicUsize::new(0) }
    }

    /// True when objects of `size` may have to be placed.
    #[inline(always)]
    pub fn holds(&self, size: usize) -> bool {
        size.wrapping_sub(self.least.load(Ordering::Relaxed)) < self.span.load(Ordering::Relaxed)
    }

    /// Sets it to all of `ranges`.
    pub fn set(&self, ranges: &[SizeRange]) {
        let Some(least) = ranges.iter().map(|range| range.least).min() else { return };
        let most = ranges.iter().map(|range| range.most).max().unwrap_or(least);
        let least = usize::try_from(least).unwrap_or(usize::MAX);
        let span = usize::try_from(most).unwrap_or(usize::MAX).saturating_sub(least).saturating_add(1);
        // In this order: a thread that sees only one of them sees an empty window or one that is too large.
        self.least.store(least, Ordering::Relaxed);
        self.span.store(span, Ordering::Release);
    }
}

/// Every size.
pub const EVERY: SizeRange = SizeRange { least: 0, most: u64::MAX };

/// The sizes that `placement` decides about; a plan's are in the plan.
pub fn of_placement(placement: &Placement, individually: bool) -> Vec<SizeRange> {
    match placement.policy {
        Policy::All if individually => vec![EVERY],
        Policy::Sizes => placement.sizes().to_vec(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_inside_and_outside() {
        let filter = SizeFilter::empty();
        assert!(!filter.holds(0) && !filter.holds(usize::MAX) && !filter.holds(1 << 20));
        filter.set(&[SizeRange { least: 1 << 20, most: 5 << 20 }, SizeRange { least: 8 << 20, most: 9 << 20 }]);
        assert!(filter.holds(1 << 20) && filter.holds(9 << 20));
        assert!(!filter.holds((1 << 20) - 1) && !filter.holds((9 << 20) + 1));
        filter.set(&[EVERY]);
        assert!(filter.holds(0) && filter.holds(1 << 60));
        filter.set(&[]);
        assert!(filter.holds(0), "no ranges: as before");
    }
}
