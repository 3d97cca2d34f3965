//! The recordings of calls: in Crucible's own directory as `<receipt id>.<token>.calls.jsonl` while
//! their answers are unused, and in the spec's directory as `context/<receipt id>.calls.jsonl`
//! afterwards.
//!
//! An answer in Crucible's own directory was received but not used. The next attempt of the phase with
//! the same provider and model takes it over, and reuses it without a call if the request is the same.
//! Invariants: a file of the project is never used as an answer, and neither is an answer of another
//! provider. No two processes write to the same recording, so a process that lost its lock does no harm;
//! its answer is taken over later.

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

/// The suffix of a recording that cannot be read.
const UNREADABLE: &str = ".unreadable";

/// Calls left by an earlier attempt of a phase.
pub(super) struct LeftCalls {
    path: PathBuf,
    /// The id of the receipt that the attempt would have written.
    id: ReceiptId,
}

/// The file for the calls of a running attempt; no other process has it. If no directory for answers is
/// configured, it is in the project, and later attempts ignore it.
pub(super) fn calls_under_way(lock: &SpecLock, id: &ReceiptId) -> Result<PathBuf, SpecError> {
    let name = format!("{id}.{}{ENDING}", random::token()?);
    let calls_dir = lock.store().calls()?;
    Ok(calls_dir
        .unwrap_or_else(|| lock.store().dir().join("context"))
        .join(name))
}

/// Unused calls of earlier attempts of the phase. Calls used by the newest receipt are moved away first:
/// the process was killed before it could do that.
pub(super) fn left_calls(
    lock: &SpecLock,
    state: &SpecState,
    phase: PhaseId,
) -> Result<Vec<LeftCalls>, SpecError> {
    let newest = state
        .phase(phase)
        .and_then(|known| known.newest_real.as_ref());
    let spent = newest.filter(|newest| newest.phase(phase.as_str()).is_some_and(has_spent));
    let Some(calls_dir) = lock.store().calls()? else {
        return Ok(Vec::new());
    };
    let mut left = Vec::new();
    for (name, id) in names_in(&calls_dir, |name| left_by(name, phase))? {
        let path = calls_dir.join(name);
        // Two attempts in one second have the same id. If a recording was already moved, it is that of
        // the attempt which wrote the receipt.
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

/// Moves used calls into the spec's directory, next to the attempt's other files, and returns the new
/// path.
pub(super) fn put_away(lock: &SpecLock, from: &Path, id: &ReceiptId) -> Result<PathBuf, SpecError> {
    if let Some(bytes) = read(from)? {
        lock.write_context_of_any_size(&format!("{id}{ENDING}"), &bytes)?;
        fs::remove_file(from)?;
    }
    Ok(place_of(lock, id))
}

/// The path for used calls of an attempt.
fn place_of(lock: &SpecLock, id: &ReceiptId) -> PathBuf {
    lock.store()
        .dir()
        .join("context")
        .join(format!("{id}{ENDING}"))
}

/// Whether a recording contains no call.
pub(super) fn is_unused(path: &Path) -> bool {
    matches!(read(path), Ok(Some(bytes)) if bytes.iter().filter(|byte| **byte == b'\n').count() <= 1)
}

/// Moves the calls of earlier attempts to this recording, which contains only its header so far. Calls of
/// other providers and models are left. Returns the names of unreadable files, which are renamed.
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
        match parse_recording(bytes, &head, header) {
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
                let name = path
                    .file_name()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned()
                    + UNREADABLE;
                fs::rename(path, &path.with_file_name(&name))?;
                unreadable.push(name);
            }
        }
    }
    if lines.len() > head.len() {
        fs::write_atomic(own, &lines)?;
    }
    taken
        .into_iter()
        .try_for_each(|path| fs::remove_file(path))?;
    Ok(unreadable)
}

/// The content of a recording, for a client with this header.
enum RecordedCalls {
    /// Calls of the same provider and model, line by line.
    Calls(Vec<Vec<u8>>),
    /// Calls of another provider or model.
    ByOthers,
    /// Not a recording.
    Unreadable,
}

