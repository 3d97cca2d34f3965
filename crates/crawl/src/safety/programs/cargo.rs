//! cargo: builds, tests and installs the package in the workspace. Configuration options (`--config`,
//! `+toolchain`, `-Z`) and packages from elsewhere are not in the table.

use super::super::finding::FindingSink;
use super::super::grammar::{self, Operands, Opt, Usage, WordKind, flag, is_name, short, value};
use super::super::paths::StepDirectory;
use super::form::{CommandForm, form, plain};

const TRIPLE: WordKind = WordKind::Fits(
    |word| is_name(word) && !word.ends_with(".json"),
    "the name of a target; a file could choose programs",
);
const PACKAGE: WordKind = WordKind::Fits(
    |word| {
        let (name, version) = word.split_once('@').unwrap_or((word, "0"));
        is_name(name) && is_name(version)
    },
    "the name of a package, with or without `@version`",
);
const MANIFEST: WordKind = WordKind::Input;

const COMMON: &[Opt] = &[
    flag("-v"),
    flag("-vv"),
    flag("-vvv"),
    flag("--verbose"),
    flag("-q"),
    flag("--quiet"),
    flag("--locked"),
    flag("--offline"),
    flag("--frozen"),
    value("--color", WordKind::OneOf(&["auto", "always", "never"])),
    value("--manifest-path", MANIFEST),
];

const BUILD: &[Opt] = &[
    flag("--release"),
    flag("-r"),
    flag("--debug"),
    flag("--workspace"),
    flag("--all"),
    flag("--all-features"),
    flag("--no-default-features"),
    flag("--all-targets"),
    flag("--lib"),
    flag("--bins"),
    flag("--examples"),
    flag("--tests"),
    flag("--benches"),
    flag("--keep-going"),
    flag("--no-fail-fast"),
    flag("--ignore-rust-version"),
    flag("--future-incompat-report"),
    flag("--no-run"),
    flag("--doc"),
    flag("--no-deps"),
    value("--package", PACKAGE),
    value("-p", PACKAGE),
    value("--exclude", PACKAGE),
    value("--features", WordKind::Labels),
    value("-F", WordKind::Labels),
    value("--bin", WordKind::Name),
    value("--example", WordKind::Name),
    value("--test", WordKind::Name),
    value("--bench", WordKind::Name),
    value("--jobs", WordKind::Number),
    short("-j", WordKind::Number),
    value("--profile", WordKind::Name),
    value("--target", TRIPLE),
    value("--target-dir", WordKind::Output),
    value(
        "--message-format",
        WordKind::OneOf(&["human", "short", "json"]),
    ),
];

const NO_OPERAND: Operands =
    Operands::None("targets are chosen by options such as --bin and --package");

const BUILDS: Usage = Usage::new("cargo build", &[COMMON, BUILD], NO_OPERAND);

const TESTS: Usage = Usage::new(
    "cargo test",
    &[COMMON, BUILD],
    Operands::Each(WordKind::Label),
)
.with_tail(&Usage::new(
    "a test program",
    &[&[
        flag("--nocapture"),
        flag("--no-capture"),
        flag("--ignored"),
        flag("--include-ignored"),
        flag("--exact"),
        flag("--show-output"),
        flag("--list"),
        flag("--quiet"),
        flag("-q"),
        flag("--test"),
        flag("--bench"),
        value("--test-threads", WordKind::Number),
        value("--skip", WordKind::Label),
        value("--color", WordKind::OneOf(&["auto", "always", "never"])),
    ]],
    Operands::Each(WordKind::Label),
));

const CLIPPY: Usage =
    Usage::new("cargo clippy", &[COMMON, BUILD], NO_OPERAND).with_tail(&Usage::new(
        "clippy",
        &[&[
            short("-D", WordKind::Label),
            short("-W", WordKind::Label),
            short("-A", WordKind::Label),
            short("-F", WordKind::Label),
            value("--deny", WordKind::Label),
            value("--warn", WordKind::Label),
            value("--allow", WordKind::Label),
            value("--forbid", WordKind::Label),
        ]],
        Operands::None("only levels of lints are passed on"),
    ));

const FMT: Usage = Usage::new(
    "cargo fmt",
    &[
        COMMON,
        &[
            flag("--all"),
            flag("--check"),
            value("--package", PACKAGE),
            value("-p", PACKAGE),
        ],
    ],
    Operands::None("packages are chosen by --package"),
)
.with_tail(&Usage::new(
    "rustfmt",
    &[&[flag("--check")]],
    Operands::None("only --check is passed on"),
));

const DOC: Usage = Usage::new(
    "cargo doc",
    &[COMMON, BUILD, &[flag("--document-private-items")]],
    NO_OPERAND,
);

const INSTALL: Usage = Usage::new(
    "cargo install --path",
    &[
        COMMON,
        BUILD,
        &[
            value("--path", WordKind::Input),
            value("--root", WordKind::Owned),
            flag("--force"),
            flag("-f"),
            flag("--no-track"),
        ],
    ],
    Operands::None("only the package at --path is installed, none from elsewhere"),
);

/// The allowed forms of cargo.
pub(super) const FORMS: &[CommandForm] = &[
    plain(&["build"], &BUILDS),
    plain(&["check"], &BUILDS),
    plain(&["test"], &TESTS),
    plain(&["bench"], &TESTS),
    plain(&["clippy"], &CLIPPY),
    plain(&["fmt"], &FMT),
    plain(&["doc"], &DOC),
    form(&["install"], &INSTALL, judge_install),
];

fn judge_install(
    usage: &'static Usage,
    words: &[&str],
    place: StepDirectory<'_>,
    sink: &mut FindingSink<'_>,
) {
    super::form::warn_of_outside("cargo install", words, &["--root"], sink);
    grammar::judge(usage, words, place, sink);
}
