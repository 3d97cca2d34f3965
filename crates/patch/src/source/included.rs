//! What a text has a compiler, an assembler or a loader read from a file, by the path that it names.
//!
//! `include_str!("/etc/passwd")` puts a file of whoever builds into what is built. The gates do not notice: the sandbox hides
//! the file, or has one of its own. So a path that leaves the repository is seen in the text.
//!
//! What always holds: a path is judged by its text alone, from the place where its file lies; links are not known here. The reading is
//! linear in the text.

use std::collections::BTreeMap;
use std::ops::Range;

use crucible_model::RepoPath;

use super::mask::read;
use super::token::{Token, tokens};
use super::{Language, contains};

/// A file that a text has read, from a place that is not the repository.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Included {
    pub(crate) reach: Reach,
    /// The construct and the path, as they are written.
    pub(crate) what: String,
}

/// Where an included file lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reach {
    /// Outside of the repository, or among git's own files.
    Outside,
    /// Only the build knows.
    Unknown,
}

/// How many words an argument may have.
const MOST_WORDS: usize = 64;
/// How much of a path is told.
const MOST_TOLD: usize = 120;
/// Directories of the machine in which no sources lie.
const SYSTEM: [&str; 10] = ["Users", "boot", "dev", "etc", "home", "private", "proc", "root", "sys", "var"];
/// Endings of what the preprocessor of C includes.
const C_SOURCES: [&str; 12] =
    [".c", ".cc", ".cpp", ".cxx", ".def", ".h", ".hh", ".hpp", ".hxx", ".inc", ".inl", ".ipp"];

/// Every file that the text at `path` has read from outside, as often as it does.
pub(crate) fn included(path: &RepoPath, source: &[u8]) -> Vec<Included> {
    let mut found = Found { depth: path.segments().count() - 1, path, list: Vec::new() };
    match Language::of(path) {
        Some(Language::Rust) if ["include", "path", "folder", "asm"].iter().any(|word| has(source, word)) => {
            rust(source, &mut found);
        }
        Some(Language::C)
            // A word may go on in the next line.
            if ["include", "embed", "import", "incbin", "\\\n"].iter().any(|word| has(source, word)) =>
        {
            c(source, &mut found);
        }
        Some(Language::Script) if ["require", "import", "from"].iter().any(|word| has(source, word)) => {
            script(source, &mut found);
        }
        Some(Language::Go) if has(source, "go:embed") || has(source, "\"C\"") => go(source, &mut found),
        Some(Language::Python) if PYTHON.iter().any(|word| has(source, word)) => python(source, &mut found),
        Some(_) => {}
        None => other(path, source, &mut found),
    }
    found.list
}

fn has(source: &[u8], word: &str) -> bool {
    contains(source, word.as_bytes())
}

struct Found<'a> {
    path: &'a RepoPath,
    /// How many directories the file lies in.
    depth: usize,
    list: Vec<Included>,
}

impl Found<'_> {
    fn push(&mut self, reach: Reach, construct: &str, target: &str) {
        let target: String = target.chars().take(MOST_TOLD).collect();
        self.list.push(Included { reach, what: format!("{construct} of {target:?}") });
    }

    /// Judges a path that is written from the place of the file.
    fn path(&mut self, construct: &str, target: &str) {
        if leaves(target, self.depth) {
            self.push(Reach::Outside, construct, target);
        }
    }

    /// Judges a path whose root may be that of a site or of a bundle: absolute ones count where they name a place of the machine.
    fn path_of_site(&mut self, construct: &str, target: &str) {
        let is_rooted = target.starts_with('/') && !target.starts_with("//");
        let first = target.trim_start_matches('/').split('/').next().unwrap_or_default();
        if is_rooted && !SYSTEM.contains(&first) {
            return;
        }
        if !target.starts_with("//") {
            self.path(construct, target);
        }
    }
}

