//! The state of a spec: its newest receipts, and whether the files that they name are on disk.
//!
//! [`SpecStore::state`](crate::SpecStore::state) reads it: the names of all receipts, and for each phase
//! only the receipts that can count. Everything that judges (status, gate, the next steps) is a pure
//! function of it.

use crate::id::SpecId;
use crate::phase_id::PhaseId;
use crate::receipt::{FileRecord, SpecReceipt};

/// The state of a spec.
#[derive(Debug, Clone, PartialEq)]
pub struct SpecState {
    /// The id of the spec.
    pub spec: SpecId,
    /// Every phase, in order.
    pub phases: Vec<PhaseState>,
    /// The problems of the receipts.
    pub problems: Vec<ReceiptProblem>,
    /// The number of receipt files.
    pub receipts: u64,
    /// Receipt files that count but, according to this machine's ledger, were not written here, although
    /// it knows others of the spec: they came from another machine, or are forged.
    pub not_from_here: Vec<String>,
    /// Project files that a fixup changed and that have their old content again.
    pub fixups_undone: Vec<String>,
    /// Whether an idea is stored, so that the first phase can run.
    pub has_idea: bool,
}

/// The state of a phase.
#[derive(Debug, Clone, PartialEq)]
pub struct PhaseState {
    /// Which phase.
    pub phase: PhaseId,
    /// The newest receipt, dry runs included.
    pub newest: Option<SpecReceipt>,
    /// The newest receipt that is not a dry run. It alone decides whether the phase is done.
    pub newest_real: Option<SpecReceipt>,
    /// The newest receipt of a success that is not a dry run.
    pub last_success: Option<SpecReceipt>,
    /// If the newest real receipt of the fixup phase records no model call, as an application does not:
    /// the earlier success that does. It is used for tokens and cost only.
    pub last_call_receipt: Option<SpecReceipt>,
    /// The outputs of the last success, and their current state.
    pub outputs: Vec<TrackedRecord>,
    /// The input artifacts of the last success, and their current state.
    pub inputs: Vec<TrackedRecord>,
}

/// A file that a receipt names, and its current state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrackedRecord {
    /// The record in the receipt.
    pub record: FileRecord,
    /// The current state.
    pub found: FileState,
}

/// The state of a file that a receipt names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileState {
    /// The same bytes.
    Same,
    /// Other bytes, or not a regular file.
    Differs,
    /// The file does not exist.
    Missing,
}

/// A problem of a receipt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiptProblem {
    /// The file's name in `receipts/`, or the missing sequence number.
    pub file: String,
    /// The phase in its name, if any.
    pub phase: Option<PhaseId>,
    /// The kind of problem.
    pub kind: ReceiptProblemKind,
}

/// The kind of a receipt problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReceiptProblemKind {
    /// It is not a receipt, for this reason.
    Unreadable(String),
    /// Its name is not a receipt id.
    ForeignName,
    /// Its content states another receipt, spec or phase than its name.
    NameDisagrees,
    /// Its digest does not match its content: it was edited.
    DigestDiffers,
    /// The next receipt, or the one that counts, names it with another digest, or names a missing one.
    ChainBroken,
    /// Its sequence number is used twice, and it may be one that counts: two branches of the project each
    /// ran a phase.
    PlaceTaken {
        /// The file of the other receipt with that number.
        other: String,
    },
    /// It is missing, but there are receipts before and after it.
    Gap {
        /// The phases whose newest real receipt is older than the missing one, which may have been a
        /// newer one of theirs.
        older: Vec<PhaseId>,
    },
    /// It is complete in `staging/`: a process was killed during its promotion, and the next process that
    /// locks the spec completes it.
    PromotionUnfinished,
    /// It is complete in `staging/`, but this machine did not put it there: it came with the project, or
    /// is forged.
    PromotionForeign {
        /// The documents that it would replace.
        replaces: Vec<String>,
    },
    /// This machine's ledger has recorded another digest for it, or another receipt with its sequence
    /// number.
    LedgerDiffers,
    /// This machine's ledger has recorded a newer receipt of the spec than any that exists.
    LedgerKnowsNewer,
}

impl SpecState {
    /// The state of this phase.
    #[must_use]
    pub fn phase(&self, phase: PhaseId) -> Option<&PhaseState> {
        self.phases.iter().find(|state| state.phase == phase)
    }
}
