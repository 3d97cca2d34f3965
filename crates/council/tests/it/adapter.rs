//! The public adapter: its input checks before anything is sent, and the contexts it can be called in.

use std::time::Duration;

use crucible_council::{
    CouncilError, CouncilLimits, Crucible, DeltaChoice, EngineConfig, ExecutorResult, HintedModels,
    TriageContext,
};
use crucible_llm::{BudgetLimits, Limit};
use crucible_testkit::{CouncilCall, FakeApi, Reply, council_call, simple_triage, triage};
use serde_json::json;

use crate::support::{config, engine};

/// A server that answers every question directly.
fn simple() -> FakeApi {
    FakeApi::answering(|request| match council_call(request) {
        CouncilCall::Triage => Reply::Answer(simple_triage().to_string()),
        _ => Reply::Answer("Paris.".to_owned()),
    })
}

/// A server whose councils take two loops.
fn deliberating() -> FakeApi {
    FakeApi::answering(|request| match council_call(request) {
        CouncilCall::Triage => {
            let mut triage = triage("debate", &["domain_expert", "pragmatist"]);
            triage["loop_count"] = 2.into();
            Reply::Answer(triage.to_string())
        }
        _ => Reply::Answer("Keep it whole, for who would run twenty parts at night?".to_owned()),
    })
}

fn ask(engine: &Crucible) -> ExecutorResult {
    engine
        .run_blocking("What is the capital of France?", &TriageContext::none())
        .unwrap()
}

#[test]
fn run_is_send_and_engine_is_sync() {
    fn is_send<T: Send>(_: &T) {}
    fn is_shared<T: Send + Sync + 'static>(_: &T) {}
    let server = simple();
    let engine = engine(config(&server));
    is_shared(&engine);
    let context = TriageContext::none();
    is_send(&engine.run("Which?", &context));
    assert!(
        server.requests().is_empty(),
        "a future that is not awaited asks nobody"
    );
}

#[test]
fn blocking_run_works_without_event_loop() {
    let server = deliberating();
    let engine = engine(config(&server));
    for run in 1..=3 {
        assert_eq!(ask(&engine).loops_executed, 2, "run {run}");
    }
}

