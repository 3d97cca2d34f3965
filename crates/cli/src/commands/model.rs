//! From the configuration to a model that can be asked.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crucible_host::http::HttpClient;
use crucible_llm::{
    AddressOrigin, Backend, BudgetLimits, CallBudget, CassetteSource, ClientOptions, Context,
    Fallback, Limit, ListedPrice, Login, ModelClient, ModelProfile, NamedProvider, Price,
    PriceTable, ProviderSettings, RetryPolicy, Selected, construct, micro_dollars, select,
};
use crucible_model::ExitStatus;
use crucible_run::AnswersFrom;
use crucible_sandbox::Sandbox;
use crucible_settings::{PhaseEntry, Settings};

use crate::app::App;
use crate::error::CommandError;

/// The settings that `--provider` and `--cassette` stand for.
pub(crate) fn flags(
    provider: &Option<String>,
    cassette: &Option<PathBuf>,
) -> Vec<(&'static str, String)> {
    let provider = provider
        .iter()
        .map(|provider| ("llm.provider", provider.clone()));
    let cassette = cassette
        .iter()
        .map(|path| ("llm.replay.cassette", path.display().to_string()));
    provider.chain(cassette).collect()
}

/// What a provider is made with: the settings of its section.
pub(crate) fn settings(app: &App, config: &Settings, provider: &str) -> ProviderSettings {
    let key = |name: &str| format!("llm.{provider}.{name}");
    let section = config.provider(provider);
    let cassette = section
        .cassette
        .map(|path| CassetteSource::File(app.absolute(&PathBuf::from(path))));
    // One that is no text is set all the same, and refused by name.
    let unset = |variable: &str| match app.env.get_os(variable) {
        Some(key) => key.to_str().is_some_and(|key| key.trim().is_empty()),
        None => true,
    };
    // A variable that somebody named must hold a key; the default one may be unset.
    let by_default = !config.is_set(&key("api_key_env"));
    let login = match &section.api_key_env {
        None => Login::User,
        Some(variable) if by_default && unset(variable) => Login::User,
        Some(_) => Login::Isolated,
    };
    ProviderSettings {
        base_url: section.base_url,
        address: if config.is_of_project(&key("base_url")) {
            AddressOrigin::Project
        } else {
            AddressOrigin::User
        },
        api_key_env: section.api_key_env,
        model: section.model,
        max_tokens: Some(section.max_tokens).filter(|tokens| *tokens > 0),
        temperature: temperature(config, provider),
        profiles: section
            .profiles
            .into_iter()
            .map(|(name, model)| (name, ModelProfile { model }))
            .collect(),
        phase_profiles: of_phases(config, |phase| &phase.llm_profile),
        phase_templates: of_phases(config, |phase| &phase.prompt_template),
        referer: section.referer,
        title: section.title,
        binary: section.binary.map(PathBuf::from),
        login,
        cassette,
        already_played: None,
    }
}

/// How freely a provider's models choose their words; nothing where they do as they do by themselves.
pub(crate) fn temperature(config: &Settings, provider: &str) -> Option<f64> {
    config
        .provider(provider)
        .temperature
        .filter(|temperature| *temperature >= 0.0)
}

/// A setting of the phases that set it, by the phase's name.
fn of_phases(
    config: &Settings,
    setting: impl Fn(&PhaseEntry) -> &Option<String>,
) -> BTreeMap<String, String> {
    let set = |(name, phase): (&String, &PhaseEntry)| Some((name.clone(), setting(phase).clone()?));
    config.phases.iter().filter_map(set).collect()
}

/// The prices that the configuration lists.
pub(crate) fn prices(config: &Settings) -> Result<PriceTable, CommandError> {
    let mut lines = BTreeMap::new();
    for (name, entry) in &config.prices {
        let bad = |what: &str| {
            CommandError::usage(format!("[llm.prices.{name:?}] {what}"))
                .hint("A price has four lines: input and output in US dollars for a million tokens, date and source.")
        };
        let millionths = |field: &str, price: f64| {
            micro_dollars(price).ok_or_else(|| bad(&format!("has no {field}")))
        };
        let price = Price::PerMillionTokens {
            input: millionths("input", entry.input)?,
            output: millionths("output", entry.output)?,
        };
        let text = |field: &str, text: &Option<String>| {
            text.clone().ok_or_else(|| bad(&format!("has no {field}")))
        };
        let (date, source) = (text("date", &entry.date)?, text("source", &entry.source)?);
        if !is_date(&date) {
            return Err(bad(&format!(
                "has the date {date:?}, which is not a date like 2026-01-31"
            )));
        }
        lines.insert(
            name.clone(),
            ListedPrice {
                price,
                date,
                source,
            },
        );
    }
    Ok(PriceTable::new(lines))
}

