//! Coding agents: real ones and scripted ones, from a goal to a commit, and what becomes of their bad ends.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crucible_testkit::{FakeApi, Reply, TestRepo, python_agents_dir, real_clients_dir};
use serde_json::{Value, json};

use crate::support::{Call, Fixture, Ran, holding, id_of, right, small, snapshot};

/// The user's key, which is found nowhere but at the provider.
const CANARY: &str = "canary-of-the-user-0123456789";
/// What a tool call runs to correct the repository.
const FIX: &str = "sed -i 's/return width + height/return width * height/' src/area.py";

/// Asks the endpoint for a chat completion, in the shell of a scripted agent.
const ASK: &str = r#"
ask() { python3 - "$1" <<'PY'
import os, sys, urllib.request, urllib.error
req = urllib.request.Request(os.environ["BASE"] + "/v1/chat/completions", data=sys.argv[1].encode(),
    headers={"Authorization": "Bearer " + os.environ["TOKEN"], "Content-Type": "application/json"})
try:
    answer = urllib.request.urlopen(req)
    answer.read()
    print(answer.status)
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())
PY
}
fix() { sed -i 's/return width + height/return width * height/' src/area.py; }
"#;

/// A small question.
const QUESTION: &str =
    r#"{"model": "m", "max_tokens": 10, "messages": [{"role": "user", "content": "hello"}]}"#;

/// A repository, a fixture, and a server that plays the provider.
pub(crate) struct Setup {
    pub(crate) repo: TestRepo,
    pub(crate) fixture: Fixture,
    pub(crate) api: FakeApi,
    agent: &'static str,
}

impl Setup {
    /// A setup of a scripted agent; `settings` are more lines of the user's configuration.
    fn scripted(lines: &str, settings: &str) -> Self {
        let api = FakeApi::start([Reply::Answer("fine".to_owned())]);
        Self::with_server(api, lines, settings)
    }

    /// The same with another provider.
    pub(crate) fn with_server(api: FakeApi, lines: &str, settings: &str) -> Self {
        let fixture = Fixture::new();
        let path = fixture.path("script-agent");
        fs::write(&path, format!("#!/bin/sh\n{ASK}\n{lines}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        fixture.user_config(&format!(
            "[llm.openai]\nbase_url = \"{}\"\napi_key_env = \"CANARY\"\n\
             [agents.script]\nprogram = {path:?}\nprovider = \"openai\"\nmodel = \"m\"\nwire = \"openai\"\n\
             env = {{ BASE = \"{{endpoint}}\", TOKEN = \"{{token}}\" }}\n{settings}\n",
            api.base_url()
        ));
        Self {
            repo: small().build(),
            fixture,
            api,
            agent: "script",
        }
    }

    fn start(&self) -> Ran {
        self.call().run()
    }

    /// The call that starts a run.
    pub(crate) fn call(&self) -> Call {
        let call = self.fixture.start_call(self.repo.path());
        self.agents(call.args(["--agent", self.agent]))
    }

    /// A call that finds the agents and the provider's key.
    pub(crate) fn agents(&self, call: Call) -> Call {
        let path = std::env::var("PATH").unwrap();
        let (clients, python) = (real_clients_dir(), python_agents_dir());
        let path = format!("{}:{}:{path}", clients.display(), python.display());
        // The fixture has another home, and Python may be below the real one.
        let pyenv = PathBuf::from(std::env::var("HOME").unwrap()).join(".pyenv");
        call.env("PYENV_ROOT", pyenv)
            .env("PATH", path)
            .env("CANARY", CANARY)
    }

    pub(crate) fn run_dir(&self) -> PathBuf {
        self.fixture.runs().pop().unwrap()
    }
}

