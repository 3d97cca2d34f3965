//! The events of a run: first in the ledger's chain, then in the derived files `events.jsonl` and `TRACE.md`.
//!
//! Every event has a key that is unique in its run, so a step repeated after a crash appends nothing.
//! Consecutive steps go into the ledger in one transaction ([`Journal::commit`]), with the bytes of their
//! files. Nothing is recorded and left lying: what stands is in the ledger before a long step begins, before
//! anything is shown to anybody, before an event is read and before the ledger is, so before a model is asked, a
//! gate is run or a commit is made. A process that ends before that has made files of which no event tells;
//! they are made again. If the events change the state of the run, its row in the list of runs moves in that transaction.
//!
//! `events.jsonl` is only ever added to, and not flushed: what it holds must be the beginning of what the
//! ledger says, and whatever is missing, half a line included, is added. A file that says something else was
//! edited.

use crucible_host::fs::append_unflushed;
use crucible_ledger::{EventRecord, Ledger, LedgerError, NewEvent, RunRow};
use crucible_model::{
    CanonicalError, Clock, ClockSource, Digest, RunId, Timestamp, to_canonical_json,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::attempt;
use crate::error::{RunError, restore_command};
use crate::event_kind::EventKind;
use crate::layout::{self, RunDir};
use crate::progress::progress;
use crate::recorded::recorded_files;
use crate::reservations::RecordedUsage;
use crate::restore::{is_torn, restore};

/// Called after each event is committed to the ledger: for a progress display, and for tests that end the
/// process at that point.
pub trait RunObserver: Send {
    /// Called when a long step begins; `what` is one line for a person.
    fn working(&mut self, role: &str, what: &str);

    /// Called with a result line that is not an event.
    fn note(&mut self, line: &str);

    /// An event has been appended, or found to be there already.
    fn event(&mut self, event: &EventRecord);
}

/// Shows nothing: the run's own directory has everything.
pub struct NoopObserver;

impl RunObserver for NoopObserver {
    fn working(&mut self, _: &str, _: &str) {}

    fn note(&mut self, _: &str) {}

    fn event(&mut self, _: &EventRecord) {}
}

/// The event field with the source of its time, and its value for a pinned one.
const CLOCK: &str = "clock";
const PINNED: &str = "pinned";

/// Recorded files whose bytes the ledger does not hold: a copy of an external file, and a derived file.
pub(crate) const NOT_KEPT: [&str; 2] = [layout::BUNDLE, layout::SOURCE];

/// The journal of one run.
pub(crate) struct Journal<'a> {
    run: RunId,
    dir: RunDir,
    ledger: &'a mut Ledger,
    clock: &'a dyn Clock,
    observer: &'a mut dyn RunObserver,
    events: Vec<EventRecord>,
    /// What was recorded and is not in the ledger yet.
    pending: Vec<Pending>,
    /// The pending change of the run's row in the list of runs.
    listed: Option<RunRow>,
}

/// A step that was recorded and is not in the ledger yet.
struct Pending {
    event: NewEvent,
    /// The bytes of the event's file, if the ledger should hold them.
    bytes: Option<Vec<u8>>,
}

/// One step to be recorded.
pub(crate) struct Entry<'e> {
    pub(crate) role: &'e str,
    pub(crate) event: EventKind,
    pub(crate) key: String,
    pub(crate) path: &'e str,
    pub(crate) body: Value,
}

/// A line of `events.jsonl`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EventLine {
    ts: Timestamp,
    role: String,
    event: String,
    path: String,
    seq: u64,
    hash: Digest,
}

impl EventLine {
    /// Returns the kind of the event, if it is a known one.
    pub(crate) fn kind(&self) -> Option<EventKind> {
        EventKind::parse(&self.event)
    }
}

/// Parses the events of an `events.jsonl`. A truncated or invalid line gives no event.
pub(crate) fn read_lines(bytes: &[u8]) -> impl Iterator<Item = EventLine> {
    bytes
        .split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice(line).ok())
}

