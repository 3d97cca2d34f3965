//! Names that touched files give to what reads a file: the values of macros of C, and macros that pass a path on.

use std::collections::{BTreeMap, BTreeSet};

use crucible_model::RepoPath;

use super::super::Language;
use super::super::mask::read as masked;
use super::super::token::{Token, tokens};
use super::{Family, c, has, has_any};

/// What the touched files say of names.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// The values that the preprocessor of C is given for each name.
    values: BTreeMap<Vec<u8>, BTreeSet<String>>,
    /// Macros of C with parameters that have an assembler read a file.
    c_readers: BTreeSet<Vec<u8>>,
    /// Macros of Rust that read a file by a path that they may be given.
    rust_readers: BTreeSet<Vec<u8>>,
    /// Macros of Rust that call a macro that they are given.
    rust_callers: BTreeSet<Vec<u8>>,
}

impl Names {
    /// Collects the names of these files.
    pub(crate) fn of<'a>(files: impl IntoIterator<Item = (&'a RepoPath, &'a [u8])>) -> Self {
        let mut names = Self::default();
        for (path, source) in files {
            match Family::of(path) {
                Family::C | Family::Assembly | Family::Go if has(source, "define") => {
                    c::defines(source, &mut names)
                }
                Family::Rust if has(source, "macro") => names.rust(source),
                _ => {}
            }
        }
        names
    }

    pub(super) fn add_value(&mut self, name: &[u8], value: &str) {
        self.values
            .entry(name.to_owned())
            .or_default()
            .insert(value.to_owned());
    }

    pub(super) fn add_c_reader(&mut self, name: &[u8]) {
        self.c_readers.insert(name.to_owned());
    }

    /// The values of a name, where there is one.
    pub(super) fn values(&self, name: &[u8]) -> Option<&BTreeSet<String>> {
        self.values.get(name)
    }

    pub(super) fn is_c_reader(&self, name: &[u8]) -> bool {
        self.c_readers.contains(name)
    }

    pub(super) fn has_c_readers(&self) -> bool {
        !self.c_readers.is_empty()
    }

    pub(super) fn is_rust_reader(&self, name: &[u8]) -> bool {
        self.rust_readers.contains(name)
    }

    pub(super) fn is_rust_caller(&self, name: &[u8]) -> bool {
        self.rust_callers.contains(name)
    }

    pub(super) fn has_rust(&self) -> bool {
        !self.rust_readers.is_empty() || !self.rust_callers.is_empty()
    }

    /// Macros whose body reads what they are given, or calls a macro that they are given.
    fn rust(&mut self, source: &[u8]) {
        if !has_any(source, &["include", "path", "$"]) {
            return;
        }
        let closed = masked(Language::Rust, source).closed();
        let tokens = tokens(&closed);
        let is = |at: usize, word: &str| {
            tokens
                .get(at)
                .is_some_and(|token: &Token<'_>| token.is(word))
        };
        let mut at = 0;
        while at < tokens.len() {
            let name = match () {
                () if is(at, "macro_rules") && is(at + 1, "!") => at + 2,
                () if is(at, "macro") => at + 1,
                () => {
                    at += 1;
                    continue;
                }
            };
            let mut depth = 0usize;
            let (mut reads, mut calls) = (false, false);
            let mut end = name + 1;
            // A macro by example has one pair of brackets, one of the newer kind may have two.
            let pairs = if is(at, "macro") && is(name + 1, "(") {
                2
            } else {
                1
            };
            let mut closed = 0;
            while let Some(token) = tokens.get(end) {
                match token.text {
                    b"(" | b"[" | b"{" => depth += 1,
                    b")" | b"]" | b"}" => {
                        depth = depth.saturating_sub(1);
                        closed += usize::from(depth == 0);
                    }
                    text if text.starts_with(b"$") && text != b"$crate" => {
                        calls |= is(end + 1, "!")
                            && ["(", "[", "{"].iter().any(|mark| is(end + 2, mark));
                        let names = is(end.wrapping_sub(1), "=") && is(end.wrapping_sub(2), "path");
                        reads |= names;
                    }
                    b"include" | b"include_str" | b"include_bytes" | b"include_dir" => {
                        reads |= is(end + 1, "!")
                    }
                    _ => {}
                }
                end += 1;
                if closed == pairs || depth == 0 && token.is(";") {
                    break;
                }
            }
            if let Some(name) = tokens.get(name) {
                let (text, readers, callers) = (
                    name.text.to_owned(),
                    &mut self.rust_readers,
                    &mut self.rust_callers,
                );
                if reads {
                    readers.insert(text);
                } else if calls {
                    callers.insert(text);
                }
            }
            at = end;
        }
    }
}
