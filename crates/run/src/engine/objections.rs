//! Objections against a change that passed: who is asked for what, and what the report keeps.
//!
//! Witnesses of earlier attempts come first: while one still fails, nobody is asked. The answers of an attempt are used up together
//! with its end, so an interrupted run asks nobody twice.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;

use crucible_host::fs::temp_dir_in;
use crucible_llm::Message;
use crucible_model::RepoPath;
use crucible_pack::ContextPack;
use crucible_verify::{
    GateLevel, Objection, ObjectionOutcome, ObjectionPolicy, Objections, SecondAuthor,
    VerifyReport, WitnessStep,
};

use super::Engine;
use super::ask::{Answer, AskOutcome, RoleTask};
use super::attempts::Attempt;
use crate::analysis::Analysis;
use crate::attempt::{self, AttemptEnd, AttemptOutcome};
use crate::clients::Clients;
use crate::contract::{Plan, RunRole};
use crate::dispatch::Action;
use crate::dispatch::evidence::Evidence;
use crate::error::RunError;
use crate::event_kind::attempt_step;
use crate::gatekeeper::{Change, Files};
use crate::layout::{self, attempt_file};
use crate::objections::{ObjectionContext, PreparedObjection};
use crate::role::objector::{
    ExpectationPrompt, RaisedObjection, expectation_question, objections_question,
    read_expectation, read_objections,
};
use crate::trial::VerifyContext;
use crate::verification::base_files;

/// What objections are raised against.
pub(super) struct ObjectionTarget<'o> {
    pub(super) plan: &'o Plan,
    pub(super) analysis: &'o Analysis,
    pub(super) pack: &'o ContextPack,
    pub(super) change: &'o Change,
    pub(super) patch: &'o str,
}

/// The same, with the files of the base.
struct TargetWithBase<'o> {
    on: &'o ObjectionTarget<'o>,
    base_files: Files,
    tracked: BTreeSet<RepoPath>,
}

/// What a change is verified against; a macro, because the journal is borrowed beside it.
macro_rules! verify_context {
    ($engine:expr, $on:expr) => {
        VerifyContext {
            git: &$engine.git,
            surveys: &$engine.surveys,
            record: &$engine.record,
            dir: &$engine.dir,
            plan: $on.plan,
            analysis: $on.analysis,
            level: GateLevel::Lite,
        }
    };
}

/// A question to one of the two roles.
struct Question {
    role: RunRole,
    action: Action,
    target: &'static str,
    step: String,
    label: String,
    chat: Vec<Message>,
}

