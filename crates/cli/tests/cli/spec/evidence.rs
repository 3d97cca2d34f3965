//! From a task of a spec to a landed run, and which requirements it proves.

use std::path::Path;

use crucible_testkit::{FakeOpenAi, RepoBuilder, TestRepo};
use serde_json::Value;

use crate::support::{Fixture, Ran, answering, id_of, whole_file};

const GATE: &str = "[gates.tests]\ncommand = [\"python3\", \"-m\", \"unittest\", \"discover\", \"-v\", \"-s\", \"tests\", \"-t\", \".\"]\n";
const WRONG: &str = "def area(width, height):\n    return width + height\n\n\ndef perimeter(width, height):\n    return 2 * (width + height)\n";
const TESTS: &str = "import unittest\n\nfrom app.area import area, perimeter\n\n\nclass AreaTest(unittest.TestCase):\n    \
    def test_area(self):\n        self.assertEqual(area(2, 3), 6)\n\n    \
    def test_perimeter(self):\n        self.assertEqual(perimeter(2, 3), 10)\n";
const REQUIREMENTS: &str = "# Requirements: Area\n\n### R-001: The area is a product\n\nThe function area multiplies.\n\n\
    - Test: tests.test_area.AreaTest.test_area in tests/test_area.py\n\n### R-002: The perimeter is a sum\n\n\
    - Test: tests.test_area.AreaTest.test_perimeter in tests/test_area.py\n\
    - Test: tests.test_area.AreaTest.test_cube in tests/test_area.py\n\n### R-003: It is fast\n\n- It takes no time.\n";
const TASKS: &str = "# Tasks: Area\n\n- [ ] T-001 (R-001, R-002, R-003): Make area in app/area.py multiply width and height\n  \
    files: app/area.py\n";
const SPEC_KIT: &str = "# Feature Specification: Area\n\n### User Story 1 - Area (Priority: P1)\n\nAs a user I want an area.\n\
    - Test: tests.test_area.AreaTest.test_area in tests/test_area.py\n\n## Requirements\n\n\
    - **FR-001**: System MUST add for the perimeter\n  - Test: `tests.test_area.AreaTest.test_perimeter` in `tests/test_area.py`\n";

/// A spec of the area.
const OWN: [(&str, &str); 2] = [
    (
        ".crucible/specs/area/artifacts/00-requirements.md",
        REQUIREMENTS,
    ),
    (".crucible/specs/area/artifacts/20-tasks.md", TASKS),
];

/// A repository with a wrong function, its tests and these files.
pub(crate) fn area_repo(files: &[(&str, &str)]) -> TestRepo {
    let usual = [
        (".crucible/config.toml", GATE),
        ("app/__init__.py", ""),
        ("app/area.py", WRONG),
        ("tests/__init__.py", ""),
        ("tests/test_area.py", TESTS),
    ];
    let all = RepoBuilder::new().files(usual);
    all.files(files.iter().copied()).build()
}

/// The same with a spec that asks for the right function.
pub(crate) fn area_repo_with_spec() -> TestRepo {
    area_repo(&OWN)
}

/// The answer of a model that corrects the function.
pub(crate) fn area_answer() -> String {
    let right = WRONG.replacen("width + height", "width * height", 1);
    whole_file("app/area.py", &right)
}

struct Setup {
    fixture: Fixture,
    repo: TestRepo,
    _server: FakeOpenAi,
}

impl Setup {
    fn new(files: &[(&str, &str)]) -> Self {
        let repo = area_repo(files);
        let server = answering(area_answer());
        let fixture = Fixture::with(&server);
        fixture.run(["attest", "init"]).ok();
        Self {
            fixture,
            repo,
            _server: server,
        }
    }

    fn own() -> Self {
        Self::new(&OWN)
    }

    fn call(&self, words: &[&str]) -> Ran {
        let call = self.fixture.call(words);
        call.current_dir(self.repo.path()).run()
    }

    /// The state of each requirement with those of its tests.
    fn states(&self, spec: &str) -> Vec<String> {
        let ran = self.call(&["spec", "evidence", spec, "--json"]);
        states(&ran.json()["matrix"])
    }

