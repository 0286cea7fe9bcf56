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
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Between looks at the memory.
const TICK: Duration = Duration::from_millis(50);
/// Between asking a run to end and killing it.
const GRACE: Duration = Duration::from_secs(2);
/// Lines of errors that are kept.
const LAST_LINES: usize = 12;
/// Looks at the memory that are enough to know it.
const ENOUGH_LOOKS: usize = 10;
/// Time for the last output to be read once the program has ended. A process that left the group may keep the pipe open for ever.
const DRAIN: Duration = Duration::from_secs(1);

/// What a run came to.
#[derive(Debug)]
pub struct Attempt {
    /// How it ended; `None` at the time limit.
    pub end: Option<End>,
    /// From its start to its end.
    pub wall_s: f64,
    /// Processor time of what it waited for, with all that these had waited for.
    pub cpu_s: f64,
    /// Most memory of all its processes together that was seen, or of its largest one.
    pub memory: u64,
    /// Stands for all that it printed; `None` when something that it left behind may print more.
    pub printed: Option<u64>,
    /// What it said to standard error, where that was not passed on.
    pub errors: Errors,
}

/// What a run said to standard error.
#[derive(Debug, Default)]
pub struct Errors {
    /// Lines of nearfar's own before the program began.
    pub notes: Vec<String>,
    /// The last lines.
    pub last: VecDeque<String>,
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
    let (start, before) = (Instant::now(), cpu_s());
    let mut process = signals.spawn(child::end_with_parent(command))?;
    let writes = Arc::new(AtomicBool::new(false));
    let writing = Arc::clone(&writes);
    let printed = process.stdout.take().map(|pipe| std::thread::spawn(move || digest(pipe, shown, &writing)));
    let errors = process.stderr.take().map(|pipe| std::thread::spawn(move || said(pipe)));
    let mut seen = Seen::default();
    let end = watch(signals, &mut process, start, limit, &mut seen);
    // What it left running, and an end that could not be waited for.
    child::send_group(&process, child::KILL);
    let end = end?;
    let wall_s = start.elapsed().as_secs_f64();
    Ok(Attempt {
        end,
        wall_s,
        cpu_s: cpu_s() - before,
        // That of the largest process has pages of files in it.
        memory: if seen.looks < ENOUGH_LOOKS { used(UsageOf::Children).resident_peak.max(seen.most) } else { seen.most },
        printed: joined(printed, &writes),
        errors: joined(errors, &AtomicBool::new(false)).unwrap_or_default(),
    })
}

fn cpu_s() -> f64 {
    let children = used(UsageOf::Children);
    (children.user + children.system).as_secs_f64()
}

/// Looks at the memory of a run.
#[derive(Default)]
struct Seen {
    looks: usize,
    most: u64,
}

fn watch(
    signals: &Signals,
    process: &mut Child,
    start: Instant,
    limit: Option<Duration>,
    seen: &mut Seen,
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
        *seen = Seen { looks: seen.looks + 1, most: seen.most.max(memory::of_group(&root, process.id())) };
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

/// What the thread came to, unless it still waits for its pipe: then it is left to itself. `writes`: it passes on what it has read, to
/// somebody who may be slow.
fn joined<T>(thread: Option<JoinHandle<T>>, writes: &AtomicBool) -> Option<T> {
    let (thread, mut begin) = (thread?, Instant::now());
    while !thread.is_finished() && begin.elapsed() < DRAIN {
        if writes.load(Ordering::Relaxed) {
            begin = Instant::now();
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    if thread.is_finished() { thread.join().ok() } else { None }
}

/// A number for all that comes out of `pipe`, which is also passed on when it is to be shown.
fn digest(mut pipe: impl Read, shown: bool, writes: &AtomicBool) -> u64 {
    // Full parts are hashed: how reads cut it does not matter.
    let (mut hasher, mut part, mut filled) = (DefaultHasher::new(), vec![0; 64 << 10], 0);
    loop {
        match pipe.read(&mut part[filled..]) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => {
                hasher.write(&part[..filled]);
                return hasher.finish();
            }
            Ok(len) => {
                let new = filled..filled + len;
                if shown {
                    writes.store(true, Ordering::Relaxed);
                    // A reader that closed the pipe has seen enough.
                    let _ = std::io::stdout().write_all(&part[new.clone()]).and_then(|()| std::io::stdout().flush());
                    writes.store(false, Ordering::Relaxed);
                }
                filled = new.end;
                if filled == part.len() {
                    hasher.write(&part);
                    filled = 0;
                }
            }
        }
    }
}

fn said(pipe: impl Read) -> Errors {
    let (mut errors, mut begun) = (Errors::default(), false);
    for line in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line).into_owned();
        begun |= !line.starts_with("nearfar: ") || line.starts_with("nearfar: near ");
        if !begun && errors.notes.len() < LAST_LINES {
            errors.notes.push(line.clone());
        }
        errors.last.push_back(line);
        if errors.last.len() > LAST_LINES {
            errors.last.pop_front();
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_has_a_number() {
        let of = |text: &str| digest(text.as_bytes(), false, &AtomicBool::new(false));
        assert_eq!(of("a\nb"), of("a\nb"));
        assert_ne!(of("a\nb"), of("a\nc"));
        // However reads cut it, in more than one part of the hash.
        let long: Vec<u8> = (0..200_000u32).map(|at| (at % 251) as u8).collect();
        let whole = digest(&long[..], false, &AtomicBool::new(false));
        for at in [1, 65_535, 65_536, 65_537, 150_000] {
            let cut = long[..at].chain(&long[at..]);
            assert_eq!(digest(cut, false, &AtomicBool::new(false)), whole, "cut at {at}");
        }
        for at in [0, 100_000, 199_999] {
            let mut other = long.clone();
            other[at] ^= 1;
            assert_ne!(digest(&other[..], false, &AtomicBool::new(false)), whole, "another byte at {at}");
        }
        let text: String = (0..20).map(|line| format!("{line}\n")).collect();
        assert_eq!(said(text.as_bytes()).last.front().map(String::as_str), Some("8"));
        let errors = said("nearfar: slower path\nnearfar: near 1 MiB at peak\nnearfar: far\n".as_bytes());
        assert_eq!(errors.notes, ["nearfar: slower path"]);
    }

    #[test]
    fn a_pipe_that_stays_open_is_not_waited_for() {
        let (reader, _writer) = std::io::pipe().expect("a pipe");
        let writes = AtomicBool::new(false);
        assert_eq!(joined(Some(std::thread::spawn(move || digest(reader, false, &AtomicBool::new(false)))), &writes), None);
    }
}
