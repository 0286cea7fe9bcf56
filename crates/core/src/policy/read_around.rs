//! Where the kernel pages a file: whether it is to read around each page that is missing, or that page alone.
//!
//! How much it reads around is the disk's setting, 128 KiB as a rule, 4 or 8 MiB on some machines; a mapping can only ask for it or not.
//! Always to ask, the simplest rule, is right for 128 KiB; with 8 MiB, what is read in vain brings a program that jumps about to a
//! standstill. What was read in vain is not seen, since the kernel maps what is around, too. What is seen is how the program comes
//! along: its CPU time. So the other way is tried for a moment, ever more rarely while it is no better.

/// Length of a trial, and of what it is compared with, in ns.
const SLICE_NS: u64 = 250_000_000;
/// Fewer pages read in a slice are not worth a trial: at 0.1 ms each they take a tenth of it.
const LEAST_PAGES: u64 = 256;
/// The other way is kept when the program has this many times as much CPU time.
const BETTER: f64 = 1.25;
/// First time without trial, in ns; four times as long after each trial that was no better, up to the last.
const FIRST_NS: u64 = 1_000_000_000;
const LONGEST_NS: u64 = 64_000_000_000;
const LONGER: u64 = 4;

/// What is known at the start of a slice.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Clock, in ns.
    pub now_ns: u64,
    /// CPU time of the program outside of the kernel, in ns.
    pub user_ns: u64,
    /// Pages that came in from far.
    pub read_pages: u64,
}

/// Which way is better for the program as it is now.
#[derive(Debug)]
pub struct ReadAround {
    wanted: bool,
    since: Option<Progress>,
    // While the other way is tried: CPU time per time before.
    before: Option<f64>,
    next_ns: u64,
    pause_ns: u64,
}

impl Default for ReadAround {
    fn default() -> Self {
        Self { wanted: true, since: None, before: None, next_ns: 0, pause_ns: FIRST_NS }
    }
}

impl ReadAround {
    /// Whether the kernel is to read around from now on.
    pub fn is_wanted(&mut self, now: Progress) -> bool {
        let Some(since) = self.since else {
            self.since = Some(now);
            return self.wanted;
        };
        let took_ns = now.now_ns.saturating_sub(since.now_ns);
        if took_ns < SLICE_NS {
            return self.wanted;
        }
        self.since = Some(now);
        let share = now.user_ns.saturating_sub(since.user_ns) as f64 / took_ns as f64;
        match self.before.take() {
            Some(before) if share > BETTER * before => {
                self.pause_ns = FIRST_NS;
                self.next_ns = now.now_ns + self.pause_ns;
            }
            Some(_) => {
                self.wanted = !self.wanted;
                self.next_ns = now.now_ns + self.pause_ns;
                self.pause_ns = (LONGER * self.pause_ns).min(LONGEST_NS);
            }
            None if now.now_ns >= self.next_ns && now.read_pages.saturating_sub(since.read_pages) >= LEAST_PAGES => {
                self.before = Some(share);
                self.wanted = !self.wanted;
            }
            None => {}
        }
        self.wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program that reads, and gets `shares[0]` of its time as CPU time while the kernel reads around, else `shares[1]`.
    struct Program {
        policy: ReadAround,
        now: Progress,
        pages_per_ms: u64,
    }

    impl Program {
        fn new(pages_per_ms: u64) -> Self {
            Self { policy: ReadAround::default(), now: Progress { now_ns: 0, user_ns: 0, read_pages: 0 }, pages_per_ms }
        }

        /// Milliseconds of `seconds` that the kernel read around.
        fn run(&mut self, seconds: u64, shares: [f64; 2]) -> u64 {
            let mut on = 0;
            for _ in 0..1000 * seconds {
                let wanted = self.policy.is_wanted(self.now);
                on += u64::from(wanted);
                self.now.now_ns += 1_000_000;
                self.now.user_ns += (1e6 * shares[usize::from(!wanted)]) as u64;
                self.now.read_pages += self.pages_per_ms;
            }
            on
        }
    }

    #[test]
    fn streams_are_read_around_but_for_trials() {
        // Trials of 250 ms after 0, 1, 4, 16 and 64 s.
        let off = 100_000 - Program::new(100).run(100, [0.9, 0.2]);
        assert!((1_000..=1_300).contains(&off), "{off}");
        // Equally good: the same.
        let off = 100_000 - Program::new(100).run(100, [0.9, 0.9]);
        assert!((1_000..=1_300).contains(&off), "{off}");
    }

    #[test]
    fn one_that_jumps_about_is_not_read_around_and_what_changes_is_seen() {
        let mut program = Program::new(100);
        let on = program.run(100, [0.02, 0.4]);
        assert!((1_250..=1_800).contains(&on), "{on}");
        // Another phase: seen within a minute and a bit, the next change within seconds.
        let on = program.run(100, [0.9, 0.2]);
        assert!((35_000..=99_500).contains(&on), "{on}");
        let on = program.run(100, [0.02, 0.4]);
        assert!(on < 64_000, "{on}");
    }

    #[test]
    fn what_hardly_reads_is_left_alone() {
        assert_eq!(Program::new(0).run(100, [0.1, 0.9]), 100_000);
        assert_eq!(Program::new(1).run(100, [0.1, 0.9]), 100_000);
    }
}
