//! Verifying a skill as a user does it, with the real tools and the real sandbox.
//!
//! Slow because each verification starts ruff, mypy and pytest; mypy takes seconds of CPU for the smallest file.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Stdio};

use crucible_host::lock::Lock;
use crucible_ledger::{
    Ledger, LedgerError, Moment, NewSkillBuild, SkillArtifactKind, SkillBuildEnd, SkillStatus,
    VerificationStatus,
};
use crucible_model::{ClockSource, Digest};
use crucible_testkit::python_tools_dir;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::support::{Call, Fixture, Ran, Snapshot};

const SKILL: &str = "src/skillset/skills/count_words.py";
const TEST: &str = "tests/test_skill_count_words.py";
const SCHEMA: &str = r#"{"input": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    "output": {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}}"#;
const EXAMPLES: &str = r#"[{"input": {"text": "one two"}, "output": {"count": 2}}, {"input": {"text": "heldback"}, "output": {"count": 1}}]"#;
const IMPORT: &str = "from skillset.skills.count_words import CountWordsSkill\n";

/// A project with a skill that is built.
struct Setup {
    fixture: Fixture,
}

impl Setup {
    fn proposed(examples: Option<&str>) -> Self {
        let setup = Self {
            fixture: Fixture::new(),
        };
        std::fs::create_dir_all(setup.fixture.path("project/.git")).unwrap();
        std::fs::write(setup.fixture.path("io.json"), SCHEMA).unwrap();
        setup.run(["skill", "init"]).ok();
        let words = [
            "skill",
            "propose",
            "count_words",
            "--describe",
            "Counts words.",
            "--effects",
            "READ_ONLY",
            "--io",
        ];
        let mut call = setup
            .fixture
            .call(words)
            .arg(setup.fixture.path("io.json"))
            .current_dir(setup.root());
        if let Some(examples) = examples {
            std::fs::write(setup.fixture.path("examples.json"), examples).unwrap();
            call = call
                .arg("--examples")
                .arg(setup.fixture.path("examples.json"));
        }
        call.run().ok();
        setup
    }

    /// What the package's own example is, under another name.
    fn built() -> Self {
        Self::built_with(None)
    }

    fn built_with(examples: Option<&str>) -> Self {
        let setup = Self::proposed(examples);
        let own = |path: &str| {
            let text = std::fs::read_to_string(setup.root().join(path)).unwrap();
            text.replace("word_count", "count_words")
                .replace("WordCount", "CountWords")
        };
        setup.write(SKILL, &own("src/skillset/skills/word_count.py"));
        setup.write(TEST, &own("tests/test_skill_word_count.py"));
        setup.record_build();
        setup
    }

    fn root(&self) -> PathBuf {
        self.fixture.path("project")
    }

    fn write(&self, path: &str, text: &str) {
        std::fs::write(self.root().join(path), text).unwrap();
    }

    fn read(&self, path: &str) -> Vec<u8> {
        std::fs::read(self.root().join(path)).unwrap()
    }

    fn run<const N: usize>(&self, words: [&str; N]) -> Ran {
        self.fixture.call(words).current_dir(self.root()).run()
    }

    fn ledger(&self) -> Ledger {
        Ledger::open(&self.fixture.data().join("ledger.db")).unwrap()
    }

    fn project(&self) -> Digest {
        Digest::compute(
            self.root()
                .canonicalize()
                .unwrap()
                .as_os_str()
                .as_encoded_bytes(),
        )
    }

    /// Records that an attempt made the two files as they are.
    fn record_build(&self) {
        let mut ledger = self.ledger();
        let proposal = ledger
            .skill(&self.project(), "count_words")
            .unwrap()
            .unwrap()
            .id;
        let moment = Moment {
            at: "2026-01-02T03:04:05Z".parse().unwrap(),
            clock: ClockSource::System,
        };
        let new = NewSkillBuild {
            moment,
            proposal,
            agent: "a test".to_owned(),
        };
        let row = ledger
            .begin_skill_build(&new, |_| Ok::<_, LedgerError>(b"packet".to_vec()))
            .unwrap();
        let end = SkillBuildEnd::Succeeded {
            skill: Digest::compute(&self.read(SKILL)),
            test: Digest::compute(&self.read(TEST)),
        };
        ledger.end_skill_build(&row, moment, &end).unwrap();
    }

    fn verify(&self) -> Call {
        self.fixture
            .call(["skill", "verify", "count_words"])
            .env("CRUCIBLE_FORGE_TOOLS", python_tools_dir())
            .env("PATH", path())
            .current_dir(self.root())
    }

