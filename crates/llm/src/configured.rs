//! From the settings to a backend that can be called.
//!
//! Nothing here sends a request. Prices and limits that cannot be used are reported before a call is made.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crucible_host::http::HttpClient;
use crucible_model::{ExitStatus, Failure};
use crucible_sandbox::{Runtime, Strength, StrengthError};
use crucible_settings::{PhaseEntry, Settings};

use crate::backend::Backend;
use crate::budget::{BudgetLimits, CallBudget, Limit};
use crate::cassette_source::CassetteSource;
use crate::client::{ClientOptions, ModelClient};
use crate::context::Context;
use crate::error::LlmError;
use crate::price::{ListedPrice, Price, PriceTable, micro_dollars};
use crate::provider_settings::{AddressOrigin, Login, ModelProfile, ProviderSettings};
use crate::registry::construct;
use crate::retry::RetryPolicy;
use crate::select::{Fallback, NamedProvider, Selected, select};
use crate::strategy::ExecutionStrategy;

/// Returns the settings of a provider's section. `runtime` gives the environment and the working directory.
#[must_use]
pub fn provider_settings(
    runtime: &Runtime<'_>,
    settings: &Settings,
    provider: &str,
) -> ProviderSettings {
    let key = |name: &str| format!("llm.{provider}.{name}");
    let section = settings.provider(provider);
    let cassette = section
        .cassette
        .map(|path| CassetteSource::File(runtime.absolute(&PathBuf::from(path))));
    // One that is not text is set all the same, and refused by name.
    let unset = |variable: &str| match runtime.env.get_os(variable) {
        Some(key) => key.to_str().is_some_and(|key| key.trim().is_empty()),
        None => true,
    };
    // A variable that somebody named must hold a key; the default one may be unset.
    let by_default = !settings.is_set(&key("api_key_env"));
    let login = match &section.api_key_env {
        None => Login::User,
        Some(variable) if by_default && unset(variable) => Login::User,
        Some(_) => Login::Isolated,
    };
    ProviderSettings {
        base_url: section.base_url,
        address: if settings.is_of_project(&key("base_url")) {
            AddressOrigin::Project
        } else {
            AddressOrigin::User
        },
        api_key_env: section.api_key_env,
        model: section.model,
        max_tokens: Some(section.max_tokens).filter(|tokens| *tokens > 0),
        temperature: temperature(settings, provider),
        profiles: section
            .profiles
            .into_iter()
            .map(|(name, model)| (name, ModelProfile { model }))
            .collect(),
        phase_profiles: of_phases(settings, |phase| &phase.llm_profile),
        phase_templates: of_phases(settings, |phase| &phase.prompt_template),
        referer: section.referer,
        title: section.title,
        binary: section.binary.map(PathBuf::from),
        login,
        cassette,
        already_played: None,
    }
}

/// Returns the temperature that the settings give a provider's models; `None` for the models' own.
#[must_use]
pub fn temperature(settings: &Settings, provider: &str) -> Option<f64> {
    settings
        .provider(provider)
        .temperature
        .filter(|temperature| *temperature >= 0.0)
}

/// Returns one setting of each phase that has it, by the phase's name.
fn of_phases(
    settings: &Settings,
    setting: impl Fn(&PhaseEntry) -> &Option<String>,
) -> BTreeMap<String, String> {
    let set = |(name, phase): (&String, &PhaseEntry)| Some((name.clone(), setting(phase).clone()?));
    settings.phases.iter().filter_map(set).collect()
}

