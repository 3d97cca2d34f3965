//! The skills of a project: versions, gates, trust and uses.
//!
//! These documents are read from those that `skill list` and `skill show` print with `--json`.

use crucible_model::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::json_text::JsonText;
use crate::text::RedactedText;

/// The skills of a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillListView {
    /// The project's directory.
    pub project: RedactedText,
    /// The skills, by name.
    pub skills: Vec<SkillRowView>,
}

/// A skill in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillRowView {
    /// Its name.
    pub name: RedactedText,
    /// Its status.
    pub status: RedactedText,
    /// What it may do.
    pub side_effect_class: RedactedText,
    /// What it is for.
    pub description: RedactedText,
    /// When its status last changed.
    pub updated_at: Timestamp,
    /// What the file of a trusted skill is now: `promoted`, `changed` or `unreadable`.
    pub file: Option<RedactedText>,
    /// What can be done next.
    pub next_steps: Vec<RedactedText>,
}

/// One skill with its history. Of each kind the newest entries are listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillView {
    /// Its name.
    pub name: RedactedText,
    /// What it is for.
    pub description: RedactedText,
    /// Its status.
    pub status: RedactedText,
    /// What it may do.
    pub side_effect_class: RedactedText,
    /// What that is narrowed to.
    pub grants: JsonText,
    /// When it was proposed.
    pub created_at: Timestamp,
    /// When its status last changed.
    pub updated_at: Timestamp,
    /// What can be done next.
    pub next_steps: Vec<RedactedText>,
    /// The promotion in force.
    pub trust: Option<PromotionView>,
    /// How many entries of each kind there are.
    pub counts: SkillCountsView,
    /// The attempts to build it.
    pub builds: Vec<SkillBuildView>,
    /// The verifications with their gates.
    pub verifications: Vec<SkillVerificationView>,
    /// The promotions and demotions.
    pub promotions: Vec<PromotionView>,
    /// The runs.
    pub runs: Vec<SkillRunView>,
}

/// How many entries of each kind a skill has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillCountsView {
    /// Attempts to build it.
    pub builds: u64,
    /// Verifications.
    pub verifications: u64,
    /// Promotions and demotions.
    pub promotions: u64,
    /// Artifacts.
    pub artifacts: u64,
}

/// An attempt to build a skill: a version of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillBuildView {
    /// Its number, from 1.
    pub attempt: u64,
    /// The agent that wrote it.
    pub agent: RedactedText,
    /// How it ended.
    pub status: RedactedText,
    /// Why it failed.
    pub failure: Option<JsonText>,
    /// The digest of the skill's file.
    pub skill_digest: Option<RedactedText>,
    /// When it began.
    pub started_at: Timestamp,
}

/// A verification of a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillVerificationView {
    /// How strict it was.
    pub level: RedactedText,
    /// How it ended.
    pub status: RedactedText,
    /// The digest of the verified file.
    pub skill_digest: RedactedText,
    /// When it began.
    pub started_at: Timestamp,
    /// Its gates.
    pub gates: Vec<SkillGateView>,
}

/// A gate of a verification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillGateView {
    /// Its name.
    pub gate: RedactedText,
    /// Whether it passed.
    pub passed: bool,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// What it found.
    pub findings: JsonText,
}

/// A promotion or a demotion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromotionView {
    /// The number of its event.
    pub event: u64,
    /// The status before.
    pub from: RedactedText,
    /// The status after.
    pub to: RedactedText,
    /// Who approved it.
    pub approved_by: RedactedText,
    /// Why.
    pub reason: RedactedText,
    /// The digest of the approved file.
    pub skill_digest: RedactedText,
    /// When.
    pub at: Timestamp,
}

/// A run of a skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillRunView {
    /// How it ended.
    pub outcome: RedactedText,
    /// The digest of the file that ran; absent if there was none.
    pub skill_digest: Option<RedactedText>,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// What was found.
    pub findings: JsonText,
    /// When.
    pub at: Timestamp,
}

impl SkillListView {
    /// Reads what `skill list --json` prints.
    ///
    /// # Errors
    ///
    /// Fails if the document is of another version.
    pub fn of_document(document: Value) -> Result<Self, serde_json::Error> {
        serde_json::from_value(document)
    }
}

impl SkillView {
    /// Reads what `skill show NAME --json` prints.
    ///
    /// # Errors
    ///
    /// Fails if the document is of another version.
    pub fn of_document(document: Value) -> Result<Self, serde_json::Error> {
        serde_json::from_value(document)
    }
}
