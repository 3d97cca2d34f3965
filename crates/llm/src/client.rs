//! A backend with all its layers: the way every part of the program calls models.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crucible_model::{CanonicalError, Digest};
use crucible_secrets::Scanner;
use serde_json::Value;

use crate::asked_prices::AskedPrices;
use crate::backend::{Backend, Origin, Speaker};
use crate::budget::{Asks, Budgeted, CallBudget};
use crate::call_error::{CallError, SecretInRequest};
use crate::capability::Capabilities;
use crate::cassette::RecordedRequest;
use crate::invocation::{FallbackList, LlmInvocation, LlmResult};
use crate::price::PriceTable;
use crate::receipt::LlmReceipt;
use crate::record::{Recorded, Recording};
use crate::retry::{Retried, RetryAllowance, RetryPolicy};
use crate::scan::SecretScanned;

/// The settings of a client's layers.
pub struct ClientOptions {
    /// The scanner for secrets in requests and answers.
    pub scanner: &'static Scanner,
    /// Where calls are recorded.
    pub recording: Recording,
    /// The retry policy. It does not apply to recordings.
    pub retry: RetryPolicy,
    /// The retries that all calls may use, shared between all copies.
    pub retries: RetryAllowance,
    /// The budget, shared with other calls for the same purpose.
    pub budget: Arc<CallBudget>,
    /// Prices. They do not apply to recordings and unpaid sources.
    pub prices: Arc<PriceTable>,
}

impl ClientOptions {
    /// The default settings with this budget: the built-in secret rules, no recording, the retry policy
    /// of phases, and no prices. Change what differs.
    #[must_use]
    pub fn new(budget: Arc<CallBudget>) -> Self {
        Self {
            scanner: Scanner::builtin(),
            recording: Recording::Off,
            retry: RetryPolicy::PHASES,
            retries: RetryAllowance::unlimited(),
            budget,
            prices: Arc::default(),
        }
    }
}

/// A backend with all its layers.
pub struct ModelClient {
    layers: SecretScanned<Recorded<Retried<Budgeted<Backend>>>>,
    provider: &'static str,
    default_model: String,
    phase_models: BTreeMap<String, String>,
    fallbacks: FallbackList,
    prices: Arc<PriceTable>,
    capabilities: Capabilities,
    speaker: Speaker,
    origin: Origin,
}

impl ModelClient {
    /// Wraps a backend.
    #[must_use]
    pub fn new(backend: Backend, options: ClientOptions) -> Self {
        let ClientOptions {
            scanner,
            recording,
            retry,
            retries,
            budget,
            prices,
        } = options;
        let origin = backend.origin();
        // The recorded outcome is already that of the last attempt.
        let retry = match origin {
            Origin::Recording => RetryPolicy::NEVER,
            Origin::Live | Origin::Unpaid => retry,
        };
        let provider = backend.provider();
        let default_model = backend.default_model().to_owned();
        let phase_models = backend.phase_models().clone();
        let capabilities = backend.capabilities();
        let speaker = backend.speaker().clone();
        let fallbacks = backend.extra().fallbacks;
        let asks = Asks::from_backend(&backend);
        let budgeted = Budgeted::new(backend, asks, budget, Arc::clone(&prices));
        let attempts = Retried::new(budgeted, retry).within(retries);
        let layers = SecretScanned::new(Recorded::new(attempts, scanner, recording), scanner);
        Self {
            layers,
            provider,
            default_model,
            phase_models,
            fallbacks,
            prices,
            capabilities,
            speaker,
            origin,
        }
    }

    /// Makes a call; an empty model selects the phase's model, or the default.
    ///
    /// # Errors
    ///
    /// See [`CallError`].
    pub async fn call(&self, inv: LlmInvocation) -> Result<LlmResult, CallError> {
        self.call_counted(inv).await.0
    }

    /// Makes a call, and also returns the number of attempts sent, retries included: zero if the call was
    /// refused before, or answered from its own recording.
    pub async fn call_counted(
        &self,
        mut inv: LlmInvocation,
    ) -> (Result<LlmResult, CallError>, u64) {
        if inv.model.is_empty() {
            self.model_for(&inv.phase_id).clone_into(&mut inv.model);
        }
        let mut sent = 0;
        let outcome = self.layers.call(inv, &mut sent).await;
        (outcome, sent)
    }

