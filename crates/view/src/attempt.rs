//! An attempt at a change.

use crucible_model::{Digest, Finding, Level};
use crucible_run::{AttemptDocuments, AttemptEnd, GateLog};
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
    /// The model's answer; absent if it is not the recorded one.
    pub answer: Option<RedactedText>,
    /// The digest of the patch; absent if the answer contains none.
    pub patch_digest: Option<Digest>,
    /// The proposed change; absent if it is not the recorded one.
    pub diff: Option<DiffView>,
    /// Whether the answer or the change was edited after it had been recorded.
    #[serde(default)]
    pub is_edited: bool,
    /// Findings of the patch gate and of the gates.
    pub findings: Vec<FindingView>,
    /// The significant lines of the failing gates' output.
    pub output: RedactedText,
    /// What the gates showed; absent if they did not run.
    pub verification: Option<VerificationView>,
    /// What the gates printed.
    #[serde(default)]
    pub logs: Vec<LogView>,
}

/// The most bytes of a log that a view has.
const MAX_LOG: usize = 4096;

/// The end of what the gates printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogView {
    /// The name of the file.
    pub name: RedactedText,
    /// Its last lines.
    pub text: RedactedText,
    /// Whether lines before them are left out.
    pub is_cut: bool,
}

impl LogView {
    fn from_log(log: &GateLog) -> Self {
        // The log itself has no known secrets. It is redacted by the rules of today, with what is before its end.
        let read = log.bytes.len().saturating_sub(16 * MAX_LOG);
        let text = RedactedText::from_bytes(log.bytes.get(read..).unwrap_or_default());
        let full_text = text.as_str();
        let from = full_text.len().saturating_sub(MAX_LOG);
        let is_cut = read > 0 || from > 0;
        let end = full_text
            .get(full_text.ceil_char_boundary(from)..)
            .unwrap_or_default();
        let end = match end.split_once('\n') {
            Some((_, lines)) if is_cut && !lines.is_empty() => lines,
            _ => end,
        };
        Self {
            name: RedactedText::new(log.name),
            text: RedactedText::new(end),
            is_cut,
        }
    }
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
    pub(crate) fn from_finding(finding: &Finding) -> Self {
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
    /// How it ended, for people.
    #[must_use]
    pub const fn result(&self) -> &'static str {
        match self.end {
            AttemptEnd::Refused => "Refused by the patch gate",
            AttemptEnd::Malformed => "Malformed answer",
            AttemptEnd::Repeated => "Repeats an earlier change",
            AttemptEnd::FilesRequested => "Requests more files",
            AttemptEnd::VerifyFailed => "A gate failed",
            AttemptEnd::Candidate => "Passed, to be compared",
            AttemptEnd::Verified => "Verified",
        }
    }

    pub(crate) fn from_attempt(attempt: &AttemptDocuments) -> Self {
        let outcome = &attempt.outcome;
        let is_recorded = |bytes: &[u8], digest| Some(Digest::compute(bytes)) == digest;
        let answer = attempt.answer.as_deref();
        let shown_answer = answer.filter(|text| is_recorded(text.as_bytes(), Some(outcome.answer)));
        let patch = attempt.patch.as_deref();
        let shown_patch = patch.filter(|bytes| is_recorded(bytes, outcome.patch));
        Self {
            number: outcome.number,
            round: outcome.round(),
            end: outcome.end,
            answer_digest: outcome.answer,
            answer: shown_answer.map(RedactedText::new),
            patch_digest: outcome.patch,
            diff: shown_patch.map(DiffView::from_patch),
            is_edited: answer != shown_answer || patch != shown_patch,
            findings: outcome
                .findings
                .iter()
                .map(FindingView::from_finding)
                .collect(),
            output: RedactedText::new(&outcome.output),
            verification: attempt.report.as_ref().map(VerificationView::from_report),
            logs: attempt.logs.iter().map(LogView::from_log).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_is_redacted_and_cut_at_a_line() {
        let token = format!("ghp_{}", "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3hJ6");
        let log = |text: &str| {
            LogView::from_log(&GateLog {
                name: "stdout.log",
                bytes: text.as_bytes().to_vec(),
            })
        };
        let short = log(&format!("1 passed {token}\n"));
        assert!(!short.is_cut && short.text.as_str().starts_with("1 passed [secret:"));
        let long = log(&format!("{}é\n{token}\nlast\n", "line é\n".repeat(2000)));
        assert!(long.is_cut && long.text.as_str().len() <= MAX_LOG);
        assert!(long.text.as_str().starts_with("line é\n") && !long.text.as_str().contains(&token));
        assert!(long.text.as_str().ends_with("]\nlast\n"));
    }

    #[test]
    fn line_of_a_subject_is_its_second_part() {
        assert_eq!(line_of("src/a.rs:12"), Some(12));
        assert_eq!(line_of("src/a.rs:12:3"), Some(12));
        assert_eq!(line_of("src/a.rs"), None);
        assert_eq!(line_of("attempt 2: x"), None);
    }
}
