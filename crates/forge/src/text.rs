//! Results of the commands on skills as text.

use crucible_llm::{CostBasis, cost_in_words, tokens_in_words};
use crucible_model::{Level, Untrusted, short_line};
use crucible_repo::OmitReason;
use serde::Deserialize;
use serde_json::Value;

use crate::build::SkillBuildReport;
use crate::gates::SkillGateOutcome;
use crate::json_output::{SkillHistory, digest_of, newest};
use crate::name::SkillName;
use crate::research::{NotedAdvice, ResearchOutcome};
use crate::status::SkillStep;
use crate::verify::SkillVerification;

/// The most paths left out of a copy that are named.
const NAMED: usize = 5;

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
            |artifact| format!("{}  {}", artifact.kind.as_str(), artifact.digest),
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

impl ResearchOutcome {
    /// Returns the analysis as lines.
    #[must_use]
    pub fn lines(&self, name: &SkillName) -> Vec<String> {
        let ResearchOutcome {
            note,
            digest,
            proposed,
            unreviewed,
        } = self;
        let mut lines = vec![note.text.clone()];
        match &note.advice {
            NotedAdvice::NotAsked => {}
            NotedAdvice::Missing { why } => lines.push(format!(
                "There is no advice, and the packet stays what it was: {why}"
            )),
            NotedAdvice::Kept {
                note,
                model,
                left_out_chars,
            } => {
                lines.push(format!("## What {model} advises (kept as {note})\n"));
                if *left_out_chars > 0 {
                    lines.push(format!(
                        "It was not shown {left_out_chars} characters of failure and packet.\n"
                    ));
                }
                let proposed = proposed.as_ref().map_or("", Untrusted::as_str);
                let indented: Vec<String> =
                    proposed.lines().map(|line| format!("    {line}")).collect();
                lines.push(indented.join("\n"));
                lines.push(String::new());
            }
        }
        for trigger in unreviewed {
            lines.push(format!(
                "a person has to look: {trigger}: {}",
                trigger.why()
            ));
        }
        lines.push(format!("note {digest}"));
        lines.push(format!("next: {}", self.next(name)));
        lines
    }
}

impl SkillGateOutcome {
    /// Returns the number of findings in words.
    #[must_use]
    pub fn finding_counts(&self) -> String {
        let count = |level: Level| {
            self.verdict
                .findings()
                .iter()
                .filter(|finding| finding.level == level)
                .count()
        };
        match (count(Level::Error), count(Level::Warning)) {
            (0, 0) => String::new(),
            (0, warnings) => format!("{warnings} to look at"),
            (errors, 0) => errors.to_string(),
            (errors, warnings) => format!("{errors}, and {warnings} to look at"),
        }
    }
}

impl SkillVerification<'_> {
    /// Returns which files the copy lacks because they look like secrets: a test could need them.
    #[must_use]
    pub fn omission_note(&self) -> Option<String> {
        let secrets: Vec<String> = self
            .omitted()
            .iter()
            .filter(|left| matches!(left.reason, OmitReason::Secret(_)))
            .map(|left| left.path.display().to_string())
            .collect();
        if secrets.is_empty() {
            return None;
        }
        let named = secrets
            .iter()
            .take(NAMED)
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join(", ");
        let more = secrets.len().saturating_sub(NAMED);
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        Some(format!(
            "not in the copy, for it holds what looks like a secret: {named}{more}"
        ))
    }
}

impl SkillBuildReport {
    /// Returns the tokens and the cost of the call, if they were counted.
    #[must_use]
    pub fn usage(&self) -> Option<String> {
        let facts = &self.facts;
        let number = |name: &str| facts.get(name).and_then(Value::as_u64);
        let counted = tokens_in_words(number("tokens_input"), number("tokens_output"));
        if counted.is_empty() {
            return None;
        }
        let basis = facts
            .get("cost_basis")
            .and_then(|basis| CostBasis::deserialize(basis).ok());
        let cost = match cost_in_words(number("cost_micro_dollars"), basis) {
            unknown if unknown.is_empty() => "cost unknown".to_owned(),
            cost => cost,
        };
        Some(format!("took tokens: {counted}; {cost}"))
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
