//! Tables of text for people: columns without lines around them.

use comfy_table::{Table, presets};

/// An empty table with these headings.
pub(crate) fn table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    table
}

/// The table as the lines of a text, for the result in one piece: a line written by itself costs a call of the system.
pub(crate) fn lines_of(rows: &Table) -> String {
    rows.lines()
        .map(|line| line.trim_end().to_owned())
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_a_table_end_with_no_blanks() {
        let mut rows = table(["spec", "next"]);
        rows.add_row(["a-long-name", ""]).add_row(["b", "resume"]);
        assert_eq!(
            lines_of(&rows),
            " spec         next\n a-long-name\n b            resume"
        );
    }
}
