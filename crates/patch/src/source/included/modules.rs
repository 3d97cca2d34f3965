//! Modules of Rust: the directories of nested ones, and attributes that a macro gives them.

use std::collections::{BTreeMap, BTreeSet};

use crucible_model::RepoPath;

use super::found::{Reach, leaves};
use super::item::{Item, inside};

/// How many words may stand between an attribute and its item.
const MAX_BEFORE: usize = 64;
/// Files whose modules lie beside them.
const ROOTS: [&str; 4] = ["build.rs", "lib.rs", "main.rs", "mod.rs"];

/// The inline modules around a place.
pub(super) struct Modules {
    /// How many directories the file lies in.
    depth: usize,
    /// The directory that inline modules of the file begin with, where there may be one.
    own: Option<String>,
    /// For each open brace the directory of its module, and whether an attribute names it.
    open: Vec<Option<(String, bool)>>,
    /// The path that an attribute gives the next module.
    pub(super) next: Option<String>,
    starts: Option<(String, bool)>,
}

impl Modules {
    pub(super) fn new(path: &RepoPath) -> Self {
        let file = path.segments().next_back().unwrap_or_default();
        let own = file.strip_suffix(".rs").filter(|_| !ROOTS.contains(&file));
        Self {
            depth: path.segments().count() - 1,
            own: own.map(str::to_owned),
            open: Vec::new(),
            next: None,
            starts: None,
        }
    }

