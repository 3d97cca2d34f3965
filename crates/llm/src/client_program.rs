//! Runs a provider's own command line client: one process per call, text in and text out.
//!
//! A call gets its prompt on standard input, an empty working directory, a directory for temporary files,
//! and an empty home unless the user's own login is used. Clients send instruction files from their
//! working directory, and one leaves its whole prompt among its temporary files on failure. The
//! environment is passed on, keys included, except for variables that the provider removes; variables
//! that the provider sets take precedence. If the settings name a key, only that key is passed on,
//! because the server may not belong to the owner of the other keys. The deadline kills the process and
//! its children.
//!
//! Invariants: these directories are deleted after the call. Output is bounded. At most the last 2 KiB of
//! standard error are shown, without secrets, keys and the user's home. Nothing of it is shown once the
//! provider may have been called, because clients then quote the server. The provider, not the exit code,
//! decides from the output whether the call succeeded.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crucible_host::env::Environment;
use crucible_host::fs::{self, FsError};
use crucible_model::{ByteLimit, Secret};
use crucible_sandbox::{
    End, Extent, FORBIDDEN_SIGNAL, Keep, Limits, Redaction, Sandbox, SandboxError, Spawn, Stdin,
};
use crucible_secrets::{ProvidedValues, Scanner};
use serde_json::Value;

use crate::context::Context;
use crate::error::{AnswerFault, Fault, LlmError};
use crate::http_fault::{CallTarget, CallTime};
use crate::invocation::{LlmInvocation, LlmResult, Role};
use crate::provider_settings::{Login, ProviderSettings, named_key, required};

/// The tokens that a client may add to a request: date, system and directory. A few hundred were
/// observed.
pub(crate) const ADDED_TOKENS: u64 = 4096;

/// The advice for a failure that the program does not explain.
pub(crate) const AGAIN: &str = "try again; if it persists, run the program by hand";

/// The system prompt for calls without one; a client would otherwise use its own, which is made for
/// tools.
const PLAIN_SYSTEM: &str = "Answer with text only.";

/// How long a call's directory is kept beyond twice its time limit.
const STALE: Duration = Duration::from_secs(3600);

/// The bytes of standard error that are kept.
const LAST_WORDS: usize = 2048;

const MAX_STDOUT: ByteLimit = ByteLimit(32 << 20);
const MAX_STDERR: ByteLimit = ByteLimit(64 << 10);

/// Higher exit codes mean a signal.
const LAST_OWN_CODE: i32 = 128;

/// Variables that lead a client out of an isolated home.
const NOT_PASSED_ISOLATED: [&str; 4] = [
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
];

/// A client program that was found, and the environment of its calls.
pub(crate) struct ClientProgram {
    provider: &'static str,
    program: PathBuf,
    login: Login,
    key: Option<Secret>,
    /// The variables in which the program looks for keys, if it must find only ours.
    closed_keys: &'static [&'static str],
    /// Every key that the program may know, for redacting its output.
    known_keys: ProvidedValues,
    env: Environment,
    sandbox: Arc<Sandbox>,
    temporary: PathBuf,
    cap: Duration,
}

/// The directories of one call.
pub(crate) struct Places {
    /// The working directory, empty except for the provider's files.
    pub(crate) work: PathBuf,
    /// The home directory of an isolated call, likewise; with the user's own login only a directory for
    /// files.
    pub(crate) home: PathBuf,
    temporary: PathBuf,
}

/// The provider's part of one call.
pub(crate) struct ProgramCall {
    /// The arguments after the program's name.
    pub(crate) args: Vec<OsString>,
    /// Variables to set, overriding the environment.
    pub(crate) set: Vec<(OsString, OsString)>,
    /// Variables to remove.
    pub(crate) left_out: &'static [&'static str],
    /// Files to create in the directories of the call, with their content.
    pub(crate) files: Vec<(PathBuf, Vec<u8>)>,
    /// The standard input.
    pub(crate) stdin: Vec<u8>,
}

/// The result of a program that ended by itself.
pub(crate) struct Ended {
    /// Its exit code.
    pub(crate) code: i32,
    /// Its complete standard output.
    pub(crate) stdout: Vec<u8>,
    /// The end of standard error, for parsing only; never shown.
    pub(crate) complaint: String,
    /// The end of standard error for display: redacted, at most 2 KiB.
    last_words: String,
}

