//! `crucible crawl search`: ranks repositories and explains each score.

use clap::Args;
use crucible_crawl::{CheckedArtifact, SearchV1, SessionPurpose, ValidatedDocument};
use crucible_model::{ExitStatus, Failure};

use super::flags::{OutputArgs, Searching, Trace};
use super::host::CommandHost;
use super::{ask, show};
use crate::app::App;

/// Search GitHub and rank the results with reasons
///
/// No model is called: the score is a formula over the data that GitHub returns. For example:
/// `crucible crawl search ripgrep`, or
/// `crucible crawl search ripgrep --format json | jq .results[0].full_name`
#[derive(Args, Default)]
pub(crate) struct Search {
    /// The text to search for
    #[arg(value_name = "QUERY", conflicts_with = "named")]
    pub(crate) query: Option<String>,
    /// The text to search for, as an option
    #[arg(id = "named", long = "query", value_name = "QUERY")]
    pub(crate) named: Option<String>,
    /// Print the results as JSON, one per line
    #[arg(long, conflicts_with = "format")]
    pub(crate) ndjson: bool,
    #[command(flatten)]
    pub(crate) searching: Searching,
    #[command(flatten)]
    pub(crate) output_args: OutputArgs,
    #[command(flatten)]
    pub(crate) trace: Trace,
}

impl Search {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let query = self.search_query(app)?;
        let options = self.searching.options(app);
        let config = app.config(app.env.working_directory(), &[])?;
        if self.searching.auto_select {
            app.output.remark(
                "Warning: --auto-select chooses for inspect, plan and export; a search lists what it finds",
            );
        }
        let intent = SessionPurpose::new(self.trace.dry_run).search(&query, &options);
        CommandHost::run(app, &config, &intent, |context| {
            let found = context.search(&query, &options)?;
            self.print(app, &found);
            Ok(searched(app, &found.document))
        })
    }

    /// The query: as given, or asked for on a terminal.
    fn search_query(&self, app: &App) -> Result<String, Failure> {
        let input = self.query.as_ref().or(self.named.as_ref()).cloned();
        let text = match input {
            None if ask::may_ask(&self.output_args) => ask::ask(app, "Search for:")?,
            given => given,
        };
        text.filter(|query| !query.trim().is_empty())
            .ok_or_else(|| {
                Failure::usage("no search query given")
                    .hint("Pass one: crucible crawl search QUERY, or --query QUERY.")
            })
    }

    fn print(&self, app: &App, found: &ValidatedDocument<SearchV1>) {
        if !app.output.is_json() {
            show::search(&app.output, &found.document);
        } else if self.ndjson {
            for item in lines(&found.artifact) {
                app.output.json_text(&item);
            }
        } else {
            app.output.json_text(found.artifact.json());
        }
    }
}

/// The exit status of a command that printed this result. It is an error if the rate limit left no
/// results.
fn searched(app: &App, found: &SearchV1) -> ExitStatus {
    if !found.rate_limited || found.result_count > 0 {
        return ExitStatus::Success;
    }
    app.output
        .remark("GitHub's rate limit is exhausted and nothing was found before; try again later");
    ExitStatus::RateLimited
}

/// The items of a search document, one JSON text each.
fn lines(artifact: &CheckedArtifact) -> Vec<String> {
    let document: serde_json::Value = serde_json::from_str(artifact.json()).unwrap_or_default();
    document["results"]
        .as_array()
        .into_iter()
        .flatten()
        .map(ToString::to_string)
        .collect()
}
