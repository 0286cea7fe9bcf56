//! What a pager sets aside of near: frames that are free or soon free, so that a fault need not wait for an eviction, and room for what
//! it fetches ahead. The rest is what the eviction policy may fill; whoever predicts what paging costs has to know it too.
//!
//! Neither is needed all the time. A program that asks for single pages takes few frames in the time of an eviction, and what is
//! fetched ahead for it in vain is near that it lacks: a program whose data is a little less than near then goes round in circles. So
//! `Headroom` follows how much of what came ahead was asked for and, where near is below 256 MiB, how fast frames are taken; the functions
//! give the bounds. Limbo and free frames have their share as long as frames of limbo are needed: eviction takes chunks, and the pages of a
//! chunk that are in use are told from the others by coming back from limbo. Where none is needed, nothing is evicted ahead: data that
//! just fit in near would be written for nothing, and brought back, for ever.

use crate::addr::{BLOCK_PAGES, PAGE};

const BLOCK: u64 = BLOCK_PAGES as u64;
/// Limbo and free frames together aim at this part of near: long enough to rescue, short enough to cost few hits. It is 128 MiB at the
/// most, and of a near below 256 MiB up to 8 MiB while frames are taken fast.
const SLACK_SHARE: u64 = 32;
/// Pages of slack that even the smallest near has while frames are needed: a few faults' worth of single pages.
const LEAST_SLACK: u64 = 64;
/// Slack lasts so long at the rate at which frames are taken: an eviction with its write takes a few ms.
const SLACK_MS: f64 = 4.0;
/// and it has room for so many times what is taken at once: else streams, which take blocks, would wait for frames, take fewer, and
/// seem to need less.
const UNITS: f64 = 4.0;
/// Slack is at most what limbo would give in so long, at the highest rate lately: when it has given nothing for some seconds, none is kept.
const LASTING_MS: f64 = 1000.0;
/// What is taken at once is averaged over about so many times.
const TAKES: f64 = 64.0;
/// Prefetch may have this part of near at the most.
const STAGED_SHARE: u64 = 8;
/// Of that, prefetch that is not asked for keeps this part, or room for a few times what is taken at once, with which it can show that
/// it does better.
const LEAST_STAGED_SHARE: u64 = 8;
/// Pages that prefetch may hold more for each of its pages that was asked for. One that was not costs a page, so a fifth of all may be in vain.
const EARNED: f64 = 0.25;
/// What waited longer before it was asked for was not fetched for that: it lay there until something came by, or too much is fetched
/// ahead of a slow stream. It costs what it would have earned. Streams fetch some 8 ms ahead.
const SOON_NS: u64 = 32_000_000;
/// Rates are taken over so long at least,
const WINDOW_NS: u64 = 1_000_000;
/// averaged over about so long, since a single block among single pages is no stream,
const MEAN_NS: f64 = 16e6;
/// and the highest mean is remembered at half its value after so long.
const HALF_LIFE_NS: f64 = 200e6;
/// What is set aside goes in steps of this part of the most: the eviction policy is told of each change.
const STEPS: u64 = 16;

/// Pages that may be under way from or to a device of that rate: what it moves in a few ms.
pub fn queue_pages(far_bytes_per_s: u64) -> u64 {
    const FEW_MS: u64 = 4;
    let pages = far_bytes_per_s / 1000 * FEW_MS / PAGE as u64;
    pages.clamp(4 * BLOCK, 16 * BLOCK)
}

/// Pages of limbo and free frames that eviction aims at, of `near` pages, while frames are taken as fast as can be.
pub fn slack_pages(near: u64) -> u64 {
    (near / SLACK_SHARE).clamp(4 * BLOCK, 64 * BLOCK).min(near / 4)
}

fn least_slack_pages(near: u64) -> u64 {
    (near / SLACK_SHARE).max(LEAST_SLACK).min(slack_pages(near))
}

/// Pages that prefetch may hold, staged or under way, of `near` pages, when it is asked for what it brings.
pub fn staged_pages(near: u64, far_bytes_per_s: u64) -> u64 {
    (2 * queue_pages(far_bytes_per_s) + 4 * BLOCK).min(near / STAGED_SHARE).max(BLOCK)
}

