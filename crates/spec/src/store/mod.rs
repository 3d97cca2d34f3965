//! A spec's directory: artifacts, receipts and context, changed under a lock and promoted together or not at all.
//!
//! `.crucible/specs/<id>/`: `artifacts/` (the documents), `receipts/`, `context/` (the idea, manifests, recorded calls), `lock`,
//! and `staging/` while something is being promoted. `docs/formats/spec.md` describes it.
//!
//! How it works: `listing` knows the names of receipts, `reading` what is known of a spec, `witness` what the ledger says of it,
//! `promotion` how it changes, `place` what may stand where. A lock may be taken by force, so each change is made in a turn of its own, after a
//! look whether the lock is still held: who took it waits for that turn to end.
//!
//! What always holds: nothing is read or written through a link, and no pipe is waited at.

mod listing;
mod place;
mod promotion;
mod reading;
mod witness;

use std::path::{Path, PathBuf};
use std::time::Duration;

use crucible_host::fs;
use crucible_host::lock::{DirectoryTurn, Lock, LockError, TurnPurpose};
use crucible_ledger::Ledger;

use self::listing::Listing;
use self::place::{
    CONTEXT, MAX_FILE, ensure_directory, is_directory, is_plain_name, locate, read_file, refused,
};
use crate::error::SpecError;
use crate::id::SpecId;
use crate::project::SpecProject;
use crate::receipt::SpecReceipt;
use crate::state::{ReceiptProblem, SpecState};

/// The lock's file.
const LOCK: &str = "lock";

/// How long a turn to change something is waited for. Promotions take milliseconds; one that was stopped half-way must not be joined.
const CHANGE_PATIENCE: Duration = Duration::from_secs(20);
/// How long a turn to look is waited for. Without it what is seen may be half of a promotion, and is told as files that differ.
const LOOK_PATIENCE: Duration = Duration::from_secs(5);

/// A spec's directory, for reading. It need not exist.
#[derive(Debug, Clone)]
pub struct SpecStore {
    spec: SpecId,
    dir: PathBuf,
    root: PathBuf,
}

/// The right to change a spec, held until it is dropped.
#[derive(Debug)]
pub struct SpecLock {
    store: SpecStore,
    lock: Lock,
}

/// How a lock is claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockClaim {
    /// Not while a living process holds it.
    Wait,
    /// Taken from whoever holds it: that process finds out before it promotes anything, and promotes nothing.
    Force,
}

/// A file that a phase writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhaseOutput {
    /// Its path in the spec's directory: `artifacts/10-design.md`.
    pub path: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl SpecStore {
    /// The spec of this project.
    #[must_use]
    pub fn new(project: &SpecProject, spec: SpecId) -> Self {
        let dir = project.spec(&spec);
        Self { spec, dir, root: project.root().to_owned() }
    }

    /// Which spec.
    #[must_use]
    pub fn spec(&self) -> &SpecId {
        &self.spec
    }

    /// Its directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Whether there is such a spec.
    #[must_use]
    pub fn exists(&self) -> bool {
        matches!(is_directory(&self.dir), Ok(true))
    }

    /// The project's directory, as it was named.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// What is known of it. Reads the names of all receipts, and of each phase only the receipts that can count.
    ///
    /// # Errors
    ///
    /// [`SpecError::Unknown`] where there is no such spec; a receipt that cannot be read is a problem in the state, no error.
    pub fn state(&self, ledger: Option<&Ledger>) -> Result<SpecState, SpecError> {
        let _turn = self.look()?;
        reading::state(self, ledger)
    }

    /// Every receipt there is, the oldest first, and what is wrong with those that cannot be read: for a timeline, not for a
    /// judgement. Reads them all.
    ///
    /// # Errors
    ///
    /// [`SpecError::Unknown`] where there is no such spec.
    pub fn history(&self) -> Result<(Vec<SpecReceipt>, Vec<ReceiptProblem>), SpecError> {
        let _turn = self.look()?;
        reading::history(self)
    }

    /// A file of the spec's directory (`artifacts/…`, `context/idea.md`), whole; nothing where it is not there.
    ///
    /// # Errors
    ///
    /// Fails for any other path, for what is no regular file of at most 16 MiB, and where a link stands in place of a directory.
    pub fn read(&self, path: &str) -> Result<Option<Vec<u8>>, SpecError> {
        match locate(&self.dir, path) {
            Some(place) if is_directory(&self.dir)? => read_file(&place, MAX_FILE),
            Some(_) => Ok(None),
            None => Err(refused("read", &self.dir.join(path), "it names no file of artifacts/ or context/")),
        }
    }

    /// Claims the spec, made where it does not exist, and finishes or takes back what a killed process left half-done.
    ///
    /// # Errors
    ///
    /// [`SpecError::Locked`] when a living process holds it.
    pub fn lock(&self, owner: &str, claim: LockClaim) -> Result<SpecLock, SpecError> {
        ensure_directory(&self.dir)?;
        let path = self.dir.join(LOCK);
        let lock = match claim {
            LockClaim::Wait => Lock::acquire(&path, owner),
            LockClaim::Force => Lock::seize(&path, owner),
        };
        let lock = match lock {
            Ok(lock) => lock,
            Err(LockError::Held { owner, .. }) => return Err(SpecError::Locked { owner }),
            Err(LockError::Fs(error)) => return Err(error.into()),
        };
        let held = SpecLock { store: self.clone(), lock };
        let turn = held.turn()?;
        promotion::recover(&held.store)?;
        drop(turn);
        Ok(held)
    }

    /// A turn to look, where it can be had; what is looked at is there.
    fn look(&self) -> Result<Option<DirectoryTurn>, SpecError> {
        if !is_directory(&self.dir)? {
            return Err(SpecError::Unknown { spec: self.spec.clone() });
        }
        // A file system without locks, or somebody who never ends: then the look is taken without.
        Ok(DirectoryTurn::take(&self.dir, TurnPurpose::Look, LOOK_PATIENCE).ok().flatten())
    }
}

