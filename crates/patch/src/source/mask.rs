//! Blanks comments and literals, so that what is left of a text is code.
//!
//! The result has the length and the line feeds of the source; quotes and what stands between them become blanks.
//! A literal that is not closed runs to the end of its line, or of the text where the language lets it.

use super::Language;

/// The source with comments and literals blanked.
pub(super) fn mask(language: Language, source: &[u8]) -> Vec<u8> {
    let mut masker =
        Masker { source, out: source.to_vec(), at: 0, code_end: 0, language, templates: Vec::new() };
    while masker.at < source.len() {
        masker.step();
    }
    masker.out
}

struct Masker<'a> {
    source: &'a [u8],
    out: Vec<u8>,
    at: usize,
    /// Behind the last byte that is neither white space nor comment.
    code_end: usize,
    language: Language,
    /// For each open `${` in a template literal, the number of braces that are open inside it.
    templates: Vec<usize>,
}

impl Masker<'_> {
    fn step(&mut self) {
        let rest = &self.source[self.at..];
        if self.language == Language::Python {
            return self.python(rest);
        }
        match rest {
            [b'/', b'/', ..] => return self.blank_line(),
            [b'/', b'*', ..] => return self.block_comment(),
            [byte, ..] if byte.is_ascii_whitespace() => {
                self.at += 1;
                return;
            }
            [b'/', ..] if self.language == Language::Script && self.expects_value() => self.regex(),
            [b'r' | b'R', ..] if self.starts_word() => self.raw_string(rest),
            [b'"', ..] => self.string(b'"', self.language == Language::Rust),
            [b'\'', ..] => self.single_quote(rest),
            [b'`', ..] if self.language == Language::Go => {
                let length = find(&rest[1..], b"`").map_or(rest.len(), |end| end + 2);
                self.blank(length);
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
        match rest {
            [b'#', ..] => self.blank_line(),
            [quote @ (b'"' | b'\''), b, c, ..] if b == quote && c == quote => {
                self.blank(3);
                while self.at < self.source.len() {
                    let rest = &self.source[self.at..];
                    match rest {
                        [b'\\', _, ..] => self.blank(2),
                        [a, b, c, ..] if a == quote && b == quote && c == quote => return self.blank(3),
                        _ => self.blank(1),
                    }
                }
            }
            [quote @ (b'"' | b'\''), ..] => self.string(*quote, false),
            _ => self.at += 1,
        }
    }

    /// Blanks a string with backslash escapes. Where it may not span lines, an open one ends with its line.
    fn string(&mut self, quote: u8, spans_lines: bool) {
        self.blank(1);
        while let Some(byte) = self.source.get(self.at) {
            match byte {
                b'\\' => self.blank(2),
                b'\n' if !spans_lines => return,
                byte if *byte == quote => return self.blank(1),
                _ => self.blank(1),
            }
        }
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
                    if rest.get(1 + length) == Some(&b'\'') { self.blank(length + 2) } else { self.at += 1 }
                }
                None => self.at += 1,
            },
            Language::C if self.at > 0 && self.source[self.at - 1].is_ascii_digit() => self.at += 1,
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
                let tag =
                    rest[1..].iter().skip(1).take(17).position(|byte| *byte == b'(').unwrap_or(usize::MAX);
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
        let quote_at = if self.language == Language::C { 1 } else { open.saturating_sub(1) };
        if open == 0 || rest.get(quote_at) != Some(&b'"') {
            self.at += 1;
            return;
        }
        let end = find(&rest[open..], &close).map_or(rest.len(), |at| open + at + close.len());
        self.blank(end);
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
        self.blank(1);
        while self.at < self.source.len() {
            match &self.source[self.at..] {
                [b'\\', ..] => self.blank(2),
                [b'`', ..] => return self.blank(1),
                [b'$', b'{', ..] => {
                    self.blank(2);
                    self.templates.push(0);
                    return;
                }
                _ => self.blank(1),
            }
        }
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
        match before.last() {
            None => true,
            Some(byte) if b"(,=:[!&|?{};+-*%<>~^".contains(byte) => true,
            Some(_) => [b"return".as_slice(), b"typeof", b"case", b"in", b"of"].iter().any(|word| {
                before
                    .strip_suffix(*word)
                    .is_some_and(|rest| !rest.last().is_some_and(u8::is_ascii_alphanumeric))
            }),
        }
    }

    /// Whether the byte here begins a word, prefixes of literals aside.
    fn starts_word(&self) -> bool {
        let before = self.source[..self.at].iter().rev();
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte >= 0x80;
        let word: Vec<u8> = before.copied().take(3).take_while(is_word).collect();
        matches!(word.as_slice(), [] | [b'b' | b'c' | b'u' | b'U' | b'L'] | [b'8', b'u'])
    }

    fn blank_line(&mut self) {
        let rest = &self.source[self.at..];
        self.blank(find(rest, b"\n").unwrap_or(rest.len()));
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
        let source = "a = `x ${ f(`{`) + {b: 1} } {`; c = /[/\"]{/.test(d); e = 4 / 2 / 1; '{'\n return /'/";
        assert_eq!(
            masked(Language::Script, source),
            "a = f( ) + {b: 1} ; c = .test(d); e = 4 / 2 / 1; return"
        );
    }

    #[test]
    fn python_c_and_go_literals_are_blank() {
        assert_eq!(masked(Language::Python, "a = '''\ndef x():\n''' # c\nb = \"#\" + 'it\\'s'"), "a = b = +");
        assert_eq!(
            masked(Language::C, "a 1'000 'x' '\\'' \"//\" R\"t({)\")t\" b"),
            "a 1'000 R b".replace("R ", "")
        );
        assert_eq!(masked(Language::Go, "a `{\n\\` b '}' \"`\""), "a b");
    }

    proptest! {
        #[test]
        fn any_bytes_keep_their_length_and_lines(source in proptest::collection::vec(
            prop_oneof![Just(b'"'), Just(b'\''), Just(b'`'), Just(b'/'), Just(b'*'), Just(b'\\'), Just(b'\n'), Just(b'#'),
                Just(b'r'), Just(b'R'), Just(b'$'), Just(b'{'), Just(b'}'), Just(b'('), any::<u8>()], 0..60)) {
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
