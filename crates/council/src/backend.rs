//! A council as a model backend: it is called like a model, deliberates, and gives one answer.
//!
//! Invariants: each call that the council makes counts against the caller's budget by itself, and there are no more of
//! them than `council.calls` and the caller allow. The council works on the whole question as it is, and answers in the
//! form that it asks for.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use crucible_llm::{
    Amount, BudgetLimits, CallBudget, CallError, Fault, FellBack, Limit, LlmBackend, LlmError,
    LlmInvocation, LlmResult, RequestFault, Resource,
};
use crucible_settings::variable_of;
use serde_json::json;

use crate::config::CouncilLimits;
use crate::configured::{ConfiguredCouncil, MIN_CALLS};
use crate::context::TriageContext;
use crate::deliberation::Deliberation;
use crate::error::{CouncilError, CouncilFailure};
use crate::result::ExecutorResult;
use crate::text::{degradation_lines, summary};

/// The name of the backend.
const COUNCIL: &str = "council";

/// A council as a backend.
pub struct CouncilBackend {
    council: ConfiguredCouncil,
    /// The caller's budget.
    budget: Arc<CallBudget>,
}

/// How many calls one question may take, and who says so.
struct Allowed {
    calls: u64,
    /// The run's limit and what was used of it before, where that leaves no more than the council's own does.
    by_run: Option<(u64, u64)>,
}

#[async_trait]
impl LlmBackend for CouncilBackend {
    async fn invoke(&self, inv: LlmInvocation) -> Result<LlmResult, LlmError> {
        let allowed = self.allowed().await?;
        let own = self.council.limits();
        let limits = CouncilLimits {
            budget: BudgetLimits {
                calls: Limit::At(allowed.calls),
                ..own.budget
            },
            call_timeout: inv.timeout,
            // How long a question of a run can be, the run's own limits say.
            query_bytes: usize::MAX,
            ..own.clone()
        };
        let texts: Vec<&str> = inv
            .messages
            .iter()
            .map(|message| message.content.as_str())
            .collect();
        let engine = self.council.engine_within(&self.budget, limits);
        let engine = engine.map_err(|error| failed(error, &allowed))?;
        let ended = engine.run(&texts.join("\n"), &TriageContext::none()).await;
        ended
            .map(|result| answer(result, &self.council))
            .map_err(|CouncilFailure { error, .. }| failed(*error, &allowed))
    }
}

impl CouncilBackend {
    /// Creates a backend each of whose calls also counts against `budget`.
    #[must_use]
    pub fn new(council: ConfiguredCouncil, budget: Arc<CallBudget>) -> Self {
        Self { council, budget }
    }

    /// How many calls a question may take now.
    async fn allowed(&self) -> Result<Allowed, LlmError> {
        let own = match self.council.limits().budget.calls {
            Limit::At(calls) => calls,
            Limit::Unlimited => u64::MAX,
        };
        let Limit::At(limit) = self.budget.limits().calls else {
            return Ok(Allowed {
                calls: own,
                by_run: None,
            });
        };
        let budget = Arc::clone(&self.budget);
        let unread = |detail: String| {
            let what =
                format!("no model was called because the remaining budget is unreadable: {detail}");
            LlmError::Misconfiguration(Fault::new(COUNCIL, COUNCIL, what, "fix that and continue"))
        };
        // A book of reservations may block.
        let used = tokio::task::spawn_blocking(move || budget.used()).await;
        let Amount { calls: used, .. } = used
            .map_err(|error| unread(error.to_string()))?
            .map_err(|error| unread(error.to_string()))?;
        let left = limit.saturating_sub(used);
        if left < MIN_CALLS {
            let attempted = used.saturating_add(MIN_CALLS);
            return Err(LlmError::BudgetExceeded {
                resource: Resource::Calls,
                limit,
                attempted,
            });
        }
        Ok(Allowed {
            calls: left.min(own),
            by_run: (left <= own).then_some((limit, used)),
        })
    }
}

