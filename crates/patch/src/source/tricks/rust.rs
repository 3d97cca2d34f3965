//! Rust: conditions on `test`, and imports that stand in for an assertion.

use super::status::is_harmless;
use super::{Confidence, Detection, Role, Tampering};
use crate::source::token::{Token, close};

/// The macros by which tests fail.
const ASSERTIONS: [&str; 4] = ["assert", "assert_eq", "assert_ne", "panic"];

/// The functions of C that end the process.
const ENDS: [&str; 5] = ["exit", "_exit", "_Exit", "quick_exit", "abort"];

/// What an attribute may stand before without saying anything about a statement.
const ITEMS: [&str; 14] = [
    "fn",
    "struct",
    "enum",
    "trait",
    "impl",
    "const",
    "static",
    "type",
    "extern",
    "unsafe",
    "async",
    "union",
    "macro_rules",
    "use",
];

/// Adds what the table cannot tell.
pub(super) fn find(tokens: &[Token<'_>], role: Role, found: &mut Vec<Detection>) {
    ignored(tokens, found);
    let mut add = |trick, weight, what: &str| {
        let is_harmless =
            trick == Tampering::Exit && role == Role::Source && is_harmless(what, tokens);
        found.push(Detection::new(
            trick,
            if is_harmless {
                Confidence::Doubtful
            } else {
                weight
            },
            what,
        ));
    };
    let is_glob = |window: &[Token<'_>]| {
        ["process", ":", ":", "*"]
            .iter()
            .zip(window)
            .all(|(word, token)| token.is(word))
    };
    if tokens.windows(4).any(is_glob) && (0..tokens.len()).any(|at| ends_bare(tokens, at)) {
        add(Tampering::Exit, role.exit_weight(), "use of process::*");
    }
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let is = |index: usize, word: &str| tokens.get(index).is_some_and(|token| token.is(word));
        if token.is("use") {
            at = imports(tokens, at, role, &mut add);
        } else if role != Role::Test && token.is("cfg") && is(at + 1, "!") && is(at + 2, "(") {
            let end = close(tokens, at + 2);
            if condition(tokens.get(at + 3..end).unwrap_or_default()) != Condition::Other {
                add(Tampering::TestAware, Confidence::Certain, "cfg!(test)");
            }
            at = end;
        } else if role != Role::Test && token.is("#") && is(at + 1, "[") {
            at = attributes(tokens, at, &mut add);
            continue;
        } else if token.is("extern") && is(at + 1, "{") {
            let end = close(tokens, at + 1);
            let foreign = tokens.get(at..end).unwrap_or_default().windows(2);
            for name in
                foreign.filter(|pair| pair[0].is("fn") && ENDS.iter().any(|end| pair[1].is(end)))
            {
                add(
                    Tampering::Exit,
                    role.exit_weight(),
                    &format!("extern fn {}", name[1].name()),
                );
            }
            at = end;
        }
        at += 1;
    }
}

/// So many tokens of an attribute are read.
const REACH: usize = 60;

