//! The gates with the real tools: what passes, and what does not get past them. The sandbox is tested in `cli`.
//!
//! Slow because mypy takes seconds of CPU for the smallest file.
#![expect(
    clippy::disallowed_methods,
    reason = "a test lays out a project, and reads PATH to find Python"
)]

use std::path::PathBuf;
use std::sync::Arc;

use crucible_host::clock::SystemClock;
use crucible_host::env::Environment;
use crucible_ledger::{SideEffect, VerificationLevel};
use crucible_model::{Digest, Outcome};
use crucible_sandbox::{Sandbox, Strength};
use serde_json::json;
use tokio::sync::OnceCell;

use super::*;
use crate::context::ForgeContext;
use crate::grants::Grants;
use crate::io_schema::IoSchema;
use crate::name::SkillName;
use crate::paths::{PackageName, SkillPaths};
use crate::policy::SkillPolicy;
use crate::project::ForgeProject;
use crate::skeleton::Skeleton;

const SKILL: &str = include_str!("../skeleton/files/word_count.py");
const TEST: &str = include_str!("../skeleton/files/test_word_count.py");

/// A project with the example skill, and what its gates are handed.
struct Setup {
    directory: tempfile::TempDir,
    skill: String,
    test: String,
    level: VerificationLevel,
    timeout: Duration,
    policy: SkillPolicy,
}

impl Setup {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("copy")).unwrap();
        let package: PackageName = "skillset".parse().unwrap();
        let project = ForgeProject::new(
            root.join("copy"),
            Digest::compute(b"project"),
            package.clone(),
        );
        Skeleton::from_package(&package)
            .unwrap()
            .write(&project, &root.join("home"))
            .unwrap();
        Self {
            directory,
            skill: SKILL.replace("PACKAGE", "skillset"),
            test: TEST.replace("PACKAGE", "skillset"),
            level: VerificationLevel::Skill,
            timeout: Duration::from_secs(120),
            policy: SkillPolicy::default(),
        }
    }

    fn with_test(text: &str) -> Self {
        Self {
            test: text.to_owned(),
            ..Self::new()
        }
    }

    fn root(&self) -> PathBuf {
        self.directory.path().canonicalize().unwrap()
    }

    fn write(&self, path: &str, text: &str) {
        std::fs::write(self.root().join("copy").join(path), text).unwrap();
    }

    async fn ask(&self, gate: SkillGate) -> GateAnswer {
        let env = Environment::from_pairs([("PATH", std::env::var_os("PATH").unwrap())], "/");
        let world = ForgeContext {
            env: &env,
            clock: &SystemClock,
            sandbox: Arc::new(Sandbox::new(None, &env)),
            strength: Strength::Off,
            home: self.root().join("home"),
            tmp: self.root().join("tmp"),
        };
        let name: SkillName = "word_count".parse().unwrap();
        let package: PackageName = "skillset".parse().unwrap();
        let paths = SkillPaths::new(&package, &name).unwrap();
        self.write(paths.skill.as_str(), &self.skill);
        self.write(paths.test.as_str(), &self.test);
        let read = |path: &crucible_model::RepoPath| {
            GateSource::new(
                path,
                std::fs::read(self.root().join("copy").join(path.as_str())).unwrap(),
            )
        };
        static FOUND: OnceCell<SkillTools> = OnceCell::const_new();
        let found = FOUND
            .get_or_init(async || SkillTools::find(&world, Some(&tools())).await.unwrap())
            .await;
        let io_schema = IoSchema::from_value(
            json!({"input": {"type": "object"}, "output": {"type": "object"}}),
        )
        .unwrap();
        let site = GateSite {
            world: &world,
            name: &name,
            package: &package,
            paths: &paths,
            class: SideEffect::ReadOnly,
            grants: &Grants::default(),
            policy: &self.policy,
            skill: &read(&paths.skill),
            test: &read(&paths.test),
            copy: &self.root().join("copy"),
            scratch: &self.root().join("scratch"),
            tools: found,
            timeout: self.timeout,
            level: self.level,
            io_schema: &io_schema,
            examples: None,
        };
        let gate = GATES.into_iter().find(|one| one.id() == gate).unwrap();
        gate.run(&site).await.unwrap()
    }

    async fn codes(&self, gate: SkillGate) -> Vec<String> {
        codes(&self.ask(gate).await)
    }
}

