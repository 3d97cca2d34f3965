//! `claude-cli`: Anthropic's command line client, limited to text in and text out.
//!
//! Each call is one process without tools, run by [`ClientProgram`]. The client's own retries, session
//! record, hooks and other traffic are turned off. So is its thinking, which would use the answer's
//! tokens. So is its reading of files that a prompt names: otherwise the text `@/some/file` in a
//! repository would send that local file to the provider. Success is determined by its final JSON, never
//! by its exit code alone: it exits with 0 after an interrupt, and marks errors as success. The
//! configured key and address are passed in the client's own variables.

use std::ffi::OsString;

use async_trait::async_trait;
use crucible_model::EditFormat;

use crate::backend::{Backend, BackendParts, ClientExtra, LlmBackend};
use crate::capability::{Capabilities, StructuredOutput};
use crate::client_program::{
    ADDED_TOKENS, ClientProgram, Places, ProgramCall, check_size, conversation, note_ignored,
};
use crate::context::Context;
use crate::error::LlmError;
use crate::http_fault::{CallTarget, CallTime};
use crate::invocation::{LlmInvocation, LlmResult};
use crate::provider_kind::{ProviderClass, ProviderKind};
use crate::provider_settings::{Login, ProviderSettings, checked_url, required};

mod agent;
mod output;

pub use agent::ClaudeAgent;

const NAME: &str = "claude-cli";

const INSTALL: &str = "npm install -g @anthropic-ai/claude-code";

/// The most requests that the client was observed to make for one call: it retries after a broken stream,
/// an empty answer or a cut-off one.
const MAX_REQUESTS: u64 = 4;

/// The client's variables for its key, for tokens instead of a key, and for the address.
const KEY: &str = "ANTHROPIC_API_KEY";
const TOKEN: &str = "ANTHROPIC_AUTH_TOKEN";
const LOGIN_TOKEN: &str = "CLAUDE_CODE_OAUTH_TOKEN";
const BASE_URL: &str = "ANTHROPIC_BASE_URL";

/// The kernel limits one argument to 128 KiB; one byte is for the terminator.
const MAX_SYSTEM: usize = 128 * 1024 - 1;

/// The longest standard input that the client was observed to read completely.
const MAX_PROMPT: usize = 3_000_000;

/// Without these variables the client opens dozens of connections and retries for minutes.
const QUIET: [(&str, &str); 9] = [
    // Together with a denied Read, these two keep it from sending files that the prompt names.
    ("CLAUDE_CODE_DISABLE_ATTACHMENTS", "1"),
    ("CLAUDE_CODE_DISABLE_FILE_MENTIONS", "1"),
    // With this and without thinking, it does not resend a refused request with fewer fields.
    ("CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS", "1"),
    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    ("CLAUDE_CODE_MAX_RETRIES", "0"),
    ("DISABLE_AUTOUPDATER", "1"),
    ("DISABLE_ERROR_REPORTING", "1"),
    ("DISABLE_TELEMETRY", "1"),
    ("MAX_THINKING_TOKENS", "0"),
];

/// Variables that tell the client that it runs inside itself, or to log its requests.
const LEFT_OUT: [&str; 4] = [
    "ANTHROPIC_LOG",
    "CLAUDECODE",
    "CLAUDE_CODE_ENTRYPOINT",
    "DEBUG",
];

/// Settings that override those of the user.
const CLOSED: &str = r#"{"disableAllHooks":true,"permissions":{"deny":["Read"]}}"#;

/// The provider `claude-cli`.
pub(crate) struct ClaudeCli;

