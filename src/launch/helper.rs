//! Runs a helper program to its end or its time limit, and keeps what it printed. What it has started dies with it: it gets a process
//! group of its own, which is asked to end first, so that launchers can end their ranks. Keys of the terminal do not reach that group,
//! so the program is also asked to end when this command does.

use nearfar_sys::child;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What a program left behind.
#[derive(Debug)]
pub struct Finished {
    /// Its end; `None` when it was killed at the time limit.
    pub status: Option<ExitStatus>,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
    /// Wall seconds to its end, or to the limit.
    pub seconds: f64,
}

impl Finished {
    /// True when it ended well.
    pub fn is_ok(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }

    /// Why it did not end well, in a line: its first words of error, since later ones are mostly consequences.
    pub fn problem(&self, limit: Duration) -> String {
        let Some(status) = self.status else { return format!("it did not end within {} s and was killed", limit.as_secs()) };
        let is_word = |line: &&str| line.chars().any(char::is_alphabetic);
        let said = self.stderr.lines().chain(self.stdout.lines()).map(str::trim).find(is_word);
        let mut said = said.unwrap_or("it said nothing").to_owned();
        if let Some((at, _)) = said.char_indices().nth(200) {
            said.truncate(at);
        }
        format!("{status}: {said}")
    }
}

/// Time between asking a group to end and killing it.
const GRACE: Duration = Duration::from_millis(500);

/// Time for the last output to be read once the program has ended. A process that left the group may keep the pipe open for ever.
const DRAIN: Duration = Duration::from_secs(1);

/// Runs `command` for at most `limit`.
///
/// # Errors
/// It, or a thread that reads what it prints, cannot be started.
pub fn run(command: &mut Command, limit: Duration) -> std::io::Result<Finished> {
    let start = Instant::now();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = child::end_with_parent(command).spawn()?;
    // Readers, so that a talkative program does not block on a full pipe.
    let pipes = (child.stdout.take(), child.stderr.take());
    let (stdout, stderr) = match Reader::start(pipes.0).and_then(|stdout| Ok((stdout, Reader::start(pipes.1)?))) {
        Ok(readers) => readers,
        Err(error) => {
            child::send_group(&child, child::KILL);
            child.wait()?;
            return Err(error);
        }
    };
    let mut status = wait(&mut child, start + limit)?;
    let seconds = start.elapsed().as_secs_f64();
    if status.is_none() {
        child::send_group(&child, child::TERMINATE);
        let ended = wait(&mut child, Instant::now() + GRACE)?;
        child::send_group(&child, child::KILL);
        if ended.is_none() {
            child.wait()?;
        }
        status = None;
    }
    let end = Instant::now() + DRAIN;
    Ok(Finished { status, stdout: stdout.text(end), stderr: stderr.text(end), seconds })
}

/// A thread that reads a pipe, and what it has read so far.
struct Reader {
    text: Arc<Mutex<Vec<u8>>>,
    thread: JoinHandle<()>,
}

impl Reader {
    fn start(pipe: Option<impl Read + Send + 'static>) -> std::io::Result<Self> {
        let text = Arc::<Mutex<Vec<u8>>>::default();
        let filled = Arc::clone(&text);
        let read = move || {
            let Some(mut pipe) = pipe else { return };
            let mut part = [0; 8192];
            loop {
                match pipe.read(&mut part) {
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    // An error ends the text; what came before it is still worth showing.
                    Ok(0) | Err(_) => return,
                    Ok(len) => filled.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&part[..len]),
                }
            }
        };
        Ok(Self { text, thread: std::thread::Builder::new().spawn(read)? })
    }

    /// What was read until the end of the pipe or `end`, after which the thread is left to itself.
    fn text(self, end: Instant) -> String {
        while !self.thread.is_finished() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
        String::from_utf8_lossy(&self.text.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}

/// Polls, since the standard library cannot wait with a limit. Programs time themselves, so the interval costs no accuracy.
fn wait(child: &mut Child, end: Instant) -> std::io::Result<Option<ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= end {
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_kept_and_the_limit_kills_all_of_the_group() {
        let limit = Duration::from_secs(20);
        let echo = run(Command::new("sh").args(["-c", "echo out; echo '---'>&2; echo err >&2; exit 3"]), limit).expect("sh");
        assert_eq!((echo.stdout.as_str(), echo.is_ok()), ("out\n", false));
        assert_eq!(echo.problem(limit), "exit status: 3: err");
        // The reader of the pipe would wait for the sleep in the background if it lived on.
        let start = Instant::now();
        let limit = Duration::from_millis(50);
        let sleep = run(Command::new("sh").args(["-c", "trap '' TERM; sleep 60 & wait; wait"]), limit).expect("sh");
        assert!(sleep.status.is_none() && sleep.seconds < 30.0 && start.elapsed() < Duration::from_secs(30));
        assert!(sleep.problem(limit).contains("killed"));
    }

    #[test]
    fn a_process_that_left_the_group_and_keeps_the_pipe_is_not_waited_for() {
        let (start, limit) = (Instant::now(), Duration::from_secs(20));
        let left = run(Command::new("sh").args(["-c", "setsid sleep 30 & echo out"]), limit).expect("sh");
        assert!(left.is_ok() && left.stdout == "out\n", "{left:?}");
        assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    }
}
