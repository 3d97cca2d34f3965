//! `replay`: answers from a recording, offline and without a key.
//!
//! A request is found by its key; equal requests get the recorded outcomes in order. A recorded error is
//! returned only if no answer followed: otherwise the caller continued with the answer. A request that is
//! not in the recording fails with a diff to the nearest recorded one: either a prompt changed since the
//! recording, or something in it is not deterministic.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use crucible_model::{Digest, EditFormat, to_canonical_json};
use similar::{Algorithm, DiffOp, capture_diff_slices_deadline, group_diff_ops};
use tokio::time::Instant;

use crate::backend::{Backend, BackendParts, ClientExtra, LlmBackend, Origin, Speaker};
use crate::capability::{Capabilities, StructuredOutput};
use crate::cassette::{CallOutcome, Cassette, RecordedCall, RecordedRequest};
use crate::cassette_source::{CassetteSource, REPLAY, unusable_recording};
use crate::context::Context;
use crate::error::{Fault, LlmError};
use crate::invocation::{LlmInvocation, LlmResult};
use crate::provider_kind::{ProviderClass, ProviderKind};
use crate::provider_settings::ProviderSettings;

/// The time limit for a readable diff, and its maximum size.
const DIFF_TIME: Duration = Duration::from_millis(200);
const DIFF_LINES: usize = 12;
const DIFF_LINE_CHARS: usize = 200;

/// The most phases of a recording that are named.
const PHASES: usize = 10;

/// The provider `replay`.
pub(crate) struct Replay;

impl ProviderKind for Replay {
    fn name(&self) -> &'static str {
        REPLAY
    }

    fn summary(&self) -> &'static str {
        "a recording of earlier answers; needs no key, no network and no model"
    }

    fn class(&self) -> ProviderClass {
        ProviderClass::Recording
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            edit_format: EditFormat::WholeFile,
            structured_output: StructuredOutput::None,
        }
    }

    fn evidence(&self) -> &'static str {
        "A recording says itself how its answers were asked for; this holds for one that does not."
    }

    fn construct(
        &self,
        settings: &ProviderSettings,
        _context: &Context,
    ) -> Result<Backend, LlmError> {
        let source = settings.cassette.as_ref().ok_or_else(|| {
            misconfigured("", "no recording is named".to_owned(), "run `export CRUCIBLE_LLM_REPLAY_CASSETTE=FILE` with a recording, or set [llm.replay] cassette")
        })?;
        let cassette = read(source)?;
        let header = &cassette.header;
        let first = cassette.calls.first().map(|call| &call.request);
        let parts = BackendParts {
            provider: REPLAY,
            default_model: first
                .map_or(&header.model, |request| &request.model)
                .clone(),
            max_output_tokens: 0,
            extra: ClientExtra::NONE,
            capabilities: header.capabilities,
            speaker: Speaker {
                provider: header.provider.clone(),
                model: header.model.clone(),
            },
            origin: Origin::Recording,
            parameters: first
                .map(|request| request.metadata.clone())
                .unwrap_or_default(),
            inner: Box::new(ReplayBackend::new(&cassette, &played(settings)?)),
        };
        // Each phase uses its recorded model, because the model is part of the key. Calls of one phase
        // may have named their own models, and concurrent calls are in any order, so the model of the
        // recording comes first.
        let mut phases: BTreeMap<String, String> = BTreeMap::new();
        for call in &cassette.calls {
            let model = &call.request.model;
            let chosen = phases
                .entry(call.phase_id.clone())
                .or_insert_with(|| model.clone());
            if *model == header.model {
                chosen.clone_from(model);
            }
        }
        phases.retain(|_, model| *model != parts.default_model);
        Ok(Backend::new(parts).with_phase_models(phases))
    }
}

/// How often each request was replayed before this process started.
fn played(settings: &ProviderSettings) -> Result<HashMap<Digest, ReplayCounts>, LlmError> {
    let mut counts: HashMap<Digest, ReplayCounts> = HashMap::new();
    if let Some(path) = &settings.already_played {
        match read(&CassetteSource::File(path.clone())) {
            Ok(cassette) => {
                cassette
                    .calls
                    .iter()
                    .for_each(|call| counts.entry(call.key).or_default().count(call));
            }
            Err(error) if path.exists() => return Err(error),
            // Nothing was replayed yet.
            Err(_) => {}
        }
    }
    Ok(counts)
}

