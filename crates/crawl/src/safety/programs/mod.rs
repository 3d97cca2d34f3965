//! The known programs: subcommands, options and values, one file per family.
//!
//! A program is listed only with what a repository needs to build, test and install. A build system's
//! allow-list is checked first: a known program is not necessarily allowed.

mod autotools;
mod cargo;
mod cmake;
mod files;
mod form;
mod go;
mod make;
mod meson;
mod node;
mod node_tools;
mod python;
mod python_checks;

use super::finding::{ARGUMENT_REFUSED, FindingSink};
use super::grammar::{Operands, Usage};
use super::paths::StepDirectory;
use form::{CommandForm, Follows};

/// Commands with several beginnings that continue alike.
pub(super) struct Family {
    heads: &'static [&'static [&'static str]],
    forms: &'static [CommandForm],
}

/// For forms without a description.
static NO_WORDS: Usage = Usage::new("", &[], Operands::None(""));

/// All forms: both the checks and the prompts of a debate use this table.
const FAMILIES: &[Family] = &[
    Family {
        heads: &[&["cargo"]],
        forms: cargo::FORMS,
    },
    Family {
        heads: &[&["go"]],
        forms: go::FORMS,
    },
    Family {
        heads: &[&["npm"]],
        forms: node::NPM,
    },
    Family {
        heads: &[&["npx"]],
        forms: node::NPX,
    },
    Family {
        heads: &[&["yarn"]],
        forms: node::YARN,
    },
    Family {
        heads: &[&["pnpm"]],
        forms: node::PNPM,
    },
    Family {
        heads: &[&["node"]],
        forms: node::NODE,
    },
    Family {
        heads: python::PIP_HEADS,
        forms: python::PIP_FORMS,
    },
    Family {
        heads: python::PYTEST_HEADS,
        forms: python::PYTEST_FORMS,
    },
    Family {
        heads: python::MYPY_HEADS,
        forms: python::MYPY_FORMS,
    },
    Family {
        heads: python_checks::RUFF_HEADS,
        forms: python_checks::RUFF_FORMS,
    },
    Family {
        heads: python_checks::BLACK_HEADS,
        forms: python_checks::BLACK_FORMS,
    },
    Family {
        heads: python_checks::ISORT_HEADS,
        forms: python_checks::ISORT_FORMS,
    },
    Family {
        heads: python_checks::FLAKE8_HEADS,
        forms: python_checks::FLAKE8_FORMS,
    },
    Family {
        heads: python_checks::PYLINT_HEADS,
        forms: python_checks::PYLINT_FORMS,
    },
    Family {
        heads: python_checks::PYRIGHT_HEADS,
        forms: python_checks::PYRIGHT_FORMS,
    },
    Family {
        heads: python::PYTHON_HEADS,
        forms: python::PYTHON_FORMS,
    },
    Family {
        heads: &[&["poetry"]],
        forms: python::POETRY_FORMS,
    },
    Family {
        heads: &[&["cmake"]],
        forms: cmake::FORMS,
    },
    Family {
        heads: &[&["ctest"]],
        forms: cmake::TESTS,
    },
    Family {
        heads: &[&["make"]],
        forms: make::FORMS,
    },
    Family {
        heads: &[&["meson"]],
        forms: meson::FORMS,
    },
    Family {
        heads: &[&["ninja"]],
        forms: meson::NINJA_FORMS,
    },
    Family {
        heads: &[&["./configure"]],
        forms: autotools::CONFIGURE_FORMS,
    },
    Family {
        heads: &[&["autoreconf"]],
        forms: autotools::AUTORECONF_FORMS,
    },
    Family {
        heads: &[&["automake"]],
        forms: autotools::AUTOMAKE_FORMS,
    },
    Family {
        heads: &[&["autoconf"]],
        forms: autotools::AUTOCONF_FORMS,
    },
    Family {
        heads: &[&["cp"]],
        forms: files::CP_FORMS,
    },
    Family {
        heads: &[&["install"]],
        forms: files::INSTALL_FORMS,
    },
    Family {
        heads: &[&["mkdir"]],
        forms: files::MKDIR_FORMS,
    },
];

/// Every head with every form of its family.
fn forms() -> impl Iterator<Item = (&'static [&'static str], &'static CommandForm)> {
    FAMILIES.iter().flat_map(|family| {
        family
            .heads
            .iter()
            .flat_map(move |head| family.forms.iter().map(move |form| (*head, form)))
    })
}

