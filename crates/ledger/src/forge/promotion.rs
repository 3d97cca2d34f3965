//! Promotions and demotions: who answered for which bytes.
//!
//! A row is written once and names its event. An edited row is found by the next reader, because the event, which is part of
//! the chain, says otherwise.

use crucible_model::{Digest, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::{Deserialize, Serialize};

use super::proposal::unlike_proposed;
use super::{
    SkillRow, SkillStatus, append_skill_event, change_status, digest, member, skill_run_id,
};
use crate::error::LedgerError;
use crate::moment::{Moment, instant, number, sql_id};
use crate::recorded_rows::commit;
use crate::store::Ledger;

/// The name of the events.
const EVENT: &str = "SKILL_PROMOTED";

/// A step into trust, or out of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPromotion {
    /// When.
    pub moment: Moment,
    /// Of which skill.
    pub proposal: u64,
    /// The verification that it rests on; none where trust is taken away.
    pub verification: Option<u64>,
    /// Where the skill has to stand.
    pub from: SkillStatus,
    /// Where it stands afterwards.
    pub to: SkillStatus,
    /// The person who approves it.
    pub approved_by: String,
    /// Why.
    pub reason: String,
    /// The digest of the skill's file.
    pub skill: Digest,
    /// The digest of its test.
    pub test: Digest,
}

/// Such a step as it stands in the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromotionRow {
    /// The event that records it. A higher number is a later one.
    pub event: u64,
    /// Of which skill.
    pub proposal: u64,
    /// The verification that it rests on.
    pub verification: Option<u64>,
    /// Where the skill stood.
    pub from: SkillStatus,
    /// Where it stands since.
    pub to: SkillStatus,
    /// The person who approves it.
    pub approved_by: String,
    /// Why.
    pub reason: String,
    /// The digest of the skill's file.
    pub skill: Digest,
    /// The digest of its test.
    pub test: Digest,
    /// When.
    pub at: Timestamp,
}

/// The body of an event: all that the row says.
#[derive(Debug, Serialize, Deserialize, PartialEq, Eq)]
struct EventBody {
    proposal: u64,
    verification: Option<u64>,
    from: String,
    to: String,
    approved_by: String,
    reason: String,
    skill: String,
    test: String,
}

const COLUMNS: &str = "event_seq, proposal_id, verification_id, from_status, to_status, approved_by, reason, skill_digest, test_digest, at";

impl Ledger {
    /// Moves a skill into trust or out of it: status, row and event, or nothing. Into trust goes what is verified, by its newest verification,
    /// which passed with these two files; nothing else leaves or reaches trust.
    ///
    /// # Errors
    ///
    /// [`LedgerError::SkillMoved`] where the skill stands elsewhere than `from`, [`LedgerError::NotVerified`] where the step does not rest on
    /// that, and all that can be wrong with the database.
    pub fn promote_skill(&mut self, new: &NewPromotion) -> Result<PromotionRow, LedgerError> {
        let fail = self.fail();
        let transaction = self.connection.transaction().map_err(&fail)?;
        let skill = change_status(
            &transaction,
            new.proposal,
            &[new.from],
            new.to,
            new.moment,
            &fail,
        )?;
        if !rests_on_its_verification(&transaction, new, &fail)? {
            return Err(LedgerError::NotVerified { name: skill.name });
        }
        let mut row = PromotionRow {
            event: 0,
            proposal: new.proposal,
            verification: new.verification,
            from: new.from,
            to: new.to,
            approved_by: new.approved_by.clone(),
            reason: new.reason.clone(),
            skill: new.skill,
            test: new.test,
            at: new.moment.at,
        };
        let body = serde_json::to_value(row.event_body()).map_err(|_| LedgerError::Unreadable {
            what: "a promotion".to_owned(),
        })?;
        row.event =
            append_skill_event(&transaction, &skill, new.moment, EVENT, body, &[], &fail)?.seq;
        transaction
            .prepare_cached(&format!(
                "INSERT INTO promotions ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"
            ))
            .and_then(|mut insert| {
                insert.execute(params![
                    sql_id(row.event),
                    sql_id(row.proposal),
                    row.verification.map(sql_id),
                    row.from.as_str(),
                    row.to.as_str(),
                    row.approved_by,
                    row.reason,
                    row.skill.to_string(),
                    row.test.to_string(),
                    row.at.to_string()
                ])
            })
            .map_err(&fail)?;
        commit(transaction, new.moment.at, &fail)?;
        Ok(row)
    }

