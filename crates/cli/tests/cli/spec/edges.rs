//! What lies around a spec: its settings, homes that are none, directories that are closed, and git.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crucible_spec::PhaseId;
use serde_json::json;

use super::support::{SPEC, answering, project, resume, spec, spec_dir};
use super::written::WrittenSpec;
use crate::support::Fixture;

const HOUR: Duration = Duration::from_secs(3_600);

/// What git says; it has to succeed.
#[track_caller]
fn git(fixture: &Fixture, at: &Path, args: &[&str]) -> String {
    let run = Command::new("git")
        .args(args)
        .current_dir(at)
        .env("HOME", fixture.home())
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        run.status.success(),
        "git {args:?}: {}{}",
        text(&run.stdout),
        text(&run.stderr)
    );
    text(&run.stdout)
}

#[test]
fn settings_that_are_not_a_file_are_error() {
    let fixture = Fixture::new();
    let mut written = WrittenSpec::new(fixture.path("project"));
    for phase in PhaseId::Tasks.up_to() {
        written.success(phase, HOUR);
    }
    let gate = || written.call(&fixture, ["gate", SPEC]).run();
    let user = fixture.home().join(".config/crucible/config.toml");
    for place in [written.root().join(".crucible/config.toml"), user] {
        gate().ok();
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        assert!(
            Command::new("mkfifo")
                .arg(&place)
                .status()
                .unwrap()
                .success()
        );
        let ran = gate().exits(2);
        assert!(
            ran.stderr.contains("config.toml: it is not a regular file"),
            "{}",
            ran.stderr
        );
        std::fs::remove_file(&place).unwrap();
        std::fs::create_dir(&place).unwrap();
        gate().exits(2);
        std::fs::remove_dir(&place).unwrap();
    }
}

#[test]
fn missing_home_is_tolerated_and_relative_one_refused() {
    let fixture = Fixture::new();
    let mut written = WrittenSpec::new(fixture.path("project"));
    for phase in PhaseId::Tasks.up_to() {
        written.success(phase, HOUR);
    }
    std::fs::write(
        written.root().join("workspace.yaml"),
        "version: \"1\"\nname: shop\nspecs: []\n",
    )
    .unwrap();
    for args in [
        vec!["gate", SPEC],
        vec!["status", SPEC],
        vec!["project", "status"],
    ] {
        let homeless = || {
            fixture
                .call(&args)
                .current_dir(written.root())
                .without_env("HOME")
                .without_env("CRUCIBLE_HOME")
        };
        homeless().run().ok();
        for home in ["relh", "."] {
            let ran = homeless().env("HOME", home).run().exits(2);
            assert!(
                ran.stderr.contains("HOME is not an absolute path"),
                "{args:?}: {}",
                ran.stderr
            );
        }
        homeless()
            .env("HOME", "relh")
            .env("CRUCIBLE_HOME", fixture.data())
            .run()
            .ok();
    }
    // A file where a user without a home would have one is the project's, and says nothing.
    std::fs::create_dir(written.root().join("crucible")).unwrap();
    std::fs::write(
        written.root().join("crucible/config.toml"),
        "[no]\nsuch = 1\n",
    )
    .unwrap();
    let homeless = fixture
        .call(["gate", SPEC])
        .current_dir(written.root())
        .without_env("HOME");
    homeless.without_env("CRUCIBLE_HOME").run().ok();
    assert!(!written.root().join("relh").exists());
}

#[test]
fn pipe_as_ledger_does_not_block() {
    let fixture = Fixture::new();
    let mut written = WrittenSpec::new(fixture.path("project"));
    written.success(PhaseId::Requirements, HOUR);
    std::fs::create_dir(fixture.data()).unwrap();
    assert!(
        Command::new("mkfifo")
            .arg(fixture.data().join("ledger.db"))
            .status()
            .unwrap()
            .success()
    );
    for args in [["gate", SPEC], ["status", SPEC]] {
        let ran = written.call(&fixture, args).run().exits(2);
        assert!(
            ran.stderr.contains("it is not a regular file"),
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn uninspectable_specs_are_not_taken_for_absent() {
    let fixture = Fixture::new();
    let root = fixture.path("project");
    std::fs::create_dir_all(root.join(".crucible")).unwrap();
    std::fs::write(root.join(".crucible/specs"), "").unwrap();
    let said = |args: [&str; 2]| {
        let ran = fixture.call(args).current_dir(&root).run();
        (
            ran.code,
            ran.stderr.lines().next().unwrap_or_default().to_owned(),
        )
    };
    let (gate, status) = (said(["gate", SPEC]), said(["status", SPEC]));
    assert_eq!(gate.0, Some(2), "{}", gate.1);
    assert_eq!(gate.1, status.1, "the same words");
    assert!(
        gate.1.contains("must be a directory, not a link"),
        "{}",
        gate.1
    );
}

#[test]
fn success_under_pinned_clock_is_reported_with_warning() {
    let fixture = Fixture::new();
    let mut written = WrittenSpec::new(fixture.path("project"));
    written.success_with(PhaseId::Requirements, HOUR, |value| {
        value["clock"] = json!("pinned")
    });
    let ran = written.call(&fixture, ["status", SPEC]).run().ok();
    let warning = "requirements warning: it was written under a pinned clock (CRUCIBLE_CLOCK): the gate refuses it";
    assert!(
        ran.stdout.lines().any(|line| line == warning),
        "{}",
        ran.stdout
    );
    written.success(PhaseId::Requirements, HOUR);
    let ran = written.call(&fixture, ["status", SPEC]).run().ok();
    assert!(!ran.stdout.contains("pinned"), "{}", ran.stdout);
}

#[test]
fn uncommittable_files_are_ignored_and_branches_merge() {
    let server = answering();
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    let commit = |message: &str| {
        git(&fixture, &project, &["add", "."]);
        git(&fixture, &project, &["commit", "-q", "-m", message]);
    };
    git(&fixture, &project, &["init", "-q", "-b", "main", "."]);
    spec(&fixture, &project, []).ok();
    commit("requirements");
    // Two branches work on one spec.
    git(&fixture, &project, &["checkout", "-q", "-b", "other"]);
    resume(&fixture, &project, ["--phase", "requirements"]).ok();
    commit("requirements again");
    git(&fixture, &project, &["checkout", "-q", "main"]);
    resume(&fixture, &project, ["--phase", "design"]).ok();
    commit("design");
    git(&fixture, &project, &["merge", "-q", "-m", "both", "other"]);
    let tracked = git(&fixture, &project, &["ls-files", ".crucible"]);
    assert!(
        tracked.contains(".crucible/.gitignore\n") && tracked.contains("/receipts/"),
        "{tracked}"
    );
    assert!(
        !tracked.contains("/lock") && !tracked.contains("calls.jsonl"),
        "{tracked}"
    );
    assert!(spec_dir(&project).join("lock").is_file());
    assert_eq!(git(&fixture, &project, &["status", "--short"]), "");

    // What a project says itself stays.
    let ignored = project.join(".crucible/.gitignore");
    std::fs::write(&ignored, "mine\n").unwrap();
    resume(&fixture, &project, ["--phase", "requirements"]).ok();
    fixture.call(["init"]).current_dir(&project).run().ok();
    assert_eq!(std::fs::read_to_string(&ignored).unwrap(), "mine\n");
}
