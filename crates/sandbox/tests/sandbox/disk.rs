//! Programs that fill the disk.

use std::time::Duration;

use crucible_sandbox::{Cap, Completed, End, Sandbox, Spawn, Strength};

use crate::support::{Scratch, mark, output, processes_with, run};

const MIB: u64 = 1 << 20;

/// With every layer, with Landlock alone, and with none.
fn levels(scratch: &Scratch) -> [(Sandbox, Strength); 3] {
    [
        (scratch.sandbox(), Strength::Required),
        (scratch.without_bubblewrap(), Strength::BestEffort),
        (scratch.sandbox(), Strength::Off),
    ]
}

fn bounded(scratch: &Scratch, strength: Strength, script: &str, most: u64) -> Spawn {
    let mut spawn = scratch.confined_with(script, |profile| profile.strength = strength);
    spawn.limits.resources.disk = Cap::At(most);
    spawn
}

/// Ended for what it wrote, soon, and before it wrote much more than it may.
fn ended(scratch: &Scratch, done: &Completed) {
    assert_eq!(done.end, End::DiskLimit, "{}", done.stderr.text());
    assert!(
        done.duration < Duration::from_secs(15),
        "{:?}",
        done.duration
    );
    std::fs::remove_dir_all(&scratch.copy).unwrap();
    std::fs::create_dir(&scratch.copy).unwrap();
}

#[test]
fn endless_writer_is_ended_without_leftover_process() {
    let scratch = Scratch::new();
    for (sandbox, strength) in levels(&scratch) {
        let mark = mark();
        // Slow enough to leave the machine's disk alone, deaf to TERM, and with a helper that left its session.
        let script = format!(
            "trap '' TERM; (setsid sh -c 'trap \"\" TERM; sleep {mark}' &); \
             while :; do head -c 4000000 /dev/zero >> big; sleep 0.02; done"
        );
        let done = run(&sandbox, bounded(&scratch, strength, &script, 20 * MIB)).unwrap();
        ended(&scratch, &done);
        assert_eq!(processes_with(&mark), [""; 0], "{strength:?}");
    }
}

#[test]
fn many_small_files_count_too() {
    let scratch = Scratch::new();
    for (sandbox, strength) in levels(&scratch) {
        let script = "mkdir a; i=0; while :; do i=$((i+1)); : > a/$i; done";
        let done = run(&sandbox, bounded(&scratch, strength, script, 4 * MIB)).unwrap();
        ended(&scratch, &done);
    }
}

#[test]
fn deleted_open_files_count_toward_limit() {
    let scratch = Scratch::new();
    for (sandbox, strength) in levels(&scratch) {
        let script =
            "exec 3> big; rm big; while :; do head -c 4000000 /dev/zero >&3; sleep 0.02; done";
        let done = run(&sandbox, bounded(&scratch, strength, script, 20 * MIB)).unwrap();
        ended(&scratch, &done);
    }
}

/// Called for an ordinary user as well: the superuser can look into closed directories.
#[test]
pub(crate) fn what_cannot_be_counted_counts_all_the_same() {
    let scratch = Scratch::new();
    let name = "d".repeat(120);
    let deep = format!(
        "i=0; while [ $i -lt 60 ]; do mkdir {name} && cd {name} || exit 9; i=$((i+1)); done"
    );
    for hide in ["mkdir closed; cd closed; chmod 000 .", deep.as_str()] {
        let script = format!(
            "exec 4>&2; exec 3> big; {hide}\nwhile :; do head -c 4000000 /dev/zero; sleep 0.02; done > here 2>&4 \
             || while :; do head -c 4000000 /dev/zero >&3; sleep 0.02; done"
        );
        let script = script.replace(
            "exec 3> big; mkdir closed",
            "mkdir closed; exec 3> closed/big",
        );
        let mut spawn = bounded(&scratch, Strength::Required, &script, 20 * MIB);
        // Its `cd` does not mind a long path.
        spawn.program = "bash".into();
        let done = run(&scratch.sandbox(), spawn).unwrap();
        assert_eq!(done.end, End::DiskLimit, "{}", done.stderr.text());
        let mut open = std::process::Command::new("chmod");
        open.args(["-R", "u+rwX"])
            .arg(&scratch.copy)
            .status()
            .unwrap();
        let mut remove = std::process::Command::new("rm");
        assert!(
            remove
                .arg("-rf")
                .arg(&scratch.copy)
                .status()
                .unwrap()
                .success()
        );
        std::fs::create_dir(&scratch.copy).unwrap();
    }
}

#[test]
fn existing_files_do_not_count_toward_limit() {
    let scratch = Scratch::new();
    std::fs::write(scratch.copy.join("before"), vec![7; 30 << 20]).unwrap();
    for (sandbox, strength) in levels(&scratch) {
        // Long enough to be looked at.
        let script =
            "head -c 5000000 /dev/zero > new; ln before again; sleep 0.5; rm new again; echo done";
        assert_eq!(
            output(&sandbox, bounded(&scratch, strength, script, 20 * MIB)),
            "done\n"
        );
    }
}

#[test]
fn private_places_have_an_end() {
    let scratch = Scratch::new();
    let script = "for place in /tmp /var/tmp /dev/shm; do\n\
                    head -c 30000000 /dev/zero > $place/big 2>/dev/null && echo $place without end\n\
                    cat $place/big\n\
                  done | wc -c; (echo bad > /dev/new) 2>/dev/null && echo wrote; \
                  rm /dev/shm/big && echo fine > /dev/shm/x && cat /dev/shm/x && echo > /dev/null";
    let text = output(
        &scratch.sandbox(),
        bounded(&scratch, Strength::Required, script, 20 * MIB),
    );
    let (content, rest) = text.split_once('\n').unwrap();
    let used: u64 = content.trim().parse().unwrap();
    assert!((19 * MIB..=20 * MIB).contains(&used), "{used}");
    assert_eq!(rest, "fine\n");
}

/// An older bubblewrap cannot give a private place a size: it is used without, and the receipt says so.
#[test]
fn bubblewrap_without_size_option_is_used_without() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = Scratch::new();
    let sandbox = scratch.without_bubblewrap();
    let fake = scratch.dir.path().join("tools/bwrap");
    let real = std::env::split_paths(&crate::support::path())
        .map(|dir| dir.join("bwrap"))
        .find(|path| path.exists());
    let script = format!(
        "#!/bin/sh\nif tr '\\0' '\\n' < /proc/self/fd/$2 | grep -qx -- --size; then echo 'bwrap: Unknown option --size' >&2; exit 1; fi\n\
         exec {} \"$@\"\n",
        real.unwrap().display()
    );
    std::fs::write(&fake, script).unwrap();
    std::fs::set_permissions(&fake, PermissionsExt::from_mode(0o755)).unwrap();
    let done = run(&sandbox, scratch.confined("echo fine")).unwrap();
    assert_eq!(done.stdout.text(), "fine\n");
    let text = serde_json::to_string(&done.receipt).unwrap();
    assert!(text.contains("not of the private places"), "{text}");
    let text = serde_json::to_string(
        &run(&scratch.sandbox(), scratch.confined("true"))
            .unwrap()
            .receipt,
    );
    assert!(!text.unwrap().contains("not of the private places"));
}
