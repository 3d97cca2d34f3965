//! C, its relatives, and its preprocessor: directives that name a file, and texts for an assembler.

use std::collections::BTreeSet;
use std::ops::Range;

use super::super::Language;
use super::super::mask::{Dialect, is_in_number, read_dialect};
use super::super::token::{Position, Token, tokens};
use super::assembler;
use super::found::{Family, Found, SYSTEM, leaves, union};
use super::item::{self, Item, MAX_WORDS, has, has_any, inside, items, source_text, value};
use super::names::{MAX_NAMES, Names};

/// Endings of what the preprocessor includes.
const SOURCES: [&str; 12] = [
    ".c", ".cc", ".cpp", ".cxx", ".def", ".h", ".hh", ".hpp", ".hxx", ".inc", ".inl", ".ipp",
];
/// Directives that read a file.
const DIRECTIVES: [&str; 5] = ["embed", "import", "include", "include_next", "using"];
/// Operators that look for a file.
const LOOKUPS: [&str; 3] = ["__has_embed", "__has_include", "__has_include_next"];
/// Words that a pragma begins with whose texts are not paths.
const MESSAGES: [&str; 7] = [
    "endregion",
    "error",
    "mark",
    "message",
    "region",
    "warning",
    "ident",
];
/// Directives and pragmas of compilers that read the file behind them.
const PRAGMAS: [&str; 2] = ["dependency", "pch_preprocess"];
/// What stands where a word may go on in the next line.
const JOINED: [&str; 4] = ["\\\n", "\\\r", "\\ ", "??/"];
/// How long the tag of a raw literal may be, with its bracket.
const MAX_TAG: usize = 17;
/// How much of a line is looked at.
const MAX_LINE: usize = 4096;

/// One way in which a compiler may read a text. Which one it takes depends on its settings.
#[derive(Clone, Copy)]
struct Reading {
    dialect: Dialect,
    /// Whether `??/` is a backslash, and its like.
    has_trigraphs: bool,
    /// Whether a line goes on behind a backslash that blanks follow.
    joins_blanks: bool,
    /// Whether a carriage return ends a line.
    has_returns: bool,
}

/// Characters that two question marks before them make others of.
const TRIGRAPHS: [(u8, u8); 9] = [
    (b'=', b'#'),
    (b'/', b'\\'),
    (b'\'', b'^'),
    (b'(', b'['),
    (b')', b']'),
    (b'!', b'|'),
    (b'<', b'{'),
    (b'>', b'}'),
    (b'-', b'~'),
];

impl Reading {
    const USUAL: Self = Self {
        dialect: Dialect::USUAL,
        has_trigraphs: true,
        joins_blanks: true,
        has_returns: false,
    };

    /// The readings of a text that may differ.
    fn all(source: &[u8]) -> Vec<Self> {
        let mut all = vec![Self::USUAL];
        let mut double = |differs: bool, other: fn(&mut Self)| {
            if differs {
                let mut others = all.clone();
                others.iter_mut().for_each(other);
                all.append(&mut others);
            }
        };
        let is_trigraph = |window: &[u8]| {
            window.starts_with(b"??") && TRIGRAPHS.iter().any(|(third, _)| window[2] == *third)
        };
        let divides_digits = || {
            let quotes = source.iter().enumerate();
            let mut quotes = quotes.filter(|(_, byte)| **byte == b'\'');
            quotes.any(|(at, _)| is_in_number(source, at))
        };
        let has_raw = || {
            let begins = source.windows(2).enumerate();
            let mut begins = begins.filter(|(_, pair)| *pair == b"R\"");
            begins.any(|(at, _)| {
                let tag = source[at + 2..].iter().take(MAX_TAG);
                let mut tag = tag.skip_while(|byte| !b"(\") \\\n".contains(byte));
                tag.next() == Some(&b'(')
            })
        };
        let has_blanks = || {
            let after = source.windows(2).enumerate();
            let mut after = after
                .filter(|(_, pair)| pair[0] == b'\\' && matches!(pair[1], b' ' | b'\t'))
                .map(|(at, _)| &source[at + 1..]);
            after.any(|rest| {
                let blanks = rest.iter().take(MAX_LINE);
                let blanks = blanks.take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r'));
                rest.get(blanks.count()) == Some(&b'\n')
            })
        };
        double(source.windows(3).any(is_trigraph), |reading| {
            reading.has_trigraphs = false;
        });
        double(has_blanks(), |reading| reading.joins_blanks = false);
        double(
            source
                .windows(2)
                .any(|pair| pair[0] == b'\r' && pair[1] != b'\n'),
            |reading| reading.has_returns = true,
        );
        double(has_raw(), |reading| {
            reading.dialect.has_raw_literals = false;
        });
        double(divides_digits(), |reading| {
            reading.dialect.has_separators = false;
        });
        let is_assembled = has_any(source, &["asm", "incbin", ".include"]);
        let may_divide = has(source, "//*") || is_assembled && has(source, "//");
        double(may_divide, |reading| {
            reading.dialect.has_line_comments = false;
        });
        all
    }

