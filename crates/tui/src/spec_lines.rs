//! A spec as lines of text.

use std::time::Duration;

use crucible_llm::{cost_in_words, tokens_in_words};
use crucible_model::counted;
use crucible_spec::{PhaseSummary, SpecStatus, age_words};
use crucible_view::EvidenceView;

use super::board::Row;

/// A spec beside the list: its state, newest receipt, problems and next step.
pub(super) fn in_short(row: &Row) -> Vec<String> {
    let spec = &row.spec;
    let mut lines = vec![
        spec.spec_id.to_string(),
        format!("stands: {}", spec.standing.words()),
    ];
    if !spec.tags.is_empty() {
        lines.push(format!("tags: {}", spec.tags.join(", ")));
    }
    lines.extend(spec.reached.map(|phase| format!("reached: {phase}")));
    lines.push(String::new());
    match row.status.as_ref().and_then(newest) {
        Some(phase) => {
            lines.push("newest receipt".to_owned());
            lines.extend(phase_lines(phase));
        }
        None if row.spec.error.is_none() => lines.push("no receipt yet".to_owned()),
        None => {}
    }
    lines.push(String::new());
    lines.extend(spec.troubles());
    lines.extend(problems(row));
    lines.extend(
        spec.next
            .as_ref()
            .map(|next| format!("next: {}", next.command)),
    );
    lines
}

/// All about a spec: its requirements by state, and each phase with its newest receipt.
pub(super) fn in_full(row: &Row, evidence: Option<&EvidenceView>) -> Vec<String> {
    let mut lines = vec![format!(
        "{}: {}",
        row.spec.spec_id,
        row.spec.standing.words()
    )];
    lines.extend(row.spec.troubles());
    lines.extend(problems(row));
    lines.extend(evidence.map(requirements).unwrap_or_default());
    lines.push(String::new());
    lines.extend(
        row.status
            .iter()
            .flat_map(|status| &status.phase_statuses)
            .flat_map(phase_lines),
    );
    lines.push(String::new());
    lines.extend(
        row.spec
            .next
            .as_ref()
            .map(|next| format!("next: {}", next.command)),
    );
    lines
}

/// How many requirements are proven, and those that are not.
fn requirements(evidence: &EvidenceView) -> Vec<String> {
    let matrix = &evidence.matrix;
    let counts = &matrix.counts;
    let mut lines = vec![format!(
        "requirements: {} proven, {} partial, {} without proof",
        counts.proven, counts.partial, counts.none
    )];
    let open = matrix.requirements.iter();
    let open = open.filter(|requirement| requirement.state.as_str() != "proven");
    lines.extend(open.map(|requirement| {
        format!(
            "  {}: {}: {}",
            requirement.state, requirement.id, requirement.title
        )
    }));
    lines
}

/// The phase whose receipt is the newest.
fn newest(status: &SpecStatus) -> Option<&PhaseSummary> {
    let phases = status
        .phase_statuses
        .iter()
        .filter(|phase| phase.receipt_id.is_some());
    phases.max_by_key(|phase| (phase.emitted_at, phase.phase_id))
}

fn phase_lines(phase: &PhaseSummary) -> Vec<String> {
    let age = phase
        .age_seconds
        .map(|seconds| format!(", {} ago", age_words(Duration::from_secs(seconds))));
    let mut lines = vec![format!(
        "{}: {}{}",
        phase.phase_id,
        phase.status.words(),
        age.unwrap_or_default()
    )];
    lines.extend(
        phase
            .receipt_id
            .as_ref()
            .map(|id| format!("  receipt: {id}")),
    );
    if let Some(model) = &phase.model_used {
        let provider = phase
            .provider
            .as_ref()
            .map(|provider| format!(" ({provider})"))
            .unwrap_or_default();
        lines.push(format!("  model: {model}{provider}"));
    }
    let names = [
        tokens_in_words(phase.tokens_input, phase.tokens_output),
        cost_in_words(phase.cost_micro_dollars, phase.cost_basis),
    ];
    let taken: Vec<&str> = names
        .iter()
        .map(String::as_str)
        .filter(|part| !part.is_empty())
        .collect();
    if !taken.is_empty() {
        lines.push(format!("  tokens: {}", taken.join(", ")));
    }
    lines.extend(
        phase
            .error
            .as_ref()
            .map(|error| format!("  error: {error}")),
    );
    if let Some(warning) = &phase.first_warning {
        lines.push(format!(
            "  {}: {warning}",
            counted(phase.warnings, "warning")
        ));
    }
    lines
}

fn problems(row: &Row) -> Vec<String> {
    let Some(status) = &row.status else {
        return Vec::new();
    };
    let mut lines: Vec<String> = status
        .problems
        .iter()
        .map(|problem| format!("receipts/{}: {}", problem.file, problem.code))
        .collect();
    if status.problems_left_out > 0 {
        lines.push(format!(
            "and {} more",
            counted(status.problems_left_out, "problem")
        ));
    }
    lines
}
