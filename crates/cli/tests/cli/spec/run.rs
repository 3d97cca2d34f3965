//! `crucible spec` and `crucible resume`: phases from the idea to the end, corrected, tried dry, recorded and told as documents.

use std::process::Stdio;

use crucible_testkit::{FakeApi, Reply};
use serde_json::{Value, json};

use super::support::{
    DESIGN, IDEA, RECEIPT_SCHEMA, REQUIREMENTS, SPEC, answering, artifact, asked, at, newest,
    phase_of, project, receipts, resume, server, spec, spec_dir, valid, with_idea,
};
use crate::support::{Fixture, right};

mod kept_idea;

const SPEC_SCHEMA: &str = include_str!("../../../../../docs/schemas/spec-json.v1.schema.json");
const RESUME_SCHEMA: &str = include_str!("../../../../../docs/schemas/resume-json.v1.schema.json");

/// All six phases.
const ALL: [&str; 6] = [
    "requirements",
    "design",
    "tasks",
    "review",
    "fixup",
    "final",
];

#[test]
fn idea_becomes_requirements_and_names_next_command() {
    let server = answering();
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    let ran = spec(&fixture, &project, []).ok();
    assert_eq!(asked(&server), ["requirements"]);
    assert_eq!(artifact(&project, "00-requirements.md"), REQUIREMENTS);
    assert_eq!(
        std::fs::read_to_string(spec_dir(&project).join("context/idea.md")).unwrap(),
        IDEA
    );
    assert!(
        ran.stdout
            .contains(".crucible/specs/export-data/artifacts/00-requirements.md"),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stdout.contains("gpt-oss-20b (gateway)"),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stdout
            .ends_with("next: crucible resume export-data --phase design\n"),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stderr
            .contains("... requirements: asking gateway (gpt-oss-20b)"),
        "{}",
        ran.stderr
    );
    let receipt = newest(&project);
    valid(&receipt, RECEIPT_SCHEMA);
    assert_eq!(receipt["exit_code"], 0);
    assert_eq!(receipt["pipeline"]["execution_strategy"], "controlled");
    let phase = &receipt["phases"][0];
    assert_eq!(
        (&phase["phase_id"], &phase["status"]),
        (&json!("requirements"), &json!("success"))
    );
    assert_eq!(
        (&phase["llm"]["provider"], &phase["llm"]["model_used"]),
        (&json!("gateway"), &json!("gpt-oss-20b"))
    );
    assert_eq!(phase["inputs"][0]["path"], "context/idea.md");
    assert_eq!(phase["outputs"][0]["path"], "artifacts/00-requirements.md");
    assert_eq!(phase["attempts"], 1);
}

#[test]
fn all_phases_run_and_fixups_stay_pending() {
    let server = answering();
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    let ran = spec(
        &fixture,
        &project,
        ["--through", "final", "--context", "src/area.py"],
    )
    .ok();
    assert_eq!(asked(&server), ALL);
    assert!(
        ran.stdout.contains("return width * height"),
        "the fixup is shown: {}",
        ran.stdout
    );
    let before = std::fs::read_to_string(project.join("src/area.py")).unwrap();
    assert_eq!(
        before,
        crate::support::WRONG,
        "nothing is changed until somebody asks for it"
    );
    let values: Vec<Value> = receipts(&project);
    assert_eq!(values.len(), 6);
    for (receipt, phase) in values.iter().zip(ALL) {
        valid(receipt, RECEIPT_SCHEMA);
        assert_eq!(
            (
                &receipt["phases"][0]["phase_id"],
                &receipt["phases"][0]["status"]
            ),
            (&phase.into(), &"success".into())
        );
    }
    assert_eq!(values[4]["phases"][0]["fixups"]["stage"], "pending");
    assert!(
        artifact(&project, "50-final.md").contains("R-001"),
        "the table of what serves what"
    );
    let inputs = values[5]["phases"][0]["inputs"].as_array().unwrap().clone();
    let named = |input: &Value| input["path"] == "project/src/area.py";
    assert!(
        inputs.iter().any(named),
        "what was named is shown to the last phase, too: {inputs:?}"
    );

    let applied = resume(&fixture, &project, ["--phase", "fixup", "--apply-fixups"]).ok();
    assert_eq!(asked(&server).len(), 6, "nobody is asked again");
    assert_eq!(
        std::fs::read_to_string(project.join("src/area.py")).unwrap(),
        right()
    );
    assert!(applied.stdout.contains("src/area.py"), "{}", applied.stdout);
    let receipt = newest(&project);
    valid(&receipt, RECEIPT_SCHEMA);
    let phase = &receipt["phases"][0];
    assert_eq!(
        (&phase["fixups"]["stage"], &phase["status"]),
        (&json!("applied"), &json!("success"))
    );
    assert_eq!(phase["fixups"]["files"][0]["path"], "src/area.py");
    assert_eq!(
        phase["outputs"], values[4]["phases"][0]["outputs"],
        "the artifacts stay what they were"
    );
    let status = fixture
        .call(["status", SPEC, "--json"])
        .current_dir(&project)
        .run()
        .ok()
        .json();
    assert_eq!(
        (&status["pending_fixups"], &status["has_errors"]),
        (&json!(0), &json!(false)),
        "{status:#}"
    );
    at(
        &fixture,
        &project,
        [
            "gate",
            SPEC,
            "--min-phase",
            "final",
            "--fail-on-pending-fixups",
        ],
    )
    .ok();
}

