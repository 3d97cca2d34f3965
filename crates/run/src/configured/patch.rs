//! What a patch outside a run is judged by, and its verdict.

use std::path::Path;
use std::sync::Arc;

use crucible_host::fs::read_prefix;
use crucible_model::{ByteLimit, ExitStatus, Failure, Verdict, VerdictReport};
use crucible_patch::Policy;
use crucible_repo::Git;
use crucible_sandbox::Runtime;
use crucible_settings::Settings;

use super::limits::patch_limits;
use crate::gatekeeper::{SignedPlan, check_patch, plan_policy, signed_plan};

/// The largest patch and the largest policy. Larger patches are refused by the gate in any case.
pub const MAX_PATCH: ByteLimit = ByteLimit(16 * 1024 * 1024);

/// The shape of the verdict.
const REPORT: &str = "crucible-patch-check-v1";

/// What a patch is judged by.
#[derive(Debug)]
pub enum PatchMeasure {
    /// This policy.
    Policy(Box<Policy>),
    /// The plan cannot be used, for these reasons.
    Refused(Verdict),
}

impl PatchMeasure {
    /// Reads a policy; `named` is what its user calls it.
    ///
    /// # Errors
    ///
    /// Fails if it is not a policy.
    pub fn of_policy(bytes: &[u8], named: &str) -> Result<Self, Failure> {
        let policy = Policy::parse(bytes).map_err(|problem| {
            Failure::new(ExitStatus::Schema, format!("{named} is not a valid policy: {problem}"))
                .hint("A policy is like {\"allow_roots\": [\"src/\"], \"max_files\": 5, \"max_added_lines\": 400}")
        })?;
        Ok(Self::Policy(Box::new(policy)))
    }

    /// Reads the plan at a path. One that cannot be read is a wrong input, no judgement.
    ///
    /// # Errors
    ///
    /// Fails if there is no such file, or if the signature beside it cannot be read.
    pub fn of_plan(
        path: &Path,
        settings: impl FnOnce() -> Result<Settings, Failure>,
    ) -> Result<Self, Failure> {
        read_prefix(path, ByteLimit(1)).map_err(|error| error.unreadable_input())?;
        Ok(match signed_plan(path)? {
            SignedPlan::Signed(plan) => {
                Self::Policy(Box::new(plan_policy(&plan, patch_limits(&settings()?))))
            }
            SignedPlan::Refused(verdict) => Self::Refused(verdict),
        })
    }

    /// Judges a patch of the repository around `directory`.
    ///
    /// # Errors
    ///
    /// Fails if the repository cannot be read; problems of the patch are in the verdict.
    pub async fn judge(
        &self,
        runtime: &Runtime<'_>,
        directory: &Path,
        patch: &[u8],
    ) -> Result<VerdictReport, Failure> {
        let verdict = match self {
            Self::Policy(policy) => {
                let sandbox = Arc::clone(&runtime.sandbox);
                let git = Git::open(sandbox, runtime.env, directory).await?;
                check_patch(&git, policy, patch).await?
            }
            Self::Refused(verdict) => verdict.clone(),
        };
        Ok(verdict.report(REPORT))
    }
}
