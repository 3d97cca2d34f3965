//! `crucible crawl validate`: any plan, wherever it came from.

use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use super::support::{CrawlDesk, error_of, speaks_as_a_crawl};
use crate::support::{Fixture, Ran};

fn plan(cmd: &str) -> Value {
    json!({
        "schema": "viv-git-plan.v1",
        "created_at": "2026-03-01T12:00:00Z",
        "plan_hash": "0123456789ab",
        "prompt_hash": "0123456789ab",
        "repo": {
            "full_name": "acme/widget", "url": "https://github.com/acme/widget", "selected_ref": "v1.0",
            "resolved_commit": "0123456789abcdef0123456789abcdef01234567",
        },
        "detected": { "build_system": "cargo", "confidence": 0.95 },
        "dependencies": { "tools": ["cargo"], "notes": "" },
        "steps": [{ "name": "build", "cmd": cmd, "cwd": ".", "env": {}, "note": "" }],
        "warnings": [],
        "debate_rounds": 1,
        "accepted_suggestions": [],
        "rejected_suggestions": [],
        "safety_validated": true,
        "safety_violations": [],
    })
}

/// Judges these bytes, which stand in a file.
#[track_caller]
fn judged(fixture: &Fixture, bytes: &[u8], more: &[&str]) -> Ran {
    std::fs::write(fixture.path("plan.json"), bytes).unwrap();
    let mut call = fixture
        .call(["crawl", "validate"])
        .arg(fixture.path("plan.json"));
    for arg in more {
        call = call.arg(arg);
    }
    let ran = call.run();
    speaks_as_a_crawl(&ran);
    ran
}

#[test]
fn safe_plan_passes_and_unsafe_exits_2() {
    let fixture = Fixture::new();
    let ran = judged(
        &fixture,
        plan("cargo build --release").to_string().as_bytes(),
        &["--json"],
    )
    .ok();
    let document = ran.json();
    assert_eq!(document["schema_version"], "crucible-crawl-validate-v1");
    assert_eq!(document["verdict"], "pass");
    // What a stranger says of its own safety counts for nothing.
    let ran = judged(
        &fixture,
        plan("cargo build && sudo make install")
            .to_string()
            .as_bytes(),
        &["--json"],
    )
    .exits(2);
    assert_eq!(ran.json()["verdict"], "fail");
    let finding = ran.json()["findings"].to_string();
    assert!(finding.contains("sudo"), "{finding}");
}

#[test]
fn invalid_plan_document_exits_three() {
    let fixture = Fixture::new();
    let mut without_steps = plan("cargo build");
    without_steps["steps"] = json!([]);
    let mut without_cmd = plan("cargo build");
    without_cmd["steps"][0]
        .as_object_mut()
        .unwrap()
        .remove("cmd");
    for bytes in [
        b"{}".to_vec(),
        b"".to_vec(),
        b"not json".to_vec(),
        b"\xff\xfe".to_vec(),
        b"[1,2".to_vec(),
        without_steps.to_string().into_bytes(),
        without_cmd.to_string().into_bytes(),
        "[".repeat(100_000).into_bytes(),
    ] {
        let ran = judged(&fixture, &bytes, &["--json"]).exits(3);
        assert_eq!(ran.json()["verdict"], "fail", "{}", ran.stdout);
    }
}

#[test]
fn people_read_findings_and_pipes_get_json() {
    let fixture = Fixture::new();
    let good = plan("cargo build").to_string();
    let pretty = judged(&fixture, good.as_bytes(), &["--format", "pretty"]).ok();
    assert!(
        pretty
            .stdout
            .contains("the plan passes its schema and the safety rules"),
        "{}",
        pretty.stdout
    );
    assert_eq!(
        judged(&fixture, good.as_bytes(), &[]).ok().json()["verdict"],
        "pass"
    );
    let bad = judged(
        &fixture,
        plan("sudo ls").to_string().as_bytes(),
        &["--format", "pretty"],
    )
    .exits(2);
    assert!(bad.stdout.starts_with("error "), "{}", bad.stdout);
}

#[test]
fn a_plan_may_come_through_a_pipe() {
    let fixture = Fixture::new();
    let mut command = fixture.call(["crawl", "validate", "-"]).command();
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(plan("cargo test").to_string().as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["verdict"], "pass");
}

#[test]
fn validate_needs_no_home_configuration_or_network() {
    let fixture = Fixture::new();
    fixture.user_config("this is not TOML");
    std::fs::write(fixture.path("plan.json"), plan("cargo build").to_string()).unwrap();
    let call = || {
        fixture
            .call(["crawl", "validate"])
            .arg(fixture.path("plan.json"))
    };
    call()
        .without_env("HOME")
        .without_env("CRUCIBLE_HOME")
        .without_env("PATH")
        .run()
        .ok();
    call().run().ok();
    assert!(!fixture.data().exists());
}

#[test]
fn unreadable_plan_is_a_general_error() {
    let fixture = CrawlDesk::new([]);
    for path in ["missing.json", "/dev/zero", "/", "/proc/self/mem"] {
        let ran = fixture.run(&["validate", path, "--json"]).exits(1);
        assert_eq!(
            (ran.stdout.as_str(), &error_of(&ran)["exit_code"]),
            ("", &json!(1))
        );
    }
    std::fs::write(
        fixture.fixture.path("big.json"),
        vec![b' '; 5 * 1024 * 1024],
    )
    .unwrap();
    let big = fixture.fixture.path("big.json").display().to_string();
    fixture.run(&["validate", &big]).exits(1);
    fixture.run(&["validate"]).exits(1);
}
