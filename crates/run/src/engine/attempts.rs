//! Makes attempts at the change, one after another, until one is verified or none is left.

use std::collections::BTreeMap;

use crucible_host::fs::temp_dir_in;
use crucible_model::{Code, Digest, EditFormat, Finding, Level, Verdict};
use crucible_pack::ContextPack;
use crucible_verify::{ACCEPTABLE, GateLevel, NOT_NOTICED, VerifyResult};

use super::Engine;
use super::accepted::{is_refused_only_for, no_test_possible};
use super::ask::{ANSWER_CUT, Answer, AskOutcome, RoleTask};
use super::more_files::request_in;
use super::objections::ObjectionTarget;
use super::prepare::FoundSources;
use crate::allow::{SAME_PATCH_TWICE, is_accepted, permission_command};
use crate::analysis::Analysis;
use crate::attempt::{self, AttemptEnd, AttemptOutcome, AttemptVersion};
use crate::clients::Clients;
use crate::contract::{Plan, Review, RunRole, Service};
use crate::dispatch::Action;
use crate::dispatch::agent::NO_DIFF;
use crate::dispatch::evidence::Evidence;
use crate::dispatch::role_service;
use crate::error::RunError;
use crate::event_kind::{AttemptStep, DECLINED, EventKind, attempt_key, attempt_step};
use crate::gatekeeper::{self, PatchContext, PatchVerdict};
use crate::journal::Entry;
use crate::layout::{self, attempt_file};
use crate::recorded::FILES;
use crate::role::agent_prompt;
use crate::role::declined::{ConflictSources, DECLINE_UNFOUNDED, Decline};
use crate::role::format::choose;
use crate::role::patchmaker::{self, FixBrief};
use crate::rounds::{CandidateSlot, candidates, files_requested};
use crate::trial::{VerifyContext, explain_base_error, keep_logs};
use crate::verification;

const OUT_OF_ATTEMPTS: Code = Code::new("run-out-of-attempts");

/// How much of a refused patch the fixer is shown, in characters.
const MAX_PATCH_SHOWN: usize = 4000;

