//! `gemini-cli`: Google's command line client, limited to text in and text out.
//!
//! Each call is one process, run by [`ClientProgram`]. The prompt is passed on standard input: the
//! argument `-p` is limited to the kernel's 128 KiB. The system prompt is in a file named by
//! `GEMINI_SYSTEM_MD`, and replaces the client's own. A settings file in the working directory overrides
//! the user's: it turns off tools, tool servers, skills, hooks and retries, and limits the answer. An
//! argument turns off extensions. (A settings file named by a variable is read only if root alone can
//! write it.) The client wraps the answer's text in JSON with statistics, which `output` checks.
//!
//! With the user's own login the client still keeps its session files in the user's home.

use std::ffi::OsString;

use async_trait::async_trait;
use crucible_model::EditFormat;
use serde_json::{Map, Value, json};

use crate::backend::{Backend, BackendParts, ClientExtra, LlmBackend};
use crate::capability::{Capabilities, StructuredOutput};
use crate::client_program::{
    ADDED_TOKENS, ClientProgram, Places, ProgramCall, check_size, conversation, note_ignored,
};
use crate::context::Context;
use crate::error::LlmError;
use crate::http_fault::{CallTarget, Silence};
use crate::invocation::{LlmInvocation, LlmResult};
use crate::provider_kind::{ProviderClass, ProviderKind};
use crate::provider_settings::{Login, ProviderSettings, checked_url, required};

mod output;

const NAME: &str = "gemini-cli";

const INSTALL: &str = "npm install -g @google/gemini-cli";

/// The client's variables for its keys and for its address.
const KEY: &str = "GEMINI_API_KEY";
const OTHER_KEY: &str = "GOOGLE_API_KEY";
const BASE_URL: &str = "GOOGLE_GEMINI_BASE_URL";

/// The files of a call.
const SETTINGS: &str = ".gemini/settings.json";
const SYSTEM: &str = "system.md";

/// Input of this size was observed to arrive; from 7 MB on the client sends nothing and reports success.
const MAX_PROMPT: usize = 3_000_000;

/// Variables that keep the client from asking, restarting and sending telemetry.
const QUIET: [(&str, &str); 4] = [
    ("GEMINI_CLI_NO_RELAUNCH", "true"),
    ("GEMINI_CLI_TRUST_WORKSPACE", "true"),
    ("GEMINI_TELEMETRY_ENABLED", "false"),
    ("NO_COLOR", "1"),
];

/// Variables that tell the client that it runs inside itself, start it in a container, or enable more
/// logs.
const LEFT_OUT: [&str; 6] = [
    "DEBUG",
    "DEBUG_MODE",
    "GEMINI_CLI",
    "GEMINI_SANDBOX",
    "GEMINI_WRITE_SYSTEM_MD",
    "SANDBOX",
];

/// The hints that the client supports.
const FOLLOWED: [&str; 3] = ["max_tokens", "temperature", "top_p"];

/// The provider `gemini-cli`.
pub(crate) struct GeminiCli;

impl ProviderKind for GeminiCli {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "Google's `gemini` program, with a key in GEMINI_API_KEY or your own login"
    }

    fn class(&self) -> ProviderClass {
        ProviderClass::Program { install: INSTALL }
    }

    /// The API supports answers with a schema; the program has no option for it.
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            edit_format: EditFormat::SearchReplace,
            structured_output: StructuredOutput::None,
        }
    }

    fn evidence(&self) -> &'static str {
        "Not measured here: search-and-replace is the form that the program's own edit tool uses, at a fraction of a whole \
         file's tokens. The program has no option that holds an answer to a schema."
    }

    fn construct(
        &self,
        settings: &ProviderSettings,
        context: &Context,
    ) -> Result<Backend, LlmError> {
        let program = ClientProgram::find(NAME, INSTALL, &[KEY, OTHER_KEY], settings, context)?;
        let model = required(NAME, "model", settings.model.clone())?;
        let max_tokens = required(NAME, "max_tokens", settings.max_tokens)?;
        let base_url = settings
            .base_url
            .as_deref()
            .map(|url| checked_url(NAME, url))
            .transpose()?;
        let inner = Box::new(GeminiCliBackend {
            program,
            max_tokens,
            temperature: settings.temperature,
            base_url,
        });
        let parts = BackendParts::live(NAME, self.capabilities(), model, max_tokens, inner);
        let extra = ClientExtra {
            added_tokens: ADDED_TOKENS,
            requests: 1,
            ..ClientExtra::NONE
        };
        Ok(Backend::new(BackendParts { extra, ..parts }))
    }
}

