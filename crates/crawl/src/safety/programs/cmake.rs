//! cmake and ctest: configure, build, install and test a tree. Cache entries can replace compilers and
//! launchers, so only harmless entries of cmake are allowed, and a project's own entries as switches.

use super::super::finding::{FindingSink, VALUE_REFUSED};
use super::super::grammar::{
    self, Operands, Opt, Role, Usage, WordKind, flag, is_name, optional_long_value,
    optional_short_value, short, value,
};
use super::super::paths::StepDirectory;
use super::form::{CommandForm, form, plain};

const GENERATOR: WordKind = WordKind::OneOf(&["Ninja"]);
const CONFIG: WordKind = WordKind::OneOf(&["Debug", "Release", "RelWithDebInfo", "MinSizeRel"]);
const SWITCH: &[&str] = &[
    "ON", "OFF", "TRUE", "FALSE", "YES", "NO", "on", "off", "true", "false", "1", "0",
];
const DEFINITION: WordKind = WordKind::Fits(
    |word| {
        word.split_once('=')
            .is_some_and(|(name, value)| is_harmless(name, value))
    },
    "a switch of the project (NAME=ON), or one of cmake's harmless entries such as CMAKE_BUILD_TYPE=Release",
);

/// Entries of cmake that take a plain word.
const WORDS: &[(&str, &[&str])] = &[
    (
        "CMAKE_BUILD_TYPE",
        &["Debug", "Release", "RelWithDebInfo", "MinSizeRel"],
    ),
    ("CMAKE_C_STANDARD", &["90", "99", "11", "17", "23"]),
    (
        "CMAKE_CXX_STANDARD",
        &["98", "11", "14", "17", "20", "23", "26"],
    ),
];

/// Entries of cmake that are switches.
const SWITCHES: &[&str] = &[
    "CMAKE_EXPORT_COMPILE_COMMANDS",
    "CMAKE_POSITION_INDEPENDENT_CODE",
    "CMAKE_VERBOSE_MAKEFILE",
    "CMAKE_INTERPROCEDURAL_OPTIMIZATION",
    "CMAKE_COLOR_DIAGNOSTICS",
    "CMAKE_CXX_EXTENSIONS",
    "CMAKE_C_EXTENSIONS",
    "CMAKE_CXX_STANDARD_REQUIRED",
    "CMAKE_C_STANDARD_REQUIRED",
    "CMAKE_SKIP_INSTALL_RPATH",
    "CMAKE_UNITY_BUILD",
];

const CONFIGURE: Usage = Usage::new(
    "cmake",
    &[&[
        short("-S", WordKind::Input),
        short("-B", WordKind::Owned),
        short("-D", DEFINITION),
        short("-G", GENERATOR),
        value("--install-prefix", WordKind::Owned),
        flag("-Wno-dev"),
        flag("-Wdev"),
        flag("--fresh"),
        value(
            "--log-level",
            WordKind::OneOf(&["ERROR", "WARNING", "NOTICE", "STATUS", "VERBOSE", "DEBUG"]),
        ),
    ]],
    Operands::Each(WordKind::Input),
);

const JOBS: &[Opt] = &[
    optional_short_value("-j", WordKind::Number),
    optional_long_value("--parallel", WordKind::Number),
];

const BUILD: Usage = Usage::new(
    "cmake --build",
    &[
        JOBS,
        &[
            value("--build", WordKind::Input),
            value("--target", WordKind::Label),
            short("-t", WordKind::Label),
            value("--config", CONFIG),
            flag("--clean-first"),
            flag("-v"),
            flag("--verbose"),
        ],
    ],
    // More targets, and the separate number of `-j`.
    Operands::Each(WordKind::Label),
)
.with_tail(&Usage::new(
    "the native build tool",
    &[&[optional_short_value("-j", WordKind::Number), flag("-v")]],
    // The separate number of `-j`.
    Operands::Each(WordKind::Number),
));

