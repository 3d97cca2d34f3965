//! The JSON documents of the commands on skills, and the history of a skill that one of them holds.

use crucible_ledger::{
    Ledger, LedgerError, PromotionRow, SkillArtifactRow, SkillBuildRow, SkillGateRow, SkillRow,
    SkillRunRow, VerificationRow,
};
use crucible_model::{Digest, Finding};
use serde_json::{Value, json};

use crate::build::{SkillBuildOutcome, SkillBuildReport};
use crate::gates::SkillGateOutcome;
use crate::name::SkillName;
use crate::paths::SkillPaths;
use crate::project::ForgeProject;
use crate::registry::{REGISTRY_FILE, SkillRegistry};
use crate::research::ResearchOutcome;
use crate::runner::{SkillEnd, SkillRunReport};
use crate::status::SkillStep;
use crate::trust::TrustChange;
use crate::verify::{SkillVerification, VerificationResult};

/// The newest runs of a history.
const RUNS: u32 = 20;
/// The newest entries of every other kind in a history.
const NEWEST: usize = 50;
/// The most bytes of a failure, or of the findings of a gate or a run.
const MAX_BYTES: usize = 8 * 1024;

/// What the ledger knows of a skill.
pub struct SkillHistory {
    /// The current row of the skill.
    pub skill: SkillRow,
    /// The attempts to build it.
    pub builds: Vec<SkillBuildRow>,
    /// The newest verifications, with their gates.
    pub verifications: Vec<(VerificationRow, Vec<SkillGateRow>)>,
    /// The number of all verifications.
    pub verified: usize,
    /// The promotions and demotions.
    pub promotions: Vec<PromotionRow>,
    /// What the ledger stores of its attempts and gates.
    pub artifacts: Vec<SkillArtifactRow>,
    /// The newest runs.
    pub runs: Vec<SkillRunRow>,
    /// The promotion in force.
    trust: Option<PromotionRow>,
}

impl SkillHistory {
    /// Reads the history of a skill.
    ///
    /// # Errors
    ///
    /// Fails if the ledger cannot be read.
    pub fn read(ledger: &Ledger, skill: SkillRow) -> Result<Self, LedgerError> {
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

    /// Returns the document of `skill show`.
    #[must_use]
    pub fn document(&self, paths: &SkillPaths) -> Value {
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
            "files": { "skill": paths.skill, "test": paths.test, "module": paths.module, "class": paths.class },
        })
    }
}

impl SkillRegistry {
    /// Returns the document of `skill list`: these skills of a project, compared with what is trusted.
    #[must_use]
    pub fn list_document(&self, project: &ForgeProject, skills: &[SkillRow]) -> Value {
        let row = |skill: &SkillRow| {
            let file = skill.name.parse().ok();
            let file = file.and_then(|name| self.trusted_file(project, &name));
            json!({
                "name": skill.name, "status": skill.status, "side_effect_class": skill.side_effect,
                "description": skill.description, "created_at": skill.created_at, "updated_at": skill.updated_at,
                "file": file, "next_steps": SkillStep::after(skill.status).collect::<Vec<_>>(),
            })
        };
        json!({
            "schema_version": "skill-list.v1", "project": project.root(), "package": project.package(),
            "skills": skills.iter().map(row).collect::<Vec<_>>(),
        })
    }
}

/// Returns the newest rows, as many as a history shows.
pub(crate) fn newest<T>(rows: &[T]) -> &[T] {
    rows.get(rows.len().saturating_sub(NEWEST)..)
        .unwrap_or_default()
}

