//! Says which commit the command was built from: no figure of a suite is without it.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::process::Command;

/// What the command is made of.
const SOURCES: [&str; 5] = ["src", "crates", "Cargo.toml", "Cargo.lock", "build.rs"];

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// A number that differs from one change of the sources to another; `None` when they are those of the commit.
fn change() -> Option<u64> {
    let text = git(&[&["diff", "HEAD", "--"][..], &SOURCES].concat()).filter(|text| !text.is_empty())?;
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    Some(hasher.finish() >> 40)
}

fn main() {
    let described = match (git(&["describe", "--always", "--abbrev=10", "--exclude=*"]), change()) {
        (Some(commit), Some(change)) => format!("{commit}, changed: {change:06x}"),
        (Some(commit), None) => commit,
        // A source archive.
        (None, _) => "commit unknown".to_owned(),
    };
    println!("cargo::rustc-env=NEARFAR_COMMIT={described}");
    for path in SOURCES {
        println!("cargo::rerun-if-changed={path}");
    }
    // One line is added to it with each commit.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]).filter(|path| std::path::Path::new(path).exists()) {
        println!("cargo::rerun-if-changed={log}");
    }
}