    /// The text without what is read before its words are: trigraphs, joined lines, and white space that others do not count.
    fn prepared(self, source: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(source.len());
        let mut at = 0;
        while let Some(byte) = source.get(at) {
            at += 1;
            let rest = &source[at..];
            let trigraph = TRIGRAPHS
                .iter()
                .find(|(third, _)| self.has_trigraphs && rest.starts_with(&[b'?', *third]));
            out.push(match (byte, trigraph) {
                (b'?', Some((_, stands_for))) => {
                    at += 2;
                    *stands_for
                }
                (b'\r', _) if self.has_returns && rest.first() != Some(&b'\n') => b'\n',
                (0x0b, _) => b' ',
                (byte, _) => *byte,
            });
        }
        joined_lines(&out, self.joins_blanks)
    }
}

/// A text whose lines are joined as the preprocessor joins them, before it reads anything.
struct Text {
    joined: Vec<u8>,
    closed: Vec<u8>,
    literals: Vec<Range<usize>>,
}

impl Text {
    fn from_source(source: &[u8]) -> Self {
        Self::read(Reading::USUAL, source)
    }

    /// The text in each way in which it may be read.
    fn all(source: &[u8]) -> impl Iterator<Item = Self> + use<'_> {
        let readings = Reading::all(source).into_iter();
        readings.map(move |reading| Self::read(reading, source))
    }

    fn read(reading: Reading, source: &[u8]) -> Self {
        let joined = reading.prepared(source);
        let masked = read_dialect(Language::C, reading.dialect, &joined);
        let closed = masked.without_format_fields();
        Self {
            joined,
            closed,
            literals: masked.literals,
        }
    }

    /// The rest of the line from `at` on.
    fn line(&self, at: usize) -> &[u8] {
        let rest = self.joined.get(at..).unwrap_or_default();
        let end = rest.iter().take(MAX_LINE).position(|byte| *byte == b'\n');
        &rest[..end.unwrap_or(rest.len().min(MAX_LINE))]
    }

    /// What a directive is given, from `at` on.
    fn operand(&self, at: usize) -> Operand {
        let line = self.line(at);
        let code = self.closed.get(at..at + line.len()).unwrap_or_default();
        // Comments before the value are blank in the code, and quotes too.
        let next = self.literals.partition_point(|range| range.start < at);
        let literal = self
            .literals
            .get(next)
            .filter(|range| range.start < at + line.len());
        let first = code
            .iter()
            .position(|byte| !byte.is_ascii_whitespace())
            .map(|first| at + first);
        let text = |range: Range<usize>| String::from_utf8_lossy(&self.joined[range]).into_owned();
        match (literal, first) {
            (Some(range), first)
                if first.is_none_or(|first| range.start < first) && range.len() >= 2 =>
            {
                let inner = range.start + 1..range.end - 1;
                let bytes = self
                    .closed
                    .get(range.end..at + line.len())
                    .unwrap_or_default();
                match self.joined[range.start] {
                    b'"' => Operand::File(text(inner), bytes.iter().all(u8::is_ascii_whitespace)),
                    _ => Operand::Other(text(at..at + line.len())),
                }
            }
            (_, Some(first)) if self.joined[first] == b'<' => {
                let rest = &self.joined[first + 1..at + line.len()];
                match rest.iter().position(|byte| *byte == b'>') {
                    Some(end) => Operand::File(text(first + 1..first + 1 + end), true),
                    None => Operand::Other(text(first..at + line.len())),
                }
            }
            (_, Some(first)) => {
                let rest = &self.closed[first..at + line.len()];
                let is_part =
                    |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte >= 0x80;
                let end = rest
                    .iter()
                    .position(|byte| !is_part(byte))
                    .unwrap_or(rest.len());
                if end > 0 && rest[end..].trim_ascii().is_empty() && literal.is_none() {
                    Operand::Name(rest[..end].to_owned())
                } else {
                    Operand::Other(text(first..at + line.len()))
                }
            }
            _ => Operand::Nothing,
        }
    }
}

