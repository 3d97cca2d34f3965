//! The ledger as a whole, and its verification.

use crucible_ledger::{Ledger, LedgerError};
use crucible_model::Digest;
use serde::{Deserialize, Serialize};

use crate::attempt::FindingView;
use crate::text::RedactedText;

/// The state of the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerView {
    /// `crucible-ledger-state-v1`.
    pub schema_version: String,
    /// Where the database is.
    pub path: RedactedText,
    /// The number of the newest event; 0 in an empty ledger.
    pub head: u64,
    /// Its hash.
    pub head_hash: Digest,
    /// How many runs the list of runs has.
    pub runs: u64,
    /// What a verification found; absent if none was requested.
    pub findings: Option<Vec<FindingView>>,
    /// Whether the verification passed; absent if none was requested.
    pub is_verified: Option<bool>,
}

impl LedgerView {
    /// Reads the state without verifying it.
    ///
    /// # Errors
    ///
    /// Fails when the ledger cannot be read.
    pub fn read(ledger: &Ledger) -> Result<Self, LedgerError> {
        let head = ledger.head()?;
        Ok(Self {
            schema_version: "crucible-ledger-state-v1".to_owned(),
            path: RedactedText::new(&ledger.path().to_string_lossy()),
            head: head.seq,
            head_hash: head.hash,
            runs: ledger.count_runs(&crucible_ledger::RunFilter::default())?,
            findings: None,
            is_verified: None,
        })
    }

    /// Reads the state and verifies the whole ledger, which takes as long as `crucible ledger verify` does. Heads that are
    /// known from landed commits are not checked.
    ///
    /// # Errors
    ///
    /// As [`LedgerView::read`].
    pub fn verify(ledger: &Ledger) -> Result<Self, LedgerError> {
        let verdict = ledger.verify(&[])?;
        Ok(Self {
            findings: Some(
                verdict
                    .findings()
                    .iter()
                    .map(FindingView::from_finding)
                    .collect(),
            ),
            is_verified: Some(verdict.passes()),
            ..Self::read(ledger)?
        })
    }
}