    /// A verification that goes on, and what it says on standard error.
    fn begun(&self) -> (Child, BufReader<std::process::ChildStderr>) {
        let mut command = self.verify().command();
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stderr.take().unwrap());
        (child, said)
    }

    fn status(&self) -> SkillStatus {
        self.ledger()
            .skill(&self.project(), "count_words")
            .unwrap()
            .unwrap()
            .status
    }

    fn verifications(&self) -> Vec<VerificationStatus> {
        let ledger = self.ledger();
        let id = ledger
            .skill(&self.project(), "count_words")
            .unwrap()
            .unwrap()
            .id;
        ledger
            .verifications(id)
            .unwrap()
            .iter()
            .map(|row| row.status)
            .collect()
    }
}

/// The usual `PATH`, and before it where the interpreter of the tools really is: the sandbox shows what the `PATH` names, also in a home.
fn path() -> OsString {
    let python = python_tools_dir().join("python3").canonicalize().unwrap();
    let usual = std::env::var_os("PATH").unwrap();
    let places = [python.parent().unwrap().to_owned()]
        .into_iter()
        .chain(std::env::split_paths(&usual));
    std::env::join_paths(places).unwrap()
}

/// Waits for a line that holds this.
fn wait_for(said: &mut BufReader<std::process::ChildStderr>, text: &str) {
    let mut all = String::new();
    loop {
        let from = all.len();
        assert!(
            said.read_line(&mut all).unwrap() > 0,
            "{text:?} is missing in {all}"
        );
        if all[from..].contains(text) {
            return;
        }
    }
}

fn checked(ran: &Ran) -> Value {
    let document = ran.json();
    let schema = include_str!("../../../../docs/schemas/skill-verify.v1.schema.json");
    let judge = jsonschema::validator_for(&serde_json::from_str(schema).unwrap()).unwrap();
    let problems: Vec<String> = judge
        .iter_errors(&document)
        .map(|error| error.to_string())
        .collect();
    assert!(problems.is_empty(), "{problems:?} in {document:#}");
    document
}

