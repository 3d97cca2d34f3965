//! The exit status and the hints of each error of this crate.

use crucible_ledger::LedgerError;
use crucible_model::{ExitStatus, Failure};

use crate::agent::{AgentCommandError, AgentError};
use crate::build::{SettleError, SkillBuildError};
use crate::gates::{GateError, ToolsMissing};
use crate::project::PolicyReadError;
use crate::proposal::ProposalError;
use crate::registry::REGISTRY_FILE;
use crate::research::ResearchError;
use crate::runner::{RegistryListing, RunStepError, RunnerError};
use crate::skeleton::SkeletonError;
use crate::status::StepRefused;
use crate::trust::{ApprovalError, TrustError};
use crate::verify::VerifyStepError;
use crate::workspace::{CopyBackError, WorkspaceError};

impl From<ProposalError> for Failure {
    fn from(error: ProposalError) -> Self {
        let message = error.to_string();
        match error {
            ProposalError::Ledger(error @ LedgerError::SkillTaken { .. }) => {
                Self::from(error).hint("`crucible skill list` shows its status; use another name for another skill.")
            }
            ProposalError::Ledger(error) => error.into(),
            ProposalError::NoDescription
            | ProposalError::LongDescription { .. }
            | ProposalError::HiddenCharacter { .. }
            | ProposalError::Grants(_) => Self::usage(message),
            ProposalError::Canonical(_) => Self::new(ExitStatus::Schema, message),
            ProposalError::Secret { .. } => Self::new(ExitStatus::SecretDetected, message)
                .hint("Remove it and grant the secret by name with --allow-secret. If it is a real secret, revoke it."),
        }
    }
}

impl From<SkeletonError> for Failure {
    fn from(error: SkeletonError) -> Self {
        match error {
            SkeletonError::Fs(error) => error.into(),
            SkeletonError::Own(error) => error.into(),
            SkeletonError::Path(error) => error.into(),
            SkeletonError::Edit(_) => Self::refused(error.to_string())
                .hint("Nothing was written. Fix the reported problem, then run the command again."),
        }
    }
}

impl From<StepRefused> for Failure {
    fn from(refused: StepRefused) -> Self {
        let error = Self::refused(refused.to_string());
        match refused.hint() {
            Some(hint) => error.hint(format!("{hint}.")),
            None => error,
        }
    }
}

impl From<ApprovalError> for Failure {
    fn from(error: ApprovalError) -> Self {
        match &error {
            ApprovalError::Secret { .. } => {
                Self::new(ExitStatus::SecretDetected, error.to_string())
                    .hint("Remove it. If it is a real secret, revoke it.")
            }
            ApprovalError::Empty { .. }
            | ApprovalError::Long { .. }
            | ApprovalError::Hidden { .. }
            | ApprovalError::Reserved => Self::usage(error.to_string()),
        }
    }
}

impl From<TrustError> for Failure {
    fn from(error: TrustError) -> Self {
        match error {
            TrustError::Unknown { .. } => {
                Self::usage(error.to_string()).hint("`crucible skill list` lists the skills.")
            }
            TrustError::Step(refused) => refused.into(),
            TrustError::Lock(error) => error.into(),
            TrustError::Unsettled(error) => error.into(),
            TrustError::Ledger(error) => error.into(),
            TrustError::Path(error) => error.into(),
        }
    }
}

impl From<VerifyStepError> for Failure {
    fn from(error: VerifyStepError) -> Self {
        let message = error.to_string();
        match error {
            VerifyStepError::Unknown { .. } => {
                Self::usage(message).hint("`crucible skill list` lists the skills.")
            }
            VerifyStepError::Lock(error) => error.into(),
            VerifyStepError::Unsettled(error) => error.into(),
            VerifyStepError::Step(refused) => refused.into(),
            VerifyStepError::Record { .. } => Self::refused(message),
            VerifyStepError::File { source, .. } => {
                let status = source.unreadable_input().status;
                Self::new(status, message).hint("`crucible skill build` makes both files.")
            }
            VerifyStepError::Tools(error) => error.into(),
            VerifyStepError::Policy(error) => error.into(),
            VerifyStepError::Workspace(error) => error.into(),
            VerifyStepError::Python(error) => error.into(),
            VerifyStepError::Obstacle { source, .. } => {
                let status = match source {
                    GateError::Sandbox(error) => Self::from(error).status,
                    GateError::Runner(error) => Self::from(error).status,
                    GateError::Fs(error) => Self::from(error).status,
                };
                Self::new(status, message)
            }
            VerifyStepError::Ledger(error) => error.into(),
            VerifyStepError::Path(error) => error.into(),
            VerifyStepError::Canonical(_) => Self::refused(message),
        }
    }
}

impl From<ToolsMissing> for Failure {
    fn from(error: ToolsMissing) -> Self {
        Self::usage(error.to_string())
            .hint("`crucible doctor` lists the installed programs. Nothing was recorded.")
    }
}

impl From<AgentCommandError> for Failure {
    fn from(error: AgentCommandError) -> Self {
        Self::usage(error.to_string()).hint("`crucible skill build --help` lists the agents.")
    }
}

