//! The effects of servers, networks and budgets on a run: retries, skipped seats, and failures.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crucible_council::{
    CallUsage, CouncilError, Crucible, Degradation, DegradationKind, EngineConfig, ExecutorResult,
    HintedModels, Part, TriageContext,
};
use crucible_llm::{
    BudgetLimits, CallError, Context, Limit, LlmError, ProviderSettings, Resource, construct,
};
use crucible_testkit::{CouncilCall, FakeApi, Reply, RetryAfter, made_up_token};
use serde_json::json;
use tokio::time::Instant;

use crate::parallel::{calls, loops, seat, server};
use crate::support::{config, engine};

const QUESTION: &str = "Should we migrate to microservices?";
const ROLES: [&str; 3] = ["domain_expert", "pragmatist", "creative"];

/// The calls of a parallel two-loop council with these roles: the triage, twice the seats and the red
/// team, and the synthesis.
const CALLS: usize = 1 + 2 * (3 + 1) + 1;

/// A server with a parallel two-loop council that gives these first replies to one kind of call.
fn at_first(which: CouncilCall, replies: impl IntoIterator<Item = Reply>) -> FakeApi {
    let mut replies: Vec<Reply> = replies.into_iter().collect();
    replies.reverse();
    server(loops("parallel", &ROLES, 2), move |call| {
        if *call == which { replies.pop() } else { None }
    })
}

async fn run(config: EngineConfig) -> Result<ExecutorResult, CouncilError> {
    Ok(engine(config).run(QUESTION, &TriageContext::none()).await?)
}

fn count(server: &FakeApi, which: &CouncilCall) -> usize {
    calls(server).iter().filter(|call| *call == which).count()
}

fn limited(seconds: &str) -> Reply {
    Reply::RateLimited(RetryAfter::Value(seconds.to_owned()))
}

fn only(result: &ExecutorResult) -> &Degradation {
    assert_eq!(result.degradations.len(), 1, "{:?}", result.degradations);
    &result.degradations[0]
}

/// The error of a failed call of a part.
fn of_call(error: CouncilError, of: &str) -> CallError {
    match error {
        CouncilError::Call { part, source, .. } if part.to_string() == of => source,
        other => panic!("no failed call of the {of}: {other}"),
    }
}

#[tokio::test]
async fn transient_fault_is_retried() {
    for fault in [
        Reply::Status(503),
        Reply::Drop,
        limited("1"),
        Reply::RateLimited(RetryAfter::Absent),
    ] {
        let server = at_first(seat("pragmatist"), [fault.clone()]);
        let begun = Instant::now();
        let result = run(config(&server)).await.unwrap();
        assert!(
            begun.elapsed() >= Duration::from_secs(1),
            "{fault:?} is tried again after a second"
        );
        assert_eq!(result.degradations, [], "{fault:?}");
        assert_eq!(count(&server, &seat("pragmatist")), 3);
        // A retry is not a separate call, but it uses a slot of the budget.
        assert_eq!(
            (result.usage.calls, server.completions().len()),
            (CALLS as u64, CALLS + 1)
        );
    }
}

#[tokio::test]
async fn too_long_wait_fails_call_at_once() {
    let server = at_first(seat("pragmatist"), [limited("3600")]);
    let result = run(config(&server)).await.unwrap();
    let missing = only(&result);
    assert_eq!(
        (missing.kind, missing.loop_number),
        (DegradationKind::SeatMissing, Some(1))
    );
    assert!(missing.detail.contains("HTTP 429"), "{}", missing.detail);
    assert_eq!(server.completions().len(), CALLS);

    let server = FakeApi::start([limited("3600")]);
    let error = of_call(run(config(&server)).await.unwrap_err(), "triage");
    let CallError::Llm(LlmError::ProviderQuota(fault)) = error else {
        panic!("{error}")
    };
    assert_eq!(
        (fault.retry_after_seconds, server.completions().len()),
        (Some(3600), 1)
    );
}