impl Engine<'_> {
    pub(super) async fn attempts(
        &mut self,
        clients: &dyn Clients,
        analysis: &Analysis,
        found: &FoundSources,
        plan: &Plan,
        pack: &ContextPack,
    ) -> Result<(), RunError> {
        for outcome in attempt::recorded_outcomes(&self.dir, self.journal.committed())? {
            self.record_attempt(&outcome)?;
            self.journal.commit()?;
        }
        let mut ended = attempt::recorded_outcomes(&self.dir, self.journal.committed())?;
        let leaves_out = self.has_omitted_files(analysis, pack)?;
        loop {
            let last = ended.last();
            if last.is_some_and(|outcome| outcome.end == AttemptEnd::Verified) {
                return attempt::check_copies(&self.dir, self.journal.events()?);
            }
            // What was judged by an earlier plan is no reason to give up, and no hint.
            let of_plan = ended.get(self.allowances.attempts..).unwrap_or_default();
            let max_rounds = self
                .record
                .settings
                .max_iterations
                .saturating_sub(self.allowances.attempts as u64);
            let place = CandidateSlot::after(of_plan, &self.record.settings);
            if self.choose(&ended, of_plan, place.round)? {
                ended = attempt::recorded_outcomes(&self.dir, self.journal.events()?)?;
                continue;
            }
            if let Some(last) = of_plan.last().filter(|_| place.round > max_rounds) {
                let role = if last.number == 1 {
                    RunRole::Patchmaker
                } else {
                    RunRole::Fixer
                };
                let proposed_by = self.client_of(role).unwrap_or_default();
                return self.fail(&out_of_attempts(last, &Service::from_name(&proposed_by)));
            }
            if let Some(last) = of_plan
                .last()
                .filter(|last| is_refused_only_for(last, &[NOT_NOTICED.as_str()]))
            {
                // Where every gate passed before, only a test can show the change.
                let was_green = analysis.baseline.iter().all(|gate| gate.passed);
                if was_green && plan.test_places().is_empty() {
                    return self.fail(&no_test_possible(last));
                }
            }
            let number = ended.len() as u64 + 1;
            let last = ended
                .iter()
                .rev()
                .find(|outcome| outcome.end != AttemptEnd::Repeated);
            if let Some(accepted) =
                last.filter(|last| of_plan.is_empty() && is_accepted(last, plan))
            {
                let second_attempt_outcome = self.accepted_again(number, accepted);
                let on = (plan, analysis, pack);
                let tried = self
                    .verify_accepted(clients, on, &ended, second_attempt_outcome)
                    .await?;
                if tried == AnswerProgress::Waiting {
                    return Ok(());
                }
                ended = attempt::recorded_outcomes(&self.dir, self.journal.events()?)?;
                continue;
            }
            let brief = self.brief(&place, plan)?;
            let (role, action) = match &brief {
                Some(_) => (RunRole::Fixer, Action::Fix),
                None => (RunRole::Patchmaker, Action::Patch),
            };
            let Some(name) = self.client_of(role) else {
                return Err(self.dir.malformed(
                    layout::DISPATCH,
                    "no backend serves the role that proposes changes",
                ));
            };
            let was_cut = ended
                .iter()
                .flat_map(|outcome| &outcome.findings)
                .any(|finding| finding.code == ANSWER_CUT);
            let context_pack = self.pack_with_requests(pack, &ended)?;
            let pack = &context_pack;
            let format = self.format_of(&name, plan, pack, was_cut)?;
            let requests = self.requests(&name, &ended, leaves_out);
            let brief = brief.as_ref();
            let of_candidates = match candidates(&self.record.settings) {
                1 => String::new(),
                candidates => format!(", candidate {} of {candidates}", place.candidate),
            };
            let duty = RoleTask {
                role,
                action,
                target: layout::PATCH,
                step: attempt_step(number),
                number,
                refusals: refusals(&ended, of_plan),
                label: format!("attempt {} of {max_rounds}{of_candidates}", place.round),
                answer_path: attempt_file(number, attempt::ANSWER),
                chat: if role_service(&name).works_in_copy() {
                    agent_prompt::messages(&self.record, plan, &analysis.baseline, brief)
                } else {
                    patchmaker::messages(format, plan, pack, &analysis.baseline, brief, &requests)
                },
                evidence: Evidence {
                    request: None,
                    files: None,
                    pack: Some(pack),
                    plan: Some(plan),
                    baseline: &analysis.baseline,
                    brief,
                    externals: &found.externals,
                    quotes_others: found.quotes_others,
                },
            };
            let attempt = Attempt {
                number,
                round: place.round,
                format,
                served_by: &name,
                ended: of_plan,
            };
            let answer = match self.ask(clients, &name, &duty).await? {
                AskOutcome::Waiting => return Ok(()),
                AskOutcome::Answered(answer) => answer,
            };
            let mut answer = answer;
            if let Some(declined) = declined_in(&answer) {
                // A service that reads the repository itself may see a conflict that the pack does not show.
                let service = role_service(&name);
                let is_model =
                    !(service.reads_repository() || service.works_in_copy() || service.is_person());
                let was_asked_again = of_plan.iter().any(|outcome| {
                    let mut findings = outcome.findings.iter();
                    findings.any(|finding| finding.code == DECLINE_UNFOUNDED)
                });
                let sources = ConflictSources::new(&plan.goal, pack, &analysis.baseline);
                if !is_model || was_asked_again || declined.cites_conflict(&sources) {
                    return self.decline(&duty, &name, &declined);
                }
                answer.unread = Some(Decline::unfounded_finding());
            }
            match request_in(&answer).filter(|_| requests.remaining > 0) {
                Some(request) => {
                    self.answer_request(&attempt, plan, pack, &request, &answer)
                        .await?
                }
                None => {
                    let on = (plan, analysis, pack);
                    let tried = self.try_answer(clients, &attempt, on, &answer).await?;
                    if tried == AnswerProgress::Waiting {
                        return Ok(());
                    }
                }
            }
            ended = attempt::recorded_outcomes(&self.dir, self.journal.events()?)?;
        }
    }

    /// Returns the answer format for a client: a diff is requested only of services other than models (seed
    /// 003 L).
    fn format_of(
        &mut self,
        name: &str,
        plan: &Plan,
        pack: &ContextPack,
        was_cut: bool,
    ) -> Result<EditFormat, RunError> {
        if role_service(name).reads_repository() {
            return Ok(EditFormat::UnifiedDiff);
        }
        let chosen = choose(&self.record.settings, plan, pack, was_cut);
        if let Some((bytes, tokens)) = chosen.too_large {
            self.journal.note(&format!(
                "  requesting {} instead of whole files: {bytes} bytes, and at most {tokens} tokens of answer",
                chosen.format.as_str()
            ))?;
        }
        Ok(chosen.format)
    }

    /// Ends the run, because the service that proposes changes declined. No attempt is counted.
    fn decline(
        &mut self,
        duty: &RoleTask<'_>,
        by: &str,
        declined: &Decline,
    ) -> Result<(), RunError> {
        let finding = declined.finding(by);
        self.record_used_answer(duty, serde_json::json!({ "declined": finding.hint }))?;
        self.journal
            .note(&format!("  declined: {}", finding.hint))?;
        self.dir.write_json_recorded(layout::FAILURE, &finding)?;
        self.journal
            .record_file(
                duty.role.name(),
                EventKind::RunDeclined,
                DECLINED,
                layout::FAILURE,
            )
            .map(drop)
    }

    /// Judges an answer, runs the gates if it is accepted, and hears objections if they pass.
    async fn try_answer(
        &mut self,
        clients: &dyn Clients,
        attempt: &Attempt<'_>,
        on: (&Plan, &Analysis, &ContextPack),
        answer: &Answer,
    ) -> Result<AnswerProgress, RunError> {
        let (plan, analysis, _) = on;
        let (text, number) = (&answer.text, attempt.number);
        self.journal.working("patch gate", "judging the answer")?;
        let mut judged = match &answer.unread {
            Some(finding) => PatchVerdict::malformed(finding.clone()),
            None => {
                let context = PatchContext {
                    git: &self.git,
                    record: &self.record,
                    format: attempt.format,
                    plan,
                    gate_files: &analysis.gate_files,
                };
                match gatekeeper::judge(&context, text, number).await {
                    Ok(judged) => judged,
                    Err(error) => {
                        return Err(explain_base_error(&self.git, &self.record, error).await);
                    }
                }
            }
        };
        let end = if judged.is_malformed {
            AttemptEnd::Malformed
        } else {
            AttemptEnd::Refused
        };
        let mut outcome = AttemptOutcome {
            read_as: judged.read_as,
            patch: judged.patch.as_ref().map(|patch| Digest::compute(patch)),
            ..attempt.outcome(end, answer)
        };
        if let Some(earlier) = attempt.earlier_of(&outcome) {
            let hint = format!(
                "The change is that of attempt {}, which was refused; make another change.",
                earlier.number
            );
            let mut verdict = Verdict::new(earlier.findings.clone());
            verdict.push(Finding::error(
                SAME_PATCH_TWICE,
                format!("attempt {number}"),
                hint,
            ));
            (judged.verdict, judged.change) = (verdict, None);
            outcome.end = AttemptEnd::Repeated;
            outcome.output.clone_from(&earlier.output);
        }
        self.verify_if_accepted(clients, attempt, on, judged, outcome)
            .await
    }

    /// Records what the patch gate found. If it accepts, runs the gates and hears objections.
    pub(super) async fn verify_if_accepted(
        &mut self,
        clients: &dyn Clients,
        attempt: &Attempt<'_>,
        (plan, analysis, pack): (&Plan, &Analysis, &ContextPack),
        judged: PatchVerdict,
        mut outcome: AttemptOutcome,
    ) -> Result<AnswerProgress, RunError> {
        let number = outcome.number;
        let mut used = Vec::new();
        let key = |step| attempt_key(number, step);
        outcome.findings = judged.verdict.findings().to_vec();
        if let Some(patch) = &judged.patch {
            self.dir
                .write_recorded(&attempt_file(number, attempt::PATCH), patch)?;
            // The next answer is written here, so leftovers of a crash would be taken for it.
            if role_service(attempt.served_by).is_person() {
                self.dir.write(layout::PATCH, patch)?;
            } else {
                self.dir.write_recorded(layout::PATCH, patch)?;
            }
            self.journal.record_file(
                "crucible",
                EventKind::PatchProposed,
                &key(AttemptStep::Proposed),
                &attempt_file(number, attempt::PATCH),
            )?;
        }
        let review = Review::from_verdict(
            "patch gate",
            outcome.patch.unwrap_or(outcome.answer),
            &judged.verdict,
        );
        self.dir.write_recorded(
            &attempt_file(number, attempt::REVIEW),
            review.render().as_bytes(),
        )?;
        self.dir
            .write_recorded(layout::REVIEW_PATCH, review.render().as_bytes())?;
        for finding in judged.verdict.errors() {
            self.journal.note(&format!("  refused: {finding}"))?;
        }
        if let Some(command) = permission_command(&self.record.run_id, judged.verdict.findings()) {
            self.journal.note(&format!("  to allow it: {command}"))?;
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
            let patch = judged.patch.as_deref().unwrap_or_default();
            let objected = ObjectionTarget {
                plan,
                analysis,
                pack,
                change,
                patch: &String::from_utf8_lossy(patch),
            };
            let objections =
                Box::pin(self.raise_objections(clients, attempt, &objected, &mut outcome));
            match objections.await? {
                Some(steps) => used = steps,
                None => return Ok(AnswerProgress::Waiting),
            }
            if outcome.end == AttemptEnd::Verified && candidates(&self.record.settings) > 1 {
                outcome.end = AttemptEnd::Candidate;
            }
        }
        self.dir
            .write_json_recorded(&attempt_file(number, attempt::OUTCOME), &outcome)?;
        self.record_used_answers(&used)?;
        self.record_attempt(&outcome)?;
        Ok(AnswerProgress::Ended)
    }

    pub(super) async fn verify(
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
        self.journal
            .working("verifier", "running the gates on the patched copy")?;
        let temp_dir = temp_dir_in(&self.dir.scratch(), "trial-")?;
        let by = VerifyContext {
            git: &self.git,
            surveys: &self.surveys,
            record: &self.record,
            dir: &self.dir,
            plan,
            analysis,
            level: GateLevel::Lite,
        };
        let observer = self.journal.observer()?;
        let (trial, report) =
            verification::verify(self.world, by, temp_dir.path(), change, outcome, observer)
                .await?;
        let (stdout, stderr) = (
            attempt_file(number, attempt::STDOUT),
            attempt_file(number, attempt::STDERR),
        );
        keep_logs(
            &self.dir,
            [(&stdout, &trial.stdout), (&stderr, &trial.stderr)],
        )?;
        self.dir.write_recorded(layout::STDOUT_LOG, &trial.stdout)?;
        self.dir.write_recorded(layout::STDERR_LOG, &trial.stderr)?;
        self.dir
            .write_json_recorded(&attempt_file(number, attempt::REPORT), &report)?;
        self.dir
            .write_json_recorded(layout::VERIFY_REPORT, &report)?;
        let passed = report.result == VerifyResult::Pass;
        for result in &trial.results {
            self.journal
                .note(&format!("  gate {}: {}", result.id, result.end))?;
        }
        for finding in trial.verdict.errors() {
            self.journal.note(&format!("  refused: {finding}"))?;
        }
        if let Some(command) = permission_command(&self.record.run_id, trial.verdict.findings()) {
            self.journal
                .note(&format!("  to accept it as it is: {command}"))?;
        }
        outcome.end = if passed {
            AttemptEnd::Verified
        } else {
            AttemptEnd::VerifyFailed
        };
        outcome
            .findings
            .extend(trial.verdict.findings().iter().cloned());
        outcome.output = trial
            .results
            .iter()
            .filter(|result| !result.passed || !passed && result.has_failed_tests())
            .map(|result| result.excerpt.as_str())
            .collect();
        Ok(())
    }

    /// Records the end of an attempt; after a failed verification also its bundle. The end comes first,
    /// because it makes the rest valid.
    pub(super) fn record_attempt(&mut self, outcome: &AttemptOutcome) -> Result<(), RunError> {
        let number = outcome.number;
        let path = attempt_file(number, attempt::OUTCOME);
        let report = attempt_file(number, attempt::REPORT);
        let key = |step| attempt_key(number, step);
        match outcome.end {
            AttemptEnd::Refused | AttemptEnd::Malformed | AttemptEnd::Repeated => {
                let event = match outcome.again {
                    Some(_) => EventKind::ChangeVerifiedAgain,
                    None => EventKind::PatchRejected,
                };
                self.journal
                    .record_file("patch gate", event, &key(AttemptStep::Ended), &path)?;
            }
            AttemptEnd::FilesRequested => {
                let role = RunRole::Librarian.name();
                let (packed, pack) = (
                    key(AttemptStep::Packed),
                    attempt_file(number, attempt::PACK),
                );
                self.journal
                    .record_file(role, EventKind::ContextPacked, &packed, &pack)?;
                let event = EventKind::MoreFilesRequested;
                self.journal
                    .record_file(role, event, &key(AttemptStep::Ended), &path)?;
            }
            AttemptEnd::VerifyFailed => {
                self.record_verified_end(outcome, &path)?;
                self.journal.record_file(
                    "verifier",
                    EventKind::VerifyFailed,
                    &key(AttemptStep::Report),
                    &report,
                )?;
                self.bundle(&key(AttemptStep::Bundle))?;
            }
            AttemptEnd::Candidate | AttemptEnd::Verified => {
                self.record_verified_end(outcome, &path)?;
                let event = if outcome.end == AttemptEnd::Verified {
                    EventKind::VerifyPassed
                } else {
                    EventKind::CandidatePassed
                };
                self.journal
                    .record_file("verifier", event, &key(AttemptStep::Report), &report)?;
            }
        }
        Ok(())
    }

    /// Records the end of an attempt whose gates ran, together with their output in one event, so that no log
    /// is trusted without its end.
    pub(super) fn record_verified_end(
        &mut self,
        outcome: &AttemptOutcome,
        path: &str,
    ) -> Result<(), RunError> {
        let number = outcome.number;
        let mut logs = BTreeMap::new();
        for name in [attempt::STDOUT, attempt::STDERR] {
            let log = attempt_file(number, name);
            if let Some(bytes) = self.dir.read_if_there(&log)? {
                logs.insert(log, Digest::compute(&bytes));
            }
        }
        let body = serde_json::json!({ FILES: logs });
        let key = attempt_key(number, AttemptStep::Ended);
        let event = match outcome.again {
            Some(_) => EventKind::ChangeVerifiedAgain,
            None => EventKind::AttemptEnded,
        };
        self.journal
            .record_file_with(Entry {
                role: "verifier",
                event,
                key,
                path,
                body,
            })
            .map(drop)
    }

    /// Returns the brief for the next answer; `None` if no answer precedes its round.
    fn brief(&self, place: &CandidateSlot<'_>, plan: &Plan) -> Result<Option<FixBrief>, RunError> {
        let reasons = |outcome: &AttemptOutcome| -> Vec<String> {
            let errors = outcome
                .findings
                .iter()
                .filter(|finding| finding.level == Level::Error);
            errors.map(Finding::to_string).collect()
        };
        let Some(attempt_outcome) = place.before.or(place.malformed) else {
            return Ok(None);
        };
        let text = |name: &str| -> Result<String, RunError> {
            let bytes = self
                .dir
                .read_if_there(&attempt_file(attempt_outcome.number, name))?
                .unwrap_or_default();
            Ok(patch_excerpt(&String::from_utf8_lossy(&bytes)))
        };
        let malformed = place.malformed.map(reasons).unwrap_or_default();
        let is_only_malformed = attempt_outcome.end == AttemptEnd::Malformed;
        Ok(Some(FixBrief {
            reasons: if is_only_malformed {
                malformed.clone()
            } else {
                reasons(attempt_outcome)
            },
            malformed,
            output: attempt_outcome.output.clone(),
            patch: text(attempt::PATCH)?,
            answer: if attempt_outcome.patch.is_some() {
                String::new()
            } else {
                text(attempt::ANSWER)?
            },
            unchanged: unchanged(attempt_outcome),
            test_places: match is_refused_only_for(attempt_outcome, &ACCEPTABLE) {
                true => plan.test_places(),
                false => Vec::new(),
            },
        }))
    }
}

