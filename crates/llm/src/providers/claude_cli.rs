//! `claude-cli`: Anthropic's command line client, held to text in and text out.
//!
//! Each call is one process with no tools, its prompt on standard input, an empty working directory, and,
//! unless the user's own login is asked for, an empty home. Its own retries and all its traffic besides the call
//! are off. Success is what its last JSON says, never its exit code alone: it ends with 0 after an interrupt
//! and calls errors a success. The environment is handed on as it is, keys included; the key and the address that the
//! settings name come before those in it, under the names that the client knows.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use crucible_host::env::Environment;
use crucible_host::fs::{self, FsError};
use crucible_host::http::check_url;
use crucible_model::{ByteLimit, EditFormat, Secret};
use crucible_sandbox::{
    Completed, End, Extent, Keep, Limits, Redaction, Sandbox, SandboxError, Spawn, Stdin,
};
use serde_json::Value;

use crate::backend::{Backend, BackendParts, LlmBackend, Origin, Speaker};
use crate::capability::{Capabilities, StructuredOutput};
use crate::error::{AnswerFault, Fault, LlmError};
use crate::http_fault::{Asked, CallTime};
use crate::invocation::{LlmInvocation, LlmResult, Role};
use crate::registry::{Context, Login, ProviderKind, ProviderSettings, named_key, required};

mod output;

const NAME: &str = "claude-cli";

/// The client's own variables for its key and for where it sends its calls.
const KEY: &str = "ANTHROPIC_API_KEY";
const BASE_URL: &str = "ANTHROPIC_BASE_URL";

/// The system prompt of a call that brings none; without one, the client would use its own, made for tools.
const PLAIN_SYSTEM: &str = "Answer with text only.";

/// What the kernel takes as one argument is 128 KiB; a little is left for the byte that ends it.
const MAX_SYSTEM: usize = 128 * 1024 - 1;

/// The longest standard input that the client was seen to read whole.
const MAX_PROMPT: usize = 3_000_000;

const MAX_STDOUT: ByteLimit = ByteLimit(32 << 20);
const MAX_STDERR: ByteLimit = ByteLimit(64 << 10);

/// Without these the client opens dozens of connections of its own and retries for minutes.
const QUIET: [(&str, &str); 5] = [
    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    ("CLAUDE_CODE_MAX_RETRIES", "0"),
    ("DISABLE_AUTOUPDATER", "1"),
    ("DISABLE_ERROR_REPORTING", "1"),
    ("DISABLE_TELEMETRY", "1"),
];

/// What tells the client that it runs inside itself, or leads it out of an isolated home.
const NEVER_PASSED: [&str; 2] = ["CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT"];
const NOT_PASSED_ISOLATED: [&str; 4] =
    ["XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"];

/// The provider `claude-cli`.
pub(crate) struct ClaudeCli;

impl ProviderKind for ClaudeCli {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "Anthropic's `claude` program, with a key in ANTHROPIC_API_KEY or your own login"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { edit_format: EditFormat::SearchReplace, structured_output: StructuredOutput::None }
    }

    fn construct(&self, settings: &ProviderSettings, context: &Context) -> Result<Backend, LlmError> {
        let program = find_program(required(NAME, "binary", settings.binary.as_deref())?, &context.env)?;
        let model = required(NAME, "model", settings.model.clone())?;
        let max_tokens = required(NAME, "max_tokens", settings.max_tokens)?;
        let base_url = settings.base_url.clone();
        if let Some(url) = &base_url {
            check_url(url).map_err(|error| {
                let next = format!("correct [llm.{NAME}] base_url");
                LlmError::Misconfiguration(Fault::new(NAME, "", error.to_string(), next))
            })?;
        }
        let key = match (settings.login, &settings.api_key_env) {
            (Login::Isolated, Some(variable)) => Some(named_key(NAME, variable, &context.env)?),
            (Login::Isolated, None) | (Login::User, _) => None,
        };
        Ok(Backend::new(BackendParts {
            provider: NAME,
            default_model: model.clone(),
            max_output_tokens: max_tokens,
            capabilities: self.capabilities(),
            speaker: Speaker { provider: NAME.to_owned(), model: model.clone() },
            origin: Origin::Live,
            parameters: BTreeMap::new(),
            inner: Box::new(ClaudeCliBackend {
                program,
                model,
                max_tokens,
                base_url,
                key,
                login: settings.login,
                env: context.env.clone(),
                sandbox: Arc::clone(&context.sandbox),
                temporary: context.temporary.clone(),
                cap: context.cli_cap,
            }),
        }))
    }
}