fn tools() -> PathBuf {
    let tools = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../.tools/python/bin")
        .canonicalize();
    tools.expect("the Python tools are missing: run `cargo xtask test`, which installs them")
}

fn codes(answer: &GateAnswer) -> Vec<String> {
    answer
        .verdict
        .findings()
        .iter()
        .map(|finding| finding.code.to_string())
        .collect()
}

fn texts(answer: &GateAnswer) -> String {
    answer
        .verdict
        .findings()
        .iter()
        .map(|finding| format!("{finding}\n"))
        .collect()
}

#[tokio::test]
async fn example_skill_passes_gates_without_examples() {
    let setup = Setup::new();
    for gate in SkillGate::REQUIRED.into_iter().chain([SkillGate::Repeat]) {
        let answer = setup.ask(gate).await;
        assert_eq!(
            answer.verdict.outcome(),
            Outcome::Pass,
            "{gate:?}: {}",
            texts(&answer)
        );
        assert!(
            answer.verdict.findings().is_empty(),
            "{gate:?}: {}",
            texts(&answer)
        );
    }
    let answer = setup.ask(SkillGate::Pytest).await;
    assert_eq!(answer.facts["tests"]["passed"], 6);
    assert_eq!(answer.facts["exit_code"], 0);
    assert!(String::from_utf8_lossy(&answer.log).contains("6 passed"));
}

#[tokio::test]
async fn test_that_depends_on_hashes_is_unstable() {
    let test = "import sys\nfrom skillset.skills.word_count import WordCountSkill\n\n\ndef test_order():\n    \
                assert WordCountSkill().name == \"word_count\"\n    assert sys.flags.hash_randomization == 1\n";
    let setup = Setup::with_test(test);
    assert!(setup.ask(SkillGate::Pytest).await.facts["tests"]["passed"] == 1);
    let answer = setup.ask(SkillGate::Repeat).await;
    assert_eq!(codes(&answer), ["forge-test-unstable"]);
    assert!(
        texts(&answer).contains("tests/test_skill_word_count.py::test_order"),
        "{}",
        texts(&answer)
    );
}

#[tokio::test]
async fn ruff_says_where_and_no_comment_silences_it() {
    let mut setup = Setup::new();
    setup.skill = format!("# ruff: noqa\nimport os  # noqa\n{}", setup.skill);
    let answer = setup.ask(SkillGate::Ruff).await;
    assert!(
        texts(&answer).contains("src/skillset/skills/word_count.py:2:8: F401"),
        "{}",
        texts(&answer)
    );
    // The project's own exclusion is for what it lists itself, not for what is verified.
    setup.write(
        "ruff.toml",
        "force-exclude = true\nexclude = [\"src\", \"tests\"]\nfix = true\n",
    );
    let before = setup.skill.clone();
    assert!(
        setup
            .codes(SkillGate::Ruff)
            .await
            .contains(&"forge-ruff".to_owned())
    );
    let path = setup.root().join("copy/src/skillset/skills/word_count.py");
    assert_eq!(std::fs::read_to_string(path).unwrap(), before);
    setup.skill = "def broken(:\n".to_owned();
    assert!(texts(&setup.ask(SkillGate::Ruff).await).contains("word_count.py:1:"));
    setup.write("ruff.toml", "no such = setting");
    assert_eq!(setup.codes(SkillGate::Ruff).await, ["forge-gate-ended"]);
}

#[tokio::test]
async fn mypy_finding_has_place_and_suppression_is_refused() {
    let mut setup = Setup::new();
    setup.skill.push_str("\n\nTOTAL: int = \"one\"\n");
    let line = setup.skill.lines().count();
    let answer = setup.ask(SkillGate::Mypy).await;
    let place = format!("src/skillset/skills/word_count.py:{line}:14: assignment");
    assert!(texts(&answer).contains(&place), "{}", texts(&answer));
    setup.skill = setup.skill.replace("\"one\"", "\"one\"  # type: ignore");
    let answer = setup.ask(SkillGate::Mypy).await;
    assert!(
        !answer.verdict.passes() && codes(&answer).contains(&"forge-silenced".to_owned()),
        "{}",
        texts(&answer)
    );
    setup.skill = setup
        .skill
        .replace("# type: ignore", "# type: ignore[assignment]");
    let answer = setup.ask(SkillGate::Mypy).await;
    assert!(answer.verdict.passes(), "{}", texts(&answer));
    assert_eq!(codes(&answer), ["forge-silenced"]);
    setup.skill = "def broken(:\n".to_owned();
    assert!(!setup.ask(SkillGate::Mypy).await.verdict.passes());
}

