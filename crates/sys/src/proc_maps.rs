//! The parser of /proc/PID/maps.

use nearfar_core::addr::Extent;

/// One line of /proc/PID/maps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The bytes mapped.
    pub range: Extent,
    /// PROT_* bits.
    pub prot: i32,
    /// True for MAP_SHARED.
    pub shared: bool,
    /// Where in the file it begins.
    pub offset: u64,
    /// Inode of the file, 0 for anonymous memory.
    pub inode: u64,
    /// Path or name in brackets; empty for plain anonymous memory.
    pub name: String,
}

/// Parses one line; `None` when it is not of the expected form.
pub fn parse_line(line: &str) -> Option<Mapping> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let perms = fields.next()?.as_bytes();
    let offset = u64::from_str_radix(fields.next()?, 16).ok()?;
    let _device = fields.next()?;
    let inode = fields.next()?.parse().ok()?;
    let name = fields.next().unwrap_or("").trim().to_owned();
    if perms.len() < 4 {
        return None;
    }
    let bit = |index: usize, letter: u8, value: i32| if perms[index] == letter { value } else { 0 };
    Some(Mapping {
        range: Extent { start: usize::from_str_radix(start, 16).ok()?, end: usize::from_str_radix(end, 16).ok()? },
        prot: bit(0, b'r', libc::PROT_READ) | bit(1, b'w', libc::PROT_WRITE) | bit(2, b'x', libc::PROT_EXEC),
        shared: perms[3] == b's',
        offset,
        inode,
        name,
    })
}

/// The mappings of the calling process.
pub fn own() -> Vec<Mapping> {
    // The thread's: the process's are empty once its first thread has ended.
    std::fs::read_to_string("/proc/thread-self/maps").unwrap_or_default().lines().filter_map(parse_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::c_void;
    use std::os::fd::AsRawFd;

    #[test]
    fn lines() {
        let m = parse_line("7f00-8f00 rw-p 00000000 00:00 0 ").expect("valid");
        assert_eq!((m.range.start, m.prot, m.shared, m.name.as_str()), (0x7f00, 3, false, ""));
        let m = parse_line("7f00-8f00 r-xs 00000000 08:01 42                         /usr/lib/a b.so").expect("valid");
        assert_eq!((m.inode, m.shared, m.name.as_str()), (42, true, "/usr/lib/a b.so"));
        assert_eq!(parse_line("nonsense"), None);
    }

    #[test]
    fn own_has_a_stack() {
        assert!(own().iter().any(|m| m.name == "[stack]"));
    }

    /// The leader of the process of tests waits for them: a child's leaves.
    #[test]
    fn own_after_the_first_thread_has_left() {
        extern "C" fn look(_: *mut c_void) -> *mut c_void {
            // SAFETY: integers only. The leader has to be gone: it needs less than that.
            unsafe { libc::usleep(100_000) };
            let page = crate::pagemap::Pagemap::open().map(|map| map.as_raw_fd()).is_ok();
            // SAFETY: ends the child.
            unsafe { libc::_exit(if own().is_empty() || !page { 1 } else { 0 }) }
        }
        // SAFETY: the child starts a thread and ends its own; the C library's heap is usable after fork.
        unsafe {
            let child = libc::fork();
            if child == 0 {
                let mut thread: libc::pthread_t = std::mem::zeroed();
                libc::pthread_create(&mut thread, std::ptr::null(), look, std::ptr::null_mut());
                libc::syscall(libc::SYS_exit, 0);
            }
            let mut status = -1;
            libc::waitpid(child, &mut status, 0);
            assert_eq!(status, 0);
        }
    }
}
