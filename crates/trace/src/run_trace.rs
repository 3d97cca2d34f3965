//! The spans of a run.
//!
//! ```text
//! run
//! ├─ stage inspect
//! │  └─ gate ID                 before any change
//! ├─ stage context, stage plan
//! ├─ stage change
//! │  └─ attempt N
//! │     ├─ question ROLE, or invoke_agent NAME
//! │     │  └─ chat MODEL        a model call: tokens and cost
//! │     └─ gates
//! │        ├─ gate ID
//! │        └─ variant NAME      the change broken on purpose, mistakes in its lines
//! └─ stage land
//! ```
//!
//! Only model calls have tokens and costs, so a backend that adds up spans counts nothing twice.

mod calls;
mod gates;

use crucible_model::Timestamp;
use crucible_run::{AttemptEnd, PartKind, Stage, TimelinePart};
use crucible_view::{AttemptView, FindingView, RunOutcome, RunView};
use serde::Serialize;

use crate::conventions as names;
use crate::id::{SpanId, TraceId};
use crate::span::{Attribute, Span, SpanEvent};

/// Whether spans have text of people, models, repositories and programs. Detected secrets are replaced in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// They do not.
    Omitted,
    /// They do.
    Included,
}

/// The trace of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunTrace {
    /// Its id.
    pub id: TraceId,
    /// Its spans; the first is the run.
    pub spans: Vec<Span>,
}

/// What the spans are made of.
struct Builder<'r> {
    run: &'r RunView,
    content: Content,
    id: TraceId,
    spans: Vec<Span>,
}

impl RunTrace {
    /// Derives the trace of a run.
    #[must_use]
    pub fn new(run: &RunView, content: Content) -> Self {
        let first = run.events.first().map(|event| event.hash);
        let mut builder = Builder {
            run,
            content,
            id: TraceId::of_run(&run.summary.run_id, first),
            spans: Vec::new(),
        };
        builder.root();
        builder.stages();
        builder.attempts();
        builder.questions();
        builder.calls();
        builder.gates();
        Self {
            id: builder.id,
            spans: builder.spans,
        }
    }

    /// The spans that events after this one closed: what a command added that began when this was the newest event of the run.
    #[must_use]
    pub fn closed_after(&self, event: u64) -> Vec<Span> {
        let is_new = |span: &&Span| span.closed_by.is_some_and(|closed| closed > event);
        self.spans.iter().filter(is_new).cloned().collect()
    }
}

impl<'r> Builder<'r> {
    fn has_content(&self) -> bool {
        self.content == Content::Included
    }

    fn root_id(&self) -> SpanId {
        self.id.span("run")
    }

    fn root(&mut self) {
        let run = self.run;
        let summary = &run.summary;
        let first = run.events.first();
        let started = first.map_or(summary.created_at, |event| event.at);
        let calls = run.model_calls.iter().filter_map(|call| call.ended_at);
        let events = run.events.iter().map(|event| event.at);
        let ended = events.chain(calls).max().unwrap_or(started);
        let mut span = Span::new(self.root_id(), None, "run", (started, ended), run.first_end)
            .with(names::RUN_ID, summary.run_id.as_str())
            .with(names::RUN_STATE, word(&run.derived_state))
            .with(names::RUN_OUTCOME, summary.outcome.name())
            .with(names::RUN_BASE_COMMIT, run.base_commit.as_str())
            .with_some(
                names::RUN_COMMIT,
                run.landing.as_ref().map(|landing| landing.commit.as_str()),
            )
            .with(names::RUN_CALLS, summary.totals.calls)
            .with(names::RUN_TOKENS, summary.totals.tokens)
            .with(names::RUN_COST, summary.totals.micro_dollars)
            .with(names::CHAIN_IS_INTACT, run.chain.is_intact())
            .with_some(
                names::CHAIN_FIRST,
                first.map(|event| event.hash.to_string()),
            )
            .with_some(
                names::CHAIN_LAST,
                run.events.last().map(|event| event.hash.to_string()),
            );
        if self.has_content() {
            span = span
                .with(names::RUN_GOAL, summary.goal.as_str())
                .with(names::RUN_REPOSITORY, summary.repo.as_str());
        }
        if run.first_end.is_none() {
            span = span.with(names::IS_OPEN, true);
        }
        if summary.outcome == RunOutcome::Failed {
            let code = run.failure.as_ref().map(|failure| failure.code.as_str());
            span = span
                .with_some(names::ERROR_TYPE, code)
                .failed(code.unwrap_or("the run failed"));
        }
        self.spans.push(span);
    }

