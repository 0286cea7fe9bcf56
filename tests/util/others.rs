//! What a user without rights can reach: a place with the command and its library.

use super::nearfar_bin;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A user and group that own nothing.
pub const NOBODY: &str = "65534";

/// A directory that others may enter, with the command and its library, and `far`, where they may write; removed at the end.
pub struct ForOthers(pub PathBuf);

impl ForOthers {
    pub fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("nearfar-{name}-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("far")).expect("a directory");
        let place = Self(dir);
        for file in [nearfar_bin(), nearfar_bin().with_file_name("libnearfar.so")] {
            place.copy(&file);
        }
        for (path, mode) in [(place.0.clone(), 0o755), (place.0.join("far"), 0o777)] {
            std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("permissions");
        }
        place
    }

    /// Puts `file` there too.
    pub fn copy(&self, file: &Path) -> PathBuf {
        let to = self.0.join(file.file_name().expect("a name"));
        std::fs::copy(file, &to).expect("copied");
        to
    }

    /// `nearfar run --near 64M` with far here, as nobody or as who runs the tests.
    pub fn run(&self, as_nobody: bool) -> Command {
        let mut command = Command::new(if as_nobody { "setpriv".into() } else { self.0.join("nearfar") });
        if as_nobody {
            command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]).arg(self.0.join("nearfar"));
        }
        command.args(["run", "--near", "64M", "--far"]).arg(self.0.join("far")).current_dir(&self.0);
        command
    }
}

impl Drop for ForOthers {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
