//! Rust: the macros of the compiler that read a file, attributes that name one, and macros that pass a path on.

use super::super::Language;
use super::super::mask::{Dialect, Masked, read_dialect};
use super::super::token::{plain_names, tokens};
use super::assembler;
use super::assembler::names_place;
use super::found::{Family, Found, Reach, is_place, leaves, union};
use super::item::{Item, has_any, inside, items, source_text, value};
use super::modules::{
    MacroMatchers, Modules, has_filled_name, is_filled_before, is_variable, may_name_module,
};
use super::names::Names;

/// A part of a path that is put together when Rust is compiled.
enum Piece {
    Text(String),
    /// The directory of the package.
    Package,
    /// Where the build script writes.
    OutDir,
    /// A home or another place of the machine's user.
    Home,
    /// A name that holds no separator.
    Name,
    /// What a macro is given; its calls are judged.
    Filled,
    Unknown,
}

/// Variables that name a place of the user's.
const HOMES: [&str; 9] = [
    "CARGO_HOME",
    "HOME",
    "PATH",
    "PWD",
    "RUSTUP_HOME",
    "TMPDIR",
    "USERPROFILE",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
];
/// Directories in which a package of cargo has its sources.
const PACKAGE_PARTS: [&str; 4] = ["benches", "examples", "src", "tests"];

/// The macros of the compiler that read a file.
pub(super) const READERS: [&str; 3] = ["include", "include_str", "include_bytes"];
/// The macros whose literals an assembler reads.
const ASSEMBLERS: [&str; 3] = ["asm", "global_asm", "naked_asm"];
/// Words that have no other use than to read a file, or to have an assembler do it.
const ONLY_READING: [&str; 7] = [
    "debugger_visualizer",
    "gdb_script_file",
    "global_asm",
    "include_bytes",
    "include_str",
    "naked_asm",
    "natvis_file",
];
/// Macros of the standard library and of loggers: they pass no name on to be called.
const PLAIN_MACROS: [&str; 34] = [
    "assert",
    "assert_eq",
    "assert_ne",
    "bail",
    "dbg",
    "debug",
    "debug_assert",
    "debug_assert_eq",
    "debug_assert_ne",
    "debug_span",
    "ensure",
    "eprint",
    "eprintln",
    "error",
    "error_span",
    "event",
    "format",
    "format_args",
    "info",
    "info_span",
    "json",
    "matches",
    "panic",
    "print",
    "println",
    "span",
    "todo",
    "trace",
    "unimplemented",
    "unreachable",
    "vec",
    "warn",
    "write",
    "writeln",
];
/// Variables of cargo whose values hold no separator.
const PLAIN_VARIABLES: [&str; 7] = [
    "CARGO_CRATE_NAME",
    "CARGO_BIN_NAME",
    "CARGO_PKG_NAME",
    "CARGO_PKG_VERSION",
    "CARGO_PKG_VERSION_MAJOR",
    "CARGO_PKG_VERSION_MINOR",
    "CARGO_PKG_VERSION_PATCH",
];
/// How many words behind a name that is put together may be what it is called with.
const MAX_BEHIND: usize = 12;
/// Names of values in attributes that are paths of files.
const FILE_KEYS: [&str; 9] = [
    "dir",
    "directory",
    "file",
    "folder",
    "grammar",
    "path",
    "schema",
    "source",
    "template",
];
const FILE_ENDS: [&str; 4] = ["_dir", "_file", "_folder", "_path"];

pub(super) fn read(source: &[u8], names: &Names, found: &mut Found<'_>) {
    let is_concerned = [
        "include", "path", "folder", "asm", "embed", "_file", "grammar", "dir", "template", "file",
        "link", "[<",
    ];
    if !has_any(source, &is_concerned) && !names.has_rust() {
        return;
    }
    let masked = |dialect| read_dialect(Language::Rust, dialect, source);
    let usual = masked(Dialect::USUAL);
    reading(source, &usual, names, found);
    // Before the edition of 2021 this was a name and a literal with escapes.
    if has_any(source, &["cr\"", "cr#"]) {
        let known = std::mem::take(&mut found.list);
        let older = masked(Dialect {
            has_raw_literals: false,
            ..Dialect::USUAL
        });
        reading(source, &older, names, found);
        found.list = union(known, std::mem::take(&mut found.list));
    }
}

