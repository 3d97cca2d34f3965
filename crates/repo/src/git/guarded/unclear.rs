//! Names the settings, variables and hooks with a command that may run any file of a work tree.
//!
//! A command that is not completely understood is one of these. So a new way to write a command is reported without a new rule.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crucible_model::ByteLimit;

use super::{Entry, REBASE, Repository, Settings, WorkTrees, command_of_rebase};
use crate::git::addresses::{LocalTarget, local, remote_helper};
use crate::git::command::as_path;
use crate::git::config_files::path_in;
use crate::git::programs::{SettingRole, role, subsection, variable_role};
use crate::git::understood::CommandContext;

/// Hooks that git runs.
const HOOKS: [&str; 22] = [
    "applypatch-msg",
    "commit-msg",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-receive",
    "post-rewrite",
    "post-update",
    "pre-applypatch",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-rebase",
    "pre-receive",
    "prepare-commit-msg",
    "proc-receive",
    "push-to-checkout",
    "reference-transaction",
    "sendemail-validate",
];
/// Longer than the hooks that git-lfs installs.
const LFS_HOOK_BYTES: ByteLimit = ByteLimit(4 << 10);
/// Values of settings that are switches or names of methods, where others have a command.
const SWITCHES: [&str; 13] = [
    "", "checkout", "false", "merge", "no", "none", "off", "on", "rebase", "true", "yes", "0", "1",
];

/// Returns the names of what runs a command that is not understood, for the repositories whose work tree or git directory has a
/// part in common with one of the writable directories.
pub(super) fn unclear_commands(
    settings: &Settings,
    shared: &[&Entry],
    repositories: &[(&Repository, &WorkTrees)],
    writable: &[PathBuf],
) -> BTreeSet<String> {
    let is_near = |place: &PathBuf| {
        let mut directories = writable.iter();
        directories.any(|one| one.starts_with(place) || place.starts_with(one))
    };
    let mut unclear = BTreeSet::new();
    for (repository, trees) in repositories {
        let is_one_near = is_near(&repository.git_dir) || trees.tops.iter().any(is_near);
        if !is_one_near {
            continue;
        }
        let (_, mut entries) = settings.entries_in(repository.settings());
        entries.extend(shared);
        let base = trees.tops.first().unwrap_or(&repository.git_dir);
        let judge = Judge {
            surroundings: CommandContext {
                base,
                writable,
                env: &settings.env,
            },
            aliases: entries.iter().filter_map(|entry| alias(entry)).collect(),
        };
        let of_settings = entries.iter().filter(|entry| {
            role(&entry.key).is_some_and(|role| !judge.understands(role, &entry.key, &entry.value))
        });
        unclear.extend(of_settings.map(|entry| String::from_utf8_lossy(&entry.key).into_owned()));
        unclear.extend(judge.variables());
        let todo = std::fs::read(repository.git_dir.join(REBASE)).unwrap_or_default();
        let mut commands = todo
            .split(|byte| *byte == b'\n')
            .filter_map(command_of_rebase);
        if commands.any(|command| !judge.surroundings.is_understood(command)) {
            unclear.insert("exec of the unfinished rebase".to_owned());
        }
        unclear.extend(hooks(repository, trees, &entries, settings));
    }
    unclear
}

/// Returns the name of the alias that a setting defines.
fn alias(entry: &Entry) -> Option<&[u8]> {
    let name = entry.key.strip_prefix(b"alias.")?;
    Some(name.strip_suffix(b".command").unwrap_or(name))
}

struct Judge<'a> {
    surroundings: CommandContext<'a>,
    aliases: Vec<&'a [u8]>,
}

