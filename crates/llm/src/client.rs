//! A backend in all its layers: the way in which models are asked everywhere.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crucible_model::{CanonicalError, Digest};
use crucible_secrets::Scanner;
use serde_json::Value;

use crate::asked_prices::AskedPrices;
use crate::backend::{Backend, FallbackList, Origin, Speaker};
use crate::budget::{Asks, Budgeted, CallBudget};
use crate::capability::Capabilities;
use crate::cassette::RecordedRequest;
use crate::error::{CallError, SecretInRequest};
use crate::invocation::{LlmInvocation, LlmResult};
use crate::price::PriceTable;
use crate::receipt::LlmReceipt;
use crate::record::{Recorded, Recording};
use crate::retry::{Retried, RetryAllowance, RetryPolicy};
use crate::scan::SecretScanned;

/// What surrounds a backend.
pub struct ClientOptions {
    /// Finds secrets in requests and answers.
    pub scanner: &'static Scanner,
    /// Where calls are written down.
    pub recording: Recording,
    /// When to try again. A recording is never asked twice for one call, whatever stands here.
    pub retry: RetryPolicy,
    /// How often all calls together may be tried again, shared with whoever else holds a copy.
    pub retries: RetryAllowance,
    /// What calls may cost, shared with whoever else calls for the same purpose.
    pub budget: Arc<CallBudget>,
    /// What tokens cost. A recording costs nothing, nor does what nobody here pays for, whatever stands here.
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
            retries: RetryAllowance::unlimited(),
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
    fallbacks: FallbackList,
    prices: Arc<PriceTable>,
    capabilities: Capabilities,
    speaker: Speaker,
    origin: Origin,
}

impl ModelClient {
    /// Wraps a backend into its layers.
    #[must_use]
    pub fn new(backend: Backend, options: ClientOptions) -> Self {
        let ClientOptions { scanner, recording, retry, retries, budget, prices } = options;
        let origin = backend.origin();
        // The recorded outcome already is what the last attempt gave.
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
        let asks = Asks::of(&backend);
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

    /// Makes a call; an empty model means that of its phase, or the default one.
    ///
    /// # Errors
    ///
    /// See [`CallError`].
    pub async fn call(&self, inv: LlmInvocation) -> Result<LlmResult, CallError> {
        self.call_counted(inv).await.0
    }

    /// The same, with the number of attempts that were sent, retries included: none where the call was refused before, or where its
    /// answer comes out of the recording that it would be written to.
    pub async fn call_counted(&self, mut inv: LlmInvocation) -> (Result<LlmResult, CallError>, u64) {
        if inv.model.is_empty() {
            self.model_for(&inv.phase_id).clone_into(&mut inv.model);
        }
        let mut sent = 0;
        let outcome = self.layers.call(inv, &mut sent).await;
        (outcome, sent)
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

    /// The models that may answer this call, the one that is asked first: what [`ModelClient::receipt`] has to know of it.
    #[must_use]
    pub fn may_answer(&self, inv: &LlmInvocation) -> Vec<String> {
        let asked = if inv.model.is_empty() { self.model_for(&inv.phase_id) } else { &inv.model };
        // A list that cannot be read is refused by the call itself, which then has no answer.
        let fallbacks = inv.fallback_models(self.provider, self.fallbacks).unwrap_or_default();
        [asked].into_iter().chain(fallbacks).map(str::to_owned).collect()
    }

    /// What a receipt says of an answer to a call that one of these models may have answered, the one that was asked first, and
    /// which allowed itself this time. An estimate goes by the price of the one that answered, and where that is none of these
    /// names by the dearest. What nobody here pays for has no cost, so nothing is said of one.
    #[must_use]
    pub fn receipt(&self, result: &LlmResult, models: &[impl AsRef<str>], allowed: Duration) -> LlmReceipt {
        let price = |model: &str| (model.to_owned(), self.prices.of(self.provider, model));
        let prices = AskedPrices::new(models.iter().map(|model| price(model.as_ref())));
        let priced = result.tokens().and_then(|(input, output)| prices.of(&result.model_used, input, output));
        let line = priced.and_then(|(model, _)| self.prices.line(self.provider, model));
        let receipt = LlmReceipt::of_answer(result, allowed, line);
        match self.origin {
            Origin::Live => receipt,
            Origin::Recording | Origin::Unpaid => LlmReceipt { cost: None, ..receipt },
        }
    }

    /// Looks for secrets in what may become a part of a request: in each text and each key of it, by itself. A layout in which
    /// it is sent later can hide one from the scan of the request: a line break that is written as `\n`, for example.
    ///
    /// # Errors
    ///
    /// The first secret that is found, with its line in the text that holds it.
    pub fn refuse_secrets(&self, value: &Value) -> Result<(), SecretInRequest> {
        self.layers.refuse_secrets(value)
    }

    /// An answer that is to be read as JSON, without the secrets that its texts hold once they are decoded, and how many those
    /// were. What is no text stays as it came, byte for byte. Secrets that stand there plainly were taken out by the call.
    #[must_use]
    pub fn redact_json<'t>(&self, text: &'t str) -> (Cow<'t, str>, u64) {
        self.layers.redact_json(text)
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
