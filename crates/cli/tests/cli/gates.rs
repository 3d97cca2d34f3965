//! Gates that misbehave are ended, the run says so, and no process is left.
//!
//! Every gate here fails at once on the base and misbehaves on the changed copy only, so each test waits once.
//! What a gate starts carries a marker in its arguments, by which it is found among the machine's processes.

use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crucible_testkit::TestRepo;

use crate::support::{Fixture, answering, codes, good_answer, small, snapshot, with_gate};

/// A number of seconds that no other process on this machine sleeps.
fn marker() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!(
        "4{}.{:06}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    )
}

/// Whether a process with the marker in its arguments is alive.
fn is_alive(marker: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    processes
        .filter_map(|process| std::fs::read(process.path().join("cmdline")).ok())
        .any(|arguments| {
            arguments
                .split(|byte| *byte == 0)
                .any(|argument| argument == marker.as_bytes())
        })
}

/// Waits until `holds`, or fails.
#[track_caller]
fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "waited in vain until {what}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A repository whose gate does this once the change is there.
fn misbehaving(script: &str, timeout_s: u64) -> TestRepo {
    let guarded = format!("grep -q 'width \\* height' src/area.py || exit 1\n{script}\n");
    with_gate(&guarded, timeout_s).build()
}

/// Runs the change once against the gate and tells what the run says: the codes of the attempt, and how its gate
/// ended in the report.
#[track_caller]
fn tried(repo: &TestRepo, strength: &str, exit: i32) -> Vec<String> {
    let server = answering(good_answer());
    let fixture = Fixture::with(&server);
    let before = snapshot(repo, &fixture);
    let call =
        fixture
            .start_call(repo.path())
            .args(["--max-iterations", "1", "--sandbox", strength]);
    let status = call.run().exits(exit).json();
    before.is_still(&snapshot(repo, &fixture));
    assert_eq!(leftovers(&fixture), 0, "copies are left");
    codes(&status, 1)
}

#[test]
fn hanging_gate_is_ended_without_leftover_process() {
    let marker = marker();
    let repo = misbehaving(&format!("sleep {marker}"), 1);
    assert_eq!(tried(&repo, "required", 1), ["verify-gate-timeout"]);
    assert!(!is_alive(&marker));
}

#[test]
fn gate_ignoring_termination_is_killed() {
    let marker = marker();
    let repo = misbehaving(
        &format!("trap '' TERM INT HUP\nwhile :; do sleep {marker}; done"),
        1,
    );
    assert_eq!(tried(&repo, "required", 1), ["verify-gate-timeout"]);
    assert!(!is_alive(&marker));
}

#[test]
fn daemons_of_gate_are_killed() {
    let (first, second) = (marker(), marker());
    let script = format!(
        "setsid sleep {first} </dev/null >/dev/null 2>&1 &\n(setsid sh -c 'trap \"\" TERM; sleep {second}' &) </dev/null >/dev/null 2>&1\nsleep 0.2\nexit 0"
    );
    let repo = misbehaving(&script, 20);
    assert_eq!(tried(&repo, "required", 0), [""; 0]);
    assert!(!is_alive(&first) && !is_alive(&second));
}

#[test]
fn daemons_are_found_without_isolation_too() {
    let (first, second) = (marker(), marker());
    let script = format!(
        "setsid sleep {first} &\n(setsid sh -c 'trap \"\" TERM; sleep {second}' &)\nsleep 0.2\nexit 0"
    );
    let repo = misbehaving(&script, 20);
    assert!(!tried(&repo, "off", 0).contains(&"verify-gate-timeout".to_owned()));
    assert!(!is_alive(&first) && !is_alive(&second));
}

#[test]
fn a_gate_that_forks_without_end_is_ended() {
    let marker = marker();
    // Each generation starts two of the next; the depth keeps the test bounded should nothing else do so.
    let script = format!(
        "fork() {{ [ \"$1\" -gt 6 ] || {{ fork $(($1 + 1)) & fork $(($1 + 1)) & }}; sleep {marker}; }}\nfork 0"
    );
    let repo = misbehaving(&script, 2);
    assert_eq!(tried(&repo, "required", 1), ["verify-gate-timeout"]);
    assert!(!is_alive(&marker));
}

#[test]
fn gate_printing_endlessly_is_ended_with_bounded_output() {
    let marker = marker();
    let repo = misbehaving(&format!("yes {marker}"), 40);
    let server = answering(good_answer());
    let fixture = Fixture::with(&server);
    let call = fixture
        .start_call(repo.path())
        .args(["--max-iterations", "1"]);
    let status = call.run().exits(1).json();
    let codes = codes(&status, 1);
    for code in ["verify-gate-output-limit", "verify-log-cut"] {
        assert!(codes.iter().any(|found| found == code), "{codes:?}");
    }
    assert!(!is_alive(&marker));
    let log = fixture.runs()[0].join("logs/verify.stdout.log");
    assert!(std::fs::metadata(log).unwrap().len() < 8 << 20);
    // Nor does a prompt or a status hold it.
    assert!(status.to_string().len() < 100_000);
}

