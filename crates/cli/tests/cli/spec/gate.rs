//! `crucible gate` as CI meets it: one exit code, and why.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use crucible_ledger::Ledger;
use crucible_model::Digest;
use crucible_spec::{LockClaim, PhaseId, PhaseOutput, ReceiptId, SpecProject, SpecStore};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::support::valid_sarif;
use super::written::{SPEC, WrittenSpec, ago, seal};
use crate::support::{Call, Fixture, Ran, Snapshot};

const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);

fn gate(spec: &WrittenSpec, fixture: &Fixture) -> Call {
    spec.call(fixture, ["gate", SPEC])
}

/// The document of a judgement, checked against its schema.
#[track_caller]
fn document(ran: Ran, code: i32) -> Value {
    let document = ran.exits(code).json();
    let schema = include_str!("../../../../../docs/schemas/gate-json.v1.schema.json");
    let schema = jsonschema::validator_for(&serde_json::from_str(schema).unwrap()).unwrap();
    let problem = schema
        .iter_errors(&document)
        .next()
        .map(|error| error.to_string());
    assert_eq!(problem, None, "{document:#}");
    assert_eq!(document["verdict"], if code == 0 { "pass" } else { "fail" });
    document
}

/// The codes and subjects of what was found.
#[track_caller]
fn found(ran: Ran, code: i32) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let findings = document(ran, code)["findings"].as_array().unwrap().clone();
    findings
        .iter()
        .map(|finding| (text(&finding["code"]), text(&finding["subject"])))
        .collect()
}

#[track_caller]
fn codes(ran: Ran, code: i32) -> Vec<String> {
    found(ran, code).into_iter().map(|(code, _)| code).collect()
}

fn name(path: &Path) -> String {
    format!("receipts/{}", path.file_name().unwrap().to_str().unwrap())
}

#[test]
fn spec_at_required_phase_passes_gate() {
    let fixture = Fixture::new();
    let spec = WrittenSpec::done(&fixture, PhaseId::Tasks);
    let before = Snapshot::take([spec.root(), &fixture.home()]);
    let ran = gate(&spec, &fixture).run().ok();
    let lines: Vec<&str> = ran.stdout.lines().map(str::trim_end).collect();
    assert_eq!(
        lines,
        [
            " phase         state  last success",
            " requirements  done   1h ago",
            " design        done   1h ago",
            " tasks         done   1h ago",
            "pass: export-data meets the policy: tasks and every phase before it, of any age, with or without \
            pending fixups",
        ]
    );
    assert_eq!(ran.stderr, "");
    let document = document(gate(&spec, &fixture).arg("--json").run(), 0);
    assert_eq!(
        document["policy"],
        json!({ "min_phase": "tasks", "max_phase_age_seconds": null, "fail_on_pending_fixups": false })
    );
    let fields: Vec<String> = gate(&spec, &fixture)
        .args(["--format", "json"])
        .run()
        .stdout
        .lines()
        .filter_map(|line| Some(line.strip_prefix("  \"")?.split('"').next()?.to_owned()))
        .collect();
    assert_eq!(fields[..3], ["schema_version", "verdict", "findings"]);
    before.is_still(&Snapshot::take([spec.root(), &fixture.home()]));
    assert!(!fixture.data().exists(), "no ledger is made");
}

#[test]
fn phases_are_compared_by_their_order() {
    let fixture = Fixture::new();
    // By name, `design` comes before `requirements` and `final` before all others but it.
    let spec = WrittenSpec::done(&fixture, PhaseId::Requirements);
    gate(&spec, &fixture)
        .args(["--min-phase", "requirements"])
        .run()
        .exits(0);
    for phase in ["design", "final", "fixup"] {
        let missing = codes(
            gate(&spec, &fixture)
                .args(["--json", "--min-phase", phase])
                .run(),
            1,
        );
        assert!(
            missing.iter().all(|code| code == "gate-phase-missing") && !missing.is_empty(),
            "{phase}"
        );
    }
}

