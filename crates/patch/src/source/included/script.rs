//! JavaScript and TypeScript: modules by their path, and what bundlers read.
//!
//! Scripts compute paths and names when they run. So only the plain forms are read: a call by its own name whose path begins with a
//! literal, and what bundlers work out of one.

use std::collections::BTreeSet;

use super::super::mask::{Masked, read as masked};
use super::super::token::tokens;
use super::super::{Language, grammar};
use super::found::{Family, Found, Reach, SYSTEM, is_place, leaves, union};
use super::item::{Item, MAX_WORDS, after, has_any, inside, items, source_text, value};

/// Words before the bracket of a call that has a file read, and what they are called.
const CALLS: [(&[&str], &str); 20] = [
    (&["_load"], "_load"),
    (&["createRequire"], "createRequire"),
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
    (&["createMockFromModule"], "createMockFromModule"),
    (&["System", ".", "import"], "System.import"),
];
/// Of these, the ones that are methods.
const METHODS: [&str; 8] = [
    "_load",
    "createMockFromModule",
    "createRequire",
    "importActual",
    "importMock",
    "require",
    "requireActual",
    "requireMock",
];
/// Words of comments by which tools load a file.
const COMMENTED: [&str; 4] = [
    "<reference",
    "<amd-dependency",
    "@jsxImportSource",
    "@jest-environment",
];
/// How many blanks may stand before a literal that is looked for anywhere, and how long it may be.
const MAX_BLANKS: usize = 256;
const MAX_PATH: usize = 1024;
/// How many words the types of a call may have.
const MAX_TYPES: usize = 64;
/// Functions that a path may be given to beside a loader by another name.
const HARMLESS: [&str; 48] = [
    "accessSync",
    "basename",
    "catch",
    "describe",
    "dirname",
    "endsWith",
    "equal",
    "error",
    "exec",
    "execFile",
    "execFileSync",
    "execSync",
    "existsSync",
    "expect",
    "if",
    "includes",
    "indexOf",
    "info",
    "it",
    "join",
    "log",
    "lstatSync",
    "match",
    "mkdirSync",
    "normalize",
    "openSync",
    "readFile",
    "readFileSync",
    "readdirSync",
    "realpathSync",
    "relative",
    "replace",
    "resolve",
    "return",
    "spawn",
    "spawnSync",
    "split",
    "startsWith",
    "stat",
    "statSync",
    "strictEqual",
    "switch",
    "test",
    "toBe",
    "toEqual",
    "warn",
    "while",
    "writeFileSync",
];
/// How many names lead from one to the other, and how many words an assignment may have.
const MAX_RENAMED: usize = 8;
const MAX_ASSIGNED: usize = 16;
/// Schemes of addresses that are not files of the machine.
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
    references(source, found);
    if !has_any(
        source,
        &[
            "require", "Require", "import", "from", "mock", "Mock", "_load",
        ],
    ) {
        return;
    }
    let usual = masked(Language::Script, source);
    reading(source, &usual, found);
    let usual_code = usual.without_format_fields();
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
    let trees: Vec<Vec<u8>> = grammar::scripts(source)
        .map(|tree| tree.without_format_fields())
        .collect();
    uses.retain(|(at, _)| trees.is_empty() || trees.iter().any(|code| !is_blank(code, *at)));
    let uses = uses.into_iter().map(|(_, seen)| seen).collect();
    found.list = union(std::mem::take(&mut found.list), uses);
}

