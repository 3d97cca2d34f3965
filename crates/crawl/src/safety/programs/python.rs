//! pip, python, pytest, mypy and poetry: install what the repository declares, build it and test it.
//!
//! A requirement by name, another index, a URL or a module that runs or fetches things is not in any
//! table. Neither is a word that Python would import, or call, from outside the repository if no file has
//! its name.

use super::super::finding::{ARGUMENT_REFUSED, FindingSink, OPTION_REFUSED, PATH_LINK};
use super::super::grammar::{
    self, Operands, Opt, Role, Usage, WordKind, flag, is_name, optional_long_value,
    required_long_value, short, value,
};
use super::super::paths::StepDirectory;
use super::super::words::is_project_with_extras;
use super::form::{CommandForm, form, plain};

const LOCAL: WordKind = WordKind::Fits(
    |word| word == "." || word.starts_with("./") || is_project_with_extras(word),
    "the project itself (`.`, with extras `.[dev,test]`) or a directory of it (`./x`); a name would bring in code that the repository \
     does not declare",
);

/// pip accepts any text file, so the name must indicate requirements.
const REQUIREMENTS: WordKind = WordKind::Fits(
    is_requirements,
    "a file with requirements or constraints in its name or its directory's name, which ends in .txt or .in",
);

const PIP: &[Opt] = &[
    value("-e", LOCAL),
    value("--editable", LOCAL),
    value("-r", REQUIREMENTS),
    value("--requirement", REQUIREMENTS),
    value("-c", REQUIREMENTS),
    value("--constraint", REQUIREMENTS),
    value("--group", WordKind::Name),
    flag("--no-deps"),
    flag("--no-build-isolation"),
    flag("--no-cache-dir"),
    flag("--no-index"),
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
    value("--progress-bar", WordKind::OneOf(&["on", "off"])),
    value("-t", WordKind::Owned),
    value("--target", WordKind::Owned),
    value("--prefix", WordKind::Owned),
    value("--root", WordKind::Owned),
];
const PIP_INSTALL: Usage = Usage::new("pip install", &[PIP], Operands::Each(LOCAL));

const WORKERS: WordKind = WordKind::Fits(
    |word| {
        matches!(word, "auto" | "logical")
            || word.len() <= 3 && word.bytes().all(|byte| byte.is_ascii_digit())
    },
    "a number or auto",
);
/// The code to measure: if no directory has the name, Python looks for a module, and imports the part
/// before a dot.
const COVERED: WordKind = WordKind::Fits(
    |word| word == "." || parts_below(word).all(is_module),
    "a directory or package of the repository, without dots in its name",
);

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
        // Only these combined letters.
        flag("-xv"),
        flag("-vx"),
        flag("-xs"),
        flag("-sv"),
        flag("-vs"),
        flag("-xvs"),
        flag("-vvs"),
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
        value("-k", WordKind::Label),
        value("-m", WordKind::Name),
        value("--maxfail", WordKind::Number),
        value("--durations", WordKind::Number),
        value("--timeout", WordKind::Number),
        short("-n", WORKERS),
        value(
            "--tb",
            WordKind::OneOf(&["auto", "long", "short", "line", "native", "no"]),
        ),
        value("--color", WordKind::OneOf(&["yes", "no", "auto"])),
        value(
            "--import-mode",
            WordKind::OneOf(&["prepend", "append", "importlib"]),
        ),
        value("--ignore", WordKind::Input),
        value("--junitxml", WordKind::Output),
        value("--junit-xml", WordKind::Output),
        optional_long_value("--cov", COVERED),
        required_long_value(
            "--cov-report",
            WordKind::OneOf(&["term", "term-missing", "xml", "html", "json"]),
        ),
        value("-p", WordKind::OneOf(&["no:cacheprovider", "no:warnings"])),
    ]],
    Operands::Each(WordKind::Fits(
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
        value("-o", WordKind::Output),
        value("--outdir", WordKind::Output),
        flag("-v"),
        flag("--verbose"),
    ]],
    Operands::Each(WordKind::Input),
);
/// Where to look for tests. Python would import any other word from anywhere, unless a directory has its
/// name.
const START: WordKind = WordKind::Fits(
    |word| {
        word == "."
            || (word.starts_with("./") && parts_below(word.trim_end_matches('/')).all(is_name))
    },
    "`.` or a directory of the repository, written as `./tests`",
);
const UNITTEST_OPTIONS: &[Opt] = &[
    flag("-v"),
    flag("--verbose"),
    flag("-q"),
    flag("--quiet"),
    flag("-f"),
    flag("--failfast"),
    flag("-b"),
    flag("--buffer"),
];
const UNITTEST: Usage = Usage::new(
    "python -m unittest",
    &[UNITTEST_OPTIONS],
    Operands::Each(WordKind::Fits(
        is_test_file,
        "`discover` as the first word, or a file such as tests/test_x.py or ./test_x.py; Python would import any other \
         word from wherever it finds it, and call what it names",
    )),
);
const DISCOVER: Usage = Usage::new(
    "python -m unittest discover",
    &[
        UNITTEST_OPTIONS,
        &[
            value("-s", START),
            value("--start-directory", START),
            value("-t", START),
            value("--top-level-directory", START),
            value("-p", WordKind::Name),
            value("--pattern", WordKind::Name),
        ],
    ],
    Operands::Each(START),
);
const COMPILEALL: Usage = Usage::new(
    "python -m compileall",
    &[&[flag("-q"), flag("-qq"), flag("-f")]],
    Operands::Each(WordKind::Input),
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
        flag("--strict"),
        flag("--universal"),
        value("--dist-dir", WordKind::Output),
        value("--prefix", WordKind::Owned),
        value("--root", WordKind::Owned),
        value("--parallel", WordKind::Number),
        value("--formats", FORMATS),
    ]],
    Operands::Each(WordKind::OneOf(SETUP_COMMANDS)),
);
/// Archives only: other formats run the tools of system packages.
const FORMATS: WordKind = WordKind::Fits(
    |word| {
        word.split(',')
            .all(|format| ["gztar", "bztar", "xztar", "tar", "zip"].contains(&format))
    },
    "archives: gztar, bztar, xztar, tar, zip",
);
/// `clean` is not included: it deletes the directory that it is given.
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
];

