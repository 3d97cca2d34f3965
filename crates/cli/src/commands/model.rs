//! From the configuration to a model that can be asked.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crucible_host::config::{Config, SettingSource};
use crucible_host::http::HttpClient;
use crucible_llm::{
    AddressOrigin, Backend, BudgetLimits, CallBudget, CassetteSource, ClientOptions, Context, Fallback,
    Limit, ListedPrice, Login, ModelClient, ModelProfile, NamedProvider, Price, PriceTable, ProviderSettings,
    RetryPolicy, Selected, construct, micro_dollars, select,
};
use crucible_model::ExitStatus;
use crucible_run::AnswersFrom;
use crucible_sandbox::Sandbox;

use crate::app::App;
use crate::error::CommandError;

/// The settings that `--provider` and `--cassette` stand for.
pub(crate) fn flags(provider: &Option<String>, cassette: &Option<PathBuf>) -> Vec<(&'static str, String)> {
    let provider = provider.iter().map(|provider| ("llm.provider", provider.clone()));
    let cassette = cassette.iter().map(|path| ("llm.replay.cassette", path.display().to_string()));
    provider.chain(cassette).collect()
}

/// What a provider is made with: the settings of its section.
pub(crate) fn settings(app: &App, config: &Config, provider: &str) -> ProviderSettings {
    let key = |name: &str| format!("llm.{provider}.{name}");
    let text = |name: &str| config.text(&key(name)).map(str::to_owned);
    let max_tokens = Some(config.number(&key("max_tokens"))).filter(|tokens| *tokens > 0);
    let cassette = text("cassette").map(|path| CassetteSource::File(app.absolute(&PathBuf::from(path))));
    // One that is no text is set all the same, and refused by name.
    let unset = |variable: &str| match app.env.get_os(variable) {
        Some(key) => key.to_str().is_some_and(|key| key.trim().is_empty()),
        None => true,
    };
    // A variable that somebody named must hold a key; the default one may be unset.
    let by_default = config.source(&key("api_key_env")) == Some(&SettingSource::Default);
    let login = match text("api_key_env") {
        None => Login::User,
        Some(variable) if by_default && unset(&variable) => Login::User,
        Some(_) => Login::Isolated,
    };
    ProviderSettings {
        base_url: text("base_url"),
        address: if config.is_of_project(&key("base_url")) {
            AddressOrigin::Project
        } else {
            AddressOrigin::User
        },
        api_key_env: text("api_key_env"),
        model: text("model"),
        max_tokens,
        temperature: temperature(config, provider),
        profiles: profiles(config, provider),
        phase_profiles: of_phases(config, "llm_profile"),
        phase_templates: of_phases(config, "prompt_template"),
        referer: text("referer"),
        title: text("title"),
        binary: text("binary").map(PathBuf::from),
        login,
        cassette,
        already_played: None,
    }
}

/// How freely a provider's models choose their words; nothing where they do as they do by themselves.
pub(crate) fn temperature(config: &Config, provider: &str) -> Option<f64> {
    config.fraction(&format!("llm.{provider}.temperature")).filter(|temperature| *temperature >= 0.0)
}

/// The named choices of a model that a provider's section holds.
fn profiles(config: &Config, provider: &str) -> BTreeMap<String, ModelProfile> {
    let table = format!("llm.{provider}.profiles");
    let profile =
        |name: &str| ModelProfile { model: config.text(&format!("{table}.{name}.model")).map(str::to_owned) };
    config.names_below(&table).into_iter().map(|name| (name.clone(), profile(&name))).collect()
}

/// What phases say of a key, by the phase's name.
fn of_phases(config: &Config, key: &str) -> BTreeMap<String, String> {
    let value = |phase: &str| config.text(&format!("phases.{phase}.{key}")).map(str::to_owned);
    config
        .names_below("phases")
        .into_iter()
        .filter_map(|phase| Some((phase.clone(), value(&phase)?)))
        .collect()
}

/// The prices that the configuration lists.
pub(crate) fn prices(config: &Config) -> Result<PriceTable, CommandError> {
    let mut lines = BTreeMap::new();
    for name in config.names_below("llm.prices") {
        let bad = |what: &str| {
            CommandError::usage(format!("[llm.prices.{name:?}] {what}"))
                .hint("A price has four lines: input and output in US dollars for a million tokens, date and source.")
        };
        let key = |field: &str| format!("llm.prices.{name}.{field}");
        let millionths = |field: &str| {
            let price = config.fraction(&key(field)).and_then(micro_dollars);
            price.ok_or_else(|| bad(&format!("has no {field}")))
        };
        let price = Price::PerMillionTokens { input: millionths("input")?, output: millionths("output")? };
        let text = |field: &str| {
            config.text(&key(field)).map(str::to_owned).ok_or_else(|| bad(&format!("has no {field}")))
        };
        let (date, source) = (text("date")?, text("source")?);
        if !is_date(&date) {
            return Err(bad(&format!("has the date {date:?}, which is none like 2026-01-31")));
        }
        lines.insert(name.clone(), ListedPrice { price, date, source });
    }
    Ok(PriceTable::new(lines))
}

fn is_date(text: &str) -> bool {
    format!("{text}T00:00:00Z").parse::<crucible_model::Timestamp>().is_ok()
}

