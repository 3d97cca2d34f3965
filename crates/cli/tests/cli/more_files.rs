//! A model that asks for more files: it gets them within limits, the record tells it, and the run goes on.

use crucible_testkit::{FakeOpenAi, Reply, RepoBuilder};
use serde_json::{Value, json};

use crate::support::{Fixture, codes, good_answer, id_of, right, small};

/// The small repository with more in it than a model is shown at once.
fn large() -> RepoBuilder {
    let define = |at: usize| format!("def helper_{at}(value):\n    return value + {at}\n\n\n");
    let filler: String = (0..400).map(define).collect();
    small()
        .file(
            "lib/rates.py",
            "RATES = {'de': 19}\n\n\ndef tax(country):\n    return RATES[country]\n",
        )
        .file("lib/filler.py", &filler)
        .file("lib/more_filler.py", &filler)
        .file(".env", "PASSWORD=hunter2\n")
}

fn ends(status: &Value) -> Vec<&str> {
    status["attempts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|attempt| attempt["end"].as_str().unwrap())
        .collect()
}

fn question(server: &FakeOpenAi, number: usize) -> String {
    server.requests()[number].body["messages"][1]["content"]
        .as_str()
        .unwrap()
        .to_owned()
}

const OFFERED: &str = "If a file is missing that you must see";

#[test]
fn request_for_more_files_costs_no_attempt() {
    let asks = "NEED: lib/rates.py\nSEARCH: helper_399\nNEED: .env\n";
    let server = FakeOpenAi::start([Reply::Answer(asks.to_owned()), Reply::Answer(good_answer())]);
    let (repo, fixture) = (large().build(), Fixture::with(&server));
    fixture.user_config("[llm.gateway]\ntemperature = 0.1\n");
    let call =
        fixture
            .start_call(repo.path())
            .args(["--max-iterations", "1", "--file", "src/area.py"]);
    let call = call
        .env("CRUCIBLE_RUN_EDIT_FORMAT", "whole-file")
        .env("CRUCIBLE_RUN_MAX_MALFORMED", "0");
    let status = call.run().ok().json();
    assert_eq!(
        (&status["state"], ends(&status)),
        (&json!("verified"), vec!["files_requested", "verified"])
    );
    let text = "run-files-shown";
    assert_eq!(codes(&status, 1), [text, text, text, "run-files-not-shown"]);
    let budgets = &status["budgets"];
    assert_eq!(
        (&budgets["calls"], &budgets["iterations"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(
        (&budgets["file_requests"], &budgets["max_file_requests"]),
        (&json!(1), &json!(2))
    );

    let (first, second) = (question(&server, 0), question(&server, 1));
    assert!(
        first.contains(OFFERED) && first.contains("Such answers left: 2."),
        "{first}"
    );
    assert!(
        !first.contains("RATES") && !first.contains("You asked for more files"),
        "{first}"
    );
    assert!(
        second.contains("RATES = {'de': 19}") && second.contains("helper_399"),
        "{second}"
    );
    assert!(
        second.contains("NEED: lib/rates.py: lib/rates.py is shown, for reading only"),
        "{second}"
    );
    assert!(
        second.contains("NEED: .env: .env may not be shown") && !second.contains("hunter2"),
        "{second}"
    );
    assert!(second.contains("Such answers left: 1."), "{second}");
    let may_change = second
        .split_once("The files that you may change")
        .unwrap()
        .1;
    assert!(!may_change.contains("RATES = "), "{second}");
    let temperatures: Vec<f64> = server
        .requests()
        .iter()
        .map(|request| request.body["temperature"].as_f64().unwrap())
        .collect();
    assert_eq!(temperatures, [0.1, 0.1]);

    let run = &fixture.runs()[0];
    let pack = |path: &str| -> Value {
        serde_json::from_slice(&std::fs::read(run.join(path)).unwrap()).unwrap()
    };
    let first = pack("artifacts/context_pack.json").to_string();
    assert!(!first.contains("RATES"), "{first}");
    let more = pack("attempts/001/context_pack.json");
    assert_eq!(more["files"][0]["path"], "lib/rates.py");
    assert_eq!(
        more["omitted"],
        json!([{"path": ".env", "reason": "denied"}])
    );
    let events = std::fs::read_to_string(run.join("events.jsonl")).unwrap();
    assert_eq!(events.matches("MORE_FILES_REQUESTED").count(), 1);
    let id = id_of(&status);
    let replayed = fixture.run(["run", "replay", &id, "--json"]).ok().json();
    assert_eq!(replayed["different"], json!([]));
    assert!(
        replayed["same"]
            .to_string()
            .contains("attempts/001/context_pack.json")
    );
    fixture.run(["run", "verify-record", &id]).ok();
    fixture.run(["run", "land", &id]).ok();
    assert_eq!(
        std::fs::read_to_string(repo.path().join("src/area.py")).unwrap(),
        right()
    );
    // What was shown is evidence: an edit of it is found.
    let path = run.join("attempts/001/context_pack.json");
    std::fs::write(
        &path,
        std::fs::read_to_string(&path).unwrap().replace("19", "18"),
    )
    .unwrap();
    assert!(
        fixture
            .run(["run", "verify-record", &id])
            .exits(1)
            .stdout
            .contains("record-file-edited")
    );
}

#[test]
fn the_third_request_is_a_malformed_answer() {
    let asks = |path: &str| Reply::Answer(format!("NEED: {path}\n"));
    let server = FakeOpenAi::start([
        asks("lib/rates.py"),
        asks("lib/rates.py"),
        asks("lib/filler.py"),
        Reply::Answer(good_answer()),
    ]);
    let (repo, fixture) = (large().build(), Fixture::with(&server));
    let call =
        fixture
            .start_call(repo.path())
            .args(["--max-iterations", "1", "--file", "src/area.py"]);
    let status = call
        .env("CRUCIBLE_RUN_MAX_MALFORMED", "0")
        .run()
        .exits(1)
        .json();
    assert_eq!(
        ends(&status),
        ["files_requested", "files_requested", "malformed"]
    );
    assert_eq!(codes(&status, 3), ["answer-no-edit"]);
    assert_eq!(
        (server.requests().len(), &status["budgets"]["iterations"]),
        (3, &json!(1))
    );
    let last = question(&server, 2);
    assert!(
        !last.contains(OFFERED) && last.contains("lib/rates.py: it is shown already"),
        "{last}"
    );

    // None at all where the user allows none.
    let server = FakeOpenAi::start([asks("lib/rates.py")]);
    let (repo, fixture) = (large().build(), Fixture::with(&server));
    let call =
        fixture
            .start_call(repo.path())
            .args(["--max-iterations", "1", "--file", "src/area.py"]);
    let call = call
        .env("CRUCIBLE_RUN_MAX_MALFORMED", "0")
        .env("CRUCIBLE_RUN_MAX_FILE_REQUESTS", "0");
    assert_eq!(ends(&call.run().exits(1).json()), ["malformed"]);
    assert!(!question(&server, 0).contains(OFFERED));
}

#[test]
fn more_files_are_not_offered_when_all_shown() {
    let server = FakeOpenAi::start([Reply::Answer("NEED: README.md\n".to_owned())]);
    let (repo, fixture) = (small().build(), Fixture::with(&server));
    let call = fixture
        .start_call(repo.path())
        .args(["--max-iterations", "1"]);
    let status = call
        .env("CRUCIBLE_RUN_MAX_MALFORMED", "0")
        .run()
        .exits(1)
        .json();
    assert_eq!(ends(&status), ["malformed"]);
    assert!(
        !question(&server, 0).contains(OFFERED),
        "{}",
        question(&server, 0)
    );
}

#[test]
fn change_that_mentions_needs_is_a_change() {
    let speaks = format!("NEED: lib/rates.py\n\n{}", good_answer());
    let server = FakeOpenAi::start([Reply::Answer(speaks)]);
    let (repo, fixture) = (large().build(), Fixture::with(&server));
    let call =
        fixture
            .start_call(repo.path())
            .args(["--max-iterations", "1", "--file", "src/area.py"]);
    let status = call
        .env("CRUCIBLE_RUN_EDIT_FORMAT", "whole-file")
        .run()
        .ok()
        .json();
    assert_eq!(
        (&status["state"], ends(&status)),
        (&json!("verified"), vec!["verified"])
    );
}

#[test]
fn pack_size_follows_context_window_and_setting() {
    let run = |window: &str, bytes: Option<&str>| {
        let server = FakeOpenAi::start([Reply::Answer(good_answer())]);
        let (repo, fixture) = (large().build(), Fixture::with(&server));
        let mut call = fixture
            .start_call(repo.path())
            .args(["--file", "src/area.py"]);
        call = call.env("CRUCIBLE_LLM_GATEWAY_CONTEXT_WINDOW", window);
        if let Some(bytes) = bytes {
            call = call.env("CRUCIBLE_RUN_MAX_TOTAL_BYTES", bytes);
        }
        let status = call.run().ok().json();
        let stdout = fixture.run(["run", "status"]).ok().stdout;
        let guardrails =
            std::fs::read_to_string(fixture.runs()[0].join("artifacts/guardrails.md")).unwrap();
        let settings = status["run"]["settings"].clone();
        let bytes = settings["max_total_bytes"].as_u64().unwrap();
        assert!(
            guardrails.contains(&format!("max_total_bytes: {bytes}\n")),
            "{guardrails}"
        );
        assert!(question(&server, 0).len() as u64 <= bytes + 6_000);
        (bytes, settings["context_window"].clone(), stdout)
    };
    let (bytes, window, message) = run("8192", None);
    assert_eq!((bytes, window), (3_684, json!(8192)));
    let line = "context   at most 30 files, 3684 bytes, for a context window of 8192 tokens\n";
    assert!(message.contains(line), "{message}");
    assert_eq!(run("8192", Some("3000")).0, 3_000);
    assert_eq!(run("8192", Some("50000")).0, 3_684);
    assert_eq!(run("65536", None).0, 106_905);
    let (bytes, window, text) = run("0", None);
    assert_eq!((bytes, window), (60_000, Value::Null));
    assert!(
        text.contains("context   at most 30 files, 60000 bytes\n"),
        "{text}"
    );
}

#[test]
fn project_cannot_enlarge_the_pack() {
    let fixture = Fixture::new();
    for (settings, key) in [
        (
            "[llm.gateway]\ncontext_window = 1000000\n",
            "llm.gateway.context_window",
        ),
        ("[run]\nmax_file_requests = 9\n", "run.max_file_requests"),
    ] {
        let repo = RepoBuilder::new()
            .file(".crucible/config.toml", settings)
            .file("a", "a\n")
            .build();
        let message = fixture.start_call(repo.path()).run().exits(2).message();
        assert!(message.contains(key), "{message}");
    }
}
