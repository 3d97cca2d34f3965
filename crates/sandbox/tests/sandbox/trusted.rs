//! Trusted programs: what they are given, and what comes back.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::Arc;

use crucible_model::ByteLimit;
use crucible_sandbox::{
    Cap, Completed, End, Extent, IsolationLevel, Keep, PathProblem, Redaction, SandboxError, Spawn,
    Stdin, Stdout,
};

use crate::support::{Scratch, limits, output, run};

#[test]
fn arguments_arrive_byte_for_byte() {
    let scratch = Scratch::new();
    let hostile: Vec<OsString> = vec![
        "".into(),
        " ".into(),
        "a b".into(),
        "'\"`$(id)".into(),
        "line\nline".into(),
        "*".into(),
        "--".into(),
        "\\".into(),
        "é😀".into(),
        OsString::from_vec(vec![0xff, 0xfe]),
        "x".repeat(100_000).into(),
    ];
    for confined in [false, true] {
        let mut spawn = if confined {
            scratch.confined("")
        } else {
            scratch.script("")
        };
        spawn.args = vec!["-c".into(), r#"printf '%s\0' "$@""#.into(), "sh".into()];
        spawn.args.extend(hostile.iter().cloned());
        let done = run(&scratch.sandbox(), spawn).unwrap();
        let mut expected = Vec::new();
        for argument in &hostile {
            expected.extend_from_slice(&argument.clone().into_vec());
            expected.push(0);
        }
        assert_eq!(
            done.stdout.bytes,
            expected,
            "confined: {confined}: {}",
            done.stderr.text()
        );
    }
}

#[test]
fn the_environment_is_exactly_what_was_given() {
    let scratch = Scratch::new();
    for confined in [false, true] {
        let mut spawn = if confined {
            scratch.confined("")
        } else {
            scratch.script("")
        };
        spawn.program = "env".into();
        spawn.args = vec!["-0".into()];
        spawn.env.push(("GIVEN".into(), "a\nb=c".into()));
        spawn
            .env
            .push(("LD_PRELOAD".into(), "/does/not/exist.so".into()));
        let given = spawn.env.clone();
        let done = run(&scratch.sandbox(), spawn).unwrap();
        let mut seen: Vec<_> = done
            .stdout
            .text()
            .split_terminator('\0')
            .map(str::to_owned)
            .collect();
        let mut expected: Vec<_> = given
            .iter()
            .map(|(name, value)| format!("{}={}", name.display(), value.display()))
            .collect();
        seen.sort();
        expected.sort();
        assert_eq!(seen, expected, "confined: {confined}");
    }
}

#[test]
fn no_descriptor_above_two_is_inherited() {
    let scratch = Scratch::new();
    // One that is not closed by itself when a program starts.
    let file = File::open("/etc/passwd").unwrap();
    rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).unwrap();
    for confined in [false, true] {
        let mut spawn = if confined {
            scratch.confined("")
        } else {
            scratch.script("")
        };
        spawn.program = "ls".into();
        spawn.args = vec!["/proc/self/fd".into()];
        // `ls` itself holds descriptor 3, on the directory that it lists.
        assert_eq!(
            output(&scratch.sandbox(), spawn),
            "0\n1\n2\n3\n",
            "confined: {confined}"
        );
    }
    drop(file);
}

#[test]
fn ten_megabytes_flow_in_and_out_at_once() {
    let scratch = Scratch::new();
    for confined in [false, true] {
        let mut spawn = if confined {
            scratch.confined("")
        } else {
            scratch.script("")
        };
        spawn.program = "cat".into();
        spawn.args = Vec::new();
        spawn.redaction = Redaction::Raw;
        spawn.limits.stdout = ByteLimit(64 << 20);
        let input: Vec<u8> = (0..10 << 20_u32).map(|n: u32| (n % 251) as u8).collect();
        spawn.stdin = Stdin::Bytes(input.clone());
        let done = run(&scratch.sandbox(), spawn).unwrap();
        assert!(
            done.stdout.bytes == input,
            "{} bytes came back",
            done.stdout.total
        );
        assert_eq!(done.stdout.extent, Extent::Whole);
    }
}

