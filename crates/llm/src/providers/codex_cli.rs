//! `codex-cli`: OpenAI's command line client, limited to text in and text out.
//!
//! Each call is one process, run by [`ClientProgram`], which reads its prompt from standard input and
//! prints one JSON event per line; `output` parses them. All settings are arguments, because these
//! override the user's files: no tools that run or read anything, no retries, no session record, and our
//! system prompt, in a file, instead of the client's. Unless the user's own login is used, the client
//! gets an empty configuration directory, and its key from `OPENAI_API_KEY`. It waits for headers
//! forever, so our deadline applies.
//!
//! With the user's own login, the user's tool servers stay active; the client has no option to turn them
//! off.

use std::ffi::OsString;
use std::path::Path;

use async_trait::async_trait;
use crucible_model::EditFormat;
use serde_json::Value;

use crate::backend::{Backend, BackendParts, ClientExtra, LlmBackend};
use crate::capability::{Capabilities, StructuredOutput};
use crate::client_program::{
    ADDED_TOKENS, ClientProgram, Places, ProgramCall, check_size, conversation, note_ignored,
};
use crate::context::Context;
use crate::error::LlmError;
use crate::http_fault::CallTarget;
use crate::invocation::{LlmInvocation, LlmResult};
use crate::provider_kind::{ProviderClass, ProviderKind};
use crate::provider_settings::{Login, ProviderSettings, checked_url, required};

mod output;

const NAME: &str = "codex-cli";

const INSTALL: &str = "npm install -g @openai/codex";

/// The client's own variables for its keys.
const KEY: &str = "OPENAI_API_KEY";
const OTHER_KEY: &str = "CODEX_API_KEY";
const TOKEN: &str = "CODEX_ACCESS_TOKEN";

/// The client's default address.
const BASE_URL: &str = "https://api.openai.com/v1";

/// The file with the system prompt.
const SYSTEM: &str = ".codex/system.md";

/// The longest prompt that the client accepts; it counts characters, and this is the same number of
/// bytes.
const MAX_PROMPT: usize = 1 << 20;

/// Settings that turn off the client's tools and its other traffic.
const CLOSED: [&str; 33] = [
    "agents.enabled=false",
    "analytics.enabled=false",
    "approval_policy=\"never\"",
    "check_for_update_on_startup=false",
    "features.api_key_model_discovery=false",
    "features.apps=false",
    "features.browser_use=false",
    "features.code_mode_host=false",
    "features.computer_use=false",
    "features.goals=false",
    "features.hooks=false",
    "features.image_generation=false",
    "features.in_app_browser=false",
    "features.plugins=false",
    "features.remote_plugin=false",
    "features.shell_snapshot=false",
    "features.shell_tool=false",
    "features.skill_search=false",
    "features.sleep_tool=false",
    "features.tool_suggest=false",
    "features.unbounded_connection_retries=false",
    "features.unified_exec=false",
    "features.view_image=false",
    "history.persistence=\"none\"",
    "include_apps_instructions=false",
    "include_collaboration_mode_instructions=false",
    "include_environment_context=false",
    "include_permissions_instructions=false",
    "notify=[]",
    "project_doc_max_bytes=0",
    "skills.bundled.enabled=false",
    "skills.include_instructions=false",
    "web_search=\"disabled\"",
];

/// Variables that tell the client that it runs inside itself, or to log requests.
const LEFT_OUT: [&str; 4] = [
    "CODEX_SANDBOX",
    "CODEX_SANDBOX_NETWORK_DISABLED",
    "CODEX_THREAD_ID",
    "RUST_LOG",
];

/// The provider `codex-cli`.
pub(crate) struct CodexCli;

