//! Names of the files of one rank of many: with its node and its number in them, so that ranks do not overwrite each other.

use nearfar_core::share::Member;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The name of this node, without its domain.
pub fn host() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    plain(text.trim())
}

/// The name of a node without its domain, as a part of a file's name.
pub fn plain(name: &str) -> String {
    let name = name.split('.').next().unwrap_or_default().replace(['/', '\0'], "-");
    if name.is_empty() { "localhost".to_owned() } else { name }
}

/// `path` with `%h` as the host, `%r` as the rank and `%%` as a percent sign, and whether the rank is in it.
pub fn with_marks(path: &Path, host: &str, rank: u32) -> (PathBuf, bool) {
    let mut bytes = Vec::new();
    let mut names_rank = false;
    let mut rest = path.as_os_str().as_bytes();
    while let [first, after @ ..] = rest {
        let mark = (*first == b'%').then(|| after.first()).flatten();
        match mark {
            Some(b'h') => bytes.extend(host.as_bytes()),
            Some(b'r') => {
                bytes.extend(rank.to_string().as_bytes());
                names_rank = true;
            }
            Some(b'%') => bytes.push(b'%'),
            _ => {
                bytes.push(*first);
                rest = after;
                continue;
            }
        }
        rest = &after[1..];
    }
    (OsString::from_vec(bytes).into(), names_rank)
}

/// What a name gets that does not name the rank.
pub fn rank_suffix(host: &str, member: Option<&Member>) -> String {
    let Some(member) = member else { return String::new() };
    let host = if member.on_several_nodes() { format!(".{host}") } else { String::new() };
    format!("{host}.rank{}", member.rank.number)
}

/// `path` with `suffix` before its extension; devices and pipes stay what they are.
pub fn add(path: &Path, suffix: &str) -> PathBuf {
    let Some(stem) = path.file_stem().filter(|_| !is_special(path)) else { return path.to_owned() };
    let mut name = stem.to_owned();
    name.push(suffix);
    if let Some(extension) = path.extension() {
        name.push(OsStr::new("."));
        name.push(extension);
    }
    path.with_file_name(name)
}

/// True of what no file is written to: a device, a pipe.
pub fn is_special(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|facts| !facts.is_file() && !facts.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files() {
        let of = |path: &str| {
            let (path, names_rank) = with_marks(Path::new(path), "knl", 7);
            (path.display().to_string(), names_rank)
        };
        assert_eq!(of("out/%h/run-%r.json"), ("out/knl/run-7.json".into(), true));
        assert_eq!(of("50%%-%h%x%"), ("50%-knl%x%".into(), false));
        assert_eq!(add(Path::new("a/run.json"), ".knl"), Path::new("a/run.knl.json"));
        assert_eq!(add(Path::new("run"), ".rank3"), Path::new("run.rank3"));
        assert_eq!(add(Path::new("/dev/null"), ".rank3"), Path::new("/dev/null"));
    }
}