#[test]
fn new_fixups_stay_pending_until_seen() {
    let server = answering();
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    // The file is not named here: the tasks name it to the review, and the review to the fixup.
    let command = ["--through", "fixup", "--apply-fixups"];
    let ran = spec(&fixture, &project, command).ok();
    assert_eq!(
        std::fs::read_to_string(project.join("src/area.py")).unwrap(),
        crate::support::WRONG
    );
    let next_line = "next: crucible resume export-data --phase fixup --apply-fixups";
    assert!(
        ran.stdout.starts_with("no pending fixup") && ran.stdout.contains(next_line),
        "{}",
        ran.stdout
    );
    // The same command again finds one that waited when it began.
    spec(&fixture, &project, command).ok();
    assert_eq!(
        std::fs::read_to_string(project.join("src/area.py")).unwrap(),
        right()
    );
    assert_eq!(
        receipts(&project).len(),
        6,
        "five phases, and the application"
    );
}

#[test]
fn repeated_command_calls_nothing_and_new_idea_updates() {
    let server = server(|phase, request| {
        let changes = request.conversation().contains("You keep the requirements");
        (phase == "requirements" && changes).then(|| {
            Reply::Answer(
                "### R-NEW: Exports can be deleted\n\nA user can delete an export.\n\n- It is gone.\n"
                    .to_owned(),
            )
        })
    });
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    spec(&fixture, &project, ["--through", "design"]).ok();
    let ran = spec(&fixture, &project, ["--through", "design"]).ok();
    assert!(ran.stdout.contains("no model was called"), "{}", ran.stdout);
    assert_eq!(asked(&server), ["requirements", "design"]);
    let ran = with_idea(
        fixture.call(["spec", SPEC, "--source", "-"]),
        &project,
        "users can export and delete their data\n",
    )
    .ok();
    assert_eq!(asked(&server).len(), 3, "{}", ran.stdout);
    let before = &newest(&project)["phases"][0]["inputs"][1];
    assert_eq!(
        before["path"], "previous/00-requirements.md",
        "what was gone on from is told"
    );
    assert_eq!(before["bytes"], REQUIREMENTS.len());
    let text = artifact(&project, "00-requirements.md");
    assert!(
        text.starts_with(REQUIREMENTS.trim_end()),
        "what is not touched stays byte for byte: {text}"
    );
    assert!(text.contains("### R-003: Exports can be deleted"), "{text}");
    let status = fixture
        .call(["status", SPEC, "--json"])
        .current_dir(&project)
        .run()
        .ok()
        .json();
    assert_eq!(status["phase_statuses"][1]["status"], "stale");
    assert!(
        ran.stdout
            .ends_with("next: crucible resume export-data --phase design\n"),
        "{}",
        ran.stdout
    );
}

