//! Skills as a user asks for them: the package that is laid, a proposal and what it is refused for, the list, and the whole story.

use std::path::PathBuf;

use crucible_forge::SkillGate;
use crucible_ledger::{
    Ledger, Moment, NewPromotion, NewSkillBuild, NewSkillRun, NewVerification, SkillArtifactKind,
    SkillBuildEnd, SkillGateRow, SkillRunOutcome, SkillStatus, VerificationEnd, VerificationLevel,
};
use crucible_model::{ClockSource, Digest};
use serde_json::{Value, json};

use crate::support::{Call, Fixture, Ran, Snapshot};

const SCHEMA: &str = r#"{"input": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    "output": {"type": "object", "properties": {"count": {"type": "integer"}}}}"#;
const KEY: &str = "ghp_0123456789abcdefABCDEF0123456789abcd";

struct Setup {
    fixture: Fixture,
}

impl Setup {
    /// A project that has a package for skills.
    fn begun() -> Self {
        let setup = Self::empty();
        setup.run(["skill", "init"]).ok();
        setup
    }

    fn empty() -> Self {
        let fixture = Fixture::new();
        std::fs::create_dir_all(fixture.path("project/.git")).unwrap();
        std::fs::write(fixture.path("io.json"), SCHEMA).unwrap();
        Self { fixture }
    }

    fn root(&self) -> PathBuf {
        self.fixture.path("project")
    }

    fn run<const N: usize>(&self, words: [&str; N]) -> Ran {
        self.fixture.call(words).current_dir(self.root()).run()
    }

    fn propose(&self, name: &str) -> Call {
        let words = [
            "skill",
            "propose",
            name,
            "--describe",
            "Counts words.",
            "--effects",
            "read_only",
            "--io",
        ];
        self.fixture
            .call(words)
            .arg(self.fixture.path("io.json"))
            .current_dir(self.root())
    }

    fn json<const N: usize>(&self, words: [&str; N], schema: &str) -> Value {
        let document = self
            .fixture
            .call(words)
            .arg("--json")
            .current_dir(self.root())
            .run()
            .ok()
            .json();
        let schema = serde_json::from_str(schema).unwrap();
        let judge = jsonschema::validator_for(&schema).unwrap();
        let problems: Vec<String> = judge
            .iter_errors(&document)
            .map(|error| error.to_string())
            .collect();
        assert!(problems.is_empty(), "{problems:?} in {document:#}");
        document
    }

    fn list(&self) -> Value {
        self.json(
            ["skill", "list"],
            include_str!("../../../../docs/schemas/skill-list.v1.schema.json"),
        )
    }

    fn show(&self, name: &str) -> Value {
        self.json(
            ["skill", "show", name],
            include_str!("../../../../docs/schemas/skill-show.v1.schema.json"),
        )
    }
}

#[test]
fn a_skill_is_proposed_listed_and_shown() {
    let setup = Setup::begun();
    assert_eq!(setup.list()["skills"], json!([]));
    std::fs::write(
        setup.fixture.path("examples.json"),
        r#"[{"input": {"text": "held back"}, "output": {"count": 2}}]"#,
    )
    .unwrap();
    let command_output = setup
        .propose("count_words")
        .arg("--examples")
        .arg(setup.fixture.path("examples.json"))
        .run()
        .ok();
    assert_eq!(
        command_output.stdout,
        "proposed count_words\nnext: crucible skill build count_words\n"
    );
    let list = setup.list();
    assert_eq!(list["skills"][0]["name"], "count_words");
    assert_eq!(
        list["skills"][0]["next_steps"],
        json!(["build", "research"])
    );
    let document = setup.show("count_words");
    assert_eq!(document["status"], "PROPOSED");
    let kinds: Vec<&str> = document["artifacts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|stored_json| stored_json["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["SKILL_SPEC", "NOTE"]);
    let spec = document["artifacts"][0]["digest"].as_str().unwrap();
    let stored_output = setup.run(["ledger", "show", spec]);
    assert!(
        !stored_output.stdout.contains("held back"),
        "{}",
        stored_output.stdout
    );
    assert!(
        setup
            .run(["skill", "show", "count_words"])
            .ok()
            .stdout
            .contains("may follow: build, research")
    );
    setup.run(["ledger", "verify"]).ok();
}