fn read(source: &CassetteSource) -> Result<Cassette, LlmError> {
    Cassette::parse(&source.bytes()?).map_err(|error| unusable_recording(&error))
}

fn misconfigured(model: &str, what: String, next: &str) -> LlmError {
    LlmError::Misconfiguration(Fault::new(REPLAY, model, what, next))
}

/// How often a request was replayed.
#[derive(Debug, Clone, Copy, Default)]
struct ReplayCounts {
    answers: usize,
    failures: usize,
}

impl ReplayCounts {
    fn count(&mut self, call: &RecordedCall) {
        match &call.outcome {
            outcome if outcome.is_answer() => self.answers += 1,
            // The budget refused it before the recording was used.
            CallOutcome::Failed(LlmError::BudgetExceeded { .. }) => {}
            CallOutcome::Failed(_) | CallOutcome::Answered(_) => self.failures += 1,
        }
    }
}

struct ReplayBackend {
    /// The recorded requests, by phase.
    requests: Vec<(String, RecordedRequest)>,
    outcomes: HashMap<Digest, Vec<CallOutcome>>,
    played: Mutex<HashMap<Digest, usize>>,
}

impl ReplayBackend {
    fn new(cassette: &Cassette, before: &HashMap<Digest, ReplayCounts>) -> Self {
        let mut outcomes: HashMap<Digest, Vec<CallOutcome>> = HashMap::new();
        for call in &cassette.calls {
            outcomes
                .entry(call.key)
                .or_default()
                .push(call.outcome.clone());
        }
        let mut played = HashMap::new();
        for (key, outcomes) in &mut outcomes {
            let has_answer = outcomes.iter().any(CallOutcome::is_answer);
            if has_answer {
                outcomes.retain(CallOutcome::is_answer);
            }
            if let Some(before) = before.get(key) {
                played.insert(
                    *key,
                    if has_answer {
                        before.answers
                    } else {
                        before.failures
                    },
                );
            }
        }
        let requests = cassette
            .calls
            .iter()
            .map(|call| (call.phase_id.clone(), call.request.clone()))
            .collect();
        Self {
            requests,
            outcomes,
            played: Mutex::new(played),
        }
    }

    /// Takes the next outcome of a request.
    fn next(&self, key: &Digest) -> Option<&CallOutcome> {
        let recorded = self.outcomes.get(key)?;
        let mut played = self.played.lock().unwrap_or_else(PoisonError::into_inner);
        let count = played.entry(*key).or_default();
        let outcome = recorded.get(*count)?;
        *count += 1;
        Some(outcome)
    }

    fn miss(&self, phase: &str, requested: &RecordedRequest, key: &Digest) -> LlmError {
        const NEXT: &str = "record again with the same provider, or use the version and input that the \
        recording was made with";
        if let Some(recorded) = self.outcomes.get(key) {
            let what = format!(
                "this request was recorded {} times and is now made once more (key {})",
                recorded.len(),
                key.short()
            );
            return misconfigured(&requested.model, what, NEXT);
        }
        let text = render(requested);
        // A request of another phase is unrelated, so a diff to it would not help.
        let same_phase = || {
            self.requests
                .iter()
                .filter(|(of, _)| of == phase)
                .map(|(_, request)| request)
        };
        let what = match nearest(&text, same_phase()) {
            Some(nearest) => format!(
                "the recording does not contain this request (key {}); compared with the nearest recorded one:\n{}",
                key.short(),
                short_diff(&nearest, &text)
            ),
            None if !self.requests.is_empty() => {
                let mut phases: Vec<&str> =
                    self.requests.iter().map(|(of, _)| of.as_str()).collect();
                phases.sort_unstable();
                phases.dedup();
                let named: Vec<&str> = phases.into_iter().take(PHASES).collect();
                format!(
                    "the recording does not contain this request (key {}); it holds other questions, and none \
                    of {phase:?}: only of {}",
                    key.short(),
                    named.join(", ")
                )
            }
            None => format!("the recording contains no calls (key {})", key.short()),
        };
        misconfigured(&requested.model, what, NEXT)
    }
}

