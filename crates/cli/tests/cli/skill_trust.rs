//! Skills that somebody answers for: promotion, demotion, the registry, and which bytes run.

use std::path::PathBuf;

use crucible_forge::SkillGate;
use crucible_ledger::{
    Ledger, LedgerError, Moment, NewSkillBuild, NewVerification, SkillBuildEnd, SkillGateRow,
    VerificationEnd, VerificationLevel,
};
use crucible_model::{ClockSource, Digest};
use serde_json::{Value, json};

use crate::support::{Call, Fixture, Ran};

const KEY: &str = "ghp_0123456789abcdefABCDEF0123456789abcd";
const SCHEMA: &str = r#"{"input": {"type": "object", "properties": {"text": {"type": "string"}}}, "output": {"type": "object"}}"#;

/// A project with skills.
pub(crate) struct Skills {
    pub(crate) fixture: Fixture,
}

impl Skills {
    pub(crate) fn new() -> Self {
        Self::at(Fixture::new())
    }

    /// The same, at this fixture.
    pub(crate) fn at(fixture: Fixture) -> Self {
        std::fs::create_dir_all(fixture.path("project/.git")).unwrap();
        std::fs::write(fixture.path("io.json"), SCHEMA).unwrap();
        let skills = Self { fixture };
        skills.run(["skill", "init"]).ok();
        skills
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.fixture.path("project").canonicalize().unwrap()
    }

    pub(crate) fn call<const N: usize>(&self, words: [&str; N]) -> Call {
        self.fixture.call(words).current_dir(self.root())
    }

    pub(crate) fn run<const N: usize>(&self, words: [&str; N]) -> Ran {
        self.call(words).run()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.root().join(format!("src/skillset/skills/{name}.py"))
    }

    fn registry(&self) -> PathBuf {
        self.root().join(".crucible/skills/registry.yaml")
    }

    pub(crate) fn ledger(&self) -> (Ledger, Digest) {
        let ledger = Ledger::open(&self.fixture.data().join("ledger.db")).unwrap();
        (
            ledger,
            Digest::compute(self.root().as_os_str().as_encoded_bytes()),
        )
    }

    /// Proposes a skill whose `execute` has this body, and puts its files there.
    pub(crate) fn proposed<const N: usize>(
        &self,
        name: &str,
        class: &str,
        grants: [&str; N],
        body: &str,
    ) {
        let words = [
            "skill",
            "propose",
            name,
            "--describe",
            "Does it.",
            "--effects",
            class,
            "--io",
        ];
        let call = self
            .fixture
            .call(words)
            .arg(self.fixture.path("io.json"))
            .args(grants);
        call.current_dir(self.root()).run().ok();
        self.write(name, body);
        std::fs::write(
            self.root().join(format!("tests/test_skill_{name}.py")),
            "# a test\n",
        )
        .unwrap();
    }

    /// Puts a skill's file there, with this body of `execute`.
    pub(crate) fn write(&self, name: &str, body: &str) {
        let class: String = name
            .split('_')
            .map(|word| word[..1].to_uppercase() + &word[1..])
            .collect();
        let lines: String = body
            .lines()
            .map(|line| format!("        {line}\n"))
            .collect();
        let text = format!(
            "from skillset.skills.base import BaseSkill\n\n\nclass {class}Skill(BaseSkill):\n    def execute(self, inputs):\n{lines}"
        );
        std::fs::write(self.file(name), text).unwrap();
    }

