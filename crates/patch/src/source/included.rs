//! What a text has a compiler, an assembler or a loader read from a file, by the path that it names.
//!
//! `include_str!("/etc/passwd")` puts a file of the machine into what is built there. The gates do not notice: the sandbox hides
//! the file, or has one of its own. So the text is searched for the constructs that read, and each of them has to name its file
//! in a plain form: one that shows without a compiler which file it is. A path that leaves the repository is one result, a path that
//! cannot be determined the other. The constructs of each language stand in one file here.
//!
//! What always holds: a path is judged by its text alone, from the place where its file lies; links are not known here. The reading is
//! linear in the text.

mod assembler;
mod c;
mod go;
mod manifest;
mod modules;
mod names;
mod others;
mod python;
mod rust;
mod script;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crucible_model::RepoPath;

use super::search::contains;
use super::token::Token;
use names::Names;

/// A file that a text has read, from a place that is not the repository or cannot be determined.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Included {
    pub(crate) reach: Reach,
    construct: String,
    /// The path or the expression, as it is written.
    target: String,
}

impl Included {
    /// The construct and the path, short enough to be shown.
    pub(crate) fn what(&self) -> String {
        let target: String = self.target.chars().take(MAX_SHOWN).collect();
        format!("{} of {target:?}", self.construct)
    }
}

/// Where an included file lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reach {
    /// Outside of the repository, or among git's own files.
    Outside,
    /// The path is not written in a form that is understood.
    Unknown,
}

/// How many files may include one another.
const MAX_NESTED: usize = 16;
/// How many words an argument may have.
const MAX_WORDS: usize = 256;
/// How much of a path is shown.
const MAX_SHOWN: usize = 120;
/// Directories of the machine in which no sources lie.
const SYSTEM: [&str; 10] = [
    "Users", "boot", "dev", "etc", "home", "private", "proc", "root", "sys", "var",
];

/// Further directories of the machine, which a text names where it is the path of a file.
const PLACES: [&str; 10] = [
    "Applications",
    "Library",
    "lib",
    "media",
    "mnt",
    "opt",
    "run",
    "srv",
    "tmp",
    "usr",
];

/// Words that macros of assemblers begin with.
const ASSEMBLER_MACROS: [&str; 4] = [".irp", ".macro", "%define", "%macro"];

/// Whether a text plainly is the path of a place of the machine, or one that climbs.
fn is_place(text: &str) -> bool {
    if text.contains([' ', '\n']) {
        return false;
    }
    let text = text.strip_prefix("file://").unwrap_or(text);
    let first = text.trim_start_matches('/').split('/').next();
    let is_known = first.is_some_and(|first| SYSTEM.contains(&first) || PLACES.contains(&first));
    let is_rooted = text.starts_with('/') && is_known;
    is_rooted || text.starts_with("~/") || text.starts_with("../") || text.starts_with("./../")
}

/// Which constructs a file may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Family {
    Rust,
    /// C, what descends from it, and what its preprocessor reads.
    C,
    /// Assembly, which the preprocessor of C may read first.
    Assembly,
    Script,
    Go,
    Python,
    /// Text for people or data: only the constructs that the table gives its ending.
    Data,
    /// Everything else.
    Other,
}

impl Family {
    fn from_path(path: &RepoPath) -> Self {
        Self::of_name(path.segments().next_back().unwrap_or_default())
    }

