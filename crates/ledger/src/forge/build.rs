//! Attempts at building a skill, each with the one before it.

use crucible_model::{Digest, Timestamp};
use rusqlite::{Connection, Row, params};
use serde_json::{Value, json};

use super::{
    SkillStatus, Subject, append_skill_event, change_status, member, optional_digest, stored,
    subject, verification,
};
use crate::artifact::put_within;
use crate::chain::unreadable;
use crate::error::LedgerError;
use crate::forge::content::{SkillArtifactKind, attach_within};
use crate::moment::{Moment, instant, number, sql_id};
use crate::recorded_rows::commit;
use crate::store::Ledger;

stored! {
    /// The status of a build attempt.
    SkillBuildStatus {
        /// It is running, or its process was killed.
        Running = "RUNNING",
        /// Its files were copied into the project.
        Succeeded = "SUCCEEDED",
        /// It failed.
        Failed = "FAILED",
        /// It was interrupted.
        Aborted = "ABORTED",
    }
}

/// An attempt that begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSkillBuild {
    /// When.
    pub moment: Moment,
    /// Of which skill.
    pub proposal: u64,
    /// Who writes: a command line or a model.
    pub agent: String,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq)]
pub enum SkillBuildEnd {
    /// Its two files are in the project.
    Succeeded {
        /// The digest of the skill's file.
        skill: Digest,
        /// The digest of its test.
        test: Digest,
    },
    /// It came to nothing; why, as JSON free of secrets.
    Failed(Value),
    /// It was interrupted; why, as JSON free of secrets.
    Aborted(Value),
}

/// A stored attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct SkillBuildRow {
    /// Its number among all.
    pub id: u64,
    /// Of which skill.
    pub proposal: u64,
    /// Its number within the skill, from 1 on.
    pub attempt: u64,
    /// The attempt before it.
    pub parent: Option<u64>,
    /// Who wrote.
    pub agent: String,
    /// How it stands.
    pub status: SkillBuildStatus,
    /// Why it came to nothing.
    pub failure: Option<Value>,
    /// The digest of the skill's file, where it succeeded.
    pub skill: Option<Digest>,
    /// The digest of its test, where it succeeded.
    pub test: Option<Digest>,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
}

const COLUMNS: &str = "id, proposal_id, attempt_number, parent_build_id, agent, status, failure, skill_digest, test_digest, started_at, ended_at";

impl Ledger {
    /// Begins the next attempt: the skill, which has to be proposed or built, counts as proposed again. `packet` builds
    /// the
    /// attempt's packet from its row; the packet is stored with the attempt. The caller holds the lock of the skill: an
    /// attempt or a
    /// verification that still runs is one of a process that was killed, and is ended as aborted.
    ///
    /// # Errors
    ///
    /// [`LedgerError::SkillMoved`] where the skill is verified or trusted, the error of `packet`, or a database error.
    pub fn begin_skill_build<E: From<LedgerError>>(
        &mut self,
        new: &NewSkillBuild,
        packet: impl FnOnce(&SkillBuildRow) -> Result<Vec<u8>, E>,
    ) -> Result<SkillBuildRow, E> {
        let fail = self.fail();
        let transaction = self.connection.transaction().map_err(&fail)?;
        let from = [SkillStatus::Proposed, SkillStatus::Built];
        let skill = change_status(
            &transaction,
            new.proposal,
            &from,
            SkillStatus::Proposed,
            new.moment,
            &fail,
        )?;
        abort_running(&transaction, new.proposal, &skill, new.moment, &fail)?;
        verification::abort_running(&transaction, new.proposal, &skill, new.moment, &fail)?;
        let sql = format!(
            "INSERT INTO builds (proposal_id, attempt_number, parent_build_id, agent, started_at)
             SELECT ?1, 1 + ifnull(max(attempt_number), 0), max(id), ?2, ?3 FROM builds WHERE proposal_id = ?1
             RETURNING {COLUMNS}"
        );
        let row = transaction
            .prepare_cached(&sql)
            .and_then(|mut insert| {
                let values = params![sql_id(new.proposal), new.agent, new.moment.at.to_string()];
                insert.query_row(values, read)
            })
            .map_err(&fail)?;
        let packet = packet(&row)?;
        let kind = SkillArtifactKind::BuildPacket;
        let digest = put_within(&transaction, kind.as_str(), &packet, &fail)?;
        attach_within(
            &transaction,
            new.proposal,
            Some(row.id),
            kind,
            &digest,
            new.moment,
            &fail,
        )?;
        let body = json!({ "build": row.id, "attempt": row.attempt, "parent": row.parent, "agent": row.agent, "packet": digest });
        append_skill_event(
            &transaction,
            &skill,
            new.moment,
            "SKILL_BUILD_STARTED",
            body,
            &[digest],
            &fail,
        )?;
        commit(transaction, new.moment.at, &fail)?;
        Ok(row)
    }

