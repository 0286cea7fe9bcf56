//! How many looks a second: what looking costs is kept at a share of the program's time. Pure.
//!
//! The rate changes slowly: looks stand for time, so they must not come more often while they happen to be cheap. Memory that was not
//! written yet costs nothing to look at; a rate that followed that at once would see a program's temporaries while they are empty.

/// Rate before anything is known, looks a second, at a budget of 1.
const COST_AT_FIRST_NS: f64 = 50_000.0;
/// Looks a second that are done even in a program that hardly runs, and at most.
const LEAST: f64 = 4.0;
const MOST: f64 = 40_000.0;
/// What has been saved or overdrawn is made up for in so long.
const SETTLE_NS: f64 = 1.5e9;
/// Looks over which their cost is averaged, and the most that one count of them changes it.
const COSTS: f64 = 400.0;
const MOST_AT_ONCE: f64 = 0.08;
/// A cost so many times the usual one is not waited out.
const DEAR: f64 = 4.0;

/// What has been counted so far, all in ns.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counted {
    /// The clock.
    pub now: u64,
    /// CPU time of the process, our thread's included.
    pub process: u64,
    /// CPU time of our thread.
    pub own: u64,
    /// Time that threads waited for us.
    pub stall: u64,
    /// CPU time of ours that no look took.
    pub beside: u64,
    /// Looks that were to begin.
    pub tried: u64,
    /// Those that found memory to look at.
    pub looks: u64,
}

/// Keeps the rate.
pub struct Governor {
    budget: f64,
    last: Counted,
    /// Allowed and not yet spent, ns; negative: overdrawn.
    balance: f64,
    cost: f64,
    /// Share of the looks that find memory to look at.
    found: f64,
    rate: f64,
}

impl Governor {
    /// A governor that allows the share `budget`.
    pub fn new(budget: f64, start: Counted) -> Self {
        let budget = budget.clamp(0.0001, 1.0);
        Self {
            budget,
            last: start,
            balance: 0.0,
            cost: COST_AT_FIRST_NS,
            found: 1.0,
            rate: (budget * 1e9 / COST_AT_FIRST_NS).max(LEAST),
        }
    }