#[async_trait]
impl LlmBackend for ReplayBackend {
    async fn invoke(&self, inv: LlmInvocation) -> Result<LlmResult, LlmError> {
        let request = RecordedRequest::from_invocation(&inv);
        let key = request.key().map_err(|error| {
            misconfigured(&inv.model, error.to_string(), "correct the metadata")
        })?;
        match self.next(&key) {
            Some(CallOutcome::Answered(result)) => Ok(result.clone()),
            Some(CallOutcome::Failed(error)) => Err(error.clone()),
            None => Err(self.miss(&inv.phase_id, &request, &key)),
        }
    }
}

/// A request as lines, for people.
fn render(request: &RecordedRequest) -> String {
    let mut text = format!("model: {}\n", request.model);
    for (name, value) in &request.metadata {
        // In canonical form, as it is compared: 1 and 1.0 are the same number.
        let value = to_canonical_json(value).map_or_else(
            |_| value.to_string(),
            |canonical| String::from_utf8_lossy(&canonical).into_owned(),
        );
        let _infallible = writeln!(text, "metadata {name}: {value}");
    }
    for message in &request.messages {
        let _infallible = writeln!(text, "{}:\n{}", message.role.as_str(), message.content);
    }
    text
}

/// The recorded request with the most lines in common; the first of equals.
fn nearest<'a>(
    content: &str,
    recorded: impl Iterator<Item = &'a RecordedRequest>,
) -> Option<String> {
    let lines: HashSet<&str> = content.lines().collect();
    let mut best: Option<(f64, String)> = None;
    for request in recorded {
        let candidate = render(request);
        let other_lines: HashSet<&str> = candidate.lines().collect();
        let shared = lines.intersection(&other_lines).count();
        let likeness = shared as f64 / lines.union(&other_lines).count().max(1) as f64;
        if best.as_ref().is_none_or(|(most, _)| likeness > *most) {
            best = Some((likeness, candidate));
        }
    }
    best.map(|(_, text)| text)
}

/// The differing lines with one line of context, cut to fit a terminal.
fn short_diff(recorded: &str, requested: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) =
        (recorded.lines().collect(), requested.lines().collect());
    let deadline = Instant::now().into_std() + DIFF_TIME;
    let ops = capture_diff_slices_deadline(Algorithm::Myers, &old, &new, Some(deadline));
    let mut unified = vec!["--- recorded".to_owned(), "+++ asked now".to_owned()];
    for group in group_diff_ops(ops, 1) {
        unified.extend(hunk(&group, &old, &new));
    }
    let mut lines = unified.iter();
    let mut text = String::new();
    for line in lines.by_ref().take(DIFF_LINES) {
        text.extend(line.chars().take(DIFF_LINE_CHARS));
        text.push('\n');
    }
    match lines.count() {
        0 => {}
        more => text.push_str(&format!("({more} more lines)\n")),
    }
    text.truncate(text.trim_end().len());
    text
}

/// The lines of one hunk, with their markers.
fn hunk(ops: &[DiffOp], old: &[&str], new: &[&str]) -> Vec<String> {
    let marked = |mark: char, lines: &[&str]| {
        lines
            .iter()
            .map(|line| format!("{mark}{line}"))
            .collect::<Vec<_>>()
    };
    let (Some(first), Some(last)) = (ops.first(), ops.last()) else {
        return Vec::new();
    };
    let range = |start: usize, end: usize| match end - start {
        0 => format!("{start},0"),
        1 => format!("{}", start + 1),
        count => format!("{},{count}", start + 1),
    };
    let before = range(first.old_range().start, last.old_range().end);
    let after = range(first.new_range().start, last.new_range().end);
    let mut lines = vec![format!("@@ -{before} +{after} @@")];
    for op in ops {
        let (before, after) = (&old[op.old_range()], &new[op.new_range()]);
        match op {
            DiffOp::Equal { .. } => lines.extend(marked(' ', before)),
            DiffOp::Delete { .. } | DiffOp::Insert { .. } | DiffOp::Replace { .. } => {
                lines.extend(marked('-', before));
                lines.extend(marked('+', after));
            }
        }
    }
    lines
}
