//! The models that are configured, what they cost, and what their servers offer.

use std::time::Duration;

use crucible_model::{EditFormat, ExitStatus, Failure};
use crucible_sandbox::Runtime;
use crucible_settings::Settings;
use serde::Serialize;

use crate::availability::offered;
use crate::capability::StructuredOutput;
use crate::configured;
use crate::error::LlmError;
use crate::offered::{ListExtent, Offered, OfferedModel};
use crate::price::{ListedPrice, Price, PriceTable};
use crate::provider_kind::{ProviderClass, ProviderKind};
use crate::registry::{provider, registry};

/// The schema of the result as JSON, described in `docs/contracts/models.schema.json`.
const SCHEMA: &str = "crucible-models-v1";

/// How long a server may take to list its models.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The providers with their models. It is the result of `models` as JSON.
#[derive(Serialize)]
pub struct ModelList {
    schema_version: &'static str,
    /// The chosen provider.
    provider: Option<String>,
    /// The listed providers.
    pub providers: Vec<ProviderRow>,
    #[serde(skip)]
    kinds: Vec<&'static dyn ProviderKind>,
    /// Whether one provider was named.
    #[serde(skip)]
    is_named: bool,
}

/// One provider with its model.
#[derive(Serialize)]
pub struct ProviderRow {
    /// The name of the provider.
    pub provider: &'static str,
    /// What the provider is.
    pub summary: &'static str,
    /// The configured model.
    pub model: Option<String>,
    /// The most tokens of an answer.
    pub max_tokens: Option<u64>,
    /// The form of edits.
    pub edit_format: EditFormat,
    /// How answers are held to a schema.
    pub structured_output: StructuredOutput,
    /// Where the capabilities are documented.
    pub evidence: &'static str,
    /// Absent where the configuration lists none.
    pub price: Option<PriceRow>,
    /// Absent where the server was not asked.
    pub offered: Option<OfferedRow>,
}

/// What a million tokens cost, in millionths of a US dollar, and who says so.
#[derive(Serialize)]
pub struct PriceRow {
    /// For input.
    pub input_micro_dollars: u64,
    /// For output.
    pub output_micro_dollars: u64,
    /// The date of the price.
    pub date: String,
    /// Who says so.
    pub source: String,
}

/// What a server offers, or why that is not known.
#[derive(Serialize)]
pub struct OfferedRow {
    /// Whether the list is complete; absent if the server did not say.
    pub complete: Option<bool>,
    /// The models.
    pub models: Vec<ModelRow>,
    /// Why the list is not known.
    pub error: Option<String>,
}

/// One model that is offered.
#[derive(Serialize)]
pub struct ModelRow {
    /// The name of the model.
    pub id: String,
    /// The size of its context.
    pub context_tokens: Option<u64>,
    /// In millionths of a US dollar for a million tokens; absent where the server does not say.
    pub input_micro_dollars: Option<u64>,
    /// For output.
    pub output_micro_dollars: Option<u64>,
}

impl ModelList {
    /// Lists every provider, or the one of this name. Sends nothing.
    ///
    /// # Errors
    ///
    /// Fails if a price cannot be used, or if there is no such provider.
    pub fn new(
        runtime: &Runtime<'_>,
        settings: &Settings,
        named: Option<&str>,
    ) -> Result<Self, Failure> {
        let prices = configured::prices(settings)?;
        let kinds = match named {
            Some(name) => vec![provider(name)?],
            None => registry().to_vec(),
        };
        let row =
            |kind: &&'static dyn ProviderKind| ProviderRow::new(runtime, settings, &prices, *kind);
        Ok(Self {
            schema_version: SCHEMA,
            provider: settings.llm.provider.clone(),
            providers: kinds.iter().map(row).collect(),
            kinds,
            is_named: named.is_some(),
        })
    }

