//! What recipes need, installed: packages of PyPI into a virtual environment of its own when `bench apps --install` says so, and Debian's
//! packages of programs, by root alone.
//!
//! But for Debian's packages nothing outside of the directory is touched; deleting it removes all. Packages are tried one by one: one that
//! cannot be installed does not keep the others away.

use super::recipe::Recipe;
use crate::exit::refuse;
use crate::machine::is_root;
use anyhow::{Context, Result, ensure};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The command that installs Debian's packages.
pub const APT: [&str; 3] = ["apt-get", "install", "--no-install-recommends"];

/// Where the virtual environment lives: `$NEARFAR_APPS`, or `nearfar/apps` in the user's cache; `None` without a home.
fn folder() -> Option<PathBuf> {
    let from = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = || from("XDG_CACHE_HOME").or_else(|| Some(from("HOME")?.join(".cache")));
    from("NEARFAR_APPS").or_else(|| Some(cache()?.join("nearfar/apps")))
}

/// Its interpreter, once there is one.
pub fn python() -> Option<PathBuf> {
    folder().map(|folder| folder.join("bin/python3")).filter(|python| python.is_file())
}

/// The first of the recipe's programs that is not here.
pub fn missing_program(recipe: &Recipe) -> Option<&'static str> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // What is a path by itself stays one.
    let is_here = |name: &str| std::env::split_paths(&path).any(|dir| dir.join(name).is_file());
    recipe.programs.iter().copied().find(|name| !is_here(name))
}

/// Installs what `recipes` need and what is not here; says what could not be installed.
///
/// # Errors
/// There is no virtual environment, and none can be made.
pub fn install(recipes: &[&Recipe]) -> Result<()> {
    let lacking = recipes.iter().filter(|recipe| missing_program(recipe).is_some());
    install_programs(&each(lacking.flat_map(|recipe| &recipe.apt)));
    let pins = each(recipes.iter().flat_map(|recipe| &recipe.pip));
    if pins.is_empty() {
        return Ok(());
    }
    let folder =
        folder().ok_or_else(|| refuse("--install: there is no HOME to install under; set NEARFAR_APPS to a directory"))?;
    println!("installing {} into {}; this may take minutes", pins.join(", "), folder.display());
    // Debian's Python leaves half an environment where it lacks python3-venv.
    if !folder.join("bin/pip").is_file() {
        let made = ends_well(Command::new("python3").args(["-m", "venv"]).arg(&folder));
        ensure!(made, "no virtual environment (on Debian: apt-get install python3-venv); what Python said is above");
    }
    // What a package depends on has the version that is pinned elsewhere.
    let pinned = folder.join("pinned.txt");
    std::fs::write(&pinned, pins.join("\n")).with_context(|| format!("cannot write {}", pinned.display()))?;
    for pin in pins {
        let mut pip = Command::new(folder.join("bin/python3"));
        pip.args(["-m", "pip", "install", "--quiet", "--no-cache-dir", "--disable-pip-version-check", "-c"]).arg(&pinned);
        if !ends_well(pip.arg(pin)) {
            let titles: Vec<&str> =
                recipes.iter().filter(|recipe| recipe.pip.contains(&pin)).map(|recipe| recipe.title).collect();
            println!("{pin} could not be installed (pip's reason is above), for {}; the rest goes on", titles.join("; "));
        }
    }
    Ok(())
}

/// Root's own apt-get; for others the command that root types.
fn install_programs(packages: &[&str]) {
    let line = [&APT[..], packages].concat().join(" ");
    if packages.is_empty() {
    } else if !is_root() || !Path::new("/usr/bin/apt-get").is_file() {
        println!("not installed: {}; as root on Debian or Ubuntu: {line}", packages.join(", "));
    } else {
        println!("{line}");
        let [apt, arguments @ ..] = APT;
        let mut command = Command::new(apt);
        command.args(arguments).args(["--yes", "--quiet"]).args(packages).env("DEBIAN_FRONTEND", "noninteractive");
        if !ends_well(&mut command) {
            println!("apt-get failed (its reason is above; apt-get update may help); the rest goes on");
        }
    }
}

/// In order, each once.
fn each<'a>(names: impl Iterator<Item = &'a &'static str>) -> Vec<&'static str> {
    Vec::from_iter(names.copied().collect::<BTreeSet<_>>())
}

fn ends_well(command: &mut Command) -> bool {
    command.status().is_ok_and(|status| status.success())
}