#[tokio::test]
async fn blocking_run_works_in_single_thread_loop() {
    let server = deliberating();
    let engine = engine(config(&server));
    assert_eq!(ask(&engine).loops_executed, 2);
    assert_eq!(ask(&engine).loops_executed, 2);
    let result = engine
        .run("And without blocking?", &TriageContext::none())
        .await
        .unwrap();
    assert_eq!(
        result.loops_executed, 2,
        "what an ended event loop leaves does not spoil the next run"
    );
    assert_eq!(
        ask(&engine).loops_executed,
        2,
        "nor does one that stands still meanwhile"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blocking_run_works_in_multi_thread_loop() {
    let server = deliberating();
    let shared = std::sync::Arc::new(engine(config(&server)));
    assert_eq!(ask(&shared).loops_executed, 2);
    let other_crucible = std::sync::Arc::clone(&shared);
    let result = tokio::task::spawn_blocking(move || ask(&other_crucible))
        .await
        .unwrap();
    assert_eq!(result.loops_executed, 2);
    let result = tokio::task::block_in_place(|| ask(&shared));
    assert_eq!(result.loops_executed, 2);
}

#[test]
fn blocking_run_returns_same_errors() {
    let server = simple();
    let ended = engine(config(&server))
        .run_blocking(" ", &TriageContext::none())
        .map_err(CouncilError::from);
    assert!(matches!(ended, Err(CouncilError::EmptyQuery)), "{ended:?}");
}

#[tokio::test]
async fn concurrent_runs_are_independent() {
    let server = FakeApi::answering(|request| match council_call(request) {
        CouncilCall::Triage => {
            let mut triage = simple_triage();
            let prompt = request.conversation();
            let city = if prompt.contains("FRANCE") {
                "about FRANCE"
            } else {
                "about ITALY"
            };
            triage["reconstructed_query"] = city.into();
            Reply::LateAnswer(triage.to_string(), Duration::from_millis(50))
        }
        _ => Reply::Answer(
            if request.conversation().contains("about FRANCE") {
                "Paris"
            } else {
                "Rome"
            }
            .into(),
        ),
    });
    let engine = engine(config(&server));
    let context = TriageContext::none();
    let (france, italy) = tokio::join!(
        engine.run("FRANCE?", &context),
        engine.run("ITALY?", &context)
    );
    assert_eq!(france.unwrap().final_response.as_str(), "Paris");
    assert_eq!(italy.unwrap().final_response.as_str(), "Rome");
}

#[tokio::test]
async fn empty_question_is_refused_unsent() {
    let server = simple();
    let engine = engine(config(&server));
    for query in [
        "",
        " ",
        "\n\t\r",
        "\u{a0}\u{3000}",
        "\u{200b}\u{feff}\u{202e} \u{0}",
    ] {
        let ended = engine
            .run(query, &TriageContext::none())
            .await
            .map_err(CouncilError::from);
        assert!(
            matches!(ended, Err(CouncilError::EmptyQuery)),
            "{query:?}: {ended:?}"
        );
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn oversized_input_is_refused_unsent() {
    let server = simple();
    let mut config = config(&server);
    config.limits.query_bytes = 10;
    config.limits.context_bytes = 20;
    let engine = engine(config);

    let ended = engine
        .run("eleven char", &TriageContext::none())
        .await
        .map_err(CouncilError::from);
    let Err(CouncilError::QueryTooLong {
        bytes: 11,
        limit: 10,
    }) = ended
    else {
        panic!("{ended:?}")
    };
    let context: TriageContext = [("key", json!("0123456789a"))].into_iter().collect();
    let ended = engine
        .run("ten chars.", &context)
        .await
        .map_err(CouncilError::from);
    let Err(CouncilError::ContextTooLong {
        bytes: 21,
        limit: 20,
    }) = ended
    else {
        panic!("{ended:?}")
    };
    assert!(server.requests().is_empty());

    assert!(
        engine
            .run("ten chars.", &TriageContext::none())
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn empty_context_fits_zero_limit() {
    let server = simple();
    let mut config = config(&server);
    config.limits.context_bytes = 0;
    let engine = engine(config);
    assert!(engine.run("Which?", &TriageContext::none()).await.is_ok());
    let context: TriageContext = [("a", 1)].into_iter().collect();
    let ended = engine
        .run("Which?", &context)
        .await
        .map_err(CouncilError::from);
    assert!(
        matches!(
            ended,
            Err(CouncilError::ContextTooLong { bytes: 7, limit: 0 })
        ),
        "{ended:?}"
    );
}

#[tokio::test]
async fn maximum_limits_work() {
    let server = deliberating();
    let mut config = config(&server);
    config.limits = CouncilLimits {
        budget: BudgetLimits {
            calls: Limit::Unlimited,
            tokens: Limit::At(u64::MAX),
            micro_dollars: Limit::Unlimited,
        },
        call_timeout: Duration::MAX,
        query_bytes: usize::MAX,
        context_bytes: usize::MAX,
        answer_bytes: usize::MAX,
        summary_chars: usize::MAX,
    };
    let result = engine(config)
        .run("Which?", &TriageContext::none())
        .await
        .unwrap();
    assert_eq!(result.loops_executed, 2);
}

#[test]
fn invalid_setting_error_has_name_value_hint() {
    let server = simple();
    let refused = |change: &dyn Fn(&mut EngineConfig)| {
        let mut config = config(&server);
        change(&mut config);
        match Crucible::new(config) {
            Err(error @ CouncilError::Setting { .. }) => error.to_string(),
            Err(error) => panic!("{error}"),
            Ok(_) => "fine".to_owned(),
        }
    };
    let threshold = |threshold: f64| {
        refused(&|config: &mut EngineConfig| {
            config.delta_strategy = DeltaChoice::TextSimilarity { threshold }
        })
    };
    for unfit in [f64::NAN, -0.001, 1.001, f64::INFINITY, f64::NEG_INFINITY] {
        let text = threshold(unfit);
        assert!(
            text.contains("threshold") && text.contains(&unfit.to_string()),
            "{text}"
        );
    }
    for fit in [0.0, 0.5, 1.0] {
        assert_eq!(threshold(fit), "fine");
    }
    type Change = fn(&mut EngineConfig);
    let unfit: [(&str, Change); 11] = [
        ("limits.call_timeout", |config| {
            config.limits.call_timeout = Duration::ZERO
        }),
        ("limits.query_bytes", |config| config.limits.query_bytes = 0),
        ("limits.answer_bytes", |config| {
            config.limits.answer_bytes = 0
        }),
        ("limits.summary_chars", |config| {
            config.limits.summary_chars = 0
        }),
        ("limits.budget.calls", |config| {
            config.limits.budget = BudgetLimits::calls(0)
        }),
        ("limits.budget.tokens", |config| {
            config.limits.budget.tokens = Limit::At(0);
        }),
        ("triage_model", |config| {
            config.triage_model = " ".to_owned()
        }),
        ("default_model", |config| {
            config.default_model = "\t".to_owned()
        }),
        ("fallback_models", |config| {
            config.fallback_models = vec!["a".to_owned(), String::new()]
        }),
        ("hinted_models", |config| {
            config.hinted_models = HintedModels::Only(vec![String::new()])
        }),
        ("triage_model", |config| {
            config.triage_model = "\n".repeat(1000)
        }),
    ];
    for (name, change) in unfit {
        let text = refused(&change);
        assert!(text.starts_with(&format!("{name} is ")), "{name}: {text}");
        assert!(text.len() < 200 && !text.contains('\n'), "{name}: {text}");
    }
    let fit: [Change; 3] = [
        |config| config.limits.budget.micro_dollars = Limit::At(0),
        |config| config.limits.context_bytes = 0,
        |config| config.hinted_models = HintedModels::Any,
    ];
    assert!(fit.iter().all(|change| refused(change) == "fine"));
    assert!(server.requests().is_empty());
}
