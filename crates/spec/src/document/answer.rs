//! Extracts the document from a model's answer: the checks that every phase shares.
//!
//! A fence around the whole answer, one short paragraph before it and a closing courtesy are removed with
//! a warning. Anything else outside of the document is a fault. The result has LF line endings and is
//! tidied.
//!
//! Invariants: the work is linear in the answer. An answer of more than [`MAX_SIZE`] bytes is refused
//! unread.

use std::borrow::Cow;

use crucible_llm::ReceiptWarning;
use crucible_model::{CodeFence, Untrusted, Verdict, is_hidden, says_nothing};

use super::fault::Fault;
use super::ids::leading;
use super::lines::{Fences, Line, LineKind, heading, scan, tidied};
use super::non_answer;
use super::stray::heads_any;
use crate::phase_id::PhaseId;

/// The largest answer that is read, in bytes. The limit of every document is far below.
const MAX_SIZE: usize = 256 << 10;
/// The largest introduction that is removed, in bytes and lines.
const SHORT_INTRODUCTION: (usize, usize) = (400, 3);
/// The most fences around an answer that are removed.
const MAX_WRAPPINGS: usize = 3;
/// Sentences from the examples in the prompts: an answer that contains one is a copy.
pub(crate) const EXAMPLES: [&str; 5] = [
    "The lamps are on from six to twenty o'clock.",
    "A lamp that was switched by hand stays so for one hour.",
    "The clock reads the hours from a table",
    "Keep the hours of the lamps in a table",
    "The table has no row for the end of summer time.",
];

/// The form of a phase's document.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Form {
    pub(crate) phase: PhaseId,
    /// The most lines.
    pub(crate) max_lines: usize,
    /// The most bytes.
    pub(crate) max_bytes: usize,
    /// The most entries (requirements, tasks or findings).
    pub(crate) max_entries: usize,
    /// Whether a line other than a heading can begin an answer: `NO CHANGES`.
    pub(crate) begins: fn(&str) -> bool,
}

/// The document of an answer, before its phase parses it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Draft {
    /// The title without the name of the document, if there is more.
    pub(crate) title: Option<String>,
    /// The tidied text after the title.
    pub(crate) body: String,
    /// Warnings about removed text.
    pub(crate) warnings: Vec<ReceiptWarning>,
}

/// Creates a warning of a receipt.
pub(crate) fn warning(kind: &str, message: impl Into<String>) -> ReceiptWarning {
    ReceiptWarning {
        kind: kind.to_owned(),
        message: message.into(),
    }
}

/// The warning about lines that belong to no entry.
pub(crate) fn trimmed(lines: u64, entry: &str) -> ReceiptWarning {
    let lines = crucible_model::counted(lines, "line");
    warning(
        "spec_answer_trimmed",
        format!("{lines} outside of the {entry}s left out"),
    )
}

/// Finds the document in an answer.
///
/// # Errors
///
/// The findings about the answer as a whole.
pub(crate) fn open(answer: &Untrusted, form: &Form) -> Result<Draft, Verdict> {
    let text = readable(answer.as_str())?;
    let mut warnings = Vec::new();
    let text = core(&text, form, &mut warnings)?;
    let (lines, fences) = scan(text);
    if fences != Fences::Closed {
        return Err(Fault::OpenFence.alone("a code block without its end"));
    }
    let (title, body) = titled(&lines, form)?;
    let body = without_pleasantry(body, &mut warnings);
    let findings: Vec<_> = paragraphs(body)
        .filter(|text| non_answer::reports(text))
        .map(|text| Fault::Summary.into_finding(text))
        .collect();
    if !findings.is_empty() {
        return Err(Verdict::new(findings));
    }
    if let Some(found) = EXAMPLES
        .into_iter()
        .find(|sentence| text.contains(sentence))
    {
        return Err(Fault::Example.alone(found));
    }
    Ok(Draft {
        title,
        body: tidied(body.iter().copied()),
        warnings,
    })
}

/// The fault of a document that exceeds the limits of its form.
pub(crate) fn measured(text: &str, entries: usize, form: &Form) -> Option<crucible_model::Finding> {
    let lines = text.lines().count();
    let over = if entries > form.max_entries {
        format!("{entries} entries, at most {}", form.max_entries)
    } else if lines > form.max_lines {
        format!("{lines} lines, at most {}", form.max_lines)
    } else if text.len() > form.max_bytes {
        format!("{} bytes, at most {}", text.len(), form.max_bytes)
    } else {
        return None;
    };
    Some(Fault::TooLong.into_finding(&over))
}

/// The answer with LF line endings, if it is readable.
fn readable(text: &str) -> Result<Cow<'_, str>, Verdict> {
    if text.len() > MAX_SIZE {
        return Err(Fault::TooLong.alone(&format!("{} bytes", text.len())));
    }
    if says_nothing(text) {
        return Err(Fault::Empty.alone("the answer"));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let text = if text.contains('\r') {
        Cow::Owned(text.replace("\r\n", "\n"))
    } else {
        Cow::Borrowed(text)
    };
    if let Some((line, c)) = hidden(&text) {
        return Err(Fault::Hidden.alone(&format!("U+{:04X} in line {line}", u32::from(c))));
    }
    Ok(text)
}