impl Engine<'_> {
    /// Raises and judges objections against a change that passed, and adds them to its report and its outcome. Returns the steps
    /// whose answers are used up; nothing if a person must answer first.
    pub(super) async fn raise_objections(
        &mut self,
        clients: &dyn Clients,
        attempt: &Attempt<'_>,
        on: &ObjectionTarget<'_>,
        outcome: &mut AttemptOutcome,
    ) -> Result<Option<Vec<String>>, RunError> {
        let policy = self.record.settings.objections;
        let mut used = Vec::new();
        if policy == ObjectionPolicy::Off || outcome.end != AttemptEnd::Verified {
            return Ok(Some(used));
        }
        let tracked = self.git.tracked_files().await?.into_iter();
        let tracked = tracked
            .filter_map(|file| RepoPath::from_bytes(file.path.as_os_str().as_bytes()).ok())
            .collect();
        let base_files = base_files(verify_context!(self, on), on.change).await?;
        let objection_context = TargetWithBase {
            on,
            base_files,
            tracked,
        };
        let mut check = Objections {
            policy,
            unusable: None,
            not_judged: 0,
            objections: self.earlier_witnesses(attempt, &objection_context).await?,
        };
        let is_witness = |one: &Objection| one.outcome == ObjectionOutcome::Witness;
        if !check.objections.iter().any(is_witness) {
            let step = format!("{}-objector", attempt_step(outcome.number));
            let gates = &on.analysis.gates;
            let chat = objections_question(&self.record.goal, on.pack, gates, on.patch);
            let question = Question {
                role: RunRole::Objector,
                action: Action::Object,
                target: layout::OBJECTIONS,
                label: format!("objections to attempt {}", outcome.number),
                step: step.clone(),
                chat,
            };
            let answer_opt = self.ask_objector(clients, outcome.number, question).await?;
            let Some(answer) = answer_opt else {
                return Ok(None);
            };
            used.push(step);
            let raised = match answer.unread {
                Some(unread) => Err(unread.to_string()),
                None => read_objections(&answer.text),
            };
            match raised {
                Ok((raised, left)) => {
                    check.not_judged = left;
                    for (at, raised) in raised.iter().enumerate() {
                        let step =
                            format!("{}-second-author-{}", attempt_step(outcome.number), at + 1);
                        let judged = self.judge_objection(
                            clients,
                            outcome.number,
                            &objection_context,
                            raised,
                            &step,
                        );
                        let Some((objection, was_asked)) = judged.await? else {
                            return Ok(None);
                        };
                        used.extend(was_asked.then_some(step));
                        check.objections.push(objection);
                    }
                }
                Err(why) => check.unusable = Some(why),
            }
        }
        self.report_objections(check, outcome)?;
        Ok(Some(used))
    }

    /// Returns the witnesses of earlier attempts, as they are on this change.
    async fn earlier_witnesses(
        &mut self,
        attempt: &Attempt<'_>,
        objection_context: &TargetWithBase<'_>,
    ) -> Result<Vec<Objection>, RunError> {
        let mut judged: Vec<Objection> = Vec::new();
        for earlier in attempt.ended {
            let path = attempt_file(earlier.number, attempt::REPORT);
            if earlier.end != AttemptEnd::VerifyFailed || !self.dir.has(&path) {
                continue;
            }
            let report: VerifyReport = self.dir.read_json(&path)?;
            let objections = report
                .objections
                .into_iter()
                .flat_map(|check| check.objections);
            for witness in objections.filter(|one| one.outcome == ObjectionOutcome::Witness) {
                if judged.iter().any(|known| known.test == witness.test) {
                    continue;
                }
                let raised = RaisedObjection {
                    test: witness.test.clone(),
                    expected: witness.expected.clone(),
                    rests_on: witness.rests_on.clone(),
                };
                let mut prepared = self.prepare(objection_context, &raised).await?;
                let spelled = witness
                    .second
                    .as_deref()
                    .and_then(|value| prepared.normalized(value));
                let second = spelled
                    .as_deref()
                    .map_or(SecondAuthor::Undecided, SecondAuthor::Expects);
                let (outcome, reason) = loop {
                    match prepared.next(second) {
                        WitnessStep::Done(outcome, reason) => break (outcome, reason),
                        step => {
                            self.run_objection(objection_context, &mut prepared, &step)
                                .await?
                        }
                    }
                };
                judged.push(Objection {
                    outcome,
                    reason,
                    raised_against: witness.raised_against.or(Some(earlier.number)),
                    ..witness
                });
            }
        }
        Ok(judged)
    }

    /// Judges one objection, with whether the second author was asked; nothing if a person must answer first.
    async fn judge_objection(
        &mut self,
        clients: &dyn Clients,
        number: u64,
        objection_context: &TargetWithBase<'_>,
        raised: &RaisedObjection,
        step: &str,
    ) -> Result<Option<(Objection, bool)>, RunError> {
        let mut prepared = self.prepare(objection_context, raised).await?;
        let mut second: Option<Option<String>> = None;
        let (outcome, reason) = loop {
            let spelled = second.iter().flatten().next();
            let spelled = spelled.and_then(|value: &String| prepared.normalized(value));
            let answer = match (&second, &spelled) {
                (None, _) => SecondAuthor::Unasked,
                (Some(_), None) => SecondAuthor::Undecided,
                (Some(_), Some(value)) => SecondAuthor::Expects(value),
            };
            match prepared.next(answer) {
                WitnessStep::Done(outcome, reason) => break (outcome, reason),
                WitnessStep::AskSecondAuthor => {
                    let chat = expectation_question(&ExpectationPrompt {
                        sentence: &raised.rests_on.sentence,
                        signatures: &prepared.signatures,
                        path: &raised.test.path,
                        blanked: &prepared.blanked,
                    });
                    let question = Question {
                        role: RunRole::SecondAuthor,
                        action: Action::Expect,
                        target: layout::EXPECTATION,
                        step: step.to_owned(),
                        label: format!("expected value of {}", raised.test.name),
                        chat,
                    };
                    let objection_answer = self.ask_objector(clients, number, question).await?;
                    let Some(answer) = objection_answer else {
                        return Ok(None);
                    };
                    let is_read = answer.unread.is_none();
                    second = Some(read_expectation(&answer.text).filter(|_| is_read));
                }
                run => {
                    self.run_objection(objection_context, &mut prepared, &run)
                        .await?
                }
            }
        };
        let was_asked = second.is_some();
        let objection = Objection {
            test: raised.test.clone(),
            rests_on: raised.rests_on.clone(),
            expected: raised.expected.clone(),
            second: second.flatten(),
            outcome,
            reason,
            raised_against: None,
        };
        Ok(Some((objection, was_asked)))
    }

    /// Runs the test of an objection on the change.
    async fn run_objection(
        &mut self,
        objection_context: &TargetWithBase<'_>,
        prepared: &mut PreparedObjection<'_>,
        step: &WitnessStep,
    ) -> Result<(), RunError> {
        let name = &prepared.raised.test.name;
        self.journal
            .working("verifier", &format!("running the objection {name}"))?;
        let temp_dir = temp_dir_in(&self.dir.scratch(), "trial-")?;
        let observer = self.journal.observer()?;
        let on = ObjectionContext {
            by: verify_context!(self, objection_context.on),
            change: objection_context.on.change,
            base_files: &objection_context.base_files,
            tracked: &objection_context.tracked,
        };
        prepared
            .run(self.world, on, temp_dir.path(), step, observer)
            .await
    }

    async fn prepare<'r>(
        &self,
        objection_context: &TargetWithBase<'_>,
        raised: &'r RaisedObjection,
    ) -> Result<PreparedObjection<'r>, RunError> {
        let on = ObjectionContext {
            by: verify_context!(self, objection_context.on),
            change: objection_context.on.change,
            base_files: &objection_context.base_files,
            tracked: &objection_context.tracked,
        };
        PreparedObjection::new(on, raised).await
    }

    /// Asks the objector or the second author; nothing if a person must answer first.
    async fn ask_objector(
        &mut self,
        clients: &dyn Clients,
        number: u64,
        question: Question,
    ) -> Result<Option<Answer>, RunError> {
        let Some(name) = self.client_of(question.role) else {
            let why = "no backend serves a role that objections need";
            return Err(self.dir.malformed(layout::DISPATCH, why));
        };
        let duty = RoleTask {
            role: question.role,
            action: question.action,
            target: question.target,
            answer_path: answer_path(&question.step),
            step: question.step,
            number,
            refusals: 0,
            label: question.label,
            chat: question.chat,
            evidence: Evidence::default(),
        };
        Ok(match self.ask(clients, &name, &duty).await? {
            AskOutcome::Waiting => None,
            AskOutcome::Answered(answer) => Some(answer),
        })
    }
}

pub(super) fn answer_path(step: &str) -> String {
    format!("answers/{step}.txt")
}
