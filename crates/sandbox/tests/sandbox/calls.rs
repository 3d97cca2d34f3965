//! System calls by class: each class is tried with what it may do, what fails, and what ends the program.
//!
//! Slow because each call is one start of Python in a sandbox of its own.

use crucible_sandbox::{Completed, End, IsolationLevel, Layer, Network, Strength, SyscallClass};

use crate::confined::{AS_ORDINARY_USER, as_an_ordinary_user};
use crate::support::{Scratch, part, run};

/// What becomes of a try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It works.
    Works,
    /// It fails with an error that the program sees.
    Fails,
    /// It ends the program.
    Ends,
}

use Fate::{Ends, Fails, Works};

const EVERYWHERE: [Fate; 3] = [Works; 3];
const FILES_ONLY: [Fate; 3] = [Ends, Works, Ends];
const CONNECT_ONLY: [Fate; 3] = [Ends, Ends, Works];
const NOWHERE: [Fate; 3] = [Ends; 3];

/// What is tried in Python, and its fate in the classes compute, files and connect.
const TRIES: &[(&str, [Fate; 3])] = &[
    ("print(sum(x * x for x in range(100000)))", EVERYWHERE),
    (
        "import json, re, datetime, decimal, random, uuid, hashlib, ctypes, sqlite3, zlib, csv, string, statistics, \
         tempfile, email, urllib.parse, xml.etree.ElementTree, unicodedata, zoneinfo, logging, dataclasses, inspect\n\
         random.random(); uuid.uuid4(); hashlib.sha256(b'x').hexdigest(); sqlite3.connect(':memory:').execute('select 1')",
        EVERYWHERE,
    ),
    (
        "from concurrent.futures import ThreadPoolExecutor\n\
         with ThreadPoolExecutor(8) as pool: assert list(pool.map(str, range(100)))[99] == '99'",
        EVERYWHERE,
    ),
    (
        "import os; open('/etc/passwd').read(); os.listdir('.'); os.stat('kept'); os.getcwd(); os.walk('/')",
        EVERYWHERE,
    ),
    (
        "import pwd, os; pwd.getpwuid(0); os.path.expanduser('~')",
        EVERYWHERE,
    ),
    (
        "import os, signal; os.kill(os.getpid(), 0); signal.signal(10, lambda *a: None); signal.raise_signal(10)",
        EVERYWHERE,
    ),
    (
        "import subprocess, time, resource; time.sleep(0.001); resource.getrlimit(resource.RLIMIT_AS)",
        EVERYWHERE,
    ),
    (
        "import os; r, w = os.pipe(); os.write(w, b'x'); assert os.read(r, 1) == b'x'",
        EVERYWHERE,
    ),
    ("open('new', 'w').write('x')", FILES_ONLY),
    ("open('kept', 'a').write('x')", FILES_ONLY),
    ("open('kept', 'r+')", FILES_ONLY),
    ("open('/dev/null', 'w')", FILES_ONLY),
    (
        "import os; os.open('.', os.O_TMPFILE | os.O_RDWR)",
        FILES_ONLY,
    ),
    ("import os; os.open('made', os.O_CREAT)", FILES_ONLY),
    (
        "import os; os.open('kept', os.O_RDONLY | os.O_TRUNC)",
        FILES_ONLY,
    ),
    ("import os; os.mkdir('d')", FILES_ONLY),
    ("import os; os.rename('kept', 'moved')", FILES_ONLY),
    ("import os; os.link('kept', 'hard')", NOWHERE),
    ("import os; os.symlink('kept', 'soft')", NOWHERE),
    ("import os; os.unlink('kept')", FILES_ONLY),
    ("import os; os.truncate('kept', 0)", FILES_ONLY),
    ("import os; os.chmod('kept', 0o600)", FILES_ONLY),
    ("import os; os.chown('kept', -1, -1)", FILES_ONLY),
    ("import os; os.utime('kept')", FILES_ONLY),
    ("import os; os.mkfifo('fifo')", FILES_ONLY),
    (
        "import os; os.mknod('dev', 0o60600, os.makedev(8, 0))",
        [Ends, Fails, Ends],
    ),
    ("import os; os.memfd_create('x')", FILES_ONLY),
    (
        "import os; fd = os.memfd_create('x'); os.execv(f'/proc/self/fd/{fd}', ['x'])",
        NOWHERE,
    ),
    ("open('/proc/self/mem', 'r+b')", [Ends, Fails, Ends]),
    (
        "import shutil, tarfile; shutil.copy('kept', 'copy'); tarfile.open('t.tar', 'w').add('copy')",
        FILES_ONLY,
    ),
    (
        "import tempfile; tempfile.TemporaryFile().write(b'x')",
        FILES_ONLY,
    ),
    ("import multiprocessing; multiprocessing.Lock()", NOWHERE),
    ("import socket; socket.socket()", CONNECT_ONLY),
    (
        "import socket; socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)",
        CONNECT_ONLY,
    ),
    ("import socket; socket.socketpair()", CONNECT_ONLY),
    (
        "import asyncio; asyncio.run(asyncio.sleep(0))",
        CONNECT_ONLY,
    ),
    ("import socket; socket.socket(socket.AF_UNIX)", [Fails; 3]),
    (
        "import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
        [Ends, Ends, Fails],
    ),
    (
        "import socket; socket.socket().bind(('127.0.0.1', 0))",
        CONNECT_ONLY,
    ),
    (
        "import socket; socket.socket().connect(('192.0.2.1', 443))",
        [Ends, Ends, Fails],
    ),
    (
        "import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)",
        CONNECT_ONLY,
    ),
    (
        "import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 15)",
        [Ends, Ends, Fails],
    ),
    (
        "import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
        NOWHERE,
    ),
    ("import socket; socket.socket(40)", NOWHERE),
    (
        "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen()",
        NOWHERE,
    ),
    ("import os; os.fork()", NOWHERE),
    (
        "import os; os.posix_spawn('/bin/true', ['true'], {})",
        NOWHERE,
    ),
    ("import os; os.execv('/bin/true', ['true'])", NOWHERE),
    (
        "import os; os.execv('/proc/self/exe', ['python3', '-c', ''])",
        NOWHERE,
    ),
    ("import subprocess; subprocess.run(['true'])", NOWHERE),
    ("import os; os.system('true')", NOWHERE),
    (
        "import multiprocessing as m; m.get_context('fork').Process(target=print).start()",
        NOWHERE,
    ),
    ("import os; os.kill(os.getppid(), 0)", NOWHERE),
    ("import os; os.kill(-1, 9)", NOWHERE),
    ("import os; os.kill(0, 0)", NOWHERE),
    (
        "import os, resource; resource.prlimit(os.getppid(), resource.RLIMIT_CORE)",
        [Fails; 3],
    ),
    (
        "import fcntl; fcntl.fcntl(0, fcntl.F_SETOWN, 1)",
        [Fails; 3],
    ),
    (
        "import fcntl; fcntl.flock(open('kept'), fcntl.LOCK_SH)",
        [Fails, Works, Fails],
    ),
    // No handler and no `except` outlives it, in no thread.
    (
        "import signal\nfor n in (31, 11): signal.signal(n, signal.SIG_IGN)\ntry: open('new', 'w')\nexcept BaseException: pass",
        FILES_ONLY,
    ),
    (
        "import os, threading\nt = threading.Thread(target=os.fork); t.start(); t.join()",
        NOWHERE,
    ),
];

