//! A model without tools as an agent: it answers with both files, whole, and they are put into the copy as it wrote them.

use std::collections::BTreeMap;

use async_trait::async_trait;
use crucible_host::clock::Stopwatch;
use crucible_llm::{CallError, LlmError, LlmInvocation, LlmResult, Message, ModelClient};
use crucible_model::{Code, EditFormat, Finding, RepoPath};
use crucible_patch::{AnswerError, EditKind, Proposal, read_answer};
use serde_json::{Map, json};

use super::sandboxed::{TIMEOUT, insert_fact, redact_values};
use super::{AgentEnd, AgentError, AgentOutcome, AgentTask, SkillAgent};
use crate::answer_form::AnswerForm;
use crate::workspace::SECRET;

const ANSWER: Code = Code::new("forge-agent-answer");
/// An answer that was cut off. It is kept, and no later packet quotes it: what breaks off is no example of anything.
pub(crate) const CUT: Code = Code::new("forge-agent-cut");

/// What a call is made for, in receipts and recordings.
const PHASE: &str = "skill-build";

/// A model as the agent that writes a skill.
pub(crate) struct WholeFileSkillAgent {
    client: ModelClient,
}

impl WholeFileSkillAgent {
    /// Asked through this client.
    #[must_use]
    pub(crate) const fn new(client: ModelClient) -> Self {
        Self { client }
    }
}

#[async_trait]
impl SkillAgent for WholeFileSkillAgent {
    fn name(&self) -> String {
        format!(
            "whole-file {} {}",
            self.client.provider(),
            self.client.model_for(PHASE)
        )
    }

    fn form(&self) -> AnswerForm {
        AnswerForm::AnswersWithFiles
    }

    async fn work(&self, task: &AgentTask<'_>) -> Result<AgentOutcome, AgentError> {
        let invocation = LlmInvocation {
            spec_id: task.paths.module.clone(),
            phase_id: PHASE.to_owned(),
            model: String::new(),
            timeout: task.timeout,
            messages: vec![Message::user(task.packet.clone())],
            metadata: BTreeMap::new(),
        };
        let models = self.client.may_answer(&invocation);
        let since = Stopwatch::start();
        let result = match self.client.call(invocation).await {
            Ok(result) => result,
            Err(CallError::Llm(LlmError::Timeout { duration, .. })) => {
                let what = format!("the model gave no answer within {} s", duration.as_secs());
                let hint = if duration < task.timeout {
                    "That is the longest that a single answer may take, whatever --timeout says: [llm] max_http_timeout_s, for a client program \
                     max_cli_timeout_s. Raise it, ask a faster model, or let it answer shorter (max_tokens of its provider)."
                } else {
                    "Give it more time with --timeout, or ask a faster one."
                };
                let end = AgentEnd::TimedOut(Finding::error(TIMEOUT, what, hint));
                return Ok(AgentOutcome {
                    end,
                    log: Vec::new(),
                    facts: Map::new(),
                    receipt: None,
                });
            }
            Err(error) => return Err(error.into()),
        };
        let mut facts = Map::new();
        insert_fact(&mut facts, "seconds", json!(since.elapsed().as_secs()));
        insert_fact(&mut facts, "provider", json!(result.provider));
        insert_fact(&mut facts, "model", json!(result.model_used));
        insert_fact(&mut facts, "tokens_input", json!(result.tokens_input));
        insert_fact(&mut facts, "tokens_output", json!(result.tokens_output));
        if let Some(cost) = self.client.receipt(&result, &models, task.timeout).cost {
            insert_fact(&mut facts, "cost_micro_dollars", json!(cost.micro_dollars));
            insert_fact(&mut facts, "cost_basis", json!(cost.basis));
        }
        let log = redact_values(&result.raw_response, &[]);
        let ran = |end| AgentOutcome {
            end,
            log,
            facts,
            receipt: None,
        };
        let answer = match result.complete_answer() {
            Ok(answer) => answer,
            Err(cut) => {
                let what = format!("after {} bytes; {cut}", result.raw_response.len());
                let hint = "The answer ends in the middle, so nothing of it was taken. Answer shorter: both files and no other words.";
                return Ok(ran(AgentEnd::Failed(Finding::error(CUT, what, hint))));
            }
        };
        // The client took it out already: what is left is not what the model wrote.
        if result.extensions.contains_key(LlmResult::REDACTIONS) {
            let hint = "The answer looked as if it held a secret, and nothing of it was taken. A skill gets its secrets by name, when it runs; \
                        a test sets a made-up value that looks like none.";
            return Ok(ran(AgentEnd::Failed(Finding::error(
                SECRET,
                "the answer of the model",
                hint,
            ))));
        }
        let expected = task.paths.files().map(RepoPath::clone);
        let edits = match read_answer(EditFormat::WholeFile, &answer, &expected) {
            Ok(Proposal::Edits(edits)) => edits,
            Ok(Proposal::Diff(_)) => return Ok(ran(unreadable(&AnswerError::NoEdit))),
            Err(error) => return Ok(ran(unreadable(&error))),
        };
        for edit in &edits {
            let (EditKind::WholeFile { content } | EditKind::Definitions { content }) = &edit.kind
            else {
                continue;
            };
            task.workspace.put(&edit.path, content.as_bytes())?;
        }
        Ok(ran(AgentEnd::Done))
    }
}

fn unreadable(error: &AnswerError) -> AgentEnd {
    let found = error.finding();
    let hint = match error {
        // In the form that the packet asks for.
        AnswerError::NoPath { line } => format!(
            "line {line}: this block does not say which file it is; write its path alone on the line above the block"
        ),
        _ => found.hint,
    };
    AgentEnd::Failed(Finding::error(
        ANSWER,
        format!("the answer cannot be read as files: {}", found.subject),
        hint,
    ))
}