/// Returns the reason of an answer that declines.
fn declined_in(answer: &Answer) -> Option<Decline> {
    // A service that owes a diff refuses any other text, but this one.
    let is_read = answer
        .unread
        .as_ref()
        .is_none_or(|finding| finding.code == NO_DIFF);
    is_read
        .then(|| Decline::read(answer.text.as_str()))
        .flatten()
}

/// The files that an answer returned as they stand.
fn unchanged(outcome: &AttemptOutcome) -> Vec<String> {
    let found = outcome
        .findings
        .iter()
        .filter(|finding| finding.code == gatekeeper::UNCHANGED);
    let paths = found.flat_map(|finding| finding.subject.split(", "));
    paths.map(str::to_owned).collect()
}

/// How often an answer before the next one was to be another: a request for files was not, and a repeated change was
/// twice.
fn refusals(ended: &[AttemptOutcome], of_plan: &[AttemptOutcome]) -> u64 {
    let repeated = of_plan
        .iter()
        .filter(|outcome| outcome.end == AttemptEnd::Repeated)
        .count();
    (ended.len() + repeated) as u64 - files_requested(ended)
}

/// The attempt that an answer is for.
pub(super) struct Attempt<'a> {
    pub(super) number: u64,
    pub(super) round: u64,
    pub(super) format: EditFormat,
    /// Who answers.
    pub(super) served_by: &'a str,
    /// The attempts before it.
    pub(super) ended: &'a [AttemptOutcome],
}

