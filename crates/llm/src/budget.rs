//! The budget of calls, reserved before they are made.
//!
//! An attempt first reserves its worst case. That is one call, one token per byte of the request (no
//! tokenizer makes more) plus the maximum answer tokens, and their cost if the price is known. Only then
//! is it sent. Afterwards the reservation is settled with the usage that the provider reports. So
//! parallel calls, retries, fallbacks and resumed runs that share one [`CallBudget`] cannot exceed a
//! limit together.
//!
//! Reservations are recorded in a [`ReservationStore`]: in memory for one process, or in a database that outlives
//! the process and is shared with every process that continues the work.
//!
//! Invariants: checking the limits and reserving is one step. A failed or abandoned attempt still counts.
//! Its tokens are returned only if the provider certainly did no work (it refused the key, the rate or
//! the request). Nothing is sent without a reservation.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use crucible_model::Digest;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::asked_prices::AskedPrices;
use crate::backend::{Backend, BackendParts, ClientExtra, LlmBackend, Origin};
use crate::cassette::RecordedRequest;
use crate::error::{Fault, LlmError, Resource};
use crate::invocation::{LlmInvocation, LlmResult};
use crate::price::{Price, PriceTable};

/// The result extension with the cost that the provider reports, in millionths of a dollar.
pub(crate) const REPORTED_COST: &str = "cost_micro_dollars";

/// The tokens that a chat template may add per message.
const TEMPLATE_TOKENS: u64 = 16;

/// A limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// No limit.
    Unlimited,
    /// At most this much.
    At(u64),
}

/// The limits of a [`CallBudget`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetLimits {
    /// Attempts to call a model.
    pub calls: Limit,
    /// Tokens, of requests and answers together.
    pub tokens: Limit,
    /// Millionths of a US dollar.
    pub micro_dollars: Limit,
}

impl BudgetLimits {
    /// At most this many attempts, and no other limit.
    #[must_use]
    pub const fn calls(calls: u64) -> Self {
        Self {
            calls: Limit::At(calls),
            tokens: Limit::Unlimited,
            micro_dollars: Limit::Unlimited,
        }
    }
}

/// An amount of each budgeted resource.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Amount {
    /// Attempts to call a model.
    pub calls: u64,
    /// Tokens, of requests and answers together.
    pub tokens: u64,
    /// Millionths of a US dollar.
    pub micro_dollars: u64,
}

/// An attempt that is about to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedCall {
    /// The provider.
    pub provider: &'static str,
    /// The model.
    pub model: String,
    /// The digest of the canonical request: the same for an attempt and its retries.
    pub request: Digest,
    /// The worst-case usage.
    pub worst: Amount,
}

/// The end of an attempt. Unknown values stay as reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallEnd {
    /// `ok`, or the error class.
    pub outcome: &'static str,
    /// Input and output tokens.
    pub tokens: Option<(u64, u64)>,
    /// The cost in millionths of a US dollar: reported, or estimated from a configured price.
    pub micro_dollars: Option<u64>,
}

/// The number of a reservation in its book.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket(pub u64);

/// Why a book refused a reservation or a settlement.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReservationError {
    /// A limit would be exceeded.
    #[error("this attempt would raise usage to {attempted} {resource}; the limit is {limit}")]
    Exhausted {
        /// The exhausted resource.
        resource: Resource,
        /// The limit.
        limit: u64,
        /// The usage that the attempt would have reached.
        attempted: u64,
    },
    /// The book cannot be read or written.
    #[error("{detail}")]
    Unavailable {
        /// The error of the book.
        detail: String,
    },
}

/// A record of reservations that outlives the process. Its methods may block; they are called from
/// blocking threads.
pub trait ReservationStore: Send + Sync {
    /// Reserves the worst case of an attempt, atomically with the check against `limits`. An attempt that adds nothing always fits, even
    /// over a limit that was lowered since.
    ///
    /// # Errors
    ///
    /// See [`ReservationError`]; then nothing is reserved.
    fn reserve(
        &self,
        call: &PlannedCall,
        limits: &BudgetLimits,
    ) -> Result<Ticket, ReservationError>;

    /// Replaces a reservation by the actual usage. The attempt itself counts in any case.
    ///
    /// # Errors
    ///
    /// [`ReservationError::Unavailable`]; then the reservation stays.
    fn settle(&self, ticket: Ticket, end: &CallEnd) -> Result<(), ReservationError>;

