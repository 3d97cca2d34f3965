//! One attempt at a patch: what the model answered, what the patch gate said, how the gates ended.
//!
//! Each attempt has its own directory, `attempts/NNN/`; what `artifacts/`, `reviews/` and `logs/` hold is a copy of
//! the last one. An attempt is over when the ledger has recorded its `outcome.json`.

use crucible_ledger::EventRecord;
use crucible_llm::AnswerFault;
use crucible_model::{Digest, EditFormat, Finding};
use crucible_patch::AnswerError;
use serde::{Deserialize, Serialize};

use crate::document::versions;
use crate::error::RunError;
use crate::event_kind::{AttemptStep, attempt_key};
use crate::journal::edited_since;
use crate::layout::{self, RunDir, attempt_file};
use crate::recorded::is_recorded;

/// The model's words.
pub(crate) const ANSWER: &str = "answer.txt";
/// The patch they amount to.
pub(crate) const PATCH: &str = "diff.patch";
/// What the patch gate said of it.
pub(crate) const REVIEW: &str = "review_patch.md";
/// How the attempt ended.
pub(crate) const OUTCOME: &str = "outcome.json";
/// The files that the answer asked for, as a context pack.
pub(crate) const PACK: &str = "context_pack.json";
/// Standard output of the gates.
pub(crate) const STDOUT: &str = "stdout.log";
/// Standard error of the gates.
pub(crate) const STDERR: &str = "stderr.log";
/// The gates' report.
pub(crate) const REPORT: &str = "verify_report.json";

/// The finding about an answer that came and cannot be taken.
pub(crate) fn unusable(fault: AnswerFault) -> Finding {
    match fault {
        AnswerFault::Empty => AnswerError::Empty.finding(),
        AnswerFault::TooLarge => AnswerError::Unread.finding(),
    }
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptEnd {
    /// The patch gate refused it.
    Refused,
    /// The answer holds no change that could be judged: its form is at fault.
    Malformed,
    /// The change is that of an earlier attempt.
    Repeated,
    /// The answer asks for more files instead of proposing a change.
    FilesRequested,
    /// A gate failed.
    VerifyFailed,
    /// Every gate passed.
    Verified,
}

impl AttemptEnd {
    /// Whether the gates ran on the change.
    #[must_use]
    pub fn is_tried(self) -> bool {
        match self {
            Self::Refused | Self::Malformed | Self::Repeated | Self::FilesRequested => false,
            Self::VerifyFailed | Self::Verified => true,
        }
    }

    /// Whether the patch gate refused the answer, so that there is a review of it and no trial.
    pub(crate) fn is_refused(self) -> bool {
        matches!(self, Self::Refused | Self::Malformed | Self::Repeated)
    }
}

/// One attempt, ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttemptOutcome {
    /// Which version of the document this is.
    pub schema_version: AttemptVersion,
    /// Counted from 1.
    pub number: u64,
    /// How it ended.
    pub end: AttemptEnd,
    /// Which of the run's `max_iterations` it belongs to, counted from 1; absent where that is its own number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round: Option<u64>,
    /// The edit format that was asked for; absent in documents of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_for: Option<EditFormat>,
    /// The edit format that the answer has; absent where none was read in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_as: Option<EditFormat>,
    /// The digest of the answer's text.
    pub answer: Digest,
    /// The digest of the patch; absent where the answer amounts to none.
    pub patch: Option<Digest>,
    /// What the patch gate found, and what the gates did.
    pub findings: Vec<Finding>,
    /// The telling lines of what the failing gates printed.
    pub output: String,
}

impl AttemptOutcome {
    /// Which of the run's `max_iterations` it belongs to, counted from 1.
    #[must_use]
    pub fn round(&self) -> u64 {
        self.round.unwrap_or(self.number)
    }
}

versions! {
    /// The schema id of `outcome.json`.
    pub AttemptOutcome, AttemptVersion = "crucible-attempt-v1"
}

/// What lies outside of `attempts/` as a copy, with the name of its original in the attempt's directory.
pub(crate) const COPIES: [(&str, &str); 5] = [
    (layout::PATCH, PATCH),
    (layout::REVIEW_PATCH, REVIEW),
    (layout::VERIFY_REPORT, REPORT),
    (layout::STDOUT_LOG, STDOUT),
    (layout::STDERR_LOG, STDERR),
];

/// The name of the attempt's file that `path` is the copy of.
pub(crate) fn original_of(path: &str) -> Option<&'static str> {
    COPIES.iter().find(|(copy, _)| *copy == path).map(|(_, original)| *original)
}

/// Makes sure that what lies outside of `attempts/` is still the copy of the verified attempt's files.
pub(crate) fn check_copies(dir: &RunDir, events: &[EventRecord]) -> Result<(), RunError> {
    let verified = recorded(dir, events)?.pop().is_some_and(|last| last.end == AttemptEnd::Verified);
    match edited_copies(dir, events)?.first().filter(|_| verified) {
        Some(copy) => Err(edited_since(dir, events, copy)),
        None => Ok(()),
    }
}

/// What lies outside of `attempts/` and is no longer the copy of the last attempt's files. Means something once that attempt is
/// the last one for good.
pub(crate) fn edited_copies(dir: &RunDir, events: &[EventRecord]) -> Result<Vec<&'static str>, RunError> {
    let Some(last) = recorded(dir, events)?.pop().filter(|last| last.end.is_tried()) else {
        return Ok(Vec::new());
    };
    let mut edited = Vec::new();
    for (copy, original) in COPIES {
        if dir.read_if_there(copy)? != dir.read_if_there(&attempt_file(last.number, original))? {
            edited.push(copy);
        }
    }
    Ok(edited)
}

/// How many attempts of a run have an outcome, recorded or not.
pub(crate) fn count_written(dir: &RunDir) -> u64 {
    (1..).take_while(|number| dir.has(&attempt_file(*number, OUTCOME))).count() as u64
}

/// The attempts of a run whose end the ledger has recorded, in their order. Only that makes an end true: an outcome that is written and
/// not recorded was cut off, is only a part of one, or is somebody else's; it is not read, and that attempt is judged and tried again.
pub(crate) fn recorded(dir: &RunDir, events: &[EventRecord]) -> Result<Vec<AttemptOutcome>, RunError> {
    let mut outcomes = Vec::new();
    loop {
        let number = outcomes.len() as u64 + 1;
        let path = attempt_file(number, OUTCOME);
        if !is_recorded(dir, events, &attempt_key(number, AttemptStep::Ended), &path)? {
            return Ok(outcomes);
        }
        outcomes.push(dir.read_document(&path)?);
    }
}

/// Whether the ledger has recorded an attempt's patch, its end and its report, and each is still what it was.
pub(crate) fn is_recorded_whole(dir: &RunDir, events: &[EventRecord], number: u64) -> Result<bool, RunError> {
    for (step, name) in
        [(AttemptStep::Proposed, PATCH), (AttemptStep::Ended, OUTCOME), (AttemptStep::Report, REPORT)]
    {
        if !is_recorded(dir, events, &attempt_key(number, step), &attempt_file(number, name))? {
            return Ok(false);
        }
    }
    Ok(true)
}
