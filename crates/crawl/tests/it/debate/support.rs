//! Common parts of these tests: a repository, two models behind servers, and their requests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crucible_crawl::{
    BuildFile, BuildFinding, DebateError, DebateOutcome, DebateRounds, FetchMethod, InspectV1,
    InspectedRepository, Inspection, LanguageCount, PlanAuthor, PlanCritic, RedactedMessage,
    Transcript, debate,
};
use crucible_host::env::Environment;
use crucible_host::http::HttpClient;
use crucible_llm::{
    BudgetLimits, CallBudget, ClientOptions, Context, Limit, ModelClient, ProviderSettings,
    Recording, RetryAllowance, RetryPolicy, construct,
};
use crucible_model::Untrusted;
use crucible_sandbox::Sandbox;
use crucible_secrets::Scanner;
use crucible_testkit::{FakeApi, Reply, SeenRequest};
use serde_json::{Value, json};

use crate::ears::Ears;

pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// A small crate, inspected.
pub(crate) fn inspection() -> Inspection {
    Inspection {
        artifact: InspectV1 {
            schema: InspectV1::SCHEMA.to_owned(),
            inspected_at: "2026-03-01T12:00:00Z".parse().unwrap(),
            repo: InspectedRepository {
                full_name: "someone/tool".to_owned(),
                url: "https://github.com/someone/tool".to_owned(),
                selected_ref: "v1.2.3".to_owned(),
                resolved_commit: "0123456789abcdef0123456789abcdef01234567".to_owned(),
                default_branch: "main".to_owned(),
            },
            fetch_method: FetchMethod::Tarball,
            build_system: BuildFinding {
                name: "cargo".to_owned(),
                confidence: 0.95,
                detected_files: vec!["Cargo.toml".to_owned()],
            },
            monorepo: false,
            sub_projects: Vec::new(),
            file_tree_summary: "Cargo.toml\nsrc/main.rs\n".to_owned(),
            sampled_files: 2,
            sampled_bytes: 100,
            sampling_truncated: false,
            readme_excerpt: "# tool\n\nBuilds with cargo.\n".to_owned(),
            detected_languages: vec![LanguageCount {
                language: "Rust".to_owned(),
                file_count: 1,
            }],
            key_files: Vec::new(),
        },
        build_files: vec![BuildFile {
            path: "Cargo.toml".to_owned(),
            content: Untrusted::new("[package]\nname = \"tool\"\n"),
        }],
        links: BTreeSet::new(),
        version_constraints: BTreeMap::new(),
        build_dir: ".".to_owned(),
        scripts: BTreeSet::new(),
        declared: BTreeSet::new(),
        reasons: Vec::new(),
        warnings: Vec::new(),
    }
}

fn context() -> Context {
    let env = Environment::from_pairs([("TEST_KEY", "key-0123456789")], "/");
    Context {
        sandbox: Arc::new(Sandbox::new(None, &env)),
        http: Arc::new(HttpClient::new().unwrap()),
        env,
        temporary: std::env::temp_dir(),
        cli_cap: Context::CLI_CAP,
        http_cap: Context::HTTP_CAP,
    }
}

/// A provider with this server and this default token limit.
pub(crate) fn model(provider: &str, server: &FakeApi, max_tokens: u64) -> ModelClient {
    let settings = ProviderSettings {
        base_url: Some(server.base_url()),
        api_key_env: Some("TEST_KEY".to_owned()),
        model: Some("test-model".to_owned()),
        max_tokens: Some(max_tokens),
        temperature: Some(0.2),
        ..ProviderSettings::default()
    };
    let options = ClientOptions {
        scanner: Scanner::builtin(),
        recording: Recording::Off,
        retry: RetryPolicy::NEVER,
        retries: RetryAllowance::unlimited(),
        budget: CallBudget::new(BudgetLimits {
            calls: Limit::Unlimited,
            tokens: Limit::Unlimited,
            micro_dollars: Limit::Unlimited,
        }),
        prices: Arc::default(),
    };
    ModelClient::new(construct(provider, &settings, &context()).unwrap(), options)
}