impl ProviderKind for CodexCli {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "OpenAI's `codex` program, with a key in OPENAI_API_KEY or your own login"
    }

    fn class(&self) -> ProviderClass {
        ProviderClass::Program { install: INSTALL }
    }

    /// The program's own schema option accepts only OpenAI's strict schemas, which callers do not
    /// guarantee.
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            edit_format: EditFormat::SearchReplace,
            structured_output: StructuredOutput::None,
        }
    }

    fn evidence(&self) -> &'static str {
        "Not measured here: search-and-replace is the form that other coding tools use with these models, at a fraction of \
         a whole file's tokens. The program's schema option takes only strict schemas, so it is not relied on."
    }

    fn construct(
        &self,
        settings: &ProviderSettings,
        context: &Context,
    ) -> Result<Backend, LlmError> {
        let program =
            ClientProgram::find(NAME, INSTALL, &[KEY, OTHER_KEY, TOKEN], settings, context)?;
        let model = required(NAME, "model", settings.model.clone())?;
        let max_tokens = required(NAME, "max_tokens", settings.max_tokens)?;
        let base_url = settings
            .base_url
            .as_deref()
            .map(|url| checked_url(NAME, url))
            .transpose()?;
        let inner = Box::new(CodexCliBackend { program, base_url });
        let parts = BackendParts::live(NAME, self.capabilities(), model, max_tokens, inner);
        let extra = ClientExtra {
            added_tokens: ADDED_TOKENS,
            requests: 1,
            ..ClientExtra::NONE
        };
        Ok(Backend::new(BackendParts { extra, ..parts }))
    }
}

struct CodexCliBackend {
    program: ClientProgram,
    base_url: Option<String>,
}

#[async_trait]
impl LlmBackend for CodexCliBackend {
    async fn invoke(&self, inv: LlmInvocation) -> Result<LlmResult, LlmError> {
        let target = CallTarget {
            provider: NAME,
            model: &inv.model,
        };
        let (system, prompt) = conversation(&inv);
        check_size(target, "system prompt", system.len(), MAX_PROMPT)?;
        check_size(target, "prompt", prompt.len(), MAX_PROMPT)?;
        let call = |places: &Places| ProgramCall {
            args: self.arguments(&inv.model, places),
            set: self.variables(places),
            left_out: &LEFT_OUT,
            files: vec![(places.home.join(SYSTEM), system.into_bytes())],
            stdin: prompt.into_bytes(),
        };
        let ended = self
            .program
            .run(target, self.program.time(&inv), call)
            .await?;
        let mut result = output::read(target, ended.code, &ended.stdout)
            .map_err(|error| ended.explain(error))?;
        note_ignored(&mut result, &inv, &[]);
        Ok(result)
    }
}

impl CodexCliBackend {
    fn variables(&self, places: &Places) -> Vec<(OsString, OsString)> {
        let mut set: Vec<(OsString, OsString)> = Vec::new();
        set.extend(
            self.program
                .key()
                .map(|key| (KEY.into(), key.expose().into())),
        );
        if self.program.login() == Login::Isolated {
            set.push(("CODEX_HOME".into(), places.home.join(".codex").into()));
        }
        set
    }

    fn arguments(&self, model: &str, places: &Places) -> Vec<OsString> {
        let mut args: Vec<OsString> = [
            "exec",
            "--json",
            "--skip-git-repo-check",
            "--sandbox",
            "read-only",
            "--ephemeral",
            "--ignore-rules",
        ]
        .map(OsString::from)
        .to_vec();
        args.push(format!("--model={model}").into());
        let mut settings: Vec<String> = CLOSED.map(str::to_owned).to_vec();
        settings.push(setting(
            "model_instructions_file",
            &display_path(&places.home.join(SYSTEM)),
        ));
        settings.push(setting("log_dir", &display_path(&places.home)));
        settings.push(setting("sqlite_home", &display_path(&places.home)));
        // A custom provider: the built-in ones retry for minutes, and cannot be changed.
        settings.extend([
            setting("model_provider", "crucible"),
            setting("model_providers.crucible.name", "crucible"),
            setting("model_providers.crucible.wire_api", "responses"),
            "model_providers.crucible.request_max_retries=0".to_owned(),
            "model_providers.crucible.stream_max_retries=0".to_owned(),
        ]);
        let url = match self.program.login() {
            Login::Isolated => {
                settings.push(setting("model_providers.crucible.env_key", KEY));
                self.base_url.as_deref().or(Some(BASE_URL))
            }
            // Without a configured address, the client chooses one for the kind of login.
            Login::User => {
                settings.push("model_providers.crucible.requires_openai_auth=true".to_owned());
                self.base_url.as_deref()
            }
        };
        settings.extend(url.map(|url| setting("model_providers.crucible.base_url", url)));
        args.extend(
            settings
                .into_iter()
                .flat_map(|setting| [OsString::from("-c"), setting.into()]),
        );
        args.push("-".into());
        args
    }
}

/// A setting as an argument: a TOML string is written as in JSON.
fn setting(name: &str, value: &str) -> String {
    format!("{name}={}", Value::from(value))
}

fn display_path(path: &Path) -> String {
    path.display().to_string()
}