/// The state of an attempt after its answer was processed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerProgress {
    /// It is.
    Ended,
    /// A person must answer first.
    Waiting,
}

impl<'a> Attempt<'a> {
    /// Returns the outcome with only the answer known.
    pub(super) fn outcome(&self, end: AttemptEnd, answer: &Answer) -> AttemptOutcome {
        AttemptOutcome {
            schema_version: AttemptVersion::V1,
            number: self.number,
            end,
            round: (self.round != self.number).then_some(self.round),
            chosen_from: None,
            asked_for: Some(self.format),
            read_as: None,
            answer: Digest::compute(answer.text.as_str().as_bytes()),
            patch: None,
            again: None,
            findings: Vec::new(),
            output: String::new(),
        }
    }

    /// Returns the first attempt with the same change or, without a change, the same answer. A malformed
    /// answer has nothing to compare.
    fn earlier_of(&self, outcome: &AttemptOutcome) -> Option<&'a AttemptOutcome> {
        if outcome.end == AttemptEnd::Malformed {
            return None;
        }
        let is_same = |earlier: &&AttemptOutcome| {
            let is_same = match outcome.patch {
                Some(_) => earlier.patch == outcome.patch,
                None => earlier.answer == outcome.answer,
            };
            let is_judged = !matches!(
                earlier.end,
                AttemptEnd::Malformed | AttemptEnd::Repeated | AttemptEnd::FilesRequested
            );
            is_same && is_judged
        };
        self.ended.iter().find(is_same)
    }
}