#[test]
fn summary_instead_of_document_is_corrected_once() {
    let server = server(|phase, request| {
        let corrects = request
            .conversation()
            .contains("A first answer was refused");
        (phase == "requirements" && !corrects).then(|| {
            Reply::Answer(
                "I have created the requirements document. It covers the export of data."
                    .to_owned(),
            )
        })
    });
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    let ran = spec(&fixture, &project, []).ok();
    assert_eq!(asked(&server).len(), 2);
    assert_eq!(artifact(&project, "00-requirements.md"), REQUIREMENTS);
    let receipt = newest(&project);
    let phase = &receipt["phases"][0];
    assert_eq!(
        (&phase["attempts"], &phase["status"]),
        (&json!(2), &json!("success"))
    );
    assert!(
        phase["findings"][0]["code"]
            .as_str()
            .unwrap()
            .starts_with("spec-answer-"),
        "{phase:#}"
    );
    assert!(
        ran.stdout.contains("corrected (1 finding)"),
        "{}",
        ran.stdout
    );
    let id = receipt["receipt_id"].as_str().unwrap();
    let stored_text =
        std::fs::read_to_string(spec_dir(&project).join(format!("context/{id}.answer-1.md")))
            .unwrap();
    assert!(stored_text.starts_with("I have created"), "{stored_text}");
    // What both answers took.
    let tokens = phase["llm"]["tokens_output"].as_u64().unwrap();
    let spec = fixture
        .call(["spec", SPEC, "--json"])
        .current_dir(&project)
        .run()
        .ok()
        .json();
    assert_eq!(spec["phases"][0]["tokens_output"].as_u64(), Some(tokens));
}