    fn of_name(name: &str) -> Self {
        let file = name.rsplit(['/', '\\']).next().unwrap_or_default();
        let ending = file
            .rsplit_once('.')
            .filter(|(stem, _)| !stem.is_empty())
            .map(|(_, ending)| ending);
        match ending.unwrap_or_default().to_ascii_lowercase().as_str() {
            "rs" => Self::Rust,
            "py" | "pyi" | "pyw" | "pyx" | "pxd" | "pxi" => Self::Python,
            "js" | "jsx" | "mjs" | "cjs" | "ts" | "tsx" | "mts" | "cts" => Self::Script,
            "go" => Self::Go,
            "c" | "h" | "cc" | "cp" | "cpp" | "cxx" | "c++" | "hh" | "hp" | "hpp" | "hxx"
            | "h++" | "inl" | "ipp" | "ixx" | "tpp" | "txx" | "tcc" | "tcl++" | "cppm" | "cxxm"
            | "c++m" | "ccm" | "mpp" | "m" | "mm" | "cu" | "cuh" | "cl" | "hip" | "metal"
            | "glsl" | "vert" | "frag" | "geom" | "comp" | "tesc" | "tese" | "hlsl" | "def"
            | "pch" | "y" | "yy" | "ypp" | "l" | "ll" | "lpp" | "re" | "idl" | "ino" | "i"
            | "ii" | "mi" | "xpm" | "xbm" | "swig" | "rc" | "dts" | "dtsi" | "lds" | "inc" => {
                Self::C
            }
            "s" | "sx" | "asm" | "nasm" | "a51" => Self::Assembly,
            "md" | "markdown" | "rst" | "adoc" | "asciidoc" | "txt" | "html" | "htm" | "xml"
            | "svg" | "json" | "yaml" | "yml" | "toml" | "lock" | "csv" | "tsv" | "ini" | "cfg"
            | "log" | "patch" | "diff" | "out" | "snap" | "po" | "css" | "less" | "sass"
            | "scss" | "tex" => Self::Data,
            _ => Self::Other,
        }
    }
}

/// Every file that each of these texts has read from outside or by a path that cannot be determined, as often as it does. A text that
/// another one includes is also read in the language of that one, whatever its own ending.
pub(crate) fn included<'a>(
    files: &[(&'a RepoPath, &'a [u8])],
) -> Vec<(&'a RepoPath, Vec<Included>)> {
    let texts: Vec<Cow<'_, [u8]>> = files
        .iter()
        .map(|(path, source)| with_plain_blanks(source, Family::from_path(path)))
        .collect();
    let files: Vec<(&RepoPath, &[u8])> = files
        .iter()
        .zip(&texts)
        .map(|((path, _), text)| (*path, &**text))
        .collect();
    let mut families: Vec<BTreeSet<Family>> = files
        .iter()
        .map(|(path, source)| {
            let mut families = BTreeSet::from([Family::from_path(path)]);
            // The ending says little: macros of an assembler do.
            if path.extension() == Some("inc") && has_any(source, &ASSEMBLER_MACROS) {
                families.insert(Family::Assembly);
            }
            families
        })
        .collect();
    let mut by_name: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, (path, _)) in files.iter().enumerate() {
        by_name.entry(path.file_name()).or_default().push(at);
    }
    let mut round = 0;
    loop {
        let each = || files.iter().zip(&families);
        let names = Names::from_files(
            each().flat_map(|((_, source), families)| families.iter().map(|one| (*one, *source))),
        );
        let found: Vec<Found<'_>> = each()
            .map(|((path, source), families)| read(path, source, families, &names))
            .collect();
        let mut has_more = false;
        for by in &found {
            for (family, target) in &by.sources {
                let name = target.rsplit(['/', '\\']).next().unwrap_or_default();
                for at in by_name.get(name).into_iter().flatten() {
                    if may_name(target, files[*at].0) {
                        has_more |= families[*at].insert(*family);
                    }
                }
            }
        }
        round += 1;
        if !has_more || round > MAX_NESTED {
            let lists = found.into_iter().map(|found| found.list);
            return files.iter().map(|(path, _)| *path).zip(lists).collect();
        }
    }
}

/// The text without a byte order mark, and with plain blanks for the white space that some compilers skip and tokens here do not.
fn with_plain_blanks(source: &[u8], family: Family) -> Cow<'_, [u8]> {
    const MARK: &[u8] = "\u{feff}".as_bytes();
    let source = source.strip_prefix(MARK).unwrap_or(source);
    if source.is_ascii() && !source.contains(&0x0b) {
        return Cow::Borrowed(source);
    }
    let mut out = Vec::with_capacity(source.len());
    for chunk in source.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\u{2028}' | '\u{2029}' if family == Family::Script => out.push(b'\n'),
                '\u{180e}' | '\u{200e}' | '\u{200f}' | '\u{feff}' => out.push(b' '),
                c if c.is_whitespace() && !c.is_ascii_whitespace() => out.push(b' '),
                c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        out.extend_from_slice(chunk.invalid());
    }
    Cow::Owned(out)
}

