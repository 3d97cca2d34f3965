//! Where the calls of a try are recorded: `context/<receipt id>.<token>.calls.jsonl` while it is under way,
//! `context/<phase>.calls.jsonl` when it ended without using its answers up, `context/<receipt id>.calls.jsonl` once they are.
//!
//! What lies under the first two names was asked and not used: the next try of the phase takes it over, and where its question is the same,
//! it takes the answer from there and asks nobody. What always holds: no two processes write to the same recording, so one that
//! lost its lock to another and still waits for an answer harms nobody; its answer is taken over later.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crucible_host::fs::{self, FsError};
use crucible_host::random;
use crucible_llm::{CallError, Cassette, CassetteError, MAX_CASSETTE};

use super::failure::answers_are_spent;
use crate::error::SpecError;
use crate::phase_id::PhaseId;
use crate::receipt::{PhaseEntry, PhaseStatus, ReceiptId};
use crate::state::SpecState;
use crate::store::SpecLock;

const ENDING: &str = ".calls.jsonl";

/// Calls that an earlier try of a phase left.
pub(super) struct LeftCalls {
    path: PathBuf,
    /// The receipt that the try was to write, where its name tells.
    id: Option<ReceiptId>,
}

/// The file of these calls in `context/`.
pub(super) fn calls_of(lock: &SpecLock, name: &str) -> PathBuf {
    lock.store().dir().join("context").join(format!("{name}{ENDING}"))
}

/// The file of the calls of a try that is under way. Nobody else has it.
pub(super) fn calls_under_way(lock: &SpecLock, id: &ReceiptId) -> Result<PathBuf, SpecError> {
    Ok(calls_of(lock, &format!("{id}.{}", random::token()?)))
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
    let mut left = Vec::new();
    for (name, id) in context_names(lock, |name| left_by(name, phase))? {
        let path = lock.store().dir().join("context").join(name);
        if let Some(spent) =
            spent.filter(|spent| id.as_ref().is_none_or(|id| id.as_str() == spent.receipt_id))
        {
            let to = calls_of(lock, &spent.receipt_id);
            if !to.exists() {
                fs::rename(&path, &to)?;
                continue;
            }
        }
        left.push(LeftCalls { path, id });
    }
    // The kept ones first, then the tries in their order.
    left.sort_by_key(|calls| calls.id.as_ref().map(ReceiptId::sequence));
    Ok(left)
}

/// Moves the calls that earlier tries left to the recording of this one, which holds its header alone so far. Gives the files that
/// cannot be read; they are still there.
pub(super) fn take_over(own: &Path, left: &[LeftCalls]) -> Result<Vec<PathBuf>, SpecError> {
    let head = read(own)?.unwrap_or_default();
    let (mut lines, mut seen) = (head.clone(), BTreeSet::new());
    let (mut taken, mut unreadable) = (Vec::new(), Vec::new());
    for LeftCalls { path, .. } in left {
        let Some(mut bytes) = read(path)? else { continue };
        bytes.truncate(bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1));
        let is_readable = |bytes: &[u8]| Cassette::parse(bytes).is_ok();
        let calls = if bytes.is_empty() {
            &[][..]
        } else if is_readable(&bytes) {
            bytes.split_at(bytes.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1)).1
        } else if is_readable(&[&head[..], &bytes].concat()) {
            // Begun anew by a process that did not know that its recording was taken over.
            &bytes[..]
        } else {
            unreadable.push(path.clone());
            continue;
        };
        for call in calls.split_inclusive(|byte| *byte == b'\n') {
            if seen.insert(call.to_vec()) {
                lines.extend_from_slice(call);
            }
        }
        taken.push(path);
    }
    if lines.len() > head.len() {
        fs::write_atomic(own, &lines)?;
    }
    taken.into_iter().try_for_each(|path| fs::remove_file(path))?;
    Ok(unreadable)
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
    let drafts = context_names(lock, is_draft)?;
    if drafts.is_empty() {
        return Ok(());
    }
    let context = lock.store().dir().join("context");
    lock.in_turn(|_| Ok(drafts.iter().try_for_each(|(name, _)| fs::remove_file(&context.join(name)))?))
}

/// How the name of a draft ends, behind the id of its receipt.
pub(super) const DRAFT: &str = ".draft.md";

/// The names in `context/` that are meant, with what they mean.
fn context_names<T>(
    lock: &SpecLock,
    meant: impl Fn(&str) -> Option<T>,
) -> Result<Vec<(String, T)>, SpecError> {
    let context = lock.store().dir().join("context");
    if !context.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
        return Ok(Vec::new());
    }
    let fail = |source| SpecError::Fs(FsError::Io { action: "list", path: context.clone(), source });
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&context).map_err(fail)? {
        let Ok(name) = entry.map_err(fail)?.file_name().into_string() else { continue };
        if let Some(meaning) = meant(&name) {
            names.push((name, meaning));
        }
    }
    names.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(names)
}

/// The receipt that the calls of this name were for, if a try of the phase left them.
fn left_by(name: &str, phase: PhaseId) -> Option<Option<ReceiptId>> {
    let of = name.strip_suffix(ENDING)?;
    if of == phase.as_str() {
        return Some(None);
    }
    let (id, _token) = of.split_once('.')?;
    let id: ReceiptId = id.parse().ok()?;
    (id.phase() == phase).then_some(Some(id))
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, SpecError> {
    match fs::read_regular_up_to(path, MAX_CASSETTE) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(CallError::from(CassetteError::from(error)).into()),
    }
}
