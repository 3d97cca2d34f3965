//! Every way in which `crucible ask` ends without an answer: the exit code, what it says, and what to do.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crucible_testkit::{CouncilCall, FakeApi, Reply, simple_triage, triage};
use serde_json::{Value, json};

use super::support::{ROLES, asked, council, usual};
use crate::crawl::support::wait_for;
use crate::support::{Fixture, Ran};

const QUESTION: &str = "Should our team of five split its program into services?";

/// A council whose triage is answered so.
fn under(reply: Reply) -> FakeApi {
    council(Value::Null, move |call| {
        (*call == CouncilCall::Triage).then(|| reply.clone())
    })
}

/// A council in which this call is answered so, and all others as usual.
fn except(call: CouncilCall, reply: Reply) -> FakeApi {
    council(triage("parallel", &ROLES), move |council_call| {
        (*council_call == call).then(|| reply.clone())
    })
}

fn ask(server: &FakeApi) -> Ran {
    Fixture::with(server).run(["ask", QUESTION, "--json"])
}

/// The error document of a call that ended so.
#[track_caller]
fn failed(ran: Ran, code: i32) -> Value {
    let ran = ran.exits(code);
    assert_eq!(
        ran.stderr.lines().count(),
        1,
        "the document of the error stands alone: {}",
        ran.stderr
    );
    let error = ran.error();
    assert_eq!(
        (&error["schema_version"], &error["exit_code"]),
        (&json!("crucible-error-v1"), &json!(code))
    );
    error
}

/// Whether the text of the error, or one of its hints, holds these words.
#[track_caller]
fn tells(error: &Value, words: &str) {
    assert!(
        error["error"].as_str().unwrap().contains(words)
            || error["hints"].to_string().contains(words),
        "{error:#}"
    );
}

#[test]
fn triage_without_json_fails_after_one_call() {
    let fenced = format!("```json\n{}\n```", triage("parallel", &ROLES));
    for text in ["I would split it, of course.", &fenced] {
        let server = under(Reply::Answer(text.to_owned()));
        let error = failed(ask(&server), 70);
        tells(&error, "the triage of");
        tells(&error, "--triage-model");
        assert_eq!(error["budget_exhausted"], false);
        assert_eq!(server.completions().len(), 1);
    }
}

#[test]
fn truncated_or_endless_triage_is_provider_failure() {
    let half = triage("parallel", &ROLES)
        .to_string()
        .chars()
        .take(200)
        .collect();
    let error = failed(ask(&under(Reply::CutAnswer(half))), 70);
    tells(&error, "max_tokens");
    failed(ask(&under(Reply::Huge(5 << 20))), 70);
}

#[test]
fn a_triage_of_another_shape_fails_its_schema() {
    let mut unknown = triage("parallel", &ROLES);
    unknown["loop_grammar"] = "shouting".into();
    let doubled = triage("parallel", &ROLES)
        .to_string()
        .replacen('{', "{\"loop_count\":2,", 1);
    for text in [
        unknown.to_string(),
        doubled,
        "[]".to_owned(),
        "{}".to_owned(),
    ] {
        let server = under(Reply::Answer(text));
        tells(&failed(ask(&server), 3), "the triage of");
        assert_eq!(server.completions().len(), 1);
    }
}

