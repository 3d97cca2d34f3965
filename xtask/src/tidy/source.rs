//! Rust source as tokens, with the test code cut out.
//!
//! Rules that look for a word or a path look at tokens, not at text: a comment or a string that
//! mentions `std::fs` is not a use of it, and code inside a macro call is seen like any other.
//! Test code is every item under `#[cfg(test)]` (also `cfg(all(test, …))`).

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// One token and the line it stands on, groups opened out into their delimiters and contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) text: String,
    pub(super) line: usize,
}

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Ident,
    Punct,
    Literal,
    Open,
    Close,
}

/// An attribute: `#[name …]` or `#![name …]`.
#[derive(Debug, Clone)]
pub(super) struct Attribute {
    pub(super) line: usize,
    /// Where in the tokens its closing bracket stands.
    pub(super) end: usize,
    /// The tokens between the brackets.
    pub(super) tokens: Vec<Token>,
}

/// A path as written, `use` groups opened out: `use std::{fs, env}` gives `std::fs` and `std::env`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Path {
    pub(super) segments: Vec<String>,
    pub(super) line: usize,
    /// Where in the tokens the path ends.
    pub(super) end: usize,
    /// Whether `::*` follows.
    pub(super) is_glob: bool,
}

impl Path {
    /// Whether the path begins with these segments.
    pub(super) fn starts_with(&self, segments: &[&str]) -> bool {
        self.segments.len() >= segments.len()
            && self
                .segments
                .iter()
                .zip(segments)
                .all(|(own, other)| own == other)
    }

    /// Whether the path ends with these segments.
    pub(super) fn ends_with(&self, segments: &[&str]) -> bool {
        let skip = self.segments.len().checked_sub(segments.len());
        skip.is_some_and(|skip| {
            self.segments
                .iter()
                .skip(skip)
                .zip(segments)
                .all(|(own, other)| own == other)
        })
    }
}

impl std::fmt::Display for Path {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.segments.join("::"))
    }
}

impl Token {
    pub(super) fn is(&self, text: &str) -> bool {
        self.kind != Kind::Literal && self.text == text
    }

    /// The text of a plain string literal; `None` for anything else, escapes included.
    pub(super) fn string(&self) -> Option<&str> {
        let inner = (self.kind == Kind::Literal)
            .then_some(self.text.as_str())?
            .strip_prefix('"')?
            .strip_suffix('"')?;
        (!inner.contains('\\')).then_some(inner)
    }
}

/// Every token of a file.
pub(super) fn tokens(stream: TokenStream) -> Vec<Token> {
    let mut out = Vec::new();
    flatten(stream, &mut out);
    out
}

/// A file's tokens without its test code.
pub(super) fn without_tests(stream: TokenStream) -> TokenStream {
    let trees: Vec<TokenTree> = stream.into_iter().collect();
    let mut remaining = Vec::with_capacity(trees.len());
    let mut at = 0;
    while let Some(tree) = trees.get(at) {
        if is_test_attribute(&trees, at) {
            at = end_of_item(&trees, at);
            continue;
        }
        remaining.push(match tree {
            TokenTree::Group(group) => {
                let mut inner = Group::new(group.delimiter(), without_tests(group.stream()));
                inner.set_span(group.span());
                TokenTree::Group(inner)
            }
            other => other.clone(),
        });
        at += 1;
    }
    remaining.into_iter().collect()
}

/// Every attribute among the tokens.
pub(super) fn attributes(tokens: &[Token]) -> Vec<Attribute> {
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        if !token.is("#") {
            continue;
        }
        let open = at + 1 + usize::from(tokens.get(at + 1).is_some_and(|next| next.is("!")));
        if tokens.get(open).is_some_and(|next| next.is("[")) {
            let end = closing(tokens, open);
            let inner = tokens.get(open + 1..end).unwrap_or_default().to_vec();
            found.push(Attribute {
                line: token.line,
                end,
                tokens: inner,
            });
        }
    }
    found
}

/// Every path among the tokens.
pub(super) fn paths(tokens: &[Token]) -> Vec<Path> {
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        if token.kind == Kind::Ident && !follows_a_segment(tokens, at) {
            follow(tokens, at, &mut Vec::new(), &mut found);
        }
    }
    found
}

/// The index of the delimiter that closes the one at `open`, or the end.
pub(super) fn closing(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.kind {
            Kind::Open => depth += 1,
            Kind::Close => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at;
                }
            }
            _ => {}
        }
    }
    tokens.len()
}

