//! go: builds, tests and installs the packages of the module in the workspace. Options that name another
//! program (`-exec`, `-toolexec`, `-vettool`), replace files (`-overlay`, `-modfile`), fetch a version
//! (`@`) or add to go.mod (`-mod=mod`) are not in the table.

use super::super::finding::FindingSink;
use super::super::grammar::{
    self, Kind, Operands, Opt, Role, Usage, flag, is_label, is_name, joined, value,
};
use super::super::paths::Place;
use super::form::{Form, form};

const SWITCH: Kind = Kind::OneOf(&["true", "false"]);
const LINKER: Kind = Kind::OneOf(&["-s", "-w"]);
const DURATION: Kind = Kind::Fits(is_name, "a time such as 5m");

/// A choice of tests and benchmarks; `.` means all.
const CHOICE: Kind = Kind::Fits(
    |word| word == "." || is_label(word),
    "a plain name, or `.` for all",
);

/// Packages and files must be relative paths: a bare import path could be a foreign module, even one that
/// ends in `.go`, and a bare `...` matches every known package, including the standard library.
const PACKAGES: Operands = Operands::Each(Kind::Fits(
    is_local_package,
    "a package of this module such as ./... or ./cmd/x",
));

const BUILD: &[Opt] = &[
    flag("-v"),
    flag("-x"),
    flag("-n"),
    flag("-a"),
    flag("-race"),
    flag("-cover"),
    flag("-trimpath"),
    joined("-trimpath", SWITCH),
    joined("-race", SWITCH),
    joined("-buildvcs", Kind::OneOf(&["true", "false", "auto"])),
    value("-p", Kind::Number),
    value("-tags", Kind::Labels),
    value("-ldflags", LINKER),
    value("-mod", Kind::OneOf(&["readonly", "vendor"])),
    value(
        "-buildmode",
        Kind::OneOf(&["default", "exe", "pie", "archive", "c-archive", "c-shared"]),
    ),
];

const OUTPUT: &[Opt] = &[value("-o", Kind::Output)];

const TEST: &[Opt] = &[
    flag("-short"),
    flag("-failfast"),
    flag("-json"),
    flag("-benchmem"),
    flag("-c"),
    value("-run", CHOICE),
    value("-skip", Kind::Label),
    value("-bench", CHOICE),
    value("-count", Kind::Number),
    value("-parallel", Kind::Number),
    value("-timeout", DURATION),
    value("-benchtime", DURATION),
    value("-coverprofile", Kind::Output),
    value("-covermode", Kind::OneOf(&["set", "count", "atomic"])),
    value("-shuffle", Kind::OneOf(&["on", "off"])),
    value("-vet", Kind::OneOf(&["off", "all"])),
];

const BUILDS: Usage = Usage::new("go build", &[BUILD, OUTPUT], PACKAGES);
const TESTS: Usage = Usage::new("go test", &[BUILD, OUTPUT, TEST], PACKAGES);
const VET: Usage = Usage::new("go vet", &[BUILD, &[flag("-json")]], PACKAGES);
const INSTALL: Usage = Usage::new("go install", &[BUILD], PACKAGES);
const GENERATE: Usage = Usage::new(
    "go generate",
    &[&[
        flag("-v"),
        flag("-x"),
        flag("-n"),
        value("-run", Kind::Label),
        value("-skip", Kind::Label),
        value("-tags", Kind::Labels),
    ]],
    PACKAGES,
);
const TIDY: Usage = Usage::new(
    "go mod tidy",
    &[&[
        flag("-v"),
        flag("-x"),
        flag("-e"),
        value("-compat", Kind::Name),
    ]],
    Operands::None("it works on the module at hand"),
);
const DOWNLOAD: Usage = Usage::new(
    "go mod download",
    &[&[flag("-x"), flag("-json")]],
    Operands::None("it fetches what go.mod declares, and nothing by name"),
);

fn is_local_package(word: &str) -> bool {
    let is_part = |part: &str| {
        matches!(part, "" | "." | "...") || is_name(part.strip_prefix('.').unwrap_or(part))
    };
    // Vendored code is foreign, with its own commands for `go generate`.
    let is_foreign = |part: &str| part.eq_ignore_ascii_case("vendor");
    match word.strip_prefix("./") {
        Some(below) => below
            .split('/')
            .all(|part| is_part(part) && !is_foreign(part)),
        None => word == "." || word.strip_suffix(".go").is_some_and(is_name),
    }
}

/// The allowed forms of go.
pub(super) const FORMS: &[Form] = &[
    form(&["build"], &BUILDS, judge),
    form(&["test"], &TESTS, judge),
    form(&["vet"], &VET, judge),
    form(&["generate"], &GENERATE, judge),
    form(&["install"], &INSTALL, judge_install),
    form(&["mod", "tidy"], &TIDY, judge),
    form(&["mod", "download"], &DOWNLOAD, judge),
];

fn judge_install(
    usage: &'static Usage,
    words: &[&str],
    place: Place<'_>,
    sink: &mut FindingSink<'_>,
) {
    super::form::warn_of_outside("go install", words, &[], sink);
    judge(usage, words, place, sink);
}

fn judge(usage: &'static Usage, words: &[&str], place: Place<'_>, sink: &mut FindingSink<'_>) {
    let packages = grammar::judge(usage, words, place, sink);
    for package in packages {
        // The final pattern matches directories that no link can lead to: go does not follow links.
        let directory = package.trim_end_matches("...").trim_end_matches('/');
        if !directory.is_empty() {
            grammar::judge_word(Kind::Input, directory, Role::WordOf("go"), place, sink);
        }
    }
}