impl<'a> Journal<'a> {
    /// Opens the journal, completes `events.jsonl` from the ledger, and restores files that a crash damaged.
    pub(crate) fn open(
        run: RunId,
        dir: RunDir,
        ledger: &'a mut Ledger,
        clock: &'a dyn Clock,
        observer: &'a mut dyn RunObserver,
    ) -> Result<Self, RunError> {
        let events = ledger.events(Some(&run))?;
        let mut expected = Vec::new();
        for event in &events {
            expected.extend(event_line(event)?);
        }
        let path = dir.path(layout::EVENTS);
        let present = dir.read_if_there(layout::EVENTS)?.unwrap_or_default();
        match expected.strip_prefix(present.as_slice()) {
            Some([]) => {}
            Some(missing) => append_unflushed(&path, missing)?,
            None if is_torn(&present, &expected) => {
                dir.write_recorded(layout::EVENTS, &expected)?;
            }
            None => return Err(RunError::Edited { path }),
        }
        for path in restore(&dir, ledger, &events)? {
            observer.note(&format!("  restored from the ledger: {path}"));
        }
        Ok(Self {
            run,
            dir,
            ledger,
            clock,
            observer,
            events,
            pending: Vec::new(),
            listed: None,
        })
    }

    /// Records a step at most once. The next [`Journal::commit`] writes it to the ledger.
    pub(crate) fn record(&mut self, entry: Entry<'_>) -> Result<(), RunError> {
        self.record_with(entry, None)
    }

    fn record_with(&mut self, entry: Entry<'_>, bytes: Option<Vec<u8>>) -> Result<(), RunError> {
        let Entry {
            role,
            event,
            key,
            path,
            mut body,
        } = entry;
        if let Some(first) = self
            .events
            .iter()
            .find(|event| event.key.as_deref() == Some(&key))
            .cloned()
        {
            if first.event != event.name() {
                let run = self.run.clone();
                return Err(LedgerError::KeyTaken {
                    run,
                    key,
                    existing: first.event,
                }
                .into());
            }
            self.observer()?.event(&first);
            return Ok(());
        }
        if self.has(&key) {
            return Ok(());
        }
        if let (ClockSource::Pinned, Value::Object(fields)) = (self.clock.source(), &mut body) {
            fields.insert(CLOCK.to_owned(), Value::from(PINNED));
        }
        let event = NewEvent::new(self.run.clone(), self.clock.now(), role, event.name(), body);
        self.pending.push(Pending {
            event: event.about(path).once(key),
            bytes,
        });
        Ok(())
    }

    /// Writes the pending records to the ledger in one transaction: file contents and events. Only then
    /// `events.jsonl` is written and the observer is called.
    pub(crate) fn commit(&mut self) -> Result<(), RunError> {
        if self.pending.is_empty() && self.listed.is_none() {
            return Ok(());
        }
        if self.listed.is_none() {
            self.listed = self.moved_row()?;
        }
        let (pending, listed) = (std::mem::take(&mut self.pending), self.listed.take());
        let records = self.ledger.transact(|turn| {
            if let Some(run) = &listed {
                turn.record_run(run)?;
            }
            let append = |Pending { mut event, bytes }: Pending| {
                if let Some(bytes) = bytes {
                    let kind = event.path.as_deref().unwrap_or_default();
                    event.artifacts.push(turn.put_artifact(kind, &bytes)?);
                }
                turn.append(event)
            };
            pending
                .into_iter()
                .map(append)
                .collect::<Result<Vec<_>, _>>()
        })?;
        let mut lines = Vec::new();
        for record in &records {
            lines.extend(event_line(record)?);
        }
        if !lines.is_empty() {
            append_unflushed(&self.dir.path(layout::EVENTS), &lines)?;
        }
        self.events.extend_from_slice(&records);
        for record in &records {
            self.observer.event(record);
        }
        Ok(())
    }

    /// Adds the run to the list of runs with the next [`Journal::commit`].
    pub(crate) fn set_run_row(&mut self, run: RunRow) {
        self.listed = Some(run);
    }

