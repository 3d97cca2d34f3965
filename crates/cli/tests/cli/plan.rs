//! `crucible plan check`: a plan, its documents, its evidence, its gates and its signature.

use std::path::Path;

use crucible_testkit::TestRepo;
use serde_json::Value;

use crate::support::{Fixture, Ran, answering, good_answer, id_of, small, snapshot};

const PLAN: &str = "# Plan\n\nStatus: SIGNED\nGoal: fix it\nScope-Allow: src/\nScope-Deny:\n\
                    Gates: lite, plan_check, patch_check, behavior_catalog_check\nStop: verified\nBudgets: 3\n\
                    Behaviors: B001\nResults: R001\n";
const REASONS: &str = "# Reasons\n\n- R001, B001: because\n";
const RESULTS: &str = "# Expected results\n\n## R001: mended\nAcceptance: it works\nEvidence: src/area.py\nRelated-Gates: lite\n";
const ALL: &str = "lite,plan_check,patch_check,behavior_catalog_check";

/// A plan with its documents, and a repository with the behaviour that it names.
fn repo_with_plan(fixture: &Fixture, plan: &str) -> TestRepo {
    for (name, text) in [
        ("PLAN.md", plan),
        ("REASONS.md", REASONS),
        ("EXPECTED_RESULTS.md", RESULTS),
    ] {
        std::fs::write(fixture.path(name), text).unwrap();
    }
    small().file("docs/behaviors/INDEX.md", "- B001\n").build()
}

fn check<const N: usize>(fixture: &Fixture, repo: &Path, more: [&str; N]) -> Ran {
    let call = fixture
        .call(["plan", "check", "--json", "--plan"])
        .arg(fixture.path("PLAN.md"))
        .arg("--repo")
        .arg(repo);
    call.args(more).run()
}

/// The findings as `code subject`.
fn finding_codes(ran: &Ran) -> Vec<String> {
    let document = ran.json();
    assert_eq!(document["schema_version"], "crucible-plan-check-v1");
    let findings = document["findings"].as_array().unwrap();
    let verdict = if findings.iter().any(|finding| finding["level"] == "error") {
        "fail"
    } else {
        "pass"
    };
    assert_eq!(document["verdict"], verdict);
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap().to_owned();
    findings
        .iter()
        .map(|finding| text(finding, "code") + " " + &text(finding, "subject"))
        .collect()
}

#[test]
fn a_whole_plan_holds_and_nothing_is_touched() {
    let fixture = Fixture::new();
    let repo = repo_with_plan(&fixture, PLAN);
    let before = snapshot(&repo, &fixture);
    assert_eq!(
        finding_codes(
            &check(
                &fixture,
                repo.path(),
                ["--check-evidence", "--executed-gates", ALL]
            )
            .ok()
        ),
        [""; 0]
    );
    let ran = fixture
        .call(["plan", "check", "--plan"])
        .arg(fixture.path("PLAN.md"))
        .arg("--repo")
        .arg(repo.path())
        .run();
    assert_eq!(ran.ok().stdout, "the plan holds\n");
    before.is_still(&snapshot(&repo, &fixture));
}

#[test]
fn missing_ids_evidence_and_gates_are_named() {
    let fixture = Fixture::new();
    let repo = repo_with_plan(
        &fixture,
        &PLAN.replace("Results: R001", "Results: R001, R009"),
    );
    std::fs::write(
        fixture.path("EXPECTED_RESULTS.md"),
        RESULTS.replace("src/area.py", "src/gone.py, src, up/x"),
    )
    .unwrap();
    std::fs::create_dir(fixture.path("outside")).unwrap();
    std::os::unix::fs::symlink(fixture.path("outside"), repo.path().join("up")).unwrap();
    std::fs::write(fixture.path("outside/x"), "").unwrap();
    std::fs::write(repo.path().join("docs/behaviors/INDEX.md"), "- B002\n").unwrap();
    let ran = check(
        &fixture,
        repo.path(),
        [
            "--check-evidence",
            "--executed-gates",
            "lite,plan_check,patch_check",
        ],
    )
    .exits(1);
    assert_eq!(
        finding_codes(&ran),
        [
            "plan-id-unresolved B001",
            "plan-id-unresolved R009",
            "plan-reason-unresolved B001",
            "plan-evidence-missing src/gone.py",
            "plan-evidence-no-file src",
            "plan-evidence-outside up/x",
            "plan-gate-not-executed behavior_catalog_check",
        ]
    );
    std::fs::remove_file(fixture.path("EXPECTED_RESULTS.md")).unwrap();
    std::fs::remove_file(fixture.path("REASONS.md")).unwrap();
    let ran = check(&fixture, repo.path(), []).exits(1);
    assert!(finding_codes(&ran).contains(&"plan-document-missing REASONS.md".to_owned()));
    assert!(finding_codes(&ran).contains(&"plan-document-missing EXPECTED_RESULTS.md".to_owned()));
}