    /// Lets the ledger know the files that are there as built and verified, whatever they hold.
    pub(crate) fn verified(&self, name: &str, gates: &[(SkillGate, bool)]) {
        let (mut ledger, project) = self.ledger();
        let id = ledger.skill(&project, name).unwrap().unwrap().id;
        let moment = Moment {
            at: "2026-01-02T03:04:05Z".parse().unwrap(),
            clock: ClockSource::System,
        };
        let digest = |path: PathBuf| Digest::compute(&std::fs::read(path).unwrap());
        let (skill, test) = (
            digest(self.file(name)),
            digest(self.root().join(format!("tests/test_skill_{name}.py"))),
        );
        // What was verified is verified again, and not built over.
        let build = match ledger.skill_builds(id).unwrap().last() {
            Some(built) => built.id,
            None => {
                let new = NewSkillBuild {
                    moment,
                    proposal: id,
                    agent: "a test".to_owned(),
                };
                let packet = |_: &_| Ok::<_, LedgerError>(b"packet".to_vec());
                let row = ledger.begin_skill_build(&new, packet).unwrap();
                ledger
                    .end_skill_build(&row, moment, &SkillBuildEnd::Succeeded { skill, test })
                    .unwrap();
                row.id
            }
        };
        let level = VerificationLevel::Skill;
        let required = SkillGate::REQUIRED
            .map(|gate| gate.as_str().to_owned())
            .to_vec();
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
        for (gate, passed) in gates {
            let result = SkillGateRow {
                gate: gate.as_str().to_owned(),
                passed: *passed,
                duration_ms: 1,
                findings: json!([]),
                log: None,
            };
            ledger.record_skill_gate(&row, moment, &result).unwrap();
        }
        let passed = gates.iter().all(|(_, passed)| *passed);
        let end = if passed {
            VerificationEnd::Passed
        } else {
            VerificationEnd::Failed
        };
        ledger.end_verification(&row, moment, end).unwrap();
    }

    /// A skill that somebody answers for, whatever it holds.
    pub(crate) fn trusted<const N: usize>(
        &self,
        name: &str,
        class: &str,
        grants: [&str; N],
        body: &str,
    ) {
        self.proposed(name, class, grants, body);
        self.verified(name, &five());
        self.promote(name).run().ok();
    }

    pub(crate) fn promote(&self, name: &str) -> Call {
        self.call(["skill", "promote", name, "--by", "Ada Example"])
    }

    /// Runs a skill; the document fits its schema and standard output holds no control characters.
    pub(crate) fn outcome(&self, name: &str) -> Outcome {
        outcome_of(self.call(["skill", "run", name, "--input", "{}", "--json"]))
    }

    pub(crate) fn status(&self, name: &str) -> Value {
        self.run(["skill", "show", name, "--json"]).ok().json()["status"].clone()
    }
}

/// What a run came to.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) document: Value,
}

impl Outcome {
    pub(crate) fn word(&self) -> &str {
        self.document["outcome"].as_str().unwrap()
    }

    pub(crate) fn codes(&self) -> Vec<&str> {
        let findings = self.document["findings"].as_array().unwrap();
        findings
            .iter()
            .map(|finding| finding["code"].as_str().unwrap())
            .collect()
    }

    #[track_caller]
    pub(crate) fn is(self, code: i32, word: &str, finding: &str) -> Self {
        let has = finding.is_empty() || self.codes().contains(&finding);
        let found = (self.code, self.word(), has);
        assert_eq!(found, (Some(code), word, true), "{:#}", self.document);
        self
    }
}

#[track_caller]
pub(crate) fn outcome_of(call: Call) -> Outcome {
    let ran = call.run();
    fits(
        &ran.json(),
        include_str!("../../../../docs/schemas/skill-run.v1.schema.json"),
    );
    assert!(
        !ran.stdout.chars().any(|c| c.is_control() && c != '\n'),
        "{:?}",
        ran.stdout
    );
    Outcome {
        code: ran.code,
        document: ran.json(),
    }
}

#[track_caller]
fn fits(document: &Value, schema: &str) {
    let judge = jsonschema::validator_for(&serde_json::from_str(schema).unwrap()).unwrap();
    let problems: Vec<String> = judge
        .iter_errors(document)
        .map(|error| error.to_string())
        .collect();
    assert!(problems.is_empty(), "{problems:?} in {document:#}");
}

/// The gates that are always asked, passed.
pub(crate) fn five() -> Vec<(SkillGate, bool)> {
    SkillGate::REQUIRED.map(|gate| (gate, true)).to_vec()
}

