//! Which providers there are, and how one is made ready from settings.
//!
//! A provider is one file under `providers/` and one line in [`registry`]. Making one ready sends nothing: it
//! finds what must be there (a program, a key, a recording, an address that is one) and says what is missing, so
//! that a wrong configuration fails before any run starts and a fallback can be tried.

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

/// A kind of backend: what it is called, what it can do, and how it is made ready.
pub trait ProviderKind: Sync {
    /// The name that configuration uses.
    fn name(&self) -> &'static str;

    /// What it is, in one line for a user who chooses.
    fn summary(&self) -> &'static str;

    /// How it reaches its models, and what it needs for that.
    fn class(&self) -> ProviderClass;

    /// What its backends are good at, unless a backend knows better.
    fn capabilities(&self) -> Capabilities;

    /// Why the edit format and the structured output of [`ProviderKind::capabilities`] are the default, in a sentence or two:
    /// what was measured, or that nothing was.
    fn evidence(&self) -> &'static str;

    /// Makes a backend ready, without sending anything.
    ///
    /// # Errors
    ///
    /// [`LlmError::Misconfiguration`] with what is missing and where it was looked for.
    fn construct(&self, settings: &ProviderSettings, context: &Context) -> Result<Backend, LlmError>;

    /// Where its server lists the models that it offers, without sending anything. A model need not be set for that.
    ///
    /// # Errors
    ///
    /// [`LlmError::Unsupported`] where there is no such list; [`LlmError::Misconfiguration`] with what is missing.
    fn catalogue(&self, _settings: &ProviderSettings, _context: &Context) -> Result<Catalogue, LlmError> {
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
    /// By a client program of its own (`binary`), which may hold a login of the user.
    Program {
        /// The command that installs it.
        install: &'static str,
    },
    /// By HTTP, at `base_url`.
    Http {
        /// Whether it wants a key.
        key: KeyUse,
    },
    /// Not at all: it plays a recording.
    Recording,
}

/// Whether a provider wants a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyUse {
    /// Nothing goes without one.
    Required,
    /// Where `api_key_env` names a variable, its key is sent.
    Optional,
}

/// Every provider.
#[must_use]
pub fn registry() -> &'static [&'static dyn ProviderKind] {
    &[&Anthropic, &ClaudeCli, &CodexCli, &Gateway, &GeminiCli, &OpenAi, &OpenRouter, &Replay]
}

/// What a configuration says about one provider (`[llm.<provider>]`). There are no defaults behind it: whoever makes a
/// provider ready says what it needs, and what is missing is refused by name.
#[derive(Clone, Default)]
pub struct ProviderSettings {
    /// Where the provider is: `gateway` needs it, a client program uses its own where it is absent.
    pub base_url: Option<String>,
    /// Who set `base_url`.
    pub address: AddressOrigin,
    /// The name of the variable that holds the key. Not used with the user's own login.
    pub api_key_env: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The most tokens an answer may take.
    pub max_tokens: Option<u64>,
    /// How freely the model chooses its words; absent: as the server does.
    pub temperature: Option<f64>,
    /// Named choices of a model, for phases that ask for one: `[llm.<provider>.profiles.<name>]`.
    pub profiles: BTreeMap<String, ModelProfile>,
    /// Which profile a phase uses, by the phase's name: `[phases.<name>] llm_profile`.
    pub phase_profiles: BTreeMap<String, String>,
    /// Which prompt template a phase uses, by the phase's name: `[phases.<name>] prompt_template`.
    pub phase_templates: BTreeMap<String, String>,
    /// The address that `openrouter` is told the requests come from.
    pub referer: Option<String>,
    /// The name that `openrouter` is told the requests come from.
    pub title: Option<String>,
    /// The client program, by path or by name.
    pub binary: Option<PathBuf>,
    /// Whose login a client program uses.
    pub login: Login,
    /// What `replay` plays.
    pub cassette: Option<CassetteSource>,
    /// The run's own recording so far: `replay` takes those calls as played already.
    pub already_played: Option<PathBuf>,
}

/// Who says where a provider is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AddressOrigin {
    /// The user, or nobody.
    #[default]
    User,
    /// A file of the project, which may come from somebody else: no key and no login of the user is sent there.
    Project,
}

/// A named choice of a model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelProfile {
    /// The model.
    pub model: Option<String>,
}

/// Whose login and settings a client program uses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Login {
    /// Nobody's: it gets an empty home directory, and its key from the environment.
    #[default]
    Isolated,
    /// The user's own: it sees the home directory and with it the user's login, settings and extensions.
    User,
}

/// Where a recording is.
#[derive(Clone)]
pub enum CassetteSource {
    /// In this file.
    File(PathBuf),
    /// Here.
    Bytes(Arc<[u8]>),
}

