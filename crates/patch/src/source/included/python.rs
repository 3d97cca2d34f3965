//! Python: functions that run or load the file of a path, the places that modules are searched in, and what Cython compiles.
//!
//! Python computes paths and names when it runs. So only the plain forms are read: a call by its own name with a path in it.

use super::super::Language;
use super::super::mask::read as masked;
use super::super::token::tokens;
use super::c;
use super::found::{Found, is_place, leaves};
use super::item::{Item, MAX_WORDS, has_any, inside, items};
use super::names::Names;

/// Functions that run or load the file of a path.
const LOADERS: [&str; 13] = [
    "ExtensionFileLoader",
    "FileFinder",
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
    "zipimporter",
];
/// Places that modules are searched in, by their last name.
const SEARCHED: [&str; 2] = ["__path__", "submodule_search_locations"];
/// Functions that run a text, which may be that of a file.
const RUNNERS: [&str; 3] = ["compile", "eval", "exec"];
/// Methods of texts that take texts which are not paths.
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
/// Methods of the searched places that add none.
const ASKING: [&str; 5] = ["copy", "count", "index", "pop", "remove"];

pub(super) fn read(source: &[u8], names: &Names, found: &mut Found<'_>) {
    let others = ["distutils", "extern", "sys"];
    let words = [&LOADERS[..], &RUNNERS, &SEARCHED, &others];
    if !words.iter().any(|words| has_any(source, words)) {
        return;
    }
    let mut masked = masked(Language::Python, source);
    join_lines(&mut masked.open);
    let tokens = tokens(&masked.open);
    let items = items(source, &tokens, &masked.literals);
    let mut lines = source.to_vec();
    join_lines(&mut lines);
    let is_at = |at: usize, word: &str| items.get(at).is_some_and(|item| item.is(word));
    for (at, item) in items.iter().enumerate() {
        if item.is_literal {
            continue;
        }
        let is_called = is_at(at + 1, "(");
        let is_member = at > 0 && is_at(at - 1, ".");
        let is_of = |module: &str| is_member && at >= 2 && is_at(at - 2, module);
        let loader = LOADERS.into_iter().find(|name| item.is(name));
        let runner = RUNNERS.into_iter().find(|name| item.is(name));
        let runner = runner.filter(|_| !is_member || is_of("builtins"));
        if let Some(name) = loader.filter(|_| is_called) {
            match inside(&items, at + 1) {
                Some(arguments) => judge(name, arguments, |_, _| true, found),
                None => found.report_unknown(name, "a long expression"),
            }
        } else if let Some(name) = runner.filter(|_| is_called) {
            let arguments = inside(&items, at + 1).unwrap_or_default();
            judge(name, arguments, is_argument, found);
        } else if item.is("path") && is_of("sys") {
            searched("sys.path", &items, at, &lines, found);
        } else if let Some(name) = SEARCHED.iter().find(|name| item.is(name)) {
            searched(name, &items, at, &lines, found);
        } else if item.is("extern") && is_at(at + 1, "from") {
            // Cython has a header included.
            if let Some(target) = items.get(at + 2).and_then(Item::value) {
                found.path("extern", &target);
            }
        }
    }
    if found
        .path
        .extension()
        .is_some_and(|ending| CYTHON.contains(&ending))
    {
        cython(source, &items, names, found);
    }
}

const CYTHON: [&str; 3] = ["pxd", "pxi", "pyx"];

/// What Cython compiles: the paths in comments for its compiler, and the code of C in texts.
fn cython(source: &[u8], items: &[Item<'_>], names: &Names, found: &mut Found<'_>) {
    for line in String::from_utf8_lossy(source).lines() {
        let comment = line.trim_start().strip_prefix('#').map(str::trim_start);
        let Some(settings) = comment.and_then(|comment| comment.strip_prefix("distutils:")) else {
            continue;
        };
        for word in settings.split([' ', '\t', ',', '=', '"', '\'', '[', ']']) {
            let is_path = word.contains("..") || is_place(word.trim_start_matches("-I"));
            if is_path && !word.starts_with("/usr/") {
                found.path("distutils", word.trim_start_matches("-I"));
            }
        }
    }
    for code in items
        .iter()
        .filter_map(Item::value)
        .filter(|text| text.contains('\n'))
    {
        c::read(code.as_bytes(), names, found);
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

/// Judges what is added to the places that modules are searched in.
fn searched(construct: &str, items: &[Item<'_>], at: usize, source: &[u8], found: &mut Found<'_>) {
    let is = |at: usize, word: &str| items.get(at).is_some_and(|item| item.is(word));
    let mut next = at + 1;
    if is(next, "[") {
        // A part of it: `sys.path[:0] = …`
        next = inside(items, next).map_or(items.len(), |list| next + list.len() + 2);
    } else if is(next, ".") && is(next + 2, "(") {
        if !ASKING.iter().any(|word| is(next + 1, word)) {
            match inside(items, next + 2) {
                Some(arguments) => judge(construct, arguments, |_, _| true, found),
                None => found.report_unknown(construct, "a long expression"),
            }
        }
        return;
    }
    let value = match () {
        () if is(next, "=") && !is(next + 1, "=") => next + 1,
        () if is(next, "+") && is(next + 1, "=") => next + 2,
        () => return,
    };
    let mut end = value;
    let mut depth = 0usize;
    while let Some(item) = items.get(end).filter(|_| end < value + MAX_WORDS) {
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
}

/// Whether the statement ends behind the item at `at`.
fn ends_line(items: &[Item<'_>], at: usize, source: &[u8]) -> bool {
    let end = items[at].at + items[at].text.len();
    items.get(at + 1).is_none_or(|next| {
        let between = source.get(end..next.at);
        next.is(";") || between.is_some_and(|between| between.contains(&b'\n'))
    })
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
