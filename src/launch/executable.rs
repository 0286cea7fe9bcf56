//! Finding the program and telling, before anything starts, whether a preloaded library will be loaded into it.
//!
//! Reads the head of the file only. Scripts are followed to their interpreter.

use crate::exit::refuse;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Bytes of a file that are looked at: program headers lie at the front of every executable that linkers write.
const HEAD: u64 = 16 << 10;
/// The kernel follows at most this many interpreters of interpreters.
const MAX_INTERPRETERS: usize = 5;

/// The file that `name` means: a path when it holds a slash, otherwise found in `search` (the value of PATH).
pub fn find(name: &OsStr, search: Option<&OsStr>) -> anyhow::Result<PathBuf> {
    let shown = name.to_string_lossy();
    if name.is_empty() {
        return Err(refuse("the program's name is empty"));
    }
    if name.as_bytes().contains(&b'/') {
        return may_run(Path::new(name)).map(|()| PathBuf::from(name));
    }
    let search = search.map_or_else(|| OsString::from("/usr/local/bin:/usr/bin:/bin"), OsStr::to_owned);
    let mut first_problem = None;
    for dir in std::env::split_paths(&search) {
        let path = if dir.as_os_str().is_empty() { Path::new(".").join(name) } else { dir.join(name) };
        if !path.exists() || path.is_dir() {
            continue;
        }
        match may_run(&path) {
            Ok(()) => return Ok(path),
            Err(error) => first_problem = first_problem.or(Some(error)),
        }
    }
    let here =
        if Path::new(name).is_file() { format!("; for the file in this directory write ./{shown}") } else { String::new() };
    Err(first_problem.unwrap_or_else(|| refuse(format_args!("there is no program \"{shown}\" in PATH{here}"))))
}

fn may_run(path: &Path) -> anyhow::Result<()> {
    let shown = path.display();
    let facts = std::fs::metadata(path).map_err(|error| refuse(format_args!("program {shown}: {error}")))?;
    if facts.is_dir() {
        return Err(refuse(format_args!("program {shown} is a directory")));
    }
    nearfar_sys::place::may_execute(path)
        .map_err(|error| refuse(format_args!("program {shown} cannot be executed: {error}; if it is yours, \"chmod +x\" it")))
}

/// Fails with the reason when a preloaded library would not be loaded into the program at `path`.
pub fn check_preloadable(path: &Path) -> anyhow::Result<()> {
    preloadable(path)?.map_err(|obstacle| refuse(format_args!("{}{}", obstacle.why, obstacle.advice)))
}

/// Why nothing can be preloaded into a program that can otherwise be run.
#[derive(Clone, Debug)]
pub struct Obstacle {
    /// "program ./a.out is statically linked".
    pub why: String,
    /// What to do about it, as the end of that sentence.
    pub advice: &'static str,
}

/// The obstacle to a preloaded library in the program at `path`, if any; an error when it cannot be run at all.
pub fn preloadable(path: &Path) -> anyhow::Result<Result<(), Obstacle>> {
    let mut path = path.to_owned();
    for _ in 0..MAX_INTERPRETERS {
        match look(&path)? {
            Head::Interpreter(interpreter) => {
                may_run(&interpreter).map_err(|error| {
                    refuse(format_args!("{} is a script, and its interpreter is not usable: {error}", path.display()))
                })?;
                path = interpreter;
            }
            Head::Unreadable | Head::Elf(Linkage::Dynamic) => return Ok(Ok(())),
            Head::Elf(linkage) => {
                let (why, advice) = linkage.why_not();
                let obstacle = Obstacle { why: format!("program {} {why}", path.display()), advice };
                return if linkage == Linkage::WrongMachine { Err(refuse(obstacle.why)) } else { Ok(Err(obstacle)) };
            }
            Head::Unknown => {
                let shown = path.display();
                return Err(refuse(format_args!(
                    "{shown} is neither an ELF program nor a script that begins with #!; for a shell script write: sh {shown}"
                )));
            }
        }
    }
    Err(refuse(format_args!(
        "{}: its interpreter is a script, whose interpreter is a script, and so on: too many to follow",
        path.display()
    )))
}

#[derive(Debug, PartialEq, Eq)]
enum Head {
    Elf(Linkage),
    Interpreter(PathBuf),
    Unknown,
    /// Executable but not readable: the kernel will tell.
    Unreadable,
}

