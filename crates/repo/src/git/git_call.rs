//! Reads a call of git in a command: its options, its subcommand, and the repositories that they name.

use std::collections::BTreeSet;
use std::path::Path;

use crucible_host::env::Environment;

use super::command::as_path;
use super::command_files::{is_assignment, is_keyword, is_name, likely_words, named_by_word};
use super::programs::{Named, Role};

/// Subcommands of git that run nothing which their arguments name.
const HARMLESS: [&str; 46] = [
    "add",
    "apply",
    "blame",
    "branch",
    "cat-file",
    "checkout",
    "cherry",
    "cherry-pick",
    "clean",
    "commit",
    "describe",
    "diff",
    "diff-index",
    "diff-tree",
    "for-each-ref",
    "format-patch",
    "log",
    "ls-files",
    "ls-tree",
    "merge",
    "merge-base",
    "mv",
    "name-rev",
    "notes",
    "range-diff",
    "reflog",
    "reset",
    "restore",
    "rev-list",
    "rev-parse",
    "revert",
    "rm",
    "shortlog",
    "show",
    "show-branch",
    "show-ref",
    "sparse-checkout",
    "stash",
    "status",
    "switch",
    "symbolic-ref",
    "tag",
    "update-index",
    "update-ref",
    "whatchanged",
    "worktree",
];
/// Subcommands with the name of a remote or an address among their arguments.
const OF_REMOTES: [&str; 8] = [
    "clone",
    "fetch",
    "fetch-pack",
    "ls-remote",
    "pull",
    "push",
    "remote",
    "send-pack",
];
/// What `git remote` does.
const OF_REMOTE: [&str; 11] = [
    "add",
    "get-url",
    "prune",
    "remove",
    "rename",
    "rm",
    "set-branches",
    "set-head",
    "set-url",
    "show",
    "update",
];
/// Options before the subcommand whose value may be the next word.
const WITH_VALUE: [&[u8]; 7] = [
    b"-C",
    b"-c",
    b"--attr-source",
    b"--config-env",
    b"--git-dir",
    b"--namespace",
    b"--work-tree",
];
/// Options that name a place from which git takes settings or programs.
const PLACES: [(&[u8], Role); 5] = [
    (b"-C", Role::WorkTree),
    (b"--exec-path", Role::Directories),
    (b"--git-dir", Role::Repository),
    (b"--separate-git-dir", Role::Repository),
    (b"--template", Role::Directories),
];

/// Words of a shell that start the program after them.
const STARTERS: [&[u8]; 3] = [b"builtin", b"command", b"exec"];

/// Where the parts of a call of git are in the words of a command.
pub(super) struct GitCall {
    program: usize,
    /// The first argument of the subcommand, or the number of words.
    pub(super) arguments: usize,
    subcommand: Option<Vec<u8>>,
    /// Whether git is the program of the command, and not an argument of another.
    is_program: bool,
}

impl GitCall {
    /// Finds the calls of git, also behind any other program.
    pub(super) fn all(words: &[Vec<u8>]) -> Vec<Self> {
        let is_git = |word: &[u8]| as_path(word).file_name().is_some_and(|name| name == "git");
        let is_before =
            |word: &[u8]| is_assignment(word) || is_keyword(word) || STARTERS.contains(&word);
        let first = words.iter().position(|word| !is_before(word));
        let programs = (0..words.len()).filter(|at| is_git(&words[*at]));
        let call = |program: usize| {
            let mut at = program + 1;
            while let Some(option) = words.get(at).filter(|word| word.starts_with(b"-")) {
                at += if WITH_VALUE.contains(&&option[..]) {
                    2
                } else {
                    1
                };
            }
            Self {
                program,
                arguments: (at + 1).min(words.len()),
                subcommand: words.get(at).cloned(),
                is_program: first == Some(program),
            }
        };
        programs.map(call).collect()
    }

    /// Returns whether git is the program of the command, and the arguments of the subcommand name nothing that is run.
    pub(super) fn is_harmless(&self) -> bool {
        self.is_program && self.is_one_of(&HARMLESS)
    }