/// What a directive is given, or the value of a name.
enum Operand {
    /// A file in quotes or brackets, and whether nothing follows it.
    File(String, bool),
    Name(Vec<u8>),
    Other(String),
    Nothing,
}

/// Whether the mark of a directive comes before the token at `at`: `#`, `%:` or `??=` at the beginning of a line, or the `%` of SWIG and
/// NASM.
fn is_marked(tokens: &[Token<'_>], at: usize) -> bool {
    const MARKS: [&[&str]; 4] = [&["#"], &["%"], &["%", ":"], &["?", "?", "="]];
    MARKS.iter().any(|mark| {
        at.checked_sub(mark.len())
            .and_then(|start| tokens.get(start..at))
            .is_some_and(|before| {
                before[0].position == Position::First
                    && before.iter().zip(*mark).all(|(token, mark)| token.is(mark))
            })
    })
}

/// Collects the names that a text gives values to.
pub(super) fn defines(source: &[u8], names: &mut Names) {
    Text::all(source).for_each(|text| defines_of(&text, names));
}

/// The names and the texts in a value.
pub(super) fn parts(value: &[u8]) -> (Vec<Vec<u8>>, Vec<String>) {
    let text = Text::from_source(value);
    let tokens = tokens(&text.closed);
    let words = tokens.iter().filter(|token| token.is_word());
    let names = words.map(|word| word.text.to_vec()).collect();
    let literals = text.literals.iter();
    let literals = literals.map(|range| item::value(&text.joined[range.clone()]));
    (names, literals.collect())
}

fn defines_of(text: &Text, names: &mut Names) {
    let tokens = tokens(&text.closed);
    for (at, _) in tokens
        .iter()
        .enumerate()
        .filter(|(_, token)| token.is("define"))
    {
        let Some(name) = tokens.get(at + 1).filter(|_| is_marked(&tokens, at)) else {
            continue;
        };
        let is_function = text.closed.get(name.range.end) == Some(&b'(');
        let line = text.line(name.range.end);
        if is_function && has(line, "incbin") {
            names.add_c_reader(name.text);
        }
        names.add_value(name.text, String::from_utf8_lossy(line).trim());
    }
}

pub(super) fn read(source: &[u8], names: &Names, found: &mut Found<'_>) {
    directives(source, names, found);
    each_reading(source, found, |text, found| assembly(text, names, found));
}

/// Reads a text in each way in which it may be read. What one of them finds counts, and counts once.
fn each_reading(source: &[u8], found: &mut Found<'_>, read: impl Fn(&Text, &mut Found<'_>)) {
    let start = found.list.len();
    for text in Text::all(source) {
        let known = found.list.split_off(start);
        read(&text, found);
        let other = found.list.split_off(start);
        found.list.extend(union(known, other));
    }
}

/// The directives that read a file.
pub(super) fn directives(source: &[u8], names: &Names, found: &mut Found<'_>) {
    let is_concerned = [
        &DIRECTIVES[..],
        &LOOKUPS,
        &PRAGMAS,
        &["pragma", "Pragma"],
        &JOINED,
    ];
    if is_concerned.iter().any(|words| has_any(source, words)) {
        each_reading(source, found, |text, found| {
            directives_of(text, names, found)
        });
    }
}

