//! Fixups: changes to project files that a review requests, a model proposes and Crucible applies.
//!
//! [`propose_fixup`] is a pure function from an answer to a canonical diff that passes the patch gate,
//! and [`place_fixup`] checks the real locations of its files. The diff stays in the spec's directory
//! until the user applies it. [`pending_fixup`] finds it by its receipt. [`apply_fixup`] checks the
//! current files, judges the diff again, and replaces all of them or none.
//!
//! [`fixup_under_way`] detects an interrupted application, and [`recover_fixup`] completes it or rolls it
//! back.
//!
//! Invariants: only [`apply_fixup`] and [`recover_fixup`] change project files, and only those in the
//! diff. Their new content matches the digests in the receipt. Nothing that a model writes widens the
//! policy.

mod apply;
mod blocks;
mod pending;
mod places;
mod policy;
mod propose;
mod record;
mod show;
mod under_way;

use crucible_model::Verdict;

use crate::receipt::FixedFile;

pub(crate) use apply::apply_fixup;
pub(crate) use pending::pending_fixup;
pub(crate) use places::place_fixup;
pub(crate) use policy::{FixupChoice, fixup_policy, not_nameable};
pub(crate) use propose::propose_fixup;
pub(crate) use record::recover_fixup;
pub(crate) use show::{FixupChangeKind, describe_fixup, fixup_changes, fixup_links};
pub use under_way::{FixupUnderWay, fixup_under_way};

/// The path of the canonical diff in the spec's directory.
pub(crate) const FIXUP_DIFF: &str = "artifacts/40-fixup.diff";

/// A change that passes the patch gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProposedFixup {
    /// The canonical diff, which starts with `diff --git`.
    pub diff: Vec<u8>,
    /// The files that it changes, sorted by path.
    pub files: Vec<FixedFile>,
    /// Warnings only; nothing in it refuses.
    pub verdict: Verdict,
}

/// A proposed change that is not applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PendingFixup {
    /// The id of the proposing receipt.
    pub receipt_id: String,
    /// The canonical diff, with exactly the bytes that the receipt records.
    pub diff: Vec<u8>,
    /// The files that it changes, as the receipt records them.
    pub files: Vec<FixedFile>,
}

/// An applied change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedFixup {
    /// The changed files, with their old and new states.
    pub files: Vec<FixedFile>,
    /// Warnings only; nothing in it refuses.
    pub verdict: Verdict,
}

#[cfg(test)]
mod tests;
