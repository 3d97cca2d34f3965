//! Reads a call of git in a command: its options, its subcommand, and the repositories that they name.

use std::collections::BTreeSet;
use std::path::Path;

use crucible_host::env::Environment;

use super::command::as_path;
use super::command_files::{is_assignment, is_keyword, is_name, likely_words, named_by_word};
use super::programs::{NamedPath, SettingRole};

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
/// Options of git itself with which it runs nothing else.
const HARMLESS_OPTIONS: [&str; 9] = [
    "--glob-pathspecs",
    "--icase-pathspecs",
    "--literal-pathspecs",
    "--no-advice",
    "--no-optional-locks",
    "--no-pager",
    "--paginate",
    "-P",
    "-p",
];
/// Sections of settings that name no program.
const HARMLESS_SECTIONS: [&str; 4] = ["advice", "color", "column", "user"];
/// Other subcommands, the verbs that they may begin with if they take some, and their options that name nothing which is run.
const LIMITED: &[(&str, &[&str], &[&str])] = &[
    ("am", &[], &["--abort", "--continue", "--skip", "-3"]),
    (
        "bisect",
        &["bad", "good", "log", "new", "old", "reset", "skip", "start"],
        &[],
    ),
    (
        "config",
        &["get", "list"],
        &[
            "--get",
            "--get-regexp",
            "--global",
            "--list",
            "--local",
            "--name-only",
            "--show-origin",
            "--system",
            "-l",
        ],
    ),
    ("count-objects", &[], &["-H", "-v", "-vH"]),
    (
        "difftool",
        &[],
        &[
            "--cached",
            "--dir-diff",
            "--no-prompt",
            "--staged",
            "-d",
            "-y",
        ],
    ),
    (
        "fetch",
        &[],
        &[
            "--all",
            "--force",
            "--multiple",
            "--no-tags",
            "--prune",
            "--prune-tags",
            "--quiet",
            "--recurse-submodules",
            "--tags",
            "--unshallow",
            "--verbose",
            "-a",
            "-f",
            "-p",
            "-q",
            "-t",
            "-v",
        ],
    ),
    ("fsck", &[], &["--full"]),
    ("gc", &[], &["--aggressive", "--auto", "--prune=now"]),
    (
        "grep",
        &[],
        &[
            "--break",
            "--cached",
            "--count",
            "--heading",
            "--ignore-case",
            "--line-number",
            "-E",
            "-F",
            "-I",
            "-Ii",
            "-In",
            "-P",
            "-c",
            "-e",
            "-i",
            "-in",
            "-l",
            "-n",
            "-ni",
            "-w",
        ],
    ),
    ("help", &[], &["-a", "-g"]),
    ("ls-remote", &[], &["--heads", "--tags", "-h", "-t"]),
    ("mergetool", &[], &["--no-prompt", "-y"]),
    (
        "pull",
        &[],
        &[
            "--all",
            "--autostash",
            "--ff-only",
            "--no-rebase",
            "--prune",
            "--quiet",
            "--rebase",
            "--rebase=interactive",
            "--rebase=merges",
            "--recurse-submodules",
            "--tags",
            "--verbose",
            "-p",
            "-q",
            "-r",
            "-v",
        ],
    ),
    (
        "push",
        &[],
        &[
            "--all",
            "--delete",
            "--dry-run",
            "--follow-tags",
            "--force",
            "--force-if-includes",
            "--force-with-lease",
            "--no-verify",
            "--prune",
            "--quiet",
            "--set-upstream",
            "--tags",
            "--verbose",
            "-d",
            "-f",
            "-n",
            "-q",
            "-u",
            "-v",
        ],
    ),
    (
        "rebase",
        &[],
        &[
            "--abort",
            "--autosquash",
            "--autostash",
            "--continue",
            "--edit-todo",
            "--interactive",
            "--keep-base",
            "--no-autosquash",
            "--onto",
            "--quit",
            "--rebase-merges",
            "--root",
            "--skip",
            "--update-refs",
            "-i",
            "-r",
        ],
    ),
    ("receive-pack", &[], &[]),
    (
        "remote",
        &["get-url", "prune", "show", "update"],
        &["--prune", "--verbose", "-v"],
    ),
    ("rerere", &[], &[]),
    (
        "submodule",
        &["deinit", "init", "status", "summary", "sync", "update"],
        &[
            "--depth=1",
            "--force",
            "--init",
            "--recursive",
            "--remote",
            "-f",
        ],
    ),
    ("upload-pack", &[], &["--strict"]),
    ("verify-commit", &[], &["-v"]),
    ("verify-tag", &[], &["-v"]),
    ("version", &[], &[]),
];
/// Options with which `git config` changes nothing, whatever follows.
const READING_OPTIONS: [&str; 4] = ["--get", "--get-regexp", "--list", "-l"];
/// Companions of git whose arguments name nothing that is run.
const COMPANIONS: [&str; 1] = ["lfs"];
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
const PLACES: [(&[u8], SettingRole); 5] = [
    (b"-C", SettingRole::WorkTree),
    (b"--exec-path", SettingRole::Directories),
    (b"--git-dir", SettingRole::Repository),
    (b"--separate-git-dir", SettingRole::Repository),
    (b"--template", SettingRole::Directories),
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
    pub(super) fn named_directories(
        &self,
        words: &[Vec<u8>],
        values: &[&[u8]],
        base: &Path,
        env: &Environment,
    ) -> BTreeSet<NamedPath> {
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
            named.extend(not_empty(remotes).map(NamedPath::Remotes));
        } else if self.is_one_of(&OF_REMOTES) {
            let all = likely(remotes(words, values));
            let is_several = |word: &Vec<u8>| word == b"--multiple";
            let is_of_several = self.is_one_of(&["remote"]) || words.iter().any(is_several);
            if is_of_several {
                let is_verb = |word: &[u8]| OF_REMOTE.iter().any(|verb| verb.as_bytes() == word);
                let remotes = all.into_iter().filter(|word| !is_verb(word)).collect();
                named.extend(not_empty(remotes).map(NamedPath::Remotes));
            } else {
                named.extend(not_empty(all).map(NamedPath::FirstRemote));
            }
        }
        named
    }
}

