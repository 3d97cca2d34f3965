//! Tables of text for people: columns without lines around them.

use comfy_table::{Table, presets};

/// An empty table with these headings.
pub(crate) fn table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    table
}