fn find_program(wanted: &Path, env: &Environment) -> Result<PathBuf, LlmError> {
    env.find_program(wanted).map_err(|error| {
        LlmError::Misconfiguration(Fault::new(
            NAME,
            "",
            format!("the program {wanted:?} cannot be used: {error}"),
            format!("install it with `npm install -g @anthropic-ai/claude-code`, or set [llm.{NAME}] binary"),
        ))
    })
}

struct ClaudeCliBackend {
    program: PathBuf,
    model: String,
    max_tokens: u64,
    base_url: Option<String>,
    key: Option<Secret>,
    login: Login,
    env: Environment,
    sandbox: Arc<Sandbox>,
    temporary: PathBuf,
    cap: Duration,
}

/// The directories of one call.
struct Places {
    work: PathBuf,
    home: PathBuf,
    config: PathBuf,
}

#[async_trait]
impl LlmBackend for ClaudeCliBackend {
    async fn invoke(&self, mut inv: LlmInvocation) -> Result<LlmResult, LlmError> {
        if inv.model.is_empty() {
            inv.model.clone_from(&self.model);
        }
        let asked = Asked { provider: NAME, model: &inv.model };
        let time = CallTime { call: inv.timeout, cap: self.cap };
        let (system, prompt) = conversation(&inv);
        check_size(asked, "system prompt", system.len(), MAX_SYSTEM)?;
        check_size(asked, "prompt", prompt.len(), MAX_PROMPT)?;

        let private = fs::temp_dir_in(&self.temporary, "claude-").map_err(|error| no_place(asked, &error))?;
        let places = places(private.path()).map_err(|error| no_place(asked, &error))?;
        let mut limits = Limits::new(time.effective());
        limits.stdout = MAX_STDOUT;
        limits.stderr = MAX_STDERR;
        let spawn = Spawn {
            args: arguments(&inv.model, &system),
            env: self.environment(&inv, &places, time),
            stdin: Stdin::Bytes(prompt.into_bytes()),
            keep: Keep::Tail,
            redaction: Redaction::Raw,
            ..Spawn::new(&self.program, &places.work, limits)
        };
        let completed = self.sandbox.run(spawn).await.map_err(|error| not_run(asked, &error))?;
        self.judge(asked, time, &completed, &inv)
    }
}

impl ClaudeCliBackend {
    fn environment(&self, inv: &LlmInvocation, places: &Places, time: CallTime) -> Vec<(OsString, OsString)> {
        let max_tokens = inv.metadata.get("max_tokens").and_then(Value::as_u64).unwrap_or(self.max_tokens);
        let mut ours: Vec<(OsString, OsString)> =
            QUIET.map(|(name, value)| (name.into(), value.into())).to_vec();
        ours.push(("API_TIMEOUT_MS".into(), time.effective().as_millis().to_string().into()));
        ours.push(("CLAUDE_CODE_MAX_OUTPUT_TOKENS".into(), max_tokens.to_string().into()));
        ours.extend(self.base_url.as_ref().map(|url| (BASE_URL.into(), url.into())));
        ours.extend(self.key.as_ref().map(|key| (KEY.into(), key.expose().into())));
        if self.login == Login::Isolated {
            ours.push(("HOME".into(), places.home.clone().into()));
            ours.push(("CLAUDE_CONFIG_DIR".into(), places.config.clone().into()));
        }
        let left_out: &[&str] = match self.login {
            Login::Isolated => &NOT_PASSED_ISOLATED,
            Login::User => &[],
        };
        let is_left_out = |name: &OsStr| {
            NEVER_PASSED.iter().chain(left_out).any(|other| name == *other)
                || ours.iter().any(|(own, _)| own == name)
        };
        let inherited = self.env.pairs().filter(|(name, _)| !is_left_out(name));
        let mut all: Vec<_> = inherited.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        all.append(&mut ours);
        all
    }