impl Ended {
    /// Adds the end of standard error to an error, if the program failed without other output. Text after
    /// an answer, or of an interrupted one, may quote that answer.
    pub(crate) fn explain(&self, error: LlmError) -> LlmError {
        let failed = (1..=LAST_OWN_CODE).contains(&self.code);
        if failed && self.stdout.trim_ascii().is_empty() {
            with_stderr(error, &self.last_words)
        } else {
            error
        }
    }
}

impl ClientProgram {
    /// Finds the program in the settings, and the key. `key_variables` are the names under which the program looks for keys.
    ///
    /// # Errors
    ///
    /// [`LlmError::Misconfiguration`] with the searched places and how to install it, or with the variable without a key.
    pub(crate) fn find(
        provider: &'static str,
        install: &str,
        key_variables: &'static [&'static str],
        settings: &ProviderSettings,
        context: &Context,
    ) -> Result<Self, LlmError> {
        let requested_path = required(provider, "binary", settings.binary.as_deref())?;
        let program = context.env.find_program(requested_path).map_err(|error| {
            LlmError::Misconfiguration(Fault::new(
                provider,
                "",
                format!("the program {requested_path:?} cannot be used: {error}"),
                format!("install it with `{install}`, or set [llm.{provider}] binary"),
            ))
        })?;
        let key = match (settings.login, &settings.api_key_env) {
            (Login::Isolated, Some(variable)) => Some(named_key(provider, variable, &context.env)?),
            (Login::Isolated, None) | (Login::User, _) => None,
        };
        let closed_keys = if key.is_some() { key_variables } else { &[] };
        // The program inherits other keys as well, and may print them.
        let inherited = context.env.pairs().filter(|(name, _)| names_a_secret(name));
        let inherited = inherited.filter_map(|(_, value)| value.to_str());
        let known: Vec<Secret> = inherited
            .map(|key| Secret::new(key.to_owned()))
            .chain(key.clone())
            .collect();
        Ok(Self {
            provider,
            program,
            login: settings.login,
            key,
            closed_keys,
            known_keys: ProvidedValues::new(&known),
            env: context.env.clone(),
            sandbox: Arc::clone(&context.sandbox),
            temporary: context.temporary.clone(),
            cap: context.cli_cap,
        })
    }

    /// The key in the settings; none with the user's own login.
    pub(crate) fn key(&self) -> Option<&Secret> {
        self.key.as_ref()
    }

    /// The login that the program uses.
    pub(crate) fn login(&self) -> Login {
        self.login
    }

    /// The time limit of a call.
    pub(crate) fn time(&self, inv: &LlmInvocation) -> CallTime {
        CallTime {
            call: inv.timeout,
            cap: self.cap,
        }
    }

    /// Makes one call, and waits for the program to end by itself.
    ///
    /// # Errors
    ///
    /// The error of a program that timed out, was killed by a signal, printed too much, or did not start.
    pub(crate) async fn run(
        &self,
        target: CallTarget<'_>,
        time: CallTime,
        call: impl FnOnce(&Places) -> ProgramCall,
    ) -> Result<Ended, LlmError> {
        let no_place = |error: FsError| {
            let next = "make room there, or set TMPDIR to another directory";
            LlmError::Misconfiguration(
                target.fault(self.env.without_home(&error.to_string()), next),
            )
        };
        let prefix = format!("crucible-{}-", self.provider);
        fs::create_dir_all(&self.temporary).map_err(no_place)?;
        // Left by a killed process: no call lasts longer than its cap.
        fs::remove_stale_directories(&self.temporary, &prefix, self.cap.saturating_mul(2) + STALE);
        let private = fs::temp_dir_in(&self.temporary, &prefix).map_err(no_place)?;
        let [work, home, temporary] = ["work", "home", "tmp"].map(|name| private.path().join(name));
        for place in [&work, &home, &temporary] {
            fs::create_dir_all(place).map_err(no_place)?;
        }
        let places = Places {
            work,
            home,
            temporary,
        };
        let ProgramCall {
            args,
            mut set,
            left_out,
            files,
            stdin,
        } = call(&places);
        set.push(("TMPDIR".into(), places.temporary.clone().into()));
        if self.login == Login::Isolated {
            set.push(("HOME".into(), places.home.clone().into()));
        }
        for (path, bytes) in files {
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent).map_err(no_place)?;
            }
            fs::write_atomic(&path, &bytes).map_err(no_place)?;
        }
        let mut limits = Limits::new(time.effective());
        limits.stdout = MAX_STDOUT;
        limits.stderr = MAX_STDERR;
        let spawn = Spawn {
            args,
            env: self.environment(set, left_out),
            stdin: Stdin::Bytes(stdin),
            keep: Keep::Tail,
            redaction: Redaction::Raw,
            ..Spawn::new(&self.program, &places.work, limits)
        };
        let completed = self
            .sandbox
            .run(spawn)
            .await
            .map_err(|error| self.not_run(target, &error))?;
        let complaint = completed.stderr.text().into_owned();
        let last_words = last_words(&complaint, &self.known_keys, &self.env);
        let code = match completed.end {
            End::TimedOut => return Err(target.timeout(time)),
            End::OutputLimit if completed.stdout.extent == Extent::Cut => {
                return Err(too_long(target));
            }
            End::OutputLimit => {
                return Err(
                    target.unreadable("the program wrote too much to standard error", AGAIN)
                );
            }
            End::DiskLimit => {
                return Err(target.unreadable("the program exceeded its disk limit", "try again"));
            }
            end @ (End::Signalled(_) | End::Forbidden) => {
                let signal = if let End::Signalled(signal) = end {
                    signal
                } else {
                    FORBIDDEN_SIGNAL
                };
                return Err(target.unreadable(
                    format!("the program was killed by signal {signal}"),
                    "try again",
                ));
            }
            End::Exited(code) => code,
        };
        if completed.stdout.extent == Extent::Cut {
            return Err(too_long(target));
        }
        Ok(Ended {
            code,
            stdout: completed.stdout.bytes,
            complaint,
            last_words,
        })
    }

    /// The environment without removed variables, and with set ones.
    fn environment(
        &self,
        mut set: Vec<(OsString, OsString)>,
        left_out: &[&str],
    ) -> Vec<(OsString, OsString)> {
        let isolated: &[&str] = match self.login {
            Login::Isolated => &NOT_PASSED_ISOLATED,
            Login::User => &[],
        };
        let is_left_out = |name: &OsStr| {
            left_out
                .iter()
                .chain(isolated)
                .chain(self.closed_keys)
                .any(|other| name == *other)
                || set.iter().any(|(own, _)| own == name)
        };
        let inherited = self.env.pairs().filter(|(name, _)| !is_left_out(name));
        let mut all: Vec<_> = inherited
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        all.append(&mut set);
        all
    }

    fn not_run(&self, target: CallTarget<'_>, error: &SandboxError) -> LlmError {
        let provider = self.provider;
        let fault = target.fault(
            self.env.without_home(&error.to_string()),
            format!("check [llm.{provider}] binary"),
        );
        match error {
            SandboxError::BadArgument { .. } => LlmError::Unsupported(
                target.fault(error.to_string(), "remove the NUL byte from the request"),
            ),
            SandboxError::NotFound { .. }
            | SandboxError::NotExecutable { .. }
            | SandboxError::Exec { .. }
            | SandboxError::WorkingDirectory { .. }
            | SandboxError::Writable { .. }
            | SandboxError::Masked { .. }
            | SandboxError::ReadOnly { .. }
            | SandboxError::Mounted { .. }
            | SandboxError::Host(_)
            | SandboxError::LayersMissing { .. } => LlmError::Misconfiguration(fault),
            SandboxError::Setup { .. }
            | SandboxError::Supervision { .. }
            | SandboxError::Survivors { .. } => LlmError::Transport(fault),
        }
    }
}