#[test]
fn plan_readable_in_two_ways_is_refused() {
    let fixture = Fixture::new();
    for (plan, expected) in [
        (
            PLAN.replace("Scope-Allow: src/", "Scope-Allow: ."),
            "plan-scope-everything .",
        ),
        (
            PLAN.replace("Scope-Allow: src/", "Scope-Allow: ../src"),
            "plan-scope-invalid ../src",
        ),
        (
            PLAN.replace("Scope-Allow", "scope-allow"),
            "plan-key-misspelt line 5",
        ),
        (
            PLAN.replace("Status: SIGNED", "Status: SIGNED\nStatus: SIGNED"),
            "plan-key-repeated Status",
        ),
        (
            PLAN.replace("Status: SIGNED", "Status: SIGNED (by me)"),
            "plan-status-invalid SIGNED (by me)",
        ),
        (
            PLAN.replace("Status: SIGNED", "Status: DRAFT"),
            "plan-unsigned Status",
        ),
        (
            PLAN.replace("Stop: verified", "Stop:"),
            "plan-value-empty Stop",
        ),
        (
            PLAN.replace("Stop: verified", "Stop: when it is done"),
            "plan-stop-invalid when it is done",
        ),
        (
            PLAN.replace("Gates: lite,", "Gates: lite,,"),
            "plan-list-gap Gates",
        ),
        (
            PLAN.replace("Gates: lite,", "Gates: lite (quick),"),
            "plan-gate-invalid lite (quick)",
        ),
        (
            PLAN.replace("Behaviors: B001", "Behaviors: B001 (totals)"),
            "plan-id-invalid B001 (totals)",
        ),
        (
            PLAN.replace("Stop: verified", "Stop: \u{202e}verified"),
            "plan-text-invalid line 8",
        ),
        (format!("{PLAN}~~~\n"), "plan-text-invalid line 12"),
    ] {
        let repo = repo_with_plan(&fixture, &plan);
        assert!(
            finding_codes(&check(&fixture, repo.path(), []).exits(1))
                .iter()
                .any(|finding_codes| finding_codes == expected),
            "{expected}"
        );
    }
    let repo = repo_with_plan(&fixture, PLAN);
    std::fs::write(fixture.path("PLAN.md"), b"Status: \xff\n").unwrap();
    assert_eq!(
        finding_codes(&check(&fixture, repo.path(), []).exits(1)),
        ["plan-text-invalid the text"]
    );
    std::fs::write(
        fixture.path("PLAN.md"),
        format!("\u{feff}{}", PLAN.replace('\n', "\r\n")),
    )
    .unwrap();
    assert_eq!(
        finding_codes(&check(&fixture, repo.path(), []).ok()),
        [""; 0]
    );
}

