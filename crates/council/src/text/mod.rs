//! A council's result and its usage, in words.

mod argument;

use crucible_llm::{CostBasis, dollars};
use crucible_model::{counted, one_line};

use crate::degradation::{Degradation, DegradationKind};
use crate::result::ExecutorResult;
use crate::usage::CallUsage;

pub use argument::{answer, argument};

/// Returns the degradations, one line each.
#[must_use]
pub fn degradation_lines(degradations: &[Degradation]) -> Vec<String> {
    let line = |degradation: &Degradation| match degradation.loop_number {
        Some(number) => format!("loop {number}: {}", degradation_text(degradation)),
        None => degradation_text(degradation),
    };
    degradations
        .iter()
        .map(|degradation| one_line(&line(degradation)))
        .collect()
}

/// Returns the loops and the usage of a result on one line.
#[must_use]
pub fn summary(result: &ExecutorResult) -> String {
    let how = match result.loops_executed {
        0 => "answered without a council".to_owned(),
        loops if result.early_exit => {
            format!(
                "{}, then nothing changed any more",
                counted(u64::from(loops), "loop")
            )
        }
        loops => counted(u64::from(loops), "loop"),
    };
    format!("{how}; {}", usage_line(&result.usage))
}

/// Returns the usage of calls on one line.
#[must_use]
pub fn usage_line(usage: &CallUsage) -> String {
    let tokens = match (
        usage.tokens_input.saturating_add(usage.tokens_output),
        unknown_of(usage, usage.calls_without_tokens),
    ) {
        (_, Unknown::All) => "tokens unknown".to_owned(),
        (tokens, Unknown::None) => counted(tokens, "token"),
        (tokens, Unknown::Some(_)) => format!("at least {}", counted(tokens, "token")),
    };
    let cost = match usage.cost_basis {
        None => "cost unknown".to_owned(),
        Some(_) => cost(usage),
    };
    // A repeated attempt is paid for too.
    let attempts = match usage.attempts {
        attempts if attempts > usage.calls => format!(" in {}", counted(attempts, "attempt")),
        _ => String::new(),
    };
    format!(
        "{}{attempts}, {tokens}, {cost}, {}",
        counted(usage.calls, "call"),
        seconds(usage.elapsed_ms)
    )
}

/// The number of calls without a known value.
enum Unknown {
    None,
    Some(String),
    All,
}

fn unknown_of(usage: &CallUsage, without: u64) -> Unknown {
    match without {
        0 => Unknown::None,
        all if all == usage.calls => Unknown::All,
        some => Unknown::Some(counted(some, "unknown call")),
    }
}

/// Returns this number of tokens, with the number of calls that are not in it.
#[must_use]
pub fn tokens(usage: &CallUsage, tokens: u64) -> String {
    match unknown_of(usage, usage.calls_without_tokens) {
        Unknown::None => tokens.to_string(),
        Unknown::Some(calls) => format!("{tokens} + {calls}"),
        Unknown::All => "unknown".to_owned(),
    }
}

/// Returns the cost with its basis, and the number of calls that are not in it.
#[must_use]
pub fn cost(usage: &CallUsage) -> String {
    let Some(basis) = usage.cost_basis else {
        return "unknown".to_owned();
    };
    let basis = match basis {
        CostBasis::Reported => "reported",
        CostBasis::Estimated => "estimated",
    };
    let known = format!("{} {basis}", dollars(usage.micro_dollars));
    match unknown_of(usage, usage.calls_without_cost) {
        Unknown::None => known,
        Unknown::Some(calls) => format!("{known} + {calls}"),
        Unknown::All => "unknown".to_owned(),
    }
}

/// Returns a duration in seconds with one decimal.
#[must_use]
pub fn seconds(milliseconds: u64) -> String {
    format!("{}.{} s", milliseconds / 1000, milliseconds % 1000 / 100)
}

/// Returns a degradation in words.
#[must_use]
pub fn degradation_text(degradation: &Degradation) -> String {
    let Degradation {
        part, kind, detail, ..
    } = degradation;
    let what = match kind {
        DegradationKind::SeatMissing => "gave no position",
        DegradationKind::DefenseMissing => "gave no defence; its position is unchanged",
        DegradationKind::AnswerCutShort => "was cut off; the partial text is used",
        DegradationKind::AnswerRedacted => "said something secret",
        DegradationKind::RedTeamYielded => "raised no objection",
        DegradationKind::DeltaUnclear => "gave no clear result, so the loop counts as changed",
        DegradationKind::HintRefused => "did not get the model that the triage named",
        DegradationKind::FallbackIgnored => "has no fallback models",
        DegradationKind::SummaryCut => "was shown only part of the deliberation",
        DegradationKind::QuestionShortened => "passed on less than half of the question",
    };
    format!("{part} {what}: {detail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(calls: u64) -> CallUsage {
        CallUsage {
            calls,
            ..CallUsage::default()
        }
    }

    #[test]
    fn cost_names_source_and_unknown_is_not_zero() {
        let of = |micro_dollars, calls_without_cost, cost_basis| {
            cost(&CallUsage {
                micro_dollars,
                calls_without_cost,
                cost_basis,
                ..usage(4)
            })
        };
        assert_eq!(of(0, 4, None), "unknown");
        assert_eq!(
            of(1_234_500, 0, Some(CostBasis::Reported)),
            "$1.2345 reported"
        );
        assert_eq!(of(20_000, 0, Some(CostBasis::Estimated)), "$0.02 estimated");
        assert_eq!(
            of(20_000, 1, Some(CostBasis::Estimated)),
            "$0.02 estimated + 1 unknown call"
        );
    }

    #[test]
    fn unreported_tokens_are_unknown() {
        let of = |calls_without_tokens, count| {
            tokens(
                &CallUsage {
                    calls_without_tokens,
                    ..usage(3)
                },
                count,
            )
        };
        assert_eq!(
            [of(0, 0), of(0, 7), of(2, 7), of(3, 0)],
            ["0", "7", "7 + 2 unknown calls", "unknown"]
        );
        assert_eq!(
            [seconds(0), seconds(999), seconds(61_250)],
            ["0.0 s", "0.9 s", "61.2 s"]
        );
    }
}