#[test]
fn empty_dry_run_and_failed_specs_are_refused() {
    let fixture = Fixture::new();
    let mut spec = WrittenSpec::new(fixture.path("project"));
    assert_eq!(
        codes(gate(&spec, &fixture).arg("--json").run(), 1),
        ["gate-phase-missing"; 3]
    );
    for phase in PhaseId::Tasks.up_to() {
        spec.dry_run(phase, HOUR);
    }
    assert_eq!(
        codes(gate(&spec, &fixture).arg("--json").run(), 1),
        ["gate-phase-missing"; 3]
    );
    for phase in PhaseId::Tasks.up_to() {
        spec.failure(phase, HOUR);
    }
    assert_eq!(
        codes(gate(&spec, &fixture).arg("--json").run(), 1),
        ["gate-phase-failed"; 3]
    );
    let ran = gate(&spec, &fixture).run().exits(1);
    assert!(
        ran.stdout
            .contains("run `crucible resume export-data --phase design`"),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stdout.lines().last().unwrap().starts_with("fail: "),
        "{}",
        ran.stdout
    );
}

#[test]
fn only_newest_real_receipt_of_phase_counts() {
    let fixture = Fixture::new();
    let mut spec = WrittenSpec::done(&fixture, PhaseId::Tasks);
    spec.dry_run(PhaseId::Design, HOUR / 2);
    gate(&spec, &fixture).run().ok();
    spec.failure(PhaseId::Design, HOUR / 3);
    assert_eq!(
        found(gate(&spec, &fixture).arg("--json").run(), 1),
        [("gate-phase-failed".into(), "design".into())]
    );
    spec.success(PhaseId::Design, HOUR / 4);
    gate(&spec, &fixture).run().ok();
    // What comes after the phase that is asked for may fail.
    spec.failure(PhaseId::Review, HOUR / 5);
    gate(&spec, &fixture).run().ok();
}

#[test]
fn missing_changed_or_linked_artifact_is_refused() {
    let fixture = Fixture::new();
    let spec = WrittenSpec::done(&fixture, PhaseId::Tasks);
    let artifact = spec.path("artifacts/20-tasks.md");
    let is = |code: &str| {
        let expected = [(code.to_owned(), "artifacts/20-tasks.md".to_owned())];
        assert_eq!(
            found(gate(&spec, &fixture).arg("--json").run(), 1),
            expected
        );
    };
    let bytes = std::fs::read(&artifact).unwrap();
    std::fs::write(&artifact, "# other\n").unwrap();
    is("gate-artifact-differs");
    std::fs::remove_file(&artifact).unwrap();
    is("gate-artifact-missing");
    std::fs::write(fixture.path("elsewhere"), &bytes).unwrap();
    symlink(fixture.path("elsewhere"), &artifact).unwrap();
    is("gate-artifact-differs");
    std::fs::remove_file(&artifact).unwrap();
    std::fs::write(&artifact, &bytes).unwrap();
    gate(&spec, &fixture).run().ok();
    // One that others are made from makes those stale as well.
    std::fs::write(spec.path("artifacts/00-requirements.md"), "# other\n").unwrap();
    let expected = [
        ("gate-artifact-differs", "artifacts/00-requirements.md"),
        ("gate-phase-stale", "design"),
        ("gate-phase-stale", "tasks"),
    ];
    assert_eq!(
        found(gate(&spec, &fixture).arg("--json").run(), 1),
        expected.map(|(code, about)| (code.into(), about.into()))
    );
}

#[test]
fn success_without_evidence_does_not_count() {
    let fixture = Fixture::new();
    let first = |value: &mut Value, key: &str, new: Value| value["phases"][0][key] = new;
    type Change = Box<dyn Fn(&mut Value)>;
    let cases: [(&str, Change); 6] = [
        (
            "gate-evidence-missing",
            Box::new(move |value| first(value, "outputs", json!([]))),
        ),
        (
            "gate-evidence-missing",
            Box::new(move |value| first(value, "inputs", json!([]))),
        ),
        (
            "gate-evidence-missing",
            Box::new(|value| {
                value.as_object_mut().unwrap().remove("clock");
            }),
        ),
        (
            "gate-evidence-contradictory",
            Box::new(|value| value["exit_code"] = json!(70)),
        ),
        (
            "gate-clock-pinned",
            Box::new(|value| value["clock"] = json!("pinned")),
        ),
        (
            "gate-strategy-uncontrolled",
            Box::new(|value| value["pipeline"] = json!({ "execution_strategy": "external_tool" })),
        ),
    ];
    for (place, (code, change)) in cases.into_iter().enumerate() {
        let mut spec = WrittenSpec::new(fixture.path(&format!("project-{place}")));
        spec.success(PhaseId::Requirements, HOUR);
        spec.success_with(PhaseId::Design, HOUR, change);
        spec.success(PhaseId::Tasks, HOUR);
        assert_eq!(
            codes(gate(&spec, &fixture).arg("--json").run(), 1),
            [code],
            "{place}"
        );
    }
}

