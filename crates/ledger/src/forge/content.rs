//! What a skill's story keeps: artifacts by kind, and the runs of trusted skills.

use crucible_model::{Digest, Timestamp};
use rusqlite::{Connection, Row, params};
use serde_json::{Value, json};

use super::{append_skill_event, digest, json as json_of, member, stored, subject};
use crate::artifact::put_within;
use crate::error::LedgerError;
use crate::moment::{Moment, instant, number, sql_id};
use crate::recorded_rows::commit;
use crate::store::Ledger;

stored! {
    /// What an artifact of a skill is.
    SkillArtifactKind {
        /// What was proposed.
        SkillSpec = "SKILL_SPEC",
        /// What an attempt was asked.
        BuildPacket = "BUILD_PACKET",
        /// What an attempt's agent printed.
        BuildLog = "BUILD_LOG",
        /// What the gates said.
        VerificationReport = "VERIFICATION_REPORT",
        /// What was found out about a failure.
        ResearchNote = "RESEARCH_NOTE",
        /// What an attempt changed.
        PatchSummary = "PATCH_SUMMARY",
        /// Anything else.
        Note = "NOTE",
    }
}

stored! {
    /// How a run of a skill ended.
    SkillRunOutcome {
        /// It gave a result of the declared form.
        Succeeded = "SUCCEEDED",
        /// It failed, or gave something else.
        Failed = "FAILED",
        /// It tried what its class does not allow.
        Denied = "DENIED",
        /// Nothing was run: the bytes are not the approved ones.
        Refused = "REFUSED",
    }
}

/// An artifact of a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillArtifactRow {
    /// The attempt it belongs to.
    pub build: Option<u64>,
    /// What it is.
    pub kind: SkillArtifactKind,
    /// The digest of its bytes.
    pub digest: Digest,
    /// When it was kept.
    pub created_at: Timestamp,
}

/// A run that ended.
#[derive(Debug, Clone, PartialEq)]
pub struct NewSkillRun {
    /// When.
    pub moment: Moment,
    /// Of which skill.
    pub proposal: u64,
    /// The promotion that it was run by, or refused by ([`PromotionRow::event`](super::PromotionRow)); none where none was known.
    pub promotion: Option<u64>,
    /// The digest of the bytes that ran, or would have.
    pub skill: Digest,
    /// How it ended.
    pub outcome: SkillRunOutcome,
    /// What was found: a list of findings.
    pub findings: Value,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
}

/// A stored run.
#[derive(Debug, Clone, PartialEq)]
pub struct SkillRunRow {
    /// The promotion that it was run by, or refused by; none where none was known.
    pub promotion: Option<u64>,
    /// The digest of the bytes that ran, or would have.
    pub skill: Digest,
    /// How it ended.
    pub outcome: SkillRunOutcome,
    /// What was found: a list of findings.
    pub findings: Value,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// When.
    pub at: Timestamp,
}

impl Ledger {
    /// Keeps an artifact of a skill, free of secrets.
    ///
    /// # Errors
    ///
    /// Fails when the bytes are too large, and for all that can be wrong with the database.
    pub fn keep_skill_artifact(
        &mut self,
        proposal: u64,
        build: Option<u64>,
        kind: SkillArtifactKind,
        bytes: &[u8],
        moment: Moment,
    ) -> Result<Digest, LedgerError> {
        let fail = self.fail();
        let transaction = self.connection.transaction().map_err(&fail)?;
        let skill = subject(&transaction, proposal, &fail)?;
        let digest = put_within(&transaction, kind.as_str(), bytes, &fail)?;
        attach_within(&transaction, proposal, build, kind, &digest, moment, &fail)?;
        let body = json!({ "kind": kind, "build": build });
        append_skill_event(
            &transaction,
            &skill,
            moment,
            "SKILL_ARTIFACT",
            body,
            &[digest],
            &fail,
        )?;
        commit(transaction, moment.at, &fail)?;
        Ok(digest)
    }

