//! Ideas and documents that are on disk already.

use super::*;

#[test]
fn stored_idea_is_replaced_only_by_named_one() {
    let server = answering();
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    let dry = spec(&fixture, &project, ["--dry-run"]).ok();
    assert!(
        dry.stdout
            .ends_with("next: crucible spec export-data --source -\n"),
        "{}",
        dry.stdout
    );
    assert!(
        dry.stderr.contains("a dry run does not save the idea"),
        "{}",
        dry.stderr
    );
    spec(&fixture, &project, []).ok();
    let stored_bytes = std::fs::read(spec_dir(&project).join("context/idea.md")).unwrap();
    let ran = with_idea(
        fixture.call(["spec", SPEC]),
        &project,
        "the next line of a loop\n",
    )
    .ok();
    assert!(
        ran.stderr.contains("use `--source -` to read a new idea"),
        "{}",
        ran.stderr
    );
    assert_eq!(
        std::fs::read(spec_dir(&project).join("context/idea.md")).unwrap(),
        stored_bytes
    );
    assert_eq!(asked(&server).len(), 1);
    // An end that stays open keeps nobody waiting.
    let mut command = fixture.call(["spec", SPEC]).current_dir(&project).command();
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let open = child.stdin.take();
    assert!(child.wait().unwrap().success());
    drop(open);
    with_idea(
        fixture.call(["spec", SPEC, "--source", "-"]),
        &project,
        "something else\n",
    )
    .ok();
    assert_ne!(
        std::fs::read(spec_dir(&project).join("context/idea.md")).unwrap(),
        stored_bytes
    );
}

#[test]
fn hand_edited_artifact_is_kept_beside_its_replacement() {
    let server = answering();
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    spec(&fixture, &project, ["--through", "design"]).ok();
    let document = spec_dir(&project).join("artifacts/10-design.md");
    std::fs::write(&document, "my own words\n").unwrap();
    let ran = resume(&fixture, &project, ["--phase", "design"]).ok();
    let receipt = newest(&project);
    let name = format!(
        "{}.edited-10-design.md",
        receipt["receipt_id"].as_str().unwrap()
    );
    assert_eq!(
        std::fs::read_to_string(spec_dir(&project).join("context").join(&name)).unwrap(),
        "my own words\n"
    );
    assert!(ran.stderr.contains(&name), "{}", ran.stderr);
    assert_eq!(
        receipt["phases"][0]["warnings"][0]["type"],
        "artifact_edited"
    );
    // What the phase wrote itself is not an edit.
    resume(&fixture, &project, ["--phase", "design"]).ok();
    assert_eq!(newest(&project)["phases"][0]["warnings"], json!([]));
}

#[test]
fn gate_error_uses_the_requested_format() {
    let fixture = Fixture::new();
    let project = project(&fixture);
    let gate = |format: &str| {
        fixture
            .call(["gate", "no-such", "--format", format])
            .current_dir(&project)
            .run()
            .exits(2)
    };
    let log: Value = serde_json::from_str(&gate("sarif").stdout).unwrap();
    let invocation = &log["runs"][0]["invocations"][0];
    assert_eq!(
        (&invocation["executionSuccessful"], &invocation["exitCode"]),
        (&json!(false), &json!(2))
    );
    let why = invocation["toolExecutionNotifications"][0]["message"]["text"]
        .as_str()
        .unwrap();
    assert!(why.contains("no spec no-such"), "{why}");
    assert!(
        gate("github")
            .stdout
            .starts_with("::error title=crucible gate::there is no spec no-such")
    );
}
