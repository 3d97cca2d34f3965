//! What differs between those who can serve a role: a model provider, a council, a command and a person. Each kind has one file.

use std::collections::BTreeMap;
use std::time::Duration;

use crucible_llm::LlmResult;
use crucible_model::Finding;
use serde_json::Value;

use super::action::Action;
use crate::contract::RunSettings;
use crate::recording::SEED;

/// The hint that names the file of the run directory which the answer becomes.
pub(crate) const TARGET: &str = "target";

/// How a service is called, and what is recorded of its answer.
pub(crate) trait RoleService: Sync {
    /// Whether it can look into the repository itself. Such a service gets the evidence files, answers with a unified diff, and needs no
    /// further files from Crucible.
    fn reads_repository(&self) -> bool {
        false
    }

    /// Whether it works in a copy of the repository, with its own tools, and needs no evidence files.
    fn works_in_copy(&self) -> bool {
        false
    }

    /// Whether a person answers. A prompt is written for it, and the run waits until the answer is in its file.
    fn is_person(&self) -> bool {
        false
    }

    /// Whether it writes logs, which the events about it list.
    fn writes_logs(&self) -> bool {
        false
    }

    /// How long one call may take.
    fn timeout(&self, settings: &RunSettings) -> Duration {
        Duration::from_secs(settings.model_timeout_s)
    }

    /// The hints of a call. Pure, so that a replay sends the same request.
    fn metadata(&self, settings: &RunSettings, call: &CallHints<'_>) -> BTreeMap<String, Value>;

    /// Why an answer is refused before it is read.
    fn refuse(&self, action: Action, subject: String, answer: &str) -> Option<Finding> {
        let _accepted = (action, subject, answer);
        None
    }

    /// Returns what the event records besides the answer, under the name of the service.
    fn report(&self, result: &LlmResult) -> Option<ServiceReport> {
        let _none = result;
        None
    }
}

/// What the hints of a call depend on.
pub(crate) struct CallHints<'c> {
    /// The name of the client.
    pub(crate) name: &'c str,
    /// The file of the run directory that the answer becomes.
    pub(crate) target: &'c str,
    /// The attempt, from 1.
    pub(crate) number: u64,
    /// How often an answer to the same question was refused.
    pub(crate) refusals: u64,
}

impl CallHints<'_> {
    /// Returns the hints for a service that reads the repository itself: the try and the target file.
    pub(super) fn with_target(&self) -> BTreeMap<String, Value> {
        BTreeMap::from([
            (SEED.to_owned(), self.number.into()),
            (TARGET.to_owned(), self.target.into()),
        ])
    }

    /// Returns the hint that only distinguishes tries.
    pub(super) fn seed(&self) -> BTreeMap<String, Value> {
        BTreeMap::from([(SEED.to_owned(), self.number.into())])
    }
}

/// What a service reports besides its answer.
pub(crate) struct ServiceReport {
    /// The field of the answer's event, and its value.
    pub(crate) field: (&'static str, Value),
    /// Lines for the person who watches the run.
    pub(crate) notes: Vec<String>,
}
