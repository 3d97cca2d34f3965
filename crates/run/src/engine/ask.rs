//! Calls the service of a role: the question, its record, and the answer.
//!
//! A model, a configured command and a person are called in the same way: each is a client, and its answer is
//! recorded before it is used. Only a person may take time: a prompt is written to `outbox/`, and the run
//! continues once the answer is at the named path.

use std::collections::BTreeMap;
use std::time::Duration;

use crucible_host::fs::FsError;
use crucible_llm::{CallError, LlmInvocation, LlmReceipt, Message, ModelClient, Origin, dollars};
use crucible_model::{Code, Digest, Finding, Untrusted, counted};
use crucible_secrets::Scanner;
use serde_json::Value;
use tokio::sync::watch;

use super::Engine;
use crate::attempt;
use crate::clients::{Clients, model_placeholder};
use crate::contract::{RunRole, Service};
use crate::dispatch::agent;
use crate::dispatch::answer_equality::AnswerContent;
use crate::dispatch::evidence::{self, Evidence, RoleQuestion};
use crate::dispatch::outbox::{self, MAX_WRITTEN, Prompt};
use crate::dispatch::role_service;
use crate::dispatch::service::{CallHints, TARGET};
use crate::dispatch::{Action, AgentProgress};
use crate::error::RunError;
use crate::event_kind::{
    EventKind, answered_key, answered_step, asked_key, prompted_key, taken_key,
};
use crate::journal::Entry;
use crate::layout::{self, attempt_file};
use crate::receipt::LLM;
use crate::recorded::FILES;
use crate::recording::LINE;
use crate::status::missing_artifacts;

pub(super) const ANSWER_CUT: Code = Code::new("run-answer-cut");
const OUTBOX_FULL: Code = Code::new("run-outbox-full");

/// Time between two lines on what an agent does.
const PAUSE: Duration = Duration::from_secs(2);

/// The event field with the digest of what a person wrote.
const GIVEN: &str = "given";

/// What is asked of a role.
pub(super) struct RoleTask<'d> {
    /// Of whom.
    pub(super) role: RunRole,
    /// What it is.
    pub(super) action: Action,
    /// The path of the owed artifact, where a person writes it.
    pub(super) target: &'d str,
    /// The beginning of the keys of its events, such as `attempt-1`.
    pub(super) step: String,
    /// Which try this is, from 1.
    pub(super) number: u64,
    /// How often an answer before it was to be another one; one that repeats an earlier one counts twice.
    pub(super) refusals: u64,
    /// A progress label for people.
    pub(super) label: String,
    /// Where the answer is kept.
    pub(super) answer_path: String,
    /// What a chat model is asked.
    pub(super) chat: Vec<Message>,
    /// The evidence for everyone else.
    pub(super) evidence: Evidence<'d>,
}

/// What came of a question.
pub(super) enum AskOutcome {
    /// An answer, or a refused one.
    Answered(Answer),
    /// No answer yet: a person must write it, or the prompt limit is reached.
    Waiting,
}

/// An answer.
pub(super) struct Answer {
    /// The text; empty if none could be used.
    pub(super) text: Untrusted,
    /// Why it is refused without being parsed, if it is.
    pub(super) unread: Option<Finding>,
}

