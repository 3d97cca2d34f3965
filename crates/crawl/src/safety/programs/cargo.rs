//! cargo: builds, tests and installs the package in the workspace. Configuration options (`--config`,
//! `+toolchain`, `-Z`) and packages from elsewhere are not in the table.

use super::super::finding::FindingSink;
use super::super::grammar::{self, Kind, Operands, Opt, Usage, flag, is_name, short, value};
use super::super::paths::Place;
use super::form::{Form, form, plain};

const TRIPLE: Kind = Kind::Fits(
    |word| is_name(word) && !word.ends_with(".json"),
    "the name of a target; a file could choose programs",
);
const PACKAGE: Kind = Kind::Fits(
    |word| {
        let (name, version) = word.split_once('@').unwrap_or((word, "0"));
        is_name(name) && is_name(version)
    },
    "the name of a package, with or without `@version`",
);
const MANIFEST: Kind = Kind::Input;

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
    value("--color", Kind::OneOf(&["auto", "always", "never"])),
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
    value("--features", Kind::Labels),
    value("-F", Kind::Labels),
    value("--bin", Kind::Name),
    value("--example", Kind::Name),
    value("--test", Kind::Name),
    value("--bench", Kind::Name),
    value("--jobs", Kind::Number),
    short("-j", Kind::Number),
    value("--profile", Kind::Name),
    value("--target", TRIPLE),
    value("--target-dir", Kind::Output),
    value("--message-format", Kind::OneOf(&["human", "short", "json"])),
];

const NO_OPERAND: Operands =
    Operands::None("targets are chosen by options such as --bin and --package");

const BUILDS: Usage = Usage::new("cargo build", &[COMMON, BUILD], NO_OPERAND);

const TESTS: Usage = Usage::new("cargo test", &[COMMON, BUILD], Operands::Each(Kind::Label))
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
            value("--test-threads", Kind::Number),
            value("--skip", Kind::Label),
            value("--color", Kind::OneOf(&["auto", "always", "never"])),
        ]],
        Operands::Each(Kind::Label),
    ));

const CLIPPY: Usage =
    Usage::new("cargo clippy", &[COMMON, BUILD], NO_OPERAND).with_tail(&Usage::new(
        "clippy",
        &[&[
            short("-D", Kind::Label),
            short("-W", Kind::Label),
            short("-A", Kind::Label),
            short("-F", Kind::Label),
            value("--deny", Kind::Label),
            value("--warn", Kind::Label),
            value("--allow", Kind::Label),
            value("--forbid", Kind::Label),
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
            value("--path", Kind::Input),
            value("--root", Kind::Owned),
            flag("--force"),
            flag("-f"),
            flag("--no-track"),
        ],
    ],
    Operands::None("only the package at --path is installed, none from elsewhere"),
);

/// The allowed forms of cargo.
pub(super) const FORMS: &[Form] = &[
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
    place: Place<'_>,
    sink: &mut FindingSink<'_>,
) {
    super::form::warn_of_outside("cargo install", words, &["--root"], sink);
    grammar::judge(usage, words, place, sink);
}
