//! JavaScript and TypeScript: modules by their path, and what bundlers read.

use std::collections::{BTreeMap, BTreeSet};

use super::super::Language;
use super::super::mask::read as masked;
use super::super::token::tokens;
use super::*;

/// Words before the bracket of a call that has a file read, and what they are called.
const CALLS: [(&[&str], &str); 11] = [
    (&["require"], "require"),
    (&["require", ".", "resolve"], "require.resolve"),
    (&["require", ".", "context"], "require.context"),
    (&["require", ".", "resolveWeak"], "require.resolveWeak"),
    (&["import"], "import"),
    (&["import", ".", "meta", ".", "glob"], "import.meta.glob"),
    (
        &["import", ".", "meta", ".", "globEager"],
        "import.meta.globEager",
    ),
    (
        &["import", ".", "meta", ".", "resolve"],
        "import.meta.resolve",
    ),
    (
        &["import", ".", "meta", ".", "webpackContext"],
        "import.meta.webpackContext",
    ),
    (&["createRequire"], "createRequire"),
    (&["System", ".", "import"], "System.import"),
];
/// Schemes of addresses that are no files of the machine.
const SCHEMES: [&str; 12] = [
    "astro",
    "blob",
    "bun",
    "cloudflare",
    "data",
    "http",
    "https",
    "jsr",
    "node",
    "npm",
    "virtual",
    "workspace",
];

pub(super) fn read(source: &[u8], found: &mut Found<'_>) {
    if !has_any(source, &["require", "import", "from", "createRequire"]) {
        return;
    }
    let masked = masked(Language::Script, source);
    let closed = masked.closed();
    let tokens = tokens(&closed);
    let items = items(source, &tokens, &masked.literals);
    let is_at = |at: usize, word: &str| items.get(at).is_some_and(|item| item.is(word));
    // Names of a function that reads, and names that stand for one literal.
    let mut functions: BTreeSet<&[u8]> = BTreeSet::new();
    let mut values: BTreeMap<&[u8], &Item<'_>> = BTreeMap::new();
    for (at, window) in items.windows(3).enumerate() {
        let [name, equals, value] = window else {
            continue;
        };
        if name.is_literal || !equals.is("=") {
            continue;
        }
        if value.is_literal {
            values.insert(name.text, value);
        }
        let is_function = (value.is("require")
            && !["(", "."].iter().any(|mark| is_at(at + 3, mark)))
            || (value.is("createRequire") && is_at(at + 3, "("));
        if is_function && name.text != b"require" {
            functions.insert(name.text);
        }
    }
    for (at, item) in items.iter().enumerate() {
        if item.is_literal {
            continue;
        }
        let is_member = at > 0 && is_at(at - 1, ".");
        if (item.is("import") || item.is("from"))
            && !is_member
            && let Some(target) = items.get(at + 1).filter(|next| next.is_literal)
        {
            specifier("import", target, found);
            continue;
        }
        if item.is("URL") && is_at(at + 1, "(") && is_at(at + 3, ",") && is_at(at + 4, "import") {
            if let Some(target) = items.get(at + 2).filter(|next| next.is_literal) {
                specifier("new URL", target, found);
            }
            continue;
        }
        let is_call = |words: &[&str]| {
            words
                .iter()
                .enumerate()
                .all(|(offset, word)| is_at(at + offset, word))
                && is_at(at + words.len(), "(")
        };
        let known = CALLS
            .iter()
            .find(|(words, _)| is_call(words) && (!is_member || item.is("require")));
        let named = || {
            (!is_member && functions.contains(item.text) && is_at(at + 1, "("))
                .then_some((1, "require"))
        };
        let Some((length, construct)) = known
            .map(|(words, name)| (words.len(), *name))
            .or_else(named)
        else {
            continue;
        };
        match inside(&items, at + length) {
            Some(arguments) => call(construct, arguments, &values, found),
            // A first argument is all that is seen of a long call.
            None => {
                if let Some(target) = items.get(at + length + 1).filter(|next| next.is_literal) {
                    specifier(construct, target, found);
                }
            }
        }
    }
}

