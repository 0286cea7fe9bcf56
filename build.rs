//! Says which commit the command was built from: no figure of a suite is without it.

use std::process::Command;

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn main() {
    let commit = git(&["describe", "--always", "--abbrev=10", "--exclude=*"]);
    let changed = git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|changes| !changes.is_empty());
    let described = match commit {
        Some(commit) if changed => format!("{commit}, changed"),
        Some(commit) => commit,
        // A source archive.
        None => "commit unknown".to_owned(),
    };
    println!("cargo::rustc-env=NEARFAR_COMMIT={described}");
    for path in ["src", "crates", "Cargo.toml", "build.rs"] {
        println!("cargo::rerun-if-changed={path}");
    }
    // One line is added to it with each commit.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]).filter(|path| std::path::Path::new(path).exists()) {
        println!("cargo::rerun-if-changed={log}");
    }
}