#[tokio::test]
async fn failing_test_is_named_with_its_line() {
    let setup = Setup::with_test(
        "from skillset.skills.word_count import WordCountSkill\n\n\ndef test_one():\n    assert WordCountSkill().execute({\"text\": \"a b\"}) == {\"count\": 3}\n\n\ndef test_two():\n    raise ValueError(\"\\x1b[2Jgone\")\n",
    );
    let answer = setup.ask(SkillGate::Pytest).await;
    let texts = texts(&Setup::bounded(answer));
    assert!(
        texts.contains("tests/test_skill_word_count.py::test_one line 5: "),
        "{texts}"
    );
    assert!(
        texts.contains("::test_two line 9: ValueError") && !texts.contains('\u{1b}'),
        "{texts}"
    );
}

impl Setup {
    fn bounded(answer: GateAnswer) -> GateAnswer {
        GateAnswer {
            verdict: bounded(&answer.verdict),
            ..answer
        }
    }
}

#[tokio::test]
async fn exit_code_0_does_not_prove_tests_ran() {
    let import = "from skillset.skills.word_count import WordCountSkill\n";
    let good = "\n\ndef test_good():\n    assert WordCountSkill().name == \"word_count\"\n";
    let cases = [
        (
            "os._exit while it is imported",
            "import os\nos._exit(0)\n".to_owned(),
            "forge-test-unfinished",
        ),
        (
            "os._exit in a test",
            format!("import os\n{import}{good}\n\ndef test_end():\n    os._exit(0)\n"),
            "forge-test-unfinished",
        ),
        (
            "pytest.exit with success",
            format!(
                "import pytest\n{import}{good}\n\ndef test_end():\n    pytest.exit('done', 0)\n\n\ndef test_more():\n    assert False\n"
            ),
            "forge-test-unfinished",
        ),
        ("nothing", "X = 1\n".to_owned(), "forge-test-none"),
        (
            "functions that are not tests",
            format!("{import}\n\ndef check():\n    assert False\n"),
            "forge-test-none",
        ),
        (
            "a module that is skipped",
            "import pytest\npytest.skip('no', allow_module_level=True)\n".to_owned(),
            "forge-test-left-out",
        ),
        (
            "a test that is skipped",
            format!(
                "import pytest\n{import}{good}\n\n@pytest.mark.skip\ndef test_end():\n    assert False\n"
            ),
            "forge-test-left-out",
        ),
        (
            "a skip from inside",
            format!("import pytest\n{import}{good}\n\ndef test_end():\n    pytest.skip('x')\n"),
            "forge-test-left-out",
        ),
        (
            "a failure that is expected",
            format!(
                "import pytest\n{import}{good}\n\n@pytest.mark.xfail\ndef test_end():\n    assert False\n"
            ),
            "forge-test-left-out",
        ),
        (
            "a success that is not expected",
            format!(
                "import pytest\n{import}{good}\n\n@pytest.mark.xfail\ndef test_end():\n    pass\n"
            ),
            "forge-test-left-out",
        ),
        (
            "another subject",
            "def test_nothing():\n    assert True\n".to_owned(),
            "forge-test-elsewhere",
        ),
        (
            "an import that fails",
            "import no_such_module\n".to_owned(),
            "forge-test-failed",
        ),
        (
            "no Python",
            "def broken(:\n".to_owned(),
            "forge-test-failed",
        ),
        (
            "a fixture that fails",
            format!(
                "import pytest\n{import}{good}\n\n@pytest.fixture\ndef x():\n    raise OSError\n\n\ndef test_x(x):\n    pass\n"
            ),
            "forge-test-failed",
        ),
    ];
    for (what, test, code) in cases {
        let setup = Setup::with_test(&test);
        let answer = setup.ask(SkillGate::Pytest).await;
        assert!(!answer.verdict.passes(), "{what}");
        assert!(
            codes(&answer).contains(&code.to_owned()),
            "{what}: {}",
            texts(&answer)
        );
    }
}

