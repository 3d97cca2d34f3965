//! Memory and processes of a program and of all it starts.

use std::time::Duration;

use crucible_sandbox::{
    Cap, Caps, Completed, Confinement, End, ResourceLevel, Sandbox, Spawn, Strength,
};

use crate::support::{Scratch, output, python, run};

/// Takes this many MiB of memory in each of so many processes at the same time, and tells that it had them.
const TAKE: &str = "import os, sys, time\n\
    def take(): return b'x' * (int(sys.argv[1]) << 20)\n\
    for _ in range(int(sys.argv[2]) - 1):\n\
    \x20   if os.fork() == 0:\n\
    \x20       kept = take(); time.sleep(1); os._exit(0)\n\
    kept = take(); time.sleep(1)\n\
    codes = [os.wait()[1] for _ in range(int(sys.argv[2]) - 1)]\n\
    print('had it' if not any(codes) else codes)\n";

fn taking(scratch: &Scratch, mib: u64, processes: u64) -> Spawn {
    let mut spawn = scratch.confined("");
    spawn.program = python();
    spawn.args = [
        "-I",
        "-S",
        "-c",
        TAKE,
        &mib.to_string(),
        &processes.to_string(),
    ]
    .map(Into::into)
    .to_vec();
    spawn
}

fn with_memory(scratch: &Scratch, mib: u64) -> Sandbox {
    scratch.sandbox().with_caps(Caps {
        memory: Cap::At(mib << 20),
        ..Caps::DEFAULT
    })
}

fn had_it(done: &Completed) -> bool {
    done.end == End::Exited(0) && done.stdout.text() == "had it\n"
}

#[test]
fn memory_of_one_process_is_bounded() {
    let scratch = Scratch::new();
    let done = run(&with_memory(&scratch, 200), taking(&scratch, 500, 1)).unwrap();
    assert!(!had_it(&done), "{done:?}");
    assert_ne!(done.receipt.resources, ResourceLevel::None);
    assert_eq!(
        done.ran_out_of_memory,
        done.receipt.resources == ResourceLevel::Cgroup,
        "{done:?}"
    );
    // What stays below the limit has it.
    let done = run(&with_memory(&scratch, 900), taking(&scratch, 500, 1)).unwrap();
    assert!(had_it(&done) && !done.ran_out_of_memory, "{done:?}");
    // A program that asks for less than the sandbox allows is held to less.
    let mut spawn = taking(&scratch, 500, 1);
    spawn.limits.resources.memory = Cap::At(200 << 20);
    assert!(!had_it(&run(&scratch.sandbox(), spawn).unwrap()));
}

#[test]
fn memory_of_all_processes_is_counted_together() {
    let scratch = Scratch::new();
    let done = run(&with_memory(&scratch, 500), taking(&scratch, 200, 4)).unwrap();
    match done.receipt.resources {
        ResourceLevel::Cgroup => assert!(!had_it(&done) && done.ran_out_of_memory, "{done:?}"),
        level => assert!(level == ResourceLevel::Rlimit && had_it(&done), "{done:?}"),
    }
    let done = run(&with_memory(&scratch, 1500), taking(&scratch, 200, 4)).unwrap();
    assert!(had_it(&done), "{done:?}");
}

#[test]
fn processes_are_bounded() {
    let scratch = Scratch::new();
    let script = "for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do sleep 1 & done 2>/dev/null; wait; echo all";
    let few = scratch.sandbox().with_caps(Caps {
        processes: Cap::At(12),
        ..Caps::DEFAULT
    });
    let done = run(&few, scratch.confined(script)).unwrap();
    assert_ne!(done.stdout.text(), "all\n", "{done:?}");
    assert_eq!(
        output(&scratch.sandbox(), scratch.confined(script)),
        "all\n"
    );
}

#[test]
fn without_walls_the_level_says_what_is_left() {
    let scratch = Scratch::new();
    let mut spawn = taking(&scratch, 500, 1);
    spawn.confinement = Confinement::Confined(crucible_sandbox::Profile {
        strength: Strength::Off,
        ..scratch.profile()
    });
    let done = run(&with_memory(&scratch, 200), spawn).unwrap();
    assert_eq!(
        had_it(&done),
        done.receipt.resources == ResourceLevel::None,
        "{done:?}"
    );
    assert_ne!(done.receipt.resources, ResourceLevel::Rlimit);
    // A trusted program is not bounded.
    let done = run(&with_memory(&scratch, 5), scratch.script("echo fine")).unwrap();
    assert_eq!(
        (done.end, done.receipt.resources),
        (End::Exited(0), ResourceLevel::None)
    );
}

#[test]
fn no_group_is_left() {
    let scratch = Scratch::new();
    let mine = format!("crucible-{}-", std::process::id());
    let groups = || {
        let mut open = vec![std::path::PathBuf::from("/sys/fs/cgroup")];
        let mut found = Vec::new();
        while let Some(at) = open.pop() {
            for entry in std::fs::read_dir(at).into_iter().flatten().flatten() {
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    if entry.file_name().to_string_lossy().starts_with(&mine) {
                        found.push(entry.path());
                    }
                    open.push(entry.path());
                }
            }
        }
        found
    };
    output(&scratch.sandbox(), scratch.confined("sleep 0.1 & echo x"));
    let mut spawn = scratch.confined("sleep 30 & sleep 30");
    spawn.limits.wall = Duration::from_millis(300);
    run(&scratch.sandbox(), spawn).unwrap();
    assert_eq!(groups(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn grace_period_and_kill_are_reported() {
    let scratch = Scratch::new();
    let mut polite = scratch.confined("sleep 30");
    polite.limits.wall = Duration::from_millis(300);
    polite.limits.grace = Duration::from_secs(4);
    let stopped = run(&scratch.sandbox(), polite).unwrap().stopped.unwrap();
    assert!(
        !stopped.was_killed && stopped.grace_ms == 4_000 && stopped.ended_after_ms < 4_000,
        "{stopped:?}"
    );
    let mut stubborn = scratch.confined("trap '' TERM; while :; do sleep 30; done");
    stubborn.limits.wall = Duration::from_millis(300);
    stubborn.limits.grace = Duration::from_millis(500);
    let stopped = run(&scratch.sandbox(), stubborn).unwrap().stopped.unwrap();
    assert!(
        stopped.was_killed && stopped.grace_ms == 500 && stopped.ended_after_ms >= 500,
        "{stopped:?}"
    );
    assert_eq!(
        run(&scratch.sandbox(), scratch.confined("true"))
            .unwrap()
            .stopped,
        None
    );
}
