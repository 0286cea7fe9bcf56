//! Programs that bring a malloc of their own: linked, preloaded and linked in. Nothing of ours may call it, nor touch what it has, while
//! nobody serves (issue 19: each of these hung, or a child of fork died).

use crate::util::{Scratch, TestProgram, compile, nearfar_bin, program_file};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where Debian has libraries, as the compiler says.
fn library(name: &str) -> Option<PathBuf> {
    let output = Command::new("cc").arg(format!("-print-file-name={name}")).output().ok()?;
    let path = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    path.is_absolute().then(|| path.canonicalize().unwrap_or(path))
}

/// The library, or a printed reason to skip.
fn needed(name: &str, package: &str) -> Option<PathBuf> {
    let found = library(name);
    if found.is_none() {
        assert!(!crate::util::is_required(package), "NEARFAR_REQUIRE forbids to skip for want of {package}");
        println!("skipped: needs {name} ({package})");
    }
    found
}

fn linked(scratch: &Scratch, flags: &[&str]) -> PathBuf {
    let program = scratch.work().join("many_blocks");
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-fno-builtin", "-pthread", "-o"]).arg(&program).arg(program_file("many_blocks.c")).args(flags);
    let output = cc.output().expect("cc");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

#[track_caller]
fn both(program: &Path) {
    // tcmalloc would take memory by sbrk(2), which is left alone (docs/reference/promises-and-limits.md).
    for options in [&[][..], &["--deny", "kernel-faults"]] {
        TestProgram::command([program])
            .near("24M")
            .env("TCMALLOC_SKIP_SBRK", "1")
            .options(options.iter().copied())
            .limit_s(90)
            .same()
            .ok()
            .paged();
    }
}

/// Linked with the library, and with it in LD_PRELOAD.
#[track_caller]
fn shared(file: &str, package: &str) {
    let Some(path) = needed(file, package) else { return };
    let scratch = Scratch::new();
    both(&linked(&scratch, &[&format!("-Wl,--no-as-needed,{}", path.display())]));
    let plain = compile("many_blocks.c");
    let preload = format!("LD_PRELOAD={}", path.display());
    TestProgram::command(["env".as_ref(), preload.as_ref(), plain.as_os_str()]).near("24M").limit_s(90).same().ok().paged();
    // Before ours.
    let before = Command::new(nearfar_bin())
        .env("LD_PRELOAD", &path)
        .args(["run", "--quiet", "--near", "24M", "--far"])
        .arg(scratch.far())
        .arg("--")
        .arg(plain)
        .output()
        .expect("runs");
    assert_eq!(String::from_utf8_lossy(&before.stdout), "OK\n", "{}", String::from_utf8_lossy(&before.stderr));
}

#[track_caller]
fn built_in(file: &str, package: &str, flags: &[&str]) {
    let Some(path) = needed(file, package) else { return };
    let scratch = Scratch::new();
    let path = path.display().to_string();
    let flags: Vec<&str> = flags.iter().map(|flag| if *flag == "LIB" { path.as_str() } else { flag }).collect();
    both(&linked(&scratch, &flags));
}

#[test]
fn jemalloc_shared() {
    shared("libjemalloc.so.2", "libjemalloc2");
}

#[test]
fn jemalloc_built_in() {
    built_in("libjemalloc_pic.a", "libjemalloc-dev", &["LIB", "-lm", "-ldl", "-lstdc++"]);
}

#[test]
fn tcmalloc_shared() {
    shared("libtcmalloc_minimal.so.4", "libtcmalloc-minimal4");
}

/// It registers its handlers around fork before the C library is ready, and so before ours.
#[test]
fn tcmalloc_built_in() {
    built_in(
        "libtcmalloc_minimal.a",
        "libgoogle-perftools-dev",
        &["-Wl,--whole-archive", "LIB", "-Wl,--no-whole-archive", "-lstdc++", "-lm"],
    );
}

#[test]
fn mimalloc_shared() {
    shared("libmimalloc.so.2.0", "libmimalloc2.0");
}

#[test]
fn mimalloc_built_in() {
    // Debian has it among the files of its CMake package.
    let Some(shared) = needed("libmimalloc.so.2.0", "libmimalloc-dev") else { return };
    let archive = shared.parent().and_then(|dir| {
        let inside = std::fs::read_dir(dir).ok()?.flatten().map(|entry| entry.path());
        inside.filter(|path| path.to_string_lossy().contains("mimalloc")).find_map(|dir| {
            let file = dir.join("libmimalloc.a");
            file.exists().then_some(file)
        })
    });
    let Some(archive) = archive else { return println!("skipped: needs libmimalloc.a (libmimalloc-dev)") };
    let scratch = Scratch::new();
    both(&linked(&scratch, &[&archive.display().to_string()]));
}
