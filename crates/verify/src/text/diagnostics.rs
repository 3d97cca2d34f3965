//! Puts the diagnostics of compilers that ran side by side into one order.
//!
//! A diagnostic is a block: a line that begins with `error` or `warning`, a place after `-->`, and everything up
//! to the next empty line. A row of blocks is sorted by place and each is kept once. The lines with which cargo
//! closes each crate's part would break the row, so they are taken out of it and stand behind it, shortened to
//! what does not depend on which compiler was first.

use std::collections::BTreeSet;

/// The lines, with each row of diagnostics in the order of their places.
pub(super) fn sort_diagnostics(lines: Vec<String>) -> Vec<String> {
    let mut out = Vec::with_capacity(lines.len());
    let mut row = Row::default();
    let mut rest = lines.into_iter().peekable();
    while let Some(current) = rest.next() {
        let begins = is_headline(&current) && rest.peek().is_some_and(|next| place(next).is_some());
        if begins {
            let mut block = vec![current];
            while let Some(next) = rest.next_if(|next| !next.is_empty()) {
                block.push(next);
            }
            rest.next_if(String::is_empty);
            row.blocks.insert(Block::new(block));
        } else if is_closing(&current) || (current.is_empty() && !row.blocks.is_empty()) {
            row.close(current);
        } else {
            row.flush(&mut out);
            out.push(current);
        }
    }
    row.flush(&mut out);
    out
}

/// Diagnostics that followed each other.
#[derive(Default)]
struct Row {
    blocks: BTreeSet<Block>,
    crates: BTreeSet<String>,
}

impl Row {
    fn close(&mut self, line: String) {
        if let Some(rest) = line.strip_prefix("error: could not compile `")
            && let Some((name, _)) = rest.split_once('`')
        {
            self.crates
                .insert(format!("error: could not compile `{name}`"));
        }
    }

    fn flush(&mut self, out: &mut Vec<String>) {
        for block in std::mem::take(&mut self.blocks) {
            out.extend(block.lines);
            out.push(String::new());
        }
        out.extend(std::mem::take(&mut self.crates));
    }
}

/// One diagnostic, ordered by its place, then by its words.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Block {
    file: String,
    position: Vec<u64>,
    lines: Vec<String>,
}

impl Block {
    fn new(lines: Vec<String>) -> Self {
        let place = lines
            .get(1)
            .and_then(|line| place(line))
            .unwrap_or_default();
        let mut parts = place.split(':');
        let file = parts.next().unwrap_or_default().to_owned();
        let position = parts.filter_map(|part| part.parse().ok()).collect();
        Self {
            file,
            position,
            lines,
        }
    }
}

fn is_headline(line: &str) -> bool {
    ["error", "warning"].iter().any(|word| {
        line.strip_prefix(word)
            .is_some_and(|rest| rest.starts_with(':') || rest.starts_with('['))
    })
}

/// `src/lib.rs:3:5` out of ` --> src/lib.rs:3:5`.
fn place(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix("--> ")
}

/// Whether cargo or rustc closes a crate's part with this line.
fn is_closing(line: &str) -> bool {
    const CLOSINGS: [&str; 6] = [
        "error: could not compile `",
        "error: aborting due to ",
        "warning: build failed, waiting",
        "For more information about this error, try `rustc --explain",
        "For more information about an error, try `rustc --explain",
        "Some errors have detailed explanations:",
    ];
    CLOSINGS.iter().any(|closing| line.starts_with(closing))
        || (line.starts_with("warning: `")
            && line.contains(" generated ")
            && line.contains(" warning"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normalize(lines: &[&str]) -> Vec<String> {
        sort_diagnostics(lines.iter().map(|line| (*line).to_owned()).collect())
    }

    #[test]
    fn compilers_side_by_side_read_as_one() {
        let a = [
            "error[E0425]: cannot find value `x`",
            "  --> a/src/lib.rs:10:3",
            "   |",
            "",
        ];
        let a2 = ["warning: unused", "  --> a/src/lib.rs:9:3", "   |", ""];
        let b = ["error: expected `;`", " --> b/src/lib.rs:2:1", "  |", ""];
        let more = "For more information about this error, try `rustc --explain E0425`.";
        let lib = "error: could not compile `a` (lib) due to 1 previous error; 1 warning emitted";
        let test = "error: could not compile `a` (lib test) due to 1 previous error";
        let b_failed = "error: could not compile `b` (lib) due to 1 previous error";
        let waiting = "warning: build failed, waiting for other jobs to finish...";
        let one = [
            &a[..],
            &a2,
            &[more, lib, waiting],
            &b,
            &[b_failed, test, "end"],
        ]
        .concat();
        let two = [
            &b[..],
            &[b_failed, waiting],
            &a2,
            &a,
            &[more, test, lib, "end"],
        ]
        .concat();
        assert_eq!(normalize(&one), normalize(&two));
        let expected = [
            &a2[..],
            &a,
            &b,
            &[
                "error: could not compile `a`",
                "error: could not compile `b`",
                "end",
            ],
        ]
        .concat();
        assert_eq!(normalize(&one), expected);
    }

    #[test]
    fn other_text_stays_where_it_is() {
        let text = [
            "b",
            "",
            "error: no place",
            "a",
            "",
            "",
            "warning: neither",
            "",
        ];
        assert_eq!(normalize(&text), text);
    }
}