    /// The amount that is used or reserved now.
    ///
    /// # Errors
    ///
    /// [`ReservationError::Unavailable`].
    fn used(&self) -> Result<Amount, ReservationError>;
}

/// A shared budget of calls, for everything that calls models on behalf of one user action.
pub struct CallBudget {
    limits: BudgetLimits,
    book: Reservations,
}

/// Where the reservations of a budget are recorded.
enum Reservations {
    /// In this process: the amount used or reserved.
    InProcess(Mutex<Amount>),
    /// In a store that outlives the process.
    Stored(Arc<dyn ReservationStore>),
}

/// The reservation of one attempt. If it is dropped without [`Reservation::settle`], all of it stays used.
#[must_use = "a reservation that is not settled stays used in full"]
pub struct Reservation {
    budget: Arc<CallBudget>,
    ticket: Ticket,
    reserved: Amount,
}

impl CallBudget {
    /// Creates an unused budget for this process.
    #[must_use]
    pub fn new(limits: BudgetLimits) -> Arc<Self> {
        Arc::new(Self {
            limits,
            book: Reservations::InProcess(Mutex::default()),
        })
    }

    /// Creates a budget whose reservations are recorded in `book`.
    #[must_use]
    pub fn with_store(limits: BudgetLimits, book: Arc<dyn ReservationStore>) -> Arc<Self> {
        Arc::new(Self {
            limits,
            book: Reservations::Stored(book),
        })
    }

    /// The limits.
    #[must_use]
    pub fn limits(&self) -> BudgetLimits {
        self.limits
    }

    /// The amount that is used or reserved now.
    ///
    /// # Errors
    ///
    /// [`ReservationError::Unavailable`] if the book cannot be read.
    pub fn used(&self) -> Result<Amount, ReservationError> {
        match &self.book {
            Reservations::InProcess(used) => Ok(*lock(used)),
            Reservations::Stored(book) => book.used(),
        }
    }

    /// Reserves the worst case of an attempt. If the future is dropped, the reservation may stay.
    ///
    /// # Errors
    ///
    /// [`ReservationError::Exhausted`] if a limit would be exceeded; then nothing is reserved.
    pub async fn reserve(
        self: &Arc<Self>,
        provider: &'static str,
        inv: &LlmInvocation,
        worst: Amount,
    ) -> Result<Reservation, ReservationError> {
        let request = match &self.book {
            // Nobody reads it there.
            Reservations::InProcess(_) => Digest::compute(b""),
            Reservations::Stored(_) => {
                let request = RecordedRequest::from_invocation(inv).key();
                request.map_err(|error| ReservationError::Unavailable {
                    detail: error.to_string(),
                })?
            }
        };
        self.reserve_call(PlannedCall {
            provider,
            model: inv.model.clone(),
            request,
            worst,
        })
        .await
    }

    /// Reserves the worst case of a call that is not an invocation of a backend.
    ///
    /// # Errors
    ///
    /// As [`CallBudget::reserve`].
    pub async fn reserve_call(
        self: &Arc<Self>,
        call: PlannedCall,
    ) -> Result<Reservation, ReservationError> {
        let reserved = call.worst;
        let ticket = match &self.book {
            Reservations::InProcess(used) => {
                let mut used = lock(used);
                *used = carried(*used, reserved, &self.limits)?;
                Ticket(used.calls)
            }
            Reservations::Stored(book) => {
                let (book, limits) = (Arc::clone(book), self.limits);
                elsewhere(move || book.reserve(&call, &limits)).await?
            }
        };
        Ok(Reservation {
            budget: Arc::clone(self),
            ticket,
            reserved,
        })
    }
}

impl Reservation {
    /// Replaces the reservation by the actual usage.
    ///
    /// # Errors
    ///
    /// [`ReservationError::Unavailable`]; then the reservation stays.
    pub async fn settle(self, end: CallEnd) -> Result<(), ReservationError> {
        match &self.budget.book {
            Reservations::InProcess(used) => {
                let mut used = lock(used);
                let replace = |used: u64, reserved: u64, spent: u64| {
                    used.saturating_sub(reserved).saturating_add(spent)
                };
                if let Some((input, output)) = end.tokens {
                    used.tokens = replace(
                        used.tokens,
                        self.reserved.tokens,
                        input.saturating_add(output),
                    );
                }
                if let Some(cost) = end.micro_dollars {
                    used.micro_dollars =
                        replace(used.micro_dollars, self.reserved.micro_dollars, cost);
                }
                Ok(())
            }
            Reservations::Stored(book) => {
                let (book, ticket) = (Arc::clone(book), self.ticket);
                elsewhere(move || book.settle(ticket, &end)).await
            }
        }
    }
}

