//! `crucible models`: which models are configured, what they are good at, what they cost, and what servers offer.

use std::path::PathBuf;

use clap::Args;
use crucible_llm::{ModelList, OfferedRow, PriceRow, ProviderRow, dollars};
use crucible_model::{ExitStatus, Failure, counted, one_line};
use crucible_terminal::table;

use crate::app::App;

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

impl Models {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let config = app.config_of(&self.repo)?;
        let runtime = app.runtime();
        let mut list = ModelList::new(&runtime, &config, self.provider.as_deref())?;
        if self.online {
            app.block_on(list.ask_servers(&runtime, &config))?;
        }
        app.output.show(
            || &list,
            || {
                show(app, &list.providers);
            },
        )
    }
}

fn show(app: &App, rows: &[ProviderRow]) {
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
