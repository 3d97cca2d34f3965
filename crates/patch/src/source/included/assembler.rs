//! Assembly: `.incbin` and `.include`, in files of their own and in the texts that C and Rust hand to an assembler.
//!
//! A directive that stands for itself names its file in one plain text in quotes. Macros may also put a directive together from any
//! pieces. But its path needs quotes, and these stand somewhere in the text. So a text in quotes has to be plain wherever it
//! may become a path: it does not leave the repository, and no macro fills in its beginning. Directives whose texts are
//! only data are excepted.

use std::collections::BTreeSet;

use super::found::{Family, Found, leaves};
use super::item::{after, unescaped};
use super::names::Names;

/// Stands for a piece of a text that a macro fills in.
pub(super) const HOLE: char = '\u{1}';
/// How many pieces of one text are put together.
pub(super) const MAX_PIECES: usize = 512;
/// How many texts may stand in one another.
const MAX_NESTED: usize = 4;

/// Directives of GNU assemblers whose texts are data. No macro can take one of these names.
const DATA: [&str; 28] = [
    ".ascii",
    ".asciiz",
    ".asciz",
    ".attribute",
    ".base64",
    ".byte",
    ".dc.b",
    ".eabi_attribute",
    ".err",
    ".error",
    ".file",
    ".fill",
    ".ident",
    ".line",
    ".linefile",
    ".loc",
    ".popsection",
    ".print",
    ".pushsection",
    ".section",
    ".stabs",
    ".string",
    ".string16",
    ".string32",
    ".string8",
    ".title",
    ".type",
    ".warning",
];
/// The same of other assemblers and of the preprocessor.
const OTHER_DATA: [&str; 15] = [
    "#error", "#ident", "#line", "#pragma", "#warning", "%error", "%fatal", "%pragma", "%warning",
    "db", "dc.b", "dd", "dq", "dw", "title",
];
/// Endings of assembly in which a semicolon begins a comment.
const WITH_COMMENTS: [&str; 3] = ["a51", "asm", "nasm"];

const CONSTRUCT: &str = "an assembler's directive";

/// A literal that may or may not be meant for an assembler: only what plainly reads counts. Names between its pieces are holes.
pub(super) fn literal(text: &str, found: &mut Found<'_>) {
    for (_, rest) in directives(text) {
        match quoted(rest) {
            Some(target) if target.contains(HOLE) => found.report_unknown(CONSTRUCT, rest),
            Some(target) => path(target, found),
            None => {}
        }
    }
    for statement in statements(text, false).filter(|statement| statement.contains(HOLE)) {
        let (word, rest) = divided(statement);
        let is_hole = word.chars().all(|c| c == HOLE);
        let Some(target) = quoted(rest).filter(|_| word.contains(HOLE) && may_be_directive(&word))
        else {
            continue;
        };
        if names_place(target, found.depth) || climbs(target) || !is_hole && target.contains(HOLE) {
            found.report_unknown(CONSTRUCT, statement);
        }
    }
}

/// Whether a word with holes may stand for a directive that reads.
fn may_be_directive(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    [".incbin", ".include"].iter().any(|directive| {
        let mut rest = *directive;
        let mut pieces = word.split(HOLE);
        let last = pieces.next_back().unwrap_or_default();
        let mut is_first = true;
        for piece in pieces {
            let Some(at) = rest.find(piece).filter(|at| !is_first || *at == 0) else {
                return false;
            };
            rest = &rest[at + piece.len()..];
            is_first = false;
        }
        rest.ends_with(last)
    })
}

/// Judges the path of a directive. It counts from the directory in which the assembler runs, so one that climbs may lead anywhere.
pub(super) fn path(target: &str, found: &mut Found<'_>) {
    if leaves(target, found.depth) {
        found.outside(CONSTRUCT, target);
    } else if climbs(target) {
        found.report_unknown(CONSTRUCT, target);
    }
}

fn climbs(target: &str) -> bool {
    target.split(['/', '\\']).any(|segment| segment == "..")
}

