//! A skill that was proposed, and where it stands.
//!
//! The row says what a skill may do, and the event of its proposal says it for good: an edited row is found by the next reader who
//! asks for the skill's trust.

use crucible_model::{Digest, Timestamp, to_canonical_json};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Deserialize;
use serde_json::Value;

use super::{ROLE, digest, json, member, skill_run_id, stored};
use crate::artifact::put_within;
use crate::chain::append_within;
use crate::error::LedgerError;
use crate::forge::content::{SkillArtifactKind, attach_within};
use crate::moment::{Moment, instant, number};
use crate::recorded_rows::commit;
use crate::store::Ledger;

stored! {
    /// What a skill may do to the world. The classes are not ordered: each is a profile of its own.
    SideEffect {
        /// It reads what it is given, and neither writes nor connects.
        ReadOnly = "READ_ONLY",
        /// It writes below the paths that it was granted.
        FileWrite = "FILE_WRITE",
        /// It connects to the hosts that it was granted.
        Network = "NETWORK",
        /// It reads the secrets that it was granted, by name.
        SecretRead = "SECRET_READ",
        /// It spends money.
        Money = "MONEY",
        /// It sends messages to people.
        Messaging = "MESSAGING",
    }
}

stored! {
    /// Where a skill stands.
    SkillStatus {
        /// It was asked for; what was built of it so far did not succeed.
        Proposed = "PROPOSED",
        /// Its files are there and passed the gate of changes.
        Built = "BUILT",
        /// These files passed every gate.
        Verified = "VERIFIED",
        /// A person approved these files.
        Trusted = "TRUSTED",
    }
}

/// A skill that is proposed. Every text is free of secrets already.
#[derive(Debug, Clone, PartialEq)]
pub struct NewSkill {
    /// When.
    pub moment: Moment,
    /// The digest of the project's path.
    pub project: Digest,
    /// The name, unique within the project.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// The schemas of what goes in and comes out.
    pub io_schema: Value,
    /// What it may do.
    pub side_effect: SideEffect,
    /// What that is narrowed to.
    pub grants: Value,
    /// The specification as it is kept (`SKILL_SPEC`).
    pub spec: Vec<u8>,
    /// Examples that the builder of the skill is not shown (`NOTE`), if it has any.
    pub held_out: Option<Vec<u8>>,
}

/// A skill as it stands in the ledger.
#[derive(Debug, Clone, PartialEq)]
pub struct SkillRow {
    /// Its number.
    pub id: u64,
    /// The digest of the project's path.
    pub project: Digest,
    /// The name, unique within the project.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// The schemas of what goes in and comes out.
    pub io_schema: Value,
    /// What it may do.
    pub side_effect: SideEffect,
    /// What that is narrowed to.
    pub grants: Value,
    /// Where it stands.
    pub status: SkillStatus,
    /// When it was proposed.
    pub created_at: Timestamp,
    /// When its status last changed.
    pub updated_at: Timestamp,
}

const COLUMNS: &str = "id, project, name, description, io_schema, side_effect_class, grants, status, created_at, updated_at";

/// The name of the event.
const EVENT: &str = "SKILL_PROPOSED";
/// The number of the event that a skill began with, by its run. A later one of the same name changes nothing.
const FIRST: &str =
    "SELECT min(seq) FROM events WHERE run_id = ?1 AND key IS NULL AND event = 'SKILL_PROPOSED'";

/// What the event says of what the skill may do and is asked.
#[derive(Deserialize)]
struct EventBody {
    project: Digest,
    name: String,
    side_effect_class: SideEffect,
    grants: Value,
    /// The digest of the schemas, which events of older versions do not have.
    io_schema: Option<Digest>,
}

impl SkillRow {
    /// Whether the row says what the event of its proposal says.
    fn agrees_with(&self, event: &Value) -> bool {
        let Ok(event_body) = EventBody::deserialize(event) else {
            return false;
        };
        let schemas = to_canonical_json(&self.io_schema).map(|text| Digest::compute(&text));
        event_body.project == self.project
            && event_body.name == self.name
            && event_body.side_effect_class == self.side_effect
            && event_body.grants == self.grants
            && event_body
                .io_schema
                .is_none_or(|digest| schemas.is_ok_and(|found| found == digest))
    }
}

