//! Promotion: outputs and their receipt become part of the spec together, or not at all.
//!
//! Everything is written and flushed in `staging.new/`, which is then renamed to `staging/`: a `staging/`
//! is always complete. The ledger is written next, then the outputs are moved into `artifacts/` and
//! finally the receipt into `receipts/`. A failure before the ledger's commit rolls everything back.
//! After it, the next process that locks the spec moves the remaining files.
//!
//! A project, and a `staging/` in it, may come from anyone. So the receipt to be promoted is first marked
//! in Crucible's own directory: only a `staging/` with exactly that receipt is completed. The mark stays
//! until the ledger has the receipt.
//!
//! Invariants: a complete but unmarked `staging/` is neither promoted nor deleted. A file in the way is
//! replaced, never written through. A link in place of a directory is refused. A staging directory that
//! differs from its receipt is deleted.

use std::path::{Path, PathBuf};

use crucible_host::fs;
use crucible_ledger::{Ledger, ReceiptWriter};
use crucible_model::{ByteLimit, Digest};

use super::listing::Listing;
use super::place::{
    ARTIFACTS, CONTEXT, MAX_FILE, RECEIPTS, Standing, artifact_name, clear, ensure_directory,
    is_directory, read_file, refused, standing,
};
use super::reading::ReceiptCache;
use super::recorded_receipts;
use super::{PhaseOutput, Promotion, PromotionEnd, SpecStore};
use crate::error::SpecError;
use crate::phase_id::PhaseId;
use crate::receipt::{
    FileRecord, MAX_RECEIPT_BYTES, RECEIPT_SCHEMA, ReadReceipt, ReceiptId, ReceiptLink, SpecReceipt,
};

/// The directory of a complete staging.
const STAGING: &str = "staging";
/// The directory while it is written.
const UNFINISHED: &str = "staging.new";
/// The receipt in it.
const RECEIPT: &str = "receipt.json";

/// Whether the lock is still held.
pub(super) type StillHeld<'a> = &'a dyn Fn() -> Result<(), SpecError>;

/// Promotes. The caller holds the turn to change the spec.
pub(super) fn promote(
    store: &SpecStore,
    receipt: SpecReceipt,
    outputs: &[PhaseOutput],
    ledger: &mut Ledger,
    still_held: StillHeld<'_>,
) -> Result<Promotion, SpecError> {
    recover(store)?;
    let dir = store.dir();
    let id = place_of(store, &receipt)?;
    let records = check_outputs(dir, outputs)?;
    let project = store.project().key()?;

    let mut cache = ReceiptCache::open(store)?;
    let before = cache.listing.last().cloned();
    let previous = before.and_then(|before| cache.receipt(&before));
    let counting = cache.counting(id.phase());
    // Every receipt that counts, so that the ledger records it.
    PhaseId::ALL
        .into_iter()
        .filter(|phase| *phase != id.phase())
        .for_each(|phase| {
            cache.counting(phase);
        });
    let link = |read: &ReadReceipt| ReceiptLink {
        receipt_id: read.receipt.receipt_id.clone(),
        digest: read.digest,
    };
    let mut receipt = SpecReceipt {
        schema_version: RECEIPT_SCHEMA.to_owned(),
        spec_id: store.spec().as_str().to_owned(),
        sequence: id.sequence(),
        previous: previous.as_ref().map(link),
        last_real: counting.newest_real.as_ref().map(link),
        last_success: counting.last_success.as_ref().map(link),
        ..receipt
    };
    for phase in receipt
        .phases
        .iter_mut()
        .filter(|phase| phase.phase_id == id.phase().as_str())
    {
        phase.outputs.clone_from(&records);
    }
    let (receipt, digest, bytes) = receipt.sealed()?;
    if bytes.len() as u64 > MAX_RECEIPT_BYTES {
        return Err(refused(
            "write",
            &dir.join(RECEIPTS).join(id.file_name()),
            "the receipt is larger than 1 MiB",
        ));
    }

    let new = ReadReceipt { receipt, digest };
    complete_ledger(store, ledger, project, &cache)?;
    mark(store, digest)?;
    let outcome = stage(dir, outputs, &bytes)
        .and_then(|()| still_held())
        .and_then(|()| {
            recorded_receipts::record(
                ledger,
                project,
                &id,
                &new,
                bytes,
                ReceiptWriter::ThisMachine,
            )
        });
    if let Err(error) = outcome {
        take_back(dir);
        if standing(&dir.join(STAGING)).is_ok_and(|stands| stands == Standing::Nothing) {
            unmark(store);
        }
        return Err(error);
    }
    // The ledger has the receipt: it counts, and the next lock moves the remaining files.
    let end = match move_into_place(dir, &id, &records) {
        Ok(()) => {
            unmark(store);
            PromotionEnd::Whole
        }
        Err(error) => PromotionEnd::CleanUpPending {
            why: error.to_string(),
        },
    };
    Ok(Promotion {
        receipt: new.receipt,
        end,
    })
}

