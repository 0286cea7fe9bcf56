//! Where the kernel pages a file: whether it is to read around each page that is missing, or that page alone.
//!
//! How much it reads is the disk's setting, 128 KiB as a rule, 8 MiB on some machines; a mapping can only ask for it or not. The simplest
//! rule, always to ask, brings a program that jumps about to a standstill: what is read in vain pushes out what is used. So what leaves
//! is looked at: where the program saw little of it, reading around is off for a while, and then tried again.

/// Judged when this share of near has left.
const WINDOW_SHARE: u64 = 2;
/// Too little was used: so many pages were read in vain for each.
const IN_VAIN: u64 = 3;
/// First pause, in ns, twice as long each time, up to the last.
const FIRST_NS: u64 = 1_000_000_000;
const LONGEST_NS: u64 = 32_000_000_000;

/// Counts what leaves near, by whether it was used.
#[derive(Debug)]
pub struct ReadAround {
    used: u64,
    unused: u64,
    off_until_ns: u64,
    pause_ns: u64,
}

impl Default for ReadAround {
    fn default() -> Self {
        Self { used: 0, unused: 0, off_until_ns: 0, pause_ns: FIRST_NS }
    }
}

impl ReadAround {
    /// Takes note that something leaves of which `there` pages are in memory, and the program had `seen` in view.
    pub fn leaves(&mut self, seen: u32, there: u32) {
        self.used += u64::from(seen);
        self.unused += u64::from(there.saturating_sub(seen));
    }

    /// Whether the kernel is to read around, from `now_ns` on, for a near of `near_pages`.
    pub fn is_wanted(&mut self, now_ns: u64, near_pages: u64) -> bool {
        if now_ns < self.off_until_ns {
            (self.used, self.unused) = (0, 0);
            return false;
        }
        if self.used + self.unused < near_pages / WINDOW_SHARE {
            return true;
        }
        let wanted = self.unused <= IN_VAIN * self.used;
        (self.used, self.unused) = (0, 0);
        if wanted {
            self.pause_ns = FIRST_NS;
        } else {
            self.off_until_ns = now_ns + self.pause_ns;
            self.pause_ns = (2 * self.pause_ns).min(LONGEST_NS);
        }
        wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs for `seconds` in steps of a millisecond; while the kernel reads around, a block of 512 pages leaves in each, of which
    /// `seen` pages were seen. Returns the milliseconds that the kernel read around.
    fn read_around_ms(policy: &mut ReadAround, from_ms: u64, seconds: u64, seen: u32) -> u64 {
        let mut on = 0;
        for ms in from_ms..from_ms + 1000 * seconds {
            if policy.is_wanted(ms * 1_000_000, 32_768) {
                policy.leaves(seen, 512);
                on += 1;
            }
        }
        on
    }

    #[test]
    fn what_is_used_is_read_around_always() {
        assert_eq!(read_around_ms(&mut ReadAround::default(), 0, 100, 512), 100_000);
        assert_eq!(read_around_ms(&mut ReadAround::default(), 0, 100, 128), 100_000);
    }

    #[test]
    fn what_is_not_used_is_tried_again_ever_more_rarely() {
        // A trial takes 32 blocks; at 0, 1, 3, 7, 15, 31, 63 and 95 s.
        let mut policy = ReadAround::default();
        assert_eq!(read_around_ms(&mut policy, 0, 100, 8), 8 * 32);
        // Then the program changes: after the pause it is read around again, and the next pause is short.
        let on = read_around_ms(&mut policy, 100_000, 100, 512);
        assert!((68_000..=73_000).contains(&on), "{on}");
        assert!(read_around_ms(&mut policy, 200_000, 1, 8) < 64);
        assert!(read_around_ms(&mut policy, 201_000, 1, 512) > 900);
    }

    #[test]
    fn nothing_leaves_in_a_pause_that_counts_later() {
        let mut policy = ReadAround::default();
        assert_eq!(read_around_ms(&mut policy, 0, 1, 0), 32);
        for _ in 0..1000 {
            policy.leaves(0, 512);
        }
        assert!(!policy.is_wanted(900_000_000, 32_768));
        assert!(policy.is_wanted(2_000_000_000, 32_768), "what left in the pause was not read around");
    }
}
