//! Why a run has no result.
//!
//! No text here holds more of an answer than one short cleaned piece of it.

use std::error::Error;
use std::fmt;

use crucible_llm::{CallError, LlmError};
use crucible_model::counted;
use crucible_model::strict_json::StrictFault;

use crate::result::{CallUsage, Degradation, Part};
use crate::seat::SeatId;

/// Why a run has no result, and what came of it until then.
#[derive(Debug)]
pub struct CouncilFailure {
    /// Why.
    pub error: Box<CouncilError>,
    /// What the calls took that were made; nothing where none was.
    pub usage: CallUsage,
    /// What was worse than asked for until then, as in a result.
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
    /// Where nothing was asked.
    fn from(error: CouncilError) -> Self {
        Self { error: Box::new(error), usage: CallUsage::default(), degradations: Vec::new() }
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
    /// There is no question.
    #[error("the question is empty; ask something")]
    EmptyQuery,
    /// The question is too long: shorten it, or raise [`CouncilLimits::query_bytes`](crate::CouncilLimits::query_bytes).
    #[error("the question has {bytes} bytes; the limit is {limit}")]
    QueryTooLong {
        /// How many it has.
        bytes: usize,
        /// How many are taken.
        limit: usize,
    },
    /// The context for the triage is too long: pass less, or raise
    /// [`CouncilLimits::context_bytes`](crate::CouncilLimits::context_bytes).
    #[error("the context has {bytes} bytes as JSON; the limit is {limit}")]
    ContextTooLong {
        /// How many it has.
        bytes: usize,
        /// How many are taken.
        limit: usize,
    },
    /// The question holds a secret; nothing was sent. The secret itself is nowhere in here.
    #[error("the question holds a secret (rule {rule}, line {line}); remove it and ask again")]
    SecretInQuery {
        /// The rule that found it.
        rule: String,
        /// The line of the question, counted from 1.
        line: u64,
    },
    /// The context for the triage holds a secret; nothing was sent. The secret itself is nowhere in here.
    #[error(
        "the context holds a secret (rule {rule}, line {line} of one of its texts); remove it and ask again"
    )]
    SecretInContext {
        /// The rule that found it.
        rule: String,
        /// The line of the text that holds it, counted from 1.
        line: u64,
    },
    /// A setting cannot work.
    #[error("{setting} is {value}; {next}")]
    Setting {
        /// Which one.
        setting: &'static str,
        /// What it is set to.
        value: String,
        /// What to do.
        next: &'static str,
    },
    /// The triage's answer is not the object that was asked for. It is neither repaired nor asked for again.
    #[error(
        "the triage of {model} is invalid: {why}; choose a stronger triage model, or a provider that supports \
        JSON Schema"
    )]
    TriageUnreadable {
        /// The model that answered.
        model: String,
        /// What is wrong with it.
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
        /// By what, in words: `by its token limit or a provider filter`, with the provider's own reason.
        why: String,
    },
    /// The triage's answer breaks rules of the council. All of them are named.
    #[error("the triage of {model} breaks {}: {}; ask again, or choose a stronger triage model",
        counted(.violations.len() as u64, "rule"), joined(.violations))]
    TriageViolations {
        /// The model that answered.
        model: String,
        /// What it breaks.
        violations: Vec<Violation>,
    },
    /// The council that the triage asks for takes more calls than the budget has left: raise
    /// [`CouncilLimits::budget`](crate::CouncilLimits::budget), or ask something simpler.
    #[error("this council needs up to {needed} more calls, but the budget has only {left} of {limit} left")]
    BudgetTooSmall {
        /// The most calls that the rest of the run takes, retries aside.
        needed: u64,
        /// How many are left.
        left: u64,
        /// How many there may be.
        limit: u64,
    },
    /// A call without which the run cannot go on has no usable answer.
    #[error("the {} gave no answer: {source}", voice(.part, *.loop_number))]
    Call {
        /// Whose call it was.
        part: Part,
        /// In which loop; none outside of loops.
        loop_number: Option<u32>,
        /// What happened.
        source: CallError,
    },
    /// An answer without which the run cannot go on is too long: choose another model, or raise
    /// [`CouncilLimits::answer_bytes`](crate::CouncilLimits::answer_bytes).
    #[error("the answer of the {} has {bytes} bytes; the limit is {limit}", voice(.part, *.loop_number))]
    AnswerTooLong {
        /// Whose answer it was.
        part: Part,
        /// In which loop; none outside of loops.
        loop_number: Option<u32>,
        /// How many it has.
        bytes: usize,
        /// How many are taken.
        limit: usize,
    },
    /// Fewer than two deliberating seats are left: nobody is left to differ.
    #[error(
        "loop {loop_number} cannot continue: {left} of {seats} seats answered, but two are needed ({}); ask \
        again later, or choose another \
         model", told(.missing)
    )]
    TooFewSeats {
        /// Which loop.
        loop_number: u32,
        /// How many answered.
        left: usize,
        /// How many there are.
        seats: usize,
        /// Who did not, and why.
        missing: Vec<(SeatId, String)>,
    },
    /// An event loop for the blocking call cannot be started.
    #[error(
        "cannot start the event loop: {0}; free memory and file descriptors, or await `run` in your own event loop"
    )]
    Runtime(#[source] std::io::Error),
    /// The backend cannot be made ready.
    #[error(transparent)]
    Backend(#[from] LlmError),
}

/// A rule of the council that the triage's answer breaks (seed 001 §2.2, §4.2).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// A council has 3 to 5 seats.
    #[error("the council has {}; 3 to 5 are allowed", counted(*.found as u64, "seat"))]
    Seats {
        /// How many it has.
        found: usize,
    },
    /// Exactly one seat attacks.
    #[error("{found} seats have the role red_team; exactly one must")]
    RedTeams {
        /// How many do.
        found: usize,
    },
    /// There are 2 to 5 loops.
    #[error("loop_count is {found}; 2 to 5 are allowed")]
    LoopCount {
        /// How many are asked for.
        found: String,
    },
    /// Only what is simple goes without a council.
    #[error(
        "short_circuit_allowed is true but complexity is {found}; only simple questions may skip the council"
    )]
    ShortCircuit {
        /// How hard the question is said to be.
        found: &'static str,
    },
    /// A text that must say something says nothing.
    #[error("{field} is empty")]
    EmptyText {
        /// Which one.
        field: String,
    },
}

fn joined(violations: &[Violation]) -> String {
    violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

fn told(missing: &[(SeatId, String)]) -> String {
    missing.iter().map(|(seat, why)| format!("{seat}: {why}")).collect::<Vec<_>>().join("; ")
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
