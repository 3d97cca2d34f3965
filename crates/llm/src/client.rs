//! A backend in all its layers: the way in which models are asked everywhere.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crucible_model::{CanonicalError, Digest};
use crucible_secrets::Scanner;

use crate::backend::{Backend, Origin, Speaker};
use crate::budget::{Asks, Budgeted, CallBudget};
use crate::capability::Capabilities;
use crate::cassette::RecordedRequest;
use crate::error::CallError;
use crate::invocation::{LlmInvocation, LlmResult};
use crate::price::PriceTable;
use crate::receipt::LlmReceipt;
use crate::record::{Recorded, Recording};
use crate::retry::{Retried, RetryPolicy};
use crate::scan::SecretScanned;

/// What surrounds a backend.
pub struct ClientOptions {
    /// Finds secrets in requests and answers.
    pub scanner: &'static Scanner,
    /// Where calls are written down.
    pub recording: Recording,
    /// When to try again. A recording is never asked twice for one call, whatever stands here.
    pub retry: RetryPolicy,
    /// What calls may cost, shared with whoever else calls for the same purpose.
    pub budget: Arc<CallBudget>,
    /// What tokens cost. A recording costs nothing, whatever stands here.
    pub prices: Arc<PriceTable>,
}

impl ClientOptions {
    /// The usual ones within this budget: the built-in rules for secrets, nothing written down, the phases' retries, and no
    /// prices. Name what differs and take the rest from here.
    #[must_use]
    pub fn new(budget: Arc<CallBudget>) -> Self {
        Self {
            scanner: Scanner::builtin(),
            recording: Recording::Off,
            retry: RetryPolicy::PHASES,
            budget,
            prices: Arc::default(),
        }
    }
}

/// A backend in all its layers.
pub struct ModelClient {
    layers: SecretScanned<Recorded<Retried<Budgeted<Backend>>>>,
    provider: &'static str,
    default_model: String,
    phase_models: BTreeMap<String, String>,
    prices: Arc<PriceTable>,
    capabilities: Capabilities,
    speaker: Speaker,
    origin: Origin,
}

impl ModelClient {
    /// Wraps a backend into its layers.
    #[must_use]
    pub fn new(backend: Backend, options: ClientOptions) -> Self {
        let ClientOptions { scanner, recording, retry, budget, prices } = options;
        let origin = backend.origin();
        // The recorded outcome already is what the last attempt gave.
        let retry = match origin {
            Origin::Recording => RetryPolicy::NEVER,
            Origin::Live => retry,
        };
        let provider = backend.provider();
        let default_model = backend.default_model().to_owned();
        let phase_models = backend.phase_models().clone();
        let capabilities = backend.capabilities();
        let speaker = backend.speaker().clone();
        let asks =
            Asks { provider, max_output_tokens: backend.max_output_tokens(), extra: backend.extra(), origin };
        let attempts = Retried::new(Budgeted::new(backend, asks, budget, Arc::clone(&prices)), retry);
        let layers = SecretScanned::new(Recorded::new(attempts, scanner, recording), scanner);
        Self { layers, provider, default_model, phase_models, prices, capabilities, speaker, origin }
    }

    /// Makes a call; an empty model means that of its phase, or the default one.
    ///
    /// # Errors
    ///
    /// See [`CallError`].
    pub async fn call(&self, mut inv: LlmInvocation) -> Result<LlmResult, CallError> {
        if inv.model.is_empty() {
            self.model_for(&inv.phase_id).clone_into(&mut inv.model);
        }
        self.layers.call(inv).await
    }

    /// The model that this phase asks when its call names none.
    #[must_use]
    pub fn model_for(&self, phase: &str) -> &str {
        self.phase_models.get(phase).unwrap_or(&self.default_model)
    }

    /// The key under which a request is recorded; an empty model means that of its phase, or the default one.
    ///
    /// # Errors
    ///
    /// Fails when the metadata have no canonical form.
    pub fn key(&self, inv: &LlmInvocation) -> Result<Digest, CanonicalError> {
        let mut request = RecordedRequest::of(inv);
        if request.model.is_empty() {
            self.model_for(&inv.phase_id).clone_into(&mut request.model);
        }
        request.key()
    }

    /// The digest of the line, without its line break, that holds the last answer to the request of this key. Nothing
    /// where calls are not recorded.
    #[must_use]
    pub fn recorded_line(&self, key: &Digest) -> Option<Digest> {
        self.layers.inner().writer()?.line_of(key)
    }

    /// Whether the recording holds an answer to the request of this key that was not handed out yet: then the next such
    /// call asks nobody. Never where calls are not recorded.
    #[must_use]
    pub fn holds_answer(&self, key: &Digest) -> bool {
        self.layers.inner().writer().is_some_and(|writer| writer.holds_answer(key))
    }

    /// What a receipt says of an answer to a call that asked this model and allowed itself this time. A recording costs
    /// nothing, so nothing is said of a cost.
    #[must_use]
    pub fn receipt(&self, result: &LlmResult, model: &str, allowed: Duration) -> LlmReceipt {
        let receipt = LlmReceipt::of_answer(result, allowed, self.prices.line(self.provider, model));
        match self.origin {
            Origin::Live => receipt,
            Origin::Recording => LlmReceipt { cost: None, ..receipt },
        }
    }

    /// The provider's name in the registry.
    #[must_use]
    pub fn provider(&self) -> &'static str {
        self.provider
    }

    /// The model that is asked when a call names none.
    #[must_use]
    pub fn default_model(&self) -> &str {
        &self.default_model
    }

    /// What the backend is good at.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    /// Whose words it returns.
    #[must_use]
    pub fn speaker(&self) -> &Speaker {
        &self.speaker
    }

    /// Where they come from.
    #[must_use]
    pub fn origin(&self) -> Origin {
        self.origin
    }
}