/// How a program is linked, as far as preloading goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Linkage {
    Dynamic,
    Static,
    Musl,
    WrongClass,
    WrongMachine,
    Privileged,
}

impl Linkage {
    /// Why not, and what to do about it.
    fn why_not(self) -> (&'static str, &'static str) {
        match self {
            Linkage::Dynamic => ("is fine", ""),
            Linkage::Static => (
                "is statically linked",
                ": libraries cannot be preloaded into it; link it dynamically (without -static) to run it under nearfar",
            ),
            Linkage::Musl => ("uses the musl C library", "; nearfar's library is built for glibc: build the program for glibc"),
            Linkage::WrongClass => ("is a 32-bit program", "; nearfar manages 64-bit programs only"),
            Linkage::WrongMachine => ("is built for another kind of processor", ""),
            Linkage::Privileged => (
                "is setuid, setgid or carries capabilities, and would run with other rights than yours",
                ": the loader ignores LD_PRELOAD for it; run a copy without these bits (plain cp drops them)",
            ),
        }
    }
}

fn look(path: &Path) -> anyhow::Result<Head> {
    let facts = std::fs::metadata(path).map_err(|error| refuse(format_args!("program {}: {error}", path.display())))?;
    if !facts.is_file() {
        return Ok(Head::Unknown);
    }
    let mut head = Vec::new();
    let privileged =
        changes_ids(&facts) || nearfar_sys::process::real_ids().0 != 0 && nearfar_sys::place::grants_capabilities(path);
    let Ok(file) = std::fs::File::open(path) else {
        // No script: an interpreter could not read it either.
        return Ok(if privileged { Head::Elf(Linkage::Privileged) } else { Head::Unreadable });
    };
    file.take(HEAD).read_to_end(&mut head)?;
    let kind = classify(&head);
    // On scripts the kernel ignores these bits.
    if matches!(kind, Head::Elf(_)) && privileged {
        return Ok(Head::Elf(Linkage::Privileged));
    }
    // The loader can be run as a program; it then loads what is preloaded although it is static itself.
    if kind == Head::Elf(Linkage::Static) && path.file_name().is_some_and(|name| name.as_bytes().starts_with(b"ld-linux")) {
        return Ok(Head::Elf(Linkage::Dynamic));
    }
    Ok(kind)
}

/// True where the program would run with other ids than it is started with: the loader then ignores LD_PRELOAD. Root's capabilities are
/// root's own, with or without those of the file.
fn changes_ids(facts: &std::fs::Metadata) -> bool {
    const SETUID: u32 = 0o4000;
    // Without the right to execute, the bit once meant mandatory locks.
    const SETGID: u32 = 0o2010;
    let (mode, (user, group)) = (facts.mode(), nearfar_sys::process::real_ids());
    mode & SETUID != 0 && facts.uid() != user || mode & SETGID == SETGID && facts.gid() != group
}

fn classify(head: &[u8]) -> Head {
    if head.starts_with(b"\x7fELF") {
        return Head::Elf(elf_linkage(head));
    }
    let line = head.split(|&byte| byte == b'\n').next().unwrap_or_default();
    if let Some(rest) = line.strip_prefix(b"#!") {
        let interpreter = rest.trim_ascii().split(|byte| matches!(byte, b' ' | b'\t')).next().unwrap_or_default();
        return match interpreter {
            [] => Head::Unknown,
            path => Head::Interpreter(PathBuf::from(OsString::from_vec(path.to_vec()))),
        };
    }
    Head::Unknown
}

#[cfg(target_arch = "x86_64")]
const MACHINE: u16 = 62;
#[cfg(target_arch = "aarch64")]
const MACHINE: u16 = 183;