#[test]
fn corrupt_receipt_is_named_and_others_are_judged() {
    let fixture = Fixture::new();
    let mut spec = WrittenSpec::done(&fixture, PhaseId::Tasks);
    let review = spec.success(PhaseId::Review, HOUR);
    std::fs::remove_file(spec.path("artifacts/10-design.md")).unwrap();
    let sound = std::fs::read(&review).unwrap();
    let expected = |code: &str, ran: Ran| {
        let found = found(ran, 1);
        assert!(
            found.contains(&(code.to_owned(), name(&review))),
            "{code}: {found:?}"
        );
        assert!(
            found.contains(&(
                "gate-artifact-missing".into(),
                "artifacts/10-design.md".into()
            )),
            "{found:?}"
        );
    };
    // Nobody asked for the review: its receipt refuses all the same.
    for garbage in [
        &b""[..],
        b"{",
        b"\xff\xfe",
        &sound[..sound.len() / 2],
        b"[]",
    ] {
        std::fs::write(&review, garbage).unwrap();
        expected(
            "gate-receipt-unreadable",
            gate(&spec, &fixture).arg("--json").run(),
        );
    }
    let mut edited: Value = serde_json::from_slice(&sound).unwrap();
    edited["phases"][0]["llm"]["model_used"] = json!("a better one");
    std::fs::write(&review, edited.to_string()).unwrap();
    expected(
        "gate-receipt-edited",
        gate(&spec, &fixture).arg("--json").run(),
    );
    edited["spec_id"] = json!("other");
    seal(&mut edited);
    std::fs::write(&review, edited.to_string()).unwrap();
    expected(
        "gate-receipt-misplaced",
        gate(&spec, &fixture).arg("--json").run(),
    );
    std::fs::remove_file(&review).unwrap();
    let _ = std::process::Command::new("mkfifo")
        .arg(&review)
        .status()
        .unwrap();
    expected(
        "gate-receipt-unreadable",
        gate(&spec, &fixture).arg("--json").run(),
    );
}

#[test]
fn phase_age_counts_from_last_success() {
    let fixture = Fixture::new();
    let mut spec = WrittenSpec::new(fixture.path("project"));
    spec.success(PhaseId::Requirements, 30 * DAY);
    spec.success(PhaseId::Design, 30 * DAY);
    spec.success(PhaseId::Tasks, 2 * DAY);
    let limit = |spec: &WrittenSpec, age: &str| {
        gate(spec, &fixture)
            .args(["--json", "--max-phase-age", age])
            .run()
    };
    limit(&spec, "3d").ok();
    limit(&spec, "1w").ok();
    assert_eq!(codes(limit(&spec, "1d"), 1), ["gate-phase-too-old"]);
    assert_eq!(codes(limit(&spec, "47h"), 1), ["gate-phase-too-old"]);
    spec.dry_run(PhaseId::Tasks, HOUR);
    assert_eq!(codes(limit(&spec, "1d"), 1), ["gate-phase-too-old"]);
    spec.failure(PhaseId::Tasks, HOUR);
    assert_eq!(
        codes(limit(&spec, "1d"), 1),
        ["gate-phase-failed", "gate-phase-too-old"]
    );
    spec.success(PhaseId::Tasks, Duration::ZERO);
    limit(&spec, "1d").ok();
    let pinned = gate(&spec, &fixture)
        .args(["--json", "--max-phase-age", "1d"])
        .env("CRUCIBLE_CLOCK", "2020-01-01T00:00:00Z")
        .run();
    assert!(codes(pinned, 1).contains(&"gate-clock-pinned".to_owned()));
    let mut ahead = WrittenSpec::new(fixture.path("ahead"));
    ahead.success_with(PhaseId::Requirements, HOUR, |value| {
        value["emitted_at"] = json!("2999-01-01T00:00:00.000Z")
    });
    let ran = gate(&ahead, &fixture)
        .args(["--json", "--min-phase", "requirements"])
        .run();
    assert_eq!(codes(ran, 1), ["gate-receipt-from-future"]);
}

