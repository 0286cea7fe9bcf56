//! `cargo install` installs the executables of this package and nothing else. What `nearfar` needs beside itself, libnearfar.so and
//! nearfar-kernel, is then built here too and carried inside the executable (`src/launch/bundle.rs`). Part of build.rs. Anywhere else they are built
//! once, by `cargo build --workspace`, and the executable carries nothing.

use std::env;
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Package, file, and whether it is executed.
const FILES: [(&str, &str, bool); 2] = [("nearfar-preload", "libnearfar.so", false), ("nearfar-kernels", "nearfar-kernel", true)];

/// Writes the table that `src/launch/bundle.rs` includes.
pub fn write() -> std::io::Result<()> {
    println!("cargo::rerun-if-env-changed=CARGO_HOME");
    let out = PathBuf::from(variable("OUT_DIR")?);
    let text = if is_wanted()? { bundle(&out)? } else { "(\"\", &[])".to_owned() };
    std::fs::write(out.join("bundle.rs"), text)
}

fn variable(name: &str) -> std::io::Result<String> {
    env::var(name).map_err(|error| std::io::Error::other(format!("{name}: {error}")))
}

/// True for a repository that cargo fetched itself: nobody builds the rest of the workspace there.
fn is_wanted() -> std::io::Result<bool> {
    let home =
        env::var("CARGO_HOME").map(PathBuf::from).or_else(|_| env::var("HOME").map(|home| Path::new(&home).join(".cargo")));
    let source = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
    let is_fetched = home.is_ok_and(|home| source.starts_with(home.join("git")));
    Ok(is_fetched || env::var("CARGO_FEATURE_BUNDLE").is_ok())
}

/// Builds the files and gives the Rust expression that holds them: what tells this set of files from others, and the files.
fn bundle(out: &Path) -> std::io::Result<String> {
    let source = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
    let (target, dir) = (variable("TARGET")?, out.join("bundle"));
    let mut command = Command::new(variable("CARGO")?);
    command.args(["build", "--release", "--target", &target, "--config", "profile.release.strip=true", "--target-dir"]).arg(&dir);
    command.current_dir(&source).env_remove("CARGO_ENCODED_RUSTFLAGS");
    // As this build: with the versions of Cargo.lock, which are the ones that were tested.
    if source.join("Cargo.lock").exists() {
        command.arg("--locked");
    }
    command.args(FILES.iter().flat_map(|(package, ..)| ["--package", package]));
    let status = command.status()?;
    if !status.success() {
        return Err(std::io::Error::other(format!("{command:?}: {status}")));
    }
    let (mut hasher, mut files) = (DefaultHasher::new(), String::new());
    for (_, name, executed) in FILES {
        let path = dir.join(&target).join("release").join(name);
        hasher.write(&std::fs::read(&path)?);
        files += &format!("({name:?}, {executed}, include_bytes!({path:?})), ");
    }
    Ok(format!("(\"{:016x}\", &[{files}])", hasher.finish()))
}