    /// Returns the subcommand, which git looks for on `PATH` if it does not know it.
    pub(super) fn subcommand(&self) -> Option<&[u8]> {
        self.subcommand.as_deref()
    }

    fn is_one_of(&self, names: &[&str]) -> bool {
        let subcommand = self.subcommand.as_deref();
        subcommand.is_some_and(|word| names.iter().any(|name| name.as_bytes() == word))
    }

    /// Returns the repositories and directories that the call names. `values` are those of variables in the whole value.
    pub(super) fn named(
        &self,
        words: &[Vec<u8>],
        values: &[&[u8]],
        base: &Path,
        env: &Environment,
    ) -> BTreeSet<Named> {
        let mut named = BTreeSet::new();
        for (number, word) in words.iter().enumerate().skip(self.program + 1) {
            for (option, role) in PLACES {
                let value = match word.strip_prefix(option) {
                    Some([]) => words.get(number + 1).map(Vec::as_slice),
                    Some([b'=', value @ ..]) => Some(value),
                    _ => None,
                };
                if let Some(value) = value {
                    named.extend(named_by_word(role, value, base, env));
                }
            }
        }
        let words = words.get(self.arguments..).unwrap_or_default();
        let likely = |words: Vec<&[u8]>| -> Vec<Vec<u8>> {
            words
                .into_iter()
                .flat_map(|word| likely_words(word, base, env))
                .filter(|word| is_address(word))
                .collect()
        };
        if self.is_one_of(&["archive"]) {
            let remote = words.iter().skip_while(|word| *word != b"--remote").nth(1);
            let remote = remote.map(Vec::as_slice);
            let joined = words
                .iter()
                .find_map(|word| word.strip_prefix(b"--remote="));
            let remotes = likely(remote.into_iter().chain(joined).collect());
            named.extend(not_empty(remotes).map(Named::Remotes));
        } else if self.is_one_of(&OF_REMOTES) {
            let all = likely(remotes(words, values));
            let is_several = |word: &Vec<u8>| word == b"--multiple";
            let is_of_several = self.is_one_of(&["remote"]) || words.iter().any(is_several);
            if is_of_several {
                let is_verb = |word: &[u8]| OF_REMOTE.iter().any(|verb| verb.as_bytes() == word);
                let remotes = all.into_iter().filter(|word| !is_verb(word)).collect();
                named.extend(not_empty(remotes).map(Named::Remotes));
            } else {
                named.extend(not_empty(all).map(Named::FirstRemote));
            }
        }
        named
    }
}

/// Returns the words that may be names of remotes or addresses. Which options have a value is not looked at: what follows `=` and
/// each word without `-` counts. A variable may stand for each of `values`.
fn remotes<'w>(words: &'w [Vec<u8>], values: &[&'w [u8]]) -> Vec<&'w [u8]> {
    let mut remotes: Vec<&[u8]> = Vec::new();
    let is_place = |word: &[u8]| PLACES.iter().any(|(option, _)| word.starts_with(option));
    for word in words.iter().filter(|word| !is_place(word)) {
        if !word.starts_with(b"-") {
            remotes.push(word);
        }
        let ends = word.iter().enumerate().filter(|(_, byte)| **byte == b'=');
        remotes.extend(ends.map(|(end, _)| &word[end + 1..]));
        if word.contains(&b'$') {
            remotes.extend(values);
        }
    }
    remotes
}

fn not_empty(words: Vec<Vec<u8>>) -> Option<Vec<Vec<u8>>> {
    (!words.is_empty()).then_some(words)
}

/// Returns whether a word may be an address: it is no reference or range of commits, as these are usually written.
fn is_address(word: &[u8]) -> bool {
    let is_revision = word == b"HEAD"
        || word.starts_with(b"refs/")
        || word.iter().skip(1).any(|byte| *byte == b'~');
    !word.is_empty() && !is_revision && is_name(&as_path(word))
}
