//! A change that another program proposes, for a run that waits for one.
//!
//! The run waits for a person (`manual_outbox`); a coding agent may answer as well. The proposal becomes the answer at the
//! target of the open prompt, and the next command judges it as any other. What always holds: nothing is judged here, and
//! nothing is written that no prompt asks for.

use crucible_ledger::Ledger;
use crucible_model::ByteLimit;
use crucible_patch::MAX_ANSWER_BYTES;

use crate::contract::RunRole;
use crate::error::RunError;
use crate::layout::{PATCH, RunDir};
use crate::status::{Owed, status};
use crate::world::World;

/// Where a proposal comes from.
#[derive(Debug, Clone, Copy)]
pub enum ProposalSource<'a> {
    /// An answer, such as a patch.
    Answer(&'a str),
    /// The difference between the run's base commit and the files of its repository's work tree.
    WorkTree,
}

/// Writes a proposal to where the run waits for it. The next [`crate::advance`] judges it.
///
/// # Errors
///
/// Fails if another process works on the run, if the run does not wait for a proposal, or if there is no change: the answer or the
/// difference is empty, or it is too large.
pub async fn submit_proposal(
    world: &World<'_>,
    dir: &RunDir,
    ledger: &Ledger,
    source: ProposalSource<'_>,
) -> Result<(), RunError> {
    let _lock = dir.take("taking a proposal")?;
    let status = status(dir, ledger)?;
    if !status.owed.as_ref().is_some_and(Owed::is_change) {
        return Err(RunError::NoProposalOwed {
            run: status.run.run_id,
            state: status.state.name(),
        });
    }
    let bytes = match source {
        ProposalSource::Answer(text) => text.as_bytes().to_vec(),
        ProposalSource::WorkTree => {
            let git = world.git(&status.run.repo, &world.tmp).await?;
            let limit = ByteLimit(MAX_ANSWER_BYTES);
            git.work_tree_diff(&status.run.base_commit, limit).await?
        }
    };
    if bytes.is_empty() {
        return Err(RunError::EmptyProposal {
            base: status.run.base_commit.to_string(),
        });
    }
    if bytes.len() as u64 > MAX_ANSWER_BYTES {
        return Err(RunError::LargeProposal {
            bytes: bytes.len(),
            limit: MAX_ANSWER_BYTES,
        });
    }
    dir.write(PATCH, &bytes).map(drop)
}

impl Owed {
    /// Whether a change is owed.
    #[must_use]
    pub fn is_change(&self) -> bool {
        let proposes = [RunRole::Patchmaker, RunRole::Fixer].map(RunRole::name);
        self.target == PATCH && proposes.contains(&self.role.as_str())
    }
}
