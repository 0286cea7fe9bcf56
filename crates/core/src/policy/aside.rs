//! What a pager sets aside of near: frames that are free or soon free, so that a fault need not wait for an eviction, and room for what
//! it fetches ahead. The rest is what the eviction policy may fill; whoever predicts what paging costs has to know it too.

use crate::addr::{BLOCK_PAGES, PAGE};

const BLOCK: u64 = BLOCK_PAGES as u64;
/// Limbo and free frames together aim at this part of near: long enough to rescue, short enough to cost few hits.
const SLACK_SHARE: u64 = 32;
/// Prefetch may have this part of near at the most.
const STAGED_SHARE: u64 = 8;

/// Pages that may be under way from or to a device of that rate: what it moves in a few ms.
pub fn queue_pages(far_bytes_per_s: u64) -> u64 {
    const FEW_MS: u64 = 8;
    let pages = far_bytes_per_s / 1000 * FEW_MS / PAGE as u64;
    pages.clamp(4 * BLOCK, 16 * BLOCK)
}

/// Pages of limbo and free frames that eviction aims at, of `near` pages.
pub fn slack_pages(near: u64) -> u64 {
    (near / SLACK_SHARE).clamp(4 * BLOCK, 64 * BLOCK).min(near / 4)
}

/// Pages that prefetch may hold, staged or under way, of `near` pages.
pub fn staged_pages(near: u64, far_bytes_per_s: u64) -> u64 {
    (2 * queue_pages(far_bytes_per_s) + 4 * BLOCK).min(near / STAGED_SHARE).max(BLOCK)
}

/// Pages that the eviction policy may fill, of `near` pages.
pub fn kept_pages(near: u64, far_bytes_per_s: u64) -> u64 {
    near.saturating_sub(slack_pages(near) + staged_pages(near, far_bytes_per_s))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn small_nears_give_up_more() {
        let kept = |mib: u64| kept_pages(mib * 256, 2_400_000_000) as f64 / (mib * 256) as f64;
        assert!((0.60..0.65).contains(&kept(32)), "{}", kept(32));
        assert!((0.80..0.95).contains(&kept(1024)), "{}", kept(1024));
        assert!((0.98..1.0).contains(&kept(16 * 1024)), "{}", kept(16 * 1024));
    }

    proptest! {
        #[test]
        fn more_near_is_never_less_kept(near in 0u64..200_000, more in 0u64..4096, rate in 0u64..1 << 37) {
            let kept = kept_pages(near, rate);
            prop_assert!(kept <= near);
            // Two parts of near may grow by a page each where near does by one.
            prop_assert!(kept_pages(near + more, rate) + 1 >= kept);
        }
    }
}
