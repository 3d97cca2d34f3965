//! Asking a program for its version, with every isolation layer that this machine offers.
//!
//! A program is started once, with `--version` and nothing else: an empty input, no terminal, no network, no key in
//! its environment, a private home. What it prints is bounded, and its first line is taken, without what a terminal
//! would act upon. The strength that the user chose for gates does not matter here: a question for a version is worth
//! no risk, so the strongest available isolation is used, and the answer says what it was.
//!
//! What always holds: no more than [`TIMEOUT`] passes before the program is asked to end; whatever it does becomes a
//! value, and nothing of it is left.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crucible_model::{ByteLimit, is_hidden, single_spaced};

use crate::completed::{Completed, End, FORBIDDEN_SIGNAL};
use crate::environment::{base_env, toolchain_env};
use crate::error::{PathProblem, SandboxError};
use crate::identity::{CONFINED_HOME, Identity};
use crate::layers::IsolationLevel;
use crate::sandbox::Sandbox;
use crate::spawn::{
    Cap, Confinement, Limits, Network, Profile, Resources, Spawn, Strength, SyscallClass,
};

/// How long a program may take to tell its version.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How long it may take to end when it did not.
const GRACE: Duration = Duration::from_secs(1);
/// What is kept of each of its streams.
const KEPT: ByteLimit = ByteLimit(16 << 10);
/// A program that prints more is ended.
const RUNAWAY: ByteLimit = ByteLimit(1 << 20);
/// What its private places hold.
const ROOM: u64 = 256 << 20;
/// The longest line that is shown.
const LINE: usize = 100;
/// Where programs of Node.js find what they are made of.
const NODE_MODULES: &str = "node_modules";

/// What a program answered when it was asked for its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionOutput {
    /// The first line it printed, cleaned, at most 100 characters.
    pub line: String,
    /// The number in that line, where there is one.
    pub number: Option<String>,
    /// The isolation that was in force.
    pub isolation: IsolationLevel,
}

/// Why a program did not report its version.
#[derive(Debug, thiserror::Error)]
pub enum NoVersion {
    /// It exited with 0 and printed nothing.
    #[error("it printed nothing when asked for its version")]
    Silent,
    /// It ended with an error.
    #[error("it ended with exit code {code} when asked for its version{}", stderr_suffix(.line))]
    Failed {
        /// The exit code.
        code: i32,
        /// The first line it printed, cleaned; empty if it printed nothing.
        line: String,
    },
    /// It was ended by a signal.
    #[error("it was ended by signal {signal} when asked for its version")]
    Signalled {
        /// The number of the signal.
        signal: i32,
    },
    /// It did not end by itself in time.
    #[error("it did not print its version within {} s and was killed", TIMEOUT.as_secs())]
    TimedOut,
    /// It printed more than a version needs.
    #[error("its version output exceeded the limit, and it was killed")]
    Endless,
    /// It wrote more than its private places hold.
    #[error("it wrote more than {} MiB when asked for its version and was ended", ROOM >> 20)]
    WroteTooMuch,
    /// It was not started.
    #[error(transparent)]
    NotRun(#[from] SandboxError),
}

impl Sandbox {
    /// Asks a program, named by the path that was found for it, for its version.
    ///
    /// # Errors
    ///
    /// [`NoVersion`] when it does not tell; the program may be of use all the same.
    pub async fn version_of(&self, program: &Path) -> Result<VersionOutput, NoVersion> {
        let completed = match self
            .run(self.question(program, surroundings(program)))
            .await
        {
            // Its directory is one that the sandbox hides whole, such as a home.
            Err(SandboxError::WorkingDirectory {
                problem: PathProblem::Hidden,
                ..
            }) => self.run(self.question(program, PathBuf::from("/"))).await?,
            result => result?,
        };
        read(&completed)
    }

