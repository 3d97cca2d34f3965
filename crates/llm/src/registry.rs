//! The list of providers, and their construction from settings.
//!
//! A provider is one file under `providers/` and one line in [`registry`]. Construction sends nothing. It
//! checks the requirements (a program, a key, a recording, a valid address) and reports missing ones. So
//! an invalid configuration fails before any run starts, and a fallback can be tried.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crucible_host::env::Environment;
use crucible_host::fs;
use crucible_host::http::{HttpClient, check_url};
use crucible_model::Secret;
use crucible_sandbox::Sandbox;
use crucible_secrets::Scanner;

use crate::backend::Backend;
use crate::capability::Capabilities;
use crate::cassette::CassetteError;
use crate::error::{Fault, LlmError};
use crate::offered::Catalogue;
use crate::phase_models::phase_models;
use crate::providers::{
    anthropic::Anthropic,
    claude_cli::ClaudeCli,
    codex_cli::CodexCli,
    gateway::Gateway,
    gemini_cli::GeminiCli,
    openai::OpenAi,
    openrouter::OpenRouter,
    replay::{Replay, unusable_recording},
};
use crate::record::MAX_CASSETTE;
use crate::template::phase_templates;

/// A kind of provider: its name, its capabilities and its construction.
pub trait ProviderKind: Sync {
    /// The name in the configuration.
    fn name(&self) -> &'static str;

    /// A one-line description for users.
    fn summary(&self) -> &'static str;

    /// How it reaches its models, and what it needs for that.
    fn class(&self) -> ProviderClass;

    /// The default capabilities of its backends.
    fn capabilities(&self) -> Capabilities;

    /// The evidence for the edit format and the structured output in [`ProviderKind::capabilities`], in
    /// one or two sentences: measurements, or that nothing was measured.
    fn evidence(&self) -> &'static str;

    /// Creates a backend. Sends nothing.
    ///
    /// # Errors
    ///
    /// [`LlmError::Misconfiguration`] with what is missing and where it was searched.
    fn construct(
        &self,
        settings: &ProviderSettings,
        context: &Context,
    ) -> Result<Backend, LlmError>;

    /// Creates the model list of its server. Sends nothing, and needs no configured model.
    ///
    /// # Errors
    ///
    /// [`LlmError::Unsupported`] if it has no such list; [`LlmError::Misconfiguration`] with what is missing.
    fn catalogue(
        &self,
        _settings: &ProviderSettings,
        _context: &Context,
    ) -> Result<Catalogue, LlmError> {
        Err(LlmError::Unsupported(Fault::new(
            self.name(),
            "",
            "this provider does not list its models",
            "see its documentation for model names",
        )))
    }
}

/// How a provider reaches its models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderClass {
    /// Through its own client program (`binary`), which may have the user's login.
    Program {
        /// The command that installs it.
        install: &'static str,
    },
    /// Over HTTP, at `base_url`.
    Http {
        /// Whether it needs a key.
        key: KeyUse,
    },
    /// Not at all: it replays a recording.
    Recording,
}

/// Whether a provider needs a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyUse {
    /// It is required.
    Required,
    /// It is sent if `api_key_env` names a variable.
    Optional,
}

/// All providers.
#[must_use]
pub fn registry() -> &'static [&'static dyn ProviderKind] {
    &[
        &Anthropic,
        &ClaudeCli,
        &CodexCli,
        &Gateway,
        &GeminiCli,
        &OpenAi,
        &OpenRouter,
        &Replay,
    ]
}

/// The configuration of one provider (`[llm.<provider>]`). There are no built-in defaults: a missing
/// required setting is an error that names it.
#[derive(Clone, Default)]
pub struct ProviderSettings {
    /// The address: required for `gateway`; a client program uses its own if absent.
    pub base_url: Option<String>,
    /// Who set `base_url`.
    pub address: AddressOrigin,
    /// The variable with the key. Not used with the user's own login.
    pub api_key_env: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The most tokens of an answer.
    pub max_tokens: Option<u64>,
    /// The sampling temperature; if absent, the server's default.
    pub temperature: Option<f64>,
    /// Named model profiles for phases: `[llm.<provider>.profiles.<name>]`.
    pub profiles: BTreeMap<String, ModelProfile>,
    /// The profile of each phase, by phase name: `[phases.<name>] llm_profile`.
    pub phase_profiles: BTreeMap<String, String>,
    /// The prompt template of each phase, by phase name: `[phases.<name>] prompt_template`.
    pub phase_templates: BTreeMap<String, String>,
    /// The referring address that `openrouter` gets.
    pub referer: Option<String>,
    /// The program title that `openrouter` gets.
    pub title: Option<String>,
    /// The client program, by path or by name.
    pub binary: Option<PathBuf>,
    /// The login that a client program uses.
    pub login: Login,
    /// The recording that `replay` uses.
    pub cassette: Option<CassetteSource>,
    /// The run's own recording so far: `replay` treats those calls as already replayed.
    pub already_played: Option<PathBuf>,
}

