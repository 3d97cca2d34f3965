//! What is known of a spec: its newest receipts, and whether what they name is really on the disk.
//!
//! [`SpecStore::state`](crate::SpecStore::state) reads it: the names of all receipts, and of each phase only those that can count, never all. Everything that judges
//! (status, gate, the next steps) is a pure function of it.

use crate::id::SpecId;
use crate::phase_id::PhaseId;
use crate::receipt::{FileRecord, SpecReceipt};

/// What is known of a spec.
#[derive(Debug, Clone, PartialEq)]
pub struct SpecState {
    /// Which spec.
    pub spec: SpecId,
    /// Every phase, in order.
    pub phases: Vec<PhaseState>,
    /// What is wrong with the receipts.
    pub problems: Vec<ReceiptProblem>,
    /// How many files of receipts there are.
    pub receipts: u64,
    /// Files of receipts that count and that, as the ledger of this machine has it, were not written here, while it knows others of the spec:
    /// they came from another machine, or somebody made them up.
    pub not_from_here: Vec<String>,
    /// Files of the project that a fixup was applied to and that are again as they were before it.
    pub fixups_undone: Vec<String>,
    /// Whether an idea is kept, from which the first phase can run.
    pub has_idea: bool,
}

/// What is known of a phase.
#[derive(Debug, Clone, PartialEq)]
pub struct PhaseState {
    /// Which phase.
    pub phase: PhaseId,
    /// The newest receipt, dry runs included.
    pub newest: Option<SpecReceipt>,
    /// The newest receipt that is no dry run. It alone decides whether the phase counts as done.
    pub newest_real: Option<SpecReceipt>,
    /// The newest receipt of a success that is no dry run.
    pub last_success: Option<SpecReceipt>,
    /// Where the newest real receipt of fixups tells of no question, as that of applying them does: the success before it that does. It
    /// says what the phase took, and decides nothing.
    pub asked: Option<SpecReceipt>,
    /// What the last success wrote, and what is there now.
    pub outputs: Vec<TrackedRecord>,
    /// The artifacts that the last success was made from, and what is there now.
    pub inputs: Vec<TrackedRecord>,
}

/// A file that a receipt names, and what is there now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrackedRecord {
    /// As the receipt names it.
    pub record: FileRecord,
    /// What is there.
    pub found: FileState,
}

/// What stands where a receipt says that a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileState {
    /// The same bytes.
    Same,
    /// Other bytes, or no regular file.
    Differs,
    /// Nothing.
    Missing,
}

/// What is wrong with a receipt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiptProblem {
    /// The file's name in `receipts/`, or the place in the order that is empty.
    pub file: String,
    /// The phase that its name tells, where it tells one.
    pub phase: Option<PhaseId>,
    /// What is wrong.
    pub kind: ReceiptProblemKind,
}

/// What is wrong with a receipt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReceiptProblemKind {
    /// It is no receipt: why.
    Unreadable(String),
    /// Its name is not the id of a receipt.
    ForeignName,
    /// It says that it is another receipt, of another spec or another phase, than its place says.
    NameDisagrees,
    /// Its own digest is not that of its content: it was edited.
    DigestDiffers,
    /// The receipt after it, or the one that counts, names it with another digest, or names one that is not there.
    ChainBroken,
    /// It stands in a place that is taken twice, and may be one that counts: two branches of the project each ran a phase.
    PlaceTaken {
        /// The file of another receipt in the same place.
        other: String,
    },
    /// There are receipts before and after it, and it is not there.
    Gap {
        /// The phases whose newest real receipt is older than what is missing, which may have been a newer one of theirs.
        older: Vec<PhaseId>,
    },
    /// It lies in `staging/`, whole: a process was killed while it promoted it, and whoever locks the spec finishes that.
    PromotionUnfinished,
    /// It lies in `staging/`, whole, and nothing says that this machine put it there: it came with the project, as somebody else's work or made up.
    PromotionForeign {
        /// The documents that it would put in place.
        replaces: Vec<String>,
    },
    /// The ledger of this machine knows it with another digest, or knows another one in its place.
    LedgerDiffers,
    /// The ledger of this machine knows a newer receipt of the spec than any that is there.
    LedgerKnowsNewer,
}

impl SpecState {
    /// What is known of this phase.
    #[must_use]
    pub fn phase(&self, phase: PhaseId) -> Option<&PhaseState> {
        self.phases.iter().find(|state| state.phase == phase)
    }
}
