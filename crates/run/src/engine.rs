//! Takes a run as far as it goes.
//!
//! Each step looks whether its artifact is there, makes it when not, and then makes sure that it is recorded:
//! so a step that was cut off between the two is only recorded, and a step that was done is not done again. The
//! steps up to the signed plan are local and deterministic; after that attempts follow one another until one is
//! verified or none is left.

use std::borrow::Borrow;
use std::collections::{BTreeMap, HashMap};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use crucible_host::fs::{read_prefix, temp_dir_in};
use crucible_ledger::Ledger;
use crucible_llm::{CallError, LlmInvocation, LlmReceipt, ModelClient};
use crucible_model::{ByteLimit, Code, Digest, Finding, RepoPath, Untrusted, counted};
use crucible_pack::{ContextPack, FileRequest, Mandatory};
use crucible_patch::{FileMode, is_test_path};
use crucible_repo::Git;

use crucible_verify::{Baseline, TestFiles, VerifyResult};
use serde_json::Value;

use crate::analysis::{Analysis, AnalysisVersion, BehaviorCatalogue};
use crate::attempt::{self, AttemptEnd, AttemptOutcome, AttemptVersion};
use crate::budget::allowed;
use crate::contract::{
    ContextSettings, ContractDocuments, Guardrails, Plan, PlanStatus, Review, ReviewVerdict, RunRecord,
    RunRole, Signature, SignatureVersion, known_results,
};
use crate::error::RunError;
use crate::event_kind::{AttemptStep, EventKind, attempt_key};
use crate::gate_files::gate_files;
use crate::gatekeeper::{self, Ground, Judged};
use crate::journal::{Entry, FILES, Journal, Witness};
use crate::layout::{self, RunDir, attempt_file};
use crate::receipt::{self, LLM};
use crate::recording::{LINE, Opening, SEED};
use crate::role::chair::NotAsked;
use crate::role::librarian::WorkTree;
use crate::role::patchmaker::Brief;
use crate::role::{chair, patchmaker, reviewers};
use crate::start::{record_beginning, register};
use crate::state::RunState;
use crate::status::{answers_used, progress};
use crate::trial::{self, BEHAVIOR_INDEX, Trial, Tried, require_base};
use crate::world::World;

const SAME_PATCH_TWICE: Code = Code::new("run-same-patch-twice");
const PASSED_BEFORE: Code = Code::new("run-gates-passed-before");
/// How much of a file is read to see what else a gate runs.
const GATE_FILE_READ: ByteLimit = ByteLimit(256 * 1024);
const OUT_OF_ATTEMPTS: Code = Code::new("run-out-of-attempts");
const ANSWER_CUT: Code = Code::new("run-answer-cut");

/// How much of a refused patch the fixer is shown, in characters.
const MAX_PATCH_SHOWN: usize = 4000;

/// Advances a run until it is verified, blocked or failed, and tells where it stands. A run that already is
/// changes nothing. The model is opened by `open` once the run's lock is held and its events are complete, so nobody else
/// writes the recording that it reads.
///
/// # Errors
///
/// An error leaves the run as far as it came; advancing again continues from there.
pub async fn advance<C: Borrow<ModelClient>>(
    world: &World<'_>,
    dir: &RunDir,
    open: impl FnOnce(&Opening<'_>) -> Result<C, RunError>,
    ledger: &mut Ledger,
    witness: &mut dyn Witness,
) -> Result<RunState, RunError> {
    let _lock = dir.take("advancing the run")?;
    let record = dir.record()?;
    let git = world.git(&record.repo, &dir.fresh_scratch()?).await?;
    world.outside_of(git.top())?;
    let journal = Journal::open(record.run_id.clone(), dir.clone(), ledger, world.clock, witness)?;
    let mut engine = Engine { world, dir: dir.clone(), record, git, journal };
    let calls = allowed(&engine.record, engine.journal.events());
    let opened = answers_used(dir).and_then(|answered| {
        let RunRecord { run_id, settings, .. } = &engine.record;
        open(&Opening { settings, run: run_id, answered, calls })
    });
    let done = match opened {
        Ok(client) => engine.run(client.borrow()).await,
        Err(error) => Err(error),
    };
    // What stopped the run is the error to tell, not that the disk is too full to tell it.
    let noted = engine.note_down();
    done?;
    noted
}

struct Engine<'a> {
    world: &'a World<'a>,
    dir: RunDir,
    record: RunRecord,
    git: Git,
    journal: Journal<'a>,
}

