//! What `--apply-fixups` applies: what waited when the command began and nothing else, between its hooks, under the lock.

use std::path::Path;

use crucible_model::{Digest, to_canonical_json};
use crucible_testkit::{FakeApi, Reply};
use serde_json::{Value, json};

use super::support::{
    RECEIPT_SCHEMA, REVIEW, SPEC, answering, asked, at, newest, project, receipts, resume, server,
    spec, spec_dir, valid,
};
use crate::support::{Fixture, WRONG, right, whole_file};

fn area(project: &Path) -> String {
    std::fs::read_to_string(project.join("src/area.py")).unwrap()
}

fn count(server: &FakeApi, phase: &str) -> usize {
    asked(server)
        .iter()
        .filter(|question| **question == phase)
        .count()
}

fn config(project: &Path, text: &str) {
    std::fs::write(project.join(".crucible/config.toml"), text).unwrap();
}

fn hook(moment: &str, script: &str) -> String {
    let command = json!(["sh", "-c", script]);
    format!(
        "[hooks.check]\non = \"{moment}\"\nphases = [\"fixup\"]\ncommand = {command}\non_fail = \"fail\"\n"
    )
}

#[test]
fn apply_uses_only_fixups_pending_at_start() {
    let mut reviews = 0;
    let server = server(move |phase, _| {
        reviews += u64::from(phase == "review");
        (phase == "review")
            .then(|| Reply::Answer(REVIEW.replace("a sum", &format!("a sum ({reviews})"))))
    });
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    spec(&fixture, &project, ["--through", "review"]).ok();
    for waits in [
        "no pending fixup matches the current files",
        "applied fixups: 1 file",
    ] {
        let ran = resume(&fixture, &project, ["--apply-fixups"]).ok();
        assert!(ran.stdout.contains(waits), "{}", ran.stdout);
        let is_first = waits.starts_with("no pending fixup");
        assert_eq!(
            area(&project),
            if is_first { WRONG.to_owned() } else { right() },
            "{}",
            ran.stdout
        );
        assert_eq!(
            is_first,
            ran.stdout.contains("--phase fixup --apply-fixups"),
            "{}",
            ran.stdout
        );
        assert_eq!(count(&server, "fixup"), 1, "it is proposed once");
    }
    // Applied and as it was: nobody is asked, and there is no receipt of nothing.
    let before = receipts(&project).len();
    for second_lines in [
        &["--apply-fixups"][..],
        &["--phase", "fixup", "--apply-fixups"],
    ] {
        let call = fixture.call(["resume", SPEC]).current_dir(&project);
        let ran = second_lines
            .iter()
            .fold(call, |call, option| call.arg(option))
            .run()
            .ok();
        assert!(
            ran.stdout.contains("no fixup is pending; none was applied"),
            "{}",
            ran.stdout
        );
    }
    let result = resume(&fixture, &project, ["--apply-fixups", "--json"]).ok();
    assert_eq!(
        (result.json()["ran"].clone(), result.stderr.as_str()),
        (json!([]), "")
    );
    assert_eq!(
        (receipts(&project).len(), count(&server, "fixup")),
        (before, 1)
    );
    // Another review: what was made from the old one counts no more, and the new proposal waits again.
    std::fs::write(project.join("src/area.py"), WRONG).unwrap();
    resume(&fixture, &project, ["--phase", "review"]).ok();
    resume(&fixture, &project, ["--phase", "fixup", "--apply-fixups"]).ok();
    assert_eq!(
        (area(&project).as_str(), count(&server, "fixup")),
        (WRONG, 2)
    );
    assert_eq!(newest(&project)["phases"][0]["fixups"]["stage"], "pending");
}

#[test]
fn useless_apply_is_refused_with_correct_command() {
    let server = answering();
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    let refused = |ran: crate::support::Ran| {
        let ran = ran.exits(2);
        assert!(
            ran.stderr
                .contains("`crucible resume export-data --phase fixup --apply-fixups`"),
            "{}",
            ran.stderr
        );
    };
    refused(spec(&fixture, &project, ["--apply-fixups"]));
    refused(spec(
        &fixture,
        &project,
        ["--through", "final", "--apply-fixups", "--dry-run"],
    ));
    assert!(
        !spec_dir(&project).exists(),
        "nothing is made for what makes no sense"
    );
    spec(&fixture, &project, ["--through", "review"]).ok();
    refused(resume(
        &fixture,
        &project,
        ["--phase", "design", "--apply-fixups"],
    ));
    refused(resume(
        &fixture,
        &project,
        ["--phase", "fixup", "--apply-fixups", "--dry-run"],
    ));
    refused(spec(
        &fixture,
        &project,
        ["--through", "tasks", "--apply-fixups"],
    ));
    assert_eq!(
        (receipts(&project).len(), server.completions().len()),
        (4, 4)
    );
    // Where one waits, it is applied before the phase runs.
    resume(&fixture, &project, ["--phase", "fixup"]).ok();
    let ran = resume(&fixture, &project, ["--phase", "design", "--apply-fixups"]).ok();
    assert!(
        ran.stdout.starts_with("applied fixups: 1 file\n"),
        "{}",
        ran.stdout
    );
    assert_eq!(area(&project), right());
    assert_eq!(asked(&server)[5..], ["design"]);
}

