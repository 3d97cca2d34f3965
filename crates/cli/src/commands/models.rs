//! `crucible models`: which models are configured, what they are good at, what they cost, and what servers offer.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use crucible_llm::{
    ListExtent, ListedPrice, LlmError, Offered, Price, PriceTable, ProviderClass, ProviderKind,
    StructuredOutput, configured, dollars, offered, provider, registry,
};
use crucible_model::{EditFormat, ExitStatus, counted, one_line};
use crucible_sandbox::Runtime;
use crucible_settings::Settings;
use serde::Serialize;

use crate::app::App;
use crate::error::CommandError;
use crate::table::table;

/// The schema of the result as JSON, described in `docs/contracts/models.schema.json`.
const SCHEMA: &str = "crucible-models-v1";

/// How long a server may take to list its models.
const PATIENCE: Duration = Duration::from_secs(30);

/// Show which models are configured, what they are good at and what they cost
///
/// Sends nothing, unless --online asks the servers for their lists of models; that is no question to a model.
///
/// For example: `crucible models --provider openrouter --online`; with --json also the tokens that an answer may take.
#[derive(Args)]
pub(crate) struct Models {
    /// Only this provider
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,
    /// Ask the servers of providers over HTTP what they offer
    #[arg(long)]
    online: bool,
    /// Show what holds for the project in this directory
    #[arg(long, default_value = ".", value_name = "DIR")]
    repo: PathBuf,
}

/// The result as JSON.
#[derive(Serialize)]
struct Document {
    schema_version: &'static str,
    /// The provider that is to answer.
    provider: Option<String>,
    /// The table of prices is one of the configuration; without a line in it a price is not known.
    providers: Vec<Row>,
}

/// One provider with its model.
#[derive(Serialize)]
struct Row {
    provider: &'static str,
    summary: &'static str,
    model: Option<String>,
    max_tokens: Option<u64>,
    edit_format: EditFormat,
    structured_output: StructuredOutput,
    evidence: &'static str,
    /// Absent where the configuration lists none.
    price: Option<PriceRow>,
    /// Absent where the server was not asked.
    offered: Option<OfferedRow>,
}

/// What a million tokens cost, in millionths of a US dollar, and who says so.
#[derive(Serialize)]
struct PriceRow {
    input_micro_dollars: u64,
    output_micro_dollars: u64,
    date: String,
    source: String,
}

/// What a server offers, or why that is not known.
#[derive(Serialize)]
struct OfferedRow {
    /// Whether these are all; absent where the server did not tell.
    complete: Option<bool>,
    models: Vec<ModelRow>,
    error: Option<String>,
}

/// One model that is offered.
#[derive(Serialize)]
struct ModelRow {
    id: String,
    context_tokens: Option<u64>,
    /// In millionths of a US dollar for a million tokens; absent where the server does not say.
    input_micro_dollars: Option<u64>,
    output_micro_dollars: Option<u64>,
}

impl Models {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, CommandError> {
        let config = app.config_of(&self.repo)?;
        let prices = configured::prices(&config)?;
        let runtime = app.runtime();
        let kinds = match &self.provider {
            Some(name) => vec![provider(name)?],
            None => registry().to_vec(),
        };
        let mut providers: Vec<Row> = kinds
            .iter()
            .map(|kind| Row::new(&runtime, &config, &prices, *kind))
            .collect();
        if self.online {
            let answers = self.ask(app, &config, &kinds)?;
            for (row, answer) in providers.iter_mut().zip(answers) {
                row.offered = answer;
            }
        }
        let chosen = config.llm.provider.clone();
        if app.output.is_json() {
            app.output.json(&Document {
                schema_version: SCHEMA,
                provider: chosen,
                providers,
            })?;
        } else {
            show(app, &providers);
        }
        Ok(ExitStatus::Success)
    }

