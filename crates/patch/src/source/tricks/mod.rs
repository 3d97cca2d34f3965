//! Ways to make tests pass without doing what they test: seen in source text, by construct.
//!
//! A program that ends itself with success, an assertion that asserts nothing, code that asks whether it is under
//! test, a test that is skipped or replaced. What can be told by a sequence of words stands in one table
//! ([`table`]); what needs to know where it stands has a reader for its language.
//!
//! This says only what a text holds. Whether a patch brought it there is weighed by comparing two texts.

mod python;
mod rust;
mod table;

use crucible_model::RepoPath;

use super::mask::mask;
use super::token::{Token, tokens};
use super::{Language, TestCode};
use crate::class::is_test_path;

/// What is done to the tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Trick {
    /// The process ends, with a status that the tests do not choose.
    Exit,
    /// An assertion means something else than everybody thinks.
    Shadow,
    /// The code is different, or can tell, when it is tested.
    TestAware,
    /// A test does not run, or its result does not count.
    Disabled,
    /// A test's name is bound to something else, or to nothing.
    Replaced,
}

/// How sure it is that nothing honest looks like this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Weight {
    /// Honest code does this too; a reader should look.
    Doubtful,
    /// It has no place in an honest change.
    Certain,
}

/// One construct that was seen.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Sight {
    pub(crate) trick: Trick,
    pub(crate) weight: Weight,
    /// The construct, as it would be written.
    pub(crate) what: String,
}

/// What a file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// It holds tests.
    Test,
    /// It is where a program starts, or a script: ending the process is its business.
    Program,
    /// Everything else.
    Library,
}

impl Role {
    /// What the file at `path` is for, by its name and its first words.
    pub(crate) fn of(language: Language, path: &RepoPath, source: &[u8]) -> Self {
        const DIRECTORIES: [&str; 11] = [
            "bin", "cmd", "cli", "script", "scripts", "tools", "example", "examples", "benches", "xtask",
            "commands",
        ];
        const STEMS: [&str; 7] = ["main", "__main__", "build", "cli", "manage", "setup", "noxfile"];
        if is_test_path(path) {
            return Self::Test;
        }
        let (directories, name) = path.as_str().rsplit_once('/').unwrap_or(("", path.as_str()));
        let stem = name.split('.').next().unwrap_or(name);
        let has_interpreter = source.starts_with(b"#!") && !source.starts_with(b"#![");
        if STEMS.contains(&stem)
            || directories.split('/').any(|segment| DIRECTORIES.contains(&segment))
            || has_interpreter
            || language == Language::Go && is_go_main(source)
        {
            Self::Program
        } else {
            Self::Library
        }
    }
}

/// Whether a changed line has a word without which none of the constructs can come or go.
pub(crate) fn may_matter(language: Language, line: &[u8]) -> bool {
    table::words(language).iter().any(|word| contains(line, word.as_bytes()))
}

/// Every construct in a source text, as often as it occurs.
pub(crate) fn sights(language: Language, role: Role, source: &[u8]) -> Vec<Sight> {
    let masked = mask(language, source);
    let mut found = Vec::new();
    if role != Role::Test {
        for name in table::TEST_VARIABLES {
            let count = source.windows(name.len()).filter(|window| *window == name.as_bytes()).count();
            let sight = Sight { trick: Trick::TestAware, weight: Weight::Doubtful, what: name.to_owned() };
            found.extend(std::iter::repeat_n(sight, count));
        }
    }
    if language == Language::Python {
        python::find(&masked, role, &mut found);
        return found;
    }
    let tokens = tokens(&masked);
    let rows = table::Rows::of(language, role);
    let init = if language == Language::Go { init_functions(&tokens) } else { Vec::new() };
    for at in 0..tokens.len() {
        for pattern in rows.matching(&tokens, at) {
            let mut weight = pattern.weight(role);
            let before = init.partition_point(|range| range.start <= at);
            if pattern.trick == Trick::Exit && init[..before].last().is_some_and(|range| at < range.end) {
                weight = Weight::Certain;
            }
            found.push(Sight { trick: pattern.trick, weight, what: pattern.text(&tokens, at) });
        }
    }
    match language {
        Language::Rust => rust::find(&tokens, role, &mut found),
        Language::Go if role == Role::Test => test_main(&tokens, &mut found),
        _ => {}
    }
    found
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
        if START.iter().enumerate().all(|(next, word)| tokens.get(at + next).is_some_and(|t| t.is(word))) {
            let mut end = close(&tokens, at + 1) + 1;
            if tokens.get(end).is_some_and(|token| token.is("{")) {
                end = close(&tokens, end);
            }
            let stop = tokens.get(end).map_or(source.len(), |token| token.range.end);
            found.items.push((depth, source.get(token.range.start..stop).unwrap_or_default()));
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

/// The index of the bracket that closes the one at `open`, or of the last token.
fn close(tokens: &[Token<'_>], open: usize) -> usize {
    let mut depth = 0usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.text {
            b"(" | b"[" | b"{" => depth += 1,
            b")" | b"]" | b"}" => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at;
                }
            }
            _ => {}
        }
    }
    tokens.len().saturating_sub(1)
}

fn is_go_main(source: &[u8]) -> bool {
    let masked = mask(Language::Go, source);
    tokens(&masked).get(..2).is_some_and(|start| start[0].is("package") && start[1].is("main"))
}

/// The bodies of `func init()`, which run before anything else.
fn init_functions(tokens: &[Token<'_>]) -> Vec<std::ops::Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at + 4 < tokens.len() {
        if ["func", "init", "(", ")", "{"].iter().zip(&tokens[at..]).all(|(word, token)| token.is(word)) {
            let end = close(tokens, at + 4);
            found.push(at..end);
            at = end;
        }
        at += 1;
    }
    found
}

/// `TestMain` decides the status of all tests of its package; one that never runs them decides alone.
fn test_main(tokens: &[Token<'_>], found: &mut Vec<Sight>) {
    let has = |words: &[&str]| {
        tokens.windows(words.len()).any(|window| window.iter().zip(words).all(|(token, word)| token.is(word)))
    };
    if has(&["func", "TestMain", "("]) {
        let weight = if has(&[".", "Run", "("]) { Weight::Doubtful } else { Weight::Certain };
        found.push(Sight { trick: Trick::Disabled, weight, what: "func TestMain".to_owned() });
    }
}

fn contains(text: &[u8], word: &[u8]) -> bool {
    let Some(first) = word.first() else { return true };
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| byte == first) {
        rest = &rest[at..];
        if rest.starts_with(word) {
            return true;
        }
        rest = &rest[1..];
    }
    false
}
