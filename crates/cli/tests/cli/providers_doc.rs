//! `docs/providers.md` does what it says: every snippet in it is run as it stands, section by section.
//!
//! A section's configuration is written to the file that its first line names, and its commands are run by a shell with
//! the real program, the real client programs and a small repository. The keys are the document's own; the addresses are
//! replaced by a server on loopback, through the variables that users have for that.
//!
//! What always holds: a snippet that no rule covers fails, and so does a section without a test and a provider without a
//! section.

use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crucible_llm::{ProviderClass, ProviderKind, provider, registry};
use crucible_testkit::{FakeApi, Reply, SeenRequest, TestRepo, real_client};
use serde_json::{Value, json};

use crate::support::{Fixture, GOAL, good_answer, small};

const PAGE: &str = include_str!("../../../../docs/providers.md");

/// What the document has in place of a key.
const KEY: &str = "your-key";

/// The answer that mends the small repository, in the form in which large models are asked.
const GOOD_EDIT: &str = "FILE: src/area.py\n<<<<<<< SEARCH\n    return width + height\n=======\n    return width * height\n\
                         >>>>>>> REPLACE\n";

/// Each section with snippets, and the test that runs them.
macro_rules! sections {
    (exhaustive { $($rare:ident: $rare_title:literal => $rare_body:expr;)* } $($test:ident: $title:literal => $body:expr;)*) => {
        const TESTED: &[&str] = &[$($title,)* $($rare_title),*];
        $(
            #[test]
            fn $test() {
                let body: fn(Section<'_>) = $body;
                body(section($title));
            }
        )*
        mod exhaustive {
            use super::*;

            $(
                #[test]
                fn $rare() {
                    let body: fn(Section<'_>) = $rare_body;
                    body(section($rare_title));
                }
            )*
        }
    };
}

sections! {
    exhaustive {
        phases: "A model for each phase" => |section| {
            let replies = ["I would rather not.", GOOD_EDIT].map(|answer| Reply::Answer(answer.to_owned()));
            let receipt = Stage::answering(replies).installed("gemini").run(&section).receipt();
            let asked = |call: usize| {
                let phase = &receipt["phases"][call];
                (phase["phase_id"].as_str().unwrap(), phase["llm"]["model_used"].as_str().unwrap())
            };
            assert_eq!([asked(0), asked(1)], [("patchmaker", "gemini-2.5-flash"), ("fixer", "gemini-2.5-pro")]);
        };
    }
    prompt_templates: "Prompt templates" => |section| {
        let stage = Stage::new().run(&section);
        assert_eq!(stage.receipt()["phases"][0]["llm"]["provider"], "anthropic");
    };
    claude_cli: "claude-cli" => |section| program(section, "claude");
    gemini_cli: "gemini-cli" => |section| program(section, "gemini");
    codex_cli: "codex-cli" => |section| program(section, "codex");
    anthropic: "anthropic" => |section| answered(section, Some(KEY));
    openai: "openai" => |section| answered(section, Some(KEY));
    openrouter: "openrouter" => |section| answered(section, Some(KEY));
    ollama: "ollama" => |section| answered(section, None);
    gateway: "gateway" => |section| answered(section, None);
    a_gateway_elsewhere: "gateway on another machine" => |section| {
        let stage = Stage::new().run(&section);
        assert_eq!(stage.only_question().key(), Some(KEY));
        assert_eq!(stage.receipt()["phases"][0]["llm"]["provider"], "gateway");
    };
    replay: "replay" => |section| {
        let stage = Stage::new().run(&section);
        // The second run asked nobody, and a recording names who spoke.
        assert_eq!(stage.server.completions().len(), 1);
        assert_eq!(stage.receipts().len(), 2);
    };
    choosing: "Choosing" => |section| {
        let stage = Stage::new().run(&section);
        assert_eq!(stage.receipt()["phases"][0]["llm"]["provider"], "gateway");
        assert!(stage.printed.contains("environment CRUCIBLE_LLM_PROVIDER"), "{}", stage.printed);
        // Without flag and variable it is the project's choice, and elsewhere the user's.
        assert_eq!(stage.setting("llm.provider", Where::Project)["value"], "openai");
        assert_eq!(stage.setting("llm.provider", Where::Elsewhere)["value"], "claude-cli");
    };
    fallback: "Fallback" => |section| {
        let stage = Stage::new().with("CRUCIBLE_LLM_CLAUDE_CLI_BINARY", "/not/installed").run(&section);
        let phase = &stage.receipt()["phases"][0];
        assert_eq!(phase["llm"]["provider"], "gateway");
        assert_eq!(phase["warnings"][0]["type"], "llm_fallback");
    };
    budgets: "Budgets and prices" => |section| {
        let stage = Stage::new().run(&section);
        let cost = &stage.receipt()["phases"][0]["llm"]["cost"];
        assert_eq!((&cost["basis"], &cost["price_date"]), (&json!("estimated"), &json!("2026-01-31")));
        for (limit, value) in [("calls", json!(10)), ("tokens", json!(200_000)), ("dollars", json!(1.5))] {
            assert_eq!(stage.setting(&format!("llm.budget.{limit}"), Where::Project)["value"], value);
        }
    };
    time: "Time" => |section| {
        let stage = Stage::new().run(&section);
        assert_eq!(stage.receipt()["phases"][0]["llm"]["timeout_seconds"], 900);
    };
    what_is_kept: "What is kept" => |section| {
        let stage = Stage::new().run(&section);
        for word in ["\nevidence ", "crucible-receipt-v1"] {
            assert!(stage.printed.contains(word), "{}", stage.printed);
        }
    };
}

/// A provider with its client program: the section tells how to install it, and ends in an answer.
fn program(section: Section<'_>, name: &str) {
    let ProviderClass::Program { install } = provider(section.title).unwrap().class() else {
        panic!("{} has no program", section.title)
    };
    assert!(
        section.text.contains(&format!("`{install}`")),
        "{} does not say {install}",
        section.title
    );
    // The key is sent to a server that listens at the address of the settings; a login would not have it.
    let stage = Stage::new().installed(name).run(&section);
    expect_provider(&stage, section.title, Some(KEY));
}

/// A provider over HTTP: its section ends in an answer.
fn answered(section: Section<'_>, key: Option<&str>) {
    expect_provider(&Stage::new().run(&section), section.title, key);
}

/// One run, answered with this key by the provider that the section is about, with the model that it names.
#[track_caller]
fn expect_provider(stage: &Stage, name: &str, key: Option<&str>) {
    let question = stage.only_question();
    assert_eq!(question.key(), key);
    let llm = &stage.receipt()["phases"][0]["llm"];
    assert_eq!(llm["provider"], name);
    // It is the snippet that chose the model, even where it is the default.
    let model = stage.setting(&format!("llm.{name}.model"), Where::Project);
    assert_eq!(model["source"]["kind"], "file", "{model}");
    let ready = stage.printed.lines().any(|line| {
        line.starts_with("provider ")
            && line.contains(&format!(" {name} ("))
            && (line.ends_with(", ready") || line.ends_with(", not probed"))
    });
    assert!(ready, "the doctor does not say so:\n{}", stage.printed);
}

#[test]
fn every_provider_has_section_and_test() {
    for kind in registry() {
        let name = kind.name();
        assert!(
            TESTED.contains(&name) && !section(name).blocks().is_empty(),
            "{name} has no section with a snippet"
        );
        assert_row(*kind);
    }
    for section in sections() {
        let tested = TESTED.contains(&section.title) || section.blocks().is_empty();
        assert!(tested, "nothing runs the snippets of {:?}", section.title);
        assert!(
            section.blocks().iter().all(|block| block.rule().is_some()),
            "{:?}: {:?}",
            section.title,
            section.blocks()
        );
    }
    let fences = PAGE
        .lines()
        .filter(|line| line.trim_start().starts_with("```"))
        .count();
    let blocks: usize = sections()
        .iter()
        .map(|section| section.blocks().len())
        .sum();
    assert_eq!(
        fences,
        2 * blocks,
        "a snippet stands outside of every section, or is not closed"
    );
}

/// The provider's row in the first table says what the registry says.
#[track_caller]
fn assert_row(kind: &dyn ProviderKind) {
    if matches!(kind.class(), ProviderClass::Recording) {
        return;
    }
    let capabilities = kind.capabilities();
    let [edits, form] = [
        json!(capabilities.edit_format),
        json!(capabilities.structured_output),
    ];
    let ends = format!(
        " | {} | {} |",
        edits.as_str().unwrap(),
        form.as_str().unwrap()
    );
    let starts = format!("| [`{}`]", kind.name());
    let row = PAGE
        .lines()
        .find(|line| line.starts_with(&starts))
        .unwrap_or_default();
    assert!(row.ends_with(&ends), "{row:?} should end with {ends:?}");
}

#[test]
fn every_documented_variable_and_setting_exists() {
    let document = Fixture::new().run(["config", "show", "--json"]).ok().json();
    let rows = document["settings"].as_array().unwrap();
    let known = |field: &str, name: &str| rows.iter().any(|row| row[field] == name);
    let mut named = 0;
    for code in PAGE.split('`').skip(1).step_by(2) {
        let is_variable = code.starts_with("CRUCIBLE_") && code != "CRUCIBLE_HOME";
        let is_setting = code.starts_with("llm.") && !code.contains(' ');
        let exists = match code
            .strip_prefix('[')
            .and_then(|rest| rest.split_once("] "))
        {
            Some((section, key)) => known("key", &format!("{section}.{key}")),
            None if is_variable => known("variable", code),
            None if is_setting => known("key", code),
            None => continue,
        };
        assert!(exists, "there is no {code}");
        named += 1;
    }
    assert!(named > 15, "only {named} were found");
}

#[test]
fn error_table_matches_classes_and_exit_codes() {
    let mut tried = 0;
    for row in section("When it fails")
        .text
        .lines()
        .filter(|line| line.starts_with("| `"))
    {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let (class, exit) = (cells[1].trim_matches('`'), cells[3]);
        let statuses = cells[2]
            .split_once("(HTTP ")
            .map_or("", |(_, rest)| rest.split(')').next().unwrap());
        let statuses = statuses
            .split(", ")
            .filter_map(|status| status.parse::<u16>().ok());
        for status in statuses {
            let stage = Stage::answering([Reply::Status(status)]);
            let mut command = stage.command(env!("CARGO_BIN_EXE_crucible"));
            command
                .args(["run", "start", GOAL, "--provider", "gateway"])
                .current_dir(stage.repo.path());
            let ended = command.output().unwrap().status.code().unwrap();
            let receipt = stage.receipt();
            assert_eq!(
                (
                    &receipt["phases"][0]["llm"]["error"],
                    ended.to_string().as_str()
                ),
                (&json!(class), exit),
                "{status}"
            );
            tried += 1;
        }
    }
    assert!(tried >= 6, "only {tried}");
}

/// One part of the page.
#[derive(Clone, Copy)]
struct Section<'a> {
    title: &'a str,
    text: &'a str,
}

/// One snippet.
#[derive(Debug)]
struct Block<'a> {
    language: &'a str,
    text: &'a str,
}

