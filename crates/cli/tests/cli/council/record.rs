//! `--record`: whose file it is, what is left of it, and what becomes of a conversation that cannot be recorded.

use std::io::Write;
use std::process::{Child, Stdio};

use crucible_testkit::{CouncilCall, Reply, simple_triage, triage};

use super::support::{ROLES, asked, bypassed, council, run_with};
use crate::crawl::support::wait_for;
use crate::support::{Call, Fixture};

const QUESTION: &str = "Should our team of five split its program into services?";

/// A call that waits for its question.
fn waiting(call: Call) -> Child {
    let mut command = call.command();
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn send_question(child: &mut Child, question: &str) {
    child
        .stdin
        .take()
        .unwrap()
        .write_all(question.as_bytes())
        .unwrap();
}

#[test]
fn recording_to_a_file_in_use_is_refused() {
    let server = council(simple_triage(), |call| {
        (*call == CouncilCall::Direct).then_some(Reply::Hang)
    });
    let fixture = Fixture::with(&server);
    let file = fixture.home().join("calls.jsonl");
    let args = ["ask", "-", "--record", "calls.jsonl"];
    // Both have found the place free before either begins.
    let (mut first, mut second) = (waiting(fixture.call(args)), waiting(fixture.call(args)));
    for child in [&first, &second] {
        let id = child.id();
        wait_for("the program to wait for its question", || {
            super::input::hears_interrupts(id)
        });
    }
    send_question(&mut first, QUESTION);
    wait_for("the first to be asked", || asked(&server).len() == 2);
    let begun = std::fs::read(&file).unwrap();
    send_question(&mut second, QUESTION);
    let refused = second.wait_with_output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains("--record: "),
        "{refused:?}"
    );
    assert_eq!(asked(&server).len(), 2);
    assert_eq!(
        std::fs::read(&file).unwrap(),
        begun,
        "the file of the first is as it was"
    );
    first.kill().unwrap();
    first.wait().unwrap();
}

#[test]
fn recording_is_absent_when_nothing_was_answered() {
    let server = bypassed();
    let fixture = Fixture::with(&server);
    let file = fixture.home().join("calls.jsonl");
    fixture
        .run(["ask", "\u{200b}\u{feff}", "--record", "calls.jsonl"])
        .exits(2);
    assert!(!file.exists());
    let long = format!("a={}", "x".repeat(70_000));
    fixture
        .run([
            "ask",
            QUESTION,
            "--context",
            &long,
            "--record",
            "calls.jsonl",
        ])
        .exits(7);
    assert!(!file.exists());
    run_with(
        fixture.call(["chat", "--record", "calls.jsonl"]),
        "\u{200b}\nexit\n".as_bytes(),
    )
    .ok();
    assert!(!file.exists());
    assert_eq!(server.requests().len(), 0);
    // One that holds a call stays.
    run_with(
        fixture.call(["chat", "--record", "calls.jsonl"]),
        "What is it?\n\u{200b}\n".as_bytes(),
    )
    .ok();
    assert_eq!(std::fs::read_to_string(&file).unwrap().lines().count(), 3);
}

#[test]
fn interrupt_before_any_answer_reports_empty_recording() {
    let server = council(simple_triage(), |_| Some(Reply::Hang));
    let fixture = Fixture::with(&server);
    let child = waiting(fixture.call(["ask", QUESTION, "--record", "calls.jsonl"]));
    wait_for("the triage to be asked", || asked(&server).len() == 1);
    let id = child.id().to_string();
    assert!(
        std::process::Command::new("kill")
            .args(["-s", "INT", &id])
            .status()
            .unwrap()
            .success()
    );
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("No partial result was saved"),
        "{output:?}"
    );
    assert!(!fixture.home().join("calls.jsonl").exists());
}

#[test]
fn invalid_recording_path_is_refused_before_output() {
    let server = bypassed();
    let fixture = Fixture::with(&server);
    for command in ["ask", "chat"] {
        let ran = run_with(
            fixture.call([command, "--record", "no/such/calls.jsonl"]),
            b"What is it?\n",
        )
        .exits(2);
        assert_eq!(ran.stdout, "");
        assert!(
            ran.stderr.starts_with("error: --record: ") && ran.stderr.contains("directory"),
            "{}",
            ran.stderr
        );
    }
    assert_eq!(server.requests().len(), 0);
}

/// While the first question is answered a directory takes the place of the recording.
#[test]
fn chat_ends_when_recording_fails() {
    let fixture = Fixture::new();
    let file = fixture.home().join("calls.jsonl");
    let place = file.clone();
    let mut replaced = false;
    let server = council(triage("parallel", &ROLES), move |_| {
        if !replaced {
            std::fs::remove_file(&place).unwrap();
            std::fs::create_dir(&place).unwrap();
            replaced = true;
        }
        None
    });
    let call = fixture
        .call(["chat", "--record", "calls.jsonl"])
        .env("CRUCIBLE_GATEWAY_BASE_URL", server.base_url());
    let ran = run_with(call, b"What now?\nAnd then?\nAnd then?\n").exits(1);
    assert!(
        ran.stdout.ends_with("[Processing... failed]\n"),
        "{}",
        ran.stdout
    );
    let (took, error) = ran.stderr.split_once('\n').unwrap();
    assert!(
        took.starts_with("no answer; 1 call, "),
        "what was paid for in vain is told: {took}"
    );
    assert!(
        error.starts_with("error: ") && error.contains("calls.jsonl"),
        "{error}"
    );
    assert!(
        ran.stderr.contains("hint: The conversation ends"),
        "{}",
        ran.stderr
    );
    assert_eq!(asked(&server), [CouncilCall::Triage]);
}