/// JSON up to a limit of bytes, or its size.
fn bounded(value: &Value) -> Value {
    match value.to_string().len() {
        bytes if bytes > MAX_BYTES => json!({ "left_out_bytes": bytes }),
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
    let gate = |gate: &SkillGateRow| {
        json!({
            "gate": gate.gate, "passed": gate.passed, "duration_ms": gate.duration_ms, "findings": bounded(&gate.findings),
            "log": gate.log,
        })
    };
    json!({
        "id": row.id, "build": row.build, "level": row.level, "status": row.status, "skill_digest": row.skill,
        "test_digest": row.test, "started_at": row.started_at, "ended_at": row.ended_at,
        "gates": gates.iter().map(gate).collect::<Vec<_>>(),
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

/// Returns the digest of the bytes that ran or would have, if there were any.
pub(crate) fn digest_of(row: &SkillRunRow) -> Option<Digest> {
    Some(row.skill).filter(|digest| *digest != Digest::compute(b""))
}

impl SkillBuildReport {
    /// Returns the findings of the attempt.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        match &self.outcome {
            SkillBuildOutcome::Built { findings, .. } => findings,
            SkillBuildOutcome::Failed(failure) => &failure.findings,
        }
    }

    /// Returns the document of `skill build`.
    #[must_use]
    pub fn document(&self, name: &SkillName) -> Value {
        let (verdict, failure, skill, test) = match &self.outcome {
            SkillBuildOutcome::Built { skill, test, .. } => ("pass", None, Some(skill), Some(test)),
            SkillBuildOutcome::Failed(failure) => ("fail", Some(failure.kind), None, None),
        };
        json!({
            "schema_version": "skill-build.v1", "verdict": verdict, "findings": self.findings(),
            "name": name, "attempt": self.build.attempt, "agent": self.build.agent,
            "status": if verdict == "pass" { "SUCCEEDED" } else { "FAILED" },
            "failure": failure, "measured": self.facts, "skill_digest": skill, "test_digest": test,
            "diff": String::from_utf8_lossy(&self.diff), "packet": self.packet, "log": self.log,
            "isolation": self.receipt,
        })
    }
}

impl VerificationResult {
    /// Returns the document of `skill verify`.
    #[must_use]
    pub fn document(&self, name: &SkillName, verification: &SkillVerification<'_>) -> Value {
        let (row, report) = (&self.row, self.verdict.report("skill-verify.v1"));
        let tools: Vec<Value> = verification
            .tools()
            .all()
            .map(|tool| json!({ "name": tool.name, "version": tool.version }))
            .to_vec();
        json!({
            "schema_version": report.schema_version, "verdict": report.verdict, "findings": report.findings,
            "name": name, "status": self.status, "level": row.level, "verification": row.id,
            "build": row.build, "skill_digest": row.skill, "test_digest": row.test,
            "gates": self.gates.iter().map(SkillGateOutcome::document).collect::<Vec<_>>(),
            "tools": tools, "report": self.report,
        })
    }
}

impl TrustChange {
    /// Returns the document of `skill promote` and `skill demote`.
    #[must_use]
    pub fn document(&self, name: &SkillName) -> Value {
        let report = self.verdict.report("skill-promote.v1");
        json!({
            "schema_version": report.schema_version, "verdict": report.verdict, "findings": report.findings, "name": name,
            "change": self.promotion.as_ref().map(promotion), "registry": REGISTRY_FILE,
        })
    }
}

impl SkillRunReport {
    /// Returns the document of `skill run`.
    #[must_use]
    pub fn document(&self, name: &SkillName) -> Value {
        let (report, printed) = (self.verdict.report("skill-run.v1"), &self.printed);
        let traceback = match &self.end {
            Some(SkillEnd::Raised { traceback, .. }) => Some(traceback),
            Some(_) | None => None,
        };
        json!({
            "schema_version": report.schema_version, "verdict": report.verdict, "findings": report.findings,
            "name": name, "outcome": self.outcome, "result": self.result(), "traceback": traceback,
            "skill_digest": self.skill, "promotion": self.promotion,
            "duration_ms": u64::try_from(self.duration.as_millis()).unwrap_or(u64::MAX),
            "printed": { "text": printed.text(), "bytes": printed.total, "extent": printed.extent },
            "isolation": self.receipt,
        })
    }
}

impl ResearchOutcome {
    /// Returns the command that builds the skill again.
    #[must_use]
    pub fn next(&self, name: &SkillName) -> String {
        let review = match self.unreviewed.is_empty() {
            true => "",
            false => " --reviewed-by WHO --reason TEXT",
        };
        format!("crucible skill build {name}{review}")
    }

    /// Returns the document of `skill research`.
    #[must_use]
    pub fn document(&self, name: &SkillName) -> Value {
        let (note, diagnosis) = (&self.note, &self.note.diagnosis);
        let mut advice = json!(note.advice);
        if let Some(proposed) = &self.proposed {
            advice["proposed"] = json!(proposed);
        }
        json!({
            "schema_version": "skill-research.v1",
            "name": name, "attempt": note.attempt, "verification": note.verification,
            "failures_in_a_row": note.failures_in_a_row,
            "kind": diagnosis.kind, "basis": diagnosis.basis, "why": diagnosis.why,
            "facts": diagnosis.facts, "facts_left_out": diagnosis.facts_left_out, "measured": diagnosis.measured,
            "log": note.log, "excerpt": note.excerpt, "advice": advice, "triggers": note.triggers,
            "needs_review": self.unreviewed, "note": self.digest, "next": self.next(name),
        })
    }
}