/// How a script makes system calls by their numbers.
const RAW: &str = "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n";

/// System calls by their numbers that end a program of every class, with arguments that would do nothing.
const RAW_ENDS: &[(libc::c_long, &str)] = &[
    (libc::SYS_clone, "17, 0, 0, 0, 0"),
    (libc::SYS_execve, "b'/bin/true', 0, 0"),
    (libc::SYS_execve, "0, 0, 0"),
    (libc::SYS_execveat, "-1, b'/bin/true', 0, 0, 0"),
    (libc::SYS_ptrace, "0, 0, 0, 0"),
    (libc::SYS_process_vm_readv, "1, 0, 0, 0, 0, 0"),
    (libc::SYS_process_vm_writev, "1, 0, 0, 0, 0, 0"),
    (libc::SYS_pidfd_send_signal, "-1, 9, 0, 0"),
    (libc::SYS_pidfd_getfd, "-1, 0, 0"),
    (libc::SYS_tgkill, "1, 1, 0"),
    (libc::SYS_rt_sigqueueinfo, "1, 0, 0"),
    (libc::SYS_rt_tgsigqueueinfo, "1, 1, 0, 0"),
    (libc::SYS_unshare, "0"),
    (libc::SYS_setns, "-1, 0"),
    (libc::SYS_linkat, "-100, b'kept', -100, b'hard', 0"),
    (libc::SYS_symlinkat, "b'kept', -100, b'soft'"),
    (libc::SYS_listen, "-1, 1"),
    (libc::SYS_accept, "-1, 0, 0"),
    (libc::SYS_accept4, "-1, 0, 0, 0"),
];

