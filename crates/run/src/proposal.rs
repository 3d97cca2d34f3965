//! A change that another program proposes, for a run that waits for one.
//!
//! The run waits for a person (`manual_outbox`); a coding agent may answer as well. The proposal becomes the answer at the
//! target of the open prompt, and the next command judges it as any other. What always holds: nothing is judged here, and
//! nothing is written that no prompt asks for.

use crucible_ledger::Ledger;
use crucible_patch::MAX_ANSWER_BYTES;

use crate::contract::RunRole;
use crate::error::RunError;
use crate::layout::{PATCH, RunDir};
use crate::progress::PendingRequest;
use crate::run_context::RunContext;
use crate::status::status;
use crate::trial::require_base;

/// Writes a proposal to where the run waits for it. The next [`crate::advance`] judges it.
///
/// # Errors
///
/// Fails if another process works on the run, if the run does not wait for a proposal, if the answer is empty or too large, or if
/// the repository is no longer as the run began with it: the change could not be tested there.
pub async fn submit_proposal(
    world: &RunContext<'_>,
    dir: &RunDir,
    ledger: &Ledger,
    answer: &str,
) -> Result<(), RunError> {
    let _lock = dir.acquire("taking a proposal")?;
    let status = status(dir, ledger)?;
    if !status.owed.as_ref().is_some_and(PendingRequest::is_change) {
        return Err(RunError::NoProposalOwed {
            run: status.run.run_id,
            state: status.state.name(),
        });
    }
    if answer.trim().is_empty() {
        return Err(RunError::EmptyProposal);
    }
    if answer.len() as u64 > MAX_ANSWER_BYTES {
        return Err(RunError::LargeProposal {
            bytes: answer.len(),
            limit: MAX_ANSWER_BYTES,
        });
    }
    let git = world.git(&status.run.repo, &world.tmp).await?;
    require_base(&git, &status.run).await?;
    dir.write(PATCH, answer.as_bytes()).map(drop)
}

impl PendingRequest {
    /// Whether a change is owed.
    #[must_use]
    pub fn is_change(&self) -> bool {
        let proposes = [RunRole::Patchmaker, RunRole::Fixer].map(RunRole::name);
        self.target == PATCH && proposes.contains(&self.role.as_str())
    }
}
