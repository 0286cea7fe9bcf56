//! Says which commit the command was built from: no figure of a suite is without it. Makes tables of files that the command carries.

#[path = "packaging/bundle.rs"]
mod bundle;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::process::Command;

/// What the command is made of.
const SOURCES: [&str; 6] = ["src", "crates", "Cargo.toml", "Cargo.lock", "build.rs", "packaging/bundle.rs"];

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

/// A table of names and texts of the recipes of `bench apps`: a new file there is a new app.
fn recipes() -> std::io::Result<()> {
    let here = std::env::current_dir()?.join("src/bench/recipes");
    let mut files = std::fs::read_dir(here)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    files.retain(|path| path.extension().is_some_and(|extension| extension == "py"));
    files.sort();
    let rows = files.iter().map(|path| format!("({:?}, include_str!({path:?})),\n", path.file_stem().unwrap_or_default()));
    let out = std::env::var("OUT_DIR").map_err(std::io::Error::other)?;
    std::fs::write(std::path::Path::new(&out).join("recipes.rs"), format!("&[{}]", rows.collect::<String>()))
}

fn main() -> std::io::Result<()> {
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
    recipes()?;
    bundle::write()
}