/// The same for this architecture's own calls.
#[cfg(target_arch = "x86_64")]
const RAW_ENDS_HERE: &[(libc::c_long, &str)] = &[(libc::SYS_fork, "0"), (libc::SYS_vfork, "0")];
#[cfg(not(target_arch = "x86_64"))]
const RAW_ENDS_HERE: &[(libc::c_long, &str)] = &[];

/// System calls by their numbers that only who writes files may make: there they find nothing at the place that they name.
const RAW_WRITES: &[(libc::c_long, &str)] = &[
    (libc::SYS_openat, "-100, b'none', 1, 0"),
    (libc::SYS_openat, "-100, b'none', 0o2001, 0"),
    (libc::SYS_unlinkat, "-100, b'none', 0"),
    (libc::SYS_renameat2, "-100, b'none', -100, b'other', 0"),
    (libc::SYS_fchmodat, "-100, b'none', 0o600"),
    (libc::SYS_fchownat, "-100, b'none', 0, 0, 0"),
    (libc::SYS_utimensat, "-100, b'none', 0, 0"),
    (libc::SYS_truncate, "b'none', 0"),
    (libc::SYS_setxattr, "b'none', b'user.x', b'x', 1, 0"),
    (libc::SYS_removexattr, "b'none', b'user.x'"),
    (libc::SYS_mkdirat, "-100, b'none/x', 0o700"),
    (libc::SYS_mknodat, "-100, b'none/x', 0o100600, 0"),
];

/// The same for this architecture's own calls.
#[cfg(target_arch = "x86_64")]
const RAW_WRITES_HERE: &[(libc::c_long, &str)] = &[
    (libc::SYS_open, "b'none', 1, 0"),
    (libc::SYS_creat, "b'none/x', 0o600"),
    (libc::SYS_unlink, "b'none'"),
    (libc::SYS_rmdir, "b'none'"),
    (libc::SYS_rename, "b'none', b'other'"),
    (libc::SYS_mkdir, "b'none/x', 0o700"),
    (libc::SYS_mknod, "b'none/x', 0o100600, 0"),
    (libc::SYS_chmod, "b'none', 0o600"),
    (libc::SYS_chown, "b'none', 0, 0"),
    (libc::SYS_utimes, "b'none', 0"),
];
#[cfg(not(target_arch = "x86_64"))]
const RAW_WRITES_HERE: &[(libc::c_long, &str)] = &[];

