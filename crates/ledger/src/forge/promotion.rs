//! Promotions and demotions: who answered for which bytes.
//!
//! A row is written once and names its event. Whoever edits the row is found by the next reader, because the event, which is part of
//! the chain, says otherwise.

use crucible_model::{Digest, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::{Deserialize, Serialize};

use super::{SkillStatus, digest, member, move_on, skill_run_id, tell};
use crate::error::LedgerError;
use crate::moment::{Moment, instant, number, sql_id};
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
    /// Who answers for it.
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
    /// The event that tells of it. A higher number is a later one.
    pub event: u64,
    /// Of which skill.
    pub proposal: u64,
    /// The verification that it rests on.
    pub verification: Option<u64>,
    /// Where the skill stood.
    pub from: SkillStatus,
    /// Where it stands since.
    pub to: SkillStatus,
    /// Who answers for it.
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
struct Told {
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
    /// Moves a skill into trust or out of it: status, row and event, or nothing.
    ///
    /// # Errors
    ///
    /// [`LedgerError::SkillMoved`] where the skill stands elsewhere than `from`, and all that can be wrong with the database.
    pub fn promote_skill(&mut self, new: &NewPromotion) -> Result<PromotionRow, LedgerError> {
        let fail = self.fail();
        let transaction = self.connection.transaction().map_err(&fail)?;
        let skill = move_on(&transaction, new.proposal, &[new.from], new.to, new.moment, &fail)?;
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
        let body = serde_json::to_value(row.told())
            .map_err(|_| LedgerError::Unreadable { what: "a promotion".to_owned() })?;
        row.event = tell(&transaction, &skill, new.moment, EVENT, body, &[], &fail)?.seq;
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
        transaction.commit().map_err(&fail)?;
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

    /// The promotion by which a skill of this project is trusted now; nothing where it is not. What the row says is compared with its
    /// event, whose own hash is checked; the whole chain is read by [`Ledger::verify`] alone.
    ///
    /// # Errors
    ///
    /// [`LedgerError::Damaged`] where the row does not say what the event says.
    pub fn skill_trust(&self, project: &Digest, name: &str) -> Result<Option<PromotionRow>, LedgerError> {
        let columns = COLUMNS.split(", ").map(|column| format!("p.{column}")).collect::<Vec<_>>().join(", ");
        let sql = format!(
            "SELECT {columns} FROM promotions p JOIN skill_proposals s ON s.id = p.proposal_id
             WHERE s.project = ?1 AND s.name = ?2 ORDER BY p.event_seq DESC LIMIT 1"
        );
        let newest = self
            .connection
            .prepare_cached(&sql)
            .and_then(|mut select| select.query_row(params![project.to_string(), name], read).optional())
            .map_err(self.fail())?;
        let Some(row) = newest else { return Ok(None) };
        let event = self.event(row.event)?;
        let agrees = event.is_some_and(|event| {
            event.event == EVENT
                && skill_run_id(project, name).is_ok_and(|run| run == event.run)
                && serde_json::from_value::<Told>(event.body).is_ok_and(|told| told == row.told())
        });
        if !agrees {
            let detail = format!("the row of promotion {} does not say what its event says", row.event);
            return Err(LedgerError::Damaged { path: self.path().to_owned(), detail });
        }
        Ok(Some(row).filter(|row| row.to == SkillStatus::Trusted))
    }
}

impl PromotionRow {
    fn told(&self) -> Told {
        Told {
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

/// The events of the promotions whose row says something else.
pub(crate) fn disagreements(connection: &Connection) -> Result<Vec<u64>, rusqlite::Error> {
    let columns = COLUMNS.split(", ").map(|column| format!("p.{column}")).collect::<Vec<_>>().join(", ");
    let sql = format!(
        "SELECT {columns}, e.body FROM promotions p LEFT JOIN events e ON e.seq = p.event_seq AND e.event = '{EVENT}'
         ORDER BY p.event_seq"
    );
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let seq = number(row, 0)?;
        let body: Option<String> = row.get(10)?;
        let told = body.and_then(|body| serde_json::from_str::<Told>(&body).ok());
        if !read(row).is_ok_and(|row| told.as_ref() == Some(&row.told())) {
            found.push(seq);
        }
    }
    Ok(found)
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