impl Engine<'_> {
    async fn run(&mut self, client: &ModelClient) -> Result<(), RunError> {
        self.journal.check_files()?;
        record_beginning(&mut self.journal, &self.record)?;
        self.journal.record_file(
            "crucible",
            EventKind::GuardrailsWritten,
            "guardrails",
            layout::GUARDRAILS,
        )?;
        self.journal.record_file("crucible", EventKind::DispatchWritten, "dispatch", layout::DISPATCH)?;
        if progress(&self.dir, self.journal.events())?.state() == RunState::Landed {
            return Ok(());
        }
        // A run that has ended goes through its steps once more, too: the last ones may not have been recorded.
        let analysis = self.analyse().await?;
        let (request, pack) = self.gather(&analysis).await?;
        let plan = self.draft(&analysis, &request, &pack)?;
        if !self.review(&plan, &pack)? {
            return Ok(());
        }
        let plan = self.sign(&plan)?;
        self.attempts(client, &analysis, &plan, &pack).await
    }

    /// Brings what is derived from files and events up to date, and tells the state.
    fn note_down(&mut self) -> Result<RunState, RunError> {
        let reached = progress(&self.dir, self.journal.events())?.state();
        self.journal.write_trace()?;
        receipt::write(&self.dir, &self.record, self.journal.events())?;
        register(&self.record, reached, self.journal.ledger(), self.world)?;
        Ok(reached)
    }

    async fn analyse(&mut self) -> Result<Analysis, RunError> {
        if !self.is_made("analysis", layout::ANALYSIS) {
            let tracked = self.git.tracked_files().await?;
            let gates = counted(self.record.settings.gates.len() as u64, "gate");
            let what = format!("running {gates} before any change");
            self.journal.witness().working("verifier", &what);
            let trial = self.trial(None).await?;
            if let Some((gate, message)) = trial.unusable() {
                return Err(RunError::GateUnusable { gate, message });
            }
            let files: HashMap<&[u8], FileMode> =
                tracked.iter().map(|file| (file.path.as_os_str().as_bytes(), file.mode)).collect();
            let is_tracked =
                |path: &str| files.get(path.as_bytes()).is_some_and(|mode| *mode != FileMode::Gitlink);
            // A link is a file of the gate as well, and so is a file that cannot be read; neither leads further.
            let beginning = |path: &RepoPath| match files.get(path.as_str().as_bytes())? {
                FileMode::Gitlink => None,
                FileMode::Symlink => Some(Vec::new()),
                _ => {
                    let place = self.record.repo.join(path.as_str());
                    Some(read_prefix(&place, GATE_FILE_READ).map(|read| read.bytes).unwrap_or_default())
                }
            };
            let analysis = Analysis {
                schema_version: AnalysisVersion::V1,
                base_commit: self.record.base_commit.clone(),
                tracked_files: tracked.len() as u64,
                tracked_bytes: tracked.iter().map(|file| file.size).sum(),
                left_out: trial.left_out,
                gate_files: gate_files(&self.record.settings.gates, beginning),
                behaviors: if is_tracked(BEHAVIOR_INDEX) {
                    BehaviorCatalogue::Unchecked
                } else {
                    BehaviorCatalogue::Absent
                },
                gates: self.record.settings.gates.clone(),
                baseline: trial.results,
            };
            self.dir.write_json(layout::ANALYSIS, &analysis)?;
            if !analysis.left_out.is_empty() {
                let count = analysis.left_out.len();
                self.journal.witness().note(&format!(
                    "  left out of the gates' copies: {count} tracked files; see {}",
                    layout::ANALYSIS
                ));
            }
        }
        self.journal.record_file("crucible", EventKind::RepositoryAnalysed, "analysis", layout::ANALYSIS)?;
        self.dir.read_document(layout::ANALYSIS)
    }

    async fn gather(&mut self, analysis: &Analysis) -> Result<(FileRequest, ContextPack), RunError> {
        if !self.is_made("file-request", layout::FILE_REQUEST) {
            let (tracked, unfit) = chair::candidates(self.git.tracked_files().await?);
            self.journal.witness().working("chair", "ranking the files of the repository");
            let (request, mut not_asked) = chair::file_request(&self.record, analysis, &tracked);
            not_asked.files.extend(unfit);
            self.dir.write_json(layout::LEFT_OUT, &not_asked)?;
            let role = RunRole::Chair.name();
            self.journal.record_file(role, EventKind::FilesLeftOut, "left-out", layout::LEFT_OUT)?;
            self.dir.write_json(layout::FILE_REQUEST, &request)?;
        }
        self.journal.record_file(
            RunRole::Chair.name(),
            EventKind::FilesRequested,
            "file-request",
            layout::FILE_REQUEST,
        )?;
        let request = FileRequest::parse(&self.dir.read(layout::FILE_REQUEST)?)
            .map_err(|error| self.dir.malformed(layout::FILE_REQUEST, &error.to_string()))?;
        if !self.is_made("context-pack", layout::CONTEXT_PACK) {
            self.journal.witness().working(RunRole::Librarian.name(), "packing what the model may see");
            let mandatory = self.mandatory()?;
            let tree = WorkTree::new(self.record.repo.clone());
            let pack = crucible_pack::build(&request, &mandatory, &self.record.repo_slug, &tree)?;
            require_base(&self.git, &self.record).await?;
            self.dir.write(layout::CONTEXT_PACK, &pack.to_bytes()?)?;
            let not_asked: Option<NotAsked> = self
                .dir
                .has(layout::LEFT_OUT)
                .then(|| self.dir.read_document(layout::LEFT_OUT))
                .transpose()?;
            if let Some(told) = not_asked.and_then(|not_asked| chair::told_of(&pack, &not_asked)) {
                self.journal.witness().note(&told);
            }
        }
        self.journal.record_file(
            RunRole::Librarian.name(),
            EventKind::ContextPacked,
            "context-pack",
            layout::CONTEXT_PACK,
        )?;
        let pack = ContextPack::parse(&self.dir.read(layout::CONTEXT_PACK)?)
            .map_err(|error| self.dir.malformed(layout::CONTEXT_PACK, &error.to_string()))?;
        Ok((request, pack))
    }

    /// The contract's documents are required where the settings say so or the repository lives by the contract, and shown
    /// where present elsewhere (D7).
    fn mandatory(&self) -> Result<Mandatory, RunError> {
        let ContextSettings { contract, mandatory } = &self.record.settings.context;
        let extra: Vec<&str> = mandatory.iter().map(RepoPath::as_str).collect();
        let lives_by_it = self.record.repo.join("ai_context").is_dir();
        let documents = if *contract == ContractDocuments::Required || lives_by_it {
            Mandatory::contract(&extra)
        } else {
            Mandatory::where_present(&extra)
        };
        documents.map_err(|error| self.dir.malformed(layout::RUN, &error.to_string()))
    }

    fn draft(
        &mut self,
        analysis: &Analysis,
        request: &FileRequest,
        pack: &ContextPack,
    ) -> Result<Plan, RunError> {
        if !self.is_made("plan-draft", layout::PLAN_DRAFT) {
            let plan = chair::draft(&self.record, &analysis.gate_files, pack, request);
            if Plan::parse(&plan.render()).as_ref() != Ok(&plan) {
                return Err(self
                    .dir
                    .malformed(layout::PLAN_DRAFT, "a path in it cannot be written as a plan's line"));
            }
            self.dir.write(layout::REASONS, chair::reasons(&self.record.goal).as_bytes())?;
            self.dir.write(layout::EXPECTED_RESULTS, chair::expected_results().as_bytes())?;
            self.dir.write(layout::PLAN_DRAFT, plan.render().as_bytes())?;
        }
        let role = RunRole::Chair.name();
        self.journal.record_file(role, EventKind::ReasonsWritten, "reasons", layout::REASONS)?;
        self.journal.record_file(
            role,
            EventKind::ResultsExpected,
            "expected-results",
            layout::EXPECTED_RESULTS,
        )?;
        self.journal.record_file(role, EventKind::PlanDrafted, "plan-draft", layout::PLAN_DRAFT)?;
        let text = self.dir.read_text(layout::PLAN_DRAFT)?;
        Plan::parse(&text).map_err(|verdict| {
            let first =
                verdict.findings().first().map(|finding| format!("{}: {}", finding.code, finding.subject));
            self.dir.malformed(layout::PLAN_DRAFT, &first.unwrap_or_default())
        })
    }

    /// Whether a step's file is there and recorded. A file that nobody recorded was cut off, or put there by somebody else:
    /// it is made again, never believed.
    fn is_made(&self, key: &str, path: &str) -> bool {
        self.journal.has(key) && self.dir.has(path)
    }

    /// Both local reviewers speak; tells whether both approve.
    fn review(&mut self, plan: &Plan, pack: &ContextPack) -> Result<bool, RunError> {
        let subject = Digest::of(&self.dir.read(layout::PLAN_DRAFT)?);
        let guardrails = Guardrails::parse(&self.dir.read_text(layout::GUARDRAILS)?)
            .map_err(|error| self.dir.malformed(layout::GUARDRAILS, &error.to_string()))?;
        let results = known_results(&self.dir.read_text(layout::EXPECTED_RESULTS)?);
        let contract = reviewers::contract_guardian(plan, pack, &results, self.record.settings.gates.len());
        let cost = reviewers::cost_controller(&self.record, &guardrails, plan, pack);
        let mut approved = true;
        for (role, path, verdict, event) in [
            (RunRole::ContractGuardian, layout::REVIEW_CONTRACT, contract, EventKind::ContractReviewed),
            (RunRole::CostController, layout::REVIEW_COST, cost, EventKind::CostReviewed),
        ] {
            let review = Review::from_verdict(role.name(), subject, &verdict);
            if !self.is_made(event.name(), path) {
                self.dir.write(path, review.render().as_bytes())?;
            }
            self.journal.record_file(role.name(), event, event.name(), path)?;
            approved &= review.verdict == ReviewVerdict::Approve;
        }
        Ok(approved)
    }

    fn sign(&mut self, draft: &Plan) -> Result<Plan, RunError> {
        let plan = Plan { status: PlanStatus::Signed, ..draft.clone() };
        let text = plan.render();
        if !self.is_made("plan", layout::PLAN) {
            self.dir.write(layout::PLAN, text.as_bytes())?;
        }
        if self.dir.read(layout::PLAN)? != text.as_bytes() {
            return Err(RunError::Edited { path: self.dir.path(layout::PLAN) });
        }
        if !self.is_made("signature", layout::SIGNATURE) {
            let mut reviews = BTreeMap::new();
            for path in [layout::REVIEW_CONTRACT, layout::REVIEW_COST] {
                reviews.insert(path.to_owned(), Digest::of(&self.dir.read(path)?));
            }
            let schema_version = SignatureVersion::V1;
            let signature = Signature { schema_version, plan: Digest::of(text.as_bytes()), reviews };
            self.dir.write_json(layout::SIGNATURE, &signature)?;
        }
        self.journal.record_file("crucible", EventKind::PlanWritten, "plan", layout::PLAN)?;
        self.journal.record_file("crucible", EventKind::PlanSigned, "signature", layout::SIGNATURE)?;
        Ok(plan)
    }

    async fn attempts(
        &mut self,
        client: &ModelClient,
        analysis: &Analysis,
        plan: &Plan,
        pack: &ContextPack,
    ) -> Result<(), RunError> {
        for outcome in attempt::recorded(&self.dir, self.journal.events())? {
            self.record_attempt(&outcome)?;
        }
        loop {
            let ended = attempt::recorded(&self.dir, self.journal.events())?;
            let last = ended.last();
            if last.is_some_and(|outcome| outcome.end == AttemptEnd::Verified) {
                return attempt::check_copies(&self.dir, self.journal.events());
            }
            if let Some(failure) = give_up(&ended, self.record.settings.max_iterations) {
                return self.fail(&failure);
            }
            let number = ended.len() as u64 + 1;
            let brief = last.map(|outcome| self.brief(outcome)).transpose()?;
            let role = if brief.is_some() { RunRole::Fixer } else { RunRole::Patchmaker };
            let answer = self.answer(client, number, role, plan, pack, analysis, brief.as_ref()).await?;
            self.try_answer(number, plan, analysis, &answer).await?;
        }
    }

    /// The model's answer of an attempt: from the recording where it was already given, asked for otherwise.
    #[expect(clippy::too_many_arguments, reason = "each is a distinct artifact that goes into the question")]
    async fn answer(
        &mut self,
        client: &ModelClient,
        number: u64,
        role: RunRole,
        plan: &Plan,
        pack: &ContextPack,
        analysis: &Analysis,
        brief: Option<&Brief>,
    ) -> Result<Answer, RunError> {
        let invocation = LlmInvocation {
            spec_id: self.record.run_id.to_string(),
            phase_id: role.name().to_owned(),
            model: self.model_of(role).to_owned(),
            timeout: Duration::from_secs(self.record.settings.model_timeout_s),
            messages: patchmaker::messages(
                self.record.settings.edit_format,
                plan,
                pack,
                &analysis.baseline,
                brief,
            ),
            metadata: parameters(&self.record.settings.parameters, number),
        };
        let key = client.key(&invocation)?;
        self.record_question(client, number, role, &key)?;
        let what = format!(
            "attempt {number} of {}: {} is writing",
            self.record.settings.max_iterations,
            self.model_of(role)
        );
        self.journal.witness().working(role.name(), &what);
        let allowed = invocation.timeout;
        let called = client.call(invocation).await;
        let llm = match &called {
            Ok(result) => Some(client.receipt(result, &[self.model_of(role)], allowed)),
            Err(CallError::Llm(error)) => {
                let settings = &self.record.settings;
                let receipt = LlmReceipt::of_failure(&settings.provider, self.model_of(role), error, allowed);
                if error.answer_fault().is_none() {
                    self.record_failure(number, role, &receipt)?;
                }
                Some(receipt)
            }
            Err(CallError::Secret(_) | CallError::Record(_)) => None,
        };
        let (text, unread) = match called {
            Ok(result) => {
                let cut = result
                    .whole_answer()
                    .err()
                    .map(|cut| Finding::error(ANSWER_CUT, format!("attempt {number}"), cut.to_string()));
                (result.answer(), cut)
            }
            Err(CallError::Llm(error)) => match error.answer_fault() {
                Some(fault) => {
                    self.journal.witness().note(&format!("  {error}"));
                    (Untrusted::new(""), Some(attempt::unusable(fault)))
                }
                None => return Err(CallError::Llm(error).into()),
            },
            Err(error) => return Err(error.into()),
        };
        self.dir.write(&attempt_file(number, attempt::ANSWER), text.as_str().as_bytes())?;
        Ok(Answer { text, unread, line: client.recorded_line(&key), role, llm })
    }

    /// Records that the model is asked, before it is. A question whose answer was not recorded was cut off; putting it
    /// once more is another call, and is recorded as one, so that no budget is overdrawn by going on again and again.
    fn record_question(
        &mut self,
        client: &ModelClient,
        number: u64,
        role: RunRole,
        request: &Digest,
    ) -> Result<(), RunError> {
        let first = attempt_key(number, AttemptStep::Asked);
        let mut key = first.clone();
        if self.journal.has(&first) && !client.holds_answer(request) {
            let mut times = 2;
            while self.journal.has(&key) {
                key = format!("{first}-{times}");
                times += 1;
            }
        }
        let settings = &self.record.settings;
        let body = serde_json::json!({ "attempt": number, "provider": settings.provider, "model": self.model_of(role) });
        let path = layout::CASSETTE;
        self.journal
            .record(Entry { role: role.name(), event: EventKind::ModelAsked, key, path, body })
            .map(drop)
    }

    /// Records that a call has no answer: what it may have cost, and why.
    fn record_failure(&mut self, number: u64, role: RunRole, llm: &LlmReceipt) -> Result<(), RunError> {
        let before = self.journal.events().iter();
        let times = before.filter(|event| event.event == EventKind::ModelFailed.name()).count() + 1;
        let key = format!("model-failed-{times}");
        let body = serde_json::json!({ "attempt": number, LLM: llm });
        let (event, path) = (EventKind::ModelFailed, layout::CASSETTE);
        self.journal.record(Entry { role: role.name(), event, key, path, body }).map(drop)
    }

    /// The model that a role asks.
    fn model_of(&self, role: RunRole) -> &str {
        let settings = &self.record.settings;
        settings.role_models.get(role.name()).unwrap_or(&settings.model)
    }

    /// Judges an answer and, where it is let through, tries it behind the gates.
    async fn try_answer(
        &mut self,
        number: u64,
        plan: &Plan,
        analysis: &Analysis,
        answer: &Answer,
    ) -> Result<(), RunError> {
        let text = &answer.text;
        let key = |step| attempt_key(number, step);
        let path = attempt_file(number, attempt::ANSWER);
        let mut body = serde_json::json!({ "role": answer.role.name() });
        if let Value::Object(fields) = &mut body {
            fields.extend(answer.line.map(|line| (LINE.to_owned(), line.to_string().into())));
            fields.extend(answer.llm.as_ref().map(|llm| (LLM.to_owned(), serde_json::json!(llm))));
        }
        let (role, event) = ("model", EventKind::ModelAnswered);
        self.journal.record_file_with(Entry {
            role,
            event,
            key: key(AttemptStep::Answered),
            path: &path,
            body,
        })?;
        self.journal.witness().working("patch gate", "judging the answer");
        let judged = match &answer.unread {
            Some(finding) => Judged::refused(finding.clone()),
            None => {
                let ground =
                    Ground { git: &self.git, record: &self.record, plan, gate_files: &analysis.gate_files };
                gatekeeper::judge(&ground, text, number).await?
            }
        };
        let mut outcome = AttemptOutcome {
            schema_version: AttemptVersion::V1,
            number,
            end: AttemptEnd::Refused,
            answer: Digest::of(text.as_str().as_bytes()),
            patch: judged.patch.as_ref().map(|patch| Digest::of(patch)),
            findings: judged.verdict.findings().to_vec(),
            output: String::new(),
        };
        if let Some(patch) = &judged.patch {
            self.dir.write(&attempt_file(number, attempt::PATCH), patch)?;
            self.dir.write(layout::PATCH, patch)?;
            self.journal.record_file(
                "crucible",
                EventKind::PatchProposed,
                &key(AttemptStep::Proposed),
                &attempt_file(number, attempt::PATCH),
            )?;
        }
        let review =
            Review::from_verdict("patch gate", outcome.patch.unwrap_or(outcome.answer), &judged.verdict);
        self.dir.write(&attempt_file(number, attempt::REVIEW), review.render().as_bytes())?;
        self.dir.write(layout::REVIEW_PATCH, review.render().as_bytes())?;
        for finding in judged.verdict.errors() {
            self.journal.witness().note(&format!("  refused: {finding}"));
        }
        if let (Some(change), true) = (&judged.change, judged.verdict.passes()) {
            let path = attempt_file(number, attempt::REVIEW);
            self.journal.record_file(
                "patch gate",
                EventKind::PatchAccepted,
                &key(AttemptStep::Accepted),
                &path,
            )?;
            self.verify(plan, analysis, change, &mut outcome).await?;
        }
        self.dir.write_json(&attempt_file(number, attempt::OUTCOME), &outcome)?;
        self.record_attempt(&outcome)
    }

    async fn verify(
        &mut self,
        plan: &Plan,
        analysis: &Analysis,
        change: &gatekeeper::Change,
        outcome: &mut AttemptOutcome,
    ) -> Result<(), RunError> {
        let number = outcome.number;
        let key = |step| attempt_key(number, step);
        let body = serde_json::json!({ "attempt": number });
        let entry = Entry {
            role: "verifier",
            event: EventKind::VerifyStarted,
            key: key(AttemptStep::Verify),
            path: layout::VERIFY_REPORT,
            body,
        };
        self.journal.record(entry)?;
        self.journal.witness().working("verifier", "running the gates on the patched copy");
        let gates = analysis.before();
        let edits_tests = plan.names.iter().any(is_test_path);
        let tests = if edits_tests { TestFiles::Editable } else { TestFiles::Fixed };
        let baseline = Baseline { gates: &gates, tests };
        let trial = self.trial(Some(&Tried { change, baseline })).await?;
        if analysis.baseline.iter().all(|gate| gate.passed) {
            let hint = "Every gate passed before the change, too: they show that nothing broke, not that the goal is reached.";
            outcome.findings.push(Finding::warning(PASSED_BEFORE, "the gates", hint));
            self.journal.witness().note(&format!("  warning: {hint}"));
        }
        let report = trial.report(&self.record, analysis.behaviors, plan, outcome, baseline, &self.dir)?;
        self.dir.write(layout::STDOUT_LOG, &trial.stdout)?;
        self.dir.write(layout::STDERR_LOG, &trial.stderr)?;
        self.dir.write(&attempt_file(number, attempt::STDOUT), &trial.stdout)?;
        self.dir.write(&attempt_file(number, attempt::STDERR), &trial.stderr)?;
        self.dir.write_json(&attempt_file(number, attempt::REPORT), &report)?;
        self.dir.write_json(layout::VERIFY_REPORT, &report)?;
        let passed = report.result == VerifyResult::Pass;
        for result in &trial.results {
            self.journal.witness().note(&format!("  gate {}: {}", result.id, result.end));
        }
        outcome.end = if passed { AttemptEnd::Verified } else { AttemptEnd::VerifyFailed };
        outcome.findings.extend(trial.verdict.findings().iter().cloned());
        outcome.output = trial
            .results
            .iter()
            .filter(|result| !result.passed)
            .map(|result| result.excerpt.as_str())
            .collect();
        Ok(())
    }

    /// Records how an ended attempt ended; after a failed verification, with its bundle. The end comes first: it is
    /// what makes the rest true.
    fn record_attempt(&mut self, outcome: &AttemptOutcome) -> Result<(), RunError> {
        let number = outcome.number;
        let path = attempt_file(number, attempt::OUTCOME);
        let report = attempt_file(number, attempt::REPORT);
        let key = |step| attempt_key(number, step);
        match outcome.end {
            AttemptEnd::Refused => {
                self.journal.record_file(
                    "patch gate",
                    EventKind::PatchRejected,
                    &key(AttemptStep::Ended),
                    &path,
                )?;
            }
            AttemptEnd::VerifyFailed => {
                self.record_tried(number, &path)?;
                self.journal.record_file(
                    "verifier",
                    EventKind::VerifyFailed,
                    &key(AttemptStep::Report),
                    &report,
                )?;
                self.bundle(&key(AttemptStep::Bundle))?;
            }
            AttemptEnd::Verified => {
                self.record_tried(number, &path)?;
                self.journal.record_file(
                    "verifier",
                    EventKind::VerifyPassed,
                    &key(AttemptStep::Report),
                    &report,
                )?;
            }
        }
        Ok(())
    }

    /// Records the end of an attempt whose gates ran, together with what they printed: in one event, so that no log is
    /// believed that another one's end does not speak of.
    fn record_tried(&mut self, number: u64, path: &str) -> Result<(), RunError> {
        let mut logs = BTreeMap::new();
        for name in [attempt::STDOUT, attempt::STDERR] {
            let log = attempt_file(number, name);
            if let Some(bytes) = self.dir.read_if_there(&log)? {
                logs.insert(log, Digest::of(&bytes));
            }
        }
        let body = serde_json::json!({ FILES: logs });
        let key = attempt_key(number, AttemptStep::Ended);
        let event = EventKind::AttemptEnded;
        self.journal.record_file_with(Entry { role: "verifier", event, key, path, body }).map(drop)
    }

    /// Makes the failure bundle and records it, once for each key.
    fn bundle(&mut self, key: &str) -> Result<(), RunError> {
        let recorded = self.journal.has(key);
        if recorded && self.dir.has(layout::BUNDLE) {
            return Ok(());
        }
        self.journal.write_trace()?;
        let bytes = crucible_verify::failure_bundle(self.dir.root())?;
        let digest = self.dir.write(layout::BUNDLE, &bytes)?;
        let body = serde_json::json!({ "digest": digest });
        let entry = Entry {
            role: "verifier",
            event: EventKind::BundleCreated,
            key: key.to_owned(),
            path: layout::BUNDLE,
            body,
        };
        self.journal.record(entry).map(drop)
    }

    fn fail(&mut self, failure: &Finding) -> Result<(), RunError> {
        if !self.is_made("failed", layout::FAILURE) {
            self.dir.write_json(layout::FAILURE, failure)?;
        }
        self.journal.record_file("crucible", EventKind::RunFailed, "failed", layout::FAILURE)?;
        self.bundle("failed-bundle")
    }

    fn brief(&self, outcome: &AttemptOutcome) -> Result<Brief, RunError> {
        let patch =
            self.dir.read_if_there(&attempt_file(outcome.number, attempt::PATCH))?.unwrap_or_default();
        let reasons = outcome.findings.iter().filter(|finding| finding.level == crucible_model::Level::Error);
        Ok(Brief {
            reasons: reasons.map(Finding::to_string).collect(),
            output: outcome.output.clone(),
            patch: String::from_utf8_lossy(&patch).chars().take(MAX_PATCH_SHOWN).collect(),
        })
    }

    /// Runs the gates on a copy of the base, with a change where there is one.
    async fn trial(&mut self, change: Option<&Tried<'_>>) -> Result<Trial, RunError> {
        let room = temp_dir_in(&self.dir.scratch(), "trial-")?;
        trial::run(self.world, &self.git, &self.record, room.path(), change, self.journal.witness()).await
    }
}

