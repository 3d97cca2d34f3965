//! The events of a run, and whether the chain confirms them.

use crucible_ledger::{ChainHead, EventRecord};
use crucible_model::{Digest, Timestamp};
use serde::{Deserialize, Serialize};

use crate::text::RedactedText;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventView {
    /// Its number in the chain, from 1.
    pub seq: u64,
    /// When it happened.
    pub at: Timestamp,
    /// Who acted.
    pub role: RedactedText,
    /// What happened, such as `PLAN_SIGNED`.
    pub event: RedactedText,
    /// The file that it is about, if any.
    pub path: Option<RedactedText>,
    /// Its hash.
    pub hash: Digest,
}

impl EventView {
    pub(crate) fn from_event(event: &EventRecord) -> Self {
        Self {
            seq: event.seq,
            at: event.ts,
            role: RedactedText::new(&event.role),
            event: RedactedText::new(&event.event),
            path: event.path.as_deref().map(RedactedText::new),
            hash: event.hash,
        }
    }
}

/// What the chain says about a run. It is checked for the events of this run; `crucible ledger verify` checks all of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainView {
    /// The number of the newest event of the ledger.
    pub head: u64,
    /// Its hash.
    pub head_hash: Digest,
    /// Events of this run whose hash does not match their content.
    pub altered_events: Vec<u64>,
    /// Rows of this run that no event confirms.
    pub row_faults: Vec<RedactedText>,
    /// Files of the run that were changed after they had been recorded.
    pub edited_files: Vec<RedactedText>,
}

impl ChainView {
    pub(crate) fn new(
        head: ChainHead,
        altered_events: Vec<u64>,
        row_faults: &[String],
        edited: &[String],
    ) -> Self {
        Self {
            head: head.seq,
            head_hash: head.hash,
            altered_events,
            row_faults: RedactedText::all(row_faults),
            edited_files: RedactedText::all(edited),
        }
    }

    /// Returns whether events, rows and files of the run are as they were recorded.
    #[must_use]
    pub fn is_intact(&self) -> bool {
        self.altered_events.is_empty() && self.row_faults.is_empty() && self.edited_files.is_empty()
    }
}
