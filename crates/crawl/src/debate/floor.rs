//! Runs a debate one call at a time: bounded, recorded and strictly parsed.
//!
//! This is the only place that calls a model. Observations besides the answer (such as a limit that a
//! backend does not support) are kept as notes, and become warnings of the plan.

use std::collections::BTreeMap;
use std::time::Duration;

use crucible_llm::{CallError, LlmInvocation, LlmResult, Message, ModelClient, StructuredOutput};
use crucible_model::{Digest, PromptText};
use crucible_repo::BuildSystem;
use serde_json::{Value, json};

use super::error::{DebateError, ReplyFault};
use super::phase::DebatePhase;
use super::plain_sight::holds_secret;
use super::prompts::{self, Material};
use super::reply::Reply;
use super::transcript::{self, MessageRecord, Transcript};
use crate::inspect::Inspection;
use crate::observer::CrawlObserver;

const MAX_TOKENS: &str = "max_tokens";
const RESPONSE_FORMAT: &str = "response_format";

/// A debate in progress: its repository, its time limit and its observers.
pub struct DebateContext<'d> {
    pub(super) inspection: &'d Inspection,
    pub(super) timeout: Duration,
    pub(super) session: &'d str,
    pub(super) transcript: &'d mut dyn Transcript,
    pub(super) observer: &'d dyn CrawlObserver,
    /// The round of the latest draft or revision.
    pub(super) round: u32,
    pub(super) notes: Vec<String>,
}

/// A parsed answer and the model that gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ModelReply<R> {
    pub(super) reply: R,
    pub(super) model: String,
}

impl<'d> DebateContext<'d> {
    /// Starts a debate about an inspection. Each model call gets `timeout`, retries included.
    pub fn new(
        inspection: &'d Inspection,
        timeout: Duration,
        session: &'d str,
        transcript: &'d mut dyn Transcript,
        observer: &'d dyn CrawlObserver,
    ) -> Self {
        Self {
            inspection,
            timeout,
            session,
            transcript,
            observer,
            round: 0,
            notes: Vec::new(),
        }
    }

    /// Makes the call of a phase, and parses the answer.
    pub(super) async fn ask<R: Reply>(
        &mut self,
        client: &ModelClient,
        phase: DebatePhase,
        material: &[Material],
    ) -> Result<ModelReply<R>, DebateError> {
        let (owner, provider) = (phase.owner(), client.provider());
        let round = match phase {
            DebatePhase::Synthesis => 0,
            DebatePhase::Draft | DebatePhase::Critique | DebatePhase::Revision => self.round,
        };
        self.observer
            .progress(&progress_line(phase, round, provider));
        let messages = vec![
            Message::system(prompts::system(phase)),
            Message::user(prompts::user(phase, self.system(), material)),
        ];
        let text_of = |text: &PromptText| text.as_str().to_owned();
        let request = messages
            .iter()
            .map(|message| (message.role.as_str().to_owned(), text_of(&message.content)));
        let mut record = MessageRecord {
            phase: phase.as_str(),
            round,
            owner: owner.as_str(),
            provider: provider.to_owned(),
            model: String::new(),
            request: request.collect(),
            reply: String::new(),
            verdict: "",
            error: String::new(),
        };
        let called = client
            .call(LlmInvocation {
                spec_id: self.session.to_owned(),
                phase_id: phase.id().to_owned(),
                model: String::new(),
                timeout: self.timeout,
                messages,
                metadata: hints::<R>(client, phase),
            })
            .await;
        let model_reply = match called {
            Ok(result) => {
                record.model.clone_from(&result.model_used);
                self.note_ignored(&result, phase);
                let answered = checked_reply::<R>(&result, phase);
                record.verdict = answered.as_ref().map_or("", Reply::verdict);
                record.reply = match answered {
                    Err(DebateError::Secret { .. }) => {
                        transcript::withheld_notice(&result.raw_response)
                    }
                    _ => result.raw_response,
                };
                answered.map(|reply| ModelReply {
                    reply,
                    model: result.model_used,
                })
            }
            Err(error) => Err(CallError::into(error)),
        };
        if let Err(error) = &model_reply {
            record.error = error.to_string();
        }
        transcript::store(self.transcript, record, model_reply)
    }

    /// Adds a note for the executor of the plan, without repetition.
    pub(super) fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.observer.warning(&note);
            self.notes.push(note);
        }
    }

    fn system(&self) -> BuildSystem {
        self.inspection
            .artifact
            .build_system
            .name
            .parse()
            .unwrap_or(BuildSystem::Unknown)
    }

    /// Notes a token limit that the backend did not apply. The form of an answer is always checked.
    fn note_ignored(&mut self, result: &LlmResult, phase: DebatePhase) {
        let ignored = result
            .extensions
            .get(LlmResult::IGNORED_METADATA)
            .and_then(Value::as_array);
        if ignored.is_some_and(|names| names.iter().any(|name| name == MAX_TOKENS)) {
            self.note(format!(
                "{} does not support a token limit: the budget of {}'s answers was checked only afterwards",
                result.provider,
                phase.owner()
            ));
        }
    }
}

fn progress_line(phase: DebatePhase, round: u32, provider: &str) -> String {
    let what = match phase {
        DebatePhase::Draft => "drafts a plan",
        DebatePhase::Critique => "reviews the plan",
        DebatePhase::Revision => "revises the plan",
        DebatePhase::Synthesis => {
            return format!("{} ({provider}) writes the final plan", phase.owner());
        }
    };
    format!("round {round}: {} ({provider}) {what}", phase.owner())
}

/// The hints of a call: the constant token limit, and the answer schema if the backend supports one.
fn hints<R: Reply>(client: &ModelClient, phase: DebatePhase) -> BTreeMap<String, Value> {
    let form = match client.capabilities().structured_output {
        StructuredOutput::JsonSchema => Some(R::response_format()),
        StructuredOutput::JsonMode => Some(json!({"type": "json_object"})),
        StructuredOutput::None => None,
    };
    let form = form.map(|form| (RESPONSE_FORMAT.to_owned(), form));
    form.into_iter()
        .chain([(MAX_TOKENS.to_owned(), json!(phase.tokens()))])
        .collect()
}

fn checked_reply<R: Reply>(result: &LlmResult, phase: DebatePhase) -> Result<R, DebateError> {
    let refused = |why: ReplyFault| DebateError::Reply {
        owner: phase.owner(),
        phase,
        digest: Digest::compute(result.raw_response.as_bytes()),
        why,
    };
    // Checked before anything of the answer is parsed or reported. The client has already removed plain
    // secrets.
    if result.extensions.contains_key(LlmResult::REDACTIONS) || holds_secret(&result.raw_response) {
        return Err(DebateError::Secret {
            owner: phase.owner(),
            phase,
        });
    }
    let budget = phase.tokens();
    let full_text = result
        .complete_answer()
        .map_err(|_| refused(ReplyFault::TruncatedAnswer { budget }))?;
    if let Some(tokens) = result.tokens_output.filter(|tokens| *tokens > budget) {
        return Err(refused(ReplyFault::OverBudget { tokens, budget }));
    }
    R::read(full_text.as_str()).map_err(refused)
}