    /// The promotions and demotions of a skill, in their order.
    ///
    /// # Errors
    ///
    /// Fails when the database cannot be read or a row does not hold what Crucible writes.
    pub fn promotions(&self, proposal: u64) -> Result<Vec<PromotionRow>, LedgerError> {
        self.connection
            .prepare_cached(&format!(
                "SELECT {COLUMNS} FROM promotions WHERE proposal_id = ?1 ORDER BY event_seq"
            ))
            .and_then(|mut select| select.query_map([sql_id(proposal)], read)?.collect())
            .map_err(self.fail())
    }

    /// The promotion by which a skill of this project is trusted now; nothing where it is not. The newest row is compared with the newest
    /// event of the skill that records a promotion, whose own hash is checked, and with the status: a row that was edited, added or
    /// deleted is noticed. So is a skill that may do something else than what was proposed, and a head of the chain that is not its
    /// last event. The whole chain is read by [`Ledger::verify`] alone.
    ///
    /// # Errors
    ///
    /// [`LedgerError::Damaged`] where row, event and status do not agree, or the head is not the last event.
    pub fn skill_trust(
        &self,
        project: &Digest,
        name: &str,
    ) -> Result<Option<PromotionRow>, LedgerError> {
        // One read transaction is one snapshot, whoever promotes meanwhile.
        let _snapshot = self
            .connection
            .unchecked_transaction()
            .map_err(self.fail())?;
        self.trust_of(project, name)
    }

    /// The skills of a project that are trusted now, each with its promotion, as one look at the ledger tells.
    ///
    /// # Errors
    ///
    /// As [`Ledger::skill_trust`], for any skill of the project.
    pub fn trusted_skills(
        &self,
        project: &Digest,
    ) -> Result<Vec<(SkillRow, PromotionRow)>, LedgerError> {
        let _snapshot = self
            .connection
            .unchecked_transaction()
            .map_err(self.fail())?;
        let mut trusted = Vec::new();
        for skill in self.skills(project)? {
            if let Some(trust) = self.trust_of(project, &skill.name)? {
                trusted.push((skill, trust));
            }
        }
        Ok(trusted)
    }

