//! Checks the complete record of a run: offline, and without changing anything.
//!
//! First everything is read into one value (`reading`): the events from the ledger, the files of the run,
//! what the ledger keeps of them, the commit. Then that value is judged (`judging`), which is a pure
//! function. The ledger is authoritative; its chain is checked from the run's first event to its end, and a
//! landed commit vouches for it.
//!
//! Invariants: links in the run directory are not followed, pipes are not opened, no file is read further
//! than what it is to be compared with, and a run is judged as far as it has come by its events.

mod judging;
mod reading;
mod unrecorded;

use std::path::Path;

use crucible_ledger::Ledger;
use crucible_model::Verdict;
use crucible_repo::Oid;

use crate::error::RunError;
use crate::layout::RunDir;
use crate::run_context::RunContext;
use crate::state::RunState;

pub(crate) use reading::record as recorded_start;
pub(crate) use unrecorded::RecordedFiles;
pub use unrecorded::{FilesListed, UnrecordedFiles, unrecorded};

/// What came of checking the record of a run.
#[derive(Debug, Clone)]
pub struct RecordCheck {
    /// The run's state by its events; `None` without events.
    pub reached: Option<RunState>,
    /// How many events it has.
    pub events: u64,
    /// How many recorded files were compared.
    pub files: u64,
    /// The commit that landed and was compared.
    pub commit: Option<Oid>,
    /// What was found.
    pub verdict: Verdict,
}

/// Checks the record of a run. The repository is at the path where the run was started, or at `repo`.
///
/// # Errors
///
/// Fails when the ledger cannot be read, or git cannot be run. Errors in the record are findings.
pub async fn verify_record(
    world: &RunContext<'_>,
    dir: &RunDir,
    ledger: &Ledger,
    repo: Option<&Path>,
) -> Result<RecordCheck, RunError> {
    let read = reading::read(world, dir, ledger, repo).await?;
    Ok(judging::judge(&read))
}

/// Checks the record of a run that is about to land. The landing itself checks the ledger's chain and the
/// patch's tree; no process is started.
///
/// # Errors
///
/// Fails when the ledger or the run directory cannot be read.
pub(crate) fn verify_before_landing(dir: &RunDir, ledger: &Ledger) -> Result<Verdict, RunError> {
    Ok(judging::judge(&reading::read_run(dir, ledger)?).verdict)
}
