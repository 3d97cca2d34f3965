//! The command line itself: what is typed wrong, what cannot be printed, and names that nearly fit.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;

use crate::support::{Fixture, GOAL, Ran, answering, good_answer, id_of, small};

/// How a call ends whose standard output is this file.
fn writing_to(target: &str, call: crate::support::Call) -> Ran {
    let mut command = call.command();
    command
        .stdout(std::fs::File::options().write(true).open(target).unwrap())
        .stderr(Stdio::piped());
    let output = command.spawn().unwrap().wait_with_output().unwrap();
    Ran {
        code: output.status.code(),
        stdout: String::new(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn unquoted_question_is_answered_with_correct_command() {
    let fixture = Fixture::new();
    let quoted = "tip: a question is one text in quotes: crucible ask \"Should we split?\"";
    for args in [
        &["ask", "Should", "we", "split?"][..],
        &["Should we split?"],
        &["ask", "Should", "we", "split?", "--trace"],
    ] {
        let stderr = fixture.call(args).run().exits(2).stderr;
        let (before, usage) = stderr.split_once("Usage:").unwrap();
        assert!(
            before.ends_with(&format!("\n\n  {quoted}\n\n")) && !usage.contains("tip:"),
            "{stderr}"
        );
        let error = fixture.call(args).arg("--json").run().exits(2).error();
        assert!(
            error["hints"]
                .as_array()
                .unwrap()
                .iter()
                .any(|hint| hint == quoted),
            "{error:#}"
        );
    }
    // What a shell would read in it is kept from the shell.
    let message = fixture
        .run(["ask", "what", "is", "$HOME's", "use?"])
        .exits(2)
        .stderr;
    assert!(
        message.contains(r"crucible ask 'what is $HOME'\''s use?'"),
        "{message}"
    );
    for args in [
        &["aks", "Why?"][..],
        &["run", "list", "all of them"],
        &["ask", "Why?", "--nonsense"],
    ] {
        let stderr = fixture.call(args).run().exits(2).stderr;
        assert!(!stderr.contains("in quotes"), "{stderr}");
    }
}

#[test]
fn usage_error_is_json_when_requested() {
    let fixture = Fixture::new();
    for (args, message, hints) in [
        (
            &["nonsense", "--json"][..],
            "unrecognized subcommand 'nonsense'",
            "--help",
        ),
        (
            &["--json", "run", "lsit"],
            "unrecognized subcommand 'lsit'",
            "'list'",
        ),
        (
            &["run", "start", "--json"],
            "required arguments were not provided: <GOAL>",
            "<GOAL>",
        ),
        (
            &["run", "start", "x", "--provdier", "y", "--json"],
            "unexpected argument '--provdier'",
            "'--provider'",
        ),
        (
            &["run", "start", "x", "--provider", "gatway", "--json"],
            "[possible values: ",
            "'gateway'",
        ),
        (
            &["run", "start", "x", "--sandbox", "of", "--json"],
            "[possible values: required, best-effort, off]",
            "'off'",
        ),
        (
            &["run", "--json"],
            "requires a subcommand",
            "Usage: crucible run",
        ),
        (&["--json"], "requires a subcommand", "Usage: crucible"),
        (
            &["completions", "--json", "nosh"],
            "invalid value 'nosh'",
            "'zsh'",
        ),
        (
            &["run", "list", "--json=yes"],
            "unexpected value 'yes'",
            "Usage",
        ),
    ] {
        let ran = fixture.call(args).run().exits(2);
        if args.contains(&"--json") {
            let error = ran.error();
            assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
            assert_eq!(error["schema_version"], "crucible-error-v1");
            assert_eq!(error["exit_code"], 2);
            assert!(
                error["error"].as_str().unwrap().contains(message),
                "{error}"
            );
            assert!(error["hints"].to_string().contains(hints), "{error}");
        } else {
            assert!(
                ran.stderr.starts_with("error: ") && ran.stderr.contains(message),
                "{}",
                ran.stderr
            );
        }
    }
    // What follows `--` is the other program's.
    let ran = fixture
        .call(["sandbox", "exec", "--timout", "1", "--", "ls", "--json"])
        .run()
        .exits(2);
    assert!(
        ran.stderr
            .starts_with("error: unexpected argument '--timout'"),
        "{}",
        ran.stderr
    );
    for args in [["--help", "--json"], ["--json", "--version"]] {
        let ran = fixture.run(args).ok();
        assert!(
            ran.stdout.contains("rucible") && ran.stderr.is_empty(),
            "{}",
            ran.stdout
        );
    }
}

#[test]
fn a_wrong_command_line_is_shown_escaped() {
    let fixture = Fixture::new();
    let typed = "\u{1b}[2J\u{9b}31m\u{202e}";
    for args in [&[typed, "--json"][..], &[typed]] {
        let ran = fixture.call(args).run().exits(2);
        assert!(
            !ran.stderr.contains(['\u{1b}', '\u{9b}', '\u{202e}']),
            "{:?}",
            ran.stderr
        );
        assert!(ran.stderr.contains("31m"), "{}", ran.stderr);
    }
    let error = fixture.run([typed, "--json"]).exits(2).message();
    assert!(
        error.contains("\u{9b}31m\u{202e}"),
        "the value is the very text: {error:?}"
    );
    let bytes = fixture.call([
        OsStr::from_bytes(b"run"),
        OsStr::from_bytes(b"status"),
        OsStr::from_bytes(b"\xff\xfe"),
    ]);
    assert!(
        bytes
            .arg("--json")
            .run()
            .exits(2)
            .message()
            .contains("UTF-8")
    );
}

#[test]
fn unwritable_result_is_an_error() {
    let (repo, server) = (small().build(), answering(good_answer()));
    let fixture = Fixture::with(&server);
    let start = fixture.start_call(repo.path());
    let ran = writing_to("/dev/full", start).exits(1);
    assert!(
        ran.stderr
            .contains("could not be written to standard output"),
        "{}",
        ran.stderr
    );
    let status = fixture.status();
    assert_eq!(status["state"], "verified", "what was done is done");
    let id = id_of(&status);
    let digest = status["artifacts"][0]["digest"].as_str().unwrap();
    for args in [
        &["run", "status"][..],
        &["run", "status", "--json"],
        &["run", "list"],
        &["run", "list", "--json"],
        &["run", "replay", &id],
        &["run", "bundle", &id, "--json"],
        &["ledger", "log"],
        &["ledger", "verify", "--json"],
        &["ledger", "show", digest],
        &["config", "show"],
        &["sandbox", "status"],
        &["sandbox", "exec", "--", "echo", "hello"],
        &["sandbox", "exec", "--", "printf", "no newline"],
        &["completions", "zsh"],
        &["init"],
        &["--help"],
        &["run", "start", "--help"],
        &["--version"],
    ] {
        let ran = writing_to("/dev/full", fixture.call(args).current_dir(repo.path())).exits(1);
        let last = ran
            .stderr
            .lines()
            .rfind(|line| line.contains("could not be written"))
            .unwrap_or_default();
        if args.contains(&"--json") {
            let error: serde_json::Value = serde_json::from_str(last).unwrap();
            assert_eq!(
                (&error["schema_version"], &error["exit_code"]),
                (&"crucible-error-v1".into(), &1.into())
            );
        } else {
            assert!(
                last.starts_with("error: the result could not be written"),
                "{args:?}: {}",
                ran.stderr
            );
        }
    }
    // A command that failed anyway keeps its own code, and /dev/null is not a failure.
    writing_to("/dev/full", fixture.call(["run", "status", "none"])).exits(2);
    assert_eq!(
        writing_to("/dev/null", fixture.call(["run", "status"]))
            .ok()
            .stderr,
        ""
    );
    fixture.run(["run", "land", &id]).ok();
}

#[test]
fn a_reader_that_has_read_enough_changes_nothing() {
    let fixture = Fixture::new();
    std::fs::write(
        fixture.path("key.txt"),
        format!("key = \"AKIA{}\"\n", "Z7QWERTYUIOPASDF"),
    )
    .unwrap();
    let scan = ["secrets", "scan"]
        .map(str::to_owned)
        .into_iter()
        .chain([fixture.path("key.txt").display().to_string()]);
    let scan: Vec<String> = scan.collect();
    let own = fixture.call(&scan).run().code.unwrap();
    let calls = [
        (fixture.call(["run", "list"]), 0),
        (fixture.call(["completions", "bash"]), 0),
        (fixture.call(&scan), own),
    ];
    for (call, code) in calls {
        let mut command = call.command();
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(
            (
                output.status.code(),
                String::from_utf8_lossy(&output.stderr).as_ref()
            ),
            (Some(code), "")
        );
    }
}

#[test]
fn run_is_found_by_id_prefix() {
    let repo = small().build();
    let fixture = Fixture::new();
    let new = |goal: &str| {
        let ran = fixture
            .call(["run", "new", goal, "--json", "--repo"])
            .arg(repo.path())
            .run()
            .ok();
        id_of(&ran.json())
    };
    let id = new(GOAL);
    assert!(
        fixture
            .run(["ledger", "log", "--run", &id[..4]])
            .ok()
            .stdout
            .contains("RUN_CREATED")
    );
    let unknown = fixture
        .run(["ledger", "log", "--run", "zzz", "--json"])
        .exits(2);
    assert!(
        unknown.message().contains("no run zzz"),
        "{}",
        unknown.stderr
    );
    assert_eq!(
        id_of(
            &fixture
                .run(["run", "status", &id[..4], "--json"])
                .ok()
                .json()
        ),
        id
    );
    fixture.run(["run", "bundle", &id[..20]]).ok();
    assert!(fixture.home().join(format!("{id}.zip")).is_file());
    let other = new("something else");
    let message = fixture
        .run(["run", "status", "2", "--json"])
        .exits(2)
        .message();
    assert!(
        message.starts_with("2 runs begin with \"2\"") && message.contains(&id),
        "{message}"
    );
    assert!(message.contains(&other), "{message}");
    assert_eq!(
        id_of(&fixture.run(["run", "status", &id, "--json"]).ok().json()),
        id
    );
    for unknown in ["", "zzz", "../..", &format!("{id}0"), "\u{202e}"] {
        let ran = fixture.run(["run", "status", unknown, "--json"]).exits(2);
        assert!(
            ran.message().contains("`crucible run list`"),
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn limits_are_numbers_from_one() {
    let (repo, fixture) = (small().build(), Fixture::new());
    for number in [
        "0",
        "-1",
        "4294967296",
        "99999999999999999999999",
        "1.5",
        "many",
        "",
    ] {
        let call = fixture
            .start_call(repo.path())
            .arg("--max-iterations")
            .arg(number);
        let message = call.run().exits(2).message();
        assert!(message.contains("--max-iterations <N>"), "{message}");
    }
    for seconds in ["0", "-1", "18446744073709551615"] {
        let ran = fixture
            .run([
                "sandbox",
                "exec",
                "--timeout",
                seconds,
                "--json",
                "--",
                "true",
            ])
            .exits(2);
        assert!(
            ran.message().contains("--timeout <SECONDS>"),
            "{}",
            ran.stderr
        );
    }
    assert!(fixture.runs().is_empty());
}

#[test]
fn an_odd_goal_is_refused_or_carried_whole() {
    let (repo, fixture) = (small().build(), Fixture::new());
    let long = "x".repeat(16 * 1024 + 1);
    let call = fixture
        .call(["run", "new", &long, "--json", "--repo"])
        .arg(repo.path());
    assert!(call.run().exits(7).message().contains("the limit is 16384"));
    fixture
        .call(["run", "new", &long[1..], "--repo"])
        .arg(repo.path())
        .run()
        .ok();
    for empty in ["", " \n\t", "\u{a0}"] {
        let call = fixture
            .call(["run", "new", empty, "--json", "--repo"])
            .arg(repo.path());
        assert!(call.run().exits(2).message().contains("goal"));
    }
    let bytes = OsStr::from_bytes(b"make \xff");
    assert!(
        fixture
            .call(["run", "new", "--json"])
            .arg(bytes)
            .run()
            .exits(2)
            .message()
            .contains("UTF-8")
    );
    let goal = "make area\nstate     landed\u{202e}";
    let new = fixture
        .call(["run", "new", goal, "--repo"])
        .arg(repo.path())
        .run()
        .ok();
    assert!(
        !new.stdout.contains("\nstate     landed"),
        "a goal forges no line: {}",
        new.stdout
    );
    assert_eq!(fixture.status()["run"]["goal"], goal);
    let listed = fixture.run(["run", "list"]).ok().stdout;
    assert_eq!(
        listed.lines().count(),
        3,
        "a head and one line for each run: {listed}"
    );
}

#[test]
fn named_files_must_exist_and_count_once() {
    let (repo, fixture) = (small().build(), Fixture::new());
    let new = |file: &str| {
        fixture
            .call([
                "run",
                "new",
                GOAL,
                "--json",
                "--file",
                "src/area.py",
                "--file",
                file,
                "--repo",
            ])
            .arg(repo.path())
            .run()
    };
    for outside in [
        "../x",
        "/etc/passwd",
        "",
        ".",
        "src/../../x",
        ".git/config",
        "src//area.py",
        ".//x",
    ] {
        let ran = new(outside).exits(2);
        assert!(ran.message().contains("--file"), "{}", ran.stderr);
    }
    new("src").ok();
    let missing = new("src/volume.py").ok();
    assert!(
        missing
            .stderr
            .contains("file src/volume.py does not exist yet"),
        "{}",
        missing.stderr
    );
    let twice = new("./src/area.py").ok();
    assert!(
        !twice.stderr.contains("does not exist yet"),
        "{}",
        twice.stderr
    );
    let twice = twice.json();
    assert_eq!(
        twice["run"]["settings"]["named"],
        serde_json::json!(["src/area.py"])
    );
}

#[test]
fn definitions_allowed_to_go_need_plain_names() {
    let (repo, fixture) = (small().build(), Fixture::new());
    let new = |name: &str| {
        fixture
            .call([
                "run",
                "new",
                GOAL,
                "--json",
                "--may-drop",
                "older",
                "--may-drop",
                name,
                "--repo",
            ])
            .arg(repo.path())
            .run()
    };
    for bad in ["", "a b", "area::old", "old()", "x,y", "a\nNames: x"] {
        assert!(
            new(bad).exits(2).message().contains("--may-drop"),
            "{bad:?}"
        );
    }
    let stored_json = new("Helper").ok().json();
    assert_eq!(
        stored_json["run"]["settings"]["may_drop"],
        serde_json::json!(["older", "Helper"])
    );
}

#[test]
fn unusable_home_is_reported_with_a_hint() {
    let (repo, fixture) = (small().build(), Fixture::new());
    std::fs::write(fixture.path("file"), "").unwrap();
    let start = || fixture.start_call(repo.path());
    for call in [
        start().env("CRUCIBLE_HOME", "/proc/nowhere"),
        start().env("CRUCIBLE_HOME", fixture.path("file")),
        start().env("CRUCIBLE_HOME", fixture.path("file").join("below")),
        start().env("CRUCIBLE_HOME", "relative"),
        start().env(
            "CRUCIBLE_HOME",
            fixture.path("x").join(OsStr::from_bytes(b"\xff")),
        ),
        start().without_env("CRUCIBLE_HOME").without_env("HOME"),
        start()
            .without_env("CRUCIBLE_HOME")
            .without_env("HOME")
            .env("XDG_DATA_HOME", "relative"),
    ] {
        let error = call.run().exits(2).error();
        assert!(error.to_string().contains("Set "), "{error}");
    }
    let data = fixture.path("xdg");
    let listed = fixture
        .call(["run", "new", GOAL, "--json", "--repo"])
        .arg(repo.path());
    listed
        .without_env("CRUCIBLE_HOME")
        .env("XDG_DATA_HOME", &data)
        .run()
        .ok();
    assert!(data.join("crucible/ledger.db").is_file());
}

#[test]
fn repository_path_without_utf_8_is_refused() {
    let fixture = Fixture::new();
    let repo = small().build();
    let parent = tempfile::tempdir().unwrap();
    let unusual_path = parent.path().join(OsStr::from_bytes(b"odd\xff"));
    std::fs::rename(repo.path(), &unusual_path).unwrap();
    let message = fixture
        .call(["run", "new", GOAL, "--json", "--repo"])
        .arg(&unusual_path)
        .run()
        .exits(2)
        .message();
    assert!(message.contains("not UTF-8"), "{message}");
    let message = fixture
        .call(["run", "new", GOAL, "--json"])
        .current_dir(&unusual_path)
        .run()
        .exits(2)
        .message();
    assert!(message.contains("not UTF-8"), "{message}");
    assert!(fixture.runs().is_empty());
}

#[test]
fn recording_requires_the_cassette_provider() {
    let (repo, fixture) = (small().build(), Fixture::new());
    let ran = fixture
        .start_call(repo.path())
        .args(["--cassette", "c.jsonl"])
        .run()
        .exits(2);
    assert!(
        ran.error()["hints"]
            .to_string()
            .contains("--provider replay"),
        "{}",
        ran.stderr
    );
    assert!(fixture.runs().is_empty());
}

#[test]
fn init_reports_repository_top() {
    let (repo, fixture) = (small().build(), Fixture::new());
    let inside = fixture
        .call(["init"])
        .arg(repo.path().join("src"))
        .run()
        .ok();
    let top = repo.path().to_str().unwrap();
    assert!(
        inside
            .stderr
            .contains(&format!("for the whole repository: crucible init {top}")),
        "{}",
        inside.stderr
    );
    let nowhere = tempfile::tempdir().unwrap();
    let outside = fixture.call(["init"]).arg(nowhere.path()).run().ok();
    assert!(
        outside.stdout.contains("not a git repository yet"),
        "{}",
        outside.stdout
    );
    let bare = fixture.path("bare.git");
    repo.git(["clone", "--quiet", "--bare", ".", bare.to_str().unwrap()]);
    let refused = fixture.call(["init", "--json"]).arg(&bare).run().exits(2);
    assert!(
        refused.message().contains("bare repository"),
        "{}",
        refused.stderr
    );
    assert!(!bare.join(".crucible").exists());
}

#[test]
fn sandbox_strength_is_one_option_everywhere() {
    let fixture = Fixture::new();
    let ran = fixture
        .run([
            "sandbox",
            "exec",
            "--sandbox",
            "off",
            "--json",
            "--",
            "true",
        ])
        .ok();
    assert_eq!(ran.json()["isolation"]["requested"], "off");
    fixture
        .run(["sandbox", "exec", "--strength", "off", "--", "true"])
        .exits(2);
    let ran = fixture
        .call(["sandbox", "status"])
        .env("CRUCIBLE_SANDBOX", "off")
        .run()
        .ok();
    assert!(
        ran.stdout.contains("sandbox-off sandbox: "),
        "{}",
        ran.stdout
    );
    let ran = fixture
        .call(["sandbox", "status", "--json"])
        .env("CRUCIBLE_SANDBOX", "of")
        .run()
        .exits(2);
    assert!(
        ran.message()
            .contains("unknown sandbox strength \"of\"; use one of required, best-effort, off")
    );
}

#[test]
fn command_in_home_is_advised_where_to_run() {
    let fixture = Fixture::new();
    std::fs::write(fixture.home().join("kept"), "seen").unwrap();
    let error = fixture
        .run(["sandbox", "exec", "--json", "--", "cat", "kept"])
        .exits(2)
        .error();
    assert!(error["hints"].to_string().contains("--write ."), "{error}");
    let ran = fixture
        .run(["sandbox", "exec", "--write", ".", "--", "cat", "kept"])
        .ok();
    assert_eq!(ran.stdout, "seen");
}

#[test]
fn sandboxed_command_never_sees_run_directories() {
    let fixture = Fixture::new();
    let runs = fixture.path("elsewhere");
    std::fs::create_dir(&runs).unwrap();
    std::fs::write(runs.join("PLAN.md"), "hidden").unwrap();
    let place = fixture.home().join(".config/crucible");
    std::fs::create_dir_all(&place).unwrap();
    std::fs::write(
        place.join("config.toml"),
        format!("[paths]\nruns_root = {runs:?}\n"),
    )
    .unwrap();
    std::fs::create_dir(fixture.path("work")).unwrap();
    let call = fixture
        .call(["sandbox", "exec", "--json", "--", "cat"])
        .arg(runs.join("PLAN.md"));
    let ran = call.current_dir(fixture.path("work")).run().exits(1);
    assert_eq!(ran.json()["stdout"], "");
}