/// The directives that read, wherever they stand, and what follows each: which text is a comment differs from one assembler to the other.
fn directives(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let begins = move |at: usize| {
        ["incbin", ".incbin", ".include"].into_iter().find(|word| {
            let behind = at + word.len();
            text.as_bytes()
                .get(at..behind)
                .is_some_and(|bytes| bytes.eq_ignore_ascii_case(word.as_bytes()))
                && text
                    .get(behind..)
                    .is_some_and(|rest| !rest.starts_with(is_part))
        })
    };
    let starts = text.bytes().enumerate();
    let starts = starts.filter(|(_, byte)| matches!(byte, b'.' | b'i' | b'I'));
    starts.filter_map(move |(at, _)| {
        let word = begins(at)?;
        let is_behind_mark = at > 0 && text.as_bytes()[at - 1] == b'.';
        if word == "incbin" && (is_behind_mark || text[..at].ends_with(is_part)) {
            return None;
        }
        let rest = behind_comments(&text[at + word.len()..], &[' ', '\t']);
        Some((&text[at..at + word.len()], rest))
    })
}

/// A text that an assembler reads, with a [`HOLE`] for each piece that is not written there.
pub(super) fn template(text: &str, names: &Names, found: &mut Found<'_>) {
    for (word, rest) in directives(text) {
        if let Some(target) = quoted(rest).filter(|target| !target.contains(is_filled)) {
            path(target, found);
            if word.eq_ignore_ascii_case(".include") {
                found.source(Family::Assembly, CONSTRUCT, target);
            }
        }
    }
    let parameters = Parameters::new(text, found.family);
    let is_commented = found
        .path
        .extension()
        .is_some_and(|ending| WITH_COMMENTS.contains(&ending.to_ascii_lowercase().as_str()));
    for statement in statements(text, is_commented) {
        judge(statement, names, &parameters, found);
    }
}

fn judge(statement: &str, names: &Names, parameters: &Parameters<'_>, found: &mut Found<'_>) {
    let (word, rest) = divided(statement);
    let name = directive(&word);
    if matches!(
        name.as_str(),
        "incbin" | "include" | "include_binary" | "incdir"
    ) {
        // `# include` in prose and the preprocessor's own are read elsewhere.
        if word.starts_with('#') {
            return;
        }
        let is_read = name == "incbin" || word.starts_with('.') && name == "include";
        return match quoted(rest) {
            Some(target) if !target.contains(is_filled) && ends_there(rest, target) => {
                if !is_read {
                    path(target, found);
                }
            }
            Some(target) if leaves(target, found.depth) => {
                if !is_read || target.contains(is_filled) {
                    found.outside(CONSTRUCT, target);
                }
            }
            None if !word.starts_with('.') && !rest.is_empty() && !rest.contains(is_filled) => {
                let target = rest.split([' ', '\t', ',', ';']).next().unwrap_or_default();
                path(target, found);
            }
            _ if rest.is_empty() => {}
            _ => found.report_unknown(CONSTRUCT, statement),
        };
    }
    if names_reader(rest) || names_reader(&word) || names.holds_directive(word.as_bytes()) {
        return found.report_unknown(CONSTRUCT, statement);
    }
    if word.chars().all(|c| c == HOLE)
        && !word.is_empty()
        && rest.chars().all(|c| c == HOLE || c.is_whitespace())
    {
        return found.report_unknown(CONSTRUCT, "a text of macros alone");
    }
    let is_computed = |word: &str| {
        word.contains(is_filled) || word.get(1..).is_some_and(|rest| rest.contains('%'))
    };
    if is_computed(&word) {
        let has_text = rest.contains(['"', '\'', '`']);
        if has_text || (word.starts_with('.') && rest.contains(is_filled)) {
            found.report_unknown(CONSTRUCT, statement);
        }
        return;
    }
    let mut texts = Vec::new();
    let is_closed = collect(rest, MAX_NESTED, &mut texts);
    // The preprocessor reads the name behind the dot.
    let is_named = names.values(word.trim_start_matches('.').as_bytes());
    if is_named.is_none() && is_data(&word) {
        texts.clear();
    }
    if let Some(target) = texts.iter().find(|text| names_place(text, found.depth)) {
        found.outside(CONSTRUCT, target);
    } else if let Some(text) = texts.iter().find(|text| parameters.may_complete(text)) {
        found.report_unknown(CONSTRUCT, text);
    } else if word.starts_with('.') && !is_closed {
        found.report_unknown(CONSTRUCT, "a text that goes on in the next line");
    }
}