/// Tests that are not run. A new one that has to be asked for takes nothing away, an old one does.
fn ignored(tokens: &[Token<'_>], found: &mut Vec<Detection>) {
    for (at, _) in tokens
        .iter()
        .enumerate()
        .filter(|(_, token)| token.is("ignore"))
    {
        let opens = |back: usize| {
            at.checked_sub(back).is_some_and(|start| {
                tokens[start].is("#") && tokens[start + 1].is("[")
                    || tokens[start].is("(") && back == 1
            })
        };
        // `#[ignore]` itself, or one under a condition.
        let is_conditional = !opens(2)
            && tokens[..at]
                .iter()
                .rev()
                .take(12)
                .any(|token| token.is("cfg_attr"))
            && tokens
                .get(at + 1)
                .is_some_and(|next| next.is(")") || next.is(",") || next.is("="));
        if !opens(2) && !is_conditional {
            continue;
        }
        let weight = if is_conditional {
            Confidence::Doubtful
        } else {
            Confidence::Certain
        };
        let attribute = tokens.get(at..).unwrap_or_default().iter().take(REACH);
        let mut next = at + attribute.take_while(|token| !token.is("]")).count() + 1;
        while tokens.get(next).is_some_and(|token| token.is("#")) {
            let attribute = tokens.get(next..).unwrap_or_default().iter().take(REACH);
            next += attribute.take_while(|token| !token.is("]")).count() + 1;
        }
        let head = tokens.get(next..).unwrap_or_default();
        let name = head
            .iter()
            .take(6)
            .skip_while(|token| !token.is("fn"))
            .nth(1)
            .map(Token::name);
        found.push(Detection {
            test: name,
            ..Detection::new(Tampering::Disabled, weight, "#[ignore")
        });
    }
}

/// What a condition says about tests.
#[derive(Clone, Copy, PartialEq)]
enum Condition {
    OnlyTests,
    NotTests,
    Other,
}

/// Whether the condition asks for tests, or for their absence: `not` turns around what stands in its parentheses.
fn condition(inside: &[Token<'_>]) -> Condition {
    let mut seen = Condition::Other;
    let mut depth = 0usize;
    let mut nots: Vec<usize> = Vec::new();
    for (at, token) in inside.iter().enumerate() {
        let is_next = |word: &str| inside.get(at + 1).is_some_and(|next| next.is(word));
        match token.text {
            b"not" if is_next("(") => nots.push(depth),
            b"(" => depth += 1,
            b")" => {
                depth = depth.saturating_sub(1);
                nots.truncate(nots.partition_point(|open| *open < depth));
            }
            b"test" if !nots.is_empty() && nots.len() % 2 == 1 => return Condition::NotTests,
            b"test" if !is_next("=") => seen = Condition::OnlyTests,
            _ => {}
        }
    }
    seen
}

/// Reads the attributes that begin at `at` and tells what they guard. Gives the index behind them.
fn attributes(
    tokens: &[Token<'_>],
    at: usize,
    add: &mut impl FnMut(Tampering, Confidence, &str),
) -> usize {
    let mut next = at;
    let mut seen = Condition::Other;
    while tokens.get(next).is_some_and(|token| token.is("#"))
        && tokens.get(next + 1).is_some_and(|token| token.is("["))
    {
        let end = close(tokens, next + 1);
        let inside = tokens.get(next + 2..end).unwrap_or_default();
        match inside.first() {
            Some(name) if name.is("cfg") => match condition(inside) {
                Condition::Other => {}
                condition => seen = condition,
            },
            // `cfg_attr(test, path = "…")` puts another file in the place of a module.
            Some(name)
                if name.is("cfg_attr")
                    && inside.iter().any(|token| token.is("path"))
                    && condition(inside) != Condition::Other =>
            {
                add(
                    Tampering::TestAware,
                    Confidence::Certain,
                    "cfg_attr(test, path)",
                );
            }
            _ => {}
        }
        next = end + 1;
    }
    let mut item = next;
    while tokens.get(item).is_some_and(|token| token.is("pub")) {
        item += 1;
        if tokens.get(item).is_some_and(|token| token.is("(")) {
            item = close(tokens, item) + 1;
        }
    }
    match (seen, tokens.get(item)) {
        (Condition::Other, _) => {}
        (Condition::NotTests, _) => add(
            Tampering::TestAware,
            Confidence::Certain,
            "#[cfg(not(test))]",
        ),
        (Condition::OnlyTests, Some(token)) if token.is("mod") => {}
        (Condition::OnlyTests, Some(token)) if ITEMS.iter().any(|word| token.is(word)) => {
            // A helper for the tests is honest and looks the same.
            let what = format!("#[cfg(test)] {}", token.name());
            add(Tampering::TestAware, Confidence::Doubtful, &what);
        }
        (Condition::OnlyTests, _) => {
            add(
                Tampering::TestAware,
                Confidence::Certain,
                "#[cfg(test)] on a statement",
            );
        }
    }
    next.max(at + 1)
}

/// Looks for assertions among what a `use` at `at` brings in. Gives the index of its end.
fn imports(
    tokens: &[Token<'_>],
    at: usize,
    role: Role,
    add: &mut impl FnMut(Tampering, Confidence, &str),
) -> usize {
    const STANDARD: [&str; 2] = ["std", "core"];
    const OWN: [&str; 3] = ["crate", "self", "super"];
    let root = tokens.get(at + 1);
    let mut names_process = false;
    let mut end = at + 1;
    while let Some(token) = tokens.get(end).filter(|token| !token.is(";")) {
        let is_leaf = tokens
            .get(end + 1)
            .is_some_and(|next| next.is(";") || next.is(",") || next.is("}"));
        let is_renamed = tokens.get(end - 1).is_some_and(|before| before.is("as"));
        if is_leaf && !is_renamed && ASSERTIONS.iter().any(|name| token.is(name)) {
            let is =
                |roots: &[&str]| root.is_some_and(|root| roots.iter().any(|word| root.is(word)));
            if !is(&STANDARD) {
                let weight = if is(&OWN) {
                    Confidence::Certain
                } else {
                    Confidence::Doubtful
                };
                add(
                    Tampering::Shadow,
                    weight,
                    &format!("use of {}", token.name()),
                );
            }
        }
        if is_leaf
            && root.is_some_and(|root| root.is("std"))
            && (token.is("exit") || token.is("abort"))
        {
            // `use std::process::{exit}`; without braces the table has it.
            let in_braces = tokens
                .get(end - 1)
                .is_some_and(|before| before.is("{") || before.is(","));
            if in_braces && names_process {
                add(Tampering::Exit, role.exit_weight(), "use of process::exit");
            }
        }
        let before = |back: usize, word: &str| {
            tokens
                .get(end - back.min(end))
                .is_some_and(|token| token.is(word))
        };
        if token.is("as") && before(1, "process") && (before(2, "{") || before(2, ",")) {
            add(Tampering::Exit, role.exit_weight(), "use of process as");
        }
        names_process |= token.is("process");
        end += 1;
    }
    end
}

/// Whether a call of `exit` or `abort` without a path stands at `at`.
fn ends_bare(tokens: &[Token<'_>], at: usize) -> bool {
    let is_call = (tokens[at].is("exit") || tokens[at].is("abort"))
        && tokens.get(at + 1).is_some_and(|next| next.is("("));
    is_call
        && at
            .checked_sub(1)
            .is_none_or(|before| ![":", ".", "fn"].iter().any(|word| tokens[before].is(word)))
}
