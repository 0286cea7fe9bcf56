//! A line of `nearfar doctor`.

use crate::ui::table::{Table, for_output};

/// How good the news of a row are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It works.
    Good,
    /// It works by a slower path.
    Slower,
    /// Worth knowing.
    Note,
    /// Without it nothing works.
    No,
}

impl State {
    /// In the table.
    pub const fn word(self) -> &'static str {
        match self {
            State::Good => "ok",
            State::Slower => "slower",
            State::Note => "note",
            State::No => "MISSING",
        }
    }
}

/// A line of the table.
pub struct Row {
    /// What it is about.
    pub what: &'static str,
    /// The news.
    pub state: State,
    /// The rest.
    pub words: String,
}

/// A line on `what`.
pub fn row(what: &'static str, state: State, words: impl Into<String>) -> Row {
    Row { what, state, words: words.into() }
}

/// All lines.
pub fn table(rows: &[Row]) -> Table {
    let mut table = for_output(110);
    for row in rows {
        table.add_row([row.what, row.state.word(), &row.words]);
    }
    table
}