/// Whether an attribute marks test code, given what stands between its brackets.
pub(super) fn marks_tests(inner: &[Token]) -> bool {
    let [name, open, condition @ .., _close] = inner else {
        return false;
    };
    name.is("cfg") && open.is("(") && requires_test(condition)
}

fn requires_test(condition: &[Token]) -> bool {
    match condition {
        [word] => word.is("test"),
        [all, open, inner @ .., _close] if all.is("all") && open.is("(") => {
            let mut depth = 0_usize;
            inner
                .split(|token| {
                    match token.kind {
                        Kind::Open => depth += 1,
                        Kind::Close => depth = depth.saturating_sub(1),
                        _ => {}
                    }
                    depth == 0 && token.is(",")
                })
                .any(requires_test)
        }
        _ => false,
    }
}

fn flatten(stream: TokenStream, out: &mut Vec<Token>) {
    for tree in stream {
        match tree {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => {
                        flatten(group.stream(), out);
                        continue;
                    }
                };
                let line = group.span_open().start().line;
                out.push(Token {
                    kind: Kind::Open,
                    text: open.to_owned(),
                    line,
                });
                flatten(group.stream(), out);
                out.push(Token {
                    kind: Kind::Close,
                    text: close.to_owned(),
                    line: group.span_close().end().line,
                });
            }
            TokenTree::Ident(ident) => {
                let line = ident.span().start().line;
                out.push(Token {
                    kind: Kind::Ident,
                    text: ident.to_string(),
                    line,
                });
            }
            TokenTree::Punct(punct) => {
                let line = punct.span().start().line;
                out.push(Token {
                    kind: Kind::Punct,
                    text: punct.as_char().to_string(),
                    line,
                });
            }
            TokenTree::Literal(literal) => {
                let line = literal.span().start().line;
                out.push(Token {
                    kind: Kind::Literal,
                    text: literal.to_string(),
                    line,
                });
            }
        }
    }
}

fn is_test_attribute(trees: &[TokenTree], at: usize) -> bool {
    attribute_at(trees, at).is_some_and(|group| marks_tests(&tokens(group.stream())))
}

/// The bracketed group of an outer attribute that begins at `at`.
fn attribute_at(trees: &[TokenTree], at: usize) -> Option<&Group> {
    match (trees.get(at)?, trees.get(at + 1)?) {
        (TokenTree::Punct(hash), TokenTree::Group(group))
            if hash.as_char() == '#' && group.delimiter() == Delimiter::Bracket =>
        {
            Some(group)
        }
        _ => None,
    }
}

/// Where the item with its attributes ends that begins at `at`: after its `;`, its block, or its field's `,`.
fn end_of_item(trees: &[TokenTree], at: usize) -> usize {
    let mut at = at;
    while attribute_at(trees, at).is_some() {
        at += 2;
    }
    while let Some(tree) = trees.get(at) {
        at += 1;
        match tree {
            TokenTree::Punct(punct) if punct.as_char() == ';' => return at,
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => return at,
            _ => {}
        }
    }
    at
}

fn follows_a_segment(tokens: &[Token], at: usize) -> bool {
    at >= 3
        && is_double_colon(tokens, at - 2)
        && tokens
            .get(at - 3)
            .is_some_and(|token| token.kind == Kind::Ident || token.is(">"))
}

fn is_double_colon(tokens: &[Token], at: usize) -> bool {
    tokens.get(at).is_some_and(|token| token.is(":"))
        && tokens.get(at + 1).is_some_and(|token| token.is(":"))
}

/// Reads one path from its first segment on; in a `use` group, one path for each of its parts.
fn follow(tokens: &[Token], start: usize, prefix: &mut Vec<String>, found: &mut Vec<Path>) {
    let Some(first) = tokens.get(start) else {
        return;
    };
    let depth = prefix.len();
    let line = first.line;
    prefix.push(first.text.clone());
    let mut at = start + 1;
    while is_double_colon(tokens, at) {
        match tokens.get(at + 2) {
            Some(next) if next.kind == Kind::Ident => {
                prefix.push(next.text.clone());
                at += 3;
            }
            Some(next) if next.is("{") => {
                follow_group(tokens, at + 2, prefix, found);
                prefix.truncate(depth);
                return;
            }
            _ => break,
        }
    }
    found.push(Path {
        segments: prefix.clone(),
        line,
        end: at,
        is_glob: is_double_colon(tokens, at) && tokens.get(at + 2).is_some_and(|next| next.is("*")),
    });
    prefix.truncate(depth);
}