impl SpecLock {
    /// The spec that is locked.
    #[must_use]
    pub fn store(&self) -> &SpecStore {
        &self.store
    }

    /// The place of the next receipt, from 1 on.
    ///
    /// # Errors
    ///
    /// Fails when the receipts cannot be listed.
    pub fn next_sequence(&self) -> Result<u64, SpecError> {
        Ok(Listing::read(self.store.dir())?.next_sequence())
    }

    /// Writes a file of `context/`, whole or not at all.
    ///
    /// # Errors
    ///
    /// [`SpecError::LockLost`] when somebody took the lock by force; fails for what is no plain name, or cannot be written.
    pub fn write_context(&self, name: &str, bytes: &[u8]) -> Result<(), SpecError> {
        let folder = self.store.dir().join(CONTEXT);
        if !is_plain_name(name) || bytes.len() as u64 > MAX_FILE.0 {
            return Err(refused(
                "write",
                &folder.join(name),
                "it has no plain name, or is larger than 16 MiB",
            ));
        }
        let _turn = self.turn()?;
        ensure_directory(&folder)?;
        Ok(fs::write_atomic(&folder.join(name), bytes)?)
    }

    /// Promotes outputs and their receipt together: staged, flushed, told to the ledger, then renamed into place, the receipt last. The
    /// receipt's id is that of [`SpecLock::next_sequence`] and its instant is set. Fills in its schema, spec, `sequence`, `previous`, `last_real`,
    /// `last_success` and `digest`, and the `outputs` of the phase that its id names. Killed at any point, the next [`SpecStore::lock`] either
    /// finishes or takes back all of it.
    ///
    /// # Errors
    ///
    /// [`SpecError::LockLost`] when somebody took the lock by force; for outputs that are no plain files of `artifacts/`; a file system's or the
    /// ledger's error. Nothing is promoted then, except after a file system that fails while files are moved: the next lock
    /// goes on with that.
    pub fn promote(
        &self,
        receipt: SpecReceipt,
        outputs: Vec<PhaseOutput>,
        ledger: &mut Ledger,
    ) -> Result<SpecReceipt, SpecError> {
        let _turn = self.turn()?;
        promotion::promote(&self.store, receipt, &outputs, ledger, &|| self.still_held())
    }

    /// A turn to change the spec, which this process must still be allowed to.
    fn turn(&self) -> Result<DirectoryTurn, SpecError> {
        let turn = DirectoryTurn::take(self.store.dir(), TurnPurpose::Change, CHANGE_PATIENCE)?;
        let turn = turn.ok_or_else(|| SpecError::Locked {
            owner: "a process that is promoting or looking, and does not come to an end".to_owned(),
        })?;
        self.still_held()?;
        Ok(turn)
    }

    fn still_held(&self) -> Result<(), SpecError> {
        if self.lock.is_still_held() { Ok(()) } else { Err(SpecError::LockLost) }
    }
}