fn hidden(text: &str) -> Option<(usize, char)> {
    let mut line = 1;
    for c in text.chars() {
        match c {
            '\n' => line += 1,
            '\t' => {}
            c if is_hidden(c) => return Some((line, c)),
            _ => {}
        }
    }
    None
}

/// The part of an answer that is the document, without surrounding text.
fn core<'a>(
    mut text: &'a str,
    form: &Form,
    warnings: &mut Vec<ReceiptWarning>,
) -> Result<&'a str, Verdict> {
    for _ in 0..=MAX_WRAPPINGS {
        if is_json(text) {
            return Err(Fault::Json.alone("the answer"));
        }
        let start = place(text, |line| {
            CodeFence::indented(line).is_some() || heading(line).is_some() || (form.begins)(line)
        });
        let Some(start) = start else {
            return Err(non_answer::of_no_document(text).alone(first_line(text)));
        };
        let (before, rest) = text.split_at(start);
        introduction(before, warnings)?;
        let Some(opened) = rest.lines().next().and_then(CodeFence::indented) else {
            return Ok(rest);
        };
        if opened.info().to_ascii_lowercase().starts_with("json") {
            return Err(Fault::Json.alone("the answer"));
        }
        if !matches!(
            opened.info().to_ascii_lowercase().as_str(),
            "" | "md" | "markdown" | "text" | "txt"
        ) {
            return Err(Fault::NoDocument.alone(first_line(rest)));
        }
        let inner = rest.split_once('\n').map_or("", |(_, inner)| inner);
        let mut end = None;
        for (at, line) in offsets(inner) {
            if CodeFence::indented(line).is_some_and(|found| opened.is_closed_by(found)) {
                end = Some((at, at + line.len()));
            }
        }
        let Some((end, behind)) = end else {
            return Err(Fault::OpenFence.alone(first_line(rest)));
        };
        let after = inner.get(behind..).unwrap_or_default();
        if after
            .lines()
            .any(|line| CodeFence::indented(line).is_some() || heading(line).is_some())
        {
            return Err(Fault::Around.alone(first_line(after)));
        }
        introduction(after, warnings)?;
        text = inner.get(..end).unwrap_or_default();
        if says_nothing(text) {
            return Err(Fault::Empty.alone("the code block"));
        }
        if ends_twice(text, opened) {
            return Err(Fault::Around.alone("a code block inside a code block"));
        }
    }
    Err(Fault::Around.alone("code blocks inside code blocks"))
}

/// Whether a block inside a wrapped document begins like the end of the wrapping, which is ambiguous.
fn ends_twice(inner: &str, wrapping: CodeFence<'_>) -> bool {
    let mut open: Option<CodeFence<'_>> = None;
    for found in inner.lines().filter_map(CodeFence::indented) {
        match open {
            Some(opened) if opened.is_closed_by(found) => open = None,
            Some(_) => {}
            None if wrapping.is_closed_by(found) => return true,
            None => open = Some(found),
        }
    }
    false
}

/// The phase whose title an answer begins with, before any code block.
pub(crate) fn begins_as(text: &str) -> Option<PhaseId> {
    let before_code = text
        .lines()
        .take_while(|line| CodeFence::indented(line).is_none());
    let (level, title) = before_code.filter_map(heading).next()?;
    named_phase(title).filter(|_| level <= 2 && !is_entry(title))
}

/// Accepts a short paragraph outside of the document, with a warning.
fn introduction(text: &str, warnings: &mut Vec<ReceiptWarning>) -> Result<(), Verdict> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(());
    }
    if non_answer::declines(text) {
        return Err(Fault::Refusal.alone(first_line(text)));
    }
    // The removed text must not be an entry.
    if let Some(line) = text.lines().find(|line| heads_any(line)) {
        return Err(Fault::LineForm.alone(line));
    }
    let (bytes, lines) = SHORT_INTRODUCTION;
    if text.ends_with('?') && !non_answer::is_pleasantry(text) {
        return Err(Fault::Question.alone(first_line(text)));
    }
    if text.len() > bytes || text.lines().count() > lines {
        return Err(Fault::Around.alone(first_line(text)));
    }
    warnings.push(cut(text));
    Ok(())
}

