//! Which settings and variables make git run a program or read a file that decides what it runs, and which files these are.
//!
//! The list of settings follows git's documentation; a test compares it with `git help --config`. A setting that is not listed counts
//! by its name, and any value in a section of another tool may be a command.
//!
//! `command_files` finds what a command names, and `addresses` what an address leads to.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crucible_host::env::Environment;

use super::addresses::{LocalTarget, local};
use super::command_files::{named_in_alias, named_in_command, named_in_helper};
use super::config_files::path_in;

/// What the value of a setting is to git.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SettingRole {
    /// A command, which git or a shell runs.
    Command,
    /// A helper for credentials: a command, or after `git-credential-` the name of a program.
    Helper,
    /// A command of git, or after `!` of a shell.
    Alias,
    /// Options of Node.js, which may name modules that it runs.
    NodeOptions,
    /// A program that reaches a repository: the name after `git-remote-`.
    RemoteHelper,
    /// A file that git trusts.
    File,
    /// Directories that git copies or loads all of, separated by colons.
    Directories,
    /// Directories from which a program loads modules, separated by colons.
    Libraries,
    /// A directory of hooks.
    Hooks,
    /// A git directory.
    Repository,
    /// A directory in which git looks for `.git`.
    WorkTree,
    /// The address of a repository, whose hooks git runs if it is on this machine.
    Address,
    /// The name of a remote, or else an address.
    Remote,
    /// What git puts in front of addresses: the subsection of the key.
    AddressPrefix,
    /// A value of another tool, which may run it as a command.
    OtherTool,
}

/// A path that a setting names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NamedPath {
    /// A file, or anything that is not there and may be created.
    Path(PathBuf),
    /// A directory that counts with all its content.
    Directory(PathBuf),
    /// A directory of which the files count.
    Hooks(PathBuf),
    /// A repository, or where it would be created.
    Repository(PathBuf),
    /// A directory of repositories.
    Repositories(PathBuf),
    /// The top of a work tree, or where it would be created.
    WorkTree(PathBuf),
    /// An address of a repository, before settings replace its beginning.
    Address(Vec<u8>),
    /// The name of a remote, or else an address.
    Remote(Vec<u8>),
    /// Words of a command, each of which may be the name of a remote or an address.
    Remotes(Vec<Vec<u8>>),
    /// The same; words after the name of a remote do not count.
    FirstRemote(Vec<Vec<u8>>),
    /// A file that is run because it is found on `PATH`, or would be found if it were created.
    Program(PathBuf),
    /// A directory of modules that the program of a command loads.
    Library(PathBuf),
}

impl NamedPath {
    fn exists(&self) -> bool {
        match self {
            Self::Path(path)
            | Self::Directory(path)
            | Self::Hooks(path)
            | Self::Repository(path)
            | Self::Repositories(path)
            | Self::WorkTree(path)
            | Self::Program(path)
            | Self::Library(path) => path.exists(),
            Self::Address(_) | Self::Remote(_) | Self::Remotes(_) | Self::FirstRemote(_) => false,
        }
    }
}

/// Names of settings that are commands, in whatever section.
const COMMANDS: [&str; 7] = [
    "cmd", "command", "driver", "editor", "hook", "pager", "program",
];

/// Sections of git and of git-lfs, sorted. The settings in any other one belong to a program that Crucible does not know.
const OWN_SECTIONS: [&str; 101] = [
    "add",
    "advice",
    "alias",
    "am",
    "apply",
    "attr",
    "author",
    "bitmappseudomerge",
    "blame",
    "branch",
    "browser",
    "bundle",
    "checkout",
    "clean",
    "color",
    "column",
    "commit",
    "commitgraph",
    "committer",
    "completion",
    "core",
    "credential",
    "credentialcache",
    "credentialstore",
    "diff",
    "difftool",
    "extensions",
    "fastimport",
    "feature",
    "fetch",
    "filter",
    "format",
    "fsck",
    "fsmonitor",
    "gc",
    "gitcvs",
    "gitweb",
    "gpg",
    "grep",
    "gui",
    "guitool",
    "help",
    "http",
    "i18n",
    "imap",
    "include",
    "includeif",
    "index",
    "init",
    "instaweb",
    "interactive",
    "lfs",
    "log",
    "lsrefs",
    "mailinfo",
    "mailmap",
    "maintenance",
    "man",
    "merge",
    "mergetool",
    "notes",
    "pack",
    "pager",
    "pretty",
    "promisor",
    "protocol",
    "pull",
    "push",
    "rebase",
    "receive",
    "reftable",
    "remote",
    "remotes",
    "repack",
    "rerere",
    "revert",
    "safe",
    "scalar",
    "sendemail",
    "sequence",
    "showbranch",
    "sparse",
    "splitindex",
    "ssh",
    "stash",
    "status",
    "submodule",
    "svn",
    "svn-remote",
    "tag",
    "tar",
    "trace2",
    "transfer",
    "uploadarchive",
    "uploadpack",
    "uploadpackfilter",
    "url",
    "user",
    "versionsort",
    "web",
    "worktree",
];