/// Every word that reads a file named by the literal after it, in any context.
fn anywhere(source: &[u8]) -> Vec<(usize, Item<'_>)> {
    const WORDS: [&str; 6] = [
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
            let rest = rest[from..].iter().take(MAX_BLANKS);
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
        let inner = rest[open + 1..].iter().take(MAX_PATH);
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
    let closed = masked.without_format_fields();
    let tokens = tokens(&closed);
    let items = without_types(items(source, &tokens, &masked.literals));
    let is_at = |at: usize, word: &str| items.get(at).is_some_and(|item| item.is(word));
    let is_bundle = (0..items.len()).any(|at| is_parameter(&items, at));
    let loaders = Loaders::from_items(&items);
    let own_addresses = own_addresses(&items);
    if loaders.are_passed_on {
        for (at, item) in items.iter().enumerate() {
            let Some(text) = piece(item) else { continue };
            let path = text.strip_prefix("file://").unwrap_or(&text);
            if is_place(path) && leaves(path, found.depth) && is_given(&items, at) {
                found.report_unknown("a loader by another name beside a path", path);
            }
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
        if item.is("URL") && is_at(at + 1, "(") {
            let arguments = inside(&items, at + 1).unwrap_or_default();
            if is_beside_module(arguments, &own_addresses) {
                call("new URL", arguments, found);
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
        let known = CALLS.iter().find(|(words, _)| {
            is_call(words) && (!is_member || METHODS.iter().any(|method| item.is(method)))
        });
        let renamed = String::from_utf8_lossy(item.text);
        let (length, construct) = match known {
            Some((words, construct)) => (words.len(), *construct),
            None if !is_at(at + 1, "(") || is_member => continue,
            None if loaders.loading.contains(item.text) => (1, &*renamed),
            None if loaders.making.contains(item.text) => (1, "createRequire"),
            None => continue,
        };
        let before = found.list.len();
        let open = at + length;
        // `createRequire("…")("…")`
        let behind = inside(&items, open).map_or(open, |arguments| open + arguments.len() + 2);
        if construct == "createRequire"
            && is_at(behind, "(")
            && let Some(arguments) = inside(&items, behind)
        {
            call(construct, arguments, found);
        }
        match inside(&items, open) {
            Some(arguments) => call(construct, arguments, found),
            // A first argument is all that is seen of a long call.
            None => {
                if let Some(target) = items.get(open + 1).filter(|next| next.is_literal) {
                    specifier(construct, target, found);
                }
            }
        }
        // A function of a bundle is given its own `require`, which knows the modules of the bundle.
        if is_bundle && item.is("require") && !is_member {
            for seen in &mut found.list[before..] {
                if seen.target.starts_with('.') {
                    seen.reach = Reach::Unknown;
                }
            }
        }
    }
}

/// What loads a module in a text, or makes such a loader, by other names than its own.
#[derive(Default)]
struct Loaders<'a> {
    loading: BTreeSet<&'a [u8]>,
    making: BTreeSet<&'a [u8]>,
    /// Whether one is given to something that may call it by a name that is not known.
    are_passed_on: bool,
}

impl<'a> Loaders<'a> {
    fn from_items(items: &[Item<'a>]) -> Self {
        let mut loaders = Self::default();
        loaders.making.insert(b"createRequire");
        loaders.loading.insert(b"require");
        // Each round follows a name to the next one.
        for _ in 0..MAX_RENAMED {
            let before = loaders.loading.len() + loaders.making.len();
            for at in 0..items.len() {
                loaders.use_at(items, at);
            }
            if loaders.loading.len() + loaders.making.len() == before {
                break;
            }
        }
        loaders
    }

    /// Follows a loader, or what makes one, to the name that it is given.
    fn use_at(&mut self, items: &[Item<'a>], at: usize) {
        let item = &items[at];
        let is = |at: usize, word: &str| items.get(at).is_some_and(|item| item.is(word));
        let before = |back: usize, word: &str| at.checked_sub(back).is_some_and(|at| is(at, word));
        if item.is_literal {
            let text = value(item.text);
            let is_name = ["_load", "createRequire", "require"].contains(&text.as_str());
            let is_member = before(1, "[") && is(at + 1, "]");
            let is_evaluated = before(1, "(") && before(2, "eval");
            self.are_passed_on |= is_name && (is_member || is_evaluated);
            return;
        }
        let is_making = self.making.contains(item.text);
        let owners = ["mainModule", "module"];
        let is_member = before(1, ".") && !owners.iter().any(|owner| before(2, owner));
        if !is_making && (!self.loading.contains(item.text) || is_member) {
            return;
        }
        // `createRequire(…)` is itself a loader.
        let made = inside(items, at + 1).filter(|_| is_making && is(at + 1, "("));
        let end = made.map_or(at, |arguments| at + arguments.len() + 2);
        let is_renamed =
            is_making && is(at + 1, "as") || is(at + 1, ":") && is_declared_as_list(items, at);
        if let Some(name) = items.get(at + 2).filter(|_| is_renamed) {
            let names = if is_making {
                &mut self.making
            } else {
                &mut self.loading
            };
            names.insert(name.text);
            return;
        }
        let ends = [".", "(", "=", ":", "?"];
        let is_compared = is(end + 1, "!") && is(end + 2, "=");
        if made.is_none() && (is_compared || ends.iter().any(|mark| is(end + 1, mark))) {
            let is_applied = ["apply", "bind", "call"]
                .iter()
                .any(|name| is(end + 2, name));
            self.are_passed_on |=
                is(end + 1, ".") && is_applied || is(end + 1, "?") && is(end + 2, ".");
            return;
        }
        let is_tag = items.get(end + 1).is_some_and(|next| next.is_literal);
        if is_tag || made.is_some() && ["(", "."].iter().any(|mark| is(end + 1, mark)) {
            return;
        }
        let declares = ["const", "function", "let", "typeof", "var", "import"];
        if declares.iter().any(|word| before(1, word)) || is_imported(items, at) {
            return;
        }
        let from = at.saturating_sub(MAX_ASSIGNED);
        let equals = (from..at)
            .rev()
            .take_while(|back| !is(*back, ";"))
            .find(|back| is(*back, "=") && !is(back + 1, ">") && !is(back + 1, "="));
        // What stands in brackets is given to whatever is built or called there.
        let is_bare = |equals: &usize| {
            let open = items[equals + 1..at]
                .iter()
                .filter(|item| is_open(item))
                .count();
            let closed = items[equals + 1..at]
                .iter()
                .filter(|item| is_close(item))
                .count();
            open <= closed
        };
        let equals = equals.filter(is_bare);
        let name = equals.and_then(|equals| items.get(equals.checked_sub(1)?));
        match name.filter(|name| !name.is_literal && !is_mark(name)) {
            Some(name) if is_making && made.is_none() => {
                self.making.insert(name.text);
            }
            Some(name) => {
                // A field is called through whatever holds it.
                let owner = equals.and_then(|equals| items.get(equals.checked_sub(2)?));
                let is_field =
                    |owner: &Item<'_>| [".", "#", "static"].iter().any(|word| owner.is(word));
                self.are_passed_on |= owner.is_some_and(is_field);
                self.loading.insert(name.text);
            }
            None => self.are_passed_on |= !is_declared(items, at),
        }
    }
}

/// Whether the literal at `at` is given to a function that may be a loader.
fn is_given(items: &[Item<'_>], at: usize) -> bool {
    let mut closed = 0usize;
    for open in (at.saturating_sub(MAX_WORDS)..at).rev() {
        let item = &items[open];
        if is_close(item) {
            closed += 1;
        } else if is_open(item) && closed > 0 {
            closed -= 1;
        } else if item.is("(") {
            let called = open.checked_sub(1).and_then(|called| items.get(called));
            return called.is_some_and(|called| !is_harmless(items, called));
        } else if item.is("[") {
            let behind = inside(items, open).map(|list| open + list.len() + 2);
            let mut next = behind.and_then(|behind| items.get(behind)).into_iter();
            if next.any(|next| next.is(".")) {
                return true;
            }
        } else if is_open(item) {
            return false;
        }
    }
    false
}

/// Whether a function only opens, compares or prints what it is given, and the text gives its name to no other one.
fn is_harmless(items: &[Item<'_>], called: &Item<'_>) -> bool {
    let is_known = HARMLESS.iter().any(|name| called.is(name));
    is_known
        && !items.windows(2).any(|pair| {
            let is_defined = pair[0].text == called.text && (pair[1].is("=") || pair[1].is(":"));
            is_defined || pair[0].is("function") && pair[1].text == called.text
        })
}

fn is_open(item: &Item<'_>) -> bool {
    ["(", "[", "{"].iter().any(|mark| item.is(mark))
}

fn is_close(item: &Item<'_>) -> bool {
    [")", "]", "}"].iter().any(|mark| item.is(mark))
}

fn is_mark(item: &Item<'_>) -> bool {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..);
    !item.text.first().is_some_and(is_word)
}

/// Whether the name at `at` stands in the braces of an import.
fn is_imported(items: &[Item<'_>], at: usize) -> bool {
    let from = at.saturating_sub(MAX_ASSIGNED);
    let open = (from..at)
        .rev()
        .find(|open| is_mark(&items[*open]) && !items[*open].is(","));
    let is_list = open.is_some_and(|open| items[open].is("{"));
    let import = open.and_then(|open| items.get(open.checked_sub(1)?));
    is_list
        && (import.is_some_and(|word| word.is("import") || word.is("export"))
            || is_declared_as_list(items, at))
}

/// Whether the braces around the name at `at` are followed by `=` or `from`.
fn is_declared_as_list(items: &[Item<'_>], at: usize) -> bool {
    let behind = items.iter().skip(at).take(MAX_ASSIGNED);
    let closing = behind.skip_while(|item| !item.is("}"));
    let mut rest = closing.skip_while(|item| item.is("}"));
    rest.next()
        .is_some_and(|next| next.is("from") || next.is("="))
}

/// Whether the name at `at` is a parameter of a function.
fn is_declared(items: &[Item<'_>], at: usize) -> bool {
    let mut depth = 0usize;
    for close in at..items.len().min(at + MAX_ASSIGNED) {
        let item = &items[close];
        if is_open(item) {
            depth += 1;
        } else if item.is(")") && depth == 0 {
            let is = |word: &str| items.get(close + 1).is_some_and(|next| next.is(word));
            return is("{") || is("=") || is(":");
        } else if is_close(item) {
            depth = depth.saturating_sub(1);
        }
    }
    items.get(at + 1).is_some_and(|next| next.is("=")) // `require => …`
}

/// The items without the types of a call that reads.
fn without_types<'a>(items: Vec<Item<'a>>) -> Vec<Item<'a>> {
    let mut out: Vec<Item<'a>> = Vec::with_capacity(items.len());
    let is = |at: usize, word: &str| items.get(at).is_some_and(|item| item.is(word));
    let mut at = 0;
    while let Some(item) = items.get(at) {
        let mut before = out.last().into_iter();
        if is(at, "<") && before.any(|last| METHODS.iter().any(|method| last.is(method))) {
            let types = (at..items.len().min(at + MAX_TYPES))
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

/// Whether `require` at `at` is the first parameter of a function.
fn is_parameter(items: &[Item<'_>], at: usize) -> bool {
    let is = |at: usize, word: &str| items.get(at).is_some_and(|item| item.is(word));
    let before = |back: usize, word: &str| at.checked_sub(back).is_some_and(|at| is(at, word));
    let is_function = before(2, "function") || before(3, "function");
    is(at, "require") && before(1, "(") && is_function && (is(at + 1, ",") || is(at + 1, ")"))
}

/// `/// <reference path="…" />`, `@jsxImportSource …` and their like: comments by which tools load a file.
fn references(source: &[u8], found: &mut Found<'_>) {
    if !has_any(source, &COMMENTED) {
        return;
    }
    for line in String::from_utf8_lossy(source).lines() {
        for word in &COMMENTED[2..] {
            let mut behind = after(line, word).filter_map(|rest| rest.split_whitespace().next());
            if let Some(path) = behind.find(|path| path.starts_with(['.', '/'])) {
                found.path(word, path);
            }
        }
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

/// Whether an address counts from that of the module, `import.meta.url`.
fn is_beside_module(arguments: &[Item<'_>], own_addresses: &BTreeSet<&[u8]>) -> bool {
    let comma = arguments.iter().position(|item| item.is(","));
    let after = comma.map_or(&[][..], |comma| &arguments[comma..]);
    let is_own = |item: &Item<'_>| own_addresses.contains(item.text);
    after.windows(3).any(is_import_meta) || after.iter().any(is_own)
}

fn is_import_meta(items: &[Item<'_>]) -> bool {
    matches!(items, [import, dot, meta, ..] if import.is("import") && dot.is(".") && meta.is("meta"))
}

/// The names that a declaration gives the address of the module.
fn own_addresses<'a>(items: &[Item<'a>]) -> BTreeSet<&'a [u8]> {
    let named = items.windows(7).filter(|window| {
        let is_address = window[6].is("url") || window[6].value().is_some_and(|key| key == "url");
        window[1].is("=") && is_import_meta(&window[2..]) && is_address
    });
    named.map(|window| window[0].text).collect()
}

/// The arguments of a call that reads.
fn call(construct: &str, arguments: &[Item<'_>], found: &mut Found<'_>) {
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
        [literal] if literal.is_literal => specifier(construct, literal, found),
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
                return found.report_unknown(construct, &source_text(first));
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
        found.report_unknown(construct, &String::from_utf8_lossy(literal.text));
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
