//! The definitions of a source file with their lines, to show parts of a large file.
//!
//! The reading is that of [`crate::syntax`]: containers are looked into, functions are not. A file that does not follow its
//! grammar, or has none here, has no outline.

use crucible_model::RepoPath;

use crate::syntax::{Branches, Grammar, Kind, Outline, Parsed};

/// A definition, a block of imports or another statement of a source file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutlineItem {
    /// Its names; empty for imports and other statements.
    pub names: Vec<String>,
    /// Whether it is an import.
    pub is_import: bool,
    /// How many containers it stands in.
    pub depth: u64,
    /// The first line with the attributes and comments that belong to it, from 1.
    pub start: u64,
    /// The line with its own first word.
    pub header: u64,
    /// Its last line.
    pub end: u64,
}

/// The items of a source file in the order of the text; nothing where it has no grammar or does not follow it.
#[must_use]
pub fn outline(path: &RepoPath, text: &str) -> Option<Vec<OutlineItem>> {
    let parsed = Parsed::parse(Grammar::from_path(path)?, text).ok()?;
    let outline = Outline::new(&parsed, Branches::Closed);
    let starts: Vec<usize> = std::iter::once(0)
        .chain(text.match_indices('\n').map(|(at, _)| at + 1))
        .collect();
    let line = |at: usize| starts.partition_point(|start| *start <= at).max(1) as u64;
    let mut items: Vec<OutlineItem> = Vec::with_capacity(outline.entries.len());
    for entry in &outline.entries {
        let depth = entry
            .parent
            .and_then(|at| items.get(at))
            .map_or(0, |parent| parent.depth + 1);
        items.push(OutlineItem {
            names: entry
                .definition()
                .map(|found| found.names.clone())
                .unwrap_or_default(),
            is_import: entry.kind == Kind::Import,
            depth,
            start: line(entry.start()),
            header: line(entry.core.start),
            end: line(entry.core.end.saturating_sub(1).max(entry.core.start)),
        });
    }
    Some(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outline_lines(path: &str, text: &str) -> Vec<String> {
        let items = outline(&path.parse().unwrap(), text).unwrap();
        let tell = |item: &OutlineItem| {
            format!(
                "{}{} {}-{}-{}",
                "  ".repeat(item.depth as usize),
                item.names.join(","),
                item.start,
                item.header,
                item.end
            )
        };
        items.iter().map(tell).collect()
    }

    #[test]
    fn items_have_their_lines_and_depth() {
        let python = "import os\n\n\n@deco\nclass A:\n    def f(self):\n        return 1\n\n\ndef g(\n    a,\n):\n    pass\n";
        assert_eq!(
            outline_lines("a.py", python),
            [" 1-1-1", "A 4-5-7", "  f 6-6-7", "g 10-10-13"]
        );
        let rust = "/// Doc.\nfn a() {}\nimpl S {\n    fn b(&self) {\n    }\n}\n";
        let items = outline_lines("a.rs", rust);
        assert_eq!(
            (items[0].as_str(), items[2].as_str()),
            ("a 1-2-2", "  b 4-4-5")
        );
        assert_eq!(
            outline_lines("a.js", "res.send = function send(body) {\n  return 1\n}\n"),
            ["res.send 1-1-3"]
        );
    }

    #[test]
    fn broken_or_unknown_source_has_no_outline() {
        assert_eq!(outline(&"a.rs".parse().unwrap(), "fn ("), None);
        assert_eq!(outline(&"a.txt".parse().unwrap(), "fn a() {}"), None);
        assert_eq!(
            outline(&"a.py".parse().unwrap(), "").map(|items| items.len()),
            Some(0)
        );
    }
}