/// Returns a council's answer with its usage.
fn answer(result: ExecutorResult, council: &ConfiguredCouncil) -> LlmResult {
    let usage = result.usage;
    let tokens = |count: u64| (usage.calls_without_tokens == 0).then_some(count);
    let details = json!({
        "summary": summary(&result),
        "loops_executed": result.loops_executed,
        "early_exit": result.early_exit,
        "usage": usage,
        "warnings": degradation_lines(&result.degradations),
        "provider": council.provider(),
        "deliberation": Deliberation::from_result(&result),
        "models": council.models_of(&result.usage_by_part),
        "fallback": council.fell_back().map(FellBack::warning),
    });
    LlmResult {
        raw_response: result.final_response.as_str().to_owned(),
        provider: COUNCIL.to_owned(),
        model_used: COUNCIL.to_owned(),
        tokens_input: tokens(usage.tokens_input),
        tokens_output: tokens(usage.tokens_output),
        timed_out: Some(false),
        extensions: BTreeMap::from([(COUNCIL.to_owned(), details)]),
    }
}

/// Why a council has no answer, as a model has none.
fn failed(error: CouncilError, allowed: &Allowed) -> LlmError {
    let fault = |what: String, next: &str| Fault::new(COUNCIL, COUNCIL, what, next);
    match error {
        CouncilError::Call {
            source: CallError::Llm(error),
            ..
        }
        | CouncilError::Backend(error) => error,
        CouncilError::BudgetTooSmall {
            needed,
            remaining_calls: left,
            limit,
        } => match allowed.by_run {
            Some((of_run, before)) => LlmError::BudgetExceeded {
                resource: Resource::Calls,
                limit: of_run,
                attempted: before
                    .saturating_add(limit.saturating_sub(left))
                    .saturating_add(needed),
            },
            None => LlmError::ProviderQuota(fault(
                format!(
                    "it needs up to {needed} more calls, but council.calls leaves {left} of {limit}"
                ),
                &format!("raise council.calls ({})", variable_of("council.calls")),
            )),
        },
        CouncilError::SecretInQuery { .. }
        | CouncilError::SecretInContext { .. }
        | CouncilError::Call {
            source: CallError::Secret(_),
            ..
        } => {
            let found = fault(error.to_string(), "if it is a real one, revoke it");
            LlmError::Unsupported(Box::new(Fault {
                request: Some(RequestFault::Secret),
                ..*found
            }))
        }
        CouncilError::EmptyQuery
        | CouncilError::QueryTooLong { .. }
        | CouncilError::ContextTooLong { .. }
        | CouncilError::Setting { .. }
        | CouncilError::Call {
            source: CallError::Record(_),
            ..
        } => LlmError::Misconfiguration(fault(error.to_string(), "look at the section [council]")),
        CouncilError::TriageUnreadable { .. }
        | CouncilError::TriageCutShort { .. }
        | CouncilError::TriageViolations { .. }
        | CouncilError::AnswerTooLong { .. }
        | CouncilError::TooFewSeats { .. } => LlmError::ProviderOutage(fault(
            error.to_string(),
            &format!(
                "continue the run, or choose another model ({})",
                variable_of("council.triage_model")
            ),
        )),
        CouncilError::Runtime(_) => {
            LlmError::Transport(fault(error.to_string(), "continue the run"))
        }
    }
}

#[cfg(test)]
mod tests {
    use crucible_llm::{SecretInRequest, SecretPlace};

    use super::*;
    use crate::degradation::Part;

    const ALLOWED: Allowed = Allowed {
        calls: 8,
        by_run: None,
    };

    #[test]
    fn secret_found_by_council_is_a_request_secret() {
        let (rule, line) = ("aws-access-key", 3);
        let found = SecretInRequest {
            rule: rule.to_owned(),
            place: SecretPlace::Message(1),
            line,
        };
        for error in [
            CouncilError::SecretInQuery {
                rule: rule.to_owned(),
                line,
            },
            CouncilError::SecretInContext {
                rule: rule.to_owned(),
                line,
            },
            CouncilError::Call {
                part: Part::Triage,
                loop_number: None,
                source: found.into(),
            },
        ] {
            let failed = failed(error, &ALLOWED);
            assert!(!failed.was_sent() && !failed.is_transient());
            // As a recording keeps it.
            let restored: LlmError =
                serde_json::from_str(&serde_json::to_string(&failed).unwrap()).unwrap();
            assert!(restored.holds_secret(), "{restored}");
            let message = restored.to_string();
            assert!(
                message.contains(rule) && !message.contains("[council]"),
                "{message}"
            );
        }
        let setting = CouncilError::Setting {
            setting: "council.calls",
            value: "0".to_owned(),
            next: "raise it",
        };
        let failed = failed(setting, &ALLOWED);
        assert!(matches!(failed, LlmError::Misconfiguration(_)), "{failed}");
    }
}
