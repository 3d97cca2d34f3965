//! The exit status and the hints of each error of this crate.

use crucible_llm::LlmError;
use crucible_model::strict_json::StrictFault;
use crucible_model::{ExitStatus, Failure};
use crucible_settings::variable_of;

use crate::error::{CouncilError, CouncilFailure};

/// How to get a better triage.
const OTHER_TRIAGE: &str = "Choose a stronger model for the triage alone with --triage-model, or set council.triage_model.";

impl From<CouncilFailure> for Failure {
    fn from(failure: CouncilFailure) -> Self {
        CouncilError::from(failure).into()
    }
}

impl From<CouncilError> for Failure {
    fn from(error: CouncilError) -> Self {
        let message = error.to_string();
        match error {
            CouncilError::EmptyQuery => Self::usage(message)
                .hint("For example: crucible ask \"Should we split our program into services?\""),
            CouncilError::SecretInQuery { .. } | CouncilError::SecretInContext { .. } => {
                Self::new(ExitStatus::SecretDetected, message)
            }
            // The settings of an engine are named as the keys below [council].
            CouncilError::Setting { .. } => Self::usage(format!("council.{message}")),
            CouncilError::QueryTooLong { .. } => Self::new(ExitStatus::OverLimit, message).hint(format!(
                "Shorten it, or raise council.max_query_bytes ({}).",
                variable_of("council.max_query_bytes")
            )),
            CouncilError::ContextTooLong { .. } => Self::new(ExitStatus::OverLimit, message).hint(format!(
                "Tell less with --context, or raise council.max_context_bytes ({}).",
                variable_of("council.max_context_bytes")
            )),
            CouncilError::TriageUnreadable { why, .. } => {
                let status = match why {
                    StrictFault::NoJson { .. } | StrictFault::TooLong { .. } => ExitStatus::Provider,
                    StrictFault::WrongShape { .. } => ExitStatus::Schema,
                };
                Self::new(status, message).hint(OTHER_TRIAGE)
            }
            CouncilError::TriageCutShort { .. } => Self::new(ExitStatus::Provider, message)
                .hint("The limit of tokens is max_tokens in the section of the provider, such as [llm.gateway].")
                .hint(OTHER_TRIAGE),
            CouncilError::TriageViolations { .. } => {
                Self::new(ExitStatus::Schema, message).hint(OTHER_TRIAGE)
            }
            CouncilError::BudgetTooSmall { needed, remaining_calls: left, limit } => {
                let enough = limit.saturating_sub(left).saturating_add(needed);
                let command = Self::new(ExitStatus::Provider, message).hint(format!(
                    "Ask something simpler; or this council goes through with --max-calls {enough}, or {}={enough}, retries aside.",
                    variable_of("council.calls")
                ));
                Self { budget_exhausted: true, ..command }
            }
            CouncilError::Call { source, .. } => {
                let command = Self { message, ..Self::from(source) };
                if command.budget_exhausted { command.hint(limit_hint()) } else { command }
            }
            CouncilError::AnswerTooLong { .. } => Self::new(ExitStatus::Provider, message).hint(format!(
                "Choose another model with --model, or raise council.max_answer_bytes ({}).",
                variable_of("council.max_answer_bytes")
            )),
            CouncilError::TooFewSeats { .. } => Self::new(ExitStatus::Provider, message).hint(
                "Ask again later, or choose another model with --model or another provider with --provider.",
            ),
            CouncilError::Runtime(_) => Self::refused(message),
            CouncilError::Backend(error) => {
                let exhausted = matches!(error, LlmError::BudgetExceeded { .. });
                let command = Self::from(error);
                if exhausted { command.hint(limit_hint()) } else { command }
            }
        }
    }
}

/// How to allow a question more.
fn limit_hint() -> String {
    format!(
        "Allow a question more with --max-calls or {} (calls), {} (tokens) or {} (dollars).",
        variable_of("council.calls"),
        variable_of("llm.budget.tokens"),
        variable_of("llm.budget.dollars")
    )
}

#[cfg(test)]
mod tests {
    use std::io;

    use crucible_llm::{CallError, Fault, Resource};

