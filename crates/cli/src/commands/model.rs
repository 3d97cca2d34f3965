//! From the configuration to a model that can be asked.

use std::path::PathBuf;
use std::sync::Arc;

use crucible_host::config::{Config, SettingSource};
use crucible_host::http::HttpClient;
use crucible_llm::{
    Amount, Backend, BudgetLimits, CallBudget, CallError, Capabilities, CassetteHeader, CassetteSource,
    CassetteWriter, ClientOptions, Context, Limit, Login, ModelClient, Price, ProviderSettings, Recording,
    RetryPolicy, Reuse, construct,
};
use crucible_model::ExitStatus;
use crucible_run::{AnswersFrom, Opening, RunDir, RunError};
use crucible_sandbox::Sandbox;
use crucible_secrets::Scanner;

use crate::app::App;
use crate::error::CommandError;

/// What a provider is made with: the settings of its section.
pub(crate) fn settings(app: &App, config: &Config, provider: &str) -> ProviderSettings {
    let key = |name: &str| format!("llm.{provider}.{name}");
    let text = |name: &str| config.text(&key(name)).map(str::to_owned);
    let max_tokens = Some(config.number(&key("max_tokens"))).filter(|tokens| *tokens > 0);
    let cassette = text("cassette").map(|path| CassetteSource::File(app.absolute(&PathBuf::from(path))));
    let unset = |variable: &str| app.env.get(variable).is_none_or(|key| key.trim().is_empty());
    // A variable that somebody named must hold a key; the default one may be unset.
    let by_default = config.source(&key("api_key_env")) == Some(&SettingSource::Default);
    let login = match text("api_key_env") {
        None => Login::User,
        Some(variable) if by_default && unset(&variable) => Login::User,
        Some(_) => Login::Isolated,
    };
    ProviderSettings {
        base_url: text("base_url"),
        api_key_env: text("api_key_env"),
        model: text("model"),
        max_tokens,
        temperature: config.fraction(&key("temperature")),
        binary: text("binary").map(PathBuf::from),
        login,
        cassette,
        already_played: None,
    }
}

/// What providers need of the outside world.
pub(crate) fn context(app: &App, sandbox: &Arc<Sandbox>) -> Result<Context, CommandError> {
    Ok(Context {
        env: app.env.clone(),
        http: Arc::new(
            HttpClient::new().map_err(|error| CommandError::new(ExitStatus::Provider, error.to_string()))?,
        ),
        sandbox: Arc::clone(sandbox),
        temporary: app.env.temporary_directory(),
        cli_cap: Context::CLI_CAP,
        http_cap: Context::HTTP_CAP,
    })
}

/// Makes the backend of a provider.
pub(crate) fn backend(
    app: &App,
    sandbox: &Arc<Sandbox>,
    provider: &str,
    settings: &ProviderSettings,
) -> Result<Backend, CommandError> {
    construct(provider, settings, &context(app, sandbox)?).map_err(CommandError::from)
}

/// Who answers a new run. A recording is read here, once, into the settings: the run keeps the very bytes it is answered
/// from.
pub(crate) fn answers(provider: &str, settings: &mut ProviderSettings) -> Result<AnswersFrom, CommandError> {
    match &settings.cassette {
        Some(source) if provider == "replay" => {
            let bytes = source.bytes()?;
            settings.cassette = Some(CassetteSource::Bytes(Arc::clone(&bytes)));
            Ok(AnswersFrom::Recording(bytes))
        }
        Some(_) | None => Ok(AnswersFrom::Provider),
    }
}

/// Wraps a backend for a run: recorded in the run's cassette, within what is left of its budget, and never asking
/// again what was answered before the run was cut off. Called under the run's lock.
pub(crate) fn client(
    backend: Backend,
    dir: &RunDir,
    config: &Config,
    opening: &Opening<'_>,
) -> Result<ModelClient, RunError> {
    let Opening { settings, usage, calls } = opening;
    // A replay asks in the way that the header states, so it states how this run asks.
    let asked = Capabilities { edit_format: settings.edit_format, ..backend.capabilities() };
    let header = CassetteHeader::new(backend.speaker().provider.clone(), settings.model.clone(), asked);
    let path = dir.path(crucible_run::CASSETTE);
    let writer =
        CassetteWriter::open(&path, &header, Reuse::After(usage.answered)).map_err(CallError::from)?;
    // A call that was cut off before it could be recorded keeps its slot.
    let unrecorded = usage.asked.saturating_sub(writer.calls());
    let recorded = writer.used_before();
    let used = Amount { calls: recorded.calls + unrecorded, ..recorded };
    let limits = BudgetLimits {
        tokens: match config.number("llm.budget.tokens") {
            0 => Limit::Unlimited,
            tokens => Limit::At(tokens),
        },
        ..BudgetLimits::calls(*calls)
    };
    Ok(ModelClient::new(
        backend,
        ClientOptions {
            scanner: Scanner::builtin(),
            recording: Recording::To(Arc::new(writer)),
            retry: RetryPolicy::PHASES,
            budget: CallBudget::resumed(limits, used),
            price: Price::Unknown,
        },
    ))
}

/// A client that answers from a run's own cassette and records nothing.
pub(crate) fn replaying(backend: Backend) -> ModelClient {
    ModelClient::new(
        backend,
        ClientOptions {
            scanner: Scanner::builtin(),
            recording: Recording::Off,
            retry: RetryPolicy::NEVER,
            budget: CallBudget::new(BudgetLimits::calls(u64::MAX)),
            price: Price::Unknown,
        },
    )
}
