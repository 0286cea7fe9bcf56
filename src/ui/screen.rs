//! The whole terminal, for commands that draw on it and read keys. Nothing else uses the crate that talks to it.
//!
//! Invariant: the terminal is as it was before when the screen is dropped, and when the command panics.

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::{DefaultTerminal, Frame};
use std::io::{self, IsTerminal};
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

/// What somebody pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A letter or sign.
    Char(char),
    /// An arrow.
    Up,
    /// An arrow.
    Down,
    /// The first of a list.
    Home,
    /// The last of a list.
    End,
    /// Esc.
    Escape,
    /// Ctrl-C or Ctrl-D.
    Interrupt,
    /// None: the terminal has another size.
    Resized,
}

/// True when somebody sits before both ends.
pub fn is_possible() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
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
        Ok(Self { terminal: ratatui::try_init()? })
    }

    /// Draws anew.
    ///
    /// # Errors
    /// Those of the terminal, which may be gone.
    pub fn draw(&mut self, what: impl FnOnce(&mut Frame)) -> io::Result<()> {
        self.terminal.draw(what).map(|_| ())
    }

    /// Readable when somebody pressed a key.
    pub fn keyboard(&self) -> RawFd {
        io::stdin().as_raw_fd()
    }

    /// What has been pressed since; does not wait.
    ///
    /// # Errors
    /// Those of the terminal, which may be gone.
    pub fn keys(&mut self) -> io::Result<Vec<Key>> {
        let mut keys = Vec::new();
        while event::poll(Duration::ZERO)? {
            match event::read()? {
                Event::Key(key) if key.kind != KeyEventKind::Release => {
                    let control = key.modifiers.contains(KeyModifiers::CONTROL);
                    keys.extend(key_of(key.code, control));
                }
                Event::Resize(..) => keys.push(Key::Resized),
                _ => {}
            }
        }
        Ok(keys)
    }
}

fn key_of(code: KeyCode, control: bool) -> Option<Key> {
    match code {
        KeyCode::Char('c' | 'd') if control => Some(Key::Interrupt),
        KeyCode::Char(letter) if !control => Some(Key::Char(letter)),
        KeyCode::Up => Some(Key::Up),
        KeyCode::Down => Some(Key::Down),
        KeyCode::Home => Some(Key::Home),
        KeyCode::End => Some(Key::End),
        KeyCode::Esc => Some(Key::Escape),
        _ => None,
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing.
        let _ = ratatui::try_restore();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys() {
        assert_eq!(key_of(KeyCode::Char('c'), true), Some(Key::Interrupt));
        assert_eq!(key_of(KeyCode::Char('c'), false), Some(Key::Char('c')));
        assert_eq!((key_of(KeyCode::Char('x'), true), key_of(KeyCode::Tab, false)), (None, None));
    }
}
