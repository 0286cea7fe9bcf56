//! The whole terminal, for commands that draw on it and read keys.
//!
//! Invariant: the terminal is as it was before when the screen is dropped, and when the command panics. Keys are read here and not by
//! the crate that draws: it would read a terminal that is gone for ever.

use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::execute;
use ratatui::{DefaultTerminal, Frame};
use std::io::{self, BufRead, IsTerminal};
use std::os::fd::{AsRawFd, RawFd};

/// What somebody pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A letter or sign.
    Char(char),
    /// An arrow.
    Up,
    /// An arrow.
    Down,
    /// Esc.
    Escape,
    /// Ctrl-C or Ctrl-D.
    Interrupt,
}

/// True when both ends are a terminal.
pub fn is_possible() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Columns of the terminal that standard output is; `None` when it is none.
pub fn width() -> Option<usize> {
    let size = io::stdout().is_terminal().then(|| ratatui::crossterm::terminal::size().ok())??;
    Some(size.0.into())
}

/// True when colours are wanted (no-color.org).
pub fn has_colour() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// The terminal, drawn on.
pub struct Screen {
    terminal: DefaultTerminal,
}

impl Screen {
    /// Takes the terminal.
    ///
    /// # Errors
    /// Those of the terminal.
    pub fn open() -> io::Result<Self> {
        let before = std::panic::take_hook();
        // Called by the hook that ratatui sets, which leaves the cursor hidden.
        std::panic::set_hook(Box::new(move |panic| {
            show_cursor();
            before(panic);
        }));
        Ok(Self { terminal: ratatui::try_init()? })
    }

    /// Draws anew, in the size that the terminal has now.
    ///
    /// # Errors
    /// Those of the terminal, which may be gone.
    pub fn draw(&mut self, what: impl FnOnce(&mut Frame)) -> io::Result<()> {
        self.terminal.draw(what).map(|_| ())
    }

    /// Readable when somebody has pressed a key.
    pub fn keyboard(&self) -> RawFd {
        io::stdin().as_raw_fd()
    }

    /// What has been pressed. For a keyboard that is readable; waits otherwise.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn keys(&mut self) -> io::Result<Vec<Key>> {
        let mut stdin = io::stdin().lock();
        let bytes = stdin.fill_buf()?;
        let (keys, len) = (parse(bytes), bytes.len());
        stdin.consume(len);
        if len == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(keys) }
    }
}

fn show_cursor() {
    // A terminal that is gone needs nothing.
    let _ = execute!(io::stdout(), Show);
}

impl Drop for Screen {
    fn drop(&mut self) {
        show_cursor();
        let _ = ratatui::try_restore();
    }
}

/// The keys in what a terminal sends. What is not known is left out.
fn parse(bytes: &[u8]) -> Vec<Key> {
    let text = String::from_utf8_lossy(bytes);
    let (mut keys, mut rest) = (Vec::new(), text.as_ref());
    while let Some(first) = rest.chars().next() {
        let sequence = ["\x1b[", "\x1bO"].iter().find_map(|begin| rest.strip_prefix(begin));
        if let Some(sequence) = sequence {
            let end = sequence.find(|c: char| c.is_ascii_alphabetic() || c == '~').map_or(sequence.len(), |at| at + 1);
            match &sequence[..end] {
                "A" => keys.push(Key::Up),
                "B" => keys.push(Key::Down),
                _ => {}
            }
            rest = &sequence[end..];
            continue;
        }
        match first {
            '\x1b' => keys.push(Key::Escape),
            '\x03' | '\x04' => keys.push(Key::Interrupt),
            _ if first.is_control() => {}
            _ => keys.push(Key::Char(first)),
        }
        rest = &rest[first.len_utf8()..];
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys() {
        let pressed = parse("q\x1b[A\x1bOB\x1b[5~\x1b[1;5Cä\r\x03\x1b".as_bytes());
        assert_eq!(pressed, [Key::Char('q'), Key::Up, Key::Down, Key::Char('ä'), Key::Interrupt, Key::Escape]);
        assert_eq!(parse(b"\x1b[\xff"), []);
    }
}