#[test]
fn invalid_proposal_is_refused_without_a_record() {
    let setup = Setup::begun();
    for name in ["../../../evil", "TIMEOUT_x", "class", "_a1", "1a", "-x", ""] {
        setup.propose(name).run().exits(2);
    }
    for text in [
        "",
        "{",
        "[]",
        "true",
        r#"{"input": {"type": "object"}}"#,
        r#"{"input": {"type": "object", "$ref": "https://example.com/x"}, "output": {"type": "object"}}"#,
    ] {
        std::fs::write(setup.fixture.path("io.json"), text).unwrap();
        setup.propose("good").run().exits(3);
    }
    std::fs::remove_file(setup.fixture.path("io.json")).unwrap();
    setup.propose("good").run().exits(2);
    std::fs::write(setup.fixture.path("io.json"), SCHEMA).unwrap();
    for grant in [
        ["--allow-host", "*"],
        ["--allow-host", "example.com"],
        ["--allow-secret", "PATH"],
        ["--allow-write", "../x"],
    ] {
        setup.propose("good").args(grant).run().exits(2);
    }
    std::fs::write(
        setup.fixture.path("examples.json"),
        r#"[{"input": {"text": 1}, "output": {}}]"#,
    )
    .unwrap();
    setup
        .propose("good")
        .arg("--examples")
        .arg(setup.fixture.path("examples.json"))
        .run()
        .exits(3);
    for (describe, code) in [
        (format!("Use {KEY}."), 8),
        ("\u{1b}[2Jx".to_owned(), 2),
        ("x".repeat(2_001), 2),
        (" ".to_owned(), 2),
    ] {
        let words = [
            "skill",
            "propose",
            "good",
            "--effects",
            "READ_ONLY",
            "--describe",
        ];
        let call = setup
            .fixture
            .call(words)
            .arg(&describe)
            .arg("--io")
            .arg(setup.fixture.path("io.json"));
        let command_output = call.current_dir(setup.root()).run().exits(code);
        assert!(
            !command_output.stderr.contains(KEY) && !command_output.stderr.contains('\u{1b}'),
            "{}",
            command_output.stderr
        );
    }
    assert_eq!(setup.list()["skills"], json!([]));
    setup.propose("good").run().ok();
    let twice = setup.propose("good").run().exits(2);
    assert!(twice.stderr.contains("skill list"), "{}", twice.stderr);
    assert_eq!(setup.list()["skills"].as_array().unwrap().len(), 1);
    setup.run(["skill", "show", "unknown"]).exits(2);
}

#[test]
fn missing_skill_package_is_reported_with_command() {
    let setup = Setup::empty();
    let output = setup.propose("good").run().exits(2);
    assert!(
        output.stderr.contains("crucible skill init"),
        "{}",
        output.stderr
    );
    assert!(!setup.fixture.data().join("ledger.db").exists());
    assert!(
        setup
            .run(["skill", "list"])
            .ok()
            .stdout
            .contains("no skill yet")
    );
}

#[test]
fn skill_init_writes_once_and_lists_existing_files() {
    let setup = Setup::empty();
    let first = setup.run(["skill", "init"]).ok();
    assert!(
        first.stdout.contains("wrote src/skillset/skills/base.py"),
        "{}",
        first.stdout
    );
    let root = setup.root();
    let before = Snapshot::take([root.as_path()]);
    let second = setup.run(["skill", "init"]).ok();
    assert!(
        second.stdout.contains("is there already") && !second.stdout.contains("wrote"),
        "{}",
        second.stdout
    );
    before.is_still(&Snapshot::take([root.as_path()]));
    let other = Setup::empty();
    let call = other
        .fixture
        .call(["skill", "init"])
        .env("CRUCIBLE_FORGE_PACKAGE", "my_tools");
    call.current_dir(other.root()).run().ok();
    assert!(other.root().join("src/my_tools/skills/base.py").is_file());
    let bad = other
        .fixture
        .call(["skill", "init"])
        .env("CRUCIBLE_FORGE_PACKAGE", "../x");
    bad.current_dir(other.root()).run().exits(2);
}