/// Runs blocking work on a blocking thread, so that other calls continue.
async fn elsewhere<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ReservationError> + Send + 'static,
) -> Result<T, ReservationError> {
    let unavailable = |error: tokio::task::JoinError| ReservationError::Unavailable {
        detail: error.to_string(),
    };
    tokio::task::spawn_blocking(work)
        .await
        .map_err(unavailable)?
}

/// The amounts are always consistent, so a panic in another thread does not corrupt them.
fn lock(used: &Mutex<Amount>) -> MutexGuard<'_, Amount> {
    used.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The usage after adding `more`, if the limits allow it. Adding nothing always fits, even over a limit
/// that was lowered since.
pub(crate) fn carried(
    used: Amount,
    more: Amount,
    limits: &BudgetLimits,
) -> Result<Amount, ReservationError> {
    let carry = |resource, limit, used: u64, more: u64| {
        let attempted = used.saturating_add(more);
        match limit {
            Limit::At(limit) if more > 0 && attempted > limit => Err(ReservationError::Exhausted {
                resource,
                limit,
                attempted,
            }),
            Limit::At(_) | Limit::Unlimited => Ok(attempted),
        }
    };
    Ok(Amount {
        calls: carry(Resource::Calls, limits.calls, used.calls, more.calls)?,
        tokens: carry(Resource::Tokens, limits.tokens, used.tokens, more.tokens)?,
        micro_dollars: carry(
            Resource::MicroDollars,
            limits.micro_dollars,
            used.micro_dollars,
            more.micro_dollars,
        )?,
    })
}

/// Reserves each attempt in a budget before the backend sees it.
pub struct Budgeted<B> {
    inner: B,
    asks: Asks,
    budget: Arc<CallBudget>,
    prices: Arc<PriceTable>,
}

/// The properties of a backend that a budget needs.
#[derive(Debug, Clone, Copy)]
pub struct Asks {
    /// The provider.
    pub provider: &'static str,
    /// The most tokens of an answer if a call sets no limit.
    pub max_output_tokens: u64,
    /// What the provider's client or service does beyond the one requested call.
    pub extra: ClientExtra,
    /// The source of its answers. A recording costs nothing, whatever its answers cost originally; an
    /// unpaid source uses only the call count.
    pub origin: Origin,
}

impl Asks {
    /// Reads the properties of a backend.
    #[must_use]
    pub fn from_backend(backend: &Backend) -> Self {
        Self {
            provider: backend.provider(),
            max_output_tokens: backend.max_output_tokens(),
            extra: backend.extra(),
            origin: backend.origin(),
        }
    }
}

impl Backend {
    /// Adds a budget: each attempt reserves its part before it is sent, in addition to the caller's own
    /// budget.
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
            inner: Box::new(Budgeted::new(
                self.clone(),
                Asks::from_backend(&self),
                budget,
                prices,
            )),
        };
        Self::new(parts).with_phase_models(self.phase_models().clone())
    }
}

impl<B> Budgeted<B> {
    /// Wraps `inner` with a budget.
    pub fn new(inner: B, asks: Asks, budget: Arc<CallBudget>, prices: Arc<PriceTable>) -> Self {
        Self {
            inner,
            asks,
            budget,
            prices,
        }
    }

    /// The models that may answer a call, and their prices.
    fn prices(&self, inv: &LlmInvocation) -> Result<AskedPrices, LlmError> {
        let Asks {
            provider,
            extra,
            origin,
            ..
        } = self.asks;
        let fallbacks = inv.fallback_models(provider, extra.fallbacks)?;
        let price = |model: &str| match origin {
            Origin::Live => self.prices.price(provider, model),
            Origin::Recording | Origin::Unpaid => Price::NOTHING,
        };
        let models = [inv.model.as_str()].into_iter().chain(fallbacks);
        Ok(AskedPrices::new(
            models.map(|model| (model.to_owned(), price(model))),
        ))
    }

