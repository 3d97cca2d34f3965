//! Where the calls of a try are recorded: in a directory of Crucible's own as `<receipt id>.<token>.calls.jsonl` while their answers are not
//! used up, and in the spec's directory as `context/<receipt id>.calls.jsonl` once they are.
//!
//! What lies in Crucible's own directory was asked and not used: the next try of the phase that asks the same provider and model takes it over, and
//! where its question is the same, it takes the answer from there and asks nobody. What always holds: nothing that a project brings along is
//! taken for an answer, and neither is what another provider said; no two processes write to the same recording, so one that lost its lock to
//! another and still waits for an answer harms nobody; its answer is taken over later.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use crucible_host::fs::{self, FsError};
use crucible_host::random;
use crucible_llm::{
    CallError, CallOutcome, Cassette, CassetteError, CassetteHeader, MAX_CASSETTE, RecordedCall,
};

use super::failure::answers_are_spent;
use crate::error::SpecError;
use crate::phase_id::PhaseId;
use crate::receipt::{PhaseEntry, PhaseStatus, ReceiptId};
use crate::state::SpecState;
use crate::store::SpecLock;

const ENDING: &str = ".calls.jsonl";

/// What is put behind the name of a recording that cannot be read.
const UNREADABLE: &str = ".unreadable";

/// Calls that an earlier try of a phase left.
pub(super) struct LeftCalls {
    path: PathBuf,
    /// The receipt that the try was to write.
    id: ReceiptId,
}

/// The file of the calls of a try that is under way. Nobody else has it. Where nobody said where answers are kept, it lies in the project,
/// and no later try believes it.
pub(super) fn calls_under_way(lock: &SpecLock, id: &ReceiptId) -> Result<PathBuf, SpecError> {
    let name = format!("{id}.{}{ENDING}", random::token()?);
    let kept = lock.store().calls()?;
    Ok(kept.unwrap_or_else(|| lock.store().dir().join("context")).join(name))
}

/// Calls that earlier tries of the phase left and nobody used up. Those that the newest receipt of the phase has used up are put
/// away first: whoever wrote it was killed before it could.
pub(super) fn left_calls(
    lock: &SpecLock,
    state: &SpecState,
    phase: PhaseId,
) -> Result<Vec<LeftCalls>, SpecError> {
    let newest = state.phase(phase).and_then(|known| known.newest_real.as_ref());
    let spent = newest.filter(|newest| newest.phase(phase.as_str()).is_some_and(has_spent));
    let Some(kept) = lock.store().calls()? else { return Ok(Vec::new()) };
    let mut left = Vec::new();
    for (name, id) in names_in(&kept, |name| left_by(name, phase))? {
        let path = kept.join(name);
        // Two tries of one second have one id. What is put away already is that of the one which wrote the receipt.
        let is_put = || place_of(lock, &id).symlink_metadata().is_ok();
        if spent.is_some_and(|spent| id.as_str() == spent.receipt_id) && !is_put() {
            put_away(lock, &path, &id)?;
        } else {
            left.push(LeftCalls { path, id });
        }
    }
    left.sort_by_key(|calls| calls.id.sequence());
    Ok(left)
}

/// Puts calls whose answers are used up into the spec's directory, beside what else there is of their try, and tells where.
pub(super) fn put_away(lock: &SpecLock, from: &Path, id: &ReceiptId) -> Result<PathBuf, SpecError> {
    if let Some(bytes) = read(from)? {
        lock.write_context_of_any_size(&format!("{id}{ENDING}"), &bytes)?;
        fs::remove_file(from)?;
    }
    Ok(place_of(lock, id))
}

/// Where the calls of a try lie whose answers are used up.
fn place_of(lock: &SpecLock, id: &ReceiptId) -> PathBuf {
    lock.store().dir().join("context").join(format!("{id}{ENDING}"))
}

/// Whether no call was written down there.
pub(super) fn is_unused(path: &Path) -> bool {
    matches!(read(path), Ok(Some(bytes)) if bytes.iter().filter(|byte| **byte == b'\n').count() <= 1)
}

/// Moves the calls that earlier tries left to the recording of this one, which holds its header alone so far. What another provider or model
/// said stays where it is. Tells the names of the files that could not be read; they are put aside.
pub(super) fn take_over(
    own: &Path,
    header: &CassetteHeader,
    left: &[LeftCalls],
) -> Result<Vec<String>, SpecError> {
    let head = read(own)?.unwrap_or_default();
    let (mut lines, mut seen) = (head.clone(), BTreeSet::new());
    let (mut taken, mut unreadable) = (Vec::new(), Vec::new());
    for LeftCalls { path, .. } in left {
        let bytes = match read(path) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => continue,
            Err(_) => Vec::from(*b"?\n"),
        };
        match said(bytes, &head, header) {
            RecordedCalls::Calls(calls) => {
                for call in calls {
                    if seen.insert(call.clone()) {
                        lines.extend_from_slice(&call);
                    }
                }
                taken.push(path);
            }
            RecordedCalls::ByOthers => {}
            RecordedCalls::Unreadable => {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned() + UNREADABLE;
                fs::rename(path, &path.with_file_name(&name))?;
                unreadable.push(name);
            }
        }
    }
    if lines.len() > head.len() {
        fs::write_atomic(own, &lines)?;
    }
    taken.into_iter().try_for_each(|path| fs::remove_file(path))?;
    Ok(unreadable)
}

