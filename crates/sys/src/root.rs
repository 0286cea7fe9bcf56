//! Every look at /proc and /sys that describes the machine starts here, so that a captured machine can stand in for this one.
//!
//! A *capture* is one text file: for each file a line `=== PATH`, then its content with every line behind a space; for each symbolic
//! link a line `--- PATH TARGET`; for files that are no text a line `=x= PATH` and hexadecimal digits behind a space. Paths begin
//! with `/`. Nothing is ever written.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Larger files are cut: descriptions of machines are small.
const MOST: u64 = 1 << 20;

/// Most files fit into this, and are then read with one call; the size that the kernel says of them is not their length.
const FIRST: usize = 4096;

/// Where the description of a machine is read.
#[derive(Clone, Debug)]
pub enum Root {
    /// A directory; `/` for this machine.
    Dir(PathBuf),
    /// A captured machine.
    Captured(BTreeMap<String, Entry>),
}

/// A captured file or link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A file.
    File(Vec<u8>),
    /// A symbolic link and its target.
    Link(String),
}

impl Root {
    /// This machine.
    pub fn this() -> Self {
        Self::Dir("/".into())
    }

    /// True for this machine, where system calls tell the same as files.
    pub fn is_this(&self) -> bool {
        matches!(self, Self::Dir(dir) if dir == Path::new("/"))
    }

    /// A directory, or the text of a capture.
    ///
    /// # Errors
    /// What is wrong with the file, for people.
    pub fn open(path: &Path) -> Result<Self, String> {
        if path.is_dir() {
            return Ok(Self::Dir(path.to_owned()));
        }
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Self::captured(&text).map_err(|why| format!("{}: {why}", path.display()))
    }

    /// A captured machine.
    ///
    /// # Errors
    /// The first line that is not understood.
    pub fn captured(text: &str) -> Result<Self, String> {
        let mut entries = BTreeMap::new();
        let mut open: Option<(String, bool, String)> = None;
        let close = |open: &mut Option<(String, bool, String)>, entries: &mut BTreeMap<String, Entry>| -> Result<(), String> {
            let Some((path, hex, content)) = open.take() else { return Ok(()) };
            let bytes =
                if hex { unhex(&content).ok_or(format!("{path}: bad hexadecimal digits"))? } else { content.into_bytes() };
            entries.insert(path, Entry::File(bytes));
            Ok(())
        };
        for (number, line) in text.lines().enumerate() {
            let bad = || format!("line {}: not a capture (=== PATH, then lines that begin with a space)", number + 1);
            if let Some(content) = line.strip_prefix(' ') {
                let (_, _, text) = open.as_mut().ok_or_else(bad)?;
                text.push_str(content);
                text.push('\n');
                continue;
            }
            close(&mut open, &mut entries)?;
            match line.split_once(' ') {
                Some(("===", path)) if path.starts_with('/') => open = Some((path.to_owned(), false, String::new())),
                Some(("=x=", path)) if path.starts_with('/') => open = Some((path.to_owned(), true, String::new())),
                Some(("---", link)) => {
                    let (path, target) = link.split_once(' ').ok_or_else(bad)?;
                    entries.insert(path.to_owned(), Entry::Link(target.to_owned()));
                }
                _ if line.is_empty() || line.starts_with('#') => {}
                _ => return Err(bad()),
            }
        }
        close(&mut open, &mut entries)?;
        Ok(Self::Captured(entries))
    }

    /// The content of a file; `None` when it is not there or cannot be read.
    pub fn bytes(&self, path: &str) -> Option<Vec<u8>> {
        match self {
            Self::Dir(dir) => {
                let file = std::fs::File::open(dir.join(path.trim_start_matches('/'))).ok()?;
                let mut bytes = Vec::with_capacity(FIRST);
                file.take(MOST).read_to_end(&mut bytes).ok()?;
                Some(bytes)
            }
            Self::Captured(entries) => match entries.get(path)? {
                Entry::File(bytes) => Some(bytes.clone()),
                Entry::Link(_) => None,
            },
        }
    }

    /// The first `most` bytes of a file that may be long, or why it cannot be read.
    ///
    /// # Errors
    /// Those of opening and reading it; `NotFound` for what a capture lacks.
    pub fn read(&self, path: &str, most: u64) -> std::io::Result<Vec<u8>> {
        match self {
            Self::Dir(dir) => {
                let file = std::fs::File::open(dir.join(path.trim_start_matches('/')))?;
                let mut bytes = Vec::with_capacity(FIRST);
                file.take(most).read_to_end(&mut bytes)?;
                Ok(bytes)
            }
            Self::Captured(_) => self.bytes(path).ok_or_else(|| std::io::ErrorKind::NotFound.into()),
        }
    }

