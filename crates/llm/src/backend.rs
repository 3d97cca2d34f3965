//! The one trait through which every model is asked, and a backend with what is known about it.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use crate::budget::{Asks, Budgeted, CallBudget};
use crate::capability::Capabilities;
use crate::error::LlmError;
use crate::invocation::{LlmInvocation, LlmResult};
use crate::price::PriceTable;
use crate::template::PromptTemplate;
use crate::watch::{CallWatch, InFlight};

/// Something that answers for a model.
#[async_trait]
pub trait LlmBackend: Send + Sync {
    /// Makes one call, once: no retry, within `inv.timeout`.
    ///
    /// # Errors
    ///
    /// See [`LlmError`].
    async fn invoke(&self, inv: LlmInvocation) -> Result<LlmResult, LlmError>;
}

/// Where a backend's answers come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A model, now.
    Live,
    /// Somebody whose words cost nothing by themselves, now: a person, a command of the user's own, or a backend that asks others and
    /// books each of those calls by itself, such as a council of a run.
    Unpaid,
    /// A recording of earlier answers.
    Recording,
}

/// Whose words a backend returns: for a recording, the provider and model that spoke when it was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Speaker {
    /// The provider.
    pub provider: String,
    /// The model.
    pub model: String,
}

/// What a client, or the service that it asks, does beyond the one request that it is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientExtra {
    /// The most tokens that it adds to a request by itself.
    pub added_tokens: u64,
    /// The most requests that it makes for one call: some ask again without being told to.
    pub requests: u64,
    /// Whether it asks other models where the one that is named cannot answer.
    pub fallbacks: FallbackList,
}

impl ClientExtra {
    /// Nothing: one request to one model, as it is.
    pub const NONE: Self = Self { added_tokens: 0, requests: 1, fallbacks: FallbackList::NotTaken };
}

/// What becomes of the hint `models`: the models to ask, in this order, where the one that is named cannot answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FallbackList {
    /// The result says that it was passed over.
    NotTaken,
    /// The service follows it by itself, and the answer says which model it is of.
    Taken,
}

/// What a provider states about the backend it makes.
pub struct BackendParts {
    /// The provider's name in the registry.
    pub provider: &'static str,
    /// The model that is asked when a call names none.
    pub default_model: String,
    /// The most tokens an answer takes when a call sets no `max_tokens`; what the budget reserves.
    pub max_output_tokens: u64,
    /// What its client does beyond the one request that it is asked for; the budget reserves that, too.
    pub extra: ClientExtra,
    /// What it is good at.
    pub capabilities: Capabilities,
    /// Whose words it returns.
    pub speaker: Speaker,
    /// Where they come from.
    pub origin: Origin,
    /// The hints that a recording's first call was made with; none for a model that answers now.
    pub parameters: BTreeMap<String, Value>,
    /// What makes the calls.
    pub inner: Box<dyn LlmBackend>,
}

impl BackendParts {
    /// The parts of a backend behind which a model answers now: it speaks for itself, and its client does nothing on its own.
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
            speaker: Speaker { provider: provider.to_owned(), model },
            origin: Origin::Live,
            parameters: BTreeMap::new(),
            inner,
        }
    }
}

/// A backend that a provider made, with what is known about it. A clone is the same backend, with the same connections.
#[derive(Clone)]
pub struct Backend {
    parts: Arc<BackendParts>,
    phase_models: BTreeMap<String, String>,
    phase_templates: BTreeMap<String, PromptTemplate>,
    watch: Option<Arc<dyn CallWatch>>,
}

impl Backend {
    /// A backend of these parts.
    #[must_use]
    pub fn new(parts: BackendParts) -> Self {
        Self {
            parts: Arc::new(parts),
            phase_models: BTreeMap::new(),
            phase_templates: BTreeMap::new(),
            watch: None,
        }
    }

    /// The same, with somebody who is told of each attempt. One that was told before is told no more.
    #[must_use]
    pub fn watched(self, watch: Arc<dyn CallWatch>) -> Self {
        Self { watch: Some(watch), ..self }
    }

    /// The same, with these models for phases that have one of their own, by the phase's name.
    #[must_use]
    pub fn with_phase_models(self, phase_models: BTreeMap<String, String>) -> Self {
        Self { phase_models, ..self }
    }

    /// The same, with these templates for the questions of phases that name one, by the phase's name.
    #[must_use]
    pub(crate) fn with_phase_templates(self, phase_templates: BTreeMap<String, PromptTemplate>) -> Self {
        Self { phase_templates, ..self }
    }

    /// The same within this budget: each attempt takes its part of it before it is sent, beside whatever other budget its caller
    /// keeps to.
    #[must_use]
    pub fn within(self, budget: Arc<CallBudget>, prices: Arc<PriceTable>) -> Self {
        let parts = BackendParts {
            provider: self.provider(),
            default_model: self.default_model().to_owned(),
            max_output_tokens: self.max_output_tokens(),
            extra: self.extra(),
            capabilities: self.capabilities(),
            speaker: self.speaker().clone(),
            origin: self.origin(),
            parameters: self.parameters().clone(),
            inner: Box::new(Budgeted::new(self.clone(), Asks::of(&self), budget, prices)),
        };
        Self::new(parts).with_phase_models(self.phase_models)
    }

    /// The provider's name in the registry.
    #[must_use]
    pub fn provider(&self) -> &'static str {
        self.parts.provider
    }

    /// The model that is asked when a call names none.
    #[must_use]
    pub fn default_model(&self) -> &str {
        &self.parts.default_model
    }

    /// The models of phases that have one of their own, by the phase's name.
    #[must_use]
    pub fn phase_models(&self) -> &BTreeMap<String, String> {
        &self.phase_models
    }

    /// The most tokens an answer takes when a call sets no `max_tokens`.
    #[must_use]
    pub fn max_output_tokens(&self) -> u64 {
        self.parts.max_output_tokens
    }

    /// What its client does beyond the one request that it is asked for.
    #[must_use]
    pub fn extra(&self) -> ClientExtra {
        self.parts.extra
    }

    /// What it is good at.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        self.parts.capabilities
    }

    /// Whose words it returns.
    #[must_use]
    pub fn speaker(&self) -> &Speaker {
        &self.parts.speaker
    }

    /// Where they come from.
    #[must_use]
    pub fn origin(&self) -> Origin {
        self.parts.origin
    }

    /// The hints that a recording's first call was made with: whoever wants its answers asks with these. Empty for a model
    /// that answers now.
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
        let _in_flight = self.watch.as_deref().map(|watch| InFlight::new(watch, inv.phase_id.clone()));
        self.parts.inner.invoke(inv).await.map(LlmResult::with_plain_numbers)
    }
}