/// System calls by their numbers that no class has: they fail with ENOSYS, as on a kernel that does not know them, whoever calls and
/// whatever the arguments. These would do nothing.
const RAW_UNKNOWN: &[(libc::c_long, &str)] = &[
    // Ways around a filter that looks at flags, and around paths.
    (libc::SYS_clone3, "0, 0"),
    (libc::SYS_openat2, "-100, 0, 0, 0"),
    (libc::SYS_open_by_handle_at, "-1, 0, 0"),
    (libc::SYS_name_to_handle_at, "-1, 0, 0, 0, 0"),
    (libc::SYS_io_uring_setup, "0, 0"),
    (libc::SYS_io_uring_enter, "-1, 0, 0, 0, 0, 0"),
    (libc::SYS_io_uring_register, "-1, 0, 0, 0"),
    (libc::SYS_io_setup, "0, 0"),
    (libc::SYS_seccomp, "0, 0, 0"),
    (libc::SYS_landlock_create_ruleset, "0, 0, 1"),
    (libc::SYS_personality, "-1"),
    // Mounts and namespaces.
    (libc::SYS_mount, "0, 0, 0, 0, 0"),
    (libc::SYS_umount2, "0, 0"),
    (libc::SYS_pivot_root, "0, 0"),
    (libc::SYS_chroot, "0"),
    (libc::SYS_open_tree, "-1, 0, 0"),
    (libc::SYS_move_mount, "-1, 0, -1, 0, 0"),
    (libc::SYS_fsopen, "0, 0"),
    (libc::SYS_mount_setattr, "-1, 0, 0, 0, 0"),
    // Becoming somebody else.
    (libc::SYS_setuid, "0"),
    (libc::SYS_setgid, "0"),
    (libc::SYS_setresuid, "-1, -1, -1"),
    (libc::SYS_setresgid, "-1, -1, -1"),
    (libc::SYS_setgroups, "-1, 0"),
    (libc::SYS_setfsuid, "-1"),
    (libc::SYS_capset, "0, 0"),
    // Other processes, and what they share.
    (libc::SYS_tkill, "1, 0"),
    (libc::SYS_pidfd_open, "1, 0"),
    (libc::SYS_kcmp, "1, 1, 99, 0, 0"),
    (libc::SYS_process_madvise, "-1, 0, 0, 0, 0"),
    (libc::SYS_setpriority, "0, 1, 0"),
    (libc::SYS_sched_setscheduler, "1, -1, 0"),
    (libc::SYS_setsid, "0"),
    (libc::SYS_shmget, "0, 4096, 0o1600"),
    (libc::SYS_msgget, "0, 0"),
    (libc::SYS_semget, "0, 0, 0"),
    (libc::SYS_mq_open, "0, 0, 0, 0"),
    // The kernel, its keys and its counters.
    (libc::SYS_bpf, "0, 0, 0"),
    (libc::SYS_perf_event_open, "0, 0, -1, -1, 0"),
    (libc::SYS_userfaultfd, "-1"),
    (libc::SYS_memfd_secret, "-1"),
    (libc::SYS_keyctl, "-1, 0, 0, 0, 0"),
    (libc::SYS_add_key, "0, 0, 0, 0, 0"),
    (libc::SYS_request_key, "0, 0, 0, 0"),
    (libc::SYS_syslog, "-1, 0, 0"),
    (libc::SYS_init_module, "0, 0, 0"),
    (libc::SYS_finit_module, "-1, 0, 0"),
    (libc::SYS_kexec_load, "0, 0, 0, -1"),
    (libc::SYS_reboot, "0, 0, 0, 0"),
    (libc::SYS_swapon, "0, 0"),
    (libc::SYS_sethostname, "0, -1"),
    (libc::SYS_clock_settime, "-1, 0"),
    (libc::SYS_quotactl, "-1, 0, 0, 0"),
    (libc::SYS_fanotify_init, "-1, 0"),
    (libc::SYS_inotify_init1, "-1"),
    // A number that no kernel knows yet.
    (4000, "0"),
];

