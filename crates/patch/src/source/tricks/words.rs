//! Last words: what ends a process or rebinds its runner is known by its own name, behind whatever it stands.
//!
//! `os._exit`, `o._exit`, `vars(os)["_exit"]` and `f"{x._exit}"` have the last word in common, so only that is looked
//! for: as
//! a name, and as a whole literal after its escapes. Names are compared as the language folds them.

use std::collections::BTreeSet;

use icu_normalizer::ComposingNormalizerBorrowed;

use super::status::{Status, status};
use super::{Confidence, Detection, Role, Tampering};
use crate::source::Language;
use crate::source::mask::Masked;
use crate::source::token::{Token, close};

/// What ends a process past every handler, or reaches the library that does.
const PYTHON_ENDS: [&str; 24] = [
    "_exit",
    "execv",
    "execve",
    "execl",
    "execle",
    "execlp",
    "execlpe",
    "execvp",
    "execvpe",
    "Py_Exit",
    "Py_FatalError",
    "_Exit",
    "quick_exit",
    "reallyExit",
    "dlopen",
    "CDLL",
    "PyDLL",
    "LoadLibrary",
    "pythonapi",
    "atexit",
    "excepthook",
    "unraisablehook",
    "_run_exitfuncs",
    "cdll",
];

/// What C has of it.
const C_ENDS: [&str; 18] = [
    "exit",
    "_exit",
    "_Exit",
    "quick_exit",
    "exit_group",
    "execl",
    "execle",
    "execlp",
    "execv",
    "execve",
    "execvp",
    "fexecve",
    "syscall",
    "dlopen",
    "dlsym",
    "atexit",
    "at_quick_exit",
    "on_exit",
];

/// What a macro of C may not be called: the words of the language by which tests fail, and the functions that they
/// compare with.
const C_WORDS: [&str; 38] = [
    "NDEBUG",
    "assert",
    "static_assert",
    "main",
    "if",
    "else",
    "while",
    "for",
    "do",
    "switch",
    "case",
    "default",
    "return",
    "break",
    "continue",
    "goto",
    "sizeof",
    "int",
    "char",
    "void",
    "long",
    "short",
    "unsigned",
    "signed",
    "struct",
    "exit",
    "abort",
    "_exit",
    "strcmp",
    "strncmp",
    "memcmp",
    "strstr",
    "printf",
    "fprintf",
    "puts",
    "fputs",
    "raise",
    "__assert_fail",
];

/// Modules by which scripts are tested.
const SCRIPT_RUNNERS: [&str; 11] = [
    "assert",
    "node:assert",
    "assert/strict",
    "node:assert/strict",
    "node:test",
    "test",
    "jest",
    "vitest",
    "@jest/globals",
    "chai",
    "mocha",
];

/// Functions that change what they are given.
const CHANGES: [&str; 9] = [
    "setattr",
    "delattr",
    "assign",
    "defineProperty",
    "defineProperties",
    "setPrototypeOf",
    "set",
    "object",
    "vars",
];

