//! Assembly: `.incbin` and `.include`, in files of their own and in the texts that C and Rust hand to an assembler.

use super::{Family, Found, Names, leaves};

/// Stands for a piece of a text that a macro fills in.
pub(super) const HOLE: char = '\u{1}';
/// How many pieces of one text are put together.
pub(super) const MOST_PIECES: usize = 512;

/// Directives and commands whose texts are no paths of what is read.
const TEXTS: [&str; 22] = [
    "ascii",
    "asciz",
    "byte",
    "db",
    "dc.b",
    "dw",
    "error",
    "file",
    "fill",
    "ident",
    "line",
    "loc",
    "print",
    "section",
    "string",
    "string8",
    "title",
    "type",
    "warning",
    "pushsection",
    "popsection",
    "pragma",
];

const CONSTRUCT: &str = "an assembler's directive";

/// A file of assembly.
pub(super) fn read(source: &[u8], names: &Names, found: &mut Found<'_>) {
    template(&String::from_utf8_lossy(source), names, found);
}

/// A literal that may or may not be meant for an assembler: only what plainly reads counts.
pub(super) fn literal(text: &str, found: &mut Found<'_>) {
    for (_, rest) in directives(text) {
        if let Some(target) = quoted(rest).filter(|target| leaves(target, found.depth)) {
            found.outside(CONSTRUCT, target);
        }
    }
}

/// Judges the path of a directive. It counts from the directory in which the assembler runs, so one that climbs may lead anywhere.
pub(super) fn path(target: &str, found: &mut Found<'_>) {
    if leaves(target, found.depth) {
        found.outside(CONSTRUCT, target);
    } else if target.split(['/', '\\']).any(|segment| segment == "..") {
        found.unknown(CONSTRUCT, target);
    }
}

/// The directives that read, wherever they stand, and what follows each: which text is a comment differs from one assembler to the other.
fn directives(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let begins = move |at: usize| {
        ["incbin", ".incbin", ".include"].into_iter().find(|word| {
            let behind = at + word.len();
            text.as_bytes()
                .get(at..behind)
                .is_some_and(|here| here.eq_ignore_ascii_case(word.as_bytes()))
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
        let rest = text[at + word.len()..].trim_start_matches([' ', '\t']);
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
    for statement in statements(text) {
        let (word, rest) = divided(statement);
        let name = directive(&word);
        let is_named = names.values(word.as_bytes()).is_some();
        if matches!(
            name.as_str(),
            "incbin" | "include" | "include_binary" | "incdir"
        ) {
            // `# include` in prose and the preprocessor's own are read elsewhere.
            if word.starts_with('#') {
                continue;
            }
            let is_read = name == "incbin" || word.starts_with('.') && name == "include";
            match quoted(rest) {
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
                _ => found.unknown(CONSTRUCT, statement),
            }
        } else if names_reader(rest)
            || names_reader(&word)
            || names.holds_directive(word.as_bytes())
        {
            found.unknown(CONSTRUCT, statement);
        } else if word.chars().all(|c| c == HOLE)
            && !word.is_empty()
            && rest.chars().all(|c| c == HOLE || c.is_whitespace())
        {
            found.unknown(CONSTRUCT, "a text of macros alone");
        } else if word.contains(is_filled) || word.get(1..).is_some_and(|rest| rest.contains('%')) {
            let has_text = rest.contains(['"', '\'', '`']);
            if has_text || (word.starts_with('.') && rest.contains(is_filled)) {
                found.unknown(CONSTRUCT, statement);
            }
        } else if (is_named || !TEXTS.contains(&name.as_str()))
            && let Some(target) = rest
                .split('"')
                .skip(1)
                .step_by(2)
                .find(|text| names_place(text, found.depth))
        {
            found.outside(CONSTRUCT, target);
        }
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
fn statements(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.split(['\n', '\r']);
    lines.flat_map(|line| {
        let line = behind_comments(line);
        let is_comment = ["//", "@ ", "*", "!", "# ", "##"]
            .iter()
            .any(|mark| line.starts_with(mark));
        // These two begin a comment for some assemblers and none for others.
        let may_be_comment = line.starts_with(';') || line.starts_with("/*");
        let is_comment = is_comment || may_be_comment && directives(line).next().is_none();
        let line = if is_comment { "" } else { line };
        // A semicolon within quotes divides nothing; a path that holds one is read as far as it.
        let mut quote = None;
        line.split(move |c: char| {
            match (quote, c) {
                (None, '"') => quote = Some(c),
                (Some(open), c) if c == open => quote = None,
                _ => {}
            }
            c == ';' && quote.is_none()
        })
    })
}

/// A line without the comments that it begins with.
fn behind_comments(line: &str) -> &str {
    let mut line = line.trim_start();
    while let Some((_, behind)) = line
        .strip_prefix("/*")
        .and_then(|line| line.split_once("*/"))
    {
        line = behind.trim_start();
    }
    line
}

/// The first word of a statement behind its labels, and the rest.
fn divided(statement: &str) -> (String, &str) {
    let mut rest = statement.trim();
    loop {
        let end = rest.find([' ', '\t', '"', '\'', '`']).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        match word.rsplit_once(':') {
            // `label:.incbin`
            Some((_, word)) if !word.is_empty() => return (word.to_owned(), after.trim_start()),
            Some(_) if !after.is_empty() => rest = after.trim_start(),
            _ => return (word.to_owned(), after.trim_start()),
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
    super::after(&code, ".incbin").next().is_some()
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