/// Whether a path leaves the repository from a directory so deep in it, or comes by git's own files.
fn leaves(target: &str, depth: usize) -> bool {
    let target = target.strip_prefix("file://").unwrap_or(target);
    let is_drive =
        matches!(target.as_bytes(), [drive, b':', b'/' | b'\\', ..] if drive.is_ascii_alphabetic());
    if target.starts_with(['/', '\\']) || is_drive {
        return true;
    }
    let mut depth = depth;
    for segment in target.split(['/', '\\']) {
        match segment {
            "" | "." => {}
            ".." if depth == 0 => return true,
            ".." => depth -= 1,
            _ if segment.eq_ignore_ascii_case(".git") => return true,
            _ => depth += 1,
        }
    }
    false
}

/// A word, a mark or a literal.
#[derive(Debug, Clone)]
struct Item<'a> {
    text: &'a [u8],
    at: usize,
    is_literal: bool,
}

impl Item<'_> {
    fn is(&self, word: &str) -> bool {
        !self.is_literal && self.text == word.as_bytes()
    }

    /// What a literal says.
    fn value(&self) -> Option<String> {
        self.is_literal.then(|| value(self.text))
    }
}

/// The words and literals of a text, in order.
fn items<'a>(source: &'a [u8], tokens: &[Token<'a>], literals: &[Range<usize>]) -> Vec<Item<'a>> {
    let words =
        tokens.iter().map(|token| Item { text: token.text, at: token.range.start, is_literal: false });
    let literals = literals.iter().filter_map(|range| {
        Some(Item { text: source.get(range.clone())?, at: range.start, is_literal: true })
    });
    let mut all: Vec<Item<'a>> = words.chain(literals).collect();
    all.sort_by_key(|item| item.at);
    all
}

/// What the text of a literal stands for: without prefix and quotes, and with its escapes read.
fn value(literal: &[u8]) -> String {
    let is_quote = |byte: &u8| matches!(byte, b'"' | b'\'' | b'`');
    let Some(open) = literal.iter().position(is_quote) else { return String::new() };
    let is_raw = literal[..open].iter().any(|byte| matches!(byte, b'r' | b'R'));
    let quote = literal[open];
    let inner = literal.get(open..).unwrap_or_default();
    let from = inner.iter().position(|byte| *byte != quote).unwrap_or(inner.len());
    let inner = &inner[from..];
    let hashes = inner.iter().rev().take_while(|byte| **byte == b'#').count();
    let inner = &inner[..inner.len() - if is_raw { hashes } else { 0 }];
    // As many as opened it: a quote before them is one that the text holds.
    let closing = inner.iter().rev().take(from).take_while(|byte| **byte == quote).count();
    let text = String::from_utf8_lossy(&inner[..inner.len() - closing]);
    if is_raw { text.into_owned() } else { unescaped(&text) }
}

/// A text with its escapes read, in the notations that languages share.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let Some(kind) = rest.chars().next() else { return out };
        let digits = |from: usize, most: usize, radix: u32| -> Option<(char, usize)> {
            let text = rest.get(from..)?;
            let count = text.chars().take(most).take_while(|digit| digit.is_digit(radix)).count();
            let number = u32::from_str_radix(text.get(..count)?, radix).ok()?;
            Some((char::from_u32(number)?, from + count))
        };
        let read = match kind {
            'x' => digits(1, 2, 16),
            'u' if rest.starts_with("u{") => digits(2, 6, 16).map(|(read, end)| (read, end + 1)),
            'u' => digits(1, 4, 16),
            '0'..='7' => digits(0, 3, 8),
            _ => None,
        };
        match read {
            Some((read, end)) => {
                out.push(read);
                rest = rest.get(end..).unwrap_or_default();
            }
            // A line that goes on in the next one.
            None if kind == '\n' => rest = rest[1..].trim_start(),
            None => {
                out.push(kind);
                rest = &rest[kind.len_utf8()..];
            }
        }
    }
    out + rest
}

