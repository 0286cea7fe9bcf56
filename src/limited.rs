//! Runs a helper program to its end or its time limit, and keeps what it printed. What it has started dies with it: it gets a process
//! group of its own, which is asked to end first, so that launchers can end their ranks.

use nearfar_sys::child;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
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
}

impl Finished {
    /// True when it ended well.
    pub fn is_ok(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }

    /// Why it did not end well, in a line: its first words of error, since later ones are mostly consequences.
    pub fn problem(&self, limit: Duration) -> String {
        let Some(status) = self.status else { return format!("no end after {} s: killed", limit.as_secs()) };
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

/// Runs `command` for at most `limit`.
///
/// # Errors
/// It cannot be started.
pub fn run(command: &mut Command, limit: Duration) -> std::io::Result<Finished> {
    let start = Instant::now();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).spawn()?;
    // Readers, so that a talkative program does not block on a full pipe.
    let (stdout, stderr) = (reader(child.stdout.take()), reader(child.stderr.take()));
    let mut status = wait(&mut child, start + limit)?;
    if status.is_none() {
        child::send_group(&child, child::TERMINATE);
        let ended = wait(&mut child, Instant::now() + GRACE)?;
        child::send_group(&child, child::KILL);
        if ended.is_none() {
            child.wait()?;
        }
        status = None;
    }
    let join =
        |reader: std::thread::JoinHandle<Vec<u8>>| String::from_utf8_lossy(&reader.join().unwrap_or_default()).into_owned();
    Ok(Finished { status, stdout: join(stdout), stderr: join(stderr) })
}

fn reader(pipe: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(mut pipe) = pipe {
            // An error ends the text; what came before it is still worth showing.
            let _ = pipe.read_to_end(&mut text);
        }
        text
    })
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
        assert!(sleep.status.is_none() && start.elapsed() < Duration::from_secs(30));
        assert!(sleep.problem(limit).contains("killed"));
    }
}
