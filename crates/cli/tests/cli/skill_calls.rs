//! Raw system calls of a trusted skill: which its class may make, with which error the others fail, and which of them end it, as the
//! superuser and as an ordinary user.
//!
//! The table holds one call of each kind; `crucible-sandbox` tries the others, with the same isolation and users.
//!
//! Slow because each call of the table is one skill that is verified, promoted and run.

use serde_json::{Map, Value, json};

use crate::ordinary::{Who, hand_over, skills_for_everybody};
use crate::skill_trust::{Outcome, Skills, outcome_of};

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It comes back without an error.
    Works,
    /// It fails with this error.
    Fails(i32),
    /// It ends the skill, which is a denial.
    Ends,
}

use Fate::{Ends, Fails, Works};

/// What a kernel says that does not know the call.
const UNKNOWN: Fate = Fails(libc::ENOSYS);
const ALL_END: [Fate; 3] = [Ends; 3];
const UNKNOWN_TO_ALL: [Fate; 3] = [UNKNOWN; 3];
/// It is let through, and finds nothing at the place that is named.
const FILES_ALONE: [Fate; 3] = [Ends, Fails(libc::ENOENT), Ends];

/// A call's name, its number and arguments, and what becomes of it in a skill that computes (READ_ONLY, SECRET_READ), writes (FILE_WRITE, in
/// `notes/`) and connects (NETWORK).
type Row = (&'static str, libc::c_long, &'static str, [Fate; 3]);

/// Where a class may make a call, the arguments make it fail or harmless.
const CALLS: &[Row] = &[
    // Writing.
    (
        "open",
        libc::SYS_openat,
        "-100, b'notes/x', 0o101, 0o600",
        [Ends, Works, Ends],
    ),
    (
        "open-elsewhere",
        libc::SYS_openat,
        "-100, b'/etc/x', 0o101, 0o600",
        [Ends, Fails(libc::EROFS), Ends],
    ),
    (
        "open-own-memory",
        libc::SYS_openat,
        "-100, b'/proc/self/mem', 2, 0",
        [Ends, Fails(libc::EACCES), Ends],
    ),
    (
        "unlink",
        libc::SYS_unlinkat,
        "-100, b'notes/none', 0",
        FILES_ALONE,
    ),
    (
        "chmod",
        libc::SYS_fchmodat,
        "-100, b'notes/none', 0o600",
        FILES_ALONE,
    ),
    (
        "truncate",
        libc::SYS_truncate,
        "b'notes/none', 0",
        FILES_ALONE,
    ),
    (
        "mkdir",
        libc::SYS_mkdirat,
        "-100, b'notes', 0o700",
        [Ends, Fails(libc::EEXIST), Ends],
    ),
    (
        "mknod",
        libc::SYS_mknodat,
        "-100, b'notes/dev', 0o60600, 0x801",
        [Ends, Fails(libc::EACCES), Ends],
    ),
    (
        "memfd",
        libc::SYS_memfd_create,
        "b'x', 0",
        [Ends, Works, Ends],
    ),
    (
        "link",
        libc::SYS_linkat,
        "-100, b'notes/x', -100, b'notes/hard', 0",
        ALL_END,
    ),
    (
        "symlink",
        libc::SYS_symlinkat,
        "b'/etc', -100, b'notes/soft'",
        ALL_END,
    ),
    // Reaching others.
    ("tcp", libc::SYS_socket, "2, 1, 0", [Ends, Ends, Works]),
    (
        "raw-ip",
        libc::SYS_socket,
        "2, 3, 1",
        [Ends, Ends, Fails(libc::EPERM)],
    ),
    ("netlink", libc::SYS_socket, "16, 3, 0", [Ends, Ends, Works]),
    (
        "netlink-of-devices",
        libc::SYS_socket,
        "16, 3, 15",
        [Ends, Ends, UNKNOWN],
    ),
    ("local-socket", libc::SYS_socket, "1, 1, 0", UNKNOWN_TO_ALL),
    (
        "connect",
        libc::SYS_connect,
        "-1, 0, 0",
        [Ends, Ends, Fails(libc::EBADF)],
    ),
    ("listen", libc::SYS_listen, "-1, 1", ALL_END),
    // Starting, watching or ending others.
    ("clone", libc::SYS_clone, "17, 0, 0, 0, 0", ALL_END),
    ("execve", libc::SYS_execve, "b'/bin/true', 0, 0", ALL_END),
    (
        "ptrace",
        libc::SYS_ptrace,
        "16, os.getppid(), 0, 0",
        ALL_END,
    ),
    ("end-the-parent", libc::SYS_kill, "os.getppid(), 9", ALL_END),
    ("unshare", libc::SYS_unshare, "0x10000000", ALL_END),
    // What no class has.
    ("clone3", libc::SYS_clone3, "0, 0", UNKNOWN_TO_ALL),
    ("mount", libc::SYS_mount, "0, 0, 0, 0, 0", UNKNOWN_TO_ALL),
    ("chroot", libc::SYS_chroot, "b'/'", UNKNOWN_TO_ALL),
    ("setuid", libc::SYS_setuid, "0", UNKNOWN_TO_ALL),
    ("keyctl", libc::SYS_keyctl, "-1, 0, 0, 0, 0", UNKNOWN_TO_ALL),
    ("io_uring", libc::SYS_io_uring_setup, "1, 0", UNKNOWN_TO_ALL),
    (
        "open_by_handle",
        libc::SYS_open_by_handle_at,
        "-1, 0, 0",
        UNKNOWN_TO_ALL,
    ),
    ("bpf", libc::SYS_bpf, "0, 0, 0", UNKNOWN_TO_ALL),
    (
        "perf",
        libc::SYS_perf_event_open,
        "0, 0, -1, -1, 0",
        UNKNOWN_TO_ALL,
    ),
    ("userfaultfd", libc::SYS_userfaultfd, "0", UNKNOWN_TO_ALL),
];

