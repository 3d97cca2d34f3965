//! Budgets, prices and fallbacks as a user meets them: kept in the ledger, refused before anything is sent, said in
//! the receipt.

use crucible_testkit::{FakeOpenAi, Reply};
use serde_json::{Value, json};

use crate::support::{Fixture, answering, good_answer, small};

fn receipt(fixture: &Fixture) -> Value {
    let path = fixture.runs()[0].join("receipt.json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn receipt_names_provider_and_cost() {
    let (repo, server) = (small().build(), answering(good_answer()));
    let fixture = Fixture::with(&server);
    fixture.user_config(
        "[llm.prices.\"gateway/*\"]\ninput = 1.0\noutput = 2.5\ndate = \"2026-01-31\"\nsource = \"a test\"\n",
    );
    fixture.start(repo.path()).ok();
    let receipt = receipt(&fixture);
    assert_eq!(receipt["schema_version"], "crucible-receipt-v1");
    assert_eq!(
        receipt["pipeline"],
        json!({ "execution_strategy": "controlled" })
    );
    let phase = &receipt["phases"][0];
    assert_eq!(
        (&phase["phase_id"], &phase["status"]),
        (&json!("patchmaker"), &json!("success"))
    );
    let llm = &phase["llm"];
    assert_eq!(llm["provider"], "gateway");
    assert_eq!(llm["budget_exhausted"], false);
    assert_eq!(llm["timed_out"], false);
    let (input, output) = (
        llm["tokens_input"].as_u64().unwrap(),
        llm["tokens_output"].as_u64().unwrap(),
    );
    let cost = (2 * input + 5 * output).div_ceil(2);
    assert_eq!(
        llm["cost"],
        json!({ "micro_dollars": cost, "basis": "estimated", "price_date": "2026-01-31" })
    );
    assert_eq!(phase["warnings"], json!([]));
}

#[test]
fn exhausted_budget_is_in_receipt_and_ledger() {
    let (repo, server) = (small().build(), answering("no"));
    let fixture = Fixture::with(&server);
    let call = fixture
        .start_call(repo.path())
        .env("CRUCIBLE_OPENROUTER_BUDGET", "1");
    assert_eq!(call.run().exits(70).error()["budget_exhausted"], true);
    let receipt = receipt(&fixture);
    let last = receipt["phases"]
        .as_array()
        .unwrap()
        .last()
        .unwrap()
        .clone();
    assert_eq!(last["status"], "failed");
    assert_eq!(last["llm"]["budget_exhausted"], true);
    assert_eq!(last["llm"]["error"], "budget_exceeded");
    assert_eq!(server.requests().len(), 1);
    // Going on without more budget asks nobody, and says so again.
    assert_eq!(
        fixture.run(["run", "advance", "--json"]).exits(70).error()["budget_exhausted"],
        true
    );
    assert_eq!(server.requests().len(), 1);
    fixture.run(["ledger", "verify"]).ok();
}

#[test]
fn money_limit_refuses_unpriced_and_expensive_calls() {
    let (repo, server) = (small().build(), answering(good_answer()));
    let fixture = Fixture::with(&server);
    let limited = || {
        fixture
            .start_call(repo.path())
            .env("CRUCIBLE_LLM_BUDGET_DOLLARS", "0.5")
    };
    let message = limited().run().exits(2).message();
    assert!(
        message.contains("no price is configured") && message.contains("llm.prices."),
        "{message}"
    );
    assert!(server.requests().is_empty());

    let price = |output: &str| {
        format!(
            "[llm.prices.\"gateway/*\"]\ninput = 0.0\noutput = {output}\ndate = \"2026-01-31\"\nsource = \"a test\"\n"
        )
    };
    fixture.user_config(&price("500.0"));
    let error = limited().run().exits(70).error();
    assert_eq!(error["budget_exhausted"], true);
    assert!(
        error["error"]
            .as_str()
            .unwrap()
            .contains("millionths of a dollar"),
        "{error}"
    );
    assert!(server.requests().is_empty());

    fixture.user_config(&price("1"));
    limited().run().ok();
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn price_without_date_source_or_number_is_refused() {
    let (repo, server) = (small().build(), answering(good_answer()));
    let fixture = Fixture::with(&server);
    for (lines, text) in [
        (
            "output = 1.0\ndate = \"2026-01-31\"\nsource = \"x\"",
            "has no input",
        ),
        (
            "input = 1.0\noutput = -3.0\ndate = \"2026-01-31\"\nsource = \"x\"",
            "has no output",
        ),
        (
            "input = nan\noutput = 1.0\ndate = \"2026-01-31\"\nsource = \"x\"",
            "a number that has an end",
        ),
        ("input = 1.0\noutput = 1.0\nsource = \"x\"", "has no date"),
        (
            "input = 1.0\noutput = 1.0\ndate = \"last week\"\nsource = \"x\"",
            "\"last week\"",
        ),
        (
            "input = 1.0\noutput = 1.0\ndate = \"2026-01-31\"",
            "has no source",
        ),
    ] {
        fixture.user_config(&format!("[llm.prices.\"gateway/gpt-4.1\"]\n{lines}\n"));
        let message = fixture.start_call(repo.path()).run().exits(2).message();
        assert!(
            message.contains("gateway/gpt-4.1") && message.contains(text),
            "{message}"
        );
    }
    for bad in ["-1", "inf", "nan", "1e12"] {
        fixture.user_config("");
        let message = fixture
            .start_call(repo.path())
            .env("CRUCIBLE_LLM_BUDGET_DOLLARS", bad)
            .run()
            .exits(2)
            .message();
        assert!(message.contains("llm.budget.dollars"), "{bad}: {message}");
    }
    assert!(server.requests().is_empty() && fixture.runs().is_empty());
}

#[test]
fn fallback_for_missing_provider_is_in_receipt() {
    let (repo, server) = (small().build(), answering(good_answer()));
    let fixture = Fixture::with(&server);
    let call = fixture
        .start_call(repo.path())
        .env("CRUCIBLE_LLM_PROVIDER", "claude-cli")
        .env("CRUCIBLE_LLM_CLAUDE_CLI_BINARY", "no-such-client")
        .args(["--fallback-provider", "gateway"]);
    let ran = call.run().ok();
    assert!(
        ran.stderr.contains("Using fallback 'gateway'"),
        "{}",
        ran.stderr
    );
    let receipt = receipt(&fixture);
    let warning = &receipt["phases"][0]["warnings"][0];
    assert_eq!(warning["type"], "llm_fallback");
    let message = warning["message"].as_str().unwrap();
    assert!(
        message.contains("Primary provider 'claude-cli' failed (misconfiguration)"),
        "{message}"
    );
    assert_eq!(receipt["phases"][0]["llm"]["provider"], "gateway");
}

#[test]
fn failing_call_never_triggers_the_fallback() {
    let (repo, other) = (small().build(), answering(good_answer()));
    let failing = FakeOpenAi::start([Reply::Status(401)]);
    let fixture = Fixture::with(&failing);
    let call = fixture
        .start_call(repo.path())
        .env("OTHER_KEY", "k")
        .env("CRUCIBLE_LLM_FALLBACK_PROVIDER", "openai")
        .env("CRUCIBLE_OPENAI_BASE_URL", other.base_url())
        .env("CRUCIBLE_LLM_OPENAI_API_KEY_ENV", "OTHER_KEY");
    call.run().exits(70);
    assert_eq!((failing.requests().len(), other.requests().len()), (1, 0));
}

#[test]
fn unusable_provider_and_fallback_report_both_reasons() {
    let (repo, fixture) = (small().build(), Fixture::new());
    let call = fixture
        .start_call(repo.path())
        .env("CRUCIBLE_LLM_PROVIDER", "claude-cli")
        .env("CRUCIBLE_LLM_CLAUDE_CLI_BINARY", "no-such-client")
        .env("CRUCIBLE_LLM_FALLBACK_PROVIDER", "openrouter");
    let message = call.run().exits(2).message();
    assert!(
        message.contains("no-such-client") && message.contains("OPENROUTER_API_KEY"),
        "{message}"
    );
    assert!(fixture.runs().is_empty());
}

#[test]
fn extreme_token_counts_keep_the_run_usable() {
    let repo = small().build();
    let server = FakeOpenAi::answering(|_| {
        let body = format!(
            r#"{{"model":"m","choices":[{{"message":{{"content":{}}},"finish_reason":"stop"}}],"usage":{{"prompt_tokens":18446744073709551615,"completion_tokens":9223372036854775808}}}}"#,
            json!(good_answer())
        );
        Reply::Raw(200, body.into_bytes())
    });
    let fixture = Fixture::with(&server);
    fixture.start(repo.path()).ok();
    let llm = receipt(&fixture)["phases"][0]["llm"].clone();
    assert_eq!(llm["provider"], "gateway");
    assert!(
        llm.get("tokens_input").is_none() && llm.get("tokens_output").is_none(),
        "{llm}"
    );
    let id = fixture.status()["run"]["run_id"]
        .as_str()
        .unwrap()
        .to_owned();
    fixture.run(["ledger", "verify"]).ok();
    fixture.run(["run", "replay", &id]).ok();
    fixture.run(["run", "land", &id]).ok();
}

#[test]
fn pipe_as_recording_does_not_block() {
    let (repo, fixture) = (small().build(), Fixture::new());
    let pipe = fixture.path("pipe");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    for unusual_text in [pipe.to_str().unwrap(), "/dev/zero"] {
        fixture.user_config(&format!("[llm.replay]\ncassette = {unusual_text:?}\n"));
        fixture.run(["doctor"]).ok();
        let call = fixture
            .start_call(repo.path())
            .env("CRUCIBLE_LLM_PROVIDER", "replay");
        let message = call.run().exits(2).message();
        assert!(message.contains("not a regular file"), "{message}");
    }
}

#[test]
fn budget_without_calls_is_refused_everywhere() {
    let (repo, server) = (small().build(), answering(good_answer()));
    let fixture = Fixture::with(&server);
    let calls = "CRUCIBLE_LLM_BUDGET_CALLS";
    let start = || fixture.start_call(repo.path());
    // An answer of a person is a call, too.
    for call in [start(), start().args(["--mode", "manual_outbox"])] {
        let message = call.env(calls, "0").run().exits(2).message();
        assert!(message.contains("llm.budget.calls is 0"), "{message}");
    }
    let ran = fixture.call(["doctor"]).env(calls, "0").run().exits(2);
    assert!(
        ran.stderr.contains("llm.budget.calls is 0"),
        "{}",
        ran.stderr
    );
    assert_eq!(server.requests().len(), 0);
    start().env(calls, "1").run().ok();
}