/// Returns the role of a setting; section and name of the key are in lower case.
pub(super) fn role(key: &[u8]) -> Option<SettingRole> {
    let first = key.iter().position(|byte| *byte == b'.')?;
    let last = key.iter().rposition(|byte| *byte == b'.')?;
    let section = std::str::from_utf8(&key[..first]).ok()?;
    let name = String::from_utf8_lossy(&key[last + 1..]);
    let name = &name[..];
    let is_command = match section {
        "alias" => return Some(SettingRole::Alias),
        "pager" => true,
        "core" => match name {
            "hookspath" => return Some(SettingRole::Hooks),
            "attributesfile" => return Some(SettingRole::File),
            "alternaterefscommand" | "askpass" | "fsmonitor" | "gitproxy" | "sshcommand" => true,
            _ => false,
        },
        "init" if name == "templatedir" => return Some(SettingRole::Directories),
        "instaweb" if name == "modulepath" => return Some(SettingRole::Directories),
        "gpg" if matches!(name, "allowedsignersfile" | "revocationfile") => {
            return Some(SettingRole::File);
        }
        "remote" if matches!(name, "url" | "pushurl") => return Some(SettingRole::Address),
        "remote" if name == "pushdefault" => return Some(SettingRole::Remote),
        "submodule" if name == "url" => return Some(SettingRole::Address),
        "branch" if matches!(name, "remote" | "pushremote") => return Some(SettingRole::Remote),
        "url" if matches!(name, "insteadof" | "pushinsteadof") => {
            return Some(SettingRole::AddressPrefix);
        }
        "browser" | "difftool" | "man" | "mergetool" => matches!(name, "cmd" | "path"),
        "credential" if name == "helper" => return Some(SettingRole::Helper),
        "diff" => matches!(name, "command" | "external" | "textconv"),
        "filter" => matches!(name, "clean" | "process" | "smudge"),
        "gc" => name == "recentobjectshook",
        "help" | "web" => name == "browser",
        "imap" => name == "tunnel",
        "instaweb" => matches!(name, "browser" | "httpd"),
        "interactive" => name == "difffilter",
        // git runs the maintenance of each of these repositories.
        "maintenance" | "scalar" if name == "repo" => return Some(SettingRole::WorkTree),
        "lfs" => matches!(name, "args" | "clean" | "path" | "smudge"),
        "remote" if name == "vcs" => return Some(SettingRole::RemoteHelper),
        "remote" => matches!(name, "receivepack" | "uploadpack"),
        "sendemail" => {
            matches!(
                name,
                "cccmd" | "headercmd" | "sendmailcmd" | "smtpserver" | "tocmd"
            )
        }
        "submodule" => name == "update",
        "svn" | "svn-remote" => name == "authorsprog",
        "uploadpack" => name == "packobjectshook",
        _ => false,
    };
    let is_own = OWN_SECTIONS.binary_search(&section).is_ok();
    // `branchless.test.command.default`
    let is_called = |name: &str| COMMANDS.iter().any(|ending| name.ends_with(ending));
    let is_called_command = || {
        let others = String::from_utf8_lossy(subsection(key)).to_ascii_lowercase();
        is_called(name) || !is_own && others.split('.').any(is_called)
    };
    if is_command || is_called_command() {
        Some(SettingRole::Command)
    } else {
        (!is_own).then_some(SettingRole::OtherTool)
    }
}