#[test]
fn pending_fixups_refuse_on_request_alone() {
    let fixture = Fixture::new();
    let mut spec = WrittenSpec::done(&fixture, PhaseId::Review);
    spec.success_with(PhaseId::Fixup, HOUR, |value| {
        value["phases"][0]["fixups"] =
            json!({ "stage": "pending", "files": [{ "path": "a.rs" }, { "path": "b.rs" }] });
    });
    let ran = gate(&spec, &fixture).run().ok();
    assert!(
        ran.stdout.contains("info gate-fixups-pending: 2 files"),
        "{}",
        ran.stdout
    );
    assert_eq!(
        document(gate(&spec, &fixture).arg("--json").run(), 0)["pending_fixups"],
        2
    );
    let strict = gate(&spec, &fixture)
        .args(["--json", "--fail-on-pending-fixups"])
        .run();
    assert_eq!(codes(strict, 1), ["gate-fixups-pending"]);
    spec.success_with(PhaseId::Fixup, HOUR, |value| {
        value["phases"][0]["fixups"] = json!({ "stage": "applied", "files": [{ "path": "a.rs" }] });
    });
    gate(&spec, &fixture)
        .arg("--fail-on-pending-fixups")
        .run()
        .ok();
}

#[test]
fn gate_error_is_not_policy_failure() {
    let fixture = Fixture::new();
    let spec = WrittenSpec::done(&fixture, PhaseId::Tasks);
    let refused = |args: &[&str]| {
        fixture
            .call(args)
            .arg("--json")
            .current_dir(spec.root())
            .run()
    };
    let message = refused(&["gate", "other"]).exits(2).message();
    assert!(message.contains("no spec other"), "{message}");
    for bad in ["../export-data", "a/b", "ä", "", &"a".repeat(300)] {
        refused(&["gate", bad]).exits(2).error();
    }
    for bad in ["7", "0d", "7y", "-1d", "", "99999999999999999999w"] {
        let age = format!("--max-phase-age={bad}");
        refused(&["gate", SPEC, &age]).exits(2).error();
    }
    let message = refused(&["gate", SPEC, "--max-phase-age", "7"])
        .exits(2)
        .message();
    assert!(message.contains("7d"), "{message}");
    refused(&["gate", SPEC, "--min-phase", "deploy"])
        .exits(2)
        .error();
    refused(&["gate", SPEC, "--format", "sarif"])
        .exits(2)
        .error();
    let unjudged = fixture
        .call(["gate", "other", "--format", "sarif"])
        .current_dir(spec.root())
        .run()
        .exits(2)
        .json();
    valid_sarif(&unjudged);
    refused(&["gate", SPEC, "--workspace", "/nonexistent/workspace.yaml"])
        .exits(2)
        .error();
    // `--format json` is `--json`, for errors and for what cannot be read at all, too.
    fixture
        .call(["gate", "other", "--format", "json"])
        .current_dir(spec.root())
        .run()
        .exits(2)
        .error();
    gate(&spec, &fixture)
        .args(["--format=json", "--max-phase-age", "7"])
        .run()
        .exits(2)
        .error();
    let plain = gate(&spec, &fixture)
        .args(["--format", "xml"])
        .run()
        .exits(2);
    assert_eq!(plain.stdout, "");
    // The directory of receipts is none.
    std::fs::remove_dir_all(spec.path("receipts")).unwrap();
    std::fs::write(spec.path("receipts"), "").unwrap();
    let error = refused(&["gate", SPEC]).exits(2).error();
    assert_eq!(error["exit_code"], 2);
    // A ledger that is none cannot be asked.
    let elsewhere = Fixture::new();
    let other = WrittenSpec::done(&elsewhere, PhaseId::Tasks);
    std::fs::create_dir_all(fixture.data()).unwrap();
    std::fs::write(fixture.data().join("ledger.db"), "no database").unwrap();
    gate(&other, &fixture).arg("--json").run().exits(2).error();
    // A pass that could not be printed is not a fail.
    gate(&other, &elsewhere).run().ok();
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let ended = gate(&other, &elsewhere)
        .command()
        .stdout(full)
        .status()
        .unwrap();
    assert_eq!(ended.code(), Some(2));
}

