//! A judgement for people: the findings, the phases and their age, and the verdict on the last line.

use std::time::Duration;

use crucible_model::{Outcome, counted};
use crucible_spec::gate_output::GateView;
use crucible_spec::{GatePhase, GatePolicy, GateReport, PhaseCondition, age_words};
use crucible_terminal::{Output, lines_of, table};

pub(super) fn print(output: &Output, view: &GateView<'_>) {
    for found in view.findings {
        output.finding(&found.finding);
    }
    conclude(output, view);
}

/// Prints the number of findings left out, the phases, and the verdict.
pub(super) fn conclude(output: &Output, view: &GateView<'_>) {
    if view.left_out > 0 {
        output.line(&format!(
            "and {} more",
            counted(view.left_out as u64, "finding")
        ));
    }
    output.line(&phases(view.report));
    output.line(&verdict(view.report, view.policy));
}

/// The required phases, and later ones that have run.
fn phases(report: &GateReport) -> String {
    let mut rows = table(["phase", "state", "last success", ""]);
    for phase in &report.phases {
        if phase.required || phase.status != PhaseCondition::NotRun {
            let note = if phase.required { "" } else { "not required" };
            rows.add_row([
                phase.phase_id.as_str(),
                phase.status.words(),
                &last_success(phase),
                note,
            ]);
        }
    }
    lines_of(&rows)
}

/// The verdict on one line, with the policy.
fn verdict(report: &GateReport, policy: &GatePolicy) -> String {
    let (word, verb) = match report.verdict {
        Outcome::Pass => ("pass", "meets"),
        Outcome::Fail => ("fail", "does not meet"),
    };
    format!("{word}: {} {verb} the policy: {}", report.spec_id, policy)
}

fn last_success(phase: &GatePhase) -> String {
    match (phase.age_seconds, phase.succeeded_at) {
        (Some(seconds), _) => format!("{} ago", age_words(Duration::from_secs(seconds))),
        (None, Some(at)) => format!("{at}, later than now"),
        (None, None) if phase.receipt_id.is_some() => "at no known time".to_owned(),
        (None, None) => "never".to_owned(),
    }
}
