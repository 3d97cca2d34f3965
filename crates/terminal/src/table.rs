//! Tables of text for people: columns without lines around them.

use comfy_table::{ContentArrangement, Table, presets};

/// Returns an empty table with these headings.
pub fn table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    table
}

/// Wraps the columns to the width of the terminal, if it has at least `narrowest` columns.
pub fn wrap_to_terminal(table: &mut Table, narrowest: u16) {
    if table.width().is_some_and(|width| width >= narrowest) {
        table.set_content_arrangement(ContentArrangement::Dynamic);
    }
}

/// Returns the table as one text without trailing blanks, to be written by one system call.
pub fn lines_of(rows: &Table) -> String {
    rows.lines()
        .map(|line| line.trim_end().to_owned())
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_lines_have_no_trailing_blanks() {
        let mut rows = table(["spec", "next"]);
        rows.add_row(["a-long-name", ""]).add_row(["b", "resume"]);
        assert_eq!(
            lines_of(&rows),
            " spec         next\n a-long-name\n b            resume"
        );
    }
}
