//! Budgets hold under concurrency and for every end of a call.

use std::collections::BTreeMap;
use std::sync::Arc;

use crucible_llm::{
    Amount, Asks, BudgetLimits, Budgeted, CallBudget, CallEnd, ClientExtra, Fault, Limit,
    ListedPrice, LlmBackend, LlmError, Origin, PlannedCall, Price, PriceTable, ReservationError,
    ReservationStore, Resource, Retried, RetryPolicy, Ticket,
};
use proptest::prelude::*;
use serde_json::json;

use crate::support::{NO_LIMITS, Scripted, Shared, answer, ask, outage};

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .enable_time()
        .build()
        .unwrap()
}

fn under(inner: Shared, most: u64, budget: Arc<CallBudget>, price: Price) -> Budgeted<Shared> {
    let lines = match price {
        Price::Unknown => BTreeMap::new(),
        price => {
            let (date, source) = ("2026-01-01".to_owned(), "a test".to_owned());
            BTreeMap::from([(
                "scripted/*".to_owned(),
                ListedPrice {
                    price,
                    date,
                    source,
                },
            )])
        }
    };
    Budgeted::new(
        inner,
        Asks {
            provider: "scripted",
            max_output_tokens: most,
            extra: ClientExtra::NONE,
            origin: Origin::Live,
        },
        budget,
        Arc::new(PriceTable::new(lines)),
    )
}

fn tokens(limit: u64) -> BudgetLimits {
    BudgetLimits {
        tokens: Limit::At(limit),
        ..NO_LIMITS
    }
}

mod properties {
    use super::*;