#[test]
fn another_project_is_judged_through_its_workspace_file() {
    let fixture = Fixture::new();
    let spec = WrittenSpec::done(&fixture, PhaseId::Tasks);
    let file = spec.root().join("workspace.yaml");
    std::fs::write(&file, "version: \"1\"\nname: x\nspecs: []\n").unwrap();
    fixture
        .call(["gate", SPEC, "--workspace"])
        .arg(&file)
        .run()
        .ok();
    fixture.call(["gate", SPEC]).run().exits(2);
    let below = spec.root().join("src/deep");
    std::fs::create_dir_all(&below).unwrap();
    fixture.call(["gate", SPEC]).current_dir(below).run().ok();
}

#[test]
fn gate_help_matches_default_policy() {
    let ran = Fixture::new().run(["gate", "--help"]).ok();
    let default = crucible_spec::GatePolicy::default();
    assert!(
        ran.stdout
            .contains(&format!("[default: {}]", default.min_phase)),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stdout
            .contains("Without flags it asks for tasks and every phase before it"),
        "{}",
        ran.stdout
    );
}

#[test]
fn ledger_reveals_receipts_missing_from_directory() {
    let fixture = Fixture::new();
    let root = fixture.path("project");
    std::fs::create_dir_all(root.join(".crucible")).unwrap();
    std::fs::create_dir_all(fixture.data()).unwrap();
    let store = SpecStore::new(&SpecProject::at(&root), SPEC.parse().unwrap());
    let mut ledger = Ledger::open(&fixture.data().join("ledger.db")).unwrap();
    let lock = store.lock("a test", LockClaim::IfFree).unwrap();
    lock.write_context("idea.md", b"export\n").unwrap();
    let mut inputs = vec![
        json!({ "path": "context/idea.md", "sha256": Digest::compute(b"export\n"), "bytes": 7 }),
    ];
    let mut promote = |phase: PhaseId| {
        let at = ago(HOUR);
        let id = ReceiptId::new(phase, at, lock.next_sequence().unwrap());
        let receipt = json!({ "receipt_id": id.as_str(), "spec_id": SPEC, "emitted_at": at, "clock": "system", "exit_code": 0,
            "pipeline": { "execution_strategy": "controlled" },
            "phases": [{ "phase_id": phase, "status": "success", "inputs": inputs, "started_at": at, "finished_at": at,
                "attempts": 1, "llm": { "provider": "gateway", "model_used": "model-1" },
                "packet": { "sha256": Digest::compute(b"packet"), "bytes": 6, "lines": 1, "entries": 1 } }] });
        let output = PhaseOutput {
            path: format!("artifacts/{}", phase.artifact()),
            bytes: b"text\n".to_vec(),
        };
        let receipt = lock
            .promote(
                serde_json::from_value(receipt).unwrap(),
                vec![output],
                &mut ledger,
            )
            .unwrap()
            .receipt;
        inputs.push(json!(receipt.phases[0].outputs[0]));
        store.dir().join("receipts").join(id.file_name())
    };
    let files: Vec<_> = PhaseId::Review.up_to().map(&mut promote).collect();
    drop((lock, ledger));
    let judged = || {
        fixture
            .call(["gate", SPEC, "--json"])
            .current_dir(&root)
            .run()
    };
    // What the program itself writes passes.
    judged().ok();
    // The newest receipt is taken away. Nobody asked for its phase, but the ledger remembers it; elsewhere nobody does.
    std::fs::remove_file(&files[3]).unwrap();
    assert_eq!(codes(judged(), 1), ["gate-receipt-outdated"]);
    let elsewhere = fixture
        .call(["gate", SPEC])
        .current_dir(&root)
        .env("CRUCIBLE_HOME", fixture.path("other"))
        .run();
    elsewhere.ok();
    assert!(!fixture.path("other").exists());
}

