//! Tests of reports after a failure: changed files are named, attempts whose hooks ran have a receipt, and
//! options that could do nothing are refused.

use std::path::Path;
use std::process::{Child, Stdio};

use serde_json::json;

use super::support::{
    LedgerHolder, SPEC, answering, at, newest, project, receipts, resume, server, spec, spec_dir,
};
use crate::crawl::support::wait_for;
use crate::support::{Fixture, right};

/// Hooks that run for every phase before it, or after a fixup is applied.
fn hook(moment: &str, script: &str) -> String {
    let command = json!(["sh", "-c", script]);
    format!(
        "[hooks.check]\non = \"{moment}\"\ncommand = {command}\non_fail = \"fail\"\ntimeout_s = 600\n"
    )
}

fn config(project: &Path, text: &str) {
    std::fs::write(project.join(".crucible/config.toml"), text).unwrap();
}

fn area(project: &Path) -> String {
    std::fs::read_to_string(project.join("src/area.py")).unwrap()
}

/// `--apply-fixups` that waits in its hook after the files are changed, until there is a file `go`.
fn applying(fixture: &Fixture, project: &Path) -> Child {
    config(
        project,
        &hook(
            "post_phase",
            "touch at; while [ ! -e go ]; do sleep 0.05; done",
        ),
    );
    let call = fixture.call([
        "resume",
        SPEC,
        "--phase",
        "fixup",
        "--apply-fixups",
        "--json",
    ]);
    let mut command = call.current_dir(project).command();
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for("the hook after the fixup", || project.join("at").exists());
    child
}

/// What the command ended with: its code and its error.
fn ended(project: &Path, child: Child) -> (Option<i32>, String) {
    std::fs::write(project.join("go"), "").unwrap();
    let output = child.wait_with_output().unwrap();
    let stderr = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(stderr).unwrap())
}

#[test]
fn lost_lock_after_changes_names_files_and_command() {
    let server = answering();
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    spec(&fixture, &project, ["--through", "fixup"]).ok();
    let child = applying(&fixture, &project);
    assert_eq!(area(&project), right());
    resume(
        &fixture,
        &project,
        ["--phase", "fixup", "--dry-run", "--force"],
    )
    .ok();
    let (code, output) = ended(&project, child);
    assert_eq!(code, Some(9), "{output}");
    for part in [
        "--force",
        "the files are changed: src/area.py",
        "--phase fixup --apply-fixups` again for the receipt",
    ] {
        assert!(output.contains(part), "{part}: {output}");
    }
    assert!(
        !output.contains("nothing of this run was kept") && !output.contains("no file was changed"),
        "{output}"
    );
    resume(&fixture, &project, ["--phase", "fixup", "--apply-fixups"]).ok();
    assert_eq!(newest(&project)["phases"][0]["fixups"]["stage"], "applied");
}

#[test]
fn failed_receipt_write_reports_changed_files() {
    let server = answering();
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    spec(&fixture, &project, ["--through", "fixup"]).ok();
    let child = applying(&fixture, &project);
    // Nothing is promoted over a directory.
    let report = spec_dir(&project).join("artifacts/40-fixup.md");
    let stored_bytes = std::fs::read(&report).unwrap();
    std::fs::remove_file(&report).unwrap();
    std::fs::create_dir(&report).unwrap();
    let (code, output) = ended(&project, child);
    assert_eq!(code, Some(1), "{output}");
    for part in [
        "a directory has its name",
        "the files are changed: src/area.py",
        "again for the receipt",
    ] {
        assert!(output.contains(part), "{part}: {output}");
    }
    let receipt = newest(&project);
    assert_eq!(
        (
            &receipt["phases"][0]["status"],
            &receipt["phases"][0]["fixups"]["stage"],
            &receipt["exit_code"]
        ),
        (&json!("failed"), &json!("applied"), &json!(1))
    );
    std::fs::remove_dir(&report).unwrap();
    std::fs::write(&report, stored_bytes).unwrap();
    resume(&fixture, &project, ["--phase", "fixup", "--apply-fixups"]).ok();
    assert_eq!(newest(&project)["phases"][0]["status"], "success");
}