/// The form with the longest beginning, and the remaining words.
fn find<'w, 'r>(words: &'r [&'w str]) -> Option<(&'static CommandForm, &'r [&'w str])> {
    let follows = |(head, form): (&'static [&'static str], &'static CommandForm)| {
        Some((form, words.strip_prefix(head)?.strip_prefix(form.words)?))
    };
    forms()
        .filter_map(follows)
        .min_by_key(|(_, rest)| rest.len())
}

/// Judges a command whose first words are an allowed prefix.
pub(super) fn judge(words: &[&str], place: StepDirectory<'_>, sink: &mut FindingSink<'_>) {
    match find(words) {
        Some((form, rest)) => {
            let usage = match form.follows {
                Follows::Words(usage) | Follows::Script(usage, _) => usage,
                Follows::Tool | Follows::Nothing => &NO_WORDS,
            };
            (form.judge)(usage, rest, place, sink);
        }
        None => refuse_unknown(words, sink),
    }
}

/// Refuses a command without a form, and lists the forms of the program.
fn refuse_unknown(words: &[&str], sink: &mut FindingSink<'_>) {
    let heads = forms()
        .map(|(head, _)| head)
        .filter(|head| words.starts_with(head));
    let Some(head) = heads.max_by_key(|head| head.len()) else {
        let program = words.first().copied().unwrap_or_default();
        return sink.refuse(
            ARGUMENT_REFUSED,
            program,
            "nothing is known of this program",
        );
    };
    let longer = forms().filter(|(other, form)| {
        other.starts_with(head) && !matches!(form.follows, Follows::Nothing)
    });
    let mut known: Vec<String> = longer
        .map(|(other, form)| {
            [other.get(head.len()..).unwrap_or_default(), form.words]
                .concat()
                .join(" ")
        })
        .filter(|known| !known.is_empty())
        .collect();
    known.dedup();
    let word = words.get(head.len()).copied().unwrap_or_default();
    let hint = format!("`{}` is allowed with: {}", head.join(" "), known.join(", "));
    sink.refuse(ARGUMENT_REFUSED, word, hint);
}

/// Returns the words of `python -m venv` that may be directories; of other commands none.
pub(super) fn environments(command: &str) -> Vec<&str> {
    python::environments(command)
}

/// Whether a step installs everything that package.json declares.
pub(super) fn installs_all(command: &str) -> bool {
    node::installs_all(command)
}

/// Whether a step installs packages by npm in any way.
pub(super) fn installs_by_npm(command: &str) -> bool {
    matches!(
        command.split(' ').collect::<Vec<_>>().as_slice(),
        ["npm", "ci" | "install", ..]
    )
}

/// Whether a command installs by pip, whose words may name extras.
pub(super) fn installs_by_pip(words: &[&str]) -> bool {
    python::PIP_HEADS.iter().any(|head| {
        words
            .strip_prefix(*head)
            .is_some_and(|rest| rest.first() == Some(&"install"))
    })
}

/// The beginnings that this prefix allows, each with what may follow: the prefix itself if it is more
/// specific than the form.
pub(super) fn forms_with(prefix: &'static str) -> Vec<(String, String)> {
    let prefix_words: Vec<&str> = prefix.trim_end().split(' ').collect();
    let mut found = Vec::new();
    for (head, form) in forms() {
        let begins = [head, form.words].concat();
        let lines = if begins.starts_with(&prefix_words) {
            &begins
        } else if begins_with_form(&prefix_words, &begins) {
            &prefix_words
        } else {
            continue;
        };
        // A longer form with the same beginning takes precedence.
        if find(lines).is_some_and(|(judging, _)| std::ptr::eq(judging, form)) {
            let follows = match form.follows {
                Follows::Words(usage) => usage.to_string(),
                Follows::Script(usage, behind) => {
                    format!("{usage}; behind {behind} {}", node::script_arguments_text())
                }
                Follows::Tool => "TOOL".to_owned(),
                Follows::Nothing => continue,
            };
            let also = if form.also.is_empty() {
                String::new()
            } else {
                format!("; {}", form.also)
            };
            found.push((
                lines.join(" "),
                format!("{follows}{}", also.replace('`', "'")),
            ));
        }
    }
    found
}

/// Whether a prefix such as `cp target/` or `make -j` begins with the words of a form.
fn begins_with_form(words: &[&str], begins: &[&str]) -> bool {
    words.len() >= begins.len() && words.starts_with(begins)
}

/// The tools of Node projects, each with what may follow.
pub(super) fn tools() -> impl Iterator<Item = (&'static str, String)> {
    node_tools::TOOLS
        .iter()
        .map(|usage| (usage.name, usage.to_string()))
}
