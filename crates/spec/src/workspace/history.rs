//! The history of a spec, receipt by receipt: `workspace-history-json.v1`
//! (`docs/schemas/workspace-history-json.v1.schema.json`).
//!
//! This is the only reader of all receipts of a spec. Invariants: a receipt that cannot be trusted is
//! listed and not included in the totals. A total with unknown parts states how many are missing.

use crucible_llm::CostBasis;
use crucible_model::{ClockSource, Code, Timestamp, short_line, single_spaced};
use serde::Serialize;

use crate::gate::problem_code;
use crate::id::SpecId;
use crate::receipt::{PhaseEntry, PhaseStatus, SpecReceipt};
use crate::state::ReceiptProblem;

/// The schema of [`SpecHistory`].
pub(crate) const HISTORY_SCHEMA: &str = "workspace-history-json.v1";

/// The most characters of a receipt's text.
const MAX_LEN: usize = 200;

/// The history of a spec.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SpecHistory {
    /// [`HISTORY_SCHEMA`].
    pub schema_version: String,
    /// The id of the spec.
    pub spec_id: SpecId,
    /// The receipts, oldest first; one row for each phase in a receipt.
    pub timeline: Vec<HistoryRow>,
    /// The totals of the timeline.
    pub totals: HistoryTotals,
    /// Receipts that cannot be trusted.
    pub problems: Vec<HistoryProblem>,
}

/// One run of a phase.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HistoryRow {
    /// The id of its receipt.
    pub receipt_id: String,
    /// Which phase.
    pub phase_id: String,
    /// How it ended.
    pub status: PhaseStatus,
    /// The time of the receipt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub emitted_at: Option<Timestamp>,
    /// Whether that time is real.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockSource>,
    /// The provider that answered, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The model that answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_used: Option<String>,
    /// Tokens of the prompts, if counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_input: Option<u64>,
    /// Tokens of the answers, if counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_output: Option<u64>,
    /// Cost in millionths of a US dollar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_micro_dollars: Option<u64>,
    /// The basis of the cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_basis: Option<CostBasis>,
    /// Attempts that were sent to a model.
    pub attempts: u64,
    /// The number of warnings in the receipt.
    pub warnings: u64,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The totals of a timeline.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct HistoryTotals {
    /// The number of rows.
    pub runs: u64,
    /// Runs that succeeded.
    pub succeeded: u64,
    /// Runs that failed.
    pub failed: u64,
    /// Runs without a model call.
    pub dry_runs: u64,
    /// Attempts that were sent to a model.
    pub attempts: u64,
    /// Known input tokens.
    pub tokens_input: u64,
    /// Known output tokens.
    pub tokens_output: u64,
    /// Known cost in millionths of a US dollar.
    pub cost_micro_dollars: u64,
    /// Runs with a model call whose cost is unknown.
    pub cost_unknown: u64,
    /// Runs whose cost is an estimate.
    pub cost_estimated: u64,
}

/// A receipt that cannot be trusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HistoryProblem {
    /// The reason, as a code of the gate; `docs/codes/gate.md` has a heading for each.
    pub code: Code,
    /// The file in `receipts/`.
    pub file: String,
}

/// The history of a spec from its receipts, oldest first.
#[must_use]
pub fn spec_history(
    spec: &SpecId,
    receipts: &[SpecReceipt],
    problems: &[ReceiptProblem],
) -> SpecHistory {
    let timeline: Vec<HistoryRow> = receipts
        .iter()
        .flat_map(|receipt| receipt.phases.iter().map(|phase| row(receipt, phase)))
        .collect();
    let mut totals = HistoryTotals::default();
    for row in &timeline {
        for (sum, more) in [
            (&mut totals.runs, 1),
            (
                &mut totals.succeeded,
                u64::from(row.status == PhaseStatus::Success),
            ),
            (
                &mut totals.failed,
                u64::from(row.status == PhaseStatus::Failed),
            ),
            (
                &mut totals.dry_runs,
                u64::from(row.status == PhaseStatus::DryRun),
            ),
            (&mut totals.attempts, row.attempts),
            (&mut totals.tokens_input, row.tokens_input.unwrap_or(0)),
            (&mut totals.tokens_output, row.tokens_output.unwrap_or(0)),
            (
                &mut totals.cost_micro_dollars,
                row.cost_micro_dollars.unwrap_or(0),
            ),
            (
                &mut totals.cost_unknown,
                u64::from(row.attempts > 0 && row.cost_micro_dollars.is_none()),
            ),
            (
                &mut totals.cost_estimated,
                u64::from(row.cost_basis == Some(CostBasis::Estimated)),
            ),
        ] {
            // Receipts may contain any number, so the sum saturates.
            *sum = sum.saturating_add(more);
        }
    }
    let problems = problems
        .iter()
        .map(|problem| HistoryProblem {
            code: problem_code(&problem.kind),
            file: brief(&problem.file),
        })
        .collect();
    SpecHistory {
        schema_version: HISTORY_SCHEMA.to_owned(),
        spec_id: spec.clone(),
        timeline,
        totals,
        problems,
    }
}

