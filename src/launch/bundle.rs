//! Files that an executable made by `cargo install` carries with it (`packaging/bundle.rs`), and puts where an installation would have put them.
//! Other executables carry none.

use crate::exit::refuse;
use crate::files::output;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
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
    if !BUNDLE.1.is_empty() {
        check(dir, &place)?;
    }
    write(&place, BUNDLE).map_err(|error| {
        let shown = place.display();
        refuse(format_args!(
            "{shown} cannot be written ({error}), where this nearfar, made by \"cargo install\", puts its library: run \"nearfar doctor\" \
             once as the user who installed it"
        ))
    })
}

/// Whoever can put a library there runs code as whoever starts this executable: only those who could replace it may be able to.
fn check(dir: &Path, place: &Path) -> anyhow::Result<()> {
    let owner = std::fs::metadata(dir)?.uid();
    for dir in [place.parent().unwrap_or(place), place] {
        let Ok(found) = std::fs::metadata(dir) else { continue };
        if ![0, owner].contains(&found.uid()) || found.mode() & 0o002 != 0 {
            return Err(refuse(format_args!(
                "{} belongs to another user, or all may write there: nearfar takes no library from it; move the executable elsewhere",
                dir.display()
            )));
        }
    }
    Ok(())
}

fn write(place: &Path, (stamp, files): (&str, &[File])) -> std::io::Result<()> {
    let is_there = || {
        let stamped = std::fs::read_to_string(place.join(STAMP)).is_ok_and(|found| found == stamp);
        stamped && files.iter().all(|(name, ..)| place.join(name).exists())
    };
    if files.is_empty() || is_there() {
        return Ok(());
    }
    // Whatever the umask is: the program may be installed for others.
    for dir in [place.parent().unwrap_or(place), place] {
        if !dir.exists() {
            std::fs::create_dir(dir)?;
            std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o755))?;
        }
    }
    for (name, executed, content) in files {
        let path = place.join(name);
        // Programs that run keep the file that they have.
        output::replace_as(&path, content, Some(if *executed { 0o755 } else { 0o644 }))?;
    }
    // Last: all of them are there.
    output::replace_as(&place.join(STAMP), stamp, Some(0o644))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::private_dir::PrivateDir;

    #[test]
    fn another_build_takes_the_place_of_the_first() {
        let dir = PrivateDir::new("nearfar-bundle-").expect("a directory");
        std::fs::create_dir(dir.path().join("bin")).expect("a directory");
        let place = dir.path().join("bin").join(PLACE);
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
        assert!(check(dir.path(), &place).is_ok());
        std::fs::set_permissions(&place, std::fs::Permissions::from_mode(0o777)).expect("it is ours");
        assert!(check(dir.path(), &place).is_err(), "others could have put a library there");
    }

    #[test]
    fn nothing_to_carry_touches_nothing() {
        write(Path::new("/proc/none"), ("", &[])).expect("nothing to do");
        assert!(write(Path::new("/proc/none"), ("1", &[("a", false, b"")])).is_err());
    }
}
