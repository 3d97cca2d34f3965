//! Where the question of `crucible ask` comes from, and what is told beside it.

use std::process::Stdio;

use crucible_testkit::{CouncilCall, Reply, triage};

use super::support::{ROLES, asked, bypassed, council, run_with, usual};
use crate::crawl::support::wait_for;
use crate::crawl::terminal::Terminal;
use crate::support::Fixture;

/// What the triage was shown.
fn shown(server: &crucible_testkit::FakeApi) -> String {
    server.completions().first().unwrap().conversation()
}

#[test]
fn question_is_read_from_stdin_with_dash() {
    for args in [&["ask", "-"][..], &["ask"]] {
        let server = bypassed();
        let fixture = Fixture::with(&server);
        let ran = run_with(
            fixture.call(args),
            b"\n  What is the capital\nof France?  \n",
        )
        .ok();
        assert_eq!(ran.stdout, "Paris.\n");
        assert!(
            shown(&server).contains("What is the capital\\nof France?"),
            "{}",
            shown(&server)
        );
        // Standard input of these tests is empty.
        let ran = fixture.call(args).run().exits(2);
        assert!(
            ran.stderr.contains("the question is empty"),
            "{}",
            ran.stderr
        );
        assert_eq!(server.completions().len(), 2);
    }
}

#[test]
fn given_question_leaves_standard_input_unread() {
    let server = bypassed();
    let fixture = Fixture::with(&server);
    let ran = run_with(
        fixture.call(["ask", "What is the capital?"]),
        b"another question",
    )
    .ok();
    assert_eq!(ran.stdout, "Paris.\n");
    assert!(!shown(&server).contains("another question"));
}

