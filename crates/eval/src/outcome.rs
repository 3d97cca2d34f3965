//! The outcome of a trial: one task, solved once in one configuration. A later evaluation resumes from its
//! document.

use crucible_model::Digest;
use crucible_repo::Oid;
use serde::{Deserialize, Serialize};

/// The version of a trial's document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TrialVersion {
    /// The only one so far.
    #[serde(rename = "crucible-eval-trial-v1")]
    V1,
}

/// How a trial ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialOutcome {
    /// A change landed and the check passes.
    Right,
    /// A change landed and the check fails.
    WrongLanded,
    /// A model was called but no change landed.
    NothingLanded,
    /// No change landed and no model was called: the project could not run, or the goal was refused.
    Declined,
    /// The task is invalid: its check passes without a solution, or fails with it. Not scored.
    Broken,
    /// The model could not be reached, or a limit of the whole evaluation stopped the trial. Not scored; run again with `--resume`.
    Unfinished,
}

impl TrialOutcome {
    /// Every outcome, in the order of reports.
    pub const ALL: [Self; 6] = [
        Self::Right,
        Self::WrongLanded,
        Self::NothingLanded,
        Self::Declined,
        Self::Broken,
        Self::Unfinished,
    ];

    /// Whether it counts as an observation of the configuration.
    #[must_use]
    pub(crate) const fn is_scored(self) -> bool {
        matches!(
            self,
            Self::Right | Self::WrongLanded | Self::NothingLanded | Self::Declined
        )
    }

    /// Its name, for people.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Right => "right",
            Self::WrongLanded => "wrong landed",
            Self::NothingLanded => "nothing landed",
            Self::Declined => "declined",
            Self::Broken => "broken",
            Self::Unfinished => "unfinished",
        }
    }
}

/// What calls of models took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spent {
    /// Attempts to call a model, failed ones included.
    pub calls: u64,
    /// Tokens of the requests, if the provider reports them.
    pub tokens_input: u64,
    /// Tokens of the answers, if the provider reports them.
    pub tokens_output: u64,
    /// Millionths of a US dollar; `None` if the cost of a call is unknown.
    pub micro_dollars: Option<u64>,
}

impl Spent {
    /// No call, which costs nothing.
    pub const NOTHING: Self = Self {
        calls: 0,
        tokens_input: 0,
        tokens_output: 0,
        micro_dollars: Some(0),
    };

    /// Returns the sum. A cost is known only if both are.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            calls: self.calls.saturating_add(other.calls),
            tokens_input: self.tokens_input.saturating_add(other.tokens_input),
            tokens_output: self.tokens_output.saturating_add(other.tokens_output),
            micro_dollars: self
                .micro_dollars
                .zip(other.micro_dollars)
                .map(|(first, second)| first.saturating_add(second)),
        }
    }
}

/// How a check ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "end", content = "detail")]
pub enum CheckEnd {
    /// It exited with this code; 0 means solved.
    Exited(i32),
    /// It was ended: time, output, disk or a signal; in words.
    Stopped(String),
    /// The hidden tests do not apply to the result, or a setup command failed.
    NotPrepared(String),
    /// It could not be started.
    NotStarted(String),
}

/// What a check said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// How it ended.
    pub end: CheckEnd,
    /// How long it took, setup included.
    pub seconds: f64,
}

impl Check {
    /// Whether the tests passed.
    #[must_use]
    pub fn passes(&self) -> bool {
        self.end == CheckEnd::Exited(0)
    }
}

/// The document of a trial, `result.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrialDocument {
    /// `crucible-eval-trial-v1`.
    pub schema_version: TrialVersion,
    /// The digest of all inputs that decide the outcome; another digest means another trial.
    pub inputs: Digest,
    /// The name of the configuration.
    pub configuration: String,
    /// The name of the task.
    pub task: String,
    /// Which sample of the task, from 1.
    pub sample: u64,
    /// The model's seed, if any.
    pub seed: Option<u64>,
    /// How it ended.
    pub outcome: TrialOutcome,
    /// Why, in one line.
    pub reason: String,
    /// The commit that landed.
    pub commit: Option<Oid>,
    /// The run's id, for a governed change.
    pub run: Option<String>,
    /// The result of the hidden tests.
    pub check: Option<Check>,
    /// What calls of models took.
    pub spent: Spent,
    /// Wall time of solving, without clone and check.
    pub seconds: f64,
    /// The directory with the raw logs, relative to the evaluation's directory.
    pub logs: String,
}
