//! A diff, alone or in one fence.

use crucible_model::CodeFence;

use super::{AnswerError, BYTE_ORDER_MARK};

/// How much of an answer's first line an error shows, in characters.
const MAX_SHOWN: usize = 60;

/// Takes the diff out of an answer that is nothing else. Blank lines and a byte order mark around it are dropped, and the
/// newline that many programs cut from the end of an answer is put back.
pub(super) fn read(text: &str) -> Result<Vec<u8>, AnswerError> {
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let begin = text.trim_start_matches(['\n', '\r']);
    let first_line = 1 + text[..text.len() - begin.len()].matches('\n').count() as u64;
    let body = begin.trim_end_matches('\n');
    let (first_line, body) = match enclosed(body) {
        Some(inner) => (first_line + 1, inner),
        None => (first_line, body),
    };
    let lines = || (first_line..).zip(body.lines());
    // No line of a diff begins with a fence: text has a marker in front.
    let fence = lines().find(|(_, line)| is_fence(line)).map(|(at, _)| at);
    let begins_as_diff = is_header(body);
    match fence {
        None if begins_as_diff => {
            let mut diff = body.as_bytes().to_vec();
            diff.push(b'\n');
            Ok(diff)
        }
        Some(_) if fenced_diffs(body) > 1 => Err(AnswerError::TwoDiffs),
        Some(at) if begins_as_diff => Err(AnswerError::TextAroundDiff { line: at }),
        _ if lines().any(|(_, line)| is_header(line)) => {
            Err(AnswerError::TextAroundDiff { line: first_line })
        }
        _ => Err(without_header(first_line, body)),
    }
}

/// Why text in which no line begins as git's diffs do is not a diff.
fn without_header(first_line: u64, body: &str) -> AnswerError {
    let bare = (first_line..)
        .zip(body.lines().zip(body.lines().skip(1)))
        .find_map(|(at, (old, new))| {
            (old.starts_with("--- ") && new.starts_with("+++ ")).then_some(at)
        });
    match bare {
        Some(line) => AnswerError::NoDiffHeader { line },
        None => {
            let first = body.lines().next().unwrap_or_default();
            AnswerError::NoDiff {
                begins: first.chars().take(MAX_SHOWN).collect(),
            }
        }
    }
}

fn is_header(text: &str) -> bool {
    text.starts_with("diff --git ")
}

fn is_fence(line: &str) -> bool {
    line.starts_with("```") || line.starts_with("~~~")
}

/// What stands between a fence in the first line and one in the last.
fn enclosed(body: &str) -> Option<&str> {
    let (first, rest) = body.split_once('\n')?;
    let (inner, last) = rest.trim_end().rsplit_once('\n')?;
    let opens = CodeFence::parse(first)?;
    let closes = CodeFence::parse(last)?;
    (closes.info().is_empty() && matches!(opens.info(), "" | "diff" | "patch"))
        .then(|| inner.trim_matches('\n'))
}

/// How many pieces between fences begin with `diff --git`.
fn fenced_diffs(body: &str) -> usize {
    let mut count = 0;
    let mut begins = Begins::Piece;
    for line in body.lines() {
        if is_fence(line) {
            begins = Begins::Piece;
        } else if !line.trim().is_empty() {
            if begins == Begins::Piece && is_header(line) {
                count += 1;
            }
            begins = Begins::Nothing;
        }
    }
    count
}

#[derive(PartialEq)]
enum Begins {
    Piece,
    Nothing,
}
