//! pip, python, pytest and poetry: they install what the repository declares, build it and test it.
//!
//! A requirement by name, another index, a URL or a module that runs or fetches things is in no table.

use super::super::finding::{ARGUMENT_REFUSED, Desk};
use super::super::grammar::{
    self, Kind, Operands, Opt, Role, Usage, flag, is_name, joined, maybe_joined, short, value,
};
use super::super::paths::Place;

const LOCAL: Kind = Kind::Fits(
    |word| word == "." || word.starts_with("./"),
    "the project itself (`.`) or a directory of it (`./x`); a name would bring in code that the repository does not declare",
);

const PIP: &[Opt] = &[
    value("-e", LOCAL),
    value("--editable", LOCAL),
    value("-r", Kind::Input),
    value("--requirement", Kind::Input),
    value("-c", Kind::Input),
    value("--constraint", Kind::Input),
    value("--group", Kind::Name),
    flag("--no-deps"),
    flag("--no-build-isolation"),
    flag("--no-cache-dir"),
    flag("--no-index"),
    value("--find-links", Kind::Input),
    flag("-U"),
    flag("--upgrade"),
    flag("--user"),
    flag("-q"),
    flag("-qq"),
    flag("--quiet"),
    flag("-v"),
    flag("--verbose"),
    flag("--disable-pip-version-check"),
    flag("--no-input"),
    flag("--no-compile"),
    flag("--no-color"),
    flag("--require-hashes"),
    flag("--no-warn-script-location"),
    flag("--prefer-binary"),
    flag("--use-pep517"),
    flag("--check-build-dependencies"),
    flag("--force-reinstall"),
    flag("--dry-run"),
    value("--progress-bar", Kind::OneOf(&["on", "off"])),
    value("-t", Kind::Output),
    value("--target", Kind::Output),
    value("--prefix", Kind::Output),
    value("--root", Kind::Output),
];
const PIP_INSTALL: Usage = Usage::new("pip install", &[PIP], Operands::Each(LOCAL));

const PYTEST: Usage = Usage::new(
    "pytest",
    &[&[
        flag("-q"),
        flag("-qq"),
        flag("-v"),
        flag("-vv"),
        flag("-vvv"),
        flag("-x"),
        flag("-s"),
        flag("-l"),
        flag("-ra"),
        flag("-rA"),
        flag("-rs"),
        flag("-rf"),
        flag("--quiet"),
        flag("--verbose"),
        flag("--exitfirst"),
        flag("--ff"),
        flag("--failed-first"),
        flag("--lf"),
        flag("--last-failed"),
        flag("--sw"),
        flag("--stepwise"),
        flag("--no-header"),
        flag("--no-summary"),
        flag("--disable-warnings"),
        flag("--strict-markers"),
        flag("--strict-config"),
        flag("--collect-only"),
        flag("--doctest-modules"),
        flag("--showlocals"),
        value("-k", Kind::Label),
        value("-m", Kind::Name),
        value("--maxfail", Kind::Number),
        value("--durations", Kind::Number),
        value("--timeout", Kind::Number),
        short("-n", Kind::Fits(is_name, "a number or auto")),
        value("--tb", Kind::OneOf(&["auto", "long", "short", "line", "native", "no"])),
        value("--color", Kind::OneOf(&["yes", "no", "auto"])),
        value("--import-mode", Kind::OneOf(&["prepend", "append", "importlib"])),
        value("--ignore", Kind::Input),
        value("--junitxml", Kind::Output),
        value("--junit-xml", Kind::Output),
        maybe_joined("--cov", Kind::Input),
        joined("--cov-report", Kind::OneOf(&["term", "term-missing", "xml", "html", "json"])),
        value("-p", Kind::OneOf(&["no:cacheprovider", "no:warnings"])),
    ]],
    Operands::Each(Kind::Fits(
        |word| word.split("::").skip(1).all(is_name),
        "a path of the repository, with or without `::` and the test's name",
    )),
);

const BUILD: Usage = Usage::new(
    "python -m build",
    &[&[
        flag("-w"),
        flag("--wheel"),
        flag("-s"),
        flag("--sdist"),
        flag("-n"),
        flag("--no-isolation"),
        flag("-x"),
        flag("--skip-dependency-check"),
        value("-o", Kind::Output),
        value("--outdir", Kind::Output),
        flag("-v"),
        flag("--verbose"),
    ]],
    Operands::Each(Kind::Input),
);
const UNITTEST: Usage = Usage::new(
    "python -m unittest",
    &[&[
        flag("-v"),
        flag("--verbose"),
        flag("-q"),
        flag("--quiet"),
        flag("-f"),
        flag("--failfast"),
        flag("-b"),
        flag("--buffer"),
        value("-s", Kind::Input),
        value("--start-directory", Kind::Input),
        value("-t", Kind::Input),
        value("--top-level-directory", Kind::Input),
        value("-p", Kind::Name),
        value("--pattern", Kind::Name),
    ]],
    Operands::Each(Kind::Input),
);
const COMPILEALL: Usage = Usage::new(
    "python -m compileall",
    &[&[flag("-q"), flag("-qq"), flag("-f")]],
    Operands::Each(Kind::Input),
);

const SETUP: Usage = Usage::new(
    "python setup.py",
    &[&[
        flag("-q"),
        flag("--quiet"),
        flag("-v"),
        flag("--verbose"),
        flag("--inplace"),
        flag("--force"),
        flag("--user"),
        flag("--no-deps"),
        flag("--all"),
        flag("--strict"),
        flag("--universal"),
        value("--dist-dir", Kind::Output),
        value("--build-lib", Kind::Output),
        value("--build-base", Kind::Output),
        value("--prefix", Kind::Output),
        value("--root", Kind::Output),
        value("--parallel", Kind::Number),
        value("--formats", Kind::Labels),
    ]],
    Operands::Each(Kind::OneOf(SETUP_COMMANDS)),
);
const SETUP_COMMANDS: &[&str] = &[
    "build",
    "build_ext",
    "build_py",
    "build_clib",
    "sdist",
    "bdist",
    "bdist_wheel",
    "install",
    "develop",
    "test",
    "check",
    "egg_info",
    "clean",
];

