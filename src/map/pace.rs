//! When to look next: often at first, so that short programs are seen, then ever less often, and never at more than a share of one CPU.

use std::time::Duration;

/// When one kind of look is due. All kinds together take less than 1 % of one CPU.
pub struct Pace {
    shortest_s: f64,
    longest_s: f64,
    /// The time between two looks is this part of the time that has passed.
    growth: f64,
    /// A look may take one part of this many of the time until the next.
    part: f64,
    due_s: f64,
}

impl Pace {
    /// For threads: every 10 ms at first, every 2 % of the time that has passed after half a second, every second at last.
    pub fn of_threads() -> Self {
        Self { shortest_s: 0.01, longest_s: 1.0, growth: 0.02, part: 300.0, due_s: 0.0 }
    }

    /// For memory, whose looks cost more the more memory there is.
    pub fn of_memory() -> Self {
        Self { shortest_s: 0.05, longest_s: 60.0, growth: 0.1, part: 250.0, due_s: 0.004 }
    }

    /// For new processes: every thread that is known is asked what it has started.
    pub fn of_children() -> Self {
        Self { shortest_s: 0.01, longest_s: 1.0, growth: 0.05, part: 1000.0, due_s: 0.0 }
    }

    /// For new threads of known processes, where looks at all threads are dear.
    pub fn of_new_threads() -> Self {
        Self { shortest_s: 0.01, longest_s: 1.0, growth: 0.02, part: 800.0, due_s: 0.0 }
    }

    /// For the limits of the control group, whose use of memory changes slowly.
    pub fn of_limits() -> Self {
        Self { shortest_s: 0.5, longest_s: 10.0, growth: 0.1, part: 2000.0, due_s: 0.2 }
    }

    /// True when a look is due, `now_s` after the first.
    pub fn is_due(&self, now_s: f64) -> bool {
        now_s >= self.due_s
    }

    /// A look was taken at `now_s` and cost `cost_s` of CPU time.
    pub fn taken(&mut self, now_s: f64, cost_s: f64) {
        // The first looks are closer: what starts a program may itself live for some milliseconds only.
        let shortest = if now_s < 0.01 { self.shortest_s / 4.0 } else { self.shortest_s };
        self.due_s = now_s + (now_s * self.growth).clamp(shortest, self.longest_s).max(cost_s * self.part);
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
        let mut pace = Pace::of_threads();
        let (mut now, mut count) = (0.0, 0);
        while now < until_s {
            pace.taken(now, cost_s);
            now += pace.left(now).as_secs_f64();
            count += 1;
        }
        count
    }

    #[test]
    fn often_at_first_and_never_dear() {
        assert!(looks(0.1, 1e-5) >= 10, "a short program is seen");
        assert!(looks(3600.0, 1e-5) < 4000, "a long one is not bothered");
        assert!(f64::from(looks(100.0, 0.1)) * 0.1 < 0.01 * 100.0, "dear looks are few");
    }
}
