//! Python: what runs when a file is imported, and what happens to the names of tests.

use std::collections::{BTreeMap, BTreeSet};

use super::status::{Status, status};
use super::{Confidence, Detection, Role, Tampering, table, words};
use crate::source::Language;
use crate::source::python::{Line, definition, lines, test_name};
use crate::source::token::{Token, close, tokens};

/// What a line stands in, from the inside out.
#[derive(Clone, Copy, PartialEq)]
enum Block {
    Function,
    /// `if __name__ == "__main__":`
    Main,
    /// The function `main` of a module.
    Start,
    Class,
    /// A condition, a loop: it runs when the file is imported.
    Other,
}

/// When a line runs.
#[derive(Clone, Copy, PartialEq)]
enum Moment {
    /// On every import of the file, and so before its tests.
    Import,
    /// When its function is called.
    Call,
    /// When the file is started as a program.
    Start,
}

/// Adds every construct of `source`, of which `masked` is the code, and `open` the code with what stands in f-strings.
pub(super) fn find(
    source: &[u8],
    masked: &[u8],
    open_text: &[u8],
    role: Role,
    found: &mut Vec<Detection>,
) {
    let lines: Vec<Line<'_>> = lines(masked).collect();
    let rows = table::PatternSet::new(Language::Python, role);
    let tests: BTreeSet<&str> = lines
        .iter()
        .filter_map(|line| test_name(line.code))
        .collect();
    let mut defined: BTreeSet<(usize, &str, usize)> = BTreeSet::new();
    let mut blocks: Vec<(usize, Block)> = Vec::new();
    let other_names = other_names(&lines);
    // Whoever binds `__name__` makes a program of what is imported.
    let has_guards = !lines.iter().any(|line| line.code.starts_with("__name__"));
    let mut callers = Callers::new(masked, role);
    // How many brackets are open, and how far the line is indented in which the first of them was opened.
    let (mut open, mut opened_at) = (0usize, 0usize);
    // Tests of the same name in different classes are different tests.
    let mut class_at = 0;
    for (index, line) in lines.iter().enumerate() {
        // The bracket that ends a signature stands where the signature began.
        let is_closing = line.code.starts_with([')', ']', '}']);
        while !is_closing
            && blocks
                .last()
                .is_some_and(|(indent, _)| *indent >= line.indent)
        {
            blocks.pop();
        }
        let inside = |block| blocks.iter().any(|(_, open)| *open == block);
        let end = lines.get(index + 1).map_or(source.len(), |next| next.start);
        let start = line.start + line.indent;
        let text = source.get(start..end).unwrap_or_default();
        let is_guard = has_guards
            && guards(
                source
                    .get(start..start + line.code.len())
                    .unwrap_or_default(),
            );
        let is_started =
            inside(Block::Main) || is_guard || role == Role::Tool && inside(Block::Start);
        let moment = match (is_started, inside(Block::Function) || inside(Block::Start)) {
            (true, _) => Moment::Start,
            (_, true) => Moment::Call,
            _ => Moment::Import,
        };
        let mut all = tokens(open_text.get(start..end).unwrap_or_default());
        other_names.put_right(&mut all);
        let known = found.len();
        constructs(text, &all, &rows, role, moment, found);
        let is_seen = found
            .iter()
            .skip(known)
            .any(|detection| detection.trick == Tampering::Shadow);
        if role != Role::Test && !is_seen {
            runners(&all, &other_names.runners, found);
        }
        let mut tokens = tokens(line.code.as_bytes());
        other_names.put_right(&mut tokens);
        let text = source
            .get(start..start + line.code.len())
            .unwrap_or_default();
        if callers.are_compared(text, &tokens) {
            found.push(Detection::new(
                Tampering::TestAware,
                Confidence::Certain,
                "a caller's name in a comparison",
            ));
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
            found.push(Detection::new(
                Tampering::Replaced,
                Confidence::Certain,
                what,
            ));
        };
        if moment == Moment::Import {
            let statements = tokens
                .split(|token| token.is(";"))
                .filter(|_| !is_definition && !goes_on);
            for name in statements
                .flat_map(rebound)
                .filter(|name| tests.contains(name))
            {
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
        if let Some(block) = opens(line, is_guard) {
            blocks.push((line.indent, block));
        }
    }
}

/// Names that a file gives to modules and functions with a meaning here.
#[derive(Default)]
struct OtherNames<'l> {
    modules: BTreeMap<&'l [u8], &'static str>,
    members: BTreeMap<&'l [u8], &'static str>,
    /// What comes from a runner of tests.
    runners: BTreeSet<&'l [u8]>,
}

impl<'l> OtherNames<'l> {
    /// Takes what one statement imports.
    fn take(
        &mut self,
        words: &[Token<'l>],
        known_modules: &[&'static str],
        known_members: &[&'static str],
    ) {
        let Some(import) = words.iter().position(|word| word.is("import")) else {
            return;
        };
        let is_member = import > 0 && words.iter().any(|word| word.is("from"));
        let module = words
            .iter()
            .position(|word| word.is("from"))
            .and_then(|from| words.get(from + 1));
        let is_runner = |name: &Token<'_>| {
            ["unittest", "pytest", "_pytest", "doctest"]
                .iter()
                .any(|known| name.is(known))
        };
        if is_member && module.is_some_and(is_runner) {
            let names = words
                .iter()
                .skip(import + 1)
                .filter(|word| word.is_word() && !word.is("as"));
            self.runners.extend(names.map(|word| word.text));
        }
        let is_known =
            module.is_some_and(|module| known_modules.iter().any(|known| module.is(known)));
        for (at, three) in words
            .windows(3)
            .enumerate()
            .filter(|(_, three)| three[1].is("as"))
        {
            let root = words.get(..=at).unwrap_or_default().iter().rev();
            if !is_member
                && root
                    .take_while(|word| word.is_word() || word.is("."))
                    .any(is_runner)
            {
                self.runners.insert(three[2].text);
            }
            let known = if is_member {
                known_members
            } else {
                known_modules
            };
            if (!is_member || is_known)
                && let Some(name) = known.iter().find(|known| three[0].is(known))
            {
                let names = if is_member {
                    &mut self.members
                } else {
                    &mut self.modules
                };
                names.insert(three[2].text, *name);
            }
        }
    }

    /// Gives what is called by another name its own.
    fn put_right(&self, tokens: &mut [Token<'l>]) {
        if self.modules.is_empty() && self.members.is_empty() {
            return;
        }
        for at in 0..tokens.len() {
            if at > 0
                && (tokens[at - 1].is(".")
                    || tokens[at - 1].is("as")
                    || tokens[at - 1].is("import"))
            {
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
    const RUNNERS: [&str; 4] = ["unittest", "pytest", "_pytest", "doctest"];
    let mut names = OtherNames::default();
    names
        .runners
        .extend(RUNNERS.iter().map(|name| name.as_bytes()));
    let mut rest = lines.iter();
    while let Some(line) = rest.next() {
        let mut words = tokens(line.code.as_bytes());
        // `o = os`
        for three in words.windows(3).filter(|three| three[1].is("=")) {
            let is_alone = !line.code.contains('.') || words.len() > 3;
            if let Some(name) = MODULES
                .iter()
                .find(|known| three[2].is(known))
                .filter(|_| is_alone)
            {
                let after = three[2].range.end;
                if !line
                    .code
                    .get(after..)
                    .unwrap_or_default()
                    .trim_start()
                    .starts_with(['.', '[', '('])
                {
                    names.modules.insert(three[0].text, name);
                }
            }
        }
        if !line.code.contains("import ") && !line.code.contains("import(") {
            continue;
        }
        // Names in parentheses may stand in several lines.
        if line.code.contains('(') {
            while !words.iter().any(|word| word.is(")")) {
                let Some(next) = rest.next() else { break };
                words.extend(tokens(next.code.as_bytes()));
            }
        }
        for statement in words.split(|word| word.is(";")) {
            names.take(statement, &MODULES, &MEMBERS);
        }
    }
    names
}

/// What a line does to the runner of the tests.
fn runners(tokens: &[Token<'_>], names: &BTreeSet<&[u8]>, found: &mut Vec<Detection>) {
    for (at, token) in tokens.iter().enumerate() {
        let follows = at > 0 && tokens[at - 1].is(".");
        if follows {
            continue;
        }
        if token.is("_pytest") {
            found.push(Detection::new(
                Tampering::Shadow,
                Confidence::Certain,
                "the inside of pytest",
            ));
        }
        if names.contains(token.text)
            && (words::sets_member(tokens, at) || words::changes(tokens, at))
        {
            found.push(Detection::new(
                Tampering::Shadow,
                Confidence::Certain,
                "a part of the runner",
            ));
        }
    }
}

/// What a file knows of the callers of its functions.
struct Callers<'l> {
    /// Whether it looks at the stack at all.
    looks: bool,
    /// The names that hold what it saw there.
    names: BTreeSet<&'l [u8]>,
}

impl<'l> Callers<'l> {
    fn new(masked: &[u8], role: Role) -> Self {
        const LOOKS: [&[u8]; 6] = [
            b"_getframe",
            b"currentframe",
            b"_stack",
            b"inspect",
            b"f_back",
            b"get_objects",
        ];
        let looks = LOOKS
            .iter()
            .any(|word| masked.windows(word.len()).any(|window| window == *word));
        Self {
            looks: looks && role != Role::Test,
            names: BTreeSet::new(),
        }
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
        let is_seen = |token: &Token<'_>| {
            SEEN.iter().any(|word| token.is(word)) || self.names.contains(token.text)
        };
        if !tokens.iter().any(is_seen)
            || tokens
                .first()
                .is_some_and(|word| word.is("def") || word.is("from"))
        {
            return false;
        }
        let pairs = |first: &str| {
            tokens
                .windows(2)
                .any(|two| two[0].is(first) && two[1].is("="))
        };
        let compares = pairs("=")
            || pairs("!")
            || tokens
                .iter()
                .any(|token| COMPARES.iter().any(|word| token.is(word)));
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
    rows: &table::PatternSet,
    role: Role,
    moment: Moment,
    found: &mut Vec<Detection>,
) {
    let is = |index: usize, word: &str| tokens.get(index).is_some_and(|token| token.is(word));
    let when = |certain| {
        if certain {
            Confidence::Certain
        } else {
            Confidence::Doubtful
        }
    };
    // A program may end wherever it is; what others import may not.
    let ends_import = moment == Moment::Import && role != Role::Program;
    // What runs only when a file is started takes no test along.
    let is_started = moment == Moment::Start && matches!(role, Role::Source | Role::Tool);
    for at in 0..tokens.len() {
        for pattern in rows.matching(source, tokens, at) {
            let fails = pattern.trick == Tampering::Exit && status(tokens, at) == Status::Failure;
            let weight = match pattern.weight(role) {
                _ if fails => Confidence::Doubtful,
                _ if pattern.trick == Tampering::Exit && ends_import && !is(0, "from") => {
                    Confidence::Certain
                }
                _ if pattern.trick == Tampering::Exit && is_started => Confidence::Doubtful,
                _ if pattern.trick == Tampering::Exit
                    && role != Role::Test
                    && is(at + 2, "abort") =>
                {
                    Confidence::Doubtful
                }
                weight => weight,
            };
            found.push(Detection::new(
                pattern.trick,
                weight,
                pattern.text(tokens, at),
            ));
        }
        let follows = |word: &str| at > 0 && is(at - 1, word);
        let is_call =
            |name: &str| is(at, name) && is(at + 1, "(") && !follows(".") && !follows("def");
        let end = end_of_process(source, tokens, at);
        if let Some((what, status)) = end {
            let is_plain = matches!(what.as_str(), "the end of the process");
            let weight = match (status, moment) {
                (Status::Failure, _) => Confidence::Doubtful,
                (_, Moment::Start) if role != Role::Test => Confidence::Doubtful,
                (_, Moment::Import) => when(ends_import),
                // In a test `sys.exit` is an exception that its runner takes for a failure.
                _ if is_plain && role == Role::Test => Confidence::Doubtful,
                _ => role.exit_weight(),
            };
            if !(is_plain && moment == Moment::Start) {
                found.push(Detection::new(Tampering::Exit, weight, what));
            }
        } else if role != Role::Test
            && let Some(what) = words::python_exit_call(tokens, at)
            && !(follows(".")
                && at > 1
                && ["os", "posix", "nt"]
                    .iter()
                    .any(|module| is(at - 2, module))
                && is(at, "_exit"))
            && !is(0, "import")
            && !(is(0, "from") && is(at, "_exit"))
        {
            let fails = status(tokens, at) == Status::Failure && is(at, "_exit");
            let weight = if fails || moment == Moment::Start {
                Confidence::Doubtful
            } else {
                role.exit_weight()
            };
            found.push(Detection::new(Tampering::Exit, weight, what));
        }
        if is_call("_exit") {
            let fails = status(tokens, at) == Status::Failure;
            let weight = when(
                !fails && (ends_import || role.exit_weight() == Confidence::Certain && !is_started),
            );
            found.push(Detection::new(Tampering::Exit, weight, "_exit("));
        }
        let skips =
            is(at, "pytest") && is(at + 1, ".") && (is(at + 2, "skip") || is(at + 2, "xfail"))
                || is(at, "raise") && (is(at + 1, "SkipTest") || is(at + 3, "SkipTest"));
        if skips {
            // Code that skips the test which calls it knows that it is tested.
            let weight = when(moment == Moment::Import || role != Role::Test);
            found.push(Detection::new(
                Tampering::Disabled,
                weight,
                "a skipped test",
            ));
        }
    }
}

/// The names that a statement rebinds or deletes, or whose attributes it sets.
fn rebound<'t>(tokens: &'t [Token<'t>]) -> Vec<&'t str> {
    let text = |token: &'t Token<'t>| {
        std::str::from_utf8(token.text)
            .ok()
            .filter(|_| token.is_word())
    };
    let first = |word: &str| tokens.first().is_some_and(|token| token.is(word));
    let mut names = Vec::new();
    // `import a as test_a`, `with x() as test_a`, `(test_a := 1)`.
    for pair in tokens.windows(2).filter(|pair| pair[0].is("as")) {
        names.extend(text(&pair[1]));
    }
    for three in tokens
        .windows(3)
        .filter(|three| three[1].is(":") && three[2].is("="))
    {
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
                let follows = at
                    .checked_sub(1)
                    .is_some_and(|before| !b"=!<>:".contains(&tokens[before].text[0]));
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
    let end = if first("del") {
        tokens.len()
    } else {
        assigns.unwrap_or(0)
    };
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

fn opens(line: &Line<'_>, is_guard: bool) -> Option<Block> {
    let code = line.code;
    let function = |name: &str| {
        if name == "main" && line.indent == 0 {
            Block::Start
        } else {
            Block::Function
        }
    };
    if !code.ends_with(':') && !code.ends_with('(') && !code.ends_with(',') {
        // A signature of several lines ends its first one without a colon.
        return match definition(code) {
            Some(("def", name)) => Some(function(name)),
            _ => None,
        };
    }
    match definition(code) {
        Some(("def", name)) => Some(function(name)),
        Some(_) => Some(Block::Class),
        None if is_guard => Some(Block::Main),
        None => code.ends_with(':').then_some(Block::Other),
    }
}

/// Whether a line asks whether the file is started as a program, and nothing else.
fn guards(line: &[u8]) -> bool {
    let plain = line
        .iter()
        .filter(|byte| !byte.is_ascii_whitespace() && !b"()".contains(byte));
    let plain: Vec<u8> = plain
        .map(|byte| if *byte == b'\'' { b'"' } else { *byte })
        .take(26)
        .collect();
    plain.starts_with(b"if__name__==\"__main__\":")
        || plain.starts_with(b"if\"__main__\"==__name__:")
}

/// What ends the process at this token by an exception, and with which status.
fn end_of_process(source: &[u8], tokens: &[Token<'_>], at: usize) -> Option<(String, Status)> {
    let is = |index: usize, word: &str| tokens.get(index).is_some_and(|token| token.is(word));
    let before =
        |back: usize, word: &str| at.checked_sub(back).is_some_and(|before| is(before, word));
    let plain = |status| Some(("the end of the process".to_owned(), status));
    if is(at, "SystemExit") {
        if is(at + 1, "(") {
            return plain(argument(source, tokens, at + 1));
        }
        let asks = [
            "isinstance",
            "issubclass",
            "raises",
            "assertRaises",
            "suppress",
        ];
        let only_asked = !before(1, "raise")
            && (is(0, "except")
                || tokens
                    .iter()
                    .any(|token| asks.iter().any(|word| token.is(word))));
        return if only_asked || is(0, "import") || is(0, "from") {
            None
        } else {
            plain(Status::Unknown)
        };
    }
    if !is(at, "exit") && !is(at, "quit") || before(1, "def") || is(0, "from") || is(0, "import") {
        return None;
    }
    if before(1, ".") {
        let known = before(2, "sys") || before(2, "builtins");
        return match is(at + 1, "(") {
            true if known => plain(argument(source, tokens, at + 1)),
            // Of another object it is an end where it is told how the end is.
            true => (status(tokens, at) == Status::Success && !is(at + 2, ")"))
                .then(|| (".exit".to_owned(), Status::Success)),
            false if known => plain(Status::Unknown),
            false => None,
        };
    }
    if is(at + 1, "(") {
        plain(argument(source, tokens, at + 1))
    } else {
        None
    }
}

/// How an end goes whose arguments are opened at `open`: text is printed, and a failure.
fn argument(source: &[u8], tokens: &[Token<'_>], open: usize) -> Status {
    const OTHERWISE: [&str; 9] = ["and", "or", "if", "=", "<", ">", "in", "not", "lambda"];
    let is = |index: usize, word: &str| tokens.get(index).is_some_and(|token| token.is(word));
    let Some(from) = tokens.get(open).map(|token| token.range.end) else {
        return Status::Unknown;
    };
    let text = source.get(from..).unwrap_or_default().trim_ascii_start();
    let prefix = text
        .iter()
        .take(2)
        .take_while(|byte| b"fFrRuU".contains(byte))
        .count();
    let is_text = text
        .get(prefix)
        .is_some_and(|byte| matches!(byte, b'"' | b'\''));
    if !is_text {
        return status(tokens, open);
    }
    let end = close(tokens, open);
    let first = open + 1 + usize::from(prefix > 0 && !is(open + 1, ")"));
    let rest = tokens.get(first..end).unwrap_or_default();
    let is_plain = !rest
        .iter()
        .any(|token| OTHERWISE.iter().any(|word| token.is(word)));
    let goes_on = rest.first().is_none_or(|token| token.is("%"))
        || is(first, "+") && (is(first + 1, "str") || is(first + 1, "repr") || is(first + 1, ")"))
        || is(first, ".") && is(first + 1, "format") && close(tokens, first + 2) + 1 == end
        // Fields of an f-string.
        || prefix > 0 && text.first().is_some_and(|byte| b"fF".contains(byte)) && !rest.iter().any(|token| token.is("."));
    if is_plain && goes_on {
        Status::Failure
    } else {
        Status::Unknown
    }
}