#[tokio::test]
async fn printed_report_of_test_is_ignored() {
    let import = "from skillset.skills.word_count import WordCountSkill\n";
    let forged_report = r#"{"collected":1,"finished":1,"exit":0,"module":null,"complaints":[],"left_out":[],"passed":1,"failed":0,"errors":0,"skipped":0,"xfailed":0,"xpassed":0}"#;
    let setup = Setup::with_test(&format!(
        "import os\n{import}\n\ndef test_forge():\n    said = os.read(0, 100)\n    word = said.decode().split('\\n')[0] or 'crucible-witness-0'\n    for out in range(1, 20):\n        try:\n            os.write(out, ('\\n' + word + ' {}\\n').encode())\n        except OSError:\n            pass\n    os._exit(0)\n",
        forged_report
            .replace('"', "\\\"")
            .replace('{', "{{")
            .replace('}', "}}")
            .replace("{{", "{")
            .replace("}}", "}")
    ));
    let answer = setup.ask(SkillGate::Pytest).await;
    assert_eq!(
        codes(&answer),
        ["forge-test-unfinished"],
        "{}",
        texts(&answer)
    );
}

#[tokio::test]
async fn project_pytest_settings_cannot_disable_the_tests() {
    let setup = Setup::new();
    for (setting, code) in [
        ("addopts = \"--collect-only\"", "forge-test-none"),
        ("addopts = \"-k nothing_of_this_name\"", "forge-test-none"),
        ("addopts = \"--no-such-option\"", "forge-gate-ended"),
        (
            "testpaths = [\"src\"]\npython_functions = [\"check_*\"]",
            "forge-test-none",
        ),
    ] {
        setup.write(
            "pyproject.toml",
            &format!("[tool.pytest.ini_options]\n{setting}\n"),
        );
        let answer = setup.ask(SkillGate::Pytest).await;
        assert!(!answer.verdict.passes(), "{setting}");
        assert!(
            codes(&answer).contains(&code.to_owned()),
            "{setting}: {}",
            texts(&answer)
        );
    }
    // An installed copy of the package does not stand in for what is verified: src comes first.
    setup.write(
        "pyproject.toml",
        "[tool.pytest.ini_options]\npythonpath = [\"elsewhere\"]\n",
    );
    let answer = setup.ask(SkillGate::Pytest).await;
    assert!(answer.verdict.passes(), "{}", texts(&answer));
    std::fs::create_dir_all(setup.root().join("copy/elsewhere/skillset/skills")).unwrap();
    for (path, text) in [
        ("elsewhere/skillset/__init__.py", ""),
        ("elsewhere/skillset/skills/__init__.py", ""),
        (
            "elsewhere/skillset/skills/base.py",
            include_str!("../skeleton/files/base.py"),
        ),
        ("elsewhere/skillset/skills/word_count.py", &setup.skill),
    ] {
        setup.write(path, text);
    }
    assert_eq!(
        setup.codes(SkillGate::Pytest).await,
        ["forge-test-elsewhere"]
    );
}

#[tokio::test]
async fn a_test_that_never_ends_is_ended() {
    let import = "from skillset.skills.word_count import WordCountSkill\n";
    let mut setup = Setup::with_test(&format!(
        "import os\nimport signal\n{import}\n\ndef test_wait():\n    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n    while True:\n        os.getpid()\n"
    ));
    setup.timeout = Duration::from_secs(3);
    let answer = setup.ask(SkillGate::Pytest).await;
    assert_eq!(
        codes(&answer),
        [GATE_TIMED_OUT.as_str()],
        "{}",
        texts(&answer)
    );
    assert!(texts(&answer).contains("3 s"));
}

#[tokio::test]
async fn the_whole_suite_counts_where_everything_is_verified() {
    let mut setup = Setup::new();
    setup.write("tests/test_other.py", "import pytest\n\n\n@pytest.mark.skip\ndef test_a():\n    pass\n\n\ndef test_b():\n    assert 1 == 2\n");
    assert!(setup.codes(SkillGate::Pytest).await.is_empty());
    setup.level = VerificationLevel::Full;
    let answer = setup.ask(SkillGate::Pytest).await;
    assert_eq!(codes(&answer), ["forge-test-failed"], "{}", texts(&answer));
    assert!(
        texts(&answer).contains("tests/test_other.py::test_b line 10"),
        "{}",
        texts(&answer)
    );
    setup.write(
        "tests/test_other.py",
        "import pytest\n\n\n@pytest.mark.skip\ndef test_a():\n    pass\n",
    );
    assert!(setup.codes(SkillGate::Pytest).await.is_empty());
}

