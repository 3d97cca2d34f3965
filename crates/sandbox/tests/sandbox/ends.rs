//! Programs that do not want to end, and who is left when they do.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crucible_model::ByteLimit;
use crucible_sandbox::End;
use tokio::sync::Notify;

use crate::support::{Scratch, eventually, mark, part, play, processes_with, run, runtime};

/// Each test runs trusted and confined.
const BOTH: [bool; 2] = [false, true];

fn spawn(scratch: &Scratch, confined: bool, script: &str) -> crucible_sandbox::Spawn {
    if confined {
        scratch.confined(script)
    } else {
        scratch.script(script)
    }
}

#[test]
fn one_that_hangs_is_ended_in_time() {
    let scratch = Scratch::new();
    let sandbox = scratch.sandbox();
    sandbox.layers();
    for confined in BOTH {
        let mark = mark();
        let mut hang = spawn(&scratch, confined, &format!("echo begun; sleep {mark}"));
        hang.limits.wall = Duration::from_millis(400);
        let start = Instant::now();
        let done = run(&sandbox, hang).unwrap();
        assert_eq!(done.end, End::TimedOut);
        assert_eq!(done.stdout.text(), "begun\n");
        assert!(
            start.elapsed() < Duration::from_secs(3),
            "{:?}",
            start.elapsed()
        );
        assert!(done.duration >= Duration::from_millis(400));
        assert_eq!(processes_with(&mark), [""; 0]);
    }
}

