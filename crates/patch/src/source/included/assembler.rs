//! Assembly: `.incbin` and `.include`, in files of their own and in the texts that C and Rust hand to an assembler.

use super::Found;
use super::has;
use super::leaves;

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

/// A file of assembly.
pub(super) fn read(source: &[u8], found: &mut Found<'_>) {
    template(
        &String::from_utf8_lossy(source),
        "an assembler's directive",
        found,
    );
}

/// A literal that may or may not be meant for an assembler: only what plainly reads counts.
pub(super) fn literal(text: &str, found: &mut Found<'_>) {
    if !has(text.as_bytes(), "incbin") && !has(text.as_bytes(), ".include") {
        return;
    }
    for statement in statements(text) {
        let (word, rest) = divided(statement);
        let is_reader =
            word.starts_with('.') && matches!(directive(&word).as_str(), "incbin" | "include");
        if let Some(target) = quoted(rest).filter(|_| is_reader) {
            found.path("an assembler's directive", target);
        }
    }
}

/// A text that an assembler reads, with a [`HOLE`] for each piece that is not written there.
pub(super) fn template(text: &str, construct: &str, found: &mut Found<'_>) {
    for statement in statements(text) {
        let (word, rest) = divided(statement);
        let name = directive(&word);
        let is_filled = |c: char| matches!(c, HOLE | '\\' | '&');
        if matches!(
            name.as_str(),
            "incbin" | "include" | "include_binary" | "incdir"
        ) {
            // `# include` in prose and the preprocessor's own are read elsewhere.
            if word.starts_with('#') {
                continue;
            }
            match quoted(rest) {
                Some(target) if !target.contains(is_filled) && ends_there(rest, target) => {
                    found.path(construct, target);
                }
                Some(target) if leaves(target, found.depth) => found.outside(construct, target),
                None if !word.starts_with('.') && !rest.is_empty() && !rest.contains(is_filled) => {
                    let target = rest.split([' ', '\t', ',', ';']).next().unwrap_or_default();
                    found.path(construct, target);
                }
                _ if rest.is_empty() => {}
                _ => found.unknown(construct, statement),
            }
        } else if names_reader(rest) || names_reader(&word) {
            found.unknown(construct, statement);
        } else if word.chars().all(|c| c == HOLE)
            && !word.is_empty()
            && rest.chars().all(|c| c == HOLE || c.is_whitespace())
        {
            found.unknown(construct, "a text of macros alone");
        } else if word.contains(is_filled) || word.get(1..).is_some_and(|rest| rest.contains('%')) {
            let has_text = rest.contains(['"', '\'', '`']);
            if has_text || (word.starts_with('.') && rest.contains(is_filled)) {
                found.unknown(construct, statement);
            }
        } else if !TEXTS.contains(&name.as_str())
            && let Some(target) = rest
                .split('"')
                .skip(1)
                .step_by(2)
                .find(|text| names_place(text, found.depth))
        {
            found.outside(construct, target);
        }
    }
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
        let line = line.trim_start();
        let is_comment = ["//", ";", "@ ", "/*", "*", "!", "# ", "##"]
            .iter()
            .any(|mark| line.starts_with(mark));
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
    super::after(code, ".incbin").next().is_some()
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
