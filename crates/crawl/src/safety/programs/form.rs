//! The forms of a command, and the checks that several programs share.

use super::super::finding::{FindingSink, INSTALLS_OUTSIDE};
use super::super::grammar::{self, Usage};
use super::super::paths::StepDirectory;
use super::node_tools;

/// Checks the words after those that select the form.
pub(super) type Judge = fn(&'static Usage, &[&str], StepDirectory<'_>, &mut FindingSink<'_>);

/// One form of a command: its beginning after the head of its family, and what may follow.
pub(super) struct CommandForm {
    pub(super) words: &'static [&'static str],
    pub(super) follows: Follows,
    pub(super) judge: Judge,
    pub(super) also: &'static str,
}

/// What may follow the beginning of a command.
pub(super) enum Follows {
    /// Words with this description.
    Words(&'static Usage),
    /// Words with this description, followed by the allowed arguments of a package.json script, by its
    /// name.
    Script(&'static Usage, &'static str),
    /// A tool of a Node project.
    Tool,
    /// Nothing: the command is always refused, and the finding shows the accepted form.
    Nothing,
}

/// A form that its description checks completely.
pub(super) const fn plain(words: &'static [&'static str], usage: &'static Usage) -> CommandForm {
    form(words, usage, judge_plain)
}

/// A form with additional checks.
pub(super) const fn form(
    words: &'static [&'static str],
    usage: &'static Usage,
    judge: Judge,
) -> CommandForm {
    CommandForm {
        words,
        follows: Follows::Words(usage),
        judge,
        also: "",
    }
}

/// A form that runs a script of package.json.
pub(super) const fn script(usage: &'static Usage, rest: &'static str, judge: Judge) -> CommandForm {
    CommandForm {
        words: &["run"],
        follows: Follows::Script(usage, rest),
        judge,
        also: "",
    }
}

/// A way to run a tool of a Node project.
pub(super) const fn tool(words: &'static [&'static str]) -> CommandForm {
    let judge: Judge = |_, words, place, sink| node_tools::judge(words, place, sink);
    CommandForm {
        words,
        follows: Follows::Tool,
        judge,
        also: "",
    }
}

/// A beginning that is always refused, with a hint.
pub(super) const fn refused(words: &'static [&'static str], judge: Judge) -> CommandForm {
    CommandForm {
        words,
        follows: Follows::Nothing,
        judge,
        also: "",
    }
}

impl CommandForm {
    /// Replaces the check.
    pub(super) const fn judged_by(self, judge: Judge) -> Self {
        Self { judge, ..self }
    }

    /// An additional condition, for readers.
    pub(super) const fn with_condition(self, also: &'static str) -> Self {
        Self { also, ..self }
    }
}

fn judge_plain(
    usage: &'static Usage,
    words: &[&str],
    place: StepDirectory<'_>,
    sink: &mut FindingSink<'_>,
) {
    grammar::judge(usage, words, place, sink);
}

/// Whether a target of make, ninja or cmake installs or uninstalls.
pub(super) fn installs(target: &str) -> bool {
    let is_install = |part: &str| {
        let part = part.to_ascii_lowercase();
        ["install", "uninstall", "reinstall"]
            .iter()
            .any(|name| part.starts_with(name))
    };
    target.split(['/', ':', '-', '_', '.']).any(is_install)
}

/// Warns that a command installs outside the workspace, because no option redirects it.
pub(super) fn warn_of_outside(
    command: &str,
    words: &[&str],
    options: &[&str],
    sink: &mut FindingSink<'_>,
) {
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
