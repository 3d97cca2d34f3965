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
use crucible_run::{AttemptEnd, Part, PartKind, Stage};
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
    pub fn of(run: &RunView, content: Content) -> Self {
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
            .with(names::RUN_CALLS, run.budgets.calls)
            .with(names::RUN_TOKENS, run.budgets.tokens)
            .with(names::RUN_COST, run.budgets.micro_dollars)
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
            AttemptEnd::Verified | AttemptEnd::FilesRequested => span,
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
        let is_it = |part: &Part| {
            let is_kind = kind.is_none_or(|stage| part.kind == PartKind::Stage { stage });
            is_kind && part.started_at <= time
        };
        let stage = stages(self.run).filter(|(_, part)| is_it(part)).last();
        stage.map_or_else(|| self.root_id(), |(at, _)| self.stage_id(at))
    }
}

/// The stages of a run with their places in order.
fn stages(run: &RunView) -> impl Iterator<Item = (usize, &Part)> {
    let is_stage = |part: &&Part| matches!(part.kind, PartKind::Stage { .. });
    run.parts.iter().filter(is_stage).enumerate()
}

/// The word that documents have for a value of a closed list.
fn word(value: &impl Serialize) -> String {
    let json = serde_json::to_value(value).unwrap_or_default();
    json.as_str().unwrap_or_default().to_owned()
}
