//! Earlier verified runs, which the resolver learns from.
//!
//! They are read from the ledger once, when a run is created, and saved in its `run.json`. The ledger grows
//! and a replay has another one, but the choice must stay the same.

use std::cmp::Reverse;

use crucible_ledger::Ledger;
use serde::{Deserialize, Serialize};

use super::goal::GoalWords;
use super::resolve::FindResult;
use crate::document;
use crate::error::RunError;
use crate::state::RunState;

/// Maximum number of newest runs that are read, and of runs that are kept.
const MAX_INSPECTED: usize = 200;
const MAX_KEPT: usize = 8;

/// Goals with at least so much in common are alike: the words of both, in percent of the words of either.
pub(super) const ALIKE_FROM: u32 = 40;

/// Earlier runs of one repository that ended well and had goals like this run's, the most alike first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PastRuns {
    /// They; at most eight.
    pub runs: Vec<PastRun>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PastRun {
    /// Its id.
    pub run_id: String,
    /// What it was for.
    pub goal: String,
    /// The workflow that it chose.
    pub workflow_id: String,
}

impl PastRuns {
    /// Returns the runs of the repository at `repo` that were verified or landed, chose a workflow and had a
    /// similar goal. `result_path` is the path of a run's find result.
    ///
    /// # Errors
    ///
    /// Fails when the ledger cannot be read. A result of an unknown version is ignored.
    pub fn similar_to(
        goal: &str,
        ledger: &Ledger,
        repo: &str,
        result_path: &str,
    ) -> Result<Self, RunError> {
        let words = GoalWords::parse(goal);
        let states = [RunState::Verified.name(), RunState::Landed.name()];
        let mut alike: Vec<(u32, PastRun)> = Vec::new();
        for run in ledger.runs_of(repo, &states, MAX_INSPECTED)? {
            let percent = words.similarity_percent(&GoalWords::parse(&run.goal));
            if percent < ALIKE_FROM {
                continue;
            }
            let result = ledger.recorded_file(&run.id, result_path)?;
            if let Some(result) = result.and_then(|bytes| document::read::<FindResult>(&bytes).ok())
            {
                let (run_id, workflow_id) = (run.id.to_string(), result.selected_workflow_id);
                alike.push((
                    percent,
                    PastRun {
                        run_id,
                        goal: run.goal,
                        workflow_id,
                    },
                ));
            }
        }
        // The sort is stable: of equally similar runs the newest are kept.
        alike.sort_by_key(|(percent, _)| Reverse(*percent));
        Ok(Self {
            runs: alike
                .into_iter()
                .take(MAX_KEPT)
                .map(|(_, run)| run)
                .collect(),
        })
    }

    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crucible_ledger::{NewEvent, RunRow};
    use crucible_model::{Digest, RunId, Timestamp};
    use serde_json::json;

    use super::*;

    const PATH: &str = "artifacts/find_result.json";

    fn put(
        ledger: &mut Ledger,
        number: u64,
        repo: &str,
        state: RunState,
        goal: &str,
        result: Option<&str>,
    ) -> String {
        let at = Timestamp::from_unix(Duration::from_secs(number));
        let id = RunId::new(at, Digest::compute(&number.to_be_bytes()));
        let (goal, repo, state) = (goal.to_owned(), repo.to_owned(), state.name().to_owned());
        ledger
            .record_run(RunRow {
                id: id.clone(),
                goal,
                repo,
                state,
                created: at,
                updated: at,
            })
            .unwrap();
        if let Some(result) = result {
            let digest = ledger.put_artifact(PATH, result.as_bytes()).unwrap();
            let body = json!({ "digest": digest });
            let event = NewEvent::new(id.clone(), at, "librarian", "FOUND", body)
                .about(PATH)
                .once("find");
            ledger.append(event).unwrap();
        }
        id.to_string()
    }

    fn result() -> String {
        let fields = json!({
            "schema_version": "ctcp-find-result-v1", "selected_workflow_id": "fix-defect", "selected_version": "1.0.0",
            "candidates": [],
        });
        fields.to_string()
    }

    #[test]
    fn only_similar_verified_runs_count() {
        let dir = tempfile::tempdir().unwrap();
        let mut ledger = Ledger::open(&dir.path().join("ledger.db")).unwrap();
        let (result, goal) = (result(), "fix the old parser");
        let good = Some(result.as_str());
        let later = result.replace("-v1", "-v2");
        let verified = put(
            &mut ledger,
            1,
            "/r",
            RunState::Verified,
            "Fixed old parsers",
            good,
        );
        put(&mut ledger, 2, "/other", RunState::Verified, goal, good);
        put(&mut ledger, 3, "/r", RunState::Failed, goal, good);
        put(&mut ledger, 4, "/r", RunState::Verified, goal, None);
        put(&mut ledger, 5, "/r", RunState::Verified, goal, Some(&later));
        put(
            &mut ledger,
            6,
            "/r",
            RunState::Verified,
            goal,
            Some("no json"),
        );
        let landed = put(
            &mut ledger,
            7,
            "/r",
            RunState::Landed,
            "fix the new parser",
            good,
        );
        put(
            &mut ledger,
            8,
            "/r",
            RunState::Verified,
            "draw a table",
            good,
        );
        let past = PastRuns::similar_to(goal, &ledger, "/r", PATH).unwrap();
        let ids: Vec<&String> = past.runs.iter().map(|run| &run.run_id).collect();
        assert_eq!(ids, [&verified, &landed], "the most alike first");
        assert_eq!(past.runs[1].workflow_id, "fix-defect");
        let bytes = serde_json::to_vec(&past).unwrap();
        assert_eq!(serde_json::from_slice::<PastRuns>(&bytes).unwrap(), past);
    }

    #[test]
    fn newest_eight_runs_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let mut ledger = Ledger::open(&dir.path().join("ledger.db")).unwrap();
        let result = result();
        let ids: Vec<String> = (0..10)
            .map(|number| {
                put(
                    &mut ledger,
                    number,
                    "/r",
                    RunState::Landed,
                    "fix it",
                    Some(&result),
                )
            })
            .collect();
        let past = PastRuns::similar_to("fix it", &ledger, "/r", PATH).unwrap();
        let run_ids: Vec<&String> = past.runs.iter().map(|run| &run.run_id).collect();
        assert_eq!(run_ids, ids.iter().rev().take(8).collect::<Vec<_>>());
    }
}
