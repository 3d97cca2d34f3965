//! Python: functions that run or load the file of a path, and the places that modules are searched in.

use std::collections::{BTreeMap, BTreeSet};

use super::super::Language;
use super::super::mask::read as masked;
use super::super::token::tokens;
use super::*;

/// Functions that run or load the file of a path.
const LOADERS: [&str; 15] = [
    "ExtensionFileLoader",
    "FileFinder",
    "PathFinder",
    "SourceFileLoader",
    "SourcelessFileLoader",
    "addsitedir",
    "execfile",
    "load_compiled",
    "load_dynamic",
    "load_package",
    "load_source",
    "run_path",
    "spec_from_file_location",
    "submodule_search_locations",
    "zipimporter",
];
/// Functions that run a text, which may be that of a file.
const RUNNERS: [&str; 3] = ["compile", "eval", "exec"];
/// Methods of texts that take texts which are no paths.
const METHODS: [&str; 12] = [
    "count",
    "endswith",
    "find",
    "format",
    "get",
    "join",
    "lstrip",
    "partition",
    "replace",
    "split",
    "startswith",
    "strip",
];
/// Methods of the searched places that only tell what they are.
const ASKING: [&str; 5] = ["copy", "count", "index", "pop", "remove"];
/// Functions that are given the searched places to read them.
const READING: [&str; 11] = [
    "copy",
    "enumerate",
    "iter",
    "join",
    "len",
    "list",
    "print",
    "repr",
    "set",
    "str",
    "tuple",
];

/// What the text calls the names that load.
#[derive(Default)]
struct Aliases<'a> {
    /// Functions that run or load the file of a path.
    loaders: BTreeMap<&'a [u8], &'static str>,
    /// Functions that run a text.
    runners: BTreeMap<&'a [u8], &'static str>,
    /// The module `sys`.
    systems: BTreeSet<&'a [u8]>,
    /// The module `builtins`.
    builtins: BTreeSet<&'a [u8]>,
    /// The places that modules are searched in.
    searched: BTreeSet<&'a [u8]>,
}