/// Pages that the eviction policy may fill, of `near` pages, while streams are read as fast as far can.
pub fn kept_pages(near: u64, far_bytes_per_s: u64) -> u64 {
    near.saturating_sub(slack_pages(near) + staged_pages(near, far_bytes_per_s))
}

/// The same while streams take frames but hardly anything is read: memory that is made, for example.
pub fn kept_pages_at_rest(near: u64, far_bytes_per_s: u64) -> u64 {
    near.saturating_sub(slack_pages(near) + staged_pages(near, far_bytes_per_s) / LEAST_STAGED_SHARE)
}

/// Follows what has to be set aside. Times are in ns of one monotonic clock, amounts in pages.
#[derive(Clone, Debug)]
pub struct Headroom {
    near: u64,
    far_bytes_per_s: u64,
    since_ns: u64,
    /// Pages taken.
    taken: Rate,
    /// Pages that limbo gave.
    freed: Rate,
    /// Pages taken at once, the mean of the last times.
    unit: f64,
    /// Pages that prefetch held, the most lately.
    held: f64,
    /// What prefetch has earned of what it may hold at the most, 0 to 1: near may change at any time, when others come and go.
    earned: f64,
}

/// Pages per ms.
#[derive(Clone, Copy, Debug, Default)]
struct Rate {
    /// Pages since the last look.
    pages: u64,
    mean: f64,
    /// The highest mean lately.
    peak: f64,
}

impl Rate {
    fn look(&mut self, passed_ns: u64) {
        let fade = (-(passed_ns as f64) / HALF_LIFE_NS).exp2();
        let weight = 1.0 - (-(passed_ns as f64) / MEAN_NS).exp();
        self.mean += weight * (std::mem::take(&mut self.pages) as f64 * 1e6 / passed_ns as f64 - self.mean);
        self.peak = (self.peak * fade).max(self.mean);
    }
}

impl Default for Headroom {
    fn default() -> Self {
        // Prefetch begins with all it may have: most programs stream.
        let none = Rate::default();
        Self { near: 0, far_bytes_per_s: 0, since_ns: 0, taken: none, freed: none, unit: 0.0, held: 0.0, earned: 1.0 }
    }
}

impl Headroom {
    /// `pages` frames were taken from what is free, for one read or one first touch.
    pub fn took(&mut self, pages: u64) {
        self.taken.pages += pages;
        self.unit += (pages as f64 - self.unit) / TAKES;
    }

    /// `pages` of limbo became free, since they were needed.
    pub fn freed(&mut self, pages: u64) {
        self.freed.pages += pages;
    }

    /// `pages` that were fetched ahead were asked for, `waited_ns` after their read was begun.
    pub fn used(&mut self, pages: u64, waited_ns: u64) {
        let sign = if waited_ns <= SOON_NS { 1.0 } else { -1.0 };
        self.earn(sign * EARNED * pages as f64);
    }

    /// `pages` that were fetched ahead were given up.
    pub fn wasted(&mut self, pages: u64) {
        self.earn(-(pages as f64));
    }

    fn earn(&mut self, pages: f64) {
        let most = staged_pages(self.near, self.far_bytes_per_s) as f64;
        self.earned = (self.earned + pages / most).clamp(0.0, 1.0);
    }

    fn least_staged(&self) -> u64 {
        let most = staged_pages(self.near, self.far_bytes_per_s);
        (most / LEAST_STAGED_SHARE).max((UNITS * self.unit) as u64).max(BLOCK).min(most)
    }

    /// To be called often: near is of `near` pages, far reads `far_bytes_per_s`, prefetch holds `held` pages.
    pub fn look(&mut self, now_ns: u64, near: u64, far_bytes_per_s: u64, held: u64) {
        (self.near, self.far_bytes_per_s) = (near, far_bytes_per_s);
        self.held = self.held.max(held as f64);
        let passed = now_ns.saturating_sub(self.since_ns);
        if passed < WINDOW_NS {
            return;
        }
        let fade = (-(passed as f64) / HALF_LIFE_NS).exp2();
        self.taken.look(passed);
        self.freed.look(passed);
        self.held = (self.held * fade).max(held as f64);
        self.since_ns = now_ns;
    }

    /// Whether limbo gives frames now, at a rate of a block in a second at the least: what comes in drives out what was there.
    pub fn lives_on_limbo(&self) -> bool {
        self.freed.mean * 1000.0 >= BLOCK as f64
    }

