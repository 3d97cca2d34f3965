//! The gates that the command line and the settings name.
//!
//! `--test` replaces the configured gates, and those replace the detected ones. Invariants: a gate's variables pass
//! [`check_variable`] and hold no secret, because a run records them; its directory is inside the repository.

use std::path::Path;
use std::time::Duration;

use crucible_host::words::split_words;
use crucible_model::{ExitStatus, Failure, RepoPath};
use crucible_secrets::Scanner;
use crucible_settings::{GateEntry, GateTier, Settings};
use crucible_verify::{GateCanary, GateLevel, GateSpec, check_variable};

use crate::contract::required_gates;
use crate::found::{detect_gates, no_gates_error, path_inside};

/// The sources of gates besides the settings.
pub struct GateChoice<'c> {
    /// The commands of `--test`.
    pub tests: &'c [String],
    /// The directory that the command works in; absent for the repository's top.
    pub directory: Option<RepoPath>,
}

impl<'c> GateChoice<'c> {
    /// Creates the choice of a command that works in `start`, inside the repository at `top`.
    #[must_use]
    pub fn new(tests: &'c [String], top: Option<&Path>, start: &Path) -> Self {
        Self {
            tests,
            directory: top.and_then(|top| path_inside(top, start)),
        }
    }

    /// Returns the gates of `--test`, else the configured ones; empty if neither names any.
    ///
    /// # Errors
    ///
    /// Fails if a command, a variable or another value of a gate is not allowed.
    pub fn named_gates(&self, config: &Settings) -> Result<Vec<GateSpec>, Failure> {
        if self.tests.is_empty() {
            configured_gates(config)
        } else {
            self.given_gates()
        }
    }

    /// Returns the named gates, else those that are detected in the repository at `top`.
    ///
    /// # Errors
    ///
    /// Fails as [`GateChoice::named`] does, or if no gate is detected.
    pub fn all(&self, config: &Settings, top: &Path) -> Result<Vec<GateSpec>, Failure> {
        let mut named = self.named_gates(config)?;
        if !named.is_empty() {
            // `crucible init` writes detected gates.
            let found = detect_gates(top, self.directory.as_ref(), default_timeout());
            for gate in &mut named {
                let is_same = |found: &&GateSpec| found.command == gate.command;
                let same = found.iter().flatten().find(is_same);
                gate.builds = same.map(|found| found.builds.clone()).unwrap_or_default();
            }
            return Ok(named);
        }
        let found = detect_gates(top, self.directory.as_ref(), default_timeout())?;
        if found.is_empty() {
            return Err(no_gates_error(self.directory.as_ref()).into());
        }
        Ok(found)
    }

    fn given_gates(&self) -> Result<Vec<GateSpec>, Failure> {
        let mut gates = Vec::new();
        for (index, text) in self.tests.iter().enumerate() {
            let origin = format!("--test {text:?}");
            refuse_secret(&origin, text)?;
            let mut words = command(&origin, text)?;
            // As in front of a command of a shell.
            let mut env = Vec::new();
            while let Some((name, value)) = words.first().and_then(|word| assignment(word)) {
                set(&origin, &name, &value)?;
                env.push((name, value));
                words.remove(0);
            }
            if words.is_empty() {
                return Err(Failure::usage(format!("{origin} names no command"))
                    .hint("For example: --test \"python3 -m pytest -q\""));
            }
            let name = if index == 0 {
                "test".to_owned()
            } else {
                format!("test-{}", index + 1)
            };
            let id = name.parse().map_err(usage)?;
            let spec = GateSpec::new(id, words, default_timeout(), "--test");
            gates.push(GateSpec {
                env: env.into_iter().collect(),
                cwd: self.directory.clone(),
                ..spec
            });
        }
        Ok(gates)
    }
}

/// Returns the time limit of a gate that sets none.
#[must_use]
pub(crate) fn default_timeout() -> Duration {
    Duration::from_secs(GateEntry::default().timeout_s)
}