/// Checks that the change lands, that a replay is the same, and that the key is found nowhere.
#[track_caller]
fn lands(setup: &Setup) {
    let ended = setup.start().ok().json();
    assert_eq!(ended["state"], "verified", "{ended:#}");
    let id = id_of(&ended);
    let replayed = setup
        .fixture
        .run(["run", "replay", &id, "--json"])
        .ok()
        .json();
    assert_eq!(
        (&replayed["state"], &replayed["different"]),
        (&json!("verified"), &json!([]))
    );
    setup.fixture.run(["run", "land", &id, "--json"]).ok();
    assert_eq!(
        fs::read_to_string(setup.repo.path().join("src/area.py")).unwrap(),
        right()
    );
    assert_eq!(
        setup.repo.git(["diff", "--name-status", "HEAD^", "HEAD"]),
        "M\tsrc/area.py"
    );
    for root in [
        setup.fixture.data(),
        setup.fixture.home(),
        setup.repo.path().to_owned(),
    ] {
        assert_eq!(holding(&root, CANARY), [""; 0].map(PathBuf::from));
    }
    let seen_requests = setup.api.completions();
    assert!(!seen_requests.is_empty());
    assert!(
        seen_requests
            .iter()
            .all(|request| request.key() == Some(CANARY))
    );
}

#[test]
fn claude_lands_a_change() {
    let api = FakeApi::answering(|request| {
        let tools = request.body["tools"].as_array().map_or(0, Vec::len);
        match tools > 0 && !request.raw.contains("tool_result") {
            true => Reply::ToolCall(
                "Bash".to_owned(),
                json!({"command": FIX, "description": "fix"}),
            ),
            false => Reply::Answer("done".to_owned()),
        }
    });
    let (fixture, agent) = (Fixture::new(), "claude");
    fixture.user_config(&format!(
        "[llm.anthropic]\nbase_url = \"{}\"\napi_key_env = \"CANARY\"\n",
        api.origin()
    ));
    // Its hook would run at the start of a session.
    let hook = r#"{"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "touch src/hooked"}]}]}}"#;
    let repo = small().files([(".claude/settings.json", hook)]).build();
    lands(&Setup {
        repo,
        fixture,
        api,
        agent,
    });
}

#[test]
fn scripted_agent_lands_only_its_tree() {
    let lines = format!(
        "[ -z \"$CANARY\" ] && [ \"$(git rev-list --count HEAD)\" = 1 ] || exit 5\n\
         ask '{QUESTION}' && fix && git config core.hooksPath /tmp && git commit -qam mine\n\
         mkdir -p .git/hooks && echo 'exit 1' > .git/hooks/pre-commit\n\
         echo built > out.log\n"
    );
    let ignoring = small().files([(".gitignore", "*.log\n")]).build();
    let setup = Setup {
        repo: ignoring,
        ..Setup::scripted(&lines, "")
    };
    lands(&setup);
    assert!(!setup.repo.path().join("out.log").exists());
}

#[test]
fn statement_names_the_agent_and_its_models() {
    let setup = Setup::scripted(&format!("ask '{QUESTION}' && fix\n"), "");
    setup.fixture.run(["attest", "init"]).ok();
    lands(&setup);
    let note = setup.repo.git(["notes", "--ref=crucible", "show", "HEAD"]);
    let payload = crucible_attest::payload_of(note.as_bytes()).unwrap();
    let statement: Value = serde_json::from_slice(&payload).unwrap();
    let change = &statement["predicate"];
    assert_eq!(change["agents"], json!(["script"]));
    let calls = change["calls"].as_array().unwrap();
    let models: Vec<_> = calls
        .iter()
        .map(|call| (&call["provider"], &call["model"]))
        .collect();
    assert_eq!(models, [(&json!("openai"), &json!("m"))]);
    assert!(calls[0]["record"].is_string(), "{calls:?}");
}

#[test]
fn agent_cannot_find_the_key() {
    let (first, second) = CANARY.split_at(10);
    // The command that searches has the key neither in its arguments nor in its environment.
    let search = format!(
        "printf %s '{first}' '{second}' | grep -raqsf - /proc/[0-9]*/environ /proc/[0-9]*/cmdline \
         /proc/[0-9]*/task/*/environ \"$HOME\" /tmp . && exit 6\n"
    );
    let asks = format!("ask '{QUESTION}' && fix\n");
    lands(&Setup::scripted(&format!("{search}{asks}"), ""));
    // The same search finds a key that is there.
    let planted = format!("printf %s '{first}' '{second}' > \"$HOME/key\"\n{search}{asks}");
    let ended = Setup::scripted(&planted, "").start().exits(70);
    assert!(ended.stderr.contains("code 6"), "{}", ended.stderr);
}

