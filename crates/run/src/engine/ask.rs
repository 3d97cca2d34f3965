//! How a role is asked, whoever serves it: the question, the record of it, and the answer.
//!
//! A model, a configured command and a person are asked in the same way: each is a client, and what it says is recorded before
//! it is used. Only a person is waited for: a prompt is laid into `outbox/`, and the run goes on once the answer lies where the
//! prompt says.

use std::collections::BTreeMap;

use crucible_host::fs::FsError;
use crucible_llm::{CallError, LlmInvocation, LlmReceipt, Message, ModelClient, Origin};
use crucible_model::{Code, Digest, Finding, Untrusted};
use crucible_secrets::Scanner;
use serde_json::Value;

use super::Engine;
use crate::attempt;
use crate::clients::{Clients, stand_in};
use crate::contract::{RunRole, Service};
use crate::dispatch::Action;
use crate::dispatch::agent;
use crate::dispatch::answer_equality::AnswerContent;
use crate::dispatch::evidence::{self, Asking, Evidence};
use crate::dispatch::outbox::{self, MAX_WRITTEN, Prompt};
use crate::dispatch::role_service;
use crate::dispatch::service::{CallHints, TARGET};
use crate::error::RunError;
use crate::event_kind::{EventKind, answered_key, answered_step, asked_key, prompted_key, taken_key};
use crate::journal::Entry;
use crate::layout::{self, attempt_file};
use crate::receipt::LLM;
use crate::recorded::FILES;
use crate::recording::LINE;
use crate::status::missing;

pub(super) const ANSWER_CUT: Code = Code::new("run-answer-cut");
const OUTBOX_FULL: Code = Code::new("run-outbox-full");

/// The field of an event that holds the digest of what a person wrote.
const GIVEN: &str = "given";

/// What is asked of a role.
pub(super) struct Duty<'d> {
    /// Of whom.
    pub(super) role: RunRole,
    /// What it is.
    pub(super) action: Action,
    /// Where the artifact stands that is owed; where a person writes it.
    pub(super) target: &'d str,
    /// The beginning of the keys of its events, such as `attempt-1`.
    pub(super) step: String,
    /// Which try this is, from 1.
    pub(super) number: u64,
    /// How often an answer before it was to be another one; one that repeats an earlier one counts twice.
    pub(super) refusals: u64,
    /// What a person is told of it while it is worked at.
    pub(super) label: String,
    /// Where the answer is kept.
    pub(super) answer_path: String,
    /// What a chat model is asked.
    pub(super) chat: Vec<Message>,
    /// What anybody else is told.
    pub(super) evidence: Evidence<'d>,
}

/// What came of a question.
pub(super) enum AskOutcome {
    /// An answer, or what stands for one.
    Answered(Answer),
    /// Nothing yet: a person has to write it, or nobody may be asked any more.
    Waiting,
}

/// An answer.
pub(super) struct Answer {
    /// The words; empty where nothing came that could be taken.
    pub(super) text: Untrusted,
    /// Why it is refused before it is read, where it is.
    pub(super) unread: Option<Finding>,
}