/// Reads a text in each of these languages.
fn read<'a>(
    path: &'a RepoPath,
    source: &[u8],
    families: &BTreeSet<Family>,
    names: &Names,
) -> Found<'a> {
    let own = Family::from_path(path);
    let mut found = Found {
        depth: path.segments().count() - 1,
        path,
        family: own,
        list: Vec::new(),
        sources: BTreeSet::new(),
    };
    let languages = std::iter::once(own).chain(families.iter().copied().filter(|one| *one != own));
    for family in languages {
        let known = std::mem::take(&mut found.list);
        found.family = family;
        match family {
            Family::Rust => rust::read(source, names, &mut found),
            Family::C => c::read(source, names, &mut found),
            Family::Assembly => {
                c::directives(source, names, &mut found);
                c::assembly_file(source, names, &mut found);
            }
            Family::Script => script::read(source, &mut found),
            Family::Go => go::read(source, names, &mut found),
            Family::Python => python::read(source, names, &mut found),
            Family::Data | Family::Other => {}
        }
        if family == own {
            manifest::read(path, source, &mut found);
            others::read(path, own == Family::Other, source, &mut found);
        }
        found.list = union(known, std::mem::take(&mut found.list));
    }
    found
}

/// Whether a path that a text names may be that of this file: its place depends on directories that are searched.
fn may_name(target: &str, path: &RepoPath) -> bool {
    let segments = target.split(['/', '\\']);
    let named: Vec<&str> = segments
        .filter(|segment| !matches!(*segment, "" | "." | ".."))
        .collect();
    let own: Vec<&str> = path.segments().collect();
    !named.is_empty() && own.ends_with(&named)
}

/// What two readings of one text find: what both find counts as often as the one that finds it more often.
fn union(one: Vec<Included>, other: Vec<Included>) -> Vec<Included> {
    let mut counts: BTreeMap<&Included, usize> = BTreeMap::new();
    for found in &one {
        *counts.entry(found).or_default() += 1;
    }
    let more: Vec<Included> = other
        .iter()
        .filter(|found| match counts.get_mut(found) {
            Some(count) if *count > 0 => {
                *count -= 1;
                false
            }
            _ => true,
        })
        .cloned()
        .collect();
    one.into_iter().chain(more).collect()
}

fn has(source: &[u8], word: &str) -> bool {
    contains(source, word.as_bytes())
}

fn has_any(source: &[u8], words: &[&str]) -> bool {
    words.iter().any(|word| has(source, word))
}

struct Found<'a> {
    path: &'a RepoPath,
    /// How many directories the file lies in.
    depth: usize,
    /// The language that the text is read in.
    family: Family,
    list: Vec<Included>,
    /// The paths of what is read as source in these languages.
    sources: BTreeSet<(Family, String)>,
}

impl Found<'_> {
    fn push(&mut self, reach: Reach, construct: &str, target: &str) {
        self.list.push(Included {
            reach,
            construct: construct.to_owned(),
            target: target.to_owned(),
        });
    }

    fn outside(&mut self, construct: &str, target: &str) {
        self.push(Reach::Outside, construct, target);
    }

    fn report_unknown(&mut self, construct: &str, target: &str) {
        self.push(Reach::Unknown, construct, target);
    }

    /// Judges a path that is written from the place of the file.
    fn path(&mut self, construct: &str, target: &str) {
        if leaves(target, self.depth) {
            self.outside(construct, target);
        }
    }

    /// Takes note of a path whose file is read as source. One whose ending is that of another language, or of data, is not judged as
    /// source when it changes alone.
    fn source(&mut self, family: Family, construct: &str, target: &str) {
        self.sources.insert((family, target.to_owned()));
        let is_own = match Family::of_name(target) {
            Family::Other => true,
            Family::C | Family::Assembly => matches!(family, Family::C | Family::Assembly),
            ending => ending == family,
        };
        if !is_own && !leaves(target, self.depth) {
            self.report_unknown(
                &format!("{construct} with the ending of another language"),
                target,
            );
        }
    }

    /// Judges a path from the root, which may be that of the machine or that of a site.
    fn rooted(&mut self, construct: &str, target: &str) {
        let before = self.list.len();
        self.path_of_site(construct, target);
        // Nothing that is worth reading lies in the root of a machine itself.
        if self.list.len() == before && target[1..].contains('/') {
            self.report_unknown(construct, target);
        }
    }

    /// Judges a path whose root may be that of a site or of a bundle: absolute ones count where they name a place of the machine.
    fn path_of_site(&mut self, construct: &str, target: &str) {
        let is_rooted = target.starts_with('/') && !target.starts_with("//");
        let first = target
            .trim_start_matches('/')
            .split('/')
            .next()
            .unwrap_or_default();
        let climbs = target.split('/').any(|segment| segment == "..");
        if is_rooted && !climbs && !SYSTEM.contains(&first) {
            return;
        }
        if !target.starts_with("//") {
            self.path(construct, target);
        }
    }
}