fn reading(source: &[u8], masked: &Masked, names: &Names, found: &mut Found<'_>) {
    let closed = masked.without_format_fields();
    let mut tokens = tokens(&closed);
    plain_names(&mut tokens);
    let items = items(source, &tokens, &masked.literals);
    let mut modules = Modules::new(found.path);
    let kinds = MacroMatchers::from_items(&items);
    let calls = Calls::from_items(&items, names);
    let mut imports = false;
    for (at, item) in items.iter().enumerate() {
        let next =
            |offset: usize, word: &str| items.get(at + offset).is_some_and(|item| item.is(word));
        let is_call = next(1, "!") && items.get(at + 2).is_some_and(is_open);
        modules.visit(&items, at);
        if item.is(";") {
            imports = false;
        } else if item.is("use") {
            imports = true;
        } else if item.is("#") {
            let open = if next(1, "!") { at + 2 } else { at + 1 };
            if items.get(open).is_some_and(|item| item.is("[")) {
                match inside(&items, open) {
                    Some(list) => {
                        attribute(list, open > at + 1, &mut modules, found);
                        let end = open + list.len() + 2;
                        if has_filled_name(list) && may_name_module(&items, end, &kinds) {
                            found.report_unknown("an attribute of a module", &source_text(list));
                        }
                    }
                    None if next(open - at + 1, "cfg_attr") => {
                        found.report_unknown("#[cfg_attr]", "a long attribute");
                    }
                    None => {}
                }
            }
        } else if item.is("mod") && is_filled_before(&items, at, &kinds) {
            found.report_unknown("an attribute of a module", "that a macro fills in");
        } else if item.is("]") && at > 0 && items[at - 1].is(">") && calls.around(at) {
            put_together(&items[at + 1..], found);
        } else if item.is_literal {
            assembler::literal(&value(item.text), found);
        } else if item.is("macro_rules") && next(1, "!") {
            exported(&items[at + 2..], names, found);
        } else if is_call {
            call(item, &items, at + 2, names, found);
        } else {
            word(&items, at, imports, &calls, found);
        }
    }
}

/// Which words stand among what a macro is given that may make names of them.
struct Calls {
    /// For each item whether it stands so.
    around: Vec<bool>,
}