/// The items between the bracket at `open` and the one that closes it; nothing where they are too many.
fn inside<'i, 'a>(items: &'i [Item<'a>], open: usize) -> Option<&'i [Item<'a>]> {
    let mut depth = 0usize;
    for (at, item) in items.iter().enumerate().skip(open).take(MOST_WORDS) {
        match item.text {
            _ if item.is_literal => {}
            b"(" | b"[" | b"{" => depth += 1,
            b")" | b"]" | b"}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return items.get(open + 1..at);
        }
    }
    None
}

/// A part of a path that is put together when Rust is compiled.
enum Piece {
    Text(String),
    /// The directory of the package.
    Package,
    /// Where the build script writes.
    OutDir,
    /// A home or another place of the machine's user.
    Home,
    /// A name that holds no separator.
    Name,
    Unknown,
}

/// Variables that name a place of the user's.
const HOMES: [&str; 9] = [
    "CARGO_HOME",
    "HOME",
    "PATH",
    "PWD",
    "RUSTUP_HOME",
    "TMPDIR",
    "USERPROFILE",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
];
/// Directories in which a package of cargo has its sources.
const PACKAGE_PARTS: [&str; 4] = ["benches", "examples", "src", "tests"];

fn rust(source: &[u8], found: &mut Found<'_>) {
    let masked = read(Language::Rust, source);
    let closed = masked.closed();
    let tokens = tokens(&closed);
    let items = items(source, &tokens, &masked.literals);
    let mut braces = 0usize;
    for (at, item) in items.iter().enumerate() {
        let next = |offset: usize, word: &str| items.get(at + offset).is_some_and(|item| item.is(word));
        if item.is("{") {
            braces += 1;
        } else if item.is("}") {
            braces = braces.saturating_sub(1);
        } else if item.is("#") {
            let open = if next(1, "!") { at + 2 } else { at + 1 };
            if items.get(open).is_some_and(|item| item.is("["))
                && let Some(attribute) = inside(&items, open)
            {
                rust_attribute(attribute, braces, found);
            }
        } else if item.is_literal {
            assembled(item, "an assembler's directive", found);
        } else if item.text.starts_with(b"include") && next(1, "!") {
            let name = String::from_utf8_lossy(item.text).into_owned() + "!";
            let is_plain = ["include", "include_str", "include_bytes"].iter().any(|word| item.is(word));
            // Where such a macro is defined, nothing is read.
            let Some(_) = items.get(at + 2).filter(|open| ["(", "[", "{"].iter().any(|mark| open.is(mark)))
            else {
                continue;
            };
            match inside(&items, at + 2) {
                Some(argument) if is_plain => rust_path(&name, argument, found),
                Some(argument) => {
                    for literal in argument.iter().filter_map(Item::value) {
                        let rest = literal.strip_prefix("$CARGO_MANIFEST_DIR").map(str::to_owned);
                        match rest {
                            Some(rest) => rust_pieces(&name, &[Piece::Package, Piece::Text(rest)], found),
                            None => found.path(&name, &literal),
                        }
                    }
                }
                None if is_plain => found.push(Reach::Unknown, &name, "what is put together"),
                None => {}
            }
        } else if ["include_str", "include_bytes"].iter().any(|word| item.is(word)) && next(1, "as") {
            found.push(Reach::Outside, "another name", &String::from_utf8_lossy(item.text));
        }
    }
}

