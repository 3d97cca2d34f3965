//! A spec's directory: artifacts, receipts and context, changed under a lock and promoted together or not at all.
//!
//! `.crucible/specs/<id>/`: `artifacts/` (the documents), `receipts/`, `context/` (the idea, manifests, recorded calls), `lock`,
//! and `staging/` while something is being promoted. `docs/formats/spec.md` describes it.
//!
//! How it works: `listing` knows the names of receipts, `reading` what is known of a spec, `recorded` what the ledger says of it,
//! `promotion` how it changes, `place` what may stand where. A lock may be taken by force, so each change is made in a turn of its own, after a
//! look whether the lock is still held: who took it waits for that turn to end.
//!
//! What always holds: nothing is read or written through a link, and no pipe is waited at.

mod listing;
mod near;
mod place;
mod promotion;
mod reading;
mod recorded_receipts;

use std::path::{Path, PathBuf};
use std::time::Duration;

use crucible_host::fs;
use crucible_host::lock::{DirectoryTurn, Lock, LockError, TurnPurpose};
use crucible_ledger::Ledger;

use self::listing::Listing;
use self::place::{
    CONTEXT, MAX_FILE, Standing, ensure_directory, is_plain_name, locate, read_file, refused, standing,
};
pub(crate) use self::recorded_receipts::RecordedReceipts;
use crate::error::{SpecAbsence, SpecError};
use crate::id::SpecId;
use crate::project::SpecProject;
use crate::receipt::SpecReceipt;
use crate::state::{ReceiptProblem, SpecState};

/// The lock's file.
const LOCK: &str = "lock";
/// How many directories lead to a spec: `.crucible`, `specs` and its own.
const DEPTH: usize = 3;

/// How long a turn to change something is waited for. Promotions take milliseconds; one that was stopped half-way must not be joined.
const CHANGE_PATIENCE: Duration = Duration::from_secs(20);
/// How long a turn to look is waited for. Without it what is seen may be half of a promotion, and is told as files that differ.
const LOOK_PATIENCE: Duration = Duration::from_secs(5);

/// A spec's directory, for reading. It need not exist.
#[derive(Debug, Clone)]
pub struct SpecStore {
    spec: SpecId,
    dir: PathBuf,
    project: SpecProject,
    records: Option<PathBuf>,
    calls: Option<PathBuf>,
    /// How many of the directories that lead to the spec are looked at, its own among them.
    looked_at: usize,
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
    /// Only where no living process holds it; it is not waited for.
    IfFree,
    /// Taken from whoever holds it: that process finds out before it promotes anything, and promotes nothing.
    Force,
}

/// What a promotion came to: either way the receipt counts, and the ledger knows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Promotion {
    /// The receipt, as it was promoted.
    pub receipt: SpecReceipt,
    /// Whether everything is where it belongs already.
    pub end: PromotionEnd,
}

