//! A reader that stands still: the program is asked to end while its result cannot be written, and does.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crucible_testkit::{CouncilCall, FakeApi, Reply, simple_triage};

use super::support::council;
use crate::crawl::support::wait_for;
use crate::support::Fixture;

/// A server whose one answer is longer than what a pipe holds.
fn endless() -> FakeApi {
    council(simple_triage(), |call| {
        (*call == CouncilCall::Direct).then(|| Reply::Answer("No end of it.\n".repeat(15_000)))
    })
}

/// Starts the program, and reads of its result so much that it is known to be writing its answer, and no more.
fn writing(mut command: Command, input: &str) -> Child {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .as_mut()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    let mut seen = Vec::new();
    while !seen.ends_with(b"No end") {
        let mut byte = [0];
        child
            .stdout
            .as_mut()
            .unwrap()
            .read_exact(&mut byte)
            .unwrap();
        seen.push(byte[0]);
    }
    child
}

#[track_caller]
fn send(signal: &str, child: &Child) {
    let id = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-s", signal, &id])
            .status()
            .unwrap()
            .success()
    );
}

#[test]
fn signal_ends_ask_with_unread_result() {
    let server = endless();
    let fixture = Fixture::with(&server);
    for (args, input) in [
        (&["ask", "Why?"][..], ""),
        (&["ask", "Why?", "--json", "--trace"], ""),
        (&["chat"], "Why?\n"),
    ] {
        for signal in ["INT", "TERM", "HUP"] {
            let mut child = writing(fixture.call(args).command(), input);
            send(signal, &child);
            let mut status = None;
            wait_for("the program to end", || {
                status = child.try_wait().unwrap();
                status.is_some()
            });
            assert_eq!(
                status.and_then(|status| status.code()),
                Some(130),
                "{args:?} after {signal}"
            );
        }
    }
}

#[test]
fn ignored_hangup_keeps_result_until_it_is_read() {
    let server = endless();
    let fixture = Fixture::with(&server);
    let call = fixture.call(["ask", "Why?"]).command();
    let mut command = Command::new("sh");
    command
        .args(["-c", "trap '' HUP; exec \"$@\"", "sh"])
        .arg(call.get_program())
        .args(call.get_args());
    command.current_dir(fixture.home()).env_clear();
    for (name, value) in call.get_envs() {
        command.env(name, value.unwrap());
    }
    let mut child = writing(command, "");
    send("HUP", &child);
    // Long enough for whoever would end it.
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(child.try_wait().unwrap(), None);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(
        String::from_utf8(output.stdout).unwrap().lines().count(),
        15_000
    );
}

#[test]
fn signal_ends_ask_with_unread_progress() {
    let server = endless();
    let fixture = Fixture::with(&server);
    let (unread, mut full) = std::io::pipe().unwrap();
    // As much as a pipe holds.
    full.write_all(&[b'.'; 1 << 16]).unwrap();
    let mut command = fixture.call(["ask", "Why?"]).command();
    let mut child = command.stdout(Stdio::piped()).stderr(full).spawn().unwrap();
    let id = child.id();
    wait_for("the program to wait for something", || {
        super::input::hears_interrupts(id)
    });
    send("INT", &child);
    let mut status = None;
    wait_for("the program to end", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    assert_eq!(status.and_then(|status| status.code()), Some(130));
    drop(unread);
}
