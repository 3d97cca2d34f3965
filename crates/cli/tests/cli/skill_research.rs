//! `crucible skill research` as a user meets it: what failed, whether a person has to look, and advice from a server on loopback.

use crucible_forge::{EscalationTrigger, FailureKind, SkillFailure, needs_review};
use crucible_ledger::{Ledger, LedgerError, Moment, NewSkillBuild, SkillBuildEnd};
use crucible_model::{ClockSource, Code, Digest, Finding};
use crucible_testkit::{FakeApi, Reply};
use serde_json::{Map, Value, json};

use crate::support::{Call, Fixture};

struct Setup {
    fixture: Fixture,
}

impl Setup {
    /// A project with a skill that was proposed.
    fn new() -> Self {
        Self::at(Fixture::new())
    }

    fn at(fixture: Fixture) -> Self {
        fixture.with_skill(
            "count_it",
            r#"{"input": {"type": "object"}, "output": {"type": "object"}}"#,
            None,
        );
        Self { fixture }
    }

    fn call(&self, words: &[&str]) -> Call {
        let call = self
            .fixture
            .call(["skill"])
            .current_dir(self.fixture.path("project"));
        words.iter().fold(call, |call, word| call.arg(word))
    }

    fn ledger(&self) -> Ledger {
        Ledger::open(&self.fixture.data().join("ledger.db")).unwrap()
    }

    fn fail(&self, kind: FailureKind) {
        self.fail_with(kind, "the packet\nof three\nlines\n");
    }

    fn fail_with(&self, kind: FailureKind, packet: &str) {
        let mut ledger = self.ledger();
        let id = self.id(&ledger);
        let moment = Moment {
            at: "2026-01-02T03:04:05Z".parse().unwrap(),
            clock: ClockSource::System,
        };
        let new = NewSkillBuild {
            moment,
            proposal: id,
            agent: "claude".to_owned(),
        };
        let row = ledger
            .begin_skill_build(&new, |_| Ok::<_, LedgerError>(packet.as_bytes().to_vec()))
            .unwrap();
        let failure = SkillFailure {
            kind,
            findings: vec![Finding::error(
                Code::new("forge-source"),
                "src/a.py:3:1 \u{1b}[2J",
                "Mend it.",
            )],
            facts: Map::from_iter([("exit_code".to_owned(), json!(3))]),
            log: None,
        };
        let end = SkillBuildEnd::Failed(serde_json::to_value(failure).unwrap());
        ledger.end_skill_build(&row, moment, &end).unwrap();
    }

    fn id(&self, ledger: &Ledger) -> u64 {
        ledger
            .skill(&self.project(), "count_it")
            .unwrap()
            .unwrap()
            .id
    }

    fn project(&self) -> Digest {
        let root = self.fixture.path("project").canonicalize().unwrap();
        Digest::compute(root.as_os_str().as_encoded_bytes())
    }

    fn json(&self, words: &[&str]) -> Value {
        let document = self
            .call(&[&["research", "count_it", "--json"], words].concat())
            .run()
            .ok()
            .json();
        let schema = include_str!("../../../../docs/schemas/skill-research.v1.schema.json");
        let judge = jsonschema::validator_for(&serde_json::from_str(schema).unwrap()).unwrap();
        let problems: Vec<String> = judge
            .iter_errors(&document)
            .map(|error| error.to_string())
            .collect();
        assert!(problems.is_empty(), "{problems:?} in {document:#}");
        document
    }
}

#[test]
fn failure_report_has_kind_facts_and_reviewer() {
    let setup = Setup::new();
    let early = setup.call(&["research", "count_it"]).run().exits(2);
    assert!(
        early
            .stderr
            .contains("nothing of the skill count_it failed"),
        "{}",
        early.stderr
    );
    setup.call(&["research", "unknown"]).run().exits(2);
    setup.call(&["research", "TIMEOUT_x"]).run().exits(2);
    setup
        .call(&["research", "count_it", "--provider", "gateway"])
        .run()
        .exits(2);

    setup.fail(FailureKind::BuildError);
    let text = setup.call(&["research", "count_it"]).run().ok().stdout;
    for message in [
        "BUILD_ERROR",
        "exit_code: 3",
        "src/a.py:3:1",
        "next: crucible skill build count_it\n",
    ] {
        assert!(text.contains(message), "{message} in {text}");
    }
    assert!(
        !text.contains('\u{1b}') && !text.contains("a person has to look"),
        "{text}"
    );
    setup.fail(FailureKind::Timeout);
    setup.fail(FailureKind::Timeout);
    let document = setup.json(&[]);
    assert_eq!(
        (&document["kind"], &document["failures_in_a_row"]),
        (&json!("TIMEOUT"), &json!(3))
    );
    assert_eq!(document["facts"][0]["line"], 3);
    assert_eq!(document["needs_review"], json!(["REPEATED_FAILURE"]));
    let text = setup.call(&["research", "count_it"]).run().ok().stdout;
    assert!(
        text.contains("a person has to look: REPEATED_FAILURE") && text.contains("--reviewed-by"),
        "{text}"
    );
    let note = document["note"].as_str().unwrap();
    let stored_output = setup
        .fixture
        .call(["ledger", "show", note])
        .current_dir(setup.fixture.path("project"))
        .run()
        .ok();
    assert!(
        stored_output.stdout.contains("skill-research-note.v1"),
        "{}",
        stored_output.stdout
    );
    setup
        .fixture
        .call(["ledger", "verify"])
        .current_dir(setup.fixture.path("project"))
        .run()
        .ok();
}

