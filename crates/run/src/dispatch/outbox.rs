//! Prompts for a person: a complete file in `outbox/`, and the path for the answer.

use std::collections::BTreeMap;

use async_trait::async_trait;
use crucible_llm::{Fault, LlmBackend, LlmError, LlmInvocation, LlmResult, Message};
use crucible_model::ByteLimit;
use crucible_patch::MAX_ANSWER_BYTES;
use serde_json::Value;

use crate::contract::{MANUAL_OUTBOX, RunRecord, RunRole, RunSettings};
use crate::dispatch::action::Action;
use crate::dispatch::service::{CallHints, RoleService, TARGET};
use crate::layout::RunDir;

/// Maximum size of a command's answer.
pub(crate) const MAX_GIVEN: ByteLimit = ByteLimit(8 * 1024 * 1024);

/// Maximum size of a person's answer in a file; no larger one would be parsed as a change.
pub(crate) const MAX_WRITTEN: ByteLimit = ByteLimit(MAX_ANSWER_BYTES);

/// A person, who reads a prompt in `outbox/` and the repository, and answers by a file in the run directory.
pub(super) struct PersonService;

impl RoleService for PersonService {
    fn reads_repository(&self) -> bool {
        true
    }

    fn is_person(&self) -> bool {
        true
    }

    fn metadata(&self, _: &RunSettings, call: &CallHints<'_>) -> BTreeMap<String, Value> {
        call.with_target()
    }
}

/// A backend whose answer is what a person wrote: the file named by the call's metadata.
pub struct OutboxBackend {
    dir: RunDir,
}

impl OutboxBackend {
    /// The backend of the run in this directory.
    #[must_use]
    pub fn new(dir: &RunDir) -> Self {
        Self { dir: dir.clone() }
    }
}

#[async_trait]
impl LlmBackend for OutboxBackend {
    async fn invoke(&self, inv: LlmInvocation) -> Result<LlmResult, LlmError> {
        let target = inv
            .metadata
            .get(TARGET)
            .and_then(Value::as_str)
            .unwrap_or_default();
        let fault = |what: String| {
            Fault::new(
                MANUAL_OUTBOX,
                &inv.model,
                what,
                "write the answer as UTF-8 text",
            )
        };
        let bytes = self
            .dir
            .read_up_to(target, MAX_WRITTEN)
            .map_err(|error| LlmError::ProviderOutage(fault(error.to_string())))?;
        let text = String::from_utf8(bytes)
            .map_err(|_| LlmError::ProviderOutage(fault(format!("{target} is not UTF-8"))))?;
        Ok(LlmResult {
            raw_response: text,
            provider: MANUAL_OUTBOX.to_owned(),
            model_used: inv.model.clone(),
            // A person uses no tokens, and costs nothing.
            tokens_input: Some(0),
            tokens_output: Some(0),
            timed_out: Some(false),
            extensions: BTreeMap::new(),
        })
    }
}

/// The content of a prompt file besides the question.
pub(crate) struct Prompt<'p> {
    pub(crate) dir: &'p RunDir,
    pub(crate) record: &'p RunRecord,
    pub(crate) role: RunRole,
    pub(crate) action: Action,
    pub(crate) target: &'p str,
    /// Artifacts of a run that are not there yet.
    pub(crate) missing: &'p [&'static str],
    /// The step that judged the current answer at the target, such as `attempt 1`; `None` if none did.
    pub(crate) judged_as: Option<&'p str>,
    pub(crate) max_outbox_prompts: u64,
    pub(crate) question: &'p [Message],
}

/// The name of prompt `number`, in the run directory.
pub(crate) fn prompt_path(number: u64, role: RunRole, action: Action) -> String {
    format!("outbox/{number:03}_{}_{}.md", role.name(), action.name())
}

/// Returns the text of a prompt file: information on the run, and below a line the prompt
/// itself, ready to paste.
pub(crate) fn render(prompt: &Prompt<'_>) -> String {
    let settings = &prompt.record.settings;
    let judged = prompt.judged_as.map(|step| {
        format!(
            "What lies there now was judged as {step}: replace it. An answer that was judged before is passed over.\n"
        )
    });
    let missing = if prompt.missing.is_empty() {
        "none".to_owned()
    } else {
        prompt.missing.join(", ")
    };
    let mut text = format!(
        "# Prompt: {role}, {action}\n\nRun-Dir: {dir}\nRole: {role}\nAction: {action}\nTarget-Path: {target}\n\
         write to: {target}\nMissing-Artifacts: {missing}\n\
         Budgets: max_outbox_prompts={prompts} max_files={files} max_total_bytes={bytes} max_iterations={iterations}\n\n\
         How to answer: give everything below the line to the person or model that answers. Write what comes back, and only that, to\n\
         {dir}/{target}\n{judged}Then continue with `crucible run advance {id}`. Change no file of the repository.\n\n---\n\n",
        role = prompt.role.name(),
        action = prompt.action.name(),
        dir = prompt.dir.root().display(),
        id = prompt.record.run_id,
        target = prompt.target,
        judged = judged.unwrap_or_default(),
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

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::dispatch::evidence::{Evidence, RoleQuestion, question};
    use crate::gatekeeper::tests::record;

    #[test]
    fn a_prompt_has_every_required_part() {
        let record = record(Path::new("/r"), &[]);
        let dir = RunDir::from_path(PathBuf::from("/runs/r"));
        let (role, action, target) = (RunRole::Patchmaker, Action::Patch, "artifacts/diff.patch");
        let question = question(
            &RoleQuestion {
                record: &record,
                role,
                action,
                target,
            },
            &Evidence::default(),
        );
        let missing = ["artifacts/diff.patch", "artifacts/verify_report.json"];
        let text = render(&Prompt {
            dir: &dir,
            record: &record,
            role,
            action,
            target,
            missing: &missing,
            judged_as: Some("attempt 1"),
            max_outbox_prompts: 7,
            question: &question,
        });
        for part in [
            "Run-Dir: /runs/r\n",
            "Role: patchmaker\n",
            "Action: patch\n",
            "Target-Path: artifacts/diff.patch\n",
            "write to: artifacts/diff.patch\n",
            "Missing-Artifacts: artifacts/diff.patch, artifacts/verify_report.json\n",
            "What lies there now was judged as attempt 1: replace it.",
            "max_outbox_prompts=7 max_files=1 max_total_bytes=1 max_iterations=1",
            "crucible run advance r",
            "begins with `diff --git`",
            "Change no file of the repository",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert_eq!(
            prompt_path(3, role, action),
            "outbox/003_patchmaker_patch.md"
        );
    }
}
