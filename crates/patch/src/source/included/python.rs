//! Python: functions that run or load the file of a path, and the places that modules are searched in.

use super::super::Language;
use super::super::mask::read as masked;
use super::super::token::tokens;
use super::*;

/// Functions that run or load the file of a path.
const LOADERS: [&str; 8] = [
    "ExtensionFileLoader",
    "SourceFileLoader",
    "SourcelessFileLoader",
    "addsitedir",
    "execfile",
    "load_source",
    "run_path",
    "spec_from_file_location",
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
/// Ways to change where modules are searched.
const SEARCHED: [&str; 3] = ["append", "extend", "insert"];

pub(super) fn read(source: &[u8], found: &mut Found<'_>) {
    if !has_any(source, &LOADERS)
        && !has_any(source, &RUNNERS)
        && !has(source, "sys")
        && !has(source, "extern")
    {
        return;
    }
    let masked = masked(Language::Python, source);
    let tokens = tokens(&masked.open);
    let items = items(source, &tokens, &masked.literals);
    let is_at = |at: usize, word: &str| items.get(at).is_some_and(|item| item.is(word));
    for (at, item) in items.iter().enumerate() {
        let name = String::from_utf8_lossy(item.text);
        if item.is_literal {
            continue;
        }
        if LOADERS.contains(&&*name) && is_at(at + 1, "(") {
            judge(
                &name,
                inside(&items, at + 1).unwrap_or_default(),
                |_, _| true,
                found,
            );
        } else if RUNNERS.contains(&&*name) && is_at(at + 1, "(") && !(at > 0 && is_at(at - 1, "."))
        {
            // The text itself is no path, and neither is the name that `compile` gives it.
            let is_argument = |arguments: &[Item<'_>], at: usize| {
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
            };
            judge(
                &name,
                inside(&items, at + 1).unwrap_or_default(),
                is_argument,
                found,
            );
        } else if item.is("path") && at >= 2 && is_at(at - 1, ".") && is_at(at - 2, "sys") {
            let open = match () {
                () if is_at(at + 1, ".") && SEARCHED.iter().any(|word| is_at(at + 2, word)) => {
                    at + 3
                }
                () if is_at(at + 1, "=") && is_at(at + 2, "[") => at + 2,
                () if is_at(at + 1, "+") && is_at(at + 2, "=") && is_at(at + 3, "[") => at + 3,
                () => continue,
            };
            if is_at(open, "(") || is_at(open, "[") {
                judge(
                    "sys.path",
                    inside(&items, open).unwrap_or_default(),
                    |_, _| true,
                    found,
                );
            }
        } else if item.is("extern") && is_at(at + 1, "from") {
            // Cython has a header included.
            if let Some(target) = items.get(at + 2).and_then(Item::value) {
                found.path("extern", &target);
            }
        }
    }
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
