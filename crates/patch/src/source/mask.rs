//! Blanks comments and literals, so that what is left of a text is code.
//!
//! The result has the length and the line feeds of the source; quotes and what stands between them become blanks.
//! A literal that is not closed runs to the end of its line, or of the text where the language lets it. What stands in the
//! fields of an f-string is code, too: it is kept apart from the rest, since it is not a line of its own.

use std::ops::Range;

use super::Language;

/// How much of a number is looked at.
const MAX_DIGITS: usize = 80;

/// A text as it was read.
pub(super) struct Masked {
    /// The source with comments and literals blanked, but for the fields of f-strings.
    pub(super) open: Vec<u8>,
    /// Where literals stand, in order; of a template or an f-string each piece.
    pub(super) literals: Vec<Range<usize>>,
    /// Where f-strings stand, fields included.
    formatted: Vec<Range<usize>>,
    /// Whether a slash stood in it that was taken for a division or a regular expression.
    pub(super) has_slash: bool,
}

/// The source with comments and literals blanked.
pub(super) fn mask(language: Language, source: &[u8]) -> Vec<u8> {
    read(language, source).without_format_fields()
}

/// What compilers of one language do not agree on, since their settings differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Dialect {
    /// Whether a slash begins a comment to the end of the line with another slash: not in C90.
    pub(super) has_line_comments: bool,
    /// Whether `R"(…)"` is a literal, or in Rust `cr"…"`: not in strict C, and not before the edition of 2021.
    pub(super) has_raw_literals: bool,
    /// Whether a quote between digits divides them: in C++ and in C from 2023 on.
    pub(super) has_separators: bool,
}

impl Dialect {
    /// The dialect that most sources are written in.
    pub(super) const USUAL: Self = Self {
        has_line_comments: true,
        has_raw_literals: true,
        has_separators: true,
    };
}

/// Reads a source.
pub(super) fn read(language: Language, source: &[u8]) -> Masked {
    read_dialect(language, Dialect::USUAL, source)
}

/// Reads a source in one dialect of its language.
pub(super) fn read_dialect(language: Language, dialect: Dialect, source: &[u8]) -> Masked {
    let mut masker = Masker {
        source,
        out: source.to_vec(),
        at: 0,
        code_end: 0,
        language,
        dialect,
        templates: Vec::new(),
        parentheses: Vec::new(),
        closes_condition: false,
        fields: Vec::new(),
        literals: Vec::new(),
        formatted: Vec::new(),
        formatted_at: 0,
        has_slash: false,
    };
    masker.first_line();
    while masker.at < source.len() {
        masker.step();
    }
    if !masker.fields.is_empty() {
        masker.formatted.push(masker.formatted_at..source.len());
    }
    let Masker {
        out,
        literals,
        formatted,
        has_slash,
        ..
    } = masker;
    Masked {
        open: out,
        literals,
        formatted,
        has_slash,
    }
}

impl Masked {
    /// What a tree says of a text.
    pub(super) fn of_tree(open: Vec<u8>, literals: Vec<Range<usize>>) -> Self {
        Self {
            open,
            literals,
            formatted: Vec::new(),
            has_slash: true,
        }
    }

    /// The code without the fields of f-strings.
    pub(super) fn without_format_fields(&self) -> Vec<u8> {
        let mut out = self.open.clone();
        for range in &self.formatted {
            let bytes = out.get_mut(range.clone()).unwrap_or_default();
            bytes
                .iter_mut()
                .filter(|byte| **byte != b'\n')
                .for_each(|byte| *byte = b' ');
        }
        out
    }
}

/// An open field of an f-string.
struct Field {
    quote: u8,
    is_triple: bool,
    /// How many brackets are open in it.
    depth: usize,
    /// In how many format specifications it stands.
    level: usize,
}

struct Masker<'a> {
    source: &'a [u8],
    out: Vec<u8>,
    at: usize,
    /// Behind the last byte that is neither white space nor comment.
    code_end: usize,
    language: Language,
    dialect: Dialect,
    /// For each open `${` in a template literal, the number of braces that are open inside it.
    templates: Vec<usize>,
    /// For each open parenthesis whether it holds the condition of a statement.
    parentheses: Vec<bool>,
    /// Whether the parenthesis that was closed last did.
    closes_condition: bool,
    /// The open fields of f-strings.
    fields: Vec<Field>,
    literals: Vec<Range<usize>>,
    formatted: Vec<Range<usize>>,
    /// Where the outermost open f-string begins.
    formatted_at: usize,
    has_slash: bool,
}

