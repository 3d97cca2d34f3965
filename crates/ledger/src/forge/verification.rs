//! Verifications: the gates that the files of a skill went through, one by one.

use crucible_model::{Digest, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::{Value, json};

use super::{
    SkillBuildStatus, SkillStatus, Subject, append_skill_event, change_status, digest,
    json as json_of, member, optional_digest, stored, subject,
};
use crate::chain::unreadable;
use crate::error::LedgerError;
use crate::moment::{Moment, instant, number, sql_id};
use crate::recorded_rows::commit;
use crate::store::Ledger;

stored! {
    /// How much is verified.
    VerificationLevel {
        /// The skill and its test.
        Skill = "skill",
        /// The project's whole suite as well.
        Full = "full",
    }
}

stored! {
    /// How a verification stands.
    VerificationStatus {
        /// It goes on, or its process was killed.
        Running = "RUNNING",
        /// Every gate passed.
        Passed = "PASSED",
        /// A gate did not pass.
        Failed = "FAILED",
        /// It was interrupted.
        Aborted = "ABORTED",
    }
}

/// A verification that begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewVerification {
    /// When.
    pub moment: Moment,
    /// Of which skill.
    pub proposal: u64,
    /// Of which attempt.
    pub build: u64,
    /// How much.
    pub level: VerificationLevel,
    /// The names of the gates that it has to pass, at least one.
    pub required: Vec<String>,
    /// The digest of the skill's file as the gates get it.
    pub skill: Digest,
    /// The digest of its test as the gates get it.
    pub test: Digest,
}

/// How a verification ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerificationEnd {
    /// Every recorded gate passed, and so did those that the verification names: the skill is verified.
    Passed,
    /// A gate did not: the skill is built, and no more.
    Failed,
    /// It was interrupted: the skill is built, and no more.
    Aborted,
}

impl VerificationEnd {
    const fn status(self) -> VerificationStatus {
        match self {
            Self::Passed => VerificationStatus::Passed,
            Self::Failed => VerificationStatus::Failed,
            Self::Aborted => VerificationStatus::Aborted,
        }
    }
}

/// What came of a gate.
#[derive(Debug, Clone, PartialEq)]
pub struct SkillGateRow {
    /// Its name.
    pub gate: String,
    /// Whether it passed.
    pub passed: bool,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// What it found: a list of findings.
    pub findings: Value,
    /// What it printed, where it is a program: an artifact.
    pub log: Option<Digest>,
}

/// A verification as it stands in the ledger.
#[derive(Debug, Clone, PartialEq)]
pub struct VerificationRow {
    /// Its number.
    pub id: u64,
    /// Of which skill.
    pub proposal: u64,
    /// Of which attempt.
    pub build: u64,
    /// How much.
    pub level: VerificationLevel,
    /// The names of the gates that it has to pass.
    pub required: Vec<String>,
    /// How it stands.
    pub status: VerificationStatus,
    /// The digest of the skill's file as the gates got it.
    pub skill: Digest,
    /// The digest of its test as the gates got it.
    pub test: Digest,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
}

const COLUMNS: &str = "id, proposal_id, build_id, level, status, skill_digest, test_digest, started_at, ended_at, required_gates";

impl Ledger {
    /// Begins a verification of a skill that is built or was verified before. The caller holds the lock of the skill: a verification
    /// that still runs is one of a process that was killed, and is ended as aborted.
    ///
    /// # Errors
    ///
    /// [`LedgerError::SkillMoved`] where the skill is proposed or trusted or the attempt is not the newest, which succeeded; fails where no
    /// gate is named, and for all that can be wrong with the database.
    pub fn begin_verification(
        &mut self,
        new: &NewVerification,
    ) -> Result<VerificationRow, LedgerError> {
        let fail = self.fail();
        let transaction = self.connection.transaction().map_err(&fail)?;
        let from = [SkillStatus::Built, SkillStatus::Verified];
        let skill = change_status(
            &transaction,
            new.proposal,
            &from,
            SkillStatus::Built,
            new.moment,
            &fail,
        )?;
        abort_running(&transaction, new.proposal, &skill, new.moment, &fail)?;
        let newest = newest_build(&transaction, new.proposal, &fail)?;
        if newest != Some((new.build, SkillBuildStatus::Succeeded)) {
            return Err(LedgerError::SkillMoved {
                name: skill.name,
                status: skill.status.as_str(),
            });
        }
        let sql = format!(
            "INSERT INTO verifications (proposal_id, build_id, level, skill_digest, test_digest, started_at, required_gates)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) RETURNING {COLUMNS}"
        );
        let row = transaction
            .prepare_cached(&sql)
            .and_then(|mut insert| {
                let values = params![
                    sql_id(new.proposal),
                    sql_id(new.build),
                    new.level.as_str(),
                    new.skill.to_string(),
                    new.test.to_string(),
                    new.moment.at.to_string(),
                    Value::from(new.required.as_slice()).to_string()
                ];
                insert.query_row(values, read)
            })
            .map_err(&fail)?;
        let body = json!({
            "verification": row.id, "build": row.build, "level": row.level, "skill": row.skill, "test": row.test,
        });
        append_skill_event(
            &transaction,
            &skill,
            new.moment,
            "SKILL_VERIFICATION_STARTED",
            body,
            &[],
            &fail,
        )?;
        commit(transaction, new.moment.at, &fail)?;
        Ok(row)
    }