    /// The text of a file without blanks around it.
    pub fn text(&self, path: &str) -> Option<String> {
        Some(String::from_utf8_lossy(&self.bytes(path)?).trim().to_owned())
    }

    /// The first word of a file as a number.
    pub fn number(&self, path: &str) -> Option<u64> {
        self.text(path)?.split_ascii_whitespace().next()?.parse().ok()
    }

    /// Names in a directory, ascending; none when it is not there.
    pub fn names(&self, path: &str) -> Vec<String> {
        let mut names: Vec<String> = match self {
            Self::Dir(dir) => {
                let Ok(entries) = std::fs::read_dir(dir.join(path.trim_start_matches('/'))) else { return Vec::new() };
                entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect()
            }
            Self::Captured(entries) => {
                let prefix = format!("{}/", path.trim_end_matches('/'));
                let below = entries.range(prefix.clone()..).take_while(|(path, _)| path.starts_with(&prefix));
                below.filter_map(|(path, _)| path[prefix.len()..].split('/').next().map(str::to_owned)).collect()
            }
        };
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Numbers behind `prefix` in the names of a directory: `node0`, `node3` give 0 and 3 for "node".
    pub fn numbered(&self, path: &str, prefix: &str) -> Vec<u32> {
        let names = self.names(path);
        let mut numbers: Vec<u32> = names.iter().filter_map(|name| name.strip_prefix(prefix)?.parse().ok()).collect();
        numbers.sort_unstable();
        numbers
    }

    /// Where a symbolic link points to.
    pub fn link(&self, path: &str) -> Option<String> {
        match self {
            Self::Dir(dir) => {
                let target = std::fs::read_link(dir.join(path.trim_start_matches('/'))).ok()?;
                Some(target.to_string_lossy().into_owned())
            }
            Self::Captured(entries) => match entries.get(path)? {
                Entry::Link(target) => Some(target.clone()),
                Entry::File(_) => None,
            },
        }
    }

    /// The text of a capture of these files and links (those that can be read).
    pub fn capture<'a>(&self, paths: impl IntoIterator<Item = &'a str>) -> String {
        let mut text = String::new();
        for path in paths {
            if let Some(target) = self.link(path) {
                let _ = writeln!(text, "--- {path} {target}");
            } else if let Some(bytes) = self.bytes(path) {
                match std::str::from_utf8(&bytes) {
                    Ok(content) => {
                        let _ = writeln!(text, "=== {path}");
                        content.lines().for_each(|line| {
                            let _ = writeln!(text, " {line}");
                        });
                    }
                    Err(_) => {
                        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                        let _ = writeln!(text, "=x= {path}\n {digits}");
                    }
                }
            }
        }
        text
    }
}

fn unhex(digits: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = digits.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let value = |digit: u8| (digit as char).to_digit(16).map(|value| value as u8);
    digits.chunks(2).map(|pair| Some(value(pair[0])? << 4 | value(*pair.get(1)?)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captures_read_like_directories() {
        let text = "# a machine\n=== /sys/n/node0/meminfo\n Node 0 MemTotal: 4 kB\n\n=== /sys/n/node10/cpulist\n 0-3\n--- /sys/d/x ../y\n=x= /sys/raw\n 00ff\n";
        let root = Root::captured(text).expect("a capture");
        assert_eq!(root.text("/sys/n/node0/meminfo").as_deref(), Some("Node 0 MemTotal: 4 kB"));
        assert_eq!(root.numbered("/sys/n", "node"), [0, 10]);
        assert_eq!(root.names("/sys"), ["d", "n", "raw"]);
        assert_eq!(root.link("/sys/d/x").as_deref(), Some("../y"));
        assert_eq!(root.bytes("/sys/raw"), Some(vec![0, 255]));
        assert_eq!(root.bytes("/sys/none"), None);
        let Root::Captured(entries) = &root else { panic!("captured") };
        let again = root.capture(entries.keys().map(String::as_str));
        assert!(matches!(Root::captured(&again), Ok(Root::Captured(same)) if same == *entries), "{again}");
        for bad in [" lost\n", "rubbish\n", "=x= /a\n zz\n"] {
            assert!(Root::captured(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn this_machine() {
        let root = Root::this();
        assert!(root.is_this() && root.names("/proc").contains(&"self".to_owned()));
        assert!(root.number("/proc/uptime").is_none() && root.text("/proc/version").is_some());
    }
}
