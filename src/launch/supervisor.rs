//! A program of the user's while it runs: signals are passed on, and its end is told.

use crate::exit;
use crate::ui::message;
use anyhow::Context;
use nearfar_sys::child::{self, Signals};
use nearfar_sys::event::wait_readable;
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ExitCode, ExitStatus};
use std::time::{Duration, Instant};

/// Often enough for a status line and for memory of processes that died to be given back, seldom enough to cost nothing.
const TICK: Duration = Duration::from_millis(200);

/// Stands for a wait status with neither code nor signal, which does not exist.
const SIGKILL: i32 = 9;

/// How the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// With this status.
    Status(u8),
    /// By this signal.
    Signal(i32),
}

impl From<ExitStatus> for End {
    fn from(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => End::Status(code as u8),
            (None, signal) => End::Signal(signal.unwrap_or(SIGKILL)),
        }
    }
}

/// The program.
pub struct Supervisor {
    /// Its process.
    pub child: Child,
    /// What this command is sent meanwhile.
    pub signals: Signals,
}

impl Supervisor {
    /// Waits for the end of the program, passing signals on; calls `tick` now and then, and tells it how long ago the program was asked to end.
    pub fn until_end(&mut self, mut tick: impl FnMut(Option<Duration>)) -> anyhow::Result<End> {
        let (mut last, mut asked) = (Instant::now(), None);
        loop {
            while let Some(arrived) = self.signals.next() {
                if child::asks_to_end(arrived.signal) {
                    asked = Some(Instant::now());
                }
                // What the terminal sent has reached the program as well, which is in the same process group.
                if !arrived.from_kernel {
                    child::send(&self.child, arrived.signal);
                }
            }
            if let Some(status) = self.child.try_wait().context("waiting for the program")? {
                return Ok(End::from(status));
            }
            let left = TICK.saturating_sub(last.elapsed());
            if left.is_zero() {
                last = Instant::now();
                tick(asked.map(|at| at.elapsed()));
            } else {
                wait_readable(&[self.signals.as_raw_fd()], left.as_millis() as i32 + 1, &mut [false]);
            }
        }
    }
}

/// The status of a program that could not be executed, which is told.
pub fn not_executed(program: &Path, error: &std::io::Error) -> ExitCode {
    message::line(format_args!("{} cannot be executed: {error}", program.display()));
    let missing = error.kind() == std::io::ErrorKind::NotFound;
    ExitCode::from(if missing { exit::NOT_FOUND } else { exit::CANNOT_EXECUTE })
}

/// Ends this command as the program has ended.
pub fn end_like(end: End) -> ExitCode {
    match end {
        End::Status(status) => ExitCode::from(status),
        End::Signal(signal) => child::die_by(signal),
    }
}
