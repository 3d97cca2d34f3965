//! Providers: who is asked, what happens when nobody answers, and how a run goes on afterwards.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use crucible_testkit::{FakeOpenAi, Reply, RetryAfter};
use serde_json::Value;

use crate::support::{Fixture, GOAL, GOOD_DIFF, answering, good_answer, id_of, small, snapshot};

#[test]
fn no_provider_is_called_by_default() {
    let (repo, fixture) = (small().build(), Fixture::new());
    for value in [None, Some("")] {
        let call = fixture
            .start_call(repo.path())
            .without_env("CRUCIBLE_LLM_PROVIDER");
        let call = match value {
            Some(value) => call.env("CRUCIBLE_LLM_PROVIDER", value),
            None => call,
        };
        let ran = call.run().exits(2);
        assert!(
            ran.message().contains("LLM provider must be specified"),
            "{}",
            ran.stderr
        );
    }
    assert!(fixture.runs().is_empty());
}

/// Seed 002 gives the words; every command that asks a model has them.
#[test]
fn every_command_without_a_provider_says_the_same() {
    let (repo, fixture) = (small().build(), Fixture::new());
    fixture.user_config("[dispatch]\nchair = \"council\"\nmode = \"manual_outbox\"\n");
    for args in [
        &["ask", "why?"][..],
        &["chat"],
        &["spec", "s", "--source", "src/area.py"],
        &["run", "start", GOAL],
        &["crawl", "plan", "./"],
        &["crawl", "export", "./"],
    ] {
        let call = fixture
            .call(args)
            .without_env("CRUCIBLE_LLM_PROVIDER")
            .current_dir(repo.path());
        let ran = call.run();
        assert!(
            ran.stderr.contains("LLM provider must be specified"),
            "{args:?}: {}",
            ran.stderr
        );
        assert_eq!(
            ran.code,
            Some(if args[0] == "crawl" { 1 } else { 2 }),
            "{args:?}: {}",
            ran.stderr
        );
    }
    // One of two owners of a crawl is named.
    let call = fixture
        .call(["crawl", "plan", "./", "--gpt-provider", "gateway"])
        .without_env("CRUCIBLE_LLM_PROVIDER");
    let ran = call.current_dir(repo.path()).run().exits(1);
    assert!(
        ran.stderr
            .contains("LLM provider must be specified: no provider is set that criticises"),
        "{}",
        ran.stderr
    );
}

#[test]
fn unknown_provider_is_refused_with_existing_ones() {
    let (repo, fixture) = (small().build(), Fixture::new());
    let message = fixture
        .start_call(repo.path())
        .args(["--provider", "oracle"])
        .run()
        .exits(2)
        .message();
    for name in ["oracle", "gateway", "claude-cli", "replay"] {
        assert!(message.contains(name), "{message}");
    }
    assert!(fixture.runs().is_empty());
}

#[test]
fn models_that_act_by_themselves_are_refused() {
    let (repo, fixture) = (small().build(), Fixture::new());
    let (own, short) = (
        "CRUCIBLE_LLM_EXECUTION_STRATEGY",
        "CRUCIBLE_EXECUTION_STRATEGY",
    );
    for (variable, spelling) in [
        (own, "external_tool"),
        (own, "external-tool"),
        (short, "external_tool"),
    ] {
        let call = fixture.start_call(repo.path()).env(variable, spelling);
        let message = call.run().exits(2).message();
        assert!(
            message.contains("ExecutionStrategy::ExternalTool not yet supported in this version"),
            "{message}"
        );
    }
    let call = fixture
        .start_call(repo.path())
        .env("CRUCIBLE_LLM_EXECUTION_STRATEGY", "anything");
    assert!(call.run().exits(2).message().contains("controlled"));
    assert!(fixture.runs().is_empty());
}