/// `#[path = "…"]`, also behind a condition, and the `#[folder = "…"]` of derived embeddings.
fn rust_attribute(attribute: &[Item<'_>], braces: usize, found: &mut Found<'_>) {
    let mut starts = vec![0];
    if attribute.first().is_some_and(|first| first.is("cfg_attr")) {
        starts.extend(attribute.iter().enumerate().filter(|(_, item)| item.is(",")).map(|(at, _)| at + 1));
    }
    for at in starts {
        let [name, equals, literal, ..] = attribute.get(at..).unwrap_or_default() else { continue };
        let (true, Some(target)) = (equals.is("="), literal.value()) else { continue };
        if name.is("path") && leaves(&target, found.depth + braces) {
            found.push(Reach::Outside, "#[path]", &target);
        } else if name.is("folder") {
            match target.strip_prefix("$CARGO_MANIFEST_DIR") {
                None if target.starts_with('/') => found.push(Reach::Outside, "#[folder]", &target),
                rest => {
                    let rest = rest.unwrap_or(&target).to_owned();
                    rust_pieces("#[folder]", &[Piece::Package, Piece::Text(rest)], found);
                }
            }
        }
    }
}

/// The path that a built-in macro takes.
fn rust_path(name: &str, argument: &[Item<'_>], found: &mut Found<'_>) {
    let mut pieces = Vec::new();
    rust_expression(argument, &mut pieces);
    rust_pieces(name, &pieces, found);
}

/// Takes a path apart: a literal, `env!`, or a `concat!` of them.
fn rust_expression(items: &[Item<'_>], pieces: &mut Vec<Piece>) {
    let mut at = 0;
    while let Some(item) = items.get(at) {
        at += 1;
        if let Some(text) = item.value() {
            pieces.push(Piece::Text(text));
            continue;
        }
        if item.is(",") || item.is(":") || item.is("std") || item.is("core") {
            continue;
        }
        let is_call = items.get(at).is_some_and(|next| next.is("!")) && items.get(at + 1).is_some();
        let argument = if is_call { inside(items, at + 1) } else { None };
        match argument {
            Some(argument) if item.is("concat") => rust_expression(argument, pieces),
            Some(argument) if item.is("env") => {
                let name = argument.first().and_then(Item::value).unwrap_or_default();
                pieces.push(match name.as_str() {
                    "CARGO_MANIFEST_DIR" => Piece::Package,
                    "OUT_DIR" => Piece::OutDir,
                    name if HOMES.contains(&name) => Piece::Home,
                    name if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_BIN_") => Piece::Name,
                    _ => Piece::Unknown,
                });
            }
            Some(_) | None => pieces.push(Piece::Unknown),
        }
        match argument {
            Some(argument) => at += argument.len() + 3,
            // What nobody reads here, said once.
            None => return,
        }
    }
}

fn rust_pieces(name: &str, pieces: &[Piece], found: &mut Found<'_>) {
    let mut told = String::new();
    let mut is_unknown = pieces.is_empty();
    for (at, piece) in pieces.iter().enumerate() {
        told.push_str(match piece {
            Piece::Text(text) => text,
            Piece::Package if at == 0 => "",
            Piece::OutDir if at == 0 => "",
            Piece::Name => "x",
            Piece::Home => return found.push(Reach::Outside, name, "a directory of the user's"),
            Piece::Package | Piece::OutDir | Piece::Unknown => {
                is_unknown = true;
                "x"
            }
        });
    }
    let relative = told.trim_start_matches('/');
    let reach = match pieces.first() {
        Some(Piece::Package) => {
            let directories: Vec<&str> = found.path.segments().rev().skip(1).collect();
            // A directory of sources may itself hold packages: the innermost one decides, and the outermost makes a doubt.
            let parts = directories.iter().enumerate().filter(|(_, name)| PACKAGE_PARTS.contains(name));
            let depths: Vec<usize> = parts.map(|(at, _)| directories.len() - at - 1).collect();
            let innermost = depths.first().copied().unwrap_or(found.depth);
            let outermost = depths.last().copied().unwrap_or(found.depth);
            match (leaves(relative, innermost), leaves(relative, outermost)) {
                (true, _) => Some(Reach::Outside),
                (false, true) => Some(Reach::Unknown),
                (false, false) => None,
            }
        }
        Some(Piece::OutDir) => leaves(relative, 0).then_some(Reach::Outside),
        _ => leaves(&told, found.depth).then_some(Reach::Outside),
    };
    match reach {
        Some(reach) => found.push(reach, name, &told),
        None if is_unknown => found.push(Reach::Unknown, name, "what is put together"),
        None => {}
    }
}

/// `.incbin` and `.include` in a text for an assembler.
fn assembled(literal: &Item<'_>, construct: &str, found: &mut Found<'_>) {
    if !has(literal.text, ".incbin") && !has(literal.text, ".include") {
        return;
    }
    let text = value(literal.text);
    for word in [".incbin", ".include"] {
        quoted_after(&text, word, &mut |target| found.path(construct, target));
    }
}

/// C: the directives of the preprocessor, with a name that they are given in the same file.
fn c(source: &[u8], found: &mut Found<'_>) {
    // The preprocessor joins lines before it reads anything.
    let joined = joined_lines(source);
    let masked = read(Language::C, &joined);
    let closed = masked.closed();
    let tokens = tokens(&closed);
    let items = items(&joined, &tokens, &masked.literals);
    let mut defined: BTreeMap<&[u8], String> = BTreeMap::new();
    for window in items.windows(3) {
        if window[0].is("define")
            && let Some(target) = named_file(&joined, window.get(2))
        {
            defined.insert(window[1].text, target);
        }
    }
    for (at, item) in items.iter().enumerate() {
        if item.is_literal {
            assembled(item, "an assembler's directive", found);
        }
        let is_directive = ["include", "include_next", "embed", "import"].iter().any(|word| item.is(word));
        let before = at.checked_sub(1).and_then(|before| items.get(before));
        // `#`, `%:` or `??=`.
        let is_marked = before.is_some_and(|before| ["#", ":", "="].iter().any(|mark| before.is(mark)));
        if !is_directive || !is_marked {
            continue;
        }
        let construct = format!("#{}", String::from_utf8_lossy(item.text));
        let Some(next) = items.get(at + 1) else { continue };
        let target = named_file(&joined, Some(next));
        let target = target.or_else(|| defined.get(next.text).cloned());
        match target {
            // The directories of the machine's headers are as deep as anything: two steps up lead to its root.
            Some(target) if !leaves(&target, found.depth) => {
                let mut segments = target.split('/').skip_while(|segment| matches!(*segment, ".." | "."));
                let is_up = target.starts_with("../..");
                let is_system = segments.next().is_some_and(|first| SYSTEM.contains(&first));
                let is_source = C_SOURCES.iter().any(|end| target.to_ascii_lowercase().ends_with(end));
                if is_up && is_system && !is_source {
                    found.push(Reach::Outside, &construct, &target);
                }
            }
            Some(target) => found.push(Reach::Outside, &construct, &target),
            None => {}
        }
    }
}

/// The file in `"…"` or `<…>` that begins at `item`.
fn named_file(source: &[u8], item: Option<&Item<'_>>) -> Option<String> {
    let item = item?;
    if item.is_literal {
        return item.value();
    }
    let rest = source.get(item.at + 1..).filter(|_| item.is("<"))?;
    let end = rest.iter().take(4096).position(|byte| matches!(byte, b'>' | b'\n'))?;
    rest.get(..end).map(|name| String::from_utf8_lossy(name).into_owned())
}

fn joined_lines(source: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(source.len());
    let mut at = 0;
    while let Some(byte) = source.get(at) {
        match source.get(at..) {
            Some([b'\\', b'\n', ..]) => at += 2,
            Some([b'\\', b'\r', b'\n', ..]) => at += 3,
            _ => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    out
}

/// JavaScript and TypeScript: modules by their path.
fn script(source: &[u8], found: &mut Found<'_>) {
    let masked = read(Language::Script, source);
    let closed = masked.closed();
    let tokens = tokens(&closed);
    let items = items(source, &tokens, &masked.literals);
    for (at, item) in items.iter().enumerate() {
        let next = |offset: usize, word: &str| items.get(at + offset).is_some_and(|item| item.is(word));
        let construct = if item.is("require") && next(1, "(") {
            Some(("require", 2))
        } else if item.is("require") && next(1, ".") && next(2, "resolve") && next(3, "(") {
            Some(("require.resolve", 4))
        } else if item.is("import") && next(1, "(") {
            Some(("import", 2))
        } else if item.is("import") || item.is("from") {
            Some(("import", 1))
        } else {
            None
        };
        let Some((construct, offset)) = construct else { continue };
        let Some(target) = items.get(at + offset).and_then(Item::value) else { continue };
        // A path that goes on behind its literal is put together when it runs.
        let is_whole = !["+", "."].iter().any(|mark| next(offset + 1, mark));
        if is_whole && (target.starts_with(['/', '.']) || target.starts_with("file:")) {
            found.path_of_site(construct, &target);
        }
    }
}

/// Go: files that are embedded, and what the preamble of cgo includes; both stand in comments.
fn go(source: &[u8], found: &mut Found<'_>) {
    let is_cgo = has(source, "\"C\"");
    for line in String::from_utf8_lossy(source).lines() {
        if let Some(patterns) = line.strip_prefix("//go:embed ") {
            for pattern in patterns.split_whitespace() {
                found.path("go:embed", pattern.trim_matches(['"', '`']));
            }
            continue;
        }
        let text = line.trim_start().trim_start_matches(['/', '*', ' ', '\t']);
        let Some(directive) = text.strip_prefix('#').filter(|_| is_cgo) else { continue };
        for word in ["include", "embed"] {
            if let Some(rest) = directive.trim_start().strip_prefix(word) {
                let name = rest.trim();
                let name = name.strip_prefix(['"', '<']).and_then(|name| name.split(['"', '>']).next());
                name.into_iter().for_each(|name| found.path(&format!("#{word}"), name));
            }
        }
    }
}

/// Functions of Python that run or load the file of a path.
const PYTHON: [&str; 6] =
    ["SourceFileLoader", "exec", "execfile", "load_source", "run_path", "spec_from_file_location"];

fn python(source: &[u8], found: &mut Found<'_>) {
    let masked = read(Language::Python, source);
    let tokens = tokens(&masked.open);
    let items = items(source, &tokens, &masked.literals);
    for (at, item) in items.iter().enumerate() {
        let Some(name) = PYTHON.iter().find(|name| item.is(name)) else { continue };
        if !items.get(at + 1).is_some_and(|next| next.is("(")) {
            continue;
        }
        let Some(arguments) = inside(&items, at + 1) else { continue };
        let opens =
            |offset: usize| offset >= 2 && arguments[offset - 1].is("(") && arguments[offset - 2].is("open");
        for (offset, argument) in arguments.iter().enumerate() {
            let Some(target) = argument.value() else { continue };
            if *name != "exec" || opens(offset) {
                found.path(name, &target);
            }
        }
    }
}

/// How a path is written behind its word.
#[derive(Clone, Copy, PartialEq)]
enum Written {
    /// In quotes.
    Quoted,
    /// Up to a blank or a closing bracket.
    Bare,
}

/// One construct of a language that is not read otherwise.
struct Construct {
    endings: &'static [&'static str],
    words: &'static [&'static str],
    written: Written,
    /// Whether a path from the root may mean that of a site.
    has_site: bool,
}

const fn construct(endings: &'static [&'static str], words: &'static [&'static str]) -> Construct {
    Construct { endings, words, written: Written::Quoted, has_site: false }
}

const fn of_site(
    endings: &'static [&'static str],
    words: &'static [&'static str],
    written: Written,
) -> Construct {
    Construct { endings, words, written, has_site: true }
}