/// Returns the gates that the settings name.
///
/// # Errors
///
/// Fails if a value is not allowed.
pub(crate) fn configured_gates(config: &Settings) -> Result<Vec<GateSpec>, Failure> {
    let mut gates = Vec::new();
    for (name, entry) in &config.gates {
        let key = |field: &str| format!("gates.{name}.{field}");
        let command = entry.command.clone();
        if command.is_empty() {
            return Err(Failure::usage(format!("gates.{name} has no command")).hint(
                "Write it as a list, one text for each argument: command = [\"make\", \"test\"]",
            ));
        }
        if required_gates().any(|gate| gate == *name) {
            return Err(Failure::usage(format!(
                "gates.{name}: this name is one of Crucible's own gates"
            ))
            .hint("Give the gate another name, such as `tests`."));
        }
        let timeout = Duration::from_secs(entry.timeout_s.max(1));
        let source = config
            .source(&key("command"))
            .map(ToString::to_string)
            .unwrap_or_default();
        let level = match entry.level.get() {
            Ok(GateTier::Lite) => GateLevel::Lite,
            Ok(GateTier::Full) => GateLevel::Full,
            Err(other) => {
                return Err(Failure::usage(format!("{} is {other:?}", key("level")))
                    .hint("It takes lite (every attempt is tried with it) or full (`crucible run land` runs it before it commits)."));
            }
        };
        if let Err(input) = entry.network.get() {
            return Err(Failure::usage(format!("{} is {input:?}", key("network")))
                .hint("It takes loopback or none: a gate reaches its own 127.0.0.1 and no other network."));
        }
        for (variable, value) in &entry.env {
            set(&key("env"), variable, value)?;
        }
        let setup = entry.setup.iter().map(|text| {
            let words = self::command(&key("setup"), text)?;
            if words.is_empty() {
                return Err(Failure::usage(format!(
                    "{} holds an empty command",
                    key("setup")
                )));
            }
            Ok(words)
        });
        let spec = GateSpec::new(name.parse().map_err(usage)?, command, timeout, source);
        let (setup, cwd) = (
            setup.collect::<Result<_, _>>()?,
            directory(&key("cwd"), entry.cwd.as_deref())?,
        );
        let canary = if entry.canary {
            GateCanary::On
        } else {
            GateCanary::Off
        };
        gates.push(GateSpec {
            level,
            env: entry.env.clone(),
            cwd,
            setup,
            canary,
            ..spec
        });
    }
    if !gates.is_empty() && gates.iter().all(|gate| !gate.level.is_lite()) {
        return Err(
            Failure::usage("no gate has level lite, so no change could be verified")
                .hint("Give one of [gates.*] level = \"lite\"."),
        );
    }
    Ok(gates)
}

/// The directory that a setting names; nothing for the repository's top.
fn directory(key: &str, named: Option<&str>) -> Result<Option<RepoPath>, Failure> {
    let text = named
        .unwrap_or_default()
        .trim_start_matches("./")
        .trim_end_matches('/');
    if text.is_empty() || text == "." {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|error| {
        Failure::usage(format!("{key} is {text:?}: {error}"))
            .hint("Name a directory relative to the repository's top, such as \"packages/web\".")
    })
}

fn command(origin: &str, text: &str) -> Result<Vec<String>, Failure> {
    split_words(text).map_err(|problem| {
        Failure::usage(format!("{origin}: {problem}"))
            .hint("Commands run without a shell; to use one, write: sh -c 'a && b'")
    })
}

/// `NAME=value`, as it stands in front of a command.
fn assignment(word: &str) -> Option<(String, String)> {
    let (name, value) = word.split_once('=')?;
    let is_name = !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_name.then(|| (name.to_owned(), value.to_owned()))
}

/// Checks a variable of a gate.
fn set(origin: &str, name: &str, value: &str) -> Result<(), Failure> {
    check_variable(name, value).map_err(|error| Failure::usage(format!("{origin}: {error}")))?;
    refuse_secret(&format!("{origin}: {name}"), &format!("{name}={value}"))
}

/// What a gate is set to is recorded with the run, and what it prints may reach a model.
fn refuse_secret(origin: &str, text: &str) -> Result<(), Failure> {
    match Scanner::builtin().scan(text.as_bytes()).first() {
        None => Ok(()),
        Some(found) => {
            let message = format!("{origin} looks like a secret ({})", found.rule);
            Err(Failure::new(ExitStatus::SecretDetected, message).hint(
                "A run records its gates. Use a value made for tests, or have a script read it from a file.",
            ))
        }
    }
}

fn usage(error: impl std::fmt::Display) -> Failure {
    Failure::usage(error.to_string())
}

/// Returns the error of a command that needs gates outside of a repository.
#[must_use]
pub fn no_repository(start: &Path) -> Failure {
    Failure::usage(format!("{} is not in a git repository", start.display()))
        .hint("Create a repository with `git init`, and commit; gates run on a copy of its files.")
}
