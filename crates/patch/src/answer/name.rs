//! Which file an edit is for, as models write it: `FILE: path`, a heading, a path in backticks or in bold, the words
//! behind a fence, a comment in the first line.

use crucible_model::{RepoPath, RepoPathError};

use super::AnswerError;

/// The path that a line above an edit names, if it names one.
pub(super) fn in_label(
    text: &str,
    line: u64,
    expected: &[RepoPath],
) -> Result<Option<RepoPath>, AnswerError> {
    let plain = undecorated(text);
    if let Some(named) = labelled(plain) {
        return parse(named, line).map(Some);
    }
    // `### path (new file)`
    let plain = plain
        .split_once(" (")
        .filter(|_| plain.ends_with(')'))
        .map_or(plain, |(path, _)| undecorated(path));
    if let Some(path) = among(expected, plain) {
        return Ok(Some(path));
    }
    if looks_like_path(plain) {
        return parse(plain, line).map(Some);
    }
    // A sentence that mentions exactly one of the expected files in backticks.
    let mut mentioned: Vec<RepoPath> = text
        .split('`')
        .skip(1)
        .step_by(2)
        .filter_map(|token| among(expected, token))
        .collect();
    mentioned.sort();
    mentioned.dedup();
    Ok(if mentioned.len() == 1 {
        mentioned.pop()
    } else {
        None
    })
}

/// The path among the words behind a fence: `rust:src/a.rs`, `rust src/a.rs`, `src/a.rs`, `rust title="src/a.rs"`.
pub(super) fn in_info(
    info: &str,
    line: u64,
    expected: &[RepoPath],
) -> Result<Option<RepoPath>, AnswerError> {
    for word in info.split_whitespace() {
        let (key, value) = word
            .split_once('=')
            .or_else(|| word.split_once(':'))
            .unwrap_or(("", word));
        let value = value.trim_matches(['"', '\'', '{', '}']);
        let is_named = matches!(key, "file" | "filename" | "path" | "title");
        if let Some(path) = among(expected, value) {
            return Ok(Some(path));
        }
        if is_named || looks_like_path(value) {
            return parse(value, line).map(Some);
        }
    }
    Ok(None)
}

/// The path that the first line of a block names in a comment: `// FILE: src/a.rs`, `# src/a.rs`. Without the label
/// it has to be an expected one.
pub(super) fn in_first_line(content: &str, expected: &[RepoPath]) -> Option<RepoPath> {
    let line = content.lines().next()?;
    let inner = uncommented(line);
    let named = labelled(inner).map(str::trim);
    named
        .and_then(|path| shortest(path).parse().ok())
        .or_else(|| among(expected, inner).filter(|_| inner != line))
}

/// Whether a line is nothing but a comment that names `path`.
pub(super) fn is_path_comment(line: &str, path: &RepoPath) -> bool {
    let inner = uncommented(line);
    let named = labelled(inner);
    shortest(named.unwrap_or(inner)) == path.as_str() && (named.is_some() || inner != line.trim())
}

fn uncommented(line: &str) -> &str {
    let inner = line.trim();
    let start = ["///", "//", "#", "/*", "<!--", "--", ";;", ";", "%"]
        .iter()
        .find_map(|mark| inner.strip_prefix(mark));
    let inner = start.unwrap_or(inner);
    inner
        .strip_suffix("*/")
        .or_else(|| inner.strip_suffix("-->"))
        .unwrap_or(inner)
        .trim()
}

/// What stands behind `FILE:` or a like word.
fn labelled(text: &str) -> Option<&str> {
    let (word, rest) = text.split_once(':')?;
    let word = undecorated(word).to_ascii_lowercase();
    let is_label = matches!(
        word.as_str(),
        "file" | "filename" | "file name" | "file path" | "filepath" | "path"
    );
    let rest = undecorated(rest);
    (is_label && !rest.is_empty()).then_some(rest)
}

/// The text without marks of headings, lists, emphasis and code, and without a colon at its end.
fn undecorated(text: &str) -> &str {
    let mut text = text.trim().trim_start_matches('#').trim_start();
    if let Some((number, rest)) = text.split_once(". ")
        && !number.is_empty()
        && number.bytes().all(|byte| byte.is_ascii_digit())
    {
        text = rest;
    }
    text = text
        .strip_prefix("- ")
        .or_else(|| text.strip_prefix("* "))
        .unwrap_or(text);
    text.trim_matches(|c: char| matches!(c, '*' | '`' | ':' | '"') || c.is_whitespace())
}

fn looks_like_path(text: &str) -> bool {
    let allowed = |c: char| {
        c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '\\' | '+' | '@' | '~' | ':')
    };
    let has_extension = text.rsplit_once('.').is_some_and(|(stem, extension)| {
        !stem.is_empty()
            && (1..=10).contains(&extension.len())
            && extension.bytes().all(|b| b.is_ascii_alphanumeric())
            && extension.starts_with(|c: char| c.is_ascii_alphabetic())
    });
    !text.is_empty() && text.chars().all(allowed) && (text.contains(['/', '\\']) || has_extension)
}

fn among(expected: &[RepoPath], text: &str) -> Option<RepoPath> {
    expected
        .iter()
        .find(|path| path.as_str() == shortest(text))
        .cloned()
}

fn shortest(text: &str) -> &str {
    text.strip_prefix("./").unwrap_or(text)
}

fn parse(text: &str, line: u64) -> Result<RepoPath, AnswerError> {
    shortest(text)
        .parse()
        .map_err(|source: RepoPathError| AnswerError::BadPath {
            line,
            path: text.chars().take(120).collect(),
            source,
        })
}
