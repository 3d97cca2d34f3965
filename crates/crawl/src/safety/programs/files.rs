//! cp, install and mkdir: files inside the workspace, and no link is made or carried along.

use super::super::finding::{ARGUMENT_REFUSED, Desk, PATH_INVALID, PATH_LINK};
use super::super::grammar::{self, Kind, Operands, Role, Usage, flag, short};
use super::super::paths::Place;

const RECURSIVE: &[&str] =
    &["-r", "-R", "-a", "-rf", "-rv", "-rp", "-av", "-Rp", "-rfv", "--recursive", "--archive"];

const CP: Usage = Usage::new(
    "cp",
    &[&[
        flag("-r"),
        flag("-R"),
        flag("-a"),
        flag("-rf"),
        flag("-rv"),
        flag("-rp"),
        flag("-av"),
        flag("-Rp"),
        flag("-rfv"),
        flag("--recursive"),
        flag("--archive"),
        flag("-p"),
        flag("-f"),
        flag("-v"),
        flag("-n"),
        flag("-u"),
        flag("--force"),
        flag("--verbose"),
        flag("--no-clobber"),
        flag("--update"),
        flag("-fv"),
        flag("-pv"),
    ]],
    Operands::Each(Kind::Input),
);

const MODE: Kind = Kind::Fits(
    |word| {
        let digits = if word.len() == 4 { word.strip_prefix('0') } else { Some(word) };
        digits.is_some_and(|digits| {
            digits.len() == 3 && digits.bytes().all(|digit| (b'0'..=b'7').contains(&digit))
        })
    },
    "three octal digits such as 755, without a set-id bit",
);

const INSTALL: Usage = Usage::new(
    "install",
    &[&[short("-m", MODE), flag("-d"), flag("-D"), flag("-p"), flag("-v"), flag("-C"), flag("-Dv")]],
    Operands::Each(Kind::Input),
);

const MKDIR: Usage =
    Usage::new("mkdir -p", &[&[flag("-p"), flag("-v"), flag("-pv")]], Operands::Each(Kind::Output));

pub(super) fn judge_cp(words: &[&str], place: Place<'_>, desk: &mut Desk<'_>) {
    let operands = grammar::judge(&CP, words, place, desk);
    let sources = judge_destination("cp", &operands, place, desk);
    let is_recursive = words.iter().any(|word| RECURSIVE.contains(word));
    for source in sources.iter().filter(|_| is_recursive) {
        if source.ends_with('/') || source.split('/').all(|part| part == ".") || source.ends_with("/.") {
            let hint = "this copies what is in the directory, hidden files included; name the files or directories in it";
            desk.refuse(PATH_INVALID, source, hint);
        } else if place.holds_link(source) {
            let hint = "the directory holds a symbolic link, and its copy would lead to the same place; copy the files";
            desk.refuse(PATH_LINK, source, hint);
        }
    }
}

pub(super) fn judge_install(words: &[&str], place: Place<'_>, desk: &mut Desk<'_>) {
    let operands = grammar::judge(&INSTALL, words, place, desk);
    if words.contains(&"-d") {
        for directory in &operands {
            grammar::judge_word(Kind::Output, directory, Role::WordOf("install -d"), place, desk);
        }
        if operands.is_empty() {
            desk.refuse(ARGUMENT_REFUSED, "install -d", "name the directories");
        }
    } else {
        judge_destination("install", &operands, place, desk);
    }
}

/// The last operand is written; returns those before it.
fn judge_destination<'o, 'w>(
    program: &str,
    operands: &'o [&'w str],
    place: Place<'_>,
    desk: &mut Desk<'_>,
) -> &'o [&'w str] {
    match operands.split_last() {
        Some((destination, sources)) if !sources.is_empty() => {
            grammar::judge_word(Kind::Output, destination, Role::WordOf(program), place, desk);
            // A source's name is kept in a directory, so a hidden one is a hidden destination.
            for source in sources {
                let name = source.trim_end_matches('/').rsplit('/').next().unwrap_or(source);
                if name.starts_with('.') && !name.starts_with(".env") && name != "." {
                    desk.refuse(
                        PATH_INVALID,
                        source,
                        "a hidden file may be settings of a tool; leave it where it is",
                    );
                }
            }
            sources
        }
        _ => {
            desk.refuse(ARGUMENT_REFUSED, program, format!("`{program}` needs what to copy and where to"));
            &[]
        }
    }
}

pub(super) fn judge_mkdir(words: &[&str], place: Place<'_>, desk: &mut Desk<'_>) {
    if grammar::judge(&MKDIR, words, place, desk).is_empty() {
        desk.refuse(ARGUMENT_REFUSED, "mkdir -p", "name the directories");
    }
}
