//! Rust: the macros of the compiler that read a file, attributes that name one, and macros that pass a path on.

use super::super::Language;
use super::super::mask::read as masked;
use super::super::token::{plain_names, tokens};
use super::assembler::names_place;
use super::modules::{
    Modules, has_filled_name, is_filled_before, is_variable, may_name_module, visibilities,
};
use super::*;

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
const READERS: [&str; 3] = ["include", "include_str", "include_bytes"];
/// The macros whose literals an assembler reads.
const ASSEMBLERS: [&str; 3] = ["asm", "global_asm", "naked_asm"];
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
    ];
    if !has_any(source, &is_concerned) && !names.has_rust() {
        return;
    }
    let masked = masked(Language::Rust, source);
    let closed = masked.closed();
    let mut tokens = tokens(&closed);
    plain_names(&mut tokens);
    let items = items(source, &tokens, &masked.literals);
    let mut modules = Modules::new(found.path);
    let visibilities = visibilities(&items);
    let mut imports = false;
    for (at, item) in items.iter().enumerate() {
        let next =
            |offset: usize, word: &str| items.get(at + offset).is_some_and(|item| item.is(word));
        let is_call = next(1, "!") && items.get(at + 2).is_some_and(is_open);
        modules.pass(&items, at);
        if item.is(";") {
            imports = false;
        } else if item.is("use") {
            imports = true;
        } else if item.is("#") {
            let open = if next(1, "!") { at + 2 } else { at + 1 };
            if items.get(open).is_some_and(|item| item.is("[")) {
                match inside(&items, open) {
                    Some(list) => {
                        attribute(list, &mut modules, found);
                        let end = open + list.len() + 2;
                        if has_filled_name(list) && may_name_module(&items, end) {
                            found.unknown("an attribute of a module", &written(list));
                        }
                    }
                    None if next(open - at + 1, "cfg_attr") => {
                        found.unknown("#[cfg_attr]", "a long attribute");
                    }
                    None => {}
                }
            }
        } else if item.is("mod") && is_filled_before(&items, at, &visibilities) {
            found.unknown("an attribute of a module", "that a macro fills in");
        } else if item.is("]") && is_call && at > 0 && items[at - 1].is(">") {
            found.unknown("a macro's name", "that is put together");
        } else if item.is_literal {
            assembler::literal(&value(item.text), found);
        } else if is_call {
            call(item, &items, at + 2, names, found);
        } else if READERS[1..].iter().any(|word| item.is(word)) {
            let is_alone = at > 0
                && ["(", "[", "{", ","]
                    .iter()
                    .any(|mark| items[at - 1].is(mark))
                && [")", "]", "}", ","].iter().any(|mark| next(1, mark));
            if next(1, "as") || (is_alone && !imports) {
                found.unknown("another name", &String::from_utf8_lossy(item.text));
            }
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
            Some(argument) => path(&construct, argument, found),
            None => found.unknown(&construct, "a long expression"),
        };
    }
    if ASSEMBLERS.contains(&&*text) {
        return assembler::template(&template(items, open), "an assembler's directive", found);
    }
    let is_passed_on = names.is_rust_reader(name.text);
    for climb in names.climbs(name.text) {
        // A macro's own path counts from the file that calls it.
        found.path(&construct, climb);
    }
    if names.makes_modules() {
        let literals = argument.unwrap_or_default().iter().filter_map(Item::value);
        for literal in literals {
            if names_place(&literal, found.depth) {
                found.unknown(&construct, &literal);
            }
        }
    }
    let is_reader = text.starts_with("include") || text.contains("embed") || text.contains("_file");
    let names_reader = || {
        argument
            .unwrap_or_default()
            .iter()
            .any(|item| READERS.iter().any(|word| item.is(word)))
    };
    if names.is_rust_caller(name.text) && names_reader() {
        return found.unknown(&construct, &written(argument.unwrap_or_default()));
    }
    if !is_reader && !is_passed_on {
        return;
    }
    if argument.is_none() && is_passed_on {
        return found.unknown(&construct, "a long expression");
    }
    let argument = argument.unwrap_or_default();
    let literals: Vec<String> = argument.iter().filter_map(Item::value).collect();
    for literal in &literals {
        let before = found.list.len();
        interpolated(&construct, literal, false, found);
        // What goes before it in the macro may hold fewer directories than it climbs.
        let climbs = literal.split(['/', '\\']).any(|segment| segment == "..");
        if climbs && names.has_prefix(name.text) && found.list.len() == before {
            found.unknown(&construct, literal);
        }
    }
    let is_computed = argument.windows(2).any(|pair| {
        pair[1].is("!")
            && ["env", "option_env", "stringify"]
                .iter()
                .any(|word| pair[0].is(word))
    });
    if is_passed_on && is_computed {
        found.unknown(&construct, &written(argument));
    }
    if is_passed_on && literals.len() > 1 {
        found.path(&construct, &literals.concat());
    }
    let is_passing = argument.iter().any(is_variable);
    if is_passing && (is_passed_on || text.starts_with("include")) {
        found.unknown(&construct, &written(argument));
    }
}

