//! Objections in the report and the outcome of an attempt, and what the ledger records of them.

use crucible_model::{Digest, counted};
use crucible_verify::{Objection, ObjectionOutcome, Objections, VerifyReport};

use super::Engine;
use super::objections::answer_path;
use crate::attempt::{self, AttemptEnd, AttemptOutcome};
use crate::contract::RunRole;
use crate::error::RunError;
use crate::event_kind::{AttemptStep, EventKind, attempt_key, taken_key};
use crate::journal::Entry;
use crate::layout::{self, attempt_file};

impl Engine<'_> {
    /// Adds objections to the report and the outcome of an attempt, and records them.
    pub(super) fn report_objections(
        &mut self,
        check: Objections,
        outcome: &mut AttemptOutcome,
    ) -> Result<(), RunError> {
        let is_witness = |one: &&Objection| one.outcome == ObjectionOutcome::Witness;
        let witnesses = check.objections.iter().filter(is_witness).count() as u64;
        let all = check.objections.len() as u64;
        self.journal.note(&format!(
            "  objections: {}, {witnesses} with a witness",
            counted(all, "test")
        ))?;
        if let Some(why) = &check.unusable {
            self.journal.note(&format!("  objections: {why}"))?;
        }
        for one in check.objections.iter().filter(is_witness) {
            outcome.output.push_str(&format!(
                "This test of {} fails on the change:\n{}\n",
                one.test.path, one.test.text
            ));
        }
        let tests: Vec<Digest> = check
            .objections
            .iter()
            .map(|one| Digest::compute(one.test.text.as_bytes()))
            .collect();
        let path = attempt_file(outcome.number, attempt::REPORT);
        let mut report: VerifyReport = self.dir.read_json(&path)?;
        let verdict = report.add_objections(check);
        self.dir.write_json_recorded(&path, &report)?;
        self.dir
            .write_json_recorded(layout::VERIFY_REPORT, &report)?;
        if !verdict.passes() {
            outcome.end = AttemptEnd::VerifyFailed;
        }
        for finding in verdict.errors() {
            self.journal.note(&format!("  refused: {finding}"))?;
        }
        outcome.findings.extend(verdict.findings().iter().cloned());
        self.journal.record(Entry {
            role: RunRole::Objector.name(),
            event: EventKind::ObjectionsJudged,
            key: attempt_key(outcome.number, AttemptStep::Objections),
            path: &path,
            body: serde_json::json!({ "witnesses": witnesses, "objections": tests }),
        })
    }

    /// Records that the answers of these steps are used up. The end of the attempt follows in the same transaction.
    pub(super) fn record_used_answers(&mut self, steps: &[String]) -> Result<(), RunError> {
        for step in steps {
            self.journal.record(Entry {
                role: RunRole::Objector.name(),
                event: EventKind::AnswerTaken,
                key: taken_key(step),
                path: &answer_path(step),
                body: serde_json::json!({}),
            })?;
        }
        Ok(())
    }
}