#[test]
fn mistyped_context_is_refused_before_hooks_and_spec() {
    let server = answering();
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    config(&project, &hook("pre_phase", "touch ran"));
    for (named, message) in [
        ("src/aera.py", "src/ has area.py"),
        ("docs/*.md", "it matches no file"),
    ] {
        let ran = spec(&fixture, &project, ["--context", named]).exits(2);
        assert!(ran.stderr.contains(message), "{}", ran.stderr);
    }
    assert!(!project.join("ran").exists() && !spec_dir(&project).exists());
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn attempt_with_hooks_always_leaves_a_receipt() {
    let server = answering();
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    // The file is there when it is named, and no text when it is read.
    config(&project, &hook("pre_phase", "printf '\\000' > src/area.py"));
    let ran = spec(&fixture, &project, ["--context", "src/area.py"]).exits(2);
    assert!(ran.stderr.contains("src/area.py"), "{}", ran.stderr);
    let receipt = newest(&project);
    let phase = &receipt["phases"][0];
    assert_eq!(
        (
            &receipt["exit_code"],
            &phase["error"]["class"],
            &phase["hooks"][0]["name"]
        ),
        (&json!(2), &json!("usage"), &json!("check"))
    );
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn failed_recording_is_reported_without_changing_exit_code() {
    let place = std::sync::Arc::new(std::sync::Mutex::new(std::path::PathBuf::new()));
    let gone = std::sync::Arc::clone(&place);
    let server = server(move |_, _| {
        let _gone_already = std::fs::remove_dir(&*gone.lock().unwrap());
        None
    });
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    *place.lock().unwrap() = project.join("records");
    std::fs::create_dir(project.join("records")).unwrap();
    let ran = spec(&fixture, &project, ["--record", "records/calls.jsonl"]).ok();
    assert!(
        ran.stderr
            .contains("warning: the calls of requirements are not in the recording"),
        "{}",
        ran.stderr
    );
    let receipt = newest(&project);
    assert_eq!(
        (&receipt["exit_code"], &receipt["phases"][0]["status"]),
        (&json!(0), &json!("success"))
    );
}

#[test]
fn options_that_could_do_nothing_are_refused() {
    let server = answering();
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    let ran = spec(&fixture, &project, ["--dry-run", "--record", "calls.jsonl"]).exits(2);
    assert!(
        ran.stderr.contains("--record has nothing to write"),
        "{}",
        ran.stderr
    );
    for options in [&["--allow-path", "src/new.py"][..], &["--allow-links"]] {
        let run = |before: &[&str]| {
            let call = fixture.call(["spec", SPEC]).current_dir(&project);
            before
                .iter()
                .chain(options)
                .fold(call, |call, option| call.arg(option))
                .run()
                .exits(2)
        };
        for before in [
            &[][..],
            &["--through", "review"],
            &["--through", "final", "--dry-run"],
        ] {
            let ran = run(before);
            let message = format!("so {} has no effect", options[0]);
            assert!(ran.stderr.contains(&message), "{before:?}: {}", ran.stderr);
        }
    }
    assert!(!spec_dir(&project).exists());
    spec(&fixture, &project, []).ok();
    for phase in ["design", "final"] {
        let ran = resume(&fixture, &project, ["--phase", phase, "--allow-links"]).exits(2);
        assert!(
            ran.stderr.contains("so --allow-links has no effect"),
            "{}",
            ran.stderr
        );
    }
    assert_eq!(receipts(&project).len(), 1);
}

#[test]
fn recording_into_git_or_crucible_directory_is_refused() {
    let server = answering();
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    std::fs::create_dir(project.join(".git")).unwrap();
    for place in [".crucible/calls.jsonl", ".git/calls.jsonl"] {
        let ran = spec(&fixture, &project, ["--record", place]).exits(2);
        assert!(
            ran.stderr.contains("keeps its own files there"),
            "{}",
            ran.stderr
        );
        assert!(!project.join(place).exists());
    }
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn git_and_crucible_files_are_no_idea_source() {
    let server = answering();
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    std::fs::create_dir_all(project.join(".git")).unwrap();
    std::fs::write(project.join(".git/config"), "[remote]\n").unwrap();
    std::os::unix::fs::symlink(".git", project.join("notes")).unwrap();
    for source in [".git", ".git/config", "notes", "notes/config", ".crucible"] {
        let ran = spec(&fixture, &project, ["--source", source]).exits(2);
        assert!(
            ran.stderr.contains("keeps its own files there"),
            "{source}: {}",
            ran.stderr
        );
    }
    assert_eq!(server.requests().len(), 0);
    // A directory that holds one is taken without it, and that is said.
    config(&project, "# of nobody's interest\n");
    let ran = spec(&fixture, &project, ["--source", "."]).ok();
    assert!(
        ran.stderr.contains("./.crucible is left out"),
        "{}",
        ran.stderr
    );
    let requests = server.completions()[0].conversation();
    assert!(
        !requests.contains("of nobody's interest") && requests.contains("# Shop"),
        "{requests}"
    );
}

#[test]
fn removed_artifact_is_recreated_by_next_command() {
    let server = answering();
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    spec(&fixture, &project, ["--through", "design"]).ok();
    std::fs::remove_file(spec_dir(&project).join("artifacts/00-requirements.md")).unwrap();
    let ran = resume(&fixture, &project, []).ok();
    assert!(ran.stdout.starts_with("requirements "), "{}", ran.stdout);
    assert!(
        spec_dir(&project)
            .join("artifacts/00-requirements.md")
            .exists()
    );
    at(
        &fixture,
        &project,
        ["gate", SPEC, "--min-phase", "requirements"],
    )
    .ok();
}

#[test]
fn gate_names_command_for_missing_phases() {
    let server = answering();
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    spec(&fixture, &project, []).ok();
    let ran = at(&fixture, &project, ["gate", SPEC]).exits(1);
    assert!(
        ran.stdout
            .contains("crucible spec export-data --through tasks"),
        "{}",
        ran.stdout
    );
    // In words as a status has them.
    assert!(
        ran.stdout.contains(" requirements  done "),
        "{}",
        ran.stdout
    );
}

#[test]
fn replay_without_the_phase_reports_it() {
    let server = answering();
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    spec(&fixture, &project, ["--record", "calls.jsonl"]).ok();
    let played = [
        "--phase",
        "design",
        "--provider",
        "replay",
        "--cassette",
        "calls.jsonl",
    ];
    let ran = resume(&fixture, &project, played).exits(2);
    assert!(
        ran.stderr
            .contains("and none of \"design\": only of requirements; record again"),
        "{}",
        ran.stderr
    );
    assert_eq!(
        newest(&project)["phases"][0]["error"]["class"],
        "configuration"
    );
}

/// Takes ten seconds: as long as the program waits for a ledger that is held.
#[test]
fn locked_ledger_is_detected_before_model_calls() {
    let server = answering();
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    spec(&fixture, &project, []).ok();
    let holder = LedgerHolder::new(&fixture.data().join("ledger.db"));
    resume(&fixture, &project, ["--phase", "design"]).exits(9);
    assert_eq!(
        server.completions().len(),
        1,
        "nobody was asked for what cannot be recorded"
    );
    drop(holder);
    resume(&fixture, &project, ["--phase", "design"]).ok();
}