#[test]
fn triage_violations_are_all_reported() {
    let mut broken = triage(
        "parallel",
        &[
            "red_team",
            "creative",
            "creative",
            "pragmatist",
            "pragmatist",
            "creative",
        ],
    );
    broken["loop_count"] = 99.into();
    broken["short_circuit_allowed"] = true.into();
    let server = under(Reply::Answer(broken.to_string()));
    let ran = Fixture::with(&server).run(["ask", QUESTION]).exits(3);
    assert_eq!(ran.stdout, "");
    let (took, messages): (Vec<&str>, Vec<&str>) = ran
        .stderr
        .lines()
        .partition(|line| line.starts_with("no answer; 1 call, "));
    assert_eq!(took.len(), 1, "{}", ran.stderr);
    insta::assert_snapshot!(messages.join("\n"), @"
      ... call 1: triage
    error: the triage answer of gpt-oss-20b violates 4 rules: the council has 7 seats; 3 to 5 are allowed; 2 seats have the role red_team; exactly one must; loop_count is 99; 2 to 5 are allowed; short_circuit_allowed is true but complexity is complex; only simple questions may skip the council; ask again, or choose a stronger triage model
      hint: Choose a stronger model for the triage alone with --triage-model, or set council.triage_model.
    ");
    assert_eq!(server.completions().len(), 1);
}

#[test]
fn insufficient_budget_ends_council_after_triage() {
    let server = usual("sequential");
    let fixture = Fixture::with(&server);
    let error = failed(
        fixture.run(["ask", QUESTION, "--json", "--max-calls", "9"]),
        70,
    );
    assert_eq!(error["budget_exhausted"], true);
    insta::assert_snapshot!(
        error["error"].as_str().unwrap(),
        @"this council needs up to 16 more calls, but the budget has only 8 of 9 left",
    );
    tells(
        &error,
        "Ask something simpler; or this council goes through with --max-calls ",
    );
    assert_eq!(asked(&server), [CouncilCall::Triage]);
    // The number in the hint is the one that is enough.
    let hint = error["hints"][0].as_str().unwrap();
    let enough = hint
        .split_once("--max-calls ")
        .unwrap()
        .1
        .split(',')
        .next()
        .unwrap();
    fixture.run(["ask", QUESTION, "--max-calls", enough]).ok();
    let less = (enough.parse::<u64>().unwrap() - 1).to_string();
    fixture
        .run(["ask", QUESTION, "--max-calls", &less])
        .exits(70);
}

#[test]
fn configured_token_and_money_limits_bind_questions() {
    let server = usual("parallel");
    let fixture = Fixture::with(&server);
    let call = fixture
        .call(["ask", QUESTION, "--json"])
        .env("CRUCIBLE_LLM_BUDGET_TOKENS", "20000");
    let error = failed(call.run(), 70);
    assert_eq!(error["budget_exhausted"], true);
    tells(&error, "--max-calls");
    tells(&error, "CRUCIBLE_LLM_BUDGET_TOKENS");
    let before = server.completions().len();
    let call = fixture
        .call(["ask", QUESTION, "--json"])
        .env("CRUCIBLE_LLM_BUDGET_DOLLARS", "1");
    tells(&failed(call.run(), 2), "price");
    assert_eq!(server.completions().len(), before);
}

#[test]
fn required_part_failure_sets_exit_status() {
    for call in [CouncilCall::RedTeam, CouncilCall::Synthesis] {
        let error = failed(ask(&except(call.clone(), Reply::Status(401))), 70);
        let part = if call == CouncilCall::RedTeam {
            "the seat red_team in loop 1"
        } else {
            "the synthesis"
        };
        tells(&error, &format!("{part} gave no answer"));
        assert_eq!(error["budget_exhausted"], false);
    }
    let server = council(simple_triage(), |call| {
        (*call == CouncilCall::Direct).then_some(Reply::Status(401))
    });
    tells(&failed(ask(&server), 70), "gave no answer");
    let server = under(Reply::Status(401));
    tells(&failed(ask(&server), 70), "the triage gave no answer");
}

#[test]
fn degradations_before_error_go_to_stderr_only() {
    let missing = CouncilCall::Seat("creative".to_owned());
    let roles = ["domain_expert", "pragmatist", "creative"];
    let fails = move |call: &CouncilCall| {
        (*call == missing || *call == CouncilCall::RedTeam).then_some(Reply::Status(401))
    };
    let server = council(triage("parallel", &roles), fails);
    let fixture = Fixture::with(&server);
    let ran = fixture.run(["ask", QUESTION]).exits(70);
    assert!(ran.stdout.is_empty(), "{}", ran.stdout);
    let line = |beginning: &str| ran.stderr.lines().find(|line| line.starts_with(beginning));
    assert!(
        line("warning: loop 1: creative gave no position").is_some(),
        "{}",
        ran.stderr
    );
    // The triage, three seats and the red team; of the two that failed nobody tells the tokens.
    let took = line("no answer; 5 calls, at least ").unwrap_or_else(|| panic!("{}", ran.stderr));
    assert!(took.ends_with(" s"), "{took}");
    let document = fixture.run(["ask", QUESTION, "--json"]).exits(70);
    assert!(
        !document.stderr.contains("no answer;") && !document.stderr.contains("warning:"),
        "{}",
        document.stderr
    );
    let nothing = fixture.run(["ask", "\u{200d}"]).exits(2);
    assert!(!nothing.stderr.contains("no answer;"), "{}", nothing.stderr);
}

#[test]
fn a_part_that_takes_too_long_exits_10() {
    let server = except(CouncilCall::RedTeam, Reply::Hang);
    let fixture = Fixture::with(&server);
    let call = fixture
        .call(["ask", QUESTION, "--json"])
        .env("CRUCIBLE_LLM_TIMEOUT_S", "1");
    tells(&failed(call.run(), 10), "llm.timeout_s");
}

#[test]
fn oversized_answer_names_its_limit() {
    let server = except(
        CouncilCall::Synthesis,
        Reply::Answer("long ".repeat(60_000)),
    );
    let error = failed(ask(&server), 70);
    tells(&error, "the answer of the synthesis has 300000 bytes");
    tells(&error, "CRUCIBLE_COUNCIL_MAX_ANSWER_BYTES");
}

#[test]
fn fewer_than_two_seats_are_no_council() {
    let server = except(
        CouncilCall::Seat("pragmatist".to_owned()),
        Reply::Status(401),
    );
    let error = failed(ask(&server), 70);
    tells(&error, "loop 1 cannot continue: 1 of 2 seats answered");
    tells(&error, "--provider");
}

#[test]
fn question_with_secret_is_not_sent() {
    let server = usual("parallel");
    let key = format!("AKIA{}", "Z7QWERTYUIOPASDF");
    let fixture = Fixture::with(&server);
    let ran = fixture
        .call(["ask", "--json"])
        .arg(format!("is {key} a good key?"))
        .run();
    assert!(!ran.stderr.contains(&key), "{}", ran.stderr);
    failed(ran, 8);
    let ran = fixture
        .call(["ask", QUESTION, "--json", "--context"])
        .arg(format!("key={key}"))
        .run();
    assert!(!ran.stderr.contains(&key), "{}", ran.stderr);
    failed(ran, 8);
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn missing_provider_or_key_is_reported_without_calls() {
    let fixture = Fixture::new();
    let ran = fixture
        .call(["ask", QUESTION])
        .without_env("CRUCIBLE_LLM_PROVIDER")
        .run()
        .exits(2);
    insta::assert_snapshot!(ran.stderr, @"
    error: LLM provider must be specified: a council needs a model
      hint: Pass --provider NAME, or set CRUCIBLE_LLM_PROVIDER for every command; `crucible doctor` shows which providers are ready.
    ");
    let ran = fixture
        .run(["ask", QUESTION, "--provider", "openrouter"])
        .exits(2);
    assert!(ran.stderr.contains("OPENROUTER_API_KEY"), "{}", ran.stderr);
    let ran = fixture
        .run(["ask", QUESTION, "--provider", "oracle"])
        .exits(2);
    assert!(ran.stderr.contains("possible values"), "{}", ran.stderr);
    let error = failed(
        fixture.run(["ask", QUESTION, "--cassette", "none", "--json"]),
        2,
    );
    tells(&error, "--provider replay");
}

#[test]
fn fallback_provider_is_reported_and_uses_own_model() {
    let server = usual("parallel");
    let fixture = Fixture::with(&server);
    let call = fixture.call([
        "ask",
        QUESTION,
        "--provider",
        "openrouter",
        "--model",
        "some/model",
    ]);
    let ran = call
        .env("CRUCIBLE_LLM_FALLBACK_PROVIDER", "gateway")
        .run()
        .ok();
    assert!(
        ran.stderr.contains("Using fallback 'gateway'"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr.contains("uses its own model gpt-oss-20b"),
        "{}",
        ran.stderr
    );
    assert!(
        server
            .completions()
            .iter()
            .all(|request| request.body["model"] == "gpt-oss-20b")
    );
}

/// Three seats are asked and hang when the signal comes.
#[test]
fn interrupt_during_seat_calls_ends_at_once() {
    let roles = ["domain_expert", "pragmatist", "creative"];
    let seats_hang =
        |call: &CouncilCall| matches!(call, CouncilCall::Seat(_)).then_some(Reply::Hang);
    for (signal, records) in [("INT", false), ("TERM", true)] {
        let server = council(triage("parallel", &roles), seats_hang);
        let fixture = Fixture::with(&server);
        let mut call = fixture.call(["ask", QUESTION]);
        if records {
            call = call.arg("--record").arg(fixture.path("calls.jsonl"));
        }
        let mut command = call.command();
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        wait_for("all seats to be asked", || server.completions().len() == 4);
        let begun = Instant::now();
        let number = child.id().to_string();
        assert!(
            std::process::Command::new("kill")
                .args(["-s", signal, &number])
                .status()
                .unwrap()
                .success()
        );
        let output = child.wait_with_output().unwrap();
        assert!(
            begun.elapsed() < Duration::from_secs(30),
            "it took {:?} to end",
            begun.elapsed()
        );
        assert_eq!(output.status.code(), Some(130), "{output:?}");
        assert!(output.stdout.is_empty(), "{output:?}");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(stderr.contains("error: interrupted"), "{stderr}");
        if records {
            assert!(
                stderr.contains("calls.jsonl; of all else nothing was kept"),
                "{stderr}"
            );
            let recorded = std::fs::read_to_string(fixture.path("calls.jsonl")).unwrap();
            assert_eq!(
                recorded.lines().count(),
                2,
                "the header and the triage: {recorded}"
            );
        } else {
            assert!(stderr.contains("No partial result was saved"), "{stderr}");
        }
    }
}

#[test]
fn question_leaves_no_files_in_home() {
    let server = usual("parallel");
    let fixture = Fixture::with(&server);
    fixture.run(["ask", QUESTION]).ok();
    assert!(
        !fixture.data().exists(),
        "a question writes no ledger and no run"
    );
}
