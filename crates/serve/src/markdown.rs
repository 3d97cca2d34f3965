//! The report of a run as Markdown, for a pull request.
//!
//! Text from outside is placed in code: inline code for one line, a fence that is longer than any run of backticks for more.
//! So it can neither add markup nor mention people, nor link.

use std::fmt::Write;

use crucible_llm::dollars;
use crucible_model::{counted, single_spaced};
use crucible_view::{RedactedText, RunView, VerificationView};

use crate::format::{duration, level, objection, world, world_groups};

/// Lines of a plan that a report has at most.
const MAX_LINES: usize = 200;

/// Returns the report of a run as Markdown.
#[must_use]
pub fn markdown_report(run: &RunView) -> String {
    let mut page = String::new();
    let mut line = |text: String| {
        page.push_str(&text);
        page.push('\n');
    };
    let summary = &run.summary;
    line(format!("## Crucible run: {}", run.derived_state.name()));
    line(String::new());
    line(format!("Goal: {}", code(&summary.goal)));
    line(String::new());
    line("| | |".to_owned());
    line("|---|---|".to_owned());
    let mut row = |name: &str, value: String| {
        // A bar would end the cell, also in code.
        line(format!("| {name} | {} |", value.replace('|', "\\|")));
    };
    row("Run", code_of(summary.run_id.as_str()));
    let answers = [
        summary.agent.as_ref(),
        summary.model.as_ref(),
        summary.provider.as_ref(),
    ];
    let answers: Vec<String> = answers.into_iter().flatten().map(code).collect();
    row("Answers", answers.join(", "));
    row(
        "Cost",
        format!(
            "{}, {} tokens, {} calls",
            dollars(summary.totals.micro_dollars),
            summary.totals.tokens,
            summary.totals.calls
        ),
    );
    row("Time", duration(&summary.elapsed_ms));
    row("Base", code(&run.base_commit));
    if let Some(landing) = &run.landing {
        row("Commit", code(&landing.commit));
    }
    let approved = match &run.plan {
        Some(plan) if plan.is_approved => format!("approved, `{}`", plan.digest.short()),
        Some(_) => "not approved".to_owned(),
        None => "none".to_owned(),
    };
    row("Plan", approved);
    let chain = if run.chain.is_intact() {
        "intact"
    } else {
        "**changed after it was recorded**"
    };
    row(
        "Ledger",
        format!(
            "{chain}, head {} `{}`",
            run.chain.head,
            run.chain.head_hash.short()
        ),
    );
    if let Some(failure) = &run.failure {
        line(String::new());
        line(format!(
            "Failed: {} {}",
            code(&failure.code),
            code(&failure.hint)
        ));
    }
    for attempt in &run.attempts {
        line(String::new());
        line(format!(
            "### Attempt {}: {}",
            attempt.number,
            attempt.result()
        ));
        line(String::new());
        if let Some(diff) = &attempt.diff {
            line(format!(
                "{} added, {} removed:",
                counted(diff.added, "line"),
                diff.removed
            ));
            line(String::new());
            for file in &diff.files {
                line(format!(
                    "- {} +{} −{}",
                    code(&file.path),
                    file.added,
                    file.removed
                ));
            }
        }
        for finding in &attempt.findings {
            line(format!(
                "- {} {} {}: {}",
                level(&finding.level),
                code(&finding.code),
                code(&finding.subject),
                code(&finding.hint)
            ));
        }
        let Some(verification) = &attempt.verification else {
            continue;
        };
        for command in &verification.commands {
            line(format!(
                "- {} exited {}",
                code(&command.command),
                command.exit_code
            ));
        }
        for tests in &verification.tests {
            for (name, count, _) in &tests.groups {
                line(format!(
                    "- {}: {} {}",
                    code(&tests.gate),
                    counted(*count, "test"),
                    code(name)
                ));
            }
        }
        for content in &verification.shown {
            line(format!("- {}", code(content)));
        }
        for text in checks(verification) {
            line(text);
        }
        if let Some(strength) = &verification.strength {
            for survivor in &strength.survivors {
                line(format!(
                    "  - unnoticed: {} {}",
                    code(&survivor.at),
                    code(&survivor.what)
                ));
            }
        }
        for sink in &verification.sinks {
            line(format!(
                "- new sink: {} {} {}",
                code(&sink.at),
                code(&sink.kind),
                code(&sink.name)
            ));
        }
    }
    if let Some(held_out) = &run.held_out {
        line(String::new());
        line(match &held_out.result {
            Some(result) => format!(
                "Held-out tests, {}: {}, {} passed, {} failed",
                counted(held_out.files, "file"),
                crate::format::held_out(&result.outcome),
                result.passed,
                result.failed
            ),
            None => format!(
                "Held-out tests, {}: they run before the landing",
                counted(held_out.files, "file")
            ),
        });
    }
    if let Some(plan) = &run.plan {
        line(String::new());
        line("<details><summary>Plan</summary>".to_owned());
        line(String::new());
        line(fenced(&plan.text));
        line(String::new());
        line("</details>".to_owned());
    }
    page
}

