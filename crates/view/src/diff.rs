//! A patch as two columns.

use crucible_patch::{Change, FilePatch, Hunk, LineKind, parse};
use serde::{Deserialize, Serialize};

use crate::text::RedactedText;

/// The most rows of one patch that are laid out; the rest is counted.
const MAX_ROWS: usize = 5_000;

/// A patch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiffView {
    /// Lines that it adds.
    pub added: u64,
    /// Lines that it removes.
    pub removed: u64,
    /// Its files.
    pub files: Vec<DiffFile>,
    /// Rows that are not laid out because the patch is too long.
    pub hidden_rows: u64,
    /// The text of the patch if it cannot be parsed, or not without a secret that spans lines.
    pub raw: Option<RedactedText>,
}

/// One file of a patch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiffFile {
    /// Its path after the change.
    pub path: RedactedText,
    /// What happens to it: `created`, `modified`, `deleted`, `renamed from …` or `copied from …`.
    pub change: RedactedText,
    /// Lines that the patch adds to it.
    pub added: u64,
    /// Lines that the patch removes from it.
    pub removed: u64,
    /// Its changed places.
    pub hunks: Vec<DiffHunk>,
}

/// A changed place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiffHunk {
    /// Its rows from top to bottom.
    pub rows: Vec<DiffRow>,
}

/// A row of the two columns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiffRow {
    /// The line before the change, if there is one.
    pub old: Option<DiffLine>,
    /// The line after the change, if there is one.
    pub new: Option<DiffLine>,
}

/// A line of one column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiffLine {
    /// Its number, from 1.
    pub number: u64,
    /// What happens to it.
    pub change: LineChange,
    /// Its text.
    pub text: RedactedText,
}

/// What happens to a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LineChange {
    /// Nothing.
    Same,
    /// It is removed.
    Removed,
    /// It is added.
    Added,
}

impl DiffView {
    /// Lays out a patch. Secrets are looked for in the whole patch before it is split into lines.
    pub(crate) fn from_patch(patch: &[u8]) -> Self {
        let text = RedactedText::from_bytes(patch);
        let Ok(parsed) = parse(text.as_str().as_bytes()) else {
            return Self {
                added: 0,
                removed: 0,
                files: Vec::new(),
                hidden_rows: 0,
                raw: Some(text),
            };
        };
        let mut remaining_rows = MAX_ROWS;
        let mut hidden = 0;
        let files: Vec<DiffFile> = parsed
            .files
            .iter()
            .map(|file| diff_file(file, &mut remaining_rows, &mut hidden))
            .collect();
        Self {
            added: files.iter().map(|file| file.added).sum(),
            removed: files.iter().map(|file| file.removed).sum(),
            files,
            hidden_rows: hidden,
            raw: None,
        }
    }
}

fn diff_file(file: &FilePatch, remaining_rows: &mut usize, hidden: &mut u64) -> DiffFile {
    let change = match &file.change {
        Change::Create => "created".to_owned(),
        Change::Modify => "modified".to_owned(),
        Change::Delete => "deleted".to_owned(),
        Change::Rename { from } => format!("renamed from {from}"),
        Change::Copy { from } => format!("copied from {from}"),
    };
    let mut hunks = Vec::new();
    for hunk in &file.hunks {
        let mut rows = rows(hunk);
        *hidden += rows.len().saturating_sub(*remaining_rows) as u64;
        rows.truncate(*remaining_rows);
        *remaining_rows -= rows.len();
        hunks.push(DiffHunk { rows });
    }
    DiffFile {
        path: RedactedText::new(file.path.as_str()),
        change: RedactedText::new(&change),
        added: file.added(),
        removed: file.removed(),
        hunks,
    }
}

/// Removed lines stand beside the added lines that follow them.
fn rows(hunk: &Hunk) -> Vec<DiffRow> {
    let (mut old, mut new) = (hunk.old_start, hunk.new_start);
    let mut rows: Vec<DiffRow> = Vec::new();
    // The first row of the current block whose right side is free.
    let mut free = 0;
    for line in hunk.lines() {
        let made = |number: &mut u64, change| {
            let line = DiffLine {
                number: *number,
                change,
                text: RedactedText::from_bytes(line.text),
            };
            *number += 1;
            Some(line)
        };
        match line.kind {
            LineKind::Context => {
                let row = DiffRow {
                    old: made(&mut old, LineChange::Same),
                    new: made(&mut new, LineChange::Same),
                };
                rows.push(row);
                free = rows.len();
            }
            LineKind::Removed => rows.push(DiffRow {
                old: made(&mut old, LineChange::Removed),
                new: None,
            }),
            LineKind::Added => {
                let line = made(&mut new, LineChange::Added);
                match rows.get_mut(free) {
                    Some(row) => row.new = line,
                    None => rows.push(DiffRow {
                        old: None,
                        new: line,
                    }),
                }
                free += 1;
            }
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1,4 +1,5 @@\n one\n-two\n-three\n+zwei\n+drei\n+vier\n four\n";

    #[test]
    fn removed_and_added_lines_are_paired() {
        let diff = DiffView::from_patch(PATCH.as_bytes());
        assert_eq!((diff.added, diff.removed, diff.hidden_rows), (3, 2, 0));
        let lines: Vec<String> = diff.files[0].hunks[0]
            .rows
            .iter()
            .map(|row| {
                let side = |line: &Option<DiffLine>| {
                    line.as_ref()
                        .map(|line| format!("{} {}", line.number, line.text))
                        .unwrap_or_default()
                };
                format!("{} | {}", side(&row.old), side(&row.new))
            })
            .collect();
        assert_eq!(
            lines,
            [
                "1 one | 1 one",
                "2 two | 2 zwei",
                "3 three | 3 drei",
                " | 4 vier",
                "4 four | 5 four"
            ]
        );
    }

    #[test]
    fn secret_in_a_patch_is_replaced() {
        let token = format!("ghp_{}", "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3hJ6");
        let text = serde_json::to_string(&DiffView::from_patch(
            PATCH.replace("zwei", &token).as_bytes(),
        ))
        .unwrap();
        assert!(
            !text.contains(&token) && text.contains("[secret:"),
            "{text}"
        );
    }

    #[test]
    fn text_that_is_not_patch_is_shown_unchanged() {
        let diff = DiffView::from_patch(b"\xff not a patch");
        assert!(diff.files.is_empty() && diff.raw.is_some());
    }
}
