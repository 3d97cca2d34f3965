//! A supervising process that is killed without a chance to clean up: nothing that it started is left.
//!
//! Each test starts a copy of this test program as the supervisor, and becomes the parent of every orphan. So it sees
//! each process that is left, whatever its name and its session.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

use crucible_host::env::Environment;
use crucible_host::process::ProcessStat;
use crucible_sandbox::Sandbox;

use crate::support::{Scratch, eventually, launcher, mark, part, path, play, processes_with, run};

/// Leaves a process in another session, and goes on.
const DAEMON: &str = "(setsid sleep 600 &); sleep 600";

/// Starts the supervisor: a copy of this program in the test `name`.
fn supervisor(scratch: &Scratch, name: &str, argument: &str) -> Child {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    play(&mut command, name, argument);
    command
        .env("CRUCIBLE_TEST_SCRATCH", scratch.dir.path())
        .env("CRUCIBLE_TEST_LAUNCHER", launcher().program);
    command.spawn().unwrap()
}

/// Kills the supervisor, and waits until no process of it is left.
fn kill(mut supervisor: Child) {
    supervisor.kill().unwrap();
    supervisor.wait().unwrap();
    eventually("every process is gone", || living_children().is_empty());
}

/// The children of this process that have not ended.
fn living_children() -> Vec<i32> {
    let own = i32::try_from(std::process::id()).unwrap();
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| {
        ProcessStat::read(*pid).is_some_and(|stat| stat.parent == own && !stat.has_ended())
    })
    .collect()
}

/// Plays the supervisor of a program, until it is killed.
fn supervise(sandbox: &Sandbox, scratch: &Scratch, kind: &str, script: &str) {
    let spawn = match kind {
        "confined" => scratch.confined(script),
        _ => scratch.script(script),
    };
    // It is interrupted, unless it fails; then the parent sees nothing run.
    let _failed = run(sandbox, spawn);
}

/// Kills the supervisor at these times after its start, in microseconds.
fn kill_at(name: &str, times: impl Iterator<Item = u64>) {
    if let Some(kind) = part() {
        let scratch = Scratch::new();
        supervise(&scratch.sandbox(), &scratch, &kind, DAEMON);
        return;
    }
    let scratch = Scratch::new();
    for time in times {
        for kind in ["confined", "trusted"] {
            let supervisor = supervisor(&scratch, name, kind);
            std::thread::sleep(Duration::from_micros(time));
            kill(supervisor);
        }
    }
}

/// From before the first process to when the program runs.
#[test]
fn no_process_survives_kill_at_any_time() {
    let times = (0..15).map(|turn| turn * 4_000);
    kill_at("killed::no_process_survives_kill_at_any_time", times);
}

/// As bubblewrap between its `clone` and the end of its preparation: the outer process dies with the supervisor, and
/// the inner one waits for a word of it.
#[test]
fn waiting_child_of_bubblewrap_does_not_survive() {
    if let Some(mark) = part() {
        let scratch = Scratch::new();
        let bin = scratch.dir.path().join("bin");
        std::fs::create_dir(&bin).unwrap();
        let bubblewrap = bin.join("bwrap");
        std::fs::write(&bubblewrap, format!("#!/bin/sh\nsleep {mark} & wait\n")).unwrap();
        std::fs::set_permissions(&bubblewrap, PermissionsExt::from_mode(0o755)).unwrap();
        let search =
            std::env::join_paths(std::iter::once(bin).chain(std::env::split_paths(&path())));
        let env = [
            ("PATH", search.unwrap()),
            ("HOME", scratch.home.clone().into()),
        ];
        let env = Environment::from_pairs(env, Path::new("/"));
        let sandbox = Sandbox::new(Some(launcher()), &env);
        supervise(&sandbox, &scratch, "confined", "true");
        return;
    }
    let (scratch, mark) = (Scratch::new(), mark());
    let name = "killed::waiting_child_of_bubblewrap_does_not_survive";
    let supervisor = supervisor(&scratch, name, &mark);
    let waits = || !processes_with(&format!("sleep {mark}")).is_empty();
    eventually("the child waits", waits);
    kill(supervisor);
}

/// git removes its lock files then.
#[test]
fn trusted_program_gets_term_first() {
    const SCRIPT: &str =
        "trap 'sleep 0.3; touch cleaned; exit' TERM; touch began; sleep 600 & wait";
    if let Some(directory) = part() {
        let mut scratch = Scratch::new();
        scratch.copy = directory.into();
        supervise(&scratch.sandbox(), &scratch, "trusted", SCRIPT);
        return;
    }
    let scratch = Scratch::new();
    let directory = scratch.copy.to_str().unwrap();
    let name = "killed::trusted_program_gets_term_first";
    let supervisor = supervisor(&scratch, name, directory);
    eventually("it runs", || scratch.copy.join("began").exists());
    kill(supervisor);
    assert!(scratch.copy.join("cleaned").exists());
}

mod slow {
    use super::*;

    /// It takes the grace period.
    #[test]
    fn trusted_program_ignoring_term_does_not_survive() {
        const SCRIPT: &str =
            "trap '' TERM; (setsid sleep 600 &); touch began; sleep 600; sleep 600";
        if let Some(directory) = part() {
            let mut scratch = Scratch::new();
            scratch.copy = directory.into();
            supervise(&scratch.sandbox(), &scratch, "trusted", SCRIPT);
            return;
        }
        let scratch = Scratch::new();
        let directory = scratch.copy.to_str().unwrap();
        let name = "killed::slow::trusted_program_ignoring_term_does_not_survive";
        let supervisor = supervisor(&scratch, name, directory);
        eventually("it runs", || scratch.copy.join("began").exists());
        kill(supervisor);
    }
}

mod exhaustive {
    #[test]
    fn no_process_survives_kill_at_many_times() {
        let times = (0..500).map(|turn| turn * 7_919 % 60_000);
        super::kill_at(
            "killed::exhaustive::no_process_survives_kill_at_many_times",
            times,
        );
    }
}
