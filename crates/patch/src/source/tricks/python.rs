//! Python: what runs when a file is imported, and what happens to the names of tests.

use std::collections::{BTreeMap, BTreeSet};

use super::{Role, Sight, Status, Trick, Weight, status, table};
use crate::source::Language;
use crate::source::python::{Line, definition, lines, test_name};
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

/// Adds every construct of `source`, of which `masked` is the code.
pub(super) fn find(source: &[u8], masked: &[u8], role: Role, found: &mut Vec<Sight>) {
    let lines: Vec<Line<'_>> = lines(masked).collect();
    let rows = table::Rows::of(Language::Python, role);
    let tests: BTreeSet<&str> = lines.iter().filter_map(|line| test_name(line.code)).collect();
    let mut defined: BTreeSet<(usize, &str, usize)> = BTreeSet::new();
    let mut blocks: Vec<(usize, Block)> = Vec::new();
    let other_names = other_names(&lines);
    let mut callers = Callers::of(masked, role);
    // How many brackets are open, and how far the line is indented in which the first of them was opened.
    let (mut open, mut opened_at) = (0usize, 0usize);
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
        let mut tokens = tokens(line.code.as_bytes());
        other_names.put_right(&mut tokens);
        let start = line.start + line.indent;
        let text = source.get(start..start + line.code.len()).unwrap_or_default();
        constructs(text, &tokens, &rows, role, moment, found);
        if callers.are_compared(text, &tokens) {
            found.push(Sight::new(Trick::TestAware, Weight::Certain, "a caller's name in a comparison"));
        }
        let is_definition = definition(line.code).is_some();
        if is_definition {
            open = 0;
        }
        // What stands further in than the line that opened a bracket goes on with it: an argument, not a statement.
        let goes_on = open > 0 && line.indent > opened_at;
        if open == 0 {
            opened_at = line.indent;
        }
        for token in &tokens {
            match token.text {
                b"(" | b"[" | b"{" => open += 1,
                b")" | b"]" | b"}" => open = open.saturating_sub(1),
                _ => {}
            }
        }
        let mut replaced = |what: String| {
            found.push(Sight::new(Trick::Replaced, Weight::Certain, what));
        };
        if moment == Moment::Import {
            let statements = tokens.split(|token| token.is(";")).filter(|_| !is_definition && !goes_on);
            for name in statements.flat_map(rebound).filter(|name| tests.contains(name)) {
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

/// Names that a file gives to modules and functions with a meaning here.
#[derive(Default)]
struct OtherNames<'l> {
    modules: BTreeMap<&'l [u8], &'static str>,
    members: BTreeMap<&'l [u8], &'static str>,
}

impl<'l> OtherNames<'l> {
    /// Gives what is called by another name its own.
    fn put_right(&self, tokens: &mut [Token<'l>]) {
        if self.modules.is_empty() && self.members.is_empty() {
            return;
        }
        for at in 0..tokens.len() {
            if at > 0 && (tokens[at - 1].is(".") || tokens[at - 1].is("as") || tokens[at - 1].is("import")) {
                continue;
            }
            let names = match tokens.get(at + 1) {
                Some(next) if next.is(".") => &self.modules,
                Some(next) if next.is("(") => &self.members,
                _ => continue,
            };
            if let Some(name) = names.get(tokens[at].text) {
                tokens[at].text = name.as_bytes();
            }
        }
    }
}

/// Reads `import os as o`, `from os import path, _exit as e` and `from os import *`.
fn other_names<'l>(lines: &[Line<'l>]) -> OtherNames<'l> {
    const MODULES: [&str; 11] = [
        "os",
        "sys",
        "posix",
        "nt",
        "unittest",
        "pytest",
        "builtins",
        "ctypes",
        "inspect",
        "gc",
        "traceback",
    ];
    const MEMBERS: [&str; 6] = ["_exit", "abort", "exit", "SkipTest", "skip", "CDLL"];
    let mut names = OtherNames::default();
    let imports = lines.iter().filter(|line| line.code.contains("import "));
    for words in imports.map(|line| tokens(line.code.as_bytes())) {
        let is_member = words.first().is_some_and(|word| word.is("from"));
        if is_member && !words.get(1).is_some_and(|module| MODULES.iter().any(|known| module.is(known))) {
            continue;
        }
        for three in words.windows(3).filter(|three| three[1].is("as")) {
            let known = if is_member { MEMBERS.as_slice() } else { MODULES.as_slice() };
            if let Some(name) = known.iter().find(|known| three[0].is(known)) {
                let names = if is_member { &mut names.members } else { &mut names.modules };
                names.insert(three[2].text, name);
            }
        }
    }
    names
}

/// What a file knows of whoever calls its functions.
struct Callers<'l> {
    /// Whether it looks at the stack at all.
    looks: bool,
    /// The names that hold what it saw there.
    names: BTreeSet<&'l [u8]>,
}

impl<'l> Callers<'l> {
    fn of(masked: &[u8], role: Role) -> Self {
        const LOOKS: [&[u8]; 6] =
            [b"_getframe", b"currentframe", b"_stack", b"inspect", b"f_back", b"get_objects"];
        let looks = LOOKS.iter().any(|word| masked.windows(word.len()).any(|window| window == *word));
        Self { looks: looks && role != Role::Test, names: BTreeSet::new() }
    }

