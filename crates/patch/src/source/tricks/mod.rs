//! Ways to make tests pass without doing what they test: seen in source text, by construct.
//!
//! A program that ends itself with success, an assertion that asserts nothing, code that asks whether it is under
//! test, a test that is skipped or replaced. What a sequence of words can show stands in one table
//! ([`table`]); what needs to know where it stands has a reader for its language.
//!
//! This says only what a text holds. Whether a patch brought it there is weighed by comparing two texts.

mod detection;
mod mode;
mod python;
mod report;
mod role;
mod rust;
mod status;
mod table;
mod words;

use std::collections::BTreeMap;

use super::mask::{Masked, mask, read};
use super::search::contains;
use super::token::{Token, close, plain_names, tokens};
use super::{Language, TestCode, TestItem, rust_tests};
use status::{Status, is_harmless, status};

pub(crate) use detection::{Confidence, Detection, Tampering};
pub(crate) use role::Role;

/// Whether a changed line has a word without which none of the constructs can come or go.
pub(crate) fn may_matter(language: Language, line: &[u8]) -> bool {
    table::words(language)
        .iter()
        .any(|word| contains(line, word.as_bytes()))
        || report::may_matter(line)
        || !line.is_ascii()
}

/// Every construct in a source text, as often as it occurs.
pub(crate) fn detections(language: Language, role: Role, source: &[u8]) -> Vec<Detection> {
    let masked = read(language, source);
    let mut found = reading(language, role, source, &masked);
    // What a slash begins is told for certain by the grammar alone; where it says otherwise, both readings count.
    if language == Language::Script
        && masked.has_slash
        && let Some(other) =
            super::grammar::script(source).filter(|other| other.open != masked.open)
    {
        let mut seen: BTreeMap<Detection, usize> = BTreeMap::new();
        for detection in &found {
            *seen.entry(detection.clone()).or_default() += 1;
        }
        for detection in reading(language, role, source, &other) {
            match seen.get_mut(&detection) {
                Some(count) if *count > 0 => *count -= 1,
                _ => found.push(detection),
            }
        }
    }
    found
}

/// Every construct in a text that was read as `read`.
fn reading(language: Language, role: Role, source: &[u8], read: &Masked) -> Vec<Detection> {
    let masked = read.without_format_fields();
    let mut found = Vec::new();
    if role != Role::Test {
        for name in table::TEST_VARIABLES {
            let count = source
                .windows(name.len())
                .filter(|window| *window == name.as_bytes())
                .count();
            let detection = Detection::new(Tampering::TestAware, Confidence::Doubtful, name);
            found.extend(std::iter::repeat_n(detection, count));
        }
    }
    report::find(language, source, read, &masked, role, &mut found);
    if language == Language::Python {
        words::find(
            language,
            source,
            read,
            &tokens(&read.open),
            role,
            &mut found,
        );
        python::find(source, &masked, &read.open, role, &mut found);
        return found;
    }
    let mut tokens = tokens(&masked);
    if language == Language::Rust {
        plain_names(&mut tokens);
    }
    words::find(language, source, read, &tokens, role, &mut found);
    let rows = table::PatternSet::new(language, role);
    let no_place = match language {
        Language::Go => init_functions(&tokens),
        Language::Rust if role != Role::Test => rust_tests::ranges(&tokens),
        _ => Vec::new(),
    };
    let harness = match language {
        Language::Go if role == Role::Test => test_main(&tokens, &mut found),
        _ => None,
    };
    for at in 0..tokens.len() {
        if language == Language::C && words::is_declared(&tokens, at) {
            continue;
        }
        for pattern in rows.matching(source, &tokens, at) {
            let mut weight = pattern.weight(role);
            let what = pattern.text(&tokens, at);
            if pattern.trick == Tampering::Exit {
                let before = no_place.partition_point(|range| range.start <= at);
                if no_place[..before]
                    .last()
                    .is_some_and(|range| at < range.end)
                {
                    weight = Confidence::Certain;
                }
                if matches!(role, Role::Source | Role::Tool) && is_harmless(&what, &tokens) {
                    weight = Confidence::Doubtful;
                }
                let is_in_harness = harness.as_ref().is_some_and(|body| body.contains(&at));
                let status = status(&tokens, at);
                if status == Status::Failure || is_in_harness && status != Status::Success {
                    weight = Confidence::Doubtful;
                }
            }
            found.push(Detection::new(pattern.trick, weight, what));
        }
    }
    match language {
        Language::Rust => rust::find(&tokens, role, &mut found),
        Language::Script => {
            destructured(source, &tokens, role, &mut found);
            if role != Role::Test {
                mode::find(source, &tokens, &mut found);
            }
        }
        _ => {}
    }
    found
}

