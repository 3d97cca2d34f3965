//! Secrets: none reaches a model, a log, a file of a run or the terminal.

use std::path::Path;

use crucible_testkit::{FakeOpenAi, Reply, made_up_token};

use crate::support::{
    Fixture, Snapshot, WRONG, answering, codes, good_answer, small, snapshot, whole_file, with_gate,
};

/// No file below the directory holds the text.
#[track_caller]
fn holds_nowhere(directory: &Path, text: &str) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            holds_nowhere(&path, text);
        } else {
            let bytes = std::fs::read(&path).unwrap();
            let found = bytes
                .windows(text.len())
                .any(|window| window == text.as_bytes());
            assert!(!found, "{} holds the secret", path.display());
        }
    }
}

/// Neither the model, nor the disk, nor the terminal has seen the text.
#[track_caller]
fn stays_secret(fixture: &Fixture, server: &FakeOpenAi, printed: &[&str], text: &str) {
    for request in server.requests() {
        assert!(
            !request.body.to_string().contains(text),
            "the model was sent the secret"
        );
    }
    assert!(
        printed.iter().all(|printed| !printed.contains(text)),
        "the secret was printed"
    );
    holds_nowhere(&fixture.data(), text);
}

#[test]
fn a_goal_with_a_secret_makes_no_run() {
    let (repo, server) = (small().build(), answering(good_answer()));
    let fixture = Fixture::with(&server);
    let before = snapshot(&repo, &fixture);
    let goal = format!("make src/area.py log in with {}", made_up_token());
    let ran = fixture
        .call(["run", "start", goal.as_str(), "--json", "--repo"])
        .arg(repo.path())
        .run()
        .exits(8);
    assert!(
        ran.message().contains("github-personal-token"),
        "{}",
        ran.stderr
    );
    before.is_still(&snapshot(&repo, &fixture));
    assert!(fixture.runs().is_empty());
    assert_eq!(
        fixture.run(["run", "list", "--json"]).ok().json()["runs"]
            .as_array()
            .unwrap()
            .len(),
        0
    );
    assert!(server.requests().is_empty());
    stays_secret(
        &fixture,
        &server,
        &[&ran.stdout, &ran.stderr],
        &made_up_token(),
    );
}

#[test]
fn a_file_with_a_secret_is_not_sent() {
    let settings = format!(
        "# area of width and height\nTOKEN = \"{}\"\n",
        made_up_token()
    );
    let key = format!(
        "-----BEGIN {}PRIVATE KEY-----\nMIIEowIBAAKCAQEA3Tz2mr7SZiAMfQyuvBjM9Oi\n-----END",
        "RSA "
    );
    let repo = small()
        .file("src/area_settings.py", settings)
        .file(".env", "AREA_WIDTH_PASSWORD=hunter2-hunter2\n")
        .file("src/area.pem", key)
        .build();
    let server = answering(good_answer());
    let fixture = Fixture::with(&server);
    let ran = fixture.start(repo.path()).ok();
    assert_eq!(ran.json()["state"], "verified");
    let status = ran.json();
    fixture
        .run(["run", "land", status["run"]["run_id"].as_str().unwrap()])
        .ok();
    for secret in [
        made_up_token().as_str(),
        "hunter2-hunter2",
        "MIIEowIBAAKCAQEA3Tz2mr7SZiAMfQyuvBjM9Oi",
    ] {
        stays_secret(&fixture, &server, &[&ran.stdout, &ran.stderr], secret);
    }
    // What was left out is named.
    let pack =
        std::fs::read_to_string(fixture.runs()[0].join("artifacts/context_pack.json")).unwrap();
    assert!(pack.contains("src/area_settings.py"), "{pack}");
}

#[test]
fn named_secret_file_stops_run_before_any_call() {
    let settings = format!("TOKEN = \"{}\"\n", made_up_token());
    let repo = small()
        .file(".env", "A=1\n")
        .file("src/settings.py", settings)
        .build();
    let server = answering(good_answer());
    let fixture = Fixture::with(&server);
    for (file, rule) in [
        (".env", "secret-file"),
        ("src/settings.py", "github-personal-token"),
    ] {
        let ran = fixture
            .start_call(repo.path())
            .args(["--file", file])
            .run()
            .exits(8);
        let message = ran.message();
        assert!(
            message.contains(file) && message.contains(rule),
            "{message}"
        );
        assert!(!message.contains(&made_up_token()), "{message}");
    }
    assert!(fixture.runs().is_empty() && server.requests().is_empty());
}