const INSTALL: Usage = Usage::new(
    "cmake --install",
    &[
        JOBS,
        &[
            value("--install", WordKind::Input),
            value("--prefix", WordKind::Owned),
            value("--component", WordKind::Name),
            value("--config", CONFIG),
            flag("-v"),
            flag("--verbose"),
        ],
    ],
    Operands::Each(WordKind::Number),
);

const TEST: Usage = Usage::new(
    "ctest",
    &[
        JOBS,
        &[
            value("--test-dir", WordKind::Input),
            flag("--output-on-failure"),
            flag("-V"),
            flag("-VV"),
            flag("--verbose"),
            flag("-Q"),
            flag("--quiet"),
            flag("--progress"),
            flag("--stop-on-failure"),
            flag("--rerun-failed"),
            flag("-N"),
            short("-R", WordKind::Label),
            short("-E", WordKind::Label),
            short("-L", WordKind::Label),
            short("-C", CONFIG),
            value("--build-config", CONFIG),
            value("--timeout", WordKind::Number),
            value("--no-tests", WordKind::OneOf(&["error", "ignore"])),
        ],
    ],
    Operands::Each(WordKind::Number),
);

fn is_harmless(name: &str, value: &str) -> bool {
    let name = match name.split_once(':') {
        None => name,
        Some((name, kind)) if ["BOOL", "STRING", "PATH"].contains(&kind) => name,
        Some(_) => return false,
    };
    if name.to_ascii_uppercase().starts_with("CMAKE_") {
        return WORDS
            .iter()
            .any(|(entry, values)| *entry == name && values.contains(&value))
            || (SWITCHES.contains(&name) && SWITCH.contains(&value))
            || name == INSTALL_PREFIX;
    }
    is_name(name) && SWITCH.contains(&value)
}

/// The only entry with a path as its value.
const INSTALL_PREFIX: &str = "CMAKE_INSTALL_PREFIX";

/// The allowed forms of cmake, by first word.
pub(super) const FORMS: &[CommandForm] = &[
    form(&[], &CONFIGURE, judge_configure),
    form(&["--build"], &BUILD, judge_build).with_condition("the build directory is the next word"),
    form(&["--install"], &INSTALL, judge_install)
        .with_condition("the build directory is the next word"),
];
pub(super) const TESTS: &[CommandForm] = &[plain(&[], &TEST)];

fn judge_build(
    usage: &'static Usage,
    words: &[&str],
    place: StepDirectory<'_>,
    sink: &mut FindingSink<'_>,
) {
    let line = grammar::read(usage, &[&["--build"], words].concat(), place, sink);
    let named = line.values_of(&["--target", "-t"]);
    if named
        .iter()
        .chain(&line.operands)
        .any(|target| super::form::installs(target))
    {
        super::form::warn_of_outside("cmake --build --target install", &[], &[], sink);
    }
}

fn judge_install(
    usage: &'static Usage,
    words: &[&str],
    place: StepDirectory<'_>,
    sink: &mut FindingSink<'_>,
) {
    super::form::warn_of_outside("cmake --install", words, &["--prefix"], sink);
    grammar::judge(usage, &[&["--install"], words].concat(), place, sink);
}

fn judge_configure(
    usage: &'static Usage,
    words: &[&str],
    place: StepDirectory<'_>,
    sink: &mut FindingSink<'_>,
) {
    let mode = words.first().copied().unwrap_or_default();
    if mode.starts_with("--build=") || mode.starts_with("--install=") {
        sink.refuse(VALUE_REFUSED, mode, "write the directory as the next word");
    }
    let line = grammar::read(usage, words, place, sink);
    for entry in line.values_of(&["-D"]) {
        let Some((name, value)) = entry.split_once('=') else {
            continue;
        };
        if name.split(':').next() == Some(INSTALL_PREFIX) {
            grammar::judge_word(
                WordKind::Owned,
                value,
                Role::ValueOf(INSTALL_PREFIX),
                place,
                sink,
            );
        }
    }
}