/// Returns whether the words after `git` run nothing from a work tree. A subcommand may also be one of the aliases, which are judged
/// by themselves.
pub(super) fn is_understood(words: &[&[u8]], aliases: &[&[u8]]) -> bool {
    let is_one = |names: &[&str], word: &[u8]| names.iter().any(|name| name.as_bytes() == word);
    let mut words = words;
    // A quoted word before the subcommand may hide where the subcommand is.
    let is_quoted = |word: &[u8]| word.iter().any(|byte| b"'\"\\".contains(byte));
    loop {
        match words {
            [b"-c", setting, ..] if is_quoted(setting) => return false,
            [b"-c", setting, rest @ ..] => {
                let section = setting
                    .split(|byte| *byte == b'.')
                    .next()
                    .unwrap_or_default();
                if !is_one(&HARMLESS_SECTIONS, section) {
                    return false;
                }
                words = rest;
            }
            [option, rest @ ..] if is_one(&HARMLESS_OPTIONS, option) => words = rest,
            _ => break,
        }
    }
    let Some((subcommand, arguments)) = words.split_first() else {
        return true;
    };
    if is_one(&HARMLESS, subcommand)
        || is_one(&COMPANIONS, subcommand)
        || aliases.contains(subcommand)
    {
        return true;
    }
    let Some((_, verbs, options)) = LIMITED
        .iter()
        .find(|(name, _, _)| name.as_bytes() == *subcommand)
    else {
        return false;
    };
    let first = arguments.iter().find(|word| !word.starts_with(b"-"));
    let is_option =
        |word: &&[u8]| !is_quoted(word) && (!word.starts_with(b"-") || is_one(options, word));
    // git looks for an address that begins with `ext::` or the like.
    let is_address = |word: &&[u8]| word.windows(2).any(|pair| pair == b"::");
    // `git config --get KEY` is older than its verbs.
    let only_reads = || arguments.iter().any(|word| is_one(&READING_OPTIONS, word));
    (verbs.is_empty() || first.is_none_or(|word| is_one(verbs, word)) || only_reads())
        && arguments.iter().all(is_option)
        && !arguments.iter().any(is_address)
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

/// Returns whether a word may be an address: it is not a reference or range of commits, as these are usually written.
fn is_address(word: &[u8]) -> bool {
    let is_revision = word == b"HEAD"
        || word.starts_with(b"refs/")
        || word.iter().skip(1).any(|byte| *byte == b'~');
    !word.is_empty() && !is_revision && is_name(&as_path(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn understands(alias: &str) -> bool {
        let words: Vec<&[u8]> = alias.split(' ').map(str::as_bytes).collect();
        is_understood(&words, &[b"st"])
    }

    #[test]
    fn subcommands_that_run_nothing_are_understood() {
        for alias in [
            "log --pretty='%h %s' -- x",
            "--no-pager -c color.ui=always log",
            "fetch --all --prune",
            "push --force-with-lease origin HEAD",
            "rebase -i --autosquash",
            "submodule update --init --recursive",
            "config --get-regexp ^alias",
            "grep -n --heading x",
            "st --short",
            "lfs pull",
        ] {
            assert!(understands(alias), "{alias}");
        }
    }

    #[test]
    fn subcommands_that_may_run_arguments_are_not() {
        for alias in [
            "-c core.pager=x log",
            "-C x log",
            "--exec-path=x log",
            "--git-dir=x log",
            "bisect run x",
            "submodule foreach x",
            "rebase -x make",
            "rebase --exec make",
            "fetch --upload-pack=x",
            "fetch --upl=x",
            "push --receive-pack x",
            "push \"--receive-pack=x\"",
            "fetch ext::x",
            "clone x",
            "grep -Ox y",
            "grep --open-files-in-pager=x y",
            "difftool -x y",
            "archive --exec=x",
            "filter-branch x",
            "for-each-repo --config=x",
            "config alias.y !x",
            "other",
            // git joins these to `bisect`, an argument of `-c` precedes it.
            "-c color.a\" log \"=1 bisect run x",
        ] {
            assert!(!understands(alias), "{alias}");
        }
    }
}
