//! JavaScript and TypeScript: modules by their path, and what bundlers read.

use std::collections::{BTreeMap, BTreeSet};

use super::super::mask::{Masked, read as masked};
use super::super::token::tokens;
use super::super::{Language, grammar};
use super::*;

/// Words before the bracket of a call that has a file read, and what they are called.
const CALLS: [(&[&str], &str); 18] = [
    (&["require"], "require"),
    (&["requireActual"], "requireActual"),
    (&["requireMock"], "requireMock"),
    (&["importActual"], "importActual"),
    (&["importMock"], "importMock"),
    (&["jest", ".", "mock"], "jest.mock"),
    (&["jest", ".", "doMock"], "jest.doMock"),
    (&["vi", ".", "mock"], "vi.mock"),
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
/// Of these, the ones that are methods.
const METHODS: [&str; 5] = [
    "importActual",
    "importMock",
    "require",
    "requireActual",
    "requireMock",
];
/// Properties of `require` that read nothing.
const PROPERTIES: [&str; 12] = [
    "async",
    "cache",
    "config",
    "context",
    "d",
    "e",
    "ensure",
    "extensions",
    "main",
    "r",
    "resolve",
    "resolveWeak",
];
/// How many blanks may stand before a literal that is looked for anywhere, and how long it may be.
const MOST_BLANKS: usize = 256;
const MOST_PATH: usize = 1024;
/// How many words the types of a call may have.
const MOST_TYPES: usize = 64;
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
    if !has_any(
        source,
        &["require", "import", "from", "mock", "Mock", "<reference"],
    ) {
        return;
    }
    references(source, found);
    let usual = masked(Language::Script, source);
    reading(source, &usual, found);
    let usual_code = usual.closed();
    // Only the grammar tells for certain where a text of JSX or a regular expression ends.
    if usual.has_slash
        && let Some(other) = grammar::script(source).filter(|other| other.open != usual.open)
    {
        let known = std::mem::take(&mut found.list);
        reading(source, &other, found);
        found.list = union(known, std::mem::take(&mut found.list));
    }
    hidden(source, &usual_code, found);
}

/// Uses that the usual reading does not see, unless the grammar takes them for a comment, a text or a literal.
fn hidden(source: &[u8], usual: &[u8], found: &mut Found<'_>) {
    let is_blank = |code: &[u8], at: usize| code.get(at).is_none_or(u8::is_ascii_whitespace);
    let known = std::mem::take(&mut found.list);
    let targets: BTreeSet<&str> = known.iter().map(|seen| seen.target.as_str()).collect();
    let mut uses = Vec::new();
    for (at, literal) in anywhere(source) {
        if is_blank(usual, at) {
            specifier("a use behind an unclear literal", &literal, found);
            let seen = found.list.drain(..);
            let seen = seen.filter(|seen| !targets.contains(seen.target.as_str()));
            uses.extend(seen.map(|seen| (at, seen)));
        }
    }
    found.list = known;
    if uses.is_empty() {
        return;
    }
    let trees: Vec<Vec<u8>> = grammar::scripts(source).map(|tree| tree.closed()).collect();
    uses.retain(|(at, _)| trees.is_empty() || trees.iter().any(|code| !is_blank(code, *at)));
    let uses = uses.into_iter().map(|(_, seen)| seen).collect();
    found.list = union(std::mem::take(&mut found.list), uses);
}

/// Every word that reads a file with a literal behind it, whatever stands before it.
fn anywhere(source: &[u8]) -> Vec<(usize, Item<'_>)> {
    const WORDS: [&str; 7] = [
        "createRequire",
        "from",
        "import",
        "importActual",
        "importMock",
        "require",
        "requireActual",
    ];
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$');
    let mut out = Vec::new();
    let mut at = 0;
    while at < source.len() {
        let length = source[at..].iter().take_while(|byte| is_part(byte)).count();
        if length == 0 {
            at += 1;
            continue;
        }
        let word = &source[at..at + length];
        let start = at;
        at += length;
        if !WORDS.iter().any(|one| one.as_bytes() == word) {
            continue;
        }
        let rest = &source[at..];
        let blanks = |from: usize| {
            let rest = rest[from..].iter().take(MOST_BLANKS);
            from + rest.take_while(|byte| byte.is_ascii_whitespace()).count()
        };
        let mut open = blanks(0);
        if rest.get(open) == Some(&b'(') {
            open = blanks(open + 1);
        }
        let Some(quote) = rest
            .get(open)
            .filter(|byte| matches!(byte, b'"' | b'\'' | b'`'))
        else {
            continue;
        };
        let inner = rest[open + 1..].iter().take(MOST_PATH);
        let Some(length) = inner
            .take_while(|byte| **byte != b'\n')
            .position(|byte| byte == quote)
        else {
            continue;
        };
        let literal = Item {
            text: &rest[open..open + length + 2],
            at: at + open,
            is_literal: true,
        };
        // What a wrong reading takes for a literal is code.
        let is_code = |byte: &u8| b"\"'`;{}()=,".contains(byte);
        let inner = &literal.text[1..literal.text.len() - 1];
        if !inner.iter().any(is_code) {
            out.push((start, literal));
        }
    }
    out
}