/// The cache directory of mypy.
const MYPY_CACHE: &str = ".mypy_cache";

/// mypy reads the code and runs only plugins that the repository's settings name. Excluded is everything
/// that installs (`--install-types`), selects another interpreter or other settings, or takes code (`-c`)
/// or modules from anywhere (`-m`, `-p`).
const MYPY: Usage = Usage::new(
    "mypy",
    &[&[
        flag("--strict"),
        flag("--ignore-missing-imports"),
        flag("--check-untyped-defs"),
        flag("--disallow-untyped-defs"),
        flag("--warn-unused-ignores"),
        flag("--no-incremental"),
        flag("--namespace-packages"),
        flag("--explicit-package-bases"),
        flag("--show-error-codes"),
        flag("--no-error-summary"),
        flag("--no-color-output"),
        flag("--pretty"),
        flag("-v"),
        flag("--verbose"),
    ]],
    Operands::Each(WordKind::Input),
);

/// `python -m venv`: a directory that nothing else accesses. Excluded is everything that fetches
/// (`--upgrade-deps`) or deletes (`--clear`).
const VENV: Usage = Usage::new(
    "python -m venv",
    &[&[
        flag("--without-pip"),
        flag("--copies"),
        value("--prompt", WordKind::Name),
    ]],
    Operands::One(
        WordKind::Fits(|_| true, "the directory"),
        "`.venv`, `venv`, `env` or `.virtualenv`, also in a directory of the workspace",
    ),
);

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
            value("--only", WordKind::Labels),
            value("--with", WordKind::Labels),
            value("--without", WordKind::Labels),
            value("--extras", WordKind::Labels),
            value("-E", WordKind::Labels),
        ],
    ],
    Operands::None("it installs what pyproject.toml declares"),
);
const POETRY_BUILD: Usage = Usage::new(
    "poetry build",
    &[
        POETRY,
        &[
            value("--format", WordKind::OneOf(&["wheel", "sdist"])),
            value("-f", WordKind::OneOf(&["wheel", "sdist"])),
            value("-o", WordKind::Output),
            value("--output", WordKind::Output),
        ],
    ],
    Operands::None("it builds the project at hand"),
);

/// The ways to call pip.
pub(super) const PIP_HEADS: &[&[&str]] = &[
    &["pip"],
    &["pip3"],
    &["python", "-m", "pip"],
    &["python3", "-m", "pip"],
    &["poetry", "run", "python", "-m", "pip"],
    &["poetry", "run", "python3", "-m", "pip"],
];
pub(super) const PIP_FORMS: &[CommandForm] = &[form(&["install"], &PIP_INSTALL, judge_pip)
    .with_condition("it names the project, a file with -r or a --group")];
