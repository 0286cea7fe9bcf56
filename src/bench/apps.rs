//! The directory of the real programs in Python: a virtual environment of its own, made when `bench apps --install` says so.
//!
//! Nothing outside of the directory is touched; deleting it removes all. Versions are pinned, so that figures can be compared. A directory
//! that was not finished is not used, and finished the next time.

use crate::exit::refuse;
use anyhow::{Context, Result};
use std::path::PathBuf;
use std::process::Command;

/// From PyPI.
const PACKAGES: &[&str] =
    &["numpy==2.4.6", "scipy==1.17.1", "mkl==2026.2.0", "mkl_fft==2.3.2", "pypardiso==0.4.7", "duckdb==2.0.1", "pyscf==2.14.0"];
/// Written when all of them are there.
const FINISHED: &str = "nearfar-apps";

/// Where they live: `$NEARFAR_APPS`, or `nearfar/apps` in the user's cache; `None` without a home.
fn folder() -> Option<PathBuf> {
    let from = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = || from("XDG_CACHE_HOME").or_else(|| Some(from("HOME")?.join(".cache")));
    from("NEARFAR_APPS").or_else(|| Some(cache()?.join("nearfar/apps")))
}

/// The folder's interpreter, once it is installed.
pub fn python() -> Option<PathBuf> {
    folder().filter(|folder| folder.join(FINISHED).is_file()).map(|folder| folder.join("bin/python3"))
}

/// Makes the folder and installs the programs, unless they are there.
///
/// # Errors
/// When there is no Python (3.11 or later) with `venv`, no network, or no room; what they said is above.
pub fn install() -> Result<()> {
    let Some(folder) = folder() else {
        return Err(refuse("--install: there is no HOME to install under; set NEARFAR_APPS to a directory"));
    };
    if python().is_some() {
        println!("{} is there already; delete it to install it again", folder.display());
        return Ok(());
    }
    println!("installing {} into {}; this takes a minute or more", PACKAGES.join(", "), folder.display());
    let step = |program: PathBuf, arguments: &[&str]| -> Result<()> {
        let status =
            Command::new(&program).args(arguments).status().with_context(|| format!("cannot start {}", program.display()))?;
        anyhow::ensure!(status.success(), "{} {}: {status}", program.display(), arguments[..2].join(" "));
        Ok(())
    };
    let venv = ["-m", "venv", &folder.to_string_lossy()];
    step("python3".into(), &venv).context("no virtual environment (on Debian: apt install python3-venv)")?;
    let install = ["-m", "pip", "install", "--quiet", "--no-cache-dir", "--disable-pip-version-check"];
    step(folder.join("bin/python3"), &[&install, PACKAGES].concat())?;
    let finished = folder.join(FINISHED);
    std::fs::write(&finished, PACKAGES.join("\n")).with_context(|| format!("cannot write {}", finished.display()))
}
