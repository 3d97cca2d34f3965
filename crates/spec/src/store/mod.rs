//! A spec's directory: artifacts, receipts and context, changed under a lock and promoted together or not
//! at all.
//!
//! `.crucible/specs/<id>/` contains `artifacts/` (the documents), `receipts/`, `context/` (the idea,
//! manifests, recorded calls), `lock`, and `staging/` during a promotion. `docs/formats/spec.md`
//! describes it.
//!
//! `listing` knows the names of receipts, `reading` the state of a spec, `recorded_receipts` the ledger's
//! records, `promotion` how the spec changes, and `place` which files are allowed. A lock may be taken by
//! force, so each change happens in a separate turn, after a check that the lock is still held. The
//! process that took it waits for that turn to end.
//!
//! Invariant: nothing is read or written through a link, and reading never blocks on a pipe.

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
    CONTEXT, MAX_FILE, Standing, ensure_directory, is_plain_name, locate, read_file, refused,
    standing,
};
pub(crate) use self::recorded_receipts::RecordedReceipts;
use crate::error::{SpecAbsence, SpecError};
use crate::id::SpecId;
use crate::project::SpecProject;
use crate::receipt::SpecReceipt;
use crate::state::{ReceiptProblem, SpecState};

/// The lock's file.
const LOCK: &str = "lock";
/// The number of directories from the project to a spec: `.crucible`, `specs` and its own.
const DEPTH: usize = 3;

/// How long to wait for a turn to change something. Promotions take milliseconds; an interrupted one must
/// not be mixed with another.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(20);
/// How long to wait for a turn to read. Without a turn, a half-finished promotion may appear as differing
/// files.
const LOOK_TIMEOUT: Duration = Duration::from_secs(5);

/// A spec's directory, for reading. It need not exist.
#[derive(Debug, Clone)]
pub struct SpecStore {
    spec: SpecId,
    dir: PathBuf,
    project: SpecProject,
    records: Option<PathBuf>,
    calls: Option<PathBuf>,
    /// How many of the directories from the project to the spec are checked, counting from its own.
    looked_at: usize,
}

/// The right to change a spec, held until drop.
#[derive(Debug)]
pub struct SpecLock {
    store: SpecStore,
    lock: Lock,
}

/// How to claim a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockClaim {
    /// Only if no running process holds it; without waiting.
    IfFree,
    /// Take it from its holder, which detects that before its next promotion and then promotes nothing.
    Force,
}

/// The result of a promotion: in either case the receipt counts, and the ledger has recorded it.
#[derive(Debug, Clone, PartialEq)]
pub struct Promotion {
    /// The promoted receipt.
    pub receipt: SpecReceipt,
    /// Whether all files are already in place.
    pub end: PromotionEnd,
}

/// Whether all files of a promotion are in place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PromotionEnd {
    /// They are.
    Whole,
    /// Some files are still in `staging/`: [`SpecLock::settle`], or the next process that locks the spec,
    /// moves them.
    CleanUpPending {
        /// Why they could not be moved.
        why: String,
    },
}

/// A file that a phase writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhaseOutput {
    /// Its path in the spec's directory: `artifacts/10-design.md`.
    pub path: String,
    /// The content to write.
    pub bytes: Vec<u8>,
}

impl SpecStore {
    /// Opens the spec of this project.
    #[must_use]
    pub fn new(project: &SpecProject, spec: SpecId) -> Self {
        let dir = project.spec(&spec);
        Self {
            spec,
            dir,
            project: project.clone(),
            records: None,
            calls: None,
            looked_at: DEPTH,
        }
    }

    /// Opens many specs of a project for reading. Each one checks only its own directory, if no link
    /// leads to all of them.
    pub(crate) fn of_survey(project: &SpecProject) -> impl Fn(SpecId) -> Self {
        let specs = project.specs();
        let is_plain = |place: &Path| matches!(standing(place), Ok(Standing::Directory));
        let looked_at = if specs.ancestors().take(DEPTH - 1).all(is_plain) {
            1
        } else {
            DEPTH
        };
        move |spec| Self {
            looked_at,
            ..Self::new(project, spec)
        }
    }

    /// Sets the directory for journals of unfinished changes to the project and to the spec. It belongs
    /// to Crucible and is outside of every project, because a project from elsewhere must not contain
    /// such a journal. It need not exist. Without it, no interrupted promotion is treated as this
    /// machine's.
    #[must_use]
    pub fn with_records(self, records: impl Into<PathBuf>) -> Self {
        Self {
            records: Some(records.into()),
            ..self
        }
    }

