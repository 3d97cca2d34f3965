//! Names that touched files give to what reads a file: the values of macros of C, and macros that pass a path on.

use std::collections::{BTreeMap, BTreeSet};

use super::super::Language;
use super::super::mask::read as masked;
use super::super::token::{plain_names, tokens};
use super::found::Family;
use super::item::{has, has_any, inside, items, value};
use super::modules::{
    MacroMatchers, has_filled_name, is_filled_before, is_variable, may_name_module,
};
use super::rust::READERS;
use super::{c, go};

/// How many words before a macro may be its attributes.
const MAX_BEFORE: usize = 16;
/// How many names lead from one to the other.
pub(super) const MAX_NAMES: usize = 16;

/// The names and the texts in the values of a name of C.
#[derive(Debug, Default)]
struct Parts {
    names: Vec<Vec<u8>>,
    texts: Vec<String>,
}

/// What the touched files say of names.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// The values that the preprocessor of C is given for each name.
    values: BTreeMap<Vec<u8>, BTreeSet<String>>,
    /// What these values hold.
    parts: BTreeMap<Vec<u8>, Parts>,
    /// Macros of C with parameters that have an assembler read a file.
    c_readers: BTreeSet<Vec<u8>>,
    /// Names of C that stand for the word that begins an assembler's text.
    assemblers: BTreeSet<Vec<u8>>,
    /// Names of C that stand for a directive that reads a file.
    directives: BTreeSet<Vec<u8>>,
    /// Macros of Rust that read a file by a path that they may be given.
    rust_readers: BTreeSet<Vec<u8>>,
    /// Macros of Rust that call one of these, and may pass on what they are given.
    rust_passing: BTreeSet<Vec<u8>>,
    /// Macros of Rust that call a macro that they are given.
    rust_callers: BTreeSet<Vec<u8>>,
    /// Macros of Rust that put what they are given behind a directory.
    rust_prefixed: BTreeSet<Vec<u8>>,
    /// The paths that climb in macros of Rust that read a file, or that call such a macro.
    rust_climbs: BTreeMap<Vec<u8>, BTreeSet<String>>,
    /// The macros that macros of Rust call.
    rust_calls: BTreeMap<Vec<u8>, BTreeSet<Vec<u8>>>,
    /// The texts in macros of Rust.
    rust_texts: BTreeMap<Vec<u8>, Vec<String>>,
    /// Macros of Rust that other crates may call, or other files by a path.
    rust_exported: BTreeSet<Vec<u8>>,
    /// Whether a macro of Rust may give a module an attribute that it is given.
    makes_modules: bool,
    /// Whether a macro of the compiler that reads a file may be called by another name.
    hides_reader: bool,
}

