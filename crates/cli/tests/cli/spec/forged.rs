//! What somebody else put into a spec's directory, with digests that are right: `crucible resume` promotes none of it, `crucible gate` names it.

use std::path::{Path, PathBuf};

use crucible_model::{Digest, to_canonical_json};
use crucible_testkit::{FakeApi, Reply};
use serde_json::{Value, json};

use super::support::{
    SPEC, answering, artifact, at, newest, project, receipts, resume, server, spec, spec_dir,
};
use super::written::seal;
use crate::support::Fixture;

/// Marks a receipt as about to be promoted by this machine, as a process does that is killed right after.
pub(super) fn mark(fixture: &Fixture, project: &Path, receipt: &Value) {
    let key = Digest::compute(
        project
            .canonicalize()
            .unwrap()
            .as_os_str()
            .as_encoded_bytes(),
    );
    let records = fixture.data().join("fixups");
    std::fs::create_dir_all(&records).unwrap();
    let digest = receipt["digest"].as_str().unwrap();
    std::fs::write(
        records.join(format!("{key}-{SPEC}.staged")),
        format!("{digest}\n"),
    )
    .unwrap();
}

fn file(project: &Path, receipt: &Value) -> PathBuf {
    spec_dir(project)
        .join("receipts")
        .join(format!("{}.json", receipt["receipt_id"].as_str().unwrap()))
}

fn write(path: &Path, receipt: &mut Value) {
    seal(receipt);
    std::fs::write(path, to_canonical_json(receipt).unwrap()).unwrap();
}

/// What the gate finds that asks for `tasks` with these options, and its exit code.
fn codes<const N: usize>(
    fixture: &Fixture,
    project: &Path,
    options: [&str; N],
    code: i32,
) -> Vec<String> {
    let ran = fixture
        .call(["gate", SPEC, "--json"])
        .args(options)
        .current_dir(project)
        .run()
        .exits(code);
    let findings = ran.json()["findings"].as_array().unwrap().clone();
    findings
        .iter()
        .map(|finding| finding["code"].as_str().unwrap().to_owned())
        .collect()
}

/// The copy of a receipt at another place.
fn copied(receipt: &Value, place: u64) -> Value {
    let mut copy = receipt.clone();
    let id = receipt["receipt_id"].as_str().unwrap();
    copy["receipt_id"] = json!(format!("{}{place:04}", &id[..id.len() - 4]));
    copy["sequence"] = json!(place);
    copy
}

fn link(receipt: &Value) -> Value {
    json!({ "receipt_id": receipt["receipt_id"], "digest": receipt["digest"] })
}

#[test]
fn cloned_staging_is_reported_and_not_promoted() {
    let server = answering();
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    spec(&fixture, &project, ["--through", "design"]).ok();
    let dir = spec_dir(&project);
    let text = "# Design: another one\n";
    let mut forged = copied(&newest(&project), 3);
    forged["previous"] = link(&newest(&project));
    forged["last_real"] = link(&newest(&project));
    forged["last_success"] = link(&newest(&project));
    forged["phases"][0]["outputs"] = json!([{ "path": "artifacts/10-design.md", "sha256": Digest::compute(text.as_bytes()), "bytes": text.len() }]);
    std::fs::create_dir_all(dir.join("staging/artifacts")).unwrap();
    std::fs::write(dir.join("staging/artifacts/10-design.md"), text).unwrap();
    write(&dir.join("staging/receipt.json"), &mut forged);

    let before = artifact(&project, "10-design.md");
    for options in [
        ["--phase", "tasks", "--dry-run"],
        ["--phase", "tasks", "--force"],
    ] {
        let ran = fixture
            .call(["resume", SPEC])
            .args(options)
            .current_dir(&project)
            .run();
        assert_ne!(ran.code, Some(0));
        for part in [
            "did not write its content",
            "artifacts/10-design.md",
            "delete the directory",
        ] {
            assert!(ran.stderr.contains(part), "{options:?}: {}", ran.stderr);
        }
    }
    assert_eq!(
        (artifact(&project, "10-design.md"), receipts(&project).len()),
        (before, 2)
    );
    assert_eq!(
        codes(&fixture, &project, ["--min-phase", "design"], 1),
        ["gate-promotion-foreign"]
    );
    std::fs::remove_dir_all(dir.join("staging")).unwrap();
    resume(&fixture, &project, ["--phase", "tasks"]).ok();
    assert_eq!(codes(&fixture, &project, [], 0), [""; 0]);
}

/// A server that cannot be reached when it is asked for tasks for the second time.
fn failing_tasks() -> FakeApi {
    let mut tries = 0;
    server(move |phase, _| {
        tries += usize::from(phase == "tasks");
        (phase == "tasks" && tries == 2).then_some(Reply::Status(401))
    })
}