const CONSTRUCTS: [Construct; 13] = [
    construct(&["asm", "inc", "s"], &[".incbin", "incbin", ".include", "#include", "%include"]),
    construct(&["zig"], &["@embedFile", "@import", "@cInclude"]),
    construct(&["nim"], &["staticRead", "slurp"]),
    construct(&["rb", "rake", "gemspec"], &["require_relative", "require", "load"]),
    construct(&["php"], &["include", "include_once", "require", "require_once"]),
    construct(&["pl", "pm"], &["do", "require"]),
    construct(&["lua"], &["dofile", "loadfile"]),
    construct(&["hs"], &["embedFile", "embedStringFile", "embedDir"]),
    construct(&["jl"], &["include"]),
    of_site(&["css", "less", "sass", "scss"], &["@import", "@use", "@forward"], Written::Quoted),
    of_site(&["rst"], &["include::", "literalinclude::", ":file:"], Written::Bare),
    of_site(&["adoc", "asciidoc"], &["include::"], Written::Bare),
    of_site(&["md", "markdown"], &["{{#include", "{{#rustdoc_include", "@include:"], Written::Bare),
];

/// Languages of which no more is known than the words before a path.
fn other(path: &RepoPath, source: &[u8], found: &mut Found<'_>) {
    let Some(ending) = path.extension().map(str::to_ascii_lowercase) else { return };
    for construct in CONSTRUCTS.iter().filter(|construct| construct.endings.contains(&ending.as_str())) {
        for word in construct.words.iter().filter(|word| has(source, word)) {
            let text = String::from_utf8_lossy(source);
            let mut judge = |target: &str| match construct.has_site {
                true => found.path_of_site(word, target),
                false => found.path(word, target),
            };
            match construct.written {
                Written::Quoted => quoted_after(&text, word, &mut judge),
                Written::Bare => bare_after(&text, word, &mut judge),
            }
        }
    }
}