/// What is done with a snippet.
enum Rule {
    UserFile,
    ProjectFile,
    Shell,
}

fn sections() -> Vec<Section<'static>> {
    let parts = PAGE.split("\n## ").skip(1);
    parts
        .filter_map(|part| part.split_once('\n'))
        .map(|(title, text)| Section { title, text })
        .collect()
}

#[track_caller]
fn section(title: &str) -> Section<'static> {
    sections()
        .into_iter()
        .find(|section| section.title == title)
        .unwrap_or_else(|| panic!("there is no {title:?}"))
}

impl<'a> Section<'a> {
    fn blocks(&self) -> Vec<Block<'a>> {
        let fenced = self.text.split("\n```").skip(1).step_by(2);
        fenced
            .filter_map(|part| part.split_once('\n'))
            .map(|(language, text)| Block { language, text })
            .collect()
    }
}

impl Block<'_> {
    fn rule(&self) -> Option<Rule> {
        match (self.language, self.text.lines().next()?) {
            ("toml", "# ~/.config/crucible/config.toml") => Some(Rule::UserFile),
            ("toml", "# .crucible/config.toml") => Some(Rule::ProjectFile),
            ("sh", _) => Some(Rule::Shell),
            _ => None,
        }
    }
}

/// In which directory a question is asked.
#[derive(Clone, Copy)]
enum Where {
    Project,
    Elsewhere,
}