impl Masker<'_> {
    /// Blanks a first line that only names an interpreter. In Rust, `#!` may also begin an attribute.
    fn first_line(&mut self) {
        if !matches!(self.language, Language::Rust | Language::Script) {
            return;
        }
        let mark = if self.source.starts_with(b"\xef\xbb\xbf") {
            3
        } else {
            0
        };
        if !self.source[mark..].starts_with(b"#!") {
            return;
        }
        if self.language == Language::Rust {
            // White space and comments may stand between the mark and the bracket of an attribute.
            self.at = mark + 2;
            while let Some(byte) = self.source.get(self.at) {
                match &self.source[self.at..] {
                    [b'/', b'/', ..] => self.blank_line(),
                    [b'/', b'*', ..] => self.block_comment(),
                    _ if byte.is_ascii_whitespace() => self.at += 1,
                    _ => break,
                }
            }
            let is_attribute = self.source.get(self.at) == Some(&b'[');
            self.out[..self.at].copy_from_slice(&self.source[..self.at]);
            self.at = 0;
            if is_attribute {
                return;
            }
        }
        self.at = mark;
        self.blank_line();
    }

    fn step(&mut self) {
        let rest = &self.source[self.at..];
        if self.language == Language::Python {
            return self.python(rest);
        }
        match rest {
            [b'/', b'/', ..] if self.dialect.has_line_comments => return self.blank_line(),
            [b'/', b'*', ..] => return self.block_comment(),
            [byte, ..] if byte.is_ascii_whitespace() => {
                self.at += 1;
                return;
            }
            [b'/', ..] if self.language == Language::Script && self.expects_value() => {
                self.has_slash = true;
                self.regex();
            }
            [b'/', ..] => {
                self.has_slash = true;
                self.at += 1;
            }
            [b'(', ..] if self.language == Language::Script => {
                let opens_condition = self.follows(&[b"if", b"while", b"for", b"with"]);
                self.parentheses.push(opens_condition);
                self.at += 1;
            }
            [b')', ..] if self.language == Language::Script => {
                self.closes_condition = self.parentheses.pop().unwrap_or(false);
                self.at += 1;
            }
            [b'r' | b'R', ..] if self.starts_word() && self.takes_raw() => self.raw_string(rest),
            [b'"', ..] => self.string(b'"', self.language == Language::Rust),
            [b'\'', ..] => self.single_quote(rest),
            [b'`', ..] if self.language == Language::Go => {
                let length = find(&rest[1..], b"`").map_or(rest.len(), |end| end + 2);
                self.literal(length);
            }
            [b'`', ..] if self.language == Language::Script => self.template(),
            [b'{', ..] => {
                if let Some(open) = self.templates.last_mut() {
                    *open += 1;
                }
                self.at += 1;
            }
            [b'}', ..] => match self.templates.last_mut() {
                Some(0) => {
                    self.templates.pop();
                    self.template();
                }
                Some(open) => {
                    *open -= 1;
                    self.at += 1;
                }
                None => self.at += 1,
            },
            _ => self.at += 1,
        }
        self.code_end = self.at;
    }

    fn python(&mut self, rest: &[u8]) {
        let quotes = match rest {
            [a @ (b'"' | b'\''), b, c, ..] if a == b && b == c => 3,
            [b'"' | b'\'', ..] => 1,
            _ => 0,
        };
        if quotes > 0 && self.is_formatted() {
            if self.fields.is_empty() {
                self.formatted_at = self.at;
            }
            let quote = rest[0];
            self.blank(quotes);
            return self.formatted_text(quote, quotes == 3, 0);
        }
        if let Some(field) = self.fields.last_mut() {
            let (quote, is_triple, level) = (field.quote, field.is_triple, field.level);
            match rest {
                [b'(' | b'[' | b'{', ..] => field.depth += 1,
                [b'}', ..] if field.depth == 0 => {
                    self.fields.pop();
                    self.blank(1);
                    return self.formatted_text(quote, is_triple, level);
                }
                [b':', ..] if field.depth == 0 => {
                    self.fields.pop();
                    self.blank(1);
                    return self.formatted_text(quote, is_triple, level + 1);
                }
                [b')' | b']' | b'}', ..] => field.depth = field.depth.saturating_sub(1),
                _ => {}
            }
        }
        let start = self.at;
        match rest {
            [b'#', ..] => self.blank_line(),
            [quote @ (b'"' | b'\''), b, c, ..] if b == quote && c == quote => {
                self.blank(3);
                while self.at < self.source.len() {
                    let rest = &self.source[self.at..];
                    match rest {
                        [b'\\', _, ..] => self.blank(2),
                        [a, b, c, ..] if a == quote && b == quote && c == quote => {
                            self.blank(3);
                            break;
                        }
                        _ => self.blank(1),
                    }
                }
                self.literals.push(start..self.at);
            }
            [quote @ (b'"' | b'\''), ..] => self.string(*quote, false),
            _ => self.at += 1,
        }
    }

    /// Whether the quote here has a prefix that makes its string one with fields.
    fn is_formatted(&self) -> bool {
        let before = self.source[..self.at].iter().rev();
        let prefix: Vec<u8> = before
            .take(3)
            .take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_')
            .copied()
            .collect();
        matches!(prefix.len(), 1 | 2)
            && prefix.iter().any(|byte| b"fFtT".contains(byte))
            && prefix.iter().all(|byte| b"fFtTrR".contains(byte))
    }

    /// Blanks the text of an f-string up to its end or its next field; at a level above zero that of a format
    /// specification, which ends with its field.
    fn formatted_text(&mut self, quote: u8, is_triple: bool, mut level: usize) {
        let start = self.at;
        while self.at < self.source.len() {
            match &self.source[self.at..] {
                // A backslash does not keep a field from beginning.
                [b'\\', b'{', ..] => self.blank(1),
                [b'\\', ..] => self.blank(2),
                [b'{', b'{', ..] if level == 0 => self.blank(2),
                [b'{', ..] => {
                    self.literals.push(start..self.at);
                    self.blank(1);
                    return self.fields.push(Field {
                        quote,
                        is_triple,
                        depth: 0,
                        level,
                    });
                }
                [b'}', ..] => {
                    level = level.saturating_sub(1);
                    self.blank(1);
                }
                [a, b, c, ..] if is_triple && a == b && b == c && *a == quote => {
                    self.blank(3);
                    break;
                }
                [byte, ..] if !is_triple && *byte == quote => {
                    self.blank(1);
                    break;
                }
                [b'\n', ..] if !is_triple => break,
                _ => self.blank(1),
            }
        }
        self.literals.push(start..self.at);
        if self.fields.is_empty() {
            self.formatted.push(self.formatted_at..self.at);
        }
    }

    /// Blanks a string with backslash escapes. Where it may not span lines, an open one ends with its line.
    fn string(&mut self, quote: u8, spans_lines: bool) {
        let start = self.at;
        self.blank(1);
        while let Some(byte) = self.source.get(self.at) {
            match byte {
                b'\\' => self.blank(2),
                b'\n' if !spans_lines => break,
                byte if *byte == quote => {
                    self.blank(1);
                    break;
                }
                _ => self.blank(1),
            }
        }
        self.literals.push(start..self.at);
    }

    fn literal(&mut self, length: usize) {
        let start = self.at;
        self.blank(length);
        self.literals.push(start..self.at);
    }

    fn single_quote(&mut self, rest: &[u8]) {
        match self.language {
            Language::Rust => match rest.get(1) {
                Some(b'\\') => self.string(b'\'', false),
                // A character has a closing quote after one code point; a lifetime has none.
                Some(first) => {
                    let length = match first {
                        0..0x80 => 1,
                        0x80..0xe0 => 2,
                        0xe0..0xf0 => 3,
                        _ => 4,
                    };
                    if rest.get(1 + length) == Some(&b'\'') {
                        self.literal(length + 2)
                    } else {
                        // The name of a lifetime is not a prefix of a literal behind it.
                        let is_part = |byte: &&u8| {
                            byte.is_ascii_alphanumeric() || **byte == b'_' || **byte >= 0x80
                        };
                        self.at += 1 + rest[1..].iter().take_while(is_part).count();
                    }
                }
                None => self.at += 1,
            },
            Language::C if self.dialect.has_separators && is_in_number(self.source, self.at) => {
                self.at += 1
            }
            _ => self.string(b'\'', false),
        }
    }

    /// `r"…"`, `r#"…"#`, `br"…"` in Rust, `R"tag(…)tag"` in C++.
    fn raw_string(&mut self, rest: &[u8]) {
        let (open, close) = match (self.language, rest[0]) {
            (Language::Rust, b'r') => {
                let hashes = rest[1..].iter().take_while(|byte| **byte == b'#').count();
                let mut close = vec![b'"'];
                close.resize(hashes + 1, b'#');
                (hashes + 2, close)
            }
            (Language::C, b'R') => {
                let tag = rest[1..]
                    .iter()
                    .skip(1)
                    .take(17)
                    .position(|byte| *byte == b'(')
                    .unwrap_or(usize::MAX);
                let Some(name) = tag.checked_add(2).and_then(|end| rest.get(2..end)) else {
                    self.at += 1;
                    return;
                };
                let mut close = vec![b')'];
                close.extend_from_slice(name);
                close.push(b'"');
                (3 + name.len(), close)
            }
            _ => (0, Vec::new()),
        };
        let quote_at = if self.language == Language::C {
            1
        } else {
            open.saturating_sub(1)
        };
        if open == 0 || rest.get(quote_at) != Some(&b'"') {
            self.at += 1;
            return;
        }
        let end = find(&rest[open..], &close).map_or(rest.len(), |at| open + at + close.len());
        self.literal(end);
    }

    fn block_comment(&mut self) {
        self.blank(2);
        let mut depth = 1;
        while depth > 0 && self.at < self.source.len() {
            match &self.source[self.at..] {
                [b'*', b'/', ..] => {
                    depth -= 1;
                    self.blank(2);
                }
                [b'/', b'*', ..] if self.language == Language::Rust => {
                    depth += 1;
                    self.blank(2);
                }
                _ => self.blank(1),
            }
        }
    }

    /// Blanks a template literal up to its end or its next `${`. Stands on its opening quote or on a closing brace.
    fn template(&mut self) {
        let start = self.at;
        self.blank(1);
        while self.at < self.source.len() {
            match &self.source[self.at..] {
                [b'\\', ..] => self.blank(2),
                [b'`', ..] => {
                    self.blank(1);
                    break;
                }
                [b'$', b'{', ..] => {
                    self.blank(2);
                    self.templates.push(0);
                    break;
                }
                _ => self.blank(1),
            }
        }
        self.literals.push(start..self.at);
    }

    fn regex(&mut self) {
        let mut in_class = Class::Outside;
        self.blank(1);
        while let Some(byte) = self.source.get(self.at) {
            match (byte, in_class) {
                (b'\n', _) => return,
                (b'\\', _) => self.blank(2),
                (b'/', Class::Outside) => return self.blank(1),
                (b'[', _) => {
                    in_class = Class::Inside;
                    self.blank(1);
                }
                (b']', _) => {
                    in_class = Class::Outside;
                    self.blank(1);
                }
                _ => self.blank(1),
            }
        }
    }

    /// Whether a slash here begins a regular expression and does not divide.
    fn expects_value(&self) -> bool {
        let before = &self.source[..self.code_end];
        match before {
            [] => true,
            // What is counted up or down is a value.
            [.., b'+', b'+'] | [.., b'-', b'-'] => false,
            [.., b')'] => self.closes_condition,
            [.., byte] if b"(,=:[!&|?{};+-*%<>~^".contains(byte) => true,
            _ => self.follows(&[
                b"return", b"typeof", b"case", b"in", b"of", b"do", b"else", b"void", b"delete",
                b"throw", b"new", b"await", b"yield",
            ]),
        }
    }

    /// Whether the code before ends with one of these words.
    fn follows(&self, words: &[&[u8]]) -> bool {
        let before = &self.source[..self.code_end];
        words.iter().any(|word| {
            before.strip_suffix(*word).is_some_and(|rest| {
                !rest
                    .last()
                    .is_some_and(|byte| byte.is_ascii_alphanumeric() || b"_$.".contains(byte))
            })
        })
    }

    /// Whether a raw literal may begin here in the dialect.
    fn takes_raw(&self) -> bool {
        let is_of_c = self.at > 0 && self.source[self.at - 1] == b'c';
        self.dialect.has_raw_literals || self.language == Language::Rust && !is_of_c
    }

    /// Whether the byte here begins a word, prefixes of literals aside.
    fn starts_word(&self) -> bool {
        let before = self.source[..self.at].iter().rev();
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte >= 0x80;
        let word: Vec<u8> = before.copied().take(3).take_while(is_word).collect();
        matches!(
            word.as_slice(),
            [] | [b'b' | b'c' | b'u' | b'U' | b'L'] | [b'8', b'u']
        )
    }

    /// Blanks a comment to the end of its line, which is where the language ends it.
    fn blank_line(&mut self) {
        let rest = &self.source[self.at..];
        let ends_by_return = matches!(self.language, Language::Python | Language::Script);
        let ends_line = |at: &usize| match &rest[*at..] {
            [b'\n', ..] => true,
            [b'\r', ..] => ends_by_return,
            // The separators of lines and paragraphs.
            [0xe2, 0x80, 0xa8 | 0xa9, ..] => self.language == Language::Script,
            _ => false,
        };
        let length = (0..rest.len()).find(ends_line).unwrap_or(rest.len());
        self.blank(length);
    }

    fn blank(&mut self, length: usize) {
        let end = (self.at + length).min(self.source.len());
        for byte in &mut self.out[self.at..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        self.at = end;
    }
}