/// Whether all of a promotion is where it belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PromotionEnd {
    /// It is.
    Whole,
    /// It is promoted, and some of it still lies in `staging/`: [`SpecLock::settle`], or whoever locks the spec next, moves it.
    CleanUpPending {
        /// Why it could not be moved.
        why: String,
    },
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
        Self { spec, dir, project: project.clone(), records: None, calls: None, looked_at: DEPTH }
    }

    /// Many specs of a project, for reading, of which each looks only at what is its own where no link leads to them all.
    pub(crate) fn of_survey(project: &SpecProject) -> impl Fn(SpecId) -> Self {
        let specs = project.specs();
        let is_plain = |place: &Path| matches!(standing(place), Ok(Standing::Directory));
        let looked_at = if specs.ancestors().take(DEPTH - 1).all(is_plain) { 1 } else { DEPTH };
        move |spec| Self { looked_at, ..Self::new(project, spec) }
    }

    /// The same, with the directory where what is under way with the project's files and with the spec's own is recorded: one of Crucible's own,
    /// outside of every project, because whoever hands a project over must not be able to put a record there. It need not exist. Without one no
    /// promotion that was broken off is taken for this machine's.
    #[must_use]
    pub fn with_records(self, records: impl Into<PathBuf>) -> Self {
        Self { records: Some(records.into()), ..self }
    }

    /// The same, with the directory where answers are kept that were paid for and not used yet: one of Crucible's own, for the same
    /// reason; what a project brings along answers nothing. It need not exist. Without one nothing is kept for a later try.
    #[must_use]
    pub fn with_calls(self, calls: impl Into<PathBuf>) -> Self {
        Self { calls: Some(calls.into()), ..self }
    }

    /// Where the answers of this very spec are kept that are not used yet, if somebody said.
    pub(crate) fn calls(&self) -> Result<Option<PathBuf>, SpecError> {
        let Some(calls) = &self.calls else { return Ok(None) };
        Ok(Some(calls.join(format!("{}-{}", self.project.key()?, self.spec))))
    }

    /// Where it is recorded what this machine is about to promote, if somebody said where records lie.
    fn mark(&self) -> Result<Option<PathBuf>, SpecError> {
        let Some(records) = &self.records else { return Ok(None) };
        Ok(Some(records.join(format!("{}-{}.staged", self.project.key()?, self.spec))))
    }

    /// Where changes of the project's files are recorded, if somebody said.
    pub(crate) fn records(&self) -> Option<&Path> {
        self.records.as_deref()
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
    ///
    /// # Errors
    ///
    /// [`SpecError::Unknown`] where a link or a file stands in its place or on the way to it; a file system's error.
    pub fn exists(&self) -> Result<bool, SpecError> {
        for place in self.way() {
            match standing(place)? {
                Standing::Directory => {}
                Standing::Nothing => return Ok(false),
                Standing::File(_) | Standing::Other => {
                    return Err(self.absent(SpecAbsence::NoDirectory(place.to_owned())));
                }
            }
        }
        Ok(true)
    }

    /// The directories that lead from the project to the spec, its own last. A project is somebody's clone: a link in place of any of
    /// them could lead anywhere.
    fn way(&self) -> impl Iterator<Item = &Path> {
        let mut way: Vec<&Path> = self.dir.ancestors().take(self.looked_at).collect();
        way.reverse();
        way.into_iter()
    }

    /// The project.
    pub(crate) fn project(&self) -> &SpecProject {
        &self.project
    }

    /// What is known of it. Reads the names of all receipts, and of each phase only the receipts that can count.
    ///
    /// # Errors
    ///
    /// [`SpecError::Unknown`] where there is no such spec; a receipt that cannot be read is a problem in the state, no error.
    pub fn state(&self, ledger: Option<&Ledger>) -> Result<SpecState, SpecError> {
        self.state_seen_by(ledger.map(RecordedReceipts::of).as_ref())
    }

    /// [`SpecStore::state`], with a ledger that may have been asked for all specs of the project already.
    pub(crate) fn state_seen_by(
        &self,
        recorded: Option<&RecordedReceipts<'_>>,
    ) -> Result<SpecState, SpecError> {
        let _turn = self.look()?;
        reading::state(self, recorded)
    }

    /// Every receipt that can be believed, the oldest first, and what is wrong with the others, by the same judgement as
    /// [`SpecStore::state`]: for a timeline. Reads them all.
    ///
    /// # Errors
    ///
    /// [`SpecError::Unknown`] where there is no such spec.
    pub fn history(
        &self,
        ledger: Option<&Ledger>,
    ) -> Result<(Vec<SpecReceipt>, Vec<ReceiptProblem>), SpecError> {
        let _turn = self.look()?;
        reading::history(self, ledger.map(RecordedReceipts::of).as_ref())
    }

    /// A file of the spec's directory (`artifacts/…`, `context/idea.md`), whole; nothing where it is not there.
    ///
    /// # Errors
    ///
    /// Fails for any other path, for what is no regular file of at most 16 MiB, and where a link stands in place of a directory.
    pub fn read(&self, path: &str) -> Result<Option<Vec<u8>>, SpecError> {
        match locate(&self.dir, path) {
            Some(place) if self.exists()? => read_file(&place, MAX_FILE),
            Some(_) => Ok(None),
            None => Err(refused("read", &self.dir.join(path), "it is not a file in artifacts/ or context/")),
        }
    }

    /// Claims the spec, made where it does not exist, and finishes or takes back what a killed process of this machine left half-done.
    ///
    /// # Errors
    ///
    /// Fails where a whole `staging/` lies there that this machine did not begin: nobody here knows who made it, so nothing of it is promoted;
    /// [`SpecError::Locked`] when a living process holds it; [`SpecError::SpelledOtherwise`] where it does not exist and another spec, on the
    /// disk or in the project's list, has its name in other capitals.
    pub fn lock(&self, owner: &str, claim: LockClaim) -> Result<SpecLock, SpecError> {
        self.is_spelled_so()?;
        for place in self.way() {
            ensure_directory(place)?;
        }
        let path = self.dir.join(LOCK);
        let lock = match claim {
            LockClaim::IfFree => Lock::acquire(&path, owner),
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
        if !self.exists()? {
            return Err(self.unknown());
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
        if !is_plain_name(name) || bytes.len() as u64 > MAX_FILE.0 {
            return Err(refused(
                "write",
                &self.store.dir().join(CONTEXT).join(name),
                "its name is not plain, or it is larger than 16 MiB",
            ));
        }
        self.write_context_of_any_size(name, bytes)
    }

    /// The same for what nobody reads again, which has no limit and a plain name.
    pub(crate) fn write_context_of_any_size(&self, name: &str, bytes: &[u8]) -> Result<(), SpecError> {
        let folder = self.store.dir().join(CONTEXT);
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
    /// ledger's error. Nothing is promoted then. A file system that fails after the ledger was told is no error: the receipt counts, and
    /// [`Promotion::end`] says what is left to do.
    pub fn promote(
        &self,
        receipt: SpecReceipt,
        outputs: Vec<PhaseOutput>,
        ledger: &mut Ledger,
    ) -> Result<Promotion, SpecError> {
        let _turn = self.turn()?;
        promotion::promote(&self.store, receipt, &outputs, ledger, &|| self.still_held())
    }

    /// Finishes what a promotion of this process left for later ([`PromotionEnd::CleanUpPending`]); fine where there is nothing.
    ///
    /// # Errors
    ///
    /// [`SpecError::LockLost`] when somebody took the lock by force; a file system's error.
    pub fn settle(&self) -> Result<(), SpecError> {
        let _turn = self.turn()?;
        promotion::recover(&self.store)
    }

    /// Changes files that belong to the spec's work in a turn of its own. `work` is handed a look whether the lock is still held, for the
    /// moment right before it changes something that cannot be taken back.
    pub(crate) fn in_turn<T>(
        &self,
        work: impl FnOnce(&dyn Fn() -> Result<(), SpecError>) -> Result<T, SpecError>,
    ) -> Result<T, SpecError> {
        let _turn = self.turn()?;
        work(&|| self.still_held())
    }

    /// A turn to change the spec, which this process must still be allowed to.
    fn turn(&self) -> Result<DirectoryTurn, SpecError> {
        let turn = DirectoryTurn::take(self.store.dir(), TurnPurpose::Change, CHANGE_PATIENCE)?;
        let turn = turn.ok_or_else(|| SpecError::Locked {
            owner: "a process that is reading or promoting and does not finish".to_owned(),
        })?;
        self.still_held()?;
        Ok(turn)
    }

    fn still_held(&self) -> Result<(), SpecError> {
        if self.lock.is_still_held() { Ok(()) } else { Err(SpecError::LockLost) }
    }
}
