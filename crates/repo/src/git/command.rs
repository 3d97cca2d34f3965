//! The one place where a call of git is built.
//!
//! Settings go through `GIT_CONFIG_COUNT`, `GIT_CONFIG_KEY_n` and `GIT_CONFIG_VALUE_n` instead of `-c`: they stand
//! above every file, and a name with `=` in it cannot be cut in the wrong place. The environment is built from
//! nothing, so no `GIT_*` variable of ours or the user's reaches git.
//!
//! `safe.directory=*` is among the settings: git refuses the repositories of other users because it would run what
//! their configuration names. Here nothing of that runs, and a repository on a mounted volume often has a foreign
//! owner.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crucible_host::env::Environment;
use crucible_model::ByteLimit;
use crucible_sandbox::{
    Completed, Confinement, End, Extent, FORBIDDEN_SIGNAL, Keep, Limits, Redaction, Sandbox, Spawn,
    Stdin,
};

use super::locate::GitLocation;
use crate::error::RepoError;
use crate::oid::Oid;

/// Time limit of one call. Reading a large work tree from a cold disk takes minutes at most.
const TIMEOUT: Duration = Duration::from_secs(300);

/// Default output limit of a call: the list of a million files.
const MAX_OUTPUT: u64 = 256 << 20;

/// What holds for every call. Each line switches off something that a repository's configuration could start,
/// hide or change.
const SETTINGS: [(&str, &str); 44] = [
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.untrackedCache", "false"),
    ("core.splitIndex", "false"),
    ("core.checkStat", "default"),
    ("core.trustctime", "true"),
    ("core.ignoreStat", "false"),
    ("core.commitGraph", "false"),
    ("core.attributesFile", "/dev/null"),
    ("attr.tree", ""),
    ("core.excludesFile", "/dev/null"),
    ("core.protectHFS", "true"),
    ("core.protectNTFS", "true"),
    ("core.safecrlf", "false"),
    ("core.alternateRefsCommand", "false"),
    ("core.askPass", ""),
    ("core.editor", "false"),
    ("core.pager", "cat"),
    ("core.sshCommand", "false"),
    ("core.gitProxy", ""),
    ("core.fsync", "none"),
    // A killed process may leave a git that still holds a ref lock for a moment.
    ("core.filesRefLockTimeout", "5000"),
    ("apply.whitespace", "nowarn"),
    ("apply.ignoreWhitespace", "no"),
    ("color.ui", "false"),
    ("commit.gpgSign", "false"),
    ("tag.gpgSign", "false"),
    ("gpg.program", "false"),
    ("gpg.ssh.program", "false"),
    ("log.showSignature", "false"),
    ("credential.helper", ""),
    ("diff.external", ""),
    ("diff.renames", "false"),
    ("diff.orderFile", "/dev/null"),
    ("status.renames", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("i18n.commitEncoding", "UTF-8"),
    ("i18n.logOutputEncoding", "UTF-8"),
    ("init.templateDir", ""),
    ("protocol.allow", "never"),
    ("submodule.recurse", "false"),
    ("safe.directory", "*"),
    ("safe.bareRepository", "all"),
];

/// Fixed environment variables of every call, besides `PATH`, the place and the settings.
const ENVIRONMENT: [(&str, &str); 20] = [
    ("HOME", "/nonexistent"),
    ("LC_ALL", "C"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_SYSTEM", "/dev/null"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    // A pathspec of ours is a path: `:(top)`, `*` and `!` in a name mean themselves.
    ("GIT_LITERAL_PATHSPECS", "1"),
    // A replaced or grafted object would make a tree say something else than its name.
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_GRAFT_FILE", "/dev/null"),
    // An object that a partial clone lacks is missing; it is not fetched by whatever the remote names.
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_ALLOW_PROTOCOL", "none"),
    ("GIT_PROTOCOL_FROM_USER", "0"),
    ("GIT_ADVICE", "0"),
    ("GIT_ASKPASS", ""),
    ("SSH_ASKPASS", ""),
    ("GIT_EDITOR", "false"),
    ("GIT_SEQUENCE_EDITOR", "false"),
    ("GIT_PAGER", "cat"),
];

/// Where git is, and who runs it.
#[derive(Debug, Clone)]
pub(crate) struct Runner {
    sandbox: Arc<Sandbox>,
    program: PathBuf,
    path: OsString,
}

/// A call: its arguments, input and options.
#[derive(Debug, Clone, Default)]
pub(crate) struct Call {
    words: Vec<OsString>,
    stdin: Option<Vec<u8>>,
    env: Vec<(OsString, OsString)>,
    without: Vec<&'static str>,
    settings: Vec<(&'static str, &'static str)>,
    max_output: Option<u64>,
    timeout: Option<Duration>,
}

impl Call {
    /// A call of git with these words after `git`.
    pub(crate) fn new<W: Into<OsString>>(words: impl IntoIterator<Item = W>) -> Self {
        Self {
            words: words.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }

    /// The same call, reading `bytes`.
    pub(crate) fn reading(mut self, bytes: Vec<u8>) -> Self {
        self.stdin = Some(bytes);
        self
    }

    /// The same call with one more variable.
    pub(crate) fn with_env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// The same call with more variables.
    pub(crate) fn with_envs(mut self, pairs: &[(OsString, OsString)]) -> Self {
        self.env.extend_from_slice(pairs);
        self
    }

    /// The same call without a variable that every other call has.
    pub(crate) fn without_env(mut self, name: &'static str) -> Self {
        self.without.push(name);
        self
    }

    /// Sets whether what the call writes is flushed to disk.
    pub(crate) fn flushing(self, flush: Flush) -> Self {
        match flush {
            Flush::Yes => self.with_setting("core.fsync", "all"),
            // Squeezing objects that do not live long costs more than it saves.
            Flush::No => self.with_setting("core.looseCompression", "0"),
        }
    }

    /// The same call with one more setting.
    pub(crate) fn with_setting(mut self, key: &'static str, value: &'static str) -> Self {
        self.settings.push((key, value));
        self
    }

    /// The same call with another deadline.
    pub(crate) fn with_timeout(mut self, time: Duration) -> Self {
        self.timeout = Some(time);
        self
    }

    /// The same call, allowed to print at most this much.
    pub(crate) fn with_max_output(mut self, bytes: ByteLimit) -> Self {
        self.max_output = Some(bytes.0);
        self
    }
}

/// Whether what a call writes must survive a machine crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flush {
    /// It is the user's repository.
    Yes,
    /// It is thrown away soon.
    No,
}

/// What a call that ended by itself printed.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
    command: String,
}

impl Output {
    /// The error of a call that should have succeeded.
    pub(crate) fn into_error(self) -> RepoError {
        let stderr = self.stderr.chars().take(2000).collect();
        RepoError::GitFailed {
            command: self.command,
            code: format!("exit {}", self.code),
            stderr,
        }
    }

    /// Returns the error for unexpected output of this call.
    pub(crate) fn unreadable(&self) -> RepoError {
        RepoError::Unreadable {
            command: self.command.clone(),
        }
    }

    /// Returns the NUL-terminated records of the output.
    pub(crate) fn records(&self) -> impl Iterator<Item = &[u8]> {
        self.stdout
            .split(|byte| *byte == 0)
            .filter(|record| !record.is_empty())
    }
}

/// Bytes as git prints them, as a path.
pub(crate) fn as_path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

impl Runner {
    /// Finds git on the user's `PATH`.
    pub(crate) fn find(sandbox: Arc<Sandbox>, env: &Environment) -> Result<Self, RepoError> {
        let program = env.find_program("git").map_err(|_| RepoError::GitMissing {
            searched: env.path_dirs(),
        })?;
        Ok(Self {
            sandbox,
            program,
            path: env.get_os("PATH").unwrap_or_default().to_owned(),
        })
    }

    /// Runs git in `cwd`, for the repository at `place` if given.
    pub(crate) async fn run(
        &self,
        cwd: &Path,
        place: Option<&GitLocation>,
        neutral: &[(OsString, OsString)],
        call: Call,
    ) -> Result<Output, RepoError> {
        let command = describe(&call.words);
        let max_output = call.max_output.unwrap_or(MAX_OUTPUT);
        let timeout = call.timeout.unwrap_or(TIMEOUT);
        let spawn = self.build(cwd, place, neutral, call);
        let completed = self.sandbox.run(spawn).await?;
        finish(completed, command, max_output, timeout)
    }

    /// What git says about its version.
    pub(crate) async fn version(&self, cwd: &Path) -> Result<String, RepoError> {
        let output = self.run(cwd, None, &[], Call::new(["version"])).await?;
        Ok(String::from_utf8_lossy(output.stdout.trim_ascii()).into_owned())
    }

    /// Builds every call of git in the project.
    fn build(
        &self,
        cwd: &Path,
        place: Option<&GitLocation>,
        neutral: &[(OsString, OsString)],
        call: Call,
    ) -> Spawn {
        let pair = |(name, value): &(&str, &str)| (OsString::from(name), OsString::from(value));
        let mut env: Vec<(OsString, OsString)> = ENVIRONMENT.iter().map(pair).collect();
        env.push(("PATH".into(), self.path.clone()));
        if let Some(place) = place {
            env.push(("GIT_DIR".into(), place.git_dir.clone().into()));
            env.push(("GIT_WORK_TREE".into(), place.top.clone().into()));
        } else {
            // Whatever is not there must not be found further up.
            env.push(("GIT_CEILING_DIRECTORIES".into(), "/".into()));
        }
        let settings = SETTINGS.iter().map(pair).chain(neutral.iter().cloned());
        let settings: Vec<_> = settings.chain(call.settings.iter().map(pair)).collect();
        env.push(("GIT_CONFIG_COUNT".into(), settings.len().to_string().into()));
        for (index, (key, value)) in settings.into_iter().enumerate() {
            env.push((format!("GIT_CONFIG_KEY_{index}").into(), key));
            env.push((format!("GIT_CONFIG_VALUE_{index}").into(), value));
        }
        env.retain(|(name, _)| !call.without.iter().any(|unwanted| name == unwanted));
        // Later pairs win: a call may set its own index, objects or dates.
        for (name, value) in call.env {
            env.retain(|(known, _)| *known != name);
            env.push((name, value));
        }
        let max_output = call.max_output.unwrap_or(MAX_OUTPUT);
        let limits = Limits {
            stdout: ByteLimit(max_output),
            stderr: ByteLimit(64 << 10),
            runaway: ByteLimit(max_output.saturating_mul(2).max(1 << 20)),
            ..Limits::new(call.timeout.unwrap_or(TIMEOUT))
        };
        Spawn {
            args: [OsString::from("--no-pager")]
                .into_iter()
                .chain(call.words)
                .collect(),
            env,
            stdin: call.stdin.map_or(Stdin::Empty, Stdin::Bytes),
            confinement: Confinement::Trusted,
            keep: Keep::Head,
            // Redact before cutting: half a secret is not recognised.
            redaction: Redaction::OnlyStderr,
            ..Spawn::new(&self.program, cwd, limits)
        }
    }
}

fn finish(
    completed: Completed,
    command: String,
    max_output: u64,
    timeout: Duration,
) -> Result<Output, RepoError> {
    let stderr = completed.stderr.text().trim().to_owned();
    match completed.end {
        End::Exited(code) if completed.stdout.extent == Extent::Whole => Ok(Output {
            code,
            stdout: completed.stdout.bytes,
            stderr,
            command,
        }),
        End::Exited(_) | End::OutputLimit | End::DiskLimit => Err(RepoError::TooLarge {
            what: format!("the output of `git {command}`"),
            limit: max_output,
        }),
        End::Signalled(signal) => Err(RepoError::GitFailed {
            command,
            code: format!("signal {signal}"),
            stderr,
        }),
        End::Forbidden => Err(RepoError::GitFailed {
            command,
            code: format!("signal {FORBIDDEN_SIGNAL}"),
            stderr,
        }),
        End::TimedOut => Err(RepoError::TimedOut {
            command,
            after: timeout,
        }),
    }
}

/// The words of a call, for people: no object names, no file names.
fn describe(words: &[OsString]) -> String {
    let is_plain = |word: &&str| Oid::from_ascii(word.as_bytes()).is_none() && !word.contains('/');
    words
        .iter()
        .take(4)
        .filter_map(|word| word.to_str())
        .filter(is_plain)
        .collect::<Vec<_>>()
        .join(" ")
}
