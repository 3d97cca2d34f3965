//! Python: what runs when a file is imported, and what happens to the names of tests.

use std::collections::BTreeSet;

use super::{Role, Sight, Trick, Weight, table};
use crate::source::Language;
use crate::source::python::{Line, definition, lines};
use crate::source::token::{Token, tokens};

/// What a line stands in, from the inside out.
#[derive(Clone, Copy, PartialEq)]
enum Block {
    Function,
    /// `if __name__ == "__main__":`
    Main,
    Class,
    /// A condition, a loop: it runs when the file is imported.
    Other,
}

/// When a line runs.
#[derive(Clone, Copy, PartialEq)]
enum Moment {
    /// Whenever somebody imports the file, and so before its tests.
    Import,
    /// When its function is called.
    Call,
    /// When the file is started as a program.
    Start,
}

/// Adds every construct of a masked text.
pub(super) fn find(masked: &[u8], role: Role, found: &mut Vec<Sight>) {
    let lines: Vec<Line<'_>> = lines(masked).collect();
    let rows = table::Rows::of(Language::Python, role);
    let tests: BTreeSet<&str> = lines.iter().filter_map(|line| test_name(line.code)).collect();
    let mut defined: BTreeSet<(usize, &str, usize)> = BTreeSet::new();
    let mut blocks: Vec<(usize, Block)> = Vec::new();
    // Tests of the same name in different classes are different tests.
    let mut class_at = 0;
    for line in &lines {
        // The bracket that ends a signature stands where the signature began.
        let is_closing = line.code.starts_with([')', ']', '}']);
        while !is_closing && blocks.last().is_some_and(|(indent, _)| *indent >= line.indent) {
            blocks.pop();
        }
        let inside = |block| blocks.iter().any(|(_, open)| *open == block);
        let moment = match (inside(Block::Main), inside(Block::Function)) {
            (true, _) => Moment::Start,
            (_, true) => Moment::Call,
            _ => Moment::Import,
        };
        let tokens = tokens(line.code.as_bytes());
        constructs(&tokens, &rows, role, moment, found);
        let mut replaced = |what: String| {
            found.push(Sight { trick: Trick::Replaced, weight: Weight::Certain, what });
        };
        if moment == Moment::Import {
            for name in rebound(&tokens).filter(|name| tests.contains(name)) {
                replaced(format!("another {name}"));
            }
            if line.code.starts_with("class ") {
                class_at = line.start;
            }
            if let Some(name) = test_name(line.code).filter(|_| !inside(Block::Other)) {
                let owner = if line.indent == 0 { 0 } else { class_at };
                if !defined.insert((line.indent, name, owner)) {
                    replaced(format!("a second {name}"));
                }
            }
        }
        if let Some(block) = opens(line.code) {
            blocks.push((line.indent, block));
        }
    }
}

/// The constructs of one line.
fn constructs(tokens: &[Token<'_>], rows: &table::Rows, role: Role, moment: Moment, found: &mut Vec<Sight>) {
    let is = |index: usize, word: &str| tokens.get(index).is_some_and(|token| token.is(word));
    let when = |certain| if certain { Weight::Certain } else { Weight::Doubtful };
    for at in 0..tokens.len() {
        for pattern in rows.matching(tokens, at) {
            let (trick, weight) = (pattern.trick, pattern.weight(role));
            found.push(Sight { trick, weight, what: pattern.text(tokens, at) });
        }
        let follows = |word: &str| at > 0 && is(at - 1, word);
        let ends = is(at, "sys") && is(at + 1, ".") && is(at + 2, "exit")
            || is(at, "raise") && is(at + 1, "SystemExit")
            || (is(at, "exit") || is(at, "quit")) && is(at + 1, "(") && !follows(".") && !follows("def");
        if ends && moment != Moment::Start {
            let weight = when(moment == Moment::Import && role != Role::Program);
            found.push(Sight { trick: Trick::Exit, weight, what: "the end of the process".to_owned() });
        }
        let skips = is(at, "pytest") && is(at + 1, ".") && (is(at + 2, "skip") || is(at + 2, "xfail"))
            || is(at, "raise") && (is(at + 1, "SkipTest") || is(at + 3, "SkipTest"));
        if skips {
            let weight = when(moment == Moment::Import);
            found.push(Sight { trick: Trick::Disabled, weight, what: "a skipped test".to_owned() });
        }
    }
}

/// The names that a line assigns to or deletes.
fn rebound<'t>(tokens: &'t [Token<'t>]) -> impl Iterator<Item = &'t str> {
    let is_deletion = tokens.first().is_some_and(|token| token.is("del"));
    let assigns = tokens.iter().enumerate().position(|(at, token)| {
        token.is("=")
            && !tokens.get(at + 1).is_some_and(|next| next.is("="))
            && at.checked_sub(1).is_some_and(|before| !b"=!<>:".contains(&tokens[before].text[0]))
    });
    let end = if is_deletion { tokens.len() } else { assigns.unwrap_or(0) };
    let mut depth = 0usize;
    tokens.iter().enumerate().take(end).filter_map(move |(at, token)| {
        match token.text {
            b"(" | b"[" => depth += 1,
            b")" | b"]" => depth = depth.saturating_sub(1),
            _ => {}
        }
        let is_member = at > 0 && tokens[at - 1].is(".");
        let name = std::str::from_utf8(token.text).ok()?;
        (token.is_word() && depth == 0 && !is_member).then_some(name)
    })
}

/// The name of the test that a line defines.
fn test_name(code: &str) -> Option<&str> {
    match definition(code)? {
        ("def", name) if name.starts_with("test") => Some(name),
        ("class", name) if name.starts_with("Test") || code.contains("TestCase") => Some(name),
        _ => None,
    }
}

fn opens(code: &str) -> Option<Block> {
    if !code.ends_with(':') && !code.ends_with('(') && !code.ends_with(',') {
        // A signature of several lines ends its first one without a colon.
        return matches!(definition(code), Some(("def", _))).then_some(Block::Function);
    }
    match definition(code) {
        Some(("def", _)) => Some(Block::Function),
        Some(_) => Some(Block::Class),
        None if code.starts_with("if __name__") => Some(Block::Main),
        None => code.ends_with(':').then_some(Block::Other),
    }
}