/// The same for this architecture's own calls.
#[cfg(target_arch = "x86_64")]
const RAW_UNKNOWN_HERE: &[(libc::c_long, &str)] = &[
    (libc::SYS_iopl, "0"),
    (libc::SYS_modify_ldt, "-1, 0, 0"),
    (libc::SYS_uselib, "0"),
    // `getpid` of the x32 variant.
    (0x4000_0000 + libc::SYS_getpid, "0"),
];
#[cfg(not(target_arch = "x86_64"))]
const RAW_UNKNOWN_HERE: &[(libc::c_long, &str)] = &[];

const CLASSES: [SyscallClass; 3] = [
    SyscallClass::Compute,
    SyscallClass::Files,
    SyscallClass::Connect,
];

fn tried(script: &str, calls: SyscallClass) -> Completed {
    let scratch = Scratch::new();
    std::fs::write(scratch.copy.join("kept"), "as it was").unwrap();
    let script = format!(
        "import sys\ntry:\n{}\nexcept OSError as error:\n    print('failed', error); sys.exit(3)\nprint('went on')",
        script
            .lines()
            .map(|line| format!("    {line}\n"))
            .collect::<String>()
    );
    run(
        &scratch.sandbox(),
        scratch.python(&script, |profile| profile.calls = calls),
    )
    .unwrap()
}

fn check(script: &str, calls: SyscallClass, fate: Fate) {
    let done = tried(script, calls);
    let said = (done.stdout.text(), done.stderr.text());
    let expected = match fate {
        Works => End::Exited(0),
        Fails => End::Exited(3),
        Ends => End::Forbidden,
    };
    assert_eq!(done.end, expected, "{calls:?}: {script}\n{said:?}");
    assert_eq!(
        said.0.contains("went on"),
        fate == Works,
        "{calls:?}: {script}\n{said:?}"
    );
}

fn check_class(index: usize) {
    for (script, fates) in TRIES {
        check(script, CLASSES[index], fates[index]);
    }
    let class = CLASSES[index];
    for (number, arguments) in RAW_ENDS.iter().chain(RAW_ENDS_HERE) {
        check(
            &format!("{RAW}libc.syscall({number}, {arguments})"),
            class,
            Ends,
        );
    }
    all_fail(
        class,
        RAW_UNKNOWN.iter().chain(RAW_UNKNOWN_HERE),
        libc::ENOSYS,
    );
    let writes = RAW_WRITES.iter().chain(RAW_WRITES_HERE);
    if class == SyscallClass::Files {
        all_fail(class, writes, libc::ENOENT);
    } else {
        for (number, arguments) in writes {
            check(
                &format!("{RAW}libc.syscall({number}, {arguments})"),
                class,
                Ends,
            );
        }
    }
}

/// Each of these calls fails with this error, and the program goes on.
fn all_fail<'a>(
    class: SyscallClass,
    calls: impl Iterator<Item = &'a (libc::c_long, &'a str)>,
    error: i32,
) {
    let calls: String = calls
        .map(|(number, arguments)| {
            format!(
                "ctypes.set_errno(0)\nmade = libc.syscall({number}, {arguments})\n\
                 if (made, ctypes.get_errno()) != (-1, {error}): print({number}, made, ctypes.get_errno())\n"
            )
        })
        .collect();
    let done = tried(&format!("{RAW}{calls}"), class);
    let said = (done.end, done.stdout.text());
    assert_eq!(
        said,
        (End::Exited(0), "went on\n".into()),
        "{class:?}: {}",
        done.stderr.text()
    );
}

#[test]
fn a_computation_changes_reaches_and_starts_nothing() {
    check_class(0);
}

#[test]
fn file_write_profile_blocks_network_and_processes() {
    check_class(1);
}

#[test]
fn network_profile_blocks_writes_and_processes() {
    check_class(2);
}