fn is_data(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    DATA.contains(&word.as_str())
        || OTHER_DATA.contains(&word.as_str())
        || word.starts_with(".cfi_")
}

/// Collects the texts in quotes of a statement, and the texts in these. Returns whether the last one ends in its line.
fn collect(statement: &str, depth: usize, texts: &mut Vec<String>) -> bool {
    let mut rest = statement;
    let mut is_closed = true;
    while let Some(at) = rest.find(['"', '\'', '`']) {
        let quote = &rest[at..=at];
        rest = &rest[at + 1..];
        let mut is_escaped = false;
        let end = rest.find(|c: char| {
            let ends = !is_escaped && quote.starts_with(c);
            is_escaped = c == '\\' && !is_escaped;
            ends
        });
        let inner = &rest[..end.unwrap_or(rest.len())];
        // A character, or an apostrophe in prose.
        if quote == "'" && !(inner.starts_with('/') && inner.len() > 1 || climbs(inner)) {
            let next = rest.chars().nth(usize::from(rest.starts_with('\\')));
            rest = &rest[next.map_or(0, char::len_utf8)..];
            rest = rest.strip_prefix('\'').unwrap_or(rest);
            continue;
        }
        if depth > 0 && inner.contains('\\') {
            collect(&inner.replace("\\\"", "\""), depth - 1, texts);
        }
        texts.push(inner.to_owned());
        is_closed = end.is_some() || quote != "\"";
        rest = end.map_or("", |end| &rest[end + 1..]);
    }
    is_closed
}

/// What is filled in in a text.
struct Parameters<'a> {
    /// The parameters of its macros.
    names: BTreeSet<&'a str>,
    /// Whether a macro names the parameters of another one.
    is_computed: bool,
    /// Whether a compiler fills in operands.
    has_operands: bool,
}

impl<'a> Parameters<'a> {
    fn new(text: &'a str, family: Family) -> Self {
        let mut names = BTreeSet::new();
        let mut is_computed = false;
        let lines = text.split(['\n', '\r', ';']);
        for line in lines.filter(|line| line.contains(".macro") || line.contains(".irp")) {
            is_computed |= line.contains(is_filled);
            names.extend(line.split(|c: char| !c.is_alphanumeric() && c != '_'));
        }
        Self {
            names,
            is_computed,
            has_operands: family != Family::Assembly,
        }
    }

    /// Whether macros may make the path of a file outside of a text in quotes: it is rooted, climbs, holds quotes of its own, or its
    /// first word is filled in.
    fn may_complete(&self, text: &str) -> bool {
        let read = unescaped(text);
        // What follows a blank begins no path.
        let first = text.split(' ').next().unwrap_or_default();
        read.starts_with('/') && read.len() > 1
            || climbs(&read)
            || read == "."
            || read.ends_with("/.")
            || first.contains("\\\"")
            || first.contains(HOLE)
            || self.has_operands && first.contains(['%', '{'])
            || self.is_filled(first)
    }

    fn is_filled(&self, text: &str) -> bool {
        text.match_indices('\\').any(|(at, _)| {
            let rest = &text[at + 1..];
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
            let name = &rest[..end.unwrap_or(rest.len())];
            let is_mark = rest.starts_with(['(', '@']);
            is_mark || !name.is_empty() && (self.is_computed || self.names.contains(name))
        })
    }
}

/// Whether something is filled in here: by a macro of the compiler, or of the assembler itself.
fn is_filled(c: char) -> bool {
    matches!(c, HOLE | '\\' | '&')
}

/// Whether a text holds a directive that reads a file.
pub(super) fn has_directive(text: &str) -> bool {
    directives(text).next().is_some()
}

