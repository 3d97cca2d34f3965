//! Common parts of these tests: requests, a context, and scripted backends.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use crucible_host::env::Environment;
use crucible_host::http::HttpClient;
use crucible_llm::{
    Backend, BackendParts, BudgetLimits, CallBudget, Capabilities, ClientExtra, ClientOptions,
    Context, Fault, Limit, LlmBackend, LlmError, LlmInvocation, LlmResult, Message, ModelClient,
    Origin, ProviderClass, ProviderSettings, Recording, RetryPolicy, Speaker, StructuredOutput,
    construct, registry,
};
use crucible_model::{EditFormat, PromptBuilder, Untrusted};
use crucible_sandbox::Sandbox;

pub(crate) const NO_LIMITS: BudgetLimits = BudgetLimits {
    calls: Limit::Unlimited,
    tokens: Limit::Unlimited,
    micro_dollars: Limit::Unlimited,
};

pub(crate) const CAPABILITIES: Capabilities = Capabilities {
    edit_format: EditFormat::SearchReplace,
    structured_output: StructuredOutput::JsonMode,
};

/// A request with this text.
pub(crate) fn ask(text: &str) -> LlmInvocation {
    LlmInvocation {
        spec_id: "run-1".to_owned(),
        phase_id: "patch".to_owned(),
        model: String::new(),
        timeout: Duration::from_secs(20),
        messages: vec![
            Message::system(PromptBuilder::new().fixed_text("You are terse.\n").build()),
            Message::user(
                PromptBuilder::new()
                    .fixed_text("Summarise.\n")
                    .untrusted("file.txt", &Untrusted::new(text))
                    .build(),
            ),
        ],
        metadata: BTreeMap::new(),
    }
}

pub(crate) fn context(variables: &[(&str, &str)]) -> Context {
    let env = Environment::from_pairs(variables.iter().copied(), "/");
    Context {
        sandbox: Arc::new(Sandbox::new(None, &env)),
        http: Arc::new(HttpClient::new().unwrap()),
        env,
        temporary: std::env::temp_dir(),
        cli_cap: Context::CLI_CAP,
        http_cap: Context::HTTP_CAP,
    }
}

/// The settings of a gateway, without the address.
pub(crate) fn gateway_settings() -> ProviderSettings {
    ProviderSettings {
        model: Some("test-model".to_owned()),
        max_tokens: Some(4096),
        temperature: Some(0.2),
        ..ProviderSettings::default()
    }
}

/// The settings of the client program.
pub(crate) fn client_settings() -> ProviderSettings {
    ProviderSettings {
        binary: Some("claude".into()),
        model: Some("sonnet".to_owned()),
        max_tokens: Some(16_000),
        ..ProviderSettings::default()
    }
}

/// A gateway at this address, with this key if given.
pub(crate) fn gateway(base_url: &str, key: Option<&str>) -> Backend {
    let settings = ProviderSettings {
        base_url: Some(base_url.to_owned()),
        api_key_env: key.map(|_| "TEST_KEY".to_owned()),
        ..gateway_settings()
    };
    let variables: Vec<(&str, &str)> = key.map(|key| ("TEST_KEY", key)).into_iter().collect();
    construct("gateway", &settings, &context(&variables)).unwrap()
}

/// Every provider that speaks HTTP.
pub(crate) fn http_providers() -> Vec<&'static str> {
    registry()
        .iter()
        .filter(|kind| matches!(kind.class(), ProviderClass::Http { .. }))
        .map(|kind| kind.name())
        .collect()
}

/// The settings of an HTTP provider.
pub(crate) fn http_settings(base_url: &str) -> ProviderSettings {
    ProviderSettings {
        base_url: Some(base_url.to_owned()),
        api_key_env: Some("TEST_KEY".to_owned()),
        referer: Some("https://program.invalid".to_owned()),
        title: Some("program".to_owned()),
        ..gateway_settings()
    }
}

/// A backend of this HTTP provider with this address and key, over a context's connections.
pub(crate) fn http_backend(provider: &str, base_url: &str, context: &Context) -> Backend {
    construct(provider, &http_settings(base_url), context).unwrap()
}

pub(crate) fn client(backend: Backend, recording: Recording, retry: RetryPolicy) -> ModelClient {
    let options = ClientOptions {
        recording,
        retry,
        ..ClientOptions::new(CallBudget::new(NO_LIMITS))
    };
    ModelClient::new(backend, options)
}

pub(crate) fn answer(text: &str) -> LlmResult {
    LlmResult {
        raw_response: text.to_owned(),
        provider: "scripted".to_owned(),
        model_used: "m".to_owned(),
        tokens_input: Some(10),
        tokens_output: Some(5),
        timed_out: Some(false),
        extensions: BTreeMap::new(),
    }
}

pub(crate) fn outage(status: u16) -> LlmError {
    LlmError::ProviderOutage(Box::new(Fault {
        status: Some(status),
        ..*Fault::new("scripted", "m", "fails", "wait")
    }))
}

pub(crate) fn unreachable() -> LlmError {
    LlmError::Transport(Fault::new("scripted", "m", "no connection", "check it"))
}

/// Scripted answers; counts its calls and records the time limit of each.
#[derive(Default)]
pub(crate) struct Scripted {
    script: Mutex<VecDeque<Result<LlmResult, LlmError>>>,
    pub(crate) calls: AtomicU64,
    pub(crate) timeouts: Mutex<Vec<Duration>>,
}

impl Scripted {
    pub(crate) fn new(script: impl IntoIterator<Item = Result<LlmResult, LlmError>>) -> Arc<Self> {
        Arc::new(Self {
            script: Mutex::new(script.into_iter().collect()),
            ..Self::default()
        })
    }

    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::SeqCst)
    }

    pub(crate) fn backend(self: &Arc<Self>) -> Backend {
        Backend::new(BackendParts {
            provider: "scripted",
            default_model: "m".to_owned(),
            max_output_tokens: 100,
            extra: ClientExtra::NONE,
            capabilities: CAPABILITIES,
            speaker: Speaker {
                provider: "scripted".to_owned(),
                model: "m".to_owned(),
            },
            origin: Origin::Live,
            parameters: BTreeMap::new(),
            inner: Box::new(Shared(Arc::clone(self))),
        })
    }
}

/// The same script with several handles.
pub(crate) struct Shared(pub(crate) Arc<Scripted>);

#[async_trait]
impl LlmBackend for Shared {
    async fn invoke(&self, inv: LlmInvocation) -> Result<LlmResult, LlmError> {
        self.0.calls.fetch_add(1, Ordering::SeqCst);
        self.0.timeouts.lock().unwrap().push(inv.timeout);
        tokio::task::yield_now().await;
        self.0
            .script
            .lock()
            .unwrap()
            .pop_front()
            .unwrap_or_else(|| Ok(answer("more")))
    }
}
