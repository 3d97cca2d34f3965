//! The settings of a provider, and the checks of required ones.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crucible_host::env::Environment;
use crucible_host::http::check_url;
use crucible_model::Secret;
use crucible_secrets::Scanner;

use crate::cassette_source::CassetteSource;
use crate::error::{Fault, LlmError};

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
