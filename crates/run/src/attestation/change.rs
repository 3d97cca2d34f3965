//! What a statement says about a run. Pure, apart from reading the run's directory.

use std::collections::BTreeMap;

use crucible_attest::{
    Call, Change, GateIsolationLevel, GateResult, GateVerdict, LedgerHead, PlanApproval, Producer,
    SpecProof, Strength, Verification, trailer_values,
};
use crucible_evidence::EvidenceMatrix;
use crucible_ledger::EventRecord;
use crucible_model::{Digest, Timestamp};
use crucible_sandbox::IsolationLevel;
use crucible_verify::{BrokenOutcome, GateId, VerifyReport, VerifyResult};
use serde_json::Value;

use super::approval::approvals;
use crate::contract::{AGENT, API_AGENT, Plan, RunRecord};
use crate::error::RunError;
use crate::event_kind::full_gates_runs;
use crate::land::LEDGER_TRAILER;
use crate::layout::{self, RunDir, full_gates_files};
use crate::receipt::phase;
use crate::recording::LINE;

/// Returns what there is to say about a run whose commit has this message and date.
pub(super) fn change_statement(
    dir: &RunDir,
    record: &RunRecord,
    events: &[EventRecord],
    message: &str,
    at: Timestamp,
) -> Result<Change, RunError> {
    let digest = |path: &str| -> Result<Digest, RunError> { Ok(Digest::compute(&dir.read(path)?)) };
    let optional = |path: &str| -> Result<Option<Digest>, RunError> {
        Ok(dir
            .read_if_there(path)?
            .map(|bytes| Digest::compute(&bytes)))
    };
    let ledger = ledger_head(message).ok_or_else(|| {
        dir.malformed(
            layout::EVENTS,
            "the start of the landing names no head of the ledger",
        )
    })?;
    let of_commands = (!record.settings.agents.is_none()).then(|| API_AGENT.to_owned());
    let coding = record.settings.coding_agent.iter();
    let agents = of_commands
        .into_iter()
        .chain(coding.map(|agent| agent.profile.name.clone()))
        .collect();
    Ok(Change {
        run: record.run_id.clone(),
        goal: Digest::compute(record.goal.as_bytes()),
        base: record.base_commit.to_string(),
        request: optional(layout::FILE_REQUEST)?,
        pack: optional(layout::CONTEXT_PACK)?,
        calls: calls(record, events),
        agents,
        plan: PlanApproval {
            plan: digest(layout::PLAN)?,
            approval: digest(layout::SIGNATURE)?,
        },
        approvals: approvals(record, events, digest(layout::PLAN)?),
        accepted: accepted(dir)?,
        patch: digest(layout::PATCH)?,
        verification: verification(dir, events)?,
        spec: spec_proof(dir, record)?,
        ledger,
        producer: Producer::this(),
        created_at: at,
        carried_from: None,
    })
}

/// The codes of refusals that the signed plan accepts.
fn accepted(dir: &RunDir) -> Result<Vec<String>, RunError> {
    let plan = Plan::parse(&dir.read_text(layout::PLAN)?)
        .map_err(|_| dir.malformed(layout::PLAN, "it is not a valid plan"))?;
    Ok(plan.accepts)
}

/// What the run proves of the requirements of its task, if it has one.
fn spec_proof(dir: &RunDir, record: &RunRecord) -> Result<Option<SpecProof>, RunError> {
    let Some(task) = &record.task else {
        return Ok(None);
    };
    let bytes = dir.read(layout::EVIDENCE)?;
    let matrix: EvidenceMatrix = dir.read_json(layout::EVIDENCE)?;
    let ids = task.requirements.iter();
    Ok(Some(SpecProof {
        spec: task.spec.clone(),
        format: task.format.to_string(),
        task: task.task.clone(),
        requirements: ids.map(|requirement| requirement.id.clone()).collect(),
        matrix: Digest::compute(&bytes),
        proven: matrix.counts.proven,
        partial: matrix.counts.partial,
        none: matrix.counts.none,
    }))
}

