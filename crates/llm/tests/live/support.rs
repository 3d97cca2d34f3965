//! What the live tests share: where the server is, short questions, and the line of summary.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crucible_host::env::Environment;
use crucible_host::http::HttpClient;
use crucible_llm::{
    Backend, BudgetLimits, CallBudget, ClientOptions, Context, Limit, LlmInvocation, LlmResult, Message,
    ModelClient, ProviderSettings, Recording, RetryAllowance, RetryPolicy, construct,
};
use crucible_model::PromptBuilder;
use crucible_sandbox::Sandbox;
use crucible_secrets::Scanner;
use serde_json::{Value, json};

/// The name under which the model is asked for; a local server takes any.
pub(crate) const MODEL: &str = "qwen2.5-coder-0.5b-instruct";

/// The most tokens an answer may take here.
pub(crate) const MAX_TOKENS: u64 = 64;

/// The most tokens a question may have here, in the server's counting (seed 002, *Testing Strategy*).
const MAX_QUESTION: u64 = 256;

pub(crate) const NO_LIMITS: BudgetLimits =
    BudgetLimits { calls: Limit::Unlimited, tokens: Limit::Unlimited, micro_dollars: Limit::Unlimited };

const HOW_TO_RUN: &str = "run `cargo xtask test --live`, which starts the server for these tests";

/// Where the model server listens, as `http://host:port`.
pub(crate) fn address() -> String {
    assert_ne!(variable("CRUCIBLE_SKIP_LLM_TESTS").as_deref(), Some("1"), "real models are forbidden here");
    let asked_for = variable("CRUCIBLE_REAL_LLM_TESTS").as_deref() == Some("1");
    let address = variable("CRUCIBLE_LIVE_ADDRESS").filter(|_| asked_for);
    address.expect(HOW_TO_RUN)
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The environment of a command, as far as a client program needs it, and this key.
pub(crate) fn context(key: (&str, &str)) -> Context {
    let path = variable("PATH").unwrap_or_default();
    let env = Environment::from_pairs([("PATH", path.as_str()), key], "/");
    Context {
        sandbox: Arc::new(Sandbox::new(None, &env)),
        http: Arc::new(HttpClient::new().unwrap()),
        env,
        temporary: std::env::temp_dir(),
        cli_cap: Context::CLI_CAP,
        http_cap: Context::HTTP_CAP,
    }
}

/// The gateway to the model server.
pub(crate) fn gateway() -> Backend {
    let settings = ProviderSettings {
        base_url: Some(format!("{}/v1", address())),
        model: Some(MODEL.to_owned()),
        max_tokens: Some(MAX_TOKENS),
        temperature: Some(0.0),
        ..ProviderSettings::default()
    };
    construct("gateway", &settings, &context(("UNUSED", ""))).unwrap()
}

/// A backend in all its layers.
pub(crate) fn client(backend: Backend, recording: Recording, budget: &Arc<CallBudget>) -> ModelClient {
    let options = ClientOptions {
        scanner: Scanner::builtin(),
        recording,
        retry: RetryPolicy::NEVER,
        retries: RetryAllowance::unlimited(),
        budget: Arc::clone(budget),
        prices: Arc::default(),
    };
    ModelClient::new(backend, options)
}

/// A question, with the seed fixed.
pub(crate) fn ask(question: &'static str) -> LlmInvocation {
    LlmInvocation {
        spec_id: "live".to_owned(),
        phase_id: "test".to_owned(),
        model: String::new(),
        timeout: Duration::from_secs(280),
        messages: vec![
            Message::system(PromptBuilder::new().ours("Answer in as few words as possible.").build()),
            Message::user(PromptBuilder::new().ours(question).build()),
        ],
        metadata: BTreeMap::from([("seed".to_owned(), Value::from(1))]),
    }
}

/// The line that a test leaves. Dropped before its verdict is in, it says that the test failed.
pub(crate) struct Summary {
    test: &'static str,
    asked: &'static str,
    begun: Instant,
    answers: Vec<LlmResult>,
    verdict: String,
    file: File,
}

impl Summary {
    /// Of a test that asks this.
    pub(crate) fn of(test: &'static str, asked: &'static str) -> Self {
        let path = variable("CRUCIBLE_LIVE_SUMMARY").expect(HOW_TO_RUN);
        let file = File::options().create(true).append(true).open(path).unwrap();
        Self { test, asked, begun: Instant::now(), answers: Vec::new(), verdict: "FAILED".to_owned(), file }
    }

    /// Notes an answer: its model, and its tokens. A client program adds a good deal to a question; what it adds is
    /// not ours to bound.
    pub(crate) fn answered(&mut self, result: &LlmResult) {
        if result.provider == "gateway" {
            let tokens = result.tokens_input.unwrap();
            assert!(tokens <= MAX_QUESTION, "a question of {tokens} tokens is too long for a live test");
        }
        self.answers.push(result.clone());
    }

    /// Everything was as it should be.
    pub(crate) fn passed(mut self, verdict: impl Into<String>) {
        self.verdict = verdict.into();
    }
}

impl Drop for Summary {
    fn drop(&mut self) {
        let sum = |count: fn(&LlmResult) -> Option<u64>| -> Option<u64> {
            let counts: Option<Vec<u64>> = self.answers.iter().map(count).collect();
            counts.filter(|counts| !counts.is_empty()).map(|counts| counts.into_iter().sum())
        };
        let first = self.answers.first();
        let line = json!({
            "test": self.test,
            "asked": self.asked,
            "provider": first.map_or("–", |result| result.provider.as_str()),
            "model": first.map_or("–", |result| result.model_used.as_str()),
            "tokens_input": sum(|result| result.tokens_input),
            "tokens_output": sum(|result| result.tokens_output),
            "seconds": self.begun.elapsed().as_secs_f64(),
            "verdict": self.verdict,
        });
        // Who started this suite counts the lines, so one that cannot be written is missed there.
        let _missed = self.file.write_all(format!("{line}\n").as_bytes());
    }
}
