//! A directory for a while, which no other user can enter, or have put there before.

use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// It; gone when dropped.
pub struct PrivateDir(PathBuf);

impl PrivateDir {
    /// Made where temporary files go; its name begins with `prefix` and the number of this process.
    ///
    /// # Errors
    /// Those of mkdir(2); never takes a directory that is there.
    pub fn new(prefix: &str) -> std::io::Result<Self> {
        for number in 0..100 {
            let dir = std::env::temp_dir().join(format!("{prefix}{}-{number}", std::process::id()));
            match std::fs::DirBuilder::new().mode(0o700).create(&dir) {
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                result => return result.map(|()| Self(dir)),
            }
        }
        Err(std::io::ErrorKind::AlreadyExists.into())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for PrivateDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Removes directories in `temp` whose names begin with `prefix` and that processes of ours left `age` ago or earlier, because they were
/// killed.
pub fn remove_stale(temp: &Path, prefix: &str, age: Duration) {
    let Ok(user) = std::fs::metadata("/proc/self").map(|own| own.uid()) else { return };
    for entry in std::fs::read_dir(temp).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(prefix)?.split_once('-')?.0.parse::<u32>().ok());
        // Not of what a link points to.
        let (Some(pid), Ok(found)) = (pid, entry.metadata()) else { continue };
        let is_dead = !Path::new("/proc").join(pid.to_string()).exists();
        let is_old = found.modified().is_ok_and(|then| SystemTime::now().duration_since(then).is_ok_and(|passed| passed >= age));
        if found.is_dir() && found.uid() == user && is_dead && is_old {
            // What cannot be removed only takes a little space.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_else_can_enter_and_what_is_there_is_not_taken() {
        let prefix = "nearfar-private-dir-test-";
        let trap = std::env::temp_dir().join(format!("{prefix}{}-0", std::process::id()));
        let _ = std::fs::remove_file(&trap);
        std::os::unix::fs::symlink("/", &trap).expect("a link");
        let dir = PrivateDir::new(prefix).expect("a directory");
        let (path, facts) = (dir.path().to_owned(), std::fs::symlink_metadata(dir.path()).expect("facts"));
        std::fs::remove_file(&trap).expect("the link is still there");
        assert!(path != trap && facts.is_dir() && facts.mode() & 0o777 == 0o700, "{}", path.display());
        drop(dir);
        assert!(!path.exists());
    }

    #[test]
    fn directories_of_the_dead_are_removed() {
        let temp = PrivateDir::new("nearfar-stale-test-").expect("a directory");
        // Numbers of processes are smaller than 2^22.
        let own = std::process::id();
        let names = ["nearfar-mpi-4294967295-0".to_owned(), format!("nearfar-mpi-{own}-0"), "nearfar-mpi-find-1".to_owned()];
        let [dead, alive, other] = names.map(|name| temp.path().join(name));
        for dir in [&dead, &alive, &other] {
            std::fs::create_dir(dir).expect("created");
        }
        remove_stale(temp.path(), "nearfar-mpi-", Duration::from_secs(600));
        assert!(dead.exists(), "it may belong to another machine");
        remove_stale(temp.path(), "nearfar-mpi-", Duration::ZERO);
        assert!(!dead.exists() && alive.exists() && other.exists());
    }
}