#[tokio::test]
async fn refused_key_is_not_retried() {
    let server = FakeApi::start([Reply::Status(401)]);
    let error = of_call(run(config(&server)).await.unwrap_err(), "triage");
    assert!(
        matches!(error, CallError::Llm(LlmError::ProviderAuth(_))),
        "{error}"
    );
    assert_eq!(server.completions().len(), 1);
}

#[tokio::test]
async fn hanging_seat_times_out_and_is_skipped() {
    let server = at_first(seat("creative"), [Reply::Hang]);
    let mut config = config(&server);
    config.limits.call_timeout = Duration::from_secs(6);
    let result = run(config).await.unwrap();
    let missing = only(&result);
    assert_eq!(
        (missing.kind, missing.loop_number),
        (DegradationKind::SeatMissing, Some(1))
    );
    assert_eq!(missing.part.to_string(), "creative");
    assert!(
        missing.detail.contains("no answer within 6s"),
        "{}",
        missing.detail
    );
    assert_eq!(
        count(&server, &seat("creative")),
        2,
        "it is asked again in the next loop, not before"
    );
}

#[tokio::test]
async fn hanging_red_team_fails_run() {
    let server = at_first(CouncilCall::RedTeam, [Reply::Hang]);
    let mut config = config(&server);
    config.limits.call_timeout = Duration::from_secs(6);
    let error = of_call(run(config).await.unwrap_err(), "red_team");
    assert!(
        matches!(error, CallError::Llm(LlmError::Timeout { .. })),
        "{error}"
    );
    assert_eq!(count(&server, &CouncilCall::Synthesis), 0);
}

#[tokio::test]
async fn oversized_answers_are_refused() {
    let huge = || Reply::Huge(5_000_000);
    let server = at_first(seat("creative"), [huge()]);
    let result = run(config(&server)).await.unwrap();
    let missing = only(&result);
    assert_eq!(missing.kind, DegradationKind::SeatMissing);
    assert!(
        missing.detail.contains("5000000 bytes"),
        "{}",
        missing.detail
    );
    assert!(
        server
            .completions()
            .iter()
            .all(|request| request.conversation().len() < 100_000)
    );

    let server = at_first(CouncilCall::Synthesis, [huge()]);
    let error = run(config(&server)).await.unwrap_err();
    let CouncilError::AnswerTooLong {
        part: Part::Synthesis,
        loop_number: None,
        bytes: 5_000_000,
        limit,
    } = error
    else {
        panic!("{error}")
    };
    assert_eq!(limit, config(&server).limits.answer_bytes);
}

#[tokio::test]
async fn empty_seat_is_skipped_empty_synthesis_fails() {
    let says = |text: &str| Reply::Answer(text.to_owned());
    for nothing in [
        says(""),
        says(" \n\t"),
        says("\u{200b}\u{200d}\u{feff}\n"),
        Reply::NullContent,
    ] {
        let server = at_first(seat("creative"), [nothing.clone()]);
        let result = run(config(&server)).await.unwrap();
        assert_eq!(
            only(&result).kind,
            DegradationKind::SeatMissing,
            "{nothing:?}"
        );

        let server = at_first(CouncilCall::Synthesis, [nothing]);
        let error = of_call(run(config(&server)).await.unwrap_err(), "synthesis");
        assert!(
            matches!(error, CallError::Llm(LlmError::ProviderOutage(_))),
            "{error}"
        );
    }
}

