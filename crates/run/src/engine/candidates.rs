//! Chooses among the candidates of a round that passed.
//!
//! The chosen one becomes an attempt of its own, which is verified: its files are those of its candidate, and its report says why
//! it was chosen. So the last attempt of a verified run is always the one that lands.

use crucible_model::{Code, Finding};
use crucible_verify::{CandidateRow, ObjectionOutcome, VerifyReport, choose_candidate};

use super::Engine;
use crate::attempt::{self, AttemptEnd, AttemptOutcome};
use crate::error::RunError;
use crate::event_kind::{AttemptStep, EventKind, attempt_key};
use crate::layout::attempt_file;

const CHOSEN: Code = Code::new("run-candidate-chosen");

impl Engine<'_> {
    /// Makes the best candidate of a finished round the verified attempt; returns whether there is one. `of_plan` are the attempts
    /// by the current plan, `round` is the next round.
    pub(super) fn choose(
        &mut self,
        ended: &[AttemptOutcome],
        of_plan: &[AttemptOutcome],
        round: u64,
    ) -> Result<bool, RunError> {
        let passed: Vec<&AttemptOutcome> = of_plan
            .iter()
            .filter(|outcome| outcome.end == AttemptEnd::Candidate && outcome.round() < round)
            .collect();
        let mut rows = Vec::with_capacity(passed.len());
        for outcome in &passed {
            rows.push(self.row(outcome.number)?);
        }
        let Some(choice) = choose_candidate(&rows) else {
            return Ok(false);
        };
        let Some(chosen) = passed
            .iter()
            .find(|outcome| outcome.number == choice.chosen)
        else {
            return Ok(false);
        };
        let (from, number) = (chosen.number, ended.len() as u64 + 1);
        let why = format!("the change of attempt {from} was chosen: {}", choice.reason);
        let mut outcome = AttemptOutcome {
            number,
            end: AttemptEnd::Verified,
            round: Some(chosen.round()),
            chosen_from: Some(from),
            ..(*chosen).clone()
        };
        outcome
            .findings
            .push(Finding::info(CHOSEN, format!("attempt {from}"), &why));
        for (copy, name) in attempt::COPIES {
            let mut bytes = self.dir.read(&attempt_file(from, name))?;
            if name == attempt::REPORT {
                let mut report: VerifyReport = self.dir.read_json(&attempt_file(from, name))?;
                report.candidates = Some(choice.clone());
                self.dir.write_json_recorded(copy, &report)?;
                bytes = self.dir.read(copy)?;
            }
            self.dir.write_recorded(copy, &bytes)?;
            self.dir
                .write_recorded(&attempt_file(number, name), &bytes)?;
        }
        // The ledger gets only the digests of the logs.
        let logs = [attempt::STDOUT, attempt::STDERR].map(|name| attempt_file(number, name));
        let logs = logs.each_ref().map(String::as_str);
        self.dir.flush(&logs)?;
        self.journal.note(&format!("  {why}"))?;
        self.journal.record_file(
            "crucible",
            EventKind::PatchProposed,
            &attempt_key(number, AttemptStep::Proposed),
            &attempt_file(number, attempt::PATCH),
        )?;
        self.journal.record_file(
            "patch gate",
            EventKind::PatchAccepted,
            &attempt_key(number, AttemptStep::Accepted),
            &attempt_file(number, attempt::REVIEW),
        )?;
        self.dir
            .write_json_recorded(&attempt_file(number, attempt::OUTCOME), &outcome)?;
        self.record_attempt(&outcome)?;
        Ok(true)
    }

    /// What is compared of an attempt that passed.
    fn row(&self, number: u64) -> Result<CandidateRow, RunError> {
        let report: VerifyReport = self.dir.read_json(&attempt_file(number, attempt::REPORT))?;
        let objections = report.objections.iter().flat_map(|check| &check.objections);
        let witnesses = objections.filter(|one| one.outcome == ObjectionOutcome::Witness);
        let path = attempt_file(number, attempt::PATCH);
        let patch = crucible_patch::parse(&self.dir.read(&path)?)
            .map_err(|error| self.dir.malformed(&path, &error.to_string()))?;
        Ok(CandidateRow {
            attempt: number,
            witnesses: witnesses.count() as u64,
            strength: report.strength.and_then(|strength| strength.percent()),
            lines: patch
                .files
                .iter()
                .map(|file| file.added() + file.removed())
                .sum(),
        })
    }
}