#[test]
fn forged_success_replacing_superseded_receipt_is_refused() {
    let server = failing_tasks();
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    spec(&fixture, &project, ["--through", "tasks"]).ok();
    let tasks = newest(&project);
    resume(&fixture, &project, ["--phase", "tasks"]).exits(70);
    let failed = newest(&project);
    resume(&fixture, &project, ["--phase", "design"]).ok();
    let replaced = newest(&project);
    resume(&fixture, &project, ["--phase", "design"]).ok();
    resume(&fixture, &project, ["--phase", "design"]).ok();
    assert_eq!(codes(&fixture, &project, [], 1), ["gate-phase-failed"]);
    let mut forged = copied(&tasks, 5);
    forged["previous"] = link(&failed);
    forged["last_real"] = link(&failed);
    forged["last_success"] = link(&tasks);
    std::fs::remove_file(file(&project, &replaced)).unwrap();
    let place = file(&project, &forged);
    write(&place, &mut forged);
    assert!(codes(&fixture, &project, [], 1).contains(&"gate-receipt-not-the-ledgers".to_owned()));
    let elsewhere = fixture.call(["gate", SPEC, "--json"]).current_dir(&project);
    let elsewhere = elsewhere
        .env("CRUCIBLE_HOME", fixture.path("other"))
        .run()
        .exits(1);
    assert!(
        elsewhere.stdout.contains("gate-receipt-chain-broken"),
        "{}",
        elsewhere.stdout
    );
    resume(&fixture, &project, ["--phase", "tasks"]).ok();
    assert_eq!(codes(&fixture, &project, [], 0), [""; 0]);
}

#[test]
fn reverted_fixup_is_reported_and_refused_on_request() {
    let server = answering();
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    spec(&fixture, &project, ["--through", "fixup"]).ok();
    let wrong = std::fs::read(project.join("src/area.py")).unwrap();
    resume(&fixture, &project, ["--phase", "fixup", "--apply-fixups"]).ok();
    let strict = ["--min-phase", "fixup", "--fail-on-pending-fixups"];
    assert_eq!(codes(&fixture, &project, strict, 0), [""; 0]);
    std::fs::write(project.join("src/area.py"), wrong).unwrap();
    assert_eq!(codes(&fixture, &project, [], 0), ["gate-fixup-not-in-tree"]);
    assert_eq!(
        codes(&fixture, &project, strict, 1),
        ["gate-fixup-not-in-tree"]
    );
    // What was changed otherwise since is nobody's business.
    std::fs::write(project.join("src/area.py"), "# another\n").unwrap();
    assert_eq!(codes(&fixture, &project, strict, 0), [""; 0]);
}

#[test]
fn own_receipts_pass_and_temporary_files_are_skipped() {
    let server = answering();
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    spec(&fixture, &project, ["--through", "final"]).ok();
    std::fs::write(spec_dir(&project).join("receipts/.tmp-aB3dE6"), "half").unwrap();
    let codes_found = codes(
        &fixture,
        &project,
        ["--min-phase", "final", "--max-phase-age", "1h"],
        0,
    );
    assert_eq!(codes_found, ["gate-fixups-pending"]);
    resume(&fixture, &project, ["--phase", "fixup", "--apply-fixups"]).ok();
    let strict = [
        "--min-phase",
        "fixup",
        "--max-phase-age",
        "1h",
        "--fail-on-pending-fixups",
    ];
    assert_eq!(codes(&fixture, &project, strict, 0), [""; 0]);
    assert_eq!(
        at(&fixture, &project, ["status", SPEC, "--json"])
            .ok()
            .json()["problems"],
        json!([])
    );
}

#[test]
fn failure_edited_into_dry_run_is_refused() {
    let server = failing_tasks();
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    spec(&fixture, &project, ["--through", "tasks"]).ok();
    resume(&fixture, &project, ["--phase", "tasks"]).exits(70);
    let failed = newest(&project);
    assert_eq!(
        failed["phases"][0]["status"], "failed",
        "or this test proves nothing"
    );
    let judged = |edit: &dyn Fn(&mut Value)| {
        let mut edited = failed.clone();
        edit(&mut edited);
        std::fs::write(file(&project, &failed), to_canonical_json(&edited).unwrap()).unwrap();
        let gate = fixture.call(["gate", SPEC, "--json"]).current_dir(&project);
        let ran = gate
            .env("CRUCIBLE_HOME", fixture.path("other"))
            .run()
            .exits(1);
        ran.json()["findings"][0]["code"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let unsealed = |edited: &mut Value| {
        let fields = edited.as_object_mut().unwrap();
        fields.remove("digest");
        fields.remove("schema_version");
        fields.insert("dry_run".to_owned(), json!(true));
    };
    assert_eq!(judged(&unsealed), "gate-receipt-edited");
    let resealed = |edited: &mut Value| {
        edited["dry_run"] = json!(true);
        seal(edited);
    };
    assert_eq!(judged(&resealed), "gate-evidence-contradictory");
}
