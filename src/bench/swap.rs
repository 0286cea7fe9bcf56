//! A swap file beside the far tier, so that kernel swap uses the same disk.
//!
//! Invariant: only used with a janitor that removes it; dropping the value removes it as well. Needs root.

use anyhow::{Context, Result, bail};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A swap file in use.
#[derive(Debug)]
pub struct SwapFile {
    path: PathBuf,
}

/// The name that the swap file of this process has in directory `far`.
pub fn path_in(far: &Path) -> PathBuf {
    far.join(format!(".nearfar-bench-{}.swap", std::process::id()))
}

impl SwapFile {
    /// Makes a swap file of `bytes` in `far` and turns it on before all other swap.
    pub fn enable(far: &Path, bytes: u64) -> Result<Self> {
        let path = path_in(far);
        std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .context("cannot create the swap file")?;
        let swap = Self { path };
        // Real blocks are needed: swapon refuses a file with holes.
        tool(Command::new("fallocate").args(["-l", &bytes.to_string()]).arg(&swap.path))?;
        tool(Command::new("mkswap").arg(&swap.path))?;
        tool(Command::new("swapon").args(["-p", "32767"]).arg(&swap.path))?;
        Ok(swap)
    }
}

impl Drop for SwapFile {
    fn drop(&mut self) {
        // Fails when it was never turned on.
        let _ = Command::new("swapoff").arg(&self.path).output();
        let _ = std::fs::remove_file(&self.path);
    }
}

fn tool(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("cannot run {name}"))?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        bail!("{name} failed: {}", why.lines().next().unwrap_or("no reason given"));
    }
    Ok(())
}
