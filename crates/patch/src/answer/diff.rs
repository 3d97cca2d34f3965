//! A diff, alone or in one fence.

use super::AnswerError;
use super::fence::Fence;

/// Takes the diff out of an answer that is nothing else. Blank lines around it are dropped, and the newline that many
/// programs cut from the end of an answer is put back.
pub(super) fn read(text: &str) -> Result<Vec<u8>, AnswerError> {
    let body = text.trim_start_matches(['\n', '\r']).trim_end_matches('\n');
    let skipped = text.len() - text.trim_start_matches(['\n', '\r']).len();
    let first_line = 1 + text[..skipped].matches('\n').count() as u64;
    let body = match enclosed(body) {
        Some(inner) => inner,
        None => body,
    };
    let is_diff = |line: &str| line.starts_with("diff --git ");
    let lines = || (first_line..).zip(body.lines());
    // No line of a diff begins with a fence: text has a marker in front.
    let fence = lines().find(|(_, line)| line.starts_with("```") || line.starts_with("~~~"));
    if let Some((at, _)) = fence {
        let fenced = fenced_diffs(body);
        return Err(if fenced > 1 {
            AnswerError::TwoDiffs
        } else {
            AnswerError::TextAroundDiff { line: at }
        });
    }
    if body.starts_with("diff --git ") {
        let mut diff = body.as_bytes().to_vec();
        diff.push(b'\n');
        return Ok(diff);
    }
    match lines().find(|(_, line)| is_diff(line)) {
        Some(_) => Err(AnswerError::TextAroundDiff { line: first_line }),
        None => Err(AnswerError::NoEdit),
    }
}

/// What stands between a fence in the first line and one in the last.
fn enclosed(body: &str) -> Option<&str> {
    let (first, rest) = body.split_once('\n')?;
    let (inner, last) = rest.trim_end().rsplit_once('\n')?;
    let opens = Fence::of(first)?;
    let closes = Fence::of(last)?;
    (closes.info.is_empty() && matches!(opens.info, "" | "diff" | "patch")).then(|| inner.trim_matches('\n'))
}

/// How many pieces between fences begin with `diff --git`.
fn fenced_diffs(body: &str) -> usize {
    let mut count = 0;
    let mut begins = Begins::Piece;
    for line in body.lines() {
        if line.starts_with("```") || line.starts_with("~~~") {
            begins = Begins::Piece;
        } else if !line.trim().is_empty() {
            if begins == Begins::Piece && line.starts_with("diff --git ") {
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
