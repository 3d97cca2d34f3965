//! The setups of docs/mcp.md, with the vendors' real programs, and the official inspector.

use std::fs;
use std::process::Command;

use crucible_testkit::{FakeApi, Reply, real_client, real_clients_dir};
use serde_json::Value;

use crate::support::{Fixture, small};

/// The page whose commands are executed.
const PAGE: &str = include_str!("../../../../../docs/mcp.md");

/// A fixture, a repository, and the program on a `PATH` beside the clients.
struct Setup {
    fixture: Fixture,
    repo: crucible_testkit::TestRepo,
}

impl Setup {
    fn new() -> Self {
        let (fixture, repo) = (Fixture::new(), small().build());
        fs::create_dir(fixture.path("bin")).unwrap();
        let program = env!("CARGO_BIN_EXE_crucible");
        std::os::unix::fs::symlink(program, fixture.path("bin/crucible")).unwrap();
        Self { fixture, repo }
    }

    /// A client with these words, in the repository.
    fn command(&self, program: &str, words: &[&str]) -> Command {
        let path = std::env::var("PATH").unwrap();
        let own = self.fixture.path("bin");
        let path = format!("{}:{}:{path}", own.display(), real_clients_dir().display());
        let fixture = self.fixture.call([""; 0]).command();
        let mut client = Command::new(real_client(program));
        client.env_clear();
        for (name, value) in fixture.get_envs() {
            client.env(name, value.unwrap_or_default());
        }
        client
            .args(words)
            .env("PATH", path)
            .env("GEMINI_CLI_TRUST_WORKSPACE", "true")
            .current_dir(self.repo.path());
        client
    }

    /// Runs a line of the page, and returns what it printed.
    #[track_caller]
    fn line(&self, line: &str) -> String {
        assert!(
            PAGE.contains(&format!("\n    {line}\n")),
            "{line} is not in the page"
        );
        let words: Vec<_> = line.split(' ').collect();
        let output = self.command(words[0], &words[1..]).output().unwrap();
        let stderr = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        assert!(output.status.success(), "{line}: {stderr:?}");
        stderr.concat()
    }
}

#[test]
fn claude_connects_to_the_server() {
    let setup = Setup::new();
    setup.line("claude mcp add --scope user crucible -- crucible mcp");
    let listed = setup.line("claude mcp list");
    let line = listed
        .lines()
        .find(|line| line.starts_with("crucible:"))
        .unwrap();
    assert!(
        line.contains("crucible mcp") && line.contains("Connected"),
        "{listed}"
    );
}

#[test]
fn gemini_connects_to_the_server() {
    let setup = Setup::new();
    setup.line("gemini mcp add --scope user crucible crucible mcp");
    let listed = setup.line("gemini mcp list");
    let line = listed
        .lines()
        .find(|line| line.contains("crucible mcp"))
        .unwrap();
    assert!(line.contains("Connected"), "{listed}");
}

#[test]
fn codex_offers_the_tools_to_its_model() {
    let setup = Setup::new();
    setup.line("codex mcp add crucible -- crucible mcp");
    let listed = setup.line("codex mcp list");
    assert!(listed.contains("crucible"), "{listed}");
    let api = FakeApi::start([Reply::Answer("fine".to_owned())]);
    let config = setup.fixture.home().join(".codex/config.toml");
    let servers = fs::read_to_string(&config).unwrap();
    let provider = format!(
        "model = \"m\"\nmodel_provider = \"fake\"\n{servers}\n[model_providers.fake]\nname = \"fake\"\n\
         base_url = \"{}\"\nwire_api = \"responses\"\nenv_key = \"KEY\"\n",
        api.base_url()
    );
    fs::write(&config, provider).unwrap();
    let words = ["exec", "--skip-git-repo-check", "list the runs"];
    let output = setup
        .command("codex", &words)
        .env("KEY", "x")
        .output()
        .unwrap();
    let seen_requests = api.completions();
    let stderr = String::from_utf8_lossy(&output.stderr);
    let first = &seen_requests
        .first()
        .unwrap_or_else(|| panic!("{stderr}"))
        .raw;
    for tool in ["check_patch", "submit_proposal", "list_runs"] {
        assert!(first.contains(tool), "{tool} in {first}\n{stderr}");
    }
}

#[test]
fn inspector_lists_and_calls_tools() {
    let setup = Setup::new();
    let inspect = |words: &[&str]| -> Value {
        let all = [&["--cli", "crucible", "mcp"], words].concat();
        let output = setup.command("mcp-inspector", &all).output().unwrap();
        let stdout = String::from_utf8(output.stdout).unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        serde_json::from_str(&stdout).unwrap_or_else(|_| panic!("{stdout}\n{errors}"))
    };
    let listed = inspect(&["--method", "tools/list"]);
    assert_eq!(listed["tools"].as_array().unwrap().len(), 7, "{listed:#}");
    let called = inspect(&["--method", "tools/call", "--tool-name", "list_runs"]);
    let text = called["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("crucible-run-list-v1"), "{text}");
}