#[tokio::test]
async fn secret_in_question_or_context_is_never_sent() {
    let server = at_first(CouncilCall::Triage, []);
    let engine = engine(config(&server));
    let key = made_up_token();
    let question = format!("Tell me:\nis {key} still good?");
    let failure = engine
        .run(&question, &TriageContext::none())
        .await
        .unwrap_err();
    let message = failure.to_string();
    assert!(
        matches!(*failure.error, CouncilError::SecretInQuery { line: 2, .. }),
        "{message}"
    );
    assert!(
        message.starts_with("the question holds a secret (rule ")
            && message.contains(", line 2); remove it")
    );
    assert!(!format!("{message} {failure:?}").contains(&key));
    // In the encoded JSON, a line break before the token would be an adjacent letter.
    for context in [
        json!({"key": key}),
        json!({"key": format!("A=1\n{key}\n")}),
        json!({"deep": [1, {"key": format!("x\n{key}")}]}),
        json!({"deep": [{format!("x\n{key}"): null}]}),
        json!({format!("x\n{key}"): 1}),
    ] {
        let entries = context.as_object().unwrap().clone();
        let failure = engine
            .run(QUESTION, &entries.into_iter().collect())
            .await
            .unwrap_err();
        let message = failure.to_string();
        assert!(
            matches!(*failure.error, CouncilError::SecretInContext { .. }),
            "{message}"
        );
        assert!(
            message.starts_with("the context holds a secret (rule "),
            "{message}"
        );
        assert!(!format!("{message} {failure:?}").contains(&key));
        assert_eq!(failure.usage.calls, 0);
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn secret_from_seat_is_redacted() {
    let leak = Reply::Answer(format!("Use {} for the cluster.", made_up_token()));
    let server = at_first(seat("creative"), [leak]);
    let result = run(config(&server)).await.unwrap();
    assert_eq!(only(&result).kind, DegradationKind::AnswerRedacted);
    assert_eq!(only(&result).part.to_string(), "creative");
    assert!(
        server
            .requests()
            .iter()
            .all(|request| !request.conversation().contains(&made_up_token()))
    );
    assert!(
        !serde_json::to_string(&result)
            .unwrap()
            .contains(&made_up_token())
    );
}

#[tokio::test]
async fn budget_too_small_for_council_ends_run() {
    let server = at_first(CouncilCall::Triage, []);
    let within = |calls: u64| {
        let mut config = config(&server);
        config.limits.budget = BudgetLimits::calls(calls);
        config
    };
    let worst = CALLS as u64;
    let error = run(within(worst - 1)).await.unwrap_err();
    let text = error.to_string();
    let CouncilError::BudgetTooSmall {
        needed,
        remaining_calls,
        limit,
    } = error
    else {
        panic!("{text}")
    };
    assert_eq!(
        (needed, remaining_calls, limit),
        (worst - 1, worst - 2, worst - 1)
    );
    assert!(
        text.contains("up to 9 more calls") && text.contains("8 of 9 left"),
        "{text}"
    );
    assert_eq!(calls(&server), [CouncilCall::Triage]);

    assert!(run(within(worst)).await.is_ok(), "what is needed is enough");
}

#[tokio::test]
async fn retries_use_only_spare_calls() {
    let within = |server: &FakeApi, calls: usize| {
        let mut config = config(server);
        config.limits.budget = BudgetLimits::calls(calls as u64);
        config
    };
    // Without a spare call the seat is missing in one loop, and the run has its answer.
    for fault in [limited("1"), Reply::Status(503)] {
        let server = at_first(seat("creative"), [fault]);
        let result = run(within(&server, CALLS)).await.unwrap();
        assert_eq!(only(&result).kind, DegradationKind::SeatMissing);
        assert!(
            !only(&result).detail.contains("budget"),
            "what the provider said: {:?}",
            only(&result)
        );
        assert_eq!(
            (server.completions().len(), result.usage.attempts),
            (CALLS, CALLS as u64)
        );
    }
    // One spare call is enough for one retry of any part.
    let server = at_first(CouncilCall::RedTeam, [Reply::Status(503)]);
    let result = run(within(&server, CALLS + 1)).await.unwrap();
    assert_eq!(
        (result.degradations.len(), server.completions().len()),
        (0, CALLS + 1)
    );
    assert_eq!(
        (result.usage.calls, result.usage.attempts),
        (CALLS as u64, CALLS as u64 + 1)
    );
    assert_eq!(
        result
            .usage_by_part
            .values()
            .map(|part| part.attempts)
            .sum::<u64>(),
        result.usage.attempts
    );

    // The red team is required: the run ends with the provider's error.
    let server = at_first(CouncilCall::RedTeam, [Reply::Status(503)]);
    let error = of_call(run(within(&server, CALLS)).await.unwrap_err(), "red_team");
    assert!(
        matches!(&error, CallError::Llm(LlmError::ProviderOutage(_))),
        "{error}"
    );
}

#[tokio::test]
async fn triage_retries_leave_a_call_for_answer() {
    for (calls, triages) in [(1, 1), (2, 1), (3, 2)] {
        let server = FakeApi::start([Reply::Status(503)]);
        let mut config = config(&server);
        config.limits.budget = BudgetLimits::calls(calls);
        let error = of_call(run(config).await.unwrap_err(), "triage");
        assert!(
            matches!(&error, CallError::Llm(LlmError::ProviderOutage(_))),
            "{error}"
        );
        assert_eq!(count(&server, &CouncilCall::Triage), triages);
    }
}

#[tokio::test]
async fn failing_seats_leave_calls_for_others() {
    let down = [seat("creative"), seat("pragmatist")];
    let mut configured = loops(
        "sequential",
        &["domain_expert", "synthesizer", "pragmatist", "creative"],
        5,
    );
    configured["allow_early_exit"] = false.into();
    let server = server(configured, move |call| {
        down.contains(call).then_some(Reply::Status(503))
    });
    let mut config = config(&server);
    config.limits.budget = BudgetLimits::calls(52);
    let result = run(config).await.unwrap();
    assert_eq!(result.loops_executed, 5);
    assert!(
        result
            .degradations
            .iter()
            .all(|worse| worse.kind == DegradationKind::SeatMissing)
    );
    assert_eq!(result.degradations.len(), 2 * 5);
    assert!(result.usage.attempts > result.usage.calls && result.usage.attempts <= 52);
}

#[tokio::test]
async fn exhausted_tokens_end_run() {
    let triage = loops("parallel", &ROLES, 2).to_string();
    let answer = json!({
        "choices": [{"message": {"content": triage}}],
        "usage": {"prompt_tokens": 99_000, "completion_tokens": 1_000},
    });
    let server = FakeApi::start([Reply::Raw(200, answer.to_string().into_bytes())]);
    let mut config = config(&server);
    config.limits.budget.tokens = Limit::At(100_000);
    let error = run(config).await.unwrap_err();
    let CouncilError::Call {
        part: Part::Seat(_),
        loop_number: Some(1),
        source,
    } = error
    else {
        panic!("{error}")
    };
    let CallError::Llm(LlmError::BudgetExceeded {
        resource: Resource::Tokens,
        ..
    }) = source
    else {
        panic!("{source}")
    };
    assert_eq!(calls(&server), [CouncilCall::Triage]);
}

#[tokio::test]
async fn each_run_has_a_budget_of_its_own() {
    let server = at_first(CouncilCall::Triage, []);
    let mut config = config(&server);
    config.limits.budget = BudgetLimits::calls(CALLS as u64);
    let engine = engine(config);
    for _ in 0..2 {
        let result = engine.run(QUESTION, &TriageContext::none()).await.unwrap();
        assert_eq!(result.usage.calls, CALLS as u64);
    }
}

/// OpenRouter with this server.
fn openrouter(server: &FakeApi) -> EngineConfig {
    let text = |text: &str| Some(text.to_owned());
    let settings = ProviderSettings {
        base_url: Some(server.base_url()),
        api_key_env: text("KEY"),
        model: text("maker/first"),
        max_tokens: Some(1000),
        referer: text("https://program.invalid/"),
        title: text("program"),
        ..ProviderSettings::default()
    };
    let key = crucible_model::Secret::new("k".to_owned());
    let context = Context::http_only([("KEY".to_owned(), key)]).unwrap();
    EngineConfig::with_backend(construct("openrouter", &settings, &context).unwrap())
}

#[test]
fn too_many_fallback_models_are_refused_unsent() {
    let server = FakeApi::start([Reply::Drop]);
    let four = ["maker/first", "maker/2", "maker/3", "maker/4"]
        .map(str::to_owned)
        .to_vec();
    let refused = |config: EngineConfig| match Crucible::new(config) {
        Err(
            error @ CouncilError::Setting {
                setting: "fallback_models",
                ..
            },
        ) => error.to_string(),
        Err(error) => panic!("{error}"),
        Ok(_) => "fine".to_owned(),
    };
    let with = |fallback_models: &[String]| EngineConfig {
        fallback_models: fallback_models.to_vec(),
        ..openrouter(&server)
    };
    assert_eq!(refused(with(&four[1..])), "fine");
    assert_eq!(
        refused(with(&four)),
        "fine",
        "the model that is asked is no fallback of itself"
    );
    let five = [four.clone(), vec!["maker/5".to_owned()]].concat();
    let message = "fallback_models is a list of 4 besides the requested model; OpenRouter accepts at most \
    three; name fewer";
    assert_eq!(refused(with(&five)), message);
    let other = || "maker/other".to_owned();
    assert_eq!(
        refused(EngineConfig {
            triage_model: other(),
            ..with(&four)
        }),
        message,
        "the triage asks another"
    );
    assert_eq!(
        refused(EngineConfig {
            default_model: other(),
            ..with(&four)
        }),
        message
    );
    let hinted = |hinted_models| EngineConfig {
        hinted_models,
        ..with(&four)
    };
    assert_eq!(
        refused(hinted(HintedModels::Any)),
        message,
        "a seat may ask another"
    );
    assert_eq!(refused(hinted(HintedModels::Only(vec![other()]))), message);
    assert_eq!(
        refused(hinted(HintedModels::Only(vec![" maker/2 ".to_owned()]))),
        "fine"
    );
    let of_phases = |models: &[(&str, &str)]| {
        let models = models
            .iter()
            .map(|(phase, model)| ((*phase).to_owned(), (*model).to_owned()))
            .collect();
        let config = with(&four);
        EngineConfig {
            backend: config.backend.with_phase_models(models),
            ..config
        }
    };
    assert_eq!(
        refused(of_phases(&[("spec", "maker/other")])),
        "fine",
        "no phase of a council"
    );
    assert_eq!(
        refused(of_phases(&[("council-judge", "maker/other")])),
        message
    );
    assert_eq!(refused(of_phases(&[("council-judge", "maker/4")])), "fine");
    let elsewhere = EngineConfig {
        fallback_models: five,
        ..config(&server)
    };
    assert_eq!(
        refused(elsewhere),
        "fine",
        "another backend passes over them"
    );
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn failure_has_loop_usage_and_degradations() {
    let mut attacks = 0;
    let server = server(loops("parallel", &ROLES, 2), move |call| match call {
        CouncilCall::RedTeam => {
            attacks += 1;
            (attacks == 2).then_some(Reply::Status(400))
        }
        call => (*call == seat("creative")).then_some(Reply::Status(400)),
    });
    let failure = engine(config(&server))
        .run(QUESTION, &TriageContext::none())
        .await
        .unwrap_err();
    assert!(
        failure
            .to_string()
            .starts_with("the seat red_team in loop 2 gave no answer: "),
        "{failure}"
    );
    assert!(std::error::Error::source(&failure).is_some_and(|source| source.is::<CallError>()));
    assert!(matches!(
        *failure.error,
        CouncilError::Call {
            loop_number: Some(2),
            ..
        }
    ));
    assert_eq!(failure.usage.calls, 1 + 2 * 4);
    assert!(failure.usage.tokens_output > 0 && failure.usage.calls_without_tokens == 3);
    let worse: Vec<_> = failure
        .degradations
        .iter()
        .map(|it| (it.kind, it.loop_number))
        .collect();
    assert_eq!(
        worse,
        [1, 2].map(|number| (DegradationKind::SeatMissing, Some(number)))
    );

    let nothing = engine(config(&server))
        .run(" ", &TriageContext::none())
        .await
        .unwrap_err();
    assert_eq!(
        (nothing.usage, nothing.degradations),
        (CallUsage::default(), Vec::new())
    );
}

#[tokio::test]
async fn fallback_models_are_sent_only_to_openrouter() {
    let server = at_first(CouncilCall::Triage, []);
    let fallback_models = vec!["maker/second".to_owned()];
    let result = run(EngineConfig {
        fallback_models: fallback_models.clone(),
        ..config(&server)
    })
    .await
    .unwrap();
    assert_eq!(only(&result).kind, DegradationKind::FallbackIgnored);
    assert!(
        server
            .requests()
            .iter()
            .all(|request| request.body.get("models").is_none())
    );

    let server = at_first(CouncilCall::Triage, []);
    let result = run(EngineConfig {
        fallback_models,
        ..openrouter(&server)
    })
    .await
    .unwrap();
    assert_eq!(result.degradations, []);
    assert_eq!(server.requests().len(), CALLS);
    for request in server.requests() {
        assert_eq!(
            (&request.body["model"], &request.body["models"]),
            (&json!("maker/first"), &json!(["maker/second"]))
        );
    }
}

/// A server that answers only the triage, and counts waiting and closed connections.
struct Waiting {
    address: SocketAddr,
    waiting: Arc<AtomicUsize>,
    gone: Arc<AtomicUsize>,
}

impl Waiting {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (waiting, gone) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let counters = (Arc::clone(&waiting), Arc::clone(&gone));
        // It ends with the test process.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (waiting, gone) = (Arc::clone(&counters.0), Arc::clone(&counters.1));
                thread::spawn(move || serve(stream, &waiting, &gone));
            }
        });
        Self {
            address,
            waiting,
            gone,
        }
    }

    fn engine(&self) -> Crucible {
        let settings = ProviderSettings {
            base_url: Some(format!("http://{}/v1", self.address)),
            model: Some("fake-model".to_owned()),
            max_tokens: Some(1000),
            ..ProviderSettings::default()
        };
        let backend = construct("gateway", &settings, &Context::http_only([]).unwrap()).unwrap();
        engine(EngineConfig::with_backend(backend))
    }
}