/// A reader of the page: a home, a repository with a mistake, and a server behind every provider's address.
struct Stage {
    fixture: Fixture,
    repo: TestRepo,
    server: FakeApi,
    variables: Vec<(String, String)>,
    /// What the snippets printed.
    printed: String,
}

impl Stage {
    fn new() -> Self {
        Self::before(FakeApi::answering(|question| {
            let edit = question.body.to_string().contains("<<<<<<< SEARCH");
            Reply::Answer(if edit {
                GOOD_EDIT.to_owned()
            } else {
                good_answer()
            })
        }))
    }

    fn answering(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::before(FakeApi::start(replies))
    }

    fn before(server: FakeApi) -> Self {
        let (fixture, repo) = (Fixture::new(), small().build());
        std::fs::create_dir(fixture.path("bin")).unwrap();
        symlink(
            env!("CARGO_BIN_EXE_crucible"),
            fixture.path("bin").join("crucible"),
        )
        .unwrap();
        let address = |kind: &&dyn ProviderKind| {
            let url = match kind.name() {
                "claude-cli" | "gemini-cli" => server.origin(),
                _ => server.base_url(),
            };
            (
                format!(
                    "CRUCIBLE_{}_BASE_URL",
                    kind.name().replace('-', "_").to_uppercase()
                ),
                url,
            )
        };
        let online = registry()
            .iter()
            .filter(|kind| !matches!(kind.class(), ProviderClass::Recording));
        let variables = online.map(address).collect();
        Self {
            fixture,
            repo,
            server,
            variables,
            printed: String::new(),
        }
    }