    fn question(&self, program: &Path, cwd: PathBuf) -> Spawn {
        let mut env = base_env(self.env());
        env.extend(toolchain_env(self.env()));
        env.push(("HOME".into(), CONFINED_HOME.into()));
        let resources = Resources {
            file_size: Cap::At(ROOM),
            disk: Cap::At(ROOM),
            ..Resources::DEFAULT
        };
        let limits = Limits {
            stdout: KEPT,
            stderr: KEPT,
            runaway: RUNAWAY,
            grace: GRACE,
            resources,
            ..Limits::new(TIMEOUT)
        };
        let profile = Profile {
            strength: Strength::BestEffort,
            writable: Vec::new(),
            masked: Vec::new(),
            read_only: Vec::new(),
            mounts: Vec::new(),
            network: Network::None,
            calls: SyscallClass::Tools,
            identity: Identity::default(),
        };
        Spawn {
            args: vec!["--version".into()],
            env,
            confinement: Confinement::Confined(profile),
            ..Spawn::new(program, cwd, limits)
        }
    }
}

/// The directory that a program is asked in, which the sandbox shows: the one that it lies in, or the whole of the
/// modules that it is one of.
fn surroundings(program: &Path) -> PathBuf {
    let real = program.canonicalize();
    let directory = real.as_ref().ok().and_then(|real| {
        let modules = real
            .ancestors()
            .filter(|place| place.file_name().is_some_and(|name| name == NODE_MODULES));
        modules.last().or_else(|| real.parent())
    });
    directory.unwrap_or(Path::new("/")).to_owned()
}

fn read(completed: &Completed) -> Result<VersionOutput, NoVersion> {
    let line =
        first_line(&completed.stdout.text()).or_else(|| first_line(&completed.stderr.text()));
    match (completed.end, line) {
        (End::Exited(0), Some(line)) => {
            let number = number_in(&line);
            Ok(VersionOutput {
                line,
                number,
                isolation: completed.receipt.level,
            })
        }
        (End::Exited(0), None) => Err(NoVersion::Silent),
        (End::Exited(code), line) => Err(NoVersion::Failed {
            code,
            line: line.unwrap_or_default(),
        }),
        (End::Signalled(signal), _) => Err(NoVersion::Signalled { signal }),
        (End::TimedOut, _) => Err(NoVersion::TimedOut),
        (End::OutputLimit, _) => Err(NoVersion::Endless),
        (End::DiskLimit, _) => Err(NoVersion::WroteTooMuch),
        (End::Forbidden, _) => Err(NoVersion::Signalled {
            signal: FORBIDDEN_SIGNAL,
        }),
    }
}

/// The first line with anything to see on it: without escape sequences, hidden characters and superfluous space, and
/// not longer than what is shown.
fn first_line(text: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let seen: String = without_sequences(line)
            .chars()
            .filter(|c| *c == '\t' || !is_hidden(*c))
            .collect();
        let short: String = single_spaced(&seen).chars().take(LINE).collect();
        (!short.is_empty()).then_some(short)
    })
}

/// A line without the sequences that terminals act upon: `ESC [` up to its final letter, `ESC ]` up to its end, `ESC`
/// and one character else.
fn without_sequences(line: &str) -> String {
    let mut plain_text = String::with_capacity(line.len());
    let mut rest = line.chars();
    while let Some(c) = rest.next() {
        if c != '\u{1b}' {
            plain_text.push(c);
            continue;
        }
        match rest.next() {
            Some('[') => while rest.next().is_some_and(|c| !('@'..='~').contains(&c)) {},
            Some(']') => while rest.next().is_some_and(|c| c != '\u{7}' && c != '\u{1b}') {},
            Some(_) | None => {}
        }
    }
    plain_text
}

