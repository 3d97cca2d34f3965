//! What `patch check` and `patch apply` share: the patch, the repository, and the plan or the policy it is judged by.

use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args};
use crucible_host::fs::{read_prefix, read_up_to};
use crucible_model::{ByteLimit, ExitStatus, Failure, Verdict};
use crucible_patch::Policy;
use crucible_repo::Git;
use crucible_run::configured::patch_limits;
use crucible_run::{SignedPlan, plan_policy, signed_plan};
use crucible_terminal::input::Awaited;

use crate::app::App;

/// Larger patches are refused by the gate in any case.
const MAX_FILE: ByteLimit = ByteLimit(16 * 1024 * 1024);

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
pub(super) enum Measured {
    /// The patch, and the policy that holds.
    By {
        /// Byte for byte.
        patch: Vec<u8>,
        /// What it may touch.
        policy: Box<Policy>,
    },
    /// The plan cannot be used.
    Refused(Verdict),
}

impl PatchInput {
    /// Reads the patch and what it is measured by.
    pub(super) fn read(&self, app: &App) -> Result<Measured, Failure> {
        let patch = match self.patch.to_str() {
            Some("-") => piped(app)?,
            _ => read_up_to(&app.absolute(&self.patch), MAX_FILE)
                .map_err(|error| error.unreadable_input())?,
        };
        let policy = match (&self.plan, &self.policy) {
            (_, Some(path)) => {
                let bytes = read_up_to(&app.absolute(path), MAX_FILE)
                    .map_err(|error| error.unreadable_input())?;
                Policy::parse(&bytes).map_err(|problem| {
                    Failure::new(ExitStatus::Schema, format!("{} is not a valid policy: {problem}", path.display()))
                        .hint("A policy is like {\"allow_roots\": [\"src/\"], \"max_files\": 5, \"max_added_lines\": 400}")
                })?
            }
            (Some(path), None) => match plan_at(&app.absolute(path))? {
                SignedPlan::Signed(plan) => plan_policy(
                    &plan,
                    patch_limits(&app.config(&app.absolute(&self.repo), &[])?),
                ),
                SignedPlan::Refused(verdict) => return Ok(Measured::Refused(verdict)),
            },
            (None, None) => return Err(Failure::usage("name a plan or a policy")),
        };
        Ok(Measured::By {
            patch,
            policy: Box::new(policy),
        })
    }

    /// Opens the repository.
    pub(super) async fn open(&self, app: &App) -> Result<Git, Failure> {
        Ok(Git::open(app.runtime().sandbox, &app.env, &app.absolute(&self.repo)).await?)
    }
}

/// The patch that standard input brings.
fn piped(app: &App) -> Result<Vec<u8>, Failure> {
    let said = Awaited::Saying("reading the patch from standard input");
    let most = usize::try_from(MAX_FILE.0).unwrap_or(usize::MAX);
    let bytes = app
        .read_input(most, said)?
        .map_err(|error| Failure::usage(format!("cannot read standard input: {error}")))?;
    if bytes.len() > most {
        return Err(Failure::new(
            ExitStatus::OverLimit,
            format!("the patch is larger than {} bytes", MAX_FILE.0),
        ));
    }
    Ok(bytes)
}

/// The plan at a path. One that cannot be read is a wrong input, no judgement.
fn plan_at(path: &Path) -> Result<SignedPlan, Failure> {
    read_prefix(path, ByteLimit(1)).map_err(|error| error.unreadable_input())?;
    Ok(signed_plan(path)?)
}
