//! `crucible run verify-record`: everything that a run recorded, checked once more, offline.

use std::path::PathBuf;

use clap::Args;
use crucible_model::{ExitStatus, Failure, RunId, counted};
use crucible_run::{RecordCheck, RunDir, run_id, verify_record};

use crate::app::App;

/// Check a run's complete record offline
///
/// Checks events, digests, signatures, receipts and the commit that landed. Nothing is changed. An unfinished
/// run is checked up to its current state. For example: `crucible run verify-record RUN --repo .`
#[derive(Args)]
pub(crate) struct VerifyRecord {
    /// The run's id or a prefix of it
    run: String,
    /// The repository with the commit [default: where the run was started]
    #[arg(long, value_name = "DIR")]
    repo: Option<PathBuf>,
}

impl VerifyRecord {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let world = app.world_here()?;
        let ledger = app.required_ledger()?;
        let runs = ledger.runs()?;
        let named = run_id(&self.run, runs.iter().map(|run| run.id.as_str()))?;
        // A directory that lost its run.json, or that the ledger knows nothing of, is judged all the same.
        let dir = match named.parse::<RunId>() {
            Ok(id) if RunDir::new(&world.runs_root, &id).root().is_dir() => {
                RunDir::new(&world.runs_root, &id)
            }
            Ok(_) | Err(_) => world.open_run(named)?,
        };
        let repo = self.repo.as_ref().map(|repo| app.absolute(repo));
        let check = app.drive(verify_record(&world, &dir, &ledger, repo.as_deref()))?;
        let report = check.verdict.report("crucible-verify-record-v1");
        app.output.verdict(&report, &passed(&check))
    }
}

/// How far a record that passes was checked.
fn passed(check: &RecordCheck) -> String {
    let reached = check
        .reached
        .map_or("unknown", crucible_run::RunState::name);
    let commit = check
        .commit
        .as_ref()
        .map_or_else(String::new, |commit| format!(", commit {commit}"));
    let summary = match check.reached {
        Some(state) if state.is_end() => format!("the record is intact; the run is {reached}"),
        _ => format!("the record is intact up to the run's state ({reached})"),
    };
    format!(
        "{summary}: {}, {}{commit}",
        counted(check.events, "event"),
        counted(check.files, "recorded file")
    )
}
