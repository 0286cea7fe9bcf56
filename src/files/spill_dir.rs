//! Which directory the spill file goes to, from the path that the user named, and whether it can go there.
//!
//! Never writes to, truncates or removes a file that exists: a spill file has no name.

use crate::exit::refuse;
use nearfar_core::units::Bytes;
use nearfar_sys::file::SpillFile;
use nearfar_sys::place::{self, FileSystem};
use nearfar_sys::spill_dir::SpillDir;
use std::path::{Path, PathBuf};

/// A directory that holds spill files.
#[derive(Clone, Debug)]
pub struct FarDir {
    /// Its absolute path.
    pub path: PathBuf,
    /// What lies under it.
    pub file_system: FileSystem,
    /// Reads and writes can bypass the page cache.
    pub direct: bool,
    /// The user named a file: its directory is used, and this says so.
    pub note: Option<String>,
}

impl FarDir {
    /// Finds and tries the directory that `named` means; `direct` asks for direct I/O where the file system has it.
    pub fn open(named: &Path, direct: bool) -> anyhow::Result<Self> {
        let (dir, note) = directory_of(named)?;
        let path = dir.canonicalize().map_err(|error| refuse(format_args!("far {}: {error}", dir.display())))?;
        let spill = SpillFile::create(&SpillDir::named(&path), direct).map_err(|error| {
            refuse(format_args!(
                "far {}: no file can be created there: {error}; name a directory that you may write to",
                path.display()
            ))
        })?;
        let file_system = place::file_system(&path).map_err(|error| refuse(format_args!("far {}: {error}", path.display())))?;
        if file_system.free < MIN_FREE {
            let free = Bytes(file_system.free);
            return Err(refuse(format_args!("far {}: only {free} is free there; name a directory with more", path.display())));
        }
        Ok(Self { path, file_system, direct: spill.is_direct(), note })
    }
}

/// Less than this could not hold what makes anyone run nearfar.
pub const MIN_FREE: u64 = 64 << 20;

fn directory_of(named: &Path) -> anyhow::Result<(PathBuf, Option<String>)> {
    let shown = named.display();
    let parent = || match named.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    let beside = |why: &str| {
        let dir = parent();
        let note = format!("far {shown} {why}: the spill file, which has no name, goes to its directory {}", dir.display());
        (dir, Some(note))
    };
    match std::fs::metadata(named) {
        Ok(facts) if facts.is_dir() => Ok((named.to_owned(), None)),
        Ok(facts) if facts.is_file() && facts.len() == 0 => Ok(beside("is an empty file")),
        Ok(facts) if facts.is_file() => Err(refuse(format_args!(
            "far {shown} is a file that holds {}: nearfar does not overwrite it; name its directory instead",
            Bytes(facts.len())
        ))),
        Ok(_) => Err(refuse(format_args!("far {shown} is neither a directory nor a file; name a directory on a fast disk"))),
        // Something like spill.bin is meant as a file; without an extension a missing directory is the likelier mistake,
        // and its parent may well be on the wrong disk.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && named.extension().is_some() && parent().is_dir() => {
            Ok(beside("does not exist"))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(refuse(format_args!("far {shown}: there is no such directory; create it (mkdir -p {shown}) or name another")))
        }
        Err(error) => Err(refuse(format_args!("far {shown}: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_and_files() {
        let dir = std::env::temp_dir().join(format!("nearfar-far-dir-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("temporary directory");
        let full = dir.join("precious.dat");
        std::fs::write(&full, "data").expect("write");
        let empty = dir.join("empty");
        std::fs::write(&empty, "").expect("write");

        assert_eq!(directory_of(&dir).expect("a directory"), (dir.clone(), None));
        assert_eq!(directory_of(&empty).expect("an empty file").0, dir);
        assert_eq!(directory_of(&dir.join("spill.bin")).expect("a new file").0, dir);
        for (bad, why) in [(full.clone(), "overwrite"), (dir.join("missing"), "mkdir -p"), ("/dev/null".into(), "neither")] {
            let message = directory_of(&bad).expect_err("refused").to_string();
            assert!(message.contains(why), "{message}");
        }
        assert_eq!(std::fs::read(&full).expect("still there"), b"data");
        std::fs::remove_dir_all(&dir).expect("clean up");
    }
}
