//! Attempts at the change, one after the other, until one is verified or none is left.

use std::collections::BTreeMap;

use crucible_host::fs::temp_dir_in;
use crucible_model::{Code, Digest, EditFormat, Finding};
use crucible_pack::ContextPack;
use crucible_verify::{GateLevel, VerifyResult};

use super::Engine;
use super::ask::{Answer, Asked, Duty};
use super::prepare::Found;
use crate::allow::permission;
use crate::analysis::Analysis;
use crate::attempt::{self, AttemptEnd, AttemptOutcome, AttemptVersion};
use crate::clients::Clients;
use crate::contract::{API_AGENT, MANUAL_OUTBOX, Plan, Review, RunRole, Service};
use crate::dispatch::Action;
use crate::dispatch::evidence::Evidence;
use crate::error::RunError;
use crate::event_kind::{AttemptStep, EventKind, attempt_key, attempt_step};
use crate::gatekeeper::{self, Ground, Judged};
use crate::journal::{Entry, FILES};
use crate::layout::{self, attempt_file};
use crate::role::patchmaker::{self, Brief};
use crate::trial::{self, Yardstick, keep_logs, or_base_gone};

const SAME_PATCH_TWICE: Code = Code::new("run-same-patch-twice");
const OUT_OF_ATTEMPTS: Code = Code::new("run-out-of-attempts");

/// How much of a refused patch the fixer is shown, in characters.
const MAX_PATCH_SHOWN: usize = 4000;