fn reading(source: &[u8], masked: &Masked, found: &mut Found<'_>) {
    let closed = masked.closed();
    let tokens = tokens(&closed);
    let items = plain(items(source, &tokens, &masked.literals));
    let is_at = |at: usize, word: &str| items.get(at).is_some_and(|item| item.is(word));
    // `import { createRequire as c }`, `const { createRequire: c } = …`
    let creators: BTreeSet<&[u8]> = items
        .windows(3)
        .filter(|window| window[0].is("createRequire") && (window[1].is("as") || window[1].is(":")))
        .map(|window| window[2].text)
        .collect();
    let is_parameter = |at: usize| is_parameter(&items, at);
    let has_own = (0..items.len()).any(|at| items[at].is("require") && is_parameter(at));
    let mut is_otherwise = false;
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
        // `module.require` stands for it, too.
        let end = if is_at(at + 3, ".") && is_at(at + 4, "require") {
            at + 4
        } else {
            at + 2
        };
        let is_require = is_at(end, "require")
            && (!["(", "."].iter().any(|mark| is_at(end + 1, mark))
                || is_at(end + 1, ".") && is_at(end + 2, "bind"));
        let is_function = is_require
            || (is_at(end, "createRequire") || creators.contains(items[end].text))
                && is_at(end + 1, "(")
                && inside(&items, end + 1).is_none_or(|list| {
                    let behind = end + list.len() + 3;
                    !is_at(behind, "(") && !is_at(behind, ".")
                });
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
        if item.is("require")
            && let Some(template) = items.get(at + 1).filter(|next| next.is_literal)
        {
            specifier("require", template, found);
            continue;
        }
        let is_call = |words: &[&str]| {
            words
                .iter()
                .enumerate()
                .all(|(offset, word)| is_at(at + offset, word))
                && is_at(at + words.len(), "(")
        };
        let is_creator = item.is("createRequire") || creators.contains(item.text);
        if is_creator && is_at(at + 1, "(") {
            // What it gives is called at once.
            let list = inside(&items, at + 1).map(<[_]>::len);
            let behind = list.map(|length| at + length + 3);
            let open = behind.map(|behind| match is_at(behind, ".") {
                true => behind + 2,
                false => behind,
            });
            if let Some(open) = open.filter(|open| is_at(*open, "("))
                && let Some(arguments) = inside(&items, open)
            {
                call("require", arguments, &values, found);
            }
        }
        if item.is("require") && !is_plain(&items, at) && !is_parameter(at) {
            is_otherwise = true;
        }
        let known = CALLS.iter().find(|(words, _)| {
            is_call(words) && (!is_member || METHODS.iter().any(|method| item.is(method)))
        });
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
        let before = found.list.len();
        match inside(&items, at + length) {
            Some(arguments) => call(construct, arguments, &values, found),
            // A first argument is all that is seen of a long call.
            None => {
                if let Some(target) = items.get(at + length + 1).filter(|next| next.is_literal) {
                    specifier(construct, target, found);
                }
            }
        }
        // A function of a bundle is given its own `require`, which knows the modules of the bundle.
        if has_own && item.is("require") && !is_member {
            for seen in &mut found.list[before..] {
                if seen.target.starts_with('.') {
                    seen.reach = Reach::Unknown;
                }
            }
        }
    }
    if is_otherwise {
        let texts: BTreeSet<String> = items.iter().filter_map(piece).collect();
        for text in texts.iter().filter(|text| is_place(text)) {
            let before = found.list.len();
            target("another use of require", text, found);
            for seen in &mut found.list[before..] {
                seen.reach = Reach::Unknown;
            }
        }
    }
}

/// The items with optional calls and members in brackets written as plain ones, and without the types and the `call` of a call that reads.
fn plain<'a>(items: Vec<Item<'a>>) -> Vec<Item<'a>> {
    let mut out: Vec<Item<'a>> = Vec::with_capacity(items.len());
    let is = |at: usize, word: &str| items.get(at).is_some_and(|item| item.is(word));
    let mut at = 0;
    while let Some(item) = items.get(at) {
        let ends_value = out.last().is_some_and(|last| {
            last.is(")") || last.is("]") || !last.is_literal && is_name(last.text)
        });
        let name = items.get(at + 1).and_then(literal_name);
        if ends_value && is(at, "?") && is(at + 1, ".") {
            at += if is(at + 2, "(") || is(at + 2, "[") {
                2
            } else {
                1
            };
        } else if ends_value && is(at, "[") && is(at + 2, "]") && name.is_some() {
            out.push(Item {
                text: b".",
                at: item.at,
                is_literal: false,
            });
            out.push(Item {
                text: name.unwrap_or_default(),
                at: items[at + 1].at,
                is_literal: false,
            });
            at += 3;
        } else if is(at, "<")
            && out
                .last()
                .is_some_and(|last| METHODS.iter().any(|m| last.is(m)))
        {
            let types = (at..items.len().min(at + MOST_TYPES))
                .find(|close| is(*close, ">") && is(close + 1, "("));
            // The types are read as what they are, too.
            at = types.map_or(at + 1, |close| close + 1);
        } else {
            out.push(item.clone());
            at += 1;
        }
    }
    out
}