fn verdicts(document: &Value) -> Vec<(String, String)> {
    let gates = document["gates"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    gates
        .iter()
        .map(|gate| (text(&gate["gate"]), text(&gate["verdict"])))
        .collect()
}

fn codes(document: &Value) -> Vec<&str> {
    document["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| finding["code"].as_str().unwrap())
        .collect()
}

#[test]
fn skill_passing_every_gate_is_verified_and_recorded() {
    let setup = Setup::built_with(Some(EXAMPLES));
    let before = Snapshot::take([setup.root().as_path()]);
    let ran = setup.verify().args(["--full", "--json"]).run().ok();
    before.is_still(&Snapshot::take([setup.root().as_path()]));
    let document = checked(&ran);
    assert_eq!(document["findings"], json!([]));
    assert_eq!(
        document["skill_digest"],
        json!(Digest::compute(&setup.read(SKILL)))
    );
    assert_eq!(
        document["test_digest"],
        json!(Digest::compute(&setup.read(TEST)))
    );
    assert_eq!(
        (&document["level"], &document["status"]),
        (&json!("full"), &json!("VERIFIED"))
    );
    let names: Vec<String> = verdicts(&document)
        .into_iter()
        .map(|(gate, _)| gate)
        .collect();
    assert_eq!(
        names,
        [
            "ruff",
            "mypy",
            "pytest",
            "repeat",
            "policy",
            "invariants",
            "examples"
        ]
    );
    for name in &names {
        assert!(
            ran.stderr.contains(&format!("{name} passed")),
            "{}",
            ran.stderr
        );
    }
    let facts = &document["gates"][2]["facts"];
    assert_eq!(
        (&facts["tests"]["passed"], &facts["suite"]["passed"]),
        (&json!(6), &json!(12))
    );
    assert_eq!(facts["isolation"], "full");
    assert_eq!(
        document["gates"][6]["facts"],
        json!({ "examples": 2, "passed": 2 })
    );
    // The story tells it, and what nobody who builds was shown stands in none of it.
    assert_eq!(setup.status(), SkillStatus::Verified);
    let report = document["report"].as_str().unwrap();
    let stored_text = setup.run(["ledger", "show", report]).ok().stdout;
    assert!(
        stored_text.contains("skill-verification-report.v1") && stored_text.contains("pytest"),
        "{stored_text}"
    );
    let log = setup
        .run([
            "ledger",
            "show",
            document["gates"][2]["log"].as_str().unwrap(),
        ])
        .ok()
        .stdout;
    assert!(
        log.contains("6 passed") && log.contains("12 passed"),
        "{log}"
    );
    for text in [&ran.stdout, &ran.stderr, &stored_text, &log] {
        assert!(!text.contains("heldback"), "{text}");
    }
    let ledger = setup.ledger();
    let id = ledger
        .skill(&setup.project(), "count_words")
        .unwrap()
        .unwrap()
        .id;
    let stored_artifacts = ledger.skill_artifacts(id).unwrap();
    assert!(
        stored_artifacts
            .iter()
            .any(|stored_artifact| stored_artifact.kind == SkillArtifactKind::VerificationReport)
    );
    drop(ledger);
    setup.run(["ledger", "verify"]).ok();
    // For people: each gate a line, and what was verified.
    let ran = setup.verify().run().ok();
    assert!(
        ran.stdout.contains("count_words is VERIFIED"),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.contains("invariants  passed"), "{}", ran.stdout);
}

#[test]
fn failed_gate_does_not_stop_other_gates() {
    let setup = Setup::built_with(Some(EXAMPLES));
    setup.write(
        SKILL,
        "import os\nimport subprocess\n\n\nclass Other:\n    def execute(self, inputs):\n        subprocess.run([\"true\"])\n        return \"\\x1b[2J\"\n",
    );
    setup.write(TEST, "def test_nothing() -> int:\n    print(\"\\x1b[2Jghp_0123456789abcdefABCDEF0123456789abcd\")\n    assert 1 == 2, \"\\x1b[2J\"\n");
    let ran = setup.verify().arg("--json").run().exits(1);
    let document = checked(&ran);
    let all: Vec<(String, String)> = verdicts(&document);
    assert_eq!(all.len(), 7);
    assert!(all.iter().all(|(_, verdict)| verdict == "fail"), "{all:?}");
    let codes = codes(&document);
    for code in [
        "forge-not-as-built",
        "forge-ruff",
        "forge-mypy",
        "forge-test-failed",
        "forge-test-elsewhere",
        "forge-test-unstable",
        "forge-process",
        "forge-class-name",
        "forge-example",
    ] {
        assert!(codes.contains(&code), "{code} is not in {codes:?}");
    }
    assert_eq!(document["status"], "BUILT");
    assert_eq!(setup.status(), SkillStatus::Built);
    assert_eq!(setup.verifications(), [VerificationStatus::Failed]);
    let log = setup
        .run([
            "ledger",
            "show",
            document["gates"][2]["log"].as_str().unwrap(),
        ])
        .ok()
        .stdout;
    // What is kept is what was printed, but for the secret and the word of the witness; what is shown cannot steer a terminal.
    assert!(
        log.contains("[secret:") && !log.contains("crucible-witness"),
        "{log}"
    );
    for text in [&ran.stdout, &ran.stderr, &log] {
        assert!(!text.contains("ghp_0123"), "{text}");
    }
    assert!(
        !ran.stdout.contains('\u{1b}') && !ran.stderr.contains('\u{1b}'),
        "{}",
        ran.stderr
    );
    setup.run(["ledger", "verify"]).ok();
}

/// Takes about eight seconds: ruff, mypy and pytest check four tests.
#[test]
fn tests_count_only_if_they_run_the_skill() {
    let setup = Setup::built();
    let run = "CountWordsSkill().execute({\"text\": \"a b\"})";
    for (body, is_empty) in [
        (
            format!("def unused():\n    {run}\n\n\ndef test_it():\n    assert len(\"ab\") == 2\n"),
            true,
        ),
        (
            format!(
                "class Fake(CountWordsSkill):\n    execute = lambda self, inputs: {{\"count\": 2}}\n\n\n\
                 def test_it():\n    assert Fake().execute({{}}) == {{\"count\": 2}}\n\n\ndef unused():\n    {run}\n"
            ),
            true,
        ),
        (
            format!(
                "@pytest.fixture(scope=\"module\")\ndef given():\n    return {run}\n\n\n\
                 def test_it(given):\n    assert given == {{\"count\": 2}}\n\n\ndef test_two(given):\n    assert given\n"
            ),
            false,
        ),
        (
            format!(
                "def test_it():\n    found = []\n    thread = threading.Thread(target=lambda: found.append({run}))\n    \
                 thread.start()\n    thread.join()\n    assert found == [{{\"count\": 2}}]\n"
            ),
            false,
        ),
    ] {
        setup.write(
            TEST,
            &format!("import threading\n\nimport pytest\n\n{IMPORT}\n\n{body}"),
        );
        let document = checked(&setup.verify().arg("--json").run());
        let pytest = &document["gates"][2];
        let expected = if is_empty { "fail" } else { "pass" };
        assert_eq!(
            (pytest["gate"].as_str(), pytest["verdict"].as_str()),
            (Some("pytest"), Some(expected)),
            "{body}\n{pytest:#}"
        );
        assert_eq!(
            pytest.to_string().contains("\"forge-test-empty\""),
            is_empty,
            "{body}\n{pytest:#}"
        );
    }
}

#[test]
fn skill_test_is_confined_by_sandbox() {
    let setup = Setup::built();
    std::fs::write(setup.fixture.home().join("secret"), "hidden\n").unwrap();
    let (home, data, project) = (setup.fixture.home(), setup.fixture.data(), setup.root());
    setup.write(
        TEST,
        &format!(
            "import os\nimport shutil\nimport socket\nfrom pathlib import Path\n\nimport pytest\n\n{IMPORT}\n\
             COPY = Path(__file__).resolve().parent.parent\n\n\n\
             @pytest.mark.parametrize(\"place\", [str(COPY), {project:?}, {data:?}, \"/usr\", \"/etc\"])\n\
             def test_nothing_is_written(place: str) -> None:\n    with pytest.raises(OSError):\n        (Path(place) / \"new\").write_text(\"x\")\n\n\n\
             def test_what_is_verified_stays() -> None:\n    before = (COPY / {SKILL:?}).read_text()\n    for way in (os.remove, os.truncate):\n        with pytest.raises((OSError, TypeError)):\n            way(str(COPY / {SKILL:?}), *([0] if way is os.truncate else []))\n    \
             shutil.rmtree(COPY, ignore_errors=True)\n    assert (COPY / {SKILL:?}).read_text() == before\n\n\n\
             def test_secrets_are_not_seen() -> None:\n    with pytest.raises(OSError):\n        Path({secret:?}).read_text()\n    with pytest.raises(OSError):\n        Path({ledger:?}).read_bytes()\n\n\n\
             def test_nobody_is_reached() -> None:\n    with pytest.raises(OSError):\n        socket.create_connection((\"192.0.2.1\", 80), timeout=5)\n\n\n\
             def test_the_skill() -> None:\n    assert CountWordsSkill().execute({{\"text\": \"a b\"}}) == {{\"count\": 2}}\n",
            secret = home.join("secret"),
            ledger = data.join("ledger.db"),
        ),
    );
    let before = Snapshot::take([setup.root().as_path(), setup.fixture.home().as_path()]);
    let document = checked(&setup.verify().arg("--json").run());
    before.is_still(&Snapshot::take([
        setup.root().as_path(),
        setup.fixture.home().as_path(),
    ]));
    let pytest = &document["gates"][2];
    assert_eq!(pytest["verdict"], "pass", "{pytest:#}");
    assert_eq!(pytest["facts"]["tests"]["passed"], 9);
}

#[test]
fn change_during_verification_is_detected_without_sandbox() {
    let setup = Setup::built();
    let good = String::from_utf8(setup.read(TEST)).unwrap();
    for (place, what) in [("new.txt", "new.txt"), (SKILL, SKILL)] {
        setup.write(
            TEST,
            &format!("{good}\n\ndef test_write() -> None:\n    from pathlib import Path\n\n    (Path(__file__).resolve().parent.parent / {place:?}).write_text(\"\")\n"),
        );
        let ran = setup
            .verify()
            .env("CRUCIBLE_SANDBOX", "off")
            .arg("--json")
            .run()
            .exits(1);
        let document = checked(&ran);
        let findings = document["gates"][2]["findings"].as_array().unwrap();
        assert!(
            findings
                .iter()
                .any(|found| found["code"] == "forge-copy-changed" && found["subject"] == what),
            "{findings:#?}"
        );
    }
}

#[test]
fn file_replaced_during_verification_has_no_effect() {
    let setup = Setup::built();
    let (skill, test) = (setup.read(SKILL), setup.read(TEST));
    let (child, mut said) = setup.begun();
    wait_for(&mut said, "ruff passed");
    setup.write(SKILL, "import subprocess\n");
    setup.write(TEST, "def test_bad():\n    assert False\n");
    let output = std::thread::spawn(move || child.wait_with_output().unwrap());
    wait_for(&mut said, "invariants passed");
    let output = output.join().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(
        stdout.contains(&Digest::compute(&skill).to_string())
            && stdout.contains(&Digest::compute(&test).to_string())
    );
    // Nobody can answer for the file that is there now.
    let refused = setup
        .run([
            "skill",
            "promote",
            "count_words",
            "--by",
            "Somebody",
            "--reason",
            "it works",
        ])
        .exits(1);
    assert!(!refused.stdout.contains("promoted"), "{}", refused.stdout);
    assert_eq!(setup.status(), SkillStatus::Verified);
}

#[test]
fn interrupted_verification_is_recorded_and_restarts() {
    let setup = Setup::built();
    let good = String::from_utf8(setup.read(TEST)).unwrap();
    let endless = format!("{good}\n\ndef test_endless() -> None:\n    while True:\n        pass\n");
    setup.write(TEST, &endless);
    for (signal, code) in [(Signal::SIGINT, Some(130)), (Signal::SIGKILL, None)] {
        let (mut child, mut said) = setup.begun();
        wait_for(&mut said, "mypy passed");
        kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), code);
        assert_eq!(setup.status(), SkillStatus::Built);
    }
    assert_eq!(
        setup.verifications(),
        [VerificationStatus::Aborted, VerificationStatus::Running]
    );
    setup.write(TEST, &good);
    let ran = setup.verify().run().ok();
    assert!(!ran.stdout.contains("forge-not-as-built"), "{}", ran.stdout);
    let ended = [
        VerificationStatus::Aborted,
        VerificationStatus::Aborted,
        VerificationStatus::Passed,
    ];
    assert_eq!(setup.verifications(), ended);
    setup.run(["ledger", "verify"]).ok();
}

