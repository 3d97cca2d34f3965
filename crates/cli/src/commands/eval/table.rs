//! The report of an evaluation for people.

use std::path::Path;

use crucible_eval::{ConfigurationReport, Rate, Report, TrialOutcome};
use crucible_terminal::{lines_of, table};

/// The tables and sentences of a report.
pub(super) fn lines(report: &Report, out: &Path) -> String {
    let mut rows = table([
        "configuration",
        "tasks",
        "right",
        "wrong landed",
        "nothing",
        "declined",
        "broken",
        "unfinished",
        "calls",
        "tokens",
        "dollars",
        "time",
    ]);
    for one in &report.configurations {
        let count = |outcome| one.outcomes.get(&outcome).copied().unwrap_or_default();
        rows.add_row([
            one.configuration.name.clone(),
            one.tasks.to_string(),
            rate(count(TrialOutcome::Right), one.scored, &one.right),
            rate(
                count(TrialOutcome::WrongLanded),
                one.scored,
                &one.wrong_landed,
            ),
            count(TrialOutcome::NothingLanded).to_string(),
            count(TrialOutcome::Declined).to_string(),
            count(TrialOutcome::Broken).to_string(),
            count(TrialOutcome::Unfinished).to_string(),
            one.spent.calls.to_string(),
            one.spent
                .tokens_input
                .saturating_add(one.spent.tokens_output)
                .to_string(),
            dollars(one),
            format!("{:.0} s", one.seconds),
        ]);
    }
    let mut text = lines_of(&rows);
    text.push_str(&format!("\n\nIntervals: {}.", report.interval));
    for pair in &report.comparisons {
        text.push_str(&format!(
            "\n{} less {}: {:+.1} points right on {} tasks; more often right on {} and on {}; exact McNemar p = {:.3}.",
            pair.first,
            pair.second,
            100.0 * pair.difference,
            pair.tasks,
            pair.more_first,
            pair.more_second,
            pair.p_value,
        ));
    }
    text.push_str(&format!("\nResults and logs: {}", out.display()));
    text
}

fn rate(count: u64, scored: u64, rate: &Rate) -> String {
    let (low, high) = (100.0 * rate.interval.low, 100.0 * rate.interval.high);
    format!("{count} of {scored} ({low:.0}-{high:.0} %)")
}

fn dollars(one: &ConfigurationReport) -> String {
    one.spent.micro_dollars.map_or_else(
        || "unknown".to_owned(),
        |cost| format!("{:.4}", cost as f64 / 1e6),
    )
}
