//! The options that the commands of a crawl share, with their defaults and caps (seed 000 §1.3).

use std::fmt;
use std::path::PathBuf;

use clap::builder::{NonEmptyStringValueParser, RangedU64ValueParser};
use clap::{Args, ValueEnum};
use crucible_crawl::{DebateRounds, MaxResults, RefChoice, SearchOptions, UseCache};

use crate::app::App;
use crate::commands::run::providers;
use crate::error::CommandError;

/// Results that are shown without `--max-results`.
const DEFAULT_RESULTS: u32 = 10;

/// How the result is printed.
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

/// How a command speaks.
#[derive(Args, Clone, Default)]
pub(crate) struct OutputArgs {
    /// Print the result as JSON or for people; without it for people on a terminal and as JSON elsewhere
    #[arg(long, value_name = "FORMAT", conflicts_with = "json")]
    pub(crate) format: Option<FormatName>,
    /// Ask nothing; what would have to be asked is an error, and the best search result is taken
    #[arg(long)]
    pub(crate) non_interactive: bool,
}

/// Whether a command leaves a trace.
#[derive(Args, Clone, Copy, Default)]
pub(crate) struct Trace {
    /// Do all of it, but write neither the ledger nor an export; the search cache is not used
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// How a search is done.
#[derive(Args, Clone, Copy, Default)]
pub(crate) struct Searching {
    /// How many results to show, 30 at most [default: 10]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = count())]
    max_results: Option<u32>,
    /// Ask GitHub even where an answer from the last 15 minutes is at hand
    #[arg(long)]
    no_cache: bool,
    /// Take the best result instead of asking which one
    #[arg(long)]
    pub(crate) auto_select: bool,
}

/// Which repository, at which commit.
#[derive(Args, Clone, Default)]
pub(crate) struct Which {
    /// owner/repo on GitHub, its address, or ./path of a local repository
    #[arg(value_name = "REPO", conflicts_with = "query", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) repo: Option<String>,
    /// Search for this instead, and choose among the results
    #[arg(long, value_name = "QUERY")]
    pub(crate) query: Option<String>,
    /// The tag, branch or whole commit id to look at; :PATH behind it, or alone, chooses a sub-project. Without it the
    /// latest release, else the default branch
    #[arg(long = "ref", value_name = "REF[:PATH]", allow_hyphen_values = true)]
    pub(crate) reference: Option<String>,
    #[command(flatten)]
    pub(crate) searching: Searching,
}

/// Who plans, and for how long.
#[derive(Args, Clone, Default)]
pub(crate) struct Debating {
    /// Rounds of draft and critique before the plan is settled, 4 at most [default: 2]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = count(), conflicts_with = "offline")]
    max_debate_rounds: Option<u32>,
    /// Ask no model: plan with the standard steps of the build system
    #[arg(long)]
    pub(crate) offline: bool,
    /// Who drafts, revises and settles the plan; without it crawl.gpt_provider, else llm.provider
    #[arg(long, value_name = "NAME", value_parser = providers(), conflicts_with = "offline")]
    pub(crate) gpt_provider: Option<String>,
    /// Who criticises and approves it; without it crawl.claude_provider, else llm.provider
    #[arg(long, value_name = "NAME", value_parser = providers(), conflicts_with = "offline")]
    pub(crate) claude_provider: Option<String>,
}

/// Where an export goes.
#[derive(Args, Clone, Default)]
pub(crate) struct Place {
    /// The directory to write to; without it exports/SESSION in Crucible's own directory
    #[arg(long, value_name = "DIR")]
    pub(crate) output_dir: Option<PathBuf>,
}

fn count() -> RangedU64ValueParser<u32> {
    RangedU64ValueParser::new().range(1..)
}

impl Searching {
    /// What the search is to do; a number over the cap is held to it, and that is said.
    pub(crate) fn options(&self, app: &App) -> SearchOptions {
        let wanted = self.max_results.unwrap_or(DEFAULT_RESULTS);
        let max_results = MaxResults::for_command_line(wanted);
        held(app, "--max-results", wanted, max_results.get());
        SearchOptions { max_results, cache: if self.no_cache { UseCache::No } else { UseCache::Yes } }
    }
}

impl Debating {
    /// The settings that the options stand for.
    pub(crate) fn settings(&self) -> Vec<(&'static str, String)> {
        let mut settings = Vec::new();
        let mut add = |key, value: &Option<String>| settings.extend(value.clone().map(|value| (key, value)));
        add("crawl.gpt_provider", &self.gpt_provider);
        add("crawl.claude_provider", &self.claude_provider);
        settings
    }

    /// Whether both owners have somebody who speaks for them.
    pub(crate) fn somebody_plans(&self, app: &App) -> Result<bool, CommandError> {
        let config = app.config(app.env.working_directory(), &self.settings())?;
        let both = config.crawl.gpt_provider.is_some() && config.crawl.claude_provider.is_some();
        Ok(config.llm.provider.is_some() || both)
    }

    /// How many rounds; a number over the cap is held to it, and that is said.
    pub(crate) fn rounds(&self, app: &App) -> DebateRounds {
        let Some(wanted) = self.max_debate_rounds else {
            return DebateRounds::default();
        };
        let rounds = DebateRounds::capped(wanted);
        held(app, "--max-debate-rounds", wanted, rounds.get());
        rounds
    }
}

impl Which {
    /// The ref and the sub-project.
    pub(crate) fn choice(&self) -> Result<RefChoice, CommandError> {
        let choice = self.reference.as_deref().map(RefChoice::parse).transpose();
        Ok(choice.map_err(|error| CommandError::usage(error.to_string()))?.unwrap_or_default())
    }
}

fn held(app: &App, flag: &str, wanted: u32, given: u32) {
    if wanted != given {
        app.output.remark(&format!("Warning: {flag} {wanted} is over the cap; {given} is used"));
    }
}