impl From<SkillBuildError> for Failure {
    fn from(error: SkillBuildError) -> Self {
        let message = error.to_string();
        match error {
            SkillBuildError::Unknown { .. } => {
                Self::usage(message).hint("`crucible skill list` lists the skills.")
            }
            SkillBuildError::Step(refused) => refused.into(),
            SkillBuildError::NeedsReview { name, .. } => Self::refused(message).hint(format!(
                "`crucible skill research {name}` reports what is known. The reviewer confirms it with --reviewed-by WHO --reason TEXT"
            )),
            SkillBuildError::SecretInPacket { .. } => Self::new(ExitStatus::SecretDetected, message).hint(
                "Remove the secret from the skill's files or from .crucible/skills/policy.yaml. Revoke it if it is real.",
            ),
            SkillBuildError::Lock(error) => error.into(),
            SkillBuildError::Ledger(error) => error.into(),
            SkillBuildError::Workspace(error) | SkillBuildError::Agent(AgentError::Workspace(error)) => {
                error.into()
            }
            SkillBuildError::Read(_) => Self::refused(message),
            SkillBuildError::Unsettled(error) => error.into(),
            SkillBuildError::Agent(AgentError::Sandbox(error)) => error.into(),
            SkillBuildError::Agent(AgentError::Call(error)) => error.into(),
            SkillBuildError::Agent(AgentError::Fs(error)) => error.into(),
            SkillBuildError::Path(error) => error.into(),
        }
    }
}

impl From<SettleError> for Failure {
    fn from(error: SettleError) -> Self {
        match error {
            SettleError::CopyBack(CopyBackError::Own(error)) => error.into(),
            SettleError::CopyBack(error) => Self::refused(error.to_string())
                .hint("A killed build left it. Check both files of the skill and correct them."),
            SettleError::Fs(error) => error.into(),
            SettleError::Ledger(error) => error.into(),
            SettleError::Path(error) => error.into(),
        }
    }
}

impl From<RunStepError> for Failure {
    fn from(error: RunStepError) -> Self {
        let message = error.to_string();
        match error {
            RunStepError::Unknown { listed: RegistryListing::Nowhere, .. } => Self::usage(message)
                .hint("`crucible skill list` lists the skills; `crucible skill propose` adds one."),
            RunStepError::Unknown { listed: RegistryListing::InRegistry, .. } => {
                Self::refused(format!("{message} in the ledger of this machine, and {REGISTRY_FILE} alone makes none trusted"))
                    .hint("The registry is the word of the author of the repository, and what the ledger knows belongs to the place where the project lay. In a clone, or \
                           after a move: propose the skill here, take its files with `crucible skill build NAME --agent as-is`, verify it, and approve it yourself.")
            }
            RunStepError::Input { .. } => Self::new(ExitStatus::Schema, message),
            RunStepError::Record { .. } => Self::refused(message),
            RunStepError::Runner(error) => error.into(),
            RunStepError::Staging(_) => Self::refused(message),
            RunStepError::Ledger(error) => error.into(),
            RunStepError::Trust(error) => error.into(),
            RunStepError::Path(error) => error.into(),
        }
    }
}

impl From<RunnerError> for Failure {
    fn from(error: RunnerError) -> Self {
        match error {
            RunnerError::Sandbox(error) => error.into(),
            RunnerError::Fs(error) => error.into(),
            RunnerError::InputTooLarge { .. } => {
                Self::new(ExitStatus::OverLimit, error.to_string())
            }
            RunnerError::NotText
            | RunnerError::GrantedPath { .. }
            | RunnerError::TooManyPlaces { .. }
            | RunnerError::TooMuchToCopy { .. }
            | RunnerError::SecretMissing { .. }
            | RunnerError::SecretUnfit { .. }
            | RunnerError::NoPython { .. }
            | RunnerError::PythonInProject { .. } => Self::usage(error.to_string()),
        }
    }
}

impl From<ResearchError> for Failure {
    fn from(error: ResearchError) -> Self {
        match error {
            ResearchError::Unknown { .. } => {
                Self::usage(error.to_string()).hint("`crucible skill list` lists the skills.")
            }
            ResearchError::NothingFailed { .. } => Self::usage(error.to_string()),
            ResearchError::Refused(refused) => refused.into(),
            ResearchError::Lock(error) => error.into(),
            ResearchError::Unsettled(error) => error.into(),
            ResearchError::Ledger(error) => error.into(),
            ResearchError::Canonical(error) => Self::refused(error.to_string()),
        }
    }
}

impl From<PolicyReadError> for Failure {
    fn from(error: PolicyReadError) -> Self {
        let message = error.to_string();
        match error {
            PolicyReadError::Fs(error) => error.unreadable_input(),
            PolicyReadError::NotText | PolicyReadError::Rules(_) => {
                Self::new(ExitStatus::Schema, message)
                    .hint("A policy is like `allowed_imports: [yaml]`.")
            }
        }
    }
}

impl From<WorkspaceError> for Failure {
    fn from(error: WorkspaceError) -> Self {
        match error {
            WorkspaceError::InsideProject { .. } => Self::usage(error.to_string()),
            WorkspaceError::Repo(error) => error.into(),
            WorkspaceError::Fs(error) => error.into(),
        }
    }
}
