//! The single tools' inputs: what is missing is told with every way there is, what cannot be read is no "no", and no file of
//! the user's is written over.

use crate::support::{Fixture, GOAL, GOOD_DIFF, answering, good_answer, id_of, small};

#[test]
fn missing_argument_error_names_both_alternatives() {
    let fixture = Fixture::new();
    for (args, both) in [
        (
            &["patch", "check", "--patch", "x"][..],
            "<--plan <PLAN.md>|--policy <POLICY.json>>",
        ),
        (
            &["patch", "apply", "--patch", "x"],
            "<--plan <PLAN.md>|--policy <POLICY.json>>",
        ),
        (&["plan", "check"], "<--run <DIR>|--plan <PLAN.md>>"),
        (&["context", "build"], "<--request <FILE>|--goal <TEXT>>"),
    ] {
        let plain = fixture.call(args).run().exits(2).stderr;
        let json = fixture.call(args).arg("--json").run().exits(2).message();
        // The usage below names each option anyway.
        let message = plain.split("Usage").next().unwrap();
        for text in [message, &json] {
            assert!(
                text.contains("required arguments") && text.contains(both),
                "{both}: {text}"
            );
        }
    }
}

#[test]
fn unreadable_input_is_usage_error_not_refusal() {
    let (fixture, repo) = (Fixture::new(), small().build());
    let directory = repo.path().to_str().unwrap();
    for at in ["/nonexistent/x", directory] {
        for args in [
            [
                "patch",
                "check",
                "--patch",
                at,
                "--policy",
                "/nonexistent/p",
            ],
            ["patch", "check", "--patch", "/dev/null", "--policy", at],
            ["patch", "check", "--patch", "/dev/null", "--plan", at],
            ["plan", "check", "--plan", at, "--repo", directory],
        ] {
            fixture.call(args).current_dir(repo.path()).run().exits(2);
        }
    }
    let server = answering(good_answer());
    let fixture = Fixture::with(&server);
    let new = fixture
        .call(["run", "new", GOAL, "--json", "--repo"])
        .arg(repo.path())
        .run()
        .ok()
        .json();
    let ran = fixture
        .run(["plan", "check", "--run", &id_of(&new)])
        .exits(2);
    assert!(
        ran.stderr.contains("no plan yet") && ran.stderr.contains("run advance"),
        "{}",
        ran.stderr
    );
    // A link in its place is told of, wherever it leads.
    let plan = fixture.runs().pop().unwrap().join("artifacts/PLAN.md");
    std::os::unix::fs::symlink(fixture.path("gone.md"), &plan).unwrap();
    let ran = fixture
        .run(["plan", "check", "--run", &id_of(&new)])
        .exits(1);
    assert!(
        ran.stderr.contains("link") && !ran.stderr.contains("no plan yet"),
        "{}",
        ran.stderr
    );
}

#[test]
fn patch_check_reads_stdin_and_explains_json_policy() {
    let (fixture, repo) = (Fixture::new(), small().build());
    let (policy, diff) = (fixture.path("policy.json"), fixture.path("change.patch"));
    std::fs::write(&diff, GOOD_DIFF).unwrap();
    for (text, code) in [
        (r#"{"allow_roots":["src/"]}"#, 0),
        (r#"{"allow_roots":["docs/"]}"#, 1),
        ("[]", 3),
    ] {
        std::fs::write(&policy, text).unwrap();
        let script = "\"$0\" patch check --patch - --policy \"$1\" --repo . < \"$2\"";
        let bin = env!("CARGO_BIN_EXE_crucible");
        let mut command = std::process::Command::new("sh");
        command
            .args(["-c", script, bin])
            .arg(&policy)
            .arg(&diff)
            .current_dir(repo.path());
        let ran = command
            .env("CRUCIBLE_HOME", fixture.data())
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(code), "{text}: {stderr}");
        assert!(!stderr.contains("struct"), "{stderr}");
    }
}

#[test]
fn oversized_patch_exceeds_limit_from_any_source() {
    let (fixture, repo) = (Fixture::new(), small().build());
    let (policy, diff) = (fixture.path("policy.json"), fixture.path("change.patch"));
    std::fs::write(&policy, r#"{"allow_roots":["src/"]}"#).unwrap();
    std::fs::File::create(&diff)
        .unwrap()
        .set_len((16 << 20) + 1)
        .unwrap();
    let call = || {
        fixture
            .call(["patch", "check", "--policy"])
            .arg(&policy)
            .arg("--patch")
            .current_dir(repo.path())
    };
    call().arg(&diff).run().exits(7);
    let piped = call()
        .arg("-")
        .command()
        .stdin(std::fs::File::open(&diff).unwrap())
        .output()
        .unwrap();
    assert_eq!(
        piped.status.code(),
        Some(7),
        "{}",
        String::from_utf8_lossy(&piped.stderr)
    );
}

#[test]
fn bundle_overwrites_nothing_and_warns_in_worktree() {
    let (repo, server) = (small().build(), answering(good_answer()));
    let fixture = Fixture::with(&server);
    let id = id_of(&fixture.start(repo.path()).ok().json());
    let out = fixture.path("mine.txt");
    std::fs::write(&out, "mine").unwrap();
    let ran = fixture
        .call(["run", "bundle", &id, "--out"])
        .arg(&out)
        .run()
        .exits(2);
    assert!(ran.stderr.contains("--force"), "{}", ran.stderr);
    assert_eq!(std::fs::read(&out).unwrap(), b"mine");
    for _ in 0..2 {
        fixture
            .call(["run", "bundle", &id, "--force", "--out"])
            .arg(&out)
            .run()
            .ok();
    }
    fixture
        .call(["run", "bundle", &id, "--out"])
        .arg(&out)
        .run()
        .ok();
    let ran = fixture
        .call(["run", "bundle", &id])
        .current_dir(repo.path())
        .run()
        .ok();
    assert!(ran.stderr.contains("in a work tree"), "{}", ran.stderr);
}
