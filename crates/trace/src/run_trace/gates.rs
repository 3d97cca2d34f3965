//! Gates, and the variants of a change that they ran on.
//!
//! The ledger has the time of all gates of a change together, and none of a single gate. The span of a gate has the times of
//! the span around it, and says so.

use crucible_model::Timestamp;
use crucible_run::{PartKind, Stage};
use crucible_view::VerificationView;

use super::{Builder, stages, word};
use crate::conventions as names;
use crate::id::SpanId;
use crate::span::Span;

/// A span around the spans of gates.
struct Around {
    id: SpanId,
    path: String,
    times: (Timestamp, Timestamp),
    closed_by: Option<u64>,
}

impl Around {
    fn child(&self, builder: &Builder<'_>, kind: &str, name: &str) -> Span {
        let id = builder.id.span(&format!("{}/{kind}/{name}", self.path));
        let text = format!("{kind} {name}");
        Span::new(id, Some(&self.id), text, self.times, self.closed_by)
            .with(names::HAS_OUTER_TIMES, true)
    }
}

impl Builder<'_> {
    /// Spans for the gates before any change, of each attempt, and before the landing.
    pub(super) fn gates(&mut self) {
        self.baseline();
        for part in &self.run.parts {
            let PartKind::Gates { attempt: number } = part.kind else {
                continue;
            };
            let path = format!("attempt/{number}/gates");
            let parent = self.attempt_id(number);
            let around = Around {
                id: self.id.span(&path),
                path,
                times: (part.started_at, part.ended_at),
                closed_by: part.closed_by,
            };
            let report = self
                .attempt(number)
                .and_then(|attempt| attempt.verification.as_ref());
            self.verification(&around, &parent, report);
        }
        let land = PartKind::Stage { stage: Stage::Land };
        let stage = stages(self.run)
            .filter(|(_, part)| part.kind == land)
            .last();
        if let (Some(report), Some((at, part))) = (&self.run.landing_verification, stage) {
            let path = format!("stage/{at}/gates");
            let parent = self.stage_id(at);
            let around = Around {
                id: self.id.span(&path),
                path,
                times: (part.started_at, part.ended_at),
                closed_by: part.closed_by,
            };
            self.verification(&around, &parent, Some(report));
        }
    }

    fn baseline(&mut self) {
        let inspect = PartKind::Stage {
            stage: Stage::Inspect,
        };
        let Some((at, part)) = stages(self.run).find(|(_, part)| part.kind == inspect) else {
            return;
        };
        let around = Around {
            id: self.stage_id(at),
            path: format!("stage/{at}"),
            times: (part.started_at, part.ended_at),
            closed_by: part.closed_by,
        };
        for gate in &self.run.baseline {
            let mut span = around
                .child(self, "gate", gate.id.as_str())
                .with(names::GATE, gate.id.as_str())
                .with(names::GATE_IS_PASSED, gate.is_passed)
                .with(names::GATE_SET_ASIDE, gate.set_aside.is_some());
            if self.has_content() {
                span = span.with(names::GATE_COMMAND, gate.command.as_str());
            }
            self.spans.push(span);
        }
    }

    fn verification(
        &mut self,
        around: &Around,
        parent: &SpanId,
        report: Option<&VerificationView>,
    ) {
        let span = Span::new(
            around.id.clone(),
            Some(parent),
            "gates",
            around.times,
            around.closed_by,
        );
        let Some(report) = report else {
            self.spans
                .push(span.with(names::IS_OPEN, around.closed_by.is_none()));
            return;
        };
        let mut span = span.with(names::GATE_IS_PASSED, report.is_passed);
        for finding in &report.warnings {
            let event = self.finding_event(span.ended, finding);
            span.push_event(event);
        }
        self.spans.push(match report.is_passed {
            true => span,
            false => span.failed("a gate refuses the change"),
        });
        for gate in &report.results {
            let failures: Vec<String> = gate
                .failures
                .iter()
                .map(|code| code.as_str().to_owned())
                .collect();
            let reason = failures.first().cloned();
            let mut span = around
                .child(self, "gate", gate.id.as_str())
                .with(names::GATE, gate.id.as_str())
                .with(names::GATE_IS_PASSED, failures.is_empty())
                .with(names::GATE_ISOLATION, gate.isolation.as_str())
                .with(names::GATE_FAILURES, failures);
            for (result, number) in &gate.tests {
                let result = result.as_str().replace(' ', "_");
                span = span.with(&format!("{}{result}", names::GATE_TESTS), *number);
            }
            self.spans.push(match reason {
                Some(code) => span.failed(&code),
                None => span,
            });
        }
        self.variants(around, report);
    }

    fn variants(&mut self, around: &Around, report: &VerificationView) {
        if let Some(check) = &report.broken_change {
            let full_span = around
                .child(self, "variant", "broken-change")
                .with(names::VARIANT, "broken-change")
                .with(names::VARIANT_OUTCOME, word(&check.outcome))
                .with(names::VARIANT_FUNCTIONS, check.functions.len() as u64)
                .with(names::VARIANT_CONSTANTS, check.constants);
            let inner = Around {
                id: full_span.id.clone(),
                path: format!("{}/variant/broken-change", around.path),
                times: around.times,
                closed_by: around.closed_by,
            };
            self.spans.push(full_span);
            for (gate, outcome, _) in &check.gates {
                let span = inner
                    .child(self, "gate", gate.as_str())
                    .with(names::GATE, gate.as_str())
                    .with(names::VARIANT_OUTCOME, word(outcome));
                self.spans.push(span);
            }
        }
        if let Some(strength) = &report.strength {
            let span = around
                .child(self, "variant", "mistakes")
                .with(names::VARIANT, "mistakes")
                .with(names::VARIANT_TRIED, strength.tried)
                .with(names::VARIANT_NOTICED, strength.noticed);
            self.spans.push(span);
        }
    }
}