#[tokio::test]
async fn invalid_source_text_fails_and_input_is_limited() {
    for bad in [
        "\u{feff}X = 1\n",
        "X = '\0'\n",
        "def broken(:\n",
        "# coding: latin-1\nX = 1\n",
    ] {
        let mut setup = Setup::new();
        setup.skill = bad.to_owned();
        for gate in [SkillGate::Policy, SkillGate::Invariants] {
            let answer = setup.ask(gate).await;
            assert_eq!(codes(&answer), ["forge-source"], "{gate:?} {bad:?}");
            assert!(
                texts(&answer).contains("src/skillset/skills/word_count.py: line 1"),
                "{}",
                texts(&answer)
            );
        }
    }
    let mut setup = Setup::new();
    setup.skill = format!("X = \"{}\"\n", "x".repeat(10 << 20));
    for gate in SkillGate::REQUIRED {
        let answer = setup.ask(gate).await;
        assert_eq!(codes(&answer), ["forge-source"], "{gate:?}");
        assert!(answer.log.is_empty(), "{gate:?}");
    }
    let mut setup = Setup::new();
    setup.test = "x = 1\n\0".to_owned();
    assert!(
        setup
            .codes(SkillGate::Policy)
            .await
            .contains(&"forge-source".to_owned())
    );
    setup.test = format!("KEY = \"ghp_{}\"\n", "0123456789abcdefABCDEF0123456789abcd");
    let answer = setup.ask(SkillGate::Policy).await;
    assert!(
        codes(&answer).contains(&"forge-holds-secret".to_owned())
            && !texts(&answer).contains("ghp_")
    );
}

#[tokio::test]
async fn skill_test_is_judged_like_the_skill() {
    let mut setup = Setup::new();
    setup
        .test
        .push_str("\n\ndef test_end() -> None:\n    import os\n\n    os._exit(0)\n");
    let answer = setup.ask(SkillGate::Policy).await;
    assert!(!answer.verdict.passes());
    assert!(
        texts(&answer).contains("tests/test_skill_word_count.py: line "),
        "{}",
        texts(&answer)
    );
    // The operator's own rules hold for both.
    let mut setup = Setup::new();
    setup.policy = SkillPolicy::read("forbidden_patterns: ['WordCountSkill']\n").unwrap();
    let answer = setup.ask(SkillGate::Policy).await;
    let findings = texts(&answer);
    assert!(
        findings.contains("forge-pattern src/") && findings.contains("forge-pattern tests/"),
        "{findings}"
    );
}

#[test]
fn many_findings_are_cut_with_worst_first() {
    let mut verdict = Verdict::default();
    verdict.push(Finding::warning(Code::new("forge-silenced"), "first", "x"));
    for number in 0..60 {
        verdict.push(Finding::error(
            Code::new("forge-ruff"),
            number.to_string(),
            "y".repeat(10_000),
        ));
    }
    let stored_verdict = bounded(&verdict);
    assert_eq!(stored_verdict.findings().len(), MAX_FINDINGS + 1);
    assert_eq!(stored_verdict.errors().count(), MAX_FINDINGS);
    assert_eq!(
        stored_verdict.findings().last().unwrap().to_string(),
        "forge-more-findings 11 more: Fix the reported ones; then the rest is shown. The log has all of them."
    );
    assert!(
        stored_verdict
            .findings()
            .iter()
            .all(|finding| finding.hint.chars().count() <= MAX_LEN + 1)
    );
}

#[tokio::test]
async fn missing_tool_is_reported_with_advice() {
    let directory = tempfile::tempdir().unwrap();
    let env = Environment::from_pairs([("PATH", directory.path().as_os_str())], "/");
    let world = ForgeContext {
        env: &env,
        clock: &SystemClock,
        sandbox: Arc::new(Sandbox::new(None, &env)),
        strength: Strength::Off,
        home: directory.path().join("home"),
        tmp: directory.path().join("tmp"),
    };
    let error = SkillTools::find(&world, None).await.unwrap_err();
    assert!(
        matches!(error, ToolsMissing::NotFound { .. }) && error.to_string().contains("forge"),
        "{error}"
    );
    for bad in ["relative", "/no/such/directory"] {
        let error = SkillTools::find(&world, Some(std::path::Path::new(bad)))
            .await
            .unwrap_err();
        assert!(matches!(error, ToolsMissing::NoDirectory { .. }), "{error}");
    }
}