/// The system prompts as one text, which is never blank, and all other messages as another: a single
/// message as it is, several with their roles. A message that begins with a slash also gets its role,
/// because clients would take it for a command.
pub(crate) fn conversation(inv: &LlmInvocation) -> (String, String) {
    let names_of = |requested: fn(Role) -> bool| {
        inv.messages
            .iter()
            .filter(move |message| requested(message.role))
    };
    let system: Vec<&str> = names_of(|role| role == Role::System)
        .map(|message| message.content.as_str())
        .collect();
    let turns: Vec<_> = names_of(|role| role != Role::System).collect();
    let prompt = match turns.as_slice() {
        [only] if !only.content.as_str().trim_start().starts_with('/') => {
            only.content.as_str().to_owned()
        }
        several => {
            let parts: Vec<String> = (several.iter())
                .map(|message| format!("[{}]\n{}", message.role.as_str(), message.content.as_str()))
                .collect();
            parts.join("\n\n")
        }
    };
    let system = system.join("\n\n");
    (
        if system.trim().is_empty() {
            PLAIN_SYSTEM.to_owned()
        } else {
            system
        },
        prompt,
    )
}

/// Refuses input that is too large for a program.
///
/// # Errors
///
/// [`LlmError::Unsupported`] if `what` has more bytes than the limit.
pub(crate) fn check_size(
    target: CallTarget<'_>,
    what: &str,
    size: usize,
    limit: usize,
) -> Result<(), LlmError> {
    if size <= limit {
        return Ok(());
    }
    Err(LlmError::Unsupported(target.fault(
        format!("the {what} has {size} bytes; the program accepts at most {limit}"),
        "lower the context budget, or use a provider over HTTP",
    )))
}

