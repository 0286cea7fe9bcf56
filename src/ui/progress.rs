//! A progress bar on standard error, where that is a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How far the probe has come.
pub struct Progress(ProgressBar);

impl Progress {
    /// A bar of `steps` steps; nothing is shown when `quiet` or when standard error is no terminal.
    pub fn new(steps: u64, quiet: bool) -> Self {
        let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr_with_hz(4) };
        let bar = ProgressBar::with_draw_target(Some(steps), target);
        if let Ok(style) = ProgressStyle::with_template("{elapsed_precise} {bar:30} {pos}/{len} {wide_msg}") {
            bar.set_style(style);
        }
        Self(bar)
    }

    /// One step begins. The line is drawn now and not by a thread of its own, which would take CPU time from what is measured.
    pub fn step(&self, what: &str) {
        self.0.set_message(what.to_owned());
        self.0.inc(1);
        self.0.tick();
    }

    /// Takes the bar away.
    pub fn end(self) {
        self.0.finish_and_clear();
    }
}