    /// What the servers offer, asked side by side. One that was named must answer; of several, each that does not says why.
    fn ask(
        &self,
        app: &App,
        config: &Settings,
        kinds: &[&'static dyn ProviderKind],
    ) -> Result<Vec<Option<OfferedRow>>, CommandError> {
        let runtime = app.runtime();
        let context = configured::context(&runtime, config)?;
        app.block_on(async {
            let mut tasks = Vec::new();
            for kind in kinds {
                let over_http = matches!(kind.class(), ProviderClass::Http { .. });
                let asked = (over_http || self.provider.is_some()).then(|| {
                    let settings = configured::provider_settings(&runtime, config, kind.name());
                    let (name, context) = (kind.name(), context.clone());
                    tokio::spawn(async move { offered(name, &settings, &context, PATIENCE).await })
                });
                tasks.push(asked);
            }
            let mut rows = Vec::new();
            for task in tasks {
                let Some(task) = task else {
                    rows.push(None);
                    continue;
                };
                let answer = task.await.map_err(|error| {
                    CommandError::new(
                        ExitStatus::Refused,
                        format!("asking a server ended abnormally: {error}"),
                    )
                })?;
                rows.push(Some(match answer {
                    Err(error) if self.provider.is_some() => return Err(no_list(error)),
                    answer => OfferedRow::from(answer),
                }));
            }
            Ok(rows)
        })
    }
}

impl Row {
    fn new(
        runtime: &Runtime<'_>,
        config: &Settings,
        prices: &PriceTable,
        kind: &dyn ProviderKind,
    ) -> Self {
        let settings = configured::provider_settings(runtime, config, kind.name());
        let capabilities = kind.capabilities();
        let line = settings
            .model
            .as_deref()
            .and_then(|model| prices.line(kind.name(), model));
        Self {
            provider: kind.name(),
            summary: kind.summary(),
            max_tokens: settings.max_tokens,
            edit_format: capabilities.edit_format,
            structured_output: capabilities.structured_output,
            evidence: kind.evidence(),
            price: line.and_then(PriceRow::new),
            offered: None,
            model: settings.model,
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
                    error: Some(no_list(error).message),
                };
            }
        };
        let row = |model: crucible_llm::OfferedModel| {
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

/// Why there is no list. Its time limit is not one of the settings that a call's error would name.
fn no_list(error: LlmError) -> CommandError {
    match error {
        LlmError::Timeout {
            provider, duration, ..
        } => CommandError::new(
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

fn show(app: &App, rows: &[Row]) {
    let mut all = table([
        "provider",
        "model",
        "changes as",
        "structured output",
        "price for a million tokens",
    ]);
    for row in rows {
        let price = match &row.price {
            Some(PriceRow {
                input_micro_dollars: input,
                output_micro_dollars: output,
                date,
                source,
            }) => {
                format!(
                    "{} in, {} out ({source}, {date})",
                    dollars(*input),
                    dollars(*output)
                )
            }
            None => "unknown".to_owned(),
        };
        let model = row.model.as_deref().unwrap_or("-");
        let cells = [
            row.provider,
            model,
            row.edit_format.as_str(),
            row.structured_output.as_str(),
            &price,
        ];
        all.add_row(cells.map(one_line));
    }
    app.output.line(&all.trim_fmt());
    for row in rows {
        app.output.line(&format!(
            "\n{}: {}\n  {}",
            row.provider, row.summary, row.evidence
        ));
        if let Some(offered) = &row.offered {
            show_offered(app, offered);
        }
    }
}

fn show_offered(app: &App, offered: &OfferedRow) {
    if let Some(error) = &offered.error {
        app.output.line(&format!(
            "  what it offers is not known: {}",
            one_line(error)
        ));
        return;
    }
    let more = if offered.complete == Some(false) {
        ", and the server has more"
    } else {
        ""
    };
    app.output.line(&format!(
        "  offers {}{more}",
        counted(offered.models.len() as u64, "model")
    ));
    let mut list = table(["  model", "context", "in", "out"]);
    for model in &offered.models {
        let price = |part: Option<u64>| part.map_or_else(|| "unknown".to_owned(), dollars);
        let context = model
            .context_tokens
            .map_or_else(|| "unknown".to_owned(), |tokens| tokens.to_string());
        list.add_row([
            format!("  {}", one_line(&model.id)),
            context,
            price(model.input_micro_dollars),
            price(model.output_micro_dollars),
        ]);
    }
    if !offered.models.is_empty() {
        app.output.line(&list.trim_fmt());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_takes_too_long_names_no_setting_of_calls() {
        let (call, cap) = (PATIENCE, Duration::from_secs(300));
        let (provider, model) = ("gateway".to_owned(), "list of models".to_owned());
        let error = no_list(LlmError::Timeout {
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
