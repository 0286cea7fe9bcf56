//! Tables of text: the one look that they have in all sub-commands. Nothing else uses the crate behind it.

pub use comfy_table::Table;

use comfy_table::{CellAlignment, ContentArrangement, presets};
use std::io::IsTerminal;

/// A framed table that is as wide as what it holds.
pub fn framed() -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_BORDERS_ONLY);
    table
}

/// A framed table that wraps to the terminal when it is read on one, and to `width` columns elsewhere.
pub fn wrapped(width: u16, to_terminal: bool) -> Table {
    wrap(framed(), width, to_terminal)
}

/// [`wrapped`], for standard output.
pub fn for_output(width: u16) -> Table {
    wrapped(width, std::io::stdout().is_terminal())
}

/// A table that wraps likewise, without a frame.
pub fn unframed(width: u16, to_terminal: bool) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    wrap(table, width, to_terminal)
}

fn wrap(mut table: Table, width: u16, to_terminal: bool) -> Table {
    table.set_content_arrangement(ContentArrangement::Dynamic);
    if !to_terminal {
        table.set_width(width);
    }
    table
}

/// Aligns these columns, which hold numbers, to the right.
pub fn align_right(table: &mut Table, columns: impl IntoIterator<Item = usize>) {
    for column in columns {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}
