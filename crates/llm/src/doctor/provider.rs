//! Checks one provider: whether it is ready, and with which settings.

use crucible_host::env::Environment;
use crucible_host::http::without_login;
use serde::Serialize;

use super::program::{self, AskedProgram, NeededBy, ProgramCheck, ProgramState};
use crate::cassette_source::CassetteSource;
use crate::context::Context;
use crate::error::LlmError;
use crate::provider_kind::{KeyUse, ProviderClass, ProviderKind};
use crate::provider_settings::{Login, ProviderSettings};
use crate::registry::construct;

/// How a provider reaches its models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reach {
    /// Through its own client program.
    Program,
    /// Over HTTP.
    Http,
    /// Not at all: it replays a recording.
    Recording,
}

/// Whether a provider is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Readiness {
    /// A run could start with it.
    Ready,
    /// All settings are present, but its server was not contacted: only a call shows whether it answers
    /// and accepts the key.
    Unprobed,
    /// Something is missing.
    NotReady,
}

/// A missing requirement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// What is missing.
    pub what: String,
    /// What the user can do.
    pub next: String,
}

/// Whether a variable holds a key. Its value is never included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeyState {
    /// It is set.
    Set,
    /// It is set, but only to white space.
    Empty,
    /// It is set, but not UTF-8.
    NotText,
    /// It is not set.
    Unset,
}

/// Whether a provider needs a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeyWanted {
    /// It is required.
    Required,
    /// It is sent if a variable is named.
    Optional,
    /// It is not used: the client program has the user's own login.
    OwnLogin,
}

/// The result of checking a provider's key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeyCheck {
    /// The variable for it, if one is named.
    pub variable: Option<String>,
    /// Whether it is set.
    pub state: KeyState,
    /// Whether it is needed.
    pub wanted: KeyWanted,
}

/// The result of checking a provider.
#[derive(Debug, Serialize)]
pub struct ProviderCheck {
    /// Its name.
    pub provider: String,
    /// How it reaches its models.
    pub reach: Reach,
    /// Whether it is ready.
    pub readiness: Readiness,
    /// What is missing; absent if it is ready.
    pub problem: Option<Problem>,
    /// The configured model.
    pub model: Option<String>,
    /// The configured address, without credentials.
    pub base_url: Option<String>,
    /// Its client program; absent if it has none, or the settings name none.
    pub program: Option<ProgramCheck>,
    /// Its key; absent if it uses none.
    pub key: Option<KeyCheck>,
    /// The recording that it replays.
    pub recording: Option<String>,
}

impl ProviderCheck {
    /// What is missing, in short; the searched places of a program are in [`ProgramCheck::searched`].
    #[must_use]
    pub fn lacks(&self) -> Option<Problem> {
        let problem = self.problem.clone()?;
        let missing = self
            .program
            .as_ref()
            .filter(|program| program.state == ProgramState::Missing);
        Some(match missing {
            Some(program) => Problem {
                what: format!("{} was not found", program.name),
                ..problem
            },
            None => problem,
        })
    }
}

/// Prepares a provider as a run would, and checks the version of its program.
pub(super) async fn check(
    kind: &dyn ProviderKind,
    settings: &ProviderSettings,
    context: &Context,
) -> ProviderCheck {
    let problem = construct(kind.name(), settings, context)
        .err()
        .map(|error| Problem::from(&error));
    let (reach, requested, install) = match kind.class() {
        ProviderClass::Program { install } => (Reach::Program, program_key(settings), install),
        ProviderClass::Http {
            key: KeyUse::Required,
        } => (Reach::Http, Some(KeyWanted::Required), ""),
        ProviderClass::Http {
            key: KeyUse::Optional,
        } => (Reach::Http, Some(KeyWanted::Optional), ""),
        ProviderClass::Recording => (Reach::Recording, None, ""),
    };
    let program = match &settings.binary {
        Some(binary) if reach == Reach::Program => {
            let program_check = AskedProgram {
                program: binary,
                needed_by: NeededBy::Provider,
                purpose: kind.name(),
                install,
            };
            Some(program::check(program_check, context).await)
        }
        Some(_) | None => None,
    };
    let readiness = match (&problem, reach) {
        (Some(_), _) => Readiness::NotReady,
        (None, Reach::Http) => Readiness::Unprobed,
        (None, Reach::Program | Reach::Recording) => Readiness::Ready,
    };
    let recording = match &settings.cassette {
        Some(CassetteSource::File(path)) if reach == Reach::Recording => {
            Some(path.to_string_lossy().into_owned())
        }
        Some(_) | None => None,
    };
    ProviderCheck {
        provider: kind.name().to_owned(),
        reach,
        readiness,
        problem,
        model: settings.model.clone(),
        base_url: settings.base_url.as_deref().map(address),
        program,
        key: requested.map(|request| key(settings, request, &context.env)),
        recording,
    }
}

/// How a client program uses a key.
fn program_key(settings: &ProviderSettings) -> Option<KeyWanted> {
    match settings.login {
        Login::User => Some(KeyWanted::OwnLogin),
        Login::Isolated => settings.api_key_env.as_ref().map(|_| KeyWanted::Required),
    }
}

fn key(settings: &ProviderSettings, requested: KeyWanted, env: &Environment) -> KeyCheck {
    let variable = settings.api_key_env.as_deref().map(redacted);
    let state = match settings
        .api_key_env
        .as_deref()
        .and_then(|name| env.get_os(name))
        .map(|value| value.to_str())
    {
        None => KeyState::Unset,
        Some(None) => KeyState::NotText,
        Some(Some(value)) if value.trim().is_empty() => KeyState::Empty,
        Some(Some(_)) => KeyState::Set,
    };
    KeyCheck {
        variable,
        state,
        wanted: requested,
    }
}

/// An address without credentials, query and fragment, which may contain a key.
fn address(url: &str) -> String {
    let text = without_login(&redacted(url));
    text.split(['?', '#']).next().unwrap_or_default().to_owned()
}

/// Redacts a text: a user may have put a key in place of its variable's name.
fn redacted(text: &str) -> String {
    crucible_secrets::Scanner::builtin()
        .redact(text)
        .text
        .into_owned()
}

impl From<&LlmError> for Problem {
    fn from(error: &LlmError) -> Self {
        match error.fault() {
            Some(fault) => Self {
                what: redacted(&fault.what),
                next: redacted(&fault.next),
            },
            None => Self {
                what: error.to_string(),
                next: "try again".to_owned(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_is_shown_without_login_query_fragment() {
        for (url, text) in [
            ("http://me:pa#s?s/@host:80/v1?key=k", "http://host:80/v1"),
            ("http://localhost:8000/v1#k", "http://localhost:8000/v1"),
            ("http://host/v1", "http://host/v1"),
            ("", ""),
        ] {
            assert_eq!(address(url), text, "{url}");
        }
    }
}