#[test]
fn child_ignoring_its_input_is_no_error() {
    let scratch = Scratch::new();
    let mut spawn = scratch.script("exec 0<&-; echo done");
    spawn.stdin = Stdin::Bytes(vec![b'x'; 10 << 20]);
    assert_eq!(output(&scratch.sandbox(), spawn), "done\n");
}

#[test]
fn no_input_is_the_end_of_the_file() {
    let scratch = Scratch::new();
    assert_eq!(
        output(&scratch.sandbox(), scratch.script("cat; echo end")),
        "end\n"
    );
}

#[test]
fn long_output_is_truncated_but_fully_counted() {
    let scratch = Scratch::new();
    let script = "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done";
    for (keep, begins, ends) in [
        (Keep::Head, "line 0\n", "line"),
        (Keep::Tail, "", "line 19999\n"),
    ] {
        let mut spawn = scratch.script(script);
        spawn.keep = keep;
        spawn.limits.stdout = ByteLimit(1000);
        let done = run(&scratch.sandbox(), spawn).unwrap();
        let text = done.stdout.text();
        assert_eq!(text.len(), 1000);
        assert_eq!(done.stdout.extent, Extent::Cut);
        assert_eq!(done.stdout.total, 208_890);
        assert!(text.starts_with(begins), "{text}");
        assert!(keep == Keep::Head || text.ends_with(ends), "{text}");
    }
}

#[test]
fn secrets_are_redacted_whole_on_both_streams() {
    let scratch = Scratch::new();
    // Put together here so that no scanner stumbles over this file.
    let secret = ["ghp_", "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY1zA2"].concat();
    let script = format!("echo token={secret}; echo token={secret} >&2");
    let done = run(&scratch.sandbox(), scratch.script(&script)).unwrap();
    for stream in [&done.stdout, &done.stderr] {
        assert!(!stream.text().contains(&secret), "{}", stream.text());
        assert!(stream.text().contains("[secret:"), "{}", stream.text());
        assert_eq!(stream.total, 47);
    }
    // A limit that would cut the secret in its middle: not one of its characters may be seen.
    let mut cut = scratch.script(&script);
    cut.limits.stdout = ByteLimit(20);
    let done = run(&scratch.sandbox(), cut).unwrap();
    assert!(
        !done.stdout.text().contains("aB3d"),
        "{}",
        done.stdout.text()
    );
    let mut raw = scratch.script(&script);
    raw.redaction = Redaction::Raw;
    assert!(
        run(&scratch.sandbox(), raw)
            .unwrap()
            .stdout
            .text()
            .contains(&secret)
    );
}

#[test]
fn exit_status_is_reported_exactly() {
    let scratch = Scratch::new();
    let end = |script: &str| run(&scratch.sandbox(), scratch.script(script)).unwrap().end;
    assert_eq!(end("exit 0"), End::Exited(0));
    assert_eq!(end("exit 173"), End::Exited(173));
    assert_eq!(end("kill -SEGV $$"), End::Signalled(11));
    assert_eq!(end("no-such-program-at-all"), End::Exited(127));
    let receipt = run(&scratch.sandbox(), scratch.script("")).unwrap().receipt;
    assert_eq!(receipt.level, IsolationLevel::None);
    assert!(receipt.missing.is_empty());
}