/// The first word that looks like a version: two numbers with a dot between them, and what may follow.
fn number_in(line: &str) -> Option<String> {
    let words = line.split(|c: char| c.is_whitespace() || "(),;:\"'".contains(c));
    words
        .map(|word| {
            word.strip_prefix(['v', 'V'])
                .unwrap_or(word)
                .trim_end_matches('.')
        })
        .find_map(|word| {
            let (major, rest) = word.split_once('.')?;
            let is_number = !major.is_empty()
                && major.bytes().all(|byte| byte.is_ascii_digit())
                && rest.starts_with(|c: char| c.is_ascii_digit())
                && rest
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b".+-_~".contains(&byte));
            is_number.then(|| word.to_owned())
        })
}

fn stderr_suffix(line: &str) -> String {
    if line.is_empty() {
        String::new()
    } else {
        format!(": {line}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::completed::Captured;
    use crate::layers::{IsolationReceipt, RequestedConfinement};

    #[test]
    fn the_number_is_found_in_what_programs_say() {
        for (line, number) in [
            ("git version 2.39.5", Some("2.39.5")),
            ("git version 2.39.3 (Apple Git-146)", Some("2.39.3")),
            (
                "gh version 2.23.0 (2023-02-27 Debian 2.23.0+dfsg1-1)",
                Some("2.23.0"),
            ),
            ("2.1.330 (Claude Code)", Some("2.1.330")),
            ("codex-cli 0.169.0", Some("0.169.0")),
            ("mypy 1.11.1 (compiled: yes)", Some("1.11.1")),
            ("v22.3.0", Some("22.3.0")),
            (
                "0.61.0-nightly.20260101+abc",
                Some("0.61.0-nightly.20260101+abc"),
            ),
            ("Tool 7.", None),
            ("Password:", None),
            ("7", None),
            ("see https://example.invalid/1.2", None),
            (".1.2 ..", None),
            ("", None),
        ] {
            assert_eq!(number_in(line).as_deref(), number, "{line}");
        }
    }

    #[test]
    fn line_is_sanitized_and_truncated() {
        let hostile = "\n \u{1b}[2J\n\u{1b}]0;title\u{7}\u{1b}[1;31mtool\u{1b}[0m\t\u{202e}1.2\u{9b}.3\u{200b}\r\nmore";
        assert_eq!(first_line(hostile).as_deref(), Some("tool 1.2.3"));
        assert_eq!(first_line(" \u{1b}[ \n\u{1b}").as_deref(), None);
        assert_eq!(
            first_line(&"ż".repeat(5000)).map(|line| line.chars().count()),
            Some(LINE)
        );
    }

    #[test]
    fn printing_and_writing_limits_are_distinguished() {
        let ended = |end| {
            let receipt = IsolationReceipt::new(
                RequestedConfinement::BestEffort,
                Network::None,
                Vec::new(),
                Vec::new(),
            );
            let stdout = Captured {
                bytes: b"1.0".to_vec(),
                ..Captured::default()
            };
            let stderr = Captured::default();
            read(&Completed {
                end,
                stdout,
                stderr,
                duration: Duration::ZERO,
                receipt,
                stopped: None,
                ran_out_of_memory: false,
                contacts: Vec::new(),
            })
            .unwrap_err()
            .to_string()
        };
        assert!(ended(End::OutputLimit).starts_with("its version output exceeded the limit"));
        assert!(ended(End::DiskLimit).starts_with("it wrote more than 256 MiB"));
    }

    #[test]
    fn multi_module_program_sees_its_modules() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        let inner = root.join("lib/node_modules/a/node_modules/b");
        crucible_host::fs::create_dir_all(&inner).unwrap();
        for file in [inner.join("b.js"), root.join("lib/plain")] {
            crucible_host::fs::write_atomic(&file, b"").unwrap();
        }
        assert_eq!(
            surroundings(&inner.join("b.js")),
            root.join("lib/node_modules")
        );
        assert_eq!(surroundings(&root.join("lib/plain")), root.join("lib"));
        assert_eq!(surroundings(&root.join("missing")), Path::new("/"));
    }
}
