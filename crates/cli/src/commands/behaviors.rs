//! `crucible behaviors`: a repository's catalogue of behaviours.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use crucible_model::{ExitStatus, Failure};
use crucible_repo::Git;
use crucible_run::{NO_CATALOGUE, check_repository_behaviors};

use crate::app::App;

/// The message for a repository that has no catalogue.
const NOTHING_CHECKED: &str = "no behaviour catalogue; nothing was checked";

/// Check a repository's behaviour catalogue
#[derive(Subcommand)]
pub(crate) enum BehaviorsCommand {
    Check(Check),
}

/// Check that markers, index entries and pages agree
///
/// A marker is a comment `BEHAVIOR_ID: B012`. The index is docs/behaviors/INDEX.md, and the pages are beside
/// it. Only files tracked by git are read. For example: `crucible behaviors check --repo .`
#[derive(Args)]
pub(crate) struct Check {
    /// A directory in the repository
    #[arg(long, default_value = ".", value_name = "DIR")]
    repo: PathBuf,
}

impl BehaviorsCommand {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let Self::Check(check) = self;
        let repo = app.absolute(&check.repo);
        let sandbox = app.runtime().sandbox;
        let verdict = app.block_on(async {
            let git = Git::open(sandbox, &app.env, &repo).await?;
            Ok(check_repository_behaviors(&git).await?)
        })?;
        let has_none = verdict
            .findings()
            .iter()
            .any(|finding| finding.code == NO_CATALOGUE);
        let passed = if has_none {
            NOTHING_CHECKED
        } else {
            "code, index and pages agree"
        };
        app.output
            .verdict(&verdict.report("crucible-behaviors-check-v1"), passed)
    }
}