/// Completes a staging that a killed process left, and deletes an incomplete one. The caller holds the
/// turn to change the spec.
pub(super) fn recover(store: &SpecStore) -> Result<(), SpecError> {
    let dir = store.dir();
    clear(&dir.join(UNFINISHED))?;
    let staging = dir.join(STAGING);
    match standing(&staging)? {
        Standing::Nothing => {}
        Standing::Directory => match staged(store)? {
            Some(staged) if marked(store) == Some(staged.digest) => {
                move_into_place(dir, &staged.id, &staged.records)?;
            }
            Some(staged) => return Err(not_ours(&staging, &staged)),
            None => clear(&staging)?,
        },
        Standing::File(_) | Standing::Other => clear(&staging)?,
    }
    fs::remove_stale_temporaries(dir)?;
    for folder in [ARTIFACTS, RECEIPTS, CONTEXT] {
        let folder = dir.join(folder);
        if is_directory(&folder)? {
            fs::remove_stale_temporaries(&folder)?;
        }
    }
    Ok(())
}

/// The id of the receipt, which must have the next sequence number.
fn place_of(store: &SpecStore, receipt: &SpecReceipt) -> Result<ReceiptId, SpecError> {
    let receipts = store.dir().join(RECEIPTS);
    let next = Listing::read(store.dir())?.next_sequence();
    let id: ReceiptId = receipt
        .receipt_id
        .parse()
        .map_err(|_| refused("add a receipt to", &receipts, "its id is not a receipt id"))?;
    let why = if receipt.phase(id.phase().as_str()).is_none() {
        "its id names another phase than its content"
    } else if receipt.emitted_at.is_none() {
        "it does not say when it was written"
    } else if receipt.pipeline.is_none() {
        "it does not record the execution strategy"
    } else if id.sequence() != next {
        "other receipts were added or removed in the meantime; run the phase again"
    } else {
        return Ok(id);
    };
    Err(refused("add a receipt to", &receipts, why))
}

/// The records of outputs that can be promoted, after checking everything that could be in their way.
fn check_outputs(dir: &Path, outputs: &[PhaseOutput]) -> Result<Vec<FileRecord>, SpecError> {
    let mut records: Vec<FileRecord> = Vec::with_capacity(outputs.len());
    for PhaseOutput { path, bytes } in outputs {
        let place = dir
            .join(ARTIFACTS)
            .join(path.rsplit('/').next().unwrap_or_default());
        if artifact_name(path).is_none() || records.iter().any(|record| record.path == *path) {
            return Err(refused(
                "write",
                &place,
                "an output must be one plain file in artifacts/, listed once",
            ));
        }
        if bytes.len() as u64 > MAX_FILE.0 {
            return Err(fs::FsError::TooLarge {
                path: place,
                limit: MAX_FILE.0,
            }
            .into());
        }
        if standing(&place)? == Standing::Directory {
            return Err(refused(
                "write",
                &place,
                "a directory has its name; move it away",
            ));
        }
        records.push(FileRecord {
            path: path.clone(),
            sha256: Digest::compute(bytes),
            bytes: bytes.len() as u64,
        });
    }
    ensure_directory(&dir.join(ARTIFACTS))?;
    ensure_directory(&dir.join(RECEIPTS))?;
    Ok(records)
}

fn stage(dir: &Path, outputs: &[PhaseOutput], receipt: &[u8]) -> Result<(), SpecError> {
    let unfinished = dir.join(UNFINISHED);
    let artifacts = unfinished.join(ARTIFACTS);
    fs::create_dir_all(&artifacts)?;
    for PhaseOutput { path, bytes } in outputs {
        fs::write_atomic(&unfinished.join(path), bytes)?;
    }
    fs::write_atomic(&unfinished.join(RECEIPT), receipt)?;
    Ok(fs::rename(&unfinished, &dir.join(STAGING))?)
}

/// Rolls back a staging in one flushed step: only a directory named `staging/` is ever completed, and the
/// next lock deletes the rest. If that step fails, the receipt is deleted, without which the staging is
/// incomplete. If both fail, a complete `staging/` remains, and the next lock promotes it although this
/// process reported a failure.
fn take_back(dir: &Path) {
    let (staging, unfinished) = (dir.join(STAGING), dir.join(UNFINISHED));
    if fs::rename(&staging, &unfinished).is_err() {
        let _stays = fs::remove_file(&staging.join(RECEIPT));
    }
    let _stays = clear(&staging);
    let _stays = clear(&unfinished);
}