    /// The model of this phase for calls that name none.
    #[must_use]
    pub fn model_for(&self, phase: &str) -> &str {
        self.phase_models.get(phase).unwrap_or(&self.default_model)
    }

    /// The key of a request in recordings; an empty model selects the phase's model, or the default.
    ///
    /// # Errors
    ///
    /// Fails if the metadata has no canonical form.
    pub fn key(&self, inv: &LlmInvocation) -> Result<Digest, CanonicalError> {
        let mut request = RecordedRequest::from_invocation(inv);
        if request.model.is_empty() {
            self.model_for(&inv.phase_id).clone_into(&mut request.model);
        }
        request.key()
    }

    /// The digest of the line (without its line break) with the last answer to the request with this key.
    /// None if calls are not recorded.
    #[must_use]
    pub fn recorded_line(&self, key: &Digest) -> Option<Digest> {
        self.layers.inner().writer()?.line_of(key)
    }

    /// Whether the recording holds an unused answer to the request with this key, so that the next such
    /// call sends nothing. False if calls are not recorded.
    #[must_use]
    pub fn holds_answer(&self, key: &Digest) -> bool {
        self.layers
            .inner()
            .writer()
            .is_some_and(|writer| writer.holds_answer(key))
    }

    /// The models that may answer this call, the requested one first, for [`ModelClient::receipt`].
    #[must_use]
    pub fn may_answer(&self, inv: &LlmInvocation) -> Vec<String> {
        let model = if inv.model.is_empty() {
            self.model_for(&inv.phase_id)
        } else {
            &inv.model
        };
        // The call itself refuses an invalid list, and then has no answer.
        let fallbacks = inv
            .fallback_models(self.provider, self.fallbacks)
            .unwrap_or_default();
        [model]
            .into_iter()
            .chain(fallbacks)
            .map(str::to_owned)
            .collect()
    }

    /// The receipt of an answer to a call with these possible models, the requested one first, and this
    /// time limit. A cost estimate uses the price of the model that answered, or the most expensive one
    /// if its name is unknown. Unpaid sources have no cost.
    #[must_use]
    pub fn receipt(
        &self,
        result: &LlmResult,
        models: &[impl AsRef<str>],
        allowed: Duration,
    ) -> LlmReceipt {
        let price = |model: &str| (model.to_owned(), self.prices.price(self.provider, model));
        let prices = AskedPrices::new(models.iter().map(|model| price(model.as_ref())));
        let priced = result
            .tokens()
            .and_then(|(input, output)| prices.price(&result.model_used, input, output));
        let line = priced.and_then(|(model, _)| self.prices.line(self.provider, model));
        let receipt = LlmReceipt::of_answer(result, allowed, line);
        match self.origin {
            Origin::Live => receipt,
            Origin::Recording | Origin::Unpaid => LlmReceipt {
                cost: None,
                ..receipt
            },
        }
    }

    /// Scans each text and each key of a value that may become part of a request. A later encoding can hide a secret from the scan of
    /// the request, for example a line break that is written as `\n`.
    ///
    /// # Errors
    ///
    /// The first secret found, with its line in the text that contains it.
    pub fn refuse_secrets(&self, value: &Value) -> Result<(), SecretInRequest> {
        self.layers.refuse_secrets(value)
    }

    /// Redacts the decoded strings of a JSON answer, and counts the secrets. Everything outside of
    /// strings is unchanged. The call has already removed secrets in plain text.
    #[must_use]
    pub fn redact_json<'t>(&self, text: &'t str) -> (Cow<'t, str>, u64) {
        self.layers.redact_json(text)
    }

    /// The provider's name in the registry.
    #[must_use]
    pub fn provider(&self) -> &'static str {
        self.provider
    }

    /// The model for calls that name none.
    #[must_use]
    pub fn default_model(&self) -> &str {
        &self.default_model
    }

    /// The capabilities of the backend.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    /// The provider and model whose answers it returns.
    #[must_use]
    pub fn speaker(&self) -> &Speaker {
        &self.speaker
    }

    /// The source of its answers.
    #[must_use]
    pub fn origin(&self) -> Origin {
        self.origin
    }
}
