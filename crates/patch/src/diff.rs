//! Writes the canonical patch between two sets of files.
//!
//! The output is what `git diff --no-renames` would write without its `index` lines: sections sorted by path, three
//! lines of context, names quoted as git quotes them. The same two sets give the same bytes, always: no clock bounds
//! the search for a small diff.

use std::collections::{BTreeMap, BTreeSet};

use crucible_model::{Code, Finding, RepoPath};
use similar::{Algorithm, DiffOp, capture_diff_slices, group_diff_ops};

use crate::patch::NO_NEWLINE;
use crate::quote::push_quoted;

/// Lines of context around a change.
const CONTEXT: usize = 3;

/// Why no patch can be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DiffError {
    /// A file that changes is not text.
    #[error("{path:?} is binary, and a patch changes text only; leave it out")]
    Binary {
        /// The file.
        path: RepoPath,
    },
}

impl DiffError {
    /// The code of the finding that this error makes.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Self::Binary { .. } => Code::new("patch-binary"),
        }
    }

    /// The finding for a report.
    #[must_use]
    pub fn finding(&self) -> Finding {
        match self {
            Self::Binary { path } => {
                Finding::error(self.code(), path.to_string(), self.to_string())
            }
        }
    }
}

/// Writes the patch that turns `before` into `after`, two sets of files by their paths. A path in only one of them is
/// a file that goes away or comes. Equal sets give an empty patch. New files get mode 100644.
///
/// # Errors
///
/// Fails when the content of a file that changes holds a NUL byte.
pub fn make_diff(
    before: &BTreeMap<RepoPath, Vec<u8>>,
    after: &BTreeMap<RepoPath, Vec<u8>>,
) -> Result<Vec<u8>, DiffError> {
    let paths: BTreeSet<&RepoPath> = before.keys().chain(after.keys()).collect();
    let mut out = Vec::new();
    for path in paths {
        let (old, new) = (before.get(path), after.get(path));
        if old == new {
            continue;
        }
        if old
            .into_iter()
            .chain(new)
            .any(|content| content.contains(&0))
        {
            return Err(DiffError::Binary { path: path.clone() });
        }
        section(
            &mut out,
            path,
            old.map(Vec::as_slice),
            new.map(Vec::as_slice),
        );
    }
    Ok(out)
}

fn section(out: &mut Vec<u8>, path: &RepoPath, old: Option<&[u8]>, new: Option<&[u8]>) {
    let (a, b) = (format!("a/{path}"), format!("b/{path}"));
    out.extend_from_slice(b"diff --git ");
    push_quoted(out, &a);
    out.push(b' ');
    push_quoted(out, &b);
    out.push(b'\n');
    if old.is_none() {
        out.extend_from_slice(b"new file mode 100644\n");
    }
    if new.is_none() {
        out.extend_from_slice(b"deleted file mode 100644\n");
    }
    let (old_lines, new_lines) = (lines(old), lines(new));
    let groups = group_diff_ops(
        capture_diff_slices(Algorithm::Myers, &old_lines, &new_lines),
        CONTEXT,
    );
    if groups.is_empty() {
        return;
    }
    name_line(out, b"--- ", old.map(|_| a.as_str()));
    name_line(out, b"+++ ", new.map(|_| b.as_str()));
    for group in groups {
        hunk(out, &group, &old_lines, &new_lines);
    }
}

fn lines(content: Option<&[u8]>) -> Vec<&[u8]> {
    content
        .unwrap_or_default()
        .split_inclusive(|byte| *byte == b'\n')
        .collect()
}

/// Git ends a name that holds a blank with a tab, so that a reader sees where it ends.
fn name_line(out: &mut Vec<u8>, marker: &[u8], name: Option<&str>) {
    out.extend_from_slice(marker);
    match name {
        None => out.extend_from_slice(b"/dev/null"),
        Some(name) => {
            push_quoted(out, name);
            if name.contains(' ') {
                out.push(b'\t');
            }
        }
    }
    out.push(b'\n');
}

fn hunk(out: &mut Vec<u8>, ops: &[DiffOp], old: &[&[u8]], new: &[&[u8]]) {
    let (Some(first), Some(last)) = (ops.first(), ops.last()) else {
        return;
    };
    let range = |start: usize, end: usize| match end - start {
        0 => format!("{start},0"),
        1 => format!("{}", start + 1),
        count => format!("{},{count}", start + 1),
    };
    let old_range = range(first.old_range().start, last.old_range().end);
    let new_range = range(first.new_range().start, last.new_range().end);
    out.extend_from_slice(format!("@@ -{old_range} +{new_range} @@\n").as_bytes());
    for op in ops {
        if let DiffOp::Equal { .. } = op {
            write_lines(out, b' ', &old[op.old_range()]);
        } else {
            write_lines(out, b'-', &old[op.old_range()]);
            write_lines(out, b'+', &new[op.new_range()]);
        }
    }
}

fn write_lines(out: &mut Vec<u8>, marker: u8, lines: &[&[u8]]) {
    for line in lines {
        out.push(marker);
        out.extend_from_slice(line);
        if !line.ends_with(b"\n") {
            out.push(b'\n');
            out.extend_from_slice(NO_NEWLINE);
            out.push(b'\n');
        }
    }
}