/// Returns the role of a variable of the environment.
pub(super) fn variable_role(name: &str) -> Option<SettingRole> {
    match name {
        "EDITOR"
        | "GIT_ASKPASS"
        | "GIT_DIFFTOOL_EXTCMD"
        | "GIT_EDITOR"
        | "GIT_EXTERNAL_DIFF"
        | "GIT_PAGER"
        | "GIT_PROXY_COMMAND"
        | "GIT_SEQUENCE_EDITOR"
        | "GIT_SSH"
        | "GIT_SSH_COMMAND"
        | "LD_PRELOAD"
        | "LESSOPEN"
        | "PAGER"
        | "PERL5OPT"
        | "RUBYOPT"
        | "SSH_ASKPASS"
        | "VISUAL" => Some(SettingRole::Command),
        "NODE_OPTIONS" => Some(SettingRole::NodeOptions),
        "BASH_ENV" | "GIT_INDEX_FILE" => Some(SettingRole::File),
        "GITPERLLIB"
        | "GIT_ALTERNATE_OBJECT_DIRECTORIES"
        | "GIT_EXEC_PATH"
        | "GIT_OBJECT_DIRECTORY"
        | "GIT_TEMPLATE_DIR" => Some(SettingRole::Directories),
        _ => None,
    }
}

/// Returns the interpreter that loads modules from the directories in this variable, or `Some(None)` if any program does.
pub(super) fn library_variable(name: &str) -> Option<Option<&'static str>> {
    match name {
        "LD_LIBRARY_PATH" => Some(None),
        "NODE_PATH" => Some(Some("node")),
        "PERL5LIB" => Some(Some("perl")),
        "PYTHONPATH" => Some(Some("python")),
        "RUBYLIB" => Some(Some("ruby")),
        _ => None,
    }
}

/// Returns the paths that a value names, relative to `base`: the top of a work tree, or a git directory.
pub(super) fn named_by(
    role: SettingRole,
    value: &[u8],
    base: &Path,
    env: &Environment,
) -> BTreeSet<NamedPath> {
    let path = |value: &[u8]| path_in(value, base, env);
    let mut named = BTreeSet::new();
    match role {
        SettingRole::Command => named.extend(named_in_command(value, base, env)),
        // Most values are no commands: nothing is kept from being created because of them.
        SettingRole::OtherTool => named.extend(
            named_in_command(value, base, env)
                .into_iter()
                .filter(NamedPath::exists),
        ),
        SettingRole::NodeOptions => {
            named.extend(named_in_command(&[b"node ", value].concat(), base, env));
        }
        SettingRole::RemoteHelper => {
            named.insert(NamedPath::Address([value, b"::"].concat()));
        }
        SettingRole::Helper => named.extend(named_in_helper(value, base, env)),
        SettingRole::Alias => named.extend(named_in_alias(value, base, env)),
        SettingRole::File if value.is_empty() => {}
        SettingRole::File => named.extend(path(value).map(NamedPath::Path)),
        SettingRole::Directories => {
            let directories = value
                .split(|byte| *byte == b':')
                .filter(|one| !one.is_empty());
            named.extend(directories.filter_map(path).map(NamedPath::Directory));
        }
        SettingRole::Libraries => {
            let directories = value
                .split(|byte| *byte == b':')
                .filter(|one| !one.is_empty());
            named.extend(directories.filter_map(path).map(NamedPath::Library));
        }
        // git looks for the hooks in the root directory if it is empty.
        SettingRole::Hooks if value.is_empty() => {
            named.insert(NamedPath::Hooks(PathBuf::from("/")));
        }
        SettingRole::Hooks => named.extend(path(value).map(NamedPath::Hooks)),
        SettingRole::Repository if value.is_empty() => {}
        SettingRole::Repository => named.extend(path(value).map(NamedPath::Repository)),
        SettingRole::WorkTree => named.extend(path(value).map(NamedPath::WorkTree)),
        SettingRole::AddressPrefix => match local(value) {
            Some(LocalTarget::Path(directory)) if directory.ends_with(b"/") => {
                named.extend(path(&directory).map(NamedPath::Repositories));
            }
            _ => {
                named.insert(NamedPath::Address(value.to_owned()));
            }
        },
        SettingRole::Address => {
            named.insert(NamedPath::Address(value.to_owned()));
        }
        SettingRole::Remote => {
            named.insert(NamedPath::Remote(value.to_owned()));
        }
    }
    named
}

/// Returns the paths that a setting names, relative to `base`; section and name of the key are in lower case.
pub(super) fn named_by_setting(
    key: &[u8],
    value: &[u8],
    base: &Path,
    env: &Environment,
) -> BTreeSet<NamedPath> {
    match role(key) {
        Some(role @ SettingRole::AddressPrefix) => named_by(role, subsection(key), base, env),
        Some(role) => named_by(role, value, base, env),
        None => BTreeSet::new(),
    }
}