    /// Records what came of a gate, when it came. Its log has to be an artifact already.
    ///
    /// # Errors
    ///
    /// [`LedgerError::SkillMoved`] where the verification does not run any more; fails where the gate is recorded already, and for all that can
    /// be wrong with the database.
    pub fn record_skill_gate(
        &mut self,
        verification: &VerificationRow,
        moment: Moment,
        result: &SkillGateRow,
    ) -> Result<(), LedgerError> {
        let fail = self.fail();
        let transaction = self.connection.transaction().map_err(&fail)?;
        let skill = subject(&transaction, verification.proposal, &fail)?;
        let running = "SELECT 1 FROM verifications WHERE id = ?1 AND status = 'RUNNING'";
        let runs = transaction
            .prepare_cached(running)
            .and_then(|mut select| select.exists([sql_id(verification.id)]))
            .map_err(&fail)?;
        if !runs {
            return Err(LedgerError::SkillMoved {
                name: skill.name,
                status: skill.status.as_str(),
            });
        }
        let sql =
            "INSERT INTO gate_results (verification_id, gate, passed, duration_ms, findings, log)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        transaction
            .prepare_cached(sql)
            .and_then(|mut insert| {
                insert.execute(params![
                    sql_id(verification.id),
                    result.gate,
                    result.passed,
                    sql_id(result.duration_ms),
                    result.findings.to_string(),
                    result.log.map(|log| log.to_string())
                ])
            })
            .map_err(&fail)?;
        let body = json!({
            "verification": verification.id, "gate": result.gate, "passed": result.passed, "duration_ms": result.duration_ms,
            "findings": result.findings,
        });
        let logs: Vec<Digest> = result.log.into_iter().collect();
        append_skill_event(
            &transaction,
            &skill,
            moment,
            "SKILL_GATE_FINISHED",
            body,
            &logs,
            &fail,
        )?;
        commit(transaction, moment.at, &fail)
    }

    /// Ends a verification that runs.
    ///
    /// # Errors
    ///
    /// [`LedgerError::SkillMoved`] where the skill was rebuilt meanwhile or the verification does not run,
    /// [`LedgerError::GatesNotPassed`] where it is to end as passed without all that takes, and all that can be wrong with the database.
    pub fn end_verification(
        &mut self,
        verification: &VerificationRow,
        moment: Moment,
        end: VerificationEnd,
    ) -> Result<(), LedgerError> {
        let fail = self.fail();
        let transaction = self.connection.transaction().map_err(&fail)?;
        let skill = match end {
            VerificationEnd::Passed => {
                let (from, to) = ([SkillStatus::Built], SkillStatus::Verified);
                change_status(
                    &transaction,
                    verification.proposal,
                    &from,
                    to,
                    moment,
                    &fail,
                )?
            }
            VerificationEnd::Failed | VerificationEnd::Aborted => {
                subject(&transaction, verification.proposal, &fail)?
            }
        };
        if end == VerificationEnd::Passed {
            let gates = gates_within(&transaction, verification.id, &fail)?;
            let missing = not_passed(&verification.required, &gates);
            if !missing.is_empty() {
                return Err(LedgerError::GatesNotPassed {
                    name: skill.name,
                    missing: missing.join(", "),
                });
            }
        }
        if end_within(&transaction, verification.id, moment, end, &fail)? == 0 {
            return Err(LedgerError::SkillMoved {
                name: skill.name,
                status: skill.status.as_str(),
            });
        }
        tell_end(&transaction, verification.id, &skill, moment, end, &fail)?;
        commit(transaction, moment.at, &fail)
    }

    /// The verifications of a skill, in their order.
    ///
    /// # Errors
    ///
    /// Fails when the database cannot be read or a row does not hold what Crucible writes.
    pub fn verifications(&self, proposal: u64) -> Result<Vec<VerificationRow>, LedgerError> {
        self.connection
            .prepare_cached(&format!(
                "SELECT {COLUMNS} FROM verifications WHERE proposal_id = ?1 ORDER BY id"
            ))
            .and_then(|mut select| select.query_map([sql_id(proposal)], read)?.collect())
            .map_err(self.fail())
    }