    proptest! {
        /// Seed 002, property 9: everything up to the limit is sent, and nothing beyond it.
        #[test]
        fn parallel_calls_never_overshoot_a_limit_of_calls(limit in 0u64..80, failing in 0usize..64) {
            runtime().block_on(async {
                let failures = (0..failing).map(|_| Err(outage(400)));
                let backend = Scripted::new(failures);
                let budget = CallBudget::new(BudgetLimits::calls(limit));
                let calls: Vec<_> = (0..64).map(|_| {
                    let budgeted = under(Shared(backend.clone()), 100, Arc::clone(&budget), Price::Unknown);
                    tokio::spawn(async move { budgeted.invoke(ask("x")).await })
                }).collect();
                let mut refused = 0;
                for call in calls {
                    if let Err(LlmError::BudgetExceeded { resource, limit: said, attempted }) = call.await.unwrap() {
                        assert_eq!((resource, said), (Resource::Calls, limit));
                        assert!(attempted > limit);
                        refused += 1;
                    }
                }
                assert_eq!(backend.calls(), limit.min(64));
                assert_eq!(refused, 64 - limit.min(64));
                assert_eq!(budget.used().unwrap().calls, limit.min(64));
            });
        }

        /// Used and reserved tokens always stay within the limit, and so do the real tokens of the
        /// answers.
        #[test]
        fn parallel_calls_never_overshoot_a_limit_of_tokens(limit in 0u64..20_000, most in 5u64..1000) {
            runtime().block_on(async {
                let backend = Scripted::new([]);
                let budget = CallBudget::new(tokens(limit));
                let calls: Vec<_> = (0..64).map(|_| {
                    let budgeted = under(Shared(backend.clone()), most, Arc::clone(&budget), Price::Unknown);
                    let budget = Arc::clone(&budget);
                    tokio::spawn(async move {
                        let _outcome = budgeted.invoke(ask("x")).await;
                        budget.used().unwrap().tokens
                    })
                }).collect();
                for call in calls {
                    assert!(call.await.unwrap() <= limit);
                }
                // Each answer reports 15 tokens.
                assert_eq!(budget.used().unwrap().tokens, 15 * backend.calls());
            });
        }

        /// For any sequence of reservations: the call count never decreases, and limits hold at each
        /// reservation.
        #[test]
        fn slots_are_never_given_back(steps in proptest::collection::vec((0u64..50, 0u64..60, any::<bool>()), 1..100)) {
            let budget = CallBudget::new(BudgetLimits { calls: Limit::At(40), tokens: Limit::At(1000), ..NO_LIMITS });
            let runtime = runtime();
            let mut slots = 0;
            for (held, spent, settles) in steps {
                let before = budget.used().unwrap();
                let worst = Amount { calls: 1, tokens: held, micro_dollars: 0 };
                match runtime.block_on(budget.reserve("scripted", &ask("x"), worst)) {
                    Ok(reservation) => {
                        slots += 1;
                        prop_assert!(budget.used().unwrap().tokens <= 1000);
                        if settles {
                            let tokens = Some((spent.min(held), 0));
                            let end = CallEnd { outcome: "ok", tokens, micro_dollars: None };
                            runtime.block_on(reservation.settle(end)).unwrap();
                        }
                    }
                    Err(ReservationError::Exhausted { .. }) => prop_assert_eq!(budget.used().unwrap(), before),
                    Err(other) => prop_assert!(false, "{}", other),
                }
                prop_assert_eq!(budget.used().unwrap().calls, slots);
                prop_assert!(slots <= 40);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn retries_count_against_call_limit() {
    let backend = Scripted::new((0..10).map(|_| Err(outage(500))));
    let budget = CallBudget::new(BudgetLimits::calls(2));
    let budgeted = under(
        Shared(backend.clone()),
        100,
        Arc::clone(&budget),
        Price::Unknown,
    );
    let error = Retried::new(budgeted, RetryPolicy::PHASES)
        .invoke(ask("x"))
        .await
        .unwrap_err();
    assert_eq!(
        error,
        LlmError::BudgetExceeded {
            resource: Resource::Calls,
            limit: 2,
            attempted: 3
        }
    );
    assert!(
        error.to_string().starts_with("LLM budget exhausted"),
        "{error}"
    );
    assert_eq!((backend.calls(), budget.used().unwrap().calls), (2, 2));
}

#[tokio::test]
async fn refused_calls_return_only_tokens() {
    let refused = LlmError::ProviderAuth(Fault::new("p", "m", "w", "n"));
    for (error, keeps_tokens) in [(refused, false), (outage(500), true)] {
        let budget = CallBudget::new(NO_LIMITS);
        let backend = Scripted::new([Err(error)]);
        let budgeted = under(Shared(backend), 100, Arc::clone(&budget), Price::Unknown);
        assert!(budgeted.invoke(ask("x")).await.is_err());
        assert_eq!(budget.used().unwrap().calls, 1);
        assert_eq!(budget.used().unwrap().tokens > 0, keeps_tokens);
    }
}

#[tokio::test]
async fn a_call_that_is_abandoned_stays_reserved() {
    let budget = CallBudget::new(NO_LIMITS);
    let backend = Scripted::new([]);
    let budgeted = under(Shared(backend), 100, Arc::clone(&budget), Price::Unknown);
    // Polled once, so that it is in flight, then dropped as by an interrupt.
    tokio::select! {
        biased;
        _ = budgeted.invoke(ask("x")) => panic!("it must not end at the first poll"),
        () = std::future::ready(()) => {}
    }
    assert_eq!(budget.used().unwrap().calls, 1);
    assert!(budget.used().unwrap().tokens > 100);
}

#[tokio::test]
async fn reported_cost_overrides_estimate() {
    let price = Price::PerMillionTokens {
        input: 1_000_000,
        output: 2_000_000,
    };
    let limits = BudgetLimits {
        micro_dollars: Limit::At(100_000),
        ..NO_LIMITS
    };
    let budget = CallBudget::new(limits);
    let mut reported = answer("ok");
    reported
        .extensions
        .insert("cost_micro_dollars".to_owned(), json!(7));
    let backend = Scripted::new([Ok(answer("ok")), Ok(reported)]);
    let budgeted = under(Shared(backend), 100, Arc::clone(&budget), price);
    budgeted.invoke(ask("x")).await.unwrap();
    assert_eq!(budget.used().unwrap().micro_dollars, 10 + 2 * 5);
    budgeted.invoke(ask("x")).await.unwrap();
    assert_eq!(budget.used().unwrap().micro_dollars, 20 + 7);

    let unpriced = under(
        Shared(Scripted::new([])),
        100,
        CallBudget::new(limits),
        Price::Unknown,
    );
    let error = unpriced.invoke(ask("x")).await.unwrap_err();
    assert!(matches!(error, LlmError::Misconfiguration(_)), "{error}");
}

/// A book that always fails.
struct Broken;

impl ReservationStore for Broken {
    fn reserve(
        &self,
        _call: &PlannedCall,
        _limits: &BudgetLimits,
    ) -> Result<Ticket, ReservationError> {
        Err(ReservationError::Unavailable {
            detail: "the disk is full".to_owned(),
        })
    }

    fn settle(&self, _ticket: Ticket, _end: &CallEnd) -> Result<(), ReservationError> {
        Err(ReservationError::Unavailable {
            detail: "the disk is full".to_owned(),
        })
    }

    fn used(&self) -> Result<Amount, ReservationError> {
        Err(ReservationError::Unavailable {
            detail: "the disk is full".to_owned(),
        })
    }
}

#[tokio::test]
async fn unreserved_call_is_not_sent() {
    let backend = Scripted::new([]);
    let budget = CallBudget::with_store(NO_LIMITS, Arc::new(Broken));
    let error = under(Shared(backend.clone()), 100, budget, Price::Unknown)
        .invoke(ask("x"))
        .await;
    let text = error.unwrap_err().to_string();
    assert!(
        text.contains("nothing was sent") && text.contains("the disk is full"),
        "{text}"
    );
    assert_eq!(backend.calls(), 0);
}

#[tokio::test]
async fn tokens_added_by_client_are_reserved() {
    let budget = CallBudget::new(tokens(5000));
    let asks = Asks {
        provider: "scripted",
        max_output_tokens: 100,
        extra: ClientExtra {
            added_tokens: 4096,
            ..ClientExtra::NONE
        },
        origin: Origin::Live,
    };
    let budgeted = Budgeted::new(
        Shared(Scripted::new([])),
        asks,
        Arc::clone(&budget),
        Arc::default(),
    );
    budgeted.invoke(ask(&"x".repeat(100))).await.unwrap();
    let error = budgeted.invoke(ask(&"x".repeat(600))).await.unwrap_err();
    assert!(
        matches!(
            error,
            LlmError::BudgetExceeded {
                resource: Resource::Tokens,
                ..
            }
        ),
        "{error}"
    );
}

#[tokio::test]
async fn retrying_client_reserves_every_request() {
    let budget = CallBudget::new(tokens(100_000));
    let extra = ClientExtra {
        requests: 4,
        ..ClientExtra::NONE
    };
    let asks = Asks {
        provider: "scripted",
        max_output_tokens: 1000,
        extra,
        origin: Origin::Live,
    };
    let backend = Scripted::new([Err(LlmError::Unsupported(Fault::new("p", "m", "w", "n")))]);
    let budgeted = Budgeted::new(Shared(backend), asks, Arc::clone(&budget), Arc::default());
    assert!(budgeted.invoke(ask("x")).await.is_err());
    assert!(budget.used().unwrap().tokens > 4000);
}

#[tokio::test]
async fn hints_count_and_invalid_hint_is_refused() {
    let budget = CallBudget::new(tokens(5000));
    let backend = Scripted::new([]);
    let budgeted = under(
        Shared(backend.clone()),
        100,
        Arc::clone(&budget),
        Price::Unknown,
    );
    let mut inv = ask("x");
    inv.metadata.insert(
        "response_format".to_owned(),
        json!({ "description": "d".repeat(6000) }),
    );
    assert!(matches!(
        budgeted.invoke(inv).await,
        Err(LlmError::BudgetExceeded { .. })
    ));
    for bad in [json!(-1), json!(0), json!(20.5), json!("all")] {
        let mut inv = ask("x");
        inv.metadata.insert("max_tokens".to_owned(), bad.clone());
        let error = budgeted.invoke(inv).await.unwrap_err();
        assert!(matches!(error, LlmError::Unsupported(_)), "{bad}: {error}");
    }
    assert_eq!(backend.calls(), 0);
}

#[tokio::test]
async fn replayed_answers_cost_nothing() {
    let budget = CallBudget::new(BudgetLimits {
        micro_dollars: Limit::At(5),
        ..NO_LIMITS
    });
    let mut reported = answer("ok");
    reported
        .extensions
        .insert("cost_micro_dollars".to_owned(), json!(7_000_000));
    let asks = Asks {
        provider: "replay",
        max_output_tokens: 9,
        extra: ClientExtra::NONE,
        origin: Origin::Recording,
    };
    let backend = Shared(Scripted::new([Ok(reported)]));
    Budgeted::new(backend, asks, Arc::clone(&budget), Arc::default())
        .invoke(ask("x"))
        .await
        .unwrap();
    assert_eq!(budget.used().unwrap().micro_dollars, 0);
}

#[tokio::test]
async fn unpaid_origin_uses_only_the_call() {
    let limits = BudgetLimits {
        calls: Limit::At(1),
        tokens: Limit::At(1),
        micro_dollars: Limit::At(1),
    };
    let budget = CallBudget::new(limits);
    let mut llm_result = answer("ok");
    llm_result
        .extensions
        .insert("cost_micro_dollars".to_owned(), json!(7_000_000));
    let asks = Asks {
        provider: "manual_outbox",
        max_output_tokens: 0,
        extra: ClientExtra::NONE,
        origin: Origin::Unpaid,
    };
    let backend = Shared(Scripted::new([Ok(llm_result.clone()), Ok(llm_result)]));
    let person = Budgeted::new(backend, asks, Arc::clone(&budget), Arc::default());
    person
        .invoke(ask("a question of more than one token"))
        .await
        .unwrap();
    assert_eq!(
        budget.used().unwrap(),
        Amount {
            calls: 1,
            tokens: 0,
            micro_dollars: 0
        }
    );
    let refused = person.invoke(ask("x")).await.unwrap_err();
    assert!(
        matches!(
            refused,
            LlmError::BudgetExceeded {
                resource: Resource::Calls,
                ..
            }
        ),
        "{refused}"
    );
}