/// The ways to call pytest.
pub(super) const PYTEST_HEADS: &[&[&str]] = &[
    &["pytest"],
    &["python", "-m", "pytest"],
    &["python3", "-m", "pytest"],
    &["poetry", "run", "pytest"],
    &["poetry", "run", "python", "-m", "pytest"],
    &["poetry", "run", "python3", "-m", "pytest"],
];
pub(super) const PYTEST_FORMS: &[CommandForm] = &[form(&[], &PYTEST, judge_pytest)];
/// The ways to call mypy.
pub(super) const MYPY_HEADS: &[&[&str]] = &[
    &["python", "-m", "mypy"],
    &["python3", "-m", "mypy"],
    &["poetry", "run", "mypy"],
    &["poetry", "run", "python", "-m", "mypy"],
    &["poetry", "run", "python3", "-m", "mypy"],
];
pub(super) const MYPY_FORMS: &[CommandForm] = &[form(&[], &MYPY, judge_mypy)];
/// The ways to call Python.
pub(super) const PYTHON_HEADS: &[&[&str]] = &[
    &["python"],
    &["python3"],
    &["poetry", "run", "python"],
    &["poetry", "run", "python3"],
];
pub(super) const PYTHON_FORMS: &[CommandForm] = &[
    plain(&["-m", "build"], &BUILD),
    form(&["-m", "unittest"], &UNITTEST, judge_unittest),
    form(&["-m", "unittest", "discover"], &DISCOVER, judge_discover)
        .with_condition("one directory at most"),
    form(&["-m", "compileall"], &COMPILEALL, judge_compileall).with_condition("at least one"),
    form(&["-m", "venv"], &VENV, judge_venv),
    form(&["setup.py"], &SETUP, judge_setup).with_condition("at least one"),
];
pub(super) const POETRY_FORMS: &[CommandForm] = &[
    plain(&["install"], &POETRY_INSTALL),
    plain(&["build"], &POETRY_BUILD),
];

fn judge_pip(
    usage: &'static Usage,
    rest: &[&str],
    place: StepDirectory<'_>,
    sink: &mut FindingSink<'_>,
) {
    let line = grammar::read(usage, rest, place, sink);
    let editable = line.values_of(&["-e", "--editable"]);
    let files = line.values_of(&["-r", "--requirement"]);
    let groups = line.values_of(&["--group"]);
    if line.operands.is_empty() && editable.is_empty() && files.is_empty() && groups.is_empty() {
        sink.refuse(
            ARGUMENT_REFUSED,
            "pip install",
            "name the project (`.`) or a file of requirements (`-r FILE`)",
        );
    }
    for path in line
        .operands
        .iter()
        .chain(&editable)
        .filter(|word| **word != ".")
    {
        if is_project_with_extras(path) {
            if place.has_short_hidden_link() {
                let hint = "a link of the repository has a name that a shell could read this for; write `.` without extras";
                sink.refuse(PATH_LINK, path, hint);
            }
            continue;
        }
        grammar::judge_word(
            WordKind::Input,
            path,
            Role::WordOf("pip install"),
            place,
            sink,
        );
    }
    for file in files
        .into_iter()
        .chain(line.values_of(&["-c", "--constraint"]))
    {
        grammar::judge_word(WordKind::Input, file, Role::ValueOf("-r"), place, sink);
    }
    let replaces = rest
        .iter()
        .find(|word| matches!(**word, "-U" | "--upgrade"));
    if let Some(option) = replaces.filter(|_| !line.values_of(&["-t", "--target"]).is_empty()) {
        sink.refuse(
            OPTION_REFUSED,
            option,
            "with a target this deletes what is there; leave one of them out",
        );
    }
    let path_options = ["-t", "--target", "--prefix", "--root", "--dry-run"];
    super::form::warn_of_outside("pip install", rest, &path_options, sink);
}

/// Whether the name indicates requirements: pip would accept any text.
fn is_requirements(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    let is_list = [".txt", ".in"].iter().any(|end| path.ends_with(end));
    is_list
        && path
            .split('/')
            .any(|part| part.contains("requirements") || part.contains("constraints"))
}

/// Whether `unittest` can only mean this file of the repository. If it exists, its module is imported and
/// the named object called, possibly from an installed package with the name of the first directory,
/// which is very unlikely to have such an object.
fn is_test_file(word: &str) -> bool {
    let Some(stem) = word.strip_suffix(".py").filter(|stem| stem.contains('/')) else {
        return false;
    };
    let name = stem.rsplit('/').next().unwrap_or(stem);
    parts_below(stem).all(is_module) && (name.starts_with("test_") || name.ends_with("_test"))
}