/// Splits off the title.
fn titled<'l, 'a>(
    lines: &'l [Line<'a>],
    form: &Form,
) -> Result<(Option<String>, &'l [Line<'a>]), Verdict> {
    let mut body = lines;
    let mut own = None;
    let first = lines
        .iter()
        .position(|line| line.kind != LineKind::Blank)
        .unwrap_or_default();
    if let Some(Line {
        kind: LineKind::Heading { level, title },
        ..
    }) = lines.get(first)
    {
        match named_phase(title) {
            Some(phase) if *level <= 2 && !is_entry(title) => {
                if phase != form.phase {
                    return Err(Fault::WrongPhase.alone(title));
                }
                own = title_behind(title);
                body = lines.get(first + 1..).unwrap_or_default();
            }
            _ if *level == 1 && !is_entry(title) => return Err(Fault::Title.alone(title)),
            _ => {}
        }
    }
    for line in body {
        let LineKind::Heading { level: 1, title } = line.kind else {
            continue;
        };
        if is_entry(title) {
            continue;
        }
        let fault = if named_phase(title).is_some_and(|phase| phase != form.phase) {
            Fault::WrongPhase
        } else {
            Fault::Title
        };
        return Err(fault.alone(title));
    }
    comments(body)?;
    Ok((own, body))
}

/// Refuses HTML comments: the next model would see them, but no reader of the page.
fn comments(lines: &[Line<'_>]) -> Result<(), Verdict> {
    for line in lines
        .iter()
        .filter(|line| line.kind != LineKind::Fenced && line.text.contains("<!--"))
    {
        let spans = line.text.split('`').count() % 2 == 1;
        if line
            .text
            .split('`')
            .enumerate()
            .any(|(place, text)| (!spans || place % 2 == 0) && text.contains("<!--"))
        {
            return Err(Fault::Hidden.alone(line.text.trim()));
        }
    }
    Ok(())
}

/// The phase whose document has this title: the last phase name before `:`, ` for ` or ` of `.
fn named_phase(title: &str) -> Option<PhaseId> {
    let head = title
        .split([':', '–', '—'])
        .next()
        .unwrap_or_default()
        .to_lowercase();
    let head = head
        .split(" for ")
        .next()
        .unwrap_or_default()
        .split(" of ")
        .next()
        .unwrap_or_default();
    head.split(|c: char| !c.is_alphanumeric())
        .rev()
        .find_map(|word| match word {
            "requirements" | "requirement" => Some(PhaseId::Requirements),
            "design" => Some(PhaseId::Design),
            "tasks" | "task" => Some(PhaseId::Tasks),
            "review" => Some(PhaseId::Review),
            "fixup" | "fixups" => Some(PhaseId::Fixup),
            "final" => Some(PhaseId::Final),
            _ => None,
        })
}

fn title_behind(title: &str) -> Option<String> {
    let (_, rest) = title.split_once([':', '–', '—'])?;
    let behind = crucible_model::single_spaced(rest.trim_matches(['*', ' ']));
    (!behind.is_empty()).then_some(behind)
}

fn is_entry(title: &str) -> bool {
    ['R', 'T', 'F']
        .into_iter()
        .any(|letter| leading(title, letter).is_some())
}

/// Removes a courtesy at the end of the answer.
fn without_pleasantry<'l, 'a>(
    lines: &'l [Line<'a>],
    warnings: &mut Vec<ReceiptWarning>,
) -> &'l [Line<'a>] {
    let filled = |line: &Line<'_>| line.kind != LineKind::Blank;
    let end = lines.iter().rposition(filled).map_or(0, |last| last + 1);
    let start = lines
        .iter()
        .take(end)
        .rposition(|line| line.kind != LineKind::Text)
        .map_or(0, |before| before + 1);
    match (lines.get(..start), lines.get(start)) {
        (Some(stored_lines), Some(line))
            if start < end
                && non_answer::is_pleasantry(line.text)
                && !lines.iter().skip(start).any(|line| heads_any(line.text)) =>
        {
            warnings.push(cut(line.text));
            stored_lines
        }
        _ => lines,
    }
}

/// The first lines of paragraphs outside of lists.
fn paragraphs<'l>(lines: &'l [Line<'_>]) -> impl Iterator<Item = &'l str> {
    let mut before = LineKind::Blank;
    lines.iter().filter_map(move |line| {
        let begins = line.kind == LineKind::Text && before != LineKind::Text;
        before = line.kind;
        (begins && super::lines::list_item(line.text).is_none()).then_some(line.text)
    })
}

fn cut(text: &str) -> ReceiptWarning {
    let text = crucible_model::short_line(text.trim(), 80);
    warning(
        "spec_answer_trimmed",
        format!("text outside of the document was removed: {text}"),
    )
}

fn is_json(text: &str) -> bool {
    let text = text.trim();
    match text.chars().next() {
        Some('{') => text.contains('"'),
        Some('[') => serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok(),
        _ => false,
    }
}

fn first_line(text: &str) -> &str {
    text.trim_start().lines().next().unwrap_or_default()
}

/// The offset of the first line that satisfies `is`.
fn place(text: &str, is: impl Fn(&str) -> bool) -> Option<usize> {
    offsets(text).find(|(_, line)| is(line)).map(|(at, _)| at)
}

fn offsets(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    text.split_inclusive('\n').map(move |line| {
        let begins = at;
        at += line.len();
        (begins, line.strip_suffix('\n').unwrap_or(line))
    })
}

#[cfg(test)]
mod tests;