/// As much of a refused patch or answer as is shown, and how much is not.
pub(super) fn patch_excerpt(patch: &str) -> String {
    let mut text: String = patch.chars().take(MAX_PATCH_SHOWN).collect();
    let left = patch.chars().count().saturating_sub(MAX_PATCH_SHOWN);
    if left > 0 {
        text.push_str(&format!(
            "\n(only the beginning: {left} more characters are not shown)\n"
        ));
    }
    text
}

/// Returns why no further attempt is made; `proposed_by` made the last one. Pure.
fn out_of_attempts(last: &AttemptOutcome, proposed_by: &Service) -> Finding {
    let hint = match proposed_by {
        Service::ManualOutbox => {
            "Read failure_bundle.zip, then start again with a clearer goal or a larger [run] max_iterations."
        }
        Service::ApiAgent | Service::Agent(_) => {
            "Read failure_bundle.zip, then start again with a clearer goal, another command or agent, or a larger [run] max_iterations."
        }
        _ => {
            "Read failure_bundle.zip, then start again with a clearer goal, another model, or a larger [run] max_iterations."
        }
    };
    Finding::error(OUT_OF_ATTEMPTS, format!("attempt {}", last.number), hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(number: u64, answer: &str, patch: Option<&str>, end: AttemptEnd) -> AttemptOutcome {
        AttemptOutcome {
            schema_version: AttemptVersion::V1,
            number,
            end,
            round: None,
            chosen_from: None,
            asked_for: None,
            read_as: None,
            answer: Digest::compute(answer.as_bytes()),
            patch: patch.map(|patch| Digest::compute(patch.as_bytes())),
            again: None,
            findings: Vec::new(),
            output: String::new(),
        }
    }

    #[test]
    fn truncated_refused_patch_is_marked() {
        assert_eq!(patch_excerpt("diff"), "diff");
        let cut = patch_excerpt(&"é".repeat(MAX_PATCH_SHOWN + 3));
        assert!(
            cut.ends_with("(only the beginning: 3 more characters are not shown)\n"),
            "{cut}"
        );
    }

    #[test]
    fn service_without_model_is_not_named_model() {
        let last = outcome(3, "c", Some("c"), AttemptEnd::Refused);
        for by in [Service::ManualOutbox, Service::ApiAgent] {
            assert!(!out_of_attempts(&last, &by).hint.contains("model"));
        }
        assert!(
            out_of_attempts(&last, &Service::from_name("gateway"))
                .hint
                .contains("another model")
        );
    }

    #[test]
    fn repeated_change_is_recognised() {
        use AttemptEnd::{Malformed, Refused, Repeated, VerifyFailed};
        let ended = [
            outcome(1, "prose", None, Malformed),
            outcome(2, "a", Some("p"), VerifyFailed),
            outcome(3, "b", Some("p"), Repeated),
            outcome(4, "no", None, Refused),
        ];
        let attempt = Attempt {
            number: 5,
            round: 4,
            format: EditFormat::WholeFile,
            served_by: "gateway",
            ended: &ended,
        };
        let earlier = |answer: &str, patch: Option<&str>, end| {
            attempt
                .earlier_of(&outcome(5, answer, patch, end))
                .map(|earlier| earlier.number)
        };
        assert_eq!(earlier("other words", Some("p"), Refused), Some(2));
        assert_eq!(earlier("a", Some("q"), Refused), None);
        assert_eq!(earlier("no", None, Refused), Some(4));
        assert_eq!(earlier("prose", None, Malformed), None);
        assert_eq!(earlier("prose", None, Refused), None);
    }
}