/// What a recording holds for a client with a certain header.
enum RecordedCalls {
    /// Calls of the same provider and model, line by line.
    Calls(Vec<Vec<u8>>),
    /// Calls of another one.
    ByOthers,
    /// It is none.
    Unreadable,
}

fn said(mut bytes: Vec<u8>, head: &[u8], header: &CassetteHeader) -> RecordedCalls {
    bytes.truncate(bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1));
    if bytes.is_empty() {
        return RecordedCalls::Calls(Vec::new());
    }
    let headless;
    let (cassette, whole) = match Cassette::parse(&bytes) {
        Ok(cassette) => (cassette, &bytes),
        // Begun anew by a process that did not know that its recording was taken over.
        Err(_) => {
            headless = [head, &bytes].concat();
            match Cassette::parse(&headless) {
                Ok(cassette) => (cassette, &headless),
                Err(_) => return RecordedCalls::Unreadable,
            }
        }
    };
    let is_same = |other: &CassetteHeader| other.provider == header.provider && other.model == header.model;
    if !is_same(&cassette.header) {
        return RecordedCalls::ByOthers;
    }
    let lines = whole.split_inclusive(|byte| *byte == b'\n').skip(1);
    let is_own = |call: &RecordedCall| match &call.outcome {
        CallOutcome::Answered(result) => result.provider == header.provider,
        CallOutcome::Failed(_) => true,
    };
    RecordedCalls::Calls(
        lines.zip(&cassette.calls).filter(|(_, call)| is_own(call)).map(|(line, _)| line.to_vec()).collect(),
    )
}

/// Whether this try was answered and has used the answers up: the same answers would end it in the same way.
pub(super) fn has_spent(entry: &PhaseEntry) -> bool {
    let ended = match entry.status {
        PhaseStatus::Success => true,
        PhaseStatus::DryRun => false,
        PhaseStatus::Failed => entry.error.as_ref().is_some_and(|error| answers_are_spent(&error.class)),
    };
    // A try that a hook stopped before anybody was asked has read no answer.
    ended && entry.llm.is_some()
}

/// Removes drafts that a killed process left for hooks.
pub(super) fn clear_drafts(lock: &SpecLock) -> Result<(), SpecError> {
    let is_draft = |name: &str| name.strip_suffix(DRAFT)?.parse::<ReceiptId>().ok();
    let context = lock.store().dir().join("context");
    let drafts = names_in(&context, is_draft)?;
    if drafts.is_empty() {
        return Ok(());
    }
    lock.in_turn(|_| Ok(drafts.iter().try_for_each(|(name, _)| fs::remove_file(&context.join(name)))?))
}

/// How the name of a draft ends, behind the id of its receipt.
pub(super) const DRAFT: &str = ".draft.md";

/// The names in a directory that are meant, with what they mean, in order. In a link's place there are none.
fn names_in<T>(directory: &Path, meant: impl Fn(&str) -> Option<T>) -> Result<Vec<(String, T)>, SpecError> {
    if !directory.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
        return Ok(Vec::new());
    }
    let fail = |source| SpecError::Fs(FsError::Io { action: "list", path: directory.to_owned(), source });
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(fail)? {
        let Ok(name) = entry.map_err(fail)?.file_name().into_string() else { continue };
        if let Some(meaning) = meant(&name) {
            names.push((name, meaning));
        }
    }
    names.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(names)
}

/// The receipt that the calls of this name were for, if a try of the phase left them.
fn left_by(name: &str, phase: PhaseId) -> Option<ReceiptId> {
    let (id, _token) = name.strip_suffix(ENDING)?.split_once('.')?;
    let id: ReceiptId = id.parse().ok()?;
    (id.phase() == phase).then_some(id)
}

/// A recording, whole; nothing where there is none. A link is none that Crucible made.
fn read(path: &Path) -> Result<Option<Vec<u8>>, SpecError> {
    let fail = |error: FsError| SpecError::from(CallError::from(CassetteError::from(error)));
    match path.symlink_metadata() {
        Ok(meta) if meta.is_file() => fs::read_regular_up_to(path, MAX_CASSETTE).map(Some).map_err(fail),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Ok(_) => {
            let source = io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file");
            Err(fail(FsError::Io { action: "read", path: path.to_owned(), source }))
        }
        Err(source) => Err(fail(FsError::Io { action: "look at", path: path.to_owned(), source })),
    }
}
