//! When to look next: often at first, so that short programs are seen, then ever less often.
//!
//! All kinds of looks of `nearfar map` together take at most 0.1 s of CPU time and 1 % of what one CPU has given since the start: a look that costs more
//! than its share is followed by none until the time has passed that makes up for it.

use std::time::Duration;

/// When one kind of look is due.
pub struct Interval {
    shortest_s: f64,
    longest_s: f64,
    /// The time between two looks is this part of the time that has passed.
    growth: f64,
    /// CPU time that may be taken at any time.
    credit_s: f64,
    /// CPU time that may be taken besides: one part of this many of the time that has passed.
    part: f64,
    spent_s: f64,
    due_s: f64,
}

impl Interval {
    const fn new(shortest_s: f64, longest_s: f64, growth: f64, credit_s: f64, part: f64) -> Self {
        Self { shortest_s, longest_s, growth, credit_s, part, spent_s: 0.0, due_s: 0.0 }
    }

    /// For threads: every 10 ms at first, every 2 % of the time that has passed after half a second, every second at last.
    pub const fn of_threads() -> Self {
        Self::new(0.01, 1.0, 0.02, 0.04, 300.0)
    }

    /// For memory, whose looks cost more the more memory there is.
    pub const fn of_memory() -> Self {
        let interval = Self::new(0.05, 60.0, 0.1, 0.04, 250.0);
        Self { due_s: 0.004, ..interval }
    }

    /// For the memory of a job, where nothing else is looked at: 1 % of one CPU, after 0.1 s.
    pub const fn of_residence() -> Self {
        let interval = Self::new(0.02, 1.0, 0.02, 0.1, 100.0);
        Self { due_s: 0.004, ..interval }
    }

    /// For new processes: every thread that is known is asked what it has started.
    pub const fn of_children() -> Self {
        Self::new(0.01, 1.0, 0.05, 0.01, 1250.0)
    }

    /// For new threads of known processes, where looks at all threads are dear.
    pub const fn of_new_threads() -> Self {
        Self::new(0.01, 1.0, 0.02, 0.01, 800.0)
    }

    /// For the limits of the control group, whose use of memory changes slowly.
    pub const fn of_limits() -> Self {
        let interval = Self::new(0.5, 10.0, 0.1, 0.0, 2000.0);
        Self { due_s: 0.2, ..interval }
    }

    /// True when a look is due, `now_s` after the first.
    pub fn is_due(&self, now_s: f64) -> bool {
        now_s >= self.due_s
    }

    /// A look was taken at `now_s` and cost `cost_s` of CPU time.
    pub fn taken(&mut self, now_s: f64, cost_s: f64) {
        self.spent_s += cost_s;
        // The first looks are closer: what starts a program may itself live for some milliseconds only.
        let shortest = if now_s < 0.01 { self.shortest_s / 4.0 } else { self.shortest_s };
        let afforded_s = (self.spent_s - self.credit_s).max(0.0) * self.part;
        self.due_s = (now_s + (now_s * self.growth).clamp(shortest, self.longest_s)).max(afforded_s);
    }

    /// Time until a look is due.
    pub fn left(&self, now_s: f64) -> Duration {
        Duration::from_secs_f64((self.due_s - now_s).max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looks(until_s: f64, cost_s: f64) -> u32 {
        let mut interval = Interval::of_threads();
        let (mut now, mut count) = (0.0, 0);
        while now < until_s {
            interval.taken(now, cost_s);
            now += interval.left(now).as_secs_f64();
            count += 1;
        }
        count
    }

    #[test]
    fn often_at_first_and_never_dear() {
        assert!(looks(0.1, 1e-5) >= 10, "a short program is seen");
        assert!(looks(3600.0, 1e-5) < 4000, "a long one is not bothered");
        assert!(looks(0.1, 5e-3) >= 8, "dear looks are taken at first");
        assert!(f64::from(looks(100.0, 5e-3)) * 5e-3 < 0.01 * 100.0, "but not for long");
    }

    #[test]
    fn all_together_take_less_than_they_may() {
        let all = [
            Interval::of_threads(),
            Interval::of_memory(),
            Interval::of_children(),
            Interval::of_new_threads(),
            Interval::of_limits(),
        ];
        assert!(all.iter().map(|interval| interval.credit_s).sum::<f64>() <= 0.1 + 1e-9);
        assert!(all.iter().map(|interval| 1.0 / interval.part).sum::<f64>() <= 0.01);
    }
}
