//! `--json`: one document on standard output with its version, errors as one document on standard error.

use serde_json::{Value, json};

use crate::support::{Fixture, GOAL, GOOD_DIFF, Ran, answering, good_answer, id_of, small};

/// The document of a call that ended well.
#[track_caller]
fn document(ran: Ran, version: &str) -> Value {
    let ran = ran.ok();
    assert!(ran.stdout.ends_with("}\n"), "{}", ran.stdout);
    let value = ran.json();
    assert_eq!(value["schema_version"], version);
    value
}

/// The document of a judgement begins with the same four fields everywhere.
#[track_caller]
fn judgement(ran: Ran, version: &str, code: i32, verdict: &str) -> Value {
    let ran = ran.exits(code);
    let value = ran.json();
    let fields: Vec<&str> = ran
        .stdout
        .lines()
        .filter_map(|line| line.strip_prefix("  \"")?.split('"').next())
        .collect();
    assert_eq!(fields[..3], ["schema_version", "verdict", "findings"]);
    assert_eq!(value["schema_version"], version);
    assert_eq!(value["verdict"], verdict);
    value
}

#[test]
fn every_command_on_a_run_gives_one_document() {
    let (repo, server) = (small().build(), answering(good_answer()));
    let fixture = Fixture::with(&server);
    let on_repo = |args: &[&str]| fixture.call(args).arg(repo.path()).run();
    let new = document(
        on_repo(&["run", "new", GOAL, "--json", "--repo"]),
        "crucible-run-status-v1",
    );
    assert_eq!(new["state"], "new");
    let id = id_of(&new);
    let advanced = document(
        fixture.run(["run", "advance", &id, "--json"]),
        "crucible-run-status-v1",
    );
    assert_eq!(advanced["state"], "verified");
    document(
        fixture.run(["run", "status", "--json"]),
        "crucible-run-status-v1",
    );
    document(
        fixture.run(["run", "list", "--json"]),
        "crucible-run-list-v1",
    );
    document(
        fixture.run(["run", "replay", &id, "--json"]),
        "crucible-replay-v1",
    );
    document(
        fixture.run(["run", "bundle", &id, "--json"]),
        "crucible-bundle-v1",
    );
    assert!(fixture.home().join(format!("{id}.zip")).is_file());
    document(
        fixture.run(["run", "land", &id, "--json"]),
        "crucible-landing-v1",
    );
    document(
        fixture.start(small().build().path()),
        "crucible-run-status-v1",
    );

    let log = document(
        fixture.run(["ledger", "log", "--json", "--run", &id]),
        "crucible-ledger-log-v1",
    );
    let events = log["events"].as_array().unwrap();
    assert!(events.iter().all(|event| event["run"] == id.as_str()));
    let plan = &advanced["artifacts"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["path"] == "artifacts/PLAN.md")
        .unwrap()["digest"];
    let value = document(
        fixture.run(["ledger", "show", plan.as_str().unwrap(), "--json"]),
        "crucible-artifact-v1",
    );
    assert!(
        value["text"].as_str().unwrap().contains("Status: SIGNED"),
        "{value}"
    );
    judgement(
        fixture.run(["ledger", "verify", "--json"]),
        "crucible-ledger-verify-v1",
        0,
        "pass",
    );
}

