//! The repository of a command: named, or found by a search.

use crucible_crawl::{RefChoice, RepoName, SearchOptions, SearchV1, Target};
use crucible_model::ExitStatus;

use super::ask;
use super::context::Intent;
use super::flags::{OutputArgs, Trace, Which};
use crate::app::App;
use crate::error::CommandError;

/// The selected repository and commit.
pub(crate) struct RepoSelection {
    pub(crate) source: RepoSource,
    pub(crate) choice: RefChoice,
    /// Whether the user may be asked questions.
    pub(crate) may_ask: bool,
}

/// How the repository is given.
pub(crate) enum RepoSource {
    /// By name.
    Named(Target),
    /// By a search.
    Found {
        query: String,
        options: SearchOptions,
        pick: Pick,
    },
}

/// How to choose among results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pick {
    /// Take the best one.
    Best,
    /// Ask the user.
    User,
}

impl RepoSelection {
    /// Reads the command line, and asks on a terminal for missing values.
    pub(crate) fn of(
        app: &App,
        which: &Which,
        output_args: &OutputArgs,
    ) -> Result<Self, CommandError> {
        let may_ask = ask::may_ask(output_args);
        let choice = which.choice()?;
        let named = match (&which.repo, &which.query) {
            (None, None) if may_ask => ask::ask(
                app,
                "Repository (owner/repo or ./path; leave empty to search for one):",
            )?,
            (repo, _) => repo.clone(),
        };
        if let Some(named) = named.filter(|named| !named.is_empty()) {
            let target = Target::parse(&named).map_err(|error| {
                CommandError::usage(error.to_string()).hint("To search for one: --query QUERY.")
            })?;
            return Ok(Self {
                source: RepoSource::Named(target),
                choice,
                may_ask,
            });
        }
        let query = match &which.query {
            None if may_ask => ask::ask(app, "Search for:")?,
            query => query.clone(),
        };
        let query = query.filter(|query| !query.trim().is_empty()).ok_or_else(|| {
            CommandError::usage("no repository given").hint(
                "Name it, as owner/repo or ./path; or search for it: --query QUERY --auto-select takes the best result.",
            )
        })?;
        let pick = match (
            which.searching.auto_select || output_args.non_interactive,
            may_ask,
        ) {
            (true, _) => Pick::Best,
            (false, true) => Pick::User,
            (false, false) => {
                return Err(CommandError::usage("cannot ask which of the results to use").hint(
                    "Take the best one with --auto-select, or name the repository instead of --query.",
                ));
            }
        };
        let options = which.searching.options(app);
        Ok(Self {
            source: RepoSource::Found {
                query,
                options,
                pick,
            },
            choice,
            may_ask,
        })
    }

    /// The purpose of the session.
    pub(crate) fn intent(&self, trace: &Trace) -> Intent {
        let intent = Intent::new(trace);
        match &self.source {
            RepoSource::Named(_) => intent,
            RepoSource::Found { query, options, .. } => {
                intent.query(query).with([options_of(options)])
            }
        }
    }
}

/// The number of search results, for the snapshot of the configuration.
pub(crate) fn options_of(options: &SearchOptions) -> (&'static str, String) {
    ("--max-results", options.max_results.get().to_string())
}

/// The repository that the best result, or the user, names.
pub(crate) fn picked(app: &App, found: &SearchV1, pick: Pick) -> Result<Target, CommandError> {
    let Some(best) = found.results.first() else {
        return Err(if found.rate_limited {
            CommandError::new(
                ExitStatus::RateLimited,
                "GitHub's rate limit is exhausted and nothing was found before",
            )
            .hint("Try again later, or name the repository.")
        } else {
            CommandError::new(
                ExitStatus::Refused,
                format!("GitHub found no repository for {:?}", found.query),
            )
            .hint("Search for something else, or name the repository.")
        });
    };
    let chosen = match pick {
        Pick::Best => best,
        Pick::User => ask::choose_result(app, &found.results)?,
    };
    if pick == Pick::Best {
        app.output.remark(&format!(
            "took the best result: {} (score {:.4})",
            best.full_name, best.score
        ));
    }
    let name = RepoName::parse(&chosen.full_name)
        .map_err(|error| CommandError::new(ExitStatus::Refused, error.to_string()))?;
    Ok(Target::GitHub(name))
}