fn row(receipt: &SpecReceipt, phase: &PhaseEntry) -> HistoryRow {
    let llm = phase.llm.as_ref();
    let cost = llm.and_then(|llm| llm.cost.as_ref());
    HistoryRow {
        receipt_id: brief(&receipt.receipt_id),
        phase_id: brief(&phase.phase_id),
        // A receipt that is marked as a dry run proves nothing, whatever else it contains.
        status: if receipt.dry_run {
            PhaseStatus::DryRun
        } else {
            phase.status
        },
        emitted_at: receipt.emitted_at,
        clock: receipt.clock,
        provider: llm.and_then(|llm| llm.provider.as_deref()).map(brief),
        model_used: llm.and_then(|llm| llm.model_used.as_deref()).map(brief),
        tokens_input: llm.and_then(|llm| llm.tokens_input),
        tokens_output: llm.and_then(|llm| llm.tokens_output),
        cost_micro_dollars: cost.map(|cost| cost.micro_dollars),
        cost_basis: cost.map(|cost| cost.basis),
        attempts: phase.attempts,
        warnings: phase.warnings.len() as u64,
        error: phase
            .error
            .as_ref()
            .map(|error| brief(&format!("{}: {}", error.class, error.message))),
    }
}

fn brief(text: &str) -> String {
    short_line(&single_spaced(text), MAX_LEN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::ReceiptProblemKind;

    fn receipt(place: u64, phase: &str, more: serde_json::Value) -> SpecReceipt {
        let mut phase =
            serde_json::json!({ "phase_id": phase, "status": "success", "attempts": 1 });
        let (entry, more) = (
            phase.as_object_mut().unwrap(),
            more.as_object().unwrap().clone(),
        );
        entry.extend(more);
        let dry = entry["status"] == "dry_run";
        let value = serde_json::json!({
            "receipt_id": format!("design-20241201-100000-{place:04}"), "spec_id": "a", "sequence": place,
            "dry_run": dry, "phases": [phase],
        });
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_timeline_tells_each_run_and_the_sums() {
        let llm = |cost: serde_json::Value| serde_json::json!({ "llm": { "provider": "gateway", "model_used": "m", "tokens_input": 10, "tokens_output": 3, "cost": cost } });
        let receipts = [
            receipt(
                1,
                "requirements",
                llm(serde_json::json!({ "micro_dollars": 500, "basis": "estimated" })),
            ),
            receipt(
                2,
                "design",
                serde_json::json!({ "status": "failed", "attempts": 2,
                "error": { "class": "answer", "message": "no\ndocument \u{1b}[2J" } }),
            ),
            receipt(
                3,
                "design",
                serde_json::json!({ "status": "dry_run", "attempts": 0 }),
            ),
            receipt(4, "design", llm(serde_json::Value::Null)),
        ];
        let problem = ReceiptProblem {
            file: "design\u{1b}.json".to_owned(),
            phase: None,
            kind: ReceiptProblemKind::ForeignName,
        };
        let history = spec_history(&"a".parse().unwrap(), &receipts, &[problem]);
        let totals = HistoryTotals {
            runs: 4,
            succeeded: 2,
            failed: 1,
            dry_runs: 1,
            attempts: 4,
            tokens_input: 20,
            tokens_output: 6,
            cost_micro_dollars: 500,
            cost_unknown: 2,
            cost_estimated: 1,
        };
        assert_eq!(history.totals, totals);
        assert_eq!(
            history.timeline[1].error.as_deref(),
            Some("answer: no document \\u{1b}[2J")
        );
        assert_eq!(history.problems[0].file, "design\\u{1b}.json");
    }

    #[test]
    fn sums_of_absurd_numbers_stay_numbers() {
        let absurd = serde_json::json!({ "attempts": u64::MAX,
            "llm": { "tokens_input": u64::MAX, "cost": { "micro_dollars": u64::MAX, "basis": "reported" } } });
        let receipts = [
            receipt(1, "design", absurd.clone()),
            receipt(2, "design", absurd),
        ];
        let totals = spec_history(&"a".parse().unwrap(), &receipts, &[]).totals;
        assert_eq!(
            (
                totals.attempts,
                totals.tokens_input,
                totals.cost_micro_dollars
            ),
            (u64::MAX, u64::MAX, u64::MAX)
        );
    }
}