    fn judge(
        &self,
        asked: Asked<'_>,
        time: CallTime,
        completed: &Completed,
        inv: &LlmInvocation,
    ) -> Result<LlmResult, LlmError> {
        let stderr = || output::last_words(&completed.stderr.text(), self.env.home().as_deref());
        let code = match completed.end {
            End::TimedOut => return Err(asked.timeout(time)),
            End::OutputLimit => return Err(too_long(asked)),
            End::DiskLimit => {
                return Err(asked.unreadable("the program wrote more to the disk than it may", "try again"));
            }
            End::Signalled(signal) => {
                return Err(with_stderr(
                    asked.unreadable(format!("the program was ended by signal {signal}"), "try again"),
                    stderr(),
                ));
            }
            End::Exited(code) => code,
        };
        if completed.stdout.extent == Extent::Cut {
            return Err(too_long(asked));
        }
        let mut result = output::read(asked, code, &completed.stdout.bytes)
            .map_err(|error| with_stderr(error, stderr()))?;
        let ignored: Vec<&str> =
            inv.metadata.keys().map(String::as_str).filter(|name| *name != "max_tokens").collect();
        if !ignored.is_empty() {
            result.extensions.insert(LlmResult::IGNORED_METADATA.to_owned(), Value::from(ignored));
        }
        Ok(result)
    }
}

fn arguments(model: &str, system: &str) -> Vec<OsString> {
    ["-p", "--output-format", "json", "--model", model, "--tools", "", "--system-prompt", system]
        .map(OsString::from)
        .to_vec()
}

/// The system prompt, and everything else as one text: a single message as it is, several under their roles.
fn conversation(inv: &LlmInvocation) -> (String, String) {
    let of = |wanted: fn(Role) -> bool| inv.messages.iter().filter(move |message| wanted(message.role));
    let system: Vec<&str> = of(|role| role == Role::System).map(|message| message.content.as_str()).collect();
    let turns: Vec<_> = of(|role| role != Role::System).collect();
    let prompt = match turns.as_slice() {
        [only] => only.content.as_str().to_owned(),
        several => {
            let parts: Vec<String> = (several.iter())
                .map(|message| format!("[{}]\n{}", message.role.as_str(), message.content.as_str()))
                .collect();
            parts.join("\n\n")
        }
    };
    (if system.is_empty() { PLAIN_SYSTEM.to_owned() } else { system.join("\n\n") }, prompt)
}

fn check_size(asked: Asked<'_>, what: &str, size: usize, limit: usize) -> Result<(), LlmError> {
    if size <= limit {
        return Ok(());
    }
    Err(LlmError::Unsupported(asked.fault(
        format!("the {what} has {size} bytes, the program takes at most {limit}"),
        "lower the context budget, or use a provider over HTTP",
    )))
}

fn places(private: &Path) -> Result<Places, FsError> {
    let places = Places {
        work: private.join("work"),
        home: private.join("home"),
        config: private.join("home/.claude"),
    };
    for dir in [&places.work, &places.home, &places.config] {
        fs::create_dir_all(dir)?;
    }
    Ok(places)
}

fn no_place(asked: Asked<'_>, error: &FsError) -> LlmError {
    LlmError::Misconfiguration(
        asked.fault(error.to_string(), "make room there, or set TMPDIR to another directory"),
    )
}

fn not_run(asked: Asked<'_>, error: &SandboxError) -> LlmError {
    let fault = asked.fault(error.to_string(), format!("check [llm.{NAME}] binary"));
    match error {
        SandboxError::BadArgument { .. } => {
            LlmError::Unsupported(asked.fault(error.to_string(), "take the NUL byte out of the request"))
        }
        SandboxError::NotFound { .. }
        | SandboxError::NotExecutable { .. }
        | SandboxError::Exec { .. }
        | SandboxError::WorkingDirectory { .. }
        | SandboxError::Writable { .. }
        | SandboxError::Masked { .. }
        | SandboxError::LayersMissing { .. } => LlmError::Misconfiguration(fault),
        SandboxError::Setup { .. } | SandboxError::Supervision { .. } | SandboxError::Survivors { .. } => {
            LlmError::Transport(fault)
        }
    }
}

fn too_long(asked: Asked<'_>) -> LlmError {
    let what = format!("the program printed more than {} bytes", MAX_STDOUT.0);
    asked.unusable(AnswerFault::TooLarge, what, "ask for less at once")
}

/// Adds what the program complained about, which never decides anything.
fn with_stderr(mut error: LlmError, stderr: String) -> LlmError {
    if let Some(fault) = error.fault_mut() {
        fault.stderr = Some(stderr).filter(|text| !text.is_empty());
    }
    error
}
