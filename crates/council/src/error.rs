//! The errors of a run.
//!
//! Invariant: an error quotes at most one short, sanitised piece of an answer.

use std::error::Error;
use std::fmt;

use crucible_llm::{CallError, LlmError};
use crucible_model::counted;
use crucible_model::strict_json::StrictFault;

use crate::degradation::{Degradation, Part};
use crate::seat::SeatId;
use crate::usage::CallUsage;

/// Why a run has no result, with the usage and the degradations until then.
#[derive(Debug)]
pub struct CouncilFailure {
    /// What ended the run.
    pub error: Box<CouncilError>,
    /// The usage of the calls that were made.
    pub usage: CallUsage,
    /// The degradations until then, as in a result.
    pub degradations: Vec<Degradation>,
}

impl fmt::Display for CouncilFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl Error for CouncilFailure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error.source()
    }
}

impl From<CouncilError> for CouncilFailure {
    /// For an error before any call.
    fn from(error: CouncilError) -> Self {
        Self {
            error: Box::new(error),
            usage: CallUsage::default(),
            degradations: Vec::new(),
        }
    }
}

impl From<CouncilFailure> for CouncilError {
    fn from(failure: CouncilFailure) -> Self {
        *failure.error
    }
}

/// Why a run has no result.
#[derive(Debug, thiserror::Error)]
pub enum CouncilError {
    /// The question is empty.
    #[error("the question is empty; ask something")]
    EmptyQuery,
    /// The question is too long: shorten it, or raise [`CouncilLimits::query_bytes`](crate::CouncilLimits::query_bytes).
    #[error("the question has {bytes} bytes; the limit is {limit}")]
    QueryTooLong {
        /// The question's size in bytes.
        bytes: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The context for the triage is too long: pass less, or raise
    /// [`CouncilLimits::context_bytes`](crate::CouncilLimits::context_bytes).
    #[error("the context has {bytes} bytes as JSON; the limit is {limit}")]
    ContextTooLong {
        /// The context's size in bytes.
        bytes: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The question contains a secret; nothing was sent. This error does not contain the secret.
    #[error("the question holds a secret (rule {rule}, line {line}); remove it and ask again")]
    SecretInQuery {
        /// The rule that matched.
        rule: String,
        /// The line of the question, counted from 1.
        line: u64,
    },
    /// The triage context contains a secret; nothing was sent. This error does not contain the secret.
    #[error(
        "the context holds a secret (rule {rule}, line {line} of one of its texts); remove it and ask again"
    )]
    SecretInContext {
        /// The rule that matched.
        rule: String,
        /// The line within the text that contains it, counted from 1.
        line: u64,
    },
    /// A setting has an invalid value.
    #[error("{setting} is {value}; {next}")]
    Setting {
        /// The name of the setting.
        setting: &'static str,
        /// The value that was set.
        value: String,
        /// What to do.
        next: &'static str,
    },
    /// The triage's answer is not the requested JSON object. It is neither repaired nor requested again.
    #[error(
        "the triage of {model} is invalid: {why}; choose a stronger triage model, or a provider that supports \
        JSON Schema"
    )]
    TriageUnreadable {
        /// The model that answered.
        model: String,
        /// What is wrong with the answer.
        why: StrictFault,
    },
    /// The triage's answer was cut off.
    #[error(
        "the triage of {model} was cut off {why}; raise the provider's max_tokens if that is the limit; \
        otherwise rephrase the question or choose another triage model"
    )]
    TriageCutShort {
        /// The model that answered.
        model: String,
        /// The cause in words: `by its token limit or a provider filter`, with the provider's own
        /// reason.
        why: String,
    },
    /// The triage's answer breaks rules of the council. All of them are listed.
    #[error("the triage answer of {model} violates {}: {}; ask again, or choose a stronger triage model",
        counted(.violations.len() as u64, "rule"), joined(.violations))]
    TriageViolations {
        /// The model that answered.
        model: String,
        /// The broken rules.
        violations: Vec<Violation>,
    },
    /// The configured council needs more calls than the budget has left: raise
    /// [`CouncilLimits::budget`](crate::CouncilLimits::budget), or ask something simpler.
    #[error(
        "this council needs up to {needed} more calls, but the budget has only {remaining_calls} of {limit} left"
    )]
    BudgetTooSmall {
        /// The worst case of calls for the rest of the run, without retries.
        needed: u64,
        /// The calls left.
        remaining_calls: u64,
        /// The call limit.
        limit: u64,
    },
    /// A required call has no usable answer.
    #[error("the {} gave no answer: {source}", voice(.part, *.loop_number))]
    Call {
        /// The part that made the call.
        part: Part,
        /// The loop, if any.
        loop_number: Option<u32>,
        /// The cause.
        source: CallError,
    },
    /// A required answer is too long: choose another model, or raise
    /// [`CouncilLimits::answer_bytes`](crate::CouncilLimits::answer_bytes).
    #[error("the answer of the {} has {bytes} bytes; the limit is {limit}", voice(.part, *.loop_number))]
    AnswerTooLong {
        /// The part that made the call.
        part: Part,
        /// The loop, if any.
        loop_number: Option<u32>,
        /// The answer's size in bytes.
        bytes: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// Fewer than two deliberating seats answered, so there is no disagreement left.
    #[error(
        "loop {loop_number} cannot continue: {left} of {seats} seats answered, but two are needed ({}); ask \
        again later, or choose another \
         model", list_missing(.missing)
    )]
    TooFewSeats {
        /// The number of the loop, from 1.
        loop_number: u32,
        /// The seats that answered.
        left: usize,
        /// The seats of the council.
        seats: usize,
        /// The seats that did not answer, and why.
        missing: Vec<(SeatId, String)>,
    },
    /// The event loop for the blocking call cannot be started.
    #[error(
        "cannot start the event loop: {0}; free memory and file descriptors, or await `run` in your own event loop"
    )]
    Runtime(#[source] std::io::Error),
    /// The backend cannot be created.
    #[error(transparent)]
    Backend(#[from] LlmError),
}

/// A rule of the council that the triage's answer breaks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// A council has 3 to 5 seats.
    #[error("the council has {}; 3 to 5 are allowed", counted(*.found as u64, "seat"))]
    Seats {
        /// The number of seats.
        found: usize,
    },
    /// Exactly one seat attacks.
    #[error("{found} seats have the role red_team; exactly one must")]
    RedTeams {
        /// The number of red teams.
        found: usize,
    },
    /// There are 2 to 5 loops.
    #[error("loop_count is {found}; 2 to 5 are allowed")]
    LoopCount {
        /// The requested number.
        found: String,
    },
    /// Only simple questions may skip the council.
    #[error(
        "short_circuit_allowed is true but complexity is {found}; only simple questions may skip the council"
    )]
    ShortCircuit {
        /// The stated complexity.
        found: &'static str,
    },
    /// A required text is empty.
    #[error("{field} is empty")]
    EmptyText {
        /// The key of the empty text.
        field: String,
    },
}

fn joined(violations: &[Violation]) -> String {
    violations
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("; ")
}

fn list_missing(missing: &[(SeatId, String)]) -> String {
    missing
        .iter()
        .map(|(seat, why)| format!("{seat}: {why}"))
        .collect::<Vec<_>>()
        .join("; ")
}

fn voice(part: &Part, loop_number: Option<u32>) -> String {
    let voice = match part {
        Part::Seat(seat) => format!("seat {seat}"),
        Part::DirectAnswer => "call for the direct answer".to_owned(),
        Part::Triage | Part::Judge | Part::Synthesis => part.to_string(),
    };
    match loop_number {
        Some(number) => format!("{voice} in loop {number}"),
        None => voice,
    }
}