/// Marks the receipt with this digest as about to be promoted here.
fn mark(store: &SpecStore, digest: Digest) -> Result<(), SpecError> {
    let Some(mark) = store.mark()? else {
        return Ok(());
    };
    if let Some(records) = mark.parent() {
        fs::create_dir_all(records)?;
    }
    Ok(fs::write_atomic(&mark, format!("{digest}\n").as_bytes())?)
}

/// The digest of the receipt that this machine was last about to promote, if that is unfinished.
pub(super) fn marked(store: &SpecStore) -> Option<Digest> {
    let bytes = fs::read_regular_up_to(&store.mark().ok()??, ByteLimit(256)).ok()?;
    std::str::from_utf8(&bytes).ok()?.trim_end().parse().ok()
}

/// Removes the mark. A leftover mark names a receipt that the ledger has, and allows nothing else.
fn unmark(store: &SpecStore) {
    if let Ok(Some(mark)) = store.mark() {
        let _stays = fs::remove_file(&mark);
    }
}

/// The error for a `staging/` without a mark of this machine.
fn not_ours(staging: &Path, staged: &Staged) -> SpecError {
    let documents: Vec<&str> = staged
        .records
        .iter()
        .take(3)
        .map(|record| record.path.as_str())
        .collect();
    let replaces = if documents.is_empty() {
        "no document".to_owned()
    } else {
        documents.join(", ")
    };
    let why = format!(
        "this machine did not write its content: the receipt {}, which would replace {replaces}. It came with \
        the project or is forged. Inspect it, then delete the directory; it is ignored",
        staged.id
    );
    refused("promote", staging, &why)
}

/// Records earlier receipts that count and that the ledger lacks: a process was killed before it could
/// record them, or they came from elsewhere. A receipt with another recorded digest is left as it is, and
/// so is one below the ledger's last sequence number: the gate reports those.
fn complete_ledger(
    store: &SpecStore,
    ledger: &mut Ledger,
    project: Digest,
    cache: &ReceiptCache<'_>,
) -> Result<(), SpecError> {
    let spec = store.spec().as_str();
    let newest = ledger.newest_spec_receipts(&project, spec)?;
    let mut unknown = Vec::new();
    for (id, read) in cache.trusted() {
        if ledger
            .spec_receipts_of_id(&project, spec, id.as_str())?
            .is_empty()
        {
            unknown.push((id, read));
        }
    }
    if unknown.is_empty() {
        return Ok(());
    }
    let last = recorded_receipts::last_place(cache, ledger, (&project, spec), &newest)?;
    let own_digest = marked(store);
    for (id, read) in unknown.into_iter().filter(|(id, _)| id.sequence() > last) {
        let path = store.dir().join(RECEIPTS).join(id.file_name());
        let writer = match own_digest {
            Some(digest) if digest == read.digest => ReceiptWriter::ThisMachine,
            _ => ReceiptWriter::Unknown,
        };
        if let Some(content) = read_file(&path, ByteLimit(MAX_RECEIPT_BYTES))? {
            recorded_receipts::record(ledger, project, id, read, content, writer)?;
        }
    }
    Ok(())
}

/// The content of `staging/`.
pub(super) struct Staged {
    pub(super) id: ReceiptId,
    /// The digest of its receipt.
    pub(super) digest: Digest,
    /// Its documents.
    pub(super) records: Vec<FileRecord>,
}

/// Reads `staging/`, if it is complete according to its receipt and the receipt has a sequence number
/// after the existing ones.
pub(super) fn staged(store: &SpecStore) -> Result<Option<Staged>, SpecError> {
    let dir = store.dir();
    let staging = dir.join(STAGING);
    let Ok(Some(bytes)) = read_file(&staging.join(RECEIPT), ByteLimit(MAX_RECEIPT_BYTES)) else {
        return Ok(None);
    };
    let Some((id, read)) = ReadReceipt::staged(&bytes, store.spec()) else {
        return Ok(None);
    };
    if id.sequence() != Listing::read(dir)?.next_sequence() {
        return Ok(None);
    }
    let records = read
        .receipt
        .phase(id.phase().as_str())
        .map(|phase| phase.outputs.clone());
    let Some(records) = records else {
        return Ok(None);
    };
    let is_complete = records.iter().all(|record| {
        artifact_name(&record.path).is_some()
            && (holds(&staging.join(&record.path), record)
                || holds(&dir.join(&record.path), record))
    });
    Ok(is_complete.then_some(Staged {
        id,
        digest: read.digest,
        records,
    }))
}

fn holds(path: &Path, record: &FileRecord) -> bool {
    matches!(read_file(path, MAX_FILE), Ok(Some(bytes)) if Digest::compute(&bytes) == record.sha256)
}

