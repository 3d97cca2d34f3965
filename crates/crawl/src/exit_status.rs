//! The exit status and the hints of each error of this crate.

use crucible_llm::{CallError, LlmError};
use crucible_model::strict_json::StrictFault;
use crucible_model::{ExitStatus, Failure};
use crucible_repo::GhError;
use crucible_settings::variable_of;

use crate::artifact::ArtifactError;
use crate::debate::{DebateError, ReplyFault};
use crate::export::ExportError;
use crate::fetch::FetchError;
use crate::github::GitHubError;
use crate::inspect::InspectError;
use crate::pipeline::CrawlError;
use crate::search::SearchError;
use crate::session::SessionError;

impl From<CrawlError> for Failure {
    fn from(error: CrawlError) -> Self {
        let message = error.to_string();
        let status = match error {
            CrawlError::GitHub(error) => return error.into(),
            CrawlError::Search(error) => return error.into(),
            CrawlError::Fetch(error) => return error.into(),
            CrawlError::Debate(error) => return error.into(),
            CrawlError::Session(error) => return error.into(),
            CrawlError::Export(error) => return error.into(),
            CrawlError::Inspect(InspectError::Repo(error)) => return error.into(),
            CrawlError::Offline(error) => {
                return Self::refused(message).hint(error.hint());
            }
            CrawlError::Inspect(
                InspectError::NoSubProject { .. } | InspectError::ChooseSubProject { .. },
            ) => ExitStatus::Usage,
            CrawlError::Artifact(error) => return error.into(),
            CrawlError::Canonical(_) | CrawlError::Interrupted { .. } => ExitStatus::Refused,
            CrawlError::PlanRejected { .. } => {
                return Self::new(ExitStatus::PlanRejected, message)
                    .hint("`crucible crawl plan` prints the plan with its violations; run nothing of it.")
                    .hint("Ask again, with more rounds (--max-debate-rounds) or other models; or take the standard steps of the build system with --offline.");
            }
        };
        Self::new(status, message)
    }
}

impl From<ArtifactError> for Failure {
    fn from(error: ArtifactError) -> Self {
        let status = match &error {
            ArtifactError::Mismatch { .. } => ExitStatus::Schema,
            ArtifactError::Canonical(_) => ExitStatus::Refused,
        };
        Self::new(status, error.to_string())
    }
}

impl From<SearchError> for Failure {
    fn from(error: SearchError) -> Self {
        let message = error.to_string();
        let status = match error {
            SearchError::GitHub(error) => return error.into(),
            SearchError::Query { .. } => ExitStatus::Usage,
            SearchError::Secret { .. } => ExitStatus::SecretDetected,
        };
        Self::new(status, message)
    }
}

impl From<GitHubError> for Failure {
    fn from(error: GitHubError) -> Self {
        let message = error.to_string();
        let status = match error {
            GitHubError::Gh(error) => return error.into(),
            GitHubError::RateLimited { .. } => ExitStatus::RateLimited,
            GitHubError::NotFound { .. } | GitHubError::Odd { .. } => ExitStatus::Refused,
        };
        Self::new(status, message)
    }
}

impl From<FetchError> for Failure {
    fn from(error: FetchError) -> Self {
        let message = error.to_string();
        let status = match error {
            FetchError::GitHub(GitHubError::Gh(error @ GhError::TooLarge { .. })) => {
                return Self::from(error).hint(
                    "Name a branch or tag with --ref NAME to have the repository cloned instead.",
                );
            }
            FetchError::GitHub(error) => return error.into(),
            FetchError::Local(error) => return error.into(),
            FetchError::Fs(error) => return error.into(),
            FetchError::Clone(error) => return error.into(),
            FetchError::Ref { .. }
            | FetchError::LocalCommit { .. }
            | FetchError::NoSuchPath { .. }
            | FetchError::NotADirectory { .. }
            | FetchError::Bare { .. }
            | FetchError::Unborn { .. }
            | FetchError::OtherHost { .. } => ExitStatus::Usage,
            FetchError::Name(_) | FetchError::Archive { .. } | FetchError::OtherCommit { .. } => {
                ExitStatus::Refused
            }
        };
        Self::new(status, message)
    }
}

impl From<DebateError> for Failure {
    fn from(error: DebateError) -> Self {
        let message = error.to_string();
        let status = match error {
            // A model that takes too long has failed like one that is not there.
            DebateError::Call(CallError::Llm(LlmError::Timeout { .. })) => ExitStatus::Provider,
            DebateError::Call(error) => {
                let command = Self::from(error);
                if !command.budget_exhausted {
                    return command;
                }
                return command.hint(format!(
                    "Allow a crawl more with {} (calls), {} (tokens) or {} (dollars).",
                    variable_of("llm.budget.calls"),
                    variable_of("llm.budget.tokens"),
                    variable_of("llm.budget.dollars")
                ));
            }
            DebateError::Reply {
                why: ReplyFault::Strict(StrictFault::WrongShape { .. }),
                ..
            } => ExitStatus::Schema,
            DebateError::Reply {
                why:
                    ReplyFault::TruncatedAnswer { .. }
                    | ReplyFault::OverBudget { .. }
                    | ReplyFault::Strict(StrictFault::TooLong { .. } | StrictFault::NoJson { .. }),
                ..
            } => ExitStatus::Provider,
            DebateError::Secret { .. } => ExitStatus::SecretDetected,
            DebateError::Transcript { .. } | DebateError::Json(_) => ExitStatus::Refused,
        };
        Self::new(status, message)
    }
}

impl From<SessionError> for Failure {
    fn from(error: SessionError) -> Self {
        let message = error.to_string();
        let status = match error {
            SessionError::Ledger(error) => return error.into(),
            SessionError::Lock(error) => return error.into(),
            SessionError::Canonical(_) => ExitStatus::Refused,
            SessionError::Secret { .. } => ExitStatus::SecretDetected,
        };
        Self::new(status, message)
    }
}

impl From<ExportError> for Failure {
    fn from(error: ExportError) -> Self {
        let message = error.to_string();
        let status = match error {
            ExportError::Fs(error) => return error.into(),
            ExportError::Relative { .. }
            | ExportError::System { .. }
            | ExportError::InsideGit { .. }
            | ExportError::NotADirectory { .. }
            | ExportError::Link { .. }
            | ExportError::NotWritable { .. }
            | ExportError::Occupied { .. } => ExitStatus::Usage,
            ExportError::Busy { .. } => ExitStatus::LockHeld,
            ExportError::Moved { .. } => ExitStatus::Refused,
            ExportError::UnsafePlan { .. } => ExitStatus::PlanRejected,
            ExportError::Contents { .. } => ExitStatus::Schema,
            ExportError::Secret { .. } => ExitStatus::SecretDetected,
        };
        Self::new(status, message)
    }
}