impl Ledger {
    /// Records a proposal. Returns its number.
    ///
    /// # Errors
    ///
    /// [`LedgerError::SkillTaken`] where the project has a skill of this name, and for all that can be wrong with the database.
    pub fn propose_skill(&mut self, new: &NewSkill) -> Result<u64, LedgerError> {
        let fail = self.fail();
        let text = |value: &Value| -> Result<String, LedgerError> {
            String::from_utf8(to_canonical_json(value)?).map_err(|_| LedgerError::Unreadable {
                what: "canonical JSON".to_owned(),
            })
        };
        let (io_schema, grants) = (text(&new.io_schema)?, text(&new.grants)?);
        let run = skill_run_id(&new.project, &new.name)?;
        let transaction = self.connection.transaction().map_err(&fail)?;
        let is_taken = transaction
            .prepare_cached("SELECT 1 FROM skill_proposals WHERE project = ?1 AND name = ?2")
            .and_then(|mut select| select.exists(params![new.project.to_string(), new.name]))
            .map_err(&fail)?;
        if is_taken {
            return Err(LedgerError::SkillTaken {
                name: new.name.clone(),
            });
        }
        let at = new.moment.at.to_string();
        let id = transaction
            .prepare_cached(
                "INSERT INTO skill_proposals (project, name, description, io_schema, side_effect_class, grants, created_at, updated_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7) RETURNING id",
            )
            .and_then(|mut insert| {
                let values = params![
                    new.project.to_string(),
                    new.name,
                    new.description,
                    io_schema,
                    new.side_effect.as_str(),
                    grants,
                    at
                ];
                insert.query_row(values, |row| number(row, 0))
            })
            .map_err(&fail)?;
        let spec = put_within(
            &transaction,
            SkillArtifactKind::SkillSpec.as_str(),
            &new.spec,
            &fail,
        )?;
        attach_within(
            &transaction,
            id,
            None,
            SkillArtifactKind::SkillSpec,
            &spec,
            new.moment,
            &fail,
        )?;
        let mut digests = vec![spec];
        let held_out = match &new.held_out {
            Some(bytes) => {
                let digest =
                    put_within(&transaction, SkillArtifactKind::Note.as_str(), bytes, &fail)?;
                attach_within(
                    &transaction,
                    id,
                    None,
                    SkillArtifactKind::Note,
                    &digest,
                    new.moment,
                    &fail,
                )?;
                digests.push(digest);
                Some(digest)
            }
            None => None,
        };
        let body = serde_json::json!({
            "project": new.project, "name": new.name, "side_effect_class": new.side_effect, "grants": new.grants, "spec": spec,
            "held_out": held_out, "io_schema": Digest::compute(io_schema.as_bytes()),
        });
        let mut event = new.moment.event(run, ROLE, EVENT, body);
        event.artifacts = digests;
        append_within(&transaction, event, &fail)?;
        commit(transaction, new.moment.at, &fail)?;
        Ok(id)
    }

    /// The skill of this name in a project.
    ///
    /// # Errors
    ///
    /// Fails when the database cannot be read or a row does not hold what Crucible writes.
    pub fn skill(&self, project: &Digest, name: &str) -> Result<Option<SkillRow>, LedgerError> {
        self.connection
            .prepare_cached(&format!(
                "SELECT {COLUMNS} FROM skill_proposals WHERE project = ?1 AND name = ?2"
            ))
            .and_then(|mut select| {
                select
                    .query_row(params![project.to_string(), name], read)
                    .optional()
            })
            .map_err(self.fail())
    }

    /// The skills of a project, by name.
    ///
    /// # Errors
    ///
    /// As [`Ledger::skill`].
    pub fn skills(&self, project: &Digest) -> Result<Vec<SkillRow>, LedgerError> {
        self.connection
            .prepare_cached(&format!(
                "SELECT {COLUMNS} FROM skill_proposals WHERE project = ?1 ORDER BY name"
            ))
            .and_then(|mut select| select.query_map([project.to_string()], read)?.collect())
            .map_err(self.fail())
    }

    /// Whether a skill is what was proposed: its row says what its first event says, which has the hash that it says it has.
    pub(super) fn is_as_proposed(&self, skill: &SkillRow) -> Result<bool, LedgerError> {
        let run = skill_run_id(&skill.project, &skill.name)?;
        let first: Option<i64> = self
            .connection
            .prepare_cached(FIRST)
            .and_then(|mut select| select.query_row([run.as_str()], |row| row.get(0)))
            .map_err(self.fail())?;
        let Some(first) = first else { return Ok(false) };
        Ok(self
            .event_as_hashed(first.unsigned_abs())?
            .is_some_and(|event| skill.agrees_with(&event.body)))
    }
}

/// Skills that are not what was proposed, by what a reader knows them by, with what is wrong.
pub(super) fn unlike_proposed(
    connection: &Connection,
) -> Result<Vec<(String, &'static str)>, rusqlite::Error> {
    let mut first =
        connection.prepare(&format!("SELECT body FROM events WHERE seq = ({FIRST})"))?;
    let mut statement = connection.prepare(&format!(
        "SELECT {COLUMNS} FROM skill_proposals ORDER BY id"
    ))?;
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let id: i64 = row.get(0)?;
        let mut agrees = false;
        if let Ok(skill) = read(row)
            && let Ok(run) = skill_run_id(&skill.project, &skill.name)
        {
            let body: Option<String> = first
                .query_row([run.as_str()], |row| row.get(0))
                .optional()?;
            let event_body = body.and_then(|body| serde_json::from_str::<Value>(&body).ok());
            agrees = event_body.is_some_and(|recorded| skill.agrees_with(&recorded));
        }
        if !agrees {
            found.push((
                format!("skill {id}"),
                "its class, its grants or its schemas are not what was proposed",
            ));
        }
    }
    Ok(found)
}

fn read(row: &Row<'_>) -> Result<SkillRow, rusqlite::Error> {
    Ok(SkillRow {
        id: number(row, 0)?,
        project: digest(row, 1)?,
        name: row.get(2)?,
        description: row.get(3)?,
        io_schema: json(row, 4)?,
        side_effect: member(row, 5, SideEffect::parse)?,
        grants: json(row, 6)?,
        status: member(row, 7, SkillStatus::parse)?,
        created_at: instant(row, 8)?,
        updated_at: instant(row, 9)?,
    })
}
