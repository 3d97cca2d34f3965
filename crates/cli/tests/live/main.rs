//! The forge against a real model, on this machine: `cargo xtask test --live` starts its server and runs this.
//!
//! A skill is asked for, built by the model in the way of `whole-file`, and judged by the real gates. Whether so small a model gets a
//! skill right is not what is tested: whatever it answers, the attempt is on record with what it was asked, and nothing
//! of it is run or trusted unless every gate passed. Started without the server every test fails and says so; none skips.
#![expect(
    clippy::disallowed_methods,
    reason = "tests start the program and write its input"
)]
#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test fails the test that calls it"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crucible_testkit::{LiveLine, live_address};
use serde_json::Value;

const SCHEMA: &str = r#"{"input": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    "output": {"type": "object", "properties": {"shouted": {"type": "string"}}, "required": ["shouted"]}}"#;

struct Setup {
    dir: tempfile::TempDir,
}

impl Setup {
    fn new() -> Self {
        let setup = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        std::fs::create_dir_all(setup.project().join(".git")).unwrap();
        std::fs::write(setup.dir.path().join("io.json"), SCHEMA).unwrap();
        setup.ok(&["skill", "init"]);
        let io = setup.dir.path().join("io.json");
        let words = [
            "skill",
            "propose",
            "shout",
            "--effects",
            "READ_ONLY",
            "--describe",
            "Returns the text in capitals.",
        ];
        setup.ok(&[&words[..], &["--io", io.to_str().unwrap()]].concat());
        setup
    }

    fn project(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    fn run(&self, words: &[&str]) -> Output {
        let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools/python/bin");
        let path = std::env::var("PATH").unwrap();
        // The sandbox shows what the `PATH` names, also in a home: the interpreter of the tools may lie in one.
        let python = tools.join("python3").canonicalize().unwrap();
        Command::new(env!("CARGO_BIN_EXE_crucible"))
            .args(words)
            .current_dir(self.project())
            .env_clear()
            .env(
                "PATH",
                format!(
                    "{}:{}:{path}",
                    tools.display(),
                    python.parent().unwrap().display()
                ),
            )
            .env("HOME", self.dir.path())
            .env("CRUCIBLE_HOME", self.dir.path().join("data"))
            .env(
                "CRUCIBLE_GATEWAY_BASE_URL",
                format!("{}/v1", live_address()),
            )
            .output()
            .unwrap()
    }

    fn ok(&self, words: &[&str]) -> String {
        let output = self.run(words);
        assert!(
            output.status.success(),
            "{words:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    }

    fn story(&self) -> Value {
        serde_json::from_str(&self.ok(&["skill", "show", "shout", "--json"])).unwrap()
    }
}

fn kinds(story: &Value) -> Vec<&str> {
    story["artifacts"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|stored_json| stored_json["kind"].as_str())
        .collect()
}

#[test]
fn model_builds_skill_up_to_its_gates() {
    let mut line = LiveLine::new(
        "a skill in whole files",
        "a skill that returns a text in capitals, and its test",
    );
    line.by = (
        "gateway".to_owned(),
        "qwen2.5-coder-0.5b-instruct".to_owned(),
    );
    let setup = Setup::new();
    let built = setup.run(&[
        "skill",
        "build",
        "shout",
        "--agent",
        "whole-file",
        "--provider",
        "gateway",
    ]);
    let code = built.status.code().unwrap();
    assert!(
        matches!(code, 0 | 1),
        "{code}: {}",
        String::from_utf8_lossy(&built.stderr)
    );
    let story = setup.story();
    assert_eq!(story["builds"].as_array().unwrap().len(), 1, "{story:#}");
    assert!(
        kinds(&story).contains(&"BUILD_PACKET") && kinds(&story).contains(&"BUILD_LOG"),
        "{story:#}"
    );
    if code == 1 {
        assert_eq!(
            (&story["status"], &story["builds"][0]["status"]),
            (&"PROPOSED".into(), &"FAILED".into())
        );
        setup.ok(&["skill", "research", "shout"]);
        return line.passed("no two files came of it; the attempt and the note are kept");
    }
    assert_eq!(
        (&story["status"], &story["builds"][0]["status"]),
        (&"BUILT".into(), &"SUCCEEDED".into())
    );

    let verified = setup
        .run(&["skill", "verify", "shout"])
        .status
        .code()
        .unwrap();
    let story = setup.story();
    assert!(
        story["verifications"][0]["gates"].as_array().unwrap().len() >= 5,
        "{story:#}"
    );
    if verified != 0 {
        assert_eq!(
            (verified, &story["status"]),
            (1, &"BUILT".into()),
            "{story:#}"
        );
        assert_eq!(
            setup
                .run(&["skill", "promote", "shout", "--by", "live"])
                .status
                .code(),
            Some(1)
        );
        setup.ok(&["skill", "research", "shout"]);
        assert!(kinds(&setup.story()).contains(&"RESEARCH_NOTE"));
        return line.passed("built, refused by a gate; promotion refused, the note is kept");
    }
    setup.ok(&[
        "skill",
        "promote",
        "shout",
        "--by",
        "live",
        "--reason",
        "the live suite",
    ]);
    let ran = setup.run(&["skill", "run", "shout", "--input", r#"{"text": "quiet"}"#]);
    assert!(ran.status.code() == Some(0) || ran.status.code() == Some(1));
    assert_eq!(setup.story()["runs"].as_array().unwrap().len(), 1);
    line.passed("built, verified, promoted and run");
}

#[test]
fn advice_of_model_is_stored_and_decides_nothing() {
    let line = LiveLine::new(
        "advice",
        "what to change after an attempt that changed nothing",
    );
    let setup = Setup::new();
    std::fs::create_dir_all(setup.dir.path().join(".config/crucible")).unwrap();
    std::fs::write(
        setup.dir.path().join(".config/crucible/config.toml"),
        "[forge]\nagent_command = [\"true\"]\n",
    )
    .unwrap();
    assert_eq!(
        setup
            .run(&["skill", "build", "shout", "--agent", "command"])
            .status
            .code(),
        Some(1)
    );
    setup.ok(&[
        "skill",
        "research",
        "shout",
        "--advice",
        "--provider",
        "gateway",
    ]);
    let story = setup.story();
    assert_eq!(story["status"], "PROPOSED");
    assert!(kinds(&story).contains(&"RESEARCH_NOTE"), "{story:#}");
    line.passed("asked, kept, and the skill stands where it stood");
}