/// Who set the address of a provider.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AddressOrigin {
    /// The user, or it is the default.
    #[default]
    User,
    /// A file of the project, which may be untrusted: no key and no login of the user is sent there.
    Project,
}

/// A named model profile.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelProfile {
    /// The model.
    pub model: Option<String>,
}

/// The login and settings that a client program uses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Login {
    /// None: it gets an empty home directory, and its key from the environment.
    #[default]
    Isolated,
    /// The user's own: it sees the home directory with the user's login, settings and extensions.
    User,
}

/// The source of a recording.
#[derive(Clone)]
pub enum CassetteSource {
    /// In this file.
    File(PathBuf),
    /// These bytes.
    Bytes(Arc<[u8]>),
}

impl CassetteSource {
    /// Reads the recording, for callers that need its bytes more than once.
    ///
    /// # Errors
    ///
    /// [`LlmError::Misconfiguration`] if the file cannot be read, or is too large for a recording.
    pub fn bytes(&self) -> Result<Arc<[u8]>, LlmError> {
        match self {
            Self::Bytes(bytes) => Ok(Arc::clone(bytes)),
            Self::File(path) => fs::read_regular_up_to(path, MAX_CASSETTE)
                .map(Arc::from)
                .map_err(|error| unusable_recording(&CassetteError::from(error))),
        }
    }
}

impl From<PathBuf> for CassetteSource {
    fn from(path: PathBuf) -> Self {
        Self::File(path)
    }
}

/// The environment that providers need.
#[derive(Clone)]
pub struct Context {
    /// The environment variables.
    pub env: Environment,
    /// The HTTP connections of the process.
    pub http: Arc<HttpClient>,
    /// The sandbox for client programs.
    pub sandbox: Arc<Sandbox>,
    /// The parent of client programs' private directories; created if missing.
    pub temporary: PathBuf,
    /// The time cap of a client program's call.
    pub cli_cap: Duration,
    /// The time cap of an HTTP request.
    pub http_cap: Duration,
}

impl Context {
    /// The cap of seed 002 for client programs.
    pub const CLI_CAP: Duration = Duration::from_secs(600);

    /// The cap of seed 002 for HTTP requests.
    pub const HTTP_CAP: Duration = Duration::from_secs(300);

    /// Creates a context for HTTP only, to embed a provider in a program: with these variables and no others. `PATH` is not included
    /// unless given, so client programs are not found by name.
    ///
    /// # Errors
    ///
    /// [`LlmError::Misconfiguration`] if the HTTP client cannot be created.
    pub fn http_only(keys: impl IntoIterator<Item = (String, Secret)>) -> Result<Self, LlmError> {
        let pairs = keys
            .into_iter()
            .map(|(name, key)| (name, key.expose().to_owned()));
        let env = Environment::from_pairs(pairs, "/");
        let http = HttpClient::new().map_err(|error| {
            LlmError::Misconfiguration(Fault::new(
                "llm",
                "",
                error.to_string(),
                "check the system's TLS certificates",
            ))
        })?;
        Ok(Self {
            sandbox: Arc::new(Sandbox::new(None, &env)),
            temporary: env.temporary_directory(),
            env,
            http: Arc::new(http),
            cli_cap: Self::CLI_CAP,
            http_cap: Self::HTTP_CAP,
        })
    }
}

/// The error if a model is needed but no provider is named.
pub const UNSPECIFIED: &str = "LLM provider must be specified";