/// What an assembler is given: pieces in one line each, but for those that `concat!` joins. What stands for a text is a hole.
fn template(items: &[Item<'_>], open: usize) -> String {
    let mut out = String::new();
    let (mut depth, mut joined) = (0usize, Vec::new());
    for (at, item) in items
        .iter()
        .enumerate()
        .skip(open)
        .take(assembler::MOST_PIECES)
    {
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
        found.unknown(name, literal);
    } else if is_of_package && !literal.starts_with('/') {
        judge(
            name,
            &[Piece::Package, Piece::Text(literal.to_owned())],
            literal,
            found,
        );
    } else {
        found.path(name, literal);
    }
}

/// `#[path = "…"]`, also behind a condition, and the files that other attributes name.
fn attribute(list: &[Item<'_>], modules: &mut Modules, found: &mut Found<'_>) {
    let is_conditional = list.first().is_some_and(|first| first.is("cfg_attr"));
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
        let Some(target) = literal.value() else {
            if is_own && (name.is("path") || name.is("folder") && is_variable(literal)) {
                found.unknown(&construct, &written(list));
            }
            continue;
        };
        if is_own && name.is("path") {
            match modules.judge(&target) {
                Some(reach) => found.push(reach, &construct, &target),
                None => {}
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
fn path(name: &str, argument: &[Item<'_>], found: &mut Found<'_>) {
    let mut pieces = Vec::new();
    expression(argument, &mut pieces);
    judge(name, &pieces, &written(argument), found);
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
                    name if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_BIN_") => {
                        Piece::Name
                    }
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
    let mut told = String::new();
    let mut is_unknown = pieces.is_empty() || !is_filled_plainly(pieces);
    for (at, piece) in pieces.iter().enumerate() {
        told.push_str(match piece {
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
    let relative = told.trim_start_matches('/');
    let reach = match pieces.first() {
        Some(Piece::Package) => {
            let directories: Vec<&str> = found.path.segments().rev().skip(1).collect();
            // A directory of sources may itself hold packages: the innermost one decides, and the outermost makes a doubt.
            let parts = directories
                .iter()
                .enumerate()
                .filter(|(_, name)| PACKAGE_PARTS.contains(name));
            let depths: Vec<usize> = parts.map(|(at, _)| directories.len() - at - 1).collect();
            let innermost = depths.first().copied().unwrap_or(found.depth);
            let outermost = depths.last().copied().unwrap_or(found.depth);
            match (leaves(relative, innermost), leaves(relative, outermost)) {
                (true, _) => Some(Reach::Outside),
                (false, true) => Some(Reach::Unknown),
                (false, false) => None,
            }
        }
        Some(Piece::OutDir) => leaves(relative, 0).then_some(Reach::Outside),
        _ => leaves(&told, found.depth).then_some(Reach::Outside),
    };
    match reach {
        Some(reach) => found.push(reach, name, &told),
        None if is_unknown => found.unknown(name, argument),
        None => {}
    }
}