/// A run whose gate is at work now.
fn at_work(fixture: &Fixture, repo: &TestRepo, marker: &str) -> Child {
    let mut command = fixture.start_call(repo.path()).command();
    let child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the gate runs", || is_alive(marker));
    child
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill")
        .args([name, &child.id().to_string()])
        .status()
        .unwrap();
    assert!(sent.success());
}

#[test]
fn interrupted_run_leaves_no_process_and_resumes() {
    for name in ["-INT", "-TERM", "-KILL"] {
        let (marker, server) = (marker(), answering(good_answer()));
        let fixture = Fixture::with(&server);
        let go_on = fixture.path("go-on");
        let repo = misbehaving(
            &format!("[ -e '{}' ] || sleep {marker}", go_on.display()),
            60,
        );
        let before = snapshot(&repo, &fixture);
        let mut child = at_work(&fixture, &repo, &marker);
        signal(&child, name);
        let end = child.wait().unwrap();
        assert_eq!(end.code(), (name != "-KILL").then_some(130), "{name}");
        wait_until("every process has gone", || !is_alive(&marker));
        before.is_still(&snapshot(&repo, &fixture));
        assert_eq!(fixture.status()["state"], "patched", "{name}");
        fixture.run(["ledger", "verify"]).ok();

        std::fs::write(&go_on, "").unwrap();
        let advanced = fixture.run(["run", "advance", "--json"]).ok().json();
        assert_eq!(advanced["state"], "verified", "{name}");
        assert_eq!(server.requests().len(), 1, "the model was asked again");
        assert_eq!(codes(&advanced, 1), [""; 0]);
        assert_eq!(leftovers(&fixture), 0, "copies are left");
        fixture.run(["ledger", "verify"]).ok();
    }
}

/// How many temporary things lie about.
fn leftovers(fixture: &Fixture) -> usize {
    let tmp = fixture
        .runs()
        .into_iter()
        .map(|run| run.join("tmp"))
        .chain([fixture.data().join("tmp")]);
    tmp.filter_map(|tmp| std::fs::read_dir(tmp).ok())
        .map(Iterator::count)
        .sum()
}

#[test]
fn gate_has_no_network_home_or_outside_writes() {
    let outside = Fixture::new();
    std::fs::write(outside.path("mine"), "mine").unwrap();
    let mine = outside.path("mine");
    let script = format!(
        "(echo hello > {0}) 2>/dev/null && exit 3\n[ -e \"$HOME/.gitconfig\" ] && exit 4\n\
         grep -q 'user\\|remote' .git/config && exit 5\n(echo x > check.sh) || exit 6\nenv | grep -q CRUCIBLE && exit 7\nexit 0",
        mine.display()
    );
    let repo = misbehaving(&script, 20);
    assert_eq!(tried(&repo, "required", 0), [""; 0]);
    assert_eq!(std::fs::read_to_string(mine).unwrap(), "mine");
}

#[test]
fn missing_gate_requirement_is_reported_before_model_calls() {
    let text = "sh: No module named pytest";
    let gate =
        format!("[gates.tests]\ncommand = [\"sh\", \"-c\", \"echo '{text}' >&2; exit 1\"]\n");
    let repo = small().file(".crucible/config.toml", gate).build();
    let server = answering(good_answer());
    let fixture = Fixture::with(&server);
    let error = fixture.start(repo.path()).exits(2).error();
    let (message, hints) = (error["error"].to_string(), error["hints"].to_string());
    assert!(
        message.contains("gate tests could not run") && message.contains(text),
        "{message}"
    );
    assert!(
        hints.contains("install pytest") && hints.contains("[gates.tests]"),
        "{hints}"
    );
    assert!(server.requests().is_empty());
}

#[test]
fn missing_gate_program_is_reported_before_model_calls() {
    let repo = small()
        .file(
            ".crucible/config.toml",
            "[gates.tests]\ncommand = [\"no-such-program-here\"]\n",
        )
        .build();
    let server = answering(good_answer());
    let fixture = Fixture::with(&server);
    let message = fixture.start(repo.path()).exits(2).message();
    assert!(
        message.contains("\"no-such-program-here\" was not found on PATH"),
        "{message}"
    );
    assert!(server.requests().is_empty());
}