/// Whether a path leaves the repository from a directory so deep in it, or comes by git's own files.
fn leaves(target: &str, depth: usize) -> bool {
    let target = target.strip_prefix("file:").unwrap_or(target);
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
    let words = tokens.iter().map(|token| Item {
        text: token.text,
        at: token.range.start,
        is_literal: false,
    });
    let literals = literals.iter().filter_map(|range| {
        Some(Item {
            text: source.get(range.clone())?,
            at: range.start,
            is_literal: true,
        })
    });
    let mut all: Vec<Item<'a>> = words.chain(literals).collect();
    all.sort_by_key(|item| item.at);
    all
}

/// What the text of a literal stands for: without prefix and quotes, and with its escapes read.
fn value(literal: &[u8]) -> String {
    let is_quote = |byte: &u8| matches!(byte, b'"' | b'\'' | b'`');
    let Some(open) = literal.iter().position(is_quote) else {
        return String::new();
    };
    let is_raw = literal[..open]
        .iter()
        .any(|byte| matches!(byte, b'r' | b'R'));
    let quote = literal[open];
    let inner = literal.get(open..).unwrap_or_default();
    let from = inner
        .iter()
        .position(|byte| *byte != quote)
        .unwrap_or(inner.len());
    let inner = &inner[from..];
    let hashes = inner.iter().rev().take_while(|byte| **byte == b'#').count();
    let inner = &inner[..inner.len() - if is_raw { hashes } else { 0 }];
    // As many as opened it: a quote before them is one that the text holds.
    let closing = inner
        .iter()
        .rev()
        .take(from)
        .take_while(|byte| **byte == quote)
        .count();
    let inner = &inner[..inner.len() - closing];
    let text = String::from_utf8_lossy(match literal[..open].last() {
        Some(b'R') => untagged(inner),
        _ => inner,
    });
    if is_raw {
        text.into_owned()
    } else {
        unescaped(&text)
    }
}

/// The text of a raw literal of C++, without the brackets around it and their tags.
fn untagged(inner: &[u8]) -> &[u8] {
    let Some(open) = inner.iter().position(|byte| *byte == b'(') else {
        return inner;
    };
    let (tag, rest) = (&inner[..open], &inner[open + 1..]);
    let text = rest.strip_suffix(tag);
    text.and_then(|text| text.strip_suffix(b")"))
        .unwrap_or(inner)
}

/// A text with its escapes read, in the notations that languages share.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let Some(kind) = rest.chars().next() else {
            return out;
        };
        let digits = |from: usize, most: usize, radix: u32| -> Option<(char, usize)> {
            let text = rest.get(from..)?;
            let count = text
                .chars()
                .take(most)
                .take_while(|digit| digit.is_digit(radix))
                .count();
            let number = u32::from_str_radix(text.get(..count)?, radix).ok()?;
            Some((char::from_u32(number)?, from + count))
        };
        let read = match kind {
            'x' => digits(1, 2, 16),
            'u' if rest.starts_with("u{") => digits(2, 6, 16).map(|(read, end)| (read, end + 1)),
            'u' => digits(1, 4, 16),
            '0'..='7' => digits(0, 3, 8),
            'n' => Some(('\n', 1)),
            'r' => Some(('\r', 1)),
            't' => Some(('\t', 1)),
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
    for (at, item) in items.iter().enumerate().skip(open).take(MAX_WORDS) {
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

/// The text of items, for a person.
fn source_text(items: &[Item<'_>]) -> String {
    let texts: Vec<_> = items
        .iter()
        .map(|item| String::from_utf8_lossy(item.text))
        .collect();
    texts.join(" ")
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

#[cfg(test)]
mod tests;
