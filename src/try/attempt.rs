//! One run of the program, plainly or under nearfar: to its end, its time limit, or the moment when the user has enough.
//!
//! It has a process group of its own, so that everything it starts can be ended with it. What it prints is compared, not kept.

use super::memory;
use crate::launch::supervisor::End;
use anyhow::Context;
use nearfar_sys::child::{self, Signals};
use nearfar_sys::event::wait_readable;
use nearfar_sys::root::Root;
use nearfar_sys::usage::{UsageOf, used};
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hasher};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Between looks at the memory.
const TICK: Duration = Duration::from_millis(50);
/// Between asking a run to end and killing it.
const GRACE: Duration = Duration::from_secs(2);
/// Lines of errors that are kept.
const LAST_LINES: usize = 12;

/// What a run came to.
#[derive(Debug)]
pub struct Attempt {
    /// How it ended; `None` at the time limit.
    pub end: Option<End>,
    /// From its start to its end.
    pub wall_s: f64,
    /// Most memory of all its processes together that was seen, or of its largest one.
    pub memory: u64,
    /// Stands for all that it printed.
    pub printed: u64,
    /// The last that it said to standard error, where that was not passed on.
    pub errors: Vec<String>,
}

/// The user has enough.
#[derive(Debug)]
pub struct Interrupted(pub i32);

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "interrupted by {}", child::signal_name(self.0))
    }
}

impl std::error::Error for Interrupted {}

/// Runs `command` for at most `limit`. `shown`: what it prints is passed on.
///
/// # Errors
/// [`Interrupted`], after its end; what makes it impossible to run. An [`std::io::Error`] is that of executing it.
pub fn run(signals: &Signals, command: &mut Command, limit: Option<Duration>, shown: bool) -> anyhow::Result<Attempt> {
    command.stdout(Stdio::piped()).stderr(if shown { Stdio::inherit() } else { Stdio::piped() }).process_group(0);
    let start = Instant::now();
    let mut process = signals.spawn(child::end_with_parent(command))?;
    let printed = process.stdout.take().map(|pipe| std::thread::spawn(move || digest(pipe, shown)));
    let errors = process.stderr.take().map(|pipe| std::thread::spawn(move || last_lines(pipe)));
    let mut seen = 0;
    let end = watch(signals, &mut process, start, limit, &mut seen);
    // What it left running, and an end that could not be waited for.
    child::send_group(&process, child::KILL);
    let end = end?;
    let wall_s = start.elapsed().as_secs_f64();
    Ok(Attempt {
        end,
        wall_s,
        memory: seen.max(used(UsageOf::Children).resident_peak),
        printed: joined(printed),
        errors: joined(errors),
    })
}

fn watch(
    signals: &Signals,
    process: &mut Child,
    start: Instant,
    limit: Option<Duration>,
    memory: &mut u64,
) -> anyhow::Result<Option<End>> {
    let root = Root::this();
    loop {
        while let Some(arrived) = signals.next() {
            child::send_group(process, arrived.signal);
            if child::asks_to_end(arrived.signal) {
                wait_for_end(process);
                return Err(Interrupted(arrived.signal).into());
            }
        }
        if let Some(status) = process.try_wait().context("waiting for the program")? {
            return Ok(Some(End::from(status)));
        }
        if limit.is_some_and(|limit| start.elapsed() > limit) {
            child::send_group(process, child::TERMINATE);
            wait_for_end(process);
            return Ok(None);
        }
        *memory = (*memory).max(memory::of_group(&root, process.id()));
        wait_readable(&[signals.as_raw_fd()], TICK.as_millis() as i32, &mut [false]);
    }
}

/// After it was asked to end: until it does, or is killed.
fn wait_for_end(process: &mut Child) {
    let begin = Instant::now();
    while matches!(process.try_wait(), Ok(None)) && begin.elapsed() < GRACE {
        std::thread::sleep(Duration::from_millis(10));
    }
    child::send_group(process, child::KILL);
    let _ = process.wait();
}

fn joined<T: Default>(thread: Option<JoinHandle<T>>) -> T {
    thread.and_then(|thread| thread.join().ok()).unwrap_or_default()
}

/// A number for all that comes out of `pipe`, which is also passed on when it is to be shown.
fn digest(mut pipe: impl Read, shown: bool) -> u64 {
    let (mut hasher, mut part) = (DefaultHasher::new(), vec![0; 64 << 10]);
    loop {
        match pipe.read(&mut part) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => return hasher.finish(),
            Ok(len) => {
                // Byte by byte: how reads cut it does not matter.
                part[..len].iter().for_each(|&byte| hasher.write_u8(byte));
                if shown {
                    // A reader that closed the pipe has seen enough.
                    let _ = std::io::stdout().write_all(&part[..len]).and_then(|()| std::io::stdout().flush());
                }
            }
        }
    }
}

fn last_lines(pipe: impl Read) -> Vec<String> {
    let mut last = VecDeque::new();
    for line in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
        last.push_back(String::from_utf8_lossy(&line).into_owned());
        if last.len() > LAST_LINES {
            last.pop_front();
        }
    }
    last.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_has_a_number() {
        let of = |text: &str| digest(text.as_bytes(), false);
        assert_eq!(of("a\nb"), of("a\nb"));
        assert_ne!(of("a\nb"), of("a\nc"));
        let text: String = (0..20).map(|line| format!("{line}\n")).collect();
        assert_eq!(last_lines(text.as_bytes()).first().map(String::as_str), Some("8"));
    }
}
