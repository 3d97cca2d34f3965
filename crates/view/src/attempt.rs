//! An attempt at a change.

use crucible_model::{Digest, Finding, Level};
use crucible_run::{AttemptDocuments, AttemptEnd};
use serde::{Deserialize, Serialize};

use crate::diff::DiffView;
use crate::text::RedactedText;
use crate::verification::VerificationView;

/// One attempt, ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptView {
    /// Its number, from 1.
    pub number: u64,
    /// Which of the allowed iterations it belongs to, from 1.
    pub round: u64,
    /// How it ended.
    pub end: AttemptEnd,
    /// The digest of the model's answer.
    pub answer_digest: Digest,
    /// The model's answer.
    pub answer: Option<RedactedText>,
    /// The digest of the patch; absent if the answer contains none.
    pub patch_digest: Option<Digest>,
    /// The proposed change.
    pub diff: Option<DiffView>,
    /// Findings of the patch gate and of the gates.
    pub findings: Vec<FindingView>,
    /// The significant lines of the failing gates' output.
    pub output: RedactedText,
    /// What the gates showed; absent if they did not run.
    pub verification: Option<VerificationView>,
}

/// A finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindingView {
    /// Its code.
    pub code: RedactedText,
    /// Its level.
    pub level: Level,
    /// What it is about.
    pub subject: RedactedText,
    /// What to do.
    pub hint: RedactedText,
    /// The line in the file that it is about, if its subject or hint names one as `path:line`.
    pub line: Option<u64>,
}

impl FindingView {
    pub(crate) fn of(finding: &Finding) -> Self {
        Self {
            code: RedactedText::new(finding.code.as_str()),
            level: finding.level,
            subject: RedactedText::new(&finding.subject),
            hint: RedactedText::new(&finding.hint),
            line: line_of(&finding.subject),
        }
    }

    /// Returns whether the finding is about this file, or about a line of it.
    #[must_use]
    pub fn is_about(&self, path: &str) -> bool {
        let subject = self.subject.as_str();
        subject == path
            || subject
                .strip_prefix(path)
                .is_some_and(|rest| rest.starts_with(':'))
    }
}

/// The line of a subject `path:line`.
fn line_of(subject: &str) -> Option<u64> {
    let (_, rest) = subject.split_once(':')?;
    rest.split(':').next()?.parse().ok()
}

impl AttemptView {
    pub(crate) fn of(attempt: &AttemptDocuments) -> Self {
        let outcome = &attempt.outcome;
        Self {
            number: outcome.number,
            round: outcome.round(),
            end: outcome.end,
            answer_digest: outcome.answer,
            answer: attempt.answer.as_deref().map(RedactedText::new),
            patch_digest: outcome.patch,
            diff: attempt.patch.as_deref().map(DiffView::of),
            findings: outcome.findings.iter().map(FindingView::of).collect(),
            output: RedactedText::new(&outcome.output),
            verification: attempt.report.as_ref().map(VerificationView::of),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_of_a_subject_is_its_second_part() {
        assert_eq!(line_of("src/a.rs:12"), Some(12));
        assert_eq!(line_of("src/a.rs:12:3"), Some(12));
        assert_eq!(line_of("src/a.rs"), None);
        assert_eq!(line_of("attempt 2: x"), None);
    }
}
