//! Removes what a rival needed (swap file, cgroups) at every end of the bench: normal, error, Ctrl-C, even SIGKILL.
//!
//! A shell in a process group of its own waits for the end of its input; the kernel closes that pipe whenever the bench ends. So no
//! signal handler is needed, and there is one clean-up for all exits. Rejected: a handler for SIGINT (misses SIGKILL and panics).

use anyhow::{Context, Result};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

/// $1: swap file, $2: prefix of the cgroups' directories. Programs are killed first: swapoff would wait for all their pages.
const SCRIPT: &str = r#"
trap '' INT TERM HUP QUIT PIPE
while read -r _; do :; done
for group in "$2"*; do
    [ -d "$group" ] || continue
    while read -r pid; do kill -9 "$pid"; done < "$group/cgroup.procs"
    for _ in 1 2 3 4 5 6 7 8 9 10; do rmdir "$group" && break; sleep 0.2; done
done 2>/dev/null
if [ -e "$1" ]; then
    swapoff "$1" 2>/dev/null
    rm -f "$1"
fi
"#;

/// Cleans up when dropped, or when this process ends.
#[derive(Debug)]
pub struct Janitor {
    shell: Child,
    // `Option`, so that drop can close the pipe before it waits.
    pipe: Option<ChildStdin>,
}

impl Janitor {
    /// Starts the shell. Nothing needs to exist yet; what does not exist at the end is passed over.
    pub fn start(swap_file: &Path, cgroup_prefix: &Path) -> Result<Self> {
        let mut shell = Command::new("/bin/sh")
            .args(["-c", SCRIPT, "nearfar-bench-janitor"])
            .args([swap_file, cgroup_prefix])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .context("cannot start /bin/sh to clean up after the bench")?;
        let pipe = shell.stdin.take();
        Ok(Self { shell, pipe })
    }
}

impl Drop for Janitor {
    fn drop(&mut self) {
        self.pipe = None;
        // It cannot be waited for only when somebody else has reaped it: then it has ended.
        let _ = self.shell.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removes_the_file_when_dropped() {
        let file = std::env::temp_dir().join(format!("nearfar-janitor-{}", std::process::id()));
        std::fs::write(&file, "not really swap").expect("a file in the temporary directory");
        drop(Janitor::start(&file, Path::new("/nonexistent/prefix-")).expect("sh"));
        assert!(!file.exists());
    }
}