/// Refuses a recording that nobody would answer from.
pub(crate) fn check_cassette(cassette: Option<&Path>, provider: &str) -> Result<(), CommandError> {
    if cassette.is_none() || provider == "replay" {
        return Ok(());
    }
    Err(CommandError::usage(format!("--cassette is of no use to the provider {provider:?}"))
        .hint("A recording answers for the provider `replay`: --provider replay --cassette FILE."))
}

/// Says what is wrong with prices and limits before anything begins.
pub(crate) fn check_budget(config: &Config) -> Result<(), CommandError> {
    prices(config)?;
    limits(config).map(drop)
}

/// The limits of a budget, but for its calls.
pub(crate) fn limits(config: &Config) -> Result<BudgetLimits, CommandError> {
    let some = |number: u64| if number == 0 { Limit::Unlimited } else { Limit::At(number) };
    let dollars = config.fraction("llm.budget.dollars").unwrap_or_default();
    let Some(limit) = micro_dollars(dollars) else {
        return Err(CommandError::usage(format!("llm.budget.dollars is {dollars}"))
            .hint("It takes US dollars, such as 1.5; 0 sets no limit."));
    };
    Ok(BudgetLimits {
        calls: Limit::Unlimited,
        tokens: some(config.number("llm.budget.tokens")),
        micro_dollars: some(limit),
    })
}

/// The provider of this name, made ready, or its fallback; a fallback is said at once.
pub(crate) fn selected(
    app: &App,
    config: &Config,
    sandbox: &Arc<Sandbox>,
    name: &str,
) -> Result<Selected, CommandError> {
    selected_with(app, config, &context(app, config, sandbox)?, name)
}

/// The same, with what providers need of the outside world already at hand.
pub(crate) fn selected_with(
    app: &App,
    config: &Config,
    context: &Context,
    name: &str,
) -> Result<Selected, CommandError> {
    let fallback = match config.text("llm.fallback_provider") {
        Some(other) if other != name => Fallback::To(Box::new(named(app, config, other))),
        Some(_) | None => Fallback::None,
    };
    let selected = select(named(app, config, name), fallback, context)?;
    if let Some(fell_back) = &selected.fell_back {
        app.output.remark(&format!("warning: {}", fell_back.warning()));
    }
    let NamedProvider { name, settings } = &selected.candidate;
    if settings.profiles.is_empty() && !settings.phase_profiles.is_empty() && name != "replay" {
        app.output.remark(&format!(
            "note: {name} has none of the profiles that [phases] names; every phase asks its one model"
        ));
    }
    Ok(selected)
}

/// A provider with its settings. A recording is read once, here: one that cannot be read is told when it is made ready.
pub(crate) fn named(app: &App, config: &Config, name: &str) -> NamedProvider {
    let mut settings = settings(app, config, name);
    if let Some(bytes) = settings.cassette.as_ref().and_then(|source| source.bytes().ok()) {
        settings.cassette = Some(CassetteSource::Bytes(bytes));
    }
    NamedProvider { name: name.to_owned(), settings }
}

/// What providers need of the outside world.
pub(crate) fn context(app: &App, config: &Config, sandbox: &Arc<Sandbox>) -> Result<Context, CommandError> {
    let seconds = |key: &str| match config.number(key) {
        0 => Err(CommandError::usage(format!("{key} is no limit"))
            .hint("It takes a whole number of seconds from 1.")),
        seconds => Ok(Duration::from_secs(seconds)),
    };
    Ok(Context {
        env: app.env.clone(),
        http: Arc::new(
            HttpClient::new().map_err(|error| CommandError::new(ExitStatus::Provider, error.to_string()))?,
        ),
        sandbox: Arc::clone(sandbox),
        // In Crucible's own directory, where nobody else looks and what was left is found again.
        temporary: app.home().map_or_else(|_| app.env.temporary_directory(), |home| home.join("tmp")),
        cli_cap: seconds("llm.max_cli_timeout_s")?,
        http_cap: seconds("llm.max_http_timeout_s")?,
    })
}

/// Makes the backend of a provider.
pub(crate) fn backend(
    app: &App,
    config: &Config,
    sandbox: &Arc<Sandbox>,
    provider: &str,
    settings: &ProviderSettings,
) -> Result<Backend, CommandError> {
    construct(provider, settings, &context(app, config, sandbox)?).map_err(CommandError::from)
}

/// Who answers a new run: a recording was read into the settings when it was made ready, so the run keeps the very bytes
/// that it is answered from.
pub(crate) fn answers(chosen: &NamedProvider) -> AnswersFrom {
    match &chosen.settings.cassette {
        Some(CassetteSource::Bytes(bytes)) if chosen.name == "replay" => {
            AnswersFrom::Recording(Arc::clone(bytes))
        }
        Some(_) | None => AnswersFrom::Provider,
    }
}

/// A client that answers from a run's own cassette and records nothing.
pub(crate) fn replaying(backend: Backend) -> ModelClient {
    let budget = CallBudget::new(BudgetLimits::calls(u64::MAX));
    ModelClient::new(backend, ClientOptions { retry: RetryPolicy::NEVER, ..ClientOptions::new(budget) })
}