    fn codes(&self, spec: &str) -> Vec<String> {
        let document = self.call(&["spec", "evidence", spec, "--json"]).json();
        let findings = document["findings"].as_array().unwrap();
        findings
            .iter()
            .map(|finding| finding["code"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Runs a task and lands it; returns the run and the commit.
    fn land(&self, spec: &str, task: &str) -> (String, String) {
        let ran = self.call(&["spec", "run", spec, task, "--json"]).ok();
        let id = id_of(&ran.json());
        let landed = self.call(&["run", "land", &id, "--json"]).ok().json();
        (id, landed["commit"].as_str().unwrap().to_owned())
    }

    fn run_file(&self, run: &str, path: &str) -> std::path::PathBuf {
        self.fixture.data().join("runs").join(run).join(path)
    }
}

fn states(matrix: &Value) -> Vec<String> {
    let rows = matrix["requirements"].as_array().unwrap().iter();
    rows.map(|row| {
        let tests = row["tests"].as_array().unwrap().iter();
        let tests: Vec<&str> = tests.map(|test| test["state"].as_str().unwrap()).collect();
        format!(
            "{} {}: {}",
            row["id"].as_str().unwrap(),
            row["state"].as_str().unwrap(),
            tests.join(" ")
        )
    })
    .collect()
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

const NOTHING: [&str; 3] = [
    "R-001 none: not-run",
    "R-002 none: not-run gone",
    "R-003 none: ",
];
const LANDED: [&str; 3] = [
    "R-001 proven: proven",
    "R-002 partial: proven gone",
    "R-003 none: ",
];

#[test]
fn task_becomes_a_run_whose_landing_proves_requirements() {
    let setup = Setup::own();
    setup.call(&["spec", "evidence", "area"]).exits(1);
    assert_eq!(setup.states("area"), NOTHING);
    let ran = setup.call(&["spec", "run", "area", "t-001"]).ok();
    for content in [
        "Make area in app/area.py multiply width and height",
        "Files: app/area.py",
        "Requirement R-001: The area is a product",
        "Write the test tests.test_area.AreaTest.test_cube in tests/test_area.py.",
    ] {
        assert!(ran.stderr.contains(content), "{content}: {}", ran.stderr);
    }
    assert!(
        !ran.stderr.contains("AreaTest.test_area "),
        "{}",
        ran.stderr
    );
    // A verified run proves nothing before it landed.
    assert_eq!(setup.states("area"), NOTHING);
    let landed = setup.call(&["run", "land", "--json"]).ok().json();
    let commit = landed["commit"].as_str().unwrap();
    let ran = setup.call(&["spec", "evidence", "area", "--json"]).exits(1);
    let document = ran.json();
    let matrix = &document["matrix"];
    assert_eq!(states(matrix), LANDED);
    assert_eq!(document["verdict"], "fail");
    let first = &matrix["requirements"][0]["tests"][0];
    assert_eq!(
        (first["commit"].as_str(), first["origin"].as_str()),
        (Some(commit), Some("existing"))
    );
    let schema = include_str!("../../../../../docs/schemas/crucible-evidence-v1.schema.json");
    let schema = jsonschema::validator_for(&serde_json::from_str(schema).unwrap()).unwrap();
    assert!(schema.is_valid(matrix), "{matrix:#}");
    // The same state gives the same bytes.
    let second_output = setup.call(&["spec", "evidence", "area", "--json"]);
    assert_eq!(second_output.stdout, ran.stdout);
    let markdown = setup
        .call(&["spec", "evidence", "area", "--markdown"])
        .exits(1);
    assert!(
        markdown
            .stdout
            .contains("| R-001: The area is a product | proven |"),
        "{}",
        markdown.stdout
    );

    // The landing has the matrix as an artifact, and its statement has the digest and the counts.
    let run = first["run"].as_str().unwrap();
    let own = setup.run_file(run, "artifacts/evidence.json");
    assert_eq!(states(&read(&own)), LANDED);
    assert!(schema.is_valid(&read(&own)));
    let note = setup.repo.git(["notes", "--ref=crucible", "show", commit]);
    let payload = crucible_attest::payload_of(note.as_bytes()).unwrap();
    let statement: Value = serde_json::from_slice(&payload).unwrap();
    assert_eq!(statement["predicateType"], "urn:crucible:change:v2");
    let proof = &statement["predicate"]["spec"];
    let digest = crucible_model::Digest::compute(&std::fs::read(&own).unwrap());
    assert_eq!(proof["matrix"], digest.to_string());
    assert_eq!(
        (&proof["proven"], &proof["partial"], &proof["none"]),
        (&1.into(), &1.into(), &1.into())
    );
    assert_eq!(
        (proof["spec"].as_str(), proof["task"].as_str()),
        (Some("area"), Some("T-001"))
    );
    let key = setup.call(&["attest", "key", "--json"]).ok().json();
    let policy = setup.fixture.path("attest.toml");
    let text = format!(
        "version = 1\n[[signers]]\nname = \"ada\"\nkey = \"{}\"\n",
        key["key"].as_str().unwrap()
    );
    std::fs::write(&policy, text).unwrap();
    setup
        .call(&[
            "attest",
            "verify",
            "HEAD",
            "--policy",
            policy.to_str().unwrap(),
        ])
        .ok();
    setup.call(&["run", "verify-record", run]).ok();
}

#[test]
fn evidence_ends_with_its_test_commit_or_record() {
    let setup = Setup::own();
    let (run, commit) = setup.land("area", "T-001");
    assert_eq!(setup.states("area"), LANDED);
    // Somebody edits what the run reported.
    let report = setup.run_file(&run, "artifacts/verify_report.json");
    let honest = std::fs::read_to_string(&report).unwrap();
    std::fs::write(
        &report,
        honest.replace("\"status\":\"passed\"", "\"status\":\"failed\""),
    )
    .unwrap();
    assert_eq!(setup.states("area"), NOTHING);
    assert!(
        setup
            .codes("area")
            .contains(&"evidence-run-refused".to_owned())
    );
    std::fs::write(&report, &honest).unwrap();
    assert_eq!(setup.states("area"), LANDED);
    // The test goes.
    setup.repo.write(
        "tests/test_area.py",
        TESTS.replace("test_area(", "test_other("),
    );
    setup.repo.commit("Rename the test");
    assert_eq!(setup.states("area")[0], "R-001 none: gone");
    setup.repo.git(["reset", "--quiet", "--hard", &commit]);
    // Somebody undoes the change; one elsewhere in its file leaves it.
    setup.repo.git(["revert", "--no-edit", "HEAD"]);
    assert_eq!(setup.states("area"), NOTHING);
    assert!(
        setup
            .codes("area")
            .contains(&"evidence-change-undone".to_owned())
    );
    setup.repo.git(["reset", "--quiet", "--hard", &commit]);
    let source = std::fs::read_to_string(setup.repo.path().join("app/area.py")).unwrap();
    setup
        .repo
        .write("app/area.py", format!("{source}\n\nOTHER = 1\n"));
    setup.repo.commit("Add a constant");
    assert_eq!(setup.states("area"), LANDED);
    setup.repo.git(["reset", "--quiet", "--hard", &commit]);
    // Somebody rewords the commit: the tree and the parents stay.
    let amend = [
        "commit",
        "--quiet",
        "--amend",
        "--message",
        "Another message",
    ];
    setup.repo.git(amend);
    setup.repo.write("other.txt", "1");
    setup.repo.commit("Go on");
    assert_eq!(setup.states("area"), LANDED);
    // A rewritten commit with another tree is another change.
    setup.repo.git(["reset", "--quiet", "--hard", &commit]);
    setup.repo.write("other.txt", "1");
    setup.repo.git(["add", "other.txt"]);
    setup.repo.git(amend);
    assert_eq!(setup.states("area"), NOTHING);
    setup.repo.git(["reset", "--quiet", "--hard", &commit]);
    // The requirement says something else now.
    setup.repo.write(
        ".crucible/specs/area/artifacts/00-requirements.md",
        REQUIREMENTS.replace("multiplies", "divides"),
    );
    assert_eq!(setup.states("area")[0], "R-001 none: outdated");
    setup.repo.git(["checkout", "--quiet", "--", "."]);
    // The commit goes.
    setup
        .repo
        .git(["checkout", "--quiet", "--detach", &format!("{commit}^")]);
    assert_eq!(setup.states("area"), NOTHING);
    assert!(
        setup
            .codes("area")
            .contains(&"evidence-commit-unreached".to_owned())
    );
    // Another machine has no ledger.
    setup.repo.git(["checkout", "--quiet", "main"]);
    let elsewhere = Fixture::new();
    let call = elsewhere.call(["spec", "evidence", "area", "--json"]);
    let document = call.current_dir(setup.repo.path()).run().exits(1).json();
    assert_eq!(states(&document["matrix"]), NOTHING);
}

#[test]
fn unusable_spec_starts_no_run() {
    let setup = Setup::own();
    let ran = setup.call(&["spec", "run", "area", "T-009"]).exits(2);
    assert!(
        ran.stderr.contains("no task \"T-009\"") && ran.stderr.contains("T-001"),
        "{}",
        ran.stderr
    );
    setup.call(&["spec", "run", "nothing", "T-001"]).exits(2);
    let bad = REQUIREMENTS.replace("test_area in tests", "test_area in ../tests");
    setup
        .repo
        .write(".crucible/specs/area/artifacts/00-requirements.md", bad);
    let ran = setup.call(&["spec", "run", "area", "T-001"]).exits(1);
    assert!(
        ran.stderr.contains("outline-test-invalid"),
        "{}",
        ran.stderr
    );
    assert_eq!(setup.fixture.runs(), [] as [std::path::PathBuf; 0]);
}

#[test]
fn spec_kit_folder_is_run_and_gated_unchanged() {
    let files = [
        ("specs/001-area/spec.md", SPEC_KIT),
        ("specs/001-area/plan.md", "# Plan\n"),
        (
            "specs/001-area/tasks.md",
            "# Tasks\n\n- [x] T001 Create project\n- [ ] T002 [P] [US1] Multiply in app/area.py (FR-001)\n",
        ),
        (
            ".kiro/specs/lamp/requirements.md",
            "### Requirement 1\n\n#### Acceptance Criteria\n\n1. WHEN a THE SYSTEM SHALL b\n",
        ),
        (
            ".kiro/specs/lamp/tasks.md",
            "- [ ] 1. Do\n  - _Requirements: 1.1_\n",
        ),
        ("openspec/changes/log/tasks.md", "- [ ] 1.1 Do\n"),
        (
            "openspec/changes/log/specs/log/spec.md",
            "## ADDED Requirements\n\n### Requirement: Log\n\nThe system SHALL log.\n",
        ),
    ];
    let setup = Setup::new(&files);
    let status = setup.call(&["status", "001-area", "--json"]).ok().json();
    assert_eq!(status["next"], "crucible spec run specs/001-area T002");
    assert_eq!(
        (
            status["tasks"][0]["is_done"].as_bool(),
            status["requirements"]["none"].as_u64()
        ),
        (Some(true), Some(2))
    );
    setup.call(&["gate", "specs/001-area"]).exits(1);
    let before = setup.repo.git(["status", "--porcelain"]);
    setup.land("001-area", "T002");
    let gate = setup.call(&["gate", "001-area"]).ok();
    assert!(
        gate.stdout.contains("pass: specs/001-area at"),
        "{}",
        gate.stdout
    );
    assert_eq!(
        setup.states("001-area"),
        ["US1 proven: proven", "FR-001 proven: proven"]
    );
    setup
        .call(&["gate", "001-area", "--min-phase", "design"])
        .exits(2);
    setup
        .call(&["gate", "001-area", "--format", "sarif"])
        .exits(2);
    // Nothing was written to the folders.
    assert_eq!(setup.repo.git(["status", "--porcelain"]), before);
    for named in ["lamp", "log"] {
        setup.call(&["status", named]).ok();
        let gate = setup.call(&["gate", named]).exits(1);
        assert!(gate.stdout.contains("evidence-no-test"), "{}", gate.stdout);
    }
}