#[test]
fn every_other_command_gives_one_document() {
    let (repo, fixture) = (small().build(), Fixture::new());
    let init = document(fixture.run(["init", "--json"]), "crucible-init-v1");
    assert_eq!(init["created"], true);
    assert_eq!(
        document(fixture.run(["init", "--json"]), "crucible-init-v1")["created"],
        false
    );
    let config = document(
        fixture.run(["config", "show", "--json"]),
        "crucible-config-v1",
    );
    let settings = config["settings"].as_array().unwrap();
    let provider = settings
        .iter()
        .find(|row| row["key"] == "llm.provider")
        .unwrap();
    assert_eq!(provider["value"], "gateway");
    assert_eq!(provider["variable"], "CRUCIBLE_LLM_PROVIDER");
    let status = document(
        fixture.run(["sandbox", "status", "--json"]),
        "crucible-sandbox-status-v1",
    );
    assert_eq!(status["strength"], "required");
    let off = fixture
        .call(["sandbox", "status", "--json"])
        .env("CRUCIBLE_SANDBOX", "off")
        .run();
    let off = document(off, "crucible-sandbox-status-v1");
    assert_eq!(off["layers"], status["layers"]);
    assert_eq!(off["findings"][0]["code"], "sandbox-off");
    let exec = fixture
        .call(["sandbox", "exec", "--json", "--", "echo", "hello"])
        .current_dir(repo.path())
        .run();
    let exec = document(exec, "crucible-sandbox-exec-v1");
    assert_eq!(exec["stdout"], "hello\n");
    document(
        fixture.run(["run", "list", "--json"]),
        "crucible-run-list-v1",
    );

    std::fs::write(fixture.path("policy.json"), r#"{"allow_roots": ["src/"]}"#).unwrap();
    let check = |patch: &str| {
        std::fs::write(fixture.path("change.patch"), patch).unwrap();
        let call = fixture
            .call(["patch", "check", "--json", "--policy"])
            .arg(fixture.path("policy.json"))
            .arg("--patch");
        call.arg(fixture.path("change.patch"))
            .arg("--repo")
            .arg(repo.path())
            .run()
    };
    judgement(check(GOOD_DIFF), "crucible-patch-check-v1", 0, "pass");
    let outside = GOOD_DIFF.replace("src/area.py", "check.sh");
    judgement(check(&outside), "crucible-patch-check-v1", 1, "fail");

    std::fs::write(fixture.path("clean.txt"), "nothing\n").unwrap();
    let scan = fixture
        .call(["secrets", "scan", "--json"])
        .arg(fixture.path("clean.txt"))
        .run();
    judgement(scan, "crucible-secrets-scan-v1", 0, "pass");
}

#[test]
fn an_error_is_one_document_too() {
    let fixture = Fixture::new();
    let repo = small().build();
    let on_repo = |args: &[&str]| fixture.call(args).arg(repo.path()).run();
    let calls = [
        (fixture.run(["run", "status", "--json"]), 2),
        (fixture.run(["run", "land", "no-such-run", "--json"]), 2),
        (fixture.run(["run", "land", "../../etc", "--json"]), 2),
        (fixture.run(["ledger", "verify", "--json"]), 2),
        (fixture.run(["ledger", "show", "no-digest", "--json"]), 2),
        (fixture.run(["secrets", "scan", "missing", "--json"]), 2),
        (on_repo(&["run", "start", " ", "--json", "--repo"]), 2),
        (
            on_repo(&["run", "start", GOAL, "--file", "../x", "--json", "--repo"]),
            2,
        ),
        (
            on_repo(&[
                "run",
                "start",
                GOAL,
                "--sandbox",
                "weak",
                "--json",
                "--repo",
            ]),
            2,
        ),
        (
            on_repo(&[
                "run",
                "start",
                GOAL,
                "--max-iterations",
                "0",
                "--json",
                "--repo",
            ]),
            2,
        ),
    ];
    for (ran, code) in calls {
        let ran = ran.exits(code);
        let error = ran.error();
        assert_eq!(error["schema_version"], "crucible-error-v1");
        assert_eq!(error["exit_code"], code);
        assert_eq!(error["budget_exhausted"], false);
        assert!(
            error["hints"].is_array() && error["error"].as_str().unwrap().len() > 5,
            "{error}"
        );
    }
    assert!(fixture.runs().is_empty());
}

#[test]
fn failing_sandbox_command_gives_document_and_exit_code() {
    let fixture = Fixture::new();
    let exec = |args: &[&str]| {
        fixture
            .call([&["sandbox", "exec", "--json"], args].concat())
            .current_dir(fixture.path("."))
            .run()
    };
    let ran = exec(&["--", "sh", "-c", "echo out; exit 3"]).exits(1);
    assert_eq!(ran.json()["end"], json!({ "exited": 3 }), "{}", ran.stdout);
    let slow = exec(&["--timeout", "1", "--", "sleep", "30"]).exits(10);
    assert_eq!(slow.json()["end"], "timed_out", "{}", slow.stdout);
    let forbidden = exec(&["--calls", "compute", "--", "touch", "new"]).exits(1);
    assert_eq!(forbidden.json()["end"], "forbidden", "{}", forbidden.stdout);
}

#[test]
fn sandbox_command_reaches_its_allowed_hosts() {
    let fixture = Fixture::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = std::io::Write::write_all(&mut stream, b"hello\n");
        }
    });
    let exec = |hosts: &[&str], script: &str| {
        let command = ["--", "bash", "-c", script];
        fixture
            .call([&["sandbox", "exec", "--json"], hosts, &command].concat())
            .current_dir(fixture.path("."))
            .run()
    };
    let host = format!("localhost:{port}");
    let read = format!("read -r line < /dev/tcp/localhost/{port} && echo $line");
    let reached = exec(&["--net", &host], &read).exits(0).json();
    assert_eq!(reached["stdout"], "hello\n");
    assert_eq!(
        reached["contacts"],
        json!([{ "host": "localhost", "port": port, "opened": 1, "failed": 0, "last_failure": "" }])
    );
    assert_eq!(
        reached["isolation"]["network"],
        json!({ "hosts": [{ "host": "localhost", "ports": [port] }] })
    );
    exec(&["--net", "localhost:1"], &read).exits(1);
    let bad = exec(&["--net", "https://example.com"], "true").exits(2);
    assert!(
        bad.stderr.contains("give a name such as api.example.com"),
        "{}",
        bad.stderr
    );
    exec(&["--net", "a.example", "--network"], "true").exits(2);
}

#[test]
fn a_reader_that_stops_early_is_no_error() {
    let fixture = Fixture::new();
    let mut command = fixture.call(["completions", "bash"]).command();
    let mut child = command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}
