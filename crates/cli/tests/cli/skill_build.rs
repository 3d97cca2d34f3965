//! Building skills: the real `claude` with tools for files, commands of all kinds, and models without tools.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Stdio};

use crucible_testkit::{FakeApi, Reply, real_client};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::support::{Call, Fixture, Ran, Snapshot};

const SCHEMA: &str = r#"{"input": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    "output": {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}}"#;

const SKILL: &str = "\
\"\"\"Counts lines.\"\"\"

from typing import Any

from skillset.skills.base import BaseSkill


class CountLinesSkill(BaseSkill):
    \"\"\"Counts lines.\"\"\"

    name = \"count_lines\"
    description = \"Counts the lines of a text.\"
    side_effect_class = \"READ_ONLY\"

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        \"\"\"Return how many lines `text` has.\"\"\"
        return {\"count\": len(str(inputs[\"text\"]).splitlines())}
";

const TEST: &str = "\
\"\"\"What count_lines promises.\"\"\"

from skillset.skills.count_lines import CountLinesSkill


def test_lines_are_counted() -> None:
    assert CountLinesSkill().execute({\"text\": \"a\\nb\"}) == {\"count\": 2}
";

const SKILL_PATH: &str = "src/skillset/skills/count_lines.py";
const TEST_PATH: &str = "tests/test_skill_count_lines.py";
/// A value that must not be mistaken for one of a real service.
const KEY: &str = "a-key-of-nobody-0123456789";

/// Writes both files as a shell does that knows nothing of fences.
const WRITE_BOTH: &str = "printf 'SKILL = 1\\n' > src/skillset/skills/count_lines.py; printf 'TEST = 1\\n' > tests/test_skill_count_lines.py";

struct Setup {
    fixture: Fixture,
}

impl Setup {
    /// A project whose skill `count_lines` is proposed, with an example that is held out.
    fn new() -> Self {
        Self::at(Fixture::new())
    }

    fn at(fixture: Fixture) -> Self {
        let examples = r#"[{"input": {"text": "held back"}, "output": {"count": 1}}]"#;
        fixture.with_skill("count_lines", SCHEMA, Some(examples));
        std::fs::write(fixture.path("project/.env"), "TOKEN=abc\n").unwrap();
        Self { fixture }
    }

    fn root(&self) -> PathBuf {
        self.fixture.path("project")
    }

    fn run<const N: usize>(&self, words: [&str; N]) -> Ran {
        self.fixture.call(words).current_dir(self.root()).run()
    }

    fn build(&self, agent: &str) -> Call {
        self.fixture
            .call(["skill", "build", "count_lines", "--agent", agent])
            .current_dir(self.root())
    }

    /// Configures a shell's script as the agent.
    fn script(&self, script: &str, settings: &str) {
        let words = serde_json::to_string(&["sh", "-c", script]).unwrap();
        self.fixture
            .user_config(&format!("[forge]\nagent_command = {words}\n{settings}"));
    }

    fn claude(&self, server: &FakeApi) -> Call {
        self.fixture.user_config(&format!(
            "[llm.claude-cli]\nbinary = {:?}\nbase_url = {:?}\napi_key_env = \"OWN_KEY\"\n",
            real_client("claude"),
            server.origin()
        ));
        self.build("claude").env("OWN_KEY", KEY)
    }

    fn document(&self, ran: &Ran) -> Value {
        let document = ran.json();
        let schema = include_str!("../../../../docs/schemas/skill-build.v1.schema.json");
        let judge = jsonschema::validator_for(&serde_json::from_str(schema).unwrap()).unwrap();
        let problems: Vec<String> = judge
            .iter_errors(&document)
            .map(|error| error.to_string())
            .collect();
        assert!(problems.is_empty(), "{problems:?} in {document:#}");
        document
    }

    fn show(&self) -> Value {
        self.run(["skill", "show", "count_lines", "--json"])
            .ok()
            .json()
    }

    fn kept(&self, digest: &Value) -> String {
        self.run(["ledger", "show", digest.as_str().unwrap()])
            .ok()
            .stdout
    }

    fn read(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.root().join(path)).ok()
    }
}

/// The codes of the findings of a document.
fn codes(document: &Value) -> Vec<&str> {
    document["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|found| found["code"].as_str().unwrap())
        .collect()
}

/// Where the agent works, as the client tells its model.
fn workplace(request: &crucible_testkit::SeenRequest) -> String {
    let prompt = request.raw.split("crucible-skill-").next().unwrap();
    let begin = prompt
        .rfind("/")
        .map_or(prompt, |_| prompt.rsplit(['"', ' ', '\\']).next().unwrap());
    let rest = request.raw.split(begin).nth(1).unwrap();
    let end = rest.find("/copy").unwrap();
    format!("{begin}{}/copy", &rest[..end])
}

#[test]
fn claude_writes_skill_with_file_tools_without_shell() {
    let mut step = 0;
    let server = FakeApi::answering(move |request| {
        let at = workplace(request);
        step += 1;
        let write = |path: &str, text: &str| {
            Reply::ToolCall(
                "Write".to_owned(),
                json!({"file_path": format!("{at}/{path}"), "content": text}),
            )
        };
        match step {
            1 => write(SKILL_PATH, SKILL),
            2 => Reply::ToolCall(
                "Bash".to_owned(),
                json!({"command": "touch shell", "description": "x"}),
            ),
            3 => write(TEST_PATH, TEST),
            _ => Reply::Answer("Both files are written.".to_owned()),
        }
    });
    let setup = Setup::new();
    let ran = setup.claude(&server).arg("--json").run().ok();
    let document = setup.document(&ran);
    assert_eq!(
        (document["verdict"].as_str(), codes(&document).len()),
        (Some("pass"), 0),
        "{document:#}"
    );
    assert_eq!(document["isolation"]["level"], "full", "{document:#}");
    assert_eq!(setup.read(SKILL_PATH).as_deref(), Some(SKILL));
    assert_eq!(setup.read(TEST_PATH).as_deref(), Some(TEST));
    assert!(
        ran.stderr.contains(&format!("made {SKILL_PATH}")),
        "{}",
        ran.stderr
    );
    let requests = server.completions();
    assert_eq!(requests.len(), 4);
    for request in &requests {
        let mut tools: Vec<&str> = request.body["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["name"].as_str().unwrap())
            .collect();
        tools.sort_unstable();
        assert_eq!(tools, ["Edit", "Glob", "Grep", "Read", "Write"]);
        assert_eq!(request.key(), Some(KEY));
        assert!(
            !request.raw.contains("held back"),
            "a held-out example was shown"
        );
    }
    assert!(requests[0].raw.contains("Write one skill"));
    // What is kept is what was asked, and what was said.
    let packet = setup.kept(&document["packet"]);
    assert!(
        packet.contains(SKILL_PATH) && !packet.contains("held back"),
        "{packet}"
    );
    assert!(
        setup
            .kept(&document["log"])
            .contains("Both files are written.")
    );
    let story = setup.show();
    assert_eq!(story["status"], "BUILT");
    assert_eq!(story["builds"][0]["agent"], "claude sonnet");
    let kinds: Vec<&str> = story["artifacts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|stored_json| stored_json["kind"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        [
            "SKILL_SPEC",
            "NOTE",
            "BUILD_PACKET",
            "BUILD_LOG",
            "PATCH_SUMMARY"
        ]
    );
    setup.run(["ledger", "verify"]).ok();
}

/// More of the real `claude`.
mod exhaustive {
    use super::*;

    #[test]
    fn claude_changes_outside_skill_files_fail_the_build() {
        for (path, code) in [
            (None, "forge-scope-nothing"),
            (Some("conftest.py"), "forge-scope-outside"),
        ] {
            let mut step = 0;
            let server = FakeApi::answering(move |request| {
                step += 1;
                match path {
                    Some(path) if step == 1 => {
                        let file_path = format!("{}/{path}", workplace(request));
                        Reply::ToolCall(
                            "Write".to_owned(),
                            json!({"file_path": file_path, "content": "x = 1\n"}),
                        )
                    }
                    _ => {
                        Reply::Answer("Done, both files are written and all tests pass.".to_owned())
                    }
                }
            });
            let setup = Setup::new();
            let before = Snapshot::take([&setup.root()]);
            let ran = setup.claude(&server).arg("--json").run().exits(1);
            let document = setup.document(&ran);
            assert!(codes(&document).contains(&code), "{document:#}");
            assert_eq!(document["failure"], "GATE_VIOLATION");
            before.is_still(&Snapshot::take([&setup.root()]));
            assert_eq!(
                setup.show()["builds"][0]["failure"]["kind"],
                "GATE_VIOLATION"
            );
        }
    }

    #[test]
    fn provider_refusing_claude_is_a_build_error() {
        let server = FakeApi::start([Reply::Status(401)]);
        let setup = Setup::new();
        let ran = setup.claude(&server).arg("--json").run().exits(70);
        let document = setup.document(&ran);
        assert_eq!(codes(&document).first(), Some(&"forge-agent-failed"));
        assert_eq!(document["failure"], "BUILD_ERROR");
        assert!(!ran.stdout.contains(KEY) && !setup.kept(&document["log"]).contains(KEY));
        let story = setup.show();
        assert_eq!(story["status"], "PROPOSED");
        // Without a key there is no agent, and no attempt.
        setup.claude(&server).without_env("OWN_KEY").run().exits(2);
        assert_eq!(setup.show()["counts"]["builds"], 1);
    }
}

#[test]
fn command_may_write_only_the_two_files() {
    let both = WRITE_BOTH;
    let good = [
        both.to_owned(),
        format!("cat > /dev/null; {both}; echo done"),
        format!(
            "{both}; git config core.fsmonitor 'touch /tmp/x'; printf '*.py -diff\\n' > .git/info/attributes"
        ),
        format!("grep -q 'Write one skill' \"$CRUCIBLE_PACKET\" && {both}"),
        format!("test ! -e .env && {both}"),
        format!("printf '\\033[2J\\033]0;x\\007\\n'; {both}"),
        format!("(sleep 30; touch late) & {both}"),
    ];
    for script in good {
        let setup = Setup::new();
        setup.script(&script, "");
        let ran = setup.build("command").arg("--json").run().ok();
        assert_eq!(setup.document(&ran)["status"], "SUCCEEDED", "{script}");
        assert_eq!(
            setup.read(SKILL_PATH).as_deref(),
            Some("SKILL = 1\n"),
            "{script}"
        );
        assert!(
            !ran.stderr.contains('\u{1b}') && !ran.stdout.contains('\u{1b}'),
            "{script}"
        );
        assert!(!setup.root().join(".git/info").exists() && !setup.root().join("late").exists());
    }
    let bad = [
        ("true".to_owned(), 1, "forge-scope-nothing"),
        (
            "printf 'x' > src/skillset/skills/count_lines.py".to_owned(),
            1,
            "forge-scope-missing",
        ),
        (format!("{both}; exit 3"), 1, "forge-agent-failed"),
        (
            format!("{both}; rm -rf src/skillset/py.typed"),
            1,
            "forge-scope-removed",
        ),
        ("rm -rf ./* ./.git".to_owned(), 1, "forge-scope-removed"),
        (
            format!("{both}; echo x >> pyproject.toml"),
            1,
            "forge-scope-outside",
        ),
        (format!("{both}; ln -s / all"), 1, "forge-scope-outside"),
        (
            format!("{both}; rm {SKILL_PATH}; ln -s /etc/passwd {SKILL_PATH}"),
            1,
            "forge-scope-kind",
        ),
        (
            format!("{both}; chmod +x {SKILL_PATH}"),
            1,
            "forge-scope-mode",
        ),
        (format!("{both}; mkfifo pipe"), 1, "forge-scope-outside"),
        (
            format!("{both}; dd if=/dev/zero of=large bs=1M count=64"),
            1,
            "forge-agent",
        ),
        (
            format!(
                "{both}; while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done"
            ),
            1,
            "forge-agent-output",
        ),
        (
            format!("{both}; printf 'ghp_0123456789abcdefABCDEF0123456789abcd' >> {TEST_PATH}"),
            8,
            "forge-scope-secret",
        ),
        ("sleep 600".to_owned(), 10, "forge-agent-timeout"),
        (format!("{both}; sleep 600"), 10, "forge-agent-timeout"),
    ];
    for (script, code, found) in bad {
        let setup = Setup::new();
        setup.script(&script, "agent_disk_mib = 8\n");
        let before = Snapshot::take([&setup.root()]);
        let call = setup.build("command").arg("--json");
        let call = if code == 10 {
            call.args(["--timeout", "2"])
        } else {
            call
        };
        let document = setup.document(&call.run().exits(code));
        assert!(
            codes(&document).iter().any(|code| code.starts_with(found)),
            "{script}: {document:#}"
        );
        assert!(
            document["diff"]
                .as_str()
                .is_some_and(|diff| !diff.contains("ghp_")),
            "{script}"
        );
        // Who did not come to the end is not blamed for what is missing besides.
        let alone = code != 10 || codes(&document) == ["forge-agent-timeout"];
        assert!(alone, "{script}: {document:#}");
        before.is_still(&Snapshot::take([&setup.root()]));
        assert_eq!(setup.show()["status"], "PROPOSED", "{script}");
    }
}

#[test]
fn variables_passed_to_command_are_redacted() {
    let setup = Setup::new();
    let script = format!("{WRITE_BOTH}; echo \"$OWN_KEY\"; echo \"# $OWN_KEY\" >> {TEST_PATH}");
    setup.script(&script, "agent_env = [\"OWN_KEY\"]\n");
    let ran = setup
        .build("command")
        .arg("--json")
        .env("OWN_KEY", KEY)
        .run()
        .exits(8);
    let document = setup.document(&ran);
    assert!(
        codes(&document).contains(&"forge-build-key"),
        "{document:#}"
    );
    let log = setup.kept(&document["log"]);
    assert!(log.contains("handed-over") && !log.contains(KEY), "{log}");
    assert!(!ran.stdout.contains(KEY) && setup.read(TEST_PATH).is_none());
    // Without having named it, the command does not get it.
    setup.script(&format!("test -z \"$OWN_KEY\" && {WRITE_BOTH}"), "");
    setup.build("command").env("OWN_KEY", KEY).run().ok();
}

#[test]
fn a_project_cannot_name_the_command() {
    let setup = Setup::new();
    std::fs::create_dir_all(setup.root().join(".crucible")).unwrap();
    let config = "[forge]\nagent_command = [\"sh\", \"-c\", \"true\"]\n";
    std::fs::write(setup.root().join(".crucible/config.toml"), config).unwrap();
    setup.build("command").run().exits(2);
    std::fs::remove_file(setup.root().join(".crucible/config.toml")).unwrap();
    setup
        .fixture
        .user_config("[forge]\nagent_command = [\"./tools/agent\"]\n");
    setup.build("command").run().exits(2);
    setup
        .build("command")
        .args(["--provider", "gateway"])
        .run()
        .exits(2);
    assert_eq!(setup.show()["counts"]["builds"], 0);
}

fn answer(files: &[(&str, &str)]) -> String {
    files
        .iter()
        .map(|(path, text)| format!("{path}\n```python\n{text}```\n\n"))
        .collect()
}

#[test]
fn a_model_without_tools_answers_with_both_files() {
    let both = answer(&[(SKILL_PATH, SKILL), (TEST_PATH, TEST)]);
    let server = FakeApi::start([Reply::Answer(format!("Here they are.\n\n{both}"))]);
    let setup = Setup::at(Fixture::with(&server));
    let ran = setup.build("whole-file").run().ok();
    assert!(
        ran.stdout.contains(&format!("+++ b/{SKILL_PATH}")) && ran.stdout.contains("skill verify"),
        "{}",
        ran.stdout
    );
    assert_eq!(setup.read(SKILL_PATH).as_deref(), Some(SKILL));
    assert_eq!(setup.read(TEST_PATH).as_deref(), Some(TEST));
    assert!(!server.completions()[0].raw.contains("held back"));
    // What is built can be built over, and the next packet shows what stands there.
    let second_json = setup.document(&setup.build("whole-file").arg("--json").run().exits(1));
    assert_eq!(codes(&second_json).first(), Some(&"forge-scope-nothing"));
    assert!(
        server.completions()[1]
            .raw
            .contains("What stands there now")
    );
}

#[test]
fn existing_files_are_adopted_as_is() {
    let setup = Setup::new();
    let write = |path: &str, text: &str| {
        let place = setup.root().join(path);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::write(place, text).unwrap();
    };
    // One of the two is not both.
    write(SKILL_PATH, SKILL);
    let half = setup.document(&setup.build("as-is").arg("--json").run().exits(1));
    assert_eq!(codes(&half), ["forge-scope-missing"]);
    write(TEST_PATH, TEST);
    // An agent that was asked and changed nothing has failed, and it is said what would do; no file says it for whoever builds.
    setup.script("true", "");
    let output = setup.build("command").run().exits(1);
    assert!(
        output.stdout.contains("`--agent as-is` takes them"),
        "{}",
        output.stdout
    );
    setup.fixture.user_config("[forge]\nagent = \"as-is\"\n");
    setup.run(["skill", "build", "count_lines"]).exits(2);
    let before = Snapshot::take([&setup.root()]);
    let document = setup.document(&setup.build("as-is").arg("--json").run().ok());
    assert_eq!(
        (document["status"].as_str(), document["agent"].as_str()),
        (Some("SUCCEEDED"), Some("as-is"))
    );
    assert_eq!(
        (document["diff"].as_str(), &document["findings"]),
        (Some(""), &json!([]))
    );
    before.is_still(&Snapshot::take([&setup.root()]));
    assert_eq!(setup.show()["status"], "BUILT");
    // It is told of each attempt that failed what was found.
    let stdout = setup.run(["skill", "show", "count_lines"]).ok().stdout;
    assert!(
        stdout.contains(
            "  GATE_VIOLATION\n    forge-scope-missing tests/test_skill_count_lines.py: "
        ),
        "{stdout}"
    );
    // What is too large is told as that.
    write(TEST_PATH, &"#".repeat(300 << 10));
    let large = setup.document(&setup.build("as-is").arg("--json").run().exits(1));
    let why = large["findings"][0]["subject"].as_str().unwrap();
    assert!(
        codes(&large) == ["forge-build-copy-back"] && why.contains("has more than the 256 KiB"),
        "{why}"
    );
    // What looks like a secret does not come into the copy, and it is said why the file is missing there.
    let token = ["ghp_", "0123456789abcdefghijABCDEFGHIJ012345"].concat();
    write(TEST_PATH, &format!("{TEST}# {token}\n"));
    let secret = setup.document(&setup.build("as-is").arg("--json").run().exits(1));
    assert_eq!(
        codes(&secret),
        ["forge-scope-missing", "forge-build-copy-back"]
    );
    let why = secret["findings"][1]["subject"].as_str().unwrap();
    assert!(
        why.contains("was left out of the copy, because it") && why.contains("secret"),
        "{why}"
    );
}

#[test]
fn build_answer_with_a_secret_is_refused() {
    let token = ["ghp_", "0123456789abcdefghijABCDEFGHIJ012345"].concat();
    let skill = SKILL.replace(
        "class CountLines",
        &format!("KEY = \"{token}\"\n\n\nclass CountLines"),
    );
    let server = FakeApi::start([Reply::Answer(answer(&[
        (SKILL_PATH, &skill),
        (TEST_PATH, TEST),
    ]))]);
    let setup = Setup::at(Fixture::with(&server));
    let before = Snapshot::take([&setup.root()]);
    let document = setup.document(&setup.build("whole-file").arg("--json").run().exits(8));
    assert_eq!(codes(&document), ["forge-scope-secret"]);
    assert!(
        !document.to_string().contains(&token) && !setup.kept(&document["log"]).contains(&token)
    );
    before.is_still(&Snapshot::take([&setup.root()]));
}

#[test]
fn answer_without_both_files_fails_the_build() {
    let table = [
        (
            answer(&[(SKILL_PATH, SKILL)]),
            "forge-scope-missing",
            "GATE_VIOLATION",
        ),
        (
            answer(&[
                (SKILL_PATH, SKILL),
                (TEST_PATH, TEST),
                ("conftest.py", "x = 1\n"),
            ]),
            "forge-scope-outside",
            "GATE_VIOLATION",
        ),
        (
            "I cannot do that.".to_owned(),
            "forge-agent-answer",
            "BUILD_ERROR",
        ),
        (
            answer(&[("../evil.py", "x = 1\n"), (TEST_PATH, TEST)]),
            "forge-agent-answer",
            "BUILD_ERROR",
        ),
    ];
    for (text, code, kind) in table {
        let server = FakeApi::start([Reply::Answer(text.clone())]);
        let setup = Setup::at(Fixture::with(&server));
        let before = Snapshot::take([&setup.root()]);
        let document = setup.document(&setup.build("whole-file").arg("--json").run().exits(1));
        assert!(codes(&document).contains(&code), "{text}: {document:#}");
        assert_eq!(document["failure"], kind, "{text}");
        before.is_still(&Snapshot::take([&setup.root()]));
    }
    let server = FakeApi::start([Reply::Status(500)]);
    let setup = Setup::at(Fixture::with(&server));
    setup.build("whole-file").run().exits(70);
    assert_eq!(
        setup.show()["builds"][0]["failure"]["findings"][0]["code"],
        "forge-build-not-asked"
    );
}

#[test]
fn next_packet_has_findings_third_failure_needs_review() {
    let setup = Setup::new();
    setup.script("touch elsewhere", "");
    let first = setup.document(&setup.build("command").arg("--json").run().exits(1));
    let second = setup.document(&setup.build("command").arg("--json").run().exits(1));
    let (one, two) = (setup.kept(&first["packet"]), setup.kept(&second["packet"]));
    assert!(!one.contains("What went wrong before"), "{one}");
    assert!(
        two.contains("This is attempt 2.") && two.contains("forge-scope-outside"),
        "{two}"
    );
    assert!(!two.contains("held back"));
    setup.build("command").run().exits(1);
    let refused = setup.build("command").run().exits(1);
    assert!(
        refused.stderr.contains("--reviewed-by WHO"),
        "{}",
        refused.stderr
    );
    assert_eq!(setup.show()["counts"]["builds"], 3);
    setup.script(WRITE_BOTH, "");
    setup
        .build("command")
        .args([
            "--reviewed-by",
            "Operator",
            "--reason",
            "The command was wrong.",
        ])
        .run()
        .ok();
    let builds = setup.show();
    assert_eq!(builds["counts"]["builds"], 4);
    assert_eq!(
        builds["builds"][3]["parent"], builds["builds"][2]["id"],
        "{builds:#}"
    );
}

/// Starts a build whose agent works for ever, and waits until it does.
fn at_work(setup: &Setup) -> Child {
    setup.script("sleep 600", "");
    let mut command = setup.build("command").command();
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(
        lines
            .map_while(Result::ok)
            .any(|line| line.contains("works on the copy"))
    );
    child
}

#[test]
fn concurrent_build_is_refused_and_killed_one_recorded() {
    for (signal, code) in [(Signal::SIGINT, Some(130)), (Signal::SIGKILL, None)] {
        let setup = Setup::new();
        let before = Snapshot::take([&setup.root()]);
        let mut first = at_work(&setup);
        setup.build("command").run().exits(9);
        kill(Pid::from_raw(i32::try_from(first.id()).unwrap()), signal).unwrap();
        assert_eq!(first.wait().unwrap().code(), code);
        before.is_still(&Snapshot::take([&setup.root()]));
        if signal == Signal::SIGINT {
            assert_eq!(setup.show()["builds"][0]["status"], "ABORTED");
        }
        setup.script(WRITE_BOTH, "");
        setup.build("command").run().ok();
        let story = setup.show();
        let messages: Vec<&str> = story["builds"]
            .as_array()
            .unwrap()
            .iter()
            .map(|build| build["status"].as_str().unwrap())
            .collect();
        assert_eq!(messages, ["ABORTED", "SUCCEEDED"]);
        setup.run(["ledger", "verify"]).ok();
    }
}

/// Ends a build as soon as its first file is in the project, and a little later each time.
#[test]
fn killed_build_is_settled_by_next_step() {
    let mut messages = Vec::new();
    for round in 0..8_u64 {
        let setup = Setup::new();
        setup.script(WRITE_BOTH, "");
        let mut command = setup.build("command").command();
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let place = setup.root().join(SKILL_PATH);
        while !place.exists() && child.try_wait().unwrap().is_none() {}
        std::thread::sleep(std::time::Duration::from_micros(400 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        // Which step comes next does not matter: each settles first what was left.
        match round % 3 {
            0 => setup.run(["skill", "research", "count_lines"]).exits(2),
            1 => setup.run(["skill", "verify", "count_lines"]),
            _ => setup.run([
                "skill",
                "promote",
                "count_lines",
                "--by",
                "Ada Example",
                "--reason",
                "Looked.",
            ]),
        };
        let story = setup.show();
        let status = story["builds"][0]["status"].as_str().unwrap().to_owned();
        let current_options = [SKILL_PATH, TEST_PATH].map(|path| setup.read(path));
        let expected = match status.as_str() {
            "SUCCEEDED" => [
                Some("SKILL = 1\n".to_owned()),
                Some("TEST = 1\n".to_owned()),
            ],
            "ABORTED" => [None, None],
            other => panic!("{other} after round {round}: {story:#}"),
        };
        assert_eq!(current_options, expected, "round {round}: {status}");
        assert_eq!(
            story["status"],
            if status == "SUCCEEDED" {
                "BUILT"
            } else {
                "PROPOSED"
            }
        );
        setup.run(["ledger", "verify"]).ok();
        setup.build("command").run();
        messages.push(status);
    }
    assert!(
        messages.iter().any(|status| status == "SUCCEEDED"),
        "{messages:?}"
    );
}

#[test]
fn model_answer_is_recorded_replayed_and_priced() {
    let both = answer(&[(SKILL_PATH, SKILL), (TEST_PATH, TEST)]);
    let server = FakeApi::start([Reply::Answer(both)]);
    let setup = Setup::at(Fixture::with(&server));
    let record = setup.fixture.path("calls.jsonl");
    // Nobody is asked where the recording would be of no use, or lies in the way.
    setup
        .build("command")
        .arg("--record")
        .arg(&record)
        .run()
        .exits(2);
    setup
        .build("whole-file")
        .arg("--cassette")
        .arg(&record)
        .run()
        .exits(2);
    setup
        .build("whole-file")
        .arg("--record")
        .arg(setup.fixture.path("io.json"))
        .run()
        .exits(2);
    assert_eq!(server.completions().len(), 0);
    let price = "input = 1.0\noutput = 1.0\ndate = \"2026-01-31\"\nsource = \"made up\"\n";
    setup
        .fixture
        .user_config(&format!("[llm.prices.\"gateway/gpt-oss*\"]\n{price}"));
    let built = setup.document(
        &setup
            .build("whole-file")
            .arg("--record")
            .arg(&record)
            .arg("--json")
            .run()
            .ok(),
    );
    assert!(built["measured"]["tokens_output"].is_u64(), "{built:#}");
    assert!(
        built["measured"]["cost_micro_dollars"].is_u64(),
        "{built:#}"
    );
    let (input, output) = (
        &built["measured"]["tokens_input"],
        &built["measured"]["tokens_output"],
    );

    let other = Setup::new();
    let replay = other
        .build("whole-file")
        .args(["--provider", "replay"])
        .arg("--cassette")
        .arg(&record);
    let replayed = other.document(&replay.arg("--json").run().ok());
    assert_eq!(replayed["skill_digest"], built["skill_digest"]);
    assert!(
        replayed["measured"].get("cost_micro_dollars").is_none(),
        "{replayed:#}"
    );
    assert_eq!(server.completions().len(), 1);

    // For people, too: on a project where the same answer was paid for again, and on one where nobody knows.
    let server = FakeApi::start([Reply::Answer(answer(&[
        (SKILL_PATH, SKILL),
        (TEST_PATH, TEST),
    ]))]);
    let paid = Setup::at(Fixture::with(&server));
    paid.fixture
        .user_config(&format!("[llm.prices.\"gateway/gpt-oss*\"]\n{price}"));
    let stdout = paid.build("whole-file").run().ok().stdout;
    assert!(
        stdout.contains(&format!("took tokens: {input} in, {output} out; $")),
        "{stdout}"
    );
    let second_setup = Setup::new();
    let replay = second_setup
        .build("whole-file")
        .args(["--provider", "replay"])
        .arg("--cassette")
        .arg(&record);
    let stdout = replay.run().ok().stdout;
    assert!(stdout.contains(" out; cost unknown\n"), "{stdout}");
}

#[test]
fn truncated_or_fileless_answer_is_reported_unquoted() {
    let both = answer(&[(SKILL_PATH, SKILL), (TEST_PATH, TEST)]);
    let half = format!("{SKILL_PATH}\n```python\n# words of the half that came\n");
    let bare = "```python\nx = 1\n```\n\n```python\ny = 2\n```\n".to_owned();
    let replies = [
        Reply::CutAnswer(half.clone()),
        Reply::Answer(bare),
        Reply::Answer(both),
    ];
    let server = FakeApi::start(replies);
    let setup = Setup::at(Fixture::with(&server));

    let cut = setup.document(&setup.build("whole-file").arg("--json").run().exits(1));
    assert_eq!(codes(&cut), ["forge-agent-cut"], "{cut:#}");
    assert!(
        setup
            .kept(&cut["log"])
            .contains("words of the half that came")
    );

    let unnamed = setup.document(&setup.build("whole-file").arg("--json").run().exits(1));
    let packet = setup.kept(&unnamed["packet"]);
    assert!(
        packet.contains(&format!("after {} bytes", half.len())) && packet.contains("cut off"),
        "{packet}"
    );
    assert!(!packet.contains("words of the half that came"), "{packet}");
    assert_eq!(codes(&unnamed), ["forge-agent-answer"], "{unnamed:#}");

    let built = setup.document(&setup.build("whole-file").arg("--json").run().ok());
    let packet = setup.kept(&built["packet"]);
    let form = "its path alone on the line above the block";
    assert!(
        packet.matches(form).count() == 2 && !packet.contains("FILE:"),
        "{packet}"
    );
}