/// The calls of models, in order, with the digests of their recordings. A session of a coding agent has one call for each
/// model that answered it.
fn calls(record: &RunRecord, events: &[EventRecord]) -> Vec<Call> {
    let call = |event: &EventRecord| {
        let phase = phase(record, event)?;
        let line = event.body.get(LINE).and_then(Value::as_str);
        let call = Call {
            role: phase.phase_id,
            provider: phase.llm.provider.unwrap_or_default(),
            model: phase.llm.model_used.unwrap_or_default(),
            result: if phase.llm.error.is_none() {
                GateVerdict::Passed
            } else {
                GateVerdict::Failed
            },
            record: line.and_then(|digest| digest.parse().ok()),
            tokens_in: phase.llm.tokens_input,
            tokens_out: phase.llm.tokens_output,
            micro_dollars: phase.llm.cost.map(|cost| cost.micro_dollars),
        };
        Some(
            match event
                .body
                .get(AGENT)
                .map(|agent_record| of_agent(&call, agent_record))
            {
                Some(calls) if !calls.is_empty() => calls,
                Some(_) | None => vec![call],
            },
        )
    };
    events.iter().filter_map(call).flatten().collect()
}

/// The calls of a coding agent's session, by its report. Tokens and cost are known per session only, so they are stated if
/// one model answered.
fn of_agent(session: &Call, report: &Value) -> Vec<Call> {
    let text = |field: &str| report.get(field).and_then(Value::as_str);
    let number = |field: &str| report.get(field).and_then(Value::as_u64);
    let models: Vec<&str> = report
        .get("models")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let of_one = |number: Option<u64>| number.filter(|_| models.len() == 1);
    let of_model = |model: &&str| Call {
        provider: text("provider").unwrap_or(&session.provider).to_owned(),
        model: (*model).to_owned(),
        tokens_in: of_one(number("tokens_input")),
        tokens_out: of_one(number("tokens_output")),
        micro_dollars: of_one(number("micro_dollars")).filter(|cost| *cost > 0),
        ..session.clone()
    };
    models.iter().map(of_model).collect()
}

/// The gates of the attempt that was verified, and those of level `full` that ran before the landing.
fn verification(dir: &RunDir, events: &[EventRecord]) -> Result<Verification, RunError> {
    let bytes = dir.read(layout::VERIFY_REPORT)?;
    let attempt: VerifyReport = dir.read_json(layout::VERIFY_REPORT)?;
    let mut gates = BTreeMap::new();
    add_gates(&attempt, &mut gates);
    let full = full_gates_runs(events);
    let mut result = verdict(attempt.result);
    if full > 0 {
        let [path, ..] = full_gates_files(full);
        let report: VerifyReport = dir.read_json(&path)?;
        add_gates(&report, &mut gates);
        if verdict(report.result) != GateVerdict::Passed {
            result = GateVerdict::Failed;
        }
    }
    let (broken_change, strength) = measured(&attempt);
    Ok(Verification {
        report: Digest::compute(&bytes),
        result,
        gates: gates.into_values().collect(),
        broken_change,
        strength,
    })
}

/// The check with a broken change and the strength of the gates, if the report has them.
fn measured(report: &VerifyReport) -> (Option<GateVerdict>, Option<Strength>) {
    let broken = report
        .broken_change
        .as_ref()
        .map(|check| match check.outcome {
            BrokenOutcome::Noticed => GateVerdict::Passed,
            BrokenOutcome::Unnoticed => GateVerdict::Failed,
            BrokenOutcome::ReadsText | BrokenOutcome::NotChecked => GateVerdict::Neutral,
        });
    // Only mistakes that were tried within the time budget can be noticed.
    let strength = report.strength.as_ref().map(|strength| Strength {
        noticed: strength.noticed,
        mutants: strength.tried,
    });
    (broken, strength)
}

fn add_gates(report: &VerifyReport, gates: &mut BTreeMap<GateId, GateResult>) {
    for id in &report.executed_gates {
        let levels = report.isolation.iter().filter(|row| row.gate == *id);
        let tests = report.tests.iter().find(|tests| tests.gate == *id);
        let result = GateResult {
            id: id.as_str().to_owned(),
            result: verdict(report.result),
            isolation: levels
                .map(|row| level(row.level))
                .max_by_key(|level| weakness(*level)),
            fixed: tests.map(|tests| tests.fixed.count),
            added: tests.map(|tests| tests.added.count),
        };
        gates.insert(id.clone(), result);
    }
}

