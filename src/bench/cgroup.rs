//! One memory cgroup per run: the limit that kernel swap and mapped files run under, and the meter of everyone's peak memory.
//!
//! Works with cgroup v1 and v2. Invariant: a group is empty and removed when its value is dropped. Needs root.

use crate::machine::{is_root, read};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Which interface the memory controller has here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// A hierarchy of its own at /sys/fs/cgroup/memory.
    V1,
    /// The unified hierarchy at /sys/fs/cgroup.
    V2,
}

/// A place where groups can be made.
#[derive(Clone, Debug)]
pub struct Controller {
    version: Version,
    root: PathBuf,
}

/// A group with its limit.
#[derive(Debug)]
pub struct Group {
    version: Version,
    directory: PathBuf,
}

impl Controller {
    /// Finds the memory controller. Errors say in words why there is none.
    pub fn find() -> Result<Self> {
        if !is_root() {
            bail!("needs root, to limit memory with a cgroup");
        }
        let v1 = Path::new("/sys/fs/cgroup/memory");
        if v1.join("memory.limit_in_bytes").exists() {
            return Ok(Self { version: Version::V1, root: v1.to_owned() });
        }
        let v2 = Path::new("/sys/fs/cgroup");
        if read("/sys/fs/cgroup/cgroup.controllers").split_whitespace().any(|name| name == "memory") {
            // Children of the root have memory files only once the root hands the controller down.
            std::fs::write(v2.join("cgroup.subtree_control"), "+memory")
                .context("cannot enable the memory controller of cgroup v2")?;
            return Ok(Self { version: Version::V2, root: v2.to_owned() });
        }
        bail!("this kernel or container has no memory cgroup controller")
    }

    /// The version, as people call it.
    pub fn name(&self) -> &'static str {
        match self.version {
            Version::V1 => "cgroup v1",
            Version::V2 => "cgroup v2",
        }
    }

    /// How readily the kernel swaps (0 to 100 or 200) rather than dropping file pages.
    pub fn swappiness(&self) -> String {
        let own = self.root.join("memory.swappiness");
        if self.version == Version::V1 { read(&own.to_string_lossy()) } else { read("/proc/sys/vm/swappiness") }
    }

    /// What the directories of all groups of this process begin with.
    pub fn prefix(&self) -> PathBuf {
        self.root.join(format!("nearfar-bench-{}-", std::process::id()))
    }

    /// Makes a group limited to `limit` bytes of memory; swap is not limited.
    pub fn create(&self, limit: Option<u64>) -> Result<Group> {
        let directory = PathBuf::from(format!("{}run", self.prefix().display()));
        std::fs::create_dir(&directory).with_context(|| format!("cannot make the cgroup {}", directory.display()))?;
        let group = Group { version: self.version, directory };
        if let Some(limit) = limit {
            let file = match self.version {
                Version::V1 => "memory.limit_in_bytes",
                Version::V2 => "memory.max",
            };
            std::fs::write(group.directory.join(file), limit.to_string())
                .with_context(|| format!("cannot set {file} to {limit}"))?;
        }
        Ok(group)
    }
}

impl Group {
    /// A command that enters the group and becomes `program`; arguments can be added to it.
    pub fn enter(&self, program: &Path) -> Command {
        // A shell, because moving a child before exec takes unsafe code otherwise. Its own memory is gone with exec.
        let mut command = Command::new("/bin/sh");
        command.args(["-c", r#"echo $$ > "$0" && exec "$@""#]).arg(self.directory.join("cgroup.procs")).arg(program);
        command
    }

    /// The most bytes of memory that the group's programs had at a time, page cache included; `None` on kernels that do not tell.
    pub fn peak_bytes(&self) -> Option<u64> {
        let file = match self.version {
            Version::V1 => "memory.max_usage_in_bytes",
            Version::V2 => "memory.peak",
        };
        std::fs::read_to_string(self.directory.join(file)).ok()?.trim().parse().ok()
    }

    /// How many programs of the group the kernel has killed for want of memory; `None` where it does not tell.
    pub fn oom_kills(&self) -> Option<u64> {
        nearfar_sys::cgroup::oom_kills(&self.directory.to_string_lossy(), |path| std::fs::read_to_string(path).ok())
    }

    /// Kills every program in the group.
    pub fn kill_all(&self) {
        let pids = read(&self.directory.join("cgroup.procs").to_string_lossy());
        // One that has ended meanwhile is not there.
        pids.split_whitespace().filter_map(|pid| pid.parse().ok()).for_each(nearfar_sys::process::kill);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for _ in 0..50 {
            if std::fs::remove_dir(&self.directory).is_ok() {
                return;
            }
            self.kill_all();
            // The kernel takes a moment to empty a group after its last program's end.
            std::thread::sleep(Duration::from_millis(20));
        }
        // The janitor tries again at the end.
    }
}
