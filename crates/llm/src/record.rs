//! Records calls while they are made.
//!
//! `Recorded` removes secrets from an answer, writes the call durably to its cassette, and only then
//! returns the answer. So the caller gets exactly what a replay will return, and a secret in an answer
//! reaches no file.
//!
//! If a process was killed after a call was recorded and before its answer was used, the call is not paid
//! for again: the writer can return such answers once more ([`Reuse`]).

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crucible_host::fs;
use crucible_model::{CanonicalError, Digest, to_canonical_json, to_canonical_line};
use crucible_secrets::Scanner;
use serde_json::Value;

use crate::backend::LlmBackend;
use crate::call_error::CallError;
use crate::cassette::{
    Attempt, CallOutcome, Cassette, CassetteError, CassetteHeader, RecordedCall, RecordedRequest,
    whole_lines,
};
use crate::cassette_source::MAX_CASSETTE;
use crate::error::LlmError;
use crate::invocation::{LlmInvocation, LlmResult};
use crate::retry::{Attempted, Retried};

/// Whether calls are recorded.
#[derive(Clone)]
pub enum Recording {
    /// They are not.
    Off,
    /// They are recorded here.
    To(Arc<CassetteWriter>),
}

/// Which recorded answers may be returned instead of calling the model again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reuse {
    /// None: every call is made.
    Nothing,
    /// The answers after this many: the caller used those, and not these. Failed calls do not count,
    /// because they had no answer; unusable answers do.
    After(u64),
}

/// Appends calls to a cassette file. Everything that records into the same file shares it.
pub struct CassetteWriter {
    path: PathBuf,
    state: Mutex<WriterState>,
}

struct WriterState {
    calls: u64,
    name: Name,
    /// Unused outcomes with an answer, each with the digest of its line.
    reusable: HashMap<Digest, VecDeque<(CallOutcome, Digest)>>,
    /// The digest of the line that last answered each request.
    lines: HashMap<Digest, Digest>,
}

/// Whether the file's name is known to be on disk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Name {
    Flushed,
    Unflushed,
}

impl CassetteWriter {
    /// Opens a cassette for appending, or creates one. An unfinished last line is removed first. The header of an existing cassette is
    /// kept, because each answer names its own provider and model anyway.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read or written, or is not a cassette.
    pub fn open(path: &Path, header: &CassetteHeader, reuse: Reuse) -> Result<Self, CassetteError> {
        let bytes = match fs::read_regular_up_to(path, MAX_CASSETTE) {
            Ok(bytes) => bytes,
            Err(error) if error.is_not_found() => Vec::new(),
            Err(error) => return Err(error.into()),
        };
        let full_content = whole_lines(&bytes);
        let (calls, lines) = if full_content.is_empty() {
            // The first call flushes it; without a call it is not needed.
            fs::write_unflushed(path, &to_canonical_line(header)?, 0o644)?;
            (Vec::new(), Vec::new())
        } else {
            if full_content.len() < bytes.len() {
                fs::write_atomic(path, full_content)?;
            }
            let cassette = Cassette::parse(full_content)?;
            (cassette.calls, cassette.lines)
        };
        let number = calls.len() as u64;
        let name = if calls.is_empty() {
            Name::Unflushed
        } else {
            Name::Flushed
        };
        let reusable = reusable(calls.into_iter().zip(lines), reuse);
        let state = WriterState {
            calls: number,
            name,
            reusable,
            lines: HashMap::new(),
        };
        Ok(Self {
            path: path.to_owned(),
            state: Mutex::new(state),
        })
    }