    /// Sets the directory for answers that were paid for but not used. It belongs to Crucible for the
    /// same reason: files of a project are never used as answers. It need not exist. Without it, nothing
    /// is kept for a later attempt.
    #[must_use]
    pub(crate) fn with_calls(self, calls: impl Into<PathBuf>) -> Self {
        Self {
            calls: Some(calls.into()),
            ..self
        }
    }

    /// The directory for unused answers of this spec, if configured.
    pub(crate) fn calls(&self) -> Result<Option<PathBuf>, SpecError> {
        let Some(calls) = &self.calls else {
            return Ok(None);
        };
        Ok(Some(calls.join(format!(
            "{}-{}",
            self.project.key()?,
            self.spec
        ))))
    }

    /// The file that marks the receipt which this machine is about to promote, if a directory for
    /// journals is configured.
    fn mark(&self) -> Result<Option<PathBuf>, SpecError> {
        let Some(records) = &self.records else {
            return Ok(None);
        };
        Ok(Some(records.join(format!(
            "{}-{}.staged",
            self.project.key()?,
            self.spec
        ))))
    }

    /// The directory for journals, if configured.
    pub(crate) fn records(&self) -> Option<&Path> {
        self.records.as_deref()
    }

    /// The id of the spec.
    #[must_use]
    pub fn spec(&self) -> &SpecId {
        &self.spec
    }