    fn stages(&mut self) {
        for (at, part) in stages(self.run) {
            let PartKind::Stage { stage } = part.kind else {
                continue;
            };
            let mut span = Span::new(
                self.stage_id(at),
                Some(&self.root_id()),
                format!("stage {}", stage.name()),
                (part.started_at, part.ended_at),
                part.closed_by,
            )
            .with(names::STAGE, stage.name());
            if part.closed_by.is_none() {
                span = span.with(names::IS_OPEN, true);
            }
            if let (Stage::Plan, true, Some(plan)) = (stage, self.has_content(), &self.run.plan) {
                span = span.with(names::PLAN, plan.text.as_str());
            }
            self.spans.push(span);
        }
    }

    fn attempts(&mut self) {
        for part in &self.run.parts {
            let PartKind::Attempt { number } = part.kind else {
                continue;
            };
            let parent = self.stage_at(part.started_at, Some(Stage::Change));
            let mut span = Span::new(
                self.attempt_id(number),
                Some(&parent),
                format!("attempt {number}"),
                (part.started_at, part.ended_at),
                part.closed_by,
            )
            .with(names::ATTEMPT, number);
            span = match self.attempt(number) {
                Some(attempt) => self.ended_attempt(span, attempt),
                None => span.with(names::IS_OPEN, true),
            };
            self.spans.push(span);
        }
    }

    fn ended_attempt(&self, span: Span, attempt: &AttemptView) -> Span {
        let end = word(&attempt.end);
        let mut span = span
            .with(names::ATTEMPT_ROUND, attempt.round)
            .with(names::ATTEMPT_END, end.as_str());
        if let Some(diff) = &attempt.diff {
            span = span
                .with(names::ATTEMPT_FILES, diff.files.len() as u64)
                .with(names::ATTEMPT_ADDED, diff.added)
                .with(names::ATTEMPT_REMOVED, diff.removed);
        }
        if self.has_content() && !attempt.output.as_str().is_empty() {
            span = span.with(names::ATTEMPT_OUTPUT, attempt.output.as_str());
        }
        for finding in &attempt.findings {
            let event = self.finding_event(span.ended, finding);
            span.push_event(event);
        }
        match attempt.end {
            AttemptEnd::Verified | AttemptEnd::Candidate | AttemptEnd::FilesRequested => span,
            AttemptEnd::Refused
            | AttemptEnd::Malformed
            | AttemptEnd::Repeated
            | AttemptEnd::VerifyFailed => span.with(names::ERROR_TYPE, end.as_str()).failed(&end),
        }
    }

    fn finding_event(&self, at: Timestamp, finding: &FindingView) -> SpanEvent {
        let mut attributes = vec![
            Attribute::new(names::FINDING_CODE, finding.code.as_str()),
            Attribute::new(names::FINDING_LEVEL, word(&finding.level)),
        ];
        if self.has_content() {
            attributes.push(Attribute::new(
                names::FINDING_SUBJECT,
                finding.subject.as_str(),
            ));
            attributes.push(Attribute::new(names::FINDING_HINT, finding.hint.as_str()));
        }
        SpanEvent {
            at,
            name: names::FINDING.to_owned(),
            attributes,
        }
    }

