//! Where the kernel pages a file on a disk that reads much ahead (or nobody knows how much): whether it is to read around each page
//! that is missing, or that page alone.
//!
//! How much it reads around is the disk's setting: 128 KiB as a rule, with which all six programs that were tried were fast,
//! and up to 256 nobody asks here. On some machines it is 4 or 8 MiB, and what is read in vain brings a program that jumps
//! about to a standstill; a mapping can only ask for it or not. What was read in vain is not seen, since the kernel maps some
//! of it, too. What is seen is how the program comes along: its CPU time. So the page alone is tried for a moment, ever more
//! rarely while that is no better. Threads that spin while others wait make all alike: then the kernel reads around.

/// Bytes read around a page that is missing: more than this is much.
pub const MUCH: u64 = 256 << 10;

/// A trial is judged so often, in ns, and compared with as much before.
const SLICE_NS: u64 = 250_000_000;
/// It lasts for so many slices while neither is better: pages that come alone take a while to be enough for the program to go on.
const SLICES: u32 = 8;
/// A slice of several times that length tells nothing: somebody was held up.
const LONGEST_SLICE_NS: u64 = 4 * SLICE_NS;
/// Fewer pages read in a slice tell nothing of reading.
const LEAST_PAGES: u64 = 16;
/// One is better than the other when the program has this many times as much CPU time,
const BETTER: f64 = 1.25;
/// and so many CPUs more: kernels count CPU time in ticks of 1 to 10 ms.
const MORE: f64 = 0.03;
/// First time without trial, in ns; four times as long after each, up to the last.
const FIRST_NS: u64 = 1_000_000_000;
const LONGEST_NS: u64 = 32_000_000_000;
const LONGER: u64 = 4;

/// What is known at the end of a slice.
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
    // While the other way is tried: CPU time per time before, and where the trial began.
    trial: Option<(f64, Progress)>,
    next_ns: u64,
    pause_ns: u64,
}

impl Default for ReadAround {
    fn default() -> Self {
        Self { wanted: true, since: None, trial: None, next_ns: 0, pause_ns: FIRST_NS }
    }
}

impl ReadAround {
    /// Whether a slice is over, so that `is_wanted` may have another answer.
    pub fn is_due(&self, now_ns: u64) -> bool {
        self.since.is_none_or(|since| now_ns.saturating_sub(since.now_ns) >= SLICE_NS)
    }

    /// Whether the kernel is to read around from now on.
    pub fn is_wanted(&mut self, now: Progress) -> bool {
        if !self.is_due(now.now_ns) {
            return self.wanted;
        }
        let Some(since) = self.since.replace(now) else { return self.wanted };
        let share = |since: Progress| {
            now.user_ns.saturating_sub(since.user_ns) as f64 / now.now_ns.saturating_sub(since.now_ns).max(1) as f64
        };
        let slice_ns = now.now_ns.saturating_sub(since.now_ns);
        let tells = slice_ns < LONGEST_SLICE_NS && now.read_pages.saturating_sub(since.read_pages) >= LEAST_PAGES;
        match self.trial {
            // Nothing is read any more, whichever way.
            Some(_) if !tells => self.end_trial(now, true),
            Some((before, begin)) => {
                let (around, alone) = if self.wanted { (share(begin), before) } else { (before, share(begin)) };
                let better = |one: f64, other: f64| one > BETTER * other + MORE;
                let over = now.now_ns.saturating_sub(begin.now_ns) >= u64::from(SLICES) * SLICE_NS;
                if over || better(alone, around) || better(around, alone) {
                    self.end_trial(now, !better(alone, around));
                }
            }
            None if now.now_ns < self.next_ns => {}
            None if tells => {
                self.trial = Some((share(since), now));
                self.wanted = !self.wanted;
            }
            None => self.wanted = true,
        }
        self.wanted
    }