#[test]
fn unrunnable_program_is_typed_error() {
    let scratch = Scratch::new();
    let refused = |change: &dyn Fn(&mut Spawn)| {
        let mut spawn = scratch.script("true");
        change(&mut spawn);
        run(&scratch.sandbox(), spawn).unwrap_err()
    };
    let error = refused(&|spawn| {
        spawn.program = "no-such-program".into();
        spawn.env = vec![("PATH".into(), "/usr/bin:/bin".into())];
    });
    let SandboxError::NotFound { searched, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(
        searched,
        &[
            PathBuf::from("/usr/bin/no-such-program"),
            "/bin/no-such-program".into()
        ]
    );
    assert!(
        error.to_string().contains("/usr/bin/no-such-program"),
        "{error}"
    );

    let error = refused(&|spawn| spawn.program = "/usr".into());
    assert!(
        matches!(
            error,
            SandboxError::NotExecutable {
                problem: PathProblem::IsDirectory,
                ..
            }
        ),
        "{error}"
    );
    let error = refused(&|spawn| spawn.program = "/etc/passwd".into());
    assert!(
        matches!(
            error,
            SandboxError::NotExecutable {
                problem: PathProblem::NotExecutable,
                ..
            }
        ),
        "{error}"
    );
    let error = refused(&|spawn| spawn.args.push(OsString::from_vec(b"a\0b".to_vec())));
    assert!(matches!(error, SandboxError::BadArgument { .. }), "{error}");
    let error = refused(&|spawn| spawn.env.push(("A=B".into(), "c".into())));
    assert!(matches!(error, SandboxError::BadArgument { .. }), "{error}");
    let error = refused(&|spawn| spawn.cwd = "/no/such/directory".into());
    assert!(
        matches!(error, SandboxError::WorkingDirectory { .. }),
        "{error}"
    );

    // A script whose interpreter does not exist: found, executable, and still no program.
    let script = scratch.copy.join("script");
    std::fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    for confined in [false, true] {
        let mut spawn = if confined {
            scratch.confined("")
        } else {
            scratch.script("")
        };
        spawn.program.clone_from(&script);
        let error = run(&scratch.sandbox(), spawn).unwrap_err();
        assert!(matches!(error, SandboxError::Exec { .. }), "{error}");
    }
}

#[test]
fn working_directory_replaced_by_link_is_refused() {
    let scratch = Scratch::new();
    let inside = scratch.copy.join("inside");
    std::os::unix::fs::symlink("/etc", &inside).unwrap();
    for confined in [false, true] {
        let mut spawn = if confined {
            scratch.confined("pwd")
        } else {
            scratch.script("pwd")
        };
        spawn.cwd.clone_from(&inside);
        let error = run(&scratch.sandbox(), spawn).unwrap_err();
        let SandboxError::WorkingDirectory {
            problem: PathProblem::NotADirectory,
            ..
        } = error
        else {
            panic!("{error}")
        };
    }
    let mut spawn = scratch.script("pwd -P");
    spawn.cwd = scratch.home.clone();
    assert_eq!(
        output(&scratch.sandbox(), spawn).trim_end(),
        scratch.home.to_str().unwrap()
    );
}

#[test]
fn trusted_child_has_own_group_and_no_terminal() {
    let scratch = Scratch::new();
    let text = output(
        &scratch.sandbox(),
        scratch.script("cut -d' ' -f1,5,6 /proc/$$/stat; (: </dev/tty) 2>/dev/null || echo none"),
    );
    let mut lines = text.lines();
    let numbers: Vec<_> = lines.next().unwrap().split(' ').collect();
    assert!(numbers.iter().all(|number| *number == numbers[0]), "{text}");
    assert_eq!(lines.next(), Some("none"));
}

#[test]
fn concurrent_runs_do_not_end_each_other() {
    let scratch = Scratch::new();
    let sandbox = scratch.sandbox();
    // The slow ones wait for an orphan of theirs while the quick ones end and look for strays.
    let one = |n: u32, nap: &str| {
        let orphan =
            format!("(setsid sh -c 'sleep {nap}; echo {n} > orphan{n}' >/dev/null 2>&1 &)");
        let patience = "i=0; while [ ! -s orphan$0 ] && [ $i -lt 100 ]; do sleep 0.05; i=$((i+1)); done; cat orphan$0";
        let mut spawn = scratch.script(&format!("{orphan}; {patience}"));
        spawn.args.push(n.to_string().into());
        sandbox.run(spawn)
    };
    let done = crate::support::runtime().block_on(async {
        let (a, b, c, d) = tokio::join!(one(0, "0.6"), one(1, "0.1"), one(2, "0.4"), one(3, "0.2"));
        [a.unwrap(), b.unwrap(), c.unwrap(), d.unwrap()]
    });
    for (n, done) in done.into_iter().enumerate() {
        assert_eq!(
            (done.end, done.stdout.text().as_ref()),
            (End::Exited(0), format!("{n}\n").as_str())
        );
    }
}

#[test]
fn limits_have_sober_defaults() {
    let limits = crucible_sandbox::Limits::new(std::time::Duration::from_secs(1));
    assert_eq!(limits.grace, std::time::Duration::from_secs(5));
    assert_eq!(limits.resources.address_space, Cap::Unlimited);
    assert_eq!(self::limits().stdout, ByteLimit(8 << 20));
}

/// Runs a script whose standard output goes to a new file of the scratch directory; what it holds afterwards.
fn into_file(
    scratch: &Scratch,
    script: &str,
    limit: u64,
    runaway: u64,
) -> (Result<Completed, SandboxError>, Vec<u8>) {
    let path = scratch.copy.join("out");
    let mut spawn = scratch.script(script);
    spawn.stdout = Stdout::File(Arc::new(File::create_new(&path).unwrap()));
    spawn.limits.stdout = ByteLimit(limit);
    spawn.limits.runaway = ByteLimit(runaway);
    (run(&scratch.sandbox(), spawn), std::fs::read(path).unwrap())
}

#[test]
fn stdout_in_file_is_raw_and_complete() {
    let secret = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
    let scratch = Scratch::new();
    let script =
        format!("head -c 300000 /dev/zero; printf %s {secret}; printf %s {secret} >&2; exit 3");
    let (done, bytes) = into_file(&scratch, &script, 1 << 20, 1 << 20);
    let done = done.unwrap();
    assert_eq!(
        (done.end, done.stdout.extent),
        (End::Exited(3), Extent::Whole)
    );
    assert!(done.stdout.bytes.is_empty());
    assert_eq!(done.stdout.total, bytes.len() as u64);
    assert!(bytes.len() == 300_000 + secret.len() && bytes.ends_with(secret.as_bytes()));
    assert!(
        !done.stderr.text().contains(&secret),
        "{}",
        done.stderr.text()
    );
}

#[test]
fn stdout_in_file_stops_at_its_limit() {
    let scratch = Scratch::new();
    let (done, bytes) = into_file(&scratch, "head -c 5000 /dev/zero", 1000, 1 << 20);
    let done = done.unwrap();
    assert_eq!(
        (done.end, done.stdout.extent, done.stdout.total),
        (End::Exited(0), Extent::Cut, 5000)
    );
    assert_eq!(bytes.len(), 1000);

    let scratch = Scratch::new();
    let (done, bytes) = into_file(&scratch, "exec cat /dev/zero", 1000, 1000);
    assert_eq!(done.unwrap().end, End::OutputLimit);
    assert_eq!(bytes.len(), 1000);
}

#[test]
fn a_file_that_takes_nothing_ends_the_program() {
    let scratch = Scratch::new();
    let mut spawn = scratch.script("exec cat /dev/zero");
    spawn.stdout = Stdout::File(Arc::new(
        File::options().write(true).open("/dev/full").unwrap(),
    ));
    let error = run(&scratch.sandbox(), spawn).unwrap_err();
    assert!(matches!(error, SandboxError::Supervision { .. }), "{error}");
}

#[test]
fn secrets_can_be_replaced_in_standard_error_alone() {
    let secret = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
    let scratch = Scratch::new();
    let mut spawn = scratch.script(&format!("printf %s {secret}; printf %s {secret} >&2"));
    spawn.redaction = Redaction::OnlyStderr;
    let done = run(&scratch.sandbox(), spawn).unwrap();
    assert_eq!(done.stdout.text(), secret);
    assert!(
        !done.stderr.text().contains(&secret),
        "{}",
        done.stderr.text()
    );
}
