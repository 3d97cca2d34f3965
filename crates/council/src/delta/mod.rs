//! Decides whether a loop changed anything: a trait, a judge by default, and two more strategies.
//!
//! Invariants: an unclear verdict counts as changed and is noted with its reason, so that a faulty
//! strategy cannot end a deliberation early. A custom strategy has the time limit of a call; a panic or a
//! timeout makes the verdict unclear.

mod judge;
mod similarity;
mod verdict;

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use crucible_model::short_line;
use futures_util::FutureExt;
use tokio::time::{Instant, timeout};

use crate::caller::{CallFailure, CallRequest, Caller};
use crate::config::DeltaChoice;
use crate::degradation::{Degradation, DegradationKind, Part};
use crate::error::CouncilError;

pub use verdict::{DeltaStrategy, DeltaVerdict, Positions};

/// The most characters of a reason that are kept.
const MAX_REPORTED: usize = 300;

/// Decides with the configured strategy. An unclear verdict is noted.
pub(crate) async fn detect(
    caller: &Caller<'_>,
    choice: &DeltaChoice,
    loop_number: u32,
    prior: &Positions,
    current: &Positions,
) -> Result<DeltaVerdict, CouncilError> {
    let verdict = match choice {
        DeltaChoice::Judge => ask_judge(caller, loop_number, prior, current).await?,
        DeltaChoice::TextSimilarity { threshold } => {
            similarity::verdict(prior, current, *threshold)
        }
        // This choice needs no call.
        DeltaChoice::Never => DeltaVerdict::Changed,
        DeltaChoice::Custom(strategy) => {
            ask_strategy(
                strategy.as_ref(),
                caller.limits().call_timeout,
                prior,
                current,
            )
            .await
        }
    };
    let DeltaVerdict::Unclear(reason) = verdict else {
        return Ok(verdict);
    };
    let reason = short_line(&reason, MAX_REPORTED);
    caller.note(Degradation {
        loop_number: Some(loop_number),
        part: Part::Judge,
        kind: DegradationKind::DeltaUnclear,
        detail: reason.clone(),
    });
    Ok(DeltaVerdict::Unclear(reason))
}

/// Runs a custom strategy with a time limit.
async fn ask_strategy(
    strategy: &dyn DeltaStrategy,
    time_limit: Duration,
    prior: &Positions,
    current: &Positions,
) -> DeltaVerdict {
    let begun = Instant::now();
    let decides = AssertUnwindSafe(async { strategy.detect(prior, current).await }).catch_unwind();
    match timeout(time_limit, decides).await {
        Ok(Err(_panic)) => DeltaVerdict::Unclear("the strategy panicked".to_owned()),
        // A strategy that blocks its thread can still be late.
        Ok(Ok(verdict)) if begun.elapsed() <= time_limit => verdict,
        Ok(Ok(_)) | Err(_) => DeltaVerdict::Unclear(format!(
            "the strategy did not answer within {} ms",
            time_limit.as_millis()
        )),
    }
}

/// The most calls that one decision takes.
pub(crate) fn calls(choice: &DeltaChoice) -> u64 {
    match choice {
        DeltaChoice::Judge => 1,
        DeltaChoice::TextSimilarity { .. } | DeltaChoice::Never | DeltaChoice::Custom(_) => 0,
    }
}