#[test]
fn run_plan_passes_check_as_it_was_signed() {
    let repo = small().build();
    let server = answering(good_answer());
    let fixture = Fixture::with(&server);
    let started = fixture.start(repo.path()).ok().json();
    let directory = started["directory"].as_str().unwrap().to_owned();
    let check = || {
        fixture.run([
            "plan",
            "check",
            "--json",
            "--check-evidence",
            "--run",
            &directory,
        ])
    };
    assert_eq!(finding_codes(&check().ok()), [""; 0]);
    assert_eq!(
        finding_codes(
            &fixture
                .run(["plan", "check", "--json", "--run", &id_of(&started)])
                .ok()
        ),
        [""; 0]
    );
    let report =
        std::fs::read_to_string(format!("{directory}/artifacts/verify_report.json")).unwrap();
    let report: Value = serde_json::from_str(&report).unwrap();
    let executed = report["executed_gates"].as_array().unwrap();
    assert!(
        executed.contains(&Value::from("behavior_catalog_check")),
        "{report}"
    );

    let path = format!("{directory}/artifacts/PLAN.md");
    let plan = std::fs::read_to_string(&path).unwrap();
    // Also where the plan is named by its file.
    let top = repo.path().to_str().unwrap();
    let by_file = || fixture.run(["plan", "check", "--json", "--plan", &path, "--repo", top]);
    assert_eq!(finding_codes(&by_file().ok()), [""; 0]);
    std::fs::write(&path, plan.replace("Stop: ", "Stop:  ")).unwrap();
    assert_eq!(
        finding_codes(&by_file().exits(1)),
        ["plan-unsigned artifacts/PLAN.md"]
    );
    let ran = check().exits(1);
    assert_eq!(
        finding_codes(&ran),
        [
            "plan-unsigned artifacts/PLAN.md",
            "plan-not-verified artifacts/verify_report.json"
        ]
    );
    assert!(
        ran.json()["findings"][0]["hint"]
            .as_str()
            .unwrap()
            .contains("changed after signing")
    );
    std::fs::write(&path, &plan).unwrap();

    let review = format!("{directory}/reviews/review_cost.md");
    let approved = std::fs::read_to_string(&review).unwrap();
    std::fs::write(&review, format!("{approved}\n")).unwrap();
    assert_eq!(
        finding_codes(&check().exits(1)),
        ["plan-unsigned artifacts/PLAN.md"]
    );
    std::fs::write(&review, approved).unwrap();
    std::fs::remove_file(format!("{directory}/artifacts/verify_report.json")).unwrap();
    assert_eq!(
        finding_codes(&check().exits(1)),
        [
            "plan-evidence-missing artifacts/verify_report.json",
            "plan-not-verified artifacts/verify_report.json"
        ]
    );
    std::fs::remove_file(format!("{directory}/artifacts/signature.json")).unwrap();
    assert!(
        finding_codes(&check().exits(1)).contains(&"plan-unsigned artifacts/PLAN.md".to_owned())
    );
}

#[test]
fn unreadable_or_foreign_plan_is_an_error() {
    let fixture = Fixture::new();
    let missing_path = fixture.path("gone.md");
    fixture
        .call(["plan", "check", "--json", "--plan"])
        .arg(&missing_path)
        .run()
        .exits(2)
        .error();
    fixture.run(["plan", "check", "--json"]).exits(2);
    fixture
        .run([
            "plan",
            "check",
            "--json",
            "--run",
            ".",
            "--executed-gates",
            "lite",
        ])
        .exits(2);
    fixture
        .run(["plan", "check", "--json", "--run", ".", "--plan", "x"])
        .exits(2);
    fixture
        .run(["plan", "check", "--json", "--run", "nobody"])
        .exits(2);
    std::fs::write(&missing_path, PLAN).unwrap();
    let ran = fixture
        .call(["plan", "check", "--json", "--repo", "/", "--plan"])
        .arg(&missing_path)
        .run();
    ran.exits(2).error();
}

#[test]
fn pipe_as_document_does_not_block() {
    let fixture = Fixture::new();
    let run = fixture.path("run");
    std::fs::create_dir_all(run.join("artifacts")).unwrap();
    let pipe = |name: &str| {
        let exit_status = std::process::Command::new("mkfifo")
            .arg(run.join("artifacts").join(name))
            .status()
            .unwrap();
        assert!(exit_status.success());
    };
    pipe("PLAN.md");
    let check = || {
        fixture
            .call(["plan", "check", "--json", "--run"])
            .arg(&run)
            .run()
    };
    check().exits(1).error();
    std::fs::remove_file(run.join("artifacts/PLAN.md")).unwrap();
    std::fs::write(run.join("artifacts/PLAN.md"), PLAN).unwrap();
    pipe("REASONS.md");
    // It is not a file of the run, so the document is not there.
    assert!(check().exits(1).stdout.contains("plan-document-missing"));
    let plan = run.join("artifacts/PLAN.md");
    fixture
        .call(["plan", "check", "--json", "--plan"])
        .arg(&plan)
        .run()
        .exits(2)
        .error();
}