struct GeminiCliBackend {
    program: ClientProgram,
    max_tokens: u64,
    temperature: Option<f64>,
    base_url: Option<String>,
}

#[async_trait]
impl LlmBackend for GeminiCliBackend {
    async fn invoke(&self, inv: LlmInvocation) -> Result<LlmResult, LlmError> {
        let target = CallTarget {
            provider: NAME,
            model: &inv.model,
        };
        let max_tokens = inv.max_tokens(NAME, self.max_tokens)?;
        let (system, prompt) = conversation(&inv);
        check_size(target, "system prompt", system.len(), MAX_PROMPT)?;
        check_size(target, "prompt", prompt.len(), MAX_PROMPT)?;
        let call = |places: &Places| ProgramCall {
            args: arguments(&inv.model),
            set: self.variables(places),
            left_out: &LEFT_OUT,
            files: vec![
                (
                    places.work.join(SETTINGS),
                    self.settings(&inv, max_tokens).to_string().into_bytes(),
                ),
                (places.home.join(SYSTEM), system.into_bytes()),
            ],
            stdin: prompt.into_bytes(),
        };
        let ended = self
            .program
            .run(target, self.program.time(&inv), call)
            .await?;
        if ended.code != 0 {
            return Err(output::failure(target, &ended));
        }
        let mut result = output::answer(target, &ended.stdout)?;
        if output::fills(&result, max_tokens) {
            // The client does not report a cut-off answer; only its length shows that.
            result
                .extensions
                .insert(LlmResult::FINISH_REASON.to_owned(), Value::from("length"));
        }
        if result.raw_response.trim().is_empty() {
            return Err(target.wordless(Silence::Unexplained));
        }
        note_ignored(&mut result, &inv, &FOLLOWED);
        Ok(result)
    }
}

impl GeminiCliBackend {
    fn variables(&self, places: &Places) -> Vec<(OsString, OsString)> {
        let mut set: Vec<(OsString, OsString)> = QUIET
            .map(|(name, value)| (name.into(), value.into()))
            .to_vec();
        set.push(("GEMINI_SYSTEM_MD".into(), places.home.join(SYSTEM).into()));
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
        set
    }

    /// The settings of a call. Lists in them are allow-lists.
    fn settings(&self, inv: &LlmInvocation, max_tokens: u64) -> Value {
        let mut generation = Map::new();
        generation.insert("maxOutputTokens".to_owned(), Value::from(max_tokens));
        let temperature = inv
            .metadata
            .get("temperature")
            .cloned()
            .or(self.temperature.map(Value::from));
        generation.extend(temperature.map(|value| ("temperature".to_owned(), value)));
        generation.extend(
            inv.metadata
                .get("top_p")
                .map(|value| ("topP".to_owned(), value.clone())),
        );
        // Every chat model inherits from the first; the second overrides the client's own settings of the
        // model.
        let limits = |name: &str| json!({"match": {"model": name}, "modelConfig": {"generateContentConfig": &generation}});
        let mut settings = json!({
            "general": {
                "enableAutoUpdate": false,
                "enableAutoUpdateNotification": false,
                "maxAttempts": 1,
                "retryFetchErrors": false,
            },
            "advanced": {"ignoreLocalEnv": true},
            "context": {"includeDirectoryTree": false},
            "hooksConfig": {"enabled": false},
            "ide": {"enabled": false},
            // The name of no server: an empty list would allow all.
            "mcp": {"allowed": ["none"]},
            "model": {"compressionThreshold": 1, "disableLoopDetection": true, "maxSessionTurns": 1},
            "modelConfigs": {"customOverrides": [limits("chat-base"), limits(&inv.model)]},
            "privacy": {"usageStatisticsEnabled": false},
            "skills": {"enabled": false},
            "telemetry": {"enabled": false},
            "tools": {"core": []},
        });
        if self.program.login() == Login::Isolated {
            settings["security"] = json!({"auth": {"selectedType": "gemini-api-key"}});
        }
        settings
    }
}

fn arguments(model: &str) -> Vec<OsString> {
    // One argument, so that a model name cannot be taken for an option.
    [
        &format!("--model={model}"),
        "-o",
        "json",
        "--extensions",
        "none",
    ]
    .map(OsString::from)
    .to_vec()
}