    /// Takes note of the item at `at`; the items are passed in order.
    pub(super) fn visit(&mut self, items: &[Item<'_>], at: usize) {
        let is = |at: usize, word: &str| items.get(at).is_some_and(|item| item.is(word));
        if is(at, "mod") && is(at + 2, "{") {
            let input = self.next.take();
            let is_given = input.is_some();
            let name = || String::from_utf8_lossy(items[at + 1].text).into_owned();
            self.starts = Some((input.unwrap_or_else(name), is_given));
        } else if is(at, "{") {
            self.open.push(self.starts.take());
        } else if is(at, "}") {
            self.open.pop();
            self.next = None;
        } else if is(at, ";") {
            self.next = None;
        }
    }

    /// Takes note of a path that an inline module is given inside of it.
    pub(super) fn name_around(&mut self, path: String) {
        if let Some(Some(around)) = self.open.last_mut() {
            *around = (path, true);
        }
    }

    /// Where the file of a module lies that is given this path here.
    pub(super) fn judge(&self, path: &str) -> Option<Reach> {
        let around: Vec<&(String, bool)> = self.open.iter().flatten().collect();
        let is_under_own = around.first().is_some_and(|(_, is_given)| !is_given);
        let joined = |own: Option<&String>| {
            let mut all = String::new();
            // A path from the root stands for itself.
            for part in own
                .into_iter()
                .chain(around.iter().map(|(part, _)| part))
                .map(String::as_str)
                .chain([path])
            {
                if part.starts_with('/') {
                    all.clear();
                } else if !all.is_empty() {
                    all.push('/');
                }
                all.push_str(part);
            }
            leaves(&all, self.depth)
        };
        // Whether the file has a directory of its own cannot be told: it may be the root of a crate.
        match (joined(None), is_under_own && self.own.is_some()) {
            (false, _) => None,
            (true, true) if !joined(self.own.as_ref()) => Some(Reach::Unknown),
            (true, _) => Some(Reach::Outside),
        }
    }
}

/// Whether a macro fills something in here.
pub(super) fn is_variable(item: &Item<'_>) -> bool {
    !item.is_literal && item.text.starts_with(b"$") && item.text.len() > 1 && item.text != b"$crate"
}

/// Whether the name of an attribute, or of one behind a condition, is filled in. What a macro matches (`$m:meta`) is not.
pub(super) fn has_filled_name(list: &[Item<'_>]) -> bool {
    let is = |at: usize, word: &str| list.get(at).is_some_and(|item| item.is(word));
    let starts = |at: usize| {
        // A repetition begins the name that stands in it.
        let mut at = at;
        while is(at, "$") && is(at + 1, "(") {
            at += 2;
        }
        let is_matched = is(at + 1, ":") && !is(at + 2, ":");
        list.get(at).is_some_and(is_variable) && !is_matched
    };
    let is_conditional = is(0, "cfg_attr");
    starts(0)
        || is_conditional
            && (2..list.len()).any(|at| {
                let begins = is(at - 1, ",") || is(at - 1, "$") || is(at - 1, "(") && at > 2;
                // The values of a condition are not names: `cfg_attr(feature = $f, …)`.
                begins && starts(at) && list[..at].iter().any(|item| item.is(","))
            })
}

/// Whether the item behind the attribute that ends before `at` is a module, or one that a macro fills in.
pub(super) fn may_name_module(items: &[Item<'_>], at: usize, kinds: &MacroMatchers<'_>) -> bool {
    const BETWEEN: [&str; 14] = [
        "$", "(", ")", "*", "+", "?", "crate", "in", "pub", "self", "super", "unsafe", ":", "priv",
    ];
    let mut has_variable = false;
    // One name alone is not an item.
    let mut is_name = false;
    let mut next = at;
    while let Some(item) = items.get(next).filter(|_| next < at + MAX_BEFORE) {
        if item.is("mod") {
            return true;
        }
        if item.is("#") && items.get(next + 1).is_some_and(|open| open.is("[")) {
            next += inside(items, next + 1).map_or(2, |list| list.len() + 3);
            has_variable = false;
        } else if is_variable(item) {
            is_name = !has_variable && kinds.is_part(item);
            has_variable = true;
            next += 1;
        } else if BETWEEN.iter().any(|word| item.is(word)) && !(has_variable && item.is(":")) {
            next += 1;
        } else {
            return has_variable && !is_name && (item.is("}") || item.is(";"));
        }
    }
    has_variable
}

/// Whether something that a macro fills in, and that is not a visibility, stands directly before the `mod` at `at`.
pub(super) fn is_filled_before(items: &[Item<'_>], at: usize, kinds: &MacroMatchers<'_>) -> bool {
    let Some(before) = at.checked_sub(1).and_then(|before| items.get(before)) else {
        return false;
    };
    let is_group = || {
        // `$($a)* mod x`
        let close = at.checked_sub(2).and_then(|close| items.get(close));
        let inner = at.checked_sub(3).and_then(|inner| items.get(inner));
        ["*", "+", "?"].iter().any(|mark| before.is(mark))
            && close.is_some_and(|close| close.is(")"))
            && inner.is_some_and(|inner| is_variable(inner) && !kinds.is_visibility(inner))
    };
    // `$hash [$($a)*] mod x`
    let is_bracketed = || {
        let from = at.saturating_sub(MAX_BEFORE);
        let open = (from..at).rev().find(|open| items[*open].is("["));
        before.is("]")
            && open
                .and_then(|open| open.checked_sub(1))
                .is_some_and(|mark| is_variable(&items[mark]))
    };
    is_variable(before) && !kinds.is_visibility(before) || is_group() || is_bracketed()
}

/// What the macros of a text match its variables with.
pub(super) struct MacroMatchers<'a> {
    matchers: BTreeMap<&'a [u8], BTreeSet<&'a [u8]>>,
}

impl<'a> MacroMatchers<'a> {
    pub(super) fn from_items(items: &[Item<'a>]) -> Self {
        let mut kinds: BTreeMap<&[u8], BTreeSet<&[u8]>> = BTreeMap::new();
        for window in items.windows(3) {
            if let [name, colon, kind] = window
                && is_variable(name)
                && colon.is(":")
                && !kind.is(":")
            {
                kinds.entry(name.text).or_default().insert(kind.text);
            }
        }
        Self { matchers: kinds }
    }

    /// Whether every macro matches a variable with one of these kinds.
    fn is_one_of(&self, variable: &Item<'_>, kinds: &[&str]) -> bool {
        let known = self.matchers.get(variable.text);
        known.is_some_and(|known| {
            let is_one = |kind: &&[u8]| kinds.iter().any(|one| one.as_bytes() == *kind);
            known.iter().all(is_one)
        })
    }

    fn is_visibility(&self, variable: &Item<'_>) -> bool {
        self.is_one_of(variable, &["vis"])
    }

    /// Whether a variable is no more than a part of an item.
    fn is_part(&self, variable: &Item<'_>) -> bool {
        const PARTS: [&str; 8] = [
            "block", "expr", "ident", "lifetime", "literal", "pat", "path", "ty",
        ];
        self.is_one_of(variable, &PARTS)
    }
}