    /// The cost of an answer in millionths of a dollar: as the provider reports it, or estimated from its
    /// tokens.
    fn cost_of(&self, result: &LlmResult, prices: &AskedPrices) -> Option<u64> {
        let reported = match self.asks.origin {
            Origin::Live => result.extensions.get(REPORTED_COST).and_then(Value::as_u64),
            Origin::Recording | Origin::Unpaid => Some(0),
        };
        reported.or_else(|| {
            let (input, output) = result.tokens()?;
            prices
                .price(&result.model_used, input, output)
                .map(|(_, cost)| cost)
        })
    }

    fn worst_case(&self, inv: &LlmInvocation, prices: &AskedPrices) -> Result<Amount, LlmError> {
        if self.asks.origin == Origin::Unpaid {
            return Ok(Amount {
                calls: 1,
                ..Amount::default()
            });
        }
        let limited = self.budget.limits().micro_dollars != Limit::Unlimited;
        if let Some(model) = prices.without_price().filter(|_| limited) {
            return Err(LlmError::Misconfiguration(Fault::new(
                self.asks.provider,
                model,
                "a cost limit is set, but no price is configured for this model",
                format!(
                    "add a table llm.prices.\"{}/{model}\" to your own configuration, or limit calls and tokens instead",
                    self.asks.provider
                ),
            )));
        }
        let ClientExtra {
            added_tokens,
            requests,
            ..
        } = self.asks.extra;
        // The model also reads the schema of its answer.
        let hints: u64 = inv
            .metadata
            .values()
            .map(|hint| hint.to_string().len() as u64)
            .sum();
        let messages = inv
            .messages
            .iter()
            .map(|message| message.content.as_str().len() as u64 + TEMPLATE_TOKENS);
        let input = messages.fold(added_tokens.saturating_add(hints), u64::saturating_add);
        let output = inv.max_tokens(self.asks.provider, self.asks.max_output_tokens)?;
        let (input, output) = (
            input.saturating_mul(requests),
            output.saturating_mul(requests),
        );
        Ok(Amount {
            calls: 1,
            tokens: input.saturating_add(output),
            micro_dollars: prices.most(input, output).unwrap_or_default(),
        })
    }

    /// The error of an attempt that was not sent.
    fn not_reserved(&self, inv: &LlmInvocation, error: ReservationError) -> LlmError {
        match error {
            ReservationError::Exhausted {
                resource,
                limit,
                attempted,
            } => LlmError::BudgetExceeded {
                resource,
                limit,
                attempted,
            },
            ReservationError::Unavailable { detail } => LlmError::Misconfiguration(Fault::new(
                self.asks.provider,
                &inv.model,
                format!("nothing was sent: cannot reserve its cost in the budget: {detail}"),
                "fix that and try again",
            )),
        }
    }
}

#[async_trait]
impl<B: LlmBackend> LlmBackend for Budgeted<B> {
    async fn invoke(&self, inv: LlmInvocation) -> Result<LlmResult, LlmError> {
        let prices = self.prices(&inv)?;
        let worst = self.worst_case(&inv, &prices)?;
        let reserved = self.budget.reserve(self.asks.provider, &inv, worst).await;
        let reserved = reserved.map_err(|error| self.not_reserved(&inv, error))?;
        let outcome = self.inner.invoke(inv).await;
        let end = match &outcome {
            Ok(result) => CallEnd {
                outcome: "ok",
                tokens: match self.asks.origin {
                    Origin::Live | Origin::Recording => result.tokens(),
                    // Its tokens were paid for elsewhere.
                    Origin::Unpaid => Some((0, 0)),
                },
                micro_dollars: self.cost_of(result, &prices),
            },
            // A client that retries on its own may have had an answer before it was refused.
            Err(error) if error.did_no_work() && self.asks.extra.requests == 1 => CallEnd {
                outcome: error.class(),
                tokens: Some((0, 0)),
                micro_dollars: Some(0),
            },
            // The provider may have worked in vain and charge for it.
            Err(error) => CallEnd {
                outcome: error.class(),
                tokens: None,
                micro_dollars: None,
            },
        };
        // A reservation that cannot be settled stays: it is at least the actual cost.
        let _stays_reserved = reserved.settle(end).await;
        outcome
    }
}
