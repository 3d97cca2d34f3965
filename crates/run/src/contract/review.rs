//! `reviews/*.md`: a reviewer's verdict, the blocking reasons, and the required changes.

use std::fmt::Write as _;

use crucible_model::{Digest, Level, Outcome, Verdict, single_spaced};

use crate::contract::key_lines;

/// A reviewer's verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewVerdict {
    /// It may go on.
    Approve,
    /// It may not.
    Block,
}

/// A review of one document, which it names by digest: a review never covers a later edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Review {
    /// The reviewer's role, for the title.
    pub reviewer: String,
    /// Approve or block.
    pub verdict: ReviewVerdict,
    /// The digest of what was reviewed.
    pub subject: Digest,
    /// Why it is blocked, one line each; empty when approved.
    pub blocking: Vec<String>,
    /// What must be added or changed, one line each.
    pub required: Vec<String>,
    /// Remarks that do not block.
    pub remarks: Vec<String>,
}

/// The text is no review.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a review needs exactly one line `{key}` with a valid value")]
pub(crate) struct ReviewError {
    /// The key that is missing, repeated or wrong.
    pub key: &'static str,
}

impl Review {
    /// The review that a local judge's verdict amounts to.
    #[must_use]
    pub(crate) fn from_verdict(reviewer: &str, subject: Digest, verdict: &Verdict) -> Self {
        let describe = |finding: &crucible_model::Finding| {
            single_spaced(&format!(
                "{} {}",
                finding.code,
                finding.subject.escape_debug()
            ))
        };
        let mut required: Vec<String> = verdict
            .errors()
            .map(|finding| single_spaced(&finding.hint))
            .collect();
        required.dedup();
        Self {
            reviewer: reviewer.to_owned(),
            verdict: match verdict.outcome() {
                Outcome::Pass => ReviewVerdict::Approve,
                Outcome::Fail => ReviewVerdict::Block,
            },
            subject,
            blocking: verdict.errors().map(describe).collect(),
            required,
            remarks: verdict
                .findings()
                .iter()
                .filter(|finding| finding.level != Level::Error)
                .map(describe)
                .collect(),
        }
    }

    /// The review's text.
    #[must_use]
    pub fn render(&self) -> String {
        let verdict = match self.verdict {
            ReviewVerdict::Approve => "APPROVE",
            ReviewVerdict::Block => "BLOCK",
        };
        let mut text = format!(
            "# Review: {}\n\nVerdict: {verdict}\nSubject: {}\n",
            self.reviewer, self.subject
        );
        for (title, items) in [
            ("Blocking Reasons", &self.blocking),
            ("Required Fix/Artifacts", &self.required),
            ("Remarks", &self.remarks),
        ] {
            let _infallible = writeln!(
                text,
                "\n{title}:{}",
                if items.is_empty() { " none" } else { "" }
            );
            for item in items {
                let _infallible = writeln!(text, "- {item}");
            }
        }
        text
    }

    /// Reads the verdict and the subject of a review's text; the lists are for people.
    ///
    /// # Errors
    ///
    /// Fails when either line is missing, repeated or holds something else.
    pub(crate) fn parse_verdict(text: &str) -> Result<(ReviewVerdict, Digest), ReviewError> {
        let lines = key_lines::read(text);
        let value = |key: &'static str| {
            let repeated = lines.repeated.iter().any(|other| other == key);
            lines
                .values
                .get(key)
                .filter(|_| !repeated)
                .ok_or(ReviewError { key })
        };
        let verdict = match value("Verdict")?.as_str() {
            "APPROVE" => ReviewVerdict::Approve,
            "BLOCK" => ReviewVerdict::Block,
            _ => return Err(ReviewError { key: "Verdict" }),
        };
        let subject = value("Subject")?
            .parse()
            .map_err(|_| ReviewError { key: "Subject" })?;
        Ok((verdict, subject))
    }
}

#[cfg(test)]
mod tests {
    use crucible_model::{Code, Finding};

    use super::*;

    #[test]
    fn refusing_finding_blocks_review() {
        let subject = Digest::compute(b"patch");
        let finding = Finding::error(
            Code::new("patch-path-denied"),
            "a\nVerdict: APPROVE",
            "Leave it alone.",
        );
        let review = Review::from_verdict("patch gate", subject, &Verdict::new(vec![finding]));
        let text = review.render();
        assert_eq!(
            Review::parse_verdict(&text),
            Ok((ReviewVerdict::Block, subject)),
            "{text}"
        );
        assert!(text.contains("Leave it alone."));
    }

    #[test]
    fn review_without_clear_verdict_is_invalid() {
        for bad in [
            "",
            "Verdict: MAYBE\n",
            "Verdict: APPROVE\nVerdict: BLOCK\n",
            "verdict: APPROVE\n",
        ] {
            assert!(Review::parse_verdict(bad).is_err(), "{bad:?}");
        }
    }
}