impl Engine<'_> {
    /// Returns the client that serves a role; `None` if code does.
    pub(super) fn client_of(&self, role: RunRole) -> Option<String> {
        self.dispatch.service(role).client().map(str::to_owned)
    }

    /// Calls the service `name` for a role; an answer that is already recorded is used again.
    pub(super) async fn ask(
        &mut self,
        clients: &dyn Clients,
        name: &str,
        duty: &RoleTask<'_>,
    ) -> Result<AskOutcome, RunError> {
        let client = clients.client(name)?;
        let service = role_service(name);
        let gets_files = service.reads_repository() && !service.works_in_copy();
        let messages = if gets_files && !duty.action.is_self_contained() {
            self.lay_evidence(duty)?
        } else {
            duty.chat.clone()
        };
        // A recording has what a person wrote, or no answer.
        let is_recorded = client.origin() == Origin::Recording;
        if service.is_person() && !is_recorded && !self.is_given(duty)? {
            self.lay_prompt(duty, &messages)?;
            return Ok(AskOutcome::Waiting);
        }
        let model = self.model_of(duty.role, name).to_owned();
        // In a replay, a prompt is written if the recording has no answer to it; no other service needs the
        // question again.
        let question = if is_recorded && service.is_person() {
            messages.clone()
        } else {
            Vec::new()
        };
        let invocation = LlmInvocation {
            spec_id: self.record.run_id.to_string(),
            phase_id: duty.role.name().to_owned(),
            model: model.clone(),
            timeout: service.timeout(&self.record.settings),
            messages,
            metadata: service.metadata(&self.record.settings, &duty.hints(name)),
        };
        let key = client.key(&invocation)?;
        self.record_question(client, name, &model, duty, &key)?;
        let what = format!("{}: {model} is writing", duty.label);
        self.journal.working(duty.role.name(), &what)?;
        let allowed = invocation.timeout;
        let called = match clients.progress(name) {
            Some(used) => self.watched(duty, used, client.call(invocation)).await?,
            None => client.call(invocation).await,
        };
        let llm = match &called {
            Ok(result) => Some(client.receipt(result, &[model.as_str()], allowed)),
            Err(CallError::Llm(error)) => {
                let receipt = LlmReceipt::of_failure(name, &model, error, allowed);
                if error.answer_fault().is_none() {
                    self.record_failure(name, duty, &receipt)?;
                }
                Some(receipt)
            }
            Err(CallError::Secret(_) | CallError::Record(_)) => None,
        };
        let report = called
            .as_ref()
            .ok()
            .and_then(|result| service.report(result));
        for note in report.iter().flat_map(|report| &report.notes) {
            self.journal.note(note)?;
        }
        let (text, unread) = match called {
            Ok(result) => {
                let cut = result
                    .complete_answer()
                    .err()
                    .map(|cut| Finding::error(ANSWER_CUT, duty.subject(), cut.to_string()));
                let answer = result.answer();
                let unread =
                    cut.or_else(|| service.refuse(duty.action, duty.subject(), answer.as_str()));
                (answer, unread)
            }
            Err(CallError::Llm(error)) => match error.answer_fault() {
                Some(fault) => {
                    self.journal.note(&format!("  {error}"))?;
                    (
                        Untrusted::new(""),
                        Some(attempt::answer_fault_finding(fault)),
                    )
                }
                None if service.is_person() && is_recorded => {
                    self.lay_prompt(duty, &question)?;
                    return Ok(AskOutcome::Waiting);
                }
                None => return Err(CallError::Llm(error).into()),
            },
            Err(error) => return Err(error.into()),
        };
        self.dir
            .write_recorded(&duty.answer_path, text.as_str().as_bytes())?;
        let mut body = serde_json::json!({ "role": duty.role.name() });
        if let Value::Object(fields) = &mut body {
            fields.extend(
                client
                    .recorded_line(&key)
                    .map(|line| (LINE.to_owned(), line.to_string().into())),
            );
            fields.extend(llm.map(|llm| (LLM.to_owned(), serde_json::json!(llm))));
            fields.extend(report.map(|report| (report.field.0.to_owned(), report.field.1)));
            if service.writes_logs() {
                fields.insert(FILES.to_owned(), serde_json::json!(self.new_logs()?));
            }
            if service.is_person() {
                let given_digest = self.keep_given(duty, &text)?;
                fields.insert(GIVEN.to_owned(), given_digest.to_string().into());
                fields.insert(TARGET.to_owned(), duty.target.into());
            }
        }
        let (role, event, key) = ("model", EventKind::ModelAnswered, answered_key(&duty.step));
        self.journal.record_file_with(Entry {
            role,
            event,
            key,
            path: &duty.answer_path,
            body,
        })?;
        if service.is_person() {
            // The artifact made of it replaces what the person wrote.
            self.journal.commit()?;
        }
        Ok(AskOutcome::Answered(Answer { text, unread }))
    }

    /// Waits for the answer of an agent, and shows meanwhile what it does.
    async fn watched<T>(
        &mut self,
        task: &RoleTask<'_>,
        mut used: watch::Receiver<AgentProgress>,
        answer: impl Future<Output = T>,
    ) -> Result<T, RunError> {
        let mut answer = std::pin::pin!(answer);
        let mut is_watched = true;
        loop {
            tokio::select! {
                answer = &mut answer => return Ok(answer),
                changed = used.changed(), if is_watched => {
                    is_watched = changed.is_ok();
                    let now = used.borrow_and_update().clone();
                    self.journal.working(task.role.name(), &progress_line(&task.label, &now))?;
                }
            }
            tokio::select! {
                answer = &mut answer => return Ok(answer),
                () = tokio::time::sleep(PAUSE) => {}
            }
        }
    }

    /// Records that an answer outside attempts became an artifact or was refused, so it is used up. `body`
    /// has the reason for a refusal.
    pub(super) fn record_used_answer(
        &mut self,
        duty: &RoleTask<'_>,
        body: Value,
    ) -> Result<(), RunError> {
        let (event, key) = (EventKind::AnswerTaken, taken_key(&duty.step));
        let entry = Entry {
            role: duty.role.name(),
            event,
            key,
            path: &duty.answer_path,
            body,
        };
        self.journal.record(entry)
    }

    /// Writes the evidence files and builds the question from them. They are flushed with a prompt; before
    /// that they are written again whenever the run continues.
    fn lay_evidence(&mut self, duty: &RoleTask<'_>) -> Result<Vec<Message>, RunError> {
        let asking = RoleQuestion {
            record: &self.record,
            role: duty.role,
            action: duty.action,
            target: duty.target,
        };
        for (name, text) in evidence::files(&asking, &duty.evidence) {
            let (path, text) = (evidence_path(name), text.as_str().as_bytes());
            if self.dir.read_if_there(&path)?.as_deref() != Some(text) {
                self.dir.write_recorded(&path, text)?;
            }
        }
        Ok(evidence::question(&asking, &duty.evidence))
    }

    /// Returns whether a person has written the owed answer: the file has text that was not used for this
    /// target yet.
    fn is_given(&mut self, duty: &RoleTask<'_>) -> Result<bool, RunError> {
        if self.journal.has(&answered_key(&duty.step)) {
            return Ok(true);
        }
        let no_answer = |why: &str| format!("  {} is not a valid answer: {why}", duty.target);
        let bytes = match self.dir.read_up_to(duty.target, MAX_WRITTEN) {
            Ok(bytes) => bytes,
            Err(error) if error.is_not_found() => return Ok(false),
            Err(FsError::TooLarge { path, limit }) => {
                let why = format!(
                    "it has more than {limit} bytes; write at most {limit} bytes to {}",
                    path.display()
                );
                self.journal.note(&no_answer(&why))?;
                return Ok(false);
            }
            Err(error) if error.is_link() => {
                let path = self.dir.path(duty.target);
                let why = format!(
                    "the path is or contains a symbolic link; put the file itself at {}",
                    path.display()
                );
                self.journal.note(&no_answer(&why))?;
                return Ok(false);
            }
            Err(error) => {
                self.journal.note(&no_answer(&error.to_string()))?;
                return Ok(false);
            }
        };
        if bytes.trim_ascii().is_empty() {
            return Ok(false);
        }
        let Ok(text) = std::str::from_utf8(&bytes) else {
            self.journal.note(&no_answer("it is not UTF-8"))?;
            return Ok(false);
        };
        let Some(when) = self.judged_as(duty.target, text)? else {
            return Ok(true);
        };
        // No prompt for another one was written yet, so this is fine; the prompt will say it.
        if self.journal.has(&prompted_key(&duty.step)) {
            let why = format!("it was already judged as {when}; write a new answer there");
            self.journal.note(&no_answer(&why))?;
        }
        Ok(false)
    }

    /// Returns the step, such as `attempt 1`, that already judged this text as the answer for a target, if
    /// any.
    fn judged_as(&mut self, target: &str, text: &str) -> Result<Option<String>, RunError> {
        let answer_content = AnswerContent::at(target, text);
        let dir = &self.dir;
        let says_it = |path: &str| -> Result<bool, RunError> {
            let current_text = dir
                .read_if_there(path)?
                .and_then(|bytes| String::from_utf8(bytes).ok());
            Ok(current_text
                .is_some_and(|there| AnswerContent::at(target, &there) == answer_content))
        };
        for event in self.journal.events()? {
            let is_given = event.body.get(GIVEN).is_some()
                && event.body.get(TARGET).and_then(Value::as_str) == Some(target);
            let step = event
                .key
                .as_deref()
                .and_then(answered_step)
                .filter(|_| is_given);
            if let (Some(step), Some(path)) = (step, event.path.as_deref())
                && says_it(path)?
            {
                return Ok(Some(step.replace('-', " ")));
            }
        }
        if target == layout::PATCH {
            // The patch of an attempt is our own output, not a new answer.
            for outcome in attempt::recorded_outcomes(&self.dir, self.journal.events()?)? {
                if outcome.patch.is_some()
                    && says_it(&attempt_file(outcome.number, attempt::PATCH))?
                {
                    return Ok(Some(format!("attempt {}", outcome.number)));
                }
            }
        }
        Ok(None)
    }

    /// Keeps what a person wrote in place. If it held a secret, the redacted text replaces it; if it is
    /// missing, as in a replay, it is written. Returns the digest of the used text.
    fn keep_given(&mut self, duty: &RoleTask<'_>, text: &Untrusted) -> Result<Digest, RunError> {
        let used = text.as_str().as_bytes();
        let bytes = match self.dir.read_up_to(duty.target, MAX_WRITTEN) {
            Err(error) if error.is_not_found() => None,
            // Too long for an answer, or a link: not what was used.
            other => Some(other.ok()),
        };
        let is_that = bytes.as_ref().is_none_or(|content| {
            let Some(data) = content else { return false };
            let redacted = Scanner::builtin()
                .redact(&String::from_utf8_lossy(data))
                .text
                .into_owned();
            redacted.as_bytes() == used
        });
        if !is_that {
            let note = format!(
                "  {} changed meanwhile; the recorded answer is used and the file is kept",
                duty.target
            );
            self.journal.note(&note)?;
        } else if bytes.flatten().as_deref() != Some(used) {
            self.dir.write(duty.target, used)?;
        }
        Ok(Digest::compute(used))
    }

    /// Lays a prompt for a person, once for each question.
    fn lay_prompt(&mut self, duty: &RoleTask<'_>, question: &[Message]) -> Result<(), RunError> {
        let key = prompted_key(&duty.step);
        if self.journal.has(&key) {
            return Ok(());
        }
        let prompted = EventKind::OutboxPrompted.name();
        let number = self
            .journal
            .events()?
            .iter()
            .filter(|event| event.event == prompted)
            .count() as u64
            + 1;
        let most = self.dispatch.budgets.max_outbox_prompts;
        if number > most {
            let hint = "Start again with a larger [dispatch] max_outbox_prompts, or assign the role to a model.";
            return self.fail(&Finding::error(
                OUTBOX_FULL,
                format!("prompt {number} of {most}"),
                hint,
            ));
        }
        let path = outbox::prompt_path(number, duty.role, duty.action);
        let missing = missing_artifacts(&self.dir, Some(duty.target));
        let bytes = self.dir.read_up_to(duty.target, MAX_WRITTEN).ok();
        let current_text = bytes.and_then(|content| String::from_utf8(content).ok());
        let judged_as = current_text
            .map(|there| self.judged_as(duty.target, &there))
            .transpose()?
            .flatten();
        let text = outbox::render(&Prompt {
            dir: &self.dir,
            record: &self.record,
            role: duty.role,
            action: duty.action,
            target: duty.target,
            missing: &missing,
            judged_as: judged_as.as_deref(),
            max_outbox_prompts: most,
            question,
        });
        let digest = self.dir.write_recorded(&path, text.as_bytes())?;
        // A person may read the prompt much later, so the prompt and the files it names are on disk before it is announced.
        let paths: Vec<String> = evidence::names()
            .map(evidence_path)
            .chain([path.clone()])
            .collect();
        self.dir.flush(
            &paths
                .iter()
                .map(String::as_str)
                .filter(|path| self.dir.has(path))
                .collect::<Vec<_>>(),
        )?;
        let body = serde_json::json!({ "action": duty.action.name(), "prompt": digest, "target": duty.target });
        let (role, event) = (duty.role.name(), EventKind::OutboxPrompted);
        self.journal.record(Entry {
            role,
            event,
            key,
            path: &path,
            body,
        })
    }

    /// Records a call before it happens. A question without a recorded answer was interrupted. Asking it
    /// again is another recorded call, so repeated continuing cannot exceed the budget.
    fn record_question(
        &mut self,
        client: &ModelClient,
        name: &str,
        model: &str,
        duty: &RoleTask<'_>,
        request: &Digest,
    ) -> Result<(), RunError> {
        let first = asked_key(&duty.step);
        let mut key = first.clone();
        if self.journal.has(&first) && !client.holds_answer(request) {
            let mut times = 2;
            while self.journal.has(&key) {
                key = format!("{first}-{times}");
                times += 1;
            }
        }
        let mut body = serde_json::json!({ "provider": name, "model": model });
        duty.add_subject(&mut body);
        let (role, event, path) = (duty.role.name(), EventKind::ModelAsked, layout::CASSETTE);
        self.journal.record(Entry {
            role,
            event,
            key,
            path,
            body,
        })
    }

    /// Records that a call has no answer, with its possible cost and the reason.
    fn record_failure(
        &mut self,
        name: &str,
        duty: &RoleTask<'_>,
        llm: &LlmReceipt,
    ) -> Result<(), RunError> {
        let before = self.journal.events()?.iter();
        let times = before
            .filter(|event| event.event == EventKind::ModelFailed.name())
            .count()
            + 1;
        let key = format!("model-failed-{times}");
        let mut body = serde_json::json!({ LLM: llm });
        duty.add_subject(&mut body);
        if let (true, Value::Object(fields)) = (role_service(name).writes_logs(), &mut body) {
            let logs = self.new_logs()?;
            if !logs.is_empty() {
                let paths: Vec<&str> = logs.keys().map(String::as_str).collect();
                self.journal
                    .note(&format!("  the command's output: {}", paths.join(", ")))?;
                fields.insert(FILES.to_owned(), serde_json::json!(logs));
            }
        }
        let (role, event, path) = (duty.role.name(), EventKind::ModelFailed, layout::CASSETTE);
        self.journal.record(Entry {
            role,
            event,
            key,
            path,
            body,
        })
    }

    /// Returns the command logs that no event records yet, with their digests.
    fn new_logs(&mut self) -> Result<BTreeMap<String, Digest>, RunError> {
        let events = self.journal.events()?;
        let is_recorded = |path: &str| {
            events.iter().any(|event| {
                event
                    .body
                    .get(FILES)
                    .is_some_and(|files| files.get(path).is_some())
            })
        };
        let mut logs = BTreeMap::new();
        for path in agent::agent_logs(&self.dir)
            .into_iter()
            .filter(|path| !is_recorded(path))
        {
            let digest = Digest::compute(&self.dir.read(&path)?);
            logs.insert(path, digest);
        }
        Ok(logs)
    }

    /// Returns the model that a role uses through this client.
    fn model_of(&self, role: RunRole, name: &str) -> &str {
        let settings = &self.record.settings;
        match settings.role_models.get(role.name()) {
            Some(model) => model,
            None => model_placeholder(&Service::from_name(name)).unwrap_or(&settings.model),
        }
    }
}