/// Adds what names and literals tell in a text that was read as `masked`, split into `tokens`.
pub(super) fn find(
    language: Language,
    source: &[u8],
    masked: &Masked,
    tokens: &[Token<'_>],
    role: Role,
    found: &mut Vec<Detection>,
) {
    if role == Role::Test {
        return;
    }
    match language {
        Language::Python => {
            coding(source, found);
            folded(tokens, found);
        }
        Language::Script => script(source, masked, tokens, role, found),
        Language::Go => go(source, masked, tokens, role, found),
        Language::C => c(tokens, role, found),
        Language::Rust => {
            let replaces = tokens.iter().any(|token| token.is("CommandExt"));
            for at in 0..tokens.len() {
                let is = |next: usize, word: &str| {
                    tokens.get(at + next).is_some_and(|token| token.is(word))
                };
                if replaces && is(0, ".") && is(1, "exec") && is(2, "(") && is(3, ")") {
                    found.push(Detection::new(
                        Tampering::Exit,
                        role.exit_weight(),
                        ".exec()",
                    ));
                }
                if is(0, "fn")
                    && (is(1, "syscall") || is(1, "dlsym"))
                    && closes_in_semicolon(tokens, at + 2)
                    || is(0, "libc") && is(3, "syscall")
                {
                    found.push(Detection::new(
                        Tampering::Exit,
                        role.exit_weight(),
                        "syscall",
                    ));
                }
            }
        }
    }
    whole_literals(language, source, masked, tokens, role, found);
}

/// Whether a function is only declared.
fn closes_in_semicolon(tokens: &[Token<'_>], open: usize) -> bool {
    /// The longest signature that is read.
    const MAX_LEN: usize = 100;
    let near = tokens
        .get(..(open + MAX_LEN).min(tokens.len()))
        .unwrap_or_default();
    let rest = tokens.get(close(near, open)..).unwrap_or_default();
    rest.iter()
        .take(12)
        .find(|token| token.is(";") || token.is("{"))
        .is_some_and(|token| token.is(";"))
}

/// A line of Python that says that the file is to be read in an encoding in which it does not say what it seems to.
fn coding(source: &[u8], found: &mut Vec<Detection>) {
    const PLAIN: [&str; 9] = [
        "utf8",
        "utf8sig",
        "u8",
        "ascii",
        "usascii",
        "latin1",
        "iso88591",
        "iso885915",
        "latin",
    ];
    for line in source
        .split(|byte| *byte == b'\n' || *byte == b'\r')
        .take(3)
    {
        let line = String::from_utf8_lossy(line);
        let line = line.trim_start_matches(['\u{feff}', ' ', '\t', '\u{c}']);
        let Some((_, rest)) = line
            .strip_prefix('#')
            .and_then(|line| line.split_once("coding"))
        else {
            continue;
        };
        let Some(name) = rest.strip_prefix([':', '=']) else {
            continue;
        };
        let name: String = name
            .trim_start()
            .chars()
            .take_while(|c| c.is_alphanumeric() || "-_.".contains(*c))
            .filter(|c| c.is_alphanumeric())
            .flat_map(char::to_lowercase)
            .collect();
        if !name.is_empty() && !PLAIN.contains(&name.as_str()) {
            found.push(Detection::new(
                Tampering::HiddenName,
                Confidence::Certain,
                format!("the encoding {name}"),
            ));
        }
    }
}

/// Names that Python takes for others: it folds letters of another width or style to plain ones.
fn folded(tokens: &[Token<'_>], found: &mut Vec<Detection>) {
    let normalizer = ComposingNormalizerBorrowed::new_nfkc();
    for token in tokens.iter().filter(|token| !token.text.is_ascii()) {
        let Ok(name) = std::str::from_utf8(token.text) else {
            continue;
        };
        let plain = normalizer.normalize(name);
        if plain.is_ascii() {
            found.push(Detection::new(
                Tampering::HiddenName,
                Confidence::Certain,
                format!("{plain} in other letters"),
            ));
        }
    }
}

/// Returns the name at `at` that ends a Python process, if it is one.
pub(super) fn python_exit_call(tokens: &[Token<'_>], at: usize) -> Option<String> {
    let is = |index: usize, word: &str| tokens.get(index).is_some_and(|token| token.is(word));
    let before = |word: &str| at.checked_sub(1).is_some_and(|before| is(before, word));
    let word = PYTHON_ENDS.iter().find(|end| is(at, end))?;
    if before("def") || before("class") || *word == "_exit" && is(at + 1, "(") && !before(".") {
        return None;
    }
    // What is read, and not set, ends nothing.
    if word.ends_with("hook") && !is(at + 1, "=") {
        return None;
    }
    Some((*word).to_owned())
}

/// Literals that are, as a whole, the name of what ends the process, where something is looked up by them.
fn whole_literals(
    language: Language,
    source: &[u8],
    masked: &Masked,
    tokens: &[Token<'_>],
    role: Role,
    found: &mut Vec<Detection>,
) {
    let ends: &[&str] = match language {
        Language::Python => &PYTHON_ENDS,
        Language::Script => &["reallyExit", "_exit"],
        Language::Go | Language::C | Language::Rust => return,
    };
    let looks_up = |token: &Token<'_>| {
        [
            "getattr",
            "attrgetter",
            "methodcaller",
            "get",
            "Reflect",
            "__getattribute__",
            "setattr",
            "pop",
        ]
        .iter()
        .any(|word| token.is(word))
    };
    let runs = |token: &Token<'_>| {
        [
            "exec",
            "eval",
            "compile",
            "Function",
            "runInThisContext",
            "runInNewContext",
        ]
        .iter()
        .any(|word| token.is(word))
    };
    for (index, range) in masked.literals.iter().enumerate() {
        let next = tokens.partition_point(|token| token.range.start < range.end);
        let around = |back: usize| next.checked_sub(back).and_then(|at| tokens.get(at));
        let text = unescaped(source.get(range.clone()).unwrap_or_default());
        let joined = masked.literals.get(index + 1).filter(|other| {
            source
                .get(range.end..other.start)
                .is_some_and(|gap| gap.iter().all(u8::is_ascii_whitespace))
                && language == Language::Python
        });
        let joined = joined.map(|other| unescaped(source.get(other.clone()).unwrap_or_default()));
        let text = text + joined.as_deref().unwrap_or_default();
        let is_code = around(1).is_some_and(|token| token.is("("))
            && (around(2).is_some_and(runs) || around(3).is_some_and(|token| token.is("new")));
        if is_code
            && ["exit", "SystemExit", "execv", "abort"]
                .iter()
                .any(|word| text.contains(word))
        {
            found.push(Detection::new(
                Tampering::Exit,
                role.exit_weight(),
                "an end in a text that is run",
            ));
            continue;
        }
        if ends.contains(&text.as_str()) {
            let weight = if role == Role::Program {
                Confidence::Doubtful
            } else {
                Confidence::Certain
            };
            found.push(Detection::new(
                Tampering::Exit,
                weight,
                format!("the name {text}"),
            ));
        } else if matches!(text.as_str(), "exit" | "SystemExit" | "abort") {
            let indexed = around(1).is_some_and(|token| token.is("["))
                && around(2).is_some_and(|token| {
                    token.is_word() || token.is(")") || token.is("]") || token.is(".")
                })
                && tokens.get(next).is_some_and(|token| token.is("]"))
                && (status(tokens, next) == Status::Success
                    && tokens.get(next + 1).is_some_and(|t| t.is("("))
                    || tokens[..next].iter().rev().skip(2).take(5).any(|token| {
                        [
                            "process",
                            "__dict__",
                            "vars",
                            "require",
                            "globals",
                            "__builtins__",
                        ]
                        .iter()
                        .any(|root| token.is(root))
                    }));
            let near = tokens[..next].iter().rev().take(6);
            let by_name = near
                .take_while(|token| !token.is(";") && !token.is("="))
                .any(looks_up)
                && around(1).is_some_and(|token| token.is(",") || token.is("("))
                && tokens
                    .get(next)
                    .is_some_and(|token| token.is(")") || token.is(","));
            if (indexed || by_name) && text != "abort" {
                found.push(Detection::new(
                    Tampering::Exit,
                    role.exit_weight(),
                    format!("the name {text}"),
                ));
            }
        }
    }
}

/// What stands between the quotes of a literal, escapes of letters resolved.
fn unescaped(literal: &[u8]) -> String {
    /// The longest literal with a meaning here.
    const MAX_LEN: usize = 400;
    let text = String::from_utf8_lossy(
        literal
            .get(..MAX_LEN.min(literal.len()))
            .unwrap_or_default(),
    );
    let text = text.trim_matches(['"', '\'', '`']);
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        let (digits, radix) = match rest.peek() {
            Some('x') => (2, 16),
            Some('u') => (4, 16),
            Some('U') => (8, 16),
            Some('0'..='7') => (3, 8),
            _ => continue,
        };
        if radix == 16 {
            rest.next();
        }
        let braced = rest.next_if_eq(&'{').is_some();
        let mut number = String::new();
        while number.len() < if braced { 8 } else { digits } {
            match rest.next_if(|c| c.is_digit(radix)) {
                Some(digit) => number.push(digit),
                None => break,
            }
        }
        if braced {
            rest.next_if_eq(&'}');
        }
        out.extend(
            u32::from_str_radix(&number, radix)
                .ok()
                .and_then(char::from_u32),
        );
    }
    out
}

/// The literal in front of a token, without its quotes.
fn literal<'s>(
    source: &'s [u8],
    masked: &Masked,
    tokens: &[Token<'_>],
    at: usize,
) -> Option<&'s [u8]> {
    let start = tokens.get(at.checked_sub(1)?)?.range.end;
    let end = tokens
        .get(at)
        .map_or(source.len(), |token| token.range.start);
    let first = masked.literals.partition_point(|range| range.start < start);
    let range = masked
        .literals
        .get(first)
        .filter(|range| range.end <= end)?;
    source.get(range.start + 1..range.end.checked_sub(1)?)
}

/// Scripts: another name for `process`, escapes in names, hooks at the end, and what is done to a runner's modules.
fn script(
    source: &[u8],
    masked: &Masked,
    tokens: &[Token<'_>],
    role: Role,
    found: &mut Vec<Detection>,
) {
    let is = |index: usize, word: &str| tokens.get(index).is_some_and(|token| token.is(word));
    let module = |at: usize| {
        literal(source, masked, tokens, at).filter(|_| {
            is(at, ")")
                && at > 1
                && is(at - 1, "(")
                && (is(at - 2, "require") || is(at - 2, "import"))
                || at > 0 && (is(at - 1, "from") || is(at - 1, "import"))
        })
    };
    let is_runner = |text: &[u8]| SCRIPT_RUNNERS.iter().any(|known| known.as_bytes() == text);
    let mut runners: BTreeSet<&[u8]> =
        BTreeSet::from([b"jest".as_slice(), b"assert", b"expect", b"vi"]);
    let mut processes: BTreeSet<&[u8]> = BTreeSet::new();
    for at in 0..=tokens.len() {
        // `const p = process;`, but not `const { env } = process`.
        if at > 1 && is(at - 1, "=") && is(at, "process") && tokens[at - 2].is_word() {
            let goes_on = [".", "[", "?", "("].iter().any(|mark| is(at + 1, mark));
            if !goes_on {
                found.push(Detection::new(
                    Tampering::Exit,
                    role.exit_weight(),
                    "another name for process",
                ));
            }
        }
        let Some(name) = module(at) else { continue };
        let bound = if is(at, ")") {
            // `name = require(…)`, `{ names } = require(…)`.
            at.checked_sub(3)
                .filter(|equals| is(*equals, "="))
                .and_then(|equals| equals.checked_sub(1))
        } else {
            at.checked_sub(2)
        };
        let mut names: Vec<&[u8]> = Vec::new();
        if let Some(last) = bound {
            let stop = |token: &&Token<'_>| {
                !["import", "const", "let", "var", ";"]
                    .iter()
                    .any(|word| token.is(word))
            };
            if is(last, "}") || !is(at, ")") {
                names.extend(
                    tokens[..=last]
                        .iter()
                        .rev()
                        .take(60)
                        .take_while(stop)
                        .map(|token| token.text),
                );
            } else {
                names.extend(tokens.get(last).map(|token| token.text));
            }
        }
        if is_runner(name) {
            runners.extend(
                names
                    .iter()
                    .filter(|name| name.first().is_some_and(u8::is_ascii_alphabetic)),
            );
            if is(at, ")") && (sets_member(tokens, at) || changes(tokens, at.saturating_sub(2))) {
                found.push(Detection::new(
                    Tampering::Shadow,
                    Confidence::Certain,
                    "a part of the runner",
                ));
            }
        } else if matches!(name, b"process" | b"node:process") {
            processes.extend(
                names
                    .iter()
                    .filter(|name| name.first().is_some_and(u8::is_ascii_alphabetic)),
            );
        }
    }
    for at in 0..tokens.len() {
        let follows = at > 0 && is(at - 1, ".");
        if !follows
            && runners.contains(tokens[at].text)
            && (sets_member(tokens, at) || changes(tokens, at))
        {
            found.push(Detection::new(
                Tampering::Shadow,
                Confidence::Certain,
                "a part of the runner",
            ));
        }
        let owner = at.checked_sub(2).and_then(|at| tokens.get(at));
        let is_process =
            owner.is_some_and(|owner| owner.is("process") || processes.contains(owner.text));
        if follows
            && is(at, "exit")
            && !owner.is_some_and(|owner| owner.is("process") || owner.is("Deno"))
        {
            let status = if is(at + 1, "(") {
                status(tokens, at)
            } else {
                Status::Unknown
            };
            if is(at + 1, "(") && status == Status::Success && !is_required(tokens, at)
                || is_process && status != Status::Failure
            {
                found.push(Detection::new(Tampering::Exit, role.exit_weight(), ".exit"));
            }
        }
        if follows
            && (is(at, "reallyExit") || is(at, "execve"))
            && !owner.is_some_and(|owner| owner.is("process"))
        {
            found.push(Detection::new(
                Tampering::Exit,
                role.exit_weight(),
                format!(".{}", tokens[at].name()),
            ));
        }
        let hooks = [
            "on",
            "once",
            "addListener",
            "prependListener",
            "prependOnceListener",
        ];
        if follows && is_process && is(at + 1, "(") && hooks.iter().any(|hook| is(at, hook)) {
            let event = literal(source, masked, tokens, at + 2)
                .map(unescaped)
                .unwrap_or_default();
            if [
                "exit",
                "beforeExit",
                "uncaughtException",
                "unhandledRejection",
            ]
            .contains(&event.as_str())
            {
                found.push(Detection::new(
                    Tampering::Exit,
                    role.exit_weight(),
                    format!("process.on {event}"),
                ));
            }
        }
        let is_escape = tokens.get(at + 1).is_some_and(|next| {
            next.text.starts_with(b"u") && next.range.start == tokens[at].range.end
        });
        if is(at, "\\") && is_escape {
            found.push(Detection::new(
                Tampering::HiddenName,
                Confidence::Certain,
                "an escape in a name",
            ));
        }
    }
}

/// Whether this `exit` is one that the table knows.
fn is_required(tokens: &[Token<'_>], at: usize) -> bool {
    at.checked_sub(4)
        .and_then(|start| tokens.get(start))
        .is_some_and(|token| token.is("require"))
}

/// Whether a member of what stands at `at` is given another value: `a.b.c = …`, `a["b"] = …`.
pub(super) fn sets_member(tokens: &[Token<'_>], at: usize) -> bool {
    /// The longest chain that is followed.
    const MAX_LEN: usize = 24;
    let is = |index: usize, word: &str| tokens.get(index).is_some_and(|token| token.is(word));
    let mut next = at + 1;
    let mut has_member = false;
    while next < at + MAX_LEN {
        if is(next, ".") && tokens.get(next + 1).is_some_and(Token::is_word) {
            next += 2;
        } else if is(next, "[") {
            next = close(
                tokens
                    .get(..(next + MAX_LEN).min(tokens.len()))
                    .unwrap_or_default(),
                next,
            ) + 1;
        } else {
            break;
        }
        has_member = true;
    }
    // `a.b, c = …` and `a.b += …` set it, too.
    let operator = ["+", "-", "|", "&", "*"].iter().any(|mark| is(next, mark)) && is(next + 1, "=");
    let equals = if operator { next + 1 } else { next };
    has_member && is(equals, "=") && !is(equals + 1, "=") && !is(equals + 1, ">")
}

/// Whether what stands at `at` is the first argument of a function that changes it.
pub(super) fn changes(tokens: &[Token<'_>], at: usize) -> bool {
    let Some(open) = at.checked_sub(1).filter(|open| tokens[*open].is("(")) else {
        return false;
    };
    let Some(function) = open
        .checked_sub(1)
        .and_then(|function| tokens.get(function))
    else {
        return false;
    };
    let ends = tokens
        .get(at + 1)
        .is_none_or(|next| [",", ".", ")", "("].iter().any(|mark| next.is(mark)));
    ends && CHANGES.iter().any(|word| function.is(word))
}

/// Go: `os` by another name, calls of the system, names that the linker gives.
fn go(
    source: &[u8],
    masked: &Masked,
    tokens: &[Token<'_>],
    role: Role,
    found: &mut Vec<Detection>,
) {
    let is = |index: usize, word: &str| tokens.get(index).is_some_and(|token| token.is(word));
    let mut add =
        |what: &str| found.push(Detection::new(Tampering::Exit, role.exit_weight(), what));
    for range in &masked.literals {
        let name = source
            .get(range.start + 1..range.end.saturating_sub(1))
            .unwrap_or_default();
        if !matches!(name, b"os" | b"syscall" | b"C" | b"golang.org/x/sys/unix") {
            continue;
        }
        let from = source[..range.start]
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        let before =
            String::from_utf8_lossy(masked.open.get(from..range.start).unwrap_or_default());
        let words: Vec<&str> = before.split_whitespace().collect();
        match words.as_slice() {
            ["import"] if name == b"C" => add("import \"C\""),
            [other] | ["import", other]
                if !matches!(*other, "import" | "_")
                    && name != b"C"
                    && (*other == "."
                        || other.chars().all(|c| c.is_alphanumeric() || c == '_')) =>
            {
                add(&format!(
                    "another name for {}",
                    String::from_utf8_lossy(name)
                ));
            }
            _ => {}
        }
    }
    for at in 0..tokens.len() {
        if is(at, "syscall") && is(at + 1, ".") && (is(at + 2, "Exec") || is(at + 2, "RawSyscall"))
        {
            add("syscall.Exec");
        } else if is(at, "SYS_EXIT") || is(at, "SYS_EXIT_GROUP") {
            add("SYS_EXIT");
        } else if is(at, "C") && is(at + 1, ".") && C_ENDS.iter().any(|end| is(at + 2, end)) {
            add("C.exit");
        } else if is(at, ".") && is(at + 1, "Exit") && at > 0 && !is(at - 1, "os") {
            let is_known = is(at - 1, "syscall") || is(at - 1, "unix");
            if !is_known && is(at + 2, "(") && status(tokens, at + 1) == Status::Success {
                add(".Exit");
            }
        }
    }
    let linked = source
        .split(|byte| *byte == b'\n')
        .filter(|line| line.starts_with(b"//go:linkname "));
    for _ in linked {
        found.push(Detection::new(
            Tampering::HiddenName,
            Confidence::Certain,
            "go:linkname",
        ));
    }
}

/// Whether the name at `at` follows its type: it is declared there, and not used.
pub(super) fn is_declared(tokens: &[Token<'_>], at: usize) -> bool {
    at.checked_sub(1)
        .and_then(|before| tokens.get(before))
        .is_some_and(|before| {
            before.is_word() && !["return", "else", "do"].iter().any(|word| before.is(word))
        })
}

/// C: ends by whatever call, and macros in the place of words with a meaning.
fn c(tokens: &[Token<'_>], role: Role, found: &mut Vec<Detection>) {
    let is = |index: usize, word: &str| tokens.get(index).is_some_and(|token| token.is(word));
    for at in 0..tokens.len() {
        if is(at, "define") {
            // A line that goes on in the next one ends in a backslash.
            let mut name = at + 1;
            while is(name, "\\") {
                name += 1;
            }
            if let Some(word) = C_WORDS.iter().find(|word| is(name, word)) {
                found.push(Detection::new(
                    Tampering::Shadow,
                    Confidence::Certain,
                    format!("#define {word}"),
                ));
            }
            continue;
        }
        let Some(word) = C_ENDS.iter().find(|word| is(at, word)) else {
            continue;
        };
        // A declaration, a member, a call that the table sees.
        let before = at.checked_sub(1).and_then(|before| tokens.get(before));
        let is_member =
            before.is_some_and(|before| before.is(".") || before.is(">") || before.is("define"));
        let is_listed =
            matches!(*word, "exit" | "_exit" | "_Exit" | "quick_exit") && is(at + 1, "(");
        if is_declared(tokens, at) || is_member || is_listed {
            continue;
        }
        found.push(Detection::new(
            Tampering::Exit,
            role.exit_weight(),
            (*word).to_owned(),
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::super::detections;
    use super::*;
    use Language::{C, Go, Python, Rust, Script};

    fn certain(language: Language, role: Role, source: &str) -> Vec<Tampering> {
        let sights = detections(language, role, source.as_bytes()).into_iter();
        sights
            .filter(|detection| detection.weight == Confidence::Certain)
            .map(|detection| detection.trick)
            .collect()
    }

    #[test]
    fn process_exit_is_detected_in_each_form() {
        for (language, source) in [
            (Python, "def f():\n    sys.exit(0)\n"),
            (Python, "def f():\n    sys.exit()\n"),
            (Python, "def f():\n    sys.exit(256)\n"),
            (Python, "def f():\n    sys.exit(\"a\" and 0)\n"),
            (Python, "def f():\n    exit(status)\n"),
            (Python, "def f():\n    builtins.exit(0)\n"),
            (Python, "def f():\n    raise SystemExit\n"),
            (Python, "e = SystemExit\n"),
            (
                Python,
                "def f():\n    (_ for _ in ()).throw(SystemExit(0))\n",
            ),
            (Python, "def f():\n    return f\"{os._exit(0)}\"\n"),
            (
                Python,
                "def f():\n    return f\"\"\"\n{sys.exit(0)}\"\"\"\n",
            ),
            (
                Python,
                "def f():\n    return f\"{d[\"it's\"]}\"; os._exit(0)\n",
            ),
            (Python, "o = os\ndef f():\n    o._exit(0)\n"),
            (Python, "s = sys\ndef f():\n    s.exit()\n"),
            (
                Python,
                "from os import (\n    path,\n    _exit as leave,\n)\n",
            ),
            (
                Python,
                "from sys import exit as leave\ndef f():\n    leave(0)\n",
            ),
            (Python, "__import__(\"os\")._exit(0)\n"),
            (Python, "getattr(os, \"_exit\")(0)\n"),
            (Python, "getattr(os, \"_ex\" \"it\")(0)\n"),
            (Python, "os.__dict__[\"\\x5fexit\"](0)\n"),
            (Python, "exec(\"import os; os._exit(0)\")\n"),
            (Python, "def f():\n    os.execv(\"/bin/true\", [])\n"),
            (Python, "from os import execv\n"),
            (Python, "sys.excepthook = g\n"),
            (Python, "atexit.register(g)\n"),
            (Python, "lib = ctypes.CDLL(None)\n"),
            (Python, "if __name__ != \"__main__\":\n    os._exit(0)\n"),
            (Python, "if __name__:\n    sys.exit(0)\n"),
            (
                Python,
                "if __name__ == \"__main__\" or True:\n    sys.exit(0)\n",
            ),
            (
                Python,
                "__name__ = \"__main__\"\nif __name__ == \"__main__\":\n    os._exit(0)\n",
            ),
            (Script, "const p = process; p.exit(code);"),
            (Script, "p.exit(0);"),
            (Script, "process?.[\"exit\"](0);"),
            (Script, "require(\"process\")[\"exit\"](0);"),
            (Script, "process[\"\\x65xit\"](0);"),
            (Script, "Reflect.get(process, \"exit\")(0);"),
            (Script, "new Function(\"process.exit(0)\")();"),
            (Script, "process.on(\"exit\", f);"),
            (Script, "process.once('uncaughtException', () => {});"),
            (Script, "import p from \"node:process\"; p.exit();"),
            (Script, "if (x) /\"/.test(\"a\"); process.exit(0); \"/\";"),
            (Script, "x++ /2; process.exit(0); 1/1;"),
            (Script, "const a = {} /2; process.exit(0); 1/1;"),
            (Go, "package a\nimport o \"os\"\n"),
            (Go, "package a\nimport (\n\t\"fmt\"\n\t. \"os\"\n)\n"),
            (Go, "package a\nfunc f() { o.Exit(0) }\n"),
            (
                Go,
                "package a\nfunc f() { syscall.Exec(\"/bin/true\", nil, nil) }\n",
            ),
            (
                Go,
                "package a\nfunc f() { syscall.Syscall(syscall.SYS_EXIT_GROUP, 0, 0, 0) }\n",
            ),
            (Go, "package a\nfunc f() { C.exit(0) }\n"),
            (C, "int f(void) { exit(0); }\n"),
            (C, "int f(void) { exit(256); }\n"),
            (C, "void (*f)(int) = exit;\n"),
            (C, "int f(void) { return execl(\"/bin/true\", 0); }\n"),
            (C, "int f(void) { return syscall(231, 0); }\n"),
            (
                Rust,
                "use std::os::unix::process::CommandExt;\nfn f() { Command::new(\"true\").exec(); }\n",
            ),
            (Rust, "extern \"C\" { fn syscall(n: i64, ...) -> i64; }\n"),
        ] {
            let found = certain(language, Role::Source, source);
            assert!(found.contains(&Tampering::Exit), "{source}: {found:?}");
        }
    }

    #[test]
    fn names_in_other_letters_and_encodings_are_refused() {
        for (language, source) in [
            (Python, "def f():\n    os._\u{1d452}xit(0)\n"),
            (Python, "def f():\n    os.\u{ff45}xecutable\n"),
            (Python, "# coding: unicode_escape\n"),
            (Python, "#!/usr/bin/python\n# -*- coding: utf-7 -*-\n"),
            (Script, "process.\\u0065xit(0);"),
            (
                Go,
                "package a\n//go:linkname leave os.Exit\nfunc leave(int)\n",
            ),
        ] {
            let found = certain(language, Role::Source, source);
            assert!(
                found.contains(&Tampering::HiddenName),
                "{source}: {found:?}"
            );
        }
    }

    #[test]
    fn the_runner_is_not_rebound() {
        for (language, source) in [
            (
                Python,
                "unittest.TestResult.wasSuccessful = lambda self: True\n",
            ),
            (
                Python,
                "from unittest import (\n    TestResult as R,\n)\nR.addFailure = f\n",
            ),
            (Python, "import unittest.case as c\nc.TestCase.run = f\n"),
            (Python, "import _pytest.python\n"),
            (Python, "doctest.OutputChecker.check_output = f\n"),
            (Python, "setattr(unittest.TestResult, name, f)\n"),
            (Python, "vars(unittest)[name] = f\n"),
            (Python, "x = f\"{setattr(unittest.TestCase, n, g)}\"\n"),
            (Script, "require(\"node:assert\").strictEqual = () => {};"),
            (
                Script,
                "Object.assign(require(\"node:assert\"), { strictEqual() {} });",
            ),
            (Script, "const a = require('assert'); a[\"ok\"] = f;"),
            (Script, "import * as t from \"node:test\"; t.test = f;"),
            (C, "#define NDEBUG 1\n"),
            (C, "# define assert(x)\n"),
            (C, "#define if(x) if (0)\n"),
            (C, "#define \\\n strcmp(a, b) 0\n"),
        ] {
            let found = certain(language, Role::Source, source);
            assert!(found.contains(&Tampering::Shadow), "{source}: {found:?}");
        }
    }

    #[test]
    fn honest_sources_are_left_alone() {
        for (language, source) in [
            (Python, "def f():\n    sys.exit(\"install it first\")\n"),
            (Python, "sys.exit(f\"no {name}\")\nsys.exit(1)\n"),
            (
                Python,
                "def f():\n    raise SystemExit(\"no: %s\" % name)\n",
            ),
            (
                Python,
                "try:\n    f()\nexcept (KeyboardInterrupt, SystemExit):\n    raise\n",
            ),
            (Python, "if __name__ == '__main__':\n    sys.exit(main())\n"),
            (Python, "if __name__ == \"__main__\": sys.exit(main())\n"),
            (
                Python,
                "# -*- coding: utf-8 -*-\n\u{b5}m = 1\nna\u{ef}ve = 2\n",
            ),
            (
                Python,
                "commands = {\"exit\": leave, \"quit\": leave}\nstack.exit()\nx = f\"{a!r:>{w}} {{b}}\"\n",
            ),
            (
                Python,
                "import unittest\nclass A(unittest.TestCase):\n    x = 1\nself.unittest.a = 1\n",
            ),
            (
                Script,
                "child.on(\"exit\", f); server.on('error', g); const { env } = process;",
            ),
            (
                Script,
                "const s = \"exit\"; const words = [\"exit\", \"quit\"]; a = b / c / d;",
            ),
            (
                Script,
                "const assert = require(\"assert\"); assert.equal(a, b); const re = /\\u0041/;",
            ),
            (Script, "const p = process.env; room.exit(door);"),
            (
                Go,
                "package a\nimport (\n\t\"fmt\"\n\t\"os\"\n)\nfunc f() { os.Exit(1); log.Exit(err) }\n",
            ),
            (
                C,
                "#define MAX 3\nint f(void) { exit(EXIT_FAILURE); exit(1); p->exit = 1; }\nvoid exit(int);\n",
            ),
            (Rust, "fn f() { diesel(a).exec(b); }\n"),
        ] {
            assert_eq!(certain(language, Role::Source, source), [], "{source}");
        }
    }

    #[test]
    fn code_only_skipped_in_tests_is_uncertain() {
        for source in [
            "if (process.env.NODE_ENV !== 'test') {\n  app.listen(port, () => { log(`on ${port}`); });\n}\n",
            "if (process.env.NODE_ENV != \"test\") app.use(morgan('dev'));\n",
            "if (process.env.NODE_ENV !== 'test') console.log(a)\nconst b = 1;\n",
            "if ('test' !== process.env.NODE_ENV) { const s = app.listen(1); }\n",
            "if (process.env['NODE_ENV'] != `test`) { app.listen(1); }\n",
        ] {
            assert_eq!(certain(Script, Role::Source, source), [], "{source}");
            let seen = detections(Script, Role::Source, source.as_bytes());
            assert!(
                seen.iter().any(|sight| sight.trick == Tampering::TestAware),
                "{source}"
            );
        }
        for source in [
            "if (process.env.NODE_ENV === 'test') { log(); }\n",
            "if (process.env.NODE_ENV !== 'test') { return real(); }\nreturn 3;\n",
            "const t = process.env['NODE_ENV'] != `test`; if (t) { real(); }\n",
            "const t = 'test' === process.env[\"NODE_ENV\"];\n",
            "if (process.env.NODE_ENV !== 'test') { real(); } else { fake(); }\n",
            "if (process.env.NODE_ENV !== 'test') real();\nelse fake();\n",
            "let a = 3;\nif (process.env.NODE_ENV !== 'test') a = real();\n",
            "const a = process.env.NODE_ENV !== 'test' ? real() : 3;\n",
            "if (!(process.env.NODE_ENV !== 'test')) { fake(); }\n",
            "if (process.env.NODE_ENV !== 'test') throw new Error();\n",
        ] {
            assert_eq!(
                certain(Script, Role::Source, source),
                [Tampering::TestAware],
                "{source}"
            );
        }
    }

    #[test]
    fn tool_may_exit_only_in_its_main() {
        for (source, count) in [
            ("def total():\n    sys.exit(0)\n", 1),
            ("os._exit(0)\n", 1),
            ("def main():\n    sys.exit(0)\n", 0),
            ("if __name__ == \"__main__\":\n    sys.exit(main())\n", 0),
            ("print(\"3 passed in 0.1s\")\n", 0),
        ] {
            assert_eq!(certain(Python, Role::Tool, source).len(), count, "{source}");
        }
    }

    #[test]
    fn role_is_decided_by_old_content() {
        let role = |path: &str, old: Option<&str>| {
            Role::new(Python, &path.parse().unwrap(), old.map(str::as_bytes))
        };
        assert_eq!(role("src/total.py", None), Role::Source);
        assert_eq!(role("src/total.py", Some("x = 1\n")), Role::Source);
        assert_eq!(
            role("src/total.py", Some("#!/usr/bin/env python3\n")),
            Role::Program
        );
        assert_eq!(role("src/cli/total.py", None), Role::Tool);
        assert_eq!(role("src/__main__.py", None), Role::Program);
        assert_eq!(
            role("tests/test_a.py", Some("#!/usr/bin/env python3\n")),
            Role::Test
        );
    }
}