#[test]
fn stopped_program_keeps_its_output() {
    let scratch = Scratch::new();
    let sandbox = scratch.sandbox();
    for confined in [true, false] {
        let stop = Arc::new(Notify::new());
        let began = scratch.copy.join("began");
        let script = "echo said; touch began; exec sleep 600";
        let completed = runtime().block_on(async {
            let running = sandbox.run_until(spawn(&scratch, confined, script), Arc::clone(&stop));
            let stopping = async {
                while !began.exists() {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                stop.notify_one();
            };
            tokio::join!(running, stopping).0.unwrap()
        });
        assert_eq!(completed.end, End::TimedOut);
        assert_eq!(completed.stdout.text(), "said\n");
        std::fs::remove_file(&began).unwrap();
    }
}

#[test]
fn term_is_sent_first_and_allows_cleanup() {
    let scratch = Scratch::new();
    for confined in BOTH {
        let mark = mark();
        let mut polite = spawn(
            &scratch,
            confined,
            &format!(
                "trap 'echo cleaned; kill $pid; exit 3' TERM; sleep {mark} & pid=$!; echo ready; wait"
            ),
        );
        polite.limits.wall = Duration::from_millis(600);
        polite.limits.grace = Duration::from_secs(10);
        let start = Instant::now();
        let done = run(&scratch.sandbox(), polite).unwrap();
        assert_eq!(done.end, End::TimedOut);
        assert_eq!(
            done.stdout.text(),
            "ready\ncleaned\n",
            "confined: {confined}"
        );
        assert!(
            start.elapsed() < Duration::from_secs(6),
            "the grace period was waited out"
        );
        assert_eq!(processes_with(&mark), [""; 0]);
    }
}

#[test]
fn process_ignoring_term_is_killed_after_grace() {
    let scratch = Scratch::new();
    for confined in BOTH {
        let mark = mark();
        let script = format!("trap '' TERM HUP INT; while :; do sleep {mark}; done");
        let mut stubborn = spawn(&scratch, confined, &script);
        stubborn.limits.wall = Duration::from_millis(300);
        stubborn.limits.grace = Duration::from_millis(500);
        let done = run(&scratch.sandbox(), stubborn).unwrap();
        assert_eq!(done.end, End::TimedOut);
        assert!(
            done.duration >= Duration::from_millis(800),
            "{:?}",
            done.duration
        );
        assert!(
            done.duration < Duration::from_secs(5),
            "{:?}",
            done.duration
        );
        assert_eq!(processes_with(&mark), [""; 0]);
    }
}

#[test]
fn endless_printer_is_ended_and_reported() {
    let scratch = Scratch::new();
    for confined in BOTH {
        let mut chatty = spawn(
            &scratch,
            confined,
            "trap '' PIPE; while :; do echo yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy; done >&2",
        );
        chatty.limits.runaway = ByteLimit(1 << 20);
        chatty.limits.stderr = ByteLimit(100);
        let done = run(&scratch.sandbox(), chatty).unwrap();
        assert_eq!(done.end, End::OutputLimit);
        assert_eq!(done.stderr.bytes.len(), 100);
        assert!(done.stderr.total > 1 << 20);
    }
}

/// What is told must not hang on whether the end is seen before the last bytes are read.
#[test]
fn oversized_output_at_exit_is_over_limit() {
    let scratch = Scratch::new();
    for confined in BOTH {
        for _ in 0..10 {
            let mut chatty = spawn(&scratch, confined, "head -c 2048 /dev/zero");
            chatty.limits.runaway = ByteLimit(2047);
            assert_eq!(
                run(&scratch.sandbox(), chatty).unwrap().end,
                End::OutputLimit
            );
            let mut brief = spawn(&scratch, confined, "head -c 2048 /dev/zero");
            brief.limits.runaway = ByteLimit(2048);
            assert_eq!(run(&scratch.sandbox(), brief).unwrap().end, End::Exited(0));
        }
    }
}

#[test]
fn daemons_do_not_outlive_their_run() {
    let scratch = Scratch::new();
    for confined in BOTH {
        // Two that leave their session and lose their parent, one holding the pipes; one that ignores TERM.
        let mark = mark();
        let script = format!(
            "(setsid sh -c '(setsid sleep {mark} &) ; sleep {mark}' &) ; (setsid sleep {mark} >/dev/null 2>&1 </dev/null &); \
             (setsid sh -c 'trap \"\" TERM; sleep {mark}' &); sleep 0.2; echo leaving"
        );
        let start = Instant::now();
        let done = run(&scratch.sandbox(), spawn(&scratch, confined, &script)).unwrap();
        assert_eq!(
            (done.end, done.stdout.text().as_ref()),
            (End::Exited(0), "leaving\n")
        );
        assert!(
            start.elapsed() < Duration::from_secs(4),
            "{:?}",
            start.elapsed()
        );
        assert_eq!(processes_with(&mark), [""; 0], "confined: {confined}");
    }
}

#[test]
fn one_that_forks_without_end_is_ended() {
    let scratch = Scratch::new();
    for confined in BOTH {
        let mark = mark();
        let script = format!(
            "while :; do setsid sleep {mark} & n=$((n+1)); [ $n -lt 300 ] || sleep 0.05; done"
        );
        let mut bomb = spawn(&scratch, confined, &script);
        bomb.limits.wall = Duration::from_millis(500);
        bomb.limits.grace = Duration::from_millis(50);
        let done = run(&scratch.sandbox(), bomb).unwrap();
        assert_eq!(done.end, End::TimedOut);
        assert_eq!(processes_with(&mark), [""; 0], "confined: {confined}");
    }
}

#[test]
fn dropped_run_leaves_no_processes() {
    let scratch = Scratch::new();
    let sandbox = scratch.sandbox();
    sandbox.layers();
    for confined in BOTH {
        let mark = mark();
        let script = format!("trap '' TERM; (setsid sleep {mark} &); sleep {mark}");
        runtime().block_on(async {
            let run = sandbox.run(spawn(&scratch, confined, &script));
            let dropped = tokio::time::timeout(Duration::from_millis(700), run).await;
            assert!(dropped.is_err());
        });
        eventually("every process is gone", || processes_with(&mark).is_empty());
    }
}

#[test]
fn run_dropped_while_starting_leaves_nothing() {
    let scratch = Scratch::new();
    let sandbox = scratch.sandbox();
    sandbox.layers();
    let mark = mark();
    for (turn, confined) in (0..40).flat_map(|turn| BOTH.map(|confined| (turn, confined))) {
        let script = format!("sleep {mark}");
        runtime().block_on(async {
            let run = sandbox.run(spawn(&scratch, confined, &script));
            let _ = tokio::time::timeout(Duration::from_micros(turn * 300), run).await;
        });
    }
    eventually("every process is gone", || processes_with(&mark).is_empty());
}

#[test]
fn unrelated_children_of_this_process_are_untouched() {
    let scratch = Scratch::new();
    let mut other = std::process::Command::new("sleep")
        .arg("30")
        .spawn()
        .unwrap();
    assert_eq!(
        run(&scratch.sandbox(), scratch.script("(setsid sleep 5 &)"))
            .unwrap()
            .end,
        End::Exited(0)
    );
    assert!(other.try_wait().unwrap().is_none());
    other.kill().unwrap();
    other.wait().unwrap();
}

/// In a container the leader of our session may stand outside of our process namespace, where it has no
/// number. What a program leaves behind must be told from our own children all the same.
#[test]
fn session_without_local_number_is_handled() {
    if part().is_some() {
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
        let session = stat
            .rsplit(')')
            .next()
            .unwrap()
            .split_ascii_whitespace()
            .nth(3)
            .unwrap();
        assert_eq!(session, "0", "the session's leader is inside");
        assert_eq!(std::process::id(), 1, "there is a process around us");
        daemons_do_not_outlive_their_run();
        one_that_hangs_is_ended_in_time();
        unrelated_children_of_this_process_are_untouched();
        println!("all of it, without a session");
        return;
    }
    let mut part = std::process::Command::new("unshare");
    part.args(["--pid", "--fork", "--mount-proc"]);
    if !rustix::process::geteuid().is_root() {
        part.args(["--user", "--map-root-user"]);
    }
    part.arg(std::env::current_exe().unwrap());
    play(
        &mut part,
        "ends::session_without_local_number_is_handled",
        "inside",
    );
    let done = part.output().unwrap();
    let message =
        String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
    assert!(
        message.contains("all of it, without a session") && done.status.success(),
        "{message}"
    );
}
