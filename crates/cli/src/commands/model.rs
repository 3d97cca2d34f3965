//! From the configuration to a model that can be asked.

use std::path::PathBuf;
use std::sync::Arc;

use crucible_host::config::Config;
use crucible_host::http::HttpClient;
use crucible_llm::{
    Amount, Backend, BudgetLimits, CallBudget, Cassette, CassetteHeader, CassetteSource, CassetteWriter,
    ClientOptions, Context, Limit, ModelClient, Origin, Price, ProviderSettings, Recording, RetryPolicy,
    Reuse, construct,
};
use crucible_model::ExitStatus;
use crucible_run::RunDir;
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
    let login = match (provider, text("api_key_env")) {
        ("claude-cli", Some(variable)) if app.env.get(&variable).is_none_or(str::is_empty) => {
            crucible_llm::Login::User
        }
        _ => crucible_llm::Login::Isolated,
    };
    ProviderSettings {
        base_url: text("base_url"),
        api_key_env: text("api_key_env"),
        model: text("model"),
        max_tokens,
        temperature: config.fraction(&key("temperature")),
        program: text("binary").map(PathBuf::from),
        login,
        cassette,
        already_played: None,
    }
}

/// Makes the backend of a provider.
pub(crate) fn backend(
    app: &App,
    sandbox: &Arc<Sandbox>,
    provider: &str,
    settings: &ProviderSettings,
) -> Result<Backend, CommandError> {
    let context = Context {
        env: app.env.clone(),
        http: Arc::new(
            HttpClient::new().map_err(|error| CommandError::new(ExitStatus::Provider, error.to_string()))?,
        ),
        sandbox: Arc::clone(sandbox),
        temporary: std::env::temp_dir(),
        cli_cap: Context::CLI_CAP,
        http_cap: Context::HTTP_CAP,
    };
    construct(provider, settings, &context).map_err(CommandError::from)
}

/// Wraps a backend for a run: recorded in the run's cassette, within what is left of its budget, and never asking
/// again what was answered before the run was cut off.
pub(crate) fn client(
    backend: Backend,
    dir: &RunDir,
    config: &Config,
    max_calls: u64,
) -> Result<ModelClient, CommandError> {
    let path = dir.path(crucible_run::CASSETTE);
    let usage = crucible_run::usage(dir)?;
    let mut used = Amount { calls: usage.asked, ..Amount::default() };
    if let Ok(bytes) = dir.read(crucible_run::CASSETTE) {
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        if whole > 0 {
            let cassette = Cassette::parse(bytes.get(..whole).unwrap_or_default())?;
            let attempts = cassette.calls.iter().map(|call| call.attempts.len() as u64).sum::<u64>();
            // A call that was cut off before it could be recorded keeps its slot.
            let unrecorded = usage.asked.saturating_sub(cassette.calls.len() as u64);
            used.calls = attempts + unrecorded;
            used.tokens = cassette.calls.iter().map(tokens_of).sum();
        }
    }
    let limits = BudgetLimits {
        tokens: match config.number("llm.budget.tokens") {
            0 => Limit::Unlimited,
            tokens => Limit::At(tokens),
        },
        ..BudgetLimits::calls(max_calls)
    };
    let speaker = backend.speaker();
    let header = CassetteHeader::new(speaker.provider.clone(), speaker.model.clone(), backend.capabilities());
    let writer = CassetteWriter::open(&path, &header, Reuse::After(usage.answered))?;
    // What a run repeats is what it recorded: a retry would be a second question.
    let retry = if backend.origin() == Origin::Recording { RetryPolicy::NEVER } else { RetryPolicy::PHASES };
    Ok(ModelClient::new(
        backend,
        ClientOptions {
            scanner: Scanner::builtin(),
            recording: Recording::To(Arc::new(writer)),
            retry,
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

fn tokens_of(call: &crucible_llm::RecordedCall) -> u64 {
    match &call.outcome {
        crucible_llm::CallOutcome::Answered(result) => {
            result.tokens_input.unwrap_or_default() + result.tokens_output.unwrap_or_default()
        }
        crucible_llm::CallOutcome::Failed(_) => 0,
    }
}