#[test]
fn failing_required_hook_is_finding_in_every_format() {
    let fixture = Fixture::new();
    let spec = WrittenSpec::done(&fixture, PhaseId::Tasks);
    let settings =
        |hook: &str| std::fs::write(spec.root().join(".crucible/config.toml"), hook).unwrap();
    settings("[hooks.note]\non = \"pre_gate\"\ncommand = [\"true\"]\n");
    let hooks = document(gate(&spec, &fixture).arg("--json").run(), 0)["hooks"].clone();
    assert_eq!(
        (&hooks[0]["name"], &hooks[0]["end"]),
        (&json!("note"), &json!("passed"))
    );

    let fails = "command = [\"false\"]\non_fail = \"fail\"\n";
    let hangs = "command = [\"sleep\", \"300\"]\non_fail = \"fail\"\ntimeout_s = 1\n";
    for (command, code, exit) in [
        (fails, "gate-hook-failed", 1),
        (hangs, "gate-hook-timed-out", 10),
    ] {
        for moment in ["pre_gate", "post_gate"] {
            settings(&format!("[hooks.late]\non = \"{moment}\"\n{command}"));
            let refused = gate(&spec, &fixture).arg("--json").run().exits(exit).json();
            assert_eq!(refused["verdict"], "fail");
            let finding = &refused["findings"][0];
            assert_eq!(
                (&finding["code"], &finding["subject"]),
                (&json!(code), &json!("late"))
            );
            assert!(
                finding["hint"].as_str().unwrap().contains(moment),
                "{finding:#}"
            );
        }
        let ran = gate(&spec, &fixture).run().exits(exit);
        assert!(
            ran.stdout.contains(&format!("error {code}: late\n")),
            "{}",
            ran.stdout
        );
        assert!(
            ran.stdout.lines().last().unwrap().starts_with("fail: "),
            "{}",
            ran.stdout
        );
        let ran = gate(&spec, &fixture)
            .args(["--format", "github"])
            .run()
            .exits(exit);
        let annotation = format!("::error file=.crucible/specs/export-data,title={code}::late: ");
        assert!(ran.stdout.starts_with(&annotation), "{}", ran.stdout);
        let log = gate(&spec, &fixture)
            .args(["--format", "sarif"])
            .run()
            .exits(exit)
            .json();
        valid_sarif(&log);
        let run = &log["runs"][0];
        assert_eq!(
            (
                &run["results"][0]["ruleId"],
                &run["invocations"][0]["exitCode"]
            ),
            (&json!(code), &json!(exit))
        );
    }
    // What the policy says is told beside it.
    settings(&format!(
        "[hooks.late]\non = \"pre_gate\"\n{fails}[hooks.z]\non = \"post_gate\"\ncommand = [\"touch\", \"ran\"]\n"
    ));
    let codes_found = codes(
        gate(&spec, &fixture)
            .args(["--json", "--min-phase", "review"])
            .run(),
        1,
    );
    assert_eq!(codes_found, ["gate-phase-missing", "gate-hook-failed"]);
    assert!(
        !spec.root().join("ran").exists(),
        "after such a hook no other runs"
    );
    settings("[hooks.late]\non = \"post_gate\"\n");
    gate(&spec, &fixture).arg("--json").run().exits(2).error();
}