/// The error of a program that reports a failed connection.
pub(crate) fn broken_connection(target: CallTarget<'_>) -> LlmError {
    LlmError::Transport(target.fault(
        "the connection failed",
        format!(
            "check the network and [llm.{}] base_url, and try again",
            target.provider
        ),
    ))
}

/// The error of a program that reports a missing key; `log_in` is its login command.
pub(crate) fn no_key(target: CallTarget<'_>, log_in: &str) -> LlmError {
    let variable = format!("[llm.{}] api_key_env", target.provider);
    LlmError::ProviderAuth(target.fault(
        "the program has no valid key or login",
        format!(
            "set the variable that {variable} names, or leave it empty and log in with `{log_in}`"
        ),
    ))
}

/// Adds the hints that a program cannot follow to the result's extension.
pub(crate) fn note_ignored(result: &mut LlmResult, inv: &LlmInvocation, followed: &[&str]) {
    let names = inv.metadata.keys().map(String::as_str);
    let ignored: Vec<&str> = names.filter(|name| !followed.contains(name)).collect();
    if !ignored.is_empty() {
        result
            .extensions
            .insert(LlmResult::IGNORED_METADATA.to_owned(), Value::from(ignored));
    }
}

/// The end of a program's standard error: without secrets, keys and the user's home, at most 2 KiB.
fn last_words(stderr: &str, known_keys: &ProvidedValues, env: &Environment) -> String {
    // Known values are removed first, before a rule could remove a part of one.
    let text = known_keys.out_of_text(stderr);
    let text = env.without_home(&Scanner::builtin().redact(&text).text);
    let text = text.trim();
    let start = text.ceil_char_boundary(text.len().saturating_sub(LAST_WORDS));
    text[start..].to_owned()
}

/// Whether the name of a variable suggests a secret.
fn names_a_secret(name: &OsStr) -> bool {
    const SIGNS: [&str; 5] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL"];
    let name = name.to_string_lossy().to_uppercase();
    SIGNS.iter().any(|sign| name.contains(sign))
}

fn too_long(target: CallTarget<'_>) -> LlmError {
    let what = format!("the program printed more than {} bytes", MAX_STDOUT.0);
    target.unusable(AnswerFault::TooLarge, what, "ask for less at once")
}

fn with_stderr(mut error: LlmError, stderr: &str) -> LlmError {
    if let Some(fault) = error.fault_mut() {
        fault.stderr = Some(stderr.to_owned()).filter(|text| !text.is_empty());
    }
    error
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at_home() -> Environment {
        Environment::from_pairs([("HOME", "/home/someone")], "/")
    }

    mod properties {
        use super::*;

        proptest! {
            /// Seed 002, property 5, for every client program.
            #[test]
            fn last_words_are_short_and_hold_no_key(noise in "\\PC{0,4000}", digits in "[A-Za-z0-9]{36}") {
                let key = format!("ghp_{digits}");
                let plain = Secret::new(digits);
                let stderr = format!("{noise}\n token={key} \n{noise}\n{}", plain.expose());
                let words = last_words(&stderr, &ProvidedValues::new([&plain]), &at_home());
                prop_assert!(words.len() <= LAST_WORDS);
                prop_assert!(!words.contains(&key));
                prop_assert!(words.ends_with("[secret:handed-over]"), "{words}");
            }
        }
    }

    #[test]
    fn the_users_home_is_not_named() {
        let words = last_words(
            "cannot read /home/someone/.claude/x",
            &ProvidedValues::new([]),
            &at_home(),
        );
        assert_eq!(words, "cannot read ~/.claude/x");
    }
}