impl Calls {
    fn from_items(items: &[Item<'_>], names: &Names) -> Self {
        let mut around = Vec::with_capacity(items.len());
        let mut open: Vec<bool> = Vec::new();
        for (at, item) in items.iter().enumerate() {
            let is_inside = open.last().copied().unwrap_or(false);
            around.push(is_inside);
            if is_open(item) {
                open.push(is_inside || is_opened_by_macro(items, at, names));
            } else if !item.is_literal && matches!(item.text, b")" | b"]" | b"}") {
                open.pop();
            }
        }
        Self { around }
    }

    fn around(&self, at: usize) -> bool {
        self.around.get(at).copied().unwrap_or(false)
    }
}

/// Whether the bracket at `open` holds what a macro is given: one that a changed file defines, or none of those that are known.
fn is_opened_by_macro(items: &[Item<'_>], open: usize, names: &Names) -> bool {
    let before = |back: usize| open.checked_sub(back).and_then(|at| items.get(at));
    let is = |back: usize, word: &str| before(back).is_some_and(|item| item.is(word));
    if is(3, "macro_rules") || is(2, "macro") {
        return true;
    }
    let Some(name) = before(2).filter(|name| is(1, "!") && !name.is_literal) else {
        return false;
    };
    let text = String::from_utf8_lossy(name.text);
    let is_word = text.starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '$');
    let is_known = PLAIN_MACROS.contains(&&*text)
        || READERS.contains(&&*text)
        || ASSEMBLERS.contains(&&*text)
        || matches!(&*text, "concat" | "env" | "option_env" | "stringify");
    is_word && (!is_known || names.texts(name.text).is_some())
}

/// A word that reads a file and does not stand in its plain form.
fn word(items: &[Item<'_>], at: usize, imports: bool, calls: &Calls, found: &mut Found<'_>) {
    let item = &items[at];
    let next = |offset: usize, word: &str| items.get(at + offset).is_some_and(|item| item.is(word));
    let before = |word: &str| at > 0 && items[at - 1].is(word);
    let is_word = |words: &[&str]| words.iter().any(|word| item.is(word));
    let is_reading = is_word(&ONLY_READING);
    if !is_reading && !is_word(&["asm", "include", "path"]) {
        return;
    }
    let text = String::from_utf8_lossy(item.text);
    if imports {
        let is_renamed = next(1, "as") && !item.is("path");
        // What follows an import is another one, or the end of the list.
        let behind = items.get(at + 2);
        let is_passed_on = calls.around(at)
            && is_reading
            && behind.is_some_and(|item| item.is_literal || is_open(item));
        if is_renamed || is_passed_on {
            found.report_unknown("another name", &text);
        }
        return;
    }
    let is_visualizer = is_word(&["debugger_visualizer", "gdb_script_file", "natvis_file"]);
    if item.is("path") || is_visualizer {
        if is_in_attribute(items, at) {
            return;
        }
        // `path = "…"` that a macro may make an attribute of.
        let value = items.get(at + 2).filter(|_| next(1, "="));
        let value = value.and_then(Item::value).unwrap_or_default();
        let is_module =
            names_place(&value, found.depth) && (value.ends_with(".rs") || is_place(&value));
        if calls.around(at) && (is_visualizer || is_module) {
            found.report_unknown("another use", &format!("{text} {value}"));
        }
        return;
    }
    // Without a macro around it, a word that is not called makes no call.
    if !calls.around(at) {
        return;
    }
    if is_reading {
        return found.report_unknown("another use", &text);
    }
    let is_field = before(".") || before("fn") || next(1, ":") && !next(2, ":") || next(1, ".");
    let mut near = items[at..].iter().take(MAX_BEHIND).filter_map(Item::value);
    if !is_field || near.any(|text| names_place(&text, found.depth)) {
        found.report_unknown("another use", &text);
    }
}

/// Whether the word at `at` stands in an attribute that is written as one.
fn is_in_attribute(items: &[Item<'_>], at: usize) -> bool {
    let from = at.saturating_sub(MAX_BEHIND);
    (from..at).any(|hash| {
        items[hash].is("#")
            && items
                .get(hash + 1)
                .is_some_and(|open| open.is("[") || open.is("!"))
    })
}

/// What follows the name that a macro puts together in `[<…>]`: it may be that of a macro which reads.
fn put_together(items: &[Item<'_>], found: &mut Found<'_>) {
    const CONSTRUCT: &str = "a macro's name";
    if items.first().is_some_and(|mark| mark.is("!")) {
        return found.report_unknown(CONSTRUCT, "that is put together");
    }
    let near = items.iter().take(MAX_BEHIND);
    let near = near.take_while(|item| !item.is(";") && !item.is("=") && !item.is("{"));
    let mut places = near.filter_map(Item::value);
    if let Some(place) = places.find(|text| names_place(text, found.depth)) {
        found.report_unknown(CONSTRUCT, &place);
    }
}

/// A macro that other files may call: its paths count from there.
fn exported(items: &[Item<'_>], names: &Names, found: &mut Found<'_>) {
    let Some(name) = items.first().filter(|name| names.is_exported(name.text)) else {
        return;
    };
    let directories: Vec<&str> = found.path.segments().rev().skip(1).collect();
    let part = directories
        .iter()
        .position(|name| PACKAGE_PARTS.contains(name));
    let Some(depth) = part.map(|at| directories.len() - at) else {
        return;
    };
    for climb in names.parent_paths(name.text) {
        if leaves(climb, depth) && !leaves(climb, found.depth) {
            found.report_unknown("a path of a macro", climb);
        }
    }
}

fn is_open(item: &Item<'_>) -> bool {
    ["(", "[", "{"].iter().any(|mark| item.is(mark))
}

/// Whether a literal is written with escapes.
fn is_escaped(item: &Item<'_>) -> bool {
    item.is_literal
        && !item.text.starts_with(b"r")
        && !item.text.starts_with(b"br")
        && item.text.contains(&b'\\')
}

/// The call of the macro `name` whose bracket opens at `open`.
fn call(name: &Item<'_>, items: &[Item<'_>], open: usize, names: &Names, found: &mut Found<'_>) {
    let text = String::from_utf8_lossy(name.text);
    let construct = format!("{text}!");
    let argument = inside(items, open);
    if READERS.contains(&&*text) {
        return match argument {
            Some(argument) => path(&construct, argument, names, found),
            None => found.report_unknown(&construct, "a long expression"),
        };
    }
    if ASSEMBLERS.contains(&&*text) {
        return assembly(items, open, names, found);
    }
    let is_passed_on = names.is_rust_reader(name.text);
    for climb in names.parent_paths(name.text) {
        // A macro's own path counts from the file that calls it.
        found.path(&construct, climb);
    }
    if names.makes_modules() {
        let literals = argument.unwrap_or_default().iter().filter_map(Item::value);
        for literal in literals {
            if names_place(&literal, found.depth) {
                found.report_unknown(&construct, &literal);
            }
        }
    }
    let has_name = text.starts_with("include") || text.contains("embed") || text.contains("_file");
    // The name says nothing where the macro is known.
    let is_plain = |name: &[u8]| PLAIN_MACROS.iter().any(|plain| plain.as_bytes() == name);
    let is_known = || {
        let calls = names.calls(name.text);
        calls.is_some_and(|calls| {
            let mut others = calls.iter().filter(|called| *called != name.text);
            others.all(|called| is_plain(called))
        })
    };
    let is_reader = has_name && !is_known();
    let names_reader = || {
        let argument = argument.unwrap_or_default();
        let is_reader = |item: &Item<'_>| READERS.iter().any(|word| item.is(word));
        let mut items = argument.iter().enumerate();
        items.any(|(at, item)| is_reader(item) && (at == 0 || !argument[at - 1].is(".")))
    };
    // What reads may be called by any name here, so that a path outside counts in every call that may pass it on.
    if (names.may_pass_on(name.text) || names_reader())
        && !is_passed_on
        && (!is_plain(name.text) || names.texts(name.text).is_some())
    {
        let literals = argument.unwrap_or_default().iter().filter_map(Item::value);
        for literal in literals {
            if is_place(&literal) && leaves(&literal, found.depth) {
                found.outside(&construct, &literal);
            }
        }
    }
    if names.is_rust_caller(name.text) && names_reader() {
        return found.report_unknown(&construct, &source_text(argument.unwrap_or_default()));
    }
    if !is_reader && !is_passed_on {
        return;
    }
    if argument.is_none() && is_passed_on {
        return found.report_unknown(&construct, "a long expression");
    }
    let argument = argument.unwrap_or_default();
    let literals: Vec<String> = argument.iter().filter_map(Item::value).collect();
    for literal in &literals {
        let before = found.list.len();
        interpolated(&construct, literal, false, found);
        // What goes before it in the macro may hold fewer directories than it climbs.
        let climbs = literal.split(['/', '\\']).any(|segment| segment == "..");
        if climbs && names.has_prefix(name.text) && found.list.len() == before {
            found.report_unknown(&construct, literal);
        }
    }
    let is_computed = argument.windows(2).any(|pair| {
        pair[1].is("!")
            && ["env", "option_env", "stringify"]
                .iter()
                .any(|word| pair[0].is(word))
    });
    if is_passed_on && is_computed {
        found.report_unknown(&construct, &source_text(argument));
    }
    if is_passed_on && literals.len() > 1 {
        found.path(&construct, &literals.concat());
    }
    let is_passing = argument.iter().any(is_variable);
    if is_passing && (is_passed_on || text.starts_with("include")) {
        found.report_unknown(&construct, &source_text(argument));
    }
}

/// What an assembler is given. Which text macros make of theirs is not known, so none of them may read or name a place outside.
fn assembly(items: &[Item<'_>], open: usize, names: &Names, found: &mut Found<'_>) {
    const CONSTRUCT: &str = "an assembler's directive";
    let (text, filled) = template(items, open, names, found);
    let before = found.list.len();
    assembler::template(&text, names, found);
    if found.list.len() > before {
        return;
    }
    let mut filled_in = filled.iter();
    if let Some(text) = filled_in.find(|text| assembler::may_read(text, found.depth)) {
        found.report_unknown(CONSTRUCT, text);
    } else if !filled.is_empty() && assembler::has_directive(&text) {
        found.report_unknown(CONSTRUCT, "a text of macros that reads a file");
    }
}

/// What an assembler is given: pieces in one line each, but for those that `concat!` joins. What stands for a text is a hole, but for
/// the texts of macros of the changed files, which are returned too.
fn template(
    items: &[Item<'_>],
    open: usize,
    names: &Names,
    found: &mut Found<'_>,
) -> (String, Vec<String>) {
    let mut out = String::new();
    let mut filled = Vec::new();
    let (mut depth, mut joined) = (0usize, Vec::new());
    let mut spelled_until = 0;
    for (at, item) in items
        .iter()
        .enumerate()
        .skip(open)
        .take(assembler::MAX_PIECES)
    {
        let is_call = items.get(at + 1).is_some_and(|next| next.is("!"))
            && items.get(at + 2).is_some_and(is_open);
        if at < spelled_until {
            continue;
        }
        if is_call && item.is("include_str") {
            let argument = inside(items, at + 2).unwrap_or_default();
            if let Some(target) = argument.first().and_then(Item::value) {
                found.source(Family::Assembly, "include_str!", &target);
            }
            // A text of its own begins and ends its lines.
            if !joined.is_empty() && !out.is_empty() && !out.ends_with('\n') {
                out.push(assembler::HOLE);
            }
            spelled_until = at + argument.len() + 4;
            continue;
        }
        if is_call && item.is("stringify") {
            let argument = inside(items, at + 2).unwrap_or_default();
            if argument.iter().any(is_variable) {
                out.push(assembler::HOLE);
            } else {
                let text = spelled(argument);
                out.push_str(&text);
                filled.push(text);
            }
            spelled_until = at + argument.len() + 4;
            continue;
        }
        if let Some(texts) = names.texts(item.text).filter(|_| is_call) {
            out.extend(texts.iter().map(String::as_str));
            filled.extend(texts.iter().cloned());
            continue;
        }
        if is_open(item) {
            depth += 1;
            if at >= 2 && items[at - 2].is("concat") && items[at - 1].is("!") {
                joined.push(depth);
            }
        } else if [")", "]", "}"].iter().any(|mark| item.is(mark)) {
            if joined.last() == Some(&depth) {
                joined.pop();
            }
            depth = depth.saturating_sub(1);
            if depth == 0 {
                break;
            }
        } else if let Some(text) = item.value() {
            out.push_str(&text);
        } else if item.is(",") {
            if joined.is_empty() {
                out.push('\n');
            }
        } else if is_variable(item) || (!joined.is_empty() && !item.is("concat") && !item.is("!")) {
            out.push(assembler::HOLE);
        }
    }
    (out, filled)
}

/// The words and literals as they stand, with a blank where anything divides them.
fn spelled(items: &[Item<'_>]) -> String {
    let mut out = String::new();
    let mut end = None;
    for item in items {
        if end.is_some_and(|end| end != item.at) {
            out.push(' ');
        }
        out.push_str(&String::from_utf8_lossy(item.text));
        end = Some(item.at + item.text.len());
    }
    out
}

/// A literal in which a macro may fill in variables of the environment.
fn interpolated(name: &str, literal: &str, is_of_package: bool, found: &mut Found<'_>) {
    let variable = |variable: &str| {
        let rest = literal.strip_prefix(&format!("${variable}"));
        rest.or_else(|| literal.strip_prefix(&format!("${{{variable}}}")))
            .map(str::to_owned)
    };
    if let Some(rest) = variable("CARGO_MANIFEST_DIR") {
        judge(name, &[Piece::Package, Piece::Text(rest)], literal, found);
    } else if let Some(rest) = variable("OUT_DIR") {
        judge(name, &[Piece::OutDir, Piece::Text(rest)], literal, found);
    } else if literal.starts_with('~') {
        found.outside(name, literal);
    } else if literal.contains('$') {
        found.report_unknown(name, literal);
    } else if is_of_package && !literal.starts_with('/') {
        judge(
            name,
            &[Piece::Package, Piece::Text(format!("/{literal}"))],
            literal,
            found,
        );
    } else {
        found.path(name, literal);
    }
}

/// Attributes whose values the compiler or the linker reads files by, as they are.
const COMPILED: [&str; 2] = ["debugger_visualizer", "link"];
/// Keys of these whose values are paths.
const COMPILED_KEYS: [&str; 3] = ["gdb_script_file", "name", "natvis_file"];

/// `#[path = "…"]`, also behind a condition, and the files that other attributes name.
fn attribute(list: &[Item<'_>], is_inner: bool, modules: &mut Modules, found: &mut Found<'_>) {
    let is_conditional = list.first().is_some_and(|first| first.is("cfg_attr"));
    let names = if is_conditional {
        list
    } else {
        &list[..list.len().min(1)]
    };
    let is_compiled = names
        .iter()
        .any(|item| COMPILED.iter().any(|word| item.is(word)));
    for (at, window) in list.windows(3).enumerate() {
        let [name, equals, literal] = window else {
            continue;
        };
        if name.is_literal || !equals.is("=") {
            continue;
        }
        let word = String::from_utf8_lossy(name.text);
        let is_own = at == 0 || (is_conditional && list[at - 1].is(","));
        let construct = format!("#[{word}]");
        if is_compiled && COMPILED_KEYS.contains(&&*word) {
            match literal.value() {
                Some(target) if is_escaped(literal) => found.report_unknown(&construct, &target),
                // A library by its name is none by its path.
                Some(target) => found.path(&construct, &target),
                None if is_variable(literal) && word != "name" => {
                    found.report_unknown(&construct, &source_text(list));
                }
                None => {}
            }
            continue;
        }
        let Some(target) = literal.value() else {
            if is_own && (name.is("path") || name.is("folder") && is_variable(literal)) {
                found.report_unknown(&construct, &source_text(list));
            }
            continue;
        };
        if is_own && name.is("path") {
            if is_inner {
                modules.name_around(target.clone());
                // Its modules without a path of their own lie below that directory.
                if let Some(reach) = modules.judge("") {
                    found.push(reach, &construct, &target);
                }
                continue;
            }
            match modules.judge(&target) {
                Some(reach) => found.push(reach, &construct, &target),
                None => found.source(Family::Rust, &construct, &target),
            }
            modules.next = Some(target);
        } else if is_own && name.is("folder") {
            interpolated(&construct, &target, true, found);
        } else if FILE_KEYS.contains(&&*word) || FILE_ENDS.iter().any(|end| word.ends_with(end)) {
            found.path_of_site(&construct, &target);
        }
    }
}

/// The path that a built-in macro takes.
fn path(name: &str, argument: &[Item<'_>], names: &Names, found: &mut Found<'_>) {
    let mut pieces = Vec::new();
    expression(argument, &mut pieces);
    if name == "include!"
        && !pieces.iter().any(|piece| matches!(piece, Piece::OutDir))
        && let Some(Piece::Text(text)) = pieces.last()
    {
        found.source(Family::Rust, name, text);
    }
    // The call stays as it is where the text of a macro changes.
    for called in argument.windows(2).filter(|pair| pair[1].is("!")) {
        for text in names.texts(called[0].text).unwrap_or_default() {
            if names_place(text, found.depth) {
                found.outside(name, text);
            }
        }
    }
    judge(name, &pieces, &source_text(argument), found);
}

/// Takes a path apart: a literal, `env!`, or a `concat!` of them.
fn expression(items: &[Item<'_>], pieces: &mut Vec<Piece>) {
    let mut at = 0;
    while let Some(item) = items.get(at) {
        at += 1;
        if let Some(text) = item.value() {
            pieces.push(Piece::Text(text));
            if is_escaped(item) {
                pieces.push(Piece::Unknown);
            }
            continue;
        }
        if item.is(",") || item.is(":") || item.is("std") || item.is("core") {
            continue;
        }
        let is_alone = items.get(at).is_none_or(|next| next.is(","));
        if is_variable(item) && is_alone {
            pieces.push(Piece::Filled);
            continue;
        }
        let is_call = items.get(at).is_some_and(|next| next.is("!")) && items.get(at + 1).is_some();
        let argument = if is_call { inside(items, at + 1) } else { None };
        match argument {
            Some(argument) if item.is("concat") => expression(argument, pieces),
            Some(argument) if item.is("env") => {
                let name = argument.first().and_then(Item::value).unwrap_or_default();
                pieces.push(match name.as_str() {
                    "CARGO_MANIFEST_DIR" => Piece::Package,
                    "OUT_DIR" => Piece::OutDir,
                    name if HOMES.contains(&name) => Piece::Home,
                    name if PLAIN_VARIABLES.contains(&name) => Piece::Name,
                    _ => Piece::Unknown,
                });
            }
            Some(_) | None => pieces.push(Piece::Unknown),
        }
        match argument {
            Some(argument) => at += argument.len() + 3,
            // What nobody reads here, said once.
            None => return,
        }
    }
}

/// Whether what a macro is given stands in one directory that is written before it, and nothing after it climbs.
fn is_filled_plainly(pieces: &[Piece]) -> bool {
    let Some(first) = pieces
        .iter()
        .position(|piece| matches!(piece, Piece::Filled))
    else {
        return true;
    };
    let is_directory = match &pieces[..first] {
        [Piece::Text(text)] | [Piece::Package | Piece::OutDir, Piece::Text(text)] => {
            text.ends_with('/')
        }
        _ => false,
    };
    is_directory
        && pieces[first..].iter().all(|piece| match piece {
            Piece::Text(text) => !text.contains(".."),
            Piece::Filled | Piece::Name => true,
            _ => false,
        })
}

fn judge(name: &str, pieces: &[Piece], argument: &str, found: &mut Found<'_>) {
    let mut path_text = String::new();
    // What follows a directory begins with a separator, or it goes on in the directory's name.
    let goes_on = match pieces {
        [Piece::Package | Piece::OutDir, behind @ ..] => {
            let is_empty = |piece: &&Piece| matches!(piece, Piece::Text(text) if text.is_empty());
            let next = behind.iter().find(|piece| !is_empty(piece));
            !next.is_none_or(|piece| matches!(piece, Piece::Text(text) if text.starts_with('/')))
        }
        _ => false,
    };
    let mut is_unknown = pieces.is_empty() || goes_on || !is_filled_plainly(pieces);
    for (at, piece) in pieces.iter().enumerate() {
        path_text.push_str(match piece {
            Piece::Text(text) => text,
            Piece::Package if at == 0 => "",
            Piece::OutDir if at == 0 => "",
            Piece::Name | Piece::Filled => "x",
            Piece::Home => return found.outside(name, argument),
            Piece::Package | Piece::OutDir | Piece::Unknown => {
                is_unknown = true;
                "x"
            }
        });
    }
    let relative = path_text.trim_start_matches('/');
    let reach = match pieces.first() {
        Some(Piece::Package) => package_reach(relative, has_other_form(name), found),
        Some(Piece::OutDir) => leaves(relative, 0).then_some(Reach::Outside),
        _ => leaves(&path_text, found.depth).then_some(Reach::Outside),
    };
    match reach {
        Some(reach) => found.push(reach, name, &path_text),
        None if is_unknown => found.report_unknown(name, argument),
        None => {}
    }
}

/// Whether a construct can also be given the path from its own file.
fn has_other_form(construct: &str) -> bool {
    let name = construct.trim_end_matches('!');
    READERS.contains(&name)
}

/// Where a path leads that counts from the directory of the package. Manifests say which directory that is. By convention it is the one
/// that holds `src` and its like, or `build.rs`.
fn package_reach(relative: &str, has_other_form: bool, found: &Found<'_>) -> Option<Reach> {
    let directories: Vec<&str> = found.path.segments().rev().skip(1).collect();
    let parts = directories
        .iter()
        .enumerate()
        .filter(|(_, name)| PACKAGE_PARTS.contains(name));
    let depths: Vec<usize> = parts.map(|(at, _)| directories.len() - at - 1).collect();
    // A directory of sources may itself hold packages: the innermost one decides, and the outermost makes a doubt.
    let innermost = depths.first().copied().unwrap_or(found.depth);
    let outermost = match depths.last() {
        Some(_) if has_other_form => 0,
        Some(outermost) => *outermost,
        None if found.path.file_name() == "build.rs" && !has_other_form => found.depth,
        None => 0,
    };
    match (leaves(relative, innermost), leaves(relative, outermost)) {
        (true, _) => Some(Reach::Outside),
        (false, true) => Some(Reach::Unknown),
        (false, false) => None,
    }
}