fn directives_of(text: &Text, names: &Names, found: &mut Found<'_>) {
    let tokens = tokens(&text.closed);
    for (index, token) in tokens.iter().enumerate() {
        let at = token.range.start;
        let construct = format!("#{}", token.name());
        if token.is("include_alias") {
            found.report_unknown(
                "#pragma include_alias",
                &String::from_utf8_lossy(text.line(at)),
            );
            continue;
        }
        if token.is("pragma") && is_marked(&tokens, index) {
            pragma(text.line(token.range.end), found);
            continue;
        }
        if token.is("_Pragma") {
            // The text in its bracket is a pragma.
            let mut literals = text.literals.iter();
            let literal = literals.find(|range| range.start >= token.range.end);
            if let Some(range) = literal {
                pragma(value(&text.joined[range.clone()]).as_bytes(), found);
            }
            continue;
        }
        let looks_up = LOOKUPS.iter().any(|word| token.is(word));
        if looks_up || PRAGMAS.iter().any(|word| token.is(word)) {
            let opens = tokens
                .get(index + 1)
                .filter(|open| open.is("(") && looks_up);
            let at = opens.map_or(token.range.end, |open| open.range.end);
            if let Operand::File(target, _) = text.operand(at)
                && leaves(&target, found.depth)
            {
                found.outside(&token.name(), &target);
            }
            continue;
        }
        if !DIRECTIVES.iter().any(|word| token.is(word)) {
            continue;
        }
        if !is_marked(&tokens, index) {
            // A header that is imported as a module.
            let is_exported = index > 0
                && tokens[index - 1].is("export")
                && tokens[index - 1].position == Position::First;
            let starts = token.position == Position::First || is_exported;
            if starts
                && token.is("import")
                && let Operand::File(target, _) = text.operand(token.range.end)
            {
                header("import", &target, found);
            }
            continue;
        }
        let is_prose = at > 0 && text.joined[at - 1] != b'#' && found.family == Family::Assembly;
        match text.operand(token.range.end) {
            Operand::File(target, _) => header(&construct, &target, found),
            Operand::Name(name) if !is_prose => report_named(&construct, &name, names, found),
            Operand::Other(expression) if !is_prose => {
                found.report_unknown(&construct, expression.trim())
            }
            Operand::Name(_) | Operand::Other(_) | Operand::Nothing => {}
        }
    }
}

/// A pragma: compilers and linkers read files by the paths in many of them.
fn pragma(line: &[u8], found: &mut Found<'_>) {
    let text = Text::from_source(line);
    let tokens = tokens(&text.closed);
    let Some(first) = tokens.first() else { return };
    if MESSAGES.iter().any(|word| first.is(word)) || has(line, "include_alias") {
        return;
    }
    for range in &text.literals {
        let target = value(&text.joined[range.clone()]);
        // What follows an option of a linker: `/DEFAULTLIB:a.lib`.
        let is_option = tokens.iter().any(|token| token.is("linker"));
        let path = match target.split_once(':') {
            Some((_, path)) if is_option => path,
            _ if is_option => continue,
            _ => target.as_str(),
        };
        if leaves(path, found.depth) {
            found.outside("#pragma", &target);
        }
    }
}

/// Judges the path of a header.
fn header(construct: &str, target: &str, found: &mut Found<'_>) {
    if leaves(target, found.depth) {
        return found.outside(construct, target);
    }
    let family = match found.family {
        Family::Assembly => Family::Assembly,
        _ => Family::C,
    };
    if !construct.ends_with("embed") {
        found.source(family, construct, target);
    }
    // The directories of the machine's headers are as deep as anything: two steps up lead to its root.
    let mut segments = target
        .split('/')
        .skip_while(|segment| matches!(*segment, ".." | "."));
    let is_system = segments.next().is_some_and(|first| SYSTEM.contains(&first));
    let is_source = SOURCES
        .iter()
        .any(|end| target.to_ascii_lowercase().ends_with(end));
    if target.starts_with("../..") && is_system && !is_source {
        found.outside(construct, target);
    }
}