/// Moves staged files into place, the receipt last. Files that were already moved are left as they are.
fn move_into_place(dir: &Path, id: &ReceiptId, records: &[FileRecord]) -> Result<(), SpecError> {
    let staging = dir.join(STAGING);
    ensure_directory(&dir.join(ARTIFACTS))?;
    ensure_directory(&dir.join(RECEIPTS))?;
    let outputs = records
        .iter()
        .map(|record| (staging.join(&record.path), dir.join(&record.path)));
    let receipt = (
        staging.join(RECEIPT),
        dir.join(RECEIPTS).join(id.file_name()),
    );
    let moves: Vec<(PathBuf, PathBuf)> = outputs.chain([receipt]).collect();
    for (from, to) in moves {
        if standing(&from)? != Standing::Nothing {
            fs::rename(&from, &to)?;
        }
    }
    Ok(clear(&staging)?)
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "a test puts something in the way"
)]
mod tests {
    use super::*;
    use crate::project::SpecProject;
    use crate::state::ReceiptProblemKind;

    fn draft(place: u64) -> SpecReceipt {
        let phases = [serde_json::json!({ "phase_id": "design", "status": "success" })];
        serde_json::from_value(serde_json::json!({
            "receipt_id": format!("design-20260131-093000-{place:04}"),
            "spec_id": "",
            "emitted_at": "2026-01-31T09:30:00Z",
            "pipeline": { "execution_strategy": "controlled" },
            "phases": phases,
        }))
        .unwrap()
    }

    fn document(text: &str) -> Vec<PhaseOutput> {
        vec![PhaseOutput {
            path: "artifacts/10-design.md".to_owned(),
            bytes: text.as_bytes().to_vec(),
        }]
    }

    /// Runs `between` after the staging and before the ledger, at the last check of the lock.
    fn promoted_while(
        happens: &dyn Fn(&Path) -> Result<(), SpecError>,
    ) -> (
        tempfile::TempDir,
        SpecStore,
        Ledger,
        Result<Promotion, SpecError>,
    ) {
        let home = tempfile::tempdir().unwrap();
        let project = SpecProject::at(home.path().join("project"));
        let store = SpecStore::new(&project, "export-data".parse().unwrap())
            .with_records(home.path().join("data/records"));
        fs::create_dir_all(store.dir()).unwrap();
        fs::create_dir_all(&home.path().join("data")).unwrap();
        let mut ledger = Ledger::open(&home.path().join("data/ledger.db")).unwrap();
        promote(
            &store,
            draft(1),
            &document("first"),
            &mut ledger,
            &|| Ok(()),
        )
        .unwrap();
        let dir = store.dir().to_owned();
        let promoted = promote(&store, draft(2), &document("second"), &mut ledger, &|| {
            happens(&dir)
        });
        (home, store, ledger, promoted)
    }

    #[test]
    fn promotion_after_ledger_finishes_at_next_lock() {
        let artifact = |dir: &Path| dir.join("artifacts/10-design.md");
        let (_home, store, ledger, promoted) = promoted_while(&|dir| {
            std::fs::remove_file(artifact(dir)).unwrap();
            std::fs::create_dir(artifact(dir)).unwrap();
            Ok(())
        });
        let promoted = promoted.unwrap();
        let PromotionEnd::CleanUpPending { why } = &promoted.end else {
            panic!("{promoted:?}")
        };
        assert!(why.contains("10-design.md"), "{why}");
        let kinds = || -> Vec<_> {
            let problems = store.state(Some(&ledger)).unwrap().problems;
            problems.into_iter().map(|problem| problem.kind).collect()
        };
        assert_eq!(kinds(), [ReceiptProblemKind::PromotionUnfinished]);
        std::fs::remove_dir(artifact(store.dir())).unwrap();
        recover(&store).unwrap();
        assert_eq!(kinds(), []);
        let state = store.state(Some(&ledger)).unwrap();
        let newest = state
            .phase(PhaseId::Design)
            .and_then(|phase| phase.newest_real.clone());
        assert_eq!(newest, Some(promoted.receipt));
        assert_eq!(
            std::fs::read_to_string(artifact(store.dir())).unwrap(),
            "second"
        );
        assert!(!store.dir().join(STAGING).exists());
    }

    #[test]
    fn promotion_failing_before_ledger_rolls_back() {
        let (_home, store, ledger, promoted) = promoted_while(&|dir| {
            assert!(dir.join(STAGING).join(RECEIPT).exists());
            Err(SpecError::LockLost)
        });
        assert!(matches!(promoted, Err(SpecError::LockLost)));
        for name in [STAGING, UNFINISHED] {
            assert!(!store.dir().join(name).exists(), "{name}");
        }
        recover(&store).unwrap();
        let state = store.state(Some(&ledger)).unwrap();
        assert_eq!((state.receipts, state.problems), (1, Vec::new()));
    }
}
