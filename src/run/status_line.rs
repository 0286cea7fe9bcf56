//! The status line of `--live`: what happened since the last one.

use crate::run::summary::percent;
use crate::ui::message;
use nearfar_core::stats::{Counter, Snapshot};
use nearfar_core::units::Bytes;
use std::io::IsTerminal;
use std::time::Duration;

/// Keeps one line on standard error up to date; where that is no terminal, adds a line now and then.
pub struct StatusLine {
    before: Snapshot,
    terminal: bool,
    near: u64,
    pending: Duration,
    shown: bool,
}

const ERASE_LINE: &str = "\r\x1b[K";
/// Lines of a log should not come as fast as a terminal is redrawn.
const LOG_INTERVAL: Duration = Duration::from_secs(1);

impl StatusLine {
    /// For a budget of `near` bytes.
    pub fn new(near: u64) -> Self {
        let terminal = std::io::stderr().is_terminal();
        Self { before: Snapshot::default(), terminal, near, pending: Duration::ZERO, shown: false }
    }

    /// Shows `now`, `elapsed` after the last call.
    pub fn show(&mut self, now: &Snapshot, near_used: u64, elapsed: Duration) {
        self.pending += elapsed;
        if !self.terminal && self.pending < LOG_INTERVAL {
            return;
        }
        let line = status_line(&self.before, now, near_used, self.near, self.pending);
        if self.terminal {
            message::raw(&format!("{ERASE_LINE}{line}"));
        } else {
            message::line(line);
        }
        self.before = now.clone();
        self.pending = Duration::ZERO;
        self.shown = true;
    }

    /// Removes the line.
    pub fn clear(&mut self) {
        if self.terminal && std::mem::take(&mut self.shown) {
            message::raw(ERASE_LINE);
        }
    }
}

/// One line about the time between two snapshots. 100 % of stall is one thread that only waits.
fn status_line(before: &Snapshot, now: &Snapshot, near_used: u64, near: u64, elapsed: Duration) -> String {
    let since = now.since(before);
    let seconds = elapsed.as_secs_f64().max(1e-3);
    let rate = |counter| since.get(counter) as f64 / seconds / 1e9;
    format!(
        "near {} of {}  hit {}  read {:.2} GB/s  written {:.2} GB/s  stall {:.0} %",
        Bytes(near_used),
        Bytes(near),
        percent(since.near_hit_share()),
        rate(Counter::BytesIn),
        rate(Counter::BytesOut),
        rate(Counter::StallNs) * 100.0,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_of_the_interval() {
        let mut before = Snapshot::default();
        before.set(Counter::BytesIn, 5_000_000_000);
        let mut now = before.clone();
        now.set(Counter::BytesIn, 6_000_000_000);
        now.set(Counter::StallNs, 250_000_000);
        now.set(Counter::FaultsStaged, 1);
        let line = status_line(&before, &now, 1 << 20, 2 << 20, Duration::from_millis(500));
        assert_eq!(line, "near 1.0 MiB of 2.0 MiB  hit 100.0 %  read 2.00 GB/s  written 0.00 GB/s  stall 50 %");
    }
}