impl RoleTask<'_> {
    /// What the hints of a call depend on.
    fn hints<'h>(&'h self, name: &'h str) -> CallHints<'h> {
        CallHints {
            name,
            target: self.target,
            number: self.number,
            refusals: self.refusals,
        }
    }

    /// What a finding about it is about.
    pub(super) fn subject(&self) -> String {
        match self.action {
            Action::Patch | Action::Fix => format!("attempt {}", self.number),
            Action::FileRequest
            | Action::ContextPack
            | Action::PlanDraft
            | Action::FindWeb
            | Action::Review
            | Action::Object
            | Action::Expect => {
                format!("{} {}", self.action.name(), self.number)
            }
        }
    }

    /// Adds the subject of an event to it.
    fn add_subject(&self, body: &mut Value) {
        let Value::Object(fields) = body else { return };
        match self.action {
            Action::Patch | Action::Fix => fields.insert("attempt".to_owned(), self.number.into()),
            Action::FileRequest
            | Action::ContextPack
            | Action::PlanDraft
            | Action::FindWeb
            | Action::Review
            | Action::Object
            | Action::Expect => fields.insert("action".to_owned(), self.action.name().into()),
        };
    }
}

/// One line on what an agent has done.
fn progress_line(label: &str, progress: &AgentProgress) -> String {
    let AgentProgress { used, files } = progress;
    let tool = used.last_tool.as_ref().map(|tool| format!(", last {tool}"));
    let cost = match used.micro_dollars {
        0 => String::new(),
        cost => format!(", {}", dollars(cost)),
    };
    let refused = match used.refused {
        0 => String::new(),
        refused => format!(", {refused} refused"),
    };
    format!(
        "{label}: {}, {}{}, {} tokens in, {} out{cost}, {} changed{refused}",
        counted(used.requests, "request"),
        counted(used.tools, "tool call"),
        tool.unwrap_or_default(),
        used.tokens_input,
        used.tokens_output,
        counted(*files, "file"),
    )
}

/// Returns the path of an evidence file in the run directory.
fn evidence_path(name: &str) -> String {
    format!("outbox/{name}")
}
