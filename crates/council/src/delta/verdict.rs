//! The positions that a strategy compares, and its verdict.

use std::collections::BTreeMap;

use async_trait::async_trait;
use crucible_model::Untrusted;
use serde::Serialize;

use crate::seat::SeatId;

/// The positions of a loop, by seat.
pub type Positions = BTreeMap<SeatId, Untrusted>;

/// Decides whether positions changed between two loops. It runs from the second loop on if the loops may
/// end early, and not after the last one.
#[async_trait]
pub trait DeltaStrategy: Send + Sync {
    /// Compares the positions of a loop with those of the loop before. Dropping the future ends the work.
    /// A panic counts as [`DeltaVerdict::Unclear`], and so does a verdict that exceeds the time limit of
    /// a call. A strategy that blocks its thread cannot be interrupted, so the run waits for it.
    ///
    /// In the parallel grammar the map has an entry for each seat with a position; a seat may be missing
    /// in one of the two. In a debate each entry is the position *before* the attack: every loop takes
    /// new positions there, so a defence has no counterpart in the next loop. In the sequential grammar
    /// both maps have one entry: the last draft of the loop, under the name of the council's last seat,
    /// whichever seat wrote it. Replaced drafts are not included.
    async fn detect(&self, prior: &Positions, current: &Positions) -> DeltaVerdict;
}

/// The verdict of a strategy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DeltaVerdict {
    /// Something changed.
    Changed,
    /// Nothing of substance changed.
    Unchanged,
    /// The verdict is unclear, for this reason. It counts as changed.
    Unclear(String),
}