/// What came of a question.
struct Answer {
    /// The model's words; empty where nothing came that could be taken.
    text: Untrusted,
    /// Why it is refused before it is read, where it is.
    unread: Option<Finding>,
    /// The digest of the call's line in the recording, where there is one.
    line: Option<Digest>,
    /// Who asked.
    role: RunRole,
    /// What a receipt says of the call.
    llm: Option<LlmReceipt>,
}

/// The parameters of attempt `number`: each has its own seed, and every later one is a little warmer, because a
/// model that was refused should not say the same again. Pure, so a replay asks the same.
fn parameters(base: &BTreeMap<String, Value>, number: u64) -> BTreeMap<String, Value> {
    let mut parameters = base.clone();
    parameters.insert(SEED.to_owned(), number.into());
    if let Some(temperature) = base.get("temperature").and_then(Value::as_f64) {
        let warmer = (temperature * 100.0).round() as u64 + 25 * number.saturating_sub(1);
        let warmest = ((temperature * 100.0).round() as u64).max(100);
        parameters.insert("temperature".to_owned(), (warmer.min(warmest) as f64 / 100.0).into());
    }
    parameters
}

/// Why no further attempt is made, if so. Pure.
fn give_up(ended: &[AttemptOutcome], max_iterations: u64) -> Option<Finding> {
    let last = ended.last()?;
    let subject = format!("attempt {}", last.number);
    // An answer that amounts to no patch may come again: the next one is asked for warmer.
    let same = |earlier: &AttemptOutcome| last.patch.is_some() && earlier.patch == last.patch;
    if ended.iter().rev().skip(1).any(same) {
        let hint = "The model proposes what was already refused: word the goal differently, name other files, or ask another model.";
        return Some(Finding::error(SAME_PATCH_TWICE, subject, hint));
    }
    (ended.len() as u64 >= max_iterations).then(|| {
        let hint = "Read failure_bundle.zip, then start again with a clearer goal, another model, or more [run] max_iterations.";
        Finding::error(OUT_OF_ATTEMPTS, subject, hint)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(number: u64, patch: &str) -> AttemptOutcome {
        AttemptOutcome {
            schema_version: AttemptVersion::V1,
            number,
            end: AttemptEnd::Refused,
            answer: Digest::of(patch.as_bytes()),
            patch: Some(Digest::of(patch.as_bytes())),
            findings: Vec::new(),
            output: String::new(),
        }
    }

    #[test]
    fn the_same_patch_twice_or_no_attempt_left_ends_the_run() {
        let code =
            |ended: &[AttemptOutcome]| give_up(ended, 3).map(|finding| finding.code.as_str().to_owned());
        assert_eq!(code(&[]), None);
        assert_eq!(code(&[outcome(1, "a"), outcome(2, "b")]), None);
        assert_eq!(
            code(&[outcome(1, "a"), outcome(2, "b"), outcome(3, "a")]).as_deref(),
            Some("run-same-patch-twice")
        );
        assert_eq!(
            code(&[outcome(1, "a"), outcome(2, "b"), outcome(3, "c")]).as_deref(),
            Some("run-out-of-attempts")
        );
    }
}