/// Returns the provider of this name.
///
/// # Errors
///
/// [`LlmError::Misconfiguration`] if the name is empty, [`LlmError::Unsupported`] if it is unknown.
pub fn provider(name: &str) -> Result<&'static dyn ProviderKind, LlmError> {
    let known = || {
        registry()
            .iter()
            .map(|kind| kind.name())
            .collect::<Vec<_>>()
            .join(", ")
    };
    if name.is_empty() {
        return Err(LlmError::Misconfiguration(Fault::new(
            "llm",
            "",
            UNSPECIFIED,
            format!(
                "set [llm] provider or CRUCIBLE_LLM_PROVIDER to one of {}; `crucible run start` also takes --provider",
                known()
            ),
        )));
    }
    registry()
        .iter()
        .find(|kind| kind.name() == name)
        .copied()
        .ok_or_else(|| {
            let shown: String = name.chars().filter(|c| !c.is_control()).take(64).collect();
            LlmError::Unsupported(Fault::new(
                shown,
                "",
                "unknown provider",
                format!("choose one of {}", known()),
            ))
        })
}

/// Creates the backend of a provider. Sends nothing.
///
/// # Errors
///
/// As [`provider`] and [`ProviderKind::construct`].
pub fn construct(
    name: &str,
    settings: &ProviderSettings,
    context: &Context,
) -> Result<Backend, LlmError> {
    let kind = provider(name)?;
    check_address(kind, settings)?;
    let backend = kind.construct(settings, context)?;
    match kind.class() {
        // A recording is replayed without templates.
        ProviderClass::Recording => Ok(backend),
        ProviderClass::Program { .. } | ProviderClass::Http { .. } => {
            let templates = phase_templates(name, settings)?;
            Ok(backend
                .with_phase_models(phase_models(name, settings)?)
                .with_phase_templates(templates))
        }
    }
}

/// Refuses to send the user's credentials to an address that a project's file sets.
pub(crate) fn check_address(
    kind: &dyn ProviderKind,
    settings: &ProviderSettings,
) -> Result<(), LlmError> {
    let sends = match kind.class() {
        ProviderClass::Program { .. } => "the login or key of its program",
        ProviderClass::Http {
            key: KeyUse::Required,
        } => "your key",
        ProviderClass::Http {
            key: KeyUse::Optional,
        } if settings.api_key_env.is_some() => "your key",
        ProviderClass::Http {
            key: KeyUse::Optional,
        }
        | ProviderClass::Recording => return Ok(()),
    };
    if settings.address == AddressOrigin::User {
        return Ok(());
    }
    let provider = kind.name();
    Err(LlmError::Misconfiguration(Fault::new(
        provider,
        "",
        format!(
            "its address is set by the project's file, which may be untrusted: {sends} is not sent there"
        ),
        format!(
            "remove [llm.{provider}] base_url from the project's file, or set it in your own configuration or \
            environment"
        ),
    )))
}

/// Returns a required setting, or the error that it is missing.
pub(crate) fn required<T>(provider: &str, key: &str, value: Option<T>) -> Result<T, LlmError> {
    value.ok_or_else(|| {
        LlmError::Misconfiguration(Fault::new(
            provider,
            "",
            format!("its {key} is not set, or empty"),
            format!("set [llm.{provider}] {key}"),
        ))
    })
}

/// Checks an address from the settings.
pub(crate) fn checked_url(provider: &str, url: &str) -> Result<String, LlmError> {
    check_url(url).map(|()| url.to_owned()).map_err(|error| {
        let next = format!("correct [llm.{provider}] base_url");
        LlmError::Misconfiguration(Fault::new(provider, "", error.to_string(), next))
    })
}

/// Reads the key from the variable that the settings name.
pub(crate) fn named_key(
    provider: &str,
    variable: &str,
    env: &Environment,
) -> Result<Secret, LlmError> {
    let key = env.get(variable).filter(|key| !key.trim().is_empty());
    // A user may have put the key itself in place of its variable's name.
    let variable = Scanner::builtin().redact(variable).text;
    let bad = |what: &str| {
        LlmError::Misconfiguration(Fault::new(
            provider,
            "",
            format!("the variable {variable:?} that should hold its key {what}"),
            format!("run `export {variable}=YOUR-KEY`, or change [llm.{provider}] api_key_env"),
        ))
    };
    match key {
        Some(key) if key.trim().contains(char::is_control) => Err(bad(
            "contains a line break or another character that no key contains",
        )),
        Some(key) => Ok(Secret::new(key.to_owned())),
        None => Err(bad("is not set, empty, or not UTF-8")),
    }
}

/// The key of a provider that requires one.
pub(crate) fn required_key(
    provider: &str,
    settings: &ProviderSettings,
    env: &Environment,
) -> Result<Secret, LlmError> {
    let variable = required(provider, "api_key_env", settings.api_key_env.as_deref())?;
    named_key(provider, variable, env)
}