#[test]
fn verified_skill_is_promoted_run_and_demoted() {
    let skills = Skills::new();
    skills.proposed(
        "count",
        "READ_ONLY",
        [],
        "print('counting')\nreturn {'count': len(inputs['text'].split())}",
    );
    skills
        .run(["skill", "run", "count", "--input", "{}"])
        .exits(1);
    skills.promote("count").run().exits(1);
    skills.verified("count", &five());
    let refused = skills
        .outcome("count")
        .is(1, "REFUSED", "forge-run-untrusted");
    assert!(
        refused.document["findings"][0]["hint"]
            .as_str()
            .unwrap()
            .contains("skill promote count")
    );
    let promoted = skills
        .promote("count")
        .args(["--reason", "Read it."])
        .arg("--json")
        .run()
        .ok()
        .json();
    fits(
        &promoted,
        include_str!("../../../../docs/schemas/skill-promote.v1.schema.json"),
    );
    assert_eq!(promoted["change"]["approved_by"], "Ada Example");
    assert_eq!(skills.status("count"), "TRUSTED");
    let registry = std::fs::read_to_string(skills.registry()).unwrap();
    let digest = Digest::compute(&std::fs::read(skills.file("count")).unwrap());
    assert!(
        registry.starts_with('#') && registry.contains(&format!("sha256: \"{digest}\"")),
        "{registry}"
    );
    // Twice is once.
    let twice = skills.promote("count").run().exits(1);
    assert!(
        twice.stderr.contains("it is approved already"),
        "{}",
        twice.stderr
    );
    let ran = skills
        .run(["skill", "run", "count", "--input", r#"{"text": "one two"}"#])
        .ok();
    assert_eq!(ran.json(), json!({"count": 2}));
    assert!(ran.stderr.contains("counting"), "{}", ran.stderr);
    std::fs::write(skills.fixture.path("in.json"), r#"{"text": "a b c"}"#).unwrap();
    let call = skills
        .call(["skill", "run", "count", "--input-file"])
        .arg(skills.fixture.path("in.json"));
    assert_eq!(call.run().ok().json(), json!({"count": 3}));
    let demoted = skills
        .run([
            "skill", "demote", "count", "--by", "Bo", "--reason", "Wrong.", "--json",
        ])
        .ok()
        .json();
    fits(
        &demoted,
        include_str!("../../../../docs/schemas/skill-promote.v1.schema.json"),
    );
    assert_eq!(skills.status("count"), "BUILT");
    assert!(
        std::fs::read_to_string(skills.registry())
            .unwrap()
            .ends_with("skills: {}\n")
    );
    skills
        .outcome("count")
        .is(1, "REFUSED", "forge-run-untrusted");
    skills
        .run([
            "skill", "demote", "count", "--by", "Bo", "--reason", "Again.",
        ])
        .exits(1);
    skills.run(["ledger", "verify"]).ok();
}

#[test]
fn promotion_needs_name_newest_verification_and_same_bytes() {
    let skills = Skills::new();
    skills.proposed("one", "READ_ONLY", [], "return {}");
    let mut failed = five();
    failed[2].1 = false;
    skills.verified("one", &failed);
    skills.promote("one").run().exits(1);
    skills.verified("one", &five());
    for by in ["", " ", "a\nb", "crucible", "\u{202e}x"] {
        skills.run(["skill", "promote", "one", "--by", by]).exits(2);
    }
    skills.run(["skill", "promote", "one"]).exits(2);
    for words in [
        ["--by", KEY, "--reason", "x"],
        ["--by", "Ada", "--reason", KEY],
    ] {
        let output = skills
            .call(["skill", "promote", "one"])
            .args(words)
            .run()
            .exits(8);
        assert!(!output.stderr.contains(KEY), "{}", output.stderr);
    }
    let test = skills.root().join("tests/test_skill_one.py");
    std::fs::write(&test, "# another test\n").unwrap();
    let document = skills.promote("one").arg("--json").run().exits(1).json();
    assert_eq!(document["findings"][0]["code"], "forge-promote-changed");
    assert_eq!(document["change"], Value::Null);
    std::fs::remove_file(&test).unwrap();
    skills.promote("one").run().exits(1);
    std::fs::write(&test, "# a test\n").unwrap();
    let held_back = skills.fixture.path("elsewhere.py");
    std::fs::rename(skills.file("one"), &held_back).unwrap();
    std::os::unix::fs::symlink(&held_back, skills.file("one")).unwrap();
    skills.promote("one").run().exits(1);
    std::fs::rename(&held_back, skills.file("one")).unwrap();
    skills
        .fixture
        .user_config("[forge]\nexamples = \"required\"\n");
    let value = skills.promote("one").arg("--json").run().exits(1).json();
    assert_eq!(value["findings"][0]["code"], "forge-promote-examples");
    assert_eq!(skills.status("one"), "VERIFIED");
    let mut six = five();
    six.push((SkillGate::Examples, true));
    skills.verified("one", &six);
    skills.promote("one").run().ok();
    skills
        .run(["skill", "promote", "unknown", "--by", "Ada"])
        .exits(2);
    // What a project's file says of it counts for nothing.
    std::fs::write(
        skills.root().join(".crucible/config.toml"),
        "[forge]\nexamples = \"optional\"\n",
    )
    .unwrap();
    skills.run(["skill", "list"]).exits(2);
}

#[test]
fn changed_bytes_are_refused_and_recorded() {
    let skills = Skills::new();
    skills.trusted("one", "READ_ONLY", [], "return {'is': 'good'}");
    skills.outcome("one").is(0, "SUCCEEDED", "");
    let good = std::fs::read(skills.file("one")).unwrap();
    skills.write("one", "return {'is': 'evil'}");
    let said = skills.outcome("one").is(1, "REFUSED", "forge-run-changed");
    assert!(
        said.document["findings"][0]["hint"]
            .as_str()
            .unwrap()
            .contains("Ada Example")
    );
    std::fs::write(skills.file("one"), "").unwrap();
    skills.outcome("one").is(1, "REFUSED", "forge-run-changed");
    std::fs::remove_file(skills.file("one")).unwrap();
    skills
        .outcome("one")
        .is(1, "REFUSED", "forge-run-unreadable");
    std::fs::write(skills.file("one"), good).unwrap();
    // Neither the base class nor a module beside it is the project's own.
    std::fs::write(
        skills.root().join("src/skillset/skills/base.py"),
        "raise SystemExit('evil')\n",
    )
    .unwrap();
    std::fs::write(
        skills.root().join("src/skillset/skills/json.py"),
        "raise SystemExit('evil')\n",
    )
    .unwrap();
    std::fs::write(skills.root().join("json.py"), "raise SystemExit('evil')\n").unwrap();
    let said = skills.outcome("one");
    assert_eq!(
        (said.code, &said.document["result"]),
        (Some(0), &json!({"is": "good"})),
        "{said:?}"
    );
    let document = skills.run(["skill", "show", "one", "--json"]).ok().json();
    let outcomes: Vec<&str> = document["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["outcome"].as_str().unwrap())
        .collect();
    assert_eq!(
        outcomes,
        ["SUCCEEDED", "REFUSED", "REFUSED", "REFUSED", "SUCCEEDED"]
    );
    skills.run(["ledger", "verify"]).ok();
}

#[test]
fn the_registry_can_refuse_and_makes_nothing_trusted() {
    let skills = Skills::new();
    skills.trusted("one", "READ_ONLY", [], "return {}");
    let written = std::fs::read_to_string(skills.registry()).unwrap();
    let digest = Digest::compute(&std::fs::read(skills.file("one")).unwrap()).to_string();
    let put = |text: &str| std::fs::write(skills.registry(), text).unwrap();
    put(&written.replace(&digest, &Digest::compute(b"other").to_string()));
    skills
        .outcome("one")
        .is(1, "REFUSED", "forge-registry-differs");
    let listed = skills.run(["skill", "list"]).ok();
    assert!(
        listed.stderr.contains("forge-registry-differs"),
        "{}",
        listed.stderr
    );
    // Without a digest it vouches for nothing; the flag leaves the decision to the ledger.
    let unhashed: String = written
        .lines()
        .filter(|line| !line.contains("sha256"))
        .map(|line| format!("{line}\n"))
        .collect();
    put(&unhashed);
    skills
        .outcome("one")
        .is(1, "REFUSED", "forge-registry-unhashed");
    let allowed = || {
        outcome_of(skills.call([
            "skill",
            "run",
            "one",
            "--input",
            "{}",
            "--allow-unhashed",
            "--json",
        ]))
    };
    allowed().is(0, "SUCCEEDED", "forge-registry-unhashed");
    skills.write("one", "return {'is': 'evil'}");
    allowed().is(1, "REFUSED", "forge-run-changed");
    skills.write("one", "return {}");
    for bad in [
        "",
        "skills: [",
        "\0",
        "schema_version: skill-registry.v1\nskills: &a {one: *a}\n",
    ] {
        put(bad);
        skills
            .outcome("one")
            .is(1, "REFUSED", "forge-registry-unreadable");
    }
    std::fs::remove_file(skills.registry()).unwrap();
    std::os::unix::fs::symlink(skills.fixture.path("io.json"), skills.registry()).unwrap();
    skills
        .outcome("one")
        .is(1, "REFUSED", "forge-registry-unreadable");
    std::fs::remove_file(skills.registry()).unwrap();
    skills
        .outcome("one")
        .is(0, "SUCCEEDED", "forge-registry-missing");
    // A cloned project: the registry and the file agree, and nobody here answers for either.
    put(&written);
    let clone = skills
        .call(["skill", "run", "one", "--input", "{}"])
        .env("CRUCIBLE_HOME", skills.fixture.path("other"));
    let output = clone.run().exits(1);
    assert!(
        output.stderr.contains("alone makes none trusted"),
        "{}",
        output.stderr
    );
    skills
        .run(["skill", "run", "nobody_knows_it", "--input", "{}"])
        .exits(2);
}

#[test]
fn the_registry_is_written_through_no_link() {
    let skills = Skills::new();
    let outside = skills.fixture.path("outside");
    std::fs::create_dir(&outside).unwrap();
    skills.proposed("one", "READ_ONLY", [], "return {}");
    skills.verified("one", &five());
    let own = skills.root().join(".crucible/skills");
    std::fs::rename(&own, skills.root().join(".crucible/was")).unwrap();
    std::os::unix::fs::symlink(&outside, &own).unwrap();
    let document = skills.promote("one").arg("--json").run().ok().json();
    assert_eq!(document["findings"][0]["code"], "forge-registry-unwritten");
    assert_eq!(skills.status("one"), "TRUSTED");
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn repeated_failures_demote_skill() {
    let skills = Skills::new();
    skills.trusted(
        "one",
        "READ_ONLY",
        [],
        "return {'worked': 1 / inputs['by']}",
    );
    let run = |by: &str| {
        let input = format!("{{\"by\": {by}}}");
        outcome_of(skills.call(["skill", "run", "one", "--input", &input, "--json"]))
    };
    run("0").is(1, "FAILED", "forge-run-raised");
    run("0").is(1, "FAILED", "forge-run-raised");
    assert_eq!(run("2").document["result"], json!({"worked": 0.5}));
    // What does not fit the schema is not run, and counts for nothing.
    skills
        .run(["skill", "run", "one", "--input", r#"{"text": 1}"#])
        .exits(3);
    // A number that would reach the skill as another one does not reach it.
    let large = r#"{"text": "a", "more": 123456789012345678901234567890}"#;
    let output = skills
        .run(["skill", "run", "one", "--input", large])
        .exits(3);
    assert!(
        output.stderr.contains("more than 64 bits") && output.stderr.contains("column 23"),
        "{}",
        output.stderr
    );
    run("0").is(1, "FAILED", "forge-run-raised");
    run("0").is(1, "FAILED", "forge-run-raised");
    assert_eq!(skills.status("one"), "TRUSTED");
    let last = run("0").is(1, "FAILED", "forge-run-demoted");
    assert!(last.codes().contains(&"forge-run-raised"));
    assert_eq!(skills.status("one"), "BUILT");
    let document = skills.run(["skill", "show", "one", "--json"]).ok().json();
    assert_eq!(document["promotions"][1]["approved_by"], "crucible");
    run("2").is(1, "REFUSED", "forge-run-untrusted");
    skills.run(["ledger", "verify"]).ok();
}

#[test]
fn input_is_validated_before_skill_runs() {
    let skills = Skills::new();
    skills.trusted("one", "READ_ONLY", [], "return {}");
    for (input, code) in [
        ("", 3),
        ("{", 3),
        ("[]", 3),
        ("1", 3),
        (r#"{"text": 1}"#, 3),
        (r#"{"a": 1, "a": 2}"#, 3),
        ("NaN", 3),
    ] {
        skills
            .run(["skill", "run", "one", "--input", input])
            .exits(code);
    }
    let deep = format!("{{\"a\": {}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
    std::fs::write(skills.fixture.path("deep.json"), deep).unwrap();
    skills
        .call(["skill", "run", "one", "--input-file"])
        .arg(skills.fixture.path("deep.json"))
        .run()
        .exits(3);
    std::fs::write(
        skills.fixture.path("large.json"),
        format!("{{\"a\": \"{}\"}}", "x".repeat(5 << 20)),
    )
    .unwrap();
    skills
        .call(["skill", "run", "one", "--input-file"])
        .arg(skills.fixture.path("large.json"))
        .run()
        .exits(7);
    skills.run(["skill", "run", "one"]).exits(2);
    skills
        .run(["skill", "run", "one", "--input", "{}", "--input-file", "x"])
        .exits(2);
    let document = skills.run(["skill", "show", "one", "--json"]).ok().json();
    assert_eq!(document["runs"], json!([]));
}

#[test]
fn tampered_promotion_prevents_skill_runs() {
    let skills = Skills::new();
    skills.trusted("one", "READ_ONLY", [], "return {'is': 'good'}");
    skills.write("one", "return {'is': 'evil'}");
    let evil = Digest::compute(&std::fs::read(skills.file("one")).unwrap());
    let database = rusqlite_at(&skills);
    let text = std::fs::read(&database).unwrap();
    let good = {
        let (ledger, project) = skills.ledger();
        ledger
            .skill_trust(&project, "one")
            .unwrap()
            .unwrap()
            .skill
            .to_string()
    };
    // Byte by byte in the file, as no trigger can see: the row, its event and the registry, all of one length.
    let edited = replaced(&text, good.as_bytes(), evil.to_string().as_bytes());
    for rest in ["-wal", "-shm"] {
        let sibling_path = PathBuf::from(format!("{}{rest}", database.display()));
        if sibling_path.exists() {
            std::fs::remove_file(sibling_path).unwrap();
        }
    }
    std::fs::write(&database, edited).unwrap();
    std::fs::remove_file(skills.registry()).unwrap();
    let output = skills
        .run(["skill", "run", "one", "--input", "{}"])
        .exits(1);
    assert!(
        output.stderr.contains("damaged") && !output.stdout.contains("evil"),
        "{}",
        output.stderr
    );
}

fn rusqlite_at(skills: &Skills) -> PathBuf {
    skills.fixture.data().join("ledger.db")
}

fn replaced(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let mut at = 0;
    let mut count = 0;
    while let Some(found) = bytes[at..]
        .windows(from.len())
        .position(|window| window == from)
    {
        bytes[at + found..at + found + to.len()].copy_from_slice(to);
        at += found + to.len();
        count += 1;
    }
    assert!(count > 1, "the digest stands in the row and in the event");
    bytes
}