    /// The artifacts of a skill, in the order in which they were kept.
    ///
    /// # Errors
    ///
    /// Fails when the database cannot be read or a row does not hold what Crucible writes.
    pub fn skill_artifacts(&self, proposal: u64) -> Result<Vec<SkillArtifactRow>, LedgerError> {
        let read = |row: &Row<'_>| {
            let build: Option<i64> = row.get(0)?;
            Ok(SkillArtifactRow {
                build: build.map(i64::unsigned_abs),
                kind: member(row, 1, SkillArtifactKind::parse)?,
                digest: digest(row, 2)?,
                created_at: instant(row, 3)?,
            })
        };
        self.connection
            .prepare_cached(
                "SELECT build_id, kind, digest, created_at FROM skill_artifacts WHERE proposal_id = ?1 ORDER BY id",
            )
            .and_then(|mut select| select.query_map([sql_id(proposal)], read)?.collect())
            .map_err(self.fail())
    }

    /// Records a run that ended, or that was refused. A run that ended after its skill was demoted is recorded all the same.
    ///
    /// # Errors
    ///
    /// [`LedgerError::NotPromoted`] if this skill was not promoted by this row, or other bytes were promoted than those that ran; and all
    /// that can be wrong with the database.
    pub fn record_skill_run(&mut self, new: &NewSkillRun) -> Result<(), LedgerError> {
        let fail = self.fail();
        let transaction = self.connection.transaction().map_err(&fail)?;
        let skill = subject(&transaction, new.proposal, &fail)?;
        if let Some(promotion) = new.promotion {
            let refused = new.outcome == SkillRunOutcome::Refused;
            let promoted = transaction
                .prepare_cached(
                    "SELECT 1 FROM promotions WHERE event_seq = ?1 AND proposal_id = ?2 AND to_status = 'TRUSTED'
                     AND (skill_digest = ?3 OR ?4)",
                )
                .and_then(|mut select| {
                    let values =
                        params![sql_id(promotion), sql_id(new.proposal), new.skill.to_string(), refused];
                    select.exists(values)
                })
                .map_err(&fail)?;
            if !promoted {
                return Err(LedgerError::NotPromoted { name: skill.name });
            }
        }
        transaction
            .prepare_cached(
                "INSERT INTO skill_runs (proposal_id, promotion, skill_digest, outcome, findings, duration_ms, at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )
            .and_then(|mut insert| {
                insert.execute(params![
                    sql_id(new.proposal),
                    new.promotion.map(sql_id),
                    new.skill.to_string(),
                    new.outcome.as_str(),
                    new.findings.to_string(),
                    sql_id(new.duration_ms),
                    new.moment.at.to_string()
                ])
            })
            .map_err(&fail)?;
        let body = json!({
            "promotion": new.promotion, "skill": new.skill, "outcome": new.outcome, "findings": new.findings, "duration_ms": new.duration_ms,
        });
        append_skill_event(
            &transaction,
            &skill,
            new.moment,
            "SKILL_RUN",
            body,
            &[],
            &fail,
        )?;
        commit(transaction, new.moment.at, &fail)
    }

    /// The last runs of a skill, the newest first, `most` of them.
    ///
    /// # Errors
    ///
    /// Fails when the database cannot be read or a row does not hold what Crucible writes.
    pub fn skill_runs(&self, proposal: u64, most: u32) -> Result<Vec<SkillRunRow>, LedgerError> {
        let read = |row: &Row<'_>| {
            let promotion: Option<i64> = row.get(0)?;
            Ok(SkillRunRow {
                promotion: promotion.map(i64::unsigned_abs),
                skill: digest(row, 1)?,
                outcome: member(row, 2, SkillRunOutcome::parse)?,
                findings: json_of(row, 3)?,
                duration_ms: number(row, 4)?,
                at: instant(row, 5)?,
            })
        };
        self.connection
            .prepare_cached(
                "SELECT promotion, skill_digest, outcome, findings, duration_ms, at FROM skill_runs
                 WHERE proposal_id = ?1 ORDER BY id DESC LIMIT ?2",
            )
            .and_then(|mut select| {
                select
                    .query_map(params![sql_id(proposal), most], read)?
                    .collect()
            })
            .map_err(self.fail())
    }
}

/// Writes down which kept bytes belong to a skill, within a transaction.
pub(super) fn attach_within(
    transaction: &Connection,
    proposal: u64,
    build: Option<u64>,
    kind: SkillArtifactKind,
    digest: &Digest,
    moment: Moment,
    fail: &impl Fn(rusqlite::Error) -> LedgerError,
) -> Result<(), LedgerError> {
    transaction
        .prepare_cached(
            "INSERT INTO skill_artifacts (proposal_id, build_id, kind, digest, created_at) VALUES (?1, ?2, ?3, ?4, ?5)",
        )
        .and_then(|mut insert| {
            insert.execute(params![
                sql_id(proposal),
                build.map(sql_id),
                kind.as_str(),
                digest.to_string(),
                moment.at.to_string()
            ])
        })
        .map_err(fail)?;
    Ok(())
}