    /// Ends a running attempt. If it succeeded, the skill's status becomes built.
    ///
    /// # Errors
    ///
    /// [`LedgerError::SkillMoved`] where this attempt does not run any more, and all that can be wrong with the
    /// database.
    pub fn end_skill_build(
        &mut self,
        build: &SkillBuildRow,
        moment: Moment,
        end: &SkillBuildEnd,
    ) -> Result<(), LedgerError> {
        let fail = self.fail();
        let transaction = self.connection.transaction().map_err(&fail)?;
        let skill = match end {
            SkillBuildEnd::Succeeded { .. } => {
                let from = [SkillStatus::Proposed];
                change_status(
                    &transaction,
                    build.proposal,
                    &from,
                    SkillStatus::Built,
                    moment,
                    &fail,
                )?
            }
            SkillBuildEnd::Failed(_) | SkillBuildEnd::Aborted(_) => {
                subject(&transaction, build.proposal, &fail)?
            }
        };
        if end_within(&transaction, build.id, moment, end, &fail)? == 0 {
            return Err(LedgerError::SkillMoved {
                name: skill.name,
                status: skill.status.as_str(),
            });
        }
        append_skill_event(
            &transaction,
            &skill,
            moment,
            "SKILL_BUILD_ENDED",
            end.body(build.id),
            &[],
            &fail,
        )?;
        commit(transaction, moment.at, &fail)
    }

    /// The attempts at a skill, in their order.
    ///
    /// # Errors
    ///
    /// Fails when the database cannot be read or a row does not hold what Crucible writes.
    pub fn skill_builds(&self, proposal: u64) -> Result<Vec<SkillBuildRow>, LedgerError> {
        self.connection
            .prepare_cached(&format!(
                "SELECT {COLUMNS} FROM builds WHERE proposal_id = ?1 ORDER BY attempt_number"
            ))
            .and_then(|mut select| select.query_map([sql_id(proposal)], read)?.collect())
            .map_err(self.fail())
    }
}

impl SkillBuildEnd {
    fn status(&self) -> SkillBuildStatus {
        match self {
            Self::Succeeded { .. } => SkillBuildStatus::Succeeded,
            Self::Failed(_) => SkillBuildStatus::Failed,
            Self::Aborted(_) => SkillBuildStatus::Aborted,
        }
    }

    fn body(&self, build: u64) -> Value {
        let status = self.status();
        match self {
            Self::Succeeded { skill, test } => {
                json!({ "build": build, "status": status, "skill": skill, "test": test })
            }
            Self::Failed(why) | Self::Aborted(why) => {
                json!({ "build": build, "status": status, "failure": why })
            }
        }
    }
}

/// Ends every attempt at a skill that runs.
fn abort_running(
    transaction: &Connection,
    proposal: u64,
    skill: &Subject,
    moment: Moment,
    fail: &impl Fn(rusqlite::Error) -> LedgerError,
) -> Result<(), LedgerError> {
    let running: Vec<SkillBuildRow> = transaction
        .prepare_cached(&format!(
            "SELECT {COLUMNS} FROM builds WHERE proposal_id = ?1 AND status = 'RUNNING'"
        ))
        .and_then(|mut select| select.query_map([sql_id(proposal)], read)?.collect())
        .map_err(fail)?;
    for build in running {
        let end = SkillBuildEnd::Aborted(json!({ "interrupted": true }));
        end_within(transaction, build.id, moment, &end, fail)?;
        append_skill_event(
            transaction,
            skill,
            moment,
            "SKILL_BUILD_ENDED",
            end.body(build.id),
            &[],
            fail,
        )?;
    }
    Ok(())
}

fn end_within(
    transaction: &Connection,
    build: u64,
    moment: Moment,
    end: &SkillBuildEnd,
    fail: &impl Fn(rusqlite::Error) -> LedgerError,
) -> Result<usize, LedgerError> {
    let (failure, skill, test) = match end {
        SkillBuildEnd::Succeeded { skill, test } => {
            (None, Some(skill.to_string()), Some(test.to_string()))
        }
        SkillBuildEnd::Failed(why) | SkillBuildEnd::Aborted(why) => {
            (Some(why.to_string()), None, None)
        }
    };
    let sql =
        "UPDATE builds SET status = ?2, failure = ?3, skill_digest = ?4, test_digest = ?5, ended_at = ?6
               WHERE id = ?1 AND status = 'RUNNING'";
    let values = params![
        sql_id(build),
        end.status().as_str(),
        failure,
        skill,
        test,
        moment.at.to_string()
    ];
    transaction
        .prepare_cached(sql)
        .and_then(|mut update| update.execute(values))
        .map_err(fail)
}

fn read(row: &Row<'_>) -> Result<SkillBuildRow, rusqlite::Error> {
    let parent: Option<i64> = row.get(3)?;
    let failure: Option<String> = row.get(6)?;
    let ended: Option<String> = row.get(10)?;
    Ok(SkillBuildRow {
        id: number(row, 0)?,
        proposal: number(row, 1)?,
        attempt: number(row, 2)?,
        parent: parent.map(i64::unsigned_abs),
        agent: row.get(4)?,
        status: member(row, 5, SkillBuildStatus::parse)?,
        failure: failure
            .map(|text| serde_json::from_str(&text).map_err(|error| unreadable(6, error)))
            .transpose()?,
        skill: optional_digest(row, 7)?,
        test: optional_digest(row, 8)?,
        started_at: instant(row, 9)?,
        ended_at: ended.map(|_| instant(row, 10)).transpose()?,
    })
}
