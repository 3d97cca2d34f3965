//! A run directory is created under a hidden name, and renamed when the ledger has the run's start.
//!
//! So no process sees the directory of an unlisted run, whenever `run start` is killed. The next command
//! settles a leftover hidden directory: it is renamed if the ledger knows the run, and removed otherwise.
//!
//! Who makes a directory holds a shared lock of the runs root meanwhile; who settles one holds it alone. The
//! kernel lets go of both with the process, so what is there under the exclusive lock was left by a process
//! that is gone.

use std::path::Path;
use std::time::Duration;

use crucible_host::fs;
use crucible_host::lock::{DirectoryTurn, LockError, TurnPurpose};
use crucible_ledger::Ledger;
use crucible_model::RunId;

use crate::error::RunError;
use crate::layout::{self, RunDir};

/// What the name of a run directory begins with until its run is listed.
const HIDDEN: &str = ".new-";

/// Maximum wait for another process that creates or settles a run directory, which takes milliseconds.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A run directory that still has a hidden name.
pub(crate) struct UnfinishedRun {
    /// Its path until then.
    pub(crate) dir: RunDir,
    named: RunDir,
    _turn: DirectoryTurn,
}

impl UnfinishedRun {
    /// Creates the directory of a run, and settles leftovers of killed processes.
    pub(crate) fn begin(runs_root: &Path, id: &RunId, ledger: &Ledger) -> Result<Self, RunError> {
        fs::create_dir_all(runs_root)?;
        settle_all(runs_root, ledger)?;
        let turn = turn(runs_root, TurnPurpose::Look)?;
        let dir = hidden(runs_root, id);
        dir.create()?;
        Ok(Self {
            dir,
            named: RunDir::new(runs_root, id),
            _turn: turn,
        })
    }

    /// Renames it: its run is listed.
    pub(crate) fn finish(self) -> Result<(), RunError> {
        Ok(fs::rename(self.dir.root(), self.named.root())?)
    }

    /// Removes it: no run was created.
    pub(crate) fn discard(self) {
        // What stays is removed by the next run that begins.
        let _stays = fs::remove_dir_all(self.dir.root());
    }
}

/// Renames the directory of a run if a process was killed before doing so.
pub(crate) fn finish_rename(runs_root: &Path, id: &RunId) -> Result<(), RunError> {
    let unfinished = hidden(runs_root, id);
    if !unfinished.has(layout::RUN) {
        return Ok(());
    }
    let _turn = turn(runs_root, TurnPurpose::Change)?;
    // Whoever was at it may have done so meanwhile.
    if unfinished.has(layout::RUN) {
        fs::rename(unfinished.root(), RunDir::new(runs_root, id).root())?;
    }
    Ok(())
}

fn settle_all(runs_root: &Path, ledger: &Ledger) -> Result<(), RunError> {
    // While another process creates one, nothing is settled; the next command does it.
    let Some(_turn) = DirectoryTurn::take(runs_root, TurnPurpose::Change, Duration::ZERO)? else {
        return Ok(());
    };
    let Ok(entries) = std::fs::read_dir(runs_root) else {
        return Ok(());
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let id = name
            .to_str()
            .and_then(|name| name.strip_prefix(HIDDEN)?.parse::<RunId>().ok());
        let (Some(id), true) = (id, entry.file_type().is_ok_and(|kind| kind.is_dir())) else {
            continue;
        };
        let named = RunDir::new(runs_root, &id);
        match ledger.run(&id)? {
            Some(_) if !named.root().exists() => fs::rename(&entry.path(), named.root())?,
            Some(_) => {}
            None => fs::remove_dir_all(&entry.path())?,
        }
    }
    Ok(())
}

fn hidden(runs_root: &Path, id: &RunId) -> RunDir {
    RunDir::from_path(runs_root.join(format!("{HIDDEN}{id}")))
}

fn turn(runs_root: &Path, purpose: TurnPurpose) -> Result<DirectoryTurn, RunError> {
    let turn = DirectoryTurn::take(runs_root, purpose, TIMEOUT)?;
    let owner = || "it creates or repairs a run directory".to_owned();
    turn.ok_or_else(|| {
        LockError::Held {
            path: runs_root.to_owned(),
            owner: owner(),
        }
        .into()
    })
}