fn is_date(text: &str) -> bool {
    format!("{text}T00:00:00Z")
        .parse::<crucible_model::Timestamp>()
        .is_ok()
}

/// Refuses a recording that nobody would answer from.
pub(crate) fn check_cassette(cassette: Option<&Path>, provider: &str) -> Result<(), CommandError> {
    if cassette.is_none() || provider == "replay" {
        return Ok(());
    }
    Err(CommandError::usage(format!(
        "--cassette is of no use to the provider {provider:?}"
    ))
    .hint("Only the provider `replay` reads a recording: --provider replay --cassette FILE."))
}

/// Says what is wrong with prices and limits before anything begins.
pub(crate) fn check_budget(config: &Settings) -> Result<(), CommandError> {
    prices(config)?;
    limits(config).map(drop)
}

/// The limits of a budget, but for its calls.
pub(crate) fn limits(config: &Settings) -> Result<BudgetLimits, CommandError> {
    let some = |number: u64| {
        if number == 0 {
            Limit::Unlimited
        } else {
            Limit::At(number)
        }
    };
    let dollars = config.budget.dollars;
    let Some(limit) = micro_dollars(dollars) else {
        return Err(
            CommandError::usage(format!("llm.budget.dollars is {dollars}"))
                .hint("It takes US dollars, such as 1.5; 0 sets no limit."),
        );
    };
    Ok(BudgetLimits {
        calls: Limit::Unlimited,
        tokens: some(config.budget.tokens),
        micro_dollars: some(limit),
    })
}

/// The provider of this name, made ready, or its fallback; a fallback is reported at once.
pub(crate) fn selected(
    app: &App,
    config: &Settings,
    sandbox: &Arc<Sandbox>,
    name: &str,
) -> Result<Selected, CommandError> {
    selected_with(app, config, &context(app, config, sandbox)?, name)
}

/// The same, with what providers need of the outside world already at hand.
pub(crate) fn selected_with(
    app: &App,
    config: &Settings,
    context: &Context,
    name: &str,
) -> Result<Selected, CommandError> {
    let fallback = match config.llm.fallback_provider.as_deref() {
        Some(other) if other != name => Fallback::To(Box::new(named(app, config, other))),
        Some(_) | None => Fallback::None,
    };
    let selected = select(named(app, config, name), fallback, context)?;
    if let Some(fell_back) = &selected.fell_back {
        app.output
            .remark(&format!("warning: {}", fell_back.warning()));
    }
    let NamedProvider { name, settings } = &selected.candidate;
    if settings.profiles.is_empty() && !settings.phase_profiles.is_empty() && name != "replay" {
        app.output.remark(&format!(
            "note: {name} has none of the profiles that [phases] names; every phase asks its one model"
        ));
    }
    Ok(selected)
}

/// A provider with its settings. A recording is read once, here: an unreadable one is reported when the provider is made ready.
pub(crate) fn named(app: &App, config: &Settings, name: &str) -> NamedProvider {
    let mut settings = settings(app, config, name);
    if let Some(bytes) = settings
        .cassette
        .as_ref()
        .and_then(|source| source.bytes().ok())
    {
        settings.cassette = Some(CassetteSource::Bytes(bytes));
    }
    NamedProvider {
        name: name.to_owned(),
        settings,
    }
}

/// What providers need of the outside world.
pub(crate) fn context(
    app: &App,
    config: &Settings,
    sandbox: &Arc<Sandbox>,
) -> Result<Context, CommandError> {
    let seconds = |key: &str, seconds: u64| match seconds {
        0 => Err(CommandError::usage(format!("{key} is no limit"))
            .hint("It takes a whole number of seconds from 1.")),
        seconds => Ok(Duration::from_secs(seconds)),
    };
    Ok(Context {
        env: app.env.clone(),
        http: Arc::new(
            HttpClient::new()
                .map_err(|error| CommandError::new(ExitStatus::Provider, error.to_string()))?,
        ),
        sandbox: Arc::clone(sandbox),
        // In Crucible's own directory, where nobody else looks and what was left is found again.
        temporary: app
            .home()
            .map_or_else(|_| app.env.temporary_directory(), |home| home.join("tmp")),
        cli_cap: seconds("llm.max_cli_timeout_s", config.llm.max_cli_timeout_s)?,
        http_cap: seconds("llm.max_http_timeout_s", config.llm.max_http_timeout_s)?,
    })
}

/// Makes the backend of a provider.
pub(crate) fn backend(
    app: &App,
    config: &Settings,
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
    ModelClient::new(
        backend,
        ClientOptions {
            retry: RetryPolicy::NEVER,
            ..ClientOptions::new(budget)
        },
    )
}