/// Judges a name that stands for a header. Its definition is reported with it: it changes what is read when it changes.
fn report_named(construct: &str, name: &[u8], names: &Names, found: &mut Found<'_>) {
    let mut name_text = String::from_utf8_lossy(name).into_owned();
    let mut next: Vec<Vec<u8>> = vec![name.to_owned()];
    let mut seen: BTreeSet<Vec<u8>> = next.iter().cloned().collect();
    let mut targets = Vec::new();
    let mut is_unknown = false;
    while let Some(name) = next.pop() {
        let values = names.values(&name);
        is_unknown |= values.is_none() || seen.len() > MAX_NAMES;
        for value in values.into_iter().flatten().take(MAX_NAMES) {
            name_text.push_str(&format!(" = {value}"));
            match Text::from_source(value.as_bytes()).operand(0) {
                Operand::File(target, true) => targets.push(target),
                Operand::Name(name) if seen.len() <= MAX_NAMES => {
                    if seen.insert(name.clone()) {
                        next.push(name);
                    }
                }
                Operand::File(_, false)
                | Operand::Name(_)
                | Operand::Other(_)
                | Operand::Nothing => is_unknown = true,
            }
        }
    }
    let before = found.list.len();
    targets
        .iter()
        .for_each(|target| header(construct, target, found));
    if is_unknown && found.list.len() == before {
        found.report_unknown(construct, &name_text);
    }
}

/// Texts for an assembler: the literals of `asm`, neighbours joined as the compiler joins them.
fn assembly(text: &Text, names: &Names, found: &mut Found<'_>) {
    const LIBRARY: [&str; 5] = [
        "INCBIN",
        "INCBIN_EXTERN",
        "INCBIN_TYPE",
        "INCTXT",
        "INCTXT_EXTERN",
    ];
    let tokens = tokens(&text.closed);
    let items = items(&text.joined, &tokens, &text.literals);
    let is_at = |at: usize, word: &str| items.get(at).is_some_and(|item| item.is(word));
    let mut at = 0;
    while let Some(item) = items.get(at) {
        at += 1;
        if item.is_literal {
            joined(&items, at - 1, names, found);
            while items.get(at).is_some_and(|item| item.is_literal) {
                at += 1;
            }
            continue;
        }
        // Names of which each stands for a text.
        let is_plain_name = |at: usize| {
            let item = items.get(at).filter(|item| !item.is_literal);
            item.is_some_and(|item| !names.literals_of(item.text).is_empty())
        };
        if is_plain_name(at - 1) && is_plain_name(at) {
            joined(&items, at - 1, names, found);
        }
        let is_reader = names.is_c_reader(item.text) || LIBRARY.iter().any(|word| item.is(word));
        if is_reader && is_at(at, "(") && !(at >= 2 && is_at(at - 2, "define")) {
            let construct = String::from_utf8_lossy(item.text).into_owned();
            let arguments = inside(&items, at).unwrap_or_default();
            let literals: Vec<String> = arguments.iter().filter_map(Item::value).collect();
            for literal in &literals {
                assembler::path(literal, found);
            }
            if literals.is_empty() {
                found.report_unknown(&construct, &source_text(arguments));
            }
            continue;
        }
        // A directive that stands in the code reaches an assembler by a macro that makes a text of it.
        if item.is(".") && items.get(at).is_some_and(is_reader_word) {
            match items.get(at + 1).and_then(Item::value) {
                Some(target) if leaves(&target, found.depth) => {
                    found.outside(DIRECTIVE, &target);
                }
                Some(target) => found.report_unknown(DIRECTIVE, &target),
                None if !is_at(at, "include") => found.report_unknown(DIRECTIVE, ".incbin"),
                None => {}
            }
            continue;
        }
        // No code has a text right behind a dot and a word.
        if item.is(".") || names.is_directive(item.text) {
            let behind = if item.is(".") { at + 1 } else { at };
            let behind = match is_at(behind, "(") {
                true => inside(&items, behind).map(|list| behind + list.len() + 2),
                false => Some(behind),
            };
            let target = behind.and_then(|at| items.get(at)).and_then(Item::value);
            if let Some(target) = target.filter(|text| leaves(text, 0)) {
                found.report_unknown(DIRECTIVE, &target);
            }
        }
        // A paste makes one word of two.
        if is_at(at, "#") && is_at(at + 1, "#") {
            let next = items.get(at + 2).map_or(&b""[..], |next| next.text);
            let pasted = [item.text, next].concat();
            if pasted.eq_ignore_ascii_case(b"incbin") {
                found.report_unknown(DIRECTIVE, ".incbin");
            }
        }
        let is_other_name = || names.is_assembler(item.text);
        if !WORDS.iter().any(|word| item.is(word)) && !is_other_name() {
            continue;
        }
        let is_qualifier = |at: usize| QUALIFIERS.iter().any(|word| is_at(at, word));
        let mut open = at;
        while is_qualifier(open) {
            open += 1;
        }
        if is_at(open, "(") {
            let (text, is_filled) = template(&items, open, names);
            let before = found.list.len();
            assembler::template(&text, names, found);
            if is_filled && assembler::has_directive(&text) && found.list.len() == before {
                found.report_unknown(DIRECTIVE, "a text of macros that reads a file");
            }
            assembled(&items, open, names, found);
        }
    }
}