/// A report passes only if every one of its gates does.
const fn verdict(result: VerifyResult) -> GateVerdict {
    match result {
        VerifyResult::Pass => GateVerdict::Passed,
        VerifyResult::Fail => GateVerdict::Failed,
    }
}

const fn level(level: IsolationLevel) -> GateIsolationLevel {
    match level {
        IsolationLevel::Full => GateIsolationLevel::Complete,
        IsolationLevel::Partial => GateIsolationLevel::Partial,
        IsolationLevel::None => GateIsolationLevel::None,
    }
}

const fn weakness(level: GateIsolationLevel) -> u8 {
    match level {
        GateIsolationLevel::Complete => 0,
        GateIsolationLevel::Partial => 1,
        GateIsolationLevel::None => 2,
    }
}

/// The head that the trailer of a commit's message names.
fn ledger_head(message: &str) -> Option<LedgerHead> {
    let value = trailer_values(message, LEDGER_TRAILER).last()?;
    let (seq, hash) = value.split_once(':')?;
    Some(LedgerHead {
        seq: seq.parse().ok()?,
        hash: hash.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn measurements_are_taken_from_the_report() {
        let report = |more: Value| -> VerifyReport {
            let mut report = json!({
                "result": "PASS", "gate": "lite", "iteration": 1, "max_iterations": 1, "commands": [], "failures": [],
                "paths": { "trace": "t", "verify_report": "v", "stdout_log": "o", "stderr_log": "e" },
            });
            let (Value::Object(fields), Value::Object(more)) = (&mut report, more) else {
                panic!("no objects")
            };
            fields.extend(more);
            serde_json::from_value(report).unwrap()
        };
        assert_eq!(measured(&report(json!({}))), (None, None));
        for (outcome, verdict) in [
            ("noticed", GateVerdict::Passed),
            ("unnoticed", GateVerdict::Failed),
            ("not-checked", GateVerdict::Neutral),
            ("reads-text", GateVerdict::Neutral),
        ] {
            let report = report(json!({
                "broken_change": {
                    "policy": "required", "outcome": outcome, "functions": [], "constants": 0, "gates": [],
                },
                "strength": { "noticed": 3, "tried": 4, "mutants": 9 },
            }));
            let strength = Strength {
                noticed: 3,
                mutants: 4,
            };
            assert_eq!(measured(&report), (Some(verdict), Some(strength)));
        }
    }

    /// Every other gate runs a command, so a policy that requires isolation asks it for its own.
    #[test]
    fn gates_without_command_are_the_built_in_ones() {
        let gates = crucible_verify::builtin_gates().iter();
        let mut ids: Vec<&str> = gates.map(|gate| gate.id()).collect();
        ids.sort_unstable();
        assert_eq!(ids, crucible_attest::GATES_WITHOUT_COMMAND);
    }

    #[test]
    fn session_of_an_agent_names_each_model() {
        let session = Call {
            role: "patchmaker".to_owned(),
            provider: AGENT.to_owned(),
            model: "default".to_owned(),
            result: GateVerdict::Passed,
            record: None,
            tokens_in: None,
            tokens_out: None,
            micro_dollars: None,
        };
        let named = |models: &[&str]| {
            let report = json!({
                "name": "claude", "provider": "anthropic", "models": models, "tokens_input": 7, "tokens_output": 2,
                "micro_dollars": 5,
            });
            let calls = of_agent(&session, &report);
            let row = |call: Call| (format!("{}/{}", call.provider, call.model), call.tokens_in);
            calls.into_iter().map(row).collect::<Vec<_>>()
        };
        assert_eq!(named(&["a"]), [("anthropic/a".to_owned(), Some(7))]);
        let two = [
            ("anthropic/a".to_owned(), None),
            ("anthropic/b".to_owned(), None),
        ];
        assert_eq!(named(&["a", "b"]), two);
        // A report of an earlier version names no model.
        assert_eq!(of_agent(&session, &json!({ "name": "claude" })), []);
    }
}