impl Engine<'_> {
    /// The client that serves a role; nothing where code does.
    pub(super) fn served_by(&self, role: RunRole) -> Option<String> {
        self.dispatch.service(role).client().map(str::to_owned)
    }

    /// Asks a role that `name` serves: from the recording where it was already answered, anew otherwise.
    pub(super) async fn ask(
        &mut self,
        clients: &dyn Clients,
        name: &str,
        duty: &Duty<'_>,
    ) -> Result<AskOutcome, RunError> {
        let client = clients.client(name)?;
        let service = role_service(name);
        let messages = if service.reads_repository() { self.lay_evidence(duty)? } else { duty.chat.clone() };
        // A recording has what a person wrote then, or nobody answered.
        let is_recorded = client.origin() == Origin::Recording;
        if service.is_person() && !is_recorded && !self.is_given(duty)? {
            self.lay_prompt(duty, &messages)?;
            return Ok(AskOutcome::Waiting);
        }
        let model = self.model_of(duty.role, name).to_owned();
        // A prompt is laid in a replay where the recording has no answer to it; nobody else needs the question once more.
        let question = if is_recorded && service.is_person() { messages.clone() } else { Vec::new() };
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
        let called = client.call(invocation).await;
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
        let report = called.as_ref().ok().and_then(|result| service.report(result));
        for note in report.iter().flat_map(|report| &report.notes) {
            self.journal.note(note)?;
        }
        let (text, unread) = match called {
            Ok(result) => {
                let cut = result
                    .whole_answer()
                    .err()
                    .map(|cut| Finding::error(ANSWER_CUT, duty.subject(), cut.to_string()));
                let answer = result.answer();
                let unread = cut.or_else(|| service.refuse(duty.action, duty.subject(), answer.as_str()));
                (answer, unread)
            }
            Err(CallError::Llm(error)) => match error.answer_fault() {
                Some(fault) => {
                    self.journal.note(&format!("  {error}"))?;
                    (Untrusted::new(""), Some(attempt::unusable(fault)))
                }
                None if service.is_person() && is_recorded => {
                    self.lay_prompt(duty, &question)?;
                    return Ok(AskOutcome::Waiting);
                }
                None => return Err(CallError::Llm(error).into()),
            },
            Err(error) => return Err(error.into()),
        };
        self.dir.write_recorded(&duty.answer_path, text.as_str().as_bytes())?;
        let mut body = serde_json::json!({ "role": duty.role.name() });
        if let Value::Object(fields) = &mut body {
            fields.extend(client.recorded_line(&key).map(|line| (LINE.to_owned(), line.to_string().into())));
            fields.extend(llm.map(|llm| (LLM.to_owned(), serde_json::json!(llm))));
            fields.extend(report.map(|report| (report.field.0.to_owned(), report.field.1)));
            if service.writes_logs() {
                fields.insert(FILES.to_owned(), serde_json::json!(self.new_logs()?));
            }
            if service.is_person() {
                let given = self.keep_given(duty, &text)?;
                fields.insert(GIVEN.to_owned(), given.to_string().into());
                fields.insert(TARGET.to_owned(), duty.target.into());
            }
        }
        let (role, event, key) = ("model", EventKind::ModelAnswered, answered_key(&duty.step));
        self.journal.record_file_with(Entry { role, event, key, path: &duty.answer_path, body })?;
        if service.is_person() {
            // What is made of it takes the place of what the person wrote.
            self.journal.commit()?;
        }
        Ok(AskOutcome::Answered(Answer { text, unread }))
    }

    /// Records that the answer of a duty which is no attempt has become an artifact, or was refused: it is used up.
    /// `body` says why it was refused, where it was.
    pub(super) fn take_answer(&mut self, duty: &Duty<'_>, body: Value) -> Result<(), RunError> {
        let (event, key) = (EventKind::AnswerTaken, taken_key(&duty.step));
        let entry = Entry { role: duty.role.name(), event, key, path: &duty.answer_path, body };
        self.journal.record(entry)
    }

    /// Writes the evidence files, and makes the question of them. They are flushed with a prompt that is laid; before that they are written
    /// anew whenever the run goes on.
    fn lay_evidence(&mut self, duty: &Duty<'_>) -> Result<Vec<Message>, RunError> {
        let asking =
            Asking { record: &self.record, role: duty.role, action: duty.action, target: duty.target };
        for (name, text) in evidence::files(&asking, &duty.evidence) {
            let (path, text) = (evidence_path(name), text.as_str().as_bytes());
            if self.dir.read_if_there(&path)?.as_deref() != Some(text) {
                self.dir.write_recorded(&path, text)?;
            }
        }
        Ok(evidence::question(&asking, &duty.evidence))
    }

    /// Whether a person wrote what is owed: text lies there that was not used for this target yet.
    fn is_given(&mut self, duty: &Duty<'_>) -> Result<bool, RunError> {
        if self.journal.has(&answered_key(&duty.step)) {
            return Ok(true);
        }
        let no_answer = |why: &str| format!("  {} is no answer: {why}", duty.target);
        let bytes = match self.dir.read_up_to(duty.target, MAX_WRITTEN) {
            Ok(bytes) => bytes,
            Err(error) if error.is_not_found() => return Ok(false),
            Err(FsError::TooLarge { path, limit }) => {
                let why = format!(
                    "it has more than {limit} bytes; write one of at most {limit} bytes to {}",
                    path.display()
                );
                self.journal.note(&no_answer(&why))?;
                return Ok(false);
            }
            Err(error) if error.is_link() => {
                let path = self.dir.path(duty.target);
                let why = format!(
                    "a symbolic link stands there or on the way to it, and none is followed; put the file itself at {}",
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
        let Some(when) = self.judged_as(duty.target, text)? else { return Ok(true) };
        // Nobody was asked for another one yet, so nothing is amiss; the prompt will say it.
        if self.journal.has(&prompted_key(&duty.step)) {
            let why = format!("it is what was judged as {when}; write another one there");
            self.journal.note(&no_answer(&why))?;
        }
        Ok(false)
    }

    /// The step, such as `attempt 1`, in which what this text says was judged as what is owed at a target; nothing where it never
    /// was.
    fn judged_as(&mut self, target: &str, text: &str) -> Result<Option<String>, RunError> {
        let said = AnswerContent::at(target, text);
        let dir = &self.dir;
        let says_it = |path: &str| -> Result<bool, RunError> {
            let there = dir.read_if_there(path)?.and_then(|bytes| String::from_utf8(bytes).ok());
            Ok(there.is_some_and(|there| AnswerContent::at(target, &there) == said))
        };
        for event in self.journal.events()? {
            let given = event.body.get(GIVEN).is_some()
                && event.body.get(TARGET).and_then(Value::as_str) == Some(target);
            let step = event.key.as_deref().and_then(answered_step).filter(|_| given);
            if let (Some(step), Some(path)) = (step, event.path.as_deref())
                && says_it(path)?
            {
                return Ok(Some(step.replace('-', " ")));
            }
        }
        if target == layout::PATCH {
            // The patch that an attempt came to is ours: nobody wrote it anew.
            for outcome in attempt::recorded(&self.dir, self.journal.events()?)? {
                if outcome.patch.is_some() && says_it(&attempt_file(outcome.number, attempt::PATCH))? {
                    return Ok(Some(format!("attempt {}", outcome.number)));
                }
            }
        }
        Ok(None)
    }

    /// What a person wrote stays where it is; where it held a secret, what is left of it takes its place, and where nothing is,
    /// as in a replay, it is put there. Returns the digest of what was used.
    fn keep_given(&mut self, duty: &Duty<'_>, text: &Untrusted) -> Result<Digest, RunError> {
        let used = text.as_str().as_bytes();
        let there = match self.dir.read_up_to(duty.target, MAX_WRITTEN) {
            Err(error) if error.is_not_found() => None,
            // What is too long for an answer, or a link, is not what was used.
            other => Some(other.ok()),
        };
        let is_that = there.as_ref().is_none_or(|there| {
            let Some(there) = there else { return false };
            let redacted = Scanner::builtin().redact(&String::from_utf8_lossy(there)).text.into_owned();
            redacted.as_bytes() == used
        });
        if !is_that {
            let note = format!(
                "  {} was written anew meanwhile; the recorded answer is used, the file stays",
                duty.target
            );
            self.journal.note(&note)?;
        } else if there.flatten().as_deref() != Some(used) {
            self.dir.write(duty.target, used)?;
        }
        Ok(Digest::of(used))
    }

    /// Lays a prompt for a person, once for each question.
    fn lay_prompt(&mut self, duty: &Duty<'_>, question: &[Message]) -> Result<(), RunError> {
        let key = prompted_key(&duty.step);
        if self.journal.has(&key) {
            return Ok(());
        }
        let laid = EventKind::OutboxPrompted.name();
        let number = self.journal.events()?.iter().filter(|event| event.event == laid).count() as u64 + 1;
        let most = self.dispatch.budgets.max_outbox_prompts;
        if number > most {
            let hint =
                "Start again with a larger [dispatch] max_outbox_prompts, or let a model serve the role.";
            return self.fail(&Finding::error(OUTBOX_FULL, format!("prompt {number} of {most}"), hint));
        }
        let path = outbox::prompt_path(number, duty.role, duty.action);
        let missing = missing(&self.dir, Some(duty.target));
        let there = self.dir.read_up_to(duty.target, MAX_WRITTEN).ok();
        let there = there.and_then(|there| String::from_utf8(there).ok());
        let judged_as = there.map(|there| self.judged_as(duty.target, &there)).transpose()?.flatten();
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
        let laid: Vec<String> = evidence::names().map(evidence_path).chain([path.clone()]).collect();
        self.dir
            .flush(&laid.iter().map(String::as_str).filter(|path| self.dir.has(path)).collect::<Vec<_>>())?;
        let body =
            serde_json::json!({ "action": duty.action.name(), "prompt": digest, "target": duty.target });
        let (role, event) = (duty.role.name(), EventKind::OutboxPrompted);
        self.journal.record(Entry { role, event, key, path: &path, body })
    }

    /// Records that somebody is asked, before it happens. A question whose answer was not recorded was cut off; putting it
    /// once more is another call, and is recorded as one, so that no budget is overdrawn by going on again and again.
    fn record_question(
        &mut self,
        client: &ModelClient,
        name: &str,
        model: &str,
        duty: &Duty<'_>,
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
        duty.tell(&mut body);
        let (role, event, path) = (duty.role.name(), EventKind::ModelAsked, layout::CASSETTE);
        self.journal.record(Entry { role, event, key, path, body })
    }

    /// Records that a call has no answer: what it may have cost, and why.
    fn record_failure(&mut self, name: &str, duty: &Duty<'_>, llm: &LlmReceipt) -> Result<(), RunError> {
        let before = self.journal.events()?.iter();
        let times = before.filter(|event| event.event == EventKind::ModelFailed.name()).count() + 1;
        let key = format!("model-failed-{times}");
        let mut body = serde_json::json!({ LLM: llm });
        duty.tell(&mut body);
        if let (true, Value::Object(fields)) = (role_service(name).writes_logs(), &mut body) {
            let logs = self.new_logs()?;
            if !logs.is_empty() {
                let paths: Vec<&str> = logs.keys().map(String::as_str).collect();
                self.journal.note(&format!("  what the command printed: {}", paths.join(", ")))?;
                fields.insert(FILES.to_owned(), serde_json::json!(logs));
            }
        }
        let (role, event, path) = (duty.role.name(), EventKind::ModelFailed, layout::CASSETTE);
        self.journal.record(Entry { role, event, key, path, body })
    }

    /// What commands printed and no event tells of yet, with the digest of each log.
    fn new_logs(&mut self) -> Result<BTreeMap<String, Digest>, RunError> {
        let events = self.journal.events()?;
        let told = |path: &str| {
            events.iter().any(|event| event.body.get(FILES).is_some_and(|files| files.get(path).is_some()))
        };
        let mut logs = BTreeMap::new();
        for path in agent::agent_logs(&self.dir).into_iter().filter(|path| !told(path)) {
            let digest = Digest::of(&self.dir.read(&path)?);
            logs.insert(path, digest);
        }
        Ok(logs)
    }

    /// The model that a role asks through this client.
    fn model_of(&self, role: RunRole, name: &str) -> &str {
        let settings = &self.record.settings;
        match settings.role_models.get(role.name()) {
            Some(model) => model,
            None => stand_in(&Service::of(name)).unwrap_or(&settings.model),
        }
    }
}

impl Duty<'_> {
    /// What the hints of a call depend on.
    fn hints<'h>(&'h self, name: &'h str) -> CallHints<'h> {
        CallHints { name, target: self.target, number: self.number, refusals: self.refusals }
    }

    /// What a finding about it is about.
    pub(super) fn subject(&self) -> String {
        match self.action {
            Action::Patch | Action::Fix => format!("attempt {}", self.number),
            Action::FileRequest
            | Action::ContextPack
            | Action::PlanDraft
            | Action::FindWeb
            | Action::Review => {
                format!("{} {}", self.action.name(), self.number)
            }
        }
    }

    /// Adds to an event what it is about.
    fn tell(&self, body: &mut Value) {
        let Value::Object(fields) = body else { return };
        match self.action {
            Action::Patch | Action::Fix => fields.insert("attempt".to_owned(), self.number.into()),
            Action::FileRequest
            | Action::ContextPack
            | Action::PlanDraft
            | Action::FindWeb
            | Action::Review => fields.insert("action".to_owned(), self.action.name().into()),
        };
    }
}

/// Where an evidence file lies in the run directory.
fn evidence_path(name: &str) -> String {
    format!("outbox/{name}")
}