impl CassetteSource {
    /// The recording's bytes, so that whoever needs them more than once reads them once.
    ///
    /// # Errors
    ///
    /// [`LlmError::Misconfiguration`] when the file cannot be read, or is larger than any recording.
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

/// The outside world, as providers need it.
#[derive(Clone)]
pub struct Context {
    /// The environment of the command.
    pub env: Environment,
    /// The connections of the process.
    pub http: Arc<HttpClient>,
    /// What starts client programs.
    pub sandbox: Arc<Sandbox>,
    /// Where client programs get their private directories; made where it is not there.
    pub temporary: PathBuf,
    /// The most time any call of a client program gets.
    pub cli_cap: Duration,
    /// The most time any HTTP request gets.
    pub http_cap: Duration,
}

impl Context {
    /// The cap of seed 002 for client programs.
    pub const CLI_CAP: Duration = Duration::from_secs(600);

    /// The cap of seed 002 for HTTP requests.
    pub const HTTP_CAP: Duration = Duration::from_secs(300);

    /// A world of HTTP alone, for whoever embeds a provider in a program: these variables and no others. There is no `PATH`
    /// among them unless it is given, so a client program is not found by its name.
    ///
    /// # Errors
    ///
    /// [`LlmError::Misconfiguration`] where the HTTP client cannot be made ready.
    pub fn http_only(keys: impl IntoIterator<Item = (String, Secret)>) -> Result<Self, LlmError> {
        let pairs = keys.into_iter().map(|(name, key)| (name, key.expose().to_owned()));
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

/// What is said wherever a model is to be asked and no provider is named.
pub const UNSPECIFIED: &str = "LLM provider must be specified";

/// The provider of this name.
///
/// # Errors
///
/// [`LlmError::Misconfiguration`] when no name is given, [`LlmError::Unsupported`] when there is none such.
pub fn provider(name: &str) -> Result<&'static dyn ProviderKind, LlmError> {
    let known = || registry().iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ");
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
    registry().iter().find(|kind| kind.name() == name).copied().ok_or_else(|| {
        let shown: String = name.chars().filter(|c| !c.is_control()).take(64).collect();
        LlmError::Unsupported(Fault::new(
            shown,
            "",
            "unknown provider",
            format!("choose one of {}", known()),
        ))
    })
}

/// Makes the backend of a provider ready, without sending anything.
///
/// # Errors
///
/// As [`provider`] and [`ProviderKind::construct`].
pub fn construct(name: &str, settings: &ProviderSettings, context: &Context) -> Result<Backend, LlmError> {
    let kind = provider(name)?;
    check_address(kind, settings)?;
    let backend = kind.construct(settings, context)?;
    match kind.class() {
        // A recording is asked as it was.
        ProviderClass::Recording => Ok(backend),
        ProviderClass::Program { .. } | ProviderClass::Http { .. } => {
            let templates = phase_templates(name, settings)?;
            Ok(backend.with_phase_models(phase_models(name, settings)?).with_phase_templates(templates))
        }
    }
}

/// Refuses to send what only the user's own addresses may get to one that a project's file names.
pub(crate) fn check_address(kind: &dyn ProviderKind, settings: &ProviderSettings) -> Result<(), LlmError> {
    let sends = match kind.class() {
        ProviderClass::Program { .. } => "the login or key of its program",
        ProviderClass::Http { key: KeyUse::Required } => "your key",
        ProviderClass::Http { key: KeyUse::Optional } if settings.api_key_env.is_some() => "your key",
        ProviderClass::Http { key: KeyUse::Optional } | ProviderClass::Recording => return Ok(()),
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

/// A setting without which a provider cannot be made ready.
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

/// An address from the settings, where it is one.
pub(crate) fn checked_url(provider: &str, url: &str) -> Result<String, LlmError> {
    check_url(url).map(|()| url.to_owned()).map_err(|error| {
        let next = format!("correct [llm.{provider}] base_url");
        LlmError::Misconfiguration(Fault::new(provider, "", error.to_string(), next))
    })
}

/// The key in the variable that the settings name.
pub(crate) fn named_key(provider: &str, variable: &str, env: &Environment) -> Result<Secret, LlmError> {
    let key = env.get(variable).filter(|key| !key.trim().is_empty());
    // Somebody may have put the key itself where its variable's name belongs.
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
        Some(key) if key.trim().contains(char::is_control) => {
            Err(bad("contains a line break or another character that no key contains"))
        }
        Some(key) => Ok(Secret::new(key.to_owned())),
        None => Err(bad("is not set, empty, or not UTF-8")),
    }
}

/// The key of a provider that answers nobody without one.
pub(crate) fn required_key(
    provider: &str,
    settings: &ProviderSettings,
    env: &Environment,
) -> Result<Secret, LlmError> {
    let variable = required(provider, "api_key_env", settings.api_key_env.as_deref())?;
    named_key(provider, variable, env)
}
