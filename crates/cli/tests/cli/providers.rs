//! Providers: who is asked, what happens when nobody answers, and how a run goes on afterwards.

use std::time::Duration;

use crucible_testkit::{FakeOpenAi, Reply, RetryAfter};

use crate::support::{Desk, answering, good_answer, id_of, small, snapshot};

#[test]
fn nobody_is_asked_by_default() {
    let (repo, desk) = (small().build(), Desk::new());
    for value in [None, Some("")] {
        let call = desk.start_call(repo.path()).without_env("CRUCIBLE_LLM_PROVIDER");
        let call = match value {
            Some(value) => call.env("CRUCIBLE_LLM_PROVIDER", value),
            None => call,
        };
        let ran = call.run().exits(2);
        assert!(ran.message().contains("LLM provider must be specified"), "{}", ran.stderr);
    }
    assert!(desk.runs().is_empty());
}

#[test]
fn a_provider_that_does_not_exist_is_refused_with_the_ones_that_do() {
    let (repo, desk) = (small().build(), Desk::new());
    let message = desk.start_call(repo.path()).args(["--provider", "oracle"]).run().exits(2).message();
    for name in ["oracle", "gateway", "claude-cli", "replay"] {
        assert!(message.contains(name), "{message}");
    }
    assert!(desk.runs().is_empty());
}

#[test]
fn models_that_act_by_themselves_are_refused() {
    let (repo, desk) = (small().build(), Desk::new());
    let call = desk.start_call(repo.path()).env("CRUCIBLE_LLM_EXECUTION_STRATEGY", "external_tool");
    let message = call.run().exits(2).message();
    assert!(
        message.contains("ExecutionStrategy::ExternalTool not yet supported in this version"),
        "{message}"
    );
    let call = desk.start_call(repo.path()).env("CRUCIBLE_LLM_EXECUTION_STRATEGY", "anything");
    assert!(call.run().exits(2).message().contains("controlled"));
    assert!(desk.runs().is_empty());
}

#[test]
fn a_key_that_is_named_and_not_set_is_a_configuration_error() {
    let (repo, server) = (small().build(), answering(good_answer()));
    let desk = Desk::with(&server);
    let call = desk.start_call(repo.path()).env("CRUCIBLE_LLM_GATEWAY_API_KEY_ENV", "AREA_KEY");
    assert!(call.run().exits(2).message().contains("AREA_KEY"));
    assert!(desk.runs().is_empty() && server.requests().is_empty());
}

/// The call fails with this code; the run is kept, and a better server finishes it.
#[track_caller]
fn fails_then_goes_on(reply: Reply, requests: usize, code: i32, says: &str) {
    let repo = small().build();
    let bad = FakeOpenAi::start([reply]);
    let desk = Desk::with(&bad);
    let before = snapshot(&repo, &desk);
    let ran = desk.start_call(repo.path()).env("CRUCIBLE_LLM_TIMEOUT_S", "1").run().exits(code);
    let error = ran.error();
    assert_eq!(error["exit_code"], code);
    assert_eq!(error["budget_exhausted"], false);
    assert!(error["error"].as_str().unwrap().contains(says), "{error}");
    assert!(error["hints"].to_string().contains("run advance"), "{error}");
    assert_eq!(bad.requests().len(), requests);
    let status = desk.status();
    assert_eq!(status["state"], "signed");
    before.is_still(&snapshot(&repo, &desk));

    let good = answering(good_answer());
    let call = desk.call(["run", "advance", "--json"]).env("CRUCIBLE_GATEWAY_BASE_URL", good.base_url());
    let advanced = call.run().ok().json();
    assert_eq!(advanced["state"], "verified");
    assert_eq!(good.requests().len(), 1);
    desk.run(["run", "land", &id_of(&status)]).ok();
    desk.run(["ledger", "verify", "--repo", repo.path().to_str().unwrap()]).ok();
}

#[test]
fn a_refused_key_ends_the_call_at_once() {
    fails_then_goes_on(Reply::Status(401), 1, 70, "refuses the key (HTTP 401)");
}

#[test]
fn a_rate_limit_ends_the_call_at_once() {
    fails_then_goes_on(Reply::RateLimited(RetryAfter::Absent), 1, 70, "HTTP 429");
}

#[test]
fn a_server_that_says_nothing_ends_the_call_in_time() {
    fails_then_goes_on(Reply::Hang, 1, 10, "(the call allows 1s, ");
}

#[test]
fn a_server_that_never_stops_ends_the_call_in_time() {
    fails_then_goes_on(Reply::Endless, 1, 10, "(the call allows 1s, ");
}

#[test]
fn a_web_page_is_no_answer() {
    fails_then_goes_on(Reply::Html, 1, 70, "the answer is a web page");
}

#[test]
fn a_failing_server_is_asked_again_and_then_given_up() {
    let repo = small().build();
    let bad = FakeOpenAi::start([Reply::Status(500)]);
    let desk = Desk::with(&bad);
    let error = desk.start(repo.path()).exits(70).error();
    assert!(error["error"].as_str().unwrap().contains("HTTP 500"), "{error}");
    assert_eq!(bad.requests().len(), 3);
    let good = FakeOpenAi::start([Reply::LateAnswer(good_answer(), Duration::from_millis(50))]);
    let call = desk.call(["run", "advance", "--json"]).env("CRUCIBLE_GATEWAY_BASE_URL", good.base_url());
    assert_eq!(call.run().ok().json()["state"], "verified");
}

#[test]
fn an_exhausted_budget_is_said_and_no_further_call_is_made() {
    let (repo, server) = (small().build(), answering("no"));
    let desk = Desk::with(&server);
    let call = desk.start_call(repo.path()).env("CRUCIBLE_OPENROUTER_BUDGET", "1");
    let error = call.run().exits(70).error();
    assert_eq!(error["budget_exhausted"], true);
    assert!(error["error"].as_str().unwrap().contains("LLM budget exhausted"), "{error}");
    assert_eq!(server.requests().len(), 1);
    // The run keeps the budget it was started with.
    let error = desk.run(["run", "advance", "--json"]).exits(70).error();
    assert_eq!(error["budget_exhausted"], true);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_recording_has_no_answer_to_another_question() {
    let (repo, server) = (small().build(), answering(good_answer()));
    let desk = Desk::with(&server);
    desk.start(repo.path()).ok();
    let cassette = desk.runs()[0].join("cassette.jsonl");
    let again = Desk::new();
    let other = small().file("src/area.py", "def area(): return 0\n").build();
    let call = again.start_call(other.path()).args(["--provider", "replay", "--cassette"]).arg(&cassette);
    let message = call.run().exits(2).message();
    assert!(message.contains("the recording does not hold this request"), "{message}");
    let missing = again.path("missing.jsonl");
    let call = again.start_call(other.path()).args(["--provider", "replay", "--cassette"]).arg(&missing);
    assert!(call.run().exits(2).message().contains("missing.jsonl"));
    assert_eq!(server.requests().len(), 1);
}