#[test]
fn refused_attempt_is_repaired_in_a_further_turn() {
    let lines = format!(
        "ask '{QUESTION}'\nif grep -q 'width - height' src/area.py; then \
         sed -i 's/width - height/width * height/' src/area.py; else \
         sed -i 's/return width + height/return width - height/' src/area.py; fi\n"
    );
    let setup = Setup::scripted(&lines, "");
    lands(&setup);
    assert_eq!(
        setup.fixture.status()["attempts"][0]["end"],
        "verify_failed"
    );
}

#[test]
fn declining_agent_ends_run_without_an_attempt() {
    let lines =
        "printf 'CANNOT: no such thing\\nCONFLICT: tests/area_test.sh\\n' > CRUCIBLE_CANNOT.md";
    let setup = Setup::scripted(lines, "");
    let before = snapshot(&setup.repo, &setup.fixture);
    let ended = setup.start().exits(1).json();
    before.is_still(&snapshot(&setup.repo, &setup.fixture));
    assert_eq!(
        (&ended["state"], &ended["attempts"]),
        (&json!("declined"), &json!([]))
    );
    let failure = &ended["failure"];
    assert_eq!(failure["code"], "run-declined");
    assert!(
        failure["hint"]
            .as_str()
            .unwrap()
            .contains("tests/area_test.sh"),
        "{failure}"
    );
    let replayed = setup
        .fixture
        .run(["run", "replay", &id_of(&ended), "--json"])
        .ok()
        .json();
    assert_eq!(
        (&replayed["state"], &replayed["different"]),
        (&json!("declined"), &json!([]))
    );
    setup
        .fixture
        .run(["run", "land", &id_of(&ended), "--json"])
        .exits(1);
}

#[test]
fn bad_ends_change_nothing_and_say_why() {
    let cases: [(&str, &str, i32, &str); 7] = [
        (
            "sleep 100",
            "[run]\nagent_timeout_s = 2",
            10,
            "run.agent_timeout_s",
        ),
        ("cat /dev/zero | tr '\\0' x", "", 70, "printing"),
        ("exit 3", "", 70, "code 3"),
        (
            "rm -rf src tests check.sh .git",
            "",
            1,
            "run-out-of-attempts",
        ),
        (
            "ln -s /etc/passwd src/area.txt; fix",
            "",
            1,
            "run-out-of-attempts",
        ),
        (
            "fix; echo >> tests/area_test.sh",
            "",
            1,
            "run-out-of-attempts",
        ),
        ("true", "", 1, "answer-empty"),
    ];
    for (lines, settings, code, told) in cases {
        let settings = if settings.is_empty() {
            "[run]\nmax_iterations = 1\nmax_malformed = 0"
        } else {
            settings
        };
        let setup = Setup::scripted(lines, settings);
        let before = snapshot(&setup.repo, &setup.fixture);
        let ended = setup.start();
        before.is_still(&snapshot(&setup.repo, &setup.fixture));
        let message = format!("{}{}", ended.stdout, ended.stderr);
        assert!(
            ended.code == Some(code) && message.contains(told),
            "{lines}: {:?} {message}",
            ended.code
        );
    }
}

