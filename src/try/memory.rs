//! How much memory a program and its children have, from outside and without rights.

use nearfar_sys::root::Root;

/// Bytes of data (not files) that all processes of a process group have resident together. Pages that processes share after a fork count
/// for each of them.
pub fn of_group(root: &Root, group: u32) -> u64 {
    let mut sum = 0;
    for process in root.numbered("/proc", "") {
        let in_group = root.text(&format!("/proc/{process}/stat")).and_then(|stat| group_of(&stat)) == Some(group);
        if in_group && let Some(status) = root.text(&format!("/proc/{process}/status")) {
            sum += data_of(&status);
        }
    }
    sum
}

/// The process group in /proc/PID/stat. The name before it may hold anything, so what counts is behind its last parenthesis.
fn group_of(stat: &str) -> Option<u32> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(2)?.parse().ok()
}

/// Private and shared memory without a file, in /proc/PID/status.
fn data_of(status: &str) -> u64 {
    let kib = |line: &str| line.split_whitespace().nth(1).and_then(|number| number.parse::<u64>().ok());
    let counts = |line: &&str| line.starts_with("RssAnon:") || line.starts_with("RssShmem:");
    status.lines().filter(counts).filter_map(kib).sum::<u64>() << 10
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_proc_says_is_understood() {
        assert_eq!(group_of("17 (a) b (c)) S 1 42 42 0 -1 4194560"), Some(42));
        assert_eq!(group_of("17 (cut"), None);
        assert_eq!(data_of("Name:\tx\nRssAnon:\t    2048 kB\nRssFile:\t 9 kB\nRssShmem:\t 1024 kB\n"), 3 << 20);
        assert!(of_group(&Root::this(), group_of(&Root::this().text("/proc/self/stat").expect("stat")).expect("group")) > 0);
    }
}
