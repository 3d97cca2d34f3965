//! An attempt at a patch: the model's answer, the patch gate's verdict and the gates' results.
//!
//! Each attempt has its own directory, `attempts/NNN/`; `artifacts/`, `reviews/` and `logs/` have copies of
//! the last one. An attempt has ended when the ledger has recorded its `outcome.json`.

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
/// The patch gate's verdict.
pub(crate) const REVIEW: &str = "review_patch.md";
/// How the attempt ended.
pub(crate) const OUTCOME: &str = "outcome.json";
/// The files that the answer requested, as a context pack.
pub(crate) const PACK: &str = "context_pack.json";
/// Standard output of the gates.
pub(crate) const STDOUT: &str = "stdout.log";
/// Standard error of the gates.
pub(crate) const STDERR: &str = "stderr.log";
/// The gates' report.
pub(crate) const REPORT: &str = "verify_report.json";

/// Returns the finding for an answer that cannot be used.
pub(crate) fn answer_fault_finding(fault: AnswerFault) -> Finding {
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
    /// The answer requests more files instead of proposing a change.
    FilesRequested,
    /// A gate failed.
    VerifyFailed,
    /// Every gate passed; it is compared with other candidates.
    Candidate,
    /// Every gate passed.
    Verified,
}

impl AttemptEnd {
    /// Whether the gates ran on the change.
    #[must_use]
    pub(crate) fn has_run_gates(self) -> bool {
        match self {
            Self::Refused | Self::Malformed | Self::Repeated | Self::FilesRequested => false,
            Self::VerifyFailed | Self::Candidate | Self::Verified => true,
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
    /// Its round out of the run's `max_iterations`, from 1; absent if equal to its own number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round: Option<u64>,
    /// The attempt whose change was chosen; absent unless candidates were compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen_from: Option<u64>,
    /// The requested edit format; absent in documents of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_for: Option<EditFormat>,
    /// The edit format of the answer; absent if none was recognised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_as: Option<EditFormat>,
    /// The digest of the answer's text.
    pub answer: Digest,
    /// The digest of the patch; absent if the answer contains none.
    pub patch: Option<Digest>,
    /// The attempt whose change is verified again, after a person accepted its refusal; absent in all others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<u64>,
    /// Findings of the patch gate and of the gates.
    pub findings: Vec<Finding>,
    /// The significant lines of the failing gates' output.
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

/// Copies outside `attempts/`, each with the name of its original in the attempt's directory.
pub(crate) const COPIES: [(&str, &str); 5] = [
    (layout::PATCH, PATCH),
    (layout::REVIEW_PATCH, REVIEW),
    (layout::VERIFY_REPORT, REPORT),
    (layout::STDOUT_LOG, STDOUT),
    (layout::STDERR_LOG, STDERR),
];

/// The name of the attempt's file that `path` is the copy of.
pub(crate) fn original_of(path: &str) -> Option<&'static str> {
    COPIES
        .iter()
        .find(|(copy, _)| *copy == path)
        .map(|(_, original)| *original)
}

/// Checks that the copies outside `attempts/` equal the verified attempt's files.
pub(crate) fn check_copies(dir: &RunDir, events: &[EventRecord]) -> Result<(), RunError> {
    let verified = recorded_outcomes(dir, events)?
        .pop()
        .is_some_and(|last| last.end == AttemptEnd::Verified);
    match edited_copies(dir, events)?.first().filter(|_| verified) {
        Some(copy) => Err(edited_since(dir, events, copy)),
        None => Ok(()),
    }
}

/// Returns the copies outside `attempts/` that differ from the last attempt's files. Valid only once no
/// further attempt can follow.
pub(crate) fn edited_copies(
    dir: &RunDir,
    events: &[EventRecord],
) -> Result<Vec<&'static str>, RunError> {
    let Some(last) = recorded_outcomes(dir, events)?
        .pop()
        .filter(|last| last.end.has_run_gates())
    else {
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
pub(crate) fn count_outcomes(dir: &RunDir) -> u64 {
    (1..)
        .take_while(|number| dir.has(&attempt_file(*number, OUTCOME)))
        .count() as u64
}

/// Returns the attempts whose end the ledger has recorded, in order. An outcome that is not recorded may be
/// partial or foreign. It is not read, and that attempt is judged and tested again.
pub(crate) fn recorded_outcomes(
    dir: &RunDir,
    events: &[EventRecord],
) -> Result<Vec<AttemptOutcome>, RunError> {
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

/// Returns whether an attempt's patch, end and report are recorded and unchanged.
pub(crate) fn is_fully_recorded(
    dir: &RunDir,
    events: &[EventRecord],
    number: u64,
) -> Result<bool, RunError> {
    for (step, name) in [
        (AttemptStep::Proposed, PATCH),
        (AttemptStep::Ended, OUTCOME),
        (AttemptStep::Report, REPORT),
    ] {
        if !is_recorded(
            dir,
            events,
            &attempt_key(number, step),
            &attempt_file(number, name),
        )? {
            return Ok(false);
        }
    }
    Ok(true)
}