    fn attempt(&self, number: u64) -> Option<&'r AttemptView> {
        let mut attempts = self.run.attempts.iter();
        attempts.find(|attempt| attempt.number == number)
    }

    fn attempt_id(&self, number: u64) -> SpanId {
        self.id.span(&format!("attempt/{number}"))
    }

    fn stage_id(&self, at: usize) -> SpanId {
        self.id.span(&format!("stage/{at}"))
    }

    /// The newest stage, of this kind if one is given, that began by then; without one, the run.
    fn stage_at(&self, time: Timestamp, kind: Option<Stage>) -> SpanId {
        let is_it = |part: &TimelinePart| {
            let is_kind = kind.is_none_or(|stage| part.kind == PartKind::Stage { stage });
            is_kind && part.started_at <= time
        };
        let stage = stages(self.run).filter(|(_, part)| is_it(part)).last();
        stage.map_or_else(|| self.root_id(), |(at, _)| self.stage_id(at))
    }
}

/// The stages of a run with their places in order.
fn stages(run: &RunView) -> impl Iterator<Item = (usize, &TimelinePart)> {
    let is_stage = |part: &&TimelinePart| matches!(part.kind, PartKind::Stage { .. });
    run.parts.iter().filter(is_stage).enumerate()
}

/// The word that documents have for a value of a closed list.
fn word(value: &impl Serialize) -> String {
    let json = serde_json::to_value(value).unwrap_or_default();
    json.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value as Json, json};

    use super::*;
    use crate::encode::{Resource, to_json};
    use crate::span::Value;

    /// A run with every field, one text in each.
    fn sample() -> Json {
        let text = include_str!("../../serve/src/pages/sample.json");
        let mut run: Json = serde_json::from_str(text).unwrap();
        let part = |kind: Json, from: &str, to: &str, closed_by: Json| {
            let at = |second: &str| format!("2026-01-31T09:30:{second}Z");
            let mut part =
                json!({ "started_at": at(from), "ended_at": at(to), "closed_by": closed_by });
            let fields = part.as_object_mut().unwrap();
            fields.extend(kind.as_object().unwrap().clone());
            part
        };
        run["parts"] = json!([
            part(
                json!({ "kind": "stage", "stage": "inspect" }),
                "00",
                "00",
                json!(1)
            ),
            part(
                json!({ "kind": "stage", "stage": "plan" }),
                "00",
                "00",
                json!(5)
            ),
            part(
                json!({ "kind": "stage", "stage": "change" }),
                "00",
                "02",
                json!(12)
            ),
            part(
                json!({ "kind": "attempt", "number": 1 }),
                "00",
                "02",
                json!(11)
            ),
            part(
                json!({ "kind": "gates", "attempt": 1 }),
                "01",
                "02",
                json!(11)
            ),
            part(
                json!({ "kind": "attempt", "number": 2 }),
                "02",
                "02",
                Json::Null
            ),
            part(
                json!({ "kind": "stage", "stage": "land" }),
                "02",
                "02",
                Json::Null
            ),
        ]);
        run["first_end"] = json!(12);
        run["attempts"][0]["verification"]["results"] = json!([
            { "id": "tests", "isolation": "full", "failures": ["verify-test-broken"], "tests": [["still failing", 2]] }
        ]);
        run["landing_verification"] = run["attempts"][0]["verification"].clone();
        run
    }

    /// Replaces each text that is free by a text of its own, and returns where these are.
    fn with_canaries(run: &mut Json) -> Vec<String> {
        fn texts(value: &Json, pointer: &str, found: &mut Vec<String>) {
            match value {
                Json::String(_) => found.push(pointer.to_owned()),
                Json::Array(items) => {
                    for (at, item) in items.iter().enumerate() {
                        texts(item, &format!("{pointer}/{at}"), found);
                    }
                }
                Json::Object(fields) => {
                    for (name, field) in fields {
                        texts(field, &format!("{pointer}/{name}"), found);
                    }
                }
                _ => {}
            }
        }
        let mut pointers = Vec::new();
        texts(run, "", &mut pointers);
        pointers.retain(|pointer| {
            let place = run.pointer_mut(pointer).unwrap();
            let before = std::mem::replace(place, canary(pointer).into());
            let is_free = !pointer.ends_with("run_id")
                && serde_json::from_value::<RunView>(run.clone()).is_ok();
            if !is_free {
                *run.pointer_mut(pointer).unwrap() = before;
            }
            is_free
        });
        pointers
    }

    fn canary(pointer: &str) -> String {
        format!("<{pointer}>")
    }

    fn encoded(run: &Json, content: Content) -> String {
        let view: RunView = serde_json::from_value(run.clone()).unwrap();
        let trace = RunTrace::new(&view, content);
        to_json(
            &trace.id,
            &trace.spans,
            &Resource::of_version("1", Vec::new()),
        )
    }

    /// Names and codes, which are not content.
    const NAMES: [&str; 15] = [
        "/agent",
        "/base_commit",
        "/landing/commit",
        "/id",
        "/code",
        "/gates/0/0",
        "/provider",
        "/model",
        "/outcome",
        "/role",
        "/error",
        "/results/0/isolation",
        "/results/0/failures/0",
        "/results/0/tests/0/0",
        "/failure/code",
    ];

    #[test]
    fn omitted_content_is_every_text_but_names() {
        let mut run = sample();
        let pointers = with_canaries(&mut run);
        assert!(pointers.len() > 60, "{pointers:?}");
        let text = encoded(&run, Content::Omitted);
        let lines: Vec<&String> = pointers
            .iter()
            .filter(|pointer| text.contains(&canary(pointer)))
            .collect();
        assert!(lines.len() > 10, "{lines:?}");
        for pointer in lines {
            assert!(
                NAMES.iter().any(|name| pointer.ends_with(name)),
                "{pointer}"
            );
        }
        let full = encoded(&run, Content::Included);
        for pointer in [
            "/goal",
            "/repo",
            "/plan/text",
            "/attempts/0/output",
            "/baseline/0/command",
        ] {
            assert!(full.contains(&canary(pointer)), "{pointer}");
        }
    }

    #[test]
    fn spans_are_one_tree_and_sum_up_to_the_run() {
        let view: RunView = serde_json::from_value(sample()).unwrap();
        let trace = RunTrace::new(&view, Content::Omitted);
        assert_eq!(trace, RunTrace::new(&view, Content::Omitted));
        let ids: BTreeSet<String> = trace.spans.iter().map(|span| span.id.to_string()).collect();
        assert_eq!(ids.len(), trace.spans.len());
        let (root, rest) = trace.spans.split_first().unwrap();
        assert_eq!(root.parent, None);
        for span in rest {
            let parent = span.parent.as_ref().unwrap().to_string();
            assert!(ids.contains(&parent), "{}", span.name);
        }
        let sum: i64 = trace
            .spans
            .iter()
            .flat_map(|span| &span.attributes)
            .filter(|attribute| {
                attribute.name.starts_with("crucible.call.")
                    && attribute.name.ends_with("micro_usd")
            })
            .map(|attribute| match attribute.value {
                Value::Number(number) => number,
                _ => 0,
            })
            .sum();
        assert_eq!(sum, 1_234_567);
    }

    #[test]
    fn closed_spans_follow_the_known_event() {
        let view: RunView = serde_json::from_value(sample()).unwrap();
        let trace = RunTrace::new(&view, Content::Omitted);
        let names = |known| {
            let spans = trace.closed_after(known);
            spans.into_iter().map(|span| span.name).collect::<Vec<_>>()
        };
        assert!(names(0).contains(&"run".to_owned()) && names(0).contains(&"attempt 1".to_owned()));
        assert!(!names(0).contains(&"attempt 2".to_owned()), "it is open");
        assert_eq!(names(11), ["run", "stage change"]);
        assert!(names(12).is_empty() && names(u64::MAX).is_empty());
    }

    #[test]
    fn false_times_and_numbers_make_valid_spans() {
        let mut run = sample();
        run["model_calls"][0]["ended_at"] = json!("1969-01-01T00:00:00Z");
        run["model_calls"][0]["micro_dollars"] = json!(u64::MAX);
        run["exchanges"][0]["asked_at"] = json!("9999-12-30T00:00:00Z");
        run["events"] = json!([]);
        let view: RunView = serde_json::from_value(run).unwrap();
        let trace = RunTrace::new(&view, Content::Included);
        assert!(trace.spans.iter().all(|span| span.started <= span.ended));
        assert!(
            !to_json(
                &trace.id,
                &trace.spans,
                &Resource::of_version("1", Vec::new())
            )
            .is_empty()
        );
    }
}