    use super::*;
    use crate::degradation::Part;
    use crate::error::Violation;
    use crate::seat::{CouncilRole, SeatId};

    fn ends(error: CouncilError) -> (u8, bool) {
        let command = Failure::from(error);
        (command.status.code(), command.budget_exhausted)
    }

    fn unreadable(why: StrictFault) -> CouncilError {
        CouncilError::TriageUnreadable {
            model: "m".to_owned(),
            why,
        }
    }

    fn call(source: LlmError) -> CouncilError {
        CouncilError::Call {
            part: Part::Synthesis,
            loop_number: None,
            source: CallError::Llm(source),
        }
    }

    fn fault() -> Box<Fault> {
        Fault::new("gateway", "m", "it broke", "fix it")
    }

    #[test]
    fn every_error_has_the_code_of_its_class() {
        let model = || "m".to_owned();
        let detail = || "d".to_owned();
        let exhausted = || LlmError::BudgetExceeded {
            resource: Resource::Calls,
            limit: 1,
            attempted: 2,
        };
        let seat = SeatId::of_roles([CouncilRole::Creative])[0];
        let cases = [
            (CouncilError::EmptyQuery, (2, false)),
            (
                CouncilError::Setting {
                    setting: "s",
                    value: detail(),
                    next: "n",
                },
                (2, false),
            ),
            (
                CouncilError::QueryTooLong { bytes: 2, limit: 1 },
                (7, false),
            ),
            (
                CouncilError::ContextTooLong { bytes: 2, limit: 1 },
                (7, false),
            ),
            (
                unreadable(StrictFault::NoJson { detail: detail() }),
                (70, false),
            ),
            (
                unreadable(StrictFault::TooLong { bytes: 2, limit: 1 }),
                (70, false),
            ),
            (
                unreadable(StrictFault::WrongShape { detail: detail() }),
                (3, false),
            ),
            (
                CouncilError::TriageCutShort {
                    model: model(),
                    why: detail(),
                },
                (70, false),
            ),
            (
                CouncilError::TriageViolations {
                    model: model(),
                    violations: vec![Violation::Seats { found: 7 }],
                },
                (3, false),
            ),
            (
                CouncilError::BudgetTooSmall {
                    needed: 9,
                    remaining_calls: 4,
                    limit: 5,
                },
                (70, true),
            ),
            (call(exhausted()), (70, true)),
            (call(LlmError::ProviderQuota(fault())), (70, false)),
            (call(LlmError::Misconfiguration(fault())), (2, false)),
            (
                CouncilError::AnswerTooLong {
                    part: Part::Judge,
                    loop_number: Some(2),
                    bytes: 2,
                    limit: 1,
                },
                (70, false),
            ),
            (
                CouncilError::TooFewSeats {
                    loop_number: 1,
                    left: 1,
                    seats: 2,
                    missing: vec![(seat, detail())],
                },
                (70, false),
            ),
            (
                CouncilError::Runtime(io::Error::other("no threads")),
                (1, false),
            ),
            (
                CouncilError::Backend(LlmError::Misconfiguration(fault())),
                (2, false),
            ),
            (CouncilError::Backend(exhausted()), (70, true)),
        ];
        for (error, expected) in cases {
            let debug = format!("{error:?}");
            assert_eq!(ends(error), expected, "{debug}");
        }
    }

    #[test]
    fn failed_call_names_role_and_budget_setting() {
        let exhausted = LlmError::BudgetExceeded {
            resource: Resource::Tokens,
            limit: 1,
            attempted: 2,
        };
        let error = Failure::from(call(exhausted));
        assert!(
            error.message.contains("synthesis gave no answer"),
            "{}",
            error.message
        );
        assert!(
            error
                .hints
                .iter()
                .any(|hint| hint.contains("CRUCIBLE_LLM_BUDGET_TOKENS")),
            "{:?}",
            error.hints
        );
        let error = Failure::from(CouncilError::BudgetTooSmall {
            needed: 9,
            remaining_calls: 4,
            limit: 5,
        });
        assert!(
            error
                .hints
                .iter()
                .any(|hint| hint.contains("--max-calls 10")),
            "{:?}",
            error.hints
        );
    }
}
