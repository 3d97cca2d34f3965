//! What a command on a spec says to whoever typed something wrong, and what it says of a secret, a killed process and an answer whose end is
//! not clear: which file, which path, and what to do.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use crucible_testkit::{FakeApi, Reply};
use serde_json::{Value, json};

use super::support::{
    IDEA, LedgerHolder, SPEC, answering, at, good, newest, phase_of, project, receipts, resume,
    server, spec, spec_dir, with_idea,
};
use crate::crawl::support::wait_for;
use crate::support::Fixture;

#[test]
fn id_with_final_dot_explains_the_refusal() {
    let fixture = Fixture::new();
    let project = project(&fixture);
    for id in ["a.", "a..b"] {
        let ran = at(&fixture, &project, ["spec", id]).exits(2);
        assert!(
            ran.stderr
                .contains("does not end with a `.` and has no two in a row"),
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn unstarted_spec_differs_from_unknown_and_link() {
    let fixture = Fixture::new();
    let project = project(&fixture);
    at(&fixture, &project, ["project", "init"]).ok();
    at(&fixture, &project, ["project", "add-spec", SPEC]).ok();
    let listed = at(&fixture, &project, ["status", SPEC]).exits(2).stderr;
    assert!(
        listed.contains("workspace.yaml lists it, but no command has started it"),
        "{listed}"
    );
    assert!(
        listed.contains("`crucible spec export-data` begins it")
            && !listed.contains("project list"),
        "{listed}"
    );
    let unknown = at(&fixture, &project, ["status", "other"]).exits(2).stderr;
    assert!(
        unknown.contains("`crucible project list` shows the specs"),
        "{unknown}"
    );
    // What lies behind a link is nobody's advice.
    std::fs::create_dir_all(fixture.path("elsewhere/near")).unwrap();
    symlink(fixture.path("elsewhere"), project.join(".crucible/specs")).unwrap();
    let linked = at(&fixture, &project, ["status", SPEC]).exits(2).stderr;
    assert!(
        linked.contains("must be a directory, not a link; move it away"),
        "{linked}"
    );
    assert!(
        !linked.contains("near") && !linked.contains("begins it"),
        "{linked}"
    );
}

#[test]
fn unreadable_source_is_named_as_typed() {
    let fixture = Fixture::new();
    let project = project(&fixture);
    let missing = fixture.path("elsewhere/idea.md");
    for (source, why) in [
        ("/dev/zero", "not a regular file"),
        (missing.to_str().unwrap(), "an existing file"),
    ] {
        let ran = at(&fixture, &project, ["spec", SPEC, "--source", source]).exits(2);
        assert!(
            ran.stderr.contains(&format!("error: {source}: ")),
            "{}",
            ran.stderr
        );
        assert!(ran.stderr.contains(why), "{}", ran.stderr);
    }
}

#[test]
fn invalid_issue_is_reported() {
    let fixture = Fixture::new();
    let project = project(&fixture);
    for (issue, why) in [
        (
            "https://github.com/acme/shop/pull/3",
            "it is a pull request",
        ),
        ("http://github.com/acme/shop/issues/3", "write https://"),
        ("acme/shop", "write OWNER/REPO#123"),
    ] {
        let ran = at(&fixture, &project, ["spec", SPEC, "--issue", issue]).exits(2);
        assert!(ran.stderr.contains(why), "{}", ran.stderr);
        assert_eq!(
            ran.stderr.matches(issue).count(),
            1,
            "named once: {}",
            ran.stderr
        );
    }
}

#[test]
fn invalid_gh_output_differs_from_empty_output() {
    let fixture = Fixture::new();
    let project = project(&fixture);
    let bin = fixture.path("bin");
    std::fs::create_dir_all(&bin).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    for (prints, message) in [
        (
            "junk",
            "is not a response of GitHub's API; check with `gh --version`",
        ),
        ("", "`gh` printed nothing"),
        (
            "HTTP/2.0 200 OK\\r\\n\\r\\n[junk",
            "see what `gh api repos/acme/shop/issues/3` prints",
        ),
    ] {
        std::fs::write(bin.join("gh"), format!("#!/bin/sh\nprintf '{prints}'\n")).unwrap();
        std::fs::set_permissions(bin.join("gh"), std::fs::Permissions::from_mode(0o755)).unwrap();
        let call = fixture
            .call(["spec", SPEC, "--issue", "acme/shop#3"])
            .current_dir(&project);
        let ran = call.env("PATH", &path).run().exits(1);
        assert!(ran.stderr.contains(message), "{}", ran.stderr);
    }
}

#[test]
fn non_file_lock_is_reported_like_other_files() {
    let fixture = Fixture::new();
    let project = project(&fixture);
    let lock = spec_dir(&project).join("lock");
    std::fs::create_dir_all(&lock).unwrap();
    let told = |why: &str| {
        let ran = with_idea(fixture.call(["spec", SPEC, "--dry-run"]), &project, IDEA);
        assert_ne!(ran.code, Some(0), "{why}");
        assert!(
            ran.stderr
                .contains("it must be a regular file, not a link; move it away"),
            "{why}: {}",
            ran.stderr
        );
    };
    told("a directory");
    std::fs::remove_dir(&lock).unwrap();
    symlink(fixture.path("nowhere"), &lock).unwrap();
    told("a link");
    assert!(!fixture.path("nowhere").exists());
}

#[test]
fn next_command_after_dry_run_repeats_the_idea() {
    let server = answering();
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    std::fs::write(project.join("my idea.md"), IDEA).unwrap();
    let next = |ran: &Value| ran["next"]["command"].as_str().unwrap().to_owned();
    let dry = with_idea(
        fixture.call(["spec", SPEC, "--dry-run", "--json"]),
        &project,
        IDEA,
    )
    .ok();
    assert_eq!(next(&dry.json()), "crucible spec export-data --source -");
    let dry = at(
        &fixture,
        &project,
        [
            "spec",
            SPEC,
            "--dry-run",
            "--json",
            "--source",
            "my idea.md",
        ],
    )
    .ok();
    assert_eq!(
        next(&dry.json()),
        "crucible spec export-data --source 'my idea.md'"
    );
    // It works, as it is told.
    let output = with_idea(
        fixture.call(["spec", SPEC, "--source", "-"]),
        &project,
        IDEA,
    );
    output.ok();
    let dry = resume(
        &fixture,
        &project,
        ["--phase", "requirements", "--dry-run", "--json"],
    )
    .ok();
    assert_eq!(
        next(&dry.json()),
        "crucible resume export-data --phase design",
        "the idea is kept now"
    );
}

#[test]
fn locked_spec_gives_advice_in_hints() {
    let server = server(|_, _| Some(Reply::Hang));
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    let mut command = fixture
        .call(["spec", SPEC, "--source", "README.md"])
        .current_dir(&project)
        .command();
    let mut first = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_for("the first to ask", || server.completions().len() == 1);
    let error = spec(&fixture, &project, ["--json"]).exits(9).error();
    assert!(
        error["hints"][0].as_str().unwrap().contains("--force"),
        "{error}"
    );
    first.kill().unwrap();
    first.wait().unwrap();
}

/// An answer for which the server gives this reason to end.
fn ended_by(text: &str, reason: &str) -> Reply {
    let choice =
        json!({ "message": { "role": "assistant", "content": text }, "finish_reason": reason });
    let body = json!({ "model": "m", "choices": [choice], "usage": { "prompt_tokens": 9, "completion_tokens": 9 } });
    Reply::Raw(200, body.to_string().into_bytes())
}

#[test]
fn unfinished_answer_is_accepted_with_a_warning() {
    for (reason, warnings) in [("tool_calls", 1), ("stop", 0)] {
        let server = FakeApi::answering(move |request| ended_by(&good(phase_of(request)), reason));
        let fixture = Fixture::with(&server);
        let project = project(&fixture);
        let ran = spec(&fixture, &project, []).ok();
        assert_eq!(
            ran.stderr
                .matches("ended this answer with \"tool_calls\"")
                .count(),
            warnings,
            "{}",
            ran.stderr
        );
        let values = newest(&project)["phases"][0]["warnings"]
            .as_array()
            .unwrap()
            .clone();
        let reported_count = values
            .iter()
            .filter(|warning| warning["type"] == "answer_end_unclear")
            .count();
        assert_eq!(reported_count, warnings, "{reason}");
    }
}

/// Whatever the text with the secret is, and wherever it stands in the message of a phase.
#[test]
fn secret_is_reported_by_file_and_line() {
    let server = answering();
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    let key = format!("AKIA{}", "Z7QWERTYUIOPASDF");
    let put = |name: &str, text: &str| {
        let path = project.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    put("notes/a.md", "Users can export their data.\n");
    put("notes/b.md", &format!("As JSON.\n\nThe key is {key}.\n"));
    let told = |ran: crate::support::Ran, place: &str, line: &str| {
        let ran = ran.exits(8);
        assert!(
            ran.stderr
                .contains(&format!("{place} holds a secret (rule ")),
            "{}",
            ran.stderr
        );
        assert!(
            ran.stderr.contains(line) && !ran.stderr.contains(&key),
            "{}",
            ran.stderr
        );
        let error = newest(&project)["phases"][0]["error"].clone();
        assert_eq!(error["class"], "secret", "{error}");
        assert!(
            error["message"].as_str().unwrap().contains(place),
            "{error}"
        );
    };
    told(
        at(&fixture, &project, ["spec", SPEC, "--source", "notes"]),
        "notes/b.md",
        "line 3)",
    );
    put("src/keys.py", &format!("one = 1\nkey = '{key}'\n"));
    told(
        spec(&fixture, &project, ["--context", "src/keys.py"]),
        "src/keys.py",
        "line 2)",
    );
    assert_eq!(server.requests().len(), 0);
    // The idea that is kept is in the message of the phase that is made from it, whoever changed it.
    spec(&fixture, &project, []).ok();
    std::fs::write(
        spec_dir(&project).join("context/idea.md"),
        format!("{IDEA}{key}\n"),
    )
    .unwrap();
    told(
        resume(&fixture, &project, ["--phase", "requirements"]),
        "context/idea.md",
        "line 2)",
    );
    assert_eq!(server.requests().len(), 1);
}

/// Killed when all is staged and before the ledger knows of it: the ledger is held from the moment of the question on.
#[test]
fn kill_after_staging_is_reported_and_recovered() {
    let holder: Arc<Mutex<Option<LedgerHolder>>> = Arc::default();
    let slot = Arc::clone(&holder);
    let ledger: Arc<Mutex<Option<std::path::PathBuf>>> = Arc::default();
    let place = Arc::clone(&ledger);
    let server = server(move |phase, _| {
        if let Some(ledger) = place.lock().unwrap().take_if(|_| phase == "design") {
            *slot.lock().unwrap() = Some(LedgerHolder::new(&ledger));
        }
        None
    });
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    spec(&fixture, &project, []).ok();
    *ledger.lock().unwrap() = Some(fixture.data().join("ledger.db"));
    let mut command = fixture
        .call(["resume", SPEC, "--phase", "design"])
        .current_dir(&project)
        .command();
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let staging = spec_dir(&project).join("staging");
    wait_for("the work to be staged", || {
        staging.join("receipt.json").exists()
    });
    child.kill().unwrap();
    child.wait().unwrap();
    drop(holder.lock().unwrap().take());
    assert!(
        staging.exists(),
        "it was killed while it waited for the ledger"
    );
    assert_eq!(receipts(&project).len(), 1);

    let gate = at(
        &fixture,
        &project,
        ["gate", SPEC, "--min-phase", "requirements", "--json"],
    )
    .exits(1)
    .json();
    let found = &gate["findings"][0];
    assert_eq!(
        (
            found["code"].as_str(),
            gate["findings"].as_array().unwrap().len()
        ),
        (Some("gate-promotion-unfinished"), 1),
        "{gate:#}"
    );
    let hint = found["hint"].as_str().unwrap();
    assert!(
        hint.contains("They are complete in staging/")
            && hint.contains("`crucible resume export-data`"),
        "{hint}"
    );
    let status = at(&fixture, &project, ["status", SPEC]).ok();
    assert!(
        status.stdout.contains("gate-promotion-unfinished"),
        "{}",
        status.stdout
    );
    // On a machine that did not begin it, it is somebody else's.
    let elsewhere = fixture.call(["gate", SPEC, "--json"]).current_dir(&project);
    let elsewhere = elsewhere
        .env("CRUCIBLE_HOME", fixture.path("other"))
        .run()
        .exits(1);
    assert!(
        elsewhere.stdout.contains("gate-promotion-foreign"),
        "{}",
        elsewhere.stdout
    );

    resume(&fixture, &project, ["--dry-run"]).ok();
    assert!(!staging.exists());
    at(&fixture, &project, ["gate", SPEC, "--min-phase", "design"]).ok();
    at(&fixture, &project, ["ledger", "verify"]).ok();
    assert_eq!(
        server.completions().len(),
        2,
        "the design is not asked for again"
    );
}