/// Asks the default model. If it fails, the loops continue, unless no further call can succeed.
async fn ask_judge(
    caller: &Caller<'_>,
    loop_number: u32,
    prior: &Positions,
    current: &Positions,
) -> Result<DeltaVerdict, CouncilError> {
    let ask = CallRequest {
        part: Part::Judge,
        loop_number: Some(loop_number),
        model: String::new(),
        messages: judge::messages(prior, current),
        schema: None,
    };
    match caller.ask(ask).await {
        Ok(answer) => Ok(judge::verdict(answer.text.as_str())),
        Err(last @ CallFailure::Final(_)) => Err(last.fatal(Part::Judge, Some(loop_number))),
        Err(none) => Ok(DeltaVerdict::Unclear(format!(
            "the judge gave no answer: {none}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::Arc;

    use async_trait::async_trait;
    use crucible_llm::{BudgetLimits, Context, ProviderSettings, construct};

    use super::*;
    use crate::config::EngineConfig;

    /// A configuration for a port on which nothing listens.
    fn unreachable() -> EngineConfig {
        let settings = ProviderSettings {
            base_url: Some("http://127.0.0.1:9/v1".to_owned()),
            model: Some("nobody".to_owned()),
            max_tokens: Some(10),
            ..ProviderSettings::default()
        };
        EngineConfig::with_backend(
            construct("gateway", &settings, &Context::http_only([]).unwrap()).unwrap(),
        )
    }

    async fn detected(
        config: &EngineConfig,
    ) -> (Result<DeltaVerdict, CouncilError>, Vec<Degradation>) {
        let caller = Caller::new(config);
        let (prior, current) = (Positions::new(), Positions::new());
        let verdict = detect(&caller, &config.delta_strategy, 2, &prior, &current).await;
        (verdict, caller.degradations())
    }

    #[tokio::test]
    async fn exhausted_budget_for_judge_ends_run() {
        let mut config = unreachable();
        config.limits.budget = BudgetLimits::calls(0);
        let (verdict, degradations) = detected(&config).await;
        assert!(
            matches!(
                verdict,
                Err(CouncilError::Call {
                    part: Part::Judge,
                    ..
                })
            ),
            "{verdict:?}"
        );
        assert!(degradations.is_empty());
    }

    struct Silent;

    #[async_trait]
    impl DeltaStrategy for Silent {
        async fn detect(&self, _: &Positions, _: &Positions) -> DeltaVerdict {
            pending().await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn slow_strategy_times_out_as_unclear() {
        let mut config = unreachable();
        config.limits.call_timeout = Duration::from_secs(7);
        config.delta_strategy = DeltaChoice::Custom(Arc::new(Silent));
        let begun = Instant::now();
        let (verdict, degradations) = detected(&config).await;
        let Ok(DeltaVerdict::Unclear(reason)) = verdict else {
            panic!("{verdict:?}")
        };
        assert_eq!(begun.elapsed().as_secs(), 7);
        assert_eq!(reason, "the strategy did not answer within 7000 ms");
        assert_eq!(degradations.len(), 1);
    }

    enum Unruly {
        Panics,
        Blocks,
    }

    #[async_trait]
    impl DeltaStrategy for Unruly {
        async fn detect(&self, _: &Positions, _: &Positions) -> DeltaVerdict {
            match self {
                Self::Panics => panic!("a bug of somebody else"),
                Self::Blocks => std::thread::sleep(Duration::from_millis(100)),
            }
            DeltaVerdict::Unchanged
        }
    }

    #[tokio::test]
    async fn panicking_or_blocking_strategy_is_unclear() {
        for (strategy, expected) in [
            (Unruly::Panics, "the strategy panicked"),
            (Unruly::Blocks, "the strategy did not answer within 5 ms"),
        ] {
            let mut config = unreachable();
            config.limits.call_timeout = Duration::from_millis(5);
            config.delta_strategy = DeltaChoice::Custom(Arc::new(strategy));
            let (verdict, degradations) = detected(&config).await;
            assert_eq!(verdict.unwrap(), DeltaVerdict::Unclear(expected.to_owned()));
            assert!(
                matches!(&degradations[..], [one] if one.kind == DegradationKind::DeltaUnclear)
            );
        }
    }

    struct Doubtful;

    #[async_trait]
    impl DeltaStrategy for Doubtful {
        async fn detect(&self, _: &Positions, _: &Positions) -> DeltaVerdict {
            DeltaVerdict::Unclear("\u{1b}[2J".repeat(10_000))
        }
    }

    #[tokio::test]
    async fn unclear_reason_is_short_and_sanitised() {
        let mut config = unreachable();
        config.delta_strategy = DeltaChoice::Custom(Arc::new(Doubtful));
        let (verdict, degradations) = detected(&config).await;
        let Ok(DeltaVerdict::Unclear(reason)) = verdict else {
            panic!("{verdict:?}")
        };
        assert!(
            reason.chars().count() <= MAX_REPORTED && !reason.contains('\u{1b}'),
            "{reason}"
        );
        assert!(
            matches!(&degradations[..], [one] if one.detail == reason && one.loop_number == Some(2))
        );
    }
}
