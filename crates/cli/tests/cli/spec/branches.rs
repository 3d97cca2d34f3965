//! Specs and version control: what two branches did is merged, and what a merge leaves is healed by running the phase again.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::support::{SPEC, answering, at, newest, project, receipts, resume, spec};
use crate::support::Fixture;

fn git<const N: usize>(project: &Path, args: [&str; N]) {
    let identity = [
        "-c",
        "user.name=A Tester",
        "-c",
        "user.email=tester@example.com",
        "-c",
        "commit.gpgsign=false",
    ];
    let mut git = Command::new("git");
    git.args(identity).args(args).current_dir(project);
    git.env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null");
    let ran = git.output().unwrap();
    assert!(
        ran.status.success(),
        "git {args:?}: {}",
        String::from_utf8_lossy(&ran.stderr)
    );
}

fn commit(project: &Path) {
    git(project, ["add", "--all"]);
    git(project, ["commit", "--quiet", "--message", "the spec"]);
}

/// A design in an instant of its own: the names of receipts hold seconds.
fn design_later(fixture: &Fixture, project: &Path) -> String {
    std::thread::sleep(Duration::from_millis(1_100));
    resume(fixture, project, ["--phase", "design"]).ok();
    newest(project)["receipt_id"].as_str().unwrap().to_owned()
}

#[test]
fn merged_branches_are_repaired_by_rerunning_the_phase() {
    let server = answering();
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    spec(&fixture, &project, []).ok();
    git(&project, ["init", "--quiet", "--initial-branch", "main"]);
    commit(&project);
    git(&project, ["branch", "other"]);
    let own_text = design_later(&fixture, &project);
    commit(&project);
    git(&project, ["checkout", "--quiet", "other"]);
    let other_text = design_later(&fixture, &project);
    commit(&project);
    git(&project, ["checkout", "--quiet", "main"]);
    git(
        &project,
        ["merge", "--quiet", "--no-edit", "-X", "ours", "other"],
    );
    assert_ne!(own_text, other_text);
    assert_eq!(receipts(&project).len(), 3, "both are there, in one place");

    let gate = |code: i32| -> Value {
        at(
            &fixture,
            &project,
            ["gate", SPEC, "--min-phase", "design", "--json"],
        )
        .exits(code)
        .json()
    };
    let refused = gate(1);
    let findings = refused["findings"].as_array().unwrap();
    let doubled: Vec<&Value> = findings
        .iter()
        .filter(|finding| finding["code"] == "gate-receipt-doubled")
        .collect();
    let named = |id: &str| json!(format!("receipts/{id}.json"));
    assert_eq!(
        [&doubled[0]["subject"], &doubled[1]["subject"]],
        [&named(&other_text), &named(&own_text)]
    );
    let command = format!("crucible resume {SPEC} --phase design");
    for finding in doubled {
        assert!(
            finding["hint"].as_str().unwrap().contains(&command),
            "{finding:#}"
        );
    }
    let status = || {
        at(&fixture, &project, ["status", SPEC, "--json"])
            .ok()
            .json()
    };
    let document = status();
    assert_eq!(
        (
            &document["phase_statuses"][1]["status"],
            &document["next"]["command"]
        ),
        (&json!("damaged"), &json!(command))
    );

    resume(&fixture, &project, ["--phase", "design"]).ok();
    assert_eq!(gate(0)["findings"], json!([]));
    assert_eq!(
        (&status()["has_errors"], &status()["problems"]),
        (&json!(false), &json!([]))
    );
    assert_eq!(receipts(&project).len(), 4, "nothing was taken away");
    // Where no ledger knows of anything, as in CI, it is healed as well.
    let elsewhere = fixture
        .call(["gate", SPEC, "--min-phase", "design"])
        .current_dir(&project);
    elsewhere
        .env("CRUCIBLE_HOME", fixture.path("other"))
        .run()
        .ok();
}

#[test]
fn a_changed_idea_makes_the_requirements_stale() {
    let server = answering();
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    spec(&fixture, &project, []).ok();
    let gate = || {
        at(
            &fixture,
            &project,
            ["gate", SPEC, "--min-phase", "requirements", "--json"],
        )
    };
    gate().ok();
    let idea = project
        .join(".crucible/specs")
        .join(SPEC)
        .join("context/idea.md");
    std::fs::write(&idea, "users can delete their data\n").unwrap();
    assert_eq!(
        gate().exits(1).json()["findings"][0]["code"],
        "gate-phase-stale"
    );
    std::fs::remove_file(&idea).unwrap();
    assert_eq!(
        gate().exits(1).json()["findings"][0]["code"],
        "gate-phase-stale"
    );
}

#[test]
fn linked_specs_directory_is_reported_and_not_written() {
    let server = answering();
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    let outside = fixture.path("outside");
    std::fs::create_dir(&outside).unwrap();
    std::os::unix::fs::symlink(&outside, project.join(".crucible/specs")).unwrap();
    for ran in [
        spec(&fixture, &project, []),
        resume(&fixture, &project, ["--phase", "requirements"]),
        at(&fixture, &project, ["status", SPEC]),
        at(&fixture, &project, ["gate", SPEC]),
        at(
            &fixture,
            &project,
            ["template", "init", "rust-service", SPEC],
        ),
    ] {
        assert_ne!(ran.code, Some(0));
        assert!(ran.stderr.contains("not a link"), "{}", ran.stderr);
    }
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
    assert_eq!(server.completions().len(), 0, "no model is called");
}