#[test]
fn gate_document_is_bounded_and_formats_complete() {
    let fixture = Fixture::new();
    let spec = WrittenSpec::done(&fixture, PhaseId::Tasks);
    for number in 0..300 {
        let name = format!("receipts/{number:03}-{}.json", "ä\u{202e}".repeat(40));
        std::fs::write(spec.path(&name), "{}").unwrap();
    }
    let hook = |name: usize| {
        let script = json!(["sh", "-c", "head -c 900 /dev/zero | tr '\\0' '\"'"]);
        format!("[hooks.n{name}]\non = \"pre_gate\"\ncommand = {script}\n")
    };
    std::fs::write(
        spec.root().join(".crucible/config.toml"),
        (0..12).map(hook).collect::<String>(),
    )
    .unwrap();
    let ran = gate(&spec, &fixture).arg("--json").run().exits(1);
    assert!(ran.stdout.len() < 8_192, "{} bytes", ran.stdout.len());
    let small = document(ran, 1);
    let told = |what: &str| small[what].as_array().unwrap().len() as u64;
    assert!(told("findings") > 3 && told("hooks") > 0, "{small:#}");
    assert_eq!(
        told("hooks") + small["hooks_left_out"].as_u64().unwrap(),
        12
    );
    let all = told("findings") + small["findings_left_out"].as_u64().unwrap();

    let lines = |format: &str, begin: &str| {
        let ran = gate(&spec, &fixture)
            .args(["--format", format])
            .run()
            .exits(1);
        ran.stdout
            .lines()
            .filter(|line| line.starts_with(begin))
            .count() as u64
    };
    assert_eq!(
        (lines("text", "error gate-"), lines("github", "::error ")),
        (all, all)
    );
    let log = gate(&spec, &fixture)
        .args(["--format", "sarif"])
        .run()
        .exits(1)
        .json();
    valid_sarif(&log);
    assert_eq!(
        log["runs"][0]["results"].as_array().unwrap().len() as u64,
        all
    );
}

/// A spec in a folder of the repository with something wrong in files whose names are hostile.
fn hostile(fixture: &Fixture) -> WrittenSpec {
    let mut spec = WrittenSpec::new(fixture.path("repo/in here"));
    std::fs::remove_dir(spec.root().join(".git")).unwrap();
    std::fs::create_dir_all(fixture.path("repo/.git")).unwrap();
    for phase in PhaseId::Tasks.up_to() {
        spec.success(phase, HOUR);
    }
    std::fs::write(
        spec.path("receipts/x,y=1::\n::error title=z::%0A\u{1b}[2J.json"),
        "{}",
    )
    .unwrap();
    std::fs::write(spec.path("artifacts/20-tasks.md"), "# other\n").unwrap();
    spec
}

#[test]
fn annotations_use_repository_paths_and_cannot_be_forged() {
    let fixture = Fixture::new();
    let spec = hostile(&fixture);
    let ran = gate(&spec, &fixture)
        .args(["--format", "github"])
        .run()
        .exits(1);
    let commands: Vec<&str> = ran
        .stdout
        .lines()
        .filter(|line| line.contains("::"))
        .collect();
    assert_eq!(commands.len(), 2, "{}", ran.stdout);
    assert!(
        commands
            .iter()
            .all(|line| line.starts_with("::error file=in here/.crucible/specs/export-data/")),
        "{commands:?}"
    );
    assert!(commands[0].contains("receipts/x%2Cy=1%3A%3A%0A%3A%3Aerror title=z%3A%3A%250A\\u{1b}[2J.json,title=gate-receipt-foreign::"), "{commands:?}");
    assert!(
        commands[1]
            .contains("artifacts/20-tasks.md,title=gate-artifact-differs::artifacts/20-tasks.md: "),
        "{commands:?}"
    );
    assert!(ran.stdout.lines().last().unwrap().starts_with("fail: "));
    let written_spec = WrittenSpec::done(&fixture, PhaseId::Tasks);
    let ran = gate(&written_spec, &fixture)
        .args(["--format", "github"])
        .run()
        .ok();
    assert!(!ran.stdout.contains("::"), "{}", ran.stdout);
}