/// The same by the calls that this architecture has besides.
#[cfg(target_arch = "x86_64")]
const CALLS_HERE: &[Row] = &[
    (
        "old-open",
        libc::SYS_open,
        "b'notes/none', 1, 0",
        FILES_ALONE,
    ),
    ("fork", libc::SYS_fork, "0", ALL_END),
    ("x32", 0x4000_0000 + libc::SYS_getpid, "0", UNKNOWN_TO_ALL),
];
#[cfg(not(target_arch = "x86_64"))]
const CALLS_HERE: &[Row] = &[];

/// A skill that makes the calls that its input names, one after the other, gives back their errors, and hides whatever it can.
fn body() -> String {
    let calls = CALLS.iter().chain(CALLS_HERE);
    let calls: String = calls
        .map(|(name, number, words, _)| format!("    '{name}': lambda: call({number}, {words}),\n"))
        .collect();
    format!(
        "\
import ctypes, os, signal
libc = ctypes.CDLL(None, use_errno=True)
signal.signal(signal.SIGSYS, signal.SIG_IGN)
def call(*words):
    ctypes.set_errno(0)
    return ctypes.get_errno() if libc.syscall(*words) == -1 else 0
calls = {{
{calls}}}
errors = {{}}
for name in inputs['text'].split():
    try:
        errors[name] = calls[name]()
    except BaseException:
        pass
return errors"
    )
}

fn made(skills: &Skills, who: &Who, calls: &str) -> Outcome {
    let input = json!({ "text": calls }).to_string();
    let call = skills.call(["skill", "run", "one", "--input", &input, "--json"]);
    outcome_of(who.calls(call.env("WEATHER_KEY", "correct-horse-battery")))
}

/// Each call has its fate in this class, whoever runs the skill; of those that end it these alone are tried, or all.
#[track_caller]
fn each_call_has_its_fate<const N: usize>(
    class: &str,
    grants: [&str; N],
    index: usize,
    alone: Option<&[&str]>,
) {
    let skills = skills_for_everybody();
    skills
        .fixture
        .user_config("[forge]\ndemote_after_failures = 0\n");
    std::fs::create_dir(skills.root().join("notes")).unwrap();
    skills.trusted("one", class, grants, &body());
    let (mut ends, others): (Vec<&Row>, Vec<&Row>) = CALLS
        .iter()
        .chain(CALLS_HERE)
        .partition(|(.., fates)| fates[index] == Ends);
    ends.retain(|(name, ..)| alone.is_none_or(|alone| alone.contains(name)));
    let error = |fate: Fate| if let Fails(error) = fate { error } else { 0 };
    let expected: Map<String, Value> = others
        .iter()
        .map(|(name, .., fates)| ((*name).to_owned(), json!(error(fates[index]))))
        .collect();
    let ends: Vec<&str> = ends.iter().map(|(name, ..)| *name).collect();
    calls_end_as_they_should(&skills, &Who::Tester, &ends, &expected);
    calls_end_as_they_should(&skills, &hand_over(&skills), &ends, &expected);
    let root = skills.root();
    for text in ["notes/dev", "notes/soft", "notes/hard"] {
        assert!(root.join(text).symlink_metadata().is_err(), "{text}");
    }
    assert!(!std::path::Path::new("/etc/x").exists());
}

#[track_caller]
fn calls_end_as_they_should(
    skills: &Skills,
    who: &Who,
    ends: &[&str],
    errors: &Map<String, Value>,
) {
    let others: Vec<&str> = errors.keys().map(String::as_str).collect();
    let ran = made(skills, who, &others.join(" "));
    assert_eq!(
        ran.document["result"],
        json!(errors),
        "{}: {ran:#?}",
        who.name()
    );
    let went_on: Vec<_> = ends
        .iter()
        .map(|name| (name, made(skills, who, name)))
        .filter(|(_, ran)| {
            (ran.code, ran.word(), ran.codes().as_slice())
                != (Some(1), "DENIED", &["forge-run-denied"])
        })
        .collect();
    assert!(went_on.is_empty(), "{}: {went_on:#?}", who.name());
}

#[test]
fn read_only_skill_cannot_write_connect_or_spawn() {
    each_call_has_its_fate("READ_ONLY", [], 0, None);
}

#[test]
fn secret_read_skill_is_limited_like_read_only() {
    each_call_has_its_fate(
        "SECRET_READ",
        ["--allow-secret", "WEATHER_KEY"],
        0,
        Some(&["open", "tcp", "execve"]),
    );
}

#[test]
fn file_write_skill_cannot_connect_or_spawn() {
    each_call_has_its_fate("FILE_WRITE", ["--allow-write", "notes/"], 1, None);
}

#[test]
fn network_skill_cannot_write_or_spawn() {
    each_call_has_its_fate("NETWORK", ["--allow-host", "api.example.invalid"], 2, None);
}