    /// Brings the list of runs up to date: every commit with events does, but files can follow their event.
    pub(crate) fn update_run_row(&mut self) -> Result<(), RunError> {
        self.commit()?;
        self.listed = self.moved_row()?;
        self.commit()
    }

    /// Returns the run's row if its state is another one with the pending events. What cannot be read moves nothing: the event
    /// that was recorded matters more.
    fn moved_row(&mut self) -> Result<Option<RunRow>, RunError> {
        let known = self.events.len();
        let pending = self.pending.iter().map(|pending| unchained(&pending.event));
        self.events.extend(pending);
        let (reached, last) = (progress(&self.dir, &self.events), self.events.last());
        let updated = last.map(|last| last.ts);
        self.events.truncate(known);
        let (Ok(progress), Some(updated)) = (reached, updated) else {
            return Ok(None);
        };
        let state = progress.state().name();
        let row = self.ledger.run(&self.run)?;
        Ok(row.filter(|row| row.state != state).map(|row| RunRow {
            state: state.to_owned(),
            updated,
            ..row
        }))
    }

    /// Records a file of the run directory with its digest and, in the ledger, its bytes. A file that was
    /// recorded before must be unchanged.
    pub(crate) fn record_file(
        &mut self,
        role: &str,
        event: EventKind,
        key: &str,
        path: &str,
    ) -> Result<Digest, RunError> {
        let body = serde_json::json!({});
        self.record_file_with(Entry {
            role,
            event,
            key: key.to_owned(),
            path,
            body,
        })
    }

    /// Like `record_file`, with more in the event's body; the digest is added to it.
    pub(crate) fn record_file_with(&mut self, mut entry: Entry<'_>) -> Result<Digest, RunError> {
        let path = entry.path;
        let bytes = self.dir.read(path)?;
        let digest = Digest::compute(&bytes);
        if let Value::Object(fields) = &mut entry.body {
            fields.insert("digest".to_owned(), digest.to_string().into());
        }
        let key = entry.key.clone();
        self.record_with(entry, Some(bytes))?;
        let recorded = self
            .body_of(&key)
            .and_then(|body| body.get("digest")?.as_str());
        if recorded == Some(digest.to_string().as_str()) {
            Ok(digest)
        } else {
            Err(RunError::Edited {
                path: self.dir.path(path),
            })
        }
    }

    /// Records the recording that answers the run, if there is one. Its bytes are not put into the ledger: it
    /// is large, and a copy of an external file.
    pub(crate) fn record_source(&mut self) -> Result<(), RunError> {
        let path = layout::SOURCE;
        if self.has("source") || !self.dir.has(path) {
            return Ok(());
        }
        let body = serde_json::json!({ "digest": Digest::compute(&self.dir.read(path)?) });
        let key = "source".to_owned();
        self.record(Entry {
            role: "operator",
            event: EventKind::RecordingTaken,
            key,
            path,
            body,
        })
    }

    /// Checks that every recorded file is unchanged since it was last recorded. The failure bundle is exempt:
    /// it is derived and can be created again.
    pub(crate) fn check_files(&mut self) -> Result<(), RunError> {
        self.commit()?;
        match edited(&self.dir, &self.events)?.first() {
            Some(path) => Err(edited_since(&self.dir, &self.events, path)),
            None => Ok(()),
        }
    }

