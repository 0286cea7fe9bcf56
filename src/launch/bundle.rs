//! Files that an executable made by `cargo install` carries with it (`packaging/bundle.rs`), and puts where an installation would have put them.
//! Other executables carry none.

use crate::exit::refuse;
use crate::files::output;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// From the directory of the executable.
pub const PLACE: &str = "../lib/nearfar";
/// Says which files are there.
const STAMP: &str = "bundle";

type File = (&'static str, bool, &'static [u8]);
/// What tells these files from those of other builds; name, whether it is executed, content.
const BUNDLE: (&str, &[File]) = include!(concat!(env!("OUT_DIR"), "/bundle.rs"));

/// Unpacks what is not there yet, beside an executable in `dir`.
///
/// # Errors
/// A refusal: it cannot be written there.
pub fn unpack(dir: &Path) -> anyhow::Result<()> {
    let place = dir.join(PLACE);
    write(&place, BUNDLE).map_err(|error| {
        let shown = place.display();
        refuse(format_args!(
            "{shown} cannot be written ({error}), where this nearfar, made by \"cargo install\", puts its library: run \"nearfar doctor\" \
             once as the user who installed it"
        ))
    })
}

fn write(place: &Path, (stamp, files): (&str, &[File])) -> std::io::Result<()> {
    let is_there = || {
        let stamped = std::fs::read_to_string(place.join(STAMP)).is_ok_and(|found| found == stamp);
        stamped && files.iter().all(|(name, ..)| place.join(name).exists())
    };
    if files.is_empty() || is_there() {
        return Ok(());
    }
    std::fs::create_dir_all(place)?;
    for (name, executed, content) in files {
        let path = place.join(name);
        // Programs that run keep the file that they have.
        output::replace(&path, content)?;
        // Whatever the umask is: the program may be installed for others.
        let mode = if *executed { 0o755 } else { 0o644 };
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode))?;
    }
    // Last: all of them are there.
    output::replace(&place.join(STAMP), stamp)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::private_dir::PrivateDir;

    #[test]
    fn another_build_takes_the_place_of_the_first() {
        let dir = PrivateDir::new("nearfar-bundle-").expect("a directory");
        let place = dir.path().join("lib/nearfar");
        let read = |name: &str| std::fs::read_to_string(place.join(name)).expect("it is there");
        write(&place, ("1", &[("a.so", false, b"first"), ("program", true, b"p")])).expect("it is written");
        assert_eq!((read("a.so"), read("program")), ("first".to_owned(), "p".to_owned()));
        assert!(std::fs::metadata(place.join("program")).expect("it is there").permissions().mode() & 0o111 != 0);
        // The same build writes nothing, so that it also works where it may not.
        write(&place, ("1", &[("a.so", false, b"not written")])).expect("nothing to do");
        assert_eq!(read("a.so"), "first");
        write(&place, ("2", &[("a.so", false, b"second")])).expect("it is written");
        assert_eq!(read("a.so"), "second");
        std::fs::remove_file(place.join("a.so")).expect("it is removed");
        write(&place, ("2", &[("a.so", false, b"second")])).expect("it is written");
        assert_eq!(read("a.so"), "second");
        assert_eq!(std::fs::read_dir(&place).expect("it is there").count(), 3, "something is left behind");
    }

    #[test]
    fn nothing_to_carry_touches_nothing() {
        write(Path::new("/proc/none"), ("", &[])).expect("nothing to do");
        assert!(write(Path::new("/proc/none"), ("1", &[("a", false, b"")])).is_err());
    }
}