/// Reads the price list.
///
/// # Errors
///
/// Fails if a price has no amount, no date or no source.
pub fn prices(settings: &Settings) -> Result<PriceTable, Failure> {
    let mut lines = BTreeMap::new();
    for (name, entry) in &settings.prices {
        let bad = |what: &str| {
            Failure::usage(format!("[llm.prices.{name:?}] {what}"))
                .hint("A price has four fields: input and output in US dollars per million tokens, date and source.")
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

/// Refuses `--cassette` for a provider that does not use it.
///
/// # Errors
///
/// Fails if a cassette is named and the provider is not `replay`.
pub fn check_cassette(cassette: Option<&Path>, provider: &str) -> Result<(), Failure> {
    if cassette.is_none() || provider == "replay" {
        return Ok(());
    }
    Err(
        Failure::usage(format!("the provider {provider:?} does not use --cassette")).hint(
            "Only the provider `replay` reads a recording: --provider replay --cassette FILE.",
        ),
    )
}

/// Reads the configured strength of the sandbox.
///
/// # Errors
///
/// Fails if the setting is not a strength.
pub fn strength(settings: &Settings) -> Result<Strength, Failure> {
    let named = settings.sandbox.strength.as_deref().unwrap_or_default();
    named
        .parse()
        .map_err(|error: StrengthError| Failure::usage(format!("sandbox.strength: {error}")))
}

/// Refuses an execution strategy other than the one in which Crucible alone acts on an answer.
///
/// # Errors
///
/// Fails if the settings name another strategy.
pub fn require_controlled(settings: &Settings) -> Result<(), Failure> {
    let named = settings
        .llm
        .execution_strategy
        .as_deref()
        .unwrap_or_default();
    match named.parse::<ExecutionStrategy>() {
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::usage(error.to_string())
            .hint("Set [llm] execution_strategy = \"controlled\".")),
    }
}

/// Checks the price list and the limits of a budget, before anything starts.
///
/// # Errors
///
/// Fails as [`prices`] and [`limits`] do.
pub fn check_budget(settings: &Settings) -> Result<(), Failure> {
    prices(settings)?;
    limits(settings).map(drop)
}

/// Reads the limits of a budget.
///
/// # Errors
///
/// Fails if no call is allowed, or if the limit in dollars is not an amount. An answer of a person counts as a call.
pub fn limits(settings: &Settings) -> Result<BudgetLimits, Failure> {
    let some = |number: u64| {
        if number == 0 {
            Limit::Unlimited
        } else {
            Limit::At(number)
        }
    };
    let dollars = settings.budget.dollars;
    let Some(limit) = micro_dollars(dollars) else {
        return Err(
            Failure::usage(format!("invalid llm.budget.dollars {dollars}"))
                .hint("Set US dollars, such as 1.5; 0 means no limit."),
        );
    };
    Ok(BudgetLimits {
        calls: Limit::At(positive("llm.budget.calls", settings.budget.calls)?),
        tokens: some(settings.budget.tokens),
        micro_dollars: some(limit),
    })
}

/// Reads a limit that must be greater than zero for a model to be called.
///
/// # Errors
///
/// Fails if it is zero.
pub fn positive(key: &str, value: u64) -> Result<u64, Failure> {
    match value {
        0 => Err(
            Failure::usage(format!("{key} is 0, so no model can be called"))
                .hint("Set a whole number of at least 1."),
        ),
        number => Ok(number),
    }
}

/// Prepares the provider of this name, or its fallback. The use of a fallback is a notice.
///
/// # Errors
///
/// Fails if a time limit is zero, or if neither can be prepared.
pub fn selected(
    runtime: &Runtime<'_>,
    settings: &Settings,
    name: &str,
) -> Result<Selected, Failure> {
    let context = context(runtime, settings)?;
    Ok(selected_with(runtime, settings, &context, name)?)
}

/// Prepares a provider as [`selected`] does, with an existing context.
///
/// # Errors
///
/// Fails if neither the provider nor its fallback can be prepared.
pub fn selected_with(
    runtime: &Runtime<'_>,
    settings: &Settings,
    context: &Context,
    name: &str,
) -> Result<Selected, LlmError> {
    let fallback = match settings.llm.fallback_provider.as_deref() {
        Some(other) if other != name => {
            Fallback::To(Box::new(named_provider(runtime, settings, other)))
        }
        Some(_) | None => Fallback::None,
    };
    let selected = select(named_provider(runtime, settings, name), fallback, context)?;
    if let Some(fell_back) = &selected.fell_back {
        runtime
            .notices
            .notice(&format!("warning: {}", fell_back.warning()));
    }
    let NamedProvider { name, settings } = &selected.candidate;
    if settings.profiles.is_empty() && !settings.phase_profiles.is_empty() && name != "replay" {
        runtime.notices.notice(&format!(
            "note: {name} has none of the profiles that [phases] names; every phase asks its one model"
        ));
    }
    Ok(selected)
}

/// Returns a provider with its settings. A recording is read here, once; if that fails, preparing the provider
/// reports it.
#[must_use]
pub fn named_provider(runtime: &Runtime<'_>, settings: &Settings, name: &str) -> NamedProvider {
    let mut settings = provider_settings(runtime, settings, name);
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

/// Returns what providers need of the outside world.
///
/// # Errors
///
/// Fails if a time limit is zero, or if the HTTP client cannot be created.
pub fn context(runtime: &Runtime<'_>, settings: &Settings) -> Result<Context, Failure> {
    let seconds = |key: &str, seconds: u64| match seconds {
        0 => Err(Failure::usage(format!("{key} must be greater than 0"))
            .hint("Set a whole number of seconds, at least 1.")),
        seconds => Ok(Duration::from_secs(seconds)),
    };
    let llm = &settings.llm;
    Ok(Context {
        env: runtime.env.clone(),
        http: Arc::new(
            HttpClient::new()
                .map_err(|error| Failure::new(ExitStatus::Provider, error.to_string()))?,
        ),
        sandbox: Arc::clone(&runtime.sandbox),
        temporary: runtime.temporary_directory(),
        cli_cap: seconds("llm.max_cli_timeout_s", llm.max_cli_timeout_s)?,
        http_cap: seconds("llm.max_http_timeout_s", llm.max_http_timeout_s)?,
    })
}

/// Prepares the backend of a provider with these settings, without a fallback.
///
/// # Errors
///
/// Fails if a time limit is zero, or if the provider cannot be prepared.
pub fn backend(
    runtime: &Runtime<'_>,
    settings: &Settings,
    provider: &str,
    of_provider: &ProviderSettings,
) -> Result<Backend, Failure> {
    Ok(construct(
        provider,
        of_provider,
        &context(runtime, settings)?,
    )?)
}

/// Creates a client that answers from a recording and records nothing.
#[must_use]
pub fn replaying(backend: Backend) -> ModelClient {
    let budget = CallBudget::new(BudgetLimits::calls(u64::MAX));
    ModelClient::new(
        backend,
        ClientOptions {
            retry: RetryPolicy::NEVER,
            ..ClientOptions::new(budget)
        },
    )
}