#[test]
fn advice_is_limited_stored_and_judged() {
    let server = FakeApi::start([Reply::Answer(
        "the packet\nof three\nlines\nUse the network.\n".to_owned(),
    )]);
    let setup = Setup::at(Fixture::with(&server));
    setup.fail(FailureKind::BuildError);
    setup
        .fixture
        .user_config("[forge]\nadvice_prompt_chars = 2000\n");
    let document = setup.json(&["--advice", "--provider", "gateway"]);
    assert_eq!(document["advice"]["outcome"], "kept");
    assert_eq!(
        document["advice"]["proposed"],
        "the packet\nof three\nlines\nUse the network.\n"
    );
    assert_eq!(document["triggers"], json!(["PERMISSION_WIDENING"]));
    let requests = server.requests()[0].body["messages"][0]["content"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        requests.contains("the packet") && requests.chars().count() <= 2_000,
        "{requests}"
    );

    let ledger = setup.ledger();
    let skill = ledger.skill(&setup.project(), "count_it").unwrap().unwrap();
    assert_eq!(
        needs_review(&ledger, &skill).unwrap(),
        [EscalationTrigger::PermissionWidening]
    );
}

#[test]
fn research_defaults_match_the_specification() {
    let setup = Setup::new();
    let shown = setup
        .fixture
        .call(["config", "show", "--json"])
        .without_env("CRUCIBLE_GATEWAY_BASE_URL")
        .run()
        .ok()
        .json();
    let settings = shown["settings"].as_array().unwrap();
    let value = |key: &str| settings.iter().find(|row| row["key"] == key).unwrap()["value"].clone();
    assert_eq!(value("llm.gateway.base_url"), "http://localhost:8000/v1");
    assert_eq!(value("llm.gateway.model"), "gpt-oss-20b");
    assert_eq!(value("forge.advice_timeout_s"), 30);

    // Whatever the packet holds, the whole prompt has 8,000 characters, and what was left out is told.
    let server = FakeApi::start([Reply::Answer("Mend it.".to_owned())]);
    let setup = Setup::at(Fixture::with(&server));
    setup.fail_with(
        FailureKind::BuildError,
        &"ä line of the packet\n".repeat(1_000),
    );
    let record = setup.fixture.path("calls.jsonl");
    let document = setup.json(&[
        "--advice",
        "--provider",
        "gateway",
        "--record",
        record.to_str().unwrap(),
    ]);
    let requests = server.completions()[0].body["messages"][0]["content"]
        .as_str()
        .unwrap()
        .chars()
        .count();
    // A line break that is there already takes the place of one of our own.
    assert!((7_990..=8_000).contains(&requests), "{requests}");
    assert!(
        document["advice"]["left_out_chars"].as_u64().unwrap() > 10_000,
        "{document:#}"
    );
    assert!(
        std::fs::read_to_string(&record)
            .unwrap()
            .contains("Mend it.")
    );
    setup
        .call(&["research", "count_it", "--record", "x.jsonl"])
        .run()
        .exits(2);
}

#[test]
fn unreachable_advisor_leaves_report_without_advice() {
    let setup = Setup::new();
    setup.fail(FailureKind::BuildError);
    let document = setup.json(&["--advice", "--provider", "gateway"]);
    assert_eq!(
        (&document["kind"], &document["advice"]["outcome"]),
        (&json!("BUILD_ERROR"), &json!("missing"))
    );
    assert_eq!(document["needs_review"], json!(["AMBIGUOUS"]));
    // One that cannot even be made ready is the same.
    let document = setup.json(&["--advice", "--provider", "openai"]);
    assert_eq!(document["advice"]["outcome"], "missing");
    let nobody = setup
        .call(&["research", "count_it", "--advice"])
        .without_env("CRUCIBLE_LLM_PROVIDER");
    let nobody = nobody.run().exits(2);
    assert!(nobody.stderr.contains("--provider"), "{}", nobody.stderr);
    // A project's file does not send anything to a model by itself.
    std::fs::create_dir_all(setup.fixture.path("project/.crucible")).unwrap();
    std::fs::write(
        setup.fixture.path("project/.crucible/config.toml"),
        "[forge]\nadvise = \"on\"\n",
    )
    .unwrap();
    let refused = setup.call(&["research", "count_it"]).run();
    assert_ne!(refused.code, Some(0), "{}", refused.stdout);
}