fn parse_recording(mut bytes: Vec<u8>, head: &[u8], header: &CassetteHeader) -> RecordedCalls {
    bytes.truncate(
        bytes
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1),
    );
    if bytes.is_empty() {
        return RecordedCalls::Calls(Vec::new());
    }
    let headless;
    let (cassette, full_content) = match Cassette::parse(&bytes) {
        Ok(cassette) => (cassette, &bytes),
        // Recreated by a process that did not know that its recording was taken over.
        Err(_) => {
            headless = [head, &bytes].concat();
            match Cassette::parse(&headless) {
                Ok(cassette) => (cassette, &headless),
                Err(_) => return RecordedCalls::Unreadable,
            }
        }
    };
    let is_same =
        |other: &CassetteHeader| other.provider == header.provider && other.model == header.model;
    if !is_same(&cassette.header) {
        return RecordedCalls::ByOthers;
    }
    let lines = full_content.split_inclusive(|byte| *byte == b'\n').skip(1);
    let is_own = |call: &RecordedCall| match &call.outcome {
        CallOutcome::Answered(result) => result.provider == header.provider,
        CallOutcome::Failed(_) => true,
    };
    RecordedCalls::Calls(
        lines
            .zip(&cassette.calls)
            .filter(|(_, call)| is_own(call))
            .map(|(line, _)| line.to_vec())
            .collect(),
    )
}

/// Whether this attempt has used up its answers: the same answers would end it in the same way.
pub(super) fn has_spent(entry: &PhaseEntry) -> bool {
    let ended = match entry.status {
        PhaseStatus::Success => true,
        PhaseStatus::DryRun => false,
        PhaseStatus::Failed => entry
            .error
            .as_ref()
            .is_some_and(|error| answers_are_spent(&error.class)),
    };
    // An attempt that a hook stopped before the first call has read no answer.
    ended && entry.llm.is_some()
}

/// Deletes drafts that a killed process left for hooks.
pub(super) fn clear_drafts(lock: &SpecLock) -> Result<(), SpecError> {
    let is_draft = |name: &str| name.strip_suffix(DRAFT)?.parse::<ReceiptId>().ok();
    let context = lock.store().dir().join("context");
    let drafts = names_in(&context, is_draft)?;
    if drafts.is_empty() {
        return Ok(());
    }
    lock.in_turn(|_| {
        Ok(drafts
            .iter()
            .try_for_each(|(name, _)| fs::remove_file(&context.join(name)))?)
    })
}

/// The suffix of a draft, after the id of its receipt.
pub(super) const DRAFT: &str = ".draft.md";

/// The names in a directory that `meant` recognises, with its result, sorted. A link instead of the
/// directory has none.
fn names_in<T>(
    directory: &Path,
    meant: impl Fn(&str) -> Option<T>,
) -> Result<Vec<(String, T)>, SpecError> {
    if !directory.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
        return Ok(Vec::new());
    }
    let fail = |source| {
        SpecError::Fs(FsError::Io {
            action: "list",
            path: directory.to_owned(),
            source,
        })
    };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(fail)? {
        let Ok(name) = entry.map_err(fail)?.file_name().into_string() else {
            continue;
        };
        if let Some(meaning) = meant(&name) {
            names.push((name, meaning));
        }
    }
    names.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(names)
}

/// The receipt id in the name of a recording that an attempt of the phase left.
fn left_by(name: &str, phase: PhaseId) -> Option<ReceiptId> {
    let (id, _token) = name.strip_suffix(ENDING)?.split_once('.')?;
    let id: ReceiptId = id.parse().ok()?;
    (id.phase() == phase).then_some(id)
}

/// Reads a whole recording; nothing if it does not exist. Crucible creates no links, so a link is not one.
fn read(path: &Path) -> Result<Option<Vec<u8>>, SpecError> {
    let fail = |error: FsError| SpecError::from(CallError::from(CassetteError::from(error)));
    match path.symlink_metadata() {
        Ok(meta) if meta.is_file() => fs::read_regular_up_to(path, MAX_CASSETTE)
            .map(Some)
            .map_err(fail),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Ok(_) => {
            let source = io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file");
            Err(fail(FsError::Io {
                action: "read",
                path: path.to_owned(),
                source,
            }))
        }
        Err(source) => Err(fail(FsError::Io {
            action: "look at",
            path: path.to_owned(),
            source,
        })),
    }
}