    /// Whether a step was recorded.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.body_of(key).is_some()
    }

    /// What was recorded of a step.
    pub(crate) fn body_of(&self, key: &str) -> Option<&Value> {
        let of_event = self
            .events
            .iter()
            .find(|event| event.key.as_deref() == Some(key));
        of_event
            .map(|event| &event.body)
            .or_else(|| Some(&self.pending_of(key)?.body))
    }

    /// When a step was recorded.
    pub(crate) fn instant_of(&self, key: &str) -> Option<Timestamp> {
        let of_event = self
            .events
            .iter()
            .find(|event| event.key.as_deref() == Some(key));
        of_event
            .map(|event| event.ts)
            .or_else(|| Some(self.pending_of(key)?.ts))
    }

    fn pending_of(&self, key: &str) -> Option<&NewEvent> {
        self.pending
            .iter()
            .map(|pending| &pending.event)
            .find(|event| event.key.as_deref() == Some(key))
    }

    /// Returns every event of the run so far, in order. All of them are in the ledger.
    pub(crate) fn events(&mut self) -> Result<&[EventRecord], RunError> {
        self.commit()?;
        Ok(&self.events)
    }

    /// Returns the committed events, without committing pending ones.
    pub(crate) fn committed(&self) -> &[EventRecord] {
        &self.events
    }

    /// Returns the total usage in the run's reservations.
    pub(crate) fn recorded_usage(&mut self) -> Result<RecordedUsage, RunError> {
        self.commit()?;
        Ok(RecordedUsage::read(self.ledger, &self.run, &self.events)?)
    }

    /// Returns the ledger, after committing pending records.
    pub(crate) fn ledger(&mut self) -> Result<&mut Ledger, RunError> {
        self.commit()?;
        Ok(self.ledger)
    }

    /// Returns the observer of progress. Every event is reported to it before later ones, so each is in the
    /// ledger when a long step begins.
    pub(crate) fn observer(&mut self) -> Result<&mut dyn RunObserver, RunError> {
        self.commit()?;
        Ok(self.observer)
    }

    /// Tells that a long step begins ([`RunObserver::working`]).
    pub(crate) fn working(&mut self, role: &str, what: &str) -> Result<(), RunError> {
        self.observer()?.working(role, what);
        Ok(())
    }

    /// Tells a result that is not an event ([`RunObserver::note`]).
    pub(crate) fn note(&mut self, line: &str) -> Result<(), RunError> {
        self.observer()?.note(line);
        Ok(())
    }

    /// Writes the story of the run for people.
    pub(crate) fn write_trace(&mut self) -> Result<(), RunError> {
        let text = render_trace(self.events()?);
        self.dir
            .write_recorded(layout::TRACE, text.as_bytes())
            .map(drop)
    }
}

/// A pending event as it will be recorded, without its place in the chain.
fn unchained(event: &NewEvent) -> EventRecord {
    let NewEvent {
        run,
        ts,
        role,
        event,
        path,
        key,
        body,
        ..
    } = event.clone();
    EventRecord {
        seq: 0,
        run,
        ts,
        role,
        event,
        path,
        key,
        artifacts: Vec::new(),
        body,
        prev: Digest::ZERO,
        hash: Digest::ZERO,
    }
}

/// Whether an event was recorded under a pinned clock.
pub(crate) fn is_pinned(event: &EventRecord) -> bool {
    event.body.get(CLOCK).and_then(Value::as_str) == Some(PINNED)
}

/// The text of `TRACE.md` for these events.
pub(crate) fn render_trace(events: &[EventRecord]) -> String {
    let mut text = "# Trace\n\nDerived from the ledger; edits here change nothing.\n\n".to_owned();
    for event in events {
        let path = event.path.as_deref().unwrap_or_default();
        text.push_str(&format!(
            "- {} {} {} {path}\n",
            event.ts, event.role, event.event
        ));
    }
    text
}

/// Returns the recorded files that changed since they were last recorded.
pub(crate) fn edited(dir: &RunDir, events: &[EventRecord]) -> Result<Vec<String>, RunError> {
    let mut recorded = recorded_files(events);
    recorded.remove(layout::BUNDLE);
    let mut edited = Vec::new();
    for (path, digest) in recorded {
        let present = dir
            .read_if_there(path)?
            .map(|bytes| Digest::compute(&bytes).to_string());
        if present.as_deref() != Some(digest) {
            edited.push(path.to_owned());
        }
    }
    Ok(edited)
}