/// Stores messages as long as it is allowed to.
pub(crate) struct Kept {
    pub(crate) messages: Vec<RedactedMessage>,
    pub(crate) room: usize,
}

impl Default for Kept {
    fn default() -> Self {
        Self {
            messages: Vec::new(),
            room: usize::MAX,
        }
    }
}

impl Transcript for Kept {
    fn keep(&mut self, message: &RedactedMessage) -> Result<(), String> {
        if self.messages.len() == self.room {
            return Err("the disk is full".to_owned());
        }
        self.messages.push(message.clone());
        Ok(())
    }
}

/// Two servers, and the result of a debate between them.
pub(crate) struct Stage {
    pub(crate) gpt: FakeApi,
    pub(crate) claude: FakeApi,
    pub(crate) kept: Kept,
    pub(crate) heard: Ears,
    pub(crate) inspection: Inspection,
}

impl Stage {
    pub(crate) fn new(
        gpt: impl IntoIterator<Item = Reply>,
        claude: impl IntoIterator<Item = Reply>,
    ) -> Self {
        Self {
            gpt: FakeApi::start(gpt),
            claude: FakeApi::start(claude),
            kept: Kept::default(),
            heard: Ears::default(),
            inspection: inspection(),
        }
    }

    pub(crate) async fn hold(&mut self, rounds: u32) -> Result<DebateOutcome, DebateError> {
        self.hold_between("gateway", "gateway", rounds).await
    }

    pub(crate) async fn hold_between(
        &mut self,
        gpt: &str,
        claude: &str,
        rounds: u32,
    ) -> Result<DebateOutcome, DebateError> {
        let gpt = PlanAuthor::new(model(gpt, &self.gpt, 77));
        let claude = PlanCritic::new(model(claude, &self.claude, 99_999));
        let rounds = DebateRounds::capped(rounds);
        let Self {
            inspection,
            kept,
            heard,
            ..
        } = self;
        debate(
            &gpt, &claude, inspection, rounds, TIMEOUT, "crawl-7", kept, heard,
        )
        .await
    }

    /// The phases that were recorded, in order.
    pub(crate) fn phases(&self) -> Vec<(&'static str, u32, &'static str)> {
        self.kept
            .messages
            .iter()
            .map(|message| (message.phase, message.round, message.owner))
            .collect()
    }
}

pub(crate) fn says(value: &Value) -> Reply {
    Reply::Answer(value.to_string())
}

/// An answer of a server that reports no tokens.
pub(crate) fn uncounted(text: &str) -> Reply {
    let choice =
        json!({"message": {"role": "assistant", "content": text}, "finish_reason": "stop"});
    Reply::Raw(
        200,
        json!({"model": "test-model", "choices": [choice]})
            .to_string()
            .into_bytes(),
    )
}

pub(crate) fn step(name: &str, cmd: &str) -> Value {
    json!({"name": name, "cmd": cmd, "cwd": ".", "env": [], "note": ""})
}

pub(crate) fn plan(steps: &[Value]) -> Value {
    json!({"dependencies": {"tools": ["cargo"], "notes": "builds it"}, "steps": steps, "warnings": []})
}

pub(crate) fn critique(issues: &[(&str, &str, &str)], approved: bool) -> Value {
    let issues: Vec<Value> = (issues.iter())
        .map(|(severity, step, words)| json!({"severity": severity, "step_name": step, "description": words}))
        .collect();
    json!({"issues": issues, "suggestions": [], "approved": approved})
}

pub(crate) fn synthesis(steps: &[Value]) -> Value {
    let mut all = plan(steps);
    all["accepted_suggestions"] = json!(["test it - source: Claude"]);
    all["rejected_suggestions"] = json!(["strip it - source: Claude - not needed"]);
    all
}

/// The last message of a request: the question.
pub(crate) fn question(request: &SeenRequest) -> String {
    request.body["messages"].as_array().unwrap().last().unwrap()["content"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// The first message of a request.
pub(crate) fn instructions(request: &SeenRequest) -> String {
    request.body["messages"][0]["content"]
        .as_str()
        .unwrap()
        .to_owned()
}