#[test]
fn skill_history_is_complete_and_bounded() {
    let setup = Setup::begun();
    setup.propose("good").run().ok();
    let mut ledger = Ledger::open(&setup.fixture.data().join("ledger.db")).unwrap();
    let project = Digest::compute(
        setup
            .root()
            .canonicalize()
            .unwrap()
            .as_os_str()
            .as_encoded_bytes(),
    );
    let id = ledger.skill(&project, "good").unwrap().unwrap().id;
    let moment = Moment {
        at: "2026-01-02T03:04:05Z".parse().unwrap(),
        clock: ClockSource::System,
    };
    let (skill, test) = (Digest::compute(b"skill"), Digest::compute(b"test"));
    let large = json!({ "said": "x".repeat(20_000) });
    for attempt in 0..60 {
        let new = NewSkillBuild {
            moment,
            proposal: id,
            agent: "claude\u{1b}[2J".to_owned(),
        };
        let row = ledger
            .begin_skill_build(&new, |_| {
                Ok::<_, crucible_ledger::LedgerError>(b"packet".to_vec())
            })
            .unwrap();
        let end = match attempt {
            59 => SkillBuildEnd::Succeeded { skill, test },
            _ => SkillBuildEnd::Failed(large.clone()),
        };
        ledger.end_skill_build(&row, moment, &end).unwrap();
    }
    let build = ledger.skill_builds(id).unwrap().last().unwrap().id;
    let log = ledger
        .keep_skill_artifact(id, Some(build), SkillArtifactKind::BuildLog, b"log", moment)
        .unwrap();
    let (level, required) = (
        VerificationLevel::Skill,
        SkillGate::REQUIRED
            .map(|gate| gate.as_str().to_owned())
            .to_vec(),
    );
    let new = NewVerification {
        moment,
        proposal: id,
        build,
        level,
        required,
        skill,
        test,
    };
    let row = ledger.begin_verification(&new).unwrap();
    for gate in SkillGate::REQUIRED {
        let log = (gate == SkillGate::Ruff).then_some(log);
        let gate = SkillGateRow {
            gate: gate.as_str().to_owned(),
            passed: true,
            duration_ms: 7,
            findings: json!([]),
            log,
        };
        ledger.record_skill_gate(&row, moment, &gate).unwrap();
    }
    ledger
        .end_verification(&row, moment, VerificationEnd::Passed)
        .unwrap();
    let promotion = ledger
        .promote_skill(&NewPromotion {
            moment,
            proposal: id,
            verification: Some(row.id),
            from: SkillStatus::Verified,
            to: SkillStatus::Trusted,
            approved_by: "operator".to_owned(),
            reason: "reviewed".to_owned(),
            skill,
            test,
        })
        .unwrap();
    let run = NewSkillRun {
        moment,
        proposal: id,
        promotion: Some(promotion.event),
        skill,
        outcome: SkillRunOutcome::Denied,
        findings: json!([]),
        duration_ms: 3,
    };
    ledger.record_skill_run(&run).unwrap();
    drop(ledger);
    let document = setup.show("good");
    assert_eq!(document["status"], "TRUSTED");
    assert_eq!(document["next_steps"], json!(["run", "demote"]));
    assert_eq!(
        (
            &document["counts"]["builds"],
            document["builds"].as_array().unwrap().len()
        ),
        (&json!(60), 50)
    );
    assert!(
        document["builds"][0]["failure"]["left_out_bytes"]
            .as_u64()
            .unwrap()
            > 20_000
    );
    let gates = document["verifications"][0]["gates"].as_array().unwrap();
    let ruff = gates.iter().find(|gate| gate["gate"] == "ruff").unwrap();
    assert_eq!((gates.len(), &ruff["log"]), (5, &json!(log)));
    assert_eq!(document["trust"]["approved_by"], "operator");
    assert_eq!(document["runs"][0]["outcome"], "DENIED");
    let text = setup.run(["skill", "show", "good"]).ok().stdout;
    for word in [
        "VERIFIED -> TRUSTED",
        "operator: reviewed",
        "ruff passed in 7 ms",
        "BUILD_PACKET",
        "DENIED",
        "60",
    ] {
        assert!(text.contains(word), "{word} in {text}");
    }
    assert!(!text.contains('\u{1b}') && text.len() < 64 * 1024, "{text}");
}

#[test]
fn proposal_without_writable_ledger_is_refused() {
    let setup = Setup::begun();
    let call = setup.propose("good").env("CRUCIBLE_HOME", "/proc/self");
    let output = call.run();
    assert!(matches!(output.code, Some(1 | 2)), "{}", output.stderr);
    assert_eq!(setup.list()["skills"], json!([]));
}
