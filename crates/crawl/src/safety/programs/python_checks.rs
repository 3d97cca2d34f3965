//! ruff, black, flake8, isort, pylint and pyright: they read the code and change nothing. Excluded is everything that writes files
//! (`--fix`, black without `--check`), selects other settings, which may name code, or runs code (`--init-hook`, `--load-plugins`,
//! `--pythonpath`).

use super::super::finding::{ARGUMENT_REFUSED, FindingSink, PATH_LINK};
use super::super::grammar::{self, Operands, Opt, Usage, WordKind, flag, short, value};
use super::super::paths::StepDirectory;
use super::form::{CommandForm, form, plain};

/// The cache directory of ruff.
const RUFF_CACHE: &str = ".ruff_cache";

const QUIET: &[Opt] = &[
    flag("-q"),
    flag("--quiet"),
    flag("-v"),
    flag("--verbose"),
    flag("--diff"),
];
const RUFF: Usage = Usage::new(
    "ruff check",
    &[
        QUIET,
        &[
            flag("--no-fix"),
            flag("--statistics"),
            flag("--preview"),
            value("--select", WordKind::Labels),
            value("--ignore", WordKind::Labels),
            value("--line-length", WordKind::Number),
        ],
    ],
    Operands::Each(WordKind::Input),
);
const RUFF_FORMAT: Usage = Usage::new(
    "ruff format --check",
    &[QUIET, &[value("--line-length", WordKind::Number)]],
    Operands::Each(WordKind::Input),
);
const BLACK: Usage = Usage::new(
    "black --check",
    &[
        QUIET,
        &[
            value("-l", WordKind::Number),
            value("--line-length", WordKind::Number),
        ],
    ],
    Operands::Each(WordKind::Input),
);
const ISORT: Usage = Usage::new(
    "isort --check",
    &[
        QUIET,
        &[value(
            "--profile",
            WordKind::OneOf(&["black", "google", "pycharm"]),
        )],
    ],
    Operands::Each(WordKind::Input),
);
const FLAKE8: Usage = Usage::new(
    "flake8",
    &[&[
        flag("-q"),
        flag("-v"),
        flag("--count"),
        flag("--show-source"),
        flag("--statistics"),
        value("--select", WordKind::Labels),
        value("--ignore", WordKind::Labels),
        value("--extend-ignore", WordKind::Labels),
        value("--max-line-length", WordKind::Number),
        value("--max-complexity", WordKind::Number),
    ]],
    Operands::Each(WordKind::Input),
);

/// A word that is not a path would be a module, which pylint only reads.
const PYLINT: Usage = Usage::new(
    "pylint",
    &[&[
        flag("-E"),
        flag("--errors-only"),
        flag("-v"),
        flag("--verbose"),
        short("-j", WordKind::Number),
        value("--jobs", WordKind::Number),
        value("--disable", WordKind::Labels),
        value("--enable", WordKind::Labels),
        value("--recursive", YES_OR_NO),
        value("--reports", YES_OR_NO),
        value("--score", YES_OR_NO),
        value("--fail-under", WordKind::Number),
        value("--max-line-length", WordKind::Number),
    ]],
    Operands::Each(WordKind::Input),
);
const YES_OR_NO: WordKind = WordKind::OneOf(&["y", "n", "yes", "no"]);

/// The options of pyright that select no other program and write nothing.
pub(super) const PYRIGHT_OPTIONS: &[Opt] = &[
    flag("--outputjson"),
    flag("--stats"),
    flag("--verbose"),
    flag("--warnings"),
    value("--level", WordKind::OneOf(&["error", "warning"])),
    value("--pythonversion", WordKind::Name),
    value("-p", WordKind::Input),
    value("--project", WordKind::Input),
];
const PYRIGHT: Usage = Usage::new(
    "pyright",
    &[PYRIGHT_OPTIONS],
    Operands::Each(WordKind::Input),
);

/// The ways to call pylint.
pub(super) const PYLINT_HEADS: &[&[&str]] = &[
    &["python", "-m", "pylint"],
    &["python3", "-m", "pylint"],
    &["poetry", "run", "pylint"],
    &["poetry", "run", "python", "-m", "pylint"],
    &["poetry", "run", "python3", "-m", "pylint"],
];
pub(super) const PYLINT_FORMS: &[CommandForm] =
    &[form(&[], &PYLINT, judge_pylint).with_condition("at least one file or directory")];
/// The ways to call pyright.
pub(super) const PYRIGHT_HEADS: &[&[&str]] = &[
    &["python", "-m", "pyright"],
    &["python3", "-m", "pyright"],
    &["poetry", "run", "pyright"],
    &["poetry", "run", "python", "-m", "pyright"],
    &["poetry", "run", "python3", "-m", "pyright"],
];
pub(super) const PYRIGHT_FORMS: &[CommandForm] = &[plain(&[], &PYRIGHT)];
/// The ways to call ruff.
pub(super) const RUFF_HEADS: &[&[&str]] = &[
    &["python", "-m", "ruff"],
    &["python3", "-m", "ruff"],
    &["poetry", "run", "ruff"],
];
pub(super) const RUFF_FORMS: &[CommandForm] = &[
    form(&["check"], &RUFF, judge_ruff),
    form(&["format", "--check"], &RUFF_FORMAT, judge_ruff),
];
/// The ways to call black.
pub(super) const BLACK_HEADS: &[&[&str]] = &[
    &["python", "-m", "black"],
    &["python3", "-m", "black"],
    &["poetry", "run", "black"],
];
pub(super) const BLACK_FORMS: &[CommandForm] = &[plain(&["--check"], &BLACK)];
/// The ways to call isort.
pub(super) const ISORT_HEADS: &[&[&str]] = &[
    &["python", "-m", "isort"],
    &["python3", "-m", "isort"],
    &["poetry", "run", "isort"],
];
pub(super) const ISORT_FORMS: &[CommandForm] = &[
    plain(&["--check"], &ISORT),
    plain(&["--check-only"], &ISORT),
];
/// The ways to call flake8.
pub(super) const FLAKE8_HEADS: &[&[&str]] = &[
    &["python", "-m", "flake8"],
    &["python3", "-m", "flake8"],
    &["poetry", "run", "flake8"],
];
pub(super) const FLAKE8_FORMS: &[CommandForm] = &[plain(&[], &FLAKE8)];

fn judge_pylint(
    usage: &'static Usage,
    words: &[&str],
    place: StepDirectory<'_>,
    sink: &mut FindingSink<'_>,
) {
    if grammar::judge(usage, words, place, sink).is_empty() {
        sink.refuse(
            ARGUMENT_REFUSED,
            "pylint",
            "name what to check: `.` or a directory of the repository",
        );
    }
}

fn judge_ruff(
    usage: &'static Usage,
    words: &[&str],
    place: StepDirectory<'_>,
    sink: &mut FindingSink<'_>,
) {
    grammar::judge(usage, words, place, sink);
    if place.leads_through_link(RUFF_CACHE) || place.holds_link(RUFF_CACHE) {
        let hint =
            "ruff writes there, and a symbolic link of the repository leads on; leave the step out";
        sink.refuse(PATH_LINK, RUFF_CACHE, hint);
    }
}