    fn trust_of(&self, project: &Digest, name: &str) -> Result<Option<PromotionRow>, LedgerError> {
        let fail = self.fail();
        let snapshot = &self.connection;
        let columns = prefixed_columns();
        let sql = format!(
            "SELECT {columns} FROM promotions p JOIN skill_proposals s ON s.id = p.proposal_id
             WHERE s.project = ?1 AND s.name = ?2 ORDER BY p.event_seq DESC LIMIT 1"
        );
        let row = snapshot
            .prepare_cached(&sql)
            .and_then(|mut select| {
                select
                    .query_row(params![project.to_string(), name], read)
                    .optional()
            })
            .map_err(&fail)?;
        let run = skill_run_id(project, name)?;
        let newest_seq: Option<u64> = snapshot
            .prepare_cached(&format!(
                "SELECT max(seq) FROM events WHERE run_id = ?1 AND event = '{EVENT}'"
            ))
            .and_then(|mut select| {
                select.query_row([run.as_str()], |row| row.get::<_, Option<i64>>(0))
            })
            .map_err(&fail)?
            .map(i64::unsigned_abs);
        let skill = self.skill(project, name)?;
        let status = skill.as_ref().map(|skill| skill.status);
        let damaged = |detail: String| LedgerError::Damaged {
            path: self.path().to_owned(),
            detail,
        };
        match (&row, newest_seq) {
            (None, None) => {}
            (Some(row), Some(seq)) if row.event == seq => {
                let agrees = self.event_as_hashed(seq)?.is_some_and(|event| {
                    serde_json::from_value::<EventBody>(event.body)
                        .is_ok_and(|body| body == row.event_body())
                });
                if !agrees {
                    return Err(damaged(format!(
                        "the row of promotion {seq} differs from its event"
                    )));
                }
            }
            (Some(row), Some(seq)) if row.event < seq => {
                return Err(damaged(format!(
                    "event {seq} records a promotion whose row is missing"
                )));
            }
            (None, Some(seq)) => {
                return Err(damaged(format!(
                    "event {seq} records a promotion whose row is missing"
                )));
            }
            (Some(row), _) => {
                return Err(damaged(format!(
                    "no event of this skill records promotion {}",
                    row.event
                )));
            }
        }
        let trusted = row.filter(|row| row.to == SkillStatus::Trusted);
        if trusted.is_some() != (status == Some(SkillStatus::Trusted)) {
            return Err(damaged(format!(
                "the status of the skill {name} is not what its promotions say"
            )));
        }
        if let (Some(_), Some(skill)) = (&trusted, &skill) {
            if !self.is_as_proposed(skill)? {
                return Err(damaged(format!(
                    "the class, the grants or the schemas of the skill {name} are not what was proposed"
                )));
            }
            if !self.ends_at_its_head()? {
                return Err(damaged(
                    "the head of the chain is not its last event".to_owned(),
                ));
            }
        }
        Ok(trusted)
    }
}

/// Whether a step leads out of trust, or into it by the newest verification of the newest attempt, which passed with these two files.
fn rests_on_its_verification(
    transaction: &Connection,
    new: &NewPromotion,
    fail: &impl Fn(rusqlite::Error) -> LedgerError,
) -> Result<bool, LedgerError> {
    match (new.from, new.to, new.verification) {
        (SkillStatus::Verified, SkillStatus::Trusted, Some(verification)) => transaction
            .prepare_cached(
                "SELECT 1 FROM verifications WHERE id = ?1 AND proposal_id = ?2 AND status = 'PASSED'
                 AND skill_digest = ?3 AND test_digest = ?4
                 AND id = (SELECT max(id) FROM verifications WHERE proposal_id = ?2)
                 AND build_id = (SELECT max(id) FROM builds WHERE proposal_id = ?2)",
            )
            .and_then(|mut select| {
                select.exists(params![
                    sql_id(verification),
                    sql_id(new.proposal),
                    new.skill.to_string(),
                    new.test.to_string()
                ])
            })
            .map_err(fail),
        (SkillStatus::Trusted, to, None) => Ok(to != SkillStatus::Trusted),
        _ => Ok(false),
    }
}

/// The columns of a row that is called `p`.
fn prefixed_columns() -> String {
    COLUMNS
        .split(", ")
        .map(|column| format!("p.{column}"))
        .collect::<Vec<_>>()
        .join(", ")
}

impl PromotionRow {
    fn event_body(&self) -> EventBody {
        EventBody {
            proposal: self.proposal,
            verification: self.verification,
            from: self.from.as_str().to_owned(),
            to: self.to.as_str().to_owned(),
            approved_by: self.approved_by.clone(),
            reason: self.reason.clone(),
            skill: self.skill.to_string(),
            test: self.test.to_string(),
        }
    }
}

/// What does not agree about promotions: events and skills by what a reader knows them by, with what is wrong.
pub(crate) fn disagreements(
    connection: &Connection,
) -> Result<Vec<(String, &'static str)>, rusqlite::Error> {
    let mut found = rows_against_events(connection)?;
    found.extend(events_without_rows(connection)?);
    found.extend(trust_against_rows(connection)?);
    found.extend(unlike_proposed(connection)?);
    Ok(found)
}

