//! The options that the crawl commands share, with their defaults and caps.

use std::fmt;
use std::path::PathBuf;

use clap::builder::{NonEmptyStringValueParser, RangedU64ValueParser};
use clap::{Args, ValueEnum};
use crucible_crawl::{
    DebateRounds, MaxResults, PlannerBackends, RefChoice, SearchOptions, UseCache,
};
use crucible_model::Failure;
use crucible_settings::Settings;

use crate::app::App;
use crate::arguments::{overrides, providers};

/// The number of results shown without `--max-results`.
const DEFAULT_RESULTS: u32 = 10;

/// The output format of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatName {
    /// One JSON document
    Json,
    /// Text for people
    Pretty,
}

impl fmt::Display for FormatName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Json => "json",
            Self::Pretty => "pretty",
        })
    }
}

/// The flags for output and questions.
#[derive(Args, Clone, Default)]
pub(crate) struct OutputArgs {
    /// Output format [default: pretty on a terminal, else json]
    #[arg(long, value_name = "FORMAT", conflicts_with = "json")]
    pub(crate) format: Option<FormatName>,
    /// Ask no questions; take the best search result or fail
    #[arg(long)]
    pub(crate) non_interactive: bool,
}

/// The flag that disables all records of a command.
#[derive(Args, Clone, Copy, Default)]
pub(crate) struct Trace {
    /// Run without writing to the ledger, an export or the search cache
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// The flags of a search.
#[derive(Args, Clone, Copy, Default)]
pub(crate) struct Searching {
    /// Number of results to show, 30 at most [default: 10]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = count())]
    max_results: Option<u32>,
    /// Query GitHub even if a cached answer is under 15 minutes old
    #[arg(long)]
    no_cache: bool,
    /// Take the best result instead of asking which one
    #[arg(long)]
    pub(crate) auto_select: bool,
}

/// The flags that choose a repository and a commit.
#[derive(Args, Clone, Default)]
pub(crate) struct Which {
    /// owner/repo on GitHub, its address, or ./path of a local repository
    #[arg(value_name = "REPO", conflicts_with = "query", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) repo: Option<String>,
    /// Search for this instead, and choose among the results
    #[arg(long, value_name = "QUERY")]
    pub(crate) query: Option<String>,
    /// Tag, branch or full commit id; `:PATH` selects a sub-project [default: latest release, else
    /// default branch]
    #[arg(long = "ref", value_name = "REF[:PATH]", allow_hyphen_values = true)]
    pub(crate) reference: Option<String>,
    #[command(flatten)]
    pub(crate) searching: Searching,
}

/// The flags of a debate.
#[derive(Args, Clone, Default)]
pub(crate) struct Debating {
    /// Maximum rounds of draft and critique, 4 at most [default: 2]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = count(), conflicts_with = "offline")]
    max_debate_rounds: Option<u32>,
    /// Plan without a model: use the standard steps of the build system
    #[arg(long)]
    pub(crate) offline: bool,
    /// Provider that drafts and revises the plan [default: crawl.gpt_provider, else llm.provider]
    #[arg(long, value_name = "NAME", value_parser = providers(), conflicts_with = "offline")]
    pub(crate) gpt_provider: Option<String>,
    /// Provider that reviews the plan [default: crawl.claude_provider, else llm.provider]
    #[arg(long, value_name = "NAME", value_parser = providers(), conflicts_with = "offline")]
    pub(crate) claude_provider: Option<String>,
}

/// The flag for the directory of an export.
#[derive(Args, Clone, Default)]
pub(crate) struct OutputFlag {
    /// Output directory [default: exports/SESSION in Crucible's own directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) output_dir: Option<PathBuf>,
}

fn count() -> RangedU64ValueParser<u32> {
    RangedU64ValueParser::new().range(1..)
}

impl Searching {
    /// The search options. A number over its cap is reduced to the cap, with a warning.
    pub(crate) fn options(&self, app: &App) -> SearchOptions {
        let requested = self.max_results.unwrap_or(DEFAULT_RESULTS);
        let max_results = MaxResults::for_command_line(requested);
        warn_if_capped(app, "--max-results", requested, max_results.get());
        SearchOptions {
            max_results,
            cache: if self.no_cache {
                UseCache::No
            } else {
                UseCache::Yes
            },
        }
    }
}

impl Debating {
    /// Prepares the planner, so that a missing provider is reported before anything is fetched.
    pub(crate) fn backends(
        &self,
        app: &App,
        config: &Settings,
        trace: Trace,
    ) -> Result<PlannerBackends, Failure> {
        if self.offline {
            return Ok(PlannerBackends::Offline);
        }
        let rounds = self.rounds(app);
        let temporary = trace.dry_run.then(|| app.env.temporary_directory());
        PlannerBackends::for_debate(&app.runtime(), config, rounds, temporary)
    }

    /// The settings that the options override.
    pub(crate) fn settings(&self) -> Vec<(&'static str, String)> {
        overrides([
            ("crawl.gpt_provider", self.gpt_provider.clone()),
            ("crawl.claude_provider", self.claude_provider.clone()),
        ])
    }

    /// Whether both owners of the debate have a provider.
    pub(crate) fn somebody_plans(&self, app: &App) -> Result<bool, Failure> {
        let config = app.config(app.env.working_directory(), &self.settings())?;
        let both = config.crawl.gpt_provider.is_some() && config.crawl.claude_provider.is_some();
        Ok(config.llm.provider.is_some() || both)
    }

    /// The number of rounds. A number over the cap is reduced to the cap, with a warning.
    pub(crate) fn rounds(&self, app: &App) -> DebateRounds {
        let Some(requested) = self.max_debate_rounds else {
            return DebateRounds::default();
        };
        let rounds = DebateRounds::capped(requested);
        warn_if_capped(app, "--max-debate-rounds", requested, rounds.get());
        rounds
    }
}

impl Which {
    /// Parses the ref and the sub-project.
    pub(crate) fn choice(&self) -> Result<RefChoice, Failure> {
        let choice = self.reference.as_deref().map(RefChoice::parse).transpose();
        Ok(choice
            .map_err(|error| Failure::usage(error.to_string()))?
            .unwrap_or_default())
    }
}

fn warn_if_capped(app: &App, flag: &str, requested: u32, given_count: u32) {
    if requested != given_count {
        app.output.remark(&format!(
            "Warning: {flag} {requested} is over the cap; {given_count} is used"
        ));
    }
}
