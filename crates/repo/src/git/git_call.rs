//! Reads a call of git in a command: its options, its subcommand, and the repositories that they name.

use std::collections::BTreeSet;
use std::path::Path;

use crucible_host::env::Environment;

use super::command::as_path;
use super::command_files::named_by_word;
use super::programs::{Named, Role};

/// Subcommands of git that run nothing which their arguments name.
const HARMLESS: [&str; 47] = [
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
    "remote",
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
/// Subcommands whose first argument is a remote or an address.
const OF_REMOTES: [&str; 5] = ["clone", "fetch", "ls-remote", "pull", "push"];
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

/// Where the parts of a call of git are in the words of a command.
pub(super) struct GitCall {
    program: usize,
    /// The first argument of the subcommand, or the number of words.
    pub(super) arguments: usize,
    subcommand: Option<Vec<u8>>,
}

impl GitCall {
    /// Finds the first call of git, behind any other program.
    pub(super) fn find(words: &[Vec<u8>]) -> Option<Self> {
        let program = words
            .iter()
            .position(|word| as_path(word).file_name().is_some_and(|name| name == "git"))?;
        let mut at = program + 1;
        while let Some(option) = words.get(at).filter(|word| word.starts_with(b"-")) {
            at += if WITH_VALUE.contains(&&option[..]) {
                2
            } else {
                1
            };
        }
        Some(Self {
            program,
            arguments: (at + 1).min(words.len()),
            subcommand: words.get(at).cloned(),
        })
    }

    /// Returns whether the arguments of the subcommand name nothing that is run.
    pub(super) fn is_harmless(&self) -> bool {
        self.is_one_of(&HARMLESS)
    }

    fn is_one_of(&self, names: &[&str]) -> bool {
        let subcommand = self.subcommand.as_deref();
        subcommand.is_some_and(|word| names.iter().any(|name| name.as_bytes() == word))
    }

    /// Returns the repositories and directories that the call names.
    pub(super) fn named(
        &self,
        words: &[Vec<u8>],
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
        if self.is_one_of(&OF_REMOTES) {
            let mut arguments = words.iter().skip(self.arguments);
            if let Some(remote) = arguments.find(|word| !word.starts_with(b"-")) {
                named.extend(named_by_word(Role::Remote, remote, base, env));
            }
        }
        named
    }
}
