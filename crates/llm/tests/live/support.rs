//! Common parts of the live tests: the server, short questions, and the summary line.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crucible_host::env::Environment;
use crucible_host::http::HttpClient;
use crucible_llm::{
    Backend, BudgetLimits, CallBudget, ClientOptions, Context, Limit, LlmInvocation, LlmResult,
    Message, ModelClient, ProviderSettings, Recording, RetryAllowance, RetryPolicy, construct,
};
use crucible_model::PromptBuilder;
use crucible_sandbox::Sandbox;
use crucible_secrets::Scanner;
use crucible_testkit::{LiveLine, live_address};
use serde_json::Value;

/// The requested model name; a local server accepts any.
pub(crate) const MODEL: &str = "qwen2.5-coder-0.5b-instruct";

/// The most tokens of an answer here.
pub(crate) const MAX_TOKENS: u64 = 64;

/// The most tokens of a question here, as the server counts them.
const MAX_QUESTION: u64 = 256;

pub(crate) const NO_LIMITS: BudgetLimits = BudgetLimits {
    calls: Limit::Unlimited,
    tokens: Limit::Unlimited,
    micro_dollars: Limit::Unlimited,
};

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The environment that a client program needs, with this key.
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
        base_url: Some(format!("{}/v1", live_address())),
        model: Some(MODEL.to_owned()),
        max_tokens: Some(MAX_TOKENS),
        temperature: Some(0.0),
        ..ProviderSettings::default()
    };
    construct("gateway", &settings, &context(("UNUSED", ""))).unwrap()
}

/// A backend with all its layers.
pub(crate) fn client(
    backend: Backend,
    recording: Recording,
    budget: &Arc<CallBudget>,
) -> ModelClient {
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

/// A question with a fixed seed.
pub(crate) fn ask(question: &'static str) -> LlmInvocation {
    LlmInvocation {
        spec_id: "live".to_owned(),
        phase_id: "test".to_owned(),
        model: String::new(),
        timeout: Duration::from_secs(280),
        messages: vec![
            Message::system(
                PromptBuilder::new()
                    .fixed_text("Answer in as few words as possible.")
                    .build(),
            ),
            Message::user(PromptBuilder::new().fixed_text(question).build()),
        ],
        metadata: BTreeMap::from([("seed".to_owned(), Value::from(1))]),
    }
}

/// The summary line of a test, with its answers.
pub(crate) struct Summary {
    line: LiveLine,
}

impl Summary {
    /// Starts the summary of a test with this question.
    pub(crate) fn new(test: &'static str, question: &'static str) -> Self {
        Self {
            line: LiveLine::new(test, question),
        }
    }

    /// Records an answer's model and tokens. A client program adds text to a question; that part is not
    /// bounded here.
    pub(crate) fn answered(&mut self, result: &LlmResult) {
        if result.provider == "gateway" {
            let tokens = result.tokens_input.unwrap();
            assert!(
                tokens <= MAX_QUESTION,
                "a question of {tokens} tokens is too long for a live test"
            );
        }
        let (input, output) = self.line.tokens;
        let first = input.is_none() && output.is_none();
        let sum =
            |before: Option<u64>, now: Option<u64>| if first { now } else { Some(before? + now?) };
        self.line.tokens = (
            sum(input, result.tokens_input),
            sum(output, result.tokens_output),
        );
        self.line.by = (result.provider.clone(), result.model_used.clone());
    }

    /// Records success.
    pub(crate) fn passed(self, verdict: impl Into<String>) {
        self.line.passed(verdict);
    }
}
