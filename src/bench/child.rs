//! Runs one program to its end or its time limit, and keeps what it printed.
//!
//! Invariant: the program is gone when `run` returns. Does not interpret output.

use anyhow::{Context, Result};
use std::io::Read;
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
    /// Wall seconds.
    pub seconds: f64,
}

/// Runs `command` for at most `limit`. `kill_rest` is called after the program itself was killed, to end what it had started.
pub fn run(command: &mut Command, limit: Duration, kill_rest: impl FnOnce()) -> Result<Finished> {
    let start = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {}", command.get_program().to_string_lossy()))?;
    // Readers, so that a talkative program does not block on a full pipe.
    let stdout = reader(child.stdout.take());
    let stderr = reader(child.stderr.take());
    let status = wait(&mut child, start, limit)?;
    let seconds = start.elapsed().as_secs_f64();
    if status.is_none() {
        // ESRCH only: it has ended meanwhile.
        let _ = child.kill();
        kill_rest();
        child.wait()?;
    }
    let join =
        |handle: std::thread::JoinHandle<Vec<u8>>| String::from_utf8_lossy(&handle.join().unwrap_or_default()).into_owned();
    Ok(Finished { status, stdout: join(stdout), stderr: join(stderr), seconds })
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
fn wait(child: &mut Child, start: Instant, limit: Duration) -> Result<Option<ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if start.elapsed() >= limit {
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_kept_and_the_limit_kills() {
        let echo = run(Command::new("sh").args(["-c", "echo out; echo err >&2"]), Duration::from_secs(10), || {}).expect("sh");
        assert_eq!((echo.stdout.as_str(), echo.stderr.as_str()), ("out\n", "err\n"));
        let sleep = run(Command::new("sleep").arg("60"), Duration::from_millis(50), || {}).expect("sleep");
        assert!(sleep.status.is_none() && sleep.seconds < 30.0);
    }
}