/// The parts of a path, without leading `./`.
fn parts_below(path: &str) -> impl Iterator<Item = &str> {
    path.strip_prefix("./").unwrap_or(path).split('/')
}

/// A name without a dot; Python would take the part before a dot for a package.
fn is_module(part: &str) -> bool {
    is_name(part) && !part.contains('.')
}

fn judge_setup(
    usage: &'static Usage,
    words: &[&str],
    place: StepDirectory<'_>,
    sink: &mut FindingSink<'_>,
) {
    grammar::judge_word(
        WordKind::Input,
        "setup.py",
        Role::WordOf("python"),
        place,
        sink,
    );
    let commands = grammar::judge(usage, words, place, sink);
    if commands.is_empty() {
        let hint = format!("name one of: {}", SETUP_COMMANDS.join(", "));
        sink.refuse(ARGUMENT_REFUSED, "setup.py", hint);
    }
    if commands
        .iter()
        .any(|command| matches!(*command, "install" | "develop"))
    {
        super::form::warn_of_outside("setup.py install", words, &["--prefix", "--root"], sink);
    }
}

fn judge_compileall(
    usage: &'static Usage,
    words: &[&str],
    place: StepDirectory<'_>,
    sink: &mut FindingSink<'_>,
) {
    if grammar::judge(usage, words, place, sink).is_empty() {
        let hint = "name the directories; without one it compiles all that Python can import";
        sink.refuse(ARGUMENT_REFUSED, "python -m compileall", hint);
    }
}

/// Returns the words of `python -m venv` that may be directories; of other commands none.
pub(super) fn environments(command: &str) -> Vec<&str> {
    let words: Vec<&str> = command.split_whitespace().collect();
    match &words[..] {
        ["python" | "python3", "-m", "venv", rest @ ..] => rest.to_vec(),
        _ => Vec::new(),
    }
}

fn judge_venv(
    usage: &'static Usage,
    words: &[&str],
    place: StepDirectory<'_>,
    sink: &mut FindingSink<'_>,
) {
    for directory in grammar::judge(usage, words, place, sink) {
        if let Err(refusal) = place.check_environment(directory) {
            sink.refuse(refusal.code, directory, refusal.hint);
        }
    }
}

fn judge_mypy(
    usage: &'static Usage,
    words: &[&str],
    place: StepDirectory<'_>,
    sink: &mut FindingSink<'_>,
) {
    if grammar::judge(usage, words, place, sink).is_empty() {
        sink.refuse(
            ARGUMENT_REFUSED,
            "mypy",
            "name what it checks, such as `.` or `src`",
        );
    }
    if place.leads_through_link(MYPY_CACHE) || place.holds_link(MYPY_CACHE) {
        let hint =
            "mypy writes there, and a symbolic link of the repository leads on; leave the step out";
        sink.refuse(PATH_LINK, MYPY_CACHE, hint);
    }
}

fn judge_unittest(
    usage: &'static Usage,
    words: &[&str],
    place: StepDirectory<'_>,
    sink: &mut FindingSink<'_>,
) {
    for path in grammar::judge(usage, words, place, sink) {
        grammar::judge_word(WordKind::Input, path, Role::WordOf(usage.name), place, sink);
    }
}

fn judge_discover(
    usage: &'static Usage,
    words: &[&str],
    place: StepDirectory<'_>,
    sink: &mut FindingSink<'_>,
) {
    let line = grammar::read(usage, words, place, sink);
    // The words after the first one would be a pattern and a directory that is added to Python's search
    // path.
    if let [_, second, ..] = line.operands.as_slice() {
        sink.refuse(
            ARGUMENT_REFUSED,
            second,
            "name one directory; say others with -p and -t",
        );
    }
    let directories = line
        .values_of(&["-s", "--start-directory", "-t", "--top-level-directory"])
        .into_iter();
    for path in directories.chain(line.operands) {
        grammar::judge_word(WordKind::Input, path, Role::WordOf(usage.name), place, sink);
    }
}

fn judge_pytest(
    usage: &'static Usage,
    words: &[&str],
    place: StepDirectory<'_>,
    sink: &mut FindingSink<'_>,
) {
    for test in grammar::judge(usage, words, place, sink) {
        let file = test.split("::").next().unwrap_or(test);
        grammar::judge_word(WordKind::Input, file, Role::WordOf("pytest"), place, sink);
    }
}
