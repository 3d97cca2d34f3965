//! `crucible skill show`: the whole story of a skill.

use clap::Args;
use crucible_forge::{SkillName, SkillStep};
use crucible_ledger::{
    Ledger, LedgerError, PromotionRow, SkillArtifactRow, SkillBuildRow, SkillGateRow, SkillRow,
    SkillRunRow, VerificationRow,
};
use crucible_model::{Digest, ExitStatus, short_line};
use serde_json::{Value, json};

use super::place;
use crate::app::App;
use crate::error::CommandError;

/// The newest runs that are shown.
const RUNS: u32 = 20;
/// The newest of everything else that is shown of a kind.
const NEWEST: usize = 50;
/// The most bytes of a failure, or of the findings of a gate or a run, that are shown.
const MOST_BYTES: usize = 8 * 1024;
/// How many findings of one step are shown.
const FINDINGS: usize = 10;
/// The most characters of a text in a line.
const SHOWN: usize = 100;

/// Show the whole story of a skill: attempts, gates, promotions, runs, and the digest of all that was kept
///
/// Packets, logs and reports are named by their digests. Of each kind the newest are shown, and how many there are.
#[derive(Args)]
pub(crate) struct Show {
    /// The name of the skill
    #[arg(value_name = "NAME", value_parser = place::skill_name)]
    name: SkillName,
}

/// What the ledger knows.
struct Story {
    skill: SkillRow,
    builds: Vec<SkillBuildRow>,
    verifications: Vec<(VerificationRow, Vec<SkillGateRow>)>,
    verified: usize,
    promotions: Vec<PromotionRow>,
    trust: Option<PromotionRow>,
    artifacts: Vec<SkillArtifactRow>,
    runs: Vec<SkillRunRow>,
}

impl Show {
    pub(super) fn run(&self, app: &App) -> Result<ExitStatus, CommandError> {
        let project = place::project(app)?;
        let (ledger, skill) = place::skill(app, &project, &self.name)?;
        let paths = project
            .paths(&self.name)
            .map_err(|error| place::no_path(&error))?;
        let story = Story::read(&ledger, skill)?;
        if app.output.is_json() {
            let mut document = story.document();
            document["files"] = json!({ "skill": paths.skill, "test": paths.test, "module": paths.module, "class": paths.class });
            app.output.json(&document)?;
        } else {
            app.output.line(&story.lines().join("\n"));
        }
        Ok(ExitStatus::Success)
    }
}

impl Story {
    fn read(ledger: &Ledger, skill: SkillRow) -> Result<Self, LedgerError> {
        let all = ledger.verifications(skill.id)?;
        let verified = all.len();
        let newest = all.into_iter().skip(verified.saturating_sub(NEWEST));
        let verifications = newest
            .map(|verification| Ok((verification.clone(), ledger.skill_gates(verification.id)?)))
            .collect::<Result<_, LedgerError>>()?;
        Ok(Self {
            builds: ledger.skill_builds(skill.id)?,
            verifications,
            verified,
            promotions: ledger.promotions(skill.id)?,
            trust: ledger.skill_trust(&skill.project, &skill.name)?,
            artifacts: ledger.skill_artifacts(skill.id)?,
            runs: ledger.skill_runs(skill.id, RUNS)?,
            skill,
        })
    }

    fn document(&self) -> Value {
        let skill = &self.skill;
        json!({
            "schema_version": "skill-show.v1",
            "name": skill.name, "description": skill.description, "status": skill.status,
            "side_effect_class": skill.side_effect, "grants": skill.grants, "io_schema": skill.io_schema,
            "created_at": skill.created_at, "updated_at": skill.updated_at,
            "next_steps": SkillStep::after(skill.status).collect::<Vec<_>>(),
            "trust": self.trust.as_ref().map(promotion),
            "counts": {
                "builds": self.builds.len(), "verifications": self.verified, "promotions": self.promotions.len(),
                "artifacts": self.artifacts.len(),
            },
            "builds": newest(&self.builds).iter().map(build).collect::<Vec<_>>(),
            "verifications": self.verifications.iter().map(verification).collect::<Vec<_>>(),
            "promotions": newest(&self.promotions).iter().map(promotion).collect::<Vec<_>>(),
            "artifacts": newest(&self.artifacts).iter().map(artifact).collect::<Vec<_>>(),
            "runs": self.runs.iter().map(run).collect::<Vec<_>>(),
        })
    }

    fn lines(&self) -> Vec<String> {
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

fn newest<T>(rows: &[T]) -> &[T] {
    rows.get(rows.len().saturating_sub(NEWEST)..)
        .unwrap_or_default()
}

/// JSON of a size that may be shown, or how large it is.
fn bounded(value: &Value) -> Value {
    match value.to_string().len() {
        bytes if bytes > MOST_BYTES => json!({ "left_out_bytes": bytes }),
        _ => value.clone(),
    }
}

fn build(row: &SkillBuildRow) -> Value {
    json!({
        "attempt": row.attempt, "id": row.id, "parent": row.parent, "agent": row.agent, "status": row.status,
        "failure": row.failure.as_ref().map(bounded), "skill_digest": row.skill, "test_digest": row.test,
        "started_at": row.started_at, "ended_at": row.ended_at,
    })
}

fn verification((row, gates): &(VerificationRow, Vec<SkillGateRow>)) -> Value {
    let gates: Vec<Value> = gates
        .iter()
        .map(|gate| {
            json!({
                "gate": gate.gate, "passed": gate.passed, "duration_ms": gate.duration_ms, "findings": bounded(&gate.findings),
                "log": gate.log,
            })
        })
        .collect();
    json!({
        "id": row.id, "build": row.build, "level": row.level, "status": row.status, "skill_digest": row.skill,
        "test_digest": row.test, "started_at": row.started_at, "ended_at": row.ended_at, "gates": gates,
    })
}

fn promotion(row: &PromotionRow) -> Value {
    json!({
        "event": row.event, "verification": row.verification, "from": row.from, "to": row.to, "approved_by": row.approved_by,
        "reason": row.reason, "skill_digest": row.skill, "test_digest": row.test, "at": row.at,
    })
}

fn artifact(row: &SkillArtifactRow) -> Value {
    json!({ "kind": row.kind, "digest": row.digest, "build": row.build, "created_at": row.created_at })
}

fn run(row: &SkillRunRow) -> Value {
    json!({
        "outcome": row.outcome, "promotion": row.promotion, "skill_digest": digest_of(row), "duration_ms": row.duration_ms,
        "findings": bounded(&row.findings), "at": row.at,
    })
}

/// What ran or would have; nothing where there was nothing to read.
fn digest_of(row: &SkillRunRow) -> Option<Digest> {
    Some(row.skill).filter(|digest| *digest != Digest::of(b""))
}