    fn end_trial(&mut self, now: Progress, wanted: bool) {
        self.trial = None;
        self.wanted = wanted;
        self.next_ns = now.now_ns + self.pause_ns;
        self.pause_ns = (LONGER * self.pause_ns).min(LONGEST_NS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program that reads, and gets `shares[0]` of its time as CPU time while the kernel reads around, else `shares[1]`.
    struct Program {
        policy: ReadAround,
        now: Progress,
        pages_per_s: u64,
    }

    impl Program {
        fn new(pages_per_s: u64) -> Self {
            Self { policy: ReadAround::default(), now: Progress { now_ns: 0, user_ns: 0, read_pages: 0 }, pages_per_s }
        }

        /// Milliseconds of `seconds` that the kernel read around.
        fn run(&mut self, seconds: u64, shares: [f64; 2]) -> u64 {
            let mut on = 0;
            for ms in 0..1000 * seconds {
                let wanted = self.policy.is_wanted(self.now);
                on += u64::from(wanted);
                self.now.now_ns += 1_000_000;
                self.now.user_ns += (1e6 * shares[usize::from(!wanted)]) as u64;
                self.now.read_pages += u64::from(ms % (1000 / self.pages_per_s.min(1000)) == 0) * self.pages_per_s.div_ceil(1000);
            }
            on
        }
    }

    #[test]
    fn streams_are_read_around_but_for_trials() {
        // Trials after 0, 1, 5, 21, 53 and 85 s: of 250 ms, or of 2 s where nothing is better.
        for (shares, ms) in [([0.9, 0.2], 1_500), ([0.9, 0.9], 12_000), ([2.0, 2.4], 12_000), ([0.01, 0.04], 12_000)] {
            let off = 100_000 - Program::new(50_000).run(100, shares);
            assert!((ms * 2 / 3..=ms * 17 / 16).contains(&off), "{shares:?}: {off}");
        }
    }

    #[test]
    fn pages_that_come_alone_may_take_a_while_to_help() {
        let mut program = Program::new(50_000);
        let mut on = 0;
        for _ in 0..100 {
            // The first second alone brings nothing.
            let was = program.policy.wanted;
            on += program.run(1, [0.02, if was { 0.02 } else { 0.4 }]);
        }
        assert!(on < 12_000, "{on}");
    }

    #[test]
    fn one_that_jumps_about_is_not_read_around() {
        for pages_per_s in [100, 50_000] {
            let on = Program::new(pages_per_s).run(100, [0.02, 0.4]);
            assert!((1_250..=2_100).contains(&on), "{on}");
        }
    }

    #[test]
    fn what_changes_is_seen_within_the_longest_time_without_trial() {
        let mut program = Program::new(50_000);
        let mut shares = [[0.02, 0.4], [0.9, 0.2]];
        for _ in 0..6 {
            program.run(100, shares[0]);
            shares.reverse();
            let jumps = shares[0][0] < shares[0][1];
            program.run(34, shares[0]);
            let on = program.run(30, shares[0]);
            let wrong = if jumps { on } else { 30_000 - on };
            assert!(wrong <= 300, "{wrong}");
        }
    }

    #[test]
    fn noise_does_not_flip_it_for_ever() {
        // Both ways are equal, and the program computes much in one slice and little in the next.
        let mut program = Program::new(50_000);
        let (mut was, mut flips) = (true, 0);
        for slice in 0..800 {
            let share = if slice * 7 % 5 < 2 { 0.9 } else { 0.1 };
            for _ in 0..250 {
                let wanted = program.policy.is_wanted(program.now);
                flips += u32::from(wanted != was);
                was = wanted;
                program.now.now_ns += 1_000_000;
                program.now.user_ns += (1e6 * share) as u64;
                program.now.read_pages += 50;
            }
        }
        assert!(flips <= 20, "{flips}");
    }

    #[test]
    fn where_little_is_read_alone_it_reads_around_again() {
        let mut program = Program::new(50_000);
        assert!(program.run(10, [0.02, 0.4]) < 2_000);
        program.pages_per_s = 40;
        assert!(program.run(40, [0.5, 0.1]) > 20_000);
        assert_eq!(program.run(40, [0.5, 0.1]), 40_000);
    }

    #[test]
    fn threads_that_spin_are_read_around() {
        let mut program = Program::new(50_000);
        program.run(2, [0.02, 0.4]);
        let on = program.run(100, [16.0, 16.0]);
        // Alone for some seconds until the next trial, and for 2 s in each of those that follow.
        assert!(on > 80_000, "{on}");
    }

    #[test]
    fn what_does_not_read_is_left_alone() {
        let mut program = Program::new(10);
        assert_eq!(program.run(100, [0.1, 0.9]), 100_000);
        // A trial in which nothing is read any more tells nothing.
        let mut policy = ReadAround::default();
        let mut at = |ms: u64, read_pages: u64, user_ms: u64| {
            policy.is_wanted(Progress { now_ns: ms * 1_000_000, user_ns: user_ms * 1_000_000, read_pages })
        };
        assert!(at(0, 0, 0) && !at(250, 5000, 5) && at(500, 5000, 255), "computing begins");
        // Nor does one that took too long.
        assert!(at(750, 9000, 260) && at(1450, 9000, 260) && !at(1700, 10_000, 265) && at(3000, 20_000, 2500));
    }
}
