//! A run as lines of text.

use crucible_llm::dollars;
use crucible_model::{Level, counted};
use crucible_view::{
    AttemptView, CallView, FindingView, RunSummary, RunView, VerificationView, duration,
};

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
        "used: {}, {}, {}, {}",
        counted(totals.calls, "call"),
        counted(totals.tokens, "token"),
        dollars(totals.micro_dollars),
        duration(run.elapsed_ms)
    ));
    lines
}

/// All about a run: what its page shows, without the texts of models and programs.
pub(super) fn in_full(run: &RunView) -> Vec<String> {
    let summary = &run.summary;
    let mut lines = in_short(summary);
    lines.push(format!(
        "started: {}, changed: {}",
        summary.created_at, summary.updated_at
    ));
    lines.extend(
        run.at_work
            .iter()
            .map(|process| format!("works: {process}")),
    );
    lines.push(format!("next: {}", run.next));
    if !run.chain.is_intact() {
        lines.push("this run was changed after it was recorded".to_owned());
    }
    lines.extend(run.failure.iter().map(finding));
    lines.push(String::new());
    lines.extend(plan(run));
    lines.extend(run.attempts.iter().flat_map(attempt));
    if let Some(report) = &run.landing_verification {
        lines.push("gates before the landing".to_owned());
        lines.extend(gates(report));
    }
    lines.extend(
        run.landing
            .iter()
            .map(|landing| format!("commit: {}", landing.commit)),
    );
    lines.push(String::new());
    lines.extend(run.model_calls.iter().map(call));
    lines.push(String::new());
    lines.push(format!("page: crucible serve, /runs/{}", summary.run_id));
    lines.push(format!("report: crucible report {}", summary.run_id));
    lines
}

fn plan(run: &RunView) -> Vec<String> {
    let Some(plan) = &run.plan else {
        return vec!["plan: not drafted yet".to_owned()];
    };
    let approval = if plan.is_approved {
        "approved"
    } else {
        "not approved"
    };
    let text = plan.text.as_str().trim_end().lines();
    let mut lines = vec![format!("plan: {approval}, digest {}", plan.digest.short())];
    lines.extend(text.map(|line| format!("  {line}")));
    lines
}

fn attempt(attempt: &AttemptView) -> Vec<String> {
    let change = attempt.diff.as_ref().map(|diff| {
        let files = counted(diff.files.len() as u64, "file");
        format!("; +{} −{} in {files}", diff.added, diff.removed)
    });
    let mut lines = vec![format!(
        "attempt {}: {}{}",
        attempt.number,
        attempt.result(),
        change.unwrap_or_default()
    )];
    lines.extend(attempt.findings.iter().map(finding));
    lines.extend(attempt.verification.iter().flat_map(gates));
    lines
}

fn finding(finding: &FindingView) -> String {
    let level = match finding.level {
        Level::Info => "info",
        Level::Warning => "warning",
        Level::Error => "error",
    };
    let FindingView {
        code,
        subject,
        hint,
        ..
    } = finding;
    format!("  {level} {code}: {subject}: {hint}")
}

fn gates(report: &VerificationView) -> Vec<String> {
    let mut lines = Vec::new();
    for gate in &report.results {
        let end = if gate.failures.is_empty() {
            "passed"
        } else {
            "failed"
        };
        let tests = gate
            .tests
            .iter()
            .map(|(group, number)| format!(", {number} {group}"));
        lines.push(format!(
            "  gate {}: {end}{}",
            gate.id,
            tests.collect::<String>()
        ));
    }
    lines.extend(report.shown.iter().map(|line| format!("  {line}")));
    lines.extend(report.failures.iter().map(|line| format!("  {line}")));
    lines
}

fn call(call: &CallView) -> String {
    let outcome = call
        .outcome
        .as_ref()
        .map_or("open".to_owned(), ToString::to_string);
    let reserved = if call.is_cost_known { "" } else { " reserved" };
    let time = call
        .elapsed_ms
        .map(|millis| format!(", {}", duration(millis)));
    format!(
        "call {}: {} ({}): {outcome}, {}, {}{reserved}{}",
        call.number,
        call.model,
        call.provider,
        counted(call.tokens, "token"),
        dollars(call.micro_dollars),
        time.unwrap_or_default()
    )
}
