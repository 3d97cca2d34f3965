//! Replay: repeats a run offline from its recording; every artifact must be the same.
//!
//! The base commit is checked out from the repository's own objects into a temporary directory. The answers
//! come from the cassette and are judged at their original times, and the ledger is temporary. A different
//! artifact either depends on more than its inputs, or was edited.

use std::collections::BTreeMap;
use std::sync::Arc;

use crucible_host::fs::temp_dir_in;
use crucible_ledger::{EventRecord, Ledger, NewEvent};
use crucible_llm::ModelClient;
use crucible_model::{Digest, Finding, Timestamp, Verdict};
use serde::Serialize;

use crate::attempt;
use crate::clients::Clients;
use crate::contract::RunRecord;
use crate::engine::advance;
use crate::error::RunError;
use crate::journal::RunObserver;
use crate::layout::{self, RunDir, attempt_file};
use crate::recorded::is_allowance;
use crate::recording::check_recording;
use crate::run_context::RunContext;
use crate::start::write_initial_files;
use crate::state::RunState;
use crate::status::LISTED;

/// What a replay found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Replayed {
    /// `crucible-replay-v1`.
    pub schema_version: &'static str,
    /// The state the replay reached.
    pub state: RunState,
    /// The artifacts that came out the same.
    pub same: Vec<String>,
    /// The artifacts that did not, or that only one of the two has.
    pub different: Vec<String>,
    /// Findings if the recording differs from the ledger.
    pub findings: Vec<Finding>,
}

/// Repeats a run with the answers of `client`, which reads the run's cassette. The cassette is checked
/// against `ledger`.
///
/// # Errors
///
/// Fails when the base commit is gone or the recording does not hold what is asked; different artifacts are
/// not an error but part of the result.
pub async fn replay(
    world: &RunContext<'_>,
    dir: &RunDir,
    client: &ModelClient,
    ledger: &Ledger,
    observer: &mut dyn RunObserver,
) -> Result<Replayed, RunError> {
    let record: RunRecord = dir.read_document(layout::RUN)?;
    let recording = check_recording(dir, &record.run_id, ledger)?;
    crucible_host::fs::create_dir_all(&world.tmp)?;
    let temp_dir = temp_dir_in(&world.tmp, "replay-")?;
    let repo = temp_dir.path().join("repo");
    let git = world.git(&record.repo, temp_dir.path()).await?;
    observer.working("crucible", "checking out the base of the run");
    git.check_out(&record.base_commit, &repo).await?;
    let record = RunRecord { repo, ..record };
    let inner = RunContext {
        env: world.env,
        clock: world.clock,
        sandbox: Arc::clone(&world.sandbox),
        runs_root: temp_dir.path().join("runs"),
        tmp: temp_dir.path().join("tmp"),
    };
    let replayed = RunDir::new(&inner.runs_root, &record.run_id);
    write_initial_files(&replayed, &record)?;
    let mut anew = Ledger::open(&temp_dir.path().join("ledger.db"))?;
    let events = ledger.events(Some(&record.run_id))?;
    let recorded = || Recorded {
        client,
        instants: instants(&events),
    };
    let mut state = advance(&inner, &replayed, |_| Ok(recorded()), &mut anew, observer).await?;
    for allowance in events.iter().filter(|event| is_allowance(event)) {
        // A person permitted it, then as now.
        let EventRecord {
            run,
            ts,
            role,
            event,
            path,
            key,
            body,
            ..
        } = allowance.clone();
        anew.append(NewEvent {
            run,
            ts,
            role,
            event,
            path,
            key,
            artifacts: Vec::new(),
            body,
        })?;
        state = advance(&inner, &replayed, |_| Ok(recorded()), &mut anew, observer).await?;
    }
    compare(dir, &replayed, state, &recording)
}

/// The answers of a run, and when they came.
struct Recorded<'c> {
    client: &'c ModelClient,
    instants: BTreeMap<String, Timestamp>,
}

impl Clients for Recorded<'_> {
    fn client(&self, _: &str) -> Result<&ModelClient, RunError> {
        Ok(self.client)
    }

    fn recorded_at(&self, key: &str) -> Option<Timestamp> {
        self.instants.get(key).copied()
    }
}

fn instants(events: &[EventRecord]) -> BTreeMap<String, Timestamp> {
    events
        .iter()
        .filter_map(|event| Some((event.key.clone()?, event.ts)))
        .collect()
}

fn compare(
    dir: &RunDir,
    replayed: &RunDir,
    state: RunState,
    recording: &Verdict,
) -> Result<Replayed, RunError> {
    let mut paths: Vec<String> = LISTED
        .iter()
        .filter(|path| **path != layout::LANDING)
        .map(|path| (*path).to_owned())
        .collect();
    let attempts = attempt::count_outcomes(dir).max(attempt::count_outcomes(replayed));
    for number in 1..=attempts {
        paths.extend(
            [
                attempt::ANSWER,
                attempt::PACK,
                attempt::PATCH,
                attempt::OUTCOME,
                attempt::REPORT,
            ]
            .map(|name| attempt_file(number, name)),
        );
    }
    let (mut same, mut different) = (Vec::new(), Vec::new());
    let as_recorded = if recording.passes() {
        &mut same
    } else {
        &mut different
    };
    as_recorded.push(layout::CASSETTE.to_owned());
    for path in paths {
        let digest = |dir: &RunDir| {
            Ok::<_, RunError>(
                dir.read_if_there(&path)?
                    .map(|bytes| Digest::compute(&bytes)),
            )
        };
        match (digest(dir)?, digest(replayed)?) {
            (None, None) => {}
            (before, after) if before == after => same.push(path),
            _ => different.push(path),
        }
    }
    let findings = recording.findings().to_vec();
    Ok(Replayed {
        schema_version: "crucible-replay-v1",
        state,
        same,
        different,
        findings,
    })
}
