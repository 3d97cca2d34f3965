//! The trait of all model backends, and a backend with its properties.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use crate::capability::Capabilities;
use crate::error::LlmError;
use crate::invocation::{FallbackList, LlmInvocation, LlmResult};
use crate::template::PromptTemplate;
use crate::watch::{CallObserver, InFlight};

/// A source of model answers.
#[async_trait]
pub trait LlmBackend: Send + Sync {
    /// Makes one call without retries, within `inv.timeout`.
    ///
    /// # Errors
    ///
    /// See [`LlmError`].
    async fn invoke(&self, inv: LlmInvocation) -> Result<LlmResult, LlmError>;
}

/// The source of a backend's answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A model, now.
    Live,
    /// A source that costs nothing itself: a person, the user's own command, or a backend that makes
    /// other calls and accounts for each of them, such as a council.
    Unpaid,
    /// A recording of earlier answers.
    Recording,
}

/// The provider and model whose answers a backend returns; for a recording, those of its calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Speaker {
    /// The provider.
    pub provider: String,
    /// The model.
    pub model: String,
}

/// What a client or a service does beyond the one requested call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientExtra {
    /// The most tokens that it adds to a request.
    pub added_tokens: u64,
    /// The most requests that it makes for one call; some clients retry on their own.
    pub requests: u64,
    /// Whether it uses fallback models if the requested one cannot answer.
    pub fallbacks: FallbackList,
}

impl ClientExtra {
    /// One unchanged request to one model.
    pub const NONE: Self = Self {
        added_tokens: 0,
        requests: 1,
        fallbacks: FallbackList::NotTaken,
    };
}

/// The parts of a backend that a provider constructs.
pub struct BackendParts {
    /// The provider's name in the registry.
    pub provider: &'static str,
    /// The model for calls that name none.
    pub default_model: String,
    /// The most tokens of an answer if a call sets no `max_tokens`; the budget reserves them.
    pub max_output_tokens: u64,
    /// What its client does beyond the one requested call; the budget reserves that, too.
    pub extra: ClientExtra,
    /// Its capabilities.
    pub capabilities: Capabilities,
    /// The provider and model whose answers it returns.
    pub speaker: Speaker,
    /// The source of its answers.
    pub origin: Origin,
    /// The hints of a recording's first call; empty for a live model.
    pub parameters: BTreeMap<String, Value>,
    /// The implementation.
    pub inner: Box<dyn LlmBackend>,
}

impl BackendParts {
    /// The parts of a backend with a live model and a client without extra requests.
    pub(crate) fn live(
        provider: &'static str,
        capabilities: Capabilities,
        model: String,
        max_output_tokens: u64,
        inner: Box<dyn LlmBackend>,
    ) -> Self {
        Self {
            provider,
            default_model: model.clone(),
            max_output_tokens,
            extra: ClientExtra::NONE,
            capabilities,
            speaker: Speaker {
                provider: provider.to_owned(),
                model,
            },
            origin: Origin::Live,
            parameters: BTreeMap::new(),
            inner,
        }
    }
}

/// A backend from a provider, with its properties. Clones share the backend and its connections.
#[derive(Clone)]
pub struct Backend {
    parts: Arc<BackendParts>,
    phase_models: BTreeMap<String, String>,
    phase_templates: BTreeMap<String, PromptTemplate>,
    watch: Option<Arc<dyn CallObserver>>,
}

impl Backend {
    /// Creates a backend from these parts.
    #[must_use]
    pub fn new(parts: BackendParts) -> Self {
        Self {
            parts: Arc::new(parts),
            phase_models: BTreeMap::new(),
            phase_templates: BTreeMap::new(),
            watch: None,
        }
    }

    /// Sets the observer of attempts. It replaces an earlier one.
    #[must_use]
    pub fn watched(self, watch: Arc<dyn CallObserver>) -> Self {
        Self {
            watch: Some(watch),
            ..self
        }
    }

    /// Sets the models of phases, by phase name.
    #[must_use]
    pub fn with_phase_models(self, phase_models: BTreeMap<String, String>) -> Self {
        Self {
            phase_models,
            ..self
        }
    }

    /// Sets the prompt templates of phases, by phase name.
    #[must_use]
    pub(crate) fn with_phase_templates(
        self,
        phase_templates: BTreeMap<String, PromptTemplate>,
    ) -> Self {
        Self {
            phase_templates,
            ..self
        }
    }

    /// The provider's name in the registry.
    #[must_use]
    pub fn provider(&self) -> &'static str {
        self.parts.provider
    }

    /// The model for calls that name none.
    #[must_use]
    pub fn default_model(&self) -> &str {
        &self.parts.default_model
    }

    /// The models of phases, by phase name.
    #[must_use]
    pub fn phase_models(&self) -> &BTreeMap<String, String> {
        &self.phase_models
    }

    /// The most tokens of an answer if a call sets no `max_tokens`.
    #[must_use]
    pub fn max_output_tokens(&self) -> u64 {
        self.parts.max_output_tokens
    }

    /// What its client does beyond the one requested call.
    #[must_use]
    pub fn extra(&self) -> ClientExtra {
        self.parts.extra
    }

    /// Its capabilities.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        self.parts.capabilities
    }

    /// The provider and model whose answers it returns.
    #[must_use]
    pub fn speaker(&self) -> &Speaker {
        &self.parts.speaker
    }

    /// The source of its answers.
    #[must_use]
    pub fn origin(&self) -> Origin {
        self.parts.origin
    }

    /// The hints of a recording's first call, with which its answers must be requested. Empty for a live
    /// model.
    #[must_use]
    pub fn parameters(&self) -> &BTreeMap<String, Value> {
        &self.parts.parameters
    }
}

#[async_trait]
impl LlmBackend for Backend {
    async fn invoke(&self, mut inv: LlmInvocation) -> Result<LlmResult, LlmError> {
        if inv.model.is_empty() {
            inv.model.clone_from(&self.parts.default_model);
        }
        if let Some(template) = self.phase_templates.get(&inv.phase_id) {
            inv.messages = template.shape(inv.messages);
        }
        let _in_flight = self
            .watch
            .as_deref()
            .map(|watch| InFlight::new(watch, inv.phase_id.clone()));
        self.parts
            .inner
            .invoke(inv)
            .await
            .map(LlmResult::with_plain_numbers)
    }
}