/// The lines about checks beside the gates.
fn checks(verification: &VerificationView) -> Vec<String> {
    let mut lines = Vec::new();
    for gate in verification
        .second_world
        .iter()
        .flat_map(|world| &world.gates)
    {
        let mut text = format!(
            "- second world: {} {}",
            code(&gate.id),
            world(&gate.outcome)
        );
        for (name, tests) in world_groups(gate) {
            let tests: Vec<String> = tests.iter().map(code).collect();
            let _a_string_takes_it = write!(text, "; {name}: {}", tests.join(", "));
        }
        lines.push(text);
    }
    for row in verification
        .candidates
        .iter()
        .flat_map(|choice| &choice.compared)
    {
        let strength = row
            .strength
            .map(|percent| format!(", strength {percent} %"));
        lines.push(format!(
            "- candidate: attempt {}, {} with a witness{}, {}",
            row.attempt,
            counted(row.witnesses, "objection"),
            strength.unwrap_or_default(),
            counted(row.lines, "line")
        ));
    }
    if let Some(check) = &verification.objections {
        lines.push(format!(
            "- objections: {} judged, {} with a witness, {} not judged",
            check.objections.len(),
            check.witnesses,
            check.not_judged
        ));
        lines.extend(
            check
                .unusable
                .iter()
                .map(|reason| format!("  - unusable answer: {}", code(reason))),
        );
        lines.extend(check.objections.iter().map(|one| {
            format!(
                "  - {}: {} expects {}, because of {} ({}): {}",
                objection(&one.outcome),
                code(&one.test),
                code(&one.expected),
                code(&one.sentence),
                code(&one.source),
                code(&one.reason)
            )
        }));
    }
    lines
}

fn code(text: &RedactedText) -> String {
    code_of(&text.to_string())
}

/// Returns a text as inline code on one line.
fn code_of(text: &str) -> String {
    let text = single_spaced(text);
    let fence = "`".repeat(longest_run(&text) + 1);
    let mut code = String::new();
    let pad = if text.starts_with('`') || text.ends_with('`') || text.is_empty() {
        " "
    } else {
        ""
    };
    let _a_string_takes_it = write!(code, "{fence}{pad}{text}{pad}{fence}");
    code
}

/// Returns the length of the longest run of backticks.
fn longest_run(text: &str) -> usize {
    let runs = text.split(|c| c != '`').map(str::len);
    runs.max().unwrap_or_default()
}

fn fenced(text: &RedactedText) -> String {
    let text = text.to_string();
    let lines: Vec<&str> = text.lines().take(MAX_LINES).collect();
    let content = lines.join("\n");
    let fence = "`".repeat(longest_run(&content).max(2) + 1);
    format!("{fence}text\n{content}\n{fence}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_longer_than_its_backticks() {
        assert_eq!(code_of("a"), "`a`");
        assert_eq!(code_of("a `b` c"), "``a `b` c``");
        assert_eq!(code_of("`"), "`` ` ``");
        assert_eq!(code_of("a\n| b"), "`a | b`");
        assert_eq!(code_of(""), "`  `");
    }
}