    /// Its directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Whether the spec exists.
    ///
    /// # Errors
    ///
    /// [`SpecError::Unknown`] if a link or a file is in its path; file system errors.
    pub fn exists(&self) -> Result<bool, SpecError> {
        for place in self.ancestor_dirs() {
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

    /// The directories from the project to the spec, its own last. The project may be a clone from
    /// anyone, so a link in place of any of them could lead anywhere.
    fn ancestor_dirs(&self) -> impl Iterator<Item = &Path> {
        let mut ancestors: Vec<&Path> = self.dir.ancestors().take(self.looked_at).collect();
        ancestors.reverse();
        ancestors.into_iter()
    }

    pub(crate) fn project(&self) -> &SpecProject {
        &self.project
    }

    /// Reads the state of the spec: the names of all receipts, and for each phase only the receipts that can count.
    ///
    /// # Errors
    ///
    /// [`SpecError::Unknown`] if the spec does not exist; an unreadable receipt is a problem in the state, not an error.
    pub fn state(&self, ledger: Option<&Ledger>) -> Result<SpecState, SpecError> {
        self.state_seen_by(ledger.map(RecordedReceipts::from_ledger).as_ref())
    }

    /// [`SpecStore::state`] with a ledger that may already have been queried for all specs of the
    /// project.
    pub(crate) fn state_seen_by(
        &self,
        recorded: Option<&RecordedReceipts<'_>>,
    ) -> Result<SpecState, SpecError> {
        let _turn = self.look()?;
        reading::state(self, recorded)
    }

    /// All trusted receipts, the oldest first, and the problems of the others, by the same rules as [`SpecStore::state`]: for a timeline.
    /// Reads all of them.
    ///
    /// # Errors
    ///
    /// [`SpecError::Unknown`] if the spec does not exist.
    pub fn history(
        &self,
        ledger: Option<&Ledger>,
    ) -> Result<(Vec<SpecReceipt>, Vec<ReceiptProblem>), SpecError> {
        let _turn = self.look()?;
        reading::history(self, ledger.map(RecordedReceipts::from_ledger).as_ref())
    }

    /// Reads a whole file of the spec's directory (`artifacts/…`, `context/idea.md`); nothing if it does not exist.
    ///
    /// # Errors
    ///
    /// Fails for any other path, for anything but a regular file of at most 16 MiB, and if a link stands in place of a directory.
    pub fn read(&self, path: &str) -> Result<Option<Vec<u8>>, SpecError> {
        match locate(&self.dir, path) {
            Some(place) if self.exists()? => read_file(&place, MAX_FILE),
            Some(_) => Ok(None),
            None => Err(refused(
                "read",
                &self.dir.join(path),
                "it is not a file in artifacts/ or context/",
            )),
        }
    }

    /// Locks the spec, creates it if it does not exist, and completes or rolls back unfinished work of a killed process of this machine.
    ///
    /// # Errors
    ///
    /// Fails for a complete `staging/` that this machine did not create: its origin is unknown, so it is not promoted;
    /// [`SpecError::Locked`] if a running process holds the lock; [`SpecError::SpelledOtherwise`] if it does not exist and another spec,
    /// on disk or in the project's list, has the same name in another case.
    pub fn lock(&self, owner: &str, claim: LockClaim) -> Result<SpecLock, SpecError> {
        self.is_spelled_so()?;
        for place in self.ancestor_dirs() {
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
        let held = SpecLock {
            store: self.clone(),
            lock,
        };
        let turn = held.turn()?;
        promotion::recover(&held.store)?;
        drop(turn);
        Ok(held)
    }

    /// A turn to read, if available; the directory exists.
    fn look(&self) -> Result<Option<DirectoryTurn>, SpecError> {
        if !self.exists()? {
            return Err(self.unknown_spec());
        }
        // A file system without locks, or a process that never finishes: then read without a turn.
        Ok(
            DirectoryTurn::take(&self.dir, TurnPurpose::Look, LOOK_TIMEOUT)
                .ok()
                .flatten(),
        )
    }
}

impl SpecLock {
    /// The locked spec.
    #[must_use]
    pub fn store(&self) -> &SpecStore {
        &self.store
    }

    /// The sequence number of the next receipt, from 1.
    ///
    /// # Errors
    ///
    /// Fails if the receipts cannot be listed.
    pub fn next_sequence(&self) -> Result<u64, SpecError> {
        Ok(Listing::read(self.store.dir())?.next_sequence())
    }

    /// Writes a file of `context/` atomically.
    ///
    /// # Errors
    ///
    /// [`SpecError::LockLost`] if another process took the lock by force; fails for an invalid name and on write errors.
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

    /// Writes a file that is never read again; it has a plain name but no size limit.
    pub(crate) fn write_context_of_any_size(
        &self,
        name: &str,
        bytes: &[u8],
    ) -> Result<(), SpecError> {
        let folder = self.store.dir().join(CONTEXT);
        let _turn = self.turn()?;
        ensure_directory(&folder)?;
        Ok(fs::write_atomic(&folder.join(name), bytes)?)
    }

    /// Promotes outputs and their receipt together: staged, flushed, recorded in the ledger, then renamed into place, the receipt last.
    /// The receipt needs the id from [`SpecLock::next_sequence`] and its time. This sets its schema, spec, `sequence`, `previous`,
    /// `last_real`, `last_success` and `digest`, and the `outputs` of the phase in its id. If the process is killed at any point, the
    /// next [`SpecStore::lock`] completes or rolls back all of it.
    ///
    /// # Errors
    ///
    /// [`SpecError::LockLost`] if another process took the lock by force; for outputs that are not plain files of `artifacts/`; file
    /// system or ledger errors. Nothing is promoted in these cases. A file system error after the ledger has recorded the receipt is not an
    /// error: the receipt counts, and [`Promotion::end`] says what is left to do.
    pub fn promote(
        &self,
        receipt: SpecReceipt,
        outputs: Vec<PhaseOutput>,
        ledger: &mut Ledger,
    ) -> Result<Promotion, SpecError> {
        let _turn = self.turn()?;
        promotion::promote(&self.store, receipt, &outputs, ledger, &|| {
            self.still_held()
        })
    }

    /// Completes a promotion of this process that left files for later ([`PromotionEnd::CleanUpPending`]); does nothing otherwise.
    ///
    /// # Errors
    ///
    /// [`SpecError::LockLost`] if another process took the lock by force; file system errors.
    pub fn settle(&self) -> Result<(), SpecError> {
        let _turn = self.turn()?;
        promotion::recover(&self.store)
    }

    /// Changes files of the spec's work in a separate turn. `work` gets a function that checks whether
    /// the lock is still held, to call right before an irreversible change.
    pub(crate) fn in_turn<T>(
        &self,
        work: impl FnOnce(&dyn Fn() -> Result<(), SpecError>) -> Result<T, SpecError>,
    ) -> Result<T, SpecError> {
        let _turn = self.turn()?;
        work(&|| self.still_held())
    }

    /// A turn to change the spec, if this process still holds the lock.
    fn turn(&self) -> Result<DirectoryTurn, SpecError> {
        let turn = DirectoryTurn::take(self.store.dir(), TurnPurpose::Change, CHANGE_TIMEOUT)?;
        let turn = turn.ok_or_else(|| SpecError::Locked {
            owner: "a process that is reading or promoting and does not finish".to_owned(),
        })?;
        self.still_held()?;
        Ok(turn)
    }

    fn still_held(&self) -> Result<(), SpecError> {
        if self.lock.is_still_held() {
            Ok(())
        } else {
            Err(SpecError::LockLost)
        }
    }
}