const POETRY: &[Opt] = &[
    flag("-n"),
    flag("--no-interaction"),
    flag("-q"),
    flag("--quiet"),
    flag("-v"),
    flag("-vv"),
    flag("-vvv"),
    flag("--no-ansi"),
    flag("--no-cache"),
];
const POETRY_INSTALL: Usage = Usage::new(
    "poetry install",
    &[
        POETRY,
        &[
            flag("--no-root"),
            flag("--no-dev"),
            flag("--sync"),
            flag("--all-extras"),
            flag("--all-groups"),
            flag("--only-root"),
            flag("--no-directory"),
            flag("--compile"),
            flag("--dry-run"),
            value("--only", Kind::Labels),
            value("--with", Kind::Labels),
            value("--without", Kind::Labels),
            value("--extras", Kind::Labels),
            value("-E", Kind::Labels),
        ],
    ],
    Operands::None("it installs what pyproject.toml declares"),
);
const POETRY_BUILD: Usage = Usage::new(
    "poetry build",
    &[
        POETRY,
        &[
            value("--format", Kind::OneOf(&["wheel", "sdist"])),
            value("-f", Kind::OneOf(&["wheel", "sdist"])),
            flag("--clean"),
            value("-o", Kind::Output),
            value("--output", Kind::Output),
        ],
    ],
    Operands::None("it builds the project at hand"),
);

pub(super) fn judge_pip(words: &[&str], place: Place<'_>, desk: &mut Desk<'_>) {
    let (command, rest) = super::subcommand(words);
    if command != "install" {
        return super::unknown("pip", command, "install", desk);
    }
    let is_source = |word: &&str| {
        LOCAL_OPTIONS.iter().any(|option| word == option || word.starts_with(&format!("{option}=")))
    };
    let operands = grammar::judge(&PIP_INSTALL, rest, place, desk);
    if operands.is_empty() && !rest.iter().any(is_source) {
        desk.refuse(
            ARGUMENT_REFUSED,
            "pip install",
            "name the project (`.`) or a file of requirements (`-r FILE`)",
        );
    }
    for path in operands.iter().filter(|word| **word != ".") {
        grammar::judge_word(Kind::Input, path, Role::WordOf("pip install"), place, desk);
    }
    let behind = rest.iter().zip(rest.iter().skip(1));
    let apart = behind.filter(|(option, _)| matches!(**option, "-e" | "--editable")).map(|(_, path)| *path);
    let joined = rest.iter().filter_map(|word| word.strip_prefix("--editable="));
    for path in apart.chain(joined).filter(|path| *path != ".") {
        grammar::judge_word(Kind::Input, path, Role::WordOf("pip install"), place, desk);
    }
}

/// Options that say what is installed.
const LOCAL_OPTIONS: &[&str] = &["-e", "--editable", "-r", "--requirement", "--group"];

pub(super) fn judge_python(words: &[&str], place: Place<'_>, desk: &mut Desk<'_>) {
    match words {
        ["-m", module, rest @ ..] => judge_module(module, rest, place, desk),
        ["setup.py", rest @ ..] => {
            grammar::judge_word(Kind::Input, "setup.py", Role::WordOf("python"), place, desk);
            if grammar::judge(&SETUP, rest, place, desk).is_empty() {
                desk.refuse(
                    ARGUMENT_REFUSED,
                    "setup.py",
                    format!("name one of: {}", SETUP_COMMANDS.join(", ")),
                );
            }
        }
        _ => super::unknown("python", words.first().unwrap_or(&""), "-m MODULE, setup.py", desk),
    }
}

fn judge_module(module: &str, rest: &[&str], place: Place<'_>, desk: &mut Desk<'_>) {
    match module {
        "build" => drop(grammar::judge(&BUILD, rest, place, desk)),
        "pytest" => judge_pytest(rest, place, desk),
        "unittest" => drop(grammar::judge(&UNITTEST, rest, place, desk)),
        "compileall" => drop(grammar::judge(&COMPILEALL, rest, place, desk)),
        "pip" => judge_pip(rest, place, desk),
        _ => super::unknown("python -m", module, "build, pytest, unittest, compileall, pip install", desk),
    }
}

pub(super) fn judge_pytest(words: &[&str], place: Place<'_>, desk: &mut Desk<'_>) {
    for test in grammar::judge(&PYTEST, words, place, desk) {
        let file = test.split("::").next().unwrap_or(test);
        grammar::judge_word(Kind::Input, file, Role::WordOf("pytest"), place, desk);
    }
}

pub(super) fn judge_poetry(words: &[&str], place: Place<'_>, desk: &mut Desk<'_>) {
    match words {
        ["install", rest @ ..] => drop(grammar::judge(&POETRY_INSTALL, rest, place, desk)),
        ["build", rest @ ..] => drop(grammar::judge(&POETRY_BUILD, rest, place, desk)),
        ["run", "pytest", rest @ ..] => judge_pytest(rest, place, desk),
        ["run", "python" | "python3", rest @ ..] => judge_python(rest, place, desk),
        ["run", other, ..] => super::unknown("poetry run", other, "pytest, python -m MODULE", desk),
        _ => super::unknown("poetry", words.first().unwrap_or(&""), "install, build, run", desk),
    }
}
