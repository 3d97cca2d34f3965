//! Files of a run directory that no event of the run records: planted, left over, or a person's own.
//!
//! An event records a file if it names it (with its digest, as a prompt, or as the path of an answer). Files
//! made from recorded ones also count: copies of an attempt's files, evidence files, and derived files. An
//! interrupted step is repeated when the run continues, so its leftovers are harmless in an unfinished run.
//!
//! What always holds: no link is followed, and where more lies there than is listed, that is reported. What is
//! asked of one file (whether it goes into a bundle) is answered for every file, listed or not.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crucible_ledger::EventRecord;
use serde_json::Value;

use crate::attempt;
use crate::dispatch::evidence;
use crate::dispatch::service::TARGET;
use crate::event_kind::{
    AttemptStep, EventKind, asked_key, attempt_key, attempt_step, full_gates_runs,
};
use crate::layout::{self, RunDir, attempt_file, full_gates_files};
use crate::recorded::recorded_files;

/// The most files of a run directory that are listed.
const LIMIT: usize = 10_000;

/// How deep directories are entered.
const MAX_DEPTH: usize = 8;

/// Initial files that are recorded a little later, and derived or growing files.
const ALWAYS: [&str; 9] = [
    layout::RUN,
    layout::SOURCE,
    layout::GUARDRAILS,
    layout::DISPATCH,
    layout::EVENTS,
    layout::TRACE,
    layout::RECEIPT,
    layout::CASSETTE,
    layout::LOCK,
];

/// The files of an attempt.
pub(super) const OF_ATTEMPT: [&str; 8] = [
    attempt::ANSWER,
    attempt::PACK,
    attempt::PATCH,
    attempt::REVIEW,
    attempt::OUTCOME,
    attempt::STDOUT,
    attempt::STDERR,
    attempt::REPORT,
];

/// The files recorded by the events of a run.
#[derive(Debug, Clone)]
pub(crate) struct RecordedFiles(Option<BTreeSet<String>>);

impl RecordedFiles {
    /// Returns the files recorded by these events. Without any event, every file is accepted.
    #[must_use]
    pub(crate) fn from_events(events: &[EventRecord]) -> Self {
        Self((!events.is_empty()).then(|| accounted_for(events)))
    }

    /// Returns whether the file at this path of the run directory is recorded. Names that are not UTF-8 never
    /// are.
    #[must_use]
    pub(crate) fn has(&self, path: &Path) -> bool {
        let Some(known) = &self.0 else { return true };
        path.to_str().is_some_and(|path| known.contains(path))
    }
}

/// How much of a run directory was listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilesListed {
    /// All of it.
    All,
    /// As many files as this; there are more.
    First(usize),
}

/// The files of a run directory that no event records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnrecordedFiles {
    /// Their paths in the run directory.
    pub paths: BTreeSet<PathBuf>,
    /// How much was looked at.
    pub listed: FilesListed,
}

/// Returns the files of a run directory that none of these events records, in order. Without any event, none
/// is reported.
#[must_use]
pub fn unrecorded(dir: &RunDir, events: &[EventRecord]) -> UnrecordedFiles {
    unrecorded_of(dir, events, LIMIT)
}

fn unrecorded_of(dir: &RunDir, events: &[EventRecord], most: usize) -> UnrecordedFiles {
    if events.is_empty() {
        return UnrecordedFiles {
            paths: BTreeSet::new(),
            listed: FilesListed::All,
        };
    }
    let known = RecordedFiles::from_events(events);
    let mut present = Vec::new();
    // One more shows that there are more.
    list(dir.root(), Path::new(""), 0, most + 1, &mut present);
    let listed = if present.len() > most {
        FilesListed::First(most)
    } else {
        FilesListed::All
    };
    present.truncate(most);
    UnrecordedFiles {
        paths: present
            .into_iter()
            .filter(|path| !known.has(path))
            .collect(),
        listed,
    }
}

/// Returns whether a reader would take something at this path for an artifact.
pub(super) fn looks_like_an_artifact(path: &Path) -> bool {
    let path = path.to_string_lossy();
    let place = path.split_once('/').map(|(place, _)| place);
    let name = path.rsplit('/').next().unwrap_or(&path);
    matches!(place, Some("artifacts" | "reviews" | "attempts" | "logs")) && !name.starts_with('.')
}

