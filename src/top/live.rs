//! The full-screen view while it runs: looks, draws, and does what keys say.

use crate::top::choice::{Choice, Wish};
use crate::top::display::{Look, draw};
use crate::top::jobs::Jobs;
use crate::ui::screen::{Screen, has_colour};
use anyhow::Context;
use nearfar_sys::child::{Signals, asks_to_end, die_by};
use nearfar_sys::event::{now_ns, wait_readable};
use std::os::fd::AsRawFd;
use std::process::ExitCode;
use std::time::Duration;

/// It is drawn so often at the least: a terminal that has got another size is not noticed otherwise.
const REDRAW: Duration = Duration::from_millis(250);

/// Shows `jobs`, which have been looked at once, until somebody ends it.
pub fn show(mut jobs: Jobs, interval: Duration) -> anyhow::Result<ExitCode> {
    let signals = Signals::catch().context("signals cannot be caught")?;
    let mut screen = Screen::open().context("the terminal cannot be used; \"nearfar top --once\" needs none")?;
    let mut choice = Choice::default();
    let colour = has_colour();
    let mut last = now_ns();
    // Stands still while it is paused: how long ago a job has ended does not change.
    let mut shown_ns = last;
    loop {
        let passed = Duration::from_nanos(now_ns().saturating_sub(last));
        if passed >= interval && !choice.paused {
            last = now_ns();
            jobs.look(last);
        }
        if !choice.paused {
            shown_ns = now_ns();
        }
        if let Some(id) = choice.selected(&jobs.list) {
            jobs.inspect(id);
        }
        let drawn = screen.draw(|frame| draw(frame, &jobs, &choice, Look { colour, interval, now_ns: shown_ns }));
        let left = interval.saturating_sub(Duration::from_nanos(now_ns().saturating_sub(last)));
        let wait = if choice.paused { REDRAW } else { left.min(REDRAW) };
        let mut ready = [false; 2];
        wait_readable(&[signals.as_raw_fd(), screen.keyboard()], wait.as_millis() as i32 + 1, &mut ready);
        while let Some(arrived) = signals.next() {
            if asks_to_end(arrived.signal) {
                drop(screen);
                die_by(arrived.signal);
            }
        }
        let keys = if ready[1] { screen.keys() } else { Ok(Vec::new()) };
        // The terminal is gone, and nobody is left to be told.
        let (Ok(()), Ok(keys)) = (drawn, keys) else { return Ok(ExitCode::SUCCESS) };
        if keys.into_iter().any(|key| choice.press(key, &jobs.list) == Wish::End) {
            return Ok(ExitCode::SUCCESS);
        }
    }
}