#[test]
fn secret_printed_by_gate_is_redacted_everywhere() {
    let token = made_up_token();
    let (left, right) = token.split_at(20);
    // In two halves, so that it is in no file, and across two writes.
    let script = format!(
        "printf '%s' 'token {left}'; sleep 0.1; printf '%s\\n' '{right} area in src/area.py'; exit 1\n"
    );
    let repo = with_gate(&script, 20).build();
    let server = answering(good_answer());
    let fixture = Fixture::with(&server);
    let ran = fixture
        .start_call(repo.path())
        .args(["--max-iterations", "2"])
        .run()
        .exits(1);
    assert_eq!(codes(&ran.json(), 1), ["verify-gate-failed"]);
    let requests = server.requests()[0].body.to_string();
    assert!(
        requests.contains("[secret:github-personal-token]"),
        "{requests}"
    );
    stays_secret(&fixture, &server, &[&ran.stdout, &ran.stderr], &token);
}

#[test]
fn answer_with_secret_is_refused_and_stored_redacted() {
    let answer = whole_file(
        "src/area.py",
        &format!("TOKEN = \"{}\"\n{WRONG}", made_up_token()),
    );
    let (repo, server) = (small().build(), answering(answer));
    let fixture = Fixture::with(&server);
    let before = snapshot(&repo, &fixture);
    let ran = fixture
        .start_call(repo.path())
        .args(["--max-iterations", "1"])
        .run()
        .exits(1);
    assert_eq!(codes(&ran.json(), 1), ["run-secret-in-answer"]);
    before.is_still(&snapshot(&repo, &fixture));
    stays_secret(
        &fixture,
        &server,
        &[&ran.stdout, &ran.stderr],
        &made_up_token(),
    );
    let answer =
        std::fs::read_to_string(fixture.runs()[0].join("attempts/001/answer.txt")).unwrap();
    assert!(
        answer.contains("[secret:github-personal-token]"),
        "{answer}"
    );
}

#[test]
fn key_quoted_in_server_error_is_hidden() {
    let repo = small().build();
    let server = FakeOpenAi::start([Reply::Status(401)]);
    let fixture = Fixture::with(&server);
    let key = "a-key-of-no-known-format-1234";
    let call = fixture
        .start_call(repo.path())
        .env("CRUCIBLE_LLM_GATEWAY_API_KEY_ENV", "AREA_KEY")
        .env("AREA_KEY", key);
    let ran = call.run().exits(70);
    assert_eq!(
        server.requests()[0].header("authorization"),
        Some(format!("Bearer {key}").as_str())
    );
    assert!(!ran.stderr.contains(key) && ran.stdout.is_empty());
    holds_nowhere(&fixture.data(), key);
}

#[test]
fn scanner_names_the_place_without_the_value() {
    let fixture = Fixture::new();
    let directory = fixture.path("code");
    std::fs::create_dir(&directory).unwrap();
    std::fs::write(
        directory.join("main.py"),
        format!("x = 1\ntoken = '{}'\n", made_up_token()),
    )
    .unwrap();
    std::fs::write(directory.join("clean.py"), "x = 1\n").unwrap();
    let before = Snapshot::take([&directory]);
    let ran = fixture
        .call(["secrets", "scan", "--json"])
        .arg(&directory)
        .run()
        .exits(8);
    let report = ran.json();
    assert_eq!(report["verdict"], "fail");
    assert_eq!(report["findings"].as_array().unwrap().len(), 1);
    assert!(
        report["findings"][0]["subject"]
            .as_str()
            .unwrap()
            .contains("main.py"),
        "{report}"
    );
    assert!(!ran.stdout.contains(&made_up_token()) && !ran.stderr.contains(&made_up_token()));
    fixture
        .call(["secrets", "scan"])
        .arg(directory.join("clean.py"))
        .run()
        .ok();
    before.is_still(&Snapshot::take([&directory]));
}
