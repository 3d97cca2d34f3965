//! The plan of a run and who approved it.

use crucible_model::{Digest, Timestamp};
use crucible_run::{ReviewVerdict, RunDocuments};
use serde::{Deserialize, Serialize};

use crate::text::RedactedText;

/// The plan, its reviews and its approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanView {
    /// Its text.
    pub text: RedactedText,
    /// The digest of its bytes.
    pub digest: Digest,
    /// Whether an approval names this digest.
    pub is_approved: bool,
    /// The reviews of the plan.
    pub reviews: Vec<ReviewView>,
    /// What was approved and permitted, in order.
    #[serde(default)]
    pub approvals: Vec<ApprovalView>,
    /// The reasons.
    pub reasons: Option<RedactedText>,
    /// The results that the change must have, and their evidence.
    pub expected_results: Option<RedactedText>,
}

/// An approval or a permission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalView {
    /// The number of its event.
    pub event: u64,
    /// When it was given.
    pub at: Timestamp,
    /// Who gave it: a role, a name, or the fingerprint of a key.
    pub by: RedactedText,
    /// What was approved.
    pub what: RedactedText,
}

/// A review of the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewView {
    /// Its path in the run directory.
    pub path: RedactedText,
    /// Whether it approves; absent if the text is no review.
    pub is_approval: Option<bool>,
    /// The digest of the reviewed text; absent if the text is no review.
    pub subject: Option<Digest>,
    /// Its text.
    pub text: RedactedText,
}

impl PlanView {
    /// Returns the plan; `None` if none is drafted yet.
    pub(crate) fn from_documents(documents: &RunDocuments) -> Option<Self> {
        let text = documents.plan.as_deref()?;
        let digest = Digest::compute(text.as_bytes());
        let signature = documents.signature.as_ref();
        let reviews = documents.reviews.iter().map(|review| ReviewView {
            path: RedactedText::new(review.path),
            is_approval: review
                .verdict
                .map(|(verdict, _)| verdict == ReviewVerdict::Approve),
            subject: review.verdict.map(|(_, subject)| subject),
            text: RedactedText::new(&review.text),
        });
        Some(Self {
            text: RedactedText::new(text),
            digest,
            is_approved: signature.is_some_and(|signature| signature.plan == digest),
            reviews: reviews.collect(),
            approvals: documents
                .approvals
                .iter()
                .map(|approval| ApprovalView {
                    event: approval.seq,
                    at: approval.at,
                    by: RedactedText::new(&approval.by),
                    what: RedactedText::new(approval.what),
                })
                .collect(),
            reasons: documents.reasons.as_deref().map(RedactedText::new),
            expected_results: documents.expected_results.as_deref().map(RedactedText::new),
        })
    }
}
