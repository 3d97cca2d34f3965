//! A council as one of those who serve a run: it is asked like a model, deliberates, and gives one answer.
//!
//! What holds: the run's recording keeps the question and the answer, so nobody deliberates twice about what was answered; each
//! call that the council makes takes its part of the run's budget by itself, and no more of them are made than `council.calls` and
//! the run allow. The council works on the question as it stands: on every file in it, and in the form that the role asks for.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use crucible_council::{
    CouncilError, CouncilFailure, CouncilLimits, ExecutorResult, TriageContext,
};
use crucible_llm::{
    Amount, BudgetLimits, CallBudget, CallError, ClientOptions, Fault, FellBack, Limit, LlmBackend,
    LlmError, LlmInvocation, LlmResult, ModelClient, Recording, RequestFault, Resource,
    RetryPolicy, UNSPECIFIED,
};
use crucible_run::{COUNCIL, DispatchConfig};
use crucible_settings::{Settings, variable_of};
use serde_json::json;

use super::clients::no_model;
use crate::app::App;
use crate::commands::council::{Bench, CouncilFlags, degraded, summary};
use crate::error::CommandError;

/// The fewest calls of a council: the triage, and an answer without anybody else.
const FEWEST_CALLS: u64 = 2;

/// The calls of a council cost what they cost; that it was asked costs nothing more.
const NO_LIMITS: BudgetLimits = BudgetLimits {
    calls: Limit::Unlimited,
    tokens: Limit::Unlimited,
    micro_dollars: Limit::Unlimited,
};

/// The council that serves roles of a run, checked and not yet asked.
pub(crate) struct ReadyCouncil(Bench);

impl ReadyCouncil {
    /// Makes it ready, where the dispatch of a run names one; `provider` is the run's own.
    pub(crate) fn of(
        app: &App,
        config: &Settings,
        dispatch: &DispatchConfig,
        provider: &str,
    ) -> Result<Option<Self>, CommandError> {
        if !dispatch.clients().contains(COUNCIL) {
            return Ok(None);
        }
        let provider = provider_of_council(config, provider)?;
        Bench::of(app, config, &CouncilFlags::default(), provider)
            .map(Self)
            .map(Some)
    }

    /// Its client, which records its answers there and lets each of its calls take its part of the budget.
    pub(crate) fn client(self, recording: Recording, budget: &Arc<CallBudget>) -> ModelClient {
        let backend = CouncilBackend {
            bench: self.0,
            budget: Arc::clone(budget),
        };
        let options = ClientOptions {
            recording,
            // Its calls were tried again where that could help.
            retry: RetryPolicy::NEVER,
            ..ClientOptions::new(CallBudget::new(NO_LIMITS))
        };
        ModelClient::new(no_model(COUNCIL, Box::new(backend)), options)
    }
}

/// Who answers a council that serves a run of this provider.
pub(crate) fn provider_of_council<'c>(
    config: &'c Settings,
    provider: &'c str,
) -> Result<&'c str, CommandError> {
    let is_model = |name: &&str| crucible_llm::provider(name).is_ok();
    let named = config.council.provider.as_deref();
    let named = named
        .or(Some(provider).filter(is_model))
        .or(config.llm.provider.as_deref());
    named.ok_or_else(|| {
        CommandError::usage(format!(
            "{UNSPECIFIED}: a council serves this run, and it needs models"
        ))
        .hint(format!(
            "Set council.provider ({}).",
            variable_of("council.provider")
        ))
    })
}

/// A council, as a backend.
struct CouncilBackend {
    bench: Bench,
    /// The run's.
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
        let own = self.bench.limits();
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
        let said: Vec<&str> = inv
            .messages
            .iter()
            .map(|message| message.content.as_str())
            .collect();
        let engine = self.bench.engine_within(&self.budget, limits);
        let engine = engine.map_err(|error| failed(error, &allowed))?;
        let ended = engine.run(&said.join("\n"), &TriageContext::none()).await;
        ended
            .map(|result| answer(result, &self.bench))
            .map_err(|CouncilFailure { error, .. }| failed(*error, &allowed))
    }
}

impl CouncilBackend {
    /// How many calls a question may take now.
    async fn allowed(&self) -> Result<Allowed, LlmError> {
        let own = match self.bench.limits().budget.calls {
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
        if left < FEWEST_CALLS {
            let attempted = used.saturating_add(FEWEST_CALLS);
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

/// What a council answered, with what it took.
fn answer(result: ExecutorResult, bench: &Bench) -> LlmResult {
    let usage = result.usage;
    let tokens = |count: u64| (usage.calls_without_tokens == 0).then_some(count);
    let told = json!({
        "summary": summary(&result),
        "loops_executed": result.loops_executed,
        "early_exit": result.early_exit,
        "usage": usage,
        "warnings": degraded(&result.degradations),
        "provider": bench.provider(),
        "models": bench.models_of(&result.usage_by_part),
        "fallback": bench.fell_back().map(FellBack::warning),
    });
    LlmResult {
        raw_response: result.final_response.as_str().to_owned(),
        provider: COUNCIL.to_owned(),
        model_used: COUNCIL.to_owned(),
        tokens_input: tokens(usage.tokens_input),
        tokens_output: tokens(usage.tokens_output),
        timed_out: Some(false),
        extensions: BTreeMap::from([(COUNCIL.to_owned(), told)]),
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
            left,
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
    use crucible_council::Part;
    use crucible_llm::{SecretInRequest, SecretPlace};
    use crucible_model::ExitStatus;
    use crucible_run::RunError;

    use super::*;

    #[test]
    fn a_secret_that_is_found_within_a_council_ends_the_run_like_any_other() {
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
            let failed = failed(
                error,
                &Allowed {
                    calls: 8,
                    by_run: None,
                },
            );
            assert!(!failed.was_sent() && !failed.is_transient());
            // As a recording keeps it.
            let kept: LlmError =
                serde_json::from_str(&serde_json::to_string(&failed).unwrap()).unwrap();
            let told = CommandError::from(RunError::Call(kept.into()));
            assert_eq!(told.status, ExitStatus::SecretDetected, "{}", told.message);
            assert!(
                told.message.contains(rule) && !told.message.contains("[council]"),
                "{}",
                told.message
            );
        }
        let setting = CouncilError::Setting {
            setting: "council.calls",
            value: "0".to_owned(),
            next: "raise it",
        };
        let failed = failed(
            setting,
            &Allowed {
                calls: 8,
                by_run: None,
            },
        );
        assert_eq!(CommandError::from(failed).status, ExitStatus::Usage);
    }
}
