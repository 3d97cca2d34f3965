//! `crucible patch`: the patch gate on its own.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use crucible_host::config::Config;
use crucible_host::fs::read_up_to;
use crucible_model::{ByteLimit, ExitStatus};
use crucible_patch::Policy;
use crucible_repo::Git;
use crucible_run::{PatchLimits, Plan, PlanStatus, check_patch, plan_policy};

use crate::app::App;
use crate::commands::run::shared_sandbox;
use crate::error::CommandError;

/// Larger patches are refused by the gate in any case.
const MAX_FILE: ByteLimit = ByteLimit(16 * 1024 * 1024);

/// Judge a patch
#[derive(Subcommand)]
pub(crate) enum Patch {
    Check(Check),
}

/// Judge a patch against a plan or a policy, as text and on the tree it makes; nothing is applied
///
/// For example: `crucible patch check --repo . --patch change.patch --policy policy.json`
#[derive(Args)]
pub(crate) struct Check {
    /// A directory in the repository
    #[arg(long, default_value = ".", value_name = "DIR")]
    repo: PathBuf,
    /// The patch, a unified diff in git's format
    #[arg(long, value_name = "FILE")]
    patch: PathBuf,
    /// A signed plan whose scope holds
    #[arg(long, value_name = "PLAN.md", conflicts_with = "policy", required_unless_present = "policy")]
    plan: Option<PathBuf>,
    /// A policy: JSON with allow_roots, deny_prefixes, deny_suffixes, max_files, max_added_lines
    #[arg(long, value_name = "POLICY.json")]
    policy: Option<PathBuf>,
}

impl Patch {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, CommandError> {
        let Self::Check(check) = self;
        let repo = app.absolute(&check.repo);
        let patch = read_up_to(&app.absolute(&check.patch), MAX_FILE)?;
        let policy = check.policy(app)?;
        let sandbox = shared_sandbox(app);
        let verdict = app.block_on(async {
            let git = Git::open(sandbox, &app.env, &repo).await?;
            Ok(check_patch(&git, &policy, &patch).await?)
        })?;
        app.output.verdict(&verdict.report("crucible-patch-check-v1"), "the patch may be applied")
    }
}

impl Check {
    fn policy(&self, app: &App) -> Result<Policy, CommandError> {
        if let Some(path) = &self.policy {
            let bytes = read_up_to(&app.absolute(path), MAX_FILE)?;
            return serde_json::from_slice(&bytes).map_err(|error| {
                CommandError::new(ExitStatus::Schema, format!("{} is no policy: {error}", path.display()))
                    .hint("A policy is like {\"allow_roots\": [\"src/\"], \"max_files\": 5, \"max_added_lines\": 400}")
            });
        }
        let path = self.plan.clone().unwrap_or_default();
        let text = String::from_utf8_lossy(&read_up_to(&app.absolute(&path), MAX_FILE)?).into_owned();
        let refuse = |why: String| {
            CommandError::new(ExitStatus::Refused, format!("{} is no plan to go by: {why}", path.display()))
                .hint("docs/codes/plan.md tells what a plan consists of.")
        };
        let plan = Plan::parse(&text).map_err(|verdict| {
            let first =
                verdict.findings().first().map(|finding| format!("{} {}", finding.code, finding.subject));
            refuse(first.unwrap_or_default())
        })?;
        if plan.status != PlanStatus::Signed {
            return Err(refuse("it is not signed".to_owned()));
        }
        let config = app.config(&app.absolute(&self.repo), &[])?;
        Ok(plan_policy(&plan, patch_limits(&config)))
    }
}

/// How much a patch may change, as it is configured.
pub(crate) fn patch_limits(config: &Config) -> PatchLimits {
    PatchLimits {
        max_files: config.number("patch.max_files"),
        max_added_lines: config.number("patch.max_added_lines"),
    }
}

#[cfg(test)]
mod tests {
    use crucible_host::config::ConfigFiles;
    use crucible_host::env::Environment;

    use super::*;

    #[test]
    fn the_configurations_limits_are_the_policys_own() {
        let files = ConfigFiles { user: "/nonexistent/config.toml".into(), project: None };
        let defaults = include_str!("../default-config.toml");
        let config = Config::load(defaults, &files, &Environment::default(), &[]).unwrap();
        let limits = patch_limits(&config);
        let policy = Policy::default();
        assert_eq!((limits.max_files, limits.max_added_lines), (policy.max_files, policy.max_added_lines));
    }
}
