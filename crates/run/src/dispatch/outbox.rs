//! Prompts for a person: a file in `outbox/` that says everything, and the place where the answer is to be written.

use std::path::PathBuf;

use async_trait::async_trait;
use crucible_llm::{Fault, LlmBackend, LlmError, LlmInvocation, LlmResult, Message};
use crucible_model::ByteLimit;

use crate::contract::{MANUAL_OUTBOX, RunRecord, RunRole};
use crate::dispatch::Action;
use crate::layout::RunDir;

/// The field of a call's metadata that names where the answer lies, relative to the run directory.
pub(crate) const TARGET: &str = "target";

/// The largest answer that is taken from a file.
pub(crate) const MAX_GIVEN: ByteLimit = ByteLimit(8 * 1024 * 1024);

/// Answers with what a person wrote: the file that the call's metadata names.
pub struct OutboxBackend {
    root: PathBuf,
}

impl OutboxBackend {
    /// The backend of the run in this directory.
    #[must_use]
    pub fn new(dir: &RunDir) -> Self {
        Self { root: dir.root().to_owned() }
    }
}

#[async_trait]
impl LlmBackend for OutboxBackend {
    async fn invoke(&self, inv: LlmInvocation) -> Result<LlmResult, LlmError> {
        let target = inv.metadata.get(TARGET).and_then(serde_json::Value::as_str).unwrap_or_default();
        let fault =
            |what: String| Fault::new(MANUAL_OUTBOX, &inv.model, what, "write the answer as UTF-8 text");
        let bytes = crucible_host::fs::read_regular_up_to(&self.root.join(target), MAX_GIVEN)
            .map_err(|error| LlmError::ProviderOutage(fault(error.to_string())))?;
        let text = String::from_utf8(bytes)
            .map_err(|_| LlmError::ProviderOutage(fault(format!("{target} is not UTF-8"))))?;
        Ok(LlmResult {
            raw_response: text,
            provider: MANUAL_OUTBOX.to_owned(),
            model_used: inv.model.clone(),
            tokens_input: None,
            tokens_output: None,
            timed_out: Some(false),
            extensions: std::collections::BTreeMap::new(),
        })
    }
}

/// What a prompt for a person says besides the question.
pub(crate) struct Prompt<'p> {
    pub(crate) dir: &'p RunDir,
    pub(crate) record: &'p RunRecord,
    pub(crate) role: RunRole,
    pub(crate) action: Action,
    pub(crate) target: &'p str,
    /// Artifacts of a run that are not there yet.
    pub(crate) missing: &'p [&'static str],
    pub(crate) max_outbox_prompts: u64,
    pub(crate) question: &'p [Message],
}

/// The name of prompt `number`, in the run directory.
pub(crate) fn prompt_path(number: u64, role: RunRole, action: Action) -> String {
    format!("outbox/{number:03}_{}_{}.md", role.name(), action.name())
}

/// The text of a prompt file.
pub(crate) fn render(prompt: &Prompt<'_>) -> String {
    let settings = &prompt.record.settings;
    let mut text = format!(
        "# Prompt: {role}, {action}\n\nRun-Dir: {dir}\nRole: {role}\nAction: {action}\nTarget-Path: {target}\n\
         write to: {target}\nMissing-Artifacts: {missing}\n\
         Budgets: max_outbox_prompts={prompts} max_files={files} max_total_bytes={bytes} max_iterations={iterations}\n\n",
        role = prompt.role.name(),
        action = prompt.action.name(),
        dir = prompt.dir.root().display(),
        target = prompt.target,
        missing = prompt.missing.join(", "),
        prompts = prompt.max_outbox_prompts,
        files = settings.max_files,
        bytes = settings.max_total_bytes,
        iterations = settings.max_iterations,
    );
    for message in prompt.question {
        text.push_str(message.content.as_str());
        text.push('\n');
    }
    text
}