    /// The same, with a variable that the reader has set before.
    fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The same, with a client program installed.
    fn installed(self, name: &str) -> Self {
        symlink(real_client(name), self.fixture.path("bin").join(name)).unwrap();
        self
    }

    /// Does what a section says, in its order.
    #[track_caller]
    fn run(mut self, section: &Section<'_>) -> Self {
        let project = self.repo.path().join(".crucible/config.toml");
        let user = self.fixture.home().join(".config/crucible/config.toml");
        std::fs::create_dir_all(user.parent().unwrap()).unwrap();
        for block in section.blocks() {
            match block.rule() {
                Some(Rule::UserFile) => append(&user, block.text),
                Some(Rule::ProjectFile) => append(&project, block.text),
                Some(Rule::Shell) => self.shell(block.text),
                None => panic!("nothing is known of the snippet {block:?}"),
            }
        }
        self
    }

    #[track_caller]
    fn shell(&mut self, script: &str) {
        let mut command = self.command("sh");
        let output = command
            .args(["-eu", "-c", script])
            .current_dir(self.repo.path())
            .output()
            .unwrap();
        self.printed
            .push_str(&String::from_utf8(output.stdout).unwrap());
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{:?} of\n{script}\n{}\n{stderr}",
            output.status,
            self.printed
        );
    }

    fn command(&self, program: &str) -> Command {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::iter::once(self.fixture.path("bin")).chain(std::env::split_paths(&path));
        let mut command = Command::new(program);
        command
            .stdin(Stdio::null())
            .env_clear()
            .env("PATH", std::env::join_paths(path).unwrap())
            .env("HOME", self.fixture.home())
            .envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// A setting with its source, as it is without flags and without what snippets export.
    fn setting(&self, key: &str, place: Where) -> Value {
        let mut command = self.command(env!("CARGO_BIN_EXE_crucible"));
        command.args(["config", "show", "--json"]);
        let directory = match place {
            Where::Project => self.repo.path().to_owned(),
            Where::Elsewhere => self.fixture.home(),
        };
        let output = command.current_dir(directory).output().unwrap();
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        let row = document["settings"]
            .as_array()
            .unwrap()
            .iter()
            .find(|row| row["key"] == key);
        row.unwrap().clone()
    }

    /// The receipts of all runs. Their place is the one that the page names.
    fn receipts(&self) -> Vec<Value> {
        let runs = self.fixture.home().join(".local/share/crucible/runs");
        let entries = std::fs::read_dir(runs)
            .unwrap()
            .map(|entry| entry.unwrap().path().join("receipt.json"));
        entries
            .map(|path| serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap())
            .collect()
    }

    /// The receipt of the only run.
    #[track_caller]
    fn receipt(&self) -> Value {
        let [receipt] = self.receipts().try_into().unwrap();
        receipt
    }

    /// The only request for an answer.
    #[track_caller]
    fn only_question(&self) -> SeenRequest {
        let [question] = self.server.completions().try_into().unwrap();
        question
    }
}

fn append(file: &PathBuf, text: &str) {
    let before = std::fs::read_to_string(file).unwrap_or_default();
    std::fs::write(file, format!("{before}{text}")).unwrap();
}