    /// Queries the servers concurrently and adds their models. A named provider must answer; otherwise each failure is
    /// stored in its row.
    ///
    /// # Errors
    ///
    /// Fails if a time limit is zero, or if the named provider does not answer.
    pub async fn ask_servers(
        &mut self,
        runtime: &Runtime<'_>,
        settings: &Settings,
    ) -> Result<(), Failure> {
        let context = configured::context(runtime, settings)?;
        let mut tasks = Vec::new();
        for kind in &self.kinds {
            let is_http = matches!(kind.class(), ProviderClass::Http { .. });
            tasks.push((is_http || self.is_named).then(|| {
                let of_provider = configured::provider_settings(runtime, settings, kind.name());
                let (name, context) = (kind.name(), context.clone());
                tokio::spawn(async move { offered(name, &of_provider, &context, TIMEOUT).await })
            }));
        }
        for (row, task) in self.providers.iter_mut().zip(tasks) {
            let Some(task) = task else { continue };
            let answer = task.await.map_err(|error| {
                Failure::refused(format!("cannot list the models of a server: {error}"))
            })?;
            row.offered = Some(match answer {
                Err(error) if self.is_named => return Err(list_error(error)),
                answer => OfferedRow::from(answer),
            });
        }
        Ok(())
    }
}

impl ProviderRow {
    fn new(
        runtime: &Runtime<'_>,
        settings: &Settings,
        prices: &PriceTable,
        kind: &dyn ProviderKind,
    ) -> Self {
        let of_provider = configured::provider_settings(runtime, settings, kind.name());
        let capabilities = kind.capabilities();
        let line = of_provider
            .model
            .as_deref()
            .and_then(|model| prices.line(kind.name(), model));
        Self {
            provider: kind.name(),
            summary: kind.summary(),
            max_tokens: of_provider.max_tokens,
            edit_format: capabilities.edit_format,
            structured_output: capabilities.structured_output,
            evidence: kind.evidence(),
            price: line.and_then(PriceRow::new),
            offered: None,
            model: of_provider.model,
        }
    }
}

impl PriceRow {
    fn new(line: &ListedPrice) -> Option<Self> {
        let (input_micro_dollars, output_micro_dollars) = parts(line.price)?;
        Some(Self {
            input_micro_dollars,
            output_micro_dollars,
            date: line.date.clone(),
            source: line.source.clone(),
        })
    }
}

impl From<Result<Offered, LlmError>> for OfferedRow {
    fn from(answer: Result<Offered, LlmError>) -> Self {
        let offered = match answer {
            Ok(offered) => offered,
            Err(error) => {
                return Self {
                    complete: None,
                    models: Vec::new(),
                    error: Some(list_error(error).message),
                };
            }
        };
        let row = |model: OfferedModel| {
            let (input_micro_dollars, output_micro_dollars) = parts(model.price).unzip();
            let context_tokens = model.context_tokens;
            ModelRow {
                id: model.id,
                context_tokens,
                input_micro_dollars,
                output_micro_dollars,
            }
        };
        Self {
            complete: Some(offered.extent == ListExtent::Whole),
            models: offered.models.into_iter().map(row).collect(),
            error: None,
        }
    }
}

/// Returns the error of a failed listing. It names no setting, because its time limit is fixed.
fn list_error(error: LlmError) -> Failure {
    match error {
        LlmError::Timeout {
            provider, duration, ..
        } => Failure::new(
            ExitStatus::TimedOut,
            format!(
                "{provider}: no list of models within {} s",
                duration.as_secs()
            ),
        )
        .hint("Check that base_url names a model server that lists its models, and try again."),
        error => error.into(),
    }
}

/// Both parts of a price that is known.
fn parts(price: Price) -> Option<(u64, u64)> {
    match price {
        Price::Unknown => None,
        Price::PerMillionTokens { input, output } => Some((input, output)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_timeout_omits_call_settings() {
        let (call, cap) = (TIMEOUT, Duration::from_secs(300));
        let (provider, model) = ("gateway".to_owned(), "list of models".to_owned());
        let error = list_error(LlmError::Timeout {
            provider,
            model,
            duration: call,
            call,
            cap,
        });
        assert_eq!(error.status, ExitStatus::TimedOut);
        assert_eq!(error.message, "gateway: no list of models within 30 s");
    }
}