fn is_name(text: &[u8]) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$');
    !text.is_empty() && text.iter().all(is_part) && !text[0].is_ascii_digit()
}

/// The name that a literal holds and nothing else.
fn literal_name<'a>(item: &Item<'a>) -> Option<&'a [u8]> {
    let inner = item
        .is_literal
        .then(|| item.text.get(1..item.text.len().checked_sub(1)?))
        .flatten()?;
    is_name(inner).then_some(inner)
}

/// Whether `require` at `at` is a parameter of a function.
fn is_parameter(items: &[Item<'_>], at: usize) -> bool {
    let is = |at: usize, word: &str| items.get(at).is_some_and(|item| item.is(word));
    let before = items[..at].iter().rev().take(MOST_WORDS);
    let back = before
        .take_while(|item| item.is(",") || !item.is_literal && is_name(item.text))
        .filter(|item| !item.is("function"))
        .count();
    let Some(open) = at.checked_sub(back + 1).filter(|open| is(*open, "(")) else {
        return false;
    };
    let Some(list) = inside(items, open) else {
        return false;
    };
    let close = open + list.len() + 1;
    let is_arrow = is(close + 1, "=") && is(close + 2, ">");
    let is_function = is(close + 1, "{") && open > 0 && {
        let name = &items[open - 1];
        name.is("function") || open > 1 && is(open - 2, "function")
    };
    is_arrow || is_function
}

/// Whether this use of `require` is understood.
fn is_plain(items: &[Item<'_>], at: usize) -> bool {
    let is = |at: usize, word: &str| items.get(at).is_some_and(|item| item.is(word));
    let before = |back: usize, word: &str| at.checked_sub(back).is_some_and(|at| is(at, word));
    let is_member = before(1, ".");
    let is_own = before(2, "module") || before(2, "globalThis") || before(2, "global");
    let is_asked = is(at + 1, ".") && PROPERTIES.iter().any(|name| is(at + 2, name))
        || is(at + 1, ".") && is(at + 2, "bind") && (before(1, "=") || is_own && before(3, "="));
    let is_compared = ["=", "!"].iter().any(|mark| is(at + 1, mark)) && is(at + 2, "=");
    // `typeof require`, and the tests of it that loaders begin with.
    let is_tested = before(1, "typeof")
        || is_compared
        || before(1, "(") && is(at + 1, ")") && before(2, "if")
        || before(1, "in")
        || is(at + 1, "&") && is(at + 2, "&");
    let is_taken = || {
        // `const { require: r } = module`
        let close = (at..items.len().min(at + MOST_TYPES)).find(|close| is(*close, "}"));
        close.is_some_and(|close| is(close + 1, "=") && !is(close + 2, ">"))
    };
    let is_written = is(at + 1, ":") && (before(1, ",") || before(1, "{")) && !is_taken()
        || ["const", "function", "let", "var"]
            .iter()
            .any(|word| before(1, word))
        || is(at + 1, "=") && !is(at + 2, "=");
    // `const r = require;` gives it another name, which is known.
    let is_named = before(1, "=")
        && at >= 2
        && is_name(items[at - 2].text)
        && !["(", ".", ",", ")"].iter().any(|mark| is(at + 1, mark));
    is(at + 1, "(") || is_member && !is_own || is_asked || is_tested || is_written || is_named
}

/// `/// <reference path="…" />`
fn references(source: &[u8], found: &mut Found<'_>) {
    if !has(source, "<reference") {
        return;
    }
    for line in String::from_utf8_lossy(source).lines() {
        let Some(rest) = line.trim_start().strip_prefix("///") else {
            continue;
        };
        for name in ["path", "types"] {
            for rest in after(rest, name) {
                let value = rest.trim_start().strip_prefix('=').unwrap_or_default();
                let value = value.trim_start();
                let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
                let path = quote.and_then(|quote| value[1..].split(quote).next());
                if let Some(path) = path.filter(|path| path.starts_with(['.', '/'])) {
                    found.path("a reference", path);
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
    let mut depth = 0usize;
    let end = arguments.iter().position(|item| {
        match item.text {
            _ if item.is_literal => {}
            b"(" | b"[" | b"{" => depth += 1,
            b")" | b"]" | b"}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && item.is(",")
    });
    let end = end.unwrap_or(arguments.len());
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
        [name, next, ..] if next.is("+") && values.contains_key(name.text) => {
            let of = |item: &Item<'_>| {
                let value = values.get(item.text).copied();
                piece(item).or_else(|| value.and_then(piece))
            };
            let pieces = first.iter().filter(|item| !item.is("+"));
            let text: String = pieces
                .map(|item| of(item).unwrap_or_else(|| "x".to_owned()))
                .collect();
            target(construct, &text, found);
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
            // The beginning of an address whose path is known only when it runs.
            Some(("file", rest)) if rest.trim_matches('/').is_empty() => continue,
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
        if !part.ends_with(".json") && construct != "new URL" {
            found.sources.insert((Family::Script, part.to_owned()));
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
