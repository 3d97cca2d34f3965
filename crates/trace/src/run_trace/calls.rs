//! Questions of roles and the model calls that they consist of.

use crucible_view::{CallView, ExchangeView};
use serde_json::json;

use super::Builder;
use crate::conventions as names;
use crate::id::SpanId;
use crate::provider_name::provider_name;
use crate::span::{Span, SpanKind};

impl Builder<'_> {
    /// A span for each question; of an agent, one for each of its turns.
    pub(super) fn questions(&mut self) {
        for question in &self.run.exchanges {
            let started = question.asked_at.unwrap_or(question.ended_at);
            let parent = match question.attempt {
                Some(number) => self.attempt_id(number),
                None => self.stage_at(started, None),
            };
            let role = question.role.as_str();
            let agent = self.run.summary.agent.as_ref();
            let agent = agent.filter(|_| question.attempt.is_some());
            let name = match agent {
                Some(agent) => format!("{} {}", names::INVOKE_AGENT, agent.as_str()),
                None => format!("question {role}"),
            };
            let mut span = Span::new(
                self.question_id(question),
                Some(&parent),
                name,
                (started, question.ended_at),
                Some(question.event),
            )
            .with(names::ROLE, role)
            .with(names::CONVERSATION_ID, self.run.summary.run_id.as_str());
            if let Some(agent) = agent {
                span = span
                    .with(names::OPERATION_NAME, names::INVOKE_AGENT)
                    .with(names::AGENT_NAME, agent.as_str());
            }
            span = match &question.error {
                Some(class) => span
                    .with(names::ERROR_TYPE, class.as_str())
                    .failed(class.as_str()),
                None => span.with(names::RESPONSE_MODEL, question.model.as_str()),
            };
            let attempt = question.attempt.and_then(|number| self.attempt(number));
            let answer = attempt.and_then(|attempt| attempt.answer.as_ref());
            if let (true, Some(answer), None) = (self.has_content(), answer, &question.error) {
                let part = json!({ "type": "text", "content": answer.as_str() });
                let messages =
                    json!([{ "role": "assistant", "parts": [part], "finish_reason": "stop" }]);
                span = span.with(names::OUTPUT_MESSAGES, messages.to_string());
            }
            self.spans.push(span);
        }
    }

    /// A span for each model call, with its tokens and its cost.
    pub(super) fn calls(&mut self) {
        for call in &self.run.model_calls {
            let question = self.question_of(call);
            let parent = match question {
                Some(question) => self.question_id(question),
                None => self.stage_at(call.started_at, None),
            };
            let closed_by = question
                .filter(|_| call.ended_at.is_some())
                .map(|question| question.event);
            let model = call.model.as_str();
            let mut span = Span::new(
                self.id.span(&format!("call/{}", call.number)),
                Some(&parent),
                format!("{} {model}", names::CHAT),
                (call.started_at, call.ended_at.unwrap_or(call.started_at)),
                closed_by,
            )
            .with(names::OPERATION_NAME, names::CHAT)
            .with(names::PROVIDER_NAME, provider_name(call.provider.as_str()))
            .with(names::REQUEST_MODEL, model)
            .with(names::CONVERSATION_ID, self.run.summary.run_id.as_str())
            .with_some(names::INPUT_TOKENS, call.tokens_in)
            .with_some(names::OUTPUT_TOKENS, call.tokens_out)
            .with(names::CALL, call.number)
            .with(names::CALL_ATTEMPT, u64::from(call.attempt))
            .with(names::CALL_REQUEST, call.request.to_string());
            span.kind = SpanKind::Client;
            let cost = match call.is_cost_known {
                true => names::CALL_COST,
                false => names::CALL_RESERVED,
            };
            span = span.with(cost, call.micro_dollars);
            span = match call.outcome.as_ref().map(|outcome| outcome.as_str()) {
                None => span.with(names::IS_OPEN, true),
                Some("ok") => span,
                Some(class) => span.with(names::ERROR_TYPE, class).failed(class),
            };
            self.spans.push(span);
        }
    }

    fn question_id(&self, question: &ExchangeView) -> SpanId {
        self.id.span(&format!("question/{}", question.event))
    }

    /// The question that a call belongs to: the newest one that was asked before the call and not ended by then. Questions of
    /// one run do not overlap.
    fn question_of(&self, call: &CallView) -> Option<&ExchangeView> {
        let is_around = |question: &&ExchangeView| {
            let asked_at = question.asked_at.unwrap_or(question.ended_at);
            asked_at <= call.started_at && call.started_at <= question.ended_at
        };
        self.run.exchanges.iter().rfind(is_around)
    }
}
