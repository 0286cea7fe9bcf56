//! A file that the user asked for: whether it can be written is checked before any work is done.

use crate::exit::refuse;
use anyhow::Context;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A path that a file can be written to.
#[derive(Clone, Debug)]
pub struct OutputFile {
    /// How the user named it: "--stats", "-o".
    option: &'static str,
    path: PathBuf,
    /// A device or pipe: written in place, since renaming would replace it by a file.
    in_place: bool,
}

impl OutputFile {
    /// Checks, without leaving anything behind, that `path` can be written.
    pub fn new(option: &'static str, path: PathBuf) -> anyhow::Result<Self> {
        let shown = path.display();
        let cannot = |why: &dyn std::fmt::Display| refuse(format_args!("{option} {shown} cannot be written: {why}"));
        match std::fs::metadata(&path) {
            Ok(facts) if facts.is_dir() => Err(cannot(&"it is a directory; name a file in it")),
            Ok(facts) if !facts.is_file() => Ok(Self { option, path, in_place: true }),
            Ok(_) => {
                std::fs::OpenOptions::new().append(true).open(&path).map_err(|error| cannot(&error))?;
                // Behind a link: the file is replaced, not the link.
                let path = path.canonicalize().map_err(|error| cannot(&error))?;
                try_dir(&path).map_err(|error| cannot(&error))?;
                Ok(Self { option, path, in_place: false })
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                // Absolute, because the command may be told to change directory one day and the file must not move.
                let path = std::path::absolute(&path).map_err(|error| cannot(&error))?;
                if path.file_name().is_none() || path.as_os_str().as_encoded_bytes().ends_with(b"/") {
                    return Err(cannot(&"it does not name a file"));
                }
                try_dir(&path).map_err(|error| cannot(&error))?;
                Ok(Self { option, path, in_place: false })
            }
            Err(error) => Err(cannot(&error)),
        }
    }

    /// Where it goes.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes `text`. A reader never sees half of it: it is written beside its place and renamed there.
    pub fn write(&self, text: &str) -> anyhow::Result<()> {
        let (option, shown) = (self.option, self.path.display());
        if self.in_place {
            return std::fs::write(&self.path, text).with_context(|| format!("{option} {shown}"));
        }
        replace(&self.path, text).with_context(|| format!("{option} {shown}"))
    }
}

/// Writes `content` to a new file beside `path` and gives it that name: the file at `path` is whole at any moment. Others may have put a link
/// where the new file would be: that name is not taken.
///
/// # Errors
/// Those of creating, writing and renaming; nothing is left then.
pub fn replace(path: &Path, content: impl AsRef<[u8]>) -> std::io::Result<()> {
    replace_as(path, content, None)
}

/// [`replace`], with permissions that the umask does not take away.
///
/// # Errors
/// As there.
pub fn replace_as(path: &Path, content: impl AsRef<[u8]>, mode: Option<u32>) -> std::io::Result<()> {
    for number in 0..100 {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}-{number}.tmp", std::process::id()));
        let beside = path.with_file_name(name);
        let mut file = match std::fs::File::create_new(&beside) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => continue,
            file => file?,
        };
        let allowed = mode.map_or(Ok(()), |mode| file.set_permissions(std::fs::Permissions::from_mode(mode)));
        let result = allowed.and_then(|()| file.write_all(content.as_ref())).and_then(|()| std::fs::rename(&beside, path));
        if result.is_err() {
            let _ = std::fs::remove_file(&beside);
        }
        return result;
    }
    Err(std::io::ErrorKind::AlreadyExists.into())
}

fn try_dir(file: &Path) -> Result<(), nearfar_sys::errno::Errno> {
    let dir = file.parent().unwrap_or(Path::new("/"));
    nearfar_sys::file::SpillFile::create(&nearfar_sys::spill_dir::SpillDir::named(dir), false).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets() {
        let dir = std::env::temp_dir().join(format!("nearfar-target-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("temporary directory");
        let new = |path: PathBuf| OutputFile::new("--stats", path);
        assert!(new(dir.clone()).is_err());
        assert!(new(dir.join("missing/run.json")).is_err());
        assert!(new("/dev/null".into()).expect("a device").in_place);
        let target = new(dir.join("run.json")).expect("a new file");
        assert_eq!(std::fs::read_dir(&dir).expect("list").count(), 0, "checking leaves nothing behind");
        target.write("text").expect("written");
        assert_eq!(std::fs::read_dir(&dir).expect("list").count(), 1);
        assert_eq!(std::fs::read_to_string(target.path()).expect("read"), "text");
        std::fs::remove_dir_all(&dir).expect("clean up");
    }

    #[test]
    fn a_link_in_the_way_is_not_followed() {
        let dir = std::env::temp_dir().join(format!("nearfar-link-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("temporary directory");
        let precious = dir.join("precious");
        std::fs::write(&precious, "data").expect("written");
        let trap = dir.join(format!("run.json.{}-0.tmp", std::process::id()));
        std::os::unix::fs::symlink(&precious, &trap).expect("a link");
        replace(&dir.join("run.json"), "text").expect("written");
        assert_eq!(std::fs::read_to_string(&precious).expect("read"), "data");
        assert_eq!(std::fs::read_to_string(dir.join("run.json")).expect("read"), "text");
        assert!(trap.is_symlink(), "not ours to remove");
        std::fs::remove_dir_all(&dir).expect("clean up");
    }
}