/// Names that a script takes out of `process`: `const { exit } = process`, `import { exit } from "node:process"`.
fn destructured(source: &[u8], tokens: &[Token<'_>], role: Role, found: &mut Vec<Detection>) {
    /// The longest list of names that is read.
    const MAX_LEN: usize = 60;
    for (at, _) in tokens.iter().enumerate().filter(|(_, token)| token.is("}")) {
        let Some(next) = tokens.get(at + 1) else {
            return;
        };
        let stop = tokens
            .get(at + 2)
            .map_or(source.len(), |token| token.range.start);
        let is_process = if next.is("=") {
            tokens
                .get(at + 2)
                .is_some_and(|value| value.is("process") || value.is("require"))
                && source
                    .get(
                        next.range.end
                            ..tokens
                                .get(at + 5)
                                .map_or(source.len(), |end| end.range.start),
                    )
                    .is_some_and(|text| contains(text, b"process"))
        } else {
            let module = source.get(next.range.end..stop).unwrap_or_default();
            next.is("from")
                && (contains(module, b"\"node:process")
                    || contains(module, b"'node:process")
                    || contains(module, b"\"process")
                    || contains(module, b"'process"))
        };
        if !is_process {
            continue;
        }
        let names = tokens[..at]
            .iter()
            .rev()
            .take(MAX_LEN)
            .take_while(|token| !token.is("{"));
        let ends = ["exit", "reallyExit", "abort"];
        for name in names.filter(|name| ends.iter().any(|end| name.is(end))) {
            let what = format!("{} of process", name.name());
            let is_harmless = role != Role::Test && is_harmless(&what, tokens);
            let weight = if is_harmless {
                Confidence::Doubtful
            } else {
                role.exit_weight()
            };
            found.push(Detection::new(Tampering::Exit, weight, what));
        }
    }
}

/// The in-source tests of a script: `if (import.meta.vitest) { … }`.
pub(super) fn script_tests(source: &[u8]) -> TestCode<'_> {
    const START: [&str; 7] = ["if", "(", "import", ".", "meta", ".", "vitest"];
    let mut found = TestCode::default();
    if !contains(source, b"vitest") {
        return found;
    }
    let masked = mask(Language::Script, source);
    let tokens = tokens(&masked);
    let mut depth = 0usize;
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        if START
            .iter()
            .enumerate()
            .all(|(next, word)| tokens.get(at + next).is_some_and(|t| t.is(word)))
        {
            let mut end = close(&tokens, at + 1) + 1;
            if tokens.get(end).is_some_and(|token| token.is("{")) {
                end = close(&tokens, end);
            }
            let stop = tokens
                .get(end)
                .map_or(source.len(), |token| token.range.end);
            let text = source.get(token.range.start..stop).unwrap_or_default();
            found.items.push(TestItem {
                depth,
                text,
                ..TestItem::default()
            });
            at = end;
        } else if token.is("{") {
            depth += 1;
        } else if token.is("}") {
            depth = depth.saturating_sub(1);
        }
        at += 1;
    }
    found
}

/// The bodies of `func init()`, which run before anything else.
fn init_functions(tokens: &[Token<'_>]) -> Vec<std::ops::Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at + 4 < tokens.len() {
        if ["func", "init", "(", ")", "{"]
            .iter()
            .zip(&tokens[at..])
            .all(|(word, token)| token.is(word))
        {
            let end = close(tokens, at + 4);
            found.push(at..end);
            at = end;
        }
        at += 1;
    }
    found
}

/// `TestMain` decides the status of all tests of its package; one that never runs them decides alone. Gives the part of
/// its body behind the run, where the process ends with what came of it.
fn test_main(tokens: &[Token<'_>], found: &mut Vec<Detection>) -> Option<std::ops::Range<usize>> {
    let start = |window: &[Token<'_>]| {
        ["func", "TestMain", "("]
            .iter()
            .zip(window)
            .all(|(word, token)| token.is(word))
    };
    let at = tokens.windows(3).position(start)?;
    let open = close(tokens, at + 2) + 1;
    let end = close(tokens, open);
    let body = tokens.get(open..end).unwrap_or_default();
    let run = body.windows(3).position(|window| {
        [".", "Run", "("]
            .iter()
            .zip(window)
            .all(|(word, token)| token.is(word))
    });
    let weight = if run.is_some() {
        Confidence::Doubtful
    } else {
        Confidence::Certain
    };
    found.push(Detection::new(Tampering::Disabled, weight, "func TestMain"));
    // `os.Exit(m.Run())` begins before the run that it waits for.
    run.map(|run| (open + run).saturating_sub(6)..end)
}
