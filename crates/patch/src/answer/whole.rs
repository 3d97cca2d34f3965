//! Whole files, or some of their definitions, in fenced blocks.

use std::collections::{BTreeMap, BTreeSet};

use crucible_model::RepoPath;

use super::fence::{AnswerBlock, answer_blocks};
use super::replace::MAX_EDITS;
use super::{AnswerError, Edit, EditKind, name, replace};
use crate::source::Language;

/// Reads every block that names a file. Blocks without a name are ignored beside named ones; alone, a single one is
/// taken for the single expected file.
pub(super) fn read(
    text: &str,
    expected: &[RepoPath],
    kind: fn(String) -> EditKind,
) -> Result<Vec<Edit>, AnswerError> {
    let blocks = answer_blocks(text)?;
    if blocks.is_empty() && matches!(kind(String::new()), EditKind::WholeFile { .. }) {
        return unfenced(text, expected, kind);
    }
    let mut named: Vec<(RepoPath, &AnswerBlock<'_>)> = Vec::new();
    let mut unnamed: Vec<&AnswerBlock<'_>> = Vec::new();
    for block in &blocks {
        match path_of(block, expected)? {
            Some(_) if named.len() as u64 == MAX_EDITS => {
                return Err(AnswerError::TooManyEdits { limit: MAX_EDITS });
            }
            Some(path) => named.push((path, block)),
            None => {
                // Behind a Markdown file in a short fence, an unnamed block is more likely the rest of that file.
                if let Some((path, last)) = named.last()
                    && last.length == 3
                    && path
                        .extension()
                        .is_some_and(|ending| matches!(ending, "md" | "markdown" | "mdx" | "rst"))
                {
                    return Err(AnswerError::AmbiguousFence { path: path.clone() });
                }
                unnamed.push(block);
            }
        }
    }
    if named.is_empty() {
        named.push(the_only_one(&unnamed, expected)?);
    }
    let mut contents: BTreeMap<RepoPath, BTreeSet<&str>> = BTreeMap::new();
    let mut edits = Vec::new();
    for (path, block) in named {
        refuse_other_formats(block)?;
        let inputs = contents.entry(path.clone()).or_default();
        if inputs.contains(block.content) {
            continue;
        }
        // Definitions of one file may stand in several blocks.
        if !inputs.is_empty() && matches!(kind(String::new()), EditKind::WholeFile { .. }) {
            return Err(AnswerError::TwoAnswers { path });
        }
        inputs.insert(block.content);
        edits.push(Edit {
            path,
            kind: kind(block.content.to_owned()),
        });
    }
    Ok(edits)
}

/// Reads files that stand without fences, each behind a line `FILE: path`, as small models write them. Words behind a
/// file would be read as a part of it. So the last file must be code, which no longer works with words in it, and none
/// may be a document.
fn unfenced(
    text: &str,
    expected: &[RepoPath],
    kind: fn(String) -> EditKind,
) -> Result<Vec<Edit>, AnswerError> {
    let mut files: BTreeMap<RepoPath, String> = BTreeMap::new();
    let mut last: Option<RepoPath> = None;
    for (number, line) in (1u64..).zip(text.split_inclusive('\n')) {
        if line.starts_with("FILE: ")
            && let Some(path) = name::in_label(line, number, expected)?
        {
            if files.insert(path.clone(), String::new()).is_some() {
                return Err(AnswerError::TwoAnswers { path });
            }
            if files.len() as u64 > MAX_EDITS {
                return Err(AnswerError::TooManyEdits { limit: MAX_EDITS });
            }
            last = Some(path);
        } else if let Some(content) = last.as_ref().and_then(|path| files.get_mut(path)) {
            content.push_str(line);
        }
    }
    let is_document = |path: &RepoPath| {
        let extension = path.extension().unwrap_or_default();
        matches!(
            extension,
            "md" | "markdown" | "mdx" | "rst" | "txt" | "adoc"
        )
    };
    let is_of_other_format = |line: &str| {
        replace::is_search_marker(line)
            || line.starts_with("@@ ")
            || line.starts_with("diff --git ")
    };
    let is_code = last.is_some_and(|path| Language::from_path(&path).is_some());
    if !is_code || files.keys().any(is_document) || text.lines().any(is_of_other_format) {
        return Err(AnswerError::NoEdit);
    }
    let edits = files.into_iter().map(|(path, content)| Edit {
        path,
        kind: kind(format!("{}\n", content.trim_matches('\n'))),
    });
    Ok(edits.collect())
}

fn path_of(
    block: &AnswerBlock<'_>,
    expected: &[RepoPath],
) -> Result<Option<RepoPath>, AnswerError> {
    let above = match block.label {
        Some(label) => name::in_label(label, block.line, expected)?,
        None => None,
    };
    match (above, name::in_info(block.info, block.line, expected)?) {
        (Some(first), Some(second)) if first != second => Err(AnswerError::PathsDisagree {
            line: block.line,
            first,
            second,
        }),
        (Some(path), _) | (None, Some(path)) => Ok(Some(path)),
        (None, None) => Ok(name::in_first_line(block.content, expected)),
    }
}

fn the_only_one<'b, 'a>(
    unnamed: &[&'b AnswerBlock<'a>],
    expected: &[RepoPath],
) -> Result<(RepoPath, &'b AnswerBlock<'a>), AnswerError> {
    let first = unnamed.first().ok_or(AnswerError::NoEdit)?;
    let [path] = expected else {
        return Err(AnswerError::NoPath { line: first.line });
    };
    let is_file = |block: &&&AnswerBlock<'_>| unnamed.len() == 1 || !block.is_shell_block();
    let mut candidates = unnamed.iter().filter(is_file);
    match (candidates.next(), candidates.next()) {
        (Some(block), None) => Ok((path.clone(), block)),
        (None, _) => Err(AnswerError::NoPath { line: first.line }),
        (_, Some(second)) => Err(AnswerError::NoPath { line: second.line }),
    }
}

fn refuse_other_formats(block: &AnswerBlock<'_>) -> Result<(), AnswerError> {
    for (number, line) in (block.line + 1..).zip(block.content.lines()) {
        if replace::is_search_marker(line) {
            return Err(AnswerError::WrongFormat {
                line: number,
                found: "a search-and-replace block",
            });
        }
    }
    let start = block.content.trim_start();
    if block.info == "diff" || start.starts_with("diff --git ") || start.starts_with("--- a/") {
        return Err(AnswerError::WrongFormat {
            line: block.line,
            found: "a diff",
        });
    }
    Ok(())
}