/// Returns the text of a key between the section and the name.
pub(super) fn subsection(key: &[u8]) -> &[u8] {
    let first = key.iter().position(|byte| *byte == b'.');
    let last = key.iter().rposition(|byte| *byte == b'.');
    match (first, last) {
        (Some(first), Some(last)) if first < last => &key[first + 1..last],
        _ => b"",
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test lays out files by hand")]
mod tests {
    use super::*;

    /// Settings that git lists, that are called like programs or files, and that decide nothing of what git runs.
    const HARMLESS: [&str; 36] = [
        "blame.ignoreRevsFile",
        "column.clean",
        "commit.template",
        "core.excludesFile",
        "core.quotePath",
        "core.worktree",
        "credential.useHttpPath",
        "diff.<driver>.cachetextconv",
        "diff.guitool",
        "diff.orderFile",
        "diff.tool",
        "format.outputDirectory",
        "format.signatureFile",
        "fsmonitor.socketDir",
        "gc.repackFilter",
        "gitcvs.logFile",
        "gitweb.url",
        "gui.newBranchTemplate",
        "guitool.<name>.needsFile",
        "help.htmlPath",
        "http.cookieFile",
        "http.proxy",
        "http.sslCAPath",
        "include.path",
        "includeIf.<condition>.path",
        "mailmap.file",
        "merge.guitool",
        "merge.tool",
        "remote.<name>.partialclonefilter",
        "remote.<name>.proxy",
        "safe.directory",
        "sendemail.aliasesFile",
        "sendemail.mailmap.file",
        "sendemail.smtpSSLCertPath",
        "transfer.credentialsInUrl",
        "uploadpack.allowFilter",
    ];

    #[test]
    fn every_listed_setting_of_git_is_classified() {
        let git = |words: &[&str]| {
            let output = std::process::Command::new("git")
                .args(words)
                .output()
                .unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        let endings = [
            "askpass",
            "browser",
            "clean",
            "cmd",
            "command",
            "dir",
            "directory",
            "driver",
            "editor",
            "external",
            "file",
            "filter",
            "fsmonitor",
            "helper",
            "hook",
            "httpd",
            "pager",
            "path",
            "process",
            "program",
            "proxy",
            "receivepack",
            "smudge",
            "template",
            "textconv",
            "tool",
            "tunnel",
            "uploadpack",
            "url",
            "vcs",
            "worktree",
        ];
        // Switches of messages and checks are not paths.
        let switches = ["advice.", "color.", "feature.", "fsck.", "receive.fsck."];
        let listed = git(&["help", "--config"]);
        let sections: BTreeSet<String> = listed
            .lines()
            .filter_map(|key| Some(key.split_once('.')?.0.to_ascii_lowercase()))
            .collect();
        let undocumented = ["init", "lfs", "scalar", "svn", "svn-remote"];
        let others: Vec<&str> = OWN_SECTIONS
            .into_iter()
            .filter(|own| !sections.contains(*own) && !undocumented.contains(own))
            .collect();
        assert_eq!(others, [""; 0], "these sections are not git's");
        assert!(OWN_SECTIONS.is_sorted());
        let unknown: Vec<&str> = listed
            .lines()
            .filter(|key| {
                let lower = key.to_ascii_lowercase();
                endings.iter().any(|ending| lower.ends_with(ending))
                    && !switches.iter().any(|switch| key.starts_with(switch))
                    && role(lower.as_bytes()).is_none()
                    && !HARMLESS.contains(key)
            })
            .collect();
        assert_eq!(unknown, [""; 0], "decide whether git runs what they name");
        assert!(listed.lines().count() > 100);
    }

    #[test]
    fn value_of_another_tool_may_be_a_command() {
        for (key, expected) in [
            (
                "branchless.test.command.default",
                Some(SettingRole::Command),
            ),
            ("stgit.editor", Some(SettingRole::Command)),
            ("secrets.providers", Some(SettingRole::OtherTool)),
            ("delta.features", Some(SettingRole::OtherTool)),
            ("branch.a.command.merge", None),
            ("lfs.url", None),
            ("user.name", None),
        ] {
            assert_eq!(role(key.as_bytes()), expected, "{key}");
        }
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("tools")).unwrap();
        std::fs::write(dir.path().join("tools/check"), "").unwrap();
        for (value, count) in [
            ("tools/check --all", 1),
            ("sh -c 'cd tools && sh check'", 1),
            ("origin/main", 0),
            ("line-numbers decorations", 0),
            ("https://example.org/a", 0),
            ("git push origin", 0),
            ("tools", 0),
        ] {
            let env = Environment::default();
            let named = named_by_setting(b"x.y", value.as_bytes(), dir.path(), &env);
            assert_eq!(named.len(), count, "{value}: {named:?}");
        }
    }
}
