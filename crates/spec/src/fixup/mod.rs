//! Fixups: changes to the project's files that a review asks for, proposed by a model and applied by Crucible.
//!
//! [`propose_fixup`] is a pure function from an answer to a canonical diff that the patch gate lets pass, and [`place_fixup`] judges the places
//! where its files really lie. It stays in the spec's directory until somebody asks for it: [`pending_fixup`] finds it again by its receipt, and [`apply_fixup`] looks at the files of that moment, judges the
//! diff once more, and replaces all of them or none.
//!
//! An application that was broken off is told by [`fixup_under_way`] and settled by [`recover_fixup`].
//!
//! What always holds: only [`apply_fixup`] and [`recover_fixup`] change files of the project, and only those that the diff names; what it changes
//! them to is what the receipt's digests say; nothing that a model writes widens the policy.

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

pub use apply::apply_fixup;
pub use pending::pending_fixup;
pub use places::place_fixup;
pub use policy::{FixupChoice, fixup_policy, not_nameable};
pub use propose::propose_fixup;
pub use record::recover_fixup;
pub use show::{FixupChange, FixupChangeKind, describe_fixup, fixup_changes, fixup_links};
pub use under_way::{FixupUnderWay, fixup_under_way};

/// The canonical diff, in the spec's directory.
pub const FIXUP_DIFF: &str = "artifacts/40-fixup.diff";

/// A change that the patch gate lets pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposedFixup {
    /// The canonical diff, which starts with `diff --git`.
    pub diff: Vec<u8>,
    /// The files that it changes, sorted by path.
    pub files: Vec<FixedFile>,
    /// What deserves a look. Nothing in it refuses.
    pub verdict: Verdict,
}

/// A change that was proposed and not applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingFixup {
    /// The receipt that proposes it.
    pub receipt_id: String,
    /// The canonical diff, byte for byte as the receipt names it.
    pub diff: Vec<u8>,
    /// The files that it changes, as the receipt has them.
    pub files: Vec<FixedFile>,
}

/// A change that was applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedFixup {
    /// The files that it changed, as they were and as they are.
    pub files: Vec<FixedFile>,
    /// What deserves a look. Nothing in it refuses.
    pub verdict: Verdict,
}

#[cfg(test)]
mod tests;