#[test]
fn budget_and_prices_bind_every_request() {
    // Eight at once, of which the budget carries three: the turn itself counts as a call.
    let lines = format!(
        "for n in 1 2 3 4 5 6 7 8; do ask '{QUESTION}' > /tmp/home-$n & done; wait\n\
         cat /tmp/home-* | grep -c '^200' > answered; cat /tmp/home-*; fix; rm answered\n"
    );
    let setup = Setup::scripted(&lines, "[llm.budget]\ncalls = 4");
    assert_eq!(setup.start().ok().json()["state"], "verified");
    assert_eq!(setup.api.completions().len(), 3);
    let log = fs::read_to_string(setup.run_dir().join("logs/agents/001.stdout.log")).unwrap();
    assert_eq!(log.matches("insufficient_quota").count(), 10, "{log}");
    let lines = format!("ask '{QUESTION}'; fix");
    let setup = Setup::scripted(&lines, "[llm.budget]\ndollars = 1.0");
    assert_eq!(setup.start().ok().json()["state"], "verified");
    assert!(
        setup.api.completions().is_empty(),
        "an unpriced model was asked"
    );
}

#[test]
fn nothing_but_the_endpoint_is_reached() {
    let other = FakeApi::start([Reply::Answer("leaked".to_owned())]);
    let lines = format!(
        "python3 -c 'import urllib.request; urllib.request.urlopen(\"{}/models\", timeout=3)' && exit 9\n\
         ask '{QUESTION}' | grep -q '^200' || exit 8\nfix\n",
        other.base_url()
    );
    lands(&Setup::scripted(&lines, ""));
    assert!(other.requests().is_empty());
}

#[test]
fn secret_in_a_request_is_not_sent() {
    let token = crucible_testkit::made_up_token();
    let lines = format!(
        "ask '{{\"model\": \"m\", \"messages\": [{{\"role\": \"user\", \"content\": \"{token}\"}}]}}'; fix"
    );
    let setup = Setup::scripted(&lines, "");
    assert_eq!(setup.start().ok().json()["state"], "verified");
    assert!(setup.api.completions().is_empty());
}