#[test]
fn failing_hook_before_fixups_keeps_them_pending() {
    let server = answering();
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    spec(&fixture, &project, ["--through", "fixup"]).ok();
    config(&project, &hook("pre_phase", "cat > told.json; exit 3"));
    let ran = resume(&fixture, &project, ["--apply-fixups"]).exits(1);
    assert!(
        ran.stderr.contains("the hook check failed") && ran.stderr.contains("The fixup is pending"),
        "{}",
        ran.stderr
    );
    assert_eq!(area(&project), WRONG);
    let receipt = newest(&project);
    valid(&receipt, RECEIPT_SCHEMA);
    let phase = &receipt["phases"][0];
    assert_eq!(
        (
            &receipt["exit_code"],
            &phase["status"],
            &phase["error"]["class"],
            &phase["fixups"]
        ),
        (&json!(1), &json!("failed"), &json!("hook"), &Value::Null)
    );
    assert_eq!(
        (
            &phase["hooks"][0]["moment"],
            &phase["hooks"][0]["exit_code"]
        ),
        (&json!("pre_phase"), &json!(3))
    );
    let document: Value =
        serde_json::from_slice(&std::fs::read(project.join("told.json")).unwrap()).unwrap();
    assert_eq!(
        (&document["phase"], &document["receipt_id"]),
        (&json!("fixup"), &receipt["receipt_id"])
    );
    config(&project, "");
    resume(&fixture, &project, ["--apply-fixups"]).ok();
    assert_eq!((area(&project), count(&server, "fixup")), (right(), 1));
    at(
        &fixture,
        &project,
        [
            "gate",
            SPEC,
            "--min-phase",
            "fixup",
            "--fail-on-pending-fixups",
        ],
    )
    .ok();
}

#[test]
fn failing_post_hook_records_applied_fixups() {
    let server = answering();
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    spec(&fixture, &project, ["--through", "fixup"]).ok();
    config(&project, &hook("post_phase", "cat > told.json; exit 4"));
    resume(&fixture, &project, ["--apply-fixups"]).exits(1);
    assert_eq!(area(&project), right());
    let receipt = newest(&project);
    valid(&receipt, RECEIPT_SCHEMA);
    let phase = &receipt["phases"][0];
    assert_eq!(
        (
            &receipt["exit_code"],
            &phase["status"],
            &phase["fixups"]["stage"],
            &phase["error"]["class"]
        ),
        (
            &json!(1),
            &json!("failed"),
            &json!("applied"),
            &json!("hook")
        )
    );
    assert_eq!(phase["hooks"][0]["exit_code"], 4);
    let document: Value =
        serde_json::from_slice(&std::fs::read(project.join("told.json")).unwrap()).unwrap();
    assert_eq!(
        document["artifact"]["path"],
        ".crucible/specs/export-data/artifacts/40-fixup.md"
    );
    at(&fixture, &project, ["gate", SPEC, "--min-phase", "fixup"]).exits(1);
    // The hook passes: the application comes to its end, and nobody is asked.
    config(&project, &hook("post_phase", "true"));
    resume(&fixture, &project, ["--apply-fixups"]).ok();
    assert_eq!((area(&project), count(&server, "fixup")), (right(), 1));
    assert_eq!(newest(&project)["phases"][0]["fixups"]["stage"], "applied");
    at(
        &fixture,
        &project,
        [
            "gate",
            SPEC,
            "--min-phase",
            "fixup",
            "--fail-on-pending-fixups",
        ],
    )
    .ok();
}

