//! Where libnearfar.so is: next to the executable as cargo builds it, or where an installation puts it.

use super::bundle;
use crate::exit::refuse;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const NAME: &str = "libnearfar.so";
/// Places relative to the directory of the executable, first match wins.
const PLACES: [&str; 3] = [".", bundle::PLACE, "../lib"];

/// libnearfar.so of this executable.
pub fn find() -> anyhow::Result<PathBuf> {
    find_named(NAME)
}

/// The library of that name that belongs to this executable.
pub fn find_named(name: &str) -> anyhow::Result<PathBuf> {
    let executable = std::env::current_exe()?;
    let dir = executable.parent().unwrap_or(Path::new("/"));
    bundle::unpack(dir)?;
    let found = PLACES.iter().map(|place| dir.join(place).join(name)).find(|path| path.is_file());
    let Some(path) = found else {
        return Err(refuse(format_args!(
            "{name} is missing: looked in {0}, {0}/../lib/nearfar and {0}/../lib; build it with \"cargo build --release --workspace\" \
             or install it beside the executable",
            dir.display()
        )));
    };
    let path = path.canonicalize()?;
    if path.as_os_str().as_bytes().iter().any(|byte| matches!(byte, b' ' | b':' | b'\t' | b'\n')) {
        return Err(refuse(format_args!(
            "the loader splits LD_PRELOAD at spaces and colons, and {} contains one: move nearfar to a directory without them",
            path.display()
        )));
    }
    Ok(path)
}

/// The value of LD_PRELOAD with `library` before what `old` names.
pub fn preload_with(library: &Path, old: Option<&OsStr>) -> OsString {
    let mut value = library.as_os_str().to_owned();
    if let Some(old) = old.filter(|old| !old.is_empty()) {
        value.push(":");
        value.push(old);
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_comes_first() {
        let library = Path::new("/a/libnearfar.so");
        assert_eq!(preload_with(library, None), "/a/libnearfar.so");
        assert_eq!(preload_with(library, Some(OsStr::new(""))), "/a/libnearfar.so");
        assert_eq!(preload_with(library, Some(OsStr::new("b.so c.so"))), "/a/libnearfar.so:b.so c.so");
    }
}