#[test]
fn invalid_or_oversized_question_is_refused_before_calls() {
    let server = bypassed();
    let fixture = Fixture::with(&server);
    let ran = run_with(fixture.call(["ask", "-"]), b"what is \xff this?").exits(2);
    assert!(
        ran.stderr.contains("not UTF-8 (at byte 9)"),
        "{}",
        ran.stderr
    );
    let long = "a question that never ends ".repeat(40_000);
    let ran = run_with(fixture.call(["ask", "-"]), long.as_bytes()).exits(7);
    insta::assert_snapshot!(ran.stderr, @"
    error: the question on standard input has more than 200000 bytes, which is the limit
      hint: Shorten it, or raise council.max_query_bytes (CRUCIBLE_COUNCIL_MAX_QUERY_BYTES).
    ");
    let short = |args: &[&str]| {
        fixture
            .call(args)
            .env("CRUCIBLE_COUNCIL_MAX_QUERY_BYTES", "20")
    };
    let ran = short(&["ask", "a question of 30 bytes in all."])
        .run()
        .exits(7);
    insta::assert_snapshot!(ran.stderr, @"
    error: the question has 30 bytes; the limit is 20
      hint: Shorten it, or raise council.max_query_bytes (CRUCIBLE_COUNCIL_MAX_QUERY_BYTES).
    ");
    // Space around a question is not a part of it, wherever the question comes from.
    short(&["ask", "            12345678901234567890            "])
        .run()
        .ok();
    run_with(short(&["ask", "-"]), b" \n12345678901234567890\n").ok();
    run_with(short(&["ask", "-"]), b"123456789012345678901\n").exits(7);
    run_with(short(&["ask", "-"]), "1234 ".repeat(20_000).as_bytes()).exits(7);
    let ran = run_with(
        short(&["chat"]),
        b"  12345678901234567890 \r\n 123456789012345678901 \n",
    )
    .ok();
    assert_eq!(
        ran.stdout
            .matches("[Processing... short-circuited]")
            .count(),
        1,
        "{}",
        ran.stdout
    );
    assert!(
        ran.stdout
            .contains("> error: the question has 21 bytes; the limit is 20"),
        "{}",
        ran.stdout
    );
    assert_eq!(server.completions().len(), 6);
}

#[test]
fn empty_question_makes_no_call() {
    let server = bypassed();
    let fixture = Fixture::with(&server);
    for question in ["", "  \n\t ", "\u{200b}\u{feff}"] {
        let ran = fixture.run(["ask", question]).exits(2);
        assert!(
            ran.stderr.contains("the question is empty"),
            "{}",
            ran.stderr
        );
        assert!(
            ran.stderr.contains("hint: For example: crucible ask "),
            "{}",
            ran.stderr
        );
    }
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn missing_question_on_terminal_is_error_with_example() {
    let fixture = Fixture::new();
    let (code, screen) = Terminal::start(fixture.call(["ask"])).ends();
    assert_eq!(code, Some(2), "{screen}");
    assert!(screen.contains("no question given"), "{screen}");
    assert!(
        screen.contains("crucible ask \"Should we split"),
        "{screen}"
    );
}

#[test]
fn terminal_shows_awaited_calls_on_one_line() {
    let seats_hang =
        |call: &CouncilCall| matches!(call, CouncilCall::Seat(_)).then_some(Reply::Hang);
    let server = council(triage("parallel", &ROLES), seats_hang);
    let fixture = Fixture::with(&server);
    let mut terminal = Terminal::start(fixture.call(["ask", "Should we?"]).env("TERM", "xterm"));
    terminal.shows("call 3: 2 × seat");
    let number = terminal.id().to_string();
    assert!(
        std::process::Command::new("kill")
            .args(["-s", "INT", &number])
            .status()
            .unwrap()
            .success()
    );
    let (code, screen) = terminal.ends();
    assert_eq!(code, Some(130), "{screen}");
    assert!(
        screen.contains("No partial result was saved") && !screen.contains("... call"),
        "{screen}"
    );
}

#[test]
fn interrupt_while_reading_stdin_ends_at_once() {
    let fixture = Fixture::new();
    let mut command = fixture.call(["ask", "-"]).command();
    let mut child = command
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = child.id();
    wait_for("the program to wait for its input", || {
        hears_interrupts(pid)
    });
    assert!(
        std::process::Command::new("kill")
            .args(["-s", "INT", &pid.to_string()])
            .status()
            .unwrap()
            .success()
    );
    let held = child.stdin.take();
    let output = child.wait_with_output().unwrap();
    drop(held);
    assert_eq!(output.status.code(), Some(130), "{output:?}");
}

/// Whether the process has a handler for the interrupt, which it has from the moment on at which it waits for something.
pub(super) fn hears_interrupts(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status
        .lines()
        .find_map(|line| line.strip_prefix("SigCgt:"))
        .unwrap_or_default();
    // Signal number n is bit n - 1.
    u64::from_str_radix(caught.trim(), 16).unwrap_or_default() & (1 << 1) != 0
}

#[test]
fn context_is_sent_only_to_triage() {
    let server = usual("debate");
    let fixture = Fixture::with(&server);
    let args = [
        "ask",
        "Should we?",
        "--context",
        "audience=board members",
        "--context",
        "tone = a=b",
    ];
    fixture.run(args).ok();
    let calls = asked(&server);
    assert!(calls.contains(&CouncilCall::Synthesis), "{calls:?}");
    for (call, request) in calls.iter().zip(server.completions()) {
        let prompt = request.conversation();
        let knows = ["audience", "board members", "a=b"].map(|word| prompt.contains(word));
        assert_eq!(
            knows,
            [*call == CouncilCall::Triage; 3],
            "{call:?}: {prompt}"
        );
    }
}

#[test]
fn context_that_cannot_be_meant_is_refused() {
    let server = bypassed();
    let fixture = Fixture::with(&server);
    for wrong in ["audience", "=board", " =board"] {
        let ran = fixture
            .run(["ask", "Should we?", "--context", wrong])
            .exits(2);
        assert!(ran.stderr.contains("KEY=VALUE"), "{}", ran.stderr);
    }
    let ran = fixture
        .run(["ask", "Should we?", "--context", "a=1", "--context", "a=2"])
        .exits(2);
    assert!(
        ran.stderr.contains("--context names \"a\" twice"),
        "{}",
        ran.stderr
    );
    let long = format!("a={}", "x".repeat(70_000));
    let ran = fixture
        .run(["ask", "Should we?", "--context", &long])
        .exits(7);
    let message = "the limit is 65536\n  hint: Tell less with --context, or raise council.max_context_bytes (CRUCIBLE_COUNCIL_MAX_CONTEXT_BYTES)";
    assert!(ran.stderr.contains(message), "{}", ran.stderr);
    assert_eq!(server.requests().len(), 0);
}