#[test]
fn named_but_unset_key_is_a_configuration_error() {
    let (repo, server) = (small().build(), answering(good_answer()));
    let fixture = Fixture::with(&server);
    let call = fixture
        .start_call(repo.path())
        .env("CRUCIBLE_LLM_GATEWAY_API_KEY_ENV", "AREA_KEY");
    assert!(call.run().exits(2).message().contains("AREA_KEY"));
    assert!(fixture.runs().is_empty() && server.requests().is_empty());
}

/// The call fails with this code; the run is kept, and a better server finishes it.
#[track_caller]
fn fails_then_goes_on(reply: Reply, requests: usize, code: i32, message: &str) {
    let repo = small().build();
    let bad = FakeOpenAi::start([reply]);
    let fixture = Fixture::with(&bad);
    let before = snapshot(&repo, &fixture);
    let ran = fixture
        .start_call(repo.path())
        .env("CRUCIBLE_LLM_TIMEOUT_S", "1")
        .run()
        .exits(code);
    let error = ran.error();
    assert_eq!(error["exit_code"], code);
    assert_eq!(error["budget_exhausted"], false);
    assert!(
        error["error"].as_str().unwrap().contains(message),
        "{error}"
    );
    assert!(
        error["hints"].to_string().contains("run advance"),
        "{error}"
    );
    assert_eq!(bad.requests().len(), requests);
    let status = fixture.status();
    assert_eq!(status["state"], "signed");
    before.is_still(&snapshot(&repo, &fixture));

    let good = answering(good_answer());
    let call = fixture
        .call(["run", "advance", "--json"])
        .env("CRUCIBLE_GATEWAY_BASE_URL", good.base_url());
    let advanced = call.run().ok().json();
    assert_eq!(advanced["state"], "verified");
    assert_eq!(good.requests().len(), 1);
    // The failure is in the recording, and the replay goes on with what came after it.
    let replayed = fixture
        .run(["run", "replay", &id_of(&status), "--json"])
        .ok()
        .json();
    assert_eq!(replayed["state"], "verified");
    assert_eq!(replayed["different"], serde_json::json!([]));
    fixture.run(["run", "land", &id_of(&status)]).ok();
    fixture
        .run(["ledger", "verify", "--repo", repo.path().to_str().unwrap()])
        .ok();
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
fn silent_server_ends_call_at_time_limit() {
    fails_then_goes_on(Reply::Hang, 1, 10, "(the call allows 1s, ");
}

#[test]
fn pinned_clock_does_not_change_deadlines() {
    for clock in ["2001-01-01T00:00:00Z", "2999-12-31T23:59:59Z"] {
        let (repo, silent) = (small().build(), FakeOpenAi::start([Reply::Hang]));
        let fixture = Fixture::with(&silent);
        let call = fixture.start_call(repo.path()).env("CRUCIBLE_CLOCK", clock);
        let message = call
            .env("CRUCIBLE_LLM_TIMEOUT_S", "1")
            .run()
            .exits(10)
            .message();
        assert!(message.contains("no answer within 1s"), "{message}");
    }
}

#[test]
fn endless_server_ends_call_at_time_limit() {
    fails_then_goes_on(Reply::Endless, 1, 10, "(the call allows 1s, ");
}

#[test]
fn a_web_page_is_no_answer() {
    fails_then_goes_on(Reply::Html, 1, 70, "the answer is a web page");
}

#[test]
fn failing_server_is_retried_then_given_up() {
    let repo = small().build();
    let bad = FakeOpenAi::start([Reply::Status(500)]);
    let fixture = Fixture::with(&bad);
    let error = fixture.start(repo.path()).exits(70).error();
    assert!(
        error["error"].as_str().unwrap().contains("HTTP 500"),
        "{error}"
    );
    assert_eq!(bad.requests().len(), 3);
    let good = FakeOpenAi::start([Reply::LateAnswer(good_answer(), Duration::from_millis(50))]);
    let call = fixture
        .call(["run", "advance", "--json"])
        .env("CRUCIBLE_GATEWAY_BASE_URL", good.base_url());
    assert_eq!(call.run().ok().json()["state"], "verified");
}

#[test]
fn exhausted_budget_is_reported_without_further_calls() {
    let (repo, server) = (small().build(), answering("no"));
    let fixture = Fixture::with(&server);
    let call = fixture
        .start_call(repo.path())
        .env("CRUCIBLE_OPENROUTER_BUDGET", "1");
    let error = call.run().exits(70).error();
    assert_eq!(error["budget_exhausted"], true);
    assert!(
        error["error"]
            .as_str()
            .unwrap()
            .contains("LLM budget exhausted"),
        "{error}"
    );
    assert_eq!(server.requests().len(), 1);
    // The run keeps the budget it was started with.
    let error = fixture.run(["run", "advance", "--json"]).exits(70).error();
    assert_eq!(error["budget_exhausted"], true);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_recording_has_no_answer_to_another_question() {
    let (repo, server) = (small().build(), answering(good_answer()));
    let fixture = Fixture::with(&server);
    fixture.start(repo.path()).ok();
    let cassette = fixture.runs()[0].join("cassette.jsonl");
    let second_fixture = Fixture::new();
    let other = small()
        .file("src/area.py", "def area(): return 0\n")
        .build();
    let call = second_fixture
        .start_call(other.path())
        .args(["--provider", "replay", "--cassette"])
        .arg(&cassette);
    let message = call.run().exits(2).message();
    assert!(
        message.contains("the recording does not contain this request"),
        "{message}"
    );
    let missing = second_fixture.path("missing.jsonl");
    let call = second_fixture
        .start_call(other.path())
        .args(["--provider", "replay", "--cassette"])
        .arg(&missing);
    assert!(call.run().exits(2).message().contains("missing.jsonl"));
    assert_eq!(server.requests().len(), 1);
}

/// An answer that is refused, and one that is verified.
fn refused_then_good() -> FakeOpenAi {
    FakeOpenAi::start([
        Reply::Answer("I would rather not.".to_owned()),
        Reply::Answer(GOOD_DIFF.to_owned()),
    ])
}

/// A run in which nothing is as it is by default, and its recording.
fn start_recorded() -> (crucible_testkit::TestRepo, FakeOpenAi, Fixture, PathBuf) {
    let (repo, server) = (small().build(), refused_then_good());
    let fixture = Fixture::with(&server);
    let call = fixture
        .start_call(repo.path())
        .args(["--model", "another-model"]);
    let status = call
        .env("CRUCIBLE_RUN_EDIT_FORMAT", "unified-diff")
        .env("CRUCIBLE_LLM_GATEWAY_TEMPERATURE", "0.7")
        .env("CRUCIBLE_LLM_GATEWAY_MAX_TOKENS", "777")
        .run()
        .ok()
        .json();
    assert_eq!(status["state"], "verified");
    assert_eq!(server.requests()[0].body["max_tokens"], 777);
    let cassette = fixture.runs()[0].join("cassette.jsonl");
    (repo, server, fixture, cassette)
}

#[test]
fn recording_serves_equal_run_without_network() {
    let (_recorded, server, first_desk, cassette) = start_recorded();
    let request_count = server.requests().len();
    let (repo, fixture) = (small().build(), Fixture::with(&server));
    let before = snapshot(&repo, &fixture);
    let call = fixture
        .start_call(repo.path())
        .args(["--provider", "replay", "--cassette"])
        .arg(&cassette);
    let status = call.run().ok().json();
    assert_eq!(status["state"], "verified");
    assert_eq!(status["run"]["settings"]["model"], "another-model");
    assert_eq!(status["run"]["settings"]["edit_format"], "unified-diff");
    assert_eq!(status["run"]["settings"]["provider"], "replay");
    let live = first_desk.status();
    for what in ["parameters", "edit_format", "model"] {
        assert_eq!(
            status["run"]["settings"][what],
            live["run"]["settings"][what]
        );
    }
    for attempt in 0..2 {
        assert_eq!(
            status["attempts"][attempt]["patch"],
            live["attempts"][attempt]["patch"]
        );
    }
    before.is_still(&snapshot(&repo, &fixture));
    fixture.run(["run", "replay", &id_of(&status)]).ok();
    fixture.run(["run", "land", &id_of(&status)]).ok();
    fixture
        .run(["ledger", "verify", "--repo", repo.path().to_str().unwrap()])
        .ok();
    assert_eq!(
        server.requests().len(),
        request_count,
        "the model was asked"
    );
}

#[test]
fn a_run_keeps_the_recording_that_answers_it() {
    let (_recorded, server, _first_desk, cassette) = start_recorded();
    let request_count = server.requests().len();
    let (repo, fixture) = (small().build(), Fixture::with(&server));
    let moved = fixture.path("moved.jsonl");
    std::fs::copy(&cassette, &moved).unwrap();
    let args = [
        "run",
        "new",
        GOAL,
        "--json",
        "--provider",
        "replay",
        "--repo",
    ];
    let status = fixture
        .call(args)
        .arg(repo.path())
        .args(["--cassette"])
        .arg(&moved)
        .run()
        .ok()
        .json();
    std::fs::remove_file(&moved).unwrap();
    let stored_path = fixture.runs()[0].join("source.jsonl");
    let full_content = std::fs::read(&stored_path).unwrap();
    assert_eq!(full_content, std::fs::read(&cassette).unwrap());

    // The copy is recorded: another one is noticed.
    std::fs::write(
        &stored_path,
        String::from_utf8(full_content.clone())
            .unwrap()
            .replace("rather", "gladly"),
    )
    .unwrap();
    let message = fixture.run(["run", "advance", "--json"]).exits(1).message();
    assert!(
        message.contains("source.jsonl was changed after it was recorded"),
        "{message}"
    );
    std::fs::write(&stored_path, full_content).unwrap();
    let advanced = fixture
        .run(["run", "advance", &id_of(&status), "--json"])
        .ok()
        .json();
    assert_eq!(advanced["state"], "verified");
    assert_eq!(
        server.requests().len(),
        request_count,
        "the model was asked"
    );
}

/// The codes of a verdict or of a replay.
fn finding_codes(document: &Value) -> Vec<&str> {
    let findings = document["findings"].as_array().unwrap();
    findings
        .iter()
        .map(|finding| finding["code"].as_str().unwrap())
        .collect()
}

#[test]
fn an_edited_recording_shows() {
    let (_repo, server, fixture, cassette) = start_recorded();
    drop(server);
    let id = id_of(&fixture.status());
    let verified = fixture.run(["ledger", "verify", "--json"]).ok().json();
    assert_eq!(verified["verdict"], "pass");
    fixture.run(["run", "replay", &id, "--json"]).ok();

    let full_text = std::fs::read_to_string(&cassette).unwrap();
    let lines: Vec<&str> = full_text.split_inclusive('\n').collect();
    assert_eq!(lines.len(), 3, "a header and two calls");
    let (edited, unknown) = ("ledger-recording-edited", "ledger-recording-unknown-answer");
    let forged = lines[1].replace("I would rather not.", "I would love to.");
    assert_ne!(forged, lines[1]);
    let damage = [
        // What no artifact depends on is noticed all the same.
        (
            full_text.replace(
                "\"model_used\":\"another-model\"",
                "\"model_used\":\"a-better-model\"",
            ),
            edited,
        ),
        (
            full_text.replace("\"tokens_output\":", "\"tokens_output\":1"),
            edited,
        ),
        (
            full_text.replace("I would rather not.", "I would love to."),
            edited,
        ),
        (format!("{}{}", lines[0], lines[2]), edited),
        (format!("{}{}{}", lines[0], lines[2], lines[1]), edited),
        (lines[0].to_owned(), edited),
        (String::new(), edited),
        (
            format!("{}{forged}{}{}", lines[0], lines[1], lines[2]),
            unknown,
        ),
        (format!("{full_text}{forged}{forged}"), unknown),
    ];
    for (damaged, code) in damage {
        assert_ne!(damaged, full_text);
        std::fs::write(&cassette, &damaged).unwrap();
        let verdict = fixture.run(["ledger", "verify", "--json"]).exits(1).json();
        assert!(
            finding_codes(&verdict).contains(&code),
            "{verdict}\n{damaged}"
        );
    }
    std::fs::write(
        &cassette,
        full_text.replace("\"tokens_output\":", "\"tokens_output\":1"),
    )
    .unwrap();
    let replayed = fixture
        .run(["run", "replay", &id, "--json"])
        .exits(1)
        .json();
    assert_eq!(replayed["different"], serde_json::json!(["cassette.jsonl"]));
    assert_eq!(finding_codes(&replayed), [edited, edited]);
    // An unfinished line is what a crash leaves.
    std::fs::write(&cassette, format!("{full_text}{{\"half")).unwrap();
    fixture.run(["ledger", "verify"]).ok();
    std::fs::write(&cassette, full_text).unwrap();
    fixture.run(["run", "replay", &id]).ok();
}

#[test]
fn unreadable_recording_ends_the_command() {
    let (_repo, server, fixture, cassette) = start_recorded();
    let request_count = server.requests().len();
    std::fs::remove_file(&cassette).unwrap();
    std::fs::create_dir(&cassette).unwrap();
    let message = fixture.run(["run", "advance", "--json"]).exits(1).message();
    assert!(message.contains("cassette.jsonl"), "{message}");
    assert_eq!(server.requests().len(), request_count);
}

/// The recording is opened under the run's lock: of two at once, one works and the other says that it is held.
#[test]
fn concurrent_advances_do_not_share_a_recording() {
    let repo = small().build();
    let server = FakeOpenAi::start([
        Reply::LateAnswer(
            "I would rather not.".to_owned(),
            Duration::from_millis(2500),
        ),
        Reply::Answer(good_answer()),
    ]);
    let fixture = Fixture::with(&server);
    let args = ["run", "new", GOAL, "--json", "--repo"];
    let id = id_of(&fixture.call(args).arg(repo.path()).run().ok().json());
    let cassette = fixture.runs()[0].join("cassette.jsonl");
    let ends: Vec<Option<i32>> = std::thread::scope(|scope| {
        let advance = || fixture.run(["run", "advance", &id, "--json"]).code;
        let first = scope.spawn(advance);
        let deadline = std::time::Instant::now() + Duration::from_secs(20);
        while !cassette.exists() && std::time::Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        let half = std::fs::read(&cassette).unwrap();
        // A line that the first one is just writing, as far as the others can see.
        std::fs::write(&cassette, [&half[..], b"{\"half"].concat()).unwrap();
        let others: Vec<_> = (0..3).map(|_| advance()).collect();
        assert!(
            std::fs::read(&cassette).unwrap().ends_with(b"{\"half"),
            "a recording was mended without its lock"
        );
        std::fs::write(&cassette, half).unwrap();
        [first.join().unwrap()].into_iter().chain(others).collect()
    });
    assert_eq!(ends, [Some(0), Some(9), Some(9), Some(9)]);
    assert_eq!(server.requests().len(), 2);
    fixture.run(["run", "replay", &id]).ok();
}

/// A `claude` program that notes its environment and gives the good answer.
fn client_program(fixture: &Fixture) -> (PathBuf, PathBuf) {
    let (program, notes) = (fixture.path("claude"), fixture.path("environment"));
    let answer = serde_json::json!({
        "type": "result", "subtype": "success", "is_error": false, "api_error_status": null,
        "result": good_answer(), "modelUsage": {"claude-x": {"inputTokens": 3, "outputTokens": 4}},
    });
    std::fs::write(fixture.path("answer"), answer.to_string()).unwrap();
    let script = format!(
        "#!/bin/sh\nenv > '{}'\ncat '{}'\n",
        notes.display(),
        fixture.path("answer").display()
    );
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    (program, notes)
}

#[test]
fn client_program_gets_configured_key_and_address() {
    let fixture = Fixture::new();
    let (program, notes) = client_program(&fixture);
    let home = format!("HOME={}", fixture.home().display());
    let start = |variables: &[(&str, &str)]| {
        let repo = small().build();
        let call = fixture
            .start_call(repo.path())
            .args(["--provider", "claude-cli"]);
        let call = call
            .env("CRUCIBLE_LLM_CLAUDE_CLI_BINARY", &program)
            .env("CRUCIBLE_RUN_EDIT_FORMAT", "whole-file");
        variables
            .iter()
            .fold(call, |call, (name, value)| call.env(name, value))
            .run()
    };
    let saw = |line: &str| {
        std::fs::read_to_string(&notes)
            .unwrap()
            .lines()
            .any(|other| other == line)
    };

    let named = ("CRUCIBLE_LLM_CLAUDE_CLI_API_KEY_ENV", "TEAM_KEY");
    let status = start(&[
        named,
        ("TEAM_KEY", "k-1"),
        ("CRUCIBLE_CLAUDE_CLI_BASE_URL", "http://127.0.0.1:9"),
    ])
    .ok()
    .json();
    assert_eq!(status["state"], "verified");
    assert!(saw("ANTHROPIC_API_KEY=k-1") && saw("ANTHROPIC_BASE_URL=http://127.0.0.1:9"));
    assert!(
        !saw(&home),
        "the user's home was shown to a client that has a key"
    );

    // Without a key it is the user's own login; a key that somebody named must be there.
    start(&[]).ok();
    assert!(saw(&home));
    assert!(start(&[named]).exits(2).message().contains("TEAM_KEY"));
}

/// A hint that names a setting names one that there is.
#[test]
fn every_setting_that_a_message_names_exists() {
    let fixture = Fixture::new();
    let shown = fixture.run(["config", "show", "--json"]).ok().json();
    let rows = shown["settings"].as_array().unwrap();
    let keys: Vec<&str> = rows
        .iter()
        .map(|row| row["key"].as_str().unwrap())
        .collect();
    let mut named = 0;
    for source in ["../llm/src", "src"] {
        for file in
            crucible_host::walk::files(&PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(source))
        {
            let file = file.unwrap();
            // A provider of several files is a directory of its name.
            let part = file
                .parent()
                .filter(|parent| parent.parent().is_some_and(|of| of.ends_with("providers")));
            let stem = part
                .unwrap_or(&file)
                .file_stem()
                .unwrap()
                .to_string_lossy()
                .replace('_', "-");
            for line in std::fs::read_to_string(&file).unwrap().lines() {
                for (section, key) in settings_in(line) {
                    let section = section.replace("{NAME}", &stem);
                    let exists = |provider: &str| {
                        let key = format!(
                            "{}.{key}",
                            section
                                .replace("{provider}", provider)
                                .replace("{}", provider)
                        );
                        keys.contains(&key.as_str())
                    };
                    named += 1;
                    // A table that users name themselves is listed when there is one.
                    let listed = !section.contains(".profiles.");
                    let some = ["gateway", "claude-cli"].into_iter().any(exists);
                    assert!(
                        some || !listed,
                        "{}: there is no [{section}] {key}\n{line}",
                        file.display()
                    );
                }
            }
        }
    }
    assert!(named > 8, "only {named} were found");
}

/// What reads like `[llm.gateway] base_url` in a line of source.
fn settings_in(line: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    for part in line.split('[').skip(1) {
        let Some((section, rest)) = part.split_once("] ") else {
            continue;
        };
        let is_own = ["llm", "run", "patch", "context", "sandbox", "paths"]
            .iter()
            .any(|known| {
                section
                    .strip_prefix(known)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            });
        let end = rest
            .find(|c: char| !c.is_ascii_lowercase() && c != '_')
            .unwrap_or(rest.len());
        // Remarks that begin with the name of their part, and keys that are filled in.
        if is_own && end > 0 && &rest[..end] != "without" {
            found.push((section, &rest[..end]));
        }
    }
    found
}