#[test]
fn twice_refused_answer_fails_with_receipt() {
    let server =
        server(|phase, _| (phase == "design").then(|| Reply::Answer(REQUIREMENTS.to_owned())));
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    let ran = spec(&fixture, &project, ["--through", "tasks"]).exits(3);
    assert_eq!(asked(&server), ["requirements", "design", "design"]);
    assert!(
        ran.stderr
            .contains("not a valid document of the phase design"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("hint: spec-answer-"), "{}", ran.stderr);
    let receipt = newest(&project);
    valid(&receipt, RECEIPT_SCHEMA);
    assert_eq!(receipt["exit_code"], 3);
    let phase = &receipt["phases"][0];
    assert_eq!(
        (
            &phase["phase_id"],
            &phase["status"],
            &phase["error"]["class"]
        ),
        (&"design".into(), &"failed".into(), &"answer".into())
    );
    assert!(!spec_dir(&project).join("artifacts/10-design.md").exists());
    // The requirements stand, and the phase can run again: the refused answers are not taken twice.
    let ran = resume(&fixture, &project, []).exits(3);
    assert_eq!(asked(&server).len(), 5, "{}", ran.stderr);
}

#[test]
fn an_answer_that_is_cut_off_is_refused() {
    let server = always_cut();
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    let ran = spec(&fixture, &project, []).exits(3);
    assert!(ran.stderr.contains("spec-answer-cut-off"), "{}", ran.stderr);
    assert_eq!(asked(&server).len(), 2);
}

fn always_cut() -> FakeApi {
    FakeApi::start([Reply::CutAnswer(REQUIREMENTS.to_owned())])
}

#[test]
fn empty_answer_is_corrected_like_any_other() {
    let mut first = true;
    let server =
        server(move |_, _| std::mem::replace(&mut first, false).then_some(Reply::NullContent));
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    spec(&fixture, &project, []).ok();
    assert_eq!(
        newest(&project)["phases"][0]["findings"][0]["code"],
        "spec-answer-empty"
    );
}

#[test]
fn refused_phase_names_the_allowed_ones() {
    let server = answering();
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    spec(&fixture, &project, []).ok();
    let before = receipts(&project).len();
    let ran = resume(&fixture, &project, ["--phase", "tasks"]).exits(2);
    assert!(
        ran.stderr.contains(
            "tasks cannot run now: design has not run yet; valid next phases: requirements, design"
        ),
        "{}",
        ran.stderr
    );
    assert_eq!(
        (receipts(&project).len(), asked(&server).len()),
        (before, 1),
        "nobody is asked and nothing is written"
    );
    // An artifact that is not what its receipt says is no ground to build on.
    let path = spec_dir(&project).join("artifacts/00-requirements.md");
    std::fs::write(&path, "# Requirements: mine\n").unwrap();
    let ran = resume(&fixture, &project, ["--phase", "design"]).exits(2);
    assert!(
        ran.stderr.contains(
            "artifacts/00-requirements.md was changed or deleted since requirements wrote it"
        ),
        "{}",
        ran.stderr
    );
    let ran = resume(
        &fixture,
        &project,
        ["--phase", "design", "--through", "requirements"],
    )
    .exits(2);
    assert!(
        ran.stderr
            .contains("--through requirements comes before design"),
        "{}",
        ran.stderr
    );
    let ran = fixture
        .call(["resume", "nothing-here"])
        .current_dir(&project)
        .run()
        .exits(2);
    assert!(
        ran.stderr.contains("there is no spec nothing-here"),
        "{}",
        ran.stderr
    );
}

#[test]
fn dry_run_calls_nothing_and_lists_inputs() {
    let server = answering();
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    let ran = spec(&fixture, &project, ["--dry-run", "--through", "tasks"]).ok();
    assert!(
        ran.stdout.contains("requirements would ask now") && ran.stdout.contains("context/idea.md"),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.contains("then design, tasks"), "{}", ran.stdout);
    assert_eq!(server.requests().len(), 0);
    let receipt = newest(&project);
    valid(&receipt, RECEIPT_SCHEMA);
    assert_eq!(
        (&receipt["dry_run"], &receipt["phases"][0]["status"]),
        (&json!(true), &json!("dry_run"))
    );
    assert!(
        !spec_dir(&project).join("context/idea.md").exists()
            && !spec_dir(&project)
                .join("artifacts/00-requirements.md")
                .exists()
    );
    let ran = resume(&fixture, &project, ["--phase", "design", "--dry-run"]).exits(2);
    assert!(
        ran.stderr.contains("requirements has only had a dry run"),
        "{}",
        ran.stderr
    );
    at(
        &fixture,
        &project,
        ["gate", SPEC, "--min-phase", "requirements"],
    )
    .exits(1);

    spec(&fixture, &project, []).ok();
    let result = resume(
        &fixture,
        &project,
        ["--phase", "design", "--dry-run", "--json"],
    )
    .ok()
    .json();
    valid(&result, RESUME_SCHEMA);
    assert_eq!(
        (
            &result["phase"],
            &result["current_inputs"],
            &result["next_steps"]
        ),
        (
            &json!("design"),
            &json!({"requirements_artifact": "00-requirements.md"}),
            &json!("Run the design phase to generate the architecture")
        )
    );
    assert_eq!(asked(&server), ["requirements"]);
    // A dry run of a phase that is done takes nothing from it.
    resume(&fixture, &project, ["--phase", "requirements", "--dry-run"]).ok();
    std::fs::write(project.join("large.md"), "word ".repeat(20_000)).unwrap();
    resume(
        &fixture,
        &project,
        [
            "--phase",
            "requirements",
            "--dry-run",
            "--context",
            "large.md",
        ],
    )
    .exits(7);
    assert_eq!(
        (&newest(&project)["dry_run"], &newest(&project)["exit_code"]),
        (&json!(true), &json!(7))
    );
    at(
        &fixture,
        &project,
        ["gate", SPEC, "--min-phase", "requirements"],
    )
    .ok();
}

#[test]
fn json_documents_are_valid_small_and_without_artifacts() {
    let long = "a long sentence about exports. ".repeat(300);
    let server = server(move |phase, _| {
        (phase == "design").then(|| {
            Reply::Answer(DESIGN.replacen("One command", &format!("{long}One command"), 1))
        })
    });
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    let ran = spec(&fixture, &project, ["--through", "tasks", "--json"]).ok();
    assert_eq!(ran.stderr, "", "a document stands alone");
    assert!(ran.stdout.len() < 8192, "{}", ran.stdout.len());
    assert!(
        !ran.stdout.contains("long sentence") && !ran.stdout.contains("export their data"),
        "{}",
        ran.stdout
    );
    let document = ran.json();
    valid(&document, SPEC_SCHEMA);
    assert_eq!(
        document["config_summary"],
        json!({"execution_strategy": "controlled", "provider": "gateway"})
    );
    assert_eq!(document["ran"], json!(["requirements", "design", "tasks"]));
    let phase = &document["phases"][1];
    assert_eq!(
        (&phase["phase_id"], &phase["status"]),
        (&json!("design"), &json!("completed"))
    );
    assert!(phase["last_run"].is_string());
    assert_eq!(
        document["phases"][3],
        json!({"phase_id": "review", "status": "not_run", "last_run": null, "warnings": 0})
    );
    let ran = resume(&fixture, &project, ["--json"]).ok();
    assert_eq!(ran.stderr, "");
    assert!(ran.stdout.len() < 8192, "{}", ran.stdout.len());
    let document = ran.json();
    valid(&document, RESUME_SCHEMA);
    assert_eq!(
        (&document["phase"], &document["ran"]),
        (&json!("review"), &json!(["review"]))
    );
    assert_eq!(document["next"]["phase_id"], "fixup");
    let failed = fixture
        .call(["resume", SPEC, "--phase", "final", "--json"])
        .current_dir(&project)
        .run()
        .exits(2);
    assert_eq!(failed.error()["exit_code"], 2);
}

#[test]
fn missing_idea_is_reported_with_instructions() {
    let server = answering();
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    for idea in ["", " \n\t", "\u{200b}\u{feff}"] {
        let ran = with_idea(fixture.call(["spec", SPEC]), &project, idea).exits(2);
        assert!(
            ran.stderr.contains("no idea to start from"),
            "{}",
            ran.stderr
        );
        assert!(
            ran.stderr.contains("| crucible spec export-data"),
            "{}",
            ran.stderr
        );
    }
    assert_eq!(server.requests().len(), 0);
    assert!(
        !spec_dir(&project).exists(),
        "no directory is made for nothing"
    );
}

#[test]
fn id_that_is_not_plain_name_is_refused() {
    let fixture = Fixture::new();
    let project = project(&fixture);
    let long = "a".repeat(300);
    for id in [
        "..",
        "a/b",
        "../../etc",
        "",
        "dätä",
        "a b",
        "-",
        long.as_str(),
    ] {
        for command in ["spec", "resume"] {
            let call = fixture.call([command, "--", id]);
            let ran = with_idea(call, &project, IDEA).exits(2);
            assert!(ran.stderr.contains("not a spec id"), "{id}: {}", ran.stderr);
        }
    }
    assert!(!project.join(".crucible/specs").exists());
}

#[test]
fn invalid_options_are_refused_before_any_work() {
    let server = answering();
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    let ran = spec(
        &fixture,
        &project,
        ["--execution-strategy", "external_tool"],
    )
    .exits(2);
    assert!(
        ran.stderr
            .contains("ExecutionStrategy::ExternalTool not yet supported"),
        "{}",
        ran.stderr
    );
    let ran = spec(&fixture, &project, ["--cassette", "none.jsonl"]).exits(2);
    assert!(ran.stderr.contains("--provider replay"), "{}", ran.stderr);
    let ran = spec(&fixture, &project, ["--through", "Design"]).exits(2);
    assert!(ran.stderr.contains("is not a phase"), "{}", ran.stderr);
    let ran = with_idea(
        fixture
            .call(["spec", SPEC])
            .without_env("CRUCIBLE_LLM_PROVIDER"),
        &project,
        IDEA,
    )
    .exits(2);
    assert!(
        ran.stderr.contains("LLM provider must be specified"),
        "{}",
        ran.stderr
    );
    assert!(
        !spec_dir(&project).exists(),
        "nothing is made where nobody can be asked"
    );
    let ran = with_idea(
        fixture
            .call(["spec", SPEC])
            .env("CRUCIBLE_SPEC_ATTEMPTS", "0"),
        &project,
        IDEA,
    )
    .exits(2);
    assert!(ran.stderr.contains("spec.attempts"), "{}", ran.stderr);
    let ran = spec(&fixture, &project, ["--record", "no/such/file"]).exits(2);
    assert!(ran.stderr.contains("--record"), "{}", ran.stderr);
    assert_eq!(receipts(&project).len(), 0);
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn fallback_warning_is_in_every_receipt() {
    let server = answering();
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    let options = [
        "--provider",
        "openrouter",
        "--fallback-provider",
        "gateway",
        "--model",
        "some/model",
    ];
    let ran = spec(&fixture, &project, options).ok();
    assert!(
        ran.stderr
            .contains("the fallback uses its own model gpt-oss-20b, not some/model"),
        "{}",
        ran.stderr
    );
    let receipt = newest(&project);
    let warning = &receipt["phases"][0]["warnings"][0];
    assert_eq!(warning["type"], "llm_fallback");
    assert!(
        warning["message"]
            .as_str()
            .unwrap()
            .contains("Using fallback 'gateway'"),
        "{warning}"
    );
    assert_eq!(receipt["phases"][0]["llm"]["provider"], "gateway");
}

#[test]
fn every_call_can_be_recorded_and_replayed() {
    let server = server(|phase, request| {
        let corrects = request
            .conversation()
            .contains("A first answer was refused");
        (phase == "design" && !corrects)
            .then(|| Reply::Answer("I have created the design.".to_owned()))
    });
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    let options = [
        "--through",
        "final",
        "--context",
        "src/area.py",
        "--record",
        "calls.jsonl",
    ];
    spec(&fixture, &project, options).ok();
    let recorded = std::fs::read_to_string(project.join("calls.jsonl")).unwrap();
    assert_eq!(recorded.lines().count(), 8, "the header and seven calls");
    let (first, text) = (spec_dir(&project), |dir: &std::path::Path| {
        std::fs::read_to_string(dir.join("artifacts/50-final.md")).unwrap()
    });
    let before = text(&first);
    std::fs::remove_dir_all(&first).unwrap();
    let asked_before = asked(&server).len();
    let replayed = [
        "--through",
        "final",
        "--context",
        "src/area.py",
        "--provider",
        "replay",
        "--cassette",
        "calls.jsonl",
    ];
    spec(&fixture, &project, replayed).ok();
    assert_eq!(asked(&server).len(), asked_before);
    assert_eq!(text(&spec_dir(&project)), before);
    assert!(
        receipts(&project)
            .iter()
            .all(|receipt| receipt["phases"][0]["llm"]["cost"].is_null())
    );
    // A file that is there is not written over.
    let ran = spec(&fixture, &project, options).exits(2);
    assert!(
        ran.stderr.contains("--record: there is something at"),
        "{}",
        ran.stderr
    );
}

#[test]
fn fixup_of_denied_file_is_refused_after_correction() {
    let evil = crate::support::whole_file("../outside.py", "print()\n");
    let server = server(move |phase, _| (phase == "fixup").then(|| Reply::Answer(evil.clone())));
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    let ran = spec(
        &fixture,
        &project,
        [
            "--through",
            "fixup",
            "--context",
            "src/area.py",
            "--apply-fixups",
        ],
    )
    .exits(1);
    assert_eq!(
        asked(&server)
            .iter()
            .filter(|phase| **phase == "fixup")
            .count(),
        2
    );
    assert!(
        ran.stderr
            .contains("the fixup was refused; no file was changed"),
        "{}",
        ran.stderr
    );
    let receipt = newest(&project);
    assert_eq!(
        (
            &receipt["exit_code"],
            &receipt["phases"][0]["error"]["class"]
        ),
        (&json!(1), &json!("fixup_refused"))
    );
    assert!(!project.parent().unwrap().join("outside.py").exists());
    assert_eq!(
        std::fs::read_to_string(project.join("src/area.py")).unwrap(),
        crate::support::WRONG
    );
}

#[test]
fn failing_hook_follows_setting_and_is_in_receipt() {
    let server = answering();
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    let config = |on_fail: &str| {
        format!(
            "[hooks.check]\non = \"post_phase\"\ncommand = [\"sh\", \"-c\", \"cat > told.json; exit 3\"]\non_fail = \"{on_fail}\"\n"
        )
    };
    std::fs::write(project.join(".crucible/config.toml"), config("warn")).unwrap();
    let ran = spec(&fixture, &project, []).ok();
    assert!(ran.stderr.contains("the hook check"), "{}", ran.stderr);
    let receipt = newest(&project);
    let hook = &receipt["phases"][0]["hooks"][0];
    assert_eq!(
        (&hook["name"], &hook["exit_code"], &hook["moment"]),
        (&json!("check"), &json!(3), &json!("post_phase"))
    );
    let document: Value =
        serde_json::from_slice(&std::fs::read(project.join("told.json")).unwrap()).unwrap();
    assert_eq!(
        document["artifact"]["sha256"],
        receipt["phases"][0]["outputs"][0]["sha256"]
    );
    assert_eq!(document["receipt_id"], receipt["receipt_id"]);

    std::fs::write(project.join(".crucible/config.toml"), config("fail")).unwrap();
    spec(&fixture, &project, ["--through", "design"]).exits(1);
    let receipt = newest(&project);
    assert_eq!(
        (
            &receipt["exit_code"],
            &receipt["phases"][0]["error"]["class"]
        ),
        (&json!(1), &json!("hook"))
    );
    assert!(!spec_dir(&project).join("artifacts/10-design.md").exists());
    // Mended, the phase asks anew.
    std::fs::write(project.join(".crucible/config.toml"), "").unwrap();
    resume(&fixture, &project, []).ok();
    assert_eq!(asked(&server), ["requirements", "design", "design"]);
}

#[test]
fn pre_phase_hook_can_stop_model_call() {
    let server = answering();
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    let config = "[hooks.stop]\non = \"pre_phase\"\ncommand = [\"false\"]\non_fail = \"fail\"\n";
    std::fs::write(project.join(".crucible/config.toml"), config).unwrap();
    spec(&fixture, &project, []).exits(1);
    assert_eq!(server.requests().len(), 0);
    assert_eq!(newest(&project)["phases"][0]["error"]["class"], "hook");
}

#[test]
fn phase_uses_the_model_named_for_it() {
    let server = answering();
    let fixture = Fixture::with(&server);
    fixture.user_config(
        "[llm.gateway.profiles.deep]\nmodel = \"deep-model\"\n[phases.design]\nllm_profile = \"deep\"\n",
    );
    let project = project(&fixture);
    spec(&fixture, &project, ["--through", "design"]).ok();
    let models = |from: usize| -> Vec<String> {
        let completions = server.completions();
        completions[from..]
            .iter()
            .map(|request| {
                format!(
                    "{}={}",
                    phase_of(request),
                    request.body["model"].as_str().unwrap()
                )
            })
            .collect()
    };
    assert_eq!(models(0), ["requirements=gpt-oss-20b", "design=deep-model"]);
    resume(&fixture, &project, ["--phase", "design", "--model", "mine"]).ok();
    assert_eq!(models(2), ["design=mine"]);
}

#[test]
fn prompt_template_of_a_phase_shapes_its_questions() {
    let server = answering();
    let fixture = Fixture::with(&server);
    fixture.user_config("[phases.design]\nprompt_template = \"headings\"\n");
    let project = project(&fixture);
    spec(&fixture, &project, ["--through", "design"]).ok();
    let begins = |at: usize| {
        server.completions()[at].body["messages"][0]["content"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert!(!begins(0).starts_with("# Instructions"), "{}", begins(0));
    assert!(begins(1).starts_with("# Instructions\n\n"), "{}", begins(1));

    // One that is for another provider is refused before anybody is asked.
    let request_count = server.requests().len();
    for (template, part) in [
        ("claude", "not for this provider"),
        ("fancy", "does not exist"),
    ] {
        fixture.user_config(&format!(
            "[phases.tasks]\nprompt_template = \"{template}\"\n"
        ));
        let refused = resume(&fixture, &project, ["--phase", "design"]);
        assert_eq!(refused.code, Some(2), "{}", refused.stderr);
        assert!(
            refused.stderr.contains(part) && refused.stderr.contains("one-message"),
            "{}",
            refused.stderr
        );
    }
    assert_eq!(server.requests().len(), request_count);
}
