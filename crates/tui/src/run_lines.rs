//! A run as lines of text.

use crucible_llm::dollars;
use crucible_model::counted;
use crucible_view::RunSummary;

/// A run beside the list.
pub(super) fn in_short(run: &RunSummary) -> Vec<String> {
    let mut lines = vec![
        run.run_id.to_string(),
        format!("state: {}", run.state),
        format!("goal: {}", run.goal),
        format!("repository: {}", run.repo),
    ];
    let answers: Vec<String> = [&run.agent, &run.provider, &run.model]
        .into_iter()
        .flatten()
        .map(ToString::to_string)
        .collect();
    if !answers.is_empty() {
        lines.push(format!("answers: {}", answers.join(", ")));
    }
    let totals = &run.totals;
    lines.push(format!(
        "used: {}, {}, {}",
        counted(totals.calls, "call"),
        counted(totals.tokens, "token"),
        dollars(totals.micro_dollars)
    ));
    lines
}

/// All about a run, with the commands that show more.
pub(super) fn in_full(run: &RunSummary) -> Vec<String> {
    let mut lines = in_short(run);
    lines.push(format!("started: {}", run.created_at));
    lines.push(format!("changed: {}", run.updated_at));
    lines.push(String::new());
    lines.push(format!("status: crucible run status {}", run.run_id));
    lines.push(format!("report: crucible report {}", run.run_id));
    lines
}