#[test]
fn agents_are_listed_with_their_tested_versions() {
    let fixture = Fixture::new();
    let listed = fixture.run(["agents", "--json"]).ok().json();
    let names: Vec<&Value> = listed["agents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|agent| &agent["name"])
        .collect();
    assert_eq!(
        names,
        [
            "claude",
            "codex",
            "gemini",
            "opencode",
            "qwen",
            "aider",
            "mini-swe-agent"
        ]
    );
    fixture
        .run(["run", "start", "x", "--agent", "nobody"])
        .exits(2);
}

/// Every built-in agent that is installed here: what it sees, reaches and spends.
mod slow {
    use std::net::TcpListener;

    use crucible_testkit::{FakeApi, Reply, SeenRequest};
    use serde_json::{Value, json};

    use super::{CANARY, FIX, QUESTION, Setup, lands};
    use crate::support::{Fixture, small};

    /// Corrects the repository, searches for the key, and tries to reach another port of this machine. What it prints
    /// is in the agent's next request.
    fn probe(port: u16) -> String {
        let (first, second) = CANARY.split_at(10);
        format!(
            "{FIX}; printf %s '{first}' '{second}' | grep -raqsf - /proc/[0-9]*/environ /proc/[0-9]*/cmdline \"$HOME\" \
             /tmp . && echo key-''seen || echo key-''hidden; \
             python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}), 2)' 2>/dev/null \
             && echo host-''reached || echo host-''hidden"
        )
    }

    /// The name and the arguments of the tool by which this request's model runs a command, unless one has run.
    fn tool_call(request: &SeenRequest, command: &str) -> Option<(String, Value)> {
        if request.raw.contains("key-hidden") || request.raw.contains("key-seen") {
            return None;
        }
        let tools = request.body["tools"].to_string();
        [
            ("exec_command", json!({ "cmd": command })),
            ("shell_command", json!({ "command": command })),
            (
                "run_shell_command",
                json!({ "command": command, "description": "fix", "is_background": false }),
            ),
            ("shell", json!({ "command": ["sh", "-c", command] })),
            ("Bash", json!({ "command": command, "description": "fix" })),
            ("bash", json!({ "command": command, "description": "fix" })),
        ]
        .into_iter()
        .find(|(name, _)| tools.contains(&format!("\"name\":\"{name}\"")))
        .map(|(name, arguments)| (name.to_owned(), arguments))
    }

    /// An agent whose model runs this command once and then says `end`, as a tool call where the agent has a tool for it.
    fn setup(agent: &'static str, settings: &str, command: String) -> Setup {
        // mini-swe-agent ends when a command prints this line first.
        let end = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT";
        let api = FakeApi::answering(move |request| {
            let call = tool_call(request, &command);
            match (call, agent) {
                (Some((name, arguments)), _) => Reply::ToolCall(name, arguments),
                (None, "mini-swe-agent") => {
                    Reply::ToolCall("bash".to_owned(), json!({ "command": end }))
                }
                (None, _) => Reply::Answer("done".to_owned()),
            }
        });
        let (fixture, repo) = (Fixture::new(), small().build());
        let provider = match agent {
            "claude" => format!("[llm.anthropic]\nbase_url = \"{}\"", api.origin()),
            _ => format!("[llm.openai]\nbase_url = \"{}\"", api.base_url()),
        };
        let gemini = match agent {
            "gemini" => "[agents.gemini]\nprovider = \"openai\"\n",
            _ => "",
        };
        fixture.user_config(&format!(
            "{provider}\napi_key_env = \"CANARY\"\n{gemini}{settings}"
        ));
        Setup {
            repo,
            fixture,
            api,
            agent,
        }
    }

    /// The change lands and replays, the key and another port are out of reach, and the budget binds.
    fn is_contained(agent: &'static str) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let command = probe(listener.local_addr().unwrap().port());
        let landed = setup(agent, "", command.clone());
        lands(&landed);
        let seen_requests = landed.api.completions();
        let printed = |words: &str| {
            seen_requests
                .iter()
                .any(|request| request.raw.contains(words))
        };
        assert!(
            printed("key-hidden") && printed("host-hidden"),
            "the command did not run"
        );
        assert!(!printed("key-seen") && !printed("host-reached"));
        assert!(listener.accept().is_err(), "the port was reached");

        // The turn itself is a call, so one request is left.
        let bound = setup(agent, "[llm.budget]\ncalls = 2\n", command);
        let ended = bound.start();
        let spent = bound.api.completions().len();
        assert!(spent <= 1, "{spent} requests: {}", ended.stderr);
    }

    /// It takes the time that such an agent has, 15 s.
    #[test]
    fn agent_stopped_without_budget_keeps_its_streams() {
        let lines = format!("while true; do ask '{QUESTION}'; sleep 0.2; done");
        let setup = Setup::scripted(&lines, "[llm.budget]\ncalls = 2");
        let ended = setup.start();
        assert!(ended.stderr.contains("kept asking"), "{}", ended.stderr);
        let log = setup.run_dir().join("logs/agents/001.stopped.stdout.log");
        let log = std::fs::read_to_string(log).unwrap();
        assert!(log.starts_with("200\n"), "{log}");
        assert!(log.contains("insufficient_quota"), "{log}");
    }

    #[test]
    fn progress_shows_how_many_files_changed() {
        let setup = Setup::scripted(
            &format!("fix; touch new; sleep 4; rm new; ask '{QUESTION}'"),
            "",
        );
        let ended = setup.start().ok();
        let line = ended
            .stderr
            .lines()
            .find(|line| line.contains("2 files changed"));
        assert!(
            line.is_some_and(|line| line.contains("attempt 1")),
            "{}",
            ended.stderr
        );
    }

    #[test]
    fn claude_is_contained() {
        is_contained("claude");
    }

    #[test]
    fn codex_is_contained() {
        is_contained("codex");
    }

    #[test]
    fn gemini_is_contained() {
        is_contained("gemini");
    }

    #[test]
    fn opencode_is_contained() {
        is_contained("opencode");
    }

    #[test]
    fn qwen_is_contained() {
        is_contained("qwen");
    }

    /// Its packages are installed only for the full suite.
    mod exhaustive {
        #[test]
        fn mini_swe_agent_is_contained() {
            super::is_contained("mini-swe-agent");
        }
    }
}