#[test]
fn hook_drafts_are_removed_after_run_or_kill() {
    let server = answering();
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    let context = spec_dir(&project).join("context");
    std::fs::create_dir_all(&context).unwrap();
    std::fs::write(
        context.join("requirements-20260101-000000-0001.draft.md"),
        "of a killed run",
    )
    .unwrap();
    std::fs::write(context.join("notes.draft.md"), "somebody's own").unwrap();
    for (script, code) in [("cat > told.json; exit 3", 1), ("cat > told.json", 0)] {
        config(
            &project,
            &hook("post_phase", script).replace("\"fixup\"", "\"requirements\""),
        );
        spec(&fixture, &project, []).exits(code);
        let json: Value =
            serde_json::from_slice(&std::fs::read(project.join("told.json")).unwrap()).unwrap();
        assert!(
            json["artifact"]["path"]
                .as_str()
                .unwrap()
                .ends_with(".draft.md"),
            "{json}"
        );
        let left = std::fs::read_dir(&context).unwrap();
        let left: Vec<String> = left
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        let drafts: Vec<&String> = left
            .iter()
            .filter(|name| name.ends_with(".draft.md"))
            .collect();
        assert_eq!(drafts, ["notes.draft.md"]);
    }
}

#[test]
fn shown_file_without_finding_stays_unchanged() {
    let both = format!(
        "{}{}",
        whole_file("src/area.py", &right()),
        whole_file("README.md", "# Bought\n")
    );
    let mut answers = vec![both.clone(), both, whole_file("src/area.py", &right())].into_iter();
    let server =
        server(move |phase, _| (phase == "fixup").then(|| Reply::Answer(answers.next().unwrap())));
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    let lines = ["--through", "fixup", "--context", "README.md"];
    let call = fixture
        .call(["spec", SPEC])
        .args(lines)
        .env("CRUCIBLE_SPEC_ATTEMPTS", "1");
    let ran = super::support::with_idea(call, &project, super::support::IDEA).exits(1);
    assert!(
        ran.stderr.contains("fixup-file-not-named") && ran.stderr.contains("README.md"),
        "{}",
        ran.stderr
    );
    assert!(newest(&project)["phases"][0]["fixups"].is_null());
    // The correction is told which files it may change.
    let ran = resume(
        &fixture,
        &project,
        ["--phase", "fixup", "--context", "README.md"],
    )
    .ok();
    assert!(
        ran.stdout
            .contains("proposed fixups: 1 file\n  src/area.py +1 -1\n"),
        "{}",
        ran.stdout
    );
    let corrected = server.completions().last().unwrap().conversation();
    assert!(
        corrected.contains("change only what findings name: src/area.py"),
        "{corrected}"
    );
}

/// The record of a change of files lies in Crucible's own directory; one that comes with the project is none.
#[test]
fn change_record_in_project_has_no_effect() {
    let server = answering();
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    spec(&fixture, &project, ["--through", "fixup"]).ok();
    let patch = newest(&project)["phases"][0]["fixups"]["patch"]["sha256"].clone();
    std::fs::write(project.join("README.md"), "# Kept\n").unwrap();
    let token = "0".repeat(32);
    let workflows = project.join(".github/workflows");
    std::fs::create_dir_all(&workflows).unwrap();
    std::fs::write(
        workflows.join(format!(".crucible-edit-{token}-0.new")),
        "on: push\n",
    )
    .unwrap();
    let record = json!({
        "schema_version": "crucible-tree-edit-v1", "stage": "ready", "purpose": patch, "token": token, "made": [],
        "entries": [
            {"path": ".github/workflows/evil.yml", "before": null, "after": Digest::compute(b"on: push\n")},
            {"path": "README.md", "before": Digest::compute(b"# Kept\n"), "after": null},
        ],
    });
    std::fs::write(
        spec_dir(&project).join("context/fixup-journal.json"),
        record.to_string(),
    )
    .unwrap();
    let ran = resume(&fixture, &project, ["--phase", "fixup", "--apply-fixups"]).ok();
    assert!(!ran.stderr.contains("killed"), "{}", ran.stderr);
    assert_eq!(area(&project), right());
    assert!(!workflows.join("evil.yml").exists());
    assert_eq!(
        std::fs::read_to_string(project.join("README.md")).unwrap(),
        "# Kept\n"
    );
}

#[test]
fn interrupted_fixup_is_settled_before_phase() {
    let server = answering();
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    spec(&fixture, &project, ["--through", "fixup"]).ok();
    // Killed before the new content took the place of the old one.
    let fixup = newest(&project)["phases"][0]["fixups"].clone();
    let (token, file) = ("0".repeat(32), &fixup["files"][0]);
    let record = json!({
        "schema_version": "crucible-tree-edit-v1", "stage": "ready", "token": token, "made": [],
        "purpose": fixup["patch"]["sha256"],
        "entries": [{"path": "src/area.py", "before": file["before"], "after": file["after"]}],
    });
    let root = Digest::compute(project.canonicalize().unwrap().to_str().unwrap().as_bytes());
    let records = fixture.data().join("fixups");
    std::fs::create_dir_all(&records).unwrap();
    let place = records.join(format!("{root}-{SPEC}.json"));
    std::fs::write(&place, record.to_string()).unwrap();
    std::fs::write(
        project.join(format!("src/.crucible-edit-{token}-0.new")),
        right(),
    )
    .unwrap();
    let ran = resume(&fixture, &project, ["--phase", "review"]).ok();
    let messages = ["was killed while it applied a fixup", "src/area.py"];
    assert!(
        messages.iter().all(|message| ran.stderr.contains(message)),
        "{}",
        ran.stderr
    );
    let seen = server.completions().last().unwrap().conversation();
    assert!(
        seen.contains("width * height") && !seen.contains("return width + height"),
        "{seen}"
    );
    assert!(!place.exists());
    assert_eq!(
        (
            area(&project),
            std::fs::read_dir(project.join("src")).unwrap().count()
        ),
        (right(), 1)
    );
}

