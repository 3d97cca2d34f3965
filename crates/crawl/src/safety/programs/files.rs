//! cp, install and mkdir: files inside the workspace; no link is created or copied.

use super::super::finding::{ARGUMENT_REFUSED, COPY_MERGES, FindingSink, PATH_INVALID, PATH_LINK};
use super::super::grammar::{self, Operands, Role, Usage, WordKind, flag, short};
use super::super::paths::{Access, StepDirectory, is_hidden_setting, normal};
use super::form::{CommandForm, form};

const RECURSIVE: &[&str] = &[
    "-r",
    "-R",
    "-a",
    "-rf",
    "-rv",
    "-rp",
    "-av",
    "-Rp",
    "-rfv",
    "--recursive",
    "--archive",
];

/// Directories of build outputs: no step works in them, so merging a tree into one has no side effects.
const OUT: &[&str] = &[
    "bin", "build", "dist", "install", "out", "public", "release", "stage", "staging", "target",
];

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
    Operands::Each(WordKind::Input),
);

const MODE: WordKind = WordKind::Fits(
    |word| {
        let digits = if word.len() == 4 {
            word.strip_prefix('0')
        } else {
            Some(word)
        };
        digits.is_some_and(|digits| {
            digits.len() == 3 && digits.bytes().all(|digit| (b'0'..=b'7').contains(&digit))
        })
    },
    "three octal digits such as 755, without a set-id bit",
);

const INSTALL: Usage = Usage::new(
    "install",
    &[&[
        short("-m", MODE),
        flag("-d"),
        flag("-D"),
        flag("-p"),
        flag("-v"),
        flag("-C"),
        flag("-Dv"),
    ]],
    Operands::Each(WordKind::Input),
);

const MKDIR: Usage = Usage::new(
    "mkdir -p",
    &[&[flag("-p"), flag("-v"), flag("-pv")]],
    Operands::Each(WordKind::Made),
);

pub(super) const CP_FORMS: &[CommandForm] = &[form(&[], &CP, judge_cp)
    .with_condition("the last word is the destination, no hidden file is copied")];
pub(super) const INSTALL_FORMS: &[CommandForm] = &[form(&[], &INSTALL, judge_install)
    .with_condition("the last word is the destination, or each with `-d` a directory")];
pub(super) const MKDIR_FORMS: &[CommandForm] = &[form(&[], &MKDIR, judge_mkdir)];

fn judge_cp(
    usage: &'static Usage,
    words: &[&str],
    place: StepDirectory<'_>,
    sink: &mut FindingSink<'_>,
) {
    let operands = grammar::judge(usage, words, place, sink);
    let is_recursive = words.iter().any(|word| RECURSIVE.contains(word));
    // A tree can overwrite anything below its destination.
    let access = if is_recursive {
        Access::Write
    } else {
        Access::Make
    };
    let sources = judge_destination("cp", &operands, access, place, sink);
    if let Some(destination) = operands
        .last()
        .filter(|_| is_recursive && !sources.is_empty())
    {
        judge_merge(destination, sink);
    }
    for source in sources.iter().filter(|_| is_recursive) {
        if source.ends_with('/')
            || source.split('/').all(|part| part == ".")
            || source.ends_with("/.")
        {
            let hint = "this copies what is in the directory, hidden files included; name the files or directories in it";
            sink.refuse(PATH_INVALID, source, hint);
        } else if place.holds_link(source) {
            let hint = "the directory holds a symbolic link, and its copy would lead to the same place; copy the files";
            sink.refuse(PATH_LINK, source, hint);
        }
    }
}

/// Warns about a tree that may be merged into an existing one of its name, hidden files included.
fn judge_merge(destination: &str, sink: &mut FindingSink<'_>) {
    let path = normal(destination);
    if path.is_empty() {
        let hint = "copying merges the tree, with hidden files, into an existing directory of that name; copy it into a new directory";
        sink.refuse(PATH_INVALID, destination, hint);
    } else if !path
        .split('/')
        .next()
        .is_some_and(|first| OUT.contains(&first))
    {
        let hint = "a tree is copied with its hidden files into what may be there already; look at what it holds first";
        sink.warn(COPY_MERGES, destination, hint);
    }
}

fn judge_install(
    usage: &'static Usage,
    words: &[&str],
    place: StepDirectory<'_>,
    sink: &mut FindingSink<'_>,
) {
    let operands = grammar::judge(usage, words, place, sink);
    if words.contains(&"-d") {
        for directory in &operands {
            grammar::judge_word(
                WordKind::Made,
                directory,
                Role::WordOf("install -d"),
                place,
                sink,
            );
        }
        if operands.is_empty() {
            sink.refuse(ARGUMENT_REFUSED, "install -d", "name the directories");
        }
    } else {
        judge_destination("install", &operands, Access::Make, place, sink);
    }
}

/// Checks the last operand, which is written; returns those before it.
fn judge_destination<'o, 'w>(
    program: &str,
    operands: &'o [&'w str],
    access: Access,
    place: StepDirectory<'_>,
    sink: &mut FindingSink<'_>,
) -> &'o [&'w str] {
    match operands.split_last() {
        Some((destination, sources)) if !sources.is_empty() => {
            let judged = place.check(destination, access);
            // In a directory a source keeps its name, so a hidden one is a hidden destination, and a link
            // of that name would be followed.
            for source in sources {
                let name = source
                    .trim_end_matches('/')
                    .rsplit('/')
                    .next()
                    .unwrap_or(source);
                if judged.is_ok() && place.leads_through_link(&format!("{destination}/{name}")) {
                    let hint = "a symbolic link of this name lies in the directory, and the copy would go through it";
                    sink.refuse(PATH_LINK, source, hint);
                }
                if is_hidden_setting(name) {
                    sink.refuse(
                        PATH_INVALID,
                        source,
                        "a hidden file may be settings of a tool; leave it where it is",
                    );
                }
            }
            if let Err(refusal) = judged {
                sink.refuse(refusal.code, destination, refusal.hint);
            }
            sources
        }
        _ => {
            sink.refuse(
                ARGUMENT_REFUSED,
                program,
                format!("`{program}` needs what to copy and where to"),
            );
            &[]
        }
    }
}

fn judge_mkdir(
    usage: &'static Usage,
    words: &[&str],
    place: StepDirectory<'_>,
    sink: &mut FindingSink<'_>,
) {
    if grammar::judge(usage, words, place, sink).is_empty() {
        sink.refuse(ARGUMENT_REFUSED, "mkdir -p", "name the directories");
    }
}