#[test]
fn missing_tools_are_reported_before_recording() {
    let setup = Setup::proposed(None);
    let output = setup.verify().run().exits(1);
    assert!(
        output.stderr.contains("crucible skill build count_words"),
        "{}",
        output.stderr
    );
    setup
        .fixture
        .call(["skill", "verify", "unknown"])
        .current_dir(setup.root())
        .run()
        .exits(2);

    let setup = Setup::built();
    let none = setup
        .verify()
        .env("CRUCIBLE_FORGE_TOOLS", "")
        .env("PATH", setup.fixture.home())
        .run()
        .exits(2);
    assert!(
        none.stderr.contains("pip install ruff mypy pytest"),
        "{}",
        none.stderr
    );
    let bad = setup
        .verify()
        .env("CRUCIBLE_FORGE_TOOLS", ".venv/bin")
        .run()
        .exits(2);
    assert!(bad.stderr.contains("absolute"), "{}", bad.stderr);
    setup.write(".crucible/skills/policy.yaml", "no_such_list: []\n");
    setup.verify().run().exits(3);
    std::fs::remove_file(setup.root().join(".crucible/skills/policy.yaml")).unwrap();

    let (skill, place) = (setup.read(SKILL), setup.root().join(SKILL));
    std::fs::remove_file(&place).unwrap();
    let missing = setup.verify().run().exits(2);
    assert!(
        missing.stderr.contains("count_words.py") && missing.stderr.contains("skill build"),
        "{}",
        missing.stderr
    );
    std::fs::write(setup.fixture.path("elsewhere.py"), &skill).unwrap();
    std::os::unix::fs::symlink(setup.fixture.path("elsewhere.py"), &place).unwrap();
    setup.verify().run().exits(2);
    std::fs::remove_file(&place).unwrap();
    std::fs::write(&place, vec![b'#'; 17 << 20]).unwrap();
    setup.verify().run().exits(7);
    std::fs::write(&place, &skill).unwrap();

    let lock = format!("skills/{}-count_words.lock", setup.project());
    let held = Lock::acquire(&setup.fixture.data().join(lock), "a test").unwrap();
    setup.verify().run().exits(9);
    drop(held);
    assert_eq!(setup.verifications(), []);
    assert_eq!(setup.status(), SkillStatus::Built);
}

#[test]
fn gate_timeout_exits_10() {
    let setup = Setup::built();
    let ran = setup
        .verify()
        .env("CRUCIBLE_FORGE_GATE_TIMEOUT_S", "1")
        .arg("--json")
        .run()
        .exits(10);
    let document = checked(&ran);
    assert!(
        codes(&document).contains(&"forge-gate-timed-out"),
        "{document:#}"
    );
    assert_eq!(setup.status(), SkillStatus::Built);
    setup
        .verify()
        .env("CRUCIBLE_FORGE_GATE_TIMEOUT_S", "0")
        .run()
        .exits(2);
}

#[test]
fn project_settings_cannot_set_tools() {
    let setup = Setup::built();
    setup.write(".crucible/config.toml", "[forge]\ntools = \"/usr/bin\"\n");
    let output = setup
        .verify()
        .without_env("CRUCIBLE_FORGE_TOOLS")
        .run()
        .exits(2);
    assert!(output.stderr.contains("forge.tools"), "{}", output.stderr);
}