/// Whether the byte at `at` stands behind the digits of a number.
pub(super) fn is_in_number(source: &[u8], at: usize) -> bool {
    let before = source[..at].iter().rev().take(MAX_DIGITS);
    let word = before
        .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'\'' | b'.'));
    word.last().is_some_and(u8::is_ascii_digit)
}

#[derive(Clone, Copy)]
enum Class {
    Outside,
    Inside,
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn masked(language: Language, source: &str) -> String {
        String::from_utf8_lossy(&mask(language, source.as_bytes()))
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn rust_literals_and_comments_are_blank() {
        let source = "a /* x /* y */ z */ b \"}\\\"{\" c r#\"{\"\"# d '{' e '\\'' f<'a> br\"\\\" g // {\nr#fn \"multi\n{\" h";
        assert_eq!(masked(Language::Rust, source), "a b c d e f<'a> b g r#fn h");
    }

    #[test]
    fn script_templates_and_regexes_are_blank() {
        let source =
            "a = `x ${ f(`{`) + {b: 1} } {`; c = /[/\"]{/.test(d); e = 4 / 2 / 1; '{'\n return /'/";
        assert_eq!(
            masked(Language::Script, source),
            "a = f( ) + {b: 1} ; c = .test(d); e = 4 / 2 / 1; return"
        );
    }

    #[test]
    fn python_c_and_go_literals_are_blank() {
        assert_eq!(
            masked(
                Language::Python,
                "a = '''\ndef x():\n''' # c\nb = \"#\" + 'it\\'s'"
            ),
            "a = b = +"
        );
        assert_eq!(
            masked(Language::C, "a 1'000 'x' '\\'' \"//\" R\"t({)\")t\" b"),
            "a 1'000 R b".replace("R ", "")
        );
        assert_eq!(masked(Language::Go, "a `{\n\\` b '}' \"`\""), "a b");
    }

    #[test]
    fn f_string_fields_are_distinguished_as_code() {
        let open = |source: &str| {
            let read = read(Language::Python, source.as_bytes());
            let text = String::from_utf8_lossy(&read.open).into_owned();
            assert_eq!(
                masked(Language::Python, source).replace(' ', ""),
                "x=f;y",
                "{source}"
            );
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        for (source, code) in [
            ("x = f\"{a(0)}\" ; y", "x = f a(0) ; y"),
            ("x = f'{{a}} {b!r:>{w}} c' ; y", "x = f b!r w ; y"),
            ("x = f\"{d[\"it's\"]}\" ; y", "x = f d[ ] ; y"),
            ("x = f\"{d[\"\"\"'''\"\"\"]}\" ; y", "x = f d[ ] ; y"),
            ("x = f\"\\{a}\" ; y", "x = f a ; y"),
            ("x = f'''\n{a}\n{b}''' ; y", "x = f a b ; y"),
            (
                "x = f\"{f'{a}' + {1: 2}[1]}\" ; y",
                "x = f f a + {1: 2}[1] ; y",
            ),
        ] {
            assert_eq!(open(source), code, "{source}");
        }
        assert_eq!(
            masked(Language::Python, "rb'{a}' if'{b}' _f'{c}' g"),
            "rb if _f g"
        );
    }

    #[test]
    fn first_line_for_an_interpreter_is_blank() {
        for language in [Language::Rust, Language::Script] {
            let source = "#!/bin/sh /* ' `\na 'b' // c\n";
            assert_eq!(masked(language, source), "a");
        }
        let source = "#! /* a\n */ [b] // c\nd";
        assert_eq!(masked(Language::Rust, source), "#! [b] d");
    }

    #[test]
    fn quote_after_lifetime_starts_non_raw_literal() {
        assert_eq!(masked(Language::Rust, "m!('r\"\\\" a\" b)"), "m!('r b)");
        assert_eq!(masked(Language::Rust, "'a' 'é' '\"' 'b"), "'b");
    }

    #[test]
    fn dialects_read_doubtful_literals_differently() {
        let masked = |language, dialect, source: &str| {
            let closed = read_dialect(language, dialect, source.as_bytes()).without_format_fields();
            let text = String::from_utf8_lossy(&closed).into_owned();
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let usual = Dialect::USUAL;
        let old = Dialect {
            has_line_comments: false,
            has_raw_literals: false,
            has_separators: false,
        };
        for (language, source, one, other) in [
            (Language::C, "R\"(\na\n)\" b", "b", "R a )"),
            (Language::C, "x(1'/*');\na /* ' */", "x(1'", "x(1 ); a"),
            (Language::C, "4 //**/ 2; a\nb", "4 b", "4 / 2; a b"),
            (Language::Rust, "cr\"\\\" a \"b\"", "c a", "cr b"),
            (Language::Rust, "r\"\\\" a", "a", "a"),
        ] {
            assert_eq!(masked(language, usual, source), one, "{source}");
            assert_eq!(masked(language, old, source), other, "{source}");
        }
    }

    #[test]
    fn comment_ends_at_the_languages_line_end() {
        assert_eq!(masked(Language::Python, "a # b\rc # d\r\ne"), "a c e");
        assert_eq!(masked(Language::Script, "a // b\rc // d\u{2028}e"), "a c e");
        assert_eq!(masked(Language::C, "a // b\rc\nd"), "a d");
    }

    #[test]
    fn regex_after_condition_is_distinguished_from_division() {
        for (source, code) in [
            (
                "if (x) /\"/.test(a); f(); \"/\";",
                "if (x) .test(a); f(); ;",
            ),
            ("x++ /2; f(); 1/1;", "x++ /2; f(); 1/1;"),
            ("(a) / b; f('/')", "(a) / b; f( )"),
            (
                "while (a(b)) /'/.test(c); f()",
                "while (a(b)) .test(c); f()",
            ),
        ] {
            assert_eq!(masked(Language::Script, source), code, "{source}");
        }
    }

    mod properties {
        use super::*;

        proptest! {
            #[test]
            fn any_bytes_keep_their_length_and_lines(source in proptest::collection::vec(
                prop_oneof![Just(b'"'), Just(b'\''), Just(b'`'), Just(b'/'), Just(b'*'), Just(b'\\'), Just(b'\n'), Just(b'#'),
                    Just(b'r'), Just(b'f'), Just(b':'), Just(b'R'), Just(b'$'), Just(b'{'), Just(b'}'), Just(b'('), any::<u8>()], 0..60)) {
                for language in [Language::Rust, Language::Python, Language::Script, Language::Go, Language::C] {
                    let out = mask(language, &source);
                    prop_assert_eq!(out.len(), source.len());
                    for (a, b) in out.iter().zip(&source) {
                        prop_assert_eq!(*a == b'\n', *b == b'\n');
                    }
                }
            }
        }
    }
}
