//! What is known of each program: its subcommands, options and values, one file for each family.
//!
//! A program appears here only with what it needs to build, test and install what a repository holds. A build system's
//! allow-list stands before this: that a program is known does not mean that a plan may use it.

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

use super::finding::{ARGUMENT_REFUSED, Desk, INSTALLS_OUTSIDE};
use super::paths::Place;

/// Judges what follows the program's name.
type Judge = fn(&[&str], Place<'_>, &mut Desk<'_>);

/// Every program, by the word that names it.
const PROGRAMS: &[(&str, Judge)] = &[
    ("cargo", cargo::judge),
    ("go", go::judge),
    ("npm", node::judge_npm),
    ("npx", node::judge_npx),
    ("yarn", node::judge_yarn),
    ("pnpm", node::judge_pnpm),
    ("node", node::judge_node),
    ("pip", python::judge_pip),
    ("pip3", python::judge_pip),
    ("python", python::judge_python),
    ("python3", python::judge_python),
    ("pytest", python::judge_pytest),
    ("poetry", python::judge_poetry),
    ("cmake", cmake::judge_cmake),
    ("ctest", cmake::judge_ctest),
    ("make", make::judge),
    ("meson", meson::judge_meson),
    ("ninja", meson::judge_ninja),
    ("./configure", autotools::judge_configure),
    ("autoreconf", autotools::judge_autoreconf),
    ("automake", autotools::judge_automake),
    ("autoconf", autotools::judge_autoconf),
    ("cp", files::judge_cp),
    ("install", files::judge_install),
    ("mkdir", files::judge_mkdir),
];

/// Judges a command whose first words are an allowed prefix.
pub(super) fn judge(words: &[&str], place: Place<'_>, desk: &mut Desk<'_>) {
    let Some((program, rest)) = words.split_first() else { return };
    match PROGRAMS.iter().find(|(name, _)| name == program) {
        Some((_, judge)) => judge(rest, place, desk),
        None => desk.refuse(ARGUMENT_REFUSED, program, "nothing is known of this program"),
    }
}

/// Takes the word that chooses what the program does.
fn subcommand<'w, 'r>(words: &'r [&'w str]) -> (&'w str, &'r [&'w str]) {
    words.split_first().map_or(("", &[]), |(first, rest)| (first, rest))
}

/// Refuses a subcommand that is none of the known ones.
fn unknown(program: &str, word: &str, known: &str, desk: &mut Desk<'_>) {
    desk.refuse(ARGUMENT_REFUSED, word, format!("`{program}` is allowed with: {known}"));
}

/// Whether a target of make, ninja or cmake puts things in their final place, or takes them away from there.
fn installs(target: &str) -> bool {
    let is_install = |part: &str| {
        let part = part.to_ascii_lowercase();
        ["install", "uninstall", "reinstall"].iter().any(|name| part.starts_with(name))
    };
    target.split(['/', ':', '-', '_', '.']).any(is_install)
}

/// Says that what a command installs lands outside the workspace, because no option leads elsewhere.
fn warn_of_outside(command: &str, words: &[&str], options: &[&str], desk: &mut Desk<'_>) {
    let names = |word: &&str| {
        options.iter().any(|option| *word == *option || word.starts_with(&format!("{option}=")))
    };
    if !words.iter().any(names) {
        let hint = format!(
            "`{command}` installs outside the workspace unless told where; read what it installs first"
        );
        desk.warn(INSTALLS_OUTSIDE, command, hint);
    }
}