#[test]
fn tools_class_allows_all_classes_and_spawning() {
    let script = "import os, socket, subprocess\nopen('new', 'w'); socket.socket(); subprocess.run(['true'], check=True)\n\
        if os.fork() == 0: os._exit(0)\nos.wait()";
    assert_eq!(tried(script, SyscallClass::Tools).end, End::Exited(0));
    // A code of its own is not evidence there.
    assert_eq!(
        tried("import os; os._exit(159)", SyscallClass::Tools).end,
        End::Exited(159)
    );
}

#[test]
fn class_restricts_programs_other_than_python() {
    let scratch = Scratch::new();
    let with = |program: &str, args: &[&str]| {
        let mut spawn = scratch.confined_with("", |profile| profile.calls = SyscallClass::Compute);
        spawn.program = program.into();
        spawn.args = args.iter().map(Into::into).collect();
        run(&scratch.sandbox(), spawn).unwrap()
    };
    let read = with("cat", &["/etc/hostname", "/dev/null"]);
    assert_eq!(read.end, End::Exited(0), "{}", read.stderr.text());
    assert_eq!(with("sh", &["-c", "echo fine"]).stdout.text(), "fine\n");
    assert_eq!(
        with("sh", &["-c", "cat /etc/hostname; echo on"]).end,
        End::Forbidden
    );
    assert_eq!(
        with("sh", &["-c", "exec cat /etc/hostname"]).end,
        End::Forbidden
    );
    assert_eq!(with("touch", &["new"]).end, End::Forbidden);
    assert!(!scratch.copy.join("new").exists());
    // A script whose first line names its interpreter is started by the same single call.
    let script = scratch.copy.join("script");
    std::fs::write(&script, "#!/bin/sh\necho \"$0 $1\"\n").unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let message = with(script.to_str().unwrap(), &["word"])
        .stdout
        .text()
        .into_owned();
    assert_eq!(message, format!("{} word\n", script.display()));
}