/// The paths that events account for.
fn accounted_for(events: &[EventRecord]) -> BTreeSet<String> {
    let mut known: BTreeSet<String> = ALWAYS.map(str::to_owned).into();
    known.extend(recorded_files(events).into_keys().map(str::to_owned));
    let has = |key: &str| events.iter().any(|event| event.key.as_deref() == Some(key));
    for event in events {
        let kind = EventKind::parse(&event.event);
        if matches!(kind, Some(EventKind::OutboxPrompted)) {
            known.extend(event.path.clone());
        }
        if matches!(
            kind,
            Some(EventKind::OutboxPrompted | EventKind::ModelAnswered)
        ) {
            known.extend(
                event
                    .body
                    .get(TARGET)
                    .and_then(Value::as_str)
                    .map(str::to_owned),
            );
        }
        if matches!(
            kind,
            Some(EventKind::OutboxPrompted | EventKind::ModelAsked)
        ) {
            known.extend(evidence::names().map(|name| format!("outbox/{name}")));
        }
    }
    for number in 1.. {
        let (step, ended) = (
            attempt_step(number),
            has(&attempt_key(number, AttemptStep::Ended)),
        );
        if !ended && !has(&asked_key(&step)) {
            break;
        }
        if !ended {
            // It goes on.
            known.extend(OF_ATTEMPT.map(|name| attempt_file(number, name)));
        }
        known.insert(attempt_file(number, attempt::REVIEW));
        for (copy, name) in attempt::COPIES {
            if known.contains(&attempt_file(number, name)) {
                known.insert(copy.to_owned());
            }
        }
    }
    let is_recorded = |kind: EventKind| events.iter().any(|event| event.event == kind.name());
    if !is_recorded(EventKind::Landed) {
        // A landing that was cut off runs its gates once more.
        known.extend(full_gates_files(full_gates_runs(events) + 1));
        if is_recorded(EventKind::LandingStarted) {
            // It may have been cut off between this file and its event; it is written again.
            known.insert(layout::LANDING.to_owned());
        }
    }
    known
}

fn list(directory: &Path, name: &Path, depth: usize, most: usize, present: &mut Vec<PathBuf>) {
    // A directory that cannot be read has no files that anybody reads.
    let Ok(entries) = std::fs::read_dir(directory) else {
        return;
    };
    for entry in entries.flatten() {
        if present.len() >= most {
            return;
        }
        let path = name.join(entry.file_name());
        match entry.file_type() {
            // Emptied before every use, and read by no one.
            Ok(kind) if kind.is_dir() && path == Path::new(layout::SCRATCH) => {}
            Ok(kind) if kind.is_dir() && depth < MAX_DEPTH => {
                list(&entry.path(), &path, depth + 1, most, present);
            }
            Ok(_) | Err(_) => present.push(path),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    fn begun() -> EventRecord {
        EventRecord {
            seq: 1,
            run: "r".parse().unwrap(),
            ts: "2026-01-31T09:30:00Z".parse().unwrap(),
            role: "operator".to_owned(),
            event: EventKind::RunCreated.name().to_owned(),
            path: Some(layout::RUN.to_owned()),
            key: None,
            artifacts: Vec::new(),
            body: serde_json::json!({}),
            prev: crucible_model::Digest::ZERO,
            hash: crucible_model::Digest::ZERO,
        }
    }

    #[test]
    fn too_many_unrecorded_files_are_reported() {
        let temp_dir = tempfile::tempdir().unwrap();
        let dir = RunDir::from_path(temp_dir.path().to_owned());
        let events = [begun()];
        for name in ["run.json", "artifacts/a", "artifacts/b"] {
            dir.write(name, b"x").unwrap();
        }
        let all = unrecorded_of(&dir, &events, 3);
        assert_eq!(
            all.paths,
            ["artifacts/a", "artifacts/b"].map(PathBuf::from).into()
        );
        assert_eq!(all.listed, FilesListed::All);
        let cut = unrecorded_of(&dir, &events, 2);
        assert!(cut.paths.is_subset(&all.paths));
        assert_eq!(cut.listed, FilesListed::First(2));
        let known = RecordedFiles::from_events(&events);
        assert!(known.has(Path::new("run.json")) && !known.has(Path::new("artifacts/b")));
        assert!(RecordedFiles::from_events(&[]).has(Path::new("artifacts/b")));
    }

    #[test]
    fn interrupted_landing_may_have_recorded_commit() {
        let mut landing = begun();
        landing.event = EventKind::LandingStarted.name().to_owned();
        let mut landed = begun();
        landed.event = EventKind::Landed.name().to_owned();
        landed.path = None;
        let place = Path::new(layout::LANDING);
        assert!(!RecordedFiles::from_events(&[begun()]).has(place));
        assert!(RecordedFiles::from_events(&[begun(), landing.clone()]).has(place));
        assert!(!RecordedFiles::from_events(&[begun(), landing, landed]).has(place));
    }

    #[test]
    fn name_without_utf8_is_unrecorded() {
        let temp_dir = tempfile::tempdir().unwrap();
        let dir = RunDir::from_path(temp_dir.path().to_owned());
        let planted = Path::new("reviews").join(OsStr::from_bytes(b"review_\xff.md"));
        dir.write("reviews/x", b"x").unwrap();
        crucible_host::fs::write_atomic(&temp_dir.path().join(&planted), b"x").unwrap();
        let listing = unrecorded(&dir, &[begun()]);
        assert!(
            listing.paths.contains(&planted) && looks_like_an_artifact(&planted),
            "{listing:?}"
        );
        assert!(!RecordedFiles::from_events(&[begun()]).has(&planted));
    }

    #[test]
    fn file_at_artifact_path_is_artifact() {
        for path in [
            "reviews/review_security.md",
            "attempts/002/diff.patch",
            "artifacts/x.json",
            "logs/a.log",
        ] {
            assert!(looks_like_an_artifact(Path::new(path)), "{path}");
        }
        for path in [
            "notes.txt",
            "outbox/mine.md",
            "artifacts/.tmp-1",
            "answers/more.txt",
        ] {
            assert!(!looks_like_an_artifact(Path::new(path)), "{path}");
        }
    }
}
