//! Which settings and variables make git run a program or read a file that decides what it runs, and which files these are.
//!
//! The list of settings follows git's documentation; a test compares it with `git help --config`. A setting that is not listed counts
//! by its name: other tools keep commands in git's settings, too.
//!
//! A command is split as a shell does. Each of its words counts that has a `/`, is called like a script, or is given to an interpreter.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crucible_host::env::Environment;

use super::command::as_path;
use super::config_files::path_in;
use super::shell::Script;

/// What the value of a setting is to git.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// A command, which git or a shell runs.
    Command,
    /// A command of git, or after `!` of a shell.
    Alias,
    /// A file that git trusts.
    File,
    /// Directories that git copies or loads all of, separated by colons.
    Directories,
    /// A directory of hooks.
    Hooks,
    /// The address of a repository, whose hooks git runs if it is on this machine.
    Address,
    /// What git puts in front of addresses: the subsection of the key.
    AddressPrefix,
}

/// A path that a setting names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Named {
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
}

/// Names of settings that are commands, in whatever section.
const COMMANDS: [&str; 7] = [
    "cmd", "command", "driver", "editor", "hook", "pager", "program",
];
/// Subcommands of git that run nothing which their arguments name.
const HARMLESS_SUBCOMMANDS: [&str; 48] = [
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
    "config",
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
/// Programs that run what an argument names. Versions may follow the name (`python3.12`).
const INTERPRETERS: [&str; 21] = [
    "ash", "awk", "bash", "bun", "busybox", "dash", "deno", "fish", "gawk", "ksh", "lua", "node",
    "nodejs", "perl", "php", "pypy", "python", "ruby", "sh", "tclsh", "zsh",
];
/// Words before the program of a command.
const BEFORE_PROGRAM: [&str; 22] = [
    "!", "(", "builtin", "command", "do", "doas", "elif", "else", "env", "exec", "if", "nice",
    "nohup", "sudo", "then", "time", "timeout", "until", "while", "xargs", "{", "}",
];
/// Endings of programs that an interpreter finds without a path.
const SCRIPTS: [&str; 8] = ["bash", "js", "mjs", "php", "pl", "py", "rb", "sh"];
/// The file that Python runs if it gets a directory.
const MAIN: &str = "__main__.py";
/// Bytes between an option or a variable and its value, and between several values.
const SEPARATORS: &[u8] = b"=,:";

/// Returns the role of a setting; section and name of the key are in lower case.
pub(super) fn role(key: &[u8]) -> Option<Role> {
    let first = key.iter().position(|byte| *byte == b'.')?;
    let last = key.iter().rposition(|byte| *byte == b'.')?;
    let section = std::str::from_utf8(&key[..first]).ok()?;
    let name = String::from_utf8_lossy(&key[last + 1..]);
    let name = &name[..];
    let is_command = match section {
        "alias" => return Some(Role::Alias),
        "pager" => true,
        "core" => match name {
            "hookspath" => return Some(Role::Hooks),
            "attributesfile" => return Some(Role::File),
            "alternaterefscommand" | "askpass" | "fsmonitor" | "gitproxy" | "sshcommand" => true,
            _ => false,
        },
        "init" if name == "templatedir" => return Some(Role::Directories),
        "instaweb" if name == "modulepath" => return Some(Role::Directories),
        "gpg" if matches!(name, "allowedsignersfile" | "revocationfile") => {
            return Some(Role::File);
        }
        "remote" if matches!(name, "url" | "pushurl" | "pushdefault") => {
            return Some(Role::Address);
        }
        "submodule" if name == "url" => return Some(Role::Address),
        "branch" if matches!(name, "remote" | "pushremote") => return Some(Role::Address),
        "url" if matches!(name, "insteadof" | "pushinsteadof") => {
            return Some(Role::AddressPrefix);
        }
        "browser" | "difftool" | "man" | "mergetool" => matches!(name, "cmd" | "path"),
        "credential" => name == "helper",
        "diff" => matches!(name, "command" | "external" | "textconv"),
        "filter" => matches!(name, "clean" | "process" | "smudge"),
        "gc" => name == "recentobjectshook",
        "help" | "web" => name == "browser",
        "imap" => name == "tunnel",
        "instaweb" => matches!(name, "browser" | "httpd"),
        "interactive" => name == "difffilter",
        "lfs" => matches!(name, "args" | "clean" | "path" | "smudge"),
        "remote" => matches!(name, "receivepack" | "uploadpack" | "vcs"),
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
    let is_called_command = || COMMANDS.iter().any(|ending| name.ends_with(ending));
    (is_command || is_called_command()).then_some(Role::Command)
}

/// Returns the role of a variable of the environment.
pub(super) fn variable_role(name: &str) -> Option<Role> {
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
        | "PAGER"
        | "SSH_ASKPASS"
        | "VISUAL" => Some(Role::Command),
        "GIT_INDEX_FILE" => Some(Role::File),
        "GITPERLLIB"
        | "GIT_ALTERNATE_OBJECT_DIRECTORIES"
        | "GIT_EXEC_PATH"
        | "GIT_OBJECT_DIRECTORY"
        | "GIT_TEMPLATE_DIR" => Some(Role::Directories),
        _ => None,
    }
}

/// Returns the paths that a value names, relative to `base`: the top of a work tree, or a git directory.
pub(super) fn named_by(
    role: Role,
    value: &[u8],
    base: &Path,
    env: &Environment,
) -> BTreeSet<Named> {
    let path = |value: &[u8]| path_in(value, base, env);
    let mut named = BTreeSet::new();
    match role {
        Role::Command => add_files(value, base, env, &mut named),
        Role::Alias if runs_arguments(value) => add_files(value, base, env, &mut named),
        Role::Alias => {}
        Role::File if value.is_empty() => {}
        Role::File => named.extend(path(value).map(Named::Path)),
        Role::Directories => {
            let directories = value
                .split(|byte| *byte == b':')
                .filter(|one| !one.is_empty());
            named.extend(directories.filter_map(path).map(Named::Directory));
        }
        // git looks for the hooks in the root directory if it is empty.
        Role::Hooks if value.is_empty() => {
            named.insert(Named::Hooks(PathBuf::from("/")));
        }
        Role::Hooks => named.extend(path(value).map(Named::Hooks)),
        Role::Address => match local_address(value) {
            Some(Address::Path(local)) => named.extend(path(local).map(Named::Repository)),
            Some(Address::Command(command)) => add_files(command, base, env, &mut named),
            None => {}
        },
        Role::AddressPrefix => match local_address(value) {
            Some(Address::Path(local)) if local.ends_with(b"/") => {
                named.extend(path(local).map(Named::Repositories));
            }
            Some(Address::Path(local)) => named.extend(path(local).map(Named::Repository)),
            Some(Address::Command(command)) => add_files(command, base, env, &mut named),
            None => {}
        },
    }
    named
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

/// Whether an alias may run what its arguments name.
fn runs_arguments(alias: &[u8]) -> bool {
    let first = alias
        .split(u8::is_ascii_whitespace)
        .find(|word| !word.is_empty());
    let is_harmless = |word: &[u8]| {
        HARMLESS_SUBCOMMANDS
            .iter()
            .any(|name| name.as_bytes() == word)
    };
    !first.is_none_or(is_harmless)
}

/// An address that leads to this machine.
enum Address<'a> {
    Path(&'a [u8]),
    /// A command that git runs to reach the repository.
    Command(&'a [u8]),
}

/// Returns where an address leads on this machine; `None` if it leads elsewhere.
fn local_address(address: &[u8]) -> Option<Address<'_>> {
    if let Some(command) = address.strip_prefix(b"ext::") {
        return Some(Address::Command(command));
    }
    if let Some(rest) = address.strip_prefix(b"file://") {
        let slash = rest.iter().position(|byte| *byte == b'/')?;
        return Some(Address::Path(&rest[slash..]));
    }
    let slash = address.iter().position(|byte| *byte == b'/');
    let colon = address.iter().position(|byte| *byte == b':');
    // `host:path`, `scheme://host/path` and `helper::address` have a colon before each slash.
    let is_local = match (slash, colon) {
        (Some(slash), Some(colon)) => slash < colon,
        // Without a slash it is the name of a remote.
        (slash, _) => slash.is_some(),
    };
    is_local.then_some(Address::Path(address))
}

/// How a word of a command is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Use {
    /// It is the program, found on `PATH` if it has no `/`.
    Program,
    /// It is the first argument of an interpreter, which runs it.
    Script,
    /// It is another argument of an interpreter.
    Interpreted,
    Argument,
    /// It is a part of the value as it is written, and means a file if there is one.
    Written,
}

impl Use {
    fn is_run(self) -> bool {
        matches!(self, Self::Program | Self::Script)
    }

    fn is_of_interpreter(self) -> bool {
        matches!(self, Self::Script | Self::Interpreted)
    }
}

/// Adds the files that a command runs or reads.
///
/// A file that does not exist counts, too, if it is run or if its directory exists: else it could be created.
fn add_files(value: &[u8], base: &Path, env: &Environment, named: &mut BTreeSet<Named>) {
    let value = value.strip_prefix(b"!").unwrap_or(value);
    let words = words(value);
    let mut directories = BTreeSet::new();
    for (word, used) in &words {
        let has_slash = word.contains(&b'/');
        let is_found_on_path = matches!(used, Use::Program | Use::Written);
        let is_file_name = has_slash || is_script(word) && !is_found_on_path;
        for (path, may_be_missing) in paths(word, base, env) {
            let is_named = path.file_name().is_some() && !path.ends_with("..");
            match path.metadata() {
                _ if !is_named => {}
                Ok(meta) if meta.is_dir() => {
                    let main = path.join(MAIN);
                    if used.is_of_interpreter() && main.is_file() {
                        named.insert(Named::Path(main));
                    }
                    if !base.starts_with(&path) {
                        directories.insert(path);
                    }
                }
                Ok(_) if is_file_name || used.is_of_interpreter() => {
                    named.insert(Named::Path(path));
                }
                Ok(_) => {}
                // A link that leads nowhere stands for what is created there.
                Err(_) if !may_be_missing => {}
                Err(_) => {
                    let has_directory = path.parent().is_some_and(Path::is_dir);
                    let is_word = *used != Use::Written;
                    let is_run = used.is_run() && has_slash && !has_blank(word);
                    if is_run || is_word && is_file_name && has_directory {
                        named.insert(Named::Path(path));
                    }
                }
            }
        }
    }
    if changes_directory(&words) {
        let inside = directories.iter().flat_map(|directory| {
            words
                .iter()
                .filter_map(|(word, used)| named_inside(directory, word, *used))
        });
        named.extend(inside.map(Named::Path));
    }
}

/// Returns whether a command may run what is in a directory that another word names (`cd tools && sh check`, `D=tools; sh $D/check`).
fn changes_directory(words: &BTreeSet<(Vec<u8>, Use)>) -> bool {
    let changes = |word: &[u8]| {
        matches!(word, b"cd" | b"pushd") || word.starts_with(b"-C") || word.starts_with(b"--chdir")
    };
    words
        .iter()
        .any(|(word, _)| changes(word) || word.contains(&b'$'))
}

/// Returns the file that a word names in a directory, after a variable that may stand for the directory.
fn named_inside(directory: &Path, word: &[u8], used: Use) -> Option<PathBuf> {
    let variable = word.iter().position(|byte| *byte == b'$');
    let slash = word.iter().position(|byte| *byte == b'/');
    let rest = match (variable, slash) {
        (Some(_), Some(slash)) => &word[slash + 1..],
        _ => word,
    };
    if rest.is_empty() || rest.starts_with(b"/") || rest.starts_with(b"-") {
        return None;
    }
    let path = directory.join(as_path(rest));
    let is_created =
        used.is_run() && (word.contains(&b'/') || used == Use::Script) && !has_blank(word);
    (path.is_file() || is_created && path.symlink_metadata().is_err()).then_some(path)
}

fn has_blank(word: &[u8]) -> bool {
    word.iter().any(u8::is_ascii_whitespace)
}

/// Returns the words of a command: as a shell reads them, their parts, and as they are written.
fn words(value: &[u8]) -> BTreeSet<(Vec<u8>, Use)> {
    let mut words = BTreeSet::new();
    for command in Script::parse(value).commands {
        let (mut is_program, mut is_interpreted) = (true, false);
        for word in command {
            let is_option = word.starts_with(b"-");
            let is_before = is_option || is_assignment(&word) || is_before_program(&word);
            let used = match (is_program, is_interpreted) {
                (true, _) if is_before => Use::Argument,
                (true, false) => Use::Program,
                (true, true) => Use::Script,
                (false, true) => Use::Interpreted,
                (false, false) => Use::Argument,
            };
            match used {
                Use::Program => {
                    is_interpreted = is_interpreter(&word);
                    is_program = is_interpreted;
                }
                Use::Script => is_program = false,
                Use::Interpreted | Use::Argument | Use::Written => {}
            }
            let part_used = match used {
                Use::Program | Use::Script => Use::Argument,
                Use::Interpreted | Use::Argument | Use::Written => used,
            };
            words.extend(parts(&word).map(|part| {
                // One with separators in it is a file only if there is one.
                let is_single = !part.iter().any(|byte| SEPARATORS.contains(byte));
                (
                    part.to_owned(),
                    if is_single { part_used } else { Use::Written },
                )
            }));
            words.insert((word, used));
        }
    }
    let written = value.split(u8::is_ascii_whitespace).chain([value]);
    words.extend(written.map(|word| (word.to_owned(), Use::Written)));
    words.retain(|(word, _)| !word.is_empty());
    words
}

/// Returns the parts of a word: an option without its name, and what is between separators.
fn parts(word: &[u8]) -> impl Iterator<Item = &[u8]> {
    let begins = |at: &usize| *at > 0 && SEPARATORS.contains(&word[at - 1]);
    let of_option = (word.starts_with(b"-") && word.len() > 2).then_some(2);
    let starts = (0..word.len()).filter(begins).chain(of_option);
    let parts = starts.chain([0]).flat_map(|start| {
        let rest = &word[start..];
        let end = rest.iter().position(|byte| SEPARATORS.contains(byte));
        [rest, &rest[..end.unwrap_or(rest.len())]]
    });
    parts.filter(move |part| *part != word)
}

/// Whether a word sets a variable, or a setting of git (`-c core.pager=less`).
fn is_assignment(word: &[u8]) -> bool {
    let end = word.iter().position(|byte| *byte == b'=').unwrap_or(0);
    let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.-".contains(byte);
    end > 0 && word[..end].iter().all(is_of_name)
}

fn is_before_program(word: &[u8]) -> bool {
    BEFORE_PROGRAM
        .iter()
        .any(|before| before.as_bytes() == word)
}

fn is_interpreter(word: &[u8]) -> bool {
    let name = word.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let end = name
        .iter()
        .rposition(|byte| !byte.is_ascii_digit() && *byte != b'.');
    let name = end.map_or(&b""[..], |end| &name[..=end]);
    INTERPRETERS
        .iter()
        .any(|interpreter| interpreter.as_bytes() == name)
}

fn is_script(word: &[u8]) -> bool {
    as_path(word)
        .extension()
        .and_then(|ending| ending.to_str())
        .is_some_and(|ending| SCRIPTS.contains(&ending))
}

/// Returns the paths that a word may mean, and whether they count if they do not exist. Up to any `/`, a variable or the output of
/// a command may stand for `base`; most likely up to the first one after it.
fn paths(word: &[u8], base: &Path, env: &Environment) -> Vec<(PathBuf, bool)> {
    let home = [&b"$HOME/"[..], b"${HOME}/"]
        .iter()
        .find_map(|home| word.strip_prefix(*home));
    if let Some(below) = home {
        let path = env.home().map(|home| home.join(as_path(below)));
        return path.map(|path| (path, true)).into_iter().collect();
    }
    let variable = word.iter().rposition(|byte| b"$`)}".contains(byte));
    let variable = variable.filter(|_| word.contains(&b'$') || word.contains(&b'`'));
    let literal = path_in(word, base, env).map(|path| (path, variable.is_none()));
    let mut paths: Vec<(PathBuf, bool)> = literal.into_iter().collect();
    if let Some(variable) = variable {
        let slashes = word.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let mut is_first = true;
        for (at, _) in slashes {
            let rest = &word[at + 1..];
            if !rest.is_empty() && !rest.starts_with(b"/") {
                let is_likely = at > variable && std::mem::take(&mut is_first);
                paths.push((base.join(as_path(rest)), is_likely));
            }
        }
    }
    paths
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
    fn files_of_commands_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path();
        std::fs::create_dir_all(top.join("tools")).unwrap();
        std::fs::create_dir_all(top.join("src")).unwrap();
        for file in [
            "tools/my check",
            "tools/check",
            "main",
            "test",
            "sh",
            "tools/__main__.py",
            "tools/a,b",
            "tools/a:b",
            "tools/v=1",
            "tools/{x}",
        ] {
            std::fs::write(top.join(file), "").unwrap();
        }
        let named = |role: Role, value: &str| -> Vec<String> {
            let named = named_by(role, value.as_bytes(), top, &Environment::default());
            let below = |named: &Named| {
                let Named::Path(path) = named else {
                    panic!("{named:?}");
                };
                path.strip_prefix(top).unwrap().display().to_string()
            };
            named.iter().map(below).collect()
        };
        for (value, files) in [
            ("tools/check %f", &["tools/check"][..]),
            ("sh tools/my\\ check", &["tools/my check"]),
            ("'tools/my check'", &["tools/my", "tools/my check"]),
            ("sh tools/\"my check\"", &["tools/my check"]),
            ("true\nsh tools/new", &["tools/new"]),
            ("sh new.sh", &["new.sh"]),
            ("$PWD/tools/check", &["tools/check"]),
            (
                "$(git rev-parse --show-toplevel)/tools/check",
                &["tools/check"],
            ),
            ("sh -c 'D=tools; sh $D/check'", &["check", "tools/check"]),
            ("cd tools && sh check", &["tools/check"]),
            ("cd tools && ./new", &["new", "tools/./new"]),
            ("python3 tools", &["tools/__main__.py"]),
            ("diff tools", &[]),
            ("sh tools/a,b", &["tools/a", "tools/a,b"]),
            ("sh tools/a:b", &["tools/a", "tools/a:b"]),
            ("sh tools/v=1", &["tools/v", "tools/v=1"]),
            ("sh tools/{x}", &["tools/{x}"]),
            ("X=tools/check sh -f", &["tools/check"]),
            ("tool --with=tools/check,x", &["tools/check"]),
            ("tool -ftools/check", &["tools/check"]),
            ("elsewhere/new", &["elsewhere/new"]),
            ("sh elsewhere/new x/y", &["elsewhere/new"]),
            ("sh sh", &["sh"]),
            ("env A=b python3.12 -u main", &["main"]),
            ("main", &[]),
            ("helper.sh --get", &[]),
            ("make test", &[]),
            ("less -R src", &[]),
            ("cat new", &[]),
            ("sed s/a/b/", &[]),
            ("", &[]),
        ] {
            assert_eq!(named(Role::Command, value), files, "{value:?}");
        }
        for (value, files) in [
            ("log --format=%h/%s tools/check", &[][..]),
            ("!sh tools/check", &["tools/check"]),
            ("-c core.pager=tools/check log", &["tools/check"]),
            ("difftool -x tools/check", &["tools/check"]),
        ] {
            assert_eq!(named(Role::Alias, value), files, "{value:?}");
        }
    }

    #[test]
    fn addresses_of_this_machine_are_named() {
        let env = Environment::default();
        let named = |role, value: &str| named_by(role, value.as_bytes(), Path::new("/r"), &env);
        let one = |path: &str| BTreeSet::from([Named::Repository(PathBuf::from(path))]);
        for (value, expected) in [
            ("/srv/a.git", one("/srv/a.git")),
            ("../a", one("/r/../a")),
            ("file:///srv/a", one("/srv/a")),
            ("file://host/srv/a", one("/srv/a")),
            ("./a:b", one("/r/./a:b")),
            ("git@host:src/a", BTreeSet::new()),
            ("https://host/src/a", BTreeSet::new()),
            ("origin", BTreeSet::new()),
            ("helper::src/a", BTreeSet::new()),
        ] {
            assert_eq!(named(Role::Address, value), expected, "{value}");
        }
        let prefix = BTreeSet::from([Named::Repositories(PathBuf::from("/srv/"))]);
        assert_eq!(named(Role::AddressPrefix, "/srv/"), prefix);
        let command = BTreeSet::from([Named::Path(PathBuf::from("/r/tools/x"))]);
        assert_eq!(named(Role::Address, "ext::sh tools/x"), command);
    }

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
        // Switches of messages and checks are no paths.
        let switches = ["advice.", "color.", "feature.", "fsck.", "receive.fsck."];
        let listed = git(&["help", "--config"]);
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
}
