//! The history of a skill as text.

use crucible_model::short_line;
use serde_json::Value;

use crate::json_output::{SkillHistory, digest_of, newest};
use crate::status::SkillStep;

/// How many findings of one step are shown.
const FINDINGS: usize = 10;
/// The most characters of a text in a line.
const SHOWN: usize = 100;

impl SkillHistory {
    /// Returns the history as lines: attempts, verifications, promotions, artifacts and runs.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let skill = &self.skill;
        let mut lines = vec![
            format!(
                "{}  {}  {}",
                skill.name,
                skill.status.as_str(),
                skill.side_effect.as_str()
            ),
            skill.description.clone(),
        ];
        if skill
            .grants
            .as_object()
            .is_some_and(|grants| !grants.is_empty())
        {
            lines.push(format!(
                "granted: {}",
                short_line(&skill.grants.to_string(), 4 * SHOWN)
            ));
        }
        lines.push(format!("proposed {}", skill.created_at));
        part(
            &mut lines,
            "attempts",
            self.builds.len(),
            newest(&self.builds),
            |build| {
                let what = build
                    .skill
                    .map(|skill| format!("  skill {skill}"))
                    .unwrap_or_default();
                let (attempt, status, at) =
                    (build.attempt, build.status.as_str(), &build.started_at);
                let mut line = format!("{attempt}  {status}  {at}  {}{what}", build.agent);
                if let Some(failure) = &build.failure {
                    let kind = failure
                        .get("kind")
                        .and_then(Value::as_str)
                        .unwrap_or_default();
                    line.push_str(&format!(
                        "  {kind}{}",
                        findings(failure.get("findings"), "    ")
                    ));
                }
                line
            },
        );
        part(
            &mut lines,
            "verifications",
            self.verified,
            &self.verifications,
            |(row, gates)| {
                let mut line = format!(
                    "{}  {}  {}  skill {}  test {}",
                    row.status.as_str(),
                    row.level.as_str(),
                    row.started_at,
                    row.skill,
                    row.test
                );
                for gate in gates {
                    let word = if gate.passed { "passed" } else { "failed" };
                    line.push_str(&format!(
                        "\n    {} {word} in {} ms",
                        gate.gate, gate.duration_ms
                    ));
                    if let Some(log) = gate.log {
                        line.push_str(&format!(", log {log}"));
                    }
                    if !gate.passed {
                        line.push_str(&findings(Some(&gate.findings), "      "));
                    }
                }
                line
            },
        );
        part(
            &mut lines,
            "promotions",
            self.promotions.len(),
            newest(&self.promotions),
            |row| {
                let (from, to) = (row.from.as_str(), row.to.as_str());
                let (who, why) = (
                    short_line(&row.approved_by, SHOWN),
                    short_line(&row.reason, SHOWN),
                );
                format!(
                    "{from} -> {to}  {}  {who}: {why}  skill {}  event {}",
                    row.at, row.skill, row.event
                )
            },
        );
        part(
            &mut lines,
            "kept",
            self.artifacts.len(),
            newest(&self.artifacts),
            |kept| format!("{}  {}", kept.kind.as_str(), kept.digest),
        );
        part(
            &mut lines,
            "newest runs",
            self.runs.len(),
            &self.runs,
            |run| {
                let mut line = format!(
                    "{}  {}  {} ms",
                    run.outcome.as_str(),
                    run.at,
                    run.duration_ms
                );
                if let Some(skill) = digest_of(run) {
                    line.push_str(&format!("  skill {skill}"));
                }
                if let Some(promotion) = run.promotion {
                    line.push_str(&format!("  by event {promotion}"));
                }
                line.push_str(&findings(Some(&run.findings), "    "));
                line
            },
        );
        let steps: Vec<&str> = SkillStep::after(skill.status)
            .map(SkillStep::as_str)
            .collect();
        lines.push(format!("may follow: {}", steps.join(", ")));
        lines
    }
}

/// The findings of a step, as lines of their own below it: what was found, where, and what to do.
fn findings(list: Option<&Value>, indent: &str) -> String {
    let all = list
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    let line = |finding: &Value| {
        let text = |key: &str| finding.get(key).and_then(Value::as_str).unwrap_or_default();
        let (subject, hint) = (
            short_line(text("subject"), SHOWN),
            short_line(text("hint"), 2 * SHOWN),
        );
        format!("\n{indent}{} {subject}: {hint}", text("code"))
    };
    let mut lines: String = all.iter().take(FINDINGS).map(line).collect();
    if let Some(more) = all.len().checked_sub(FINDINGS).filter(|more| *more > 0) {
        lines.push_str(&format!("\n{indent}and {more} more; `--json` has them"));
    }
    lines
}

/// A heading with its lines, where there are some.
fn part<T>(
    lines: &mut Vec<String>,
    name: &str,
    count: usize,
    rows: &[T],
    line: impl Fn(&T) -> String,
) {
    if count == 0 {
        return;
    }
    let left = count.saturating_sub(rows.len());
    lines.push(match left {
        0 => format!("{name}:"),
        left => format!("{name}, the newest of {count} ({left} older are left out):"),
    });
    lines.extend(rows.iter().map(|row| format!("  {}", line(row))));
}