/// Rows that do not say what their event says, or rest on no verification that passed with the same files.
fn rows_against_events(
    connection: &Connection,
) -> Result<Vec<(String, &'static str)>, rusqlite::Error> {
    let columns = prefixed_columns();
    let sql = format!(
        "SELECT {columns}, e.body, iif(e.ts = p.at, e.run_id, NULL), s.project, s.name,
                p.to_status <> 'TRUSTED' OR EXISTS (
                    SELECT 1 FROM verifications v WHERE v.id = p.verification_id AND v.proposal_id = p.proposal_id
                    AND v.status = 'PASSED' AND v.skill_digest = p.skill_digest AND v.test_digest = p.test_digest)
         FROM promotions p
         LEFT JOIN events e ON e.seq = p.event_seq AND e.event = '{EVENT}'
         LEFT JOIN skill_proposals s ON s.id = p.proposal_id
         ORDER BY p.event_seq"
    );
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let seq: i64 = row.get(0)?;
        let text = |column| row.get::<_, Option<String>>(column).ok().flatten();
        let event_body = text(10).and_then(|body| serde_json::from_str::<EventBody>(&body).ok());
        let own_run = text(12)
            .and_then(|project| project.parse().ok())
            .zip(text(13))
            .and_then(|(project, name)| skill_run_id(&project, &name).ok());
        let is_own = text(11).is_some_and(|run| own_run.is_some_and(|own| own.as_str() == run));
        let agrees = read(row).is_ok_and(|row| event_body.as_ref() == Some(&row.event_body()));
        if !agrees || !is_own {
            found.push((
                format!("event {seq}"),
                "the row of this promotion differs from its event",
            ));
        } else if !row.get::<_, bool>(14)? {
            found.push((
                format!("event {seq}"),
                "no verification that passed with the same files is behind this promotion",
            ));
        }
    }
    Ok(found)
}

/// Events that tell of a promotion whose row is gone.
fn events_without_rows(
    connection: &Connection,
) -> Result<Vec<(String, &'static str)>, rusqlite::Error> {
    let sql = format!(
        "SELECT seq FROM events WHERE event = '{EVENT}' AND seq NOT IN (SELECT event_seq FROM promotions) ORDER BY seq"
    );
    let mut statement = connection.prepare(&sql)?;
    let missing_rows = statement.query_map([], |row| row.get::<_, i64>(0))?;
    missing_rows
        .map(|seq| {
            Ok((
                format!("event {}", seq?),
                "the row of this promotion was deleted",
            ))
        })
        .collect()
}

/// Skills whose status is not what their newest promotion says.
fn trust_against_rows(
    connection: &Connection,
) -> Result<Vec<(String, &'static str)>, rusqlite::Error> {
    let sql = "SELECT s.id FROM skill_proposals s
               WHERE (s.status = 'TRUSTED') <> ifnull((SELECT p.to_status = 'TRUSTED' FROM promotions p
                      WHERE p.proposal_id = s.id ORDER BY p.event_seq DESC LIMIT 1), 0) ORDER BY s.id";
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map([], |row| row.get::<_, i64>(0))?;
    rows.map(|id| {
        Ok((
            format!("skill {}", id?),
            "its status is not what its promotions say",
        ))
    })
    .collect()
}

fn read(row: &Row<'_>) -> Result<PromotionRow, rusqlite::Error> {
    let verification: Option<i64> = row.get(2)?;
    Ok(PromotionRow {
        event: number(row, 0)?,
        proposal: number(row, 1)?,
        verification: verification.map(i64::unsigned_abs),
        from: member(row, 3, SkillStatus::parse)?,
        to: member(row, 4, SkillStatus::parse)?,
        approved_by: row.get(5)?,
        reason: row.get(6)?,
        skill: digest(row, 7)?,
        test: digest(row, 8)?,
        at: instant(row, 9)?,
    })
}
