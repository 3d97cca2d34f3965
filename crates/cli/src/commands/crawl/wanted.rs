//! The repository of a command, from its arguments or the user's answers.

use crucible_crawl::{RepoSelection, RepoSource, SelectionMode, Target};
use crucible_model::Failure;

use super::ask;
use super::flags::{OutputArgs, Which};
use crate::app::App;

/// Reads the command line, and asks on a terminal for missing values.
pub(crate) fn selection(
    app: &App,
    which: &Which,
    output_args: &OutputArgs,
) -> Result<RepoSelection, Failure> {
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
            Failure::usage(error.to_string()).hint("To search for one: --query QUERY.")
        })?;
        return Ok(RepoSelection {
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
        Failure::usage("no repository given").hint(
            "Name it, as owner/repo or ./path; or search for it: --query QUERY --auto-select takes the best result.",
        )
    })?;
    let pick = match (
        which.searching.auto_select || output_args.non_interactive,
        may_ask,
    ) {
        (true, _) => SelectionMode::Best,
        (false, true) => SelectionMode::User,
        (false, false) => {
            return Err(Failure::usage("cannot ask which of the results to use").hint(
                "Take the best one with --auto-select, or name the repository instead of --query.",
            ));
        }
    };
    let options = which.searching.options(app);
    Ok(RepoSelection {
        source: RepoSource::Found {
            query,
            options,
            pick,
        },
        choice,
        may_ask,
    })
}
