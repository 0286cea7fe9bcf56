//! What the mover did, and how it is told at the end of the run.

use super::carry::MoveOutcome;
use nearfar_core::policy::migrate::{Gain, Why};
use nearfar_core::units::Bytes;
use serde::Serialize;

/// Figures of a run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// Seconds that it was watched.
    pub seconds: f64,
    /// Rounds of looking.
    pub rounds: u64,
    /// Bytes that went to near.
    pub promoted_bytes: u64,
    /// Bytes that went to far.
    pub demoted_bytes: u64,
    /// Pages that could not move: in use by the kernel, shared by processes, no room on the node.
    pub refused_pages: [u64; 3],
    /// Share of the sampled visits that went to near: at first, and at last.
    pub near_share: Option<(f64, f64)>,
    /// The same over time: second and share, at most `MOST_POINTS` of them.
    pub near_share_over_time: Vec<(f64, f64)>,
    /// CPU time of looking, the kernel's thread included, seconds.
    pub looking_cpu_s: f64,
    /// Time that moves took, seconds.
    pub moving_s: f64,
    /// Seconds of pauses.
    pub paused_s: f64,
    /// Decisions to stop for a while: second, seconds of the pause, why. The latest `MOST_POINTS`.
    pub pauses: Vec<(f64, f64, String)>,
    /// Why it stands still at the end.
    pub off: Option<String>,
    /// What went wrong.
    pub trouble: Option<String>,
}

/// Points that are kept of what is told over time.
pub const MOST_POINTS: usize = 128;

impl Report {
    /// What one move came to.
    pub fn add(&mut self, promoted: bool, carried: &MoveOutcome, seconds: f64) {
        *(if promoted { &mut self.promoted_bytes } else { &mut self.demoted_bytes }) += carried.bytes;
        let counts = [carried.busy, carried.shared, carried.full];
        self.refused_pages.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        self.moving_s += seconds;
    }

    /// A share of visits at second `now`.
    pub fn share(&mut self, now: f64, share: f64) {
        self.near_share = Some((self.near_share.map_or(share, |(first, _)| first), share));
        // Every other point goes when there are too many.
        if self.near_share_over_time.len() >= MOST_POINTS {
            let mut keep = false;
            self.near_share_over_time.retain(|_| {
                keep = !keep;
                keep
            });
        }
        self.near_share_over_time.push((now, share));
    }

    /// A pause begins.
    pub fn pause(&mut self, now: f64, seconds: f64, why: Why) {
        if self.pauses.len() >= MOST_POINTS {
            self.pauses.remove(0);
        }
        self.pauses.push((now, seconds, why.to_string()));
        self.off = Some(why.to_string());
    }

    /// The lines of the summary.
    pub fn lines(&self, gain: &Gain) -> Vec<String> {
        let mut lines = Vec::new();
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        let visits = self.near_share.map_or_else(
            || "no visits were seen".to_owned(),
            |(first, last)| {
                format!("{} of the sampled visits went to near at first, {} at the end", percent(first), percent(last))
            },
        );
        lines.push(format!("mover: {} promoted, {} demoted; {visits}", Bytes(self.promoted_bytes), Bytes(self.demoted_bytes)));
        let wall = self.seconds.max(1e-9);
        lines.push(format!(
            "mover: looked {} times in {:.1} s, {} of one CPU; moves took {:.2} s; {gain}",
            self.rounds,
            self.seconds,
            percent_of_cpu(self.looking_cpu_s / wall),
            self.moving_s
        ));
        if let Some(why) = &self.off {
            lines.push(format!("mover: off at the end, because {why}; {} of the time it paused", percent(self.paused_s / wall)));
        }
        let [busy, shared, full] = self.refused_pages;
        if busy + shared + full > 0 {
            lines.push(format!(
                "mover: {} pages could not be moved: {busy} were in use by the kernel, {shared} are shared by processes or may not be on that \
                 node (cpuset), for {full} the node had no room",
                busy + shared + full
            ));
        }
        lines.extend(self.trouble.iter().map(|trouble| format!("mover: {trouble}")));
        lines
    }
}

fn percent_of_cpu(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told() {
        let mut report = Report { seconds: 100.0, rounds: 50, looking_cpu_s: 0.5, ..Report::default() };
        report.add(true, &MoveOutcome { bytes: 64 << 20, busy: 3, ..MoveOutcome::default() }, 0.1);
        report.add(false, &MoveOutcome { bytes: 2 << 20, ..MoveOutcome::default() }, 0.1);
        report.share(1.0, 0.25);
        report.share(9.0, 0.97);
        report.paused_s = 40.0;
        report.pause(60.0, 10.0, Why::Settled);
        let text = report.lines(&Gain::from_distances(Some(10), Some(21))).join("\n");
        for part in [
            "64.0 MiB promoted, 2.0 MiB demoted",
            "25 % of the sampled",
            "97 % at the end",
            "0.50 % of one CPU",
            "off at the end",
            "3 pages",
            "40 % of",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        for second in 0..1000 {
            report.share(f64::from(second), 0.5);
            report.pause(f64::from(second), 1.0, Why::Alike);
        }
        assert!(report.near_share_over_time.len() <= MOST_POINTS && report.pauses.len() <= MOST_POINTS);
        assert_eq!(report.near_share, Some((0.25, 0.5)));
    }
}
