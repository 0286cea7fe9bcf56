//! A root that can remember what was read from it, so that a capture holds exactly the files that the parsers need.

use crate::root::{Entry, Root};
use nearfar_core::node::CpuList;
use std::cell::RefCell;
use std::collections::BTreeMap;

pub(super) struct Reader<'a> {
    root: &'a Root,
    seen: Option<RefCell<BTreeMap<String, Entry>>>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(root: &'a Root) -> Self {
        Self { root, seen: None }
    }

    pub(super) fn recording(root: &'a Root) -> Self {
        Self { root, seen: Some(RefCell::default()) }
    }

    /// True for this machine, where system calls and instructions may be asked as well.
    pub(super) fn is_this(&self) -> bool {
        self.root.is_this()
    }

    fn remember(&self, path: &str, entry: impl FnOnce() -> Entry) {
        if let Some(seen) = &self.seen {
            seen.borrow_mut().entry(path.to_owned()).or_insert_with(entry);
        }
    }

    pub(super) fn bytes(&self, path: &str) -> Option<Vec<u8>> {
        let bytes = self.root.bytes(path)?;
        self.remember(path, || Entry::File(bytes.clone()));
        Some(bytes)
    }

    pub(super) fn exists(&self, path: &str) -> bool {
        self.bytes(path).is_some()
    }

    pub(super) fn text(&self, path: &str) -> Option<String> {
        Some(String::from_utf8_lossy(&self.bytes(path)?).trim().to_owned())
    }

    /// The first `most` bytes of a file that may be long. Not for captures, which are to hold whole files.
    pub(super) fn beginning(&self, path: &str, most: u64) -> Option<String> {
        Some(String::from_utf8_lossy(&self.root.read(path, most).ok()?).trim().to_owned())
    }

    /// The first word of a file as a number, negative ones included.
    pub(super) fn signed(&self, path: &str) -> Option<i64> {
        self.text(path)?.split_ascii_whitespace().next()?.parse().ok()
    }

    pub(super) fn number(&self, path: &str) -> Option<u64> {
        self.signed(path)?.try_into().ok()
    }

    pub(super) fn small(&self, path: &str) -> Option<u32> {
        self.signed(path)?.try_into().ok()
    }

    pub(super) fn list(&self, path: &str) -> Option<CpuList> {
        self.text(path)?.parse().ok()
    }

    pub(super) fn link(&self, path: &str) -> Option<String> {
        let target = self.root.link(path)?;
        self.remember(path, || Entry::Link(target.clone()));
        Some(target)
    }

    pub(super) fn names(&self, path: &str) -> Vec<String> {
        self.root.names(path)
    }

    pub(super) fn numbered(&self, path: &str, prefix: &str) -> Vec<u32> {
        self.root.numbered(path, prefix)
    }

    /// The capture of what was read so far, less what is long or nobody's business.
    pub(super) fn capture(self) -> String {
        let mut entries = self.seen.map(RefCell::into_inner).unwrap_or_default();
        let has_topology = entries.keys().any(|path| path.contains("/topology/"));
        for (path, entry) in &mut entries {
            let Entry::File(bytes) = entry else { continue };
            let text = || String::from_utf8_lossy(bytes).into_owned();
            let shorter = match path.as_str() {
                "/proc/cpuinfo" if has_topology => super::cpu_info::shortened(&text()).into_bytes(),
                "/proc/self/status" => with_lines(&text(), &["Cpus_allowed", "Mems_allowed"]).into_bytes(),
                "/proc/meminfo" => with_lines(&text(), &["MemTotal", "MemFree"]).into_bytes(),
                path if path.starts_with("/sys/firmware/dmi/entries/17-") => without_strings(bytes),
                _ => continue,
            };
            *entry = Entry::File(shorter);
        }
        let paths: Vec<String> = entries.keys().cloned().collect();
        Root::Captured(entries).capture(paths.iter().map(String::as_str))
    }
}

/// A table of the firmware without its strings: serial numbers are nobody's business.
fn without_strings(raw: &[u8]) -> Vec<u8> {
    let length = raw.get(1).map_or(0, |length| usize::from(*length)).min(raw.len());
    [&raw[..length], &[0, 0]].concat()
}

fn with_lines(text: &str, beginnings: &[&str]) -> String {
    let lines = text.lines().filter(|line| beginnings.iter().any(|beginning| line.starts_with(beginning)));
    lines.map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serial_numbers_are_left_out() {
        assert_eq!(without_strings(&[17, 3, 9, b's', 0]), [17, 3, 9, 0, 0]);
    }
}