impl Names {
    /// Collects the names of texts in these languages.
    pub(super) fn from_files<'a>(files: impl IntoIterator<Item = (Family, &'a [u8])>) -> Self {
        let mut names = Self::default();
        let mut rust: Vec<&[u8]> = Vec::new();
        for (family, source) in files {
            match family {
                Family::C | Family::Assembly if has(source, "define") => {
                    c::defines(source, &mut names);
                }
                Family::Go if has(source, "define") => go::defines(source, &mut names),
                Family::Rust => {
                    if has(source, "macro") {
                        names.rust(source);
                    }
                    rust.push(source);
                }
                _ => {}
            }
        }
        for (name, values) in &names.values {
            let parts = names.parts.entry(name.clone()).or_default();
            for value in values.iter().take(MAX_NAMES) {
                let (others, texts) = c::parts(value.as_bytes());
                parts.names.extend(others);
                parts.texts.extend(texts);
            }
        }
        names.pass_on(&rust);
        let knows = |reached: &BTreeSet<Vec<u8>>, part: &str| reached.contains(part.as_bytes());
        names.assemblers = names.reaching(|parts, reached| {
            let begins = |part: &&str| c::WORDS.contains(part) || knows(reached, part);
            parts.iter().any(begins)
                && parts
                    .iter()
                    .all(|part| begins(part) || c::QUALIFIERS.contains(part))
        });
        names.directives = names.reaching(|parts, reached| {
            parts
                .iter()
                .any(|part| part.eq_ignore_ascii_case("incbin") || knows(reached, part))
        });
        names
    }

    pub(super) fn add_value(&mut self, name: &[u8], value: &str) {
        let values = self.values.entry(name.to_owned()).or_default();
        values.insert(value.to_owned());
        if value.contains("##") {
            // A paste makes one word of two.
            let parts: Vec<&str> = value.split("##").map(str::trim).collect();
            values.insert(parts.concat());
        }
    }

    pub(super) fn add_c_reader(&mut self, name: &[u8]) {
        self.c_readers.insert(name.to_owned());
    }

    /// The values of a name, where there is one.
    pub(super) fn values(&self, name: &[u8]) -> Option<&BTreeSet<String>> {
        self.values.get(name)
    }

    /// The texts that a name of C stands for, in each of its values and by way of other names.
    pub(super) fn literals_of(&self, name: &[u8]) -> Vec<String> {
        if self.values(name).is_none() {
            return Vec::new();
        }
        let mut next: Vec<Vec<u8>> = vec![name.to_owned()];
        let mut seen: BTreeSet<Vec<u8>> = next.iter().cloned().collect();
        let mut out = Vec::new();
        while let Some(name) = next.pop() {
            let Some(parts) = self.parts.get(&name) else {
                continue;
            };
            out.extend(parts.texts.iter().cloned());
            for name in &parts.names {
                if seen.len() <= MAX_NAMES && seen.insert(name.clone()) {
                    next.push(name.clone());
                }
            }
        }
        out
    }

    pub(super) fn is_c_reader(&self, name: &[u8]) -> bool {
        self.c_readers.contains(name)
    }

    pub(super) fn is_rust_reader(&self, name: &[u8]) -> bool {
        self.rust_readers.contains(name)
    }

    pub(super) fn is_rust_caller(&self, name: &[u8]) -> bool {
        self.rust_callers.contains(name)
    }

    pub(super) fn has_rust(&self) -> bool {
        !self.rust_climbs.is_empty()
            || !self.rust_callers.is_empty()
            || self.makes_modules
            || self.hides_reader
    }

    pub(super) fn has_prefix(&self, name: &[u8]) -> bool {
        self.rust_prefixed.contains(name)
    }

    pub(super) fn parent_paths(&self, name: &[u8]) -> impl Iterator<Item = &str> {
        let climbs = self.rust_climbs.get(name);
        climbs.into_iter().flatten().map(String::as_str)
    }

    /// The texts of a macro of Rust, where the changed files define it.
    pub(super) fn texts(&self, name: &[u8]) -> Option<&[String]> {
        self.rust_texts.get(name).map(Vec::as_slice)
    }

    /// The macros that a macro of Rust calls, where the changed files define it.
    pub(super) fn calls(&self, name: &[u8]) -> Option<&BTreeSet<Vec<u8>>> {
        self.rust_calls.get(name)
    }

    /// Whether other files may call a macro of Rust without its being in their scope.
    pub(super) fn is_exported(&self, name: &[u8]) -> bool {
        self.rust_exported.contains(name)
    }

    /// Whether a call of a macro may pass on what it is given to one that reads a file.
    pub(super) fn may_pass_on(&self, name: &[u8]) -> bool {
        self.hides_reader || self.rust_passing.contains(name)
    }

    pub(super) fn makes_modules(&self) -> bool {
        self.makes_modules
    }

    /// Whether a name stands for the word that begins an assembler's text.
    pub(super) fn is_assembler(&self, name: &[u8]) -> bool {
        self.assemblers.contains(name)
    }

    /// Whether what a name stands for holds a directive that reads a file.
    pub(super) fn holds_directive(&self, name: &[u8]) -> bool {
        self.directives.contains(name)
    }

    /// Whether a name of C stands for what begins with a dot.
    pub(super) fn is_directive(&self, name: &[u8]) -> bool {
        let mut values = self.values(name).into_iter().flatten();
        values.any(|value| value.starts_with('.'))
    }

    /// The names of C whose value satisfies a test, given those that do already.
    fn reaching(&self, is_one: impl Fn(&[&str], &BTreeSet<Vec<u8>>) -> bool) -> BTreeSet<Vec<u8>> {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let mut reached: BTreeSet<Vec<u8>> = BTreeSet::new();
        for _ in 0..MAX_NAMES {
            let more = self.values.iter().filter(|(name, values)| {
                !reached.contains(*name)
                    && values.iter().any(|value| {
                        let parts = value.split(|c: char| !is_word(c));
                        let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
                        is_one(&parts, &reached)
                    })
            });
            let more: Vec<Vec<u8>> = more.map(|(name, _)| name.clone()).collect();
            if more.is_empty() {
                break;
            }
            reached.extend(more);
        }
        reached
    }

    /// Has macros of Rust count as what they call, and other names for a macro as the macro.
    fn pass_on(&mut self, sources: &[&[u8]]) {
        let has_readers = |source: &&&[u8]| has_any(source, &READERS);
        let is_concerned = !self.rust_climbs.is_empty() || !self.rust_callers.is_empty();
        if !is_concerned && !sources.iter().any(|source| has_readers(&source)) {
            return;
        }
        let mut aliases: BTreeSet<(Vec<u8>, Vec<u8>)> = BTreeSet::new();
        for source in sources.iter().filter(|source| has(source, "as")) {
            let masked = masked(Language::Rust, source);
            let closed = masked.without_format_fields();
            let mut tokens = tokens(&closed);
            plain_names(&mut tokens);
            let renamed = tokens.windows(3).filter(|window| window[1].is("as"));
            aliases
                .extend(renamed.map(|window| (window[2].text.to_vec(), window[0].text.to_vec())));
        }
        let is_reader = |name: &[u8]| READERS.iter().any(|reader| reader.as_bytes() == name);
        for (name, _) in aliases.iter().filter(|(_, other)| is_reader(other)) {
            self.rust_readers.insert(name.clone());
            self.rust_climbs.entry(name.clone()).or_default();
            self.hides_reader = true;
        }
        for (name, calls) in &self.rust_calls {
            aliases.extend(calls.iter().map(|called| (name.clone(), called.clone())));
        }
        let renames = |name: &Vec<u8>| !self.rust_calls.contains_key(name);
        for _ in 0..MAX_NAMES {
            let before = self.count_rust();
            for (name, other) in &aliases {
                if let Some(climbs) = self.rust_climbs.get(other).cloned() {
                    let known = self.rust_climbs.entry(name.clone()).or_default();
                    known.extend(climbs.into_iter().take(MAX_NAMES));
                }
                for set in [
                    &mut self.rust_callers,
                    &mut self.rust_passing,
                    &mut self.rust_prefixed,
                    &mut self.rust_readers,
                ] {
                    if renames(name) && set.contains(other) {
                        set.insert(name.clone());
                    }
                }
                let is_passing =
                    self.rust_readers.contains(other) || self.rust_passing.contains(other);
                if is_passing && !renames(name) {
                    self.rust_passing.insert(name.clone());
                }
            }
            if self.count_rust() == before {
                break;
            }
        }
    }

    fn count_rust(&self) -> usize {
        let climbs = self.rust_climbs.values().map(|climbs| climbs.len() + 1);
        climbs.sum::<usize>()
            + self.rust_callers.len()
            + self.rust_passing.len()
            + self.rust_readers.len()
    }

    /// Macros whose body reads what they are given, or calls a macro that they are given.
    fn rust(&mut self, source: &[u8]) {
        let masked = masked(Language::Rust, source);
        let closed = masked.without_format_fields();
        let mut tokens = tokens(&closed);
        plain_names(&mut tokens);
        let tokens = items(source, &tokens, &masked.literals);
        let kinds = MacroMatchers::from_items(&tokens);
        let is = |at: usize, word: &str| tokens.get(at).is_some_and(|token| token.is(word));
        let uses = tokens.windows(2).filter(|pair| pair[0].is("use"));
        let used: BTreeSet<&[u8]> = uses.map(|pair| pair[1].text).collect();
        // One that stands for itself, or a name that is put together, is given to a macro that may call it.
        self.hides_reader |= tokens.windows(3).any(|window| {
            let is_reader = READERS.iter().any(|word| window[1].is(word));
            let is_path = window[0].is(":") || window[0].is("use") || window[0].is(".");
            let is_given = is_reader && !window[2].is("!") && !is_path && !window[0].is("fn");
            is_given && !window[1].is("include")
                || window[0].is(">") && window[1].is("]") && window[2].is("!")
        });
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
            let (mut reads, mut calls, mut is_prefixed) = (false, false, false);
            let mut climbs = BTreeSet::new();
            let (mut called, mut texts) = (BTreeSet::new(), Vec::new());
            let mut names_module = false;
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
                    _ if token.is_literal => {
                        let text = value(token.text);
                        is_prefixed |=
                            is(end + 1, ",") && tokens.get(end + 2).is_some_and(is_variable);
                        names_module |=
                            is(end.wrapping_sub(1), "=") && is(end.wrapping_sub(2), "path");
                        if text.starts_with("..") {
                            climbs.insert(text.clone());
                        }
                        texts.push(text);
                    }
                    b"(" | b"[" | b"{" => depth += 1,
                    b")" | b"]" | b"}" => {
                        depth = depth.saturating_sub(1);
                        closed += usize::from(depth == 0);
                    }
                    text if text.starts_with(b"$") && text != b"$crate" => {
                        calls |= is(end + 1, "!") && !is(end + 2, "=");
                        let names = is(end.wrapping_sub(1), "=") && is(end.wrapping_sub(2), "path");
                        reads |= names;
                    }
                    b"include" | b"include_str" | b"include_bytes" | b"include_dir" => {
                        reads |= is(end + 1, "!")
                    }
                    b"mod" => {
                        self.makes_modules |= is_filled_before(&tokens, end, &kinds);
                    }
                    b"#" if is(end + 1, "[") => {
                        let list = inside(&tokens, end + 1);
                        self.makes_modules |= list.is_some_and(|list| {
                            has_filled_name(list)
                                && may_name_module(&tokens, end + list.len() + 3, &kinds)
                        });
                    }
                    name if is(end + 1, "!") && !is(end + 2, "=") => {
                        called.insert(name.to_vec());
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
                let before = &tokens[at.saturating_sub(MAX_BEFORE)..at];
                // `pub(crate) use name;`
                let is_used = used.contains(name.text);
                if is_used || before.iter().any(|token| token.is("macro_export")) {
                    self.rust_exported.insert(text.clone());
                }
                self.rust_calls
                    .entry(text.clone())
                    .or_default()
                    .extend(called);
                self.rust_texts
                    .entry(text.clone())
                    .or_default()
                    .extend(texts);
                if reads || names_module {
                    self.rust_climbs
                        .entry(text.clone())
                        .or_default()
                        .extend(climbs);
                }
                if reads {
                    if is_prefixed {
                        self.rust_prefixed.insert(text.clone());
                    }
                    readers.insert(text);
                } else if calls {
                    callers.insert(text);
                }
            }
            at = end;
        }
    }
}