#[test]
fn sarif_has_rules_and_places_for_all_findings() {
    let fixture = Fixture::new();
    let spec = hostile(&fixture);
    let log = gate(&spec, &fixture)
        .args(["--format", "sarif"])
        .run()
        .exits(1)
        .json();
    valid_sarif(&log);
    assert_eq!(
        (&log["version"], log["runs"].as_array().unwrap().len()),
        (&json!("2.1.0"), 1)
    );
    let run = &log["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    let results = run["results"].as_array().unwrap();
    assert_eq!(results.len(), 2);
    for result in results {
        let rule = &rules[usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap()];
        assert!(rule["help"]["text"].as_str().unwrap().len() > 30);
        assert!(result["message"]["text"].as_str().unwrap().len() > 30);
        assert_eq!(result["level"], "error");
        let place = &result["locations"][0]["physicalLocation"]["artifactLocation"];
        let uri = place["uri"].as_str().unwrap();
        assert!(
            uri.starts_with("in%20here/.crucible/specs/export-data/"),
            "{uri}"
        );
        assert!(
            uri.bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-._~/%".contains(&byte)),
            "{uri}"
        );
    }
    assert_eq!(run["invocations"][0]["exitCode"], 1);
    let written_spec = WrittenSpec::done(&fixture, PhaseId::Tasks);
    let log = gate(&written_spec, &fixture)
        .args(["--format", "sarif"])
        .run()
        .ok()
        .json();
    valid_sarif(&log);
    assert_eq!(
        log["runs"][0]["results"],
        json!([]),
        "an empty list clears what was shown before"
    );
}

/// What is done to a spec of the property below.
#[derive(Debug, Clone, Copy)]
enum Deed {
    Nothing,
    Fail,
    DryRun,
    EditArtifact,
    EditReceipt,
    NoSpec,
    BadAge,
    NoDirectory,
}

mod properties {
    use crucible_testkit::expensive_cases;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: expensive_cases(), max_shrink_iters: 40, ..ProptestConfig::default() })]

        /// Property 14, end to end: 0 where the policy is met, 1 where it is not, and the code of the fault where nothing can be judged.
        #[test]
        fn exit_code_separates_pass_policy_and_runtime_failure(
            reached in 0usize..=6,
            asked in 0usize..6,
            at in 0usize..6,
            deed in proptest::sample::select(vec![
                Deed::Nothing, Deed::Nothing, Deed::Fail, Deed::DryRun, Deed::EditArtifact, Deed::EditReceipt, Deed::NoSpec, Deed::BadAge, Deed::NoDirectory,
            ]),
            hours_old in 1u64..100,
            limit in proptest::option::of(1u64..100),
            json in any::<bool>(),
        ) {
            let fixture = Fixture::new();
            let mut spec = WrittenSpec::new(fixture.path("project"));
            let files: Vec<_> = PhaseId::ALL[..reached].iter().map(|phase| spec.success(*phase, HOUR * u32::try_from(hours_old).unwrap() - HOUR / 2)).collect();
            let phase = PhaseId::ALL[at];
            let exists = at < reached;
            let (mut id, mut age) = (SPEC, limit.map(|hours| format!("{hours}h")));
            // Half an hour off the limit on either side, so that the test may be slow.
            let in_time = limit.is_none_or(|limit| hours_old <= limit);
            let mut passes = reached > asked && in_time;
            let mut fault = None;
            match deed {
                Deed::Nothing => {}
                Deed::Fail => {
                    spec.failure(phase, Duration::ZERO);
                    passes &= at > asked;
                }
                Deed::DryRun => { spec.dry_run(phase, Duration::ZERO); }
                Deed::EditArtifact if exists => {
                    std::fs::write(spec.path(&format!("artifacts/{}", phase.artifact())), "edited\n").unwrap();
                    passes &= at > asked;
                }
                Deed::EditReceipt if exists => {
                    let text = std::fs::read_to_string(&files[at]).unwrap();
                    std::fs::write(&files[at], text.replace("model-1", "model-2")).unwrap();
                    passes = false;
                }
                Deed::EditArtifact | Deed::EditReceipt => {}
                Deed::NoSpec => { id = "other"; fault = Some(2); }
                Deed::BadAge => { age = Some("7".to_owned()); fault = Some(2); }
                Deed::NoDirectory => {
                    std::fs::remove_dir_all(spec.path("receipts")).unwrap();
                    std::fs::write(spec.path("receipts"), "").unwrap();
                    fault = Some(2);
                }
            }
            let mut call = spec.call(&fixture, ["gate", id, "--min-phase", PhaseId::ALL[asked].as_str()]);
            if let Some(age) = age { call = call.arg(format!("--max-phase-age={age}")); }
            if json { call = call.arg("--json"); }
            let ran = call.run();
            let expected = fault.unwrap_or(if passes { 0 } else { 1 });
            prop_assert_eq!(ran.code, Some(expected), "{}\n{}", ran.stdout, ran.stderr);
            prop_assert_eq!(ran.stdout.is_empty(), fault.is_some(), "a verdict is a result, a fault is none");
            if json && fault.is_none() {
                prop_assert_eq!(&ran.json()["verdict"], if passes { "pass" } else { "fail" });
            }
        }
    }
}