#[test]
fn unstartable_program_is_reported_in_every_class() {
    let scratch = Scratch::new();
    let broken = scratch.copy.join("broken");
    std::fs::write(&broken, "#!/no/such/interpreter\n").unwrap();
    std::fs::set_permissions(&broken, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    for calls in CLASSES {
        let mut spawn = scratch.confined_with("", |profile| profile.calls = calls);
        spawn.program.clone_from(&broken);
        let error = run(&scratch.sandbox(), spawn).unwrap_err().to_string();
        assert!(
            error.contains("could not be started: No such file"),
            "{calls:?}: {error}"
        );
    }
}

#[test]
fn program_starts_with_normal_arguments_and_signals() {
    let scratch = Scratch::new();
    let script = "import os, sys\nprint(sys.argv[1:], sorted(os.environ.items()), os.listdir('/proc/self/fd'))";
    for calls in [SyscallClass::Tools, SyscallClass::Compute] {
        let mut spawn = scratch.python(script, |profile| profile.calls = calls);
        spawn
            .args
            .extend(["", "two words", "\u{e4}"].map(Into::into));
        spawn.env = vec![("A".into(), "".into()), ("LC_ALL".into(), "C.UTF-8".into())];
        let done = run(&scratch.sandbox(), spawn).unwrap();
        let text = done.stdout.text();
        // The fourth descriptor is the one by which it looks.
        let expected =
            "['', 'two words', '\u{e4}'] [('A', ''), ('LC_ALL', 'C.UTF-8')] ['0', '1', '2', '3']\n";
        assert_eq!(text, expected, "{}", done.stderr.text());
        if calls != SyscallClass::Tools {
            // It is started the same way, and reads nothing of its own status.
            continue;
        }
        let mut signals = scratch.confined_with("", |profile| profile.calls = calls);
        (signals.program, signals.args) = (
            "grep".into(),
            ["-E", "^Sig(Blk|Ign):", "/proc/self/status"]
                .map(Into::into)
                .to_vec(),
        );
        let message = run(&scratch.sandbox(), signals)
            .unwrap()
            .stdout
            .text()
            .into_owned();
        let masks: Vec<_> = message
            .lines()
            .map(|line| u64::from_str_radix(&line[8..], 16).unwrap())
            .collect();
        let pipe = 1 << (libc::SIGPIPE - 1);
        assert_eq!(
            (masks.len(), masks[0], masks[1] & pipe),
            (2, 0, 0),
            "{message}"
        );
    }
    let mut bare = scratch.confined_with("", |profile| profile.calls = SyscallClass::Compute);
    (bare.program, bare.args, bare.env) = ("/usr/bin/env".into(), Vec::new(), Vec::new());
    let done = run(&scratch.sandbox(), bare).unwrap();
    assert_eq!((done.end, done.stdout.total), (End::Exited(0), 0));
}

#[test]
fn without_namespaces_the_class_holds_as_well() {
    let scratch = Scratch::new();
    let sandbox = scratch.without_bubblewrap();
    let end = |script: &str, calls: SyscallClass| {
        let spawn = scratch.python(script, |profile| {
            (profile.calls, profile.strength) = (calls, Strength::BestEffort);
        });
        run(&sandbox, spawn).unwrap().end
    };
    assert_eq!(end("print(1)", SyscallClass::Compute), End::Exited(0));
    assert_eq!(
        end("open('new', 'w')", SyscallClass::Compute),
        End::Forbidden
    );
    assert_eq!(end("open('new', 'w')", SyscallClass::Files), End::Exited(0));
    assert_eq!(
        end("import os; os.kill(os.getppid(), 0)", SyscallClass::Files),
        End::Forbidden
    );
    assert_eq!(
        end("import os; os.fork()", SyscallClass::Connect),
        End::Forbidden
    );
}

#[test]
fn receipt_names_class_unless_sandbox_is_off() {
    let scratch = Scratch::new();
    let spawn = |strength| {
        scratch.python("open('new', 'w')", |profile| {
            (profile.calls, profile.strength) = (SyscallClass::Compute, strength)
        })
    };
    let done = run(&scratch.sandbox(), spawn(Strength::Required)).unwrap();
    assert_eq!(
        (done.end, done.receipt.level, &done.receipt.network),
        (End::Forbidden, IsolationLevel::Full, &Network::None)
    );
    let seccomp = done
        .receipt
        .reached
        .iter()
        .find(|found| found.layer == Layer::Seccomp)
        .unwrap();
    assert!(
        seccomp
            .detail
            .ends_with("writes, connects or starts another process ends the program"),
        "{}",
        seccomp.detail
    );
    let off = run(&scratch.sandbox(), spawn(Strength::Off)).unwrap();
    assert_eq!(
        (off.end, off.receipt.level),
        (End::Exited(0), IsolationLevel::None)
    );
}

#[test]
fn ordinary_user_is_restricted_by_class() {
    if part().is_some() {
        assert!(!rustix::process::geteuid().is_root());
        a_computation_changes_reaches_and_starts_nothing();
        file_write_profile_blocks_network_and_processes();
        network_profile_blocks_writes_and_processes();
        println!("{AS_ORDINARY_USER}");
        return;
    }
    as_an_ordinary_user("calls::ordinary_user_is_restricted_by_class");
}

#[test]
fn shared_lock_is_allowed_only_for_reading_class() {
    let lock = |kind: &str| {
        format!("import fcntl; fcntl.lockf(open('kept'), fcntl.{kind} | fcntl.LOCK_NB)")
    };
    check(&lock("LOCK_SH"), SyscallClass::Read, Works);
    check(&lock("LOCK_SH"), SyscallClass::Compute, Fails);
    check(&lock("LOCK_EX"), SyscallClass::Read, Fails);
    check(
        "import fcntl; fcntl.lockf(open('kept'), fcntl.LOCK_SH)",
        SyscallClass::Read,
        Fails,
    );
    check("open('new', 'w')", SyscallClass::Read, Ends);
    check("import socket; socket.socket()", SyscallClass::Read, Ends);
}
