//! The list of runs.

use crucible_ledger::{Ledger, RunRow};
use crucible_model::{RunId, Timestamp};
use serde::Serialize;

use crate::error::RunError;

/// The list as JSON.
#[derive(Debug, Serialize)]
pub struct RunListDocument<'a> {
    schema_version: &'static str,
    runs: Vec<ListedRun<'a>>,
}

#[derive(Debug, Serialize)]
struct ListedRun<'a> {
    run_id: &'a RunId,
    state: &'a str,
    goal: &'a str,
    repo: &'a str,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl<'a> RunListDocument<'a> {
    /// Returns the document of these runs.
    #[must_use]
    pub fn new(runs: &'a [RunRow]) -> Self {
        let listed = |run: &'a RunRow| ListedRun {
            run_id: &run.id,
            state: &run.state,
            goal: &run.goal,
            repo: &run.repo,
            created_at: run.created,
            updated_at: run.updated,
        };
        Self {
            schema_version: "crucible-run-list-v1",
            runs: runs.iter().map(listed).collect(),
        }
    }
}

/// Returns the runs, newest first; none where there is no ledger.
///
/// # Errors
///
/// Fails when the ledger cannot be read.
pub fn run_list(ledger: Option<&Ledger>) -> Result<Vec<RunRow>, RunError> {
    let mut runs = ledger.map_or_else(|| Ok(Vec::new()), Ledger::runs)?;
    runs.sort_by(|a, b| b.created.cmp(&a.created).then_with(|| b.id.cmp(&a.id)));
    Ok(runs)
}
