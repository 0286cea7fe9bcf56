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
    let (_offset, _device) = (fields.next()?, fields.next()?);
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
        inode,
        name,
    })
}

/// The mappings of the calling process.
pub fn own() -> Vec<Mapping> {
    std::fs::read_to_string("/proc/self/maps").unwrap_or_default().lines().filter_map(parse_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