fn elf_linkage(head: &[u8]) -> Linkage {
    const CLASS_64: u8 = 2;
    const INTERPRETER_HEADER: u32 = 3;
    if head.get(4) != Some(&CLASS_64) {
        return Linkage::WrongClass;
    }
    if number::<2>(head, 18) != Some(u64::from(MACHINE)) {
        return Linkage::WrongMachine;
    }
    let (table, size, count) = (number::<8>(head, 32), number::<2>(head, 54), number::<2>(head, 56));
    let (Some(table), Some(size), Some(count)) = (table, size, count) else { return Linkage::Static };
    for index in 0..count {
        let Some(at) = index.checked_mul(size).and_then(|offset| offset.checked_add(table)) else { break };
        if number::<4>(head, at as usize) != Some(u64::from(INTERPRETER_HEADER)) {
            continue;
        }
        let offset = number::<8>(head, (at as usize).saturating_add(8)).unwrap_or(0) as usize;
        let len = number::<8>(head, (at as usize).saturating_add(32)).unwrap_or(0) as usize;
        let name = head.get(offset..offset.saturating_add(len)).unwrap_or_default();
        let musl = name.windows(8).any(|window| window == b"/ld-musl");
        return if musl { Linkage::Musl } else { Linkage::Dynamic };
    }
    Linkage::Static
}

/// The little-endian number of `N` bytes at `at` (both supported processors store it so).
fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let slice = bytes.get(at..at.checked_add(N)?)?;
    Some(slice.iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ELF header with one program header of `kind` that names `interpreter`.
    fn elf(class: u8, machine: u16, kind: u32, interpreter: &[u8]) -> Vec<u8> {
        let mut head = vec![0u8; 128];
        head[..4].copy_from_slice(b"\x7fELF");
        head[4] = class;
        head[18..20].copy_from_slice(&machine.to_le_bytes());
        head[32..40].copy_from_slice(&64u64.to_le_bytes());
        head[54..56].copy_from_slice(&56u16.to_le_bytes());
        head[56..58].copy_from_slice(&1u16.to_le_bytes());
        head[64..68].copy_from_slice(&kind.to_le_bytes());
        head[72..80].copy_from_slice(&128u64.to_le_bytes());
        head[96..104].copy_from_slice(&(interpreter.len() as u64).to_le_bytes());
        head.extend_from_slice(interpreter);
        head
    }

    #[test]
    fn linkage() {
        let interpreter = b"/lib64/ld-linux-x86-64.so.2\0";
        assert_eq!(classify(&elf(2, MACHINE, 3, interpreter)), Head::Elf(Linkage::Dynamic));
        assert_eq!(classify(&elf(2, MACHINE, 3, b"/lib/ld-musl-x86_64.so.1\0")), Head::Elf(Linkage::Musl));
        assert_eq!(classify(&elf(2, MACHINE, 2, interpreter)), Head::Elf(Linkage::Static));
        assert_eq!(classify(&elf(1, MACHINE, 3, interpreter)), Head::Elf(Linkage::WrongClass));
        assert_eq!(classify(&elf(2, MACHINE + 1, 3, interpreter)), Head::Elf(Linkage::WrongMachine));
    }

    #[test]
    fn damaged_headers_do_not_panic() {
        let whole = elf(2, MACHINE, 3, b"/lib64/ld-linux-x86-64.so.2\0");
        for len in 0..whole.len() {
            let _ = classify(&whole[..len]);
        }
        for index in 0..whole.len() {
            let mut broken = whole.clone();
            broken[index] = 0xff;
            let _ = classify(&broken);
        }
    }

    #[test]
    fn scripts() {
        let interpreter = |path: &str| Head::Interpreter(PathBuf::from(path));
        assert_eq!(classify(b"#! /usr/bin/env python3\nimport x\n"), interpreter("/usr/bin/env"));
        assert_eq!(classify(b"#!/bin/sh\n"), interpreter("/bin/sh"));
        assert_eq!(classify(b"echo no first line\n"), Head::Unknown);
        assert_eq!(classify(b"#!\n"), Head::Unknown);
        assert_eq!(classify(b"GIF\0\n"), Head::Unknown);
    }

    #[test]
    fn this_test_is_preloadable_and_nonsense_is_not_found() {
        let own = std::env::current_exe().expect("own path");
        check_preloadable(&own).expect("dynamic");
        let path = OsStr::new("/usr/bin:/bin");
        assert!(find(OsStr::new("sh"), Some(path)).is_ok());
        assert!(find(OsStr::new("no-such-program-here"), Some(path)).expect_err("missing").to_string().contains("PATH"));
        assert!(find(OsStr::new("/usr"), None).expect_err("directory").to_string().contains("directory"));
        assert!(find(OsStr::new("/etc/passwd"), None).expect_err("no x").to_string().contains("chmod"));
    }
}