    /// The number of calls in the cassette.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.lock().calls
    }

    /// Whether an unused answer to this request is available, so that no call will be sent.
    #[must_use]
    pub fn holds_answer(&self, key: &Digest) -> bool {
        self.lock()
            .reusable
            .get(key)
            .is_some_and(|answers| !answers.is_empty())
    }

    /// The digest of the line (without its line break) that last answered a request.
    #[must_use]
    pub fn line_of(&self, key: &Digest) -> Option<Digest> {
        self.lock().lines.get(key).copied()
    }

    fn take_reusable(&self, key: &Digest) -> Option<CallOutcome> {
        let mut state = self.lock();
        let (outcome, line) = state.reusable.get_mut(key)?.pop_front()?;
        state.lines.insert(*key, line);
        Some(outcome)
    }

    fn append(&self, entry: &Entry) -> Result<(), CassetteError> {
        let line = entry.to_line()?;
        let digest = Digest::compute(line.trim_ascii_end());
        // Held while writing, so that the lines of parallel calls are complete and separate.
        let mut state = self.lock();
        fs::append_durable(&self.path, &line)?;
        if state.name == Name::Unflushed {
            fs::flush_name(&self.path)?;
            state.name = Name::Flushed;
        }
        state.calls += 1;
        state.lines.insert(entry.key, digest);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, WriterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A [`RecordedCall`] to be written. Its request, up to hundreds of kilobytes, is already in the
/// canonical form for its key: computing that form again would cost as much as the rest of the line.
struct Entry {
    key: Digest,
    spec_id: String,
    phase_id: String,
    request: Vec<u8>,
    attempts: Vec<Attempt>,
    outcome: CallOutcome,
    redactions: u64,
}

impl Entry {
    /// The line: the canonical form of the call, with its members in name order.
    fn to_line(&self) -> Result<Vec<u8>, CanonicalError> {
        let mut line = Vec::with_capacity(self.request.len() + 4096);
        let mut member = |lead: &str, value: &[u8]| {
            line.extend_from_slice(lead.as_bytes());
            line.extend_from_slice(value);
        };
        member("{\"attempts\":", &to_canonical_json(&self.attempts)?);
        member(",\"key\":", &to_canonical_json(&self.key)?);
        member(",\"outcome\":", &to_canonical_json(&self.outcome)?);
        member(",\"phase_id\":", &to_canonical_json(&self.phase_id)?);
        member(",\"redactions\":", &to_canonical_json(&self.redactions)?);
        member(",\"request\":", &self.request);
        member(",\"spec_id\":", &to_canonical_json(&self.spec_id)?);
        member("}", b"\n");
        Ok(line)
    }
}

fn reusable(
    calls: impl Iterator<Item = (RecordedCall, Digest)>,
    reuse: Reuse,
) -> HashMap<Digest, VecDeque<(CallOutcome, Digest)>> {
    let used = match reuse {
        Reuse::Nothing => return HashMap::new(),
        Reuse::After(used) => usize::try_from(used).unwrap_or(usize::MAX),
    };
    let mut answers: HashMap<Digest, VecDeque<(CallOutcome, Digest)>> = HashMap::new();
    for (call, line) in calls
        .filter(|(call, _)| call.outcome.is_answer())
        .skip(used)
    {
        answers
            .entry(call.key)
            .or_default()
            .push_back((call.outcome, line));
    }
    answers
}

/// The number of these attempts that were sent.
fn sent_of(attempts: &[Attempt]) -> u64 {
    let was_sent = |attempt: &&Attempt| match attempt {
        Attempt::Answered => true,
        Attempt::Failed(error) => error.was_sent(),
    };
    attempts.iter().filter(was_sent).count() as u64
}

/// Records each call before its answer is used.
pub(crate) struct Recorded<B> {
    inner: B,
    scanner: &'static Scanner,
    recording: Recording,
}

impl<B> Recorded<B> {
    /// Records the calls of `inner`. Secrets that `scanner` finds in answers are removed, even if calls
    /// are not recorded.
    pub(crate) fn new(inner: B, scanner: &'static Scanner, recording: Recording) -> Self {
        Self {
            inner,
            scanner,
            recording,
        }
    }
}

impl<B> Recorded<B> {
    /// The writer, if calls are recorded.
    pub(crate) fn writer(&self) -> Option<&CassetteWriter> {
        match &self.recording {
            Recording::To(writer) => Some(writer),
            Recording::Off => None,
        }
    }
}

impl<B: LlmBackend> Recorded<Retried<B>> {
    /// Makes a call and records it. Adds the number of attempts sent to `sent`.
    ///
    /// # Errors
    ///
    /// [`CallError::Llm`] if the backend has no answer, [`CallError::Record`] if the call cannot be recorded.
    pub(crate) async fn call(
        &self,
        inv: LlmInvocation,
        sent: &mut u64,
    ) -> Result<LlmResult, CallError> {
        let Recording::To(writer) = &self.recording else {
            let Attempted { outcome, attempts } = self.inner.attempt(inv).await;
            *sent += sent_of(&attempts);
            return Ok(self.cleaned(outcome).0?);
        };
        let request = to_canonical_json(&RecordedRequest::from_invocation(&inv))
            .map_err(CassetteError::from)?;
        let key = Digest::compute(&request);
        if let Some(outcome) = writer.take_reusable(&key) {
            // It was redacted before it was written, but maybe by an older program with fewer rules.
            return Ok(self.cleaned(outcome.into_result()).0?);
        }
        let (spec_id, phase_id) = (inv.spec_id.clone(), inv.phase_id.clone());
        let Attempted { outcome, attempts } = self.inner.attempt(inv).await;
        *sent += sent_of(&attempts);
        let (outcome, redactions) = self.cleaned(outcome);
        let attempts = attempts
            .into_iter()
            .map(|attempt| self.cleaned_attempt(attempt))
            .collect();
        let recorded = match &outcome {
            Ok(result) => CallOutcome::Answered(result.clone()),
            Err(error) => CallOutcome::Failed(error.clone()),
        };
        let entry = Entry {
            key,
            spec_id,
            phase_id,
            request,
            attempts,
            outcome: recorded,
            redactions,
        };
        let writer = Arc::clone(writer);
        // Flushing to disk blocks; the runtime's threads are for network calls.
        let written = tokio::task::spawn_blocking(move || writer.append(&entry)).await;
        written.unwrap_or(Err(CassetteError::Interrupted))?;
        Ok(outcome?)
    }

    /// The outcome without secrets, and their number.
    fn cleaned(&self, outcome: Result<LlmResult, LlmError>) -> (Result<LlmResult, LlmError>, u64) {
        let mut redactions = 0;
        let outcome = match outcome {
            Ok(mut result) => {
                self.clean(&mut result.raw_response, &mut redactions);
                self.clean(&mut result.model_used, &mut redactions);
                for value in result.extensions.values_mut() {
                    self.clean_value(value, &mut redactions);
                }
                if redactions > 0 {
                    result
                        .extensions
                        .insert(LlmResult::REDACTIONS.to_owned(), Value::from(redactions));
                }
                Ok(result)
            }
            Err(error) => Err(self.cleaned_error(error, &mut redactions)),
        };
        (outcome, redactions)
    }

    fn cleaned_attempt(&self, attempt: Attempt) -> Attempt {
        match attempt {
            Attempt::Answered => Attempt::Answered,
            Attempt::Failed(error) => Attempt::Failed(self.cleaned_error(error, &mut 0)),
        }
    }

    fn cleaned_error(&self, mut error: LlmError, redactions: &mut u64) -> LlmError {
        if let Some(fault) = error.fault_mut() {
            self.clean(&mut fault.what, redactions);
            if let Some(stderr) = &mut fault.stderr {
                self.clean(stderr, redactions);
            }
        }
        error
    }

    fn clean(&self, text: &mut String, redactions: &mut u64) {
        let redacted = self.scanner.redact(text);
        if redacted.count > 0 {
            *redactions += redacted.count;
            *text = redacted.text.into_owned();
        }
    }

    fn clean_value(&self, value: &mut Value, redactions: &mut u64) {
        match value {
            Value::String(text) => self.clean(text, redactions),
            Value::Array(items) => items
                .iter_mut()
                .for_each(|item| self.clean_value(item, redactions)),
            Value::Object(fields) => fields
                .values_mut()
                .for_each(|field| self.clean_value(field, redactions)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::cassette::RecordedMessage;
    use crate::error::Fault;
    use crate::invocation::Role;

    fn outcomes() -> impl Strategy<Value = CallOutcome> {
        let answered = (any::<String>(), any::<Option<u32>>(), any::<String>()).prop_map(
            |(text, tokens, note)| {
                CallOutcome::Answered(LlmResult {
                    raw_response: text,
                    provider: "gateway".to_owned(),
                    model_used: "m".to_owned(),
                    tokens_input: tokens.map(u64::from),
                    tokens_output: None,
                    timed_out: Some(false),
                    extensions: BTreeMap::from([
                        ("zeta".to_owned(), Value::from(note)),
                        ("alpha".to_owned(), Value::Null),
                    ]),
                })
            },
        );
        let failed = any::<String>().prop_map(|what| {
            CallOutcome::Failed(LlmError::ProviderAuth(Fault::new(
                "gateway", "m", what, "next",
            )))
        });
        prop_oneof![answered, failed]
    }

    mod properties {
        use super::*;

        proptest! {
            /// Replays and audits find a line by the canonical form of its call.
            #[test]
            fn recording_line_is_canonical_form_of_call(
                (spec_id, phase_id, content) in (any::<String>(), any::<String>(), any::<String>()),
                metadata in prop::collection::btree_map(any::<String>(), any::<u32>(), 0..4),
                outcome in outcomes(),
                redactions in any::<u32>(),
            ) {
                let request = RecordedRequest {
                    model: "m".to_owned(),
                    messages: vec![RecordedMessage { role: Role::User, content }],
                    metadata: metadata.into_iter().map(|(name, value)| (name, Value::from(value))).collect(),
                };
                let attempts = match &outcome {
                    CallOutcome::Answered(_) => vec![Attempt::Answered],
                    CallOutcome::Failed(error) => vec![Attempt::Failed(error.clone()); 2],
                };
                let key = request.key().unwrap();
                let redactions = u64::from(redactions);
                let entry = Entry {
                    key,
                    spec_id: spec_id.clone(),
                    phase_id: phase_id.clone(),
                    request: to_canonical_json(&request).unwrap(),
                    attempts: attempts.clone(),
                    outcome: outcome.clone(),
                    redactions,
                };
                let call = RecordedCall { key, spec_id, phase_id, request, attempts, outcome, redactions };
                prop_assert_eq!(entry.to_line().unwrap(), to_canonical_line(&call).unwrap());
            }
        }
    }
}