/// Answers the triage on a connection; for any other call waits until the connection is closed.
fn serve(mut stream: TcpStream, waiting: &AtomicUsize, gone: &AtomicUsize) {
    while let Some(request) = read_request(&mut stream) {
        if !request.contains("You configure a council") {
            waiting.fetch_add(1, Ordering::SeqCst);
            while matches!(stream.read(&mut [0; 1024]), Ok(1..)) {}
            gone.fetch_add(1, Ordering::SeqCst);
            return;
        }
        let triage = loops("parallel", &ROLES, 2).to_string();
        let body = json!({"choices": [{"message": {"content": triage}, "finish_reason": "stop"}]})
            .to_string();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length:";
        stream
            .write_all(format!("{head} {}\r\n\r\n{body}", body.len()).as_bytes())
            .unwrap();
    }
}

/// Reads one request to its last byte.
fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut seen = Vec::new();
    let mut piece = [0; 16 * 1024];
    loop {
        let count = stream.read(&mut piece).ok().filter(|count| *count > 0)?;
        seen.extend_from_slice(&piece[..count]);
        let text = String::from_utf8_lossy(&seen);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head = head.to_ascii_lowercase();
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return Some(text.into_owned());
            }
        }
    }
}

async fn until(number: usize, counted: &AtomicUsize) {
    while counted.load(Ordering::SeqCst) < number {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn dropping_a_run_ends_every_call_in_flight() {
    let server = Waiting::start();
    let (engine, context) = (server.engine(), TriageContext::none());
    tokio::select! {
        ended = engine.run(QUESTION, &context) => panic!("it must wait for its seats: {ended:?}"),
        () = until(ROLES.len(), &server.waiting) => {}
    }
    assert_eq!(
        server.gone.load(Ordering::SeqCst),
        0,
        "nobody hung up before"
    );
    tokio::time::timeout(Duration::from_secs(60), until(ROLES.len(), &server.gone))
        .await
        .unwrap();
    assert_eq!(server.waiting.load(Ordering::SeqCst), ROLES.len());
}
