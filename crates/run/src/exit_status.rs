//! The exit status and the hints of each error of this crate.

use crucible_model::{ExitStatus, Failure};
use crucible_pack::{OmittedReason, PackError};
use crucible_settings::variable_of;
use crucible_verify::DetectError;

use crate::error::RunError;

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        let status = match error {
            RunError::Fs(error) => return error.into(),
            RunError::Lock(error) => return error.into(),
            RunError::Ledger(error) => return error.into(),
            RunError::Repo(error) => return error.into(),
            RunError::Detect(DetectError::TooLarge { .. }) => ExitStatus::OverLimit,
            RunError::Detect(_) => ExitStatus::Refused,
            RunError::Sandbox(error) => return error.into(),
            RunError::Call(error) => {
                let command = Self::from(error);
                return if command.budget_exhausted {
                    command.hint(format!(
                        "The run is kept. Raise its limit with {} (calls), {} (tokens) or {} (dollars), and continue with `crucible run advance`.",
                        variable_of("llm.budget.calls"),
                        variable_of("llm.budget.tokens"),
                        variable_of("llm.budget.dollars")
                    ))
                } else {
                    command.hint("The run is kept; continue with `crucible run advance`.")
                };
            }
            RunError::NoGates { .. } => {
                return Self::usage(error.to_string())
                    .hint("Name the command that tests it: crucible run start \"GOAL\" --test \"./run-tests\"")
                    .hint("Or for every run: `crucible init --test \"./run-tests\"`; `crucible gates` shows what a run uses.");
            }
            RunError::GateCouldNotRun {
                ref gate,
                ref remedy,
                ..
            } => {
                let hint = format!(
                    "{remedy}; or name another command: `[gates.{gate}] command = [...]` in .crucible/config.toml"
                );
                return Self::usage(error.to_string()).hint(hint);
            }
            RunError::GateUnaffected { ref remedy, .. } => {
                return Self::usage(error.to_string()).hint(remedy.clone());
            }
            RunError::NoProposalOwed { .. } => {
                return Self::new(ExitStatus::Usage, error.to_string())
                    .hint("`crucible run status` says what it waits for.");
            }
            RunError::EmptyProposal => {
                return Self::new(ExitStatus::Usage, error.to_string())
                    .hint("Pass a patch, as `git diff` prints it.");
            }
            RunError::LargeProposal { .. } | RunError::Pack(PackError::BudgetTooSmall { .. }) => {
                ExitStatus::OverLimit
            }
            RunError::Pack(
                PackError::MandatoryMissing { .. }
                | PackError::MandatoryRefused { .. }
                | PackError::MandatoryUnreadable(_),
            )
            | RunError::EmptyGoal
            | RunError::NotAllowable { .. }
            | RunError::RunInsideRepository { .. }
            | RunError::DirtyRepository { .. }
            | RunError::UnderWay { .. }
            | RunError::NoClient { .. }
            | RunError::Workflows(_)
            | RunError::DoorGate { .. }
            | RunError::NoSuchRun { .. } => ExitStatus::Usage,
            RunError::NamedUnseen { reason, .. } => match reason {
                OmittedReason::BudgetExceeded | OmittedReason::TooLarge => ExitStatus::OverLimit,
                OmittedReason::Denied
                | OmittedReason::Irrelevant
                | OmittedReason::NotFound
                | OmittedReason::InvalidRequest => ExitStatus::Usage,
            },
            RunError::SecretInGoal { .. }
            | RunError::SecretInNamed { .. }
            | RunError::SecretInRequest { .. } => ExitStatus::SecretDetected,
            RunError::Malformed { .. } => ExitStatus::Schema,
            RunError::Canonical(_)
            | RunError::Bundle(_)
            | RunError::Edited { .. }
            | RunError::EditedSince { .. }
            | RunError::CommitGone { .. }
            | RunError::BaseDirty { .. }
            | RunError::RepositoryElsewhere { .. }
            | RunError::RepositoryChanged { .. }
            | RunError::EndedElsewhere { .. }
            | RunError::FullGates { .. }
            | RunError::HeldOutRefused { .. }
            | RunError::HeldOutChanged { .. }
            | RunError::NoLongerAccepted { .. }
            | RunError::BookingsLost { .. }
            | RunError::BookingsEdited { .. }
            | RunError::RecordBroken { .. }
            | RunError::LedgerBroken { .. }
            | RunError::NotVerified { .. }
            | RunError::Unsigned { .. }
            | RunError::NoteNotWritten { .. }
            | RunError::NothingToAllow { .. }
            | RunError::NothingToApprove { .. }
            | RunError::ApprovalRefused { .. }
            | RunError::PinnedClock => ExitStatus::Refused,
        };
        Self::new(status, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use crucible_llm::{Fault, LlmError, RequestFault};

    use super::*;

    #[test]
    fn secret_found_by_service_has_secret_status() {
        let fault = Fault::new("council", "council", "it holds a secret", "revoke it");
        let error = LlmError::Unsupported(Box::new(Fault {
            request: Some(RequestFault::Secret),
            ..*fault.clone()
        }));
        let ended = Failure::from(RunError::Call(error.into()));
        assert_eq!(
            ended.status,
            ExitStatus::SecretDetected,
            "{}",
            ended.message
        );
        let ended = Failure::from(LlmError::Misconfiguration(fault));
        assert_eq!(ended.status, ExitStatus::Usage, "{}", ended.message);
    }
}