impl ProviderKind for ClaudeCli {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "Anthropic's `claude` program, with a key in ANTHROPIC_API_KEY or your own login"
    }

    fn class(&self) -> ProviderClass {
        ProviderClass::Program { install: INSTALL }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            edit_format: EditFormat::SearchReplace,
            structured_output: StructuredOutput::None,
        }
    }

    fn evidence(&self) -> &'static str {
        "Not measured here: search-and-replace is the form that other coding tools use with these models, at a fraction of \
         a whole file's tokens. The program's own schema option ended well without an object when the model ignored it."
    }

    fn construct(
        &self,
        settings: &ProviderSettings,
        context: &Context,
    ) -> Result<Backend, LlmError> {
        let program =
            ClientProgram::find(NAME, INSTALL, &[KEY, TOKEN, LOGIN_TOKEN], settings, context)?;
        let model = required(NAME, "model", settings.model.clone())?;
        let max_tokens = required(NAME, "max_tokens", settings.max_tokens)?;
        let base_url = settings
            .base_url
            .as_deref()
            .map(|url| checked_url(NAME, url))
            .transpose()?;
        let inner = Box::new(ClaudeCliBackend {
            program,
            max_tokens,
            base_url,
        });
        let parts = BackendParts::live(NAME, self.capabilities(), model, max_tokens, inner);
        let extra = ClientExtra {
            added_tokens: ADDED_TOKENS,
            requests: MAX_REQUESTS,
            ..ClientExtra::NONE
        };
        Ok(Backend::new(BackendParts { extra, ..parts }))
    }
}

struct ClaudeCliBackend {
    program: ClientProgram,
    max_tokens: u64,
    base_url: Option<String>,
}

#[async_trait]
impl LlmBackend for ClaudeCliBackend {
    async fn invoke(&self, inv: LlmInvocation) -> Result<LlmResult, LlmError> {
        let target = CallTarget {
            provider: NAME,
            model: &inv.model,
        };
        let time = self.program.time(&inv);
        let max_tokens = inv.max_tokens(NAME, self.max_tokens)?;
        let (system, prompt) = conversation(&inv);
        check_size(target, "system prompt", system.len(), MAX_SYSTEM)?;
        check_size(target, "prompt", prompt.len(), MAX_PROMPT)?;
        let call = |places: &Places| ProgramCall {
            args: arguments(&inv.model, &system),
            set: self.variables(max_tokens, places, time),
            left_out: &LEFT_OUT,
            files: Vec::new(),
            stdin: prompt.into_bytes(),
        };
        let ended = self.program.run(target, time, call).await?;
        let mut result = output::read(target, ended.code, &ended.stdout)
            .map_err(|error| ended.explain(error))?;
        note_ignored(&mut result, &inv, &["max_tokens"]);
        Ok(result)
    }
}

impl ClaudeCliBackend {
    fn variables(
        &self,
        max_tokens: u64,
        places: &Places,
        time: CallTime,
    ) -> Vec<(OsString, OsString)> {
        let mut set: Vec<(OsString, OsString)> = QUIET
            .map(|(name, value)| (name.into(), value.into()))
            .to_vec();
        set.push((
            "API_TIMEOUT_MS".into(),
            time.effective().as_millis().to_string().into(),
        ));
        set.push((
            "CLAUDE_CODE_MAX_OUTPUT_TOKENS".into(),
            max_tokens.to_string().into(),
        ));
        set.extend(
            self.base_url
                .as_ref()
                .map(|url| (BASE_URL.into(), url.into())),
        );
        set.extend(
            self.program
                .key()
                .map(|key| (KEY.into(), key.expose().into())),
        );
        if self.program.login() == Login::Isolated {
            set.push((
                "CLAUDE_CONFIG_DIR".into(),
                places.home.join(".claude").into(),
            ));
        }
        set
    }
}

fn arguments(model: &str, system: &str) -> Vec<OsString> {
    let fixed = [
        "-p",
        "--output-format",
        "json",
        "--model",
        model,
        "--tools",
        "",
        "--system-prompt",
        system,
    ];
    let closed = [
        "--settings",
        CLOSED,
        "--strict-mcp-config",
        "--disable-slash-commands",
        "--no-session-persistence",
    ];
    fixed.iter().chain(&closed).map(OsString::from).collect()
}