/// The arguments of a call that reads.
fn call(
    construct: &str,
    arguments: &[Item<'_>],
    values: &BTreeMap<&[u8], &Item<'_>>,
    found: &mut Found<'_>,
) {
    let end = arguments
        .iter()
        .position(|item| item.is(","))
        .unwrap_or(arguments.len());
    let is_glob = construct.contains("glob");
    let first = &arguments[..if is_glob { arguments.len() } else { end }];
    match first {
        [] => {}
        [literal] if literal.is_literal => specifier(construct, literal, found),
        [name] => {
            if let Some(value) = values.get(name.text) {
                specifier(construct, value, found);
            }
        }
        _ if is_glob || first.iter().any(|item| item.is("?")) => {
            let literals = first.iter().filter(|item| item.is_literal);
            literals.for_each(|literal| specifier(construct, literal, found));
        }
        _ if arguments
            .iter()
            .any(|item| item.is("__dirname") || item.is("dirname")) =>
        {
            let parts: Vec<String> = arguments.iter().filter_map(piece).collect();
            let resolves = arguments.iter().any(|item| item.is("resolve"));
            match parts.iter().find(|part| resolves && part.starts_with('/')) {
                Some(rooted) => found.path(construct, rooted),
                None => found.path(construct, parts.join("/").trim_start_matches('/')),
            }
        }
        [literal, next, ..] if literal.is_literal => {
            // A bundler may work out what a method makes of a literal.
            if next.is(".") {
                return found.unknown(construct, &written(first));
            }
            let pieces = first.iter().filter(|item| !item.is("+"));
            let text: String = pieces
                .map(|item| piece(item).unwrap_or_else(|| "x".to_owned()))
                .collect();
            target(construct, &text, found);
        }
        _ => {
            // What begins with a value that is known only when it runs is no concern of this check, but for whole paths in it.
            for (at, item) in first.iter().enumerate() {
                let is_begun = at > 0 && (first[at - 1].is("+") || first[at - 1].is("}"));
                let Some(text) = piece(item).filter(|_| !is_begun && !item.text.starts_with(b"}"))
                else {
                    continue;
                };
                let first_name = text
                    .trim_start_matches('/')
                    .split('/')
                    .next()
                    .unwrap_or_default();
                if text.starts_with("..")
                    || text.starts_with("file:")
                    || SYSTEM.contains(&first_name)
                {
                    found.path(construct, &text);
                }
            }
        }
    }
}

/// The text of a literal or of a piece of a template.
fn piece(item: &Item<'_>) -> Option<String> {
    item.is_literal.then(|| match item.text.first() {
        Some(b'`' | b'}') => {
            let text = String::from_utf8_lossy(item.text);
            text.trim_matches(['`', '}'])
                .trim_end_matches("${")
                .to_owned()
        }
        _ => value(item.text),
    })
}

/// A literal that names a module.
fn specifier(construct: &str, literal: &Item<'_>, found: &mut Found<'_>) {
    let Some(text) = piece(literal) else { return };
    let before = found.list.len();
    target(construct, &text, found);
    let lower = text.to_ascii_lowercase();
    let is_coded = lower.contains("%2e") || lower.contains("%2f") || lower.contains("%5c");
    if found.list.len() == before && (literal.text.contains(&b'\\') || is_coded) {
        found.unknown(construct, &String::from_utf8_lossy(literal.text));
    }
}

/// Judges the name of a module: every loader's part of it, without what follows a question mark.
fn target(construct: &str, text: &str, found: &mut Found<'_>) {
    for part in text.split('!').filter(|part| !part.is_empty()) {
        let part = part.split('?').next().unwrap_or_default();
        let is_scheme = |name: &str| {
            name.len() > 1
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.'))
        };
        let part = match part.split_once(':').filter(|(name, _)| is_scheme(name)) {
            Some((name, _)) if SCHEMES.contains(&name) => continue,
            Some(("file", _)) => {
                found.path(construct, part);
                continue;
            }
            Some((_, rest)) => rest,
            None => part,
        };
        if part.starts_with("//") {
            continue;
        }
        if part.starts_with('/') {
            found.rooted(construct, part);
        } else if part.starts_with('.') {
            found.path(construct, part);
        } else {
            // A package, or a name that the bundler gives to a directory of the repository.
            let depth = usize::from(!part.starts_with(['~', '@', '#']));
            if leaves(part, depth) && part.contains("..") {
                found.outside(construct, part);
            }
        }
    }
}