    /// What came of the gates of a verification.
    ///
    /// # Errors
    ///
    /// As [`Ledger::verifications`].
    pub fn skill_gates(&self, verification: u64) -> Result<Vec<SkillGateRow>, LedgerError> {
        gates_within(&self.connection, verification, &self.fail())
    }
}

/// Ends every running verification of a skill, and records it.
pub(super) fn abort_running(
    transaction: &Connection,
    proposal: u64,
    skill: &Subject,
    moment: Moment,
    fail: &impl Fn(rusqlite::Error) -> LedgerError,
) -> Result<(), LedgerError> {
    let running: Vec<u64> = transaction
        .prepare_cached(
            "SELECT id FROM verifications WHERE proposal_id = ?1 AND status = 'RUNNING' ORDER BY id",
        )
        .and_then(|mut select| select.query_map([sql_id(proposal)], |row| number(row, 0))?.collect())
        .map_err(fail)?;
    for verification in running {
        end_within(
            transaction,
            verification,
            moment,
            VerificationEnd::Aborted,
            fail,
        )?;
        tell_end(
            transaction,
            verification,
            skill,
            moment,
            VerificationEnd::Aborted,
            fail,
        )?;
    }
    Ok(())
}

fn end_within(
    transaction: &Connection,
    verification: u64,
    moment: Moment,
    end: VerificationEnd,
    fail: &impl Fn(rusqlite::Error) -> LedgerError,
) -> Result<usize, LedgerError> {
    let sql =
        "UPDATE verifications SET status = ?2, ended_at = ?3 WHERE id = ?1 AND status = 'RUNNING'";
    let values = params![
        sql_id(verification),
        end.status().as_str(),
        moment.at.to_string()
    ];
    transaction
        .prepare_cached(sql)
        .and_then(|mut update| update.execute(values))
        .map_err(fail)
}

fn tell_end(
    transaction: &Connection,
    verification: u64,
    skill: &Subject,
    moment: Moment,
    end: VerificationEnd,
    fail: &impl Fn(rusqlite::Error) -> LedgerError,
) -> Result<(), LedgerError> {
    let body = json!({ "verification": verification, "status": end.status() });
    append_skill_event(
        transaction,
        skill,
        moment,
        "SKILL_VERIFICATION_ENDED",
        body,
        &[],
        fail,
    )
    .map(drop)
}

/// The newest attempt at a skill, with how it stands.
fn newest_build(
    transaction: &Connection,
    proposal: u64,
    fail: &impl Fn(rusqlite::Error) -> LedgerError,
) -> Result<Option<(u64, SkillBuildStatus)>, LedgerError> {
    let sql =
        "SELECT id, status FROM builds WHERE proposal_id = ?1 ORDER BY attempt_number DESC LIMIT 1";
    let read = |row: &Row<'_>| Ok((number(row, 0)?, member(row, 1, SkillBuildStatus::parse)?));
    transaction
        .prepare_cached(sql)
        .and_then(|mut select| select.query_row([sql_id(proposal)], read).optional())
        .map_err(fail)
}

fn gates_within(
    connection: &Connection,
    verification: u64,
    fail: &impl Fn(rusqlite::Error) -> LedgerError,
) -> Result<Vec<SkillGateRow>, LedgerError> {
    let sql = "SELECT gate, passed, duration_ms, findings, log FROM gate_results WHERE verification_id = ?1 ORDER BY gate";
    let read = |row: &Row<'_>| {
        Ok(SkillGateRow {
            gate: row.get(0)?,
            passed: row.get(1)?,
            duration_ms: number(row, 2)?,
            findings: json_of(row, 3)?,
            log: optional_digest(row, 4)?,
        })
    };
    connection
        .prepare_cached(sql)
        .and_then(|mut select| select.query_map([sql_id(verification)], read)?.collect())
        .map_err(fail)
}

/// The gates that have to pass and did not, or were not run.
fn not_passed<'a>(required: &'a [String], gates: &'a [SkillGateRow]) -> Vec<&'a str> {
    let lacking = required
        .iter()
        .filter(|gate| !gates.iter().any(|row| row.gate == **gate));
    let failed = gates.iter().filter(|row| !row.passed).map(|row| &row.gate);
    lacking.chain(failed).map(String::as_str).collect()
}

fn read(row: &Row<'_>) -> Result<VerificationRow, rusqlite::Error> {
    let ended: Option<String> = row.get(8)?;
    Ok(VerificationRow {
        id: number(row, 0)?,
        proposal: number(row, 1)?,
        build: number(row, 2)?,
        level: member(row, 3, VerificationLevel::parse)?,
        status: member(row, 4, VerificationStatus::parse)?,
        skill: digest(row, 5)?,
        test: digest(row, 6)?,
        started_at: instant(row, 7)?,
        ended_at: ended.map(|_| instant(row, 8)).transpose()?,
        required: serde_json::from_value(json_of(row, 9)?).map_err(|error| unreadable(9, error))?,
    })
}