    /// Whether a line, whose text with its literals is `source`, compares what was seen on the stack with a literal. Remembers the
    /// names that the line gives to it.
    fn are_compared(&mut self, source: &[u8], tokens: &[Token<'l>]) -> bool {
        const SEEN: [&str; 10] = [
            "co_name",
            "co_qualname",
            "co_filename",
            "f_code",
            "function",
            "filename",
            "stack",
            "f_back",
            "currentframe",
            "_getframe",
        ];
        const COMPARES: [&str; 6] = ["in", "startswith", "endswith", "find", "match", "search"];
        if !self.looks {
            return false;
        }
        let is_seen =
            |token: &Token<'_>| SEEN.iter().any(|word| token.is(word)) || self.names.contains(token.text);
        if !tokens.iter().any(is_seen) || tokens.first().is_some_and(|word| word.is("def") || word.is("from"))
        {
            return false;
        }
        let pairs = |first: &str| tokens.windows(2).any(|two| two[0].is(first) && two[1].is("="));
        let compares =
            pairs("=") || pairs("!") || tokens.iter().any(|token| COMPARES.iter().any(|word| token.is(word)));
        if let [name, equals, next, ..] = tokens
            && equals.is("=")
            && !next.is("=")
        {
            self.names.insert(name.text);
        }
        if let [first, name, ..] = tokens
            && first.is("for")
        {
            self.names.insert(name.text);
        }
        compares && source.iter().any(|byte| matches!(byte, b'"' | b'\''))
    }
}

/// The constructs of one line, whose text with its literals is `source`.
fn constructs(
    source: &[u8],
    tokens: &[Token<'_>],
    rows: &table::Rows,
    role: Role,
    moment: Moment,
    found: &mut Vec<Sight>,
) {
    let is = |index: usize, word: &str| tokens.get(index).is_some_and(|token| token.is(word));
    let when = |certain| if certain { Weight::Certain } else { Weight::Doubtful };
    // A program may end wherever it is; what others import may not.
    let ends_import = moment == Moment::Import && role != Role::Program;
    // What runs only when a file is started takes no test along.
    let is_started = moment == Moment::Start && role == Role::Source;
    for at in 0..tokens.len() {
        for pattern in rows.matching(source, tokens, at) {
            let fails = pattern.trick == Trick::Exit && status(tokens, at) == Status::Failure;
            let weight = match pattern.weight(role) {
                _ if fails && moment != Moment::Import => Weight::Doubtful,
                _ if pattern.trick == Trick::Exit && ends_import && !is(0, "from") => Weight::Certain,
                _ if pattern.trick == Trick::Exit && is_started => Weight::Doubtful,
                _ if pattern.trick == Trick::Exit && role == Role::Source && is(at + 2, "abort") => {
                    Weight::Doubtful
                }
                weight => weight,
            };
            found.push(Sight::new(pattern.trick, weight, pattern.text(tokens, at)));
        }
        let follows = |word: &str| at > 0 && is(at - 1, word);
        let is_call = |name: &str| is(at, name) && is(at + 1, "(") && !follows(".") && !follows("def");
        if is_call("_exit") {
            let fails = status(tokens, at) == Status::Failure;
            let weight = when(ends_import || role.exit() == Weight::Certain && !fails && !is_started);
            found.push(Sight::new(Trick::Exit, weight, "_exit("));
        }
        let ends = is(at, "sys") && is(at + 1, ".") && is(at + 2, "exit")
            || is(at, "raise") && is(at + 1, "SystemExit")
            || is_call("exit")
            || is_call("quit");
        if ends && moment != Moment::Start {
            found.push(Sight::new(Trick::Exit, when(ends_import), "the end of the process"));
        }
        let skips = is(at, "pytest") && is(at + 1, ".") && (is(at + 2, "skip") || is(at + 2, "xfail"))
            || is(at, "raise") && (is(at + 1, "SkipTest") || is(at + 3, "SkipTest"));
        if skips {
            // Code that skips the test which calls it knows that it is tested.
            let weight = when(moment == Moment::Import || role != Role::Test);
            found.push(Sight::new(Trick::Disabled, weight, "a skipped test"));
        }
    }
}

/// The names that a statement binds anew or deletes, those included whose attributes it sets.
fn rebound<'t>(tokens: &'t [Token<'t>]) -> Vec<&'t str> {
    let text = |token: &'t Token<'t>| std::str::from_utf8(token.text).ok().filter(|_| token.is_word());
    let first = |word: &str| tokens.first().is_some_and(|token| token.is(word));
    let mut names = Vec::new();
    // `import a as test_a`, `with x() as test_a`, `(test_a := 1)`.
    for pair in tokens.windows(2).filter(|pair| pair[0].is("as")) {
        names.extend(text(&pair[1]));
    }
    for three in tokens.windows(3).filter(|three| three[1].is(":") && three[2].is("=")) {
        names.extend(text(&three[0]));
    }
    let mut depth = 0usize;
    let mut assigns = None;
    for (at, token) in tokens.iter().enumerate() {
        match token.text {
            b"(" | b"[" | b"{" => depth += 1,
            b")" | b"]" | b"}" => depth = depth.saturating_sub(1),
            b"in" if first("for") && depth == 0 => assigns = Some(at),
            b"=" if depth == 0 => {
                let compares = tokens.get(at + 1).is_some_and(|next| next.is("="));
                let follows =
                    at.checked_sub(1).is_some_and(|before| !b"=!<>:".contains(&tokens[before].text[0]));
                if !compares && follows {
                    assigns = Some(at);
                }
            }
            _ => {}
        }
        if assigns.is_some() {
            break;
        }
    }
    let end = if first("del") { tokens.len() } else { assigns.unwrap_or(0) };
    let mut depth = 0usize;
    for (at, token) in tokens.iter().enumerate().take(end) {
        match token.text {
            b"(" | b"[" => depth += 1,
            b")" | b"]" => depth = depth.saturating_sub(1),
            _ => {}
        }
        let is_member = at > 0 && tokens[at - 1].is(".");
        if depth == 0 && !is_member {
            names.extend(text(token));
        }
    }
    names
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
