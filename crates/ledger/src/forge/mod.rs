//! Skills: what was proposed, built, verified, promoted and run.
//!
//! Each change is one transaction that writes rows and appends an event to the run of its skill ([`skill_run_id`]), so that neither is
//! ever there without the other. The rows are what readers ask; [`Ledger::verify`](crate::Ledger::verify) compares them with the chain.
//! What trust rests on, a promotion, is written once, names its event, and is compared with it by every reader
//! ([`Ledger::skill_trust`](crate::Ledger::skill_trust)), too.
//!
//! The caller judges which step may follow which; a step that finds its skill in another status than it names is refused
//! here, so that two processes cannot take the same step.

mod build;
mod content;
mod promotion;
mod proposal;
mod verification;

pub use build::{NewSkillBuild, SkillBuildEnd, SkillBuildRow, SkillBuildStatus};
pub use content::{NewSkillRun, SkillArtifactKind, SkillArtifactRow, SkillRunOutcome, SkillRunRow};
pub(crate) use promotion::disagreements;
pub use promotion::{NewPromotion, PromotionRow};
pub use proposal::{NewSkill, SideEffect, SkillRow, SkillStatus};
pub use verification::{
    NewVerification, SkillGateRow, VerificationEnd, VerificationLevel, VerificationRow,
    VerificationStatus,
};

use crucible_model::{Digest, RunId};
use rusqlite::{Connection, Row, params};
use serde_json::Value;

use crate::chain::{append_within, project_run_id, unreadable};
use crate::error::LedgerError;
use crate::event::EventRecord;
use crate::moment::{Moment, sql_id};

/// The role under which the forge acts in the chain.
const ROLE: &str = "forge";

/// The run under which the events of a skill stand in the chain: `skill-<name>-<digest>`, where the digest tells skills of the same
/// name in other projects apart.
///
/// # Errors
///
/// Never in practice: what is put together is a run id.
pub fn skill_run_id(project: &Digest, name: &str) -> Result<RunId, LedgerError> {
    project_run_id("skill", project, name)
}

/// A closed set whose members stand in a column under a name.
macro_rules! stored {
    ($(#[$doc:meta])* $name:ident { $($(#[$member_doc:meta])* $member:ident = $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[$member_doc])* #[serde(rename = $text)] $member,)+
        }

        impl $name {
            /// Every one, in order.
            pub const ALL: &'static [Self] = &[$(Self::$member),+];

            /// Its name, as the ledger, artifacts and `--json` write it.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$member => $text,)+
                }
            }

            /// The one of this name.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.as_str() == text)
            }
        }
    };
}
pub(crate) use stored;

/// A member of a closed set from its column.
fn member<T>(
    row: &Row<'_>,
    column: usize,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, rusqlite::Error> {
    let text: String = row.get(column)?;
    parse(&text).ok_or_else(|| unreadable(column, std::fmt::Error))
}

/// A digest from its column.
fn digest(row: &Row<'_>, column: usize) -> Result<Digest, rusqlite::Error> {
    row.get::<_, String>(column)?
        .parse()
        .map_err(|error| unreadable(column, error))
}

/// A digest from a column that may be empty.
fn optional_digest(row: &Row<'_>, column: usize) -> Result<Option<Digest>, rusqlite::Error> {
    let text: Option<String> = row.get(column)?;
    text.map(|text| text.parse().map_err(|error| unreadable(column, error)))
        .transpose()
}

/// JSON from its column.
fn json(row: &Row<'_>, column: usize) -> Result<Value, rusqlite::Error> {
    serde_json::from_str(&row.get::<_, String>(column)?).map_err(|error| unreadable(column, error))
}

/// Appends an event to the story of a skill, within a transaction.
fn append_skill_event(
    transaction: &Connection,
    skill: &Subject,
    moment: Moment,
    name: &str,
    body: Value,
    artifacts: &[Digest],
    fail: &impl Fn(rusqlite::Error) -> LedgerError,
) -> Result<EventRecord, LedgerError> {
    let mut event = moment.event(skill_run_id(&skill.project, &skill.name)?, ROLE, name, body);
    event.artifacts = artifacts.to_vec();
    append_within(transaction, event, fail)
}

/// Which skill a step is about.
struct Subject {
    project: Digest,
    name: String,
    status: SkillStatus,
}

/// The skill of this number, within a transaction.
fn subject(
    transaction: &Connection,
    proposal: u64,
    fail: &impl Fn(rusqlite::Error) -> LedgerError,
) -> Result<Subject, LedgerError> {
    let sql = "SELECT project, name, status FROM skill_proposals WHERE id = ?1";
    let read = |row: &Row<'_>| {
        Ok(Subject {
            project: digest(row, 0)?,
            name: row.get(1)?,
            status: member(row, 2, SkillStatus::parse)?,
        })
    };
    match transaction
        .prepare_cached(sql)
        .and_then(|mut select| select.query_row([sql_id(proposal)], read))
    {
        Err(rusqlite::Error::QueryReturnedNoRows) => Err(LedgerError::NoSuchSkill { id: proposal }),
        found => found.map_err(fail),
    }
}

/// Moves a skill on; refused where it stands elsewhere than one of `from`.
fn change_status(
    transaction: &Connection,
    proposal: u64,
    from: &[SkillStatus],
    to: SkillStatus,
    moment: Moment,
    fail: &impl Fn(rusqlite::Error) -> LedgerError,
) -> Result<Subject, LedgerError> {
    let skill = subject(transaction, proposal, fail)?;
    if !from.contains(&skill.status) {
        return Err(LedgerError::SkillMoved {
            name: skill.name,
            status: skill.status.as_str(),
        });
    }
    let sql = "UPDATE skill_proposals SET status = ?2, updated_at = ?3 WHERE id = ?1";
    transaction
        .prepare_cached(sql)
        .and_then(|mut update| {
            update.execute(params![
                sql_id(proposal),
                to.as_str(),
                moment.at.to_string()
            ])
        })
        .map_err(fail)?;
    Ok(skill)
}