impl Engine<'_> {
    pub(super) async fn attempts(
        &mut self,
        clients: &dyn Clients,
        analysis: &Analysis,
        found: &Found,
        plan: &Plan,
        pack: &ContextPack,
    ) -> Result<(), RunError> {
        for outcome in attempt::recorded(&self.dir, self.journal.committed())? {
            self.record_attempt(&outcome)?;
            self.journal.commit()?;
        }
        let mut ended = attempt::recorded(&self.dir, self.journal.committed())?;
        loop {
            let last = ended.last();
            if last.is_some_and(|outcome| outcome.end == AttemptEnd::Verified) {
                return attempt::check_copies(&self.dir, self.journal.events()?);
            }
            let proposed_by = last.and_then(|last| self.served_by(proposer(last.number)));
            let proposed_by = Service::of(proposed_by.as_deref().unwrap_or_default());
            // What was judged by an earlier plan is no reason to give up, and no hint.
            let most = self.record.settings.max_iterations.saturating_sub(self.allowances.attempts as u64);
            let of_plan = ended.get(self.allowances.attempts..).unwrap_or_default();
            if let Some(failure) = give_up(of_plan, most, &proposed_by) {
                return self.fail(&failure);
            }
            let number = ended.len() as u64 + 1;
            let brief = of_plan.last().map(|outcome| self.brief(outcome)).transpose()?;
            let role = proposer(number);
            let action = if brief.is_some() { Action::Fix } else { Action::Patch };
            let Some(name) = self.served_by(role) else {
                return Err(self
                    .dir
                    .malformed(layout::DISPATCH, "nobody serves the role that proposes changes"));
            };
            let format = self.format_of(&name);
            let brief = brief.as_ref();
            let duty = Duty {
                role,
                action,
                target: layout::PATCH,
                step: attempt_step(number),
                number,
                answer_path: attempt_file(number, attempt::ANSWER),
                chat: patchmaker::messages(format, plan, pack, &analysis.baseline, brief),
                evidence: Evidence {
                    files: None,
                    pack: Some(pack),
                    plan: Some(plan),
                    baseline: &analysis.baseline,
                    brief,
                    externals: &found.externals,
                },
            };
            match self.ask(clients, &name, &duty).await? {
                Asked::Waiting => return Ok(()),
                Asked::Answered(answer) => self.try_answer(number, format, plan, analysis, &answer).await?,
            }
            ended = attempt::recorded(&self.dir, self.journal.events()?)?;
        }
    }

    /// How a client answers: what no model writes is a diff (seed 003 L).
    fn format_of(&self, name: &str) -> EditFormat {
        match name {
            MANUAL_OUTBOX | API_AGENT => EditFormat::UnifiedDiff,
            _ => self.record.settings.edit_format,
        }
    }

    /// Judges an answer and, where it is let through, tries it behind the gates.
    pub(super) async fn try_answer(
        &mut self,
        number: u64,
        format: EditFormat,
        plan: &Plan,
        analysis: &Analysis,
        answer: &Answer,
    ) -> Result<(), RunError> {
        let text = &answer.text;
        let key = |step| attempt_key(number, step);
        self.journal.working("patch gate", "judging the answer")?;
        let judged = match &answer.unread {
            Some(finding) => Judged::refused(finding.clone()),
            None => {
                let ground = Ground {
                    git: &self.git,
                    record: &self.record,
                    format,
                    plan,
                    gate_files: &analysis.gate_files,
                };
                match gatekeeper::judge(&ground, text, number).await {
                    Ok(judged) => judged,
                    Err(error) => return Err(or_base_gone(&self.git, &self.record, error).await),
                }
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
            self.dir.write_recorded(&attempt_file(number, attempt::PATCH), patch)?;
            // Where a person writes the next one, what a crash left of this copy would be taken for it.
            match self.served_by(proposer(number)).as_deref() {
                Some(MANUAL_OUTBOX) => self.dir.write(layout::PATCH, patch)?,
                Some(_) | None => self.dir.write_recorded(layout::PATCH, patch)?,
            };
            self.journal.record_file(
                "crucible",
                EventKind::PatchProposed,
                &key(AttemptStep::Proposed),
                &attempt_file(number, attempt::PATCH),
            )?;
        }
        let review =
            Review::from_verdict("patch gate", outcome.patch.unwrap_or(outcome.answer), &judged.verdict);
        self.dir.write_recorded(&attempt_file(number, attempt::REVIEW), review.render().as_bytes())?;
        self.dir.write_recorded(layout::REVIEW_PATCH, review.render().as_bytes())?;
        for finding in judged.verdict.errors() {
            self.journal.note(&format!("  refused: {finding}"))?;
        }
        if let Some(command) = permission(&self.record.run_id, judged.verdict.findings()) {
            self.journal.note(&format!("  to permit it: {command}"))?;
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
        self.dir.write_json_recorded(&attempt_file(number, attempt::OUTCOME), &outcome)?;
        self.record_attempt(&outcome)
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
        self.journal.working("verifier", "running the gates on the patched copy")?;
        let room = temp_dir_in(&self.dir.scratch(), "trial-")?;
        let by = Yardstick {
            git: &self.git,
            record: &self.record,
            dir: &self.dir,
            plan,
            analysis,
            level: GateLevel::Lite,
        };
        let witness = self.journal.witness()?;
        let (trial, report) = trial::verify(self.world, by, room.path(), change, outcome, witness).await?;
        let (stdout, stderr) = (attempt_file(number, attempt::STDOUT), attempt_file(number, attempt::STDERR));
        keep_logs(&self.dir, [(&stdout, &trial.stdout), (&stderr, &trial.stderr)])?;
        self.dir.write_recorded(layout::STDOUT_LOG, &trial.stdout)?;
        self.dir.write_recorded(layout::STDERR_LOG, &trial.stderr)?;
        self.dir.write_json_recorded(&attempt_file(number, attempt::REPORT), &report)?;
        self.dir.write_json_recorded(layout::VERIFY_REPORT, &report)?;
        let passed = report.result == VerifyResult::Pass;
        for result in &trial.results {
            self.journal.note(&format!("  gate {}: {}", result.id, result.end))?;
        }
        outcome.end = if passed { AttemptEnd::Verified } else { AttemptEnd::VerifyFailed };
        outcome.findings.extend(trial.verdict.findings().iter().cloned());
        outcome.output = trial
            .results
            .iter()
            .filter(|result| !result.passed || !passed && result.has_failed_tests())
            .map(|result| result.excerpt.as_str())
            .collect();
        Ok(())
    }

    /// Records how an ended attempt ended; after a failed verification, with its bundle. The end comes first: it is
    /// what makes the rest true.
    pub(super) fn record_attempt(&mut self, outcome: &AttemptOutcome) -> Result<(), RunError> {
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
    pub(super) fn record_tried(&mut self, number: u64, path: &str) -> Result<(), RunError> {
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

    pub(super) fn brief(&self, outcome: &AttemptOutcome) -> Result<Brief, RunError> {
        let text = |name: &str| -> Result<String, RunError> {
            let bytes = self.dir.read_if_there(&attempt_file(outcome.number, name))?.unwrap_or_default();
            Ok(beginning(&String::from_utf8_lossy(&bytes)))
        };
        let reasons = outcome.findings.iter().filter(|finding| finding.level == crucible_model::Level::Error);
        Ok(Brief {
            reasons: reasons.map(Finding::to_string).collect(),
            output: outcome.output.clone(),
            patch: text(attempt::PATCH)?,
            answer: if outcome.patch.is_some() { String::new() } else { text(attempt::ANSWER)? },
        })
    }
}

/// The role that proposes the change of an attempt.
fn proposer(number: u64) -> RunRole {
    if number == 1 { RunRole::Patchmaker } else { RunRole::Fixer }
}

/// As much of a refused patch or answer as is shown, and how much is not.
pub(super) fn beginning(patch: &str) -> String {
    let mut shown: String = patch.chars().take(MAX_PATCH_SHOWN).collect();
    let left = patch.chars().count().saturating_sub(MAX_PATCH_SHOWN);
    if left > 0 {
        shown.push_str(&format!("\n(only the beginning: {left} more characters are not shown)\n"));
    }
    shown
}

/// Why no further attempt is made, if so; `proposed_by` is who made the last one. Pure.
fn give_up(ended: &[AttemptOutcome], max_iterations: u64, proposed_by: &Service) -> Option<Finding> {
    let last = ended.last()?;
    let subject = format!("attempt {}", last.number);
    // An answer that amounts to no patch may come again: the next one is asked for warmer.
    let same = |earlier: &AttemptOutcome| last.patch.is_some() && earlier.patch == last.patch;
    // A person who gives the same once more has used up an attempt and may still give another.
    if *proposed_by != Service::ManualOutbox && ended.iter().rev().skip(1).any(same) {
        let hint = match proposed_by {
            Service::ApiAgent => {
                "The command proposes what was already refused: mend it, or let somebody else serve the role."
            }
            _ => {
                "The model proposes what was already refused: word the goal differently, name other files, or ask another model."
            }
        };
        return Some(Finding::error(SAME_PATCH_TWICE, subject, hint));
    }
    (ended.len() as u64 >= max_iterations).then(|| {
        let hint = match proposed_by {
            Service::ManualOutbox => {
                "Read failure_bundle.zip, then start again with a clearer goal or more [run] max_iterations."
            }
            Service::ApiAgent => {
                "Read failure_bundle.zip, then start again with a clearer goal, another command, or more [run] max_iterations."
            }
            _ => {
                "Read failure_bundle.zip, then start again with a clearer goal, another model, or more [run] max_iterations."
            }
        };
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
    fn a_refused_patch_that_is_cut_says_so() {
        assert_eq!(beginning("diff"), "diff");
        let cut = beginning(&"é".repeat(MAX_PATCH_SHOWN + 3));
        assert!(cut.ends_with("(only the beginning: 3 more characters are not shown)\n"), "{cut}");
    }

    #[test]
    fn a_person_may_try_as_often_as_tries_are_left_and_is_called_no_model() {
        let told = |ended: &[AttemptOutcome], by| give_up(ended, 3, &by);
        let twice = [outcome(1, "a"), outcome(2, "a")];
        assert_eq!(told(&twice, Service::ManualOutbox), None);
        assert!(told(&twice, Service::ApiAgent).unwrap().hint.contains("The command proposes"));
        let all = [outcome(1, "a"), outcome(2, "b"), outcome(3, "c")];
        for by in [Service::ManualOutbox, Service::ApiAgent] {
            let failure = told(&all, by).unwrap();
            assert!(
                failure.code.as_str() == "run-out-of-attempts" && !failure.hint.contains("model"),
                "{failure}"
            );
        }
    }

    #[test]
    fn the_same_patch_twice_or_no_attempt_left_ends_the_run() {
        let by_model = Service::of("gateway");
        let code = |ended: &[AttemptOutcome]| {
            give_up(ended, 3, &by_model).map(|finding| finding.code.as_str().to_owned())
        };
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