/// Returns the error for an edited file, with the restore command if the ledger recorded it.
pub(crate) fn edited_since(dir: &RunDir, events: &[EventRecord], path: &str) -> RunError {
    match recorded_digest(events, path) {
        Some(digest) => RunError::EditedSince {
            path: dir.path(path),
            digest,
        },
        None => RunError::Edited {
            path: dir.path(path),
        },
    }
}

/// Returns one sentence on how to restore an edited file, depending on what was recorded.
pub(crate) fn restore_hint(dir: &RunDir, events: &[EventRecord], path: &str) -> String {
    match recorded_digest(events, path) {
        Some(digest) => {
            format!(
                "Restore {path} with `{}`.",
                restore_command(&digest, &dir.path(path))
            )
        }
        None => format!("Restore the recorded version of {path}, or start a new run."),
    }
}

/// Returns the digest of a file when it was last recorded; for a copy, that of the last attempt's original.
/// Logs and unkept files have only a digest in the ledger and are skipped.
fn recorded_digest(events: &[EventRecord], path: &str) -> Option<String> {
    if NOT_KEPT.contains(&path) {
        return None;
    }
    let newest_digest = |path: &str| {
        let last = events.iter().rfind(|event| {
            event.path.as_deref() == Some(path) && event.body.get("digest").is_some()
        })?;
        last.body.get("digest")?.as_str().map(str::to_owned)
    };
    let original = attempt::original_of(path).and_then(|name| {
        events.iter().rev().find_map(|event| {
            event
                .path
                .as_deref()
                .filter(|path| is_of_attempt(path, name))
        })
    });
    newest_digest(path).or_else(|| newest_digest(original?))
}

fn is_of_attempt(path: &str, name: &str) -> bool {
    path.starts_with("attempts/") && path.rsplit('/').next() == Some(name)
}

/// Returns the line of an event in `events.jsonl`.
pub(crate) fn event_line(event: &EventRecord) -> Result<Vec<u8>, CanonicalError> {
    let mut line = to_canonical_json(&EventLine {
        ts: event.ts,
        role: event.role.clone(),
        event: event.event.clone(),
        path: event.path.clone().unwrap_or_default(),
        seq: event.seq,
        hash: event.hash,
    })?;
    line.push(b'\n');
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(path: &str, body: Value) -> EventRecord {
        EventRecord {
            seq: 1,
            run: "r".parse().unwrap(),
            ts: "2026-01-31T09:30:00Z".parse().unwrap(),
            role: "operator".to_owned(),
            event: EventKind::GuardrailsWritten.name().to_owned(),
            path: Some(path.to_owned()),
            key: None,
            artifacts: Vec::new(),
            body,
            prev: Digest::ZERO,
            hash: Digest::ZERO,
        }
    }

    #[test]
    fn restore_command_is_shell_safe() {
        let digest = Digest::compute(b"x").to_string();
        let recorded = |path: &str| event(path, serde_json::json!({ "digest": digest }));
        let log = event(
            "attempts/001/outcome.json",
            serde_json::json!({
                "digest": digest, (crate::recorded::FILES): { "attempts/001/stdout.log": digest },
            }),
        );
        let events = [
            recorded(layout::SOURCE),
            recorded(layout::BUNDLE),
            recorded(layout::PLAN),
            log,
        ];
        let dir = RunDir::from_path("/a b/it's/r".into());
        for path in [
            layout::SOURCE,
            layout::BUNDLE,
            "attempts/001/stdout.log",
            layout::STDOUT_LOG,
        ] {
            let command_line = format!(
                "{} {}",
                restore_hint(&dir, &events, path),
                edited_since(&dir, &events, path)
            );
            assert!(
                !command_line.contains("ledger show") && command_line.contains("start a new run"),
                "{command_line}"
            );
        }
        let command =
            format!("crucible ledger show {digest} > '/a b/it'\\''s/r/artifacts/PLAN.md'");
        assert!(
            restore_hint(&dir, &events, layout::PLAN).contains(&command),
            "{command}"
        );
        assert!(
            edited_since(&dir, &events, layout::PLAN)
                .to_string()
                .contains(&command),
            "{command}"
        );
    }
}