/// A diff with a receipt that names it, as nobody could tell from another, but for the ledger.
#[test]
fn forged_proposal_is_neither_applied_nor_used() {
    let server = answering();
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    spec(&fixture, &project, ["--through", "fixup"]).ok();
    let diff = spec_dir(&project).join("artifacts/40-fixup.diff");
    let evil = std::fs::read_to_string(&diff)
        .unwrap()
        .replace("width * height", "evil()");
    std::fs::write(&diff, &evil).unwrap();
    let mut receipt = newest(&project);
    let path = spec_dir(&project).join(format!(
        "receipts/{}.json",
        receipt["receipt_id"].as_str().unwrap()
    ));
    let digest = json!(Digest::compute(evil.as_bytes()));
    let phase = &mut receipt["phases"][0];
    phase["fixups"]["patch"] =
        json!({"path": "artifacts/40-fixup.diff", "sha256": digest, "bytes": evil.len()});
    phase["outputs"][1] = phase["fixups"]["patch"].clone();
    let after = right().replace("width * height", "evil()");
    phase["fixups"]["files"][0]["after"] = json!(Digest::compute(after.as_bytes()));
    receipt.as_object_mut().unwrap().remove("digest");
    receipt["digest"] = json!(Digest::compute(&to_canonical_json(&receipt).unwrap()));
    std::fs::write(&path, to_canonical_json(&receipt).unwrap()).unwrap();
    // What is made from it may not run, and it is not applied: the phase runs anew.
    let ran = resume(&fixture, &project, ["--phase", "final"]).exits(2);
    assert!(ran.stderr.contains("cannot be trusted"), "{}", ran.stderr);
    resume(&fixture, &project, ["--apply-fixups"]).ok();
    assert_eq!(
        (area(&project).as_str(), count(&server, "fixup")),
        (WRONG, 2)
    );
    resume(&fixture, &project, ["--apply-fixups"]).ok();
    assert_eq!(area(&project), right());
}

/// The receipt in `staging/`.
fn newest_staged(dir: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(dir.join("staging/receipt.json")).unwrap()).unwrap()
}

#[test]
fn promotion_of_killed_process_is_completed_first() {
    let server = answering();
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    spec(&fixture, &project, ["--through", "design"]).ok();
    // Killed after the ledger knew and before the files were moved.
    let (dir, id) = (
        spec_dir(&project),
        newest(&project)["receipt_id"].as_str().unwrap().to_owned(),
    );
    std::fs::create_dir_all(dir.join("staging/artifacts")).unwrap();
    std::fs::rename(
        dir.join("artifacts/10-design.md"),
        dir.join("staging/artifacts/10-design.md"),
    )
    .unwrap();
    std::fs::rename(
        dir.join(format!("receipts/{id}.json")),
        dir.join("staging/receipt.json"),
    )
    .unwrap();
    super::forged::mark(&fixture, &project, &newest_staged(&dir));
    resume(&fixture, &project, []).ok();
    assert_eq!(asked(&server), ["requirements", "design", "tasks"]);
}

#[test]
fn blocking_hook_keeps_paid_answers() {
    let mut corrections = 0;
    let server = server(move |phase, request| {
        if phase != "requirements" {
            return None;
        }
        if !request
            .conversation()
            .contains("A first answer was refused")
        {
            return Some(Reply::Answer(
                "I have written the requirements document.".to_owned(),
            ));
        }
        corrections += 1;
        (corrections == 1).then_some(Reply::Status(401))
    });
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    spec(&fixture, &project, []).exits(70);
    assert_eq!(newest(&project)["phases"][0]["attempts"], 2);
    config(
        &project,
        &hook("pre_phase", "exit 1").replace("\"fixup\"", "\"requirements\""),
    );
    spec(&fixture, &project, []).exits(1);
    config(&project, "");
    spec(&fixture, &project, []).ok();
    assert_eq!(
        server.completions().len(),
        3,
        "the first answer was paid for once"
    );
}
