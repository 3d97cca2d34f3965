//! meson and ninja: set up, compile, test and install a tree. Machine files, test wrappers and arguments
//! for other tools name programs, so they are not in the tables.

use super::super::finding::{ARGUMENT_REFUSED, FindingSink, OPTION_REFUSED};
use super::super::grammar::{
    self, Line, Operands, Opt, Role, Usage, WordKind, flag, is_name, short, value,
};
use super::super::paths::{StepDirectory, normal};
use super::form::{CommandForm, form};

const BUILD_TYPE: WordKind =
    WordKind::OneOf(&["plain", "debug", "debugoptimized", "release", "minsize"]);
const SWITCH: &[&str] = &["true", "false", "enabled", "disabled", "auto"];
const DEFINITION: WordKind = WordKind::Fits(
    |word| {
        word.split_once('=')
            .is_some_and(|(name, value)| is_harmless(name, value))
    },
    "a switch (name=true, name=enabled), or one of meson's harmless options such as buildtype=release",
);

/// Options of meson that take a plain word.
const WORDS: &[(&str, &[&str])] = &[
    (
        "buildtype",
        &["plain", "debug", "debugoptimized", "release", "minsize"],
    ),
    ("default_library", &["shared", "static", "both"]),
    ("optimization", &["0", "g", "1", "2", "3", "s"]),
    ("warning_level", &["0", "1", "2", "3", "everything"]),
    ("wrap_mode", &["nofallback", "nodownload", "nopromote"]),
    ("c_std", &["c99", "c11", "c17", "gnu99", "gnu11", "gnu17"]),
    ("cpp_std", &["c++11", "c++14", "c++17", "c++20", "c++23"]),
    ("b_ndebug", &["true", "false", "if-release"]),
];

const DIRECTORY: &[Opt] = &[short("-C", WordKind::Input)];

const SETUP: Usage = Usage::new(
    "meson setup",
    &[&[
        short("-D", DEFINITION),
        value("--buildtype", BUILD_TYPE),
        value("--prefix", WordKind::Owned),
        value("--libdir", WordKind::Output),
        value("--bindir", WordKind::Output),
        value("--includedir", WordKind::Output),
        value(
            "--default-library",
            WordKind::OneOf(&["shared", "static", "both"]),
        ),
        value(
            "--wrap-mode",
            WordKind::OneOf(&["nofallback", "nodownload", "nopromote"]),
        ),
        value("--backend", WordKind::OneOf(&["ninja"])),
        value(
            "--warnlevel",
            WordKind::OneOf(&["0", "1", "2", "3", "everything"]),
        ),
        value(
            "--optimization",
            WordKind::OneOf(&["plain", "0", "g", "1", "2", "3", "s"]),
        ),
        flag("--reconfigure"),
        flag("--werror"),
        flag("--strip"),
        flag("--debug"),
    ]],
    // The build directory and the source directory, in either order.
    Operands::Each(WordKind::Input),
);
const COMPILE: Usage = Usage::new(
    "meson compile",
    &[
        DIRECTORY,
        &[
            short("-j", WordKind::Number),
            value("--jobs", WordKind::Number),
            flag("-v"),
            flag("--verbose"),
            flag("--clean"),
        ],
    ],
    Operands::Each(WordKind::Label),
);
const TEST: Usage = Usage::new(
    "meson test",
    &[
        DIRECTORY,
        &[
            flag("-v"),
            flag("--verbose"),
            flag("-q"),
            flag("--quiet"),
            flag("--print-errorlogs"),
            flag("--no-rebuild"),
            flag("--list"),
            value("--suite", WordKind::Label),
            value("--no-suite", WordKind::Label),
            value("--num-processes", WordKind::Number),
            short("-j", WordKind::Number),
            value("--repeat", WordKind::Number),
            value("--timeout-multiplier", WordKind::Number),
            short("-t", WordKind::Number),
            value("--maxfail", WordKind::Number),
        ],
    ],
    Operands::Each(WordKind::Label),
);
const INSTALL: Usage = Usage::new(
    "meson install",
    &[
        DIRECTORY,
        &[
            flag("--no-rebuild"),
            flag("--only-changed"),
            flag("--quiet"),
            flag("--skip-subprojects"),
            flag("--dry-run"),
            value("--destdir", WordKind::Owned),
            value("--tags", WordKind::Labels),
        ],
    ],
    Operands::None("it installs what the build directory holds"),
);
const NINJA: Usage = Usage::new(
    "ninja",
    &[
        DIRECTORY,
        &[
            short("-j", WordKind::Number),
            short("-k", WordKind::Number),
            short("-l", WordKind::Number),
            flag("-v"),
            flag("--verbose"),
            flag("--quiet"),
            flag("-n"),
        ],
    ],
    Operands::Each(WordKind::Label),
);