    /// Looks a second.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Takes account of what was spent since the last time.
    pub fn update(&mut self, counted: Counted) {
        let since = |part: fn(&Counted) -> u64| part(&counted).saturating_sub(part(&self.last)) as f64;
        let wall = since(|c| c.now);
        if wall < 1.0 {
            return;
        }
        let cost = since(|c| c.own) + since(|c| c.stall);
        let (tried, looks) = (since(|c| c.tried), since(|c| c.looks));
        let beside = since(|c| c.beside);
        // A program of many threads may wait at barriers for the one that waits for us: so its time counts once, not per thread.
        let program = (since(|c| c.process) - since(|c| c.own)).clamp(0.0, wall);
        self.last = counted;
        if tried > 0.0 {
            self.found += (tried / COSTS).min(MOST_AT_ONCE) * (looks / tried - self.found);
        }
        if looks > 0.0 {
            let each = (cost / looks).clamp(2_000.0, 5e6);
            let weight = if each > DEAR * self.cost { (looks / 200.0).min(0.3) } else { (looks / COSTS).min(MOST_AT_ONCE) };
            self.cost += weight * (each - self.cost);
        }
        let allowed = self.budget * program - beside;
        self.balance = (self.balance + allowed - cost).clamp(-self.budget * 2e9, self.budget * SETTLE_NS / 2.0);
        let per_second = allowed / wall * 1e9 + self.balance / SETTLE_NS * 1e9;
        self.rate = (per_second / (self.cost * self.found.max(0.01))).clamp(LEAST, MOST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs ten seconds of a program that computes for the share `busy`, on `threads` threads; each look costs `cost` ns.
    fn share_spent(budget: f64, threads: f64, busy: f64, cost: impl Fn(f64) -> f64) -> (f64, f64) {
        share_spent_beside(budget, threads, busy, cost, 0.0)
    }

    /// The same when other means take the share `beside` of the time.
    fn share_spent_beside(budget: f64, threads: f64, busy: f64, cost: impl Fn(f64) -> f64, beside: f64) -> (f64, f64) {
        let mut governor = Governor::new(budget, Counted::default());
        let mut counted = Counted::default();
        let (mut own, mut stall, mut looks, mut process) = (0.0, 0.0, 0.0, 0.0);
        for tick in 1..=1000 {
            let count = governor.rate() * 0.01;
            let each = cost(f64::from(tick) / 100.0);
            looks += count;
            own += count * each * 0.6;
            stall += count * each * 0.4;
            process += threads * busy * 1e7 + count * each * 0.6;
            counted = Counted {
                now: tick as u64 * 10_000_000,
                process: process as u64,
                own: own as u64,
                stall: stall as u64,
                beside: (beside * f64::from(tick) * 1e7) as u64,
                tried: looks as u64,
                looks: looks as u64,
            };
            governor.update(counted);
        }
        ((own + stall) / 1e10, looks / 10.0 * f64::from(counted.now > 0))
    }

    #[test]
    fn the_budget_is_kept_and_used() {
        for (budget, cost) in [(0.03, 20e3), (0.03, 200e3), (0.1, 40e3), (0.01, 100e3)] {
            let (share, rate) = share_spent(budget, 1.0, 1.0, |_| cost);
            assert!((0.85 * budget..1.1 * budget).contains(&share), "{budget} {cost}: {share} at {rate}/s");
        }
    }

    #[test]
    fn threads_do_not_add_up_and_an_idle_program_is_left_alone() {
        let (share, _) = share_spent(0.03, 64.0, 1.0, |_| 50e3);
        assert!(share < 0.033, "{share}");
        let (share, rate) = share_spent(0.03, 1.0, 0.0, |_| 50e3);
        assert!(share < 0.003 && rate >= 3.0, "{share} {rate}");
    }

    #[test]
    fn what_other_means_take_is_the_looks_loss() {
        let (share, _) = share_spent_beside(0.03, 1.0, 1.0, |_| 50e3, 0.02);
        assert!((0.007..0.012).contains(&share), "{share}");
        let (share, rate) = share_spent_beside(0.03, 1.0, 1.0, |_| 50e3, 0.04);
        assert!(share < 0.001 && rate >= 3.0, "{share} {rate}: nothing is left");
    }

    #[test]
    fn looks_that_become_dear_become_rare() {
        let (share, _) = share_spent(0.03, 1.0, 1.0, |second| if second < 5.0 { 20e3 } else { 2e6 });
        assert!(share < 0.037, "{share}");
    }

    /// A program that fills its memory anew every 100 ms and uses it for as long: what is empty costs nothing.
    #[test]
    fn looks_do_not_come_more_often_while_they_cost_nothing() {
        let mut governor = Governor::new(0.03, Counted::default());
        let (mut tried, mut looks, mut own) = (0.0, 0.0, 0.0);
        let mut sums = [0.0; 2];
        for tick in 1..=1000_u64 {
            let full = tick / 10 % 2 == 1;
            let count = governor.rate() * 0.01;
            tried += count;
            if full {
                looks += count;
                own += count * 100e3;
            }
            if tick > 300 {
                sums[usize::from(full)] += count;
            }
            let (now, own) = (tick * 10_000_000, own as u64);
            governor.update(Counted {
                now,
                process: now + own,
                own,
                stall: 0,
                beside: 0,
                tried: tried as u64,
                looks: looks as u64,
            });
        }
        assert!((0.9..1.1).contains(&(sums[0] / sums[1])), "{sums:?}");
        assert!((0.026..0.033).contains(&(own / 10e9)), "{own}");
    }
}