/// Words that begin an assembler's text.
pub(super) const WORDS: [&str; 3] = ["asm", "__asm", "__asm__"];
/// Words that may stand behind it.
pub(super) const QUALIFIERS: [&str; 6] = [
    "__inline__",
    "__volatile__",
    "goto",
    "inline",
    "volatile",
    "__volatile",
];
const DIRECTIVE: &str = "an assembler's directive";

/// Judges the text that the literal or name at `at` begins.
fn joined(items: &[Item<'_>], at: usize, names: &Names, found: &mut Found<'_>) {
    let (text, is_whole) = joined_text(items, at, names);
    assembler::literal(&text, found);
    if !is_whole {
        found.report_unknown(DIRECTIVE, "a text of too many names");
    }
}

/// The text that the compiler makes of the literal at `at` and of what it joins to it: further literals, and names that stand for some.
/// What is not known is a hole. Says too whether that is all of it.
fn joined_text(items: &[Item<'_>], at: usize, names: &Names) -> (String, bool) {
    let mut out = String::new();
    // A name before it may stand for a text, too.
    let known = |item: &Item<'_>| match item.is_literal {
        true => Vec::new(),
        false => names.literals_of(item.text),
    };
    let mut start = at;
    while start > 0 && at - start < MAX_NAMES && !known(&items[start - 1]).is_empty() {
        start -= 1;
    }
    let (mut next, mut count) = (start, 0);
    while let Some(item) = items.get(next).filter(|_| count < MAX_WORDS) {
        next += 1;
        if let Some(text) = item.value() {
            out.push_str(&text);
            continue;
        }
        let first = item.text.first();
        let is_name = first.is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_');
        if !is_name || WORDS.iter().any(|word| item.is(word)) {
            break;
        }
        count += 1;
        let texts = known(item);
        out.extend(texts.iter().map(String::as_str));
        if texts.is_empty() && !out.ends_with(assembler::HOLE) {
            out.push(assembler::HOLE);
        }
        if items.get(next).is_some_and(|open| open.is("(")) {
            next += inside(items, next).map_or(1, |list| list.len() + 2);
        }
    }
    (out, count < MAX_WORDS)
}

fn is_reader_word(item: &Item<'_>) -> bool {
    !item.is_literal
        && ["incbin", "include"]
            .iter()
            .any(|word| item.text.eq_ignore_ascii_case(word.as_bytes()))
}

/// The template of an `asm` that macros put together: what they make of its words is not known, so no literal among them may be the path
/// of a file outside, and no name may stand for a directive that reads.
fn assembled(items: &[Item<'_>], open: usize, names: &Names, found: &mut Found<'_>) {
    let mut depth = 0usize;
    let mut template = Vec::new();
    for item in items.iter().skip(open).take(assembler::MAX_PIECES) {
        match item.text {
            _ if item.is_literal => template.push(item),
            b"(" => depth += 1,
            b")" => depth = depth.saturating_sub(1),
            b":" if depth == 1 => break,
            _ => template.push(item),
        }
        if depth == 0 {
            break;
        }
    }
    if template.iter().all(|item| item.is_literal) {
        return;
    }
    for item in template {
        match item.value() {
            Some(text) if assembler::names_place(&text, found.depth) => {
                found.outside(DIRECTIVE, &text);
            }
            None if names.holds_directive(item.text) => {
                found.report_unknown(DIRECTIVE, &String::from_utf8_lossy(item.text));
            }
            None => {
                let mut texts = names.literals_of(item.text).into_iter();
                if let Some(text) = texts.find(|text| assembler::may_read(text, found.depth)) {
                    found.report_unknown(DIRECTIVE, &text);
                }
            }
            Some(_) => {}
        }
    }
}

/// The template of an `asm`: its literals up to the operands, with the texts of a macro that the changed files define, and a hole for
/// each other one. Says whether a macro has texts in it.
fn template(items: &[Item<'_>], open: usize, names: &Names) -> (String, bool) {
    let mut out = String::new();
    let mut is_filled = false;
    let mut depth = 0usize;
    for item in items.iter().skip(open).take(assembler::MAX_PIECES) {
        if item.is("(") {
            depth += 1;
        } else if item.is(")") {
            depth = depth.saturating_sub(1);
            if depth == 0 {
                break;
            }
        } else if item.is(":") && depth == 1 {
            break;
        } else if let Some(text) = item.value() {
            out.push_str(&text);
        } else if depth == 1 {
            let texts = names.literals_of(item.text);
            is_filled |= !texts.is_empty();
            out.extend(texts.iter().map(String::as_str));
            if texts.is_empty() && !out.ends_with(assembler::HOLE) {
                out.push(assembler::HOLE);
            }
        }
    }
    (out, is_filled)
}

/// A file of assembly, which the preprocessor may read first.
pub(super) fn assembly_file(source: &[u8], names: &Names, found: &mut Found<'_>) {
    let mut known = std::mem::take(&mut found.list);
    assembler::template(&String::from_utf8_lossy(source), names, found);
    let raw = std::mem::take(&mut found.list);
    each_reading(source, found, |text, found| {
        assembler::template(&String::from_utf8_lossy(&text.joined), names, found);
        unquoted(text, found);
    });
    known.extend(union(raw, std::mem::take(&mut found.list)));
    found.list = known;
}

/// Paths outside that a macro may put quotes around.
fn unquoted(text: &Text, found: &mut Found<'_>) {
    let code = String::from_utf8_lossy(&text.closed);
    let lines = code.lines().filter_map(|line| line.split("//").next());
    for line in lines.filter(|line| line.contains('/')) {
        let is_rooted = |open: char| {
            let behind = line.split(open).skip(1).map(str::trim_start);
            let mut behind = behind.filter_map(|text| text.strip_prefix('/'));
            behind.any(|text| text.starts_with(|c: char| c.is_alphanumeric()))
        };
        if line.contains("../") || line.contains("/..") || is_rooted('(') || is_rooted(',') {
            found.report_unknown(DIRECTIVE, line.trim());
        }
    }
}

fn joined_lines(source: &[u8], joins_blanks: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(source.len());
    let mut at = 0;
    while let Some(byte) = source.get(at) {
        at += 1;
        if *byte == b'\\' {
            // Blanks between the backslash and the end of its line are left out, too.
            let blanks = source[at..]
                .iter()
                .take(MAX_LINE)
                .take_while(|byte| **byte == b'\r' || joins_blanks && matches!(byte, b' ' | b'\t'));
            let end = at + blanks.count();
            if source.get(end) == Some(&b'\n') {
                at = end + 1;
                continue;
            }
        }
        out.push(*byte);
    }
    out
}