/// Whether a text reads a file, or holds a word that may be a path outside: what macros make of its pieces is not known.
pub(super) fn may_read(text: &str, depth: usize) -> bool {
    let words = text.split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`'));
    let mut words = words.filter(|word| !word.starts_with("//") && !word.starts_with("/*"));
    has_directive(text) || words.any(|word| names_place(word, depth))
}

/// Whether a text looks like the path of a file that leaves the repository.
pub(super) fn names_place(text: &str, depth: usize) -> bool {
    let is_path = (text.starts_with('/') && text.len() > 1) || text.starts_with("..");
    is_path && !text.contains([' ', '\n']) && leaves(text, depth)
}

/// The statements of a text, without comments that fill a line and without labels.
fn statements(text: &str, is_commented: bool) -> impl Iterator<Item = &str> {
    let lines = text.split(['\n', '\r']);
    lines.flat_map(move |line| {
        let line = behind_comments(line, &[' ', '\t', '\u{c}']);
        let is_comment = ["//", "@ ", "*", "!", "# ", "##"]
            .iter()
            .any(|mark| line.starts_with(mark));
        // These two begin a comment for some assemblers and none for others.
        let may_be_comment = is_commented && line.starts_with(';') || line.starts_with("/*");
        let is_comment = is_comment || may_be_comment && !has_directive(line);
        let line = if is_comment { "" } else { line };
        // A semicolon within quotes divides nothing; a quote behind an apostrophe is a character.
        let (mut is_quoted, mut is_escaped, mut last) = (false, false, ' ');
        line.split(move |c: char| {
            is_quoted ^= c == '"' && !is_escaped && (is_quoted || last != '\'');
            is_escaped = c == '\\' && !is_escaped;
            last = c;
            c == ';' && !is_quoted
        })
    })
}

/// A text without the blanks and comments that it begins with.
fn behind_comments<'a>(text: &'a str, blanks: &[char]) -> &'a str {
    let mut text = text.trim_start_matches(blanks);
    while let Some((_, behind)) = text
        .strip_prefix("/*")
        .and_then(|text| text.split_once("*/"))
    {
        text = behind.trim_start_matches(blanks);
    }
    text
}

/// The first word of a statement behind its labels, and the rest.
fn divided(statement: &str) -> (String, &str) {
    let mut rest = statement.trim();
    loop {
        let end = rest.find([' ', '\t', '"', '\'', '`']).unwrap_or(rest.len());
        let end = rest.find("/*").map_or(end, |comment| comment.min(end));
        let (word, after) = rest.split_at(end);
        let after = behind_comments(after, &[' ', '\t']);
        match word.rsplit_once(':') {
            // `label:.incbin`
            Some((_, word)) if !word.is_empty() => return (word.to_owned(), after),
            Some(_) if !after.is_empty() => rest = after,
            _ => return (word.to_owned(), after),
        }
    }
}

/// The name of a directive: in lower case, without its mark.
fn directive(word: &str) -> String {
    word.trim_start_matches(['.', '%', '#', '$', '{'])
        .to_ascii_lowercase()
}

/// Whether the directive is named where it does not stand for itself.
fn names_reader(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let code = lower
        .split("//")
        .next()
        .unwrap_or_default()
        .split("/*")
        .next()
        .unwrap_or_default();
    // A paste makes one word of two.
    let code = code.replace(" ## ", "").replace("##", "");
    after(&code, ".incbin").next().is_some()
}

/// The text in quotes that begins here.
fn quoted(rest: &str) -> Option<&str> {
    let quote = rest
        .chars()
        .next()
        .filter(|quote| matches!(quote, '"' | '\'' | '`' | '<'))?;
    let close = if quote == '<' { '>' } else { quote };
    rest[1..].split_once(close).map(|(target, _)| target)
}

/// Whether nothing but further values follows the text in quotes.
fn ends_there(rest: &str, target: &str) -> bool {
    let behind = rest
        .get(target.len() + 2..)
        .unwrap_or_default()
        .trim_start();
    behind.is_empty() || behind.starts_with([',', '#', '/', ';', '@', '!', '}'])
}