/// Every place behind `word` where it stands for itself.
fn after<'t>(text: &'t str, word: &str) -> impl Iterator<Item = &'t str> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).filter_map(move |(at, word)| {
        let (before, rest) = (&text[..at], &text[at + word.len()..]);
        let is_begun = word.starts_with(is_part) && before.ends_with(is_part);
        let goes_on = word.ends_with(is_part) && rest.starts_with(is_part);
        (!is_begun && !goes_on).then_some(rest)
    })
}

/// Calls `judge` with each path in quotes behind `word`, with a bracket or the file's own directory between them at most.
fn quoted_after(text: &str, word: &str, judge: &mut dyn FnMut(&str)) {
    const OWN: [&str; 3] = ["__DIR__", "__dir__", "dirname(__FILE__)"];
    for rest in after(text, word) {
        let mut rest = rest.trim_start_matches(['(', '{', ' ', '\t', '[']);
        let mut is_own = false;
        if let Some(own) = OWN.iter().find_map(|own| rest.strip_prefix(own)) {
            rest = own.trim_start_matches([' ', '.', '+', '\t']);
            is_own = true;
        }
        let Some(quote) = rest.chars().next().filter(|quote| matches!(quote, '"' | '\'')) else { continue };
        let Some((target, _)) = rest[1..].split_once(quote).filter(|(target, _)| !target.contains('\n'))
        else {
            continue;
        };
        judge(if is_own { target.trim_start_matches('/') } else { target });
    }
}

/// Calls `judge` with each path behind `word` that stands without quotes.
fn bare_after(text: &str, word: &str, judge: &mut dyn FnMut(&str)) {
    for rest in after(text, word) {
        let line = rest.lines().next().unwrap_or_default().trim_start();
        let end = line.find([' ', '\t', '}', '[', ']', ':', '>']).unwrap_or(line.len());
        judge(&line[..end]);
    }
}

#[cfg(test)]
mod tests;
