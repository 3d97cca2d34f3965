//! go: builds, tests and installs the packages of the module in the workspace. Options that name another
//! program (`-exec`, `-toolexec`, `-vettool`), replace files (`-overlay`, `-modfile`), fetch a version
//! (`@`) or add to go.mod (`-mod=mod`) are not in the table.

use super::super::finding::FindingSink;
use super::super::grammar::{
    self, Operands, Opt, Role, Usage, WordKind, flag, is_label, is_name, required_long_value, value,
};
use super::super::paths::StepDirectory;
use super::form::{CommandForm, form};

const SWITCH: WordKind = WordKind::OneOf(&["true", "false"]);
const LINKER: WordKind = WordKind::OneOf(&["-s", "-w"]);
const DURATION: WordKind = WordKind::Fits(is_name, "a time such as 5m");

/// A choice of tests and benchmarks; `.` means all.
const CHOICE: WordKind = WordKind::Fits(
    |word| word == "." || is_label(word),
    "a plain name, or `.` for all",
);

/// Packages and files must be relative paths: a bare import path could be a foreign module, even one that
/// ends in `.go`, and a bare `...` matches every known package, including the standard library.
const PACKAGES: Operands = Operands::Each(WordKind::Fits(
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
    required_long_value("-trimpath", SWITCH),
    required_long_value("-race", SWITCH),
    required_long_value("-buildvcs", WordKind::OneOf(&["true", "false", "auto"])),
    value("-p", WordKind::Number),
    value("-tags", WordKind::Labels),
    value("-ldflags", LINKER),
    value("-mod", WordKind::OneOf(&["readonly", "vendor"])),
    value(
        "-buildmode",
        WordKind::OneOf(&["default", "exe", "pie", "archive", "c-archive", "c-shared"]),
    ),
];

const OUTPUT: &[Opt] = &[value("-o", WordKind::Output)];

const TEST: &[Opt] = &[
    flag("-short"),
    flag("-failfast"),
    flag("-json"),
    flag("-benchmem"),
    flag("-c"),
    value("-run", CHOICE),
    value("-skip", WordKind::Label),
    value("-bench", CHOICE),
    value("-count", WordKind::Number),
    value("-parallel", WordKind::Number),
    value("-timeout", DURATION),
    value("-benchtime", DURATION),
    value("-coverprofile", WordKind::Output),
    value("-covermode", WordKind::OneOf(&["set", "count", "atomic"])),
    value("-shuffle", WordKind::OneOf(&["on", "off"])),
    value("-vet", WordKind::OneOf(&["off", "all"])),
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
        value("-run", WordKind::Label),
        value("-skip", WordKind::Label),
        value("-tags", WordKind::Labels),
    ]],
    PACKAGES,
);
const TIDY: Usage = Usage::new(
    "go mod tidy",
    &[&[
        flag("-v"),
        flag("-x"),
        flag("-e"),
        value("-compat", WordKind::Name),
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
pub(super) const FORMS: &[CommandForm] = &[
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
    place: StepDirectory<'_>,
    sink: &mut FindingSink<'_>,
) {
    super::form::warn_of_outside("go install", words, &[], sink);
    judge(usage, words, place, sink);
}

fn judge(
    usage: &'static Usage,
    words: &[&str],
    place: StepDirectory<'_>,
    sink: &mut FindingSink<'_>,
) {
    let packages = grammar::judge(usage, words, place, sink);
    for package in packages {
        // The final pattern matches directories that no link can lead to: go does not follow links.
        let directory = package.trim_end_matches("...").trim_end_matches('/');
        if !directory.is_empty() {
            grammar::judge_word(WordKind::Input, directory, Role::WordOf("go"), place, sink);
        }
    }
}