    /// Pages of limbo and free frames that eviction aims at.
    pub fn slack(&self) -> u64 {
        let most = slack_pages(self.near);
        let wanted = (SLACK_MS * self.taken.peak).max(UNITS * self.unit).min(most as f64) as u64;
        let lasting = (LASTING_MS * self.freed.peak).min(most as f64) as u64;
        in_steps(wanted, most).max(least_slack_pages(self.near)).min(in_steps(lasting, most))
    }

    /// Pages that prefetch may hold.
    pub fn staging_limit(&self) -> u64 {
        let most = staged_pages(self.near, self.far_bytes_per_s);
        ((self.earned * most as f64) as u64).max(self.least_staged())
    }

    /// Pages that the eviction policy may not fill: slack, and what prefetch holds at times.
    pub fn pages(&self) -> u64 {
        let step = (staged_pages(self.near, self.far_bytes_per_s) / STEPS).max(1);
        self.slack() + (self.held as u64).min(self.staging_limit()) / step * step
    }
}

/// `pages` rounded up to a step of `most`, which is the most.
fn in_steps(pages: u64, most: u64) -> u64 {
    let step = (most / STEPS).max(1);
    (pages.div_ceil(step) * step).min(most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FAR: u64 = 2_400_000_000;
    const NEAR: u64 = 64 << 8;

    #[test]
    fn small_nears_give_up_more() {
        let kept = |mib: u64| kept_pages(mib * 256, FAR) as f64 / (mib * 256) as f64;
        assert!((0.60..0.65).contains(&kept(32)), "{}", kept(32));
        assert!((0.80..0.95).contains(&kept(1024)), "{}", kept(1024));
        assert!((0.98..1.0).contains(&kept(16 * 1024)), "{}", kept(16 * 1024));
    }

    /// Pages aside after `ms`, in each of which `takes` times `unit` pages were taken, and `used` and `wasted` of what came ahead were
    /// asked for and not.
    fn after(aside: &mut Headroom, ms: u64, (takes, unit): (u64, u64), used: u64, wasted: u64, held: u64) -> u64 {
        let start = aside.since_ns;
        for step in 1..=ms {
            (0..takes).for_each(|_| aside.took(unit));
            aside.freed(takes * unit);
            aside.look(start + step * 1_000_000, NEAR, FAR, held);
            aside.used(used, 5_000_000);
            aside.wasted(wasted);
        }
        aside.pages()
    }

    #[test]
    fn single_pages_need_limbo_alone_and_streams_all() {
        let mut aside = Headroom::default();
        // 15 single pages per ms, nothing ahead.
        let single = after(&mut aside, 2000, (15, 1), 0, 0, 0);
        assert_eq!(single, NEAR / SLACK_SHARE);
        // 500 pages per ms (2 GB/s), all of them ahead and asked for.
        let held = staged_pages(NEAR, FAR);
        let stream = after(&mut aside, 64, (1, 500), 500, 0, held);
        assert_eq!(stream, NEAR - kept_pages(NEAR, FAR));
        let later = after(&mut aside, 2000, (15, 1), 0, 0, 0);
        assert_eq!(later, single);
    }

    #[test]
    fn slack_of_a_large_near_does_not_depend_on_what_comes_while_it_lasts_for_less_than_a_second() {
        for (near, slack) in [(256 << 8, 8 << 8), (16 << 18, 128 << 8)] {
            let mut aside = Headroom::default();
            for step in 1..1000 {
                let pages = if step < 500 { 64 } else { BLOCK };
                aside.took(pages);
                aside.freed(pages);
                aside.look(step * 1_000_000, near, FAR, 0);
                // The mean needs a moment.
                assert!(step < 20 || aside.slack() == slack, "{step}: {}", aside.slack());
            }
        }
    }

    #[test]
    fn nothing_is_set_aside_where_nothing_is_needed() {
        let mut aside = Headroom::default();
        let near = 256 << 8;
        let mut after = |steps: std::ops::Range<u64>, freed: u64| {
            for step in steps {
                aside.took(BLOCK);
                aside.freed(freed);
                aside.look(step * 1_000_000, near, FAR, 0);
            }
            aside.slack()
        };
        // Data are made as fast as can be, all in fresh memory.
        assert_eq!(after(1..500, 0), 0);
        // They are more than near; then they are less again.
        assert_eq!(after(500..520, BLOCK), slack_pages(near));
        assert_eq!(after(520..5000, 0), 0);
    }

    #[test]
    fn who_lives_on_limbo_says_so_while_it_does() {
        let mut aside = Headroom::default();
        let mut lives = |steps: std::ops::Range<u64>, freed: u64| {
            for step in steps {
                aside.freed(freed);
                aside.look(step * 1_000_000, NEAR, FAR, 0);
            }
            aside.lives_on_limbo()
        };
        assert!(!lives(1..100, 0));
        assert!(lives(100..200, 1), "four blocks in two seconds");
        assert!(!lives(200..300, 0), "not for long after");
    }

    #[test]
    fn prefetch_in_vain_loses_its_room_and_earns_it_back() {
        let mut aside = Headroom::default();
        after(&mut aside, 1, (0, 0), 0, 0, 0);
        assert_eq!(aside.staging_limit(), staged_pages(NEAR, FAR));
        after(&mut aside, 1000, (10, 1), 4, 6, 0);
        assert_eq!(aside.staging_limit(), BLOCK);
        after(&mut aside, 1000, (100, 1), 95, 5, 0);
        assert!(aside.staging_limit() > staged_pages(NEAR, FAR) - BLOCK / 8, "{}", aside.staging_limit());
    }

    #[test]
    fn what_is_used_by_chance_earns_nothing() {
        let mut aside = Headroom::default();
        after(&mut aside, 1, (1, 1), 0, 0, 0);
        (0..1000).for_each(|_| aside.used(10, 100_000_000));
        assert_eq!(aside.staging_limit(), BLOCK);
    }

    #[test]
    fn a_near_that_was_small_for_a_moment_costs_prefetch_nothing() {
        let mut aside = Headroom::default();
        after(&mut aside, 10, (1, 500), 500, 0, 0);
        aside.look(aside.since_ns + 1, NEAR / 8, FAR, 0);
        aside.used(100, 0);
        aside.look(aside.since_ns + 2, NEAR, 4 * FAR, 0);
        assert_eq!(aside.staging_limit(), staged_pages(NEAR, 4 * FAR));
    }

    #[test]
    fn streams_of_blocks_are_never_left_with_room_for_one() {
        let mut aside = Headroom::default();
        after(&mut aside, 300, (1, BLOCK), 100, 400, 0);
        assert!(aside.staging_limit() > 3 * BLOCK, "{}", aside.staging_limit());
        // Takes of blocks are slow where frames are wanting: slack does not follow down.
        assert!(aside.slack() > 3 * BLOCK, "{}", aside.slack());
    }

    proptest! {
        #[test]
        fn more_near_is_never_less_kept(near in 0u64..200_000, more in 0u64..4096, rate in 0u64..1 << 37) {
            let kept = kept_pages(near, rate);
            prop_assert!(kept <= near);
            // Two parts of near may grow by a page each where near does by one.
            prop_assert!(kept_pages(near + more, rate) + 1 >= kept);
            prop_assert!((kept..=near).contains(&kept_pages_at_rest(near, rate)));
        }

        #[test]
        fn bounds_hold_whatever_comes(
            near in 0u64..1 << 24,
            rate in 0u64..1 << 37,
            events in proptest::collection::vec((0u8..5, 0u64..100_000), 0..200),
        ) {
            let mut aside = Headroom::default();
            let (mut now, mut freed) = (0, 0);
            for (kind, amount) in events {
                match kind {
                    0 => aside.took(amount),
                    1 => aside.used(amount, amount * 1000),
                    2 => aside.wasted(amount),
                    3 => {
                        aside.freed(amount);
                        freed += amount;
                    }
                    _ => {
                        now += amount * 100;
                        aside.look(now, near, rate, amount);
                        prop_assert!(freed > 0 || aside.slack() == 0);
                        prop_assert!(aside.slack() <= slack_pages(near));
                        let limit = aside.staging_limit();
                        let most = staged_pages(near, rate);
                        prop_assert!((most / LEAST_STAGED_SHARE..=most).contains(&limit));
                        prop_assert!(aside.pages() <= slack_pages(near) + staged_pages(near, rate));
                    }
                }
            }
        }
    }
}
