//! The known programs: subcommands, options and values, one file per family.
//!
//! A program is listed only with what a repository needs to build, test and install. A build system's
//! allow-list is checked first: a known program is not necessarily allowed.

mod autotools;
mod cargo;
mod cmake;
mod files;
mod go;
mod make;
mod meson;
mod node;
mod node_tools;
mod python;

use super::finding::{ARGUMENT_REFUSED, FindingSink, INSTALLS_OUTSIDE};
use super::grammar::{self, Operands, Usage};
use super::paths::Place;

/// Checks the words after those that select the form.
type Judge = fn(&'static Usage, &[&str], Place<'_>, &mut FindingSink<'_>);

/// One form of a command: its beginning after the head of its family, and what may follow.
pub(super) struct Form {
    words: &'static [&'static str],
    follows: Follows,
    judge: Judge,
    also: &'static str,
}

/// What may follow the beginning of a command.
enum Follows {
    /// Words with this description.
    Words(&'static Usage),
    /// Words with this description, followed by the allowed arguments of a package.json script, by its
    /// name.
    Script(&'static Usage, &'static str),
    /// A tool of a Node project.
    Tool,
    /// Nothing is accepted: the check gives the right spelling.
    Nothing,
}

/// Commands with several beginnings that continue alike.
pub(super) struct Family {
    heads: &'static [&'static [&'static str]],
    forms: &'static [Form],
}

/// A form that its description checks completely.
const fn plain(words: &'static [&'static str], usage: &'static Usage) -> Form {
    form(words, usage, judge_plain)
}

/// A form with additional checks.
const fn form(words: &'static [&'static str], usage: &'static Usage, judge: Judge) -> Form {
    Form {
        words,
        follows: Follows::Words(usage),
        judge,
        also: "",
    }
}

/// A form that runs a script of package.json.
const fn script(usage: &'static Usage, behind: &'static str, judge: Judge) -> Form {
    Form {
        words: &["run"],
        follows: Follows::Script(usage, behind),
        judge,
        also: "",
    }
}

/// A way to run a tool of a Node project.
const fn tool(words: &'static [&'static str]) -> Form {
    let judge: Judge = |_, words, place, sink| node_tools::judge(words, place, sink);
    Form {
        words,
        follows: Follows::Tool,
        judge,
        also: "",
    }
}

/// A beginning that is always refused, with a hint.
const fn unaccepted(words: &'static [&'static str], judge: Judge) -> Form {
    Form {
        words,
        follows: Follows::Nothing,
        judge,
        also: "",
    }
}

impl Form {
    /// Replaces the check.
    const fn judged_by(self, judge: Judge) -> Self {
        Self { judge, ..self }
    }

    /// An additional condition, for readers.
    const fn also(self, also: &'static str) -> Self {
        Self { also, ..self }
    }
}

fn judge_plain(
    usage: &'static Usage,
    words: &[&str],
    place: Place<'_>,
    sink: &mut FindingSink<'_>,
) {
    grammar::judge(usage, words, place, sink);
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
fn forms() -> impl Iterator<Item = (&'static [&'static str], &'static Form)> {
    FAMILIES.iter().flat_map(|family| {
        family
            .heads
            .iter()
            .flat_map(move |head| family.forms.iter().map(move |form| (*head, form)))
    })
}

/// The form with the longest beginning, and the remaining words.
fn find<'w, 'r>(words: &'r [&'w str]) -> Option<(&'static Form, &'r [&'w str])> {
    let follows = |(head, form): (&'static [&'static str], &'static Form)| {
        Some((form, words.strip_prefix(head)?.strip_prefix(form.words)?))
    };
    forms()
        .filter_map(follows)
        .min_by_key(|(_, rest)| rest.len())
}

/// Judges a command whose first words are an allowed prefix.
pub(super) fn judge(words: &[&str], place: Place<'_>, sink: &mut FindingSink<'_>) {
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
    let asked: Vec<&str> = prefix.trim_end().split(' ').collect();
    let mut found = Vec::new();
    for (head, form) in forms() {
        let begins = [head, form.words].concat();
        let shown = if begins.starts_with(&asked) {
            &begins
        } else if begins_with_form(&asked, &begins) {
            &asked
        } else {
            continue;
        };
        // A longer form with the same beginning takes precedence.
        if find(shown).is_some_and(|(judging, _)| std::ptr::eq(judging, form)) {
            let follows = match form.follows {
                Follows::Words(usage) => usage.to_string(),
                Follows::Script(usage, behind) => {
                    format!("{usage}; behind {behind} {}", node::told_of_scripts())
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
                shown.join(" "),
                format!("{follows}{}", also.replace('`', "'")),
            ));
        }
    }
    found
}

/// Whether a prefix such as `cp target/` or `make -j` begins with the words of a form.
fn begins_with_form(asked: &[&str], begins: &[&str]) -> bool {
    asked.len() >= begins.len() && asked.starts_with(begins)
}

/// The tools of Node projects, each with what may follow.
pub(super) fn tools() -> impl Iterator<Item = (&'static str, String)> {
    node_tools::TOOLS
        .iter()
        .map(|usage| (usage.name, usage.to_string()))
}

/// Whether a target of make, ninja or cmake installs or uninstalls.
fn installs(target: &str) -> bool {
    let is_install = |part: &str| {
        let part = part.to_ascii_lowercase();
        ["install", "uninstall", "reinstall"]
            .iter()
            .any(|name| part.starts_with(name))
    };
    target.split(['/', ':', '-', '_', '.']).any(is_install)
}

/// Warns that a command installs outside the workspace, because no option redirects it.
fn warn_of_outside(command: &str, words: &[&str], options: &[&str], sink: &mut FindingSink<'_>) {
    let names = |word: &&str| {
        options
            .iter()
            .any(|option| *word == *option || word.starts_with(&format!("{option}=")))
    };
    if !words.iter().any(names) {
        let hint = format!(
            "`{command}` installs outside the workspace unless an option names a place; read what it installs first"
        );
        sink.warn(INSTALLS_OUTSIDE, command, hint);
    }
}
