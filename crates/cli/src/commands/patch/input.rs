//! What `patch check` and `patch apply` share: the patch, the repository, and the plan or the policy it is judged by.

use std::path::PathBuf;

use clap::{ArgGroup, Args};
use crucible_host::fs::read_up_to;
use crucible_model::{ExitStatus, Failure};
use crucible_repo::Git;
use crucible_run::configured::{MAX_PATCH, PatchMeasure};
use crucible_terminal::input::InputNotice;

use crate::app::App;

/// A patch, and what it is measured by.
#[derive(Args)]
#[command(group = ArgGroup::new("measured-by").required(true).args(["plan", "policy"]))]
pub(super) struct PatchInput {
    /// A directory in the repository
    #[arg(long, default_value = ".", value_name = "DIR")]
    repo: PathBuf,
    /// The patch, a git unified diff; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    patch: PathBuf,
    /// A signed plan with the allowed scope; in a run directory its signature is checked too
    #[arg(long, value_name = "PLAN.md")]
    plan: Option<PathBuf>,
    /// A policy: JSON with allow_roots, deny_prefixes, deny_suffixes, max_files, max_added_lines
    ///
    /// A new source file is allowed if allow_roots has its exact path. Any other new file must be listed in
    /// `named`, and so must a test, a manifest or another protected file. docs/contracts/patch_policy.md
    /// describes every key.
    #[arg(long, value_name = "POLICY.json")]
    policy: Option<PathBuf>,
}

/// What was read.
pub(super) struct Measured {
    /// Byte for byte.
    pub(super) patch: Vec<u8>,
    /// What it is judged by.
    pub(super) measure: PatchMeasure,
}

impl PatchInput {
    /// Reads the patch and what it is measured by.
    pub(super) fn read(&self, app: &App) -> Result<Measured, Failure> {
        let patch = match self.patch.to_str() {
            Some("-") => piped(app)?,
            _ => read_up_to(&app.absolute(&self.patch), MAX_PATCH)
                .map_err(|error| error.unreadable_input())?,
        };
        let measure = match (&self.plan, &self.policy) {
            (_, Some(path)) => {
                let bytes = read_up_to(&app.absolute(path), MAX_PATCH)
                    .map_err(|error| error.unreadable_input())?;
                PatchMeasure::of_policy(&bytes, &path.display().to_string())?
            }
            (Some(path), None) => PatchMeasure::of_plan(&app.absolute(path), || {
                app.config(&self.repository(app), &[])
            })?,
            (None, None) => return Err(Failure::usage("name a plan or a policy")),
        };
        Ok(Measured { patch, measure })
    }

    /// The directory in the repository.
    pub(super) fn repository(&self, app: &App) -> PathBuf {
        app.absolute(&self.repo)
    }

    /// Opens the repository.
    pub(super) async fn open(&self, app: &App) -> Result<Git, Failure> {
        Ok(Git::open(app.runtime().sandbox, &app.env, &self.repository(app)).await?)
    }
}

/// The patch that standard input brings.
fn piped(app: &App) -> Result<Vec<u8>, Failure> {
    let notice = InputNotice::Saying("reading the patch from standard input");
    let most = usize::try_from(MAX_PATCH.0).unwrap_or(usize::MAX);
    let bytes = app
        .read_input(most, notice)?
        .map_err(|error| Failure::usage(format!("cannot read standard input: {error}")))?;
    if bytes.len() > most {
        return Err(Failure::new(
            ExitStatus::OverLimit,
            format!("the patch is larger than {} bytes", MAX_PATCH.0),
        ));
    }
    Ok(bytes)
}