impl<'a> Aliases<'a> {
    fn of(items: &[Item<'a>], source: &[u8]) -> Self {
        let mut aliases = Self {
            systems: BTreeSet::from([b"sys".as_slice()]),
            builtins: BTreeSet::from([b"builtins".as_slice(), b"__builtins__"]),
            ..Self::default()
        };
        for at in 0..items.len() {
            let Some((name, alias)) = other_name(items, at, source) else {
                continue;
            };
            let is_member = at > 0 && items[at - 1].is(".");
            let text = name.text;
            if let Some(loader) = LOADERS.iter().find(|loader| name.is(loader)) {
                aliases.loaders.insert(alias, loader);
            } else if let Some(runner) = RUNNERS.iter().find(|runner| name.is(runner))
                && (!is_member || aliases.is_of_builtins(items, at))
            {
                aliases.runners.insert(alias, runner);
            } else if aliases.systems.contains(text) && !is_member {
                aliases.systems.insert(alias);
            } else if aliases.builtins.contains(text) && !is_member {
                aliases.builtins.insert(alias);
            } else if aliases.is_searched(items, at) {
                aliases.searched.insert(alias);
            }
        }
        // `from sys import path`
        for (at, item) in items.iter().enumerate() {
            if item.is("path") && imported_from(items, at, b"sys") {
                let is_renamed = items.get(at + 1).is_some_and(|next| next.is("as"));
                let alias = items.get(at + if is_renamed { 2 } else { 0 });
                aliases.searched.extend(alias.map(|alias| alias.text));
            }
        }
        aliases
    }

    fn is_of_builtins(&self, items: &[Item<'_>], at: usize) -> bool {
        at >= 2 && items[at - 1].is(".") && self.builtins.contains(items[at - 2].text)
    }

    /// Whether the places that modules are searched in end here: `sys.path`, `__path__`, or another name for them.
    fn is_searched(&self, items: &[Item<'_>], at: usize) -> bool {
        let item = &items[at];
        if item.is_literal {
            return false;
        }
        let is_member = at > 0 && items[at - 1].is(".");
        if item.is("__path__") {
            return true;
        }
        if !is_member {
            return self.searched.contains(item.text);
        }
        let of = at.checked_sub(2).map(|of| &items[of]);
        item.is("path")
            && of.is_some_and(|of| {
                let is_system = !of.is_literal && self.systems.contains(of.text);
                // `__import__("sys").path`
                let is_looked_up = (of.is(")") || of.is("]"))
                    && at >= 3
                    && items[at - 3].value().is_some_and(|name| name == "sys");
                is_system || is_looked_up
            })
    }
}

/// The name that ends at `at`, where another one is given to it: `… as x`, or `x = …` where nothing follows.
fn other_name<'i, 'a>(
    items: &'i [Item<'a>],
    at: usize,
    source: &[u8],
) -> Option<(&'i Item<'a>, &'a [u8])> {
    let name = items.get(at).filter(|item| !item.is_literal)?;
    let is = |at: usize, word: &str| items.get(at).is_some_and(|item| item.is(word));
    if is(at + 1, "as") {
        return items.get(at + 2).map(|alias| (name, alias.text));
    }
    if !ends_line(items, at, source) {
        return None;
    }
    let mut start = at;
    while start >= 2 && items[start - 1].is(".") {
        start -= 2;
    }
    let equals = start.checked_sub(1).filter(|equals| is(*equals, "="))?;
    let alias = equals.checked_sub(1).and_then(|alias| items.get(alias))?;
    let is_word = alias
        .text
        .first()
        .is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_');
    (is_word && !alias.is_literal).then_some((name, alias.text))
}

/// Whether the statement ends behind the item at `at`.
fn ends_line(items: &[Item<'_>], at: usize, source: &[u8]) -> bool {
    let end = items[at].at + items[at].text.len();
    items.get(at + 1).is_none_or(|next| {
        next.is(";")
            || source
                .get(end..next.at)
                .is_some_and(|between| between.contains(&b'\n'))
    })
}

/// Whether the name at `at` is imported from this module.
fn imported_from(items: &[Item<'_>], at: usize, module: &[u8]) -> bool {
    let before = items[..at].iter().rev().take(MOST_WORDS);
    let mut list = before.skip_while(|item| {
        !item.is("import") && !item.is_literal && !item.is("=") && !item.is(".")
    });
    list.next().is_some_and(|item| item.is("import"))
        && list.next().is_some_and(|item| item.text == module)
        && list.next().is_some_and(|item| item.is("from"))
}

pub(super) fn read(source: &[u8], found: &mut Found<'_>) {
    if !has_any(source, &LOADERS)
        && !has_any(source, &RUNNERS)
        && !has_any(source, &["sys", "extern", "__path__"])
    {
        return;
    }
    let mut masked = masked(Language::Python, source);
    join_lines(&mut masked.open);
    let tokens = tokens(&masked.open);
    let items = items(source, &tokens, &masked.literals);
    let mut lines = source.to_vec();
    join_lines(&mut lines);
    let source = lines.as_slice();
    let aliases = Aliases::of(&items, source);
    let is_at = |at: usize, word: &str| items.get(at).is_some_and(|item| item.is(word));
    // Uses of a name that loads of which nobody can tell what they come to.
    let mut others: BTreeSet<&str> = BTreeSet::new();
    for (at, item) in items.iter().enumerate() {
        if item.is_literal {
            others.extend(looked_up(&items, at, &aliases));
            continue;
        }
        let is_member = at > 0 && is_at(at - 1, ".");
        let loader = LOADERS.iter().copied().find(|name| item.is(name));
        let alias = || aliases.loaders.get(item.text).copied();
        let runner = RUNNERS.iter().copied().find(|name| item.is(name));
        let other_runner = || aliases.runners.get(item.text).copied();
        if let Some(name) = loader.or_else(|| alias().filter(|_| !is_member)) {
            if is_at(at + 1, "(") {
                match inside(&items, at + 1) {
                    Some(arguments) => judge(name, arguments, |_, _| true, found),
                    None => found.unknown(name, "a long expression"),
                }
            } else if !is_plain(&items, at, source) {
                others.insert(name);
            }
        } else if let Some(name) = runner
            .or_else(other_runner)
            .filter(|_| !is_member || aliases.is_of_builtins(&items, at))
        {
            if is_at(at + 1, "(") {
                judge(
                    name,
                    inside(&items, at + 1).unwrap_or_default(),
                    is_argument,
                    found,
                );
            } else if name != "compile" && !is_plain(&items, at, source) {
                others.insert(name);
            }
        } else if aliases.is_searched(&items, at) {
            others.extend(searched(&items, at, source, found));
        } else if item.is("extern") && is_at(at + 1, "from") {
            // Cython has a header included.
            if let Some(target) = items.get(at + 2).and_then(Item::value) {
                found.path("extern", &target);
            }
        }
    }
    if others.is_empty() {
        return;
    }
    let texts: BTreeSet<String> = items.iter().filter_map(Item::value).collect();
    let depth = found.depth;
    let is_outside = |text: &str| is_place(text) && (text.starts_with('~') || leaves(text, depth));
    for text in texts.iter().filter(|text| is_outside(text)) {
        for name in &others {
            found.unknown(&format!("another use of {name}"), text);
        }
    }
}

/// Blanks each backslash by which a line goes on, and the end of that line.
fn join_lines(code: &mut [u8]) {
    for at in 0..code.len() {
        let end = match code.get(at..) {
            Some([b'\\', b'\n', ..]) => at + 1,
            Some([b'\\', b'\r', b'\n', ..]) => at + 2,
            _ => continue,
        };
        code[at..=end].fill(b' ');
    }
}

/// Whether a literal among the arguments of a function that runs a text is the path of a file: neither the text itself nor the name that
/// `compile` gives it.
fn is_argument(arguments: &[Item<'_>], at: usize) -> bool {
    // Behind a comma: a further part of the same path.
    let mut at = at;
    while at >= 2 && arguments[at - 1].is(",") && arguments[at - 2].is_literal {
        at -= 2;
    }
    at >= 2
        && arguments[at - 1].is("(")
        && !arguments[at - 2].is_literal
        && !METHODS
            .iter()
            .chain(&RUNNERS)
            .any(|name| arguments[at - 2].is(name))
}

/// Whether a name that loads and is not called is understood: it is imported, defined, given another name, or the name of an argument.
fn is_plain(items: &[Item<'_>], at: usize, source: &[u8]) -> bool {
    let is = |at: usize, word: &str| items.get(at).is_some_and(|item| item.is(word));
    let before = |word: &str| at > 0 && is(at - 1, word);
    let in_import = || {
        let list = (0..at).rev().take(MOST_WORDS);
        let mut words = list.skip_while(|word| {
            let item = &items[*word];
            let goes_on = item.is(",") || item.is("(");
            let is_name = item.is("as") || is_word(item) && !item.is("import");
            goes_on || is_name && !ends_line(items, *word, source)
        });
        words.next().is_some_and(|word| items[word].is("import"))
    };
    other_name(items, at, source).is_some()
        || before("def")
        || before("class")
        || is(at + 1, "=") && !is(at + 2, "=")
        || is(at + 1, ":")
        || in_import()
}

fn is_word(item: &Item<'_>) -> bool {
    let first = item.text.first();
    !item.is_literal && first.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

/// The name that loads, where the literal at `at` looks it up: `getattr(runpy, "run_path")`, `vars(sys)["path"]`.
fn looked_up(items: &[Item<'_>], at: usize, aliases: &Aliases<'_>) -> Option<&'static str> {
    let name = items[at].value()?;
    let is = |at: usize, word: &str| items.get(at).is_some_and(|item| item.is(word));
    let looks = at > 0 && (is(at - 1, ",") || is(at - 1, "[") || is(at - 1, "("));
    let near = &items[at.saturating_sub(6)..at];
    let is_of = |modules: &BTreeSet<&[u8]>| {
        near.iter().any(|item| {
            !item.is_literal && modules.contains(item.text)
                || item
                    .value()
                    .is_some_and(|name| modules.contains(name.as_bytes()))
        })
    };
    let is_got = near.iter().any(|item| {
        [
            "getattr",
            "setattr",
            "attrgetter",
            "vars",
            "__dict__",
            "__getattribute__",
        ]
        .iter()
        .any(|word| item.is(word))
    });
    if !looks || !is_got {
        return None;
    }
    let loader = LOADERS.iter().copied().find(|loader| name == *loader);
    let runner = RUNNERS.iter().copied().find(|runner| name == *runner);
    loader
        .or_else(|| runner.filter(|_| is_of(&aliases.builtins)))
        .or_else(|| (name == "path" && is_of(&aliases.systems)).then_some("sys.path"))
}

/// Judges a use of the places that modules are searched in; gives their name where the use is not understood.
fn searched(
    items: &[Item<'_>],
    at: usize,
    source: &[u8],
    found: &mut Found<'_>,
) -> Option<&'static str> {
    let is = |at: usize, word: &str| items.get(at).is_some_and(|item| item.is(word));
    let construct = match items[at].is("__path__") {
        true => "__path__",
        false => "sys.path",
    };
    let mut next = at + 1;
    if is(next, "[") {
        // A part of it: `sys.path[:0] = …`
        next = inside(items, next).map_or(items.len(), |list| next + list.len() + 2);
    } else if is(next, ".") && is(next + 2, "(") {
        if !ASKING.iter().any(|word| is(next + 1, word)) {
            match inside(items, next + 2) {
                Some(arguments) => judge(construct, arguments, |_, _| true, found),
                None => found.unknown(construct, "a long expression"),
            }
        }
        return None;
    }
    let is_of_package = items[at].is("__path__") && at > 0 && is(at - 1, ".");
    let value = match () {
        () if is(next, "=") && !is(next + 1, "=") => next + 1,
        () if is(next, "+") && is(next + 1, "=") => next + 2,
        // The places of a package are often handed on to be read.
        () if is_of_package => return None,
        () => {
            // `x in sys.path`, `len(sys.path)`, `for x in sys.path:`
            let mut start = at;
            while start >= 2 && items[start - 1].is(".") {
                start -= 2;
            }
            let before = start.checked_sub(1).and_then(|before| items.get(before));
            let is_read = before.is_some_and(|before| {
                before.is("in")
                    || before.is("return")
                    || before.is("import")
                    || before.is("=") && ends_line(items, at, source)
            }) || before.is_some_and(|before| before.is("("))
                && start >= 2
                && READING.iter().any(|word| items[start - 2].is(word));
            let is_part = next > at + 1 && !is(next, ".");
            let is_imported = items[at].is("path") && imported_from(items, at, b"sys");
            let is_named =
                is(next, "as") || before.is_some_and(|before| before.is("as")) || is_imported;
            return (!is_read && !is_part && !is_named).then_some(construct);
        }
    };
    let mut end = value;
    let mut depth = 0usize;
    while let Some(item) = items.get(end).filter(|_| end < value + MOST_WORDS) {
        match item.text {
            _ if item.is_literal => {}
            b"(" | b"[" | b"{" => depth += 1,
            b")" | b"]" | b"}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        end += 1;
        if depth == 0 && ends_line(items, end - 1, source) {
            break;
        }
    }
    let elements = match items[value..end].split_first() {
        Some((open, rest)) if open.is("[") || open.is("(") => rest,
        _ => &items[value..end],
    };
    judge(construct, elements, |_, _| true, found);
    None
}

/// Judges the paths among arguments. Neighbours that a comma divides are parts of one path where a function joins them.
fn judge(
    construct: &str,
    arguments: &[Item<'_>],
    is_path: impl Fn(&[Item<'_>], usize) -> bool,
    found: &mut Found<'_>,
) {
    let mut joined = String::new();
    let mut depth = 0usize;
    for (at, argument) in arguments.iter().enumerate() {
        let Some(target) = argument.value() else {
            match argument.text {
                b"(" => depth += 1,
                b")" => depth = depth.saturating_sub(1),
                _ => {}
            }
            if !argument.is(",") && !argument.is("+") {
                joined.clear();
            }
            continue;
        };
        if !is_path(arguments, at) {
            continue;
        }
        // What follows a value that is known only when it runs goes on in it.
        let target = match (at > 0 && arguments[at - 1].is("+"), joined.is_empty()) {
            (true, true) => target.trim_start_matches('/').to_owned(),
            (true, false) => std::mem::take(&mut joined) + &target,
            (false, _) => target,
        };
        if target.starts_with('~') {
            found.outside(construct, &target);
            continue;
        }
        if depth == 0 || joined.is_empty() || target.starts_with('/') {
            joined = target;
        } else {
            joined = format!("{joined}/{target}");
        }
        if joined.len() > 1 && leaves(&joined, found.depth) {
            found.outside(construct, &joined);
            joined.clear();
        }
    }
}
