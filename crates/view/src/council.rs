//! The councils of a run: seats, loops, attacks, who moved, and how independent the seats were.

use crucible_ledger::EventRecord;
use serde::{Deserialize, Serialize};

use crate::text::RedactedText;

/// The field of an answer's event that a council fills.
const COUNCIL: &str = "council";

/// A council that answered a question of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CouncilView {
    /// The number of the event of its answer.
    pub event: u64,
    /// The role that it served.
    pub role: RedactedText,
    /// What it used, in one sentence.
    pub summary: RedactedText,
    /// What was worse than requested.
    pub warnings: Vec<RedactedText>,
    /// What it did; absent if it was bypassed, or if an older version recorded it.
    pub deliberation: Option<DeliberationView>,
}

/// What a council did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliberationView {
    /// The order in which the seats spoke.
    pub grammar: RedactedText,
    /// What the red team attacked.
    pub red_team: RedactedText,
    /// The most loops that were planned.
    pub planned_loops: u64,
    /// The loops that ran.
    pub loops: Vec<LoopView>,
}

/// A loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopView {
    /// Its number, from 1.
    pub number: u64,
    /// The seats that spoke.
    pub seats: Vec<SeatView>,
    /// Attacks of the red team.
    pub critiques: u64,
    /// In a debate, the attacked seats.
    pub targets: Vec<RedactedText>,
    /// `changed`, `unchanged` or `unclear`; absent if it was not checked.
    pub delta: Option<RedactedText>,
    /// The mean similarity of two positions, in percent.
    pub mean_similarity_percent: Option<u64>,
    /// How many seats moved towards the majority of the loop before.
    pub moved_to_majority: Option<u64>,
    /// How many models answered for the seats.
    pub distinct_models: u64,
}

/// A seat in a loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeatView {
    /// Its name.
    pub seat: RedactedText,
    /// The models that answered for it.
    pub models: Vec<RedactedText>,
    /// What happened to its position after the attack.
    pub after_attack: Option<RedactedText>,
    /// How similar its position is to its own in the loop before, in percent.
    pub resemblance_percent: Option<u64>,
}

impl CouncilView {
    /// Reads the council of an event, if a council answered. A deliberation of another version is left out.
    pub(crate) fn from_event(event: &EventRecord) -> Option<Self> {
        let council = event.body.get(COUNCIL)?;
        let text =
            |value: &serde_json::Value| RedactedText::new(value.as_str().unwrap_or_default());
        let warnings = council["warnings"].as_array().into_iter().flatten();
        Some(Self {
            event: event.seq,
            role: text(&event.body["role"]),
            summary: text(&council["summary"]),
            warnings: warnings.map(text).collect(),
            deliberation: serde_json::from_value(council["deliberation"].clone())
                .ok()
                .flatten(),
        })
    }
}
