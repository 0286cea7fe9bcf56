//! Lowers the highest clock of all CPUs, where the user may (cpufreq), and puts it back at every end: normal, error, Ctrl-C, SIGKILL.
//!
//! A shell in a process group of its own holds the old values and waits for the end of its input, which the kernel closes whenever
//! this process ends. What the clock really was is not asked here: arithmetic timed beside the program tells.

use anyhow::{Context, Result};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

/// Where the kernel has it.
pub const CPUFREQ: &str = "/sys/devices/system/cpu/cpufreq";

/// Share of the present highest clock that is set.
const SHARE: f64 = 0.6;
/// A smaller change would not show.
const MOST: f64 = 0.85;

const SCRIPT: &str = r#"
trap '' INT TERM HUP QUIT PIPE
while read -r _; do :; done
while [ $# -ge 2 ]; do echo "$2" > "$1"; shift 2; done
"#;

/// The highest clocks of this machine; put back when dropped.
#[derive(Debug)]
pub struct Clock {
    /// File, value before, value to be set, in kHz.
    limits: Vec<(PathBuf, u64, u64)>,
    janitor: Child,
    // `Option`, so that drop can close the pipe before it waits.
    pipe: Option<ChildStdin>,
}

impl Clock {
    /// Looks in `dir`; changes nothing yet.
    ///
    /// # Errors
    /// Why the clock cannot be lowered, for people.
    pub fn find(dir: &Path) -> Result<Self, String> {
        let mut limits = Vec::new();
        for policy in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            let number =
                |name: &str| -> Option<u64> { std::fs::read_to_string(policy.path().join(name)).ok()?.trim().parse().ok() };
            let (Some(now), Some(least)) = (number("scaling_max_freq"), number("cpuinfo_min_freq")) else { continue };
            let lower = ((now as f64 * SHARE) as u64).max(least);
            if lower as f64 > now as f64 * MOST {
                return Err(format!(
                    "the clock can go down to {} MHz only, too close to {} MHz to tell anything",
                    lower / 1000,
                    now / 1000
                ));
            }
            limits.push((policy.path().join("scaling_max_freq"), now, lower));
        }
        let Some((file, now, _)) = limits.first() else {
            return Err(format!("the clock cannot be set: nothing in {} (a virtual machine or container?)", dir.display()));
        };
        // The old value: what may be written, without a change.
        std::fs::write(file, now.to_string())
            .map_err(|error| format!("{}: {error}; root may lower the clock", file.display()))?;
        Self::guarded(limits).map_err(|error| format!("{error:#}"))
    }

    fn guarded(limits: Vec<(PathBuf, u64, u64)>) -> Result<Self> {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", SCRIPT, "nearfar-clock-janitor"]);
        for (file, before, _) in &limits {
            shell.arg(file).arg(before.to_string());
        }
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        let mut janitor = shell.spawn().context("cannot start /bin/sh to put the clock back")?;
        let pipe = janitor.stdin.take();
        Ok(Self { limits, janitor, pipe })
    }

    /// The clock in MHz that `lower` sets for the first CPU, and the one before.
    pub fn mhz(&self) -> (u64, u64) {
        self.limits.first().map_or((0, 0), |(_, before, lower)| (lower / 1000, before / 1000))
    }

    /// Lowers it.
    pub fn lower(&self) -> Result<()> {
        self.write(|(_, _, lower)| *lower)
    }

    /// Puts it back.
    pub fn restore(&self) -> Result<()> {
        self.write(|(_, before, _)| *before)
    }

    fn write(&self, value: impl Fn(&(PathBuf, u64, u64)) -> u64) -> Result<()> {
        for limit in &self.limits {
            std::fs::write(&limit.0, value(limit).to_string()).with_context(|| format!("cannot set {}", limit.0.display()))?;
        }
        Ok(())
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        self.pipe = None;
        // It cannot be waited for only when somebody else has reaped it: then it has ended.
        let _ = self.janitor.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(dir: &Path, name: &str, now: u64, least: u64) -> PathBuf {
        let policy = dir.join(name);
        std::fs::create_dir_all(&policy).expect("a directory");
        std::fs::write(policy.join("scaling_max_freq"), now.to_string()).expect("written");
        std::fs::write(policy.join("cpuinfo_min_freq"), least.to_string()).expect("written");
        policy.join("scaling_max_freq")
    }

    #[test]
    fn the_clock_is_put_back_at_every_end() {
        let dir = std::env::temp_dir().join(format!("nearfar-clock-{}", std::process::id()));
        let read = |file: &Path| std::fs::read_to_string(file).expect("readable").trim().to_owned();
        let (one, other) = (policy(&dir, "policy0", 3_000_000, 400_000), policy(&dir, "policy8", 2_000_000, 1_500_000));
        let clock = Clock::find(&dir).expect("it can be lowered");
        clock.lower().expect("lowered");
        assert_eq!((read(&one), read(&other)), ("1800000".into(), "1500000".into()));
        clock.restore().expect("restored");
        assert_eq!(read(&one), "3000000");
        clock.lower().expect("lowered");
        drop(clock);
        assert_eq!((read(&one), read(&other)), ("3000000".into(), "2000000".into()));
        policy(&dir, "policy8", 2_000_000, 1_900_000);
        assert!(Clock::find(&dir).expect_err("too little").contains("too close to"));
        std::fs::remove_dir_all(&dir).expect("removed");
        assert!(Clock::find(&dir).expect_err("nothing there").contains("virtual machine"));
    }
}
