//! What a run of a project would lack.

use std::path::Path;

use crucible_model::Failure;
use crucible_repo::RepoError;
use crucible_verify::GateSpec;
use serde::Serialize;

use crate::check_gates::{GateCheck, GateState};
use crate::error::RunError;

/// Something that a run would lack.
#[derive(Debug, Serialize)]
pub struct MissingPart {
    /// What is missing.
    pub what: String,
    /// What to type, or to do.
    pub command: String,
}

impl MissingPart {
    /// Returns what prevented the gates from running.
    #[must_use]
    pub fn for_gates(error: RunError) -> Self {
        if let RunError::Repo(RepoError::Empty { .. }) = error {
            return Self {
                what: "the repository has no commit yet; a run needs one".to_owned(),
                command: "git add --all && git commit -m \"Begin\"".to_owned(),
            };
        }
        let failure = Failure::from(error);
        Self {
            command: failure.hints.join(" "),
            what: format!("the gates did not run: {}", failure.message),
        }
    }

    /// Returns what a run of this project would lack.
    #[must_use]
    pub fn of_project(top: Option<&Path>, gates: &[GateSpec], checks: &[GateCheck]) -> Vec<Self> {
        let mut missing = Vec::new();
        if top.is_none() {
            missing.push(Self {
                what: "not a git repository yet; a run needs one with a commit".to_owned(),
                command: "git init && git add --all && git commit -m \"Begin\"".to_owned(),
            });
        }
        if gates.is_empty() {
            missing.push(Self {
                what: "no gate found, so no change could be verified".to_owned(),
                command: "crucible init --test \"./run-tests\"".to_owned(),
            });
        }
        missing.extend(checks.iter().filter_map(|check| match &check.state {
            GateState::CouldNotRun { cause, remedy } => Some(Self {
                what: format!("gate {} could not run: {cause}", check.id),
                command: remedy.clone(),
            }),
            GateState::Passes | GateState::Fails { .. } => None,
        }));
        missing
    }
}