fn is_harmless(name: &str, value: &str) -> bool {
    // An option of a subproject.
    let name = match name.split_once(':') {
        Some((project, name)) if is_name(project) => name,
        _ => name,
    };
    let names_a_program = [
        "_args", "_path", "_dir", "_file", "_options", "dir", "command",
    ];
    if let Some((_, values)) = WORDS.iter().find(|(option, _)| *option == name) {
        return values.contains(&value);
    }
    is_name(name)
        && SWITCH.contains(&value)
        && !names_a_program.iter().any(|end| name.ends_with(end))
}

/// The allowed forms of meson.
pub(super) const FORMS: &[CommandForm] = &[
    form(&["setup"], &SETUP, judge_setup)
        .with_condition("one of the words is the build directory, another one only `.`"),
    form(&["compile"], &COMPILE, judge_there),
    form(&["test"], &TEST, judge_there),
    form(&["install"], &INSTALL, judge_install),
];
pub(super) const NINJA_FORMS: &[CommandForm] = &[form(&[], &NINJA, judge_ninja)];

fn judge_setup(
    usage: &'static Usage,
    words: &[&str],
    place: StepDirectory<'_>,
    sink: &mut FindingSink<'_>,
) {
    let line = grammar::read(usage, words, place, sink);
    judge_directories(&line.operands, place, sink);
}

fn judge_there(
    usage: &'static Usage,
    words: &[&str],
    place: StepDirectory<'_>,
    sink: &mut FindingSink<'_>,
) {
    let line = grammar::read(usage, words, place, sink);
    only_directory("meson", &line, sink);
}

fn judge_install(
    usage: &'static Usage,
    words: &[&str],
    place: StepDirectory<'_>,
    sink: &mut FindingSink<'_>,
) {
    super::form::warn_of_outside("meson install", words, &["--destdir"], sink);
    let line = grammar::read(usage, words, place, sink);
    let directory = only_directory("meson", &line, sink);
    // A relative path is relative to the build directory.
    for stage in line.values_of(&["--destdir"]) {
        grammar::judge_word(
            WordKind::Owned,
            stage,
            Role::ValueOf("--destdir"),
            place.within(directory),
            sink,
        );
    }
}

/// `meson setup` creates or fills every directory except the working directory.
fn judge_directories(directories: &[&str], place: StepDirectory<'_>, sink: &mut FindingSink<'_>) {
    let (here, others): (Vec<&str>, Vec<&str>) =
        directories.iter().partition(|path| normal(path).is_empty());
    if others.is_empty() || others.len() > 1 || here.len() > 1 {
        let hint = "name the build directory, and behind it no other place than `.`";
        sink.refuse(ARGUMENT_REFUSED, "meson setup", hint);
    }
    for path in others {
        grammar::judge_word(
            WordKind::Owned,
            path,
            Role::WordOf("meson setup"),
            place,
            sink,
        );
    }
}

/// The directory to which the program changes first.
fn only_directory<'w>(program: &str, line: &Line<'w>, sink: &mut FindingSink<'_>) -> &'w str {
    let directories = line.values_of(&["-C"]);
    if let [_, second, ..] = directories.as_slice() {
        sink.refuse(
            OPTION_REFUSED,
            second,
            format!("`{program}` goes to one directory; name it once"),
        );
    }
    directories.first().copied().unwrap_or(".")
}

fn judge_ninja(
    usage: &'static Usage,
    words: &[&str],
    place: StepDirectory<'_>,
    sink: &mut FindingSink<'_>,
) {
    let line = grammar::read(usage, words, place, sink);
    only_directory("ninja", &line, sink);
    if line
        .operands
        .iter()
        .any(|target| super::form::installs(target))
    {
        super::form::warn_of_outside("ninja install", words, &[], sink);
    }
}
