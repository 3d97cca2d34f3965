//! make: builds targets of the Makefile in the workspace. Variables can replace the programs that it
//! runs, so only a few harmless ones may be set, and no option selects another Makefile or evaluates
//! text.

use super::super::environment::{self, COMPILERS};
use super::super::finding::{FindingSink, OPTION_REFUSED, VALUE_REFUSED};
use super::super::grammar::{
    self, Operands, Role, Usage, WordKind, flag, is_label, optional_long_value,
    optional_short_value, required_long_value, short, value,
};
use super::super::paths::StepDirectory;
use super::form::{CommandForm, form};

/// Variables for the install location.
const PLACES: &[&str] = &["PREFIX", "prefix", "DESTDIR"];
/// The variable for the build directory, which many Makefiles clear.
const BUILD: &str = "BUILDDIR";
/// Allowed prefixes of a directory that may be cleared.
const BUILT: &[&str] = &[
    "build", "_build", "out", "_out", "dist", "obj", "target", "stage",
];
/// Switch variables.
const SWITCHES: &[&str] = &[
    "V", "VERBOSE", "Q", "DEBUG", "RELEASE", "NDEBUG", "STATIC", "SHARED",
];

const USAGE: Usage = Usage::new(
    "make",
    &[&[
        optional_short_value("-j", WordKind::Number),
        optional_long_value("--jobs", WordKind::Number),
        flag("-k"),
        flag("--keep-going"),
        flag("-s"),
        flag("--silent"),
        flag("--quiet"),
        flag("-B"),
        flag("--always-make"),
        flag("--no-print-directory"),
        flag("-w"),
        flag("--print-directory"),
        flag("-O"),
        flag("-n"),
        flag("--dry-run"),
        short("-C", WordKind::Input),
        value("--directory", WordKind::Input),
        required_long_value(
            "--output-sync",
            WordKind::OneOf(&["line", "target", "recurse", "none"]),
        ),
    ]],
    Operands::Each(WordKind::Fits(
        |word| is_label(word) || word.contains('='),
        "a target, or one of the variables PREFIX, DESTDIR, V, VERBOSE, DEBUG, ... with a plain value",
    )),
);

pub(super) const FORMS: &[CommandForm] = &[form(&[], &USAGE, judge).with_condition(
    "variables only PREFIX=DIR, DESTDIR=DIR, BUILDDIR=build and V, VERBOSE, Q, DEBUG, RELEASE, NDEBUG, STATIC, SHARED with 0, 1, yes or no",
)];

fn judge(
    usage: &'static Usage,
    words: &[&str],
    place: StepDirectory<'_>,
    sink: &mut FindingSink<'_>,
) {
    let line = grammar::read(usage, words, place, sink);
    // make changes there first, one -C after the other: other paths are relative to the last one.
    let directories = line.values_of(&["-C", "--directory"]);
    if let [_, second, ..] = directories.as_slice() {
        sink.refuse(
            OPTION_REFUSED,
            second,
            "make goes from one -C to the next; name the directory once, or set `cwd`",
        );
    }
    let current_step_directory = place.within(directories.first().copied().unwrap_or("."));
    for word in &line.operands {
        let Some((name, value)) = word.split_once('=') else {
            continue;
        };
        if PLACES.contains(&name) || name == BUILD {
            grammar::judge_word(
                WordKind::Owned,
                value,
                Role::ValueOf(name),
                current_step_directory,
                sink,
            );
            let last = value
                .trim_end_matches(['/', '.'])
                .rsplit('/')
                .next()
                .unwrap_or(value);
            if name == BUILD && !BUILT.iter().any(|start| last.starts_with(start)) {
                let hint = format!(
                    "make may clear it, so its name begins with one of: {}",
                    BUILT.join(", ")
                );
                sink.refuse(VALUE_REFUSED, word, hint);
            }
        } else if SWITCHES.contains(&name) {
            grammar::judge_word(
                WordKind::OneOf(&["0", "1", "2", "yes", "no", "true", "false"]),
                value,
                Role::ValueOf(name),
                place,
                sink,
            );
        } else {
            let hint = if COMPILERS.iter().any(|(variable, _)| *variable == name) {
                format!(
                    "a compiler is an entry of the step's `env`: {}",
                    environment::entry(name, value)
                )
            } else {
                format!(
                    "variables can choose what make runs; only these may be set: {}, {BUILD}, {}",
                    PLACES.join(", "),
                    SWITCHES.join(", ")
                )
            };
            sink.refuse(VALUE_REFUSED, word, hint);
        }
    }
    if line
        .operands
        .iter()
        .any(|word| !word.contains('=') && super::form::installs(word))
    {
        super::form::warn_of_outside("make install", words, PLACES, sink);
    }
}