fn follow_group(tokens: &[Token], open: usize, prefix: &mut Vec<String>, found: &mut Vec<Path>) {
    let end = closing(tokens, open);
    let mut at = open + 1;
    let mut fresh = true;
    while at < end {
        match tokens.get(at) {
            Some(token) if token.kind == Kind::Ident && fresh => {
                follow(tokens, at, prefix, found);
                fresh = false;
                at += 1;
            }
            Some(token) if token.is("*") && fresh => {
                found.push(Path {
                    segments: prefix.clone(),
                    line: token.line,
                    end: at,
                    is_glob: true,
                });
                fresh = false;
                at += 1;
            }
            Some(token) if token.is(",") => {
                fresh = true;
                at += 1;
            }
            Some(token) if token.kind == Kind::Open => at = closing(tokens, at) + 1,
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<Token> {
        tokens(text.parse().unwrap())
    }

    fn product(text: &str) -> String {
        without_tests(text.parse().unwrap())
            .to_string()
            .replace(' ', "")
    }

    fn path_names(text: &str) -> Vec<String> {
        paths(&read(text)).iter().map(Path::to_string).collect()
    }

    #[test]
    fn test_code_is_cut_and_nothing_else() {
        assert_eq!(
            product("fn a() {} #[cfg(test)] mod tests { fn b() {} } fn c() {}"),
            "fna(){}fnc(){}"
        );
        assert_eq!(
            product("#[cfg(test)] #[derive(Debug)] struct A; struct B;"),
            "structB;"
        );
        assert_eq!(
            product("#[cfg(all(test, unix))] use a::b; use c::d;"),
            "usec::d;"
        );
        assert_eq!(
            product("#[cfg(all(any(test, unix), windows))] fn a() {}"),
            "#[cfg(all(any(test,unix),windows))]fna(){}"
        );
        assert_eq!(
            product("#[cfg(not(test))] fn a() {}"),
            "#[cfg(not(test))]fna(){}"
        );
        assert_eq!(
            product("#[cfg(any(test, unix))] fn a() {}"),
            "#[cfg(any(test,unix))]fna(){}"
        );
        assert_eq!(
            product("impl A { #[cfg(test)] fn b(&self) -> [u8; 2] { [0; 2] } fn c() {} }"),
            "implA{fnc(){}}"
        );
    }

    #[test]
    fn use_groups_are_opened_out() {
        let names =
            path_names("use std::{fs::{self, File}, env}; fn f() { ::std::process::exit(1) }");
        for expected in [
            "std::fs::self",
            "std::fs::File",
            "std::env",
            "std::process::exit",
        ] {
            assert!(
                names.iter().any(|name| name == expected),
                "{expected} in {names:?}"
            );
        }
    }

    #[test]
    fn comments_and_strings_are_not_paths_unlike_macros() {
        assert_eq!(
            path_names("// std::fs\nconst A: &str = \"std::env\";"),
            ["const", "A", "str"]
        );
        assert!(
            path_names("fn f() { assert!(std::env::var(\"A\").is_ok()); }")
                .contains(&"std::env::var".to_owned())
        );
    }

    #[test]
    fn globs_are_paths_of_their_module() {
        let text = "use super::*; use a::{b::*, c, *}; fn f() { a::b() * c }";
        let globs: Vec<String> = paths(&read(text))
            .into_iter()
            .filter(|path| path.is_glob)
            .map(|path| path.segments.join("::"))
            .collect();
        // A part of a group is also read by itself.
        assert_eq!(globs, ["super", "a::b", "a", "b"]);
    }

    #[test]
    fn paths_match_by_whole_segments() {
        let path = paths(&read("std::fs::write")).remove(0);
        assert!(path.starts_with(&["std", "fs"]));
        assert!(!path.starts_with(&["std", "f"]));
        assert!(path.ends_with(&["fs", "write"]));
        assert!(!path.ends_with(&["a", "b", "c", "d"]));
    }

    #[test]
    fn only_plain_strings_have_a_text() {
        assert_eq!(read("\"a-b\"").first().and_then(Token::string), Some("a-b"));
        assert_eq!(read("1").first().and_then(Token::string), None);
        assert_eq!(read("\"a\\n\"").first().and_then(Token::string), None);
    }
}
