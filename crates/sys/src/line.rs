//! A line of text that needs no heap: for what is said when the heap, or who has its lock, may be gone.

use std::fmt;

/// Room of a line; what is more is cut off.
const ROOM: usize = 4096;

/// A text of at most 4096 bytes, in place.
pub struct Line {
    bytes: [u8; ROOM],
    len: usize,
}

impl Line {
    /// What `arguments` say.
    pub fn of(arguments: fmt::Arguments<'_>) -> Self {
        let mut line = Self { bytes: [0; ROOM], len: 0 };
        // Cannot fail: what has no room is left out.
        let _ = fmt::Write::write_fmt(&mut line, arguments);
        line
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        // Whole characters were added.
        std::str::from_utf8(&self.bytes[..self.len]).unwrap_or_default()
    }
}

impl fmt::Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut fits = text.len().min(ROOM - self.len);
        while !text.is_char_boundary(fits) {
            fits -= 1;
        }
        self.bytes[self.len..self.len + fits].copy_from_slice(&text.as_bytes()[..fits]);
        self.len += fits;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_room_is_cut_off_at_a_character() {
        assert_eq!(Line::of(format_args!("process {}", 7)).as_str(), "process 7");
        let long = "\u{e9}".repeat(ROOM);
        assert_eq!(Line::of(format_args!("a{long}")).as_str().len(), ROOM - 1);
    }
}