impl Judge<'_> {
    /// Returns whether the value runs nothing from a work tree.
    fn understands(&self, role: SettingRole, key: &[u8], value: &[u8]) -> bool {
        let understand = |value: &[u8]| self.surroundings.is_understood(value);
        match role {
            SettingRole::Command => {
                let is_switch = SWITCHES
                    .iter()
                    .any(|switch| switch.as_bytes().eq_ignore_ascii_case(value));
                // A name without a directory is that of a machine.
                let is_machine =
                    key.ends_with(b".smtpserver") && !value.iter().any(|byte| b"/~".contains(byte));
                is_switch || is_machine || understand(value)
            }
            SettingRole::Helper => {
                let mut words = value.split(u8::is_ascii_whitespace);
                let is_command = value.starts_with(b"!")
                    || words.next().is_some_and(|word| word.contains(&b'/'));
                let prefix = if is_command || value.is_empty() {
                    &b""[..]
                } else {
                    b"git-credential-"
                };
                understand(&[prefix, value].concat())
            }
            SettingRole::Alias => self.surroundings.is_alias_understood(value, &self.aliases),
            SettingRole::RemoteHelper => understand(&[b"git-remote-", value].concat()),
            SettingRole::Address | SettingRole::Remote => self.reaches(value),
            SettingRole::AddressPrefix => self.reaches(subsection(key)),
            // Options of interpreters; a command with an interpreter is not understood anyway.
            SettingRole::NodeOptions => true,
            // Most of them are no commands, so every changed file would be listed for a colour.
            SettingRole::OtherTool
            | SettingRole::File
            | SettingRole::Directories
            | SettingRole::Libraries
            | SettingRole::Hooks
            | SettingRole::Repository
            | SettingRole::WorkTree => true,
        }
    }

    /// Returns whether git runs only programs outside of work trees to reach an address.
    fn reaches(&self, address: &[u8]) -> bool {
        match local(address) {
            Some(LocalTarget::Command(command)) => self.surroundings.is_understood(&command),
            Some(LocalTarget::Path(_)) => true,
            None => {
                remote_helper(address).is_none_or(|helper| self.surroundings.is_understood(&helper))
            }
        }
    }

    /// Returns the variables with a command that is not understood.
    fn variables(&self) -> Vec<String> {
        let is_unclear = |name: &str, value: &[u8]| match (name, variable_role(name)) {
            ("LD_PRELOAD", _) => value
                .split(|byte| b": ".contains(byte))
                .any(|library| !library.is_empty() && !self.is_library_outside(library)),
            ("LESSOPEN", _) => {
                let marks = value.iter().take_while(|byte| b"|-".contains(byte)).count();
                !self.surroundings.is_understood(&value[marks..])
            }
            ("RUBYOPT", _) | (_, None) => false,
            (_, Some(role)) => !self.understands(role, name.as_bytes(), value),
        };
        let variables = self.surroundings.env.pairs();
        let unclear = variables.filter_map(|(name, value)| {
            let name = name.to_str()?;
            is_unclear(name, value.as_encoded_bytes()).then(|| name.to_owned())
        });
        unclear.collect()
    }

    /// Returns whether a library is loaded from outside of the writable directories. One without a `/` is of the system.
    fn is_library_outside(&self, library: &[u8]) -> bool {
        let path = as_path(library);
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        let mut writable = self.surroundings.writable.iter();
        let is_inside = writable.any(|one| real.starts_with(one) || path.starts_with(one));
        !library.contains(&b'/') || library.starts_with(b"/") && !is_inside
    }
}

/// Returns the hooks of a repository. What they run is not looked at, except for those of git-lfs.
fn hooks(
    repository: &Repository,
    trees: &WorkTrees,
    entries: &[&Entry],
    settings: &Settings,
) -> BTreeSet<String> {
    let named = entries
        .iter()
        .filter(|entry| role(&entry.key) == Some(SettingRole::Hooks));
    let bases = || trees.tops.iter().chain([&repository.git_dir]);
    let named = named
        .flat_map(|entry| bases().filter_map(|base| path_in(&entry.value, base, &settings.env)));
    let directories: BTreeSet<PathBuf> =
        named.chain([repository.common_dir.join("hooks")]).collect();
    let mut found = BTreeSet::new();
    for directory in directories {
        let is_run = |name: &&&str| is_unclear_hook(&directory.join(name));
        let of_directory = HOOKS.iter().filter(is_run);
        found.extend(of_directory.map(|name| format!("hook {name}")));
    }
    found
}

fn is_unclear_hook(hook: &Path) -> bool {
    let is_program = hook
        .metadata()
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0);
    is_program && !is_of_lfs(hook)
}

/// Returns whether a hook consists of the lines that git-lfs writes.
fn is_of_lfs(hook: &Path) -> bool {
    let Some(name) = hook.file_name() else {
        return false;
    };
    let call = [b"git lfs ", name.as_bytes(), b" \"$@\""].concat();
    let is_known = |line: &[u8]| {
        let has_message = |start: &[u8]| {
            line.strip_prefix(start)
                .and_then(|rest| rest.strip_suffix(b"\"; exit 2; }"))
                .is_some_and(|message| {
                    let message = message.strip_prefix(b"\\n").unwrap_or(message);
                    let message = String::from_utf8_lossy(message).replace("\\n", " ");
                    let message = message
                        .replace("\\\"", " ")
                        .replace("'\"$(git config core.hookspath)\"'", "");
                    !message.contains(['"', '$', '`', '\\'])
                })
        };
        line.is_empty()
            || line.starts_with(b"#")
            || line == call
            || has_message(b"command -v git-lfs >/dev/null 2>&1 || { echo >&2 \"")
            || has_message(b"command -v git-lfs >/dev/null 2>&1 || { printf >&2 \"")
    };
    let text = crucible_host::fs::read_regular_up_to(hook, LFS_HOOK_BYTES);
    let is_shell = |text: &[u8]| text.starts_with(b"#!/bin/sh\n");
    text.is_ok_and(|text| is_shell(&text) && text.split(|byte| *byte == b'\n').all(is_known))
}
